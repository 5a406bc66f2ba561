"""The synchronous clock, as a PettingZoo ParallelEnv: an environment is built, reset, stepped, saved and restored."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, replace
from functools import partial
from threading import get_ident
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray
from pettingzoo import ParallelEnv

from heron_env.agents.agent import SystemAgent
from heron_env.agents.proxy import ProxyAgent
from heron_env.core.feature import FeatureProvider, require_features
from heron_env.core.policy import Origin, Show, draw_of
from heron_env.core.world import World
from heron_env.engine.model import compiled_by_default
from heron_env.envs.answering import Asking, begin_policies
from heron_env.envs.decisions import Decision, Source, last_decisions, own_policies, take
from heron_env.envs.dictionaries import JointActions, Publisher
from heron_env.envs.disturbing import Course, checked_disturbances
from heron_env.envs.hooks import Hooks, require_options
from heron_env.envs.lane import StepOutcome
from heron_env.envs.ownership import NOTHING, Ownership
from heron_env.envs.seeing import ObjectForm, Values, observation_box, show_truth, state_box
from heron_env.envs.settings import (
    Observability,
    TerminationConfig,
    divided_step,
    read_observability,
    read_seed,
    require_root,
    require_settings,
    require_synchronous,
    sets_clock,
    with_lines,
)
from heron_env.envs.simulation import Simulation
from heron_env.envs.snapshot import pickled, require_alike, require_version, restore, save
from heron_env.envs.unused_rules import require_used
from heron_env.errors import DeclarationError, InvalidAction, ResetNeeded, checked_keywords, ended_in
from heron_env.given import WITHOUT_TRAINING_DELAYS, is_one_of, refuse_removed
from heron_env.scheduling.disturbances import Disturbance
from heron_env.scheduling.drawn import AnySchedule, DrawnSchedule
from heron_env.scheduling.timing import Timing, require_before_the_end, resolve
from heron_env.seeding import fresh_seed

if TYPE_CHECKING:
    from heron_env.pictures.frames import WorldPicture

Obs = NDArray[np.float32]
DERIVED = (
    "simulation", "hierarchy", "proxy", "observation_spaces", "action_spaces", "state_space", "groups", "group_map",
    "timings", "state_names", "_read", "_publisher", "_watchers_spaces", "_done_by_others", "_objects", "agents",
    "possible_agents", "_ownership", "_asking", "_origins", "_picture",
)  # fmt: skip
"""Attributes that `_build` makes anew."""

NO_SOURCES: Mapping[int, int] = {}


class SynchronousEnv(Hooks, ParallelEnv):  # type: ignore[type-arg]
    """An environment that is reset and stepped, in control steps; see HeronEnv for the arguments."""

    simulation: Simulation
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
    reset_options: tuple[str, ...] | None = ()

    @refuse_removed("HeronEnv", {"training_delays": WITHOUT_TRAINING_DELAYS})
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
        observe_visible: bool = False,
        pad: bool = False,
        render_mode: str | None = None,
        compile: bool | None = None,
    ) -> None:
        require_root(system, type(self).__name__)
        require_settings(
            max_steps=max_steps, termination=termination, observe_age=observe_age, observe_visible=observe_visible,
            pad=pad, render_mode=render_mode, render_modes=self.metadata["render_modes"], compile=compile,
        )  # fmt: skip
        require_features(self.global_features, f"{type(self).__name__}.global_features")
        self.dt = self.dt if dt is None else dt
        self.physics_substeps = self.physics_substeps if physics_substeps is None else physics_substeps
        self.report_interval = self.report_interval if report_interval is None else report_interval
        self.dt_ns, self.reports = divided_step(self.dt, self.physics_substeps, self.report_interval)
        self.system = system
        self.termination = termination or TerminationConfig(max_steps=max_steps)
        self.termination.require_time(self.dt_ns)
        self.schedule = schedule
        self.observability = read_observability(observability)
        self.observe_age, self.observe_visible, self.pad = observe_age, observe_visible, pad
        self.render_mode = render_mode
        self._compile = compiled_by_default() if compile is None else compile
        self._seed, self._episode = cast(int | None, None), -1
        try:
            self._build()
        except DeclarationError as error:
            raise with_lines(error, observability) from error.__cause__

    def _build(self) -> None:
        """Everything that derives from the declaration."""
        simulation = self.simulation = Simulation(
            self.system, self, dt=self.dt, substeps=self.physics_substeps, global_features=tuple(self.global_features),
            termination=self.termination, observe_age=self.observe_age, observe_visible=self.observe_visible,
            pad=self.pad, observability=self.observability, compile=self._compile,
        )  # fmt: skip
        model, self.hierarchy = simulation.model, simulation.model.hierarchy
        ids, possible, specs = self.hierarchy.ids, model.possible, model.specs
        plan, layout = model.plan, model.layout
        self.groups, self.group_map = simulation.groups, simulation.group_map
        self.possible_agents, self.agents = [ids[rank] for rank in possible], list[str]()
        if isinstance(self.schedule, DrawnSchedule):
            self.schedule.require_fixed()
        self.timings = self.timings_of(self.schedule)
        plan.by_wrong_clocks = self.observe_age and sets_clock(self.schedule)
        self.proxy = ProxyAgent()
        self.proxy.serve(self.hierarchy, layout, plan, self.dt_ns)
        show_truth(self.proxy, simulation.facts, self.hierarchy)
        self.observation_spaces = {ids[rank]: observation_box(plan, rank) for rank in possible}
        self.action_spaces = {ids[rank]: specs[rank].space() for rank in possible}
        self._watchers_spaces, self._done_by_others = dict[int, spaces.Box](), dict[int, spaces.Space[Any]]()
        self._objects = ObjectForm(self.hierarchy, layout, plan)
        self.state_names, self.state_space = list(layout.full_names), state_box(layout)
        simulation.model = replace(model, ticks=tuple((timing.tick, timing.phase) for timing in self.timings))
        self._read = JointActions(simulation, self.possible_agents, [specs[rank] for rank in possible]).read
        self._publisher = Publisher(simulation, self.timings, self.is_active)
        self._event_driven = False
        self._origins, self._asking = dict[int, Origin](), dict[int, Asking]()
        self._ownership = Ownership()
        self._picture: WorldPicture | None = None
        require_used(simulation)

    def timings_of(self, schedule: AnySchedule) -> tuple[Timing, ...]:
        """Return each agent's timing, by rank; of a drawn schedule the nominal one. Raises ScheduleError."""
        if isinstance(schedule, DrawnSchedule):
            schedule = schedule.nominal()
        ids, levels, own = self.hierarchy.ids, self.hierarchy.level, [a.own_rows for a in self.hierarchy.agents]
        return resolve(schedule, ids=ids, levels=levels, groups=self.groups, dt_ns=self.dt_ns, own_rows=own)

    @property
    def compiled(self) -> bool:
        """Do the rules run compiled, from the first reset on?"""
        return self.simulation.compiled

    @property
    def world(self) -> World:
        """The true state, in columns."""
        return self.simulation.world

    def action_space(self, agent: str) -> spaces.Space[Any]:
        """Box, Discrete, MultiDiscrete, or a Dict of c and d; the same object each time. Raises UnknownAgent."""
        if is_one_of(agent, self.action_spaces):
            return self.action_spaces[agent]
        rank = self.hierarchy.rank(agent, "action_space() got")
        if rank not in self._done_by_others:
            self._done_by_others[rank] = self.simulation.model.specs[rank].space()
        return self._done_by_others[rank]

    def observation_space(self, agent: str) -> spaces.Box:
        """float32 Box; the same object each time. Raises UnknownAgent."""
        if is_one_of(agent, self.observation_spaces):
            return cast(spaces.Box, self.observation_spaces[agent])
        rank = self.hierarchy.rank(agent, "observation_space() got")
        if rank not in self._watchers_spaces:
            self._watchers_spaces[rank] = observation_box(self.simulation.model.plan, rank)
        return self._watchers_spaces[rank]

    def observation_names(self, agent: str) -> list[str]:
        """Names of the observation's elements: `Charge.soc`, `battery_2.Charge.soc`, `global.Price.value`."""
        return self.simulation.model.plan.names(self.hierarchy.rank(agent, "observation_names() got"))

    # Stepping

    def reset(
        self, seed: int | None = None, options: Mapping[str, Any] | None = None
    ) -> tuple[dict[str, Obs], dict[str, Any]]:
        """Start an episode: episode 0 of `seed`, or the next one of the seed in use, `np_random_seed`.

        `options`: {"disturbances": [...]} happen in it (T15), and what the class names in `reset_options`. Raises
        ConfigError for other names.
        """
        return self._ownership.drive("reset()", self._reset, seed, options)

    def _reset(self, seed: int | None, options: Mapping[str, Any] | None) -> tuple[dict[str, Obs], dict[str, Any]]:
        require_options(options, self)
        if not self.simulation.is_lane:
            require_synchronous(self.simulation.model, self.timings)
        self.start_episode(seed)
        show_truth(self.proxy, self.simulation.facts, self.hierarchy)
        self._disturb_later((options or {}).get("disturbances", ()))
        self.agents = list(self.possible_agents)
        self._event_driven = False
        agents = self.hierarchy.agents
        answering = (rank for rank in self.simulation.model.possible if hasattr(agents[rank].policy, "answer"))
        self.simulation.post.readers = frozenset(answering)
        begin_policies(own_policies(self), self.np_random_seed, self._episode)
        observations = self._observe()
        return observations, self._publisher.infos(self.agents, observations)

    def start_episode(self, seed: int | None) -> None:
        """Reset the simulation: episode 0 of a new seed, or the next episode of the old one. Both clocks begin here."""
        self._seed, self._episode = moment = self._next_episode(seed)
        self._ownership.move(torn="")
        self.proxy.open(*moment)
        self.simulation.reset(*moment)
        self.decided = [Source.NONE] * len(self.hierarchy)
        self._origins = {}
        self.agents = []
        self._event_driven = True

    def _next_episode(self, seed: int | None) -> tuple[int, int]:
        """The seed and number of the episode that a start with `seed` begins. Raises ConfigError."""
        return (self.np_random_seed, self._episode + 1) if seed is None else (read_seed(seed), 0)

    @property
    def np_random_seed(self) -> int:
        """Seed in use: the last one passed; before that, one of the system's entropy, as in Gymnasium."""
        if self._seed is None:
            self._seed = fresh_seed()
        return self._seed

    def step(
        self, actions: Mapping[str, Any]
    ) -> tuple[dict[str, Obs], dict[str, float], dict[str, bool], dict[str, bool], dict[str, Any]]:
        """Run one control step (T15): actions top-down, substeps, rewards and ends, exogenous values, observations.

        Takes arrays, numbers or Actions. An active agent missing from `actions` uses its own policy, else its no-op.
        Raises InvalidAction, UnknownAgent, and ResetNeeded where no episode runs. Nothing has changed then. An error
        of a rule or hook ends the episode: step() raises ResetNeeded until a reset.
        """
        owned = self._ownership
        if not owned.lock.acquire(False):  # a decision that looks ahead, if that was lent; else a refusal
            return owned.drive("step()", self._step, actions)
        owned.call, owned.thread, owned.lent, mark = "step()", get_ident(), NOTHING, owned.mark
        try:
            return self._step(actions)
        except BaseException as error:
            if owned.mark != mark:
                owned.torn = ended_in("step()", error)
            raise
        finally:
            owned.lock.release()

    def _step(
        self, actions: Mapping[str, Any]
    ) -> tuple[dict[str, Obs], dict[str, float], dict[str, bool], dict[str, bool], dict[str, Any]]:
        live, publisher = self.agents, self._publisher
        if not live or self._ownership.torn:
            self._ownership.require_intact("step()")
            if self._event_driven:
                raise ResetNeeded("step(): an event-driven run used this environment last; call reset() first")
            if self._episode >= 0 and not actions:
                return {}, {}, {}, {}, {}
            raise ResetNeeded("step(): no episode is running; call reset() first")
        if self._origins:
            self._origins = {}
        results = publisher.results(live, self._advance(actions))
        self.proxy.step_results = partial(self._results, results[0])
        if self.simulation.lane.living.tobytes() != publisher.everybody:
            alive, index = self.simulation.alive, self.hierarchy.index
            self.agents = [agent for agent in live if alive[index[agent]]]
        return results

    def advance_step(self, actions: Mapping[str, Any], sources: Mapping[int, int] = NO_SOURCES) -> StepOutcome:
        """Advance one step; the outcome is by rank. `sources`: see `decisions.take`."""
        self._advance(actions, sources)
        return StepOutcome(self.simulation.lane)

    def _advance(self, actions: Mapping[str, Any], sources: Mapping[int, int] = NO_SOURCES) -> NDArray[np.float32]:
        """The step itself; what the deciding agents see then, side by side. Elsewhere from now on, also half-way."""
        simulation, owned = self.simulation, self._ownership
        steps = simulation.lane.steps
        if steps[0] >= simulation.most_steps:
            require_before_the_end((int(steps[0]) + 1) * self.dt_ns, "step(): its end")
        usual = self._publisher.always and len(self.agents) == len(self.possible_agents) and not self._origins
        owned.changing = joint = usual and not sources and self._read(actions)
        try:
            observed = self._joint_step() if joint else None
            if observed is None:
                take(self, actions, sources)
                owned.changing = True
                observed = simulation.step()
        except BaseException:
            if owned.changing:
                owned.move()
            raise
        owned.mark = next(owned.marks)
        self.proxy.time = simulation.world.time
        return observed

    def _joint_step(self) -> NDArray[np.float32] | None:
        """The step of all these; None, and nothing has changed, where one is illegal: `take` says which, and why."""
        try:
            return self.simulation.step()
        except InvalidAction:
            self._ownership.changing = self.simulation.lane.lanes.halfway
            if self._ownership.changing:
                raise
            return None

    def _observe(self) -> dict[str, Obs]:
        return self._publisher.observations(self.agents)

    def _results(self, observations: dict[str, Obs]) -> tuple[dict[str, Any], ...]:
        """The last step's results, of all agents."""
        outcome = StepOutcome(self.simulation.lane)
        parts: tuple[list[Any], ...] = (outcome.rewards, outcome.terminated, outcome.truncated, outcome.infos)
        return observations, *(dict(zip(self.hierarchy.ids, part, strict=True)) for part in parts)

    def close(self) -> None:
        """Do nothing: there is nothing to release."""

    # Who decides

    @property
    def decided(self) -> list[Source]:
        """Return the source of each agent's last decision, by rank."""
        return [Source(code) for code in self.simulation.lane.sources]

    @decided.setter
    def decided(self, sources: Sequence[Source]) -> None:
        self.simulation.lane.sources = [int(source) for source in sources]

    def is_active(self, rank: int) -> bool:
        """Will the agent's action in the coming step count? (T10)"""
        simulation = self.simulation
        return simulation.alive[rank] and self.timings[rank].ticks_at(simulation.step_index * self.dt_ns)

    def seen_by(self, rank: int) -> NDArray[np.float32]:
        """Return the observation for an agent's decision in the coming step, float32 `[n]`."""
        simulation = self.simulation
        if simulation.course is not None:
            return simulation.course.vector(rank)
        simulation.look()
        return simulation.model.plan.vector(rank, simulation.facts, simulation.moment)

    def draw_of(self, rank: int, number: int) -> int:
        """Return the key of an agent's draws for its decision at tick `number` of this episode."""
        return draw_of(self.np_random_seed, self._episode, self.hierarchy.ids[rank], number)

    def draw_in_step(self, rank: int) -> int:
        """Return the key of its draws for the coming synchronous step."""
        simulation = self.simulation
        return self.draw_of(
            rank, self.timings[simulation.model.clocks[rank]].number(simulation.step_index * self.dt_ns)
        )

    @property
    def last_decisions(self) -> dict[str, Decision]:
        """Return the source of each acting agent's last decision, with the reason in words."""
        return last_decisions(self.simulation, self._origins)

    # States in object form

    def state_of(self, owner_id: str, values: Values) -> Any:
        """Return the state of one agent, or of "global", in object form."""
        return values

    def shown_targets(self, rank: int) -> Sequence[int]:
        """Return the ranks in an agent's observation in object form: itself, and those that it sees."""
        return self._objects.visible_targets(rank)

    def shown_to(self, rank: int) -> Show:
        """Return an agent's observation vector (float32) in object form, at a turn."""
        return self._objects.shown_to(rank, self.shown_targets, self.state_of)

    def _checked(self, disturbances: Iterable[Disturbance]) -> tuple[Disturbance, ...]:
        """Raise ConfigError, UnknownAgent for those that can't happen here."""
        return checked_disturbances(self.simulation, disturbances)

    def _disturb_later(self, disturbances: Iterable[Disturbance]) -> None:
        """Let these happen in the synchronous episode that begins."""
        if checked := self._checked(disturbances):
            Course(self.simulation, self.proxy, checked).begin()

    # Snapshots

    def get_state(self) -> dict[str, Any]:
        """Return the state of the running episode: plain arrays, lists and numbers."""
        self._ownership.saved()
        return {
            "mark": self._ownership.mark,
            "seed": self._seed,
            "episode": self._episode,
            "agents": list(self.agents),
            "origins": {rank: astuple(origin) for rank, origin in self._origins.items()},
            "event_driven": self._event_driven,
            "torn": self._ownership.torn,
            **save(self.simulation),
        }

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Restore `get_state()` of an equal environment; `begin` runs again to rebuild exogenous series."""
        self._ownership.drive("set_state()", self._restore, state)

    def _restore(self, state: Mapping[str, Any]) -> None:
        require_alike(state, self.simulation)
        self.proxy.get_step_results()  # of the step before, as long as that is known
        self._ownership.move()
        self._seed, self._episode, self._event_driven = state["seed"], state["episode"], state["event_driven"]
        self._origins = {rank: Origin(*origin) for rank, origin in state["origins"].items()}
        self._ownership.torn = state.get("torn", "")  # states of 0.2.0 do not say it
        self.agents = list(state["agents"])
        restore(state, self.simulation, self.proxy)
        if self._event_driven:
            self._ownership.move()  # what is under way in such a run is the run's: nobody can bring it back
        else:
            self._ownership.arrive(state["mark"])

    def __getstate__(self) -> dict[str, Any]:
        """The version, the declaration and the episode; everything derived is rebuilt."""
        declared = {name: value for name, value in self.__dict__.items() if name not in DERIVED}
        return pickled(declared, self.get_state())

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Rebuild, then go on in mid-episode. Raises ConfigError for what another version of heron_env pickled."""
        require_version(state)
        self.__dict__.update(state["declared"])
        self._build()
        self.set_state(state["episode"])
        self._ownership.arrive(state["episode"]["mark"])

    # Looks
