"""Mutants: faults as they are usually written, planted in the package's own code for as long as the context lasts."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import numpy as np

from heron_env.agents.proxy import ProxyAgent
from heron_env.envs.event_agents import AgentLoop
from heron_env.envs.event_clock import EventRun
from heron_env.envs.event_physics import PhysicsCycle
from heron_env.envs.simulation import Simulation
from heron_env.observability import plan
from heron_env.scheduling.broker import MessageBroker
from heron_env.scheduling.events import ActionEffect
from heron_env.scheduling.links import Link
from heron_env.scheduling.messages import Message
from heron_env.scheduling.scheduler import EventScheduler, Phase
from heron_env.seeding import key, uniform

MUTANTS: dict[str, Any] = {}


def mutant(owner: Any, name: str) -> Callable[[Any], Any]:
    """Register `fault(original) -> replacement` of the attribute `owner.name`, as a context manager."""

    def register(fault: Any) -> Any:
        @contextmanager
        def planted() -> Iterator[None]:
            with patch.object(owner, name, fault(getattr(owner, name))):
                yield

        MUTANTS[fault.__name__] = planted
        return planted

    return register


@mutant(EventScheduler, "schedule")
def order_by_event_type(original: Any) -> Any:
    """All messages share one phase, so the legs of the physics cycle queue behind the requests."""
    return lambda self, ns, phase, rank, event: original(
        self, ns, Phase.REQUEST if isinstance(event, Message) else phase, rank, event
    )


@mutant(EventScheduler, "schedule")
def ticks_before_physics(original: Any) -> Any:
    """Agents decide first, then the world moves."""
    return lambda self, ns, phase, rank, event: original(
        self, ns, phase - 10 if phase >= Phase.AGENT_TICK else phase, rank, event
    )


@mutant(PhysicsCycle, "simulate")
def dt_elapsed(original: Any) -> Any:
    """Physics gets the time that passed since it last ran."""
    last: dict[int, int] = {}

    def simulate(self: Any, event: Any, now: int) -> None:
        simulation, nominal = self.context.simulation, self.context.simulation.dt
        simulation.dt = (now - last.get(id(self), 0)) / 1e9 * simulation.substeps
        last[id(self)] = now
        original(self, event, now)
        simulation.dt = nominal

    return simulate


@mutant(ProxyAgent, "receive")
def no_versions_on_reports(original: Any) -> Any:
    """The last report to come is believed."""

    def receive(self: Any, row: int, version: int, as_of: int, values: Any) -> Any:
        self.version[row] = -1
        return original(self, row, version, as_of, values)

    return receive


@mutant(AgentLoop, "act")
def one_action_slot(original: Any) -> Any:
    """All pending effects of an agent share the action decided last."""

    def act(self: Any, event: Any, now: int) -> None:
        waiting = [e for e in self.context.scheduler if isinstance(e, ActionEffect) and e.agent == event.agent]
        original(self, waiting[-1] if waiting else event, now)

    return act


@mutant(AgentLoop, "receive_report")
def whole_state_write_back(original: Any) -> Any:
    """The proxy's state is the world's: a report overwrites both."""

    def receive_report(self: Any, report: Any, now: int) -> None:
        original(self, report, now)
        self.context.simulation.truth[self.context.simulation.layout.rows[report.row].reported.columns] = report.values

    return receive_report


@mutant(PhysicsCycle, "simulate")
def physics_on_the_cache(original: Any) -> Any:
    """Physics starts from what the proxy knows."""

    def simulate(self: Any, event: Any, now: int) -> None:
        self.context.simulation.truth[:] = self.context.proxy.cache
        original(self, event, now)

    return simulate


@mutant(AgentLoop, "_decide")
def effects_overtake(original: Any) -> Any:
    """A quick effect passes a slow one."""

    def decide(self: Any, rank: int, *rest: Any) -> None:
        self.last_effect[rank] = 0
        original(self, rank, *rest)

    return decide


@mutant(AgentLoop, "gather")
def observe_the_truth(original: Any) -> Any:
    """Observations are taken from the world, not from what is known of it."""

    def gather(self: Any, request: Any, now: int) -> None:
        proxy = self.context.proxy
        proxy.cache, kept = self.context.simulation.truth, proxy.cache
        original(self, request, now)
        proxy.cache = kept

    return gather


@mutant(Link, "_u")
def shared_streams(original: Any) -> Any:
    """Each link draws from one generator, one number after another."""
    counts: dict[Any, int] = {}

    def draw(self: Any, purpose: str, cause: str, leg: int, number: int) -> float:
        counts[self] = counts.get(self, 0) + 1
        return uniform(key(*self._identity, counts[self]))

    return draw


@mutant(plan, "_columns_by_tag")
def leak_a_feature(original: Any) -> Any:
    """What siblings may see is shown to all."""

    def columns(layout: Any, agents: int) -> Any:
        found = original(layout, agents)
        for tags in found[:-1]:
            tags["public"] = np.union1d(tags["public"], tags["siblings"])
        return found

    return columns


@mutant(plan, "_columns_by_tag")
def show_the_ledger(original: Any) -> Any:
    """Bookkeeping is in its owner's observation."""

    def columns(layout: Any, agents: int) -> Any:
        found = original(layout, agents)
        for row, tags in zip(layout.rows[:-1], found, strict=False):
            tags["owner"] = np.arange(row.offset, row.offset + row.width)
        return found

    return columns


@mutant(PhysicsCycle, "_score")
def score_what_was_delivered(original: Any) -> Any:
    """A reward counts when its message has come."""
    learn = PhysicsCycle.learn_score

    def learn_score(self: Any, reply: Any, now: int) -> None:
        agent = self.context.env.hierarchy.ids[reply.agent]
        self.context.result.rewards[agent].append((self.context.simulation.time, reply.body.reward))
        learn(self, reply, now)

    def score(self: Any, members: Any, outcome: Any) -> None:
        rewards = {agent: list(values) for agent, values in self.context.result.rewards.items()}
        original(self, members, outcome)
        self.context.result.rewards.update(rewards)
        self.learn_score = learn_score.__get__(self)

    return score


@mutant(Simulation, "substep")
def ledger_not_reset(original: Any) -> Any:
    """What a step has cost is added to what earlier steps cost."""

    def substep(self: Any, number: int) -> None:
        self.layout.per_step = self.layout.per_step[:0]
        original(self, number)

    return substep


def _for_the_dead_too(original: Any) -> Any:
    def handle(self: Any, event: Any, now: int) -> None:
        simulation = self.context.simulation
        kept, simulation.alive = simulation.alive, [True] * len(simulation.alive)
        original(self, event, now)
        simulation.alive = kept

    return handle


@mutant(AgentLoop, "decide")
def ended_agents_keep_deciding(original: Any) -> Any:
    """A reply under way to an agent that has ended is still answered."""
    return _for_the_dead_too(original)


@mutant(AgentLoop, "act")
def effects_of_the_ended_fall(original: Any) -> Any:
    """An effect under way when its agent ends falls all the same."""
    return _for_the_dead_too(original)


@mutant(Simulation, "_rewards")
def ended_children_are_paid(original: Any) -> Any:
    """A coordinator goes on collecting the rewards of children that have ended."""

    def rewards(self: Any, time: float) -> Any:
        kept, self.alive = self.alive, [True] * len(self.alive)
        found = original(self, time)
        self.alive = kept
        return found

    return rewards


@mutant(Simulation, "reset")
def state_not_reset(original: Any) -> Any:
    """An episode begins where the last one stopped."""

    def reset(self: Any, seed: int, episode: int) -> None:
        if self.step_index:
            self._initial = self.truth.copy()
        original(self, seed, episode)

    return reset


@mutant(ProxyAgent, "keep")
def old_knowledge_survives(original: Any) -> Any:
    """The proxy compares this episode's reports with the last one's versions."""

    def keep(self: Any, array: Any, states: Any = None) -> None:
        version = self.version.copy()
        original(self, array, states)
        self.version[:] = version

    return keep


@mutant(MessageBroker, "accept")
def second_copies_count(original: Any) -> Any:
    """A duplicate is handled like a message of its own."""
    return lambda self, message: original(self, message) or True


@mutant(EventRun, "__setstate__")
def a_stored_run_knows_the_truth(original: Any) -> Any:
    """What was known when a run was stored is replaced by what was true."""

    def restore(self: Any, state: Any) -> None:
        original(self, state)
        self.env.proxy.cache[:] = self.env.simulation.truth

    return restore


@mutant(Simulation, "restore")
def the_ended_come_back(original: Any) -> Any:
    """A snapshot forgets who has ended."""

    def restore(self: Any, state: Any) -> None:
        original(self, state)
        self.alive = [True] * len(self.alive)

    return restore


@mutant(AgentLoop, "act")
def acting_moves_time(original: Any) -> Any:
    """Physics is advanced by whoever acts."""

    def act(self: Any, event: Any, now: int) -> None:
        original(self, event, now)
        self.context.simulation.substep(0)

    return act


@mutant(plan, "_compile")
def ask_all_pairs(original: Any) -> Any:
    """The plan asks of each pair of agents whether one sees the other."""

    def compile_(hierarchy: Any, layout: Any) -> Any:
        for observer in range(len(hierarchy)):
            for owner in range(len(hierarchy)):
                abs(observer - owner)
        return original(hierarchy, layout)

    return compile_
