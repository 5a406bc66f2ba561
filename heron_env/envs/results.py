"""What a whole episode yields, in either clock."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heron_env.scheduling.broker import MessageCounts
from heron_env.scheduling.trace import Trace


@dataclass(frozen=True, slots=True)
class Percentiles:
    """A distribution in seconds, in five numbers; all nan where nothing was measured."""

    count: int
    mean: float
    p50: float
    p95: float
    max: float

    @classmethod
    def of(cls, values: Sequence[float] | NDArray[np.float64]) -> Percentiles:
        """Of any number of measured values."""
        if not len(values):
            return cls(0, *[float("nan")] * 4)
        v = np.asarray(values, dtype=np.float64)
        return cls(len(v), float(v.mean()), float(np.quantile(v, 0.5)), float(np.quantile(v, 0.95)), float(v.max()))


@dataclass(slots=True, eq=False)
class EpisodeResult:
    """One episode: what was earned, done and known, and what became of the messages.

    `returns` and `rewards` cover all agents, coordinators and the system agent too; rewards are computed from the truth
    at each step boundary, whatever the network did.
    """

    rewards: dict[str, list[tuple[float, float]]]
    """By agent: (boundary time in s, value)."""
    actions: dict[str, list[tuple[float, NDArray[np.float64]]]]
    """By deciding or commanded agent: (time at which it took effect in s, float64 vector)."""
    observations: dict[str, list[tuple[float, NDArray[np.float32]]]]
    """By deciding agent, if asked for: (time of the tick that asked in s, float32 vector)."""
    terminated: dict[str, bool]
    truncated: dict[str, bool]
    end_time: float
    """Virtual time at the end, s."""
    staleness: dict[str, Percentiles] = field(default_factory=dict)
    """Age of information of everything an agent's observations held, s, when it received them."""
    latency: dict[str, Percentiles] = field(default_factory=dict)
    """From tick to effect, s."""
    messages: MessageCounts = field(default_factory=lambda: MessageCounts(0, 0, 0, 0, 0, 0))
    cancelled_effects: int = 0
    """Effects that never fell: their agents had ended before, or decided anew on a pushed observation."""
    unfinished_effects: int = 0
    """Effects still under way at the end."""
    deterministic: bool = True
    notes: list[str] = field(default_factory=list)
    kpis: dict[str, float] = field(default_factory=dict)
    trace: Trace | None = None

    @classmethod
    def blank(
        cls, ids: Sequence[str], acting: Sequence[str], observing: Sequence[str], trace: Trace | None = None
    ) -> EpisodeResult:
        """Nothing has happened yet to the agents `ids`, of whom some act, and some have observations that are kept."""
        return cls(
            rewards={agent: [] for agent in ids},
            actions={agent: [] for agent in acting},
            observations={agent: [] for agent in observing},
            terminated=dict.fromkeys(ids, False),
            truncated=dict.fromkeys(ids, False),
            end_time=0.0,
            trace=trace,
        )

    @property
    def returns(self) -> dict[str, float]:
        """Sum of rewards by agent."""
        return {agent: float(sum(value for _, value in rewards)) for agent, rewards in self.rewards.items()}

    def same_course(self, other: EpisodeResult) -> bool:
        """Bit for bit the same rewards, actions, observations (where both recorded them) and ends?"""
        return (
            self.rewards == other.rewards
            and self.terminated == other.terminated
            and self.truncated == other.truncated
            and _same(self.actions, other.actions)
            and (not self.observations or not other.observations or _same(self.observations, other.observations))
        )


def _same(a: dict[str, list[tuple[float, Any]]], b: dict[str, list[tuple[float, Any]]]) -> bool:
    return a.keys() == b.keys() and all(
        len(a[k]) == len(b[k])
        and all(t == u and np.array_equal(x, y) for (t, x), (u, y) in zip(a[k], b[k], strict=True))
        for k in a
    )
