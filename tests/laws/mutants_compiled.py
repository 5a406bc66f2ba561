"""Mutants of compiled code: faults in its tables and around its loops, in the text of what all lanes share, which
Python runs instead, and in generated text.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import numpy as np
from laws.mutants import mutant_in
from laws.uncompiled import Fault

from heron_env.engine import phases, python_law, source, tables
from heron_env.engine.lanes import Lanes
from heron_env.envs import disturbing, lane_hooks
from heron_env.envs.batch.lanes import CompiledLanes
from heron_env.envs.exchange import Exchange
from heron_env.envs.lane import Lane

PLANTED: dict[str, Any] = {}
"""Faults in Python and in tables."""
STEPPED: dict[str, Fault] = {
    "the_truth_survives": ("loop_kernels", "t[b, c] = initial[c]", "t[b, c] += 0.0"),
    "noise_by_lane": ("loop_kernels", 'table(D, "seeds")[b],', "np.uint64(b),"),
    "physics_of_the_ended_stops": (
        "step",
        "    if physics != 0:\n        failed += call(",
        '    if physics != 0 and table(D, "alive")[first:last].all():\n        failed += call(',
    ),
    "infos_before_the_hook": (
        "step",
        "    failed += natively(D, BEGIN, first, last)\n",
        '    run(D, table(D, "phases")[BEGIN], first, last)\n    failed += natively(D, BEGIN, first, last)\n'
        "    if failed == 0:\n        return natively(D, PYTHON + BEGIN, first, last)\n",
    ),
    "neighbours_hear_before_the_hook": (
        "step",
        "    failed = visit(D, FINISH, first, last, judge(D, first, last, failed))\n"
        "    failed = visit(D, DELIVER, first, last, failed)\n",
        "    failed = visit(D, DELIVER, first, last, judge(D, first, last, failed))\n"
        "    failed = visit(D, FINISH, first, last, failed)\n",
    ),
    "nobody_begins_in_the_next_step": ("loop_kernels", 'number(D, "restarts") == NEXT_STEP', "0"),
    "an_error_is_not_told": ("call_kernel", "    return failed[0]\n", "    return 0\n"),
    "answers_are_ignored": ("call_kernel", " != turn\n", " > turn\n"),
    "after_an_error_more_is_called": ("call_kernel", "    if failed[0] == 0:\n", "    if True:\n"),
    "after_a_refusal_python_is_called": (
        "step",
        "return failed if failed != 0 else natively(D, PYTHON + place, first, last)",
        "return failed + natively(D, PYTHON + place, first, last)",
    ),
}
"""Faults in the text of kernels (laws.uncompiled_lanes)."""
WRITTEN: dict[str, Any] = {}
"""Faults in generated text: each compiles anew."""
mutant = mutant_in(PLANTED)


@mutant(CompiledLanes, "_take")
def actions_of_another_lane(original: Any) -> Any:
    """Lane i gets what was meant for lane i - 1."""

    def take(self: Any, *given: Any) -> None:
        original(self, *given)
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


@mutant(tables.DecisionTables, "__init__")
def commands_to_the_wrong_child(original: Any) -> Any:
    """Each child gets the number of the one before."""

    def init(self: Any, *arguments: Any) -> None:
        original(self, *arguments)
        self.command[:] = np.maximum(self.command.astype(np.int64) - 1, 0)

    return init


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


@mutant(lane_hooks.LaneHooks, "_call")
def hooks_of_all_lanes(original: Any) -> Any:
    """The world's hooks run for lanes, too, that have nothing to do with it."""
    return lambda self, name, lanes, *rest, **options: original(
        self, name, np.arange(len(self._truth)) if len(lanes) else lanes, *rest, **options
    )


@mutant(lane_hooks.LaneHooks, "in_substep")
def hooks_between_substeps(original: Any) -> Any:
    """On the event clock hooks run for lanes, too, whose turn it is not."""
    return lambda self, first, last: first + np.flatnonzero(self._arrays.over[first:last] == 0)


@mutant(Exchange, "natives")
def the_ended_go_on_telling(original: Any) -> Any:
    """Neighbours in a batch hear of agents that have ended."""

    def natives(self: Any) -> Any:
        if len(self._heard) > 1:
            self._arrays["places"][:] = 0  # the system's, who outlives them
        return original(self)

    return natives


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


@mutant(disturbing.Courses, "_forget")
def disturbances_come_again(original: Any) -> Any:
    """A lane of a batch that begins anew goes on with the disturbances of its last episode."""
    return lambda self, first, last: None if self._lanes.count > 1 else original(self, first, last)


@mutant(disturbing.Courses, "_in_step")
def upheld_where_nothing_moves(original: Any) -> Any:
    """What lasts is in force, too, in lanes of a batch that stand still."""
    return lambda self, first, last: self.of.values() if self._lanes.count > 1 else original(self, first, last)


def _not_in_batches(original: Any) -> Any:
    """Where there are several lanes, nothing."""
    return lambda self, first, last: None if self._lanes.count > 1 else original(self, first, last)


@mutant(disturbing.Courses, "_hide")
def sensors_are_whole_in_batches(original: Any) -> Any:
    """A batch shows the truth, whatever fails."""
    return _not_in_batches(original)


@mutant(disturbing.Courses, "_hide_final")
def sensors_are_whole_at_the_end(original: Any) -> Any:
    """What was seen last is the truth."""
    return _not_in_batches(original)


@mutant(disturbing.Courses, "_correct")
def nobody_is_down_in_batches(original: Any) -> Any:
    """Who crashed decides."""
    return _not_in_batches(original)


@mutant(python_law.PythonPhases, "_running")
def rules_between_substeps(original: Any) -> Any:
    """On the event clock rules in Python run for lanes, too, whose turn it is not."""
    return lambda self, first, last: [b for b in range(first, last) if not self._arrays.over[b]]


@mutant(python_law.PythonPhases, "_each")
def methods_of_another_lane(original: Any) -> Any:
    """All lanes are moved by what the agents of the first do."""

    def each(self: Any, lanes: Any, do: Any) -> None:
        original(self, [0 for _ in lanes], do)

    return each


@mutant(Lane, "correct")
def who_is_down_decides(original: Any) -> Any:
    """A crash changes nothing."""

    def correct(self: Any, force: Any) -> None:
        with patch.object(self.simulation, "down", {}):
            original(self, force)

    return correct


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
