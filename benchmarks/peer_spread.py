"""simple_spread in another library: run by that library's own interpreter, told on stdin how long to work.

    python peer_spread.py mpe2|vmas|jaxmarl AGENTS ENVIRONMENTS THREADS

First line out: {"ready": true, "version": ...}. Then for each line in (seconds) a line out:
{"rate": env-steps/s, "cpu": seconds of it}.
Random actions from a bank, a reset every 25 steps. Where a whole episode would take too long, fewer steps and one reset
are timed, and the rate of an episode is worked out from both. Nothing of heron_env is imported.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from importlib.metadata import version
from typing import Any

EPISODE = 25
BANK = 8
Step = Callable[[int], Any]
Reset = Callable[[int], Any]


def mpe2(agents: int, envs: int, threads: int) -> tuple[Step, Reset, int]:
    """PettingZoo's API; one environment only."""
    import numpy as np
    from mpe2 import simple_spread_v3

    if envs != 1:
        raise SystemExit("mpe2 has no batched form")
    env = simple_spread_v3.parallel_env(N=agents, max_cycles=EPISODE, continuous_actions=False)
    draw = np.random.default_rng(0)
    bank = [{f"agent_{i}": int(draw.integers(5)) for i in range(agents)} for _ in range(BANK)]
    return lambda number: env.step(bank[number % BANK]), lambda number: env.reset(seed=number), 1


def vmas(agents: int, envs: int, threads: int) -> tuple[Step, Reset, int]:
    """Torch on the CPU."""
    import torch
    from vmas import make_env

    torch.set_num_threads(threads)
    env = make_env("simple_spread", num_envs=envs, device="cpu", continuous_actions=False, n_agents=agents, seed=0)
    bank = [[torch.randint(0, 5, (envs, 1)) for _ in range(agents)] for _ in range(BANK)]
    return lambda number: env.step(bank[number % BANK]), lambda number: env.reset(), 1


def jaxmarl(agents: int, envs: int, threads: int) -> tuple[Step, Reset, int]:
    """A whole episode compiled by jit and scan; a step here is 25 of theirs, and they reset themselves."""
    if hasattr(os, "sched_setaffinity"):  # XLA takes as many threads as there are cores for it
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])
    import jax
    import jax.numpy as jnp
    from jaxmarl import make

    env = make("MPE_simple_spread_v3", num_agents=agents, num_landmarks=agents)
    start, advance = jax.vmap(env.reset), jax.vmap(env.step)
    bank = jax.random.randint(jax.random.PRNGKey(1), (EPISODE, agents, envs), 0, 5)

    def one(carry: Any, actions: Any) -> Any:
        state, keys, total = carry
        keys = jax.vmap(lambda key: jax.random.split(key)[0])(keys)
        chosen = {agent: actions[i] for i, agent in enumerate(env.agents)}
        seen, state, rewards, _, _ = advance(keys, state, chosen)
        used = sum(jnp.sum(x) for x in seen.values()) + sum(jnp.sum(x) for x in rewards.values())
        return (state, keys, total + used), None  # all that a user would get is used, so none of it is left out

    episode = jax.jit(lambda carry: jax.lax.scan(one, carry, bank)[0])
    keys = jax.random.split(jax.random.PRNGKey(0), envs)
    held = [episode((start(keys)[1], keys, 0.0))]

    def step(number: int) -> None:
        held[0] = jax.block_until_ready(episode(held[0]))

    return step, lambda number: None, EPISODE


def episodes(
    step: Step, reset: Reset, seconds: float, per_step: int, clock: Callable[[], float] = time.perf_counter
) -> float:
    """Steps a second with a reset every 25 steps, of one environment."""
    start, done = clock(), 0
    while True:
        begun = clock()
        reset(done)
        after_reset = clock()
        for number in range(EPISODE // per_step):
            step(number)
            if number + 1 < EPISODE // per_step and clock() - begun > 4.0 * seconds:
                spent = (clock() - after_reset) / (number + 1)
                return EPISODE / (after_reset - begun + spent * EPISODE / per_step)
        done += EPISODE
        if (elapsed := clock() - start) >= seconds and elapsed > 0.0:
            return done / elapsed


def main() -> None:
    """Build, warm up, then answer each line."""
    peer, agents, envs, threads = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what libraries and their children print must not be taken for an answer
    step, reset, per_step = {"mpe2": mpe2, "vmas": vmas, "jaxmarl": jaxmarl}[peer](agents, envs, threads)
    episodes(step, reset, 0.0, per_step)
    print(json.dumps({"ready": True, "version": version(peer)}), file=out, flush=True)
    for line in sys.stdin:
        before = time.process_time()
        found = envs * episodes(step, reset, float(line), per_step)
        print(json.dumps({"rate": found, "cpu": time.process_time() - before}), file=out, flush=True)


if __name__ == "__main__":
    main()
