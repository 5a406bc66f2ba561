"""BenchMARL on batched environments: MAPPO on EnergyManagement-v1, QMIX on TrafficCorridor-v0."""
# needs: heron_env[torchrl] benchmarl==1.5.2

import sys
from pathlib import Path

from benchmarl.algorithms import MappoConfig, QmixConfig
from benchmarl.experiment import Experiment, ExperimentConfig
from benchmarl.models.mlp import MlpConfig

from heron_env.adapters.benchmarl import HeronTask

RUNS = {
    "heron/EnergyManagement-v1": (MappoConfig, {"groups": ["battery"]}, 64, 96),
    "heron/TrafficCorridor-v0": (QmixConfig, {"groups": ["intersection"], "max_steps": 60}, 16, 60),
}


def trained(env_id: str, iterations: int) -> tuple[float, float]:
    """Mean return of an episode in the first and in the last tenth of the training."""
    algorithm, options, lanes, steps = RUNS[env_id]
    config = ExperimentConfig.get_from_yaml()
    config.loggers, config.create_json, config.render, config.evaluation = [], False, False, False
    config.max_n_iters, config.max_n_frames = iterations, None
    config.on_policy_n_envs_per_worker = config.off_policy_n_envs_per_worker = lanes
    config.on_policy_collected_frames_per_batch = config.off_policy_collected_frames_per_batch = lanes * steps
    config.save_folder = Path("runs/benchmarl")
    config.save_folder.mkdir(parents=True, exist_ok=True)
    task, model = HeronTask(env_id, options), MlpConfig.get_from_yaml()
    experiment = Experiment(task, algorithm.get_from_yaml(), model, seed=0, config=config)
    experiment.run()
    return experiment.mean_return


if __name__ == "__main__":
    for name in RUNS:
        print(name, trained(name, int(sys.argv[1]) if len(sys.argv) > 1 else 100))
