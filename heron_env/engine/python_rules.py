"""Rules in plain Python: what the agents of one hierarchy do on one truth; methods on `self` where no rules are."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from inspect import signature
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from heron_env.agents.agent import Agent, imperative, overrides
from heron_env.core.action import ActionSpec, Vector
from heron_env.core.feature import visibility_of
from heron_env.core.masking import Flags, checked, enforced
from heron_env.core.rule import Parameter
from heron_env.engine.binding import Binder, Run, require_rule_names
from heron_env.engine.model import Model
from heron_env.errors import RuleError
from heron_env.observability.plan import ObservationPlan, ObserverView

Floats = NDArray[np.float64]
Mask = Callable[[NDArray[Any]], Flags]
"""(an agent's own observed columns `[view.own]`) -> a flat mask."""
MASK = "action_mask"
CHILDLESS: Floats = np.zeros(0)
"""Rewards of no children."""


class PythonRules:
    """What the agents of one hierarchy do on one truth, float64 `[layout.size]`.

    Attributes:
        bound: the callables of each agent, by rank; `collect` after changing one.
        vectors: actions in force as rules read them, by rank.
    """

    def __init__(self, model: Model, truth: Floats) -> None:
        hierarchy, plan, dt = model.hierarchy, model.plan, model.dt
        self.truth, self._agents, self._children = truth, hierarchy.agents, hierarchy.children
        self._specs, self._dt = model.specs, dt
        self.vectors = [Vector(spec.noop.tolist()) for spec in self._specs]
        binder = Binder(hierarchy, model.layout, model.global_features, truth, self.vectors)
        self.bound = [bind_agent(binder, rank, plan, truth, spec, dt) for rank, spec in enumerate(self._specs)]
        self._own = [view.columns[: view.own] for view in plan.views]
        self.collect()

    def collect(self) -> None:
        """Gather what each phase calls, in its order."""
        numbered = list(enumerate(self.bound))
        self._advances = [bound.advance for _, bound in reversed(numbered) if bound.advance is not None]
        self._rewarding = [
            (rank, self._children[rank], bound.reward)
            for rank, bound in reversed(numbered)
            if bound.reward is not None or self._children[rank]
        ]
        self._terminating = [(rank, bound.terminated) for rank, bound in numbered if bound.terminated is not None]
        self._truncating = [(rank, bound.truncated) for rank, bound in numbered if bound.truncated is not None]
        self._informing = [(rank, bound.info) for rank, bound in numbered if bound.info is not None]

    def offer(self, rank: int, own: NDArray[Any]) -> Flags:
        """The flat mask of an agent that has one, on its own observed columns."""
        mask = self.bound[rank].mask
        assert mask is not None
        return mask(own)

    def act(self, rank: int, values: Floats, time: float) -> tuple[Floats, bool]:
        """An action takes effect: what is left of it, and whether a choice was forbidden."""
        agent, bound, masked = self._agents[rank], self.bound[rank], False
        if bound.mask is not None:
            flags = bound.mask(self.truth[self._own[rank]].astype(np.float32))
            values, masked = enforced(self._specs[rank], values, flags)
        agent.current_action._vector[:] = values
        self.vectors[rank]._values = values.tolist()
        for prepare in bound.before_apply:
            prepare(agent.current_action)
        if bound.apply is not None:
            bound.apply(self._dt, time)
        return values, masked

    def move(self, dt: float, time: float) -> None:
        """The agents' own physics, bottom-up."""
        for advance in self._advances:
            advance(dt, time)

    def rewards(self, alive: Sequence[Any], time: float) -> list[float]:
        """By rank, computed bottom-up; 0 of those who are not alive."""
        rewards = [0.0] * len(self.bound)
        for rank, children, reward in self._rewarding:
            if not alive[rank]:
                continue
            if reward is None:
                total = 0.0
                for child in children:
                    total += rewards[child]
                rewards[rank] = total
            else:
                below = np.array([rewards[child] for child in children]) if children else CHILDLESS
                value = reward(self._dt, time, below)
                finite = type(value) is float and value - value == 0.0
                rewards[rank] = value if finite else self._number(value, rank, time)
        return rewards

    def ends(self, alive: Sequence[Any], time: float) -> tuple[list[bool], list[bool]]:
        """Who ends by its own rule, terminated and truncated, by rank."""
        terminated, truncated = [False] * len(self.bound), [False] * len(self.bound)
        for ended, rules in ((terminated, self._terminating), (truncated, self._truncating)):
            for rank, rule in rules:
                ended[rank] = bool(alive[rank] and rule(self._dt, time))
        return terminated, truncated

    def infos(self, time: float) -> list[dict[str, float]]:
        """Each agent's own info numbers, by rank."""
        infos: list[dict[str, float]] = [{} for _ in self.bound]
        for rank, info in self._informing:
            infos[rank] = info(self._dt, time)
        return infos

    def _number(self, value: Any, rank: int, time: float) -> float:
        try:
            number = float(value)
        except (TypeError, ValueError, OverflowError):
            number = np.nan
        if not math.isfinite(number):
            agent = self._agents[rank]
            raise RuleError(f"{agent!r}.compute_local_reward returned {value!r} at t={time} s; a number is needed")
        return number


@dataclass(slots=True)
class BoundAgent:
    """The callables of one agent."""

    apply: Callable[[float, float], Any] | None = None
    advance: Callable[[float, float], Any] | None = None
    reward: Callable[[float, float, Floats], float] | None = None
    terminated: Callable[[float, float], Any] | None = None
    truncated: Callable[[float, float], Any] | None = None
    info: Callable[[float, float], dict[str, float]] | None = None
    mask: Mask | None = None
    before_apply: list[Any] = field(default_factory=list)


def bind_agent(
    binder: Binder, rank: int, plan: ObservationPlan, truth: Floats, spec: ActionSpec, dt: float
) -> BoundAgent:
    """Rules where the class has them, methods on `self` elsewhere. `spec`: its action; `dt`: of a control step, s."""
    agent, view = binder.hierarchy.agents[rank], plan.views[rank]
    kind: type = type(agent)
    require_rule_names(kind)

    def pick(name: str, wrap: Callable[[Any], Any]) -> Any:
        run: Run | None = binder.bind(rank, name)
        if run is not None:
            return run
        method = imperative(agent, name)
        return None if method is None else wrap(method)

    def with_local_state(method: Any) -> Any:
        wants_rewards = "child_rewards" in signature(method).parameters

        def call(dt: float, time: float, child_rewards: Floats | None = None) -> Any:
            local = view.local(truth[view.columns])
            return method(local, child_rewards=child_rewards) if wants_rewards else method(local)

        return call

    _require_visible_info(binder, rank, view)
    info = pick("get_local_info", with_local_state)
    return BoundAgent(
        apply=pick("apply_action", lambda method: lambda dt, time: method()),
        advance=pick("advance", lambda method: lambda dt, time: method(dt)),
        reward=pick("compute_local_reward", with_local_state),
        terminated=pick("is_terminated", with_local_state),
        truncated=pick("is_truncated", with_local_state),
        mask=bind_mask(binder, rank, view, spec, dt),
        info=None if info is None else lambda dt, time: _numbers(info(dt, time), agent),
        before_apply=[agent.set_action] if overrides(agent, "set_action") else [],
    )


def _require_visible_info(binder: Binder, rank: int, view: ObserverView) -> None:
    """Infos reach the learner: their rule may read what the agent sees exactly, and its own bookkeeping."""
    layout, tree = binder.layout, binder.hierarchy
    rows, own = layout.rows, layout.rows[rank].slice
    read_of = {"own": (rank,), "parent": (tree.parent[rank],), "global": (-1,), "children": tree.children[rank]}
    bookkeeping = own.start + np.flatnonzero(~layout.observed[own])
    exact = {*view.columns[view.factors == 0.0].tolist(), *bookkeeping.tolist()}
    for parameter in binder.parameters(rank, "get_local_info"):
        feature = parameter.feature
        if feature is None:
            continue
        for row in (rows[other] for other in read_of.get(parameter.role, ())):
            spans = [range(c, c + q.size) for c, kind, q in row.columns() if issubclass(kind, feature)]
            columns = {column for span in spans for column in span}
            if not columns <= exact:
                agent, visible = tree.agents[rank], columns <= set(view.columns.tolist())
                how = "which {} sees with noise" if visible else "parts of which are hidden from {}"
                raise RuleError(
                    f"{type(agent).__name__}.get_local_info reads {feature.__name__} of {row.owner_id!r}, "
                    f"{how.format(repr(agent.agent_id))}; infos reach the learner, so leave it out or show it"
                )


def _numbers(info: Any, agent: Agent) -> dict[str, float]:
    """An info as numbers by name: a dict, or a NamedTuple from a rule."""
    named = info._asdict() if hasattr(info, "_asdict") else info
    try:
        return {str(name): float(value) for name, value in named.items()}
    except (AttributeError, TypeError, ValueError) as error:
        raise RuleError(
            f"{agent!r}.get_local_info must return numbers by name (a dict or NamedTuple), got {info!r}"
        ) from error


def bind_mask(binder: Binder, rank: int, view: ObserverView, spec: ActionSpec, dt: float) -> Mask | None:
    """The rule or method `action_mask` of an agent in plain Python; None without. `dt`: of a control step, s.

    Raises RuleError where it could tell the agent what it does not observe, or where there is nothing to choose.
    """
    agent = binder.hierarchy.agents[rank]
    where, title = f"{type(agent).__name__}.{MASK}", f"{type(agent).__name__}.{MASK} of {agent.agent_id!r}"
    method, declared = imperative(agent, MASK), hasattr(type(agent), MASK)
    if not declared:
        return None
    if not spec.dim_d:
        raise RuleError(f"{title}: its action is {spec.describe()}, without choices to forbid; remove the rule")
    if method is not None:
        if "state" in method.__func__.__code__.co_names:
            raise RuleError(_reads_truth(where))
        return _of_method(agent, method, view, spec, title)
    for parameter in binder.parameters(rank, MASK):
        _require_shown(parameter, where, view)
    columns, shown = view.columns[: view.own], np.zeros(binder.layout.size)
    twin = Binder(binder.hierarchy, binder.layout, binder.global_features, shown, binder.actions)
    run = twin.bind(rank, MASK)
    assert run is not None

    def mask(own: NDArray[Any]) -> Flags:
        shown[columns] = own
        return checked(spec, run(dt, 0.0, None), title)

    return mask


def _of_method(agent: Agent, method: Any, view: ObserverView, spec: ActionSpec, title: str) -> Mask:
    vector = np.zeros(len(view.columns))

    def mask(own: NDArray[Any]) -> Flags:
        vector[: view.own] = own
        with _without_state(agent):
            return checked(spec, method(view.local(vector)), title)

    return mask


@contextmanager
def _without_state(agent: Agent) -> Iterator[None]:
    """Let nobody read `agent.state`: a method decides on the local state that it is given."""
    saved = agent.state
    agent.__dict__["state"] = _Hidden(f"{type(agent).__name__}.{MASK}")
    try:
        yield
    finally:
        agent.state = saved


class _Hidden:
    """In place of a state."""

    def __init__(self, where: str) -> None:
        self.__dict__["_where"] = where

    def __getattr__(self, name: str) -> NoReturn:
        raise RuleError(_reads_truth(self._where))


def _reads_truth(where: str) -> str:
    return f"{where} reads self.state, the truth, which an agent may know late; read the local_state that it is given"


def _require_shown(parameter: Parameter, where: str, view: ObserverView) -> None:
    """Raise RuleError for a parameter that is not the agent's own and observed by itself."""
    if parameter.role == "dt":
        return
    remedy = "a mask is offered to the agent, so it may read dt and the agent's own observed features only"
    if parameter.role != "own" or parameter.feature is None:
        raise RuleError(f"{where} reads {parameter.name!r} ({parameter.role}); {remedy}")
    shown = set(view.columns[: view.own].tolist())
    for start, feature, declared in view.layout.rows[view.rank].columns():
        read = issubclass(feature, parameter.feature) and declared.name in parameter.feature.quantities
        if read and start not in shown:
            flags = [flag for flag in ("observed", "to_owner") if not getattr(declared, flag)]
            why = f"{flags[0]}=False" if flags else f"visibility={visibility_of(feature, declared)}"
            raise RuleError(
                f"{where} reads {parameter.feature.__name__}, of which {declared!r} is hidden ({why}); "
                f"{remedy}: move what it needs into a feature that is observed as a whole"
            )
