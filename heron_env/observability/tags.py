"""Who sees what by the visibility tags alone (V3): columns of every observer, worked out from the tags' sets.

The work is proportional to agents + columns seen; pairs are never tested.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from heron_env.core.feature import SYSTEM_LEVEL, FeatureProvider, visibility_of
from heron_env.core.hierarchy import Hierarchy, require_room
from heron_env.core.layout import GLOBAL, Layout
from heron_env.core.quantity import TAGS
from heron_env.errors import FeatureError

Columns = NDArray[np.int64]
OWN_TAGS = frozenset({"owner", "public"})
"""Each of them shows a quantity to its owner, as `system` does to an owner of that level."""


def columns_by_tags(hierarchy: Hierarchy, layout: Layout) -> list[Columns]:
    """What each observer sees, by rank: own columns, then the others' by rank, then the global ones."""
    by_tag = _columns_by_tag(layout, len(hierarchy))
    wide = {
        False: Spliced([tags["public"] for tags in by_tag[:-1]]),
        True: Spliced([_union(tags, "public", "system") for tags in by_tag[:-1]]),
    }
    shown = [[c for c in children if len(by_tag[c]["siblings"])] for children in hierarchy.children]
    compiled = []
    for rank in range(len(hierarchy)):
        is_system = hierarchy.level[rank] >= SYSTEM_LEVEL
        parent, base = hierarchy.parent[rank], ("public", "system") if is_system else ("public",)
        special = {rank: np.zeros(0, np.int64)}
        if any(len(by_tag[child]["upper_level"]) for child in hierarchy.children[rank]):
            special |= {child: _union(by_tag[child], *base, "upper_level") for child in hierarchy.children[rank]}
        if parent >= 0:
            if len(by_tag[parent]["subordinates"]):
                special[parent] = _union(by_tag[parent], *base, "subordinates")
            special |= {s: _union(by_tag[s], *base, "siblings") for s in shown[parent] if s != rank}
        parts = [by_tag[rank]["owner"], *wide[is_system].parts(special), _union(by_tag[-1], *base)]
        require_room(numbers=sum(map(len, parts)))
        compiled.append(np.concatenate(parts))
    return compiled


def tags_that_show(hierarchy: Hierarchy, observer: int, owner: int, visibility: tuple[str, ...]) -> tuple[str, ...]:
    """Which of the tags let `observer` see a field of `owner` (ranks; the rank after the last agent is the world's)."""
    parent, agents = hierarchy.parent, len(hierarchy)
    between_agents = owner < agents and owner != observer
    holds = {
        "public": True,
        "owner": owner == observer,
        "system": hierarchy.level[observer] >= SYSTEM_LEVEL,
        "upper_level": between_agents and parent[owner] == observer,
        "siblings": between_agents and parent[owner] == parent[observer],
        "subordinates": between_agents and parent[observer] == owner,
    }
    return tuple(tag for tag in visibility if holds[tag])


def _columns_by_tag(layout: Layout, agents: int) -> list[dict[str, Columns]]:
    """For each row and tag the observable columns that carry it; "owner" means those that the owner sees."""
    by_tag: list[dict[str, Columns]] = []
    for rank, row in enumerate(layout.rows):
        columns: dict[str, list[int]] = {tag: [] for tag in TAGS}
        shown = OWN_TAGS | {"system"} if row.level >= SYSTEM_LEVEL else OWN_TAGS
        for start, feature, q in row.columns():
            visibility = visibility_of(feature, q)
            if rank >= agents:
                check_global(feature, visibility)
            if q.observed:
                own = {"owner"} if q.to_owner and not shown.isdisjoint(visibility) else set()
                for tag in {*visibility} - {"owner"} | own:
                    columns[tag].extend(range(start, start + q.size))
        by_tag.append({tag: np.asarray(sorted(columns[tag]), dtype=np.int64) for tag in TAGS})
    return by_tag


def check_global(feature: type[FeatureProvider], visibility: tuple[str, ...]) -> None:
    """Raise FeatureError for a tag that means nothing where nobody is the owner."""
    wrong = sorted({*visibility} - {"public", "system"})
    if wrong:
        raise FeatureError(
            f"global feature {feature.__name__}: tag {wrong[0]!r} has no meaning for the row {GLOBAL!r}, "
            "which nobody owns; use ('public',), ('system',) or () for insiders only"
        )


def _union(tags: dict[str, Columns], *names: str) -> Columns:
    return np.unique(np.concatenate([tags[name] for name in names]))


class Spliced:
    """The columns everyone of a kind sees, by rank, from which single ranks can be replaced."""

    def __init__(self, per_rank: list[Columns]) -> None:
        self.columns = np.concatenate([np.zeros(0, np.int64), *per_rank])
        self.starts = np.concatenate([[0], np.cumsum([len(columns) for columns in per_rank])]).astype(int).tolist()

    def parts(self, special: Mapping[int, Columns]) -> list[Columns]:
        """All columns in order, those of the ranks in `special` replaced by what stands there.

        Runs of the usual and the special columns alternate: even places are usual, odd ones special, by rank.
        """
        parts, position = [], 0
        for rank in sorted(special):
            parts += [self.columns[position : self.starts[rank]], special[rank]]
            position = self.starts[rank + 1]
        return [*parts, self.columns[position:]]
