"""Central training, decentral acting in plain Stable-Baselines3: the critic reads the state, the actor never does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from gymnasium import spaces
from stable_baselines3.common.policies import ActorCriticPolicy
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor, FlattenExtractor, MlpExtractor

from heron_env.errors import ConfigError

ACTOR, CRITIC = ("obs",), ("obs", "state")
"""The parts of an observation that each of the two reads."""


class Joined(BaseFeaturesExtractor):
    """Some parts of a Dict observation side by side, `[n, sum of their lengths]`; the others are not touched."""

    def __init__(self, observation_space: spaces.Space[Any], parts: tuple[str, ...]) -> None:
        assert isinstance(observation_space, spaces.Dict)
        super().__init__(observation_space, sum(spaces.flatdim(observation_space[part]) for part in parts))
        self.parts = parts

    def forward(self, observations: dict[str, torch.Tensor]) -> torch.Tensor:
        """`{part: [n, d]}` -> `[n, features_dim]`."""
        return torch.cat([observations[part] for part in self.parts], dim=1)


class TwoWidths(MlpExtractor):
    """SB3's pair of networks, which takes both inputs to be of one width, with a critic of another width."""

    def __init__(self, actor: int, critic: int, **options: Any) -> None:
        super().__init__(actor, **options)
        self.value_net = MlpExtractor(critic, **options).value_net


class CentralCriticPolicy(ActorCriticPolicy):
    """An ActorCriticPolicy for observations {"obs", "state"}: the actor reads `obs`, the critic reads both.

    `PPO(CentralCriticPolicy, HeronVecEnv(..., critic="central"))`. Options are those of SB3's policy without the
    extractors, which are fixed and not shared.

    Raises ConfigError for another observation space and for an extractor of one's own.
    """

    def __init__(
        self,
        observation_space: spaces.Space[Any],
        action_space: spaces.Space[Any],
        lr_schedule: Callable[[float], float],
        **options: Any,
    ) -> None:
        if not isinstance(observation_space, spaces.Dict) or set(observation_space.spaces) != set(CRITIC):
            raise ConfigError(
                f"CentralCriticPolicy: observations must be a Dict of {list(CRITIC)}, got {observation_space}; "
                'make the environments with HeronVecEnv(..., critic="central")'
            )
        if options.get("features_extractor_class", FlattenExtractor) is not FlattenExtractor:
            raise ConfigError(
                f"CentralCriticPolicy(features_extractor_class={options['features_extractor_class'].__name__}): "
                "what actor and critic read is fixed; leave it out"
            )
        super().__init__(observation_space, action_space, lr_schedule, **{**options, "share_features_extractor": False})

    def make_features_extractor(self) -> BaseFeaturesExtractor:
        """The actor's. SB3 asks a second time for the critic and expects one of the same width."""
        return Joined(self.observation_space, ACTOR)

    def _build_mlp_extractor(self) -> None:
        """SB3 calls this once both extractors are made, before weights and optimiser: here the critic gets its own."""
        self.vf_features_extractor = Joined(self.observation_space, CRITIC)
        self.mlp_extractor = TwoWidths(
            self.pi_features_extractor.features_dim,
            self.vf_features_extractor.features_dim,
            net_arch=self.net_arch,
            activation_fn=self.activation_fn,
            device=self.device,
        )
