"""HeronEnv: the synchronous clock, as a PettingZoo ParallelEnv."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray
from pettingzoo import ParallelEnv

from heron_env.agents.agent import SystemAgent
from heron_env.agents.proxy import ProxyAgent
from heron_env.core.feature import FeatureProvider, require_features
from heron_env.core.rule import told_in_help
from heron_env.core.world import World
from heron_env.engine.blueprint import compiled_by_default
from heron_env.envs.answering import Asking, begin_policies
from heron_env.envs.decisions import Deciding, Source, act, own_policies
from heron_env.envs.description import Described
from heron_env.envs.episodes import Episodes, require_options
from heron_env.envs.groups import group_agents
from heron_env.envs.hooks import Hooks
from heron_env.envs.joint_actions import JointActions
from heron_env.envs.lane import StepOutcome
from heron_env.envs.mail import Mailing
from heron_env.envs.object_form import Form, ObjectForm
from heron_env.envs.overlooked import require_heard
from heron_env.envs.ownership import Ownership
from heron_env.envs.publishing import Publisher
from heron_env.envs.seeing import Observability, Seeing, as_observability, located
from heron_env.envs.settings import TerminationConfig, divided_step, require_root, require_settings
from heron_env.envs.simulation import Simulation
from heron_env.envs.snapshot import Snapshots
from heron_env.envs.training_delays import TrainingDelays, lateness_of
from heron_env.envs.vocabulary import spoken
from heron_env.errors import ConfigError, DeclarationError, ResetNeeded, checked_keywords
from heron_env.given import is_one_of
from heron_env.scheduling.drawn import AnySchedule, DrawnSchedule
from heron_env.scheduling.timing import Timing, require_before_the_end, resolve

Obs = NDArray[np.float32]


class HeronEnv(ObjectForm, Deciding, Mailing, Hooks, Seeing, Episodes, Snapshots, Described, ParallelEnv):  # type: ignore[type-arg]
    """An environment: a hierarchy of agents, physics hooks, and two clocks to run them.

    Subclasses set `dt` (control step, s), `physics_substeps`, `report_interval` (s), `global_features`, and override
    hooks.

    Args:
        system: the root of the hierarchy.
        max_steps: truncate after so many control steps (short for `termination`).
        termination: limits, and whether the first or the last ended agent ends the episode.
        dt, physics_substeps: instead of the class's.
        report_interval: how often each row reports its state in the event-driven clock, s; None: the class's, or dt.
        schedule: ticks, delays and loss: one for all, or by agent id, group, level or "*". The synchronous clock uses
            the ticks only, which must be whole multiples of dt. Of a DrawnSchedule each event-driven episode has its
            own delays and losses; its ticks are fixed.
        observability: an observability matrix with noise (ObservabilityConfig, a mapping of its fields, or the path of
            a YAML file); None: the features' tags decide who sees what, exactly.
        observe_age: add the age of each source agent's information to the observations, s.
        pad: bring the observations of agents of one name stem, with equal actions and equal features of their own, to
            the width of the widest, so that neighbourhoods of different size don't split their group: an agent's own
            numbers, zeros (`pad[7]`), then a mask of that width (`mask[0]` ...) that says with 1 which are its own.
            Where all are equally wide nothing changes. Ages in infos get zeros likewise.
        training_delays: let agents see and act some control steps late in the synchronous clock and in batches.
            Rewards, ends, state() and what the proxy knows stay those of now; the event-driven clock has delays of its
            own, in the schedule, and ignores these.
        render_mode: "ansi" or "rgb_array".
        compile: run the agents' rules compiled (the first reset compiles them, or finds them on disk); False: in plain
            Python, for debugging. None: as the environment variable HERON_COMPILE says, 1 (if it is unset or empty,
            too) or 0. Agents in the imperative style run in plain Python anyway.
    """

    metadata: dict[str, Any] = {
        "name": "heron_env",
        "render_modes": ["ansi", "rgb_array"],
        "is_parallelizable": True,
        "render_fps": 10,
    }
    dt: float = 1.0
    physics_substeps: int = 1
    report_interval: float | None = None
    global_features: tuple[type[FeatureProvider], ...] = ()

    @checked_keywords
    def __init__(
        self,
        system: SystemAgent,
        *,
        max_steps: int | None = None,
        termination: TerminationConfig | None = None,
        dt: float | None = None,
        physics_substeps: int | None = None,
        report_interval: float | None = None,
        schedule: AnySchedule = None,
        observability: Observability = None,
        observe_age: bool = False,
        pad: bool = False,
        training_delays: TrainingDelays | None = None,
        render_mode: str | None = None,
        compile: bool | None = None,
    ) -> None:
        require_root(system, type(self).__name__)
        require_settings(
            max_steps=max_steps,
            termination=termination,
            observe_age=observe_age,
            pad=pad,
            render_mode=render_mode,
            render_modes=self.metadata["render_modes"],
            compile=compile,
        )
        require_features(self.global_features, f"{type(self).__name__}.global_features")
        self.dt = self.dt if dt is None else dt
        self.physics_substeps = self.physics_substeps if physics_substeps is None else physics_substeps
        self.report_interval = self.report_interval if report_interval is None else report_interval
        self.dt_ns, self.reports = divided_step(self.dt, self.physics_substeps, self.report_interval)
        self.system = system
        self.termination = termination or TerminationConfig(max_steps=max_steps)
        self.termination.require_time(self.dt_ns)
        self.schedule = schedule
        self.observability = as_observability(observability)
        self.observe_age, self.pad, self.training_delays = observe_age, pad, training_delays
        self.render_mode = render_mode
        self._compile = compiled_by_default() if compile is None else compile
        self._seed, self._episode = 0, -1
        try:
            self._build()
        except DeclarationError as error:
            raise located(error, observability) from error.__cause__

    def _build(self) -> None:
        """Everything that derives from the declaration."""
        self.simulation = Simulation(
            self.system, self, dt=self.dt, substeps=self.physics_substeps, global_features=tuple(self.global_features),
            termination=self.termination, observe_age=self.observe_age, pad=self.pad, observability=self.observability,
            compile=self._compile,
        )  # fmt: skip
        self.hierarchy = self.simulation.hierarchy
        ids, possible = self.hierarchy.ids, self.simulation.possible
        self.possible_agents = [ids[rank] for rank in possible]
        self.agents: list[str] = []
        self.proxy = ProxyAgent()
        self.proxy.serve(self.hierarchy, self.simulation.layout, self.simulation.plan, self.dt_ns)
        self._keep_truth()
        self.observation_spaces = {ids[rank]: self._observation_box(rank) for rank in possible}
        self.action_spaces = {ids[rank]: self.simulation.specs[rank].space() for rank in possible}
        self._watchers_spaces: dict[int, spaces.Box] = {}
        self._done_by_others: dict[int, spaces.Space[Any]] = {}
        self._forms: dict[int, Form] = {}
        self.groups = group_agents(self.simulation)
        self.group_map = {
            g: kept for g, members in self.groups.items() if (kept := [a for a in members if a in self.action_spaces])
        }
        if isinstance(self.schedule, DrawnSchedule):
            self.schedule.require_fixed()
        self.timings = self.timings_of(self.schedule)
        if self.training_delays is None:  # with them it depends on what agents see, so it is not the engine that tells
            self.simulation.ticks = tuple((timing.tick, timing.phase) for timing in self.timings)
        self._describe_state()
        self._joint = JointActions(self.possible_agents, [self.simulation.specs[rank] for rank in possible])
        self._late = lateness_of(self, self.training_delays)
        self._publisher = Publisher(self)
        self._event_driven = False
        self._origins, self._asking = {}, dict[int, Asking]()
        self._ownership = Ownership()
        require_heard(self)

    def _keep_truth(self) -> None:
        self.proxy.keep(self.simulation.truth, {agent.agent_id: agent.state for agent in self.hierarchy.agents})

    def timings_of(self, schedule: AnySchedule) -> tuple[Timing, ...]:
        """The schedule's meaning for each agent, by rank; of one that is drawn the nominal. Raises ScheduleError."""
        if isinstance(schedule, DrawnSchedule):
            schedule = schedule.nominal()
        ids, levels, own = self.hierarchy.ids, self.hierarchy.level, [a.own_rows for a in self.hierarchy.agents]
        return resolve(schedule, ids=ids, levels=levels, groups=self.groups, dt_ns=self.dt_ns, own_rows=own)

    # PettingZoo's interface

    @property
    def compiled(self) -> bool:
        """Do the rules run compiled, from the first reset on?"""
        return self.simulation.compiled

    @property
    def world(self) -> World:
        """The truth in columns."""
        return self.simulation.world

    def action_space(self, agent: str) -> spaces.Space[Any]:
        """Box, Discrete or MultiDiscrete; the same object each time. Raises UnknownAgent."""
        if is_one_of(agent, self.action_spaces):
            return self.action_spaces[agent]
        rank = self.hierarchy.rank(agent, "action_space() got")
        if rank not in self._done_by_others:
            self._done_by_others[rank] = self.simulation.specs[rank].space()
        return self._done_by_others[rank]

    def reset(
        self, seed: int | None = None, options: Mapping[str, Any] | None = None
    ) -> tuple[dict[str, Obs], dict[str, Any]]:
        """Start an episode: episode 0 of `seed`, or the next one of the seed in use.

        `options`: {"disturbances": [...]} happen in it (T15); unknown ones are ignored.
        """
        return self._ownership.drive("reset()", self._reset, seed, options)

    def _reset(self, seed: int | None, options: Mapping[str, Any] | None) -> tuple[dict[str, Obs], dict[str, Any]]:
        require_options(options)
        for rank in self.simulation.possible:
            self.timings[rank].require_multiples_of(self.dt_ns)
        self.start_episode(seed)
        self._keep_truth()
        self._expect((options or {}).get("disturbances", ()))
        self.agents = list(self.possible_agents)
        self._event_driven = False
        agents = self.hierarchy.agents
        answering = (rank for rank in self.simulation.possible if hasattr(agents[rank].policy, "answer"))
        self.simulation.post.readers = frozenset(answering)
        begin_policies(own_policies(self), self._seed, self._episode)
        if self._late is not None:
            self._late.begin()
            self._late.look()
        seen = self._observe()
        return seen, self._publisher.infos(self.agents, None, seen)

    def start_episode(self, seed: int | None) -> None:
        """Reset the simulation: episode 0 of a new seed, or the next episode of the old one. Both clocks begin here."""
        self._seed, self._episode = self._next_episode(seed)
        self._ownership.move()
        self.proxy.open(self._seed, self._episode)
        self.simulation.reset(self._seed, self._episode)
        self.decided = [Source.NONE] * len(self.hierarchy)
        self._origins = {}
        self.agents = []
        self._event_driven = True

    def _next_episode(self, seed: int | None) -> tuple[int, int]:
        """The seed and number of the episode that a start with `seed` begins. Raises ConfigError."""
        if seed is None:
            return self._seed, self._episode + 1
        if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
            raise ConfigError(f"reset(seed={seed!r}): a seed is a whole number >= 0")
        return int(seed), 0

    def step(
        self, actions: Mapping[str, Any]
    ) -> tuple[dict[str, Obs], dict[str, float], dict[str, bool], dict[str, bool], dict[str, Any]]:
        """One control step (T15): actions top-down, substeps, rewards and ends, next exogenous values, observations.

        Takes arrays, numbers or Actions. An active agent missing from `actions` uses its own policy, else its no-op.
        Raises InvalidAction, UnknownAgent, and ResetNeeded where no episode runs. Nothing has changed if it raises.
        """
        return self._ownership.drive("step()", self._step, actions)

    def _step(
        self, actions: Mapping[str, Any]
    ) -> tuple[dict[str, Obs], dict[str, float], dict[str, bool], dict[str, bool], dict[str, Any]]:
        if not self.agents:
            if self._event_driven:
                raise ResetNeeded("step(): an event-driven run used this environment last; call reset() first")
            if self._episode >= 0 and not actions:
                return {}, {}, {}, {}, {}
            raise ResetNeeded("step(): no episode is running; call reset() first")
        live, publisher = self.agents, self._publisher
        self._origins = {}
        outcome = self.advance_step(actions)
        results = publisher.results(live, outcome)
        self.proxy.set_results_later(partial(self._results, results[0], outcome))
        if not self.simulation.everyone:
            self.agents = [a for a in live if self.simulation.alive[self.hierarchy.index[a]]]
        return results

    def advance_step(self, actions: Mapping[str, Any]) -> StepOutcome:
        """The step itself; its outcome is by rank."""
        return self._ownership.moved_by(self._carry_out, actions)

    def _carry_out(self, actions: Mapping[str, Any]) -> StepOutcome:
        simulation = self.simulation
        if simulation.step_index >= simulation.most_steps:
            require_before_the_end((simulation.step_index + 1) * self.dt_ns, "step(): its end")
        whole = self._publisher.always and not self._origins
        outcome = simulation.whole_step(self._joint, actions) if whole else None
        if outcome is None:
            if simulation.post.receivers:
                simulation.post.unless_it_fails(act, self, actions)
            else:
                act(self, actions)
            for number in range(simulation.substeps):
                simulation.substep(number)
            outcome = simulation.close_step()
        if self._late is not None:
            self._late.look()
        self.proxy.time = outcome.time
        return outcome

    def _observe(self) -> dict[str, Obs]:
        return self._publisher.observations(self.agents)

    def _results(self, observations: dict[str, Obs], outcome: StepOutcome) -> tuple[dict[str, Any], ...]:
        """A step's results, of all agents."""
        parts: tuple[list[Any], ...] = (outcome.rewards, outcome.terminated, outcome.truncated, outcome.infos)
        return observations, *(dict(zip(self.hierarchy.ids, part, strict=True)) for part in parts)

    def close(self) -> None:
        """Nothing to release."""


told_in_help(HeronEnv, *spoken())
