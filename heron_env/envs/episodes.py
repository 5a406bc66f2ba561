"""Whole episodes: what one yields, in either clock, and the synchronous clock's run of one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from heron_env.core.letters import LetterCounts
from heron_env.core.policy import Origin, Policies
from heron_env.core.rule import one_by_one
from heron_env.envs.answering import Taken, begin_policies, mates_of, put_in_step
from heron_env.envs.decisions import decides, deciding, own_policies, resolve_policies
from heron_env.envs.ownership import DECISION, EVERYTHING, NOTHING
from heron_env.envs.percentiles import Percentiles
from heron_env.envs.plan_counts import PlanCounts
from heron_env.envs.planning import PlayedPlans
from heron_env.errors import ConfigError, UnknownAgent, did_you_mean
from heron_env.given import is_one_of, several
from heron_env.pictures.notebook import counted, html_table, shortened
from heron_env.scheduling.disturbances import Disturbance
from heron_env.scheduling.records import MessageCounts
from heron_env.scheduling.sharing import MediumUse
from heron_env.scheduling.timing import to_seconds
from heron_env.scheduling.trace import exact

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from heron_env.envs.synchronous import SynchronousEnv
    from heron_env.pictures.film import Film
    from heron_env.pictures.footage import Footage
    from heron_env.scheduling.trace import Trace

Record = Iterable[str]
RECORDED = ("rewards", "actions", "observations", "frames")
FILMED = ("rewards", "actions", "frames")
"""What is recorded of an episode that is to be watched."""
MOST_ROWS = 30
"""Agents that a notebook shows."""
MOST_DRAWN = 3
"""Agents that act which are drawn unasked, beside the root."""


@dataclass(slots=True, eq=False, repr=False)
class EpisodeResult:
    """Result of one episode: rewards, actions, observations and counts of messages.

    `returns` and `rewards` cover all agents, coordinators and the system agent too; rewards are computed from the truth
    at each step boundary, whatever the network did.
    """

    rewards: dict[str, list[tuple[float, float]]]
    """By agent: (boundary time in s, value)."""
    actions: dict[str, list[tuple[float, NDArray[np.float64]]]]
    """By deciding or commanded agent: (time at which it took effect in s, float64 vector)."""
    observations: dict[str, list[tuple[float, NDArray[np.float32]]]]
    """By deciding agent, if asked for: (time of the tick that asked in s, float32 vector)."""
    terminated: dict[str, bool]
    truncated: dict[str, bool]
    end_time: float
    """Virtual time at the end, s."""
    staleness: dict[str, Percentiles] = field(default_factory=dict)
    """Age of information of everything an agent's observations held, s, when it received them."""
    latency: dict[str, Percentiles] = field(default_factory=dict)
    """From tick to effect, s."""
    messages: MessageCounts = field(default_factory=lambda: MessageCounts(0, 0, 0, 0, 0, 0))
    letters: LetterCounts = field(default_factory=LetterCounts)
    """What became of the letters, in either clock."""
    media: dict[str, MediumUse] = field(default_factory=dict)
    """By medium that links share, of a duplex one by way: bytes, and the share of the time in which it was busy."""
    masked: dict[str, int] = field(default_factory=dict)
    """By agent with a mask of its own: effects with a choice that was forbidden when they fell (the no-op fell)."""
    cancelled_effects: int = 0
    """Effects that never fell: their agents had ended before, or decided anew on a pushed observation, or their policy
    had thought for so long that the no-op took their place.
    """
    unfinished_effects: int = 0
    """Effects still under way at the end."""
    busy: dict[str, int] = field(default_factory=dict)
    """By agent whose policy knows who asks: observations that came while it was thinking, and were not used."""
    origins: dict[str, list[tuple[float, Origin]]] = field(default_factory=dict)
    """By the same agents: (when it was asked in s, where the answer came from), for answers that say it."""
    tokens: dict[str, int] = field(default_factory=dict)
    """By the same agents: tokens of all their answers, from when they were asked for."""
    plans: dict[str, PlanCounts] = field(default_factory=dict)
    """By agent that sent plans: what became of them."""
    deterministic: bool = True
    """False where an endpoint, or what stands in for one, was asked: another run may be answered otherwise."""
    notes: list[str] = field(default_factory=list)
    kpis: dict[str, float] = field(default_factory=dict)
    trace: Trace | None = None
    footage: Footage | None = None
    """What `watch` shows, if frames were recorded."""

    seed: int = 0
    """The seed of the episode, whether it was given or drawn: `run_...(..., seed=result.seed)` repeats episode 0."""
    episode: int = 0
    """Which episode of that seed it is, from 0."""

    @classmethod
    def blank(
        cls, ids: Sequence[str], acting: Sequence[str], observing: Sequence[str], masked: Sequence[str] = (),
        trace: Trace | None = None, *, moment: tuple[int, int],
    ) -> EpisodeResult:  # fmt: skip
        """Make an empty result for the agents `ids`; `moment`: seed and number of the episode.

        Some act, some have observations that are kept, some have choices that may be masked.
        """
        return cls(
            rewards={agent: [] for agent in ids},
            actions={agent: [] for agent in acting},
            observations={agent: [] for agent in observing},
            terminated=dict.fromkeys(ids, False),
            truncated=dict.fromkeys(ids, False),
            end_time=0.0,
            masked=dict.fromkeys(masked, 0),
            trace=trace,
            seed=moment[0],
            episode=moment[1],
        )

    def await_answers(self, agents: Iterable[str]) -> None:
        """Prepare the counts of agents whose policies answer questions."""
        for agent in agents:
            self.busy.setdefault(agent, 0)
            self.origins.setdefault(agent, [])
            self.tokens.setdefault(agent, 0)

    def note_answer(self, agent: str, time: float, answer: Taken) -> None:
        """Note an answer of an agent's policy at `time`, s."""
        origin = answer.origin
        self.tokens[agent] += answer.tokens
        if origin is not None:
            self.origins[agent].append((time, origin))
            self.deterministic &= origin.source == "replay"

    @property
    def returns(self) -> dict[str, float]:
        """Sum of rewards by agent."""
        return {agent: one_by_one(value for _, value in rewards) for agent, rewards in self.rewards.items()}

    def plot(self, agents: Sequence[str] | None = None) -> Figure:
        """Plot returns and actions over simulated time: a matplotlib Figure.

        Args:
            agents: ids to plot; None: the root of the hierarchy, and the first agents that act.

        Raises UnknownAgent, and ConfigError where matplotlib is missing (extra `plots`).
        """
        from heron_env.pictures.course import course_figure

        chosen = self._first_agents() if agents is None else [*several(agents, "plot(agents)")]
        for agent in chosen:
            if not is_one_of(agent, self.rewards):
                names = list(self.rewards)
                raise UnknownAgent(f"plot() got {agent!r}; the episode has {names[:12]}.{did_you_mean(agent, names)}")
        return course_figure({agent: self.rewards[agent] for agent in chosen}, self.actions, self.end_time)

    def watch(
        self, agent: str | None = None, *, start: float = 0.0, end: float | None = None, every: float | None = None
    ) -> Film:
        """Make a film of the episode, with a player in notebooks; `film.save("x.mp4")`, .gif or .html.

        Args:
            agent: its knowledge is shown beside the truth; None: the first that decides.
            start, end: s; None: to the end.
            every: s from frame to frame; None: at most 300 frames.

        Raises ConfigError, unless the run had record=("rewards", "actions", "frames"); UnknownAgent.
        """
        if self.footage is None or not self.footage.times:
            raise ConfigError('watch(): no frames were recorded; run it with record=("rewards", "actions", "frames")')
        from heron_env.pictures.film import Film

        return Film(self.footage.paid(self.rewards.values()), agent, start=start, end=end, every=every)

    def _first_agents(self) -> list[str]:
        """The root, and the first agents that acted: those that are drawn unasked."""
        acted = [agent for agent, actions in self.actions.items() if actions]
        return list(dict.fromkeys([*list(self.rewards)[:1], *acted[:MOST_DRAWN]]))

    def __repr__(self) -> str:
        """One line: `<EpisodeResult: 60 s, 60 steps, 6 agents; returns: env 12.5, ...; 240 messages, 3 lost>`."""
        steps = max((len(rewards) for rewards in self.rewards.values()), default=0)
        returns = shortened([f"{agent} {value:.4g}" for agent, value in self.returns.items()], most=2)
        size = f"{self.end_time:g} s, {counted(steps, 'step')}, {counted(len(self.rewards), 'agent')}"
        return f"<EpisodeResult: {size}; returns: {returns}{self._post()}>"

    def _post(self) -> str:
        counts = self.messages
        fates = f"; {counted(counts.sent, 'message')}, {counts.lost:,} lost" if counts.sent else ""
        more = (("discarded", counts.discarded), ("repeated", counts.repeated))
        return fates + "".join(f", {number:,} {what}" for what, number in more if number)

    def _repr_html_(self) -> str:
        """A row for each agent, for notebooks."""
        rows = [
            [agent, f"{value:.6g}", len(self.actions.get(agent, ())), _p95(self.staleness, agent),
             _p95(self.latency, agent),
             "terminated" if self.terminated[agent] else "truncated" if self.truncated[agent] else ""]
            for agent, value in self.returns.items()
        ]  # fmt: skip
        head = ("agent", "return", "actions", "age of what it saw, p95, s", "tick to effect, p95, s", "end")
        more = "" if len(rows) <= MOST_ROWS else f"and {len(rows) - MOST_ROWS} more agents; "
        media = "".join(f"; medium {name}: {use}" for name, use in self.media.items())
        plans = "".join(f"; plans of {agent}: {counts}" for agent, counts in self.plans.items())
        notes = media + plans + "".join(f"; {note}" for note in self.notes)
        return html_table(head, rows[:MOST_ROWS], note=f"{more}{self.end_time:g} s{self._post()}{notes}")

    def digests(self, recorded: Iterable[str]) -> dict[str, str]:
        """Return digests by part of what was recorded; equal digests: equal bits."""
        busy = {agent: count for agent, count in self.busy.items() if count}
        parts: dict[str, Any] = {"ends": [self.end_time, self.terminated, self.truncated, self.masked, busy]}
        parts["accounts of messages"] = [self.messages, self.letters, self.cancelled_effects, self.unfinished_effects]
        if self.plans:
            parts["accounts of plans"] = self.plans
        for agent, total in self.returns.items():
            parts[f"return of {agent}"] = total
        for what in ("actions", "observations"):
            if what in recorded:
                parts |= {f"{what} of {agent}": rows for agent, rows in getattr(self, what).items()}
        return {part: sha256(exact(value).encode()).hexdigest()[:16] for part, value in parts.items()}

    def same_course(self, other: EpisodeResult) -> bool:
        """Bit for bit the same rewards, actions, masked choices, observations (where both have them) and ends?"""
        if not isinstance(other, EpisodeResult):
            raise ConfigError(f"same_course({other!r:.200}): give another EpisodeResult")
        return (
            self.rewards == other.rewards
            and self.masked == other.masked
            and self.terminated == other.terminated
            and self.truncated == other.truncated
            and _same(self.actions, other.actions)
            and (not self.observations or not other.observations or _same(self.observations, other.observations))
        )


def checked_record(record: Record) -> frozenset[str]:
    """What to record. Raises ConfigError for anything but RECORDED."""
    if isinstance(record, str) or not isinstance(record, Iterable):
        raise ConfigError(
            f"record={record!r:.200}: give a tuple of {', '.join(map(repr, RECORDED))}, or () for nothing"
        )
    for what in (names := several(record, "record")):
        if not is_one_of(what, RECORDED):
            near = did_you_mean(what, RECORDED)
            raise ConfigError(f"record={names!r:.200}: {what!r:.60} can't be recorded; choose among {RECORDED}.{near}")
    return frozenset(names)


def _p95(measured: dict[str, Percentiles], agent: str) -> str:
    return f"{measured[agent].p95:.4g}" if agent in measured and measured[agent].count else ""


def _same(a: dict[str, list[tuple[float, Any]]], b: dict[str, list[tuple[float, Any]]]) -> bool:
    return a.keys() == b.keys() and all(
        len(a[k]) == len(b[k])
        and all(t == u and np.array_equal(x, y) for (t, x), (u, y) in zip(a[k], b[k], strict=True))
        for k in a
    )


def run_episode(
    env: SynchronousEnv,
    policies: Policies,
    *,
    seed: int | None,
    record: frozenset[str],
    disturbances: Sequence[Disturbance] = (),
) -> EpisodeResult:
    """Run `env` to the end of its episode, as its owner (T21). Raises ConfigError if nothing ever ends it."""
    simulation, ids, owned = env.simulation, env.hierarchy.ids, env._ownership
    chosen = resolve_policies(policies, env)
    deciders: dict[int, Any] = {rank: decides(env, rank, policy) for rank, policy in chosen.items()}
    mates = mates_of(deciders)
    simulation.require_end("run_synchronous()")
    owned.lent = EVERYTHING
    env.reset(seed=seed, options={"disturbances": disturbances} if disturbances else None)
    moment = env.np_random_seed, env._episode
    simulation.post.readers = frozenset(mates)
    begun = {id(policy) for policy in own_policies(env)}
    begin_policies((policy for policy in chosen.values() if id(policy) not in begun), *moment)
    acting = [ids[rank] for rank, spec in enumerate(simulation.model.specs) if spec.size]
    observing = [ids[rank] for rank in sorted(deciders)] if "observations" in record else []
    masks = sorted(simulation.masks.ranks)
    result = EpisodeResult.blank(ids, acting, observing, [ids[rank] for rank in masks], moment=moment)
    result.await_answers(ids[rank] for rank in mates)
    footage = None
    if "frames" in record:
        from heron_env.pictures.footage import Footage, ObservationTaken

        footage = result.footage = Footage.of(env, deciders)
    plans = PlayedPlans(env, deciders, mates)
    for rank in mates:
        deciders[rank].running = partial(plans.running, rank)
    while not simulation.over:
        time, actions = simulation.time, {}
        if footage is not None:
            footage.look(time)
        mark, owned.lent = owned.mark, DECISION
        active = deciding(env, deciders)
        taken: dict[int, Taken] = {}
        if mates:
            awake, env._origins = set(active), {}
        for rank in active:
            vector, turn = env.seen_by(rank), simulation.step_index
            if footage is not None:
                ages = 0.0 if simulation.course is None else simulation.course.ages(rank)
                received = simulation.model.plan.views[rank].received(vector)
                footage.take(ids[rank], ObservationTaken(time, received, time - ages))
            if rank in mates:
                if rank not in taken:
                    taken |= put_in_step(env, [mate for mate in mates[rank] if mate.rank in awake])
                actions[ids[rank]] = taken[rank].action
                result.note_answer(ids[rank], time, taken[rank])
            else:
                actions[ids[rank]] = deciders[rank](vector.copy(), turn, partial(env.draw_in_step, rank))
            owned.require(mark, ids[rank], time)
            if "observations" in record:
                result.observations[ids[rank]].append((to_seconds(turn * env.dt_ns), vector))
        sources = plans.bring(active, actions)
        owned.lent, alive = NOTHING, list(simulation.alive)
        outcome = env.advance_step(actions, sources)
        if not simulation.everyone:
            env.agents = [agent for agent in env.agents if simulation.alive[env.hierarchy.index[agent]]]
        masked = simulation.lane.masked if masks else ()
        for rank in masks:
            result.masked[ids[rank]] += masked[rank]
        if "actions" in record:
            for rank, values in simulation.lane.decided.items():
                result.actions[ids[rank]].append((time, np.array(values)))
        for rank, agent in enumerate(ids):
            if alive[rank]:
                result.rewards[agent].append((outcome.time, outcome.rewards[rank]))
                result.terminated[agent] |= outcome.terminated[rank]
                result.truncated[agent] |= outcome.truncated[rank]
    if footage is not None:
        footage.look(simulation.time)
    env.agents = []
    result.end_time = simulation.time
    result.letters, result.kpis = simulation.post.counts(), env.kpis()
    result.plans = plans.counts(simulation.step_index * env.dt_ns)
    if "rewards" not in record:
        result.rewards = {a: [(result.end_time, total)] for a, total in result.returns.items()}
    return result
