"""The cache: generated modules on disk, one file per set of rules, with numba's machine code beside them.

A file's name holds the hash of all its content depends on, so a file is never changed once it is there; its time of
change is fixed, for numba takes that for the version, and two processes may write the same file at once. Its last line
is a hash of its name and the rest: a file that is not what was written is deleted and made anew. So is one that another
user but root owns or may write to, for what is kept is run.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import hashlib
import importlib
import importlib.metadata
import os
import platform
import re
import sys
import time
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

from heron_env._version import __version__
from heron_env.engine.digest import Digest
from heron_env.errors import HeronWarning
from heron_env.files.reading import OPEN, read, why_not_ours
from heron_env.files.writing import CLOSED, write

KEPT = 200
"""Generated files that are kept; beyond, the least recently used go."""
WRITTEN = 1_000_000_000
"""Time of change of every generated file, s."""
PACKAGES = ("numba", "numpy", "llvmlite")
LOOPS = Path(__file__).with_name("loop_kernels.py")
"""The loops that are the same for all rules; generated text calls them."""
IMPORT = re.compile(r"^from (heron_env[\w.]*) import (?:\(([^)]*)\)|(.*))$", re.MULTILINE)
COMPILES = re.compile(r"^from heron_env\.engine\.(kernels|machine_code) import", re.MULTILINE)
"""In a module with compiled functions."""
CONSTANTS = (bool, int, float, str, tuple, list, dict)


def cache_folder() -> Path:
    """HERON_CACHE_DIR, else the user's cache directory. Raises OSError for a user without a home."""
    given = os.environ.get("HERON_CACHE_DIR")
    try:
        return Path(given).expanduser() if given else _users_folder()
    except RuntimeError as error:
        where = given or "the user's cache directory"
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
    digest.put(text_key(text), text_key(LOOPS.read_text(encoding="utf-8")))
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
    if (found := _kept(path)) is not None:
        return _executed(name, found, str(path))
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


def _kept(path: Path) -> str | None:
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
    for old in files[KEPT:]:
        _forget(old)
