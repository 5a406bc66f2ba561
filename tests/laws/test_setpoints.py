"""Set-points: actions write set-points and only physics moves time, so deciding more often does not act more."""

from hypothesis import given
from hypothesis import strategies as st
from laws.checks import check_setpoints
from strategies import recipes

from heron_env import ScheduleConfig, make


@given(recipes(observe_age=False), st.sampled_from([2, 5]))
def test_deciding_more_often_does_not_act_more(recipe: object, often: int) -> None:
    check_setpoints(recipe, often)


def test_battery_grid_is_the_documented_exception() -> None:
    ends = []
    for tick in (1.0, 0.5):
        env = make("heron/BatteryGrid-v0", num_batteries=1, max_steps=4)
        env.run_event_driven({"*": lambda vector: [1.0]}, seed=0, schedule=ScheduleConfig(tick_interval=tick))
        ends.append(round(float(env.simulation.truth[0]), 12))
    assert ends == [0.54, 0.58]
