"""What hub and node say to each other over the bus, which stands for the wires of a controller, and on the network.

Each is typed; what does not decode, or has fields that are not known, is refused. On the network travels the id of a
message, 8 bytes, and its dictionary (`Message.to_dict`) in msgpack; floats are exact.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

import numpy as np
from msgspec import Meta, Struct, msgpack
from numpy.typing import NDArray

from heron_env.envs.base import HeronEnv
from heron_env.envs.event.context import ends
from heron_env.envs.hooks import PROXY
from heron_env.observability.plan import ObserverView

GREETING: Final = b"heron"
"""A node's first word on a new connection."""
PING_S: Final = 1.0
SILENCE_S: Final = 5.0
"""A node that says nothing on its bus for so long is gone."""
Text = Annotated[str, Meta(max_length=20_000)]
Name = Annotated[str, Meta(max_length=200)]


class Spoken(Struct, frozen=True, forbid_unknown_fields=True, tag=True):
    """Common to all."""


class Connect(Spoken, frozen=True):
    """To a node: how its messages travel. Options are those of the transport."""

    transport: Name
    address: Name
    options: dict[str, Any]


class Begin(Spoken, frozen=True):
    """To a node: an episode begins."""

    seed: int
    episode: int


class Depart(Spoken, frozen=True):
    """To a node: this message leaves over the network."""

    payload: bytes


class Doing(Spoken, frozen=True):
    """What an agent's actuator does, as `core.plans.Running`."""

    number: int
    index: int
    remaining: list[list[float]]
    age: int
    prefix: int
    left: int
    delay: int | None


class Ask(Spoken, frozen=True):
    """To a node: decide on the observation that came as message `id`.

    Attributes:
        number, turn, time: as of `core.policy.Asked`.
        own: what the agent reads of itself now, of those that do (T19); None: what the proxy knew.
        ages: of the observation's sources, s, where they are observed.
        letters: digests of those that it may read now, in their order.
        again: in their place, sender, receiver, kind and body of each, where its process has been started again.
        running: what its actuator does.
    """

    id: int
    agent: Name
    number: int
    turn: int
    time: float
    own: list[float] | None
    ages: list[float] | None
    letters: list[bytes]
    again: list[tuple[str, str, str, str]] = []
    running: Doing | None = None


class End(Spoken, frozen=True):
    """To a node: the run is over."""


class Ready(Spoken, frozen=True):
    """Of a node: its policies have begun the episode."""


class Ping(Spoken, frozen=True):
    """Of a node: it is there."""


class Arrived(Spoken, frozen=True):
    """Of a node: message `id` has come to it."""

    id: int


class Written(Spoken, frozen=True):
    """A letter of an answer."""

    receiver: Name
    kind: Name
    body: Text


class SaidPlan(Spoken, frozen=True):
    """The plan of an answer, as `core.plans.Plan`; without actions: nothing new."""

    actions: Annotated[list[list[float]], Meta(max_length=10_000)] = []
    period: float | None = None
    start: float = 0.0
    merge: Name = "drop"
    end: Name = "hold"
    weight: float | None = None


class NodeAnswer(Spoken, frozen=True):
    """Of a node: what it decided on message `id`.

    Attributes:
        observation: CRC-32 of the vector that it decided on.
        action: as its action space reads it; empty where there is a `plan`.
        source, code, attempts, circuit: of the answer's Origin; source "": it has none.
    """

    id: int
    observation: int
    action: Annotated[list[float], Meta(max_length=10_000)]
    letters: Annotated[list[Written], Meta(max_length=1_000)]
    thinking: float
    tokens: int
    source: Literal["", "external", "fallback", "replay"] = ""
    code: Text = ""
    attempts: int = 0
    circuit: Name = ""
    plan: SaidPlan | None = None


class Failed(Spoken, frozen=True):
    """Of a node: it can't go on."""

    why: Text


ToNode = Connect | Begin | Depart | Ask | End
ToHub = Ready | Ping | Arrived | NodeAnswer | Failed
encode: Final = msgpack.Encoder().encode
to_node: Final = msgpack.Decoder(ToNode)
to_hub: Final = msgpack.Decoder(ToHub)


def payload_of(id: int, message: Any) -> bytes:
    """What travels of a message."""
    return id.to_bytes(8, "big") + encode(message.to_dict())


def link_name(message: Any, env: HeronEnv) -> str:
    """From where to where, as "battery_1 to proxy"."""
    return " to ".join("proxy" if rank == PROXY else env.hierarchy.ids[rank] for rank in ends(message, env.simulation))


def read_vector(view: ObserverView, described: dict[str, Any]) -> NDArray[Any]:
    """The vector of an observation's dictionary, as it left the proxy (the inverse of `view.describe`).

    Raises ValueError, KeyError, TypeError for another dictionary.
    """
    values, hidden = np.full(len(view.columns), np.nan), {rank for rank, _ in view.asked}
    for rank, feature, place, _ in view.segments:
        owner = view.layout.rows[rank].owner_id
        if rank in hidden and owner not in described["global_info"]:
            continue
        part = described["local"] if rank == view.rank else described["global_info"][owner]
        values[place] = np.asarray(part[feature], dtype=np.float64)
    return (values if view.order is None else values[view.order]).astype(view.carried)
