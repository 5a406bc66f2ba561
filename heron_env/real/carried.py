"""A run over a real network on this machine: hub here, nodes and relay in processes of their own."""

from __future__ import annotations

import pickle
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final

from heron_env.core.policy import Policies
from heron_env.envs.base import HeronEnv
from heron_env.errors import ConfigError
from heron_env.lab.policies import policy_spec
from heron_env.real.hub import Hub, RealRun
from heron_env.real.relay import relay as relayed
from heron_env.real.secret import new_secret
from heron_env.seeding import fresh_seed

CHILD: Final = "import sys; from heron_env.real.carried import act; act(sys.stdin.buffer)"


def run_carried(
    env: HeronEnv, policies: Policies | str, *, seed: int | None = None, nodes: int | Sequence[Sequence[str]] = 2,
    transport: str = "udp", network: str = "127.0.0.1:0", relay: Mapping[str, Any] | None = None,
    options: Mapping[str, Any] = {}, **more: Any,
) -> RealRun:  # fmt: skip
    """Run one episode with agents in processes of this machine, and messages over its sockets.

    Args:
        env: built as the nodes' are: they get a pickled copy.
        policies: as of `run_event_driven`, picklable: functions and classes of modules that can be imported. Or words
            of `heron run --policy`: a run folder, a rule of the environment, `module:name`; each process builds it.
        seed: of the episode; None: a new one.
        nodes: the agents of each process; a number: those that have policies, dealt out in turn.
        transport: "udp" or "tcp"; "mqtt" with `network`, the broker's URL.
        relay: options of `heron_env.real.relay`, a process that delays and loses what passes it: `{"delay": 0.03}`.
        options: of the transport.
        more: as of `Hub.play`: `speed`, `lockstep`, `schedule`, ....

    Raises as `Hub.play`; ConfigError for what can't be pickled.

    Example: `run_carried(env, policies, relay={"delay": 0.03, "loss": 0.1}).result.returns`.
    """
    seed = fresh_seed() if seed is None else seed
    with carrying(
        env, policies, seed=seed, nodes=nodes, transport=transport, network=network, relay=relay, options=options
    ) as hub:
        return hub.play(seed=seed, **more)


@contextmanager
def carrying(
    env: HeronEnv, policies: Policies | str, *, seed: int, nodes: int | Sequence[Sequence[str]] = 2,
    transport: str = "udp", network: str = "127.0.0.1:0", relay: Mapping[str, Any] | None = None,
    options: Mapping[str, Any] = {},
) -> Iterator[CarryingHub]:  # fmt: skip
    """Start a hub with nodes for several episodes, `hub.play(seed=...)`; `hub.nodes` are their processes.

    `seed`: with which policies are built, where they are words.
    """
    groups = dealt(env, nodes)
    with ExitStack() as stack:
        secret = new_secret(Path(stack.enter_context(tempfile.TemporaryDirectory())) / "secret")

        def reach(address: str) -> str:
            return address if relay is None else stack.enter_context(relayed(transport, address, **relay))

        agents = [agent for group in groups for agent in group]
        chosen = built(policies, env, seed)
        hub = stack.enter_context(
            CarryingHub(
                env, chosen, wait_for=agents, transport=transport, network=network, secret=secret, reach=reach,
                options=options,
            )
        )  # fmt: skip
        hub.nodes = [
            stack.enter_context(node_process(env, group, policies, seed, hub.address, secret)) for group in groups
        ]
        stack.callback(hub.close)  # before the processes are waited for
        yield hub


class CarryingHub(Hub):
    """A hub whose nodes are processes of its own."""

    nodes: list[subprocess.Popen[bytes]]

    def _failed(self) -> str:
        """What ended by itself said why; what was killed may be started again."""
        codes = [code for process in self.nodes if (code := process.poll()) is not None and code > 0]
        return f"a node's process ended with exit code {codes[0]}; its error stands above" if codes else ""


def dealt(env: HeronEnv, nodes: int | Sequence[Sequence[str]]) -> list[list[str]]:
    """The agents of each node. Raises ConfigError."""
    if not isinstance(nodes, int):
        groups = [list(group) for group in nodes]
    else:
        agents = env.possible_agents
        if not 1 <= nodes <= len(agents):
            raise ConfigError(
                f"nodes={nodes!r}: must be 1 to {len(agents)}, the agents that have policies: {agents[:12]}"
            )
        groups = [agents[first::nodes] for first in range(nodes)]
    named = [agent for group in groups for agent in group]
    if not named or len(set(named)) < len(named) or not all(groups):
        raise ConfigError(f"nodes={nodes!r:.200}: name the agents of each process, each agent once")
    return groups


@contextmanager
def node_process(
    env: HeronEnv, agents: Sequence[str], policies: Policies | str, seed: int, hub: str, secret: Path
) -> Iterator[subprocess.Popen[bytes]]:
    """A process that acts for `agents`; it ends with the block. Raises ConfigError for what can't be pickled."""
    try:
        data = pickle.dumps((sys.path, env, agents, policies, seed, hub, secret))
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise ConfigError(
            f"policies: can't be sent to another process ({error}); use functions and classes of a module"
        ) from error
    process = subprocess.Popen([sys.executable, "-c", CHILD], stdin=subprocess.PIPE)
    try:
        assert process.stdin is not None
        with process.stdin:
            process.stdin.write(data)
        yield process
    finally:
        try:
            process.wait(timeout=2.0)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def act(stdin: Any) -> None:
    """In the child: read what `node_process` wrote, and act. What its parent pickled is no stranger's."""
    from heron_env.real.node import run_node

    sys.path[:], env, agents, policies, seed, hub, secret = pickle.loads(stdin.read())
    run_node(env, agents, built(policies, env, seed), hub, secret=secret)


def built(policies: Policies | str, env: HeronEnv, seed: int) -> Policies:
    """Policies, of what may be words. Raises ConfigError."""
    return policy_spec(policies).build(env, seed) if isinstance(policies, str) else policies
