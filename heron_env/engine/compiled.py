"""The compiled loops of a set of agent classes, and of an environment's world rules: text, cache, linking."""

from __future__ import annotations

import functools
import threading
from dataclasses import dataclass
from types import FunctionType, ModuleType

from heron_env.engine.blueprint import Blueprint
from heron_env.engine.cache import LOOPS, cached, cached_file, key_of, uncollected
from heron_env.engine.checking import examined, linkers_of_rules
from heron_env.engine.loops import loops_text
from heron_env.engine.source import SHARED, Facts, Source
from heron_env.engine.world_rules import KERNEL_NAMES, WorldSource

_loaded: dict[str, CompiledLoops] = {}
_loading = threading.RLock()


@dataclass(frozen=True)
class CompiledLoops:
    """Entry points by name, and what the compiler found out; `key` is the hash in the file's name."""

    key: str
    module: ModuleType
    facts: Facts


class Program:
    """The text for one blueprint; the same for every hierarchy of the same classes. Needs no numba."""

    def __init__(self, blueprint: Blueprint) -> None:
        self.source = Source(blueprint.hierarchy, blueprint.layout, blueprint.global_features)
        self.world = WorldSource(blueprint.layout, blueprint.global_features, blueprint.hooks, blueprint.owner)

    def text(self, facts: Facts | None = None) -> str:
        """The module. Without facts nothing is taken to allocate, and infos are as annotated."""
        parts = [self.source.text(facts)]
        hooks = [name.removeprefix("world_").removesuffix("_rule") for name in self.world.rules]
        if hooks:
            imports = f"from heron_env.engine.world_kernel import {', '.join(KERNEL_NAMES)}\n"
            parts.append(imports + "\n\n" + self.world.text(facts.allocates if facts else ()))
        parts.append(loops_text(self.source.kinds, hooks))
        return "\n\n".join(parts)

    def key(self) -> str:
        """Hash of all that the compiled module depends on."""
        rules = {name: rule for name, rule in self.source.rules.items() if isinstance(rule, FunctionType)}
        tuples = {**self.source.tuples, **self.world.tuples}
        return key_of(self.text(), {**rules, **self.world.rules}, {**self.source.titles, **self.world.titles}, tuples)

    def compiled(self) -> CompiledLoops:
        """The loops, compiled at their first call, or taken from the cache on disk.

        The first time each rule is compiled alone, so that what numba can't do is a RuleError with the user's line.
        """
        key = self.key()
        with _loading:
            if key not in _loaded:
                with uncollected():
                    _loaded[key] = self._load(key)
            return _loaded[key]

    def _load(self, key: str) -> CompiledLoops:
        linkers = linkers_of_rules()

        def text() -> str:
            facts = examined(self.source, linkers)
            return self.text(Facts((*facts.allocates, *self.world.examined()), facts.infos))

        module = cached(key, text)
        facts = Facts(module.ALLOCATES, module.INFOS)
        for name, function in self.source.rules.items():
            assert isinstance(function, FunctionType)
            setattr(module, name, linkers[name.removesuffix("_rule") in facts.allocates].link(function))
        for name in self.world.rules:
            setattr(module, name, self.world.linked(name, facts.allocates))
        shared = shared_loops()
        vars(module).update(self.source.tuples, **self.world.tuples, **{name: getattr(shared, name) for name in SHARED})
        return CompiledLoops(key, module, facts)


@functools.cache
def shared_loops() -> ModuleType:
    """loop_kernels.py, from a copy in the cache folder: compiled once, whatever the rules."""
    with _loading:
        return cached_file(LOOPS)
