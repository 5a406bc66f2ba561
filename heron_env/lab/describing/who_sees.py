"""Who sees what, as the lines of a table: by group of observers, what of whom, how clearly."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from heron_env.lab.describing.description import Description
from heron_env.observability.drawing import ITSELF, Share, label

WORDS = {"parent": "its parent", "child": "its children", "sibling": "its siblings"}


class SeenLine(NamedTuple):
    """`battery (6)`, `zone, its parent (6 of 12)`, `exact`, `Zone.power, Zone.limit`."""

    observers: str
    owners: str
    how: str
    what: str


BY = {
    "tags": "the features' tags",
    "matrix": "an observability matrix",
    "everything": "full observability: the matrix is not enabled",
}
HEADING = SeenLine("who", "sees of", "how", "what")


def seen_lines(d: Description) -> Iterator[SeenLine]:
    """The table, the critic in one line; groups that see nothing are told too."""
    agents = {label(name, d.seen.critic): group.agents for name, group in d.groups.items()}
    by_group: dict[str, list[Share]] = {name: [] for name in agents}
    whole: dict[str, list[str]] = {}
    for share in d.seen.shares:
        if share.observers == d.seen.critic:
            whole.setdefault(share.owners, []).append(share.name)
        else:
            by_group[share.observers].append(share)
    for group, shares in by_group.items():
        n = len(agents[group])
        name = f"{group} ({n})" if n > 1 else group
        if not shares:
            yield SeenLine(name, "", "", "nothing")
        alike: dict[tuple[str, str], list[Share]] = {}
        for share in shares:
            alike.setdefault((_owners(share), _how(share)), []).append(share)
        for (owners, how), same in alike.items():
            known = whole[group if same[0].owners == ITSELF else same[0].owners]
            yield SeenLine(name, owners, how, _what([share.name for share in same], known))
        yield from _told_lines(d, name, set(agents[group]))
    yield SeenLine(d.seen.critic, "all", "exact", f"{d.seen.columns} columns, bookkeeping included")


def _told_lines(d: Description, name: str, receivers: set[str]) -> Iterator[SeenLine]:
    """What neighbours tell the agents of a group, by the senders' groups: `Charge.soc into Heard.soc`."""
    group_of = {agent: label(group, d.seen.critic) for group, found in d.groups.items() for agent in found.agents}
    parent = {agent.id: agent.parent for agent in d.agents}
    told: dict[str, dict[str, set[str]]] = {}
    for edge in d.exchange:
        if edge.receiver in receivers:
            senders = told.setdefault(group_of[edge.sender], {})
            is_a = {
                "parent": parent[edge.receiver] == edge.sender,
                "child": parent[edge.sender] == edge.receiver,
                "sibling": parent[edge.sender] == parent[edge.receiver],
            }
            relation = next((word for word, holds in is_a.items() if holds), "")
            senders.setdefault(f"{edge.what} into {edge.into}", set()).add(relation)
    for owners, routes in told.items():
        relations = set().union(*routes.values())
        related = f", {WORDS[relations.pop()]}" if len(relations) == 1 and relations != {""} else ""
        yield SeenLine(name, f"{owners}{related}", "told", ", ".join(routes))


def as_text(lines: Sequence[SeenLine], width: int) -> Iterator[str]:
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


def _what(names: Sequence[str], known: Sequence[str]) -> str:
    """`Tariff.*, Zone.power`: a feature of which everything is seen is named once."""
    found: dict[str, None] = {}
    for name in names:
        feature = name.partition(".")[0] + "."
        all_of_it = [other for other in known if other.startswith(feature)]
        found[f"{feature}*" if len(all_of_it) > 1 and set(all_of_it) <= set(names) else name] = None
    return ", ".join(found)
