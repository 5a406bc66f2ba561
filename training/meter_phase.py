"""Why does the rule lose less with messages of 6 s than of 4 s? A control: where the meter is read once, it does not.

    python training/meter_phase.py        # 20 test days, 5 minutes on one core

The meter shows the mean of the last 10 s that have ended. A question and its reply take two messages; a battery that
reads its own meter by wire then reads it 2 x delay after the tick. From 5 s on, that is one metering bin later, and
fresher. Where its own rows come by message as well, they are those of the tick, whatever the delay.
"""

import argparse
from pathlib import Path

from honest_gap import ENV, SHIPPED, WORLDS

from heron_env import Baseline, Condition, Sweep
from heron_env.lab import along
from heron_env.worlds.energy_management import STRONGEST

DELAYS = (4.0, 4.5, 4.9, 5.1, 5.5, 6.0)
OUT = Path("training/results/honest_gap/meter_phase.md")


def main() -> None:
    """Both worlds."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--days", type=int, default=20, help="held-out test days")
    parser.add_argument("--processes", type=int, default=1)
    given = parser.parse_args()
    before, after = Condition(msg_delay=4.9), Condition(msg_delay=5.1)
    lines = [
        "Share of the gain over doing nothing that the rule loses to late messages, around the delay from which its",
        f"own meter is read one bin of 10 s later; {given.days} test days, 95 % t intervals over days. Made by",
        "`python training/meter_phase.py`.",
        "",
        "| own meter | " + " | ".join(f"{delay:g} s" for delay in DELAYS) + " | from 4.9 to 5.1 s |",
        "|---" * (len(DELAYS) + 2) + "|",
    ]
    for name, world in (("by wire", SHIPPED), ("by message", "no local rows")):
        sweep = Sweep.of(
            ENV, {STRONGEST: Baseline(STRONGEST)}, along(msg_delay=DELAYS), cases=given.days, options=WORLDS[world]
        )
        found = sweep.run(processes=given.processes)
        lost = [found.point(STRONGEST, Condition(msg_delay=delay)).lost.percent() for delay in DELAYS]
        lines.append(f"| {name} | {' | '.join(lost)} | {found.lost_step(STRONGEST, before, after).percent()} |")
    OUT.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
