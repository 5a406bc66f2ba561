"""What BatchEnv asks of the engines that can run it, and the infos that they hand out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from heron_env.engine.arrays import Published
from heron_env.envs.base import HeronEnv
from heron_env.envs.batch.lane_groups import Group
from heron_env.errors import ResetNeeded

Lanes = NDArray[np.bool_]
"""Which lanes are meant, `[B]`."""
Given = Sequence[tuple[Group, NDArray[Any]]]
"""Actions `[B, agents, elements]` of the groups that the caller decides for."""


class Engine(Protocol):
    """B environments that move together.

    A step is `move`, then `start` for lanes that begin anew, then `observe`; a reset is `start`, then `observe`.
    Statistics are float64 `[B, all agents]`, by rank.

    Attributes:
        compiled: does it run in the compiled loop?
        halfway: had some lanes moved when the last `move` ended in an error? Else nothing has changed.
        direct: can a step with restarts be one call, `step`? Not where Python lies in between.
        seeds, episodes: keys of each lane's episode, uint64 `[B]`.
        steps: of each lane's episode, int64 `[B]`.
        over: lanes whose episode ended in the last `move`, bool `[B]`.
        last_length: steps of each lane's last complete episode, int64 `[B]`.
        final: observations before the last `start`, float32 `[B, floats]`; kept if asked for at construction.
    """

    compiled: bool
    halfway: bool
    direct: bool
    seeds: NDArray[np.uint64]
    episodes: NDArray[np.uint64]
    final: NDArray[np.float32]

    @property
    def published(self) -> Published:
        """What `observe` made last."""
        ...

    @property
    def steps(self) -> NDArray[np.int64]: ...

    @property
    def over(self) -> NDArray[np.bool_]: ...

    @property
    def last_length(self) -> NDArray[np.int64]: ...

    @property
    def last_returns(self) -> NDArray[np.float64]:
        """Of each lane's last complete episode."""
        ...

    @property
    def rewards(self) -> NDArray[np.float64]:
        """Of all agents in the last `move`."""
        ...

    @property
    def truth(self) -> NDArray[np.float64]:
        """`[B, columns]`."""
        ...

    def step(self, given: Given) -> None:
        """`move`, `start` of the lanes that are over, and `observe`, in one call, if `direct`."""
        ...

    def move(self, given: Given, idle: Lanes | None) -> None:
        """A control step up to its boundary in all lanes but the `idle` ones. See `halfway` for InvalidAction."""
        ...

    def goes_on(self) -> bool:
        """Is it certain that no episode ends in the coming step? Asked only if `direct`."""
        ...

    def start(self, lanes: Lanes, seeds: NDArray[np.uint64] | None, options: Mapping[str, Any] | None) -> None:
        """Begin an episode in `lanes`: episode 0 of `seeds` `[B]`, or the next one of the seed in use."""
        ...

    def observe(self) -> None:
        """Publish observations of now, and rewards and ends of the last `move`."""
        ...

    def alive(self, group: Group) -> NDArray[np.bool_]:
        """Who has not ended, `[B, agents]`."""
        ...

    def infos(self, group: Group) -> dict[str, Callable[[], NDArray[Any]]]:
        """Makers of numbers by name, each `[B, agents, ...]`."""
        ...

    def training_rewards(self) -> NDArray[np.float64] | None:
        """What a trainer should use, `[B, possible agents]`; None: the rewards. Asked between `move` and `start`."""
        ...

    def lane(self, number: int) -> HeronEnv:
        """The environment in one lane, to look at."""
        ...


Makers = Mapping[str, Callable[[], NDArray[Any]]]


class Turn:
    """Counts what a batch does, so that infos know when they are old."""

    def __init__(self) -> None:
        self.number = 0


class Infos(Mapping[str, NDArray[Any]]):
    """A group's infos, each array made when it is first asked for; until the next step only."""

    __slots__ = ("_made", "_makers", "_number", "_turn")

    def __init__(self, makers: Makers, turn: Turn) -> None:
        self._makers, self._turn, self._number = makers, turn, turn.number
        self._made: dict[str, NDArray[Any]] = {}

    def __getitem__(self, name: str) -> NDArray[Any]:
        """`[B, agents, ...]`. Raises ResetNeeded if the batch has gone on since."""
        if name not in self._made:
            make = self._makers[name]
            if self._number != self._turn.number:
                raise ResetNeeded(f"infos[...][{name!r}]: the batch has gone on; read infos before the next step")
            self._made[name] = make()
        return self._made[name]

    def __iter__(self) -> Iterator[str]:
        """The names."""
        return iter(self._makers)

    def __len__(self) -> int:
        """How many there are."""
        return len(self._makers)

    def __repr__(self) -> str:
        """`Infos(is_active, decision)`."""
        return f"Infos({', '.join(self._makers)})"
