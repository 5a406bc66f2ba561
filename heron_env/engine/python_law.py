"""The law in plain Python: the rules' phases as generated code has them (loops.py), over the same arrays.

What a rule raises is the user's own error, with a note in which lane it was; nothing generated lies in between.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from heron_env.engine.arrays import Arrays
from heron_env.engine.called import Called
from heron_env.engine.lanes import Lanes
from heron_env.engine.model import Model, Native
from heron_env.engine.python_rules import PythonRules
from heron_env.engine.tables import HELD, AgentTables
from heron_env.scheduling.timing import SECOND

Floats = NDArray[np.float64]


class PythonPhases:
    """The phases of B lanes, as functions of a range of them."""

    def __init__(
        self, model: Model, arrays: Arrays, tables: AgentTables, rules: Sequence[PythonRules],
        infos: list[list[dict[str, float]]], piece: Callable[[], tuple[float, float]],
    ) -> None:  # fmt: skip
        """`rules`, `infos`: of each lane; these are written, by rank. `piece`: as of Lanes."""
        self._arrays, self._rules, self._dt_ns = arrays, rules, model.dt_ns
        self._dt, self._dt_physics = model.dt, model.dt / model.substeps
        self._place = tables.position
        self._infos, self._piece = infos, piece
        acting = [rank for rank, spec in enumerate(model.specs) if spec.size]
        place = tables.position.tolist()
        self._acting = [(rank, place[rank], tables.slices[rank].start, tables.slices[rank].stop) for rank in acting]
        first = rules[0].bound
        by_hand = {rank for rank in acting if model.hierarchy.agents[rank].is_imperative}
        self._simple = [rank not in by_hand and bound.mask is None for rank, bound in enumerate(first)]
        self._rank_of, self._slices = tables.rank_of, tables.slices
        own = [view.columns[: view.own] for view in model.plan.views]
        masked = [rank for rank in acting if first[rank].mask is not None]
        self._masking = [(rank, place[rank], own[rank], tables.choices_of(rank)) for rank in masked]
        self._moves, self._masks = any(bound.advance for bound in first), bool(masked)
        self._informs = any(bound.info for bound in first)

    def natives(self, called: Called) -> tuple[Native, ...]:
        """What follows phases that rules don't have here; infos of a beginning are made when all else has begun."""
        rules = [called.native("affect", self.affect), called.native("close", self.close)]
        rules += [called.native("apply", self.apply)]
        rules += [called.native("physics", self.substep)] if self._moves else []
        rules += [called.native("offer", self.offer)] if self._masks else []
        return tuple(rules)

    def affect(self, first: int, last: int) -> None:
        """What actions do to the truth, top-down, of those whose `source` says that something takes effect."""
        self._arrays.masked[first:last] = 0
        self._each(self._running(first, last), self._affect_in)

    def _affect_in(self, b: int, rules: PythonRules, time: float) -> None:
        arrays = self._arrays
        codes, alive, values = arrays.source[b].tolist(), arrays.alive[b].tolist(), arrays.applied[b].tolist()
        vectors, bound = rules.vectors, rules.bound
        for rank, place, start, stop in self._acting:
            if not alive[place] or codes[place] in (0, HELD):
                continue
            if self._simple[rank]:
                vectors[rank]._values = values[start:stop]
                if (apply := bound[rank].apply) is not None:
                    apply(self._dt, time)
            else:
                self._enforce(b, rules, rank, time)

    def _enforce(self, b: int, rules: PythonRules, rank: int, time: float) -> None:
        """Let what is in force of one agent act, as far as its mask allows."""
        arrays, span = self._arrays, self._slices[rank]
        effect, arrays.masked[b, self._place[rank]] = rules.act(rank, arrays.applied[b, span].copy(), time)
        arrays.applied[b, span] = effect

    def apply(self, lane: int, position: int) -> None:
        """One agent's action, in one lane."""
        rank, arrays = self._rank_of[position], self._arrays
        arrays.applied[lane, self._slices[rank]] = arrays.actions[lane, self._slices[rank]]
        self._each((lane,), lambda b, rules, time: self._enforce(b, rules, rank, time))

    def substep(self, first: int, last: int) -> None:
        """Physics: the agents' `advance`."""
        (begun, dt), number, physics = self._piece(), self._arrays.substep, self._dt_physics

        def move(b: int, rules: PythonRules, time: float) -> None:
            rules.move(dt, time + int(number[b]) * physics + begun)

        self._each(self._running(first, last), move)

    def close(self, first: int, last: int) -> None:
        """Rewards, who ends by a rule, infos."""
        arrays, lanes = self._arrays, self._running(first, last)
        rows = slice(first, last) if len(lanes) == last - first else lanes
        arrays.steps[rows] += 1
        for flags in (arrays.ended, arrays.chosen, arrays.terminated, arrays.truncated):
            flags[rows] = 0
        self._each(lanes, self._close_in)

    def _close_in(self, b: int, rules: PythonRules, time: float) -> None:
        arrays, place = self._arrays, self._place
        alive = arrays.alive[b].take(place).tolist()
        arrays.rewards[b, place] = rules.rewards(alive, time)
        terminated, truncated = rules.ends(alive, time)
        if True in terminated or True in truncated:
            arrays.terminated[b, place], arrays.truncated[b, place] = terminated, truncated
            arrays.ended[b] = 1
        if self._informs:
            self._infos[b] = rules.infos(time)

    def inform(self, first: int, last: int) -> None:
        """Infos from the truth as it is now."""
        if self._informs:
            self._each(range(first, last), self._inform_in)

    def _inform_in(self, b: int, rules: PythonRules, time: float) -> None:
        self._infos[b] = rules.infos(time)

    def offer(self, first: int, last: int) -> None:
        """Masks on what agents are shown, of those in `acting`."""
        self._each(range(first, last), self._offer_in)

    def _offer_in(self, b: int, rules: PythonRules, time: float) -> None:
        arrays = self._arrays
        for rank, place, own, choices in self._masking:
            if arrays.acting[b, place]:
                arrays.allowed[b, choices] = rules.offer(rank, arrays.visible[b, own])

    def _running(self, first: int, last: int) -> list[int]:
        """Lanes in which an episode runs, and whose turn it is."""
        arrays = self._arrays
        flags = zip(arrays.over[first:last].tolist(), arrays.moving[first:last].tolist(), strict=True)
        return [b for b, (over, moving) in enumerate(flags, first) if moving and not over]

    def _each(self, lanes: Iterable[int], do: Callable[[int, PythonRules, float], None]) -> None:
        """Do it in each lane, at its last boundary."""
        steps, many = self._arrays.steps, len(self._rules) > 1
        for b in lanes:
            try:
                do(b, self._rules[b], float(int(steps[b]) * self._dt_ns) / SECOND)
            except Exception as error:
                if many:
                    error.add_note(f"in lane {b}")
                raise


class PythonLanes(Lanes):
    """Lanes whose rules run in plain Python, one lane after another; what depends on no rule is compiled all the same.

    Args:
        rules: (these lanes, number of one) -> what its agents do there; None where others move them.

    Attributes:
        rules: what they do, by lane.
        phases: those of the rules, in Python.
    """

    failures, ends = (), True
    infos_in_python: list[list[dict[str, float]]]

    def __init__(
        self, model: Model, lanes: int, rules: Callable[[PythonLanes, int], PythonRules] | None, *,
        final: bool = False,
    ) -> None:  # fmt: skip
        self._lay_out(model, lanes, None, 1, final)
        self.infos_in_python = [[{} for _ in model.specs] for _ in range(lanes)]
        self.rules = [] if rules is None else [rules(self, b) for b in range(lanes)]

    def attach(self, model: Model) -> None:
        """The phases of this model; its hooks are what they are in Python."""
        natives, self.in_tiles = model.native, False
        if self.rules:
            self.phases = PythonPhases(
                model, self.arrays, self._tables, self.rules, self.infos_in_python, lambda: self.piece
            )
            natives = (*self.phases.natives(self.called), *natives)
        self._attach(replace(model, hooks={}, native=natives), np.zeros((1, 2), dtype=np.int64), None)

    def inform(self, lanes: range | None = None) -> None:
        """As in Lanes."""
        span = self._all if lanes is None else lanes
        self.phases.inform(span.start, span.stop)
