"""Constants of what needs no training, chosen on validation days under the network that it will meet.

Wherever different policies are compared under a network, each is there with constants for it: an untuned reference
makes whatever it is compared with look better than it is. Test days are not looked at.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from itertools import product
from typing import Any, Final

from heron_env import Condition, make
from heron_env.lab.learning.validation import Validation
from heron_env.worlds.energy_management import Foresight, TunedRule, Tuning

ENV: Final = "heron/EnergyManagement-v1"
RULES: Final = [
    Tuning(follow=follow, guard=guard, margin=margin)
    for follow, guard, margin in product((0.0, 0.05, 0.1, 0.15, 0.2), (0.1, 0.3, 0.5, 0.8), (0.65, 0.8))
]
"""Of the strongest rule."""
PLANS: Final = [
    Foresight(follow=follow, excess=excess, window=window)
    for follow, excess, window in product((0.0, 0.1, 0.15, 0.2, 0.4), (0.5, 1.0, 1.5), (2.5, 6.0, 12.0))
]
"""Of MPC."""
AGED_PLANS: Final = [replace(plan, fading=fading) for plan in PLANS for fading in (20.0, 60.0, 180.0)]
"""Of MPC that sees ages."""


def best(name: str, found: Mapping[str, Any]) -> str:
    """A baseline with the constants that `tuned` found best, as every place takes its name: `MPC(follow=0.15)`."""
    constants = {key: value for key, value in found["best"].items() if key != "return"}
    return f"{name}({', '.join(f'{key}={value:g}' for key, value in constants.items())})"


def tuned(
    name: str, tried: Sequence[Tuning | Foresight], options: Mapping[str, Any], condition: Condition, days: int
) -> dict[str, Any]:
    """The constants with which a baseline earns most on validation days, by the names that differ; all that were tried.

    Args:
        name: of the baseline.
        tried: its constants; of equals the first wins.
        options: of the environment.
        condition: the network.
        days: how many validation days.
    """
    env: Any = make(ENV, **options)
    validation = Validation(env, ENV, options, days, condition.schedule(env))
    rows = [asdict(constants) for constants in tried]
    varied = [key for key in rows[0] if len({row[key] for row in rows}) > 1]
    found = [
        {
            **{key: row[key] for key in varied},
            "return": round(sum(validation.under_schedule(TunedRule(name, constants).build(env, 0))) / days, 3),
        }
        for row, constants in zip(rows, tried, strict=True)
    ]
    best = max(found, key=lambda one: one["return"])
    return {"best": best, "days": days, "tried": found}
