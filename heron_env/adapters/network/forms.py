"""How an agent's observation is put together from what has arrived, and the space it lies in (W6, W10)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from gymnasium import spaces

from heron_env.adapters.network.noops import copied
from heron_env.errors import ConfigError, UnknownAgent, did_you_mean
from heron_env.scheduling.timing import to_seconds

Copy = tuple[int, Any]
"""(number of the boundary, a copy of what was observed there)."""
Parts = Mapping[str, Mapping[str, slice]]
"""{observer: {source: the elements that come over the source's link}}."""


class ObservationForm:
    """One agent's observation: its own copy, parts that come over the links of others, and their ages.

    Attributes:
        space: of the whole.
        parts: (rank of the source, its elements), in the order as declared.
    """

    def __init__(self, space: spaces.Space[Any], parts: Sequence[tuple[int, slice]], *, aged: bool) -> None:
        self.parts, self._aged, self.space = tuple(parts), aged, space
        floats = isinstance(space, spaces.Box) and len(space.shape) == 1 and np.issubdtype(space.dtype, np.floating)
        self._longer = aged and floats
        if aged:
            dtype: Any = space.dtype if floats else np.float32
            ages = spaces.Box(0, np.inf, (1 + len(self.parts),), dtype)
            self.space = spaces.Dict({"observation": space, "age": ages})
            if isinstance(space, spaces.Box) and floats:
                low, high = np.r_[space.low, ages.low], np.r_[space.high, ages.high]
                self.space = spaces.Box(low, high, dtype=dtype)

    @property
    def own_age(self) -> int | None:
        """The element that is the age of its own copy, from the end; None: there is none."""
        return -1 - len(self.parts) if self._longer else None

    def copies(self, number: int, observation: Any) -> list[Copy]:
        """Of boundary `number`: an observation, and a copy of the elements of each part."""
        return [(number, observation), *((number, observation[where].copy()) for _, where in self.parts)]

    def ages(self, copies: Sequence[Copy], now: int, dt_ns: int) -> list[float]:
        """The age of each copy, s."""
        return [to_seconds(now - number * dt_ns) for number, _ in copies]

    def put_together(self, copies: Sequence[Copy], now: int, dt_ns: int) -> Any:
        """The observation, which its receiver may change, of the agent's own copy and one for each part."""
        observation = copied(copies[0][1])
        for (_, where), (_, values) in zip(self.parts, copies[1:], strict=True):
            observation[where] = values
        if not self._aged:
            return observation
        ages = self.ages(copies, now, dt_ns)
        if self._longer:
            return np.append(observation, ages).astype(self.space.dtype)
        return {"observation": observation, "age": np.array(ages, np.float32)}


def forms_of(
    agents: Sequence[str], observation_spaces: Sequence[spaces.Space[Any]], parts: Parts | None, *, aged: bool
) -> list[ObservationForm]:
    """The form of each agent, by rank. Raises UnknownAgent, ConfigError for parts of what is no 1-D Box."""
    chosen: list[list[tuple[int, slice]]] = [[] for _ in agents]
    if parts is not None and not (isinstance(parts, Mapping) and all(isinstance(p, Mapping) for p in parts.values())):
        raise ConfigError(f"under_network(parts={parts!r:.100}): give {{observer: {{another agent: slice}}}}")
    for observer, sources in (parts or {}).items():
        for name in (observer, *sources):
            if name not in agents:
                near = did_you_mean(name, agents)
                raise UnknownAgent(f"under_network(parts=...): no agent {name!r}; there are {list(agents)[:12]}.{near}")
        space = observation_spaces[agents.index(observer)]
        if not isinstance(space, spaces.Box) or len(space.shape) != 1:
            raise ConfigError(f"under_network(parts=...): {observer!r} observes {space}; parts are of a 1-D Box")
        taken = set[int]()
        for source, where in sources.items():
            elements = _elements(where, space.shape[0])
            if source == observer or not elements or taken & elements:
                part = f"{{{source!r}: {where!r}}}"
                raise ConfigError(
                    f"under_network(parts=...): {observer!r}: {part}: give {{another agent: slice}}, of its "
                    f"{space.shape[0]} elements each once"
                )
            taken |= elements
            chosen[agents.index(observer)].append((agents.index(source), where))
    return [ObservationForm(space, own, aged=aged) for space, own in zip(observation_spaces, chosen, strict=True)]


def _elements(where: Any, n: int) -> set[int]:
    """Which of `n` elements a slice takes; none, if it is no slice or goes beyond the end."""
    try:
        beyond = max(where.start or 0, where.stop or 0) > n
        return set() if beyond else set(range(*where.indices(n)))
    except (AttributeError, TypeError, ValueError):
        return set()
