"""What an environment offers to be judged by: baselines, held-out cases, known optima.

A domain offers them in two modules beside its environment: `baselines` with `baselines(env) -> {name: policies}` and
STRONGEST, and `evaluation` with `evaluation_cases(split, num_days, repeats)` and `shipped_optima()`. Any other
environment is judged against its no-op and against chance, on seeds that training does not use.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from heron_env.core.policy import Policies
from heron_env.errors import ConfigError, did_you_mean
from heron_env.seeding import key

if TYPE_CHECKING:
    from heron_env.envs.base import HeronEnv

NOTHING, RANDOM = "do nothing", "random"
SPLITS = {"test": 1_000_000, "validation": 2_000_000}
"""First seed of each split where the environment defines no cases of its own."""

NEUTRAL = frozenset({"control", "split", "day", "schedule", "render_mode", "max_steps", "max_cycles"})
"""Options of an environment that leave its optima as they are (a shorter episode ends before it has one)."""


@dataclass(frozen=True)
class Case:
    """One evaluation: the seed, and the options with which the environment is built for it."""

    seed: int
    options: dict[str, Any] = field(default_factory=dict)
    optimum: float | None = None
    """The best possible team return, where it is known."""

    def __str__(self) -> str:
        """`seed 2, day 2`."""
        return ", ".join([f"seed {self.seed}", *(f"{name} {value}" for name, value in self.options.items())])


class NoOp:
    """Always the no-op of one agent."""

    def __init__(self, noop: NDArray[np.float64]) -> None:
        self.noop = noop

    def forward(self, observation: NDArray[np.float32]) -> NDArray[np.float64]:
        """The no-op vector."""
        return self.noop.copy()


class Chance:
    """A sample of the action space keyed by seed, agent and what is seen: without memory, so equal in both clocks."""

    def __init__(self, env: HeronEnv, agent: str, seed: int) -> None:
        self.spec, self.key = env.simulation.specs[env.hierarchy.index[agent]], key(seed, "random", agent)

    def forward(self, observation: NDArray[np.float32]) -> Any:
        """One sample."""
        digest = hashlib.blake2b(np.ascontiguousarray(observation).tobytes(), digest_size=8).digest()
        return self.spec.space(seed=key(self.key, int.from_bytes(digest, "big")) % 2**31).sample()


def baselines(env: HeronEnv, seed: int = 0) -> dict[str, Policies]:
    """Policies by name of the baseline; "do nothing" and "random" are always among them."""
    specs, index = env.simulation.specs, env.hierarchy.index
    offered: dict[str, Policies] = {
        NOTHING: {agent: NoOp(specs[index[agent]].noop) for agent in env.possible_agents},
        RANDOM: {agent: Chance(env, agent, seed) for agent in env.possible_agents},
    }
    rules = _offer(env, "baselines", "baselines")
    return {**offered, **(rules(env, seed=seed) if rules else {})}


def strongest(env: HeronEnv) -> str | None:
    """Name of the environment's strongest rule, if it has rules."""
    name: str | None = _offer(env, "baselines", "STRONGEST")
    return name


def unit(env: HeronEnv) -> str:
    """Of team returns, for axes and sentences; "" where the environment does not say (RETURN_UNIT in `evaluation`)."""
    said: str | None = _offer(env, "evaluation", "RETURN_UNIT")
    return said or ""


def cases(env: HeronEnv, number: int, *, split: str = "test", repeats: int = 1) -> list[Case]:
    """Held-out cases: the environment's own (number x repeats), or as many seeds that training does not use.

    Raises ConfigError for an unknown split or an impossible number.
    """
    if number < 1 or repeats < 1:
        raise ConfigError(f"cases(number={number!r}, repeats={repeats!r}): both must be >= 1")
    own: Callable[..., list[tuple[dict[str, Any], int]]] | None = _offer(env, "evaluation", "evaluation_cases")
    if own is None:
        if split not in SPLITS:
            raise ConfigError(f"split={split!r} must be one of {list(SPLITS)}.{did_you_mean(split, SPLITS)}")
        return [Case(SPLITS[split] + i) for i in range(number * repeats)]
    return [Case(seed, options) for options, seed in own(split, number, repeats)]


def with_optima(env: HeronEnv, cases: list[Case], options: dict[str, Any]) -> list[Case]:
    """The same cases with their optima, where the environment ships them and `options` leave its constants alone.

    An optimum belongs to a day with that day's own seed (repeat 0).
    """
    optima = _offer(env, "evaluation", "shipped_optima")
    if optima is None or not set(options) <= NEUTRAL or {"max_steps", "max_cycles"} & set(options):
        return cases
    known: dict[int, float] = optima()
    return [Case(c.seed, c.options, known.get(c.seed) if c.options.get("day") == c.seed else None) for c in cases]


def _offer(env: HeronEnv, module: str, name: str) -> Any:
    """An attribute of a module beside the environment's own, or None where that module does not exist."""
    package = type(env).__module__.rpartition(".")[0]
    if not package or importlib.util.find_spec(f"{package}.{module}") is None:
        return None
    return getattr(importlib.import_module(f"{package}.{module}"), name, None)
