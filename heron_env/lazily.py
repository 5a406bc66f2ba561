"""Public names that are imported when they are first used (PEP 562), so that a package costs nothing until then."""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from heron_env.errors import RemovedName

Get = Callable[[str], Any]
Names = Callable[[], list[str]]
PUBLIC: Final = (
    "heron_env", "heron_env.lab", "heron_env.lab.benchmark", "heron_env.lab.board", "heron_env.adapters",
    "heron_env.adapters.jax", "heron_env.adapters.rllib", "heron_env.injection", "heron_env.real", "heron_env.dcop",
    "heron_env.dcop.cluster", "heron_env.power_flow", "heron_env.testing", "heron_env.testing.clock",
    "heron_env.errors", "heron_env.files", "heron_env.serve.seats", "heron_env.worlds.battery_grid",
    "heron_env.worlds.economy", "heron_env.worlds.energy_management", "heron_env.worlds.graph_coloring",
    "heron_env.worlds.graph_coloring.talking",
    "heron_env.worlds.guided_walker", "heron_env.worlds.particles", "heron_env.worlds.spread",
    "heron_env.worlds.traffic_corridor",
)  # fmt: skip
"""The public modules. Their public names are those of `__all__`; the reference, README.md and the tests follow."""
LINE: Final = re.compile(r"^from (\S+) import (\w+) as \2$", re.MULTILINE)
"""Of a stub: where a public name lies."""


def lazily(package: str, file: str, gone: Mapping[str, str] | None = None) -> tuple[Get, Names, list[str]]:
    """`__getattr__`, `__dir__` and `__all__` of a package whose stub, beside `file`, says where its public names lie.

    `gone`: public names of earlier versions, and what takes their place, in words. Asked for they raise RemovedName.
    """
    stub = Path(file).with_suffix(".pyi").read_text(encoding="utf-8")
    home_of = {name: module for module, name in LINE.findall(stub)}

    def get(name: str) -> Any:
        """Import a public name when it is first used."""
        if gone and name in gone:
            raise RemovedName(f"{package}.{name} is gone since an earlier 0.x: {gone[name]}", name=name)
        if name not in home_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(importlib.import_module(home_of[name]), name)
        setattr(sys.modules[package], name, value)
        return value

    def names() -> list[str]:
        """All public names."""
        return list(home_of)

    return get, names, sorted(home_of)
