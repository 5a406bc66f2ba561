"""What rows must tell of an episode: a run of the Python clock that is looked at while it runs."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from laws.plain_draws import ages_by_clocks
from laws.plain_sight import PlainSight

from heron_env import EpisodeResult, HeronEnv
from heron_env.core.masking import flat
from heron_env.scheduling.sharing import Offered
from heron_env.testing import clock

EARLY = (clock.Simulation, clock.CycleToken, clock.CycleCompletion, clock.SharedState)
"""What happens at an instant before anybody asks what there is to see; reports of physics do, too."""


@dataclass
class Seen:
    """An agent's decision, or its end: what it was shown, when, and the truth at that instant."""

    time: int
    obs: np.ndarray[Any, Any]
    state: np.ndarray[Any, Any]
    number: int = -1
    mask: np.ndarray[Any, Any] | None = None


@dataclass
class Watched:
    """An agent's episode. `earned`: (ns, reward, training reward) by boundary; `fell`: the numbers of its effects."""

    decisions: list[Seen] = field(default_factory=list)
    earned: list[tuple[int, float, float]] = field(default_factory=list)
    fell: list[int] = field(default_factory=list)
    end: Seen | None = None

    def brought(self, since: int, until: int, gamma: float) -> tuple[float, float, int]:
        """The rewards of the steps that ended in (since, until], each later one discounted once more; how many."""
        total, training, discount, steps = 0.0, 0.0, 1.0, 0
        for time, reward, signal in self.earned:
            if since < time <= until:
                total, training = total + discount * reward, training + discount * signal
                discount, steps = discount * gamma, steps + 1
        return total, training, steps


class Watch:
    """Runs an episode of the Python clock under `policies` (by rank), and looks on.

    Attributes: agents: by rank, of those who decide; result: of the run.
    """

    def __init__(self, env: HeronEnv, policies: Mapping[int, Any], record: tuple[str, ...], **given: Any) -> None:
        self.env, self.ids = env, env.hierarchy.ids
        self.agents = {rank: Watched() for rank in policies}
        self._number, self._ended, self._at = -1, list[int](), 0
        self._sight = PlainSight(env)
        asked = {self.ids[rank]: self._noting(rank, policy) for rank, policy in policies.items()}
        self._run: Any = env.start_event_driven(asked, record=record, **given)
        self._run._handlers = {kind: self._looking(kind, one) for kind, one in self._run._handlers.items()}
        self._run.until(None)
        self._look()
        self.result: EpisodeResult = self._run.result()

    def _noting(self, rank: int, policy: Any) -> Any:
        def decide(vector: Any, mask: Any = None) -> Any:
            told = None if mask is None else flat(mask).astype(bool)
            seen = Seen(self._run.context.scheduler.now, vector.copy(), self.env.state(), self._number, told)
            self.agents[rank].decisions.append(seen)
            return policy(vector)

        return decide

    def _looking(self, kind: type, handle: Any) -> Any:
        def handled(event: Any, now: int) -> None:
            what = event.parcel.message if kind is Offered else event
            early = type(what) in EARLY or (type(what) is clock.StateReport and not what.effect)
            if self._ended and not (early and now == self._at):
                self._look()
            if kind is clock.ObservationReply:
                self._number = event.number
            if kind is clock.ActionEffect and event.agent in self.agents and self._lives(event.agent):
                self.agents[event.agent].fell.append(event.number)
            handle(event, now)
            if kind is clock.Simulation and event.substep + 1 == self.env.simulation.model.substeps:
                self._score(now)

        return handled

    def _lives(self, rank: int) -> bool:
        return bool(self.env.simulation.alive[rank])

    def _score(self, now: int) -> None:
        """At a boundary: what everyone in the step earned, and who has ended."""
        result, signal = self._run.context.result, self.env.training_signal()
        for rank in self._run.physics.members:
            if rank in self.agents:
                agent = self.ids[rank]
                self.agents[rank].earned.append((now, result.rewards[agent][-1][1], signal[agent]))
                if result.terminated[agent] or result.truncated[agent]:
                    self._ended.append(rank)
        self._at = now

    def _look(self) -> None:
        """What those who have ended would be shown, had they asked then."""
        context, now = self._run.context, self._at
        plan, proxy = self.env.simulation.model.plan, self.env.proxy
        for rank in self._ended:
            view = plan.views[rank]
            received = proxy.cache[view.columns]
            if view.noise is not None:
                view.noise.add_noise(received, context.moment(now // context.dt_ns))
            received = received.astype(view.carried)
            as_of = proxy.as_of[view.sources_span].copy()
            if context.timings[rank].local:
                context.measuring.read_own(rank, received, as_of)
            ages = ages_by_clocks(context.timings, rank, view.sources, as_of, now) if plan.observe_age else []
            vector = self._sight.vector(rank, received, self._sight.unseen(rank, self._sight.known(proxy.cache)), ages)
            self.agents[rank].end = Seen(now, vector, self.env.state())
        self._ended = []


def same_rows(watch: Watch, rows: list[Any], ends: list[Any], gamma: float, where: str) -> None:
    """Rows and ends of a lane's episode, in their order, tell what was seen, and what the decision before brought."""
    for rank in watch.agents:
        mine, last = ([row for row in found if row["rank"] == rank] for found in (rows, ends))
        assert len(last) <= 1, f"{where}{watch.ids[rank]}: {len(last)} ends of one episode"
        same_course(watch, rank, mine, last[0] if last else None, gamma, where)


def same_course(
    watch: Watch, rank: int, rows: list[Any], end: Any, gamma: float, where: str, *, partly: bool = False
) -> None:
    """The same of one agent; `partly`: nobody asked to the end, so that the last rows and the end are missing."""
    agent, who = watch.agents[rank], f"{where}{watch.ids[rank]}: "
    decisions = agent.decisions[: len(rows)] if partly else agent.decisions
    assert len(rows) == len(decisions), f"{who}{len(rows)} rows of {len(agent.decisions)} decisions"
    before: Seen | None = None
    for n, (row, seen) in enumerate(zip(rows, decisions, strict=True)):
        at = f"{who}decision {n} of tick {seen.number} at {seen.time / 1e9} s: "
        same_sight(row, seen, at)
        assert int(row["number"]) == seen.number, f"{at}the row says tick {row['number']}"
        assert float(row["time"]) == seen.time / 1e9, f"{at}the row says {row['time']} s"
        assert (bool(row["first"]), bool(row["took"])) == (n == 0, n > 0), f"{at}first or took"
        same_mask(row["mask"], seen.mask, at)
        same_gain(row, (0.0, 0.0, 0) if before is None else agent.brought(before.time, seen.time, gamma), at)
        before = seen
    assert (end is not None) == (before is not None) or partly, f"{who}end {end} after {len(rows)} decisions"
    if end is None:
        return
    assert before is not None and agent.end is not None and len(rows) == len(agent.decisions), f"{who}end too early"
    result, name, at = watch.result, watch.ids[rank], f"{who}end at {agent.end.time / 1e9} s: "
    same_sight(end, agent.end, at)
    same_gain(end, agent.brought(before.time, agent.end.time, gamma), at)
    how = (result.terminated[name], result.truncated[name], before.number in agent.fell)
    told = tuple(bool(end[what]) for what in ("terminated", "truncated", "took"))
    assert told == how, f"{at}terminated, truncated, took are {told} for {how}"


def same_mask(mask: Any, seen: Any, at: str) -> None:
    """`seen`: None where nothing is ever forbidden."""
    assert mask is not None or seen is None, f"{at}there is a mask, the row has none"
    if mask is not None:
        size = 0 if seen is None else len(seen)
        assert mask[size:].all(), f"{at}something is forbidden where nothing can be"
        assert not size or np.array_equal(mask[:size], seen), f"{at}mask {mask} for {seen}"


def same_sight(row: Any, seen: Seen, at: str) -> None:
    """The observation, and the truth where it is told."""
    assert row["obs"].tobytes() == seen.obs.tobytes(), f"{at}shows {row['obs']} for {seen.obs}"
    if row["state"] is not None:
        assert row["state"].tobytes() == seen.state.tobytes(), f"{at}the truth is {row['state']} for {seen.state}"


def same_gain(row: Any, brought: tuple[float, float, int], at: str) -> None:
    """Rewards and steps since the decision before."""
    reward, training, steps = brought
    assert int(row["steps"]) == steps, f"{at}{row['steps']} steps for {steps}"
    assert float(row["reward"]) == reward, f"{at}reward {row['reward']} for {reward}"
    if row["training_reward"] is not None:
        assert float(row["training_reward"]) == training, f"{at}training reward {row['training_reward']} for {training}"
