"""Names of environments: an id stands for a callable, or for "module:attribute" that is imported only inside make().

Ids are registered in code, or declared by installed packages, as entry points of the group `heron_env.envs`.
"""

import hashlib
import importlib
import importlib.util
import inspect
import linecache
import os
import re
import sys
import traceback
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from heron_env.errors import ConfigError, HeronError, HeronWarning, UnknownArgument, UnknownEnvironment, did_you_mean
from heron_env.given import require_type
from heron_env.trust import on_behalf_of, require_trust

if TYPE_CHECKING:
    from heron_env.envs.base import HeronEnv

EntryPoint = Callable[..., "HeronEnv"] | str


@dataclass(frozen=True, slots=True)
class EnvironmentSpec:
    """What an id stands for: how to build the environment, and the options it is built with."""

    id: str
    entry_point: EntryPoint
    options: dict[str, Any]
    named_by: str = ""
    """The file that named it, if the caller did not: then the law of `heron_env.trust` holds."""
    package: str = ""
    """The installed package that declares it, with its version; "": it is registered, or named as "module:..."."""

    def resolved(self) -> "EnvironmentSpec":
        """Itself; of "module:namespace/Name-v0" what the id stands for, once the module is imported.

        Raises ConfigError, UnknownEnvironment, Untrusted.
        """
        module, _, name = self.id.partition(":")
        if self.entry_point != self.id or module in LIBRARIES or not re.search("[/-]", name):
            return self
        self.require_trust()
        try:
            found = imported_module(module, f"make({self.id!r})")
        except ImportError as error:
            raise ConfigError(f"make({self.id!r}): can't import {module!r} ({error}); is it on the path?") from error
        try:
            return spec(name, self.named_by)
        except UnknownEnvironment as error:
            error.add_note(f"{found!r} was imported, and registers no {name!r}")
            raise

    def factory(self) -> Callable[..., "HeronEnv"]:
        """What builds the environment; imports its module. Raises ConfigError, Untrusted."""
        if callable(self.entry_point):
            return self.entry_point
        if (known := self.resolved()) is not self:
            return known.factory()
        self.require_trust()
        if self.entry_point == self.id and self.id.partition(":")[0] in LIBRARIES:
            return partial(imported("heron_env.lab.black_boxes:BlackBox", f"make({self.id!r})"), self.id)
        declared = f" of {self.package}, entry point {self.entry_point!r} in {GROUP}" if self.package else ""
        loaded: Callable[..., HeronEnv] = imported(self.entry_point, f"make({self.id!r}){declared}")
        if not callable(loaded):
            raise ConfigError(
                f"make({self.id!r}): its entry point {self.entry_point!r} is {loaded!r}; name a function or a class"
            )
        return loaded

    def require_trust(self) -> None:
        """Raise Untrusted where only a file says so, and it is not registered."""
        if self.entry_point == self.id:
            require_trust(self.id, self.named_by)

    def make(self, **options: Any) -> "HeronEnv":
        """Build the environment; `options` win over the registered ones; PettingZoo's `max_cycles` means max_steps.

        What a function raises that is not registered, but named, is a ConfigError.
        """
        if (known := self.resolved()) is not self:
            return known.make(**options)
        if "max_cycles" in options:
            options["max_steps"] = options.pop("max_cycles")
        build, given = self.factory(), {**self.options, **options}
        try:
            with on_behalf_of(self.named_by if _may_name(options) else ""):
                env = build(**given)
        except (Exception, SystemExit) as error:
            if isinstance(error, TypeError):
                self._require_known(given, build, error)
            if isinstance(error, HeronError) or self.entry_point != self.id:
                raise
            raise ConfigError(f"make({self.id!r}): building it {_failure_words(error)}; mend that") from error
        if not hasattr(env, "possible_agents"):
            raise ConfigError(
                f"make({self.id!r}): {build!r} returned {env!r:.200}; let it return the environment, a HeronEnv. With "
                "gymnasium.register('Lift-v0', entry_point='lift:Lift') in mine.py yours is gymnasium:mine:Lift-v0; of "
                "PettingZoo, pettingzoo:MODULE (docs/how_to/under_network.md#on-the-command-line)"
            )
        return env

    def _require_known(self, given: dict[str, Any], build: Callable[..., Any], error: TypeError) -> None:
        """Raise UnknownArgument if that is what the error is about."""
        unknown = next((name for name in given if f"argument {name!r}" in str(error)), None)
        unknown = error.name if isinstance(error, UnknownArgument) else unknown
        if unknown in given:
            own = [name for name in inspect.signature(build).parameters if name != "options"]
            known = [*own, *getattr(error, "known", ())]
            raise UnknownArgument(f"make({self.id!r}, ", str(unknown), dict.fromkeys(known)) from error


def _failure_words(error: BaseException) -> str:
    """`raised OSError: no licence (at grid.py:7)`."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    return f"raised {type(error).__name__}: {error} (at {last.filename}:{last.lineno})"


def _may_name(options: dict[str, Any]) -> bool:
    """Can they name anything? Numbers can't; what is registered may name what it likes itself."""
    return not all(isinstance(value, int | float | None) for value in options.values())


LIBRARIES = ("gymnasium", "pettingzoo")
"""`gymnasium:CartPole-v1` is an environment of theirs, as a black box under the network."""
GROUP = "heron_env.envs"
"""Entry points of packages: ids, and the "module:attribute" that builds each."""
_registry: dict[str, EnvironmentSpec] = {}
_removed: dict[str, str] = {}


def register(id: str, entry_point: EntryPoint, **options: Any) -> None:
    """Register an environment here, in PettingZoo and in Gymnasium.

    Args:
        id: "namespace/Name-v0".
        entry_point: a callable that builds the environment, or "module:attribute".
        options: default options of the callable.

    Returns: nothing. Raises ConfigError for another entry point under a known id. The same one may be registered again.

    >>> register("docs/Grid-v0", "heron_env.worlds.battery_grid:battery_grid", max_steps=10)  # doctest: +SKIP
    """
    if fault := _fault(id, entry_point):
        raise ConfigError(f"register({id!r}): {fault}")
    known = _registry.get(id)
    if known is not None and (_identity(known.entry_point), known.options) != (_identity(entry_point), options):
        raise ConfigError(f"register({id!r}): that id stands for {known.entry_point!r} already; choose another version")
    _registry[id] = EnvironmentSpec(id, entry_point, options)
    _register_with_frameworks(id)


def _fault(id: object, entry_point: object) -> str:
    """What is wrong with the two, and how to mend it; "" if nothing is."""
    if not isinstance(id, str) or not _reads_like_id(id):
        return "an id reads 'namespace/Name-v0'; add what is missing"
    if not _ID.fullmatch(id):
        return "an id has letters, digits, _ and - alone; leave the others out"
    if not callable(entry_point) and not (isinstance(entry_point, str) and ":" in entry_point):
        return f"{entry_point!r:.200} builds nothing; write a function, a class or 'package.module:attribute'"
    return "that id was removed; choose another version" if id in _removed else ""


def remove(id: str, reason: str) -> None:
    """From now on `id` stands for nothing: whoever asks for it, by whatever way, is told the `reason`.

    That is make(), the command line, run folders, sweeps, traces, and the registries of PettingZoo and Gymnasium.
    """
    _registry.pop(id, None)
    _removed[id] = reason
    _register_with_frameworks(id)


def make(id: str, **options: Any) -> "HeronEnv":
    """Build a registered environment, or your own: "module:function".

    Args:
        id: as `heron envs` lists them.
        options: of the environment's factory.

    Returns:
        A HeronEnv, which is a PettingZoo ParallelEnv.

    Raises UnknownEnvironment with the nearest id.

    >>> make("heron/BatteryGrid-v0", num_batteries=2, zone_size=2).possible_agents
    ['battery_1', 'battery_2']
    """
    return spec(id).make(**options)


def make_aec(id: str, **options: Any) -> Any:
    """The same environment in PettingZoo's agent-by-agent (AEC) form."""
    aec = importlib.import_module("heron_env.adapters.agent_by_agent")

    return aec.agent_by_agent(make(id, **options))


def id_of(environment: str | Callable[..., Any], where: str) -> str:
    """The name of a function or class that builds an environment, "module:function"; of an id itself.

    Whoever reads it later, another process or a file, must find the same one by it. Raises ConfigError saying `where`.
    """
    if not callable(environment):
        return environment
    module, name = (str(getattr(environment, part, None)) for part in ("__module__", "__qualname__"))
    if module != "__main__" and getattr(sys.modules.get(module), name, None) is environment:
        return f"{module}:{name}"
    raise ConfigError(
        f"{where}: {environment!r:.200} can't be found by a name in a module, and what is written down must name it; "
        "put it into a module as a function or a class, give what varies as options, or write 'module:function'"
    )


def spec(id: str, named_by: str = "") -> EnvironmentSpec:
    """What `id` stands for; "module:attribute" needs no registration.

    `named_by`: the file that says so, if it is not the caller's own word.

    Raises UnknownEnvironment with the nearest id, and with the reason for one that was removed; ConfigError for one
    that an installed package declares wrongly.
    """
    if isinstance(id, str) and id in _removed:
        raise UnknownEnvironment(f"make({id!r}): removed. {_removed[id]}")
    if isinstance(id, str) and id not in _registry and ":" in id:
        return EnvironmentSpec(id, id, {}, named_by)
    if isinstance(id, str) and id in _registry:
        return replace(_registry[id], named_by=named_by)
    declared, faults = installed()
    if isinstance(id, str) and id in faults:
        raise ConfigError(f"make({id!r}): {faults[id]}")
    if not isinstance(id, str) or id not in declared:
        ids = [*_registry, *declared]
        raise UnknownEnvironment(
            f"make({id!r}): no such environment; registered are {ids}, your own is 'module:function'."
            f"{did_you_mean(id, ids)}"
        )
    return replace(declared[id], named_by=named_by)


def names_environment(text: str) -> bool:
    """Does it read like an id, "namespace/Name-v0", or like "module:attribute"? It need not exist; no URL does."""
    return "://" not in text and (_reads_like_id(text) or ":" in text)


_ID = re.compile(r"[\w-]+/[\w.-]+-v\d+")
"""What PettingZoo and Gymnasium take, too."""


def _reads_like_id(text: str) -> bool:
    return "/" in text and text.rpartition("-v")[2].isdigit()


def is_here(id: str) -> bool:
    """Can `make` say more than that it never heard of it? Known, removed, or of a module that is on the path."""
    if id in _registry or id in _removed or ":" not in id:
        return id in _registry or id in _removed or id in installed()[0]
    try:
        return importlib.util.find_spec(id.partition(":")[0].partition(".")[0]) is not None  # imports nothing
    except (ImportError, ValueError):
        return False


def registered() -> list[str]:
    """Return all ids, in the order of registration, then those of installed packages.

    Returns:
        Ids, such as "heron/BatteryGrid-v0".

    >>> "heron/BatteryGrid-v0" in registered()
    True
    """
    return [*_registry, *installed()[0]]


def installed() -> tuple[dict[str, EnvironmentSpec], dict[str, str]]:
    """What installed packages declare beyond what is registered: environments by id; what is wrong, by name.

    No package is imported. What lies in the working directory is not installed: it may come from anywhere.
    """
    from importlib.metadata import distributions

    specs, faults, packages = dict[str, EnvironmentSpec](), dict[str, str](), set[str]()
    for package in distributions():
        try:
            entries = package.entry_points.select(group=GROUP)
        except (TypeError, ValueError) as error:
            faults[package.name] = f"{package.name}: its entry points can't be read ({error}); install it anew"
            continue
        name = re.sub(r"[-_.]+", "-", package.name).lower()  # as PEP 503 compares names
        if not entries or name in packages or os.path.realpath(str(package.locate_file(""))) == os.getcwd():
            continue  # a second one of that name lies behind the first, as modules do
        packages.add(name)
        for id, value in ((entry.name, entry.value.partition("[")[0].strip()) for entry in entries):
            found = EnvironmentSpec(id, value, {}, package=f"{package.name} {package.version}")
            known, fault = _registry.get(id), _fault(id, value)
            if known is not None and _package(known.entry_point) == _package(value):
                continue  # the package is imported, and has registered it
            if known := known or specs.get(id):
                fault = f"{known.package or known.entry_point!r} has that id, too; uninstall one, or choose another id"
            if fault:
                faults[id] = f"{found.package}, entry point {value!r} in {GROUP}: {fault}"
            specs[id] = found
    return {id: found for id, found in specs.items() if id not in faults}, faults


def _package(entry_point: EntryPoint) -> str:
    """The top-level package that it lies in."""
    module = entry_point if isinstance(entry_point, str) else getattr(entry_point, "__module__", "")
    return re.split("[.:]", module)[0]


_engines: dict[str, str] = {}


def register_engine(name: str, entry_point: str) -> None:
    """Register an engine, which simulates environments declared in YAML.

    Args:
        name: the name in `engine: {type: ...}`.
        entry_point: "module:attribute", a subclass of `heron_env.declared.engine.Engine`.

    Returns: nothing. Raises ConfigError for another entry point under a known name.

    >>> register_engine("my_economy", "heron_env.worlds.economy.engine:EconomyEngine")  # doctest: +SKIP
    """
    require_type(f"register_engine({name!r:.60}, ...)", name, str, "the name that `engine: {type: ...}` uses")
    if not isinstance(entry_point, str) or ":" not in entry_point:
        raise ConfigError(
            f"register_engine({name!r}, {entry_point!r:.200}): the entry point reads 'package.module:attribute'"
        )
    if _engines.setdefault(name, entry_point) != entry_point:
        raise ConfigError(f"register_engine({name!r}): that name stands for {_engines[name]!r}; choose another")


def engine(name: str) -> Any:
    """The engine class of that name. Raises ConfigError with the nearest name."""
    if name not in _engines:
        raise ConfigError(f"Unknown engine {name!r}; registered are {list(_engines)}.{did_you_mean(name, _engines)}")
    return imported(_engines[name], f"engine {name!r}")


def _identity(entry_point: EntryPoint) -> object:
    """Equal for one definition that is executed twice, as notebooks do."""
    return getattr(entry_point, "__module__", ""), getattr(entry_point, "__qualname__", entry_point)


def imported_module(name: str, where: str) -> ModuleType:
    """The module, by name or as `path.py`.

    Raises ImportError, what this library has to say about it, and ConfigError for whatever else.
    """
    try:
        return _module_of_file(name) if name.endswith(".py") else importlib.import_module(name)
    except (ImportError, HeronError):
        raise
    except (Exception, SystemExit) as error:  # when it is imported, a module may do anything
        raise ConfigError(
            f"{where}: importing {name!r} {_failure_words(error)}; mend that, `import {name}` in Python shows all of it"
        ) from error


def _module_of_file(path: str) -> ModuleType:
    """Run once in each process, and again once the file has changed. Raises ImportError where there is none."""
    try:
        return _run_file(os.path.realpath(path), Path(path).read_bytes())
    except FileNotFoundError as error:
        raise ImportError(f"no file {path!r}") from error


@cache
def _run_file(path: str, source: bytes) -> ModuleType:
    name = f"{Path(path).stem}_{hashlib.blake2b(path.encode(), digest_size=8).hexdigest()}"  # of files alike in name
    declared = importlib.util.spec_from_file_location(name, path)
    assert declared is not None and declared.loader is not None  # it ends with .py
    module = sys.modules[name] = importlib.util.module_from_spec(declared)
    linecache.cache.pop(path, None)  # Python's own caches, of lines and of bytecode, look at times
    try:
        exec(compile(source, path, "exec", dont_inherit=True), module.__dict__)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def imported(entry_point: str, where: str) -> Any:
    """What "module:attribute" names. Raises ConfigError saying `where` it was named."""
    module, _, attribute = entry_point.rpartition(":")
    why, near, cause, found = "", "", None, None
    try:
        found = imported_module(module, where) if module.endswith(".py") or all(module.split(".")) else None
    except ImportError as error:
        why, cause = str(error), error
    aside = _set_aside(module, attribute)
    if found is None:
        why = (why or "Empty module name") + (aside and f"; {aside}")
    elif not hasattr(found, attribute):
        own = module.partition(".")[0] == __package__
        file = "" if own else f" in {getattr(found, '__file__', None) or 'Python itself'}"
        why = f"module {module!r} has no attribute {attribute!r}{file}{aside and f'; {aside}'}"
        near = did_you_mean(attribute, vars(found))
    elif aside:
        warnings.warn(f"{where}: {aside}", HeronWarning, stacklevel=3)
    if why:
        raise ConfigError(
            f"{where}: can't load its entry point {entry_point!r} ({why}); "
            f"is the module on the path and the name right?{near}"
        ) from cause
    return getattr(found, attribute)


def _set_aside(module: str, attribute: str) -> str:
    """Where another module of that name lies in the working folder: which one counts, and how to name the other."""
    top = module.partition(".")[0]
    loaded = getattr(sys.modules.get(top), "__file__", None)
    if module.endswith(".py") or top == __package__ or loaded is None:
        return ""
    ours = [os.path.realpath(path) for path in (f"{top}.py", os.path.join(top, "__init__.py")) if os.path.isfile(path)]
    if not ours or os.path.realpath(loaded) in ours:
        return ""
    file = f"{module.replace('.', '/')}.py"
    name = f"{file}:{attribute} names the one here" if os.path.isfile(file) else "rename the one here"
    return f"{top!r} is {loaded}, not what lies in this folder; {name}"


def _register_with_frameworks(id: str) -> None:
    """Put `id` into PettingZoo's registries (it has them from 1.27 on) and, as the joint view, into Gymnasium's."""
    import gymnasium
    import pettingzoo

    if id not in gymnasium.registry:
        gymnasium.register(
            id,
            entry_point="heron_env.adapters.gymnasium:joint_view",
            vector_entry_point="heron_env.adapters.gymnasium:joint_vector",
            kwargs={"env_id": id},
        )
    if hasattr(pettingzoo, "register") and id not in pettingzoo.parallel_registry:
        pettingzoo.register("parallel", id, entry_point="heron_env.registry:make", kwargs={"id": id})
        pettingzoo.register("aec", id, entry_point="heron_env.registry:make_aec", kwargs={"id": id})
