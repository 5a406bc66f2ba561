"""`heron serve` in a process of its own, on loopback, and a client that says what it was answered."""

import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

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
        """Status and JSON of the answer; bytes are sent as they are."""
        data = None if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
        told = {"Content-Type": "application/json", **headers}
        if self.token:
            told.setdefault("Authorization", f"Bearer {self.token}")
        request = urllib.request.Request(f"{self.url}{path}", data, told, method=verb)
        for _ in range(200):
            try:
                with urllib.request.urlopen(request, timeout=60) as answer:
                    return answer.status, json.loads(answer.read())
            except urllib.error.HTTPError as error:
                return error.code, json.loads(error.read())
            except urllib.error.URLError:  # the socket listens before the server takes up its work
                time.sleep(0.02)
        raise AssertionError(f"{self.url} does not answer")
