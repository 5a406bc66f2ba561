"""What was refused in a lane: the code that loops leave behind, and the error it stands for.

A code is (position * 16 + rule) * 256 + number: whose rule, which, and 1 + the number of the write.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from heron_env.core.action import Vector
from heron_env.core.masking import nothing_allowed, wrong_form
from heron_env.core.rule import RULE_NAMES, rule_spec
from heron_env.engine.binding import Binder, unstorable
from heron_env.engine.blueprint import Blueprint
from heron_env.errors import HeronError, InvalidAction, RuleError
from heron_env.scheduling.timing import to_seconds

RULE_CODES = {name: code for code, name in enumerate(RULE_NAMES)}
WORLD_CODES = {"begin": 8, "advance": 9, "finish": 10}
NOTHING = 2
"""Number of a mask that leaves nothing of discrete element 0; those of other elements follow. Before it: no mask."""
ILLEGAL = 15
"""In place of a rule: the action itself."""
HOOKS = {code: name for name, code in WORLD_CODES.items()}


class LaneErrors:
    """Makes the errors of one hierarchy's lanes."""

    def __init__(self, blueprint: Blueprint, position: tuple[int, ...], rank_of: tuple[int, ...]) -> None:
        self._hierarchy, self._layout, self._dt_ns = blueprint.hierarchy, blueprint.layout, blueprint.dt_ns
        self._blueprint, self._position, self._rank_of = blueprint, position, rank_of

    def of(self, code: int, arrays: Any, lane: int) -> HeronError:
        """The error of a code that was found in `lane`."""
        position, rule, number = code >> 12, code >> 8 & 15, code & 255
        where = f"lane {lane}: " if len(arrays.error) > 1 else ""
        rank = self._rank_of[position]
        if rule == ILLEGAL:
            return self._illegal(rank, arrays.actions[lane], lane if len(arrays.error) > 1 else None)
        time = to_seconds(int(arrays.steps[lane]) * self._dt_ns)
        if rule in HOOKS:
            return self._spoilt(HOOKS[rule], arrays.truth[lane], time, where)
        agent, name = self._hierarchy.agents[rank], RULE_NAMES[rule]
        if name == "compute_local_reward":
            return RuleError(f"{where}{agent!r}.{name} returned nan or inf at t={time} s; a number is needed")
        if name == "action_mask":
            return RuleError(where + self._spoilt_mask(rank, number))
        spec = rule_spec(getattr(type(agent), name))
        assert spec is not None
        q = spec.writes[number - 1]
        what = f"other than {q.size} finite numbers" if q.shape else "nan or inf"
        return unstorable(f"{where}{type(agent).__name__}.{name} of {agent.agent_id!r}", what, q)

    def of_failure(
        self, failure: Exception, arrays: Any, slices: tuple[slice, ...], lanes: range | None = None
    ) -> RuleError:
        """The error of a rule that ended in `failure`, which does not say where: found by running rules in Python.

        `lanes`: those that it may be of.
        """
        for lane in range(len(arrays.over)) if lanes is None else lanes:
            if arrays.over[lane] != 0:
                continue
            vectors = [Vector(arrays.applied[lane, span].tolist()) for span in slices]
            truth = np.empty(self._layout.size)
            binder = Binder(self._hierarchy, self._layout, self._blueprint.global_features, truth, vectors)
            time = to_seconds(int(arrays.steps[lane]) * self._dt_ns)
            for name in RULE_NAMES:
                for rank in range(len(self._hierarchy)):
                    truth[:] = arrays.truth[lane, : self._layout.size]  # as it was when the rule failed
                    rewards = arrays.rewards[lane, [self._position[c] for c in self._hierarchy.children[rank]]]
                    try:
                        run = binder.bind(rank, name)
                        if run is not None:
                            run(self._blueprint.dt, time, rewards)
                    except RuleError as error:
                        return RuleError(f"lane {lane}: {error}" if len(arrays.error) > 1 else str(error))
        world = " or ".join(sorted(rule.__qualname__ for rule in self._blueprint.hooks.values()))
        return RuleError(f"{world or 'a rule'} ended in {failure!r}; check divisions, roots and indices")

    def _illegal(self, rank: int, actions: NDArray[np.float64], lane: int | None) -> HeronError:
        specs = [agent.current_action.spec for agent in self._hierarchy.agents]
        first = sum(spec.size for spec in specs[:rank])
        try:
            specs[rank].parse(actions[first : first + specs[rank].size], self._hierarchy.ids[rank], lane)
        except InvalidAction as error:
            return error
        raise AssertionError("the loops and ActionSpec.parse disagree about an action")

    def _spoilt_mask(self, rank: int, number: int) -> str:
        agent, spec = self._hierarchy.agents[rank], self._blueprint.specs[rank]
        whose = f"{type(agent).__name__}.action_mask of {agent.agent_id!r}"
        return (
            wrong_form(spec, whose, "no mask") if number < NOTHING else nothing_allowed(spec, whose, number - NOTHING)
        )

    def _spoilt(self, hook: str, truth: NDArray[np.float64], time: float, where: str) -> RuleError:
        bad = self._layout.bad_columns(truth[: self._layout.size])
        return RuleError(
            f"{where}after {hook}() at t={time} s these quantities are nan: {', '.join(bad[:5])}; check the physics"
        )
