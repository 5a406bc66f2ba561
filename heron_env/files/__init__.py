"""Files on disk: how they are written, and how they are read."""

from typing import TYPE_CHECKING

from heron_env.lazily import lazily

if TYPE_CHECKING:
    from heron_env.files.writing import write, write_all

_HOMES = {
    "writing": (
        "write",
        "write_all",
    ),
}

__getattr__, __dir__ = lazily(__name__, _HOMES)

__all__ = [
    "write",
    "write_all",
]
