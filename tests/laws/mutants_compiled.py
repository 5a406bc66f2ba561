"""Mutants of compiled code: faults in its tables and around its loops, which compile nothing, and in generated text."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import numpy as np
from laws.mutants import mutant_in

from heron_env.engine import phases, source, tables
from heron_env.engine.lanes import Lanes
from heron_env.envs.batch.lanes import CompiledLanes
from heron_env.envs.batch.views import LaneHooks
from heron_env.envs.exchange import Exchange
from heron_env.envs.lane import Lane

PLANTED: dict[str, Any] = {}
"""Faults in Python and in tables."""
WRITTEN: dict[str, Any] = {}
"""Faults in generated text: each compiles anew."""
mutant = mutant_in(PLANTED)


@mutant(CompiledLanes, "_take")
def actions_of_another_lane(original: Any) -> Any:
    """Lane i gets what was meant for lane i - 1."""

    def take(self: Any, given: Any) -> None:
        original(self, given)
        self.arrays.actions[:] = np.roll(self.arrays.actions, 1, axis=0)

    return take


@mutant(Lanes, "_run")
def overlapping_ranges(original: Any) -> Any:
    """Each thread goes one lane too far."""

    def run(self: Any, loop: Any, lanes: Any, *more: Any) -> None:
        span = range(self.count) if lanes is None else lanes
        middle = (span.start + span.stop) // 2
        if self.threads == 1:
            original(self, loop, lanes, *more)
            return
        for part in (range(span.start, min(middle + 1, span.stop)), range(middle, span.stop)):
            original(self, loop, part, *more)

    return run


def _kept_in_restart(*names: str, ever: bool = False) -> Any:
    """`ever`: also where nothing has happened since the last restart: a plain lane's environment restarts it again."""

    def fault(original: Any) -> Any:
        def restart(self: Any, *which: Any, **options: Any) -> None:
            kept = {name: getattr(self.arrays, name).copy() for name in names}
            again = ever | (self.arrays.steps > 0)
            original(self, *which, **options)
            for name, values in kept.items():
                rows = again & (self.arrays.steps == 0)
                getattr(self.arrays, name)[rows] = values[rows]

        return restart

    return fault


@mutant(Lanes, "restart")
def the_truth_survives(original: Any) -> Any:
    """An episode begins where the last one stopped."""
    return _kept_in_restart("truth")(original)


@mutant(Lanes, "observe")
def noise_by_lane(original: Any) -> Any:
    """The number of the lane is in the key of the noise, not its seed."""

    def observe(self: Any, lanes: Any = None) -> Any:
        seeds = self.arrays.seeds.copy()
        self.arrays.seeds[:] = np.arange(len(seeds), dtype=np.uint64)
        published = original(self, lanes)
        self.arrays.seeds[:] = seeds
        return published

    return observe


@mutant(tables.DecisionTables, "__init__")
def commands_to_the_wrong_child(original: Any) -> Any:
    """Each child gets the number of the one before."""

    def init(self: Any, *arguments: Any) -> None:
        original(self, *arguments)
        self.command[:] = np.maximum(self.command.astype(np.int64) - 1, 0)

    return init


@mutant(Lanes, "substep")
def physics_of_the_ended_stops(original: Any) -> Any:
    """A lane in which somebody has ended stands still."""

    def substep(self: Any, number: int, lanes: Any = None) -> None:
        over = self.arrays.over.copy()
        self.arrays.over[(self.arrays.alive == 0).any(axis=1)] = 1
        original(self, number, lanes)
        self.arrays.over[:] = over

    return substep


@mutant(CompiledLanes, "start")
def the_episode_stays(original: Any) -> Any:
    """After a partial reset the same episode comes again."""

    def start(self: Any, lanes: Any, seeds: Any, options: Any) -> None:
        if not lanes.all() and seeds is None:
            self.arrays.episodes[lanes] -= np.uint64(1)
        original(self, lanes, seeds, options)

    return start


@mutant(CompiledLanes, "start")
def everyone_begins_anew(original: Any) -> Any:
    """A partial reset resets all lanes."""
    return lambda self, lanes, seeds, options: original(self, np.ones_like(lanes), seeds, options)


@mutant(LaneHooks, "call")
def hooks_of_all_lanes(original: Any) -> Any:
    """The world's hooks run for lanes, too, that have nothing to do with it."""
    return lambda self, name, lanes, *rest, **options: original(
        self, name, np.arange(len(self._truth)), *rest, **options
    )


@mutant(Exchange, "natives")
def the_ended_go_on_telling(original: Any) -> Any:
    """Neighbours in a batch hear of agents that have ended."""

    def natives(self: Any) -> Any:
        self._arrays["places"][:] = 0  # the system's, who outlives them
        return original(self)

    return natives


@mutant(Lanes, "inform")
def infos_before_the_hook(original: Any) -> Any:
    """Infos of a reset are those before the world's hook."""
    return lambda self, lanes=None: None


@mutant(Lane, "apply")
def an_effect_is_lost(original: Any) -> Any:
    """Every third action in the event clock falls nowhere."""
    count = 0

    def apply(self: Any, rank: int, values: Any) -> None:
        nonlocal count
        count += 1
        if count % 3:
            original(self, rank, values)

    return apply


@mutant(Lane, "restore")
def the_ended_come_back_compiled(original: Any) -> Any:
    """A snapshot forgets who has ended."""
    return lambda self, actions, alive, *rest: original(self, actions, [True] * len(alive), *rest)


def written(owner: Any, name: str, old: str, new: str) -> Any:
    """Replace text in what a generator returns, by a fault registered under the name of the function."""

    def register(says: Any) -> Any:
        original = getattr(owner, name)

        def faulty(*arguments: Any, **options: Any) -> str:
            text: str = original(*arguments, **options)
            assert old in text, f"{says.__name__} is out of date"
            return text.replace(old, new)

        @contextmanager
        def planted() -> Iterator[None]:
            with patch.object(owner, name, faulty), patch.dict("heron_env.engine.phases._loaded", clear=True):
                yield

        WRITTEN[says.__name__] = planted
        return planted

    return register


@written(phases, "loops_text", "source[b, i] != 0 and source[b, i] != 5", "0 < source[b, i] < 3")
def text_drops_commands() -> None:
    """Commands and no-ops have no effect."""


@written(source.Source, "text", "tab[i, 0]", "tab[i, 0] + 0 * tab[i, 0] if b == 0 else tab[0, 0]")
def text_of_lane_zero() -> None:
    """Only lane 0 finds its agents' columns."""


@written(phases, "loops_text", "if alive[b, i] != 0 and source[b, i] != 0 and", "if source[b, i] != 0 and")
def text_lets_the_ended_act() -> None:
    """Agents that have ended go on acting."""
