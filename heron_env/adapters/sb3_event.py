"""The slots of a vectorised trainer on the event clock: most of them wait for nothing at a given answer, and idle."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heron_env.adapters.slots import Info, Results, SlotInfos, Slots
from heron_env.core.masking import everything
from heron_env.envs.batch.building import builder_of
from heron_env.envs.batch.event import EventBatchEnv
from heron_env.envs.batch.lane_groups import begin_lanes, deciders_of, groups_of
from heron_env.envs.batch.rows import Ended, Ints, Rows
from heron_env.envs.hooks import has_training_rewards, trains_compiled
from heron_env.errors import ConfigError, ResetNeeded

INSTEAD = {
    "autoreset": "where an episode ends the next one begins at once; leave it out",
    "final_observations": "infos have terminal_observation; leave it out",
    "gamma": "Stable-Baselines3 discounts, by decision; give gamma to its algorithm",
    "with_state": "give critic='central'",
    "record": "BatchEnv(..., clock='event') has results; leave it out",
}
"""What to do about arguments of EventBatchEnv that slots have no use for."""
OF_BATCH = ("seed", "threads", "schedule")
Mine = tuple[slice, Ints]
"""Which rows are of the slots' group, and whose."""


class EventSlots(Slots):
    """Slots that answer a batch on the event clock; `options`: `others`, those of the batch, and make_env's own."""

    def __init__(
        self, make_env: Any, num_envs: int, options: Mapping[str, Any], *, group: str | None, central: bool,
        signal: bool,
    ) -> None:  # fmt: skip
        for name, instead in INSTEAD.items():
            if name in options:
                raise ConfigError(f"HeronVecEnv({name}=..., clock='event'): {instead}")
        own = {name: value for name, value in options.items() if name not in (*OF_BATCH, "others")}
        env, others = builder_of(make_env, own)(), options.get("others") or {}
        compiled = env.simulation.compiled and trains_compiled(env)
        batch = EventBatchEnv(
            env, num_envs, with_state=central or (signal and has_training_rewards(env) and not compiled),
            **{name: options[name] for name in OF_BATCH if name in options},
        )  # fmt: skip
        super().__init__(batch, group, others, central=central, signal=signal)
        self._engine, groups = batch._engine, groups_of(env, num_envs)
        deciders = deciders_of(env, groups, others, on_rows=True)
        self._deciders = [decider for decider in deciders if decider.group.name != self.group]
        self._noops = {name: groups[name].spec.noop for name in batch.groups if name != self.group}
        mine = groups[self.group]
        self._widest = max(groups[name].spec.size for name in batch.groups)
        self._root, self._dt = env.hierarchy.ids[0], env.dt_ns
        self._place = np.zeros(len(env.hierarchy), dtype=np.int64)
        self._place[list(mine.ranks)] = np.arange(len(mine.ranks))
        self._shown = np.zeros((*self.shape, sum(self.widths.values())), dtype=np.float32)
        self._masks = np.ones((len(self._waits), len(everything(self.spec))), dtype=np.bool_)
        if central:
            self._shown[..., self._shown.shape[-1] - self._identity.shape[1] :] = self._identity
        self._shown = self._shown.reshape(len(self._waits), -1)
        self._changing = self._shown.shape[1] - (self._identity.shape[1] if central else 0)
        self._answers: NDArray[np.float64] | None = None
        """To the rows handed out last; those of the slots are not in it yet."""

    def start(self, seeds: Sequence[Any], options: Sequence[Mapping[str, Any]]) -> tuple[Any, list[Info]]:
        """As any slots."""
        rows = self.batch.reset(seeds[0], options=[some or None for some in options])
        self._forget(np.ones_like(self._waits))
        self._show(rows, here := self._mine(rows), np.arange(self.shape[0]))
        return self._parts(self._shown.copy()), self._infos(rows, here)

    def step(self, actions: NDArray[Any]) -> Results:
        """As any slots. Raises InvalidAction, naming env and agent; ResetNeeded."""
        if self._answers is None:
            raise ResetNeeded("step(): no episode is running, or an error ended the last call half-way; call reset()")
        part, slots = self._asked
        self._answers[part, : self.spec.size] = actions.reshape(len(self._waits), -1)[slots]
        episodes = self._engine.episodes.copy()
        rows = self.batch.answer(self._answers)
        over = self._engine.episodes != episodes
        rewards, dones = np.zeros(len(self._waits), dtype=np.float32), np.repeat(over, self.shape[1])
        here, ends = self._mine(rows), self._mine(rows.ended)
        for some, (part, slots) in ((rows, here), (rows.ended, ends)):  # who ended may stand in both: begun anew
            signal = some.training_reward if self._use_signal else None
            rewards[slots] = (some.reward if signal is None else signal)[part]
        dones[slots] = True
        self._forget(dones)
        self._show(rows, here, np.flatnonzero(over))
        return self._parts(self._shown.copy()), rewards, dones, SlotInfos(self._maker_of_infos(rows, here, ends, over))

    def masks(self) -> NDArray[Any] | None:
        """As any slots."""
        return self._masks

    def _mine(self, rows: Rows | Ended) -> Mine:
        """Which rows are of the slots' group, and whose."""
        part = rows.parts[self.group]
        return part, rows.lane[part] * self.shape[1] + self._place[rows.rank[part]]

    def _forget(self, slots: NDArray[np.bool_]) -> None:
        self._shown[slots, : self._changing] = 0.0
        self._masks[slots] = True

    def _show(self, rows: Rows, here: Mine, begun: Ints) -> None:
        """Take rows over, and let the others answer theirs; `begun`: lanes whose episode is new."""
        self._asked = part, slots = here
        self._shown[slots, : self.own_width] = rows.obs[part, : self.own_width]
        if self.central and rows.state is not None:
            self._shown[slots, self.own_width : self._changing] = rows.state[part]
        if rows.mask is not None and self._masks.shape[1]:
            self._masks[slots] = rows.mask[part, : self._masks.shape[1]]
        self._waits[:] = False
        self._waits[slots] = True
        self._answers = None  # until everybody has answered
        answers = np.zeros((len(rows), self._widest))
        for name, noop in self._noops.items():
            answers[rows.parts[name], : len(noop)] = noop
        begin_lanes(self._deciders, begun, self._engine.seeds, self._engine.episodes)
        for decider in self._deciders:
            places, values = decider.answer(rows, self._engine)
            answers[places, : values.shape[1]] = values
        self._answers = answers

    def _infos(self, rows: Rows, here: Mine) -> list[Info]:
        """Of slots that have a row, in a dict each; the others share one."""
        part, slots = here
        infos: list[Info] = [{"idle": True}] * len(self._waits)
        columns = (rows.steps, rows.took, rows.time, rows.number)
        each = zip(slots.tolist(), *(column[part].tolist() for column in columns), strict=True)
        for slot, steps, took, when, number in each:
            infos[slot] = {"steps": steps, "took": took, "time": when, "number": number}
        return infos

    def _maker_of_infos(self, rows: Rows, here: Mine, ends: Mine, over: NDArray[np.bool_]) -> Callable[[], list[Info]]:
        """What makes the infos of a step; `over`: lanes whose episode ended in it."""
        part, gone = ends
        lanes = np.flatnonzero(over).tolist()
        results = [self.batch.result(lane) for lane in lanes]  # `returns` may be those of the next episode already
        seconds = round(time.monotonic() - self._began, 6)

        def make() -> list[Info]:
            infos, ended = self._infos(rows, here), rows.ended
            for lane, result in zip(lanes, results, strict=True):
                total, steps = result.returns[self._root], round(result.end_time * 1e9 / self._dt)
                for slot in range(lane * self.shape[1], (lane + 1) * self.shape[1]):
                    last = self._parts(np.zeros(self._shown.shape[1], dtype=np.float32))
                    infos[slot] = infos[slot] | {"terminal_observation": last, "TimeLimit.truncated": False}
                    infos[slot]["episode"] = {"r": total, "l": steps, "t": seconds}
            cut = ended.truncated & ~ended.terminated
            columns = (ended.steps, ended.took, cut)
            each = zip(gone.tolist(), *(column[part].tolist() for column in columns), strict=True)
            for n, (slot, steps, took, limited) in enumerate(each, part.start):
                infos[slot] = infos[slot] | {"steps": steps, "took": took, "TimeLimit.truncated": limited}
                infos[slot]["terminal_observation"] = self._parts(self._completed(ended, n, slot))
                infos[slot].pop("idle", None)
            return infos

        return make

    def _completed(self, ended: Ended, n: int, slot: int) -> NDArray[np.float32]:
        """What an agent would be shown that has ended, for a central critic with the state of then."""
        row: NDArray[np.float32] = self._shown[slot].copy()
        row[: self.own_width] = ended.obs[n, : self.own_width]
        if self.central and ended.state is not None:
            row[self.own_width : self._changing] = ended.state[n]
        return row
