"""An AEC environment as a world of rounds: in each, every agent has one turn, in the game's own order."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pettingzoo.utils.conversions import aec_to_parallel_wrapper

Command = Callable[[str, Any, Mapping[str, Any]], Any]
"""(agent, observation, info) at its turn -> its action."""
Five = tuple[dict[str, Any], dict[str, Any], dict[str, bool], dict[str, bool], dict[str, Any]]


class TurnWorld(aec_to_parallel_wrapper[str, Any, Any]):
    """As PettingZoo converts it, and agents may end within a round: who ends before its turn has none.

    A round ends before anybody's second turn, and before the turn of who was not there when it began.

    Attributes:
        moved: has anybody had a turn in this round?
    """

    moved = False

    def step(self, actions: Mapping[str, Any]) -> Five:
        """One round with these actions."""
        return self.step_turns(lambda agent, *_: actions[agent])

    def step_turns(self, command: Command) -> Five:
        """One round; each agent's command is asked for at its turn."""
        aec, waiting, self.moved = self.aec_env, list(self.agents), False
        rewards, ended = dict[str, Any](), dict[str, tuple[Any, ...]]()
        while waiting and aec.agents:
            agent = aec.agent_selection
            if self._is_over(agent):
                ended[agent] = self._outcome(agent)
                aec.step(None)
                self.moved = True
            elif agent not in waiting:
                break
            else:
                action = command(agent, aec.observe(agent), aec.infos[agent] or {})
                aec.step(action)
                self.moved = True
                waiting.remove(agent)
                for each in aec.agents:
                    rewards[each] = rewards.get(each, 0) + aec.rewards[each]
            waiting = [each for each in waiting if each in aec.agents and not self._is_over(each)]
        each_outcome = ended | {agent: self._outcome(agent) for agent in aec.agents}
        while aec.agents and self._is_over(aec.agent_selection):
            aec.step(None)
        self.agents = list(aec.agents)
        observations, terminated, truncated, infos = (
            {agent: outcome[part] for agent, outcome in each_outcome.items()} for part in range(4)
        )
        return observations, rewards, terminated, truncated, infos

    def _is_over(self, agent: str) -> bool:
        return bool(self.aec_env.terminations[agent] or self.aec_env.truncations[agent])

    def _outcome(self, agent: str) -> tuple[Any, ...]:
        """Its observation, ends and info."""
        aec = self.aec_env
        return aec.observe(agent), aec.terminations[agent], aec.truncations[agent], aec.infos[agent]
