"""Train a policy: `python training/train.py heron/EnergyManagement-v0 runs/energy --steps 1750000 --seed 0`.

The work is done by `heron_env.learning.ppo.train`; `heron train` is the same on the command line.
"""

import argparse
import json

from heron_env.learning.ppo import train


def main() -> None:
    """Read the arguments, train, say where the run folder is."""
    parser = argparse.ArgumentParser(description="Train one PPO policy per group of agents into a run folder.")
    parser.add_argument("env_id", help="a registered environment, such as heron/EnergyManagement-v0")
    parser.add_argument("run_dir", help="folder for the run")
    parser.add_argument("--steps", type=int, default=1_750_000, help="transitions of each group")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--minutes", type=float, help="stop after so long, whatever --steps says")
    parser.add_argument("--options", type=json.loads, default={}, help="""of make(), as JSON: '{"control": "zone"}'""")
    parser.add_argument("--residual", default="default", help="baseline to correct; 'none': decide alone")
    given = parser.parse_args()
    folder = train(
        given.env_id,
        given.run_dir,
        total_steps=given.steps,
        seed=given.seed,
        env_options=given.options,
        residual=None if given.residual == "none" else given.residual,
        time_limit=None if given.minutes is None else 60.0 * given.minutes,
    )
    print(f"{folder.path}: {folder.config.transitions:,} transitions in {folder.config.seconds:.0f} s")


if __name__ == "__main__":
    main()
