"""The failure table and the fault server, row by row, in an environment: what every fault leads to, in both clocks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from fake_clock import FakeClock
from fault_server import FAULTS, Fault, FaultServer

from heron_env import HeronEnv, make
from heron_env.errors import ExternalAgentError
from heron_env.injection import BreakerConfig, ConcurrencyConfig, Endpoint, ExternalPolicy
from heron_env.injection.endpoint import Connection, client_of
from heron_env.lab import benchmark
from training.bars import Bar, Found, Setting

FAILURES, REFUSED = 5, 2
"""Questions until the circuit opens, and those asked then; after 30 s comes a probe, and one more that is refused."""
STEPS = FAILURES + REFUSED + 2
T = 30.0
WAITS = {
    "429 for ever": 7.0, "429, Retry-After 5": 15.0, "429, Retry-After negative": 7.0,
    "429, Retry-After in words": 7.0, "429, Retry-After date": 10.0,
}  # fmt: skip
"""What a question takes on the clock, s, where it is neither nothing nor T."""


@dataclass(frozen=True)
class Seen:
    """One course: what must be the same every time, and what is judged."""

    truth: tuple[bytes, ...]
    rewards: tuple[float, ...]
    actions: tuple[bytes, ...]
    origins: tuple[tuple[str, str, int, str], ...]
    arrived: int
    took: float
    outside: int


def at(server: FaultServer, clock: FakeClock, env: HeronEnv, **told: Any) -> ExternalPolicy:
    """A policy that asks the server; time is the clock's."""
    fallback = told.pop("fallback", "simulated_agent")
    shared: dict[str, Any] = {"timeout": T, "concurrency": ConcurrencyConfig(qps_cap=10_000), **told}
    endpoint = Endpoint(server.url, **shared)
    return ExternalPolicy(
        endpoint, env=env, fallback=fallback, line=Connection(endpoint, lambda one: client_of(one, clock))
    )


def hand_in(env: HeronEnv, agent: str, policy: Any) -> None:
    """Make it the agent's own policy, as `agent_injection:` does."""
    one = env.hierarchy.agents[env.hierarchy.index[agent]]
    one.policy, one.injected = policy, True


class Watched:
    """The policy, and every action that it answers with."""

    def __init__(self, policy: ExternalPolicy) -> None:
        self.policy, self.actions = policy, list[Any]()
        self.begin = policy.begin

    def answer(self, asked: Any) -> Any:
        """Of the policy."""
        answer = self.policy.answer(asked)
        self.actions.append(answer.action)
        return answer


def rows() -> list[Fault]:
    """All that the fault server does."""
    return list(FAULTS.values())


def stepped(fault: Fault, pause: bool = True) -> Seen:
    """STEPS calls of `env.step`, the last two after the circuit has been open for 30 s."""
    clock, env = FakeClock(), grid()
    with FaultServer(fault, clock=clock) as server:
        policy = at(server, clock, env)
        watched = Watched(policy)
        hand_in(env, "battery_1", watched)
        env.reset(seed=5)
        began, truth, rewards, origins = clock.monotonic(), [], [], []
        for step in range(STEPS):
            if step == FAILURES + REFUSED and pause:
                took = clock.monotonic() - began
                clock.advance(30.0)
            _, earned, *_ = env.step({"battery_2": np.zeros(1)})
            truth.append(env.simulation.truth.tobytes())
            rewards.append(float(earned["battery_1"]))
            found = env.last_decisions["battery_1"].origin
            origins.append((found.source, found.code, found.attempts, found.circuit))  # type: ignore[union-attr]
        policy.close()
        return Seen(
            tuple(truth), tuple(rewards), tuple(np.asarray(a).tobytes() for a in watched.actions), tuple(origins),
            server.requests, took, _outside(env, watched.actions),
        )  # fmt: skip


def run(fault: Fault) -> Seen:
    """An event-driven episode."""
    clock, env = FakeClock(), grid(max_steps=FAILURES + REFUSED)
    with FaultServer(fault, clock=clock) as server:
        policy = at(server, clock, env)
        watched = Watched(policy)
        began = clock.monotonic()
        result = env.run_event_driven({"battery_1": watched, "*": lambda vector: [0.0]}, seed=5)
        took = clock.monotonic() - began
        policy.close()
        origins = [(o.source, o.code, o.attempts, o.circuit) for _, o in result.origins["battery_1"]]
        return Seen(
            (env.simulation.truth.tobytes(),), tuple(value for _, value in result.rewards["battery_1"]),
            tuple(np.asarray(a).tobytes() for a in watched.actions), tuple(origins), server.requests, took,
            _outside(env, watched.actions),
        )  # fmt: skip


def grid(**options: Any) -> HeronEnv:
    """Two batteries."""
    return make("heron/BatteryGrid-v0", max_steps=options.pop("max_steps", STEPS), **options)


def _outside(env: HeronEnv, actions: Sequence[Any]) -> int:
    space = env.action_space("battery_1")
    return sum(not space.contains(np.asarray(action, dtype=np.float32)) for action in actions)


def expected(fault: Fault, *, probe: bool) -> tuple[list[tuple[str, str, int, str]], int, float]:
    """Origins, requests that arrive, and time until the circuit opens."""
    failed = ("fallback", fault.code, fault.requests, "CLOSED")
    refused = ("fallback", "CIRCUIT_OPEN", 0, "OPEN")
    origins = [failed] * FAILURES + [refused] * REFUSED
    origins += [("fallback", fault.code, fault.requests, "HALF_OPEN"), refused] if probe else []
    each = fault.requests if fault.arrive is None else fault.arrive
    seconds = T if fault.code == "TIMEOUT" else WAITS.get(fault.name, 0.0)
    return origins, each * (FAILURES + probe), FAILURES * seconds


def problems_of(fault: Fault) -> list[str]:
    """What is wrong with one row, in words."""
    wrong = []
    for name, course, probe in (("step", stepped, True), ("event-driven", run, False)):
        first, again = course(fault), course(fault)
        origins, arrive, seconds = expected(fault, probe=probe)
        where = f"{fault.name}, {name}"
        if first != again:
            wrong.append(f"{where}: two runs differ")
        if list(first.origins) != origins:
            wrong.append(f"{where}: {first.origins} instead of {origins}")
        if first.arrived != arrive:
            wrong.append(f"{where}: {first.arrived} requests instead of {arrive}")
        if abs(first.took - seconds) > 0.1 * seconds:
            wrong.append(f"{where}: {first.took} s instead of {seconds}")
        if first.outside or not first.actions:
            wrong.append(f"{where}: {first.outside} of {len(first.actions)} actions outside of their space")
    return wrong


@dataclass(frozen=True)
class Answered:
    """A row of the table whose fault is in the answer: what is answered, and the code and source that come of it."""

    name: str
    answer: Callable[[dict[str, Any]], dict[str, Any]]
    code: str
    agent: str = "battery_1"
    env: str = "heron/BatteryGrid-v0"
    source: str = "fallback"
    clip: bool = False


def fields(**given: Any) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """The same for every request."""
    return lambda request: {"action": [0.5], **given}


def forbidden(request: dict[str, Any]) -> dict[str, Any]:
    """A choice that the mask forbids, where it forbids one; else the other that it allows."""
    flags = request["decision"]["action_mask"][0]
    return {"action": flags.index(0) if 0 in flags else 1}


ACTIONS: list[Any] = [
    ("too long", [0.0, 0.0]), ("too short", []), ("no list", 0.5), ("nested", [[0.5]]), ("text", ["0.5"]),
    ("true for a number", [True]), ("null", [None]), ("no action", None), ("an object", {"c": [0.5]}),
    ("out of bounds", [1.5]), ("far out of bounds", [-1e300]), ("a digit beyond", [1.0000002]),
    ("hundreds of digits", [10**400]),
]  # fmt: skip
CHOICES: list[Any] = [
    ("true for a choice", True), ("1.0 for a choice", 1.0), ("text for a choice", "1"), ("no such choice", 9),
    ("below zero", -1), ("a list for a choice", [1]), ("null for a choice", None),
]  # fmt: skip
FORMS: list[dict[str, Any]] = [
    {"request_id": 5}, {"request_id": "of another"}, {"response_text": 7}, {"letters": {}}, {"letters": [7]},
    {"letters": [{"receiver": "nobody", "body": "hello"}]}, {"confidence": "high"}, {"error": "broken"},
    {"latency_ms": [1]},
]  # fmt: skip


def answered() -> list[Answered]:
    """All rows whose fault is in the answer."""
    crossing = {"agent": "intersection_1", "env": "heron/TrafficCorridor-v0"}
    return [
        *(Answered(f"box, {name}", fields(action=action), "INVALID_ACTION") for name, action in ACTIONS),
        *(Answered(name, fields(action=one), "INVALID_ACTION", **crossing) for name, one in CHOICES),
        Answered("masked", forbidden, "INVALID_ACTION", **crossing),
        *(Answered(f"field {form}", fields(**form), "INVALID_RESPONSE") for form in FORMS),
        Answered("an error of its own", fields(error={"code": "RATE_LIMITED", "message": "busy"}), "RATE_LIMITED"),
        Answered("clip: true", fields(action=[1.5]), "CLIPPED", source="external", clip=True),
        Answered("thoughts are dropped", fields(reasoning="...", thoughts=[1]), "", source="external"),
        Answered("unknown fields are ignored", fields(mood="fine"), "", source="external"),
    ]


def course_of(row: Answered, clock_name: str) -> tuple[Any, list[dict[str, Any]], HeronEnv, list[Any]]:
    """An episode with the agent injected, and what it was asked."""
    env, clock, asked = make(row.env, max_steps=12), FakeClock(), list[dict[str, Any]]()

    def answer(request: dict[str, Any]) -> dict[str, Any]:
        asked.append(request)
        return row.answer(request)

    with FaultServer(clock=clock, answer=answer) as server:
        policy = at(server, clock, env, clip=row.clip, breaker=BreakerConfig(failure_threshold=1_000))
        watched = Watched(policy)
        others = benchmark.baselines(env)["do nothing"]
        result = getattr(env, clock_name)({**others, row.agent: watched}, seed=5)
        policy.close()
    return result, asked, env, watched.actions


def problems_of_answer(row: Answered) -> list[str]:
    """What is wrong with one row, in words."""
    wrong = []
    for clock_name in ("run_synchronous", "run_event_driven"):
        where = f"{row.name}, {clock_name}"
        (first, asked, env, actions), (again, _, _, _) = course_of(row, clock_name), course_of(row, clock_name)
        told = [(origin.source, origin.code, origin.attempts) for _, origin in first.origins[row.agent]]
        bad = [row.name != "masked" or 0 in one["decision"]["action_mask"][0] for one in asked]
        wanted = [(row.source, row.code, 1) if one else ("external", "", 1) for one in bad]
        if told != wanted or not any(bad):
            wrong.append(f"{where}: {told} instead of {wanted}")
        if not first.same_course(again) or first.origins != again.origins:
            wrong.append(f"{where}: two runs differ")
        space = env.action_space(row.agent)
        kind = np.float32 if space.dtype == np.float32 else np.int64
        if not all(space.contains(np.asarray(action, dtype=kind)[()]) for action in actions):
            wrong.append(f"{where}: an action outside of its space")
    return wrong


def problems_of_fallback(strategy: Any) -> list[str]:
    """What is wrong with a fallback: twice the same course; `fail` raises."""
    seen = []
    for _ in range(2):
        env, clock = grid(), FakeClock()
        with FaultServer("503 Service Unavailable", clock=clock) as server:
            policy = at(server, clock, env, fallback=strategy)
            try:
                result = env.run_synchronous({"battery_1": policy, "*": lambda vector: [0.0]}, seed=5)
            except ExternalAgentError as error:
                seen.append(str(error).replace(str(server.port), ""))
                continue
            finally:
                policy.close()
            seen.append(repr((result.rewards, result.actions)))
            still = all(np.all(action == 0.0) for _, action in result.actions["battery_1"])
            if (strategy in ("skip", "error_message")) != still:
                return [f"fallback {strategy}: does {'nothing' if still else 'something'}"]
    failed = "mend the endpoint" in seen[0]
    return [f"fallback {strategy}"] if seen[0] != seen[1] or failed != (strategy == "fail") else []


def _rule(vector: Any) -> Any:
    return [0.25]


def measure(setting: Setting) -> Found:
    """All rows, or with `quick` every eighth."""
    fast = slice(None, None, 8 if setting.quick else 1)
    faults, answers = rows()[fast], answered()[fast]
    fallbacks: list[Any] = ["simulated_agent", "error_message", "skip", "fail", _rule]
    checks = [
        *(partial(problems_of, fault) for fault in faults),
        *(partial(problems_of_answer, row) for row in answers),
        *(partial(problems_of_fallback, strategy) for strategy in fallbacks),
    ]
    wrong = [problem for check in checks for problem in check()]
    counts = f"{len(faults)} faults of the server, {len(answers)} kinds of answers, {len(fallbacks)} fallbacks"
    where = "each twice (fallbacks in the synchronous clock, all else in both)"
    words = f"{counts}, {where}: {len(wrong)} wrong{': ' + '; '.join(wrong[:5]) if wrong else ''}"
    return Found(words, not wrong, {"rows": len(checks), "wrong": wrong})


def planted(fault: Fault) -> Fault:
    """The same with another code: what a table must not pass."""
    return replace(fault, code="INTERNAL" if fault.code != "INTERNAL" else "TIMEOUT")


BARS = (
    Bar(
        "faults", "each row of the failure table and of the fault server, twice, FakeClock",
        "step returns, action in space, right code and counts, equal trajectories", measure,
    ),
)  # fmt: skip
