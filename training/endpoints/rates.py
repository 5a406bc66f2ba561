"""Rates of an installed heron_env without external agents: a program that is run with one checkout or another.

It names its cases, then measures one of them for each line of standard input: CPU seconds and wall seconds for so many
events or steps. Nothing of external agents is imported, so that it runs with a checkout from before them.
"""

from __future__ import annotations

import gc
import json
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from heron_env import ScheduleConfig, make

LATE = ScheduleConfig(
    msg_delay=0.05, obs_delay=0.02, act_delay=0.15, jitter_type="uniform", jitter_ratio=0.3, loss=0.05
)
ACTION = np.zeros(1)


def still(vector: Any) -> Any:
    """An action that is there already."""
    return ACTION


def events(agents: int, schedule: ScheduleConfig | None) -> Callable[[], int]:
    """An event-driven episode; how many events it had."""
    env = make("heron/BatteryGrid-v0", num_batteries=agents, max_steps=max(5, 2_000 // agents))

    def run() -> int:
        course = env.start_event_driven({"*": still}, seed=0, schedule=schedule, record=())
        course.until(None)
        return int(course.context.scheduler.taken)

    return run


def synchronous(agents: int) -> Callable[[], int]:
    """A synchronous episode; its steps."""
    steps = max(20, 6_000 // agents)
    env = make("heron/BatteryGrid-v0", num_batteries=agents, max_steps=steps)

    def run() -> int:
        env.run_synchronous({"*": still}, seed=0)
        return steps

    return run


def stepping(agents: int, *, own: bool = False) -> Callable[[], int]:
    """`env.step`, with actions of the caller's, or with the agents' own policies."""
    steps = max(20, 6_000 // agents)
    env = make("heron/BatteryGrid-v0", num_batteries=agents, max_steps=steps)
    actions = {} if own else dict.fromkeys(env.possible_agents, ACTION)
    for agent in env.hierarchy.agents:
        if own and agent.agent_id in env.possible_agents:
            agent.policy = still

    def run() -> int:
        env.reset(seed=0)
        for _ in range(steps):
            env.step(actions)
        return steps

    return run


CASES: dict[str, Callable[[], Callable[[], int]]] = {
    "events/s, 10 agents, no delays": lambda: events(10, None),
    "events/s, 100 agents, delays and loss": lambda: events(100, LATE),
    "steps/s, run_synchronous, 10 agents": lambda: synchronous(10),
    "steps/s, run_synchronous, 100 agents": lambda: synchronous(100),
    "steps/s, env.step, 10 agents": lambda: stepping(10),
    "steps/s, env.step, 10 agents' own policies": lambda: stepping(10, own=True),
}


def main(least: float) -> None:
    """Until standard input ends."""
    made: dict[str, Callable[[], int]] = {}
    print(json.dumps(list(CASES)), flush=True)
    for line in sys.stdin:
        name = line.strip()
        if name not in made:
            made[name] = CASES[name]()
            made[name]()  # compiles, fills caches
        gc.collect()
        cpu, wall, done = time.process_time(), time.perf_counter(), 0
        while time.process_time() - cpu < least:
            done += made[name]()
        print(json.dumps([done / (time.process_time() - cpu), done / (time.perf_counter() - wall)]), flush=True)


if __name__ == "__main__":
    main(float(sys.argv[1]))
