"""examples/agent.mjs plays an episode, as the same rule does in process."""

import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from endpoint_kit import fast

from heron_env import make
from heron_env.injection import ExternalPolicy

AGENT = Path(__file__).resolve().parents[2] / "examples" / "agent.mjs"
NODE = shutil.which("node")


def test_the_example_is_short_and_needs_nothing():
    lines = AGENT.read_text(encoding="utf-8").splitlines()
    assert len(lines) <= 60
    assert [line for line in lines if line.startswith("import")] == ['import { createServer } from "node:http";']


@pytest.mark.skipif(NODE is None, reason="there is no Node.js")
@pytest.mark.parametrize("clock", ["run_synchronous", "run_event_driven"])
def test_the_example_in_node_plays_as_its_rule_does(clock: str):
    def rule(vector: Any) -> Any:
        return np.clip(np.array([0.5 - float(vector[0])]), space.low, space.high)

    env = make("heron/BatteryGrid-v0", num_batteries=3, max_steps=20)
    space: Any = env.action_space("battery_1")
    own = getattr(env, clock)({"*": rule}, seed=2)
    with subprocess.Popen([str(NODE), str(AGENT)], stdout=subprocess.PIPE, text=True) as node:
        try:
            assert node.stdout is not None
            policy = ExternalPolicy(fast(node.stdout.readline().strip()), env=env)
            there = getattr(env, clock)({"*": policy}, seed=2)
            policy.close()
        finally:
            node.kill()
    assert there.same_course(own)
    assert policy.metrics().counts == {"external": 60}
