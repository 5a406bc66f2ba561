"""Hooks in Python as what follows phases: called of all lanes at once, in the world of all or some, or one by one.

Hooks of a class with `batched = True` see the BatchWorld of a batch, the others one lane after the other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heron_env.core.layout import Layout
from heron_env.core.quantity import clip, within
from heron_env.core.rule import rule_spec
from heron_env.core.sight import numbered
from heron_env.core.world import CohortColumns, Columns, World
from heron_env.engine.arrays import ASKED, Arrays, ranks_of
from heron_env.engine.binding import FAILURES, ended_in
from heron_env.engine.lanes import Lanes
from heron_env.engine.model import Model, Native
from heron_env.envs.hooks import PROXY, Hooks, require_numbers
from heron_env.errors import RuleError
from heron_env.scheduling.links import MOST_FACTOR
from heron_env.scheduling.timing import SECOND
from heron_env.seeding import keys, uniform_rows

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Keys = NDArray[np.uint64]
At = Callable[[int, int, float], tuple[Hooks, World]]
"""(lane, step, time in s) -> what has the hooks of that lane, and its world at that step and time."""


class BatchWorld(World):
    """World with a leading axis: columns `[B, n]`, globals `[B, 1]`; what hooks write is clipped afterwards.

    Attributes:
        lanes: which lanes these are, int64 `[B]`; in `begin` only those that start, else those that run.
        seed, episode: of each, uint64 `[B]`.
        step: control steps of each, int64 `[B]`.
        time: nominal, s, float64 `[B, 1]`.
        touched: may a hook have written anything that is not yet within its bounds? It has if it asked for columns,
            and has not if it only used `get` and `put`. Columns are for the call in which they were asked for.
    """

    lanes: Any
    seed: Any
    episode: Any
    step: Any
    time: Any

    def __init__(self, layout: Layout, truth: Floats, lanes: Ints, seeds: Keys, episodes: Keys) -> None:
        self._array, self._layout, self.touched = truth, layout, False
        self.lanes, self.seed, self.episode = lanes, seeds, episodes
        self.step, self.time = np.zeros(len(truth), dtype=np.int64), np.zeros((len(truth), 1))
        self._classes = [cohort.cls for cohort in layout.cohorts[:-1]]
        self._by_class = {}

    @cached_property
    def _cohorts(self) -> list[CohortColumns]:  # type: ignore[override]
        """Made where somebody looks: many hooks use `get` and `put` alone."""
        return [CohortColumns(cohort, self._array) for cohort in self._layout.cohorts[:-1]]

    @cached_property
    def _globals(self) -> CohortColumns:  # type: ignore[override]
        return CohortColumns(self._layout.cohorts[-1], self._array)

    def draw(self, name: str, shape: int | tuple[int, ...] = 1) -> Floats:
        """Uniforms in [0, 1), `[B, *shape]`: each lane's are those that its own World draws."""
        return uniform_rows(keys("world", self.seed, self.episode, self.step.astype(np.uint64), name), shape)

    @property
    def rows(self) -> Floats:
        """As in World, `[B, columns]`."""
        self.touched = True
        return self._array

    def __getitem__(self, cls: type) -> CohortColumns:
        """As in World, `[B, n]`."""
        self.touched = True
        return super().__getitem__(cls)

    def __getattr__(self, name: str) -> Columns:
        """As in World, `[B, 1]`."""
        columns = super().__getattr__(name)
        self.touched = True
        return columns

    def get(self, columns: Ints) -> Floats:
        """As in World, `[B, k]`."""
        return self._array.take(columns, axis=1)

    def put(self, columns: Ints, values: Floats) -> None:
        """Write `values` `[B, k]` into `columns` `[k]` of every lane's truth, within their bounds."""
        if np.shape(values) != (shape := (len(self.lanes), len(columns))):
            raise RuleError(f"world.put(columns, values): values have the shape {np.shape(values)}, expected {shape}")
        low, high, integer = (of[columns] for of in (self._layout.low, self._layout.high, self._layout.integer))
        bounded, (array, rows) = clip(np.asarray(values, dtype=np.float64), low, high, integer=integer), self._target()
        array[rows[:, None], columns] = bounded
        self.touched |= bool(np.isnan(bounded.sum()))

    def _target(self) -> tuple[Floats, Ints]:
        """Whose rows `put` writes, and which."""
        return self._array, np.arange(len(self._array))


class SomeLanes(BatchWorld):
    """The world of some `lanes` of a whole one: a compacted copy, made where somebody looks, for `write_back`.

    What is only put goes straight to the whole.
    """

    def __init__(self, batch: BatchWorld, lanes: Ints) -> None:
        self._batch, self._layout, self.touched = batch, batch._layout, False
        self._classes, self._by_class = batch._classes, {}
        self.lanes, self.seed, self.episode = lanes, batch.seed[lanes], batch.episode[lanes]

    @cached_property
    def _array(self) -> Floats:  # type: ignore[override]
        rows: Floats = self._batch._array[self.lanes]
        return rows

    def _target(self) -> tuple[Floats, Ints]:
        return super()._target() if "_array" in self.__dict__ else (self._batch._array, self.lanes)

    def write_back(self) -> None:
        """Into the whole, what may have been changed in the copy."""
        if "_array" in self.__dict__:
            self._batch._array[self.lanes] = self._array


def ask_link(hooks: Hooks, world: World, ids: Sequence[str], sender: int, receiver: int) -> tuple[float, float]:
    """What the hook `link` says, clipped. Raises RuleError for anything but two numbers that are not nan."""
    answer: Any = ask_reader(hooks, "link", world, sender, receiver)
    pair = answer if isinstance(answer, tuple | list) and len(answer) == 2 else ()
    if not pair or not all(isinstance(x, Real) and not isinstance(x, bool) and x == x for x in pair):
        names = ["the proxy" if rank == PROXY else repr(ids[rank]) for rank in (sender, receiver)]
        raise RuleError(
            f"{type(hooks).__name__}.link(world, {sender}, {receiver}) ({names[0]} to {names[1]}) returned "
            f"{answer!r:.100}; return (factor on the delay, probability of loss), two numbers, none of them nan"
        )
    return within(float(pair[0]), 0.0, MOST_FACTOR), within(float(pair[1]), 0.0, 1.0)


def ask_reader(hooks: Hooks, name: str, world: World, *more: int) -> Any:
    """What a hook says that reads alone. Raises RuleError where it writes, or a rule fails, with its line."""
    hook = getattr(hooks, name)
    try:
        return hook(world, *more)
    except FAILURES as error:
        where = f"{type(hooks).__name__}.{name}"
        if "read-only" in str(error):
            shown = f"{where}(world, {', '.join(map(str, more))})"
            raise RuleError(f"{shown}: it writes into the world, which it may only read") from error
        if rule_spec(hook) is None:
            raise
        raise ended_in(where, hook, error) from error


def as_of_boundary(world: World, arrays: Arrays, lane: int, dt_ns: int) -> World:
    """This world, as of the last boundary of a lane."""
    step = int(arrays.steps[lane])
    world.seed, world.episode = int(arrays.seeds[lane]), int(arrays.episodes[lane])
    world.lanes, world.step, world.time = lane, step, float(step * dt_ns) / SECOND
    return world


class LaneHooks:
    """The hooks of an environment that run in Python: those of `names`.

    Args:
        at: what gives the hooks of one lane, and its world, at a step and time.
        together: for all lanes at once, or one lane after the other?
    """

    def __init__(
        self, hooks: Hooks, model: Model, lanes: Lanes, at: At, names: Iterable[str], together: bool = False
    ) -> None:
        self._hooks, self._lanes, self._arrays, self._at = hooks, lanes, lanes.arrays, at
        self.names, self.together, self._begins = frozenset(names), together, True
        self._layout, self._dt_ns, self._asked = model.layout, model.dt_ns, model.plan.asked
        self._substeps, self._dt = model.substeps, model.dt / model.substeps
        self._truth = self._arrays.truth[:, : self._layout.size]
        self._worlds = dict[int, World]()
        numbers = numbered(sight, self._asked) if (sight := model.layout.sight) else []
        self._numbers = dict(zip(self._asked, numbers, strict=True))
        self._every = np.arange(len(self._truth))
        self.world = BatchWorld(self._layout, self._truth, self._every, self._arrays.seeds, self._arrays.episodes)

    def natives(self) -> tuple[Native, ...]:
        """These, as what follows the phases of these lanes."""
        follow = {"begin": self._begin, "advance": self._advance, "finish": self._finish}
        native, places = self._lanes.called.native, {"advance": "physics"}
        own = [native(places.get(name, name), follow[name]) for name in follow if name in self.names]
        own += [native("sight", self._look), native("sight_of", self._look_at)] if "sees" in self.names else []
        own += [native("link", self.ask_link)] if "link" in self.names else []
        return tuple(own)

    def _look(self, first: int, last: int) -> None:
        for lane in range(first, last):
            self._ask(lane, self._asked)

    def _look_at(self, lane: int, rank: int) -> None:
        self._ask(lane, [pair for pair in self._asked if pair[1] == rank])

    def _ask(self, lane: int, pairs: Sequence[tuple[int, int]]) -> None:
        """The hook `sees` of some pairs of ranks, into the columns behind the truth. Raises RuleError for no bool."""
        world = self._reading(lane)
        for (observer, target), (o, t, column) in ((pair, self._numbers[pair]) for pair in pairs):
            answer = ask_reader(self._hooks, "sees", world, o, t)
            if not isinstance(answer, bool | np.bool_):
                names = [self._layout.rows[rank].owner_id for rank in (observer, target)]
                raise RuleError(
                    f"{type(self._hooks).__name__}.sees(world, {o}, {t}) ({names[0]!r}, {names[1]!r}) returned "
                    f"{answer!r:.60}; return True or False"
                )
            self._arrays.truth[lane, column] = answer

    def ask_link(self, lane: int, ends: int) -> None:
        """The hook `link` of a message between two ends (engine.arrays), into `ways`. Raises RuleError as it does."""
        ids, (sender, receiver) = [row.owner_id for row in self._layout.rows], ranks_of(ends)
        try:
            pair = ask_link(self._hooks, self._reading(lane), ids, sender, receiver)
        except Exception as error:
            if len(self._truth) > 1:
                error.add_note(f"in link() of lane {lane}")
            raise
        self._arrays.ways[lane, :ASKED] = pair

    def _reading(self, lane: int) -> World:
        """The world of a lane, to be read only, for hooks that are asked in the midst of others."""
        if lane not in self._worlds:
            self._worlds[lane] = World(self._layout, self._truth[lane], reads=True)
        return as_of_boundary(self._worlds[lane], self._arrays, lane, self._dt_ns)

    def times(self) -> Floats:
        """Of the last boundary of each lane, s, `[B]`."""
        return self._arrays.steps * self._dt_ns / SECOND

    def at_boundary(self, first: int, last: int) -> Ints:
        """Lanes whose turn it is, and whose step has ended, also with the episode."""
        lanes = self._due(first, last, just_ended=True)
        return lanes if self._substeps == 1 else lanes[self._arrays.substep[lanes] + 1 == self._substeps]

    def in_substep(self, first: int, last: int) -> Ints:
        """Lanes in which an episode runs, and whose turn it is."""
        return self._due(first, last, just_ended=False)

    def _due(self, first: int, last: int, *, just_ended: bool) -> Ints:
        """Lanes whose turn it is and in which an episode runs, or has `just_ended`."""
        arrays, some = self._arrays, slice(first, last)
        lanes = self._every if last - first == len(self._every) else np.arange(first, last)
        over, moving = arrays.over[some], arrays.moving[some]
        if 1 in over.tobytes() or 0 in moving.tobytes():
            rests = over > arrays.ended[some] if just_ended else over
            lanes = lanes[(rests == 0) & (moving != 0)]
        return lanes

    @contextmanager
    def begun_otherwise(self) -> Iterator[None]:
        """Meanwhile episodes begin without the hook `begin`."""
        self._begins = False
        try:
            yield
        finally:
            self._begins = True

    def _begin(self, first: int, last: int) -> None:
        if self._begins:
            self._call("begin", first + np.flatnonzero(self._arrays.chosen[first:last]))

    def _advance(self, first: int, last: int) -> None:
        self._call("advance", self.in_substep(first, last), *self._lanes.piece)

    def _finish(self, first: int, last: int) -> None:
        self._call("finish", self.at_boundary(first, last))

    def _call(self, name: str, lanes: Ints, begun: float = 0.0, *length: float) -> None:
        """Call the hook of `lanes`, of a substep with what is `begun` of it and its `length`, s."""
        if not self.together:
            for lane in lanes.tolist():
                self._call_one(name, lane, begun, *length)
        elif not length or self._substeps == 1:
            self._call_all(name, lanes, self.times() + begun if begun else self.times(), *length)
        else:
            substep = self._arrays.substep
            time, at_last = self.times() + substep * self._dt + begun, substep[lanes] + 1 == self._substeps
            for check in (False, True):  # on the event clock each lane is in a substep of its own
                self._call_all(name, lanes[at_last == check], time, *length, check=check)

    def _call_one(self, name: str, lane: int, begun: float, *length: float) -> None:
        """Call it for one lane; then bring its truth into its bounds. Raises RuleError for a quantity that is nan."""
        arrays, row = self._arrays, self._truth[lane]
        step, number = int(arrays.steps[lane]), int(arrays.substep[lane]) if length else 0
        time = float(step * self._dt_ns) / SECOND + number * self._dt + begun
        hooks, world = self._at(lane, step, time)
        try:
            hooks.run_hook(name, world, *length)
        except Exception as error:
            if len(self._truth) > 1:
                error.add_note(f"in {name}() of lane {lane}")
            raise
        self._layout.clip_columns(row)
        if not length or number + 1 == self._substeps:
            total = np.add.reduce(row)
            if total != total:
                self._require_numbers(name, lane, time)

    def over(self, lanes: Ints, time: Floats, call: Callable[[BatchWorld], None]) -> None:
        """Let `call` see and change the world of `lanes`: that of the batch, or of them alone, written back."""
        arrays = self._arrays
        if len(lanes) == len(self._truth):
            self.world.step, self.world.time = arrays.steps.copy(), time[:, None]
            call(self.world)
            return
        world = SomeLanes(self.world, lanes)
        world.step, world.time = arrays.steps[lanes], time[lanes, None]
        call(world)
        world.write_back()

    def _call_all(self, name: str, lanes: Ints, time: Floats, *length: float, check: bool = True) -> None:
        """Call it once for lanes at the times `[B]` of all; then bring the truth into its bounds.

        Raises RuleError where `check` finds a quantity that is nan.
        """
        if not len(lanes):
            return
        hook, touched = getattr(type(self._hooks), name), True

        def call(world: BatchWorld) -> None:
            nonlocal touched
            world.touched = False
            hook(self._hooks, world, *length)
            touched = world.touched

        try:
            self.over(lanes, time, call)
        except Exception as error:
            error.add_note(f"in {name}() of all lanes: columns are [lanes, agents], globals [lanes, 1]")
            raise
        if not touched:
            return
        everyone = len(lanes) == len(self._truth)
        rows = self._truth if everyone else self._truth[lanes]
        self._layout.clip_columns(rows)
        if not everyone:
            self._truth[lanes] = rows
        if check and np.isnan(rows.sum()) and (bad := np.isnan(rows).any(axis=1)).any():
            lane = int(lanes[np.argmax(bad)])
            self._require_numbers(name, lane, time[lane])

    def _require_numbers(self, name: str, lane: int, time: float) -> None:
        """Raise RuleError, naming the lane if there are several, where the truth of a lane is nan after this hook."""
        where = f"lane {lane}: after" if len(self._truth) > 1 else "after"
        require_numbers(self._layout, self._truth[lane], f"{where} {name}()", time)
