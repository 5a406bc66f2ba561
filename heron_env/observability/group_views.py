"""Who sees what, told by groups: how much of a group's columns the observers of another group see, how clearly.

The work is proportional to columns seen, observers and columns; groups that see nothing of each other are not listed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from heron_env.core.hierarchy import name_stem
from heron_env.core.layout import GLOBAL
from heron_env.observability.plan import ObservationPlan

ITSELF = "itself"
RELATIONS = ("", "parent", "child", "sibling")
NOBODY = -2
"""The parent of the world; -1 is that of the system agent."""
Groups = Mapping[str, Sequence[str]]
Floats = NDArray[np.float64]


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
    found = [share for group, agents in looking for share in _of_group(plan, keys, label(group, critic), agents)]
    for (owners, name), count in zip(keys.names, keys.counts.tolist(), strict=True):
        found.append(Share(critic, owners, name, count, count, 0.0, 0.0))
    return found


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
    seen, at = np.unique(np.concatenate(number), return_inverse=True)
    amounts = np.bincount(at, minlength=len(seen))
    low, high = _extremes(np.concatenate(factors), at, len(seen))
    first, last = _extremes(np.concatenate(relations), at, len(seen))
    found = []
    for i, key in enumerate(seen.tolist()):
        owners, name = keys.names[key % half]
        mine = own.get(key % half, 0)
        of = mine if key < half else int(keys.counts[key % half]) * len(agents) - mine
        owner = ITSELF if key < half else owners
        relation = RELATIONS[int(last[i])] if first[i] == last[i] and key >= half else ""
        found.append(Share(group, owner, name, int(amounts[i]), of, float(low[i]), float(high[i]), relation))
    return found


def _extremes(values: Floats, at: NDArray[np.int64], n: int) -> tuple[Floats, Floats]:
    """Least and greatest of the values (>= 0) that belong to each of n numbers."""
    low, high = np.full(n, np.inf), np.zeros(n)
    np.minimum.at(low, at, values)
    np.maximum.at(high, at, values)
    return low, high
