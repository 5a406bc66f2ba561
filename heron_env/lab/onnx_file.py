"""A trained policy as an ONNX file: one decision of one agent, from what it observes to what it does.

Inputs: `observation` float32 `[1, d]`; where choices may be forbidden `mask` bool `[1, sum(ncats)]`; for what remembers
`first` bool `[1]` and what it remembered, `shown`, `hidden` and `own`. Outputs: `action` float64 `[1, k]`, numbers and
then choices, and what is to be remembered, `next_shown` and so on. Scales are in the graph, and so is the rule that
the policy corrects, if it is arithmetic; else its action is an input, `anchor` float64 `[1, k]`.

Graphs are made from numpy programs: a function is called once with symbols, and what it does to them becomes nodes.
A symbol knows what it stands for in an example, so shapes and types are numpy's own. What a graph can't hold, such as a
branch taken on a number that is not known yet, raises Untraceable instead of being baked in.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NoReturn, cast

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from heron_env._version import __version__
from heron_env.errors import ConfigError
from heron_env.files.writing import write_all
from heron_env.given import path_of
from heron_env.lab.checkpoints import open_run
from heron_env.lab.run_groups import Actor, own_decisions
from heron_env.lab.runs import Run
from heron_env.lab.trained import Correction, Network, act_of
from heron_env.trust import Trust, listed, trusting

if TYPE_CHECKING:
    from heron_env.envs.base import HeronEnv
    from heron_env.lab.run_groups import GroupConfig

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


class OnnxGraph:
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
        constants = [numpy_helper.from_array(array, name) for name, array in self.constants.items()]
        given, returned = (
            [helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(s.dtype), s.shape) for name, s in some]
            for some in ([(s.name, s) for s in self.inputs], outputs.items())
        )
        graph = helper.make_graph(nodes, "policy", given, returned, initializer=constants)
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

    def __init__(self, graph: OnnxGraph, name: str, example: Array) -> None:
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


def _graph(*operands: object) -> OnnxGraph:
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


def export_onnx(run_dir: str | Path, file: str | Path, *, env: HeronEnv | None = None, trust: Trust = ()) -> list[Path]:
    """Write the policies of a run folder as ONNX files, one for each policy; with several, `FILE-KEY.onnx`.

    Args:
        run_dir: the run folder, or a checkpoint, or a model.zip of Stable-Baselines3, whose one policy is written.
        file: where to, ending in .onnx.
        env: of the run; None: as the folder says, which must be registered here, or trusted.
        trust: names that the folder may name, "module:function".

    The metadata (`metadata_props`) say in JSON what the columns are called, their units, bounds, the environment, and
    the versions. Decisions are the deterministic ones: choices are the same, numbers within 1e-5 of the range (sums of
    float32 in another order).

    Returns:
        The paths of the files.

    Raises:
        ConfigError: another ending, a .zip that is more than fully connected layers, or the package onnx is missing
            (extra `onnx`).
        RunFolderError: it is no run folder.

    Example: `export_onnx("runs/grid", "grid.onnx")`.
    """
    path = path_of(file, "export_onnx(file)")
    if path.suffix != ".onnx":
        raise ConfigError(f"{path}: give the file an ending that says what it is, say {path.stem or 'policy'}.onnx")
    try:
        import onnx  # noqa: F401
    except ImportError as error:
        raise ConfigError("to write ONNX files takes the package onnx: pip install 'heron_env[onnx]'") from error
    if str(run_dir).endswith(".zip"):
        from heron_env.lab.zip_export import onnx_of_zip

        write_all({path: onnx_of_zip(run_dir).SerializeToString()})
        return [path]
    run = open_run(run_dir)
    with trusting(*listed(trust)):
        there = env or run.make()
        if fault := run.misfit(there):
            raise ConfigError(f"{run.path}: {fault}; export it with the environment's options that it was trained with")
        rules = run.rules(there)
        models = {key: _exported(run, there, group, key, rule) for (group, key), rule in rules.items()}
    names = {key: path if len(models) == 1 else path.with_stem(f"{path.stem}-{_plain(key)}") for key in models}
    write_all({names[key]: model.SerializeToString() for key, model in models.items()})
    return list(names.values())


def _plain(key: str) -> str:
    return key.replace(":", "_").replace("/", "_")


@dataclass(frozen=True)
class Remembered:
    """What an agent brings along from its last decision, and whether this is its first."""

    first: Any
    shown: Any = None
    hidden: Any = None
    own: Any = None


def _exported(run: Run, env: HeronEnv, group: str, key: str, rule: Any) -> Any:
    """The model of one policy."""
    kept = run.config.groups[group]
    actor = run.actor(group)
    rank = env.hierarchy.rank(key if key in kept.agents else kept.agents[0], "export")
    about, masked = _about(run, env, group, key), env.simulation.masks.offer(rank) is not None
    try:
        graph, outputs = _policy_graph(kept, actor, rule, masked)
        corrects = None if rule is None else {"rule": run.config.base, "where": "in the graph"}
    except Untraceable as error:
        graph, outputs = _policy_graph(kept, actor, None, masked, anchored=True)
        corrects = {"rule": run.config.base, "where": "input 'anchor': its action", "why": str(error)}
    return graph.model(outputs, {"heron_env": json.dumps({**about, "corrects": corrects})})


def _policy_graph(
    kept: GroupConfig, actor: Actor, rule: Any, masked: bool, anchored: bool = False
) -> tuple[OnnxGraph, dict[str, Symbol]]:
    """Inputs, the decision, and outputs. Raises Untraceable for a rule that is more than arithmetic."""
    graph, width = OnnxGraph(), len(kept.observation_names)
    numbers, choices = len(kept.action_low), sum(kept.ncats)
    observation = graph.input("observation", np.array([kept.center], dtype=np.float32))
    mask = graph.input("mask", np.ones((1, choices), dtype=bool)) if masked else None
    anchor = graph.input("anchor", np.zeros((1, numbers))) if anchored else None
    remembered = None
    if kept.frames > 1 or actor.recurrent is not None or kept.augment:
        remembered = Remembered(graph.input("first", np.ones(1, dtype=bool)))
        if kept.frames > 1:
            shown = graph.input("shown", np.zeros((1, kept.frames, width), dtype=np.float32))
            remembered = replace(remembered, shown=shown)
        if actor.recurrent is not None:
            hidden = graph.input("hidden", np.zeros((1, actor.recurrent.units), dtype=np.float32))
            remembered = replace(remembered, hidden=hidden)
        if own := own_decisions(kept):
            remembered = replace(remembered, own=graph.input("own", own.none(1)))
    return graph, decided(kept, actor, rule, observation, mask, anchor, remembered)


def decided(
    kept: GroupConfig, actor: Actor, rule: Any, observation: Any, mask: Any, anchor: Any, before: Remembered | None
) -> dict[str, Any]:
    """What NetworkPolicy and RememberingPolicy do for one observation `[1, d]`, in functions of numpy alone."""
    values: dict[str, Any] = {}
    inputs = kept.scaling(observation)
    if before is not None and before.shown is not None:
        later = np.concatenate([before.shown[:, 1:], inputs.reshape(1, 1, -1)], axis=1)
        alone = np.concatenate([inputs.reshape(1, 1, -1)] * kept.frames, axis=1)
        values["next_shown"] = np.where(before.first.reshape(1, 1, 1), alone, later)
        inputs = values["next_shown"].reshape(1, -1)
    decisions, own = own_decisions(kept), None
    if before is not None and decisions is not None:
        own = np.where(before.first.reshape(1, 1, 1), np.float32(0.0), before.own)
        inputs = np.concatenate([inputs, own.reshape(1, -1)], axis=1)
    if before is not None and actor.recurrent is not None:
        hidden = np.where(before.first.reshape(1, 1), np.float32(0.0), before.hidden)
        shares = run_network(actor.recurrent.seen, inputs), run_network(actor.recurrent.kept, hidden)
        values["next_hidden"] = actor.recurrent.remembered(*shares, hidden)
        inputs = np.concatenate([inputs, values["next_hidden"]], axis=1)
    outputs = run_network(actor.network, inputs)
    numbers = len(kept.action_low)
    if mask is not None:
        allowed = np.where(mask, outputs[:, numbers:], np.float32(-math.inf))
        outputs = np.concatenate([outputs[:, :numbers], allowed], axis=1) if numbers else allowed
    act = act_of(np.array(kept.action_low), np.array(kept.action_high), tuple(kept.ncats))
    anchor = _arithmetic(rule, observation) if rule is not None else anchor
    around = anchor is not None and isinstance(act, Correction)
    action = cast(Correction, act).around(anchor, outputs) if around else act(observation, outputs)
    if decisions is not None and own is not None:
        latest = decisions.scaling(cast(Any, action)).reshape(1, 1, -1)
        values["next_own"] = np.concatenate([own[:, 1:], latest], axis=1)
    return {"action": action, **values}


def _arithmetic(rule: Any, observation: Symbol) -> Symbol:
    """What a rule does, as nodes. Raises Untraceable."""
    if not callable(getattr(rule, "forward_batch", None)):
        raise Untraceable(f"{type(rule).__name__} has no forward_batch(vectors), which a graph could be made of")
    try:
        made: Symbol = rule.forward_batch(observation)
    except (TypeError, ValueError, AttributeError, NotImplementedError) as error:
        raise Untraceable(f"{type(rule).__name__}: {error}") from error
    return made


def run_network(network: Network, x: Any) -> Any:
    """Layers with tanh or ReLU in between, float32."""
    for number, (weights, bias) in enumerate(network.layers):
        if number:
            x = np.maximum(x, np.float32(0.0)) if network.activation == "relu" else np.tanh(x)
        x = x @ weights + bias
    return x


def _about(run: Run, env: HeronEnv, group: str, key: str) -> Mapping[str, Any]:
    """What a reader of the file needs: names, units, bounds, origin."""
    kept = run.config.groups[group]
    agents = [key] if key in kept.agents else kept.agents
    spec = env.simulation.specs[env.hierarchy.rank(agents[0], "export")]
    return {
        "version": __version__, "env_id": run.config.env_id, "env_options": run.config.env_options, "group": group,
        "agents": agents, "run": run.digest(), "seed": run.config.seed,
        "observation": [
            {"name": name, "unit": unit}
            for name, unit in zip(kept.observation_names, env.observation_units(agents[0]), strict=True)
        ],
        "action": {
            "numbers": {"low": kept.action_low, "high": kept.action_high, "unit": spec.unit}, "choices": kept.ncats,
        },
        "frames": kept.frames,
    }  # fmt: skip
