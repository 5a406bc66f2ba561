"""Compiled for vectors, functions give in each lane the bits that they give alone, and say where one of them fails."""

import math
from typing import Any

import numba
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tank_world import Keeper, Tanks, Wave

from heron_env import BatchEnv, SystemAgent
from heron_env.engine.arrays import LANES
from heron_env.engine.vector.compiling import converter
from heron_env.engine.vector.types import ALL, VectorArray, types
from heron_env.errors import InvalidAction, RuleError

pytestmark = pytest.mark.e2e

SCALE = (0.5, 2.0, 4.0)


def branches(x: Any, y: Any, out: Any) -> None:
    z = 1.0
    if x[0] > 0.0:
        z = x[0]
        if y[0] > x[0]:
            z += y[0]
        elif y[0] < -1.0:
            z = -z / y[0]
    else:
        z = z * 0.5 if y[0] > 0.0 and not x[0] < -2.0 else z - 3
    out[0] = z


@numba.njit
def leaves(x: float, y: float) -> float:
    if x < 0.0:
        return x * y
    if y != 0.0:
        return x / y
    return 1


def calls(x: Any, y: Any, out: Any) -> None:
    out[0] = leaves(x[0], y[0]) + (leaves(y[0], x[0]) if x[0] > y[0] else 7.0)


def turns(x: Any, y: Any, out: Any) -> None:
    total, count = 0.0, 0
    for k in range(5):
        if x[0] * k > y[0]:
            continue
        total += math.exp(-abs(x[0]) * k)
        count += 1
    left = x[0]
    while left > 0.5 and count < 40:
        left *= 0.5
        count += 1
    out[0] = total * count + left


def functions(x: Any, y: Any, out: Any) -> None:
    a, b = x[0], y[0]
    c = math.sqrt(abs(a)) + math.log1p(abs(b)) - math.tanh(a) + np.floor(b) + np.rint(a * 3.0) + a**2 + abs(b) ** 0.5
    c += math.sin(a) * math.cos(b) + math.hypot(a, b) + float(int(a)) + round(b)
    out[0] = c + min(a, b) - max(a, 0.0) + (a > b) * 2.0 + int(b) % 3 + int(a) // 2 + (a % 2.5)


def places(x: Any, y: Any, out: Any) -> None:
    k = int(abs(x[0]))
    out[0] = SCALE[k] if k < 3 else y[k % 2]


def parts(x: Any, y: Any, out: Any) -> None:
    out[0] = y.mean() + y[1:].sum() + y[-1:].sum() * 2.0 + y[::-1].sum() + y[:1][0] + len(y[5:])
    out[1] = (x[0] or 10.0) + (x[0] and y[0]) + min(x[0], y[0], y[1]) - max(1.0, x[0], y[1])


def truths(x: Any, y: Any, out: Any) -> None:
    a, b = x[0] > 0.0, y[0] > 0.0
    out[0] = 1.0 * (a < b) + 2.0 * max(a, b) + 4.0 * (a >= b) + 8.0 * (y[1] != 0.0 and x[0] / y[1] > 1.0)
    for k in range(5):
        out[1] += SCALE[k] if k < 3 else 0.25
        if k < 3 and SCALE[k] > 0.6:
            out[1] += 1.0


WORK = [branches, calls, turns, functions, places, parts, truths]
NUMBERS = st.one_of(st.floats(-4.0, 4.0), st.sampled_from([0.0, -0.0, 1.0, -2.0, 2.5, 1e-300, 3.0]))


@numba.extending.intrinsic
def _vectors(context: Any, array: Any) -> Any:
    """A numpy array `[columns, LANES]` as an array of vectors."""
    from heron_env.engine.vector import elements

    made = VectorArray(types.float64, 1)

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        given = context.make_array(array)(context, builder, value=args[0])
        columns = builder.extract_value(given.shape, 0)
        return elements.vector_array(context, builder, made, given.data, [columns], [columns.type(1)])

    return made(array), build


@pytest.fixture(scope="module")
def compiled() -> dict[str, Any]:
    convert, found = converter(), {}
    for function in WORK:
        scope: dict[str, Any] = {"many": convert.value(function), "_vectors": _vectors, "ALL": ALL}
        exec("def run(x, y, out):\n    many(_vectors(x), _vectors(y), _vectors(out), ALL)", scope)
        found[function.__name__] = numba.njit(scope["run"]), numba.njit(function, error_model="numpy")
    return found


@pytest.mark.parametrize("name", [function.__name__ for function in WORK])
@given(rows=st.lists(st.tuples(NUMBERS, NUMBERS, NUMBERS), min_size=LANES, max_size=LANES))
def test_each_lane_has_the_bits_of_the_function_alone(name: str, rows: Any, compiled: dict[str, Any]) -> None:
    many, one = compiled[name]
    x = np.array([[row[0] for row in rows]] * 2)
    y = np.array([[row[1] for row in rows], [row[2] for row in rows]])
    out, alone = np.zeros((2, LANES)), np.zeros((2, LANES))
    many(x, y, out)
    for lane in range(LANES):
        own = np.zeros(2)
        one(np.ascontiguousarray(x[:, lane]), np.ascontiguousarray(y[:, lane]), own)
        alone[:, lane] = own
    assert out.tobytes() == alone.tobytes(), f"{out.tolist()} and {alone.tolist()}"


def tanks(lanes: int, **options: Any) -> BatchEnv:
    def build() -> Tanks:
        return Tanks(SystemAgent("system", Keeper("keeper_1"), Keeper("keeper_2")), max_steps=20, compile=True)

    batch = BatchEnv(build, lanes, threads=1, **options)
    batch.reset(seed=3)
    return batch


def given(size: Any) -> dict[str, Any]:
    return {"keeper": np.asarray(size, dtype=np.float64).reshape(-1, 1, 1).repeat(2, axis=1)}


@pytest.mark.parametrize(
    ("lanes", "size", "says"),
    [
        (8, 0.0, "division by zero"),
        (13, 0.25, "is not finite: inf"),
        (21, 3.0, "index 3 is out of bounds"),
        (13, -1.0, "division by zero"),
        (13, 4.5, "Keeper.advance"),
    ],
)
def test_what_fails_in_one_lane_is_said_of_it_alone(lanes: int, size: float, says: str) -> None:
    batch, alone = tanks(lanes), tanks(lanes)
    alone._engine.lanes.in_tiles = False  # type: ignore[attr-defined]
    for one in (batch, alone):
        one.step(given(np.linspace(0.5, 0.9, lanes)))
    sizes = np.full(lanes, 1.5)
    sizes[lanes - 2] = size
    told = []
    for one in (batch, alone):
        with pytest.raises(RuleError) as caught:
            one.step(given(sizes))
        told.append(str(caught.value))
    assert told[0] == told[1] and f"lane {lanes - 2}" in told[0]
    assert says in told[0] or says.startswith("index") or says.startswith("is not")
    assert batch._engine.lanes.tiled  # type: ignore[attr-defined]


def test_an_illegal_action_changes_no_lane() -> None:
    batch = tanks(16)
    before = batch._engine.truth.copy()  # type: ignore[attr-defined]
    sizes = np.full(16, 1.5)
    sizes[11] = 7.0
    with pytest.raises(InvalidAction, match="lane 11"):
        batch.step(given(sizes))
    assert np.array_equal(before, batch._engine.truth)  # type: ignore[attr-defined]


def test_lanes_that_stand_still_stay_what_they_are() -> None:
    batch = tanks(16, autoreset="disabled")
    for _ in range(2):
        batch.step(given(np.where(np.arange(16) % 3 == 0, 0.05, 1.0)))
    lanes = batch._engine.lanes  # type: ignore[attr-defined]
    ended, truth, shown = batch._stopped, lanes.arrays.truth.copy(), lanes.published.observations.copy()
    assert ended.any() and not ended.all()
    lanes.arrays.actions[:] = 0.9
    told = lanes.step()
    for before, now in ((truth, lanes.arrays.truth), (shown, told.observations)):
        assert np.array_equal(before[ended], now[ended]) and (before[~ended] != now[~ended]).any(axis=1).all()
    assert not told.rewards[ended].any() and told.rewards[~ended].all()


def test_rules_that_vectors_do_not_know_run_lane_by_lane() -> None:
    def build() -> Wave:
        return Wave(SystemAgent("system", Keeper("keeper_1"), Keeper("keeper_2")), max_steps=5, compile=True)

    batch, alone = (BatchEnv(build, 16, threads=1) for _ in range(2))
    alone._engine.lanes.in_tiles = False  # type: ignore[attr-defined]
    for one in (batch, alone):
        one.reset(seed=3)
    for k in range(7):
        told = [one.step(given(np.linspace(0.5, 1.2, 16) + k / 9)) for one in (batch, alone)]
        assert told[0][0]["keeper"].tobytes() == told[1][0]["keeper"].tobytes()
    lanes = batch._engine.lanes  # type: ignore[attr-defined]
    assert "physics" in lanes.not_in_tiles and not lanes.tiled


def asked(f: Any, x: Any) -> Any:
    return f(x)


def test_a_function_that_is_a_variable_is_refused_for_it_would_lose_its_mask() -> None:
    with pytest.raises(RuleError, match=r"`f\(x\)`: a function that is a variable can't be converted"):
        converter().function(asked)


def test_what_was_handed_out_stays_for_the_next_step_whatever_was_refused_between() -> None:
    batch = tanks(16)
    first = batch.step(given(np.ones(16)))[0]
    kept = {name: values.copy() for name, values in first.items()}
    with pytest.raises(InvalidAction):
        batch.step(given(np.full(16, 9.0)))
    batch.step(given(np.full(16, 1.2)))
    assert all(np.array_equal(first[name], kept[name]) for name in kept)
