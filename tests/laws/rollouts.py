"""Digests of traces and rollouts, one line each: run in several processes, they must print the same."""

import hashlib
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
from gymnasium.spaces import Box
from laws.examples import NESTED, SEEN, TALK
from strategies import Wave

import heron_env
from heron_env import HeronEnv, ScheduleConfig, seeding
from heron_env.core import layout

STEPS = 60
NETWORK = {"jitter_type": "lognormal", "jitter_ratio": 0.5, "loss": 0.2}


def digest(parts: Any) -> str:
    """A short hash of lines or bytes."""
    total = hashlib.blake2b(digest_size=16)
    for part in parts:
        total.update(part if isinstance(part, bytes) else part.encode())
    return total.hexdigest()


def waves(env: HeronEnv) -> dict[str, Wave]:
    """A sensitive policy for each possible agent."""
    specs, index = env.simulation.model.specs, env.hierarchy.index
    return {a: Wave(a, specs[index[a]]) for a in env.possible_agents}


def synchronous(env: HeronEnv) -> str:
    """All observations, rewards and infos of some steps."""
    policies, parts = waves(env), []
    observations, infos = env.reset(seed=7)
    for _ in range(STEPS):
        parts += [observations[a].tobytes() for a in env.agents] + [repr(infos)]
        if not env.agents:
            break
        observations, *outcome, infos = env.step({a: policies[a](observations[a]) for a in env.agents})
        parts.append(repr(outcome))
    return digest(parts)


def event_driven(env: HeronEnv) -> str:
    """The trace of as many steps over a bad network."""
    delays = dict.fromkeys(("msg_delay", "act_delay", "obs_delay"), 0.4 * env.dt)
    schedule = ScheduleConfig(tick_interval=0.9 * env.dt, **delays, **NETWORK)
    result = env.run_event_driven(waves(env), seed=7, t_end=STEPS * env.dt, schedule=schedule, trace=True)
    assert result.trace is not None
    return digest([*result.trace.lines(env.hierarchy.ids), repr(result.returns), repr(result.messages)])


def batch(env: HeronEnv) -> str:
    """All that a batch tells in some steps, among them a partial reset, with noise and in two threads."""
    random, parts, lanes = np.random.default_rng(0), [], heron_env.BatchEnv(env, 5, threads=2)
    told = lanes.reset(seed=7)
    for step in range(STEPS // 4):
        arrays = [part for share in told[:-1] for part in share.values()]
        arrays += [table for infos in told[-1].values() for table in infos.values()]
        parts += [array.tobytes() for array in [*arrays, lanes.returns, lanes.state()]]
        if step == 6:
            lanes.reset(mask=np.arange(5) % 2 == 0)
        box = {name: space for name, space in lanes.action_spaces.items() if isinstance(space, Box)}
        sizes = {name: (5, len(lanes.groups[name]), *space.shape) for name, space in box.items()}
        told = lanes.step({name: random.uniform(-1.0, 1.0, size) for name, size in sizes.items()})
    return digest(parts)


WORLDS: dict[str, Callable[[], HeronEnv]] = {
    "field": lambda: heron_env.make("heron/BatteryGrid-v0", num_batteries=5, zone_size=2),
    "zone": lambda: heron_env.make("heron/BatteryGrid-v0", num_batteries=5, zone_size=2, control="zone"),
    "nested": NESTED.build,
    "seen": SEEN.build,
    "compiled": TALK.build,
    "energy": lambda: heron_env.make("heron/EnergyManagement-v1"),
}


def main(names: list[str]) -> None:
    """Print one line a world and clock."""
    for name in names:
        env = WORLDS[name]()
        print(name, "synchronous", synchronous(env))
        print(name, "event-driven", event_driven(env))
        if env.compiled:
            print(name, "batch", batch(WORLDS[name]()))


if __name__ == "__main__":
    if "--hash" in sys.argv:  # the mutant: names enter through the interpreter's own hash
        hashed = seeding.h
        hashed.cache_clear()
        for module in [one for one in sys.modules.values() if vars(one).get("h") is hashed]:
            module.h = lambda text: hash(text) & seeding.MASK  # type: ignore[attr-defined]
    if "--hash-noise" in sys.argv:
        layout.h = lambda text: hash(text) & seeding.MASK
    main([name for name in sys.argv[1:] if name in WORLDS])
