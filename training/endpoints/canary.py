"""A key that must be nowhere but in the header it is for: searched in all that an external agent leaves behind."""

from __future__ import annotations

import base64
import json
import logging
import os
import pickle
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from fault_server import FAULTS, Exchange, Fault, FaultServer
from serve.service import Service

from heron_env import make
from heron_env.injection import (
    ConcurrencyConfig,
    Endpoint,
    ExternalPolicy,
    Recorded,
    Recording,
    load_agents,
    serve_policy,
)
from heron_env.injection.contract import schema
from training.bars import Bar, Found, Setting
from training.endpoints.client import asked_at, question

VARIABLE, KEY = "HERON_CANARY_KEY", "canary-5f1dE9b27c40Aa83-END"
PART = 12
"""Characters of the key that are looked for, so that one that was cut off is found, too."""
TOLD: dict[str, Any] = {"api_key_env": VARIABLE, "privacy_tier": "full"}
Kept = dict[str, list[bytes]]
"""What was left behind, by channel."""


def traces() -> list[bytes]:
    """Parts of the key, as they are, in hex, and in base64 at each of its three places, in lower case."""
    parts = [KEY[at : at + PART] for at in range(len(KEY) - PART + 1)]
    looked = [part.encode() for part in parts] + [part.encode().hex().encode() for part in parts]
    for text in (KEY, f"Bearer {KEY}", f":{KEY}", f"::{KEY}"):
        code = base64.b64encode(text.encode())
        looked += [code[at : at + 16] for at in range(4, len(code) - 16, 4)]
    return [*{one.lower() for one in looked}, KEY[::-1].lower().encode(), KEY.encode("utf-16-le").lower()]


def hits(kept: Kept) -> dict[str, int]:
    """Texts that hold a trace of the key, by channel."""
    looked = traces()
    return {
        channel: sum(any(one in text.lower() for one in looked) for text in texts) for channel, texts in kept.items()
    }


def keep(kept: Kept, channel: str, *things: Any) -> None:
    """Remember texts, bytes, or how other things are shown."""
    for thing in things:
        text = thing if isinstance(thing, bytes) else str(thing).encode("utf-8", "backslashreplace")
        kept.setdefault(channel, []).append(text)


class Catching(logging.Handler):
    """Every record of every logger, with all that it holds."""

    def __init__(self, kept: Kept) -> None:
        super().__init__(logging.DEBUG)
        self._kept = kept

    def emit(self, record: logging.LogRecord) -> None:
        """Message, arguments and error."""
        keep(self._kept, "logs", self.format(record), repr(record.__dict__))


@contextmanager
def logged(kept: Kept) -> Iterator[None]:
    """All loggers at their most talkative."""
    root, handler = logging.getLogger(), Catching(kept)
    names = [None, "httpx", "httpcore", "httpcore.http11", "httpcore.connection", "asyncio", "heron_env"]
    before = {name: logging.getLogger(name).level for name in names}
    root.addHandler(handler)
    for name in names:
        logging.getLogger(name).setLevel(logging.DEBUG)
    try:
        yield
    finally:
        root.removeHandler(handler)
        for name, level in before.items():
            logging.getLogger(name).setLevel(level)


def raised(kept: Kept, do: Callable[[], object]) -> bool:
    """Keep what an error says, in all the ways that it is shown."""
    try:
        do()
    except Exception as error:  # noqa: BLE001  (whatever it is, what it says is searched)
        keep(kept, "errors", error, repr(error), "".join(traceback.format_exception(error)), repr(error.__dict__))
        return True
    return False


def faults(kept: Kept, setting: Setting) -> int:
    """A decision under every fault, as an error and as a fallback; how many headers had the key."""
    brought = 0
    for fault in list(FAULTS.values())[:: 8 if setting.quick else 1]:
        if fault.code in ("TIMEOUT", "RATE_LIMITED"):
            continue  # they take real time, below with a fake clock
        with FaultServer(fault, record=True) as server:
            brought += failed(kept, server, None)
    from fake_clock import FakeClock

    for fault in [one for one in FAULTS.values() if one.code in ("TIMEOUT", "RATE_LIMITED")]:
        clock = FakeClock()
        with FaultServer(fault, clock=clock, record=True) as server:
            brought += failed(kept, server, clock)
    return brought


def failed(kept: Kept, server: FaultServer, clock: Any) -> int:
    """One question whose fallback is an error, one whose fallback is nothing."""
    policy = asked_at(server.url, clock, **TOLD)
    strict = ExternalPolicy(policy.endpoint, fallback="fail", line=policy.line, env=make("heron/BatteryGrid-v0"))
    if not raised(kept, lambda: strict.answer(question(0))):
        raise RuntimeError("a fault raised nothing")
    answer = policy.answer(question(1))
    client = policy.line.client
    shown = (policy, policy.endpoint, policy.line, client, client.__dict__, client.stats, client.address, answer)
    keep(kept, "reprs", *shown, policy.metrics(), policy.questions, vars(policy), client._home)
    keep(kept, "bodies", *server.bodies)
    policy.close()
    return sum(KEY.encode() in head for head in server.heads)


def course(kept: Kept, setting: Setting) -> int:
    """A recorded and replayed episode; the endpoint says other things, too. Headers that had the key."""
    path, env = setting.scratch / "run.jsonl", make("heron/BatteryGrid-v0", max_steps=15)
    with FaultServer(answer=lambda request: {"action": [0.5], "explanation": "why not"}, record=True) as server:
        endpoint = Endpoint(server.url, concurrency=ConcurrencyConfig(qps_cap=10_000), **TOLD)
        with Recording(ExternalPolicy(endpoint, env=env), path) as recording:
            result = env.run_event_driven({"*": recording}, seed=1, trace=True)
            keep(kept, "reprs", recording, result, result._repr_html_(), env, endpoint, vars(recording))
            keep(kept, "reprs", pickle.dumps(recording), pickle.dumps(endpoint), pickle.dumps(result.trace))
        keep(kept, "bodies", *server.bodies)
        brought = sum(KEY.encode() in head for head in server.heads)
    keep(kept, "fixtures", path.read_bytes(), json.dumps(Recorded(path).to_adr()))
    return brought


class Echo:
    """An endpoint that says back what it was brought: it knows the key, but our files need not."""

    async def behave(self, exchange: Exchange) -> None:
        """In every field that is text."""
        said = exchange.server.heads[-1].decode()
        content = {"action": [0.5], "explanation": said, "debug": {"heads": said}, "response_text": said, "mood": said}
        await exchange.respond(json.dumps(content).encode())


def echoed(kept: Kept, setting: Setting) -> None:
    """What stays of an endpoint that sends the key back."""
    path, env = setting.scratch / "echo.jsonl", make("heron/BatteryGrid-v0", max_steps=5)
    with FaultServer(Fault("echo", Echo().behave, ""), record=True) as server:
        endpoint = Endpoint(server.url, concurrency=ConcurrencyConfig(qps_cap=10_000), **TOLD)
        with Recording(ExternalPolicy(endpoint, env=env), path) as recording:
            env.run_synchronous({"*": recording}, seed=1)
    keep(kept, "fixtures of an endpoint that echoes its headers", path.read_bytes())


def mistakes(kept: Kept, setting: Setting) -> None:
    """The key where it does not belong: in calls, addresses and files."""
    block = setting.scratch / "agents.yaml"
    wrong: list[Callable[[], object]] = [
        lambda: Endpoint("https://agent.test/", api_key_env=KEY),
        lambda: Endpoint("https://agent.test/", api_key=KEY),  # type: ignore[call-arg]
        lambda: Endpoint(f"https://user:{KEY}@agent.test/"),
        lambda: Endpoint(f"https://agent.test/#{KEY}"),
        lambda: ExternalPolicy(f"https://{KEY}@agent.test/"),
    ]
    for line in (f"api_key: {KEY}", f"api_key_env: {KEY}", f"url: https://u:{KEY}@agent.test/"):
        text = f"endpoints:\n- agent_id: battery_1\n  {line}\n" + ("" if "url" in line else "  url: https://a.test/\n")
        wrong.append(lambda text=text: (block.write_text(text), load_agents(block)))  # type: ignore[misc]
    for number, do in enumerate(wrong):
        if not raised(kept, do):
            raise RuntimeError(f"mistake {number} raised nothing")
    os.environ[f"{VARIABLE}_BLANK"] = f"{KEY} {KEY}"
    blank = ExternalPolicy(Endpoint("http://127.0.0.1:9/", api_key_env=f"{VARIABLE}_BLANK"))
    if not raised(kept, lambda: blank.answer(question())):
        raise RuntimeError("a key with a blank was taken")


def still(vector: Any) -> Any:
    """Nothing."""
    return np.zeros(1)


def journals(kept: Kept, setting: Setting) -> None:
    """A service that knows the key by name: its folder, its answers, its errors, its OpenAPI."""
    folder = setting.scratch / "shelf"
    os.environ[VARIABLE] = KEY
    with serve_policy(still, make("heron/BatteryGrid-v0"), token_env=VARIABLE) as server:
        with Service(folder, "--allow-loopback", "--key-env", VARIABLE) as service:
            _, made = service.ask("POST", "/simulations", {"env": "heron/BatteryGrid-v0", "seed": 1})
            at = f"/simulations/{made['id']}"
            form = {"agent_id": "battery_1", "endpoint_url": server.url}
            told = [
                service.ask("POST", f"{at}/inject-agent", {**form, "api_key": KEY}),
                service.ask("POST", f"{at}/inject-agent", {**form, "api_key_env": KEY}),
                service.ask("POST", f"{at}/inject-agent", {**form, "endpoint_url": f"http://u:{KEY}@127.0.0.1:1/"}),
                service.ask("POST", f"{at}/inject-agent", {**form, "api_key_env": VARIABLE}),
                service.ask("POST", f"{at}/step", {"steps": 5}),
                service.ask("GET", f"{at}/injected-agents"),
                service.ask("GET", f"{at}/inject-agent/battery_1/metrics"),
                service.ask("POST", f"{at}/inject-agent/battery_1/health-check"),
                service.ask("GET", at),
            ]
            keep(kept, "answers of the service", *map(json.dumps, told))
            keep(kept, "OpenAPI", json.dumps(service.ask("GET", "/openapi.json")), json.dumps(schema()))
            if [status for status, _ in told] != [422, 422, 422, 201, 200, 200, 200, 200, 200]:
                raise RuntimeError(f"the service answered {[status for status, _ in told]}")
        if not server.served.requests:
            raise RuntimeError("the endpoint behind the service was never asked")
        keep(kept, "logs", service.errors)
    keep(kept, "journals", *(path.read_bytes() for path in folder.rglob("*") if path.is_file()))


def canary(setting: Setting) -> Found:
    """All channels; that the search finds what is there is shown on the headers, where the key belongs."""
    os.environ[VARIABLE] = KEY
    kept: Kept = {}
    with logged(kept):
        brought = faults(kept, setting) + course(kept, setting)
        mistakes(kept, setting)
        echoed(kept, setting)
    journals(kept, setting)
    found = hits(kept)
    control = hits({"header": [f"Authorization: Bearer {KEY}".encode()], "cut": [KEY[5:20].encode()]})
    if not brought or set(control.values()) != {1} or min(map(len, kept.values())) == 0:
        return Found(f"no key was sent ({brought}), or the search finds nothing", False)
    told = ", ".join(f"{channel} {found[channel]} of {len(texts)}" for channel, texts in kept.items())
    words = f"{sum(found.values())} hits; texts with one: {told}; the key arrived in {brought} headers"
    where = [
        text[:300].decode(errors="replace")
        for texts in kept.values()
        for text in texts
        if any(hits({"x": [text]}).values())
    ]
    return Found(words, sum(found.values()) == 0, {"hits": found, "examples": where[:3]})


BARS = (Bar("canary", "canary key in bodies, logs, reprs, errors, fixtures, journals, OpenAPI", "0 hits", canary),)
