"""Observation noise in compiled code: the same bits as ColumnNoise.add_noise, at a third of the speed of copying.

A lane's noisy elements go through three loops, a block at a time: uniforms, values, arithmetic. Each is vectorised by
LLVM as long as it does nothing else and indexes nothing but whole arrays; one loop for all three is not. Keys of the
episode are kept from step to step where they fit, which leaves one mixing of three.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from numba.core import cgutils
from numba.extending import intrinsic

from heron_env.engine.draw_kernel import mixed
from heron_env.engine.kernels import lane
from heron_env.engine.observation_tables import ADDITIVE, WHOLE

_types: Any = numba.types
_ir: Any = cgutils
_intrinsic: Any = intrinsic
BLOCK = 512
"""Elements at a time: two blocks of them fit the fastest cache."""
LEAST, MOST = 0.01, 100.0
_40 = np.uint64(40)


@_intrinsic  # type: ignore[untyped-decorator]
def part_of(context: Any, array: Any, first: Any, size: Any) -> Any:
    """Elements `[first, first + size)` of an array `[n]`, uncounted; slicing would check signs, and not vectorise."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        given = context.make_array(array)(context, builder, value=args[0])
        return _row(context, builder, signature, builder.gep(given.data, [args[1]]), args[2])

    return _types.Array(array.dtype, 1, "C")(array, _types.uintp, _types.uintp), build


@_intrinsic  # type: ignore[untyped-decorator]
def row_of(context: Any, array: Any, b: Any, first: Any, size: Any) -> Any:
    """The same of row `b` of an array `[lanes, n]`."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        given = context.make_array(array)(context, builder, value=args[0])
        width = _ir.unpack_tuple(builder, given.shape, 2)[1]
        at = builder.add(builder.mul(args[1], width), args[2])
        return _row(context, builder, signature, builder.gep(given.data, [at]), args[3])

    return _types.Array(array.dtype, 1, "C")(array, _types.uintp, _types.uintp, _types.uintp), build


@_intrinsic  # type: ignore[untyped-decorator]
def block_on_stack(context: Any) -> Any:
    """Room for BLOCK floats that lasts as long as the loop it is in; every thread has its own."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        kind = context.get_value_type(_types.float64)
        size = context.get_constant(_types.uintp, BLOCK)
        return _row(context, builder, signature, _ir.alloca_once(builder, kind, size=size), size)

    return _types.Array(_types.float64, 1, "C")(), build


def _row(context: Any, builder: Any, signature: Any, data: Any, size: Any) -> Any:
    kind = signature.return_type
    row = context.make_array(kind)(context, builder)
    width = context.get_constant(_types.intp, context.get_abi_sizeof(context.get_data_type(kind.dtype)))
    context.populate_array(
        row,
        data=data,
        shape=_ir.pack_array(builder, [size]),
        strides=_ir.pack_array(builder, [width]),
        itemsize=width,
        meminfo=None,
    )
    return row._getvalue()


@lane
def keys_of_episode(keys: Any, seed: Any, episode: Any, kept: Any) -> None:
    """N2's keys `[n]` with seed and episode mixed in."""
    for j in range(len(keys)):
        kept[j] = mixed(mixed(keys[j] ^ seed) ^ episode)


@lane
def uniforms_of_kept(kept: Any, turn: Any, u: Any) -> None:
    """u in [-1, 1), from keys of the episode."""
    for j in range(len(kept)):
        u[j] = np.float64(np.int64(mixed(kept[j] ^ turn) >> _40)) * 2.0**-23 - 1.0


@lane
def uniforms_of(keys: Any, seed: Any, episode: Any, turn: Any, u: Any) -> None:
    """The same, from keys of no episode."""
    for j in range(len(keys)):
        x = mixed(mixed(mixed(keys[j] ^ seed) ^ episode) ^ turn)
        u[j] = np.float64(np.int64(x >> _40)) * 2.0**-23 - 1.0


@lane
def multiplied(v: Any, u: Any, reach: Any, low: Any, high: Any) -> None:
    """The multiplicative law on values `v` `[n]`, in place."""
    for j in range(len(reach)):
        factor = 1.0 + reach[j] * u[j]
        factor = LEAST if factor < LEAST else factor
        factor = MOST if factor > MOST else factor
        noisy = v[j] * factor
        noisy = low[j] if noisy < low[j] else noisy
        v[j] = high[j] if noisy > high[j] else noisy


@lane
def by_law(v: Any, u: Any, reach: Any, low: Any, high: Any, law: Any) -> None:
    """Either law, and whole numbers, by the flags of each element."""
    for j in range(len(reach)):
        error = reach[j] * u[j]
        factor = 1.0 + error
        factor = LEAST if factor < LEAST else factor
        factor = MOST if factor > MOST else factor
        noisy = v[j] + error if law[j] & ADDITIVE else v[j] * factor
        noisy = np.rint(noisy) + 0.0 if law[j] & WHOLE else noisy
        noisy = low[j] if noisy < low[j] else noisy
        v[j] = high[j] if noisy > high[j] else noisy


@lane
def keep_keys(b: Any, seed: Any, episode: Any, keys: Any, kept: Any, moments: Any) -> None:
    """Bring the kept keys of lane `b` to this seed and episode, which `moments` `[lanes, 2]` remembers."""
    if moments[b, 0] != seed or moments[b, 1] != episode:
        keys_of_episode(keys, seed, episode, row_of(kept, b, np.uintp(0), np.uintp(len(keys))))
        moments[b, 0], moments[b, 1] = seed, episode


@lane
def noise_row(
    t: Any, b: Any, out: Any, seed: Any, episode: Any, turn: Any, at: Any, columns: Any, keys: Any, reach: Any,
    low: Any, high: Any, law: Any, kept: Any, moments: Any,
) -> None:  # fmt: skip
    """Noise of one lane: elements `at` of `out[b]` become the noisy values of `columns` of `t[b]`.

    seed, episode, turn: uint64. at, columns: uint32 `[n]`, at ascending. keys: uint64; reach, low, high: float64; law:
    uint8, all `[n]`. kept: uint64 `[lanes, n]`, keys of the episode, with `moments` uint64 `[lanes, 2]`, at first all
    2**64 - 1; or `[lanes, 0]`, where they take too much memory.
    """
    n = np.uintp(len(at))
    if n == 0:
        return
    keeping = np.uintp(kept.shape[1]) == n
    if keeping:
        keep_keys(b, seed, episode, keys, kept, moments)
    gathered = np.uintp(at[n - np.uintp(1)]) - np.uintp(at[0]) + np.uintp(1) == n
    u, v = block_on_stack(), block_on_stack()
    first = np.uintp(0)
    while first < n:
        size = min(np.uintp(BLOCK), n - first)
        if keeping:
            uniforms_of_kept(row_of(kept, b, first, size), turn, u)
        else:
            uniforms_of(part_of(keys, first, size), seed, episode, turn, u)
        seen = part_of(columns, first, size)
        for j in range(len(seen)):
            v[j] = t[b, seen[j]]
        bounds = part_of(low, first, size), part_of(high, first, size)
        flags, some = part_of(law, first, size), np.uint8(0)
        for j in range(len(flags)):
            some |= flags[j]
        if some != 0:
            by_law(v, u, part_of(reach, first, size), bounds[0], bounds[1], flags)
        else:
            multiplied(v, u, part_of(reach, first, size), bounds[0], bounds[1])
        if gathered:
            told = row_of(out, b, np.uintp(at[0]) + first, size)
            for j in range(len(told)):
                told[j] = v[j]
        else:
            places = part_of(at, first, size)
            for j in range(len(places)):
                out[b, places[j]] = v[j]
        first += size
