"""A trained policy without its framework: a small compiled network, fixed scales, and the rule that it corrects."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from heron_env.core.policy import (
    AnsweringPolicy,
    AnyPolicy,
    Decide,
    Keys,
    OnBatches,
    Policy,
    StatePolicy,
    forward_rows,
    own_draws,
    takes,
)
from heron_env.engine.cache import cached_file
from heron_env.errors import ConfigError, listed_names
from heron_env.seeding import keys, stream, uniform_rows

Vectors = NDArray[np.float32]
Activation = Literal["tanh", "relu"]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Network:
    """Fully connected layers with tanh or ReLU in between: `(weights [inputs, outputs], bias [outputs])`, float32.

    Run by one compiled loop over rows (network_kernel.py): what it makes of a row does not depend on how many rows
    there are, nor on threads, a BLAS or the machine.
    """

    layers: tuple[tuple[Vectors, Vectors], ...]
    activation: Activation = "tanh"

    def __call__(self, x: Vectors) -> Vectors:
        """`[n, inputs]` -> `[n, outputs]`."""
        sizes, weights = self._packed
        result = np.empty((len(x), sizes[-1]), dtype=np.float32)
        between = np.empty((2, int(sizes.max())), dtype=np.float32)
        rows, relu = np.ascontiguousarray(x, dtype=np.float32), self.activation == "relu"
        kernel().outputs(rows, sizes, weights, relu, between, result)
        return result

    @functools.cached_property
    def _packed(self) -> tuple[NDArray[np.int64], Vectors]:
        """Widths of what goes from layer to layer, and all weights, as the kernel takes them."""
        sizes = [len(self.layers[0][0]), *(len(bias) for _, bias in self.layers)]
        parts = [np.asarray(part, dtype=np.float32).reshape(-1) for layer in self.layers for part in layer]
        return np.array(sizes, dtype=np.int64), np.concatenate(parts)


@functools.cache
def kernel() -> Any:
    """network_kernel.py, compiled once for an installation."""
    return cached_file(Path(__file__).with_name("network_kernel.py"))


@dataclass(frozen=True)
class Scaling:
    """Fixed affine map of observations, `(x - center) / scale`, both `[d]`, cut off at +-clip."""

    center: Floats
    scale: Floats
    clip: float | None = None

    def __call__(self, vectors: Vectors) -> Vectors:
        """`[n, d]` -> float32 `[n, d]`."""
        scaled = (vectors - self.center) / self.scale
        if self.clip is not None:
            scaled = np.minimum(np.maximum(scaled, -self.clip), self.clip)
        return scaled.astype(np.float32)


@dataclass(frozen=True)
class Correction:
    """Actions from outputs: numbers clip(anchor + reach a, low, high) of a in [-1, 1], then the likeliest choices.

    The anchor is what `base` does, or the middle of the range; `reach` is half the range. `low`, `high`: `[k]`;
    `ncats`: how many categories each choice has, whose logits follow the k outputs.
    """

    low: Floats
    high: Floats
    base: Policy | Decide | None = None
    ncats: tuple[int, ...] = ()

    @property
    def reach(self) -> Floats:
        """How far the output can move the action from its anchor."""
        return (self.high - self.low) / 2.0

    def __call__(self, vectors: Vectors, outputs: NDArray[Any]) -> Floats:
        """Actions `[n, k + choices]` of raw observations `[n, d]` and outputs `[n, k + sum(ncats)]`."""
        middle = (self.low + self.high) / 2.0
        return self.around(middle if self.base is None else decide_batch(self.base, vectors), outputs)

    def around(self, anchor: Floats, outputs: NDArray[Any]) -> Floats:
        """The same around an anchor, `[k]` or `[n, k]`."""
        if not self.ncats:
            return self._moved(anchor, outputs)
        numbers = len(self.low)
        logits = np.split(outputs[:, numbers:], np.cumsum(self.ncats)[:-1], axis=1)
        choices = [part.argmax(axis=1, keepdims=True).astype(np.float64) for part in logits]
        parts = [self._moved(anchor, outputs[:, :numbers]), *choices] if numbers else choices
        return np.concatenate(parts, axis=1) if len(parts) > 1 else parts[0]

    def _moved(self, anchor: Floats, outputs: NDArray[Any]) -> Floats:
        moved = anchor + self.reach * np.minimum(np.maximum(outputs, -1.0), 1.0)
        actions: Floats = np.minimum(np.maximum(moved, self.low), self.high)
        return actions


def act_of(low: Floats, high: Floats, ncats: tuple[int, ...], base: Policy | Decide | None = None) -> Correction:
    """Of `len(low)` numbers and `len(ncats)` choices; a rule is corrected where there are numbers alone."""
    return Correction(low, high, None if ncats else base, ncats)


def on_vectors(policy: AnyPolicy) -> Policy | Decide:
    """The policy, if it decides on vectors, as one must that is corrected. Raises ConfigError."""
    if isinstance(policy, AnsweringPolicy):
        raise ConfigError(
            f"{type(policy).__name__} knows who asks (answer()); what a trained policy corrects must take the vector "
            "alone: give it a forward(vector) instead, or train without a residual"
        )
    if isinstance(policy, StatePolicy) and not isinstance(policy, Policy):
        raise ConfigError(
            f"{type(policy).__name__} decides on a SimulationState; what a trained policy corrects must take the "
            "vector: give it a forward(vector), or train without a residual"
        )
    return policy


def decide_batch(
    policy: Policy | Decide,
    vectors: Vectors,
    masks: NDArray[np.int8] | None = None,
    draws: Keys | None = None,
) -> Floats:
    """Actions `[n, k]` of a policy for `[n, d]`, by its `forward_batch` where it has one."""
    batch = getattr(policy, "forward_batch", None)
    if batch is not None:
        return np.asarray(forward_rows(batch, vectors, lambda: masks, lambda: draws), dtype=np.float64)
    decide: Any = policy.forward if isinstance(policy, Policy) else policy
    takes_draws = draws is not None and takes(decide, "draw")
    keys = [{"draw": draw} for draw in draws.tolist()] if draws is not None and takes_draws else [{}] * len(vectors)
    actions = (decide(vector, **key) for vector, key in zip(vectors, keys, strict=True))
    return np.stack([np.asarray(action, dtype=np.float64).reshape(-1) for action in actions])


class NetworkPolicy(OnBatches):
    """Trained policy, for either clock. It pickles and runs without torch and SB3.

    Args:
        network, scaling: from observations to outputs (means of a normal distribution, then logits).
        act: from outputs to actions.
        log_std: `[k]` of a normal distribution, for the first k outputs; None for logits alone.
        deterministic: True: the likeliest action; False: one drawn from the policy's distribution.
        seed: of the draws, beside the key of each decision. Called without one, it takes the next of its own generator.
        columns: names of the observation's elements, for errors.
    """

    def __init__(
        self,
        network: Network,
        scaling: Scaling,
        act: Correction,
        *,
        log_std: Floats | None = None,
        deterministic: bool = True,
        seed: int = 0,
        columns: Sequence[str] = (),
    ) -> None:
        self.network, self.scaling, self.act, self.columns = network, scaling, act, tuple(columns)
        self.log_std, self.deterministic = log_std, deterministic
        self.reset(seed)

    def forward_batch(
        self, vectors: Vectors, masks: NDArray[np.int8] | None = None, draws: Keys | None = None
    ) -> Floats:
        """Return actions `[n, k]` for observations `[n, d]`; a row's action does not depend on the other rows.

        Args:
            vectors: float32 `[n, d]`.
            masks: `[n, sum(ncats)]`: a choice that is not allowed is never made.
            draws: `[n]`, keys of the decisions.
        """
        vectors = self.require_width(np.asarray(vectors, dtype=np.float32))
        return self.choose(vectors, self.scaling(vectors), None if masks is None else masks != 0, draws)

    def require_width(self, vectors: Vectors) -> Vectors:
        """Return the vectors `[n, d]`. Raises ConfigError where d differs from training."""
        width = len(self.scaling.center)
        if vectors.shape[1:] != (width,):
            raise ConfigError(
                f"this policy was trained on observations of {width} columns{self._named()} and got "
                f"{vectors.shape[1:]}; "
                "build the environment with the run's env_options"
            )
        return vectors

    def _named(self) -> str:
        return f" ({listed_names(self.columns)})" if self.columns else ""

    def choose(
        self, vectors: Vectors, inputs: Vectors, may: NDArray[np.bool_] | None = None, draws: Keys | None = None
    ) -> Floats:
        """Return actions `[n, k]` for inputs of the network `[n, inputs]` and raw observations for a rule."""
        return self.act(vectors, self.outputs(inputs, may, draws))

    def outputs(self, inputs: Vectors, may: NDArray[np.bool_] | None = None, draws: Keys | None = None) -> NDArray[Any]:
        """Return the network's outputs, `[n, outputs]`; `may`, `[n, sum(ncats)]`: the choices that are allowed."""
        outputs: NDArray[Any] = self.network(inputs)
        if may is not None:
            outputs = allowed(outputs, may)
        if self.deterministic:
            return outputs
        return self._draw(own_draws(self._generator, len(inputs)) if draws is None else draws, outputs)

    def reset(self, seed: int) -> None:
        """Use another seed for draws from now on."""
        self.seed, self._generator = seed, stream(seed, "trained policy")

    def _draw(self, draws: Keys, outputs: NDArray[Any]) -> Floats:
        """Outputs with noise: normal for numbers, Gumbel for logits (whose maximum is then a fair draw)."""
        u = uniform_rows(keys(self.seed, "trained policy", draws), (2, outputs.shape[1]))
        u = np.maximum(u, 2.0**-54)
        noisy: Floats = np.asarray(outputs - np.log(-np.log(u[:, 0])), dtype=np.float64)
        if self.log_std is not None:
            numbers = len(self.log_std)
            normal = np.sqrt(-2.0 * np.log(u[:, 0, :numbers])) * np.cos(2.0 * np.pi * u[:, 1, :numbers])
            noisy[:, :numbers] = outputs[:, :numbers] + np.exp(self.log_std) * normal
        return noisy


def allowed(outputs: NDArray[Any], may: NDArray[np.bool_]) -> NDArray[Any]:
    """Outputs whose last ones are logits, minus infinity where the choice is not allowed; `may` is `[n, choices]`."""
    if not (choices := may.shape[1]):
        return outputs
    logits = np.where(may, outputs[:, -choices:], np.float32(-np.inf))
    return logits if choices == outputs.shape[1] else np.concatenate([outputs[:, :-choices], logits], axis=1)


def network_of(weights: Mapping[str, Any], activation: Activation = "tanh") -> tuple[Network, NDArray[Any] | None]:
    """The actor of a Stable-Baselines3 ActorCriticPolicy, or of the lean trainer, in numpy.

    Args:
        weights: the state dict, tensors of torch or arrays by name.
        activation: between its layers, which the state dict does not say.

    Returns:
        The network, and log_std `[k]` of its normal distribution, None where it only chooses.

    Raises:
        KeyError: a tensor is missing.

    Example: `network, log_std = network_of(model.policy.state_dict())`.
    """
    layers = list(_layers(weights, "mlp_extractor.policy_net"))
    layers.append((array_of(weights["action_net.weight"]).T.copy(), array_of(weights["action_net.bias"])))
    log_std = weights.get("log_std")
    return Network(tuple(layers), activation), None if log_std is None else array_of(log_std).astype(np.float64)


def _layers(weights: Mapping[str, Any], prefix: str) -> Iterator[tuple[Any, Any]]:
    number = 0  # layers and activations take turns: 0, 2, 4, ...
    while f"{prefix}.{number}.weight" in weights:
        yield array_of(weights[f"{prefix}.{number}.weight"]).T.copy(), array_of(weights[f"{prefix}.{number}.bias"])
        number += 2


def array_of(tensor: Any) -> NDArray[Any]:
    """A tensor of torch, or an array, as float32."""
    array = tensor if isinstance(tensor, np.ndarray) else tensor.detach().cpu().numpy()
    return np.array(array, dtype=np.float32, order="C")
