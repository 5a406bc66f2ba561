"""Conditions of a sweep: delays, losses, noise and other faults of a deployed policy, and their products.

A condition says all of it: what it does not name is ideal, whatever the environment's own schedule has there. Ticks,
phases and what is done about missing messages are the environment's own. Draws are keyed by seed, agent, cause and
number, so two conditions with one seed share every draw that both make (T8, T9): their difference is paired.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, combinations, product
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, NamedTuple

from heron_env.envs.base import HeronEnv
from heron_env.errors import ConfigError, DataError, HeronError, ScheduleError, did_you_mean
from heron_env.files.reading import decimal
from heron_env.given import is_number, require_type
from heron_env.lab.benchmark import Env
from heron_env.scheduling.drawn import AnySchedule, plain
from heron_env.scheduling.media import Medium
from heron_env.scheduling.sources import KINDS, Source, as_source, label
from heron_env.scheduling.timing import LEVELS, Key, ScheduleConfig, to_ns

if TYPE_CHECKING:
    from heron_env.observability.config import ObservabilityConfig
    from heron_env.scheduling.disturbances import Disturbance

JITTER: Final[Literal["gaussian"]] = "gaussian"
"""Law of the jitter: its ratio is standard deviation / mean of a delay."""

ByKey = tuple[tuple[str, float | Source], ...]
"""Amounts by agent, group, level ("field", "coordinator", "system") or "*"; who is not named has none of it."""
Names = tuple[str, ...]
"""Of sets of disturbances."""
Amount = float | Source | ByKey
GivenAmount = float | Source | Mapping[str, float | Source] | str | Sequence[str]


class Cause(NamedTuple):
    """One thing that can be wrong."""

    words: str
    unit: str
    ideal: float = 0.0


CAUSES: Final = {
    "obs_delay": Cause("observation delay", "s"),
    "msg_delay": Cause("message delay", "s"),
    "act_delay": Cause("action delay", "s"),
    "thinking": Cause("thinking", "s"),
    "jitter": Cause("jitter", "1"),
    "loss": Cause("loss", "1"),
    "tick_ratio": Cause("tick ratio", "1", 1.0),
    "noise": Cause("noise", "1"),
    "rate": Cause("rate", "bytes/s", math.inf),
}
"""By name, in the order in which they are told; `DISTURBANCES` come last."""
DISTURBANCES: Final = "disturbances"
OVERHEAD: Final = 20.0
"""Bytes that each message has beside its content, on the medium that a `rate` makes."""


@dataclass(frozen=True)
class Condition:
    """Delays, losses and other faults of a network; `SYNC` is the synchronous clock, `Condition()` an ideal network.

    Ticks and `own_rows` stay the environment's own.

    Attributes:
        obs_delay: between gathering an observation and its reply leaving the proxy, s.
        msg_delay: of each message, s.
        act_delay: between a decision and its effect, s.
        thinking: what a decision takes, in which its agent looks at nothing, s.
        jitter: standard deviation / mean of delays. Ticks keep the wavering of the environment's own schedule.
        loss: probability that a message is lost.
        tick_ratio: an agent ticks so many times more rarely than by the environment's schedule, and holds in between.
        noise: factor on all that an agent sees of others, on top of what the environment declares.
        rate: bytes a second that links can carry together: of each medium of the environment's own schedule, or, where
            that has none, of one that all links share, by order of coming and with 20 bytes of headers a message.
        disturbances: names of the environment's `disturbance_sets()`, each drawn with the seed of the case.
        synchronous: the synchronous clock, which knows no network: only disturbances can go with it.

    The first seven are one number for all agents, or a mapping by agent, group, level or "*" (the most special counts);
    the delays and the loss may also come from data, as in ScheduleConfig, and figures then show their means: measured
    delays are `Condition(msg_delay=Recorded("latency.csv"))`.

    Raises ConfigError, ScheduleError for impossible amounts.

    >>> Condition(act_delay=2.0, loss=0.1).loss
    0.1
    """

    obs_delay: Any = 0.0
    msg_delay: Any = 0.0
    act_delay: Any = 0.0
    thinking: Any = 0.0
    jitter: Any = 0.0
    loss: Any = 0.0
    tick_ratio: Any = 1.0
    noise: Any = 0.0
    rate: Any = math.inf
    disturbances: Any = ()
    synchronous: bool = False

    def __post_init__(self) -> None:
        """Normalise and check."""
        for name in CAUSES:
            object.__setattr__(self, name, checked_amount(name, getattr(self, name)))
        object.__setattr__(self, DISTURBANCES, checked_names(self.disturbances))
        if self.synchronous and self.causes.keys() - {DISTURBANCES}:
            raise ConfigError(
                f"Condition(synchronous=True, {self.name}): the synchronous clock has no network; leave one out"
            )

    @property
    def causes(self) -> dict[str, Amount | Names]:
        """Amounts by cause; only causes that differ from an ideal network."""
        wrong = {name: amount for name in CAUSES if (amount := getattr(self, name)) != CAUSES[name].ideal}
        return {**wrong, DISTURBANCES: self.disturbances} if self.disturbances else wrong

    @property
    def name(self) -> str:
        """Unique name: `sync`, `ideal`, `act_delay=30 jitter=0.1`."""
        texts = [f"{cause}={amount_text(amount)}" for cause, amount in self.causes.items()]
        return " ".join(["sync"] * self.synchronous + texts) or "ideal"

    def __str__(self) -> str:
        """Its name."""
        return self.name

    @property
    def words(self) -> str:
        """Readable text: `action delay 30 s, jitter 0.1`."""
        if not self.causes:
            return "synchronous clock" if self.synchronous else "event-driven, ideal network"
        texts = ["synchronous clock"] * self.synchronous
        for cause, amount in self.causes.items():
            words, unit, _ = CAUSES.get(cause, Cause(cause, "1"))
            texts.append(f"{words} {amount_text(amount)}{'' if unit == '1' else f' {unit}'}")
        return ", ".join(texts)

    def only(self, *causes: str) -> Condition:
        """Return a copy with these causes alone; without any: `Condition()`. Raises ConfigError for an unknown one."""
        for cause in causes:
            require_cause(cause)
        amounts: dict[str, Any] = {cause: amount for cause, amount in self.causes.items() if cause in causes}
        return Condition(**amounts)

    def but(self, **amounts: GivenAmount) -> Condition:
        """Return a copy with other amounts of some causes. Raises ConfigError."""
        for cause in amounts:
            require_cause(cause)
        changed: dict[str, Any] = {**amounts}
        return replace(self, **changed)

    def to_dict(self) -> dict[str, Any]:
        """For JSON: `{"act_delay": 30.0}`, an amount by key as a mapping; `{"synchronous": true}`."""
        values: dict[str, Any] = {"synchronous": True} if self.synchronous else {}
        values |= {
            c: {key: plain(one) for key, one in getattr(self, c)} if isinstance(a, tuple) else plain(a)
            for c, a in self.causes.items()
            if c in CAUSES
        }
        return {**values, DISTURBANCES: list(self.disturbances)} if self.disturbances else values

    @classmethod
    def from_dict(cls, values: object) -> Condition:
        """Rebuild from `to_dict()`. Raises ValueError for other values."""
        if not isinstance(values, Mapping) or not values.keys() <= {"name", *CAUSES, DISTURBANCES, "synchronous"}:
            raise ValueError(f"{values!r:.100} is no condition")
        amounts: dict[str, Any] = {name: value for name, value in values.items() if name != "name"}
        try:
            condition = cls(**amounts)
            name = condition.name
        except (HeronError, TypeError, OverflowError) as error:
            raise ValueError(str(error)) from error
        if name != values.get("name") or type(condition.synchronous) is not bool:
            raise ValueError(f"{name!r:.60} is called {values.get('name')!r:.60}")
        return condition

    def schedule(self, env: Env) -> dict[Key, ScheduleConfig]:
        """Return the timing of every agent of `env`. Raises ScheduleError for keys that match no agent, ConfigError."""
        self._require_keys(env)
        if self.noise and not isinstance(env, HeronEnv):
            raise ConfigError(f"condition {self.name!r}: a black box has no noise; leave noise out")
        group_of = {member: group for group, members in env.groups.items() for member in members}
        schedules: dict[Key, ScheduleConfig] = {}
        has_media = any(timing.config.medium is not None for timing in env.timings)
        shared = None if has_media or self.rate == math.inf else Medium(rate=self.rate, overhead=OVERHEAD)
        for rank, timing in enumerate(env.timings):
            agent = timing.agent
            keys = (agent, group_of.get(agent, ""), LEVELS[min(env.hierarchy.level[rank], 3)], "*")
            x = {cause: _of(getattr(self, cause), keys, CAUSES[cause].ideal) for cause in CAUSES}
            own = timing.config.medium
            schedules[agent] = replace(
                timing.config,
                medium=shared if own is None else replace(own, rate=self.rate),
                tick_interval=x["tick_ratio"] * timing.without_drift(to_ns(env.dt, "dt")).tick / 1e9,
                obs_delay=x["obs_delay"], msg_delay=x["msg_delay"], act_delay=x["act_delay"], thinking=x["thinking"],
                jitter_type=_law_of_jitter(timing.config, x["jitter"]), jitter_ratio=x["jitter"], loss=x["loss"],
            )  # fmt: skip
        return schedules

    def observability(self, own: ObservabilityConfig | None) -> ObservabilityConfig:
        """Return who sees what: `own`, the environment's, with this noise on top."""
        from heron_env.observability.config import ByTags

        base = own or ByTags()
        return base.model_copy(update={"common_noise": base.common_noise + self.noise})

    def happenings(self, env: Env, seed: int) -> list[Disturbance]:
        """Return the disturbances of one episode. Raises ConfigError for a set that `env` does not have."""
        sets = env.disturbance_sets()
        for name in self.disturbances:
            if name not in sets:
                raise ConfigError(
                    f"condition {self.name!r}: no set of disturbances {name!r}; this environment has "
                    f"{list(sets) or 'none'}.{did_you_mean(name, sets)}"
                )
        return [disturbance for name in self.disturbances for disturbance in sets[name](seed)]

    def _require_keys(self, env: Env) -> None:
        keys = [*env.hierarchy.ids, *env.groups, *LEVELS.values(), "*"]
        amounts = {cause: getattr(self, cause) for cause in CAUSES}
        for cause, key in ((c, key) for c, of in amounts.items() if isinstance(of, tuple) for key, _ in of):
            if key not in keys:
                raise ScheduleError(
                    f"condition {self.name!r}: {cause} of {key!r}: no such agent, group or level; groups are "
                    f"{sorted(env.groups)}, levels {list(LEVELS.values())}, and '*' means all."
                    f"{did_you_mean(key, keys)}"
                )


def _law_of_jitter(own: ScheduleConfig, jitter: float) -> Literal["none", "uniform", "gaussian", "lognormal"]:
    """That of wavering ticks stays: one law serves delays and ticks."""
    if own.tick_jitter_ratio:
        return own.jitter_type
    return JITTER if jitter else "none"


def require_cause(name: str) -> None:
    """Raise ConfigError for a name that is no cause."""
    names = [*CAUSES, DISTURBANCES]
    if name not in names:
        raise ConfigError(f"{name!r} is no cause; there are {names}.{did_you_mean(name, names)}")


def checked_names(raw: object) -> Names:
    """Names of sets, each once; one name stands for itself. Raises ConfigError."""
    names = (raw,) if isinstance(raw, str) else raw
    if not isinstance(names, Sequence) or not all(isinstance(name, str) and name for name in names):
        raise ConfigError(f"disturbances={raw!r}: give names of sets, as the environment's disturbance_sets() has them")
    return tuple(dict.fromkeys(names))


def checked_amount(cause: str, raw: object) -> Amount:
    """An amount in its normal form, which is hashable: a float, or pairs by key. Raises ConfigError, ScheduleError."""
    if isinstance(raw, Mapping) and len(raw) == 1 and next(iter(raw)) in KINDS:
        raw = as_source(raw)
    if isinstance(raw, Mapping | tuple):
        if cause in ("noise", "rate"):
            raise ConfigError(f"{cause}={raw!r}: {cause} is one number for all agents")
        pairs = tuple(raw.items()) if isinstance(raw, Mapping) else raw
        if not all(isinstance(pair, tuple) and len(pair) == 2 and isinstance(pair[0], str) for pair in pairs):
            raise ConfigError(
                f"{cause}={raw!r}: must be one number, or a mapping of agents, groups or levels to numbers; "
                "several amounts are an axis: along() and grid() take them"
            )
        checked = tuple((key, _checked_number(cause, as_source(value))) for key, value in dict(pairs).items())
        return checked if any(amount != CAUSES[cause].ideal for _, amount in checked) else CAUSES[cause].ideal
    return _checked_number(cause, raw)


def _checked_number(cause: str, value: Any) -> float | Source:
    if cause == "tick_ratio":
        if not is_number(value) or value <= 0.0:
            raise ConfigError(f"tick_ratio={value!r}: must be above 0; 4 ticks four times more rarely")
    elif cause == "noise":
        if not is_number(value) or value < 0.0:
            raise ConfigError(f"noise={value!r}: must be a factor >= 0, as 0.1 is")
    elif cause == "rate":
        Medium(rate=value)
    elif cause == "jitter":
        ScheduleConfig(jitter_ratio=value, jitter_type=JITTER)
    else:
        ScheduleConfig(**{cause: value})
    return value if isinstance(value, Source) else float(value)


def _of(amount: Amount, keys: tuple[str, ...], ideal: float) -> Any:
    """The amount for an agent whose keys are these, the most special first."""
    if not isinstance(amount, tuple):
        return amount
    table = dict(amount)
    return next((table[key] for key in keys if key in table), ideal)


def amount_text(amount: Amount | Names) -> str:
    """`30`, `field:0.3/coordinator:0.1`, `clouds/spikes`: as short as its value can be read back."""
    if isinstance(amount, tuple):
        return "/".join(part if isinstance(part, str) else f"{part[0]}:{amount_text(part[1])}" for part in amount)
    if isinstance(amount, Source):
        return label(amount)
    return str(int(amount)) if abs(amount) < 1e15 and amount == int(amount) else repr(amount)


@dataclass(frozen=True)
class Scheduled:
    """The event clock under a schedule as it is, which may be drawn anew for each case; None: the environment's own."""

    under: AnySchedule
    name: str = "schedule"
    words: ClassVar[str] = "event-driven under its schedule"
    synchronous: ClassVar[bool] = False
    noise: ClassVar[float] = 0.0
    disturbances: ClassVar[Names] = ()

    def schedule(self, env: Env) -> AnySchedule:
        """Itself."""
        return self.under

    def happenings(self, env: Env, seed: int) -> list[Disturbance]:
        """None."""
        return []


AnyCondition = Condition | Scheduled
SYNC: Final = Condition(synchronous=True)
IDEAL: Final = Condition()
"""Event-driven under an ideal network: equal to `SYNC`, bit for bit, where the environment's ticks allow both."""


Axes = Mapping[str, Sequence[GivenAmount]]
"""Amounts by cause: `{"act_delay": (0, 30, 60)}`."""


def along(base: Condition = IDEAL, **axes: Sequence[GivenAmount]) -> list[Condition]:
    """Make conditions along one axis after the other.

    Args:
        base: the amounts of the other causes.
        axes: amounts by cause, in the cause's unit (delays in s).

    Returns:
        Each condition once, in the order of the axes.

    Raises:
        ConfigError, ScheduleError: an unknown cause, or an impossible amount.

    >>> [condition.name for condition in along(act_delay=(0, 30), loss=(0.1,))]
    ['ideal', 'act_delay=30', 'loss=0.1']
    """
    return unique(base.but(**{cause: amount}) for cause, amounts in axes.items() for amount in _listed(cause, amounts))


def grid(base: Condition = IDEAL, **axes: Sequence[GivenAmount]) -> list[Condition]:
    """The product of the axes, the last one fastest."""
    listed = [_listed(cause, amounts) for cause, amounts in axes.items()]
    return unique(base.but(**dict(zip(axes, amounts, strict=True))) for amounts in product(*listed))


def one_at_a_time(all_of_it: Condition) -> list[Condition]:
    """The ideal network; each cause alone; all together. Jitter alone is left out: without a delay it does nothing.

    Args:
        all_of_it: the condition with all causes.

    Returns:
        The conditions that a waterfall needs.

    Raises:
        ConfigError: it is no Condition.

    >>> [condition.name for condition in one_at_a_time(Condition(act_delay=30, loss=0.1))]
    ['ideal', 'act_delay=30', 'loss=0.1', 'act_delay=30 loss=0.1']
    """
    require_type(f"one_at_a_time({all_of_it!r:.60})", all_of_it, Condition, "a Condition")
    return unique([IDEAL, *filter(_acts, map(all_of_it.only, all_of_it.causes)), all_of_it])


def _acts(condition: Condition) -> bool:
    """Does it change anything? Jitter scales delays, so alone it does not."""
    return set(condition.causes) != {"jitter"}


def coalitions(all_of_it: Condition) -> list[Condition]:
    """Every subset of the causes but jitter alone, small ones first: what exact Shapley values need.

    >>> len(coalitions(Condition(act_delay=30, msg_delay=1, loss=0.1)))
    8
    """
    causes = tuple(all_of_it.causes)
    subsets = chain.from_iterable(combinations(causes, size) for size in range(len(causes) + 1))
    return unique(filter(_acts, (all_of_it.only(*subset) for subset in subsets)))


def unique(conditions: Iterable[Condition]) -> list[Condition]:
    """Each condition once, where it comes first."""
    return list(dict.fromkeys(conditions))


def parsed_axis(text: str, option: str = "--axis") -> tuple[str, tuple[GivenAmount, ...]]:
    """`act_delay=0,30,60`, `msg_delay=0,field:0.05/system:0.2`, `disturbances=clouds,spikes`. Raises ConfigError."""
    cause, equals, values = text.partition("=")
    if not equals:
        raise ConfigError(f"{option} {text!r}: must read cause=amount,amount as act_delay=0,30,60 does")
    require_cause(cause)
    if cause == DISTURBANCES:
        return cause, tuple(values.split(","))
    try:
        return cause, tuple(_amount(value) for value in values.split(","))
    except DataError:
        raise
    except ValueError as error:
        raise ConfigError(
            f"{option} {text!r}: {values!r} must be numbers separated by commas, each for all or as field:1/system:2, "
            "or files of delays, latency.csv"
        ) from error


def _amount(text: str) -> GivenAmount:
    """A number, a file of delays, or these by key as a condition's name shows them. Raises ValueError."""
    if ":" in text:
        pairs = [part.rsplit(":", 1) for part in text.split("/")]
        return {key: _amount(value) for key, value in pairs}  # type: ignore[misc]
    amount: float | Source = as_source(text) if text.endswith(".csv") else decimal(text)
    return amount


def _listed(cause: str, amounts: Sequence[GivenAmount]) -> Sequence[GivenAmount]:
    require_cause(cause)
    if isinstance(amounts, str) or not isinstance(amounts, Sequence) or not amounts:
        raise ConfigError(f"axis {cause}={amounts!r}: give a sequence of amounts, as (0, 1)")
    return amounts
