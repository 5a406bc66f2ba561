"""Train, evaluate on both clocks, write a report: `python examples/demo.py [--short] [--seed N] [--out DIR]`."""

import argparse
import shutil
import sys
from pathlib import Path

from heron_env import Condition, Sweep, make, train
from heron_env.lab import Sources, along, one_at_a_time, report_of, write_report

ENV = "heron/EnergyManagement-v1"
NETWORK = Condition(obs_delay=6.0, msg_delay=6.0, act_delay=30.0, jitter=0.2, loss=0.05, noise=0.1)

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--short", action="store_true", help="a few seconds of training and two days, for CI")
    parser.add_argument("--seed", type=int, default=0, help="of the training")
    parser.add_argument("--out", type=Path, default=Path("runs/demo"), help="for the policy, two sweeps and the report")
    options = parser.parse_args()
    seconds, days, cause_days = (25.0, 2, 1) if options.short else (90.0, 10, 3)
    sweeps = options.out / "delays", options.out / "causes"
    for folder in sweeps:
        if (folder / "sweep.json").is_file():
            shutil.rmtree(folder)  # of another policy

    run = train(ENV, options.out / "policy", total_steps=1_200_000, time_limit=seconds, seed=options.seed)
    policy, alone = str(run.path), ("do nothing", "random")
    names = [name for name in dict.fromkeys([run.config.base, make(ENV).benchmark().strongest, *alone]) if name]
    policies = {"trained": policy, **{name: name for name in names}}
    late = along(act_delay=(0.0, 60.0) if options.short else (0.0, 30.0, 60.0, 120.0))
    delays = Sweep.of(ENV, policies, late, cases=days, sync_only=alone).run(sweeps[0])
    causes = Sweep.of(ENV, {"trained": policy}, one_at_a_time(NETWORK), cases=cause_days).run(sweeps[1])
    report = report_of(Sources(sweeps=[delays, causes], runs=[run]))
    write_report(options.out, report)

    print("\n".join([*report.finding, f"{options.out / 'report.html'}"]))
    own, *others = (delays.point(name).mean.value for name in ("trained", *alone))
    sys.exit(0 if own > max(others) else "In the mean the policy earns no more than chance or doing nothing.")
