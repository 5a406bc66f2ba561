"""Two drones hold their height in gusts, the program of docs/tutorials/own_world.md: python drones.py [STEPS]."""

import sys

import numpy as np

from heron_env import (
    Continuous,
    FeatureProvider,
    FieldAgent,
    HeronEnv,
    Hyperparameters,
    ScheduleConfig,
    SystemAgent,
    Vector,
    World,
    quantity,
    register,
    rule,
    train,
)
from heron_env.lab import Intervals, learning_curves


# [state]
class Flight(FeatureProvider):
    """Observed by its owner only, which is the default."""

    height: float = quantity(default=0.0, low=-2.0, high=2.0, unit="m")
    speed: float = quantity(default=0.0, low=-4.0, high=4.0, unit="m/s")
    lift: float = quantity(default=0.0, low=-6.0, high=6.0, unit="m/s2")


class Wind(FeatureProvider):
    """A global feature; no agent observes it."""

    visibility = ()
    gust: float = quantity(default=0.0, low=-9.0, high=9.0, unit="m/s2")


# [agent]
class Drone(FieldAgent):
    """Its action is an acceleration."""

    features, action = (Flight,), Continuous(-6.0, 6.0, unit="m/s2")

    @staticmethod
    @rule(writes=Flight.lift)
    def apply_action(action: Vector) -> float:
        return action[0]

    @staticmethod
    @rule(writes=(Flight.height, Flight.speed))  # one substep of physics, dt seconds
    def advance(flight: Flight, wind: Wind, dt: float) -> tuple[float, float]:
        speed = flight.speed + (flight.lift + wind.gust) * dt
        return flight.height + speed * dt, speed

    @staticmethod
    @rule
    def compute_local_reward(flight: Flight) -> float:
        return -abs(flight.height)


# [world]
class Drones(HeronEnv):
    """Drones in the same wind."""

    dt = 0.1  # s, control step
    physics_substeps = 10  # so actions are timed to 0.01 s
    report_interval = 0.01  # s between two reports of a drone
    global_features = (Wind,)

    @staticmethod
    @rule
    def finish(world: World) -> None:  # after each step: the next gust
        u = world.draw("gust", 1)
        world.Wind.gust[0] = 0.8 * world.Wind.gust[0] + 2.0 * (u[0] - 0.5)


def drones(**options: object) -> HeronEnv:
    """Two of them, for 10 s."""
    fleet = SystemAgent("system_agent", Drone("drone_1"), Drone("drone_2"))
    return Drones(fleet, max_steps=100, **options)


register("my/Drones-v0", drones)

# [train]
STEPS = int(sys.argv[1]) if len(sys.argv) > 1 else 200_000
settings = Hyperparameters(n_steps=32, gamma=0.95, log_std=-1.0)
runs = [
    train(
        "my/Drones-v0",
        f"runs/drones-{seed}",
        total_steps=STEPS,
        seed=seed,
        hyperparameters=settings,
        validations=8,
        progress=False,
    )
    for seed in range(3)
]
figure = learning_curves({"drones": runs})
figure.savefig("curve.svg")

# [evaluate]
env, cases = drones(), range(32)
network = ScheduleConfig(msg_delay=0.03)
found = {"in steps": [], "without delay": [], "under the network": []}
for policies in (run.policies() for run in runs):
    places = (
        [env.run_synchronous(policies, seed=case) for case in cases],
        [env.run_event_driven(policies, seed=case) for case in cases],
        [env.run_event_driven(policies, seed=case, schedule=network) for case in cases],
    )
    for returns, episodes in zip(found.values(), places, strict=True):
        returns.append([episode.returns["system_agent"] for episode in episodes])
for place, returns in found.items():
    print(f"{place}:", Intervals(cases).mean(returns))
lost = np.subtract(found["in steps"], found["under the network"])  # by seed and case
print("the network takes:", Intervals(cases).mean(lost))
