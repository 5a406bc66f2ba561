"""BatteryGrid: one environment against the cost of five dictionaries; a batch against a hand-fused loop."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import cycle
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from benchmarks.case import Case, Comparison, Role, Setting, timed
from heron_env import HeronEnv, make

SIZES: Final = (2, 10, 100, 1000)
SCOPES: Final = ("parent", "public")
HUGE: Final = 10_000
BATCH, SINGLE = "BatchEnv", "PettingZoo API"
DICTIONARIES = "five dictionaries"
FUSED: Final = "hand-fused loop"
LANES, AGENTS = 1024, 10
STEPS: Final = 100


def comparisons() -> list[Comparison]:
    """Sizes by scopes, one huge environment, and the batch."""
    sizes = [(n, scope) for n in SIZES for scope in SCOPES] + [(HUGE, "parent")]
    single = [
        Comparison(
            f"grid-{n}-{scope}", f"BatteryGrid, {n:,} agents, {scope}", "env-steps/s",
            _single(n, scope), quick=n in (10, 1000) and scope == "parent",
        )
        for n, scope in sizes
    ]  # fmt: skip
    batch = [
        Comparison(
            f"grid-batch-{scope}", f"BatteryGrid, {AGENTS} agents, {LANES:,} environments, {scope}", "agent-steps/s",
            _batch(scope), quick=scope == "public",
        )
        for scope in SCOPES
    ]  # fmt: skip
    return single + batch


def _single(n: int, scope: str) -> Callable[[Setting], Sequence[Case]]:
    return lambda setting: single_cases(make("heron/BatteryGrid-v0", num_batteries=n, scope=scope, max_steps=STEPS))


def single_cases(env: HeronEnv) -> list[Case]:
    """An environment through PettingZoo's API, and a step of five dictionaries as wide as its."""
    from benchmarks.floors import five_dictionaries

    agents = env.possible_agents
    draw = np.random.default_rng(0)
    spaces: list[Any] = [env.action_space(agent) for agent in agents]
    seen: dict[str, Any] = env.observation_spaces
    bank = cycle(
        [
            {a: draw.uniform(s.low, s.high).astype(np.float32) for a, s in zip(agents, spaces, strict=True)}
            for _ in range(4)
        ]
    )
    floor = five_dictionaries(agents, [seen[agent].shape[0] for agent in agents])
    env.reset(seed=0)

    def step() -> None:
        if not env.agents:
            env.reset()
        env.step(next(bank))

    return [
        Case(SINGLE, timed(step, 1)),
        Case(DICTIONARIES, timed(lambda: floor(next(bank)), 1), Role.FLOOR),
    ]


def _batch(scope: str) -> Callable[[Setting], Sequence[Case]]:
    return lambda setting: batch_cases(scope)


def batch_cases(scope: str) -> list[Case]:
    """`BatchEnv`, and the same law by hand."""
    from benchmarks.ceilings import FusedGrid
    from heron_env import BatchEnv

    draw = np.random.default_rng(0)
    actions = [draw.uniform(-1.0, 1.0, (LANES, AGENTS)).astype(np.float32) for _ in range(8)]
    bank, shaped = cycle(actions), cycle([values[..., None] for values in actions])
    env = BatchEnv("heron/BatteryGrid-v0", LANES, num_batteries=AGENTS, scope=scope, max_steps=STEPS)
    env.reset()
    per_step, public = LANES * AGENTS, scope == "public"
    cases = [Case(BATCH, timed(lambda: env.step({"battery": next(shaped)}), per_step))]
    fused = FusedGrid(LANES, AGENTS, public=public, max_steps=STEPS)
    work = partial(_advance, fused.step, bank)
    return [*cases, Case(FUSED, timed(work, per_step), Role.CEILING)]


def _advance(step: Callable[[NDArray[np.float32]], None], bank: Iterator[NDArray[np.float32]]) -> None:
    step(next(bank))
