"""RLlib: PPO on its new API stack, one policy a group; batteries that tick every other step are absent in between."""

# needs: heron_env[ray] ray==2.60.0 dm-tree fsspec lz4 ormsgpack pandas pyarrow requests tensorboardX torch

import os
from importlib.metadata import version

os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
import ray
import torch
from ray.rllib.algorithms.ppo import PPOConfig
from ray.rllib.core.rl_module.default_model_config import DefaultModelConfig

from heron_env import ScheduleConfig
from heron_env.adapters.rllib import HeronMultiAgentEnv, policy_per_group

print("versions:", *(f"{name}=={version(name)}" for name in ("heron_env", "ray", "torch", "gymnasium")))
torch.set_num_threads(1)
ray.init(
    "local", num_cpus=2, include_dashboard=False, _node_ip_address="127.0.0.1"
)  # of its own, on this machine alone

ticks = {"battery_1": ScheduleConfig(tick_interval=2.0)}
env_config = {"env": "heron/BatteryGrid-v0", "num_batteries": 4, "scope": "owner", "schedule": ticks}
config = (
    PPOConfig()
    .environment(HeronMultiAgentEnv, env_config=env_config)
    .multi_agent(**policy_per_group(env_config))
    .env_runners(num_env_runners=0, num_envs_per_env_runner=4)
    .rl_module(model_config=DefaultModelConfig(fcnet_hiddens=[32, 32], fcnet_activation="tanh"))
    .training(train_batch_size_per_learner=1600, minibatch_size=800, num_epochs=10, lr=3e-3, gamma=0.9, lambda_=0.9)
    .debugging(seed=0)  # without a seed all environments of a worker play the same episodes
)
algorithm = config.build_algo()
runner = algorithm.env_runner
random = [episode.get_return() for episode in runner.sample(num_episodes=8, random_actions=True)]
returns = [algorithm.train()["env_runners"]["episode_return_mean"] for _ in range(15)]
algorithm.stop()
ray.shutdown()
print(f"result: random {sum(random) / len(random):.1f}, PPO {returns[0]:.1f}, after 15 iterations {returns[-1]:.1f}")
