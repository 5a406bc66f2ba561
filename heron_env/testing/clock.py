"""The words of the event clock, for tests that read traces or send messages themselves.

A record of `result.trace` (`env.run_event_driven(..., trace=True)`) has as its payload one of the messages or events
below; `run.context.scheduler` holds those to come. `link` says how late and how lossy an agent's messages are.

Times are ns (`SECOND` of them make a second; `to_ns`, `to_seconds`), agents are ranks (`inspect(env).rank`), -1 is
`NOBODY`. `exact` writes a payload to the last bit.

Messages, one class a `Leg` below `Message`: `ObservationRequest`, `ObservationReply`, `ObservationPush`, `Command`,
`PushedCommand`, `StateReport`, `ReportReceived`, `SharedState`, `LetterUnderWay`, `CustomLetter`, and those of a step's
scores, which always arrive: `CycleToken`, `CycleCompletion`, `LocalStateRequest`, `LocalStateReply`, `TickResultReport`
(a score is a `TickResult`). Under `under_network`: `ObservationCopy`, `ActionCommand`. A `Queue` keeps their order;
`MessageCounts` says what became of them.

Events: `AgentTick`, `Deadline`, `Answered`, `ActionEffect`, `Simulation` (a physics substep), `Disturbed`,
`CloseEpisode`. Within one instant they happen in the order of their `Phase`.

Stable for users: these names, the fields in the docstrings, the order of phases and the numbers of legs, which key
random draws. A message is made by its class; that its fields may grow is why fields are given by name. The modules that
they come from may move.
"""

from heron_env.scheduling.broker import Queue
from heron_env.scheduling.events import (
    ActionEffect,
    AgentTick,
    Answered,
    CloseEpisode,
    Deadline,
    Disturbed,
    Simulation,
)
from heron_env.scheduling.links import Link, What, link_of
from heron_env.scheduling.messages import (
    ActionCommand,
    Command,
    CustomLetter,
    CycleCompletion,
    CycleToken,
    Leg,
    LetterUnderWay,
    LocalStateReply,
    LocalStateRequest,
    Message,
    ObservationCopy,
    ObservationPush,
    ObservationReply,
    ObservationRequest,
    PushedCommand,
    ReportReceived,
    SharedState,
    StateReport,
    TickResult,
    TickResultReport,
)
from heron_env.scheduling.records import MessageCounts
from heron_env.scheduling.scheduler import Phase
from heron_env.scheduling.timing import SECOND, ScheduleConfig, Timing, resolve, to_ns, to_seconds
from heron_env.scheduling.trace import NOBODY, Trace, TraceRecord, exact
from heron_env.seeding import h

__all__ = [
    "NOBODY", "SECOND", "ActionCommand", "ActionEffect", "AgentTick", "Answered", "CloseEpisode", "Command",
    "CustomLetter", "CycleCompletion", "CycleToken", "Deadline", "Disturbed", "Leg", "LetterUnderWay", "Link",
    "LocalStateReply", "LocalStateRequest", "Message", "MessageCounts", "ObservationCopy", "ObservationPush",
    "ObservationReply", "ObservationRequest", "Phase", "PushedCommand", "Queue", "ReportReceived", "SharedState",
    "Simulation", "StateReport", "TickResult", "TickResultReport", "Timing", "Trace", "TraceRecord", "What", "exact",
    "link", "resolve", "to_ns", "to_seconds",
]  # fmt: skip


def link(agent: str, schedule: ScheduleConfig, *, seed: int = 0, episode: int = 0, dt: float = 1.0) -> Link:
    """The link of the agent with that id, as the clocks make it for one episode; dt: the environment's, s."""
    return link_of(h(agent), Timing.of(agent, schedule, to_ns(dt, "dt")), seed, episode)
