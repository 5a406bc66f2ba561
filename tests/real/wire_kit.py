"""What tests of transports share: inboxes, a loop that must not complain, a broker that ends with its test."""

from __future__ import annotations

import asyncio
import gc
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from getpass import getuser
from pathlib import Path
from typing import Any, Self

import pytest

MOSQUITTO = shutil.which("mosquitto") or shutil.which("mosquitto", path="/usr/sbin:/usr/local/sbin")
needs_broker = pytest.mark.skipif(MOSQUITTO is None, reason="no mosquitto on this machine; install it")


def run(test: Coroutine[Any, Any, None]) -> None:
    """In a loop of its own, of which no callback and no task may have raised."""
    complaints: list[dict[str, Any]] = []

    async def watched() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: complaints.append(context))
        await asyncio.wait_for(test, 30)

    asyncio.run(watched())
    assert complaints == []


async def until(condition: Callable[[], bool], seconds: float = 5.0) -> None:
    """Wait for it, not long."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen"
        await asyncio.sleep(0.002)


class Inbox:
    """A `receive` that has it all; `on`: is called besides."""

    def __init__(self, on: Callable[[str, bytes], object] = lambda *frame: None) -> None:
        self.items: list[tuple[str, bytes, int]] = []
        self.on = on

    def __call__(self, address: str, frame: bytes, ns: int) -> None:
        self.items.append((address, frame, ns))
        self.on(address, frame)

    @property
    def frames(self) -> list[bytes]:
        return [frame for _, frame, _ in self.items]

    async def holds(self, count: int) -> Self:
        await until(lambda: len(self.items) >= count)
        return self


def resident() -> int:
    """Bytes of this process that are in memory, without garbage."""
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


class Broker:
    """mosquitto on a free port of loopback, with a configuration of its own; `lines`: more of it."""

    def __init__(self, folder: Path, *lines: str) -> None:
        self.port = free_port()
        self.url = f"mqtt://127.0.0.1:{self.port}"
        self.file = folder / "mosquitto.conf"
        rest = lines or ("allow_anonymous true",)
        ours = (f"listener {self.port} 127.0.0.1", "persistence false", "set_tcp_nodelay true", f"user {getuser()}")
        self.file.write_text("\n".join((*ours, *rest, "")))
        self.start()

    def start(self) -> None:
        assert MOSQUITTO is not None
        command = [MOSQUITTO, "-c", str(self.file)]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        end = time.monotonic() + 5
        while True:
            assert self.process.poll() is None, "mosquitto did not start"
            try:
                socket.create_connection(("127.0.0.1", self.port)).close()
                return
            except ConnectionRefusedError:
                assert time.monotonic() < end, "mosquitto does not listen"
                time.sleep(0.005)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


@contextmanager
def broker(folder: Path, *lines: str) -> Iterator[Broker]:
    made = Broker(folder, *lines)
    try:
        yield made
    finally:
        made.kill()
