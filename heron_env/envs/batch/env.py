"""BatchEnv: many environments of one kind that step together, group by group, in arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from threading import get_ident
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from heron_env.core.policy import Policies
from heron_env.core.quantity import clip
from heron_env.engine.arrays import DISABLED, NEXT_STEP, SAME_STEP
from heron_env.envs.base import HeronEnv
from heron_env.envs.batch.building import (
    MOST_THREADS,
    Batch,
    builder_of,
    counted,
    make_lanes,
    require_rewards,
    seeds_of,
)
from heron_env.envs.batch.lane_groups import (
    Arrays,
    Infos,
    Lanes,
    Makers,
    TurnCounter,
    deciders_of,
    group_named,
    shown,
)
from heron_env.envs.hooks import require_options
from heron_env.envs.settings import require_synchronous
from heron_env.errors import InvalidAction, ResetNeeded, ended_in
from heron_env.given import require_one_of, require_switch

RESTARTS = {"same_step": SAME_STEP, "next_step": NEXT_STEP, "disabled": DISABLED}
MODES = tuple(RESTARTS)
CLOCKS = ("synchronous", "event")


class BatchEnv(Batch):
    """`num_envs` environments (lanes) of one kind; each is, bit for bit, the HeronEnv with its seed.

    `step` takes `{group: actions [B, agents, elements]}` and gives observations, rewards, terminations, truncations and
    infos by group. Agents of a group that is left out follow `others`, else their own policy, else do nothing.
    All arrays are views of two sets of buffers: what a step hands out is valid until the second next step. `over`,
    `steps`, `returns` and `lengths` can only be read.
    `torch.from_numpy(observations["battery"])` shares that memory.

    An agent that ended before its episode's end has reward 0 and no further end; its actions are ignored, and its
    observation is still updated. Where a whole episode ends, `autoreset` decides: "same_step": the lane begins the
    next one at once and its observation is the first of that (`final_observations=True` keeps the last ones, see
    `step`); "next_step": the next step begins it, ignoring its actions, with reward 0; "disabled": the caller resets.

    Environments in rules run in one compiled loop. With `compile=False`, agents in the imperative style or protocols in
    Python the rules run in plain Python, lane after lane, and those with a step() of their own are driven one by one:
    same results, far slower; `compiled` is False then.

    Args:
        env: an environment, which then serves the batch; a registered id; or a function that builds an environment.
        num_envs: number of lanes, B.
        seed: lane i starts with seed + i, unless reset() says otherwise.
        clock: "synchronous"; or "event": event-driven episodes under a schedule, which go from decision to decision:
            `begin()`, `answer(actions)`, `results()`, see heron_env.envs.batch.event for these and their arguments.
        threads: of the compiled loop, used in every step; None: by size, cores and trial. Results do not depend on it.
            Where anything is Python (a hook, rules, `at_close`, disturbances), one thread runs all.
        autoreset: "same_step", "next_step" or "disabled".
        final_observations: with "same_step", keep the last observations of episodes that end.
        others: policies of agents that `step` says nothing of, by agent, group or "*".
        options: of the id or the function.

    Attributes:
        env: the one environment whose spaces and tables all lanes share.
        groups: agents' ids by group, in the order of the arrays' second axis; these act.
        observation_spaces, action_spaces: of a single agent, by group.
        at_close: functions called in each step when rewards, ends and next values are known, before lanes begin anew.

    Raises ConfigError, UnknownAgent, and what building the environment raises.

    >>> import numpy as np
    >>> batch = BatchEnv("heron/BatteryGrid-v0", 4, seed=0)
    >>> observations, infos = batch.reset()
    >>> actions = np.zeros((4, len(batch.groups["battery"]), 1))
    >>> observations, rewards, terminations, truncations, infos = batch.step({"battery": actions})
    >>> rewards["battery"].shape
    (4, 2)
    """

    def __new__(cls, *args: Any, clock: str = "synchronous", **options: Any) -> Any:
        """The batch of this clock. Raises ConfigError for another one."""
        require_one_of(f"BatchEnv(clock={clock!r:.60})", clock, CLOCKS)
        if clock == "event":
            from heron_env.envs.batch.event import EventBatchEnv

            return EventBatchEnv(*args, **options)
        return object.__new__(cls)

    def __init__(
        self,
        env: HeronEnv | str | Callable[..., HeronEnv],
        num_envs: int,
        *,
        seed: int = 0,
        clock: Literal["synchronous", "event"] = "synchronous",
        threads: int | None = None,
        autoreset: Literal["same_step", "next_step", "disabled"] = "same_step",
        final_observations: bool = False,
        others: Policies | None = None,
        **options: Any,
    ) -> None:
        num_envs = counted("num_envs", num_envs)
        threads = None if threads is None else counted("threads", threads, MOST_THREADS)
        require_switch(f"BatchEnv(final_observations={final_observations!r:.60})", final_observations)
        require_one_of(f"BatchEnv(autoreset={autoreset!r:.60})", autoreset, MODES)
        build = builder_of(env, options)
        super().__init__(build(), num_envs, autoreset, seed)
        require_synchronous(self.env.simulation.model, self.env.timings)
        self._observers = tuple(self.env.simulation.model.possible)
        self._keeps_final = final_observations and autoreset == "same_step"
        deciders = deciders_of(self.env, self._groups, others or {})
        self._engine = make_lanes(self.env, self._groups, deciders, num_envs, build, threads, final=self._keeps_final)
        self._engine.restart_when_over(RESTARTS[autoreset])
        self.at_close: list[Callable[[], None]] = []
        self._stopped = np.ones(num_envs, dtype=bool)
        self._torn = np.zeros(num_envs, dtype=bool)  # by a step or reset that ended in an error half-way
        self._why_torn = ""
        self._all_run, self._turn = False, TurnCounter()
        self._same_step, self._closing = autoreset == "same_step", False
        self._makers: dict[str, Makers] = {}
        self._shown: dict[int, tuple[Arrays, Arrays, Arrays, Arrays]] = {}

    # Stepping

    def reset(
        self,
        seed: int | Sequence[int | None] | NDArray[Any] | None = None,
        mask: NDArray[np.bool_] | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> tuple[Arrays, dict[str, Infos]]:
        """Begin an episode in all lanes, or those of `mask` `[B]`: observations and infos of all lanes.

        Args:
            seed: lane i gets seed + i, or `seed[i]`, and begins its episode 0; None, or None in its place: the next one
                of the seed in use.
            mask: the lanes meant; the others stay as they are.
            options: for the environments' own reset.

        Raises ConfigError; RunInterrupted where another thread moves this batch.
        """
        return self._ownership.drive("reset()", self._reset, seed, mask, options)

    def _reset(self, seed: Any, mask: Any, options: Any) -> tuple[Arrays, dict[str, Infos]]:
        lanes = self._mask(mask)
        require_options(options, self.env)
        seeds, explicit = seeds_of(seed, self._seed, self.num_envs)
        fresh = lanes & (explicit | ~self._started)
        self._torn |= lanes
        self._all_run = False
        if options:
            self._makers = {}  # disturbances have agents told more
        try:
            if fresh.any():
                self._engine.start(fresh, seeds, options)
            if (rest := lanes & ~fresh).any():
                self._engine.start(rest, None, options)
        except BaseException as error:
            self._why_torn = ended_in("reset()", error)
            raise
        self._started |= lanes
        self._stopped &= ~lanes
        self._torn &= ~lanes
        self._all_run = not self._stopped.any()
        self._engine.publish()
        self._turn.number += 1
        return self._views()[0].copy(), self.infos()

    def step(self, actions: Mapping[str, Any]) -> tuple[Arrays, Arrays, Arrays, Arrays, dict[str, Infos]]:
        """Step all lanes once: observations f32 `[B, agents, d]`, rewards f64 and ends `[B, agents]`, infos.

        Takes arrays of any number type, or torch tensors of the CPU, `[B, agents, elements]` (`[B, agents]` for one
        element); {"c", "d"} where continuous and discrete are mixed. Actions of agents whose turn it is not, or that
        have ended, are ignored. Infos are computed when they are asked for, until the next step; with
        `final_observations` they have "final_obs" `[B, agents, d]`, meant for lanes in `over`.

        Raises InvalidAction naming lane and agent, UnknownAgent for a group, ResetNeeded, RunInterrupted where another
        thread moves this batch; nothing has changed then. Where environments have a step() of their own, an agent's own
        policy may do the illegal half-way: all then need a reset.
        """
        owned = self._ownership  # as in `drive`; what an error leaves `_abandon` says
        if not owned.lock.acquire(False):
            owned.borrow("step()")
        try:
            owned.call, owned.thread = "step()", get_ident()
            idle, groups, by_group = None if self._all_run else self._idle(), self._groups, []
            if type(actions) is not dict and not isinstance(actions, Mapping):  # the second takes its time
                raise InvalidAction(
                    f"step() takes a mapping {{group: actions}} for {list(groups)}, not {actions!r:.60}"
                )
            for name, values in actions.items():
                group = groups.get(name) or group_named(groups, name, "step() got actions for")
                by_group.append((group, group.values(values)))
            self._turn.number += 1
            if self.at_close and not self._closing:
                self._engine.look_at_close(self.at_close)
                self._closing = True
            try:
                self._engine.step(by_group, idle)
            except BaseException as error:
                self._abandon(error)
                raise
            if not self._same_step:
                self._stopped = self._engine.over.copy()
                self._all_run = not self._stopped.any()
            observations, rewards, terminated, truncated = self._views()  # dicts are copied: theirs to change
            return observations.copy(), rewards.copy(), terminated.copy(), truncated.copy(), self.infos()
        finally:
            owned.lock.release()

    def _abandon(self, error: BaseException) -> None:
        """After this error in a step all lanes need a reset, unless it was found before anything had changed."""
        if isinstance(error, InvalidAction) and not self._engine.lanes.halfway:
            self._turn.number -= 1  # infos of the step before can still be read
        else:
            self._torn[:] = self._stopped[:] = True
            self._all_run, self._why_torn = False, ended_in("step()", error)

    # Looking

    @property
    def compiled(self) -> bool:
        """Do all lanes run in one compiled loop?"""
        return self._engine.compiled

    def state(self) -> NDArray[np.float32]:
        """Return every lane's truth, like `HeronEnv.state`, `[B, columns]`: for a central critic, never for actors."""
        space = self.env.state_space
        return clip(self._engine.truth, space.low.min(), space.high.max()).astype(np.float32)

    @property
    def keeps_training_rewards(self) -> bool:
        """Are `training_rewards` still valid after the step has returned? Compiled ones are."""
        return self._engine.trains_compiled

    def training_rewards(self, group: str) -> NDArray[np.float64] | None:
        """Return the training rewards of the last step, `[B, agents]`; None: the rewards themselves.

        Call it in `at_close`, unless the batch `keeps_training_rewards`.
        """
        if (values := self._engine.training_rewards(np.arange(self.num_envs))) is None:
            return None
        source = f"{type(self.env).__name__}.training_rewards"
        require_rewards(values, (self.num_envs, len(self._observers)), source)
        ranks = group_named(self._groups, group, "training_rewards() got").ranks
        return values if ranks == self._observers else values[:, [self._observers.index(rank) for rank in ranks]]

    def _views(self) -> tuple[Arrays, Arrays, Arrays, Arrays]:
        """Of the buffers in turn, each set made once."""
        published = self._engine.published
        key = id(published.observations)
        if key not in self._shown:
            self._shown[key] = shown(published, self._groups)
        return self._shown[key]

    def infos(self) -> dict[str, Infos]:
        """Return the present infos, as `step` does."""
        if not self._makers:
            self._makers = {name: self._makers_of(name) for name in self.groups}
        turn, infos = self._turn, {}
        for name, makers in self._makers.items():
            infos[name] = one = Infos()
            one.makers, one.made, one.turn, one.number = makers, None, turn, turn.number
        return infos

    def _makers_of(self, name: str) -> Makers:
        group, engine = self._groups[name], self._engine
        shape = self.num_envs, len(group.agents), group.width
        final: Makers = {"final_obs": lambda: engine.final[:, group.floats].reshape(shape)} if self._keeps_final else {}
        return {**engine.infos(group), **final}

    def _idle(self) -> Lanes:
        """Lanes that only begin anew in the coming step. Raises ResetNeeded."""
        refused = self._torn | self._stopped & ~(self._started & (self.autoreset == "next_step"))
        if refused.any():
            lane = int(np.argmax(refused))
            torn = f": an error ended its last step or reset half-way ({self._why_torn})" if self._torn[lane] else ""
            raise ResetNeeded(
                f"step(): no episode is running in lane {lane}{torn}; call reset(), with a mask if others go on"
            )
        return self._stopped.copy()
