"""Masks of an environment's agents: offered on what an agent is shown, enforced on what is true when an effect falls.

Both ask the same rule about the same numbers, the agent's own observed columns as its vector has them (float32): where
nothing is late, what was offered is what is enforced.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from heron_env.agents.agent import Agent, imperative
from heron_env.core.action import ActionSpec
from heron_env.core.masking import Flags, checked, noop_alone, shaped
from heron_env.core.rule import Parameter
from heron_env.engine.binding import Binder
from heron_env.errors import RuleError
from heron_env.observability.plan import ObserverView

if TYPE_CHECKING:
    from heron_env.envs.base import HeronEnv
    from heron_env.envs.simulation import Simulation

Floats = NDArray[np.float64]
Mask = Callable[[NDArray[Any]], Flags]
"""(an agent's own observed columns `[view.own]`) -> a flat mask."""
RULE = "action_mask"


def bind_mask(binder: Binder, rank: int, view: ObserverView, spec: ActionSpec, dt: float) -> Mask | None:
    """The rule or method `action_mask` of an agent in plain Python; None without. `dt`: of a control step, s.

    Raises RuleError where it could tell the agent what it does not observe, or where there is nothing to choose.
    """
    agent = binder.hierarchy.agents[rank]
    where, whose = f"{type(agent).__name__}.{RULE}", f"{type(agent).__name__}.{RULE} of {agent.agent_id!r}"
    method, declared = imperative(agent, RULE), hasattr(type(agent), RULE)
    if not declared:
        return None
    if not spec.dim_d:
        raise RuleError(f"{whose}: its action is {spec.describe()}, without choices to forbid; remove the rule")
    if method is not None:
        if "state" in method.__func__.__code__.co_names:
            raise RuleError(_reads_truth(where))
        return _of_method(agent, method, view, spec, whose)
    for parameter in binder.parameters(rank, RULE):
        _require_shown(parameter, where)
    columns, shown = view.columns[: view.own], np.zeros(binder.layout.size)
    twin = Binder(binder.hierarchy, binder.layout, binder.global_features, shown, binder.actions)
    run = twin.bind(rank, RULE)
    assert run is not None

    def mask(own: NDArray[Any]) -> Flags:
        shown[columns] = own
        return checked(spec, run(dt, 0.0, None), whose)

    return mask


def _of_method(agent: Agent, method: Any, view: ObserverView, spec: ActionSpec, whose: str) -> Mask:
    vector = np.zeros(len(view.columns))

    def mask(own: NDArray[Any]) -> Flags:
        vector[: view.own] = own
        with _without_state(agent):
            return checked(spec, method(view.local(vector)), whose)

    return mask


@contextmanager
def _without_state(agent: Agent) -> Iterator[None]:
    """Let nobody read `agent.state`: a method decides on the local state that it is given."""
    kept = agent.state
    agent.__dict__["state"] = _Hidden(f"{type(agent).__name__}.{RULE}")
    try:
        yield
    finally:
        agent.state = kept


class _Hidden:
    """In place of a state."""

    def __init__(self, where: str) -> None:
        self.__dict__["_where"] = where

    def __getattr__(self, name: str) -> NoReturn:
        raise RuleError(_reads_truth(self._where))


def _reads_truth(where: str) -> str:
    return f"{where} reads self.state, the truth, which an agent may know late; read the local_state that it is given"


def _require_shown(parameter: Parameter, where: str) -> None:
    """Raise RuleError for a parameter that is not the agent's own and observed."""
    if parameter.role == "dt":
        return
    remedy = "a mask is offered to the agent, so it may read dt and the agent's own observed features only"
    if parameter.role != "own" or parameter.feature is None:
        raise RuleError(f"{where} reads {parameter.name!r} ({parameter.role}); {remedy}")
    hidden = [q for q in parameter.feature.quantities.values() if not q.observed]
    if hidden:
        raise RuleError(
            f"{where} reads {parameter.feature.__name__}, of which {hidden[0]!r} is hidden (observed=False); {remedy}: "
            "move what it needs into a feature that is observed as a whole"
        )


class Masks:
    """Whom a mask may bind, and what each agent is offered.

    ranks: of the agents with a mask of their own.
    """

    def __init__(self, simulation: Simulation) -> None:
        self._simulation = simulation
        self.ranks = frozenset(rank for rank, bound in enumerate(simulation.plain.bound) if bound.mask is not None)
        self._own = [view.own for view in simulation.plan.views]

    def offered(self, rank: int, vector: NDArray[np.float32]) -> Flags:
        """The flat mask of an agent of `ranks` on a vector `[n]` that it is shown."""
        return self._simulation.mechanics.offer(rank, vector[: self._own[rank]])

    def offer(self, rank: int) -> Callable[[NDArray[np.float32]], Any] | None:
        """vector -> mask as the agent's space takes it; None where everything is always allowed."""
        if rank not in self.ranks:
            return None
        spec = self._simulation.specs[rank]
        return lambda vector: shaped(spec, self.offered(rank, vector))


class Offers:
    """The masks in infos, for the deciding agents of an environment.

    An agent whose turn it is not is offered its no-op alone. Where nothing can be forbidden no mask is told, but all of
    a group have one if any has. always: is everyone active in every step?
    """

    def __init__(self, env: HeronEnv, always: bool) -> None:
        self._simulation = env.simulation
        self.masks = env.simulation.masks
        self._all = [(a, r) for a, r in self._choosing(env, env.group_map)]
        bound = {g: members for g, members in env.group_map.items() if not always or self._ruled(env, members)}
        self._usual = list(self._choosing(env, bound))
        self.groups = frozenset(group for group, members in bound.items() if [*self._choosing(env, {group: members})])

    def _ruled(self, env: HeronEnv, members: Sequence[str]) -> bool:
        return any(env.hierarchy.index[agent] in self.masks.ranks for agent in members)

    @staticmethod
    def _choosing(env: HeronEnv, groups: dict[str, list[str]]) -> Iterator[tuple[str, int]]:
        """Agents of these groups that choose, and their ranks."""
        for members in groups.values():
            for agent in members:
                if env.simulation.specs[rank := env.hierarchy.index[agent]].dim_d:
                    yield agent, rank

    def add_to(self, infos: dict[str, dict[str, Any]], seen: dict[str, NDArray[np.float32]]) -> None:
        """Add them to the infos of the agents in `seen`, by what these see; disturbances may make anyone inactive."""
        for agent, rank in self._usual if self._simulation.course is None else self._all:
            if agent in seen:
                spec = self._simulation.specs[rank]
                flags = noop_alone(spec)
                if infos[agent]["is_active"]:
                    flags = self.masks.offered(rank, seen[agent]) if rank in self.masks.ranks else flags * 0 + 1
                infos[agent]["action_mask"] = shaped(spec, flags)
