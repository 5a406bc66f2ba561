"""pyDCOP's YAML (https://pydcop.readthedocs.io, "YAML file formats"): graph colouring is read, all else refused.

A constraint of two variables is an edge if it costs one number where they are equal, and one that is smaller where they
are not; the difference must be the same for all. What a variable costs by itself is a preference with the other sign.
With `objective: max` all numbers are gains. A cluster is an agent that must host its nodes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from itertools import product
from keyword import iskeyword
from pathlib import Path
from typing import Any, Final, NoReturn

import numpy as np
from numpy.typing import NDArray

from heron_env import errors
from heron_env.dcop.expressions import Expression
from heron_env.dcop.problem import MOST_COLOURS, OBJECTIVES, Edge, Problem
from heron_env.errors import ConfigError, DeclarationError, did_you_mean
from heron_env.files.yaml_file import YamlFile
from heron_env.given import is_number, is_one_of

Costs = NDArray[np.float64]
Place = tuple[object, ...]
SECTIONS: Final = ("domains", "variables", "constraints", "agents", "routes", "hosting_costs", "distribution_hints")
RANGE: Final = re.compile(r"\s*([-+]?\d{1,9})\s*\.\.\s*([-+]?\d{1,9})\s*")
UNREAD: Final = {
    "external_variables": "what changes in the midst of a run",
    "initial_value": "a start, which is drawn from the seed",
    "noise_level": "noise in the costs",
    "source": "Python files",
    "host_with": "which nodes belong together; write them below must_host",
}
"""Keys of pyDCOP that would change the result, and what they say."""


def to_pydcop(problem: Problem) -> str:
    """Its text. Raises ConfigError: it has fixed nodes, or a name that is no Python variable."""
    if problem.fixed:
        raise ConfigError("pyDCOP's YAML: fixed nodes have no place there; write the problem as .json")
    for node in problem.nodes:
        if not node.isidentifier() or iskeyword(node):
            raise ConfigError(f"pyDCOP's YAML: the node {node!r} is no name of a Python variable; rename it")
    sign = OBJECTIVES[problem.objective]
    cost, owners = repr(sign * problem.conflict_penalty), problem.clusters or {"everybody": problem.nodes}
    lines = [f"name: {_quoted(problem.name)}", f"objective: {problem.objective}", "domains:"]
    lines += [f"  colours: {{values: {_listed(problem.domain)}}}", "variables:"]
    for node in problem.nodes:
        gains = problem.preferences.get(node, {})
        terms = [f"{-sign * gain!r} if {node} == {colour!r} else" for colour, gain in gains.items()]
        function = f", cost_function: {_quoted(' '.join([*terms, '0']))}" if terms else ""
        lines.append(f"  {_quoted(node)}: {{domain: colours{function}}}")
    lines += ["constraints:" if problem.edges else "constraints: {}"]
    for number, (u, v) in enumerate(problem.edges):
        lines.append(f"  k{number}: {{type: intention, function: {cost} if {u} == {v} else 0}}")
    lines += ["agents:", *(f"  {_quoted(owner)}: {{capacity: {10**6}}}" for owner in owners)]
    lines += ["distribution_hints:", "  must_host:"]
    lines += [f"    {_quoted(owner)}: {_listed(nodes)}" for owner, nodes in owners.items()]
    return "\n".join(lines) + "\n"


def _quoted(name: str) -> str:
    return json.dumps(name, ensure_ascii=False)


def _some(names: Iterable[object]) -> str:
    """At most five of them, in words."""
    first = [str(name) for name in names]
    return ", ".join(first[:5]) + ", ..." * (len(first) > 5) or "none"


def _listed(names: tuple[str, ...]) -> str:
    return f"[{', '.join(map(_quoted, names))}]"


def from_pydcop(path: Path, text: str) -> Problem:
    """The problem in a text of `path`. Raises ConfigError with file and line."""
    return PyDcopFile(YamlFile.parse(text, str(path))).problem(path.stem)


class PyDcopFile:
    """One file of pyDCOP, read section by section; costs are the file's own numbers, gains if it maximises."""

    def __init__(self, file: YamlFile) -> None:
        self.file = file
        self._require_keys((), file.data, ("name", "description", "objective", *SECTIONS))
        self.objective = file.data.get("objective")
        if not is_one_of(self.objective, OBJECTIVES):
            self._refuse(("objective",), f"must be min or max, got {self.objective!r:.60}")
        self.variables = self._mapping("variables")
        self.nodes = {str(name): name for name in self.variables}
        self.domain, self.values = self._domain()
        self.own: dict[str, Costs] = {str(name): self._own(name) for name in self.variables}
        """What each colour costs a variable by itself, `[colours]`."""
        self.edges: dict[str, Edge] = {}
        """By the name of its constraint."""
        self.penalty, self.first = 0.0, ""
        for name, constraint in self._mapping("constraints").items():
            self._add(str(name), constraint)
        self.hosts = self._hosts()

    def problem(self, name: str) -> Problem:
        """The problem of the file. Raises DeclarationError with file and line."""
        own = {node: OBJECTIVES[str(self.objective)] * costs for node, costs in self.own.items() if costs.any()}
        names = [str(value) for value in self.values]
        try:
            return Problem(
                nodes=tuple(self.own),
                edges=tuple(self.edges.values()),
                domain=tuple(names),
                clusters={owner: tuple(nodes.values()) for owner, nodes in self.hosts.items()},
                conflict_penalty=self.penalty or 10.0,
                preferences={node: dict(zip(names, (-costs).tolist(), strict=True)) for node, costs in own.items()},
                name=str(self.file.data.get("name", name)),
                objective=str(self.objective),
            )
        except DeclarationError as error:
            moved = [errors.Problem(self._moved(problem.path), problem.message) for problem in error.problems]
            raise self.file.located(DeclarationError(moved)) from None

    def _moved(self, path: tuple[Any, ...]) -> tuple[Any, ...]:
        """Where the file has what has this path in a problem."""
        match path:
            case ("nodes", int(number), *_):
                return ("variables", [*self.own][number])
            case ("edges", int(number), *_):
                return ("constraints", [*self.edges][number])
            case ("domain", *rest):
                return ("domains", self.domain, "values", *rest)
            case ("clusters", owner, int(number)):
                return ("distribution_hints", "must_host", owner, [*self.hosts[owner]][number])
            case ("clusters", *rest):
                return ("distribution_hints", "must_host", *rest)
        return path

    # Sections

    def _domain(self) -> tuple[str, list[Any]]:
        """Name and values of the one of all variables."""
        for name, variable in self.variables.items():
            self._require_keys(("variables", name), variable, ("domain", "cost_function"))
        used = {str(variable.get("domain")) for variable in self.variables.values()}
        if len(used) != 1:
            self._refuse(("variables",), f"have the domains {', '.join(sorted(used))}; give all of them one domain")
        (name,) = used
        domain: Any = {str(key): value for key, value in self._mapping("domains").items()}.get(name)
        where = ("domains", name)
        self._require_keys(where, domain, ("values", "type"))
        values = domain.get("values")
        if isinstance(values, list) and len(values) == 1 and isinstance(values[0], str):
            if (limits := RANGE.fullmatch(values[0])) is None:
                self._refuse((*where, "values"), "must be a list of values, or a range as [1 .. 10]")
            least, most = map(int, limits.groups())
            values = [*range(least, min(most, least + MOST_COLOURS) + 1)]
        if not isinstance(values, list) or not all(isinstance(value, str | int | float) for value in values):
            self._refuse((*where, "values"), "must be a list of texts or numbers")
        if not 2 <= len(values) <= MOST_COLOURS:
            self._refuse((*where, "values"), f"must be 2 to {MOST_COLOURS} colours")
        return name, values

    def _own(self, name: object) -> Costs:
        """What its colours cost a variable, `[colours]`."""
        function = self.variables[name].get("cost_function")
        if function is None:
            return np.zeros(len(self.values))
        where = ("variables", name, "cost_function")
        names, costs = self._computed(where, function)
        if names not in ((), (str(name),)):
            self._refuse(where, f"must be an expression of {name} alone, and has {', '.join(names)}")
        return np.broadcast_to(costs, len(self.values)).copy()

    def _add(self, name: str, constraint: Any) -> None:
        """One constraint, to the edges or to what variables cost."""
        where = ("constraints", name)
        if not isinstance(constraint, dict) or constraint.get("type") not in ("intention", "extensional"):
            self._refuse(where, "must be {type: intention, function: 10 if u == v else 0}, or of the type extensional")
        if constraint["type"] == "intention":
            self._require_keys(where, constraint, ("type", "function"))
            names, costs = self._computed(where, constraint.get("function"))
        else:
            self._require_keys(where, constraint, ("type", "variables", "values", "default"))
            names, costs = self._enumerated(where, constraint)
        if len(names) == 1:
            self.own[names[0]] += costs
        elif len(names) == 2:
            self._add_edge(name, (names[0], names[1]), costs)
        else:
            self._refuse(where, f"depends on {len(names)} variables; an edge has two, a cost one")

    def _add_edge(self, name: str, edge: Edge, costs: Costs) -> None:
        """An edge, from its costs `[colours, colours]`; what it costs in any case goes to its first end."""
        where, sign = ("constraints", name), OBJECTIVES[str(self.objective)]
        apart = float(costs[0, 1])
        penalty = sign * (float(costs[0, 0]) - apart)
        same = np.eye(len(self.values), dtype=bool)
        if not (costs[same] == costs[0, 0]).all() or not (costs[~same] == apart).all():
            self._refuse(
                where,
                "is no edge of a graph to colour: its ends must cost one number where they are equal and another where "
                "they are not, as 10 if u == v else 0",
            )
        if penalty < 0:
            words = "costs less" if sign > 0 else "gains more"
            self._refuse(where, f"{words} where its ends are equal; heron colours graphs, whose ends should differ")
        self.own[edge[0]] += apart
        if not penalty:
            return
        if self.penalty and penalty != self.penalty:
            words = f"a conflict costs {penalty:g}, and {self.penalty:g} in {self.first}"
            self._refuse(where, f"{words}; give all constraints the same cost")
        self.penalty, self.first = penalty, self.first or name
        self.edges[name] = edge

    def _hosts(self) -> dict[str, dict[int, Any]]:
        """Agents that must host nodes, with these and their places in the file; constraints belong to nobody."""
        agents = self.file.data.get("agents", {})
        if not isinstance(agents, dict | list):
            self._refuse(("agents",), "must be a list or a mapping")
        hints: Any = self.file.data.get("distribution_hints") or {}
        self._require_keys(("distribution_hints",), hints, ("must_host",))
        if not (hosts := hints.get("must_host")):
            return {}
        hosts, where = self._mapping("distribution_hints", "must_host"), ("distribution_hints", "must_host")
        for owner, nodes in hosts.items():
            if not isinstance(nodes, list):
                self._refuse((*where, owner), f"must be a list, as [{nodes!s:.60}]")
            if owner not in agents:
                self._refuse((*where, owner), f"{owner!r:.60} is no agent of this file; there are {_some(agents)}")
        if hosts.keys() == {"everybody"}:
            return {}
        constraints = self._mapping("constraints").keys() - self.variables.keys()
        return {
            str(owner): {place: node for place, node in enumerate(nodes) if not is_one_of(node, constraints)}
            for owner, nodes in hosts.items()
        }

    # Costs

    def _computed(self, where: Place, text: Any) -> tuple[tuple[str, ...], Costs]:
        """Variables of an expression, and its value for their colours, `[colours] * variables`."""
        wanted = "must be an expression such as 10 if u == v else 0"
        if isinstance(text, bool) or not isinstance(text, str | int | float):
            self._refuse(where, f"{wanted}, got {text!r:.60}")
        try:
            expression = Expression(str(text))
        except ValueError as error:
            self._refuse(where, f"{wanted}: {error}")
        names = expression.names
        self._require_nodes(where, names)
        if len(names) > 2:
            return names, np.zeros(0)
        try:
            rows = product(self.values, repeat=len(names))
            costs = [expression.value(dict(zip(names, row, strict=True))) for row in rows]
        except ValueError as error:
            self._refuse(where, f"{wanted}: {error}")
        return names, np.reshape(costs, [len(self.values)] * len(names))

    def _enumerated(self, where: Place, constraint: dict[Any, Any]) -> tuple[tuple[str, ...], Costs]:
        """Variables of a constraint that lists assignments by cost, and its costs, `[colours] * variables`."""
        listed, values, default = constraint.get("variables"), constraint.get("values"), constraint.get("default")
        names = tuple(map(str, listed if isinstance(listed, list) else [listed]))
        self._require_nodes((*where, "variables"), names)
        if len(set(names)) < len(names) or len(names) > 2:
            self._refuse((*where, "variables"), "must be one variable, or two different ones")
        if not isinstance(values, dict):
            self._refuse((*where, "values"), "must be a mapping from cost to assignments, as 10: R R | G G")
        if default is not None and not is_number(default):
            self._refuse((*where, "default"), f"must be a finite number, got {default!r:.60}")
        colours = [str(value) for value in self.values]
        costs = np.full([len(colours)] * len(names), np.nan)
        for cost, assignments in values.items():
            place = (*where, "values", cost)
            if not is_number(cost):
                self._refuse(place, f"the cost must be a finite number, got {cost!r:.60}")
            for assignment in str(assignments).split("|"):
                row = assignment.split() if len(names) > 1 else [assignment.strip()]
                if len(row) != len(names) or not all(colour in colours for colour in row):
                    self._refuse(place, f"{assignment.strip()!r:.60} is no assignment of {', '.join(names)}")
                entry = tuple(map(colours.index, row))
                if not np.isnan(costs[entry]):
                    self._refuse(place, f"{assignment.strip()!r:.60} has another cost already")
                costs[entry] = cost
        if default is None and np.isnan(costs).any():
            lacking = " ".join(colours[code] for code in np.argwhere(np.isnan(costs))[0])
            self._refuse(where, f"says no cost of {lacking!r}; add it, or a default")
        return names, np.where(np.isnan(costs), np.nan if default is None else default, costs)

    # Faults

    def _require_nodes(self, where: Place, names: Iterable[str]) -> None:
        for name in names:
            if name not in self.nodes:
                self._refuse(where, f"{name!r:.60} is no node of this problem.{did_you_mean(name, self.nodes)}")

    def _require_keys(self, where: Place, value: Any, keys: tuple[str, ...]) -> None:
        """Refuse what is no mapping, and the first key that is not read."""
        if not isinstance(value, dict):
            self._refuse(where, f"must be a mapping with {', '.join(keys)}, as in pyDCOP's files")
        for key, content in value.items():
            why = UNREAD.get(key) if isinstance(key, str) else None
            if key in keys or (why and (content is None or content == {} or (key == "noise_level" and content == 0))):
                continue
            words = f"says {why}: heron does not read it" if why else "is no key of pyDCOP that heron reads"
            self._refuse((*where, key), f"{words}; remove it.{'' if why else did_you_mean(key, keys)}")

    def _mapping(self, *path: str) -> dict[Any, Any]:
        """What stands there. Refuses what is no mapping."""
        value: Any = self.file.data
        for part in path:
            value = value.get(part) if isinstance(value, dict) else None
        if not isinstance(value, dict):
            self._refuse(path, "must be a mapping, as in pyDCOP's files")
        return value

    def _refuse(self, path: Place, message: str) -> NoReturn:
        parts = tuple(str(part) for part in path)
        raise self.file.located(DeclarationError([errors.Problem(parts, message)]))
