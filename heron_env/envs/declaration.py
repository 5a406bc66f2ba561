"""From what a class and its arguments declare to the model that everything runs by."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from heron_env.agents.agent import Agent
from heron_env.core.action import ActionSpec
from heron_env.core.feature import FeatureProvider
from heron_env.core.hierarchy import Hierarchy
from heron_env.core.layout import Layout
from heron_env.engine.checking import require_no_stores
from heron_env.engine.model import Model
from heron_env.envs.seeing import kinds_of
from heron_env.envs.settings import TerminationConfig
from heron_env.errors import HierarchyError
from heron_env.observability.plan import ObservationPlan
from heron_env.scheduling.timing import to_ns

if TYPE_CHECKING:
    from heron_env.observability.config import ObservabilityConfig


def model_of(
    system: Agent, rules: Mapping[str, Callable[..., Any]], owner: str, *, dt: float, substeps: int,
    global_features: tuple[type[FeatureProvider], ...],
    termination: TerminationConfig, observe_age: bool, observe_visible: bool, pad: bool,
    observability: ObservabilityConfig | None, see: Callable[[Hierarchy], tuple[list[int], list[int]] | None],
) -> Model:  # fmt: skip
    """The model of the agents below `system`; everybody ticks in every step, until a schedule says otherwise.

    `rules`: the hooks of the class `owner` that are world rules; `see`: ranks of who sees whom by the hook `sees`.

    Raises what its parts raise, and HierarchyError where nobody acts.
    """
    dt_ns = to_ns(dt, "dt")
    require_no_stores(rules, owner)
    hierarchy = Hierarchy.of(system)
    for agent in hierarchy.agents:
        agent.reset()
    specs = tuple(agent.current_action.spec for agent in hierarchy.agents)
    layout = Layout.of(hierarchy, global_features)
    if (seeing := see(hierarchy)) is not None:
        layout.see(*seeing)
    kinds = kinds_of(hierarchy.ids, specs) if pad else None
    commanded = _commanded(hierarchy, specs)
    possible = tuple(rank for rank, spec in enumerate(specs) if spec.size and not commanded[rank])
    if not possible:
        raise HierarchyError(
            "nobody acts: give an agent an `action`, or a coordinator a `protocol` over agents with one"
        )
    return Model(
        hierarchy=hierarchy, layout=layout,
        plan=ObservationPlan(hierarchy, layout, observe_age, observability, kinds, observe_visible),
        global_features=global_features, specs=specs, possible=possible, commanded=commanded,
        clocks=tuple(_clock_of(rank, hierarchy, commanded) for rank in range(len(hierarchy))),
        dt=dt, dt_ns=dt_ns, substeps=substeps, last_step=termination.last_step(dt_ns),
        any_ends=termination.mode == "any", ticks=((dt_ns, 0),) * len(hierarchy), observers=possible,
        hooks=rules, owner=owner,
    )  # fmt: skip


def _commanded(hierarchy: Hierarchy, specs: Sequence[ActionSpec]) -> tuple[bool, ...]:
    """By rank: does the parent's protocol say what this agent does?"""
    agents = hierarchy.agents
    return tuple(
        parent >= 0 and agents[parent].protocol is not None and spec.size > 0
        for parent, spec in zip(hierarchy.parent, specs, strict=True)
    )


def _clock_of(rank: int, hierarchy: Hierarchy, commanded: Sequence[bool]) -> int:
    """The topmost of the chain of commanders above an agent, or itself."""
    while commanded[rank]:
        rank = hierarchy.parent[rank]
    return rank
