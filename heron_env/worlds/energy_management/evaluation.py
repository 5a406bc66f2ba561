"""Which days are held out, which of them are evaluated, and the best returns that are known for them.

Load shapes nearly repeat across days: what the split holds out is weather and seeds. Tune on validation days only.
"""

from pathlib import Path
from typing import Final

from pydantic import BaseModel, FiniteFloat, ValidationError

from heron_env.errors import ConfigError, DataError
from heron_env.files.reading import first_fault, read_json
from heron_env.worlds.energy_management.calendar import SHIPPED, Calendar

RETURN_UNIT: Final = "EUR a day"
OPTIMA: Final = Path(__file__).parent / "data" / "optima.json"
OPTIMA_DT: Final = 60.0
"""s; how often they decide, in a world of bins of 10 s. Substeps move a day by cents: where a full battery stops."""
FIRST_SEED: Final = 2_000_000_000
"""Evaluations are seeded from here on: far from where training seeds its lanes, and within 31 bits."""


def split_days(split: str) -> tuple[int, ...]:
    """Days of a split of the year: test day % 5 == 2, validation day % 5 == 4, the rest train. Raises ConfigError."""
    return SHIPPED.split(split)


def evaluation_seed(day: int, repeat: int) -> int:
    """The seed of repeat r of day d: 2,000,000,000 + 1000 r + d."""
    return FIRST_SEED + 1000 * repeat + day


def evaluation_cases(
    split: str, num_days: int, repeats: int = 1, *, calendar: Calendar = SHIPPED
) -> list[tuple[dict[str, int], int]]:
    """`(reset options, seed)` of each evaluation: `num_days` days spread evenly over all, each `repeats` times.

    Of an own site that has fewer validation days than asked for, days come again with other seeds: they choose, and
    no interval is made of them.

    Raises:
        ConfigError: more days than the split has, or less than one.
    """
    days = calendar.split(split)
    if split == "validation" and not calendar.wraps and num_days > len(days):
        rounds = -(-num_days // len(days)) * repeats
        again = evaluation_cases(split, len(days), rounds, calendar=calendar)
        return again[: num_days * repeats]
    if not 1 <= num_days <= len(days):
        raise ConfigError(f"num_days={num_days!r}: the split {split!r} has {len(days)} days; choose 1 to {len(days)}")
    if repeats < 1:
        raise ConfigError(f"repeats={repeats!r} must be >= 1")
    chosen = [days[int((number + 0.5) * len(days) / num_days)] for number in range(num_days)]
    return [({"day": day}, evaluation_seed(day, repeat)) for repeat in range(repeats) for day in chosen]


def shipped_optima() -> list[tuple[dict[str, int], int, float]]:
    """`(reset options, seed, EUR of the team)` of held-out days, with the default constants and dt = `OPTIMA_DT`."""
    if not OPTIMA.is_file():
        return []
    return [({"day": day}, evaluation_seed(day, 0), known["value"]) for day, known in read_optima(OPTIMA).items()]


def read_optima(path: Path) -> dict[int, dict[str, float]]:
    """Value, bound, gap and fingerprint by day. Raises DataError for a damaged file."""
    try:
        kept = _Optima.model_validate(read_json(path))
    except ValidationError as error:
        raise DataError(f"{path}: {first_fault(error)}; install heron_env anew, or compute the optima again") from error
    except (OSError, ValueError) as error:
        raise DataError(f"{path}: can't be read ({error}); install heron_env anew") from error
    return {day: found.model_dump() for day, found in kept.days.items()}


class _Optimum(BaseModel):
    value: FiniteFloat
    bound: FiniteFloat
    gap: FiniteFloat
    fingerprint: FiniteFloat


class _Optima(BaseModel):
    what: str
    days: dict[int, _Optimum]
