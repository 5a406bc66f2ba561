"""SuperSuit: its wrappers around the ParallelEnv, here frame stacking, scaled observations and clipped actions."""

# needs: heron_env supersuit==3.11.0

from importlib.metadata import version

import numpy as np
import supersuit
from pettingzoo.test import parallel_api_test

from heron_env import make

print("versions:", *(f"{name}=={version(name)}" for name in ("heron_env", "supersuit", "pettingzoo", "gymnasium")))

plain = make("heron/BatteryGrid-v0", num_batteries=3)
wrapped = supersuit.normalize_obs_v0(plain)
wrapped = supersuit.frame_stack_v1(wrapped, 4)
wrapped = supersuit.clip_actions_v0(wrapped)
parallel_api_test(wrapped, num_cycles=50)

before, _ = make("heron/BatteryGrid-v0", num_batteries=3).reset(seed=0)
seen, _ = wrapped.reset(seed=0)
total = 0.0
while wrapped.agents:
    beyond = {agent: np.full(1, 7.0, dtype=np.float32) for agent in wrapped.agents}  # clipped to 1
    seen, rewards, *_ = wrapped.step(beyond)
    total += sum(rewards.values())
shapes = f"{before['battery_1'].shape} -> {seen['battery_1'].shape}"
print(f"result: observations {shapes}, within [0, 1]: {max(v.max() for v in seen.values()) <= 1.0}, return {total:.1f}")
