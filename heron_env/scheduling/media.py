"""Links that share a transmitter, and links that repeat what is lost (T25 to T27); what a user writes.

    radio = Medium("radio", rate=1000.0, overhead=20)               # bytes a second; bytes of each message's headers
    schedule = {"*": ScheduleConfig(msg_delay=0.02, loss=0.01, medium=radio, **tcp())}

Links whose entries hold equal media share one: what any of them sends occupies it, and everything else waits. A link's
own delay and loss stand behind it. `sharing` says how it is done.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Final

from heron_env.errors import ScheduleError, did_you_mean
from heron_env.given import is_number
from heron_env.scheduling.sources import SECOND

ORDERS: Final = ("fifo", "priority")
KINDS: Final = ("request", "reply", "push", "command", "report", "share", "letter", "custom")
"""Of messages, in `sizes`."""
MOST_TRIES: Final = 1000
MOST_WAIT: Final = 120 * SECOND
"""No repetition waits longer, ns: Linux's TCP_RTO_MAX."""
LONGEST: Final = 2.0**62
"""A message occupies a medium for no longer, ns: half of all time that there is."""


@dataclass(frozen=True, slots=True)
class Medium:
    """Shared medium with one transmitter at a time: a message of s bytes occupies it for s / rate seconds; others wait.

    Attributes:
        name: links with equal media of one name share it.
        rate: bytes a second.
        overhead: bytes that every message has beside its content: headers, acknowledgements.
        order: who is next: "fifo", the one that has waited longest; "priority", of those with the smallest `priority`
            of their schedule the one that has waited longest. What is being sent is finished.
        limit: bytes that may wait, without the message that is being sent; what goes beyond is discarded. None: any.
        duplex: True: agents send on one way and receive on another. False: both share one.
        sizes: bytes of the content by kind of message (request, reply, push, command, report, share, letter, custom);
            others have 4 bytes a number, a letter its text in UTF-8, a custom message its payload in JSON.

    Raises ScheduleError naming the field, its value and what is allowed.
    """

    name: str = "medium"
    rate: float = math.inf
    overhead: float = 0.0
    order: str = "fifo"
    limit: float | None = None
    duplex: bool = False
    sizes: Any = ()

    def __post_init__(self) -> None:
        fault = self._fault()
        if fault:
            name, words = fault
            raise ScheduleError(f"Medium({name}={getattr(self, name)!r:.100}): {words}")
        sizes = dict(self.sizes)
        object.__setattr__(self, "sizes", tuple(sorted((kind, float(size)) for kind, size in sizes.items())))

    def _fault(self) -> tuple[str, str] | None:
        if not isinstance(self.name, str) or not self.name:
            return "name", "must be a word"
        endless = isinstance(self.rate, float) and self.rate == math.inf
        if not endless and not (is_number(self.rate) and self.rate > 0.0):
            return "rate", "must be bytes a second, above 0"
        for name in ("overhead", "limit"):
            value = getattr(self, name)
            if not (name == "limit" and value is None) and not _is_size(value):
                return name, "must be bytes, 0 or more"
        if self.order not in ORDERS:
            return "order", f"must be one of {', '.join(map(repr, ORDERS))}.{did_you_mean(self.order, ORDERS)}"
        if not isinstance(self.duplex, bool):
            return "duplex", "must be True or False"
        try:
            good = all(kind in KINDS and _is_size(size) for kind, size in dict(self.sizes).items())
        except (TypeError, ValueError):
            good = False
        return None if good else ("sizes", f"must be bytes, 0 or more, by kind of message: {', '.join(KINDS)}")

    def work(self, size: float) -> int:
        """Return how long a message of so many bytes, headers included, occupies the medium, ns."""
        return round(min(size * (SECOND / self.rate), LONGEST)) if size else 0

    def to_dict(self) -> dict[str, Any]:
        """For JSON and YAML; `as_medium` takes it back."""
        values = {f.name: getattr(self, f.name) for f in fields(self) if getattr(self, f.name) != f.default}
        return {name: dict(value) if name == "sizes" else value for name, value in values.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Reliable:
    """Transport that sends lost messages again: loss becomes delay.

    Attributes:
        rto: wait from the expected end of the round trip to the repetition, s.
        backoff: factor on that wait after each repetition of the same message; at most 120 s.
        tries: most attempts of a message, up to 1000; None: until it arrives, with an rto of 1 ms or more.
        gaps: what comes later shows that an earlier message is missing, which is then sent again at once: by
            acknowledgements (TCP's RACK, RFC 8985) or heartbeats (DDS). That holds for the first loss only.

    Raises ScheduleError.
    """

    rto: float = 0.2
    backoff: float = 2.0
    tries: int | None = None
    gaps: bool = False

    def __post_init__(self) -> None:
        fault = self._fault()
        if fault:
            name, words = fault
            raise ScheduleError(f"Reliable({name}={getattr(self, name)!r:.100}): {words}")

    def _fault(self) -> tuple[str, str] | None:
        if not is_number(self.rto) or not 0.0 <= self.rto <= 1e6:
            return "rto", "must be seconds, 0 to 1e6"
        if not is_number(self.backoff) or not 1.0 <= self.backoff <= 1e6:
            return "backoff", "must be a factor, 1 to 1e6"
        whole = isinstance(self.tries, int) and not isinstance(self.tries, bool)
        if self.tries is not None and not (whole and 1 <= self.tries <= MOST_TRIES):
            return "tries", f"must be 1 to {MOST_TRIES}, or None"
        if self.tries is None and self.rto < 1e-3:
            return "rto", "must be 0.001 or more where `tries` is None"
        return None if isinstance(self.gaps, bool) else ("gaps", "must be True or False")

    def wait(self, timeouts: int, round_trip: int) -> int:
        """Return the time from departure to repetition of a lost message, ns, after so many earlier timeouts."""
        ns = float(round(self.rto * SECOND) + round_trip)
        for _ in range(timeouts):
            if ns >= MOST_WAIT:
                break
            ns *= self.backoff
        return round(min(ns, float(MOST_WAIT)))

    def to_dict(self) -> dict[str, Any]:
        """For JSON and YAML; `as_transport` takes it back."""
        return {f.name: getattr(self, f.name) for f in fields(self) if getattr(self, f.name) != f.default}


def tcp(rto: float = 0.2) -> dict[str, Any]:
    """Return the fields of a schedule for TCP.

    Linux waits 200 ms beyond the round trip (TCP_RTO_MIN), doubles that up to 120 s and gives up after 15 repetitions
    (tcp_retries2); what comes later shows what is missing (RFC 8985). RFC 6298 would wait 1 s.

    Returns:
        A transport: Reliable.

    >>> from heron_env import ScheduleConfig, tcp
    >>> ScheduleConfig(msg_delay=0.02, loss=0.01, **tcp()).transport
    Reliable(rto=0.2, backoff=2.0, tries=16, gaps=True)
    """
    return {"transport": Reliable(rto=rto, backoff=2.0, tries=16, gaps=True)}


def mqtt(qos: int = 0) -> dict[str, Any]:
    """Return the fields of a schedule for MQTT, which runs over TCP: its QoS is about broken connections.

    With Nagle's rule and late acknowledgements, as client and broker have them by default, QoS 1 and 2 take about 34 ms
    more a leg: write `min_delay=0.034`. Raises ScheduleError for another QoS.

    Returns:
        A transport: that of `tcp`.

    >>> from heron_env import mqtt, tcp
    >>> mqtt(qos=1) == tcp()
    True
    """
    if qos not in (0, 1, 2) or isinstance(qos, bool):
        raise ScheduleError(f"mqtt(qos={qos!r:.60}): must be 0, 1 or 2")
    return tcp()


def ros2(reliability: str = "reliable", depth: int = 10) -> dict[str, Any]:
    """Return the fields of a schedule for DDS with the settings of ROS 2: "reliable" or "best_effort".

    At most `depth` of a stream wait (keep last). Fast DDS sends a heartbeat every 3 s, and with data; ROS 2's profile
    for sensor data is best effort with depth 5. Raises ScheduleError for another word.

    Returns:
        `keep`, and a transport if it is reliable.

    >>> from heron_env import ros2
    >>> ros2("best_effort", depth=5)
    {'keep': 5}
    """
    if reliability not in ("reliable", "best_effort"):
        raise ScheduleError(f"ros2(reliability={reliability!r:.60}): must be 'reliable' or 'best_effort'")
    if reliability == "best_effort":
        return {"keep": depth}
    return {"keep": depth, "transport": Reliable(rto=3.0, backoff=1.0, gaps=True)}


def as_medium(value: Any) -> Any:
    """The medium that a mapping describes, as `{"name": "radio", "rate": 1000}`; other values as they are.

    Raises ScheduleError for a text and for fields that there are not.
    """
    return _made(Medium, value, "a mapping of its fields, {name: radio, rate: 1000}")


def as_transport(value: Any) -> Any:
    """The transport that a mapping describes, or the word "tcp"; other values as they are. Raises ScheduleError."""
    if isinstance(value, str) and value == "tcp":
        return tcp()["transport"]
    return _made(Reliable, value, "tcp, or a mapping of its fields, {rto: 0.2, gaps: true}")


def _made(kind: type[Any], value: Any, written: str) -> Any:
    if isinstance(value, str):
        raise ScheduleError(f"{value!r:.60}: must be {written}")
    if not isinstance(value, Mapping):
        return value
    names = [f.name for f in fields(kind)]
    for name in value:
        if name not in names:
            raise ScheduleError(
                f"{kind.__name__}({name!r:.60}=...): no such field; fields are {', '.join(names)}."
                f"{did_you_mean(name, names)}"
            )
    return kind(**value)


def _is_size(value: Any) -> bool:
    return is_number(value) and 0.0 <= value < 2.0**53
