"""Plans of agents in an environment of ours: read, split among those commanded, and played step by step (P10, P11)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from heron_env.core.action import ActionSpec
from heron_env.core.plans import NONE, NOTHING_NEW, Plan, PlanInForce, Running, SentPlan, course, held, merged
from heron_env.envs.decisions import Source
from heron_env.envs.plan_counts import PlanCounts, PlanTally
from heron_env.envs.simulation import Simulation
from heron_env.scheduling.timing import END_OF_TIME

if TYPE_CHECKING:
    from heron_env.envs.synchronous import SynchronousEnv

Values = NDArray[np.float64] | SentPlan
"""What an agent has decided: an action vector `[size]`, or a plan of them."""


def read(simulation: Simulation, rank: int, action: Any, observed: int) -> Values:
    """What a policy decided on an observation of `observed`, ns; None: nothing new. Raises InvalidAction."""
    spec, agent = simulation.model.specs[rank], simulation.model.hierarchy.ids[rank]
    if action is None or type(action) is SentPlan:
        return NOTHING_NEW if action is None else action
    if type(action) is not Plan:
        return spec.parse(action, agent)
    return action.sent(observed, simulation.model.dt_ns, [spec.parse(row, agent) for row in action.actions])


def shares(simulation: Simulation, rank: int, values: Values) -> Mapping[int, Values]:
    """What a commander's decision means for each child, by rank: of a plan row by row (P10)."""
    if not isinstance(values, SentPlan):
        return simulation.shares(rank, values.copy())
    rows = [simulation.shares(rank, row.copy()) for row in values.rows]
    return {child: values._replace(rows=tuple(row[child] for row in rows)) for child in rows[0]}


def mixing(spec: ActionSpec) -> Callable[[Any, Any, float], Any]:
    """Numbers by weight, choices never: the newer one from a weight of 0.5 on (P8)."""

    def mix(old: NDArray[np.float64], new: NDArray[np.float64], weight: float) -> NDArray[np.float64]:
        values = (1.0 - weight) * old + weight * new
        values[spec.dim_c :] = (new if weight >= 0.5 else old)[spec.dim_c :]
        return values

    return mix


def tally_of(spec: ActionSpec) -> PlanTally:
    """For the plans of one agent."""
    return PlanTally() if spec.dim_d else PlanTally(spec.low, spec.high)


def arrive(
    simulation: Simulation, rank: int, plan: SentPlan, old: PlanInForce | None, now: int, tally: PlanTally | None
) -> PlanInForce | None:  # fmt: skip
    """What is in force after a plan has come in the step that began at `now`, ns; None: it is refused (P4, P5).

    `old`: the plan in force; without one, a single action holds until this one begins.
    """
    before = old or held(np.array(simulation.lane.actions()[rank]), now, plan.period)
    force = merged(plan, before, now, mixing(simulation.model.specs[rank]))
    if tally is not None and force is None:
        tally.refused(overtaken=False)
    elif tally is not None and force is not None:
        tally.arrived(plan, old, force, now)
    return force


def running(
    spec: ActionSpec, force: tuple[int, PlanInForce | None], coming: list[tuple[int, SentPlan]], observed: int,
    now: int, way: int, dt_ns: int,
) -> Running:  # fmt: skip
    """What an agent knows of its actuator at `now`, ns, by an observation of `observed` (P7).

    `coming`: plans under way, and when they should take effect; `way`: until an answer of now does, on average, ns.
    """
    number, plan = force
    step = plan.period if plan else coming[0][1].period if coming else dt_ns
    grid = min(dt_ns, step)
    prefix, age = max(((now + way) // grid * grid - observed) // step, 0), (now - observed) // step
    rows, said = course(plan, coming, observed, step, prefix, mixing(spec))
    index, delay = (plan.index(observed), plan.delay) if plan else (0, None)
    actions = tuple(spec.noop.copy() if row is None else row.copy() for row in rows)
    return Running(number if plan else NONE, index, actions, age, prefix, max(said - age, 0), delay)


class PlayedPlans:
    """The plans of a synchronous run: nothing takes time, so each is in force at once (P11).

    `deciders`: who has a policy, and takes no commands; `answering`: whose policy may answer that nothing is new.

    Attributes:
        force: by rank, decision and plan in force; `due`: when its next action is, ns.
        tallies: by rank, what became of the plans of who has sent any; idle: who has just answered that nothing is new.
    """

    def __init__(self, env: SynchronousEnv, deciders: Collection[int], answering: Collection[int]) -> None:
        self._env, self._deciders, self._answering = env, deciders, answering
        self.force, self.due = dict[int, tuple[int, PlanInForce]](), dict[int, int]()
        self.tallies, self.idle, self._ended = dict[int, PlanTally](), set[int](), dict[int, int]()

    def running(self, rank: int, observed: int) -> Running:
        """As of Asked."""
        model, force = self._env.simulation.model, self.force.get(rank, (NONE, None))
        return running(model.specs[rank], force, [], observed, observed, 0, model.dt_ns)

    def _take(self, rank: int, action: Any, now: int) -> bool:
        """Is a decision of now, ns, a plan, or nothing new? A single action replaces the plan."""
        if type(action) is not Plan and action is not None:
            self._drop(rank)
            return False
        simulation = self._env.simulation
        values = read(simulation, rank, action, now)
        if type(values) is SentPlan and values.rows:
            self.tallies.setdefault(rank, tally_of(simulation.model.specs[rank])).sent()
            self._arrive(rank, self._env.timings[simulation.model.clocks[rank]].number(now), values, now)
        else:
            self.idle.add(rank)
        return True

    def _drop(self, rank: int) -> None:
        self.force.pop(rank, None)
        hierarchy = self._env.simulation.model.hierarchy
        for child in hierarchy.children[rank] if hierarchy.agents[rank].protocol is not None else ():
            if child not in self._deciders:
                self._drop(child)

    def _arrive(self, rank: int, number: int, plan: SentPlan, now: int) -> None:
        simulation = self._env.simulation
        if not simulation.alive[rank] or rank in simulation.down:
            return
        old = self.force.get(rank, (NONE, None))[1]
        taken = arrive(simulation, rank, plan, old, now, self.tallies.get(rank))
        if taken is not None:
            self.force[rank], self.due[rank] = (number, taken), now
        for child, part in shares(simulation, rank, plan).items():
            if child not in self._deciders and isinstance(part, SentPlan):
                self._arrive(child, number, part, now)

    def bring(self, active: Iterable[int], actions: dict[str, Any]) -> dict[int, int]:
        """Put what plans say into the `actions` of a step, by agent; the codes of those, by rank."""
        simulation = self._env.simulation
        ids, now = simulation.model.hierarchy.ids, simulation.step_index * simulation.model.dt_ns
        for rank in active:
            action = actions[ids[rank]]
            if action is None and rank not in self._answering and rank not in self.tallies:
                continue  # a forgotten return
            if (self.force or action is None or type(action) is Plan) and self._take(rank, action, now):
                del actions[ids[rank]]
        if not self.force and not self.idle:
            return {}
        said = self._play(now)
        actions |= {ids[rank]: action for rank, (action, _) in said.items()}
        return {rank: int(source) for rank, (_, source) in said.items()}

    def _play(self, now: int) -> dict[int, tuple[Any, Source]]:
        """By rank, what plans say in the step that begins `now`, ns, and whether it takes effect or goes on."""
        env, simulation = self._env, self._env.simulation
        said, applied = dict[int, tuple[Any, Source]](), simulation.lane.actions()
        for rank in sorted(self.force):
            if simulation.down.get(rank) == "noop" and env.is_active(simulation.model.clocks[rank]):
                self._drop(rank)
        for rank, (_, plan) in self.force.items():
            if not simulation.alive[rank]:
                self._ended.setdefault(rank, now)
                continue
            if rank in simulation.down:
                continue
            said[rank] = applied[rank], Source.HELD
            if self.due[rank] <= now:
                action, later = plan.at(now), plan.changes_after(now)
                said[rank] = (simulation.model.specs[rank].noop if action is None else action), Source.PLAN
                self.due[rank] = END_OF_TIME if later is None else later
            if rank in self.tallies:
                self.tallies[rank].executed(plan, now, said[rank][0])
        said |= {rank: (applied[rank], Source.HELD) for rank in self.idle - said.keys()}
        self.idle.clear()
        return said

    def counts(self, now: int) -> dict[str, PlanCounts]:
        """By agent, what became of plans by `now`, ns, or until it ended."""
        ids, nothing = self._env.simulation.model.hierarchy.ids, (NONE, None)
        ends = {rank: self._ended.get(rank, now) for rank in sorted(self.tallies)}
        return {ids[r]: self.tallies[r].counts(self.force.get(r, nothing)[1], end) for r, end in ends.items()}
