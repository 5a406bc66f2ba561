"""Problems as files: our JSON, pyDCOP's YAML, DIMACS. What is wrong in a file is told with file and line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

from heron_env import files
from heron_env.dcop.problem import Optimum, Problem
from heron_env.dcop.pydcop import from_pydcop, to_pydcop
from heron_env.errors import ConfigError, DataError, DeclarationError
from heron_env.files.reading import parsed, read
from heron_env.files.yaml_file import YamlFile
from heron_env.given import path_of, require_type

FORMAT: Final = 1
FIELDS: Final = ("domain", "conflict_penalty", "preferences", "fixed", "scores", "nodes", "clusters", "edges")
SHIPPED: Final = Path(__file__).parent / "instances"


def read_problem(path: str | Path) -> Problem:
    """The problem in a file: `.json`, `.yaml` or `.yml` (pyDCOP's), `.col` (DIMACS; three colours).

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
    """Write it as `.json` or as pyDCOP's `.yaml`; the file's path. Raises ConfigError for another ending."""
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
        written = given.get("witness")
        initial = {colour[0]: colour for colour in problem.domain}
        colours = None if written is None else [initial.get(colour, colour) for colour in written]
        witness = None if colours is None else dict(zip(problem.nodes, colours, strict=True))
        optimum = Optimum(int(given["conflicts"]), bool(given.get("proven", False)), witness)
        if witness is not None and problem.conflicts(witness) != optimum.conflicts:
            raise ValueError(f"its witness has {problem.conflicts(witness)} conflicts, not {optimum.conflicts}")
    except (AttributeError, KeyError, TypeError, ValueError, IndexError) as error:
        raise DataError(f"{path}: optimum: {error}; give conflicts, proven, and a colour a node as witness") from error
    return optimum


# DIMACS


def _from_dimacs(path: Path, text: str) -> Problem:
    """`p edge NODES EDGES` and a line `e U V` for each edge; nodes are called v1, v2, ... Each edge counts once."""
    nodes, edges = 0, dict[tuple[str, str], None]()
    for number, line in enumerate(text.splitlines(), start=1):
        words, wrong = line.split(), f"{line!r:.60} has no whole numbers where they belong"
        try:
            if words[:1] == ["p"]:
                nodes = int(words[2])
            elif words[:1] == ["e"]:
                u, v = sorted(map(int, words[1:]))
                if not 1 <= u < v <= nodes:
                    wrong = f"{u}-{v} is no edge between two of the nodes 1 to {nodes}"
                    raise ValueError
                edges[f"v{u}", f"v{v}"] = None
            elif words and words[0] != "c":
                wrong = f"{line!r:.60} begins with none of c, p, e"
                raise ValueError
        except (IndexError, ValueError) as error:
            raise ConfigError(f"{path}:{number}: {wrong}; write `p edge NODES EDGES`, then `e U V`") from error
    return Problem(tuple(f"v{node}" for node in range(1, nodes + 1)), tuple(edges), name=path.stem)
