"""What PPO learns on the study graph, trained without and with delays, beside both processes and local search.

The figures that are kept are of Stable-Baselines3's PPO inside `train`, which heron_env had until version 0.2 (commit
5762c217), "with delays" under its TrainingDelays(observation=(0, 2)): observations 0, 1 or 2 steps old, drawn for each
agent and episode. This command trains with our own, under a schedule that draws such delays.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from heron_env import DrawnSchedule, ScheduleConfig, make
from heron_env.files import write
from heron_env.lab import Estimate, Intervals, load_policy, train
from training import packed
from training.coloring.bars import Bar, Found, Setting

ENV = "heron/GraphColoring-v0"
ARMS: Final = ("PPO", "PPO with delays")
BASELINES: Final = ("stable process", "seed process", "dsa")
SEEDS, STARTS, STEPS = 3, 100, 600_000
FIRST_START: Final = 1_000_000
"""Seeds of the held-out starts; training uses none of them."""
CLOCKS: Final = {"synchronous": None, "1.7 s late": ScheduleConfig(msg_delay=1.7)}
KPIS: Final = {
    "conflicts": "conflicts",
    "rounds": "rounds",
    "consensus": "consensus",
    "first_valid": "s to 0 conflicts",
}
MOST: Final = {"conflicts": 23.0, "rounds": 120.0, "first_valid": 120.0}
"""Edges, boundaries, s: what there is at most, and at least nothing."""
FILE = "learning.json.gz"
RUNS = Path("runs/coloring")


def trained(arm: str, seed: int, steps: int) -> Path:
    """The run folder of an arm and seed; one that is finished is taken as it is."""
    folder = RUNS / f"{arm.replace(' ', '-')}-{steps}-{seed}"
    if not (folder / "config.json").exists():
        schedule = drawn_delays() if arm == "PPO with delays" else None
        train(ENV, folder, total_steps=steps, seed=seed, schedule=schedule, progress=False)
    return folder


def drawn_delays() -> DrawnSchedule:
    """Observations 0, 1 or 2 steps old: an entry for each agent, so that each has a draw of its own."""
    env = make(ENV)
    ages = [0.0, env.dt, 2.0 * env.dt]
    return DrawnSchedule({agent: {"obs_delay": ages} for agent in env.possible_agents})


def played(policies: Any, clock: str, starts: int) -> dict[str, list[float]]:
    """KPIs by start."""
    env, schedule = make(ENV, start="random"), CLOCKS[clock]
    runs = []
    for seed in range(FIRST_START, FIRST_START + starts):
        if schedule is None:
            runs.append(env.run_synchronous(policies, seed=seed).kpis)
        else:
            runs.append(env.run_event_driven(policies, seed=seed, schedule=schedule).kpis)
    return {name: [run[name] for run in runs] for name in KPIS}


def measured(setting: Setting) -> dict[str, dict[str, Any]]:
    """`[runs, starts]` by policy, clock and KPI."""
    seeds, starts, steps = (1, 10, 20_000) if setting.quick else (SEEDS, STARTS, STEPS)
    found: dict[str, dict[str, Any]] = {}
    for arm in ARMS:
        folders = [trained(arm, seed, steps) for seed in range(seeds)]
        for clock in CLOCKS:
            runs = [played(load_policy(folder), clock, starts) for folder in folders]
            found.setdefault(arm, {})[clock] = {name: [run[name] for run in runs] for name in KPIS}
    offered = make(ENV).benchmark().baselines
    assert offered is not None
    for name in BASELINES:
        for clock in CLOCKS:
            runs = played(offered(0)[name], clock, starts)
            found.setdefault(name, {})[clock] = {kpi: [values] for kpi, values in runs.items()}
    return found


def estimated(kpi: str, values: list[list[float]]) -> Estimate:
    """The mean over training seeds and starts, with its 95 % interval.

    Of consensus, a share, the interval is Wilson's; of the others t's, cut where there can be no less or no more.
    """
    make = Intervals(range(len(values[0])))
    if kpi == "consensus":
        return make.proportion(np.array(values))
    found = make.mean(np.array(values))
    return replace(found, low=max(found.low, 0.0), high=min(found.high, MOST[kpi]))


def table(found: dict[str, dict[str, Any]]) -> str:
    """In Markdown: policies, clocks, KPIs."""
    lines = ["| policy | clock | " + " | ".join(KPIS.values()) + " |", "|---|---|" + "---|" * len(KPIS)]
    for policy, clocks in found.items():
        for clock, kpis in clocks.items():
            cells = [estimated(name, kpis[name]) for name in KPIS]
            told = " | ".join(f"{one.value:.2f} [{one.low:.2f}, {one.high:.2f}]" for one in cells)
            lines.append(f"| {policy} | {clock} | {told} |")
    return "\n".join(lines) + "\n"


def compared(setting: Setting) -> Found:
    """Train, play, and tell."""
    found = measured(setting)
    if setting.figures is not None:
        write(setting.figures / FILE, packed.dumped(found))
        write(setting.figures / "learning.md", table(found))
    print(table(found))
    words = "; ".join(
        f"{policy} {clock}: {estimated('conflicts', kpis['conflicts']).value:.2f} conflicts, "
        f"{100 * estimated('consensus', kpis['consensus']).value:.0f} %"
        for policy, clocks in found.items()
        for clock, kpis in clocks.items()
    )
    return Found(words, True, {})


BARS = (
    Bar(
        "ppo",
        "PPO on clu15, trained without and with TrainingDelays(observation=(0, 2)), 3 seeds, 100 held-out starts",
        "conflicts, rounds, consensus beside both processes and DSA, synchronous and 1.7 s late, intervals",
        compared,
    ),
)
