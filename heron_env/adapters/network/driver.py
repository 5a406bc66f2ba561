"""The clock of a black box that steps: what it shows and what it is told travel over links (W1 to W8).

Step k covers [k*dt, (k+1)*dt) and is executed at its end, before anything else of that instant. Only messages are on
the heap. At k*dt observations arrive, then commands, then agents tick; commands arrive until (k+1)*dt; then the step.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from heapq import heappop
from typing import Any

import numpy as np

from heron_env.adapters.network.forms import Copy, ObservationForm
from heron_env.adapters.network.noops import Noops, copied, forbids, mask_of, vector_of
from heron_env.envs.episodes import EpisodeResult, Percentiles
from heron_env.envs.event.message_log import WatchedBroker
from heron_env.envs.event.notes import Note, together
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
OURS = ("aoi", "delivered", "is_active", "applied", "true_observation", "own")
"""What an agent's info says of the network."""
NOOP = -1
"""The number of a decision that nobody made."""
BELOW_A_STEP = ("observations", "are seen a step later"), ("commands", "count as if undelayed")
"""What a delay in (0, dt) does (W1)."""


@dataclass(frozen=True)
class NetworkSetting:
    """What is the same in all episodes; lists by rank. `failsafe`: on_missing="noop" for all."""

    world: Any
    agents: tuple[str, ...]
    action_spaces: Sequence[Any]
    forms: Sequence[ObservationForm]
    noops: Noops
    dt_ns: int
    failsafe: bool


class AgentSide:
    """One agent's side of the network: what has arrived there, and what is in force for it.

    Attributes:
        born, ended: when it joined and ended, ns; what set out before it was born is of an earlier life.
        copies: the newest that arrived, its own and one for each part; before, the filler.
        arrived, fresh: has its own arrived, has one since the last step?
        force: (number, action) in force, or None: the no-op.
        next: the lowest number of a command that is not too late.
        knowing: number of the decision of now, if it was made on what is true now.
        applied: number of the decision of the last step.
        truth, info, mask: the environment's own, of the last boundary.
        place: of the newest arrival in the trace.
    """

    copies: list[Copy]
    force: tuple[int, Any] | None
    truth: Any
    info: Mapping[str, Any]
    mask: Any

    def __init__(self, rank: int, name: str, timing: Timing, form: ObservationForm, *, failsafe: bool) -> None:
        self.rank, self.name, self.timing, self.form = rank, name, timing, form
        self.failsafe = failsafe or timing.config.on_missing == "noop"
        self.alive, self.ended, self.has_mask, self.masked = False, NOBODY, False, 0
        self.fresh, self.applied, self.knowing = False, NOOP, NOOP
        self.ages, self.latency = list[float](), list[float]()

    def join(self, number: int, now: int) -> None:
        """As at reset: nothing has arrived, nothing is in force; the truth of this boundary is a legal filler."""
        self.alive, self.born, self.ended = True, now, NOBODY
        self.copies = self.form.copies(number, self.truth)
        self.arrived, self.fresh, self.force, self.next = False, False, None, 0
        self.applied, self.place = NOOP, NOBODY

    def decides_at(self, now: int) -> bool:
        """Will an action of now, ns, be used?"""
        return self.alive and self.arrived and self.timing.ticks_at(now)

    def awaits(self, number: int, last: int) -> bool:
        """Is a command still to come at the end? Not of an earlier life, nor if it ended, but with the `last` step."""
        return self.ended in (NOBODY, last) and self.timing.nominal(number) >= self.born


class NetworkEpisode:
    """One episode: `show` what a reset returns, then `step` while somebody is there. `record`: None: not measured."""

    def __init__(
        self, setting: NetworkSetting, timings: Sequence[Timing], seed: int, episode: int, *,
        trace: bool = False, record: frozenset[str] | None = None,
    ) -> None:  # fmt: skip
        self.setting, self.world, self.timings, self.moment = setting, setting.world, timings, (seed, episode)
        self.record, self.now, self.number, self.cancelled = record, 0, 0, 0
        self.trace = Trace() if trace else None
        self.scheduler = EventScheduler()
        self.scheduler.causes = None if self.trace is None else self.trace.causes
        self.links = links_of([h(name) for name in setting.agents], timings, timings, seed, episode)
        self.broker = (WatchedBroker if trace else MessageBroker)(self.scheduler, self.links)
        each = enumerate(zip(setting.agents, timings, setting.forms, strict=True))
        self.sides = [AgentSide(rank, *one, failsafe=setting.failsafe) for rank, one in each]
        self.by_name = {side.name: side for side in self.sides}
        observing = setting.agents if "observations" in (record or ()) else ()
        self.result = EpisodeResult.blank(setting.agents, setting.agents, observing, trace=self.trace)

    def deciding(self) -> list[tuple[str, int]]:
        """Whose turn it is now, and the numbers of their decisions."""
        return [(side.name, side.timing.number(self.now)) for side in self.sides if side.decides_at(self.now)]

    def step(self, actions: Mapping[str, Any]) -> tuple[dict[str, Any], ...]:
        """One step of the environment. Raises InvalidAction where an agent that decides now has no action."""
        setting, deciding = self.setting, self.deciding()
        for name, _ in deciding:
            if name not in actions:
                raise InvalidAction(f"step() got no action for {name!r}, whose turn it is (is_active)")
        require_before_the_end(self.now + setting.dt_ns, f"the end of step {self.number}")
        self._deliver(self.now)
        self._tick(deciding, actions)
        self._deliver(self.now + setting.dt_ns - 1)
        commands = {name: self._apply(self.by_name[name]) for name in self.world.agents}
        observations, rewards, terminated, truncated, infos = self.world.step(commands)
        self.now, self.number = self.now + setting.dt_ns, self.number + 1
        self._score(rewards, terminated, truncated)
        arrived, described = self.show(observations, infos)
        return arrived, rewards, terminated, truncated, described

    def _tick(self, deciding: Iterable[tuple[str, int]], actions: Mapping[str, Any]) -> None:
        """Commands that are missing by now are given up; then decisions leave, copied."""
        for side in self.sides:
            number, side.knowing = side.timing.number(self.now), NOOP
            if side.failsafe and side.alive and side.next < number and side.timing.ticks_at(self.now):
                side.force, side.next = None, number
        for name, number in deciding:
            side = self.by_name[name]
            side.knowing = number if side.copies[0][0] == self.number else NOOP
            if self.trace is not None:
                self.scheduler.here = self.trace.add(self.now, "AgentTick", side.rank, number, NOBODY, side.place, 0)
            if self.record is not None:
                side.ages += side.form.ages(side.copies, self.now, self.setting.dt_ns)
            leaves = self._leaves(side.rank, side.timing.act, "tick", Leg.ACTION, number)
            values = (side.rank, number, self.broker.next_id(), leaves, copied(actions[name]))
            self.broker.send(make(ActionCommand, values), COMMAND, COMMANDS, side.timing.msg, "tick")

    def _leaves(self, rank: int, nominal: int, cause: str, leg: Leg, number: int) -> int:
        """When a message leaves after its obs_delay or act_delay, ns."""
        return min(self.now + self.links[rank].delay(nominal, cause, leg, number, self.now), END_OF_TIME - 1)

    def _deliver(self, last: int, phase: int = COMMAND) -> None:
        """Everything arrives that arrives by `last`, ns; of that instant only what comes by `phase`."""
        scheduler, trace, accept = self.scheduler, self.trace, self.broker.accept
        heap = scheduler.heap
        while heap and (heap[0][0] < last or (heap[0][0] == last and heap[0][1] <= phase)):
            entry = heappop(heap)
            scheduler.now, message = entry[0], entry[4]
            if not accept(message):
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
            side.fresh, side.place, side.arrived = True, self.scheduler.here, side.arrived or not part
        return True

    def _take_effect(self, command: ActionCommand, now: int) -> bool:
        """At the environment: the newest is in force. False: its agent has ended, or something newer is."""
        side, number = self.sides[command.agent], command.number
        decided = side.timing.nominal(number)
        if not side.alive or decided < side.born or number < side.next:
            self.cancelled += 1
            return False
        side.force, side.next = (number, command.action), number + 1
        if self.record is not None:
            side.latency.append(to_seconds(now - decided))
        if self.record and "actions" in self.record:
            vector = vector_of(self.setting.action_spaces[side.rank], command.action)
            self.result.actions[side.name].append((to_seconds(now), vector))
        return True

    def _apply(self, side: AgentSide) -> Any:
        """What the environment is told for an agent: what is in force, or the no-op.

        A choice that is forbidden by now becomes the no-op; who knew what is true now is the environment's to judge.
        """
        side.has_mask |= side.mask is not None
        if side.force is not None:
            side.applied, action = side.force
            if side.applied == side.knowing or not forbids(side.mask, self.setting.action_spaces[side.rank], action):
                return copied(action)
            side.masked += 1
        side.applied = NOOP
        return self.setting.noops.draw(side.rank, side.mask, *self.moment, self.number)

    def show(self, observations: dict[str, Any], infos: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        """Copies of what is true now leave, and arrive where nothing delays them; what each agent has then."""
        now, dt_ns, living, infos = self.now, self.setting.dt_ns, set(self.world.agents), infos or {}
        if self.trace is not None:
            self.scheduler.here = self.trace.add(now, "Boundary", NOBODY, self.number, NOBODY, NOBODY, 0)
        sides = [self._side(name) for name in dict.fromkeys((*observations, *self.world.agents))]
        for side in sides:
            side.info = infos.get(side.name) or {}
            if given := side.name in observations:
                side.truth = copied(observations[side.name])
            elif not side.alive:
                raise ConfigError(f"agent {side.name!r} is in env.agents, and the environment shows it nothing")
            side.mask = self._mask(side)
            if side.name in living and not side.alive:
                side.join(self.number, now)
            if not side.alive:  # nobody decides on it
                side.copies = side.form.copies(self.number, side.truth)
            elif given:
                self._send(side)
        self._deliver(now, REPLY)
        for side in self.sides:
            if side.alive and side.name not in living:
                side.alive, side.ended = False, now
        arrived, described = dict[str, Any](), dict(infos)
        for side in sides:
            arrived[side.name] = side.form.put_together(side.copies, now, dt_ns)
            described[side.name] = self._info(side)
            side.fresh = False
        return arrived, described

    def _side(self, name: str) -> AgentSide:
        if name not in self.by_name:
            raise ConfigError(f"agent {name!r} is not among the environment's possible_agents")
        return self.by_name[name]

    def _mask(self, side: AgentSide) -> Any:
        """What the environment allows an agent now, a copy, or None."""
        mask = side.info.get("action_mask")
        if mask is None and isinstance(side.truth, Mapping):
            mask = side.truth.get("action_mask")
        return None if mask is None else mask_of(mask, self.setting.action_spaces[side.rank], side.name)

    def _info(self, side: AgentSide) -> dict[str, Any]:
        """An agent's own info, and the network's; what is hidden of its own is in "own"."""
        age = to_seconds(self.now - side.copies[0][0] * self.setting.dt_ns)
        info = {**side.info, "aoi": age, "delivered": side.fresh, "is_active": side.decides_at(self.now),
                "applied": side.applied}  # fmt: skip
        if not side.alive:
            true = side.form.copies(self.number, side.truth)
            info["true_observation"] = side.form.put_together(true, self.now, self.setting.dt_ns)
        if "action_mask" in info:
            info["action_mask"] = copied(info["action_mask"])
        if hidden := {name: side.info[name] for name in OURS if name in side.info}:
            info["own"] = hidden
        return info

    def _send(self, side: AgentSide) -> None:
        """An agent's observation leaves over its link, and each part over its source's."""
        copies = side.form.copies(self.number, side.truth)
        for part, rank in enumerate((side.rank, *(source for source, _ in side.form.parts))):
            timing, cause = self.timings[rank], f"boundary to {side.name}" if part else "boundary"
            leaves = self._leaves(rank, timing.obs, cause, Leg.GATHERING, self.number)
            values = (rank, self.number, self.broker.next_id(), leaves, side.rank, part, copies[part][1])
            self.broker.send(make(ObservationCopy, values), REPLY, SHARE if part else DOWN, timing.msg, cause)

    def _score(self, rewards: dict[str, Any], terminated: dict[str, bool], truncated: dict[str, bool]) -> None:
        """Rewards and ends count from the truth at the boundary on, whatever the network does (T4)."""
        for name, reward in rewards.items() if self.record is not None else ():
            if np.ndim(reward) or reward is None:
                raise ConfigError(
                    f"the reward of {name!r} is {reward!r}: a run adds up numbers; weigh them by a wrapper"
                )
            self.result.rewards[self._side(name).name].append((to_seconds(self.now), float(reward)))
        living = set(self.world.agents)
        for ends, flags in ((self.result.terminated, terminated), (self.result.truncated, truncated)):
            for name in (name for name, flag in flags.items() if flag):
                if name in living:
                    raise ConfigError(
                        f"agent {name!r} has ended and is still in env.agents; an environment takes it out"
                    )
                ends[self._side(name).name] = True

    def close(self) -> EpisodeResult:
        """What the episode has yielded so far; those who are still in it are truncated."""
        result, over = self.result, not self.world.agents
        result.end_time, result.notes = to_seconds(self.now), together(_below_a_step(self.timings, self.setting.dt_ns))
        result.truncated |= {side.name: True for side in self.sides if side.alive}
        result.staleness = {side.name: Percentiles.of(side.ages) for side in self.sides}
        result.latency = {side.name: Percentiles.of(side.latency) for side in self.sides}
        result.masked = {side.name: side.masked for side in self.sides if side.has_mask}
        result.messages = self.broker.total()
        if self.record is not None and "rewards" not in self.record:
            result.rewards = {name: [(result.end_time, total)] for name, total in result.returns.items()}
        last = self.now if over else NOBODY  # who ended with the episode was in it (T22)
        commands = [m for m in self.scheduler if type(m) is ActionCommand and not self.broker.is_second_copy(m)]
        pending = {command.id: self.sides[command.agent].awaits(command.number, last) for command in commands}
        result.unfinished_effects = sum(pending.values())
        result.cancelled_effects = self.cancelled + len(pending) - result.unfinished_effects
        return result


def _below_a_step(timings: Sequence[Timing], dt_ns: int) -> Iterator[Note]:
    """Delays below one step, which are easily misread (W1)."""
    for timing in timings:
        message, *ways = (max(delay, timing.min_delay) for delay in (timing.msg, timing.obs, timing.act))
        for way, what in zip(ways, BELOW_A_STEP, strict=True):
            if 0 < message + way < dt_ns:
                slow = f"{what[0]} take {to_seconds(message + way)} s, less than a step of {to_seconds(dt_ns)} s"
                yield f"{slow}: they {what[1]}", timing.agent
