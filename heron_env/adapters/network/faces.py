"""What comes out of `under_network`: a ParallelEnv of a ParallelEnv, a Gymnasium Env of a Gymnasium Env."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, Literal

import gymnasium
from gymnasium import spaces
from pettingzoo import AECEnv, ParallelEnv

from heron_env.adapters.network.driver import NetworkEpisode, NetworkSetting, StepOutcome, network_notes
from heron_env.adapters.network.forms import Parts, forms_of
from heron_env.adapters.network.noops import Noops, copied
from heron_env.core.policy import Policies, decide_with, draw_of
from heron_env.envs.answering import begin_policies
from heron_env.envs.decisions import require_policy
from heron_env.envs.episodes import EpisodeResult, Record, checked_record
from heron_env.envs.settings import read_seed
from heron_env.errors import (
    ConfigError,
    ResetNeeded,
    RunInterrupted,
    ScheduleError,
    UnknownAgent,
    checked_keywords,
    did_you_mean,
)
from heron_env.given import require_one_of, require_switch
from heron_env.scheduling.drawn import AnySchedule, DrawnSchedule
from heron_env.scheduling.timing import ON_MISSING, Timing, resolve, to_ns, to_seconds

AGENT = "agent"
"""The one agent of a Gymnasium environment, in schedules and policies."""


class UnderNetwork:
    """An environment that is a black box, behind links: its runs, and what its two faces share.

    `env` is the environment itself; it is stepped and reset by nobody else.
    """

    env: Any

    def _open(
        self, env: Any, world: Any, schedule: AnySchedule, dt: float, *,
        on_missing: str, noop: Any, observe_age: bool, parts: Parts | None,
    ) -> None:  # fmt: skip
        require_one_of(f"under_network(on_missing={on_missing!r:.60})", on_missing, ON_MISSING)
        require_switch(f"under_network(observe_age={observe_age!r:.60})", observe_age)
        dt_ns = to_ns(dt, "dt")
        if not dt_ns:
            raise ScheduleError(f"dt={dt!r}: a step takes 1e-9 seconds or more")
        agents = tuple(world.possible_agents)
        acts, sees = ([space(agent) for agent in agents] for space in (world.action_space, world.observation_space))
        forms = forms_of(agents, sees, parts, aged=observe_age)
        failsafe, noops = on_missing == "noop", Noops(noop, agents, acts)
        self.env = env
        self._setting = NetworkSetting(world, agents, acts, forms, noops, dt_ns, failsafe)
        self._groups: dict[str, list[str]] = {}
        for agent in agents:
            self._groups.setdefault(agent.rstrip("0123456789").rstrip("_") or agent, []).append(agent)
        self._schedule, self._seed, self._number = schedule, 0, -1
        self._timings(schedule.nominal() if isinstance(schedule, DrawnSchedule) else schedule)
        self._episode: NetworkEpisode | None = None

    def _timings(self, schedule: Any) -> tuple[Timing, ...]:
        """By rank. Raises ScheduleError for what a black box can't do, ConfigError where a no-op is missing."""
        setting = self._setting
        ones = [1] * len(setting.agents)
        timings = resolve(schedule, ids=setting.agents, levels=ones, groups=self._groups, dt_ns=setting.dt_ns)
        for rank, timing in enumerate(timings):
            _require_whole_steps(timing, setting.dt_ns)
            late = timing.phase or timing.msg or timing.obs or timing.act or timing.min_delay
            if late or timing.sourced or timing.config.loss:
                setting.noops.require(rank, "can have nothing in force (delay, loss or phase)")
        return timings

    def _begin(
        self, seed: int | None, options: dict[str, Any] | None, schedule: AnySchedule = None, **kept: Any
    ) -> tuple[NetworkEpisode, dict[str, Any], dict[str, Any]]:
        """A new episode: number 0 of a seed, or the next (W9). Raises ConfigError, ScheduleError."""
        now = (self._seed, self._number + 1) if seed is None else (read_seed(seed), 0)
        schedule = self._schedule if schedule is None else schedule
        timings = self._timings(schedule.at(*now) if isinstance(schedule, DrawnSchedule) else schedule)
        (self._seed, self._number), episode = now, NetworkEpisode(self._setting, timings, *now, **kept)
        self._episode = episode
        return episode, *episode.begin(seed, options)

    def _step(self, actions: Mapping[str, Any]) -> StepOutcome:
        if self._episode is None or not self._episode.agents:
            raise ResetNeeded("step(): no episode is running; call reset() first")
        return self._episode.step(actions)

    @checked_keywords
    def run_event_driven(
        self, policies: Policies, *, t_end: float | None = None, seed: int | None = None,
        schedule: AnySchedule = None, trace: bool = False, record: Record = ("rewards", "actions"),
    ) -> EpisodeResult:  # fmt: skip
        """One whole episode, policies called at their agents' ticks: bit for bit what stepping by hand gives.

        Args:
            policies: by agent, group (`adversary` for adversary_0, adversary_1) or "*": a function observation ->
                action, or an object with `forward`. One that declares `mask` is given the environment's current one.
            t_end: stop here at the latest, s; None: where the environment ends.
            seed: as in reset().
            schedule: instead of the environment's own.
            trace: keep a record of every event in `result.trace`.
            record: any of "rewards", "actions", "observations" (as agents have them at their ticks).

        Raises ConfigError, ScheduleError, UnknownAgent; RunInterrupted if a policy resets the environment.
        """
        require_switch(f"trace={trace!r:.60}", trace)
        kept = checked_record(record)
        if "frames" in kept:
            raise ConfigError("record: a black box can't be filmed; leave 'frames' out")
        last = None if t_end is None else to_ns(t_end, "t_end")
        chosen, setting = self._chosen(policies), self._setting
        episode, seen, infos = self._begin(seed, None, schedule, trace=trace, record=kept)
        begin_policies(chosen.values(), self._seed, self._number)
        decide = {name: decide_with(policy, _objects, partial(_mask, episode, name)) for name, policy in chosen.items()}
        while episode.agents and (last is None or episode.now + setting.dt_ns <= last):
            actions = dict[str, Any]()
            for name in episode.agents:
                if name in infos and infos[name]["is_active"]:
                    number = episode.by_name[name].timing.number(episode.now)
                    draw = partial(draw_of, self._seed, self._number, name, number)
                    if "observations" in kept:
                        episode.result.observations[name].append((to_seconds(episode.now), copied(seen[name])))
                    actions[name] = decide[name](seen[name], episode.number, draw)
                    if self._episode is not episode:
                        raise RunInterrupted(f"the policy of {name!r} reset the environment of its own run; use a copy")
            seen, _, _, _, infos = episode.step(actions)
        return episode.close(network_notes(episode.timings, setting.dt_ns))

    @checked_keywords
    def run_synchronous(
        self, policies: Policies, *, seed: int | None = None, record: Record = ("rewards", "actions")
    ) -> EpisodeResult:
        """One whole episode of the bare environment; see `run_event_driven` for the arguments."""
        return self.run_event_driven(policies, seed=seed, schedule={}, record=record)

    def _chosen(self, policies: Policies) -> dict[str, Any]:
        """The policy of each agent. Raises UnknownAgent for a wrong key, ConfigError where one has none."""
        if not isinstance(policies, Mapping):
            raise ConfigError(f"policies={policies!r}: must be a mapping; write {{'*': policy}} for one that all share")
        agents, chosen = self._setting.agents, dict[str, Any]()
        names = ["*", *self._groups, *agents]
        for key, policy in policies.items():
            if key not in names:
                near = did_you_mean(key, names)
                raise UnknownAgent(
                    f"policies: {key!r:.60} is neither an agent nor a group; there are {names[1:13]}.{near}"
                )
            require_policy(policy, f"policies[{key!r}]")
            if not callable(policy) and not hasattr(policy, "forward"):
                raise ConfigError(
                    f"policies[{key!r}]={policy!r:.100}: a black box has no states or questions; give forward"
                )
        for members in ({"*": agents}, self._groups, {agent: [agent] for agent in agents}):
            for key, whose in members.items():
                chosen |= dict.fromkeys(whose, policies[key]) if key in policies else {}
        missing = [agent for agent in agents if agent not in chosen]
        if missing:
            raise ConfigError(f"no policy for {missing}: give one by agent, by group {list(self._groups)} or for '*'")
        return chosen


def _require_whole_steps(timing: Timing, dt_ns: int) -> None:
    """Raise ScheduleError for what a black box can't do (W3)."""
    config, whose = timing.config, f"agent {timing.agent!r}"
    for name, ns in (("tick_interval", timing.tick), ("phase", timing.phase)):
        if ns % dt_ns:
            raise ScheduleError(
                f"{whose}: {name}={to_seconds(ns)!r} s is not a whole multiple of dt={to_seconds(dt_ns)!r} s, and a "
                "black box is told actions once a step; change it, or dt"
            )
    if config.tick_jitter_ratio:
        raise ScheduleError(f"{whose}: tick_jitter_ratio={config.tick_jitter_ratio!r}: a black box steps evenly; use 0")
    if config.own_rows == "local":
        raise ScheduleError(
            f"{whose}: own_rows='local': nobody knows which elements of a black box are whose; use parts"
        )


def _objects() -> Any:
    raise AssertionError("a black box has no objects")  # refused before


def _mask(episode: NetworkEpisode, name: str, vector: Any) -> Any:
    return episode.by_name[name].mask


class NetworkParallelEnv(UnderNetwork, ParallelEnv):  # type: ignore[type-arg]
    """A PettingZoo environment under a network; see `under_network`."""

    def __init__(self, env: Any, schedule: AnySchedule, dt: float, options: dict[str, Any]) -> None:
        if not hasattr(env, "possible_agents"):
            raise ConfigError("under_network(env): the environment must say its possible_agents")
        self._open(env, env, schedule, dt, **options)
        setting = self._setting
        self.metadata, self.render_mode = env.metadata, getattr(env, "render_mode", None)
        self.possible_agents = list(setting.agents)
        self.observation_spaces = {a: form.space for a, form in zip(setting.agents, setting.forms, strict=True)}
        self.action_spaces = dict(zip(setting.agents, setting.action_spaces, strict=True))

    @property
    def agents(self) -> list[str]:  # type: ignore[override]
        """Those in the episode."""
        return [] if self._episode is None else list(self._episode.agents)

    def observation_space(self, agent: str) -> spaces.Space[Any]:
        """The same object each time; with ages a Dict, or a longer 1-D Box."""
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> spaces.Space[Any]:
        """The environment's own."""
        return self.action_spaces[agent]

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """The environment's own reset, and episode 0 of the network's draws, or without a seed the next (W9)."""
        return self._begin(seed, options)[1:]

    def step(self, actions: Mapping[str, Any]) -> StepOutcome:
        """One step (W6). Actions of those whose turn it is not are ignored. Raises InvalidAction, ResetNeeded."""
        return self._step(actions)

    def render(self) -> Any:
        """The environment's own picture."""
        return self.env.render()

    def state(self) -> Any:
        """The environment's own state: true, and undelayed."""
        return self.env.state()

    def close(self) -> None:
        """Close the environment."""
        self.env.close()


class OneAgent:
    """A Gymnasium environment as one agent's ParallelEnv."""

    possible_agents = (AGENT,)

    def __init__(self, env: gymnasium.Env[Any, Any]) -> None:
        self.env, self.agents = env, list[str]()

    def action_space(self, agent: str) -> spaces.Space[Any]:
        """Its action space."""
        return self.env.action_space

    def observation_space(self, agent: str) -> spaces.Space[Any]:
        """Its observation space."""
        return self.env.observation_space

    def reset(self, seed: int | None, options: dict[str, Any] | None) -> tuple[dict[str, Any], dict[str, Any]]:
        """By agent."""
        observation, info = self.env.reset(seed=seed, options=options)
        self.agents = [AGENT]
        return {AGENT: observation}, {AGENT: info}

    def step(self, actions: Mapping[str, Any]) -> StepOutcome:
        """By agent."""
        observation, reward, terminated, truncated, info = self.env.step(actions[AGENT])
        if terminated or truncated:
            self.agents = []
        return {AGENT: observation}, {AGENT: reward}, {AGENT: terminated}, {AGENT: truncated}, {AGENT: info}  # type: ignore[dict-item]


class NetworkEnv(UnderNetwork, gymnasium.Env[Any, Any]):
    """A Gymnasium environment under a network; see `under_network`. Its one agent is called "agent"."""

    def __init__(self, env: gymnasium.Env[Any, Any], schedule: AnySchedule, dt: float, options: dict[str, Any]) -> None:
        self._open(env, OneAgent(env), schedule, dt, **options)
        self.metadata, self.render_mode = env.metadata, env.render_mode
        self.observation_space, self.action_space = self._setting.forms[0].space, env.action_space

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """The environment's own reset, and episode 0 of the network's draws, or without a seed the next (W9)."""
        super().reset(seed=seed)
        _, seen, infos = self._begin(seed, options)
        return seen[AGENT], infos[AGENT]

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """One step (W6). Where infos say is_active=False, the action is ignored. Raises ResetNeeded."""
        seen, rewards, terminated, truncated, infos = self._step({AGENT: action})
        return seen[AGENT], rewards[AGENT], terminated[AGENT], truncated[AGENT], infos[AGENT]

    def render(self) -> Any:
        """The environment's own picture."""
        return self.env.render()

    def close(self) -> None:
        """Close the environment."""
        self.env.close()


@checked_keywords
def under_network(
    env: Any,
    schedule: AnySchedule = None,
    *,
    dt: float = 1.0,
    on_missing: Literal["hold", "noop"] = "hold",
    noop: Any = None,
    observe_age: bool = False,
    parts: Parts | None = None,
) -> Any:
    """A PettingZoo ParallelEnv or Gymnasium Env, as a black box, behind links with delay, jitter and loss.

    What comes out is one of the same kind, with `run_event_driven` and `run_synchronous` beside. Step k covers
    [k*dt, (k+1)*dt). Rewards, ends and infos are the environment's own, undelayed. Observations travel msg_delay +
    obs_delay, commands msg_delay + act_delay; agents decide on the newest observation that has arrived, and a step uses
    the newest command that has. Without delay and loss it is the bare environment, bit for bit. To each agent's info
    come `aoi` (age of what it sees, s), `delivered` (something new came), `is_active` (its next action will be used),
    `applied` (number of the decision that this step used, -1 for the no-op), and at its end `true_observation`.

    Args:
        env: it is stepped by nobody else from now on; an AECEnv that is parallelizable is converted.
        schedule: by agent, group or "*"; ticks are whole multiples of dt. The agent of a Gymnasium Env is "agent".
        dt: how long a step takes, s; with 1.0 delays read as steps.
        on_missing: "noop": where command j has not come by tick j + 1, the no-op is applied, for all agents; "hold": as
            each agent's schedule says.
        noop: an action, {agent: action}, a function (agent, space) -> action, or "random" (a keyed draw). None: 0,
            clipped into a Box; needed for other spaces as soon as an agent can have nothing in force. It also takes the
            place of a choice that the environment's current `action_mask` forbids.
        observe_age: observations are {"observation": ..., "age": [s]}; a 1-D Box of floats gets one more element.
        parts: {observer: {source: slice}}: these elements of a 1-D Box come over the link of their source, so that they
            age apart (with observe_age each has its age, after the own one).

    Raises ConfigError, ScheduleError, UnknownAgent.

    >>> import gymnasium
    >>> from heron_env import ScheduleConfig, under_network
    >>> late = under_network(gymnasium.make("CartPole-v1"), ScheduleConfig(obs_delay=2.0), noop=0)
    >>> _, info = late.reset(seed=0)
    >>> [late.step(1)[4]["aoi"] for _ in range(4)], late.step(1)[4]["applied"]
    ([1.0, 2.0, 2.0, 2.0], 4)
    """
    options = {"on_missing": on_missing, "noop": noop, "observe_age": observe_age, "parts": parts}
    if isinstance(env, AECEnv):
        env = _parallel(env)
    if isinstance(env, ParallelEnv):
        return NetworkParallelEnv(env, schedule, dt, options)
    if isinstance(env, gymnasium.Env):
        return NetworkEnv(env, schedule, dt, options)
    many = isinstance(env, gymnasium.vector.VectorEnv)
    remedy = "put each into under_network() and those into SyncVectorEnv" if many else "give one of them"
    raise ConfigError(f"under_network({env!r:.100}): is no PettingZoo ParallelEnv and no Gymnasium Env; {remedy}")


def _parallel(env: Any) -> Any:
    from pettingzoo.utils.conversions import aec_to_parallel

    try:
        return aec_to_parallel(env)
    except AssertionError as error:
        raise ConfigError(f"under_network({env!r:.100}): {error}") from error
