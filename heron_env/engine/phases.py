"""The phases of a control step for one blueprint, each a loop over lanes, called from Python or by a compiled step.

Those that do not depend on the rules are compiled once for an installation; the others once for each set of agent
classes and of an environment's world rules (Program: text, cache, linking), and they are missing where no rule needs
them. A phase takes the address of the table of arrays and a range of lanes, and returns how many lanes failed.
"""

from __future__ import annotations

import functools
import importlib
import linecache
import threading
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from types import FunctionType, ModuleType
from typing import TYPE_CHECKING, Any

from heron_env.engine.arrays import BEGIN, DELIVER, FINISH, PHASES, PHYSICS, RULED
from heron_env.engine.blueprint import Blueprint
from heron_env.engine.cache import LOOPS, TILES, cached, cached_file, key_of, uncollected
from heron_env.engine.checking import examined, linkers_of_rules
from heron_env.engine.loops import loops_text
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
    """The text for one blueprint; the same for every hierarchy of the same classes. Needs no numba."""

    def __init__(self, blueprint: Blueprint) -> None:
        self.source = Source(blueprint.hierarchy, blueprint.layout, blueprint.global_features)
        self.world = WorldSource(blueprint.layout, blueprint.global_features, blueprint.hooks, blueprint.owner)

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


def vector_phases(program: Program, loops: CompiledLoops) -> VectorPhases:
    """The phases of these rules for vectors, made once in a process."""
    from heron_env.engine.vector.compiling import VectorPhases

    with _loading:
        if loops.key not in _vectors:
            with uncollected():
                _vectors[loops.key] = VectorPhases(program.plain(loops.facts), loops.module)
        return _vectors[loops.key]


class Phases:
    """The compiled phases of one blueprint; see Lanes for what they do.

    step: all of them but the check, in one call that finds them by their `addresses`, and `natives`.
    checked_step: the check, too.
    """

    def __init__(
        self, module: Any, shared: ModuleType, blueprint: Blueprint, *, final: bool, noisy: bool, relative: bool
    ) -> None:  # fmt: skip
        """`module`: what has the phases of the rules by name, generated or in Python; `shared`: of everything else."""
        self.check, self._decide, self._affect = shared.check, shared.decide, getattr(module, "affect", None)
        self._clear = shared.clear if len(blueprint.layout.per_step) else None
        self._physics = getattr(module, "substep", None)
        self._native = [(PHASES.index(phase), loop, at) for phase, loop, at in blueprint.native]
        self._close, self._end, self._finish = module.close, shared.end, getattr(module, "finish", None)
        self._keep_final = shared.keep_final if final else None
        self._add_noise = shared.add_noise_to_published if noisy else None
        self._add_noise_to_final = shared.add_noise_to_final if noisy and final else None
        if relative:
            self._add_noise = shared.relate_published
            self._add_noise_to_final = shared.relate_final if final else None
        self._begin_episodes, self._begin = shared.begin_episodes, getattr(module, "begin", None)
        self._publish, self._publish_others = shared.publish, shared.publish_others
        self.inform = getattr(module, "inform", None)
        self.apply, self.offer = getattr(module, "apply", None), getattr(module, "offer", None)
        self.step, self.checked_step = shared.step, shared.checked_step
        self._in_tiles: tuple[str, ...] = ()

    def shows(self, tiled: Collection[str]) -> bool:
        """Is the truth in tiles final, if these phases run there?"""
        follows = any(place in (FINISH, DELIVER) for place, _, _ in self._native)
        return "close" in tiled and (self._finish is None or "finish" in tiled) and not follows

    def addresses(self, tiled: Mapping[str, int] | None = None, *, shows: bool = False) -> list[int]:
        """Where the machine code of each phase begins, by place; 0 where none is needed.

        `tiled`: addresses of those that run in tiles; `shows`: these publish observations.
        """
        from heron_env.engine.kernels import address_of

        tiled, mine = tiled or {}, vars(self)
        self._in_tiles = tuple(tiled)
        loops = {name: mine.get(f"_{name}") or mine.get(name) for name in PHASES if name not in tiled}
        made = {f"vector_{name}": address for name, address in tiled.items()}
        with uncollected():
            for name, loop in loops.items():
                if loop and name not in made:
                    made[name] = address_of(loop, 3 + (name == "physics"))
            if shows:
                made["publish"] = address_of(self._publish_others)
            if tiled:
                made["tiles"] = address_of(tile_loops().tiles)
        return [made.get(name, 0) for name in PHASES]

    def tiled(self, vector: VectorPhases) -> dict[str, int]:
        """Addresses of the phases that run in tiles: neighbours among RULED, as many as there are.

        There are none without physics, where there is any: bringing an environment into a tile would cost more.
        """
        best: dict[str, int] = {}
        found: dict[str, int] = {}
        if any(place == PHYSICS for place, _, _ in self._native):
            return {}
        for name in (PHASES[place] for place in RULED):
            if getattr(self, f"_{name}") is not None:
                address = vector.address(name)
                found = {**found, name: address} if address else {}
                best = found if len(found) > len(best) else best
        if self._physics is not None and "physics" not in best:
            return {}
        if "close" in best and self._finish is not None and (address := vector.address("finish")):
            best["finish"] = address
        return best

    def redo(self, at: int, first: int, last: int, substeps: int) -> int:
        """A control step of lanes that tiles have given up, from where tiles begin, without them: how many failed."""
        failures, behind = 0, False
        for name in (PHASES[place] for place in RULED):
            behind |= name in self._in_tiles
            if behind and name == "physics":
                failures += sum(self.go_on(at, first, last, number) for number in range(substeps))
            elif behind and (loop := getattr(self, f"_{name}")) is not None:
                failures += int(loop(at, first, last))
        ended = self._end(at, first, last)
        failures += self._finish_all(at, first, last) + self.deliver(at, first, last)
        failures += self.restart(at, first, last) if ended else 0
        return failures + self.publish(at, first, last)

    def entries(self) -> tuple[int, int]:
        """Where `apply` and `offer` begin; 0 where none is needed."""
        from heron_env.engine.kernels import address_of

        with uncollected():
            apply, offer = (0 if loop is None else address_of(loop) for loop in (self.apply, self.offer))
            return apply, offer

    def natives(self) -> list[tuple[int, int, int]]:
        """Of what is no rule: the place of the phase that it follows, where it begins, and its table."""
        from heron_env.engine.kernels import address_of

        with uncollected():
            return [(place, address_of(loop, 4), at) for place, loop, at in self._native]

    def natively(self, place: int, at: int, first: int, last: int) -> int:
        """What follows the phase of this place and is no rule."""
        return sum(loop(at, own, first, last) for follows, loop, own in self._native if follows == place)

    def decide(self, at: int, first: int, last: int) -> int:
        """Decisions."""
        return int(self._decide(at, first, last))

    def affect(self, at: int, first: int, last: int) -> int:
        """Their apply_action."""
        return 0 if self._affect is None else int(self._affect(at, first, last))

    def substep(self, at: int, first: int, last: int, number: int) -> int:
        """Substep `number` of physics."""
        if self._clear is not None and number == 0:
            self._clear(at, first, last)
        return self.go_on(at, first, last, number)

    def go_on(self, at: int, first: int, last: int, number: int) -> int:
        """The same with what counts per step left as it is."""
        failures = 0 if self._physics is None else int(self._physics(at, first, last, number))
        return failures + self.natively(PHYSICS, at, first, last)

    def close(self, at: int, first: int, last: int) -> int:
        """Rewards, ends and infos, then the rule `finish`."""
        failures = self._close(at, first, last)
        self._end(at, first, last)
        return int(failures + self._finish_all(at, first, last))

    def _finish_all(self, at: int, first: int, last: int) -> int:
        """The rule `finish`, and what follows it."""
        failures = 0 if self._finish is None else int(self._finish(at, first, last))
        return failures + self.natively(FINISH, at, first, last)

    def deliver(self, at: int, first: int, last: int) -> int:
        """Neighbours hear what they are told."""
        return self.natively(DELIVER, at, first, last)

    def restart(self, at: int, first: int, last: int) -> int:
        """The start of an episode in the lanes that are chosen; what was seen last is kept."""
        if self._keep_final is not None:
            self._keep_final(at, first, last)
        if self._add_noise_to_final is not None:
            self._add_noise_to_final(at, first, last)
        return self.begin(at, first, last)

    def begin(self, at: int, first: int, last: int) -> int:
        """The same without looking back."""
        self._begin_episodes(at, first, last)
        failures = self.natively(BEGIN, at, first, last)
        return failures if self._begin is None else failures + int(self._begin(at, first, last))

    def publish(self, at: int, first: int, last: int) -> int:
        """Observations with their noise, and the observers' rewards and ends."""
        self._publish(at, first, last)
        return 0 if self._add_noise is None else int(self._add_noise(at, first, last))
