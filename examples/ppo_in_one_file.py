"""PPO in one file, in the style of CleanRL: on one PettingZoo `ParallelEnv`, or on a `BatchEnv` of many environments.

    python examples/ppo_in_one_file.py                       # a batch of 32 environments
    python examples/ppo_in_one_file.py --lanes 0             # one ParallelEnv, agent by agent
    python examples/ppo_in_one_file.py --env-id heron/BatteryGrid-v0 --steps 200000

All agents of one group share the network. An episode's end counts as terminal, as in CleanRL. Needs torch alone.
"""

# needs: heron_env[train]

import argparse
from importlib.metadata import version
from itertools import pairwise

import numpy as np
import torch
from torch import nn
from torch.distributions import Normal

from heron_env import BatchEnv, ScheduleConfig, make


class OneEnvironment:
    """A ParallelEnv as rows: one for each agent of the group."""

    def __init__(self, env_id, group, **options):
        self.env = make(env_id, **options)
        self.agents = self.env.group_map[group]

    def reset(self, seed):
        observations, _ = self.env.reset(seed=seed)
        return self._rows(observations)

    def step(self, actions):
        asked = dict(zip(self.agents, actions, strict=True))
        observations, rewards, terminations, truncations, _ = self.env.step(asked)
        ended = self._rows(terminations) | self._rows(truncations)
        if not self.env.agents:
            observations, _ = self.env.reset()
        return self._rows(observations), self._rows(rewards), ended

    def _rows(self, values):
        return np.array([values[agent] for agent in self.agents])


class ManyEnvironments:
    """A BatchEnv as rows: one for each agent of the group in each lane; lanes that have ended begin anew."""

    def __init__(self, env_id, group, lanes, **options):
        self.batch, self.group = BatchEnv(env_id, lanes, **options), group
        self.shape = lanes, len(self.batch.groups[group])

    def reset(self, seed):
        observations, _ = self.batch.reset(seed=seed)
        return observations[self.group].reshape(np.prod(self.shape), -1).copy()

    def step(self, actions):
        asked = {self.group: actions.reshape(*self.shape, -1)}
        observations, rewards, terminations, truncations, _ = self.batch.step(asked)
        ended = terminations[self.group] | truncations[self.group]
        rows = observations[self.group].reshape(np.prod(self.shape), -1)
        return rows.copy(), rewards[self.group].ravel().copy(), ended.ravel().copy()


def layers(*widths, gain):
    """Tanh between linear layers, orthogonal weights, the last one scaled by `gain`."""
    parts = []
    for number, (inputs, outputs) in enumerate(pairwise(widths), 1):
        linear = nn.Linear(inputs, outputs)
        nn.init.orthogonal_(linear.weight, gain if number == len(widths) - 1 else 2**0.5)
        nn.init.zeros_(linear.bias)
        parts += [linear, nn.Tanh()]
    return nn.Sequential(*parts[:-1])


class Agent(nn.Module):
    """A normal distribution over actions, and the value of an observation."""

    def __init__(self, observation_size, action_size):
        super().__init__()
        self.actor = layers(observation_size, 64, 64, action_size, gain=0.01)
        self.critic = layers(observation_size, 64, 64, 1, gain=1.0)
        self.log_std = nn.Parameter(torch.full((action_size,), -0.5))

    def policy(self, observations):
        return Normal(self.actor(observations), self.log_std.exp())

    def value(self, observations):
        return self.critic(observations).squeeze(-1)


def advantages_of(rewards, values, ended, last_value, gamma, lam):
    """Generalised advantage estimates `[steps, rows]` (Schulman et al. 2016)."""
    advantages, following, carried = torch.zeros_like(rewards), last_value, 0.0
    for t in reversed(range(len(rewards))):
        going_on = 1.0 - ended[t]
        carried = rewards[t] + gamma * following * going_on - values[t] + gamma * lam * going_on * carried
        advantages[t], following = carried, values[t]
    return advantages


def update(agent, optimizer, batch, args):
    """Some epochs of clipped updates on one rollout."""
    observations, actions, log_probabilities, advantages, returns = batch
    advantages = (advantages - advantages.mean()) / (advantages.std() + 1e-8)
    for _ in range(args.epochs):
        for part in torch.randperm(len(observations)).split(max(len(observations) // args.minibatches, 1)):
            policy = agent.policy(observations[part])
            ratio = (policy.log_prob(actions[part]).sum(-1) - log_probabilities[part]).exp()
            clipped = ratio.clamp(1.0 - args.clip, 1.0 + args.clip)
            gain = torch.min(ratio * advantages[part], clipped * advantages[part]).mean()
            error = (agent.value(observations[part]) - returns[part]).square().mean()
            loss = -gain + 0.5 * error - args.entropy * policy.entropy().sum(-1).mean()
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(agent.parameters(), 0.5)
            optimizer.step()


def train(rows, agent, low, high, args):
    """Collect rollouts of `args.rollout` steps, and update after each."""
    optimizer = torch.optim.Adam(agent.parameters(), lr=args.learning_rate, eps=1e-5)
    observations = torch.as_tensor(rows.reset(args.seed))
    for _ in range(max(args.steps // (args.rollout * len(observations)), 1)):
        kept = []
        for _ in range(args.rollout):
            with torch.no_grad():
                policy = agent.policy(observations)
                actions = policy.sample()
                before = observations, actions, policy.log_prob(actions).sum(-1), agent.value(observations)
            following, rewards, ended = rows.step(np.clip(actions.numpy(), low, high))
            kept.append((*before, torch.as_tensor(rewards).float(), torch.as_tensor(ended).float()))
            observations = torch.as_tensor(following)
        seen, acted, log_probabilities, values, rewards, ended = map(torch.stack, zip(*kept, strict=True))
        with torch.no_grad():
            last = agent.value(observations)
        advantages = advantages_of(rewards, values, ended, last, args.gamma, args.lam)
        batch = seen, acted, log_probabilities, advantages, advantages + values
        update(agent, optimizer, [each.flatten(0, 1) for each in batch], args)


def parsed():
    """The words of the command line."""
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--env-id", default="heron/BatteryGrid-v0")
    options.add_argument("--group", default="battery")
    options.add_argument("--lanes", type=int, default=32, help="environments in the batch; 0: one ParallelEnv")
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--steps", type=int, default=60_000, help="decisions of single agents, all together")
    options.add_argument("--rollout", type=int, default=50)
    options.add_argument("--epochs", type=int, default=8)
    options.add_argument("--minibatches", type=int, default=4)
    for name, value in (("learning-rate", 3e-3), ("gamma", 0.9), ("lam", 0.95), ("clip", 0.2), ("entropy", 0.0)):
        options.add_argument(f"--{name}", type=float, default=value)
    return options.parse_args()


def main():
    """Train, then say what chance and the policy earn, on both clocks."""
    args = parsed()
    torch.manual_seed(args.seed)
    torch.set_num_threads(1)
    print("versions:", *(f"{name}=={version(name)}" for name in ("heron_env", "torch")))
    env = make(args.env_id)
    first = env.group_map[args.group][0]
    space = env.action_space(first)
    agent = Agent(env.observation_space(first).shape[0], space.shape[0])
    numbers = np.random.default_rng(args.seed)

    def learned(observation):
        with torch.no_grad():
            return np.clip(agent.actor(torch.as_tensor(observation)).numpy(), space.low, space.high)

    one = OneEnvironment if args.lanes == 0 else lambda *of: ManyEnvironments(*of, args.lanes)
    train(one(args.env_id, args.group), agent, space.low, space.high, args)
    root, slow = env.hierarchy.ids[0], ScheduleConfig(msg_delay=2.0, act_delay=5.0, loss=0.1)
    chance = {args.group: lambda _: numbers.uniform(space.low, space.high)}
    returns = [
        run(policies, seed=1, **how).returns[root]
        for run, policies, how in (
            (env.run_synchronous, chance, {}),
            (env.run_synchronous, {args.group: learned}, {}),
            (env.run_event_driven, {args.group: learned}, {"schedule": slow}),
        )
    ]
    print("result: random {:.1f}, PPO {:.1f}, the same policy under a slow network {:.1f}".format(*returns))


if __name__ == "__main__":
    main()
