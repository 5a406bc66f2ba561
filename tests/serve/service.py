"""`heron serve` in a process of its own, on loopback, and a client that says what it was answered."""

import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from threading import Event
from typing import Any

from heron_env.net.access import ServerThread
from heron_env.serve.app import application
from heron_env.serve.shelf import Shelf

ROOT = Path(__file__).resolve().parents[2]


class Service:
    """A server with its folder; `kill` leaves it no time to say goodbye."""

    def __init__(self, folder: Path, *options: str, **environment: str) -> None:
        self._command = [sys.executable, "-m", "heron_env", "serve", "--folder", str(folder), *options]
        self._environment = {**os.environ, "PYTHONPATH": str(ROOT), **environment}
        self.token = ""

    def __enter__(self) -> "Service":
        self._process = subprocess.Popen(
            self._command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=self._environment
        )
        assert self._process.stdout is not None
        self.url = self._process.stdout.readline().strip()
        assert self.url.startswith("http://"), self._process.communicate()[1]
        return self

    def __exit__(self, *_: object) -> None:
        self._process.send_signal(signal.SIGINT)
        _, self.errors = self._process.communicate(timeout=30)

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()

    def ask(self, verb: str, path: str, body: Any = None, **headers: str) -> tuple[int, Any]:
        """As `ask` does, with the token."""
        if self.token:
            headers.setdefault("Authorization", f"Bearer {self.token}")
        return ask(self.url, verb, path, body, **headers)


class Gate:
    """An endpoint's brain, or any call, that waits until it is opened; a body that holds `passing` passes it."""

    def __init__(self, passing: str = "") -> None:
        self.came, self.go, self._passing = Event(), Event(), passing

    def __call__(self, body: Any = ()) -> dict[str, Any]:
        if not self._passing or self._passing not in body:
            self.came.set()
            assert self.go.wait(60.0)
        return {"action": [0.5]}


@contextmanager
def served(shelf: Shelf) -> Iterator[Callable[..., tuple[int, Any]]]:
    """The same service in a thread of this process, where a test can hold things up; yields its `ask`."""
    with ServerThread(lambda hosts: application(shelf, hosts=hosts), "127.0.0.1", 0) as server:
        yield partial(ask, server.url)


def ask(url: str, verb: str, path: str, body: Any = None, **headers: str) -> tuple[int, Any]:
    """Status and JSON of the answer; bytes are sent as they are."""
    data = None if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
    request = urllib.request.Request(f"{url}{path}", data, {"Content-Type": "application/json", **headers}, method=verb)
    for _ in range(200):
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return answer.status, json.loads(answer.read())
        except urllib.error.HTTPError as error:
            return error.code, json.loads(error.read())
        except urllib.error.URLError:  # the socket listens before the server takes up its work
            time.sleep(0.02)
    raise AssertionError(f"{url} does not answer")
