"""What comes out of `under_network`: a ParallelEnv of a ParallelEnv, a Gymnasium Env of a Gymnasium Env."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Literal, NoReturn, cast

import gymnasium
import numpy as np
from gymnasium import spaces
from pettingzoo import AECEnv, ParallelEnv
from pettingzoo.utils.conversions import aec_to_parallel, aec_to_parallel_wrapper
from pettingzoo.utils.wrappers import BaseParallelWrapper

from heron_env.adapters.network.driver import NOTHING_NEW, Chosen, NetworkEpisode, NetworkSetting
from heron_env.adapters.network.filming import footage_of, frame_of, title_of
from heron_env.adapters.network.forms import Parts, forms_of
from heron_env.adapters.network.masks import flags_of
from heron_env.adapters.network.noops import Noops, copied
from heron_env.adapters.network.stacked import StackedPlans, require_single
from heron_env.adapters.network.turns import TurnWorld
from heron_env.core.plans import Merge, Plan, Running
from heron_env.core.policy import AnsweringPolicy, Asked, Policies, decide_with, draw_of
from heron_env.envs.answering import begin_policies, taken_apart
from heron_env.envs.decisions import policies_by_agent
from heron_env.envs.episodes import EpisodeResult, Record, checked_record
from heron_env.envs.settings import read_seed
from heron_env.errors import (
    ConfigError,
    ResetNeeded,
    RunInterrupted,
    ScheduleError,
    checked_keywords,
    ended_in,
)
from heron_env.given import require_switch
from heron_env.scheduling.drawn import AnySchedule, DrawnSchedule, as_dict, drawn_or_fixed
from heron_env.scheduling.timing import CLOCK, Timing, resolve, to_ns, to_seconds
from heron_env.seeding import fresh_seed

AGENT = "agent"
"""The one agent of a Gymnasium environment, in schedules and policies."""


class UnderNetwork:
    """Episodes and runs of an environment under a network, for PettingZoo and Gymnasium alike.

    Attributes:
        env: the black box, which nobody else steps.
        network: what is the same in all episodes.
        groups: agents by name stem, as schedules and policies may name them.
        stacked: how arrays of actions become plans; None: actions are single ones.
        played: the last whole episode that was run.
    """

    env: Any
    played: NetworkEpisode
    _episode: NetworkEpisode | None = None
    _why_none = "no episode is running"

    def _open(
        self, world: Any, schedule: AnySchedule, dt: float, *,
        on_missing: Any, noop: Any, observe_age: bool, parts: Parts | None, plan: int | None, merge: Merge | None,
    ) -> None:  # fmt: skip
        require_switch(f"under_network(observe_age={observe_age!r:.60})", observe_age)
        if not (dt_ns := to_ns(dt, "dt")):
            raise ScheduleError(f"dt={dt!r}: a step takes 1e-9 seconds or more")
        agents = tuple(world.possible_agents)
        if not all(isinstance(agent, str) for agent in agents):
            raise ConfigError(f"under_network(env): possible_agents are {agents!r:.100}; schedules name them by text")
        acts, views = (
            [given] if isinstance(given, spaces.Space) else [given(agent) for agent in agents]
            for given in (self.env.action_space, self.env.observation_space)
        )
        forms, noops = forms_of(agents, views, parts, aged=observe_age), Noops(noop, agents, acts)
        self.network = NetworkSetting(world, agents, acts, forms, noops, dt_ns)
        if plan is None and merge is not None:
            raise ConfigError(f"under_network(merge={merge!r:.60}): is of plans; give plan=k, too, or leave it out")
        self.stacked = None if plan is None else StackedPlans(plan, merge, zip(agents, acts, strict=True))
        self.groups: dict[str, list[str]] = {}
        for agent in agents:
            self.groups.setdefault(agent.rstrip("0123456789").rstrip("_") or agent, []).append(agent)
        self._schedule, self._on_missing = schedule, on_missing
        self._seed, self._number = cast(int | None, None), -1
        self.timings_of(schedule.nominal() if isinstance(schedule, DrawnSchedule) else schedule)

    def timings_of(self, schedule: Any) -> tuple[Timing, ...]:
        """By rank. Raises ScheduleError for what a black box can't do, ConfigError where a no-op is missing."""
        setting = self.network
        levels, dt_ns = [1] * len(setting.agents), setting.dt_ns
        timings = resolve(schedule, ids=setting.agents, levels=levels, groups=self.groups, dt_ns=dt_ns)
        for rank, timing in enumerate(timings):
            timing.require_multiples_of(dt_ns, "a black box", "or change dt")
            ratio, agent = timing.config.tick_jitter_ratio, f"agent {timing.agent!r}"
            for name in CLOCK:
                if wrong := getattr(timing.config, name):
                    raise ScheduleError(f"{agent}: {name}={wrong!r}: a black box stamps nothing; use 0")
            if ratio:
                raise ScheduleError(f"{agent}: tick_jitter_ratio={ratio!r}: a black box steps evenly; use 0")
            if timing.config.own_rows == "local":
                raise ScheduleError(
                    f"{agent}: own_rows='local': nobody knows which elements of a black box are whose; use parts"
                )
            if timing.phase or not timing.instant:
                setting.noops.require(rank, "can have nothing in force (delay, loss or phase)")
        if self._on_missing != "hold":
            timings = tuple(replace(each, config=replace(each.config, on_missing=self._on_missing)) for each in timings)
        return timings

    def _begin(
        self, seed: int | None, options: dict[str, Any] | None, schedule: AnySchedule = None, **recording: Any
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """A new episode: number 0 of a seed, or the next (W9). Raises ConfigError, ScheduleError."""
        moment = (self.np_random_seed, self._number + 1) if seed is None else (read_seed(seed), 0)
        seed = moment[0] if self._number < 0 and seed is None else seed  # so that it can be repeated
        schedule = self._schedule if schedule is None else schedule
        timings = self.timings_of(schedule.at(*moment) if isinstance(schedule, DrawnSchedule) else schedule)
        episode = NetworkEpisode(self.network, timings, *moment, **recording)
        try:
            outcome = episode.show(*self.network.world.reset(seed=seed, options=options))
        except BaseException as error:
            self._abandon("reset()", error)
            raise
        self._episode, (self._seed, self._number) = episode, moment
        return outcome

    def _abandon(self, call: str, error: BaseException) -> None:
        """The environment may be anywhere: nobody steps on before the next reset."""
        self._episode, self._why_none = None, ended_in(call, error)

    @property
    def np_random_seed(self) -> int:
        """Seed in use: the last one passed; before that, one of the system's entropy, as in Gymnasium."""
        if self._seed is None:
            self._seed = fresh_seed()
        return self._seed

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        """The environment's own reset, and episode 0 of the network's draws, or without a seed the next (W9).

        Where no seed was ever given, the environment and the network begin with `np_random_seed`.
        """
        return self._begin(seed, options)

    def step(self, actions: Any) -> Any:
        """One step (W6). Actions of agents that do not decide now are ignored. Raises InvalidAction, ResetNeeded.

        After an action that the environment refuses, the same step can be taken with another; after any other error of
        its own only a reset helps.
        """
        episode = self._episode
        if episode is None or not self.network.world.agents:
            raise ResetNeeded(f"step(): {'no episode is running' if episode else self._why_none}; call reset() first")
        if plans := self.stacked:
            actions = {name: plans.plan_of(name, actions[name]) for name, _ in episode.deciding() if name in actions}
        try:
            return episode.step(actions)
        except BaseException as error:
            if episode.torn:
                self._abandon("step()", error)
            raise

    @checked_keywords
    def run_event_driven(
        self, policies: Policies, *, t_end: float | None = None, seed: int | None = None,
        schedule: AnySchedule = None, trace: bool = False, record: Record = ("rewards", "actions"),
    ) -> EpisodeResult:  # fmt: skip
        """One whole episode, policies called at their agents' ticks: bit for bit what stepping by hand gives.

        Args:
            policies: by agent, group (`fox` of fox_0, fox_1) or "*": functions observation -> action, or objects with
                `forward`. One that declares `mask` is given the one that came with its observation, one that declares
                `running` what its actuator is doing. They may return a `Plan`, or None: nothing new; with `plan=k` an
                array of k actions as `step` takes it, which is the same plan. Policies with `answer` are asked with the
                observation as it is, and `names=()`.
            t_end: stop here at the latest, s; None: where the environment ends.
            seed: as in reset().
            schedule: instead of the environment's own.
            trace: keep a record of every event in `result.trace`.
            record: any of "rewards", "actions", "observations" (as agents have them at their ticks), "frames" (for
                `result.watch()`; of an environment with render_mode="rgb_array").

        Raises ConfigError, ScheduleError, UnknownAgent; RunInterrupted if a policy moves the environment.
        """
        return self._run(policies, t_end, seed, schedule, trace, record)

    def _run(
        self, policies: Policies, t_end: float | None, seed: int | None, schedule: AnySchedule, trace: bool,
        record: Record, *, thinks: bool = True,
    ) -> EpisodeResult:  # fmt: skip
        require_switch(f"trace={trace!r:.60}", trace)
        filmed = "frames" in (recorded := checked_record(record))
        last, chosen = None if t_end is None else to_ns(t_end, "t_end"), self._chosen(policies)
        observations, _ = self._begin(seed, None, schedule, trace=trace or filmed, record=recorded)
        try:
            return self._play(chosen, observations, last, filmed=filmed, traced=trace, thinks=thinks)
        except BaseException as error:
            self._abandon("run", error)
            raise

    def _play(
        self, chosen: Mapping[str, Any], observations: dict[str, Any], last: int | None, *, filmed: bool, traced: bool,
        thinks: bool,
    ) -> EpisodeResult:  # fmt: skip
        """The episode that has begun, to its end or to `last`, ns; `thinks`: do answers take the time that they say?"""
        episode = self._episode
        assert episode is not None
        images = [frame_of(self.env)] if filmed else []
        begin_policies(chosen.values(), *episode.moment)
        episode.result.await_answers(name for name, policy in chosen.items() if hasattr(policy, "answer"))
        decide = {name: self._decides(episode, name, policy, thinks) for name, policy in chosen.items()}
        ask = partial(self._ask, episode, decide)
        while self.network.world.agents and (last is None or episode.now + self.network.dt_ns <= last):
            later = episode.at_their_turn()
            deciding = (each for each in episode.deciding() if each[0] not in later)
            actions = {name: ask(name, number, observations[name]) for name, number in deciding}
            observations = episode.step(actions, ask)[0]
            if filmed:
                images.append(frame_of(self.env))
        self._episode, self._why_none, self.played = None, "no episode is running", episode  # the result stays as it is
        result = episode.close()
        if filmed:
            result.trace = episode.trace if traced else None
            result.footage = footage_of(episode, images, self.groups, title_of(self.env))
        return result

    def _decides(self, episode: NetworkEpisode, name: str, policy: Any, thinks: bool) -> Callable[[Any, int], Chosen]:
        """The function of observation and number that decides for an agent; `thinks`: do answers take their time?

        It raises ConfigError for no Answer.
        """
        side = episode.by_name[name]

        def running() -> Running:
            noop = partial(self.network.noops.draw, side.rank, None, side.copies[0][1], *episode.moment, 0)
            return side.running(episode.now, self.network.dt_ns, noop)

        if not hasattr(policy, "answer"):
            decide, plans = decide_with(policy, cast(Any, None), side.offer, running), False

            def of_function(observation: Any, number: int) -> Chosen:
                nonlocal plans
                draw = partial(draw_of, *episode.moment, name, number)
                action = decide(observation, episode.number, draw)
                plans = plans or type(action) is Plan or (self.stacked is not None and action is not None)
                if not plans:
                    require_single(name, action, self.network.action_spaces[side.rank])
                return NOTHING_NEW if action is None else Chosen(action)

            return of_function
        asking, space = cast(AnsweringPolicy, policy), self.network.action_spaces[side.rank]

        def answer(observation: Any, number: int) -> Chosen:
            now, mask = to_seconds(episode.now), side.offer(observation)
            question = name, observation, (), number, episode.number, now, *episode.moment, space, mask, (), running()
            taken = taken_apart(name, asking.answer(Asked(*question)), partial(_refuse_letters, name))
            episode.result.note_answer(name, now, taken)
            return NOTHING_NEW if taken.action is None else Chosen(taken.action, taken.thinking * thinks)

        return answer

    def _ask(
        self, episode: NetworkEpisode, decide: Mapping[str, Callable[[Any, int], Chosen]], name: str, number: int,
        observation: Any,
    ) -> Chosen:  # fmt: skip
        """What an agent's policy decides. Raises RunInterrupted."""
        if episode.result.observations:
            episode.result.observations[name].append((to_seconds(episode.now), copied(observation)))
        step, decision = episode.number, decide[name](observation, number)
        if self._episode is not episode or episode.number != step:
            raise RunInterrupted(f"the policy of {name!r} moved the environment of its own run; use a copy")
        if self.stacked and decision is not NOTHING_NEW:
            return Chosen(self.stacked.plan_of(name, decision.action), decision.thinking)
        return decision

    @checked_keywords
    def run_synchronous(
        self, policies: Policies, *, seed: int | None = None, record: Record = ("rewards", "actions")
    ) -> EpisodeResult:
        """One whole episode of the bare environment; see `run_event_driven` for the arguments."""
        return self._run(policies, None, seed, {}, False, record, thinks=False)

    def _chosen(self, policies: Policies) -> dict[str, Any]:
        """The policy of each agent. Raises UnknownAgent for a wrong key, ConfigError where one has none."""
        agents = self.network.agents
        chosen = policies_by_agent(policies, agents, self.groups, dict.fromkeys(agents))
        for policy in chosen.values():
            if hasattr(policy, "forward") or hasattr(policy, "answer"):
                continue
            if hasattr(policy, "decide_action") or not callable(policy):
                raise ConfigError("policies: a black box has no states; give a function, `forward` or `answer`")
        return chosen


def _refuse_letters(agent: str, letters: Any) -> NoReturn:
    raise ConfigError(
        f"the answer for {agent!r} has letters={letters!r:.100}: the agents of a black box have no letters"
    )


class NetworkParallelEnv(UnderNetwork, BaseParallelWrapper):  # type: ignore[type-arg]
    """A PettingZoo environment under a network; see `under_network`. `state()` is the environment's own, undelayed."""

    def __init__(self, env: Any, schedule: AnySchedule, dt: float, options: dict[str, Any]) -> None:
        BaseParallelWrapper.__init__(self, env)
        if not hasattr(env, "possible_agents"):
            raise ConfigError("under_network(env): the environment must say its possible_agents")
        self._open(env, schedule, dt, **options)
        self.observation_spaces = {
            name: f.space for name, f in zip(self.network.agents, self.network.forms, strict=True)
        }

    def observation_space(self, agent: str) -> spaces.Space[Any]:
        """The same object each time; with ages a Dict, or a longer 1-D Box."""
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> spaces.Space[Any]:
        """The environment's own; with `plan=k` of k actions, the same object each time."""
        return self.stacked.spaces[agent] if self.stacked else self.env.action_space(agent)


class OneAgent:
    """A Gymnasium environment that is reset and stepped as one agent's ParallelEnv."""

    possible_agents = (AGENT,)
    action_masks: Any
    """Where the environment has it."""

    def __init__(self, env: gymnasium.Env[Any, Any]) -> None:
        self.env, self.agents = env, list[str]()
        if isinstance(env, gymnasium.Env) and env.has_wrapper_attr("action_masks"):
            self.action_masks = env.get_wrapper_attr("action_masks")

    def reset(self, seed: int | None, options: dict[str, Any] | None) -> tuple[dict[str, Any], ...]:
        """Observation and info, by agent."""
        self.agents = [AGENT]
        return tuple({AGENT: each} for each in self.env.reset(seed=seed, options=options))

    def step(self, actions: Mapping[str, Any]) -> tuple[dict[str, Any], ...]:
        """As a ParallelEnv's."""
        outcome = self.env.step(actions[AGENT])
        self.agents = [] if outcome[2] or outcome[3] else [AGENT]
        return tuple({AGENT: each} for each in outcome)


class NetworkEnv(UnderNetwork, gymnasium.Wrapper[Any, Any, Any, Any], gymnasium.utils.RecordConstructorArgs):
    """A Gymnasium environment under a network; see `under_network`. Its one agent is called "agent".

    Its `spec` goes through JSON: what is recorded of schedule and no-op are texts, numbers, lists and dicts; only a
    no-op that is a function of the observation stays one.
    """

    def __init__(self, env: gymnasium.Env[Any, Any], schedule: AnySchedule, dt: float, options: dict[str, Any]) -> None:
        gymnasium.Wrapper.__init__(self, env)
        entries: Any = schedule
        if isinstance(entries, Mapping) and all(isinstance(entry, Mapping) for entry in entries.values()):
            schedule = drawn_or_fixed(entries)  # from a subclass
        self._open(OneAgent(env), schedule, dt, **options)
        plain = options | {"noop": self.network.noops.plain()}
        gymnasium.utils.RecordConstructorArgs.__init__(self, schedule=as_dict(schedule), dt=float(dt), options=plain)
        self.observation_space = self.network.forms[0].space
        if self.stacked:
            self.action_space = self.stacked.spaces[AGENT]
        if hasattr(self.network.world, "action_masks"):
            self.action_masks = self._action_masks

    def _action_masks(self) -> Any:
        """What the mask allows that came with the agent's observation, as the environment's own; for MaskablePPO.

        With `plan=k` each of the k actions may be what this mask allows.
        """
        if self._episode is None:
            raise ResetNeeded("action_masks(): no episode is running; call reset() first")
        mask = self._episode.sides[0].offer(None)
        flags = self.network.world.action_masks() if mask is None else flags_of(mask, self.env.action_space)
        return np.tile(flags, self.stacked.count) if self.stacked else flags

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        """Observation and info of the environment's own reset; see `UnderNetwork.reset`."""
        return tuple(each[AGENT] for each in super().reset(seed, options))

    def step(self, action: Any) -> Any:
        """One step (W6). Where infos say is_active=False, the action is ignored. Raises ResetNeeded."""
        return tuple(each[AGENT] for each in super().step({AGENT: action}))


@checked_keywords
def under_network(
    env: Any, schedule: AnySchedule = None, *, dt: float = 1.0, on_missing: Literal["hold", "noop"] = "hold",
    noop: Any = None, observe_age: bool = False, parts: Parts | None = None, plan: int | None = None,
    merge: Merge | None = None,
) -> Any:  # fmt: skip
    """Put a PettingZoo ParallelEnv or a Gymnasium Env behind a network.

    The info of each agent has these additional entries: `aoi` (age of its observation, s), `delivered` (a new
    observation has arrived), `is_active` (its next action will be used), `applied` (number of the decision that was
    applied; -1: the no-op), and at its end `true_observation`. `own` has the environment's own entries of these names.
    Without delay and loss the result equals the bare environment, bit for bit. If the current `action_mask` forbids an
    action, it becomes the no-op, unless the agent decided on the current observation.

    Args:
        env: the environment; of an AECEnv that is parallelizable a step is a round, in which each agent has a turn.
        schedule: by agent, group or "*"; ticks are multiples of dt. The agent of a Gymnasium Env is called "agent".
        dt: length of a step, s; with 1.0 delays are numbers of steps.
        on_missing: "noop": the no-op is applied if command j has not arrived at tick j + 1; "hold": as schedules say.
        noop: an action, {agent: action}, "random", a function (agent, space) -> action, called once, or a function
            (agent, space, observation) -> action, called whenever it is applied, with the environment's own observation
            of that boundary, as set-points of positions need it; None: 0 clipped into a Box.
        observe_age: observations are {"observation", "age" (s)}; a 1-D Box of floats gets one more element.
        parts: {observer: {source: slice}}: elements of a 1-D Box that come over their source's link; each has an age.
        plan: k, 2 or more: an action is an array of k actions, which travels as one `Plan`; a Box `[n...]` becomes
            `[k, n...]`, Discrete(n) MultiDiscrete([n] * k). So in `step`, and what policies in runs return. Masks in
            infos and of policies, and `Asked.space`, are of one action.
        merge: of these plans, as of `Plan`; None: "drop".

    Returns:
        An environment of the same kind, also with `run_synchronous` and `run_event_driven`.

    Raises ConfigError, ScheduleError, UnknownAgent.

    >>> from heron_env import ScheduleConfig, under_network
    >>> late = under_network(gymnasium.make("CartPole-v1"), ScheduleConfig(obs_delay=2.0), noop=0)
    >>> _, info = late.reset(seed=0)
    >>> [late.step(1)[4]["aoi"] for _ in range(4)]
    [1.0, 2.0, 2.0, 2.0]
    """
    options = {"on_missing": on_missing, "noop": noop, "observe_age": observe_age, "parts": parts}
    options |= {"plan": plan, "merge": merge}
    try:
        rounds = aec_to_parallel(env) if isinstance(env, AECEnv) else env
    except AssertionError as error:
        raise ConfigError(f"under_network({env!r:.100}): {error}") from error
    in_turns = isinstance(env, AECEnv) and type(rounds) is aec_to_parallel_wrapper
    env = TurnWorld(env) if in_turns else rounds  # type: ignore[no-untyped-call]
    if isinstance(env, ParallelEnv):
        return NetworkParallelEnv(env, schedule, dt, options)
    if isinstance(env, gymnasium.Env):
        return NetworkEnv(env, schedule, dt, options)
    many = isinstance(env, gymnasium.vector.VectorEnv)
    remedy = "put each into under_network() and those into SyncVectorEnv" if many else "give one of them"
    raise ConfigError(f"under_network({env!r:.100}): is no PettingZoo ParallelEnv and no Gymnasium Env; {remedy}")
