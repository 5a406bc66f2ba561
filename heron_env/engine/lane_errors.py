"""What was refused in a lane: the code that loops leave behind, and the error it stands for.

A code is (position * 16 + rule) * 256 + number: whose rule, which, and 1 + the number of the write.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heron_env.core.action import Vector
from heron_env.core.masking import nothing_allowed, wrong_form
from heron_env.core.rule import RULE_NAMES, Parameter, rule_spec
from heron_env.engine.binding import Binder, unstorable
from heron_env.engine.model import Model
from heron_env.errors import HeronError, InvalidAction, RuleError
from heron_env.scheduling.timing import to_seconds

RULE_CODES = {name: code for code, name in enumerate(RULE_NAMES)}
WORLD_CODES = {"begin": 8, "advance": 9, "finish": 10, "training_rewards": 11, "sees": 12, "link": 13}
NOTHING = 2
"""Number of a mask that leaves nothing of discrete element 0; those of other elements follow. Before it: no mask."""
ILLEGAL = 15
"""In place of a rule: the action itself."""
HOOKS = {code: name for name, code in WORLD_CODES.items()}


class LaneErrors:
    """Makes the errors of one hierarchy's lanes."""

    def __init__(self, model: Model, position: tuple[int, ...], rank_of: tuple[int, ...]) -> None:
        self._hierarchy, self._layout, self._dt_ns = model.hierarchy, model.layout, model.dt_ns
        self._model, self._position, self._rank_of = model, position, rank_of

    def of(self, code: int, arrays: Any, lane: int) -> HeronError:
        """The error of a code that was found in `lane`."""
        position, rule, number = code >> 12, code >> 8 & 15, code & 255
        where = f"lane {lane}: " if len(arrays.error) > 1 else ""
        rank = self._rank_of[position]
        if rule == ILLEGAL:
            return self._illegal(rank, arrays.actions[lane], lane if len(arrays.error) > 1 else None)
        time = to_seconds(int(arrays.steps[lane]) * self._dt_ns)
        if HOOKS.get(rule) == "training_rewards":
            owner, agents = self._model.owner, len(self._model.possible)
            return RuleError(
                f"{where}{owner}.training_rewards returned other than {agents} finite numbers at t={time} s; return "
                "one for each of possible_agents"
            )
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
        self, failure: Exception, arrays: Any, slices: tuple[slice, ...], piece: tuple[float, float],
        names: Collection[str], lanes: range | None = None,
    ) -> RuleError:  # fmt: skip
        """The error of a rule that ended in `failure`, which does not say where: found by running rules in Python.

        Named are the rules that end in an error of the same class with the same arguments.

        Args:
            piece: (begun, length) s of what is carried out of a substep.
            names: of the rules, of agents and of the world, that may have been called.
            lanes: those that it may be of.
        """
        for lane in range(len(arrays.over)) if lanes is None else lanes:
            if arrays.over[lane] != 0:
                continue
            errors = self._again(type(failure), names, arrays, lane, slices, piece)
            if errors:
                return RuleError((f"lane {lane}: " if len(arrays.error) > 1 else "") + "; or ".join(errors))
        hooks = self._model.hooks.items()
        world = " or ".join(sorted(rule.__qualname__ for name, rule in hooks if name in names))
        return RuleError(
            f"{world or 'a rule'} ended in {failure!r}; no rule of an agent does when called again in plain Python; "
            "check divisions, roots and indices, or build the environment with compile=False, which names the line"
        )

    def _again(
        self, kind: type[Exception], names: Collection[str], arrays: Any, lane: int, slices: tuple[slice, ...],
        piece: tuple[float, float],
    ) -> list[str]:  # fmt: skip
        """The first error of each rule that ends in one of this kind, called with what it is called with in a lane."""
        vectors = [Vector(arrays.applied[lane, span].tolist()) for span in slices]
        truth = np.empty(self._layout.size)
        binder = Binder(self._hierarchy, self._layout, self._model.global_features, truth, vectors)
        errors: dict[tuple[type, str], str] = {}
        for name, (rank, agent) in product([n for n in RULE_NAMES if n in names], enumerate(self._hierarchy.agents)):
            run = binder.bind(rank, name)
            if run is None or (type(agent), name) in errors:
                continue
            rewards = arrays.rewards[lane, [self._position[c] for c in self._hierarchy.children[rank]]]
            times = self._times(name, int(arrays.steps[lane]), piece, binder.parameters(rank, name))
            for values, (dt, time) in product(self._read(rank, name, arrays, lane), times):
                truth[:] = values
                try:
                    run(dt, time, rewards)
                except RuleError as error:
                    if type(error.__cause__) is kind:
                        errors.setdefault((type(agent), name), str(error))
        return list(errors.values())

    def _read(self, rank: int, name: str, arrays: Any, lane: int) -> list[NDArray[np.float64]]:
        """What the rule may have read: the truth as it was when it failed; a mask, also what its agent was shown."""
        shown = name == "action_mask" and arrays.visible.shape[1] > 0 and arrays.acting[lane, self._position[rank]] != 0
        return [arrays.truth[lane, : self._layout.size], *([arrays.visible[lane]] if shown else [])]

    def _times(
        self, name: str, step: int, piece: tuple[float, float], parameters: Sequence[Parameter]
    ) -> list[tuple[float, float]]:
        """The (dt, time), s, with which a rule of these parameters may have been called in a step."""
        boundary, substeps = to_seconds(step * self._dt_ns), self._model.substeps
        if name != "advance":
            return [(self._model.dt, boundary)]
        (begun, dt), physics = piece, self._model.dt / substeps
        timed = any(parameter.role == "time" for parameter in parameters)
        return [(dt, boundary + number * physics + begun) for number in range(substeps if timed else 1)]

    def _illegal(self, rank: int, actions: NDArray[np.float64], lane: int | None) -> HeronError:
        specs = [agent.current_action.spec for agent in self._hierarchy.agents]
        first = sum(spec.size for spec in specs[:rank])
        try:
            specs[rank].parse(actions[first : first + specs[rank].size], self._hierarchy.ids[rank], lane)
        except InvalidAction as error:
            return error
        raise AssertionError("the loops and ActionSpec.parse disagree about an action")

    def _spoilt_mask(self, rank: int, number: int) -> str:
        agent, spec = self._hierarchy.agents[rank], self._model.specs[rank]
        title = f"{type(agent).__name__}.action_mask of {agent.agent_id!r}"
        return (
            wrong_form(spec, title, "no mask") if number < NOTHING else nothing_allowed(spec, title, number - NOTHING)
        )

    def _spoilt(self, hook: str, truth: NDArray[np.float64], time: float, where: str) -> RuleError:
        bad = self._layout.bad_columns(truth[: self._layout.size])
        return RuleError(
            f"{where}after {hook}() at t={time} s these quantities are nan: {', '.join(bad[:5])}; check the physics"
        )
