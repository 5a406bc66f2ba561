"""The groups of a batch: who is in them, where they lie in its arrays, how actions are read, and what masks offer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from heron_env.core.action import ActionSpec
from heron_env.core.layout import span_of
from heron_env.core.masking import everything, noop_alone
from heron_env.engine.arrays import Published
from heron_env.envs.base import HeronEnv
from heron_env.errors import InvalidAction, UnknownAgent, did_you_mean

if TYPE_CHECKING:
    from heron_env.engine.lanes import Lanes

Bools = NDArray[np.bool_]
Arrays = dict[str, NDArray[Any]]
"""`[lanes, agents, ...]` by group."""


@dataclass(frozen=True, eq=False)
class Group:
    """Agents of one kind: equal observation and action spaces.

    Attributes:
        ranks: of its agents.
        width: floats of one agent's observation.
        members: its place among the observers; empty for agents that only take commands.
        floats: its place in the lanes' observations.
    """

    name: str
    agents: tuple[str, ...]
    ranks: tuple[int, ...]
    spec: ActionSpec
    width: int
    members: slice
    floats: slice

    def values(self, given: Any, lanes: int) -> NDArray[Any]:
        """Actions as `[lanes, agents, elements]`, without a copy where they have that form.

        Takes arrays, torch tensors of the CPU, `[lanes, agents]` for one element, {"c", "d"} for mixed ones.
        Raises InvalidAction.
        """
        shape = (lanes, len(self.agents), self.spec.size)
        if type(given) is np.ndarray and given.shape == shape and given.dtype == np.float64:
            return given
        if isinstance(given, np.ma.MaskedArray):
            raise InvalidAction(
                f"step(): the actions of group {self.name!r} are a masked array; fill it: values.filled(0.0)"
            )
        if type(given) is not np.ndarray and isinstance(given, Mapping):
            parts = [np.reshape(given[part], (*shape[:2], -1)) for part in ("c", "d") if part in given]
            given = np.concatenate([np.zeros((*shape[:2], 0)), *parts], axis=2)
        try:
            array = np.asarray(given)
        except (TypeError, ValueError, RuntimeError) as error:
            remedy = "give an array, or a torch tensor of the CPU without a gradient (values.detach().cpu().float())"
            raise InvalidAction(
                f"step(): the actions of group {self.name!r} are no array: {error}; {remedy}"
            ) from error
        if array.shape != shape:
            if array.shape != shape[:2] or shape[2] != 1:
                raise InvalidAction(
                    f"step(): the actions of group {self.name!r} have shape {array.shape}, expected {shape}: "
                    f"(lanes, agents, elements), each {self.spec.describe()}"
                )
            array = array[:, :, None]
        if array.dtype.kind not in "fiub":
            raise InvalidAction(f"step(): the actions of group {self.name!r} are {array.dtype}; give numbers")
        return array

    def require_legal(self, values: NDArray[Any], counts: NDArray[np.bool_]) -> None:
        """Raise InvalidAction for the first action outside its space, lane and agent named.

        `values` `[lanes, agents, elements]`; `counts` `[lanes, agents]`: where not, nobody looks at the action.
        """
        legal = self.spec.legal(values) | ~counts
        if not legal.all():
            lane, place = divmod(int(np.argmin(legal)), len(self.agents))
            require_action(self.spec, values[lane, place], self.agents[place], lane if len(values) > 1 else None)


def require_action(spec: ActionSpec, value: Any, agent: str, lane: int | None) -> NDArray[np.float64]:
    """The action vector of one agent in one lane (None: the only one). Raises InvalidAction naming both."""
    try:
        return spec.parse(value, agent)
    except InvalidAction as error:
        raise InvalidAction(f"{error}" if lane is None else f"lane {lane}: {error}") from None


def groups_of(env: HeronEnv) -> dict[str, Group]:
    """All groups with actions; those of possible agents come first, in the order of `env.group_map`."""
    simulation, index = env.simulation, env.hierarchy.index
    found: dict[str, Group] = {}
    observer = column = 0
    names = [*env.group_map, *(name for name in env.groups if name not in env.group_map)]
    for name in names:
        possible = name in env.group_map
        agents = env.group_map[name] if possible else env.groups[name]
        ranks = tuple(index[agent] for agent in agents)
        spec, width = simulation.specs[ranks[0]], simulation.plan.size(ranks[0])
        if not spec.size:
            continue
        last, end = (observer + len(ranks), column + len(ranks) * width) if possible else (observer, column)
        found[name] = Group(name, tuple(agents), ranks, spec, width, slice(observer, last), slice(column, end))
        observer, column = last, end
    return found


def known_group(groups: Mapping[str, Group], name: str, told: str) -> Group:
    """The group of that name; `told`: what got it, for the error. Raises UnknownAgent."""
    group = groups.get(name) if isinstance(name, str) else None
    if group is None:
        raise UnknownAgent(f"{told} the group {name!r:.60}; this batch has {list(groups)}.{did_you_mean(name, groups)}")
    return group


def shown(published: Published, groups: Mapping[str, Group]) -> tuple[Arrays, Arrays, Arrays, Arrays]:
    """Views by group: observations `[lanes, agents, d]`, rewards, terminated, truncated `[lanes, agents]`."""
    seeing = {name: group for name, group in groups.items() if group.members.stop > group.members.start}
    shape = len(published.observations), -1

    def members(part: NDArray[Any]) -> Arrays:
        return {name: part[:, group.members] for name, group in seeing.items()}

    observations: Arrays = {
        name: published.observations[:, group.floats].reshape(*shape, group.width) for name, group in seeing.items()
    }
    return observations, members(published.rewards), members(published.terminated), members(published.truncated)


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
