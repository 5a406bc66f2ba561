"""An endpoint in a process of its own: `python -m training.endpoints.endpoint_process`, or `with endpoint(...) as url`.

It answers every question with the same fraction of the way to the upper bounds, after a pause; raw asyncio, so that it
costs little. Prints its port; ends when its standard input does.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

PART = 0.25


def answer(request: dict[str, Any]) -> dict[str, Any]:
    """What a fast agent says."""
    high = request["decision"]["action_space"]["high"]
    return {"request_id": request["request_id"], "action": [PART * bound for bound in high]}


async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, pause: float) -> None:
    """One connection: questions and answers until the client hangs up."""
    try:
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            at = head.lower().index(b"content-length:") + 15
            body = await reader.readexactly(int(head[at : head.index(b"\r\n", at)]))
            told = json.dumps(answer(json.loads(body))).encode()
            if pause:
                await asyncio.sleep(pause)
            writer.write(
                b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%b" % (len(told), told)
            )
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        pass
    finally:
        writer.close()


async def serve(pause: float) -> None:
    """Until standard input ends."""
    server = await asyncio.start_server(lambda reader, writer: connected(reader, writer, pause), "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    os._exit(0)  # connections and all


@contextmanager
def endpoint(pause: float = 0.0) -> Iterator[str]:
    """Its address."""
    command = [sys.executable, "-m", "training.endpoints.endpoint_process", "--pause", str(pause)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        try:
            yield f"http://127.0.0.1:{int(process.stdout.readline())}/respond"
        finally:
            process.stdin.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--pause", type=float, default=0.0)
    asyncio.run(serve(parser.parse_args().pause))
