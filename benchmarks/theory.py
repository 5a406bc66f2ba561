"""Does the clock agree with closed forms? Results, tables and figures for docs/science/trust_the_clock.md.

    python -m benchmarks.theory    # from a clone; some minutes on one core

Tests ask the same of the same functions, seeds and numbers of updates (tests/laws/test_theory.py).
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from benchmarks import plant, post_office, theory_figures
from heron_env import ScheduleConfig
from heron_env.files import write_all
from heron_env.files.writing import compact
from heron_env.lab import versions

ROOT: Final = Path(__file__).parents[1]
RESULTS: Final = ROOT / "benchmarks" / "results" / "theory.json"
SEEDS, UPDATES, FEWER = 20, 50_000, 20_000
"""FEWER: for points of the figure alone."""
PERIODS: Final = (0.1, 0.2, 0.5, 1.0, 2.0, 4.0)
"""Between two updates, s."""
STEPS: Final = (0.5, 0.2, 0.05)
"""Between two decisions, s."""
NO_BREAK: Final = "\u00a0"
LONGEST: Final = 3.0
"""Delay for which the edge of stability is drawn, s."""


def results() -> dict[str, Any]:
    """All that is simulated and expected, for JSON."""
    return {
        "schema_version": 1,
        "seeds": SEEDS,
        "updates": UPDATES,
        "ages": {
            name: {
                "expected": post_office.expected_age(config),
                "by_seed": [post_office.mean_age(config, seed, UPDATES) for seed in range(SEEDS)],
            }
            for name, config in post_office.AGES.items()
        },
        "losses": {
            name: {
                "expected": post_office.expected_runs(loss).tolist(),
                "by_seed": [post_office.loss_runs(loss, seed, UPDATES).tolist() for seed in range(SEEDS)],
            }
            for name, loss in post_office.LOSSES.items()
        },
        "periods": [_by_period(loss, reorder) for loss in (0.0, 0.3) for reorder in (False, True)],
        "stability": [
            {
                "h": h,
                "gains": plant.GAINS,
                "expected": [plant.first_unstable(gain, h, plant.expected_growth) for gain in plant.GAINS],
                "simulated": [plant.first_unstable(gain, h, plant.growth) for gain in plant.GAINS],
                "edges": [plant.edge(d, h) for d in range(round(LONGEST / h) + 1)],
            }
            for h in STEPS
        ],
        "response": _responses(),
        "versions": versions(),
    }


def _by_period(loss: float, reorder: bool) -> dict[str, Any]:
    config = replace(post_office.DELAYS["lognormal"], loss=loss, reorder=reorder)
    grid = [round(float(period), 2) for period in np.geomspace(PERIODS[0], PERIODS[-1], 41)]
    seeds = range(SEEDS)
    return {
        "loss": loss,
        "reorder": reorder,
        "period": grid,
        "expected": [post_office.expected_age(replace(config, tick_interval=period)) for period in grid],
        "sent_every": PERIODS,
        "simulated": [
            float(np.mean([post_office.mean_age(replace(config, tick_interval=p), seed, FEWER) for seed in seeds]))
            for p in PERIODS
        ],
    }


def _responses() -> dict[str, list[float]]:
    late = ScheduleConfig(act_delay=plant.DEAD * plant.STEP)
    loops = {
        "prompt": (plant.PI(), ScheduleConfig()),
        "late": (plant.PI(), late),
        "predicted": (plant.SmithPredictor(plant.DEAD), late),
    }
    return {
        name: [0.0, *plant.course(control, schedule, h=plant.STEP, steps=160)]
        for name, (control, schedule) in loops.items()
    }


def score(entry: Mapping[str, Any]) -> Any:
    """How many standard errors over seeds the mean is off."""
    return post_office.standard_errors(entry["by_seed"], entry["expected"])


def _ages(found: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
    yield "delay", "loss p", "order", "closed form, s", "simulated, s", "standard errors apart"
    for name, entry in found["ages"].items():
        delay, loss, *more = name.split(", ")
        mean, error = np.mean(entry["by_seed"]), np.std(entry["by_seed"], ddof=1) / math.sqrt(found["seeds"])
        order = ", ".join(reversed(more))
        simulated = f"{mean:.4f}{NO_BREAK}±{NO_BREAK}{error:.4f}"
        yield delay, loss[5:], order, f"{entry['expected']:.4f}", simulated, f"{score(entry):+.1f}"


def _losses(found: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
    yield "losses", "share lost", "lost in a row: mean", "mean square", "standard errors apart"
    for name, entry in found["losses"].items():
        pairs = zip(entry["expected"], np.mean(entry["by_seed"], axis=0), strict=True)
        cells = [f"{form:.3f}{NO_BREAK}/{NO_BREAK}{mean:.3f}" for form, mean in pairs]
        yield name, *cells, ", ".join(f"{each:+.1f}" for each in score(entry))


TABLES: Final = {"ages": _ages, "losses": _losses}
HEADINGS: Final = {"ages": "Mean age of information, an update a second", "losses": "Losses, formula / simulation"}


def markdown(found: Mapping[str, Any]) -> str:
    """All tables."""

    def table(name: str) -> str:
        head, *rows = TABLES[name](found)
        lines = [head, ["---" if cell.isalpha() else "---:" for cell in head], *rows]
        body = "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
        return f"## {HEADINGS[name]}\n\n{body}\n"

    return "\n".join(["# The event clock and closed forms\n", *map(table, TABLES)])


def committed() -> dict[str, Any]:
    """The results in the repository."""
    found: dict[str, Any] = json.loads(RESULTS.read_text(encoding="utf-8"))
    return found


def main() -> None:
    """Simulate, compare, draw, write."""
    found = results()
    scores = np.concatenate([np.ravel(score(each)) for name in TABLES for each in found[name].values()])
    print(f"{len(scores)} means, at most {np.abs(scores).max():.2f} standard errors apart")
    for each in found["stability"]:
        print(f"h {each['h']} s: first unstable {each['simulated']}, expected {each['expected']} steps")
    figures = {RESULTS.with_name(f"{name}.svg"): theory_figures.drawn(found, name) for name in theory_figures.DRAWN}
    write_all({RESULTS: compact(found) + "\n", RESULTS.with_suffix(".md"): markdown(found), **figures})


if __name__ == "__main__":
    main()
