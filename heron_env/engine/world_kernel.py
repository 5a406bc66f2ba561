"""What compiled world rules stand on: columns of one lane as views, the type of `world`, and its keyed draws.

Views are made of an address, a length and a stride, which LLVM leaves out where the rule does not use them; slicing
would divide for each. `world` is a named tuple with one method; a method of all named tuples would hide a quantity
`draw`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types
from numba.core import cgutils
from numba.core.errors import TypingError
from numba.extending import models, overload_method, register_model

from heron_env.engine.draw_kernel import GOLDEN, key_with, uniform
from heron_env.engine.kernels import flat_of, inlined, leaf, njit, within
from heron_env.engine.linking import intrinsic
from heron_env.seeding import h

FLOATS = 8
"""Bytes of a float64."""
_INSIDE: dict[str, Any] = {
    "no_cpython_wrapper": True,
    "no_cfunc_wrapper": True,
    "error_model": "python",
    "boundscheck": True,
    "forceinline": True,
}
lane_rule = inlined
"""What calls a world rule in the text: part of the loop over lanes."""
clipping: Any = njit(_nrt=False, **{**_INSIDE, "boundscheck": False, "error_model": "numpy"})
"""Inlined, so that bounds are constants."""
world_leaf: Any = njit(_nrt=False, **_INSIDE)
"""A world rule that makes no arrays. Inlined, or every call would pass the address of each column."""
world_allocating: Any = njit(_nrt=True, **_INSIDE)
"""A world rule that makes arrays: one that draws, or computes with whole columns."""


@intrinsic
def column_of(context: Any, truth: Any, lane: Any, first: Any, count: Any, step: Any) -> Any:
    """float64 `[count]`: column `first` of a lane, and every `step`-th after it."""
    made = types.Array(types.float64, 1, "A")

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        count, step = args[3], args[4]
        return _view(context, builder, signature, args, [count], [step])

    return made(truth, types.intp, types.intp, types.intp, types.intp), build


@intrinsic
def block_of(context: Any, truth: Any, lane: Any, first: Any, count: Any, step: Any, size: Any) -> Any:
    """float64 `[count, size]`: `size` columns of a lane from `first` on, and so on every `step` columns."""
    made = types.Array(types.float64, 2, "A")

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        count, step, size = args[3:]
        return _view(context, builder, signature, args, [count, size], [step, step.type(1)])

    return made(truth, types.intp, types.intp, types.intp, types.intp, types.intp), build


def _view(context: Any, builder: Any, signature: Any, args: Any, shape: list[Any], steps: list[Any]) -> Any:
    """The array over the truth `[lanes, columns]` that begins at a lane's column; nobody counts references to it."""
    truth = context.make_array(signature.args[0])(context, builder, value=args[0])
    width = cgutils.unpack_tuple(builder, truth.strides, 2)[0]
    size = width.type(FLOATS)
    start = builder.add(builder.mul(args[1], width), builder.mul(args[2], size))
    kind = signature.return_type
    view = context.make_array(kind)(context, builder)
    context.populate_array(
        view,
        data=cgutils.pointer_add(builder, truth.data, start, return_type=view.data.type),
        shape=cgutils.pack_array(builder, shape),
        strides=cgutils.pack_array(builder, [builder.mul(step, size) for step in steps]),
        itemsize=size,
        meminfo=None,
    )
    return view._getvalue()


class WorldType(types.NamedTuple):
    """The numba type of `world`: a named tuple of cohorts, global features, time, step, seed and episode."""


class ReadWorldType(WorldType):
    """The same of a rule that may not draw."""


register_model(WorldType)(models.TupleModel)
register_model(ReadWorldType)(models.TupleModel)


@intrinsic
def as_world(context: Any, fields: Any) -> Any:
    """The same named tuple, as a world."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return args[0]

    return WorldType(fields.types, fields.instance_class)(fields), build


@overload_method(WorldType, "draw", prefer_literal=True)
def _draw(world, name, shape=1):  # type: ignore[no-untyped-def]
    """World.draw, bit for bit. The name is hashed while compiling."""
    if isinstance(world, ReadWorldType):
        raise TypingError("it draws, where it may only read")
    if not isinstance(name, types.StringLiteral):
        raise TypingError("the name of a draw must be written out where it is drawn")
    word = np.uint64(h(name.literal_value))

    def draw(world, name, shape=1):  # type: ignore[no-untyped-def]
        drawn = np.empty(shape)
        fill_uniforms(flat_of(drawn), world.seed, world.episode, np.uint64(world.step), word)
        return drawn

    return draw


_WORLD = np.uint64(h("world"))


@leaf
def fill_uniforms(drawn: Any, seed: Any, episode: Any, step: Any, word: Any) -> None:
    """seeding.uniforms(key("world", seed, episode, step, name), n) into `drawn` `[n]`; `word` is the name's hash."""
    x = key_with(key_with(key_with(key_with(key_with(GOLDEN, _WORLD), seed), episode), step), word)
    for i in range(len(drawn)):
        drawn[i] = uniform(x, i)


@clipping
def clip_block(block: Any, low: Any, high: Any, integer: Any) -> Any:
    """Layout.clip_columns on columns of the same bounds, `[agents, columns]`, after a world rule. Is there a nan?"""
    bad = False
    for i in range(block.shape[0]):
        for c in range(block.shape[1]):
            value = block[i, c]
            bad |= value != value
            clipped = within(value, low, high)
            block[i, c] = np.rint(clipped) if integer else clipped
    return bad
