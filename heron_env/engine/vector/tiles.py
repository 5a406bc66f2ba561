"""Tiles: LANES environments through the phases that are compiled for vectors, and back into their rows.

A tile's arrays lie on the stack, `[columns][LANES]`; a table like that of all environments (arrays.py) says where. Rows
are transposed into it and, if nothing failed, back; where something did, the rows are as they were, and the caller runs
these environments one by one. Compiled once for an installation, from a copy of this file in the cache folder.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from heron_env.engine.arrays import LANE_ARRAYS, LANES, ROWS, VECTOR_AFFECT, VECTOR_FINISH, VECTOR_PHYSICS
from heron_env.engine.arrays import PLACE as PLACES
from heron_env.engine.kernels import call, leaf, number, phase, table
from heron_env.engine.vector.masks import failed_so_far

_I64, _FOUR = ir.IntType(64), ir.VectorType(ir.IntType(64), 4)
PLACE, WIDTH, FIRST, COUNT, SIZE, OFFSET = range(6)
"""Columns of `moves`: row of the array in the table, bytes of one of its rows, where in it the columns begin that are
moved (bytes), how many they are, bytes of an element, and where they lie in the tile (bytes). There is one for each
array, which moves nothing; behind them those up to `fills` go into the tile, those up to `moved` back."""
COLUMNS_AT, OUT_AT = PLACES["columns"], PLACES["out_observations"]
TABLE = -(-24 * ROWS // 64) * 64
"""Bytes of the table in front of a tile."""
EACH_BYTE = 0x0101010101010101


@intrinsic
def stack(context: Any, size: Any) -> Any:
    """Address of so many bytes on the stack of the caller."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        place = builder.alloca(ir.IntType(8), size=args[0])
        place.align = 64
        return builder.ptrtoint(place, _I64)

    return types.int64(types.int64), build


def _at(kind: Any) -> tuple[Any, Any]:
    """`get(address)` and `put(address, value)` of numbers of this type."""

    @intrinsic
    def get(context: Any, address: Any) -> Any:
        def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return builder.load(builder.inttoptr(args[0], context.get_value_type(kind).as_pointer()))

        return kind(types.int64), build

    @intrinsic
    def put(context: Any, address: Any, value: Any) -> Any:
        def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            builder.store(args[1], builder.inttoptr(args[0], args[1].type.as_pointer()))
            return context.get_dummy_value()

        return types.void(types.int64, kind), build

    return get, put


word, put_word = _at(types.int64)
byte, put_byte = _at(types.uint8)


@intrinsic
def turn(context: Any, source: Any, step: Any, target: Any, target_step: Any) -> Any:
    """Transpose 4 x 4 words: rows `step` bytes apart into rows `target_step` bytes apart."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        def place(start: Any, by: Any, k: int) -> Any:
            return builder.inttoptr(builder.add(start, builder.mul(by, _I64(k))), _FOUR.as_pointer())

        def mixed(one: Any, other: Any, order: list[int]) -> Any:
            return builder.shuffle_vector(one, other, ir.VectorType(ir.IntType(32), 4)(order))

        rows = [builder.load(place(args[0], args[1], k), align=8) for k in range(4)]
        even = [mixed(rows[k], rows[k + 1], [0, 4, 2, 6]) for k in (0, 2)]
        odd = [mixed(rows[k], rows[k + 1], [1, 5, 3, 7]) for k in (0, 2)]
        made = [mixed(one, other, order) for order in ([0, 1, 4, 5], [2, 3, 6, 7]) for one, other in (even, odd)]
        for k, row in enumerate(made):
            builder.store(row, place(args[2], args[3], k), align=8)
        return context.get_dummy_value()

    number = types.int64
    return types.void(number, number, number, number), build


@intrinsic
def show(context: Any, truth: Any, columns: Any, out: Any, step: Any, many: Any) -> Any:
    """Eight columns of a tile's truth into `many` float32 rows, `step` bytes apart; `columns`: where 8 numbers are."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        truth, columns, out, step, many = args
        singles, doubles = (ir.VectorType(kind, LANES) for kind in (ir.FloatType(), ir.DoubleType()))

        def mixed(one: Any, other: Any, order: list[int]) -> Any:
            return builder.shuffle_vector(one, other, ir.VectorType(ir.IntType(32), LANES)(order))

        rows = []
        for k in range(8):
            number = builder.load(builder.inttoptr(builder.add(columns, _I64(4 * k)), ir.IntType(32).as_pointer()))
            place = builder.add(truth, builder.mul(builder.zext(number, _I64), _I64(8 * LANES)))
            rows.append(builder.fptrunc(builder.load(builder.inttoptr(place, doubles.as_pointer()), align=64), singles))
        low, high, near, far = (
            [0, 8, 1, 9, 4, 12, 5, 13],
            [2, 10, 3, 11, 6, 14, 7, 15],
            [0, 1, 8, 9, 4, 5, 12, 13],
            [2, 3, 10, 11, 6, 7, 14, 15],
        )
        rows = [mixed(rows[k], rows[k + 1], order) for k in (0, 2, 4, 6) for order in (low, high)]
        rows = [mixed(rows[k + j], rows[k + j + 2], order) for k in (0, 4) for j in (0, 1) for order in (near, far)]
        halves = [0, 1, 2, 3, 8, 9, 10, 11], [4, 5, 6, 7, 12, 13, 14, 15]
        rows = [mixed(rows[k], rows[k + 4], order) for order in halves for k in range(4)]
        last = builder.sub(many, _I64(1))
        for k in reversed(range(LANES)):  # rows that miss are written to the last one, before it is
            row = builder.select(builder.icmp_signed("<", _I64(k), last), _I64(k), last)
            place = builder.inttoptr(builder.add(out, builder.mul(row, step)), singles.as_pointer())
            builder.store(rows[k], place, align=4)
        return context.get_dummy_value()

    number = types.int64
    return types.void(number, number, number, number, number), build


@leaf
def publish(D: Any, truth: Any, start: Any, many: Any) -> None:
    """Observations of a tile, without noise."""
    columns, count = word(D + 24 * COLUMNS_AT), table(D, "out_observations").shape[1]
    out = word(D + 24 * OUT_AT) + 4 * start * count
    for at in range(0, count, 8):
        c = min(at, count - 8)  # the last block shows some once more
        show(truth, columns + 4 * c, out + 4 * c, 4 * count, many)


@leaf
def alike(rows: Any, columns: Any) -> Any:
    """Are LANES rows of so many bytes the same? Compared eight bytes at a time, the last eight once more."""
    last = (LANES - 1) * columns - 8
    if last < 0:
        return False
    other = word(rows + last) ^ word(rows + last + columns)
    for at in range(0, last, 8):
        other |= word(rows + at) ^ word(rows + at + columns)
    return other == 0


@leaf
def fill(rows: Any, width: Any, columns: Any, size: Any, place: Any, many: Any) -> None:
    """`columns` elements of rows, `width` bytes apart, into a tile; the last of `many` stands for those that miss."""
    if many == LANES and width == size:
        for k in range(size):  # LANES elements are as many words
            put_word(place + 8 * k, word(rows + 8 * k))
    elif many == LANES and size == 8 and columns >= 4:
        for at in range(0, columns, 4):
            c = min(at, columns - 4)  # the last block takes some columns once more
            for half in range(0, LANES, 4):
                turn(rows + half * width + c * 8, width, place + (c * LANES + half) * 8, LANES * 8)
    elif many == LANES and size == 1 and alike(rows, columns):
        for c in range(columns):
            put_word(place + c * LANES, np.int64(byte(rows + c)) * EACH_BYTE)
    else:
        for c in range(columns):
            for k in range(LANES):
                at = rows + min(k, many - 1) * width + c * size
                if size == 8:
                    put_word(place + (c * LANES + k) * 8, word(at))
                else:
                    put_byte(place + c * LANES + k, byte(at))


@leaf
def empty(
    rows: Any, width: Any, columns: Any, size: Any, place: Any, over: Any, start: Any, many: Any, complete: Any
) -> None:  # fmt: skip
    """`columns` of a tile back into rows, `width` bytes apart; not of environments that stand still (`over`).

    `complete`: none does, and none misses. Bytes are moved whole rows at a time (memory.py).
    """
    nothing = size == 1
    if nothing:
        for c in range(columns):
            nothing &= word(place + c * LANES) == 0
    if complete and (width == size or nothing):
        for k in range(columns * size):
            put_word(rows + 8 * k, word(place + 8 * k))
    elif complete and size == 8 and columns >= 4:
        for at in range(0, columns, 4):
            c = min(at, columns - 4)
            for half in range(0, LANES, 4):
                turn(place + (c * LANES + half) * 8, LANES * 8, rows + half * width + c * 8, width)
    else:
        for c in range(columns):
            for k in range(many):
                if over[start + k] == 0:
                    at = rows + k * width + c * size
                    if size == 8:
                        put_word(at, word(place + (c * LANES + k) * 8))
                    else:
                        put_byte(at, byte(place + c * LANES + k))


@leaf
def run_phases(D: Any, own: Any, phases: Any) -> Any:
    """The phases of a tile; did anything fail?"""
    failed = np.int64(0)
    for k in range(VECTOR_AFFECT, VECTOR_FINISH + 1):
        if k == VECTOR_PHYSICS and phases[k] != 0:
            for substep in range(number(D, "substeps")):
                failed += call(phases[k], (own, np.int64(substep)))
        elif phases[k] != 0:
            failed += call(phases[k], (own,))
    return failed


@phase
def tiles(D: Any, first: Any, last: Any) -> Any:
    """All tiles of these lanes: how many are left as they were; `redo` marks the first lane of each."""
    moves, phases, redo, over = table(D, "moves"), table(D, "phases"), table(D, "redo"), table(D, "over")
    size, space = TABLE, number(D, "tile")
    own = stack(size + space)
    for k in range(3 * ROWS):
        put_word(own + 8 * k, word(D + 8 * k))
    fills, moved = number(D, "fills"), number(D, "moved")
    for m in range(len(LANE_ARRAYS)):
        put_word(own + 24 * moves[m, PLACE], own + size + moves[m, OFFSET])
    left = 0
    for start in range(first, last, LANES):
        many = min(LANES, last - start)
        complete = many == LANES
        for k in range(many):
            complete &= over[start + k] == 0
        for m in range(len(LANE_ARRAYS), fills):
            rows, width = word(D + 24 * moves[m, PLACE]) + moves[m, FIRST], moves[m, WIDTH]
            fill(rows + start * width, width, moves[m, COUNT], moves[m, SIZE], own + size + moves[m, OFFSET], many)
        before = failed_so_far()
        failed = run_phases(D, own, phases)
        if failed_so_far() != before or failed != 0:
            redo[start] = many
            left += 1
            continue
        for m in range(fills, moved):
            rows, width, place = word(D + 24 * moves[m, PLACE]) + moves[m, FIRST], moves[m, WIDTH], moves[m, OFFSET]
            rows, place = rows + start * width, own + size + place
            empty(rows, width, moves[m, COUNT], moves[m, SIZE], place, over, start, many, complete)
        if number(D, "shows") != 0:
            publish(D, own + size, start, many)
    return left
