"""Remedies for policies that act late or on old data, as policies around any other and for either clock.

To hold is what every policy does by itself: it decides on the last that arrived. Each remedy has a `PolicySpec` that
builds it around another one, so they can be put into each other and travel to a process:

    Smoothing(TrainedRun("runs/a"), last="Setpoint.power", share=0.25)
    LocalFallback(TrainedRun("runs/a"), Baseline("grid-friendly"), oldest=120.0)   # observe_age=True
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from heron_env.core.policy import AnyPolicy, Decide, Keys, OnBatches, Policies, Policy
from heron_env.errors import ConfigError
from heron_env.lab import benchmark
from heron_env.lab.policies import PolicySpec
from heron_env.lab.remembering import Remembering
from heron_env.lab.trained import decide_batch, on_vectors

if TYPE_CHECKING:
    from heron_env.envs.base import HeronEnv

Vectors = NDArray[np.float32]
Floats = NDArray[np.float64]
AGE = "age."


class Smoothed(OnBatches):
    """Goes only a share of the way from the action in force to the one wanted: late feedback overshoots less.

    Args:
        policy: what wants.
        last: columns of the observation whose sum is the action in force.
        share: of the way, above 0 to 1; 1 changes nothing.
    """

    def __init__(self, policy: Policy | Decide, last: Sequence[int], share: float) -> None:
        self.policy, self.last, self.share = policy, np.asarray(last), share

    def forward_batch(self, vectors: Vectors, draws: Keys | None = None) -> Floats:
        """Actions `[n, 1]` of observations `[n, d]`."""
        last = np.asarray(vectors)[:, self.last].astype(np.float64).sum(axis=1, keepdims=True)
        return np.asarray((1.0 - self.share) * last + self.share * decide_batch(self.policy, vectors, None, draws))


class Fallback(OnBatches):
    """Another policy decides while what is seen is too old.

    Args:
        policy: decides on fresh data.
        local: decides on old data; it should not need what is old.
        ages: columns of the observation that are ages, s.
        oldest: the greatest age that `policy` decides on, s.
    """

    def __init__(self, policy: Policy | Decide, local: Policy | Decide, ages: Sequence[int], oldest: float) -> None:
        self.policy, self.local, self.ages, self.oldest = policy, local, np.asarray(ages), oldest

    def forward_batch(
        self, vectors: Vectors, masks: NDArray[np.int8] | None = None, draws: Keys | None = None
    ) -> Floats:
        """Actions `[n, k]` of observations `[n, d]`."""
        old = np.asarray(vectors)[:, self.ages].max(axis=1) > self.oldest
        local, other = (decide_batch(policy, vectors, masks, draws) for policy in (self.local, self.policy))
        return np.where(old[:, None], local, other)


@dataclass(frozen=True)
class Smoothing:
    """Policies whose actions are smoothed.

    Attributes:
        of: the policies.
        last: end of the names of the columns whose sum is the action in force, as "Setpoint.power".
        share: the share of the way to the new action that is taken at once.
    """

    of: PolicySpec
    last: str
    share: float

    def __post_init__(self) -> None:
        """Refuse a share that would stand still or overshoot."""
        if not 0.0 < self.share <= 1.0:
            raise ConfigError(f"Smoothing(share={self.share!r}): must be above 0 and at most 1")

    def build(self, env: HeronEnv, seed: int) -> Policies:
        """Build the policies. Raises ConfigError where an agent sees no such column, or has more than one number."""

        def smoothed(agent: str, policy: Policy | Decide) -> Smoothed:
            names, spec = env.observation_names(agent), env.simulation.model.specs[env.hierarchy.index[agent]]
            columns = [place for place, name in enumerate(names) if name.endswith(self.last)]
            if not columns or spec.dim_d or spec.dim_c != 1:
                raise ConfigError(
                    f"Smoothing(last={self.last!r}): {agent!r} must choose one number and see it; it sees {names}"
                )
            return Smoothed(policy, columns, self.share)

        return around(env, self.of.build(env, seed), smoothed)


@dataclass(frozen=True)
class LocalFallback:
    """Policies that switch to local ones when what they see of other agents is too old.

    Attributes:
        of: decides while all of that is fresh.
        local: decides while some of that is older than `oldest`.
        oldest: s.
    """

    of: PolicySpec
    local: PolicySpec
    oldest: float

    def __post_init__(self) -> None:
        """Refuse an age that nothing can have."""
        if not self.oldest >= 0.0:
            raise ConfigError(f"LocalFallback(oldest={self.oldest!r}): must be 0 s or more")

    def build(self, env: HeronEnv, seed: int) -> Policies:
        """Build the policies. Raises ConfigError where an agent sees no ages of others."""
        local = benchmark.by_agent(self.local.build(env, seed), env)

        def guarded(agent: str, policy: Policy | Decide) -> Fallback:
            strangers = {f"{AGE}{name}" for name in env.hierarchy.ids if name != agent}
            ages = [place for place, name in enumerate(env.observation_names(agent)) if name in strangers]
            if not ages:
                raise ConfigError(
                    f"LocalFallback: {agent!r} sees no age of another agent's data; build the environment with "
                    "observe_age=True"
                )
            return Fallback(policy, on_vectors(local[agent]), ages, self.oldest)

        return around(env, self.of.build(env, seed), guarded)


def forgetful(policy: AnyPolicy) -> Policy | Decide:
    """A policy that decides on one observation. Raises ConfigError for one that remembers, or takes no vectors."""
    if isinstance(policy, Remembering):
        raise ConfigError(
            f"a remedy: {type(policy).__name__} remembers what its agent saw and did, which is not what it would be "
            "shown; put a remedy around a policy that decides on one observation"
        )
    return on_vectors(policy)


def around(env: HeronEnv, policies: Policies, wrap: Callable[[str, Policy | Decide], Policy]) -> dict[str, Policy]:
    """`wrap(agent, policy)` for each deciding agent; agents of a group with one policy share what is around it.

    A shared policy is asked once for all of them. Raises ConfigError for a policy that does not take vectors.
    """
    made: dict[str, Policy] = {}
    for group, agents in env.group_map.items():
        of = {agent: forgetful(p) for agent, p in benchmark.rules_of(policies, group, agents).items()}
        first = {id(policy): agent for agent, policy in reversed(of.items())}
        shared = {key: wrap(agent, of[agent]) for key, agent in first.items()}
        made.update({agent: shared[id(policy)] for agent, policy in of.items()})
    return made
