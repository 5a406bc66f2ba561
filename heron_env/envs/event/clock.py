"""The event-driven clock: one heap, two halves (the world and the agents), and a loop that hands out events."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from heapq import heappop
from typing import TYPE_CHECKING, Any, Final, cast

from heron_env.core.policy import AnyPolicy, Policies
from heron_env.envs.answering import Asking, InWords, begin_policies, mates_of
from heron_env.envs.decisions import Deciders, decides, resolve_policies
from heron_env.envs.episodes import EpisodeResult
from heron_env.envs.event.agents import AgentLoop
from heron_env.envs.event.context import EventContext
from heron_env.envs.event.happenings import DisturbanceLoop, Happenings
from heron_env.envs.event.notes import notes
from heron_env.envs.event.physics import PhysicsCycle
from heron_env.envs.event.thinking import AnswerLoop, AnswerThreads, Thought, receive_letter
from heron_env.envs.hooks import has_link_rule
from heron_env.envs.percentiles import Percentiles
from heron_env.errors import ConfigError, ResetNeeded, RunInterrupted, ScheduleError, TraceError, ended_in
from heron_env.scheduling import events, messages
from heron_env.scheduling.arrivals import Arrivals, Delivery
from heron_env.scheduling.messages import Message
from heron_env.scheduling.scheduler import Phase
from heron_env.scheduling.sharing import Offered, Transmit, overload
from heron_env.scheduling.timing import END_OF_TIME, SECOND, Timing, require_before_the_end, to_ns, to_seconds

if TYPE_CHECKING:
    from heron_env.envs.base import HeronEnv
    from heron_env.envs.event.camera import EventCamera

NO_END = 2 * END_OF_TIME
DELIVERED: Final = frozenset(Message.__subclasses__())
"""What the post office accounts for."""


class EventRun:
    """One event-driven episode: `until(t)` carries it on, `result()` tells what it yielded so far.

    It pickles, without the policies: `attach` them again before going on.
    """

    def __init__(
        self,
        env: HeronEnv,
        policies: Policies,
        *,
        timings: Sequence[Timing],
        t_end: float | None,
        seed: int | None,
        wait: float | None,
        trace: bool,
        record: frozenset[str],
        happenings: Happenings | None = None,
        delivery: Delivery | None = None,
    ) -> None:
        wait_ns = _wait_ns(env, wait)
        _require_one_network(env, timings, delivery)
        if t_end is None:
            env.simulation.require_end("run_event_driven()")
        self.env, self.t_end = env, None if t_end is None else to_ns(t_end, "t_end")
        deciders = _deciders(env, chosen := resolve_policies(policies, env), timings, delivery)
        env.start_episode(seed)
        env.simulation.post.readers = frozenset(mates_of(deciders))
        begin_policies(chosen.values(), env.np_random_seed, env._episode)
        observing = [env.hierarchy.ids[rank] for rank in sorted(deciders)] if "observations" in record else []
        self.context = EventContext(
            env.simulation, env.proxy, env._ownership, timings, draw_of=env.draw_of, reports=env.reports,
            wait_ns=wait_ns, trace=trace, record=record, observing=observing, delivery=delivery,
        )  # fmt: skip
        self.physics = PhysicsCycle(self.context)
        self.agents = AgentLoop(self.context, deciders)
        self.answers = AnswerLoop(self.context, self.agents)
        self.closed, self._complete, self.torn = False, False, ""
        parts = self.context, self.physics, self.answers
        self.layer = None if happenings is None else DisturbanceLoop(*parts, happenings)
        self.physics.start()
        self.agents.start()
        if self.layer is not None:
            self.layer.start()
        self._handlers = self._dispatch()
        self.camera = self._camera() if "frames" in record else None

    def _camera(self) -> EventCamera:
        from heron_env.envs.event.camera import EventCamera

        return EventCamera(self)

    def _dispatch(self) -> dict[type, Callable[[Any, int], None]]:
        physics, agents, ids = self.physics, self.agents, self.env.hierarchy.ids
        asking = [ids[rank] for rank, decide in sorted(agents.policies.items()) if isinstance(decide, Asking)]
        for rank, decide in agents.policies.items():
            if isinstance(decide, Asking):
                decide.running = partial(agents.plans.running, rank)
        self.context.result.await_answers(asking)
        handlers: dict[type, Callable[[Any, int], None]] = {
            events.Simulation: physics.simulate,
            messages.SharedState: physics.receive_share,
            messages.CycleToken: physics.pass_token,
            messages.CycleCompletion: physics.ask_score,
            messages.LocalStateRequest: physics.answer_score,
            messages.LocalStateReply: physics.learn_score,
            messages.TickResultReport: _nothing,
            events.CloseEpisode: self._close,
            events.AgentTick: agents.tick,
            events.Deadline: agents.deadline,
            messages.ObservationRequest: agents.answer_request,
            messages.ObservationReply: self.answers.receive_reply if asking else agents.receive_reply,
            events.Answered: self.answers.conclude,
            messages.LetterUnderWay: partial(receive_letter, self.context),
            messages.Command: agents.receive_command,
            events.ActionEffect: agents.take_effect,
            events.PlanStep: agents.play_on,
            messages.StateReport: agents.receive_report,
            messages.ReportReceived: _nothing,
        }
        if (sharing := self.context.broker.sharing) is not None:
            handlers |= {Offered: sharing.handle, Transmit: sharing.handle}
        return handlers if self.layer is None else self.layer.dispatch(handlers)

    def _close(self, event: events.CloseEpisode, now: int) -> None:
        self.closed = True

    @property
    def reached(self) -> int:
        """How far the run is: now, or `t_end` where it was closed there, ns."""
        c = self.context
        return self.t_end if self.t_end is not None and self.closed and not c.simulation.over else c.scheduler.now

    @property
    def due(self) -> float | None:
        """When the next event falls due, or `t_end` if that comes first, s; None: the run is over.

        `until(due)` comes to it: where seconds don't show each nanosecond, beyond 104 days, it is rounded up.
        """
        heap = self.context.scheduler.heap
        if self.closed or not heap:
            return None
        ns = heap[0][0] if self.t_end is None else min(heap[0][0], self.t_end)
        due = to_seconds(ns)
        while round(due * SECOND) < ns:
            due = math.nextafter(due, math.inf)
        return due

    def think_in_threads(self, threads: AnswerThreads) -> None:
        """From now on policies that know who asks think while the clock goes on; `come` takes what they answer."""
        self.answers.threads = threads

    def arrivals(self, **more: Any) -> Arrivals:
        """The record of this run so far, for `run_event_driven(arrivals=...)`; `more`: further fields of it."""
        c, ids = self.context, self.env.hierarchy.ids
        if c.result.episode:
            raise TraceError(
                f"this run is episode {c.result.episode} of its seed, and only a first one is repeated: name a seed"
            )
        answers = {ids[rank]: tuple(answers) for rank, answers in sorted(self.answers.recorded.items())}
        return Arrivals(c.result.seed, answers=answers, course=self.result().digests(c.record), **more)

    def come(self, came: Thought, t: float) -> None:
        """Answers have come at `t` s, not before the last event. Raises what the policy raised, ConfigError."""
        self.answers.come(came, to_ns(t, "come(t)"))

    def until(self, t: float | None) -> None:
        """Carry on up to and including time `t` s; None: to the end.

        Raises ResetNeeded without policies and after an error in an event, RunInterrupted if the environment is no
        longer where the run left it.
        """
        limit = None if t is None else to_ns(t, "until(t)")
        taken = self.context.scheduler.taken
        try:
            self.context.ownership.drive("until()", self._until, limit)
        except BaseException as error:
            if self.context.scheduler.taken != taken:
                self.torn = ended_in("until()", error)
            raise

    def _until(self, limit: int | None) -> None:
        self._require_mine("until()")
        if self.torn:
            raise ResetNeeded(f"until(): {self.torn}; start another run")
        if self.agents.deciding - self.agents.policies.keys():
            raise ResetNeeded("until(): an unpickled run has no policies; attach(policies) first")
        delivery = self.context.delivery
        stop = NO_END if not isinstance(delivery, Arrivals) or delivery.until is None else delivery.until
        last = stop if limit is None else min(limit, stop)
        if self.camera is None:
            self._handle_until(last)
        else:
            self.camera.film_until(last, self._handle_until)
        self.env.proxy.time = to_seconds(self.context.scheduler.now)

    def _require_mine(self, call: str) -> None:
        """Raise RunInterrupted unless the environment is where this run left it (T21)."""
        if self.context.ownership.mark != self.context.mark:
            since = to_seconds(self.context.scheduler.now)
            raise RunInterrupted(
                f"{call}: since this run was at t={since} s, its environment was reset, restored or used by another "
                "run; use a copy for that: copy.deepcopy(env)"
            )

    def _handle_until(self, limit: int) -> None:
        """The loop: the next event is taken off the heap, noted if it is a message, traced, and handled."""
        scheduler, broker, handlers = self.context.scheduler, self.context.broker, self._handlers
        heap, accounts, accept = scheduler.heap, broker.accounts, broker.accept if broker.doubles else None
        trace = self.context.trace
        end = END_OF_TIME if self.t_end is None else self.t_end
        stop = min(limit + 1, end)
        while heap and not self.closed:
            now = heap[0][0]
            if now >= stop:
                self.context.reached = max(self.context.reached, min(limit, end))
                if now > limit < end:
                    break
                if self.t_end is None:
                    step = self.env.simulation.step_index
                    require_before_the_end((step + 1) * self.env.dt_ns, f"the end of step {step}")
                if now > end or heap[0][1] > Phase.CLOSE:
                    self._truncate()
                    break
            entry = heappop(heap)
            event = entry[4]
            kind = type(event)
            scheduler.now = now
            if kind in DELIVERED:
                if accept is None:
                    accounts[entry[2]].delivered += 1
                elif not accept(event):
                    continue
            if trace is not None:
                scheduler.here = len(trace.rows)
                trace.rows.append(entry)
            handlers[kind](event, now)

    def _truncate(self) -> None:
        """t_end came before the episode's own end: everyone still in it is truncated."""
        self.closed = True
        alive = self.context.simulation.alive
        for rank, agent in enumerate(self.env.hierarchy.ids):
            if alive[rank]:
                self.context.result.truncated[agent] = True

    def attach(self, policies: Policies) -> None:
        """Give a restored run its policies, for the agents that decided before. Raises ConfigError for others.

        They are as they were: nobody tells them that an episode begins.
        """
        c, ids = self.context, self.env.hierarchy.ids
        deciders = _deciders(self.env, resolve_policies(policies, self.env), c.timings, c.delivery)
        if deciders.keys() != self.agents.deciding:
            now, before = ([ids[rank] for rank in sorted(ranks)] for ranks in (deciders, self.agents.deciding))
            raise ConfigError(f"attach(policies): these decide for {now}, the run began with {before}; name the same")
        self.agents.policies = dict(deciders)
        self._handlers = self._dispatch()

    def state(self) -> dict[str, Any]:
        """Where the run stands: time in s, step, truth and cache (float64 copies), who is alive, message counts."""
        self._require_mine("state()")
        simulation = self.context.simulation
        return {
            "time": to_seconds(self.context.scheduler.now),
            "step": simulation.step_index,
            "truth": simulation.truth.copy(),
            "cache": self.env.proxy.cache.copy(),
            "alive": dict(zip(self.env.hierarchy.ids, simulation.alive, strict=True)),
            "messages": self.physics.messages(),
            "closed": self.closed,
        }

    def _in_it(self) -> set[int]:
        """The agents, by rank, that have not ended before the episode did (T22)."""
        simulation = self.context.simulation
        if simulation.over:
            return set(self.physics.members)
        return {rank for rank, alive in enumerate(simulation.alive) if alive}

    def result(self) -> EpisodeResult:
        """Everything so far; final once the run has closed. Raises RunInterrupted as `until` does."""
        if not self._complete:
            self._require_mine("result()")
            self._complete = self.closed
            self._tell()
        return self.context.result

    def _tell(self) -> None:
        """Bring the result up to now."""
        c, ids = self.context, self.env.hierarchy.ids
        result = c.result
        result.end_time = to_seconds(self.reached)
        result.staleness = {ids[rank]: Percentiles.of(c.staleness(rank)) for rank in sorted(self.agents.deciding)}
        result.latency = {agent: Percentiles.of(c.latency[self.env.hierarchy.index[agent]]) for agent in result.actions}
        result.messages, result.letters = self.physics.messages(), c.simulation.post.counts()
        result.media = c.broker.media(self.reached)
        pending, living = [*self.agents.pending(), *self.answers.waiting], self._in_it()
        result.unfinished_effects = sum(rank in living for rank in pending)
        result.cancelled_effects = self.agents.cancelled + len(pending) - result.unfinished_effects
        ended = self.closed and not has_link_rule(c.simulation.hooks)
        result.notes = notes(
            c.simulation, c.timings, c.wait_ns, self.agents.deciding, reports=c.reports,
            end_ns=self.reached if ended else None, thinking=self.answers.longest,
        ) + overload(result.media)  # fmt: skip
        result.kpis = self.env.kpis()
        result.plans = {ids[rank]: counts for rank, counts in self.agents.plans.counts(self.reached).items()}
        result.footage = None if self.camera is None else self.camera.develop()
        if "rewards" not in c.record:
            result.rewards = {a: [(result.end_time, total)] for a, total in result.returns.items()}

    def __getstate__(self) -> dict[str, Any]:
        """Everything but the policies, with the proxy's knowledge, which the environment alone would rebuild."""
        proxy = self.env.proxy
        attributes = {name: value for name, value in self.__dict__.items() if name != "_handlers"}
        cached = (proxy.cache.copy(), proxy.version.copy(), proxy.as_of.copy())
        return {"kept": attributes, "known": cached}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Bind everything to the rebuilt environment."""
        self.__dict__.update(state["kept"])
        c = self.context
        c.bind(self.env.simulation, self.env.proxy, self.env._ownership, self.env.draw_of)
        cache, version, as_of = state["known"]
        c.proxy.keep(cache)
        c.proxy.version[:], c.proxy.as_of[:] = version, as_of
        c.proxy.time = to_seconds(c.scheduler.now)
        self.agents.bind()
        c.measuring.bind(c.simulation)
        if self.layer is not None:
            self.layer.bind()
            self.layer.conditions.bind()
        self._handlers = self._dispatch()


def _wait_ns(env: HeronEnv, wait: float | None) -> int:
    """How long physics takes for a step. Raises ScheduleError."""
    wait_ns = env.dt_ns if wait is None else to_ns(wait, "wait")
    if not env.physics_substeps <= wait_ns <= env.dt_ns:
        raise ScheduleError(f"wait={wait!r}: must lie in (0, dt={env.dt!r}] s, with a nanosecond for each substep")
    if wait_ns < env.dt_ns and env.reports > 1:
        raise ScheduleError(
            f"wait={wait!r}: with report_interval={env.report_interval!r} s below dt={env.dt!r} s physics takes its "
            "whole step; leave wait out"
        )
    return wait_ns


def _deciders(
    env: HeronEnv, chosen: Mapping[int, AnyPolicy], timings: Sequence[Timing], delivery: Delivery | None
) -> Deciders:
    """By rank; agents that live elsewhere, or whose answers take time, have policies that are asked."""
    elsewhere = {timing.agent for timing in timings if timing.thinks}
    elsewhere |= set() if delivery is None else {*delivery.thinks, *delivery.places}

    def asked_or_not(rank: int, policy: AnyPolicy) -> AnyPolicy:
        plain = hasattr(policy, "answer") or env.hierarchy.ids[rank] not in elsewhere
        return policy if plain else InWords(env, rank, cast(Any, policy))

    return {rank: decides(env, rank, asked_or_not(rank, policy)) for rank, policy in chosen.items()}


def _require_one_network(env: HeronEnv, timings: Sequence[Timing], delivery: Delivery | None) -> None:
    """Raise ScheduleError where messages that a real network carries would be delayed here, too."""
    if delivery is None or not delivery.places:
        return
    for timing in timings:
        if not timing.instant or timing.config.jitter_ratio or timing.shared:
            raise ScheduleError(
                f"the schedule of {timing.agent!r} has delays, jitter, losses, a medium or a transport, and a real "
                "network delivers its messages: set obs_delay, act_delay, msg_delay, jitter_ratio, loss and min_delay "
                "to 0, medium and transport to None"
            )
    if has_link_rule(env.simulation.hooks):
        raise ConfigError(
            f"{type(env.simulation.hooks).__name__}.link() says what links do, and a real network delivers here; take "
            "the hook away for this run"
        )


def _nothing(event: Any, now: int) -> None:
    """The message ends here."""
