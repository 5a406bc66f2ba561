"""The vocabulary of an environment: its hooks, what policies return, what infos hold; for `help(HeronEnv)`."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from heron_env.core.rule import EXCHANGE, wrapped
from heron_env.envs.description import DESCRIPTIONS, Described
from heron_env.envs.hooks import HOOKS, WORLD_HOOKS, Hooks

OVERRIDABLE: Mapping[str, Callable[..., Any]] = {
    **{name: getattr(Hooks, name) for name in WORLD_HOOKS},
    **{name: getattr(Described, name) for name in DESCRIPTIONS},
    **{name: getattr(Hooks, name) for name in HOOKS},
}
"""Every function that an environment may override, as HeronEnv has it; those that most do first."""
RULES_ARE = "What agents do is said by the rules of their classes: help(FieldAgent)."
POLICIES = (
    "Policies: a function of the observation vector (float32 [d]), or an object with forward(vector); by agent id, "
    "group, or '*'. It returns an array [size], a number where size is 1, an Action, or {'c': numbers, 'd': choices}. "
    "Of a Discrete(n) action: the choice, counted from 0, as 2 or np.int64(2) or [2]; of MultiDiscrete one for each. "
    "An object with answer(asked) is told who asks and when, and returns an Answer(action)."
)
INFOS: dict[str, str] = {
    "is_active": "1 where its action will count in the coming step, else 0",
    "decision": "where its last action came from, a code; env.last_decisions[agent] has it in words",
    "aoi": "age of information: s since each source agent was measured, in the order of the observation",
    "action_mask": "of agents with discrete actions: which choices are allowed",
}
"""What `infos[agent]` holds, beside what the agent's get_local_info adds."""


def hooks_in_words() -> str:
    """Every hook with its signature and what it is for."""
    lines = [
        "Hooks, to be overridden; `begin`, `advance` and `finish` also as @staticmethod @rule, without `self`:",
        "",
    ]
    for name, hook in OVERRIDABLE.items():
        shown = ", ".join(inspect.signature(hook).parameters)
        first = (inspect.getdoc(hook) or "").partition("\n")[0]
        lines.append(f"    {name}({shown}): {first}".rstrip(": "))
    return "\n".join(lines)


def infos_in_words() -> str:
    """Every info and what it means."""
    listed = [f"    {name}: {what}" for name, what in INFOS.items()]
    return "\n".join(["infos[agent] holds numbers of fixed shape, and what its get_local_info adds:", "", *listed])


def spoken() -> tuple[str, ...]:
    """Everything that `help(HeronEnv)` adds."""
    return RULES_ARE, hooks_in_words(), wrapped(POLICIES), infos_in_words(), wrapped(EXCHANGE)
