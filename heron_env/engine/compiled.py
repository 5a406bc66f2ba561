"""Compiled rules: the entry points of a set of agent classes, and a binder that runs them one agent at a time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from types import FunctionType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heron_env.core.feature import FeatureProvider
from heron_env.core.hierarchy import Hierarchy
from heron_env.core.layout import Layout
from heron_env.core.rule import rule_spec
from heron_env.engine.binding import FAILURES, Run, without_value
from heron_env.engine.cache import cached, key_of
from heron_env.engine.checking import examined
from heron_env.engine.linking import Linker
from heron_env.engine.source import CHILD, CHILDREN, INFO, Facts, Source
from heron_env.engine.tables import AgentTables
from heron_env.errors import RuleError

Floats = NDArray[np.float64]
Entry = Callable[..., Any]
"""(truth, actions, rewards, lane, position, tab, gather, global offset, dt, time) -> what became of one agent's rule.

0 or 1 + the number of the write that was refused · the reward · has it ended · 0 (the info is written into what is
given in place of the rewards). An agent whose kind has no such rule: 0, 0.0, False.
"""

_loaded: dict[str, CompiledRules] = {}


@dataclass(frozen=True)
class CompiledRules:
    """Entry points by rule name, and what the compiler found out; `key` is the hash in the file's name."""

    key: str
    entries: Mapping[str, Entry]
    facts: Facts


def compile_rules(source: Source) -> CompiledRules:
    """The rules of a set of agent classes; the same for every hierarchy of these classes.

    The first time each rule is compiled alone, so that what numba can't do is a RuleError with the user's line. Entry
    points are compiled at their first call, or come from the cache on disk.
    """
    key = key_of(source)
    if key not in _loaded:
        from heron_env.engine import kernels

        module = cached(key, lambda: source.text(examined(source)))
        facts = Facts(module.ALLOCATES, module.INFOS)
        linkers = {False: Linker(kernels.rule_leaf), True: Linker(kernels.rule_allocating)}
        for name, function in source.rules.items():
            assert isinstance(function, FunctionType)
            linker = linkers[name.removesuffix("_rule") in facts.allocates]
            setattr(module, name, linker.link(function))
        vars(module).update(source.tuples)
        _loaded[key] = CompiledRules(key, {name: getattr(module, name) for name in source.entries}, facts)
    return _loaded[key]


class CompiledBinder:
    """Owns the arrays of `lanes` environments of one hierarchy, and binds compiled rules to them.

    truth: float64 `[lanes, layout.size + scratch]`. actions: float64 `[lanes, elements]`, by rank. rewards: float64
    `[lanes, agents]` by position. infos: float64 `[lanes, numbers]`.
    """

    def __init__(
        self,
        hierarchy: Hierarchy,
        layout: Layout,
        global_features: tuple[type[FeatureProvider], ...] = (),
        *,
        lanes: int = 1,
    ) -> None:
        self.hierarchy, self.layout = hierarchy, layout
        self.source = Source(hierarchy, layout, global_features)
        self.rules = compile_rules(self.source)
        sizes = [agent.current_action.spec.size for agent in hierarchy.agents]
        self.tables = AgentTables(self.source, hierarchy, layout, sizes, self.rules.facts.infos)
        self.truth: Floats = np.zeros((lanes, layout.size + self.tables.scratch))
        self.actions: Floats = np.zeros((lanes, self.tables.elements))
        self.rewards: Floats = np.zeros((lanes, len(hierarchy)))
        self.infos: Floats = np.zeros((lanes, self.tables.infos))
        ends = np.cumsum([0, *sizes]).tolist()
        self._action_slices = [slice(a, b) for a, b in pairwise(ends)]

    def action(self, rank: int, lane: int = 0) -> Floats:
        """The action vector as the agent's rules read it: a view to write to."""
        return self.actions[lane, self._action_slices[rank]]

    def bind(self, rank: int, name: str, lane: int = 0) -> Run | None:
        """The rule `name` of the agent of this rank, as Binder.bind gives it; None if its class has none.

        A rule that writes returns None, an info its numbers by name.
        """
        kind = self.source.kinds[self.source.kind_of[rank]]
        if name not in kind.rules:
            return None
        spec = rule_spec(getattr(kind.cls, name))
        assert spec is not None
        entry, position, writes = self.rules.entries[name], int(self.tables.position[rank]), spec.writes
        truth, actions, rewards, tables = self.truth, self.actions, self.rewards, self.tables
        tab, gather, g = tables.tab, tables.gather, tables.global_offset
        whose = f"{kind.cls.__name__}.{name} of {self.hierarchy.ids[rank]!r}"
        first, count = tab[position, CHILD], tab[position, CHILDREN]
        out = self.infos if name == "get_local_info" else rewards

        def write(dt: float, time: float, child_rewards: Floats | None = None) -> None:
            try:
                refused = entry(truth, actions, rewards, lane, position, tab, gather, g, dt, time)
            except FAILURES as error:
                raise without_value(whose, writes, error) from error
            if refused:
                q = writes[refused - 1]
                what = f"other than {q.size} finite numbers" if q.shape else "nan or inf"
                needed = f"{q.size} numbers are" if q.shape else "a number is"
                remedy = "check divisions, roots and returns"
                raise RuleError(f"{whose} returned {what} for {q!r}: {needed} needed; {remedy}")

        def value(dt: float, time: float, child_rewards: Floats | None = None) -> Any:
            if child_rewards is not None:
                rewards[lane, first : first + count] = child_rewards
            try:
                return entry(truth, actions, out, lane, position, tab, gather, g, dt, time)
            except FAILURES as error:
                raise without_value(whose, writes, error) from error

        def info(dt: float, time: float, child_rewards: Floats | None = None) -> dict[str, float]:
            value(dt, time)
            fields = self.rules.facts.infos[kind.name]
            start = int(tab[position, INFO])
            return dict(zip(fields, self.infos[lane, start : start + len(fields)].tolist(), strict=True))

        return write if writes else info if name == "get_local_info" else value
