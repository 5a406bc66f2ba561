"""How well the event clock keeps to the wall clock: BatteryGrid with ten batteries at 10 Hz for 60 s.

python -m benchmarks.real_time_jitter    # a minute; writes benchmarks/results/real_time.json
"""

import json
from pathlib import Path

from heron_env import ScheduleConfig, make
from heron_env.files import write_all
from heron_env.lab import run_real_time, versions

OUT = Path("benchmarks/results/real_time.json")
NETWORK = ScheduleConfig(msg_delay=0.01, act_delay=0.02, jitter_type="uniform", jitter_ratio=0.5, loss=0.01)


def main() -> None:
    """Run, print, write."""
    env = make("heron/BatteryGrid-v0", num_batteries=10, dt=0.1, max_steps=600)
    rule = {"battery": lambda seen: 0.2 * (0.5 - seen[:1])}
    env.run_event_driven(rule, seed=0, schedule=NETWORK, t_end=1.0)  # compile
    _, told = run_real_time(env, rule, seed=0, schedule=NETWORK)
    print(told)
    write_all({OUT: json.dumps({"schema_version": 1, **told.to_dict(), "versions": versions()}, indent=1) + "\n"})


if __name__ == "__main__":
    main()
