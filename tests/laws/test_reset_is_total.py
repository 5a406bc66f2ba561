"""Reset is total: nothing of the last episode survives."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from laws.checks import check_reset_is_total
from strategies import delays, recipes

from heron_env import SystemAgent
from heron_env.worlds import battery_grid


@given(st.data())
def test_an_environment_with_a_past_starts_like_a_new_one(data: st.DataObject) -> None:
    recipe = data.draw(recipes())
    check_reset_is_total(recipe, data.draw(delays(recipe.dt)))


def test_a_battery_built_with_a_charge_resets_to_it() -> None:
    system = SystemAgent("system_agent", battery_grid.Battery("battery_1", battery_grid.BatteryChargeFeature(soc=0.9)))
    env = battery_grid.BatteryGridEnv(system, max_steps=5)
    for _ in range(2):
        observations, _ = env.reset(seed=0)
        assert observations["battery_1"].tolist() == np.float32([0.9, 100.0]).tolist()
        env.step({"battery_1": [-1.0]})
        env.system.subordinates[0].state.features[0].soc = 0.1
