"""RLlib's PPO on TrafficCorridor over one node and over two: are the learning curves the same?

    python training/rllib_two_nodes.py                  # needs: plots, and RLlib (docs/use_with/rllib.md)
    python training/rllib_two_nodes.py --only-report    # of the trainings that are there

Two env runners collect, each on a node of its own or both on one; the learner is in the driver's process, on neither.
Nodes are processes of this machine, on its loopback interface. The third arm is the first one with other seeds: how far
two groups of trainings are apart that differ in nothing. Interrupted, it goes on where it was.
"""

from __future__ import annotations

import argparse
import json
import os
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

os.environ |= {"RAY_USAGE_STATS_ENABLED": "0", "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}  # the latter: on 127.0.0.1

import numpy as np
from numpy.typing import NDArray

from heron_env.files import write_all
from heron_env.lab import figure_style, mean_interval, paired_difference, versions

Array = NDArray[np.float64]

OUT: Final = Path("training/results/rllib_two_nodes")
ARMS: Final = {"one node": (1, 0), "two nodes": (2, 0), "one node, other seeds": (1, 1000)}
SEEDS: Final = range(5)
ITERATIONS: Final = 12
SCALE: Final = {  # what divides each number that an agent of the group sees
    "intersection": np.array([1.0, 30.0, 60.0, 10.0, 10.0, 3.0, 3.0, 3.0, 3.0, 15.0], dtype=np.float32),
    "corridor": np.array([15.0, *([1.0, 30.0, 60.0, 10.0, 10.0, 3.0, 3.0, 3.0, 3.0] * 4)], dtype=np.float32),
}
COLOURS: Final = figure_style.SERIES[:3]
ENV: Final = {"env": "heron/TrafficCorridor-v0", "masks": True, "max_steps": 60}


def scaled(config: Any) -> Any:
    """The environment with numbers of about 1, and rewards a fifth of what they are."""
    from heron_env.adapters.rllib import HeronMultiAgentEnv

    class Scaled(HeronMultiAgentEnv):
        def _shown(self, *given: Any) -> Any:
            seen, told = super()._shown(*given)
            groups = {agent: group for group, members in self.heron.group_map.items() for agent in members}
            return {a: {**one, "observations": one["observations"] / SCALE[groups[a]]} for a, one in seen.items()}, told

        def step(self, action_dict: Any) -> Any:
            seen, rewards, *rest = super().step(action_dict)
            return seen, {agent: 0.2 * reward for agent, reward in rewards.items()}, *rest

    return Scaled(config)


def trained(seed: int) -> dict[str, Any]:
    """Mean returns of an episode's agents by iteration, and on which node each runner was."""
    import ray
    from ray.rllib.algorithms.ppo import PPOConfig
    from ray.rllib.core.rl_module.multi_rl_module import MultiRLModuleSpec
    from ray.rllib.core.rl_module.rl_module import RLModuleSpec
    from ray.rllib.examples.rl_modules.classes.action_masking_rlm import ActionMaskingTorchRLModule
    from ray.tune.registry import register_env

    from heron_env.adapters.rllib import policy_per_group

    register_env("corridor", scaled)
    module = RLModuleSpec(
        module_class=ActionMaskingTorchRLModule,
        model_config={"head_fcnet_hiddens": [32, 32], "head_fcnet_activation": "tanh"},
    )
    config = (
        PPOConfig()
        .environment("corridor", env_config=ENV)
        .multi_agent(**policy_per_group(ENV))
        .env_runners(num_env_runners=2, num_envs_per_env_runner=4, rollout_fragment_length=120)
        .rl_module(rl_module_spec=MultiRLModuleSpec(rl_module_specs=dict.fromkeys(SCALE, module)))
        .training(train_batch_size_per_learner=960, minibatch_size=480, num_epochs=6, lr=1e-3, gamma=0.97, lambda_=0.95)
        .debugging(seed=seed)
    )
    algorithm = config.build_algo()
    where = algorithm.env_runner_group.foreach_env_runner(
        lambda runner: ray.get_runtime_context().get_node_id(), local_env_runner=False
    )
    curve = []
    for _ in range(ITERATIONS):
        found = algorithm.train()["env_runners"]
        curve.append(5.0 * found["episode_return_mean"])
    algorithm.stop()
    return {"curve": curve, "runners": where}


def run_arms(kept: dict[str, Any]) -> None:
    """Train what is missing, arm by arm and seed by seed in turns."""
    import ray
    from ray.cluster_utils import Cluster

    for place, seed in enumerate(SEEDS):
        for arm, (count, further) in ARMS.items():
            name = f"{arm}, {seed + further}"
            if name in kept:
                continue
            nodes = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False})
            for _ in range(count):
                nodes.add_node(num_cpus=2 // count)
            ray.init(address=nodes.address, log_to_driver=False, configure_logging=False)
            nodes.wait_for_nodes()
            try:
                kept[name] = {"arm": arm, "seed": seed + further, "place": place, **trained(seed + further)}
            finally:
                ray.shutdown()
                nodes.shutdown()
            curve = kept[name]["curve"]
            print(
                f"{name}: {curve[0]:.1f} to {curve[-1]:.1f}, runners on {len(set(kept[name]['runners']))}", flush=True
            )
            write_all({OUT / "trainings.json": json.dumps(kept, indent=1) + "\n"})


def curves(kept: dict[str, Any], arm: str) -> Array:
    """`[seeds, iterations]` of an arm, in the order of its seeds."""
    chosen = sorted((one for one in kept.values() if one["arm"] == arm), key=lambda one: one["place"])
    return np.array([one["curve"] for one in chosen])


def report(kept: dict[str, Any]) -> dict[str, Any]:
    """By iteration each arm's mean with its t interval, how often it lies in the first one's, and the differences."""
    found = {arm: curves(kept, arm) for arm in ARMS}
    told: dict[str, Any] = {"schema_version": 1, "arms": {}}
    first = [mean_interval(column) for column in found["one node"].T]
    late = slice(ITERATIONS // 2, None)
    for arm, curve in found.items():
        means = [mean_interval(column) for column in curve.T]
        told["arms"][arm] = {
            "trainings": len(curve), "means": [[round(end, 2) for end in (m.mean, m.low, m.high)] for m in means],
            "nodes_of_runners": sorted({len(set(one["runners"])) for one in kept.values() if one["arm"] == arm}),
            "inside": sum(one.low <= mean.mean <= one.high for one, mean in zip(first, means, strict=True)),
            "minus_one_node": str(paired_difference(curve[:, late].mean(1), found["one node"][:, late].mean(1))),
            "gained": str(paired_difference(curve[:, late].mean(1), curve[:, 0])),
        }  # fmt: skip
    return told


def as_table(told: dict[str, Any]) -> str:
    """The report as Markdown."""
    lines = ["| iteration | " + " | ".join(ARMS) + " |", "|---|" + "---|" * len(ARMS)]
    for row in range(ITERATIONS):
        cells = ["{:.1f} [{:.1f}, {:.1f}]".format(*told["arms"][arm]["means"][row]) for arm in ARMS]
        lines.append(f"| {row + 1} | {' | '.join(cells)} |")
    for name, key in (
        (f"of {ITERATIONS} means in the interval of one node", "inside"),
        ("second half less the first iteration", "gained"),
        ("second half, less one node's", "minus_one_node"),
    ):
        lines.append(f"| {name} | {' | '.join(str(told['arms'][arm][key]) for arm in ARMS)} |")
    return "\n".join(lines) + "\n"


def drawn(told: dict[str, Any]) -> bytes:
    """The curves, with the interval of one node, as SVG."""
    with figure_style.house_style():
        figure, (axes,) = figure_style.blank(3.2)
        turns, labels = range(1, ITERATIONS + 1), []
        for (arm, one), colour, dashes in zip(told["arms"].items(), COLOURS, ("-", "-", "--"), strict=True):
            mean, low, high = np.array(one["means"]).T
            axes.plot(turns, mean, color=colour, linestyle=dashes)
            labels.append((float(mean[-1]), arm, colour))
            if arm == "one node":
                axes.fill_between(turns, low, high, color=colour, alpha=0.15, linewidth=0.0)
        axes.set_xlabel("iteration of PPO, 960 control steps each")
        axes.set_ylabel("mean return of an episode")
        figure_style.end_labels(axes, labels)
    return figure_style.to_svg(figure, text=True)


def main() -> None:
    """Train, and report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only-report", action="store_true")
    file = OUT / "trainings.json"
    kept: dict[str, Any] = json.loads(file.read_text()) if file.is_file() else {}
    if not parser.parse_args().only_report:
        run_arms(kept)
        named_by = {**versions(), "ray": version("ray")}
        write_all({OUT / "versions.json": json.dumps(named_by, indent=1) + "\n"})
    told = report(kept)
    study = json.dumps(told, indent=1) + "\n"
    write_all({OUT / "study.json": study, OUT / "table.md": as_table(told), OUT / "curves.svg": drawn(told)})
    print(as_table(told))


if __name__ == "__main__":
    main()
