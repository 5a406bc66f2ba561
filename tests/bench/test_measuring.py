"""Timing and ratios, on figures that are known."""

import itertools
import json

import pytest

from benchmarks import adapters
from benchmarks.case import Case, Comparison, Role, Setting, rate
from benchmarks.measure import Measured, Result, Spread, in_turns, measure
from benchmarks.report import Report
from benchmarks.table import rows
from benchmarks.watch import Watch


class FakeClock:
    """Time that passes only while something works."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    def working(self, seconds: float) -> None:
        self.now += seconds


def result(name: str = "spread-3-32", **figures: list[float]) -> Result:
    """A comparison of ours, a ceiling and two peers; `figures` by name."""
    roles = {"ours": Role.OURS, "fused": Role.CEILING, "slow": Role.PEER, "fast": Role.PEER}
    return Result(name, "Title", "env-steps/s", [Measured(case, roles[case], found) for case, found in figures.items()])


def test_a_rate_is_the_units_of_all_calls_over_all_their_time():
    clock = FakeClock()
    assert rate(lambda: clock.working(0.25), 10.0, 1.0, clock) == pytest.approx(40.0)
    clock = FakeClock()
    assert rate(lambda: clock.working(3.0), 6.0, 1.0, clock) == pytest.approx(2.0), "one call at least"


def test_the_clock_is_asked_rarely_where_calls_are_short():
    clock, asked = FakeClock(), itertools.count()

    def watched() -> float:
        next(asked)
        return clock()

    assert rate(lambda: clock.working(1e-4), 1.0, 1.0, watched) == pytest.approx(1e4)
    assert next(asked) < 100


def test_ratios_are_medians_of_ratios_within_a_round():
    # The machine halves its speed between rounds: the medians' ratio would be 4, the rounds say 2, 8 and 2.
    found = result(ours=[80.0, 40.0, 20.0], fused=[40.0, 5.0, 10.0]).ratio("ours", "fused")
    assert found == Spread(2.0, 2.0, 8.0)
    assert result(ours=[1.0]).ratio("ours", "fused") is None


def test_cases_are_timed_in_turns_forwards_and_backwards():
    order = []
    cases = [Case(name, lambda seconds, name=name: order.append(name) or 1.0) for name in "abc"]
    figures = in_turns(cases, 3, 0.5)
    assert "".join(order) == "abccbaabc"
    assert figures == {"a": [1.0] * 3, "b": [1.0] * 3, "c": [1.0] * 3}


def test_measuring_warms_up_once_limits_the_rounds_asks_for_facts_and_closes():
    closed, ran = [], []
    case = Case(
        "one",
        lambda seconds: ran.append(seconds) or 5.0,
        facts=lambda: {"runs": len(ran)},
        close=lambda: closed.append(True),
    )
    found = measure(Comparison("c", "t", "u", lambda setting: [case], rounds=2), Setting(), rounds=7, seconds=0.4)
    assert ran == [0.1, 0.4, 0.4]
    assert (found.case("one").rounds, found.case("one").facts) == ([5.0, 5.0], {"runs": 3})
    assert closed == [True]


def test_a_watch_tells_the_cores_of_each_case_and_what_others_took():
    clock, busy, spent = FakeClock(), [100.0], [0.0]
    watch = Watch(clock, lambda: busy[0])

    def work(cores: float, foreign: float) -> float:
        clock.working(2.0)
        spent[0] += 2.0 * cores
        busy[0] += 2.0 * (cores + foreign)
        return 1.0

    cases = [
        Case("alone", lambda seconds: work(1.0, 0.0), cpu=lambda: spent[0]),
        Case("two", lambda seconds: work(2.0, seconds), cpu=lambda: spent[0]),
    ]
    in_turns(cases, 2, 0.0, watch)
    in_turns(cases, 1, 0.5, watch)
    assert watch.cores == {"alone": [1.0] * 3, "two": [2.0] * 3}
    assert watch.foreign == [0.0, 0.0, pytest.approx(0.25, abs=0.01)]
    assert Watch(clock, lambda: None).foreign == []
    unknown = Watch(clock, lambda: None)
    in_turns(cases, 1, 0.5, unknown)
    assert unknown.foreign == [None]


def test_rounds_in_which_others_took_much_are_told():
    found = Result("", "", "", [], foreign=(0.0, 0.05, 0.9, None))
    assert found.to_dict()["disturbed"] == [False, False, True, False]


@pytest.mark.parametrize("make", adapters.MAKERS.values())
def test_adapters_play_whole_episodes(make):
    make(2)()


def test_the_table_shows_median_spread_and_ratio():
    found = result(ours=[80e3, 40e3, 20e3], fused=[160e3, 20e3, 40e3])
    assert rows(found) == [
        ("  ours", "40 k", "20 k to 80 k", ""),
        ("  ceiling: fused", "40 k", "20 k to 160 k", "0.5"),
    ]


def test_the_json_form_has_every_round_and_every_ratio(tmp_path):
    report = Report([result(ours=[8.0, 4.0], fused=[4.0, 4.0])], True, 2, 0.05, {"cores": 2})
    (path,) = report.write(tmp_path / "bench")
    told = json.loads(path.read_text("utf-8"))
    assert told["schema_version"] == 1
    assert told["machine"] == {"cores": 2}
    (comparison,) = told["comparisons"]
    assert comparison["cases"][0] == {
        "name": "ours", "role": "ours", "median": 6.0, "low": 4.0, "high": 8.0, "rounds": [8.0, 4.0], "facts": {},
        "cores": [],
    }  # fmt: skip
    assert comparison["ratios"] == [{"of": "ours", "to": "fused", "median": 1.5, "low": 1.0, "high": 2.0}]
