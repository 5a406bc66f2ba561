"""A trained policy as an ONNX file: one decision of one agent, from what it observes to what it does.

Inputs: `observation` float32 `[1, d]`; where choices may be forbidden `mask` bool `[1, sum(ncats)]`; for what remembers
`first` bool `[1]` and what it remembered, `hidden`; the action of a rule that the policy corrects is `anchor` float64
`[1, k]`. Outputs: `action` float64 `[1, k]`, numbers and then choices, and what is to be remembered, `next_hidden`.
Scales are in the graph, which is drawn by the policy itself: it decides about a `Traced` as about an array.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from copy import copy
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from gymnasium import spaces
from numpy.lib.mixins import NDArrayOperatorsMixin

from heron_env._version import __version__
from heron_env.core.policy import takes
from heron_env.errors import ConfigError
from heron_env.files.writing import write_all
from heron_env.given import path_of
from heron_env.lab.model_files import activation_of, saved_model
from heron_env.lab.policies import digest_of
from heron_env.lab.remembering import Recurrent, RememberingPolicy
from heron_env.lab.runs import RunFolder, open_run, policy_of
from heron_env.lab.trained import Correction, Network, allowed, network_of
from heron_env.trust import Trust, listed, trusting

if TYPE_CHECKING:
    from heron_env.envs.base import HeronEnv

OPSET: Final = 18
FLOAT, DOUBLE, BOOL = np.dtype(np.float32), np.dtype(np.float64), np.dtype(bool)
KINDS: Final[Mapping[Any, str]] = {
    np.add: "Add", np.subtract: "Sub", np.multiply: "Mul", np.true_divide: "Div", np.minimum: "Min",
    np.maximum: "Max", np.tanh: "Tanh",
}  # fmt: skip
"""Nodes of what numpy computes number by number."""


class OnnxGraph:
    """Nodes, constants and inputs, by their names, as they are called for."""

    def __init__(self) -> None:
        self.nodes, self.constants, self.inputs = list[Any](), list[Any](), list[Any]()

    def input(self, name: str, dtype: np.dtype[Any], *shape: int) -> Any:
        """What the graph takes."""
        self.inputs.append(_described(name, example := np.ones(shape, dtype)))
        return Traced(self, name, example)

    def node(self, kind: str, example: Any, *operands: Any, **attributes: Any) -> Traced:
        """What a node of this kind makes of operands, traced or arrays; an example says its type and shape."""
        from onnx import helper, numpy_helper

        names, name = list[str](), f"{kind.lower()}_{len(self.nodes)}"
        for operand in operands:
            if not isinstance(operand, Traced):
                self.constants.append(numpy_helper.from_array(np.asarray(operand), f"constant_{len(self.constants)}"))
            names.append(operand.name if isinstance(operand, Traced) else self.constants[-1].name)
        self.nodes.append(helper.make_node(kind, names, [name], **attributes))
        return Traced(self, name, np.asarray(example))

    def network(self, network: Network) -> Any:
        """What a network does, float32."""

        def outputs(x: Any) -> Any:
            for number, (weights, bias) in enumerate(network.layers):
                if number:
                    x = self.node("Relu" if network.activation == "relu" else "Tanh", x.example, x)
                x = self.node("MatMul", x.example @ weights, x, weights) + bias
            return x

        return outputs

    def model(self, outputs: Mapping[str, Traced], about: Mapping[str, Any]) -> bytes:
        """The file with these outputs, checked."""
        import onnx
        from onnx import helper

        last = [helper.make_node("Identity", [made.name], [name]) for name, made in outputs.items()]
        returned = [_described(name, made.example) for name, made in outputs.items()]
        graph = helper.make_graph([*self.nodes, *last], "policy", self.inputs, returned, initializer=self.constants)
        opsets = [helper.make_opsetid("", OPSET)]
        model = helper.make_model(graph, opset_imports=opsets, ir_version=9, producer_name="heron_env")
        helper.set_model_props(model, {"heron_env": json.dumps({"version": __version__, **about})})
        onnx.checker.check_model(model, full_check=True)
        return bytes(model.SerializeToString())


def _described(name: str, example: Any) -> Any:
    from onnx import helper

    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(example.dtype), example.shape)


class Traced(NDArrayOperatorsMixin):
    """A value `[1, k]` in a graph: what numpy makes of it becomes a node there. `example`: of its type and shape."""

    def __init__(self, graph: OnnxGraph, name: str, example: Any) -> None:
        self.graph, self.name, self.example, self.shape = graph, name, example, example.shape

    def __array_ufunc__(self, ufunc: Any, method: str, *operands: Any, **options: Any) -> Traced:
        example = ufunc(*map(_example, operands))
        return self.graph.node(KINDS[ufunc], example, *(_as(example.dtype, each) for each in operands))

    def __array_function__(self, function: Any, types: Any, operands: Any, options: Any) -> Any:
        if function is np.where:
            return self.graph.node("Where", np.where(*map(_example, operands)), *operands)
        if function is np.concatenate:
            example = np.concatenate([each.example for each in operands[0]], **options)
            return self.graph.node("Concat", example, *operands[0], **options)
        assert function is np.split
        widths = [part.shape[1] for part in np.split(self.example, *operands[1:], **options)]
        return [self[:, end - width : end] for width, end in zip(widths, np.cumsum(widths).tolist(), strict=True)]

    def __getitem__(self, key: tuple[slice, slice]) -> Traced:
        begin, end, _ = key[1].indices(self.shape[1])
        return self.graph.node("Slice", self.example[key], self, *(np.array([each]) for each in (begin, end, 1)))

    def astype(self, dtype: Any) -> Traced:
        """As of an array."""
        from onnx import helper

        to = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        return self.graph.node("Cast", self.example.astype(dtype), self, to=to)

    def argmax(self, axis: int, keepdims: bool) -> Traced:
        """The same: the first of equal ones."""
        example = self.example.argmax(axis=axis, keepdims=keepdims)
        return self.graph.node("ArgMax", example, self, axis=axis, keepdims=int(keepdims))


def _example(operand: Any) -> Any:
    return operand.example if isinstance(operand, Traced) else operand


def _as(dtype: np.dtype[Any], operand: Any) -> Any:
    """The operands of a node are of one type."""
    example = _example(operand)
    if getattr(example, "dtype", None) == dtype:
        return operand
    return operand.astype(dtype) if isinstance(operand, Traced) else np.asarray(operand, dtype)


def export_onnx(run_dir: str | Path, file: str | Path, *, env: HeronEnv | None = None, trust: Trust = ()) -> list[Path]:
    """Write the policies of a run folder as ONNX files, one for each policy; with several, `FILE-KEY.onnx`.

    Args:
        run_dir: the run folder, or a run in one file, or a model.zip of Stable-Baselines3, whose one policy is written.
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
        write_all({path: _of_zip(run_dir)})
        return [path]
    run = open_run(run_dir)
    with trusting(*listed(trust)):
        env = env or run.make()
        if fault := run.misfit(env):
            raise ConfigError(f"{run.path}: {fault}; export it with the environment's options that it was trained with")
        rules = [(group, *pair) for group in run.config.groups for pair in run.rules(env, group).items()]
        models = {key: _exported(run, env, group, key, rule) for group, key, rule in rules}
    plain = {key: key.replace(":", "_").replace("/", "_") for key in models}
    names = {key: path if len(models) == 1 else path.with_stem(f"{path.stem}-{plain[key]}") for key in models}
    write_all({names[key]: model for key, model in models.items()})
    return list(names.values())


def _exported(run: RunFolder, env: HeronEnv, group: str, key: str, rule: Any) -> bytes:
    """The model of one policy, which decides in it about one observation. Raises ConfigError."""
    config, graph = run.config.groups[group], OnnxGraph()
    if config.frames > 1 or config.augment:
        raise ConfigError(f"{run.path}: group {group!r} sees several frames or its own decisions; graphs hold neither")
    policy = policy_of(config, run.actors[group], rule)
    decides: Any = copy(policy.decides if isinstance(policy, RememberingPolicy) else policy)
    decides.network = graph.network(decides.network)
    agents = [key] if key in config.agents else config.agents
    rank = env.hierarchy.rank(agents[0], "export")
    observation = graph.input("observation", FLOAT, 1, len(config.observation_names))
    masked = env.simulation.masks.offer(rank) is not None
    mask = graph.input("mask", BOOL, 1, sum(config.ncats)) if masked else None
    inputs, outputs = decides.scaling(observation), dict[str, Any]()
    if isinstance(policy, RememberingPolicy) and (layer := policy.recurrent) is not None:
        first, before = graph.input("first", BOOL, 1), graph.input("hidden", FLOAT, 1, layer.units)
        remembers = Recurrent(graph.network(layer.seen), graph.network(layer.kept))
        outputs["next_hidden"] = hidden = remembers(inputs, np.where(first, np.float32(0.0), before))
        inputs = np.concatenate([inputs, hidden], axis=1)
    results = decides.outputs(inputs, mask)
    if rule is None:
        outputs["action"] = decides.act(observation, results)
    else:
        outputs["action"] = decides.act.around(graph.input("anchor", DOUBLE, 1, len(config.action_low)), results)
    units = zip(config.observation_names, env.observation_units(agents[0]), strict=True)
    return graph.model(outputs, {
        "env_id": run.config.env_id, "env_options": run.config.env_options, "group": group,
        "agents": agents, "run": run.digest(), "seed": run.config.seed,
        "observation": [{"name": name, "unit": unit} for name, unit in units],
        "action": {
            "numbers": {
                "low": config.action_low, "high": config.action_high, "unit": env.simulation.model.specs[rank].unit,
            },
            "choices": config.ncats,
        },
        "corrects": None if rule is None else {"rule": run.config.base, "where": "input 'anchor': its action"},
    })  # fmt: skip


BY_HAND: Final = (
    "write it with torch.onnx.export(..., output_names=['action']), as Stable-Baselines3's page on export shows; every "
    "command here plays the .zip itself"
)


def _of_zip(file: str | Path) -> bytes:
    """The model of a .zip of Stable-Baselines3: fully connected actors of PPO, A2C, TRPO and MaskablePPO.

    `observation` float32 `[1, ...]`, with masks `mask` bool `[1, choices]`, to `action` float64 `[1, k]`. Raises
    ConfigError for a file that holds none, and for a policy that is more than such layers.
    """
    try:
        policy, _ = saved_model(Path(file).read_bytes())
    except Exception as error:  # a file may hold anything
        raise ConfigError(f"{file}: is no model of Stable-Baselines3 ({type(error).__name__}: {error})") from error
    observed, acted, activation = policy.observation_space, policy.action_space, activation_of(policy)
    flat = type(getattr(policy, "features_extractor", None)).__name__ == "FlattenExtractor"
    plain = flat and hasattr(policy, "mlp_extractor") and not hasattr(policy, "lstm_actor")
    bounded = isinstance(acted, spaces.Box) and not policy.squash_output
    choices = isinstance(acted, spaces.Discrete | spaces.MultiDiscrete) and not np.any(acted.start)
    if not (plain and activation and isinstance(observed, spaces.Box) and (bounded or choices)):
        raise ConfigError(
            f"{file}: {type(policy).__name__}, which observes {observed} and does {acted}, is more than fully "
            f"connected layers with tanh or ReLU and bounds behind them; {BY_HAND}"
        )
    graph, (network, _) = OnnxGraph(), network_of(policy.state_dict(), activation)
    observation = graph.input("observation", FLOAT, 1, *observed.shape)
    row = graph.node("Reshape", observation.example.reshape(1, -1), observation, np.array([1, -1]))
    low, high, ncats = np.zeros(0), np.zeros(0), np.ravel(getattr(acted, "nvec", getattr(acted, "n", ()))).tolist()
    mask = graph.input("mask", BOOL, 1, sum(ncats)) if takes(policy.predict, "action_masks") else None
    values = graph.network(network)(row)
    if bounded:
        low, high = np.ravel(acted.low), np.ravel(acted.high)
        action = np.minimum(np.maximum(values, low.astype(FLOAT)), high.astype(FLOAT)).astype(DOUBLE)
    else:
        logits = values if mask is None else allowed(values, mask)
        action = Correction(low, high, ncats=tuple(ncats)).around(low, logits)
    return graph.model({"action": action}, {
        "model": digest_of([Path(file)]),
        "action": {"numbers": {"low": low.tolist(), "high": high.tolist()}, "choices": ncats},
        "observed": {"low": np.ravel(observed.low).tolist(), "high": np.ravel(observed.high).tolist()},
    })  # fmt: skip
