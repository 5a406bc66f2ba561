"""Compute the optima of the held-out days (repeat 0, default constants) and write `data/optima.json`.

Run it as `python -m heron_env.domains.energy_management.compute_optima`. Test days first, then validation days; 10 to
40 s each. The file is saved after every day and the run goes on where it stopped; `--again` starts anew, as it must
after a change of series or physics.
"""

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np

from heron_env.domains.energy_management.env import EnergyManagementEnv
from heron_env.domains.energy_management.evaluation import OPTIMA, evaluation_seed, split_days
from heron_env.domains.energy_management.factory import energy_management
from heron_env.domains.energy_management.optimum import Problem, solve

WHAT = (
    "EUR of the team at dt = 60 s, repeat 0. value: what the optimum's set-points return in the environment; "
    "bound: of the relaxed linear program"
)


def fingerprint(problem: Problem) -> float:
    """A number that changes with series and start: mean net power of homes and zones plus the energy stored."""
    series = problem.series
    return float(np.mean(series.load - series.pv) + np.mean(series.background) + np.sum(problem.energy))


def entry(env: EnergyManagementEnv, day: int) -> dict[str, float]:
    """Value, bound and fingerprint of one day."""
    problem = env.problem(day, evaluation_seed(day, 0))
    best = solve(problem)
    return {"value": round(best.value, 6), "bound": round(best.bound, 6), "fingerprint": round(fingerprint(problem), 9)}


def save(path: Path, days: dict[str, dict[str, float]]) -> None:
    """Write the table, one day a line, whole or not at all."""
    lines = ",\n".join(f"  {json.dumps(day)}: {json.dumps(days[day])}" for day in sorted(days, key=int))
    temporary = path.with_suffix(".part")
    temporary.write_text(f'{{"what": {json.dumps(WHAT)},\n "days": {{\n{lines}\n}}}}\n', encoding="utf-8")
    temporary.replace(path)


def main(path: Path = OPTIMA) -> None:
    """Compute what is missing."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--again", action="store_true", help="start anew")
    again = parser.parse_args().again
    days: dict[str, Any] = {} if again or not path.is_file() else json.loads(path.read_text(encoding="utf-8"))["days"]
    env = energy_management()
    for day in (*split_days("test"), *split_days("validation")):
        if str(day) in days:
            continue
        start = time.perf_counter()
        days[str(day)] = entry(env, day)
        save(path, days)
        print(f"day {day}: {days[str(day)]} in {time.perf_counter() - start:.1f} s", flush=True)


if __name__ == "__main__":
    main()
