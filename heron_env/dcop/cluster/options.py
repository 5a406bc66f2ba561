"""Counterfactuals for a letter: what if the recipient's nodes at the boundary had these colours?"""

from __future__ import annotations

from typing import Final

import numpy as np

from heron_env.dcop.cluster.report import Option
from heron_env.dcop.cluster.view import View
from heron_env.dcop.problem import Assignment
from heron_env.dcop.responses import counterfactuals
from heron_env.errors import ConfigError

LISTED_WHOLE: Final = 10
"""Boundary nodes up to which all colourings are listed."""
MOST: Final = 1_000
"""Listed of more of them, the best ones; the current one is always among them."""


def options(view: View, recipient: str, actual: Assignment) -> list[Option]:
    """One for each colouring of the recipient's nodes that I border, the best first.

    Least penalty, then highest combined score, then product order; the current one last among equals. All come from
    one elimination. A score is the sum over nodes of `scores` of their colours; mine is of one of my best responses.

    Args:
        view: what I know and may do.
        recipient: the cluster that the letter is for.
        actual: my colours, whose penalty the current colouring carries.

    Raises:
        ConfigError: I border none of its nodes, or so many that the table would be too large.
    """
    part = view.part
    kept = part.foreign_boundary(recipient)
    if not kept:
        near = ", ".join(dict.fromkeys(part.owners.values())) or "nobody"
        raise ConfigError(f"utility_options({recipient!r:.60}): {part.cluster} shares no edge with it, but with {near}")
    table = counterfactuals(part, kept, view.told, view.bound, view.banned)
    shape = table.net.shape
    score = np.array([part.scores.get(colour, 0.0) for colour in part.domain])
    mine = score[table._responses].sum(axis=0)
    theirs = score[np.indices(shape, dtype=np.int8).reshape(len(kept), -1)].sum(axis=0)
    penalty, combined = table.penalty.reshape(-1).copy(), mine + theirs
    current = -1
    if all(node in view.told for node in kept):
        codes = tuple(part.domain.index(view.told[node]) for node in kept)
        current = int(np.ravel_multi_index(codes, shape))
        penalty[current] = part.conflict_penalty * len(view.conflicts(actual))
    order = np.lexsort((np.arange(penalty.size) == current, -combined, penalty))
    if len(kept) > LISTED_WHOLE and order.size > MOST:
        left_out = current >= 0 and current not in order[:MOST]
        order = np.append(order[: MOST - 1], current) if left_out else order[:MOST]
    colours = np.array(np.unravel_index(order, shape)).T.tolist()
    rows = zip(order, colours, penalty[order], mine[order], theirs[order], combined[order], strict=True)
    return [
        Option(
            {node: part.domain[code] for node, code in zip(kept, codes, strict=True)},
            float(cost), float(own), float(other), float(both), bool(index == current),
        )
        for index, codes, cost, own, other, both in rows
    ]  # fmt: skip
