"""A trained policy without its framework: a small compiled network, fixed scales, and the rule that it corrects."""

from __future__ import annotations

import functools
import io
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
    """Continuous actions from the network's output a in [-1, 1]: clip(anchor + reach a, low, high).

    The anchor is what `base` does, or the middle of the range; `reach` is half the range. All but `base` are `[k]`.
    """

    low: Floats
    high: Floats
    base: Policy | Decide | None = None

    @property
    def reach(self) -> Floats:
        """How far the output can move the action from its anchor."""
        return (self.high - self.low) / 2.0

    def __call__(self, vectors: Vectors, outputs: NDArray[Any]) -> Floats:
        """Actions `[n, k]` of raw observations `[n, d]` and outputs `[n, k]`."""
        middle = (self.low + self.high) / 2.0
        return self.around(middle if self.base is None else decide_batch(self.base, vectors), outputs)

    def around(self, anchor: Floats, outputs: NDArray[Any]) -> Floats:
        """Actions `[n, k]` around an anchor, `[k]` or `[n, k]`."""
        moved = anchor + self.reach * np.minimum(np.maximum(outputs, -1.0), 1.0)
        actions: Floats = np.minimum(np.maximum(moved, self.low), self.high)
        return actions


@dataclass(frozen=True)
class Choice:
    """Choices among `ncats[i]` categories each from logits `[n, sum(ncats)]`: the likeliest ones."""

    ncats: tuple[int, ...]

    def __call__(self, vectors: Vectors, logits: NDArray[Any]) -> Floats:
        """Choices `[n, len(ncats)]`."""
        parts = np.split(logits, np.cumsum(self.ncats)[:-1], axis=1)
        return np.stack([part.argmax(axis=1) for part in parts], axis=1).astype(np.float64)


@dataclass(frozen=True)
class Mixture:
    """Numbers and choices in one action: the first outputs are for the numbers."""

    numbers: Correction
    choices: Choice

    def __call__(self, vectors: Vectors, outputs: NDArray[Any]) -> Floats:
        """Actions `[n, numbers + choices]`."""
        count = len(self.numbers.low)
        parts = self.numbers(vectors, outputs[:, :count]), self.choices(vectors, outputs[:, count:])
        return np.concatenate(parts, axis=1)


Act = Correction | Choice | Mixture


def act_of(low: Floats, high: Floats, ncats: tuple[int, ...], base: Policy | Decide | None = None) -> Act:
    """From outputs to actions of `len(low)` numbers and `len(ncats)` choices; a rule is corrected in numbers alone."""
    if not ncats:
        return Correction(low, high, base)
    return Mixture(Correction(low, high), Choice(ncats)) if len(low) else Choice(ncats)


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
    drawn = draws is not None and takes(decide, "draw")
    keys = [{"draw": draw} for draw in draws.tolist()] if draws is not None and drawn else [{}] * len(vectors)
    actions = (decide(vector, **key) for vector, key in zip(vectors, keys, strict=True))
    return np.stack([np.asarray(action, dtype=np.float64).reshape(-1) for action in actions])


class NetworkPolicy(OnBatches):
    """What a training run leaves behind, for either clock. It pickles; neither torch nor SB3 is needed to run it.

    Args:
        network, scaling: from observations to outputs (means of a normal distribution, then logits).
        act: from outputs to actions.
        log_std: `[k]` of a normal distribution, for the first k outputs; None for logits alone.
        deterministic: the likeliest action, else one drawn from the policy's distribution.
        seed: of the draws, beside the key of each decision. Called without one, it takes the next of its own generator.
        columns: names of what it observes, for errors.
    """

    def __init__(
        self,
        network: Network,
        scaling: Scaling,
        act: Act,
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
        """Actions `[n, k]` of observations `[n, d]`; a row's action does not depend on the other rows.

        Args:
            vectors: float32 `[n, d]`.
            masks: `[n, sum(ncats)]`: a choice that is not allowed is never made.
            draws: `[n]`, keys of the decisions.
        """
        vectors = self.require_width(np.asarray(vectors, dtype=np.float32))
        return self.choose(vectors, self.scaling(vectors), masks, draws)

    def require_width(self, vectors: Vectors) -> Vectors:
        """The vectors `[n, d]`. Raises ConfigError where d is not what the policy was trained on."""
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
        self, vectors: Vectors, inputs: Vectors, masks: NDArray[np.int8] | None = None, draws: Keys | None = None
    ) -> Floats:
        """Actions `[n, k]` for what the network takes `[n, inputs]`, and the raw observations that a rule takes."""
        outputs: NDArray[Any] = self.network(inputs)
        if masks is not None and (choices := masks.shape[1]):
            outputs[:, -choices:] = np.where(masks != 0, outputs[:, -choices:], np.float32(-np.inf))
        if not self.deterministic:
            outputs = self._draw(own_draws(self._generator, len(vectors)) if draws is None else draws, outputs)
        return self.act(vectors, outputs)

    def reset(self, seed: int) -> None:
        """Draw other actions from now on."""
        self.seed, self._generator = seed, stream(seed, "trained policy")

    def _draw(self, draws: Keys, outputs: NDArray[Any]) -> Floats:
        """Outputs with noise: normal for numbers, Gumbel for logits (whose maximum is then a fair draw)."""
        u = uniform_rows(keys(self.seed, "trained policy", draws), (2, outputs.shape[1]))
        u = np.maximum(u, 2.0**-54)
        drawn: Floats = np.asarray(outputs - np.log(-np.log(u[:, 0])), dtype=np.float64)
        if self.log_std is not None:
            numbers = len(self.log_std)
            normal = np.sqrt(-2.0 * np.log(u[:, 0, :numbers])) * np.cos(2.0 * np.pi * u[:, 1, :numbers])
            drawn[:, :numbers] = outputs[:, :numbers] + np.exp(self.log_std) * normal
        return drawn


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
    return np.array(tensor if isinstance(tensor, np.ndarray) else tensor.detach().cpu().numpy(), dtype=np.float32)


def read_weights(data: bytes) -> Mapping[str, Any]:
    """The state dict in the bytes of a `policy.pth`, read without unpickling objects."""
    import torch

    weights: Mapping[str, Any] = torch.load(io.BytesIO(data), map_location="cpu", weights_only=True)
    return weights
