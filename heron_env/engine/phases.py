"""The phases of a control step for one model, each a loop over lanes, which step.py calls in their order.

Those that do not depend on the rules are compiled once for an installation; the others once for each set of agent
classes and of an environment's world rules (Program: text, cache, linking), and they are missing where no rule needs
them. A phase takes the address of the table of arrays and a range of lanes, and returns how many lanes failed.
"""

from __future__ import annotations

import functools
import importlib
import linecache
import threading
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import FunctionType, ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from heron_env.engine.arrays import PHASES, PYTHON, RULED
from heron_env.engine.cache import LOOPS, ORDER, TILES, cached, cached_file, key_of, uncollected
from heron_env.engine.checking import examined, linkers_of_rules
from heron_env.engine.loops import loops_text
from heron_env.engine.model import Model, Native
from heron_env.engine.source import SHARED, CompilerFacts, Source
from heron_env.engine.world_rules import KERNEL_NAMES, WorldSource

if TYPE_CHECKING:
    from heron_env.engine.vector.compiling import VectorPhases

_loaded: dict[str, CompiledLoops] = {}
_vectors: dict[str, VectorPhases] = {}
_loading = threading.RLock()


@dataclass(frozen=True)
class CompiledLoops:
    """Entry points by name, and what the compiler found out; `key` is the hash in the file's name."""

    key: str
    module: ModuleType
    facts: CompilerFacts


class Program:
    """The text for one model; the same for every hierarchy of the same classes. Needs no numba."""

    def __init__(self, model: Model) -> None:
        self.source = Source(model.hierarchy, model.layout, model.global_features)
        self.world = WorldSource(model.layout, model.global_features, model.hooks, model.owner)

    def text(self, facts: CompilerFacts | None = None) -> str:
        """The module. Without facts nothing is taken to allocate, and infos are as annotated."""
        parts = [self.source.text(facts)]
        if hooks := self.world.hooks:
            imports = f"from heron_env.engine.world_kernel import {', '.join(KERNEL_NAMES)}\n"
            parts.append(imports + "\n\n" + self.world.text(facts.allocates if facts else ()))
        parts.append(loops_text(self.source.kinds, hooks))
        return "\n\n".join(parts)

    def plain(self, facts: CompilerFacts) -> ModuleType:
        """The module with rules as they are, for those who convert its functions."""
        text, name = self.text(facts), f"<rules of {self.key()}>"
        linecache.cache[name] = len(text), None, text.splitlines(keepends=True), name
        module = ModuleType(name)
        exec(compile(text, name, "exec", dont_inherit=True), vars(module))
        shared = {name: getattr(importlib.import_module("heron_env.engine.loop_kernels"), name) for name in SHARED}
        rules = {**self.source.rules, **self.world.rules}
        vars(module).update(rules, **self.source.tuples, **self.world.tuples, **shared)
        return module

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
            return self.text(CompilerFacts((*facts.allocates, *self.world.examined()), facts.infos))

        module = cached(key, text)
        facts = CompilerFacts(module.ALLOCATES, module.INFOS)
        for name, function in self.source.rules.items():
            assert isinstance(function, FunctionType)
            setattr(module, name, linkers[name.removesuffix("_rule") in facts.allocates].link(function))
        for name in self.world.rules:
            setattr(module, name, self.world.linked(name, facts.allocates))
        shared = shared_loops()
        vars(module).update(self.source.tuples, **self.world.tuples, **{name: getattr(shared, name) for name in SHARED})
        return CompiledLoops(key, module, facts)


@functools.cache
def tile_loops() -> ModuleType:
    """vector/tiles.py, from a copy in the cache folder, as loop_kernels.py."""
    with _loading:
        return cached_file(TILES)


@functools.cache
def shared_loops() -> ModuleType:
    """loop_kernels.py, from a copy in the cache folder: compiled once, whatever the rules."""
    with _loading:
        return cached_file(LOOPS)


@functools.cache
def step_loops() -> ModuleType:
    """step.py, likewise."""
    with _loading:
        return cached_file(ORDER)


def vector_phases(program: Program, loops: CompiledLoops) -> VectorPhases:
    """The phases of these rules for vectors, made once in a process."""
    from heron_env.engine.vector.compiling import VectorPhases

    with _loading:
        if loops.key not in _vectors:
            with uncollected():
                _vectors[loops.key] = VectorPhases(program.plain(loops.facts), loops.module)
        return _vectors[loops.key]


class Phases:
    """Where the machine code of one model's phases lies, and of what follows them: what a compiled step calls.

    step, checked_step and the rest of step.py find them by their `addresses` and `natives`.
    """

    def __init__(
        self, module: Any, shared: ModuleType, model: Model, *, final: bool, noisy: bool, relative: bool, hides: bool
    ) -> None:  # fmt: skip
        """`module`: what has the phases of the rules by name; `shared`: loop_kernels."""
        s, rules = shared, partial(getattr, module)
        noise, final_noise = (
            (s.relate_published, s.relate_final) if relative else (s.add_noise_to_published, s.add_noise_to_final)
        )
        some, asks = noisy or relative or hides, model.plan.asked
        loops = {
            "check": s.check, "decide": s.decide, "affect": rules("affect", None),
            "clear": s.clear if len(model.layout.per_step) else None, "physics": rules("substep", None),
            "close": rules("close", None), "end": s.end, "finish": rules("finish", None),
            "at_close": rules("at_close", None), "keep_final": s.keep_final if final else None,
            "add_noise_to_final": final_noise if some and final else None, "begin_episodes": s.begin_episodes,
            "begin": rules("begin", None), "publish": s.publish, "publish_others": s.publish_others,
            "add_noise": noise if some else None, "apply": rules("apply", None), "offer": rules("offer", None),
            "sight": rules("sight", None) if asks else None, "sight_of": rules("sight_of", None) if asks else None,
            "link": rules("link", None),
            "step": step_loops().step,
        }  # fmt: skip
        self.loops = {name: loop for name, loop in loops.items() if loop is not None}
        self.inform: Any = rules("inform", None)

    def addresses(self, tiled: Mapping[str, int] | None = None) -> list[int]:
        """Where the machine code of each phase begins, by place; 0 where none is needed.

        `tiled`: addresses of those that run in tiles.
        """
        from heron_env.engine.kernels import address_of

        tiled = tiled or {}
        made = {f"vector_{name}": address for name, address in tiled.items()}
        with uncollected():
            for name, loop in self.loops.items():
                if name not in tiled:
                    made[name] = address_of(loop, 3 + (name == "physics"))
            if tiled:
                made["tiles"] = address_of(tile_loops().tiles)
        return [made.get(name, 0) for name in PHASES]

    def tiled(self, vector: VectorPhases, natives: Collection[Native]) -> dict[str, int]:
        """Addresses of the phases that run in tiles: neighbours among RULED, as many as there are.

        There are none without physics, where there is any, for whose sake an environment comes into a tile; and none
        where anything follows one of them.
        """
        best: dict[str, int] = {}
        run: dict[str, int] = {}
        ruled = [PHASES[place] for place in RULED]
        if any(native.phase in ruled for native in natives):
            return {}
        for name in ruled:
            if name in self.loops:
                address = vector.address(name)
                run = {**run, name: address} if address else {}
                best = run if len(run) > len(best) else best
        if "physics" in self.loops and "physics" not in best:
            return {}
        if "close" in best and "finish" in self.loops and (address := vector.address("finish")):
            best["finish"] = address
        return best

    def shows(self, tiled: Collection[str], natives: Collection[Native]) -> bool:
        """Is the truth in tiles final, if these phases run there?"""
        follows = any(native.phase in ("end", "finish", "deliver", "at_close", "publish") for native in natives)
        return "close" in tiled and ("finish" not in self.loops or "finish" in tiled) and not follows


def addresses_of(natives: Sequence[Native]) -> NDArray[np.int64]:
    """Of what follows phases, int64 `[natives, 3]`: the place of the phase, where it begins, and its table."""
    from heron_env.engine.kernels import address_of

    places = [PHASES.index(native.phase) + PYTHON * native.python for native in natives]
    with uncollected():
        rows = [(place, address_of(one.loop, 4), one.at) for place, one in zip(places, natives, strict=True)]
    return np.array(rows, dtype=np.int64).reshape(-1, 3)
