"""Stable-Baselines3: PPO behind VecNormalize, one policy for a group's agents; the run of it under a slow network."""

# needs: heron_env[train]

from importlib.metadata import version

import torch
from stable_baselines3 import PPO
from stable_baselines3.common.vec_env import VecNormalize

from heron_env import Baseline, ScheduleConfig, load_policy, make
from heron_env.adapters import HeronVecEnv
from heron_env.lab import save_run

ID, OPTIONS = "heron/BatteryGrid-v0", {"num_batteries": 4, "scope": "owner"}
print("versions:", *(f"{name}=={version(name)}" for name in ("heron_env", "stable_baselines3", "torch", "gymnasium")))
torch.set_num_threads(1)

lanes = VecNormalize(HeronVecEnv(ID, 32, **OPTIONS), gamma=0.9)  # 32 environments x 4 batteries = 128 slots
settings = {"n_steps": 50, "batch_size": 800, "gamma": 0.9, "learning_rate": 3e-3, "seed": 0, "device": "cpu"}
model = PPO("MlpPolicy", lanes, **settings).learn(40_000)
run = save_run(model, lanes, "runs/sb3")  # with VecNormalize's statistics; then: heron sweep runs/sb3

env, learned = make(ID, **OPTIONS), load_policy(run.path)
random = env.run_synchronous(Baseline("random").build(env, 0), seed=1).returns["system_agent"]
trained = env.run_synchronous(learned, seed=1).returns["system_agent"]
slow = ScheduleConfig(msg_delay=2.0, act_delay=5.0, loss=0.1)
delayed = env.run_event_driven(learned, seed=1, schedule=slow).returns["system_agent"]
print(f"result: random {random:.1f}, PPO {trained:.1f}, the same policy under a slow network {delayed:.1f}")
