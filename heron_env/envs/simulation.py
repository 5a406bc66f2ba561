"""The simulation: the truth array and everything that may change it. Both clocks drive this one object."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from heron_env.agents.agent import Agent, overrides
from heron_env.core.feature import FeatureProvider
from heron_env.core.world import World
from heron_env.engine.model import ENDLESS, splits_in_python, why_plain
from heron_env.engine.python_rules import PythonRules
from heron_env.envs.declaration import model_of
from heron_env.envs.disturbing import Course, Courses
from heron_env.envs.exchange import Exchange
from heron_env.envs.hooks import Hooks, require_numbers, who_sees_whom
from heron_env.envs.lane import Lane, StepOutcome
from heron_env.envs.lane_hooks import LaneHooks, as_of_boundary
from heron_env.envs.mail import Post
from heron_env.envs.masking import Masks
from heron_env.envs.seeing import group_agents
from heron_env.envs.settings import TerminationConfig
from heron_env.errors import ConfigError, FeatureError
from heron_env.observability.noise import Moment
from heron_env.scheduling.timing import END_OF_TIME, SECOND, to_seconds
from heron_env.seeding import MASK

if TYPE_CHECKING:
    from heron_env.engine.lanes import Lanes
    from heron_env.observability.config import ObservabilityConfig

Floats = NDArray[np.float64]
NOBODY: Mapping[int, str] = {}


class Simulation:
    """One world: reset, apply an action, advance a substep, close a step. Knows no clock but its own nominal one.

    Attributes:
        model: all that is declared and never changes; who knows the schedule sets its ticks before the first reset.
        lane: where it runs, the engine's; the truth is its row from construction on, phases come with the first reset.
        rules: those of the agents in plain Python; compiled, they tell which there are.
        splits: does a protocol of the user's split commands?
        compiled: do rules run compiled (`compile`)? Agents in the imperative style need plain Python; with one of them
            everything runs so.
        course: the disturbances of this episode, if there are any; down: by rank, who decides nothing because of them,
            and what it does meanwhile: "hold" or "noop"; courses: of all lanes that this is one of.
        groups: ids of agents that see and act alike, by name; `group_map`: of those that decide.
        most_steps: how many fit into the time that there is.
        begin_instead: what the lanes of a batch begin by, in place of this one.
        is_lane: is it a batch that begins an episode?
        piece: (begun, length) s of a part of a substep, while it is carried out.
    """

    def __init__(
        self,
        system: Agent,
        hooks: Hooks,
        *,
        dt: float,
        substeps: int,
        global_features: tuple[type[FeatureProvider], ...],
        termination: TerminationConfig,
        observe_age: bool,
        observe_visible: bool = False,
        pad: bool = False,
        observability: ObservabilityConfig | None = None,
        compile: bool = False,
    ) -> None:
        self.hooks, self.termination = hooks, termination
        self.model = model = model_of(
            system, hooks.world_rules(), type(hooks).__name__, dt=dt, substeps=substeps,
            global_features=global_features, termination=termination, observe_age=observe_age,
            observe_visible=observe_visible, pad=pad, observability=observability,
            see=partial(who_sees_whom, hooks),
        )  # fmt: skip
        ids, possible, agents = model.hierarchy.ids, model.possible, model.hierarchy.agents
        self.most_steps = (END_OF_TIME - 1) // model.dt_ns
        self.exchange = Exchange.of(model.hierarchy, model.layout)
        self.post = Post.of(model.hierarchy, model.layout)
        self.groups = group_agents(ids, model.specs, model.plan)
        deciding = {ids[rank] for rank in possible}
        members = {group: [agent for agent in agents if agent in deciding] for group, agents in self.groups.items()}
        self.group_map = {group: agents for group, agents in members.items() if agents}
        self.splits = any(agent.protocol is not None and splits_in_python(agent.protocol) for agent in agents)
        self.compiled = compile and why_plain(model.hierarchy) is None
        self._by_hand = [
            rank
            for rank, agent in enumerate(self.model.hierarchy.agents)
            if overrides(agent, "init_state") or overrides(agent, "init_action")
        ]
        self._own_lanes()
        self.masks = Masks(self)
        self._may_end = any(bound.terminated or bound.truncated for bound in self.rules.bound)
        self._hooked: frozenset[str] = frozenset()
        self._moved = False
        self.world = World(self.model.layout, self.truth)
        self._bind_states()
        self.truth[self.model.layout.per_step] = 0.0  # the sum of no step yet
        self.initial = self.truth.copy()
        self.course: Course | None = None
        self.courses: Courses | None = None
        self.down: Mapping[int, str] = NOBODY
        self.piece: tuple[float, float] | None = None
        self.begin_instead: Callable[[], None] | None = None
        self.is_lane = False

    def _own_lanes(self) -> None:
        """Live in arrays for one lane."""
        from heron_env.engine.lanes import Lanes
        from heron_env.engine.python_law import PythonLanes

        if self.compiled:
            self._enter(Lanes(self.model, 1, later=True), 0)
        else:
            PythonLanes(self.model, 1, self._enter)

    def _enter(self, lanes: Lanes, number: int) -> PythonRules:
        self.lane = Lane(self, lanes, number)
        self.truth: Floats = self.lane.truth
        self._read: World | None = None
        self.lane.show_actions()
        self.rules = PythonRules(self.model, self.truth)
        return self.rules

    def move_to(self, lanes: Lanes, number: int) -> PythonRules:
        """Live in a lane of a batch from now on, in plain Python; states and world move there."""
        before, self._moved = self.truth, True
        rules = self._enter(lanes, number)
        self.truth[:] = before
        for rank in range(len(self.model.hierarchy)):
            self._rebind(rank, self.truth)
        vars(self.world).update(vars(World(self.model.layout, self.truth)))  # whoever holds the world goes on with it
        return rules

    def attach(self) -> None:
        """The phases of what the simulation is now, when rules are compiled; done at the first reset."""
        lanes = self.lane.lanes
        hooks = LaneHooks(self.hooks, self.model, lanes, self._hooks_at, self._hooked - {"begin"}).natives()
        native = self.hooks.native_loops() if self.compiled else ()
        more = (
            *self.exchange.natives(),
            *hooks,
            *self.post.natives(lanes.called, self.truth, self.model.layout, lambda: self.alive),
        )
        self.lane.attach(replace(self.model, native=(*native, *more)))
        if self.splits and self.courses is None:
            self._courses().splitting.append(self)

    def end_by(self, termination: TerminationConfig) -> None:
        """From now on episodes end by this."""
        self.termination, last_step = termination, termination.last_step(self.model.dt_ns)
        self.model = replace(self.model, last_step=last_step, any_ends=termination.mode == "any")
        self.attach()

    def follow_course(self, course: Course) -> None:
        """From now on these disturbances happen in this episode."""
        self.course = course
        self._courses().of[self.lane.number] = course

    def _courses(self) -> Courses:
        """Those of its lanes; phases are followed by them from the first on."""
        if self.courses is None:
            self.courses = Courses(self.lane.lanes)
        return self.courses

    def _hooks_at(self, lane: int, step: int, time: float) -> tuple[Hooks, World]:
        self.world.step, self.world.time = step, time
        return self.hooks, self.world

    @property
    def step_index(self) -> int:
        """Control steps of the running episode."""
        return int(self.lane.steps[0])

    @property
    def over(self) -> bool:
        """Is no episode running?"""
        return bool(self.lane.over[0])

    @property
    def alive(self) -> list[bool]:
        """By rank; who has not ended. The same list as long as nobody ends; nobody changes it."""
        lane, flags = self.lane, self.lane.living.tobytes()
        if flags != lane.flags:
            lane.flags, lane.alive = flags, lane.living.take(lane.position).astype(bool).tolist()
        return lane.alive

    @property
    def everyone(self) -> bool:
        """Are all deciding agents alive?"""
        return bool(self.lane.living.take(self.lane.deciding).all())

    @property
    def time(self) -> float:
        """Nominal time of the last step boundary, s."""
        return to_seconds(self.step_index * self.model.dt_ns)

    @property
    def moment(self) -> Moment:
        """What keys the noise of an observation made now: seed, episode and step."""
        return Moment(self.world.seed, self.world.episode, self.step_index)

    @property
    def last_rewards(self) -> list[float]:
        """Rewards of the last step, by rank; 0 before the first."""
        return self.lane.last_rewards

    def reset(self, seed: int, episode: int) -> None:
        """Start an episode: initial values, no-op actions, everyone alive, then the `begin` hook."""
        self.course, self.down = None, NOBODY
        self.post.reset()
        self.begin(seed, episode)

    def begin(self, seed: int, episode: int) -> None:
        """Initial values, the world's keys, and the `begin` hook; the first time, rules are compiled."""
        hooked = self.hooks.called_in_python(compiled=self.compiled)
        if not self.lane.lanes.attached or (hooked != self._hooked and not self._moved):
            self._hooked = hooked
            self.attach()
        self._hooked = hooked
        if self.begin_instead is not None:
            self.begin_instead()
            return
        world = self.world
        world.seed, world.episode, world.step, world.time = seed & MASK, episode, 0, 0.0
        self.lane.begin(seed, episode, self.initial)
        for rank in self._by_hand:
            agent = self.model.hierarchy.agents[rank]
            agent.reset()
            agent.current_action._vector[:] = self.model.specs[rank].noop
            self._rebind(rank, self.truth)
        if "begin" in self._hooked:
            self.hooks.run_hook("begin", world)
            self._check("begin()")
        if "begin" in self._hooked or not self.compiled:
            self.lane.inform()

    def apply(self, rank: int, values: Floats) -> Floats:
        """Make `values` (float64 `[size]`) the agent's current action and let it act on the truth.

        Forbidden choices become the no-op: what takes effect is returned, and `lane.masked` tells.
        """
        return self.lane.apply(rank, values)

    def shares(self, rank: int, values: Floats) -> dict[int, Floats]:
        """What a coordinator's joint action means for each commanded child, by rank."""
        protocol, children = self.model.hierarchy.agents[rank].protocol, self.model.hierarchy.children[rank]
        if protocol is None:
            return {}
        specs = [self.model.specs[child] for child in children]
        parts = protocol.split(values, specs)
        return {child: part for child, part, spec in zip(children, parts, specs, strict=True) if spec.size}

    def acts_itself(self, rank: int) -> bool:
        """Does an action of this agent do anything to its own state?"""
        return self.rules.bound[rank].apply is not None

    # A step: in one call, or part by part, as the event clock asks for them

    def step(self) -> NDArray[np.float32]:
        """A control step (T15) with the actions in the lane; what the deciding agents see then, side by side, fresh.

        Raises InvalidAction: nothing has changed then.
        """
        lane = self.lane
        lane.members = lane.living.tobytes()
        one = lane.lanes.count == 1
        observations = lane.lanes.step().observations[0].copy() if one else lane.lanes.step_one(lane.number)
        self.world.step = steps = int(lane.steps[0])
        self.world.time = float(steps * self.model.dt_ns) / SECOND
        return observations

    def substep(self, number: int) -> None:
        """Advance physics by dt / substeps; `number` counts from 0 within the step."""
        self.lane.advance(number)

    def close_step(self) -> StepOutcome:
        """Rewards and ends from the truth at this boundary (T4, T5), then the next exogenous values."""
        self.lane.close()
        self.world.step, self.world.time = self.step_index, self.time
        return StepOutcome(self.lane)

    @property
    def facts(self) -> Floats:
        """What reports tell of: the truth, and behind it who sees whom, as it was when somebody last looked."""
        return self.lane.facts

    def look(self, row: int | None = None) -> None:
        """Ask who sees the agent of this row now, or all: whatever is measured is measured with that (V11)."""
        if self.model.plan.asked:
            self.lane.look(row)

    def reading(self) -> World:
        """The world as it is now, of the last boundary, to be read only: for a rule that is asked at any instant."""
        self._read = self._read or World(self.model.layout, self.truth, reads=True)
        return as_of_boundary(self._read, self.lane.lanes.arrays, self.lane.number, self.model.dt_ns)

    def require_end(self, where: str) -> None:
        """Raise ConfigError unless something can end an episode."""
        if self.termination.last_step(self.model.dt_ns) == ENDLESS and not self._may_end:
            raise ConfigError(f"{where}: nothing ends this episode; give t_end, max_steps, or an is_terminated rule")

    def state(self) -> dict[str, Any]:
        """The running episode: plain arrays, lists and numbers."""
        return {
            "step": self.step_index,
            "truth": self.truth.copy(),
            "actions": self.lane.actions(),
            "alive": list(self.alive),
            "over": self.over,
            "last_rewards": list(self.last_rewards),
            "exchange": self.exchange.state(),
            "letters": self.post.state(),
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from `state()`, after `begin`."""
        self.truth[:] = state["truth"]
        self.lane.restore(state["actions"], state["alive"], state["over"], state["last_rewards"], state["step"])
        self.world.step, self.world.time = self.step_index, self.time
        self.exchange.restore(state["exchange"])
        self.post.restore(state["letters"])

    def _check(self, where: str) -> None:
        """Clip the truth into its bounds; NaN is an error that names the column."""
        self.model.layout.clip_columns(self.truth)
        if np.isnan(self.truth.sum()):
            require_numbers(self.model.layout, self.truth, f"after {where}", self.time)

    def _bind_states(self) -> None:
        for rank in range(len(self.model.hierarchy)):
            self._rebind(rank, self.truth)
        for feature in self.model.global_features:
            row = self.model.layout.rows[-1]
            row.window(self.truth, feature)._array[:] = feature()._array

    def _rebind(self, rank: int, truth: Floats) -> None:
        """Move the agent's state onto the truth; its values go with it."""
        agent, row = self.model.hierarchy.agents[rank], self.model.layout.rows[rank]
        classes = tuple(type(feature) for feature in agent.state.features)
        if classes != row.features:
            now, first = ([c.__name__ for c in kinds] for kinds in (classes, row.features))
            raise FeatureError(f"{agent!r}.init_state() built {now}, first it was {first}; build equal states")
        for start, feature in zip(row.offsets, agent.state.features, strict=False):
            window = truth[start : start + feature.width]
            window[:] = feature._array
            feature._bind(window)
