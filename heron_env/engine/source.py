"""The source: the rules of a set of agent classes as short text for numba, with every count and offset left to data.

One function per kind of agent and rule loads what the rule reads, calls it, clips and stores what it returns; loops.py
goes through all agents. `t`, `a`, `rewards` have a leading axis over lanes `b`; `i` is the agent's
position. `tab` and `gather` are made in tables.py, what is called comes from kernels.py. numba is not needed here.
"""

from __future__ import annotations

import re
from collections import namedtuple
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, get_type_hints

from heron_env.core.feature import FeatureProvider
from heron_env.core.hierarchy import Hierarchy
from heron_env.core.layout import Layout
from heron_env.core.quantity import Quantity
from heron_env.core.rule import RULE_NAMES, Parameter, parameters, rule_spec
from heron_env.engine.binding import require_rule_names, require_writes
from heron_env.errors import RuleError

Feature = type[FeatureProvider]
OFFSET, ACTION, ACTION_END, CHILD, CHILDREN, INFO, KIND, MASK, MASK_END = range(9)
"""Columns of `tab`; references follow: a first column per parent's feature; first, step, count per children's."""
REFERENCES = 9
IMPORTS = [
    "allocating", "column", "failure", "floats", "inlined", "leaf", "number", "phase", "refused", "refused_vector",
    "shown", "store", "sum_of_children", "table", "whole", "within",
]  # fmt: skip
ARGUMENTS = ("t", "a", "rewards", "b", "i", "tab", "gather", "g", "dt", "time")
"""Of every generated function; `get_local_info` takes the array of infos in place of the rewards, and `action_mask` the
masks in place of the rewards and what agents see of themselves in place of the truth.
"""
MASKING = ["allow", "forbid", "look", "nothing_allowed"]
"""What masks need, of decision_kernels.py."""
SHARED = ["note", "settle", "start_close"]
"""What the loops take from loop_kernels.py."""
LOCAL = "D accept_action np o r first step n by kind ALLOCATES INFOS"
TAKEN = {*ARGUMENTS, *IMPORTS, *SHARED, *MASKING, *RULE_NAMES, *LOCAL.split()}


@dataclass(frozen=True)
class CompilerFacts:
    """What only a compiler finds out: which functions allocate, and the fields of each kind's info."""

    allocates: tuple[str, ...] = ()
    infos: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(eq=False)
class Kind:
    """Agents of one class with the same features: their rules, and what those read of parents and children."""

    cls: type
    features: tuple[Feature, ...]
    name: str
    rules: dict[str, tuple[Parameter, ...]] = field(default_factory=dict)
    references: list[tuple[str, Feature]] = field(default_factory=list)

    def reference(self, role: str, feature: Feature) -> int:
        """Column of `tab` where this reference begins."""
        at = REFERENCES
        for registered in self.references:
            if registered == (role, feature):
                return at
            at += 1 if registered[0] == "parent" else 3
        self.references.append((role, feature))
        return at

    @property
    def width(self) -> int:
        """Columns of an agent of this kind in the truth."""
        return sum(feature.width for feature in self.features)

    @property
    def columns(self) -> int:
        """Columns of `tab` that an agent of this kind needs."""
        return REFERENCES + sum(1 if role == "parent" else 3 for role, _ in self.references)


def located(features: tuple[Feature, ...], target: Feature | None) -> tuple[Feature, int] | None:
    """The feature class that stands for `target` in a row, and where it begins; None if there is none."""
    at = 0
    for feature in features:
        if target is not None and issubclass(feature, target):
            return feature, at
        at += feature.width
    return None


def kinds_of(
    hierarchy: Hierarchy, layout: Layout, global_features: tuple[Feature, ...]
) -> tuple[list[Kind], list[int]]:
    """The kinds, sorted by name (the order of agents does not matter), and each rank's kind.

    Raises RuleError for a rule that can't be understood.
    """
    kinds_by_class: dict[tuple[type, tuple[Feature, ...]], Kind] = {}
    of = []
    for agent, row in zip(hierarchy.agents, layout.rows, strict=False):
        key = (type(agent), row.features)
        of.append(kinds_by_class.setdefault(key, Kind(*key, name=re.sub(r"\W", "_", type(agent).__name__))))
    kinds = sorted(kinds_by_class.values(), key=lambda k: [_full_name(k.cls), *map(_full_name, k.features)])
    counts: dict[str, int] = {}
    for kind in kinds:
        counts[kind.name] = counts.get(kind.name, 0) + 1
        kind.name += str(counts[kind.name]) if counts[kind.name] > 1 else ""
        require_rule_names(kind.cls)
        for name in RULE_NAMES:
            function = getattr(kind.cls, name, None)
            if function is not None and (spec := rule_spec(function)) is not None:
                where = f"{kind.cls.__name__}.{name}"
                require_writes(spec, name, where)
                kind.rules[name] = parameters(function, kind.features, global_features, where)
    return kinds, [kinds.index(kind) for kind in of]


class Source:
    """Text of the generated module by what is known of it, and the names it takes from outside."""

    def __init__(self, hierarchy: Hierarchy, layout: Layout, global_features: tuple[Feature, ...] = ()) -> None:
        self.global_features = tuple(global_features)
        self.kinds, self.kind_of = kinds_of(hierarchy, layout, self.global_features)
        self.rules: dict[str, Callable[..., Any]] = {}
        self.titles: dict[str, str] = {}
        self.tuples: dict[str, Any] = {}
        self._named: dict[Feature, str] = {}
        self._bodies = {f"{k.name}_{rule}": self._body(k, rule) for k in self.kinds for rule in k.rules}

    @property
    def ends(self) -> bool:
        """May a rule end an agent?"""
        return any(rule in ("is_terminated", "is_truncated") for kind in self.kinds for rule in kind.rules)

    def text(self, facts: CompilerFacts | None = None) -> str:
        """The module. Without facts nothing is taken to allocate, and infos are as annotated."""
        facts = facts or CompilerFacts((), self.annotated_infos())
        parts = [
            f'"""Rules of {", ".join(k.name for k in self.kinds)} and the loops over them; by heron_env."""\n\n'
            f"import numpy as np\nfrom heron_env.engine.kernels import {', '.join(IMPORTS)}\n"
            f"from heron_env.engine.decision_kernels import {', '.join(self._deciding())}\n"
            f"# compiled once for all sets, in heron_env/engine/loop_kernels.py: {', '.join(SHARED)}\n\n"
            f"ALLOCATES = {tuple(sorted(facts.allocates))!r}\nINFOS = {dict(sorted(facts.infos.items()))!r}"
        ]
        for kind in self.kinds:
            for rule in kind.rules:
                name = f"{kind.name}_{rule}"
                decorator = "allocating" if name in facts.allocates else "leaf"
                lines = [*self._bodies[name]]
                if rule == "get_local_info":
                    fields = facts.infos.get(kind.name, ())
                    lines += [f"rewards[b, tab[i, {INFO}] + {j}] = r[{j}] * 1.0" for j in range(len(fields))]
                    lines.append("return 0")
                parts.append(f"@{decorator}\ndef {name}({', '.join(ARGUMENTS)}):\n{_indented(lines)}")
        return "\n\n\n".join(parts) + "\n"

    def _deciding(self) -> list[str]:
        """What the text takes from decision_kernels.py: what masks need only where there are any."""
        masks = any("action_mask" in kind.rules for kind in self.kinds)
        return ["accept_action", *(MASKING if masks else [])]

    def annotated_infos(self) -> dict[str, tuple[str, ...]]:
        """Fields of each kind's info, where its rule is annotated with a NamedTuple."""
        fields = {}
        for kind in self.kinds:
            if "get_local_info" in kind.rules:
                try:
                    hint = get_type_hints(getattr(kind.cls, "get_local_info")).get("return")  # noqa: B009
                except NameError:
                    hint = None
                fields[kind.name] = tuple(getattr(hint, "_fields", ()))
        return fields

    def _body(self, kind: Kind, rule: str) -> list[str]:
        function = getattr(kind.cls, rule)
        name, spec, where = f"{kind.name}_{rule}", rule_spec(function), f"{kind.cls.__name__}.{rule}"
        assert spec is not None
        self.rules[f"{name}_rule"], self.titles[f"{name}_rule"] = function, where
        lines = [f"o = tab[i, {OFFSET}]"]
        args: list[str] = []
        for parameter in kind.rules[rule]:
            value = parameter.name + "_" if parameter.name in TAKEN else parameter.name
            match parameter.role:
                case "dt" | "time":
                    args.append(parameter.role)
                case "action":
                    args.append(f"shown(a[b, tab[i, {ACTION}]:tab[i, {ACTION_END}]])")
                case "child_rewards":
                    args.append(f"shown(rewards[b, tab[i, {CHILD}]:tab[i, {CHILD}] + tab[i, {CHILDREN}]])")
                case _:
                    lines += self._load(kind, parameter, value)
                    args.append(value)
        lines.append(f"r = {name}_rule({', '.join(args)})")
        if spec.writes:
            lines += _stores(kind, spec.writes, spec.single, where)
        elif rule == "compute_local_reward":
            lines.append("return r * 1.0")
        elif rule == "action_mask":
            lines.append(f"return allow(rewards, b, tab[i, {MASK}], tab[i, {MASK_END}], floats(r))")
        elif rule != "get_local_info":
            lines.append("return bool(r)")
        return lines if any(re.search(r"\bo\b", line) for line in lines[1:]) else lines[1:]

    def _load(self, kind: Kind, parameter: Parameter, value: str) -> list[str]:
        feature = parameter.feature
        assert feature is not None
        if parameter.role == "parent":
            base = f"{value}_at"
            return [f"{base} = tab[i, {kind.reference('parent', feature)}]", self._window(value, feature, base, 0)]
        if parameter.role == "children":
            return list(self._columns(kind, feature, value))
        own = parameter.role == "own"
        location = located(kind.features if own else self.global_features, feature)
        assert location is not None
        return [self._window(value, location[0], "o" if own else "g", location[1])]

    def _window(self, value: str, feature: Feature, base: str, shift: int) -> str:
        """`charge = Charge(t[b, o + 2], int(t[b, o + 3]))`."""
        cells = []
        for q in feature.quantities.values():
            at, end = _plus(base, shift + q.index), _plus(base, shift + q.index + q.size)
            if q.shape:
                shape = f".reshape({q.shape})" if len(q.shape) > 1 else ""
                cells.append(f"shown(t[b, {at}:{end}]{shape})")
            else:
                cells.append(f"t[b, {at}]" if q.kind == "float" else f"int(t[b, {at}])")
        return f"{value} = {self._tuple(feature)}({', '.join(cells)})"

    def _columns(self, kind: Kind, feature: Feature, value: str) -> Iterator[str]:
        at = kind.reference("children", feature)
        yield f"first, step, n = tab[i, {at}], tab[i, {at + 1}], tab[i, {at + 2}]"
        cells = []
        for q in feature.quantities.values():
            low, high, by = (f"{value}_{end}{q.index}" for end in ("from", "to", "by"))
            yield f"{low}, {high}, {by} = column(t, b, gather, first, {q.index}, step, n)"
            cells.append(f"shown(t[b, {low}:{high}:{by}])")
        yield f"{value} = {self._tuple(feature)}({', '.join(cells)})"

    def _tuple(self, feature: Feature) -> str:
        if feature not in self._named:
            name = re.sub(r"\W", "_", feature.__name__)
            while name in TAKEN or name in self.tuples:
                name += "_"
            self._named[feature] = name
            self.tuples[name] = namedtuple(feature.__name__, list(feature.quantities))
        return self._named[feature]

    def tuple_of(self, kind: Kind, parameter: Parameter) -> tuple[Feature, Any]:
        """The feature class that a parameter stands for, and the named tuple that compiled code passes."""
        feature = parameter.feature
        if parameter.role in ("own", "global"):
            location = located(kind.features if parameter.role == "own" else self.global_features, feature)
            feature = location[0] if location else feature
        assert feature is not None
        return feature, self.tuples[self._named[feature]]


def _stores(kind: Kind, writes: tuple[Quantity, ...], single: bool, where: str) -> list[str]:
    """Refuse what is not finite (1 + which write), then clip and store everything."""
    checks, stores = [], []
    for k, q in enumerate(writes):
        location = located(kind.features, q.owner)
        if location is None:
            own = [feature.__name__ for feature in kind.features]
            raise RuleError(f"{where} writes {q!r}, but its features are {own}; rules write their own")
        value, at = "r" if single else f"r[{k}]", _plus("o", location[1] + q.index)
        bounds = f"{_number(q.low)}, {_number(q.high)}"
        if q.shape:
            checks += [f"v{k} = floats({value})", f"if refused_vector(v{k}, {q.size}):", f"    return {k + 1}"]
            stores.append(f"store(t, b, {at}, {q.size}, v{k}, {bounds}, {q.kind != 'float'})")
        else:
            checks += [f"if refused({value}):", f"    return {k + 1}"]
            stores.append(f"t[b, {at}] = within({value if q.kind == 'float' else f'whole({value})'}, {bounds})")
    return [*checks, *stores, "return 0"]


def _plus(base: str, n: int) -> str:
    return f"{base} + {n}" if n else base


def _number(bound: float) -> str:
    return repr(bound) if abs(bound) != float("inf") else "np.inf" if bound > 0 else "-np.inf"


def _indented(lines: list[str]) -> str:
    return "\n".join(f"    {line}" for line in lines)


def _full_name(cls: type) -> str:
    return f"{cls.__module__}.{cls.__qualname__}"
