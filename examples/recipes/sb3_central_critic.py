"""Stable-Baselines3: PPO with a critic that sees the global state, an actor that does not, and a run folder."""

# needs: heron_env[train]

from importlib.metadata import version

import torch
from stable_baselines3 import PPO
from stable_baselines3.common.policies import MultiInputActorCriticPolicy
from stable_baselines3.common.torch_layers import CombinedExtractor, MlpExtractor

from heron_env import Baseline, load_policy, make
from heron_env.adapters import HeronVecEnv
from heron_env.lab import save_run


class CentralCritic(MultiInputActorCriticPolicy):
    """Observations are {"obs", "state"}: the critic reads both, the actor `obs`."""

    def _build_mlp_extractor(self):
        self.pi_features_extractor = CombinedExtractor(self.observation_space)
        del self.pi_features_extractor.extractors["state"]
        nets = {"net_arch": self.net_arch, "activation_fn": self.activation_fn, "device": self.device}
        self.mlp_extractor = MlpExtractor(self.observation_space["obs"].shape[0], **nets)
        self.mlp_extractor.value_net = MlpExtractor(self.vf_features_extractor.features_dim, **nets).value_net


ID, OPTIONS = "heron/BatteryGrid-v0", {"num_batteries": 4, "scope": "owner"}
print("versions:", *(f"{name}=={version(name)}" for name in ("heron_env", "stable_baselines3", "torch", "gymnasium")))
torch.set_num_threads(1)
lanes = HeronVecEnv(ID, 32, critic="central", **OPTIONS)  # 32 environments x 4 batteries = 128 slots
settings = {"n_steps": 50, "batch_size": 800, "gamma": 0.9, "learning_rate": 3e-3, "seed": 0, "device": "cpu"}
model = PPO(CentralCritic, lanes, policy_kwargs={"share_features_extractor": False}, **settings).learn(40_000)
run = save_run(model, lanes, "runs/central")  # its policies need no state, and every command takes them

env = make(ID, **OPTIONS)
both = Baseline("random").build(env, 0), load_policy(run.path)
earned = [env.run_synchronous(policies, seed=1).returns["system_agent"] for policies in both]
print("result: random {:.1f}, PPO with a central critic {:.1f}".format(*earned))
