"""Keyed draws in compiled code: what heron_env.seeding gives, bit for bit, and observation noise, which is made of it.

Noise has the bits of ColumnNoise.add_noise. A lane's noisy elements go through three loops, a block at a time:
uniforms, values, arithmetic. Each is vectorised by LLVM as long as it does nothing else and indexes nothing but whole
arrays; one loop for all three is not. Keys of the episode are kept from step to step where they fit, which leaves one
mixing of three.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import types
from numba.core import cgutils

from heron_env import seeding
from heron_env.engine.kernels import inlined, leaf, within
from heron_env.engine.linking import intrinsic
from heron_env.engine.tables import ADDITIVE, INTEGER

BLOCK = 512
"""Elements at a time: two blocks of them fit the fastest cache."""
LEAST, MOST = 0.01, 100.0
GOLDEN = np.uint64(seeding.GOLDEN)
_1, _11, _40 = np.uint64(1), np.uint64(11), np.uint64(40)
MIDDLE = (
    (2.5090809287301226727e3, 3.3430575583588128105e4, 6.7265770927008700853e4, 4.5921953931549871457e4,
     1.3731693765509461125e4, 1.9715909503065514427e3, 1.3314166789178437745e2, 3.3871328727963666080e0),
    (5.2264952788528545610e3, 2.8729085735721942674e4, 3.9307895800092710610e4, 2.1213794301586595867e4,
     5.3941960214247511077e3, 6.8718700749205790830e2, 4.2313330701600911252e1, 1.0),
)  # fmt: skip
OUTER = (
    (7.74545014278341407640e-4, 2.27238449892691845833e-2, 2.41780725177450611770e-1, 1.27045825245236838258e0,
     3.64784832476320460504e0, 5.76949722146069140550e0, 4.63033784615654529590e0, 1.42343711074968357734e0),
    (1.05075007164441684324e-9, 5.47593808499534494600e-4, 1.51986665636164571966e-2, 1.48103976427480074590e-1,
     6.89767334985100004550e-1, 1.67638483018380384940e0, 2.05319162663775882187e0, 1.0),
)  # fmt: skip
FARTHEST = (
    (2.01033439929228813265e-7, 2.71155556874348757815e-5, 1.24266094738807843860e-3, 2.65321895265761230930e-2,
     2.96560571828504891230e-1, 1.78482653991729133580e0, 5.46378491116411436990e0, 6.65790464350110377720e0),
    (2.04426310338993978564e-15, 1.42151175831644588870e-7, 1.84631831751005468180e-5, 7.86869131145613259100e-4,
     1.48753612908506148525e-2, 1.36929880922735805310e-1, 5.99832206555887937690e-1, 1.0),
)  # fmt: skip
"""Coefficients of the normal quantile: Wichura, "Algorithm AS 241", Applied Statistics 37 (1988)."""

mixed: Any = inlined(seeding.mixed)
"""seeding.mix: the text that numpy runs, compiled."""


@leaf
def key_with(x: Any, part: Any) -> Any:
    """seeding.key of the parts behind `x` (GOLDEN: none) and one more; of a name its hash."""
    return mixed((x ^ np.uint64(part)) + GOLDEN)


@leaf
def uniform(x: Any, number: Any) -> Any:
    """Element `number` of seeding.uniforms(x, ...), float64 in [0, 1)."""
    return np.float64(np.int64(mixed(x + (np.uint64(number) + _1) * GOLDEN) >> _11)) * 2.0**-53


@leaf
def ratio_of(r: Any, above: Any, below: Any) -> Any:
    """Two polynomials of degree 7, one by the other."""
    top, bottom = above[0], below[0]
    for k in range(1, 8):
        top, bottom = top * r + above[k], bottom * r + below[k]
    return top, bottom


@leaf
def standard_normal(u: Any) -> Any:
    """seeding.standard_normal."""
    p = u if u > 0.0 else 2.0**-54
    q = p - 0.5
    if math.fabs(q) <= 0.425:
        top, bottom = ratio_of(0.180625 - q * q, MIDDLE[0], MIDDLE[1])
        return top * q / bottom
    r = math.sqrt(-math.log(p if q <= 0.0 else 1.0 - p))
    if r <= 5.0:
        top, bottom = ratio_of(r - 1.6, OUTER[0], OUTER[1])
    else:
        top, bottom = ratio_of(r - 5.0, FARTHEST[0], FARTHEST[1])
    return -(top / bottom) if q < 0.0 else top / bottom


@intrinsic
def part_of(context: Any, array: Any, first: Any, size: Any) -> Any:
    """Elements `[first, first + size)` of an array `[n]`, uncounted; slicing would check signs, and not vectorise."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        struct = context.make_array(array)(context, builder, value=args[0])
        return _row(context, builder, signature, builder.gep(struct.data, [args[1]]), args[2])

    return types.Array(array.dtype, 1, "C")(array, types.uintp, types.uintp), build


@intrinsic
def row_of(context: Any, array: Any, b: Any, first: Any, size: Any) -> Any:
    """The same of row `b` of an array `[lanes, n]`."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        struct = context.make_array(array)(context, builder, value=args[0])
        width = cgutils.unpack_tuple(builder, struct.shape, 2)[1]
        at = builder.add(builder.mul(args[1], width), args[2])
        return _row(context, builder, signature, builder.gep(struct.data, [at]), args[3])

    return types.Array(array.dtype, 1, "C")(array, types.uintp, types.uintp, types.uintp), build


@intrinsic
def block_on_stack(context: Any) -> Any:
    """Room for BLOCK floats that lasts as long as the loop it is in; every thread has its own."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        kind = context.get_value_type(types.float64)
        size = context.get_constant(types.uintp, BLOCK)
        return _row(context, builder, signature, cgutils.alloca_once(builder, kind, size=size), size)

    return types.Array(types.float64, 1, "C")(), build


def _row(context: Any, builder: Any, signature: Any, data: Any, size: Any) -> Any:
    kind = signature.return_type
    row = context.make_array(kind)(context, builder)
    width = context.get_constant(types.intp, context.get_abi_sizeof(context.get_data_type(kind.dtype)))
    context.populate_array(
        row,
        data=data,
        shape=cgutils.pack_array(builder, [size]),
        strides=cgutils.pack_array(builder, [width]),
        itemsize=width,
        meminfo=None,
    )
    return row._getvalue()


@inlined
def keys_of_episode(keys: Any, seed: Any, episode: Any, cache: Any) -> None:
    """N2's keys `[n]` with seed and episode mixed in."""
    for j in range(len(keys)):
        cache[j] = mixed(mixed(keys[j] ^ seed) ^ episode)


@inlined
def uniforms_of_cached(cache: Any, turn: Any, u: Any) -> None:
    """u in [-1, 1), from keys of the episode."""
    for j in range(len(cache)):
        u[j] = np.float64(np.int64(mixed(cache[j] ^ turn) >> _40)) * 2.0**-23 - 1.0


@inlined
def uniforms_of(keys: Any, seed: Any, episode: Any, turn: Any, u: Any) -> None:
    """The same, from keys of no episode."""
    for j in range(len(keys)):
        x = mixed(mixed(mixed(keys[j] ^ seed) ^ episode) ^ turn)
        u[j] = np.float64(np.int64(x >> _40)) * 2.0**-23 - 1.0


@inlined
def multiplied(v: Any, u: Any, reach: Any, low: Any, high: Any) -> None:
    """The multiplicative law on values `v` `[n]`, in place."""
    for j in range(len(reach)):
        v[j] = within(v[j] * within(1.0 + reach[j] * u[j], LEAST, MOST), low[j], high[j])


@inlined
def by_law(v: Any, u: Any, reach: Any, low: Any, high: Any, law: Any) -> None:
    """Either law, and whole numbers, by the flags of each element."""
    for j in range(len(reach)):
        error = reach[j] * u[j]
        noisy = v[j] + error if law[j] & ADDITIVE else v[j] * within(1.0 + error, LEAST, MOST)
        v[j] = within(np.rint(noisy) + 0.0 if law[j] & INTEGER else noisy, low[j], high[j])


@inlined
def cache_keys(b: Any, seed: Any, episode: Any, keys: Any, cache: Any, moments: Any) -> None:
    """Bring the cached keys of lane `b` to this seed and episode, which `moments` `[lanes, 2]` remembers."""
    if moments[b, 0] != seed or moments[b, 1] != episode:
        keys_of_episode(keys, seed, episode, row_of(cache, b, np.uintp(0), np.uintp(len(keys))))
        moments[b, 0], moments[b, 1] = seed, episode


@inlined
def write_noisy(v: Any, out: Any, b: Any, at: Any, first: Any, size: Any, neighbours: Any) -> None:
    """A block of values to its elements of `out[b]`; `neighbours`: do all elements lie side by side?"""
    if neighbours:
        row = row_of(out, b, np.uintp(at[0]) + first, size)
        for j in range(len(row)):
            row[j] = v[j]
    else:
        places = part_of(at, first, size)
        for j in range(len(places)):
            out[b, places[j]] = v[j]


@inlined
def noise_row(
    t: Any, b: Any, out: Any, seed: Any, episode: Any, turn: Any, at: Any, columns: Any, keys: Any, reach: Any,
    low: Any, high: Any, law: Any, cache: Any, moments: Any,
) -> None:  # fmt: skip
    """Noise of one lane: elements `at` of `out[b]` become the noisy values of `columns` of `t[b]`.

    seed, episode, turn: uint64. at, columns: uint32 `[n]`, at ascending. keys: uint64; reach, low, high: float64; law:
    uint8, all `[n]`. cache: uint64 `[lanes, n]`, keys of the episode, with `moments` uint64 `[lanes, 2]`, at first all
    2**64 - 1; or `[lanes, 0]`, where they take too much memory.
    """
    n = np.uintp(len(at))
    if n == 0:
        return
    keeping = np.uintp(cache.shape[1]) == n
    if keeping:
        cache_keys(b, seed, episode, keys, cache, moments)
    neighbours = np.uintp(at[n - np.uintp(1)]) - np.uintp(at[0]) + np.uintp(1) == n
    u, v = block_on_stack(), block_on_stack()
    first = np.uintp(0)
    while first < n:
        size = min(np.uintp(BLOCK), n - first)
        if keeping:
            uniforms_of_cached(row_of(cache, b, first, size), turn, u)
        else:
            uniforms_of(part_of(keys, first, size), seed, episode, turn, u)
        read = part_of(columns, first, size)
        for j in range(len(read)):
            v[j] = t[b, read[j]]
        bounds = part_of(low, first, size), part_of(high, first, size)
        flags, some = part_of(law, first, size), np.uint8(0)
        for j in range(len(flags)):
            some |= flags[j]
        if some != 0:
            by_law(v, u, part_of(reach, first, size), bounds[0], bounds[1], flags)
        else:
            multiplied(v, u, part_of(reach, first, size), bounds[0], bounds[1])
        write_noisy(v, out, b, at, first, size, neighbours)
        first += size
