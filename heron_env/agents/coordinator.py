"""Coordinators: they command their subordinates through a protocol, or only watch."""

from typing import ClassVar

from heron_env.agents.base import Agent
from heron_env.agents.protocols.vertical import Protocol
from heron_env.core.feature import FeatureProvider
from heron_env.core.policy import Decide, Policy
from heron_env.core.state import CoordinatorAgentState, State
from heron_env.errors import HierarchyError


class CoordinatorAgent(Agent):
    """An inner node (level 2, nested ones too): `Zone("zone_1", battery_1, battery_2, protocol=...)`."""

    level: ClassVar[int] = 2
    state_class: ClassVar[type[State]] = CoordinatorAgentState

    def __init__(
        self,
        agent_id: str,
        *parts: Agent | FeatureProvider,
        protocol: Protocol | None = None,
        policy: Policy | Decide | None = None,
    ) -> None:
        if protocol is not None:
            self.protocol = protocol
        super().__init__(agent_id, *parts, policy=policy)
        for child in self.subordinates:
            if child.level == 3:
                raise HierarchyError(
                    f"{type(self).__name__}({agent_id!r}): {child!r} is a system agent; there is one, at the top"
                )
