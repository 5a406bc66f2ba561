"""How a simulation moves compiled: its rules in the engine's loops, as a batch of one environment."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from heron_env.engine.blueprint import Blueprint
from heron_env.engine.lanes import Lanes
from heron_env.envs.decisions import Source, clock_of
from heron_env.envs.joint_actions import JointActions
from heron_env.envs.mechanics import Published
from heron_env.errors import InvalidAction

if TYPE_CHECKING:
    from heron_env.envs.simulation import Simulation

Floats = NDArray[np.float64]
TOOK_EFFECT = tuple(source for source in Source if source not in (Source.NONE, Source.HELD))
KEY = 2**64


def blueprint_of(simulation: Simulation, observers: Sequence[int] | None = None) -> Blueprint:
    """All that the engine must know of a simulation; `observers`: ranks that are published, else those that decide."""
    s, termination = simulation, simulation.termination
    return Blueprint(
        hierarchy=s.hierarchy,
        layout=s.layout,
        plan=s.plan,
        global_features=s.global_features,
        specs=s.specs,
        possible=s.possible,
        commanded=s.commanded,
        clocks=tuple(clock_of(s, rank) for rank in range(len(s.hierarchy))),
        dt=s.dt,
        dt_ns=s.dt_ns,
        substeps=s.substeps,
        max_steps=None if termination.max_steps is None else int(termination.max_steps),
        any_ends=termination.mode == "any",
        max_time=termination.max_sim_time,
        ticks=s.ticks,
        observers=s.possible if observers is None else tuple(observers),
        hooks=s.hooks.world_rules(),
        owner=type(s.hooks).__name__,
        native=s.hooks.native_loops(),
    )


class LaneOutcome:
    """A StepOutcome kept as copies of the engine's arrays, by position; lists are made when somebody asks."""

    def __init__(
        self, mechanics: CompiledMechanics, time: float, ended: bool, seen: NDArray[np.float32] | None = None
    ) -> None:
        """`ended`: did anybody? `seen`: observations after the step, if they are known already."""
        self.seen = seen
        arrays = mechanics.arrays
        self.time, self.ended, self.over = time, ended, ended and bool(arrays.over[0])
        self._position, self._deciding, self._fields = mechanics.position, mechanics.deciding, mechanics.fields
        self._rewards = arrays.rewards[0].copy()
        self._infos = arrays.infos[0].copy() if mechanics.informs else arrays.infos[0]
        self._terminated = self._truncated = mechanics.nobody
        if ended:
            self._terminated, self._truncated = arrays.terminated[0].astype(bool), arrays.truncated[0].astype(bool)

    @cached_property
    def rewards(self) -> list[float]:
        """Of every agent."""
        return self._rewards.take(self._position).tolist()  # type: ignore[no-any-return]

    @cached_property
    def terminated(self) -> list[bool]:
        """Who ended here by its own rule, or with the others."""
        return self._terminated.take(self._position).tolist()  # type: ignore[no-any-return]

    @cached_property
    def truncated(self) -> list[bool]:
        """Who was cut off here."""
        return self._truncated.take(self._position).tolist()  # type: ignore[no-any-return]

    @cached_property
    def infos(self) -> list[dict[str, float]]:
        """Each agent's own info numbers."""
        return told(self._infos, self._fields)

    def published(self) -> Published:
        """Rewards and ends of the agents that decide."""
        deciding, rewards = self._deciding, self._rewards.take(self._deciding).tolist()
        if not self.ended:
            return rewards, [], []
        return rewards, self._terminated.take(deciding).tolist(), self._truncated.take(deciding).tolist()


def told(row: Floats, fields: Sequence[tuple[tuple[str, ...], slice]]) -> list[dict[str, float]]:
    """Infos by rank, from the numbers of all."""
    numbers = row.tolist()
    return [dict(zip(names, numbers[span], strict=True)) for names, span in fields]


class CompiledMechanics:
    """Owns the engine's arrays; the truth is a view of them. See Mechanics for the methods.

    Attributes:
        lanes: one lane of the engine.
        arrays: its arrays.
        position: place of each rank in them; deciding: of the agents that decide.
        fields: names of each rank's infos, and where they lie.
    """

    def __init__(self, simulation: Simulation) -> None:
        self.simulation = simulation
        self.lanes = Lanes(blueprint_of(simulation), 1)
        self.arrays = self.lanes.arrays
        self.truth: Floats = self.arrays.truth[0, : simulation.layout.size]
        ranks = range(len(simulation.hierarchy))
        self.position = np.asarray(self.lanes.position, dtype=np.int64)
        self.fields = [(self.lanes.info_fields(rank), self.lanes.info_slice(rank)) for rank in ranks]
        self.informs = self.arrays.infos.size > 0
        self._spans = [self.lanes.action_slice(rank) for rank in ranks]
        self.deciding = self.position[list(simulation.possible)]
        spans = [self._spans[rank] for rank in simulation.possible]
        self._elements = np.concatenate([np.arange(span.start, span.stop) for span in spans])
        first, last = self._elements[[0, -1]].tolist()
        neighbours = last - first + 1 == len(self._elements)
        self._joint = self.arrays.actions[0, first : last + 1] if neighbours else np.zeros(len(self._elements))
        self._copies = not neighbours
        self._all_given = (np.bincount(self.deciding, minlength=len(ranks)) * int(Source.EXPLICIT)).astype(np.uint8)
        self._all_explicit = [int(Source.EXPLICIT)] * len(self.deciding)
        self._jointly = False
        self._members: list[bool] = []
        self._alive = b""
        self.nobody = np.zeros(len(ranks), dtype=bool)
        for agent, span in zip(simulation.hierarchy.agents, self._spans, strict=True):
            agent.current_action._vector = self.arrays.applied[0, span]

    def restart(self, seed: int, episode: int, initial: Floats) -> None:
        """Initial values, no-op actions, and the rule `begin`."""
        arrays = self.arrays
        arrays.initial[:] = initial
        arrays.seeds[0], arrays.episodes[0] = seed % KEY, (episode - 1) % KEY
        arrays.over[0] = 1
        self._jointly = False
        self.lanes.restart()
        self._alive = arrays.alive.tobytes()

    def act_jointly(self, reader: JointActions, actions: Mapping[str, Any]) -> bool:
        """All deciding agents, then whom they command; False, and nothing happens, where that is not so simple."""
        return self._jointly_do(self.lanes.act, reader, actions)

    def step_jointly(self, reader: JointActions, actions: Mapping[str, Any]) -> bool:
        """The same, then the rest of the step up to observations, in one call; for steps in which nobody can end."""
        return self._jointly_do(self.lanes.step, reader, actions)

    def outcome(self) -> LaneOutcome:
        """Of `step_jointly`."""
        return LaneOutcome(self, self.simulation.time, False, self.lanes.published.observations[0].copy())

    def _jointly_do(self, phase: Callable[[], Any], reader: JointActions, actions: Mapping[str, Any]) -> bool:
        if not reader.read_into(self._joint, actions):
            return False
        if self._copies:
            self.arrays.actions[0, self._elements] = self._joint
        if not self._jointly:
            self.arrays.given[0] = self._all_given
        try:
            phase()
        except InvalidAction:
            return False
        self._jointly, self._members = True, self.simulation.alive
        return True

    def act(self, given: Mapping[int, Floats], own: Mapping[int, Floats], answered: Mapping[int, int]) -> None:
        """What the caller and the agents' own policies decided, by rank; then commands, no-ops, what is held.

        answered: codes in place of the two, by rank.
        """
        arrays = self.arrays
        self._jointly = False
        arrays.given[:] = 0
        for source, decisions in ((Source.EXPLICIT, given), (Source.POLICY, own)):
            for rank, values in decisions.items():
                arrays.actions[0, self._spans[rank]] = values
                arrays.given[0, self.position[rank]] = int(source)
        self._members = self.simulation.alive
        self.lanes.act()
        for rank, code in answered.items():
            if arrays.source[0, self.position[rank]] in (Source.EXPLICIT, Source.POLICY):
                arrays.source[0, self.position[rank]] = code

    def apply(self, rank: int, values: Floats) -> Floats:
        """Make `values` the agent's current action and let it act on the truth."""
        self.arrays.actions[0, self._spans[rank]] = values
        self.lanes.apply(0, rank)
        return self.arrays.applied[0, self._spans[rank]].copy() if rank in self.simulation.masks.ranks else values

    def offer(self, rank: int, own: NDArray[Any]) -> NDArray[np.int8]:
        """The flat mask of an agent that has one, on its own observed columns."""
        arrays, view = self.arrays, self.simulation.plan.views[rank]
        arrays.seen[0, view.columns[: view.own]] = own
        arrays.acting[0] = 0
        arrays.acting[0, self.position[rank]] = 1
        self.lanes.offer()
        return arrays.allowed[0, self.lanes.choices_of(rank)].view(np.int8).copy()

    def fall(self, sources: list[int], decided: Mapping[int, Floats]) -> None:
        """Decisions that take effect in a synchronous step, by rank, top-down; and the code of each agent's."""
        self.sources, self._members = sources, self.simulation.alive
        actions, meant = self.arrays.actions, np.zeros(len(self.position), dtype=np.uint8)
        for rank, values in decided.items():
            actions[0, self._spans[rank]] = values
        meant[self.position[list(decided)]] = 1
        self.arrays.masked[0] = 0
        self.lanes.apply_group(0, meant)

    def advance(self, number: int) -> None:
        """The agents' own physics, bottom-up, then the rule `advance`."""
        if self.simulation.piece is None:
            self.lanes.substep(number)
        else:
            self.lanes.part_of_substep(number, *self.simulation.piece)

    def close(self, members: list[bool]) -> tuple[LaneOutcome, list[bool]]:
        """The step's outcome, and who is alive after it; then the rule `finish`."""
        self.lanes.close()
        alive = self.arrays.alive.tobytes()
        ended = alive != self._alive
        if ended:
            self._alive = alive
            members = self.arrays.alive[0].take(self.position).astype(bool).tolist()
        return LaneOutcome(self, self.simulation.time, ended), members

    def observed(self) -> NDArray[np.float32]:
        """The vectors of all deciding agents, one after another, fresh."""
        self.lanes.observe()
        seen: NDArray[np.float32] = self.lanes.published.observations[0]
        return seen.copy()

    def info(self, rank: int) -> dict[str, float]:
        """The agent's own info numbers, of the last boundary."""
        names, span = self.fields[rank]
        return dict(zip(names, self.arrays.infos[0, span].tolist(), strict=True))

    @property
    def sources(self) -> list[int]:
        """Code of each agent's last decision, by rank."""
        return self.arrays.source[0].take(self.position).tolist()  # type: ignore[no-any-return]

    @sources.setter
    def sources(self, codes: list[int]) -> None:
        self._jointly = False
        self.arrays.source[0, self.position] = codes

    @property
    def masked(self) -> list[bool]:
        """Whose last effect had a choice that was forbidden when it fell, by rank."""
        return self.arrays.masked[0].take(self.position).astype(bool).tolist()  # type: ignore[no-any-return]

    @masked.setter
    def masked(self, flags: Sequence[bool]) -> None:
        self.arrays.masked[0, self.position] = flags

    def decisions(self) -> list[int]:
        """The same of the agents that decide; one and the same list where all were the caller's."""
        return self._all_explicit if self._jointly else self.arrays.source[0].take(self.deciding).tolist()

    @property
    def decided(self) -> Mapping[int, Floats]:
        """Actions that took effect in the last synchronous step, by rank."""
        sources, applied = self.sources, self.arrays.applied[0]
        acting = (rank for rank, spec in enumerate(self.simulation.specs) if spec.size and self._members[rank])
        return {rank: applied[self._spans[rank]].copy() for rank in acting if sources[rank] in TOOK_EFFECT}

    def actions(self) -> list[list[float]]:
        """Actions in force, by rank."""
        numbers = self.arrays.applied[0].tolist()
        return [numbers[span] for span in self._spans]

    def restore(self, actions: Sequence[Sequence[float]], alive: Sequence[bool], over: bool) -> None:
        """Take over a running episode; the truth is written already."""
        arrays = self.arrays
        for span, values in zip(self._spans, actions, strict=True):
            arrays.applied[0, span] = values
        arrays.steps[0], arrays.over[0] = self.simulation.step_index, over
        arrays.alive[0, self.position] = alive
        self._alive = arrays.alive.tobytes()
        self.lanes.inform()
