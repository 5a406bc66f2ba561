"""JaxEnv: an environment in rules as pure functions that JAX traces, batches and compiles."""

from __future__ import annotations

import linecache
from collections.abc import Callable, Mapping
from functools import partial
from types import ModuleType, SimpleNamespace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.custom_batching import custom_vmap

from heron_env.adapters.jax.words import VALUES, WORDS, View, joined, rounded, within
from heron_env.core import quantity
from heron_env.core.masking import everything, noop_alone
from heron_env.engine import draw_kernel, kernels, loop_kernels, world_kernel
from heron_env.engine.blueprint import Blueprint, why_plain
from heron_env.engine.branches import Converter
from heron_env.engine.lane_errors import LaneErrors
from heron_env.engine.lanes import ENDING
from heron_env.engine.memory import Memory
from heron_env.engine.phases import Program
from heron_env.engine.source import SHARED, CompilerFacts
from heron_env.engine.tables import EXPLICIT, AgentTables, DecisionTables, ObservationTables
from heron_env.envs.base import HeronEnv
from heron_env.envs.batch.building import builder_of
from heron_env.envs.batch.lane_groups import Group, groups_of, known_group
from heron_env.envs.lane import blueprint_of
from heron_env.errors import ConfigError
from heron_env.scheduling.ticks import ticks_at
from heron_env.seeding import h

Groups = dict[str, Any]
"""Arrays of JAX, `[agents, ...]`, by group."""


class State(NamedTuple):
    """One environment between two steps; agents by position (breadth first), actions by rank.

    error: 0, or the code of the first thing that was refused (`JaxEnv.raise_errors`).
    """

    truth: Any
    """float `[columns]`."""
    applied: Any
    """float `[elements]`: actions in force."""
    source: Any
    """int `[agents]`: who made the last decision."""
    alive: Any
    """bool `[agents]`."""
    returns: Any
    """float `[agents]`: sum of rewards of the running episode."""
    steps: Any
    """int: control steps of the running episode."""
    seeds: Any
    """uint64."""
    episodes: Any
    """uint64."""
    over: Any
    """bool: without autoreset, has the episode ended?"""
    error: Any
    """int64."""


class Step(NamedTuple):
    """What a step hands out, by group; `final_observations`: of the step, before the next episode began."""

    observations: Groups
    rewards: Groups
    terminated: Groups
    truncated: Groups
    infos: Groups
    final_observations: Groups


OF_AGENTS = ("truth", "applied", "source", "alive", "returns")
KINDS = {
    "truth": None, "applied": None, "source": "int64", "alive": "bool", "returns": None, "steps": "int64",
    "seeds": "uint64", "episodes": "uint64", "over": "bool", "error": "int64",
}  # fmt: skip


class JaxEnv:
    """Environments in rules for `jax.jit`, `jax.vmap` and `jax.lax.scan`: the same text as BatchEnv's, traced.

    All functions are pure and of one environment; `jax.vmap` makes batches. In float64 results are those of BatchEnv
    but for the last bits of `exp` and the like, as long as no comparison is so close that these decide it.

        >>> env = JaxEnv("heron/Spread-v0")                                                   # doctest: +SKIP
        >>> state, step = jax.jit(env.reset)(jax.random.key(0))                               # doctest: +SKIP
        >>> state, step = jax.jit(env.step)(state, {"agent": jnp.zeros((3, 5))})              # doctest: +SKIP

    Needs `jax.config.update("jax_enable_x64", True)` before anything is traced, for draws are made of 64-bit keys.

    Args:
        env: an environment; a registered id; or a function that builds one.
        autoreset: begin the next episode in the step in which one ends.
        dtype: "float64", or "float32" for truth, actions and rewards.
        options: of the id or the function.

    Attributes:
        env: the environment whose spaces and tables are used.
        groups: agents' ids by group, in the order of the arrays' first axis.

    Raises ConfigError for an environment that is more than rules, naming what is in the way.
    """

    def __init__(
        self, env: HeronEnv | str | Callable[..., HeronEnv], *, autoreset: bool = True, dtype: str = "float64",
        **options: Any,
    ) -> None:  # fmt: skip
        if not jax.config.jax_enable_x64:
            raise ConfigError('JaxEnv: keys have 64 bits; call jax.config.update("jax_enable_x64", True) first')
        if dtype not in ("float32", "float64"):
            raise ConfigError(f"JaxEnv(dtype={dtype!r:.60}): must be 'float64' or 'float32'")
        self.env = builder_of(env, options)()
        if reason := why_not(self.env):
            raise ConfigError(f"JaxEnv({type(self.env).__name__}): {reason}; BatchEnv runs it")
        self.autoreset, self._dtype = autoreset, jnp.dtype(dtype)
        self._groups = groups_of(self.env)
        self.groups = dict(self.env.group_map)
        simulation = self.env.simulation
        observers = [rank for name in self.groups for rank in self._groups[name].ranks]
        self._blueprint = blueprint = blueprint_of(simulation, observers)
        program = Program(blueprint)
        facts = CompilerFacts((), program.source.annotated_infos())
        tables = AgentTables(program.source, blueprint.hierarchy, blueprint.layout, blueprint.specs)
        tables.number_infos(facts.infos)
        decisions = DecisionTables(blueprint, tables.position.tolist(), tables.slices)
        observations = ObservationTables(blueprint, blueprint.layout.size + tables.scratch)
        self._memory, self._tables = Memory(blueprint, 1, tables), tables
        self._memory.arrays.initial[:] = simulation._initial
        self._memory.complete(blueprint, tables, decisions, observations, program.world.table(), False)
        self._noisy = observations.noisy
        self.ends = any(rule in ENDING for kind in program.source.kinds for rule in kind.rules)
        self._module = _module(program, facts)
        self._infos = _info_columns(self, program, facts)
        self._masked = {name: of for name in self.groups if (of := simulation.masks.ranks & {*self._groups[name].ranks})}
        self._converter = Converter(vars(WORDS), [*VALUES, *_intrinsics(self)])
        self._errors = LaneErrors(blueprint, tuple(tables.position.tolist()), tables.rank_of)
        self._fixed = {name: _numbers(values) for name, values in self._memory.fixed.items()}

    def reset(self, key: Any) -> tuple[State, Step]:
        """Begin the first episode of a seed that is drawn with `key`."""
        return self.begin(jax.random.bits(key, dtype=jnp.uint64))

    def begin(self, seed: Any, episode: Any = 0) -> tuple[State, Step]:
        """Begin this episode of this seed, both uint64: what a BatchEnv's lane with this seed begins with."""
        with np.errstate(over="ignore"):
            lane = Lane(self, None)
            lane["seeds"].put(0, jnp.asarray(seed, jnp.uint64), True)
            lane["episodes"].put(0, jnp.asarray(episode, jnp.uint64) - jnp.uint64(1), True)
            lane["chosen"].put(0, True, True)
            self._run("begin_episodes", lane)
            self._run("begin", lane)
            self._run("inform", lane)
            return self._state(lane), self._handed_out(lane)

    def step(self, state: State, actions: Mapping[str, Any], key: Any = None) -> tuple[State, Step]:
        """A control step; `actions`: `[agents, elements]` by group. Agents of a group that is left out do nothing.

        key: where given, an episode that begins anew has a seed drawn with it, else it is the next one of its seed.

        An illegal action is clipped; it is one of the errors of which the first is kept in the state.
        """
        with np.errstate(over="ignore"):
            lane = Lane(self, state)
            self._give(lane, actions)
            self._run("check", lane)
            self._run("decide", lane)
            self._run("affect", lane)
            self._run("clear", lane)
            for number in range(self._blueprint.substeps):
                self._run("substep", lane, number)
            self._run("close", lane)
            self._run("end", lane)
            if self.autoreset:  # who is over has only just ended
                lane["over"].put(0, 0, True)
            self._run("finish", lane)
            after, step = self._state(lane), self._handed_out(lane)
            if not self.autoreset:
                return after, step
            ended, number = WORDS.truth_of(lane["ended"][0]), after.episodes + jnp.uint64(1)
            seeds = after.seeds
            if key is not None:
                number, seeds = jnp.uint64(0), jnp.where(ended, jax.random.bits(key, dtype=jnp.uint64), seeds)
            after, seen, infos = restart(self.begin)(ended, (after, step.observations, step.infos), seeds, number)
            return after, step._replace(observations=seen, infos=infos)

    def raise_errors(self, state: State) -> None:
        """Raise RuleError or InvalidAction for the first environment in `state` `[...]` with an error."""
        codes = np.asarray(state.error).reshape(-1)
        if codes.any():
            lane = int(np.flatnonzero(codes)[0])
            arrays = SimpleNamespace(
                error=codes, steps=np.asarray(state.steps).reshape(-1),
                truth=np.asarray(state.truth).reshape(len(codes), -1),
                actions=np.asarray(state.applied).reshape(len(codes), -1),
            )  # fmt: skip
            raise self._errors.of(int(codes[lane]), arrays, lane)

    def _run(self, name: str, lane: Lane, *more: Any) -> None:
        phase = getattr(self._module, name, None) or getattr(loop_kernels, name, None)
        if phase is not None:
            self._converter.value(phase)(lane, 0, 1, *more)

    def _give(self, lane: Lane, actions: Mapping[str, Any]) -> None:
        for name, values in actions.items():
            group = known_group(self._groups, name, "step() got actions for")
            values = jnp.asarray(values, self._dtype).reshape(len(group.agents), group.spec.size)
            for place, rank in enumerate(group.ranks):
                span, position = self._tables.slices[rank], self._tables.position[rank]
                lane["actions"].put((0, span), values[place], True)
                lane["given"].put((0, position), EXPLICIT * lane["alive"][0, position], True)

    def _state(self, lane: Lane) -> State:
        n = self._blueprint.layout.size

        def packed(name: str) -> Any:
            kind = KINDS[name] or self._dtype
            cells = [jnp.asarray(cell).astype(kind) for cell in lane[name].cells[: n if name == "truth" else None]]
            return tuple(cells) if name in OF_AGENTS else cells[0]

        return State(**{name: packed(name) for name in State._fields})

    def _handed_out(self, lane: Lane) -> Step:
        self._run("publish", lane)
        if self._noisy:
            self._converter.value(loop_kernels.add_noise)(lane, 0, lane["out_observations"])

        def members(name: str, kind: Any) -> Groups:
            values = lane[name][0].array.astype(kind)
            return {group: values[self._groups[group].members] for group in self.groups}

        seen, infos = {}, {}
        for name, columns in self._infos.items():
            group = self._groups[name]
            cells = [lane["out_observations"].cells[k] for k in lane["out_observations"].places[0][group.floats].flat]
            seen[name] = joined(cells).astype(jnp.float32).reshape(len(group.agents), group.width)
            infos[name] = {key: lane["infos"][0, at].array for key, at in columns.items()}
            infos[name]["is_active"] = active = self._active(lane, group)
            if name in self._masked:
                infos[name]["action_mask"] = self._offered(lane, group, cells, active)
        return Step(
            seen, members("out_rewards", self._dtype), members("out_terminated", bool),
            members("out_truncated", bool), infos, seen,
        )  # fmt: skip

    def _active(self, lane: Lane, group: Group) -> Any:
        """Whose action will count in the coming step?"""
        timings = [self.env.timings[rank] for rank in group.ranks]
        tick, phase = (jnp.array([getattr(timing, name) for timing in timings]) for name in ("tick", "phase"))
        alive = lane["alive"][0, self._tables.position[list(group.ranks)]].array != 0
        return ticks_at(lane["steps"][0] * self.env.dt_ns, tick, phase) & alive

    def _offered(self, lane: Lane, group: Group, cells: list[Any], active: Any) -> Any:
        """The group's masks on what it sees, int8 `[agents, choices]`; who is not active, the no-op alone."""
        ruled = [(place, rank) for place, rank in enumerate(group.ranks) if rank in self._masked[group.name]]
        for place, rank in ruled:
            view = self.env.simulation.plan.views[rank]
            for k, column in enumerate(view.columns[: view.own]):
                lane["seen"].put((0, column), rounded(cells[place * group.width + k]), True)
            lane["acting"].put((0, self._tables.position[rank]), active[place], True)
        self._run("offer", lane)
        flags = [jnp.asarray(everything(group.spec))] * len(group.ranks)
        for place, rank in ruled:
            flags[place] = lane["allowed"][0, self._tables.choices_of(rank)].array.astype(jnp.int8)
        return jnp.where(active[:, None], jnp.stack(flags), noop_alone(group.spec))


def restart(begin: Any) -> Any:
    def chosen(ended: Any, mine: Any, seed: Any, number: Any) -> Any:
        state, step = begin(seed, number)
        state = state._replace(error=jnp.where(mine[0].error != 0, mine[0].error, state.error))
        return jax.tree.map(partial(jnp.where, ended), (state, step.observations, step.infos), mine)

    @custom_vmap
    def one(ended: Any, mine: Any, seed: Any, number: Any) -> Any:
        return jax.lax.cond(ended, chosen, lambda ended, mine, seed, number: mine, ended, mine, seed, number)

    @one.def_vmap
    def many(size: int, batched: Any, *given: Any) -> Any:
        given = jax.tree.map(lambda value, is_batched: value if is_batched else jnp.broadcast_to(value, (size, *value.shape)), given, tuple(batched))
        made = jax.lax.cond(given[0].any(), jax.vmap(chosen), lambda ended, mine, seed, number: mine, *given)
        return made, jax.tree.map(lambda _: True, made)

    return one


class Lane:
    """One environment's arrays by name, while it is traced."""

    def __init__(self, of: JaxEnv, state: State | None) -> None:
        memory, self._fixed, self.numbers = of._memory, of._fixed, of._memory.numbers
        out = {f"out_{name}": values for name, values in memory.sets[0]._asdict().items()}
        self._views = {
            name: View(_numbers(values).reshape(-1).tolist(), np.arange(values.size).reshape(values.shape))
            for name, values in {**memory.arrays._asdict(), **out}.items()
        }
        self._views["over"].cells[0] = 0
        if state is not None:
            for name in State._fields:
                values = getattr(state, name)
                values = values if isinstance(values, tuple) else (values,)
                if KINDS[name] == "bool":
                    values = [value.astype(jnp.int64) for value in values]
                self._views[name].cells[: len(values)] = values
            if of.autoreset:  # then an episode runs
                self._views["over"].cells[0] = 0
                if not of.ends:  # and nobody has ended before the others
                    self._views["alive"].cells[:] = [1] * len(self._views["alive"].cells)

        self.settled = self._views["truth"].cells[: len(memory.arrays.initial)] if state is not None else [None] * len(memory.arrays.initial)

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
        return "its physics has compiled loops of its own"
    if env.simulation.exchange.edges:
        return "neighbours exchange values"
    if env.training_delays is not None:
        return "it has training delays"
    return ""


def _numbers(values: Any) -> Any:
    """The same with numbers of Python in place of floats, which have a type of their own for JAX."""
    kind = values.dtype.kind
    return values.astype(object) if kind == "f" else values.astype(np.int64) if kind in "iu" and values.dtype.itemsize < 8 else values


def _module(program: Program, facts: CompilerFacts) -> ModuleType:
    """The phases of the rules as a module of Python."""
    text, name = program.text(facts), f"<rules of {program.key()}>"
    linecache.cache[name] = len(text), None, text.splitlines(keepends=True), name
    module = ModuleType(name)
    exec(compile(text, name, "exec", dont_inherit=True), vars(module))
    shared = {name: getattr(loop_kernels, name) for name in SHARED}
    rules = {**program.source.rules, **program.world.rules}
    vars(module).update(rules, **program.source.tuples, **program.world.tuples, **shared)
    return module


def _info_columns(of: JaxEnv, program: Program, facts: CompilerFacts) -> dict[str, dict[str, Any]]:
    """Where the numbers of a group's infos lie, by name."""
    found = {}
    for name in of.groups:
        ranks = of._groups[name].ranks
        fields = facts.infos.get(program.source.kinds[program.source.kind_of[ranks[0]]].name, ())
        starts = np.array([of._tables.first_info(rank) for rank in ranks])
        found[name] = {field: starts + k for k, field in enumerate(fields)}
    return found


def _intrinsics(of: JaxEnv) -> list[tuple[Any, Any]]:
    """What stands in the place of compiled code that no text of Python has."""

    def column_of(truth: View, lane: int, first: int, count: int, step: int) -> View:
        return View(truth.cells, int(first) + np.arange(int(count)) * int(step))

    def block_of(truth: View, lane: int, first: int, count: int, step: int, size: int) -> View:
        return View(truth.cells, int(first) + np.arange(int(count))[:, None] * int(step) + np.arange(int(size)))

    def as_world(fields: Any) -> TracedWorld:
        return TracedWorld(of, fields)

    def noise_row(t: View, b: int, out: View, seed: Any, episode: Any, turn: Any, *tables: Any, mask_: Any = True) -> None:
        """draw_kernel's, with all elements at once in the place of one."""
        at, columns, _, _, _, _, law = tables[:7]
        fixed = of._memory.fixed
        keys, reach, low, high = (jnp.asarray(fixed[f"noise_{name}"]) for name in ("keys", "reach", "low", "high"))
        u, v = [None], [View(t.cells, columns).array]
        of._converter.value(draw_kernel.uniforms_of)([keys], seed, episode, turn, u)
        of._converter.value(draw_kernel.by_law)(v, u, [reach], [low], [high], [jnp.asarray(law)])
        for k, place in enumerate(at.tolist()):
            out.put((0, place), v[0][k], mask_)

    def settle(lane: Lane, b: int, mask_: Any = True) -> Any:
        """loop_kernels', for the columns that have changed since they were settled."""
        cells, layout, bad = lane["truth"].cells, of._blueprint.layout, False
        for c, (value, before) in enumerate(zip(cells[: layout.size], lane.settled, strict=True)):
            if value is not before:
                settled = within(value, float(layout.low[c]), float(layout.high[c]))
                settled = jnp.rint(settled) + 0.0 if layout.whole[c] else settled
                bad = WORDS.either(bad, settled != settled)
                cells[c] = lane.settled[c] = WORDS.where(mask_, settled, value)
        return bad

    def nothing(*args: Any) -> None:
        return None

    return [
        (kernels.table, lambda lane, name: lane[name]), (kernels.number, lambda lane, name: lane.numbers[name]),
        (kernels.shown, lambda array: array), (kernels.floats, lambda values: values), (kernels.fetch, nothing),
        (world_kernel.column_of, column_of), (world_kernel.block_of, block_of), (world_kernel.as_world, as_world),
        (draw_kernel.noise_row, noise_row), (loop_kernels.settle, settle), (kernels.within, within), (quantity.within, within),
    ]  # fmt: skip


class TracedWorld:
    """`world` of a world rule: cohorts by number, features and the world's own by name, draws by theirs."""

    def __init__(self, of: JaxEnv, fields: Any) -> None:
        self._of, self._fields = of, fields

    def __getitem__(self, number: int) -> Any:
        return self._fields[number]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._fields, name)

    def draw(self, name: str, shape: Any = 1) -> View:
        """World.draw, bit for bit."""
        value, fields = self._of._converter.value, self._fields
        x, key_with = draw_kernel.GOLDEN, value(draw_kernel.key_with)
        for part in (np.uint64(h("world")), fields.seed, fields.episode, jnp.asarray(fields.step).astype(jnp.uint64), np.uint64(h(name))):
            x = key_with(x, part)
        drawn = value(draw_kernel.uniform)(x, jnp.arange(int(np.prod(shape)), dtype=jnp.uint64))
        return View.of(drawn.reshape(shape))
