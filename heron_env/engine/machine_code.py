"""Machine code on disk: numba's cache, which a spoilt file or a full disk does not stop, and nobody else can fill."""

from __future__ import annotations

import contextlib
import hashlib
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

from numba.core import caching

from heron_env.files.reading import read
from heron_env.files.writing import CLOSED, write

_Files: Any = caching.IndexDataCacheFile
_Cache: Any = caching.FunctionCache
SEAL = hashlib.sha256().digest_size
"""Bytes in front of a file: the hash of its name, numba's version and the rest."""


class SealedFiles(_Files):  # type: ignore[misc]
    """numba's files, which tell when they are no longer what we wrote: wrong machine code would just run."""

    def _read(self, path: str) -> Any:
        found = read(path, ours=True)
        if self._seal(path, found[SEAL:]) != found[:SEAL]:
            raise ValueError(f"{path} is not what was written")
        return pickle.loads(found[SEAL:])

    def _write(self, path: str, data: Any) -> None:
        code = self._dump(data)
        write(path, self._seal(path, code) + code, mode=CLOSED)

    def _seal(self, path: str, code: bytes) -> bytes:
        return hashlib.sha256(f"{Path(path).name} {self._version} ".encode() + code).digest()

    def _load_index(self) -> Any:
        try:
            stamp, overloads = self._read(self._index_path)
        except FileNotFoundError:
            return {}
        return overloads if stamp == self._source_stamp else {}

    def _save_index(self, overloads: Any) -> None:
        self._write(self._index_path, (self._source_stamp, overloads))

    def _load_data(self, name: str) -> Any:
        return self._read(self._data_path(name))

    def _save_data(self, name: str, data: Any) -> None:
        self._write(self._data_path(name), data)


class MachineCode(_Cache):  # type: ignore[misc]
    """What can't be loaded is compiled and written anew; what can't be written is compiled in every process."""

    _cache_file: Any

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        stamp = self._impl.locator.get_source_stamp()
        self._cache_file = SealedFiles(self._cache_path, self._impl.filename_base, stamp)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """The machine code for these types, or None."""
        try:
            return super().load_overload(sig, target_context)
        except Exception:  # noqa: BLE001  (a file that was cut short ends in whatever pickle stumbles over)
            try:
                self.flush()
            except OSError:
                self.disable()
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep it, if there is room."""
        with contextlib.suppress(OSError):
            super().save_overload(sig, data)


def keeping(jit: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """`jit` whose results are kept on disk."""

    def compiled(function: Any) -> Any:
        made = jit(function)
        with contextlib.suppress(RuntimeError, OSError):  # no folder that numba may write to, or no file of its text
            made._cache = MachineCode(function)
        return made

    return compiled
