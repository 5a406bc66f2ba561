"""Agents with masks of their own: one choice, several, mixed with a number; in rules and in the imperative style."""

from typing import Any

import numpy as np

from heron_env import (
    Action,
    Continuous,
    CoordinatorAgent,
    Discrete,
    FeatureProvider,
    FieldAgent,
    FieldAgentState,
    HeronEnv,
    Mixed,
    MultiDiscrete,
    SystemAgent,
    Vector,
    VectorDecomposition,
    quantity,
    rule,
)

LEAST, LONG = 0.3, 0.8
"""Ages, s, from which a lamp may go to state 1 and to state 2."""


class Age(FeatureProvider):
    """How long a lamp is in its state, s."""

    visibility = ("public",)
    age: float = quantity(default=0.0, low=0.0, high=1e3)
    state: int = quantity(default=0, low=0, high=2)


class Book(FeatureProvider):
    """What effects did: seen by nobody."""

    effects: float = quantity(default=0.0, low=0.0, high=1e6, observed=False)
    switched: float = quantity(default=0.0, low=0.0, high=1e6, observed=False)
    early: float = quantity(default=0.0, low=0.0, high=1e6, observed=False)


def allowed(age: float) -> tuple[bool, bool, bool]:
    """What a lamp of this age may do."""
    return True, age >= LEAST, age >= LONG


def fallen(age: float, book: Any, choice: int) -> tuple[float, ...]:
    """State, age and books after an effect; what float32 takes for old enough is no offence."""
    least = (0.0, LEAST, LONG)[choice] - 1e-6
    early = 1.0 if choice > 0 and age < least else 0.0
    taken = 1.0 if choice > 0 else 0.0
    return choice, age * (1.0 - taken), book.effects + 1.0, book.switched + taken, book.early + early


class Lamp(FieldAgent):
    """One choice: stay, or go to state 1 or 2, each only when it is old enough."""

    features = (Book, Age)
    action: Any = Discrete(3)

    @staticmethod
    @rule
    def action_mask(age: Age) -> tuple[bool, ...]:
        return allowed(age.age)

    @staticmethod
    @rule(writes=(Age.state, Age.age, Book.effects, Book.switched, Book.early))
    def apply_action(age: Age, book: Book, action: Vector) -> tuple[float, ...]:
        return fallen(age.age, book, int(action[len(action) - 1]))

    @staticmethod
    @rule(writes=Age.age)
    def advance(age: Age, dt: float) -> float:
        return age.age + dt

    @staticmethod
    @rule
    def compute_local_reward(age: Age) -> float:
        return -age.age * (1.0 + age.state)


class Pair(Lamp):
    """Two choices, the last of which is a lamp's; the first must not be the no-op while the state is 1."""

    action = MultiDiscrete([2, 3], noop=[1, 0])

    @staticmethod
    @rule
    def action_mask(age: Age) -> tuple[bool, ...]:
        return (True, age.state != 1, *allowed(age.age))


class Dimmer(Lamp):
    """A number and a lamp's choice."""

    action = Mixed(Continuous(-1.0, 1.0), Discrete(3))


class ByHand(FieldAgent):
    """A dimmer in the imperative style."""

    features = (Book, Age)

    def init_action(self) -> None:
        self.action = Action(Dimmer.action)

    def init_state(self) -> None:
        self.state = FieldAgentState(owner_id=self.agent_id, owner_level=1)
        for feature in self.initial:
            self.state.features.append(type(feature).from_dict(feature.to_dict()))

    def action_mask(self, local_state: Any) -> tuple[bool, ...]:
        return allowed(local_state["Age"].age)

    def apply_action(self) -> None:
        age, book = self.state.features[Age], self.state.features[Book]
        found = fallen(age.age, book, int(self.action.d[0]))
        age.state, age.age, book.effects, book.switched, book.early = found

    def advance(self, dt: float) -> None:
        self.state.features[Age].age += dt

    def compute_local_reward(self, local_state: Any) -> float:
        return float(-local_state["Age"].age * (1.0 + local_state["Age"].state))


KINDS = {"lamp": Lamp, "pair": Pair, "dimmer": Dimmer, "hand": ByHand}


def lamps(*kinds: str, commanded: bool = False, **options: Any) -> HeronEnv:
    """An environment of such agents, 30 steps of 0.1 s; in a zone that commands them, or free."""
    made = [KINDS[kind](f"{kind}_{number}") for number, kind in enumerate(kinds)]
    zone = CoordinatorAgent("zone_1", *made, **({"protocol": VectorDecomposition()} if commanded else {}))
    return HeronEnv(SystemAgent("system_agent", zone), **{"dt": 0.1, "max_steps": 30, **options})


def ages(env: HeronEnv, agent: str, vector: np.ndarray) -> tuple[float, float]:
    """The agent's own age and state in its vector."""
    names = env.observation_names(agent)
    return float(vector[names.index("Age.age")]), float(vector[names.index("Age.state")])


def expected(env: HeronEnv, agent: str, vector: np.ndarray) -> list[int]:
    """The flat mask that belongs to a vector, worked out here once more."""
    age, state = ages(env, agent, vector)
    first = [1, int(state != 1)] if agent.startswith("pair") else []
    return [*first, 1, int(age >= LEAST), int(age >= LONG)]


class Tampered(HeronEnv):
    """One lamp, whose masks are not what the rule says; `how`: in length, without a choice, or with all."""

    how = ""

    def step(self, actions: Any) -> Any:
        *results, infos = super().step(actions)
        for info in infos.values():
            info["action_mask"] = {"ragged": np.ones(2), "shut": np.zeros(3), "liberal": np.ones(3)}[self.how]
            info["action_mask"] = info["action_mask"].astype(np.int8)
        return (*results, infos)


def tampered(how: str, **options: Any) -> HeronEnv:
    """Such an environment."""
    env = Tampered(SystemAgent("system_agent", Lamp("lamp_0")), dt=0.1, max_steps=30, **options)
    env.how = how
    return env
