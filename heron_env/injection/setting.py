"""What a question needs to know of the environment, taken from it once: who the agents are, and whom they can write to.

It never holds the truth, a seed, a noise factor, or what others earn.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from heron_env.declared.injected import Persona
from heron_env.errors import ConfigError
from heron_env.given import keywords, mapping, require_type
from heron_env.injection.contract import Numbers, Part, Texts
from heron_env.injection.identity import plain

if TYPE_CHECKING:
    from heron_env.envs.base import HeronEnv


class AgentFacts(Part):
    """One agent: its persona, units of what it sees, its no-op (numbers, then choices), whom it can write to."""

    persona: Persona
    units: Texts = ()
    noop: Numbers = ()
    can_message: Texts = ()


class Setting(Part):
    """An environment: its id, its options as JSON, its agents."""

    env_id: str
    options: dict[str, Any]
    agents: dict[str, AgentFacts]

    @classmethod
    def of(
        cls,
        env: HeronEnv | None,
        *,
        env_id: str | None = None,
        options: Mapping[str, Any] | None = None,
        personas: Mapping[str, Persona] | None = None,
    ) -> Setting:
        """Of an environment; `env_id` and `options` as it was made with, else what it says of itself.

        `personas`: by agent or group; others have what their class says of them.
        """
        require_type(f"env_id={env_id!r:.60}", env_id, (str, type(None)), "a text, or None")
        options = None if options is None else keywords(options, "options")
        personas = mapping({} if personas is None else personas, "personas")
        for name, persona in personas.items():
            require_type(f"personas[{name!r:.60}]={persona!r:.60}", persona, Persona, "a Persona")
        if not (env is None or hasattr(env, "hierarchy")):  # no import: HeronEnv knows these modules
            raise ConfigError(f"env={env!r:.60}: must be a HeronEnv, or None")
        if env is None:
            facts = {name: AgentFacts(persona=persona) for name, persona in personas.items()}
            return cls(env_id=env_id or "unknown", options=plain(options or {}), agents=facts)
        group_of = {agent: group for group, agents in env.groups.items() for agent in agents}
        facts = {}
        for rank, agent in enumerate(env.hierarchy.agents):
            name = agent.agent_id
            persona = personas.get(name) or personas.get(group_of[name]) or _persona(agent)
            facts[name] = AgentFacts(
                persona=persona,
                units=tuple(env.observation_units(name)),
                noop=tuple(env.simulation.specs[rank].noop.tolist()),
                can_message=tuple(env.may_write_to(name)),
            )
        told = {"dt": env.dt, "max_steps": env.termination.max_steps, "agents": list(env.possible_agents)}
        name = str(env.metadata["name"]) if env_id is None else env_id
        return cls(env_id=name, options=plain(told if options is None else options), agents=facts)

    def facts(self, agent: str) -> AgentFacts:
        """Of an agent; of one that nothing is known of, its name."""
        return self.agents.get(agent) or AgentFacts(persona=Persona(name=agent))


def _persona(agent: Any) -> Persona:
    """What its class says of an agent: its role and level, what it does, what it earns."""
    kind = type(agent)
    reward = inspect.getdoc(getattr(kind, "compute_local_reward", None)) or ""
    does = (inspect.getdoc(kind) or "").partition("\n")[0]
    return Persona(
        name=agent.agent_id,
        background=f"{kind.__name__}, level {agent.level}. {does}".strip(),
        goal=f"Reward: {reward.partition(chr(10))[0]}" if reward else "",
    )
