"""When an agent ticks and how long its messages take: what a user writes, and its compiled form in nanoseconds."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Final, Literal

import numpy as np

from heron_env.errors import RemovedName, ScheduleError, checked_keywords, did_you_mean
from heron_env.given import is_finite, is_number, refuse_removed
from heron_env.scheduling.media import Medium, Reliable
from heron_env.scheduling.sources import SECOND as SECOND
from heron_env.scheduling.sources import Delay, DelaySource, GilbertElliott, Loss, Source
from heron_env.scheduling.sources import to_seconds as to_seconds
from heron_env.scheduling.ticks import ticks_at

JITTERS: Final = ("none", "uniform", "gaussian", "lognormal")
ON_MISSING: Final = ("hold", "noop")
OWN_ROWS: Final = ("proxy", "local")
LEVELS: Final = {1: "field", 2: "coordinator", 3: "system"}
CLOCK: Final = ("clock_offset", "clock_drift")
"""Fields of a clock that is wrong (T28)."""
MOST_OFFSET: Final = 1e6
"""Seconds: no clock is as wrong as that when an episode begins."""
MOST_DRIFT: Final = 0.1
END_OF_TIME: Final = 2**63
"""Nanoseconds: virtual time stays below, 292 years. It is kept in int64."""


def to_ns(seconds: float, what: str) -> int:
    """Whole nanoseconds of a time in seconds, rounded once.

    Raises ScheduleError naming `what` and the value if it is no number, nan, infinite, negative or beyond int64.
    """
    fault = _fault_of_time(seconds)
    if fault:
        raise ScheduleError(f"{what}={seconds!r}: {fault}")
    return round(float(seconds) * SECOND)


def require_before_the_end(ns: int, what: str) -> None:
    """Raise ScheduleError if `what` happens at a time, ns, that there is not any more."""
    if ns >= END_OF_TIME:
        raise ScheduleError(
            f"{what} would be at {to_seconds(ns)!r} s, and time is kept in int64 ns: it ends before 9.2e9 s "
            "(292 years); end the episode before, or let dt stand for less"
        )


def _fault_of_number(value: object) -> str:
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | float | np.integer | np.floating):
        return f"must be a number, got {type(value).__name__}"
    return "" if is_finite(value) else "must be finite"


def _fault_of_time(value: Any) -> str:
    fault = _fault_of_number(value)
    if fault:
        return fault
    if value < 0:
        return "must be 0 or more, in seconds"
    return "" if float(value) * SECOND < END_OF_TIME else "must be below 9.2e9 seconds (time is kept in int64 ns)"


def _fault_of_share(value: Any) -> str:
    return _fault_of_number(value) or ("" if 0 <= value <= 1 else "must be between 0 and 1")


def _fault_of_delay(value: object) -> str:
    if isinstance(value, GilbertElliott):
        return "is for losses: loss=GilbertElliott(...); delays that come in bursts are Markov(...)"
    return "" if isinstance(value, DelaySource) else _fault_of_time(value)


def _fault_of_loss(value: object) -> str:
    if isinstance(value, DelaySource):
        return "is for delays; losses that come in bursts are GilbertElliott(...)"
    return "" if isinstance(value, GilbertElliott) else _fault_of_share(value)


def _fault_of_ratio(value: float) -> str:
    return _fault_of_number(value) or ("" if value >= 0 else "must be 0 or more")


def _fault_of_flag(value: object) -> str:
    return "" if isinstance(value, bool) else "must be True or False"


def _fault_of_kind(value: object, kind: type[Any], example: str) -> str:
    return "" if value is None or isinstance(value, kind) else f"must be None or {example}"


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _fault_of_choice(value: object, allowed: tuple[str, ...]) -> str:
    if isinstance(value, str) and value in allowed:
        return ""
    return f"must be one of {', '.join(map(repr, allowed))}.{did_you_mean(value, allowed)}"


@checked_keywords
@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleConfig:
    """Timing of one agent, group or level; times in seconds, everything checked when it is built.

    obs_delay, act_delay and msg_delay are numbers, or come from data: Empirical, Recorded, Markov; loss is a number or
    GilbertElliott (`heron_env.scheduling.sources`). Jitter comes on top. Where one number is needed, in notes,
    descriptions and the reliable legs of the physics cycle, the mean of a source is used.

    Attributes:
        tick_interval: time between two ticks; None means the environment's dt.
        phase: time of the first tick.
        obs_delay: between gathering an observation and its reply leaving the proxy.
        act_delay: between a decision and its own effect.
        msg_delay: one leg between agent and proxy, or parent and child (the lower agent's link counts).
        jitter_type: "none", "uniform" (z in [-1, 1)), "gaussian" or "lognormal" (both: z of mean 0, variance 1).
        jitter_ratio: a delay x becomes max(min_delay, x * (1 + jitter_ratio * z)); for gaussian and lognormal it is
            std / mean.
        tick_jitter_ratio: a tick of the agent's own clock moves by tick_jitter_ratio * z of its interval, at most half
            of it.
        loss: probability that a message is lost; 1 is legal. Physics legs other than reports are never lost.
        reorder: may a message overtake an earlier one of the same link?
        min_delay: no delay of a link is shorter.
        on_missing: what holds while a command or observation is late: "hold", the last set-point, "noop", the no-op.
        medium: what its messages occupy while they are sent, together with those of all links with an equal one.
        priority: with order="priority" of the medium, waiting messages with a smaller one go first.
        keep: how many messages of one stream may wait (reports of a row, shares of an edge, requests, ...): a newer one
            displaces the oldest. None: all.
        lifespan: longest wait for a medium or another attempt, s; then a message is discarded. None: any.
        transport: how lost messages are sent again; None: not at all.
        clock_offset: lead of the agent's clock when an episode begins, s, of any sign, below 1e6. It changes only the
            ages of `observe_age=True`.
        clock_drift: how much faster the clock runs, -0.1 to 0.1; at time t it shows clock_offset + (1 + clock_drift) *
            t. The agent ticks every tick_interval of its own clock: every tick_interval / (1 + clock_drift) seconds.
        thinking: duration of each decision, in addition to `Answer.thinking`, s; a number or data, as delays. Meanwhile
            the agent observes nothing, and the action in force continues. Jitter, loss and min_delay do not apply.
        own_rows: what an agent sees of itself when it decides: "proxy": what the proxy knew; "local": the truth; None:
            as its class says.

    Raises ScheduleError naming the field, its value and what is allowed.

    >>> ScheduleConfig(tick_interval=5.0, msg_delay=0.2, loss=0.05).msg_delay
    0.2
    """

    tick_interval: float | None = None
    phase: float = 0.0
    obs_delay: Delay = 0.0
    act_delay: Delay = 0.0
    msg_delay: Delay = 0.0
    jitter_type: Literal["none", "uniform", "gaussian", "lognormal"] = "none"
    jitter_ratio: float = 0.0
    tick_jitter_ratio: float = 0.0
    loss: Loss = 0.0
    reorder: bool = False
    min_delay: float = 0.0
    on_missing: Literal["hold", "noop"] = "hold"
    own_rows: Literal["proxy", "local"] | None = None
    medium: Medium | None = None
    priority: int = 0
    keep: int | None = None
    lifespan: float | None = None
    transport: Reliable | None = None
    clock_offset: float = 0.0
    clock_drift: float = 0.0
    thinking: Delay = 0.0

    def __post_init__(self) -> None:
        for name, fault in self._faults():
            if fault:
                raise ScheduleError(f"ScheduleConfig({name}={getattr(self, name)!r}): {fault}")

    def _faults(self) -> Iterator[tuple[str, str]]:
        if self.tick_interval is not None:
            yield "tick_interval", _fault_of_time(self.tick_interval)
            too_short = round(float(self.tick_interval) * SECOND) == 0
            yield "tick_interval", "must be at least 1e-9 seconds; None means the env's dt" if too_short else ""
        for name in ("phase", "min_delay"):
            yield name, _fault_of_time(getattr(self, name))
        for name in ("obs_delay", "act_delay", "msg_delay", "thinking"):
            yield name, _fault_of_delay(getattr(self, name))
        yield "jitter_type", _fault_of_choice(self.jitter_type, JITTERS)
        for name in ("jitter_ratio", "tick_jitter_ratio"):
            yield name, _fault_of_ratio(getattr(self, name))
            idle = getattr(self, name) > 0 and self.jitter_type == "none"
            yield name, "needs jitter_type='uniform', 'gaussian' or 'lognormal'" if idle else ""
        yield "loss", _fault_of_loss(self.loss)
        endless = isinstance(self.transport, Reliable) and self.transport.tries is None
        never = endless and is_number(self.loss) and self.loss == 1
        yield "loss", "nothing would ever arrive: its transport tries for ever; give that tries=" if never else ""
        yield "reorder", _fault_of_flag(self.reorder)
        yield "on_missing", _fault_of_choice(self.on_missing, ON_MISSING)
        yield "medium", _fault_of_kind(self.medium, Medium, "Medium('radio', rate=1000.0)")
        yield "transport", _fault_of_kind(self.transport, Reliable, "Reliable(rto=0.2)")
        small = _is_whole(self.priority) and abs(self.priority) < 2**53
        yield "priority", "" if small else "must be a whole number, within 2**53; smaller goes first"
        by_priority = self.medium is not None and self.medium.order == "priority"
        yield "priority", "needs a medium with order='priority'" if self.priority and not by_priority else ""
        idle = "needs a medium or a transport" if self.medium is None and self.transport is None else ""
        if self.keep is not None:
            good = _is_whole(self.keep) and 1 <= self.keep < 2**53
            yield "keep", idle if good else "must be a whole number, 1 or more, or None"
        if self.lifespan is not None:
            yield "lifespan", _fault_of_time(self.lifespan)
            yield "lifespan", "must be above 0" if self.lifespan == 0 else idle
        fault = _fault_of_number(self.clock_offset)
        yield "clock_offset", fault or ("" if abs(self.clock_offset) < MOST_OFFSET else "must be less than 1e6 seconds")
        fault = _fault_of_number(self.clock_drift)
        yield "clock_drift", fault or ("" if abs(self.clock_drift) <= MOST_DRIFT else "must be between -0.1 and 0.1")
        yield "own_rows", "" if self.own_rows is None else _fault_of_choice(self.own_rows, OWN_ROWS)


GONE: Final = {
    "duplicate": "a message travels once; transport=Reliable(rto=0.0, tries=2) sends again what was lost, and pays for "
    "it"
}
"""Fields of earlier versions, and what takes their place."""
setattr(  # noqa: B010
    ScheduleConfig, "__init__", refuse_removed("ScheduleConfig", GONE, RemovedName)(ScheduleConfig.__init__)
)


@dataclass(frozen=True, slots=True)
class Timing:
    """The schedule of one agent in whole nanoseconds, `tick_interval=None` already replaced by dt.

    Of a time from data, obs, act, msg and thinking are its mean; `sourced`: does anything come from data? `local`:
    does it see its own rows as they are when it decides?
    """

    agent: str
    tick: int
    phase: int
    obs: int
    act: int
    msg: int
    min_delay: int
    config: ScheduleConfig
    local: bool = False
    lifespan: int | None = None
    thinking: int = 0

    @classmethod
    def of(cls, agent: str, config: ScheduleConfig, dt_ns: int) -> "Timing":
        """Compile `config` for the agent of that id. Raises ScheduleError for ticks beyond int64."""
        tick = dt_ns if config.tick_interval is None else to_ns(config.tick_interval, "tick_interval")
        if config.clock_drift:
            tick = round(tick / (1.0 + config.clock_drift))
            if tick >= END_OF_TIME:
                fault = _fault_of_time(to_seconds(tick))
                raise ScheduleError(
                    f"agent {agent!r}: tick_interval / (1 + clock_drift)={to_seconds(tick)!r} s: {fault}"
                )
        return cls(
            agent=agent,
            tick=tick,
            phase=to_ns(config.phase, "phase"),
            obs=_mean_ns(config.obs_delay, "obs_delay"),
            act=_mean_ns(config.act_delay, "act_delay"),
            msg=_mean_ns(config.msg_delay, "msg_delay"),
            min_delay=to_ns(config.min_delay, "min_delay"),
            config=config,
            lifespan=None if config.lifespan is None else to_ns(config.lifespan, "lifespan"),
            thinking=_mean_ns(config.thinking, "thinking"),
        )

    def without_drift(self, dt_ns: int) -> "Timing":
        """The same with ticks that do not drift."""
        config = replace(self.config, clock_drift=0.0)
        return replace(Timing.of(self.agent, config, dt_ns), local=self.local) if self.config.clock_drift else self

    @property
    def offset(self) -> int:
        """How much its clock is ahead when an episode begins, ns."""
        return round(self.config.clock_offset * SECOND)

    @property
    def shared(self) -> bool:
        """May its messages wait for a medium, another attempt, or each other?"""
        return self.config.medium is not None or self.config.transport is not None

    @property
    def sourced(self) -> bool:
        """Does anything of its link come from data?"""
        c = self.config
        return any(isinstance(value, Source) for value in (c.obs_delay, c.act_delay, c.msg_delay, c.loss, c.thinking))

    @property
    def thinks(self) -> bool:
        """Do its decisions take time?"""
        return bool(self.thinking) or isinstance(self.config.thinking, DelaySource)

    @property
    def instant(self) -> bool:
        """Do its observations and commands take no time, and is none lost?"""
        c = self.config
        waits = c.medium is not None and c.medium.rate < math.inf
        return not (
            self.msg or self.obs or self.act or self.thinking or self.min_delay or self.sourced or c.loss or waits
        )

    def nominal(self, number: int) -> int:
        """Nominal time of tick `number`, ns."""
        return self.phase + number * self.tick

    def number(self, ns: Any) -> Any:
        """The number of the last nominal tick by a time, ns, or by an array of times; negative before the first."""
        return (ns - self.phase) // self.tick

    def ticks_at(self, ns: int) -> bool:
        """Does the agent nominally tick at a time, ns?"""
        return bool(ticks_at(ns, self.tick, self.phase))

    def require_multiples_of(
        self, dt_ns: int, by: str = "the synchronous clock",
        otherwise: str = "change dt, or give this schedule to run_event_driven() only",
    ) -> None:  # fmt: skip
        """Raise ScheduleError unless tick and phase are whole multiples of dt; `by`: what needs it."""
        for name, ns in (("tick_interval", self.tick), ("phase", self.phase)):
            if ns % dt_ns:
                near = f"{to_seconds(max(round(ns / dt_ns), name == 'tick_interval') * dt_ns)!r}"
                if name == "tick_interval" and self.config.clock_drift:
                    name, near = "tick_interval / (1 + clock_drift)", "clock_drift=0.0"
                raise ScheduleError(
                    f"agent {self.agent!r}: {name}={to_seconds(ns)!r} s is not a whole multiple of the env's "
                    f"dt={to_seconds(dt_ns)!r} s, which {by} needs. Use {near}, {otherwise}"
                )


def _mean_ns(delay: Delay, what: str) -> int:
    return delay.mean_ns if isinstance(delay, DelaySource) else to_ns(delay, what)


Key = str | int
Schedule = ScheduleConfig | Mapping[Key, ScheduleConfig] | None


def resolve(
    schedule: Schedule,
    *,
    ids: Sequence[str],
    levels: Sequence[int],
    groups: Mapping[str, Sequence[str]],
    dt_ns: int,
    own_rows: Sequence[str] = (),
) -> tuple[Timing, ...]:
    """The timing of every agent, in rank order.

    A mapping's keys are agent ids, group names, levels (1, 2, 3 or "field", "coordinator", "system") or "*"; the most
    special entry counts as a whole: agent, then group, level, "*", and without any the default schedule.

    Args:
        schedule: one schedule for all, one per key, or None (all tick each dt, without delay).
        ids: agent ids by rank.
        levels: level by rank; 3 and above are the system level.
        groups: member ids by group name.
        dt_ns: the control step, ns.
        own_rows: what the classes of the agents say, by rank ("proxy" or "local"); without it: "proxy".

    Raises ScheduleError for unknown or doubled keys and for values that are no ScheduleConfig.
    """
    table = _table(schedule, ids, groups)
    require_one_meaning(config.medium for config in table.values() if config.medium is not None)
    group_of = {member: group for group, members in groups.items() for member in members}
    default, timings = ScheduleConfig(), []
    compiled: dict[int, Timing] = {}  # by id: agents of one entry share one config
    for agent, level, rows in zip(ids, levels, own_rows or ["proxy"] * len(ids), strict=True):
        meanings = (agent, ("group", group_of.get(agent)), ("level", min(level, 3)), "*")
        config = next((table[meaning] for meaning in meanings if meaning in table), default)
        if id(config) not in compiled:
            compiled[id(config)] = Timing.of(agent, config, dt_ns)
        timings.append(replace(compiled[id(config)], agent=agent, local=(config.own_rows or rows) == "local"))
    return tuple(timings)


def require_one_meaning(media: Iterable[Medium]) -> None:
    """Raise ScheduleError where two media of one name differ."""
    by_name: dict[str, Medium] = {}
    for medium in media:
        first = by_name.setdefault(medium.name, medium)
        for each in fields(Medium):
            one, other = getattr(first, each.name), getattr(medium, each.name)
            if one != other:
                raise ScheduleError(
                    f"schedule: there are two media {medium.name!r}, with {each.name}={one!r:.60} and "
                    f"{each.name}={other!r:.60}; give both the same, or another name"
                )


def _table(schedule: object, ids: Sequence[str], groups: Mapping[str, Sequence[str]]) -> dict[object, ScheduleConfig]:
    """Entries by agent id, ("group", name), ("level", number) or "*"; a name that is both agent and group is both."""
    if schedule is None:
        return {}
    if isinstance(schedule, ScheduleConfig):
        return {"*": schedule}
    if not isinstance(schedule, Mapping):
        kind = type(schedule).__name__
        raise ScheduleError(f"schedule={schedule!r}: must be a ScheduleConfig, a mapping of them, or None, got {kind}")
    table: dict[object, ScheduleConfig] = {}
    agents = set(ids)
    for key, config in schedule.items():
        if not isinstance(config, ScheduleConfig):
            raise ScheduleError(
                f"schedule[{key!r}]={config!r}: must be a ScheduleConfig, got {type(config).__name__}; "
                "write ScheduleConfig(tick_interval=...)"
            )
        meanings = _meanings(key, agents, groups)
        if not meanings:
            raise ScheduleError(_unknown(key, ids, groups))
        for meaning in meanings:
            if meaning in table:
                other = _other_name(key)
                raise ScheduleError(f"schedule[{key!r}]: the entry {other!r} means the same level; keep one")
            table[meaning] = config
    return table


def _meanings(key: Key, agents: set[str], groups: Mapping[str, Sequence[str]]) -> list[object]:
    if isinstance(key, str) and (key == "*" or key in agents or key in groups):
        return [key] * (key == "*" or key in agents) + [("group", key)] * (key in groups)
    levels = [number for number, name in LEVELS.items() if key == name or (key == number and type(key) is int)]
    return [("level", number) for number in levels]


def _other_name(key: Key) -> Key:
    by_name: dict[Key, Key] = {name: number for number, name in LEVELS.items()}
    return by_name[key] if isinstance(key, str) else LEVELS[key]


def _unknown(key: object, ids: Sequence[str], groups: Mapping[str, Sequence[str]]) -> str:
    near = did_you_mean(key, (*ids, *groups, *LEVELS.values()))
    return (
        f"schedule[{key!r}]: no such agent, group or level; groups are {sorted(groups)}, "
        f"levels 1, 2, 3 or 'field', 'coordinator', 'system', and '*' means all.{near}"
    )
