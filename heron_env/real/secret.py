"""The secret that a hub and its nodes share: 32 random bytes in a file that only their user may read.

Who has it can be any node. It goes by a file, never by a command line, and no error, record or run folder holds it.
"""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path
from typing import Final

from heron_env.errors import ConfigError
from heron_env.files.reading import read
from heron_env.files.writing import write

VARIABLE: Final = "HERON_SECRET_FILE"
"""The environment variable that may name the file."""
WRITTEN: Final = re.compile(rb"[0-9a-fA-F]{64}\s*")
MOST_BYTES: Final = 1_000
PRIVATE: Final = "what others may have read or written is no secret; write a new one: heron real secret FILE"
WHICH: Final = "name the file that `heron real secret FILE` wrote"


def new_secret(path: str | Path) -> Path:
    """Write a new secret, as 64 hexadecimal digits and a newline. Returns the path.

    Raises ConfigError where anything of that name exists, and where it can't be written.
    """
    if os.path.lexists(path):
        raise ConfigError(f"secret={str(path)!r}: it exists, and nodes may have its secret; choose another name")
    try:
        return write(path, f"{os.urandom(32).hex()}\n", mode=0o600)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", error)
        raise ConfigError(f"secret={str(path)!r}: can't be written: {why}; choose another place") from error


def read_secret(path: str | Path | None = None) -> bytes | None:
    """The 32 bytes in a file; None: in the one that HERON_SECRET_FILE names, and None where that is not set.

    Raises ConfigError for a file that is missing, that others own, may read or may write, or that holds no secret.
    """
    name = os.environ.get(VARIABLE) if path is None else path
    if name is None:
        return None
    where = f"{VARIABLE if path is None else 'secret'}={str(name)!r}"
    try:
        data = read(name, MOST_BYTES, ours=True)
        mode = stat.S_IMODE(os.stat(name).st_mode)
    except (OSError, ValueError) as error:
        remedy = PRIVATE if isinstance(error, PermissionError) else WHICH
        raise ConfigError(f"{where}: {getattr(error, 'strerror', error)}; {remedy}") from error
    if hasattr(os, "geteuid") and mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise ConfigError(f"{where}: others may read it, its mode is {mode:04o}; {PRIVATE}")
    if not WRITTEN.fullmatch(data):
        raise ConfigError(f"{where}: it holds no secret, which is 64 hexadecimal digits; {WHICH}")
    return bytes.fromhex(data.decode())
