"""The study of predicted and real networks: nothing runs before predictions are committed, it resumes, and can fail."""

import gzip
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import reality
from real.carried_kit import Quick
from real.wire_kit import needs_broker
from reality_report import Cell, compare, judged, lines_of, signs, with_tables

from heron_env.real.network import Law, Network
from heron_env.real.predicting import predict
from heron_env.real.record import read_record
from heron_env.seeding import stream

CELL = Cell("Spread", "udp, 35 ms", "assigned landmark")
SEEDS = range(96)


# Bars, on data whose truth is set


def made(off: dict[str, float], *, right: float = 0.0, lost: float = 10.0, noise: float = 2.0, name: str = "") -> Any:
    """Predictions of a cell with a gain of 50, whose right model is wrong by `right`; and its episodes."""
    draws = stream(3, "reality", name)
    seeds, cases = [*SEEDS], draws.normal(0.0, 20.0, len(SEEDS))
    real = cases - lost + draws.normal(0.0, noise, len(SEEDS))
    values = {
        "synchronous": cases, "right": cases - lost + right + draws.normal(0.0, noise, len(SEEDS)),
        "one": cases - lost + draws.normal(0.0, noise, len(SEEDS)),
    }  # fmt: skip
    wrong = {each: (cases - lost + by).tolist() for each, by in off.items()}
    errors = {each: by / (noise / 96**0.5) for each, by in off.items()}
    prediction = {
        **{key: x.tolist() for key, x in values.items()},
        "seeds": seeds,
        "gain": 50.0,
        "wrong": wrong,
        "off": errors,
    }
    return prediction, [line(CELL, seed, value) for seed, value in zip(seeds, real.tolist(), strict=True)]


def line(cell: Cell, seed: int, value: float, **more: Any) -> dict[str, Any]:
    late = {"median": 0.0004, "p99": 0.002, "max": 0.009}
    return {"cell": [*cell], "seed": seed, "return": value, "discarded": False, "repeats": True, "late": late, **more}


def test_a_right_model_comes_out_and_a_wrong_one_is_refused() -> None:
    prediction, lines = made({"far": 6.0, "near": 0.5})
    verdict = judged(CELL, prediction, lines)
    assert verdict is not None and verdict.missed == [] and verdict.wrong["far"][1] and "near" not in verdict.wrong
    real = np.array([each["return"] for each in lines])
    apart = np.array(prediction["right"]) - real
    assert verdict.off == pytest.approx(apart.mean()) and verdict.error == pytest.approx(apart.std(ddof=1) / 96**0.5)
    assert verdict.lost == pytest.approx((np.array(prediction["synchronous"]) - real).mean() / 50.0)
    assert verdict.bar == pytest.approx(max(1.5, 2.0 * verdict.error))


MISSED = {
    "off": (made({}, right=2.5), r"off by \+\d\.\d% of the gain, bar 3\.0%"),
    "unsure": (made({}, noise=10.0), r"standard error \d\.\d% of the gain, bar 1\.5%"),
    "not refused": (made({"far": 1.0}), "the wrong model 'far' is not refused"),
}


@pytest.mark.parametrize("name", MISSED)
def test_what_does_not_come_out_is_said(name: str) -> None:
    (prediction, lines), words = MISSED[name]
    verdict = judged(CELL, prediction, lines)
    assert verdict is not None and len(verdict.missed) == 1 and re.fullmatch(words, verdict.missed[0])


def test_other_worlds_have_no_bar_for_their_error() -> None:
    assert judged(CELL._replace(world="TrafficCorridor"), *MISSED["unsure"][0]).missed == []  # type: ignore[union-attr]


def test_an_episode_that_does_not_repeat_is_said() -> None:
    prediction, lines = made({})
    lines[7]["repeats"] = False
    verdict = judged(CELL, prediction, lines)
    assert verdict is not None and verdict.missed == ["1 of 96 episodes do not repeat from their records"]


@pytest.mark.parametrize(("discards", "void"), [(9, False), (10, True)])
def test_more_than_ten_percent_of_discards_make_a_cell_void(discards: int, void: bool) -> None:
    prediction, lines = made({"far": 6.0})
    again = [line(CELL, each["seed"], each["return"]) for each in lines[:discards]]
    for each in lines[:discards]:
        each.update({"discarded": True, "return": -1e6})
    verdict = judged(CELL, prediction, [*lines, *again])
    assert verdict is not None and (verdict.missed == [f"void: {discards} of 96 episodes were discarded"]) is void
    assert bool(verdict.real) is not void
    again[0]["discarded"] = True
    if not void:
        assert 0 not in judged(CELL, prediction, [*lines, *again]).real  # type: ignore[union-attr]


def test_a_cell_is_not_judged_before_all_its_episodes_are_run() -> None:
    prediction, lines = made({})
    assert judged(CELL, prediction, lines[:-1]) is None
    lines[3]["discarded"] = True
    assert judged(CELL, prediction, lines) is None
    tables = compare([CELL], {str(CELL): prediction}, lines)
    assert tables["missed"][1:] == [(str(CELL), "not run yet")] and "not run yet" in tables["cells"][1]
    assert compare([CELL], {}, [])["cells"][1][1] == "not run yet"


def policies(*lost: float, predicted_off: float = 0.0) -> tuple[list[Cell], dict[str, Any], list[Any]]:
    """Several policies over a network, which lose so much exactly; the first is predicted otherwise than it is."""
    cells = [CELL._replace(policy=f"policy {place}") for place in range(len(lost))]
    cases, predictions, lines = made({})[0]["synchronous"], {}, []
    for place, (cell, mean) in enumerate(zip(cells, lost, strict=True)):
        draws = stream(place, "policies").normal(0.0, 2.0, len(cases))
        real = np.subtract(cases, mean) + draws - draws.mean()
        right = real + (0.0 if place else predicted_off)
        predictions[str(cell)] = {**made({})[0], "right": right.tolist()}
        lines += [line(cell, seed, value) for seed, value in zip(SEEDS, real.tolist(), strict=True)]
    return cells, predictions, lines


def test_pairs_that_are_decided_must_have_the_right_sign() -> None:
    cells, predictions, lines = policies(10.0, 14.0, 14.05)
    tables = compare(cells, predictions, lines)
    assert [row[1:3] for row in tables["pairs"][1:]] == [("policy 0", "policy 1"), ("policy 0", "policy 2")]
    assert tables["missed"][1:] == [("none", "all came out")]
    tables = compare(*policies(10.0, 14.0, 14.05, predicted_off=-6.0))
    assert ("Spread; udp, 35 ms", "policy 0 beats policy 1, predicted otherwise") in tables["missed"]


def test_pairs_are_decided_for_all_of_a_network_together() -> None:
    """By Holm: the same difference is decided between two policies and not among many that are equal."""
    cells, predictions, lines = policies(10.0, 10.75, *[10.4] * 6)
    ours = {cell: [each for each in lines if each["cell"] == [*cell]] for cell in cells}
    verdicts = {cell.policy: judged(cell, predictions[str(cell)], ours[cell]) for cell in cells}
    two = {name: verdict for name, verdict in verdicts.items() if name in ("policy 0", "policy 1")}
    assert [row[1:3] for row in signs("here", two)] == [("policy 0", "policy 1")]  # type: ignore[arg-type]
    assert [row[1:3] for row in signs("here", verdicts)] == []  # type: ignore[arg-type]


def test_a_network_that_takes_nothing_does_not_count() -> None:
    tables = compare(*policies(0.5, 4.5, predicted_off=-6.0))
    assert ("Spread; udp, 35 ms", "no policy loses 10% of its gain: this network does not count") in tables["missed"]
    assert tables["pairs"][1:] == []


def test_the_page_has_the_tables_of_the_committed_results() -> None:
    study, page = reality.Study(), reality.PAGE.read_text("utf-8")
    tables = compare(reality.CELLS, study.predictions()["cells"], study.episodes())
    assert re.findall(r"^% reality (\w+)$", page, re.MULTILINE) == ["missed", "cells"]
    assert with_tables(page, tables) == page
    assert all(lines_of(table) in (study.out / "tables.md").read_text("utf-8") for table in tables.values())
    assert with_tables(page.replace("| --- |", "| 9.9 |", 1), tables) == page


# Steps


def network(agents: int = 3) -> Network:
    law = Law(messages=99, delays=(0.02, 0.13), loss=0.0, bursts=None, copies=0.0, overtakes=True)
    places = {f"agent_{place}": f"agent_{place}" for place in range(agents)}
    return Network(
        schema_version=1, places=places, links={}, pooled=(), directions={"up": law, "down": law}, thinking={}
    )


@pytest.fixture
def study(tmp_path: Path) -> reality.Study:
    """Predicted for two seeds, and committed in a repository of its own."""
    made = reality.Study(tmp_path, [CELL], quick=True)
    network().write(tmp_path / CELL.file)
    reality.predict_all(made)
    for words in (["init", "-q"], ["add", "."], ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "it"]):
        subprocess.run(["git", *words], cwd=tmp_path, check=True)
    return made


@pytest.fixture
def played(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Seeds that were played; an episode is no more than its line."""
    seeds: list[int] = []

    def attempt(cell: Cell, seed: int, play: Any, records: Path) -> dict[str, Any]:
        seeds.append(seed)
        return line(cell, seed, -20.0, discarded=seeds.count(seed) == 1 and seed == reality.FIRST)

    monkeypatch.setattr(reality, "attempt", attempt)
    monkeypatch.setattr(reality, "playing", lambda *_: subprocess.Popen(["true"]))
    return seeds


def test_what_is_predicted_is_what_predict_says_and_wrong_models_beside(study: reality.Study) -> None:
    made = study.predictions()["cells"][str(CELL)]
    env, chosen = reality.environment("Spread"), reality.built(CELL.policy, reality.environment("Spread"), 0)
    seeds = made["seeds"]
    returns = predict(env, {"it": chosen}, network(), seeds=seeds, causes=False)
    assert made["one"] == [*returns.returns["it"]["measured"]]
    assert made["synchronous"] == [*returns.returns["it"]["synchronous"]] and len(seeds) == 2
    assert made["gain"] == pytest.approx(np.subtract(made["synchronous"], returns.nothing).mean())
    assert [*made["wrong"]] == ["no network", "the mean delay", "half the delay"]
    for values, draws, options in (
        (made["right"], reality.DRAWS, {}),
        (made["wrong"]["half the delay"], reality.WRONG_DRAWS, {"scale": 0.5}),
    ):
        others = [network().delivery(env, seeds[1] + k * 10**9, **options) for k in range(1, 1 + draws)]
        episodes = [env.run_event_driven(chosen, seed=seeds[1], arrivals=each) for each in others]
        assert values[1] == pytest.approx(np.mean([each.returns["system_agent"] for each in episodes]), abs=1e-6)


def test_it_goes_on_where_it_was_stopped_and_runs_what_was_discarded_once_more_at_the_end(
    study: reality.Study, played: list[int], capsys: pytest.CaptureFixture[str]
) -> None:
    reality.run(study, minutes=0.0)
    assert len(played) == 1 and "time is up; 2 episodes are left" in capsys.readouterr().out
    journal = study.out / "episodes.jsonl"
    journal.write_bytes(journal.read_bytes() + b'{"half a li')
    reality.run(study, minutes=1.0)
    assert played == [reality.FIRST, reality.FIRST + 1, reality.FIRST]
    reality.run(study, minutes=1.0)
    assert len(played) == 3 and "nothing is left" in capsys.readouterr().out and len(study.episodes()) == 3


def test_every_cell_has_its_turn_in_each_block() -> None:
    cells = reality.CELLS[:4]
    turns = reality.turns({cell: [*range(12)] for cell in cells}, [])
    orders = [[cell for cell, _ in turns[first : first + 4]] for first in range(0, len(turns), 4)]
    assert len(orders) == reality.BLOCKS and all(sorted(order) == sorted(cells) for order in orders)
    assert len({tuple(order) for order in orders}) > 1
    for cell in cells:
        assert sorted(seed for each, seeds in turns if each == cell for seed in seeds) == [*range(12)]


def changed(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


def test_nothing_runs_before_predictions_are_committed(tmp_path: Path, played: list[int]) -> None:
    study = reality.Study(tmp_path, [CELL], quick=True)
    network().write(tmp_path / CELL.file)
    reality.predict_all(study)
    with pytest.raises(SystemExit, match="is not committed as it is"):
        reality.run(study, 1.0)
    assert played == []


def test_nothing_runs_that_is_not_predicted(study: reality.Study, played: list[int]) -> None:
    with pytest.raises(SystemExit, match="not predicted: Spread; udp, 35 ms; nearest landmark"):
        reality.run(reality.Study(study.out, reality.CELLS[:2]), 1.0)
    assert played == []


def test_changed_predictions_are_refused(study: reality.Study, played: list[int]) -> None:
    path, text = study.out / "predictions.json", (study.out / "predictions.json").read_text()
    changed(path, '"seeds":[7000000,', '"seeds":[7000005,')
    with pytest.raises(SystemExit, match="was changed by hand"):
        reality.run(study, 1.0)
    content = json.loads(path.read_text())
    content.pop("digest")
    path.write_text(json.dumps({**content, "digest": reality.digest(content)}))
    with pytest.raises(SystemExit, match="is not committed as it is"):
        reality.run(study, 1.0)
    path.write_text(text)
    changed(study.out / CELL.file, "0.13", "0.12")
    with pytest.raises(SystemExit, match="is another network than the one"):
        reality.run(study, 1.0)
    assert played == []


def test_episodes_of_other_predictions_are_refused_and_nothing_is_predicted_after_them(
    study: reality.Study, played: list[int]
) -> None:
    reality.run(study, 0.0)
    with pytest.raises(SystemExit, match="runs have begun"):
        reality.predict_all(reality.Study(study.out, reality.CELLS[:2], quick=True))
    changed(study.out / "episodes.jsonl", '"predictions":"', '"predictions":"0')
    with pytest.raises(SystemExit, match="under other predictions"):
        reality.run(study, 1.0)


def test_a_busy_machine_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(reality.os, "getloadavg", lambda: (500.0, 0.0, 0.0))
    for step in ("probe", "run"):
        monkeypatch.setattr(reality, step, lambda *_: pytest.fail("it began"))
        monkeypatch.setattr(sys, "argv", ["reality", step, "--out", str(tmp_path)])
        with pytest.raises(SystemExit, match=r"load average 500\.0: this machine is busy"):
            reality.main()


SMOKE = [cell for cell in reality.CELLS if cell.policy == "assigned landmark"]


@pytest.mark.e2e
@needs_broker
@pytest.mark.parametrize("cell", SMOKE, ids=str)
def test_an_episode_over_each_network(
    cell: Cell, tmp_path: Path, quick: Quick, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Measured, predicted, run for real, repeated from its record, and compared."""
    monkeypatch.setattr(reality, "WARM_STEPS", 2)
    study = reality.Study(tmp_path, [cell], quick=True)
    monkeypatch.setattr(reality.RealRun, "discarded", False)
    for step in (reality.probe, reality.predict_all):
        step(study)
    monkeypatch.setattr(reality, "require_committed", lambda path: None)
    reality.run(study, 0.0)
    (only,) = study.episodes()
    assert only["repeats"] and only["messages"][0] > 100 and only["late"]["max"] > 0.0
    assert "time is up; 1 episodes are left" in capsys.readouterr().out
    (record,) = (tmp_path / "records").iterdir()
    file = tmp_path / "arrivals.jsonl"
    file.write_bytes(gzip.decompress(record.read_bytes()))
    about, arrivals = read_record(file)
    assert about["policy"] == cell.policy and arrivals.seed == only["seed"] and arrivals.messages
