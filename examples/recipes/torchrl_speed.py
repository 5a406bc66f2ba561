"""TorchRL: HeronTorchEnv beside TorchRL's own PettingZooWrapper, in turns: same random policy, one thread, CPU time."""

# needs: heron_env torchrl==0.14.1 tensordict==0.14.3

import json
import sys
import time
from importlib.metadata import version
from pathlib import Path
from statistics import median

import torch
from torchrl.envs import PettingZooWrapper, step_mdp

from heron_env import make
from heron_env.adapters import HeronTorchEnv

names = ("heron_env", "torchrl", "tensordict", "torch", "pettingzoo")
print("versions:", *(versions := [f"{name}=={version(name)}" for name in names]))
torch.set_num_threads(1)
ID, STEPS, ROUNDS = "heron/EnergyManagement-v1", 32, 9
single = make(ID)
envs = {"PettingZooWrapper": PettingZooWrapper(single, group_map=single.group_map, use_mask=False)}
envs |= {f"HeronTorchEnv({lanes})": HeronTorchEnv(ID, lanes, threads=1) for lanes in (1, 256)}
fps, now = {name: [] for name in envs}, {name: env.reset() for name, env in envs.items()}
for turn in range(ROUNDS + 1):
    for name in list(fps)[:: 1 if turn % 2 else -1]:
        began = time.process_time()
        told = envs[name].rollout(STEPS, tensordict=now[name], auto_reset=False, break_when_any_done=False)
        fps[name] += [told.numel() / (time.process_time() - began)] * (turn > 0)  # the first turn compiles
        now[name] = step_mdp(told[..., -1])  # the day goes on
wrapper, _, batch = fps.values()
ratios = [ours / theirs for ours, theirs in zip(batch, wrapper, strict=True)]
if sys.argv[1:]:
    kept = {"versions": versions, "env": ID, "steps": STEPS, "frames_per_cpu_second": fps, "ratios": ratios}
    Path(sys.argv[1]).write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
told = "; ".join(f"{name} {median(each):,.0f}" for name, each in fps.items())
print(f"result: frames per CPU second: {told}; {median(ratios):.0f} times [{min(ratios):.0f}, {max(ratios):.0f}]")
