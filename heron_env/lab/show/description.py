"""What an environment is, as plain values: tree, clock, groups, spaces with units, and who sees what."""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from heron_env import registry
from heron_env.errors import ConfigError
from heron_env.given import keywords
from heron_env.observability.drawing import ITSELF, Share, label, shares

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from heron_env.envs.base import HeronEnv
    from heron_env.observability.visibility import VisibilityMatrix
    from heron_env.scheduling.timing import Schedule, Timing

NS = 1e9


@dataclass(frozen=True)
class AgentDescription:
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
class MessageDescription:
    """One agent tells another a quantity, at the end of each control step."""

    sender: str
    receiver: str
    what: str
    into: str


@dataclass(frozen=True)
class SightDescription:
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
        told: of an inbox, by whom: `told by battery_2.Charge.level`; else "".
    """

    name: str
    unit: str
    low: float
    high: float
    foreknown: bool = False
    told: str = ""


@dataclass(frozen=True)
class GroupDescription:
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
    agents: list[AgentDescription]
    groups: dict[str, GroupDescription]
    exchange: list[MessageDescription]
    seen: SightDescription

    def plot(self) -> Figure:
        """The tree of agents with levels, roles, ticks, delays and protocols: a Figure of matplotlib.

        Raises ConfigError where matplotlib is missing (extra `plots`).
        """
        from heron_env.lab.show.tree import hierarchy_figure

        return hierarchy_figure(self)


def describe_environment(
    env_id: str, options: dict[str, Any], schedule: Callable[[HeronEnv], Schedule] | None = None
) -> tuple[Description, VisibilityMatrix]:
    """Build an environment and describe it.

    Args:
        env_id: a registered environment, or "module:function" of one's own.
        options: of `make()`.
        schedule: function of the environment that makes the timing to describe; None: its own.

    Returns:
        The description, and who sees what.

    Raises:
        UnknownEnvironment: for an unknown id; and what building it raises.

    >>> description, _ = describe_environment("heron/BatteryGrid-v0", {"num_batteries": 3})
    >>> description.group_map
    {'battery': ['battery_1', 'battery_2', 'battery_3']}
    """
    env = registry.make(env_id, **keywords(options, "describe_environment(options)"))
    matrix, timings = env.visibility_matrix(), env.timings if schedule is None else env.timings_of(schedule(env))
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
        agents=_agents(env, timings),
        groups={name: _group(env, matrix, list(agents)) for name, agents in env.groups.items()},
        exchange=[
            MessageDescription(e.route.sender, e.route.receiver, f"{e.route.feature}.{e.route.field}", e.route.into)
            for e in env.simulation.exchange.edges
        ]
        + [
            MessageDescription(env.hierarchy.ids[sender], env.hierarchy.ids[receiver], "letters", "asked.letters")
            for sender, receivers in env.simulation.post.receivers.items()
            for receiver in receivers
        ],
        seen=SightDescription(
            env.simulation.model.plan.rule,
            env.simulation.model.layout.size,
            matrix.critic,
            shares(matrix.plan, matrix.critic, env.groups),
        ),
    )
    return described, matrix


def generated_source(env_id: str, options: dict[str, Any]) -> str:
    """The source that the environment's rules are compiled from. Raises ConfigError if they run in plain Python."""
    from heron_env.engine.lanes import program_text
    from heron_env.engine.model import why_plain

    env = registry.make(env_id, **options)
    reason = why_plain(env.hierarchy)
    if reason is not None:
        raise ConfigError(f"describe {env_id} --generated: nothing is generated, it runs in plain Python: {reason}")
    return program_text(env.simulation.model)


def summary(env_id: str) -> str:
    """First line of what the entry point says of itself; imports its module."""
    first = (inspect.getdoc(registry.spec(env_id).factory()) or "").partition("\n")[0]
    return first.replace("`", "")


def _agents(env: HeronEnv, timings: Sequence[Timing]) -> list[AgentDescription]:
    tree, depths, possible = env.hierarchy, [0] * len(env.hierarchy), set(env.possible_agents)
    result = []
    for rank, name in enumerate(tree.ids):
        parent, timing = tree.parent[rank], timings[rank]
        depths[rank] = 0 if parent < 0 else depths[parent] + 1
        role = "decides" if name in possible else "obeys" if env.simulation.model.specs[rank].size else "watches"
        delays = {"obs_delay": timing.obs / NS, "act_delay": timing.act / NS, "msg_delay": timing.msg / NS}
        result.append(
            AgentDescription(
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
    return result


def _group(env: HeronEnv, matrix: VisibilityMatrix, agents: list[str]) -> GroupDescription:
    rank = env.hierarchy.index[agents[0]]
    spec = env.simulation.model.specs[rank]
    names, (low, high) = env.observation_names(agents[0]), env.simulation.model.plan.bounds(rank)
    units, ahead = env.observation_units(agents[0]), env.simulation.model.plan.foreknown(rank)
    own = [matrix.told(rank, column) for column in env.simulation.model.plan.views[rank].columns.tolist()]
    tellers = own + [""] * (len(names) - len(own))
    columns = [
        Column(*column) for column in zip(names, units, low.tolist(), high.tolist(), ahead, tellers, strict=True)
    ]
    return GroupDescription(agents, spec.describe(), columns)


MOST_LINES = 40
AT_MOST = (1000, 12, 8, 5, 3, 2, 1)
"""Siblings that are shown: the first number that keeps the tree short enough."""


@dataclass(frozen=True)
class TreeLine:
    """One line: an agent, or how many siblings are left out here; `parent` is the line of the parent."""

    agent: AgentDescription | None
    depth: int
    parent: int | None
    left_out: int = 0

    @property
    def name(self) -> str:
        """Id of the agent, or `and 7 more`."""
        return f"and {self.left_out} more" if self.agent is None else self.agent.id


def tree_lines(agents: Sequence[AgentDescription], limit: int = MOST_LINES) -> list[TreeLine]:
    """The tree from its root, depth first, in at most so many lines if that is possible at all."""
    children: dict[str | None, list[AgentDescription]] = {}
    for agent in agents:
        children.setdefault(agent.parent, []).append(agent)
    for most in AT_MOST:
        lines = _lines(children, most, limit)
        if len(lines) <= limit:
            return lines
    return lines


def _lines(children: dict[str | None, list[AgentDescription]], most: int, limit: int) -> list[TreeLine]:
    """At most one line more than the limit, unless nothing shorter is possible."""
    result: list[TreeLine] = []
    stack: list[tuple[AgentDescription | int, int, int | None]] = [(children[None][0], 0, None)]
    while stack and (len(result) <= limit or most == AT_MOST[-1]):
        what, depth, parent = stack.pop()
        if isinstance(what, int):
            result.append(TreeLine(None, depth, parent, what))
            continue
        here = len(result)
        result.append(TreeLine(what, depth, parent))
        below = children.get(what.id, [])
        visible = below if len(below) <= most + 1 else below[:most]
        rest: list[tuple[AgentDescription | int, int, int | None]] = [(child, depth + 1, here) for child in visible]
        if len(below) > len(visible):
            rest.append((len(below) - len(visible), depth + 1, here))
        stack.extend(reversed(rest))
    return result


def ticks(agent: AgentDescription) -> str:
    """`every 60 s`, and from when."""
    return f"every {agent.tick_interval:g} s" + (f" from {agent.phase:g} s" if agent.phase else "")


def delays(agent: AgentDescription) -> str:
    """`observation 1 s, action 2 s`, "" without delays."""
    words = {"obs_delay": "observation", "act_delay": "action", "msg_delay": "message"}
    return ", ".join(f"{words[name]} {value:g} s" for name, value in agent.delays.items() if value)


def protocols(agent: AgentDescription) -> str:
    """How it reads itself if not by messages, commands its subordinates, and what they tell each other."""
    reads = ["reads itself locally"] if agent.own_rows == "local" and agent.role != "watches" else []
    commands = [f"commands by {agent.commands}"] if agent.commands else []
    return "; ".join([*reads, *commands, *(f"below it {protocol}" for protocol in agent.exchange)])


MOST_SENDERS = 4


def sender_words(agent: AgentDescription, messages: Sequence[MessageDescription]) -> str:
    """`hears battery_4, battery_2`, whoever tells it anything; "" if nobody does."""
    senders = list(dict.fromkeys(edge.sender for edge in messages if edge.receiver == agent.id))
    more = f" and {len(senders) - MOST_SENDERS} more" if len(senders) > MOST_SENDERS else ""
    return f"hears {', '.join(senders[:MOST_SENDERS])}{more}" if senders else ""


def message_pairs(messages: Sequence[MessageDescription]) -> dict[tuple[str, str], bool]:
    """Who talks to whom, each pair once; True if both tell each other."""
    pairs: dict[tuple[str, str], bool] = {}
    for edge in messages:
        if (edge.receiver, edge.sender) in pairs:
            pairs[edge.receiver, edge.sender] = True
        else:
            pairs.setdefault((edge.sender, edge.receiver), False)
    return pairs


def clock_words(d: Description) -> str:
    """`control step 60 s, 6 physics substeps of 10 s; state: 116 numbers`."""
    steps = "1 physics substep" if d.physics_substeps == 1 else f"{d.physics_substeps} physics substeps"
    each = "" if d.physics_substeps == 1 else f" of {d.dt / d.physics_substeps:g} s"
    reports = "" if d.report_interval == d.dt else f"; reports every {d.report_interval:g} s"
    return f"control step {d.dt:g} s, {steps}{each}{reports}; state: {d.state_size} numbers"


WORDS = {"parent": "its parent", "child": "its children", "sibling": "its siblings"}


class SightLine(NamedTuple):
    """`house (6)`, `street, its parent (6 of 12)`, `exact`, `Load.power, Load.limit`."""

    observers: str
    owners: str
    how: str
    what: str


BY = {
    "tags": "the features' tags",
    "matrix": "an observability matrix",
    "everything": "full observability: the matrix is not enabled",
}
HEADING = SightLine("who", "sees of", "how", "what")


def sight_lines(d: Description) -> Iterator[SightLine]:
    """The table, the critic in one line; groups that see nothing are told too."""
    agents = {label(name, d.seen.critic): group.agents for name, group in d.groups.items()}
    by_group: dict[str, list[Share]] = {name: [] for name in agents}
    names_of: dict[str, list[str]] = {}
    for share in d.seen.shares:
        if share.observers == d.seen.critic:
            names_of.setdefault(share.owners, []).append(share.name)
        else:
            by_group[share.observers].append(share)
    for group, of_group in by_group.items():
        n = len(agents[group])
        name = f"{group} ({n})" if n > 1 else group
        if not of_group:
            yield SightLine(name, "", "", "nothing")
        alike: dict[tuple[str, str], list[Share]] = {}
        for share in of_group:
            alike.setdefault((_owners(share), _how(share)), []).append(share)
        for (owners, how), same in alike.items():
            all_names = names_of[group if same[0].owners == ITSELF else same[0].owners]
            yield SightLine(name, owners, how, _what([share.name for share in same], all_names))
        yield from _message_lines(d, name, set(agents[group]))
    yield SightLine(d.seen.critic, "all", "exact", f"{d.seen.columns} columns, bookkeeping included")


def _message_lines(d: Description, name: str, receivers: set[str]) -> Iterator[SightLine]:
    """What neighbours tell the agents of a group, by the senders' groups: `Charge.level into Heard.level`."""
    group_of = {
        agent: label(group, d.seen.critic) for group, described in d.groups.items() for agent in described.agents
    }
    parent = {agent.id: agent.parent for agent in d.agents}
    routes_of: dict[str, dict[str, set[str]]] = {}
    for edge in d.exchange:
        if edge.receiver in receivers:
            senders = routes_of.setdefault(group_of[edge.sender], {})
            is_a = {
                "parent": parent[edge.receiver] == edge.sender,
                "child": parent[edge.sender] == edge.receiver,
                "sibling": parent[edge.sender] == parent[edge.receiver],
            }
            relation = next((word for word, holds in is_a.items() if holds), "")
            senders.setdefault(f"{edge.what} into {edge.into}", set()).add(relation)
    for owners, routes in routes_of.items():
        relations = set().union(*routes.values())
        related = f", {WORDS[relations.pop()]}" if len(relations) == 1 and relations != {""} else ""
        yield SightLine(name, f"{owners}{related}", "told", ", ".join(routes))


def as_text(lines: Sequence[SightLine], width: int) -> Iterator[str]:
    """The lines in columns; the last column is wrapped between names, observers are named once."""
    widths = [max(len(line[i]) for line in lines) for i in range(3)]
    margin = " " * (sum(widths) + 2 * len(widths) + 2)
    before = ""
    for line in lines:
        who = "" if line.observers == before else line.observers
        start = "  ".join(text.ljust(n) for text, n in zip((who, *line[1:3]), widths, strict=True))
        room = max(30, width - len(margin))
        wrapped = textwrap.wrap(line.what, room, break_long_words=False, break_on_hyphens=False) or [""]
        yield f"  {start}  " + f"\n{margin}".join(wrapped)
        before = line.observers


def _owners(share: Share) -> str:
    related = f", {WORDS[share.relation]}" if share.relation else ""
    part = f" ({share.seen} of {share.of})" if share.seen < share.of else ""
    return f"{share.owners}{related}{part}"


def _how(share: Share) -> str:
    if share.low == share.high:
        return f"noise {share.high:g}" if share.high else "exact"
    return f"{f'noise {share.low:g}' if share.low else 'exact'} to noise {share.high:g}"


def _what(names: Sequence[str], all_names: Sequence[str]) -> str:
    """`Price.*, Load.power`: a feature of which everything is seen is named once."""
    result: dict[str, None] = {}
    for name in names:
        feature = name.partition(".")[0] + "."
        all_of_it = [other for other in all_names if other.startswith(feature)]
        result[f"{feature}*" if len(all_of_it) > 1 and set(all_of_it) <= set(names) else name] = None
    return ", ".join(result)
