"""Messages in the compiled lanes of a batch: the exchange between agents, and the delay lines of training delays."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from heron_env.core.layout import Layout, span_of
from heron_env.engine.lanes import Lanes
from heron_env.envs.base import HeronEnv
from heron_env.envs.batch.lane_groups import Group
from heron_env.envs.decisions import Source
from heron_env.envs.exchange import UNHEARD, Edge
from heron_env.envs.training_delays import TrainingDelays, lines_of, undelayed
from heron_env.scheduling.ticks import ticks_at

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


class BatchExchange:
    """What each edge brought last, in each lane; `bincount` adds in the order of the edges, lane by lane."""

    def __init__(self, edges: Sequence[Edge], layout: Layout, lanes: int) -> None:
        self._senders = np.asarray([edge.sender for edge in edges], dtype=np.int64)
        sizes = [edge.source.stop - edge.source.start for edge in edges]
        self._edge_of = np.repeat(np.arange(len(edges)), sizes)
        self._sources = _columns(edge.source for edge in edges)
        self._targets, cell = np.unique(_columns(edge.target for edge in edges), return_inverse=True)
        self._cells = (np.arange(lanes)[:, None] * len(self._targets) + cell).reshape(-1)
        self._low, self._high = layout.low[self._targets], layout.high[self._targets]
        self._whole = layout.whole[self._targets]
        self._heard = np.zeros((lanes, len(self._sources)))
        self._newest = np.full((lanes, len(edges)), UNHEARD, dtype=np.int64)

    def reset(self, lanes: Bools) -> None:
        """Nobody has been heard in `lanes` `[B]`."""
        self._heard[lanes] = 0.0
        self._newest[lanes] = UNHEARD

    def deliver(self, steps: Ints, sending: Bools, truth: Floats) -> None:
        """Write what everyone tells at the end of `steps` `[B]` into `truth` `[B, columns]`; all is read first.

        `sending` `[B, agents]`, by rank: who was in the step; in a lane that stands still, nobody.
        """
        tells = sending[:, self._senders]
        np.copyto(self._heard, truth[:, self._sources], where=tells[:, self._edge_of])
        np.copyto(self._newest, steps[:, None], where=tells)
        shape = len(truth), len(self._targets)
        known = self._newest[:, self._edge_of] > UNHEARD
        counts = np.bincount(self._cells, weights=known.reshape(-1), minlength=shape[0] * shape[1]).reshape(shape)
        sums = np.bincount(self._cells, weights=self._heard.reshape(-1), minlength=shape[0] * shape[1]).reshape(shape)
        means = np.minimum(np.maximum(sums / np.maximum(counts, 1.0), self._low), self._high)
        np.rint(means, out=means, where=self._whole)
        truth[:, self._targets] = np.where(counts > 0, means, truth[:, self._targets])


def _columns(slices: Iterable[slice]) -> Ints:
    return np.concatenate([np.zeros(0, np.int64), *(np.arange(part.start, part.stop) for part in slices)])


class LateLanes:
    """What the agents of all lanes see late, and which of their decisions fall when; see Lateness for the rules.

    The lines hold the agents that see, group by group as they are published, then those that only obey.
    `decide`: how all decide, into `source` and `applied`.
    """

    def __init__(self, env: HeronEnv, delays: TrainingDelays, groups: Mapping[str, Group], lanes: Lanes) -> None:
        simulation = env.simulation
        self._env, self._lanes, self._arrays, self._dt_ns = env, lanes, lanes.arrays, env.dt_ns
        self.decide: Callable[[], None] = self._decide
        seeing = [rank for name in env.group_map for rank in groups[name].ranks]
        obeying = [rank for rank, spec in enumerate(simulation.specs) if spec.size and rank not in set(seeing)]
        acting = seeing + obeying
        self.lines = lines_of(env, delays, acting, len(seeing), lanes.count)
        self._place = {rank: place for place, rank in enumerate(acting)}
        self._position = span_of(np.asarray([lanes.position[rank] for rank in acting]))
        spans = [lanes.action_slice(rank) for rank in acting]
        self._elements = span_of(np.concatenate([np.arange(span.start, span.stop) for span in spans]))
        self._owner = np.repeat(np.arange(len(acting)), [span.stop - span.start for span in spans])
        clocks = [simulation.clocks[rank] for rank in acting]
        self._clock = span_of(np.asarray([lanes.position[rank] for rank in clocks]))
        self._tick = np.array([env.timings[rank].tick for rank in clocks])
        self._phase = np.array([env.timings[rank].phase for rank in clocks])

    def begin(self, lanes: Ints) -> None:
        """After a restart: `final` becomes what agents saw last, new delays are drawn, and the old is forgotten."""
        arrays, final = self._arrays, self._lanes.published.final
        if len(ended := lanes[arrays.ended[lanes] != 0]) and final.size:
            final[ended] = self.lines.see(arrays.last_length[ended], final[ended], ended)
        self.lines.begin(lanes, arrays.seeds[lanes], arrays.episodes[lanes])

    def observe(self) -> None:
        """Publish what agents see; to be called once in each step, when restarts are done."""
        seen = self._lanes.observe().observations
        seen[:] = self.lines.see(self._arrays.steps, seen)

    def act(self) -> None:
        """All decide, and what falls due takes effect. Nothing has changed if this raises InvalidAction."""
        arrays, lines, position = self._arrays, self.lines, self._position
        force = arrays.applied.copy()
        self.decide()
        source = arrays.source[:, position]
        decided = np.where(self._active() & (source != Source.HELD), source, 0).astype(np.uint8)
        values, falls = lines.act(arrays.steps, arrays.applied[:, self._elements], decided)
        alive = arrays.alive[:, position] != 0
        falls = np.where(alive, falls, 0)
        due = falls.take(self._owner, axis=1) != 0
        arrays.applied[:, self._elements] = np.where(due, values, force[:, self._elements])
        arrays.source[:, position] = np.where(alive, np.where(falls != 0, falls, Source.HELD), source)
        self._lanes.affect()

    def _decide(self) -> None:
        self._lanes.check()
        self._lanes.decide()

    def _active(self) -> Bools:
        """Was it the turn of each agent's clock in the step that it sees now, `[lanes, agents]`? (T10)"""
        arrays = self._arrays
        seen = (arrays.steps[:, None] - self.lines.observation) * self._dt_ns
        alive = (arrays.alive[:, self._position] != 0) & (arrays.alive[:, self._clock] != 0)
        active: Bools = ticks_at(seen, self._tick, self._phase) & alive
        return active

    def active(self, group: Group) -> Bools:
        """The same of a group whose agents decide for themselves."""
        return self._active()[:, self._places(group)]

    def turns(self, group: Group) -> Ints:
        """The control step that each agent of a group sees, int64 `[lanes, agents]`."""
        return self.lines.seen_in(self._arrays.steps)[:, self._places(group)]

    def age(self, group: Group, ages: NDArray[np.float64]) -> NDArray[np.float64]:
        """How old that is of each source, s, written into `ages` `[lanes, agents, sources]`."""
        ages[:] = self.lines.ages(self._arrays.steps)[:, self._places(group), None]
        ages[:, [undelayed(self._env, rank) > 0 for rank in group.ranks], :1] = 0.0
        return ages

    def _places(self, group: Group) -> list[int]:
        return [self._place[rank] for rank in group.ranks]


class LateLane:
    """What one lane's environment asks about its delays when it is looked at; see Lateness."""

    def __init__(self, late: LateLanes, lane: int) -> None:
        self._late, self._lane = late, lane

    def step(self, rank: int) -> int:
        """The control step that an agent sees now; before the first, negative."""
        late, place = self._late, self._late._place.get(rank)
        return int(late._arrays.steps[self._lane] - (0 if place is None else late.lines.observation[self._lane, place]))

    def vector(self, rank: int) -> NDArray[np.float32]:
        """What an agent that decides for itself sees now, float32 `[n]`, fresh."""
        lanes, place = self._late._lanes, self._late._place[rank]
        return lanes.published.observations[self._lane, lanes.spans[place]].copy()
