"""Does a policy that is trained with masks control the corridor's signals better than a fixed cycle?

    pip install heron_env[train]
    python training/traffic_corridor.py                    # three seeds; then the report
    python training/traffic_corridor.py --only-report      # of the trainings that are there

MaskablePPO (sb3-contrib) trains one policy for all intersections through HeronVecEnv; the coordinator follows its rule.
The test cases are episodes of seeds that no training sees. Kept in --out: SEED.json.gz of each training (the network's
weights and its returns), study.json, table.md, and gap.md: what delays between the signals and their control cost.
"""

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import packed
import torch
from sb3_contrib import MaskablePPO

import heron_env
from heron_env import ScheduleConfig
from heron_env.adapters import HeronVecEnv, MappedVecEnv
from heron_env.lab import Intervals, NetworkPolicy
from heron_env.lab.trained import Choice, Network, Scaling, network_of

ID = "heron/TrafficCorridor-v0"
CASES = [10_000 + case for case in range(20)]
SCALE = np.array([1.0, 30.0, 60.0, 10.0, 10.0, 3.0, 3.0, 3.0, 3.0, 15.0])
REWARD = 0.2
SETTINGS: dict[str, Any] = {
    "n_steps": 60, "batch_size": 960, "n_epochs": 6, "gamma": 0.97, "gae_lambda": 0.95, "learning_rate": 1e-3,
    "ent_coef": 0.003, "policy_kwargs": {"net_arch": [32, 32]},
}  # fmt: skip
ENVS = 16
DELAYS = {"none": None, "messages 2 s": 2.0, "messages 5 s": 5.0}


def trained(seed: int, steps: int) -> tuple[NetworkPolicy, dict[str, Any]]:
    """Train on `steps` decisions; the policy, and what it took."""
    torch.set_num_threads(1)
    inner = HeronVecEnv(ID, ENVS, group="intersection", seed=1_000_000 * (seed + 1), threads=1)
    scaling = Scaling(np.zeros(len(SCALE)), SCALE)
    venv = MappedVecEnv(
        inner, observe=scaling, act=lambda seen, choices: choices, reward_scale=REWARD, action_space=None
    )
    model = MaskablePPO("MlpPolicy", venv, seed=seed, device="cpu", **SETTINGS)
    inner.seed(1_000_000 * (seed + 1))
    began = time.process_time()
    model.learn(steps)
    network, _ = network_of(model.policy.state_dict())
    took = {"decisions": model.num_timesteps, "cpu_seconds": round(time.process_time() - began, 1)}
    return NetworkPolicy(network, scaling, Choice((2,))), took


def kept(policy: NetworkPolicy) -> list[Any]:
    """The network, as lists."""
    return [[part.round(6).tolist() for part in layer] for layer in policy.network.layers]


def restored(layers: list[Any]) -> NetworkPolicy:
    """The policy of such lists."""
    arrays = tuple((np.array(w, dtype=np.float32), np.array(b, dtype=np.float32)) for w, b in layers)
    return NetworkPolicy(Network(arrays), Scaling(np.zeros(len(SCALE)), SCALE), Choice((2,)))


class Counting:
    """A policy that counts how often its mask forbids something."""

    def __init__(self, policy: NetworkPolicy) -> None:
        self.policy, self.asked, self.bound = policy, 0, 0

    def forward(self, vector: Any, mask: Any = None) -> Any:
        """The policy's decision."""
        self.asked += 1
        self.bound += int(np.min(mask) == 0)
        return self.policy.forward(vector, mask=mask)


def returns(env: Any, rule: Any, delay: float | None = None) -> list[float]:
    """The team's return in every case, in the event clock where there is a delay."""
    policies = {"intersection": rule, "corridor": env.hierarchy.agents[1].policy}
    if delay is None:
        return [env.run_synchronous(policies, seed=case).returns["system_agent"] for case in CASES]
    late = {"schedule": ScheduleConfig(tick_interval=env.dt, msg_delay=delay)}
    return [env.run_event_driven(policies, seed=case, **late).returns["system_agent"] for case in CASES]


def report(out: Path) -> None:
    """Compare what is there with the baselines."""
    env = heron_env.make(ID)
    baselines = {name: rules["intersection"] for name, rules in env.benchmark().baselines(0).items()}
    runs = [packed.load(file) for file in sorted(out.glob("[0-9]*.json.gz"))]
    counting = [Counting(restored(run["layers"])) for run in runs]
    found = {delay: {name: returns(env, rule, s) for name, rule in baselines.items()} for delay, s in DELAYS.items()}
    for delay, s in DELAYS.items():
        found[delay]["MaskablePPO"] = [returns(env, rule, s) for rule in counting]
        if delay == "none":
            bound = [rule.bound / rule.asked for rule in counting]
    paired, gaps, lines = Intervals(CASES), [], []
    for name, values in found["none"].items():
        over = str(paired.difference(values, found["none"]["fixed cycle"])) if name != "fixed cycle" else "-"
        lines.append(f"| {name} | {paired.mean(values)} | {over} |")
    for delay in list(DELAYS)[1:]:
        parts = [str(paired.difference(found["none"][name], found[delay][name])) for name in found["none"]]
        gaps.append(f"| {delay} | {' | '.join(parts)} |")
    budget = ", ".join(f"{run['decisions']:,} decisions in {run['cpu_seconds']} CPU-seconds" for run in runs)
    told = [
        f"Team returns (minus vehicle-minutes of delay) on {len(CASES)} test cases, means with 95 % intervals; of",
        f"MaskablePPO over {len(runs)} training seeds. Budget: {budget}.", "",
        "| control | return | over the fixed cycle |", "|---|---|---|", *lines, "",
        f"Masks forbid something in {min(bound):.0%} to {max(bound):.0%} of the trained policies' decisions.",
    ]  # fmt: skip
    head = [f"What delays of messages cost, in vehicle-minutes on the same {len(CASES)} cases.", ""]
    head += [f"| delay | {' | '.join(found['none'])} |", "|---" * (1 + len(found["none"])) + "|"]
    (out / "table.md").write_text("\n".join(told) + "\n", encoding="utf-8")
    (out / "gap.md").write_text("\n".join([*head, *gaps]) + "\n", encoding="utf-8")
    study = {"cases": CASES, "returns": found, "bound": bound, "settings": SETTINGS, "envs": ENVS}
    (out / "study.json").write_text(json.dumps(study) + "\n", encoding="utf-8")
    print("\n".join([*told, "", *head, *gaps]))


def main() -> None:
    """Train what is missing, and report."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, nargs="*", default=[0, 1, 2])
    parser.add_argument("--steps", type=int, default=400_000, help="decisions of each training")
    parser.add_argument("--out", type=Path, default=Path(__file__).with_name("results") / "traffic_corridor")
    parser.add_argument("--only-report", action="store_true")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    for seed in [] if given.only_report else given.seeds:
        if not (file := given.out / f"{seed}.json.gz").is_file():
            policy, took = trained(seed, given.steps)
            file.write_bytes(packed.dumped({"seed": seed, **took, "layers": kept(policy)}))
            print(f"seed {seed}: {took}", flush=True)
    report(given.out)


if __name__ == "__main__":
    main()
