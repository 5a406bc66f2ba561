"""simple_spread: single environments and batches, beside a hand-fused loop, plain numpy, and the peers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import cycle
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from benchmarks.case import EPISODE, Case, Comparison, Role, Setting, timed
from benchmarks.peers import peer_cases
from heron_env import make

AGENTS: Final = (3, 10, 30)
LANES: Final = (1, 32, 1024, 16384)
PEERS_UP_TO: Final = {3: 16384, 10: 1024, 30: 1024}
"""Beyond, an episode of theirs takes minutes."""
BATCH, BATCH_THREADS, SINGLE = "BatchEnv", "BatchEnv, threads", "PettingZoo API"
FUSED, FUSED_THREADS, NUMPY = "hand-fused loop", "hand-fused loop, threads", "numpy"
BANK: Final = 8


def spread_name(n: int, lanes: int) -> str:
    """The comparison's name."""
    return f"spread-{n}-{lanes}"


def choices(lanes: int, n: int) -> Iterator[NDArray[np.int64]]:
    """A bank of random actions `[lanes, n]`, over and over."""
    draw = np.random.default_rng(0)
    return cycle([draw.integers(0, 5, (lanes, n)) for _ in range(BANK)])


def comparisons() -> list[Comparison]:
    """Agents by environments."""
    return [
        Comparison(
            spread_name(n, lanes), f"Spread, {n} agents, {lanes:,} environment{'s' * (lanes > 1)}", "env-steps/s",
            _builder(n, lanes), quick=n == 3 and lanes < 16384,
        )
        for n in AGENTS for lanes in LANES
    ]  # fmt: skip


def _builder(n: int, lanes: int) -> Callable[[Setting], Sequence[Case]]:
    return lambda setting: spread_cases(n, lanes, setting)


def spread_cases(n: int, lanes: int, setting: Setting) -> list[Case]:
    """Everybody who plays with `n` agents in so many environments."""
    from benchmarks.ceilings import FusedSpread
    from benchmarks.floors import NumpySpread

    cases = [Case(BATCH, timed(batch_episode(n, lanes, 1), EPISODE * lanes))]
    if setting.threads > 1 and lanes >= 1024:
        cases.append(Case(BATCH_THREADS, timed(batch_episode(n, lanes, setting.threads), EPISODE * lanes)))
    if lanes == 1:
        cases.append(Case(SINGLE, timed(single_episode(n), EPISODE)))
    fused = FusedSpread(lanes, n)
    cases.append(Case(FUSED, timed(_episode(fused.step, choices(lanes, n)), EPISODE * lanes), Role.CEILING))
    if setting.threads > 1 and lanes >= 1024:
        threaded = FusedSpread(lanes, n, threads=setting.threads)
        run = timed(_episode(threaded.step, choices(lanes, n)), EPISODE * lanes)
        cases.append(Case(FUSED_THREADS, run, Role.CEILING, close=threaded.threads.close))
    if lanes * n * n <= 16384 * 3 * 3:
        plain = NumpySpread(lanes, n)
        cases.append(Case(NUMPY, timed(_episode(plain.step, choices(lanes, n)), EPISODE * lanes), Role.FLOOR))
    if lanes <= PEERS_UP_TO[n]:
        cases += peer_cases(setting.peers, n, lanes, setting.threads)
    return cases


def _episode(step: Callable[[NDArray[np.int64]], object], actions: Iterator[NDArray[np.int64]]) -> Callable[[], None]:
    """As many steps as an episode has; the last of them resets."""

    def work() -> None:
        for _ in range(EPISODE):
            step(next(actions))

    return work


def batch_episode(n: int, lanes: int, threads: int | None = None) -> Callable[[], None]:
    """An episode of `BatchEnv`; it resets itself."""
    from heron_env import BatchEnv

    env = BatchEnv("heron/Spread-v0", lanes, num_agents=n, continuous=False, max_steps=EPISODE, threads=threads)
    env.reset()
    return _episode(lambda actions: env.step({"agent": actions}), choices(lanes, n))


def single_episode(n: int) -> Callable[[], None]:
    """An episode of the environment by itself, through PettingZoo's API."""
    env = make("heron/Spread-v0", num_agents=n, continuous=False, max_steps=EPISODE)
    bank: Iterator[dict[str, Any]] = cycle(
        [
            dict(zip(env.possible_agents, actions[0].tolist(), strict=True))
            for actions, _ in zip(choices(1, n), range(BANK), strict=False)
        ]
    )

    def work() -> None:
        env.reset()
        for _ in range(EPISODE):
            env.step(next(bank))

    return work
