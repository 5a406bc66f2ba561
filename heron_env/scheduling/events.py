"""What happens besides the arrival of messages, as data: the clock's own events, and a user's events and monitors.

Nothing here is callable but what a user gives as `when`, so that a run pickles. What a user's events and messages do is
said by the environment's hook `happen`.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heron_env.core.letters import Written
from heron_env.core.plans import SentPlan
from heron_env.core.policy import Origin
from heron_env.errors import ConfigError, checked_keywords
from heron_env.scheduling.disturbances import Disturbance
from heron_env.scheduling.records import record, value
from heron_env.scheduling.scheduler import Phase
from heron_env.scheduling.timing import to_ns


@dataclass(frozen=True, slots=True)
class CustomEvent:
    """Happens at `t` s, in `phase` of that instant (T2: any int; disturbances have 3, ticks 4), for `agent` or nobody.

    Raises ConfigError, ScheduleError naming the field.
    """

    t: float
    type: str
    payload: Mapping[str, Any] = field(default_factory=dict)
    agent: str | None = None
    phase: int = int(Phase.ENV_UPDATE)

    def __post_init__(self) -> None:
        to_ns(self.t, "CustomEvent(t)")
        _require(self, self.type, self.payload)
        if isinstance(self.phase, bool) or not isinstance(self.phase, int):
            raise ConfigError(f"CustomEvent(phase={self.phase!r}): must be an int; 3 lies before the agents' ticks")


@dataclass(frozen=True, slots=True)
class CustomMessage:
    """Travels over the link of `agent`, as its schedule says (delay, jitter, loss); then `happen` gets it.

    Raises ConfigError naming the field.
    """

    type: str
    agent: str
    payload: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        _require(self, self.type, self.payload)


@dataclass(frozen=True, slots=True)
class Push:
    """Wake `agent` with an observation over one leg, as a ConditionMonitor does; `about`: rows that are fresh in it."""

    agent: str
    about: tuple[str, ...] = ()
    preempt: bool = False


Happening = CustomEvent | CustomMessage
Following = CustomEvent | CustomMessage | Push
"""What `happen` may return."""


def _require(what: Happening, kind: object, payload: object) -> None:
    if not isinstance(kind, str) or not kind:
        raise ConfigError(f"{type(what).__name__}(type={kind!r}): must be a name")
    if not isinstance(payload, Mapping) or not all(isinstance(name, str) for name in payload):
        raise ConfigError(f"{type(what).__name__}(payload={payload!r}): must map names to values")


@checked_keywords
@dataclass(frozen=True, slots=True, kw_only=True)
class ConditionMonitor:
    """Push an observation to an agent when a condition on the truth becomes true (T14, event clock only).

    It is checked after each physics substep, each disturbance and each custom event. It fires when the condition
    becomes true and, with a `cooldown` above 0, every `cooldown` s while it stays true. The push travels one leg of the
    agent's link. It shows the rows `about` as they are at that moment, and all others as the proxy knows them. The
    agent then decides. Its ticks do not change.

    Attributes:
        agent: whom to wake; one that decides.
        watch: a number of the truth, as "zone_1.Zone.power" or "global.Price.value"; above, below: it fires outside.
        when: instead of `watch`, a function of the World (a lambda will do, but a run with one can't be pickled).
        about: ids of the owners ("global" for global features) whose rows the monitor itself measures; None: the
            watched one, or with `when` the agent's own.
        cooldown: s.
        one_shot: fire once an episode at most.
        preempt: the decision replaces those of the agent that have no effect yet; they are cancelled, and counted.
        name: of its random draws, and in traces; None: made of the agent and what is watched.

    Raises ConfigError, ScheduleError for what contradicts itself.
    """

    agent: str
    watch: str | None = None
    above: float | None = None
    below: float | None = None
    when: Callable[[Any], bool] | None = None
    about: tuple[str, ...] | None = None
    cooldown: float = 0.0
    one_shot: bool = False
    preempt: bool = False
    name: str | None = None

    def __post_init__(self) -> None:
        to_ns(self.cooldown, "ConditionMonitor(cooldown)")
        bounds = self.above is not None or self.below is not None
        if (self.watch is None) == (self.when is None) or bounds != (self.watch is not None):
            raise ConfigError(
                f"ConditionMonitor(agent={self.agent!r}): give either watch='owner.Feature.field' with above or below, "
                "or when=a function of the World"
            )
        for name in ("above", "below"):
            bound = getattr(self, name)
            number = isinstance(bound, Real) and not isinstance(bound, bool)
            if bound is not None and (not number or math.isnan(bound)):
                raise ConfigError(
                    f"ConditionMonitor({name}={bound!r}): must be a number, in the unit of what is watched"
                )
        if self.about is not None and (isinstance(self.about, str) or not isinstance(self.about, tuple)):
            raise ConfigError(f"ConditionMonitor(about={self.about!r}): must be a tuple of ids, as ('zone_1',)")

    @property
    def label(self) -> str:
        """Return its name, or one made of the agent and what is watched."""
        return self.name or f"{self.agent} on {self.watch or getattr(self.when, '__qualname__', 'when')}"


@value
class AgentTick(tuple[Any, ...]):
    """An agent starts decision `number`."""

    __slots__ = ()
    agent: int
    number: int


@value
class Deadline(tuple[Any, ...]):
    """The time for decision `number` of the agent has run out: if it is missing, the no-op takes its place."""

    __slots__ = ()
    agent: int
    number: int


@record
class ActionEffect(tuple[Any, ...]):
    """Decision `number` of an agent takes effect; `values`: the effect's own copy of the action `[dim]`, or a plan."""

    __slots__ = ()
    agent: int
    number: int
    values: NDArray[np.float64] | SentPlan


@value
class PlanStep(tuple[Any, ...]):
    """The next action of the plan falls due that was in force when this was scheduled, of decision `number`."""

    __slots__ = ()
    agent: int
    number: int


@record
class Answered(tuple[Any, ...]):
    """The policy of an agent, asked at `asked` ns for decision `number`, has thought: now it decides."""

    __slots__ = ()
    agent: int
    number: int
    values: NDArray[np.float64] | SentPlan
    asked: int
    origin: Origin | None
    letters: tuple[Written, ...]


@value
class Simulation(tuple[Any, ...]):
    """Physics substep `substep` of step `step`."""

    __slots__ = ()
    step: int
    substep: int


@value
class CloseEpisode(tuple[Any, ...]):
    """The episode is over, and all scores of its last step, `step`, are known."""

    __slots__ = ()
    step: int


@record
class PushedEffect(ActionEffect):
    """The same of a decision on an observation that was pushed at `fired`, ns."""

    __slots__ = ()
    fired: int


@record
class PushedAnswer(Answered):
    """The same of a question on an observation that was pushed at `fired`, ns, because of `cause`."""

    __slots__ = ()
    cause: str
    fired: int


@record
class Disturbed(tuple[Any, ...]):
    """Entry `number` of the course of disturbances: one of them begins, or `ends`."""

    __slots__ = ()
    number: int
    disturbance: Disturbance
    ends: bool


@record
class Custom(tuple[Any, ...]):
    """Number `number` of the events of a user's own."""

    __slots__ = ()
    number: int
    event: CustomEvent


@value
class Settle(tuple[Any, ...]):
    """All disturbances and physics of this instant are in the truth: which conditions hold? `number` counts."""

    __slots__ = ()
    number: int
    physics: bool
