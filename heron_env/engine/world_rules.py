"""World rules: `begin`, `advance`, `finish`, `training_rewards`, `sees`, `link` of a class, for one lane each.

`world` becomes a named tuple of the classes' columns, the global features, time and step. A class in the rule is
replaced by its number, so that `world[Battery]` is an element of the tuple; apart from that rules are compiled as they
are. Counts and offsets are data (`coh`); widths, sizes and bounds, which belong to the classes, are in the text.

A rule that declares what it writes may write nothing else, which the compiler sees to, and only that is clipped
afterwards; where nothing is declared, the caller brings all columns into their bounds.
"""

from __future__ import annotations

import re
from collections import namedtuple
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cached_property
from types import FunctionType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heron_env.agents.agent import Agent
from heron_env.core.feature import FeatureProvider
from heron_env.core.layout import Cohort, Layout
from heron_env.core.quantity import Quantity
from heron_env.core.rule import rule_spec
from heron_env.core.world import cohort_of, no_global
from heron_env.engine.arrays import CHANCE, FACTOR
from heron_env.engine.checking import Linker, explained, first_that_compiles
from heron_env.errors import RuleError, UnknownFeature, did_you_mean
from heron_env.scheduling.links import MOST_FACTOR

WORLD_RULES = ("begin", "advance", "finish", "training_rewards", "sees", "link")
READING = ("world_training_rewards_rule", "world_sees_rule", "world_link_rule")
"""Those that write nothing."""
WORLD_ARGUMENTS = ("t", "b", "coh", "g", "dt", "time", "step", "seed", "episode")
"""Of every generated function: truth `[lanes, columns]`, lane, cohorts' offsets and counts, first global column, s, s,
control steps, and two uint64."""
OWN = ("time", "step", "seed", "episode")
"""Of the world itself; in the tuple between the cohorts and the global features, whose names come second."""
KERNEL_NAMES = ("as_world", "block_of", "clip_block", "column_of", "lane_rule")
"""What the text takes from world_kernel.py."""
SEES = [
    "for k in range(begin, end):",
    "    t[b, asked[k, 2]] = 0.0 + world_sees_rule(world, asked[k, 0], asked[k, 1])",
    "return 0",
]
LINK = [
    "factor, chance = world_link_rule(world, sender, receiver)",
    f"ways[b, {FACTOR}] = within(factor * 1.0, 0.0, {MOST_FACTOR})",
    f"ways[b, {CHANCE}] = within(chance * 1.0, 0.0, 1.0)",
    "return int(factor != factor or chance != chance)",
]
ASKED = {"sees": (["asked", "begin", "end"], SEES), "link": (["ways", "sender", "receiver"], LINK)}
"""Rules that are asked at any instant, of two numbers: what their functions take besides, and do. They may not draw."""
_MISSING = re.compile(r"Unknown attribute '(\w+)' of type (\w+)\(")
_DRAW = "the name of a draw must be written out where it is drawn", "it draws, where it may only read"


class WorldSource:
    """Text of the world rules of an environment class, and the names it takes from outside.

    rules: by name in the text, the functions to link. titles: what messages call them. tuples: named tuples.
    """

    def __init__(
        self, layout: Layout, global_features: Sequence[type[FeatureProvider]],
        rules: Mapping[str, Callable[..., Any]], owner: str = "world",
    ) -> None:  # fmt: skip
        """`rules`: those of WORLD_RULES that there are; `owner`: name of the class that has them.

        Raises UnknownFeature where a rule names a class that no agent is of.
        """
        self._cohorts = sorted(layout.cohorts[:-1], key=_name)
        self._global_features = tuple(global_features)
        self.tuples: dict[str, Any] = {}
        self._fields: dict[str, list[str]] = {}
        self._lines = self._world()
        self._writes: dict[str, tuple[Quantity, ...]] = {}
        self.rules: dict[str, FunctionType] = {}
        self.titles: dict[str, str] = {}
        self._linker_of: dict[str, Linker] = {}
        numbered = _Numbered([c.cls for c in self._cohorts])
        for name, rule in rules.items():
            title = numbered.title = f"{owner}.{name}"
            assert isinstance(rule, FunctionType)
            self.rules[f"world_{name}_rule"] = numbered.link(rule)
            self.titles[f"world_{name}_rule"] = title
            spec = rule_spec(rule)
            self._writes[f"world_{name}_rule"] = spec.writes if spec is not None else ()
            for q in self._writes[f"world_{name}_rule"]:
                self._require_declared(q, title)

    def _require_declared(self, q: Quantity, title: str) -> None:
        features = [feature for cohort in self._cohorts for feature in cohort.features]
        if not any(_is(q, own) for f in (*features, *self._global_features) for own in f.quantities.values()):
            names = sorted({feature.__name__ for feature in (*features, *self._global_features)})
            raise RuleError(f"{title} writes {q!r}, but no agent has it, nor the world; features are {names}")

    def table(self) -> NDArray[np.int64]:
        """`coh`: offset and count of each cohort, in the order of the text."""
        rows = [(cohort.offset, cohort.count) for cohort in self._cohorts]
        return np.asarray(rows or [(0, 0)], dtype=np.int64)

    @property
    def hooks(self) -> dict[str, bool]:
        """Which of WORLD_RULES are rules; does each declare what it writes?"""
        return {rule.removeprefix("world_").removesuffix("_rule"): bool(self._writes[rule]) for rule in self.rules}

    def text(self, allocates: Collection[str] = ()) -> str:
        """One function for each of WORLD_RULES; 1: a nan was written, 0: none, or nothing is clipped yet.

        What trainers use is returned. `allocates`: the names of those that make arrays.
        """
        parts = []
        for name in WORLD_RULES:
            rule, lines, more = f"world_{name}_rule", ["return 0"], list[str]()
            if name == "training_rewards":
                if rule not in self.rules:
                    continue
                lines = [*self._lines, f"return {rule}(world)"]
            elif rule in self.rules:
                called = f"{rule}(world{', dt' if name == 'advance' else ''})"
                lines = [*self._lines, called, *self._clips(self._writes[rule])]
            if name in ASKED:
                if rule not in self.rules:
                    continue
                more, lines = ASKED[name][0], [*self._lines, *ASKED[name][1]]
            head = f"def world_{name}({', '.join([*WORLD_ARGUMENTS, *more])}):"
            decorator = "allocating" if f"world_{name}" in allocates else "lane_rule"
            parts.append("\n".join([f"@{decorator}", head, *(f"    {line}" for line in lines)]))
        return "\n\n\n".join(parts) + "\n"

    def _clips(self, writes: tuple[Quantity, ...]) -> list[str]:
        """Lines that clip what is declared to be written, neighbours of the same bounds together, and return."""
        if not writes:
            return ["return 0"]
        lines = ["bad = False"]
        rows = [(c.features, f"coh[{k}, 0]", f"coh[{k}, 1]") for k, c in enumerate(self._cohorts)]
        for features, first, count in [*rows, (self._global_features, "g", "1")]:
            width = sum(feature.width for feature in features)
            for start, size, bounds in _spans(features, writes):
                lines.append(
                    f"bad |= clip_block(block_of(t, b, {first} + {start}, {count}, {width}, {size}), {bounds})"
                )
        return [*lines, "return int(bad)"]

    def _world(self) -> list[str]:
        """Lines that build `world` for lane `b`."""
        lines, names = [], list[str]()
        for k, cohort in enumerate(self._cohorts):
            features = []
            for feature, shift in zip(cohort.features, _shifts(cohort.features), strict=True):
                features.append(self._columns(feature, f"coh[{k}, 0] + {shift}", f"coh[{k}, 1]", cohort.width))
            made = self._tuple(cohort.cls.__name__, [f.feature_name for f in cohort.features])
            names.append(f"cohort_{k}")
            lines.append(f"{names[-1]} = {made}({', '.join(features)})")
        cohorts, width = list(names), sum(feature.width for feature in self._global_features)
        for k, (feature, shift) in enumerate(zip(self._global_features, _shifts(self._global_features), strict=True)):
            names.append(f"global_{k}")
            lines.append(f"{names[-1]} = {self._columns(feature, f'g + {shift}', '1', width)}")
        made = self._tuple("World", [*cohorts, *OWN, *(f.feature_name for f in self._global_features)])
        lines.append(f"world = as_world({made}({', '.join([*cohorts, *OWN, *names[len(cohorts) :]])}))")
        return lines

    def _columns(self, feature: type[FeatureProvider], first: str, count: str, step: int) -> str:
        """`Charge(column_of(t, b, coh[0, 0] + 2, coh[0, 1], 7), ...)`."""
        cells = []
        for q in feature.quantities.values():
            start = f"t, b, {first} + {q.index}, {count}, {step}"
            cells.append(f"block_of({start}, {q.size})" if q.shape else f"column_of({start})")
        return f"{self._tuple(feature.feature_name, list(feature.quantities))}({', '.join(cells)})"

    def _tuple(self, name: str, fields: list[str]) -> str:
        """Name in the text of the named tuple with these fields."""
        made = re.sub(r"\W", "_", name) + "_columns" * (name != "World")
        while made in self.tuples and self._fields[made] != fields:
            made += "_"
        if made not in self.tuples:
            self._fields[made] = fields
            self.tuples[made] = namedtuple(made, fields, rename=True)
        return made

    # Compiling each rule alone

    def examined(self) -> tuple[str, ...]:
        """Compile every rule alone. Returns the names, as in the text, of those that make arrays.

        Raises RuleError with the user's line for what can't be compiled.
        """
        names = sorted(self.rules, key=self._draws)  # rules that draw take helpers as the others compiled them
        return tuple(name.removesuffix("_rule") for name in names if self._allocates(name))

    def linked(self, name: str, allocates: Collection[str]) -> Any:
        """The compiled form of `rules[name]`, to stand in the module."""
        other = self._linkers[-1 if name.removesuffix("_rule") in allocates else 0]
        return self._linker_of.get(name, other).link(self.rules[name])

    @cached_property
    def _linkers(self) -> tuple[Linker, ...]:
        """For rules that make no arrays; for those that do, but call what does not; for all others."""
        from heron_env.engine.world_kernel import world_allocating, world_leaf

        leaves = Linker(world_leaf)
        return leaves, Linker(world_allocating, leaves), Linker(world_allocating)

    def _draws(self, name: str) -> bool:
        return "draw" in self.rules[name].__code__.co_names

    def _allocates(self, name: str) -> bool:
        """Is the rule refused without reference counts, and not with them? One that draws needs no trying."""
        import numba

        of_two = name.removeprefix("world_").removesuffix("_rule") in ASKED
        more = (numba.types.float64,) if name == "world_advance_rule" else (numba.types.int64,) * (2 * of_two)
        types = (self._world_type(self._writes[name], name in READING, draws=not of_two), *more)
        linker, failed = first_that_compiles(self._linkers[self._draws(name) :], self.rules[name], types)
        if failed is not None:
            raise self._explained(failed, name, linker.codes) from failed
        returned = linker.link(self.rules[name]).overloads[types].signature.return_type
        if wrong := _why_wrong(name, returned):
            raise RuleError(f"{self.titles[name]} returns {returned}; return {wrong}")
        self._linker_of[name] = linker
        return linker is not self._linkers[0]

    def _world_type(self, writes: tuple[Quantity, ...], reads: bool, draws: bool) -> Any:
        """The numba type of `world`, where only `writes` may be written, all if these are none; `reads`: nothing.

        `draws`: may the rule draw?
        """
        import numba

        from heron_env.engine.world_kernel import ReadWorldType, WorldType

        types: Any = numba.types

        def column(q: Quantity) -> Any:
            closed = reads or (bool(writes) and not any(_is(written, q) for written in writes))
            return types.Array(types.float64, 2 if q.shape else 1, "A", readonly=closed)

        def of(feature: type[FeatureProvider]) -> Any:
            made = self.tuples[self._tuple(feature.feature_name, list(feature.quantities))]
            return types.BaseTuple.from_types([column(q) for q in feature.quantities.values()], made)

        parts = []
        for cohort in self._cohorts:
            made = self.tuples[self._tuple(cohort.cls.__name__, [f.feature_name for f in cohort.features])]
            parts.append(types.BaseTuple.from_types([of(feature) for feature in cohort.features], made))
        parts += [types.float64, types.int64, types.uint64, types.uint64]
        parts += [of(feature) for feature in self._global_features]
        return (WorldType if draws else ReadWorldType)(parts, self.tuples["World"])

    def _explained(self, failed: Exception, name: str, codes: Sequence[Any]) -> RuleError:
        """numba's error with the user's line; a name that is no feature or field as `World` would say it."""
        text, reason = str(failed), None
        missing = _MISSING.search(text)
        if drawn := [why for why in _DRAW if why in text]:
            reason = drawn[0]
        elif "readonly array" in text and name in READING:
            reason = "it writes into the world, which it may only read"
        elif "readonly array" in text:
            reason = f"it writes what it does not declare, which is {list(self._writes[name])}"
        elif missing is not None and missing[2] in self._fields:
            owner, names = missing[2].partition("_columns")[0], self._fields[missing[2]]
            carriers = [(c.cls.__name__, [f.feature_name for f in c.features]) for c in self._cohorts]
            if missing[2] == "World":
                reason = no_global(missing[1], [name for name in names if not name.startswith("cohort_")], carriers)
            else:
                cohort = owner in dict(carriers)
                what = (
                    "no feature {!r} here; there are {}" if cohort else f"{owner} has no field {{!r}}; fields are {{}}"
                )
                reason = what.format(missing[1], names) + "." + did_you_mean(missing[1], names)
        return explained(failed, self.titles[name], self.rules[name], codes, {}, reason)


def _why_wrong(name: str, returned: Any) -> str:
    """What a rule should return whose result is of this numba type; "" if it does."""
    from numba import types

    if name == "world_sees_rule" and not isinstance(returned, types.Boolean):
        return "a bool on every path"
    if name == "world_training_rewards_rule" and not (isinstance(returned, types.Array) and returned.ndim == 1):
        return "an array, `[possible agents]`"
    parts = list(returned) if isinstance(returned, types.BaseTuple) else []
    if name == "world_link_rule" and [isinstance(part, types.Integer | types.Float) for part in parts] != [True] * 2:
        return "(factor on the delay, probability of loss), two numbers, on every path"
    return ""


class _Numbered(Linker):
    """Copies of functions with the number of its cohort in place of each class of agents."""

    def __init__(self, classes: Sequence[type]) -> None:
        super().__init__(lambda function: function)
        self._classes, self.title = classes, ""

    def _converted(self, value: Any, names: list[str]) -> Any:
        if isinstance(value, type) and issubclass(value, Agent):
            try:
                return cohort_of(self._classes, value)
            except UnknownFeature as error:
                raise UnknownFeature(f"{self.title}: {error}") from error
        return super()._converted(value, names)


def _is(q: Quantity, own: Quantity) -> bool:
    """Is `own` the quantity that a rule calls `q`? A feature that extends another has the other's."""
    assert q.owner is not None and own.owner is not None
    return q.name == own.name and (issubclass(own.owner, q.owner) or issubclass(q.owner, own.owner))


def _spans(features: Sequence[type[FeatureProvider]], writes: Sequence[Quantity]) -> list[tuple[int, int, str]]:
    """First column, size and bounds of what is written in a row; neighbours joined."""
    spans: list[tuple[int, int, str]] = []
    for feature, shift in zip(features, _shifts(features), strict=True):
        for q in feature.quantities.values():
            if not any(_is(written, q) for written in writes):
                continue
            start, bounds = shift + q.index, f"{q.low!r}, {q.high!r}, {q.kind != 'float'}".replace("inf", "np.inf")
            if spans and (sum(spans[-1][:2]), spans[-1][2]) == (start, bounds):
                spans[-1] = (spans[-1][0], spans[-1][1] + q.size, bounds)
            else:
                spans.append((start, q.size, bounds))
    return spans


def _shifts(features: Sequence[type[FeatureProvider]]) -> list[int]:
    """First column of each feature within its row."""
    return [sum(feature.width for feature in features[:i]) for i in range(len(features))]


def _name(cohort: Cohort) -> tuple[str, ...]:
    """By what cohorts are ordered: names, so that the order of agents does not matter."""
    parts = (cohort.cls, *cohort.features)
    return tuple(f"{part.__module__}.{part.__qualname__}" for part in parts)
