"""BatteryGrid: the specification's minimal example."""

import re
from typing import Any

import pytest

import heron_env
from heron_env.errors import ConfigError
from heron_env.worlds.battery_grid import Battery

NAME = "heron/BatteryGrid-v0"


def test_an_action_moves_the_charge_by_a_hundredth_and_the_reward_is_the_charge():
    env = heron_env.make(NAME)
    env.reset(seed=0)
    _, rewards, *_ = env.step({"battery_1": 0.3, "battery_2": -0.2})
    assert rewards == {"battery_1": pytest.approx(0.503, abs=1e-12), "battery_2": pytest.approx(0.498, abs=1e-12)}
    _, all_rewards, *_ = env.proxy.get_step_results()
    assert all_rewards["system_agent"] == all_rewards["zone_1"] == rewards["battery_1"] + rewards["battery_2"]


def test_zones_decide_for_their_batteries_element_by_element():
    env = heron_env.make(NAME, num_batteries=5, zone_size=2, control="zone")
    assert env.possible_agents == ["zone_1", "zone_2", "zone_3"]
    assert [env.action_space(z).shape for z in env.possible_agents] == [(2,), (2,), (1,)]
    assert env.group_map == {"zone": ["zone_1", "zone_2"], "zone:1": ["zone_3"]}
    env.reset(seed=0)
    env.step({"zone_1": [1.0, -1.0], "zone_2": [0.5, 0.0], "zone_3": [-0.5]})
    assert env.world[Battery].BatteryChargeFeature.soc.tolist() == pytest.approx([0.51, 0.49, 0.505, 0.5, 0.495])


@pytest.mark.parametrize(
    ("scope", "field_sees", "zone_sees"),
    [
        ("public", ["battery_1", "battery_2", "battery_3"], ["battery_1", "battery_2", "battery_3"]),
        ("owner", ["battery_1"], []),
        ("parent", ["battery_1"], ["battery_1", "battery_2"]),
    ],
)
def test_the_scope_decides_who_sees_a_charge(scope: str, field_sees: list[str], zone_sees: list[str]):
    env = heron_env.make(NAME, num_batteries=3, zone_size=2, scope=scope)

    def seen(agent: str) -> list[str]:
        names = env.observation_names(agent)
        return list(dict.fromkeys(n.split(".")[0] if n.count(".") == 2 else agent for n in names))

    assert (seen("battery_1"), seen("zone_1")) == (field_sees, zone_sees)
    assert env.observation_names("battery_1")[:2] == ["BatteryChargeFeature.soc", "BatteryChargeFeature.capacity"]


def test_the_defaults_are_those_of_the_specification():
    env = heron_env.make(NAME)
    assert env.hierarchy.ids == ("system_agent", "zone_1", "battery_1", "battery_2")
    assert (env.dt, env.termination.max_steps, env.metadata["name"]) == (1.0, 100, NAME)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"num_batteries": 0}, "battery_grid(num_batteries=0): must be a whole number >= 1"),
        ({"zone_size": 1.5}, "battery_grid(zone_size=1.5): must be a whole number >= 1"),
        ({"num_batteries": True}, "battery_grid(num_batteries=True): must be a whole number >= 1"),
        (
            {"control": "feild"},
            "battery_grid(control='feild'): must be one of ('field', 'zone'). Did you mean 'field'?",
        ),
        ({"scope": "all"}, "battery_grid(scope='all'): must be one of ('public', 'owner', 'parent')."),
    ],
)
def test_wrong_arguments_are_refused_by_name_and_value(options: dict[str, Any], message: str):
    with pytest.raises(ConfigError, match=f"^{re.escape(message)}$"):
        heron_env.make(NAME, **options)
