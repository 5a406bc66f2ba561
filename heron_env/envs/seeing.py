"""What agents see: spaces, groups of agents that see and act alike, and states in object form."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from heron_env.agents.proxy import ProxyAgent
from heron_env.core.action import ActionSpec
from heron_env.core.hierarchy import Hierarchy, name_stem
from heron_env.core.layout import GLOBAL, Layout
from heron_env.core.policy import Show
from heron_env.core.quantity import Quantity
from heron_env.errors import ConfigError
from heron_env.observability.plan import UNBOUNDED, ObservationPlan

if TYPE_CHECKING:
    from heron_env.observability.state_models import SimulationState

Values = dict[str, dict[str, Any]]
"""{Feature: {field: value}}."""
StateOf = Callable[[str, Values], Any]
"""(id of an agent, or "global"; its values) -> its state in object form."""


def observation_box(plan: ObservationPlan, rank: int) -> spaces.Box:
    """The space of an agent's observations."""
    low, high = plan.bounds(rank)
    return spaces.Box(low, high, dtype=np.float32)


def state_box(layout: Layout) -> spaces.Box:
    """The space of the whole truth, as a central critic sees it."""
    low, high = np.maximum(layout.low, -UNBOUNDED), np.minimum(layout.high, UNBOUNDED)
    return spaces.Box(low.astype(np.float32), high.astype(np.float32), dtype=np.float32)


def show_truth(proxy: ProxyAgent, truth: NDArray[np.float64], hierarchy: Hierarchy) -> None:
    """From now on the proxy knows the truth, in the agents' own states."""
    proxy.keep(truth, {agent.agent_id: agent.state for agent in hierarchy.agents})


def group_agents(ids: Sequence[str], specs: Sequence[ActionSpec], plan: ObservationPlan) -> dict[str, list[str]]:
    """All agents by name stem and equal spaces: `battery`; unequal ones become `zone` and `zone:1`."""
    numbers: dict[str, dict[Any, int]] = {}
    groups: dict[str, list[str]] = {}
    for rank, (agent_id, kind) in enumerate(zip(ids, kinds_of(ids, specs), strict=True)):
        stem, bounds = kind[0], tuple(bound.tobytes() for bound in plan.bounds(rank))
        alike = numbers.setdefault(stem, {})
        number = alike.setdefault((bounds, kind), len(alike))
        groups.setdefault(stem if number == 0 else f"{stem}:{number}", []).append(agent_id)
    return groups


def kinds_of(ids: Sequence[str], specs: Sequence[ActionSpec]) -> list[tuple[Any, ...]]:
    """Equal for agents of one name stem with equal action spaces; the stem comes first."""
    acts = ([np.asarray(part).tobytes() for part in (spec.low, spec.high, spec.ncats)] for spec in specs)
    return [(name_stem(agent_id), *spec) for agent_id, spec in zip(ids, acts, strict=True)]


class Cell:
    """One quantity in a vector: whose it is (after the last agent's rank: the world's), and where its elements lie."""

    __slots__ = ("declared", "feature", "rank", "start")

    def __init__(self, rank: int, feature: str, declared: Quantity, start: int) -> None:
        self.rank, self.feature, self.declared, self.start = rank, feature, declared, start

    def value(self, vector: list[float]) -> Any:
        """float, int (also of a category), bool, or a list of them."""
        q = self.declared
        part: list[Any] = vector[self.start : self.start + q.size]
        if q.kind == "bool":
            part = [value > 0.5 for value in part]
        elif q.kind != "float":
            part = [round(value) for value in part]
        return np.reshape(np.array(part, dtype=object), q.shape).tolist() if q.shape else part[0]


def cells(layout: Layout, columns: NDArray[np.int64]) -> list[Cell]:
    """The quantities that some columns are, in their order."""
    starting = {
        column: (rank, feature.feature_name, q)
        for rank in dict.fromkeys(layout.owner_of[columns].tolist())
        for column, feature, q in layout.rows[rank].columns()
    }
    quantities = ((place, starting[column]) for place, column in enumerate(columns.tolist()) if column in starting)
    return [Cell(*quantity, place) for place, quantity in quantities]


class ObjectForm:
    """The truth, and what an agent is shown of it, as SimulationState objects; an environment says what a state is.

    Attributes:
        forms: by rank, worked out once: the agents in an observation, and the quantities of its vector.
    """

    def __init__(self, hierarchy: Hierarchy, layout: Layout, plan: ObservationPlan) -> None:
        self._hierarchy, self._layout, self._plan = hierarchy, layout, plan
        self.forms: dict[int, tuple[Sequence[int], list[Cell]]] = {}

    def visible_targets(self, rank: int) -> list[int]:
        """Ranks of an agent and of those of whom it sees something."""
        owners = {rank, *self._layout.owner_of[self._plan.views[rank].columns].tolist()}
        return sorted(owners - {len(self._hierarchy)})

    def truth(self, truth: NDArray[np.float64], turn: int, state_of: StateOf) -> SimulationState:
        """All agents that have features, bookkeeping left out, in control step `turn`."""
        layout = self._layout
        spans = [np.arange(row.offset, row.offset + row.width) for row in layout.rows]
        columns = np.concatenate([span[layout.observed[span]] for span in spans])
        having = [rank for rank in range(len(self._hierarchy)) if layout.rows[rank].width]
        return self._state((having, cells(layout, columns)), truth[columns], turn, state_of)

    def observed(
        self, rank: int, targets: Callable[[int], Sequence[int]], proxy: ProxyAgent, state_of: StateOf
    ) -> SimulationState:
        """What an agent is shown now, from the proxy's cache and in full precision."""
        moment, view = proxy.moment, self._plan.views[rank]
        received = view.receive(proxy.cache, moment)
        form, vector = self._form(rank, targets), view.as_differences(received)
        return self._state(form, vector, moment.turn, state_of, view.unseen(received))

    def shown_to(self, rank: int, targets: Callable[[int], Sequence[int]], state_of: StateOf) -> Show:
        """How an agent's observation vector (float32) reads in object form, at a turn.

        Raises ConfigError where the vector does not say whom it is of: one out of sight has its defaults there.
        """
        form, view, names = self._form(rank, targets), self._plan.views[rank], self._plan.names(rank)
        if view.asked and not self._plan.observe_visible:
            raise ConfigError(
                f"{self._hierarchy.ids[rank]!r} is to decide on states as objects, and its vector does not say whom it "
                "sees (V11); build the environment with observe_visible=True"
            )
        flags = [(target, names.index(f"visible.{self._hierarchy.ids[target]}")) for target, _ in view.asked]

        def show(vector: NDArray[np.float32], turn: int) -> SimulationState:
            unseen = {target for target, place in flags if not vector[place]}
            return self._state(form, vector, turn, state_of, unseen)

        return show

    def _form(self, rank: int, targets: Callable[[int], Sequence[int]]) -> tuple[Sequence[int], list[Cell]]:
        if rank not in self.forms:
            self.forms[rank] = targets(rank), cells(self._layout, self._plan.views[rank].columns)
        return self.forms[rank]

    def _state(
        self, form: tuple[Sequence[int], list[Cell]], vector: NDArray[Any], turn: int, state_of: StateOf,
        unseen: Collection[int] = (),
    ) -> SimulationState:  # fmt: skip
        from heron_env.observability.state_models import SimulationState

        (targets, cells), numbers = form, vector.tolist()
        values: dict[int, Values] = {rank: {} for rank in (*targets, len(self._hierarchy))}
        for cell in cells:
            values[cell.rank].setdefault(cell.feature, {})[cell.declared.name] = cell.value(numbers)
        ids = self._hierarchy.ids
        agents = {ids[rank]: state_of(ids[rank], values[rank]) for rank in targets if rank not in unseen}
        return SimulationState.of(turn, agents, state_of(GLOBAL, values[len(ids)]))
