"""simple_spread in another library: run by that library's own interpreter, told on stdin how long to work.

    python peer_spread.py mpe2|vmas|jaxmarl|jax|jax32 AGENTS ENVIRONMENTS [cuda]

First line out: {"ready": true, "version": ...}. Then for each line in (seconds) a line out:
{"rate": env-steps/CPU-s, "cpu": seconds of it}. All in one thread. With cuda: on the
graphics card, per second of wall time.
Random actions from a bank, a reset every 25 steps. Where a whole episode would take too long, fewer steps and one reset
are timed, and the rate of an episode is worked out from both. But for jax (JaxEnv), nothing of heron_env is imported.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from functools import partial
from importlib.metadata import version
from typing import Any

EPISODE = 25
BANK = 8
CUDA = sys.argv[4:] == ["cuda"]
Step = Callable[[int], Any]
Reset = Callable[[int], Any]


def mpe2(agents: int, envs: int) -> tuple[Step, Reset, int]:
    """PettingZoo's API: one environment, since many one after the other do as many steps per second."""
    import numpy as np
    from mpe2 import simple_spread_v3

    env = simple_spread_v3.parallel_env(N=agents, max_cycles=EPISODE, continuous_actions=False)
    draw = np.random.default_rng(0)
    bank = [{f"agent_{i}": int(draw.integers(5)) for i in range(agents)} for _ in range(BANK)]
    return lambda number: env.step(bank[number % BANK]), lambda number: env.reset(seed=number), 1


def vmas(agents: int, envs: int) -> tuple[Step, Reset, int]:
    """Torch."""
    import torch
    from vmas import make_env

    torch.set_num_threads(1)
    device = "cuda" if CUDA else "cpu"
    env = make_env("simple_spread", num_envs=envs, device=device, continuous_actions=False, n_agents=agents, seed=0)
    bank = [[torch.randint(0, 5, (envs, 1), device=device) for _ in range(agents)] for _ in range(BANK)]

    def step(number: int) -> None:
        env.step(bank[number % BANK])
        if CUDA:
            torch.cuda.synchronize()

    return step, lambda number: env.reset(), 1


def jaxmarl(agents: int, envs: int) -> tuple[Step, Reset, int]:
    """A whole episode compiled by jit and scan; a step here is 25 of theirs, and they reset themselves."""
    jax = one_core()
    import jax.numpy as jnp
    from jaxmarl import make

    env = make("MPE_simple_spread_v3", num_agents=agents, num_landmarks=agents)
    start, advance = jax.vmap(env.reset), jax.vmap(env.step)

    def one(carry: Any, actions: Any) -> Any:
        state, keys = carry
        keys = jax.vmap(lambda key: jax.random.split(key)[0])(keys)
        chosen = {agent: actions[:, i] for i, agent in enumerate(env.agents)}
        seen, state, rewards, _, _ = advance(keys, state, chosen)
        return (state, keys), sum(jnp.sum(x) for x in (*seen.values(), *rewards.values()))

    keys = jax.random.split(jax.random.PRNGKey(0), envs)
    return scanned(jax, one, (start(keys)[1], keys), (envs, agents))


def jaxenv(agents: int, envs: int, dtype: str = "float64") -> tuple[Step, Reset, int]:
    """heron_env's own JaxEnv, in the same way."""
    jax = one_core()
    jax.config.update("jax_enable_x64", True)
    import jax.numpy as jnp

    from heron_env.adapters.jax import JaxEnv

    env = JaxEnv("heron/Spread-v0", num_agents=agents, continuous=False, max_steps=EPISODE, dtype=dtype)
    advance = jax.vmap(env.step)

    def one(state: Any, actions: Any) -> Any:
        state, step = advance(state, {"agent": actions[:, :, None].astype(dtype)})
        return state, step.observations["agent"].sum() + step.rewards["agent"].sum()

    return scanned(jax, one, jax.vmap(env.begin)(jnp.arange(envs, dtype=jnp.uint64))[0], (envs, agents))


def one_core() -> Any:
    """jax, which takes as many threads as there are cores for it."""
    if hasattr(os, "sched_setaffinity") and not CUDA:
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:1])
    import jax

    return jax


def scanned(jax: Any, one: Callable[[Any, Any], Any], carry: Any, shape: tuple[int, int]) -> tuple[Step, Reset, int]:
    """Episodes of `one`, a step that gives a sum of all that a user would get, so that none of it is left out."""
    bank = jax.random.randint(jax.random.PRNGKey(1), (EPISODE, *shape), 0, 5)
    episode = jax.jit(lambda carry: jax.lax.scan(one, carry, bank))
    held = [carry]

    def step(number: int) -> None:
        held[0], _ = jax.block_until_ready(episode(held[0]))

    return step, lambda number: None, EPISODE


def episodes(
    step: Step, reset: Reset, seconds: float, per_step: int, clock: Callable[[], float] = time.process_time
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
    peer, agents, envs = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what libraries and their children print must not be taken for an answer
    build: dict[str, Callable[[int, int], tuple[Step, Reset, int]]] = {
        "mpe2": mpe2, "vmas": vmas, "jaxmarl": jaxmarl, "jax": jaxenv, "jax32": partial(jaxenv, dtype="float32")
    }  # fmt: skip
    step, reset, per_step = build[peer](agents, envs)
    clock = time.perf_counter if CUDA else time.process_time
    episodes(step, reset, 0.0, per_step, clock)
    print(json.dumps({"ready": True, "version": version(peer.removesuffix("32"))}), file=out, flush=True)
    for line in sys.stdin:
        before = time.process_time()
        found = (1 if peer == "mpe2" else envs) * episodes(step, reset, float(line), per_step, clock)
        print(json.dumps({"rate": found, "cpu": time.process_time() - before}), file=out, flush=True)


if __name__ == "__main__":
    main()
