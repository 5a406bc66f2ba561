"""Entries of the board are played again, and what is planted in one is found; the page ranks, and names what lacks."""

import gzip
import json
import math
import re
import shutil
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import board as pieces
import numpy as np
import pytest
from cli_kit import as_json, heron
from training_kit import tiny, trained

from heron_env import Condition, ScheduleConfig, Sweep, TrainedRun, load_policy
from heron_env.errors import ConfigError, DataError, RunFolderError
from heron_env.lab import Intervals
from heron_env.lab.benchmark import NOTHING, RANDOM
from heron_env.lab.board import (
    CONDITIONS,
    SAMPLE,
    BoardEntry,
    add_entry,
    board,
    own_entries,
    placed,
    read_entry,
    stem_of,
    trained_name,
)
from heron_env.lab.board import verified as verify_one
from heron_env.lab.board import verify_entry as verify
from heron_env.lab.runs import CHECKPOINTS, MOST, ZOO, open_run, shipped
from heron_env.lab.show.board_page import board_report, standings

SPREAD = "heron/Spread-v0"
ENERGY = "heron/EnergyManagement-v1"
DELAY = Condition(msg_delay=0.05)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Two trainings that differ in their seeds; the first under the constant delay."""
    folder = tmp_path_factory.mktemp("runs")
    late = {"schedule": ScheduleConfig(msg_delay=0.05), "env_options": {"compile": True}}
    first = trained(folder / "late", SPREAD, hyperparameters=tiny(log_std=1.0), **late).path
    return first, trained(folder / "other-seed3", SPREAD, seed=3).path


@pytest.fixture(scope="module")
def made(runs: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Entries of a training and of a baseline."""
    out = tmp_path_factory.mktemp("board")
    add_entry(str(runs[0]), "constant", out)
    add_entry(RANDOM, "constant", out, env=SPREAD)
    return out / SPREAD


@pytest.fixture
def folder(made: Path, tmp_path: Path) -> Path:
    """A copy to lie in."""
    return Path(shutil.copytree(made, tmp_path / "lies"))


@pytest.fixture
def entry(folder: Path) -> Path:
    return folder / "late@constant.json"


def changed(path: Path, edit: Callable[[dict[str, Any]], object], figures: bool = True) -> None:
    """The entry with a lie in it; `figures`: its author reckons mean and interval anew."""
    values = json.loads(path.read_text())
    edit(values)
    if figures:
        found = Intervals([case["options"].items() for case in values["cases"]]).mean(
            [case["value"] for case in values["cases"]]
        )
        values["returns"] |= found.to_dict()
    path.write_text(json.dumps(values))


def test_an_entry_says_all_and_its_returns_are_those_of_a_sweep(runs: tuple[Path, Path], entry: Path):
    found = read_entry(entry)
    assert (found.env, found.condition, found.policy, found.seed) == (SPREAD, "constant", "late", 0)
    assert (found.trained_under, found.amounts, found.options) == ("constant", {"msg_delay": 0.05}, {})
    assert {fields["msg_delay"] for fields in found.schedule.values()} == {0.05}
    plan = Sweep.of(SPREAD, {"late": TrainedRun(str(runs[0]))}, [DELAY], cases=64, options={"compile": True})
    sweep = plan.run(progress=False, processes=1)
    point = sweep.point("late", DELAY)
    assert [case.value for case in found.cases] == list(point.values)
    assert found.returns == point.mean
    assert [case.seed for case in found.cases] == [case.seed for case in sweep.sweep.cases]
    assert {path.name for path in entry.parent.iterdir()} == {
        "late.safetensors",
        "late@constant.json",
        "random@constant.json",
    }


def test_an_honest_entry_is_verified_wherever_it_lies(entry: Path):
    done = verify(entry)
    assert (done.word, done.faults, len(done.cases)) == ("verified", (), SAMPLE)
    assert verify(entry.parent / "random@constant.json", 64).cases == tuple(range(64))
    assert "verified: 3 cases were played again, compared bit for bit" in heron(
        "board", "verify", entry, "--cases", "3"
    ).stdout  # fmt: skip


def test_a_return_that_is_wrong_in_its_last_bit_is_named_when_it_is_drawn(entry: Path):
    before = read_entry(entry).cases[5].value
    changed(entry, lambda values: values["cases"][5].update(value=math.nextafter(before, 0.0)))
    told = heron("board", "verify", entry, "--cases", "64", code=1).stdout
    assert f"cases[5].value: {math.nextafter(before, 0.0)!r} there, played again it is {before!r}" in told
    assert "refused" in told


def test_a_wrong_return_that_is_not_drawn_still_has_to_agree_with_mean_and_interval(entry: Path):
    place = next(n for n in range(64) if n not in read_entry(entry).sample(SAMPLE))
    changed(entry, lambda values: values["cases"][place].update(value=0.0), figures=False)
    first, *_ = verify(entry).faults
    assert first.startswith("returns.value: ") and "the cases give" in first


def test_no_author_chooses_the_cases_that_are_played_again(entry: Path):
    before = read_entry(entry)
    lies = [before.model_copy(update={"seed": lie}) for lie in range(1, 20)]
    assert before.sample(SAMPLE) == before.sample(SAMPLE) == sorted(set(before.sample(SAMPLE)))
    assert len({tuple(lie.sample(SAMPLE)) for lie in lies}) == len(lies)


LIES: dict[str, tuple[Callable[[dict[str, Any]], object], str]] = {
    "mean": (lambda e: e["returns"].update(value=e["returns"]["value"] + 1e-9), "returns.value: "),
    "interval": (lambda e: e["returns"].update(low=e["returns"]["value"]), "returns.low: "),
    "more cases than there are": (lambda e: e["returns"].update(n=640), "returns.n: 640 there, the cases give 64"),
    "schedule": (
        lambda e: e["schedule"]["agent_1"].update(msg_delay=0.01),
        "schedule.agent_1.msg_delay: 0.01 there, 0.05 asked",
    ),
    "amounts": (lambda e: e.update(amounts={"msg_delay": 0.01}), "amounts.msg_delay: 0.01 there, 0.05 asked"),
    "a schedule more": (lambda e: e["schedule"].update(agent_9={}), "schedule.agent_9: there alone"),
    "options": (lambda e: e.update(options={"num_agents": 2}), "options.num_agents: there alone"),
    "case": (lambda e: e["cases"][3].update(seed=7), "cases[3].seed: 7 there, 1000003 asked"),
    "fewer cases": (lambda e: e["cases"].pop(), "cases: "),
    "seed": (lambda e: e.update(seed=4), "seed: 4 there, 0 asked"),
    "training": (lambda e: e.update(trained_under="none"), 'trained_under: "none" there, "constant" asked'),
    "digest": (lambda e: e.update(digest="0" * 32), 'digest: "0000'),
}


@pytest.mark.parametrize("lie", LIES)
def test_a_lie_about_what_was_played_is_refused_before_anything_is_played(entry: Path, lie: str):
    edit, words = LIES[lie]
    changed(entry, edit, figures=lie in ("case", "fewer cases"))
    done = verify(entry)
    assert (done.word, done.cases) == ("refused", ())
    assert done.faults[0].startswith(words)


def test_another_condition_of_the_board_is_not_what_was_played(entry: Path):
    late = board()[SPREAD].facts("none", None)
    changed(entry, lambda values: values.update({name: late[name] for name in ("condition", "amounts", "schedule")}))
    done = verify(entry)
    assert done.word == "refused" and len(done.faults) == SAMPLE
    assert "played again it is" in done.faults[0]


def test_another_checkpoint_is_refused_by_its_digest_and_where_that_is_adapted_by_what_it_does(
    runs: tuple[Path, Path], entry: Path
):
    other = open_run(open_run(runs[1]).save(entry.parent / "late.safetensors"))
    (first, *_) = verify(entry).faults
    assert first == "seed: 0 there, 3 asked"
    changed(entry, lambda values: values.update(seed=3, trained_under="none"))
    assert verify(entry).faults[0].startswith('digest: "')
    changed(entry, lambda values: values.update(digest=other.digest()))
    done = verify(entry)
    assert done.word == "refused" and len(done.faults) == SAMPLE
    assert all("played again it is" in fault for fault in done.faults)


def test_a_checkpoint_that_is_gone_or_damaged_is_an_error_unless_a_folder_has_it(entry: Path, tmp_path: Path):
    file, there = entry.parent / "late.safetensors", tmp_path / SPREAD / "late.safetensors"
    there.parent.mkdir(parents=True)
    shutil.copy(file, there)
    file.write_bytes(file.read_bytes()[:-1])
    assert "is no model of a training" in heron("board", "verify", entry, code=2).stderr
    file.unlink()
    with pytest.raises(RunFolderError, match="does not exist"):
        verify(entry)
    heron("board", "verify", entry, "--cases", "2", "--weights", tmp_path)


@pytest.mark.parametrize("name", ["planted.py:policy", "http://127.0.0.1:9/act", "runs", "answers.jsonl"])
def test_an_entry_without_a_checkpoint_names_a_baseline_and_nothing_that_runs(
    entry: Path, name: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(entry.parent)
    (entry.parent / "planted.py").write_text("raise SystemExit('it ran')")
    (entry.parent / "runs").mkdir()
    fields = {"policy": name, "checkpoint": None, "digest": None, "seed": None, "trained_under": None}
    changed(entry, lambda values: values.update(fields))
    with pytest.raises(ConfigError, match="neither a run folder nor a baseline"):
        verify(entry)


@pytest.mark.parametrize("file", ["../late.safetensors", "/etc/passwd", ""])
def test_a_checkpoint_lies_beside_its_entry_and_nowhere_else(entry: Path, file: str):
    changed(entry, lambda values: values.update(checkpoint=file))
    with pytest.raises(DataError, match="is no entry of the board"):
        read_entry(entry)


def test_on_another_machine_an_entry_is_verified_close_or_refused(entry: Path):
    changed(entry, lambda values: values["machine"].update(cpu="z80"))
    told = heron("board", "verify", entry).stdout
    assert told.startswith(f"verified: {SAMPLE} cases were played again, compared bit for bit; here is cpu ")
    changed(entry, lambda values: values["cases"][0].update(value=values["cases"][0]["value"] * (1.0 + 1e-9)))
    told = heron("board", "verify", entry, "--cases", "64", code=3).stdout
    assert told.startswith("close: 64 cases were played again, compared within 1e-06; here is cpu ")
    assert "instead of z80" in told
    changed(entry, lambda values: values["cases"][0].update(value=values["cases"][0]["value"] * 1.001))
    done = verify(entry, 64)
    assert done.word == "refused" and done.faults[0].startswith("cases[0].value: ")
    assert as_json("board", "verify", entry, "--cases", "64", code=1)["faults"] == list(done.faults)


def test_what_is_no_entry_is_refused(entry: Path):
    for text, words in (
        ("", "Invalid JSON"), ("{}", "env: Field required"), ('{"schema_version": 2}', "schema_version"),
        ("[1]", "object"),
    ):  # fmt: skip
        entry.write_text(text)
        with pytest.raises(DataError, match=words):
            read_entry(entry)
    entry.unlink()
    with pytest.raises(DataError, match="No such file"):
        read_entry(entry)


@pytest.mark.parametrize("value", [1e308, -1e200])
def test_an_entry_beyond_all_statistics_is_named_with_its_case(folder: Path, entry: Path, value: float):
    changed(entry, lambda values: values["cases"][3].update(value=value), figures=False)
    with pytest.raises(DataError, match=re.escape(f"{entry.name} is no entry of the board (cases.3.value={value!r}: ")):
        board_report([folder / "random@constant.json", entry])
    told = heron("board", "page", entry, "--out", folder / "board.html", code=2).stderr
    assert told.startswith(f"error: {entry} is no entry") and told.count("\n") == 1


def test_who_stops_an_entry_being_made_is_told_how_to_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def stopped(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("heron_env.lab.board.earned", stopped)
    told = heron("board", "add", "random", "--env", SPREAD, "--condition", "none", "--out", tmp_path, code=130).stderr
    assert told == "stopped; run the same command again\n"
    assert not [*tmp_path.rglob("*.json")]


def test_only_what_the_board_has_is_entered(runs: tuple[Path, Path], tmp_path: Path):
    with pytest.raises(
        ConfigError, match=r"condition 'constnt' of the board: must be one of .* Did you mean 'constant'"
    ):
        add_entry(str(runs[0]), "constnt", tmp_path)
    with pytest.raises(ConfigError, match="world 'heron/BatteryGrid-v0' of the board: must be one of"):
        add_entry(RANDOM, "none", tmp_path, env="heron/BatteryGrid-v0")
    with pytest.raises(ConfigError, match="neither a run folder nor a baseline"):
        add_entry("assigned", "none", tmp_path, env=SPREAD)
    pairs = trained(tmp_path / "pairs", SPREAD, env_options={"num_agents": 2}).path
    with pytest.raises(ConfigError, match="group 'agent' was trained on observations"):
        add_entry(str(pairs), "none", tmp_path / "out")


def entry_of(example: BoardEntry, policy: str, values: list[float], seed: int | None = None) -> BoardEntry:
    cases = [case.model_copy(update={"value": value}) for case, value in zip(example.cases, values, strict=True)]
    file = None if seed is None else f"{policy}-{seed}.safetensors"
    return example.model_copy(update={"policy": policy, "cases": cases, "seed": seed, "checkpoint": file})


def test_policies_whose_difference_may_be_nothing_share_a_rank(entry: Path):
    example, rng = read_entry(entry), np.random.default_rng(0)
    noise = rng.standard_normal(64)
    level = {"best": 1.0, "as good": 0.98, "between": 0.6, "last": -3.0}
    spread = {"best": 0.0, "as good": 0.5, "between": 2.0, "last": 0.0}
    own = {name: level[name] + spread[name] * rng.standard_normal(64) + 9.0 * noise for name in level}
    found = standings([entry_of(example, name, values.tolist()) for name, values in own.items()])
    better = {
        name: sum(
            Intervals(range(64)).difference(own[other], own[name]).low > 0.0 for other in own if other != name
        )
        for name in own
    }  # fmt: skip
    assert {each.policy: each.rank - 1 for each in found} == better
    assert [each.rank for each in found] == [1, 1, 1, 4]
    assert found[0].policy == "best" and found[-1].policy == "last"


def test_training_seeds_of_one_recipe_are_one_policy_with_an_interval_over_seeds_and_cases(entry: Path):
    example, rng = read_entry(entry), np.random.default_rng(0)
    tables = rng.standard_normal((3, 64)) + np.array([[0.0], [5.0], [10.0]])
    pool = [entry_of(example, "ppo", values.tolist(), seed) for seed, values in enumerate(tables)]
    (found,) = standings(pool)
    assert (found.policy, found.rank, found.seeds) == ("ppo", 1, 3)
    assert found.returns == Intervals(range(64)).mean(tables)
    assert found.returns.high - found.returns.low > 10.0


def test_the_page_has_every_cell_and_names_what_is_missing(made: Path, tmp_path: Path):
    page = tmp_path / "board.html"
    heron("board", "page", *made.glob("*.json"), "--out", page)
    text = page.read_text()
    report = board_report([*made.glob("*.json")])
    assert "do nothing, assigned landmark, nearest landmark, ppo (0 of 5 training seeds), ppo-constant (0 of 5" in text
    (gaps,) = [part.blocks[0] for part in report.parts if part.title == "Missing"]
    cells = {line.partition(":")[0] for line in gaps}
    assert cells == {f"{world}, {condition}" for world in board() for condition in CONDITIONS}
    assert [line for line in gaps if line.startswith(f"{SPREAD}, constant") and "random" in line] == []
    assert text.count("<table>") == len(board()) * len(CONDITIONS)


def test_what_was_trained_under_a_condition_had_a_world_that_resolves_what_evaluation_does():
    """Of what is shipped: a coarser clock in training would have rounded the condition's delays down."""
    for name, path in shipped().items():
        run = open_run(path)
        if run.config.schedule is not None:
            coarser = set(run.config.training_options) & {"dt", "physics_substeps", "report_interval", "metering"}
            assert not coarser, name


def test_the_page_refuses_a_lie_and_an_entry_that_is_there_twice(folder: Path, entry: Path):
    with pytest.raises(DataError, match="'late' is there twice under 'constant'; leave one out"):
        board_report([entry, entry])
    changed(entry, lambda values: values["returns"].update(value=0.0), figures=False)
    with pytest.raises(DataError, match=r"late@constant\.json: returns\.value: 0\.0 there, the cases give"):
        board_report([folder / "random@constant.json", entry])


def test_what_is_shipped_is_small_and_loads_by_its_name():
    assert sum(path.stat().st_size for path in ZOO.rglob("*") if path.is_file()) <= 1_200_000
    assert {path.suffix for path in ZOO.rglob("*") if path.is_file()} == {".safetensors", ".yaml"}
    assert len(shipped()) == 16 and all(path.stat().st_size <= MOST for path in shipped().values())
    for name in shipped():
        assert load_policy(name)
    rows = as_json("board", "list")
    assert [row["policy"] for row in rows] == list(shipped())
    assert [trained_name(row["trained"]) for row in rows] == [name.rpartition("/")[2] for name in shipped()]
    assert "heron/Spread-v0/ppo-constant " in heron("board", "list").stdout


def test_every_entry_of_the_board_is_looked_at_and_what_has_no_checkpoint_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    own = own_entries(SPREAD)
    few = [own[stem].model_dump_json() for stem in ("random@none", "ppo@none", "ppo-seed1@none")]
    monkeypatch.setattr("heron_env.lab.board.OWN", tmp_path)
    assert "name files of entries" in heron("board", "verify", "--all", code=2).stderr

    def written(lines: list[str]) -> None:
        (tmp_path / "Spread-v0.jsonl.gz").write_bytes(gzip.compress("\n".join(lines).encode()))

    written(few)
    here = {verify_one(one).word for one in placed(tmp_path / "Spread-v0.jsonl.gz") if not one.missing}
    code = 3 if "close" in here else 0
    told = heron("board", "verify", "--all", "--cases", "2", code=code).stdout
    assert told.startswith("3 entries: ") and "1 not played" in told and f"{SPREAD}/ppo-seed1.safetensors" in told
    weights = tmp_path / "weights" / SPREAD
    weights.mkdir(parents=True)
    shutil.copy(ZOO / SPREAD / "ppo.safetensors", weights / "ppo-seed1.safetensors")  # another one
    words = "board", "verify", "--all", "--cases", "2"
    done = as_json(*words, "--weights", tmp_path / "weights", code=1)
    assert done["missing"] == [] and done["verdicts"]["refused"] == 1
    assert done["faults"][0].startswith(f"{SPREAD}/ppo-seed1@none: seed: 1 there, 0 asked")
    lie = json.loads(few[2])
    lie["returns"]["value"] += 1.0
    written([*few[:2], json.dumps(lie)])
    assert "ppo-seed1@none: returns.value: " in heron(*words, code=1).stdout
    assert "give one ENTRY.json, or --all" in heron("board", "verify", code=2).stderr


def test_a_packed_file_of_many_is_not_verified_by_its_first(tmp_path: Path):
    few = [own_entries(SPREAD)[stem].model_dump_json() for stem in ("random@none", "ppo@none")]
    file = tmp_path / "Spread-v0.jsonl.gz"
    file.write_bytes(gzip.compress("\n".join(few).encode()))
    assert "has 2 entries of the board; one is needed" in heron("board", "verify", file, code=2).stderr
    with pytest.raises(DataError, match="has 2 entries"):
        read_entry(file)


def test_what_is_packed_joins_the_board_and_the_archive_has_every_checkpoint(
    made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("heron_env.lab.board.OWN", tmp_path / "own")
    monkeypatch.setattr(pieces, "ZOO", tmp_path)
    pieces.pack(made.parents[1])
    first = (made.parents[1] / CHECKPOINTS).read_bytes()
    pieces.pack(made.parents[1])
    assert list(own_entries(SPREAD)) == ["late@constant", "random@constant"]
    assert own_entries(SPREAD)["late@constant"] == read_entry(made / "late@constant.json")
    with tarfile.open(made.parents[1] / CHECKPOINTS) as archive:
        assert archive.getnames() == [f"{SPREAD}/late.safetensors"]
    assert (made.parents[1] / CHECKPOINTS).read_bytes() == first


def test_each_condition_takes_the_best_rule_20_to_50_percent_of_its_gain():
    for world in board().values():
        own, best = own_entries(world.id), stem_of(world.rules[0], None)
        nothing, plain = (np.array(own[f"{stem_of(name, None)}@none"].values) for name in (NOTHING, best))
        for condition in CONDITIONS[1:]:
            lost = (plain - own[f"{best}@{condition}"].values).mean()
            assert 0.2 <= lost / (plain - nothing).mean() <= 0.5, (world.id, condition)


def test_a_piece_of_the_trainings_leaves_what_is_finished_and_begins_what_was_killed_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    few = {"total_steps": 64, "hyperparameters": tiny(), "validations": 1, "validation_episodes": 1}
    monkeypatch.setattr(pieces, "SETTINGS", {SPREAD: few})
    words = ["board.py", "--worlds", SPREAD, "--conditions", "none", "--seeds", "0", "1", "--runs", str(tmp_path)]
    monkeypatch.setattr("sys.argv", words)
    pieces.main()
    first, second = (tmp_path / SPREAD / name / "config.json" for name in ("ppo", "ppo-seed1"))
    before, text = first.stat().st_mtime_ns, second.read_text()
    second.unlink()
    pieces.main()
    assert first.stat().st_mtime_ns == before
    assert json.loads(second.read_text())["seed"] == json.loads(text)["seed"] == 1
    second.unlink()
    monkeypatch.setattr("sys.argv", [*words, "--minutes", "0"])
    pieces.main()
    assert not second.exists()


# What training under a condition gains


def test_the_page_shows_the_table_of_the_entries_that_are_shipped():
    page = Path(__file__).parents[2] / "docs" / "science" / "training_under_networks.md"
    assert pieces.cells() in page.read_text(encoding="utf-8")


def test_p_is_where_the_interval_reaches_zero_and_is_corrected_for_being_several():
    assert pieces.holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    labels, ours, theirs = [*range(6)], [[3.0, 1.0, 2.0, 4.0, 2.0, 2.5]], [[1.0, 2.0, 1.0, 1.5, 2.0, 1.0]]
    p = pieces.p_value(labels, ours, theirs)
    assert Intervals(labels, level=1.0 - p).difference(ours, theirs).low == pytest.approx(0.0, abs=1e-9)
    assert pieces.p_value(labels, ours, ours) == 1.0
