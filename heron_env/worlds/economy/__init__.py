"""`heron/Economy-v0`: a world declared in economy.yaml, in which secret reserves move the currency everybody holds.

Knowledge earns more. One country's growth over 100 turns, in percent, all countries following the rule that uses what
it is shown (40 seeds, mean and 95 % interval; `training/economy_insider.py` at commit a3455a4a): as an insider 47.7
[42.1, 53.3], with noise 0.2 on what it sees 38.7 [32.9, 44.5], seeing what everybody may 13.6 [10.4, 16.9], unaware of
everything but itself 8.7 [6.6, 10.9]; the insider's lead over the outsider, seed by seed: 34.1 [30.2, 37.9].

In PettingZoo's names: `parallel_env(**options)` is the environment, `env` and `raw_env` its agent-by-agent form; all
take the options of `economy`, and `max_cycles` for max_steps.
"""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final, cast

from heron_env.core.layout import GLOBAL
from heron_env.declared.env import DeclaredEnv, Given, from_config
from heron_env.lab.robust_stats import Estimate, mean_interval, paired_difference
from heron_env.observability.config import ObservabilityConfig
from heron_env.registry import make, make_aec
from heron_env.worlds.economy.engine import Carry, EconomyEngine, ReadsReserves

WORLD: Final = Path(__file__).parent / "economy.yaml"
"""The world as it is shipped."""
VIEWS: Final[dict[str, tuple[str, float]]] = {
    "insider": ("insider", 0.0),
    "insider, noise 0.2": ("insider", 0.2),
    "external": ("external", 0.0),
    "unaware": ("unaware", 0.0),
}
"""How the country looks at all others and at the world: level and noise."""


def economy(config: Given = WORLD, **options: Any) -> DeclaredEnv:
    """Countries trade in a currency that secret reserves move, declared in YAML: who knows more earns more.

    Args:
        config: another world instead of the shipped one: a SimulationConfig, a mapping of its fields, or a YAML file.
        options: as for `from_config`.

    Raises ConfigError.
    """
    return from_config(config, **options)


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


def advantage(seeds: Sequence[int], config: Given) -> dict[str, tuple[Estimate, Estimate]]:
    """Return for each view the mean return and its paired difference to the external view, with 95 % intervals."""
    found = {view: returns(view, seeds, config) for view in VIEWS}
    reference = found["external"]
    return {view: (mean_interval(values), paired_difference(values, reference)) for view, values in found.items()}


parallel_env = partial(make, "heron/Economy-v0")
env = raw_env = partial(make_aec, "heron/Economy-v0")

__all__ = [
    "WORLD",
    "Carry",
    "DeclaredEnv",
    "EconomyEngine",
    "ReadsReserves",
    "advantage",
    "economy",
    "env",
    "parallel_env",
    "raw_env",
]
