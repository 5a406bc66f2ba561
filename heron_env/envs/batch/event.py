"""BatchEnv on the event clock: many event-driven episodes at once, in compiled code."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, NoReturn

import numpy as np
from numpy.typing import NDArray

from heron_env.core.action import unmasked
from heron_env.engine.cache import uncollected
from heron_env.engine.event import forms as f
from heron_env.envs.base import HeronEnv
from heron_env.envs.batch.building import (
    MOST_THREADS,
    Batch,
    as_array,
    builder_of,
    counted,
    make_lanes,
    number_of_lane,
    read_only,
    seeds_of,
    steps_as_usual,
)
from heron_env.envs.batch.event_lanes import KEEPS, EventLanes, compiled_clock, result_of
from heron_env.envs.batch.rows import Rows
from heron_env.envs.episodes import EpisodeResult
from heron_env.envs.hooks import has_link_rule, links_compiled, require_options
from heron_env.envs.settings import require_clocks
from heron_env.errors import ConfigError, InvalidAction, ResetNeeded, RunInterrupted, did_you_mean, ended_in
from heron_env.given import is_one_of, require_switch, several
from heron_env.scheduling.drawn import AnySchedule, DrawnSchedule, may_wait
from heron_env.scheduling.timing import Timing

MODES = ("same_step", "disabled")


class EventBatchEnv(Batch):
    """Event-driven batch, `BatchEnv(..., clock="event")`: lane i equals `run_event_driven(seed + i)`, bit for bit.

        rows = batch.begin()
        while len(rows):  # never 0 with autoreset="same_step": stop when you like
            rows = batch.answer(policy(rows))
        results = batch.results()

    Each lane runs until it lacks an action. Then one call of the policy answers all observations that wait, also those
    of a lane whose episode ends before the actions take effect.

    Args:
        env, num_envs, seed, threads, options: as of BatchEnv.
        schedule: ticks, delays, jitter, loss, as in `run_event_driven`; one that is drawn, for each lane and episode;
            None: the environment's own.
        autoreset: "same_step": where an episode ends the lane's next one begins at once; "disabled": the lane waits for
            `reset(mask=)`.
        gamma: rewards of several control steps are summed with it (Rows.reward).
        with_state: give the truth with each row, for a central critic, and the `training_rewards` of a class where they
            are a method; those in a rule are always there.
        record: what `results` keep beside totals: any of "rewards" (by boundary), "actions" (with latency), "ages"
            (staleness), "observations", "messages" and "kpis".

    Raises ConfigError naming what the compiled clock can't do, with `run_event_driven` as the way.
    """

    def __init__(
        self,
        env: HeronEnv | str | Callable[..., HeronEnv],
        num_envs: int,
        *,
        seed: int = 0,
        clock: Literal["event"] = "event",
        schedule: AnySchedule = None,
        threads: int | None = None,
        autoreset: Literal["same_step", "disabled"] = "same_step",
        gamma: float = 1.0,
        with_state: bool = False,
        record: Iterable[str] = (),
        **options: Any,
    ) -> None:
        num_envs = counted("num_envs", num_envs)
        threads = None if threads is None else counted("threads", threads, MOST_THREADS)
        _require_settings(with_state, autoreset, gamma, options)
        build = builder_of(env, options)
        super().__init__(build(), num_envs, autoreset, seed)
        _require_possible(self.env)
        self._record = _recorded(record)
        keeps = sum(KEEPS[name] for name in self._record)
        schedule = self.env.schedule if schedule is None else schedule
        drawn = isinstance(schedule, DrawnSchedule)
        schedules = _schedules(self.env, schedule)
        require_clocks(self.env.simulation.model.plan, schedule)
        steps = make_lanes(self.env, self._groups, (), num_envs, build, threads)
        self._lanes = EventLanes(
            self.env, self._groups, steps, schedules, drawn=drawn, shared=may_wait(schedule),
            gamma=float(gamma), with_state=with_state, keeps=keeps, clock=compiled_clock(),
        )  # fmt: skip
        self._engine = self._lanes.steps
        self._rows: Rows | None = None
        self._results: list[EpisodeResult | None] = [None] * num_envs
        self._untold = np.zeros(num_envs, dtype=bool)
        """Whose last episode is over and still as it was."""
        self._half_way, self._why = False, ""

    # Running

    def begin(self) -> Rows:
        """Begin an episode in every lane, and run to the first decisions: `reset()` of all."""
        return self.reset()

    def reset(
        self,
        seed: int | Sequence[int | None] | NDArray[Any] | None = None,
        mask: NDArray[np.bool_] | None = None,
        options: Mapping[str, Any] | Sequence[Mapping[str, Any]] | None = None,
    ) -> Rows:
        """Begin an episode in all lanes, or those of `mask` `[B]`; return all rows that wait for actions.

        `seed`, `options`: as of BatchEnv.reset; options may be a sequence, those of each lane. Raises ConfigError;
        RunInterrupted where another thread moves this batch.
        """
        return self._drive("reset()", self._begin_anew, seed, mask, options)

    def _drive(self, call: str, do: Callable[..., Rows], *args: Any) -> Rows:
        """What `do(...)` gives, as the one who drives; what ends it half-way is named until all lanes are reset."""
        try:
            return self._ownership.drive(call, do, *args)
        except BaseException as error:
            if self._half_way and not self._why and not isinstance(error, RunInterrupted):  # another's call
                self._why = ended_in(call, error)
            raise

    def _begin_anew(self, seed: Any, mask: Any, options: Any) -> Rows:
        lanes = self._mask(mask)
        groups = self._by_options(options)
        if self._half_way and not lanes.all():
            raise ResetNeeded(
                f"reset(mask=...): an error ended the last call half-way ({self._why}); call reset() for all lanes"
            )
        seeds, explicit = seeds_of(seed, self._seed, self.num_envs)
        self._keep(lanes)
        fresh = lanes & (explicit | ~self._started)
        self._half_way = True
        for some, keys in ((fresh, seeds), (lanes & ~fresh, None)):
            for alike, of_lane in groups:
                if (some & alike).any():
                    self._lanes.start(some & alike, keys, of_lane)
        self._started |= lanes
        return self._go_on()

    def _by_options(self, options: Any) -> list[tuple[NDArray[np.bool_], Mapping[str, Any] | None]]:
        """Lanes with equal options for reset, and these. Raises ConfigError."""
        if isinstance(options, Mapping) or not isinstance(options, Sequence):
            _require_options(options, self.env)
            return [(np.ones(self.num_envs, dtype=bool), options)]
        if len(options) != self.num_envs:
            raise ConfigError(f"reset(options=...): {len(options)} of them; give one for each of {self.num_envs} lanes")
        groups: list[tuple[NDArray[np.bool_], Mapping[str, Any] | None]] = []
        for lane, of_lane in enumerate(options):
            _require_options(of_lane, self.env)
            alike = next((mask for mask, other in groups if other == of_lane), None)
            if alike is None:
                groups.append((alike := np.zeros(self.num_envs, dtype=bool), of_lane))
            alike[lane] = True
        return groups

    def answer(self, actions: Any) -> Rows:
        """Answer the last rows with actions, `[n, k]` (`[n]` where k is 1), in their order, and run on.

        Elements behind an agent's own are ignored. Returns what waits then; none if every episode is over and
        `autoreset` is disabled. Raises InvalidAction naming lane and agent, ResetNeeded, RunInterrupted where another
        thread moves this batch: nothing has changed then.
        """
        return self._drive("answer()", self._answer, actions)

    def _answer(self, actions: Any) -> Rows:
        if self._rows is None or self._half_way:
            half_way = f"an error ended the last call half-way ({self._why})"
            why = half_way if self._half_way else "no episode is running"
            raise ResetNeeded(f"answer(): {why}; call begin()")
        values = self._values(actions, self._rows)
        self._half_way = True
        self._lanes.take(values)
        return self._go_on()

    def _values(self, actions: Any, rows: Rows) -> NDArray[np.float64]:
        """Actions of the rows, float64 `[n, k]`. Raises InvalidAction."""
        widest, n = max(self._groups[name].spec.size for name in self.groups), len(rows)
        array = as_array(unmasked(actions, "answer(): the array of actions"), InvalidAction, "answer()")
        if array.shape == (n,) and widest == 1:
            array = array[:, None]
        if array.shape != (n, widest) or array.dtype.kind not in "fiub":
            raise InvalidAction(
                f"answer(): actions have shape {array.shape} and type {array.dtype}, expected numbers {(n, widest)}: "
                "(rows, elements of the widest action)"
            )
        values = array.astype(np.float64, copy=False)
        for name, part in rows.parts.items():
            group = self._groups[name]
            legal = group.spec.legal(values[part, : group.spec.size])
            if not legal.all():
                at = part.start + int(np.argmin(legal))
                agent, lane = self.env.hierarchy.ids[rows.rank[at]], int(rows.lane[at])
                group.spec.parse(values[at, : group.spec.size], agent, lane if self.num_envs > 1 else None)
        return values

    def _go_on(self) -> Rows:
        """Run until every lane waits or is over, beginning anew where that is asked for; hand out rows."""
        lanes = self._lanes
        lanes.go_on()
        while (over := lanes.status == f.OVER).any():
            numbers = np.flatnonzero(over)
            self._untold |= over
            lanes.status[over] = f.RESTING
            if self.autoreset == "disabled":
                break
            self._keep(over)
            lanes.require_voice(numbers)
            lanes.start(over, None)
            lanes.go_on()
        self._rows = rows = lanes.rows()
        self._half_way, self._why = False, ""
        return rows

    def results(self) -> list[EpisodeResult | None]:
        """Return the last complete episode of each lane; None before there is one."""
        return [self.result(lane) for lane in range(self.num_envs)]

    def result(self, lane: int) -> EpisodeResult | None:
        """Return the result of one lane. Raises ConfigError for a missing lane, RunInterrupted as `answer`."""
        return self._ownership.drive("result()", self._result, number_of_lane(lane, self.num_envs))

    def _result(self, b: int) -> EpisodeResult | None:
        return result_of(self.env, self._lanes, b, self._record) if self._untold[b] else self._results[b]

    def _keep(self, lanes: NDArray[np.bool_]) -> None:
        """Of lanes that begin anew: their worlds will have changed."""
        with uncollected():
            for lane in np.flatnonzero(lanes & self._untold).tolist():
                self._results[lane] = self._result(lane)
        self._untold[lanes] = False

    # Looking

    @property
    def compiled(self) -> bool:
        """Do the rules run compiled? The clock always does."""
        return self._engine.compiled

    @property
    def running(self) -> NDArray[np.bool_]:
        """Lanes whose episode is not over, bool `[B]`."""
        running: NDArray[np.bool_] = self._lanes.status != f.RESTING
        return running

    @property
    def truth(self) -> NDArray[np.float64]:
        """Return the true state of each lane now, `[B, columns]`: later than its rows."""
        return read_only(self._lanes.steps.truth)

    @property
    def cache(self) -> NDArray[np.float64]:
        """Return what each lane's proxy knows now, `[B, columns]`."""
        return read_only(self._lanes.arrays["cache"])

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """What only the other clock has: a function that says where it is here."""
            if name in ELSEWHERE:
                return partial(_refuse, ELSEWHERE[name])
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")


ELSEWHERE = {
    "step": "step(): this batch runs on the event clock; call begin(), then answer(actions)",
    "infos": "infos(): they belong to steps; rows tell of decisions, results() of episodes",
    "state": "state(): a lane stands later than its rows; build the batch with with_state=True: rows.state",
    "training_rewards": "training_rewards(): read rows.training_reward; a method that is no rule needs with_state=True",
}
"""What BatchEnv has and the event clock has not, and what to do instead."""


def _refuse(text: str, *_: Any, **__: Any) -> NoReturn:
    raise ConfigError(text)


LINK_METHOD = "its hook link is a method: write @staticmethod @rule def link(world, sender, receiver)"
INSTEAD = {
    "others": "every agent that decides is asked in rows; answer for these yourself",
    "final_observations": "what an agent last saw is in rows.ended.obs",
}
"""What to do about arguments of BatchEnv that the event clock has no use for."""


def _require_settings(with_state: Any, autoreset: Any, gamma: Any, options: Mapping[str, Any]) -> None:
    """Raise ConfigError for arguments that this clock can't take."""
    require_switch(f"BatchEnv(with_state={with_state!r:.60})", with_state)
    for name in ("others", "final_observations"):
        if name in options:
            raise ConfigError(f"BatchEnv({name}=..., clock='event'): {INSTEAD[name]}")
    if not is_one_of(autoreset, MODES):
        near = did_you_mean(autoreset, MODES)
        raise ConfigError(f"BatchEnv(autoreset={autoreset!r}, clock='event'): must be one of {MODES}.{near}")
    if isinstance(gamma, bool) or not isinstance(gamma, int | float) or not 0.0 <= gamma <= 1.0:
        raise ConfigError(f"BatchEnv(gamma={gamma!r}): must be a number between 0 and 1")


def _recorded(record: Iterable[str]) -> frozenset[str]:
    """Raises ConfigError for what can't be kept."""
    if isinstance(record, str) or not isinstance(record, Iterable):
        raise ConfigError(f"BatchEnv(record={record!r}): give a tuple of {', '.join(map(repr, KEEPS))}")
    for what in (names := several(record, "record")):
        if not is_one_of(what, tuple(KEEPS)):
            near = did_you_mean(what, tuple(KEEPS))
            raise ConfigError(f"BatchEnv(record={names!r}): {what!r} can't be kept; choose among {tuple(KEEPS)}.{near}")
    return frozenset(names)


def _require_options(options: Any, env: HeronEnv) -> None:
    """Raise ConfigError unless these are options of a reset on this clock."""
    require_options(options, env)
    if options and options.get("disturbances"):
        raise ConfigError(
            "reset(options=...): disturbances come at any instant of this clock, which a batch can't do: "
            "run_event_driven(disturbances=...) can, one by one, and BatchEnv without clock='event', at steps' ends"
        )


def why_not(env: HeronEnv) -> str | None:
    """What the compiled event clock can't do of an environment, as half a sentence; None if it can run it."""
    injected = [agent.agent_id for agent in env.hierarchy.agents if agent.injected]
    reasons = [
        (not steps_as_usual(env), f"{type(env).__name__} has a step() of its own"),
        (env.simulation.splits, "a protocol of yours splits commands in Python"),
        (bool(injected), f"{injected[:3]} are answered from outside"),
        (has_link_rule(env) and not links_compiled(env), LINK_METHOD),
    ]
    return next((why for refused, why in reasons if refused), None)


def _require_possible(env: HeronEnv) -> None:
    """Raise ConfigError naming what the compiled event clock can't do, or that nothing would ever end."""
    if reason := why_not(env):
        raise ConfigError(
            f"BatchEnv({type(env).__name__}, clock='event'): {reason}; run_event_driven() can, one by one"
        )
    env.simulation.require_end("BatchEnv(clock='event')")


def _schedules(env: HeronEnv, schedule: AnySchedule) -> Callable[[int, int], Sequence[Timing]]:
    """The timings of an episode, by (seed, episode)."""
    timings = env.timings_of(schedule)
    if thinks := [timing for timing in timings if timing.thinks]:
        raise ConfigError(
            f"BatchEnv(schedule=...): {thinks[0].agent!r} has thinking={thinks[0].config.thinking!r}, which no batch "
            "knows; run_event_driven() and under_network() do, one by one"
        )
    if isinstance(schedule, DrawnSchedule):
        return lambda seed, episode: env.timings_of(schedule.at(seed, episode))
    return lambda seed, episode: timings
