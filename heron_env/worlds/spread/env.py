"""The environment: agents spread out over as many landmarks, without bumping into each other; rules that do so.

The rules drive to landmarks. They use what the agent sees, and nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heron_env.agents.agent import SystemAgent
from heron_env.agents.horizontal import StateShare
from heron_env.core.policy import AnyPolicy, OnBatches
from heron_env.core.rule import rule
from heron_env.core.world import World
from heron_env.envs.base import HeronEnv
from heron_env.envs.description import Benchmark, TrainingDefaults
from heron_env.errors import ConfigError
from heron_env.given import require_count, require_one_of, require_price, require_switch
from heron_env.worlds.spread.discs import (
    DIRECTIONS,
    FAR,
    FULL_FORCE,
    KEPT,
    MATES,
    STEP,
    WRITTEN,
    Chooser,
    Contact,
    Disc,
    Landscape,
    Position,
    Pusher,
    Surroundings,
    Team,
    Told,
    landmarks,
    look,
    move,
    surroundings,
)
from heron_env.worlds.spread.speaking import (
    PUSHES,
    SHARE,
    DiscVoice,
    SpeakingChooser,
    SpeakingPusher,
    ear_and_voice,
    note,
    shares,
)

Array = NDArray[np.float64]
Vectors = NDArray[np.float32]

HASTE = 4.0
"""Speed towards the landmark per distance that will be left, 1/s."""
IDLE = 0.1
"""With discrete actions: a push below this share of the full force is left out."""


TRIGGER = 0.2
"""The baseline "trigger" speaks when it is farther from where it said last."""


class Drive(OnBatches):
    """Rule that drives to a landmark and stops there.

    Args:
        agents: number of agents, and of landmarks.
        continuous: which kind of action.
        beyond: with mates="share", it sends the others its position when that is farther from what it sent last;
            below 0: in every step. None: it has no voice.
    """

    def __init__(self, agents: int, continuous: bool, beyond: float | None = None) -> None:
        self.agents, self.continuous, self.beyond = agents, continuous, beyond

    def choose(self, landmarks: Array, others: Array) -> NDArray[np.int64]:
        """Return the index `[b]` of the landmark to drive to; `landmarks` `[b, n, 2]`, `others` `[b, n - 1, 2]`."""
        return np.asarray(np.hypot(landmarks[..., 0], landmarks[..., 1]).argmin(axis=-1))

    def forward_batch(self, vectors: Vectors) -> Array:
        """Return actions `[b, 5]`, with a voice `[b, 6]`, or `[b, 1]` for observations `[b, d]`."""
        n, b = self.agents, len(vectors)
        seen = vectors.astype(np.float64)
        velocity, landmarks = seen[:, :2], seen[:, 4 : 4 + 2 * n].reshape(b, n, 2)
        others = seen[:, 4 + 2 * n : 2 + 4 * n].reshape(b, n - 1, 2)
        if self.beyond is not None:  # what is heard are places
            others = others - seen[:, None, 2:4]
            apart = seen[:, 2:4] - seen[:, 2 + 4 * n :]
            says = np.hypot(apart[:, 0], apart[:, 1]) > self.beyond
        way = landmarks[np.arange(b), self.choose(landmarks, others)]
        wanted = HASTE * (way - STEP * velocity)
        push = np.clip((wanted - KEPT * velocity) / (STEP * FULL_FORCE), -1.0, 1.0)
        if self.continuous:
            x, y = push.T
            pushes = np.stack([0.0 * x, -x, x, -y, y], axis=-1).clip(0.0)
            return pushes if self.beyond is None else np.concatenate([pushes, 2.0 * says[:, None] - 1.0], axis=1)
        strong = np.abs(push)
        axis = strong.argmax(axis=-1)
        positive = push[np.arange(b), axis] > 0.0
        choice = np.where(strong.max(axis=-1) < IDLE, DIRECTIONS.index("stay"), 1 + 2 * axis + positive)
        choice = choice if self.beyond is None else choice + PUSHES * says
        return choice[:, None].astype(np.float64)


class Assigned(Drive):
    """Rule that drives to the landmark of a common assignment, which every agent can compute.

    The nearest pair of an agent and a landmark belong together; so does the nearest pair of those left, and so on.
    """

    def choose(self, landmarks: Array, others: Array) -> NDArray[np.int64]:
        """Choose a landmark; row 0 of the distances is the agent's own."""
        b, n, _ = landmarks.shape
        everybody = np.concatenate([np.zeros((b, 1, 2)), others], axis=1)
        ways = landmarks[:, None] - everybody[:, :, None]
        left, lane = np.hypot(ways[..., 0], ways[..., 1]), np.arange(b)
        mine = np.zeros(b, dtype=np.int64)
        for _ in range(n):
            agent, landmark = np.divmod(left.reshape(b, -1).argmin(axis=-1), n)
            mine = np.where(agent == 0, landmark, mine)
            left[lane, agent], left[lane, :, landmark] = np.inf, np.inf
        return mine


def baselines(env: SpreadEnv) -> dict[str, dict[str, AnyPolicy]]:
    """Policies by name of the baseline, for all agents."""
    continuous = env.simulation.model.specs[env.simulation.model.possible[0]].dim_c > 0
    rules = {"nearest landmark": Drive, "assigned landmark": Assigned}
    n, beyond = len(env.possible_agents), -1.0 if isinstance(env, SpeakingSpreadEnv) else None
    offered = {name: rule(n, continuous, beyond) for name, rule in rules.items()}
    if beyond is not None:
        offered["trigger"] = Assigned(n, continuous, TRIGGER)
    return {name: {"*": rule} for name, rule in offered.items()}


def add_up(team: Any, contact: Any) -> None:
    """Add distance and contacts of a step to the episode's sums."""
    team.distance_sum[0] += team.distance[0]
    for i in range(len(contact.others)):
        team.contact_sum[0] += contact.others[i]


Floats = NDArray[np.float64]
RETURN_UNIT = "sum of rewards, all agents"


class SpreadEnv(HeronEnv):
    """MPE's simple_spread. Agents only write forces; `advance` moves them and writes what is around each.

    Args:
        num_agents: agent_0 ... agent_{n-1}, and as many landmarks.
        continuous: continuous actions, else discrete ones.
        local_ratio: weight of an agent's own collisions in its reward; the rest is the team's.
        mates: as of `spread`.
        options: as for HeronEnv.
    """

    metadata = {**HeronEnv.metadata, "name": "heron/Spread-v0"}
    dt = STEP
    reset_options = ("agents", "landmarks")
    kinds: tuple[type[Disc], type[Disc]] = (Pusher, Chooser)
    """Of agents, with numbers and with choices."""

    def __init__(
        self, num_agents: int, *, continuous: bool, local_ratio: float, mates: str = "exact", **options: Any
    ) -> None:
        self.kind = self.kinds[not continuous]
        around = surroundings(num_agents, Surroundings if mates == "exact" else Landscape)
        self.global_features = (landmarks(num_agents), Team)
        self._size = num_agents
        self._given: dict[str, Floats] = {}
        place: type[Any] = Told if mates == "message" else Position
        features = place(), around(), Contact(local_ratio=local_ratio), *self.more()
        agents = (self.kind(f"agent_{i}", *features) for i in range(num_agents))
        super().__init__(SystemAgent("system_agent", *agents, exchange=self.exchange()), **options)

    def more(self) -> tuple[Any, ...]:
        """Features of an agent, besides those that all have."""
        return ()

    def exchange(self) -> tuple[StateShare, ...]:
        """Return the protocol by which agents exchange positions."""
        return ()

    def reset(
        self, seed: int | None = None, options: Mapping[str, Any] | None = None
    ) -> tuple[dict[str, NDArray[np.float32]], dict[str, Any]]:
        """Like HeronEnv's; `options={"agents": ..., "landmarks": ...}`, each `[n, 2]`, sets initial positions.

        Raises ConfigError for anything else.
        """
        if not isinstance(options, Mapping | None):
            raise ConfigError(
                f"reset(options={options!r}): must be a mapping; write {{'agents': ..., 'landmarks': ...}}"
            )
        asked = options or {}
        self._given = {name: self._positions(name, asked[name]) for name in ("agents", "landmarks") if name in asked}
        try:
            return super().reset(seed=seed, options=options)
        finally:
            self._given = {}

    def _positions(self, name: str, given: Any) -> Floats:
        """`given` as `[2, n]`: all x, all y."""
        where, needed = f"reset(options={{{name!r}: ...}})", f"give x and y of each, numbers of shape {(self._size, 2)}"
        try:
            positions = np.asarray(given, dtype=np.float64)
        except (TypeError, ValueError, OverflowError) as error:
            raise ConfigError(f"{where}: {given!r} is no array of numbers; {needed}") from error
        if positions.shape != (self._size, 2):
            raise ConfigError(f"{where}: the shape is {positions.shape}; {needed}")
        if not (np.abs(positions) <= FAR).all():
            raise ConfigError(f"{where}: {positions.tolist()} lies outside [-{FAR}, {FAR}]; place them within")
        return positions.T

    def start_episode(self, seed: int | None) -> None:
        """Like HeronEnv's; positions in `options` replace the drawn ones."""
        super().start_episode(seed)
        if self._given:
            position, marks = self.world[Disc].Position, self.world.Landmarks
            position.x, position.y = self._given.get("agents", (position.x, position.y))
            marks.x, marks.y = self._given.get("landmarks", (marks.x, marks.y))
            look(self.world[Disc], marks, self.world.Team)

    @staticmethod
    @rule
    def begin(world: World) -> None:
        """Draw all places in the square [-1, 1] x [-1, 1]; speeds are 0."""
        position, marks = world[Disc].Position, world.Landmarks
        n = len(position.x)
        agents, landmarks = world.draw("agents", (2, n)), world.draw("landmarks", (2, n))
        for i in range(n):
            position.x[i], position.y[i] = 2.0 * agents[0, i] - 1.0, 2.0 * agents[1, i] - 1.0
            marks.x[0, i], marks.y[0, i] = 2.0 * landmarks[0, i] - 1.0, 2.0 * landmarks[1, i] - 1.0
        look(world[Disc], marks, world.Team)

    @staticmethod
    @rule(writes=WRITTEN)
    def advance(world: World, dt: float) -> None:
        """Move all agents by one substep, then update what is around each."""
        move(world[Disc], dt)
        look(world[Disc], world.Landmarks, world.Team)

    @staticmethod
    @rule(writes=(Team.distance_sum, Team.contact_sum))
    def finish(world: World) -> None:
        """Add the step to the episode's sums."""
        add_up(world.Team, world[Disc].Contact)

    def kpis(self) -> dict[str, float]:
        """The episode so far.

        distance: from the landmarks to their nearest agents, summed over landmarks, mean of the steps. contacts: of
        all agents with others. covered: landmarks covered now. mpe_return: the episode's return as the original MPE
        counts it: distance and contacts of all agents summed, every agent touching itself in every step.
        """
        team, steps = self.world.Team, self.simulation.step_index
        distance, contacts = float(team.distance_sum[0]), float(team.contact_sum[0])
        return {
            "distance": distance / max(steps, 1),
            "contacts": contacts,
            "covered": float(team.covered[0]),
            "mpe_return": -self._size * (distance + steps) - contacts,
        }

    def draw_frame(self, axes: Any, world: World, observed: Any, artists: Any = None) -> Any:
        """Draw agents, landmarks and contacts; dashed: places that the observing agent knows."""
        from heron_env.worlds.spread.drawing import SpreadDrawing

        return (artists or SpreadDrawing(axes, self.possible_agents)).show(world, observed)

    def benchmark(self) -> Benchmark:
        """Return two rules that drive to landmarks."""
        return Benchmark(baselines=lambda seed: baselines(self), strongest="assigned landmark", unit=RETURN_UNIT)

    def training_defaults(self) -> TrainingDefaults:
        """Return training without a baseline to correct."""
        return TrainingDefaults()


class SpeakingSpreadEnv(SpreadEnv):
    """The same with mates="share".

    Args:
        speech_cost: what a message costs its sender, for each that it is sent to.
    """

    kinds = (SpeakingPusher, SpeakingChooser)

    def __init__(self, num_agents: int, *, speech_cost: float = 0.0, **options: Any) -> None:
        self._cost = speech_cost
        super().__init__(num_agents, **options)

    def more(self) -> tuple[Any, ...]:
        """An ear and a voice."""
        return ear_and_voice(self._size, self._cost)

    def exchange(self) -> tuple[StateShare, ...]:
        """Where each is, when it says so."""
        return (shares(self._size),)

    @staticmethod
    @rule(writes=(Team.distance_sum, Team.contact_sum, DiscVoice.place, DiscVoice.shared, DiscVoice.sent))
    def finish(world: World) -> None:
        """Add the step to the episode's sums; note what leaves now."""
        add_up(world.Team, world[Disc].Contact)
        note(world[Disc])

    def kpis(self) -> dict[str, float]:
        """The same, and messages: how many were sent, one for each agent that hears something."""
        return {**super().kpis(), "messages": float(self.world[Disc].Voice.sent.sum())}


def spread(
    num_agents: int = 3,
    local_ratio: float = 0.5,
    continuous: bool = True,
    max_steps: int | None = 25,
    mates: str = "exact",
    speech_cost: float = 0.0,
    **options: Any,
) -> SpreadEnv:
    """MPE's simple_spread: agents cover as many landmarks without bumping into each other.

    Args:
        num_agents: agents, and landmarks.
        local_ratio: weight of an agent's own collisions in its reward, in [0, 1]; the rest is the team's.
        continuous: five pushes in [0, 1] (stay, left, right, down, up); False: one of five directions.
        max_steps: steps an episode.
        mates: "exact": what an agent sees of the others is its own, as old as all that it sees of itself. "message": it
            is what they send, over their own links and with an age each; without delay the observations are the
            same, bit for bit. "share": it is what they chose to send: an action has one more number, in [-1, 1], and
            above 0 the agent sends all others its position (of discrete actions there are twice as many; the second
            five speak). Each sees its own position, those that the others sent last, and what it sent last.
        speech_cost: with mates="share": what a message costs its sender, for each agent that it is sent to, >= 0.
        options: of HeronEnv.

    Raises ConfigError naming the argument and its value.
    """
    require_count(f"spread(num_agents={num_agents!r:.60})", num_agents)
    if not isinstance(local_ratio, int | float) or not 0.0 <= local_ratio <= 1.0:
        raise ConfigError(f"spread(local_ratio={local_ratio!r}): must be a number in [0, 1]")
    require_switch(f"spread(continuous={continuous!r:.60})", continuous)
    require_one_of(f"spread(mates={mates!r:.60})", mates, (*MATES, SHARE))
    require_price(f"spread(speech_cost={speech_cost!r:.60})", speech_cost)
    if mates != SHARE and speech_cost:
        raise ConfigError(f"spread(speech_cost={speech_cost!r}): speaking is decided with mates='share' alone; add it")
    build, given = SpreadEnv, {"continuous": continuous, "local_ratio": local_ratio, "mates": mates, **options}
    if mates == SHARE:
        build, given = SpeakingSpreadEnv, {"speech_cost": float(speech_cost), **given}
    return build(num_agents, max_steps=max_steps, **given)
