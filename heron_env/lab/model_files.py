"""Policies in files: what Stable-Baselines3 saves (.zip), and ONNX, from `heron export` or of any other origin."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from copy import deepcopy
from functools import cache, partial
from pathlib import Path
from typing import Any, Final

import numpy as np
from gymnasium import spaces

from heron_env.core.policy import Policies
from heron_env.errors import ConfigError, listed_names
from heron_env.lab.black_boxes import BlackBox
from heron_env.lab.columns import columns_misfit

OF_TRAINING: Final = ("lr_schedule", "learning_rate", "clip_range", "_last_obs", "_last_episode_starts")
"""What a .zip has besides the policy, and other versions of Python and numpy can't always read."""
BESIDE: Final = ("mask", "first", "shown", "hidden")
"""Inputs of a model of `heron export` besides the observation: what is allowed, and what it remembers."""
Model = Callable[[Any, Any, dict[str, Any]], Any]
"""(observation, mask, what is remembered, which it changes) -> numbers."""


class ModelPolicy:
    """One agent's: what a model says, brought into its space of actions."""

    def __init__(self, model: Model, fit: Callable[[Any], Any]) -> None:
        self._model, self._fit, self._memory = model, fit, dict[str, Any]()

    def begin(self, seed: int, episode: int) -> None:
        """An episode begins: nothing is remembered."""
        self._memory.clear()

    def forward(self, observation: Any, mask: Any = None) -> Any:
        """The action; nothing is drawn."""
        return self._fit(self._model(observation, mask, self._memory))


def policies_in(file: str, env: Any) -> Policies:
    """By agent, what the file holds. Raises ConfigError where it holds none, or one of other spaces."""
    model_of, policies, agent = _zipped if file.endswith(".zip") else _onnx, dict[str, ModelPolicy](), ""
    if not Path(file).is_file():
        raise ConfigError(f"policy {file!r}: no such file; correct the path")
    try:
        changed = Path(file).stat().st_mtime_ns
        for agent in env.possible_agents:
            seen, done = env.observation_space(agent), env.action_space(agent)
            spec = None if isinstance(env, BlackBox) else env.simulation.specs[env.hierarchy.index[agent]]
            model = model_of(file, changed, seen, done)
            _require_columns(file, changed, env, agent)
            policies[agent], example = (
                ModelPolicy(model, partial(fitted, f"{file!r} for {agent!r}", done, spec)),
                deepcopy(seen),
            )
            example.seed(0)
            policies[agent].forward(example.sample())
            policies[agent].begin(0, 0)
    except ImportError as error:
        extra = "train" if file.endswith(".zip") else "onnx"
        raise ConfigError(f"policy {file!r}: {error}; pip install 'heron_env[{extra}]'") from error
    except Exception as error:  # a file may hold anything
        names = "" if isinstance(env, BlackBox) or not agent else f" ({listed_names(env.observation_names(agent))})"
        where = f" for {agent!r}, who observes {seen}{names} and does {done}" if agent else ""
        raise ConfigError(
            f"policy {file!r}: is no model that decides{where} ({type(error).__name__}: {error}); give one that was "
            "trained in these spaces"
        ) from error
    return policies


def fitted(whose: str, space: spaces.Space[Any], spec: Any, numbers: Any) -> Any:
    """An action: of one number for each choice the greatest, of others what the Box holds. `spec`: of our agents.

    Choices count from the space's `start`. Raises ConfigError for what is no action.
    """
    answer = numbers
    if not np.isnan(numbers).any():
        if isinstance(space, spaces.Discrete) and np.size(numbers) == space.n:
            numbers = np.argmax(numbers)
        if spec is not None:
            return spec.bounded(np.asarray(numbers, np.float64).reshape(spec.size))
        values = np.asarray(numbers).reshape(space.shape)
        if isinstance(space, spaces.Box):
            values = values.clip(space.low, space.high)
        else:
            values = np.rint(values) + getattr(space, "start", 0)
        if np.isfinite(values).all():
            action = int(values) if isinstance(space, spaces.Discrete) else values.astype(space.dtype)
            if space.contains(action):
                return action
    raise ConfigError(f"policy {whose} answers {np.asarray(answer).tolist()!r:.100}, which is no action of {space}")


@cache
def _saved(file: str, changed: int) -> Any:
    from stable_baselines3.common.save_util import load_from_zip_file

    data: Any
    data, parameters, _ = load_from_zip_file(file, device="cpu", custom_objects=dict.fromkeys(OF_TRAINING))
    settings = data["policy_kwargs"] | ({"use_sde": True} if data.get("use_sde") else {})
    policy = data["policy_class"](data["observation_space"], data["action_space"], lambda _: 0.0, **settings)
    policy.load_state_dict(parameters["policy"])
    policy.set_training_mode(False)
    return policy


def _zipped(file: str, changed: int, seen: Any, done: Any) -> Model:
    """The policy that a .zip of any algorithm holds: its own class says which."""
    policy = _saved(file, changed)
    theirs = policy.action_space
    if (type(theirs), theirs.shape) != (type(done), done.shape) or not (isinstance(done, spaces.Box) or theirs == done):
        raise ValueError(f"it does {theirs}")
    if hasattr(policy, "lstm_actor"):
        raise ValueError("it remembers, which is lost between two decisions here")
    return lambda observation, mask, memory: policy.predict(observation, deterministic=True)[0]


@cache
def _session(file: str, changed: int) -> Any:
    import onnxruntime

    few = onnxruntime.SessionOptions()
    few.intra_op_num_threads = few.inter_op_num_threads = 1
    data = Path(file).read_bytes()  # weights in a second file are refused: a policy's identity is that of one
    return onnxruntime.InferenceSession(data, few, providers=["CPUExecutionProvider"])


def _require_columns(file: str, changed: int, env: Any, agent: str) -> None:
    """Raise ValueError where the agent observes other columns than those of which a file of `heron export` tells."""
    if file.endswith(".zip") or isinstance(env, BlackBox):
        return
    kept = _session(file, changed).get_modelmeta().custom_metadata_map.get("heron_env")
    about = json.loads(kept) if kept else {"agents": []}
    if about["agents"][:1] == [agent]:  # what others of its group see is called otherwise
        names = [column["name"] for column in about["observation"]]
        if differs := columns_misfit(names, env.observation_names(agent), env, agent):
            raise ValueError(f"it was exported for other columns: {differs}")


def _onnx(file: str, changed: int, seen: Any, done: Any) -> Model:
    session = _session(file, changed)
    inputs, outputs = {i.name: i for i in session.get_inputs()}, [o.name for o in session.get_outputs()]
    own, results = [n for n in inputs if n not in BESIDE], [n for n in outputs if not n.startswith("next_")]
    if len(own) != 1 or len(results) != 1 or inputs[own[0]].type not in ("tensor(float)", "tensor(double)"):
        raise ValueError(f"from {own} it makes {results}: one input of floats and one output are wanted")
    dtype = np.float64 if "double" in inputs[own[0]].type else np.float32

    def decide(observation: Any, mask: Any, memory: dict[str, Any]) -> Any:
        flat = observation if isinstance(seen, spaces.Box) else spaces.flatten(seen, observation)
        given = {own[0]: np.asarray(flat, dtype)[None], **memory}
        for name in inputs.keys() - given.keys():
            one = np.ones if name in ("first", "mask") else np.zeros
            given[name] = one(inputs[name].shape, bool if one is np.ones else np.float32)
        if "mask" in inputs and mask is not None:
            choices = mask["d"] if isinstance(mask, Mapping) else mask
            given["mask"] = np.concatenate([*choices] if isinstance(choices, tuple) else [choices])[None] != 0
        answers = dict(zip(outputs, session.run(None, given), strict=True))
        memory |= {name: answers[f"next_{name}"] for name in ("shown", "hidden") if name in inputs}
        memory |= {"first": np.zeros(1, bool)} if "first" in inputs else {}
        return answers[results[0]]

    return decide
