"""A trained policy as an ONNX file: one decision of one agent, from what it observes to what it does.

Inputs: `observation` float32 `[1, d]`; where choices may be forbidden `mask` bool `[1, sum(ncats)]`; for what remembers
`first` bool `[1]` and what it remembered, `hidden`; the action of a rule that the policy corrects is `anchor` float64
`[1, k]`. Outputs: `action` float64 `[1, k]`, numbers and then choices, and what is to be remembered, `next_hidden`.
Scales are in the graph.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from heron_env._version import __version__
from heron_env.errors import ConfigError
from heron_env.files.writing import write_all
from heron_env.given import path_of
from heron_env.lab.checkpoints import open_run
from heron_env.lab.runs import Run
from heron_env.lab.trained import Network, Scaling
from heron_env.trust import Trust, listed, trusting

if TYPE_CHECKING:
    from heron_env.envs.base import HeronEnv
    from heron_env.lab.remembering import Recurrent

OPSET: Final = 18
Array = np.ndarray[Any, np.dtype[Any]]
FLOAT, DOUBLE, BOOL = np.dtype(np.float32), np.dtype(np.float64), np.dtype(bool)
ROW: Final = np.array([1, -1])
"""The shape of one row."""


class OnnxGraph:
    """Nodes, constants and inputs, by their names, as they are called for."""

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self.inputs: list[Any] = []

    def input(self, name: str, dtype: np.dtype[Any], shape: Sequence[int]) -> str:
        """What the graph is given."""
        self.inputs.append(_value(name, dtype, shape))
        return name

    def node(self, kind: str, *operands: str | Array, **attributes: Any) -> str:
        """The name of what a node of this kind makes of the operands, names or arrays."""
        from onnx import helper

        name = f"{kind.lower()}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, [self._name(each) for each in operands], [name], **attributes))
        return name

    def cast(self, operand: str, dtype: np.dtype[Any]) -> str:
        """The operand as numbers of this type."""
        from onnx import helper

        return self.node("Cast", operand, to=helper.np_dtype_to_tensor_dtype(dtype))

    def columns(self, operand: str, start: int, stop: int) -> str:
        """`[:, start:stop]`."""
        return self.node("Slice", operand, np.array([start]), np.array([stop]), np.array([1]))

    def concatenated(self, *operands: str) -> str:
        """Side by side."""
        return self.node("Concat", *operands, axis=1) if len(operands) > 1 else operands[0]

    def clipped(self, operand: str, low: Array, high: Array) -> str:
        """Between bounds, each `[k]`."""
        return self.node("Min", self.node("Max", operand, low), high)

    def scaled(self, operand: str, scaling: Scaling) -> str:
        """As Scaling does it."""
        moved = self.node("Sub", self.cast(operand, DOUBLE), scaling.center)
        moved = self.node("Div", moved, scaling.scale)
        if scaling.clip is not None:
            moved = self.clipped(moved, np.array(-scaling.clip), np.array(scaling.clip))
        return self.cast(moved, FLOAT)

    def network(self, network: Network, x: str) -> str:
        """Layers with tanh or ReLU in between, float32."""
        for number, (weights, bias) in enumerate(network.layers):
            if number:
                x = self.node("Relu" if network.activation == "relu" else "Tanh", x)
            x = self.node("Add", self.node("MatMul", x, weights), bias)
        return x

    def remembered(self, layer: Recurrent, x: str, hidden: str) -> str:
        """As Recurrent does it."""
        seen, kept = self.network(layer.seen, x), self.network(layer.kept, hidden)
        parts = [[self.columns(of, n * layer.units, (n + 1) * layer.units) for n in range(3)] for of in (seen, kept)]
        reset, update = (self.node("Sigmoid", self.node("Add", parts[0][n], parts[1][n])) for n in (0, 1))
        new = self.node("Tanh", self.node("Add", parts[0][2], self.node("Mul", reset, parts[1][2])))
        return self.node("Add", new, self.node("Mul", update, self.node("Sub", hidden, new)))

    def allowed(self, logits: str, mask: str | None) -> str:
        """Logits, of forbidden choices minus infinity."""
        return logits if mask is None else self.node("Where", mask, logits, np.array(-math.inf, FLOAT))

    def choices(self, logits: str, ncats: Sequence[int]) -> str:
        """The likeliest choice of each part, the first of equal ones."""
        ends = np.cumsum(ncats).tolist()
        parts = [self.columns(logits, end - n, end) for n, end in zip(ncats, ends, strict=True)]
        return self.cast(self.concatenated(*(self.node("ArgMax", part, axis=1) for part in parts)), DOUBLE)

    def model(self, outputs: Mapping[str, tuple[str, np.dtype[Any], Sequence[int]]], about: Mapping[str, Any]) -> Any:
        """The ONNX model with these outputs, each a name in the graph, a type and a shape, checked."""
        import onnx
        from onnx import helper

        last = [helper.make_node("Identity", [made], [name]) for name, (made, _, _) in outputs.items()]
        returned = [_value(name, dtype, shape) for name, (_, dtype, shape) in outputs.items()]
        graph = helper.make_graph([*self.nodes, *last], "policy", self.inputs, returned, initializer=self.constants)
        model = helper.make_model(
            graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=9, producer_name="heron_env"
        )
        helper.set_model_props(model, {"heron_env": json.dumps(about)})
        onnx.checker.check_model(model, full_check=True)
        return model

    def _name(self, operand: str | Array) -> str:
        from onnx import numpy_helper

        if isinstance(operand, str):
            return operand
        name = f"constant_{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(operand), name))
        return name


def _value(name: str, dtype: np.dtype[Any], shape: Sequence[int]) -> Any:
    from onnx import helper

    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(dtype), shape)


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
        ConfigError: another ending, layers other than fully connected ones and a GRU, or the package onnx is missing
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
        env = env or run.make()
        if fault := run.misfit(env):
            raise ConfigError(f"{run.path}: {fault}; export it with the environment's options that it was trained with")
        rules = run.rules(env)
        models = {key: _exported(run, env, group, key, rule) for (group, key), rule in rules.items()}
    names = {key: path if len(models) == 1 else path.with_stem(f"{path.stem}-{_plain(key)}") for key in models}
    write_all({names[key]: model.SerializeToString() for key, model in models.items()})
    return list(names.values())


def _plain(key: str) -> str:
    return key.replace(":", "_").replace("/", "_")


def _exported(run: Run, env: HeronEnv, group: str, key: str, rule: Any) -> Any:
    """The model of one policy: what NetworkPolicy and RememberingPolicy do for one observation. Raises ConfigError."""
    config, actor, graph = run.config.groups[group], run.actor(group), OnnxGraph()
    if config.frames > 1 or config.augment:
        raise ConfigError(f"{run.path}: group {group!r} sees several frames or its own decisions; graphs hold neither")
    width, numbers, choices = len(config.observation_names), len(config.action_low), sum(config.ncats)
    rank = env.hierarchy.rank(key if key in config.agents else config.agents[0], "export")
    observation = graph.input("observation", FLOAT, (1, width))
    mask = graph.input("mask", BOOL, (1, choices)) if env.simulation.masks.offer(rank) is not None else None
    inputs = graph.scaled(observation, config.scaling)
    outputs: dict[str, tuple[str, np.dtype[Any], Sequence[int]]] = {}
    if actor.recurrent is not None:
        nothing = np.zeros((1, actor.recurrent.units), FLOAT)
        first, before = graph.input("first", BOOL, (1,)), graph.input("hidden", FLOAT, nothing.shape)
        hidden = graph.remembered(actor.recurrent, inputs, graph.node("Where", first, nothing, before))
        outputs["next_hidden"], inputs = (hidden, FLOAT, nothing.shape), graph.concatenated(inputs, hidden)
    logits, parts = graph.network(actor.network, inputs), list[str]()
    if numbers:
        low, high = np.array(config.action_low), np.array(config.action_high)
        moved = graph.clipped(graph.cast(graph.columns(logits, 0, numbers), DOUBLE), np.array(-1.0), np.array(1.0))
        anchor = (low + high) / 2.0 if rule is None else graph.input("anchor", DOUBLE, (1, numbers))
        moved = graph.node("Add", graph.node("Mul", moved, (high - low) / 2.0), anchor)
        parts.append(graph.clipped(moved, low, high))
    if choices:
        logits = graph.allowed(graph.columns(logits, numbers, numbers + choices), mask)
        parts.append(graph.choices(logits, config.ncats))
    outputs["action"] = graph.concatenated(*parts), DOUBLE, (1, numbers + len(config.ncats))
    corrects = None if rule is None else {"rule": run.config.base, "where": "input 'anchor': its action"}
    return graph.model(outputs, {**_about(run, env, group, key), "corrects": corrects})


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
    }  # fmt: skip
