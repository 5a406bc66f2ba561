"""Whatever an endpoint does, a step returns, its action lies in its space, and the same course follows every time."""

import json
from functools import cache
from typing import Any

import numpy as np
import pytest
from fake_clock import FakeClock
from fault_server import FAULTS, FaultServer

from heron_env import make
from heron_env.injection import Endpoint, ExternalAgentMetrics, ExternalPolicy
from heron_env.injection.endpoint import Connection, client_of

STEPS = 2
ENV = make("heron/BatteryGrid-v0", max_steps=STEPS)


def course(*faults: str) -> tuple[list[Any], list[Any], ExternalAgentMetrics, FaultServer, float]:
    """Rewards and origins of an episode's first steps, and what they took in the clock's time."""
    clock = FakeClock()
    with FaultServer(*faults, clock=clock, answer=lambda request: {"action": [0.5]}, record=True) as server:
        endpoint = Endpoint(server.url, timeout=30.0)
        line = Connection(endpoint, lambda endpoint: client_of(endpoint, clock))
        policy = ExternalPolicy(endpoint, env=ENV, line=line)
        began = clock.monotonic()
        result = ENV.run_synchronous({"battery_1": policy, "*": lambda vector: [0.0]}, seed=5)
        policy.close()
        took = clock.monotonic() - began
    assert all(ENV.action_space("battery_1").contains(np.float32(action)) for _, action in result.actions["battery_1"])
    return result.rewards["battery_1"], result.origins["battery_1"], policy.metrics(), server, took


@cache
def reference() -> list[Any]:
    """The rewards with the first of the faults."""
    return course(next(iter(FAULTS)))[0]


@pytest.mark.parametrize("fault", FAULTS.values(), ids=str)
def test_every_fault_has_its_code_and_leads_to_the_same_course(fault: Any):
    rewards, origins, figures, _, took = course(fault.name)
    assert [origin.code for _, origin in origins] == [fault.code] * STEPS
    assert {origin.attempts for _, origin in origins} == {fault.requests}
    assert figures.counts == {f"fallback {fault.code}": STEPS}
    assert took <= STEPS * 30.0 * 1.1
    assert rewards == reference(), "what stands in draws by seed, episode, agent and number alone"


def test_each_attempt_has_an_id_of_its_own_and_says_what_is_left_of_the_time():
    limited = next(fault.name for fault in FAULTS.values() if fault.requests == 4)
    _, origins, _, server, _ = course(limited, limited, "good")
    bodies = [json.loads(body) for body in server.bodies[:3]]
    assert len({body["request_id"] for body in bodies}) == 3
    assert len({body["turn_id"] for body in bodies}) == 1
    assert [body["timeout_ms"] for body in bodies] == [30_000, 29_000, 27_000]
    assert (origins[0][1].source, origins[0][1].attempts) == ("external", 3)
