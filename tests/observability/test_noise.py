"""The noise: its distribution over 10,000 turns, and what it depends on (N1 to N5), in whole environments.

Statistics are compared with the analytic values of the law within 5 standard errors: a correct law would fail one of
these comparisons by chance with a probability of 6e-7. Seeds are fixed, so a test that passes goes on passing.
"""

import math
import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from enum import IntEnum
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from heron_env import (
    Continuous,
    CoordinatorAgent,
    FeatureProvider,
    FieldAgent,
    HeronEnv,
    NoiseKey,
    SystemAgent,
    apply_noise,
    quantity,
)
from heron_env.errors import ConfigError
from heron_env.observability.noise import Moment, noise_uniform

TURNS = 10_000
SIGMAS = 5.0
IDS = ("a_1", "a_2", "b_1", "b_2")


class Gauge(FeatureProvider):
    visibility = ("owner",)
    level: float = quantity(default=2.0, low=-10.0, high=10.0)
    free: float = quantity(default=-3.0)
    count: int = quantity(default=10, low=0, high=1000)
    cells: np.ndarray = quantity(default=1.0, low=-5.0, high=5.0, shape=(3,))
    lit: bool = quantity(default=True)
    colour: int = quantity(default=2, categories=("red", "green", "blue"))
    serial: float = quantity(default=4.0, noisy=False)


class Ties(FeatureProvider):
    value: int = quantity(default=2**23, low=0, high=2**24)


class Price(FeatureProvider):
    visibility = ()
    value: float = quantity(default=0.3, low=0.0, high=2.0)


class Meter(FieldAgent):
    features = (Gauge,)
    action = Continuous(-1.0, 1.0)

    def apply_action(self) -> None:
        self.state.features[Gauge].level += 0.1 * float(self.action.c[0])


class Tied(FieldAgent):
    features = (Ties,)
    action = Continuous(-1.0, 1.0)


class Area(CoordinatorAgent):
    features = (Gauge,)


class Grid(HeronEnv):
    global_features = (Price,)


def all_see_all(factor: float, law: str = "multiplicative") -> dict[str, Any]:
    return {"default": {"level": "insider", "noise": factor, "law": law}}


def grid(
    ids: Sequence[str] = IDS, config: Mapping[str, Any] | None = None, area: int | None = None, **more: Any
) -> HeronEnv:
    """Meters of these ids, in this order; the first `area` of them below an area."""
    meters = [Meter(agent) for agent in ids]
    below = [] if area is None else [Area("area_1", *meters[:area])]
    config = all_see_all(0.2) if config is None else config
    return Grid(SystemAgent("root", *below, *meters[area or 0 :]), observability=config, max_steps=5, **more)


def seen(env: HeronEnv, agent: str, moment: Moment) -> dict[str, float]:
    """What an agent sees at a moment, by name; its own under its own id too."""
    names = [name if name.count(".") == 2 else f"{agent}.{name}" for name in env.observation_names(agent)]
    vector = env.simulation.model.plan.vector(env.hierarchy.index[agent], env.simulation.truth, moment)
    return dict(zip(names, vector.tolist(), strict=True))


@cache
def over_turns(factor: float, seed: int = 0, episode: int = 0) -> dict[str, Any]:
    """What a_1 sees in 10,000 turns: {name: float64 [turns]}."""
    env = grid(config=all_see_all(factor))
    env.reset(seed=seed)
    view = env.simulation.model.plan.views[env.hierarchy.index["a_1"]]
    rows = [view.read(env.simulation.truth, Moment(seed, episode, turn)) for turn in range(TURNS)]
    return dict(zip(view.names, np.array(rows).T, strict=True))


@cache
def drawn() -> Any:
    """u of all pairs and columns in 10,000 turns, float64 [columns, turns]."""
    env = grid()
    views = env.simulation.model.plan.views[1:3]
    found = [[view.noise.uniforms(Moment(3, 1, turn)) for turn in range(TURNS)] for view in views]
    return np.concatenate([np.array(rows).T for rows in found])


def near(measured: float, expected: float, error: float) -> None:
    assert abs(measured - expected) <= SIGMAS * error, f"{measured} instead of {expected} +- {error}"


# The law over 10,000 turns


@pytest.mark.parametrize(
    ("factor", "name", "value"),
    [(0.05, "level", 2.0), (0.9, "level", 2.0), (0.2, "free", -3.0), (0.9, "cells[1]", 1.0)],
)
def test_mean_and_spread_are_those_of_the_law(factor: float, name: str, value: float) -> None:
    found, reach = over_turns(factor)[f"b_1.Gauge.{name}"], abs(value) * factor
    near(found.mean(), value, reach / np.sqrt(3 * TURNS))
    near(found.std(), reach / np.sqrt(3), reach * np.sqrt(4 / 45) / (2 / np.sqrt(3)) / np.sqrt(TURNS))
    assert np.all(np.abs(found - value) <= reach * (1 + 1e-12))
    assert np.abs(found - value).max() > 0.99 * reach


def test_a_factor_above_one_stops_at_a_hundredth() -> None:
    found, a = over_turns(1.5)["b_1.Gauge.free"] / -3.0, 0.01
    low, high = 1.0 - 1.5, 1.0 + 1.5
    share = (a - low) / (high - low)  # of the turns in which it stops there
    mean = share * a + (high**2 - a**2) / 2 / (high - low)
    square = share * a**2 + (high**3 - a**3) / 3 / (high - low)
    near(found.mean(), mean, np.sqrt((square - mean**2) / TURNS))
    near((found == a).mean(), share, np.sqrt(share * (1 - share) / TURNS))
    assert found.min() == a


def test_a_huge_factor_stops_at_a_hundred_times() -> None:
    found = over_turns(1e4)["b_1.Gauge.free"] / -3.0
    assert set(np.round(found[(found == 0.01) | (found == 100.0)], 6)) == {0.01, 100.0}
    assert found.min() == 0.01
    assert found.max() == 100.0
    near((found == 100.0).mean(), 0.5 * (1 - 99e-4), 0.5 / np.sqrt(TURNS))


def test_additive_noise_is_relative_to_the_range() -> None:
    row = {"observer": "a_1", "target": "global", "level": "insider", "noise": 0.1, "law": "additive"}
    env = grid(config={"matrix": [row]})
    view = env.simulation.model.plan.views[env.hierarchy.index["a_1"]]
    found = np.array([view.read(env.simulation.truth, Moment(0, 0, turn))[-1] for turn in range(TURNS)])
    near(found.mean(), 0.3, 0.2 / np.sqrt(3 * TURNS))
    near(found.std(), 0.2 / np.sqrt(3), 0.2 * np.sqrt(4 / 45) / (2 / np.sqrt(3)) / np.sqrt(TURNS))


@pytest.mark.parametrize("factor", [0.05, 0.25, 0.9])
def test_whole_numbers_stay_whole_and_unbiased(factor: float) -> None:
    found, reach = over_turns(factor)["b_2.Gauge.count"], 10 * factor
    assert np.array_equal(found, np.round(found))
    steps = np.arange(np.floor(10 - reach) - 1, np.ceil(10 + reach) + 2)
    inside = np.clip(steps + 0.5, 10 - reach, 10 + reach) - np.clip(steps - 0.5, 10 - reach, 10 + reach)
    chance = inside / (2 * reach)  # of each whole number
    spread = np.sqrt((chance * (steps - 10) ** 2).sum())
    assert abs((chance * steps).sum() - 10) < 1e-12
    near(found.mean(), 10.0, spread / np.sqrt(TURNS))
    for step, p in zip(steps, chance, strict=True):
        near((found == step).mean(), p, np.sqrt(p * (1 - p) / TURNS) + 1e-4)


def test_halves_go_to_the_even_number() -> None:
    # A quarter of a range of 2**24 is 2**22, and u a multiple of 2**-23: every second turn lies on a half exactly.
    env = Grid(SystemAgent("root", Tied("a_1"), Tied("b_1")), observability=all_see_all(0.25, "additive"))
    view = env.simulation.model.plan.views[1]
    truth, moments = env.simulation.truth, [Moment(0, 0, turn) for turn in range(TURNS)]
    found = np.array([view.read(truth, moment)[1] for moment in moments])
    exact = 2**23 + 2**22 * np.array([view.noise.uniforms(moment)[0] for moment in moments])
    tie = exact % 1 == 0.5
    near(tie.mean(), 0.5, 0.5 / np.sqrt(TURNS))
    assert np.all(found[tie] % 2 == 0)
    assert np.all(np.abs(found - exact) <= 0.5)
    near((found - exact).mean(), 0.0, 0.5 * np.sqrt(0.5 / TURNS))


@pytest.mark.parametrize("factor", [0.2, 1e4])
def test_noise_leaves_flags_choices_and_noiseless_quantities_alone(factor: float) -> None:
    found = over_turns(factor)
    for name, value in (("lit", 1.0), ("colour", 2.0), ("serial", 4.0)):
        assert np.all(found[f"b_1.Gauge.{name}"] == value)


# Each number its own noise


def test_u_is_uniform() -> None:
    us = drawn()
    counts = np.array([np.histogram(u, bins=50, range=(-1.0, 1.0))[0] for u in us])
    squares = ((counts - TURNS / 50) ** 2 / (TURNS / 50)).sum(axis=1)  # chi-square, 49 degrees: 49 +- 9.9
    near(squares.mean(), 49.0, np.sqrt(2 * 49 / len(us)))
    near(us.mean(), 0.0, 1 / np.sqrt(3 * us.size))


def test_observers_targets_fields_and_elements_have_noise_of_their_own() -> None:
    us = drawn()
    assert len(us) == 2 * (3 * 6 + 1)  # 2 observers: 3 others with 6 noisy numbers each, and the price
    together = np.corrcoef(us)[np.triu_indices(len(us), 1)]  # 703 pairs: 5.5 errors, 3e-5 by chance for all of them
    assert np.abs(together).max() < 5.5 / np.sqrt(TURNS)
    assert len({u.tobytes() for u in us}) == len(us)


@pytest.mark.parametrize("part", NoiseKey._fields)
def test_every_part_of_the_key_counts(part: str) -> None:
    first = NoiseKey("a_1", "b_1", "Gauge.level")
    changed = [
        first._replace(**{part: f"x{i}" if isinstance(getattr(first, part), str) else i + 1}) for i in range(999)
    ]
    us = np.array([noise_uniform(key) for key in changed])
    assert noise_uniform(first) not in us
    assert len(np.unique(us)) == 999
    near(us.mean(), 0.0, 1 / np.sqrt(3 * 999))


# Episodes (N5)


def test_an_episode_has_its_noise_and_a_seed_begins_with_episode_0() -> None:
    env, other = grid(), grid()
    first, second, third = env.reset(seed=6)[0], env.reset()[0], env.reset()[0]
    assert len({episode["a_1"].tobytes() for episode in (first, second, third)}) == 3
    again = other.reset(seed=6)[0]
    assert again["a_1"].tobytes() == first["a_1"].tobytes()
    expected = seen(env, "a_1", Moment(6, 2, 0))
    assert third["a_1"].tolist() == list(expected.values())
    assert env.reset(seed=7)[0]["a_1"].tobytes() != first["a_1"].tobytes()


# One number at a time


@given(
    st.one_of(st.floats(-1e6, 1e6), st.integers(-(10**6), 10**6)),
    st.floats(0.0, 3.0),
    st.sampled_from(["multiplicative", "additive"]),
    st.tuples(st.integers(0, 2**70), st.integers(0, 99), st.integers(0, 2**40)),
)
def test_one_number_and_columns_give_the_same_bits(
    value: float, factor: float, law: str, moment: tuple[int, int, int]
) -> None:
    kind = int if isinstance(value, int) else float
    body = {"x": quantity(default=value, low=-2e6, high=2e6), "__annotations__": {"x": kind}}
    feature = type("Probe", (FeatureProvider,), body)
    agent = type("Probed", (FieldAgent,), {"features": (feature,), "action": Continuous(-1.0, 1.0)})
    env = HeronEnv(SystemAgent("root", agent("a"), agent("b")), observability=all_see_all(factor, law))
    column = env.simulation.model.plan.views[1].read(env.simulation.truth, Moment(*moment))[1]
    one = apply_noise(value, factor, NoiseKey("a", "b", "Probe.x", 0, *moment), low=-2e6, high=2e6, law=law)
    assert column.tobytes() == np.float64(one).tobytes()


class Colour(IntEnum):
    """A category that happens to be an int."""

    BLUE = 2


def test_what_is_no_number_is_returned_as_it_is() -> None:
    for value in [True, False, np.True_, None, "text", ("a", 1), Colour.BLUE]:
        assert apply_noise(value, 0.5, NoiseKey("a", "b", "F.x")) is value


def test_numbers_of_numpy_are_numbers() -> None:
    for value in [np.int64(40), np.float32(0.5), np.float64(0.5)]:
        key = NoiseKey("a", "b", "F.x")
        plain = int(value) if isinstance(value, np.integer) else float(value)
        assert apply_noise(value, 0.5, key) == apply_noise(plain, 0.5, key) != value


def test_numbers_of_other_kinds_are_not_seen_clearly_either() -> None:
    for value in [Decimal("2.5"), Fraction(5, 2), 2.5 + 0j, np.complex128(2.5)]:
        key = NoiseKey("a", "b", "F.x")
        assert apply_noise(value, 0.5, key) == apply_noise(2.5, 0.5, key) != 2.5


def test_noise_that_means_nothing_is_refused() -> None:
    for arguments, message in [
        ({"noise_factor": math.nan}, "apply_noise(noise_factor=nan): must be a number >= 0"),
        ({"noise_factor": -0.1}, "apply_noise(noise_factor=-0.1): must be a number >= 0"),
        ({"law": "aditive"}, "apply_noise(law='aditive'): must be one of ('multiplicative', 'additive'). Did you mean"),
        (
            {"seed_components": ("a", "b")},
            "apply_noise(seed_components=('a', 'b')): must be a NoiseKey; write NoiseKey(",
        ),
    ]:
        usual = {"value": 1.0, "noise_factor": 0.5, "seed_components": NoiseKey("a", "b", "F.x")}
        with pytest.raises(ConfigError, match=re.escape(message)):
            apply_noise(**{**usual, **arguments})


@pytest.mark.parametrize("law", ["multiplicative", "additive"])
def test_boundless_noise_stays_within_the_bounds_without_a_warning(law: str) -> None:
    body = {"x": quantity(default=1e307, low=0.0, high=1.5e308), "__annotations__": {"x": float}}
    agent = type(
        "Probed", (FieldAgent,), {"features": (type("Vast", (FeatureProvider,), body),), "action": Continuous(-1, 1)}
    )
    env = HeronEnv(SystemAgent("root", agent("a"), agent("b")), observability=all_see_all(1e308, law))
    for turn in range(50):
        assert 0.0 <= env.simulation.model.plan.views[1].read(env.simulation.truth, Moment(0, 0, turn))[1] <= 1.5e308


def test_a_range_beyond_float64_is_no_range() -> None:
    body = {"x": quantity(default=0.0, low=-1.5e308, high=1.5e308), "__annotations__": {"x": float}}
    agent = type(
        "Probed", (FieldAgent,), {"features": (type("Vaster", (FeatureProvider,), body),), "action": Continuous(-1, 1)}
    )
    with pytest.raises(ConfigError, match="additive noise is relative to a finite range"):
        HeronEnv(SystemAgent("root", agent("a"), agent("b")), observability=all_see_all(0.1, "additive"))


def test_moments_of_numpy_are_moments() -> None:
    env = grid()
    assert seen(env, "a_1", Moment(np.int64(5), np.int64(1), np.uint32(3))) == seen(env, "a_1", Moment(5, 1, 3))


def test_additive_noise_without_a_range_is_refused() -> None:
    message = "Gauge.free has the bounds [-inf, inf]: additive noise is relative to a finite range; declare both bounds"
    for enabled in (True, False):
        with pytest.raises(ConfigError, match=re.escape(message)):
            grid(config={**all_see_all(0.1, "additive"), "enabled": enabled})
    with pytest.raises(ConfigError, match=re.escape(message)):
        apply_noise(1.0, 0.1, NoiseKey("a", "b", "Gauge.free"), law="additive")
    grid(config=all_see_all(0.0, "additive"))  # no noise, no range needed
