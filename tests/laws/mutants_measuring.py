"""Faults of telemetry and local reading, planted as in `mutants`."""

from typing import Any

from laws.mutants import mutant_in

from heron_env.envs.event import physics
from heron_env.envs.event.agents import AgentLoop
from heron_env.envs.event.measuring import Measuring
from heron_env.testing.clock import ObservationReply

MEASURING_MUTANTS: dict[str, Any] = {}
mutant = mutant_in(MEASURING_MUTANTS)


@mutant(physics.PhysicsCycle, "telemeter")
def telemetry_overtakes_the_boundary(original: Any) -> Any:
    """What was measured within a step counts as newer than the report of its boundary."""

    def telemeter(self: Any, step: int, substeps: int, version: int, *rest: Any) -> None:
        within = substeps < self.context.simulation.model.substeps
        original(self, step, substeps, version + 10_000 * within, *rest)

    return telemeter


@mutant(AgentLoop, "answer_request")
def own_rows_read_at_the_gather(original: Any) -> Any:
    """What an agent sees of itself travels with the reply."""

    def gather(self: Any, request: Any, now: int) -> None:
        original(self, request, now)
        c = self.context
        for reply in c.scheduler:
            mine = isinstance(reply, ObservationReply) and (reply.agent, reply.number) == request[:2]
            if mine and c.timings[reply.agent].local:
                Measuring.read_own(c.measuring, reply.agent, reply.vector, reply.as_of)
        c.measuring.read_own = lambda *told: None

    return gather


@mutant(Measuring, "read_own")
def own_rows_of_a_neighbour(original: Any) -> Any:
    """A local agent sees its neighbours, too, as they are."""

    def show(self: Any, rank: int, vector: Any, as_of: Any) -> None:
        layout, view = self.simulation.model.layout, self.simulation.model.plan.views[rank]
        agents = layout.owner_of[view.columns] < len(layout.rows) - 1
        vector[agents] = self.simulation.truth[view.columns[agents]]
        original(self, rank, vector, as_of)

    return show


@mutant(Measuring, "read_own")
def a_running_sum_is_read(original: Any) -> Any:
    """A local agent reads what has been summed up so far."""

    def show(self: Any, *told: Any) -> None:
        kept, self.ended = self.ended, self.simulation.truth
        original(self, *told)
        self.ended = kept

    return show


@mutant(Measuring, "measure_all")
def a_running_sum_is_reported(original: Any) -> Any:
    """Telemetry tells what has been summed up so far."""
    return lambda self: self.simulation.truth.copy()
