"""Files that one process alone may write."""

from __future__ import annotations


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
