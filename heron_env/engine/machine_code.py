"""Machine code on disk: numba's cache, which a spoilt file or a full disk does not stop."""

from __future__ import annotations

import contextlib
import hashlib
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

from numba.core import caching

_Files: Any = caching.IndexDataCacheFile
_Cache: Any = caching.FunctionCache
SEAL = hashlib.sha256().digest_size
"""Bytes in front of the machine code: the hash of the rest."""


class SealedFiles(_Files):  # type: ignore[misc]
    """numba's files, which tell when they are no longer what was written: wrong machine code would just run."""

    def _save_data(self, name: str, data: Any) -> None:
        code = self._dump(data)
        with self._open_for_write(self._data_path(name)) as file:
            file.write(hashlib.sha256(code).digest() + code)

    def _load_data(self, name: str) -> Any:
        found = Path(self._data_path(name)).read_bytes()
        if hashlib.sha256(found[SEAL:]).digest() != found[:SEAL]:
            raise ValueError(f"{name} is not what was written")
        return pickle.loads(found[SEAL:])


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
        with contextlib.suppress(RuntimeError):  # there is no folder at all that numba may write to
            made._cache = MachineCode(function)
        return made

    return compiled
