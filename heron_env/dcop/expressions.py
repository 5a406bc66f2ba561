"""A Python expression from a file, computed without running it: values, variables, and the operators between them."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any, Final

from heron_env.given import is_finite

LONGEST: Final = 2000
"""Letters of an expression."""
OPERATORS: Final[dict[type, Callable[[Any, Any], Any]]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
COMPARISONS: Final[dict[type, Callable[[Any, Any], bool]]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.In: lambda value, values: value in values,
    ast.NotIn: lambda value, values: value not in values,
}
SIGNS: Final[dict[type, Callable[[Any], Any]]] = {ast.USub: operator.neg, ast.UAdd: operator.pos}
FUNCTIONS: Final[dict[str, Callable[..., Any]]] = {"abs": abs, "min": min, "max": max, "round": round}


class Expression:
    """An expression and the names of its variables, in their order. Raises ValueError: what is no such expression."""

    def __init__(self, text: str) -> None:
        if len(text) > LONGEST:
            raise ValueError(f"it has {len(text)} letters, and {LONGEST} are read")
        try:
            self._root = ast.parse(text.strip(), mode="eval").body
            inner = [*ast.walk(self._root)]
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            raise ValueError("it is no Python expression") from error
        functions = {id(node.func) for node in inner if isinstance(node, ast.Call)}
        names = [node for node in inner if isinstance(node, ast.Name) and id(node) not in functions]
        names.sort(key=lambda node: (node.lineno, node.col_offset))
        self.names = tuple(dict.fromkeys(node.id for node in names))

    def value(self, values: Mapping[str, object]) -> float:
        """The number for these values of its variables. Raises ValueError: it is none."""
        try:
            result = _value(self._root, values)
        except (ArithmeticError, TypeError, RecursionError) as error:
            raise ValueError(f"for {dict(values)!r:.100} it can't be computed: {error}") from error
        if not isinstance(result, int | float) or not is_finite(result):
            raise ValueError(f"for {dict(values)!r:.100} it is {result!r:.60}, which is no finite number")
        return float(result)


def _value(node: ast.expr, values: Mapping[str, object]) -> Any:
    match node:
        case ast.Constant(value=bool() | int() | float() | str() as value):
            return value
        case ast.Name(id=name):
            return values[name]
        case ast.Tuple(elts=parts) | ast.List(elts=parts) | ast.Set(elts=parts):
            return tuple(_value(part, values) for part in parts)
        case ast.IfExp(test=test, body=body, orelse=other):
            return _value(body if _value(test, values) else other, values)
        case ast.BoolOp(op=op, values=parts):
            result: Any = None
            for part in parts:
                result = _value(part, values)
                if bool(result) is isinstance(op, ast.Or):
                    break
            return result
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return not _value(operand, values)
        case ast.UnaryOp(op=op, operand=operand) if type(op) in SIGNS:
            return SIGNS[type(op)](_number(operand, values))
        case ast.BinOp(left=left, op=op, right=right) if type(op) in OPERATORS:
            return OPERATORS[type(op)](_number(left, values), _number(right, values))
        case ast.Compare(left=left, ops=ops, comparators=others) if all(type(op) in COMPARISONS for op in ops):
            operands = [_value(part, values) for part in (left, *others)]
            return all(COMPARISONS[type(op)](*pair) for op, pair in zip(ops, pairwise(operands), strict=True))
        case ast.Call(func=ast.Name(id=name), args=parts, keywords=[]) if name in FUNCTIONS:
            return FUNCTIONS[name](*(_value(part, values) for part in parts))
    raise ValueError(f"`{ast.unparse(node):.60}` is not read")


def _number(node: ast.expr, values: Mapping[str, object]) -> Any:
    """Of a part that must be one: text times a number could be of any length."""
    value = _value(node, values)
    if not isinstance(value, int | float):
        raise ValueError(f"it counts with {value!r:.60}, which is no number")
    return value
