"""How an agent's observation is put together from what has arrived, and the space it lies in (W6, W10)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from gymnasium import spaces

from heron_env.adapters.network.noops import copied
from heron_env.errors import ConfigError, UnknownAgent, did_you_mean
from heron_env.scheduling.timing import SECOND

Copy = tuple[int, Any]
"""(number of the boundary, a copy of what was observed there)."""
Parts = Mapping[str, Mapping[str, slice]]


class Form:
    """One agent's observation: its own copy, elements that come over the links of others, and their ages.

    Attributes:
        space: of the whole.
        parts: (rank of the source, its elements), in the order in which they were given.
    """

    def __init__(self, space: spaces.Space[Any], parts: Sequence[tuple[int, slice]], *, aged: bool) -> None:
        self.parts, self._aged, self.space = tuple(parts), aged, space
        self._flat = False
        if aged and isinstance(space, spaces.Box) and len(space.shape) == 1 and np.issubdtype(space.dtype, np.floating):
            ages, self._flat = self._ages(space.dtype), True
            self.space = spaces.Box(np.r_[space.low, ages.low], np.r_[space.high, ages.high], dtype=ages.low.dtype.type)
        elif aged:
            self.space = spaces.Dict({"observation": space, "age": self._ages(np.float32)})

    def _ages(self, dtype: Any) -> spaces.Box:
        return spaces.Box(0, np.inf, (1 + len(self.parts),), dtype=dtype)

    def cut(self, observation: Any, part: int) -> Any:
        """A copy of the elements of one part."""
        return observation[self.parts[part][1]].copy()

    def ages(self, copies: Sequence[Copy], now: int, dt_ns: int) -> list[float]:
        """The age of each copy, s."""
        return [(now - number * dt_ns) / SECOND for number, _ in copies]

    def put_together(self, copies: Sequence[Copy], now: int, dt_ns: int) -> Any:
        """The observation, which its receiver may change: of the agent's own copy, and one for each part."""
        observation = copied(copies[0][1])
        for (_, where), (_, values) in zip(self.parts, copies[1:], strict=False):
            observation[where] = values
        return self._with_ages(observation, self.ages(copies, now, dt_ns)) if self._aged else observation

    def fresh(self, observation: Any) -> Any:
        """The same of an observation that is true now."""
        return (
            self._with_ages(copied(observation), [0.0] * (1 + len(self.parts))) if self._aged else copied(observation)
        )

    def _with_ages(self, observation: Any, ages: Sequence[float]) -> Any:
        if self._flat:
            return np.concatenate([observation, np.array(ages, observation.dtype)])
        return {"observation": observation, "age": np.array(ages, np.float32)}


def forms_of(
    agents: Sequence[str], observation_spaces: Sequence[spaces.Space[Any]], parts: Parts | None, *, aged: bool
) -> list[Form]:
    """The form of each agent, by rank. Raises UnknownAgent, ConfigError for parts of what is no 1-D Box."""
    index = {agent: rank for rank, agent in enumerate(agents)}
    chosen: dict[int, list[tuple[int, slice]]] = {}
    for observer, sources in (parts or {}).items():
        _require(observer, agents)
        space = observation_spaces[index[observer]]
        if not isinstance(space, spaces.Box) or len(space.shape) != 1:
            raise ConfigError(f"under_network(parts=...): {observer!r} observes {space}; parts are of a 1-D Box")
        for source, where in sources.items():
            _require(source, agents)
            if source == observer or not isinstance(where, slice):
                raise ConfigError(
                    f"under_network(parts=...): {observer!r}: {{{source!r}: {where!r}}}: give {{another agent: slice}}"
                )
            chosen.setdefault(index[observer], []).append((index[source], where))
    return [Form(space, chosen.get(rank, ()), aged=aged) for rank, space in enumerate(observation_spaces)]


def _require(agent: str, agents: Sequence[str]) -> None:
    if agent not in agents:
        near = did_you_mean(agent, agents)
        raise UnknownAgent(f"under_network(parts=...): no agent {agent!r}; there are {list(agents)[:12]}.{near}")
