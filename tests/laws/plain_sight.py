"""Who sees whom (V11) once more: asked pair by pair, kept in a dictionary, hidden number by number."""

from typing import Any

import numpy as np
from laws.visibility import as_seen, less, sights
from seeing_worlds import PAIRS, SIGHTS

from heron_env.core.world import World

Pair = tuple[int, int]
"""Ranks of an observer and of whom it may see."""


class PlainSight:
    """The hook `sees` of an environment, if it has one.

    Attributes: observers, targets: ranks of those it is about, in their order; asked: the pairs that it is asked about;
        all others see what they are shown, always.
    """

    def __init__(self, env: Any) -> None:
        self.env, self.model = env, env.simulation.model
        sight = next((name for name, cls in SIGHTS.items() if isinstance(env, cls)), "")
        self.observers, self.targets = map(self._those, PAIRS[sight]) if sight else ((), ())
        config, layout = env.observability, self.model.layout
        self.asked: set[Pair] = set()
        self.found = [sights(env, rank) for rank in range(len(env.hierarchy))]
        if config is not None and not config.enabled:
            return
        for observer in self.observers:
            owners = {int(layout.owner_of[column]) for column, *_ in self.found[observer]}
            self.asked |= {(observer, target) for target in owners if target in self.targets and target != observer}

    def _those(self, kind: type) -> tuple[int, ...]:
        """Those of a class, or, where nobody is, of one that derives from it."""
        agents = list(enumerate(self.env.hierarchy.agents))
        exact = tuple(rank for rank, agent in agents if type(agent) is kind)
        return exact or tuple(rank for rank, agent in agents if isinstance(agent, kind))

    def of(self, target: int, truth: Any = None, step: int = -1) -> dict[Pair, bool]:
        """Who sees this agent now, by the truth as it is; of another environment after so many steps, if given."""
        simulation, ranks = self.env.simulation, (self.observers, self.targets)
        world = World(self.model.layout, simulation.truth if truth is None else truth)
        world.step = simulation.step_index if truth is None else step
        world.time = world.step * self.env.dt_ns / 1e9
        return {
            (o, target): self.env.sees(world, ranks[0].index(o), ranks[1].index(target))
            for o in self.observers
            if (o, target) in self.asked
        }

    def told(self, target: int, bits: dict[Pair, bool]) -> Any:
        """What goes with this agent's row, float64: a number for each observer."""
        observers = self.observers if target in self.targets else ()
        return np.array([float(bits.get((o, target), False)) for o in observers])

    def all_told(self, bits: dict[Pair, bool]) -> Any:
        """What goes with all rows."""
        return np.concatenate([np.zeros(0), *(self.told(target, bits) for target in self.targets)])

    def known(self, cache: Any) -> dict[Pair, bool]:
        """From what stands behind the columns of a cache."""
        bits = cache[self.model.layout.size :].reshape(len(self.targets), -1) if self.asked else np.zeros((0, 0))
        return {
            (o, t): bool(bits[self.targets.index(t), self.observers.index(o)] != 0.0) for o, t in sorted(self.asked)
        }

    def unseen(self, observer: int, bits: dict[Pair, bool]) -> frozenset[int]:
        """Whom an observer does not see."""
        return frozenset(target for o, target in self.asked if o == observer and not bits[o, target])

    def vector(self, observer: int, received: Any, unseen: frozenset[int], ages: list[float]) -> Any:
        """What is shown of what was received, float32: hidden is what it would be if nobody had said a word."""
        view, layout, plan = self.model.plan.views[observer], self.model.layout, self.model.plan
        less = dict(view.relative.T.tolist())
        shown: list[float] = []
        for place, column in enumerate(view.columns.tolist()):
            value = float(received[place])
            if place in less:
                value -= float(received[less[place]])
            if int(layout.owner_of[column]) in unseen:
                value = 0.0 if place in less else self._default(column)
            shown.append(value)
        parts = [np.array(shown, dtype=np.float64).astype(np.float32), np.array(ages, np.float32)]
        if plan.observe_visible:
            sources = dict.fromkeys(layout.owner_of[view.columns].tolist())
            flags = [float(target not in unseen) for target in sources if (observer, target) in self.asked]
            parts.append(np.array(flags, np.float32))
        return np.concatenate([*parts, plan.padding.tails[observer]])

    def as_seen(
        self, observer: int, array: Any, bits: dict[Pair, bool], moment: tuple[int, int, int]
    ) -> tuple[Any, Any]:
        """`visibility.as_seen` by these bits, and, if that is shown, who is visible: both float32."""
        found = self.found[observer]
        shown, unseen = as_seen(found, array, moment), self.unseen(observer, bits)
        owners = [int(self.model.layout.owner_of[column]) for column, *_ in found]
        for place, (sight, owner) in enumerate(zip(found, owners, strict=True)):
            if owner in unseen:
                shown[place] = self._default(sight[0]) if less(found, sight) is None else 0.0
        asked = [owner for owner in dict.fromkeys(owners) if (observer, owner) in self.asked]
        flags = [owner not in unseen for owner in asked if self.model.plan.observe_visible]
        return shown, np.array(flags, np.float32)

    def _default(self, column: int) -> float:
        """As the quantity was declared."""
        layout = self.model.layout
        rank = int(layout.owner_of[column])
        for first, _, declared in layout.rows[rank].columns():
            if first <= column < first + declared.size:
                return float(np.ravel(np.asarray(declared.default, dtype=np.float64))[column - first])
        raise LookupError(layout.names[column])
