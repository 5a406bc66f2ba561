"""The hook `sees` in all executions of one small world, and in the other forms of an observation."""

from typing import Any

import numpy as np
import pytest

from heron_env import (
    BatchEnv,
    Continuous,
    FeatureProvider,
    FieldAgent,
    HeronEnv,
    ObservabilityConfig,
    SimulationState,
    SystemAgent,
    Vector,
    construct_observation,
    quantity,
    rule,
)
from heron_env.errors import ConfigError, UnknownAgent


class Place(FeatureProvider):
    """Where one is, and what it carries."""

    visibility = ("public",)
    x: float = quantity(default=0.25, low=-5.0, high=5.0)
    y: float = quantity(default=0.5, low=-5.0, high=5.0, relative=True)
    load: int = quantity(default=2, low=0, high=9)


class Walker(FieldAgent):
    """Moves along x."""

    features = (Place,)
    action = Continuous(-1.0, 1.0)

    @staticmethod
    @rule(writes=(Place.x, Place.y))
    def apply_action(place: Place, action: Vector) -> tuple[float, float]:
        return place.x + 0.5 * action[0], place.y - 0.3 * action[0]


class Fog(HeronEnv):
    """Who is less than 0.6 apart sees the other."""

    @staticmethod
    @rule(of=Walker)
    def sees(world: Any, observer: int, target: int) -> bool:
        x = world[Walker].Place.x
        return abs(x[observer] - x[target]) < 0.6

    @staticmethod
    @rule
    def begin(world: Any) -> None:
        x, drawn = world[Walker].Place.x, world.draw("x", 4)
        for i in range(4):
            x[i] = drawn[i] * 2.0 - 1.0


class PlainFog(Fog):
    """The same as a method."""

    def sees(self, world: Any, observer: int, target: int) -> bool:  # type: ignore[override]
        x = world[Walker].Place.x
        return bool(abs(x[observer] - x[target]) < 0.6)


def fog(kind: type[HeronEnv] = Fog, **options: Any) -> HeronEnv:
    return kind(SystemAgent("boss", *(Walker(f"w_{i}") for i in range(4))), dt=1.0, max_steps=8, **options)


def wave(vector: Any) -> list[float]:
    return [float(np.sin(vector.sum() * 7.0))]


NOISY = ObservabilityConfig(enabled=True, default={"level": "insider", "noise": 0.2})


@pytest.mark.parametrize("observability", [None, NOISY], ids=["exact", "noisy"])
def test_plain_and_compiled_methods_and_rules_lanes_and_single_show_the_same(observability: Any) -> None:
    options = {"observe_visible": True, "observe_age": True, "observability": observability}
    episodes = []
    for kind, compiled in ((Fog, False), (Fog, True), (PlainFog, True)):
        env = fog(kind, compile=compiled, **options)
        observed, _ = env.reset(seed=3)
        episodes.append([observed])
        while env.agents:
            observed, *_ = env.step({agent: wave(vector) for agent, vector in observed.items()})
            episodes[-1].append(observed)
    for other in episodes[1:]:
        assert all(np.array_equal(a[k], b[k]) for a, b in zip(episodes[0], other, strict=True) for k in a)
    shown = np.array([o["w_1"] for o in episodes[0]])
    names = fog(**options).observation_names("w_1")
    for mate in ("w_0", "w_2", "w_3"):
        unseen = shown[shown[:, names.index(f"visible.{mate}")] == 0.0]
        assert len(unseen) > 0 and (unseen[:, names.index(f"{mate}.Place.load")] == 2.0).all()
        assert (unseen[:, names.index(f"{mate}.Place.x")] == 0.25).all()
        assert (unseen[:, names.index(f"{mate}.Place.y - Place.y")] == 0.0).all()
    assert shown[:, -3:].any(), "nobody ever comes into sight: no test"
    for lanes in (3, 17):  # the second in tiles
        batch = BatchEnv(fog(**options), lanes, seed=3)
        observed, _ = batch.reset()
        for step in range(8):
            assert all(np.array_equal(observed["w"][0, i], episodes[0][step][f"w_{i}"]) for i in range(4))
            observed = batch.step({"w": np.apply_along_axis(wave, 2, observed["w"])})[0]


def test_objects_leave_out_whom_nobody_sees() -> None:
    env = fog(observe_visible=True)
    env.reset(seed=3)
    seen = env.simulation.model.plan.views[1]
    visible = {env.hierarchy.ids[target] for target, column in seen.asked if env.simulation.facts[column]}
    assert 0 < len(visible) < 3
    assert set(env.proxy.get_observation("w_0").global_info) == visible
    assert set(env.observe("w_0").agents) == {"w_0"} | visible if hasattr(env, "observe") else True
    with pytest.raises(ConfigError, match="build the environment with observe_visible=True"):
        fog().shown_to(1)
    truth = SimulationState(turn=0, agents={"a": {"x": 1.0}, "b": {"x": 2.0}, "c": {"x": 3.0}})
    assert set(construct_observation("a", truth, None, sight={"a": ["c"]}).agents) == {"a", "c"}
    assert set(construct_observation("b", truth, None, sight={"a": ["c"]}).agents) == {"a", "b", "c"}
    with pytest.raises(UnknownAgent, match="'d' is not in the state"):
        construct_observation("a", truth, None, sight={"a": ["d"]})
    reasons = {one.reason for one in env.visibility_matrix().row("w_0") if one.owner == "w_1"}
    assert reasons == {"tag public if sees(...)"}


def test_all_is_seen_where_the_matrix_is_not_enabled() -> None:
    env = fog(observability=ObservabilityConfig(enabled=False), observe_visible=True)
    assert not env.simulation.model.plan.asked
    assert not any(name.startswith("visible.") for name in env.observation_names("w_0"))
