"""Problems to solve: from files, drawn from a seed, and those that come with the package. Faults have file and line.

Files are our JSON, pyDCOP's YAML (`pydcop_yaml`) and DIMACS.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from heron_env import files
from heron_env.dcop.problem import COLOURS, Assignment, Optimum, Problem
from heron_env.dcop.pydcop_yaml import from_pydcop, to_pydcop
from heron_env.errors import ConfigError, DataError, DeclarationError
from heron_env.files.reading import parsed, read, whole_decimal
from heron_env.files.yaml_file import YamlFile
from heron_env.given import is_finite, is_one_of, mapping, path_of, require_type, whole
from heron_env.seeding import stream

INNER: Final = ((0, 1), (0, 4), (1, 2), (1, 4), (2, 3), (3, 4))
"""Edges within a cluster of five, as in the study graph."""
MOST: Final = 10**7
Pairs = NDArray[np.int64]


def ring_of_clusters(clusters: int = 10, *, seed: int = 0, chords: int | None = None) -> Problem:
    """Make clusters of five nodes in a ring: two edges between neighbours, and between further pairs.

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
    """Make a graph of uniformly random edges with a mean degree; three colours just suffice up to about 4.7."""
    count = whole(nodes, "erdos_renyi(nodes)", 2, MOST)
    edges = _edges("erdos_renyi", count, mean_degree, count * (count - 1) // 2)
    return _plain(count, _drawn(count, edges, seed, np.zeros(0, dtype=np.int64)), f"er{count}")


def planted(nodes: int, mean_degree: float = 5.0, *, colours: int = 3, seed: int = 0) -> Problem:
    """Make a random graph with a known solution without conflicts."""
    count, kinds = whole(nodes, "planted(nodes)", 2, MOST), whole(colours, "planted(colours)", 2, 26)
    hidden = stream(seed, "dcop", "planted").permutation(np.arange(count) % kinds)
    sizes = np.bincount(hidden, minlength=kinds)
    edges = _edges("planted", count, mean_degree, int(count**2 - (sizes**2).sum()) // 2)
    problem = _plain(count, _drawn(count, edges, seed, hidden), f"planted{count}", kinds)
    return problem.having(optimum=Optimum(0, True, problem.assignment(hidden)))


def grid(rows: int, columns: int) -> Problem:
    """Make a rectangular grid; two colours suffice."""
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


FORMAT: Final = 1
FIELDS: Final = (
    "domain",
    "conflict_penalty",
    "objective",
    "preferences",
    "fixed",
    "scores",
    "nodes",
    "clusters",
    "edges",
)
SHIPPED: Final = Path(__file__).parent / "instances"


def read_problem(path: str | Path) -> Problem:
    """Read a problem from a file: `.json`, `.yaml` or `.yml` (pyDCOP's), `.col` (DIMACS; three colours).

    Raises:
        ConfigError: what is wrong, with file and line.
    """
    path = path_of(path, "path")
    readers = {".json": _from_json, ".yaml": from_pydcop, ".yml": from_pydcop, ".col": _from_dimacs}
    reader = readers.get(path.suffix.lower())
    if reader is None:
        raise ConfigError(f"{path}: a problem's file ends with {', '.join(readers)}; name such a one")
    try:
        text = read(path).decode("utf-8")
    except (OSError, ValueError) as error:
        raise ConfigError(f"{path}: can't be read: {error}; give a problem's file as UTF-8 text") from error
    return reader(path, text)


def write_problem(problem: Problem, path: str | Path) -> Path:
    """Write a problem as `.json` or pyDCOP's `.yaml`; return the path. Raises ConfigError for another ending."""
    require_type(f"write_problem({problem!r:.60}, ...)", problem, Problem, "a Problem")
    path = path_of(path, "path")
    writers = {".json": to_json, ".yaml": to_pydcop, ".yml": to_pydcop}
    writer = writers.get(path.suffix.lower())
    if writer is None:
        raise ConfigError(f"{path}: problems are written as {', '.join(writers)}")
    return files.write(path, writer(problem))


# Our JSON


def to_json(problem: Problem) -> str:
    """The text of its file; an edge a line."""
    head: dict[str, Any] = {"name": problem.name, "format": FORMAT}
    if problem.optimum is not None:
        head["optimum"] = _optimum_written(problem, problem.optimum)
    values = {name: getattr(problem, name) for name in FIELDS[:-1]}
    values["objective"] = "" if problem.objective == "min" else problem.objective
    head |= {name: value for name, value in values.items() if value or name in ("nodes", "clusters")}
    lines = [f" {json.dumps(name)}: {json.dumps(value, ensure_ascii=False)}" for name, value in head.items()]
    edges = ",\n".join(f"  {json.dumps(list(edge), ensure_ascii=False)}" for edge in problem.edges)
    return "{\n" + ",\n".join([*lines, f' "edges": [\n{edges}\n ]']) + "\n}\n"


def _optimum_written(problem: Problem, optimum: Optimum) -> dict[str, Any]:
    written: dict[str, Any] = {"conflicts": optimum.conflicts, "proven": optimum.proven}
    if optimum.witness is not None:
        colours = [optimum.witness[node] for node in problem.nodes]
        letters = {colour[0] for colour in problem.domain}
        written["witness"] = (
            "".join(colour[0] for colour in colours) if len(letters) == len(problem.domain) else colours
        )
    return written


def _from_json(path: Path, text: str) -> Problem:
    try:
        data = parsed(text)
    except json.JSONDecodeError as error:
        raise ConfigError(f"{path}:{error.lineno}: is no JSON: {error.msg}; mend it there") from error
    except ValueError as error:
        raise ConfigError(f"{path}: is no JSON: {error}") from error
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise ConfigError(f'{path}: is no graph-colouring problem; it must be an object with "format": {FORMAT}')
    unknown = data.keys() - {*FIELDS, "name", "format", "optimum"}
    if unknown or not {"nodes", "edges"} <= data.keys():
        wrong = f"has {sorted(unknown)}" if unknown else "lacks nodes or edges"
        raise ConfigError(f"{path}: {wrong}; its keys are name, format, optimum, {', '.join(FIELDS)}")
    try:
        problem = Problem(
            **{name: data[name] for name in FIELDS if name in data}, name=str(data.get("name", path.stem))
        )
        return problem.having(optimum=_optimum(path, problem, data.get("optimum")))
    except DeclarationError as error:
        raise YamlFile.parse(text, str(path)).located(error) from None
    except DataError:
        raise
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from error


def _optimum(path: Path, problem: Problem, given: Any) -> Optimum | None:
    """As the file tells it, its witness checked. Raises DataError."""
    if given is None:
        return None
    try:
        if unknown := given.keys() - {"conflicts", "proven", "witness"}:
            raise ValueError(f"has {sorted(unknown)}")
        least, proven = whole(given["conflicts"], "conflicts"), given.get("proven", False)
        if not isinstance(proven, bool):
            raise ValueError(f"proven={proven!r:.60}: must be true or false")
        written = given.get("witness")
        initial = {colour[0]: colour for colour in problem.domain}
        colours = None if written is None else [initial.get(colour, colour) for colour in written]
        witness = None if colours is None else dict(zip(problem.nodes, colours, strict=True))
        if witness is not None and problem.conflicts(witness) != least:
            raise ValueError(f"its witness has {problem.conflicts(witness)} conflicts, not {least}")
        if witness is not None and not is_finite(problem.cost(witness)):
            raise ValueError("its witness changes a fixed node")
    except (AttributeError, KeyError, TypeError, ValueError, IndexError) as error:
        raise DataError(f"{path}: optimum: {error}; give conflicts, proven, and a colour a node as witness") from error
    return Optimum(least, proven, witness)


# DIMACS


def _from_dimacs(path: Path, text: str) -> Problem:
    """`p edge NODES EDGES` and a line `e U V` for each edge; nodes are called v1, v2, ... Each edge counts once."""
    nodes, announced, lines, edges = -1, 0, 0, dict[tuple[str, str], None]()
    for number, line in enumerate(text.splitlines(), start=1):
        words, wrong = line.split(), f"{line!r:.60} has no whole numbers where they belong"
        try:
            if words[:1] == ["p"]:
                if nodes >= 0 or words[1] not in ("edge", "edges", "col"):
                    wrong = f"{line!r:.60} is no `p edge` line, or the second one"
                    raise ValueError
                nodes, announced = (whole(whole_decimal(word), "p", 0, MOST) for word in words[2:])
            elif words[:1] == ["e"]:
                u, v = sorted(map(whole_decimal, words[1:]))
                if not 1 <= u < v <= nodes:
                    wrong = f"{u}-{v} is no edge between two of the nodes 1 to {max(nodes, 0)}"
                    raise ValueError
                edges[f"v{u}", f"v{v}"] = None
                lines += 1
            elif words and words[0] != "c":
                wrong = f"{line!r:.60} begins with none of c, p, e"
                raise ValueError
        except (IndexError, ValueError) as error:
            raise ConfigError(f"{path}:{number}: {wrong}; write `p edge NODES EDGES`, then `e U V`") from error
    if nodes < 0:
        raise ConfigError(f"{path}: has no line `p edge NODES EDGES`; begin with it")
    if announced not in (lines, len(edges)):
        counts = f"{announced} edges are announced, and {lines} follow"
        raise ConfigError(f"{path}: {counts}; is the file cut off? Correct the number in its line p")
    return Problem(tuple(f"v{node}" for node in range(1, nodes + 1)), tuple(edges), name=path.stem)


STUDY: Final = {"h3": "green", "a1": "green", "b4": "green"}
"""Nodes that the study fixes."""


def g15(
    conflict_penalty: float = 10.0,
    fixed: Assignment | str | None = None,
    preferences: Mapping[str, Mapping[str, float]] | None = None,
) -> Problem:
    """Make the study's graph: clusters Human, Agent1, Agent2 of five nodes, 23 edges, three colours; solvable.

    Args:
        conflict_penalty: cost of an edge whose ends are equal.
        fixed: node to the colour that it keeps; "default": h3, a1 and b4 are green.
        preferences: node to colour to what it gains.

    Raises:
        ConfigError: an argument makes no sense.
    """
    if isinstance(fixed, str) and fixed == "default":
        fixed = STUDY
    changes = {"fixed": fixed, "preferences": preferences}
    changed = {name: mapping(value, f"g15({name})") for name, value in changes.items() if value is not None}
    changed = {name: value for name, value in changed.items() if value}
    return read_problem(SHIPPED / "g15.json").having(conflict_penalty=conflict_penalty, **changed)


def ring50() -> Problem:
    """Make ten clusters like the study's in a ring with five chords: 50 nodes, 90 edges; zero conflicts exist."""
    return read_problem(SHIPPED / "ring50.json")


def problem_of(given: Problem | str | Path) -> Problem:
    """Return a problem: itself, a shipped one by name ("g15", "ring50"), or one from a file. Raises ConfigError."""
    if isinstance(given, Problem):
        return given
    shipped = {"g15": g15, "ring50": ring50}
    return shipped[str(given)]() if is_one_of(given, shipped) else read_problem(given)
