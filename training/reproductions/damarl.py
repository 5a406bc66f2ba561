"""Does it help to see one's own pending actions where they are late? After Chen et al. (DAMARL, 2020), on this clock.

    python -m training.reproductions.damarl            # 10 minutes of CPU time; it goes on where it stopped
    python -m training.reproductions.damarl --report   # only the table and the figure of what is there

heron/Spread-v0, three agents, 25 steps, continuous pushes that take effect 1, 3 or 5 steps later. PPO learns without
delay, under each delay unaware of it, and under it with its own last 1, 3 or 5 actions in sight.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from heron_env import Condition, Hyperparameters, TrainingDelays
from heron_env.lab import SYNC, Baseline
from heron_env.lab.benchmark import NOTHING, RANDOM
from heron_env.lab.figure_style import BLUE, GREEN, GREY, ORANGE, PURPLE, VERMILION
from training.board import SETTINGS
from training.reproductions.late_spread import STEP, Arm, Study, Training

ENV: Final = "heron/Spread-v0"
DELAYS: Final = (1, 3, 5)
CONDITIONS: Final = {"0": SYNC, **{str(late): Condition(act_delay=STEP * late) for late in DELAYS}}
UNDELAYED, UNAWARE, AWARE, NEAREST = "without delay", "unaware", "aware", "nearest landmark"
LEARNER: Final[Hyperparameters] = SETTINGS[ENV]["hyperparameters"]


def how(arm: str, late: int) -> dict[str, Any]:
    """It is trained."""
    settings = replace(LEARNER, augment=late if arm == AWARE else 0)
    return {"hyperparameters": settings, "training_delays": TrainingDelays(action=late) if late else None}


def trainings(runs: Path, seeds: int, steps: int) -> dict[str, list[Training]]:
    """By arm and delay."""
    wanted = [(UNDELAYED, 0), *((arm, late) for late in DELAYS for arm in (UNAWARE, AWARE))]
    return {
        f"{arm} {late}": [
            Training(runs / f"{arm.replace(' ', '-')}-{late}-{seed}", ENV, seed, steps, how(arm, late))
            for seed in range(seeds)
        ]
        for arm, late in wanted
    }


def arms(runs: Mapping[str, Sequence[str]]) -> Iterator[tuple[str, Arm]]:
    """Those trained without delay and the baselines under each, the others under theirs."""
    everywhere = {UNDELAYED: runs[f"{UNDELAYED} 0"], **{name: Baseline(name) for name in (NOTHING, RANDOM, NEAREST)}}
    for name, policy in everywhere.items():
        yield name, Arm(ENV, policy, CONDITIONS, {})
    for late in DELAYS:
        for name in (UNAWARE, AWARE):
            yield name, Arm(ENV, runs[f"{name} {late}"], {str(late): CONDITIONS[str(late)]}, {})


COLOURS: Final = {UNDELAYED: BLUE, UNAWARE: ORANGE, AWARE: GREEN, NEAREST: VERMILION, NOTHING: GREY, RANDOM: PURPLE}
STUDY: Final = Study("damarl", __doc__, trainings, arms, {"Actions that are late": COLOURS}, steps=400_000)
if __name__ == "__main__":
    STUDY.main()
