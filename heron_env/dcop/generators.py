"""Graphs to colour, drawn from a seed."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from heron_env.dcop.problem import COLOURS, Optimum, Problem
from heron_env.errors import ConfigError
from heron_env.given import is_finite, whole
from heron_env.seeding import stream

INNER: Final = ((0, 1), (0, 4), (1, 2), (1, 4), (2, 3), (3, 4))
"""Edges within a cluster of five, as in the study graph."""
MOST: Final = 10**7
Pairs = NDArray[np.int64]


def ring_of_clusters(clusters: int = 10, *, seed: int = 0, chords: int | None = None) -> Problem:
    """Clusters of five nodes each in a ring: two edges between neighbours, and between each of further pairs.

    Args:
        clusters: at least 3.
        seed: of the edges between clusters.
        chords: further pairs of clusters; None: half as many as clusters.
    """
    count = whole(clusters, "ring_of_clusters(clusters)", 3, MOST // 5)
    apart = count * (count - 3) // 2
    more = min(count // 2, apart) if chords is None else whole(chords, "ring_of_clusters(chords)", 0, apart)
    draws = stream(seed, "dcop", "ring")
    pairs = [(one, (one + 1) % count) for one in range(count)]
    taken = {frozenset(pair) for pair in pairs}
    while more:
        pair = tuple(sorted(draws.choice(count, 2, replace=False).tolist()))
        if frozenset(pair) not in taken:
            taken.add(frozenset(pair))
            pairs.append(pair)
            more -= 1
    edges = [(5 * one + u, 5 * one + v) for one in range(count) for u, v in INNER]
    for one, other in pairs:
        ends = draws.choice(25, 2, replace=False).tolist()
        edges += [(5 * one + end // 5, 5 * other + end % 5) for end in ends]
    names = [f"c{one}n{number}" for one in range(count) for number in range(1, 6)]
    owners = {f"C{one}": tuple(names[5 * one : 5 * one + 5]) for one in range(count)}
    return Problem(
        tuple(names), tuple((names[u], names[v]) for u, v in edges), clusters=owners, name=f"ring{5 * count}"
    )


def erdos_renyi(nodes: int, mean_degree: float = 5.0, *, seed: int = 0) -> Problem:
    """Uniformly random edges, as many as make the mean degree; three colours just suffice up to about 4.7."""
    count = whole(nodes, "erdos_renyi(nodes)", 2, MOST)
    edges = _edges("erdos_renyi", count, mean_degree, count * (count - 1) // 2)
    return _plain(count, _drawn(count, edges, seed, np.zeros(0, dtype=np.int64)), f"er{count}")


def planted(nodes: int, mean_degree: float = 5.0, *, colours: int = 3, seed: int = 0) -> Problem:
    """Uniformly random edges between nodes of different hidden colours: its optimum is no conflict, and known."""
    count, kinds = whole(nodes, "planted(nodes)", 2, MOST), whole(colours, "planted(colours)", 2, 26)
    hidden = stream(seed, "dcop", "planted").permutation(np.arange(count) % kinds)
    sizes = np.bincount(hidden, minlength=kinds)
    edges = _edges("planted", count, mean_degree, int(count**2 - (sizes**2).sum()) // 2)
    problem = _plain(count, _drawn(count, edges, seed, hidden), f"planted{count}", kinds)
    return problem.having(optimum=Optimum(0, True, problem.assignment(hidden)))


def grid(rows: int, columns: int) -> Problem:
    """Nodes next to each other in a rectangle; two colours suffice."""
    height, width = whole(rows, "grid(rows)", 1, MOST), whole(columns, "grid(columns)", 1, MOST)
    number = np.arange(height * width).reshape(height, width)
    across = np.stack([number[:, :-1].ravel(), number[:, 1:].ravel()], axis=1)
    down = np.stack([number[:-1].ravel(), number[1:].ravel()], axis=1)
    return _plain(height * width, np.concatenate([across, down]), f"grid{height}x{width}")


def _plain(nodes: int, pairs: Pairs, name: str, colours: int = 3) -> Problem:
    names = [f"v{node}" for node in range(nodes)]
    domain = COLOURS if colours == len(COLOURS) else tuple(f"colour{code}" for code in range(colours))
    return Problem(tuple(names), tuple((names[u], names[v]) for u, v in pairs.tolist()), domain, name=name)


def _edges(called: str, nodes: int, mean_degree: float, most: int) -> int:
    if not is_finite(mean_degree) or mean_degree < 0 or round(nodes * mean_degree / 2) > most:
        raise ConfigError(
            f"{called}(mean_degree={mean_degree!r:.60}): must be a number from 0 to {2 * most / nodes:.6g} for {nodes} "
            "nodes"
        )
    return round(nodes * mean_degree / 2)


def _drawn(nodes: int, edges: int, seed: int, hidden: Pairs) -> Pairs:
    """So many different pairs `[edges, 2]`, all alike likely among those whose hidden colours differ."""
    draws, found = stream(seed, "dcop", "edges"), np.zeros(0, dtype=np.int64)
    while len(found) < edges:
        ends = np.sort(draws.integers(nodes, size=(2 * edges + 16, 2)), axis=1)
        u, v = ends.T
        apart = u != v if not len(hidden) else hidden[u] != hidden[v]
        both = np.concatenate([found, (u * nodes + v)[apart]])
        found = both[np.sort(np.unique(both, return_index=True)[1])][:edges]
    return np.stack([found // nodes, found % nodes], axis=1)
