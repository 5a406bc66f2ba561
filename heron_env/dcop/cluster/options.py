"""Counterfactuals for a letter: what if the recipient's nodes at the boundary had these colours?"""

from __future__ import annotations

import logging
from typing import Final

import numpy as np

from heron_env.dcop.cluster.report import Option
from heron_env.dcop.cluster.view import View
from heron_env.dcop.problem import Assignment
from heron_env.dcop.responses import counterfactuals
from heron_env.errors import ConfigError

LOG: Final = logging.getLogger("heron_env.dcop")
LOGGED: Final = 10
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
    shape, score = table.net.shape, np.array([part.scores.get(colour, 0.0) for colour in part.domain])
    mine = score[table._responses].sum(axis=0)
    theirs = score[np.indices(shape, dtype=np.int8).reshape(len(kept), -1)].sum(axis=0)
    penalty, combined, current = table.penalty.flatten(), mine + theirs, -1
    if all(node in view.told for node in kept):
        current = int(np.ravel_multi_index([part.domain.index(view.told[node]) for node in kept], shape))
        penalty[current] = part.conflict_penalty * len(view.conflicts(actual))
    order = np.lexsort((np.arange(penalty.size) == current, -combined, penalty))
    if len(kept) > LISTED_WHOLE and order.size > MOST:
        missed = current >= 0 and current not in order[:MOST]
        order = np.append(order[: MOST - 1], current) if missed else order[:MOST]
    configurations = [
        {node: part.domain[code] for node, code in zip(kept, codes, strict=True)}
        for codes in np.stack(np.unravel_index(order, shape), axis=1).tolist()
    ]
    figures = (column[order].tolist() for column in (penalty, mine, theirs, combined))
    rows = zip(configurations, *figures, (order == current).tolist(), strict=True)
    found = [Option(*row) for row in rows]
    for told in [one.configuration for one in found[:LOGGED]] if LOG.isEnabledFor(logging.INFO) else ():
        LOG.info("%s: If %s changes to %s, I could do %s", part.cluster, recipient, dict(told), table.response(told))
    return found
