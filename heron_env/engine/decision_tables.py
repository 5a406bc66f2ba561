"""Decision tables: whose ticks count, who commands whom and how, what actions are legal; as arrays for the loops."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from heron_env.agents.vertical import SetpointSplit
from heron_env.engine.arrays import Floats, Ints
from heron_env.engine.blueprint import Blueprint, splits_in_python

EXPLICIT, POLICY, COMMAND, NO_OP, HELD = range(1, 6)
"""Codes of decisions.Source."""
CLOCK, COMMANDER, TICK, PHASE, FIRST, END = range(6)
"""Columns of `who`: positions (-1: none), ns, ns, action elements."""
LOW, HIGH, NOOP, WEIGHT, TOTAL, LEAST, MOST, GRAIN = range(8)
"""Rows of `limits`; a commanded element is `command * weight / total`, within [least, most].

GRAIN: the part behind the point that is allowed: none for a choice, any (1 is never reached) for a number.
"""


class DecisionTables:
    """Per agent by position, per action element by rank.

    Every protocol of this library moves numbers: element e of a child is one element of its commander, weighted. What
    others do is not in the tables; who asks them writes the shares after the decisions.

    who: int64 `[n, 6]`. sized: uint8 `[n]`, has the agent an action? limits: float64 `[8, elements]`. command: uint32
    `[elements]`, the commander's element. owner: uint32 `[elements]`, whose it is. single: float32 `[2, elements]`,
    bounds in the space's precision. steady: does everyone decide in every step, for themselves?
    """

    def __init__(self, blueprint: Blueprint, position: Sequence[int], slices: Sequence[slice]) -> None:
        """`position`: of each rank; `slices`: of its elements."""
        specs, n, self._slices, elements = blueprint.specs, len(blueprint.specs), slices, slices[-1].stop
        self.who: Ints = np.zeros((n, 6), dtype=np.int64)
        self.sized = np.zeros(n, dtype=np.uint8)
        self.limits: Floats = np.zeros((8, elements))
        self.limits[[WEIGHT, TOTAL]] = 1.0
        self.limits[LEAST], self.limits[MOST] = -np.inf, np.inf
        self.command = np.zeros(elements, dtype=np.uint32)
        self.owner = np.zeros(elements, dtype=np.uint32)
        for rank, spec in enumerate(specs):
            i, span = position[rank], self._slices[rank]
            tick, phase = blueprint.ticks[rank]
            commander = position[blueprint.hierarchy.parent[rank]] if blueprint.commanded[rank] else -1
            self.who[i] = position[blueprint.clocks[rank]], commander, tick, phase, span.start, span.stop
            self.sized[i] = spec.size > 0
            self.owner[span] = i
            self.limits[LOW, span] = np.concatenate([spec.low, np.zeros(spec.dim_d)])
            self.limits[HIGH, span] = np.concatenate([spec.high, spec.ncats - 1.0])
            self.limits[NOOP, span] = spec.noop
            self.limits[GRAIN, span] = np.arange(spec.size) < spec.dim_c
        self._command(blueprint)
        self.single: NDArray[np.float32] = self.limits[:2].astype(np.float32)
        every_step = all(blueprint.ticks[rank] == (blueprint.dt_ns, 0) for rank in blueprint.possible)
        self.steady = every_step and not any(blueprint.commanded)

    def _command(self, blueprint: Blueprint) -> None:
        for rank, agent in enumerate(blueprint.hierarchy.agents):
            protocol, children = agent.protocol, blueprint.hierarchy.children[rank]
            if protocol is None or not children or splits_in_python(protocol):
                continue
            first, specs = self._slices[rank].start, [blueprint.specs[child] for child in children]
            if isinstance(protocol, SetpointSplit):
                weights = np.ones(len(children)) if protocol.weights is None else protocol.weights
                for child, spec, weight in zip(children, specs, weights, strict=True):
                    span = self._slices[child]
                    self.command[span], self.limits[WEIGHT, span], self.limits[TOTAL, span] = (
                        first,
                        weight,
                        weights.sum(),
                    )
                    self.limits[LEAST, span], self.limits[MOST, span] = spec.low, spec.high
                continue
            parts = protocol.split(np.arange(blueprint.specs[rank].size, dtype=np.float64), specs)
            for child, part in zip(children, parts, strict=True):  # each number says where it came from
                self.command[self._slices[child]] = first + part.astype(np.int64)
