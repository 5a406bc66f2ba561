"""TorchRL: PPO with masks and a central critic; 64 environments are one tensordict, and a step of all is one call."""

# needs: heron_env torchrl==0.14.1 tensordict==0.14.3

from importlib.metadata import version

import torch
from tensordict.nn import TensorDictModule
from torchrl.envs import ActionMask, ObservationNorm, TransformedEnv, set_exploration_type
from torchrl.modules import MaskedCategorical, MultiAgentMLP, ProbabilisticActor
from torchrl.objectives import ClipPPOLoss

from heron_env.adapters import HeronTorchEnv

print("versions:", *(f"{name}=={version(name)}" for name in ("heron_env", "torchrl", "tensordict", "torch")))
torch.set_num_threads(1)
torch.manual_seed(0)
G, scale = "intersection", 1 / torch.tensor([1.0, 30, 60, 10, 10, 3, 3, 3, 3, 15])  # what it sees: s, vehicles, ...
env, seen = HeronTorchEnv("heron/TrafficCorridor-v0", 64, groups=[G], max_steps=60), [(G, "observation")]
env = TransformedEnv(env, ActionMask((G, "action"), (G, "action_mask")))  # for random actions
env.append_transform(ObservationNorm(0.0, scale, seen, seen))
own, every = (MultiAgentMLP(10, n, 4, centralised=n == 1, share_params=n == 2, num_cells=[32, 32]) for n in (2, 1))
logits, masked = TensorDictModule(own, seen, [(G, "logits")]), {"logits": (G, "logits"), "mask": (G, "action_mask")}
actor = ProbabilisticActor(logits, masked, [(G, "action")], distribution_class=MaskedCategorical, return_log_prob=True)
loss = ClipPPOLoss(actor, TensorDictModule(every, seen, ["state_value"]))
loss.set_keys(**{name: (G, name) for name in ("reward", "action", "done", "terminated")})
loss.make_value_estimator(gamma=0.95, lmbda=0.95)
adam, worth = torch.optim.Adam(loss.parameters(), lr=1e-3), []
for turn in range(42):
    env.set_seed(64 * turn if 0 < turn < 41 else 1_000_000)  # the first, of random actions, and the last: the same
    with torch.no_grad(), set_exploration_type("random" if turn < 41 else "deterministic"):
        told = env.rollout(60, actor if turn else None)  # whole episodes
        told["next", G].update({k: told["next", k][..., None].expand(64, 60, 4, 1) for k in ("done", "terminated")})
        loss.value_estimator(told, params=loss.critic_network_params)
    worth.append(told["next", G, "reward"].sum(1).mean())
    for rows in torch.randperm(3840).repeat(6).split(960) if 0 < turn < 41 else ():
        adam.zero_grad()
        sum(value for name, value in loss(told.flatten()[rows]).items() if name.startswith("loss_")).backward()
        adam.step()
print(f"result: random {worth[0]:.2f}, PPO {worth[-1]:.2f}")
