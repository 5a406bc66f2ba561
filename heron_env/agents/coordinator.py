"""Coordinators: they command their subordinates through a protocol, or only watch."""

from collections.abc import Sequence
from typing import ClassVar

from heron_env.agents.base import Agent
from heron_env.agents.protocols.topology import Topology, as_protocols
from heron_env.agents.protocols.vertical import Protocol
from heron_env.core.feature import FeatureProvider
from heron_env.core.policy import AnyPolicy
from heron_env.core.rule import rules_in_words, told_in_help
from heron_env.core.state import CoordinatorAgentState, State
from heron_env.errors import HierarchyError, checked_keywords


class CoordinatorAgent(Agent):
    """An inner node (level 2, nested ones too): `Zone("zone_1", battery_1, battery_2, protocol=...)`.

    `exchange`: what the agents below tell each other, one horizontal protocol or several, Mail among them; None:
    the class's.
    """

    level: ClassVar[int] = 2
    state_class: ClassVar[type[State]] = CoordinatorAgentState
    exchange: Topology | Sequence[Topology] = ()

    @checked_keywords
    def __init__(
        self,
        agent_id: str,
        *parts: Agent | FeatureProvider,
        protocol: Protocol | None = None,
        exchange: Topology | Sequence[Topology] | None = None,
        policy: AnyPolicy | None = None,
    ) -> None:
        if protocol is not None:
            self.protocol = protocol
        where = f"{type(self).__name__}({agent_id!r})"
        self.exchange = as_protocols(type(self).exchange if exchange is None else exchange, where)
        super().__init__(agent_id, *parts, policy=policy)
        for child in self.subordinates:
            if child.level == 3:
                raise HierarchyError(
                    f"{type(self).__name__}({agent_id!r}): {child!r} is a system agent; there is one, at the top; "
                    "use a CoordinatorAgent"
                )


told_in_help(CoordinatorAgent, rules_in_words())
