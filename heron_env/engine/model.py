"""The model: all that the engine must know of a simulation to run it."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from heron_env.agents.vertical import Broadcast, SetpointSplit, VectorDecomposition
from heron_env.agents.vertical import Protocol as VerticalProtocol
from heron_env.core.action import ActionSpec
from heron_env.core.feature import FeatureProvider
from heron_env.core.hierarchy import Hierarchy
from heron_env.core.layout import Layout
from heron_env.errors import ConfigError
from heron_env.observability.plan import ObservationPlan

ENDLESS: Final = 2**63 - 1
"""More control steps than there are."""


class Native(NamedTuple):
    """Code that follows a phase and is no rule: an environment's own, what neighbours tell each other, or Python.

    phase: its name (arrays.py); before `begin`, for the rest of that reads what this writes. loop: f(the engine's
    table, `at`, first lane, last lane + 1) returns how many lanes failed. at: the address of a table of its arrays,
    which live as long as the environment. python: does it call Python (called.py)? That comes after compiled code.
    """

    phase: str
    loop: Callable[[int, int, int, int], int]
    at: int
    python: bool = False


@dataclass(frozen=True, eq=False)
class Model:
    """All that is declared of an environment and never changes: one hierarchy and its law; every tuple is by rank.

    Attributes:
        possible: ranks of the agents that decide for themselves.
        commanded: does the parent's protocol say what this agent does?
        clocks: the agent whose ticks count for this one (T10).
        dt, dt_ns: control step, s and ns.
        substeps: of physics, in a control step.
        last_step: the control step after which everyone is truncated; ENDLESS without a limit.
        any_ends: is the episode over when the first possible agent ends?
        ticks: (interval, phase) of decisions, ns.
        observers: ranks whose vectors, rewards and ends are published, in this order.
        hooks: those of begin, advance and finish that are world rules.
        owner: name of the class that has them, for messages.
        native: what follows phases in compiled code that is no rule.
    """

    hierarchy: Hierarchy
    layout: Layout
    plan: ObservationPlan
    global_features: tuple[type[FeatureProvider], ...]
    specs: tuple[ActionSpec, ...]
    possible: tuple[int, ...]
    commanded: tuple[bool, ...]
    clocks: tuple[int, ...]
    dt: float
    dt_ns: int
    substeps: int
    last_step: int
    any_ends: bool
    ticks: tuple[tuple[int, int], ...]
    observers: tuple[int, ...]
    hooks: Mapping[str, Callable[..., Any]] = field(default_factory=dict)
    owner: str = "world"
    native: tuple[Native, ...] = ()


def why_plain(hierarchy: Hierarchy) -> str | None:
    """Why this hierarchy can't be compiled, as half a sentence; None if it can.

    Compiled loops know the three protocols of this library; one of the user's is a Python function.
    """
    for agent in hierarchy.agents:
        if agent.is_imperative:
            return f"{agent!r} is written with methods on `self` instead of rules"
        if agent.protocol is not None and splits_in_python(agent.protocol):
            return f"the protocol of {agent!r}, {type(agent.protocol).__name__}, splits commands in Python"
    return None


def splits_in_python(protocol: VerticalProtocol) -> bool:
    """Is this a protocol of the user's?"""
    return getattr(type(protocol), "split", None) not in COMPILED_SPLITS


COMPILED_SPLITS = (VectorDecomposition.split, Broadcast.split, SetpointSplit.split)
"""What compiled loops do themselves."""


def compiled_by_default() -> bool:
    """Are rules compiled where nobody says? HERON_COMPILE: 1, which is the default, or 0. Raises ConfigError."""
    setting = os.environ.get("HERON_COMPILE") or "1"
    if setting not in ("0", "1"):
        raise ConfigError(
            f"HERON_COMPILE={setting!r}: must be 1 (compile rules), 0 (run them in plain Python), or unset"
        )
    return setting == "1"
