"""PettingZoo: the same environment as a ParallelEnv and agent by agent (AEC), with masks and the state for a critic."""

# needs: heron_env

from importlib.metadata import version

import numpy as np
import pettingzoo
from pettingzoo.test import parallel_api_test

import heron_env

ID = "heron/TrafficCorridor-v0"
print("versions:", *(f"{name}=={version(name)}" for name in ("heron_env", "pettingzoo", "numpy")))

parallel_api_test(heron_env.make(ID, max_steps=30), num_cycles=60)
aec = pettingzoo.make("aec", ID, max_steps=120)  # or parallel_to_aec(heron_env.make(ID))


def played(seed: int, choose: object) -> float:
    """The sum of everybody's rewards in one episode, agent by agent."""
    aec.reset(seed=seed)
    total, numbers = 0.0, np.random.default_rng(seed)
    for agent in aec.agent_iter():
        _, reward, terminated, truncated, info = aec.last()
        total += reward
        over = terminated or truncated
        aec.step(None if over else choose(numbers, info.get("action_mask", np.ones(aec.action_space(agent).n))))
    return total


any_allowed = np.mean([played(seed, lambda numbers, mask: numbers.choice(np.flatnonzero(mask))) for seed in range(5)])
last_allowed = np.mean([played(seed, lambda numbers, mask: int(np.flatnonzero(mask)[-1])) for seed in range(5)])
parallel = pettingzoo.make("parallel", ID)
parallel.reset(seed=0)
print(f"result: random {any_allowed:.1f}, the last choice allowed {last_allowed:.1f}; state {parallel.state().shape}")
