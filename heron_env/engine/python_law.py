"""The law in plain Python: the rules' phases as generated code has them (loops.py), over the same arrays.

What a rule raises is the user's own error, with a note in which lane it was; nothing generated lies in between.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from heron_env.engine.arrays import Arrays
from heron_env.engine.blueprint import Blueprint
from heron_env.engine.lanes import Lanes
from heron_env.engine.python_rules import PythonRules
from heron_env.engine.tables import HELD, AgentTables
from heron_env.scheduling.timing import to_seconds

Floats = NDArray[np.float64]


class PythonPhases:
    """The phases of B lanes, by the names that a generated module has; a phase that nothing needs is None.

    Attributes:
        piece: (begun, length) s of what is carried out of a substep.
    """

    def __init__(
        self, blueprint: Blueprint, arrays: Arrays, tables: AgentTables, rules: Sequence[PythonRules],
        infos: list[list[dict[str, float]]],
    ) -> None:  # fmt: skip
        """`rules`, `infos`: of each lane; these are written, by rank."""
        self._arrays, self._rules, self._dt_ns = arrays, rules, blueprint.dt_ns
        self._dt_physics, self._place = blueprint.dt / blueprint.substeps, tables.position
        self.piece = 0.0, self._dt_physics
        self._infos = infos
        acting = [rank for rank, spec in enumerate(blueprint.specs) if spec.size]
        place = tables.position.tolist()
        self._acting = [(rank, place[rank], tables.slices[rank].start, tables.slices[rank].stop) for rank in acting]
        first = rules[0].bound
        by_hand = {rank for rank in acting if blueprint.hierarchy.agents[rank].is_imperative}
        self._simple = [rank not in by_hand and bound.mask is None for rank, bound in enumerate(first)]
        self._rank_of, self._slices = tables.rank_of, tables.slices
        own = [view.columns[: view.own] for view in blueprint.plan.views]
        masked = [rank for rank in acting if first[rank].mask is not None]
        self._masking = [(rank, place[rank], own[rank], tables.choices_of(rank)) for rank in masked]
        self.substep = self._substep if any(bound.advance for bound in first) else None
        self.offer = self._offer if masked else None
        self.inform = self._inform if any(bound.info for bound in first) else None

    def affect(self, at: int, first: int, last: int) -> int:
        """What actions do to the truth, top-down, of those whose `source` says that something takes effect."""
        self._arrays.masked[first:last] = 0
        return self._each(self._running(first, last), self._affect_in)

    def _affect_in(self, b: int, rules: PythonRules, time: float) -> None:
        arrays = self._arrays
        codes, alive, values = arrays.source[b].tolist(), arrays.alive[b].tolist(), arrays.applied[b].tolist()
        for rank, place, start, stop in self._acting:
            if alive[place] and codes[place] not in (0, HELD):
                if self._simple[rank]:
                    rules.apply_rule(rank, values[start:stop], time)
                else:
                    self._enforce(b, rules, rank, time)

    def _enforce(self, b: int, rules: PythonRules, rank: int, time: float) -> None:
        """Let what is in force of one agent act, as far as its mask allows."""
        arrays, span = self._arrays, self._slices[rank]
        effect, arrays.masked[b, self._place[rank]] = rules.act(rank, arrays.applied[b, span].copy(), time)
        arrays.applied[b, span] = effect

    def apply(self, at: int, lane: int, position: int) -> int:
        """One agent's action, in one lane."""
        rank, arrays = self._rank_of[position], self._arrays
        arrays.applied[lane, self._slices[rank]] = arrays.actions[lane, self._slices[rank]]
        return self._each((lane,), lambda b, rules, time: self._enforce(b, rules, rank, time))

    def _substep(self, at: int, first: int, last: int, number: int) -> int:
        """Physics: the agents' `advance`."""
        start, (begun, dt) = number * self._dt_physics, self.piece
        return self._each(self._running(first, last), lambda b, rules, time: rules.move(dt, time + start + begun))

    def close(self, at: int, first: int, last: int) -> int:
        """Rewards, who ends by a rule, infos."""
        arrays, lanes = self._arrays, self._running(first, last)
        rows = slice(first, last) if len(lanes) == last - first else lanes
        arrays.steps[rows] += 1
        for flags in (arrays.ended, arrays.chosen, arrays.terminated, arrays.truncated):
            flags[rows] = 0
        return self._each(lanes, self._close_in)

    def _close_in(self, b: int, rules: PythonRules, time: float) -> None:
        arrays, place = self._arrays, self._place
        alive = arrays.alive[b].take(place).tolist()
        arrays.rewards[b, place] = rules.rewards(alive, time)
        terminated, truncated = rules.ends(alive, time)
        if True in terminated or True in truncated:
            arrays.terminated[b, place], arrays.truncated[b, place] = terminated, truncated
            arrays.ended[b] = 1
        if self.inform is not None:
            self._infos[b] = rules.infos(time)

    def _inform(self, at: int, first: int, last: int) -> int:
        """Infos from the truth as it is now."""

        def inform(b: int, rules: PythonRules, time: float) -> None:
            self._infos[b] = rules.infos(time)

        return self._each(range(first, last), inform)

    def _offer(self, at: int, first: int, last: int) -> int:
        """Masks on what agents are shown, of those in `acting`."""
        return self._each(range(first, last), self._offer_in)

    def _offer_in(self, b: int, rules: PythonRules, time: float) -> None:
        arrays = self._arrays
        for rank, place, own, choices in self._masking:
            if arrays.acting[b, place]:
                arrays.allowed[b, choices] = rules.offer(rank, arrays.seen[b, own])

    def _running(self, first: int, last: int) -> list[int]:
        """Lanes in which an episode runs."""
        return [b for b, over in enumerate(self._arrays.over[first:last].tolist(), first) if not over]

    def _each(self, lanes: Sequence[int], do: Callable[[int, PythonRules, float], None]) -> int:
        """Do it in each lane, at its last boundary; no failures to be counted: they are raised."""
        steps, many = self._arrays.steps, len(self._rules) > 1
        for b in lanes:
            try:
                do(b, self._rules[b], to_seconds(int(steps[b]) * self._dt_ns))
            except Exception as error:
                if many:
                    error.add_note(f"in lane {b}")
                raise
        return 0


class PythonLanes(Lanes):
    """Lanes whose rules run in plain Python, one lane after another; what depends on no rule is compiled all the same.

    Args:
        rules: (these lanes, number of one) -> what its agents do there.

    Attributes:
        rules: what they do, by lane.
        phases: those of the rules.
    """

    failures, ends = (), True
    infos_in_python: list[list[dict[str, float]]]

    def __init__(
        self, blueprint: Blueprint, lanes: int, rules: Callable[[PythonLanes, int], PythonRules], *, final: bool = False
    ) -> None:
        self._lay_out(blueprint, lanes, None, 1, final)
        self.infos_in_python = [[{} for _ in blueprint.specs] for _ in range(lanes)]
        self.rules = [rules(self, b) for b in range(lanes)]

    def attach(self, blueprint: Blueprint) -> None:
        """The phases of this blueprint; its hooks are what they are in Python."""
        blueprint = replace(blueprint, hooks={})
        self.phases = PythonPhases(blueprint, self.arrays, self._tables, self.rules, self.infos_in_python)
        self._attach(blueprint, np.zeros((1, 2), dtype=np.int64), self.phases)

    def part_of_substep(self, number: int, begun: float, length: float, lanes: range | None = None) -> None:
        """As in Lanes."""
        whole, self.phases.piece = self.phases.piece, (begun, length)
        try:
            super().part_of_substep(number, begun, length, lanes)
        finally:
            self.phases.piece = whole
