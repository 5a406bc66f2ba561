"""sb3-contrib: MaskablePPO with the masks of TrafficCorridor, where a light must stay as it is for a while."""

# needs: heron_env[train]

from importlib.metadata import version

import numpy as np
import torch
from sb3_contrib import MaskablePPO

from heron_env import make
from heron_env.adapters import HeronVecEnv, MappedVecEnv

ID, GROUP = "heron/TrafficCorridor-v0", "intersection"
SCALE = np.array([1.0, 30.0, 60.0, 10.0, 10.0, 3.0, 3.0, 3.0, 3.0, 15.0], dtype=np.float32)
print("versions:", *(f"{name}=={version(name)}" for name in ("heron_env", "sb3_contrib", "stable_baselines3", "torch")))
torch.set_num_threads(1)

lanes = HeronVecEnv(ID, 16, group=GROUP, seed=1000)  # the corridor's coordinator follows its own rule
scaled = MappedVecEnv(
    lanes, observe=lambda seen: seen / SCALE, act=lambda seen, chosen: chosen, reward_scale=0.2, action_space=None
)
settings = {"n_steps": 60, "batch_size": 960, "gamma": 0.97, "learning_rate": 1e-3, "ent_coef": 0.003}
model = MaskablePPO("MlpPolicy", scaled, seed=0, device="cpu", policy_kwargs={"net_arch": [32, 32]}, **settings)


class Learned:
    """The trained network for one agent; it is given the mask because `forward` asks for it."""

    def forward(self, vector: np.ndarray, mask: np.ndarray | None = None) -> int:
        return int(model.predict(vector / SCALE, action_masks=mask, deterministic=True)[0])


env, numbers = make(ID), np.random.default_rng(0)
rules = {"corridor": env.hierarchy.agents[1].policy}
chance = {**rules, GROUP: lambda vector: numbers.integers(2)}
random = [env.run_synchronous(chance, seed=seed).returns["system_agent"] for seed in range(5)]
model.learn(60_000)
trained = [env.run_synchronous({**rules, GROUP: Learned()}, seed=seed).returns["system_agent"] for seed in range(5)]
print(f"result: random {np.mean(random):.1f}, MaskablePPO {np.mean(trained):.1f} (five test episodes)")
