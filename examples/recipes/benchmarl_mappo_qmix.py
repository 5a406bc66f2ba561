"""BenchMARL on batched environments: MAPPO for batteries, QMIX for traffic lights, which masks hold back."""

# needs: heron_env benchmarl==1.5.2 torchrl==0.11.1 tensordict==0.11.0 torchvision==0.28.0

from dataclasses import replace
from importlib.metadata import version

import torch
from benchmarl.algorithms import MappoConfig, QmixConfig
from benchmarl.experiment import Experiment, ExperimentConfig
from benchmarl.models.mlp import MlpConfig
from torchrl.envs import Compose, ObservationNorm, TransformedEnv, set_exploration_type

from heron_env.adapters import HeronTask

print("versions:", *(f"{name}=={version(name)}" for name in ("heron_env", "benchmarl", "torchrl", "torch")))
torch.set_num_threads(1)
day = {"dt": 900.0, "physics_substeps": 1, "metering": "coming", "max_steps": 96}
seen = {"in_keys": [("intersection", "observation")], "out_keys": [("intersection", "observation")]}
usual = ObservationNorm(0.0, torch.tensor([1.0, 30, 60, 10, 10, 3, 3, 3, 3, 15]), **seen, standard_normal=True)
lights = HeronTask("heron/TrafficCorridor-v0", {"groups": ["intersection"], "max_steps": 60}, [usual])
on = {"n_envs_per_worker": 64, "collected_frames_per_batch": 6144, "n_minibatch_iters": 5, "minibatch_size": 1536}
off = {"n_envs_per_worker": 32, "collected_frames_per_batch": 1920, "init_random_frames": 1920,
       "n_optimizer_steps": 60, "train_batch_size": 512}  # fmt: skip
settings = {f"{kind}_policy_{k}": v for kind, part in {"on": on, "off": off}.items() for k, v in part.items()}
settings |= {"loggers": [], "create_json": False, "render": False, "evaluation": False, "max_n_frames": None}
settings |= {"max_n_iters": 40, "gamma": 0.95, "lr": 2e-3, "polyak_tau": 0.01}
model = replace(MlpConfig.get_from_yaml(), num_cells=[64, 64], activation_class=torch.nn.Tanh)
found = []
for task, algorithm in ((HeronTask("heron/EnergyManagement-v1", day), MappoConfig), (lights, QmixConfig)):
    config = replace(ExperimentConfig.get_from_yaml(), **settings)
    experiment = Experiment(task, algorithm.get_from_yaml(), model, seed=0, config=config)
    experiment.run()
    for policy in (None, experiment.policy):  # random actions, and what was learned, in days that no training sees
        env = task.get_env_fun(64, False, 1_000_000, "cpu")()
        group, env = next(iter(env.group_map)), TransformedEnv(env, Compose(*task.get_env_transforms(env)))
        with torch.no_grad(), set_exploration_type("deterministic"):
            told = env.rollout(task.max_steps(env), policy, break_when_any_done=False)
        found.append(told["next", group, "reward"].sum(1).mean().item())
print("result: batteries random {:.2f}, MAPPO {:.2f}; lights random {:.2f}, QMIX {:.2f}".format(*found))
