"""Worlds and policies of tests whose agents are processes: each is of this module, so that a node can load it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from heron_env import (
    Answer,
    Asked,
    Broadcast,
    Continuous,
    CoordinatorAgent,
    Discrete,
    FeatureProvider,
    FieldAgent,
    HeronEnv,
    Letter,
    Mail,
    Origin,
    Plan,
    SystemAgent,
    Vector,
    VectorDecomposition,
    make,
    quantity,
    rule,
)
from heron_env.seeding import key, uniforms


class Stock(FeatureProvider):
    """What somebody has, and gains in a second."""

    visibility = ("public",)
    gain: float = quantity(default=0.0, low=-9.0, high=9.0)
    value: float = quantity(default=0.0, low=-1e3, high=1e3)


class Trader(FieldAgent):
    """Sets what it gains."""

    features = (Stock,)
    action: Any = Continuous(-1.0, 1.0)

    @staticmethod
    @rule(writes=Stock.gain)
    def apply_action(action: Vector) -> float:
        return action[0]

    @staticmethod
    @rule(writes=Stock.value)
    def advance(stock: Stock, dt: float) -> float:
        return 0.9 * stock.value + stock.gain * dt

    @staticmethod
    @rule
    def compute_local_reward(stock: Stock) -> float:
        return stock.value


class Meter(Trader):
    """Reads its own stock by wire."""

    own_rows = "local"


class Switch(Trader):
    """Has choices, of which some are forbidden."""

    action = Discrete(3)

    @staticmethod
    @rule
    def action_mask(stock: Stock) -> tuple[bool, ...]:
        return True, stock.value < 1.0, stock.value > -1.0


class Office(CoordinatorAgent):
    """Commands the traders below it."""


def market(commanded: int = 2, **options: Any) -> HeronEnv:
    """An office with traders that it commands, a meter, a switch and free traders, who all may write to each other."""
    below = [Trader(f"clerk_{i}") for i in range(commanded)]
    office = Office("office", *below, protocol=VectorDecomposition())
    free = [Meter("meter"), Switch("switch"), Trader("free"), Trader("gate")]
    edges = [(a, b) for a in WRITERS for b in WRITERS if a != b]
    options = {"dt": 1.0, "max_steps": 8, "observe_age": True} | options
    return HeronEnv(SystemAgent("boss", office, *free, exchange=Mail(edges)), **options)


def markets(n: int = 2, **options: Any) -> HeronEnv:
    """Several offices that send all their traders the same command."""
    offices = [Office(f"office_{i}", Trader(f"one_{i}"), Meter(f"two_{i}"), protocol=Broadcast()) for i in range(n)]
    options = {"dt": 1.0, "max_steps": 8, "physics_substeps": 2} | options
    return HeronEnv(SystemAgent("boss", *offices), **options)


WRITERS = ("office", "meter", "switch", "free", "gate")
MARKET = (("office", "gate"), ("clerk_0", "meter"), ("clerk_1", "switch", "free"))
"""Nodes: commands travel from one to another, letters do, and some have no way to go."""


def weighted(salt: str, vector: Any) -> float:
    """A number that each bit of the vector changes, the same on every processor: BLAS adds in an order of its own."""
    weights = uniforms(key("weights", salt), len(vector)) + 0.5
    return math.fsum((weights * np.asarray(vector, dtype=np.float64)).tolist())


def wave(angle: Any) -> Any:
    """From -1 to 1; a remainder is exact everywhere, a sine is not."""
    return np.asarray(angle) % 2.0 - 1.0


class Wave:
    """A function of the vector of which each bit matters."""

    def __init__(self, salt: str, size: int = 1) -> None:
        self.salt, self.size = salt, size

    def __call__(self, vector: Any) -> Any:
        return wave(weighted(self.salt, vector) + np.arange(self.size))


class Planner:
    """A plan every second step, of what its actuator does, too; nothing new between."""

    def __init__(self, salt: str, size: int = 1) -> None:
        self.wave = Wave(salt, size)

    def answer(self, asked: Asked) -> Answer:
        if asked.turn % 2:
            return Answer(None)
        running = asked.running
        known = [running.number, running.index, running.age, running.prefix, running.left, 0.0]
        seen = np.concatenate([asked.vector, known, *running.remaining])
        return Answer(Plan([self.wave([*seen, j]) for j in range(4)], merge="blend"), thinking=0.1)


class Chooser:
    """Draws one of what its mask allows."""

    def __call__(self, vector: Any, *, mask: Any, draw: int) -> int:
        allowed = np.flatnonzero(mask)
        return int(allowed[(draw + int(1e3 * abs(weighted("chooser", vector)))) % len(allowed)])


class Looker:
    """Decides on the observation in object form, and remembers how often it did."""

    def begin(self, seed: int, episode: int) -> None:
        self.count = seed % 7

    def decide_action(self, state: Any) -> Any:
        self.count += 1
        text = repr(sorted(state.global_info.items()) if hasattr(state, "global_info") else state)
        return wave([(key(text) % 1000 + self.count) / 7.0])


class Writer:
    """Thinks, remembers, and writes to all it may, the same letter more than once."""

    def __init__(self, agent: str, receivers: Sequence[str], thinking: float = 0.0, size: int = 1) -> None:
        self.agent, self.receivers, self.thinking, self.size = agent, receivers, thinking, size
        self.mood = 0

    def begin(self, seed: int, episode: int) -> None:
        self.mood = key(seed, episode, self.agent)

    def answer(self, asked: Asked) -> Answer:
        heard = [(letter.sender, letter.kind, letter.body) for letter in asked.letters]
        self.mood = key(self.mood, repr(heard), asked.number)
        letters = [Letter(self.agent, name, "note", {"mood": self.mood % 5}) for name in self.receivers]
        letters += [Letter(self.agent, name, "same", "again") for name in self.receivers for _ in range(2)]
        action = wave(weighted(self.agent, asked.vector) + self.mood % 100 + np.arange(self.size))
        thinking = self.thinking * float(uniforms(self.mood, 1)[0])
        return Answer(action, tuple(letters), thinking, Origin("replay"), tokens=asked.number)


class Failing:
    """Raises in a later step."""

    def __call__(self, vector: Any) -> Any:
        raise ZeroDivisionError("no way to divide")


class Unready(Wave):
    """Can't begin."""

    def begin(self, seed: int, episode: int) -> None:
        raise ValueError("not today")


class Unloadable(Wave):
    """Can be sent to another process, and not be made there."""

    def __reduce__(self) -> Any:
        return fail, ()


def fail() -> None:
    raise ImportError("no such library here")


def market_policies(thinking: float = 0.4) -> dict[str, Any]:
    """One of each kind."""
    others = {name: [other for other in WRITERS if other != name] for name in WRITERS}
    return {
        "office": Writer("office", others["office"], thinking, size=2),
        "meter": Looker(),
        "switch": Chooser(),
        "free": Writer("free", others["free"]),
        "gate": Writer("gate", others["gate"]),
    }


def markets_policies() -> dict[str, Any]:
    """Functions of the vector."""
    return {f"office_{i}": Wave(f"office_{i}") for i in range(2)}


def grid(**options: Any) -> HeronEnv:
    """Batteries that their zone commands."""
    return make("heron/BatteryGrid-v0", **{"control": "zone", "max_steps": 8} | options)


def spread(**options: Any) -> HeronEnv:
    """Three agents that share out landmarks."""
    return make("heron/Spread-v0", **{"max_steps": 8} | options)
