"""Stable-Baselines3: PPO that trains under a network, on the event clock; DecisionBuffer leaves out who waits."""

# needs: heron_env[train]

from importlib.metadata import version

import torch
from stable_baselines3 import PPO
from stable_baselines3.common.vec_env import VecNormalize

from heron_env import Baseline, ScheduleConfig, load_policy, make
from heron_env.adapters import DecisionBuffer, HeronVecEnv
from heron_env.lab import save_run

ID, OPTIONS = "heron/BatteryGrid-v0", {"num_batteries": 4, "scope": "owner"}
NETWORK = ScheduleConfig(msg_delay=0.5, act_delay=1.0, jitter_type="uniform", jitter_ratio=0.3, loss=0.1)
print("versions:", *(f"{name}=={version(name)}" for name in ("heron_env", "stable_baselines3", "torch", "gymnasium")))
torch.set_num_threads(1)

lanes = HeronVecEnv(ID, 32, clock="event", schedule=NETWORK, **OPTIONS)  # 32 environments x 4 batteries = 128 slots
buffer = {"rollout_buffer_class": DecisionBuffer, "rollout_buffer_kwargs": {"waiting": lanes.waiting}}
settings = {"n_steps": 100, "batch_size": 800, "gamma": 0.9, "learning_rate": 3e-3, "seed": 0, "device": "cpu"}
normalized = VecNormalize(lanes, gamma=0.9)
model = PPO("MlpPolicy", normalized, **buffer, **settings).learn(80_000)
run = save_run(model, normalized, "runs/sb3_event")  # then: heron sweep runs/sb3_event

env = make(ID, **OPTIONS)
both = Baseline("random").build(env, 0), load_policy(run.path)
earned = [env.run_event_driven(policies, seed=1, schedule=NETWORK).returns["system_agent"] for policies in both]
print("result: under the network random {:.1f}, PPO {:.1f}".format(*earned))
