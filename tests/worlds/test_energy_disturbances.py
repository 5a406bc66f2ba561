"""Disturbances of the neighbourhood: what each changes, for how long, and that the day comes back exactly."""

from typing import Any

import numpy as np
import pytest

from heron_env import Disturbance, ScheduleConfig, make
from heron_env.errors import ConfigError, UnknownAgent
from heron_env.worlds.energy_management import Battery, TransformerZone
from heron_env.worlds.energy_management.disturbances import SETS, TYPES

pytestmark = pytest.mark.e2e

NOON = 43_200.0
OPTIONS: dict[str, Any] = {"dt": 900.0, "physics_substeps": 3, "day": 172}


def energy(**options: Any) -> Any:
    return make("heron/EnergyManagement-v1", **{**OPTIONS, **options})


def course(env: Any, disturbances: list[Disturbance], steps: int = 56) -> dict[str, np.ndarray]:
    """Limits in force after each step, and what was measured in its last substep or bin, with idle batteries."""
    env.reset(seed=1, options={"day": 172, "disturbances": disturbances})
    found: dict[str, list[Any]] = {"limit": [], "pv": [], "load": [], "background": [], "power": []}
    for _ in range(steps):
        env.step(dict.fromkeys(env.agents, 0.0))
        meter, zone = env.world[Battery].Meter, env.world[TransformerZone]
        row = (zone.Zone.limit, meter.pv, meter.load, zone.Background.power, zone.Zone.power)
        for name, values in zip(found, row, strict=True):
            found[name].append(values.copy())
    return {name: np.array(values) for name, values in found.items()}


HOUR = slice(47, 51)
"""The steps after whose end a disturbance from noon to one o'clock is in force; it is measured one step later."""
MEASURED = slice(48, 52)


@pytest.fixture(scope="module")
def env() -> Any:
    return energy()


@pytest.fixture(scope="module")
def calm(env: Any) -> dict[str, np.ndarray]:
    return course(env, [])


@pytest.mark.parametrize(
    ("kind", "payload", "name", "expected"),
    [
        ("transformer_derating", {"factor": 0.5}, "limit", lambda x: x * 0.5),
        ("cloud_front", {"factor": 0.25}, "pv", lambda x: x * 0.25),
        ("load_spike", {"agent": "battery_2", "power": 7.0}, "load", lambda x: x + np.eye(1, 6, 1) * 7.0),
        ("load_spike", {"agent": "zone_1", "power": 7.0}, "background", lambda x: x + np.array([7.0, 0.0])),
    ],
)
def test_each_changes_one_quantity_while_it_lasts(
    env: Any, calm: Any, kind: str, payload: dict[str, Any], name: str, expected: Any
) -> None:
    shaken = course(env, [Disturbance(NOON, kind, payload, duration=3600.0)])
    hour = HOUR if name == "limit" else MEASURED
    assert np.allclose(shaken[name][hour], expected(calm[name][hour]), rtol=1e-14)
    for other in ("limit", "pv", "load", "background"):
        before, after = slice(0, hour.start), slice(hour.stop, None)
        assert np.array_equal(shaken[other][before], calm[other][before])
        assert np.array_equal(shaken[other][after], calm[other][after]), "the day comes back exactly"
        assert other == name or np.array_equal(shaken[other], calm[other])
    assert np.array_equal(shaken["power"], calm["power"]) == (name == "limit")


def test_one_zone_alone_and_two_at_once(env: Any, calm: Any) -> None:
    both = [
        Disturbance(NOON, "cloud_front", {"factor": 0.5, "zone": "zone_2"}, duration=3600.0),
        Disturbance(NOON, "cloud_front", {"factor": 0.3}, duration=1800.0),
    ]
    pv, clear = course(env, both)["pv"], calm["pv"]
    tree = env.hierarchy
    parents = [tree.ids[tree.parent[rank]] for rank, agent in enumerate(tree.agents) if isinstance(agent, Battery)]
    second = np.array([parent == "zone_2" for parent in parents])
    assert 0 < second.sum() < len(second)
    assert np.allclose(pv[48], np.where(second, clear[48] * 0.5, clear[48]) * 0.3, rtol=1e-14)
    assert np.allclose(pv[50], np.where(second, clear[50] * 0.5, clear[50]), rtol=1e-14)


@pytest.mark.parametrize("name", [*SETS, "all"])
def test_sets_are_keyed_by_their_seed_and_both_clocks_know_them(env: Any, name: str) -> None:
    build = env.disturbance_sets()[name]
    assert build(3) == build(3) != build(4)
    assert all(a.t <= b.t for a, b in zip(build(3), build(3)[1:], strict=False))
    boundaries = [
        Disturbance(900.0 * round(d.t / 900.0), d.type, d.payload, d.requires_physics,
                    duration=max(900.0 * round((d.duration or 0.0) / 900.0), 900.0))
        for d in build(3)
    ]  # fmt: skip
    rule = env.benchmark().baselines(0)["grid-friendly with zone feedback"]
    record = ("rewards", "actions", "observations")
    calm = env.run_synchronous(rule, seed=3, record=record)
    sync = env.run_synchronous(rule, seed=3, record=record, disturbances=boundaries)
    event = env.run_event_driven(rule, seed=3, record=record, disturbances=boundaries)
    assert sync.same_course(event)
    assert sync.kpis == event.kpis
    assert bool(boundaries) != sync.same_course(calm)


def test_the_mean_number_of_a_set_is_what_its_rates_say(env: Any) -> None:
    numbers = [len(env.disturbance_sets()["spikes"](seed)) for seed in range(200)]
    assert np.mean(numbers) == pytest.approx(SETS["spikes"][0].a_day, abs=4 * np.sqrt(12.0 / 200))


def test_a_derated_transformer_wakes_its_batteries_rule(env: Any) -> None:
    from heron_env import ConditionMonitor

    fault = Disturbance(NOON + 123.4, "transformer_derating", {"factor": 0.3}, True, duration=3600.0)
    monitor = ConditionMonitor(agent="battery_1", watch="zone_1.Zone.limit", below=8.0)
    rule = env.benchmark().baselines(0)["grid-friendly with zone feedback"]
    schedule = ScheduleConfig(msg_delay=0.05, act_delay=0.15)
    result = env.run_event_driven(rule, seed=3, schedule=schedule, disturbances=[fault], monitors=[monitor])
    assert NOON + 123.6 in [round(t, 6) for t, _ in result.actions["battery_1"]]


@pytest.mark.parametrize(
    ("kind", "payload", "error", "message"),
    [
        ("cloud_front", {"factor": 1.5}, ConfigError, "factor=1.5 must be a number from 0 to 1"),
        ("load_spike", {"power": "big", "agent": "zone_1"}, ConfigError, "power='big'"),
        ("load_spike", {"power": 3.0, "agent": "zone_9"}, UnknownAgent, "agent='zone_9'"),
        ("transformer_derating", {"factor": 0.5, "zone": "zon_1"}, UnknownAgent, "Did you mean 'zone_1'"),
    ],
)
def test_wrong_payloads_are_refused(
    env: Any, kind: str, payload: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        env.reset(options={"disturbances": [Disturbance(0.0, kind, payload, duration=1.0)]})


def test_every_entry_of_a_payload_is_explained() -> None:
    for name, kind in TYPES.items():
        assert kind.doc.endswith("."), name
        assert all(kind.payload.values()), name
        assert kind.defaults.keys() <= kind.payload.keys(), name
