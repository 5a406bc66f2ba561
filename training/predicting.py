"""What a predictor gives back of what delay takes: rules on three worlds, with hold and with prediction.

    python training/predicting.py    # ten minutes; training/results/predicting.json, and the table of the docs

The share is (J_predict - J_hold) / (J_hold(sync) - J_hold) of each delay, a ratio of means over the same cases.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

from heron_env.files import write_all
from heron_env.lab import Condition, Sweep

OUT = Path("training/results/predicting.json")
CASES = 40
WORLDS: dict[str, tuple[dict[str, Any], str, tuple[Condition, ...]]] = {
    "gymnasium:CartPole-v1": (
        {"noop": 0, "max_steps": 200}, "training/predicting.py:upright",
        (Condition(act_delay=5.0), Condition(act_delay=6.0)),
    ),
    "heron/EnergyManagement-v1": (
        {}, "grid-friendly with zone feedback", (Condition(act_delay=60.0), Condition(act_delay=180.0)),
    ),
    "heron/TrafficCorridor-v0": ({}, "actuated", (Condition(act_delay=5.0), Condition(act_delay=10.0))),
}  # fmt: skip
"""Options, the rule, and the delays."""


def upright(vector: Any) -> int:
    """CartPole: push to where the pole falls, a little ahead."""
    return int(np.dot(vector[:4], [0.05, 0.15, 1.0, 0.35]) > 0.0)


def measured(env: str) -> list[dict[str, Any]]:
    """A row for each delay: mean returns with 95 % intervals, and the share that prediction gives back."""
    options, rule, delays = WORLDS[env]
    sweep = Sweep.of(env, {"hold": rule, "predict": f"{rule}+predict"}, delays, cases=CASES, options=options)
    result = sweep.run(processes=2, progress=False)
    sync, rows = result.table("hold"), []
    for delay in delays:
        hold, predict = (result.table(name, delay) for name in ("hold", "predict"))
        share = result.intervals.share(predict - hold, sync - hold)
        figures = {"sync": sync, "hold": hold, "predict": predict, "predict minus hold": predict - hold}
        row = {name: result.intervals.mean(values).to_dict() for name, values in figures.items()}
        rows.append({"delay": delay.name, **row, "share": share.to_dict() if share.known else None})
    return rows


def text(estimate: dict[str, float] | None, unit: float = 1.0) -> str:
    """`1.52 [1.41, 1.63]`."""
    if estimate is None:
        return "-"
    value, low, high = (f"{unit * estimate[name]:.4g}" for name in ("value", "low", "high"))
    return f"{value} [{low}, {high}]"


def main(*worlds: str) -> None:
    """Run, keep, print."""
    kept = json.loads(OUT.read_text()) if OUT.exists() else {}
    for env in worlds or WORLDS:
        kept[env] = measured(env)
        write_all({OUT: json.dumps(kept, indent=1) + "\n"})
    print("| world, delay | without delay | hold | predict | predict minus hold | given back, % |")
    print("|---|---:|---:|---:|---:|---:|")
    for env, rows in kept.items():
        for row in rows:
            cells = [text(row[name]) for name in ("sync", "hold", "predict", "predict minus hold")]
            print(f"| {env}, {row['delay']} | {' | '.join(cells)} | {text(row['share'], 100.0)} |")


if __name__ == "__main__":
    main(*sys.argv[1:])
