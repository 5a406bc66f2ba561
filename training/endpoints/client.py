"""What the client promises whatever an endpoint does: deadline, breaker, pace."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from fake_clock import FakeClock
from fault_server import FAULTS, Exchange, Fault, FaultServer

from heron_env import Asked, make
from heron_env.injection import BreakerConfig, ConcurrencyConfig, Endpoint, ExternalPolicy
from heron_env.injection.endpoint import Connection, client_of
from heron_env.net.client import Client
from heron_env.net.limits import Circuit
from training.bars import Bar, Found, Setting

T = 1.0
"""The deadline that is tested in real time, s."""
SLOW = ("silence", "slow headers", "dripping body", "silence in mid body", "interim responses for ever")


def asked_at(url: str, clock: Any = None, **told: Any) -> ExternalPolicy:
    """A policy that asks there, as fast as it can."""
    shared: dict[str, Any] = {"concurrency": ConcurrencyConfig(qps_cap=10_000), **told}
    endpoint = Endpoint(url, **shared)
    line = Connection(endpoint, lambda one: client_of(one, clock))
    return ExternalPolicy(endpoint, env=make("heron/BatteryGrid-v0"), fallback="skip", line=line)


@contextmanager
def asking(server: FaultServer, clock: Any = None, **told: Any) -> Iterator[ExternalPolicy]:
    """A policy that asks the server."""
    policy = asked_at(server.url, clock, **told)
    try:
        yield policy
    finally:
        policy.close()


def question(number: int = 0) -> Asked:
    """One that `battery_1` is asked."""
    env = make("heron/BatteryGrid-v0")
    names = tuple(env.observation_names("battery_1"))
    vector, space = np.zeros(len(names), np.float32), env.action_space("battery_1")
    return Asked("battery_1", vector, names, number, number, float(number), 7, 0, space)


def deadline(setting: Setting) -> Found:
    """A whole decision, timed from outside."""
    took: dict[str, list[float]] = {}
    for name in SLOW:
        with FaultServer(name, beat=0.02) as server, asking(server, timeout=T) as policy:
            for turn in range(2 if setting.quick else 5):
                asked = question(turn)
                began = time.perf_counter()
                answer = policy.answer(asked)
                took.setdefault(name, []).append(time.perf_counter() - began)
                if answer.origin is None or answer.origin.code != "TIMEOUT":
                    return Found(f"{name}: {answer.origin}", False)
    every = [seconds for each in took.values() for seconds in each]
    met = all(0.9 * T <= seconds <= 1.1 * T for seconds in every)
    words = f"{len(SLOW)} kinds of slowness, {len(every)} decisions: {min(every):.3f} to {max(every):.3f} s"
    return Found(words, met, {"seconds": took})


def half_open(setting: Setting) -> Found:
    """Twenty threads at once; then twenty agents of one instant; then with a probe that fails."""
    sent = []
    for turn in range(2 if setting.quick else 10):
        sent += [_threads(), _together(good=turn % 2 == 0)]
    return Found(f"requests in {len(sent)} trials, threads and one instant in turns: {sent}", set(sent) == {1})


def _opened(server: FaultServer, policy: ExternalPolicy, clock: FakeClock) -> Client:
    """Five failures, then 30 s."""
    for number in range(5):
        policy.answer(question(number))
    clock.advance(30.0)
    client = policy.line.client
    if client.circuit is not Circuit.HALF_OPEN or server.requests != 5:
        raise RuntimeError(f"the circuit is {client.circuit} after {server.requests} requests")
    return client


def _threads() -> int:
    hold, refused, at_once = threading.Event(), threading.Semaphore(0), threading.Barrier(20)

    async def held(exchange: Exchange) -> None:
        import asyncio

        await asyncio.to_thread(hold.wait)
        await exchange.respond(json.dumps({"action": [0.0]}).encode())

    clock = FakeClock()
    faults = [FAULTS["503 Service Unavailable"]] * 5 + [Fault("held", held, "")]
    with FaultServer(*faults, clock=clock) as server, asking(server, clock) as policy:
        _opened(server, policy, clock)

        def call(number: int) -> None:
            at_once.wait()
            policy.answer(question(number))
            refused.release()

        threads = [threading.Thread(target=call, args=(number,)) for number in range(100, 120)]
        for thread in threads:
            thread.start()
        for _ in range(19):
            refused.acquire()
        hold.set()
        for thread in threads:
            thread.join()
        return server.requests - 5


def _together(good: bool) -> int:
    clock = FakeClock()
    last = "good" if good else "503 Service Unavailable"
    answer = lambda request: {"action": [0.0]}  # noqa: E731
    with (
        FaultServer(*["503 Service Unavailable"] * 5, last, clock=clock, answer=answer) as server,
        asking(server, clock) as policy,
    ):
        _opened(server, policy, clock)
        policy.answer_all([question(number) for number in range(100, 120)])
        return server.requests - 5


def breaker(setting: Setting) -> Found:
    """The Hypothesis state machine of the tests, over more steps."""
    from breaker_model import compare_with_model

    needed = 1_000 if setting.quick else 10_000
    try:
        steps = compare_with_model(needed)
    except AssertionError as error:
        return Found(f"another than its model: {error}", False)
    return Found(f"equal over {steps:,} steps", steps >= needed, {"steps": steps})


def pacing(setting: Setting) -> Found:
    """Sixty batteries, real time; the server counts what is under way, and what arrives in any second."""
    steps, qps, most = 3 if setting.quick else 10, 100, 10

    async def slow(exchange: Exchange) -> None:
        await exchange.pause(0.02)
        await exchange.respond(exchange.good)

    env = make("heron/BatteryGrid-v0", num_batteries=60, zone_size=10, max_steps=steps)
    with FaultServer(Fault("slow", slow, ""), answer=lambda request: {"action": [0.1]}) as server:
        told = Endpoint(server.url, timeout=30.0, breaker=BreakerConfig())  # caps as they are by default
        policy = ExternalPolicy(told, env=env)
        result = env.run_synchronous({"*": policy}, seed=1)
        policy.close()
    external = sum(origin.source == "external" for told_ in result.origins.values() for _, origin in told_)
    window = busiest(server.arrivals, 1.0)
    words = (
        f"{server.requests} requests, {external} answers counted: at most {server.most_in_flight} in flight, "
        f"{window} in the busiest second"
    )
    met = server.most_in_flight <= most and window <= qps and external == server.requests == 60 * steps
    return Found(words, met, {"in_flight": server.most_in_flight, "busiest_second": window, "requests": external})


def busiest(times: list[float], seconds: float) -> int:
    """The most of them in any window that long.

    >>> busiest([0.0, 0.5, 0.999, 1.0, 1.4], 1.0)
    4
    """
    ordered, most, first = sorted(times), 0, 0
    for last, now in enumerate(ordered):
        while now - ordered[first] >= seconds:
            first += 1
        most = max(most, last - first + 1)
    return most


BARS = (
    Bar("deadline", "deadline under silence, slow headers, drip", "T ± 10 %, T = 1 s", deadline),
    Bar("half-open", "20 callers at a half-open circuit", "1 request", half_open),
    Bar("breaker", "breaker against its model (Hypothesis state machine)", "equal over 10,000 steps", breaker),
    Bar("pacing", "60 agents, one endpoint", "in flight <= 10; <= qps in any one-second window", pacing),
)
