"""PettingZoo's agent-by-agent (AEC) form of an environment: what an agent may not do is refused at its own turn."""

from __future__ import annotations

from typing import Any, cast

from pettingzoo.utils.conversions import parallel_to_aec_wrapper
from pettingzoo.utils.wrappers import OrderEnforcingWrapper

from heron_env.envs.base import HeronEnv


class AgentByAgent(parallel_to_aec_wrapper[str, Any, Any]):
    """As PettingZoo converts it; an action that is refused there, with all others of its round, can't be taken back."""

    def step(self, action: Any) -> None:
        """One agent's turn. Raises InvalidAction; then nothing has changed, and it is still its turn."""
        agent = self.agent_selection
        if not (self.terminations[agent] or self.truncations[agent]):
            env = cast(HeronEnv, self.env)
            env.simulation.model.specs[env.hierarchy.index[agent]].parse(action, agent)
        super().step(action)


def agent_by_agent(env: HeronEnv) -> Any:
    """`env` in that form."""
    return OrderEnforcingWrapper(AgentByAgent(env))
