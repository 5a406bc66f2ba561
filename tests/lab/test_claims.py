"""What a sweep says is true of its intervals, whatever came out: no winner, cost or order that they do not carry."""

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import ttest_1samp

from heron_env import registry
from heron_env.lab import IDEAL, SYNC, Baseline, Condition, Sweep, SweepResult
from heron_env.lab.benchmark import NOTHING, Case
from heron_env.lab.episodes import Outcome
from heron_env.lab.show.sweeps import gap_part, sweep_verdict
from heron_env.lab.sweep.records import Record
from heron_env.lab.sweep.sentences import NEGLIGIBLE, Changes, Level, finding, orders, reasons
from heron_env.lab.sweep.tables import legend, to_json, to_markdown

CONDITIONS = (Condition(act_delay=1.0), Condition(act_delay=2.0), Condition(loss=0.1), Condition(noise=0.5))


@cache
def asked(cases: int, conditions: int, seeds: int) -> Sweep:
    """A policy of so many seeds and a rule; nothing is run."""
    members = tuple(f"trained, run {k + 1}" for k in range(seeds)) if seeds > 1 else ("trained",)
    names = [*members, "rule", NOTHING]
    return Sweep(
        env=registry.spec("heron/BatteryGrid-v0"),
        options={},
        policies={name: Baseline("random") for name in names},
        identities={name: name for name in names},
        conditions=(SYNC, IDEAL, *CONDITIONS[:conditions]),
        cases=tuple(Case(seed) for seed in range(cases)),
        unit="EUR a day",
        dt=1.0,
        sync_only=(NOTHING,),
        pools={"trained": members} if seeds > 1 else {},
    )


def made(sweep: Sweep, value) -> SweepResult:
    """The result in which `value(policy, condition, case)` was earned."""
    records = {}
    for item in sweep.items():
        earned = float(value(item.name, item.condition, item.number))
        course = "same" if item.condition in (SYNC, IDEAL) else "other"
        records[item.key] = Record(item.key, Outcome(**{**BLANK, "value": earned, "course": course}), 0.0)
    return SweepResult(sweep, records)


BLANK = {"kpis": {}, "staleness_p95": 0.0, "latency_p95": 0.0, "notes": ()}


@st.composite
def results(draw) -> SweepResult:
    """Random ones, with ties, nothing lost, nothing gained, one case and few."""
    sweep = asked(draw(st.sampled_from([1, 2, 3, 5, 20])), draw(st.integers(1, 4)), draw(st.sampled_from([1, 1, 3])))
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    scale = draw(st.sampled_from([0.0, 0.05, 1.0, 5.0]))
    gain = draw(st.sampled_from([-3.0, 0.0, 3.0, 30.0]))
    rounded = draw(st.booleans())
    means = {
        (policy, c): draw(st.sampled_from([0.0, 0.01, 0.3, 2.0, -2.0, 10.0]))
        for policy in ("trained", "rule")
        for c in CONDITIONS
    }
    days = {case: random.normal(0.0, 5.0) for case in range(len(sweep.cases))}

    def value(name: str, condition: Condition, case: int) -> float:
        if name == NOTHING:
            return days[case]
        shown = name.partition(",")[0]
        lost = 0.0 if condition in (SYNC, IDEAL) else means[shown, condition] + scale * random.normal()
        found = days[case] + gain + (0.3 * len(name) if name == "rule" else 0.0) - lost
        return round(found) if rounded else found

    keep: dict[tuple, float] = {}

    def repeated(name: str, condition: Condition, case: int) -> float:
        key = (name, SYNC if condition == IDEAL else condition, case)
        return keep.setdefault(key, value(*key))

    return made(sweep, repeated)


def low_high(x: np.ndarray, result: SweepResult) -> tuple[float, float]:
    """The interval of a mean: scipy's where there is one seed, nothing (nan) of one case."""
    if x.shape[1] < 2:
        return np.nan, np.nan
    if len(x) > 1:
        found = result.intervals.mean(x)
        return found.low, found.high
    if np.ptp(x) < 1e-12:
        return float(x.mean()), float(x.mean())
    return tuple(ttest_1samp(x[0], 0.0).confidence_interval(0.95))


def trifling(result: SweepResult, policy: str, gap: np.ndarray) -> bool:
    """Is the whole interval of the gap below 2 % of the gain; where no gain shows, has nothing changed?"""
    gain = result.gain(policy)
    if low_high(gain, result)[0] > 0.0:
        share = gap.mean() / gain.mean()
        ends = share + np.array(low_high((gap - share * gain) / gain.mean(), result))
        return bool(np.abs(ends).max() < 0.02 + 1e-9)
    return bool(np.abs(gap).max() < 1e-9)


def untruths(result: SweepResult) -> Iterator[str]:
    """What the sentences say that the values do not."""
    disturbed = [c for c in result.sweep.conditions if c not in (SYNC, IDEAL)]
    for policy in result.policies:
        level, text = str(Level(result, policy)), str(Changes(result, policy))
        gaps = {c: result.table(policy) - result.table(policy, c) for c in disturbed}
        ends = {c: low_high(gap, result) for c, gap in gaps.items()}
        above, below = [c for c in disturbed if ends[c][0] > 0.0], [c for c in disturbed if ends[c][1] < 0.0]
        if not re.match(r"On (one|\d+) held-out case", level):
            yield "level"
        low, high = low_high(result.gain(policy), result)
        several, gains = len(result.sweep.cases) > 1, low > 0.0
        if "of its gain" in text and not gains:
            yield f"a share of no gain: {text}"
        if ("gains nothing over doing nothing: " in level) != (several and not gains):
            yield f"gains: {level}"
        if "It is not clear" not in level and "gains nothing" in level and high > 1e-9:
            yield f"may gain something: {level}"
        for part in re.findall(r"(-?[\d.]+)(?: \[[^]]*\])? (?:less|more) than synchronous", text):
            if float(part) < 0.0:
                yield f"less than nothing: {text}"
        counted = [re.search(rf"(\d+) {word}s? ", text) for word in ("lower", "raise")]
        costs, brings = (int(found[1]) if found else 0 for found in counted)
        costs, brings = costs + ("condition of this sweep lowers" in text), brings
        if costs > len(above) or brings > len(below):
            yield f"more signs than intervals: {text}"
        if "condition of this sweep raises" in text and not below:
            yield f"no gain: {text}"
        if found := re.search(r"The largest cost is that of (.*?) \(", text):
            first = next(c for c in disturbed if c.words == found[1])
            others = [low_high(gaps[first] - gaps[c], result)[0] for c in disturbed if c != first]
            if first not in above or not all(low > 0.0 for low in others):
                yield f"no winner: {text}"
        if found := re.search(r"The largest measured cost is that of (.*?) \(", text):
            first = next(c for c in disturbed if c.words == found[1])
            if gaps[first].mean() < max(gap.mean() for gap in gaps.values()):
                yield f"not the largest: {text}"
        if "No gap" in text and not all(trifling(result, policy, gaps[c]) for c in disturbed):
            yield f"a gap: {text}"
        if "not clear from these cases whether" in text and any(
            c in above and gaps[c].mean() > 0.5 * abs(result.table(policy).mean()) and not np.isclose(ends[c][0], 0.0)
            for c in disturbed
        ):
            yield f"told, and it says it can't be: {text}"
        if not several and not text.startswith("One case has no interval"):
            yield f"one case claims: {text}"
    for text in orders(result):
        under, other = re.match(r"Under (.*) (?:the order|there is).* to '(.*)' is", text).groups()
        condition = next(c for c in disturbed if c.words == under)
        after, before = (result.difference(result.policies[0], other, c) for c in (condition, SYNC))
        if not after.excludes_zero or (before.excludes_zero and np.sign(before.value) == np.sign(after.value)):
            yield f"no order: {text}"
        if ("reversed" in text) != (before.excludes_zero and before.value * after.value < 0.0):
            yield f"not reversed: {text}"
    yield from untrue_tiles(result)


def untrue_tiles(result: SweepResult) -> Iterator[str]:
    """What the verdict of a report says that the values do not."""
    first, several = result.policies[0], len(result.sweep.cases) > 1
    gaps = [result.table(first) - result.table(first, c) for c in result.sweep.conditions if c not in (SYNC, IDEAL)]
    for tile in sweep_verdict(result):
        figure = re.match(r"-?[\d.]+", tile.value)
        if tile.label == "It earns" and float(figure[0]) != pytest.approx(result.table(first).mean(), abs=0.006):
            yield f"another level: {tile}"
        if tile.label == "The network costs it" and several:
            costly = any(low_high(gap, result)[0] > 0.0 and not trifling(result, first, gap) for gap in gaps)
            if (figure is not None) > costly:
                yield f"no interval carries this cost: {tile}"
            if tile.value == "next to nothing" and not all(trifling(result, first, gap) for gap in gaps):
                yield f"a cost: {tile}"
        if tile.label.startswith("Difference to") and several and "not distinguishable" not in tile.note:
            other = tile.label.removeprefix("Difference to ").strip("'")
            low, high = low_high(result.table(first) - result.table(other), result)
            if low <= 1e-9 and high >= -1e-9:
                yield f"no difference: {tile}"


@given(results())
def test_every_sentence_is_true_of_the_intervals(result: SweepResult):
    assert list(untruths(result)) == []
    for sentence in finding(result):
        assert "nan" not in sentence and not re.search(r"\binf\b", sentence)


@settings(max_examples=20)
@given(results())
def test_tables_are_free_of_nan_and_say_what_their_intervals_are_over(result: SweepResult):
    assert "nan" not in to_markdown(result) and "NaN" not in to_json(result)
    said, few = legend(result), len(result.sweep.cases) < 20
    if len(result.sweep.cases) == 1:
        assert "one case has no interval" in said
        return
    if result.sweep.pools:
        assert "over training seeds and cases for 'trained', over the cases alone for the others" in said
        assert "trained (3 seeds pooled)" in to_markdown(result)
    else:
        assert "intervals over the cases alone" in said
    assert ("82 to 85 %" in said) is few


@pytest.mark.parametrize("seeds", [1, 3])
def test_a_picture_says_what_its_intervals_are_over(seeds: int):
    days = np.random.default_rng(0).normal(size=9)
    result = made(asked(3, 2, seeds), lambda name, condition, case: days[case] + len(name) - len(condition.name) * case)
    (picture, *_) = gap_part(result).blocks
    assert "over the cases alone" in picture.caption


@pytest.mark.parametrize(
    ("where", "planted"),
    [
        ("Cost.significant", property(lambda self: self.gap.value != 0.0)),  # a mean is taken for a finding
        ("Changes.rivals", property(lambda self: [])),  # the largest mean is taken for the winner
        ("Cost.negligible", property(lambda self: True)),  # nothing is ever a gap
        ("order_differs", lambda before, after: True),  # any difference is an order
    ],
)
def test_a_planted_overclaim_is_caught(monkeypatch: pytest.MonkeyPatch, where: str, planted: object):
    monkeypatch.setattr(f"heron_env.lab.sweep.sentences.{where}", planted)
    random = np.random.default_rng(0)
    noisy = made(asked(3, 3, 1), lambda name, condition, case: 9.0 * random.normal() + (9.0 if name == "rule" else 0.0))
    plain = made(
        asked(5, 3, 1), lambda name, condition, case: 20.0 * (name != NOTHING) - 9.0 * (condition in CONDITIONS)
    )
    near = made(
        asked(5, 2, 1),
        lambda n, c, case: (
            90.0 * (n != NOTHING) - 9.0 * (c in CONDITIONS) - (random.normal() if c in CONDITIONS else 0.0)
        ),
    )
    assert any(list(untruths(result)) for result in (noisy, plain, near))


def test_where_some_bring_more_and_the_largest_cost_is_open_nothing_is_said_of_none():
    """Once "None of the 8 conditions costs anything; some bring more" stood above a mean of -57 %."""
    random = np.random.default_rng(1)

    def value(name: str, condition: Condition, case: int) -> float:
        change = {CONDITIONS[0]: 3.0, CONDITIONS[1]: -2.0 + 9.0 * random.normal()}.get(condition, 0.0)
        return 10.0 * (name != NOTHING) + change

    claim = str(Changes(made(asked(5, 2, 1), value), "trained"))
    sweep = "Of the 2 conditions of this sweep, "
    assert claim == (
        f"{sweep}1 raises the return of 'trained', 1 has no clear effect, or a negligible one. The largest measured "
        "improvement is that under action delay 1 s (3.00 [3.00, 3.00] more than synchronous, 30.0 % [30.0, 30.0] of "
        "its gain over doing nothing)."
    )


def test_the_largest_cost_is_named_where_it_costs_more_than_each_other_one():
    def value(name: str, condition: Condition, case: int) -> float:
        cost = {CONDITIONS[0]: 3.0, CONDITIONS[1]: 5.0 + 0.1 * case}.get(condition, 0.0)
        return 10.0 * (name != NOTHING) - cost

    claim = str(Changes(made(asked(5, 2, 1), value), "trained"))
    assert ". The largest cost is that of action delay 2 s (5.20 [5.00, 5.40] less than synchronous, 52.0 % [" in claim


# Of what gains nothing no share is said

GAINS = {"loses": -1.0, "as much": 0.0, "across zero": None, "gains": 1.0}
CHANGES = {"worse": 0.3, "better": -0.3, "none": 0.0}


def of(gain: str, change: str, cases: int = 4, unit: str = "EUR a day") -> SweepResult:
    """'trained' gains so, and under each condition it earns so much less; every case by itself is exact."""

    def value(name: str, condition: Condition, case: int) -> float:
        mine = (-1.0) ** case * 2.0 + 0.5 if GAINS[gain] is None else GAINS[gain]
        return 20.0 + 3.0 * case + (mine if name == "trained" else 0.0) - CHANGES[change] * (condition in CONDITIONS)

    return made(replace(asked(cases, 2, 1), unit=unit), value)


def everything(result: SweepResult) -> str:
    """All that is said of 'trained'."""
    tiles = " ".join(" ".join(tile) for tile in sweep_verdict(result)[:2])
    said = Level(result, "trained"), Changes(result, "trained")
    return " ".join([*map(str, said), tiles, *reasons(result)])


@pytest.mark.parametrize(("cases", "gain"), [(1, "gains"), *((4, gain) for gain in GAINS)])
def test_a_share_of_the_gain_is_said_where_the_interval_of_the_gain_lies_above_zero(gain, cases):
    shown = gain == "gains" and cases > 1
    for result in (of(gain, change, cases) for change in CHANGES):
        text, row = everything(result), json.loads(to_json(result))["rows"]
        of_trained = [one for one in row if one["policy"] == "trained" and one["condition"] == CONDITIONS[0].name]
        assert ("of its gain" in text) is shown
        assert ("gains nothing over doing nothing: " in text) is (not shown and cases > 1)
        assert ("whether 'trained' gains something or gains nothing" in text) is (gain == "across zero" and cases > 1)
        assert (of_trained[0]["lost"]["value"] is not None) is shown
        assert ("| lost |" in to_markdown(result)) is shown


@pytest.mark.parametrize("gain", GAINS)
def test_an_improvement_is_called_so_and_a_loss_a_loss(gain):
    better, worse, none = (str(Changes(of(gain, change), "trained")) for change in ("better", "worse", "none"))
    assert "2 raise the return of 'trained'" in better and "The largest measured improvement" in better
    assert "(0.30 [0.30, 0.30] more than synchronous" in better
    assert "2 lower the return of 'trained'" in worse and "(0.30 [0.30, 0.30] less than synchronous" in worse
    assert none.startswith("No gap: none of the 2 conditions of this sweep changes the return of 'trained'")


def test_what_gains_nothing_is_not_measured_by_the_level_of_its_return_and_rounding_is_no_change():
    small = of("loses", "better")
    assert abs(small.point("trained").mean.value) > 20.0 and NEGLIGIBLE > 0.3 / 20.0
    assert Changes(small, "trained").kind == "signed"

    def value(name: str, condition: Condition, case: int) -> float:
        return 20.0 + case - (name == "trained") + 1e-14 * (condition in CONDITIONS)

    assert Changes(made(asked(4, 2, 1), value), "trained").kind == "no gap"


def test_doing_nothing_itself_is_not_said_to_gain_nothing():
    sweep = replace(asked(4, 2, 1), sync_only=())
    result = made(sweep, lambda name, condition, case: 20.0 + case - 0.3 * (condition in CONDITIONS))
    levels = {policy: str(Level(result, policy)) for policy in result.policies}
    assert "gains nothing" not in levels[NOTHING] and "gains nothing over doing nothing: " in levels["rule"]
    assert "of its gain" not in " ".join(finding(result))


def test_a_share_of_what_foresight_would_gain_is_said_of_what_gains():
    def value(name: str, condition: Condition, case: int) -> float:
        return case + {"trained": -1.0, "rule": 5.0}.get(name, 0.0)

    cases = tuple(Case(seed, optimum=seed + 10.0) for seed in range(4))
    result = made(replace(asked(4, 1, 1), cases=cases), value)
    levels = {policy: str(Level(result, policy)) for policy in result.policies}
    assert "50 % of what perfect foresight would gain over doing nothing" in levels["rule"]
    assert "foresight" not in levels["trained"] + str(sweep_verdict(result))


@pytest.mark.parametrize("unit", ["sum of rewards, all agents", "vehicles (all roads)", ""])
def test_a_unit_stands_in_brackets_of_its_own(unit: str):
    """So that no words of an environment's author can break a sentence: at the end of it, or as of a number."""
    result = of("gains", "worse", unit=unit)
    text = everything(result)
    assert not unit or text.count(unit) == text.count(f" ({unit})") + text.count(f"(return of the team, {unit}).") > 1
    assert f"25.50 [19.34, 31.66] on the synchronous clock (return of the team{unit and f', {unit}'})." in text
