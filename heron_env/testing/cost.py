"""Check that work grows no faster than agents and what they observe, and messages no faster than agents."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

from heron_env.envs.base import HeronEnv
from heron_env.errors import HeronError
from heron_env.testing.check import Remark, Subject, failed, parameters_of, passed, skipped, warning
from heron_env.testing.determinism import is_ours
from heron_env.testing.rollouts import noops

STEPS = 2
FACTORS = (1, 4, 16)
TOLERANCE = 1.5
"""Cost per further agent may grow by so much: zones and groups come in steps."""


def linear_work(subject: Subject) -> Iterator[Remark]:
    """With more agents the work for each of them, and for each number they observe, stays the same."""
    sizing = _sizes(subject)
    if sizing is None:
        yield skipped("the factory takes no number of agents (such as n, num_agents); with one, growth is measured")
        return
    name, values = sizing
    counts: dict[str, list[int]] = {}
    agents = []
    for value in values:
        env = subject.build(**{name: value})
        agents.append(len(env.hierarchy))
        for what, count in _counted(subject, name, value, env).items():
            counts.setdefault(what, []).append(count)
    shape = f"with {name}={', '.join(map(str, values))} ({', '.join(map(str, agents))} agents)"
    floats, pairs = counts[FLOATS], counts[PAIRS]
    sizes = {
        AGENTS: agents,
        WORK: [sum(parts) for parts in zip(agents, floats, pairs, strict=True)],
        TALK: [sum(parts) for parts in zip(agents, pairs, strict=True)],
    }
    for what, (than, cure) in CURES.items():
        slope, later = _slopes(sizes[than], counts[what])
        if later > TOLERANCE * slope + 1.0:
            text = f"{what} grow faster than {than}: {', '.join(map(str, counts[what]))} {shape}"
            yield (warning if what in (FLOATS, PAIRS) else failed)(text, cure)
    yield passed(shape)


FLOATS, PAIRS = "floats observed", "pairs that tell each other"
ROUND = (
    "go through agents once: whole columns world[Class].Feature.field instead of loops in loops, Children[...] for sums"
)
AGENTS, WORK, TALK = "the agents", "the agents and what they observe", "the agents and who tells whom"
CURES = {
    "lines run to build": (WORK, "build each agent once, and look others up by dict, not by searching lists"),
    "lines run to reset": (WORK, ROUND),
    "lines run to step": (WORK, ROUND),
    "messages sent": (TALK, "let agents hear from their parent or neighbours"),
    PAIRS: (AGENTS, "legal; if not all need to hear all, tell along a ring, a star or chosen pairs"),
    FLOATS: (AGENTS, "legal; if not all need to see all, narrow the visibility tags, or show sums"),
}
"""What is counted -> (what it may grow with, how to mend it)."""


def _counted(subject: Subject, name: str, value: int, env: HeronEnv) -> dict[str, int]:
    policies = noops(env)

    def step() -> None:
        for _ in range(STEPS):
            env.step({a: policies[a](None) for a in env.agents})

    work = [lines(lambda: subject.build(**{name: value})), lines(lambda: env.reset(seed=subject.seed)), lines(step)]
    result = env.run_event_driven(policies, seed=subject.seed, t_end=STEPS * env.dt)
    simulation = env.simulation
    floats = sum(len(view.columns) for view in simulation.model.plan.views)
    return dict(zip(CURES, [*work, result.messages.sent, len(simulation.exchange.edges), floats], strict=True))


def lines(task: Callable[[], Any]) -> int:
    """How many lines of Python outside the library run, each pass of a loop counted: the same on every machine."""
    count = 0

    def local(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal count
        count += event == "line"
        return local

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        return None if is_ours(frame) else local

    before, collects = sys.gettrace(), gc.isenabled()
    gc.disable()  # finalisers of what others left behind would run, and count, at any time
    sys.settrace(trace)
    try:
        task()
    finally:
        sys.settrace(before)
        if collects:
            gc.enable()
    return count


def _slopes(sizes: list[int], counts: list[int]) -> tuple[float, float]:
    """Growth per unit of size from the first to the second size, and from the second to the third."""
    (a, b, c), (x, y, z) = sizes, counts
    return (y - x) / (b - a), (z - y) / (c - b)


def _sizes(subject: Subject) -> tuple[str, list[int]] | None:
    """The argument that sets the number of agents, and three values; None if there is none."""
    for name, parameter in (parameters_of(subject.factory) or {}).items():
        value = subject.options.get(name, parameter.default)
        if not isinstance(value, int) or isinstance(value, bool) or value < 1 or not _counts(name):
            continue
        values = [value * factor for factor in FACTORS]
        try:
            sizes = [len(subject.build(**{name: v}).hierarchy) for v in values]
        except (HeronError, ValueError, TypeError):
            continue
        if sizes[0] < sizes[1] < sizes[2]:
            return name, values
    return None


def _counts(name: str) -> bool:
    """Does this argument look like a number of agents?"""
    return name in ("n", "size", "count", "agents") or name.startswith(("n_", "num_", "number_of_"))
