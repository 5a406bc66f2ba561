"""The compiled event clock equals the Python clock in random worlds, under any schedule, and tells rows truly."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from laws.checks_event_batch import check_event_batch
from laws.examples import EVERY_SECOND, ROUGH, SLOW, TALK
from laws.test_plain_clock import networks
from strategies import Recipe, batched

from heron_env import BatchEnv, ScheduleConfig, make

FEW = max(40, settings().max_examples * 2 // 3)
"""Worlds, each of several lanes."""


@st.composite
def worlds(draw: st.DrawFn) -> Recipe:
    """Hierarchies of one family, so that nothing is compiled anew: hooks in Python and none, telemetry, padding."""
    recipe = draw(batched("alone", "together", "none", "none"))
    substeps = draw(st.sampled_from([1, 2, 4]))
    reports = draw(st.sampled_from([n for n in (1, 2, 4) if substeps % n == 0]))
    changes: dict[str, Any] = {"substeps": substeps, "report_interval": recipe.dt / reports}
    return replace(recipe, **changes, pad=draw(st.booleans()))


@settings(max_examples=FEW)
@given(st.data())
def test_every_lane_is_the_python_clock(data: st.DataObject) -> None:
    recipe = data.draw(worlds())
    check_event_batch(
        recipe,
        data.draw(networks(recipe)),
        seed=data.draw(st.sampled_from([0, 5, 2**40])),
        lanes=data.draw(st.integers(1, 3)),
        episodes=data.draw(st.sampled_from([1, 1, 2])),
        threads=data.draw(st.sampled_from([1, 1, 2])),
    )


ENVIRONMENTS: dict[str, dict[str, Any]] = {
    "heron/BatteryGrid-v0": {"max_steps": 12, "control": "zone"},
    "heron/EnergyManagement-v1": {"max_steps": 4},
    "heron/TrafficCorridor-v0": {"max_steps": 12},
    "heron/GraphColoring-v0": {"max_steps": 10, "control": "cluster"},
}


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_so_are_the_environments_of_this_library(name: str) -> None:
    def build() -> Any:
        return make(name, compile=True, **ENVIRONMENTS[name])

    dt, delays = build().dt, ("msg_delay", "obs_delay", "act_delay")
    for schedule in (SLOW, ROUGH):
        times = {field: getattr(schedule, field) * dt for field in ("tick_interval", *delays)}
        check_event_batch(build, replace(schedule, **times, on_missing="noop"), seed=3)


def test_without_delay_rows_are_steps() -> None:
    """One row a step and agent, with the step's reward; the observations are those of the synchronous clock."""
    env = replace(TALK, hooks="together", compile=True).build()
    batch: Any = BatchEnv(env, 3, seed=4, clock="event", schedule=EVERY_SECOND)
    steps = BatchEnv(replace(TALK, hooks="together", compile=True).build(), 3, seed=4, autoreset="disabled")
    assert batch.compiled and steps.compiled
    rows, (observations, _) = batch.begin(), steps.reset()
    assert (rows.first).all() and len(rows) == 3 * len(env.possible_agents)
    del observations


def test_a_heavy_tail_finds_room() -> None:
    """Messages pile up, a hundred times as late as usual: slots grow, and nothing is lost."""
    schedule = ScheduleConfig(
        tick_interval=0.05, msg_delay=2.0, obs_delay=1.0, act_delay=30.0, jitter_type="lognormal", jitter_ratio=3.0,
        reorder=True, duplicate=0.5,
    )  # fmt: skip
    course = check_event_batch(replace(TALK, max_steps=40, compile=True), schedule, lanes=2)
    assert max(np.diff([row["time"] for row in course.rows[0]])) >= 0.0
