"""A headless Chromium that a test drives: DevTools commands over a pipe, and all bytes that the page received."""

import base64
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

HANDED_OVER = """
import fcntl, os, sys
held = [fcntl.fcntl(one, fcntl.F_DUPFD, 10) for one in ({0}, {1})]  # one of the two may be 3 or 4
os.dup2(held[0], 3), os.dup2(held[1], 4)
os.execvp(sys.argv[1], sys.argv[1:])
"""
"""Where a browser looks for its pipe: it reads from 3 and writes to 4."""


class Page:
    """One page of a browser that answers."""

    def __init__(self, to: int, back: int) -> None:
        self._to, self._back, self._rest, self._last = to, back, b"", 0
        self._events: list[dict[str, Any]] = []
        self._finished: list[str] = []
        self.complaints: list[str] = []
        (target,) = [one for one in self._call("Target.getTargets")["targetInfos"] if one["type"] == "page"]
        attached = self._call("Target.attachToTarget", targetId=target["targetId"], flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """A command to the page, and what it returns."""
        return self._call(method, self._session, **params)

    def _call(self, method: str, session: str | None = None, **params: Any) -> dict[str, Any]:
        self._last += 1
        message = {"id": self._last, "method": method, "params": params} | ({"sessionId": session} if session else {})
        os.write(self._to, json.dumps(message).encode() + b"\0")
        while True:
            told = self._read()
            if told.get("id") == self._last:
                assert "error" not in told, (method, told["error"])
                return told["result"]
            self._note(told)

    def _read(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            chunk = os.read(self._back, 2**16)
            assert chunk, "the browser has ended"
            self._rest += chunk
        message, _, self._rest = self._rest.partition(b"\0")
        return json.loads(message)

    def _note(self, told: dict[str, Any]) -> None:
        params = told.get("params", {})
        match told.get("method"):
            case "Network.loadingFinished":
                self._finished.append(params["requestId"])
            case "Runtime.exceptionThrown":
                self.complaints.append(params["exceptionDetails"]["text"])
            case "Log.entryAdded" if params["entry"]["level"] == "error":
                self.complaints.append(f"{params['entry']['text']} {params['entry'].get('url', '')}")
            case "Page.javascriptDialogOpening":
                self.complaints.append(f"a dialog: {params['message']}")

    def open(self, url: str) -> None:
        """A page, whole, with its scripts."""
        self.call("Page.navigate", url=url)
        self.until(f"location.href === {json.dumps(url)} && document.readyState === 'complete'")

    def do(self, script: str) -> Any:
        """The value of an expression in the page; promises are awaited."""
        result = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in result, result["exceptionDetails"]
        return result["result"].get("value")

    def until(self, condition: str, seconds: float = 20.0) -> Any:
        """The value of an expression once it is true."""
        poll = (
            f"new Promise((resolve) => {{ const ends = Date.now() + {seconds * 1000}; const look = () => {{"
            f" const value = ({condition}); if (value || Date.now() > ends) resolve(value);"
            " else setTimeout(look, 10); }; look(); })"
        )
        found = self.do(poll)
        assert found, f"never true: {condition}"
        return found

    def received(self) -> bytes:
        """The bodies of all responses until now, whole."""
        self.do("1")
        parts = []
        for request in self._finished:
            told = self.call("Network.getResponseBody", requestId=request)
            parts.append(base64.b64decode(told["body"]) if told["base64Encoded"] else told["body"].encode())
        return b"\n".join(parts)

    def picture(self, width: int, height: int) -> bytes:
        """PNG of the page in a window of that size."""
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )
        return base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"])


@contextmanager
def browsing(chromium: list[str]) -> Iterator[Page]:
    """A page of a browser of its own; `chromium`: its command with flags."""
    to_read, to_write = os.pipe()
    from_read, from_write = os.pipe()
    command = [sys.executable, "-c", HANDED_OVER.format(to_read, from_write), *chromium]
    command += ["--remote-debugging-pipe", "about:blank"]
    process = subprocess.Popen(
        command, pass_fds=(to_read, from_write), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )  # fmt: skip
    os.close(to_read)
    os.close(from_write)
    try:
        yield Page(to_write, from_read)
    finally:
        process.kill()
        process.wait()
        os.close(to_write)
        os.close(from_read)
