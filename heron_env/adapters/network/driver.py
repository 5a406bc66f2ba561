"""The clock of a black box that steps: what it shows and what it is told travel over links (W1 to W8).

Step k covers [k*dt, (k+1)*dt) and is executed at its end, before anything else of that instant. Only messages are on
the heap. At k*dt: what arrives by then, then the agents' ticks; until (k+1)*dt: commands arrive; then the step.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from heapq import heappop
from typing import Any

from heron_env.adapters.network.forms import Copy, Form
from heron_env.adapters.network.noops import Noops, copied, forbids, vector_of
from heron_env.envs.episodes import EpisodeResult, Percentiles
from heron_env.envs.event.message_log import WatchedBroker
from heron_env.errors import ConfigError, InvalidAction
from heron_env.scheduling.broker import MessageBroker, Queue
from heron_env.scheduling.links import links_of
from heron_env.scheduling.messages import ActionCommand, Leg, ObservationCopy
from heron_env.scheduling.records import make
from heron_env.scheduling.scheduler import EventScheduler, Phase
from heron_env.scheduling.timing import END_OF_TIME, Timing, require_before_the_end, to_seconds
from heron_env.scheduling.trace import NOBODY, Trace
from heron_env.seeding import h

REPLY, COMMAND = int(Phase.REPLY), int(Phase.COMMAND)
DOWN, SHARE, COMMANDS = int(Queue.DOWN), int(Queue.SHARE), int(Queue.COMMAND)
NOOP = -1
"""The number of a decision that nobody made."""
StepOutcome = tuple[dict[str, Any], dict[str, float], dict[str, bool], dict[str, bool], dict[str, Any]]
"""Observations, rewards, terminations, truncations and infos by agent, as a ParallelEnv's step returns them."""


@dataclass(frozen=True)
class NetworkSetting:
    """What is the same in all episodes; lists by rank."""

    world: Any
    agents: tuple[str, ...]
    action_spaces: Sequence[Any]
    forms: Sequence[Form]
    noops: Noops
    dt_ns: int
    failsafe: bool
    """on_missing="noop" for all, whatever their schedules say."""


class AgentSide:
    """One agent's side of the network: what has arrived there, and what is in force for it.

    Attributes:
        born: when it joined, ns; what set out before is of an earlier life.
        ended: when it ended, ns; None: it lives, or has not joined.
        copies: the newest that arrived, its own and one for each part; before, the filler.
        arrived: has its own?
        fresh: has one since the last step?
        force: (number, action) in force, or None: the no-op.
        next: the lowest number of a command that is not too late.
        applied: number of the decision of the last step.
        truth, info: the environment's own, of the last boundary.
        place: of the newest arrival in the trace.
    """

    def __init__(self, rank: int, name: str, timing: Timing, form: Form, *, failsafe: bool) -> None:
        self.rank, self.name, self.timing, self.form = rank, name, timing, form
        self.failsafe = failsafe or timing.config.on_missing == "noop"
        self.alive, self.ended = False, None
        self.masked, self.has_mask = 0, False
        self.ages = list[float]()
        self.latency = list[float]()

    alive: bool
    ended: int | None

    def join(self, number: int, now: int, observation: Any) -> None:
        """As at reset: nothing has arrived, nothing is in force; what it observes first is a legal filler."""
        self.alive, self.born, self.ended = True, now, None
        self.copies: list[Copy] = [(number, observation)]
        self.copies += [(number, self.form.cut(observation, part)) for part in range(len(self.form.parts))]
        self.arrived = self.fresh = False
        self.force: tuple[int, Any] | None = None
        self.next, self.applied, self.place = 0, NOOP, NOBODY

    def ticks_at(self, now: int) -> bool:
        """Does it decide at `now`, ns?"""
        timing = self.timing
        return self.arrived and now >= timing.phase and not (now - timing.phase) % timing.tick

    @property
    def mask(self) -> Any:
        """What the environment allows now, or None."""
        if "action_mask" in self.info:
            return self.info["action_mask"]
        return self.truth.get("action_mask") if isinstance(self.truth, Mapping) else None

    info: Mapping[str, Any] = {}
    truth: Any = None


class NetworkEpisode:
    """One episode: `begin`, then `step` until `agents` is empty."""

    def __init__(
        self, setting: NetworkSetting, timings: Sequence[Timing], seed: int, episode: int, *,
        trace: bool = False, record: frozenset[str] = frozenset(),
    ) -> None:  # fmt: skip
        self.setting, self.timings, self.moment = setting, timings, (seed, episode)
        self.record, self.now, self.number = record, 0, 0
        self.trace = Trace() if trace else None
        self.scheduler = EventScheduler()
        if self.trace is not None:
            self.scheduler.causes = self.trace.causes
        self.links = links_of([h(name) for name in setting.agents], timings, timings, seed, episode)
        self.broker = (MessageBroker if self.trace is None else WatchedBroker)(self.scheduler, self.links)
        each = enumerate(zip(setting.agents, timings, setting.forms, strict=True))
        self.sides = [AgentSide(rank, *one, failsafe=setting.failsafe) for rank, one in each]
        self.by_name = {side.name: side for side in self.sides}
        self.cancelled = 0
        observing = setting.agents if "observations" in record else ()
        self.result = EpisodeResult.blank(setting.agents, setting.agents, observing, trace=self.trace)

    @property
    def agents(self) -> list[str]:
        """Those in the episode."""
        names: list[str] = self.setting.world.agents
        return names

    def begin(self, seed: int | None, options: dict[str, Any] | None) -> tuple[dict[str, Any], dict[str, Any]]:
        """Reset the environment; observations and infos by agent."""
        observations, infos = self.setting.world.reset(seed=seed, options=options)
        return self._boundary(observations, infos)

    def step(self, actions: Mapping[str, Any]) -> StepOutcome:
        """One step of the environment. Raises InvalidAction where an agent that decides now has no action."""
        setting, deciding = self.setting, [side for side in self.sides if side.alive and side.ticks_at(self.now)]
        for side in deciding:
            if side.name not in actions:
                raise InvalidAction(f"step() got no action for {side.name!r}, whose turn it is (is_active)")
        require_before_the_end(self.now + setting.dt_ns, f"the end of step {self.number}")
        self._deliver(self.now)
        self._tick(deciding, actions)
        self._deliver(self.now + setting.dt_ns - 1)
        commands = {name: self._apply(self.by_name[name]) for name in setting.world.agents}
        observations, rewards, terminated, truncated, infos = setting.world.step(commands)
        self.now, self.number = self.now + setting.dt_ns, self.number + 1
        self._score(rewards, terminated, truncated)
        seen, told = self._boundary(observations, infos)
        return seen, rewards, terminated, truncated, told

    def _tick(self, deciding: Iterable[AgentSide], actions: Mapping[str, Any]) -> None:
        """Commands that did not come in time are given up; then decisions leave, copied."""
        now = self.now
        for side in self.sides:
            number, rest = divmod(now - side.timing.phase, side.timing.tick)
            if side.failsafe and side.alive and not rest and side.next < number:
                side.force, side.next = None, number
        for side in deciding:
            rank, timing = side.rank, side.timing
            number = (now - timing.phase) // timing.tick
            if self.trace is not None:
                self.scheduler.here = self.trace.add(now, "AgentTick", rank, number, NOBODY, side.place, 0)
            if self.record:
                side.ages += side.form.ages(side.copies, now, self.setting.dt_ns)
            leaves = self._leaves(self.links[rank].delay(timing.act, "tick", Leg.ACTION, number, now))
            command = make(ActionCommand, (rank, number, self.broker.next_id(), leaves, copied(actions[side.name])))
            self.broker.send(command, COMMAND, COMMANDS, timing.msg, "tick")

    def _leaves(self, delay: int) -> int:
        return min(self.now + delay, END_OF_TIME - 1)

    def _deliver(self, last: int, phase: int = COMMAND) -> None:
        """Everything arrives that arrives by `last`, ns; of that instant only what comes by `phase`."""
        scheduler, broker, trace = self.scheduler, self.broker, self.trace
        heap, accounts, accept = scheduler.heap, broker.accounts, broker.accept if broker.doubles else None
        while heap and heap[0][0] <= last and (heap[0][1] <= phase or heap[0][0] < last):
            entry = heappop(heap)
            scheduler.now, message = entry[0], entry[4]
            if accept is None:
                accounts[entry[2]].delivered += 1
            elif not accept(message):
                continue
            if trace is not None:
                scheduler.here = len(trace.rows)
                trace.rows.append(entry)
            receive = self._receive if type(message) is ObservationCopy else self._take_effect
            if not receive(message, entry[0]) and trace is not None:
                trace.cancelled.add(scheduler.here)

    def _receive(self, message: ObservationCopy, now: int) -> bool:
        """At the agent: the newest stays. False: it has ended, or is in a later life."""
        side, part = self.sides[message.receiver], message.part
        if not side.alive or message.number * self.setting.dt_ns < side.born:
            return False
        if message.number > side.copies[part][0] or not (part or side.arrived):
            side.copies[part] = (message.number, message.content)
            side.fresh, side.place = True, self.scheduler.here
            side.arrived |= not part
        return True

    def _take_effect(self, command: ActionCommand, now: int) -> bool:
        """At the environment: the newest is in force. False: its agent has ended, or something newer is."""
        side, number = self.sides[command.agent], command.number
        decided = side.timing.nominal(number)
        if not side.alive or decided < side.born or number < side.next:
            self.cancelled += 1
            return False
        side.force, side.next = (number, command.action), number + 1
        if self.record:
            side.latency.append(to_seconds(now - decided))
        if "actions" in self.record:
            vector = vector_of(self.setting.action_spaces[side.rank], command.action)
            self.result.actions[side.name].append((to_seconds(now), vector))
        return True

    def _apply(self, side: AgentSide) -> Any:
        """What the environment is told for an agent: what is in force, or the no-op."""
        mask = side.mask
        side.has_mask |= mask is not None
        if side.force is not None:
            side.applied, action = side.force
            if mask is None or not forbids(mask, self.setting.action_spaces[side.rank], action):
                return copied(action)
            side.masked += 1
        side.applied = NOOP
        return self.setting.noops.draw(side.rank, mask, *self.moment, self.number)

    def _boundary(self, observations: dict[str, Any], infos: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        """Copies of what is true now leave, and arrive where nothing delays them; what each agent has then."""
        now, number, dt_ns = self.now, self.number, self.setting.dt_ns
        if self.trace is not None:
            self.scheduler.here = self.trace.add(now, "Boundary", NOBODY, number, NOBODY, NOBODY, 0)
        sides = [self._side(name) for name in observations]
        for side in sides:
            side.truth, side.info = copied(observations[side.name]), infos.get(side.name, {})
            if not side.alive:
                side.join(number, now, side.truth)
            self._send(side)
        self._deliver(now, REPLY)
        for side in self.sides:
            if side.alive and side.name not in self.setting.world.agents:
                side.alive, side.ended = False, now
        seen, told = dict[str, Any](), dict(infos)
        for side in sides:
            seen[side.name] = side.form.put_together(side.copies, now, dt_ns)
            told[side.name] = {
                **side.info,
                "aoi": (now - side.copies[0][0] * dt_ns) / 1e9,
                "delivered": side.fresh,
                "is_active": side.alive and side.ticks_at(now),
                "applied": side.applied,
            }
            side.fresh = False
            if not side.alive:
                told[side.name]["true_observation"] = side.form.fresh(side.truth)
        return seen, told

    def _side(self, name: str) -> AgentSide:
        if name not in self.by_name:
            raise ConfigError(f"agent {name!r} is not among the environment's possible_agents")
        return self.by_name[name]

    def _send(self, side: AgentSide) -> None:
        """An agent's observation leaves over its link, and each part over its source's."""
        own: list[tuple[int, Any]] = [(side.rank, side.truth)]
        parts = enumerate(side.form.parts)
        for part, (rank, content) in enumerate(own + [(rank, side.form.cut(side.truth, i)) for i, (rank, _) in parts]):
            timing, cause = self.timings[rank], f"boundary to {side.name} {part}" if part else "boundary"
            leaves = self._leaves(self.links[rank].delay(timing.obs, cause, Leg.GATHERING, self.number, self.now))
            values = (rank, self.number, self.broker.next_id(), leaves, side.rank, part, content)
            self.broker.send(make(ObservationCopy, values), REPLY, SHARE if part else DOWN, timing.msg, cause)

    def _score(self, rewards: dict[str, float], terminated: dict[str, bool], truncated: dict[str, bool]) -> None:
        """Rewards and ends count from the truth at the boundary on, whatever the network does (T4)."""
        result, time = self.result, to_seconds(self.now)
        if "rewards" in self.record:
            for name, reward in rewards.items():
                result.rewards[name].append((time, reward))
        for ends, flags in ((result.terminated, terminated), (result.truncated, truncated)):
            for name, flag in flags.items():
                if flag:
                    ends[name] = True

    def close(self, notes: list[str]) -> EpisodeResult:
        """What the episode has yielded so far; those who are still in it are truncated."""
        result, over = self.result, not self.agents
        result.end_time, result.notes = to_seconds(self.now), notes
        result.truncated |= {side.name: True for side in self.sides if side.alive}
        result.staleness = {side.name: Percentiles.of(side.ages) for side in self.sides}
        result.latency = {side.name: Percentiles.of(side.latency) for side in self.sides}
        result.messages = self.broker.total()
        result.masked = {side.name: side.masked for side in self.sides if side.has_mask}
        coming = {m.id: m for m in self.scheduler if type(m) is ActionCommand and not self.broker.is_second_copy(m)}
        ended = [side.ended is not None and not (over and side.ended == self.now) for side in self.sides]
        result.cancelled_effects = self.cancelled + sum(ended[command.agent] for command in coming.values())
        result.unfinished_effects = len(coming) + self.cancelled - result.cancelled_effects
        return result


def network_notes(timings: Sequence[Timing], dt_ns: int) -> list[str]:
    """What delays below one step do, which is easily misread (W1)."""
    found: dict[str, list[str]] = {}
    for timing in timings:
        least, step = timing.min_delay, to_seconds(dt_ns)
        seen = max(timing.msg, least) + max(timing.obs, least)
        done = max(timing.msg, least) + max(timing.act, least)
        if 0 < seen < dt_ns:
            late = f"observations take {to_seconds(seen)} s, less than a step of {step} s: they are seen a step later"
            found.setdefault(late, []).append(timing.agent)
        if 0 < done < dt_ns:
            early = f"commands take {to_seconds(done)} s, less than a step of {step} s: they count as if undelayed"
            found.setdefault(early, []).append(timing.agent)
    return [f"{text} ({', '.join(agents[:3])}{', ...' if len(agents) > 3 else ''})" for text, agents in found.items()]
