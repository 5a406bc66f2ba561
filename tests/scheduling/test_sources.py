"""T20: delays and losses from data, as pure functions of the draw's identity and of the time of departure."""

import json
import pickle
import re
import warnings
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusing import unsaid
from scipy import stats

from heron_env import DrawnSchedule, Empirical, GilbertElliott, Markov, Recorded, ScheduleConfig, make
from heron_env.errors import DataError, HeronWarning, ScheduleError
from heron_env.lab.schedules import with_settings
from heron_env.lab.traces.episode import schedule_entries, schedule_of
from heron_env.seeding import h, key, uniforms
from heron_env.testing import clock
from heron_env.testing.clock import SECOND, Leg, Link, What

REQUEST = Leg.OBSERVATION_REQUEST
BURSTS = Markov([0.2, 4.0], (0.9, 0.6), 5.0)
LOSSES = GilbertElliott(0.1, 0.3, 0.8, 0.05, 2.0)
NOISY: dict[str, Any] = {"jitter_type": "lognormal", "jitter_ratio": 0.5}
SOURCES = [Empirical([0.1, 0.4]), Recorded([0.0, 10.0], [0.1, 3.0]), BURSTS, Markov([Empirical([1, 2]), 0.0], 0.5, 1)]


def link(agent: str = "battery_1", seed: int = 0, episode: int = 0, **fields: Any) -> Link:
    return clock.link(agent, ScheduleConfig(**fields), seed=seed, episode=episode)


# Samples


def test_a_sample_is_drawn_evenly() -> None:
    delays = [0.1, 0.2, 0.2, 5.0]
    drawn = [link(msg_delay=Empirical(delays)).delay(0, "tick", REQUEST, n) / SECOND for n in range(4000)]
    _, counts = np.unique(drawn, return_counts=True)
    assert stats.chisquare(counts, [1000, 2000, 1000]).pvalue > 1e-3


def test_a_sample_is_keyed_as_every_draw() -> None:
    """The published form: a compiled clock may draw the same."""
    one = link(seed=5, episode=2, msg_delay=Empirical([1, 2, 3]), act_delay=Empirical([4, 5]))
    u = uniforms(key(5, 2, h("battery_1"), "sample", "tick", int(REQUEST)), 50)
    assert [one.delay(9, "tick", REQUEST, n, 7) for n in range(50)] == [(1 + int(x * 3)) * SECOND for x in u]
    u = uniforms(key(5, 2, h("battery_1"), "sample", "command", int(Leg.ACTION)), 50)
    assert [one.delay(9, "command", Leg.ACTION, n) for n in range(50)] == [(4 + int(x * 2)) * SECOND for x in u]
    assert one.delay(9, "tick", Leg.GATHERING, 0) == 9, "obs_delay is a number"


def test_one_delay_alone_is_a_number() -> None:
    sample, number = link(msg_delay=Empirical([0.4]), **NOISY), link(msg_delay=0.4, **NOISY)
    legs = [(n, 13 * n) for n in range(50)]
    assert [sample.delay(0, "tick", REQUEST, *leg) for leg in legs] == [
        number.delay(round(0.4 * SECOND), "tick", REQUEST, *leg) for leg in legs
    ]


# Records


def test_a_record_is_replayed_by_the_time_of_departure_over_and_over() -> None:
    record = Recorded([100.0, 101.5, 103.0], [1.0, 2.0, 3.0], period=4.0)
    one = link(msg_delay=record)

    def delay(t: float) -> float:
        return one.delay(0, "tick", REQUEST, 0, round(t * SECOND)) / SECOND

    for shift in (0.0, 4.0, 4000.0):
        for time, wanted in ((0, 1), (1.499999999, 1), (1.5, 2), (2.999999999, 2), (3.0, 3), (3.999999999, 3)):
            assert delay(shift + time) == wanted
    assert [one.delay(0, cause, leg, n, 2 * SECOND) for cause, leg, n in (("a", 1, 2), ("b", 3, 4))] == [2 * SECOND] * 2


def test_the_last_delay_of_a_record_holds_as_long_as_the_others_in_the_mean() -> None:
    assert Recorded([5.0, 6.0, 9.0], [1, 2, 3]).period_ns == 6 * SECOND
    alone = Recorded([5.0], [1.25])
    assert {link(msg_delay=alone).delay(0, "tick", REQUEST, 0, t) for t in (0, 1, 10**18)} == {round(1.25 * SECOND)}


def test_a_record_may_be_arrays_and_is_equal_to_its_lists() -> None:
    assert Recorded(np.array([0.0, 1.0]), np.array([0.5, 0.25])) == Recorded([0.0, 1.0], (0.5, 0.25))
    assert hash(Recorded([0, 1], [2, 3])) == hash(Recorded([0, 1], [2, 3]))
    assert Recorded([0, 1], [2, 3]) != Recorded([0, 1], [2, 3], period=9)


# Chains


@given(st.sampled_from([0.0, 0.2, 0.7, 1.0]), st.sampled_from([0.0, 0.3, 1.0]), st.lists(st.integers(0, 3000)))
def test_the_state_depends_on_the_time_alone(p_bad: float, p_good: float, times: list[int]) -> None:
    if p_bad == p_good == 0:
        return
    losses = GilbertElliott(p_bad, p_good, 1, 0, 1e-9)
    chain, u = losses.chain, uniforms(key(1, 2, h("battery_1"), "chain", "loss", 0), 3001)
    wanted = [int(chain.start[0] <= u[0])]
    for k in range(1, 3001):
        wanted.append(int(chain.moves[wanted[-1]][0] <= u[k]))

    def bad(of: Link, t: int) -> bool:
        return of.lost("tick", REQUEST, 0, t)

    one = link(seed=1, episode=2, loss=losses)
    assert [bad(one, t) for t in times] == [wanted[t] for t in times]
    assert [bad(link(seed=1, episode=2, loss=losses), t) for t in times] == [wanted[t] for t in times]


def test_a_chain_has_its_shares_and_lengths() -> None:
    one, count = link(loss=replace(LOSSES, loss_bad=1, loss_good=0)), 20_000
    bad = np.array([one.lost("tick", REQUEST, 0, k * 2 * SECOND) for k in range(count)])
    assert bad.mean() == pytest.approx(0.25, abs=0.02)
    ends = np.flatnonzero(np.diff(bad.astype(int)))
    lengths = np.diff(ends)[1 - int(bad[ends[0] + 1]) :: 2] if bad[ends[0] + 1] else np.diff(ends)[1::2]
    assert lengths.mean() == pytest.approx(1 / 0.3, rel=0.06), "bad for 1 / p_good periods"


def test_three_states_move_to_any_other_alike_and_keep_their_shares() -> None:
    source = Markov([0.1, 0.2, 0.4], (0.5, 0.8, 0.0), 1.0)
    one = link(msg_delay=source)
    place = {round(x * SECOND): i for i, x in enumerate(source.states)}
    seen = [place[one.delay(0, "tick", REQUEST, 0, k * SECOND)] for k in range(30_000)]
    counts = np.zeros((3, 3))
    np.add.at(counts, (seen[:-1], seen[1:]), 1)
    rows = np.array([[0.5, 0.25, 0.25], [0.1, 0.8, 0.1], [0.5, 0.5, 0.0]])
    assert np.abs(counts / counts.sum(axis=1, keepdims=True) - rows).max() < 0.02
    assert np.abs(counts.sum(axis=1) / counts.sum() - source.shares).max() < 0.01
    assert source.shares == pytest.approx([2 / 8, 5 / 8, 1 / 8])


def test_the_first_state_is_stationary() -> None:
    bad = [link(seed=seed, loss=replace(LOSSES, loss_bad=1, loss_good=0)).lost("tick", 1, 0, 0) for seed in range(2000)]
    assert np.mean(bad) == pytest.approx(0.25, abs=4 * np.sqrt(0.25 * 0.75 / 2000))


def test_links_delays_and_losses_have_chains_of_their_own() -> None:
    flip = Markov([1.0, 2.0], 0.5, 1.0)
    fields: dict[str, Any] = {"msg_delay": flip, "obs_delay": flip, "act_delay": flip}
    fields["loss"] = GilbertElliott(0.5, 0.5, 1, 0, 1.0)
    one, times = link(**fields), [k * SECOND for k in range(400)]
    columns = [[one.delay(0, "tick", leg, 0, t) for t in times] for leg in (REQUEST, Leg.GATHERING, Leg.ACTION)]
    columns += [[link(loss=0.1, msg_delay=flip, **other).delay(0, "tick", 1, 0, t) for t in times]
                for other in ({"agent": "battery_2"}, {"seed": 1}, {"episode": 1})]  # fmt: skip
    columns += [[one.lost("tick", 1, 0, t) for t in times]]
    assert abs(np.corrcoef(columns) - np.eye(len(columns))).max() < 0.25
    assert columns[0] == [
        one.delay(0, "x", leg, n, t) for n, (t, leg) in enumerate(zip(times, [1, 9] * 200, strict=True))
    ]


def test_nothing_moves_between_two_multiples_of_the_period() -> None:
    one = link(msg_delay=Markov([1.0, 2.0], 0.5, 1.5))
    for k in range(50):
        inside = {one.delay(0, "tick", 1, 0, k * 1_500_000_000 + t) for t in (0, 1, 10**9, 1_499_999_999)}
        assert len(inside) == 1
    assert len({one.delay(0, "tick", 1, 0, k * 1_500_000_000) for k in range(50)}) == 2


# Draws stay apart


@pytest.mark.parametrize("source", SOURCES)
@given(seed=st.integers(0, 2**63), loss=st.sampled_from([0.0, 0.3, 1.0, LOSSES]))
def test_switching_loss_on_moves_no_delay(source: Any, seed: int, loss: Any) -> None:
    plain, lossy = link(seed=seed, msg_delay=source, **NOISY), link(seed=seed, msg_delay=source, loss=loss, **NOISY)
    legs = [(n, n * SECOND) for n in range(30)]
    assert [plain.delay(0, "tick", 1, *leg) for leg in legs] == [lossy.delay(0, "tick", 1, *leg) for leg in legs]
    fates = [lossy.draw(What.FATE, 0, "tick", 1, *leg) for leg in legs]
    assert [fate if fate >= 0 else ~fate for fate in fates] == [plain.delay(0, "tick", 1, *leg) for leg in legs]
    assert [fate < 0 for fate in fates] == [lossy.lost("tick", 1, *leg) for leg in legs]


@given(seed=st.integers(0, 2**63))
def test_the_draws_of_losses_and_ticks_are_those_of_numbers(seed: int) -> None:
    """Data in one place moves nothing in another, and equal probabilities lose the same messages."""
    more: dict[str, Any] = {"seed": seed, "tick_jitter_ratio": 0.3, **NOISY}
    number, data = link(loss=0.3, **more), link(loss=GilbertElliott(0.5, 0.5, 0.3, 0.3, 1), msg_delay=BURSTS, **more)
    for n in range(20):
        assert number.lost("tick", 1, n) == data.lost("tick", 1, n, n * SECOND)
        assert number.tick_time(n, 0) == data.tick_time(n, 0)
        assert number.delay(SECOND, "tick", Leg.ACTION, n) == data.delay(SECOND, "tick", Leg.ACTION, n)


def test_jitter_comes_on_top_and_a_base_of_zero_stays_zero() -> None:
    plain, jittered = (link(msg_delay=Markov([0.0, 4.0], 0.5, 1.0), **more) for more in ({}, NOISY))
    pairs = [(one, other) for t in range(200) for one, other in [(
        plain.delay(0, "tick", 1, t, t * SECOND), jittered.delay(0, "tick", 1, t, t * SECOND))]]  # fmt: skip
    assert {other for one, other in pairs if not one} == {0}
    ratios = np.array([other / one for one, other in pairs if one])
    reference = link(**NOISY)
    assert ratios.tolist() == [
        reference.delay(4 * SECOND, "tick", 1, t) / (4 * SECOND) for t, (one, _) in enumerate(pairs) if one
    ]
    floored = link(msg_delay=Empirical([0.0, 4.0]), min_delay=0.5)
    assert {floored.delay(0, "tick", 1, n) for n in range(50)} == {SECOND // 2, 4 * SECOND}


def test_a_link_with_data_pickles() -> None:
    one = link(msg_delay=BURSTS, loss=LOSSES, obs_delay=Recorded([0, 1], [0.1, 0.2]), **NOISY)
    before = [one.draw(What.FATE, 0, "tick", 1, n, n * SECOND) for n in range(100)]
    copy = pickle.loads(pickle.dumps(one))
    assert [copy.draw(What.FATE, 0, "tick", 1, n, n * SECOND) for n in reversed(range(100))] == before[::-1]


# Means


def test_means_stand_for_sources() -> None:
    assert Empirical([1, 2, 6]).mean_ns == 3 * SECOND
    assert Recorded([0, 1, 3], [1.0, 2.0, 3.0], period=4).mean_ns == (1 * 1 + 2 * 2 + 3 * 1) * SECOND / 4
    assert Markov([1.0, Empirical([2, 4])], (0.5, 0.75), 1).mean_ns / SECOND == pytest.approx(1 / 3 + 3 * 2 / 3)
    assert LOSSES.mean == pytest.approx(0.75 * 0.05 + 0.25 * 0.8)
    timing = link(msg_delay=Empirical([1e-9, 2e-9, 2e-9]), act_delay=BURSTS).timing
    assert timing.msg == round(Fraction(5, 3)) and timing.sourced
    assert timing.act == BURSTS.mean_ns


def test_reliable_legs_take_the_mean() -> None:
    env = make("heron/BatteryGrid-v0", num_batteries=2, max_steps=2)
    run = env.start_event_driven(
        {"*": lambda v: np.array([0.0])}, seed=0, trace=True,
        schedule=ScheduleConfig(msg_delay=Empirical([0.02, 0.02, 0.05])),
    )  # fmt: skip
    run.until(None)
    tokens = [record.latency for record in run.result().trace if record.kind == "CycleToken"]
    assert set(tokens) == {30_000_000}
    reports = [record.latency for record in run.result().trace if record.kind == "StateReport"]
    assert set(reports) == {20_000_000, 50_000_000}


# What is refused


NO_SOURCES: list[tuple[Callable[[], Any], str]] = [
    (lambda: Empirical([]), "Empirical: there are none"),
    (lambda: Empirical("fast"), "must be a list of numbers, got 'fast'"),
    (lambda: Empirical(3.0), "must be a list of numbers"),
    (lambda: Empirical([0.1, float("nan")]), "number 1=nan: must be a delay, a finite number"),
    (lambda: Empirical([-0.1]), "number 0=-0.1: must be a delay"),
    (lambda: Empirical([True]), "number 0=True"),
    (lambda: Empirical([1e10]), "below 9.2e9"),
    (lambda: Recorded([0, 1], [1]), "Recorded(2 times, 1 delays): give a delay for each time"),
    (lambda: Recorded([0, 0], [1, 1]), "number 1=0: must come a nanosecond or more after the one before"),
    (lambda: Recorded([0, float("inf")], [1, 1]), "number 1=inf: must be a finite number"),
    (lambda: Recorded([0, 1], [1, -1]), "Recorded(delays) number 1=-1: must be a delay"),
    (lambda: Recorded([0, 2], [1, 1], period=2), "Recorded(period=2): must be above the 2.0 s"),
    (lambda: Recorded([0, 2], [1, 1], period=float("nan")), "period=nan"),
    (lambda: Recorded("x.csv", [1]), "the file has the delays"),
    (lambda: Recorded([0, 1]), "Recorded(delays): must be a list"),
    (lambda: Markov([1.0], 0.5, 1), "give two or more"),
    (lambda: Markov([1.0, 2.0], 1.0, 1), "Markov(stay=1.0): must be a probability below 1"),
    (lambda: Markov([1.0, 2.0], [0.5], 1), "one for each of the states"),
    (lambda: Markov([1.0, 2.0], float("nan"), 1), "Markov(stay=nan)"),
    (lambda: Markov([1.0, float("nan")], 0.5, 1), "Markov(states) number 1=nan"),
    (lambda: Markov([1.0, BURSTS], 0.5, 1), "Markov(states) number 1=Markov"),
    (lambda: Markov([1.0, 2.0], 0.5, 0), "Markov(period=0): must be a nanosecond or more"),
    (lambda: GilbertElliott(0, 0, 1, 0, 1), "it never moves"),
    (lambda: GilbertElliott(0.1, 0.1, 1.5, 0, 1), "GilbertElliott(loss_bad=1.5): must be a probability"),
    (lambda: GilbertElliott(float("nan"), 0.1, 1, 0, 1), "GilbertElliott(p_bad=nan)"),
    (lambda: GilbertElliott(0.1, 0.1, 1, 0, -1), "GilbertElliott(period)=-1"),
    (lambda: ScheduleConfig(msg_delay=LOSSES), "is for losses: loss=GilbertElliott(...)"),
    (lambda: ScheduleConfig(loss=BURSTS), "is for delays; losses that come in bursts"),
    (lambda: ScheduleConfig(min_delay=BURSTS), "must be a number, got Markov"),
    (lambda: ScheduleConfig(tick_interval=Empirical([1])), "must be a number, got Empirical"),
    (lambda: DrawnSchedule(msg_delay={"markow": {}}), "only key. Did you mean 'markov'?"),
    (lambda: DrawnSchedule(msg_delay={"markov": {"states": [1, 2]}}), "missing"),
    (lambda: DrawnSchedule(msg_delay={"markov": 3}), "needs a mapping of its values"),
    (lambda: DrawnSchedule(loss={"gilbert_elliott": {"p_bda": 1}}), "unexpected keyword argument 'p_bda'"),
    (lambda: DrawnSchedule(msg_delay=[{"empirical": [-1]}]), "must be a delay"),
]


def test_what_can_be_no_source_is_named() -> None:
    assert unsaid(ScheduleError, NO_SOURCES) == []


MISTAKES = [
    ("time,delay\n0,0.1\n1,-0.2\n", 3, "delay=-0.2: must be 0 or more"),
    ("time,delay\n0,0.1\n0,0.2\n", 3, "time=0.0: must come a nanosecond or more after"),
    ("time,delay\n0,0.1\n\n1,soon\n", 4, "delay='soon': is no number"),
    ("time,delay\n0,nan\n", 2, "delay='nan': must be finite"),
    ("time,delay\n0,1_0\n", 2, "delay='1_0': is no number"),
    ("time,delay\n1_0,1\n", 2, "time='1_0': is no number"),
    ("time,delay\n0,\u0663\n", 2, "is no number"),
    ("time,delay\n1.7e12,85\n", 2, "remove the row, or divide ms by 1000"),
    ("time,delay\n0\n", 2, "expected 2 cells"),
    ("time;delay\n0;1\n", 1, "separate them by commas"),
    ("t,d\n0,1\n", 1, "name them in the first line"),
    ("", 1, "got none"),
    ("time,delay\n", 2, "there is no row"),
]


def test_a_mistake_in_a_csv_file_is_told_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "latency.csv"

    def read(text: str) -> None:
        path.write_text(text)
        Recorded(path)

    assert unsaid(DataError, [(partial(read, text), told) for text, _, told in MISTAKES]) == []
    assert unsaid(DataError, [(partial(read, text), f"{path}:{line}:") for text, line, _ in MISTAKES]) == []


def test_delays_in_a_file_that_are_likely_milliseconds_are_told(tmp_path: Path) -> None:
    for times, delays, in_ms in [
        (range(60), (85, 120, 40, 210), True),
        (range(0, 3600, 2), (31, 45, 60, 900), True),
        ((0.0, 5.0, 9.0), (200.0, 1500.0, 300.0), True),
        (range(60), (0.085, 0.12, 0.04, 0.21), False),
        (range(60), (1.0, 4.0, 2.0, 3.0), False),
        (range(60), (0.1, 0.2, 0.1, 40.0), False),
        (range(0, 3600, 30), (60, 90, 120, 45), False),
        ((0.0, 300.0), (60.0, 90.0), False),
        ((7.0,), (600.0,), False),
    ]:
        path = tmp_path / "latency.csv"
        path.write_text("time,delay\n" + "".join(f"{t},{delays[k % len(delays)]}\n" for k, t in enumerate(times)))
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            Recorded(path)
        assert bool(told) == in_ms
        if in_ms:
            words = str(told[0].message)
            assert told[0].category is HeronWarning and str(path) in words
            assert re.search(
                r"half of its delays are [\d.]+ s or more, .*column delay is in s: .* ms, divide it by 1000", words
            )


def test_a_csv_file_that_is_none_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no such file; give a CSV file"):
        Recorded(tmp_path / "none.csv")
    (tmp_path / "bad.csv").write_bytes(b"time,delay\n\xff\n")
    with pytest.raises(DataError, match="can't be read"):
        Recorded(str(tmp_path / "bad.csv"))


def test_a_csv_file_reads_as_it_is_written(tmp_path: Path) -> None:
    path = tmp_path / "latency.csv"
    path.write_text("\ufefftime, delay\n10,0.5\n 11.5 ,1e-3\n", encoding="utf-8")
    told = Recorded(path).to_dict()["recorded"]
    assert (told["times"], told["delays"]) == ([10.0, 11.5], [0.5, 0.001])
    assert Recorded(path) == Recorded([10.0, 11.5], [0.5, 0.001])


# Written down


def test_a_source_is_written_down_and_read_back() -> None:
    for source in [*SOURCES, LOSSES]:
        name = "loss" if source is LOSSES else "act_delay"
        assert DrawnSchedule({"*": {name: json.loads(json.dumps(source.to_dict()))}}).entries["*"][name] == source
        config = ScheduleConfig(**{name: source})
        kept = json.loads(json.dumps(schedule_entries({"field": config})))
        assert schedule_of(kept) == {"field": config}
        drawn = DrawnSchedule(
            {"field": config, "*": {"msg_delay": [1, source]}} if source is not LOSSES else {"a": config}
        )
        assert DrawnSchedule.from_dict(json.loads(json.dumps(drawn.to_dict()))) == drawn


def test_a_file_and_a_word_may_tell_of_sources(tmp_path: Path) -> None:
    (tmp_path / "latency.csv").write_text("time,delay\n0,0.5\n")
    (tmp_path / "net.yaml").write_text(
        "field:\n  msg_delay: {recorded: latency.csv}\n"
        "  loss: {gilbert_elliott: {p_bad: 0.1, p_good: 0.3, loss_bad: 0.8, loss_good: 0.05, period: 2}}\n"
        "  act_delay: [{empirical: [1, 2]}, 5]\n"
    )
    told = with_settings(None, [str(tmp_path / "net.yaml"), 'obs_delay={"empirical": [0.5, 1]}'])
    assert isinstance(told, DrawnSchedule)
    field = told.at(0, 0)["field"]
    assert (field.msg_delay, field.loss) == (Recorded([0], [0.5]), replace(LOSSES, period=2))
    assert field.act_delay in (5, Empirical([1, 2])) and field.obs_delay == Empirical([0.5, 1])
    (tmp_path / "latency.csv").write_text("time,delay\n0,x\n")
    with pytest.raises(ScheduleError, match=r"net.yaml:2: field.msg_delay: .*latency.csv:2: delay='x'"):
        with_settings(None, [str(tmp_path / "net.yaml")])


# Conditions of sweeps, and published networks


def test_the_name_of_a_file_of_delays_stands_for_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from heron_env.lab.sweep.conditions import parsed_axis

    file, replayed = tmp_path / "latency.csv", Recorded([0, 1], [0.5, 0.1])
    file.write_text("time,delay\n0,0.5\n1,0.1\n")
    (tmp_path / "net.yaml").write_text("field:\n  msg_delay: latency.csv\n")
    for told in (f"msg_delay={file}", f"field.msg_delay={file}", str(tmp_path / "net.yaml")):
        schedule = with_settings(None, [told])
        assert (schedule["field"] if "field" in schedule else schedule["*"]).msg_delay == replayed
    assert parsed_axis(f"msg_delay=0,{file}") == ("msg_delay", (0.0, replayed))
    monkeypatch.chdir(tmp_path)
    assert parsed_axis("msg_delay=field:latency.csv/system:1") == ("msg_delay", ({"field": replayed, "system": 1.0},))
    with pytest.raises(DataError, match=r"none\.csv"):
        parsed_axis("msg_delay=none.csv")
    with pytest.raises(ScheduleError, match=r"none\.csv"):
        with_settings(None, ["msg_delay=none.csv"])


def test_conditions_of_a_sweep_may_come_from_data() -> None:
    from heron_env.lab import Condition

    long = Empirical([n / 7 for n in range(100)])
    conditions = [
        Condition(loss=LOSSES),
        Condition(loss=replace(LOSSES, period=3.0)),
        Condition(msg_delay=BURSTS, act_delay=long, jitter=0.1),
        Condition(msg_delay={"field": BURSTS, "system": 0.5}),
        Condition(act_delay=replace(long, delays=long.delays[1:])),
        Condition(act_delay=long),
    ]
    assert len({condition.name for condition in conditions}) == len(conditions)
    assert conditions[0].name == "loss=gilbert_elliott[0.1,0.3,0.8,0.05,2.0]"
    assert re.fullmatch(r"act_delay=empirical\[mean=7.07,[0-9a-f]{16}\]", conditions[-1].name)
    for condition in conditions:
        kept = json.loads(json.dumps({"name": condition.name, **condition.to_dict()}))
        assert Condition.from_dict(kept) == condition
    env = make("heron/BatteryGrid-v0", num_batteries=2)
    assert conditions[3].schedule(env)["battery_1"].msg_delay == BURSTS
    assert conditions[3].schedule(env)[env.hierarchy.ids[0]].msg_delay == 0.5
    with pytest.raises(ScheduleError, match="is for losses"):
        Condition(msg_delay=LOSSES)
    with pytest.raises(ScheduleError, match="must be a number, got Markov"):
        Condition(jitter=BURSTS)


def test_a_sweep_runs_and_is_read_back_with_data(tmp_path: Path) -> None:
    from heron_env.lab import Sweep, along, read_sweep

    small = {"num_batteries": 2, "max_steps": 3}
    sweep = Sweep.of(
        "heron/BatteryGrid-v0", {"random": "random"}, along(loss=(0.0, 0.2, LOSSES)), cases=2, options=small
    )
    result = sweep.run(tmp_path / "sweep")
    amounts = [amount for amount, _ in result.along("random", "loss")]
    assert amounts == [0.0, 0.2, LOSSES.mean]
    again = read_sweep(tmp_path / "sweep")
    assert [c.name for c in again.sweep.conditions] == [c.name for c in result.sweep.conditions]
    assert [p.values for p in again.points] == [p.values for p in result.points]


def test_the_published_network_is_what_its_source_says() -> None:
    from heron_env.lab.sweep.presets import in_flight_losses, preset

    losses = in_flight_losses(60.0)
    assert losses == GilbertElliott(0.045, 0.29, 0.95, 0.01, 60.0)
    assert losses.mean == pytest.approx(0.1363, abs=1e-4)
    ideal, alike, bursts, whole = preset("bursts").conditions(60.0)
    assert (ideal.causes, bursts.loss, whole.loss, whole.msg_delay) == ({}, losses, losses, 0.25)
    assert alike.loss == round(losses.mean, 6)
