"""Which way of training does best on validation days? A candidate is trained and measured; the table grows by a row.

    python training/select_training.py "corrects MPC" "128 x 128" --steps 1000000 --seed 0
    python training/select_training.py            # only the table of what is there

A policy is measured where it will be used: synchronously in steps of a minute, on validation days, beside the strongest
rule on the same days. Test days are not touched. Intervals are Student's t over days alone, each row one training: they
say nothing about other training seeds.
"""

import argparse
import json
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from heron_env import Baseline, Hyperparameters, TrainedRun, make, paired_difference, team_return, train
from heron_env.files import write
from heron_env.lab import PolicySpec, benchmark
from heron_env.worlds.energy_management import MPC, STRONGEST

ENV = "heron/EnergyManagement-v1"
DAYS = 20
BESIDE = (STRONGEST, MPC)
AGENTS = 6
COARSE = {"dt": 900.0, "physics_substeps": 1, "metering": "coming", "split": "train"}
FINER = {"n_steps": 288, "gamma": 0.99 ** (1 / 3), "gae_lambda": 0.9 ** (1 / 3), "batch_size": 3072}
"""Three steps where there was one: the same horizon in time, the same number of updates a day."""
FINEST = {"n_steps": 240, "gamma": 0.99 ** (1 / 15), "gae_lambda": 0.97, "batch_size": 4096}
MINUTES = {"dt": 60.0, "physics_substeps": 6, "metering": "past"}


@dataclass(frozen=True)
class Candidate:
    """One way of training: quarter hours that show what is coming, unless it says otherwise."""

    settings: dict[str, Any] = field(default_factory=dict)
    options: dict[str, Any] = field(default_factory=dict)
    residual: str | None = STRONGEST


CANDIDATES = {
    "as it was": Candidate(),
    "meters of the past": Candidate(options={"metering": "past"}),
    "steps of 300 s": Candidate(options={"dt": 300.0}, settings=FINER),
    "steps of 300 s, meters of the past": Candidate(options={"dt": 300.0, "metering": "past"}, settings=FINER),
    "128 x 128": Candidate(settings={"hidden": (128, 128)}),
    "256 environments": Candidate(settings={"num_envs": 256, "batch_size": 4096}),
    "lambda 0.97": Candidate(settings={"gae_lambda": 0.97}),
    "gamma 0.997": Candidate(settings={"gamma": 0.997}),
    "learning rate 3e-4": Candidate(settings={"learning_rate": 3e-4}),
    "learning rate 2e-3": Candidate(settings={"learning_rate": 2e-3}),
    "log_std -1.5": Candidate(settings={"log_std": -1.5}),
    "log_std -2.5": Candidate(settings={"log_std": -2.5}),
    "10 epochs": Candidate(settings={"n_epochs": 10}),
    "corrects self-consumption": Candidate(residual="self-consumption"),
    "corrects MPC": Candidate(residual="MPC"),
    "corrects MPC, steps of 300 s": Candidate(
        options={"dt": 300.0}, settings={**FINER, "batch_size": 1024}, residual="MPC"
    ),
    "corrects MPC, steps of 300 s, 256 environments": Candidate(
        options={"dt": 300.0}, settings={**FINER, "num_envs": 256, "batch_size": 4096}, residual="MPC"
    ),
    "corrects MPC, steps of 300 s, meters of the last 10 s": Candidate(
        options={"dt": 300.0, "physics_substeps": 30, "metering": "past"},
        settings={**FINER, "batch_size": 1024},
        residual="MPC",
    ),
    "corrects MPC, steps of 60 s, large batches": Candidate(
        options=MINUTES,
        residual="MPC",
        settings={**FINEST, "num_envs": 256, "batch_size": 16384, "gae_lambda": 0.9, "log_std": -2.5},
    ),
    "corrects MPC, steps of 60 s": Candidate(options=MINUTES, settings=FINEST, residual="MPC"),
    "corrects MPC, steps of 60 s, carefully": Candidate(
        options=MINUTES,
        settings={**FINEST, "learning_rate": 2e-4, "final_learning_rate": 2e-5, "log_std": -3.0},
        residual="MPC",
    ),
    "corrects MPC, steps of 300 s, carefully": Candidate(
        options={"dt": 300.0},
        residual="MPC",
        settings={**FINER, "batch_size": 4096, "learning_rate": 5e-4, "final_learning_rate": 5e-5, "log_std": -2.5},
    ),
    "decides alone": Candidate(residual=None),
}
"""By name, in the table's order."""


def returns(policy: PolicySpec) -> list[float]:
    """EUR of each validation day in steps of a minute."""
    found = []
    for case in benchmark.cases(make(ENV), DAYS, split="validation"):
        env = make(ENV, **case.options)
        result = env.run_synchronous(policy.build(env, case.seed), seed=case.seed, record=("rewards",))
        found.append(team_return(env, result))
    return found


def measured(name: str, steps: int, seed: int, runs: Path) -> dict[str, Any]:
    """One training and its validation days."""
    wanted = CANDIDATES[name]
    settings = Hyperparameters(**wanted.settings)
    folder = runs / f"{name}, {steps}, {seed}"
    began = time.process_time()
    run = train(
        ENV, folder, total_steps=steps, seed=seed, residual=wanted.residual, hyperparameters=settings,
        training_options={**COARSE, **wanted.options}, validations=0, validation_episodes=0, trainer="sb3",
        progress=False,
    )  # fmt: skip
    seconds = time.process_time() - began
    rollout = settings.num_envs * settings.n_steps * AGENTS
    batch = next(size for size in range(settings.batch_size, 0, -1) if rollout % size == 0)
    updates = run.config.transitions // rollout * settings.n_epochs * (rollout // batch)
    return {
        "name": name, "seed": seed, "transitions": run.config.transitions, "updates": updates,
        "cpu_seconds": round(seconds), "returns": returns(TrainedRun(str(folder))),
    }  # fmt: skip


def table(kept: dict[str, Any]) -> str:
    """Markdown."""
    text = [
        "# Ways of training, measured on validation days\n",
        f"Made by `python training/select_training.py`: {DAYS} validation days of {ENV}, synchronous, steps of a "
        f"minute; EUR a day. Rule: {STRONGEST}; MPC: each battery for itself. One training a row; the 95 % t intervals "
        "are over days alone, paired by day. Among so many rows the best one is better than it would be again. Test "
        "days were not looked at.\n",
        *kept["notes"],
        "\n| training | seed | transitions | updates | CPU-s | return | more than the rule [95 %] | than MPC [95 %] |",
        "|---|---|---|---|---|---|---|---|",
    ]
    order = list(CANDIDATES)
    for row in sorted(kept["rows"], key=lambda row: (order.index(row["name"]), row["transitions"], row["seed"])):
        rule, mpc = (paired_difference(row["returns"], row["beside"][name]) for name in BESIDE)
        text.append(
            f"| {row['name']} | {row['seed']} | {row['transitions']:,} | {row['updates']:,} | {row['cpu_seconds']} "
            f"| {sum(row['returns']) / DAYS:.2f} | {rule} | {mpc} |"
        )
    return "\n".join(text) + "\n"


def main() -> None:
    """Train, measure, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("candidates", nargs="*", metavar="candidate", help=", ".join(CANDIDATES))
    parser.add_argument("--steps", type=int, default=1_200_000, help="transitions")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--runs", type=Path, default=Path("runs/selection"))
    parser.add_argument("--out", type=Path, default=Path("training/results/energy_management"))
    given = parser.parse_args()
    file = given.out / "selection.json"
    kept = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {"notes": [], "rows": []}
    beside = {name: returns(Baseline(name)) for name in BESIDE} if given.candidates else {}
    for name in given.candidates:
        kept["rows"].append({**measured(name, given.steps, given.seed, given.runs), "beside": beside})
        write(file, json.dumps(kept) + "\n")
    write(given.out / "selection.md", table(kept))
    print(table(kept))


if __name__ == "__main__":
    main()
