"""What a decision adds to memory, whatever body comes.

Run as a program it is the process that is measured: it reads addresses, and forks for each of them. So no body's server
and no earlier body has left memory behind that a later one would fill unseen.
"""

from __future__ import annotations

import ctypes
import gc
import json
import os
import subprocess
import sys
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fault_server import FAULTS, MIB, Exchange, Fault, FaultServer

from heron_env.net.outcome import MOST_VALUES
from training.bars import Bar, Found, Setting
from training.endpoints.client import asked_at, question

MOST = 8.0
"""MiB that a decision may add."""
FORGET = Path("/proc/self/clear_refs")
"""Writing 5 makes the system forget the highest mark of resident memory."""


def bodies() -> dict[str, Fault]:
    """All of the fault server that have one, and bodies as costly as a limit of 1 MiB allows."""
    full = MIB - 64
    made: dict[str, Callable[[], bytes]] = {
        "numbers": lambda: b'{"debug": [' + b"1," * (full // 2) + b"1]}",
        "small objects": lambda: b'{"debug": [' + b"{}," * (full // 3) + b"1]}",
        "distinct keys": lambda: json.dumps({"debug": {f"{i:x}": i for i in range(70_000)}}).encode(),
        "escapes": lambda: b'{"response_text": "' + rb"\u00e9" * (full // 6) + b'"}',
        "pairs of surrogates": lambda: b'{"response_text": "' + rb"\ud83d\ude00" * (full // 12) + b'"}',
        "an action of many numbers": lambda: b'{"action": [' + b"0," * (full // 2) + b"0]}",
        "letters": lambda: b'{"action": [0], "letters": [' + b'{"receiver":"a","body":1},' * 39_000 + b"1]}",
        # As many values as are let through, in the forms that take most memory, once more in each copy that is made.
        "objects that are let through": lambda: _filled(lambda i: {f"{i:08x}" * 4: i + 0.5}, MOST_VALUES // 2 - 8),
        "lists that are let through": lambda: _filled(lambda i: [i + 0.5], MOST_VALUES // 2 - 8),
        "objects beside wide text": lambda: (
            json.dumps(
                {
                    "action": [0],
                    "debug": {"all": [{f"{i:08x}": i + 0.5} for i in range(MOST_VALUES // 2 - 8)]},
                    "explanation": "a" * 640_000,
                }
            ).encode()[:-2]
            + '\U0001f600"}'.encode()
        ),
        "objects in objects": lambda: json.dumps(
            {"action": [0], "debug": {f"{i:08x}": {} for i in range(MOST_VALUES // 2 - 8)}}
        ).encode(),
        "letters that are let through": lambda: json.dumps(
            {"action": [0], "letters": [{"receiver": "a", "body": [i]} for i in range(MOST_VALUES // 4 - 8)]}
        ).encode(),
        "thoughts": lambda: b'{"action": [0], "reasoning": "' + b"a" * full + b'"}',
        "text": lambda: b'{"action": [0], "explanation": "' + b"a" * (full - 64) + b'"}',
        "a little text in a wide alphabet": lambda: ('{"explanation": "\U0001f600' + "a" * 900_000 + '"}').encode(),
    }

    def behave(body: Callable[[], bytes]) -> Callable[[Exchange], Any]:
        async def respond(exchange: Exchange) -> None:
            await exchange.respond(body())

        return respond

    hostile = {name: Fault(name, behave(body), "") for name, body in made.items()}
    answered = ("INVALID_RESPONSE", "INVALID_ACTION", "RESPONSE_TOO_LARGE", "CONNECTION")
    served = {name: fault for name, fault in FAULTS.items() if fault.code in answered and fault.arrive is None}
    return served | hostile


def _filled(item: Callable[[int], Any], count: int) -> bytes:
    body = {"action": [0], "debug": {"all": [item(i) for i in range(count)]}}
    return json.dumps(body, separators=(",", ":")).encode()


def peaks(url: str) -> tuple[float, float, float, str]:
    """A good answer, then the body twice; MiB that resident and Python's memory grew by, at their most.

    Twice as the tracer has a memory of its own: the first time the system's count, the second time Python's.
    """
    policy = asked_at(url)
    policy.answer(question(0))
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    FORGET.write_text("5")
    before = _status("VmRSS")
    answer = policy.answer(question(1))
    grown = _status("VmHWM") - before
    tracemalloc.start()
    start = tracemalloc.get_traced_memory()[0]
    policy.answer(question(2))
    traced = (tracemalloc.get_traced_memory()[1] - start) / MIB
    return grown, traced, before, answer.origin.code if answer.origin else "?"


def _status(name: str) -> float:
    """A line of this process's memory, MiB."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(f"{name}:"))


def measured_process() -> None:
    """A fork for each address that comes; its figures go to standard output."""
    question()
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            try:
                print(json.dumps(peaks(line.strip())), flush=True)
            finally:
                os._exit(0)
        if os.waitpid(child, 0)[1] != 0:
            break


def memory(setting: Setting) -> Found:
    """Every body in a process of its own; the server is here."""
    if not FORGET.exists():
        return Found("this system does not tell the highest mark of memory", None)
    chosen = list(bodies().items())[:: 6 if setting.quick else 1]
    found: dict[str, Any] = {}
    command = [sys.executable, "-m", "training.endpoints.memory"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for name, fault in chosen:
            with FaultServer("good", fault, answer=lambda request: {"action": [0.0]}) as server:
                process.stdin.write(f"{server.url}\n")
                found[name] = json.loads(process.stdout.readline())
        process.stdin.close()
    resident = max((each[0], name) for name, each in found.items())
    python = max((each[1], name) for name, each in found.items())
    words = (
        f"{len(found)} bodies, each in a process of its own: resident memory grew by at most {resident[0]:.1f} MiB "
        f"({resident[1]}), Python's by {python[0]:.1f} ({python[1]})"
    )
    return Found(words, max(resident[0], python[0]) < MOST, {"MiB resident, Python's, before; code": found})


BARS = (Bar("memory", "memory under every body", "+ < 8 MiB", memory),)

if __name__ == "__main__":
    measured_process()
