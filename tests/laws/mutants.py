"""Mutants: faults as they are usually written, planted in the package's own code for as long as the context lasts."""

import dataclasses
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

from heron_env import EventScheduler, ProxyAgent
from heron_env.engine import python_rules
from heron_env.engine.lanes import Lanes
from heron_env.envs.event import physics
from heron_env.envs.event.agents import AgentLoop
from heron_env.envs.event.clock import EventRun
from heron_env.envs.simulation import Simulation
from heron_env.observability import by_matrix, noise, plan, tags
from heron_env.testing.clock import Link, Message, Phase

MUTANTS: dict[str, Any] = {}


def mutant_in(register: dict[str, Any]) -> Callable[[Any, str], Callable[[Any], Any]]:
    """Where to register `fault(original) -> replacement` of an attribute `owner.name`, as a context manager."""

    def mutant(owner: Any, name: str) -> Callable[[Any], Any]:
        def planting(fault: Any) -> Any:
            @contextmanager
            def planted() -> Iterator[None]:
                with patch.object(owner, name, fault(getattr(owner, name))):
                    yield

            register[fault.__name__] = planted
            return planted

        return planting

    return mutant


mutant = mutant_in(MUTANTS)
HELD: list[Any] = []
"""Laws that have held in this process: each is tried once without a fault."""


def require_held(law: Any) -> None:
    """The law holds where no fault is planted."""
    parts = (law.func, law.args, law.keywords) if isinstance(law, partial) else law
    if parts not in HELD:
        law()
        HELD.append(parts)


def require_caught(planted: Callable[[], Any], law: Any) -> None:
    """The law holds, and with the fault planted it fails, by an assertion of its own."""
    require_held(law)
    with planted(), pytest.raises(AssertionError) as caught:
        law()
    assert "/laws/" in str(caught.traceback[-1].path), f"not the law failed but {caught.traceback[-1]}"


@mutant(EventScheduler, "schedule")
def order_by_event_type(original: Any) -> Any:
    """All messages share one phase, so the legs of the physics cycle queue behind the requests."""
    return lambda self, ns, phase, rank, event: original(
        self, ns, Phase.REQUEST if isinstance(event, Message) else phase, rank, event
    )


@mutant(physics.PhysicsCycle, "simulate")
def dt_elapsed(original: Any) -> Any:
    """Physics gets the time that passed since it last ran."""
    last: dict[int, int] = {}

    def simulate(self: Any, event: Any, now: int) -> None:
        simulation = self.context.simulation
        simulation.piece = 0.0, (now - last.get(id(self), 0)) / 1e9
        last[id(self)] = now
        original(self, event, now)
        simulation.piece = None

    return simulate


@mutant(ProxyAgent, "receive")
def no_versions_on_reports(original: Any) -> Any:
    """The last report to come is believed."""

    def receive(self: Any, row: int, version: int, as_of: int, values: Any) -> Any:
        self.version[row] = -1
        return original(self, row, version, as_of, values)

    return receive


@mutant(AgentLoop, "receive_report")
def whole_state_write_back(original: Any) -> Any:
    """The proxy's state is the world's: a report overwrites both."""

    def receive_report(self: Any, report: Any, now: int) -> None:
        original(self, report, now)
        self.context.simulation.truth[self.context.simulation.model.layout.rows[report.row].reported.columns] = (
            report.values
        )

    return receive_report


@mutant(AgentLoop, "answer_request")
def observe_the_truth(original: Any) -> Any:
    """Observations are taken from the world, not from what is known of it."""

    def gather(self: Any, request: Any, now: int) -> None:
        proxy = self.context.proxy
        proxy.cache, kept = self.context.simulation.truth, proxy.cache
        original(self, request, now)
        proxy.cache = kept

    return gather


@mutant(Link, "draw")
def shared_streams(original: Any) -> Any:
    """Each link draws from one stream, one number after another."""
    counts: dict[Any, int] = {}

    def draw(self: Any, what: int, nominal: int, cause: str, leg: int, number: int, *sent: int) -> int:
        counts[self] = counts.get(self, 0) + 1
        own = slice(self._place, self._place + 1)
        return int(self._draws.drawn((what, nominal, "any", 0), own, counts[self], 1)[0, 0])

    return draw


@mutant(tags, "_columns_by_tag")
def leak_a_feature(original: Any) -> Any:
    """What siblings may see is shown to all."""

    def columns(layout: Any, agents: int) -> Any:
        found = original(layout, agents)
        for by_tag in found[:-1]:
            by_tag["public"] = np.union1d(by_tag["public"], by_tag["siblings"])
        return found

    return columns


@mutant(physics.PhysicsCycle, "score")
def score_what_was_delivered(original: Any) -> Any:
    """A reward counts when its message has come."""
    learn = physics.PhysicsCycle.learn_score

    def learn_score(self: Any, reply: Any, now: int) -> None:
        agent = self.context.simulation.model.hierarchy.ids[reply.agent]
        self.context.result.rewards[agent].append((self.context.simulation.time, reply.body.reward))
        learn(self, reply, now)

    def score(self: Any, members: Any, outcome: Any) -> None:
        rewards = {agent: list(values) for agent, values in self.context.result.rewards.items()}
        original(self, members, outcome)
        self.context.result.rewards.update(rewards)
        self.learn_score = learn_score.__get__(self)

    return score


@mutant(Lanes, "substep")
def ledger_not_reset(original: Any) -> Any:
    """What a step has cost is added to what earlier steps cost."""
    return lambda self, number, lanes=None: self._run(self._order.go_on, lanes, number)


@mutant(Simulation, "reset")
def state_not_reset(original: Any) -> Any:
    """An episode begins where the last one stopped."""

    def reset(self: Any, seed: int, episode: int) -> None:
        if self.step_index:
            self.initial = self.truth.copy()
        original(self, seed, episode)

    return reset


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
        self.lane.living[:] = 1

    return restore


@mutant(AgentLoop, "take_effect")
def acting_moves_time(original: Any) -> Any:
    """Physics is advanced by whoever acts."""

    def act(self: Any, event: Any, now: int) -> None:
        original(self, event, now)
        self.context.simulation.substep(0)

    return act


@mutant(plan, "columns_by_tags")
def ask_all_pairs(original: Any) -> Any:
    """The plan asks of each pair of agents whether one sees the other."""

    def compile_(hierarchy: Any, layout: Any) -> Any:
        for observer in range(len(hierarchy)):
            for owner in range(len(hierarchy)):
                abs(observer - owner)
        return original(hierarchy, layout)

    return compile_


@mutant(noise, "column_keys")
def noise_without_the_target(original: Any) -> Any:
    """One error per observer and field, whoever is looked at: ratios leak."""
    return lambda layout, observers, columns: noise.mixed(
        noise.mixed(layout.owner_hash[observers]) ^ layout.field_hash[columns]
    )


@mutant(noise.ColumnNoise, "_add_noise")
def whole_numbers_rounded_down(original: Any) -> Any:
    """Noisy ints are cut off instead of rounded: one half too low on average."""

    def add_noise(self: Any, values: Any, moment: Any, span: slice) -> None:
        kept, self._any_integer = self._any_integer, False
        original(self, values, moment, span)
        self._any_integer = kept
        whole = self.at[span][self.integer[span]]
        values[whole] = np.floor(values[whole])

    return add_noise


@mutant(by_matrix, "_with_noise")
def noise_on_oneself(original: Any) -> Any:
    """The default's noise falls on the observer's own columns too."""

    def seen(own: Any, parts: Any, sources: Any, common_noise: float) -> Any:
        found = original(own, parts, sources, common_noise)
        found.factors[: len(own)] = sources[0].noise
        return found

    return seen


@mutant(by_matrix, "_columns_by_level")
def externals_see_the_inside(original: Any) -> Any:
    """The lists of external and internal variables are not consulted."""
    return lambda row, external: original(
        row, {f"{feature.feature_name}.{declared.name}" for _, feature, declared in row.columns()}
    )


@mutant(AgentLoop, "answer_request")
def noise_of_the_time_of_gathering(original: Any) -> Any:
    """The turn is the step in which the proxy answers, not the one in which the agent asked."""

    def gather(self: Any, request: Any, now: int) -> None:
        original(self, dataclasses.replace(request, turn=now // self.context.dt_ns), now)

    return gather


@mutant(python_rules, "_require_visible_info")
def infos_tell_what_they_like(original: Any) -> Any:
    """Nobody looks at what the rules for infos read."""
    return lambda binder, rank, view: None


@contextmanager
def _with_any_infos(planted: Any) -> Iterator[None]:
    """A fault of observations, in worlds whose infos would be refused before its law is asked."""
    with planted(), infos_tell_what_they_like():
        yield


MUTANTS["noise_on_oneself"] = partial(_with_any_infos, noise_on_oneself)


@mutant(noise.ColumnNoise, "of")
def ids_hashed_for_every_observer(original: Any) -> Any:
    """Every observer's keys are made from scratch, from all ids."""

    def of(layout: Any, observers: Any, read: Any) -> Any:
        for name in ("owner_hash", "field_hash"):
            layout.__dict__.pop(name, None)
        return original(layout, observers, read)

    return staticmethod(of)


@mutant(ProxyAgent, "get_global_states")
def the_proxy_tells_exactly(original: Any) -> Any:
    """Vectors are noisy, but whoever asks the proxy for objects gets the numbers themselves."""

    def get_global_states(self: Any, agent_id: str) -> Any:
        view = self._views[agent_id]
        return view.others(self.cache[view.columns])

    return get_global_states
