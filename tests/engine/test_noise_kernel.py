"""Compiled observation noise gives the bits of ColumnNoise.add_noise, in any block, law, lane and order of places."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numba
import numpy as np
import pytest

from heron_env.engine import draw_kernel, tables
from heron_env.observability.noise import ColumnNoise, Moment

NEVER = 2**64 - 1
SEEDS = np.array([3, 2**40 + 7, 2**64 - 1, 0], dtype=np.uint64)
_njit: Any = numba.njit


@pytest.fixture(scope="module")
def disturb() -> Callable[..., None]:
    """noise_row over all lanes."""

    @_njit(error_model="numpy")
    def rows(t, out, seeds, episode, turn, at, columns, keys, reach, low, high, law, kept, moments):  # type: ignore[no-untyped-def]
        for lane in range(len(t)):
            b = np.uintp(lane)
            draw_kernel.noise_row(
                t, b, out, seeds[b], episode, turn, at, columns, keys, reach, low, high, law, kept, moments
            )  # fmt: skip

    return rows  # type: ignore[no-any-return]


class Case(NamedTuple):
    truth: Any
    out: Any
    noise: ColumnNoise
    columns: Any
    at: Any

    def arrays(self) -> tuple[Any, ...]:
        """As noise_row takes them, from `at` on."""
        noise = self.noise
        law = (noise.additive * tables.ADDITIVE + noise.integer * tables.INTEGER).astype(np.uint8)
        reach = np.array(noise.reach)
        return self.at, self.columns, noise.keys, reach, noise.low, noise.high, law


def case(elements: int, *, scattered: bool, laws: bool) -> Case:
    """Random values, keys, factors from small to absurd, bounds; places in order, with gaps if `scattered`."""
    rng = np.random.default_rng(elements)
    truth = rng.normal(0.0, 3.0, (len(SEEDS), elements + 3))
    places = rng.permutation(2 * elements)[:elements] if scattered else np.arange(elements) + 2
    keys = rng.integers(0, 2**64, elements, dtype=np.uint64)
    factors = rng.choice([0.01, 0.3, 3.0, 250.0], elements)
    low, high = rng.choice([-np.inf, -5.0, 0.0], elements), rng.choice([np.inf, 5.0], elements)
    whole = laws & (rng.random(elements) < 0.3)
    additive = laws & (rng.random(elements) < 0.5) & np.isfinite(high - low)
    noise = ColumnNoise(np.arange(elements), keys, factors, additive, low, high, whole)
    columns = rng.integers(0, elements + 3, elements).astype(np.uint32)
    out = np.full((len(SEEDS), 2 * elements + 2), 7.0, dtype=np.float32)
    return Case(truth, out, noise, columns, np.sort(places).astype(np.uint32))


@pytest.mark.parametrize(
    ("elements", "laws", "scattered", "keep"),
    [
        (1, False, False, True),
        (37, True, True, False),
        (draw_kernel.BLOCK, True, False, True),
        (2 * draw_kernel.BLOCK + 13, True, True, True),
        (2 * draw_kernel.BLOCK + 13, False, False, False),
    ],
)
def test_bits_are_those_of_column_noise(
    disturb: Callable[..., None], elements: int, laws: bool, scattered: bool, keep: bool
):
    given = case(elements, scattered=scattered, laws=laws)
    kept = np.zeros((len(SEEDS), elements if keep else 0), dtype=np.uint64)
    moments = np.full((len(SEEDS), 2), NEVER, dtype=np.uint64)
    for episode, turn in ((0, 0), (0, 1), (1, 0), (1, 2**33), (0, 0)):
        disturb(given.truth, given.out, SEEDS, np.uint64(episode), np.uint64(turn), *given.arrays(), kept, moments)
        for b, seed in enumerate(SEEDS.tolist()):
            expected = given.truth[b, given.columns]
            given.noise.add_noise(expected, Moment(seed, episode, turn))
            assert np.array_equal(given.out[b, given.at].view(np.uint32), expected.astype(np.float32).view(np.uint32))
    others = np.delete(given.out, given.at, axis=1)
    assert (others == 7.0).all(), "only the noisy elements are written"


def test_kept_keys_follow_a_lane_to_another_seed(disturb: Callable[..., None]):
    given = case(20, scattered=False, laws=False)
    kept, moments = np.zeros((4, 20), dtype=np.uint64), np.full((4, 2), NEVER, dtype=np.uint64)
    disturb(given.truth, given.out, SEEDS, np.uint64(0), np.uint64(5), *given.arrays(), kept, moments)
    first = given.out.copy()
    turned = SEEDS[::-1].copy()
    disturb(given.truth, given.out, turned, np.uint64(0), np.uint64(5), *given.arrays(), kept, moments)
    assert not np.array_equal(given.out, first)
    disturb(given.truth, given.out, SEEDS, np.uint64(0), np.uint64(5), *given.arrays(), kept, moments)
    assert np.array_equal(given.out, first)
