"""Why does the rule lose less with messages of 120 s than of 60 s? A control: the same days under clouds twice as long.

    python training/cloud_phase.py        # 20 test days, a quarter of an hour on one core

A request and its reply take two messages, so that a decision rests on a zone's power 2 x delay old, and holds for a
minute. If that answers a cloud half a cycle late, it pushes the wrong way; a whole cycle late, it fits again. Then the
worst delay must grow with the clouds' length, and nothing else in the world may have changed.
"""

import argparse
import os
import subprocess
import sys
from pathlib import Path
from tempfile import mkdtemp

from heron_env.files import write

DELAYS = (30.0, 60.0, 90.0, 120.0, 180.0, 240.0)
OUT = Path("training/results/honest_gap/cloud_phase.md")


def losses(stretch: float, days: int) -> list[str]:
    """A line of the table for clouds `stretch` times as long as shipped; in a process of its own."""
    from heron_env.worlds.energy_management import days_tables

    days_tables.CYCLE = tuple(stretch * seconds for seconds in days_tables.CYCLE)  # type: ignore[misc]
    from heron_env import Condition, make, team_return
    from heron_env.lab import Intervals, benchmark
    from heron_env.lab.benchmark import NOTHING
    from heron_env.worlds.energy_management import STRONGEST

    env_id, rows = "heron/EnergyManagement-v1", []
    cases = benchmark.cases(make(env_id), days)
    for case in cases:
        env = make(env_id, **case.options)
        offered = benchmark.baselines(env)
        rule, idle = ({**offered[name]} for name in (STRONGEST, NOTHING))
        row = [team_return(env, env.run_synchronous(p, seed=case.seed, record=("rewards",))) for p in (idle, rule)]
        for delay in DELAYS:
            schedule = Condition(msg_delay=delay).schedule(env)
            late = env.run_event_driven(rule, seed=case.seed, schedule=schedule, record=("rewards",))
            row.append(team_return(env, late))
        rows.append(row)
    idle, sync, *late = zip(*rows, strict=True)
    over = Intervals([case.options["day"] for case in cases])
    gain = [after - before for before, after in zip(idle, sync, strict=True)]
    shares = (over.share([a - b for a, b in zip(sync, values, strict=True)], gain) for values in late)
    low, high = days_tables.CYCLE
    return [f"{low:g} to {high:g} s", *(share.percent() for share in shares)]


def main() -> None:
    """Both worlds, one process each: the clouds' length is compiled in."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--days", type=int, default=20, help="held-out test days")
    parser.add_argument("--stretch", type=float, help="only this world's line, for the process that makes it")
    given = parser.parse_args()
    if given.stretch is not None:
        print("| " + " | ".join(losses(given.stretch, given.days)) + " |")
        return
    lines = [
        "Share of the gain over doing nothing that the rule loses to late messages, by the length of a cloud and the",
        f"gap behind it; {given.days} test days, 95 % t intervals over days. Made by `python training/cloud_phase.py`.",
        "",
        "| clouds | " + " | ".join(f"{delay:g} s" for delay in DELAYS) + " |",
        "|---" * (len(DELAYS) + 1) + "|",
    ]
    for stretch in (1.0, 2.0):
        own_cache = {**os.environ, "HERON_CACHE_DIR": mkdtemp()}
        command = [sys.executable, __file__, "--days", str(given.days), "--stretch", str(stretch)]
        lines.append(subprocess.run(command, env=own_cache, check=True, capture_output=True, text=True).stdout.strip())
    OUT.parent.mkdir(parents=True, exist_ok=True)
    write(OUT, "\n".join(lines) + "\n")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
