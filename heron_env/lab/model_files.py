"""Policies in files: what Stable-Baselines3 saves (.zip), and ONNX, from `heron export` or of any other origin."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from copy import deepcopy
from functools import cache, partial
from io import BytesIO
from pathlib import Path
from typing import Any, Final

import numpy as np
from gymnasium import spaces

from heron_env.adapters.network.masks import flags_of
from heron_env.core.planned import Planned
from heron_env.core.policy import Policies, takes
from heron_env.errors import ConfigError, listed_names
from heron_env.lab.benchmark import baseline, rules_of
from heron_env.lab.black_boxes import BlackBox
from heron_env.lab.columns import columns_misfit
from heron_env.lab.trained import Activation, decide_batch, on_vectors

OF_TRAINING: Final = ("lr_schedule", "learning_rate", "clip_range", "_last_obs", "_last_episode_starts")
"""What a .zip has besides the policy, and other versions of Python and numpy can't always read."""
ACTIVATIONS: Final[dict[str, Activation]] = {"Tanh": "tanh", "ReLU": "relu"}
BESIDE: Final = ("mask", "first", "shown", "hidden", "anchor")
"""Inputs of a model of `heron export` besides the observation: what is allowed, what it remembers and corrects."""
UNMASKED: Final = (
    "policy {file!r}: was trained with masks, and the environment gives {agent!r} none: no 'action_mask' "
    "in its info or observation, no action_masks(); play it where there is one, or train it without masks"
)
Model = Callable[[Any, Any, dict[str, Any]], Any]
"""(observation, mask, what is remembered, which it changes) -> numbers."""


class ModelPolicy:
    """One agent's: what a model says, brought into its space of actions. `missing`: why it can't go without a mask."""

    def __init__(self, model: Model, fit: Callable[[Any], Any], missing: str = "") -> None:
        self._model, self._fit, self._memory, self._missing = model, fit, dict[str, Any](), missing

    def begin(self, seed: int, episode: int) -> None:
        """An episode begins: nothing is remembered."""
        self._memory.clear()

    def forward(self, observation: Any, mask: Any = None) -> Any:
        """The action; nothing is drawn. Raises ConfigError where a mask is missing."""
        if mask is None and self._missing:
            raise ConfigError(self._missing)
        return self.decide(observation, mask)

    def decide(self, observation: Any, mask: Any) -> Any:
        """The same, without a mask where there is none."""
        return self._fit(self._model(observation, mask, self._memory))


def policies_in(file: str, env: Any) -> Policies:
    """By agent, what the file holds: of a model that answers several actions at once, a policy that plans.

    Raises ConfigError where it holds none, or one of other spaces.
    """
    model_of, policies, agent = _zipped if file.endswith(".zip") else _onnx, dict[str, Any](), ""
    if not Path(file).is_file():
        raise ConfigError(f"policy {file!r}: no such file; correct the path")
    try:
        data = Path(file).read_bytes()
        for agent in env.possible_agents:
            observed, acted = env.observation_space(agent), env.action_space(agent)
            spec = None if isinstance(env, BlackBox) else env.simulation.model.specs[env.hierarchy.index[agent]]
            model, masked, many = model_of(data, observed, acted, env, agent)
            missing = UNMASKED.format(file=file, agent=agent) if masked and spec is None else ""  # of ours: all allowed
            fit: Any = partial(fitted, f"{file!r} for {agent!r}", acted, spec)
            example = deepcopy(observed)
            example.seed(0)
            observation = example.sample()
            many = many or _many(np.shape(model(observation, None, {})), acted, spec)
            if many > 1 and masked:
                raise ValueError(f"it answers {many} actions by a mask, and there is none of the times to come")
            policy: Any = ModelPolicy(model, fit if many == 1 else partial(_rows, fit, many), missing)
            policy.decide(observation, None)
            policy.begin(0, 0)
            policies[agent] = policy if many == 1 else Planned(policy)
    except ImportError as error:
        extra = "train" if file.endswith(".zip") else "onnx"
        raise ConfigError(f"policy {file!r}: {error}; pip install 'heron_env[{extra}]'") from error
    except Exception as error:  # a file may hold anything
        names = "" if isinstance(env, BlackBox) or not agent else f" ({listed_names(env.observation_names(agent))})"
        where = f" for {agent!r}, who observes {observed}{names} and does {acted}" if agent else ""
        raise ConfigError(
            f"policy {file!r}: is no model that decides{where} ({type(error).__name__}: {error}); give one that was "
            "trained in these spaces"
        ) from error
    return policies


def _many(shape: tuple[int, ...], space: spaces.Space[Any], spec: Any) -> int:
    """How many actions an answer `[1, k, ...]` is; a flat one is one, as it may be a mean with its deviation."""
    one = int(np.prod(space.shape or ())) if spec is None else spec.size
    ones = {one, int(space.n)} if isinstance(space, spaces.Discrete) else {one}
    several = len(shape) > 2 and any(shape[1] * each == np.prod(shape) for each in ones)
    return shape[1] if several else 1


def _rows(fit: Callable[[Any], Any], many: int, numbers: Any) -> list[Any]:
    """The actions, one by one."""
    return [fit(row) for row in np.reshape(numbers, (many, -1))]


def fitted(label: str, space: spaces.Space[Any], spec: Any, numbers: Any) -> Any:
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
    raise ConfigError(f"policy {label} answers {np.asarray(answer).tolist()!r:.100}, which is no action of {space}")


def activation_of(policy: Any) -> Activation | None:
    """Between the layers of a policy of Stable-Baselines3; None: another one than ours."""
    return ACTIVATIONS.get(getattr(getattr(policy, "activation_fn", None), "__name__", ""))


@cache
def saved_model(data: bytes) -> tuple[Any, dict[str, Any]]:
    """The policy of an algorithm, and what else the .zip says of it, by name."""
    from stable_baselines3.common.save_util import load_from_zip_file

    facts: Any
    facts, parameters, _ = load_from_zip_file(BytesIO(data), device="cpu", custom_objects=dict.fromkeys(OF_TRAINING))
    settings = facts["policy_kwargs"] | ({"use_sde": True} if facts.get("use_sde") else {})
    policy = facts["policy_class"](facts["observation_space"], facts["action_space"], lambda _: 0.0, **settings)
    policy.load_state_dict(parameters["policy"])
    policy.set_training_mode(False)
    return policy, facts


def _zipped(data: bytes, observed: Any, acted: Any, env: Any, agent: str) -> tuple[Model, bool, int]:
    """The policy that a .zip of any algorithm holds: its own class says which. True: it decides by a mask.

    And how many actions it answers.
    """
    policy, _ = saved_model(data)
    own = policy.observation_space, policy.action_space
    many = _fold(own[1], acted)
    if own[0] != _in_training(observed) or not many:  # as their own check_for_correct_spaces
        raise ValueError(f"it observes {own[0]} and does {own[1]}")
    if hasattr(policy, "lstm_actor"):
        raise ValueError("it remembers, which is lost between two decisions here")
    masked = takes(policy.predict, "action_masks")

    def decide(observation: Any, mask: Any, memory: dict[str, Any]) -> Any:
        more = {} if mask is None or not masked else {"action_masks": flags_of(mask, acted)}
        return policy.predict(observation, deterministic=True, **more)[0]

    return decide, masked, many


def _fold(own: Any, one: Any) -> int:
    """Of how many actions of the space `one` an action of the space `own` is made; 0: of none."""
    match own, one:
        case spaces.Box(), spaces.Box():
            ends: Any = [(own.low, one.low), (own.high, one.high)]
        case spaces.MultiDiscrete(), spaces.Discrete() | spaces.MultiDiscrete():
            ends = [(own.nvec, getattr(one, "nvec", getattr(one, "n", None)))]
        case _:
            return int(own == one)
    many = np.size(ends[0][0]) // max(np.size(ends[0][1]), 1)
    same = all(np.array_equal(np.ravel(several), np.tile(np.ravel(each), many)) for several, each in ends)
    return many if same and own.dtype == one.dtype and (many > 1 or own == one) else 0


def _in_training(space: spaces.Space[Any]) -> spaces.Space[Any]:
    """The space of an algorithm that trains on observations of this one: images with their channels first."""
    from stable_baselines3.common.preprocessing import is_image_space, is_image_space_channels_first
    from stable_baselines3.common.vec_env import VecTransposeImage

    if isinstance(space, spaces.Dict):
        return spaces.Dict({name: _in_training(part) for name, part in space.items()})
    if isinstance(space, spaces.Box) and is_image_space(space) and not is_image_space_channels_first(space):
        return VecTransposeImage.transpose_space(space)
    return space


@cache
def _session(data: bytes) -> Any:
    """Of one file: weights in a second one are refused, since a policy's identity is that of one."""
    import onnxruntime

    few = onnxruntime.SessionOptions()
    few.intra_op_num_threads = few.inter_op_num_threads = 1
    return onnxruntime.InferenceSession(data, few, providers=["CPUExecutionProvider"])


def _require_same(
    about: Mapping[str, Any], observed: spaces.Space[Any], acted: spaces.Space[Any], env: Any, agent: str
) -> int:
    """How many actions a file of `heron export` says that it answers.

    Raises ValueError where it says that it acts or observes otherwise than the agent here.
    """
    if "observed" in about:  # of a model of Stable-Baselines3: ours name their columns
        limits = [np.ravel(getattr(observed, end, ())).tolist() for end in ("low", "high")]
        if [about["observed"][end] for end in ("low", "high")] != limits:
            raise ValueError(f"it observes numbers from {about['observed']['low']} to {about['observed']['high']}")
    numbers, choices = about["action"]["numbers"], about["action"]["choices"]
    low, high = numbers["low"], numbers["high"]
    parts = list(acted.values()) if isinstance(acted, spaces.Dict) else [acted]
    boxes = [part for part in parts if isinstance(part, spaces.Box)]
    ours = [[float(x) for box in boxes for x in np.ravel(getattr(box, end))] for end in ("low", "high")]
    counts = [int(n) for part in parts for n in np.ravel(getattr(part, "nvec", getattr(part, "n", ())))]
    many = max((len(low) + len(choices)) // max(len(ours[0]) + len(counts), 1), 1)
    ours = [ends * many for ends in ours]
    if len(low) != len(ours[0]) or not np.allclose([low, high], ours) or choices != counts * many:
        raise ValueError(f"it does numbers from {low} to {high} and choices among {choices}")
    if about.get("agents", [])[:1] == [agent] and not isinstance(env, BlackBox):  # others of its group have other names
        names = [column["name"] for column in about["observation"]]
        if differs := columns_misfit(names, env.observation_names(agent), env, agent):
            raise ValueError(f"it was exported for other columns: {differs}")
    return many


def _corrected(about: Mapping[str, Any], env: Any, agent: str) -> Callable[[Any], Any]:
    """What the rule does that a file of `heron export` corrects. Raises ValueError where the environment has none."""
    name = (about.get("corrects") or {}).get("rule")
    rules = None if isinstance(env, BlackBox) or name is None else baseline(env, name)
    if rules is None:
        raise ValueError(f"it corrects the rule {name!r}, which the environment does not have")
    rule = on_vectors(rules_of(rules, about["group"], [agent])[agent])
    return lambda vectors: decide_batch(rule, vectors)


def _onnx(data: bytes, observed: Any, acted: Any, env: Any, agent: str) -> tuple[Model, bool, int]:
    session = _session(data)
    about = json.loads(session.get_modelmeta().custom_metadata_map.get("heron_env", "{}"))
    inputs, outputs = {i.name: i for i in session.get_inputs()}, [o.name for o in session.get_outputs()]
    own, results = [n for n in inputs if n not in BESIDE], [n for n in outputs if not n.startswith("next_")]
    results = [n for n in results if n.lower() in ("action", "actions")] or results
    if len(own) != 1 or len(results) != 1 or inputs[own[0]].type not in ("tensor(float)", "tensor(double)"):
        raise ValueError(
            f"from {own} it makes {results}: one input of floats and one output are wanted, or of several one called "
            "'action' (torch.onnx.export(..., output_names=['action', ...]))"
        )
    many = _require_same(about, observed, acted, env, agent) if about else 0
    corrected = _corrected(about, env, agent) if "anchor" in inputs else None
    dtype = np.float64 if "double" in inputs[own[0]].type else np.float32

    def decide(observation: Any, mask: Any, memory: dict[str, Any]) -> Any:
        flat = observation if isinstance(observed, spaces.Box) else spaces.flatten(observed, observation)
        values = {own[0]: np.asarray(flat, dtype)[None], **memory}
        values |= {} if corrected is None else {"anchor": corrected(values[own[0]])}
        for name in inputs.keys() - values.keys():
            one = np.ones if name in ("first", "mask") else np.zeros
            values[name] = one(inputs[name].shape, bool if one is np.ones else np.float32)
        if "mask" in inputs and mask is not None:
            choices = mask["d"] if isinstance(mask, Mapping) else mask
            values["mask"] = np.concatenate([*choices] if isinstance(choices, tuple) else [choices])[None] != 0
        answers = dict(zip(outputs, session.run(None, values), strict=True))
        memory |= {name: answers[f"next_{name}"] for name in ("shown", "hidden") if name in inputs}
        memory |= {"first": np.zeros(1, bool)} if "first" in inputs else {}
        return answers[results[0]]

    return decide, "mask" in inputs, many
