"""Predicting: a policy that acts late decides as it would if it did not, as far as its model is right."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import gymnasium
import numpy as np
import pytest

from heron_env import (
    Continuous,
    FeatureProvider,
    FieldAgent,
    HeronEnv,
    ScheduleConfig,
    SystemAgent,
    Vector,
    make,
    quantity,
    rule,
)
from heron_env.errors import ConfigError
from heron_env.lab import Baseline, Condition, Predicting, Smoothing, Sweep, benchmark
from heron_env.lab.predicting import LinearModel, Predicted
from heron_env.lab.sweep import running
from heron_env.lab.sweep.records import run_item
from heron_env.lab.sweep.running import bundles, run_bundle


class Tank(FeatureProvider):
    visibility = ("owner",)
    x: float = quantity(default=0.0, low=-999.0, high=999.0)
    u: float = quantity(default=0.0, low=-30.0, high=30.0, observed=False)


class Pump(FieldAgent):
    """An integrator: where nothing is done nothing moves, and all numbers here are sums of halves."""

    features = (Tank,)
    action = Continuous(-30.0, 30.0)

    @staticmethod
    @rule(writes=Tank.u)
    def apply_action(tank: Tank, action: Vector) -> float:
        return action[0]

    @staticmethod
    @rule(writes=Tank.x)
    def advance(tank: Tank, dt: float) -> float:
        return tank.x + tank.u * dt

    @staticmethod
    @rule
    def compute_local_reward(tank: Tank) -> float:
        return -abs(tank.x - 8.0)


def tanks(observe_age: bool = False, **options: Any) -> HeronEnv:
    return HeronEnv(
        SystemAgent("system", Pump("pump_1"), Pump("pump_2", Tank(x=2.0))),
        dt=1.0, max_steps=20, observe_age=observe_age, compile=False, **options,
    )  # fmt: skip


def towards_8(vector: Any) -> Any:
    return np.array([0.5 * (8.0 - float(vector[0]))])


def integrator(vectors: Any, actions: Any) -> Any:
    later = vectors.copy()
    later[:, 0] += actions[:, 0]
    return later


@dataclass(frozen=True)
class Given:
    """Two pumps by one rule."""

    def build(self, env: Any, seed: int) -> Any:
        return {"*": towards_8}


def decisions(result: Any, agent: str = "pump_1") -> list[float]:
    return [float(action[0]) for _, action in result.actions[agent]]


SPLITS = [(0, 1), (0, 3), (1, 0), (2, 0), (1, 2), (3, 4)]
"""Steps that are seen late, and that are acted late."""


@pytest.mark.parametrize("aged", [False, True])
@pytest.mark.parametrize(("seen", "acts"), SPLITS)
def test_with_the_right_model_decisions_are_those_without_delay_bit_for_bit(seen: int, acts: int, aged: bool):
    """The law of Smith's predictor: the loop is the prompt one, later; here nothing moves until it begins."""
    network = ScheduleConfig(obs_delay=float(seen), act_delay=float(acts))
    env = tanks(aged)
    prompt = tanks().run_event_driven(Given().build(env, 0), seed=0)
    policies = Predicting(Given(), integrator, network).build(env, 0)
    late = env.run_event_driven(policies, seed=0, schedule=network)
    for agent in ("pump_1", "pump_2"):
        assert decisions(late, agent) == decisions(prompt, agent)[: -(seen + acts)]
        assert late.actions[agent][0][0] == prompt.actions[agent][0][0] + seen + acts
    plain = env.run_event_driven(Given().build(env, 0), seed=0, schedule=network)
    assert decisions(plain) != decisions(late)


def test_ages_are_rolled_as_they_come_whatever_the_schedule_says():
    """Every second report is older: with ages the decisions are still those of the truth of now."""
    lost = ScheduleConfig(msg_delay=0.25, loss=0.3)
    env = tanks(observe_age=True)
    seen: list[tuple[float, float]] = []

    def spy(vector: Any) -> Any:
        seen.append((float(vector[0]), float(vector[-1])))
        return towards_8(vector)

    class Spied:
        def build(self, env: Any, seed: int) -> Any:
            return {"*": towards_8, "pump_1": spy}

    result = env.run_event_driven(Predicting(Spied(), integrator, lost).build(env, 0), schedule=lost, seed=3)
    plain = env.run_event_driven(Spied().build(env, 0), schedule=lost, seed=3)
    assert max(age for _, age in seen) >= 2.0
    assert result.returns["pump_1"] > plain.returns["pump_1"]


@pytest.mark.parametrize("clock", ["run_synchronous", "run_event_driven"])
@pytest.mark.parametrize("aged", [False, True])
@pytest.mark.parametrize(
    ("name", "rule_name"),
    [("heron/BatteryGrid-v0", "random"), ("heron/TrafficCorridor-v0", "fixed cycle")],
)
def test_without_delay_nothing_changes_bit_for_bit(name: str, rule_name: str, aged: bool, clock: str):
    env, plain = make(name, max_steps=30, observe_age=aged), Baseline(rule_name)
    course = getattr(env, clock)(plain.build(env, 0), seed=4)
    predicting = Predicting(plain, episodes=1, schedule=ScheduleConfig()).build(env, 0)
    assert course.same_course(getattr(env, clock)(predicting, seed=4))


def test_a_model_is_learned_from_episodes_and_predicts_nearly_as_well():
    network = ScheduleConfig(obs_delay=1.0, act_delay=2.0)
    env = tanks()
    prompt = env.run_event_driven(Given().build(env, 0), seed=0)
    learned = Predicting(Given(), schedule=network).prepared(env)
    assert isinstance(learned.model, dict) and set(learned.model) == {"pump"}
    late = env.run_event_driven(learned.build(env, 0), seed=0, schedule=network)
    assert decisions(late) == pytest.approx(decisions(prompt)[:-3], abs=1e-4)
    again = Predicting(Given(), schedule=network).prepared(tanks())
    assert repr(again) == repr(learned), "equal runs learn equal models"


def test_a_row_is_predicted_alike_alone_and_among_others():
    rng = np.random.default_rng(5)
    before, acts = rng.normal(size=(400, 6)).astype(np.float32), rng.normal(size=(400, 2))
    model = LinearModel.fitted([(before[:-1], acts[:-1], before[1:])])
    rows = model(before, acts)
    assert all((model(before[i : i + 1], acts[i : i + 1])[0] == rows[i]).all() for i in range(0, 400, 37))


def test_memories_are_of_rows_and_episodes():
    wants = Predicted(towards_8, integrator, np.zeros(1), 2.0)
    two = np.array([[0.0], [4.0]], dtype=np.float32)
    first, later = np.array([True, True]), np.array([False, False])
    who = np.array([3, 0])
    assert wants.forward_rows(two, who, first)[:, 0].tolist() == [4.0, 2.0]
    assert wants.forward_rows(two, who, later)[:, 0].tolist() == [2.0, 1.0]
    assert wants.forward_rows(two[::-1].copy(), who[::-1].copy(), later)[:, 0].tolist() == [0.5, 1.0]
    assert wants.forward_rows(two, who, first)[:, 0].tolist() == [4.0, 2.0], "an episode forgets"
    wants.begin()
    assert [wants.forward(two[0])[0], wants.forward(two[0])[0]] == [4.0, 2.0]
    wants.begin()
    assert wants.forward(two[0])[0] == 4.0


@pytest.mark.parametrize("aged", [False, True])
def test_side_by_side_as_one_by_one(aged: bool, monkeypatch: pytest.MonkeyPatch):
    options = {"dt": 900.0, "physics_substeps": 9, "compile": True, "observe_age": aged}
    rough = Condition(msg_delay=400.0, obs_delay=900.0, act_delay=1800.0, jitter=0.5, loss=0.3)
    policies = {"r": "grid-friendly+predict", "held": "grid-friendly"}
    sweep = Sweep.of("heron/EnergyManagement-v1", policies, [rough], cases=3, options=options)
    every = [item for item in sweep.items() if item.condition == rough]
    items = [item for item in every if item.name == "r"]
    assert run_item(items[0]).outcome.course != run_item(every[1]).outcome.course
    alone = [replace(run_item(item), seconds=0.0) for item in items]
    assert [len(bundle) for bundle in bundles(items, 1)] == [3]
    monkeypatch.delattr(running, "run_item")
    assert [replace(record, seconds=0.0) for record in run_bundle(tuple(items))] == alone


class Integrator(gymnasium.Env[Any, Any]):
    """The tank again, as somebody else's environment."""

    observation_space = gymnasium.spaces.Box(-999.0, 999.0, (1,), np.float32)
    action_space = gymnasium.spaces.Box(-30.0, 30.0, (1,), np.float32)

    def reset(self, *, seed: Any = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.x, self.steps = 0.0, 0
        return np.array([self.x], np.float32), {}

    def step(self, action: Any) -> Any:
        self.x, self.steps = self.x + float(action[0]), self.steps + 1
        return np.array([self.x], np.float32), -abs(self.x - 8.0), False, self.steps == 20, {}


@pytest.fixture(scope="module", autouse=True)
def _registered() -> Iterator[None]:
    gymnasium.register("test/Integrator-v0", Integrator)
    yield
    gymnasium.registry.pop("test/Integrator-v0")


@pytest.mark.parametrize("aged", [False, True])
@pytest.mark.parametrize(("seen", "acts"), SPLITS)
def test_a_black_box_under_the_network_is_predicted_by_the_same_law(seen: int, acts: int, aged: bool):
    box = benchmark.BlackBox("gymnasium:test/Integrator-v0", noop=np.zeros(1, np.float32), observe_age=aged)
    network = {box.possible_agents[0]: ScheduleConfig(obs_delay=float(seen), act_delay=float(acts))}
    (agent,) = box.possible_agents
    prompt = box.run_event_driven(Given().build(box, 0), schedule={}, seed=0)
    late = box.run_event_driven(Predicting(Given(), integrator, network).build(box, 0), schedule=network, seed=0)
    assert decisions(late, agent) == decisions(prompt, agent)[: -(seen + acts)]


def test_what_a_sweep_knows_of_its_network_is_predicted_over_and_hold_is_the_plain_policy():
    late = Condition(obs_delay=1.0, act_delay=2.0)
    of = {"plain": Given(), "ahead": Predicting(Given(), integrator)}
    result = Sweep.of(f"{__name__}:tanks", of, [late], cases=2, trust=f"{__name__}:tanks").run(
        processes=1, progress=False
    )
    assert result.point("ahead", late).mean.value > result.point("plain", late).mean.value
    held = Sweep.of("heron/BatteryGrid-v0", {"a": "random", "b": "random+hold"}, [late], cases=2)
    same = held.run(processes=1, progress=False)
    assert same.point("a", late).values == same.point("b", late).values


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda: Predicting(Given(), episodes=0), "Predicting(episodes)=0: must be a whole number from 1 to 2**63 - 1"),
        (
            lambda: Predicting(Predicting(Given(), integrator), integrator).build(tanks(), 0),
            "Predicting: Predicted remembers what its agent saw and did, which is not what it would be shown; "
            "put Predicting around a policy that decides on one observation",
        ),
        (
            lambda: Smoothing(Predicting(Given(), integrator), "x", 1.0).build(tanks(), 0),
            "a remedy: Predicted remembers what its agent saw and did, which is not what it would be shown; "
            "put a remedy around a policy that decides on one observation",
        ),
    ],
)
def test_what_cannot_be_predicted_is_told(build: Any, words: str):
    with pytest.raises(ConfigError) as caught:
        build()
    assert str(caught.value) == words
