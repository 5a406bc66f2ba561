"""Whole episodes of an environment, in either clock, with the same policies and the same result."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from heron_env.core.policy import Policies
from heron_env.envs.answering import Taken, begin_policies, mates_of, put_in_step
from heron_env.envs.decisions import decides, deciding, own_policies, resolve_policies
from heron_env.envs.disturbing import Course, checked_disturbances
from heron_env.envs.ownership import DECISION, EVERYTHING, NOTHING, RUN
from heron_env.envs.results import EpisodeResult
from heron_env.errors import ConfigError, checked_keywords, did_you_mean
from heron_env.given import is_one_of, require_switch, several
from heron_env.scheduling.disturbances import Disturbance
from heron_env.scheduling.drawn import AnySchedule, DrawnSchedule
from heron_env.scheduling.events import ConditionMonitor, CustomEvent
from heron_env.scheduling.timing import to_seconds

if TYPE_CHECKING:
    from heron_env.envs.base import HeronEnv
    from heron_env.envs.event.clock import EventRun

Record = Iterable[str]
RECORDED = ("rewards", "actions", "observations")


class Episodes:
    """The part of HeronEnv that runs policies through whole episodes."""

    @checked_keywords
    def run_synchronous(
        self,
        policies: Policies,
        *,
        seed: int | None = None,
        record: Record = ("rewards", "actions"),
        disturbances: Iterable[Disturbance] = (),
    ) -> EpisodeResult:
        """One whole episode in the synchronous clock; see `run_event_driven` for the arguments.

        Disturbances act at the first step boundary that is not before their time.
        """
        env, kept = cast("HeronEnv", self), recorded(record)
        expected = checked_disturbances(env, disturbances)
        return env._ownership.drive(
            "run_synchronous()", run_synchronous, env, policies, seed=seed, record=kept, disturbances=expected
        )

    def _expect(self, disturbances: Iterable[Disturbance]) -> None:
        """Let these happen in the synchronous episode that begins. Raises ConfigError, UnknownAgent."""
        env = cast("HeronEnv", self)
        if found := checked_disturbances(env, disturbances):
            Course(env, found).begin()

    @checked_keywords
    def run_event_driven(
        self,
        policies: Policies,
        *,
        t_end: float | None = None,
        seed: int | None = None,
        schedule: AnySchedule = None,
        wait: float | None = None,
        trace: bool = False,
        record: Record = ("rewards", "actions"),
        disturbances: Iterable[Disturbance] = (),
        monitors: Iterable[ConditionMonitor] = (),
        events: Iterable[CustomEvent] = (),
    ) -> EpisodeResult:
        """One whole episode in the event-driven clock (T6); resets first.

        Args:
            policies: by agent id, group, or "*" for all possible agents; a Policy, a function vector -> action,
                or an AnsweringPolicy, which is told who asks and when.
            t_end: stop here at the latest, s; None: at the episode's own end, which must then exist.
            seed: as in reset().
            schedule: ticks, delays, jitter, loss; of a DrawnSchedule what it draws for this seed and episode. None: the
                environment's own.
            wait: from k*dt to the moment step k's physics is complete, s, in (0, dt]; None: dt.
            trace: keep a record of every event in `result.trace`.
            record: any of "rewards", "actions", "observations".
            disturbances: what happens from outside, each at its own time (T14).
            monitors: conditions on the truth that wake agents (T14).
            events: events of your own, for the hook `happen`.
        """
        owned = cast("HeronEnv", self)._ownership

        def whole() -> EpisodeResult:
            owned.lent = RUN
            run = self.start_event_driven(
                policies,
                t_end=t_end,
                seed=seed,
                schedule=schedule,
                wait=wait,
                trace=trace,
                record=record,
                disturbances=disturbances,
                monitors=monitors,
                events=events,
            )
            run.until(None)
            return run.result()

        return owned.drive("run_event_driven()", whole)

    @checked_keywords
    def start_event_driven(
        self,
        policies: Policies,
        *,
        t_end: float | None = None,
        seed: int | None = None,
        schedule: AnySchedule = None,
        wait: float | None = None,
        trace: bool = False,
        record: Record = ("rewards", "actions"),
        disturbances: Iterable[Disturbance] = (),
        monitors: Iterable[ConditionMonitor] = (),
        events: Iterable[CustomEvent] = (),
    ) -> EventRun:
        """The same run, to be carried on step by step: `run.until(t)`, `run.state()`, `run.result()`; it pickles."""
        from heron_env.envs.event.clock import EventRun
        from heron_env.envs.event.happenings import Happenings

        env = cast("HeronEnv", self)
        require_switch(f"trace={trace!r:.60}", trace)
        wanted = env.schedule if schedule is None else schedule
        if isinstance(wanted, DrawnSchedule):
            schedule = wanted.at(*env._next_episode(seed))
        timings = env.timings if schedule is None else env.timings_of(schedule)
        return env._ownership.drive(
            "start_event_driven()",
            EventRun,
            env,
            policies,
            timings=timings,
            t_end=t_end,
            seed=seed,
            wait=wait,
            trace=trace,
            record=recorded(record),
            happenings=Happenings.of(env, disturbances, monitors, events),
        )


def require_options(options: object) -> None:
    """Raise ConfigError unless these are options of reset(): a mapping, or None."""
    if options is not None and not isinstance(options, Mapping):
        raise ConfigError(f"reset(options={options!r}): must be a mapping {{name: value}}, or None")


def recorded(record: Record) -> frozenset[str]:
    """What to record. Raises ConfigError for anything but RECORDED."""
    if isinstance(record, str) or not isinstance(record, Iterable):
        raise ConfigError(
            f"record={record!r:.200}: give a tuple of {', '.join(map(repr, RECORDED))}, or () for nothing"
        )
    for what in (wanted := several(record, "record")):
        if not is_one_of(what, RECORDED):
            near = did_you_mean(what, RECORDED)
            raise ConfigError(f"record={wanted!r:.200}: {what!r:.60} can't be recorded; choose among {RECORDED}.{near}")
    return frozenset(wanted)


def run_synchronous(
    env: HeronEnv,
    policies: Policies,
    *,
    seed: int | None,
    record: frozenset[str],
    disturbances: Sequence[Disturbance] = (),
) -> EpisodeResult:
    """Run `env` to the end of its episode, as its owner (T21). Raises ConfigError if nothing ever ends it."""
    simulation, ids, owned = env.simulation, env.hierarchy.ids, env._ownership
    chosen = resolve_policies(policies, env)
    deciders: dict[int, Any] = {rank: decides(env, rank, policy) for rank, policy in chosen.items()}
    mates = mates_of(deciders)
    simulation.require_end("run_synchronous()")
    owned.lent = EVERYTHING
    env.reset(seed=seed, options={"disturbances": disturbances} if disturbances else None)
    simulation.post.readers = frozenset(mates)
    begun = {id(policy) for policy in own_policies(env)}
    begin_policies((policy for policy in chosen.values() if id(policy) not in begun), env._seed, env._episode)
    acting = [ids[rank] for rank, spec in enumerate(simulation.specs) if spec.size]
    observing = [ids[rank] for rank in sorted(deciders)] if "observations" in record else []
    masks = sorted(simulation.masks.ranks)
    result = EpisodeResult.blank(ids, acting, observing, [ids[rank] for rank in masks])
    result.await_answers(ids[rank] for rank in mates)
    while not simulation.over:
        time, actions = simulation.time, {}
        mark, owned.lent = owned.mark, DECISION
        active = deciding(env, deciders)
        taken: dict[int, Taken] = {}
        if mates:
            awake, env._origins = set(active), {}
        for rank in active:
            vector, turn = env.seen_by(rank)
            if rank in mates:
                if rank not in taken:
                    taken |= put_in_step(env, [mate for mate in mates[rank] if mate.rank in awake])
                actions[ids[rank]] = taken[rank].action
                result.note_origin(ids[rank], time, taken[rank].origin)
            else:
                actions[ids[rank]] = deciders[rank](vector.copy(), turn, partial(env.draw_in_step, rank, turn))
            owned.require(mark, ids[rank], time)
            if "observations" in record:
                result.observations[ids[rank]].append((to_seconds(turn * env.dt_ns), vector))
        owned.lent, alive = NOTHING, list(simulation.alive)
        outcome = env.advance_step(actions)
        if not simulation.everyone:
            env.agents = [agent for agent in env.agents if simulation.alive[env.hierarchy.index[agent]]]
        masked = simulation.lane.masked if masks else ()
        for rank in masks:
            result.masked[ids[rank]] += masked[rank]
        if "actions" in record:
            for rank, values in simulation.lane.decided.items():
                result.actions[ids[rank]].append((time, np.array(values)))
        for rank, agent in enumerate(ids):
            if alive[rank]:
                result.rewards[agent].append((outcome.time, outcome.rewards[rank]))
                result.terminated[agent] |= outcome.terminated[rank]
                result.truncated[agent] |= outcome.truncated[rank]
    env.agents = []
    result.end_time = simulation.time
    result.letters, result.kpis = simulation.post.counts(), env.kpis()
    if "rewards" not in record:
        result.rewards = {a: [(result.end_time, total)] for a, total in result.returns.items()}
    return result
