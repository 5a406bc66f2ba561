"""Does it help to see one's own pending actions where they are late? After Chen et al. (DAMARL, 2020), on this clock.

    python -m training.reproductions.damarl            # 10 minutes of CPU time; it goes on where it stopped
    python -m training.reproductions.damarl --report   # only the table and the figure of what is there

heron/Spread-v0, three agents, 25 steps, continuous pushes that take effect 1, 3 or 5 steps later. PPO learns without
delay, under each delay unaware of it, and under it with its own last 1, 3 or 5 actions in sight. That last one's
trainings are removed since heron_env 0.2: its returns are those of commit 5762c217, and no option changes them. The
unaware were trained there under TrainingDelays of the synchronous clock, whose episodes are those of the constant
act_delay here; the trainer then learned from steps, now it learns from decisions.
"""

from __future__ import annotations

from typing import Final

from heron_env import Condition, Hyperparameters, ScheduleConfig
from heron_env.lab import SYNC
from heron_env.lab.benchmark import NOTHING, RANDOM
from heron_env.lab.figure_style import BLUE, GREEN, GREY, ORANGE, PURPLE, VERMILION
from training.board import SETTINGS
from training.reproductions.late_spread import STEP, Arm, Study

ENV: Final = "heron/Spread-v0"
DELAYS: Final = (1, 3, 5)
CONDITIONS: Final = {"0": SYNC, **{str(late): Condition(act_delay=STEP * late) for late in DELAYS}}
UNAWARE, AWARE, NEAREST = "PPO, unaware", "PPO, aware", "nearest landmark"
LEARNER: Final[Hyperparameters] = SETTINGS[ENV]["hyperparameters"]


def under(arm: str, late: int) -> Arm:
    """Trained and measured under a delay."""
    schedule = ScheduleConfig(act_delay=STEP * late)
    how = {"hyperparameters": LEARNER, "schedule": schedule} if arm == UNAWARE else None
    return Arm({str(late): CONDITIONS[str(late)]}, how, f"{arm.removeprefix('PPO, ')}-{late}")


ARMS: Final = [
    ("PPO", Arm(CONDITIONS, {"hyperparameters": LEARNER}, "without")),
    *((name, Arm(CONDITIONS)) for name in (NOTHING, RANDOM, NEAREST)),
    *((arm, under(arm, late)) for late in DELAYS for arm in (UNAWARE, AWARE)),
]
COLOURS: Final = {"PPO": BLUE, UNAWARE: ORANGE, AWARE: GREEN, NEAREST: VERMILION, NOTHING: GREY, RANDOM: PURPLE}
STUDY: Final = Study("damarl", __doc__, ENV, ARMS, {"Actions that are late": COLOURS}, [*CONDITIONS], steps=400_000)
if __name__ == "__main__":
    STUDY.main()
