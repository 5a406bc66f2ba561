"""Who sees what, as pictures and descriptions take it: single columns, or, of many, what groups see of groups.

The work is proportional to columns seen, observers and columns; groups that see nothing of each other are not listed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from heron_env.core.hierarchy import name_stem
from heron_env.core.layout import GLOBAL, Edge, Layout
from heron_env.observability.plan import ObservationPlan
from heron_env.pictures.matrix import CellDrawing, Cells, Drawing, GroupCells, GroupDrawing, is_legible

ITSELF = "itself"
RELATIONS = ("", "parent", "child", "sibling")
NOBODY = -2
"""The parent of the world; -1 is that of the system agent."""
Groups = Mapping[str, Sequence[str]]
Floats = NDArray[np.float64]


def columns_of(columns: slice) -> range:
    """The columns that a slice stands for, one by one."""
    return range(columns.start, columns.stop)


def neighbour_cells(tellings: Sequence[Edge]) -> list[tuple[int, int]]:
    """(receiver, source column), each once: what a picture marks."""
    cells = {(telling.receiver, column): None for telling in tellings for column in columns_of(telling.source)}
    return list(cells)


def neighbour_notes(tellings: Sequence[Edge], layout: Layout) -> list[str]:
    """Which quantities are told, and which inboxes there are, in sentences; nothing where nobody tells anything."""
    names = layout.names
    shared = {
        f"{names[telling.source.start].partition('[')[0]} into {names[telling.target.start].partition('[')[0]}": None
        for telling in tellings
    }
    inboxes = {
        f"{feature.feature_name}.{q.name}": None
        for row in layout.rows
        for _, feature, q in row.columns()
        if not feature.reported
    }
    sentences = [f"Told by neighbours: {', '.join(shared)}."] if shared else []
    return sentences + ([f"Inboxes (memory, no fact about the world): {', '.join(inboxes)}."] if inboxes else [])


def drawing_of(
    plan: ObservationPlan, critic: str, tellings: Sequence[Edge], observers: Sequence[str] | None = None
) -> Drawing:
    """The drawing that suits the size of the environment; `observers`: only these rows. Raises UnknownAgent."""
    ids = [*plan.hierarchy.ids, critic] if observers is None else observers
    agents = [plan.hierarchy.rank(name, "visibility_matrix() got") for name in ids if name != critic]
    apart = critic if critic in ids else None
    if is_legible(len(agents), [row.width for row in plan.layout.rows if row.width]):
        return CellDrawing(_cells(plan, agents, apart, tellings))
    return GroupDrawing(_group_cells(plan, None if observers is None else agents, critic, apart, tellings))


def _cells(plan: ObservationPlan, agents: Sequence[int], apart: str | None, tellings: Sequence[Edge]) -> Cells:
    """Owners in registration order; what neighbours tell an observer is marked."""
    layout = plan.layout
    order = np.concatenate([np.arange(row.slice.start, row.slice.stop) for row in layout.rows])
    place, row_of = np.argsort(order), {rank: y for y, rank in enumerate(agents)}
    values = np.full((len(agents) + (apart is not None), layout.size), np.nan)
    values[len(agents) :] = 0.0
    additive = np.zeros_like(values, dtype=bool)
    for y, rank in enumerate(agents):
        view = plan.views[rank]
        values[y, view.columns], additive[y, view.columns] = view.factors, view.additive
    stops = np.cumsum([row.width for row in layout.rows]).tolist()
    return Cells(
        observers=[plan.hierarchy.ids[rank] for rank in agents],
        critic=apart,
        owners=[(row.owner_id, b - row.width, b) for row, b in zip(layout.rows, stops, strict=True) if row.width],
        columns=[layout.names[i] for i in order.tolist()],
        values=values[:, order],
        additive=additive[:, order],
        marked=[(row_of[rank], int(place[i])) for rank, i in neighbour_cells(tellings) if rank in row_of],
        bookkeeping=not layout.observed.all(),
        notes=_notes(layout, tellings),
    )


def _group_cells(
    plan: ObservationPlan,
    agents: Sequence[int] | None,
    critic: str,
    apart: str | None,
    tellings: Sequence[Edge],
) -> GroupCells:
    """All agents by the stems of their names, or those `agents`, each a group of its own."""
    groups = by_stem(plan.hierarchy.ids)
    looking = groups if agents is None else {plan.hierarchy.ids[rank]: [plan.hierarchy.ids[rank]] for rank in agents}
    members = {label(group, critic): ids for group, ids in looking.items()}
    entries = shares(plan, critic, groups, looking)
    order = {label(group, critic): i for i, group in enumerate(groups)}
    quantities = list(dict.fromkeys((share.owners, share.name) for share in entries if share.observers == critic))
    quantities.sort(key=lambda key: order.get(key[0], len(order)))
    alone = {ids[0] for ids in groups.values() if len(ids) == 1}
    return GroupCells(
        observers=[(group, len(ids)) for group, ids in members.items()],
        critic=apart,
        quantities=quantities,
        shares={
            key: (share.seen / share.of, share.high)
            for share in entries
            if share.seen and (key := _cell_of(share, members, alone, critic)) is not None
        },
        marked=_marked_groups(plan, members, critic, tellings),
        notes=_notes(plan.layout, tellings),
    )


def _cell_of(share: Share, members: dict[str, list[str]], alone: set[str], critic: str) -> tuple[str, str, str] | None:
    """Where a share is drawn; what an agent sees of itself only where its group has no other member."""
    if share.owners != ITSELF:
        return share.observers, share.owners, share.name
    agent = members[share.observers][0]
    return (share.observers, label(name_stem(agent), critic), share.name) if agent in alone else None


def _marked_groups(
    plan: ObservationPlan, members: dict[str, list[str]], critic: str, tellings: Sequence[Edge]
) -> list[tuple[str, str, str]]:
    """Groups and quantities of which some observer is told by some other owner, each once."""
    ids, layout = plan.hierarchy.ids, plan.layout
    group_of = {agent: group for group, agents in members.items() for agent in agents}
    marked: dict[tuple[str, str, str], None] = {}
    for rank, column in neighbour_cells(tellings):
        if ids[rank] in group_of:
            owners = label(name_stem(ids[layout.owner_of[column]]), critic)
            marked[group_of[ids[rank]], owners, layout.names[column].partition("[")[0]] = None
    return list(marked)


def _notes(layout: Layout, tellings: Sequence[Edge]) -> list[str]:
    """What neighbours tell each other, and which quantities are marked as known ahead, in sentences."""
    marked = dict.fromkeys(layout.names[i].partition("[")[0] for i in np.flatnonzero(layout.foreknown))
    return [*neighbour_notes(tellings, layout), *([f"Known ahead (foreknown): {', '.join(marked)}."] if marked else [])]


@dataclass(frozen=True)
class Share:
    """What the agents of one group see of one quantity of the owners of another.

    Attributes:
        observers: name of a group, or the critic's.
        owners: name of a group (other agents than the observer), "itself", or "global".
        name: `Charge.soc`.
        seen, of: columns seen and columns there are, over all pairs of observer and owner.
        low, high: least and greatest noise factor of what is seen; 0: exact.
        relation: "parent", "child" or "sibling", if all owners of what is seen are that to their observer, else "".
    """

    observers: str
    owners: str
    name: str
    seen: int
    of: int
    low: float
    high: float
    relation: str = ""


def by_stem(ids: Sequence[str]) -> dict[str, list[str]]:
    """Agents by the stem of their names: `battery` for `battery_1` and `battery_2`."""
    groups: dict[str, list[str]] = {}
    for agent in ids:
        groups.setdefault(name_stem(agent), []).append(agent)
    return groups


def label(group: str, critic: str) -> str:
    """The name under which shares tell of a group: its own, unless that stands for something else."""
    return f"{group} (agents)" if group in (ITSELF, GLOBAL, critic) else group


class Keys:
    """The quantities of each group of owners, numbered; "itself" doubles them.

    Attributes:
        names: (group, `Charge.soc`) of each number.
        of: number of each column, int64 `[columns]`.
        counts: columns of each number, int64 `[numbers]`.
        parent: rank of each owner's parent, int64 `[owners]`.
    """

    def __init__(self, plan: ObservationPlan, groups: Groups) -> None:
        layout, hierarchy = plan.layout, plan.hierarchy
        group_of = {agent: group for group, agents in groups.items() for agent in agents} | {GLOBAL: GLOBAL}
        numbers: dict[tuple[str, str], int] = {}
        self.of = np.zeros(layout.size, dtype=np.int64)
        ranks = [hierarchy.index[agent] for agents in groups.values() for agent in agents]
        for rank in [*ranks, len(hierarchy)]:
            row = layout.rows[rank]
            for start, feature, q in row.columns():
                key = group_of[row.owner_id], f"{feature.feature_name}.{q.name}"
                self.of[start : start + q.size] = numbers.setdefault(key, len(numbers))
        self.names = tuple(numbers)
        self.counts = np.bincount(self.of, minlength=len(numbers))
        self.parent = np.array([*hierarchy.parent, NOBODY])

    def counted(self, plan: ObservationPlan, agents: Sequence[str]) -> dict[int, int]:
        """How many columns of each number these agents have themselves."""
        rows = [plan.layout.rows[plan.hierarchy.index[agent]] for agent in agents]
        numbers, counts = np.unique(np.concatenate([self.of[row.slice] for row in rows]), return_counts=True)
        return dict(zip(numbers.tolist(), counts.tolist(), strict=True))


def shares(
    plan: ObservationPlan, critic: str, groups: Groups | None = None, observers: Groups | None = None
) -> list[Share]:
    """By group of observers: of itself, of the others by group, of the world; the critic last.

    Args:
        critic: its name.
        groups: all agents by group; None: by the stems of their names.
        observers: those who look, by group; None: the same groups.
    """
    groups = by_stem(plan.hierarchy.ids) if groups is None else groups
    keys = Keys(plan, {label(group, critic): agents for group, agents in groups.items()})
    looking = (groups if observers is None else observers).items()
    result = [share for group, agents in looking for share in _of_group(plan, keys, label(group, critic), agents)]
    for (owners, name), count in zip(keys.names, keys.counts.tolist(), strict=True):
        result.append(Share(critic, owners, name, count, count, 0.0, 0.0))
    return result


def _of_group(plan: ObservationPlan, keys: Keys, group: str, agents: Sequence[str]) -> list[Share]:
    """Own columns are counted apart from those of the other members."""
    half, parent, own = len(keys.names), keys.parent, keys.counted(plan, agents)
    number, factors, relations = [], [], []
    for agent in agents:
        rank = plan.hierarchy.index[agent]
        columns = plan.views[rank].columns
        owners = plan.layout.owner_of[columns]
        number.append(keys.of[columns] + np.where(owners == rank, 0, half))
        factors.append(plan.views[rank].factors)
        is_a = [owners == parent[rank], parent[owners] == rank, parent[owners] == parent[rank]]
        relations.append(np.select(is_a, [1, 2, 3], default=0))
    unique, at = np.unique(np.concatenate(number), return_inverse=True)
    amounts = np.bincount(at, minlength=len(unique))
    low, high = _extremes(np.concatenate(factors), at, len(unique))
    first, last = _extremes(np.concatenate(relations), at, len(unique))
    result = []
    for i, key in enumerate(unique.tolist()):
        owners, name = keys.names[key % half]
        mine = own.get(key % half, 0)
        of = mine if key < half else int(keys.counts[key % half]) * len(agents) - mine
        owner = ITSELF if key < half else owners
        relation = RELATIONS[int(last[i])] if first[i] == last[i] and key >= half else ""
        result.append(Share(group, owner, name, int(amounts[i]), of, float(low[i]), float(high[i]), relation))
    return result


def _extremes(values: Floats, at: NDArray[np.int64], n: int) -> tuple[Floats, Floats]:
    """Least and greatest of the values (>= 0) that belong to each of n numbers."""
    low, high = np.full(n, np.inf), np.zeros(n)
    np.minimum.at(low, at, values)
    np.maximum.at(high, at, values)
    return low, high
