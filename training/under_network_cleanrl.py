"""PPO in one file, as CleanRL writes it, on simple_spread behind a network: what training under the network is worth.

    pip install mpe2
    python training/under_network_cleanrl.py             # ten trainings; killed and run again, it goes on
    python training/under_network_cleanrl.py --choose    # how the network was chosen
    python training/under_network_cleanrl.py --quick     # in seconds, whether everything runs; the figures say nothing

Three agents share one policy, which observes and decides as simple_spread has it (18 numbers, 5 choices). Two trainings
of a seed differ in the network alone; both are played with and without it, in the same cases. Results: spread.json,
spread.md, spread.svg in --out.
"""

import argparse
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn
from torch.distributions import Categorical
from under_network_report import BARE, CASES, CHOICE, POLICIES, SEEDS, UNDER, once, write_report

from heron_env import ScheduleConfig, stream, under_network
from heron_env.lab import versions

ENV: Final = "simple_spread_v3"
LADDER: Final = tuple((obs, act) for obs, act in ((1.0, 0.0), (1.0, 1.0), (2.0, 1.0), (2.0, 2.0), (3.0, 2.0)))
"""Delays of observations and actions, steps; each with a loss of 10 % and jitter."""
Act = Callable[[NDArray[np.float32]], NDArray[np.int64]]


def network(obs_delay: float, act_delay: float) -> dict[str, Any]:
    """A network of the ladder, as ScheduleConfig takes it."""
    jitter = {"jitter_type": "lognormal", "jitter_ratio": 0.3}
    return {"obs_delay": obs_delay, "act_delay": act_delay, "loss": 0.1, **jitter}


NETWORK: Final = network(3.0, 2.0)
"""The worst of the ladder: of what a training of 80,000 steps gained over random choices it took half."""


@dataclass(frozen=True)
class Settings:
    """Of PPO. A rollout holds whole episodes of 25 steps; the learning rate falls to 0."""

    env_steps: int = 80_000
    num_envs: int = 16
    num_steps: int = 125
    minibatch: int = 500
    epochs: int = 10
    learning_rate: float = 1e-3
    gamma: float = 0.9
    gae_lambda: float = 0.9
    clip: float = 0.2
    hidden: int = 64


class Lanes:
    """Environments side by side; rows of arrays are the agents of the first, of the second, ..."""

    def __init__(self, schedule: ScheduleConfig | None, count: int) -> None:
        try:
            build = import_module(f"mpe2.{ENV}").parallel_env
        except ImportError as error:
            raise SystemExit(f"simple_spread is in mpe2 ({error}): pip install mpe2") from error
        self.envs = [under_network(build(), schedule, noop=0) for _ in range(count)]
        self.agents = self.envs[0].possible_agents

    def reset(self, seed: int | None = None) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
        """Observations, and whose choice will be used: nobody's before something has arrived (`is_active`)."""
        told = [env.reset(seed=None if seed is None else seed + lane) for lane, env in enumerate(self.envs)]
        return self._rows([one[0] for one in told]), self._rows([one[1] for one in told], "is_active")

    def step(self, choices: NDArray[np.int64]) -> tuple[Any, Any, NDArray[np.float32], bool]:
        """As reset; then rewards, and whether the episodes are over: all at once, by simple_spread's time limit."""
        rows = choices.reshape(len(self.envs), -1)
        told = [env.step(dict(zip(self.agents, row, strict=True))) for env, row in zip(self.envs, rows, strict=True)]
        observations, rewards, _, _, infos = zip(*told, strict=True)
        gained = self._rows(rewards).astype(np.float32)
        return self._rows(observations), self._rows(infos, "is_active"), gained, not self.envs[0].agents

    def _rows(self, told: Sequence[dict[str, Any]], name: str | None = None) -> Any:
        return np.array([one[agent] if name is None else one[agent][name] for one in told for agent in self.agents])


def layers(sizes: Sequence[int], gain: float) -> nn.Sequential:
    """Tanh between linear layers with orthogonal weights, the last one's scaled by `gain`."""
    parts: list[nn.Module] = []
    for size, following in pairwise(sizes):
        linear = nn.Linear(size, following)
        nn.init.orthogonal_(linear.weight, 2**0.5 if following != sizes[-1] else gain)
        nn.init.zeros_(linear.bias)
        parts += [linear, nn.Tanh()]
    return nn.Sequential(*parts[:-1])


class Agent(nn.Module):
    """Logits of the choices, and the value of an observation."""

    def __init__(self, observation: int, choices: int, hidden: int) -> None:
        super().__init__()
        self.actor = layers((observation, hidden, hidden, choices), gain=0.01)
        self.critic = layers((observation, hidden, hidden, 1), gain=1.0)

    def value(self, observations: torch.Tensor) -> torch.Tensor:
        """`[n]`."""
        return self.critic(observations).squeeze(-1)

    def best(self, observations: NDArray[np.float32]) -> NDArray[np.int64]:
        """The likeliest choice of each row."""
        with torch.no_grad():
            return self.actor(torch.as_tensor(observations)).argmax(-1).numpy()


def train(schedule: ScheduleConfig | None, seed: int, settings: Settings) -> Agent:
    """PPO. Environment i begins with seed 1,000 seed + i."""
    torch.manual_seed(seed)
    torch.set_num_threads(1)
    lanes = Lanes(schedule, settings.num_envs)
    shape, agents = lanes.envs[0].observation_space(lanes.agents[0]).shape, len(lanes.agents)
    agent = Agent(shape[0], int(lanes.envs[0].action_space(lanes.agents[0]).n), settings.hidden)
    optimizer = torch.optim.Adam(agent.parameters(), lr=settings.learning_rate, eps=1e-5)
    updates = max(settings.env_steps // (settings.num_envs * settings.num_steps), 1)
    observations, active = lanes.reset(1000 * seed)
    rows = settings.num_steps, settings.num_envs * agents
    for update in range(updates):
        optimizer.param_groups[0]["lr"] = settings.learning_rate * (1.0 - update / updates)
        seen, used = torch.zeros(*rows, *shape), torch.zeros(rows, dtype=torch.bool)
        chosen, rewards, going_on = (torch.zeros(rows) for _ in range(3))
        for step in range(settings.num_steps):
            seen[step], used[step] = torch.as_tensor(observations), torch.as_tensor(active)
            with torch.no_grad():
                chosen[step] = choices = agent.actor(seen[step]).softmax(-1).multinomial(1)[:, 0]
                observations, active, gained, over = lanes.step(choices.numpy())
                rewards[step], going_on[step] = torch.as_tensor(gained), float(not over)
                if over:  # by a time limit: what would have followed counts
                    rewards[step] += settings.gamma * agent.value(torch.as_tensor(observations))
                    observations, active = lanes.reset()
        with torch.no_grad():
            following, values = agent.value(torch.as_tensor(observations)), agent.value(seen)
            log_probs = Categorical(logits=agent.actor(seen)).log_prob(chosen)
        advantages, carried = torch.zeros(rows), torch.zeros(rows[1])
        for step in reversed(range(settings.num_steps)):  # generalised advantage estimates
            error = rewards[step] + settings.gamma * following * going_on[step] - values[step]
            carried = error + settings.gamma * settings.gae_lambda * going_on[step] * carried
            advantages[step], following = carried, values[step]
        batch = [each[used] for each in (seen, chosen, log_probs, advantages, advantages + values)]
        learn(agent, optimizer, batch, settings)
    return agent


def learn(agent: Agent, optimizer: torch.optim.Optimizer, batch: Sequence[torch.Tensor], settings: Settings) -> None:
    """Epochs of clipped updates on the rows of a rollout whose choice was used."""
    for _ in range(settings.epochs):
        for part in torch.randperm(len(batch[0])).split(settings.minibatch):
            seen, chosen, log_probs, advantages, returns = (each[part] for each in batch)
            advantages = (advantages - advantages.mean()) / (advantages.std() + 1e-8)
            ratio = (Categorical(logits=agent.actor(seen)).log_prob(chosen) - log_probs).exp()
            clipped = ratio.clamp(1.0 - settings.clip, 1.0 + settings.clip)
            gain = torch.min(ratio * advantages, clipped * advantages).mean()
            loss = 0.5 * (agent.value(seen) - returns).square().mean() - gain
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(agent.parameters(), 0.5)
            optimizer.step()


def returns(schedule: ScheduleConfig | None, act: Act, cases: Sequence[int]) -> list[float]:
    """What an agent earns on average in each case: the seed of the environment and of the network."""
    lanes, over = Lanes(schedule, len(cases)), False
    observations, _ = lanes.reset(cases[0])
    total = np.zeros(len(observations))
    while not over:
        observations, _, gained, over = lanes.step(act(observations))
        total += gained
    return [round(float(mean), 4) for mean in total.reshape(len(cases), -1).mean(1)]


def in_both(act: Act, cases: Sequence[int]) -> dict[str, list[float]]:
    """`returns` without and under the network."""
    return {where: returns(schedule, act, cases) for where, schedule in SCHEDULES.items()}


SCHEDULES: Final = {BARE: None, UNDER: ScheduleConfig(**NETWORK)}


def trained(where: str, seed: int, settings: Settings, cases: Sequence[int]) -> dict[str, Any]:
    """Train once, play; what the training took of the processor, s."""
    began = time.process_time()
    agent = train(SCHEDULES[where], seed, settings)
    cpu = round(time.process_time() - began, 1)
    return {"cpu_seconds": cpu, **in_both(agent.best, cases)}


def study(runs: Path, seeds: Sequence[int], settings: Settings, cases: Sequence[int]) -> dict[str, Any]:
    """Everything that is measured; trainings that `runs` has are not repeated."""
    done: dict[str, list[dict[str, Any]]] = {where: [] for where in POLICIES}
    all_settings = {"network": NETWORK, "ppo": asdict(settings), "cases": [cases[0], len(cases)]}
    for seed in seeds:
        for number, where in enumerate(POLICIES):
            file = runs / f"spread-{number}-{seed}.json"
            run = once(file, all_settings, lambda where=where, seed=seed: trained(where, seed, settings, cases))
            print(f"seed {seed}, trained {where}: {run['cpu_seconds']} s", flush=True)
            done[where].append(run)
    chance = stream(cases[0], "chance")
    levels = {
        "random choices": in_both(lambda rows: chance.integers(5, size=len(rows)), cases),
        "always action 0": in_both(lambda rows: np.zeros(len(rows), dtype=np.int64), cases),
    }
    took_part = versions()
    with suppress(PackageNotFoundError):
        took_part["mpe2"] = version("mpe2")
    played = {POLICIES[where]: {at: [run[at] for run in ran] for at in SCHEDULES} for where, ran in done.items()}
    return {
        "schema_version": 1, "env": ENV, "seeds": [*seeds], **all_settings, "versions": took_part,
        "cpu_seconds": {where: [run["cpu_seconds"] for run in ran] for where, ran in done.items()},
        "returns": played | {name: {at: [values] for at, values in level.items()} for name, level in levels.items()},
    }  # fmt: skip


def choose(settings: Settings) -> None:
    """Print what a policy that was trained without a network earns under each of the ladder."""
    cases, agent = range(1_000_000, 1_000_050), train(None, CHOICE, settings)
    chance = stream(CHOICE, "chance")
    random = np.mean(returns(None, lambda rows: chance.integers(5, size=len(rows)), cases))
    print(f"random choices {random:.2f}; without a network {np.mean(returns(None, agent.best, cases)):.2f}")
    for delays in LADDER:
        earned = np.mean(returns(ScheduleConfig(**network(*delays)), agent.best, cases))
        print(f"observations {delays[0]:g}, actions {delays[1]:g} steps late: {earned:.2f}", flush=True)


def main() -> None:
    """Choose, or train what is missing and report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--choose", action="store_true", help="print the ladder, and stop")
    parser.add_argument("--quick", action="store_true", help="two seeds, two episodes; give --out, too")
    parser.add_argument("--runs", type=Path, default=Path("runs/under_network"), help="where trainings are kept")
    parser.add_argument("--out", type=Path, default=Path("training/results/under_network"))
    args = parser.parse_args()
    if args.choose:
        choose(Settings())
    elif args.quick:
        few = Settings(env_steps=50, num_envs=2, num_steps=25, epochs=1, hidden=8)
        print(write_report(args.out, "spread", {ENV: study(args.runs, SEEDS[:2], few, CASES[:2])}))
    else:
        print(write_report(args.out, "spread", {ENV: study(args.runs, SEEDS, Settings(), CASES)}))


if __name__ == "__main__":
    main()
