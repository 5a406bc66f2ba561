"""The cache: generated modules on disk, one file per set of rules, with numba's machine code beside them.

A file's name holds the hash of all its content depends on (Digest), so a file is never changed once it is there; its
time of change is fixed, for numba takes that for the version, and two processes may write the same file at once. Its
last line is a hash of its name and the rest: a file that is not what was written is deleted and made anew. So is one
that another user but root owns or may write to, for what is kept is run.
"""

from __future__ import annotations

import builtins
import contextlib
import dis
import enum
import errno
import functools
import gc
import hashlib
import importlib
import importlib.metadata
import os
import platform
import re
import sys
import time
import types
import warnings
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import numpy as np

from heron_env._version import __version__
from heron_env.engine.checking import code_blocks, library, line_in_source
from heron_env.errors import HeronWarning, RuleError
from heron_env.files.reading import OPEN, read, why_not_ours
from heron_env.files.writing import CLOSED, write

MOST_FILES = 200
"""Generated files that are kept; beyond, the least recently used go."""
WRITTEN = 1_000_000_000
"""Time of change of every generated file, s."""
PACKAGES = ("numba", "numpy", "llvmlite")
LOOPS = Path(__file__).with_name("loop_kernels.py")
"""The loops that are the same for all rules; generated text calls them."""
ORDER = LOOPS.with_name("step.py")
"""The order in which a step calls them."""
TILES = Path(__file__).with_name("vector") / "tiles.py"
"""What runs phases for several environments at once."""
CONVERTING = (LOOPS, TILES, TILES.with_name("compiling.py"), *map(LOOPS.with_name, ("branches.py", "checking.py")))
"""What machine code depends on beside the generated text."""
IMPORT = re.compile(r"^from (heron_env[\w.]*) import (?:\(([^)]*)\)|(.*))$", re.MULTILINE)
COMPILES = re.compile(r"^(import numba|from numba|from heron_env\.engine\.kernels import)", re.MULTILINE)
"""In a module with compiled functions."""
CONSTANTS = (bool, int, float, str, tuple, list, dict)
PLAIN = (int, float, complex, str, bytes, bool, type(None), type(Ellipsis))


def cache_folder() -> Path:
    """HERON_CACHE_DIR, else the user's cache directory. Raises OSError for a user without a home."""
    configured = os.environ.get("HERON_CACHE_DIR")
    try:
        return Path(configured).expanduser() if configured else _users_folder()
    except RuntimeError as error:
        where = configured or "the user's cache directory"
        raise FileNotFoundError(errno.ENOENT, "this user has no home directory", where) from error


def _users_folder() -> Path:
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local") / "heron_env" / "Cache"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "heron_env"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "heron_env"


def key_of(text: str, rules: Mapping[str, FunctionType], titles: Mapping[str, str], tuples: Mapping[str, Any]) -> str:
    """Hash of generated text, the rules behind it (`titles`: what messages call them), and of what compiles them."""
    digest = Digest()
    digest.put(text_key(text), *(text_key(path.read_text(encoding="utf-8")) for path in CONVERTING))
    for name in sorted(rules):
        digest.put(name)
        digest.value(rules[name], titles[name])
    for name in sorted(tuples):
        digest.put(name, tuples[name]._fields)
    return digest.hexdigest()


@functools.cache
def text_key(text: str) -> str:
    """Hash of a text to compile, of the constants and modules that it imports, and of what compiles it."""
    digest = Digest()
    digest.put(text, _versions())
    for source, several, one in IMPORT.findall(text):
        module = importlib.import_module(source)
        for name in (part.split()[0] for part in (several or one).split(",") if part.strip()):
            value = getattr(module, name) if hasattr(module, name) else importlib.import_module(f"{source}.{name}")
            if isinstance(value, CONSTANTS):
                digest.put(name, value)
            else:
                digest.put(_module_key(value if isinstance(value, ModuleType) else module))
    return digest.hexdigest()


@functools.cache
def _module_key(module: ModuleType) -> str:
    """Its text; where it has compiled functions, the hash of that and of what it imports."""
    text = Path(str(module.__file__)).read_text(encoding="utf-8")
    return text_key(text) if COMPILES.search(text) else text


@functools.cache
def _versions() -> tuple[str, ...]:
    packages = map(importlib.metadata.version, PACKAGES)
    return __version__, platform.python_implementation(), sys.version, platform.machine(), *packages


def cached(key: str, text: Callable[[], str]) -> ModuleType:
    """The module of this key, executed anew; `text` makes it where there is no file yet, or only a spoilt one.

    Where no file can be kept it is compiled in this process alone, and a HeronWarning says so once.
    """
    name = f"heron_{key}"
    try:
        path = store() / f"{name}.py"
    except OSError as error:
        _warn(error)
        return _executed(name, text(), f"<{name}>")
    if (saved := _saved_text(path)) is not None:
        return _executed(name, saved, str(path))
    _say(path.parent)
    made = text()
    try:
        _forget(path)
        _write(path, made)
        _prune(path.parent)
    except OSError as error:
        _warn(error)
        return _executed(name, made, f"<{name}>")
    return _executed(name, made, str(path))


def store() -> Path:
    """The folder that modules are kept in: the cache folder, or, where others may write there, one in it that is ours.

    Raises OSError where there is none. Whoever may rename these folders can bring no code of theirs in: each file is
    looked at when it is open (`read`), and its name is part of its seal.
    """
    folder = cache_folder()
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if why_not_ours(folder.stat()) == OPEN:
        folder = folder / f"heron_env_{os.geteuid()}"
        folder.mkdir(mode=0o700, exist_ok=True)
    if why := why_not_ours(folder.stat()):
        raise PermissionError(errno.EPERM, why, str(folder))
    return folder


@functools.cache
def _say(folder: Path) -> None:
    """Say once in a process, on a terminal, what takes so long."""
    if sys.stderr.isatty():
        print(f"heron_env compiles rules, once, for up to a minute; the result is kept in {folder}", file=sys.stderr)


def _warn(error: OSError) -> None:
    """Say once in a process why nothing is kept."""
    text = (
        f"compiled rules can't be kept in {str(error.filename)!r}: {error.strerror or error}; every process compiles "
        "them anew, for up to a minute; set HERON_CACHE_DIR to a folder of your own"
    )
    if text not in _warned:
        _warned.add(text)
        warnings.warn(text, HeronWarning, stacklevel=3)


_warned: set[str] = set()


def cached_file(path: Path) -> ModuleType:
    """A module of compiled code, from a copy in the cache folder: compiled once for an installation."""
    text = path.read_text(encoding="utf-8")
    return cached(f"{path.stem}_{text_key(text)}", lambda: text)


def _executed(name: str, text: str, where: str) -> ModuleType:
    """The module of this text; numba keeps machine code beside the file `where`, if it is one."""
    module = ModuleType(name)
    module.__file__ = where
    sys.modules[name] = module  # where machine code from the disk looks it up
    exec(compile(text, where, "exec", dont_inherit=True), vars(module))
    return module


def _saved_text(path: Path) -> str | None:
    """What the file holds; None for one that is not there, not what was written, or not ours."""
    try:
        body, _, seal = read(path, ours=True)[:-1].rpartition(b"\n")
    except (OSError, ValueError):
        return None
    if seal != _seal(path, body):
        return None
    with contextlib.suppress(OSError):  # a folder that was filled beforehand, and may only be read
        os.utime(path, (time.time(), WRITTEN))
    return body.decode()


def _seal(path: Path, body: bytes) -> bytes:
    return b"# " + hashlib.sha256(path.name.encode() + body).hexdigest().encode()


def _forget(path: Path) -> None:
    """Delete a module and its machine code."""
    for old in (path, *(path.parent / "__pycache__").glob(f"{path.stem}.*")):
        old.unlink(missing_ok=True)


def _write(path: Path, text: str) -> None:
    """All of it or nothing, whoever else writes the same file."""
    body = text.encode("utf-8")
    write(path, body + b"\n" + _seal(path, body) + b"\n", modified=WRITTEN, mode=CLOSED)


def _prune(folder: Path) -> None:
    """Delete what was used least recently; a file that another process deletes meanwhile is no matter."""
    try:
        files = sorted(folder.glob("heron_*.py"), key=lambda file: file.stat().st_atime, reverse=True)
    except FileNotFoundError:
        return
    for old in files[MOST_FILES:]:
        _forget(old)


def _unhashable(value: Any, name: str) -> RuleError:
    article = "an" if type(value).__name__[0] in "aeiou" else "a"
    what = f"the class {value.__name__}" if isinstance(value, type) else f"{article} {type(value).__name__}"
    return RuleError(
        f"{name} is {what}: a compiled rule may read numbers, tuples, arrays, enums, named tuples and functions from "
        "outside; make it one of these, or build the environment with compile=False"
    )


class Digest:
    """blake2b of everything that a rule's meaning depends on, reached from its code by name.

    numba's own cache looks at the generated file alone and would go on with an old rule after an edit. Line numbers,
    comments and the order of sets do not count; what can't be hashed is refused, for a change of it would go unseen.
    """

    def __init__(self) -> None:
        self._hash = hashlib.blake2b(digest_size=12)
        self._visited: dict[int, tuple[int, Any]] = {}  # by id; values are held, so that no id is used twice

    def hexdigest(self) -> str:
        """24 characters."""
        return self._hash.hexdigest()

    def put(self, *parts: Any) -> None:
        """Plain values, by their repr."""
        for part in parts:
            self._hash.update(repr(part).encode() + b"\0")

    def value(self, value: Any, name: str) -> None:
        """Any value a rule may reach, called `name` in messages. Raises RuleError for one that can't be hashed."""
        if isinstance(value, PLAIN) and not isinstance(value, enum.Enum):
            self.put(type(value).__name__, value)
            return
        if id(value) in self._visited:
            self.put("seen", self._visited[id(value)][0])
            return
        self._visited[id(value)] = len(self._visited), value
        if str(getattr(value, "__module__", None) or getattr(value, "__name__", "")).startswith("numpy.random"):
            raise RuleError(
                f"{name} draws at random: no seed would repeat it; draw in a world rule, world.draw(name, shape)"
            )
        if hasattr(value, "py_func"):
            self.put("compiled", sorted((key, str(option)) for key, option in value.targetoptions.items()))
            self.value(value.py_func, name)
        elif library(value) and (isinstance(value, types.ModuleType | np.ufunc) or callable(value)):
            self.put("library", getattr(value, "__module__", ""), getattr(value, "__name__", ""))
        elif isinstance(value, types.FunctionType):
            self.function(value, name)
        elif isinstance(value, np.ndarray) and value.dtype.kind in "biufc":
            self.put("array", value.dtype.str, value.shape)
            self._hash.update(np.ascontiguousarray(value).tobytes())
        elif isinstance(value, np.generic):
            self.put(value.dtype.str, value.item())
        elif isinstance(value, tuple | list):
            self.put(type(value).__name__, len(value), *getattr(value, "_fields", ()))
            for i, element in enumerate(value):
                self.value(element, f"{name}[{i}]")
        elif isinstance(value, frozenset):
            self.put("set", sorted(map(repr, value)))
        elif isinstance(value, enum.Enum):
            self.put("member", type(value).__qualname__, value.name, value.value)
        elif isinstance(value, type) and issubclass(value, enum.Enum):
            self.put("enum", value.__qualname__, [(key, member.value) for key, member in value.__members__.items()])
        elif isinstance(value, type) and hasattr(value, "_fields"):
            self.put("record", value.__qualname__, value._fields)
            self.value(tuple(getattr(value, "_field_defaults", {}).items()), name)
        else:
            raise _unhashable(value, name)

    def function(self, function: types.FunctionType, name: str) -> None:
        """A function's code, its defaults, and everything it reads from outside."""
        self.put("function", function.__name__)
        for i, default in enumerate(function.__defaults__ or ()):
            self.value(default, f"default {i} of {name}")
        for key, default in (function.__kwdefaults__ or {}).items():
            self.value(default, f"default {key} of {name}")
        closed = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
        for block in code_blocks(function.__code__):
            self.put(block.co_code, block.co_varnames, block.co_names, block.co_freevars, block.co_exceptiontable)
            for constant in block.co_consts:
                if not isinstance(constant, types.CodeType):
                    self.value(constant, f"a constant in {name}")
            self._outside(block, function, closed, name)

    def _outside(
        self, code: types.CodeType, function: types.FunctionType, closed: dict[str, types.CellType], where: str
    ) -> None:
        """Values behind the names in one block of code, modules followed: `constants.GAIN`."""
        line = code.co_firstlineno
        instructions = list(dis.get_instructions(code))
        for at, instruction in enumerate(instructions):
            line = line_in_source(instruction) or line
            name = instruction.argval
            place = f"{code.co_filename}:{line}: {where} reads"
            if instruction.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
                if name not in function.__globals__:
                    if not hasattr(builtins, name):
                        raise RuleError(f"{place} {name}, which does not exist; import it, or correct the name")
                    self.put("builtin", name)
                    continue
                value = function.__globals__[name]
            elif instruction.opname in ("LOAD_DEREF", "LOAD_CLASSDEREF") and name in closed:
                value = closed[name].cell_contents
            else:
                continue
            self.put(name)
            for following in instructions[at + 1 :]:
                if not (isinstance(value, types.ModuleType) and following.opname in ("LOAD_ATTR", "LOAD_METHOD")):
                    break
                if not hasattr(value, following.argval):
                    raise RuleError(f"{place} {name}.{following.argval}, which does not exist; correct the name")
                name = f"{name}.{following.argval}"
                self.put(name)
                value = getattr(value, following.argval)
            if isinstance(value, types.ModuleType) and not library(value):
                raise RuleError(f"{place} the module {name} as a value; write {name}.NAME where it is used")
            self.value(value, f"{place} {name}, which" if not isinstance(value, types.FunctionType) else name)


@contextlib.contextmanager
def uncollected() -> Iterator[None]:
    """Inside, while something is compiled, no garbage is collected; afterwards it is as before.

    A compiler makes millions of small objects and keeps most of them until it is done: to look through them again and
    again, for cycles that are not there, took a sixth of the time of compiling.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
