"""Stable-Baselines3: PPO, one policy for all agents of a group, on the compiled batch; then under a slow network."""

# needs: heron_env[train]

from importlib.metadata import version

import numpy as np
import torch
from stable_baselines3 import PPO

from heron_env import ScheduleConfig, make
from heron_env.adapters import CentralCriticPolicy, HeronVecEnv

ID, OPTIONS = "heron/BatteryGrid-v0", {"num_batteries": 4, "scope": "owner"}
print("versions:", *(f"{name}=={version(name)}" for name in ("heron_env", "stable_baselines3", "torch", "gymnasium")))
torch.set_num_threads(1)

lanes = HeronVecEnv(ID, 32, critic="central", **OPTIONS)  # 32 environments x 4 batteries = 128 slots
settings = {"n_steps": 50, "batch_size": 800, "gamma": 0.9, "learning_rate": 3e-3}
model = PPO(CentralCriticPolicy, lanes, seed=0, device="cpu", **settings)
numbers = np.random.default_rng(0)


def learned(vector: np.ndarray) -> np.ndarray:
    """What the actor does: it has never seen the state, which only the critic needs."""
    seen = {"obs": vector, "state": np.zeros(model.observation_space["state"].shape, dtype=np.float32)}
    return model.predict(seen, deterministic=True)[0]


env = make(ID, **OPTIONS)
random = env.run_synchronous({"*": lambda vector: numbers.uniform(-1, 1, 1)}, seed=1).returns["system_agent"]
model.learn(40_000)
trained = env.run_synchronous({"*": learned}, seed=1).returns["system_agent"]
slow = ScheduleConfig(msg_delay=2.0, act_delay=5.0, loss=0.1)
delayed = env.run_event_driven({"*": learned}, seed=1, schedule=slow).returns["system_agent"]
print(f"result: random {random:.1f}, PPO {trained:.1f}, the same policy under a slow network {delayed:.1f}")
