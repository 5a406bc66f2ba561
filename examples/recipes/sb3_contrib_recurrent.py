"""sb3-contrib: RecurrentPPO, whose memory starts anew with every slot's episode; one LSTM for all agents of a group."""

# needs: heron_env[train]

from importlib.metadata import version

import numpy as np
import torch
from sb3_contrib import RecurrentPPO

from heron_env import make
from heron_env.adapters import HeronVecEnv

ID, OPTIONS = "heron/BatteryGrid-v0", {"num_batteries": 4, "scope": "owner"}
print("versions:", *(f"{name}=={version(name)}" for name in ("heron_env", "sb3_contrib", "stable_baselines3", "torch")))
torch.set_num_threads(1)

lanes = HeronVecEnv(ID, 16, **OPTIONS)
shape = {"lstm_hidden_size": 16, "net_arch": [16]}
settings = {"n_steps": 50, "batch_size": 800, "n_epochs": 5, "gamma": 0.9, "learning_rate": 3e-3}
model = RecurrentPPO("MlpLstmPolicy", lanes, seed=0, device="cpu", policy_kwargs=shape, **settings)
env, numbers = make(ID, **OPTIONS), np.random.default_rng(0)


def played() -> float:
    """The team's return in one episode; the memory is kept between decisions, one row for each battery."""
    seen, _ = env.reset(seed=1)
    memory, total, first = None, 0.0, np.ones(len(seen), dtype=bool)
    while env.agents:
        rows = np.stack([seen[agent] for agent in env.agents])
        actions, memory = model.predict(rows, state=memory, episode_start=first, deterministic=True)
        seen, rewards, *_ = env.step(dict(zip(env.agents, actions, strict=True)))
        total, first = total + sum(rewards.values()), np.zeros_like(first)
    return total


random = env.run_synchronous({"*": lambda vector: numbers.uniform(-1, 1, 1)}, seed=1).returns["system_agent"]
model.learn(25_000)
print(f"result: random {random:.1f}, RecurrentPPO {played():.1f}")
