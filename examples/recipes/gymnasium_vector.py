"""Gymnasium: one controller for all agents, and 256 environments in one compiled loop behind make_vec."""

# needs: heron_env

import time
from importlib.metadata import version

import gymnasium
import numpy as np

ID, LANES, STEPS = "heron_env:heron/BatteryGrid-v0", 256, 50
print("versions:", *(f"{name}=={version(name)}" for name in ("heron_env", "gymnasium", "numpy")))

print(gymnasium.make(ID, num_batteries=4).action_space)  # one environment: the actions of all in one vector
lanes = gymnasium.make_vec(ID, num_envs=LANES, num_batteries=4, max_steps=STEPS)
shape = (lanes.single_observation_space.shape[0], lanes.single_action_space.shape[0])
numbers = np.random.default_rng(0)


def returns(weights: np.ndarray) -> np.ndarray:
    """Of one episode, another linear policy in each lane; weights `[lanes, observation + 1, action]`."""
    (seen, _), total = lanes.reset(seed=0), np.zeros(LANES)
    for _ in range(STEPS):
        scaled = np.concatenate([seen / lanes.single_observation_space.high, np.ones((LANES, 1))], axis=1)
        actions = np.tanh(np.einsum("ls,lsa->la", scaled, weights)).astype(np.float32)
        seen, rewards, *_ = lanes.step(actions)
        total += rewards
    return total


mean, spread = np.zeros((shape[0] + 1, shape[1])), 1.0
first = returns(mean + spread * numbers.standard_normal((LANES, *mean.shape))).mean()
began = time.process_time()  # rules are compiled by now
for _ in range(10):  # the cross-entropy method
    tried = mean + spread * numbers.standard_normal((LANES, *mean.shape))
    best = tried[np.argsort(returns(tried))[-32:]]
    mean, spread = best.mean(axis=0), best.std(axis=0)
last = returns(np.broadcast_to(mean, (LANES, *mean.shape))).mean()
rate = 11 * LANES * STEPS / (time.process_time() - began)
print(f"result: random policies {first:.1f}, after ten generations {last:.1f}; {rate:,.0f} steps/CPU-s")
