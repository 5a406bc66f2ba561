"""The system agent: the root of the hierarchy."""

from typing import ClassVar

from heron_env.agents.coordinator import CoordinatorAgent
from heron_env.core.rule import rules_in_words, told_in_help
from heron_env.core.state import State, SystemAgentState


class SystemAgent(CoordinatorAgent):
    """The root (level 3): `SystemAgent("system_agent", *zones)`."""

    level: ClassVar[int] = 3
    state_class: ClassVar[type[State]] = SystemAgentState


told_in_help(SystemAgent, rules_in_words())
