"""Compute the optima of held-out days (repeat 0, default constants) and write `data/optima.json`.

Run it as `python tools/compute_optima.py`. The days of evaluations come first, those of
20 test days before the others; 10 s a day, on sunny days up to 10 min. The file is saved after every day and the run
goes on where it stopped; `--again` starts anew, as it must after a change of series or physics; `--closer` tries the
days once more whose gap is still wide, and keeps the better value and bound. `--until 300` stops before the first day
that would begin later than so many seconds from now.
"""

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heron_env.files.writing import write
from heron_env.worlds.energy_management.agents import MAX_POWER
from heron_env.worlds.energy_management.calendar import (
    OPTIMA,
    evaluation_cases,
    evaluation_seed,
    read_optima,
    split_days,
)
from heron_env.worlds.energy_management.env import EnergyManagementEnv
from heron_env.worlds.energy_management.factory import energy_management
from heron_env.worlds.energy_management.optimum import GAP, DayProblem, solve

WHAT = (
    "EUR of the team at dt = 60 s in bins of 10 s, repeat 0, all bins known beforehand. value: what the optimum's "
    "set-points return in the environment; bound: what nothing can exceed; gap: between them"
)
FIRST = (("test", 20), ("test", 8), ("test", 5), ("test", 3), ("validation", 8), ("validation", 20))
"""Evaluations whose days come first."""


def fingerprint(problem: DayProblem) -> float:
    """A number that changes with series and start: mean net power of homes and zones plus the energy stored."""
    series = problem.series
    return float(np.mean(series.load - series.pv) + np.mean(series.background) + np.sum(problem.energy))


def order() -> list[int]:
    """All held-out days, those of the usual evaluations first."""
    days = [options["day"] for split, number in FIRST for options, _ in evaluation_cases(split, number)]
    return list(dict.fromkeys([*days, *split_days("test"), *split_days("validation")]))


def replayed(env: EnergyManagementEnv, day: int, seed: int, set_points: NDArray[np.float64]) -> float:
    """EUR of the team with `set_points` `[steps, batteries]` in the environment itself."""
    env.reset(seed=seed, options={"day": day})
    value = 0.0
    for row in set_points:
        env.step(dict(zip(env.agents, np.clip(row, -MAX_POWER, MAX_POWER), strict=True)))
        value += float(env.simulation.last_rewards[0])
    return value


def entry(env: EnergyManagementEnv, day: int) -> dict[str, float]:
    """Value, bound, gap and fingerprint of one day."""
    seed = evaluation_seed(day, 0)
    problem = env.problem(day, seed)
    best = solve(problem)
    value, bound = round(replayed(env, day, seed, best.set_points), 6), round(float(best.bound), 6)
    gap = round(bound - value, 6)
    return {"value": value, "bound": bound, "gap": gap, "fingerprint": round(fingerprint(problem), 9)}


def closer(one: dict[str, float], other: dict[str, float]) -> dict[str, float]:
    """The higher value and the lower bound of two entries of one day. Raises ValueError for days that differ."""
    if abs(one["fingerprint"] - other["fingerprint"]) > 1e-6:
        raise ValueError("the series have changed since: start anew with --again")
    value, bound = max(one["value"], other["value"]), min(one["bound"], other["bound"])
    return {**other, "value": value, "bound": bound, "gap": round(bound - value, 6)}


def save(path: Path, days: dict[str, dict[str, float]]) -> None:
    """Write the table, one day a line, whole or not at all."""
    lines = ",\n".join(f"  {json.dumps(day)}: {json.dumps(days[day])}" for day in sorted(days, key=int))
    write(path, f'{{"what": {json.dumps(WHAT)},\n "days": {{\n{lines}\n}}}}\n')


def main(path: Path = OPTIMA) -> None:
    """Compute what is missing."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--again", action="store_true", help="start anew")
    parser.add_argument("--closer", action="store_true", help="try days with a wide gap once more")
    parser.add_argument("--until", type=float, default=float("inf"), help="s after which no day is begun")
    asked, begun = parser.parse_args(), time.perf_counter()
    known_days = {} if asked.again or not path.is_file() else read_optima(path)
    days: dict[str, Any] = {str(day): known for day, known in known_days.items()}
    env = energy_management()
    for day in order():
        start = time.perf_counter()
        known = days.get(str(day))
        if start - begun > asked.until or (known and not (asked.closer and known["gap"] > GAP)):
            continue
        found = entry(env, day)
        days[str(day)] = closer(known, found) if known else found
        save(path, days)
        print(f"day {day}: {days[str(day)]} in {time.perf_counter() - start:.1f} s", flush=True)


if __name__ == "__main__":
    main()
