"""Masks of a group in the compiled lanes of a batch: one call of the engine for all lanes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from heron_env.core.layout import span_of
from heron_env.core.masking import everything, noop_alone
from heron_env.engine.lanes import Lanes
from heron_env.envs.base import HeronEnv
from heron_env.envs.batch.groups import Group

Bools = NDArray[np.bool_]


class GroupMasks:
    """What the agents of a group are offered on what was published last."""

    def __init__(self, env: HeronEnv, group: Group, lanes: Lanes) -> None:
        masks, views = env.simulation.masks, env.simulation.plan.views
        self._lanes, self._alone, self._all = lanes, noop_alone(group.spec), everything(group.spec)
        self._ruled = [place for place, rank in enumerate(group.ranks) if rank in masks.ranks]
        ranks = [group.ranks[place] for place in self._ruled]
        self._positions = [lanes.position[rank] for rank in ranks]
        self._choices = [lanes.choices_of(rank) for rank in ranks]
        first = [group.floats.start + place * group.width for place in self._ruled]
        nothing = [np.zeros(0, dtype=np.int64)]
        shown = [at + np.arange(views[rank].own) for at, rank in zip(first, ranks, strict=True)]
        self._shown = span_of(np.concatenate(nothing + shown))
        self._seen = np.concatenate(nothing + [views[rank].columns[: views[rank].own] for rank in ranks])

    def offered(self, active: Bools) -> NDArray[np.int8]:
        """Flat masks `[lanes, agents, choices]`; the no-op alone where `active` `[lanes, agents]` is not."""
        flags = np.where(active[:, :, None], self._all, self._alone)
        if self._ruled:
            arrays = self._lanes.arrays
            arrays.seen[:, self._seen] = self._lanes.published.observations[:, self._shown]
            arrays.acting[:] = 0
            arrays.acting[:, self._positions] = active[:, self._ruled]
            self._lanes.offer()
            for place, span in zip(self._ruled, self._choices, strict=True):
                flags[:, place] = np.where(active[:, place, None], arrays.allowed[:, span], flags[:, place])
        return flags
