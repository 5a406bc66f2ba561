"""Stable-Baselines3: a BatchEnv as its VecEnv."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, cast

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray
from stable_baselines3.common.vec_env import VecEnv
from stable_baselines3.common.vec_env.base_vec_env import VecEnvIndices

from heron_env.adapters.sb3_event import EventSlots
from heron_env.adapters.slots import Info, Observations, Slots, StepSlots, require_critic
from heron_env.core.masking import everything
from heron_env.envs.base import HeronEnv
from heron_env.envs.batch.building import as_array, as_seed, called
from heron_env.envs.batch.env import CLOCKS
from heron_env.errors import ConfigError, InvalidAction, UnknownField, did_you_mean
from heron_env.given import is_one_of, mapping, require_one_of, require_switch, several, whole


class HeronVecEnv(VecEnv):
    """`num_envs` environments that step together, a slot for each agent of `group`: slot = env * agents + agent.

    Environment i starts with seed + i; no episode repeats. When one is over it is reset at once: the slot's info has
    `terminal_observation`, `TimeLimit.truncated` (truncated, not terminated) and `episode` {r, l, t}: the team's return
    (the root's rewards, not the training signal), steps, seconds since this object was made. Others' infos are empty.

    An agent that ends before the others has `done` once, with its `terminal_observation`. Ids do not revive, so its
    slot then idles until the episode is over: observation, state and reward 0, actions ignored, infos {"idle": True};
    at the episode's end it has `done` again, which separates the idle steps from the next episode.

    With `clock="event"` environment i is `run_event_driven(seed + i)` under `schedule`, and a step is one `answer` of
    BatchEnv(clock="event"): each environment runs until an observation has arrived. A slot with none idles: its last
    observation (0 before the first of an episode) and mask, reward 0, its action ignored, infos {"idle": True}.
    Otherwise the reward is that of all control steps since its last decision, and infos have `steps` (how many),
    `took` (did that decision take effect), `time` and `number` of the observation. Stable-Baselines3 then discounts by
    decision. Of `reset()` and steps alike, `waiting.slots` says who has an observation now: DecisionBuffer reads it.

    Args:
        make_env: builds an environment, or a registered id.
        num_envs: of environments; slots are `self.num_envs` = that times the group's size.
        group: one of `env.group_map`; None: the only one.
        use_training_signal: rewards from `env.training_signal()`, else the agents' own rewards.
        critic: "local": it sees what the agent sees; "central": observations, terminal ones too, are {"obs": that,
            "state": `env.state()` and, one-hot, which of the group's agents this is}.
        clock: "synchronous" or "event".
        options: `seed`, `others` (policies of the other groups' agents) and `threads` of BatchEnv, on the event clock
            its `schedule`, and make_env's own.

    Raises ConfigError for a group, critic or clock that does not exist, an action of mixed kinds, and what the event
    clock can't do.
    """

    def __init__(
        self, make_env: Callable[..., HeronEnv] | str, num_envs: int, *, group: str | None = None,
        use_training_signal: bool = True, critic: str = "local", clock: str = "synchronous", **options: Any,
    ) -> None:  # fmt: skip
        central = require_critic(critic, "HeronVecEnv")
        require_switch(f"HeronVecEnv(use_training_signal={use_training_signal!r:.60})", use_training_signal)
        require_one_of(f"HeronVecEnv(clock={clock!r:.60})", clock, CLOCKS)
        slots: type[EventSlots | StepSlots] = EventSlots if clock == "event" else StepSlots
        self._slots: Slots = slots(
            make_env, num_envs, options, group=group, central=central, signal=use_training_signal
        )
        self.batch, self.group, self.waiting = self._slots.batch, self._slots.group, self._slots.waiting
        self.central, self.widths = central, self._slots.widths
        not_its_own = ("seed", "others", "threads", *(("schedule",) if clock == "event" else ()))
        self.built_from = make_env, {name: x for name, x in options.items() if name not in not_its_own}
        self.schedule = options.get("schedule") if clock == "event" else None
        self.agents_per_env, self._actions = self._slots.shape[1], cast(Any, None)
        super().__init__(
            self.batch.num_envs * self.agents_per_env, self._slots.space, self.batch.action_spaces[self.group]
        )

    def seed(self, seed: int | None = None) -> Sequence[int | None]:
        """Store seeds for the next `reset()`: environment i gets seed + i. None: keep the old.

        Raises ConfigError for what is no seed.
        """
        first = None if seed is None else as_seed(seed)
        self._seeds = [None if first is None else first + slot // self.agents_per_env for slot in range(self.num_envs)]
        return self._seeds

    def set_options(self, options: list[dict[str, Any]] | dict[str, Any] | None = None) -> None:
        """Store options for the next `reset()`: one mapping for all, or one per slot. Raises ConfigError."""
        if isinstance(options, Mapping | None):
            options = [dict(options or {})] * self.num_envs
        each = [mapping(some, "set_options(): options") for some in several(options, "set_options(): options")]
        if len(each) != self.num_envs:
            raise ConfigError(
                f"set_options(): got {len(each)} options for {self.num_envs} slots; give one each, or one"
            )
        super().set_options(each)

    def reset(self) -> Observations:
        """Start an episode everywhere, with the seeds and options stored before; return observations `[slots, obs]`."""
        every = slice(None, None, self.agents_per_env)
        first, self.reset_infos = self._slots.start(self._seeds[every], self._options[every])
        self._reset_seeds()
        self._reset_options()
        return first  # type: ignore[no-any-return]

    def step_async(self, actions: NDArray[Any]) -> None:
        """Store the actions `[slots, size]` (or `[slots]`). Raises InvalidAction for another shape."""
        values, slots, size = as_array(actions), self.num_envs, self._slots.spec.size
        if values.shape[:1] != (slots,) or values.size != slots * size:
            raise InvalidAction(f"actions have shape {values.shape}, expected {(slots, size)}")
        self._actions = values.reshape(*self._slots.shape, -1)

    def step_wait(self) -> tuple[Observations, NDArray[np.float32], NDArray[np.bool_], list[Info]]:
        """Step and return observations `[slots, obs]`, rewards, dones `[slots]`, infos. Raises InvalidAction."""
        if self._actions is None:
            raise InvalidAction("step_wait(): there are no actions; call step_async(actions) first")
        return self._slots.step(self._actions)

    def close(self) -> None:
        """Close the environments."""
        self.batch.close()

    def has_attr(self, attr_name: str) -> bool:
        """Is there such an attribute? `action_masks` exists for groups that choose among categories."""
        if is_one_of(attr_name, ("action_masks",)):
            return not isinstance(self.action_space, spaces.Box)
        return isinstance(attr_name, str) and hasattr(self.batch.env, attr_name)

    def get_attr(self, attr_name: str, indices: VecEnvIndices = None) -> list[Any]:
        """Return the attribute of each slot's environment. Raises UnknownField, an AttributeError, if missing."""
        if is_one_of(attr_name, ("render_mode",)):  # one for all; SB3 asks before anything runs
            return [self.batch.env.render_mode for _ in self._get_indices(indices)]
        return [self._attribute(env, attr_name) for env in self._of(indices)]

    def set_attr(self, attr_name: str, value: Any, indices: VecEnvIndices = None) -> None:
        """Set an attribute of the slots' environments. Raises ConfigError where it can't be set."""
        for env in self._of(indices):
            try:
                setattr(env, attr_name, value)
            except (AttributeError, TypeError) as error:
                raise ConfigError(f"set_attr({attr_name!r:.60}): can't be set: {error}") from error

    def env_method(self, method_name: str, *args: Any, indices: VecEnvIndices = None, **kwargs: Any) -> list[Any]:
        """Call a method once per environment; one result per slot. `action_masks`: each slot's own, for MaskablePPO."""
        if is_one_of(method_name, ("action_masks",)):
            return list(self.action_masks()[list(self._get_indices(indices))])
        envs = self._of(indices)
        caller = f"env_method({method_name!r:.60})"
        results = {env: called(caller, self._attribute(env, method_name), kwargs, args) for env in dict.fromkeys(envs)}
        return [results[env] for env in envs]

    def action_masks(self) -> NDArray[np.bool_]:
        """Return the allowed choices of each slot, bool `[slots, choices]`, for MaskablePPO."""
        if (masks := self._slots.masks()) is None:
            return np.ones((self.num_envs, len(everything(self._slots.spec))), dtype=np.bool_)
        return masks.reshape(self.num_envs, -1).astype(np.bool_)

    def env_is_wrapped(self, wrapper_class: type[Any], indices: VecEnvIndices = None) -> list[bool]:
        """Return False for each slot: Gymnasium wrappers are not used."""
        return [False for _ in self._get_indices(indices)]

    def get_images(self) -> list[NDArray[np.uint8] | None]:
        """Return one picture per environment."""
        return [self.batch.lane(number).render() for number in range(self.batch.num_envs)]

    def _of(self, indices: VecEnvIndices) -> list[HeronEnv]:
        return [self.batch.lane(slot // self.agents_per_env) for slot in self._get_indices(indices)]

    def _get_indices(self, indices: VecEnvIndices) -> list[int]:
        """The slots meant, counted from the end where negative. Raises ConfigError."""
        if indices is None:
            return list(range(self.num_envs))
        slots = several(indices, "indices") if isinstance(indices, Iterable) else (indices,)
        return [whole(slot, "indices: slot", -self.num_envs, self.num_envs - 1) % self.num_envs for slot in slots]

    @staticmethod
    def _attribute(env: HeronEnv, name: str) -> Any:
        try:
            return getattr(env, name)
        except (AttributeError, TypeError) as error:
            raise UnknownField(
                f"HeronVecEnv: {type(env).__name__} has no attribute {name!r:.60}.{did_you_mean(name, dir(env))}"
            ) from error
