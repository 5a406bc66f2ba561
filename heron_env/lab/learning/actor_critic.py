"""What acts and what values, and their gradients written out: autograd costs as much again as the arithmetic.

Only the recurrent layer is left to autograd, which goes on from the gradient of what it made.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from heron_env.core.action import ActionSpec
from heron_env.lab.learning.plan import Hyperparameters

aten = torch.ops.aten


class LogProbability(NamedTuple):
    """Of actions, `[n]`; its derivative by outputs, `[n, k]`; squared distances of numbers in std, `[n, l]`."""

    value: Tensor
    by_outputs: Tensor
    squares: Tensor


class Passed(NamedTuple):
    """What went into each layer of actor and critic, and what came out of the last: `[n, width]` each."""

    actor: list[Tensor]
    critic: list[Tensor]


class ActorCritic(nn.Module):
    """What acts and what values; its tensors are called as those of Stable-Baselines3, so that either loads the other.

    With `gru` units both see, beside the observation, what a recurrent layer over all observations so far remembers.
    What acts never sees the state. Numbers come from a normal distribution around the outputs, choices from logits.
    """

    def __init__(self, seen: int, state: int, spec: ActionSpec, settings: Hyperparameters, log_std: float) -> None:
        super().__init__()
        self.numbers, self.ncats = spec.dim_c, [int(n) for n in spec.ncats]
        width, last = seen + settings.gru, (settings.hidden or (seen + settings.gru,))[-1]
        if settings.gru:
            self.memory = nn.GRU(seen, settings.gru)
        self.units, self._relu = settings.gru, settings.activation == "relu"
        actor, critic = (tower(inputs, settings) for inputs in (width, width + state))
        self.mlp_extractor = nn.ModuleDict({"policy_net": actor, "value_net": critic})
        self.action_net = linear(last, self.numbers + sum(self.ncats), 0.01)
        self.value_net = linear(last if settings.hidden else width + state, 1, 1.0)
        if self.numbers:
            self.log_std = nn.Parameter(torch.full((self.numbers,), log_std))
        self._actor = [*_layers(actor), self.action_net]
        self._critic = [*_layers(critic), self.value_net]

    def forward(self, seen: Tensor, state: Tensor, hidden: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """`[t, n, d]`, `[t, n, s]`, `[n, units]` -> outputs `[t, n, k]`, values `[t, n]`, hidden then `[n, units]`."""
        features, hidden = self.features(seen, hidden)
        passed = self.through(features.flatten(0, 1), state.flatten(0, 1))
        outputs, values = (layers[-1].view(*seen.shape[:2], layers[-1].shape[1]) for layers in passed)
        return outputs, values[..., 0], hidden

    def features(self, seen: Tensor, hidden: Tensor) -> tuple[Tensor, Tensor]:
        """What is seen and remembered, `[t, n, d + units]`, and hidden then."""
        if not self.units:
            return seen, hidden
        remembered, after = self.memory(seen, hidden[None])
        return torch.cat([seen, remembered], dim=-1), after[0]

    def through(self, features: Tensor, state: Tensor) -> Passed:
        """Run the layers on features `[n, d + units]` and states `[n, s]`."""
        both = torch.cat([features, state], dim=-1) if state.shape[-1] else features
        return Passed(self._run(self._actor, features), self._run(self._critic, both))

    def _run(self, layers: Sequence[nn.Linear], x: Tensor) -> list[Tensor]:
        passed = [x]
        for layer in layers[:-1]:
            if self._relu:
                passed.append(torch.addmm(layer.bias, passed[-1], layer.weight.t()).relu_())
            else:  # tanh x = 2 sigmoid 2x - 1, in less than half the time of torch.tanh
                twice = torch.addmm(layer.bias, passed[-1], layer.weight.t(), beta=2.0, alpha=2.0)
                passed.append(torch.rsub(twice.sigmoid_(), -1.0, alpha=-2.0))
        return [*passed, torch.addmm(layers[-1].bias, passed[-1], layers[-1].weight.t())]

    def backward(self, passed: Passed, likely: LogProbability, by_likely: Tensor, by_values: Tensor) -> None:
        """Write all gradients, from those of the log-probabilities `[n]` and of the values `[n]`."""
        features = passed.actor[0]
        seen = self._back(self._actor, passed.actor, likely.by_outputs * by_likely[:, None])
        both = self._back(self._critic, passed.critic, by_values[:, None])
        if self.numbers:
            torch.sub(by_likely @ likely.squares, by_likely.sum(), out=self.log_std.grad)
        if self.units:
            features.backward(seen + both[:, : features.shape[1]])  # type: ignore[no-untyped-call]

    def _back(self, layers: Sequence[nn.Linear], passed: Sequence[Tensor], slope: Tensor) -> Tensor:
        """The gradient of what went into the first layer, if something remembers."""
        for number in reversed(range(len(layers))):
            layer, x = layers[number], passed[number]
            torch.mm(slope.t(), x, out=layer.weight.grad)
            torch.sum(slope, dim=0, out=layer.bias.grad)
            if number or self.units:
                slope = slope @ layer.weight
            if number:
                slope = aten.threshold_backward(slope, x, 0.0) if self._relu else aten.tanh_backward(slope, x)
        return slope

    def draw(self, outputs: Tensor, allowed: Tensor | None, generator: torch.Generator) -> Tensor:
        """Actions `[n, numbers + choices]`, numbers in units of half their range, not yet cut off."""
        parts = []
        if self.numbers:
            noise = torch.randn(outputs[:, : self.numbers].shape, generator=generator)
            parts.append(outputs[:, : self.numbers] + self.log_std.exp() * noise)
        for logits in self._logits(outputs, allowed):
            u = torch.rand(logits.shape, generator=generator).clamp_min(1e-20)
            parts.append((logits - torch.log(-torch.log(u))).argmax(dim=-1, keepdim=True).float())
        return torch.cat(parts, dim=-1)

    def log_probability(self, outputs: Tensor, actions: Tensor, allowed: Tensor | None) -> LogProbability:
        """Of actions `[n, numbers + choices]`."""
        value, slopes, squares = outputs.new_zeros(len(outputs)), [], outputs[:, :0]
        if self.numbers:
            unit = torch.exp(-self.log_std)
            away = (actions[:, : self.numbers] - outputs[:, : self.numbers]) * unit
            slopes, squares = [away * unit], away * away
            value = -0.5 * squares.sum(dim=-1) - (self.log_std + 0.5 * np.log(2.0 * np.pi)).sum()
        for number, logits in enumerate(self._logits(outputs, allowed)):
            chosen = actions[:, self.numbers + number].long()[:, None]
            every = torch.log_softmax(logits, dim=-1)
            value = value + every.gather(-1, chosen)[:, 0]
            slopes.append((-every.exp()).scatter_add_(-1, chosen, torch.ones_like(outputs[:, :1])))
        return LogProbability(value, torch.cat(slopes, dim=-1), squares)

    def _logits(self, outputs: Tensor, allowed: Tensor | None) -> Sequence[Tensor]:
        if not self.ncats:
            return ()
        logits = outputs[:, self.numbers :]
        logits = logits if allowed is None else logits.masked_fill(~allowed, -torch.inf)
        return torch.split(logits, self.ncats, dim=-1)


def _layers(tower: nn.Module) -> list[nn.Linear]:
    return [layer for layer in tower.children() if isinstance(layer, nn.Linear)]


def tower(width: int, settings: Hyperparameters) -> nn.Sequential:
    """The hidden layers, from so many inputs."""
    layers: list[nn.Module] = []
    for before, after in pairwise((width, *settings.hidden)):
        layers += [linear(before, after, 2.0**0.5), nn.ReLU() if settings.activation == "relu" else nn.Tanh()]
    return nn.Sequential(*layers)


def linear(width: int, outputs: int, gain: float) -> nn.Linear:
    """A layer with orthogonal weights of this gain, and no bias yet."""
    layer = nn.Linear(width, outputs)
    nn.init.orthogonal_(layer.weight, gain)
    nn.init.zeros_(layer.bias)
    return layer
