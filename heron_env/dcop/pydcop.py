"""Problems as pyDCOP's YAML: https://pydcop.readthedocs.io, "YAML file formats".

Read are problems whose constraints are intentions `COST if U == V else 0`, all of one cost, over variables of one
domain. A cluster is an agent that must host its nodes; agents that need host nothing are placeholders.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, Final, NoReturn

from heron_env import errors
from heron_env.dcop.problem import Edge, Problem
from heron_env.errors import ConfigError, DeclarationError
from heron_env.files.yaml_file import YamlFile

NUMBER: Final = r"(\d+(?:\.\d*)?(?:[eE][-+]?\d+)?)"
NAME: Final = r"([^\s=!()]+)"
INTENTION: Final = re.compile(rf"\s*{NUMBER}\s+if\s+{NAME}\s*==\s*{NAME}\s+else\s+0(?:\.0*)?\s*")


def to_pydcop(problem: Problem) -> str:
    """Its text. Raises ConfigError: it has preferences or fixed nodes, or a name that is no Python variable."""
    if problem.preferences or problem.fixed:
        raise ConfigError("pyDCOP's YAML: preferences and fixed nodes have no place there; write the problem as .json")
    for node in problem.nodes:
        if not node.isidentifier():
            raise ConfigError(f"pyDCOP's YAML: the node {node!r} is no name of a Python variable; rename it")
    cost, owners = repr(problem.conflict_penalty), problem.clusters or {"everybody": problem.nodes}
    lines = [f"name: {_quoted(problem.name)}", "objective: min", "domains:"]
    lines += [f"  colours: {{values: {_listed(problem.domain)}}}", "variables:"]
    lines += [f"  {_quoted(node)}: {{domain: colours}}" for node in problem.nodes]
    lines += ["constraints:" if problem.edges else "constraints: {}"]
    for number, (u, v) in enumerate(problem.edges):
        lines.append(f"  k{number}: {{type: intention, function: {cost} if {u} == {v} else 0}}")
    lines += ["agents:", *(f"  {_quoted(owner)}: {{capacity: {10**6}}}" for owner in owners)]
    lines += ["distribution_hints:", "  must_host:"]
    lines += [f"    {_quoted(owner)}: {_listed(nodes)}" for owner, nodes in owners.items()]
    return "\n".join(lines) + "\n"


def from_pydcop(path: Path, text: str) -> Problem:
    """The problem in a text of `path`. Raises ConfigError with file and line."""
    file = YamlFile.parse(text, str(path))
    variables, constraints = _mapping(file, "variables"), _mapping(file, "constraints")
    read = [_intention(file, name, constraint) for name, constraint in constraints.items()]
    costs = {cost for cost, _ in read}
    if len(costs) > 1:
        raise ConfigError(f"{file.name}: conflicts cost {sorted(costs)}; give all constraints the same cost")
    try:
        return Problem(
            nodes=tuple(map(str, variables)),
            edges=tuple(edge for _, edge in read),
            domain=_domain(file, variables),
            clusters=_clusters(file),
            conflict_penalty=costs.pop() if costs else 10.0,
            name=str(file.data.get("name", path.stem)),
        )
    except DeclarationError as error:
        # The same mistakes where this file has them.
        entries: dict[object, tuple[tuple[Any, ...], list[Any]]] = {
            "nodes": (("variables",), list(variables)),
            "edges": (("constraints",), list(constraints)),
        }
        moved = []
        for path_, message, _ in error.problems:
            head, *rest = path_
            if head in entries and rest:
                home, names = entries[head]
                path_ = (*home, names[int(rest[0])])
            elif head == "clusters":
                path_ = ("distribution_hints", "must_host", *rest)
            moved.append(errors.Problem(path_, message))
        raise file.located(DeclarationError(moved)) from None


def _mapping(file: YamlFile, *path: str) -> dict[Any, Any]:
    """What stands there. Raises ConfigError unless it is a mapping."""
    value: Any = file.data
    for part in path:
        value = value.get(part) if isinstance(value, dict) else None
    if not isinstance(value, dict):
        _refuse(file, path, "must be a mapping, as in pyDCOP's files")
    return value


def _refuse(file: YamlFile, path: tuple[Any, ...], message: str) -> NoReturn:
    raise file.located(DeclarationError([errors.Problem(path, message)]))


def _domain(file: YamlFile, variables: dict[Any, Any]) -> tuple[str, ...]:
    """The one of all variables."""
    used = {str(told.get("domain")) if isinstance(told, dict) else "none" for told in variables.values()}
    if len(used) != 1:
        _refuse(file, ("variables",), f"have the domains {', '.join(sorted(used))}; give all of them one domain")
    values = _mapping(file, "domains", *used).get("values")
    if not isinstance(values, list):
        _refuse(file, ("domains", *used), "must have a list of values")
    return tuple(values)


def _intention(file: YamlFile, name: object, constraint: Any) -> tuple[float, Edge]:
    """Cost and ends of a constraint."""
    told = constraint.get("function") if isinstance(constraint, dict) else None
    found = INTENTION.fullmatch(told) if isinstance(told, str) else None
    if found is None:
        _refuse(file, ("constraints", name), "must be {type: intention, function: 10 if u == v else 0}")
    cost, u, v = found.groups()
    return float(cost), (u, v)


def _clusters(file: YamlFile) -> dict[Any, Any]:
    """Agents that must host nodes, with these."""
    hints = file.data.get("distribution_hints")
    hosts = hints.get("must_host") if isinstance(hints, dict) else None
    return hosts if isinstance(hosts, dict) and hosts.keys() != {"everybody"} else {}


def _quoted(name: str) -> str:
    return json.dumps(name, ensure_ascii=False)


def _listed(names: tuple[str, ...]) -> str:
    return f"[{', '.join(map(_quoted, names))}]"
