"""A network around CartPole-v1, the program of docs/tutorials/cartpole.md: python cartpole.py [STEPS]."""

import sys

import gymnasium
import numpy as np
from matplotlib.figure import Figure
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.env_util import make_vec_env

from heron_env import ScheduleConfig, under_network
from heron_env.lab import Intervals

# [network]
NETWORK = ScheduleConfig(
    obs_delay=1.0,
    act_delay=1.0,
    jitter_type="lognormal",
    jitter_ratio=0.3,
    loss=0.1,
)


def cartpole(network=None):
    """CartPole under this network; None: the bare environment."""
    return under_network(gymnasium.make("CartPole-v1"), network, noop=0)


# [evaluation]
def returns(model, network, cases):
    """One return for each case, a seed of the environment and its network."""
    options = {"network": network}
    envs = make_vec_env(cartpole, len(cases), seed=cases[0], env_kwargs=options)
    observations, total = envs.reset(), np.zeros(len(cases))
    running = np.ones(len(cases), dtype=bool)
    while running.any():
        actions, _ = model.predict(observations, deterministic=True)
        observations, rewards, ended, _ = envs.step(actions)
        total += rewards * running
        running &= ~ended
    return total


# [training]
class Curve(BaseCallback):
    """The mean return under the network, on cases of its own, nine times."""

    def measure(self):
        mean = returns(self.model, NETWORK, range(1000, 1032)).mean()
        self.points.append((self.num_timesteps, mean))

    def _on_training_start(self):
        self.points = []

    def _on_rollout_start(self):
        if self.num_timesteps >= STEPS / 8 * len(self.points):
            self.measure()

    def _on_step(self):
        return True

    def _on_training_end(self):
        self.measure()


def train(network, seed):
    """PPO with the hyperparameters of RL Baselines3 Zoo, and its learning curve."""
    options = {"network": network}
    envs = make_vec_env(cartpole, 8, seed=1000 * seed, env_kwargs=options)
    model = PPO(
        "MlpPolicy", envs, n_steps=32, batch_size=256, n_epochs=20, gamma=0.98,
        gae_lambda=0.8, learning_rate=lambda left: 0.001 * left,
        clip_range=lambda left: 0.2 * left, seed=seed, device="cpu",
    )  # fmt: skip
    curve = Curve()
    model.learn(STEPS, callback=curve)
    model.save(f"{'under' if network else 'without'}-{seed}.zip")
    return model, curve.points


# [main]
STEPS = int(sys.argv[1]) if len(sys.argv) > 1 else 50_000
SEEDS, CASES = range(3), range(32)
PLACES = {"without": None, "under": NETWORK}
figure = Figure(figsize=(6, 3), layout="constrained")
axes = figure.subplots()
axes.set(xlabel="training steps", ylabel="return under the network")
late = {}
for (name, network), colour in zip(PLACES.items(), ("C0", "C1"), strict=True):
    models, curves = zip(*(train(network, seed) for seed in SEEDS), strict=True)
    for points in curves:
        axes.plot(*np.transpose(points), color=colour, alpha=0.3)
    label = f"trained {name} {'the' if network else 'a'} network"
    axes.plot(*np.mean(curves, axis=0).T, color=colour, marker="o", label=label)
    for place, there in PLACES.items():
        late[name] = [returns(model, there, CASES) for model in models]
        print(f"trained {name}, played {place}:", Intervals(CASES).mean(late[name]))
    axes.legend()
    figure.savefig("curve.svg")
gain = Intervals(CASES).difference(late["under"], late["without"])
print("gained by training under the network:", gain)
