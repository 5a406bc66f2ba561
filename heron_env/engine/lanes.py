"""Lanes: B environments of one hierarchy in compiled loops, and everything that may be done to them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor, wait
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heron_env.engine.arrays import DISABLED, LANES, Published
from heron_env.engine.binding import FAILURES
from heron_env.engine.called import Called
from heron_env.engine.lane_errors import ILLEGAL, RULE_CODES, WORLD_CODES, LaneErrors
from heron_env.engine.memory import Memory
from heron_env.engine.model import Model, Native, why_plain
from heron_env.engine.phases import Phases, Program, addresses_of, shared_loops, step_loops, vector_phases
from heron_env.engine.source import Source
from heron_env.engine.tables import AgentTables, DecisionTables, ObservationTables
from heron_env.engine.trial import Trial
from heron_env.errors import RuleError
from heron_env.seeding import MASK

TILE_BYTES = 1 << 18
"""Larger tiles are not made: they lie on the stack, and are to stay in the fastest caches."""
UNTILED = 0.1
"""Share of tiles from which, given up step after step, all lanes go on one by one."""
PARALLEL_FROM = 4096
"""Below this many agents in all lanes of a call threads cost more than they save."""
PARTS = 4
"""Parts of the lanes for each thread."""
Mask = NDArray[np.uint8]
ACTING, RESTARTING, MOVING = ("action_mask", "apply_action"), ("begin", "get_local_info", "sees"), ("advance",)
CLOSING = ("compute_local_reward", "is_terminated", "is_truncated", "get_local_info", "finish")
CALLED_BY = {
    "apply": ACTING, "begin_step": ACTING, "substep": MOVING, "go_on": MOVING, "close_step": CLOSING,
    "restart": RESTARTING, "inform": ("get_local_info",), "offer": ("action_mask",),
    "sight": ("sees",), "sight_of": ("sees",), "show": ("sees",),
}  # fmt: skip
"""The rules, of agents and of the world, that a phase calls; others may call any."""


class Lanes:
    """The arrays of `lanes` environments of one hierarchy, and the loops over them.

    A phase runs over all lanes, or over a contiguous range of them (`lanes=range(a, b)`), in parts that threads share.
    A lane whose episode is over stands still until it restarts. Every phase raises RuleError or InvalidAction for what
    was refused, naming lane (if there are several), agent, rule and quantity.

    Args:
        model: what is run; compiled, or loaded from the cache, when phases are attached.
        lanes: how many environments.
        threads: how many threads share them; results do not depend on it.
        final: keep the last observation of each episode (`published.final`).
        later: make the arrays alone; `attach` is called before the first phase.

    Attributes:
        arrays: their state, to be read and written.
        attached: are there phases, and room for infos?
        called: the functions of Python that follow phases, and in_python: are there any? One thread runs all then.
        halfway: had anything changed when the last error was raised?
        published: what the last `observe` or `step` handed out; the set before it is still intact.
        position: of each rank, breadth first; rank_of: of each position.
        loops: what was compiled.
        ends: may a rule end an agent?
        parallel_from: agents in all lanes of a call from which it may be worth while to use threads.
        in_tiles: does a step take LANES lanes at once where it can? Results do not depend on it.
        tiled: the phases in which it does, and not_in_tiles: by phase, why it can't, known after the first step.
        always_shared: threads share every call, whether it is worth while or not.
        spans: each observer's columns in `published.observations`.
        failures: what a rule may end in without saying where.
    """

    failures: tuple[type[Exception], ...] = FAILURES
    ends: bool
    attached = in_python = halfway = False
    tiled: tuple[str, ...] = ()
    infos_in_python: list[list[dict[str, float]]] | None = None
    """Those of all lanes, by rank, where rules run in Python; compiled, they are in `arrays`."""

    def __init__(self, model: Model, lanes: int, threads: int = 1, *, final: bool = False, later: bool = False) -> None:
        reason = why_plain(model.hierarchy)
        if reason is not None:
            raise RuleError(f"this can't be compiled: {reason}; build the environment with compile=False")
        self._program = Program(model)
        source = self._program.source
        self.ends = source.ends
        self._lay_out(model, lanes, source, threads, final)
        if not later:
            self.attach(model)

    def _lay_out(self, model: Model, lanes: int, source: Source | None, threads: int, final: bool) -> None:
        """Make the arrays; `source`: None where nothing is generated."""
        tables = AgentTables(source, model.hierarchy, model.layout, model.specs)
        self.count, self._all, self._tables, self._slices = lanes, range(lanes), tables, tables.slices
        self.position: tuple[int, ...] = tuple(tables.position.tolist())
        self.rank_of: tuple[int, ...] = tables.rank_of
        self._memory, self._front, self._final = Memory(model, lanes, tables), 0, final
        self.called, self._later = Called(), list[Native]()
        self.arrays = self._memory.arrays
        self.threads, self.parallel_from, self.always_shared = threads, PARALLEL_FROM, False
        self.in_tiles, self._untiled = lanes >= LANES, 0.0
        self.not_in_tiles: dict[str, str] = {}
        self._pool = ThreadPoolExecutor(threads - 1) if threads > 1 else None

    def attach(self, model: Model) -> None:
        """The phases of this model, which has the hierarchy that the arrays were made for."""
        self.loops = self._program.compiled()
        self._tables.number_infos(self.loops.facts.infos)
        self._attach(model, self._program.world.table(), self.loops.module)

    def _attach(self, model: Model, cohorts: NDArray[np.int64], module: Any) -> None:
        """`cohorts`: the table of world rules; `module`: the phases of the rules."""
        tables, self.model = self._tables, model
        decisions = DecisionTables(model, self.position, self._slices)
        observations = ObservationTables(model, model.layout.width + tables.scratch)
        self.spans, self._floats = observations.spans, observations.floats
        self._noisy, self._relative, self._hides = observations.noisy, observations.relative, observations.hides
        self._memory.complete(model, tables, decisions, observations, cohorts, self._final)
        self.arrays = self._memory.arrays
        self._errors = LaneErrors(model, self.position, self.rank_of)
        self._ready: bool | None = None  # has a compiled step found its phases: True: for tiles, too
        self._alone: list[int] | None = None  # the phases of lanes one by one, for where tiles give some up
        self._trials = dict[tuple[Any, int], Trial]()
        self._run_with(module)
        self.attached = True
        self.follow([])

    def _run_with(self, module: Any) -> None:
        self._order = step_loops()
        self._phases = Phases(
            module,
            shared_loops(),
            self.model,
            final=self._final,
            noisy=self._noisy,
            relative=self._relative,
            hides=self._hides,
        )

    def follow(self, natives: Iterable[Native]) -> None:
        """From now on these follow their phases, too, behind those of the model."""
        self._later += natives
        if self.attached:
            self._natives = [*self.model.native, *self._later]
            self.in_python = any(native.python for native in self._natives)
            self._memory.set_natives(addresses_of(self._natives), python=self.in_python)
            self._ready = self._alone = None

    @property
    def places_in_python(self) -> set[str]:
        """Names of the phases that Python follows."""
        return {native.phase for native in self._natives if native.python}

    def restart_when_over(self, when: int) -> None:
        """What `step` does with a lane whose episode is over: arrays.DISABLED, as long as nobody says more, or else."""
        self._memory.set_restarts(when)

    # Phases

    def check(self, lanes: range | None = None) -> None:
        """Raise InvalidAction for the first given action that is illegal; nothing has changed then."""
        self._run(self._phases.loops["check"], lanes)

    def act(self, lanes: range | None = None) -> None:
        """Decisions (T10, T11) and what they do, top-down. Raises InvalidAction as `check` does."""
        self._run(self._order.begin_step, lanes)

    def substep(self, number: int, lanes: range | None = None) -> None:
        """Physics: the agents' `advance`, bottom-up, then the world's; per_step columns are 0 at number 0."""
        self._run(self._order.substep, lanes, number)

    def part_of_substep(self, number: int, begun: float, length: float, lanes: range | None = None) -> None:
        """`length` s of substep `number`, of which `begun` s are over; columns per step are 0 when step and part begin.

        The whole substep is then two parts or more.
        """
        substep = self._memory.set_piece(begun, length)
        try:
            self._run(self._order.go_on if begun else self._order.substep, lanes, number)
        finally:
            self._memory.set_piece(0.0, substep)

    @property
    def piece(self) -> tuple[float, float]:
        """(begun, length) s of what is carried out of a substep."""
        return self._memory.piece

    def close(self, lanes: range | None = None) -> None:
        """Rewards bottom-up, ends (T5), infos, returns; then the next exogenous values."""
        self._run(self._order.close_step, lanes)

    def restart(self, which: Mask | None = None, lanes: range | None = None) -> None:
        """Start an episode in the lanes that are over, or in `which` (uint8 `[B]`), with the world rule `begin`."""
        self.arrays.chosen[:] = self.arrays.over if which is None else which
        self._run(self._order.restart, lanes)

    def begin(self, lane: int, seed: int, episode: int) -> None:
        """Start this episode in one lane, as `restart` does; nothing is kept of the last."""
        arrays = self.arrays
        arrays.seeds[lane], arrays.episodes[lane], arrays.over[lane] = seed & MASK, (episode - 1) & MASK, 1
        self.restart(lanes=range(lane, lane + 1))

    def inform(self, lanes: range | None = None) -> None:
        """Compute infos anew, from the truth as it is now: after a Python hook has changed it."""
        if self._phases.inform is not None:
            self._run(self._phases.inform, lanes)

    def observe(self, lanes: range | None = None) -> Published:
        """Hand out observations with their noise, and the observers' rewards and ends."""
        self._front = 1 - self._front
        self._run(self._order.show, lanes)
        return self.published

    def look(self, lane: int) -> NDArray[np.float32]:
        """What the observers of one lane see now, float32 `[F]`, fresh; what was handed out stays as it is."""
        self._front = 1 - self._front  # into the other set of buffers: what was handed out last is still held
        try:
            self._run(self._order.show, range(lane, lane + 1))
            observation: NDArray[np.float32] = self.published.observations[lane].copy()
            return observation
        finally:
            self._front = 1 - self._front

    def look_around(self, lane: int, rank: int | None = None) -> None:
        """Ask in one lane who sees this agent now, or all (V11), of the truth as it is; the answers stand behind it."""
        if rank is None:
            self._call(self._order.sight, lane, lane + 1)
        else:
            self._call(self._order.sight_of, lane, rank)

    def step(self) -> Published:
        """A control step in one call: check, decide, affect, substeps, close, restart where one ended, observe."""
        if self._ready is not True:
            self._find_phases(tiled=True)
        memory = self._memory
        self._front = front = 1 - self._front
        try:
            if self._pool is not None and not self.in_python:
                self._run(self._phases.loops["check"], None)
                self._run(self._order.step, None)
                return memory.sets[front]
            at, failures = memory.at[front], 0  # `_run` of all lanes, in this thread
            try:
                failures = self._order.checked_step(at, 0, self.count)
                if failures:
                    self._redo(at)
                    self._raise_errors()
            except BaseException as error:
                self._abandon(error, failures)
                raise
        except BaseException:
            self._front = 1 - front
            raise
        return memory.sets[front]

    def step_one(self, lane: int) -> NDArray[np.float32]:
        """A step of one lane, which waits where its episode is over; what its observers see, as `look` gives it."""
        self._front, restarts = 1 - self._front, self._memory.set_restarts(DISABLED)
        try:
            self._run(self._order.checked_step, range(lane, lane + 1))
            observation: NDArray[np.float32] = self.published.observations[lane].copy()
            return observation
        finally:
            self._front = 1 - self._front
            self._memory.set_restarts(restarts)

    def _find_phases(self, *, tiled: bool = False) -> None:
        """Let a compiled step know its phases; `tiled`: several environments at once, where that is possible."""
        if self._ready is tiled:
            return
        in_tiles: dict[str, int] = {}
        if tiled and self.in_tiles and self._memory.tile <= TILE_BYTES:
            vector = vector_phases(self._program, self.loops)
            in_tiles, self.not_in_tiles = self._phases.tiled(vector, self._natives), vector.reasons
        shows = self._phases.shows(in_tiles, self._natives) and self._floats >= LANES
        self.tiled = tuple(in_tiles)
        self._memory.set_phases(self._phases.addresses(in_tiles), in_tiles, shows)
        if in_tiles:
            sizes, tables = self._memory.lane_sizes(), {**self._memory.fixed, **self._memory.numbers}
            self._memory.set_moves(vector.touched(in_tiles, sizes, tables), shows)
        self._ready = tiled

    @property
    def table(self) -> int:
        """The address of the table, for another loop; it knows all phases then."""
        self._find_phases()
        return int(self._memory.at[0])

    def run(self, loop: Callable[..., int], *more: Any) -> None:
        """Run a loop of somebody else's, `loop(address, first lane, last lane + 1, ...)`, over all lanes."""
        self._run(loop, None, *more)

    def offer(self, lanes: range | None = None) -> None:
        """Masks, into `allowed`: of the agents in `acting` that have such a rule, on what is in `visible`."""
        self._run(self._order.offer, lanes)

    # One lane at a time

    def apply(self, lane: int, rank: int) -> None:
        """One agent's apply_action, on what is in `actions`."""
        self._call(self._order.apply, lane, self.position[rank])

    def _call(self, loop: Callable[..., int], lane: int, more: int) -> None:
        failures = 0
        if self._ready is None:
            self._find_phases()
        try:
            failures = loop(self._memory.at[0], lane, more)
            if failures:
                self._raise_errors()
        except BaseException as error:
            self._abandon(error, failures, loop)
            raise

    # What is where

    @property
    def published(self) -> Published:
        """What was handed out last."""
        return self._memory.sets[self._front]

    @property
    def text(self) -> str:
        """The generated source."""
        return self._program.text(self.loops.facts)

    def action_slice(self, rank: int) -> slice:
        """The agent's elements in `actions`."""
        return self._slices[rank]

    def choices_of(self, rank: int) -> slice:
        """The agent's part of `allowed`; empty without a mask."""
        return self._tables.choices_of(rank)

    def info_fields(self, rank: int) -> tuple[str, ...]:
        """Names of the agent's info numbers."""
        source = self._program.source
        return self.loops.facts.infos.get(source.kinds[source.kind_of[rank]].name, ())

    def info_slice(self, rank: int) -> slice:
        """The agent's numbers in `infos`."""
        first = self._tables.first_info(rank)
        return slice(first, first + len(self.info_fields(rank)))

    def _raise_errors(self) -> None:
        """Raise what Python raised, or what was refused in the first lane with an error."""
        self.halfway = True
        if (own := self.called.taken()) is not None:
            raise own
        failed = np.flatnonzero(self.arrays.error)
        if len(failed):
            lane = int(failed[0])
            code = int(self.arrays.error[lane])
            self.halfway = code // 256 % 16 != ILLEGAL
            raise self._errors.of(code, self.arrays, lane)

    def _run(self, loop: Callable[..., int], lanes: range | None, *more: Any) -> None:
        span = self._all if lanes is None else lanes
        at, pool, failures = self._memory.at[self._front], None if self.in_python else self._pool, 0
        if self._ready is None:
            self._find_phases()
        try:
            if pool is not None and self.always_shared:
                failures = self._run_in_parts(pool, span, lambda first, last: loop(at, first, last, *more))
            elif pool is None or len(span) * len(self.position) < self.parallel_from:
                failures = loop(at, span.start, span.stop, *more)
            else:
                failures = self._trials.setdefault((loop, len(span)), Trial()).faster(
                    lambda: self._run_in_parts(pool, span, lambda first, last: loop(at, first, last, *more)),
                    lambda: loop(at, span.start, span.stop, *more),
                )
            if failures:
                self._redo(at)
                self._raise_errors()
        except BaseException as error:
            self._abandon(error, failures, loop)
            raise

    def _failure(self, error: Exception, loop: Any = None, lanes: range | None = None) -> RuleError:
        """The error of a rule that `loop` called; None: of any."""
        names = CALLED_BY.get(getattr(loop, "__name__", ""), tuple(WORLD_CODES | RULE_CODES))
        return self._errors.of_failure(error, self.arrays, self._slices, self._memory.piece, names, lanes)

    def _abandon(self, error: BaseException, failures: int, loop: Any = None) -> None:
        """Nothing of this call is left. Raises `error` under its name where compiled code ended in it: 0 failures."""
        self._memory.redo[:] = self.arrays.error[:] = 0
        before = self.called.taken()
        if before is not None and not failures:  # what compiled code ended in came of it
            raise before from None
        if not failures and isinstance(error, self.failures):
            raise self._failure(error, loop) from error

    def _redo(self, at: int) -> None:
        """Lanes that tiles have given up, one by one from where tiles begin."""
        memory = self._memory
        redo, begin = memory.redo, memory.tiles_at
        left = [(lane, lane + int(redo[lane])) for lane in np.flatnonzero(redo).tolist()]
        redo[:] = 0
        if not left:
            return
        if self._alone is None:
            self._alone = self._phases.addresses()
        in_tiles = memory.phases.copy()
        memory.phases[:] = self._alone
        try:
            for first, last in left:
                self._order.rest(at, first, last, begin)
        except self.failures as error:
            raise self._failure(error, lanes=range(first, last)) from error
        finally:
            memory.phases[:] = in_tiles
        self._untiled += 0.1 * (len(left) * LANES / self.count - self._untiled)
        if self._untiled > UNTILED:
            self.in_tiles, self._ready = False, None

    def _run_in_parts(self, pool: ThreadPoolExecutor, span: range, run: Callable[[int, int], int]) -> int:
        """Each thread takes the next part until there is none: one that gets no core holds up nobody for long."""
        parts = self.threads * PARTS
        cuts = [span.start + len(span) * k // parts for k in range(parts + 1)]
        left = iter(list(pairwise(cuts)))  # its `next` is one step of the interpreter: no part is taken twice

        def work() -> int:
            return sum(run(first, last) for first, last in left)

        jobs = [pool.submit(work) for _ in range(self.threads - 1)]
        try:
            failures = work()
        finally:  # nothing may run on when this returns, or raises
            running = [job for job in jobs if not job.cancel()]
            wait(running)
        return failures + sum(job.result() for job in running)


def program_text(model: Model) -> str:
    """The generated source, without compiling anything: what allocates is not known yet."""
    return Program(model).text()
