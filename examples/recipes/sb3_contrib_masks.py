"""sb3-contrib: MaskablePPO with the masks of TrafficCorridor, where a light must stay as it is for a while."""

# needs: heron_env[train]

from importlib.metadata import version

import numpy as np
import torch
from sb3_contrib import MaskablePPO
from stable_baselines3.common.vec_env import VecNormalize

from heron_env import Baseline, load_policy, make
from heron_env.adapters import HeronVecEnv
from heron_env.lab import save_run

ID, GROUP = "heron/TrafficCorridor-v0", "intersection"
print("versions:", *(f"{name}=={version(name)}" for name in ("heron_env", "sb3_contrib", "stable_baselines3", "torch")))
torch.set_num_threads(1)

lanes = VecNormalize(HeronVecEnv(ID, 16, group=GROUP, seed=1000), gamma=0.97)  # the coordinator follows its own rule
settings = {"n_steps": 60, "batch_size": 960, "gamma": 0.97, "learning_rate": 1e-3, "ent_coef": 0.003}
model = MaskablePPO("MlpPolicy", lanes, seed=0, device="cpu", policy_kwargs={"net_arch": [32, 32]}, **settings)
run = save_run(model.learn(60_000), lanes, "runs/masks")  # of the lights alone; it obeys masks wherever it plays

env, learned = make(ID), load_policy(run.path)
chance = {GROUP: Baseline("random").build(env, 0)[GROUP]}
earned = [[env.run_synchronous(p, seed=s).returns["system_agent"] for s in range(5)] for p in (chance, learned)]
print("result: random {:.1f}, MaskablePPO {:.1f} (five test episodes)".format(*np.mean(earned, axis=1)))
