"""A training under a schedule is one under that network: its world resolves the delays, refuses, or says it does not.

Law (T1): from the same seed, two schedules that differ by more than a physics substep of the world give different
weights; what a world rounds down is an error or a HeronWarning. Planted once and caught: the coarse training defaults
of EnergyManagement kept under a schedule (1 ms, 20 s and 100 s then give the same weights, without a word).
"""

from pathlib import Path
from typing import Any

import pytest
from cli_kit import heron
from training_kit import GRID, tiny, trained

from heron_env import DrawnSchedule, ScheduleConfig, SystemAgent, TrainingDefaults, make, register
from heron_env.agents.vertical import VectorDecomposition
from heron_env.errors import ConfigError, HeronWarning
from heron_env.lab import RunFolder
from heron_env.lab.learning.train import TrainingPlan
from heron_env.scheduling.sources import Empirical, Markov, Recorded
from heron_env.worlds.battery_grid import Battery, BatteryGridEnv, Zone

ENERGY = "heron/EnergyManagement-v1"
COARSE = "test/Coarse-v0"
NOTE = r"^train\(schedule=\.\.\.\): "


class Coarse(BatteryGridEnv):
    """Two batteries in substeps of 0.5 s; without a network it is trained in steps of 30 s."""

    def training_defaults(self) -> TrainingDefaults:
        return TrainingDefaults({"dt": 30.0, "physics_substeps": 1, "max_steps": 30}, hyperparameters={"gamma": 0.5})


def coarse(control: str = "field", **options: Any) -> Coarse:
    protocol = VectorDecomposition() if control == "zone" else None
    zone = Zone("zone_1", Battery("battery_1"), Battery("battery_2"), protocol=protocol)
    return Coarse(SystemAgent("system_agent", zone), **{"dt": 2.0, "physics_substeps": 4, "max_steps": 40, **options})


register(COARSE, coarse)


def plan(env_id: str, schedule: Any, training_options: Any = None, **options: Any) -> TrainingPlan:
    return TrainingPlan(
        env_id, Path("run"), options, training_options, None, total_steps=1, seed=0, time_limit=None, validations=0,
        hyperparameters=None, schedule=schedule,
    )  # fmt: skip


def weights(folder: Path, schedule: Any, env_id: str = COARSE, **options: Any) -> list[bytes]:
    run = trained(folder, env_id, schedule=schedule, validation_episodes=0, residual=None, **options)
    return [(run.path / kept.model).read_bytes() for kept in run.config.groups.values()]


def test_under_a_schedule_energy_management_is_trained_as_it_is_evaluated():
    evaluated, late = make(ENERGY), plan(ENERGY, ScheduleConfig(msg_delay=20.0))
    env = late.make()
    same = ("dt", "physics_substeps", "report_interval", "metering", "bins")
    assert {name: getattr(env, name) for name in same} == {name: getattr(evaluated, name) for name in same}
    assert env.days == make(ENERGY, split="train").days
    assert late.hyperparameters.n_steps * env.dt == 86_400.0
    assert plan(ENERGY, None).options == {"dt": 300.0, "physics_substeps": 1, "metering": "coming", "split": "train"}
    longer = plan(ENERGY, ScheduleConfig(msg_delay=200.0), dt=120.0)
    assert (longer.make().dt, longer.hyperparameters.n_steps) == (120.0, 720)


def test_a_schedule_leaves_out_what_makes_a_clock_coarser_and_nothing_else():
    late = plan(COARSE, ScheduleConfig(act_delay=3.0))
    assert late.options == {"max_steps": 30} and late.hyperparameters.gamma == 0.5
    assert plan(COARSE, None).options == {"max_steps": 30, "dt": 30.0, "physics_substeps": 1}


@pytest.mark.e2e
def test_delays_of_energy_management_give_policies_of_their_own(tmp_path: Path):
    few = {"env_id": ENERGY, "hyperparameters": tiny(), "env_options": {"compile": True}}
    found = [weights(tmp_path / f"{s}", ScheduleConfig(msg_delay=s), **few) for s in (20.0, 23.0, 100.0)]
    assert len({tuple(one) for one in found}) == 3
    run = RunFolder.open(tmp_path / "20.0")
    assert run.config.training_options == {"split": "train"}


def everyone(**fields: Any) -> Any:
    return lambda x: ScheduleConfig(**{name: value(x) if callable(value) else value for name, value in fields.items()})


KINDS = {
    "messages": everyone(msg_delay=lambda x: x),
    "observations": everyone(obs_delay=lambda x: x),
    "actions": everyone(act_delay=lambda x: x),
    "the least delay": everyone(min_delay=lambda x: x),
    "jitter": everyone(act_delay=lambda x: x, jitter_type="lognormal", jitter_ratio=0.3),
    "a sample": everyone(act_delay=lambda x: Empirical([0.9 * x, 1.1 * x])),
    "a record": everyone(msg_delay=lambda x: Recorded([0.0, 4.0], [0.9 * x, 1.1 * x])),
    "bursts": everyone(act_delay=lambda x: Markov([0.9 * x, 1.1 * x], 0.5, 2.0)),
    "one agent": lambda x: {"battery_2": ScheduleConfig(act_delay=x)},
    "drawn": lambda x: DrawnSchedule(act_delay=f"{0.9 * x}-{1.1 * x}"),
    "a choice": lambda x: DrawnSchedule({"field": {"act_delay": [x, x + 4.0]}}),
}


@pytest.mark.parametrize("kind", ["messages", "jitter", "bursts", "one agent", "a choice"])
def test_schedules_that_differ_by_more_than_a_substep_give_other_weights(kind: str, tmp_path: Path):
    few = {"env_options": {"compile": True}}
    found = [weights(tmp_path / f"{x}", KINDS[kind](x), **few) for x in (3.0, 4.0, 7.0)]
    assert len({tuple(one) for one in found}) == 3
    assert weights(tmp_path / "again", KINDS[kind](3.0), **few) == found[0]


def test_a_coordinator_s_own_schedule_makes_a_difference_too(tmp_path: Path):
    few = {"env_options": {"control": "zone", "compile": True}}
    found = [weights(tmp_path / f"{x}", {"coordinator": ScheduleConfig(msg_delay=x)}, **few) for x in (3.0, 7.0)]
    assert found[0] != found[1]


@pytest.mark.parametrize("kind", KINDS)
def test_what_the_world_of_evaluation_rounds_down_itself_is_noted(kind: str):
    with pytest.warns(HeronWarning, match=f"{NOTE}.*below one physics substep of 0.5 s"):
        plan(COARSE, KINDS[kind](0.1))


@pytest.mark.parametrize("kind", KINDS)
def test_training_options_that_hide_a_delay_are_refused_with_the_number_that_would_do(kind: str):
    schedule, hiding = KINDS[kind](3.0), {"dt": 30.0, "physics_substeps": 1}
    with pytest.raises(
        ConfigError, match=r"is lost in training: .*substep takes 30 s.*write physics_substeps=60 there"
    ):
        plan(COARSE, schedule, hiding)
    assert plan(COARSE, schedule, {**hiding, "physics_substeps": 60}).make().dt == 30.0


def test_ticks_that_training_options_make_one_of_are_refused():
    often = ScheduleConfig(tick_interval=2.0)
    with pytest.raises(ConfigError, match=r"tick_interval=2 s of 'system_agent' is lost in training"):
        plan(COARSE, often, {"dt": 30.0, "physics_substeps": 5})
    assert plan(COARSE, often, {"dt": 30.0, "physics_substeps": 15}).make().dt == 30.0
    with pytest.warns(HeronWarning, match=f"{NOTE}tick_interval=0.25 s is below physics substeps of 0.5 s"):
        plan(COARSE, ScheduleConfig(tick_interval=0.25))


def test_phases_and_reports_that_training_options_hide_are_refused():
    with pytest.raises(ConfigError, match=r"phase=20 s of 'system_agent' is lost in training"):
        plan(COARSE, ScheduleConfig(phase=20.0), {"dt": 300.0, "physics_substeps": 1})
    energy, late = "heron/EnergyManagement-v1", ScheduleConfig(msg_delay=20.0)
    with pytest.raises(
        ConfigError, match=r"agents report every 60 s, in evaluation every 10 s; write report_interval=10"
    ):
        plan(energy, late, {"report_interval": 60.0})
    assert plan(energy, late, {"report_interval": 10.0}).make().report_interval == 10.0


def test_a_random_delay_must_be_well_above_the_substeps_of_a_coarser_world():
    coarser = {"physics_substeps": 1}  # of 2 s
    assert plan(COARSE, ScheduleConfig(act_delay=4.0), coarser)
    for kind in ("jitter", "a sample", "bursts", "drawn"):
        with pytest.raises(ConfigError, match="is lost in training"):
            plan(COARSE, KINDS[kind](4.0), coarser)
        assert plan(COARSE, KINDS[kind](10.0), coarser)


def test_a_choice_of_which_one_value_is_lost_is_refused():
    with pytest.raises(ConfigError, match=r"act_delay=1 s of 'system_agent' is lost"):
        plan(COARSE, DrawnSchedule(act_delay=[0.0, 1.0, 60.0]), {"physics_substeps": 1})


def test_a_delay_between_whole_substeps_is_noted_as_what_it_counts():
    with pytest.warns(HeronWarning, match=f"{NOTE}2 msg_delay .* = 1.7 s counts as 1.5 s: it is rounded down"):
        plan(COARSE, ScheduleConfig(act_delay=1.7))
    plan(COARSE, ScheduleConfig(act_delay=1.5))  # a warning would be an error here
    plan(COARSE, ScheduleConfig(act_delay=1.7, jitter_type="uniform", jitter_ratio=0.9))


def test_the_command_line_says_what_has_no_effect(tmp_path: Path):
    words = ["train", GRID, "--steps", "1", "-o", "max_steps=4", "-o", "compile=true"]
    said = heron(*words, "--schedule", "msg_delay=0.1", "--out", tmp_path / "run").stderr
    assert said.count("warning: train(schedule=...): 2 msg_delay + obs_delay + act_delay = 0.2 s") == 1
