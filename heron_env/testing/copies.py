"""Check that a copy of a running environment goes on like the original."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Iterator
from typing import Any

from heron_env.envs.base import HeronEnv
from heron_env.testing.findings import Remark, failed, passed
from heron_env.testing.probes import waves
from heron_env.testing.recording import Entry, first_difference, one_step
from heron_env.testing.subject import Subject

KEEP = "add what it lacks to get_state() and set_state(), or keep it in features, or derive it from seed and step"


def copies(subject: Subject) -> Iterator[Remark]:
    """In mid-episode a pickled, a copied and a restored environment go on alike."""
    half = max(1, subject.steps // 2)
    for way in ("pickled", "deep copy", "restored by set_state()"):
        env = subject.build()
        policies = waves(env)
        seen, _ = env.reset(seed=subject.seed)
        for _ in range(half):
            if env.agents:
                seen, _ = one_step(env, policies, seen)
        try:
            other = _copied(env, way, subject)
        except Exception as error:  # noqa: BLE001  whatever it is, it becomes a finding
            yield _refused(env, way, error)
            return
        theirs = copy.deepcopy(policies)
        difference = first_difference(
            _go_on(env, policies, seen, half), _go_on(other, theirs, seen, half), "in the original", f"in the {way} one"
        )
        if difference:
            yield failed(difference, KEEP)
            return
    yield passed(f"after {half} steps")


def _copied(env: HeronEnv, way: str, subject: Subject) -> HeronEnv:
    if way == "pickled":
        unpickled: HeronEnv = pickle.loads(pickle.dumps(env))
        return unpickled
    if way == "deep copy":
        return copy.deepcopy(env)
    other = subject.build()
    other.reset(seed=subject.seed + 1)
    other.set_state(env.get_state())
    return other


def _go_on(env: HeronEnv, policies: Any, seen: Any, steps: int) -> list[Entry]:
    entries: list[Entry] = []
    for _ in range(steps):
        if env.agents:
            seen, found = one_step(env, policies, seen)
            entries += found
    return entries


def _refused(env: HeronEnv, way: str, error: Exception) -> Remark:
    """Which attribute can't be copied."""
    culprits = []
    state: Any = env.__getstate__()
    for name, value in state.get("declared", state).items():
        try:
            pickle.dumps(value)
        except Exception:  # noqa: BLE001  its name is what counts
            culprits.append(f"self.{name}, a {type(value).__name__}")
    told = f"; the culprit is {culprits[0]}" if culprits and way == "pickled" else ""
    return failed(
        f"it can't be {way}: {type(error).__name__}: {error}{told}",
        "keep no lambdas, local functions, files or generators on the environment or its agents; define classes and "
        "functions at the top level of a module",
    )
