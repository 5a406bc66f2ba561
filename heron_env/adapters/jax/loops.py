"""The loops of an environment as JAX traces them: converted text, tables, and the arrays of one lane as cells."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import jax.numpy as jnp
import numpy as np

from heron_env.adapters.jax.words import VALUES, WORDS, CellView, within
from heron_env.core import quantity
from heron_env.engine import draw_kernel, kernels, loop_kernels, world_kernel
from heron_env.engine.branches import Converter
from heron_env.engine.lane_errors import LaneErrors
from heron_env.engine.memory import Memory
from heron_env.engine.model import why_plain
from heron_env.engine.phases import Program
from heron_env.engine.source import CompilerFacts
from heron_env.engine.tables import AgentTables, DecisionTables, ObservationTables
from heron_env.envs.base import HeronEnv
from heron_env.seeding import h


class Loops:
    """The loops of an environment without branches, and the tables that they read.

    ends: may an agent end before the others? noisy, relative, hides: is anything seen so? errors: makes those of codes.
    """

    def __init__(self, env: HeronEnv, observers: Sequence[int]) -> None:
        self.model = model = replace(env.simulation.model, observers=tuple(observers))
        self._program = program = Program(model)
        facts = CompilerFacts((), program.source.annotated_infos())
        self.tables = tables = AgentTables(program.source, model.hierarchy, model.layout, model.specs)
        tables.number_infos(facts.infos)
        self._fields = facts.infos
        decisions = DecisionTables(model, tables.position.tolist(), tables.slices)
        observations = ObservationTables(model, model.layout.width + tables.scratch)
        memory = Memory(model, 1, tables)
        memory.arrays.initial[:] = env.simulation.initial
        memory.complete(model, tables, decisions, observations, program.world.table(), False)
        out = {f"out_{name}": values for name, values in memory.sets[0]._asdict().items()}
        out["received"] = memory.fixed.pop("received")
        self.arrays, self.plain, self.numbers = {**memory.arrays._asdict(), **out}, memory.fixed, memory.numbers
        self.fixed = {name: _numbers(values) for name, values in memory.fixed.items()}
        self.noisy, self.relative, self.hides = observations.noisy, observations.relative, observations.hides
        self.ends = program.source.ends
        self.errors = LaneErrors(model, tuple(tables.position.tolist()), tables.rank_of)
        self._module = program.plain(facts)
        self.converter = Converter(vars(WORDS), [*VALUES, *_intrinsics(self)])

    def run(self, name: str, lane: TracedLane, *more: Any) -> None:
        """Run this phase, if there is such a one."""
        phase = getattr(self._module, name, None) or getattr(loop_kernels, name, None)
        if phase is not None:
            self.converter.value(phase)(lane, 0, 1, *more)

    def noise_row(
        self, t: CellView, b: int, out: CellView, seed: Any, episode: Any, turn: Any, *tables: Any, mask_: Any = True
    ) -> None:
        """draw_kernel's, with all elements at once in the place of one."""
        at, columns, _, _, _, _, law = tables[:7]
        fixed = self.plain
        keys, reach, low, high = (jnp.asarray(fixed[f"noise_{name}"]) for name in ("keys", "reach", "low", "high"))
        u, v = [None], [CellView(t.cells, columns).array]
        self.converter.value(draw_kernel.uniforms_of)([keys], seed, episode, turn, u)
        self.converter.value(draw_kernel.by_law)(v, u, [reach], [low], [high], [jnp.asarray(law)])
        for k, place in enumerate(at.tolist()):
            out.put((0, place), v[0][k], mask_)

    def settle(self, lane: TracedLane, b: int, mask_: Any = True) -> Any:
        """loop_kernels', for the columns that have changed since they were settled."""
        cells, layout, bad = lane["truth"].cells, self.model.layout, False
        for c, (value, before) in enumerate(zip(cells[: layout.size], lane.settled, strict=True)):
            if value is not before:
                settled = within(value, float(layout.low[c]), float(layout.high[c]))
                settled = jnp.rint(settled) + 0.0 if layout.integer[c] else settled
                bad = WORDS.either(bad, settled != settled)
                cells[c] = lane.settled[c] = WORDS.where(mask_, settled, value)
        return bad

    def info_columns(self, ranks: Sequence[int]) -> dict[str, Any]:
        """Where the numbers of `get_local_info` of agents of one kind lie, by name."""
        kinds = self._program.source
        fields = self._fields.get(kinds.kinds[kinds.kind_of[ranks[0]]].name, ())
        starts = np.array([self.tables.first_info(rank) for rank in ranks])
        return {field: starts + k for k, field in enumerate(fields)}


class TracedLane:
    """One environment's arrays by name, while it is traced; `state`: those that it begins with.

    settled: columns of the truth as they were when they were last brought within their bounds.
    """

    def __init__(self, loops: Loops, state: Mapping[str, Any] | None = None, running: bool = True) -> None:
        self._fixed, self.numbers = loops.fixed, loops.numbers
        self._views = {
            name: CellView(_numbers(values).reshape(-1).tolist(), np.arange(values.size).reshape(values.shape))
            for name, values in loops.arrays.items()
        }
        for name, values in (state or {}).items():
            given = values if isinstance(values, tuple) else (values,)
            whole = [value.astype(jnp.int64) if value.dtype == jnp.bool_ else value for value in given]
            self._views[name].cells[: len(whole)] = whole
        if running:
            self._views["over"].cells[0] = 0
            if not loops.ends and state:  # nobody has ended before the others
                self._views["alive"].cells[:] = [1] * len(self._views["alive"].cells)
        for position, size in enumerate(loops.plain["sized"]):
            if not size:  # it never decides
                self._views["source"].cells[position] = 0
        n = loops.model.layout.size
        self.settled: list[Any] = self._views["truth"].cells[:n] if state else [None] * n

    def __getitem__(self, name: str) -> Any:
        return self._views[name] if name in self._views else self._fixed[name]


def why_not(env: HeronEnv) -> str:
    """What of an environment is no rule; empty if nothing is."""
    hooks = type(env).python_hooks()
    if hooks:
        return f"{hooks[0]}() is Python, not a rule"
    if type(env).step is not HeronEnv.step or type(env).advance_step is not HeronEnv.advance_step:
        return "it has a step() of its own"
    if reason := why_plain(env.hierarchy):
        return reason
    if env.simulation.hooks.native_loops():
        return "it has compiled loops of its own, which are no rules"
    if env.simulation.exchange.edges:
        return "neighbours exchange values"
    return ""


def _numbers(values: Any) -> Any:
    """The same with numbers of Python in place of floats, which have a type of their own for JAX."""
    kind = values.dtype.kind
    return (
        values.astype(object)
        if kind == "f"
        else values.astype(np.int64)
        if kind in "iu" and values.dtype.itemsize < 8
        else values
    )


def _intrinsics(of: Loops) -> list[tuple[Any, Any]]:
    """What stands in the place of compiled code that no text of Python has."""

    def column_of(truth: CellView, lane: int, first: int, count: int, step: int) -> CellView:
        return CellView(truth.cells, int(first) + np.arange(int(count)) * int(step))

    def block_of(truth: CellView, lane: int, first: int, count: int, step: int, size: int) -> CellView:
        return CellView(truth.cells, int(first) + np.arange(int(count))[:, None] * int(step) + np.arange(int(size)))

    def as_world(fields: Any) -> TracedWorld:
        return TracedWorld(of, fields)

    def nothing(*args: Any) -> None:
        return None

    return [
        (kernels.table, lambda lane, name: lane[name]), (kernels.number, lambda lane, name: lane.numbers[name]),
        (kernels.shown, lambda array: array), (kernels.floats, lambda values: values), (kernels.fetch, nothing),
        (world_kernel.column_of, column_of), (world_kernel.block_of, block_of), (world_kernel.as_world, as_world),
        (draw_kernel.noise_row, of.noise_row), (loop_kernels.settle, of.settle),
        (kernels.within, within), (quantity.within, within),
    ]  # fmt: skip


class TracedWorld:
    """`world` of a world rule: cohorts by number, features and the world's own by name, draws by theirs."""

    def __init__(self, of: Loops, fields: Any) -> None:
        self._of, self._fields = of, fields

    def __getitem__(self, number: int) -> Any:
        return self._fields[number]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._fields, name)

    def draw(self, name: str, shape: Any = 1) -> CellView:
        """World.draw, bit for bit."""
        value, fields = self._of.converter.value, self._fields
        x, key_with = draw_kernel.GOLDEN, value(draw_kernel.key_with)
        for part in (
            np.uint64(h("world")),
            fields.seed,
            fields.episode,
            jnp.asarray(fields.step).astype(jnp.uint64),
            np.uint64(h(name)),
        ):
            x = key_with(x, part)
        drawn = value(draw_kernel.uniform)(x, jnp.arange(int(np.prod(shape)), dtype=jnp.uint64))
        return CellView.of(drawn.reshape(shape))
