"""Field agents: the leaves, which act on the world."""

from typing import ClassVar

from heron_env.agents.base import Agent
from heron_env.core.feature import FeatureProvider
from heron_env.core.policy import AnyPolicy
from heron_env.core.rule import rules_in_words, told_in_help
from heron_env.core.state import FieldAgentState, State
from heron_env.errors import HierarchyError, checked_keywords


class FieldAgent(Agent):
    """A leaf of the hierarchy (level 1)."""

    level: ClassVar[int] = 1
    state_class: ClassVar[type[State]] = FieldAgentState

    @checked_keywords
    def __init__(self, agent_id: str, *parts: FeatureProvider, policy: AnyPolicy | None = None) -> None:
        super().__init__(agent_id, *parts, policy=policy)
        if self.subordinates:
            raise HierarchyError(
                f"{type(self).__name__}({agent_id!r}): a field agent has no subordinates; use a CoordinatorAgent"
            )


told_in_help(FieldAgent, rules_in_words())
