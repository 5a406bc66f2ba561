"""A Smith predictor around a rule: under delay it decides on what will be so when its action takes effect.

    python examples/predicting.py    # seconds: CartPole with actions 5 steps late, hold beside predict

The model is linear, fitted by least squares to a few episodes without delay. It helps where it fits the plant, as here;
in EnergyManagement and TrafficCorridor it does not (docs/how_to/train_under_a_network.md).
"""

from collections import deque

import numpy as np

from heron_env import ScheduleConfig, make, mean_interval

LATE, CASES = 5, 20


def upright(vector):
    """Push to where the pole falls, a little ahead."""
    return int(np.dot(vector, [0.05, 0.15, 1.0, 0.35]) > 0.0)


class Recorder:
    """Notes what a policy observes and decides."""

    def __init__(self, policy):
        self.policy, self.observations, self.actions = policy, [], []

    def forward(self, observation):
        """The policy's action."""
        self.observations.append(np.array(observation, dtype=np.float64))
        self.actions.append(self.policy(observation))
        return self.actions[-1]

    def transitions(self):
        """Rows of observation, action and 1, and the change of the observation."""
        x, u = np.stack(self.observations), np.array(self.actions, dtype=np.float64)[:, None]
        return np.hstack([x, u, np.ones_like(u)])[:-1], np.diff(x, axis=0)


class Predictor:
    """Rolls the model `[d + 2, d]` over the decisions that are still on their way, and lets the policy decide then."""

    def __init__(self, policy, model, late, noop=0):
        self.policy, self.model, self.sent = policy, model, deque([noop] * late, maxlen=late)

    def forward(self, observation):
        """The policy's action on the observation that is expected when it takes effect."""
        expected = np.array(observation, dtype=np.float64)
        for action in self.sent:
            expected += np.concatenate([expected, [action, 1.0]]) @ self.model
        self.sent.append(self.policy(expected))
        return self.sent[-1]


if __name__ == "__main__":
    env = make("gymnasium:CartPole-v1", noop=0, max_steps=200)
    (agent,) = env.possible_agents
    rng, episodes = np.random.default_rng(0), []
    for seed in range(4):
        for policy in (upright, lambda _: int(rng.integers(2))):
            recorder = Recorder(policy)
            env.run_synchronous({agent: recorder}, seed=1000 + seed)
            episodes.append(recorder.transitions())
    inputs, changes = (np.concatenate(part) for part in zip(*episodes, strict=True))
    fitted = np.linalg.lstsq(inputs, changes, rcond=None)[0]
    network = ScheduleConfig(act_delay=float(LATE))
    for name, built in (("hold", lambda: upright), ("predict", lambda: Predictor(upright, fitted, LATE))):
        returns = [
            env.run_event_driven({agent: built()}, seed=s, schedule=network).returns[agent] for s in range(CASES)
        ]
        print(f"{name:<8} {mean_interval(returns)}")
