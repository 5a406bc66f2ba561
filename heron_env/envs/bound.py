"""What one agent does when its turn comes: rules where its class has them, methods on `self` elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from inspect import signature
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heron_env.agents.agent import Agent, imperative, overrides
from heron_env.core.action import ActionSpec
from heron_env.engine.binding import Binder, Run, require_known_rules
from heron_env.envs.masking import Mask, bind_mask
from heron_env.errors import RuleError
from heron_env.observability.plan import ObservationPlan, ObserverView

Floats = NDArray[np.float64]


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
    require_known_rules(kind)

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
    """Infos reach the learner: their rule may read the agent's own features, and of others what it sees exactly."""
    rows, tree = binder.layout.rows, binder.hierarchy
    read_of = {"parent": (tree.parent[rank],), "global": (-1,), "children": tree.children[rank]}
    exact = set(view.columns[view.factors == 0.0].tolist())
    for parameter in binder.parameters(rank, "get_local_info"):
        feature = parameter.feature
        if feature is None:
            continue
        for row in (rows[other] for other in read_of.get(parameter.role, ())):
            spans = [range(c, c + q.size) for c, kind, q in row.columns() if issubclass(kind, feature)]
            columns = {column for span in spans for column in span}
            if not columns <= exact:
                agent, seen = tree.agents[rank], columns <= set(view.columns.tolist())
                how = "which {} sees with noise" if seen else "parts of which are hidden from {}"
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
