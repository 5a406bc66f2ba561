"""Poisson processes of disturbances, and the types that say what a payload must hold."""

import pickle

import numpy as np
import pytest

from heron_env import Disturbance, DisturbanceType, poisson_disturbances
from heron_env.errors import ConfigError, ScheduleError


def faults(rate: float = 0.01, t_end: float = 10_000.0, seed: int = 0, name: str = "faults") -> list[Disturbance]:
    return poisson_disturbances(
        rate, t_end, lambda t, draw: Disturbance(t, "fault", {"size": draw("size")}), seed=seed, name=name
    )


def test_the_gaps_are_exponential_with_the_mean_that_the_rate_says() -> None:
    times = np.array([d.t for d in faults(t_end=400_000.0)])
    gaps = np.diff(times)
    assert len(gaps) > 3000
    assert gaps.mean() == pytest.approx(100.0, rel=0.06)
    assert gaps.std() == pytest.approx(100.0, rel=0.08)
    assert (times < 400_000.0).all()
    assert np.mean([d.payload["size"] for d in faults(t_end=400_000.0)]) == pytest.approx(0.5, abs=0.02)


def test_every_draw_has_its_key() -> None:
    longer, short = faults(t_end=20_000.0), faults()
    assert longer[: len(short)] == short == faults()
    assert faults(seed=1)[0].t != short[0].t != faults(name="others")[0].t
    sizes = [d.payload["size"] for d in longer]
    assert len(set(sizes)) == len(sizes), "every disturbance draws its own numbers"
    faster = [d.payload["size"] for d in faults(rate=0.02)]
    assert faster[: len(short)] == sizes[: len(short)], "the rate moves times, nothing else"


def test_nothing_at_rate_0_and_nothing_before_the_start() -> None:
    assert faults(rate=0.0) == []
    late = poisson_disturbances(0.1, 200.0, lambda t, draw: Disturbance(t, "fault"), seed=0, name="x", t_start=100.0)
    assert late
    assert all(100.0 < d.t < 200.0 for d in late)


@pytest.mark.parametrize("rate", [-1.0, float("nan"), float("inf"), "often", True])
def test_a_rate_is_a_number_from_0_on(rate: float) -> None:
    with pytest.raises(ConfigError, match=r"poisson_disturbances\(rate="):
        faults(rate=rate)


def test_a_process_has_a_finite_end() -> None:
    with pytest.raises(ScheduleError, match="t_end=inf"):
        faults(t_end=float("inf"))


def test_a_disturbance_is_frozen_data() -> None:
    one = Disturbance(1.5, "fault", {"size": 2.0}, True, 3.0)
    assert pickle.loads(pickle.dumps(one)) == one
    assert (one.ns, one.end_ns) == (1_500_000_000, 4_500_000_000)
    with pytest.raises(AttributeError):
        one.t = 2.0  # type: ignore[misc]


def test_defaults_fill_a_payload_and_do_not_replace_it() -> None:
    kind = DisturbanceType("A fault.", {"size": "kW", "place": "id"}, {"place": "here"})
    assert kind.filled(Disturbance(0.0, "fault", {"size": 1.0})) == {"place": "here", "size": 1.0}
    assert kind.filled(Disturbance(0.0, "fault", {"size": 1.0, "place": "there"}))["place"] == "there"


def test_a_maker_of_another_form_is_refused():
    for make in (len, lambda t: Disturbance(t, "fault"), 3):
        with pytest.raises(ConfigError, match=r"make=.*must be a function \(t, draw\) and a name"):
            poisson_disturbances(0.1, 200.0, make, seed=0, name="x")
