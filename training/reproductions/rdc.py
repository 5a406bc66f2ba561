"""What do late sensors cost agents in Spread, and what gives it back? After Fu et al. (RDC, 2025), on this clock.

    python -m training.reproductions.rdc               # 25 minutes of CPU time; it goes on where it stopped
    python -m training.reproductions.rdc --report      # only the table and the figure of what is there

Three agents, 25 steps, discrete pushes; what an agent sees of each landmark and of each other agent is late by itself
(sensed_spread.py): by a fixed number of steps, or each report by a number drawn anew, 3 to 9 or 6 to 12, each as
likely. PPO and VDN learn without delay; PPO learns under 3 to 9, and again ("aware") with the ages in sight and a
recurrent layer. Reckoned: a policy made without delay is shown where things are now if they stand still.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from heron_env import Condition, Empirical, Hyperparameters, ScheduleConfig
from heron_env.lab import SYNC, Baseline, TrainedRun
from heron_env.lab.benchmark import NOTHING, RANDOM
from heron_env.lab.figure_style import BLUE, GREEN, GREY, ORANGE, PURPLE, SKY, VERMILION
from training.board import SETTINGS
from training.reproductions.late_spread import STEP, Arm, Study, Training
from training.reproductions.sensed_spread import Reckoning

ENV: Final = "training.reproductions.sensed_spread:SensedSpread"


def uniform(least: int, most: int) -> Empirical:
    """So many steps, each number as likely."""
    return Empirical([STEP * steps for steps in range(least, most + 1)])


CONDITIONS: Final = {
    "0": SYNC,
    **{str(steps): Condition(msg_delay={"sensor": STEP * steps}) for steps in range(2, 13, 2)},
    "3 to 9": Condition(msg_delay={"sensor": uniform(3, 9)}),
    "6 to 12": Condition(msg_delay={"sensor": uniform(6, 12)}),
}
PPO, LATE, AWARE, VDN, RECKONED = "PPO", "PPO, 3 to 9", "PPO, 3 to 9, aware", "VDN", "PPO, reckoned"
NEAREST, ASSIGNED = "nearest landmark", "assigned landmark"
LEARNER: Final[Hyperparameters] = SETTINGS["heron/Spread-v0"]["hyperparameters"]
VALUES: Final = Hyperparameters(n_steps=5, batch_size=256, n_epochs=8, learning_rate=5e-4, gamma=LEARNER.gamma)
AGES: Final = {"observe_age": True}
UNDER: Final = {"schedule": {"sensor": ScheduleConfig(msg_delay=uniform(3, 9), reorder=True)}}
TRAININGS: Final[Mapping[str, Mapping[str, Any]]] = {
    PPO: {"hyperparameters": LEARNER},
    LATE: {"hyperparameters": LEARNER, **UNDER},
    AWARE: {"hyperparameters": replace(LEARNER, gru=32), "env_options": AGES, **UNDER},
    VDN: {"hyperparameters": VALUES, "algorithm": "vdn"},
}


def trainings(runs: Path, seeds: int, steps: int) -> dict[str, list[Training]]:
    """By arm."""

    def folder(arm: str, seed: int) -> Path:
        return runs / f"{arm.lower().replace(', ', '-').replace(' ', '-')}-{seed}"

    return {
        arm: [Training(folder(arm, seed), ENV, seed, steps, how) for seed in range(seeds)]
        for arm, how in TRAININGS.items()
    }


def arms(runs: Mapping[str, Sequence[str]]) -> Iterator[tuple[str, Arm]]:
    """PPO without delay first, which others are compared with."""
    policies = {
        PPO: runs[PPO],
        **{name: Baseline(name) for name in (NOTHING, RANDOM, NEAREST, ASSIGNED)},
        VDN: runs[VDN],
        LATE: runs[LATE],
        AWARE: runs[AWARE],
        RECKONED: [Reckoning(TrainedRun(run)) for run in runs[PPO]],
        f"{ASSIGNED}, reckoned": Reckoning(Baseline(ASSIGNED)),
    }
    for name, policy in policies.items():
        yield name, Arm(ENV, policy, CONDITIONS, AGES if name == AWARE or "reckoned" in name else {})


IDLE: Final = {NOTHING: GREY, RANDOM: PURPLE}
PANELS: Final = {
    "Made without delay": {PPO: BLUE, VDN: SKY, NEAREST: ORANGE, ASSIGNED: VERMILION, **IDLE},
    "What gives it back": {PPO: BLUE, LATE: ORANGE, AWARE: GREEN, RECKONED: VERMILION, **IDLE},
}
STUDY: Final = Study("rdc", __doc__, trainings, arms, PANELS, steps=1_000_000)
if __name__ == "__main__":
    STUDY.main()
