"""Public names that are imported when they are first used (PEP 562), so that a package costs nothing until then."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from heron_env.errors import RemovedName

Get = Callable[[str], Any]
Names = Callable[[], list[str]]


def lazily(
    package: str, homes: Mapping[str, Sequence[str]], gone: Mapping[str, str] | None = None
) -> tuple[Get, Names]:
    """`__getattr__` and `__dir__` of a package whose public names lie in its modules: `{"module": ("Name", ...)}`.

    `gone`: public names of earlier versions, and what takes their place, in words. Asked for they raise RemovedName.
    """
    home_of = {name: module for module, names in homes.items() for name in names}

    def get(name: str) -> Any:
        """Import a public name when it is first used."""
        if gone and name in gone:
            raise RemovedName(f"{package}.{name} is gone since an earlier 0.x: {gone[name]}", name=name)
        if name not in home_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(importlib.import_module(f"{package}.{home_of[name]}"), name)
        setattr(sys.modules[package], name, value)
        return value

    def names() -> list[str]:
        """All public names."""
        return list(sys.modules[package].__all__)

    return get, names
