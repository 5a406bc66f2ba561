"""The digest: a hash of everything that a rule's meaning depends on, reached from its code by name.

numba's own cache looks at the generated file alone and would go on with an old rule after an edit. Line numbers,
comments and the order of sets do not count; what can't be hashed is refused, for a change of it would go unseen.
"""

from __future__ import annotations

import builtins
import dis
import enum
import hashlib
import types
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from heron_env.errors import RuleError

LIBRARIES = ("builtins", "cmath", "enum", "math", "numba", "numpy", "operator", "typing")
"""Known by their version: what comes from them is a name."""
PLAIN = (int, float, complex, str, bytes, bool, type(None), type(Ellipsis))


def library(value: Any) -> bool:
    """Does this come from a library that numba knows?"""
    name = value.__name__ if isinstance(value, types.ModuleType) else getattr(value, "__module__", None) or ""
    return isinstance(value, np.ufunc) or str(name).split(".")[0] in LIBRARIES


def code_blocks(code: types.CodeType) -> Iterator[types.CodeType]:
    """The code, and that of the functions, comprehensions and lambdas in it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from code_blocks(constant)


def line_of(code: types.CodeType, holds: Callable[[dis.Instruction], bool]) -> int | None:
    """Line of the first instruction that `holds`."""
    for block in code_blocks(code):
        line = block.co_firstlineno
        for instruction in dis.get_instructions(block):
            line = _line(instruction) or line
            if holds(instruction):
                return line
    return None


def _line(instruction: dis.Instruction) -> int | None:
    """Where it stands in the source; `starts_line` would be a bool from Python 3.13 on."""
    return None if instruction.positions is None else instruction.positions.lineno


class Digest:
    """blake2b over code, constants and values; `where` is the rule that messages name."""

    def __init__(self) -> None:
        self._hash = hashlib.blake2b(digest_size=12)
        self._seen: dict[int, int] = {}
        self._kept: list[Any] = []  # so that no id is used twice

    def hexdigest(self) -> str:
        """24 characters."""
        return self._hash.hexdigest()

    def put(self, *parts: Any) -> None:
        """Plain values, by their repr."""
        for part in parts:
            self._hash.update(repr(part).encode() + b"\0")

    def value(self, value: Any, name: str) -> None:
        """Any value a rule may reach, called `name` in messages. Raises RuleError for one that can't be hashed."""
        if isinstance(value, PLAIN) and not isinstance(value, enum.Enum):
            self.put(type(value).__name__, value)
            return
        if id(value) in self._seen:
            self.put("seen", self._seen[id(value)])
            return
        self._seen[id(value)] = len(self._seen)
        self._kept.append(value)
        if str(getattr(value, "__module__", None) or getattr(value, "__name__", "")).startswith("numpy.random"):
            raise RuleError(
                f"{name} draws at random: no seed would repeat it; draw in a world rule, world.draw(name, shape)"
            )
        if hasattr(value, "py_func"):
            self.put("compiled", sorted((key, str(option)) for key, option in value.targetoptions.items()))
            self.value(value.py_func, name)
        elif library(value) and (isinstance(value, types.ModuleType | np.ufunc) or callable(value)):
            self.put("library", getattr(value, "__module__", ""), getattr(value, "__name__", ""))
        elif isinstance(value, types.FunctionType):
            self.function(value, name)
        elif isinstance(value, np.ndarray) and value.dtype.kind in "biufc":
            self.put("array", value.dtype.str, value.shape)
            self._hash.update(np.ascontiguousarray(value).tobytes())
        elif isinstance(value, np.generic):
            self.put(value.dtype.str, value.item())
        elif isinstance(value, tuple | list):
            self.put(type(value).__name__, len(value), *getattr(value, "_fields", ()))
            for i, element in enumerate(value):
                self.value(element, f"{name}[{i}]")
        elif isinstance(value, frozenset):
            self.put("set", sorted(map(repr, value)))
        elif isinstance(value, enum.Enum):
            self.put("member", type(value).__qualname__, value.name, value.value)
        elif isinstance(value, type) and issubclass(value, enum.Enum):
            self.put("enum", value.__qualname__, [(key, member.value) for key, member in value.__members__.items()])
        elif isinstance(value, type) and hasattr(value, "_fields"):
            self.put("record", value.__qualname__, value._fields)
            self.value(tuple(getattr(value, "_field_defaults", {}).items()), name)
        else:
            article = "an" if type(value).__name__[0] in "aeiou" else "a"
            what = f"the class {value.__name__}" if isinstance(value, type) else f"{article} {type(value).__name__}"
            raise RuleError(
                f"{name} is {what}: a compiled rule may read numbers, tuples, arrays, enums, named tuples and "
                "functions from outside; make it one of these, or build the environment with compile=False"
            )

    def function(self, function: types.FunctionType, name: str) -> None:
        """A function's code, its defaults, and everything it reads from outside."""
        self.put("function", function.__name__)
        for i, default in enumerate(function.__defaults__ or ()):
            self.value(default, f"default {i} of {name}")
        for key, default in (function.__kwdefaults__ or {}).items():
            self.value(default, f"default {key} of {name}")
        closed = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
        for block in code_blocks(function.__code__):
            self.put(block.co_code, block.co_varnames, block.co_names, block.co_freevars, block.co_exceptiontable)
            for constant in block.co_consts:
                if not isinstance(constant, types.CodeType):
                    self.value(constant, f"a constant in {name}")
            self._outside(block, function, closed, name)

    def _outside(
        self, code: types.CodeType, function: types.FunctionType, closed: dict[str, types.CellType], where: str
    ) -> None:
        """Values behind the names in one block of code, modules followed: `constants.GAIN`."""
        line = code.co_firstlineno
        instructions = list(dis.get_instructions(code))
        for at, instruction in enumerate(instructions):
            line = _line(instruction) or line
            name = instruction.argval
            place = f"{code.co_filename}:{line}: {where} reads"
            if instruction.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
                if name not in function.__globals__:
                    if not hasattr(builtins, name):
                        raise RuleError(f"{place} {name}, which does not exist; import it, or correct the name")
                    self.put("builtin", name)
                    continue
                value = function.__globals__[name]
            elif instruction.opname in ("LOAD_DEREF", "LOAD_CLASSDEREF") and name in closed:
                value = closed[name].cell_contents
            else:
                continue
            self.put(name)
            for following in instructions[at + 1 :]:
                if not (isinstance(value, types.ModuleType) and following.opname in ("LOAD_ATTR", "LOAD_METHOD")):
                    break
                if not hasattr(value, following.argval):
                    raise RuleError(f"{place} {name}.{following.argval}, which does not exist; correct the name")
                name = f"{name}.{following.argval}"
                self.put(name)
                value = getattr(value, following.argval)
            if isinstance(value, types.ModuleType) and not library(value):
                raise RuleError(f"{place} the module {name} as a value; write {name}.NAME where it is used")
            self.value(value, f"{place} {name}, which" if not isinstance(value, types.FunctionType) else name)
