"""What agents tell each other beside what they see (V8): from whose columns into which inbox, for who-sees-what."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from heron_env.core.layout import Layout


class Telling(Protocol):
    """One agent tells another, by a horizontal protocol: ranks, and columns of the truth."""

    @property
    def sender(self) -> int:
        """Rank of the one."""

    @property
    def receiver(self) -> int:
        """Rank of the other."""

    @property
    def source(self) -> slice:
        """What the sender tells."""

    @property
    def target(self) -> slice:
        """Where in the receiver's inbox it arrives."""


def told_of(tellings: Sequence[Telling], layout: Layout) -> dict[tuple[int, int], str]:
    """(observer, column) -> `told by battery_2.Charge.soc` of an inbox, `told into Heard.soc` of what is told it."""
    full_names = layout.full_names
    senders: dict[tuple[int, int], dict[str, None]] = {}
    inboxes: dict[tuple[int, int], dict[str, None]] = {}
    for telling in tellings:
        for source, target in zip(_span(telling.source), _span(telling.target), strict=True):
            inbox = layout.names[target].partition("[")[0]
            senders.setdefault((telling.receiver, target), {})[full_names[source]] = None
            inboxes.setdefault((telling.receiver, source), {})[inbox] = None
    told = {place: f"told into {', '.join(names)}" for place, names in inboxes.items()}
    gossip = {place: f"told by {', '.join(names)}" for place, names in senders.items()}
    return told | gossip


def told_cells(tellings: Sequence[Telling]) -> list[tuple[int, int]]:
    """(receiver, source column), each once: what a picture marks."""
    cells = {(telling.receiver, column): None for telling in tellings for column in _span(telling.source)}
    return list(cells)


def exchanged(tellings: Sequence[Telling], layout: Layout) -> list[str]:
    """Which quantities are told, and which inboxes there are, in sentences; nothing where nobody tells anything."""
    names = layout.names
    told = {
        f"{names[telling.source.start].partition('[')[0]} into {names[telling.target.start].partition('[')[0]}": None
        for telling in tellings
    }
    inboxes = {
        f"{feature.feature_name}.{q.name}": None
        for row in layout.rows
        for _, feature, q in row.columns()
        if not feature.reported
    }
    sentences = [f"Told by neighbours: {', '.join(told)}."] if told else []
    return sentences + ([f"Inboxes (memory, no fact about the world): {', '.join(inboxes)}."] if inboxes else [])


def _span(columns: slice) -> range:
    return range(columns.start, columns.stop)
