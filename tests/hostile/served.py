"""Hostile requests: what `heron serve` and a seat's page are sent, and folders of simulations that were damaged."""

from __future__ import annotations

import contextlib
import json
import logging
import tempfile
import threading
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from calls import GRID, SMALL, Entry
from values import value
from verdict import ours_of, place_of

from heron_env import make

JSON = {"Content-Type": "application/json"}
NEW = {"env": GRID, "options": SMALL, "seed": 0}
INJECTION = {"agent_id": "battery_1", "endpoint_url": "http://127.0.0.1:9/respond", "timeout_seconds": 0.01}
FORMS: dict[str, Any] = {
    "": NEW,
    "/1/step": {"steps": 2, "actions": {"battery_1": 0.1}},
    "/1/reset": {"seed": 3},
    "/1/inject-agent": INJECTION,
}
"""What is sent to `/simulations...`, and a good one of each."""
LOOKS = ("", "/1", "/1/injected-agents", "/1/inject-agent/battery_1/metrics", "/1/inject-agent/%ff/metrics")
PATHS = (
    "/1/inject-agent/battery_1/health-check", "/1/inject-agent/battery_1", "/1", "/999", "/1/step", "/x", "/../1",
    "/1/step/1", "/%00", "/1%0a", "/" + "1" * 5000,
)  # fmt: skip
BODIES = (
    b"", b"\xff\xfe", b"[" * 50_000, b'{"a":' * 50_000, b"1e400", b'"\\ud800"', b"{}", b"[]", b"null", b"NaN", b"{",
)  # fmt: skip
WORDS = ("\ud800", "x" * 300, "\0", "../..", "heron/Nothing-v0", "os:sep", "<script>", "[red]", "", "1" * 400, "é")


class Wrong(Exception):
    """The service answered what it never may."""


class Faults(logging.Handler):
    """Where the server failed: its log says why."""

    last = ""

    def emit(self, record: logging.LogRecord) -> None:
        if record.exc_info and record.exc_info[1] is not None:
            error, trace = record.exc_info[1], traceback.extract_tb(record.exc_info[2])
            Faults.last = f"{type(error).__name__} at {place_of(ours_of(trace)) or '?'}: {str(error)[:120]}"


def plain(bad: Any, depth: int = 0) -> Any:
    """As JSON can say it."""
    if isinstance(bad, dict):
        return {str(key): plain(each, depth + 1) for key, each in bad.items()}
    if isinstance(bad, list | tuple) and depth < 200:
        return [plain(each, depth + 1) for each in bad]
    return bad if isinstance(bad, str | int | float | bool | None) else type(bad).__name__


def body(good: Any, draw: np.random.Generator) -> bytes:
    """A form of which something is spoilt, or no form at all."""
    if draw.random() < 0.15:
        return BODIES[draw.integers(len(BODIES))]
    form = json.loads(json.dumps(good)) if isinstance(good, dict) else {}
    keys = [*form, "unknown"]
    bad = WORDS[draw.integers(len(WORDS))] if draw.random() < 0.3 else plain(value(draw))
    place, key = form, keys[draw.integers(len(keys))]
    if nested := [name for name in form if isinstance(form[name], dict) and draw.random() < 0.5]:
        place = form[nested[0]]
        keys = [*place, "observability", "battery_2", "\ud800", "*"]
        key = keys[draw.integers(len(keys))]
    place[key] = bad
    with contextlib.suppress(RecursionError, ValueError):
        return json.dumps(form).encode()
    return b"{}"


@contextlib.contextmanager
def client(folder: Path) -> Iterator[Any]:
    """The application on this folder."""
    from starlette.testclient import TestClient

    from heron_env.net.guard import Guard
    from heron_env.serve.app import application
    from heron_env.serve.shelf import Shelf

    log = logging.getLogger("heron_env")
    log.handlers, log.propagate = [Faults()], False
    shelf = Shelf(folder, guard=Guard((), loopback=True))
    try:
        with TestClient(application(shelf), raise_server_exceptions=False, headers=JSON) as made:
            yield made
    finally:
        shelf.close()


def require_words(answer: Any) -> None:
    """Raise Wrong for a fault of the server, a refusal without words, and what is no JSON."""
    if answer.status_code >= 500:
        asked = f"{answer.request.method} {answer.request.url.path[:40]}"
        raise Wrong(f"{answer.status_code} for {asked}: {Faults.last}")
    if answer.status_code == 204:
        return
    try:
        error = answer.json()["error"] if answer.status_code >= 400 else {"code": "none", "message": "none"}
        silent = not (error["code"] and error["message"].strip())
    except (ValueError, KeyError, TypeError) as fault:
        raise Wrong(f"{answer.status_code}, and no error of ours: {answer.text[:200]}") from fault
    if silent:
        raise Wrong(f"{answer.status_code} without words: {error}")


def requested(draw: np.random.Generator) -> Callable[[], Any]:
    """Some requests to a service that has one simulation; afterwards a good step must do."""
    asked: list[tuple[str, str, bytes | None]] = []
    for _ in range(draw.integers(1, 4)):
        if draw.random() < 0.65:
            path = [*FORMS][draw.integers(len(FORMS))]
            asked.append(("POST", path, body(FORMS[path], draw)))
        elif draw.random() < 0.5:
            asked.append(("GET", LOOKS[draw.integers(len(LOOKS))], None))
        else:
            verb = ("GET", "POST", "DELETE", "PUT", "PATCH")[draw.integers(5)]
            asked.append((verb, PATHS[draw.integers(len(PATHS))], body(NEW, draw) if verb == "POST" else None))

    def ask() -> None:
        with tempfile.TemporaryDirectory() as folder, client(Path(folder)) as service:
            assert service.post("/simulations", json=NEW).status_code == 201
            for verb, path, content in asked:
                require_words(service.request(verb, f"/simulations{path}", content=content))
            require_words(last := service.get("/simulations"))
            for each in last.json():
                require_words(service.post(f"/simulations/{each['id']}/step", json={}))

    return ask


def answered(draw: np.random.Generator) -> Callable[[], Any]:
    """What the page of a seat may be sent while a question is open: the question stays open until it is answered."""
    good = {"number": 1, "action": [0.1]}
    bodies = [body(good, draw) for _ in range(draw.integers(1, 4))]
    asks = [("after", "x"), ("wait", "nan"), ("after", "1e400"), ("after", "-1"), ("wait", "-1"), ("after", "9" * 5000)]
    look = asks[draw.integers(len(asks))]

    def ask() -> None:
        from starlette.testclient import TestClient

        from heron_env.serve.seats import Seat, seat_application

        env = make(GRID, num_batteries=2, max_steps=1)
        seat = Seat(env, "battery_1", timeout=20.0)
        policy = seat.policy(env, "http://127.0.0.1/seat")
        results: list[Any] = []

        def play() -> None:
            try:
                results.append(env.run_synchronous({"battery_1": policy, "battery_2": lambda vector: 0.0}, seed=0))
            except BaseException as error:  # noqa: BLE001  told below
                results.append(error)

        run = threading.Thread(target=play, daemon=True)
        with TestClient(seat_application([seat]), raise_server_exceptions=False, headers=JSON) as page:
            run.start()
            try:
                require_words(page.get(f"/seat/{seat.token}/asked", params={"after": "-1", "wait": "5"}))
                for content in bodies:
                    require_words(page.post(f"/seat/{seat.token}/answer", content=content))
                require_words(page.get(f"/seat/{seat.token}/asked", params=dict([look])))
                require_words(page.post(f"/seat/{seat.token}/answer", json=good))
            finally:
                seat.close()
                run.join(5.0)
        if not results or isinstance(results[0], BaseException):
            raise Wrong(f"the run goes on after its seat was closed, or ended in an error: {results}")

    return ask


def kept(base: Path) -> None:
    """A folder of one simulation, made in `base`: stepped, reset, with an agent that an endpoint plays."""
    with client(base) as service:
        for path, form in FORMS.items():
            assert service.post(f"/simulations{path}", json=form).status_code in (200, 201), path
        assert service.post("/simulations/1/step", json={}).status_code == 200


def restarted(folder: Path) -> None:
    """A service that finds this folder: every look and a step get an answer."""
    with client(folder) as service:
        for path in LOOKS:
            require_words(service.get(f"/simulations{path}"))
        require_words(service.post("/simulations/1/step", json={}))
        require_words(service.delete("/simulations/1"))


def entries() -> dict[str, Entry]:
    """Both."""
    return {**{f"service {number}": requested for number in range(6)}, "seat": answered}
