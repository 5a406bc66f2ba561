"""A cluster agent: colours its own nodes by what it sees and is told, step by step, and says why."""

from heron_env.dcop.cluster.agent import ClusterAgent
from heron_env.dcop.cluster.view import Choice, Heard, Option, Past, StepReport

__all__ = ["Choice", "ClusterAgent", "Heard", "Option", "Past", "StepReport"]
