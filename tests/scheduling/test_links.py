"""T7, T8: delays and losses are pure functions of (seed, episode, agent, purpose, cause, leg, number)."""

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from heron_env import ScheduleConfig
from heron_env.testing import clock
from heron_env.testing.clock import SECOND, Leg, Link

NOISY = {"jitter_type": "lognormal", "jitter_ratio": 0.5, "tick_jitter_ratio": 0.2, "loss": 0.3}
LONG = 1000 * SECOND
GOLDEN_DELAYS = [427_445_903, 1_073_178_976, 507_475_133]
GOLDEN_LOSSES = [0, 1, 12, 13, 15, 18]


def link(agent: str = "battery_1", seed: int = 0, episode: int = 0, **fields: Any) -> Link:
    return clock.link(agent, ScheduleConfig(**fields), seed=seed, episode=episode)


def delays(of: Link, count: int = 4000, nominal: int = LONG) -> np.ndarray:
    return np.array([of.delay(nominal, "tick", Leg.OBSERVATION_REQUEST, n) for n in range(count)]) / nominal


def losses(of: Link, count: int = 4000) -> list[bool]:
    return [of.lost("tick", Leg.OBSERVATION_REQUEST, n) for n in range(count)]


# The laws of the draws


def test_an_ideal_link_draws_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> float:
        raise AssertionError("a draw was computed")

    monkeypatch.setattr(Link, "draw", refuse)
    ideal = link(msg_delay=0.2, jitter_type="gaussian")
    assert ideal.ideal
    assert ideal.delay(7, "tick", 1, 0) == 7
    assert not ideal.lost("tick", 1, 0)
    assert ideal.tick_time(3, 0) == 3 * SECOND
    noisy = link(**NOISY)
    assert not noisy.ideal
    assert noisy.delay(0, "tick", 1, 0) == 0, "nothing to jitter"
    assert noisy.tick_time(0, 0) == 0, "tick 0 has no jitter"


def test_lognormal_delays_have_the_nominal_mean_and_the_given_spread() -> None:
    drawn = delays(link(jitter_type="lognormal", jitter_ratio=0.5), 20_000)
    assert abs(drawn.mean() - 1.0) < 4 * 0.5 / np.sqrt(drawn.size)
    s = np.sqrt(np.log(1.25))
    assert stats.kstest(drawn, stats.lognorm(s=s, scale=np.exp(-s * s / 2)).cdf).pvalue > 1e-3


def test_gaussian_delays_are_normal_and_cut_at_zero() -> None:
    drawn = delays(link(jitter_type="gaussian", jitter_ratio=0.1))
    assert stats.kstest(drawn, stats.norm(1.0, 0.1).cdf).pvalue > 1e-3
    wide = delays(link(jitter_type="gaussian", jitter_ratio=2.0))
    assert wide.min() == 0.0
    assert abs((wide == 0.0).mean() - stats.norm.cdf(-0.5)) < 4 * np.sqrt(0.25 / wide.size)


def test_uniform_delays_fill_their_interval() -> None:
    drawn = delays(link(jitter_type="uniform", jitter_ratio=0.4))
    assert stats.kstest(drawn, stats.uniform(0.6, 0.8).cdf).pvalue > 1e-3


def test_no_delay_is_below_the_minimum() -> None:
    floored = link(jitter_type="uniform", jitter_ratio=1.0, min_delay=0.4)
    assert delays(floored, nominal=SECOND).min() == 0.4
    assert link(min_delay=0.4).delay(0, "tick", 1, 0) == 0.4 * SECOND
    assert link(min_delay=0.4).delay(SECOND, "tick", 1, 0) == SECOND


@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_losses_have_their_probability(share: float) -> None:
    drawn = losses(link(loss=share))
    assert abs(np.mean(drawn) - share) <= 4 * np.sqrt(share * (1 - share) / len(drawn))


# Separate streams


@given(st.floats(0.0, 1.0), st.floats(0.0, 1.0), st.integers(0, 2**63))
def test_more_loss_loses_the_same_messages_and_more(a: float, b: float, seed: int) -> None:
    less, more = sorted((a, b))
    pairs = zip(losses(link(seed=seed, loss=less), 30), losses(link(seed=seed, loss=more), 30), strict=True)
    assert all(lost_more or not lost_less for lost_less, lost_more in pairs)


def test_every_part_of_the_identity_gives_draws_of_its_own() -> None:
    fields: dict[str, Any] = {"jitter_type": "uniform", "jitter_ratio": 1.0, "tick_jitter_ratio": 1.0}
    base = link(**fields)
    columns = [
        [base.delay(LONG, "tick", 1, n) for n in range(400)],
        [base.delay(LONG, "tick", 2, n) for n in range(400)],
        [base.delay(LONG, "cycle", 1, n) for n in range(400)],
        [link(seed=1, **fields).delay(LONG, "tick", 1, n) for n in range(400)],
        [link(episode=1, **fields).delay(LONG, "tick", 1, n) for n in range(400)],
        [link("battery_2", **fields).delay(LONG, "tick", 1, n) for n in range(400)],
        [link(tick_interval=1000.0, **fields).tick_time(n, 0) - n * LONG for n in range(1, 401)],
    ]
    for a, b in itertools.combinations(columns, 2):
        assert abs(np.corrcoef(a, b)[0, 1]) < 0.25


def test_loss_and_delay_are_independent() -> None:
    half = link(jitter_type="uniform", jitter_ratio=1.0, loss=0.5)
    assert abs(np.corrcoef(delays(half, 2000), losses(half, 2000))[0, 1]) < 5 / np.sqrt(2000)


def test_draws_are_the_same_on_every_machine() -> None:
    golden = link(seed=42, episode=3, **NOISY)
    assert [golden.delay(SECOND, "tick", 9, n) for n in range(3)] == GOLDEN_DELAYS
    assert [n for n in range(20) if golden.lost("tick", 9, n)] == GOLDEN_LOSSES


def test_jitter_of_delays_moves_no_tick_and_jitter_of_ticks_no_delay() -> None:
    late = link(jitter_type="gaussian", jitter_ratio=0.5)
    assert [late.tick_time(n, 0) for n in range(50)] == [n * SECOND for n in range(50)]
    unsteady = link(jitter_type="gaussian", tick_jitter_ratio=0.5)
    assert (delays(unsteady, 50) == 1.0).all()
    assert len({unsteady.tick_time(n, 0) - n * SECOND for n in range(50)}) > 40
    assert unsteady.ideal, "the link itself draws nothing"


def test_jittered_ticks_never_run_backwards() -> None:
    wild = link(tick_interval=1.0, phase=0.5, jitter_type="lognormal", tick_jitter_ratio=3.0)
    time = 0
    times = [time := wild.tick_time(number, time) for number in range(300)]
    assert times == sorted(times)
    assert times[0] == SECOND // 2
    assert all(abs(t - (n * SECOND + SECOND // 2)) <= SECOND // 2 for n, t in enumerate(times))
    assert len(set(times)) > 250


def test_a_jitter_far_below_nothing_is_no_delay() -> None:
    """Beyond what int64 holds, which links drawn one by one do not meet."""
    far = clock.link("a", ScheduleConfig(msg_delay=9e9, jitter_type="gaussian", jitter_ratio=2.0))
    drawn = [far.delay(9 * 10**18, "tick", Leg.OBSERVATION_REQUEST, n) for n in range(200)]
    assert min(drawn) == 0 and max(drawn) == 2**62
