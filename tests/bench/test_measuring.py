"""Timing, ratios and bars, on figures that are known."""

import itertools
import json

import pytest

from benchmarks import adapters, bars, grid, spread
from benchmarks.bars import Bar, Judged
from benchmarks.case import Case, Comparison, Role, Setting, rate
from benchmarks.learning import Stopwatch, ppo_case
from benchmarks.measure import Measured, Result, Spread, in_turns, measure
from benchmarks.report import Report
from benchmarks.table import rows, told
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
    return Result(
        name, "Title", "env-steps/s", False, [Measured(case, roles[case], found) for case, found in figures.items()]
    )


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


def test_the_best_peer_is_the_one_with_the_highest_median():
    found = result(ours=[100.0, 100.0], slow=[9.0, 9.0], fast=[10.0, 20.0])
    assert found.best(Role.PEER).name == "fast"
    assert found.best(Role.CEILING) is None
    seconds = Result("startup", "Title", "s", True, found.cases)
    assert seconds.best(Role.PEER).name == "slow"


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


def test_a_bar_is_met_by_the_median_ratio_to_the_best_peer():
    name, case = spread.spread_name(3, 32), spread.BATCH
    cases = [
        Measured(case, Role.OURS, [100.0, 210.0, 90.0]),
        Measured("slow", Role.PEER, [1.0, 1.0, 1.0]),
        Measured("fast", Role.PEER, [10.0, 20.0, 10.0]),
    ]
    judged = bars.judge([Result(name, "", "env-steps/s", False, cases)])
    measured = [found for found in judged if found.reached is not None]
    assert [found.bar.words for found in measured] == ["Spread, 3 agents, 32 environments: to the best peer"]
    assert measured[0].reached == pytest.approx(10.0)
    assert measured[0].met


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


@pytest.mark.parametrize(
    ("foreign", "decided"),
    [
        ((0.0, 0.05, 0.0), True),
        ((0.0, 0.9, 0.0), True),
        ((0.9, 0.9, 0.0), False),
        ((None, None, None), True),
        ((), True),
    ],
)
def test_a_bar_of_peers_is_not_decided_where_most_rounds_were_disturbed(foreign, decided):
    name = spread.spread_name(3, 32)
    cases = [Measured(spread.BATCH, Role.OURS, [100.0] * 3, cores=[1.0] * 3), Measured("peer", Role.PEER, [1.0] * 3)]
    found = Result(name, "", "env-steps/s", False, cases, foreign)
    (judged,) = [judged for judged in bars.judge([found]) if judged.reached is not None]
    assert (judged.decided, judged.met) == (decided, True if decided else None)
    assert ("not decided, other programs were busy" in told(judged)) is not decided
    assert found.to_dict()["disturbed"] == [cores is not None and cores > 0.5 for cores in foreign]


@pytest.mark.parametrize("make", adapters.MAKERS.values())
def test_adapters_play_whole_episodes(make):
    make(2)()


def test_a_bar_of_shares_is_in_percent_and_a_bar_of_seconds_is_met_from_below():
    cases = [Measured(grid.SINGLE, Role.OURS, [30.0]), Measured(grid.DICTIONARIES, Role.FLOOR, [120.0])]
    judged = bars.judge([Result("grid-10-parent", "", "env-steps/s", False, cases)])
    (share,) = [found for found in judged if found.reached is not None]
    assert (share.reached, share.met, share.share) == (25.0, False, 0.5)
    seconds = Bar("import", 0.6, "CPU-s", lambda results: 0.3, most=True)
    assert (Judged(seconds, 0.3).met, Judged(seconds, 0.3).share) == (True, 2.0)
    assert (Judged(seconds, 1.2).met, Judged(seconds, 1.2).share) == (False, 0.5)
    assert Judged(seconds, None).met is None


def test_every_bar_names_a_comparison_and_cases_that_exist():
    from benchmarks.suite import everything

    class Asked(dict):
        def __contains__(self, name: object) -> bool:
            missing.discard(name)
            return name in known or pytest.fail(f"a bar asks for {name}")

    known = {comparison.name for comparison in everything()}
    assert len(known) == len(everything())
    missing = {"grid-1000-public", "energy-batch", "startup-import", "learning-ppo", "events-jitter-1000-public"}
    for bar in bars.all_bars():
        with pytest.raises(KeyError):
            bar.figure(Asked())
    assert not missing


def test_shares_of_time_are_of_the_total_with_the_rest_told():
    clock = FakeClock()
    watch = Stopwatch(clock)

    class Env:
        def step(self) -> str:
            clock.working(3.0)
            return "stepped"

    env = Env()
    watch.wrap(env, "step", "env")

    def learn() -> None:
        assert env.step() == "stepped"
        clock.working(1.0)

    watch.timed("total", learn)()
    assert watch.shares() == {"env share": 0.75, "rest share": 0.25}


def test_ppo_is_timed_by_whole_iterations_with_its_shares():
    case = ppo_case("tiny", 2, 5, 15)
    assert case.run(0.0) > 0.0
    shares = case.facts()
    assert set(shares) == {"env share", "policy share", "update share", "rest share"}
    assert sum(shares.values()) == pytest.approx(1.0)
    assert min(shares.values()) > 0.0
    case.close()


def test_the_table_shows_median_spread_ratio_and_verdict():
    found = result(ours=[80e3, 40e3, 20e3], fused=[160e3, 20e3, 40e3])
    assert rows(found) == [
        ("  ours", "40 k", "20 k to 80 k", ""),
        ("  ceiling: fused", "40 k", "20 k to 160 k", "0.5"),
    ]
    bar = Bar("all", 100e3, "events/s", lambda results: None)
    assert told(Judged(bar, 40e3)) == "needed 100 k events/s, reached 40 k events/s: not met, 40 % of it"
    assert told(Judged(bar, 120e3)) == "needed 100 k events/s, reached 120 k events/s: met"
    assert told(Judged(bar, None)) == "needed 100 k events/s, not measured"
    seconds = Bar("import", 0.6, "CPU-s", lambda results: None, most=True)
    assert told(Judged(seconds, 0.3)) == "needed at most 600 m CPU-s, reached 300 m CPU-s: met"
    times = Bar("peer", 10.0, "x", lambda results: None)
    assert told(Judged(times, 12.5)) == "needed 10 times as fast, reached 12.5 times as fast: met"


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
    assert len(told["bars"]) == len(bars.all_bars())
