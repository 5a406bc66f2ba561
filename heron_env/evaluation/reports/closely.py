"""One policy in one case, looked at closely: the day on both clocks, and a few control steps of the messages."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from heron_env import registry
from heron_env.errors import HeronError
from heron_env.evaluation.benchmark import Case
from heron_env.evaluation.one_day import DISTURBED_NAME, EVENT_NAME, RECORD, ComparedDay, compare_day
from heron_env.evaluation.policies import Baseline, PolicySpec, TrainedRun
from heron_env.evaluation.reports.document import Part, Picture
from heron_env.evaluation.reports.of_trace import trace_part
from heron_env.evaluation.time_figures import day_figure
from heron_env.evaluation.traces.recording import record_episode

if TYPE_CHECKING:
    from heron_env.core.policy import Policies
    from heron_env.envs.base import HeronEnv
    from heron_env.scheduling.disturbances import Disturbance
    from heron_env.scheduling.timing import Schedule

STEPS = 6
"""Control steps that are recorded for the timeline; it shows some of them."""
WINDOW = 1.9, 4.3
"""What it shows, in control steps: after the first ones, where nothing is old yet."""


def _nothing(env: HeronEnv, seed: int) -> Sequence[Disturbance]:
    return ()


@dataclass(frozen=True)
class Look:
    """What is looked at.

    Attributes:
        options: of the environment, the case's included; `late` ones besides when it runs event-driven.
        condition: what is wrong then, in words.
        happenings: the disturbances of an environment and a seed then.
        synchronous: is it the synchronous clock with nothing wrong but these disturbances?
    """

    env_id: str
    options: Mapping[str, Any]
    name: str
    policy: PolicySpec
    case: Case
    condition: str
    schedule: Callable[[HeronEnv], Schedule]
    late: Mapping[str, Any] = field(default_factory=dict)
    happenings: Callable[[HeronEnv, int], Sequence[Disturbance]] = _nothing
    synchronous: bool = False


def case_part(look: Look) -> Part:
    """The case on both clocks; says why where it can't be run here."""
    title = "One case on both clocks"
    try:
        day = _compared(look)
    except HeronError as error:
        return Part(title, [f"Not drawn: {error}"])
    told = (
        f"{look.name}, {look.case}, {look.condition}: return {day.sync_return:.2f} synchronous, "
        f"{day.event_return:.2f} {_deployed(look)}"
    )
    picture = Picture(
        "one_case",
        day_figure(day.panels, told),
        "One case on both clocks, as the agents saw it: the one whose loss is nearest to the mean under this "
        "condition.",
        f"Time series. {told}. Panels: {', '.join(panel.title for panel in day.panels)}.",
    )
    return Part(title, [picture])


def messages_part(
    look: Look, about: str, schedule: Callable[[HeronEnv], Schedule], window: tuple[float, float] | None = WINDOW
) -> Part:
    """A few control steps of the case under `schedule`; the window is in control steps."""
    try:
        env = registry.make(look.env_id, **look.options)
        episode = record_episode(
            look.env_id, _for_trace(look, env), seed=look.case.seed, t_end=STEPS * env.dt, schedule=schedule(env),
            options=look.options,
        )  # fmt: skip
        return trace_part(episode, window and (window[0] * env.dt, window[1] * env.dt), about=about)
    except HeronError as error:
        return Part("How an event-driven run works", [f"Not drawn: {error}"])


def _compared(look: Look) -> ComparedDay:
    env = registry.make(look.env_id, **look.options)
    seed = look.case.seed
    sync = env.run_synchronous(look.policy.build(env, seed), seed=seed, record=RECORD)
    deployed = registry.make(look.env_id, **{**look.options, **look.late})
    policies, happenings = look.policy.build(deployed, seed), look.happenings(deployed, seed)
    if look.synchronous:
        late = deployed.run_synchronous(policies, seed=seed, disturbances=happenings, record=RECORD)
    else:
        late = deployed.run_event_driven(
            policies, seed=seed, schedule=look.schedule(deployed), disturbances=happenings, record=RECORD
        )
    return compare_day(env, sync, late, _deployed(look))


def _deployed(look: Look) -> str:
    """What the run under the condition is called."""
    return DISTURBED_NAME if look.synchronous else EVENT_NAME


def _for_trace(look: Look, env: HeronEnv) -> str | Policies:
    """By name where it has one: the record then says whose it is."""
    if isinstance(look.policy, Baseline):
        return look.policy.name
    if isinstance(look.policy, TrainedRun):
        return look.policy.folder
    return look.policy.build(env, look.case.seed)
