"""What is it worth to know? One country sees more or less, everything else stays the same, seed by seed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, cast

from heron_env.core.layout import GLOBAL
from heron_env.declared.env import Given, from_config
from heron_env.lab.robust_stats import Interval, mean_interval, paired_difference
from heron_env.observability.config import ObservabilityConfig
from heron_env.worlds.economy.engine import EconomyEngine, ReadsReserves

VIEWS: Final[dict[str, tuple[str, float]]] = {
    "insider": ("insider", 0.0),
    "insider, noise 0.2": ("insider", 0.2),
    "external": ("external", 0.0),
    "unaware": ("unaware", 0.0),
}
"""How the country looks at all others and at the world: level and noise."""


def observability(observer: str, others: Sequence[str], level: str, noise: float) -> ObservabilityConfig:
    """`observer` sees everything at this level; the others see what everybody may, exactly."""
    rows: list[Any] = [(observer, target, level, noise) for target in (*others, GLOBAL)]
    return ObservabilityConfig(matrix=tuple(rows), default={"level": "external"})


def returns(view: str, seeds: Sequence[int], config: Given) -> list[float]:
    """The first country's return with that view, one per seed: growth of its strength over the episode, percent.

    All countries follow the rule that uses whatever it is shown.
    """
    first, *others = from_config(config).possible_agents
    env = from_config(config, observability=observability(first, others, *VIEWS[view]))
    policies = {"*": ReadsReserves(cast(EconomyEngine, env.engine), len(env.possible_agents))}
    return [env.run_synchronous(policies, seed=seed, record=()).returns[first] for seed in seeds]


def advantage(seeds: Sequence[int], config: Given) -> dict[str, tuple[Interval, Interval]]:
    """For each view: the mean return, and the paired difference to the external view, each with its 95 % interval."""
    found = {view: returns(view, seeds, config) for view in VIEWS}
    reference = found["external"]
    return {view: (mean_interval(values), paired_difference(values, reference)) for view, values in found.items()}
