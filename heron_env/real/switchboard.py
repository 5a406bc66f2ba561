"""The hub's side of all connections: one thread, in which frames are stamped as they come, opened, and passed on.

The clock's thread asks it to send (`depart`, `tell`), and takes what has come from `inbox`. Who proves nothing gets
nothing; what does not count is refused with a short reason, and counted.
"""

from __future__ import annotations

import asyncio
import ipaddress
import os
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any, Final, NamedTuple

from msgspec import MsgspecError

from heron_env.errors import ConfigError
from heron_env.real import bus
from heron_env.real.frames import OVERHEAD, Opener, Rejected, Sealer, node_of
from heron_env.real.handshake import Claim, HubOpening, RunKeys
from heron_env.real.transports import TcpHub, host_and_port, hub_transport, is_loopback

HUB: Final = None
"""Where a message goes to or comes from that is no node."""
MOST_NODES: Final = 1_000
LOOK_S: Final = 0.2
"""Between two looks at what nodes that are waited for do."""
OWN_OPTIONS: Final = ("user", "password_file", "ca", "plain")
"""Of a transport: each process has its own."""


class Came(NamedTuple):
    """What has come from a node, at `ns` of the monotonic clock; word None: it has joined (""), or is gone (why)."""

    ns: int
    node: str
    word: bus.Arrived | bus.NodeAnswer | bus.Failed | bus.Ready | None
    gone: str = ""


class Journey(NamedTuple):
    """From which node a message comes, to which it goes, and what travels of it."""

    sender: str | None
    receiver: str | None
    payload: bytes


class NodeSession:
    """A node that has proved itself: its connection on the bus, its address on the network."""

    def __init__(self, claim: Claim, index: int, address: str, keys: RunKeys) -> None:
        self.name, self.agents, self.index, self.policy = claim.node, frozenset(claim.agents), index, claim.policy
        self.bus, self.network = address, ""
        self.from_bus, self.to_bus = Opener(keys.bus_up, index), Sealer(keys.bus_down, index)
        self.from_network, self.to_network = Opener(keys.net_up, index), Sealer(keys.net_down, index)
        self.last_word = time.monotonic()


class Switchboard:
    """Listens for the nodes of the `agents`, and carries their messages.

    Args:
        agents: those that nodes may claim.
        environment: its digest, which a node's must be.
        secret: what all have; None: none, on this machine.
        transport, options: of the network side; as of `hub_transport`.
        listen, network: addresses of the bus and of the network side, HOST:PORT; of "mqtt" the broker's URL.
        reach: the network address that nodes are told, where a relay stands between; None: the hub's own.
        allow: from where nodes may come, as "10.0.0.0/8"; () : from anywhere that reaches `listen`.

    Raises ConfigError: at addresses that may not be listened at without a secret, or can't be.
    """

    def __init__(
        self, agents: Iterable[str], *, environment: str, secret: bytes | None, transport: str = "udp",
        options: Mapping[str, Any] = {}, listen: str = "127.0.0.1:0", network: str = "127.0.0.1:0",
        reach: Callable[[str], str] | None = None, allow: Sequence[str] = (),
    ) -> None:  # fmt: skip
        self.run = os.urandom(16)
        self.agents, self.environment, self._secret = frozenset(agents), environment, secret
        self.claims: dict[str, NodeSession] = {}
        self._joined: set[str] = set()
        self._parts: dict[str, frozenset[str]] = {}
        self._allowed = require_guarded(listen if transport == "mqtt" else (listen, network), secret, allow)
        self.transport, self._options, self._reach = transport, dict(options), reach
        if transport == "mqtt":
            self._options.setdefault("run", self.run.hex())
        self._bus, self._network = TcpHub(listen), hub_transport(transport, network, **self._options)
        self._bus.ended = self._ended
        self.inbox: SimpleQueue[Came] = SimpleQueue()
        self.refused: Counter[str] = Counter()
        self.routes: dict[int, Journey] = {}
        self._openings: dict[str, HubOpening] = {}
        self._sessions: dict[str, NodeSession] = {}
        self._by_bus: dict[str, NodeSession] = {}
        self._by_index: dict[int, NodeSession] = {}
        self._loop = asyncio.new_event_loop()
        self._thread = Thread(target=self._loop.run_forever, daemon=True)
        self.address = self.network_address = ""

    def __enter__(self) -> Switchboard:
        self._thread.start()
        try:
            self.address, self.network_address = self._wait(self._open())
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Say goodbye, and close all connections."""
        if not self._thread.is_alive():
            return
        try:
            self._wait(self._close())
        finally:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()

    # What the clock's thread asks for

    def tell(self, node: str, word: bus.ToNode) -> None:
        """Say something to a node on its bus, if it is there."""
        self._loop.call_soon_threadsafe(self._say, node, word)

    def depart(self, id: int, route: Journey) -> None:
        """A message leaves. Raises ConfigError for one that is too long for the transport."""
        if len(route.payload) + OVERHEAD > self._network.largest:
            raise ConfigError(
                f"a message of {len(route.payload):,} bytes does not fit in a frame of {self._network.largest:,}: "
                "raise `largest` of the transport, or take tcp"
            )
        self.routes[id] = route
        self._loop.call_soon_threadsafe(self._depart, route)

    def wait_for_nodes(self, join_s: float, failed: Callable[[], str] = str) -> dict[str, str]:
        """By agent, its node, once all are there. Raises ConfigError after `join_s` s, or where some have `failed`."""
        end, self._parts = time.monotonic() + join_s, {}
        while True:
            missing = self.agents.difference(*(self.claims[node].agents for node in self._joined))
            left = max(end - time.monotonic(), 0.0)
            try:
                came = self.inbox.get(timeout=min(left, LOOK_S)) if missing else self.inbox.get_nowait()
            except Empty:
                if not missing:
                    break
                if why := failed():
                    raise ConfigError(f"no node has come for {sorted(missing)}: {why}") from None
                if left > 0.0:
                    continue
                raise ConfigError(
                    f"no node has come for {sorted(missing)} within {join_s:g} s; start it: heron real node "
                    f"{min(missing)} --hub {self.address} --policy ...{self._why_refused()}"
                ) from None
            if came.word is None:
                (self._joined.discard if came.gone else self._joined.add)(came.node)
        return {agent: node for node in sorted(self._joined) for agent in sorted(self.claims[node].agents)}

    def _why_refused(self) -> str:
        refused = self.counts()
        return f" (refused so far: {refused})" if any(refused.values()) else ""

    def begin(self, seed: int, episode: int, join_s: float) -> None:
        """Let all nodes begin an episode, and wait until they have. Raises ConfigError for one that has not."""
        waiting, end = set(self._joined), time.monotonic() + join_s
        self._parts = {node: self.claims[node].agents for node in waiting}
        for node in waiting:
            self.tell(node, bus.Begin(seed, episode))
        while waiting:
            try:
                came = self.inbox.get(timeout=max(end - time.monotonic(), 0.0))
            except Empty:
                raise ConfigError(f"nodes {sorted(waiting)} have not begun within {join_s:g} s") from None
            if isinstance(came.word, bus.Failed) or came.gone:
                raise ConfigError(f"node {came.node!r} can't begin: {came.gone or getattr(came.word, 'why', '')}")
            if isinstance(came.word, bus.Ready):
                waiting.discard(came.node)

    def deciders(self) -> dict[str, str]:
        """By agent, the digest of what decides in its node, as that said."""
        return {agent: claim.policy for claim in self.claims.values() for agent in sorted(claim.agents)}

    def counts(self) -> dict[str, int]:
        """What was refused or dropped, by reason."""
        sides = (self._bus, self._network)
        all_of = sum((Counter(side.refused) for side in sides), self.refused.copy())
        return {**dict(sorted(all_of.items())), "dropped": sum(side.dropped for side in sides)}

    def _wait(self, work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(timeout=15.0)

    # In its own thread

    async def _open(self) -> tuple[str, str]:
        address = await self._bus.open(self._from_bus)
        network = await self._network.open(self._from_network)
        self._reached = self._reach(network) if self._reach is not None else network
        self._watch = asyncio.create_task(self._watch_silence())
        return address, network

    async def _close(self) -> None:
        if hasattr(self, "_watch"):
            self._watch.cancel()
        for session in [*self._sessions.values()]:
            self._say(session.name, bus.End())
        await asyncio.sleep(0.05)  # so that a node learns it from the word, and not from the end of its connection
        await self._bus.close()
        await self._network.close()

    async def _watch_silence(self) -> None:
        while True:
            await asyncio.sleep(bus.PING_S)
            for session in [*self._sessions.values()]:
                if time.monotonic() - session.last_word > bus.SILENCE_S:
                    self._end(session, "silent")

    def _say(self, node: str | None, word: bus.ToNode) -> None:
        if node is not None and (session := self._sessions.get(node)) is not None:
            self._bus.send(session.bus, session.to_bus.seal(bus.encode(word)))

    def _depart(self, route: Journey) -> None:
        if route.sender is HUB:
            self._forward(route)
        else:
            self._say(route.sender, bus.Depart(route.payload))

    def _forward(self, route: Journey) -> None:
        session = self._sessions.get(route.receiver or "")
        if session is not None and session.network:
            self._network.send(session.network, session.to_network.seal(route.payload))

    def _from_bus(self, address: str, frame: bytes, ns: int) -> None:
        if (session := self._by_bus.get(address)) is not None:
            opened = session.from_bus.open(frame)
            if isinstance(opened, Rejected):
                self.refused[opened.reason] += 1
            elif not opened.copy:
                session.last_word = time.monotonic()
                self._heard(session, opened.payload, ns)
        elif frame == bus.GREETING and self._may_come(address):
            self._openings[address] = HubOpening(self._secret, self.run)
            self._bus.send(address, self._openings[address].challenge)
        elif (opening := self._openings.pop(address, None)) is not None:
            claim = opening.read(frame)
            why = claim.reason if isinstance(claim, Rejected) else self._fault_of(claim)
            if why or isinstance(claim, Rejected):
                self.refused[why] += 1
                self._bus.drop(address)
            else:
                self._welcome(address, opening, claim)
        else:
            self.refused["not a node"] += 1
            self._bus.drop(address)

    def _may_come(self, address: str) -> bool:
        host = ipaddress.ip_address(host_and_port(address)[0])
        return not self._allowed or any(host in net for net in self._allowed if net.version == host.version)

    def _fault_of(self, claim: Claim) -> str:
        """Why a proved claim can't be accepted; "" if it can."""
        if not self.agents.issuperset(claim.agents):
            return "unknown agents"
        if claim.environment != self.environment:
            return "another environment"
        if self._parts and self._parts.get(claim.node) != frozenset(claim.agents):
            return "agents of another node"
        taken = any(not session.agents.isdisjoint(claim.agents) for session in self._sessions.values())
        if taken or claim.node in self._sessions:
            return "agents claimed already"
        return "" if len(self._sessions) < MOST_NODES else "too many nodes"

    def _welcome(self, address: str, opening: HubOpening, claim: Claim) -> None:
        index = next(number for number in range(1, 0x10000) if number not in self._by_index)
        welcome, keys = opening.welcome(claim, index)
        session = NodeSession(claim, index, address, keys)
        self.claims[claim.node] = self._sessions[claim.node] = self._by_bus[address] = self._by_index[index] = session
        self._bus.prove(address)
        self._bus.send(address, welcome)
        options = {name: value for name, value in self._options.items() if name not in OWN_OPTIONS}
        self._say(claim.node, bus.Connect(self.transport, self._reached, options))

    def _heard(self, session: NodeSession, payload: bytes, ns: int) -> None:
        try:
            word = bus.to_hub.decode(payload)
        except (MsgspecError, RecursionError):
            self.refused["malformed"] += 1
            return
        match word:
            case bus.Ping():
                return
            case bus.Arrived(id):
                route = self.routes.get(id)
                if route is None or route.receiver != session.name:
                    self.refused["not its message"] += 1
                    return
        self.inbox.put(Came(ns, session.name, word))

    def _from_network(self, address: str, frame: bytes, ns: int) -> None:
        session = self._by_index.get(node_of(frame) or 0)
        if session is None:
            self.refused["not a node"] += 1
            return
        opened = session.from_network.open(frame)
        if isinstance(opened, Rejected):
            self.refused[opened.reason] += 1
            return
        if not opened.copy:
            joined, session.network = not session.network, address
            self._network.prove(address)
            if joined:
                self.inbox.put(Came(ns, session.name, None))
        if not opened.payload:
            return  # only its address
        id = int.from_bytes(opened.payload[:8], "big")
        route = self.routes.get(id)
        if route is None or route.sender != session.name or route.payload != opened.payload:
            self.refused["not its message"] += 1
        elif route.receiver is HUB:
            self.inbox.put(Came(ns, session.name, bus.Arrived(id)))
        else:
            self._forward(route)

    def _ended(self, address: str) -> None:
        self._openings.pop(address, None)
        if (session := self._by_bus.get(address)) is not None:
            self._end(session, "its connection ended")

    def _end(self, session: NodeSession, why: str) -> None:
        del self._sessions[session.name], self._by_bus[session.bus], self._by_index[session.index]
        self._bus.drop(session.bus)
        if session.network:
            self._network.drop(session.network)
        self.inbox.put(Came(time.monotonic_ns(), session.name, None, why))


def require_guarded(
    addresses: Sequence[str] | str, secret: bytes | None, allow: Sequence[str]
) -> tuple[ipaddress.IPv4Network | ipaddress.IPv6Network, ...]:
    """The networks in `allow`. Raises ConfigError for addresses that others reach, without a secret or a limit."""
    for address in [addresses] if isinstance(addresses, str) else addresses:
        host, _ = host_and_port(address)
        if not is_loopback(host) and secret is None:
            raise ConfigError(
                f"listen={address!r}: others reach this address, so hub and nodes need a secret: "
                "heron real secret FILE, then --secret FILE on each"
            )
        if host in ("0.0.0.0", "::") and not allow:
            raise ConfigError(
                f"listen={address!r}: is every address of this machine; say from where nodes come: --allow"
            )
    try:
        return tuple(ipaddress.ip_network(each) for each in allow)
    except ValueError as error:
        raise ConfigError(f"allow={[*allow]!r:.200}: {error}; write networks as 192.168.0.0/24") from error
