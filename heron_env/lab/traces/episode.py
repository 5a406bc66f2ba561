"""A recorded episode: what everyone was told, did and earned, and what it was made with, in plain values."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, get_args

import numpy as np

from heron_env.core.plans import SentPlan
from heron_env.core.policy import Policies
from heron_env.core.rule import one_by_one
from heron_env.envs.event.message_log import Fate
from heron_env.envs.plan_counts import PlanCounts
from heron_env.errors import TraceError
from heron_env.lab.external import strongest_policies
from heron_env.lab.policies import (
    Baseline,
    PythonPolicy,
    TrainedRun,
    display_names,
    names_run,
    policy_spec,
)
from heron_env.scheduling.arrivals import Arrivals
from heron_env.scheduling.disturbances import Disturbance
from heron_env.scheduling.drawn import AnySchedule, as_dict, drawn_or_fixed
from heron_env.scheduling.events import ConditionMonitor, CustomEvent
from heron_env.scheduling.messages import ActionCommand, ObservationCopy
from heron_env.scheduling.sharing import MediumUse, Offered, Transmit
from heron_env.scheduling.trace import exact

if TYPE_CHECKING:
    from heron_env.envs.base import HeronEnv
    from heron_env.lab.runs import RunFolder

SCHEMA: Final = 1
"""Version of the form on disk; it grows when a reader of the old one would be misled."""
OBSERVATIONS: Final = ("ObservationReply", "ObservationPush", "ObservationCopy")
"""Kinds of messages that bring an agent what it sees: asked for, pushed, or of a black box."""
EFFECTS: Final = ("ActionEffect", "PushedEffect")
"""Kinds of events in which a decision takes effect."""
ANSWERS: Final = ("Answered", "PushedAnswer")
"""Kinds of events in which a policy that knows who asks has answered."""
PROXY, PHYSICS = "proxy", "physics"
"""Who sends, receives or does things besides the agents."""
DISTURBED: Final = "Disturbed"
"""Kind of the events in which a disturbance begins or ends."""


@dataclass(frozen=True, slots=True)
class PolicyIdentity:
    """Which policies decided.

    Attributes: kind: "baseline" (of the environment), "run" (a run folder), "python" (`module:policy` or
        `path.py:policy`), "external" (an endpoint, agents.yaml, fixture), or "given" (handed over in Python); name: of
        the baseline, the path of the folder or file, the name in Python, or the host of the endpoint; digest: of what
        the run folder or the Python file holds; "" for the others.
    """

    kind: Literal["baseline", "run", "python", "external", "given"]
    name: str
    digest: str = ""


@dataclass(frozen=True, slots=True)
class TraceSetting:
    """What makes the episode: the same setting gives the same episode.

    Attributes: compiled: did the rules run compiled?; schedule: entries {"key": agent, group, level or "*", and the
        fields of ScheduleConfig}; None: the default; t_end, wait: s, as in run_event_driven(); versions: of heron_env,
        Python and what it calculated with; disturbances, monitors, events: as in run_event_driven(), their fields by
        name; fixture: digest of the files beside the trace that hold what endpoints answered; "" where none were asked;
        data: SHA-256 by name of each data file that the environment was built from; arrivals: when messages and answers
        came, of a run by the wall clock.
    """

    env_id: str
    options: dict[str, Any]
    compiled: bool
    policy: PolicyIdentity
    seed: int
    schedule: list[dict[str, Any]] | None
    t_end: float | None
    wait: float | None
    versions: dict[str, str]
    disturbances: list[dict[str, Any]] = field(default_factory=list)
    monitors: list[dict[str, Any]] = field(default_factory=list)
    events: list[dict[str, Any]] = field(default_factory=list)
    fixture: str = ""
    data: dict[str, str] = field(default_factory=dict)
    arrivals: Arrivals | None = None


@dataclass(frozen=True, slots=True)
class TraceWorld:
    """Names and numbers that the messages refer to.

    Attributes: agents: ids by rank, parents before children; parents: by agent; "" for the system agent; decides: ids
        of those whose policies were asked; columns: by deciding agent, the names of what it receives, before anything
        is subtracted (V9); sources: by deciding agent, whose facts its observation holds, in the order of their as-of
        times; dt_ns: control step, ns; substeps: of physics in a control step.
    """

    agents: list[str]
    parents: dict[str, str]
    decides: list[str]
    columns: dict[str, list[str]]
    sources: dict[str, list[str]]
    dt_ns: int
    substeps: int


@dataclass(frozen=True, slots=True)
class TraceOutcome:
    """What came of it; times in s.

    Attributes: rewards: by agent, [(boundary, value)]; actions: by acting agent, [(time of the effect, vector)];
        cancelled_effects, unfinished_effects, masked, media, plans: as in EpisodeResult.
    """

    rewards: dict[str, list[tuple[float, float]]]
    actions: dict[str, list[tuple[float, list[float]]]]
    terminated: dict[str, bool]
    truncated: dict[str, bool]
    end_time: float
    kpis: dict[str, float]
    cancelled_effects: int
    notes: list[str]
    unfinished_effects: int = 0
    masked: dict[str, int] = field(default_factory=dict)
    media: dict[str, MediumUse] = field(default_factory=dict)
    plans: dict[str, PlanCounts] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SentMessage:
    """One copy of a message; a doubled one has two copies of one id.

    Attributes: agent: whose link it took; number: of the tick, cycle or effect that caused it; sent: departure, ns;
        arrives: when it arrived or is to arrive, ns; None if it was lost or discarded, or waits at its sender; place:
        in the order in which everything was handled; None if nobody handled it; cause: the place of what it follows
        from; -1 for none; content: its fields; floats are exact.
    """

    id: int
    kind: str
    sender: str
    receiver: str
    agent: str
    number: int
    sent: int
    arrives: int | None
    fate: Fate
    place: int | None
    cause: int
    content: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened besides the arrival of a message; fields as in `SentMessage`, `t` in ns.

    `cancelled`: nothing came of it, as its agent had ended. `masked`: a choice was forbidden, and became the no-op.
    """

    place: int
    t: int
    kind: str
    agent: str
    number: int
    cause: int
    content: dict[str, Any]
    cancelled: bool = False
    masked: bool = False


class Age(NamedTuple):
    """How old what an agent saw was when it came.

    Attributes: t: when the observation was received, ns; number: of the tick that asked; by_source: by owner of the
        facts, s.
    """

    t: int
    number: int
    by_source: dict[str, float]

    @property
    def oldest(self) -> float:
        """Of all facts, s; 0 without any."""
        return max(self.by_source.values(), default=0.0)


@dataclass(frozen=True, slots=True)
class Episode:
    """A whole recorded episode. Messages are in the order in which they were made, events in that of their time."""

    setting: TraceSetting
    world: TraceWorld
    outcome: TraceOutcome
    messages: list[SentMessage] = field(repr=False)
    events: list[Event] = field(repr=False)

    @property
    def returns(self) -> dict[str, float]:
        """Sum of rewards by agent."""
        return {agent: one_by_one(value for _, value in earned) for agent, earned in self.outcome.rewards.items()}

    @property
    def counts(self) -> dict[str, int]:
        """Copies of messages by fate."""
        counts = dict.fromkeys(get_args(Fate), 0)
        for message in self.messages:
            counts[message.fate] += 1
        return counts

    def handled(self) -> dict[int, SentMessage | Event]:
        """Everything that was handled, by place."""
        result: list[SentMessage | Event] = [*self.events, *self.messages]
        return {each.place: each for each in result if each.place is not None}

    def ages(self, agent: str) -> Iterator[Age]:
        """The age of information (T12) of each observation that a deciding agent received, in the order received."""
        owners = self.world.sources[agent]
        received = [m for m in self.messages if m.kind in OBSERVATIONS and m.agent == agent and m.place is not None]
        for message in sorted(received, key=lambda m: m.place or 0):
            assert message.arrives is not None
            old = (max(message.arrives - as_of, 0) / 1e9 for as_of in message.content["as_of"])
            yield Age(message.arrives, message.number, dict(zip(owners, old, strict=True)))


MOST_KEYS, LONGEST = 64, 2000
"""Of what a black box shows: more keys than that, or letters of its exact form, are kept as a digest."""
SAID_ELSEWHERE = frozenset({"agent", "number", "id", "sent", "view"})
"""Fields that have a place of their own in a record; a view only knows names."""


def content(record: Any) -> dict[str, Any]:
    """The fields of a message or event, by name. Raises TraceError for a value that has no exact form."""
    if isinstance(record, Offered | Transmit):
        return record.to_dict()
    names = [] if record is None else [field.name for field in fields(record) if field.name not in SAID_ELSEWHERE]
    form = bounded if isinstance(record, ObservationCopy | ActionCommand) else plain
    return {name: form(getattr(record, name), f"{type(record).__name__}.{name}") for name in names}


def bounded(value: Any, where: str) -> Any:
    """What a black box shows or is told: plain where that is short, else shape and digest, part by part.

    Raises TraceError as `plain`.
    """
    value = value.tolist() if isinstance(value, SentPlan) else value
    if isinstance(value, Mapping) and len(value) <= MOST_KEYS:
        return {str(key): bounded(item, f"{where}[{key!r}]") for key, item in value.items()}
    if isinstance(value, tuple | list) and len(value) <= MOST_KEYS:
        return [bounded(item, f"{where}[{number}]") for number, item in enumerate(value)]
    try:
        text = exact(value)
    except TypeError:
        text = ""  # `plain` says what it is
    if len(text) <= LONGEST:
        return plain(value, where)
    digest = hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
    return {
        "type": str(getattr(value, "dtype", type(value).__name__)),
        "shape": [*getattr(value, "shape", ())],
        "digest": digest,
    }


def plain(value: Any, where: str) -> Any:
    """`value` in JSON's types: Python writes a float so that it is read back exactly; nan and infinities are words.

    Raises TraceError naming `where` for an object that can't be written so.
    """
    match value:
        case Enum():
            return value.name
        case None | bool() | int() | str():
            return value
        case float():
            return float(value) if math.isfinite(value) else repr(float(value))
        case np.ndarray() | np.generic() | SentPlan():
            return plain(value.tolist(), where)
        case Mapping():
            return {str(key): plain(item, f"{where}[{key!r}]") for key, item in value.items()}
        case list() | tuple() if not is_dataclass(value):
            return [plain(item, f"{where}[{i}]") for i, item in enumerate(value)]
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name), f"{where}.{field.name}") for field in fields(value)}
    raise TraceError(
        f"{where} is a {type(value).__name__}, which a recorded episode can't hold; "
        "use numbers, words, lists, dictionaries or dataclasses"
    )


def written_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options themselves. Raises TraceError for one that JSON would not give back."""
    for name, value in options.items():
        try:
            same = json.loads(json.dumps(value)) == value
        except (TypeError, ValueError, OverflowError):
            same = False
        if not same:
            raise TraceError(
                f"option {name}={value!r} can't be written down; use words, numbers, lists and dictionaries, "
                "or register the environment with it under an id of its own"
            )
    return dict(options)


def identity_of(policy: str | Policies) -> PolicyIdentity:
    """Of a run folder, the name of a baseline, an address, a file, or policies.

    Raises RunFolderError for a folder that is no run, ConfigError for an address that is refused.
    """
    if not isinstance(policy, str):
        return PolicyIdentity("given", "")
    match policy_spec(policy):
        case TrainedRun(folder):
            return PolicyIdentity("run", policy, _run(folder).digest())
        case Baseline(name):
            return PolicyIdentity("baseline", name)
        case PythonPolicy() as spec:
            return PolicyIdentity("python", policy, spec.identity().rpartition(" ")[2])
    return PolicyIdentity("external", *display_names([policy]))


def _run(folder: str) -> RunFolder:
    from heron_env.lab.runs import open_run

    return open_run(folder)


def policies_of(identity: PolicyIdentity, env: HeronEnv, seed: int) -> Policies:
    """The policies themselves. Raises TraceError for a run folder that is gone or changed; ConfigError for a baseline
    that the environment does not have.
    """
    if identity.kind == "given":
        raise TraceError(
            "this episode was recorded with policies handed over in Python; give the same ones: "
            "replay(path, policies=...)"
        )
    if identity.kind == "external":
        return strongest_policies(env, seed)  # of those whose answers no fixture holds
    name = f"the run folder {identity.name!r}"
    if identity.kind == "run" and not names_run(identity.name):
        raise TraceError(
            f"{name} that decided in this episode does not exist; copy it back, or name where it lies now with --policy"
        )
    if identity.kind == "run" and not _run(identity.name).has_digest(identity.digest):
        raise TraceError(
            f"{name} is not the one that decided in this episode: its configuration or models have changed; restore "
            "it, or name a copy of the old one with --policy"
        )
    if identity.kind == "python" and identity_of(identity.name) != identity:
        raise TraceError(f"the file of {identity.name!r} has changed since the episode was recorded; restore it")
    return policy_spec(identity.name).build(env, seed)


def schedule_entries(schedule: AnySchedule) -> list[dict[str, Any]] | None:
    """A schedule as it is written down: a list of its entries, each with all fields and its key."""
    if schedule is None:
        return None
    return [{"key": key, **values} for key, values in as_dict(schedule).items()]


def schedule_of(entries: list[dict[str, Any]] | None) -> AnySchedule:
    """The schedule that was written down. Raises ScheduleError for values that are none."""
    if entries is None:
        return None
    return drawn_or_fixed(
        {entry["key"]: {name: value for name, value in entry.items() if name != "key"} for entry in entries}
    )


def happening_entries(items: Iterable[Any]) -> list[dict[str, Any]]:
    """Disturbances, monitors or events as they are written down. Raises TraceError for one that is a function."""
    return [
        {f.name: plain(getattr(one, f.name), f"{type(one).__name__}.{f.name}") for f in fields(one)} for one in items
    ]


def happenings_of(setting: TraceSetting) -> dict[str, Any]:
    """What was written down, as `start_event_driven` takes it; of a run by the wall clock its record, too."""
    monitors = [
        {**entry, "about": None if entry["about"] is None else tuple(entry["about"])} for entry in setting.monitors
    ]
    return {
        "disturbances": [Disturbance(**entry) for entry in setting.disturbances],
        "monitors": [ConditionMonitor(**entry) for entry in monitors],
        "events": [CustomEvent(**entry) for entry in setting.events],
        **({} if setting.arrivals is None else {"arrivals": setting.arrivals}),
    }
