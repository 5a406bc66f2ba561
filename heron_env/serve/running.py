"""The server itself: where it listens, who may ask, and that nobody is left behind when it ends."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from heron_env.injection.sdk import LOOPBACK
from heron_env.net.guard import Guard
from heron_env.serve.app import application
from heron_env.serve.guarding import listening
from heron_env.serve.shelf import Shelf

SWITCH: Final = 0.0005
"""So long a thread that computes keeps one waiting that answers, s; a step waits for its turn some twenty times."""


def serve(
    folder: Path, *, host: str = LOOPBACK, port: int = 0, token: str | None = None, trust: Sequence[str] = (),
    guard: Guard | None = None, keys: Sequence[str] = (), ready: Callable[[str], None] = print,
) -> None:  # fmt: skip
    """Serve until somebody interrupts; `ready` is called with the address. Raises OSError where the port is taken."""
    import uvicorn

    shelf = Shelf(folder, trust=trust, guard=guard or Guard(), keys=keys)
    listener, hosts = listening(host, port)
    app = application(shelf, hosts=hosts, token=token)
    settings = uvicorn.Config(
        app, log_level="warning", access_log=False, server_header=False, timeout_keep_alive=60, lifespan="off",
        timeout_graceful_shutdown=5,
    )  # fmt: skip
    sys.setswitchinterval(SWITCH)
    gc.freeze()  # a full collection holds everybody up: what was imported is never garbage
    ready(f"http://{host}:{listener.getsockname()[1]}")
    try:
        uvicorn.Server(settings).run(sockets=[listener])
    finally:
        shelf.close()
