"""Files that only grow, line by line, and that one process alone writes: killed at any point, full lines stay."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self

if TYPE_CHECKING:
    from filelock import BaseFileLock

FLAGS: Final = os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0) | getattr(os, "O_NONBLOCK", 0)


def lock(path: Path) -> BaseFileLock | None:
    """The lock that the file at `path` stands for; None: another process, or another object of this one, has it.

    It is free again after `release()`, and when this process ends, however it does. Raises OSError.
    """
    from filelock import FileLock, Timeout

    file_lock = FileLock(path, timeout=0, mode=0o644, thread_local=False)
    try:
        file_lock.acquire()
    except Timeout:
        return None
    return file_lock


def lock_folder(folder: Path) -> BaseFileLock | None:
    """The lock of a folder; None: it is taken."""
    return lock(folder / ".lock")


def full_lines(data: bytes) -> int:
    """Length of the lines that have their end, bytes."""
    return data.rfind(b"\n") + 1


class Journal:
    """A file that grows by lines; made where it does not exist.

    Args:
        path: of the file.
        sync: wait for the disk with each `append`; otherwise only with `close`.

    Raises OSError; ValueError for a pipe or a device, of which nothing would ever come.
    """

    def __init__(self, path: Path, *, sync: bool = True) -> None:
        self.path, self._sync = path, sync
        self._descriptor = os.open(path, FLAGS, 0o644)
        if not stat.S_ISREG(os.fstat(self._descriptor).st_mode):
            os.close(self._descriptor)
            raise ValueError("is a pipe or a device, no regular file")

    def read(self, most: int) -> bytes:
        """The first `most` bytes."""
        os.lseek(self._descriptor, 0, os.SEEK_SET)
        with os.fdopen(self._descriptor, "rb", closefd=False) as stream:
            return stream.read(most)

    def append(self, data: bytes) -> None:
        """Write at the end. Raises OSError naming the file, which then is as before."""
        before, left = os.lseek(self._descriptor, 0, os.SEEK_END), memoryview(data)
        try:
            while left:
                left = left[os.write(self._descriptor, left) :]
            if self._sync:
                os.fsync(self._descriptor)
        except OSError as error:
            os.ftruncate(self._descriptor, before)
            raise OSError(error.errno, error.strerror, str(self.path)) from error

    def truncate(self, length: int) -> None:
        """Keep the first `length` bytes. Raises OSError."""
        os.ftruncate(self._descriptor, length)

    def close(self) -> None:
        """Close the file; what was appended without waiting is on the disk then. Twice is harmless."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor < 0:
            return
        try:
            if not self._sync:
                os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def __enter__(self) -> Self:
        """Itself."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Close."""
        self.close()
