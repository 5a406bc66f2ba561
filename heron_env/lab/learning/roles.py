"""A role: the agents that share one policy in a training on rows, and how they find themselves among rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from heron_env.core.policy import AnyPolicy
from heron_env.envs.base import HeronEnv
from heron_env.envs.batch.rows import Ended, Floats, Ints, Rows, Vectors
from heron_env.errors import ConfigError
from heron_env.lab.trained import Correction, on_vectors


class Role:
    """The agents of some groups, which see and do the same.

    Args:
        env: any environment of the kind.
        groups: of `env.group_map`, neighbours in it.
        rules: the baseline that is corrected, by agent; empty: none.

    Attributes:
        agents, ranks: in order; an agent's place is its number among them.
        spec, width: of their actions and observations.
        corrects: is there a rule to correct? Where there are choices there is not.

    Raises ConfigError for groups that differ.
    """

    def __init__(self, env: HeronEnv, groups: Sequence[str], rules: Mapping[str, AnyPolicy]) -> None:
        self.groups = tuple(groups)
        self.agents = [agent for group in groups for agent in env.group_map[group]]
        self.ranks = np.array([env.hierarchy.index[agent] for agent in self.agents])
        first = self.ranks[0]
        self.spec, self.width = env.simulation.specs[first], env.simulation.plan.size(int(first))
        for group in groups[1:]:
            rank = env.hierarchy.index[env.group_map[group][0]]
            other, width = env.simulation.specs[rank], env.simulation.plan.size(rank)
            if width != self.width or other.describe() != self.spec.describe():
                raise ConfigError(
                    f"shared=True: group {group!r} sees {width} numbers and does {other.describe()}, {groups[0]!r} "
                    f"{self.width} and {self.spec.describe()}; they can't share one policy: leave it out, or "
                    "build the environment with pad=True"
                )
        self._place = np.full(len(env.hierarchy), -1)
        self._place[self.ranks] = np.arange(len(self.ranks))
        self.corrects = bool(rules) and not self.spec.dim_d
        self.rules = {agent: on_vectors(rules[agent]) for agent in self.agents} if self.corrects else {}
        distinct = {id(rule): rule for rule in self.rules.values()}
        most = max(len(distinct), 1)
        self._move = [Correction(self.spec.low, self.spec.high, rule) for rule in (*distinct.values(), None)[:most]]
        numbers = {known: number for number, known in enumerate(distinct)}
        self._which = np.array([numbers[id(self.rules[a])] if self.rules else 0 for a in self.agents])

    def part(self, rows: Rows | Ended) -> slice:
        """Which of the rows are its own."""
        return slice(rows.parts[self.groups[0]].start, rows.parts[self.groups[-1]].stop)

    def places(self, rows: Rows | Ended) -> Ints:
        """Whose each of its own rows is, `[n]`."""
        return np.asarray(self._place[rows.rank[self.part(rows)]])

    def slots(self, rows: Rows | Ended) -> Ints:
        """lane * agents + place of each of its own rows, `[n]`."""
        return rows.lane[self.part(rows)] * len(self.agents) + self.places(rows)

    def seen(self, rows: Rows | Ended) -> Vectors:
        """What its own see, `[n, d]`."""
        return rows.obs[self.part(rows), : self.width]

    def earned(self, rows: Rows | Ended) -> Floats:
        """What a trainer is to use as rewards, `[n]`."""
        return (rows.reward if rows.training_reward is None else rows.training_reward)[self.part(rows)]

    def act(self, rows: Rows, outputs: NDArray[np.float32]) -> Floats:
        """Actions of its own rows, from the network's numbers in units of half their range, and its choices."""
        vectors, which, numbers = self.seen(rows), self._which[self.places(rows)], self.spec.dim_c
        found = outputs.astype(np.float64)
        for number, move in enumerate(self._move if numbers else ()):
            mine = which == number
            if mine.any():
                found[mine, :numbers] = move(vectors[mine], outputs[mine, :numbers])
        return found
