"""JaxEnv: an environment in rules as pure functions that JAX traces, batches and compiles."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from functools import partial
from types import SimpleNamespace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.custom_batching import custom_vmap

from heron_env.adapters.jax.loops import Loops, TracedLane, why_not
from heron_env.adapters.jax.words import WORDS, joined, rounded
from heron_env.core.masking import everything, noop_alone
from heron_env.engine import loop_kernels
from heron_env.engine.lane_errors import ILLEGAL
from heron_env.engine.tables import EXPLICIT
from heron_env.envs.base import HeronEnv
from heron_env.envs.batch.building import builder_of
from heron_env.envs.batch.lane_groups import Group, group_named, groups_of
from heron_env.errors import ConfigError, InvalidAction
from heron_env.scheduling.ticks import ticks_at

Groups = dict[str, Any]
"""Arrays of JAX, `[agents, ...]`, by group."""


class EnvState(NamedTuple):
    """One environment between two steps; agents by position (breadth first), actions by rank.

    What there is several of is a tuple, so that a batch keeps each column in one piece: `[B]`.

    error: 0, or the code of the first thing that was refused (`JaxEnv.raise_errors`).
    """

    truth: Any
    """A float for each column of the layout."""
    applied: Any
    """A float for each element: actions in force."""
    source: Any
    """An int for each agent: who made the last decision."""
    alive: Any
    """A bool for each agent."""
    returns: Any
    """A float for each agent: sum of rewards of the running episode."""
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
        logging.getLogger("heron_env").warning("JaxEnv(%s): the first jitted call may compile for minutes", self.env)
        self.autoreset, self._dtype = autoreset, jnp.dtype(dtype)
        self._groups = groups_of(self.env)
        self.groups = dict(self.env.group_map)
        observers = [rank for name in self.groups for rank in self._groups[name].ranks]
        self._loops = Loops(self.env, observers)
        self._infos = {name: self._loops.info_columns(self._groups[name].ranks) for name in self.groups}
        masked = self.env.simulation.masks.ranks
        self._masked = {name: of for name in self.groups if (of := masked & {*self._groups[name].ranks})}

    def reset(self, key: Any) -> tuple[EnvState, Step]:
        """Begin the first episode of a seed that is drawn with `key`."""
        return self.begin(jax.random.bits(key, dtype=jnp.uint64))

    def begin(self, seed: Any, episode: Any = 0) -> tuple[EnvState, Step]:
        """Begin this episode of this seed, both uint64: what a BatchEnv's lane with this seed begins with."""
        with np.errstate(over="ignore"):
            lane = TracedLane(self._loops)
            lane["seeds"].put(0, jnp.asarray(seed, jnp.uint64), True)
            lane["episodes"].put(0, jnp.asarray(episode, jnp.uint64) - jnp.uint64(1), True)
            lane["chosen"].put(0, True, True)
            self._loops.run("begin_episodes", lane)
            self._loops.run("begin", lane)
            self._loops.run("inform", lane)
            return self._state(lane), self._handed_out(lane)

    def step(self, state: EnvState, actions: Mapping[str, Any], key: Any = None) -> tuple[EnvState, Step]:
        """A control step; `actions`: `[agents, elements]` by group. Agents of a group that is left out do nothing:
        policies of their own are not asked.

        key: where given, an episode that begins anew has a seed drawn with it, else it is the next one of its seed.

        An illegal action is clipped; it is one of the errors of which the first is kept in the state.
        """
        with np.errstate(over="ignore"):
            lane = TracedLane(self._loops, state._asdict(), self.autoreset)
            self._give(lane, actions)
            for phase in ("check", "decide", "affect", "clear"):
                self._loops.run(phase, lane)
            for number in range(self._loops.model.substeps):
                self._loops.run("substep", lane, number)
            self._loops.run("close", lane)
            self._loops.run("end", lane)
            if self.autoreset:  # who is over has only just ended
                lane["over"].put(0, 0, True)
            self._loops.run("finish", lane)
            after, step = self._state(lane), self._handed_out(lane)
            if not self.autoreset:
                return after, step
            ended, number = WORDS.truth_of(lane["ended"][0]), after.episodes + jnp.uint64(1)
            seeds = after.seeds
            if key is not None:
                number, seeds = jnp.uint64(0), jnp.where(ended, jax.random.bits(key, dtype=jnp.uint64), seeds)
            after, seen, infos = restart(self.begin)(ended, (after, step.observations, step.infos), seeds, number)
            return after, step._replace(observations=seen, infos=infos)

    def raise_errors(self, state: EnvState) -> None:
        """Raise RuleError or InvalidAction for the first environment in `state` `[...]` with an error."""
        codes = np.asarray(state.error).reshape(-1)
        if codes.any():
            lane = int(np.flatnonzero(codes)[0])
            truth = np.stack([np.asarray(column).reshape(-1) for column in state.truth], axis=-1)
            arrays = SimpleNamespace(error=codes, steps=np.asarray(state.steps).reshape(-1), truth=truth)
            position, rule = int(codes[lane]) >> 12, int(codes[lane]) >> 8 & 15
            if rule == ILLEGAL:  # the state has what was made of it
                agent = self.env.hierarchy.ids[self._loops.tables.rank_of[position]]
                raise InvalidAction(f"lane {lane}: {agent!r} was given an action outside of its space; it was clipped")
            raise self._loops.errors.of(int(codes[lane]), arrays, lane)

    def _give(self, lane: TracedLane, actions: Mapping[str, Any]) -> None:
        for name, values in actions.items():
            group = group_named(self._groups, name, "step() got actions for")
            values = jnp.asarray(values, self._dtype).reshape(len(group.agents), group.spec.size)
            for place, rank in enumerate(group.ranks):
                span, position = self._loops.tables.slices[rank], self._loops.tables.position[rank]
                lane["actions"].put((0, span), values[place], True)
                lane["source_in"].put((0, position), EXPLICIT * lane["alive"][0, position], True)

    def _state(self, lane: TracedLane) -> EnvState:
        n = self._loops.model.layout.size

        def packed(name: str) -> Any:
            kind = KINDS[name] or self._dtype
            cells = [jnp.asarray(cell).astype(kind) for cell in lane[name].cells[: n if name == "truth" else None]]
            return tuple(cells) if name in OF_AGENTS else cells[0]

        return EnvState(**{name: packed(name) for name in KINDS})

    def _handed_out(self, lane: TracedLane) -> Step:
        if self._loops.hides:
            self._loops.run("sight", lane)
        self._loops.run("publish", lane)
        if self._loops.relative:
            self._loops.converter.value(loop_kernels.relate)(lane, 0, lane["received"], lane["out_observations"])
        elif self._loops.noisy:
            self._loops.converter.value(loop_kernels.add_noise)(lane, 0, lane["out_observations"])
        if self._loops.hides and not self._loops.relative:
            self._loops.converter.value(loop_kernels.hide)(lane, 0, lane["out_observations"])

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

    def _active(self, lane: TracedLane, group: Group) -> Any:
        """Whose action will count in the coming step?"""
        timings = [self.env.timings[rank] for rank in group.ranks]
        tick, phase = (jnp.array([getattr(timing, name) for timing in timings]) for name in ("tick", "phase"))
        alive = lane["alive"][0, self._loops.tables.position[list(group.ranks)]].array != 0
        return ticks_at(lane["steps"][0] * self.env.dt_ns, tick, phase) & alive

    def _offered(self, lane: TracedLane, group: Group, cells: list[Any], active: Any) -> Any:
        """The group's masks on what it sees, int8 `[agents, choices]`; who is not active, the no-op alone."""
        ruled = [(place, rank) for place, rank in enumerate(group.ranks) if rank in self._masked[group.name]]
        for place, rank in ruled:
            view = self.env.simulation.model.plan.views[rank]
            for k, column in enumerate(view.columns[: view.own]):
                lane["visible"].put((0, column), rounded(cells[place * group.width + k]), True)
            lane["acting"].put((0, self._loops.tables.position[rank]), active[place], True)
        self._loops.run("offer", lane)
        flags = [jnp.asarray(everything(group.spec))] * len(group.ranks)
        for place, rank in ruled:
            flags[place] = lane["allowed"][0, self._loops.tables.choices_of(rank)].array.astype(jnp.int8)
        return jnp.where(active[:, None], jnp.stack(flags), noop_alone(group.spec))


def restart(begin: Callable[..., tuple[EnvState, Step]]) -> Callable[..., Any]:
    """(ended, what there is, seed, number) -> the next episode where one has ended.

    Of a batch nothing is begun in steps in which no episode ends; that is why this says itself what its batch is.
    """

    def chosen(ended: Any, mine: Any, seed: Any, number: Any) -> Any:
        state, step = begin(seed, number)
        state = state._replace(error=jnp.where(mine[0].error != 0, mine[0].error, state.error))
        return jax.tree.map(partial(jnp.where, ended), (state, step.observations, step.infos), mine)

    def kept(ended: Any, mine: Any, seed: Any, number: Any) -> Any:
        return mine

    def many(size: int, batched: Any, *given: Any) -> Any:
        each = jax.tree.map(
            lambda value, is_batched: value if is_batched else jnp.broadcast_to(value, (size, *value.shape)),
            given, tuple(batched),
        )  # fmt: skip
        made = jax.lax.cond(each[0].any(), jax.vmap(chosen), kept, *each)
        return made, jax.tree.map(lambda _: True, made)

    one: Any = custom_vmap(lambda ended, *given: jax.lax.cond(ended, chosen, kept, ended, *given))
    one.def_vmap(many)
    return one  # type: ignore[no-any-return]
