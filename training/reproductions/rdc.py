"""What do late sensors cost agents in Spread, and what gives it back? After Fu et al. (RDC, 2025), on this clock.

    python -m training.reproductions.rdc               # half an hour of CPU time; it goes on where it stopped
    python -m training.reproductions.rdc --report      # only the table and the figure of what is there

Three agents, 25 steps, discrete pushes; what an agent sees of each landmark and of each other agent is late by itself
(sensed_spread.py): by a fixed number of steps, or each report by a number drawn anew, 3 to 9 or 6 to 12, each as
likely. PPO and VDN learn without delay; PPO learns under 3 to 9, and again ("aware") with the ages in sight and a
recurrent layer. Reckoned: a policy made without delay is shown where things are now if they stand still. The VDN of
heron_env 0.2 is removed since: its returns are those of commit 5762c217, and --seeds and --cases do not change them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from heron_env import Condition, Empirical, Hyperparameters, ScheduleConfig
from heron_env.lab import SYNC
from heron_env.lab.benchmark import NOTHING, RANDOM
from heron_env.lab.figure_style import BLUE, GREEN, GREY, ORANGE, PURPLE, SKY, VERMILION
from training.board import SETTINGS
from training.reproductions.late_spread import RECKONED, STEP, Arm, Study
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
LEARNER: Final[Hyperparameters] = SETTINGS["heron/Spread-v0"]["hyperparameters"]
AGES: Final = {"observe_age": True}
LATE: Final[dict[str, Any]] = {
    "hyperparameters": LEARNER,
    "schedule": {"sensor": ScheduleConfig(msg_delay=uniform(3, 9), reorder=True)},
}
AWARE: Final = {**LATE, "hyperparameters": replace(LEARNER, gru=32), "env_options": AGES}
NEAREST, ASSIGNED = "nearest landmark", "assigned landmark"
ARMS: Final = {
    "PPO": Arm(CONDITIONS, {"hyperparameters": LEARNER}, "ppo"),
    **{name: Arm(CONDITIONS) for name in (NOTHING, RANDOM, NEAREST, ASSIGNED)},
    "PPO, 3 to 9": Arm(CONDITIONS, LATE, "ppo-3-to-9"),
    "PPO, 3 to 9, aware": Arm(CONDITIONS, AWARE, "ppo-3-to-9-aware", options=AGES),
    f"PPO{RECKONED}": Arm(CONDITIONS, None, "ppo", Reckoning, AGES),
    f"{ASSIGNED}{RECKONED}": Arm(CONDITIONS, around=Reckoning, options=AGES),
    "VDN": Arm(CONDITIONS, None, "vdn"),
}
IDLE: Final = {NOTHING: GREY, RANDOM: PURPLE}
PANELS: Final = {
    "Made without delay": {"PPO": BLUE, "VDN": SKY, NEAREST: ORANGE, ASSIGNED: VERMILION, **IDLE},
    "What gives it back": {
        "PPO": BLUE, "PPO, 3 to 9": ORANGE, "PPO, 3 to 9, aware": GREEN, f"PPO{RECKONED}": VERMILION,
        f"{ASSIGNED}{RECKONED}": SKY, **IDLE,
    },
}  # fmt: skip
COLUMNS: Final = ("0", "6", "12", "3 to 9", "6 to 12")
STUDY: Final = Study("rdc", __doc__, ENV, [*ARMS.items()], PANELS, COLUMNS, steps=1_000_000)
if __name__ == "__main__":
    STUDY.main()
