"""What an environment says of itself: how it is judged and trained on, how it looks, and what `help` tells of it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from heron_env.core.policy import Policies
from heron_env.core.rule import EXCHANGE, wrapped
from heron_env.pictures.notebook import counted, html_table

if TYPE_CHECKING:
    from gymnasium import spaces

    from heron_env.engine.model import Model

MOST_ROWS = 40
"""Agents that a notebook shows."""
INDENT = "\u2003"
CLOCK = ("dt", "physics_substeps", "report_interval")
"""Options of `make()` on which depends what a delay does."""


@dataclass(frozen=True)
class TrainingDefaults:
    """An environment's own settings for training; arguments of `train` override them.

    Attributes:
        options: of `make()` while training, say a coarser control step.
        base: name of the baseline that the trained policy corrects; None: it decides alone.
        hyperparameters: of PPO with these options, those that should be other than `heron_env.lab.learning`'s own.
        under_schedule: what takes their place where a schedule is trained under; its options should leave clock and
            observations as they are in evaluation. None: these, without `dt`, `physics_substeps`, `report_interval`.
    """

    options: Mapping[str, Any] = field(default_factory=dict)
    base: str | None = None
    hyperparameters: Mapping[str, Any] = field(default_factory=dict)
    under_schedule: TrainingDefaults | None = None

    def scheduled(self) -> TrainingDefaults:
        """Return the settings to train with under a schedule: a coarser clock would round its delays down to 0."""
        options = {name: value for name, value in self.options.items() if name not in CLOCK}
        return self.under_schedule or replace(self, options=options)


@dataclass(frozen=True)
class Benchmark:
    """References for judging policies in an environment; any part may be missing.

    Attributes:
        baselines: seed -> {name: policies}, policies as `run_synchronous` takes them.
        tuned: (name, constants by name, seed) -> the policies of that baseline with these constants instead of its own.
        strongest: name of the strongest baseline.
        cases: (split, number, repeats) -> held-out cases, [(options of `make()`, seed)].
        optima: () -> [(a case's options, its seed, the best possible team return)].
        neutral: options of `make()` that leave the optima as they are.
        at_reset: options of `make()` in cases that `reset(options=)` takes as well, for the same episode; baselines do
            not depend on them. Cases that differ in nothing else can be run side by side.
        unit: of team returns, for axes and sentences.
        held_out: a sentence on what differs between training and held-out cases, for reports.
    """

    baselines: Callable[[int], Mapping[str, Policies]] | None = None
    tuned: Callable[[str, Mapping[str, float], int], Policies] | None = None
    strongest: str | None = None
    cases: Callable[[str, int, int], list[tuple[dict[str, Any], int]]] | None = None
    optima: Callable[[], Sequence[tuple[Mapping[str, Any], int, float]]] | None = None
    neutral: frozenset[str] = frozenset()
    at_reset: frozenset[str] = frozenset()
    unit: str = ""
    held_out: str = ""


# How it looks


def one_line(name: str, model: Model) -> str:
    """`StorageEnv: 7 agents, 2 decide; dt 60 s in 60 substeps; 29 state columns`."""
    agents, deciding = counted(len(model.hierarchy), "agent"), len(model.possible)
    substeps = "" if model.substeps == 1 else f" in {model.substeps} substeps"
    size = counted(model.layout.size, "state column")
    return f"{name}: {agents}, {deciding} decide; dt {model.dt:g} s{substeps}; {size}"


def html_tree(
    title: str, model: Model, acts: Mapping[str, spaces.Space[Any]], sees: Mapping[str, spaces.Space[Any]]
) -> str:
    """The tree of agents as HTML; `acts`, `sees`: spaces of those that decide."""
    tree = model.hierarchy
    rows = [_row(model, rank, acts, sees) for rank in range(min(len(tree), MOST_ROWS))]
    more = "" if len(tree) <= MOST_ROWS else f"and {len(tree) - MOST_ROWS} more agents. "
    shared = ", ".join(feature.feature_name for feature in model.global_features)
    note = f"{more}{title}.{f' Global: {shared}.' if shared else ''}"
    return html_table(("agent", "class", "features", "decides", "observes"), rows, words=4, note=note)


def _row(model: Model, rank: int, acts: Mapping[str, Any], sees: Mapping[str, Any]) -> list[str]:
    tree, row = model.hierarchy, model.layout.rows[rank]
    agent = tree.ids[rank]
    return [
        f"{INDENT * tree.depth(rank)}{agent}",
        type(tree.agents[rank]).__name__,
        ", ".join(feature.feature_name for feature in row.features),
        str(acts[agent]) if agent in acts else "",
        counted(sees[agent].shape[0], "number") if agent in acts else "",
    ]


# What `help` tells

RULES_ARE = "The rules of their classes define what agents do: help(FieldAgent)."
POLICIES = (
    "Policies: a function of the observation vector (float32 [d]), or an object with forward(vector); by agent id, "
    "group, or '*'. It returns an array [size], a number where size is 1, an Action, or {'c': numbers, 'd': choices}. "
    "Of a Discrete(n) action: the choice, counted from 0, as 2 or np.int64(2) or [2]; of MultiDiscrete one for each. "
    "An object with answer(asked) gets the agent and the time as well, and returns an Answer(action)."
)
INFOS: dict[str, str] = {
    "is_active": "1 where its action will count in the coming step, else 0",
    "decision": "where its last action came from, a code; env.last_decisions[agent] has it in words",
    "aoi": "age of information: s since each source agent was measured, in the order of the observation",
    "action_mask": "of agents with discrete actions: which choices are allowed",
}
"""What `infos[agent]` holds, beside what the agent's get_local_info adds."""


def hooks_in_words(hooks: Mapping[str, Callable[..., Any]]) -> str:
    """Every hook with its signature and what it is for."""
    lines = [
        "Hooks, to be overridden; `begin`, `advance` and `finish` also as @staticmethod @rule, without `self`:",
        "",
    ]
    for name, hook in hooks.items():
        shown = ", ".join(inspect.signature(hook).parameters)
        first = (inspect.getdoc(hook) or "").partition("\n")[0]
        lines.append(f"    {name}({shown}): {first}".rstrip(": "))
    return "\n".join(lines)


def infos_in_words() -> str:
    """Every info and what it means."""
    listed = [f"    {name}: {what}" for name, what in INFOS.items()]
    return "\n".join(["infos[agent] holds numbers of fixed shape, and what its get_local_info adds:", "", *listed])


def help_texts(hooks: Mapping[str, Callable[..., Any]]) -> tuple[str, ...]:
    """Everything that `help(HeronEnv)` adds; `hooks`: the functions that it may override."""
    return RULES_ARE, hooks_in_words(hooks), wrapped(POLICIES), infos_in_words(), wrapped(EXCHANGE)
