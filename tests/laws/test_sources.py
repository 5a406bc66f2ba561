"""T20: the event clock with delays and losses from data equals the plain one, which knows their definitions only."""

from dataclasses import replace
from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from laws.checks_clock import check_plain_clock
from laws.mutants import require_caught
from laws.mutants_sources import MUTANTS
from laws.test_plain_clock import GUSTS, TELEMETRIC, disturbances, worlds
from strategies import sourced

from heron_env import Empirical, GilbertElliott, Markov, Recorded, ScheduleConfig

DATA = ScheduleConfig(
    tick_interval=0.5, obs_delay=Recorded([3.0, 3.5, 4.25], [0.1, 0.7, 0.3], period=2.0),
    act_delay=Markov([0.0, Empirical([0.2, 0.5])], (0.8, 0.5), 0.3), msg_delay=Markov([0.05, 0.4, 0.1], 0.7, 0.2),
    jitter_type="uniform", jitter_ratio=0.3, loss=GilbertElliott(0.2, 0.4, 0.7, 0.1, 0.25),
)  # fmt: skip


@settings(max_examples=max(40, settings().max_examples))
@given(st.data())
def test_the_clock_with_data_is_the_plain_clock(data: st.DataObject) -> None:
    recipe = data.draw(worlds())
    keys = st.sampled_from([*recipe.ids, "field", "coordinator", "system"])
    schedule = {"*": data.draw(sourced(recipe.dt))} | data.draw(st.dictionaries(keys, sourced(recipe.dt), max_size=3))
    check_plain_clock(recipe, schedule, seed=data.draw(st.integers(0, 3)), disturbances=data.draw(disturbances(recipe)))


@pytest.mark.parametrize("name", MUTANTS)
def test_a_planted_fault_makes_another_clock(name: str) -> None:
    sampled = replace(DATA, msg_delay=Empirical([0.1, 0.4, 0.2]), act_delay=Empirical([0.1, 0.3]))
    on_time = ScheduleConfig(tick_interval=0.5, act_delay=Recorded([0.0, 0.5, 1.0], [0.1, 0.3, 0.2]))
    schedule = {"*": DATA, "zone_1": sampled, "field": on_time}
    require_caught(MUTANTS[name], partial(check_plain_clock, TELEMETRIC, schedule, disturbances=GUSTS))
