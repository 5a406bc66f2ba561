"""Training on rows, from end to end: on either clock, with memory, with mixed and masked actions, for all groups.

Plan: a run on the event clock at zero delay is the run on the synchronous one, bit for bit; a schedule changes what is
learned, is kept by the run folder, and is validated under; what must be learned is learned (numbers and choices in one
action, forbidden choices, what only memory can tell); what remembers acts after loading as it was trained, in either
clock, each agent for itself, and forgets where an episode begins; wrong arguments are named.
"""

import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from cli_kit import as_json, heron
from ends import endings
from masked_worlds import lamps
from training_kit import GRID, tiny, trained

from heron_env import (
    BatchEnv,
    Continuous,
    Discrete,
    DrawnSchedule,
    FeatureProvider,
    FieldAgent,
    HeronEnv,
    Mixed,
    Rows,
    ScheduleConfig,
    SystemAgent,
    Vector,
    World,
    load_policy,
    make,
    quantity,
    register,
    rule,
)
from heron_env.adapters import HeronVecEnv
from heron_env.errors import ConfigError, RunFolderError, ScheduleError
from heron_env.lab import Hyperparameters, RunFolder
from heron_env.lab.benchmark import Case
from heron_env.lab.learning.events import Monitor, Stopwatch
from heron_env.lab.learning.ppo import Learner
from heron_env.lab.learning.rows import Role, StepRows, measure_rows
from heron_env.lab.learning.train import Training, TrainingPlan, Validation
from heron_env.lab.remembering import RememberingPolicy
from heron_env.lab.sweep.play import can_play, play_lanes
from heron_env.lab.sweep.records import RECORD

pytestmark = pytest.mark.filterwarnings("ignore:train.schedule:heron_env.errors.HeronWarning")
"""Delays below the grid's one substep of 1 s age what is seen, and that is enough here."""
SLOW = ScheduleConfig(msg_delay=0.3, act_delay=0.2, jitter_type="uniform", jitter_ratio=0.5, loss=0.1)


def quick(folder: Path, env_id: str = GRID, **options: Any) -> RunFolder:
    own = {"env_options": {"max_steps": 6, "compile": True}} if env_id == GRID else {}
    return trained(folder, env_id, **{**own, **options})


def model(run: RunFolder) -> list[bytes]:
    return [(run.path / kept.model).read_bytes() for kept in run.config.groups.values()]


# The two clocks


@pytest.mark.parametrize("options", [{}, {"gru": 4}])
def test_at_zero_delay_a_run_on_the_event_clock_is_the_synchronous_one(options: dict[str, Any], tmp_path: Path):
    settings = {"hyperparameters": tiny(**options), "critic": "central"}
    one = quick(tmp_path / "one", **settings)
    other = quick(tmp_path / "other", schedule=ScheduleConfig(), **settings)
    late = quick(tmp_path / "late", schedule=SLOW, **settings)
    assert model(one) == model(other) != model(late)
    assert one.config.validation == other.config.validation == other.config.validation_under_schedule
    assert one.config.validation_under_schedule == {}


@pytest.mark.parametrize("gru", [0, 5])
def test_a_run_folder_keeps_the_schedule_and_both_validations(gru: int, tmp_path: Path):
    """What is loaded earns under the schedule what was validated, also if it remembers."""
    late = {"field": SLOW, "*": ScheduleConfig(msg_delay=0.1)}
    run = quick(tmp_path, schedule=late, validations=2, hyperparameters=tiny(gru=gru))
    kept = RunFolder.open(tmp_path)
    assert kept == run and kept.config.trainer == "lean" and kept.config.training_delays is None
    assert kept.config.schedule["field"]["msg_delay"] == 0.3 and kept.config.schedule["*"]["msg_delay"] == 0.1
    assert kept.schedule == late
    assert set(kept.config.validation_under_schedule) == {"trained", "random", "do nothing"}
    env = make(GRID, max_steps=6)
    validated = env.run_event_driven(load_policy(tmp_path), seed=2_000_000, schedule=late)
    assert kept.config.validation_under_schedule["trained"] == validated.returns["system_agent"]
    rows = kept.curve()
    assert [float(row["return_under_schedule"]) for row in rows][-1] == pytest.approx(validated.returns["system_agent"])
    assert {row["return_under_schedule"] for row in rows} != {row["validation_return"] for row in rows}
    assert kept.make().schedule is None


def test_a_drawn_schedule_is_drawn_for_each_lane_and_episode(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    asked, at = [], DrawnSchedule.at
    monkeypatch.setattr(DrawnSchedule, "at", lambda own, *moment: (asked.append(moment), at(own, *moment))[1])
    drawn = DrawnSchedule({"field": {"msg_delay": "[0, 0.1, 0.2]", "act_delay": "0-0.5"}})
    run = quick(tmp_path, schedule=drawn, validations=0)
    assert RunFolder.open(tmp_path).schedule == run.schedule == drawn
    assert {seed for seed, _ in asked if 10_000_000 <= seed < 10_000_100} == {10_000_000, 10_000_001}
    assert {episode for seed, episode in asked if seed == 10_000_001} >= {0, 1, 2}
    assert (2_000_000, 0) in asked


def test_the_command_line_trains_under_a_schedule(tmp_path: Path):
    words = ["train", GRID, "--steps", "1", "--option", "max_steps=4", "--option", "compile=true"]
    given = ["--schedule", "msg_delay=0.5", "--schedule", "field.act_delay=0.25", "--out", tmp_path / "run"]
    told, config = as_json(*words, *given), RunFolder.open(tmp_path / "run").config
    assert told["schedule"] == config.schedule
    assert told["trainer"] == "lean" and "trained" in told["validation_under_schedule"]
    assert (config.schedule["field"]["act_delay"], config.schedule["field"]["msg_delay"]) == (0.25, 0.5)
    drawn = as_json(*words, "--out", tmp_path / "drawn", "--schedule", "loss=0-0.2")
    assert drawn["schedule"]["*"]["loss"] == "0.0-0.2"
    wrong = heron(*words, "--out", tmp_path / "two", "--schedule", "msg_dely=1", code=2)
    assert "Did you mean 'msg_delay'?" in wrong.stderr


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"schedule": 3.0}, "train(schedule=3.0): must be a ScheduleConfig, a mapping of them, or a DrawnSchedule"),
        ({"schedule": {"batery": SLOW}}, "schedule['batery']: no such agent, group or level"),
    ],
)
def test_what_is_no_schedule_is_refused(options: dict[str, Any], told: str, tmp_path: Path):
    with pytest.raises((ConfigError, ScheduleError)) as error:
        quick(tmp_path, **{"schedule": SLOW, **options})
    assert told in str(error.value)


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"activation": "elu"}, "Hyperparameters(activation='elu'): must be one of ('tanh', 'relu')."),
        ({"gru": -1}, "Hyperparameters(gru)=-1: must be a whole number from 0"),
        ({"batch_size": 0}, "Hyperparameters(batch_size)=0: must be a whole number from 1"),
        ({"n_steps": 0}, "Hyperparameters(n_steps)=0: must be a whole number from 1"),
        ({"n_epochs": 1.5}, "Hyperparameters(n_epochs)=1.5: must be a whole number from 1"),
        ({"num_envs": "2"}, "Hyperparameters(num_envs)='2': must be a whole number from 1"),
        ({"hidden": (8, 0)}, "Hyperparameters(hidden)=0: must be a whole number from 1"),
        ({"hidden": 8}, "Hyperparameters(hidden)=8: must be a list or tuple"),
        ({"learning_rate": float("nan")}, "Hyperparameters(learning_rate=nan): must be a number between 0 and 1"),
        ({"gamma": float("inf")}, "Hyperparameters(gamma=inf): must be a number between 0 and 1"),
        ({"log_std": "low"}, "Hyperparameters(log_std='low'): must be a number, or None"),
        ({"num_envs": 4, "twins": 3}, "Hyperparameters(num_envs=4, twins=3): num_envs must be a multiple of it"),
    ],
)
def test_a_wrong_hyperparameter_is_named(settings: dict[str, Any], told: str, tmp_path: Path):
    with pytest.raises(ConfigError) as error:
        quick(tmp_path, hyperparameters=tiny(**settings))
    assert told in str(error.value)


@pytest.mark.parametrize("schedule", [None, SLOW])
def test_twins_live_the_same_days(schedule: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """What the network draws too: lanes 0 and 1 are asked at the same times, and see the same until they act."""
    seen: list[Rows] = []
    seeds: list[int] = []
    take = Training._take

    def noting(self: Training, rows: Rows) -> None:
        seen.append(rows)
        seeds[:] = self._seeds
        take(self, rows)

    monkeypatch.setattr(Training, "_take", noting)
    quick(tmp_path, hyperparameters=tiny(num_envs=4, twins=2), schedule=schedule)
    lanes = [[(rows.rank[rows.lane == b], rows.time[rows.lane == b]) for rows in seen] for b in range(4)]
    for one, other in ((0, 1), (2, 3)):
        for mine, its in zip(lanes[one], lanes[other], strict=True):
            assert np.array_equal(mine[0], its[0]) and np.array_equal(mine[1], its[1])
    first = [seen[0].obs[seen[0].lane == b] for b in range(4)]
    assert np.array_equal(first[0], first[1]) and np.array_equal(first[2], first[3])
    assert seeds[0] == seeds[1] == seeds[2] - 1 == seeds[3] - 1


# What a learner is told


def course_of(env_id: str, folder: Path, **options: Any) -> Training:
    """A training that has not begun."""
    plan = TrainingPlan(env_id, folder, options.pop("env_options", {}), {}, None, total_steps=1, **options)
    return Training(plan, {}, Validation(plan, 0), Monitor([], Stopwatch(time.monotonic), None))


def test_a_learner_is_told_what_the_rows_tell_in_its_own_units(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    told: list[Any] = []
    monkeypatch.setattr(Learner, "ask", lambda own, *given, ask=Learner.ask: (told.append(given), ask(own, *given)))
    monkeypatch.setattr(Learner, "end", lambda own, *given, end=Learner.end: (told.append(given), end(own, *given)))
    options = {"dt": 7200.0, "physics_substeps": 1}
    settings = tiny()
    course = course_of(
        "heron/EnergyManagement-v1", tmp_path, env_options=options, hyperparameters=settings, critic="central"
    )
    (role, scales, _), ends = next(course._students()), 0
    rows = course._source.reset()
    for _ in range(14):
        course._take(rows)
        for where in (rows.ended, rows) if len(rows.ended) else (rows,):
            seen, brought, *more = told.pop(0)
            place = np.searchsorted(role.ranks, where.rank)
            assert seen.slot.tolist() == (6 * where.lane + place).tolist()
            assert seen.obs.tobytes() == scales.obs(where.obs).tobytes()
            state = scales.state(np.concatenate([where.state, np.eye(6, dtype=np.float32)[place]], axis=1))
            assert seen.state.tobytes() == state.tobytes()
            assert brought.reward.tolist() == (where.training_reward * scales.reward).tolist()
            assert (where.training_reward != where.reward).any() or where is rows
            assert [part.tolist() for part in brought[1:]] == [where.steps.tolist(), where.took.tolist()]
            if more:
                assert more[0].tolist() == [False] * len(where)  # a day ends by rule
                ends += 1
        rows = course._source.answer(course._decide(rows))
    assert ends == 1 and not told
    assert course.transitions == {"battery": 2 * 6 * 13}


@pytest.mark.parametrize(
    ("ends", "limit", "expected"),
    [((2.0, 9.0), 4, [[False], [True]]), ((2.0, 4.0), 4, [[False], [False]]), ((3.0, 3.0), 3, [[False, False]])],
)
def test_only_what_a_limit_cut_off_has_a_future(ends: Any, limit: int, expected: Any, tmp_path, monkeypatch):
    cut: list[Any] = []
    monkeypatch.setattr(
        Learner, "end", lambda own, seen, brought, cut_off, end=Learner.end: (cut.append(cut_off.tolist()),
                                                                              end(own, seen, brought, cut_off))
    )  # fmt: skip
    register("test/Endings-v0", lambda: endings(ends, limit))
    settings = tiny(num_envs=1)
    course = course_of("test/Endings-v0", tmp_path, hyperparameters=settings)
    rows = course._source.reset()
    for _ in range(limit):
        course._take(rows)
        rows = course._source.answer(course._decide(rows))
    course._take(rows)
    assert cut == expected


@pytest.mark.parametrize("schedule", [None, SLOW])
def test_what_is_trained_remembers_as_what_is_loaded_will(schedule: Any, tmp_path: Path):
    options = {"max_steps": 5, "compile": True}
    course = course_of(GRID, tmp_path, hyperparameters=tiny(gru=4), schedule=schedule, env_options=options)
    (learner,) = course.learners
    with torch.no_grad():
        learner.network.action_net.weight *= 30.0
        learner.network.log_std.fill_(-30.0)  # what is done is what the policy would do, and then sees
    policies = {(lane, agent): policy for lane in range(2) for agent, policy in course.policies().items()}
    rows, ids, episodes, spread = course._source.reset(), course._source.env.hierarchy.ids, 0, []
    for _ in range(14):
        course._take(rows)
        outputs = learner._answer[0].numpy()
        for i, (lane, rank) in enumerate(zip(rows.lane.tolist(), rows.rank.tolist(), strict=True)):
            policy = policies[lane, ids[rank]]
            if rows.first[i]:
                policy.begin(0, 0)
                episodes += 1
            acted = policy.forward(rows.obs[i])
            assert acted == pytest.approx(np.clip(outputs[i], -1.0, 1.0), abs=1e-5)
            spread.append(float(acted[0]))
        rows = course._source.answer(course._decide(rows))
    assert episodes > 6 and np.std(spread) > 0.01


def one_rule(vector: np.ndarray) -> np.ndarray:
    return np.array([0.3 - 0.2 * vector[0]])


def another_rule(vector: np.ndarray) -> np.ndarray:
    return np.array([-0.4 + 0.1 * vector[0]])


RULES = {"battery_1": one_rule, "battery_2": another_rule}


def test_each_agent_s_own_rule_is_corrected_also_where_not_all_tick():
    ticks = {"battery_2": ScheduleConfig(tick_interval=2.0), "*": ScheduleConfig()}
    source = StepRows(GRID, 2, schedule=ticks, max_steps=5)
    role, rows, alone = Role(source.env, ["battery"], RULES), source.reset(), 0
    for outputs in np.linspace(-1.5, 1.5, 8, dtype=np.float32):
        actions = role.act(rows, np.full((len(rows), 1), outputs))
        for i, agent in enumerate(source.env.hierarchy.ids[rank] for rank in rows.rank):
            moved = RULES[agent](rows.obs[i])[0] + np.clip(outputs, -1.0, 1.0)  # half the range is 1
            assert actions[i, 0] == pytest.approx(np.clip(moved, -1.0, 1.0), abs=1e-6)
        alone += len(rows) == 2
        rows = source.answer(actions)
    assert alone > 2


def seen_on_slots(venv: HeronVecEnv) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """What slots see, the states, and discounted returns over two episodes in which the rules act."""
    vectors, seen, states, returns, running = venv.reset(), [], [], [], np.zeros(venv.num_envs)
    ended = np.zeros(venv.num_envs)
    while ended.min() < 2:
        seen.append(vectors)
        states.append(venv.batch.state())
        acts = [RULES[f"battery_{slot % len(RULES) + 1}"](vector) for slot, vector in enumerate(vectors)]
        vectors, rewards, dones, _ = venv.step(np.array(acts, dtype=np.float32))
        running = rewards + 0.9 * running
        returns.append(running)
        running, ended = np.where(dones, 0.0, running), ended + dones
    return np.concatenate(seen).astype(np.float64), np.concatenate(states).astype(np.float64), np.array(returns)


@pytest.mark.parametrize("central", [False, True])
def test_scales_are_means_and_spreads_of_what_slots_see(central: bool):
    options = {"seed": 5, "max_steps": 6}
    source = StepRows(GRID, 3, with_state=central, gamma=0.9, **options)
    role = Role(source.env, ["battery"], RULES)
    (mine,) = measure_rows(source, [role], seed=0, discount=0.9, central=central)
    seen, states, returns = seen_on_slots(HeronVecEnv(GRID, 3, **options))
    pairs = [(mine.obs, seen), (mine.state, states)] if central else [(mine.obs, seen)]
    for scaling, table in pairs:
        columns, moves = table.shape[1], table.std(axis=0) > 1e-6
        assert np.allclose(scaling.center[:columns], table.mean(axis=0), rtol=1e-6)
        assert np.allclose(scaling.scale[:columns][moves], table.std(axis=0)[moves], rtol=1e-6)
        assert (scaling.scale[:columns][~moves] == 1.0).all()
    assert mine.reward == pytest.approx(1.0 / returns.std(), rel=1e-6)
    assert (mine.state is None) == (not central)


# What must be learned


class Cue(FeatureProvider):
    """What is shown in an episode's first step, and what was."""

    shown: float = quantity(default=0.0, low=-1.0, high=1.0)
    was: float = quantity(default=0.0, low=-1.0, high=1.0, observed=False)


class Answer(FeatureProvider):
    """What the agent says."""

    visibility = ()
    value: float = quantity(default=0.0, low=-1.0, high=1.0, observed=False)


class Witness(FieldAgent):
    """Earns its answer times the cue, which it sees in the first step alone."""

    features = (Cue, Answer)
    action = Continuous(-1.0, 1.0)

    @staticmethod
    @rule(writes=Answer.value)
    def apply_action(answer: Answer, action: Vector) -> float:
        return action[0]

    @staticmethod
    @rule
    def compute_local_reward(cue: Cue, answer: Answer) -> float:
        return cue.was * answer.value


class RecallEnv(HeronEnv):
    """Each agent has a cue of its own."""

    def begin(self, world: World) -> None:
        cues = np.where(world.draw("cue", 2) < 0.5, -1.0, 1.0)
        world[Witness].Cue.shown[...] = world[Witness].Cue.was[...] = cues

    def finish(self, world: World) -> None:
        world[Witness].Cue.shown[...] = 0.0


def recall(steps: int = 4) -> HeronEnv:
    return RecallEnv(SystemAgent("system_agent", Witness("witness_1"), Witness("witness_2")), max_steps=steps)


register("test/Recall-v0", recall)
EAGER: dict[str, Any] = {"num_envs": 16, "n_steps": 16, "batch_size": 128, "n_epochs": 6, "learning_rate": 6e-3}


def remembered(folder: Path, steps: int = 2_500, **options: Any) -> tuple[RunFolder, float]:
    """A run, and what it earns a step of what can be earned."""
    settings = Hyperparameters(**{**EAGER, "gamma": 0.8, "hidden": (16,), **options})
    run = quick(
        folder, "test/Recall-v0", total_steps=steps, hyperparameters=settings, validations=0, validation_episodes=16
    )
    return run, run.config.validation["trained"] / 8.0


def test_what_only_memory_tells_is_learned_with_memory_alone(tmp_path: Path):
    _, without = remembered(tmp_path / "none")
    _, recurrent = remembered(tmp_path / "gru", gru=8)
    assert without < 0.45  # the first of four steps, and luck
    assert recurrent > 0.9


class Both(FeatureProvider):
    """Where to be, what to be, and what is."""

    place: float = quantity(default=0.0, low=-1.0, high=1.0)
    wanted: int = quantity(default=0, low=0, high=2)
    at: float = quantity(default=0.0, low=-1.0, high=1.0, observed=False)
    chosen: int = quantity(default=0, low=0, high=2, observed=False)


class Painter(FieldAgent):
    """Earns 1 for the wanted choice, less its distance from the place."""

    features = (Both,)
    action = Mixed(Continuous(-1.0, 1.0), Discrete(3))

    @staticmethod
    @rule(writes=(Both.at, Both.chosen))
    def apply_action(both: Both, action: Vector) -> tuple[float, float]:
        return action[0], action[1]

    @staticmethod
    @rule
    def compute_local_reward(both: Both) -> float:
        right = 1.0 if both.chosen == both.wanted else 0.0
        return right - abs(both.at - both.place)


class PaintEnv(HeronEnv):
    """A place and a choice for each episode."""

    def begin(self, world: World) -> None:
        world[Painter].Both.place[...] = 2.0 * world.draw("place") - 1.0
        world[Painter].Both.wanted[...] = np.floor(3.0 * world.draw("wanted"))


register("test/Paint-v0", lambda: PaintEnv(SystemAgent("system_agent", Painter("painter_1")), max_steps=2))


def test_numbers_and_choices_in_one_action_are_learned_together(tmp_path: Path):
    settings = Hyperparameters(**{**EAGER, "n_steps": 32, "gamma": 0.2, "hidden": (32,), "log_std": -1.0})
    run = quick(
        tmp_path, "test/Paint-v0", total_steps=5_000, hyperparameters=settings, validations=0, validation_episodes=20
    )
    assert run.config.validation["trained"] / 2.0 > 0.8 > 0.2 > run.config.validation["random"] / 2.0
    policy = load_policy(tmp_path)["painter"]
    action = policy.forward(np.array([0.5, 2.0], np.float32), {"c": None, "d": np.array([1, 1, 0])})
    assert action.shape == (2,) and action[1] != 2.0
    drawn = load_policy(tmp_path, deterministic=False, seed=3)["painter"]
    assert len({drawn.forward(np.array([x, 2.0], np.float32))[0] for x in np.linspace(0, 1e-3, 20)}) > 10


def test_forbidden_choices_are_never_made_while_training(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    forbidden, decide = [], Training._decide

    def checked(course: Training, rows: Any) -> Any:
        actions = decide(course, rows)
        for role in course.roles:
            spec, part = role.spec, role.part(rows)
            for mask, action in zip(rows.mask[part], actions[part], strict=True):
                flags = np.split(mask[: spec.ncats.sum()], np.cumsum(spec.ncats)[:-1])
                chosen = action[spec.dim_c : spec.size].astype(int)
                assert all(each[choice] for each, choice in zip(flags, chosen, strict=True))
                forbidden.append(not mask.all())
        return actions

    monkeypatch.setattr(Training, "_decide", checked)
    run = quick(tmp_path, "test/Lamps-v0", total_steps=512, validations=0)
    assert list(run.config.groups) == ["lamp", "pair", "dimmer"]
    assert sum(forbidden) > 500
    result = lamps("lamp", "pair", "dimmer").run_synchronous(load_policy(tmp_path), seed=1)
    assert len(result.actions["pair_1"]) == 30


register("test/Lamps-v0", lambda: lamps("lamp", "pair", "dimmer"))


# One policy for several groups


def test_groups_that_see_and_do_the_same_may_share_one_policy(tmp_path: Path):
    def twins() -> HeronEnv:
        return RecallEnv(SystemAgent("system_agent", Witness("early_1"), Witness("late_1")), max_steps=4)

    register("test/Twins-v0", twins)
    run = quick(tmp_path, "test/Twins-v0", hyperparameters=tiny(shared=True), critic="central")
    assert list(run.config.groups) == ["early", "late"]
    assert model(run)[0] == model(run)[1]
    early, late = run.weights("early"), run.weights("late")
    assert early["mlp_extractor.value_net.0.weight"].shape[1] == 2 * 0 + 1 + len(twins().state_names) + 2
    assert np.array_equal(early["action_net.weight"], late["action_net.weight"])
    plain = quick(tmp_path / "own", "test/Twins-v0")
    assert model(plain)[0] != model(plain)[1]
    with pytest.raises(ConfigError, match=r"shared=True: group 'pair' sees \d+ numbers and does .* can't share one"):
        quick(tmp_path / "no", "test/Lamps-v0", hyperparameters=tiny(shared=True))


# What remembers, after loading


@pytest.fixture(scope="module")
def with_memory(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    few = {"hyperparameters": tiny(gru=5), "validations": 0, "total_steps": 256}
    return quick(tmp_path_factory.mktemp("memory"), "test/Recall-v0", **few)


def test_each_agent_remembers_for_itself_and_forgets_where_an_episode_begins(with_memory: RunFolder):
    policies = load_policy(with_memory.path)
    assert list(policies) == ["witness_1", "witness_2"]
    assert all(isinstance(policy, RememberingPolicy) for policy in policies.values())
    env = recall(6)
    first = env.run_synchronous(policies, seed=1)
    assert first.same_course(env.run_synchronous(policies, seed=1))
    assert first.same_course(env.run_synchronous(load_policy(with_memory.path), seed=1))
    assert first.same_course(env.run_event_driven(policies, seed=1))
    late = env.run_event_driven(policies, seed=1, schedule=SLOW)
    assert late.same_course(env.run_event_driven(policies, seed=1, schedule=SLOW))
    drawn = load_policy(with_memory.path, deterministic=False, seed=4)
    one = env.run_synchronous(drawn, seed=1)
    assert one.same_course(env.run_synchronous(drawn, seed=1)) and not one.same_course(first)


def test_a_batch_refuses_what_remembers_by_name(with_memory: RunFolder):
    with pytest.raises(ConfigError, match=r"RememberingPolicy, has begin\(seed, episode\), but a batch begins many"):
        BatchEnv("test/Recall-v0", 2, others=load_policy(with_memory.path))


def test_a_damaged_memory_is_refused(with_memory: RunFolder, tmp_path: Path):
    for name in ("config.json", "witness.safetensors", "progress.csv"):
        (tmp_path / name).write_bytes((with_memory.path / name).read_bytes())
    file = tmp_path / "config.json"
    config = json.loads(file.read_text())
    config["groups"]["witness"]["frames"] = 2
    file.write_text(json.dumps(config))
    with pytest.raises(RunFolderError, match="has a memory that does not fit"):
        load_policy(tmp_path)


@pytest.fixture(scope="module")
def grid_with_memory(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    return quick(tmp_path_factory.mktemp("grid_memory"), hyperparameters=tiny(gru=5), schedule=SLOW)


@pytest.mark.parametrize("schedule", [ScheduleConfig(), SLOW, ScheduleConfig(msg_delay=0.4, loss=0.3)])
def test_what_remembers_plays_on_lanes_as_one_by_one(grid_with_memory: RunFolder, schedule: ScheduleConfig):
    env, policies = make(GRID, max_steps=6, compile=True), load_policy(grid_with_memory.path)
    assert can_play(env, policies, ())
    batch = play_lanes(env, [Case(seed) for seed in range(5)], [policies] * 5, schedule, RECORD)
    for seed, result in enumerate(batch.results()):
        assert result.same_course(env.run_event_driven(policies, seed=seed, schedule=schedule, record=RECORD))
    fewer = play_lanes(env, [Case(3)], [policies], schedule)
    assert fewer.result(0).returns == batch.result(3).returns
