"""What a rule reads of an agent's parent or children, as places in the truth: the same for both ways to run rules."""

from __future__ import annotations

from itertools import pairwise

from heron_env.core.feature import FeatureProvider
from heron_env.core.hierarchy import Hierarchy
from heron_env.core.layout import Layout, Row
from heron_env.errors import RuleError

Feature = type[FeatureProvider]


def row_of_parent(hierarchy: Hierarchy, layout: Layout, rank: int, feature: Feature, where: str) -> Row:
    """The row of the parent that has `feature`. Raises RuleError naming the rule, `where`, if there is none."""
    parent = hierarchy.parent[rank]
    if parent < 0 or layout.rows[parent].find(feature) is None:
        who = "it has no parent" if parent < 0 else f"its parent {hierarchy.ids[parent]!r} has no such feature"
        raise RuleError(
            f"{where} reads Parent[{feature.__name__}], but {hierarchy.ids[rank]!r}: {who}; "
            f"put it below a parent with {feature.__name__} among its `features`"
        )
    return layout.rows[parent]


def starts_of_children(
    hierarchy: Hierarchy, layout: Layout, rank: int, feature: Feature, where: str
) -> tuple[list[int], int]:
    """First column of each child that has `feature`, and their distance; 0: they are not evenly spaced.

    Raises RuleError naming the rule, `where`, if no child has it, or if it has vector quantities.
    """
    rows = [layout.rows[child] for child in hierarchy.children[rank]]
    starts = [row.offsets[i] for row in rows if (i := row.find(feature)) is not None]
    if not starts:
        raise RuleError(
            f"{where} reads Children[{feature.__name__}], but no child of {hierarchy.ids[rank]!r} has it; "
            "add it to the children's `features`"
        )
    if any(q.shape for q in feature.quantities.values()):
        raise RuleError(f"{where} reads Children[{feature.__name__}], which has vector quantities; use scalar ones")
    steps = {later - start for start, later in pairwise(starts)} or {1}
    return starts, steps.pop() if len(steps) == 1 and min(steps) > 0 else 0
