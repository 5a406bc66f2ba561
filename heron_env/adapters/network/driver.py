"""The clock of a black box that steps: its observations and the actions of its agents travel over links (W1 to W8).

Step k covers [k*dt, (k+1)*dt) and is executed at its end, before anything else of that instant. Only messages are on
the heap. At k*dt observations arrive, then commands, then agents tick; commands arrive until (k+1)*dt; then the step.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from heapq import heappop
from typing import Any, NamedTuple

import gymnasium
import numpy as np

from heron_env.adapters.network.forms import ObservationForm
from heron_env.adapters.network.masks import checked_mask, forbids, is_choice
from heron_env.adapters.network.noops import Noops, copied, fits, sendable, vector_of
from heron_env.adapters.network.sides import MASK, NOOP, AgentSide
from heron_env.adapters.network.turns import TurnWorld
from heron_env.core.plans import Plan, PlanInForce, SentPlan, merged, mixed
from heron_env.envs.episodes import EpisodeResult
from heron_env.envs.event.message_log import WatchedBroker
from heron_env.envs.event.notes import together
from heron_env.envs.percentiles import Percentiles
from heron_env.envs.plan_counts import PlanTally
from heron_env.errors import ConfigError, InvalidAction
from heron_env.scheduling.broker import MessageBroker, Queue
from heron_env.scheduling.links import links_of
from heron_env.scheduling.messages import ActionCommand, Leg, ObservationCopy
from heron_env.scheduling.records import make
from heron_env.scheduling.scheduler import EventScheduler, Phase
from heron_env.scheduling.sharing import overload
from heron_env.scheduling.timing import END_OF_TIME, Timing, require_before_the_end, to_seconds
from heron_env.scheduling.trace import NOBODY, Trace
from heron_env.seeding import h

REPLY, COMMAND = int(Phase.REPLY), int(Phase.COMMAND)
REFUSAL = gymnasium.error.InvalidAction
"""With it an environment refuses an action of its space, before it moves; any other error may come from physics."""
Ask = Callable[[str, int, Any], Any]
"""(agent, number, observation) -> the Chosen of an agent whose turn it is."""


class Chosen(NamedTuple):
    """What an agent in a run has decided: an action or a Plan; after `thinking` ns."""

    action: Any
    thinking: int = 0


NOTHING_NEW = Chosen(None)
"""What is in force goes on; no message leaves."""


@dataclass(frozen=True)
class NetworkSetting:
    """What is the same in all episodes; lists by rank."""

    world: Any
    agents: tuple[str, ...]
    action_spaces: Sequence[Any]
    forms: Sequence[ObservationForm]
    noops: Noops
    dt_ns: int


class NetworkEpisode:
    """One episode: `show` what a reset returns, then `step` while agents live. `record`: None: not measured."""

    def __init__(
        self, setting: NetworkSetting, timings: Sequence[Timing], seed: int, episode: int, *,
        trace: bool = False, record: frozenset[str] | None = None,
    ) -> None:  # fmt: skip
        self.setting, self.world, self.moment, self.record = setting, setting.world, (seed, episode), record
        self.now, self.number, self.cancelled, self.torn = 0, 0, 0, False
        self.trace, self.scheduler = Trace() if trace else None, EventScheduler()
        self.scheduler.causes = None if self.trace is None else self.trace.causes
        self.links = links_of([h(name) for name in setting.agents], timings, timings, seed, episode)
        self.broker = (WatchedBroker if trace else MessageBroker)(self.scheduler, self.links)
        each = enumerate(zip(setting.agents, timings, setting.forms, strict=True))
        self.sides = [AgentSide(rank, *one, setting.dt_ns) for rank, one in each]
        self.by_name = {side.name: side for side in self.sides}
        observing = setting.agents if "observations" in (record or ()) else ()
        blank = EpisodeResult.blank
        self.result = blank(setting.agents, setting.agents, observing, trace=self.trace, moment=self.moment)

    def deciding(self) -> list[tuple[str, int]]:
        """The agents that decide now, and the numbers of their decisions."""
        return [(side.name, side.timing.number(self.now)) for side in self.sides if side.decides_at(self.now)]

    def step(self, actions: Mapping[str, Any], ask: Ask | None = None) -> tuple[dict[str, Any], ...]:
        """One step of the environment; `ask`: decides for `at_their_turn()`, who then need no action.

        Raises InvalidAction where an agent that decides now has no action that can be used: nothing has changed then,
        nor where the environment refuses an action of now before it moves. After other errors the episode is `torn`.
        """
        turns = self.at_their_turn() if ask is not None else {}
        deciding = [(name, number) for name, number in self.deciding() if name not in turns]
        chosen, end = {name: self._checked(name, actions) for name, _ in deciding}, self.now + self.setting.dt_ns
        require_before_the_end(end, f"the end of step {self.number}")
        standing = self._standing() if self.record is None else None
        if self.record is not None:
            self._note_busy()
        self.torn = True
        self._deliver(self.now)
        for name, number in deciding:
            self._tick(self.by_name[name], number, chosen[name])
        self._deliver(end - 1)
        try:
            if isinstance(self.world, TurnWorld):
                outcome = self.world.step_turns(lambda name, *of: self._at_turn(name, turns.get(name), ask, *of))
            else:
                outcome = self.world.step({name: self._apply(self.by_name[name]) for name in self.world.agents})
        except Exception as error:
            if standing is not None and self._is_refusal(error):
                self._go_back(standing)
            raise
        observations, rewards, terminated, truncated, infos = outcome
        self.now, self.number = end, self.number + 1
        self._score(rewards, terminated, truncated)
        arrived, described = self.show(observations, infos)
        self.torn = False
        return arrived, rewards, terminated, truncated, described

    def _note_busy(self) -> None:
        """Count the agents that tick now and look at nothing, as they think (T23)."""
        for side in self.sides:
            if side.is_thinking(self.now):
                self.result.busy[side.name] = self.result.busy.get(side.name, 0) + 1

    def at_their_turn(self) -> dict[str, int]:
        """Agents that decide in this step when their turn comes, as nothing delays them, and their decisions' numbers.

        Only in an environment whose agents act in turn.
        """
        if not isinstance(self.world, TurnWorld):
            return {}
        return {name: number for name, number in self.deciding() if self.by_name[name].timing.instant}

    def _checked(self, name: str, actions: Mapping[str, Any]) -> tuple[Any, int]:
        """A copy of what an agent decided; the actions of a plan as a tuple in it.

        Raises InvalidAction without one, and where a mask could not judge it later.
        """
        if name not in actions:
            raise InvalidAction(f"step() got no action for {name!r}, whose turn it is (is_active)")
        given = actions[name]
        if type(given) is not Chosen and type(given) is not Plan:
            return self._sendable(name, given), 0
        action, thinking = given if type(given) is Chosen else Chosen(given)
        if given is NOTHING_NEW:
            return NOTHING_NEW
        if type(action) is Plan:
            rows = tuple(self._sendable(name, row) for row in action.actions)
            return replace(action, actions=rows), int(thinking)
        return self._sendable(name, action), int(thinking)

    def _sendable(self, name: str, action: Any) -> Any:
        """A copy of one action. Raises InvalidAction."""
        side, action = self.by_name[name], sendable(name, action)
        space = self.setting.action_spaces[side.rank]
        if side.mask is not None and side.lags and not is_choice(space, action):
            raise InvalidAction(
                f"step(): the action of {name!r}, {action!r:.100}, is no choice of {space}: when it arrives, the "
                "action_mask could not be asked about it"
            )
        return action

    def _standing(self) -> tuple[Any, ...]:
        """Where the episode stands, for `_go_back`."""
        sides = [side.standing() for side in self.sides]
        return self.scheduler.standing(), self.broker.standing(), sides, self.result.masked.copy(), self.cancelled

    def _go_back(self, standing: tuple[Any, ...]) -> None:
        """To before the step."""
        scheduler, broker, sides, self.result.masked, self.cancelled = standing
        self.scheduler.go_back(scheduler)
        self.broker.go_back(broker)
        for side, of_side in zip(self.sides, sides, strict=True):
            side.go_back(of_side)
        self.torn = False

    def _is_refusal(self, error: Exception) -> bool:
        """Has the environment refused an action that was decided in this step, and not moved?

        An error that came of an action decided earlier would come again, whatever is decided now.
        """
        if isinstance(self.world, TurnWorld) and self.world.moved:
            return False
        applied = [side for side in self.sides if side.alive and side.applied != NOOP]
        fresh = [side for side in applied if side.decides_at(self.now) and side.applied == side.timing.number(self.now)]
        illegal = [side for side in applied if not self._is_legal(side)]
        if not all(side in fresh for side in illegal):
            return False
        return bool(illegal or (fresh and isinstance(error, REFUSAL)))

    def _is_legal(self, side: AgentSide) -> bool:
        """Does the action in force lie in its space, and its mask allow it?"""
        space, action = self.setting.action_spaces[side.rank], side.due(self.now)
        return fits(action, space) and not forbids(side.mask, space, action)

    def _at_turn(self, name: str, number: int | None, ask: Ask | None, observation: Any, info: Any) -> Any:
        """The action of an agent whose turn it is; `number`: of the decision that it makes now."""
        side = self.by_name[name]
        mask = self._mask(side, observation, info)
        if number is not None and ask is not None:
            side.copies[0] = (self.now, copied(observation))
            side.keep_mask(self.now, mask, info)
            action = ask(name, number, side.form.put_together(side.copies, self.now))
            self._tick(side, number, self._checked(name, {name: action}))
            self._deliver(self.now)
        return self._apply(side, mask)

    def _tick(self, side: AgentSide, number: int, decision: tuple[Any, int]) -> None:
        """A decision leaves when it has been thought about; its actions are copies."""
        action, thinking = decision
        if decision is NOTHING_NEW:
            return
        if side.copies[0][0] == self.now:
            side.informed = self.now
        if self.trace is not None:
            self.scheduler.here = self.trace.add(self.now, "AgentTick", side.rank, number, NOBODY, side.place, 0)
        if self.record is not None:
            side.ages += side.form.ages(side.copies, self.now)
        if side.thinks or thinking:
            thinking += self.links[side.rank].thinking(number, self.now)
            side.thinks_until = min(self.now + thinking, END_OF_TIME - 1)
        if type(action) is Plan:
            action = action.sent(side.copies[0][0], self.setting.dt_ns, action.actions)
            side.note_sent(number, self.now + thinking + side.way, action)
            if self.record is not None:
                space = self.setting.action_spaces[side.rank]
                side.plans = side.plans or PlanTally(getattr(space, "low", None), getattr(space, "high", None))
                side.plans.sent()
        leaves = self._leaves(side.rank, side.timing.act, "tick", Leg.ACTION, number, thinking)
        values = (side.rank, number, self.broker.next_id(), leaves, action)
        self.broker.send(make(ActionCommand, values), COMMAND, Queue.COMMAND, side.timing.msg, "tick")

    def _leaves(self, rank: int, nominal: int, cause: str, leg: Leg, number: int, after: int = 0) -> int:
        """When a message leaves that was ready `after` ns, after its obs_delay or act_delay, ns."""
        ready = self.now + after
        return min(ready + self.links[rank].delay(nominal, cause, leg, number, ready), END_OF_TIME - 1)

    def _deliver(self, last: int, phase: int = COMMAND) -> None:
        """Everything arrives that arrives by `last`, ns; of that instant only what comes by `phase`."""
        scheduler, trace, heap, sharing = self.scheduler, self.trace, self.scheduler.heap, self.broker.sharing
        while heap and heap[0][:2] <= (last, phase):
            entry = heappop(heap)
            scheduler.now, message = entry[0], entry[4]
            if (sharing is not None and sharing.takes(message)) or not self.broker.accept(message):
                continue
            if trace is not None:
                scheduler.here = len(trace.rows)
                trace.rows.append(entry)
            use = self._receive if type(message) is ObservationCopy else self._take_effect
            if not use(message) and trace is not None:
                trace.cancelled.add(scheduler.here)

    def _receive(self, message: ObservationCopy) -> bool:
        """At the agent: the newest stays. False: it has ended, or is in a later life."""
        side, part, observed = self.sides[message.receiver], message.part, message.number * self.setting.dt_ns
        if not side.alive or observed < side.born:
            return False
        if observed > side.copies[part][0] or not (part or side.arrived):
            side.copies[part] = (observed, message.content)
            if not part:
                side.masks = {time: mask for time, mask in side.masks.items() if time >= observed}
            side.fresh, side.place, side.arrived = True, self.scheduler.here, side.arrived or not part
        return True

    def _take_effect(self, command: ActionCommand) -> bool:
        """At the environment: the newest is in force. False: its agent has ended, or something newer is."""
        side, number, now = self.sides[command.agent], command.number, self.scheduler.now
        decided = side.timing.nominal(number)
        missed = side.failsafe and side.is_missed(number, command.action, 1, now)
        overtaken = missed or number <= side.force[0]
        late, action = overtaken or decided < side.born, command.action
        if not late and type(action) is SentPlan:
            old, action = side.plan, merged(action, side.before(self.now, action.period), self.now, mixed)
            late = action is None
        if late or not side.alive:
            self.cancelled += 1
            if side.plans is not None and type(command.action) is SentPlan:
                side.plans.refused(overtaken=overtaken)
            return False
        side.force = (number, action)
        if self.record is not None:
            side.latency.append(to_seconds(now - decided))
        side.index = 0
        if type(action) is PlanInForce:
            if side.plans is not None:
                side.plans.arrived(command.action, old, action, self.now)
            side.index, action = action.place(self.now), action.at(self.now)
        if self.record:
            self._record(side, now, action)
        return True

    def _record(self, side: AgentSide, now: int, action: Any) -> None:
        """An action of a command takes effect at `now`, ns; None: the no-op."""
        if action is not None and self.record and "actions" in self.record:
            vector = vector_of(self.setting.action_spaces[side.rank], action)
            self.result.actions[side.name].append((to_seconds(now), vector))

    def _apply(self, side: AgentSide, mask: Any = None) -> Any:
        """The action that the environment gets for an agent: of the command in force, or the no-op.

        What the `mask` of now (None: of the last boundary) forbids becomes the no-op, unless it was decided on an
        observation of now.
        """
        mask, space = side.mask if mask is None else mask, self.setting.action_spaces[side.rank]
        if mask is not None:
            self.result.masked.setdefault(side.name, 0)
        if side.failsafe and side.is_missed(*side.force, 2, self.now + 1):
            side.force = (NOOP, None)
        side.applied, action = side.force
        if type(action) is PlanInForce:
            plan, place, action = action, action.place(self.now), action.at(self.now)
            if side.plans is not None:
                noop = self.setting.noops.draw(side.rank, mask, side.truth, *self.moment, self.number)
                side.plans.executed(plan, self.now, noop if action is None else action)
            if place != side.index:
                side.index = place
                self._record(side, self.now, action)
            side.applied = NOOP if action is None else side.applied
        if side.applied != NOOP:
            known = side.informed == self.now and side.applied == side.timing.number(self.now)
            if mask is not side.mask:  # by now others have acted: what was allowed may not be any more
                known = known and forbids(side.mask, space, action)
            if known or not forbids(mask, space, action):
                return copied(action)
            self.result.masked[side.name] += 1
            side.applied = NOOP
        return self.setting.noops.draw(side.rank, mask, side.truth, *self.moment, self.number)

    def show(self, observations: dict[str, Any], infos: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        """Copies of the observations leave, and arrive where nothing delays them; what each agent has then."""
        now, living, infos = self.now, self.world.agents, infos or {}
        if self.trace is not None:
            self.scheduler.here = self.trace.add(now, "Boundary", NOBODY, self.number, NOBODY, NOBODY, 0)
        sides = [self._side(name) for name in dict.fromkeys((*observations, *living))]
        own = {side.name: infos.get(side.name) or {} for side in sides}
        for side in sides:
            if side.name in observations:
                side.truth = copied(observations[side.name])
            elif not side.alive:
                raise ConfigError(f"agent {side.name!r} is in env.agents, and the environment shows it nothing")
            side.keep_mask(now, self._mask(side, side.truth, own[side.name]), own[side.name])
            if side.name in living and not side.alive:
                side.join(now)
            if not side.alive:  # it decides no more: it gets the truth
                side.copies = side.form.copies(now, side.truth)
            elif side.name in observations:
                if type(side.force[1]) is PlanInForce:
                    side.note_force(now)
                self._send(side)
        self._deliver(now, REPLY)
        for side in self.sides:
            if side.alive and side.name not in living:
                side.alive, side.ended = False, now
        described = infos | {side.name: self._info(side, own[side.name]) for side in sides}
        arrived = {side.name: side.form.put_together(side.copies, now) for side in sides}
        for side in sides:
            side.fresh = False
        return arrived, described

    def _side(self, name: str) -> AgentSide:
        if name not in self.by_name:
            raise ConfigError(f"agent {name!r} is not among the environment's possible_agents")
        return self.by_name[name]

    def _mask(self, side: AgentSide, observation: Any, own: Mapping[str, Any]) -> Any:
        """Of the info, the observation, or the world's `action_masks()`; None: there is none. Raises ConfigError."""
        mask, space = own.get(MASK), self.setting.action_spaces[side.rank]
        if mask is None and isinstance(observation, Mapping):
            mask = observation.get(MASK)
        if mask is None and side.name in self.world.agents and (masks := getattr(self.world, "action_masks", None)):
            mask = masks()
        try:
            return None if mask is None else checked_mask(mask, space)
        except (TypeError, ValueError, KeyError):
            raise ConfigError(f"the action_mask of {side.name!r}, {mask!r:.100}, does not fit {space}") from None

    def _info(self, side: AgentSide, own: Mapping[str, Any]) -> dict[str, Any]:
        """The environment's own info of an agent, and the network's; entries of the same names move to "own"."""
        ours: dict[str, Any] = {
            "aoi": to_seconds(self.now - side.copies[0][0]),
            "delivered": side.fresh,
            "is_active": side.decides_at(self.now),
            "applied": side.applied,
        }
        if type(side.force[1]) is PlanInForce:
            ours["index"] = side.index
        if not side.alive:
            ours["true_observation"] = side.form.put_together(side.form.copies(self.now, side.truth), self.now)
        if hidden := {name: own[name] for name in (*ours, "own") if name in own}:
            ours["own"] = hidden
        entry, _ = side.came_with()  # the mask of now would say what the agent can't know yet
        return {**{name: own[name] for name in own if name != MASK}, **ours, **copied(entry)}

    def _send(self, side: AgentSide) -> None:
        """An agent's observation leaves over its link, and each part over its source's."""
        copies = side.form.copies(self.now, side.truth)
        for part, rank in enumerate((side.rank, *(source for source, _ in side.form.parts))):
            timing, cause = self.sides[rank].timing, f"boundary to {side.name}" if part else "boundary"
            leaves = self._leaves(rank, timing.obs, cause, Leg.GATHERING, self.number)
            values = (rank, self.number, self.broker.next_id(), leaves, side.rank, part, copies[part][1])
            self.broker.send(
                make(ObservationCopy, values), REPLY, Queue.SHARE if part else Queue.DOWN, timing.msg, cause
            )

    def _score(self, rewards: dict[str, Any], terminated: dict[str, bool], truncated: dict[str, bool]) -> None:
        """Rewards and ends count from the truth at the boundary on, whatever the network does (T4)."""
        for name, reward in rewards.items() if self.record is not None else ():
            if np.size(reward) != 1 or reward is None:  # an array of one number, of any shape, is that number
                raise ConfigError(
                    f"the reward of {name!r} is {reward!r}: a run adds up numbers; weigh them by a wrapper"
                )
            value = float(np.asarray(reward).item())
            self.result.rewards[self._side(name).name].append((to_seconds(self.now), value))
        living = set(self.world.agents)
        for ends, flags in ((self.result.terminated, terminated), (self.result.truncated, truncated)):
            for name in (name for name, flag in flags.items() if flag):
                if name in living:
                    raise ConfigError(
                        f"agent {name!r} has ended and is still in env.agents; an environment takes it out"
                    )
                ends[self._side(name).name] = True

    def close(self) -> EpisodeResult:
        """The result so far; agents that still live are truncated."""
        result, over = self.result, not self.world.agents
        result.messages, result.media = self.broker.total(), self.broker.media(self.now)
        notes = together(note for side in self.sides for note in side.notes(self.setting.dt_ns, self.now))
        result.end_time, result.notes = to_seconds(self.now), notes + overload(result.media)
        result.truncated |= {side.name: True for side in self.sides if side.alive}
        result.staleness = {side.name: Percentiles.of(side.ages) for side in self.sides}
        result.latency = {side.name: Percentiles.of(side.latency) for side in self.sides}
        end = {side: self.now if side.alive else side.ended for side in self.sides}
        result.plans = {s.name: s.plans.counts(s.plan, end[s]) for s in self.sides if s.plans is not None}
        if self.record is not None and "rewards" not in self.record:
            result.rewards = {name: [(result.end_time, total)] for name, total in result.returns.items()}
        commands = {m.id: m for m in self.broker.under_way() if type(m) is ActionCommand}
        for command in commands.values():
            side = self.sides[command.agent]
            there = side.alive or (over and side.ended == self.now)  # who ends with the episode was in it (T22)
            result.unfinished_effects += there and side.timing.nominal(command.number) >= side.born
        result.cancelled_effects = self.cancelled + len(commands) - result.unfinished_effects
        return result
