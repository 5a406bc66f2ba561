"""The world of a search: an agent for each variable, who may write to its neighbours; minus the cost is the reward."""

from __future__ import annotations

from typing import Any

import numpy as np

from heron_env import (
    Discrete,
    FeatureProvider,
    FieldAgent,
    HeronEnv,
    Mail,
    Parent,
    SystemAgent,
    Vector,
    World,
    quantity,
    rule,
)
from training.reproductions.dcops import VALUES, Dcop

PROXY = -1


class Variable(FeatureProvider):
    """Its agent's alone to see."""

    visibility = ("owner",)
    value: int = quantity(low=0, high=VALUES - 1)


class Board(FeatureProvider):
    """What all pay, and whether the search is over; seen by nobody."""

    visibility = ()
    cost: float = quantity(default=0.0, low=0.0, high=1e9, observed=False)
    over: bool = quantity(default=False, observed=False)


class Player(FieldAgent):
    """Owns a variable; its action is the new value."""

    features = (Variable,)
    action = Discrete(VALUES)

    @staticmethod
    @rule(writes=Variable.value)
    def apply_action(action: Vector) -> int:
        """From now on."""
        return int(action[0])

    @staticmethod
    @rule
    def is_terminated(board: Parent[Board]) -> bool:
        """When the search is over, for all."""
        return board.over


class Judge(SystemAgent):
    """Sees nothing and is paid for everything."""

    features = (Board,)

    @staticmethod
    @rule
    def compute_local_reward(board: Board) -> float:
        """Minus what all pay."""
        return -board.cost


class LettersWorld(HeronEnv):
    """Variables start at random; letters alone take time and get lost, an agent reads its own variable at once.

    Args:
        problem: who pays what.
        optimum: 1 or 2: over once no one, or no two, could gain and nothing has changed for `patience` s; 0: never.
        loss: of letters.
        options: of HeronEnv.
    """

    dt = 1.0

    def __init__(
        self, problem: Dcop, *, optimum: int = 0, patience: int = 0, loss: float = 0.0, **options: Any
    ) -> None:
        self.problem, self.loss, self.patience = problem, loss, patience
        self.reached = {0: lambda x: False, 1: problem.one_opt, 2: problem.two_opt}[optimum]
        self.names = [f"x{i:02}" for i in range(problem.agents)]
        edges = [(self.names[i], self.names[j]) for i in range(problem.agents) for j in problem.near[i]]
        super().__init__(Judge("judge", *map(Player, self.names), Board(), exchange=Mail(edges)), **options)

    def begin(self, world: World) -> None:
        """Each variable gets any of its values."""
        value = world[Player].Variable.value
        value[...] = np.floor(world.draw("start", len(value)) * self.problem.values)
        self.assignment, self.unchanged, self.optimal = np.zeros(0, dtype=np.int64), 0, False

    def advance(self, world: World, dt: float) -> None:
        """What the values cost, and whether they stay."""
        x, board = world[Player].Variable.value.astype(np.int64), world[Judge].Board
        if np.array_equal(x, self.assignment):
            self.unchanged += 1
        else:
            self.assignment, self.unchanged, self.optimal = x, 0, self.reached(x)
            board.cost[0] = self.problem.cost(x)
        board.over[0] = self.optimal and self.unchanged >= self.patience

    def link(self, world: World, sender: int, receiver: int) -> tuple[float, float]:
        """The schedule's delays are those of letters; questions and reports take none."""
        return (0.0, 0.0) if PROXY in (sender, receiver) else (1.0, self.loss)
