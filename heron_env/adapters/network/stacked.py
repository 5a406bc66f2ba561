"""Plans as trainers give them: an agent's action is an array of k actions, one after another."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from gymnasium import spaces

from heron_env.core.plans import MERGES, Merge, Plan
from heron_env.errors import ConfigError, InvalidAction
from heron_env.given import require_one_of, whole


def require_single(agent: str, action: Any, space: spaces.Space[Any]) -> None:
    """Raise InvalidAction where a function that has not planned returned nothing, or several actions of a Box."""
    if action is None:  # a forgotten return; who plans may have nothing new
        raise InvalidAction(f"the policy of {agent!r} returned None, and no plan before; return an action")
    shape: tuple[int, ...] = getattr(action, "shape", None) or ()
    if len(shape) > len(space.shape or ()) and shape[0] > 1 and shape[1:] == space.shape:
        raise InvalidAction(
            f"the policy of {agent!r} returned {shape[0]} actions, an array of shape {shape}, and an action has "
            f"{space.shape}; make it a policy that plans: Planned(act), on a command line --plan K"
        )


class StackedPlans:
    """What `under_network(plan=k, merge=...)` makes of actions.

    Attributes:
        count: k, 2 or more.
        spaces: of the stacked actions, by agent: Box `[k, n...]`, MultiDiscrete `[k]`.

    Raises ConfigError, also for an action space of which there is no stack.
    """

    def __init__(self, plan: int, merge: Merge | None, each: Iterable[tuple[str, spaces.Space[Any]]]) -> None:
        self.count, self._merge = whole(plan, "under_network(plan)", 2), "drop" if merge is None else merge
        require_one_of(f"under_network(merge={merge!r:.60})", self._merge, MERGES)
        self.spaces = {agent: self._stacked(agent, space) for agent, space in each}

    def plan_of(self, agent: str, action: Any) -> Plan:
        """The plan that an array of the stacked space is; a Plan is itself. Raises InvalidAction for another shape."""
        if type(action) is Plan:
            return action
        try:
            fits = np.shape(action) == self.spaces[agent].shape
        except ValueError:  # rows of different lengths
            fits = False
        if not fits:
            raise InvalidAction(
                f"under_network(plan={self.count}): the action of {agent!r}, {action!r:.100}, is none of "
                f"{self.spaces[agent]}; give an array of its shape, {self.count} actions one after another, or a Plan"
            )
        return Plan(action, merge=self._merge)

    def _stacked(self, agent: str, space: spaces.Space[Any]) -> spaces.Space[Any]:
        match space:
            case spaces.Box():
                low, high = (np.stack([bound] * self.count) for bound in (space.low, space.high))
                return spaces.Box(low, high, dtype=space.dtype.type)
            case spaces.Discrete():
                sizes, starts = np.full(self.count, space.n), np.full(self.count, space.start)
                return spaces.MultiDiscrete(sizes, dtype=space.dtype.type, start=starts)
        raise ConfigError(
            f"under_network(plan={self.count}): the actions of {agent!r} are of {space}; only of a Box and of a "
            "Discrete is a stack an action space. Leave plan out; policies in runs may return a Plan"
        )
