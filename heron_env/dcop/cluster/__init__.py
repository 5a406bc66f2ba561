"""A cluster agent: colours its own nodes step by step, by its observations and messages, and gives reasons."""

from heron_env.dcop.cluster.agent import ClusterAgent
from heron_env.dcop.cluster.view import Choice, Heard, Option, Past, StepReport

__all__ = ["Choice", "ClusterAgent", "Heard", "Option", "Past", "StepReport"]
