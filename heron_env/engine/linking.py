"""Linking: copies of rules whose helper functions are compiled with them, so that users write no numba."""

from __future__ import annotations

import builtins
import types
from collections.abc import Callable
from typing import Any

from heron_env.engine.digest import code_blocks, library

Jit = Callable[[Callable[..., Any]], Any]
HOME = "heron_env.engine.kernels"
"""Module of every copy: machine code from the disk looks its module up, and the user's may be a notebook's cell."""


class Linker:
    """Compiles functions with one `jit`; a helper that two rules share is compiled once.

    `lender`: a linker whose `jit` may stand for this one; what it has compiled already is not compiled again.
    """

    def __init__(self, jit: Jit, lender: Linker | None = None) -> None:
        self._jit, self._lender = jit, lender
        self._made: dict[int, Any] = {}
        self._kept: list[types.FunctionType] = []

    @property
    def codes(self) -> list[types.CodeType]:
        """Code of every function that was linked."""
        return [function.__code__ for function in self._kept]

    def link(self, function: types.FunctionType) -> Any:
        """A compiled copy of `function`, with its helpers: global, closed over, or attributes of the user's modules."""
        if id(function) in self._made:
            return self._made[id(function)]
        names = [name for block in code_blocks(function.__code__) for name in block.co_names]
        space: dict[str, Any] = {"__builtins__": builtins, "__name__": HOME}
        cells = tuple(types.CellType() for _ in function.__closure__ or ())
        copy = types.FunctionType(function.__code__, space, function.__name__, function.__defaults__, cells)
        copy.__kwdefaults__, copy.__module__ = function.__kwdefaults__, HOME
        made = self._made[id(function)] = self._jit(copy)
        self._kept.append(function)
        for name in names:
            if name in function.__globals__:
                space[name] = self._converted(function.__globals__[name], names)
        for cell, old in zip(cells, function.__closure__ or (), strict=True):
            cell.cell_contents = self._converted(old.cell_contents, names)
        return made

    def _lent(self, function: types.FunctionType) -> Any:
        """What the lender has made of it, if that has been compiled."""
        made = self._lender._made.get(id(function)) if self._lender is not None else None
        return made if made is not None and made.overloads else None

    def _converted(self, value: Any, names: list[str]) -> Any:
        if isinstance(value, types.FunctionType) and not library(value):
            return self._lent(value) or self.link(value)
        if isinstance(value, types.ModuleType) and not library(value):
            twin = types.ModuleType(value.__name__)
            for name in names:
                if hasattr(value, name):
                    setattr(twin, name, self._converted(getattr(value, name), names))
            return twin
        if isinstance(value, list):  # compiled code knows no lists from outside
            return tuple(self._converted(element, names) for element in value)
        return value
