"""Delays in the synchronous clock and in batches, so that a policy can be trained with what it will meet.

Both are whole control steps, drawn anew for every agent and episode. An agent that sees `o` steps late and whose
decisions take effect `a` steps late decides in step s on what it saw in step s - o, and acts in step s + a; before it
has seen anything it decides nothing. That is what the event-driven clock does with obs_delay = o dt, act_delay = a dt.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from heron_env.core.layout import span_of, spans_of
from heron_env.engine.arrays import zeros
from heron_env.engine.tables import HELD
from heron_env.errors import ConfigError, checked_keywords
from heron_env.scheduling.ticks import ticks_at
from heron_env.scheduling.timing import SECOND
from heron_env.seeding import h, keys, uniform

if TYPE_CHECKING:
    from heron_env.engine.lanes import Lanes
    from heron_env.envs.simulation import Simulation
    from heron_env.scheduling.timing import Timing

Steps = int | tuple[int, int]
Ints = NDArray[np.int64]


@checked_keywords
@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingDelays:
    """How late agents see and act while they are trained, in control steps.

    An agent whose turn it was in the step that it sees is active; a commanded agent shares its commander's delays, and
    until an action takes effect the last set-point holds. `infos[agent]["aoi"]` is the age of what it sees.

    Args:
        observation: age of what an agent sees: a whole number, or (least, most), each as likely. Its own columns are
            never late where its own rows are local.
        action: steps from a decision to its effect, likewise.

    Raises ConfigError naming the field and its value.
    """

    observation: Steps = 0
    action: Steps = 0

    def __post_init__(self) -> None:
        """Refuse what is no range of whole numbers."""
        for name in ("observation", "action"):
            given = getattr(self, name)
            if not _is_range(given):
                raise ConfigError(
                    f"TrainingDelays({name}={given!r}): must be a whole number of control steps >= 0, or (least, most)"
                )

    def bounds(self, name: str) -> tuple[int, int]:
        """(least, most) of "observation" or "action"."""
        given: Steps = getattr(self, name)
        return given if isinstance(given, tuple) else (given, given)


def _is_range(given: object) -> bool:
    pair = given if isinstance(given, tuple) else (given, given)
    whole = all(isinstance(x, int) and not isinstance(x, bool) for x in pair)
    return len(pair) == 2 and whole and 0 <= pair[0] <= pair[1]


class DelayLines:
    """What the deciding agents of some environments saw and decided lately.

    Args:
        delays: how late.
        agents: ids of the deciding agents; their draws depend on the id, not on the place.
        widths, sizes: lengths of their vectors and actions.
        lanes: environments.
        sources: how many elements at the end of each vector are ages, which the lines then write.
        tails: how many elements come even after these, and are always the same.
        own: how many at its beginning are never late, as the agent reads them itself (T19): its first source.
        relative: places from which what lies at others is subtracted, last of all, `[2, k]` (ObserverView.relative).
        dt_ns: control step.

    Attributes:
        observation, action: delays in force, int64 `[lanes, agents]`.
        spans: each agent's part of the vectors.
        shown: what the last `look` showed, float32 `[lanes, floats]`.
    """

    def __init__(
        self,
        delays: TrainingDelays,
        agents: Sequence[str],
        widths: Sequence[int],
        sizes: Sequence[int],
        lanes: int = 1,
        *,
        sources: Sequence[int] | None = None,
        tails: Sequence[int] | None = None,
        own: Sequence[int] | None = None,
        relative: Ints | None = None,
        dt_ns: int = SECOND,
    ) -> None:
        self.delays, self._dt_ns = delays, dt_ns
        self._names = np.array([h(agent) for agent in agents], dtype=np.uint64)
        self.observation: Ints = np.zeros((lanes, len(agents)), dtype=np.int64)
        self.action: Ints = np.zeros((lanes, len(agents)), dtype=np.int64)
        self.spans = spans_of(widths)
        self.shown: NDArray[np.float32] = np.zeros((lanes, sum(widths)), dtype=np.float32)
        self._sees, self._acts = _runs(widths), _runs(sizes)
        owner = np.repeat(np.arange(len(agents)), widths)
        last = np.cumsum(widths) - (0 if tails is None else np.asarray(tails))
        first, place = last - (0 if sources is None else np.asarray(sources)), np.arange(len(owner))
        self._aged = np.flatnonzero((place >= first[owner]) & (place < last[owner]))
        self._whose = owner[self._aged]
        fresh = np.zeros(len(agents), np.int64) if own is None else np.asarray(own)
        begin = np.cumsum(widths) - widths
        self._own = np.flatnonzero(np.arange(len(owner)) < (begin + fresh)[owner])
        self._own_ages = first[(fresh > 0) & (first < last)]
        least, late = delays.bounds("observation")
        self._all_alike, slow = least == late, delays.bounds("action")[1]
        self._relative = np.zeros((2, 0), np.int64) if relative is None else relative
        carried = np.float64 if self._relative.size else np.float32
        self._seen = zeros((late + 1, lanes, sum(widths)), carried, str(delays))
        self._decided = zeros((slow + 1, lanes, sum(sizes)), np.float64, str(delays))
        self._given = zeros((slow + 1, lanes, len(agents)), np.uint8, str(delays))
        self._lane = np.arange(lanes)

    def begin(self, lanes: Ints, seeds: NDArray[np.uint64], episodes: NDArray[np.uint64]) -> None:
        """Draw the delays of new episodes in `lanes` `[n]`, keyed by their seeds and episodes `[n]`; forget the old."""
        for name, into in (("observation", self.observation), ("action", self.action)):
            least, most = self.delays.bounds(name)
            u = uniform(keys("training delays", seeds[:, None], episodes[:, None], name, self._names))
            into[lanes] = np.minimum(least + (u * (most - least + 1)).astype(np.int64), most)
        for line in (self._seen, self._decided, self._given):
            line[:, lanes] = 0

    def look(self, steps: Ints, vectors: NDArray[Any], lanes: Ints | slice = slice(None)) -> NDArray[np.float32]:
        """`see`; that is what agents are `shown` until the next time."""
        seen = self.shown[lanes] = self.see(steps, vectors, lanes)
        return seen

    def see(self, steps: Ints, vectors: NDArray[Any], lanes: Ints | slice = slice(None)) -> NDArray[np.float32]:
        """What is seen in step `steps` `[lanes]`, float32 `[lanes, floats]`, if `vectors` are what is received of now.

        `lanes`: of which these are, if not of all.
        """
        received = self._received(steps, vectors, lanes)
        if not self._relative.size:
            return received
        (places, less), seen = self._relative, received.copy()
        seen[:, places] -= received[:, less]
        return seen.astype(np.float32)

    def _received(self, steps: Ints, vectors: NDArray[Any], lanes: Ints | slice) -> NDArray[Any]:
        depth, lane = len(self._seen), self._lane[lanes]
        self._seen[steps % depth, lane] = vectors
        if depth == 1:
            return vectors
        at = self.seen_in(steps, lanes) % depth
        if self._all_alike:
            shown = self._seen[at[:, 0], lane]
        else:
            shown = _taken(self._seen, at, lane, self._sees)
        if len(self._aged):
            shown[:, self._aged] = self.ages(steps, lanes)[:, self._whose]
            shown[:, self._own_ages] = 0.0
        if len(self._own):
            shown[:, self._own] = vectors[:, self._own]
        return shown

    def seen_in(self, steps: Ints, lanes: Ints | slice = slice(None)) -> Ints:
        """The step whose vectors are seen now, int64 `[lanes, agents]`; the first one until a later one comes."""
        seen: Ints = np.maximum(steps[:, None] - self.observation[lanes], 0)
        return seen

    def ages(self, steps: Ints, lanes: Ints | slice = slice(None)) -> NDArray[np.float64]:
        """How old that is, s, float64 `[lanes, agents]`."""
        old: NDArray[np.float64] = (steps[:, None] - self.seen_in(steps, lanes)) * self._dt_ns / SECOND
        return old

    def act(
        self, steps: Ints, decided: NDArray[np.float64], given: NDArray[np.uint8], lanes: slice = slice(None)
    ) -> tuple[NDArray[np.float64], NDArray[np.uint8]]:
        """What takes effect in step `steps` of what is decided now.

        `decided` float64 `[lanes, elements]`; `given` uint8 `[lanes, agents]`: 0 where an agent decides nothing.
        """
        depth, lane = len(self._decided), self._lane[lanes]
        self._decided[steps % depth, lane], self._given[steps % depth, lane] = decided, given
        if depth == 1:
            return decided, given
        due = steps[:, None] - self.action[lanes]
        at = due % depth
        falls: NDArray[np.uint8] = np.where(due >= 0, self._given[at, lane[:, None], np.arange(at.shape[1])], 0)
        return _taken(self._decided, at, lane, self._acts), falls.astype(np.uint8)

    def state(self, lanes: slice = slice(None)) -> dict[str, Any]:
        """All of some lanes, as arrays."""
        return {name: array.copy() for name, array in self._kept(lanes).items()}

    def restore(self, state: Mapping[str, Any], lanes: slice = slice(None)) -> None:
        """Go on from `state()`. Raises ConfigError if it is of other delays or agents."""
        for name, array in self._kept(lanes).items():
            if np.shape(state[name]) != array.shape:
                raise ConfigError(
                    f"set_state(): training delays {name!r} have shape {np.shape(state[name])} in the state and "
                    f"{array.shape} in this environment; build them alike"
                )
            array[:] = state[name]

    def _kept(self, lanes: slice) -> dict[str, NDArray[Any]]:
        return {
            "observation": self.observation[lanes],
            "action": self.action[lanes],
            "seen": self._seen[:, lanes],
            "decided": self._decided[:, lanes],
            "given": self._given[:, lanes],
        }


Run = tuple[int, int, int, int]
"""Agents next to each other with vectors of one length: first and last + 1 agent, first column, length."""


def _runs(lengths: Sequence[int]) -> list[Run]:
    """All of them, without the agents that have nothing."""
    found, column, first = list[Run](), 0, 0
    for length, members in groupby(lengths):
        last = first + len(list(members))
        if length:
            found.append((first, last, column, length))
        column, first = column + (last - first) * length, last
    return found


def _taken(line: NDArray[Any], at: Ints, lane: Ints, runs: Sequence[Run]) -> NDArray[Any]:
    """From a line `[depth, lanes, elements]` each agent's part at its own place: `at` `[n, agents]`, `lane` `[n]`."""
    taken = np.empty((len(lane), line.shape[2]), dtype=line.dtype)
    for first, last, column, length in runs:
        part, shape = slice(column, column + (last - first) * length), (last - first, length)
        agents = line[:, :, part].reshape(*line.shape[:2], *shape)
        taken[:, part] = agents[at[:, first:last], lane[:, None], np.arange(last - first)].reshape(len(lane), -1)
    return taken


def make_late_lane(simulation: Simulation, timings: Sequence[Timing], delays: TrainingDelays | None) -> LateLane | None:
    """What there is for an environment with `delays`; None without. Raises ConfigError for what is none."""
    if not isinstance(delays, TrainingDelays | None):
        example = "TrainingDelays(observation=1, action=(0, 2))"
        raise ConfigError(f"training_delays={delays!r}: must be a TrainingDelays; write {example}")
    if delays is None:
        return None
    acting = [rank for rank, spec in enumerate(simulation.specs) if spec.size]
    late = LateLanes(simulation, timings, delays, simulation.lane.lanes, acting, len(acting))
    return LateLane(late, 0, simulation)


class LateLanes:
    """The delay lines of some lanes, in the synchronous clock: of one environment, or of a batch.

    What waits in the lines of actions are decisions as they were made: commands are split when the commander decides,
    so that each agent's share falls even if the commander has ended by then, as an effect under way does in the
    event-driven clock. Agents that have ended do nothing any more. A commanded agent shares its commander's delays, as
    it does its ticks (T10).

    Args:
        acting: ranks of all agents with actions, as the lines hold them; the first `observing` of them see.
    """

    def __init__(
        self, simulation: Simulation, timings: Sequence[Timing], delays: TrainingDelays, lanes: Lanes,
        acting: Sequence[int], observing: int,
    ) -> None:  # fmt: skip
        plan, specs, ids = simulation.plan, simulation.specs, simulation.hierarchy.ids
        self.plan, self.seeing, self.dt_ns = plan, acting[:observing], simulation.dt_ns
        self.own = {rank: plan.views[rank].own if timings[rank].local else 0 for rank in self.seeing}
        """How many columns at the beginning of its observation each seeing agent reads itself, never late (T19)."""
        self.place = {rank: place for place, rank in enumerate(acting)}
        self._lanes, self.arrays = lanes, lanes.arrays
        clocks, unseen = [simulation.clocks[rank] for rank in acting], [0] * (len(acting) - observing)
        ages = [len(plan.views[rank].sources) if plan.observe_age else 0 for rank in self.seeing]
        widths = [*map(plan.size, self.seeing)]
        self.relative = plan.relative(self.seeing, np.cumsum([0, *widths]).tolist())
        self.lines = DelayLines(
            delays,
            [ids[rank] for rank in clocks],
            [*widths, *unseen],
            [specs[rank].size for rank in acting],
            lanes.count,
            sources=[*ages, *unseen],
            tails=[*(len(plan.padding.tails[rank]) for rank in self.seeing), *unseen],
            own=[*self.own.values(), *unseen],
            relative=self.relative,
            dt_ns=self.dt_ns,
        )
        self._position = span_of(np.asarray([lanes.position[rank] for rank in acting]))
        spans = [lanes.action_slice(rank) for rank in acting]
        self._elements = span_of(np.concatenate([np.arange(span.start, span.stop) for span in spans]))
        self._owner = np.repeat(np.arange(len(acting)), [span.stop - span.start for span in spans])
        self._clock = span_of(np.asarray([lanes.position[rank] for rank in clocks]))
        self._tick = np.array([timings[rank].tick for rank in clocks])
        self._phase = np.array([timings[rank].phase for rank in clocks])

    def begin(self, lanes: Ints) -> None:
        """An episode begins in `lanes` `[n]`: draw its delays, forget the last one's."""
        self.lines.begin(lanes, self.arrays.seeds[lanes], self.arrays.episodes[lanes])

    def begin_anew(self, lanes: Ints) -> None:
        """The same after a restart, when `final` becomes what agents saw last."""
        arrays, final = self.arrays, self._lanes.published.final
        if len(ended := lanes[arrays.ended[lanes] != 0]) and final.size:
            received = self._lanes.received[1] if self.relative.size else final
            final[ended] = self.lines.see(arrays.last_length[ended], received[ended], ended)
        self.begin(lanes)

    def look(self, vectors: NDArray[np.float32]) -> None:
        """What agents see, in place of the true vectors; to be called once in each step, when restarts are done."""
        received = self._lanes.received[0] if self.relative.size else vectors
        vectors[:] = self.lines.look(self.arrays.steps, received)

    def act(self, decide: Callable[[], None], lanes: range | None = None) -> None:
        """All `decide`, into `source` and `applied`; what falls due takes effect, and the rest waits in the lines.

        `lanes`: in which; None: in all. Nothing has changed if this raises InvalidAction.
        """
        at = slice(None) if lanes is None else slice(lanes.start, lanes.stop)
        arrays, position, elements = self.arrays, self._position, self._elements
        applied, sources, steps = arrays.applied[at], arrays.source[at], arrays.steps[at]
        force = applied.copy()
        decide()
        source = sources[:, position]
        decided = np.where(self._active(at) & (source != HELD), source, 0).astype(np.uint8)
        values, falls = self.lines.act(steps, applied[:, elements], decided, at)
        alive = arrays.alive[at, position] != 0
        falls = np.where(alive, falls, 0)
        due = falls.take(self._owner, axis=1) != 0
        applied[:, elements] = np.where(due, values, force[:, elements])
        sources[:, position] = np.where(alive, np.where(falls != 0, falls, HELD), source)
        self._lanes.affect(lanes)

    def _active(self, lanes: slice = slice(None)) -> NDArray[np.bool_]:
        """Was it the turn of each agent's clock in the step that it sees now, `[lanes, agents]`? (T10)"""
        arrays = self.arrays
        seen = (arrays.steps[lanes, None] - self.lines.observation[lanes]) * self.dt_ns
        alive = (arrays.alive[lanes, self._position] != 0) & (arrays.alive[lanes, self._clock] != 0)
        active: NDArray[np.bool_] = ticks_at(seen, self._tick, self._phase) & alive
        return active

    def active(self, ranks: Sequence[int]) -> NDArray[np.bool_]:
        """The same of agents that decide for themselves."""
        return self._active()[:, self._places(ranks)]

    def turns(self, ranks: Sequence[int]) -> Ints:
        """The control step that each of these agents sees, int64 `[lanes, agents]`."""
        return self.lines.seen_in(self.arrays.steps)[:, self._places(ranks)]

    def age(self, ranks: Sequence[int], ages: NDArray[np.float64]) -> None:
        """How old that is of each source, s, written into `ages` `[lanes, agents, sources]`."""
        ages[:] = self.lines.ages(self.arrays.steps)[:, self._places(ranks), None]
        ages[:, [self.own[rank] > 0 for rank in ranks], :1] = 0.0

    def _places(self, ranks: Sequence[int]) -> list[int]:
        return [self.place[rank] for rank in ranks]


class LateLane:
    """What one environment asks about its delays, alone or as a lane of a batch, and how it begins and looks there."""

    def __init__(self, late: LateLanes, number: int, simulation: Simulation) -> None:
        self._simulation = simulation
        self.move_to(late, number)

    def move_to(self, late: LateLanes, number: int) -> None:
        """Be one of these lanes from now on."""
        self._late, self._number, self._lanes = late, number, slice(number, number + 1)
        self.lines, self._place, self._gather = late.lines, late.place, late.plan.gather(late.seeing)
        self.act: Callable[[Callable[[], None]], None] = partial(late.act, lanes=range(number, number + 1))

    def begin(self) -> None:
        """An episode begins: draw its delays, forget the last one's."""
        self._late.begin(np.array([self._number]))

    def look(self) -> None:
        """To be called once in each step, before anybody decides: what there is to see now enters the lines."""
        vectors = self._gather(self._simulation.truth, self._simulation.moment)
        self.lines.look(self._late.arrays.steps[self._lanes], vectors[None], self._lanes)

    def state(self) -> dict[str, Any]:
        """What waits in its lines, as arrays of one lane."""
        return self.lines.state(self._lanes)

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from `state()`. Raises ConfigError if it is of other delays or agents."""
        self.lines.restore(state, self._lanes)

    def vector(self, rank: int) -> NDArray[np.float32]:
        """What an agent sees now, float32 `[n]`, fresh."""
        return self.lines.shown[self._number, self.lines.spans[self._place[rank]]].copy()

    def step(self, rank: int) -> int:
        """The control step that an agent sees now: of one without an action this one; before the first, negative."""
        late = self.lines.observation[self._number, self._place[rank]] if rank in self._place else 0
        return int(self._late.arrays.steps[self._number] - late)

    def ages(self, rank: int) -> NDArray[np.float64]:
        """How old that is, s, one for each of the agent's sources."""
        late = self._late
        steps = min(self.lines.observation[self._number, self._place[rank]], late.arrays.steps[self._number])
        ages = np.full(len(late.plan.views[rank].sources), steps * late.dt_ns / SECOND)
        ages[: late.own[rank] > 0] = 0.0
        return ages
