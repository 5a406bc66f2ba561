"""Files that only grow, line by line, and that one process alone writes: killed at any point, what was whole stays."""

from __future__ import annotations

import os
from pathlib import Path


def locked(descriptor: int) -> bool:
    """Is the open file this process's own until it is closed? Where there are no locks (Windows): always."""
    try:
        import fcntl
    except ImportError:
        return True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def locked_folder(folder: Path) -> int | None:
    """The descriptor of a folder's lock, which is free again when this process ends, however it does; None: taken."""
    descriptor = os.open(folder / ".lock", os.O_RDWR | os.O_CREAT, 0o644)
    if locked(descriptor):
        return descriptor
    os.close(descriptor)
    return None


def append(descriptor: int, data: bytes, path: Path, *, sync: bool = True) -> None:
    """Write it at the end, with `sync` onto the disk. Raises OSError naming the file, which then is as before."""
    before, left = os.lseek(descriptor, 0, os.SEEK_END), memoryview(data)
    try:
        while left:
            left = left[os.write(descriptor, left) :]
        if sync:
            os.fsync(descriptor)
    except OSError as error:
        os.ftruncate(descriptor, before)
        raise OSError(error.errno, error.strerror, str(path)) from error


def whole_lines(data: bytes) -> int:
    """Length of the lines that have their end."""
    return data.rfind(b"\n") + 1
