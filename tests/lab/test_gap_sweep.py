"""Sweeps: paired gaps, equal results whoever computes them and however often they are killed, honest words."""

import io
import json
import math
import os
import re
import signal
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path

import episodes
import numpy as np
import pytest
from lab.pushing import Push

from heron_env.errors import ConfigError, RunFolderError, UnknownEnvironment
from heron_env.lab import (
    IDEAL,
    SYNC,
    Baseline,
    Condition,
    Sweep,
    SweepResult,
    finding,
    one_at_a_time,
    read_sweep,
)
from heron_env.lab.benchmark import Case
from heron_env.lab.episodes import Outcome
from heron_env.lab.output import TextTable
from heron_env.lab.show.sweeps import gap_part
from heron_env.lab.sweep.conditions import coalitions
from heron_env.lab.sweep.play import Worlds, play_one
from heron_env.lab.sweep.presets import PRESETS, preset
from heron_env.lab.sweep.records import Key, Record, SweepJournal
from heron_env.lab.sweep.sentences import NEGLIGIBLE
from heron_env.lab.sweep.tables import cells, columns, to_json, to_markdown, to_rich

GRID = "heron/BatteryGrid-v0"
OPTIONS = {"max_steps": 20}
LATE = Condition(act_delay=2.0)
TABLES = ("table.json", "table.csv", "table.md")

STUDY = Path(__file__).parents[2] / "training" / "results" / "honest_gap"


@dataclass(frozen=True)
class BreaksAt:
    """Fails in one case, and only event-driven."""

    seed: int

    def build(self, env, seed):
        def decide(vector):
            if seed == self.seed and env._event_driven:
                raise ZeroDivisionError("no idea")
            return np.zeros(1)

        return {"*": decide}


@dataclass(frozen=True)
class Alternating:
    """Counts its calls across episodes, so that no two runs are alike: what a policy must not do."""

    def build(self, env, seed):
        return {"*": lambda vector: np.array([next(CALLS) % 7 / 7.0])}


CALLS = iter(range(10**9))


def sweep(policies=None, conditions=(IDEAL, LATE), **more) -> Sweep:
    asked = {"cases": 3, "options": OPTIONS, **more}
    return Sweep.of(GRID, policies or {"push": Push(1.0)}, conditions, **asked)


def texts(folder: Path) -> dict[str, str]:
    """The tables without their timing columns."""
    found = {name: (folder / name).read_text() for name in TABLES}
    found["table.json"] = re.sub(r'"seconds": [\d.]+', "", found["table.json"])
    found["table.csv"] = re.sub(r",[\d.]+\n", "\n", found["table.csv"])
    return found


def test_the_gap_is_paired_and_is_what_the_delay_costs():
    result = sweep().run(processes=1)
    late = result.point("push", LATE)
    assert late.gap.value == pytest.approx(2 * 0.01 * (1 + 2 * 19))  # two batteries, one and then two effects behind
    sync = result.point("push").values
    assert late.gaps == tuple(a - b for a, b in zip(sync, late.values, strict=True))
    assert late.worse.value == 1.0
    assert result.point("push", IDEAL).identical is True and late.identical is None
    nothing = np.mean(result.point("do nothing").values)
    assert late.lost.value == pytest.approx(late.gap.value / (np.mean(sync) - nothing))


def test_do_nothing_runs_on_the_synchronous_clock_alone_unless_asked_for():
    assert [p.condition for p in sweep().run(processes=1).of("do nothing")] == [SYNC]
    result = sweep({"do nothing": "do nothing"}).run(processes=1)
    assert [p.condition for p in result.of("do nothing")] == [SYNC, IDEAL, LATE]
    assert math.isnan(result.point("do nothing", LATE).lost.value)


def test_sync_only_policies_have_one_point():
    asked = sweep({"push": Push(1.0), "random": "random"}, sync_only=["random"])
    assert asked.sync_only == ("random", "do nothing")
    result = asked.run(processes=1)
    assert [p.condition for p in result.of("random")] == [SYNC]
    assert [p.condition for p in result.of("push")] == [SYNC, IDEAL, LATE]
    assert result.policies == ["push"]


CHILD = """
import os, signal, sys
from heron_env.lab.sweep.conditions import Condition
from heron_env.lab.sweep.sweep import Sweep

folder, processes, last = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
conditions = [Condition(act_delay=2.0, loss=0.2), Condition(msg_delay=0.5, jitter=0.3)]
sweep = Sweep.of("heron/BatteryGrid-v0", {"random": "random"}, conditions, cases=4, options={"max_steps": 20})

def die(progress):
    if progress.done == last:
        print(progress.done, flush=True)
        os.kill(os.getpid(), signal.SIGKILL)

sweep.run(folder, processes=processes, progress=die)
"""


def killed(folder: Path, *, processes: int, after: int) -> None:
    """Run the sweep in a process that is killed once so many episodes are done; its workers end with it."""
    command = [sys.executable, "-c", CHILD, str(folder), str(processes), str(after)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, stdin=subprocess.DEVNULL)
    assert (done.returncode, done.stdout.split()) == (-signal.SIGKILL, [str(after)]), done.stderr


def same_as_child() -> Sweep:
    conditions = [Condition(act_delay=2.0, loss=0.2), Condition(msg_delay=0.5, jitter=0.3)]
    return Sweep.of(GRID, {"random": "random"}, conditions, cases=4, options={"max_steps": 20})


@pytest.mark.e2e
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="this system has no SIGKILL")
def test_killed_again_and_again_the_result_is_that_of_an_uninterrupted_run(tmp_path: Path):
    once, often = tmp_path / "once", tmp_path / "often"
    total = len(same_as_child().items())
    assert total == 4 * (2 * 1 + 1 + 1)  # two conditions and sync, and do nothing on sync
    killed(often, processes=1, after=1)
    with (often / "results.jsonl").open("a") as stream:
        stream.write('{"policy": "random", "case": 2, "con')  # as a kill in the middle of writing leaves it
    killed(often, processes=2, after=7)
    assert len((often / "results.jsonl").read_text().splitlines()) == 7
    told = []
    same_as_child().run(often, processes=1, progress=told.append)
    assert [p.done for p in told] == list(range(7, total + 1))  # nothing again, nothing left out
    assert told[-1].seconds_left == 0.0
    same_as_child().run(once, processes=1)
    assert texts(often) == texts(once)
    keys = [tuple(json.loads(line)[k] for k in ("policy", "case", "condition")) for line in lines(often)]
    assert len(keys) == len(set(keys)) == total


def lines(folder: Path) -> list[str]:
    return (folder / "results.jsonl").read_text().splitlines()


def test_a_finished_sweep_runs_nothing_again(tmp_path: Path):
    sweep().run(tmp_path, processes=1)
    before, told = texts(tmp_path), []
    sweep().run(tmp_path, processes=1, progress=told.append)
    assert [(p.done, p.total, p.seconds_left) for p in told] == [(12, 12, 0.0)]
    assert texts(tmp_path) == before


def test_a_finished_sweep_can_be_read_and_an_unfinished_one_is_refused(tmp_path: Path):
    made = sweep({"push": Push(1.0), "random": "random"}).run(tmp_path, processes=1)
    read = read_sweep(tmp_path)
    assert repr(read.points) == repr(made.points)  # nan does not equal itself
    assert (read.sweep.conditions, read.sweep.policies["random"]) == (made.sweep.conditions, Baseline("random"))
    with pytest.raises(ConfigError, match=r"Push\(size=1.0\) lives in the program"):
        read.sweep.policies["push"].build(None, 0)
    whole = (tmp_path / "results.jsonl").read_text()
    (tmp_path / "results.jsonl").write_text(whole[:-9])
    with pytest.raises(RunFolderError, match="20 of 21 episodes are done; finish it"):
        read_sweep(tmp_path)
    assert (tmp_path / "results.jsonl").read_text() == whole[:-9]  # who only reads changes nothing
    settings = (tmp_path / "sweep.json").read_text()
    (tmp_path / "sweep.json").write_text(settings.replace('"seed"', '"sed"'))
    with pytest.raises(RunFolderError, match=r"sweep\.json is damaged: .*; run the sweep again"):
        read_sweep(tmp_path)
    (tmp_path / "sweep.json").write_text(settings.replace('"schema": 1', '"schema": 9'))
    with pytest.raises(RunFolderError, match="has schema 9, this heron_env reads 1"):
        read_sweep(tmp_path)
    with pytest.raises(RunFolderError, match=r"no folder of a sweep \(No such file or directory\)"):
        read_sweep(tmp_path / "nowhere")
    for damaged, why in ((b"null", "it has no 'schema'"), (b"\xff" * 9999, "'utf-8' codec can't decode byte 0xff")):
        (tmp_path / "sweep.json").write_bytes(damaged)
        with pytest.raises(RunFolderError, match=rf"no folder of a sweep \({why}") as caught:
            read_sweep(tmp_path)
        assert len(str(caught.value)) < 500


def test_what_was_measured_again_takes_the_place_of_what_was(tmp_path: Path):
    first = sweep({"push": Push(1.0), "random": "random"}).run(tmp_path / "first", processes=1)
    new = sweep({"push": Push(0.5)}).run(tmp_path / "later", processes=1)
    both = read_sweep(tmp_path / "first", tmp_path / "later")
    for condition in first.sweep.conditions:
        assert both.point("push", condition).values == new.point("push", condition).values
        assert both.point("random", condition).values == first.point("random", condition).values
    assert first.point("push").values != new.point("push").values
    assert both.policies == first.policies and both.sweep.identities["push"] == new.sweep.identities["push"]
    for what, other in (
        ("other cases", sweep(cases=2)), ("other conditions", sweep(conditions=[IDEAL])),
        (r"has the policies \['pull'\]", sweep({"pull": Push(-1.0)})),
    ):  # fmt: skip
        other.run(tmp_path / what, processes=1)
        with pytest.raises(RunFolderError, match=what):
            read_sweep(tmp_path / "first", tmp_path / what)


def test_a_sweep_of_a_removed_environment_says_why(tmp_path: Path):
    sweep().run(tmp_path, processes=1)
    settings = json.loads((tmp_path / "sweep.json").read_text())
    (tmp_path / "sweep.json").write_text(json.dumps({**settings, "env": "heron/EnergyManagement-v0"}))
    with pytest.raises(UnknownEnvironment, match="Its meters showed the coming minute"):
        read_sweep(tmp_path)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"options": {"max_steps": 21}}, r"options.max_steps: 20 there, 21 asked"),
        ({"cases": 4}, r"cases: 3 there, 4 asked"),
        ({"cases": [Case(1), Case(2), Case(3)]}, r"cases\[0\].seed: 1000000 there, 1 asked"),
        ({"conditions": [IDEAL, Condition(act_delay=3.0)]}, r"conditions\[2\].name: \"act_delay=2\" there"),
        ({"policies": {"push": Push(0.5)}}, r"policies.push: .*Push\(size=1.0\).* there, .*Push\(size=0.5\)"),
    ],
)
def test_other_settings_in_the_same_folder_are_refused(tmp_path: Path, changed, message: str):
    sweep().run(tmp_path, processes=1)
    before = lines(tmp_path)
    with pytest.raises(ConfigError, match=rf"sweep.json holds a sweep with other settings \({message}"):
        sweep(**changed).run(tmp_path, processes=1)
    assert lines(tmp_path) == before


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{}", r"results.jsonl:13: no line of a sweep \(policy: Field required"),
        ("no json", r"results.jsonl:13: no line of a sweep \(Expecting value"),
        ("again", r"results.jsonl:13: .* is there twice; remove the line"),
        (
            "foreign",
            r"results.jsonl:13: the episode of policy .*, case \d+, .* is not part of this sweep; remove the line",
        ),
    ],
)
def test_a_line_that_does_not_belong_there_is_named(tmp_path: Path, line: str, message: str):
    sweep().run(tmp_path, processes=1)
    first = lines(tmp_path)[0]
    added = {"again": first, "foreign": first.replace('"case": 0', '"case": 9')}.get(line, line)
    with (tmp_path / "results.jsonl").open("a") as stream:
        stream.write(f"{added}\n")
    with pytest.raises(RunFolderError, match=message):
        sweep().run(tmp_path, processes=1)


@pytest.mark.skipif(os.name != "posix", reason="the lock is POSIX's")
def test_two_sweeps_do_not_write_into_one_folder(tmp_path: Path):
    asked = sweep()
    keys = [item.key for item in asked.items()]
    with (
        SweepJournal(tmp_path, asked.settings(), keys),
        pytest.raises(ConfigError, match="another sweep is writing here"),
    ):
        asked.run(tmp_path, processes=1)
    asked.run(tmp_path, processes=1)


@pytest.mark.parametrize("processes", [1, 2])
def test_a_failing_episode_names_its_item_and_the_others_are_kept(tmp_path: Path, processes: int):
    asked = sweep({"breaks": BreaksAt(1_000_001)}, conditions=[LATE])
    with pytest.raises(ZeroDivisionError, match="no idea") as caught:
        asked.run(tmp_path, processes=processes)
    note = "while running policy 'breaks' in heron/BatteryGrid-v0, case 1 (seed 1000001), condition act_delay=2"
    assert note in caught.value.__notes__
    kept = [json.loads(line) for line in lines(tmp_path)]
    failed = {"policy": "breaks", "case": 1, "condition": "act_delay=2"}
    assert len(kept) >= 3 and not any(failed.items() <= record.items() for record in kept)


def test_a_return_that_is_no_number_is_refused(tmp_path: Path, monkeypatch):
    monkeypatch.setattr("heron_env.lab.episodes.team_return", lambda env, result: math.nan)
    with pytest.raises(ConfigError, match="the team's return is nan") as caught:
        sweep().run(processes=1)
    assert any("policy 'push'" in note for note in caught.value.__notes__)


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"policies": {"randon": "randon"}}, r"policy 'randon': neither a run folder nor a baseline.*'random'"),
        ({"env_id": "heron/BatteryGrit-v0"}, "Did you mean 'heron/BatteryGrid-v0'"),
        ({"sync_only": ["nobody"]}, r"sync_only=\['nobody'\]: must be some of the policies \['push'\]"),
        ({"sync_only": ["push"]}, "and leave one at least"),
        ({"policies": {}}, "one policy at least"),
        ({"conditions": [3]}, r"Sweep\.of\(conditions\): 3: must be a Condition"),
        ({"cases": []}, "one Case at least"),
        ({"cases": [3]}, r"Sweep\.of\(cases\): 3: must be a Case"),
    ],
)
def test_what_can_not_be_run_is_refused_before_anything_runs(asked, words: str):
    given = {"env_id": GRID, "policies": {"push": Push(1.0)}, "conditions": [LATE], "cases": 3, **asked}
    with pytest.raises((ConfigError, UnknownEnvironment), match=words):
        Sweep.of(**given, options=OPTIONS)


def test_the_parts_of_a_measured_gap_add_up_in_every_case():
    whole = Condition(act_delay=1.5, loss=0.3, tick_ratio=3)
    result = sweep({"random": "random"}, coalitions(whole)).run(processes=1)
    gap = np.array(result.point("random", whole).gaps)
    assert [d.method for d in result.decompositions] == ["one at a time", "shapley"]
    for found in result.decompositions:
        assert np.abs(np.sum([p.by_case for p in found.parts], axis=0) - gap).max() <= 1e-9
        assert abs(sum(p.mean.value for p in found.parts) - result.point("random", whole).gap.value) <= 1e-9
    assert [p.cause for p in result.decompositions[1].parts] == ["act_delay", "loss", "tick_ratio"]
    assert "| action delay |" in to_markdown(result)


def test_without_all_subsets_there_is_a_waterfall_only():
    whole = Condition(act_delay=1.5, loss=0.3, tick_ratio=3)
    result = sweep({"random": "random"}, one_at_a_time(whole), cases=1).run(processes=1)
    assert [d.method for d in result.decompositions] == ["one at a time"]
    assert sweep(conditions=[LATE], cases=1).run(processes=1).decompositions == ()


def test_a_step_between_two_conditions_is_paired_and_is_a_share_of_the_gain():
    more = Condition(act_delay=3.0)
    result = sweep(conditions=[LATE, more]).run(processes=1)
    step = result.step("push", LATE, more)
    late, later = (np.array(result.point("push", c).gaps) for c in (LATE, more))
    assert step == result.intervals.mean(
        np.array(result.point("push", LATE).values) - result.point("push", more).values
    )
    assert step.value == pytest.approx(np.mean(later - late)) and step.low <= step.value <= step.high
    gain = np.array(result.point("push").values) - result.point("do nothing").values
    assert result.lost_step("push", LATE, more).value == pytest.approx(np.mean(later - late) / gain.mean())
    assert result.lost_step("push", SYNC, LATE).value == pytest.approx(result.point("push", LATE).lost.value)


def test_gains_and_trifles_are_not_called_costly():
    idle = " ".join(finding(sweep({"idle": Push(0.0)}, [LATE], preset="scada").run(processes=1)))
    assert "No gap: the one condition of this preset 'scada' does not change the return of 'idle'" in idle
    gain = " ".join(finding(sweep({"drain": Push(-1.0)}, [LATE]).run(processes=1)))
    assert "The one condition of this sweep raises the return of 'drain': action delay 2 s" in gain
    trifle = sweep({"push": Push(1.0)}, [Condition(act_delay=1.0)], cases=2, options={"max_steps": 300}).run(
        processes=1
    )
    point = trifle.point("push", Condition(act_delay=1.0))
    assert point.gap.excludes_zero and 0.0 < point.lost.value < NEGLIGIBLE
    assert "by 2 % of its gain or more" in " ".join(finding(trifle))


def test_the_identity_flag_is_computed_not_promised():
    result = sweep({"alternating": Alternating()}, [IDEAL], cases=2).run(processes=1)
    assert result.point("alternating", IDEAL).identical is False
    assert "runs of 'alternating' differ from the synchronous runs: parity is broken" in " ".join(finding(result))
    true = sweep({"random": "random"}, [IDEAL], cases=2).run(processes=1)
    assert true.point("random", IDEAL).values == true.point("random").values
    assert "every run equals the synchronous run bit for bit" in " ".join(finding(true))
    assert cells(true.point("random", IDEAL))["equal"] == "exactly"


def test_policies_are_compared_on_the_synchronous_clock_in_pairs():
    policies = {"push": Push(1.0), "calm": Push(0.5), "random": "random"}
    result = sweep(policies, sync_only=["random"]).run(processes=1)
    words, more = " ".join(finding(result)), np.array(result.point("push").values) - result.point("calm").values
    assert f"Mean difference to 'calm': {result.intervals.mean(more)}; " in words
    assert words.count("to 'do nothing'") == words.count("to 'random'") == 1
    assert "to 'push'" not in words


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        ((9.0, 10.0, 11.0), (-9.0, -10.0, -11.0), "the order is reversed"),
        ((9.0, 10.0, 11.0), (-9.0, 0.5, -11.0), None),
        ((9.0, 10.0, 11.0), (0.9, 1.0, 1.1), None),
        ((9.0, 10.0, -21.0), (-9.0, -10.0, -11.0), "there is an order, which was not detected synchronously"),
        ((9.0, -10.0, 3.0), (9.0, 10.0, 11.0), "there is an order, which was not detected synchronously"),
        ((9.0, -10.0, 3.0), (9.0, -10.0, 3.0), None),
    ],
)
def test_an_order_is_told_where_the_cases_can_tell_it(before, after, told):
    asked = sweep({"quick": Push(1.0), "calm": Push(0.5)}, [LATE])
    records = {item.key: play_one(item, Worlds()) for item in asked.items()}
    for condition, ahead in ((SYNC, before), (LATE, after)):
        for case, more in enumerate(ahead):
            value = -100.0 * (condition == LATE)  # so much that it costs most
            for name, of_it in (("calm", value), ("quick", value + more)):
                key = Key(name, case, condition.name)
                records[key] = replace(records[key], outcome=replace(records[key].outcome, value=of_it))
    words = [line for line in finding(SweepResult(asked, records)) if "order" in line]
    assert len(words) == (told is not None)
    if told:
        assert words[0].startswith(f"Under action delay 2 s {told}: the difference of 'quick' to 'calm' is ")


def test_the_score_is_the_share_of_what_foresight_would_gain_over_the_cases_where_that_is_known(tmp_path: Path):
    cases = [Case(0, optimum=30.0), Case(1, optimum=50.0), Case(2)]
    asked = sweep(cases=cases)
    assert list(asked.cases) == cases
    result = asked.run(tmp_path, processes=1)
    sync = result.point("push")
    assert result.point("do nothing").score == 0.0
    assert sync.score == pytest.approx((sum(sync.values[:2]) - 40.0) / 40.0)
    assert f"{100 * sync.score:.0f} % of what perfect foresight would gain" in " ".join(finding(result))
    assert f"| {100 * sync.score:.0f} % |" in to_markdown(result)
    assert "if that is known (for 2 of 3 cases)" in to_markdown(result)
    kept = next(row for row in json.loads((tmp_path / "table.json").read_text())["rows"] if row["policy"] == "push")
    assert kept["score"] == sync.score


def test_without_optima_there_is_no_score_and_no_column_of_them(tmp_path: Path):
    result = sweep(cases=1).run(tmp_path, processes=1)
    assert math.isnan(result.point("push").score)
    assert columns(result) == ["return", "gap", "worse", "equal"]  # of one case no share of a gain is said
    assert "optimum" not in to_markdown(result) and "Returns by group" not in to_markdown(result)
    assert json.loads((tmp_path / "table.json").read_text())["rows"][0]["score"] is None


def shown_text(result: SweepResult) -> str:
    from rich.console import Console

    console = Console(width=80, record=True, file=io.StringIO())
    console.print(to_rich(result))
    return console.export_text()


def test_a_terminal_of_80_columns_shows_every_figure():
    cases = [Case(seed, optimum=30.0) for seed in range(3)]
    late = Condition(obs_delay=0.05, msg_delay=0.25, act_delay=1.5, loss=0.05, noise=0.1)
    result = sweep({"random": "random"}, [IDEAL, late], cases=cases).run(processes=1)
    told = shown_text(result)
    assert max(map(len, told.splitlines())) <= 80
    for point in result.points:
        for name, text in cells(point).items():
            assert (f"{point.mean.value:.2f}" if name == "return" else text.split(" [")[0]) in told


def test_the_json_table_repeats_the_settings_and_is_strict(tmp_path: Path):
    sweep(cases=1).run(tmp_path, processes=1)
    table = json.loads((tmp_path / "table.json").read_text(), parse_constant=lambda c: pytest.fail(c))
    assert json.loads((tmp_path / "sweep.json").read_text()).items() <= table.items()
    row = next(r for r in table["rows"] if r["condition"] == "act_delay=2")
    assert row["causes"] == {"act_delay": 2.0} and row["n"] == len(row["values"]) == len(row["gaps"]) == 1
    assert row["gap"]["low"] is None  # one case has no interval


def test_presets_are_what_their_names_promise():
    assert set(PRESETS) == {"quick", "delays", "reference", "scada", "decomposition", "bursts", "faults"}
    names = {c.name for c in preset("reference").conditions(60.0)}
    for x in (6, 15, 30, 60):
        assert f"act_delay={x}" in names
        assert all(f"act_delay={x} jitter={j}" in names for j in (0.05, 0.1, 0.2, 0.3))
    for x in (3, 6, 30, 60):
        assert all(f"msg_delay={x} tick_ratio={r}" in names for r in (4, 16, 48))
    assert len(names) == 1 + 4 + 4 + 4 + 3 + 16 + 12
    assert len(preset("decomposition").conditions(60.0)) == 2**6 - 1  # jitter alone has no delay to scale
    (scada,) = [c for c in preset("scada").conditions(1.0) if len(c.causes) == 4]
    assert scada.to_dict()["tick_ratio"] == {"field": 1.0, "coordinator": 60.0, "system": 300.0}
    with pytest.raises(ConfigError, match="Did you mean 'quick'"):
        preset("quik")


@pytest.mark.parametrize("name", episodes.names(STUDY))
def test_committed_tables_are_what_the_committed_episodes_say(name: str):
    result = episodes.read(STUDY, name, again=False)
    assert to_markdown(result) == (STUDY / name / episodes.TABLE).read_text(encoding="utf-8")
    for found in result.decompositions:
        assert np.abs(np.sum([p.by_case for p in found.parts], axis=0) - found.gap.by_case).max() <= 1e-9


def test_a_sweep_that_a_study_keeps_is_read_as_it_was(tmp_path: Path):
    ran = sweep(conditions=[LATE]).run(tmp_path / "work", processes=1)
    for name in ("one", "two", "one"):  # keeping it once more adds nothing
        episodes.keep(tmp_path / "study", {name: tmp_path / "work"})
    assert episodes.names(tmp_path / "study") == ["one", "two"]
    for name in ("one", "two"):
        kept = episodes.read(tmp_path / "study", name)
        assert kept.sweep.cases == ran.sweep.cases and to_markdown(kept) == to_markdown(ran)
        for policy in ran.policies:
            for condition in (SYNC, LATE):
                one, other = kept.point(policy, condition), ran.point(policy, condition)
                assert (one.values, one.identical, one.notes) == (other.values, other.identical, other.notes)


# What a return is


SLACK, FIRM = Condition(act_delay=1.0), Condition(act_delay=2.0)


def earned(values: dict[Condition, list[float]]) -> SweepResult:
    """A result in which the policy earned so much in each case; nothing is run."""
    asked = sweep(conditions=[c for c in values if c != SYNC], cases=len(values[SYNC]))
    records = {
        item.key: Record(
            item.key, Outcome(values.get(item.condition, values[SYNC])[item.number], "", {}, 0.0, 0.0, []), 0.0
        )
        for item in asked.items()
    }  # fmt: skip
    return SweepResult(asked, records)


def test_the_returns_of_a_table_differ_by_its_gaps():
    """One estimator: of skewed returns, of which interquartile means say something else."""
    sync, late = [1.0, 2.0, 3.0, 40.0, 50.0], [0.0, 2.0, 3.0, 45.0, 10.0]
    result = earned({SYNC: sync, SLACK: late})
    shown = {point.condition: cells(point) for point in result.of("push")}
    before, after, gap = (
        float(text.split(" [")[0]) for text in (shown[SYNC]["return"], shown[SLACK]["return"], shown[SLACK]["gap"])
    )
    assert (before, after, gap) == (19.2, 12.0, 7.2)
    assert result.point("push", SLACK).iqm.value != 12.0
    assert finding(result)[0].startswith("On 5 held-out cases 'push' earns 19.20 [")


def test_ties_are_told_apart_from_what_is_worse():
    sync = [1.0, 2.0, 3.0, 4.0, 5.0]
    result = earned({SYNC: sync, SLACK: [0.0, 1.0, 3.0, 5.0, 6.0], FIRM: sync})
    some, same = (cells(result.point("push", condition)) for condition in (SLACK, FIRM))
    assert (some["worse"], some["equal"]) == ("40 %", "20 %")
    assert (same["worse"], same["equal"]) == ("0 %", "100 %")
    row = next(row for row in json.loads(to_json(result))["rows"] if row["condition"] == SLACK.name)
    assert (row["worse"]["value"], row["equal"]["value"]) == (0.4, 0.2)


@pytest.fixture(scope="module")
def dropped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A sweep of a world whose coordinators count nothing of what their drones earn."""
    folder = tmp_path_factory.mktemp("dropped")
    asked = Sweep.of("lab.dropping:drones", {"push": Push(1.0)}, [Condition(act_delay=1.0)], cases=2)
    asked.run(folder, processes=1)
    return folder


def test_every_table_says_whose_return_it_has_and_what_each_group_earned_beside_it(dropped: Path):
    result = read_sweep(dropped)
    assert result.point("push").by_group == {"wing": 0.0, "drone": 60.0, "mast": 6.0}
    for text in (to_markdown(result), result._repr_html_(), shown_text(result), " ".join(to_html(result))):
        assert "return of tower" in text
    for text in (to_markdown(result), shown_text(result), " ".join(to_html(result))):
        assert all(words in text for words in ("Returns by group", "drone", "60.00", "mast", "6.00"))
    assert "'push' earns -3.00" in finding(result)[0] and "(return of tower" in finding(result)[0]
    assert json.loads(to_json(result))["rows"][0]["by_group"]["drone"] == 60.0


def test_a_sweep_of_version_0_1_is_read_and_says_what_it_did_not_keep(dropped: Path, tmp_path: Path):
    settings = json.loads((dropped / "sweep.json").read_text())
    del settings["return_of"]
    (tmp_path / "sweep.json").write_text(json.dumps(settings))
    lines = [json.loads(line) for line in (dropped / "results.jsonl").read_text().splitlines()]
    assert all(line.pop("by_group") for line in lines)
    (tmp_path / "results.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    result = read_sweep(tmp_path)
    assert result.point("push").mean == read_sweep(dropped).point("push").mean
    assert "return of the team: mean over the cases" in to_markdown(result)
    assert "as version 0.1.0 counted it" in to_markdown(result) and "Returns by group" not in to_markdown(result)
    assert "earns -3.00" in finding(result)[0] and "(return of the team" in finding(result)[0]


def to_html(result: SweepResult) -> list[str]:
    """The texts of a report's tables."""
    grids = [block for block in gap_part(result).blocks if isinstance(block, TextTable)]
    return [text for grid in grids for text in (grid.caption, *grid.head, *(cell for row in grid.rows for cell in row))]
