"""Does a critic that sees the whole state help? Trains both critics from the same seeds and compares them pairwise.

    python training/critic_study.py heron/EnergyManagement-v1 --steps 300000 --seeds 0 1 2 3 4
    python training/critic_study.py heron/BatteryGrid-v0 --steps 100000 --option scope=owner --name BatteryGrid-owner
    python training/critic_study.py                             # only the table of the studies that are there

Each study is kept as NAME.json in --out, and table.md compares all of them: mean return of the deterministic policy on
the validation episodes at the end, and the area under its learning curve, both as central minus local, paired by seed.
Validation episodes are the environment's, played with the training options; test cases are not touched.
"""

import argparse
import csv
import json
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np

from heron_env import mean_interval, paired_difference, train
from heron_env.cli import parsed_options
from heron_env.files import write
from heron_env.lab import versions

SCHEMA = 1
CRITICS = ("local", "central")
COLUMNS = (
    "study", "transitions", "seeds", "do nothing", "local", "central", "central - local [95 %]",
    "area under the curve, difference [95 %]", "CPU time",
)  # fmt: skip


def run(env_id: str, options: dict[str, Any], critic: str, seed: int, steps: int, points: int) -> dict[str, Any]:
    """Train once, in a folder that is thrown away; what the study keeps of it."""
    import stable_baselines3  # noqa: F401  # not to be counted below

    with tempfile.TemporaryDirectory() as folder:
        began = time.process_time()
        finished = train(
            env_id, folder, total_steps=steps, seed=seed, env_options=options, critic=critic,
            validations=points, validation_episodes=12, trainer="sb3", progress=False,
        )  # fmt: skip
        cpu = time.process_time() - began
        with (Path(folder) / "progress.csv").open(encoding="utf-8", newline="") as stream:
            curve = [
                [row["group"], int(row["transitions"]), float(row["validation_return"])]
                for row in csv.DictReader(stream)
            ]
    config = finished.config
    return {
        "critic": critic, "seed": seed, "final": config.validation["trained"], "transitions": config.transitions,
        "cpu_seconds": round(cpu, 2), "seconds": config.seconds, "training_options": config.training_options,
        "baselines": {name: value for name, value in config.validation.items() if name != "trained"}, "curve": curve,
    }  # fmt: skip


def area(one: dict[str, Any]) -> float:
    """Mean return over the course of the training: the area under the learning curve / its length, mean over groups."""
    areas = []
    for _, rows in groupby(one["curve"], key=lambda row: row[0]):
        table = np.array([row[1:] for row in rows])
        areas.append(np.trapezoid(table[:, 1], table[:, 0]) / np.ptp(table[:, 0]))
    return float(np.mean(areas))


def row(study: dict[str, Any]) -> list[str]:
    """The table's line for a study."""
    runs = {critic: [one for one in study["runs"] if one["critic"] == critic] for critic in CRITICS}
    final = {critic: [one["final"] for one in runs[critic]] for critic in CRITICS}
    areas = {critic: [area(one) for one in runs[critic]] for critic in CRITICS}
    cpu = [sum(one["cpu_seconds"] for one in runs[critic]) for critic in CRITICS]
    first = study["runs"][0]
    return [
        study["name"], f"{first['transitions']:,}", str(len(final["local"])), f"{first['baselines']['do nothing']:.2f}",
        str(mean_interval(final["local"])), str(mean_interval(final["central"])),
        str(paired_difference(final["central"], final["local"])),
        str(paired_difference(areas["central"], areas["local"])),
        f"{cpu[1] / cpu[0] - 1.0:+.0%}",
    ]  # fmt: skip


def verdict(study: dict[str, Any]) -> str:
    """In words, what the intervals say."""
    final = {c: [one["final"] for one in study["runs"] if one["critic"] == c] for c in CRITICS}
    gain = paired_difference(final["central"], final["local"])
    if gain.n < 2:
        return f"- {study['name']}: one seed says nothing."
    if not gain.excludes_zero:
        return (
            f"- {study['name']}: {gain.n} seeds can't tell them apart; what lies between them is within "
            f"[{gain.low:.2f}, {gain.high:.2f}]."
        )
    return f"- {study['name']}: the central critic {'helps' if gain.mean > 0 else 'hurts'}: {gain}, paired by seed."


def report(out: Path) -> str:
    """All studies of a folder as Markdown."""
    studies = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(out.glob("*.json"))]
    lines = [
        "Central against local critic: PPO with equal seeds and settings; the actor sees the same in both. Returns of",
        "the team with the deterministic policy at the end, on 12 validation episodes played with the training",
        "options: means over the seeds with 95 % intervals, differences paired by seed. One in twenty such intervals",
        "misses the truth by chance. The area under the learning curve is divided by its length: the mean return over",
        "the training. CPU time: of the whole training, central against local.",
        "",
        f"| {' | '.join(COLUMNS)} |",
        f"|{'---|' * len(COLUMNS)}",
        *(f"| {' | '.join(row(study))} |" for study in studies),
        "",
        *(verdict(study) for study in studies),
    ]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Train, keep, compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("env", nargs="?", help="a registered environment; none: only the table")
    parser.add_argument("--steps", type=int, default=300_000, help="transitions of each group in each training")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2, 3, 4])
    parser.add_argument("--option", action="append", default=[], help="of the environment, NAME=VALUE; repeatable")
    parser.add_argument("--name", help="of the study; default: the environment's")
    parser.add_argument("--points", type=int, default=10, help="measurements on the learning curve")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("training/results/critic"))
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    if given.env is not None:
        options = parsed_options(given.option)
        tasks = [(given.env, options, c, seed, given.steps, given.points) for seed in given.seeds for c in CRITICS]
        with ProcessPoolExecutor(given.processes) as pool:
            runs = list(pool.map(run, *zip(*tasks, strict=True)))
        name = given.name or given.env.rpartition("/")[2].partition("-v")[0]
        study = {
            "schema_version": SCHEMA, "name": name, "env_id": given.env, "env_options": options, "runs": runs,
            "versions": versions(),
        }  # fmt: skip
        write(given.out / f"{name}.json", json.dumps(study) + "\n")
    text = report(given.out)
    write(given.out / "table.md", text)
    print(text)


if __name__ == "__main__":
    main()
