"""`heron/Spread-v0`: MPE's simple_spread as features and rules; equal to mpe2's, which the tests compare it with.

In PettingZoo's names: `parallel_env(**options)` is the environment, `env` and `raw_env` its agent-by-agent form; all
take the options of `spread`, and `max_cycles` for max_steps.
"""

from functools import partial

from heron_env.registry import make, make_aec
from heron_env.worlds.spread.discs import Chooser, Pusher
from heron_env.worlds.spread.env import Assigned, Drive, SpreadEnv, spread

parallel_env = partial(make, "heron/Spread-v0")
env = raw_env = partial(make_aec, "heron/Spread-v0")

__all__ = [
    "Assigned",
    "Chooser",
    "Drive",
    "Pusher",
    "SpreadEnv",
    "env",
    "parallel_env",
    "raw_env",
    "spread",
]
