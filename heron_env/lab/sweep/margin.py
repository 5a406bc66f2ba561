"""Up to which delay, loss or jitter a policy keeps a given share of what it gains over doing nothing."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray
from pydantic import TypeAdapter, ValidationError

from heron_env.errors import ConfigError, RunFolderError
from heron_env.files.reading import first_fault, parsed, read
from heron_env.files.writing import write
from heron_env.given import is_finite, require_one_of
from heron_env.lab.benchmark import NOTHING, Case
from heron_env.lab.crossing import Crossing, first_crossing
from heron_env.lab.output import dumps, with_unit
from heron_env.lab.robust_stats import Intervals
from heron_env.lab.sweep.conditions import CAUSES, IDEAL, SYNC, Condition, amount_text
from heron_env.lab.sweep.records import Key
from heron_env.lab.sweep.sweep import Sweep, executor_of
from heron_env.trust import Trust

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from heron_env.envs.base import HeronEnv

FILE: Final = "margin.json"
LADDER: Final = (0.125, 0.25, 0.5, 1.0)
"""The first amounts that are tried, as shares of the largest."""
STEPS: Final = 4.0
"""The largest delay that is tried, in control steps, where no other is asked for."""
SCALES: Final = {"jitter": (0.8, 0.05), "loss": (0.8, 0.01), "tick_ratio": (17.0, 1.0), "noise": (0.8, 0.05)}
"""The largest amount of what is no delay, and the smallest difference between two."""


@dataclass(frozen=True)
class Margin(Crossing):
    """Largest amount of a fault at which a policy keeps a share of its gain; delays in s.

    Attributes:
        probes: the amounts that were tried, rising. Each has the mean of (R - N) - keep (R_0 - N), paired by case: R
            with the fault, R_0 without, N of doing nothing on the synchronous clock.
        low: the largest amount at which the share is confirmed kept, with all smaller ones; nan: none.
        high: the smallest amount at which it is confirmed lost; inf: none.
        estimate: where the line through the means first meets 0.
        above_again: amounts beyond `high` where it is kept again.
        env, options: of the environment.
        policy: its name.
        fault, keep: the cause, and the share to keep.
        under: other faults, the same at every amount; "ideal": none.
        unit: of returns.
        step: the smallest difference between two amounts.
        cases: how many there were; an amount takes as many as decide it. Repeats of a case count as one.
    """

    env: str
    options: dict[str, Any]
    policy: str
    fault: str
    keep: float
    under: str
    unit: str
    step: float
    cases: int

    @property
    def gain(self) -> float:
        """Mean return above that of doing nothing, without the fault."""
        return self.probes[0].mean / (1.0 - self.keep)

    @property
    def gains(self) -> bool:
        """Is the gain confirmed to be above 0?"""
        return self.probes[0].verdict == "kept"

    @property
    def shares(self) -> list[tuple[float, float]]:
        """Return the kept share of the gain at each amount, and the half width of its bound; [] without a gain."""
        return [(self.keep + p.mean / self.gain, p.half / self.gain) for p in self.probes] if self.gains else []

    @property
    def widest(self) -> float:
        """Largest distance between neighbouring amounts up to `low`: a dip between them is missed."""
        levels = [probe.level for probe in self.probes if probe.level <= self.low]
        return max((b - a for a, b in pairwise(levels)), default=0.0)

    @property
    def nearest(self) -> float:
        """The estimate, rounded to whole steps."""
        return self.step * round(self.estimate / self.step)

    def __str__(self) -> str:
        """`'rule' keeps 95 % of its gain up to action delay 4.1 s [3.6, 4.9]; 6 amounts x 64 cases`."""
        share, words = f"{100.0 * self.keep:g} %", CAUSES[self.fault].words
        amounts = f"{len(self.probes) - 1} amount{'s' * (len(self.probes) != 2)}"
        under = "" if self.under == IDEAL.name else f", under {self.under}"
        of = f"{amounts} x {max(probe.cases for probe in self.probes)} cases{under}"
        if not self.gains:
            return self._no_gain()
        if self.high == math.inf:
            largest = self.amount(self.probes[-1].level)
            answer = f"{self.amount(self.low)} at least; nothing up to {largest} is lost for sure"
        else:
            answer = f"{self.amount(self.nearest)} [{self.low:g}, {self.high:g}]"
        again = ", ".join(map(self.amount, self.above_again))
        dip = f". A dip between two amounts, less than {self.amount(self.widest)} wide, may be missed"
        also = f". Not monotone: it is kept again at {again}" if again else ""
        missed = dip if self.widest > 1.5 * self.step else ""
        return f"{self.policy!r} keeps {share} of its gain up to {words} {answer}; {of}{missed}{also}"

    def _no_gain(self) -> str:
        """That it earns as much as doing nothing, or less, or that the cases can't tell."""
        probe = self.probes[0]
        earned = "as much" if self.gain == 0.0 else f"{abs(self.gain):.3g} {'more' if self.gain > 0.0 else 'less'}"
        mean = with_unit(f"mean over {probe.cases} cases", self.unit)
        nothing = f"gains nothing over doing nothing: without the fault it earns {earned}, {mean}"
        if probe.verdict == "lost" or probe.mean == probe.half == 0.0:
            return f"{self.policy!r} {nothing}"
        return f"It is not clear from these cases whether {self.policy!r} gains something or {nothing}"

    def amount(self, level: float) -> str:
        """Return an amount with its unit, `4.1 s`."""
        unit = CAUSES[self.fault].unit
        return f"{level:.3g}{'' if unit == '1' else f' {unit}'}"

    def plot(self) -> Figure:
        """Plot the kept share of the gain against the amounts, on a square-root scale: a matplotlib Figure.

        Bars are the bounds of the tests, the band is the interval.

        Raises ConfigError where there is no gain, and where matplotlib is missing (extra `plots`).
        """
        from heron_env.lab.show.tolerance import margin_figure

        return margin_figure(self)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON: settings and finite results."""
        derived = ("low", "high", "estimate", "above_again", "gain")
        return {**asdict(self), **{name: getattr(self, name) for name in derived}, "text": str(self)}

    def write(self, folder: str | Path) -> Path:
        """Write margin.json into the folder, which `heron report` and `read_margin` read."""
        return write(Path(folder) / FILE, dumps(self.to_dict()) + "\n")


def read_margin(folder: str | Path) -> Margin:
    """Read what `Margin.write` wrote. Raises RunFolderError for a missing or damaged file."""
    path = Path(folder) / FILE
    try:
        return TypeAdapter(Margin).validate_python(parsed(read(path)))
    except (OSError, ValueError) as error:
        why = first_fault(error) if isinstance(error, ValidationError) else error
        raise RunFolderError(f"{path}: no margin can be read there ({why}); make one with `heron margin`") from error


def margin(
    env: str | Callable[..., HeronEnv],
    policy: Any,
    *,
    name: str | None = None,
    fault: str = "act_delay",
    keep: float = 0.95,
    largest: float | None = None,
    under: Condition = IDEAL,
    cases: Sequence[Case] | int = 64,
    options: Mapping[str, Any] | None = None,
    trust: Trust = (),
    processes: int = 1,
    progress: Callable[[str], None] | None = None,
) -> Margin:
    """Find the largest amount of a fault at which a policy keeps a share of its gain over doing nothing.

    Four amounts up to the largest are tried, then at most eight around the first one where the share is lost. Each
    takes 32 cases, or 64, 128, 256 (or all there are) until it is decided. All verdicts together are right with 95 %.
    Without a confirmed gain nothing is tried.

    Args:
        env, policy, options, trust: as of `Sweep.of`; a pool of training seeds is judged by its mean.
        name: of the policy; default: the text that names it.
        fault: a cause of conditions, such as "msg_delay", "loss", "tick_ratio".
        keep: the share, above 0 and below 1.
        largest: amount that is tried; default: four control steps of a delay, 0.8 of jitter, loss and noise.
        under: another fault, the same at every amount; jitter needs one with a delay.
        cases: held-out cases, or how many of the environment's own test cases to take.
        processes: workers; they start anew at each look, which pays where episodes take seconds.
        progress: is called with a line before each look.

    Returns:
        A Margin: interval, estimate and all tried amounts; as text one sentence.

    Raises:
        ConfigError, ScheduleError, RunFolderError: for what can't be run, before anything runs.

    Example: `print(margin("heron/Spread-v0", "assigned landmark", fault="loss"))`.
    """
    name = name or (policy if isinstance(policy, str) else "policy")
    _require(name, fault, keep, under)
    sweep = Sweep.of(env, {name: policy}, [under], cases=cases, options=options, trust=trust)
    ladder, step = _ladder(sweep, under, fault, largest)
    intervals, workers = Intervals([sorted(case.options.items()) for case in sweep.cases]), executor_of(processes)
    if intervals.units < 2:
        raise ConfigError(f"margin(cases={cases!r:.60}): needs two cases or more, better 32; repeats count as one")

    @cache
    def returns(name: str, condition: Condition, units: range) -> NDArray[np.float64]:
        """By case that counts, means over its repeats and over training seeds, `[n]`."""
        numbers, members = np.flatnonzero(np.isin(intervals.unit, units)).tolist(), sweep.members(name)
        study = replace(sweep, conditions=(condition,))
        items = [item for item in study.items() if item.name in members and item.number in numbers]
        if progress is not None:
            progress(f"{name} under {condition.words}: {len(items)} episodes")
        done = study.play(workers, items=items)
        rows = [[done[Key(member, n, condition.name)].outcome.value for n in numbers] for member in members]
        places = intervals.unit[numbers] - units.start
        return np.asarray(np.bincount(places, np.mean(rows, axis=0)) / np.bincount(places))

    def advantage(level: float, units: range) -> NDArray[np.float64]:
        nothing = returns(NOTHING, SYNC, units)
        at, without = (returns(name, under.but(**{fault: x}), units) for x in (level, ladder[0]))
        return np.asarray((at - nothing) - keep * (without - nothing))

    edge = first_crossing(advantage, ladder, intervals.units, step=step)
    plain = dict(sweep.settings()["options"])
    return Margin(edge.probes, sweep.env.id, plain, name, fault, keep, under.name, sweep.unit, step, intervals.units)


def _require(name: str, fault: str, keep: float, under: Condition) -> None:
    """Raise ConfigError for what no margin can be asked for."""
    require_one_of(f"margin(fault={fault!r:.60})", fault, tuple(CAUSES))
    if fault == "rate":
        raise ConfigError(
            "margin(fault='rate'): a rate falls from infinity, and has no first amounts to try; sweep it, "
            "--axis rate=500,1000,inf, or have it at every amount, under=Condition(rate=1000)"
        )
    if not is_finite(keep) or not 0.0 < keep < 1.0:
        raise ConfigError(f"margin(keep={keep!r:.60}): must be a share above 0 and below 1, as 0.95")
    if name == NOTHING:
        raise ConfigError(f"margin(policy={NOTHING!r}): the gain is over doing nothing; name another policy")
    if fault in under.causes:
        raise ConfigError(
            f"margin(fault={fault!r}, under={under.name!r}): the fault is varied; leave it out of `under`"
        )


def _ladder(sweep: Sweep, under: Condition, fault: str, largest: float | None) -> tuple[list[float], float]:
    """The first amounts, from none of the fault on, and the step: a substep of physics for a delay."""
    env = sweep.env.make(**sweep.options)
    none, substeps = CAUSES[fault].ideal, getattr(env, "physics_substeps", 1)  # what only steps as a whole has none
    most, step = SCALES.get(fault, (STEPS * env.dt, env.dt / substeps))
    most = most if largest is None else largest
    if not is_finite(most) or not most >= none + step:
        least = amount_text(none + step)
        raise ConfigError(f"margin({fault}, largest={largest!r:.60}): must be a number of {least} at least, one step")
    reach = (most - none) / step
    steps = [max(1, min(round(share * reach), math.floor(reach + 1e-9))) for share in LADDER]
    ladder = [none, *dict.fromkeys(round(none + step * count, 9) for count in steps)]
    for level in ladder:
        env.timings_of(under.but(**{fault: level}).schedule(env))
    return ladder, step
