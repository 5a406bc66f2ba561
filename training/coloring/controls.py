"""What of the patient process helps where messages are slow: waiting for answers, or knowing who goes first?"""

from __future__ import annotations

from heron_env import ScheduleConfig, make, paired_difference
from heron_env.dcop.cluster import ClusterAgent
from heron_env.worlds.graph_coloring.policies import STABLE, ClusterSight, Patient, Process
from training.coloring.bars import Bar, Found, Setting

DELAY, SEEDS = 5.0, 60


class PriorityOnly(Patient):
    """The later name moves at once for a conflict with an earlier one; nobody waits."""

    def prepare(self, agent: ClusterAgent, sight: ClusterSight) -> None:
        """As the patient process without delays."""
        part, mine = self.part, agent.assignments
        within = any(mine[u] == mine[v] for u, v in part.inner)
        yields = any(part.owners[v] < part.cluster and sight.told.get(v) == mine[u] for u, v in part.outer)
        agent.sideways, agent.p = True, 1.0 if within or yields else STABLE["p"]


class WaitOnly(Patient):
    """All wait for answers, whatever they are called."""

    def prepare(self, agent: ClusterAgent, sight: ClusterSight) -> None:
        """As the patient process where it is nobody's turn to yield."""
        super().prepare(agent, sight)
        within = any(agent.assignments[u] == agent.assignments[v] for u, v in self.part.inner)
        agent.p = 1.0 if within else STABLE["p"] if agent.sideways else 0.0


def controls(setting: Setting) -> Found:
    """Consensus with either part of the remedy left out, the same seeds."""
    env = make("heron/GraphColoring-v0")
    kinds = {"stable": Process, "patient": Patient, "priority alone": PriorityOnly, "waiting alone": WaitOnly}
    found: dict[str, list[float]] = {}
    for name, kind in kinds.items():
        policies = {cluster: kind(env.problem.part(cluster), env.shape, 0, **STABLE) for cluster in env.possible_agents}
        schedule = ScheduleConfig(msg_delay=DELAY)
        seeds = range(5 if setting.quick else SEEDS)
        found[name] = [env.run_event_driven(policies, seed=seed, schedule=schedule).kpis["consensus"] for seed in seeds]
    gains = {name: paired_difference(values, found["stable"]) for name, values in found.items() if name != "stable"}
    told = ", ".join(f"{name} {gain.mean:+.2f} [{gain.low:+.2f}, {gain.high:+.2f}]" for name, gain in gains.items())
    return Found(f"{told} of {len(found['stable'])} seeds", True, found)


BARS = (
    Bar("controls", f"the remedy and its parts - stable process, messages of {DELAY:g} s, paired", "told", controls),
)
