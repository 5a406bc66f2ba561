"""simple_spread: single environments and batches, beside a C loop, plain numpy, and the peers.

Everything runs in one thread and is timed in CPU seconds; what a second thread gives is timed apart, on the wall.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from functools import partial
from itertools import cycle
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from benchmarks import c_loop
from benchmarks.case import EPISODE, Case, Comparison, Role, Setting, timed
from benchmarks.peers import peer_cases
from heron_env import make

AGENTS: Final = (3, 10, 30)
LANES: Final = (1, 32, 1024, 16384)
PEERS_UP_TO: Final = {3: 16384, 10: 1024, 30: 1024}
"""Beyond, an episode of theirs takes minutes."""
BATCH, BATCH_THREADS, SINGLE = "BatchEnv", "BatchEnv, threads", "PettingZoo API"
NUMPY, C = "numpy", "C loop"
BANK: Final = 8


def spread_name(n: int, lanes: int) -> str:
    """The comparison's name."""
    return f"spread-{n}-{lanes}"


def bank(lanes: int, n: int) -> NDArray[np.int64]:
    """Random actions `[BANK, lanes, n]`."""
    return np.random.default_rng(0).integers(0, 5, (BANK, lanes, n))


def comparisons() -> list[Comparison]:
    """Agents by environments."""
    titles = {
        (n, lanes): f"Spread, {n} agents, {lanes:,} environment{'s' * (lanes > 1)}" for n in AGENTS for lanes in LANES
    }
    one = [
        Comparison(
            spread_name(n, lanes), title, "env-steps/CPU-s", partial(spread_cases, n, lanes),
            quick=n == 3 and lanes < 16384,
        )
        for (n, lanes), title in titles.items()
    ]  # fmt: skip
    return one + [
        Comparison(f"threads-{n}-{lanes}", f"{title}, threads", "env-steps/s", partial(threaded_cases, n, lanes))
        for (n, lanes), title in titles.items()
        if lanes >= 1024
    ]


def spread_cases(n: int, lanes: int, setting: Setting) -> list[Case]:
    """Everybody who plays with `n` agents in so many environments, in one thread."""
    from benchmarks.floors import NumpySpread

    def case(name: str, work: Callable[[], None], role: Role = Role.OURS) -> Case:
        return Case(name, timed(work, EPISODE * lanes, time.process_time), role)

    cases = [case(BATCH, batch_episode(n, lanes, 1))]
    if lanes == 1:
        cases.append(case(SINGLE, single_episode(n)))
    if c_loop.compiler():
        cases.append(case(C, c_loop.CSpread(lanes, n, bank(lanes, n)).run, Role.CEILING))
    if lanes * n * n <= 16384 * 3 * 3:
        cases.append(case(NUMPY, _episode(NumpySpread(lanes, n).step, bank(lanes, n)), Role.FLOOR))
    return cases + (peer_cases(setting.peers, n, lanes) if lanes <= PEERS_UP_TO[n] else [])


def threaded_cases(n: int, lanes: int, setting: Setting) -> list[Case]:
    """One thread and as many as the setting has, on the wall."""
    counts = {BATCH: 1} | ({BATCH_THREADS: setting.threads} if setting.threads > 1 else {})
    return [Case(name, timed(batch_episode(n, lanes, count), EPISODE * lanes)) for name, count in counts.items()]


def _episode(step: Callable[[Any], object], actions: Iterable[Any]) -> Callable[[], None]:
    """As many steps as an episode has, with these actions over and over; the last step resets."""
    following = cycle(actions)

    def work() -> None:
        for _ in range(EPISODE):
            step(next(following))

    return work


def batch_episode(n: int, lanes: int, threads: int | None = None) -> Callable[[], None]:
    """An episode of `BatchEnv`; it resets itself."""
    from heron_env import BatchEnv

    env = BatchEnv("heron/Spread-v0", lanes, num_agents=n, continuous=False, max_steps=EPISODE, threads=threads)
    env.reset()
    return _episode(lambda actions: env.step({"agent": actions}), bank(lanes, n))


def single_episode(n: int) -> Callable[[], None]:
    """An episode of the environment by itself, through PettingZoo's API."""
    env = make("heron/Spread-v0", num_agents=n, continuous=False, max_steps=EPISODE)
    actions = [dict(zip(env.possible_agents, row, strict=True)) for row in bank(1, n)[:, 0].tolist()]
    episode = _episode(env.step, actions)
    env.reset(seed=0)

    def work() -> None:
        env.reset()
        episode()

    return work
