"""What an environment is, as plain values: tree, clock, groups, spaces with units, and who sees what."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from heron_env import registry
from heron_env.errors import ConfigError
from heron_env.given import keywords
from heron_env.observability.group_views import Share, shares

if TYPE_CHECKING:
    from heron_env.envs.base import HeronEnv
    from heron_env.observability.visibility import VisibilityMatrix
    from heron_env.scheduling.timing import Schedule, Timing

NS = 1e9


@dataclass(frozen=True)
class Agent:
    """One agent of the tree; times in s."""

    id: str
    parent: str | None
    depth: int
    level: int
    role: str
    """decides, obeys (its coordinator commands it) or watches."""
    tick_interval: float
    phase: float
    delays: dict[str, float]
    commands: str
    """The vertical protocol by which it commands its subordinates, "" for none."""
    exchange: list[str]
    """The horizontal protocols of its subordinates."""
    own_rows: str = "proxy"
    """What it sees of itself in the event-driven clock: what the "proxy" knew, or what is true there ("local")."""


@dataclass(frozen=True)
class Told:
    """One agent tells another a quantity, at the end of each control step."""

    sender: str
    receiver: str
    what: str
    into: str


@dataclass(frozen=True)
class Seen:
    """Who sees what: by the features' tags or a matrix, told by groups; the critic, which sees all, comes last.

    Attributes:
        by: "tags", "matrix", or "everything" where a matrix is not enabled.
        columns: how many there are, as `state()` has them.
        shares: what a group sees of another; what is not listed is hidden.
    """

    by: str
    columns: int
    critic: str
    shares: list[Share]


@dataclass(frozen=True)
class Column:
    """One element of an observation.

    Attributes:
        foreknown: it may tell of what is still to come, all else of the past.
        told: of an inbox, by whom: `told by battery_2.Charge.soc`; else "".
    """

    name: str
    unit: str
    low: float
    high: float
    foreknown: bool = False
    told: str = ""


@dataclass(frozen=True)
class Group:
    """Agents with equal spaces; what the first of them sees stands for all."""

    agents: list[str]
    action: str
    observation: list[Column]


@dataclass(frozen=True)
class Description:
    """An environment, built with `options`; `report_interval` in s."""

    id: str
    summary: str
    options: dict[str, Any]
    dt: float
    physics_substeps: int
    report_interval: float
    state_size: int
    possible_agents: list[str]
    group_map: dict[str, list[str]]
    agents: list[Agent]
    groups: dict[str, Group]
    exchange: list[Told]
    seen: Seen


def describe_environment(
    env_id: str, options: dict[str, Any], schedule: Callable[[HeronEnv], Schedule] | None = None
) -> tuple[Description, VisibilityMatrix]:
    """Build the environment and read it off, with its own timing or with that which `schedule` makes for it.

    Raises UnknownEnvironment, and what building it raises.
    """
    env = registry.make(env_id, **keywords(options, "describe_environment(options)"))
    matrix = env.visibility_matrix()
    described = Description(
        id=env_id,
        summary=summary(env_id),
        options=options,
        dt=env.dt,
        physics_substeps=env.physics_substeps,
        report_interval=env.dt / env.reports,
        state_size=int(env.state_space.shape[0]),
        possible_agents=list(env.possible_agents),
        group_map={group: list(agents) for group, agents in env.group_map.items()},
        agents=_agents(env, env.timings if schedule is None else env.timings_of(schedule(env))),
        groups={name: _group(env, matrix, list(agents)) for name, agents in env.groups.items()},
        exchange=[
            Told(e.route.sender, e.route.receiver, f"{e.route.feature}.{e.route.field}", e.route.into)
            for e in env.simulation.exchange.edges
        ]
        + [
            Told(env.hierarchy.ids[sender], env.hierarchy.ids[receiver], "letters", "asked.letters")
            for sender, receivers in env.simulation.post.receivers.items()
            for receiver in receivers
        ],
        seen=Seen(
            env.simulation.plan.rule,
            env.simulation.layout.size,
            matrix.critic,
            shares(matrix.plan, matrix.critic, env.groups),
        ),
    )
    return described, matrix


def generated_source(env_id: str, options: dict[str, Any]) -> str:
    """The source that the environment's rules are compiled from. Raises ConfigError if they run in plain Python."""
    from heron_env.engine.blueprint import why_plain
    from heron_env.engine.lanes import program_text
    from heron_env.envs.lane import blueprint_of

    env = registry.make(env_id, **options)
    reason = why_plain(env.hierarchy)
    if reason is not None:
        raise ConfigError(f"describe {env_id} --generated: nothing is generated, it runs in plain Python: {reason}")
    return program_text(blueprint_of(env.simulation))


def summary(env_id: str) -> str:
    """First line of what the entry point says of itself; imports its module."""
    first = (inspect.getdoc(registry.spec(env_id).factory()) or "").partition("\n")[0]
    return first.replace("`", "")


def _agents(env: HeronEnv, timings: Sequence[Timing]) -> list[Agent]:
    tree, depths, possible = env.hierarchy, [0] * len(env.hierarchy), set(env.possible_agents)
    found = []
    for rank, name in enumerate(tree.ids):
        parent, timing = tree.parent[rank], timings[rank]
        depths[rank] = 0 if parent < 0 else depths[parent] + 1
        role = "decides" if name in possible else "obeys" if env.simulation.specs[rank].size else "watches"
        delays = {"obs_delay": timing.obs / NS, "act_delay": timing.act / NS, "msg_delay": timing.msg / NS}
        found.append(
            Agent(
                name,
                None if parent < 0 else tree.ids[parent],
                depths[rank],
                tree.level[rank],
                role,
                timing.tick / NS,
                timing.phase / NS,
                delays,
                "" if tree.agents[rank].protocol is None else type(tree.agents[rank].protocol).__name__,
                [repr(protocol) for protocol in getattr(tree.agents[rank], "exchange", ())],
                "local" if timing.local else "proxy",
            )
        )
    return found


def _group(env: HeronEnv, matrix: VisibilityMatrix, agents: list[str]) -> Group:
    rank = env.hierarchy.index[agents[0]]
    spec = env.simulation.specs[rank]
    names, (low, high) = env.observation_names(agents[0]), env.simulation.plan.bounds(rank)
    units, ahead = env.observation_units(agents[0]), env.simulation.plan.foreknown(rank)
    own = [matrix.told(rank, column) for column in env.simulation.plan.views[rank].columns.tolist()]
    told = own + [""] * (len(names) - len(own))
    columns = [Column(*column) for column in zip(names, units, low.tolist(), high.tolist(), ahead, told, strict=True)]
    return Group(agents, spec.describe(), columns)
