"""The hub: the process with the plant and the proxy, whose event clock runs by the wall clock while nodes decide."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Self

from heron_env.core.policy import Policies
from heron_env.envs.base import HeronEnv
from heron_env.envs.episodes import EpisodeResult
from heron_env.errors import ConfigError, did_you_mean
from heron_env.lab.real_time import TOLERANCE, Punctuality, require_pace
from heron_env.real.carrier import Carrier, Remote
from heron_env.real.node import environment_digest
from heron_env.real.record import RecordFile, require_new
from heron_env.real.secret import read_secret
from heron_env.real.switchboard import Switchboard
from heron_env.scheduling.arrivals import Arrivals
from heron_env.seeding import fresh_seed

RECORDED: Final = frozenset({"rewards", "actions", "observations"})
JOIN_S: Final = 60.0
"""How long a hub waits for its nodes."""
LATE_SHARE: Final = 0.01
"""A run with more late actions is discarded."""


@dataclass(frozen=True)
class RealRun:
    """Result of a run over a real network.

    Attributes:
        result: of the episode.
        arrivals: its record; `env.run_event_driven(policies, arrivals=...)` repeats it.
        punctuality: how the hub kept to the wall clock; None in lockstep.
        refused: counts of refused messages, by reason.
        policies: by agent in a node, the digest of its policy.
    """

    result: EpisodeResult
    arrivals: Arrivals
    punctuality: Punctuality | None
    refused: Mapping[str, int] = field(default_factory=dict)
    policies: Mapping[str, str] = field(default_factory=dict)

    @property
    def discarded(self) -> bool:
        """Were more than 1 % of the actions later than the tolerance?"""
        if self.punctuality is None:
            return False
        return sum(self.punctuality.missed.values()) > LATE_SHARE * sum(self.punctuality.actions.values())


class Hub:
    """Server that plays episodes with nodes; use it in a `with` block.

    Args:
        env: the plant.
        policies: of the agents that no node acts for, as of `run_event_driven`.
        wait_for: agents that nodes act for; an episode begins when all are there.
        transport: "udp", "tcp", "mqtt", or one that is installed.
        listen, network: addresses of the bus and of the network side, HOST:PORT, 0: any port; with "mqtt" `network` is
            the broker's URL.
        secret: a file that `new_secret` wrote; all nodes need it. None: that of HERON_SECRET_FILE, or none.
        allow: from where nodes may come, as "192.168.0.0/24".
        reach: of the network side's address, the one that nodes use: that of a relay between.
        options: of the transport, such as `qos`.

    Attributes:
        address, network_address: where it listens, once it does.

    Raises ConfigError: of addresses that need a secret, or can't be listened at.
    """

    def __init__(
        self, env: HeronEnv, policies: Policies, *, wait_for: Sequence[str], transport: str = "udp",
        listen: str = "127.0.0.1:0", network: str = "127.0.0.1:0", secret: str | Path | None = None,
        allow: Sequence[str] = (), reach: Callable[[str], str] | None = None, options: Mapping[str, Any] = {},
    ) -> None:  # fmt: skip
        ids = env.hierarchy.ids
        if unknown := [agent for agent in wait_for if agent not in ids]:
            raise ConfigError(f"wait_for={unknown!r:.200}: not in this environment.{did_you_mean(unknown[0], ids)}")
        self.env, self.policies, self._episodes = env, policies, 0
        self._board = Switchboard(
            wait_for, environment=environment_digest(env), secret=read_secret(secret), transport=transport,
            options=options, listen=listen, network=network, reach=reach, allow=allow,
        )  # fmt: skip

    def __enter__(self) -> Self:
        self._board.__enter__()
        self.address, self.network_address = self._board.address, self._board.network_address
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Release the nodes and stop listening."""
        self._board.close()

    def _failed(self) -> str:
        """Why nodes that are waited for will not come; "" while they may."""
        return ""

    def play(
        self, *, seed: int | None = None, speed: float = 1.0, tolerance: float = TOLERANCE, lockstep: bool = False,
        join_s: float = JOIN_S, out: str | Path | None = None, about: Mapping[str, Any] = {}, **more: Any,
    ) -> RealRun:  # fmt: skip
        """Play one episode. Ctrl-C ends it and returns the result so far.

        Args:
            seed: of the episode; None: a new one.
            speed, tolerance: as of `run_real_time`.
            lockstep: virtual time waits for all that is under way: such a run equals the synchronous one, bit for bit.
            join_s: s that nodes have to come.
            out: the record's file, which grows with the run.
            about: what else the record says of the run.
            more: as of `run_event_driven`: `schedule`, which may have no delays and losses, `t_end`, ....

        Raises:
            ConfigError: where nodes don't come.
            RunInterrupted: a node says that its policy failed, or in lockstep a node is gone.
        """
        require_pace("Hub.play", speed, tolerance)
        board, env = self._board, self.env
        if out is not None:
            require_new(out)
        places = board.wait_for_nodes(join_s, self._failed)
        board.routes.clear()
        self._episodes += 1
        carrier = Carrier(board, places, lockstep=lockstep, first=self._episodes << 40)
        remotes: Policies = {agent: Remote(carrier, agent) for agent in env.possible_agents if agent in places}
        seed, policies = fresh_seed() if seed is None else seed, {**self.policies, **remotes}
        run = env.start_event_driven(policies, seed=seed, arrivals=carrier, record=RECORDED, **more)
        if out is not None:
            carrier.record = RecordFile(out, about, Arrivals(seed, places))
        carrier.bind(run)
        before = board.counts()
        board.begin(seed, run.context.result.episode, join_s)
        with stopping(carrier):
            through, punctuality = carrier.play(speed, tolerance)
        result, begins = run.result(), {agent: tuple(places) for agent, places in carrier.begins.items()}
        arrivals = run.arrivals(places=places, messages=carrier.passed(), begins=begins, until=through)
        if carrier.record is not None:
            carrier.record.note(carrier, last=True)
            carrier.record.end(arrivals)
        refused = {reason: n - before.get(reason, 0) for reason, n in board.counts().items()}
        return RealRun(result, arrivals, punctuality, refused, board.deciders())


@contextmanager
def stopping(carrier: Carrier) -> Iterator[None]:
    """While it runs, Ctrl-C and SIGTERM end it between two events."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, carrier.stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
