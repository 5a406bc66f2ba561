"""The tree of agents as lines of text, and its clock; of many siblings only the first ones, the rest is counted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from heron_env.lab.describing.description import Agent, Description, Told

MOST_LINES = 40
AT_MOST = (1000, 12, 8, 5, 3, 2, 1)
"""Siblings that are shown: the first number that keeps the tree short enough."""


@dataclass(frozen=True)
class Line:
    """One line: an agent, or how many siblings are left out here; `parent` is the line of the parent."""

    agent: Agent | None
    depth: int
    parent: int | None
    left_out: int = 0

    @property
    def name(self) -> str:
        """Id of the agent, or `and 7 more`."""
        return f"and {self.left_out} more" if self.agent is None else self.agent.id


def tree_lines(agents: Sequence[Agent], limit: int = MOST_LINES) -> list[Line]:
    """The tree from its root, depth first, in at most so many lines if that is possible at all."""
    children: dict[str | None, list[Agent]] = {}
    for agent in agents:
        children.setdefault(agent.parent, []).append(agent)
    for most in AT_MOST:
        lines = _lines(children, most, limit)
        if len(lines) <= limit:
            return lines
    return lines


def _lines(children: dict[str | None, list[Agent]], most: int, limit: int) -> list[Line]:
    """At most one line more than the limit, unless nothing shorter is possible."""
    found: list[Line] = []
    stack: list[tuple[Agent | int, int, int | None]] = [(children[None][0], 0, None)]
    while stack and (len(found) <= limit or most == AT_MOST[-1]):
        what, depth, parent = stack.pop()
        if isinstance(what, int):
            found.append(Line(None, depth, parent, what))
            continue
        here = len(found)
        found.append(Line(what, depth, parent))
        below = children.get(what.id, [])
        shown = below if len(below) <= most + 1 else below[:most]
        rest: list[tuple[Agent | int, int, int | None]] = [(child, depth + 1, here) for child in shown]
        if len(below) > len(shown):
            rest.append((len(below) - len(shown), depth + 1, here))
        stack.extend(reversed(rest))
    return found


def ticks(agent: Agent) -> str:
    """`every 60 s`, and from when."""
    return f"every {agent.tick_interval:g} s" + (f" from {agent.phase:g} s" if agent.phase else "")


def delays(agent: Agent) -> str:
    """`observation 1 s, action 2 s`, "" without delays."""
    words = {"obs_delay": "observation", "act_delay": "action", "msg_delay": "message"}
    return ", ".join(f"{words[name]} {value:g} s" for name, value in agent.delays.items() if value)


def protocols(agent: Agent) -> str:
    """How it reads itself if not by messages, commands its subordinates, and what they tell each other."""
    reads = ["reads itself locally"] if agent.own_rows == "local" and agent.role != "watches" else []
    commands = [f"commands by {agent.commands}"] if agent.commands else []
    return "; ".join([*reads, *commands, *(f"below it {protocol}" for protocol in agent.exchange)])


MOST_HEARD = 4


def hears(agent: Agent, told: Sequence[Told]) -> str:
    """`hears battery_4, battery_2`, whoever tells it anything; "" if nobody does."""
    senders = list(dict.fromkeys(edge.sender for edge in told if edge.receiver == agent.id))
    more = f" and {len(senders) - MOST_HEARD} more" if len(senders) > MOST_HEARD else ""
    return f"hears {', '.join(senders[:MOST_HEARD])}{more}" if senders else ""


def told_pairs(told: Sequence[Told]) -> dict[tuple[str, str], bool]:
    """Who talks to whom, each pair once; True if both tell each other."""
    pairs: dict[tuple[str, str], bool] = {}
    for edge in told:
        if (edge.receiver, edge.sender) in pairs:
            pairs[edge.receiver, edge.sender] = True
        else:
            pairs.setdefault((edge.sender, edge.receiver), False)
    return pairs


def told_clock(d: Description) -> str:
    """`control step 60 s, 6 physics substeps of 10 s; state: 116 numbers`."""
    steps = "1 physics substep" if d.physics_substeps == 1 else f"{d.physics_substeps} physics substeps"
    each = "" if d.physics_substeps == 1 else f" of {d.dt / d.physics_substeps:g} s"
    reports = "" if d.report_interval == d.dt else f"; reports every {d.report_interval:g} s"
    return f"control step {d.dt:g} s, {steps}{each}{reports}; state: {d.state_size} numbers"
