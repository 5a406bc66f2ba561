"""A node: a process with one or more agents and their policies, which decides on what comes to it over the network."""

from __future__ import annotations

import asyncio
import copy
import zlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from msgspec import MsgspecError, msgpack, structs
from numpy.typing import NDArray

from heron_env.core.letters import Letter, Sealed, sealed
from heron_env.core.plans import NOTHING, Plan, Running
from heron_env.core.policy import Answer, AnsweringPolicy, Policies
from heron_env.envs.answering import Asking, InWords, begin_policies
from heron_env.envs.decisions import policies_by_agent
from heron_env.errors import ConfigError, HeronError
from heron_env.real import bus
from heron_env.real.frames import Opener, Rejected, Sealer
from heron_env.real.handshake import NodeOpening
from heron_env.real.secret import read_secret
from heron_env.real.transports import NodeTransport, TcpNode, node_transport

if TYPE_CHECKING:
    from heron_env.envs.base import HeronEnv

GREET_S: Final = 0.1
"""Between two frames that say nothing but where the node is, until the episode begins."""
JOIN_S: Final = 30.0
"""How long a node waits for its hub."""
ALONE_S: Final = 10.0
"""How long it goes on without a hub that knows it: longer than a hub remembers a node that hangs, bus.SILENCE_S."""
MOST_HELD: Final = 4_096
"""Messages that wait to be decided on."""


class Bus(TcpNode):
    """The connection to the hub; `greet` is called when there is a new one. `stands`: is there one now?"""

    def __init__(self, address: str, greet: Callable[[], object]) -> None:
        super().__init__(address)
        self.stands, self._greet = False, greet

    async def _session(self) -> None:
        try:
            await super()._session()
        finally:
            self.stands = False

    def _connected(self) -> None:
        super()._connected()
        self.stands = True
        self._greet()


class NodeProcess:
    """One node, from its start to the end of the run; `run` it in an event loop."""

    def __init__(
        self, env: HeronEnv, agents: Sequence[str], policies: Policies, hub: str, *, name: str | None = None,
        secret: bytes | None = None, options: Mapping[str, Any] = {}, policy_digest: str = "",
    ) -> None:  # fmt: skip
        unknown = [agent for agent in agents if agent not in env.hierarchy.ids]
        if unknown or not agents:
            raise ConfigError(f"agents={[*agents]!r:.200}: name agents of {env.hierarchy.ids[:12]}")
        self.env, self.agents, self._options = env, tuple(agents), dict(options)
        self.name = agents[0] if name is None else name
        deciding = {agent: None for agent in env.possible_agents if agent in self.agents}
        chosen = policies_by_agent(policies, env.hierarchy.ids, env.groups, deciding)
        self.policies: dict[str, AnsweringPolicy] = {
            agent: policy if isinstance(policy, AnsweringPolicy) else InWords(env, env.hierarchy.index[agent], policy)
            for agent, policy in chosen.items()
            if agent in self.agents
        }
        self._opening = partial(
            NodeOpening, secret, self.name, self.agents, policy=policy_digest, environment=environment_digest(env)
        )
        self._bus = Bus(hub, self._greet)
        self._network: NodeTransport | None = None
        self._from_hub: Opener
        self._messages: dict[int, dict[str, Any]] = {}
        self._letters: dict[bytes, Sealed] = {}
        self._moment = (0, 0)
        self._begun = False
        self._opening_network: asyncio.Task[None] | None = None

    async def run(self) -> None:
        """Until the hub ends the run. Raises ConfigError where there is none, or it refuses this node."""
        self._ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._questions: asyncio.Queue[bus.Ask | bus.Begin] = asyncio.Queue()
        workers: list[asyncio.Task[None]] = []
        try:
            async with asyncio.timeout(JOIN_S):
                await self._bus.open(self._from_bus)
            workers = [asyncio.create_task(self._ping()), asyncio.create_task(self._decide())]
            done, _ = await asyncio.wait({self._ended, *workers}, return_when=asyncio.FIRST_COMPLETED)
            for each in done:
                each.result()
        except TimeoutError as error:
            raise ConfigError(f"hub={self._bus.address!r}: no answer in {JOIN_S:g} s; start the hub first") from error
        finally:
            for worker in workers:
                worker.cancel()
            await self._bus.close()
            if self._network is not None:
                await self._network.close()

    def _greet(self) -> None:
        self._handshake: NodeOpening | None = self._opening()
        self._proved, self._claimed = False, False
        self._bus.send(bus.GREETING)

    async def _ping(self) -> None:
        last = alone = asyncio.get_running_loop().time()
        while True:
            now = asyncio.get_running_loop().time()
            due = now - last >= bus.PING_S
            if self._proved and self._bus.stands:
                alone = now
                if due:
                    self._say(bus.Ping())
            elif now - alone > ALONE_S:
                self._end(
                    ConfigError(
                        f"hub={self._bus.address!r}: it is gone, or refuses {self.name!r} for {ALONE_S:g} s; start it; "
                        "take its secret, environment and version, and agents that no other node has"
                    )
                )
            if self._network is not None and (due or not self._begun):
                self._network.send(self._to_network.seal(b""))  # after a break, a hub knows a node by what it says
            last = now if due else last
            await asyncio.sleep(GREET_S)

    def _say(self, word: bus.ToHub) -> None:
        self._bus.send(self._to_bus.seal(bus.encode(word)))

    def _from_bus(self, address: str, frame: bytes, ns: int) -> None:
        if self._proved:
            opened = self._from_hub.open(frame)
            if not isinstance(opened, Rejected) and not opened.copy:
                try:
                    self._hear(bus.to_node.decode(opened.payload))
                except (MsgspecError, RecursionError):
                    self._bus.refuse("malformed")
            return
        assert self._handshake is not None
        if not self._claimed:
            claim = self._handshake.claim(frame)
            if isinstance(claim, Rejected):
                self._end(ConfigError(f"hub={address!r}: {claim.reason}"))
            else:
                self._claimed = True
                self._bus.send(claim)
            return
        welcome = self._handshake.read(frame)
        if isinstance(welcome, Rejected):
            self._end(ConfigError(f"hub={address!r}: {welcome.reason}; take the hub's secret"))
            return
        index, keys = welcome
        self._from_hub, self._to_bus = Opener(keys.bus_down, index), Sealer(keys.bus_up, index)
        self._from_network, self._to_network = Opener(keys.net_down, index), Sealer(keys.net_up, index)
        self._proved, self._begun = True, False

    def _end(self, error: HeronError | None = None) -> None:
        if not self._ended.done():
            self._ended.set_result(None) if error is None else self._ended.set_exception(error)

    def _hear(self, word: bus.ToNode) -> None:
        match word:
            case bus.Connect():
                self._opening_network = asyncio.create_task(self._open_network(word))
            case bus.Depart(payload):
                if self._network is not None:
                    self._network.send(self._to_network.seal(payload))
            case bus.Begin(seed, episode):
                self._begun, self._moment = True, (seed, episode)
                self._questions.put_nowait(word)
            case bus.Ask():
                if self._begun:  # else it is for the process that this one replaces: the hub does not know that yet
                    self._questions.put_nowait(word)
            case bus.End():
                self._end()

    async def _open_network(self, word: bus.Connect) -> None:
        if self._network is not None:
            await self._network.close()
        try:
            node = {"node": self.name} if word.transport == "mqtt" else {}
            network = node_transport(word.transport, word.address, **{**word.options, **self._options, **node})
            await network.open(self._over_network)
            self._network = network
            network.send(self._to_network.seal(b""))
        except HeronError as error:
            self._end(error)

    def _over_network(self, address: str, frame: bytes, ns: int) -> None:
        opened = self._from_network.open(frame)
        if isinstance(opened, Rejected) or len(opened.payload) < 8:
            return
        id = int.from_bytes(opened.payload[:8], "big")
        if not opened.copy:
            try:
                self._hold(id, msgpack.decode(opened.payload[8:]))
            except (MsgspecError, RecursionError):
                return
        self._say(bus.Arrived(id))

    def _hold(self, id: int, message: Any) -> None:
        """Keep what the policy will need: observations, letters."""
        if not isinstance(message, dict):
            return
        for kind in ("get_obs_response", "push_obs"):
            if kind in message:
                self._messages[id] = message[kind]["body"]
                if len(self._messages) > MOST_HELD:
                    del self._messages[next(iter(self._messages))]
        if "send_letter" in message:
            body = message["body"]
            letter = sealed(Letter(body["_owner_id"], body["_receiver_id"], body["kind"], body["body"]), "a letter")
            self._keep(letter)

    def _keep(self, letter: Sealed) -> None:
        """Until a policy reads it, and longer: it may come, or be written, more than once."""
        self._letters[letter_digest(letter)] = letter
        if len(self._letters) > MOST_HELD:
            del self._letters[next(iter(self._letters))]

    async def _decide(self) -> None:
        """One question after another, in a thread, so that what comes meanwhile is stamped as it comes."""
        while True:
            question = await self._questions.get()
            try:
                if isinstance(question, bus.Begin):
                    await asyncio.to_thread(self._begin, question)
                    self._say(bus.Ready())
                else:
                    self._say(await asyncio.to_thread(self._answer, question))
            except Exception as error:  # noqa: BLE001 - a policy may raise anything; the hub says it
                who = f"{question.agent!r}: " if isinstance(question, bus.Ask) else ""
                self._say(bus.Failed(f"{who}{type(error).__name__}: {error}"[:2_000]))

    def _begin(self, word: bus.Begin) -> None:
        """The plant is the hub's: of its rules a node needs those that offer masks, and begins no episode of it."""
        if not self.env.simulation.lane.lanes.attached:
            self.env.simulation.attach()
        clocks, index = self.env.simulation.model.clocks, self.env.hierarchy.index
        self._asking = {
            agent: Asking(self.env, index[agent], clocks[index[agent]], policy)
            for agent, policy in self.policies.items()
        }
        for agent, policy in self.policies.items():
            if isinstance(policy, InWords):
                self._warm_up(agent, policy)
        begin_policies(self.policies.values(), word.seed, word.episode)

    def _warm_up(self, agent: str, policy: InWords) -> None:
        """Let a copy decide once: what it loads and compiles would else count as thinking, at its first tick."""
        shape = self.env.observation_space(agent).shape
        with suppress(Exception):  # what can't be copied, or decides on no zeros, begins cold
            asked = self._asking[agent].asked(np.zeros(shape, np.float32), 0, 0, 0.0, *self._moment, ())
            copy.deepcopy(policy).answer(asked)

    def _answer(self, ask: bus.Ask) -> bus.NodeAnswer:
        rank = self.env.hierarchy.index[ask.agent]
        vector = self._vector(ask, rank)
        came = [Sealed(*each) for each in ask.again] or [self._letters[digest] for digest in ask.letters]
        letters = tuple(letter.opened() for letter in came)
        doing = NOTHING
        if ask.running is not None:
            fields = structs.asdict(ask.running)
            doing = Running(**fields | {"remaining": tuple(np.array(row) for row in ask.running.remaining)})
        asked = self._asking[ask.agent].asked(vector, ask.number, ask.turn, ask.time, *self._moment, letters, doing)
        answer: Any = self.policies[ask.agent].answer(asked)
        if not isinstance(answer, Answer):
            raise ConfigError(f"the policy of {ask.agent!r} answered {answer!r:.200}: must be an Answer")
        action, plan = self._parsed(rank, answer.action)
        written = [sealed_of(letter, f"a letter of {ask.agent!r}") for letter in answer.letters]
        for letter in written:
            if letter.receiver in self.agents:
                self._keep(letter)  # it does not travel
        origin = answer.origin
        about = None if origin is None else (origin.source, origin.code, origin.attempts, origin.circuit)
        more: tuple[Any, Any, Any, Any] = about or ("", "", 0, "")
        checksum = zlib.crc32(vector.tobytes())
        texts = [bus.Written(each.receiver, each.kind, each.text) for each in written]
        return bus.NodeAnswer(ask.id, checksum, action, texts, float(answer.thinking), answer.tokens, *more, plan)

    def _parsed(self, rank: int, action: Any) -> tuple[list[float], bus.SaidPlan | None]:
        """What an answer decides. Raises InvalidAction."""
        parse = partial(self.env.simulation.model.specs[rank].parse, agent=self.env.hierarchy.ids[rank])
        if isinstance(action, Plan):
            rows = [parse(row).tolist() for row in action.actions]
            return [], bus.SaidPlan(rows, action.period, action.start, action.merge, action.end, action.weight)
        return ([], bus.SaidPlan()) if action is None else (parse(action).tolist(), None)

    def _vector(self, ask: bus.Ask, rank: int) -> NDArray[np.float32]:
        """What the agent sees: what came over the network, and what it reads of itself now (T19)."""
        plan = self.env.simulation.model.plan
        values = bus.read_vector(plan.views[rank], self._messages.pop(ask.id))
        if ask.own is not None:
            values[: len(ask.own)] = ask.own
        return plan.complete(rank, values, None if ask.ages is None else np.array(ask.ages, dtype=np.float64))


def sealed_of(letter: Any, where: str) -> Sealed:
    """As it travels. Raises ConfigError for what is no letter."""
    if not isinstance(letter, Letter):
        raise ConfigError(f"{where}: {letter!r:.200} is no Letter; write Letter(sender, receiver, kind, body)")
    return sealed(letter, where)


def letter_digest(letter: Sealed) -> bytes:
    """Tells letters apart by what is in them."""
    return sha256("\0".join((letter.sender, letter.receiver, letter.kind, letter.text)).encode()).digest()[:16]


def environment_digest(env: HeronEnv) -> str:
    """Of what hub and node must agree on: agents, what they observe, what they may do, the control step."""
    parts: list[Any] = [env.hierarchy.ids, env.dt_ns]
    for agent in env.possible_agents:
        parts += [agent, env.observation_names(agent), repr(env.action_space(agent))]
    return sha256(repr(parts).encode()).hexdigest()[:32]


def run_node(
    env: HeronEnv, agents: Sequence[str], policies: Policies, hub: str, *, name: str | None = None,
    secret: str | Path | None = None, policy_digest: str = "", **options: Any,
) -> None:  # fmt: skip
    """Act for some agents in a run of the hub at HOST:PORT, until it ends.

    Args:
        env: built as the hub's.
        agents: ids of those that this process acts for; they may include agents that are only commanded.
        policies: of these agents, as of `run_event_driven`.
        hub: address of its bus.
        name: of this node; None: its first agent's.
        secret: a file with the secret that the hub has.
        policy_digest: says in the hub's record what decided here.
        options: of the transport, such as `user` and `password_file` of MQTT.

    Raises ConfigError where no hub answers, or it refuses the node.
    """
    node = NodeProcess(
        env, agents, policies, hub, name=name, secret=read_secret(secret), options=options, policy_digest=policy_digest
    )
    asyncio.run(node.run())
