"""What callers give, checked at the door: a ConfigError says which value, what it must be, and how to write it."""

from __future__ import annotations

import functools
import inspect
import math
import numbers
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, Final, ParamSpec, TypeGuard, TypeVar

from heron_env.errors import ConfigError, HeronError, did_you_mean

T = TypeVar("T")
P = ParamSpec("P")
MOST_AGENTS = 10_000
"""Of one environment: more would take minutes to build, and what they see of each other fills the memory."""
ANY = 2**63 - 1
"""The most of what is not built for it."""


def path_of(value: object, what: str) -> Path:
    """A path. Raises ConfigError."""
    if not isinstance(value, str | PathLike) or not str(value) or "\0" in str(value):
        raise ConfigError(f"{what}={value!r:.200}: must be a path, as 'runs/mine'")
    return Path(value)


def several(value: Any, what: str) -> tuple[Any, ...]:
    """The values of anything that can be gone through, but a text. Raises ConfigError."""
    try:
        if isinstance(value, str | bytes | Mapping):
            raise TypeError
        return tuple(value)
    except TypeError as error:
        raise ConfigError(f"{what}={value!r:.200}: must be a list or tuple") from error


def all_of(values: Any, what: str, kind: type[T]) -> tuple[T, ...]:
    """The values of a list or tuple, all of one kind. Raises ConfigError."""
    for value in (found := several(values, what)):
        require_type(f"{what}: {value!r:.60}", value, kind, "a text" if kind is str else f"a {kind.__name__}")
    return found


def mapping(value: Any, what: str) -> dict[Any, Any]:
    """A dictionary of it. Raises ConfigError."""
    if not isinstance(value, Mapping):
        raise ConfigError(f"{what}={value!r:.200}: must be a mapping {{name: value}}")
    return dict(value)


def keywords(value: Any, what: str) -> dict[str, Any]:
    """A dictionary of options by name. Raises ConfigError."""
    for name in (options := mapping(value, what)):
        require_type(f"{what}: {name!r:.60}", name, str, "the name of an option")
    return options


def whole(value: Any, what: str, least: int = 0, most: int = ANY) -> int:
    """A whole number, numpy's too. Raises ConfigError."""
    try:
        number = None if isinstance(value, bool) else operator.index(value)
    except TypeError:
        number = None
    if number is None or not least <= number <= most:
        shown = "2**63 - 1" if most == ANY else most
        raise ConfigError(f"{what}={value!r:.200}: must be a whole number from {least} to {shown}")
    return number


def require_count(told: str, count: object, least: int = 1, most: int = MOST_AGENTS) -> None:
    """Raise ConfigError unless it is a whole number of things that can all be built; `told`: whose it is, with it."""
    if isinstance(count, bool) or not isinstance(count, int) or count < least:
        raise ConfigError(f"{told}: must be a whole number >= {least}")
    if count > most:
        raise ConfigError(f"{told}: too many; take {most:,} at the most")


def require_switch(told: str, value: object) -> None:
    """Raise ConfigError unless it is True or False; `told`: whose it is, with it."""
    if not isinstance(value, bool):
        raise ConfigError(f"{told}: must be True or False")


def require_one_of(told: str, value: object, known: Sequence[str]) -> None:
    """Raise ConfigError unless it is one of the known words; `told`: whose it is, with it."""
    if not is_one_of(value, known):
        raise ConfigError(f"{told}: must be one of {tuple(known)}.{did_you_mean(value, known)}")


def require_type(told: str, value: object, kind: type | tuple[type, ...], words: str) -> None:
    """Raise ConfigError unless it is of that kind; `told`: whose it is, with it; `words`: what it must be."""
    if not isinstance(value, kind):
        raise ConfigError(f"{told}: must be {words}")


def require_callable(told: str, value: object) -> None:
    """Raise ConfigError unless it can be called; `told`: whose it is, with it."""
    if not callable(value):
        raise ConfigError(f"{told}: must be a function")


def accepts(function: Callable[..., Any], count: int) -> bool:
    """Can it be called with so many values? One that is written in C and does not say is believed."""
    try:
        inspect.signature(function).bind(*range(count))
    except TypeError:
        return False
    except ValueError:
        return True
    return True


WITHOUT_TRAINING_DELAYS: Final = (
    "delays stand in a schedule of the event clock: train(schedule=ScheduleConfig(obs_delay=..., act_delay=...)), "
    "BatchEnv(..., clock='event', schedule=...), in seconds; DrawnSchedule draws them anew in every episode, for each "
    "agent that it names; under_network(env, schedule) is for other trainers "
    "(docs/how_to/train_under_a_network.md)"
)
"""What takes the place of TrainingDelays."""


def refuse_removed(
    caller: str, removed: Mapping[str, str], error: type[HeronError] = ConfigError
) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """A decorator: arguments of an earlier version raise an error. `removed`: what to use instead, in words."""

    def decorate(function: Callable[P, T]) -> Callable[P, T]:
        @functools.wraps(function)
        def call(*args: P.args, **options: P.kwargs) -> T:
            for name, value in options.items():
                if name in removed:
                    raise error(f"{caller}({name}={value!r:.60}): is gone since an earlier 0.x: {removed[name]}")
            return function(*args, **options)

        return call

    return decorate


def is_number(value: object) -> TypeGuard[float]:
    """Is it one finite number, Python's or numpy's, and no bool? Anything may be asked about."""
    return isinstance(value, numbers.Real) and not isinstance(value, bool) and is_finite(value)


def require_price(name: str, value: object) -> None:
    """Raise ConfigError unless it is a finite number, 0 or more; `name`: of the argument, with it."""
    if not is_number(value) or value < 0.0:
        raise ConfigError(f"{name}: must be a number >= 0")


def is_finite(value: Any) -> bool:
    """Can it be held as a number that is one? Whole numbers of any length may be asked about."""
    try:
        return math.isfinite(value)
    except (OverflowError, TypeError, ValueError):
        return False


def is_one_of(value: object, known: Iterable[object]) -> bool:
    """Is it among the known names? Anything may be asked about."""
    return isinstance(value, str) and value in known
