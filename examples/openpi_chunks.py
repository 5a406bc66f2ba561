"""A policy server of openpi plays Pendulum in chunks while it thinks: `python examples/openpi_chunks.py`.

The client is openpi's own, and so is the wire: WebSocket, msgpack with arrays. The server's model is faked: a rule
swings the pendulum. The server sends metadata, then answers each observation with {"actions": float32 [8, 1],
"server_timing"}. For a real one give its host and port to `Chunks`, and the names of its observations to `infer`.

Needs: pip install heron_env websockets msgpack typing_extensions; pip install --no-deps openpi-client
(which asks for numpy below 2; its client runs with 2).
"""

import time
from threading import Thread

import gymnasium
import numpy as np
from openpi_client.msgpack_numpy import Packer, unpackb
from openpi_client.websocket_client_policy import WebsocketClientPolicy
from websockets.sync.server import serve

from heron_env import Answer, Plan, ScheduleConfig, under_network


def stand_in(connection):
    """What openpi's server does, with a rule in the place of a model."""
    packer = Packer()
    connection.send(packer.pack({"stand_in": True}))
    for message in connection:
        began, state = time.monotonic(), unpackb(message)["observation/state"]
        actions = np.full((8, 1), 2.0 * np.sign(state[2]), np.float32)
        spent = 1000.0 * (time.monotonic() - began)
        connection.send(packer.pack({"actions": actions, "server_timing": {"infer_ms": spent}}))


class Chunks:
    """Asks the server; `thinking`: s that an answer takes, None: as measured here, so that runs differ."""

    def __init__(self, host, port, thinking=None):
        self.client, self.thinking = WebsocketClientPolicy(host, port), thinking

    def answer(self, asked):
        """A plan of the server's actions."""
        began = time.monotonic()
        actions = self.client.infer({"observation/state": asked.vector, "prompt": "swing up"})["actions"]
        measured = time.monotonic() - began
        return Answer(Plan(actions), thinking=measured if self.thinking is None else self.thinking)


if __name__ == "__main__":
    with serve(stand_in, "127.0.0.1", 0, compression=None, max_size=None) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        port = server.socket.getsockname()[1]
        env = under_network(gymnasium.make("Pendulum-v1"), ScheduleConfig(), dt=0.05)
        for thinking in (0.0, 0.2, None):
            result = env.run_event_driven({"*": Chunks("127.0.0.1", port, thinking)}, seed=0)
            name = "measured" if thinking is None else f"{thinking} s"
            print(f"thinking {name}: return {result.returns['agent']:.0f}, ticks that it missed: {result.busy}")
        server.shutdown()
