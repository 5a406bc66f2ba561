"""How much of a fault a policy tolerates: the paired means of a sweep, what is told of them, and `heron margin`."""

import json
import math
from dataclasses import replace
from pathlib import Path

import margins
import numpy as np
import pytest
from cli_kit import as_json, heron

from heron_env.errors import ConfigError, RunFolderError, ScheduleError
from heron_env.lab import SYNC, Condition, Margin, Sources, Sweep, along, crossing, margin, read_margin, report_of
from heron_env.lab.benchmark import NOTHING, Case
from heron_env.lab.crossing import Probe
from heron_env.lab.output import Tile
from heron_env.lab.show.report import read_sources
from heron_env.lab.show.tolerance import margin_figure, margin_tile

pytestmark = pytest.mark.e2e

SPREAD, RULE = "heron/Spread-v0", "assigned landmark"
SHORT, LONG = {"max_steps": 10}, {"max_steps": 30}


@pytest.fixture(scope="module")
def loss() -> Margin:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(crossing, "LOOKS", (6, 12))
        return margin(SPREAD, RULE, fault="loss", cases=12, options=LONG)


def test_the_means_are_those_of_a_sweep_paired_by_case(loss: Margin):
    levels = [probe.level for probe in loss.probes]
    result = Sweep.of(SPREAD, {RULE: RULE}, along(loss=levels), cases=12, options=LONG).run(processes=1)
    nothing, without = result.table(NOTHING, SYNC)[0], result.table(RULE, Condition())[0]
    for probe in loss.probes:
        kept = (result.table(RULE, Condition(loss=probe.level))[0] - nothing) - 0.95 * (without - nothing)
        assert probe.mean == pytest.approx(kept[: probe.cases].mean(), rel=1e-12)
    assert loss.gain == pytest.approx((without - nothing)[: loss.probes[0].cases].mean())
    assert {probe.cases for probe in loss.probes} == {6, 12}


def test_the_answer_is_an_interval_around_an_estimate(loss: Margin):
    assert 0.0 < loss.low < loss.estimate < loss.high < 0.8
    assert loss.above_again == ()
    assert str(loss).startswith(f"'{RULE}' keeps 95 % of its gain up to loss {loss.estimate:.2f} [{loss.low:g}, ")


def test_workers_change_no_number():
    one, two = (margin(SPREAD, "random", cases=4, options=SHORT, processes=count) for count in (1, 2))
    assert one == two


def test_amounts_are_whole_substeps_of_physics():
    found = margin(SPREAD, RULE, keep=0.5, cases=12, options=LONG)
    assert (found.step, found.low, found.high) == (0.1, 0.1, 0.4)
    assert all(probe.level / 0.1 == pytest.approx(round(probe.level / 0.1)) for probe in found.probes)


def test_repeats_of_a_case_are_averaged_into_one():
    cases = [Case(seed, {"max_steps": steps}) for steps in (8, 9, 10) for seed in (1, 2)]
    found = margin(SPREAD, RULE, fault="loss", cases=cases)
    result = Sweep.of(SPREAD, {RULE: RULE}, [Condition()], cases=cases).run(processes=1)
    gains = (result.table(RULE, Condition()) - result.table(NOTHING, SYNC))[0].reshape(3, 2).mean(axis=1)
    assert (found.cases, found.probes[0].cases) == (3, 3)
    assert found.gain == pytest.approx(gains.mean())
    assert found.probes[0].half / gains.std(ddof=1) == pytest.approx(0.05 * t(3, looks=1) / math.sqrt(3))


def t(cases: int, looks: int) -> float:
    from scipy import stats

    return float(stats.t.ppf(1.0 - 0.05 / (13 * looks), cases - 1))


def test_a_pool_is_judged_by_its_mean():
    pool = margin(SPREAD, [RULE, "random"], name="both", cases=4, options=SHORT)
    result = Sweep.of(SPREAD, {RULE: RULE, "random": "random"}, [Condition()], cases=4, options=SHORT).run(processes=1)
    earned = np.mean([result.table(name, Condition()) for name in (RULE, "random")])
    assert pool.policy == "both"
    assert pool.gain == pytest.approx(earned - result.table(NOTHING, SYNC).mean())


def test_jitter_is_varied_beside_a_delay():
    found = margin(SPREAD, RULE, fault="jitter", under=Condition(obs_delay=0.1), largest=0.4, cases=8, options=SHORT)
    assert found.under == "obs_delay=0.1" and found.options == SHORT
    result = Sweep.of(SPREAD, {RULE: RULE}, [Condition(obs_delay=0.1)], cases=8, options=SHORT).run(processes=1)
    gain = result.table(RULE, Condition(obs_delay=0.1)) - result.table(NOTHING, SYNC)
    assert found.gain == pytest.approx(float(np.mean(gain)))


def test_a_policy_that_gains_nothing_has_none_to_keep():
    told = []
    found = margin(SPREAD, "random", cases=4, options=SHORT, progress=told.append)
    assert len(found.probes) == 1 and math.isnan(found.low)
    assert str(found) == (
        "It is not clear from these cases whether 'random' gains something or gains nothing over doing nothing: "
        f"without the fault it earns {abs(found.gain):.3g} "
        f"{'more' if found.gain > 0.0 else 'less'}, mean over 4 cases (sum of rewards, all agents)"
    )
    assert told == [
        "do nothing under synchronous clock: 4 episodes", "random under event-driven, ideal network: 4 episodes",
    ]  # fmt: skip


def made(*probes: tuple[float, int, float], keep: float = 0.95) -> Margin:
    return Margin(
        tuple(Probe(*each, 1.0) for each in probes), "heron/EnergyManagement-v1", {}, "rule", "act_delay", keep,
        "ideal", "EUR a day", 0.1, 64,
    )  # fmt: skip


def test_what_is_found_is_told_in_one_sentence():
    kept = (0.0, 32, 9.0), (2.4, 32, 4.0), (3.6, 64, 2.0)
    assert str(made(*kept, (4.9, 64, -3.2))) == (
        "'rule' keeps 95 % of its gain up to action delay 4.1 s [3.6, 4.9]; 3 amounts x 64 cases. A dip between two "
        "amounts, less than 2.4 s wide, may be missed"
    )
    assert str(made(*kept[::2], keep=0.9)) == (
        "'rule' keeps 90 % of its gain up to action delay 3.6 s at least; nothing up to 3.6 s is lost for sure; "
        "1 amount x 64 cases. A dip between two amounts, less than 3.6 s wide, may be missed"
    )
    assert "dip" not in str(made((0.0, 32, 9.0), (0.1, 32, 9.0), (0.2, 32, 9.0), (4.9, 32, -9.0)))
    assert margin_tile(made((0.0, 32, 9.0), (3.6, 64, 2.0))).value == "3.6 s or more"
    again = made(*kept, (4.9, 64, -3.2), (60.0, 32, 2.0))
    assert again.above_again == (60.0,) and str(again).endswith(". Not monotone: it is kept again at 60 s")


@pytest.mark.parametrize(
    ("mean", "half", "sentence"),
    [
        (-3.0, 1.0, "'rule' gains nothing over doing nothing: without the fault it earns 60 less, "),
        (0.0, 0.0, "'rule' gains nothing over doing nothing: without the fault it earns as much, "),
        (-0.5, 1.0, "It is not clear from these cases whether 'rule' gains something or gains nothing over doing "),
        (0.5, 1.0, "It is not clear from these cases whether 'rule' gains something or gains nothing over doing "),
    ],
)
def test_of_no_gain_no_share_is_kept(mean: float, half: float, sentence: str):
    found = replace(made((0.0, 32, 9.0)), probes=(Probe(0.0, 32, mean, half),))
    assert str(found).startswith(sentence) and "keeps" not in str(found)
    assert found.shares == [] and not found.gains
    assert margin_tile(found).value == "no gain"


def test_it_is_written_and_read_back(loss: Margin, tmp_path: Path):
    loss.write(tmp_path / "new")
    assert read_margin(tmp_path / "new") == loss
    written = json.loads((tmp_path / "new" / "margin.json").read_text())
    assert (written["low"], written["high"], written["text"]) == (loss.low, loss.high, str(loss))


@pytest.mark.parametrize(("text", "why"), [(None, "No such file"), ("{", "Expecting"), ('{"probes": 1}', "probes")])
def test_a_file_that_is_none_is_named(tmp_path: Path, text: str | None, why: str):
    if text is not None:
        (tmp_path / "margin.json").write_text(text)
    with pytest.raises(RunFolderError, match=rf"margin.json: no margin can be read there \(.*{why}.*heron margin`$"):
        read_margin(tmp_path)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"fault": "loss", "largest": 1.6}, "loss"),
        ({"fault": "los"}, "Did you mean 'loss'"),
        ({"fault": "rate"}, r"a rate falls from infinity.* sweep it, .*under=Condition\(rate=1000\)"),
        ({"keep": 1.0}, r"margin\(keep=1.0\): must be a share above 0 and below 1, as 0.95"),
        ({"largest": 0.01}, r"margin\(act_delay, largest=0.01\): must be a number of 0.1 at least, one step"),
        ({"cases": 1}, r"margin\(cases=1\): needs two cases or more, better 32; repeats count as one"),
        ({"policy": NOTHING}, "the gain is over doing nothing; name another policy"),
        ({"policy": "assigned landmarks"}, "Did you mean 'assigned landmark'"),
        (
            {"under": Condition(act_delay=1.0)},
            r"margin\(fault='act_delay', under='act_delay=1'\): the fault is varied; leave it out of `under`",
        ),
    ],
)
def test_what_is_wrong_is_said_before_anything_runs(wrong: dict[str, object], message: str):
    with pytest.raises((ConfigError, ScheduleError), match=message):
        margin(SPREAD, **{"policy": RULE, "options": SHORT, **wrong})


# In reports


def test_a_report_has_a_tile_a_figure_and_what_was_tried(loss: Margin, tmp_path: Path):
    pytest.importorskip("matplotlib")
    loss.write(tmp_path)
    report = report_of(read_sources([tmp_path]))
    assert report.verdict == [Tile("Tolerated loss", f"{loss.nearest:.3g}", str(loss))]
    assert report.finding == [f"{loss}."]
    picture, table = report.parts[0].blocks
    assert picture.name == "margin" and str(loss) in picture.caption
    assert [row[0] for row in table.rows] == [f"{probe.level:g}" for probe in loss.probes]
    assert [row[1] for row in table.rows] == [probe.verdict for probe in loss.probes]
    assert f"{table.rows[-1][0]}: {table.rows[-1][3]}, lost" in picture.alternative


def test_a_share_is_of_the_gain_without_the_fault(loss: Margin):
    assert loss.shares[0][0] == pytest.approx(1.0)
    for probe, (share, half) in zip(loss.probes, loss.shares, strict=True):
        assert (share - loss.keep) * loss.gain == pytest.approx(probe.mean)
        assert half * loss.gain == pytest.approx(probe.half)


def test_the_figure_has_every_amount_with_its_bound_and_the_interval_as_a_band(loss: Margin):
    pytest.importorskip("matplotlib")
    (axes,) = margin_figure(loss).axes
    bars = [container.lines[0].get_xydata()[0].tolist() for container in axes.containers]
    assert bars == [
        [pytest.approx(math.sqrt(probe.level)), pytest.approx(100.0 * share)]
        for probe, (share, _) in zip(loss.probes, loss.shares, strict=True)
    ]
    (band,) = axes.patches
    assert [band.get_x() ** 2, (band.get_x() + band.get_width()) ** 2] == pytest.approx([loss.low, loss.high])
    assert axes.get_xlabel() == "loss (square-root scale)"
    assert "orange: confirmed lost" in axes.get_title(loc="left")


def test_a_report_tells_of_a_sweep_and_of_margins(loss: Margin, tmp_path: Path):
    pytest.importorskip("matplotlib")
    sweep = Sweep.of(SPREAD, {RULE: RULE}, along(loss=(0.0, 0.1)), cases=2, options=SHORT).run(processes=1)
    none = replace(made((0.0, 32, 0.0)), env=SPREAD)  # as doing nothing itself
    report = report_of(Sources(sweeps=[sweep], margins=[loss, none]))
    assert [tile.label for tile in report.verdict][-2:] == ["Tolerated loss", "Tolerated action delay"]
    assert report.verdict[-1].value == "no gain"
    assert [part.title for part in report.parts if "Margin" in part.title] == ["Margin: loss", "Margin: action delay"]


def test_without_a_gain_there_is_nothing_to_draw():
    with pytest.raises(ConfigError, match=r"^plot\(\): It is not clear .* gains nothing .*; there is nothing to draw$"):
        margin_figure(made((0.0, 32, 0.0)))


def test_the_study_of_the_card_leaves_margins_and_figures_and_makes_none_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    pytest.importorskip("matplotlib")
    monkeypatch.setattr(margins.honest_gap, "ENV", SPREAD)
    monkeypatch.setattr(margins.honest_gap, "STRONGEST", RULE)
    monkeypatch.setattr(margins, "LARGEST", 0.4)
    margins.measured(["rule"], tmp_path, days=8)
    files = {str(path.relative_to(tmp_path)): path.read_bytes() for path in tmp_path.glob("*/*")}
    assert {*files} == {f"rule-{fault}/margin.{end}" for fault in margins.FAULTS for end in ("json", "svg")}
    late = read_margin(tmp_path / "rule-act_delay")
    assert (late.policy, late.fault, late.cases, late.probes[-1].level) == ("rule", "act_delay", 8, 0.4)
    monkeypatch.setattr(margins, "margin", None)
    margins.measured(["rule"], tmp_path, days=8)


# heron margin


def test_a_share_is_read_as_percent_or_number_and_what_else_is_wrong():
    words = [SPREAD, RULE, "--fault", "jitter", "--cases", 4, "-o", "max_steps=10", "--under", "obs_delay=0.1"]
    found = [as_json("margin", *words, "--keep", keep, code=None) for keep in ("80%", "0.8", "80 %")]
    assert [(each["keep"], each["under"]) for each in found] == [(0.8, "obs_delay=0.1")] * 3


def test_the_command_tells_it_writes_it_and_ends_with_1_where_there_is_nothing_to_keep(tmp_path: Path):
    words = [SPREAD, RULE, "--fault", "loss", "--cases", 8, "--out", tmp_path, "--largest", 0.02, "-o", "max_steps=30"]
    told = heron("margin", *words)
    found = read_margin(tmp_path)
    assert told.stdout == f"{found}\n"
    assert f"{RULE} under loss 0.02: 8 episodes" in told.stderr
    printed = as_json("margin", *words)
    assert (printed["policy"], printed["low"], printed["high"]) == (RULE, 0.02, None)  # JSON knows no infinity
    heron("margin", SPREAD, "random", "--cases", 4, "-o", "max_steps=10", code=1)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--keep", "95"], "--keep '95': must be a share above 0 and below 1, as 95% or 0.95"),
        (["--keep", "95%x"], "--keep '95%x': must be"),
        (["--keep", "most"], "--keep 'most': must be"),
        (["--under", "loss"], "--under 'loss': must read cause=amount"),
        (["--under", "loss=0,0.1"], "name each cause once, with one amount"),
        (["--fault", "act_dely"], "Did you mean 'act_delay'"),
        (["--cases", "5", "--split", "tests"], "Did you mean 'test'"),
    ],
)
def test_wrong_words_are_one_line(words: list[str], message: str):
    assert message in heron("margin", SPREAD, RULE, *words, code=2).stderr


def test_no_amount_is_larger_than_the_largest():
    found = margin(SPREAD, RULE, fault="act_delay", largest=0.37, cases=4, options=SHORT)
    assert max(probe.level for probe in found.probes) <= 0.37
