"""The part of HeronEnv that shows the truth, and what an agent is shown of it, as SimulationState objects."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from heron_env.agents.proxy import ProxyAgent
from heron_env.core.hierarchy import Hierarchy
from heron_env.core.layout import GLOBAL, Layout
from heron_env.core.policy import Show
from heron_env.core.quantity import Quantity
from heron_env.envs.simulation import Simulation

if TYPE_CHECKING:
    from heron_env.observability.state_models import SimulationState

Values = dict[str, dict[str, Any]]
"""{Feature: {field: value}}."""
Form = tuple[Sequence[int], list["Cell"]]
"""Ranks of the agents in an observation, and the quantities of its vector."""


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
    found = ((place, starting[column]) for place, column in enumerate(columns.tolist()) if column in starting)
    return [Cell(*quantity, place) for place, quantity in found]


class ObjectForm:
    """`agents` of a state maps ids to `state_of(...)`: {Feature: {field: value}}, if not overridden.

    A truth holds all agents that have features; an observation those of whom something is seen.
    """

    hierarchy: Hierarchy
    simulation: Simulation
    proxy: ProxyAgent
    _forms: dict[int, Form]

    def state_of(self, owner_id: str, values: Values) -> Any:
        """The state of one agent, or of "global", in object form."""
        return values

    def shown_targets(self, rank: int) -> Sequence[int]:
        """Ranks that are in an agent's observation in object form: itself, and those of whom it sees something."""
        view = self.simulation.plan.views[rank]
        owners = {rank, *self.simulation.layout.owner_of[view.columns].tolist()}
        return sorted(owners - {len(self.hierarchy)})

    def simulation_state(self) -> SimulationState:
        """The truth, bookkeeping left out: for trainers and the curious, never for agents."""
        layout = self.simulation.layout
        spans = [np.arange(row.offset, row.offset + row.width) for row in layout.rows]
        columns = np.concatenate([span[layout.observed[span]] for span in spans])
        having = [rank for rank in range(len(self.hierarchy)) if layout.rows[rank].width]
        truth = self.simulation.truth[columns].tolist()
        return self._state(having, cells(layout, columns), truth, self.simulation.step_index)

    def observed_state(self, agent: str) -> SimulationState:
        """What an agent is shown now, from the proxy's cache and in full precision. Raises UnknownAgent."""
        rank = self.hierarchy.rank(agent, "observed_state() got")
        view, moment = self.simulation.plan.views[rank], self.proxy.moment
        values = view.read(self.proxy.cache, moment).tolist()
        return self._state(*self._form(rank), values, moment.turn)

    def shown_to(self, rank: int) -> Show:
        """How an agent's observation vector (float32) reads in object form, at a turn."""
        targets, seen = self._form(rank)
        return lambda vector, turn: self._state(targets, seen, vector.tolist(), turn)

    def _form(self, rank: int) -> Form:
        """Of an agent's observations, worked out once."""
        if rank not in self._forms:
            view = self.simulation.plan.views[rank]
            self._forms[rank] = self.shown_targets(rank), cells(view.layout, view.columns)
        return self._forms[rank]

    def _state(self, targets: Sequence[int], seen: list[Cell], vector: list[float], turn: int) -> SimulationState:
        from heron_env.observability.state_models import SimulationState

        world = len(self.hierarchy)
        values: dict[int, Values] = {rank: {} for rank in (*targets, world)}
        for cell in seen:
            values[cell.rank].setdefault(cell.feature, {})[cell.declared.name] = cell.value(vector)
        ids = self.hierarchy.ids
        agents = {ids[rank]: self.state_of(ids[rank], values[rank]) for rank in targets}
        return SimulationState.of(turn, agents, self.state_of(GLOBAL, values[world]))
