"""`heron/Economy-v0`: a world declared in economy.yaml, in which secret reserves move the currency everybody holds.

Knowledge pays here. One country's growth over 100 turns, in percent, all countries following the rule that uses what
it is shown (40 seeds, mean and 95 % interval; `python training/economy_insider.py` prints it): as an insider 47.7
[42.1, 53.3], with noise 0.2 on what it sees 38.7 [32.9, 44.5], seeing what everybody may 13.6 [10.4, 16.9], unaware of
everything but itself 8.7 [6.6, 10.9]; the insider's lead over the outsider, seed by seed: 34.1 [30.2, 37.9].

In PettingZoo's names: `parallel_env(**options)` is the environment, `env` and `raw_env` its agent-by-agent form; all
take the options of `economy`, and `max_cycles` for max_steps.
"""

from functools import partial
from pathlib import Path
from typing import Any, Final

from heron_env.declared.env import DeclaredEnv, Given, from_config
from heron_env.registry import make, make_aec
from heron_env.worlds.economy.engine import Carry, EconomyEngine, ReadsReserves
from heron_env.worlds.economy.insider import advantage

WORLD: Final = Path(__file__).parent / "economy.yaml"
"""The world as it is shipped."""


def economy(config: Given = WORLD, **options: Any) -> DeclaredEnv:
    """Countries trade in a currency that secret reserves move, declared in YAML: who knows more earns more.

    Args:
        config: another world instead of the shipped one: a SimulationConfig, a mapping of its fields, or a YAML file.
        options: as for `from_config`.

    Raises ConfigError.
    """
    return from_config(config, **options)


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
