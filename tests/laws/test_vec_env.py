"""Slots on the event clock are the Python clock's agents, in random worlds, under any schedule."""

from dataclasses import replace
from typing import Any

import pytest
from ends import endings
from gymnasium import spaces
from hypothesis import given, reject, settings
from hypothesis import strategies as st
from laws.checks_vec_env import check_vec_env
from laws.examples import ROUGH, SLOW, TALK
from laws.test_event_batch import worlds
from laws.test_plain_clock import networks
from masked_worlds import lamps

from heron_env import DrawnSchedule, HeronEnv, ScheduleConfig, make
from heron_env.errors import ScheduleError

FEW = max(8, settings().max_examples // 5)


def trainable(env: HeronEnv) -> list[str]:
    """Groups that Stable-Baselines3 can have."""
    return [name for name, agents in env.group_map.items() if not isinstance(env.action_space(agents[0]), spaces.Dict)]


@settings(max_examples=FEW)
@given(st.data())
def test_slots_are_the_agents_of_the_python_clock(data: st.DataObject) -> None:
    """From episode to episode, under one network or one that is drawn, with ends in mid-episode and with critics."""
    recipe = replace(data.draw(worlds()), max_steps=data.draw(st.integers(2, 6)))
    drawn = DrawnSchedule({"*": {"msg_delay": "0-3", "act_delay": "[0, 0.7, 2.5]", "loss": "[0, 0.4]"}})
    groups = trainable(recipe.build())
    if not groups:
        reject()
    try:
        check_vec_env(
            recipe.build,
            data.draw(st.one_of(networks(recipe), networks(recipe), st.just(drawn))),
            group=data.draw(st.sampled_from(groups)),
            seed=data.draw(st.sampled_from([0, 5, 2**40])),
            lanes=data.draw(st.integers(1, 3)),
            calls=10,
            critic=data.draw(st.sampled_from(["local", "central"])),
        )
    except ScheduleError as silent:
        assert "without a single observation" in str(silent)
        reject()


JITTER = ScheduleConfig(msg_delay=0.3, act_delay=0.6, jitter_type="uniform", jitter_ratio=0.5, loss=0.2)
WORLDS: dict[str, tuple[Any, Any, str]] = {
    "agents end one after another": (lambda: endings((2, 4, 5), compile=True), JITTER, "mortal"),
    "by a limit": (lambda: endings((2, 50), max_steps=4, compile=True), SLOW, "mortal"),
    "masks": (lambda: lamps("lamp", "pair", max_steps=8, compile=True), JITTER, "lamp"),
    "commands, messages, ends": (replace(TALK, compile=True).build, ROUGH, "unit"),
}


@pytest.mark.parametrize("name", WORLDS)
def test_slots_of_named_worlds_are(name: str) -> None:
    build, schedule, group = WORLDS[name]
    for critic in ("local", "central"):
        player = check_vec_env(build, schedule, group=group, seed=3, calls=30, critic=critic)
        assert all(player.totals), "no episode was over"


def test_slots_of_energy_management_are() -> None:
    """Whose training signal is not the reward."""

    def build() -> HeronEnv:
        return make("heron/EnergyManagement-v1", dt=3600.0, physics_substeps=60, report_interval=3600.0, compile=True)

    schedule = ScheduleConfig(msg_delay=300.0, act_delay=60.0, jitter_type="uniform", jitter_ratio=0.3, loss=0.05)
    player = check_vec_env(build, schedule, group="battery", calls=200)
    assert all(player.totals) and any(not wait for wait in player.waits)
