"""Compiling phases for vectors: the text that runs one environment (loops.py), converted, runs LANES of them at once.

A phase that can't be converted, or that numba can't compile for vectors, stays as it is; `reasons` says why.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import models, overload_method, register_model

from heron_env.engine import draw_kernel, kernels, loop_kernels, world_kernel
from heron_env.engine.arrays import FORMS, LANE_ARRAYS
from heron_env.engine.arrays import PLACE as PLACES
from heron_env.engine.branches import Converter
from heron_env.engine.cache import uncollected
from heron_env.engine.linking import intrinsic
from heron_env.engine.vector import elements, masks, numbers, words
from heron_env.engine.vector.columns import UNKNOWN, LaneColumns, touched
from heron_env.engine.vector.types import (
    ALL,
    EVERYWHERE,
    NOWHERE,
    VectorArray,
    VectorType,
    bits_of,
    constant,
    convert,
)
from heron_env.seeding import h, key

_I64 = ir.IntType(64)


@intrinsic(prefer_literal=True)
def _table(context: Any, address: Any, name: Any) -> Any:
    """kernels.table; arrays with a row for each environment are arrays of vectors."""
    kind, axes = FORMS[name.literal_value]
    if name.literal_value not in LANE_ARRAYS:
        return numbers.typed_call(context, kernels.table, address, name)
    made = VectorArray(getattr(types, kind), axes - 1, lanes=True)

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        place, columns = (kernels.cell(context, builder, args[0], PLACES[name.literal_value], k) for k in (0, 2))
        shape = [columns] if axes == 2 else []
        data = builder.inttoptr(place, ir.IntType(8).as_pointer())
        return elements.vector_array(context, builder, made, data, shape, [_I64(1)] * (axes - 1))

    return made(address, name), build


@intrinsic
def _same(context: Any, value: Any) -> Any:
    return value(value), lambda context, builder, signature, args: args[0]


@intrinsic
def _floats(context: Any, values: Any) -> Any:
    """kernels.floats of a tuple: numbers and vectors alike become vectors, which a loop may go through."""
    if not isinstance(values, types.BaseTuple):
        raise masks.refuse("vector", values)
    made = types.UniTuple(VectorType(types.float64), len(values))

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        parts = [
            convert(context, builder, builder.extract_value(args[0], k), kind, types.float64)
            for k, kind in enumerate(values)
        ]
        return context.make_tuple(builder, made, parts)

    return made(values), build


def _fail_if_not_finite(context: Any, builder: Any, kind: Any, value: Any, mask_kind: Any, mask: Any) -> None:
    vector = convert(context, builder, value, kind, types.float64)
    difference = builder.fsub(vector, vector)
    bits = builder.fcmp_unordered("!=", difference, constant(types.float64, 0))
    if mask_kind is not EVERYWHERE:
        bits = builder.and_(bits, bits_of(context, builder, mask_kind, mask))
    masks.fail_if(builder, masks.any_set(builder, bits))


@intrinsic
def _refused(context: Any, value: Any, mask_: Any) -> Any:
    """kernels.refused: a number that is not finite counts as a failure, and the text goes on."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        _fail_if_not_finite(context, builder, value, args[0], mask_, args[1])
        return context.get_dummy_value()

    return NOWHERE(value, mask_), build


@intrinsic
def _refused_vector(context: Any, values: Any, size: Any, mask_: Any) -> Any:
    """kernels.refused_vector, likewise."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        for k, kind in enumerate(values):
            _fail_if_not_finite(context, builder, kind, builder.extract_value(args[0], k), mask_, args[2])
        masks.fail_if(
            builder, builder.icmp_signed("!=", context.cast(builder, args[1], size, types.int64), _I64(len(values)))
        )
        return context.get_dummy_value()

    return NOWHERE(values, size, mask_), build


@intrinsic
def _note(context: Any, D: Any, b: Any, failed: Any) -> Any:
    """loop_kernels.note: 1 if anything failed."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.zext(masks.any_set(builder, bits_of(context, builder, failed, args[2])), _I64)

    return types.int64(D, b, failed), build


def _view(context: Any, truth: Any, axes: int) -> Any:
    """world_kernel.column_of and block_of."""
    made = VectorArray(truth.dtype, axes)

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        first, count, step = args[2:5]
        shape, steps = ([count], [step]) if axes == 1 else ([count, args[5]], [step, _I64(1)])
        return elements.shifted(context, builder, truth, made, args[0], first, shape, steps)

    return made(truth, *[types.int64] * (3 + axes)), build


@intrinsic
def _column_of(context: Any, truth: Any, lane: Any, first: Any, count: Any, step: Any) -> Any:
    return _view(context, truth, 1)


@intrinsic
def _block_of(context: Any, truth: Any, lane: Any, first: Any, count: Any, step: Any, size: Any) -> Any:
    return _view(context, truth, 2)


class VectorWorld(types.NamedTuple):
    """The type of `world` in a world rule."""


register_model(VectorWorld)(models.TupleModel)


@intrinsic
def _as_world(context: Any, fields: Any) -> Any:
    made = VectorWorld(fields.types, fields.instance_class)
    return made(fields), lambda context, builder, signature, args: args[0]


INTRINSICS: list[tuple[Any, Any]] = [
    (kernels.table, _table), (kernels.shown, _same), (kernels.floats, _floats), (kernels.refused, _refused),
    (kernels.refused_vector, _refused_vector), (loop_kernels.note, _note), (world_kernel.column_of, _column_of),
    (world_kernel.block_of, _block_of), (world_kernel.as_world, _as_world),
]  # fmt: skip
MASKED = (kernels.refused, kernels.refused_vector, *words.MASKED)
"""These take the mask."""


def converter() -> Converter:
    """Converts functions of one environment into compiled ones of LANES."""
    return Converter(words.WORDS, [*words.VALUES, *INTRINSICS], kernels.inlined, MASKED)


_draws = converter()
_key_with, _uniform = _draws.value(draw_kernel.key_with), _draws.value(draw_kernel.uniform)
_START = np.uint64(key("world"))


@overload_method(VectorWorld, "draw", prefer_literal=True)
def _draw(world, name, shape=1):  # type: ignore[no-untyped-def]
    """World.draw, bit for bit."""
    word = np.uint64(h(name.literal_value))

    def draw(world, name, shape=1):  # type: ignore[no-untyped-def]
        episode = _key_with(_key_with(_START, world.seed, ALL), world.episode, ALL)
        return elements.draws(_key_with(_key_with(episode, world.step, ALL), word, ALL), shape)

    return draw


def draw_element(array: Any, key: Any) -> Any:
    """An element of draws."""
    return _uniform(elements.key_of(array), elements.number_of(array, key), ALL)


elements.draw_element = draw_element


class VectorPhases:
    """The phases of a set of rules for vectors, compiled when their address is asked for.

    reasons: by phase, why it is not there.
    """

    def __init__(self, module: Any, host: Any) -> None:
        """`module`: the generated text with rules that are not compiled; `host`: the module with its file."""
        self._module, self._host, self._converter = module, host, converter()
        self.reasons: dict[str, str] = {}
        self._addresses: dict[str, int] = {}
        self._made: list[Any] = []

    def address(self, phase: str) -> int:
        """Where its machine code begins; 0 where there is none."""
        if phase not in self._addresses:
            self._addresses[phase] = self._compiled(phase)
        return self._addresses[phase]

    def touched(
        self, phases: Iterable[str], sizes: Mapping[str, tuple[int, int]], tables: Mapping[str, Any]
    ) -> dict[str, LaneColumns]:
        """What these phases, in their order, do to arrays (columns.py)."""
        return touched(((self._text(name), (UNKNOWN,) * (name == "physics")) for name in phases), sizes, tables)

    def _text(self, phase: str) -> Any:
        name = "substep_lane" if phase == "physics" else f"{phase}_lane"
        return getattr(self._module, name, None) or getattr(loop_kernels, name)

    def _compiled(self, phase: str) -> int:
        more, name = ", substep" * (phase == "physics"), f"vector_{phase}"
        text = f"def {name}(D{more}):\n    return run(D, zero{more}, all)\n"
        space = {"__name__": self._host.__name__, "zero": np.int64(0), "all": ALL}
        try:
            space["run"] = self._converter.value(self._text(phase))
            exec(compile(text, self._host.__file__, "exec"), space)
            with uncollected():
                self._made.append(kernels.phase(space[name]))
                return kernels.address_of(self._made[-1], 1 + bool(more))
        except Exception as error:  # noqa: BLE001  (numba lets through whatever its typing stumbles over)
            self.reasons[phase] = str(error)
            return 0
