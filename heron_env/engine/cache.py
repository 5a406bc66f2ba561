"""The cache: generated modules on disk, one file per set of rules, with numba's machine code beside them.

A file's name holds the hash of all its content depends on, so a file is never changed once it is there; its time of
change is fixed, for numba takes that for the version, and two processes may write the same file at once. Its last line
is a hash of the rest: a file that is not what was written is deleted and made anew.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib.metadata
import importlib.util
import os
import platform
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

from heron_env._version import __version__
from heron_env.engine.digest import Digest
from heron_env.errors import ConfigError
from heron_env.files.writing import write

KEPT = 200
"""Generated files that are kept; beyond, the least recently used go."""
WRITTEN = 1_000_000_000
"""Time of change of every generated file, s."""
PACKAGES = ("numba", "numpy", "llvmlite")
NUMBERED = ("arrays.py", "decision_tables.py", "lane_errors.py", "law.py", "observation_tables.py")
"""Files whose constants become numbers in compiled code."""


def cache_folder() -> Path:
    """HERON_CACHE_DIR, else the user's cache directory. Raises ConfigError for a user without a home."""
    given = os.environ.get("HERON_CACHE_DIR")
    try:
        return Path(given).expanduser() if given else _users_folder()
    except RuntimeError as error:
        where = f"HERON_CACHE_DIR={given!r}" if given else "the user's cache directory"
        raise ConfigError(
            f"compiled rules can't be kept in {where}: this user has no home directory; set HERON_CACHE_DIR to a "
            "folder that you may write to, or build the environment with compile=False"
        ) from error


def _users_folder() -> Path:
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local") / "heron_env" / "Cache"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "heron_env"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "heron_env"


def key_of(text: str, rules: Mapping[str, FunctionType], titles: Mapping[str, str], tuples: Mapping[str, Any]) -> str:
    """Hash of generated text, the rules behind it (`titles`: what messages call them), and of what compiles them."""
    digest = Digest()
    digest.put(text, shared_key())
    for name in sorted(rules):
        digest.put(name)
        digest.value(rules[name], titles[name])
    for name in sorted(tuples):
        digest.put(name, tuples[name]._fields)
    return digest.hexdigest()


@functools.cache
def shared_key() -> str:
    """Hash of the kernels, of the numbers they share with the tables, and of the versions of all that compiles them."""
    folder = Path(__file__).parent
    files = [*sorted(folder.glob("*kernel*.py")), *(folder / name for name in NUMBERED)]
    versions = (importlib.metadata.version(package) for package in PACKAGES)
    digest = Digest()
    digest.put(*(file.read_text(encoding="utf-8") for file in files))
    digest.put(__version__, platform.python_implementation(), sys.version, platform.machine(), *versions)
    return digest.hexdigest()


def cached(key: str, text: Callable[[], str]) -> ModuleType:
    """The module of this key, executed anew; `text` makes it where there is no file yet, or only a spoilt one.

    Raises ConfigError naming the folder if it can't be written, or what is written can't be read.
    """
    folder = cache_folder()
    path = folder / f"heron_{key}.py"
    try:
        if not path.exists():
            folder.mkdir(parents=True, exist_ok=True)
            _write(path, text())
            _prune(folder)
        with contextlib.suppress(OSError):  # a folder that was filled beforehand, and may only be read
            os.utime(path, (time.time(), WRITTEN))
        try:
            return _executed(path)
        except Exception:  # noqa: BLE001  (cut short, or overwritten: it may end in anything)
            _forget(path)
            _write(path, text())
    except OSError as error:
        raise ConfigError(
            f"compiled rules can't be kept in {str(folder)!r}: {error.strerror or error}; "
            "set HERON_CACHE_DIR to a folder that you may write to, or build the environment with compile=False"
        ) from error
    try:
        return _executed(path)
    except Exception as error:
        raise ConfigError(
            f"compiled rules in {str(folder)!r} can't be read, not even when written anew: {error!r}; delete that "
            "folder, set HERON_CACHE_DIR to another, or build the environment with compile=False"
        ) from error


def cached_file(path: Path, *others: Path) -> ModuleType:
    """A module of compiled code, from a copy in the cache folder: compiled once for an installation.

    `others`: files whose numbers or functions become part of that code.
    """
    text = path.read_text(encoding="utf-8")
    digest = Digest()
    digest.put(text, *(other.read_text(encoding="utf-8") for other in others), shared_key())
    return cached(f"{path.stem}_{digest.hexdigest()}", lambda: text)


def _executed(path: Path) -> ModuleType:
    """The module in the file. Raises ValueError if its last line, the seal, does not fit."""
    body, _, seal = path.read_bytes()[:-1].rpartition(b"\n")
    if seal != _seal(body):
        raise ValueError(f"{path.name} is not what was written")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module  # where machine code from the disk looks it up
    spec.loader.exec_module(module)
    return module


def _seal(body: bytes) -> bytes:
    return b"# " + hashlib.sha256(body).hexdigest().encode()


def _forget(path: Path) -> None:
    """Delete a module and its machine code."""
    for old in (path, *(path.parent / "__pycache__").glob(f"{path.stem}.*")):
        old.unlink(missing_ok=True)


def _write(path: Path, text: str) -> None:
    """All of it or nothing, whoever else writes the same file."""
    body = text.encode("utf-8")
    write(path, body + b"\n" + _seal(body) + b"\n", modified=WRITTEN)


def _prune(folder: Path) -> None:
    """Delete what was used least recently; a file that another process deletes meanwhile is no matter."""
    try:
        files = sorted(folder.glob("heron_*.py"), key=lambda file: file.stat().st_atime, reverse=True)
    except FileNotFoundError:
        return
    for old in files[KEPT:]:
        _forget(old)
