"""VDN and QMIX: the values of each agent's choices, what the team's value is of them, and what that is to become.

VDN adds up the values of what the agents chose (Sunehag et al., AAMAS 2018). QMIX mixes them by a network that never
falls with any of them, and whose weights are functions of the state (Rashid et al., ICML 2018): in both what is best
for the team is best for each. Of an agent that makes several choices at once, each choice has a value of its own.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn
from torch.nn import functional

from heron_env.core.action import ActionSpec
from heron_env.lab.learning.actor_critic import linear, tower
from heron_env.lab.learning.plan import Hyperparameters


class ValueSum(nn.Module):
    """VDN."""

    def forward(self, values: Tensor, state: Tensor) -> Tensor:
        """`[n, choices]`, `[n, s]` -> `[n]`."""
        total: Tensor = values.sum(dim=-1)
        return total


class MonotoneMixer(nn.Module):
    """QMIX: one hidden layer of so many units, its weights' sizes and its offsets made of the state.

    It begins nearly as VDN's sum: with torch's own first weights its offset is larger than what is to be learned.
    """

    def __init__(self, choices: int, state: int, units: int) -> None:
        super().__init__()
        self.first, self.first_bias = linear(state, choices * units, 0.01), linear(state, units, 0.01)
        self.last = linear(state, units, 0.01)
        self.last_bias = nn.Sequential(linear(state, units, 2.0**0.5), nn.ReLU(), linear(units, 1, 0.01))
        nn.init.ones_(self.first.bias)
        nn.init.constant_(self.last.bias, 1.0 / units)

    def forward(self, values: Tensor, state: Tensor) -> Tensor:
        """`[n, choices]`, `[n, s]` -> `[n]`."""
        weights = self.first(state).abs().view(*values.shape, -1)
        hidden = functional.elu(torch.einsum("nc,ncu->nu", values, weights) + self.first_bias(state))
        total: Tensor = (hidden * self.last(state).abs()).sum(dim=-1) + self.last_bias(state)[:, 0]
        return total


class TeamValues(nn.Module):
    """The network that all agents of a team share, and its mixer.

    The tensors of the former are called as those of an actor, so that what acts for a run needs not know who trained.

    Args:
        seen, state: widths of what an agent sees and of the state; state 0: VDN.
        agents: of the team; all have actions of this `spec`, which has choices alone.
    """

    def __init__(self, seen: int, state: int, agents: int, spec: ActionSpec, settings: Hyperparameters) -> None:
        super().__init__()
        self.ncats = [int(n) for n in spec.ncats]
        self.mlp_extractor = nn.ModuleDict({"policy_net": tower(seen, settings)})
        self.action_net = linear((settings.hidden or (seen,))[-1], sum(self.ncats), 0.01)
        choices = agents * len(self.ncats)
        self.mixer = MonotoneMixer(choices, state, settings.mixer) if state else ValueSum()

    def forward(self, seen: Tensor, allowed: Tensor) -> Tensor:
        """Values of all categories `[n, agents, sum(ncats)]`, -inf where not allowed; seen `[n, agents, d]`."""
        values: Tensor = self.action_net(self.mlp_extractor["policy_net"](seen))
        return values.masked_fill(~allowed, -torch.inf)

    def best(self, values: Tensor) -> Tensor:
        """The best choices `[n, agents, len(ncats)]` by such values."""
        return torch.stack([part.argmax(dim=-1) for part in torch.split(values, self.ncats, dim=-1)], dim=-1)

    def total(self, values: Tensor, choices: Tensor, state: Tensor) -> Tensor:
        """The team's value `[n]` of choices in states `[n, s]`."""
        parts = zip(torch.split(values, self.ncats, dim=-1), torch.split(choices, 1, dim=-1), strict=True)
        chosen = torch.cat([part.gather(-1, choice) for part, choice in parts], dim=-1)
        mixed: Tensor = self.mixer(chosen.flatten(1), state)
        return mixed


@torch.no_grad()
def aims(network: TeamValues, target: TeamValues, batch: Mapping[str, Tensor], gamma: float) -> Tensor:
    """What the team's values are to become, `[n]`: reward + gamma (1 - terminated) * value of what follows.

    What is chosen then, among what is allowed, says the network, and what that is worth the target (double Q-learning).
    """
    seen, allowed, state = batch["later_seen"], batch["later_allowed"], batch["later_state"]
    choices = network.best(network(seen, allowed))
    future = target.total(target(seen, allowed), choices, state)
    return batch["reward"] + gamma * torch.where(batch["terminated"], 0.0, future)
