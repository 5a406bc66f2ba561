"""What an author wrote and nothing calls or counts: rules and hooks under a wrong name, agents that earn nothing, and
rewards that no agent above counts.

A name near a rule's or hook's, with parameters that fit, is an error (`require_used`); a function that reads features
and that nothing mentions is told by `heron check` and in training (`unused_rules`). Helpers that something mentions are
the author's own, and so is whatever begins with an underscore.
"""

from __future__ import annotations

import difflib
import inspect
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any, NamedTuple

from heron_env.agents.agent import CoordinatorAgent, FieldAgent, SystemAgent
from heron_env.agents.horizontal import Topology
from heron_env.agents.vertical import Protocol
from heron_env.core.action import ActionSpec
from heron_env.core.feature import FeatureProvider
from heron_env.core.rule import RULE_NAMES, RULES, parameters, rule_spec
from heron_env.core.world import World
from heron_env.envs.hooks import COMPILABLE, OVERRIDABLE, Hooks, has_training_rewards
from heron_env.errors import ConfigError, HeronWarning, RuleError
from heron_env.scheduling.timing import OWN_ROWS

if TYPE_CHECKING:
    from heron_env.envs.simulation import Simulation

Features = tuple[type[FeatureProvider], ...]
NEAR = 0.8
"""Least likeness of a name to the one it is taken for: `finnish` to `finish` 0.92, `advance_all` to `advance` 0.78."""
FEATURES = ("own", "parent", "children", "global")
FOREIGN = ("builtins", "typing", "abc", "pettingzoo", "gymnasium")
"""Modules whose classes no author of an environment has written."""
RENAME = "rename it, also if it is a helper: nobody could tell the two apart"


class Unused(NamedTuple):
    """What nothing calls, nobody earns or nobody counts, in words; and how to mend it."""

    what: str
    mend: str


def require_used(simulation: Simulation) -> None:
    """Raise RuleError or ConfigError for what nothing calls, and is called like something that is."""
    for kind, own in _kinds(simulation).items():
        _require_agent(kind, own, tuple(simulation.model.global_features))
    of_env: type = type(simulation.hooks)
    _require_hooks(of_env)


def unused_rules(simulation: Simulation) -> list[Unused]:
    """What nothing calls although it reads features or the world, groups that earn nothing whatever they do, rewards
    that an agent above them leaves out of its own, and those that nobody learns from.
    """
    of_env: type = type(simulation.hooks)
    shared = tuple(simulation.model.global_features)
    entries = [entry for kind, own in _kinds(simulation).items() for entry in _unused(kind, own, shared, of_env)]
    return [
        *entries,
        *_unused_hooks(of_env),
        *_unpaid(simulation),
        *_uncounted(simulation),
        *_unlearned(simulation),
        *_out_of_sight(simulation),
    ]


def warn_of_unused(simulation: Simulation) -> None:
    """A HeronWarning for each of them: before a training, whose caller it names."""
    for entry in unused_rules(simulation):
        warnings.warn(f"{entry.what}; {entry.mend}", HeronWarning, stacklevel=4)


def _kinds(simulation: Simulation) -> dict[type, Features]:
    """The agent classes, with the features of the first agent of each."""
    rows, kinds = simulation.model.layout.rows, dict[type, Features]()
    for rank, agent in enumerate(simulation.model.hierarchy.agents):
        kinds.setdefault(type(agent), rows[rank].features)
    return kinds


def _out_of_sight(simulation: Simulation) -> Iterator[Unused]:
    """Classes that derive from one that the hook `sees` is asked about, and are not asked about themselves."""
    spec, kinds = rule_spec(simulation.hooks.sees), _kinds(simulation)
    of = () if spec is None else spec.of
    for cls in (each for each in dict.fromkeys(of) if each in kinds):
        left = [kind.__name__ for kind in kinds if issubclass(kind, cls) and kind not in of]
        if left:
            yield Unused(
                f"{type(simulation.hooks).__name__}.sees(of={cls.__name__}) is not asked about agents of {left}, which "
                f"derive from {cls.__name__}: tags alone say what they see, and who sees them",
                "if the rule is meant for them, make them agents of one class that differ in a feature",
            )


# Agents

OURS: frozenset[type] = frozenset({*FieldAgent.__mro__, *SystemAgent.__mro__})
DECLARED: Mapping[str, Callable[[Any], bool]] = {
    "features": lambda value: _all_of(value, lambda one: isinstance(one, type) and issubclass(one, FeatureProvider)),
    "action": lambda value: isinstance(value, ActionSpec),
    "protocol": lambda value: isinstance(value, Protocol),
    "own_rows": lambda value: value in OWN_ROWS,
    "exchange": lambda value: isinstance(value, Topology) or _all_of(value, lambda one: isinstance(one, Topology)),
}


@lru_cache(maxsize=256)
def _require_agent(kind: type, own: Features, global_features: Features) -> None:
    for cls, name, raw in _written(kind, OURS, CoordinatorAgent):
        where = f"{cls.__name__}.{name}"
        if isinstance(raw, FunctionType | staticmethod):
            near = _near(name, RULE_NAMES, cls)
            if near and _fits_rule(raw, near, own, global_features, where) and name not in _mentioned(kind):
                remedy = _as_rule(near) if _reads(raw, own, global_features, where) else _as_method(near)
                raise RuleError(f"{where}: nothing calls it. Did you mean {near!r}? Write {remedy}; {RENAME}")
        near = _near(name, DECLARED, cls)
        if near and DECLARED[near](raw) and name not in _mentioned(kind):
            raise ConfigError(f"{where}={raw!r}: nothing reads it. Did you mean {near!r}? {RENAME.capitalize()}")


def _fits_rule(raw: Any, near: str, own: Features, global_features: Features, where: str) -> bool:
    """Could this be the rule `near`, or a method of that name?"""
    names = _parameter_names(raw)
    if names[:1] == ["self"] and not isinstance(raw, staticmethod):
        word = RULES[near]
        return names[1:] in (list(word.method), [*word.method, *word.optional])
    return bool(names) and _roles(raw, own, global_features, where) is not None


def _reads(raw: Any, own: Features, global_features: Features, where: str) -> bool:
    """Do its parameters make it a rule, at least one of them being a feature?"""
    roles = _roles(raw, own, global_features, where)
    return roles is not None and any(role in FEATURES for role in roles)


def _roles(raw: Any, own: Features, global_features: Features, where: str) -> list[str] | None:
    """What its parameters would be if it were a rule; None if it can't be one."""
    try:
        return [parameter.role for parameter in parameters(_function(raw), own, global_features, where)]
    except RuleError:
        return None


def _unused(kind: type, own: Features, global_features: Features, env: type) -> Iterator[Unused]:
    for cls, name, raw in _written(kind, OURS, CoordinatorAgent):
        where = f"{cls.__name__}.{name}"
        if not isinstance(raw, FunctionType | staticmethod) or rule_spec(_function(raw)) is not None:
            continue
        if _reads(raw, own, global_features, where) and name not in _mentioned(kind) | _mentioned(env):
            shown = ", ".join(_parameter_names(raw))
            yield Unused(
                f"{where}({shown}) reads features, and nothing calls it",
                f"name it {', '.join(RULE_NAMES)} and write @staticmethod @rule above; or call it, or take it away",
            )


# Hooks

SETTINGS: Mapping[str, type | tuple[type, ...]] = {
    "dt": (int, float),
    "physics_substeps": int,
    "report_interval": (int, float),
    "global_features": (tuple, list),
    "disturbance_types": Mapping,
    "batched": bool,
}


@lru_cache(maxsize=256)
def _require_hooks(kind: type) -> None:
    for cls, name, raw in _written(kind, _ours(kind)):
        where = f"{cls.__name__}.{name}"
        if isinstance(raw, FunctionType | staticmethod):
            near = _near(name, OVERRIDABLE, cls)
            if rule_spec(_function(raw)) is not None:
                meant = f" Did you mean {near!r}?" if near else ""
                raise RuleError(
                    f"{where}: nothing calls a world rule of that name; rename it to one of {', '.join(COMPILABLE)}."
                    f"{meant}"
                )
            if near and _fits_hook(raw, near) and name not in _mentioned(kind):
                raise RuleError(f"{where}: nothing calls it. Did you mean {near!r}? Write def {_hook(near)}; {RENAME}")
        near = _near(name, SETTINGS, cls)
        if near and isinstance(raw, SETTINGS[near]) and name not in _mentioned(kind):
            raise ConfigError(f"{where}={raw!r}: nothing reads it. Did you mean {near!r}? {RENAME.capitalize()}")


def _fits_hook(raw: Any, near: str) -> bool:
    """Could it be this hook? It takes as much, with or without `self`."""
    names, expected = _parameter_names(raw), _parameter_names(OVERRIDABLE[near])
    return len(names) == len(expected) - isinstance(raw, staticmethod) and (names[:1] == ["self"]) != isinstance(
        raw, staticmethod
    )


def _unused_hooks(kind: type) -> Iterator[Unused]:
    for cls, name, raw in _written(kind, _ours(kind)):
        if not isinstance(raw, FunctionType | staticmethod) or name in _mentioned(kind):
            continue
        if _takes_world(_function(raw)):
            yield Unused(
                f"{cls.__name__}.{name}({', '.join(_parameter_names(raw))}) takes the world, and nothing calls it",
                f"name it {', '.join(COMPILABLE)}; or call it in a hook, or take it away",
            )


def _takes_world(function: Any) -> bool:
    shown = {name: parameter.annotation for name, parameter in _signature(function).items()}
    return any(name == "world" or hint in (World, "World") for name, hint in shown.items())


def _hook(name: str) -> str:
    return f"{name}({', '.join(_parameter_names(OVERRIDABLE[name]))})"


def _ours(kind: type) -> frozenset[type]:
    """Of the classes that an environment's class is made of, those of this package's envs."""
    return frozenset(cls for cls in kind.__mro__ if cls.__module__.startswith("heron_env.envs."))


# Who earns


def _unpaid(simulation: Simulation) -> Iterator[Unused]:
    """Groups of deciding agents none of whose members, nor anybody below, has a reward."""
    if type(simulation.hooks).training_rewards is not Hooks.training_rewards:
        return
    bound, children = simulation.rules.bound, simulation.model.hierarchy.children
    earns = [False] * len(bound)
    for rank in reversed(range(len(bound))):
        earns[rank] = bound[rank].reward is not None or any(earns[child] for child in children[rank])
    unpaid = [
        g
        for g, agents in simulation.group_map.items()
        if not any(earns[simulation.model.hierarchy.index[a]] for a in agents)
    ]
    mend = (
        "give its class @staticmethod @rule def compute_local_reward(...) -> float, or the env training_rewards(world)"
    )
    if not any(earns):
        yield Unused("nobody earns anything: no agent has a reward, so that all rewards are 0", mend)
    elif unpaid:
        yield Unused(f"{', '.join(unpaid)}: neither they nor agents below them have a reward; theirs is 0", mend)


def _uncounted(simulation: Simulation) -> Iterator[Unused]:
    """Agents whose own reward reads nothing of their children, though somebody below them earns; by class."""
    agents, children = simulation.model.hierarchy.agents, simulation.model.hierarchy.children
    paid = [bound.reward is not None for bound in simulation.rules.bound]
    earning: list[list[str]] = [[] for _ in agents]
    by_class: dict[type, tuple[list[str], list[str]]] = {}
    for rank in reversed(range(len(agents))):
        below = [agent for child in children[rank] for agent in earning[child]]
        kind: type = type(agents[rank])
        if paid[rank] and below and not _counts_children(simulation, rank):
            above, left_out = by_class.setdefault(kind, ([], []))
            above.append(agents[rank].agent_id)
            left_out += below
        earning[rank] = [agents[rank].agent_id, *below] if paid[rank] else below
    for kind, (above, left_out) in by_class.items():
        yield Unused(
            f"{kind.__name__}.compute_local_reward reads neither child_rewards nor a feature of its children: the "
            f"rewards of {_some(left_out)} count in no return from {_some(above)} up",
            "add child_rewards.sum(); or, if its reward stands in for theirs, say so: take child_rewards unused",
        )


def _unlearned(simulation: Simulation) -> Iterator[Unused]:
    """Classes of agents that add to their children's rewards what nobody who decides can learn from.

    Nobody above them decides, and no rule of anybody below reads a parent's quantities.
    """
    if has_training_rewards(simulation.hooks):
        return
    hierarchy, shared = simulation.model.hierarchy, tuple(simulation.model.global_features)
    roles, bound = list[set[str]](), simulation.rules.bound
    for rank, agent in enumerate(hierarchy.agents):
        kind, own = type(agent), simulation.model.layout.rows[rank].features
        rules = [rule for name in RULE_NAMES if rule_spec(rule := getattr(kind, name, None)) is not None]
        roles.append({p.role for rule in rules for p in parameters(rule, own, shared, kind.__name__)})
        if bound[rank].reward is not None and rule_spec(getattr(kind, "compute_local_reward", None)) is None:
            return  # a method may read anything
    named = set[type]()
    for rank, agent in enumerate(hierarchy.agents):
        kind, own = type(agent), simulation.model.layout.rows[rank].features
        decide = {rank, *_ancestors(hierarchy.parent, rank)} & set(simulation.model.possible)
        if bound[rank].reward is None or kind in named or decide:
            continue
        reward = {p.role for p in parameters(getattr(kind, "compute_local_reward"), own, shared, kind.__name__)}  # noqa: B009
        below = [other for other in range(rank + 1, len(roles)) if rank in _ancestors(hierarchy.parent, other)]
        if {"child_rewards", "own"} <= reward and not any("parent" in roles[other] for other in below):
            named.add(kind)
            yield Unused(
                f"{kind.__name__}.compute_local_reward adds what its own quantities say to its children's rewards, and "
                "no rule of an agent below reads them: its own part is measured, and nobody learns from it",
                "let the deciding agents' rewards read it (Parent[...]), or give the env training_rewards(world)",
            )


def _ancestors(parent: Sequence[int], rank: int) -> Iterator[int]:
    """From its parent up."""
    while (rank := parent[rank]) >= 0:
        yield rank


def _counts_children(simulation: Simulation, rank: int) -> bool:
    """Does its reward read anything of its children? A method may do so by `self.subordinates`."""
    kind: type = type(simulation.model.hierarchy.agents[rank])
    reward = getattr(kind, "compute_local_reward")  # noqa: B009  a class need not have one
    if rule_spec(reward) is None:
        return "child_rewards" in _parameter_names(reward) or "subordinates" in _used([reward])
    own = simulation.model.layout.rows[rank].features
    roles = _roles(reward, own, tuple(simulation.model.global_features), kind.__name__) or ()
    return "child_rewards" in roles or "children" in roles


def _some(ids: Sequence[str], most: int = 3) -> str:
    """The first of them in the order of their names, and how many more there are."""
    ids = sorted(set(ids))
    more = f" and {len(ids) - most} more" if len(ids) > most else ""
    return ", ".join(ids[:most]) + more


# Names and functions


def _written(kind: type, ours: frozenset[type], *more: type) -> Iterator[tuple[type, str, Any]]:
    """What the author's classes have under names that ours do not have: class, name, value."""
    reserved = {name for cls in (*ours, *more) for name in (*vars(cls), *vars(cls).get("__annotations__", ()))}
    for cls in kind.__mro__:
        if cls in ours or cls in more or cls.__module__ in FOREIGN:
            continue
        for name, raw in vars(cls).items():
            if not name.startswith("_") and name not in reserved and name not in RULE_NAMES:
                yield cls, name, raw


def _near(name: str, names: Iterable[str], cls: type) -> str:
    """The known name that this one is taken for; "" if there is none, or the class has that, too."""
    matches = difflib.get_close_matches(name, list(names), n=1, cutoff=NEAR)
    return matches[0] if matches and matches[0] not in vars(cls) else ""


def _function(raw: Any) -> Any:
    return raw.__func__ if isinstance(raw, staticmethod) else raw


def _signature(function: Any) -> Mapping[str, inspect.Parameter]:
    try:
        return inspect.signature(function).parameters
    except (TypeError, ValueError):
        return {}


def _parameter_names(raw: Any) -> list[str]:
    return list(_signature(_function(raw)))


def _as_rule(near: str) -> str:
    return f"@staticmethod @rule def {near}(...) -> {RULES[near].returns}"


def _as_method(near: str) -> str:
    return f"def {RULES[near].shown(near)}"


@lru_cache(maxsize=256)
def _mentioned(kind: type) -> frozenset[str]:
    """Names that functions and classes in the modules of a class and its ancestors use as attributes or variables."""
    authors = [cls for cls in kind.__mro__ if cls.__module__.partition(".")[0] not in FOREIGN]
    modules = dict.fromkeys(cls.__module__ for cls in authors)
    values = [value for name in modules for value in getattr(sys.modules.get(name), "__dict__", {}).values()]
    classes = [value for value in values if isinstance(value, type) and value.__module__ in modules]
    values += [value for cls in dict.fromkeys([*authors, *classes]) for value in vars(cls).values()]
    functions = (_function(value.fget if isinstance(value, property) else value) for value in values)
    return _used(function for function in functions if isinstance(function, FunctionType))


def _used(functions: Iterable[FunctionType]) -> frozenset[str]:
    """The names that they use as attributes or global variables."""
    codes = [function.__code__ for function in functions]
    names: set[str] = set()
    while codes:
        code = codes.pop()
        names.update(code.co_names)
        codes += [constant for constant in code.co_consts if isinstance(constant, CodeType)]
    return frozenset(names)


def _all_of(value: Any, holds: Callable[[Any], bool]) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str) and bool(value) and all(map(holds, value))
