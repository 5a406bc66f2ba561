"""The same bits: policies that are served and injected back, and decisions that are replayed without sockets."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from heron_env import EpisodeResult, HeronEnv, ScheduleConfig, make
from heron_env.injection import ConcurrencyConfig, Endpoint, ExternalPolicy, Recorded, Recording, serve_policy
from heron_env.lab import RunFolder, load_policy, train
from training.bars import Bar, Found, Setting
from training.endpoints.watching import watching

CLOCKS = ("run_synchronous", "run_event_driven")
UNCAPPED = ConcurrencyConfig(qps_cap=1_000_000)
DECISIONS = 1_000
RECORDED = ("rewards", "actions", "observations")


def rule(vector: Any) -> Any:
    """Charge below half, discharge above it."""
    return np.array([(0.5 - float(vector[0])) * 0.7])


def late(env: HeronEnv) -> ScheduleConfig:
    """Delays, jitter and loss, in parts of a control step."""
    return ScheduleConfig(
        tick_interval=env.dt, msg_delay=0.3 * env.dt, act_delay=0.2 * env.dt, jitter_type="uniform", jitter_ratio=0.5,
        loss=0.1,
    )  # fmt: skip


def played(env: HeronEnv, clock: str, policies: Any, seed: int) -> EpisodeResult:
    """An episode in one of the clocks, with the delays where there are any."""
    options = {"schedule": late(env)} if clock == "run_event_driven" else {}
    return getattr(env, clock)(policies, seed=seed, record=RECORDED, **options)


def back(policy: Any, fresh: Any, keys: tuple[str, ...], seeds: range) -> tuple[list[str], int]:
    """Where the served policy's course is another than in process; and decisions that came from outside."""
    wrong, external = [], 0
    with serve_policy(policy, fresh()) as server:
        for clock in CLOCKS:
            for seed in seeds:
                env = fresh()
                own = played(env, clock, policy if isinstance(policy, dict) else {"*": policy}, seed)
                injected = ExternalPolicy(Endpoint(server.url, concurrency=UNCAPPED), env=env, fallback="fail")
                there = played(env, clock, dict.fromkeys(keys, injected), seed)
                injected.close()
                external += sum(o.source == "external" for told in there.origins.values() for _, o in told)
                if not there.same_course(own) or there.observations.keys() != own.observations.keys():
                    wrong.append(f"{clock}, seed {seed}")
    return wrong, external


def tiny_run(folder: Path) -> Path:
    """A run folder of Stable-Baselines3's PPO, trained for moments on EnergyManagement."""
    train(
        "heron/EnergyManagement-v1", folder, total_steps=2_000, residual=None, progress=False, validations=1,
        validation_episodes=1,
    )  # fmt: skip
    RunFolder.open(folder)
    return folder


def sdk(setting: Setting) -> Found:
    """Observations, actions and rewards of whole episodes, compared bit for bit."""
    seeds = range(1 if setting.quick else 3)
    grid, first = back(rule, lambda: make("heron/BatteryGrid-v0", num_batteries=3, max_steps=50), ("battery",), seeds)
    loaded = load_policy(tiny_run(setting.scratch / "run"))
    policies = loaded if isinstance(loaded, dict) else {"*": loaded}
    energy, second = back(policies, lambda: make("heron/EnergyManagement-v1", dt=900.0), tuple(policies), seeds[:1])
    words = (
        f"rule in BatteryGrid: {first:,} decisions, SB3 run folder in EnergyManagement: {second:,}; courses that "
        f"differ: {len(grid) + len(energy)}"
    )
    return Found(words, not grid and not energy and first > 100 and second > 100, {"differ": grid + energy})


def replay(setting: Setting) -> Found:
    """Recorded with an endpoint, replayed while no socket can even be made; in both clocks."""
    told, met = [], True
    for clock in CLOCKS:
        path, steps = setting.scratch / f"{clock}.jsonl", 20 if setting.quick else 140

        def grid(steps: int = steps) -> HeronEnv:
            return make("heron/BatteryGrid-v0", num_batteries=10, zone_size=5, max_steps=steps)

        env = grid()
        with serve_policy(rule, grid()) as server:
            policy = ExternalPolicy(Endpoint(server.url, concurrency=UNCAPPED), env=env, fallback="fail")
            with Recording(policy, path) as recording:
                live = played(env, clock, {"*": recording}, 5)
        with watching(lambda host, port: False, sockets=False) as tried:
            again = played(grid(), clock, {"*": Recorded(path)}, 5)
        count = sum(o.source == "replay" for each in again.origins.values() for _, o in each)
        same = again.same_course(live) and again.deterministic and not live.deterministic
        told.append(f"{clock} {count:,} decisions, {'identical' if same else 'NOT identical'}")
        met = met and same and not tried and (setting.quick or count >= DECISIONS)
    return Found(f"{'; '.join(told)}; deterministic True; sockets forbidden", met)


BARS = (
    Bar(
        "sdk", "a policy served by the SDK and injected back: rule in BatteryGrid, SB3 run folder in EnergyManagement",
        "bit for bit the trajectory in process, both clocks", sdk,
    ),
    Bar(
        "replay", "1,000 recorded decisions replayed with sockets forbidden", "identical, deterministic True", replay
    ),
)  # fmt: skip
