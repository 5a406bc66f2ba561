"""From the block `agent_injection:` to policies: for any environment, and for a world that is declared with it."""

from __future__ import annotations

from collections.abc import Callable
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from heron_env.declared.configuration import AgentInjectionConfig, load_agents
from heron_env.errors import DeclarationError
from heron_env.given import path_of
from heron_env.injection.endpoint import Connection, Endpoint
from heron_env.injection.policy import ExternalPolicy
from heron_env.injection.recording import Recording

if TYPE_CHECKING:
    from heron_env.envs.base import HeronEnv

Injected = ExternalPolicy | Recording


def policies(
    config: AgentInjectionConfig | str | PathLike[str],
    env: HeronEnv,
    *,
    label: str = "",
    lines: Callable[[Endpoint], Connection] = Connection,
    **options: Any,
) -> dict[str, Injected]:
    """Make the policies of the agents that the block names; agents of one endpoint share it, and its limits.

    Args:
        config: the block, or a YAML file with it.
        label: policy, case, condition; never a seed.
        lines: makes the way to an endpoint, for those who have rules of their own about it.
        options: `env_id` and `options` as the environment was made with.

    Raises ConfigError: the file, and a name that is neither an agent nor a group.
    """
    block = config if isinstance(config, AgentInjectionConfig) else load_agents(path_of(config, "policies(config)"))
    problems = [*block.unknown(playable(env))]
    if problems:
        raise DeclarationError(problems)
    made: dict[Endpoint, Injected] = {}
    ways: dict[str, Connection] = {}
    chosen: dict[str, Injected] = {}
    for entry in sorted(block.endpoints, key=lambda entry: entry.agent_id not in env.groups):
        endpoint = Endpoint.of(block, entry)
        if endpoint not in made:
            line = ways.setdefault(endpoint.url, lines(endpoint))
            policy = ExternalPolicy(
                endpoint, env=env, fallback=block.fallback.strategy, label=label, personas=block.personas, line=line,
                **options,
            )  # fmt: skip
            made[endpoint] = Recording(policy, _numbered(block, len(made))) if block.benchmark.record else policy
        for agent in env.groups.get(entry.agent_id, (entry.agent_id,)):
            chosen[agent] = made[endpoint]
    return chosen


def playable(env: HeronEnv) -> list[str]:
    """Agents that have an action to decide, and their groups."""
    specs = env.simulation.model.specs
    acting = [agent for agent, spec in zip(env.hierarchy.ids, specs, strict=True) if spec.size]
    return [*acting, *(group for group, agents in env.groups.items() if agents[0] in acting)]


def _numbered(block: AgentInjectionConfig, number: int) -> Path:
    """Each endpoint has a fixture of its own: the second `run-2.jsonl`, and so on."""
    path = Path(block.benchmark.fixture_path)
    return path if not number else path.with_name(f"{path.stem}-{number + 1}{path.suffix}")


def attach(config: AgentInjectionConfig, env: HeronEnv) -> None:
    """Make external policies the injected agents' own, in place of what their class or the configuration gave them."""
    for name, policy in policies(config, env).items():
        agent = env.hierarchy.agents[env.hierarchy.index[name]]
        agent.policy, agent.injected = policy, True
