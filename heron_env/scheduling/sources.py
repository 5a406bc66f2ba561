"""Delays and losses from data, in place of the numbers of a ScheduleConfig (T20).

    Empirical([0.2, 0.2, 1.5])              any of these delays, all alike, drawn for each message
    Recorded("latency.csv")                 the delay that was measured at the time of the departure, over and over
    Markov([0.2, 4.0], stay=0.9, period=5)  bursts: a chain of states, each with its delay, moves every 5 s
    GilbertElliott(0.01, 0.2, 0.7, 0.0, 1)  bursts of losses: a chain of a good and a bad state moves every second

What a source gives is a delay before jitter, in whole ns. Wherever one number is needed (notes, descriptions, legs of
the physics cycle, which are reliable) its mean stands for it, `mean_ns`.

Here is what can be said; `links` tells how it is drawn, step by step.
"""

from __future__ import annotations

import csv
import json
import math
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from io import StringIO
from itertools import accumulate, pairwise
from os import PathLike
from pathlib import Path
from typing import Any, Final

from heron_env.errors import DataError, HeronWarning, ScheduleError, did_you_mean
from heron_env.files.reading import decimal, read
from heron_env.given import is_finite
from heron_env.seeding import h

SECOND: Final = 1_000_000_000
"""Nanoseconds in a second."""
Ns = tuple[int, ...]
COLUMNS: Final = ("time", "delay")
"""Of a file of measured delays, s."""


def to_seconds(ns: int) -> float:
    """Seconds of a time in nanoseconds, rounded to float64 before the division, as compiled code and numpy do it."""
    return float(ns) / SECOND


def delay_ns(value: Any, what: str) -> int:
    """A delay in whole ns. Raises ScheduleError for what is none."""
    if not _is_number(value) or value < 0 or float(value) * SECOND >= 2**63:
        raise ScheduleError(
            f"{what}={value!r:.60}: must be a delay, a finite number of seconds, 0 or more, below 9.2e9"
        )
    return round(float(value) * SECOND)


@dataclass(frozen=True, slots=True)
class Empirical:
    """Delays drawn from a sample, s: each message draws one, all equally likely. Raises ScheduleError."""

    delays: Any
    ns: Ns = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        _set(self, delays=_tuple(self.delays, "Empirical"))
        _set(self, ns=tuple(delay_ns(x, f"Empirical([...]) number {i}") for i, x in enumerate(self.delays)))

    @property
    def mean_ns(self) -> int:
        """Mean delay, ns."""
        return round(sum(self.ns) / len(self.ns))

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {"empirical": list(self.delays)}


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Recorded:
    """Measured delays, replayed by the time of departure: each holds until the next one's time.

    It begins with the episode, and starts again after `period`. (`heron_env.injection.Recorded` replays answers.)

    Args:
        times: path of a CSV file with the columns `time,delay`, in seconds; or the times themselves, s, increasing.
        delays: with times, s.
        period: when it starts again, s after its first time; None: the last delay holds as long as the others do in
            the mean. A single delay holds for ever.

    Raises ScheduleError, of files DataError with file and line.
    """

    times: tuple[float, ...]
    delays: tuple[float, ...]
    period: float | None
    departures: Ns = field(compare=False)
    """Times since the first one, ns."""
    ns: Ns = field(compare=False)
    period_ns: int = field(compare=False)
    _hash: int = field(compare=False)

    def __init__(self, times: Any, delays: Any = None, *, period: float | None = None) -> None:
        if isinstance(times, str | PathLike):
            if delays is not None:
                raise ScheduleError(f"Recorded({times!r}, ...): the file has the delays; give times as a list, or none")
            times, delays = read_latencies(Path(times))
        times, delays = _tuple(times, "Recorded(times)"), _tuple(delays, "Recorded(delays)")
        if len(times) != len(delays):
            raise ScheduleError(f"Recorded({len(times)} times, {len(delays)} delays): give a delay for each time")
        for number, time in enumerate(times):
            if not _is_number(time):
                raise ScheduleError(f"Recorded(times) number {number}={time!r:.60}: must be a finite number of seconds")
        departures = tuple(round((float(time) - float(times[0])) * SECOND) for time in times)
        for number, (before, after) in enumerate(pairwise(departures)):
            if after <= before:
                raise ScheduleError(
                    f"Recorded(times) number {number + 1}={times[number + 1]!r}: must come a nanosecond or more after "
                    f"the one before, {times[number]!r}; sort them, and keep one of several"
                )
        last, held = departures[-1], len(departures) - 1
        period_ns = (last + round(last / held) if held else 1) if period is None else delay_ns(period, "period")
        if not last < period_ns < 2**63:
            raise ScheduleError(
                f"Recorded(period={period!r}): must be above the {to_seconds(last)!r} s from the first time to the last"
            )
        _set(self, times=times, delays=delays, period=period, departures=departures, period_ns=period_ns)
        _set(self, ns=tuple(delay_ns(x, f"Recorded(delays) number {i}") for i, x in enumerate(delays)))
        _set(self, _hash=hash((times, delays, period)))

    @property
    def mean_ns(self) -> int:
        """Mean delay over a period, ns."""
        ends = (*self.departures[1:], self.period_ns)
        held = sum(ns * (end - begin) for ns, begin, end in zip(self.ns, self.departures, ends, strict=True))
        return round(held / self.period_ns)

    def to_dict(self) -> dict[str, Any]:
        """For JSON: the measured delays, without the file's path."""
        return {"recorded": {"times": list(self.times), "delays": list(self.delays), "period": self.period}}

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        return f"Recorded({len(self.times)} delays in {to_seconds(self.period_ns):g} s)"


@dataclass(frozen=True, slots=True)
class Chain:
    """How a state moves: thresholds on uniforms u in [0, 1), see `links`.

    Attributes:
        period_ns: it moves at every multiple.
        start: `[n - 1]`; the first state is the number of these that are <= u.
        moves: `[n][n - 1]`; from state i the next one is the number of moves[i] that are <= u.
    """

    period_ns: int
    start: tuple[float, ...]
    moves: tuple[tuple[float, ...], ...]


@dataclass(frozen=True, slots=True)
class Markov:
    """Bursts of delay: a Markov chain of states with a delay each. Every `period` s it stays or moves to another state.

    Args:
        states: two or more delays, s, each a number or Empirical.
        stay: probability that a state stays, below 1; one for all, or one for each. A state then lasts
            period / (1 - stay) in the mean.
        period: s.

    Raises ScheduleError.
    """

    states: Any
    stay: Any
    period: float
    values: tuple[Ns, ...] = field(init=False, repr=False, compare=False)
    """By state, the delays to choose from, ns."""
    shares: tuple[float, ...] = field(init=False, repr=False, compare=False)
    """How much of the time each state has: pi_i = (1 / (1 - stay_i)) / sum of these."""
    chain: Chain = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        states = _tuple(self.states, "Markov(states)")
        if len(states) < 2:
            raise ScheduleError(f"Markov(states={states!r:.100}): give two or more; one alone is a number or Empirical")
        stay = _tuple(self.stay, "Markov(stay)") if isinstance(self.stay, Iterable) else self.stay
        all_stay = stay if isinstance(stay, tuple) else (stay,) * len(states)
        if len(all_stay) != len(states):
            raise ScheduleError(f"Markov(stay={stay!r:.100}): give one probability, or one for each of the states")
        for one in all_stay:
            if not _is_number(one) or not 0 <= one < 1:
                raise ScheduleError(f"Markov(stay={one!r:.60}): must be a probability below 1: no state stays for ever")
        values = tuple(
            x.ns if isinstance(x, Empirical) else (delay_ns(x, f"Markov(states) number {i}"),)
            for i, x in enumerate(states)
        )
        weights = [1.0 / (1.0 - float(one)) for one in all_stay]
        shares = tuple(weight / sum(weights) for weight in weights)
        others = len(states) - 1
        rows = [
            [float(one) if j == i else (1.0 - float(one)) / others for j in range(others + 1)]
            for i, one in enumerate(all_stay)
        ]
        chain = Chain(_period_ns(self.period, "Markov"), _thresholds(shares), tuple(_thresholds(row) for row in rows))
        _set(self, states=states, stay=stay, values=values, shares=shares, chain=chain)

    @property
    def mean_ns(self) -> int:
        """Mean delay in the long run, ns."""
        return round(sum(share * (sum(ns) / len(ns)) for share, ns in zip(self.shares, self.values, strict=True)))

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        states = [state.to_dict() if isinstance(state, Empirical) else state for state in self.states]
        stay = list(self.stay) if isinstance(self.stay, tuple) else self.stay
        return {"markov": {"states": states, "stay": stay, "period": self.period}}


@dataclass(frozen=True, slots=True)
class GilbertElliott:
    """Bursts of losses: a good and a bad state, each with its probability that a message is lost.

    E. N. Gilbert, "Capacity of a burst-noise channel", Bell System Technical Journal 39 (1960); E. O. Elliott,
    "Estimates of error rates for codes on burst-noise channels", ibid. 42 (1963). Their state moves at every
    message; here it moves with time, whether messages are sent or not.

    Attributes:
        p_bad: probability that the good state goes bad within a period.
        p_good: that the bad state gets good; not both 0.
        loss_bad, loss_good: probability that a message is lost.
        period: s.

    Raises ScheduleError.
    """

    p_bad: float
    p_good: float
    loss_bad: float
    loss_good: float
    period: float
    chain: Chain = field(init=False, repr=False, compare=False)
    """State 0 is good, 1 bad."""

    def __post_init__(self) -> None:
        for name in ("p_bad", "p_good", "loss_bad", "loss_good"):
            value = getattr(self, name)
            if not _is_number(value) or not 0 <= value <= 1:
                raise ScheduleError(f"GilbertElliott({name}={value!r:.60}): must be a probability, between 0 and 1")
        if self.p_bad == 0 and self.p_good == 0:
            raise ScheduleError("GilbertElliott(p_bad=0, p_good=0): it never moves; a loss that stays is a number")
        moves = ((1.0 - float(self.p_bad),), (float(self.p_good),))
        chain = Chain(_period_ns(self.period, "GilbertElliott"), (1.0 - self.share_bad,), moves)
        _set(self, chain=chain)

    @property
    def share_bad(self) -> float:
        """Share of time in the bad state."""
        return self.p_bad / (self.p_bad + self.p_good)

    @property
    def losses(self) -> tuple[float, float]:
        """Loss by state."""
        return float(self.loss_good), float(self.loss_bad)

    @property
    def mean(self) -> float:
        """Share of messages lost in the long run."""
        return (1.0 - self.share_bad) * self.loss_good + self.share_bad * self.loss_bad

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        names = ("p_bad", "p_good", "loss_bad", "loss_good", "period")
        return {"gilbert_elliott": {name: getattr(self, name) for name in names}}


DelaySource = Empirical | Recorded | Markov
Source = DelaySource | GilbertElliott
Delay = float | DelaySource
"""What a delay of a schedule may be, s."""
Loss = float | GilbertElliott
KINDS: Final[Mapping[str, Callable[..., Source]]] = {
    "empirical": Empirical, "recorded": Recorded, "markov": Markov, "gilbert_elliott": GilbertElliott,
}  # fmt: skip
"""By the word that JSON and YAML have for them."""
LEGIBLE: Final = 60
"""Letters of what is told in full."""


def as_source(value: Any, folder: Path | None = None) -> Any:
    """The source that a mapping tells of, `{"empirical": [0.1, 0.3]}`, `{"recorded": "latency.csv"}` or in short
    `"latency.csv"`, `{"markov": {"states": [0.2, 4], "stay": 0.9, "period": 5}}`; other values as they are.

    Files lie below `folder`, or where the process runs. Raises ScheduleError, DataError.
    """
    if isinstance(value, str) and value.endswith(".csv"):
        value = {"recorded": value}
    if not isinstance(value, Mapping):
        return value
    if len(value) != 1 or (kind := next(iter(value))) not in KINDS:
        near = did_you_mean(next(iter(value), ""), KINDS)
        raise ScheduleError(f"{value!r:.100}: must have one of {list(KINDS)} as its only key.{near}")
    parameters = value[kind]
    if kind == "empirical":
        return Empirical(parameters)
    if kind == "recorded" and isinstance(parameters, str):
        return Recorded((folder or Path()) / parameters)
    if kind == "markov" and isinstance(parameters, Mapping) and isinstance(parameters.get("states"), list | tuple):
        parameters = {**parameters, "states": [as_source(state, folder) for state in parameters["states"]]}
    if not isinstance(parameters, Mapping):
        raise ScheduleError(f"{value!r:.100}: {kind} needs a mapping of its values by name")
    try:
        return KINDS[kind](**parameters)
    except TypeError as error:
        raise ScheduleError(f"{kind}: {str(error).replace('__init__()', KINDS[kind].__name__)}") from error


def label(source: Source) -> str:
    """A source as a word, another one for each: `markov[[0.2,4.0],0.9,5.0]`, or with mean and hash of what is long."""
    ((kind, parameters),) = source.to_dict().items()
    text = json.dumps(list(parameters.values()) if isinstance(parameters, dict) else parameters, separators=(",", ":"))
    return f"{kind}{text}" if len(text) <= LEGIBLE else f"{kind}[mean={mean_s(source):.3g},{h(text):016x}]"


def mean_s(value: Any) -> float:
    """One number for a delay, s, or a loss, of a schedule: the mean of a source."""
    match value:
        case GilbertElliott():
            return value.mean
        case Empirical() | Recorded() | Markov():
            return to_seconds(value.mean_ns)
    return float(value)


def read_latencies(path: Path) -> tuple[list[float], list[float]]:
    """Times, increasing, and delays, >= 0, both s. Raises DataError naming file, line and column."""
    try:
        text = read(path).decode("utf-8-sig")
    except (OSError, ValueError) as error:
        reason = "no such file" if isinstance(error, FileNotFoundError) else str(error)
        raise DataError(f"{path}: can't be read: {reason}; give a CSV file with the columns time,delay in s") from error
    times: list[float] = []
    delays: list[float] = []
    rows = csv.reader(StringIO(text, newline=""))
    try:
        _require_header(path, [cell.strip() for cell in next(rows, [])])
        for row in rows:
            if not row:
                continue
            where = f"{path}:{rows.line_num}"
            if len(row) != len(COLUMNS):
                raise DataError(f"{where}: expected 2 cells, time,delay, got {len(row)}; write decimals with a point")
            time, delay = (_cell(where, name, cell) for name, cell in zip(COLUMNS, row, strict=True))
            if delay < 0:
                raise DataError(f"{where}: delay={delay!r}: must be 0 or more, in s; nothing arrives before it leaves")
            if times and round((time - times[0]) * SECOND) <= round((times[-1] - times[0]) * SECOND):
                raise DataError(
                    f"{where}: time={time!r}: must come a nanosecond or more after the row before, {times[-1]!r}; sort "
                    "the rows, and keep one of several"
                )
            times.append(time)
            delays.append(delay)
    except csv.Error as error:
        raise DataError(f"{path}:{rows.line_num}: is no CSV ({error}); save it as one, with commas") from error
    if not times:
        raise DataError(f"{path}:2: there is no row; give one or more")
    _warn_of_milliseconds(path, times, delays)
    return times, delays


def _warn_of_milliseconds(path: Path, times: list[float], delays: list[float]) -> None:
    """Where most messages would still be under way when ten later ones leave, or the record ends."""
    middle, span = sorted(delays)[len(delays) // 2], times[-1] - times[0]
    if len(times) > 1 and middle >= SLOW and middle > min(span, IN_FLIGHT * span / (len(times) - 1)):
        warnings.warn(
            f"{path}: half of its delays are {middle:g} s or more, and a message leaves every "
            f"{span / (len(times) - 1):g} s, {len(times)} in {span:g} s; the column delay is in s: if it was measured "
            "in ms, divide it by 1000",
            HeronWarning,
            stacklevel=4,
        )


def _require_header(path: Path, header: list[str]) -> None:
    if tuple(header) != COLUMNS:
        remedy = "separate them by commas" if ";" in "".join(header) else "name them in the first line, in this order"
        raise DataError(f"{path}:1: expected the columns time,delay (s), got {','.join(header) or 'none'}; {remedy}")


SLOW: Final = 5.0
"""s: delays below are nobody's milliseconds."""
IN_FLIGHT: Final = 10
"""Messages that leave while an earlier one is under way, in a file that is likely in ms."""


def _cell(where: str, name: str, text: str) -> float:
    try:
        value = decimal(text)
    except ValueError as error:
        raise DataError(f"{where}: {name}={text!r:.60}: is no number; correct or remove the row") from error
    if not math.isfinite(value) or not abs(value) * SECOND < 2**63:
        raise DataError(
            f"{where}: {name}={text.strip()!r:.60}: must be finite and below 9.2e9 s; remove the row, or divide ms by "
            "1000"
        )
    return value


def _thresholds(shares: Iterable[float]) -> tuple[float, ...]:
    """Running sums in their order, without the last, which is 1."""
    return tuple(accumulate(shares))[:-1]


def _period_ns(period: Any, owner: str) -> int:
    ns = delay_ns(period, f"{owner}(period)")
    if not ns:
        raise ScheduleError(f"{owner}(period={period!r}): must be a nanosecond or more")
    return ns


def _tuple(values: Any, what: str) -> tuple[Any, ...]:
    """Of a sequence or array of plain numbers and sources. Raises ScheduleError for anything else, or nothing."""
    try:
        if isinstance(values, str | bytes | Mapping):
            raise TypeError
        numbers = tuple(values.tolist() if hasattr(values, "tolist") else values)
    except TypeError as error:
        raise ScheduleError(f"{what}: must be a list of numbers, got {values!r:.60}") from error
    if not numbers:
        raise ScheduleError(f"{what}: there are none; give one or more")
    return numbers


def _is_number(value: object) -> bool:
    return not isinstance(value, bool) and hasattr(value, "__float__") and is_finite(value)


def _set(one: Any, **values: Any) -> None:
    """Fields of a frozen object that is being built."""
    for name, value in values.items():
        object.__setattr__(one, name, value)
