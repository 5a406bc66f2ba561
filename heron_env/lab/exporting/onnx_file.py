"""A trained policy as an ONNX file: one decision of one agent, from what it observes to what it does.

Inputs: `observation` float32 `[1, d]`; where choices may be forbidden `mask` bool `[1, sum(ncats)]`; for what remembers
`first` bool `[1]` and what it remembered, `shown` and `hidden`. Outputs: `action` float64 `[1, k]`, numbers and then
choices, and what is to be remembered, `next_shown` and `next_hidden`. Scales are in the graph, and so is the rule that
the policy corrects, if it is arithmetic; else its action is an input, `anchor` float64 `[1, k]`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from heron_env._version import __version__
from heron_env.errors import ConfigError
from heron_env.files.writing import write_all
from heron_env.given import path_of
from heron_env.lab.exporting.traced import Graph, Symbol, Untraceable
from heron_env.lab.run_weights import Actor, actor_in
from heron_env.lab.runs import RunFolder
from heron_env.lab.trained import Correction, Network, Scaling, act_of
from heron_env.trust import Trust, listed, trusting

if TYPE_CHECKING:
    from heron_env.envs.base import HeronEnv
    from heron_env.lab.run_groups import GroupConfig


def export_onnx(run_dir: str | Path, file: str | Path, *, env: HeronEnv | None = None, trust: Trust = ()) -> list[Path]:
    """Write the policies of a run folder as ONNX files, one for each policy; with several, `FILE-KEY.onnx`.

    Args:
        run_dir: the run folder.
        file: where to, ending in .onnx.
        env: of the run; None: as the folder says, which must be registered here, or trusted.
        trust: names that the folder may name, "module:function".

    The metadata (`metadata_props`) say in JSON what the columns are called, their units, bounds, the environment, and
    the versions. Decisions are the deterministic ones: choices are the same, numbers within 1e-5 of the range (sums of
    float32 in another order).

    Raises ConfigError for another ending and where the package onnx is missing; RunFolderError for what is no run.
    """
    path = path_of(file, "export_onnx(file)")
    if path.suffix != ".onnx":
        raise ConfigError(f"{path}: give the file an ending that says what it is, say {path.stem or 'policy'}.onnx")
    try:
        import onnx  # noqa: F401
    except ImportError as error:
        raise ConfigError("to write ONNX files takes the package onnx: pip install 'heron_env[onnx]'") from error
    run = RunFolder.open(run_dir)
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


def _exported(run: RunFolder, env: HeronEnv, group: str, key: str, rule: Any) -> Any:
    """The model of one policy."""
    kept = run.config.groups[group]
    actor = actor_in(run.path / kept.model, kept)
    rank = env.hierarchy.rank(key if key in kept.agents else kept.agents[0], "export")
    about, masked = _about(run, env, group, key), env.simulation.masks.offer(rank) is not None
    try:
        graph, outputs = _graph(kept, actor, rule, masked)
        corrects = None if rule is None else {"rule": run.config.base, "where": "in the graph"}
    except Untraceable as error:
        graph, outputs = _graph(kept, actor, None, masked, anchored=True)
        corrects = {"rule": run.config.base, "where": "input 'anchor': its action", "why": str(error)}
    return graph.model(outputs, {"heron_env": json.dumps({**about, "corrects": corrects})})


def _graph(
    kept: GroupConfig, actor: Actor, rule: Any, masked: bool, anchored: bool = False
) -> tuple[Graph, dict[str, Symbol]]:
    """Inputs, the decision, and outputs. Raises Untraceable for a rule that is more than arithmetic."""
    graph, width = Graph(), len(kept.observation_names)
    numbers, choices = len(kept.action_low), sum(kept.ncats)
    observation = graph.input("observation", np.array([kept.center], dtype=np.float32))
    mask = graph.input("mask", np.ones((1, choices), dtype=bool)) if masked else None
    anchor = graph.input("anchor", np.zeros((1, numbers))) if anchored else None
    remembered = None
    if kept.frames > 1 or actor.recurrent is not None:
        remembered = Remembered(graph.input("first", np.ones(1, dtype=bool)))
        if kept.frames > 1:
            shown = graph.input("shown", np.zeros((1, kept.frames, width), dtype=np.float32))
            remembered = Remembered(remembered.first, shown)
        if actor.recurrent is not None:
            hidden = graph.input("hidden", np.zeros((1, actor.recurrent.units), dtype=np.float32))
            remembered = Remembered(remembered.first, remembered.shown, hidden)
    return graph, decided(kept, actor, rule, observation, mask, anchor, remembered)


def decided(
    kept: GroupConfig, actor: Actor, rule: Any, observation: Any, mask: Any, anchor: Any, before: Remembered | None
) -> dict[str, Any]:
    """What NetworkPolicy and RememberingPolicy do for one observation `[1, d]`, in functions of numpy alone."""
    told: dict[str, Any] = {}
    inputs = Scaling(np.array(kept.center), np.array(kept.scale))(observation)
    if before is not None and before.shown is not None:
        later = np.concatenate([before.shown[:, 1:], inputs.reshape(1, 1, -1)], axis=1)
        alone = np.concatenate([inputs.reshape(1, 1, -1)] * kept.frames, axis=1)
        told["next_shown"] = np.where(before.first.reshape(1, 1, 1), alone, later)
        inputs = told["next_shown"].reshape(1, -1)
    if before is not None and actor.recurrent is not None:
        hidden = np.where(before.first.reshape(1, 1), np.float32(0.0), before.hidden)
        shares = _run(actor.recurrent.seen, inputs), _run(actor.recurrent.kept, hidden)
        told["next_hidden"] = actor.recurrent.remembered(*shares, hidden)
        inputs = np.concatenate([inputs, told["next_hidden"]], axis=1)
    outputs = _run(actor.network, inputs)
    numbers = len(kept.action_low)
    if mask is not None:
        allowed = np.where(mask, outputs[:, numbers:], np.float32(-math.inf))
        outputs = np.concatenate([outputs[:, :numbers], allowed], axis=1) if numbers else allowed
    act = act_of(np.array(kept.action_low), np.array(kept.action_high), tuple(kept.ncats))
    anchor = _arithmetic(rule, observation) if rule is not None else anchor
    if anchor is not None and isinstance(act, Correction):
        return {"action": act.around(anchor, outputs), **told}
    return {"action": act(observation, outputs), **told}


def _arithmetic(rule: Any, observation: Symbol) -> Symbol:
    """What a rule does, as nodes. Raises Untraceable."""
    if not callable(getattr(rule, "forward_batch", None)):
        raise Untraceable(f"{type(rule).__name__} has no forward_batch(vectors), which a graph could be made of")
    try:
        made: Symbol = rule.forward_batch(observation)
    except (TypeError, ValueError, AttributeError, NotImplementedError) as error:
        raise Untraceable(f"{type(rule).__name__}: {error}") from error
    return made


def _run(network: Network, x: Any) -> Any:
    """Layers with tanh in between, float32."""
    for number, (weights, bias) in enumerate(network.layers):
        x = (np.tanh(x) if number else x) @ weights + bias
    return x


def _about(run: RunFolder, env: HeronEnv, group: str, key: str) -> Mapping[str, Any]:
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
