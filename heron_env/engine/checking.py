"""Checking: each rule compiled alone, with its helpers and the types it will get, before anything is written or run.

So that an error names the user's line, reason and remedy, that a rule which allocates is known, and that what it
returns fits what it writes. Users write no numba: what is compiled are copies of their functions.
"""

from __future__ import annotations

import builtins
import dis
import functools
import linecache
import os
import re
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import FunctionType
from typing import Any

import numpy as np

from heron_env.core.rule import rule_spec
from heron_env.engine.source import CompilerFacts, Kind, Source
from heron_env.errors import RuleError, did_you_mean

Jit = Callable[[Callable[..., Any]], Any]
HOME = "heron_env.engine.kernels"
"""Module of every copy: machine code from the disk looks its module up, and the user's may be a notebook's cell."""
OTHERWISE = "or build the environment with compile=False"
REMEDIES = {
    "readonly array": "return the value, and name it in rule(writes=...)",
    "Can't unify return type": f"return numbers of one type on every path, {OTHERWISE}",
    "Cannot unify": f"let a variable keep one type, {OTHERWISE}",
    "IMPORT_NAME": f"move the import to the top of the module, {OTHERWISE}",
    "IMPORT_FROM": f"move the import to the top of the module, {OTHERWISE}",
    "'with": f"leave the `with` out: a rule reads and writes no files, {OTHERWISE}",
    "context manager": f"leave the `with` out: a rule reads and writes no files, {OTHERWISE}",
    "exception_match": f"test for the case beforehand instead of catching it, {OTHERWISE}",
}
REASONS = {
    "readonly array": "it writes into what it reads",
    "IMPORT_NAME": "a compiled rule can't import",
    "IMPORT_FROM": "a compiled rule can't import",
    "'with": "a compiled rule can't use `with`",
    "context manager": "a compiled rule can't use `with`",
    "exception_match": "a compiled rule can't catch exceptions by class",
}
DEFAULT = f"write it with numbers, arrays, math and numpy functions that numba knows, {OTHERWISE}"
LIBRARIES = ("builtins", "cmath", "enum", "math", "numba", "numpy", "operator", "typing")
"""Known by their version: what comes from them is a name."""
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_PLACES = re.compile(r'File "([^"]+)", line (\d+)|(?:at|from) (.+?\.py|<[^>]+>) \((\d+)\)')
_RETURNS = re.compile(r"Return of: IR name '[^']*', type '(.*)', location:\s+File \"[^\"]+\", line (\d+)")
_NOISE = ("Failed in", "During:", "There are", "- Of which", "File ", "raised from", ">>>", "^", "Return of")


def _types() -> Any:
    """numba's types: numba is loaded when something is compiled."""
    import numba

    return numba.types


def linkers_of_rules() -> tuple[Linker, Linker]:
    """What compiles rules that do not allocate, and what compiles those that do."""
    from heron_env.engine import kernels

    return Linker(kernels.rule_leaf), Linker(kernels.rule_allocating)


def examined(source: Source, linkers: tuple[Linker, Linker]) -> CompilerFacts:
    """Compile every rule. Raises RuleError for the first that can't be compiled, or returns what can't be stored."""
    allocates, infos = [], {}
    for kind in source.kinds:
        for rule in kind.rules:
            allocating, returned = _compiled(source, kind, rule, linkers)
            if allocating or _has_arrays(returned):
                allocates.append(f"{kind.name}_{rule}")
            _require_fit(kind, rule, returned)
            if rule == "get_local_info":
                infos[kind.name] = tuple(returned.fields)
    return CompilerFacts(tuple(allocates), infos)


def _compiled(source: Source, kind: Kind, rule: str, linkers: tuple[Linker, Linker]) -> tuple[bool, Any]:
    """Does it allocate, and the numba type of what it returns.

    Tried without reference counts; what refuses may allocate, and is tried with them.
    """
    function: Any = getattr(kind.cls, rule)
    types = _argument_types(source, kind, rule)
    linker, failed = first_that_compiles(linkers, function, types)
    if failed is None:
        return linker is linkers[1], linker.link(function).overloads[types].signature.return_type
    read = [source.tuple_of(kind, p)[0] for p in kind.rules[rule] if p.feature is not None]
    fields = {feature.__name__: list(feature.quantities) for feature in read}
    raise explained(failed, f"{kind.cls.__name__}.{rule}", function, linkers[1].codes, fields) from failed


def _argument_types(source: Source, kind: Kind, rule: str) -> tuple[Any, ...]:
    """The numba types of what the generated function passes."""
    types = _types()
    float64, int64 = types.float64, types.int64
    row = types.Array(float64, 1, "C", readonly=True)
    kinds: list[Any] = []
    for parameter in kind.rules[rule]:
        if parameter.feature is None:
            kinds.append(float64 if parameter.role in ("dt", "time") else row)
            continue
        feature, made = source.tuple_of(kind, parameter)
        quantities = feature.quantities.values()
        if parameter.role == "children":
            cells = [types.Array(float64, 1, "A", readonly=True) for _ in quantities]
        else:
            cells = [
                types.Array(float64, len(q.shape), "C", readonly=True)
                if q.shape
                else float64
                if q.kind == "float"
                else int64
                for q in quantities
            ]
        kinds.append(types.BaseTuple.from_types(cells, made))
    return tuple(kinds)


def _require_fit(kind: Kind, rule: str, returned: Any) -> None:
    """Raise RuleError unless the type of what a rule returns can be stored."""
    types = _types()
    spec = rule_spec(getattr(kind.cls, rule))
    assert spec is not None
    where = f"{kind.cls.__name__}.{rule}"
    if not spec.writes:
        if rule == "action_mask" and not _vector(returned):
            raise RuleError(
                f"{where} returns {returned}: a mask is a flat array or tuple of numbers, one for each choice"
            )
        if rule not in ("get_local_info", "action_mask") and not isinstance(
            returned, types.Integer | types.Float | types.Boolean
        ):
            raise RuleError(f"{where} returns {returned}: a number is needed; return one on every path")
        if rule == "get_local_info" and not _named_numbers(returned):
            raise RuleError(f"{where} returns {returned}: compiled infos are a NamedTuple of numbers; declare one")
        return
    results = [returned] if spec.single else list(returned) if isinstance(returned, types.BaseTuple) else []
    if len(results) != len(spec.writes):
        shown = f"a tuple of {len(results)}" if results else returned
        raise RuleError(
            f"{where} writes {list(spec.writes)} and must return a tuple of {len(spec.writes)}, not {shown}"
        )
    for q, result in zip(spec.writes, results, strict=True):
        if q.shape and not _vector(result):
            raise RuleError(f"{where} returns {result} for {q!r}: a flat array or tuple of {q.size} numbers is needed")
        if not q.shape and not isinstance(result, types.Integer | types.Float | types.Boolean):
            raise RuleError(f"{where} returns {result} for {q!r}: a number is needed; return one on every path")


def _named_numbers(returned: Any) -> bool:
    types = _types()
    return hasattr(returned, "fields") and all(
        isinstance(part, types.Integer | types.Float | types.Boolean) for part in returned
    )


def _has_arrays(returned: Any) -> bool:
    """Is an array among the results? It is copied before it is stored."""
    types = _types()
    parts = list(returned) if isinstance(returned, types.BaseTuple) else [returned]
    return any(isinstance(part, types.Array) for part in parts)


def _vector(result: Any) -> bool:
    types = _types()
    if isinstance(result, types.Array):
        return bool(result.ndim == 1)
    parts = list(result) if isinstance(result, types.BaseTuple) else [getattr(result, "dtype", None)]
    return all(isinstance(part, types.Integer | types.Float | types.Boolean) for part in parts)


class Linker:
    """Compiles functions with one `jit`; a helper that two rules share is compiled once.

    `lender`: a linker whose `jit` may stand for this one; what it has compiled already is not compiled again.
    """

    def __init__(self, jit: Jit, lender: Linker | None = None) -> None:
        self._jit, self._lender = jit, lender
        self._made: dict[int, Any] = {}
        self._functions: list[types.FunctionType] = []

    @property
    def codes(self) -> list[types.CodeType]:
        """Code of every function that was linked."""
        return [function.__code__ for function in self._functions]

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
        self._functions.append(function)
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


def first_that_compiles(
    linkers: Sequence[Linker], function: types.FunctionType, kinds: tuple[Any, ...]
) -> tuple[Linker, Exception | None]:
    """The first linker that can compile the function for arguments of these kinds; else the last, and its error."""
    for linker in linkers:
        try:
            linker.link(function).compile(kinds)
            return linker, None
        except Exception as error:  # noqa: BLE001  (numba lets through whatever its typing stumbles over)
            failed = error
    return linker, failed


def explained(
    error: Exception, where: str, function: Any, codes: Sequence[types.CodeType], fields: Mapping[str, Sequence[str]],
    reason: str | None = None,
) -> RuleError:  # fmt: skip
    """Why the rule `where` can't be compiled, as an error to raise from numba's.

    codes: of the rule and its helpers, where lines are looked for; fields: quantities by feature, for near-misses.
    known: the reason, where the caller knows better.
    """
    text = _COLOUR.sub("", str(error))
    file, line = _place(text, function.__code__, [function.__code__, *codes])
    source = linecache.getline(file, line).strip()
    key = next((words for words in REMEDIES if words in text), "")
    reason, remedy = reason or _reason(text, key, fields), DEFAULT if reason else REMEDIES.get(key, DEFAULT)
    shown = f"{file}:{line}: `{source}`" if source else f"{file}:{line}"
    return RuleError(f"{where} can't be compiled: {shown}: {reason}; {remedy}")


def _reason(text: str, key: str, fields: Mapping[str, Sequence[str]]) -> str:
    if key in REASONS:
        return REASONS[key]
    unknown = re.search(r"Unknown attribute '(\w+)' of type (\w+)\(", text)
    if unknown is not None and unknown[2] in fields:
        names = list(fields[unknown[2]])
        return f"{unknown[2]} has no quantity {unknown[1]!r}; there are {names}.{did_you_mean(unknown[1], names)}"
    if key == "Can't unify return type":
        returns = sorted((int(line), kind) for kind, line in _RETURNS.findall(text))
        return "it returns " + " and ".join(f"{kind} (line {line})" for line, kind in returns)
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    reason = next((line for line in lines if not line.startswith(_NOISE)), lines[0] if lines else "numba refuses it")
    if reason.endswith("found for signature:"):
        call = next((line for line in lines if line.startswith(">>>")), "")
        name = re.search(r"Function\(<\S+(?: \S+)? (\S+?)>\)", reason)
        return f"there is no {name[1] if name else 'such operation'} for {call.removeprefix('>>>').strip()}"
    return reason.rstrip(".")


def _place(text: str, code: types.CodeType, codes: Sequence[types.CodeType]) -> tuple[str, int]:
    """The first place in the message that lies in the user's code; else the offending instruction, else the rule."""
    files = {os.path.basename(candidate.co_filename): candidate.co_filename for candidate in codes}
    places = [
        (files[name], int(match[2] or match[4]))
        for match in _PLACES.finditer(text)
        if (name := os.path.basename(match[1] or match[3])) in files
    ]
    if places:  # numba lists the returns of a function in no fixed order
        return min(places) if _RETURNS.search(text) else places[0]
    for candidate in codes:
        line = line_of(candidate, lambda instruction: instruction.opname in ("BEFORE_WITH", "BEFORE_ASYNC_WITH"))
        if "'with" in text and line is not None:
            return candidate.co_filename, line
    attribute = re.search(r"has no attribute '(\w+)'", text)
    for candidate in codes:
        line = line_of(candidate, _named(attribute[1])) if attribute else None
        if line is not None:
            return candidate.co_filename, line
    return code.co_filename, code.co_firstlineno


def _named(name: str) -> Callable[[Any], bool]:
    return lambda instruction: bool(instruction.argval == name)


def require_no_stores(rules: Mapping[str, Callable[..., Any]], owner: str) -> None:
    """Raise RuleError for `columns.soc = values` in one of these world rules, or in what it calls."""
    for name, rule in rules.items():
        fault = _store(rule)
        if fault:
            raise RuleError(f"{owner}.{name}: {fault}")


@functools.lru_cache(maxsize=256)
def _store(rule: Any) -> str:
    """The place of the first line that replaces a column and what to write there; empty if there is none."""
    linker = Linker(lambda function: function)
    assert isinstance(rule, FunctionType)
    linker.link(rule)
    for block in (block for code in linker.codes for block in code_blocks(code)):
        for at in dis.get_instructions(block):
            if at.opname == "STORE_ATTR":
                line = line_of(block, lambda other, at=at: other.offset == at.offset)  # type: ignore[misc]
                shown = linecache.getline(block.co_filename, line or 0).strip()
                place = f"{block.co_filename}:{line}: `{shown}`"
                return f"{place}: a rule can't replace a column; write .{at.argval}[:] = ..."
    return ""


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
            line = line_in_source(instruction) or line
            if holds(instruction):
                return line
    return None


def line_in_source(instruction: dis.Instruction) -> int | None:
    """Where it stands in the source; `starts_line` would be a bool from Python 3.13 on."""
    return None if instruction.positions is None else instruction.positions.lineno
