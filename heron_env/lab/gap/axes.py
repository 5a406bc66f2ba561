"""Axes of a sweep and their products: conditions in a fixed order, each once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, combinations, product

from heron_env.errors import ConfigError
from heron_env.given import all_of, require_type
from heron_env.lab.gap.conditions import DISTURBANCES, IDEAL, Condition, GivenAmount, require_cause

Axes = Mapping[str, Sequence[GivenAmount]]
"""Amounts by cause: `{"act_delay": (0, 30, 60)}`."""


def along(base: Condition = IDEAL, **axes: Sequence[GivenAmount]) -> list[Condition]:
    """One axis after the other, the other causes as in `base`."""
    return unique(base.but(**{cause: amount}) for cause, amounts in axes.items() for amount in _listed(cause, amounts))


def grid(base: Condition = IDEAL, **axes: Sequence[GivenAmount]) -> list[Condition]:
    """The product of the axes, the last one fastest."""
    listed = [_listed(cause, amounts) for cause, amounts in axes.items()]
    return unique(base.but(**dict(zip(axes, amounts, strict=True))) for amounts in product(*listed))


def one_at_a_time(all_of_it: Condition) -> list[Condition]:
    """Nothing wrong; each cause alone; all together: what a waterfall needs. Raises ConfigError."""
    _require_condition(all_of_it, "one_at_a_time")
    return unique([IDEAL, *(all_of_it.only(cause) for cause in all_of_it.causes), all_of_it])


def coalitions(all_of_it: Condition) -> list[Condition]:
    """Every subset of the causes, small ones first: what exact Shapley values need. Raises ConfigError."""
    _require_condition(all_of_it, "coalitions")
    causes = tuple(all_of_it.causes)
    subsets = chain.from_iterable(combinations(causes, size) for size in range(len(causes) + 1))
    return unique(all_of_it.only(*subset) for subset in subsets)


def unique(conditions: Iterable[Condition]) -> list[Condition]:
    """Each once, where it comes first. Raises ConfigError."""
    return list(dict.fromkeys(all_of(conditions, "unique(conditions)", Condition)))


def _require_condition(given: object, caller: str) -> None:
    require_type(f"{caller}({given!r:.60})", given, Condition, "a Condition")


def parsed_axis(text: str) -> tuple[str, tuple[GivenAmount, ...]]:
    """`act_delay=0,30,60`, `msg_delay=0,field:0.05/system:0.2`, `disturbances=clouds,spikes`. Raises ConfigError."""
    cause, equals, values = text.partition("=")
    if not equals:
        raise ConfigError(f"--axis {text!r}: must read cause=amount,amount as act_delay=0,30,60 does")
    require_cause(cause)
    if cause == DISTURBANCES:
        return cause, tuple(values.split(","))
    try:
        return cause, tuple(_amount(value) for value in values.split(","))
    except ValueError as error:
        raise ConfigError(
            f"--axis {text!r}: {values!r} must be numbers separated by commas, each for all or as field:1/system:2"
        ) from error


def _amount(text: str) -> GivenAmount:
    """A number, or numbers by key as a condition's name shows them. Raises ValueError."""
    if ":" not in text:
        return float(text)
    pairs = [part.rsplit(":", 1) for part in text.split("/")]
    return {key: float(value) for key, value in pairs}


def _listed(cause: str, amounts: Sequence[GivenAmount]) -> Sequence[GivenAmount]:
    require_cause(cause)
    if isinstance(amounts, str) or not isinstance(amounts, Sequence) or not amounts:
        raise ConfigError(f"axis {cause}={amounts!r}: give a sequence of amounts, as (0, 1)")
    return amounts
