"""The policy of a Stable-Baselines3 .zip as an ONNX graph: fully connected actors of PPO, A2C, TRPO and MaskablePPO."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from gymnasium import spaces

from heron_env._version import __version__
from heron_env.core.policy import takes
from heron_env.errors import ConfigError
from heron_env.lab.model_files import activation_of, saved_policy
from heron_env.lab.onnx_file import BOOL, DOUBLE, FLOAT, ROW, OnnxGraph
from heron_env.lab.policies import digest_of
from heron_env.lab.trained import network_of

BY_HAND = (
    "write it with torch.onnx.export(..., output_names=['action']), as Stable-Baselines3's page on export shows; every "
    "command here plays the .zip itself"
)


def onnx_of_zip(file: str | Path) -> Any:
    """The model: `observation` float32 `[1, ...]`, with masks `mask` bool `[1, choices]`, to `action` float64 `[1, k]`.

    Raises ConfigError for a file that holds none, and for a policy that is more than such layers.
    """
    try:
        policy = saved_policy(Path(file).read_bytes())
    except Exception as error:  # a file may hold anything
        raise ConfigError(f"{file}: is no model of Stable-Baselines3 ({type(error).__name__}: {error})") from error
    seen, done = policy.observation_space, policy.action_space
    activation = activation_of(policy)
    flat = type(getattr(policy, "features_extractor", None)).__name__ == "FlattenExtractor"
    plain = flat and hasattr(policy, "mlp_extractor") and not hasattr(policy, "lstm_actor")
    bounded = isinstance(done, spaces.Box) and not policy.squash_output
    choices = isinstance(done, spaces.Discrete | spaces.MultiDiscrete) and not np.any(done.start)
    if not (plain and activation and isinstance(seen, spaces.Box) and (bounded or choices)):
        raise ConfigError(
            f"{file}: {type(policy).__name__}, which observes {seen} and does {done}, is more than fully connected "
            f"layers with tanh or ReLU and bounds behind them; {BY_HAND}"
        )
    network, _ = network_of(policy.state_dict(), activation)
    graph, count = OnnxGraph(), len(network.layers[-1][1])
    observation = graph.input("observation", FLOAT, (1, *seen.shape))
    mask = graph.input("mask", BOOL, (1, count)) if takes(policy.predict, "action_masks") else None
    values = graph.network(network, graph.node("Reshape", observation, ROW))
    low, high, ncats = np.zeros(0), np.zeros(0), np.ravel(getattr(done, "nvec", getattr(done, "n", ()))).tolist()
    if bounded:
        low, high = np.ravel(done.low), np.ravel(done.high)
        action = graph.cast(graph.clipped(values, low.astype(FLOAT), high.astype(FLOAT)), DOUBLE)
    else:
        action = graph.choices(graph.allowed(values, mask), ncats)
    about = {
        "version": __version__, "model": digest_of([Path(file)]),
        "action": {"numbers": {"low": low.tolist(), "high": high.tolist()}, "choices": ncats},
        "observed": {"low": np.ravel(seen.low).tolist(), "high": np.ravel(seen.high).tolist()},
    }  # fmt: skip
    return graph.model({"action": (action, DOUBLE, (1, len(low) or len(ncats)))}, about)
