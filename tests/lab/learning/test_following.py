"""A training tells callbacks what happens; loggers, the progress line and progress.csv are callbacks; time is kept.

Planted once and caught: compiling counted as training, a limit that is looked at between rollouts alone.
"""

import csv
import json
import os
import socket
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cli_kit import heron
from training_kit import GRID, Ticking, tiny, trained

from heron_env import Benchmark
from heron_env.errors import ConfigError, HeronWarning, RunFolderError
from heron_env.lab import (
    PolicyUpdated,
    PolicyValidated,
    RolloutEnded,
    RunFolder,
    Sources,
    TrainingEnded,
    TrainingEvent,
    learning_curves,
    report_of,
)
from heron_env.lab.learning.events import Monitor, Stopwatch
from heron_env.worlds.battery_grid import BatteryGridEnv

SHORT = {"max_steps": 6}


def quick(folder: Path, **options: Any) -> RunFolder:
    return trained(folder, **{"env_options": SHORT, "clock": Ticking(), **options})


def rows_of(folder: Path) -> list[dict[str, str]]:
    with (folder / "progress.csv").open(newline="") as stream:
        return list(csv.DictReader(stream))


# Events


def test_callbacks_are_told_each_rollout_update_and_validation_and_the_end(tmp_path: Path):
    events: list[TrainingEvent] = []
    run = quick(tmp_path, validations=2, total_steps=128, callbacks=events.append)
    (started, *between, ended) = events
    assert type(started) is TrainingEvent and (started.steps, started.done) == (0, 0.0)
    pair = [RolloutEnded, PolicyUpdated]
    assert [type(event) for event in between] == [
        PolicyValidated,
        *pair * 2,
        PolicyValidated,
        *pair * 2,
        PolicyValidated,
    ]
    assert [event.steps for event in between if isinstance(event, RolloutEnded)] == [32, 64, 96, 128]
    assert [event.done for event in between if isinstance(event, RolloutEnded)] == [0.25, 0.5, 0.75, 1.0]
    assert isinstance(ended, TrainingEnded) and (ended.run, ended.reason, ended.done) == (run, "steps", 1.0)
    last = between[-1]
    assert isinstance(last, PolicyValidated) and last.root_return == run.config.validation["trained"]
    assert last.figures["validation/group_return/battery"] == run.config.validation_by_group["trained"]["battery"]
    update = next(event for event in events if isinstance(event, PolicyUpdated))
    losses = ["update/value_loss/battery", "update/policy_gradient_loss/battery", "update/approx_kl/battery"]
    assert {*losses, "update/learning_rate/battery"} <= set(update.figures)
    assert update.figures["update/value_loss/battery"] > 0.0 and update.losses["battery"]["learning_rate"] == 1e-3


def test_the_losses_are_those_of_the_update(tmp_path: Path):
    """The first minibatch of the first epoch finds the policy as it acted: no divergence, nothing clipped."""
    events: list[TrainingEvent] = []
    options = {"hyperparameters": tiny(n_epochs=1, batch_size=64), "total_steps": 32, "validations": 0}
    quick(tmp_path, callbacks=[events.append], **options)
    (losses,) = (event.losses["battery"] for event in events if isinstance(event, PolicyUpdated))
    assert losses["approx_kl"] == pytest.approx(0.0, abs=1e-6) and losses["clip_fraction"] == 0.0
    assert losses["policy_gradient_loss"] == pytest.approx(0.0, abs=1e-6)  # the mean of gains of mean 0


@pytest.mark.parametrize("stop", [False, np.False_])
def test_a_callback_stops_the_training_and_its_policies_are_kept(stop: Any, tmp_path: Path):
    events: list[TrainingEvent] = []

    def enough(event: TrainingEvent) -> Any:
        events.append(event)
        return stop if event.steps >= 64 else None

    run = quick(tmp_path, total_steps=10**9, callbacks=[enough, lambda event: 0])
    assert run.config.transitions == 64 and not run.config.deterministic
    assert isinstance(events[-1], TrainingEnded) and events[-1].reason == "callback"
    assert RunFolder.open(tmp_path).policies() and "trained" in run.config.validation


def test_what_a_callback_raises_is_the_user_s_and_the_folder_is_honest(tmp_path: Path):
    def fails(event: TrainingEvent) -> None:
        if event.steps >= 64 and isinstance(event, RolloutEnded):
            raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError, match=r"^mine$"):
        quick(tmp_path / "first", total_steps=640, callbacks=fails)
    with pytest.raises(RunFolderError, match="is no finished run folder"):
        RunFolder.open(tmp_path / "first")
    assert [row["transitions"] for row in rows_of(tmp_path / "first")] == ["0", "32", "64"]
    former = quick(tmp_path / "second")
    with pytest.raises(ZeroDivisionError):
        quick(tmp_path / "second", total_steps=640, callbacks=fails, seed=5)
    assert RunFolder.open(tmp_path / "second").digest() == former.digest()
    assert RunFolder.open(tmp_path / "second").curve() == former.curve()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"callbacks": 3}, "train(callbacks=3): must be a function of one event, or several in a list."),
        (
            {"logger": "tensorbord"},
            "train(logger='tensorbord'): must be one of ('csv', 'tensorboard', 'wandb'), or a function of "
            "(step, figures), or several in a list. Did you mean 'tensorboard'?",
        ),
    ],
)
def test_what_follows_no_training(options: dict[str, Any], words: str, tmp_path: Path):
    with pytest.raises(ConfigError) as error:
        quick(tmp_path / "run", **options)
    assert str(error.value) == words and not (tmp_path / "run").exists()
    with pytest.raises(ConfigError, match=r"must be a function of one event"):
        quick(tmp_path / "run", callbacks=lambda step, figures: None)


def test_following_changes_nothing_that_is_learned(tmp_path: Path):
    one = quick(tmp_path / "one")
    other = quick(tmp_path / "other", callbacks=lambda event: None, logger=["csv", lambda step, figures: None])
    assert (one.path / "battery.safetensors").read_bytes() == (other.path / "battery.safetensors").read_bytes()


# Loggers


def test_a_function_and_figures_csv_get_the_same_figures(tmp_path: Path):
    heard: list[tuple[int, str, str]] = []

    def log(step: int, figures: Any) -> bool:
        heard.extend((step, name, f"{value:.6g}") for name, value in figures.items())
        return False  # of no meaning

    run = quick(tmp_path, logger=[log, "csv"], validations=2)
    with (tmp_path / "figures.csv").open(newline="") as stream:
        written = [(int(row["step"]), row["figure"], row["value"]) for row in csv.DictReader(stream)]
    assert written == heard and {step for step, _, _ in heard} == {0, 32, 64}
    trained_last = {name: value for step, name, value in heard if step == 64}
    assert trained_last["validation/return"] == f"{run.config.validation['trained']:.6g}"
    signals = [value for _, name, value in heard if name == "rollout/training_signal/battery"]
    assert signals == [row["training_signal"] for row in run.curve() if row["training_signal"] != "nan"]


def test_the_command_line_logs(tmp_path: Path):
    heron("train", GRID, "--steps", 1, "-o", "max_steps=4", "--logger", "csv", "--out", tmp_path / "run")
    assert "validation/return" in (tmp_path / "run" / "figures.csv").read_text()
    wrong = heron("train", GRID, "--logger", "cvs", "--out", tmp_path / "other", code=2).stderr
    assert "Did you mean 'csv'?" in wrong


def test_a_logger_whose_package_is_missing_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(__import__("sys").modules, "tensorboard", None)
    for module in ("torch.utils.tensorboard", "tensorboardX", "wandb"):
        monkeypatch.setitem(__import__("sys").modules, module, None)
    for name, words in (
        ("tensorboard", "train(logger='tensorboard'): needs TensorBoard's writer; install it: pip install tensorboard"),
        ("wandb", "train(logger='wandb'): needs Weights & Biases; install it: pip install wandb"),
    ):
        with pytest.raises(ConfigError) as error:
            quick(tmp_path, logger=name)
        assert str(error.value) == words


# progress.csv


def test_progress_csv_has_a_row_of_each_rollout_and_each_validation(tmp_path: Path):
    rows = quick(tmp_path, total_steps=128, validations=2, clock=Ticking(0.001)).curve()
    assert [row["transitions"] for row in rows] == ["0", "32", "64", "64", "96", "128", "128"]
    validated = [row["validation_return"] != "nan" for row in rows]
    assert validated == [True, False, False, True, False, False, True]
    assert [row["training_signal"] == "nan" for row in rows] == validated
    seconds = [float(row["seconds"]) for row in rows]
    assert seconds == sorted(seconds)


# The line


def line_after(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], folder: Path, **options: Any
) -> list[str]:
    clock = Ticking()

    def passes(event: TrainingEvent) -> None:
        clock.now += 4.0 * isinstance(event, RolloutEnded)

    quick(folder, clock=clock, callbacks=passes, progress=True, total_steps=320, **options)
    return capsys.readouterr().err.splitlines()


def test_where_there_is_no_terminal_a_line_is_written_every_ten_seconds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    """Ten rollouts of 4 s each: three lines within 40 s, and the last."""
    said, *lines = line_after(monkeypatch, capsys, tmp_path)
    assert said == f"{GRID}: 320 transitions, 10 x 32 (2 lanes, 8 steps, 2 agents)"
    assert [line.split(",")[0] for line in lines] == [f"{GRID}: {share}%" for share in (30, 50, 80, 100)]
    assert lines[0].startswith(f"{GRID}: 30%, 96 transitions, return 5.999, about 28 s left")
    assert lines[-1].startswith(f"{GRID}: 100%, 320 transitions, return") and "left" not in lines[-1]


# Time


def test_what_numba_compiles_is_told_apart():
    from numba.core.event import trigger_event

    clock = Ticking()
    watch, heard = Stopwatch(clock), list[float]()
    watch.at_compile = heard.append
    with watch.running():
        clock.now += 2.0
        with trigger_event("numba:compile"):
            clock.now += 5.0
            with trigger_event("numba:compile"):
                clock.now += 1.0
        clock.now += 3.0
    assert (watch.seconds, watch.compiled, heard) == (5.0, 6.0, [2.0, 7.0])
    with trigger_event("numba:compile"):
        clock.now += 1.0
    assert watch.compiled == 6.0


def test_compiling_is_no_part_of_the_time_limit_and_is_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    from numba.core.event import trigger_event

    clock, compiled = Ticking(), []

    def passes(event: TrainingEvent) -> None:
        if isinstance(event, RolloutEnded):
            clock.now += 1.0
            if not compiled:
                with trigger_event("numba:compile"):
                    clock.now += 12.34
                compiled.append(event)

    run = quick(tmp_path, clock=clock, callbacks=passes, progress=True, total_steps=10**9, time_limit=5.0)
    assert run.config.transitions == 4 * 32  # one a second; another would end when the time is up
    assert (run.config.seconds, run.config.compile_seconds) == (4.0, 12.3)
    line = capsys.readouterr().err.splitlines()[1]
    assert ", compiled in 12.3 s, about 4 s left" in line


def test_what_is_really_compiled_is_counted(tmp_path: Path):
    import numba

    def compiles(event: TrainingEvent) -> None:
        if type(event) is TrainingEnded:
            return
        numba.njit(lambda x: x + 1.0)(2.0)

    assert trained(tmp_path, env_options=SHORT, callbacks=compiles).config.compile_seconds > 0.0


def test_the_time_limit_is_looked_at_within_a_rollout(tmp_path: Path):
    """A rollout of 10,000 steps takes longer than the limit, by a clock that moves whenever it is read."""
    settings, clock = tiny(n_steps=10_000), Ticking(0.01)
    with pytest.warns(HeronWarning, match="it ended before the first update of a policy .* nothing was learned"):
        run = quick(
            tmp_path, clock=clock, time_limit=30.0, total_steps=10**9, hyperparameters=settings,
            env_options={"max_steps": 50},
        )  # fmt: skip
    assert 0 < run.config.transitions < 20_000 and 29.0 < clock.now < 31.0
    assert run.config.deterministic is False and "trained" in run.config.validation


def test_the_last_validation_is_within_the_time_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Each validation takes 5 s, each rollout 1: there are two validations, and rollouts in what is left."""
    from heron_env.lab.learning.train import Validation

    clock, measure = Ticking(), Validation.measure

    def slowly(self: Validation, *given: Any) -> Any:
        clock.now += 5.0
        return measure(self, *given)

    monkeypatch.setattr(Validation, "measure", slowly)
    events: list[TrainingEvent] = []

    def passes(event: TrainingEvent) -> None:
        events.append(event)
        clock.now += isinstance(event, RolloutEnded)

    run = quick(tmp_path, clock=clock, time_limit=33.0, total_steps=10**9, validations=1, callbacks=passes)
    assert clock.now == 32.0 and run.config.transitions == 32 * 12  # 2 baselines and 2 validations: 20 s
    assert isinstance(events[-1], TrainingEnded) and events[-1].reason == "time limit"


def test_baselines_get_a_third_of_the_time_limit(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    """Two baselines of three episodes each; the clock is read before each episode."""
    with pytest.warns(HeronWarning, match="before the first update"):
        run = quick(
            tmp_path, clock=Ticking(2.0), time_limit=120.0, validation_episodes=3, progress=True, total_steps=64
        )
    assert set(run.config.validation) < {"trained", "random", "do nothing"} and "trained" in run.config.validation
    assert "Not measured, for lack of time: " in capsys.readouterr().out


def test_a_second_passes_at_least_between_two_events_in_which_nothing_happened():
    clock, events = Ticking(), list[TrainingEvent]()
    monitor = Monitor([events.append], Stopwatch(clock), None)
    for _ in range(40):
        clock.now += 0.25
        assert not monitor.due()
    assert [event.seconds for event in events] == [float(second) for second in range(1, 11)]


# The curve


def test_curves_of_several_seeds_are_a_mean_with_its_interval(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    runs = [quick(tmp_path / str(seed), seed=seed, validations=2) for seed in range(3)]
    figure = learning_curves({"mine": [run.path for run in runs], "alone": [runs[0]]})
    lines = {line.get_label(): line for line in figure.axes[0].lines}
    curves = [
        [float(row["validation_return"]) for row in run.curve() if row["validation_return"] != "nan"] for run in runs
    ]
    assert list(lines["mine"].get_xdata()) == [0.0, 32.0, 64.0]
    assert lines["mine"].get_ydata() == pytest.approx(np.mean(curves, axis=0))
    assert lines["alone"].get_ydata() == pytest.approx(curves[0])
    assert len(figure.axes[0].collections) == 1  # one run has no interval
    assert figure.axes[0].get_title("left") == "Return in validation\n(bands: 95 % intervals over seeds)"
    assert figure.axes[0].get_ylabel() == "return of system_agent"
    monkeypatch.setattr(BatteryGridEnv, "benchmark", lambda self: Benchmark(unit="kWh"))
    assert learning_curves(runs[0]).axes[0].get_ylabel() == "return of system_agent, kWh"
    made = report_of(Sources(runs=[*runs, quick(tmp_path / "other", critic="central")]))
    assert [part.title for part in made.parts].count("Training") == 2, "one for the seeds of one training"
    assert [picture.name for picture in made.pictures][:2] == ["learning", "learning2"]
    assert "over 3 trainings, seeds 0, 1, 2" in made.pictures[0].caption
    assert learning_curves(runs[0]).axes[0].lines
    with pytest.raises(ConfigError, match=r"learning_curves\(\): no run of 'none' was validated"):
        learning_curves({"none": []})


# Trackers, which are installed in an environment of their own


def test_tensorboard_s_own_reader_reads_the_curves(tmp_path: Path):
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    run = quick(tmp_path, logger="tensorboard", total_steps=128, validations=2)
    reader = EventAccumulator(str(tmp_path / "tensorboard")).Reload()
    scalars = {tag: [(at.step, at.value) for at in reader.Scalars(tag)] for tag in reader.Tags()["scalars"]}
    rows = run.curve()
    for tag, column in (
        ("rollout/training_signal/battery", "training_signal"),
        ("validation/return", "validation_return"),
        ("validation/group_return/battery", "group_return"),
    ):
        expected = [(int(row["transitions"]), float(row[column])) for row in rows if row[column] != "nan"]
        assert [step for step, _ in scalars[tag]] == [step for step, _ in expected]
        assert [value for _, value in scalars[tag]] == pytest.approx([value for _, value in expected], rel=1e-5)
    assert [step for step, _ in scalars["update/value_loss/battery"]] == [32, 64, 96, 128]


def records(data: bytes) -> Iterator[bytes]:
    """Those in a file of W&B: blocks of 32 KiB as LevelDB's logs have them, behind seven bytes."""
    at, record = 7, b""
    while at + 7 <= len(data):
        if (room := -at % 32_768) and room < 7:
            at += room
            continue
        _, size, kind = struct.unpack_from("<IHB", data, at)
        record, at = record + data[at + 7 : at + 7 + size], at + 7 + size
        if kind in (1, 4):  # whole, or its last part
            yield record
            record = b""


def test_w_and_b_s_offline_log_has_the_curves_and_nothing_is_sent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    for name in ("WANDB_MODE", "WANDB_ERROR_REPORTING"):
        monkeypatch.delenv(name, raising=False)
    pytest.importorskip("wandb", reason="wandb is not installed")
    from wandb.proto.wandb_internal_pb2 import Record

    refused: list[Any] = []
    monkeypatch.setattr("socket.socket.connect", lambda own, where, go=socket.socket.connect: (
        go(own, where) if own.family == socket.AF_UNIX else refused.append(where)))  # fmt: skip
    run = quick(tmp_path, logger="wandb", total_steps=128, validations=2)
    assert os.environ["WANDB_ERROR_REPORTING"] == "false" and refused == []
    (file,) = tmp_path.glob("wandb/offline-run-*/run-*.wandb")
    history, config = dict[int, dict[str, float]](), dict[str, str]()
    for record in map(Record.FromString, records(file.read_bytes())):
        config |= {item.key: item.value_json for item in record.run.config.update}
        if record.HasField("history"):
            row = {item.key or item.nested_key[0]: json.loads(item.value_json) for item in record.history.item}
            history[row["_step"]] = row
    assert [*history] == [0, 32, 64, 96, 128] and config["env_id"] == f'"{GRID}"'
    validated = {int(row["transitions"]): row["validation_return"] for row in run.curve()}
    for step in (0, 64, 128):
        assert history[step]["validation/return"] == pytest.approx(float(validated[step]), rel=1e-5)
    assert all(history[step]["update/value_loss/battery"] > 0.0 for step in (32, 64, 96, 128))
