"""Does PPO learn on heron/Spread-v0 what it learns on mpe2's simple_spread? Same program, same settings, same seeds.

    python training/spread_parity.py                           # both sides, 5 seeds, 300,000 environment steps each
    python training/spread_parity.py --sides mpe2 --seeds 0    # one training, and the report
    python training/spread_parity.py --only-report             # of the trainings that are there

Needs mpe2 for its side: `pip install mpe2`, in an environment of its own; it is no dependency of heron_env. Each
training is kept as SIDE-SEED.json in --runs, and one that is there is not repeated. The report, parity.json with
parity.md and parity.svg in --out, compares the mean return of the episodes during training (an agent's own rewards
summed over the episode, mean over agents, as both sides define them) and that of the final deterministic policies.
"""

import argparse
import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from spread_ppo import AGENTS, EPISODE, SIDES, Returns, Settings, all_versions, as_kept, levels, played

from heron_env import paired_difference
from heron_env.files import write
from heron_env.lab import mean_interval
from heron_env.lab.figure_style import BLUE, GREY, PURPLE, VERMILION, blank, end_labels, house_style, to_svg
from heron_env.lab.robust_stats import Estimate

SCHEMA = 1
WINDOW = 0.1
"""The last part of a training, whose mean counts as its result."""
ALT = (
    "Two learning curves with bands, on heron/Spread-v0 and on mpe2's simple_spread, lie on each other; below, their "
    "difference by seed stays around zero"
)


def trained(side: str, seed: int, steps: int, settings: Settings, test_episodes: int) -> dict[str, Any]:
    """Train once; its curve, what its final policy earns on its own side, and what it took."""
    torch.set_num_threads(1)
    venv = SIDES[side](settings.num_envs)
    model, returns = settings.model(venv, seed), Returns()
    began, cpu = time.perf_counter(), time.process_time()
    model.learn(steps * AGENTS, callback=returns)
    seconds, cpu_seconds = time.perf_counter() - began, time.process_time() - cpu
    venv.close()
    return {
        "side": side, "seed": seed, "steps": model.num_timesteps // AGENTS, "settings": as_kept(settings),
        "curve": returns.curve, "final": round(played(model, SIDES[side], test_episodes), 5),
        "seconds": round(seconds, 1), "cpu_seconds": round(cpu_seconds, 1),
        "load": round(float(np.mean(returns.loads)), 2), "versions": all_versions(side),
    }  # fmt: skip


def train_missing(
    sides: Sequence[str], seeds: Sequence[int], steps: int, settings: Settings, runs: Path, test_episodes: int
) -> None:
    """Train what `runs` does not hold yet, seed after seed."""
    runs.mkdir(parents=True, exist_ok=True)
    for seed in seeds:
        for side in sides:
            file = runs / f"{side}-{seed}.json"
            if file.is_file():
                continue
            run = trained(side, seed, steps, settings, test_episodes)
            write(file, json.dumps(run) + "\n")
            print(f"{side}, seed {seed}: {run['final']:.2f} in {run['seconds']:.0f} s", flush=True)


def binned(curve: Sequence[Sequence[float]], points: int) -> list[list[float]]:
    """The curve's rollouts in `points` parts of equal length: (environment steps at the end, mean return)."""
    parts = np.array_split(np.array(curve), points)
    return [[int(part[-1, 0]), round(float(np.average(part[:, 1], weights=part[:, 2])), 5)] for part in parts]


def measures(run: dict[str, Any]) -> dict[str, float]:
    """What is compared of one training."""
    returns = np.array(run["curve"])[:, 1]
    last = max(1, round(WINDOW * len(returns)))
    return {
        "training, last tenth": float(returns[-last:].mean()),
        "training, whole course": float(returns.mean()),
        "final policy, no exploration": run["final"],
    }


def compared(runs: Sequence[dict[str, Any]]) -> dict[str, tuple[Estimate, Estimate, Estimate]]:
    """By measure: means with t intervals of both sides, and of their difference by seed."""
    seeds = paired_seeds(runs)
    found = {(run["side"], run["seed"]): measures(run) for run in runs}
    table = {}
    for name in next(iter(found.values())):
        ours, theirs = ([found[side, seed][name] for seed in seeds] for side in ("heron", "mpe2"))
        table[name] = (mean_interval(ours), mean_interval(theirs), paired_difference(ours, theirs))
    return table


def paired_seeds(runs: Sequence[dict[str, Any]]) -> list[int]:
    """Those that both sides have."""
    have = {side: {run["seed"] for run in runs if run["side"] == side} for side in SIDES}
    return sorted(set.intersection(*have.values()))


def verdict(name: str, study: dict[str, Any]) -> str:
    """In words, what the interval of a measure's difference says, beside what was learned at all."""
    ours, theirs, change = compared(study["runs"])[name]
    if change.n < 2:
        return f"- {name}: one seed says nothing."
    gain = (ours.mean + theirs.mean) / 2.0 - study["levels"]["random"]
    farthest = max(abs(change.low), abs(change.high))
    says = "differ" if change.excludes_zero else "agree within the interval"
    return (
        f"- {name}: they {says}, whose farther end, {farthest:.2f}, is {farthest / abs(gain):.0%} of what was gained "
        f"over random actions ({gain:.2f})."
    )


def study_of(runs: Sequence[dict[str, Any]], points: int, test_episodes: int) -> dict[str, Any]:
    """What parity.json keeps. Raises SystemExit where trainings with different settings lie together."""
    shared = [{name: run[name] for name in ("steps", "settings")} for run in runs]
    if any(one != shared[0] for one in shared):
        raise SystemExit("these trainings differ in settings or length; keep each study in a folder of its own")
    found: dict[str, str] = {}
    for run in runs:
        found |= run["versions"]
    names = ("side", "seed", "final", "seconds", "cpu_seconds", "load")
    return {
        "schema_version": SCHEMA, **shared[0], "test_episodes": test_episodes, "versions": found,
        "levels": levels(test_episodes),
        "runs": [{**{name: run[name] for name in names}, "curve": binned(run["curve"], points)} for run in runs],
    }  # fmt: skip


def table_of(study: dict[str, Any]) -> str:
    """parity.md."""
    runs = study["runs"]
    seeds, table = paired_seeds(runs), compared(runs)
    settings = ", ".join(f"{name} {value}" for name, value in study["settings"].items())
    cpu = {side: np.mean([run["cpu_seconds"] for run in runs if run["side"] == side]) for side in SIDES}
    lines = [
        f"Stable-Baselines3's PPO on heron/Spread-v0 and on mpe2's simple_spread: {AGENTS} agents, continuous actions,",
        f"local_ratio 0.5, episodes of {EPISODE} steps, {study['steps']:,} environment steps, seeds {seeds}.",
        "Mean return of an agent over an episode: means over seeds with 95 % t intervals, differences paired by seed.",
        "",
        "| | heron | mpe2 | heron - mpe2 |",
        "|---|---|---|---|",
        *(f"| {name} | {' | '.join(map(str, row))} |" for name, row in table.items()),
        "",
        *(verdict(name, study) for name in table),
        "",
        f"CPU time of one training on a busy machine: heron {cpu['heron']:.0f} s, mpe2 {cpu['mpe2']:.0f} s.",
        f"PPO: {settings}; one policy for all agents, nothing normalised but advantages.",
        f"Without learning: {', '.join(f'{name} {level:.2f}' for name, level in study['levels'].items())}.",
        "",
        f"![{ALT}](parity.svg)",
    ]
    return "\n".join(lines) + "\n"


def figure_of(study: dict[str, Any]) -> Any:
    """Both curves in one panel, their paired difference in the other."""
    runs = study["runs"]
    seeds = paired_seeds(runs)
    curves = {(run["side"], run["seed"]): np.array(run["curve"]) for run in runs}
    steps = curves["heron", seeds[0]][:, 0]
    values = {side: np.array([curves[side, seed][:, 1] for seed in seeds]) for side in SIDES}
    with house_style():
        figure, (top, bottom) = blank(5.4, rows=2, sharex=True, height_ratios=[1.6, 1.0])
        labels = []
        for side, colour, width in (("heron", BLUE, 3.0), ("mpe2", VERMILION, 1.4)):
            mean = banded(top, steps, values[side], colour, width)
            labels.append((mean, side, colour))
        for name in ("random", "nearest landmark"):
            top.axhline(study["levels"][name], color=GREY, linewidth=1.2, linestyle=(0, (5, 3)))
            labels.append((study["levels"][name], name, GREY))
        end_labels(top, labels, gap=0.07)
        change = banded(bottom, steps, values["heron"] - values["mpe2"], PURPLE, 1.8)
        bottom.axhline(0.0, color=GREY, linewidth=1.2)
        end_labels(bottom, [(change, "heron - mpe2", PURPLE)])
        top.set_ylabel("return of an agent")
        bottom.set_ylabel("difference")
        bottom.set_xlabel("environment steps")
        bottom.xaxis.set_major_formatter(lambda value, _: f"{value / 1000:g} k" if value else "0")
        top.set_title(f"The same PPO on both: mean of {len(seeds)} seeds, 95 % t intervals")
        bottom.set_title("Difference, paired by seed")
        return figure


def banded(axes: Any, steps: NDArray[np.float64], values: NDArray[np.float64], colour: str, width: float) -> float:
    """Draw the mean over seeds of `values` `[seeds, points]` with its band; the last mean."""
    intervals = [mean_interval(column) for column in values.T]
    means = [one.mean for one in intervals]
    axes.plot(steps, means, color=colour, linewidth=width)
    axes.fill_between(
        steps, [v.low for v in intervals], [v.high for v in intervals], color=colour, alpha=0.2, linewidth=0
    )
    return means[-1]


def report(runs: Path, out: Path, points: int, test_episodes: int) -> str:
    """Write parity.json, parity.md and parity.svg of the trainings in `runs`; the table, if there is one."""
    found = [json.loads(file.read_text(encoding="utf-8")) for file in sorted(runs.glob("*-*.json"))]
    if not paired_seeds(found):
        return f"{runs} holds no seed with both sides yet: no report"
    study = study_of(found, points, test_episodes)
    out.mkdir(parents=True, exist_ok=True)
    write(out / "parity.json", json.dumps(study) + "\n")
    text = table_of(study)
    write(out / "parity.md", text)
    write(out / "parity.svg", to_svg(figure_of(study), text=True))
    return text


def main() -> None:
    """Train what is not there yet, compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sides", nargs="+", choices=list(SIDES), default=list(SIDES))
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2, 3, 4])
    parser.add_argument("--steps", type=int, default=300_000, help="environment steps of each training")
    parser.add_argument("--points", type=int, default=30, help="on the kept curve")
    parser.add_argument("--test-episodes", type=int, default=400, help="for the final policy")
    parser.add_argument("--runs", type=Path, default=Path("runs/spread_parity"), help="where trainings are kept")
    parser.add_argument("--out", type=Path, default=Path("training/results/spread"))
    parser.add_argument("--only-report", action="store_true")
    given = parser.parse_args()
    if not given.only_report:
        train_missing(given.sides, given.seeds, given.steps, Settings(), given.runs, given.test_episodes)
    print(report(given.runs, given.out, given.points, given.test_episodes))


if __name__ == "__main__":
    main()
