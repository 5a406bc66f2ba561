"""Python processes that begin at once: forked from one that has imported what nodes and relays need."""

from __future__ import annotations

import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

SERVE = "import socket, sys; sys.path[:] = {path!r}; from real.quick import serve; serve(socket.socket(fileno={fd}))"
IMPORTED = ("heron_env.real.carried", "heron_env.real.node", "heron_env.lab.policies", "asyncio.selector_events")


def serve(control: socket.socket) -> None:
    """In the process that is forked: one child for each command, which gets the three files sent with it."""
    for module in IMPORTED:
        __import__(module)
    from laws import checks_letters  # noqa: F401 - for nodes that load policies of it
    from real.real_policies import market

    market().reset(seed=0)  # the loops are compiled once for all
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody asks how children ended
    while True:
        command, files, _, _ = socket.recv_fds(control, 1_000_000, 3)
        if not command:
            return
        if pid := os.fork():
            for file in files:
                os.close(file)
            control.send(str(pid).encode())
        else:
            control.close()
            become(json.loads(command), files)


def become(arguments: Sequence[str], files: Sequence[int]) -> None:
    """What `python ARGUMENTS...` does, for -c and -m."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    code = 1
    try:
        how, what, *rest = arguments
        sys.argv = [what, *rest]
        if how == "-c":
            exec(what, {"__name__": "__main__"})
        else:
            sys.modules.pop(what, None)
            runpy.run_module(what, run_name="__main__", alter_sys=True)
        code = 0
    except BaseException:  # noqa: BLE001 - the child of a fork ends here, whatever it raised
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


class Starter:
    """Starts such processes; stands where a module has `subprocess`."""

    PIPE = subprocess.PIPE
    TimeoutExpired = subprocess.TimeoutExpired

    def __init__(self, control: socket.socket) -> None:
        self.control = control
        self.errors: int | None = None
        """A file for what children write to stderr; None: ours."""

    def Popen(self, command: Sequence[str], *, stdin: int, stdout: int | None = None, text: bool = False) -> Process:
        """A process; its stdin is a pipe."""
        theirs, ours = os.pipe()
        answers, its = os.pipe() if stdout == subprocess.PIPE else (-1, os.dup(1))
        errors = os.dup(2 if self.errors is None else self.errors)
        socket.send_fds(self.control, [json.dumps(command[1:]).encode()], [theirs, its, errors])
        for file in (theirs, its, errors):
            os.close(file)
        return Process(int(self.control.recv(100)), ours, answers, text)


class Process:
    """As subprocess.Popen, as far as it is used."""

    def __init__(self, pid: int, stdin: int, stdout: int, text: bool) -> None:
        mode = "" if text else "b"
        self.pid, self._watch = pid, os.pidfd_open(pid)
        self.stdin: Any = os.fdopen(stdin, f"w{mode}")
        self.stdout: Any = os.fdopen(stdout, f"r{mode}") if stdout >= 0 else None

    def __enter__(self) -> Process:
        return self

    def __exit__(self, *error: object) -> None:
        self.communicate(10.0)

    def terminate(self) -> None:
        """SIGTERM."""
        self.send_signal(signal.SIGTERM)

    def poll(self) -> int | None:
        """0 where it has ended, however."""
        return 0 if self._watch < 0 or select.select([self._watch], [], [], 0.0)[0] else None

    def wait(self, timeout: float | None = None) -> int:
        """Until it has ended."""
        if self._watch >= 0:
            if not select.select([self._watch], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired("a child", timeout or 0.0)
            os.close(self._watch)
            self._watch = -1
            for file in (self.stdin, self.stdout):
                if file is not None:
                    file.close()
        return 0

    def communicate(self, timeout: float | None = None) -> None:
        """Close its stdin, and wait."""
        self.stdin.close()
        self.wait(timeout)

    def send_signal(self, number: int) -> None:
        """If it still runs."""
        if self.poll() is None:
            signal.pidfd_send_signal(self._watch, number)

    def kill(self) -> None:
        """SIGKILL."""
        self.send_signal(signal.SIGKILL)


@contextmanager
def starter() -> Iterator[Starter]:
    """The process that is forked ends with the block."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours:
        with theirs:
            code = SERVE.format(path=sys.path, fd=theirs.fileno())
            process = subprocess.Popen([sys.executable, "-c", code], pass_fds=[theirs.fileno()])
        try:
            yield Starter(ours)
        finally:
            ours.shutdown(socket.SHUT_RDWR)
            process.wait(10)
