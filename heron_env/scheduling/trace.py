"""What happened in an event-driven run, record by record, with causes; as text for people or for comparing runs."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from enum import Enum
from typing import Any

import numpy as np

from heron_env.scheduling.events import Answered, CloseEpisode, Simulation
from heron_env.scheduling.messages import Message
from heron_env.scheduling.sharing import Transmit
from heron_env.scheduling.timing import to_seconds

Row = tuple[Any, ...]
"""The fields of a record but its index, or an entry of the heap: such a one is spelt out when it is read."""

ENTRY = 5
"""Length of an entry of the heap, (ns, phase, rank, sequence, event)."""
NOBODY = -1
"""Agent, number, id or cause of a record that has none."""


@dataclass(frozen=True, slots=True, eq=False)
class TraceRecord:
    """One event: `agent` is a rank, `cause` the index of the record it follows from, `latency` the time under way.

    Times are ns; agent, number, id and cause are -1 where there is none. The payload is a message, an event, an array
    or None. `cancelled`: nothing came of it, as its agent had ended, or a no-op had taken the place. `masked`: a choice
    was forbidden when it took effect, and the no-op took its place.
    """

    index: int
    t_ns: int
    kind: str
    agent: int
    number: int
    id: int
    cause: int
    latency: int
    payload: Any
    cancelled: bool = False
    masked: bool = False


class Trace(Sequence[TraceRecord]):
    """Collects records in their order; the object is built when it is read.

    Attributes:
        rows: what has been written; the event clock appends the entries that it takes off its heap as they are.
        causes: for each event ever scheduled, the index of the record it follows from (EventScheduler.causes).
        cancelled: indices of the events of which nothing came, as their agents had ended.
        masked: indices of the effects in which a forbidden choice became the no-op.
    """

    __slots__ = ("cancelled", "causes", "masked", "rows")

    def __init__(self) -> None:
        self.rows: list[Row] = []
        self.causes: list[int] = []
        self.cancelled: set[int] = set()
        self.masked: set[int] = set()

    def add(
        self, t_ns: int, kind: str, agent: int, number: int, id: int, cause: int, latency: int, payload: Any = None
    ) -> int:
        """Append a record; its index, to be given as the cause of what follows."""
        rows = self.rows
        rows.append((t_ns, kind, agent, number, id, cause, latency, payload))
        return len(rows) - 1

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self.rows)))]
        index = range(len(self.rows))[index]
        return self._record(index, self.rows[index])

    def _record(self, index: int, row: Row) -> TraceRecord:
        if len(row) != ENTRY:
            t_ns, kind, agent, number, id, cause, latency, payload = row
            return TraceRecord(index, t_ns, kind, agent, number, id, cause, latency, payload, index in self.cancelled)
        ns, _, rank, sequence, event = row
        sent, rank = isinstance(event, Message), NOBODY if isinstance(event, Transmit) else rank
        number = event.step if isinstance(event, Simulation | CloseEpisode) else event.number
        begun = event.sent if sent else event.asked if isinstance(event, Answered) else ns
        cause, latency = self.causes[sequence - 1], ns - begun
        id, marks = event.id if sent else NOBODY, (index in self.cancelled, index in self.masked)
        return TraceRecord(index, ns, type(event).__name__, rank, number, id, cause, latency, event, *marks)

    def __iter__(self) -> Iterator[TraceRecord]:
        return (self._record(index, row) for index, row in enumerate(self.rows))

    def lines(self, ids: Sequence[str]) -> list[str]:
        """One line per record, equal in two processes exactly if the runs are: floats and arrays bit by bit.

        Args:
            ids: agent ids by rank.
        """
        return [
            f"{r.index} t={r.t_ns} {r.kind} agent={_name(r.agent, ids)} number={r.number} id={r.id} cause={r.cause} "
            f"latency={r.latency} {exact(r.payload)}{' cancelled' * r.cancelled}{' masked' * r.masked}"
            for r in self
        ]

    def table(self, ids: Sequence[str]) -> str:
        """The records as an aligned table, times in seconds."""
        head = ("#", "time", "latency", "what", "agent", "number", "cause", "content")
        rows = [head, *(_cells(record, ids) for record in self)]
        widths = [max(len(row[column]) for row in rows) for column in range(len(head) - 1)]
        left = (3, 4, len(head))
        return "\n".join(
            "  ".join(
                cell if c >= len(widths) else cell.ljust(widths[c]) if c in left else cell.rjust(widths[c])
                for c, cell in enumerate(row)
            ).rstrip()
            for row in rows
        )


def exact(value: Any) -> str:
    """Deterministic text of a payload; raises TypeError for an object whose text might differ between processes."""
    if hasattr(value, "to_dict"):
        return f"{type(value).__name__}{exact(value.to_dict())}"
    if is_dataclass(value) and not isinstance(value, type):
        named = {field.name: (getattr(value, field.name), field) for field in fields(value)}
        # digests of earlier runs stay what they are: a later field has no text while it has its default
        parts = [f"{name}={exact(x)}" for name, (x, field) in named.items() if not field.metadata or x != field.default]
        return f"{type(value).__name__}({', '.join(parts)})"
    match value:
        case None | bool() | str():
            return repr(value)
        case Enum():
            return f"{type(value).__name__}.{value.name}"
        case int():
            return repr(value)
        case np.ndarray():
            return f"{value.dtype.str}{list(value.shape)}:{np.ascontiguousarray(value).tobytes().hex()}"
        case np.generic():
            return exact(value.item())
        case float():
            return value.hex()
        case list() | tuple():
            return f"[{', '.join(map(exact, value))}]"
        case Mapping():
            return f"{{{', '.join(f'{exact(key)}: {exact(item)}' for key, item in value.items())}}}"
    raise TypeError(f"a trace can't hold a {type(value).__name__}: give it a to_dict() or make it a dataclass")


def _name(rank: int, ids: Sequence[str]) -> str:
    return "-" if rank == NOBODY else ids[rank]


def _cells(record: TraceRecord, ids: Sequence[str]) -> tuple[str, ...]:
    return (
        str(record.index),
        f"{to_seconds(record.t_ns):.6f}",
        f"{to_seconds(record.latency):.6f}" if record.latency else "-",
        record.kind,
        _name(record.agent, ids),
        *("-" if number == NOBODY else str(number) for number in (record.number, record.cause)),
        ("cancelled " * record.cancelled + "masked " * record.masked + _short(_content(record.payload))).rstrip(),
    )


def _content(payload: Any) -> Any:
    """What a payload says beyond the agent and number of its record."""
    if hasattr(payload, "to_dict"):
        return payload.to_dict()
    if is_dataclass(payload):
        rest = [field.name for field in fields(payload) if field.name not in ("agent", "number")]
        return {name: getattr(payload, name) for name in rest} or None
    return payload


def _short(value: Any) -> str:
    """Text for people: four digits, at most 60 characters."""
    match value:
        case None:
            text = ""
        case np.ndarray():
            text = _short(value.tolist())
        case Mapping():
            text = "{" + ", ".join(f"{key}: {_short(item)}" for key, item in value.items()) + "}"
        case list() | tuple():
            text = "[" + ", ".join(map(_short, value)) + "]"
        case float() | np.floating():
            text = f"{value:.4g}"
        case _:
            text = str(value)
    return text if len(text) <= 60 else text[:57] + "..."
