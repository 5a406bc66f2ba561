"""How an agent's observation is put together from what has arrived, and the space it lies in (W6, W10)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from heron_env.adapters.network.noops import copied
from heron_env.errors import ConfigError, UnknownAgent, did_you_mean
from heron_env.given import mapping
from heron_env.scheduling.timing import to_seconds

Copy = tuple[int, Any]
"""(time of the boundary, ns; what was observed there)."""
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
        self._longer = isinstance(space, spaces.Box) and len(space.shape) == 1 and space.dtype.kind == "f"
        if aged:
            dtype: Any = space.dtype if self._longer else np.float32
            ages = spaces.Box(0, np.inf, (1 + len(self.parts),), dtype)
            self.space = spaces.Dict({"observation": space, "age": ages})
            if self._longer:
                self.space = spaces.flatten_space(spaces.Tuple([space, ages]))

    def copies(self, now: int, observation: Any) -> list[Copy]:
        """Of the boundary at `now`: an observation, and the elements of each part."""
        return [(now, observation), *((now, observation[where]) for _, where in self.parts)]

    def ages(self, copies: Sequence[Copy], now: int) -> list[float]:
        """The age of each copy, s."""
        return [to_seconds(now - observed) for observed, _ in copies]

    def put_together(self, copies: Sequence[Copy], now: int) -> Any:
        """The observation, which its receiver may change, of the agent's own copy and one for each part."""
        observation = copied(copies[0][1])
        for (_, where), (_, values) in zip(self.parts, copies[1:], strict=True):
            observation[where] = values
        if not self._aged:
            return observation
        ages = self.ages(copies, now)
        if self._longer:
            return np.append(observation, ages).astype(self.space.dtype)
        return {"observation": observation, "age": np.array(ages, np.float32)}


def forms_of(
    agents: Sequence[str], observation_spaces: Sequence[spaces.Space[Any]], parts: Parts | None, *, aged: bool
) -> list[ObservationForm]:
    """The form of each agent, by rank. Raises UnknownAgent, ConfigError for parts of what is no 1-D Box."""
    chosen: list[list[tuple[int, slice]]] = [[] for _ in agents]
    for observer, sources in mapping({} if parts is None else parts, "under_network(parts)").items():
        for name in (observer, *mapping(sources, f"under_network(parts): {observer!r}")):
            if name not in agents:
                near = did_you_mean(name, agents)
                raise UnknownAgent(f"under_network(parts=...): no agent {name!r}; there are {list(agents)[:12]}.{near}")
        space = observation_spaces[agents.index(observer)]
        if not isinstance(space, spaces.Box) or len(space.shape) != 1:
            raise ConfigError(f"under_network(parts=...): {observer!r} observes {space}; parts are of a 1-D Box")
        free = np.ones(space.shape, bool)
        for source, where in sources.items():
            if source == observer or not _is_free(where, free):
                raise ConfigError(
                    f"under_network(parts=...): {observer!r}: {{{source!r}: {where!r}}}: give {{another agent: "
                    f"slice}}, of its {len(free)} elements each once"
                )
            free[where] = False
            chosen[agents.index(observer)].append((agents.index(source), where))
    return [ObservationForm(space, own, aged=aged) for space, own in zip(observation_spaces, chosen, strict=True)]


def _is_free(where: Any, free: NDArray[np.bool_]) -> bool:
    """Is it a slice of one element or more that there are, all of them free?"""
    try:
        return max(where.start or 0, where.stop or 0) <= len(free) and bool(free[where].any() and free[where].all())
    except (AttributeError, TypeError):
        return False
