"""What a batch is built from: checked arguments, and the environments."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np

from heron_env.envs.base import HeronEnv
from heron_env.errors import ConfigError
from heron_env.registry import make

FEW_LANES = 256
"""Fewer lanes than this are not worth a second thread."""


def require_count(name: str, value: object) -> None:
    """Raise ConfigError unless it is a whole number from 1 on."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
        raise ConfigError(f"BatchEnv({name}={value!r}): must be a whole number >= 1")


def as_seed(seed: Any) -> int:
    """The seed. Raises ConfigError."""
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
        raise ConfigError(f"seed={seed!r}: must be a whole number >= 0")
    return int(seed)


def builder_of(env: Any, options: dict[str, Any]) -> Callable[[], HeronEnv]:
    """What gives the environment: a function, or one that always returns the same environment."""
    if isinstance(env, str):
        return lambda: make(env, **options)
    if isinstance(env, HeronEnv):
        if options:
            raise ConfigError(
                f"BatchEnv: options {sorted(options)} go with an id or a function; build the env with them"
            )
        return lambda: env
    if not callable(env):
        raise ConfigError(f"BatchEnv({env!r}): give a registered id, an environment, or a function that builds one")
    return lambda: require_env(env(**options), env)


def require_env(made: Any, maker: Any) -> HeronEnv:
    """Raise ConfigError unless this is an environment."""
    if not isinstance(made, HeronEnv):
        raise ConfigError(f"BatchEnv({maker!r}): returned {made!r:.60}; let it return a HeronEnv")
    return made


def threads_for(lanes: int) -> int:
    """As many as there are cores for us, or one."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return 1 if lanes < FEW_LANES else cores


def why_slow(env: HeronEnv, usual: bool) -> str:
    """Why a batch that could have been compiled isn't; empty if that was asked for."""
    imperative = next((agent for agent in env.hierarchy.agents if agent.is_imperative), None)
    if imperative is not None:
        return f"{type(imperative).__name__} has methods where rules could stand"
    return "" if usual else f"{type(env).__name__} has a step() of its own"
