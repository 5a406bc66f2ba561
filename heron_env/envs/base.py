"""HeronEnv: an environment in both clocks, with whole episodes, pictures and all that can be asked of it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from heron_env.core.letters import LetterCounts
from heron_env.core.policy import Policies
from heron_env.core.quantity import clip
from heron_env.core.rule import add_to_help
from heron_env.envs.description import help_texts, html_tree, one_line
from heron_env.envs.episodes import EpisodeResult, Record, checked_record, run_episode
from heron_env.envs.hooks import OVERRIDABLE
from heron_env.envs.ownership import RUN
from heron_env.envs.settings import require_clocks
from heron_env.envs.synchronous import SynchronousEnv
from heron_env.errors import checked_keywords
from heron_env.given import require_switch, require_type
from heron_env.observability.plan import UNBOUNDED
from heron_env.pictures.notebook import truth_text
from heron_env.scheduling.arrivals import Arrivals, Delivery
from heron_env.scheduling.disturbances import Disturbance
from heron_env.scheduling.drawn import AnySchedule, DrawnSchedule

if TYPE_CHECKING:
    from heron_env.envs.event.clock import EventRun
    from heron_env.observability.state_models import SimulationState
    from heron_env.observability.visibility import VisibilityMatrix
    from heron_env.scheduling.events import ConditionMonitor, CustomEvent


class HeronEnv(SynchronousEnv):
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
        observe_visible: add whether each agent that the hook `sees` is asked about was visible, `visible.ID`, 1 or 0.
        pad: bring the observations of agents of one name stem, with equal actions and equal features of their own, to
            the width of the widest, so that neighbourhoods of different size don't split their group: an agent's own
            numbers, zeros (`pad[7]`), then a mask of that width (`mask[0]` ...) that says with 1 which are its own.
            Where all are equally wide nothing changes. Ages in infos get zeros likewise.
        render_mode: "ansi" or "rgb_array".
        compile: run the agents' rules compiled (the first reset compiles them, or finds them on disk); False: in plain
            Python, for debugging. None: as the environment variable HERON_COMPILE says, 1 (if it is unset or empty,
            too) or 0. Agents in the imperative style run in plain Python anyway.
    """

    def observation_units(self, agent: str) -> list[str]:
        """Units of the observation's elements, "1" for none."""
        return self.simulation.model.plan.units(self.hierarchy.rank(agent, "observation_units() got"))

    def visibility_matrix(self) -> VisibilityMatrix:
        """Who sees what, how clearly and why: observers (the critic last) x columns, with a picture."""
        from heron_env.observability.visibility import VisibilityMatrix

        return VisibilityMatrix(self.simulation.model.plan, self.simulation.exchange.edges)

    def state(self) -> NDArray[np.float32]:
        """Return the whole truth, float32 `[state_space.shape]`: for a central critic, never for actors."""
        return clip(self.simulation.truth, -UNBOUNDED, UNBOUNDED).astype(np.float32)

    def may_write_to(self, agent: str) -> list[str]:
        """Return the agents to whom an agent may write letters, in registration order. Raises UnknownAgent."""
        ids, rank = self.hierarchy.ids, self.hierarchy.rank(agent, "may_write_to() got")
        return [ids[receiver] for receiver in self.simulation.post.receivers.get(rank, ())]

    @property
    def letter_counts(self) -> LetterCounts:
        """Return the counts of letters in this episode."""
        return self.simulation.post.counts()

    def simulation_state(self) -> SimulationState:
        """Return the truth without bookkeeping: for trainers and analysis, never for agents."""
        return self._objects.truth(self.simulation.truth, self.simulation.step_index, self.state_of)

    def observed_state(self, agent: str) -> SimulationState:
        """Return what an agent observes now, from the proxy's cache, in full precision. Raises UnknownAgent."""
        rank = self.hierarchy.rank(agent, "observed_state() got")
        return self._objects.observed(rank, self.shown_targets, self.proxy, self.state_of)

    @checked_keywords
    def run_synchronous(
        self,
        policies: Policies,
        *,
        seed: int | None = None,
        record: Record = ("rewards", "actions"),
        disturbances: Iterable[Disturbance] = (),
    ) -> EpisodeResult:
        """Run one episode on the synchronous clock; see `run_event_driven` for the arguments.

        Disturbances act at the first step boundary that is not before their time.

        Returns:
            An EpisodeResult: `returns` by agent, `rewards` and `actions` as lists of (time in s, value).

        >>> from heron_env import make
        >>> env = make("heron/BatteryGrid-v0", num_batteries=2, max_steps=3)
        >>> result = env.run_synchronous({"battery": lambda vector: [0.1]}, seed=0)
        >>> [time for time, _ in result.rewards["battery_1"]]
        [1.0, 2.0, 3.0]
        """
        recorded, expected = checked_record(record), self._checked(disturbances)
        return self._ownership.drive(
            "run_synchronous()", run_episode, self, policies, seed=seed, record=recorded, disturbances=expected
        )

    @checked_keywords
    def run_event_driven(
        self, policies: Policies, *, t_end: float | None = None, seed: int | None = None, schedule: AnySchedule = None,
        wait: float | None = None, trace: bool = False, record: Record = ("rewards", "actions"),
        disturbances: Iterable[Disturbance] = (), monitors: Iterable[ConditionMonitor] = (),
        events: Iterable[CustomEvent] = (), arrivals: Delivery | None = None,
    ) -> EpisodeResult:  # fmt: skip
        """Run one episode on the event-driven clock (T6); resets first.

        Args:
            policies: by agent id, group, or "*" for all; a Policy, a function vector -> action, or an AnsweringPolicy.
            t_end: stop here at the latest, s; None: at the episode's own end, which must then exist.
            seed: as in reset().
            schedule: ticks, delays, jitter, loss, or a DrawnSchedule; None: the environment's own.
            wait: from k*dt to the moment step k's physics is complete, s, in (0, dt]; None: dt.
            trace: keep a record of every event in `result.trace`.
            record: any of "rewards", "actions", "observations", "frames" (for `result.watch()`).
            disturbances, monitors: events from outside; conditions on the truth that wake agents (T14).
            events: events of your own, for the hook `happen`.
            arrivals: record of a real-time run to repeat: `run_real_time(...)[1].arrivals`, with its seed unless
                another is given. Raises TraceError where the run differs from it.

        Returns:
            An EpisodeResult: `returns` by agent, `rewards` and `actions` as lists of (time in s, value), `messages`.

        >>> from heron_env import ScheduleConfig, make
        >>> env, late = make("heron/BatteryGrid-v0", num_batteries=2, max_steps=3), ScheduleConfig(act_delay=1.0)
        >>> result = env.run_event_driven({"battery": lambda seen: [0.1]}, seed=0, schedule=late)
        >>> [time for time, _ in result.rewards["battery_1"]]
        [1.0, 2.0, 3.0]
        """
        owned, recorded = self._ownership, checked_record(record)

        def episode() -> EpisodeResult:
            owned.lent = RUN
            run = self.start_event_driven(
                policies, t_end=t_end, seed=seed, schedule=schedule, wait=wait, trace=trace, record=recorded,
                disturbances=disturbances, monitors=monitors, events=events, arrivals=arrivals,
            )  # fmt: skip
            run.until(None)
            result = run.result()
            if isinstance(arrivals, Arrivals):
                arrivals.require_course(result.digests(recorded))
            return result

        return owned.drive("run_event_driven()", episode)

    @checked_keywords
    def start_event_driven(
        self, policies: Policies, *, t_end: float | None = None, seed: int | None = None, schedule: AnySchedule = None,
        wait: float | None = None, trace: bool = False, record: Record = ("rewards", "actions"),
        disturbances: Iterable[Disturbance] = (), monitors: Iterable[ConditionMonitor] = (),
        events: Iterable[CustomEvent] = (), arrivals: Delivery | None = None,
    ) -> EventRun:  # fmt: skip
        """Begin an event-driven run to control by hand: `run.until(t)`, `run.state()`, `run.result()`; it pickles."""
        from heron_env.envs.event.clock import EventRun
        from heron_env.envs.event.happenings import Happenings

        require_switch(f"trace={trace!r:.60}", trace)
        if arrivals is not None:
            require_type(f"arrivals={arrivals!r:.60}", arrivals, Delivery, "the record of a run, as its `arrivals`")
            seed = arrivals.seed_of(seed)
        chosen = self.schedule if schedule is None else schedule
        if isinstance(chosen, DrawnSchedule):
            schedule = chosen.at(*self._next_episode(seed))
        timings = self.timings if schedule is None else self.timings_of(schedule)
        require_clocks(self.simulation.model.plan, chosen)
        return self._ownership.drive(
            "start_event_driven()", EventRun, self, policies, timings=timings, t_end=t_end, seed=seed, wait=wait,
            trace=trace, record=checked_record(record),
            happenings=Happenings.of(self.simulation, disturbances, monitors, events), delivery=arrivals,
        )  # fmt: skip

    def render(self) -> Any:
        """Text for "ansi", uint8 `[height, width, 3]` for "rgb_array", None without a render mode.

        Raises ConfigError for a picture where matplotlib is missing.
        """
        simulation = self.simulation
        if self.render_mode == "ansi":
            return truth_text(simulation.model.hierarchy, simulation.model.layout, simulation.truth, simulation.time)
        if self.render_mode != "rgb_array":
            return None
        if self._picture is None:
            from heron_env.pictures.frames import WorldPicture

            self._picture = WorldPicture(self.draw_frame)
        simulation.world.time = simulation.time
        return self._picture.image(simulation.world, clock=self.local_time(simulation.time))

    def __repr__(self) -> str:
        """One line: `<StorageEnv: 7 agents, 2 decide; dt 60 s in 60 substeps; 29 state columns>`."""
        return f"<{one_line(type(self).__name__, self.simulation.model)}>"

    def _repr_html_(self) -> str:
        """The tree of agents, for notebooks."""
        acts, sees = (
            {a: space(a) for a in self.possible_agents} for space in (self.action_space, self.observation_space)
        )
        return html_tree(repr(self)[1:-1], self.simulation.model, acts, sees)


add_to_help(HeronEnv, *help_texts(OVERRIDABLE))
