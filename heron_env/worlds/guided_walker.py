"""`heron/GuidedWalker-v0`: a guide sees the goal, a walker must go there; what the guide's two numbers mean is learned.

The words are a message (`StateShare`), and the walker sees itself by reports: so both are as late as the network is.
The walker is pushed with a = force * action, m/s^2, and slows down: v becomes 0.75^(dt / 0.1 s) v + a dt, then its
place p + v dt. Each step costs both agents half of the walker's distance from the goal, m.
"""

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heron_env.agents.agent import FieldAgent, SystemAgent
from heron_env.agents.horizontal import Inbox, StateShare
from heron_env.core.action import Continuous, Vector
from heron_env.core.feature import FeatureProvider, quantity
from heron_env.core.policy import Policies
from heron_env.core.rule import rule
from heron_env.core.world import World
from heron_env.envs.base import HeronEnv
from heron_env.envs.description import Benchmark, TrainingDefaults
from heron_env.errors import ConfigError
from heron_env.given import is_number
from heron_env.pictures import shapes
from heron_env.registry import make, make_aec

FAR = 100.0
"""Bound of places, m, and speeds, m/s."""
TIGHT = {"gain": 2.0, "damping": 0.5}
"""Constants of the rule that are good without delay."""


class Goal(FeatureProvider):
    """Where the walker must go, m; the guide alone sees it."""

    x: float = quantity(low=-1.0, high=1.0, unit="m")
    y: float = quantity(low=-1.0, high=1.0, unit="m")


class Utterance(FeatureProvider):
    """Two numbers that the guide says; they mean what the two learn that they mean."""

    words: np.ndarray = quantity(default=(0.0, 0.0), shape=(2,), low=-1.0, high=1.0, to_owner=False)


class GoalHeard(Inbox):
    """The words that arrived last."""

    words: np.ndarray = quantity(default=(0.0, 0.0), shape=(2,), low=-1.0, high=1.0)


class Body(FeatureProvider):
    """Place and velocity of the walker."""

    x: float = quantity(low=-FAR, high=FAR, unit="m")
    y: float = quantity(low=-FAR, high=FAR, unit="m")
    vx: float = quantity(low=-FAR, high=FAR, unit="m/s")
    vy: float = quantity(low=-FAR, high=FAR, unit="m/s")


class Thrust(FeatureProvider):
    """What pushes the walker: its set-point, and the acceleration of a full push."""

    x: float = quantity(default=0.0, low=-1.0, high=1.0, observed=False)
    y: float = quantity(default=0.0, low=-1.0, high=1.0, observed=False)
    force: float = quantity(default=8.0, low=0.0, high=FAR, unit="m/s^2", observed=False)


class Miss(FeatureProvider):
    """How far the walker is from the goal; nobody sees it."""

    visibility = ()
    distance: float = quantity(low=0.0, high=4.0 * FAR, unit="m", observed=False)


class GoalTeller(FieldAgent):
    """Sees the goal, and speaks."""

    features = (Goal, Utterance)
    action = Continuous([-1.0, -1.0], [1.0, 1.0])

    @staticmethod
    @rule(writes=Utterance.words)
    def apply_action(action: Vector) -> Any:
        return action

    @staticmethod
    @rule
    def compute_local_reward(miss: Miss) -> float:
        """Minus half of the walker's distance, m."""
        return -0.5 * miss.distance


class Walker(FieldAgent):
    """Sees itself, and hears the guide."""

    features = (Body, Thrust, GoalHeard)
    action = Continuous([-1.0, -1.0], [1.0, 1.0])

    @staticmethod
    @rule(writes=(Thrust.x, Thrust.y))
    def apply_action(action: Vector) -> tuple[float, float]:
        return action[0], action[1]

    @staticmethod
    @rule(writes=(Body.x, Body.y, Body.vx, Body.vy))
    def advance(body: Body, push: Thrust, dt: float) -> tuple[float, float, float, float]:
        slowed = 0.75 ** (dt / 0.1)
        vx, vy = slowed * body.vx + push.force * push.x * dt, slowed * body.vy + push.force * push.y * dt
        return body.x + vx * dt, body.y + vy * dt, vx, vy

    @staticmethod
    @rule
    def compute_local_reward(miss: Miss) -> float:
        """Minus half of its distance, m."""
        return -0.5 * miss.distance


def repeat(seen: NDArray[np.float32]) -> NDArray[np.float32]:
    """Say where the goal is."""
    return seen


def steered(constants: Mapping[str, float]) -> Policies:
    """The guide says where the goal is; the walker is pushed by gain * way - damping * velocity.

    Raises ConfigError for other constants.
    """
    if constants.keys() - TIGHT.keys():
        raise ConfigError(f"rule({', '.join(constants)}): its constants are {' and '.join(TIGHT)}; leave others out")
    gain, damping = (TIGHT | dict(constants)).values()

    def steer(seen: NDArray[np.float32]) -> NDArray[np.float32]:
        return np.clip(gain * (seen[4:6] - seen[:2]) - damping * seen[2:4], -1.0, 1.0)

    return {"guide": repeat, "walker": steer}


class GuidedWalkerEnv(HeronEnv):
    """The goal and the walker, somewhere in a square of 2 m."""

    dt = 0.1
    global_features = (Miss,)
    metadata: dict[str, Any] = {**HeronEnv.metadata, "name": "heron/GuidedWalker-v0"}

    @staticmethod
    @rule(writes=(Goal.x, Goal.y, Body.x, Body.y))
    def begin(world: World) -> None:
        goal, body, drawn = world[GoalTeller].Goal, world[Walker].Body, world.draw("places", 4)
        goal.x[0], goal.y[0] = 2.0 * drawn[0] - 1.0, 2.0 * drawn[1] - 1.0
        body.x[0], body.y[0] = 2.0 * drawn[2] - 1.0, 2.0 * drawn[3] - 1.0

    @staticmethod
    @rule(writes=Miss.distance)
    def advance(world: World, dt: float) -> None:
        goal, body = world[GoalTeller].Goal, world[Walker].Body
        x, y = goal.x[0] - body.x[0], goal.y[0] - body.y[0]
        world.Miss.distance[0] = (x * x + y * y) ** 0.5

    def kpis(self) -> dict[str, float]:
        """How far from the goal the walker is now, m."""
        return {"distance": float(self.world.Miss.distance[0])}

    def draw_frame(self, axes: Any, world: World, observed: Any, artists: Any = None) -> Any:
        """Draw goal and walker; dashed: where the observing agent believes the walker."""
        return (artists or WalkDrawing(axes)).show(world, observed)

    def benchmark(self) -> Benchmark:
        """A rule with two constants, which suit a network without delay unless others are named."""
        return Benchmark(
            baselines=lambda seed: {"rule": steered({})},
            tuned=lambda name, constants, seed: steered(constants),
            strongest="rule", unit="m",
        )  # fmt: skip

    def training_defaults(self) -> TrainingDefaults:
        """Both decide alone; found with one training seed, 0, under msg_delay=0.5."""
        settings = {
            "num_envs": 256, "n_steps": 25, "batch_size": 1_600, "gamma": 0.98, "gae_lambda": 0.95,
            "learning_rate": 3e-3, "final_learning_rate": 1e-4, "log_std": -0.7,
        }  # fmt: skip
        return TrainingDefaults(hyperparameters=settings)


class WalkDrawing:
    """The artists of the square."""

    def __init__(self, axes: Any) -> None:
        self.axes, self.reach, self.shape = axes, 0.0, shapes.shape_of(axes)
        self.title, self.foot = shapes.stage(axes, 1.0, self.shape)
        axes.set(facecolor=shapes.PALE)
        self.goal = shapes.polygons(axes, facecolor=shapes.GREEN)
        self.walker = shapes.polygons(axes, facecolor=shapes.BLUE, zorder=3.0)
        self.ghost = shapes.polygons(axes, facecolor="none", zorder=5.0, **shapes.GHOST)
        self.lag = shapes.segments(axes, color=shapes.GHOST["edgecolor"], linewidth=1.2, zorder=4.5)
        self.labels = shapes.Labels(axes, np.zeros((2, 2)), ["goal", "walker_0"], points=9.0)

    def show(self, world: World, observed: Any) -> "WalkDrawing":
        """All at its place."""
        goal, body = world[GoalTeller].Goal, world[Walker].Body
        places = np.array([[goal.x[0], goal.y[0]], [body.x[0], body.y[0]]])
        if np.abs(places).max() > 0.95 * self.reach:  # the square grows with a walker that leaves it
            self.reach = 1.15 * max(np.abs(places).max(), 1.05)
            x, y = self.reach * max(1.0, 1.0 / self.shape), self.reach * max(1.0, self.shape)
            self.axes.set(xlim=(-x, x), ylim=(-y, y))
        self.goal.set_verts(shapes.rounds(places[:1], np.tile([0.12, 0.05], 5), 10))
        self.walker.set_verts(shapes.rounds(places[1:], 0.08))
        for layer in self.labels.layers:
            layer.set_offsets(places + np.array([0.0, 0.16]))
        self.title.set_text(f"{float(world.Miss.distance[0]):.2f} m from the goal")
        self.foot.set_text(shapes.known_text(observed))
        if observed is not None:
            known = observed.world[Walker].Body
            believed = np.array([[known.x[0], known.y[0]]])
            believed = believed[np.isfinite(believed).all(axis=1)]
            self.ghost.set_verts(shapes.rounds(believed, 0.08))
            self.lag.set_segments([np.stack([places[1], place]) for place in believed])
        return self


def guided_walker(force: float = 8.0, max_steps: int | None = 50, **options: Any) -> GuidedWalkerEnv:
    """A guide says where a walker must go; both learn what the words mean.

    Args:
        force: acceleration of a full push, m/s^2, from 0 to 100.
        max_steps: steps of 0.1 s an episode.
        options: of HeronEnv.

    Raises ConfigError naming the argument and its value.
    """
    if not is_number(force) or not 0.0 <= force <= FAR:
        raise ConfigError(f"guided_walker(force={force!r:.60}): must be a number from 0 to {FAR:g}, m/s^2")
    words = StateShare(Utterance.words, GoalHeard.words, [("guide_0", "walker_0")])
    agents = GoalTeller("guide_0"), Walker("walker_0", Thrust(force=force))
    return GuidedWalkerEnv(SystemAgent("system_agent", *agents, exchange=words), max_steps=max_steps, **options)


parallel_env = partial(make, "heron/GuidedWalker-v0")
env = raw_env = partial(make_aec, "heron/GuidedWalker-v0")

__all__ = ["GuidedWalkerEnv", "env", "guided_walker", "parallel_env", "raw_env"]
