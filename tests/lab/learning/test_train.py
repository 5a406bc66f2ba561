import csv
import json
import re
import sys
from functools import partial
from pathlib import Path
from typing import Any

import black_boxes
import numpy as np
import pytest
from cli_kit import heron
from ends import Mixed
from mixed_world import carts
from training_kit import Ticking, tiny, trained

from heron_env import (
    Condition,
    HeronEnv,
    SystemAgent,
    TrainingDefaults,
    load_policy,
    make,
    register,
    registered,
)
from heron_env.errors import ConfigError, HeronWarning, RunFolderError
from heron_env.lab import Hyperparameters, RunFolder, Sweep, record_episode, team_return
from heron_env.lab.benchmark import baselines, cases
from heron_env.lab.learning.events import COLUMNS
from heron_env.lab.learning.ppo import Learner
from heron_env.lab.learning.train import TrainingPlan, _fitting
from heron_env.lab.show.training import training_facts, training_part

SHORT = {
    "heron/BatteryGrid-v0": {"max_steps": 6},
    "heron/EnergyManagement-v1": {"dt": 3600.0, "physics_substeps": 1},
    "heron/Economy-v0": {"max_steps": 6},
    "heron/Spread-v0": {"max_steps": 6},
    "heron/Tag-v0": {"max_steps": 6},
    "heron/Adversary-v0": {"max_steps": 6},
    "heron/Push-v0": {"max_steps": 6},
    "heron/Reference-v0": {"max_steps": 6},
    "heron/SpeakerListener-v0": {"max_steps": 6},
    "heron/Crypto-v0": {"max_steps": 6},
    "heron/WorldComm-v0": {"max_steps": 6},
    "heron/TrafficCorridor-v0": {"max_steps": 6, "num_intersections": 2},
    "heron/GuidedWalker-v0": {"max_steps": 6},
    "heron/GraphColoring-v0": {"max_steps": 6},
}
SEVERAL_GROUPS = (
    "heron/Tag-v0", "heron/Adversary-v0", "heron/Push-v0", "heron/SpeakerListener-v0", "heron/Crypto-v0",
    "heron/WorldComm-v0", "heron/TrafficCorridor-v0", "heron/GraphColoring-v0", "heron/GuidedWalker-v0",
)  # fmt: skip
ONE_CONTROL = ("heron/Economy-v0", "heron/Spread-v0", "heron/Reference-v0", *SEVERAL_GROUPS)
VARIANTS = [
    (env_id, options)
    for env_id in registered()
    if env_id.startswith("heron/")
    for options in ([{}] if env_id in ONE_CONTROL else [{"control": "field"}, {"control": "zone"}])
]


def quick(env_id: str, folder: Path, **options) -> RunFolder:
    return trained(folder, env_id, **options)


@pytest.mark.e2e
@pytest.mark.parametrize(
    ("env_id", "options", "critic"),
    [(*variant, "central") for variant in VARIANTS] + [(*VARIANTS[at], "local") for at in (0, -1)],
)  # numbers, choices, and several groups of both
def test_every_registered_environment_learns_saves_and_loads(env_id: str, options: dict, critic: str, tmp_path: Path):
    options = {**SHORT[env_id], **options}
    run = quick(env_id, tmp_path, env_options=options, critic=critic)
    assert run == RunFolder.open(tmp_path)
    env = make(env_id, **options)
    policies = load_policy(tmp_path)
    assert list(policies) == list(env.group_map)
    sync = env.run_synchronous(policies, seed=1)
    assert sync.same_course(env.run_synchronous(load_policy(tmp_path), seed=1))
    assert sync.same_course(env.run_event_driven(policies, seed=1))


def test_validation_does_not_change_what_is_learned(tmp_path: Path):
    runs = [quick("heron/BatteryGrid-v0", tmp_path / str(n), validations=n, total_steps=128) for n in (0, 4)]
    one, other = (run.policies()["battery"].network.layers for run in runs)
    assert all(np.array_equal(x[0], y[0]) for x, y in zip(one, other, strict=True))


def test_training_goes_without_validation(tmp_path: Path):
    run = quick("heron/BatteryGrid-v0", tmp_path, validation_episodes=0, progress=True)
    assert RunFolder.open(tmp_path).config.validation == {}
    assert {row["validation_return"] for row in run.curve()} == {"nan"}
    run = quick("heron/BatteryGrid-v0", tmp_path, validations=0)
    *before, last = [row["validation_return"] for row in run.curve()]
    assert set(before) == {"nan"} and last == f"{run.config.validation['trained']:.6g}"


@pytest.mark.parametrize("env_id", ["heron/BatteryGrid-v0", "heron/EnergyManagement-v1"])
def test_validation_is_what_the_held_out_cases_earn(env_id: str, tmp_path: Path):
    """Each case with its options, say its day; also of the trained policies."""
    options = SHORT[env_id]
    run = quick(env_id, tmp_path, env_options=options, training_options={}, residual=None, validation_episodes=2)
    for name, policies in {"trained": run.policies(), "do nothing": baselines(make(env_id))["do nothing"]}.items():
        earned = []
        for case in cases(make(env_id, **options), 2, split="validation"):
            env = make(env_id, **options, **case.options)
            earned.append(team_return(env, env.run_synchronous(policies, seed=case.seed)))
        assert run.config.validation[name] == np.mean(earned)


def test_a_training_says_whose_return_it_has_and_what_each_group_earned_beside_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    """Also of a run of version 0.1.0, which kept none of it."""
    with pytest.warns(HeronWarning, match="Tower.compute_local_reward adds .* nobody learns from it"):
        run = quick("lab.dropping:drones", tmp_path, progress=True)
    assert (run.config.return_of, run.config.validation["trained"]) == ("tower", -3.0)
    own = run.config.validation_by_group["trained"]
    assert list(own) == ["wing", "drone", "mast"] and own["wing"] == 0.0 != own["drone"]
    printed = capsys.readouterr().out
    assert "return of tower" in " ".join(printed.replace("┃", " ").split()) and "drone" in printed
    rows = run.curve()
    assert {row["validation_return"] for row in rows} == {"-3", "nan"}
    assert (rows[-1]["group"], rows[-1]["group_return"]) == ("mast", f"{own['mast']:.6g}")
    facts, pictures = training_facts(run)["Validation"], training_part(run).blocks
    assert "Mean return of tower" in facts and f"trained: wing 0.00, drone {own['drone']:.2f}" in facts
    assert "return of tower" in pictures[0].caption and "Sum of the returns of drone" in pictures[0].svg.decode()
    for name in ("return_of", "validation_by_group"):
        del (config := json.loads((tmp_path / "config.json").read_text()))[name]
        (tmp_path / "config.json").write_text(json.dumps(config))
    with (tmp_path / run.config.curve).open("w", newline="") as stream:
        old = csv.DictWriter(stream, COLUMNS[:-1], extrasaction="ignore")
        old.writeheader()
        old.writerows(rows)
    run = RunFolder.open(tmp_path)
    facts, pictures = training_facts(run)["Validation"], training_part(run).blocks
    assert "Mean return of the team" in facts and "In sum" not in facts
    assert "return of the team" in pictures[0].caption and "Below" not in pictures[0].caption


def test_ppo_learns_to_charge(tmp_path: Path):
    settings = Hyperparameters(num_envs=8, n_steps=50, batch_size=400, n_epochs=5, learning_rate=3e-3, gamma=0.9)
    options = {"max_steps": 50}
    run = quick("heron/BatteryGrid-v0", tmp_path, total_steps=16_000, hyperparameters=settings, env_options=options)
    best = 2 * sum(0.5 + 0.01 * step for step in range(1, 51))  # full power from the first step to the last
    assert run.config.validation["do nothing"] == pytest.approx(50.0)
    assert run.config.validation["trained"] > 50.0 + 0.9 * (best - 50.0)


@pytest.mark.parametrize(("compiled", "count"), [("true", 3), ("false", 2 + 2)])
def test_a_small_training_runs_what_it_says_in_few_environments(
    compiled: str, count: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """2,000 transitions are less than a rollout of 64 lanes: there are six of two. Built are the command's environment,
    the plan's, which validates, and lanes, which the warm-up has before.
    """
    built: list[HeronEnv] = []
    begin = HeronEnv.__init__
    monkeypatch.setattr(HeronEnv, "__init__", lambda own, *a, **k: (built.append(own), begin(own, *a, **k))[1])
    words = ["train", "heron/BatteryGrid-v0", "--steps", 2000, "-o", f"compile={compiled}", "--out", tmp_path / "run"]
    said = heron(*words).stderr.splitlines()[0]
    run = RunFolder.open(tmp_path / "run")
    assert said == "heron/BatteryGrid-v0: 2,304 transitions, 6 x 384 (2 lanes, 96 steps, 2 agents)"
    assert run.config.transitions == 2304 and len(built) == count
    assert run.config.hyperparameters["num_envs"] == 64  # what a longer training that starts from it has


@pytest.mark.parametrize(
    ("settings", "steps", "expected"),
    [
        ({}, 12_288, (64, 96)),
        ({}, 12_287, (15, 96)),
        ({}, 100, (1, 12)),
        ({}, 1, (1, 1)),
        ({"twins": 4}, 12_287, (12, 96)),
        ({"twins": 4}, 100, (4, 3)),
    ],
)
def test_a_training_shorter_than_a_rollout_has_smaller_ones(settings: dict, steps: int, expected: tuple[int, int]):
    assert _fitting(Hyperparameters(**settings), steps, 2) == expected


class Choosing(HeronEnv):
    """Two choosers, and a mover whose baseline is to stand at 0.3."""

    def training_defaults(self) -> TrainingDefaults:
        return TrainingDefaults({"max_steps": 4})


def choosing(max_steps: int = 5, kind: type[Choosing] = Choosing) -> HeronEnv:
    return kind(SystemAgent("system_agent", *Mixed.choosers(2), Mixed.pair()[0]), max_steps=max_steps)


register("test/Choosing-v0", choosing)


class Particular(Choosing):
    """Knows with what it is best trained."""

    def training_defaults(self) -> TrainingDefaults:
        return TrainingDefaults({"max_steps": 4}, hyperparameters={"n_steps": 4, "hidden": (8, 8)})


class Misspelt(Choosing):
    """Means n_steps."""

    def training_defaults(self) -> TrainingDefaults:
        return TrainingDefaults(hyperparameters={"n_step": 4})


register("test/Particular-v0", lambda max_steps=5: choosing(max_steps, Particular))
register("test/Misspelt-v0", lambda: choosing(kind=Misspelt))


def planned(env_id: str, training_options: dict | None = None, hyperparameters: Hyperparameters | None = None):
    return TrainingPlan(
        env_id, Path("run"), {}, training_options, None, total_steps=1, seed=0, time_limit=None, validations=0,
        hyperparameters=hyperparameters,
    ).hyperparameters  # fmt: skip


def test_an_environment_s_hyperparameters_go_with_its_training_options_unless_others_are_given():
    assert planned("test/Particular-v0") == Hyperparameters(n_steps=4, hidden=(8, 8))
    assert planned("test/Particular-v0", training_options={}) == Hyperparameters()
    assert planned("test/Particular-v0", hyperparameters=tiny()) == tiny()
    with pytest.raises(
        ConfigError, match=r"test/Misspelt-v0: training_defaults\(\) has the hyperparameter 'n_step'.*n_st"
    ):
        planned("test/Misspelt-v0")


def test_groups_of_choices_and_of_numbers_are_trained_together(tmp_path: Path):
    settings = Hyperparameters(num_envs=4, n_steps=16, batch_size=32, learning_rate=1e-2)
    run = quick("test/Choosing-v0", tmp_path, total_steps=1500, hyperparameters=settings)
    assert run.config.training_options == {"max_steps": 4}
    env = choosing()
    result = env.run_synchronous(load_policy(tmp_path), seed=0)
    assert [v for _, v in result.rewards["chooser_1"]] == [2.0] * 5  # the best choice
    assert result.returns["mover_1"] > 4.0
    with (tmp_path / "progress.csv").open() as stream:
        rows = list(csv.DictReader(stream))
    assert [row["group"] for row in rows] == ["chooser", "mover"] * 18  # two choosers, one mover
    counted = [number for rollout in range(17) for number in (128 * rollout, 64 * rollout)]
    assert [int(row["transitions"]) for row in rows] == [*counted, 2048, 1024]


def test_drawn_actions_repeat_with_their_seed_and_follow_the_policy_s_spread(tmp_path: Path):
    quick("heron/BatteryGrid-v0", tmp_path / "numbers")
    quick("test/Choosing-v0", tmp_path / "choices")
    vectors = np.linspace(0, 1, 4000, dtype=np.float32)[:, None]
    drawn = load_policy(tmp_path / "choices", deterministic=False, seed=4)["chooser"]
    draws = np.arange(4000, dtype=np.uint64)
    assert np.array_equal(drawn.forward_batch(vectors, None, draws), drawn.forward_batch(vectors, None, draws))
    assert np.array_equal(drawn.forward_batch(vectors, None, draws)[17], drawn.forward(vectors[17], draw=17))
    share = np.bincount(drawn.forward_batch(vectors, None, draws)[:, 0].astype(int), minlength=3) / 4000
    logits = drawn.network(drawn.scaling(vectors)).astype(np.float64)
    likely = (np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)).mean(axis=0)
    assert np.abs(share - likely).max() < 0.04
    numbers, other = (load_policy(tmp_path / "numbers", deterministic=False, seed=s)["battery"] for s in (4, 5))
    vectors = np.random.default_rng(0).uniform(size=(2000, 4)).astype(np.float32)
    draws = draws[:2000]
    assert not np.array_equal(numbers.forward_batch(vectors, draws=draws), other.forward_batch(vectors, draws=draws))
    noise = numbers._draw(draws, np.zeros((2000, 1), np.float32)) / np.exp(numbers.log_std)
    assert abs(noise.mean()) < 0.1 and abs(noise.std() - 1.0) < 0.06


def test_a_time_limit_ends_training_cleanly_and_anneals_the_learning_rate_in_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    rates = []
    learn = Learner.learn
    monkeypatch.setattr(
        Learner, "learn", lambda student, rate, stops: (rates.append(rate), learn(student, rate, stops))[1]
    )
    run = quick("heron/BatteryGrid-v0", tmp_path, total_steps=10**9, time_limit=20.0, clock=Ticking(0.02))
    assert run.config.transitions < 10**9
    assert run.config.deterministic is False
    assert rates[0] == pytest.approx(1e-3, rel=0.01) and rates[-1] < 3e-4 and rates == sorted(rates, reverse=True)
    assert load_policy(tmp_path)


def test_the_table_of_baselines_is_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    run = quick("heron/BatteryGrid-v0", tmp_path, progress=True)
    printed = capsys.readouterr().out
    assert all(name in printed for name in ("trained", "random", "do nothing", "1 validation episode"))
    assert set(run.config.validation) == {"trained", "random", "do nothing"}
    assert json.loads((tmp_path / "config.json").read_text())["seed"] == 0


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"total_steps": 0}, "train(total_steps=0): must be a whole number >= 1"),
        ({"seed": -1}, "train(seed=-1): must be a whole number >= 0"),
        ({"time_limit": 0.0}, "train(time_limit=0.0): must be > 0 s, or None"),
        (
            {"residual": "do nothin"},
            "train(residual='do nothin'): heron/BatteryGrid-v0 has the baselines ['do nothing'] to correct."
            " Did you mean 'do nothing'?",
        ),
    ],
)
def test_a_wrong_argument_is_named(options: dict, words: str, tmp_path: Path):
    with pytest.raises(ConfigError) as error:
        quick("heron/BatteryGrid-v0", tmp_path, **options)
    assert str(error.value) == words


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("trainer", "sb3", "leave it out; Stable-Baselines3 trains on a HeronVecEnv, and heron_env.lab.save_run"),
        ("algorithm", "qmix", "it trains with PPO alone; VDN and QMIX are in BenchMARL, on a HeronTask"),
    ],
)
def test_an_argument_of_an_earlier_version_says_what_to_use(name: str, value: Any, words: str, tmp_path: Path):
    with pytest.raises(ConfigError) as error:
        quick("heron/BatteryGrid-v0", tmp_path / "run", **{name: value})
    assert str(error.value).startswith(f"train({name}={value!r}): is gone since an earlier 0.x: {words}")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("mixer", "it was of VDN and QMIX; train them with BenchMARL on a HeronTask"),
        ("frames", r"for memory write gru=\.\.\.; SuperSuit's frame_stack_v1 stacks observations"),
        ("augment", r"for memory write gru=\.\.\.; a wrapper around the environment shows an agent its own last"),
    ],
)
def test_a_hyperparameter_of_an_earlier_version_says_what_to_use(name: str, words: str):
    with pytest.raises(ConfigError, match=rf"^Hyperparameters\({name}=3\): is gone since an earlier 0.x: {words}"):
        Hyperparameters(**{name: 3})


def test_a_baseline_that_reads_states_in_object_form_can_be_no_base(tmp_path: Path):
    with pytest.raises(ConfigError) as error:
        quick("heron/Economy-v0", tmp_path, residual="carry")
    assert str(error.value) == (
        "Carry decides on a SimulationState; what a trained policy corrects must take the vector: give it a "
        "forward(vector), or train without a residual"
    )


@pytest.mark.parametrize(
    "how", [{"training_delays": None}, *({f"{name}_options": {"training_delays": 1}} for name in ("env", "training"))]
)
def test_training_delays_are_refused(how: Any, tmp_path: Path):
    with pytest.raises(ConfigError, match=r"\(training_delays=\w+\): is gone since an earlier 0.x: .*DrawnSchedule"):
        quick("heron/BatteryGrid-v0", tmp_path, **how)


def test_those_of_an_old_run_are_provenance(tmp_path: Path):
    grid, options = "heron/BatteryGrid-v0", SHORT["heron/BatteryGrid-v0"]
    file = quick(grid, tmp_path / "old", env_options=options).path / "config.json"
    config = json.loads(file.read_text())
    assert config["training_delays"] is None
    file.write_text(json.dumps({**config, "training_delays": {"observation": 1, "action": [0, 2]}}))
    old = RunFolder.open(tmp_path / "old")
    assert old.config.training_delays == {"observation": 1, "action": (0, 2)}
    assert "training delays {'observation': 1, 'action': (0, 2)}" in training_facts(old)["Training"]
    with pytest.warns(HeronWarning, match=r"with training_delays=.*, which do not act any more: .*schedule"):
        new = quick(grid, tmp_path / "new", start_from=old.path)
    assert new.config.training_delays is None


@pytest.mark.parametrize("delays", [{"observation": -1}, {"observation": [0, 1, 2]}, 3])
def test_what_no_version_wrote_is_refused(delays: Any, tmp_path: Path):
    file = quick("heron/BatteryGrid-v0", tmp_path, env_options=SHORT["heron/BatteryGrid-v0"]).path / "config.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "training_delays": delays}))
    with pytest.raises(RunFolderError, match="training_delays"):
        RunFolder.open(tmp_path)


@pytest.mark.parametrize(
    "env_id", ["gymnasium:Pendulum-v1", "black_boxes:parallel_env", "black_boxes:Walk", black_boxes.under]
)
def test_a_black_box_is_refused_with_the_names_of_those_who_train_it(env_id: Any, tmp_path: Path):
    words = (
        r"is a black box, \w+; .* under_network\(env, \.\.\.\) with any trainer .*: Stable-Baselines3, CleanRL"
        r"|returned <[\w.]*Walk.*yours is gymnasium:mine:Lift-v0; .*\(docs/how_to/under_network\.md#on-the-command"
    )
    with pytest.raises(ConfigError, match=words):
        trained(tmp_path / "run", env_id)
    if isinstance(env_id, str):
        assert re.search(words, heron("train", env_id, "--out", tmp_path / "run", code=2).stderr.replace("\n", " "))
    assert not (tmp_path / "run").exists()


@pytest.mark.e2e
def test_a_function_that_builds_the_environment_trains_what_its_name_does(tmp_path: Path):
    named, given = (
        trained(tmp_path / what, env, validations=0) for what, env in (("named", "mixed_world:carts"), ("given", carts))
    )
    assert given.config.env_id == named.config.env_id == "mixed_world:carts"
    weights = [run.weights("cart") for run in (given, named)]
    assert all(np.array_equal(values, weights[1][name]) for name, values in weights[0].items())
    late = Condition(act_delay=1.0)
    swept = [
        Sweep.of(env, {"random": "random"}, [late], cases=2).run(processes=2).point("random", late).values
        for env in ("mixed_world:carts", carts)
    ]
    assert swept[0] == swept[1]
    assert record_episode(carts, "random").setting.env_id == "mixed_world:carts"


@pytest.mark.parametrize("function", [lambda **options: carts(**options), partial(carts, max_steps=4), carts.__call__])
def test_a_function_that_no_name_leads_to_is_refused(function: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    for caller, run in {
        "train": lambda f: trained(tmp_path / "run", f),
        "Sweep.of": lambda f: Sweep.of(f, {"random": "random"}, []),
        "record_episode": lambda f: record_episode(f, "random"),
    }.items():
        with pytest.raises(ConfigError, match=rf"{caller}\(env_id\): .* can't be found by a name in a module.*options"):
            run(function)
    monkeypatch.setattr(carts, "__module__", "__main__")  # of a script
    monkeypatch.setattr(sys.modules["__main__"], "carts", carts, raising=False)
    with pytest.raises(ConfigError, match="can't be found by a name in a module"):
        trained(tmp_path / "run", carts)
