"""A simulation as one lane of the engine, compiled or in Python: 0 of 1, or any of a batch; what a step yields."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from heron_env.engine.model import Model
from heron_env.engine.tables import COMMAND, EXPLICIT, HELD, NOOP, POLICY

if TYPE_CHECKING:
    from heron_env.engine.lanes import Lanes
    from heron_env.envs.simulation import Simulation

Floats = NDArray[np.float64]
Infos = list[dict[str, float]]
"""Info numbers by name, by rank."""


class StepOutcome:
    """Results of one control step, by rank; agents that ended before have reward 0 and False.

    Attributes:
        time: the boundary, s.
        rewards, terminated, truncated: of every agent; who ended here by its own rule or with the others, or was cut
            off.
    """

    def __init__(self, lane: Lane) -> None:
        self.time, self._fields = lane.simulation.time, lane.fields
        self.rewards: list[float] = lane.rewards.take(lane.position).tolist()
        self.terminated: list[bool] = lane.terminated.take(lane.position).astype(bool).tolist()
        self.truncated: list[bool] = lane.truncated.take(lane.position).astype(bool).tolist()
        self._infos = lane.infos.copy() if lane.informs else lane.python_infos[lane.number]

    @cached_property
    def infos(self) -> Infos:
        """Each agent's own info numbers."""
        return named(self._infos, self._fields)


def named(infos: Floats | Infos, fields: Sequence[tuple[tuple[str, ...], slice]]) -> Infos:
    """Infos by rank, fresh, from the numbers of all, or from what rules in Python told."""
    if isinstance(infos, list):
        return [dict(one) for one in infos]
    numbers = infos.tolist()
    return [dict(zip(names, numbers[span], strict=True)) for names, span in fields]


class Lane:
    """What may be done to one simulation in its lane. Rows of the engine's arrays are by position, lists by rank.

    Attributes:
        lanes: the engine's; number: which of them this is; range: of this one alone.
        truth: float64 `[layout.size]`; facts: and behind it who sees whom, `[layout.width]`.
        position: place of each rank in the rows; deciding: of the agents that decide.
        informs: are there infos of compiled rules? fields: names of each rank's, and where they lie in `infos`.
        python_infos: infos of all lanes otherwise.
        joint: where the caller's actions go that decides for all, float64 `[elements]`; joint_step: did it last?
        members: who was alive when the last step began, uint8 by position.
        alive: who was alive by rank when `flags` were the bytes of `living`; Simulation.alive keeps it up to date.
    """

    def __init__(self, simulation: Simulation, lanes: Lanes, number: int = 0) -> None:
        self.simulation, self.lanes, self.number = simulation, lanes, number
        self.range = range(number, number + 1)
        arrays, ranks = lanes.arrays, range(len(simulation.model.hierarchy))
        layout = simulation.model.layout
        self.facts: Floats = arrays.truth[number, : layout.width]
        self.truth = self.facts if layout.sight is None else self.facts[: layout.size]
        self.rewards, self.over = arrays.rewards[number], arrays.over[number : number + 1]
        self.steps = arrays.steps[number : number + 1]
        self.terminated, self.truncated = arrays.terminated[number], arrays.truncated[number]
        self._source_in, self._source = arrays.source_in[number], arrays.source[number]
        self._actions, self._applied = arrays.actions[number], arrays.applied[number]
        self.living, self._masked = arrays.alive[number], arrays.masked[number]
        self.position = np.asarray(lanes.position, dtype=np.int64)
        self.deciding = self.position[list(simulation.model.possible)]
        self._spans = [lanes.action_slice(rank) for rank in ranks]
        self._acting = [(r, lanes.position[r], self._spans[r]) for r in ranks if simulation.model.specs[r].size]
        spans = [self._spans[rank] for rank in simulation.model.possible]
        self._elements = np.concatenate([np.arange(span.start, span.stop) for span in spans])
        first, last = self._elements[[0, -1]].tolist()
        neighbours = last - first + 1 == len(self._elements)
        self.joint = self._actions[first : last + 1] if neighbours else np.zeros(len(self._elements))
        self.apart = not neighbours
        self._all_explicit = (np.bincount(self.deciding, minlength=len(ranks)) * EXPLICIT).astype(np.uint8)
        self.joint_step = False
        self.members = self.flags = b""
        self.alive = [True] * len(ranks)
        self.python_infos: Any = lanes.infos_in_python or {number: [{} for _ in ranks]}
        self.informs, self.fields = False, list[tuple[tuple[str, ...], slice]]()
        if lanes.attached:
            self._find_infos()

    def show_actions(self) -> None:
        """Let each agent's current action be what is in force of it; those in the imperative style make their own."""
        for agent, span in zip(self.simulation.model.hierarchy.agents, self._spans, strict=True):
            if not agent.is_imperative:
                agent.current_action._vector = self._applied[span]

    def attach(self, model: Model) -> None:
        """From now on there are phases."""
        self.lanes.attach(model)
        self._find_infos()

    def _find_infos(self) -> None:
        self.infos, ranks = self.lanes.arrays.infos[self.number], range(len(self.position))
        self.informs = self.infos.size > 0
        if self.informs:
            self.fields = [(self.lanes.info_fields(rank), self.lanes.info_slice(rank)) for rank in ranks]

    # Beginning

    def begin(self, seed: int, episode: int, initial: Floats) -> None:
        """Initial values, no-op actions, and the rule `begin`."""
        self.joint_step = False
        self.lanes.arrays.initial[:] = initial
        self.lanes.begin(self.number, seed, episode)
        if not self.simulation.compiled:
            self._tell_rules()

    def own_infos(self) -> Infos:
        """Each agent's own info numbers, of the last boundary."""
        return named(self.infos if self.informs else self.python_infos[self.number], self.fields)

    def _tell_rules(self) -> None:
        """What is in force, to rules in Python and agents in the imperative style."""
        simulation, actions = self.simulation, self.actions()
        for agent, vector, values in zip(
            simulation.model.hierarchy.agents, simulation.rules.vectors, actions, strict=True
        ):
            vector._values = values
            agent.current_action._vector[:] = values

    def inform(self) -> None:
        """Compute infos anew, from the truth as it is now."""
        self.lanes.inform(self.range)

    # Deciding in a synchronous step

    def jointly(self) -> None:
        """The caller has decided for all that decide: their actions are in `joint`."""
        if self.apart:
            self._actions[self._elements] = self.joint
        if not self.joint_step:
            self._source_in[:], self.joint_step = self._all_explicit, True

    def take(self, explicit: Mapping[int, Floats], own: Mapping[int, Floats], answered: Mapping[int, int]) -> None:
        """What the caller and the agents' own policies decided, by rank: legal actions.

        `answered`: codes that stand for decisions of policies that say where their answers came from.
        """
        self.joint_step = False
        self._source_in[:] = 0
        for source, decisions in ((EXPLICIT, explicit), (POLICY, own)):
            for rank, values in decisions.items():
                self._actions[self._spans[rank]] = values
                self._source_in[self.position[rank]] = answered.get(rank, source)

    def correct(self, force: Floats) -> None:
        """Decisions that compiled code can't know: of agents that are down, and shares of protocols in Python.

        Top-down; `force`: what was in force before.
        """
        simulation, source, applied = self.simulation, self._source, self._applied
        down, shares, self.joint_step = simulation.down, dict[int, Floats](), False
        for rank, place, span in self._acting:
            if not self.living[place] or source[place] == HELD:
                continue
            if rank in down:
                idle = down[rank] == "noop"
                source[place], applied[span] = (
                    (NOOP, simulation.model.specs[rank].noop) if idle else (HELD, force[span])
                )
            elif source[place] == COMMAND:
                commanded = rank in shares
                source[place], applied[span] = (COMMAND, shares[rank]) if commanded else (HELD, force[span])
            if source[place] != HELD:
                shares |= simulation.shares(rank, applied[span].copy())

    def act(self) -> None:
        """The beginning of a step: decisions, and what they do."""
        self.members = self.living.tobytes()
        self.lanes.act(self.range)

    # One agent, and what follows

    def apply(self, rank: int, values: Floats) -> Floats:
        """Make `values` the agent's current action and let it act on the truth; what became of them by its mask."""
        self._actions[self._spans[rank]] = values
        self.lanes.apply(self.number, rank)
        return self._applied[self._spans[rank]].copy() if rank in self.simulation.masks.ranks else values

    def advance(self, number: int) -> None:
        """The agents' own physics, bottom-up, then the rule `advance`; what counts per step starts at 0."""
        if self.simulation.piece is None:
            self.lanes.substep(number, self.range)
        else:
            self.lanes.part_of_substep(number, *self.simulation.piece, self.range)

    def close(self) -> None:
        """Rewards and ends; the next exogenous values are there then."""
        self.lanes.close(self.range)

    # Looking

    def look(self, row: int | None) -> None:
        """Ask who sees the agent of this row, or all."""
        if self.lanes.attached:
            self.lanes.look_around(self.number, row)

    def observed(self) -> NDArray[np.float32]:
        """The vectors of all deciding agents, one after another, fresh."""
        return self.lanes.look(self.number)

    @property
    def last_rewards(self) -> list[float]:
        """Of the last step; 0 before the first."""
        if not self.simulation.step_index:
            return [0.0] * len(self.position)
        return self.rewards.take(self.position).tolist()  # type: ignore[no-any-return]

    @property
    def sources(self) -> list[int]:
        """Code of each agent's last decision."""
        return self._source.take(self.position).tolist()  # type: ignore[no-any-return]

    @sources.setter
    def sources(self, codes: list[int]) -> None:
        self.joint_step = False
        self._source[self.position] = codes

    @property
    def masked(self) -> list[bool]:
        """Whose last effect had a choice that was forbidden when it fell."""
        return self._masked.take(self.position).astype(bool).tolist()  # type: ignore[no-any-return]

    @masked.setter
    def masked(self, flags: Sequence[bool]) -> None:
        self._masked[self.position] = flags

    def decisions(self) -> list[int]:
        """Codes of the agents that decide."""
        return self._source.take(self.deciding).tolist()  # type: ignore[no-any-return]

    @property
    def decided(self) -> dict[int, Floats]:
        """Actions that took effect in the last synchronous step, by rank."""
        return {
            rank: self._applied[span].copy()
            for rank, place, span in self._acting
            if self.members[place] and self._source[place] not in (0, HELD)
        }

    def actions(self) -> list[list[float]]:
        """Actions in force."""
        numbers = self._applied.tolist()
        return [numbers[span] for span in self._spans]

    def restore(
        self, actions: Sequence[Sequence[float]], alive: Sequence[bool], over: bool, rewards: Sequence[float],
        step: int,
    ) -> None:  # fmt: skip
        """Take over a running episode; the truth is written already."""
        self.rewards[self.position] = rewards
        for span, values in zip(self._spans, actions, strict=True):
            self._applied[span] = values
        self.steps[0], self.over[0] = step, over
        self.living[self.position] = alive
        self._tell_rules()
        if self.lanes.attached:
            self.inform()
