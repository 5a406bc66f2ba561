"""Run folders of what Stable-Baselines3 has trained on a HeronVecEnv; every command then works on them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from heron_env.errors import ConfigError, RunFolderError
from heron_env.files.writing import write
from heron_env.given import is_number, path_of
from heron_env.lab.model_files import activation_of, saved_model
from heron_env.lab.run_files import CurvePoint, GroupConfig, RunConfig, group_config
from heron_env.lab.runs import RunFolder, files_of_run, replace_run, unused, versions
from heron_env.lab.trained import NetworkPolicy, Scaling, act_of
from heron_env.lab.weights import actor_of, packed_weights
from heron_env.registry import id_of
from heron_env.scheduling.drawn import as_dict

if TYPE_CHECKING:
    from heron_env.adapters.sb3 import HeronVecEnv

KEPT: Final = ("mlp_extractor.", "action_net.", "value_net.", "log_std")
"""How the names of tensors begin that act or value."""
NUMBERS: Final = ("n_steps", "batch_size", "n_epochs", "gamma", "gae_lambda", "learning_rate")
ROWS: Final = 64
"""Observations on which the run must decide as the model does."""


def save_run(model: Any, env: Any, folder: str | Path) -> RunFolder:
    """Make a run folder of a model of Stable-Baselines3, for sweeps, reports, margins, exports and the board.

    The statistics of VecNormalize become the scaling of the run's policy. The environment's options are those that the
    HeronVecEnv was built with. There is no learning curve and no validation.

    Args:
        model: PPO, A2C, TRPO or MaskablePPO with fully connected layers, or its .zip; where several groups are trained,
            a mapping of them by group. Groups that are left out must have policies of their own.
        env: the HeronVecEnv that it was trained in, also within VecNormalize and VecMonitor; a mapping likewise.
        folder: for the run. It replaces an older run there.

    Returns:
        The run, which `load_policy(folder)` loads.

    Raises ConfigError for a model or wrappers that a run can't be made of.

    Example: `save_run(model, VecNormalize(HeronVecEnv("heron/BatteryGrid-v0", 16)), "runs/grid")`.
    """
    path = path_of(folder, "save_run(folder)")
    pairs = [(model[name], env[name]) for name in model] if isinstance(model, Mapping) else [(model, env)]
    groups, models, steps = dict[str, GroupConfig](), dict[str, bytes](), 0
    for one, wrapped in pairs:
        lanes, normalizer = _unwrapped(wrapped)
        policy, facts = (one.policy, vars(one)) if hasattr(one, "policy") else saved_model(_bytes(one))
        groups[lanes.group], models[lanes.group] = _converted(policy, lanes, normalizer)
        steps += int(facts.get("num_timesteps", 0))
    former, built = files_of_run(path), lanes.batch.env
    env_id, options = lanes.built_from
    config = RunConfig(
        env_id=id_of(env_id, "save_run(env)"),
        env_options=options,
        training_options={},
        algorithm=type(one if hasattr(one, "policy") else policy).__name__.lower(),
        trainer="sb3",
        base=None,
        seed=facts.get("seed") or 0,
        transitions=steps,
        seconds=0.0,
        deterministic=False,
        hyperparameters=_hyperparameters(policy, groups[lanes.group], facts, lanes),
        critic="central" if lanes.central else "local",
        schedule=None if lanes.schedule is None else as_dict(lanes.schedule),
        groups=groups,
        curve=unused("progress", ".csv", set(former)),
        return_of=built.hierarchy.ids[0],
        validation={},
        versions=versions(),
    )
    if fault := RunFolder(path, config, models).misfit(built):
        raise ConfigError(f"save_run(): {fault}; give models and environments of all: save_run({{group: model}}, ...)")
    write(path / config.curve, ",".join(CurvePoint.model_fields) + "\n")
    return replace_run(path, config, models, former)


def _bytes(file: Any) -> bytes:
    """Of the .zip. Raises ConfigError."""
    path = path_of(file, "save_run(model)")
    if not path.is_file():
        raise ConfigError(f"save_run(model={str(file)!r:.90}): no such file; give the model, or the .zip that it saved")
    return path.read_bytes()


def _unwrapped(env: Any) -> tuple[HeronVecEnv, Any]:
    """The HeronVecEnv, and the VecNormalize around it or None. Raises ConfigError."""
    from stable_baselines3.common.vec_env import VecCheckNan, VecEnvWrapper, VecMonitor, VecNormalize

    from heron_env.adapters.sb3 import HeronVecEnv

    normalizer, inner = None, env
    while isinstance(inner, VecEnvWrapper):
        if isinstance(inner, VecNormalize) and normalizer is None:
            normalizer = inner
        elif not isinstance(inner, VecMonitor | VecCheckNan):
            break
        inner = inner.venv
    if not isinstance(inner, HeronVecEnv):
        raise ConfigError(
            f"save_run(env): {type(inner).__name__} is no HeronVecEnv; give the one that the model was trained in, "
            "within VecNormalize (once) and VecMonitor at most"
        )
    return inner, normalizer


def _converted(policy: Any, lanes: HeronVecEnv, normalizer: Any) -> tuple[GroupConfig, bytes]:
    """What config.json keeps of a group, and its model file. Raises ConfigError."""
    observed, widths = lanes.observation_space, lanes.widths
    if (policy.observation_space.shape, policy.action_space) != (observed.shape, lanes.action_space):
        raise ConfigError(
            f"save_run(): the model observes {policy.observation_space} and does {policy.action_space}, the "
            f"environment {observed} and {lanes.action_space}; give the one that it was trained in"
        )
    obs, *state = (_scaling(normalizer, part, width) for part, width in widths.items())
    reward = 1.0
    if normalizer is not None and normalizer.norm_reward:
        reward = float(1.0 / np.sqrt(normalizer.ret_rms.var + normalizer.epsilon))
    activation = activation_of(policy) or "tanh"  # another one decides otherwise on the rows below, and is refused
    group = group_config(
        lanes.batch.env, lanes.group, obs, reward, state=state[0] if state else None, activation=activation
    )
    weights = _in_units(policy.state_dict(), np.array(group.action_low), np.array(group.action_high))
    try:
        actor = actor_of(weights, group, Path("the model"))
        act = act_of(np.array(group.action_low), np.array(group.action_high), tuple(group.ncats))
        rows = np.random.default_rng(0).normal(obs.center, obs.scale, (ROWS, widths["obs"])).astype(np.float32)
        ours = NetworkPolicy(actor.network, obs, act).forward_batch(rows)
        inputs: Any = obs(rows)
        if state:
            inputs = {"obs": inputs, "state": np.zeros((ROWS, widths["state"]), dtype=np.float32)}
        theirs = policy.predict(inputs, deterministic=True)[0].reshape(ROWS, -1)
        if not np.allclose(
            ours, theirs, rtol=0.0, atol=1e-4 * np.ptp([0.0, 1.0, *group.action_low, *group.action_high])
        ):
            raise ValueError("it decides otherwise than its layers alone do")
    except (RunFolderError, ValueError) as error:
        raise ConfigError(
            f"save_run(): a run can't be made of {type(policy).__name__} ({error}): it takes fully connected layers "
            "with tanh or ReLU and bounds behind them; sweeps and reports play the .zip itself"
        ) from error
    return group, packed_weights(weights)


def _scaling(normalizer: Any, part: str, width: int) -> Scaling:
    """Of a part of what is observed, as VecNormalize does it; without one numbers stay as they are."""
    rms = None if normalizer is None or not normalizer.norm_obs else normalizer.obs_rms
    rms = rms.get(part) if isinstance(rms, dict) else rms
    if rms is None:
        return Scaling(np.zeros(width), np.ones(width))
    return Scaling(rms.mean, np.sqrt(rms.var + normalizer.epsilon), float(normalizer.clip_obs))


def _in_units(weights: Mapping[str, Any], low: NDArray[Any], high: NDArray[Any]) -> dict[str, Any]:
    """The tensors that a run keeps: its outputs are numbers in units of half their range, theirs the actions."""
    import torch

    tensors = {name: value.detach().cpu() for name, value in weights.items() if name.startswith(KEPT)}
    if len(low) and {"action_net.weight", "action_net.bias", "log_std"} <= tensors.keys():
        middle, reach = (torch.as_tensor(x, dtype=torch.float32) for x in ((low + high) / 2.0, (high - low) / 2.0))
        tensors["action_net.weight"] = tensors["action_net.weight"] / reach[:, None]
        tensors["action_net.bias"] = (tensors["action_net.bias"] - middle) / reach
        tensors["log_std"] = tensors["log_std"] - torch.log(reach)
    return tensors


def _hyperparameters(policy: Any, group: GroupConfig, facts: Mapping[str, Any], lanes: HeronVecEnv) -> dict[str, Any]:
    """Those that ours are called like, as far as they are numbers."""
    numbers = {name: facts[name] for name in NUMBERS if is_number(facts.get(name))}
    layers = policy.mlp_extractor.policy_net
    hidden = [layer.out_features for layer in layers if hasattr(layer, "out_features")]
    return {**numbers, "num_envs": lanes.batch.num_envs, "hidden": hidden, "activation": group.activation}


__all__ = ["save_run"]
