"""Checks that what is declared is there and holds: building, spaces, groups, rules, bounds, who writes what."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from heron_env.core.rule import rule_spec
from heron_env.envs.base import HeronEnv
from heron_env.envs.unused_rules import unused_rules
from heron_env.errors import RuleError
from heron_env.testing.check import Broken, Remark, Subject, failed, in_python, passed, required, warning
from heron_env.testing.rollouts import choices, event_driven, extremes, one_step, synchronous, waves


def builds(subject: Subject) -> Iterator[Remark]:
    """It builds twice, alike and apart, and starts."""
    missing = [name for name in required(subject.factory) if name not in subject.options]
    if missing:
        raise Broken(
            f"it can't be built without {', '.join(missing)}",
            "give it defaults, or check a function without required arguments that builds it with its agents",
        )
    one, two = subject.build(), subject.build()
    for env in (one, two):
        if not isinstance(env, HeronEnv):
            raise Broken(f"the factory returned {env!r}", "let it return a HeronEnv")
    if one is two or one.system is two.system:
        mend = "build environment and agents anew in each call"
        raise Broken("two calls of the factory share an environment or its agents", mend)
    for name in ("possible_agents", "state_names", "group_map", "observation_spaces", "action_spaces"):
        if getattr(one, name) != getattr(two, name):
            raise Broken(
                f"{name} of two environments built alike differ: {getattr(one, name)} and {getattr(two, name)}",
                "let nothing but the arguments decide what is built",
            )
    one.reset(seed=subject.seed)
    yield passed(f"{len(one.hierarchy)} agents, {len(one.possible_agents)} decide, {one.state_space.shape[0]} numbers")


def runs(subject: Subject) -> Iterator[Remark]:
    """It runs in both clocks, whatever agents do."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            for end in (0, 1, None):
                env = subject.build()
                synchronous(env, subject.seed, subject.steps, extremes(env, end))
            event_driven(subject.build(), subject.seed, subject.steps)
        except RuleError as error:
            mend = "guard divisions, roots and logarithms in that rule, and return what it declares"
            raise Broken(str(error), mend) from error
    texts = dict.fromkeys(f"{w.category.__name__}: {w.message} ({Path(w.filename).name}:{w.lineno})" for w in caught)
    for text in list(texts)[:3]:
        yield warning(text, "the place that warns is named; mend it there")


def declared_spaces(subject: Subject) -> Iterator[Remark]:
    """Spaces are finite, and the same objects each time."""
    env = subject.build()
    for agent in env.possible_agents:
        for what in ("observation_space", "action_space"):
            space, again = getattr(env, what)(agent), getattr(env, what)(agent)
            if space is not again or getattr(env, f"{what}s").get(agent) is not space:
                raise Broken(
                    f"{what}({agent!r}) is a new object at each call, or another than {what}s[{agent!r}]",
                    f"build it once and keep it in {what}s",
                )
            if isinstance(space, spaces.Box) and not (np.isfinite(space.low).all() and np.isfinite(space.high).all()):
                raise Broken(f"{what}({agent!r}) is infinite: {space}", "declare low and high of each quantity")
    layout = env.simulation.model.layout
    loose = np.flatnonzero(~np.isfinite(layout.low) | ~np.isfinite(layout.high))
    if len(loose):
        names = list(dict.fromkeys(layout.names[i] for i in loose))
        yield warning(
            f"{_some(names)}: no bounds, so spaces use -1e6 and 1e6 and networks see badly scaled numbers",
            f"declare them: {names[0].partition('.')[2]}: float = quantity(default=..., low=..., high=...)",
        )


def groups(subject: Subject) -> Iterator[Remark]:
    """Groups hold each deciding agent once, with equal spaces."""
    env = subject.build()
    members = [agent for group in env.group_map.values() for agent in group]
    if sorted(members) != sorted(env.possible_agents):
        raise Broken(
            f"group_map holds {sorted(members)}, the deciding agents are {sorted(env.possible_agents)}",
            "leave group_map as HeronEnv makes it, or list every deciding agent exactly once",
        )
    for name, group in env.group_map.items():
        first = (env.observation_space(group[0]), env.action_space(group[0]))
        for agent in group[1:]:
            if (env.observation_space(agent), env.action_space(agent)) != first:
                raise Broken(
                    f"{group[0]} and {agent} of group {name!r} have different spaces, but would share a policy",
                    "give them different name stems (before the last _), or equal features and actions",
                )
    yield passed(", ".join(f"{name} ({len(group)})" for name, group in env.group_map.items()))


def rules(subject: Subject) -> Iterator[Remark]:
    """All agents are written in rules, somebody earns, all of it counts, and nothing is written that nobody calls."""
    env = subject.build()
    for entry in unused_rules(env.simulation):
        yield warning(entry.what, entry.mend)
    by_hand: dict[str, int] = {}
    for agent in env.hierarchy.agents:
        if agent.is_imperative:
            by_hand[type(agent).__name__] = by_hand.get(type(agent).__name__, 0) + 1
    if by_hand:
        counted = ", ".join(f"{name} ({n})" for name, n in by_hand.items())
        yield warning(
            f"{counted}: methods on self run one agent at a time in every execution, several times slower",
            "legal; for speed write them as @staticmethod @rule",
        )
    if env._simulates:
        yield warning(
            f"{type(env).__name__} uses simulate() or its parts, which build dictionaries of all states each substep",
            "legal; for speed override advance(world, dt), which reads and writes columns",
        )


def _some(names: list[Any], most: int = 3) -> str:
    return ", ".join(map(str, names[:most])) + (f" and {len(names) - most} more" if len(names) > most else "")


def bounds(subject: Subject) -> Iterator[Remark]:
    """Quantities stay numbers within their bounds, whatever agents do."""
    reached: set[int] = set()
    for name, end in (("lowest", 0), ("highest", 1), ("random extreme", None)):
        env = subject.build()
        layout, policies = env.simulation.model.layout, extremes(env, end)
        observations, _ = env.reset(seed=subject.seed)
        for _ in range(subject.steps):
            if not env.agents:
                observations, _ = env.reset()
            observations, *_ = env.step(choices(env, policies, observations))
            truth = env.simulation.truth
            bad = np.flatnonzero(~(np.isfinite(truth) & (truth >= layout.low) & (truth <= layout.high)))
            if len(bad):
                i = int(bad[0])
                raise Broken(
                    f"under the {name} actions {env.state_names[i]} became {float(truth[i])!r} "
                    f"outside [{layout.low[i]}, {layout.high[i]}]",
                    "declare bounds that physics keeps, and write the truth in rules and hooks only, which clip",
                )
        reached |= set(np.flatnonzero(env.simulation.truth != env.simulation.initial).tolist())
    yield passed(f"under lowest, highest and random extreme actions; {len(reached)} quantities moved")


def writes(subject: Subject) -> Iterator[Remark]:
    """Rules write what they declare and nothing else, looking writes nothing."""
    env = in_python(subject.build())
    remarks: list[Remark] = []
    _watch(env, remarks)
    policies, (observations, _) = waves(env), env.reset(seed=subject.seed)
    for _ in range(min(3, subject.steps)):
        if env.agents:
            observations, _ = one_step(env, policies, observations)
    yield from remarks[:1]
    if remarks:
        return
    before = env.simulation.truth.tobytes()
    for name, look in _looks(env):
        look()
        if env.simulation.truth.tobytes() != before:
            raise Broken(f"{name} changed the truth", "read there; write in rules, begin, advance and finish only")


def _looks(env: HeronEnv) -> list[tuple[str, Callable[[], Any]]]:
    return [
        ("kpis()", env.kpis),
        ("training_signal()", env.training_signal),
        ("state()", env.state),
        ("render()", env.render),
        ("get_observation()", lambda: [env.proxy.get_observation(agent) for agent in env.hierarchy.ids]),
    ]


NAMED = {
    "apply": "apply_action",
    "advance": "advance",
    "reward": "compute_local_reward",
    "terminated": "is_terminated",
    "truncated": "is_truncated",
    "info": "get_local_info",
}


def _watch(env: HeronEnv, remarks: list[Remark]) -> None:
    """Let every rule and method of every agent be compared with what it may write."""
    simulation = env.simulation
    for rank, bound in enumerate(simulation.rules.bound):
        for part, name in NAMED.items():
            call = getattr(bound, part)
            if call is not None:
                setattr(bound, part, _watched(env, rank, name, call, remarks))
    simulation.rules.collect()


def _watched(env: HeronEnv, rank: int, name: str, call: Any, remarks: list[Remark]) -> Any:
    """The rule or method `call`, which leaves a remark where it writes more than it may."""
    simulation, agent = env.simulation, env.hierarchy.agents[rank]
    allowed = may_write(env, rank, name)

    def watched(*args: Any, **kwargs: Any) -> Any:
        before = simulation.truth.copy()
        result = call(*args, **kwargs)
        changed = np.flatnonzero((simulation.truth != before) & ~allowed)
        if len(changed):
            column = env.state_names[int(changed[0])]
            remarks.append(
                failed(
                    f"{type(agent).__name__}.{name} of {agent.agent_id} changed {column}, which it does not declare",
                    "return the value and name its quantity in @rule(writes=...); write other agents' and global "
                    "features in the environment's hooks",
                )
            )
        return result

    return watched


def may_write(env: HeronEnv, rank: int, name: str) -> NDArray[np.bool_]:
    """Columns that the agent's rule or method of this name may write."""
    layout = env.simulation.model.layout
    row, spec = layout.rows[rank], rule_spec(getattr(type(env.hierarchy.agents[rank]), name, None))
    allowed = np.zeros(layout.size, dtype=bool)
    if spec is None and name in ("apply_action", "advance"):
        allowed[row.slice] = True  # in the imperative style: its own state
    for start, _, q in row.columns():
        if spec is not None and any(q is target or _stands_in(q, target) for target in spec.writes):
            allowed[start : start + q.size] = True
    return allowed


def _stands_in(q: Any, target: Any) -> bool:
    return bool(q.name == target.name and issubclass(q.owner, target.owner))
