"""Bins: the parts of a control step within which load and generation are held, and the features that keep them.

Load and generation of the step under way are nobody's to see: `begin` and `finish` write them, one element a bin, and
the rules of physics take the element of their own time. Counting would not do: a disturbance may cut a substep.
"""

from functools import cache
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from heron_env.core.feature import FeatureProvider, quantity

LEAST: Final = 10.0
"""s; what is metered more often says what is coming."""
NEAR: Final = 1e-6
"""Of a bin: so near to an edge is on it."""
MOST: Final = 1000.0  # kW


def bins_of(dt: float, physics_substeps: int) -> int:
    """Bins in a step: as many as divide its substeps evenly and last 10 s at least; one where none do."""
    most = min(physics_substeps, int(dt / (LEAST * (1.0 - 1e-9))))
    return next((n for n in range(most, 0, -1) if physics_substeps % n == 0), 1)


def bin_at(time: float, length: float) -> int:
    """Number of the bin, of `length` s, that holds `time` or begins there."""
    return int(time / length + NEAR)


class Bins(FeatureProvider):
    """Length of a bin: what a meter's mean is of."""

    visibility = ()
    length: float = quantity(default=LEAST, low=0.0, high=86_400.0, unit="s", observed=False)


class HomeSeries(FeatureProvider):
    """What the home draws and its roof yields in the step under way, `[bins]` kW, before disturbances."""

    if TYPE_CHECKING:  # `home_series` adds them
        load: NDArray[np.float64] = quantity(default=0.0)
        pv: NDArray[np.float64] = quantity(default=0.0)


class ZoneSeries(FeatureProvider):
    """What homes without batteries and the business draw in the step under way, `[bins]` kW, before disturbances."""

    if TYPE_CHECKING:
        power: NDArray[np.float64] = quantity(default=0.0)


def home_series(bins: int) -> type[HomeSeries]:
    """The series of a home for steps of so many bins."""
    made: type[HomeSeries] = _sized(HomeSeries, bins, (("load", 0.0), ("pv", 0.0)))
    return made


def zone_series(bins: int) -> type[ZoneSeries]:
    """The series of a zone for steps of so many bins."""
    made: type[ZoneSeries] = _sized(ZoneSeries, bins, (("power", -MOST),))
    return made


@cache
def _sized(base: Any, bins: int, fields: tuple[tuple[str, float], ...]) -> Any:
    """The subclass with vectors of a name and a lower bound; one class for each number of bins."""
    body = {
        name: quantity(default=0.0, low=low, high=MOST, unit="kW", shape=(bins,), observed=False)
        for name, low in fields
    }
    names = {"__module__": __name__, "__doc__": base.__doc__, "feature_name": base.__name__}
    return type(
        f"{base.__name__}{bins}", (base,), {**names, **body, "__annotations__": dict.fromkeys(body, np.ndarray)}
    )


def __getattr__(name: str) -> Any:
    """`HomeSeries6`, `ZoneSeries6`: by these names copies and pickles of environments find their features."""
    for base, make in ((HomeSeries, home_series), (ZoneSeries, zone_series)):
        number = name.removeprefix(base.__name__)
        if number != name and number.isdigit():
            return make(int(number))
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
