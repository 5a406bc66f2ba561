"""`pad=True`: neighbourhoods of different size don't split a group, and nothing else changes."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from laws.checks import check_parity
from laws.checks_batch import Script, batch_of, check_batch
from laws.checks_padding import check_padding, tails
from laws.examples import ROUGH, SEEN, TALK
from small_worlds import LawEnv, Metered, Top, Unit, Zone
from strategies import Node, Recipe, recipes

from heron_env import BatchEnv, ConditionMonitor, Disturbance, HeronVectorEnv, ObservabilityConfig
from heron_env.adapters import HeronVecEnv
from heron_env.lab import describe_environment
from heron_env.lab.run_files import group_config, misfit
from heron_env.lab.trained import Scaling
from heron_env.testing import Status, check_env

FEW = max(3, settings().max_examples // 10)
UNEVEN = ObservabilityConfig(
    matrix=[
        ["unit_13", "global", "unaware", 0.0],
        ["unit_6", "zone_1", "insider", 0.3],
        ["talker_9", "zone_1", "insider", 0.1],
        {"observer": "unit_14", "target": "zone_1", "level": "insider", "noise": 0.1, "law": "additive"},
    ],
    default={"level": "external", "noise": 0.2},
)
NEAR = replace(TALK, observability=UNEVEN, pad=True)
"""Units that see of one source more or less, with noise of both laws."""


def env(**options) -> LawEnv:
    """A unit that has no neighbours, and three that are neighbours of each other."""
    zones = [Zone("zone_1", Unit("unit_1")), Zone("zone_2", *(Unit(f"unit_{i}") for i in (2, 3, 4)))]
    return LawEnv(Top("system_agent", *zones), max_steps=4, **options)


def test_one_stem_is_one_group_and_the_mask_says_what_is_there():
    bare, padded = env(), env(pad=True)
    assert bare.group_map == {"unit": ["unit_1"], "unit:1": ["unit_2", "unit_3", "unit_4"]}
    assert padded.group_map == {"unit": ["unit_1", "unit_2", "unit_3", "unit_4"]}
    assert len({str(padded.observation_space(agent)) for agent in padded.possible_agents}) == 1
    names = padded.observation_names("unit_1")
    assert names[:14] == bare.observation_names("unit_1")
    assert names[14:] == ["pad[14]", "pad[15]", *(f"mask[{i}]" for i in range(16))]
    seen = padded.reset(seed=0)[0]["unit_1"]
    assert seen[:14].tobytes() == bare.reset(seed=0)[0]["unit_1"].tobytes()
    assert seen[14:].tolist() == [0.0] * 2 + [1.0] * 14 + [0.0] * 2
    space = padded.observation_space("unit_1")
    assert space.low[14] == 0.0 and space.high[14] == 3.0  # unit_4.Setpoint.mode for the others
    assert space.low[13] == 0.0 and space.high[13] == 3.0  # a price for one, Setpoint.mode for the others


def test_equal_widths_are_left_as_they_are():
    def pair(**options):
        return LawEnv(Top("system_agent", Zone("zone_1", Unit("unit_1"), Unit("unit_2"))), **options)

    assert pair(pad=True).groups == pair().groups
    for agent in pair().hierarchy.ids:
        assert pair(pad=True).observation_names(agent) == pair().observation_names(agent)


def test_other_features_of_one_s_own_are_no_difference_in_width():
    def mixed(**options):
        zones = [Zone("zone_1", Unit("unit_1"), Unit("unit_3")), Zone("zone_2", Metered("unit_2"))]
        return LawEnv(Top("system_agent", *zones), **options)

    assert len(mixed().observation_names("unit_1")) != len(mixed().observation_names("unit_2"))
    assert mixed(pad=True).group_map == mixed().group_map == {"unit": ["unit_1", "unit_3"], "unit:1": ["unit_2"]}


@pytest.mark.parametrize("compile", [False, True])
@pytest.mark.parametrize("more", [{}, {"observe_age": True}])
def test_nothing_but_the_width_changes(more: dict, compile: bool):
    assert check_padding(replace(NEAR, compile=compile, **more), seed=3) > 20


def test_what_compiled_steps_show_is_padded_too():
    bare, padded, expected = replace(NEAR, pad=False).build(), NEAR.build(), tails(NEAR)
    seen = [env.reset(seed=3)[0] for env in (padded, bare)]
    actions = {agent: decide(None) for agent, decide in NEAR.constants(bare).items()}
    for _ in range(3):
        for agent, alone in seen[1].items():
            assert seen[0][agent].tobytes() == alone.tobytes() + expected[agent].tobytes()
        seen = [env.step(actions)[0] for env in (padded, bare)]
    assert padded.compiled and expected["unit_13"].any()


@settings(max_examples=FEW)
@given(recipes(), st.integers(0, 9))
def test_nothing_but_the_width_changes_in_any_world(recipe: Recipe, seed: int):
    check_padding(recipe, seed=seed)


def test_nor_with_delays_and_observations_out_of_turn():
    def watch() -> list[ConditionMonitor]:
        return [ConditionMonitor(agent="unit_1", when=lambda world: bool(world.time >= 2.0))]

    def failure() -> list[Disturbance]:
        return [Disturbance(1.0, "sensor_failure", {"agent": "unit_3", "mode": "vanish"}, duration=2.0)]

    root = Node("system", children=(Node("unit"), Node("zone", children=(Node("unit"), Node("unit")))))
    recipe = Recipe(root, substeps=4, observe_age=True)
    for schedule in (None, ROUGH):
        assert check_padding(recipe, schedule, monitors=watch, disturbances=failure) > 10


@pytest.mark.parametrize("compile", [False, True])
def test_parity_holds_with_padding(compile: bool):
    check_parity(replace(NEAR, compile=compile))
    check_parity(replace(NEAR, compile=compile, observe_age=True))
    check_parity(replace(SEEN, pad=True))


@pytest.mark.parametrize("compile", [False, True])
@pytest.mark.parametrize("observe_age", [False, True])
def test_a_padded_batch_is_its_single_environments(compile: bool, observe_age: bool):
    recipe = replace(NEAR, compile=compile, observe_age=observe_age)
    script = Script(3, seed=2, turns=7, resets={3: ((True, False), None)})
    batch = batch_of(recipe, script)
    plan, ranks = batch.env.simulation.model.plan, [batch.env.hierarchy.index[a] for a in batch.groups["unit"]]
    assert plan.padding.tails[ranks[0]].any() and len({len(plan.views[rank].sources) for rank in ranks}) > 1
    check_batch(recipe, script)


def test_adapters_have_one_slot_for_each_of_the_group():
    seen = env(pad=True).reset(seed=5)[0]
    venv = HeronVecEnv(lambda: env(pad=True), 1, group="unit", seed=5)
    assert np.array_equal(venv.reset(), np.stack(list(seen.values())))
    joint = HeronVectorEnv(lambda: env(pad=True), 1)
    assert np.array_equal(joint.reset(seed=5)[0][0], np.concatenate(list(seen.values())))
    batch = BatchEnv(lambda: env(pad=True), 2, seed=5)
    assert batch.reset(seed=5)[0]["unit"].shape == (2, 4, 32)


@pytest.mark.e2e
def test_checks_descriptions_and_trained_runs_take_it():
    report = check_env(lambda **options: env(pad=True, **options), steps=4)
    assert [f.check for f in report.findings if f.status is Status.FAILED] == []
    told = describe_environment("laws.test_padding:env", {"pad": True})[0].groups["unit"]
    assert [column.name for column in told.observation] == env(pad=True).observation_names("unit_1")
    kept = group_config(env(pad=True), "unit", Scaling(np.zeros(34), np.ones(34)), 1.0)
    assert misfit(env(pad=True), "unit", kept) == ""
    assert "pad[15]" in misfit(env(), "unit", kept)
