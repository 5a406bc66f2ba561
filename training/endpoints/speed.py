"""How fast: ten agents together, and a decision beside a bare request; the endpoint is in a process of its own."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import httpx

from heron_env import Answer, Asked, make
from heron_env.injection import ConcurrencyConfig, Endpoint, ExternalPolicy
from heron_env.net.wire import SHARED
from training.bars import Bar, Found, Setting
from training.endpoints.client import question
from training.endpoints.endpoint_process import endpoint

TOGETHER, NEAR = 0.4, 1.5
PAUSE = 0.02
"""After which the endpoint answers, s."""
UNCAPPED = ConcurrencyConfig(qps_cap=1_000_000)


class OneByOne:
    """The same policy, asked one question after the other."""

    def __init__(self, policy: ExternalPolicy) -> None:
        self._policy, self.begin = policy, policy.begin

    def answer(self, asked: Asked) -> Answer:
        """Of the policy."""
        return self._policy.answer(asked)


def together(setting: Setting) -> Found:
    """Whole episodes in turns; the cap of requests a second is lifted in both, as it would hold back both."""
    agents, steps, turns = 10, 10 if setting.quick else 50, 1 if setting.quick else 3
    env = make("heron/BatteryGrid-v0", num_batteries=agents, max_steps=steps)
    took: dict[str, list[float]] = {"together": [], "one by one": []}
    with endpoint(PAUSE) as url:
        policy = ExternalPolicy(Endpoint(url, concurrency=UNCAPPED), env=env)
        policy.answer_all([question(number) for number in range(10)])  # connects, imports what it needs
        for _ in range(turns):
            results = []
            for name, asked in (("together", policy), ("one by one", OneByOne(policy))):
                began = time.perf_counter()
                results.append(env.run_synchronous({"*": asked}, seed=0))
                took[name].append(time.perf_counter() - began)
            if not results[0].same_course(results[1]) or _answered(results) != 2 * agents * steps:
                return Found("the courses differ, or answers were missing", False)
        policy.close()
    ratios = [a / b for a, b in zip(took["together"], took["one by one"], strict=True)]
    ratio = statistics.median(ratios)
    words = (
        f"{ratio:.3f}: {statistics.median(took['together']):.2f} s together, "
        f"{statistics.median(took['one by one']):.2f} s one by one, median of {turns}"
    )
    return Found(words, ratio <= TOGETHER, {"seconds": took})


def _answered(results: list[Any]) -> int:
    return sum(o.source == "external" for result in results for told in result.origins.values() for _, o in told)


class Bare:
    """A plain client that posts the same bytes to the same endpoint and parses the answer, on the same loop."""

    def __init__(self, url: str, body: bytes) -> None:
        self._url, self._body, self._http = url, body, httpx.AsyncClient(timeout=30.0)

    async def post(self) -> Any:
        """One request."""
        response = await self._http.post(self._url, content=self._body, headers={"Content-Type": "application/json"})
        return response.json()

    def call(self) -> Any:
        """The same for a caller on another thread, as ours is."""
        return SHARED.run(self.post())

    async def many(self, count: int) -> list[float]:
        """What each of so many took, seen from the loop itself: without the way between threads."""
        took = []
        for _ in range(count):
            began = time.perf_counter()
            await self.post()
            took.append(time.perf_counter() - began)
        return took

    def close(self) -> None:
        """No more."""
        SHARED.run(self._http.aclose())


def timed(call: Callable[[int], object], count: int) -> list[float]:
    """What each call took, s."""
    took = []
    for number in range(count):
        began = time.perf_counter()
        call(number)
        took.append(time.perf_counter() - began)
    return took


def near(setting: Setting) -> Found:
    """The medians of single decisions, turn by turn, forwards and backwards; CPU time of this process beside."""
    turns, count = (3, 50) if setting.quick else (11, 200)
    env = make("heron/BatteryGrid-v0")
    with endpoint() as url:
        policy = ExternalPolicy(Endpoint(url, concurrency=UNCAPPED), env=env)
        policy.begin(0, 0)
        bare = Bare(url, policy.due([question()])[0].body(1, 30.0))
        number = iter(range(10**9))

        def decide(_: int) -> None:
            answer = policy.answer(question_of(next(number)))
            assert answer.origin is not None
            assert answer.origin.source == "external"

        ways: dict[str, Callable[[], list[float]]] = {
            "decision": lambda: timed(decide, count),
            "bare, from another thread": lambda: timed(lambda _: bare.call(), count),
            "bare, on the loop": lambda: SHARED.run(bare.many(count)),
        }
        wall: dict[str, list[float]] = {name: [] for name in ways}
        cpu: dict[str, list[float]] = {name: [] for name in ways}
        for turn in range(-1, turns):
            for name in [*ways] if turn % 2 else [*reversed(ways)]:
                spent = time.process_time()
                took = statistics.median(ways[name]())
                if turn >= 0:
                    wall[name].append(took)
                    cpu[name].append((time.process_time() - spent) / count)
        bare.close()
        policy.close()
    ratios = {
        other: statistics.median(a / b for a, b in zip(wall["decision"], wall[other], strict=True))
        for other in list(ways)[1:]
    }
    spent = {name: statistics.median(values) for name, values in cpu.items()}
    told = {name: f"{1e3 * statistics.median(values):.3f}" for name, values in wall.items()}
    alone, hop = ratios["bare, on the loop"], ratios["bare, from another thread"]
    words = (
        f"{hop:.2f} (p50 {told['decision']} ms to {told['bare, from another thread']}, both asked from the "
        f"environment's thread; {alone:.2f} to one that never leaves the loop, {told['bare, on the loop']}; CPU time "
        f"{1e3 * spent['decision']:.3f} to {1e3 * spent['bare, from another thread']:.3f} ms), median of {turns} turns"
    )
    return Found(words, hop <= NEAR, {"p50_s": wall, "cpu_s": cpu, "ratios": ratios})


QUESTION = question()


def question_of(number: int) -> Asked:
    """Another one of the same agent, cheaply made."""
    return replace(QUESTION, number=number, turn=number, time=float(number))


BARS = (
    Bar(
        "together", "10 agents, answers after 20 ms, 50 synchronous steps / the same one after another", "<= 0.4",
        together,
    ),
    Bar(
        "near", "p50 of a decision / bare httpx.AsyncClient on the same loop, same request, median of >= 9 turns",
        "<= 1.5", near,
    ),
)  # fmt: skip
