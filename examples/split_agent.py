"""One device with continuous and discrete actions, split into two agents for Stable-Baselines3: engine and radio.

Both are parts of one drone and share its battery, without a network between them. The radio may send only while its
gauge shows more than 0.2. Needs heron_env[train].
"""

from sb3_contrib import MaskablePPO

from heron_env import (
    Children,
    Continuous,
    CoordinatorAgent,
    Discrete,
    FeatureProvider,
    FieldAgent,
    HeronEnv,
    Parent,
    SystemAgent,
    Vector,
    quantity,
    rule,
)
from heron_env.adapters import HeronVecEnv


class Battery(FeatureProvider):
    """The drone's: physics that no agent observes."""

    charge: float = quantity(default=1.0, low=0.0, high=1.0, observed=False)


class Load(FeatureProvider):
    """What a part draws, and its gauge of the battery."""

    # Power drawn from the drone's battery.
    power: float = quantity(low=0.0, high=1.0, unit="1/s")
    # Its gauge of the charge: a mask reads only the agent's own features.
    left: float = quantity(default=1.0, low=0.0, high=1.0)


class Engine(FieldAgent):
    """Draws more the faster it runs."""

    features, action = (Load,), Continuous(0.0, 1.0)

    @staticmethod
    @rule(writes=Load.power)
    def apply_action(action: Vector) -> float:
        return 0.02 * action[0]

    @staticmethod
    @rule(writes=Load.left)
    def advance(battery: Parent[Battery]) -> float:
        return battery.charge

    @staticmethod
    @rule
    def compute_local_reward(load: Load) -> float:
        return load.power


class Radio(Engine):
    """Sends only while its gauge shows enough."""

    action = Discrete(2)  # silent (the no-op), send

    @staticmethod
    @rule
    def action_mask(load: Load) -> tuple[bool, bool]:
        return True, load.left > 0.2


class Drone(CoordinatorAgent):
    """Its parts empty its battery."""

    features = (Battery,)

    @staticmethod
    @rule(writes=Battery.charge)
    def advance(battery: Battery, loads: Children[Load], dt: float) -> float:
        return battery.charge - loads.power.sum() * dt


def drones(**options):
    """One drone, sixty steps."""
    return HeronEnv(
        SystemAgent("sky", Drone("drone_1", Engine("engine_1"), Radio("radio_1"))),
        max_steps=60,
        **options,
    )


# Policies of the other groups; then train the engine beside the trained radio.
others = {"engine": lambda seen: [0.5]}
MaskablePPO(
    "MlpPolicy",
    HeronVecEnv(drones, 8, group="radio", others=others),
    n_steps=32,
    device="cpu",
).learn(512)
print(drones().run_synchronous({"radio": lambda seen: 1, **others}, seed=0).masked)
# {'radio_1': 32}
