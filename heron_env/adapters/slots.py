"""The slots of a vectorised trainer, one per environment and agent of a group; without any trainer's code."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from heron_env.adapters.later import Later
from heron_env.core.policy import Policies
from heron_env.envs.base import HeronEnv
from heron_env.envs.batch.env import BatchEnv
from heron_env.envs.batch.lane_groups import Infos
from heron_env.envs.hooks import has_training_rewards
from heron_env.errors import ConfigError, did_you_mean
from heron_env.given import require_one_of

CRITICS = ("local", "central")
Vectors = NDArray[np.float32]
Observations = Vectors | dict[str, Vectors]
"""`[slots, d]`; with a central critic {"obs", "state"} of them."""
Info = dict[str, Any]
Results = tuple[Any, NDArray[np.float32], NDArray[np.bool_], list[Info]]
"""Observations, rewards, dones, `[slots, ...]` each, and infos."""


def require_critic(critic: str, caller: str) -> bool:
    """Is it the central one? Raises ConfigError for a word that is neither."""
    require_one_of(f"{caller}(critic={critic!r:.60})", critic, CRITICS)
    return critic == "central"


def trained_group(env: HeronEnv, group: str | None, others: Policies) -> str:
    """`group`, or the only one there is. Raises ConfigError, also where `others` names it or one of its agents."""
    groups = list(env.group_map)
    if group is None and len(groups) == 1:
        return groups[0]
    if not isinstance(group, str) or group not in groups:
        raise ConfigError(f"group={group!r}: choose one of {groups}.{did_you_mean(group, groups)}")
    for key in others:
        for agent in env.group_map[group]:
            if key in (group, agent):
                raise ConfigError(f"others[{key!r}]: {agent!r} is in the group that is trained; leave it out")
    return group


class WaitingSlots:
    """Which slots have an observation that waits for an action, bool `[slots]`, of an environment of this process.

    A copy, and what a saved model has of it, knows of none: `slots` is None.
    """

    def __init__(self, slots: NDArray[np.bool_] | None = None) -> None:
        self.slots = slots

    def __reduce__(self) -> Any:
        """Without the environment's array."""
        return WaitingSlots, ()


class Slots(ABC):
    """What slots see; `[B, agents, ...]` inside, slot = env * agents + agent outside.

    A row is what the agent sees; with a central critic then `state()` and, one-hot, which agent of the group is meant
    (absent in a group of one). Without the latter two agents that see the same would have one value, though the state
    lists them at different places: their neighbours, and so their futures, differ.

    Raises ConfigError for a group that there is not and for actions of mixed kinds.
    """

    def __init__(self, batch: Any, group: str | None, others: Policies, *, central: bool, signal: bool) -> None:
        self.batch, self.group, self.central = batch, trained_group(batch.env, group, others), central
        self.spec = batch.env.simulation.model.specs[batch.env.hierarchy.index[batch.groups[self.group][0]]]
        if isinstance(batch.action_spaces[self.group], spaces.Dict):
            raise ConfigError(
                f"HeronVecEnv: group {self.group!r} mixes numbers and choices, and Stable-Baselines3 takes no Dict "
                "actions; train with `heron train` (lab.train), TorchRL (HeronTorchEnv) or RLlib "
                "(HeronMultiAgentEnv), or split the agent in two: one for the numbers, one for the choices"
            )
        self.shape = (batch.num_envs, len(batch.groups[self.group]))
        own, state, agents = batch.observation_spaces[self.group], batch.env.state_space, self.shape[1]
        self.own_width = own.shape[0]
        self._identity = np.eye(agents, dtype=np.float32) if agents > 1 else np.zeros((1, 0), dtype=np.float32)
        unit = np.ones(self._identity.shape[1], dtype=np.float32)
        box = spaces.Box(np.concatenate([state.low, 0 * unit]), np.concatenate([state.high, unit]))
        self.space: spaces.Space[Any] = spaces.Dict({"obs": own, "state": box}) if central else own
        self.widths = {"obs": self.own_width, **({"state": len(box.low)} if central else {})}
        self._waits = np.zeros(batch.num_envs * agents, dtype=np.bool_)
        self.waiting = WaitingSlots(self._waits)
        self._use_signal, self._began = signal and has_training_rewards(batch.env), time.monotonic()

    @abstractmethod
    def start(self, seeds: Sequence[Any], options: Sequence[Mapping[str, Any]]) -> tuple[Any, list[Info]]:
        """Begin an episode everywhere, of seeds and options by environment: what slots see, and the infos of each."""

    @abstractmethod
    def step(self, actions: NDArray[Any]) -> Results:
        """What a VecEnv gives for a step, of actions `[B, agents, size]`."""

    @abstractmethod
    def masks(self) -> NDArray[Any] | None:
        """What each slot may choose now, flat, `[slots, choices]`; None where nothing is ever forbidden."""

    def _parts(self, rows: Vectors) -> Any:
        """Rows `[B, agents, width]`, or one, as the observation space has them, a slot each."""
        rows = rows.reshape(-1, rows.shape[-1]) if rows.ndim == 3 else rows
        if not self.central:
            return rows
        return {"obs": rows[..., : self.own_width], "state": rows[..., self.own_width :]}

    def _nothing(self) -> list[Info]:
        return [{} for _ in range(self.shape[0] * self.shape[1])]


class StepSlots(Slots):
    """Slots on the synchronous clock, and what they are told of ends; `options`: of BatchEnv."""

    def __init__(
        self, make_env: Any, num_envs: int, options: Mapping[str, Any], *, group: str | None, central: bool,
        signal: bool,
    ) -> None:  # fmt: skip
        batch = BatchEnv(make_env, num_envs, final_observations=True, **options)
        super().__init__(batch, group, options.get("others") or {}, central=central, signal=signal)
        self._signal: NDArray[np.float64] | None = None
        self._idle, self._any_idle = np.zeros(self.shape, dtype=bool), False
        self._signal_stays = self._use_signal and batch.keeps_training_rewards
        if central or (self._use_signal and not self._signal_stays):  # else a step of the batch can be one call
            batch.at_close.append(self._look)

    def start(self, seeds: Sequence[Any], options: Sequence[Mapping[str, Any]]) -> tuple[Any, list[Info]]:
        """As any slots."""
        for alike, where in self._by_options(options):
            observations, infos = self.batch.reset(seeds[0], where, alike or None)
        self._infos = infos[self.group]
        self._idle, self._any_idle = np.zeros_like(self._idle), False
        self._waits[:] = True
        names = [name for name in self._infos if name != "final_obs"]
        rows = zip(*(self._infos[name].reshape(-1, *self._infos[name].shape[2:]) for name in names), strict=True)
        each = [dict(zip(names, values, strict=True)) for values in rows]
        return self._parts(self._rows(observations[self.group])), each

    def step(self, actions: NDArray[Any]) -> Results:
        """As any slots. Raises InvalidAction, naming env and agent."""
        parts: list[Any] = [part[self.group] for part in self.batch.step({self.group: actions})]
        if self._signal_stays:
            self._signal = self.batch.training_rewards(self.group)
        self._infos = parts[-1]
        return self._results(*parts)

    def masks(self) -> NDArray[Any] | None:
        """As any slots."""
        masks: NDArray[Any] | None = self._infos.get("action_mask")
        return masks

    def _look(self) -> None:
        """Before lanes begin anew: the trainer's rewards, and the states in which episodes ended."""
        if self._use_signal and not self._signal_stays:
            self._signal = self.batch.training_rewards(self.group)
        if self.central and self.batch.over.any():
            self._last_state = self.batch.state()

    def _results(self, observations: Vectors, rewards: Any, terminated: Any, truncated: Any, by_name: Infos) -> Results:
        """Of the group's part of what the batch gave."""
        rows, make = self._rows(observations), self._nothing
        earned = rewards if self._signal is None else self._signal
        if self._any_idle:
            earned = np.where(self._idle, 0.0, earned)
        dones, over = terminated | truncated, self.batch.over
        if self._any_idle or dones.any() or over.any():
            make = self._ends(rows, (dones, truncated & ~terminated, by_name))
            dones = dones | over[:, None]
            self._idle = ~self.batch.alive(self.group)
            self._any_idle = bool(self._idle.any())
            self._waits[:] = ~self._idle.reshape(-1)
            rows[self._idle] = 0.0
        slots = self._parts(rows), earned.astype(np.float32).reshape(-1), np.array(dones).reshape(-1)
        return *slots, SlotInfos(make)

    @staticmethod
    def _by_options(options: Sequence[Mapping[str, Any]]) -> Iterator[tuple[Mapping[str, Any], NDArray[np.bool_]]]:
        """Options of reset() that differ, and the environments that have them, bool `[B]`."""
        kinds, which = list[Mapping[str, Any]](), np.zeros(len(options), dtype=np.int64)
        for number, some in enumerate(options):
            if some not in kinds:
                kinds.append(some)
            which[number] = kinds.index(some)
        return ((kind, which == number) for number, kind in enumerate(kinds))

    def _rows(self, observations: Vectors) -> Vectors:
        """A copy of what the agents see `[B, agents, d]`, completed for a central critic."""
        return self._complete(observations, self.batch.state()) if self.central else observations.copy()

    def _complete(self, observations: Vectors, state: Vectors) -> Vectors:
        (lanes, agents), width = self.shape, self.own_width
        rows = np.empty((lanes, agents, width + state.shape[1] + self._identity.shape[1]), dtype=np.float32)
        rows[:, :, :width] = observations
        rows[:, :, width : width + state.shape[1]] = state[:, None]
        rows[:, :, width + state.shape[1] :] = self._identity
        return rows

    def _ends(self, rows: Vectors, results: tuple[Any, Any, Infos]) -> Callable[[], list[Info]]:
        """What makes infos where slots are done or idle; `results`: ends, those by a limit alone, the batch's infos."""
        (ended, limited, by_name), over, idle = results, self.batch.over.copy(), self._idle
        slots, last = np.flatnonzero(ended | over[:, None] | idle), rows
        lanes = slots // self.shape[1]
        if over.any():
            last = by_name["final_obs"]
            last = self._complete(last, self._last_state) if self.central else last
        last = last.reshape(-1, rows.shape[-1]).take(slots, axis=0)
        if (early := ~over[lanes]).any():
            last[early] = rows.reshape(-1, rows.shape[-1]).take(slots[early], axis=0)
        of_lanes, of_slots = (over, self.batch.returns[:, 0].copy(), self.batch.lengths.copy()), (idle, ended, limited)
        seconds = round(time.monotonic() - self._began, 6)

        def make() -> list[Info]:
            infos = self._nothing()
            last[idle.reshape(-1)[slots]] = 0.0
            parts = [part[lanes].tolist() for part in of_lanes]
            parts += [part.reshape(-1)[slots].tolist() for part in of_slots]
            each = zip(slots.tolist(), map(self._parts, last), *parts, strict=True)
            for slot, observation, is_over, total, steps, is_idle, has_ended, cut in each:
                info = infos[slot]
                if is_idle:
                    info["idle"] = True
                if is_over or has_ended:
                    info["terminal_observation"], info["TimeLimit.truncated"] = observation, cut
                if is_over:
                    info["episode"] = {"r": total, "l": steps, "t": seconds}
            return infos

        return make


class SlotInfos(Later, list[Info]):
    """The infos of a step: so many dicts take longer than the step of the environments."""

    def __radd__(self, before: list[Info]) -> list[Info]:
        """`before + self`: a list would copy the memory of this one, as it is."""
        return [*before, *self]
