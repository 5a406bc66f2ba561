"""The lanes of a batch on the event clock: restarts, hooks between stretches, and what an episode of one yielded."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from heron_env.core.masking import everything
from heron_env.engine.arrays import ASKED
from heron_env.engine.cache import cached_file
from heron_env.engine.event import forms as f
from heron_env.engine.event.memory import SPARE, EventMemory, hierarchy_tables, schedule_tables
from heron_env.envs.base import HeronEnv
from heron_env.envs.batch.lane_groups import Group
from heron_env.envs.batch.lanes import LaneEngine
from heron_env.envs.batch.rows import Ended, Rows
from heron_env.envs.episodes import EpisodeResult
from heron_env.envs.event.notes import notes
from heron_env.envs.event.physics import in_time, score_legs, with_more
from heron_env.envs.hooks import has_training_rewards, links_compiled
from heron_env.envs.percentiles import Percentiles
from heron_env.errors import ConfigError, ScheduleError
from heron_env.scheduling.records import MessageCounts
from heron_env.scheduling.sharing import MediumUse, overload, ways_of
from heron_env.scheduling.timing import Timing, require_before_the_end, to_seconds

Floats = NDArray[np.float64]
FOLDER = Path(__file__).parents[2] / "engine" / "event"
KEEPS = {"rewards": f.KEEP_REWARDS, "actions": f.KEEP_ACTIONS, "ages": f.KEEP_AGES,
         "observations": f.KEEP_OBSERVATIONS, "messages": f.KEEP_MESSAGES, "kpis": 0}  # fmt: skip
"""What results may keep."""
SILENT = 1000
"""Episodes in a row without a single observation, after which nothing will come any more."""
Lanes = NDArray[np.bool_]
Schedules = Callable[[int, int], Sequence[Timing]]
"""(seed, episode) -> the timings of an episode, by rank."""


class Kernels(NamedTuple):
    """The loops of the clock."""

    begin: Callable[..., int]
    run: Callable[..., int]
    count: Callable[..., int]
    collect: Callable[..., int]
    answer: Callable[..., int]
    records: Callable[..., int]


@functools.cache
def compiled_clock() -> Kernels:
    """Compiled once for an installation."""
    clock = cached_file(FOLDER / "clock.py")
    return Kernels(*(getattr(clock, name) for name in Kernels._fields))


class EventLanes:
    """B lanes that run until they must be told actions.

    Args:
        env: whose spaces and tables all share; steps: its lanes, of the engine.
        schedules: of each episode; drawn: are they not all the same? shared: may messages wait in one of them?
        clock: the kernels (`compiled_clock`).

    Attributes:
        steps: the lanes of the engine, with their hooks and beginnings.
        arrays: of the clock, by name (forms.FORMS).
        timings: of each lane's episode.
        status: what each lane is doing, int64 `[B]`.
    """

    def __init__(
        self, env: HeronEnv, groups: dict[str, Group], steps: LaneEngine, schedules: Schedules, *, drawn: bool,
        shared: bool, gamma: float, with_state: bool, keeps: int, clock: Kernels,
    ) -> None:  # fmt: skip
        simulation, layout, lanes = env.simulation, env.simulation.model.layout, steps.lanes.count
        self.steps, self._env, self._count, self._clock = steps, env, lanes, clock
        self._schedules, self._drawn, self._names = schedules, drawn, list(env.group_map)
        engine, timings = steps.lanes, list(schedules(0, 0))
        engine.arrays.moving[:] = 0
        self.timings: list[Sequence[Timing]] = [timings] * lanes
        reports = [simulation.acts_itself(r) and len(layout.rows[r].reported.columns) > 0 for r in range(len(timings))]
        observers = engine.model.observers
        fixed = hierarchy_tables(engine.model, engine, simulation.exchange.edges, reports)
        self._servers = 2 * len(timings) * (drawn and shared)
        self._ruled = links_compiled(env)
        fixed |= schedule_tables([timings] * (lanes if drawn else 1), self._servers, ruled=self._ruled)
        fixed["group"] = np.repeat(np.arange(len(self._names)), [len(groups[name].ranks) for name in self._names])
        fixed["masks"] = self._masks([simulation.model.specs[rank] for rank in observers])
        self._trains = steps.trains_compiled or (with_state and has_training_rewards(env))
        possible = list(simulation.model.possible)
        fixed["trained"] = np.array([possible.index(rank) for rank in observers], dtype=np.int64)
        if self._trains and not steps.trains_compiled:
            engine.follow([engine.called.native("at_close", self._train)])
        sizes = self._numbers(groups, len(observers))
        sizes[f.KEEPS], sizes[f.WITH_STATE] = keeps, with_state
        reals, space = np.zeros(f.REAL_NUMBERS), env.state_space
        reals[f.GAMMA], reals[f.STATE_LOW], reals[f.STATE_HIGH] = gamma, space.low.min(), space.high.max()
        sizes[f.SERVERS] = len(fixed["medium"]) // (lanes if drawn else 1)
        self.memory = EventMemory(lanes, fixed, sizes, reals, columns=layout.width, states=layout.size, shared=shared)
        self.arrays = self.memory.arrays
        self.logs: list[list[NDArray[np.float64]]] = [[] for _ in range(lanes)]
        self._silent = np.zeros(lanes, dtype=np.int64)
        self._notes: dict[int, list[str]] = {}

    def _numbers(self, groups: Mapping[str, Group], deciders: int) -> NDArray[np.int64]:
        """What the clock must know of the environment and its first schedule, int64 `[SIZE_NUMBERS]`."""
        env, timings, engine = self._env, self.timings[0], self.steps.lanes
        sizes = np.zeros(f.SIZE_NUMBERS, dtype=np.int64)
        sizes[f.RANKS], sizes[f.DECIDERS], sizes[f.DT] = len(timings), deciders, env.dt_ns
        sizes[f.SUBSTEPS], sizes[f.PER_BOUNDARY] = env.physics_substeps, env.reports
        sizes[f.EVERY] = env.physics_substeps // env.reports
        sizes[f.SCHEDULES] = len(timings) * self._drawn
        sizes[f.RING] = min(2 * timings[0].msg // env.dt_ns + 2, SPARE)
        sizes[f.OBS_WIDTH] = max(groups[name].width for name in self._names)
        sizes[f.ACTION_WIDTH] = max(spec.size for spec in env.simulation.model.specs)
        sizes[f.TRAINS] = self._trains
        places = engine.places_in_python
        sizes[f.PYTHON_FOLLOWS] = f.BOUNDARIES if places & {"finish", "at_close"} else f.NOTHING
        sizes[f.PYTHON_FOLLOWS] = f.SUBSTEPS_TOO if "physics" in places else sizes[f.PYTHON_FOLLOWS]
        return sizes

    @staticmethod
    def _masks(specs: Sequence[Any]) -> NDArray[np.uint8]:
        """What is allowed where no rule forbids anything, for each decider, flat; nothing where nobody chooses."""
        widest = max(int(spec.ncats.sum()) for spec in specs)
        masks = np.ones((len(specs), widest), dtype=np.uint8)
        for mask, spec in zip(masks, specs, strict=True):
            mask[: int(spec.ncats.sum())] = everything(spec)
        return masks.reshape(-1)

    @property
    def status(self) -> NDArray[np.int64]:
        """What each lane is doing."""
        status: NDArray[np.int64] = self.arrays["lane"][:, f.STATUS]
        return status

    # Moving

    def start(self, lanes: Lanes, seeds: NDArray[np.uint64] | None, options: Any = None) -> None:
        """Begin an episode in `lanes`: episode 0 of `seeds` `[B]`, or the next one of the seed in use."""
        self.steps.start(lanes, seeds, options)
        self.status[lanes] = f.IDLE
        numbers = np.flatnonzero(lanes)
        if self._drawn:
            self._draw(numbers)
        for lane in numbers.tolist():
            self.logs[lane] = []
        self._call(self._clock.begin)

    def _draw(self, numbers: NDArray[np.int64]) -> None:
        """The schedules of the episodes that begin."""
        for lane in numbers.tolist():
            timings = self._schedules(int(self.steps.seeds[lane]), int(self.steps.episodes[lane]))
            self.timings[lane] = timings
            for name, table in schedule_tables([timings], self._servers, ruled=self._ruled).items():
                if name in ("timing", "odds", "source_of", "medium"):
                    self.arrays[name][lane * len(table) : (lane + 1) * len(table)] = table
                elif not np.array_equal(table, self.arrays[name]):
                    raise ConfigError(
                        "BatchEnv(clock='event'): this schedule draws which data delays or losses come from, anew in "
                        "every episode; give one source to all, or run_event_driven()"
                    )

    def _call(self, kernel: Callable[..., int]) -> None:
        if self._ruled:
            self.memory.sizes[f.ENGINE] = self.steps.lanes.table
        try:
            self.steps.lanes.run(kernel, self.memory.at)
        except Exception:
            self._ask_again()
            raise

    def _ask_again(self) -> None:
        """Raise in Python what the rule `link` ended in, or was refused for, if it was that."""
        ends = self.steps.arrays.ways[:, ASKED:].reshape(-1).astype(np.int64)
        self.steps.arrays.ways[:] = 0.0
        for lane in np.flatnonzero(ends).tolist():
            self.steps.hooks.ask_link(lane, int(ends[lane]))

    def go_on(self) -> None:
        """Let all lanes run until each waits, or its episode is over. Raises ScheduleError where time ends before."""
        while (self.status == f.RUN).any():
            self._call(self._clock.run)
            status = self.status
            for step in self.steps.steps[status == f.BEYOND].tolist():
                require_before_the_end((step + 1) * self._env.dt_ns, f"the end of step {step}")
            if (short := self.arrays["lane"][status == f.FULL, f.SHORT]).any():
                self._make_room(int(np.bitwise_or.reduce(short)))

    def _make_room(self, short: int) -> None:
        full = np.flatnonzero(self.status == f.FULL)
        if short & f.LOG_SHORT:
            self.drain(full)
        if short & ~f.LOG_SHORT:
            self.memory.grow(short & ~f.LOG_SHORT, self.steps.steps)
        self.status[full] = f.RUN

    def drain(self, lanes: NDArray[np.int64]) -> None:
        """Take over what lanes have noted."""
        lane, log = self.arrays["lane"], self.arrays["log"]
        for b in lanes.tolist():
            self.logs[b].append(log[b, : lane[b, f.LOG]].copy())
            lane[b, f.LOG] = 0

    def records(self, b: int) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """All that a lane has noted, and of each record the kind and where its numbers begin, int64 `[records, 2]`."""
        self.drain(np.array([b]))
        log = np.concatenate([np.zeros(0), *self.logs[b]])
        index = np.zeros((len(log) // 2, 2), dtype=np.int64)
        return log, index[: self._clock.records(log, index)]

    def _train(self, first: int, last: int) -> None:
        """What a trainer should use instead of the rewards, of the lanes at a boundary."""
        lanes = self.steps.hooks.at_boundary(first, last)
        if len(lanes):
            rewards = self.steps.training_rewards(lanes)
            assert rewards is not None
            self.steps.arrays.training[lanes] = rewards

    def notes(self, b: int, steps: int) -> list[str]:
        """What the delays of a lane can't show in so many steps; lanes of one schedule have the same."""
        if self._drawn or steps not in self._notes:
            env, deciding = self._env, self.arrays["deciders"].tolist()
            self._notes[steps] = notes(
                env.simulation, self.timings[b], env.dt_ns, deciding, reports=env.reports,
                end_ns=None if self._ruled else steps * env.dt_ns,
            )  # fmt: skip
        return list(self._notes[steps])

    def require_voice(self, lanes: NDArray[np.int64]) -> None:
        """Note episodes that are over. Raises ScheduleError where no observation ever comes."""
        self._silent[lanes] = np.where(self.arrays["lane"][lanes, f.ROWS] == 0, self._silent[lanes] + 1, 0)
        if self._silent.max() >= SILENT:
            raise ScheduleError(
                f"{SILENT} episodes of lane {int(self._silent.argmax())} ended without a single observation that came: "
                "nobody decides anything; lower loss or delays, or let episodes last longer"
            )

    # Handing out

    def rows(self) -> Rows:
        """What waits for actions, and what has ended since; what has ended is told once."""
        self._call(self._clock.count)
        counts, groups = self.arrays["counts"], len(self._names)
        flat = counts.T.reshape(-1)  # by group and lane, rows first
        first = np.concatenate([[0], np.cumsum(flat)])
        counts[:] = first[:-1].reshape(2 * groups, self._count).T
        n, total = int(first[groups * self._count]), int(first[-1])
        self.memory.hand_out(total)
        self._call(self._clock.collect)
        starts = first[:: self._count].tolist()
        a = self.arrays
        row, obs, earned, state = a["row"], a["row_obs"], a["row_earned"], a["row_state"]
        training = (lambda where: earned[where, 1]) if self._trains else (lambda where: None)
        states = (lambda where: state[where]) if state.shape[1] else (lambda where: None)
        here, ends, masked = slice(0, n), slice(n, total), bool(self._env.simulation.masks.ranks)
        bits = row[ends, f.ROW_BITS]
        ended = Ended(
            lane=row[ends, f.ROW_LANE], rank=row[ends, f.ROW_RANK],
            parts={g: slice(starts[groups + k] - n, starts[groups + k + 1] - n) for k, g in enumerate(self._names)},
            obs=obs[ends], reward=earned[ends, 0], steps=row[ends, f.ROW_STEPS], took=bits & 8 != 0,
            terminated=bits & 2 != 0, truncated=bits & 4 != 0, training_reward=training(ends), state=states(ends),
        )  # fmt: skip
        first_row = row[here, f.ROW_BITS] != 0  # what `take` reads of `row` is no view of the receiver's
        return Rows(
            lane=row[here, f.ROW_LANE].copy(), rank=row[here, f.ROW_RANK].copy(),
            parts={name: slice(starts[k], starts[k + 1]) for k, name in enumerate(self._names)},
            obs=obs[here], mask=a["row_mask"][here].view(np.bool_) if masked else None,
            number=row[here, f.ROW_NUMBER], time=earned[here, 2], first=first_row, reward=earned[here, 0],
            steps=row[here, f.ROW_STEPS], took=~first_row, ended=ended, training_reward=training(here),
            state=states(here),
        )  # fmt: skip

    def take(self, actions: NDArray[np.float64]) -> None:
        """The actions `[n, k]` of the rows handed out last; their lanes run on."""
        a = self.arrays
        a["answer"][: len(actions), : actions.shape[1]] = actions
        self._clock.answer(self.steps.lanes.table, 0, len(actions), self.memory.at)


class Noted:
    """What lane `b`, whose episode is over, has noted of it, in arrays: an EpisodeResult is made of them, or less."""

    def __init__(self, env: HeronEnv, lanes: EventLanes, b: int) -> None:
        self.env, self.lanes, self.b = env, lanes, b
        self._log, self._index = lanes.records(b)

    def rewards(self) -> tuple[Floats, Floats]:
        """Boundary times, s `[n]`, and rewards by rank `[n, ranks]`, nan where an agent had ended."""
        table = self._table(f.REWARD_LOG, len(self.env.hierarchy) + 1)
        return table[:, 0], table[:, 1:]

    def totals(self) -> Floats:
        """Sum of the rewards by rank."""
        steps = self.lanes.steps
        totals: Floats = steps.arrays.last_returns[self.b, steps.position]
        return totals

    def actions(self) -> dict[int, Floats]:
        """By rank of who acts: when each took effect, its latency, s, and its elements, `[n, 2 + elements]`."""
        specs = self.env.simulation.model.specs
        return self._by_rank(f.ACTION_LOG, {rank: spec.size + 2 for rank, spec in enumerate(specs) if spec.size})

    def ages(self) -> dict[int, Floats]:
        """By deciding rank: how old was what it saw of each source, s `[n, sources]`."""
        views = self.env.simulation.model.plan.views
        return self._by_rank(f.AGES_LOG, {rank: len(views[rank].sources) for rank in self.deciding})

    def observations(self) -> dict[int, Floats]:
        """By deciding rank: when it was asked for, s, and what was seen, `[n, 1 + columns]`."""
        plan = self.env.simulation.model.plan
        return self._by_rank(f.OBSERVATION_LOG, {rank: plan.size(rank) + 1 for rank in self.deciding})

    @property
    def deciding(self) -> list[int]:
        """Ranks of the agents that decide."""
        return sorted(self.lanes.arrays["deciders"].tolist())

    @property
    def ends(self) -> tuple[dict[str, bool], dict[str, bool]]:
        """By agent: terminated, truncated."""
        how, ids = self.lanes.arrays["how"][self.b].tolist(), self.env.hierarchy.ids
        terminated, truncated = ({a: bool(end & bit) for a, end in zip(ids, how, strict=True)} for bit in (1, 2))
        return terminated, truncated

    @property
    def steps(self) -> int:
        """Control steps of the episode."""
        return int(self.lanes.steps.last_length[self.b])

    @property
    def timings(self) -> Sequence[Timing]:
        """By rank."""
        return self.lanes.timings[self.b]

    def kpis(self) -> dict[str, float]:
        """The environment's own figures."""
        return self.lanes.steps.lane(self.b).kpis()

    def media(self) -> dict[str, MediumUse]:
        """What went over media that links share."""
        a, servers, end = self.lanes.arrays, int(self.lanes.memory.sizes[f.SERVERS]), self.steps * self.env.dt_ns
        ways, _ = ways_of([timing.config for timing in self.timings])
        used: dict[str, MediumUse] = {}
        for s, (medium, name) in enumerate(ways):
            k = self.b * servers + s
            backlog, offered, carried, refused = a["server_bytes"][k].tolist()
            free, busy = int(a["server"][k, f.S_FREE]), int(a["server"][k, f.S_BUSY])
            used[name] = MediumUse.until(end, medium.rate, offered, carried, refused, backlog, busy=busy, free=free)
        return used

    def notes(self) -> list[str]:
        """What its delays can't show."""
        return self.lanes.notes(self.b, self.steps)

    def _table(self, kind: int, width: int) -> Floats:
        """All records of a kind `[n, width]`."""
        starts = self._index[self._index[:, 0] == kind, 1]
        return self._wide(starts, width)

    def _wide(self, starts: NDArray[np.int64], width: int) -> Floats:
        """So many numbers from each start."""
        if not len(starts):
            return np.zeros((0, width))
        rows: Floats = sliding_window_view(self._log, width)[starts]
        return rows

    def _by_rank(self, kind: int, sizes: dict[int, int]) -> dict[int, Floats]:
        """The records of a kind by rank, which is their first number; `sizes`: of what follows."""
        starts = self._index[self._index[:, 0] == kind, 1]
        ranks = self._log[starts].astype(np.min_scalar_type(len(self.env.hierarchy)))
        starts = starts[np.argsort(ranks, kind="stable")] + 1
        stops = np.cumsum([0, *np.bincount(ranks, minlength=len(self.env.hierarchy))]).tolist()
        parts = {rank: slice(stops[rank], stops[rank + 1]) for rank in sizes}
        if len(set(sizes.values())) == 1:
            table = self._wide(starts, next(iter(sizes.values())))
            return {rank: table[part] for rank, part in parts.items()}
        return {rank: self._wide(starts[part], sizes[rank]) for rank, part in parts.items()}


def result_of(env: HeronEnv, lanes: EventLanes, b: int, record: frozenset[str]) -> EpisodeResult:
    """Of lane `b`, whose episode is over. What `record` does not name is blank; of rewards the totals are there."""
    ids, simulation, noted = env.hierarchy.ids, env.simulation, Noted(env, lanes, b)
    acting = [agent for agent, spec in zip(ids, simulation.model.specs, strict=True) if spec.size]
    observing = [ids[rank] for rank in noted.deciding] if "observations" in record else []
    masked = sorted(simulation.masks.ranks)
    moment = int(lanes.steps.seeds[b]), int(lanes.steps.episodes[b])
    result = EpisodeResult.blank(ids, acting, observing, [ids[rank] for rank in masked], moment=moment)
    times, rewards = noted.rewards()
    for column, agent in zip(rewards.T, ids, strict=True):
        been = column == column  # nan where an agent had ended
        result.rewards[agent] = list(zip(times[been].tolist(), column[been].tolist(), strict=True))
    row = lanes.arrays["lane"][b]
    result.end_time = to_seconds(noted.steps * env.dt_ns)
    if "rewards" not in record:
        totals = zip(ids, noted.totals().tolist(), strict=True)
        result.rewards = {agent: [(result.end_time, total)] for agent, total in totals}
    result.terminated, result.truncated = noted.ends
    for rank in masked:
        result.masked[ids[rank]] = int(lanes.arrays["masked"][b, rank])
    result.cancelled_effects, result.unfinished_effects = int(row[f.CANCELLED]), int(row[f.UNFINISHED])
    if "ages" in record:
        for rank, ages in noted.ages().items():
            result.staleness[ids[rank]] = Percentiles.of(ages.reshape(-1))
    if "actions" in record:
        for rank, table in noted.actions().items():
            result.actions[ids[rank]] = list(zip(table[:, 0].tolist(), list(table[:, 2:]), strict=True))
            result.latency[ids[rank]] = Percentiles.of(table[:, 1])
    if "observations" in record:
        for rank, table in noted.observations().items():
            vectors = table[:, 1:].astype(np.float32)
            result.observations[ids[rank]] = list(zip(table[:, 0].tolist(), list(vectors), strict=True))
    if "messages" in record:
        lived = lanes.arrays["lived"][b].tolist()
        result.messages = _messages(row, noted.timings, lived, noted.steps, env.dt_ns)
        result.media = noted.media()
    if "kpis" in record:
        result.kpis = noted.kpis()
    result.notes = [*noted.notes(), *overload(result.media)]
    return result


def _messages(row: NDArray[Any], timings: Sequence[Timing], lived: Sequence[int], steps: int, dt: int) -> MessageCounts:
    """The lane's counts, with the legs of the physics cycles but the reports.

    `lived`: control steps that each agent was in; the last cycle's legs are cut off where the episode ends.
    """
    sent, delivered, lost, discarded = (int(row[k]) for k in (f.SENT, f.DELIVERED, f.LOST, f.DISCARDED))
    under_way = sent - delivered - lost - discarded
    counts = MessageCounts(sent, 0, delivered, lost, under_way, 0, discarded, int(row[f.REPEATED]))
    end, system = steps * dt, timings[0].msg
    back, came = (in_time(end, dt + leg * system, dt, steps) for leg in (1, 2))
    counts = with_more(counts, steps + back, back + came)
    return with_more(counts, *score_legs(timings, lived, dt, dt, end))
