"""An environment whose rules run compiled does what it does in plain Python, through every door."""

import copy
import re
from typing import Any, NamedTuple

import numpy as np
import pytest

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
    World,
    make,
    quantity,
    rule,
)
from heron_env.errors import ConfigError, InvalidAction


class Store(FeatureProvider):
    visibility = ("upper_level", "owner")
    level: float = quantity(default=0.5, low=0.0, high=1.0)
    force: float = 0.0
    age: int = quantity(default=0, low=0, high=99)


class Site(FeatureProvider):
    visibility = ("public",)
    total: float = 0.0


class Price(FeatureProvider):
    visibility = ("public",)
    value: float = 1.0


class Told(NamedTuple):
    level: float
    age: float


class Tank(FieldAgent):
    features = (Store,)
    action = Continuous(-1.0, 0.6)

    @staticmethod
    @rule(writes=Store.force)
    def apply_action(store: Store, action: Vector) -> float:
        return action[0]

    @staticmethod
    @rule(writes=(Store.level, Store.age))
    def advance(store: Store, site: Parent[Site], dt: float) -> tuple[float, float]:
        return store.level + store.force * dt * 0.1 - site.total * 0.001, store.age + 1

    @staticmethod
    @rule
    def compute_local_reward(store: Store, price: Price) -> float:
        return store.level * price.value

    @staticmethod
    @rule
    def is_terminated(store: Store) -> bool:
        return store.level >= 1.0

    @staticmethod
    @rule
    def get_local_info(store: Store) -> Told:
        return Told(store.level, store.age)


class Valve(FieldAgent):
    features = (Store,)
    action = Discrete(3, noop=1)

    @staticmethod
    @rule(writes=Store.force)
    def apply_action(store: Store, action: Vector) -> float:
        return action[0] - 1.0


class Yard(CoordinatorAgent):
    features = (Site,)

    @staticmethod
    @rule(writes=Site.total)
    def advance(stores: Children[Store]) -> float:
        return stores.level.sum()


class Plant(HeronEnv):
    dt = 0.5
    physics_substeps = 2
    global_features = (Price,)

    def begin(self, world: World) -> None:
        self.series = world.draw("prices", 50)
        world.Price.value[...] = self.series[0]

    def finish(self, world: World) -> None:
        world.Price.value[...] = self.series[world.step]


def plant(compile: bool = True, **options: Any) -> Plant:
    yard = Yard("yard", Tank("tank_1"), Tank("tank_2"), Valve("valve"))
    return Plant(SystemAgent("s", yard, Tanker("tanker")), compile=compile, **{"max_steps": 30, **options})


class Tanker(Tank):
    """A tank without a yard above it."""

    @staticmethod
    @rule(writes=Store.level)
    def advance(store: Store, dt: float) -> float:
        return store.level + store.force * dt


def both(**options: Any) -> tuple[Plant, Plant]:
    return plant(True, **options), plant(False, **options)


def actions_of(env: HeronEnv, k: int) -> dict[str, Any]:
    """Arrays and numbers; every third step somebody says nothing, every fourth is out of turn for some."""
    found: dict[str, Any] = {}
    for place, agent in enumerate(env.agents):
        if (k + place) % 5 == 3:
            continue
        spec = env.simulation.model.specs[env.hierarchy.index[agent]]
        wave = np.sin(1.0 + k + 2.0 * place)
        part = spec.low + (spec.high - spec.low) * (0.5 + 0.5 * wave)
        found[agent] = np.concatenate([part, np.full(spec.dim_d, float((k + place) % 3))]).astype(np.float32)
    return found


def plainly(value: Any) -> Any:
    """Numbers to 12 digits, arrays as lists with their types."""
    if isinstance(value, dict):
        return {name: plainly(part) for name, part in value.items()}
    if isinstance(value, tuple | list):
        return [plainly(part) for part in value]
    if isinstance(value, np.ndarray):
        return str(value.dtype), plainly(value.tolist())
    return (type(value).__name__, round(float(value), 12)) if isinstance(value, float | np.generic) else value


REFUSED: list[tuple[dict[str, Any], type[Exception]]] = [
    ({"tank_1": np.array([0.61], dtype=np.float32)}, InvalidAction),
    ({"tank_1": np.array([np.nan])}, InvalidAction),
    ({"tank_1": np.zeros(2)}, InvalidAction),
    ({"tank_1": np.array(["up"])}, InvalidAction),
    ({"valve": np.array([0.5])}, InvalidAction),
    ({"valve": 3}, InvalidAction),
]


@pytest.mark.parametrize(("wrong", "error"), REFUSED)
def test_what_is_refused_says_the_same_and_changes_nothing(wrong: dict[str, Any], error: type[Exception]):
    said = []
    for env in both():
        env.reset(seed=0)
        given: dict[str, Any] = {agent: np.zeros(1) for agent in env.agents}
        env.step(given)
        before = env.get_state()
        with pytest.raises(error) as caught:
            env.step({**given, **wrong})
        said.append(str(caught.value))
        after = env.get_state()
        assert after.pop("truth").tobytes() == before.pop("truth").tobytes()
        assert after == before
        env.step(given)
    assert said[0] == said[1]


def test_a_state_carries_a_run_from_one_execution_to_the_other():
    compiled, plain = both()
    compiled.reset(seed=2)
    for k in range(3):
        compiled.step(actions_of(compiled, k))
    plain.set_state(compiled.get_state())
    for k in range(3, 6):
        assert plainly(plain.step(actions_of(plain, k))) == plainly(compiled.step(actions_of(compiled, k)))


def test_world_states_and_proxy_look_at_the_compiled_truth():
    env = plant()
    world = env.world
    env.reset(seed=0)
    env.step({agent: np.zeros(1) for agent in env.agents})
    assert env.world is world
    assert env.proxy.cache is env.simulation.truth
    tank = env.hierarchy.agents[env.hierarchy.index["tank_1"]]
    assert np.shares_memory(tank.state.features[0]._array, env.simulation.truth)
    world[Tank].Store.level[...] = 0.25
    assert tank.state.features[0].level == 0.25
    assert env._observe()["tank_1"][0] == np.float32(0.25)


def test_what_a_step_gives_is_not_changed_by_the_next():
    env = plant(max_steps=None)
    env.reset(seed=0)
    given = {agent: np.full(1, 0.5) if agent != "valve" else np.zeros(1) for agent in env.agents}
    first = env.step(given)
    kept = copy.deepcopy(first)
    env.step(given)
    assert plainly(first) == plainly(kept)
    infos = env.step(given)[4]
    infos["tank_1"]["aoi"][:] = 7.0
    assert not any(info["aoi"].any() for info in env.step(given)[4].values())


class ByHand(Tank):
    def set_action(self, action: Any) -> None:
        super().set_action(action)


def test_agents_written_by_hand_run_in_plain_python():
    env = Plant(SystemAgent("s", Yard("y", ByHand("a"))), max_steps=3, compile=True)
    assert not env.compiled


def test_compiling_is_the_default_unless_the_variable_says_0(monkeypatch: pytest.MonkeyPatch):
    for value, expected in (("0", False), ("1", True), ("", True)):
        monkeypatch.setenv("HERON_COMPILE", value)
        assert make("heron/BatteryGrid-v0").compiled is expected
    monkeypatch.delenv("HERON_COMPILE")
    assert make("heron/BatteryGrid-v0").compiled
    with pytest.raises(ConfigError, match=re.escape("compile='yes': must be True, False, or None for the default")):
        make("heron/BatteryGrid-v0", compile="yes")
