"""numpy programs as ONNX graphs: a function is called once with symbols, and what it does to them becomes nodes.

A symbol knows what it stands for in an example, so shapes and types are numpy's own. What a graph can't hold, such as a
branch taken on a number that is not known yet, raises Untraceable instead of being baked in.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NoReturn

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from heron_env.errors import ConfigError

OPSET: Final = 18
Array = np.ndarray[Any, np.dtype[Any]]
ARITHMETIC: Final[Mapping[Any, str]] = {
    np.add: "Add", np.subtract: "Sub", np.multiply: "Mul", np.divide: "Div", np.matmul: "MatMul", np.minimum: "Min",
    np.maximum: "Max", np.negative: "Neg", np.absolute: "Abs", np.sqrt: "Sqrt", np.exp: "Exp", np.log: "Log",
    np.tanh: "Tanh", np.sign: "Sign", np.floor: "Floor", np.ceil: "Ceil", np.power: "Pow",
}  # fmt: skip
"""ufuncs whose operands have the type of what comes out."""
COMPARISONS: Final[Mapping[Any, str]] = {
    np.less: "Less", np.less_equal: "LessOrEqual", np.greater: "Greater", np.greater_equal: "GreaterOrEqual",
    np.equal: "Equal",
}  # fmt: skip
LOGIC: Final[Mapping[Any, str]] = {np.logical_and: "And", np.logical_or: "Or", np.logical_not: "Not"}
LOGIC_ON_BITS: Final[Mapping[Any, str]] = {np.bitwise_and: "And", np.bitwise_or: "Or", np.invert: "Not"}


class Untraceable(ConfigError):
    """A step of a program that can't be a node of a graph."""


class Graph:
    """Nodes, constants and inputs, as they are called for."""

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.constants: dict[str, Array] = {}
        self.inputs: list[Symbol] = []

    def input(self, name: str, example: Array) -> Symbol:
        """What the graph is given."""
        made = Symbol(self, name, example)
        made.viewed = True  # the caller's own
        self.inputs.append(made)
        return made

    def node(self, kind: str, operands: Sequence[object], example: Array, **attributes: Any) -> Symbol:
        """What a node of this kind makes of the operands, symbols or arrays."""
        from onnx import helper

        name = f"{kind.lower()}_{len(self.nodes)}"
        names = [self._name(operand) for operand in operands]
        self.nodes.append(helper.make_node(kind, names, [name], **attributes))
        return Symbol(self, name, example)

    def _name(self, operand: object) -> str:
        if isinstance(operand, Symbol):
            return operand.name
        name = f"constant_{len(self.constants)}"
        self.constants[name] = np.asarray(operand)
        return name

    def model(self, outputs: Mapping[str, Symbol], about: Mapping[str, str]) -> Any:
        """The ONNX model with these outputs by name, checked. `about`: its metadata."""
        import onnx
        from onnx import helper, numpy_helper

        nodes = [*self.nodes, *(helper.make_node("Identity", [s.name], [name]) for name, s in outputs.items())]
        known = [numpy_helper.from_array(array, name) for name, array in self.constants.items()]
        given, told = (
            [helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(s.dtype), s.shape) for name, s in some]
            for some in ([(s.name, s) for s in self.inputs], outputs.items())
        )
        graph = helper.make_graph(nodes, "policy", given, told, initializer=known)
        made = helper.make_model(
            graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=9, producer_name="heron_env"
        )
        helper.set_model_props(made, dict(about))
        onnx.checker.check_model(made, full_check=True)
        return made


class Symbol(NDArrayOperatorsMixin):
    """An array of the graph; `example` is one that it may be.

    It may be written in place (`x /= 2`) as long as nothing is a view of it (`viewed`), nor it of something.
    """

    def __init__(self, graph: Graph, name: str, example: Array) -> None:
        self.graph, self.name, self.example = graph, name, np.asarray(example)
        self.viewed = False

    @property
    def shape(self) -> tuple[int, ...]:
        """As numpy's."""
        return self.example.shape

    @property
    def ndim(self) -> int:
        """As numpy's."""
        return self.example.ndim

    @property
    def dtype(self) -> np.dtype[Any]:
        """As numpy's."""
        return self.example.dtype

    def __len__(self) -> int:
        """Of the first axis."""
        return len(self.example)

    def __array_ufunc__(self, ufunc: Any, method: str, *operands: Any, **more: Any) -> Any:
        """A node for what a ufunc does."""
        if list(more) == ["out"] and isinstance(target := more["out"][0], Symbol) and not target.viewed:
            made = self.__array_ufunc__(ufunc, method, *operands).astype(target.dtype)
            target.name, target.example = made.name, made.example
            return target
        if method != "__call__" or more:
            _refuse(f"np.{ufunc.__name__} as {method}({', '.join(more)})")
        example = ufunc(*(_example(operand) for operand in operands))
        if ufunc in ARITHMETIC:
            return self._same_type(ARITHMETIC[ufunc], operands, example.dtype, example)
        if ufunc in COMPARISONS:
            kind = np.result_type(*(_weak(operand) for operand in operands))
            return self._same_type(COMPARISONS[ufunc], operands, kind, example)
        if ufunc is np.not_equal:
            return ~(operands[0] == operands[1])
        if ufunc in LOGIC or (ufunc in LOGIC_ON_BITS and example.dtype == bool):
            return self._same_type({**LOGIC, **LOGIC_ON_BITS}[ufunc], operands, np.dtype(bool), example)
        return _refuse(f"np.{ufunc.__name__}")

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        """Nodes for what a function of numpy does."""
        if function not in FUNCTIONS:
            _refuse(f"np.{function.__name__}")
        return FUNCTIONS[function](*args, **kwargs)

    def __getitem__(self, key: Any) -> Symbol:
        """Columns `[:, k]`, `[:, a:b]`, `[:, indices]`, and new axes."""
        example, keys = self.example[key], key if isinstance(key, tuple) else (key,)
        if all(each is None or each == slice(None) for each in keys if not isinstance(each, np.ndarray | list)) and any(
            each is None for each in keys
        ):
            return self.reshape(example.shape)
        if len(keys) == 2 and isinstance(keys[0], slice) and keys[0] == slice(None) and self.ndim >= 2:
            which = np.arange(self.shape[1])[keys[1]]
            return self._view("Gather", np.asarray(which), example, axis=1)
        return _refuse(f"the index [{key!r}]")

    def astype(self, dtype: Any, copy: bool = True) -> Symbol:
        """As numpy's."""
        from onnx import helper

        if self.dtype == np.dtype(dtype) and not copy:
            return self
        example = self.example.astype(dtype)
        return self.graph.node("Cast", [self], example, to=helper.np_dtype_to_tensor_dtype(example.dtype))

    def reshape(self, *shape: Any) -> Symbol:
        """As numpy's."""
        example = self.example.reshape(*shape)
        return self._view("Reshape", np.array(example.shape), example)

    def sum(self, axis: int | None = None, keepdims: bool = False) -> Symbol:
        """As numpy's."""
        example = np.asarray(self.example.sum(axis=axis, keepdims=keepdims))
        axes = np.arange(self.ndim) if axis is None else np.array([axis])
        return self.graph.node("ReduceSum", [self, axes.astype(np.int64)], example, keepdims=int(keepdims))

    def argmax(self, axis: int) -> Symbol:
        """As numpy's: the first of equal ones."""
        return self.graph.node("ArgMax", [self], self.example.argmax(axis=axis), axis=axis, keepdims=0)

    def _view(self, kind: str, how: Array, example: Array, **attributes: Any) -> Symbol:
        made = self.graph.node(kind, [self, how.astype(np.int64)], example, **attributes)
        self.viewed = made.viewed = True
        return made

    def _same_type(self, kind: str, operands: Sequence[Any], dtype: Any, example: Array) -> Symbol:
        return self.graph.node(kind, [_cast(operand, dtype) for operand in operands], example)

    def __array__(self, *_: object, **__: object) -> NoReturn:
        """Refused: it would be the example's numbers for ever."""
        _refuse("turning it into an array of numbers (np.asarray, np.array)")

    def __bool__(self) -> NoReturn:
        """Refused."""
        _refuse("a branch (`if`, `and`, `or`, min(), max()) on what is not known yet")

    def __float__(self) -> NoReturn:
        """Refused."""
        _refuse("float()")

    def __iter__(self) -> NoReturn:
        """Refused."""
        _refuse("a loop over its rows")


def _refuse(what: str) -> NoReturn:
    raise Untraceable(f"{what} can't be a node of a graph")


def _example(operand: object) -> Any:
    return operand.example if isinstance(operand, Symbol) else operand


def _weak(operand: object) -> Any:
    """For numpy's rules of promotion: a Python number is weak, everything else has its type."""
    return operand if isinstance(operand, bool | int | float) else np.asarray(_example(operand)).dtype


def _cast(operand: Any, dtype: Any) -> Any:
    return operand.astype(dtype, copy=False) if isinstance(operand, Symbol) else np.asarray(operand, dtype=dtype)


def _graph(*operands: object) -> Graph:
    return next(operand.graph for operand in operands if isinstance(operand, Symbol))


def _where(condition: Any, x: Any, y: Any) -> Symbol:
    example = np.where(_example(condition), _example(x), _example(y))
    parts = [_cast(condition, bool), _cast(x, example.dtype), _cast(y, example.dtype)]
    return _graph(condition, x, y).node("Where", parts, example)


def _concatenate(arrays: Sequence[Any], axis: int = 0) -> Symbol:
    example = np.concatenate([_example(each) for each in arrays], axis=axis)
    return _graph(*arrays).node("Concat", [_cast(each, example.dtype) for each in arrays], example, axis=axis)


def _stack(arrays: Sequence[Any], axis: int = 0) -> Symbol:
    shapes = [np.expand_dims(_example(each), axis).shape for each in arrays]
    return _concatenate([each.reshape(shape) for each, shape in zip(arrays, shapes, strict=True)], axis=axis)


def _split(array: Symbol, where: Any, axis: int = 0) -> list[Symbol]:
    if axis != 1:
        _refuse(f"np.split along axis {axis}")
    columns = np.split(np.arange(array.shape[1]), where)
    return [array[:, each] for each in columns]


FUNCTIONS: Final[Mapping[Any, Callable[..., Any]]] = {
    np.where: _where, np.concatenate: _concatenate, np.stack: _stack, np.split: _split,
    np.clip: lambda x, low, high: np.minimum(np.maximum(x, low), high),
    np.sum: lambda x, axis=None, keepdims=False: x.sum(axis=axis, keepdims=keepdims),
    np.argmax: lambda x, axis: x.argmax(axis=axis),
    np.zeros_like: lambda x: np.zeros_like(_example(x)), np.ones_like: lambda x: np.ones_like(_example(x)),
    np.reshape: lambda x, shape: x.reshape(shape), np.shape: lambda x: x.shape,
}  # fmt: skip
