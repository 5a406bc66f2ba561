"""Writing files: beside first, then moved, so that what was there stays until all that is new is whole; and journals.

Every file that this package writes goes through here. What a killed process leaves of a file that was not finished is
hidden and ends with `.part`. Journals only grow, line by line, and one process alone writes them: killed at any point,
full lines stay.
"""

from __future__ import annotations

import errno
import json
import os
import stat
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self

if TYPE_CHECKING:
    from filelock import BaseFileLock


PART: Final = ".part"
"""How the name of a file that is not finished ends."""
LEGIBLE: Final = 40
"""Letters of its own name that such a file keeps."""
CLOSED: Final = 0o644
"""Permissions of a file that others may not write, whatever the umask."""
Content = str | bytes


class _Replacement(NamedTuple):
    part: Path
    target: Path


def compact(value: Any) -> str:
    """Strict JSON without blanks. Raises ValueError for nan and infinities."""
    return json.dumps(value, separators=(",", ":"), allow_nan=False)


def write(path: str | Path, content: Content, *, modified: float | None = None, mode: int | None = None) -> Path:
    """Write one file, text as UTF-8; folders are made. Returns the path. Raises OSError naming the file.

    `modified`: time of the file, s since 1970. `mode`: its
    permissions, less the umask; None: those of the file that it replaces, if there is one.
    """
    write_all({Path(path): content}, modified=modified, mode=mode)
    return Path(path)


def write_all(contents: Mapping[Path, Content], *, modified: float | None = None, mode: int | None = None) -> None:
    """Write several files, all or none: nothing is replaced before all are complete.

    Of a link the target is replaced. A device, such as /dev/null, is written to.

    Raises OSError naming the file: a full disk, no permission, a folder or a pipe of that name. Then no file has
    changed.
    """
    moves: list[_Replacement] = []
    try:
        for path, content in contents.items():
            with _naming(path):
                data = content.encode() if isinstance(content, str) else content
                target = Path(os.path.realpath(path))
                if _is_device(target):
                    with target.open("wb") as stream:
                        stream.write(data)
                else:
                    target.parent.mkdir(parents=True, exist_ok=True)
                    moves.append(_Replacement(_part_of(target), target))
                    _fill(*moves[-1], data, mode)
                    if modified is not None:
                        os.utime(moves[-1].part, (time.time(), modified))
        for part, target in moves:
            with _naming(target):
                os.replace(part, target)
    except BaseException:
        for part, _ in moves:
            part.unlink(missing_ok=True)
        raise


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    """What fails within fails with the name of the file that was wanted."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, error.strerror or str(error), str(path)) from error


def _is_device(target: Path) -> bool:
    """Raises OSError for what can be neither replaced nor written into."""
    try:
        mode = target.stat().st_mode
    except FileNotFoundError:
        return False
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    if not stat.S_ISREG(mode) and not stat.S_ISCHR(mode):
        raise OSError(errno.EINVAL, "Is neither a regular file nor a device")
    if not os.access(target, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    return stat.S_ISCHR(mode)


def _part_of(target: Path) -> Path:
    """Beside the target, since only within a file system a move is one step; of a name that nobody else has."""
    return target.with_name(f".{target.name[:LEGIBLE]}.{os.getpid()}-{threading.get_ident()}-{time.time_ns()}{PART}")


def _fill(part: Path, target: Path, data: bytes, mode: int | None) -> None:
    """Write the part, with its mode or the permissions of what it will replace, and wait until it is on the disk."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    descriptor = os.open(part, flags, 0o666 if mode is None else mode)
    with os.fdopen(descriptor, "wb") as stream:
        if mode is None and hasattr(os, "fchmod") and target.exists():
            os.fchmod(descriptor, stat.S_IMODE(target.stat().st_mode))
        stream.write(data)
        stream.flush()
        os.fsync(descriptor)


FLAGS: Final = os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0) | getattr(os, "O_NONBLOCK", 0)


def lock(path: Path) -> BaseFileLock | None:
    """The lock that the file at `path` stands for; None: another process, or another object of this one, has it.

    It is free again after `release()`, and when this process ends, however it does. Raises OSError.
    """
    from filelock import FileLock, Timeout

    file_lock = FileLock(path, timeout=0, thread_local=False)
    try:
        file_lock.acquire()
    except Timeout:
        return None
    return file_lock


def lock_folder(folder: Path) -> BaseFileLock | None:
    """The lock of a folder; None: it is taken."""
    return lock(folder / ".lock")


def lock_beside(path: Path) -> BaseFileLock | None:
    """The lock of one file, hidden beside what `path` leads to, so that a link has none of its own."""
    real = path.resolve()
    return lock(real.with_name(f".{real.name}.lock"))


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
        self._descriptor = os.open(path, FLAGS, 0o666)
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
