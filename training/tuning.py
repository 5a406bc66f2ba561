"""Constants of what needs no training, chosen on validation days under the network that it will meet.

Wherever different policies are compared under a network, each reference has constants for it: an untuned one makes
whatever is compared with it look better than it is. Test days are not looked at. What was found is kept in
training/results/tuning/; remove a file there to tune again.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path
from typing import Any, Final

from heron_env import Baseline, Condition, make
from heron_env.errors import DataError
from heron_env.files import write_all
from heron_env.lab import PolicySpec, Smoothing, versions
from heron_env.lab.episodes import Earned
from heron_env.lab.learning.validation import Validation
from heron_env.worlds.energy_management import MPC, STRONGEST, Foresight, Tuning

ENV: Final = "heron/EnergyManagement-v1"
FOLDER: Final = Path("training/results/tuning")
DAYS: Final = 20
"""Validation days."""
RULES: Final = tuple(
    Tuning(follow=follow, guard=guard, margin=margin)
    for follow, guard, margin in product((0.0, 0.05, 0.1, 0.15, 0.2), (0.1, 0.3, 0.5, 0.8), (0.65, 0.8))
)
PLANS: Final = tuple(
    Foresight(follow=follow, excess=excess, window=window)
    for follow, excess, window in product((0.0, 0.1, 0.15, 0.2, 0.4), (1.0, 1.5), (2.5, 6.0))
)
AGED_PLANS: Final = tuple(
    Foresight(follow=follow, excess=excess, window=window, fading=fading)
    for follow, excess, window, fading in product((0.2, 0.4), (1.0, 1.5), (2.5, 6.0), (20.0, 60.0, 180.0))
)
SMOOTHING: Final = "smoothing"
"""What the share of a smoothed policy is called beside its constants: a rule has one called `share` itself."""
SHARES: Final = (0.2, 0.35, 0.5, 0.75)
"""Of the way to the wanted set-point that a smoothed policy goes at once."""
SMOOTHED_RULES: Final = tuple(
    Tuning(follow=follow, guard=guard, margin=0.8) for follow, guard in product((0.0, 0.15), (0.3, 0.5, 0.8))
)
SMOOTHED_PLANS: Final = tuple(Foresight(follow=follow, excess=1.0, window=6.0) for follow in (0.1, 0.2, 0.4))


@dataclass(frozen=True)
class Reference:
    """What needs no training.

    Attributes:
        baseline: its name.
        tried: constants that may be chosen.
        ages: does it see how old its facts are?
        shares: how much it may be smoothed; 1 is not at all.
    """

    baseline: str
    tried: Sequence[Tuning | Foresight]
    ages: bool = False
    shares: Sequence[float] = (1.0,)

    @property
    def options(self) -> dict[str, Any]:
        """Of the environment that it lives in."""
        return {"observe_age": True} if self.ages else {}


REFERENCES: Final = {
    "rule": Reference(STRONGEST, RULES),
    "rule, smoothed": Reference(STRONGEST, SMOOTHED_RULES, shares=SHARES),
    "MPC": Reference(MPC, PLANS),
    "MPC, smoothed": Reference(MPC, SMOOTHED_PLANS, shares=SHARES),
    "MPC, sees ages": Reference(MPC, AGED_PLANS, ages=True),
}


def tuned(name: str, control: str, condition: Condition, folder: Path = FOLDER) -> dict[str, Any]:
    """The constants with which a reference earns most on validation days, all of them by name; all that were tried.

    They are taken from the folder where they are there. Of equals the first wins. Raises DataError for a file that was
    made of other days or constants.

    Args:
        name: of the reference.
        control: "field" or "zone": who decides.
        condition: the network.
        folder: where it is kept.
    """
    reference = REFERENCES[name]
    rows = [row(constants, share) for constants, share in product(reference.tried, reference.shares)]
    file = folder / f"{re.sub(r'[^a-zA-Z0-9.=]+', '-', f'{name} {control} {condition.name}')}.json"
    if file.is_file():
        kept: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        there = [{key: value for key, value in one.items() if key != "return"} for one in kept["tried"]]
        if kept["days"] != DAYS or any(row not in there for row in rows):
            raise DataError(f"{file} was tuned on other days, or of other constants; remove it, and it is tuned again")
        return kept
    options = {"control": control, **reference.options}
    env: Any = make(ENV, **options)
    validation = Validation(env, ENV, options, DAYS, condition.schedule(env))
    specs = [policy({"baseline": reference.baseline, "best": row}) for row in rows]  # as it will be measured
    returns = [Earned.mean(validation.under_schedule(spec.build(env, 0))).value for spec in specs]
    tried = [{**row, "return": round(value, 3)} for row, value in zip(rows, returns, strict=True)]
    best = max(tried, key=lambda one: one["return"])
    found = {"baseline": reference.baseline, "best": best, "days": DAYS, "tried": tried, "versions": versions()}
    write_all({file: json.dumps(found, indent=1) + "\n"})
    print(f"{name}, {control}, {condition}: {best}", flush=True)
    return found


def row(constants: Tuning | Foresight, share: float) -> dict[str, float]:
    """All that makes a candidate what it is; without `smoothing` where it is not smoothed."""
    return {**asdict(constants), **({} if share == 1.0 else {SMOOTHING: share})}


def constants(found: Mapping[str, Any]) -> dict[str, float]:
    """All of those that `tuned` found best, its smoothing with them."""
    return {key: value for key, value in found["best"].items() if key != "return"}


def named(found: Mapping[str, Any]) -> str:
    """The tuned baseline, as every place takes its name, without smoothing: `MPC(follow=0.15, window=6, ...)`."""
    chosen = ", ".join(f"{key}={value!r}" for key, value in constants(found).items() if key != SMOOTHING)
    return f"{found['baseline']}({chosen})"


def policy(found: Mapping[str, Any]) -> PolicySpec:
    """The tuned baseline, smoothed where that was tried."""
    return smoothed(Baseline(named(found)), found["best"].get(SMOOTHING, 1.0))


def smoothed(spec: PolicySpec, share: float) -> PolicySpec:
    """It goes this share of the way from the set-point in force to the one wanted."""
    return spec if share == 1.0 else Smoothing(spec, "Setpoint.power", share)
