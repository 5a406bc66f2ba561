"""Remedies for policies that act late or on old data, as policies around any other and for either clock.

To hold is what every policy does by itself: it decides on the last that arrived. Each remedy has a `PolicySpec` that
builds it around another one, so they can be put into each other and travel to a process:

    Smoothing(TrainedRun("runs/a"), last="Setpoint.power", share=0.25)
    LocalFallback(TrainedRun("runs/a"), Baseline("grid-friendly"), oldest=120.0)   # observe_age=True
    Predicting(TrainedRun("runs/a"))     # in a sweep; by name "runs/a+predict", and "runs/a+hold"
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from heron_env.core.policy import AnyPolicy, Decide, Keys, OnBatches, Policies, Policy
from heron_env.errors import ConfigError
from heron_env.given import whole
from heron_env.lab import benchmark
from heron_env.lab.black_boxes import BlackBox
from heron_env.lab.policies import Baseline, PolicySpec
from heron_env.lab.predicting import LinearModel, Model, Predicted, TransitionRecorder
from heron_env.lab.remembering import Remembering
from heron_env.lab.trained import decide_batch, on_vectors
from heron_env.scheduling.drawn import AnySchedule
from heron_env.scheduling.timing import to_seconds

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


class Blind(OnBatches):
    """Shows a policy the first `width` columns alone."""

    def __init__(self, policy: Policy | Decide, width: int) -> None:
        self.policy, self.width = policy, width

    def forward_batch(
        self, vectors: Vectors, masks: NDArray[np.int8] | None = None, draws: Keys | None = None
    ) -> Floats:
        """Actions `[n, k]` of observations `[n, d]`."""
        return decide_batch(self.policy, np.asarray(vectors)[:, : self.width], masks, draws)


@dataclass(frozen=True)
class Smoothing:
    """`Smoothed` around each policy of `of`.

    Attributes:
        of: what is smoothed.
        last: end of the names of the columns whose sum is the action in force, as "Setpoint.power".
        share: of the way to the wanted action that is gone at once.
    """

    of: PolicySpec
    last: str
    share: float

    def __post_init__(self) -> None:
        """Refuse a share that would stand still or overshoot."""
        if not 0.0 < self.share <= 1.0:
            raise ConfigError(f"Smoothing(share={self.share!r}): must be above 0 and at most 1")

    def build(self, env: HeronEnv, seed: int) -> Policies:
        """Raises ConfigError where an agent sees no such column, or has more than one number to choose."""

        def smoothed(agent: str, policy: Policy | Decide) -> Smoothed:
            names, spec = env.observation_names(agent), env.simulation.specs[env.hierarchy.index[agent]]
            columns = [place for place, name in enumerate(names) if name.endswith(self.last)]
            if not columns or spec.dim_d or spec.dim_c != 1:
                raise ConfigError(
                    f"Smoothing(last={self.last!r}): {agent!r} must choose one number and see it; it sees {names}"
                )
            return Smoothed(policy, columns, self.share)

        return around(env, self.of.build(env, seed), smoothed)


@dataclass(frozen=True)
class LocalFallback:
    """`Fallback` around each policy of `of`, by the ages of what an agent sees of other agents.

    Attributes:
        of: decides while all of it is fresh.
        local: decides while some of it is older than `oldest`.
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
        """Raises ConfigError where an agent sees no ages of others."""
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


@dataclass(frozen=True)
class WithoutAges:
    """A policy made for an environment without ages, in one with `observe_age=True`: it does not see them."""

    of: PolicySpec

    def build(self, env: HeronEnv, seed: int) -> Policies:
        """Ages are the last columns of an observation. Raises ConfigError where they are not: it is padded."""

        def blind(agent: str, policy: Policy | Decide) -> Blind:
            aged = [name.startswith(AGE) for name in env.observation_names(agent)]
            if aged != sorted(aged):
                raise ConfigError(
                    f"WithoutAges: the ages that {agent!r} sees are not its last numbers, "
                    "as its observation is padded; build the environment without pad=True"
                )
            return Blind(policy, aged.count(False))

        return around(env, self.of.build(env, seed), blind)


@dataclass(frozen=True)
class Predicting:
    """`Predicted` around each policy of `of`: a predictor as Smith's, with a model that is given or learned.

    What is predicted over is the age of the agent's own data where it sees it (observe_age=True), else the schedule's
    mean obs_delay, and the mean act_delay; messages' delays count by ages alone.

    Attributes:
        of: policies that decide on one observation each.
        model: for all groups, or by group; None: learned by least squares from episodes on the synchronous clock.
        schedule: under which the policies will run; None: nothing is late. A sweep gives its conditions'.
        episodes: by `of`, and as many at random, from which a model is learned.
    """

    of: PolicySpec
    model: Model | Mapping[str, Model] | None = None
    schedule: AnySchedule = None
    episodes: int = 4

    def __post_init__(self) -> None:
        """Refuse to learn from nothing."""
        whole(self.episodes, "Predicting(episodes)", 1)

    def under(self, schedule: AnySchedule) -> Predicting:
        """For episodes under this schedule."""
        return replace(self, schedule=schedule)

    def prepared(self, env: HeronEnv) -> Predicting:
        """With its models."""
        return self if self.model is not None else replace(self, model=self._learned(env))

    def build(self, env: HeronEnv, seed: int) -> Policies:
        """Raises ConfigError for policies that remember, or take no vectors."""
        models = self.prepared(env).model
        timings = env.timings if self.schedule is None else env.timings_of(self.schedule)
        of = benchmark.by_agent(self.of.build(env, seed), env)
        made: dict[str, Policy] = {}
        for group, agents in env.group_map.items():
            model: Any = models[group] if isinstance(models, Mapping) else models
            for agent in agents:
                rank, age = env.hierarchy.index[agent], own_age(env, agent)
                timing, noop = timings[rank], env.simulation.specs[rank].noop
                late = 0 if self.schedule is None else timing.act + (timing.obs if age is None else 0)
                policy = forgetful(of[agent], "Predicting")
                made[agent] = Predicted(policy, model, noop, late / timing.tick, age, to_seconds(timing.tick))
        return made

    def _learned(self, env: HeronEnv) -> dict[str, Model]:
        """A model of each group."""
        episodes: dict[str, list[tuple[Vectors, Floats, Vectors]]] = {group: [] for group in env.group_map}
        for number in range(self.episodes):
            for spec in (self.of, Baseline(benchmark.RANDOM)):
                policies = benchmark.by_agent(spec.build(env, number), env)
                noted = {
                    agent: TransitionRecorder(forgetful(policy, "Predicting")) for agent, policy in policies.items()
                }
                env.run_synchronous(noted, seed=LEARNING + number)
                for group, agents in env.group_map.items():
                    episodes[group] += [noted[agent].transitions() for agent in agents]
        return {group: LinearModel.fitted(of_group) for group, of_group in episodes.items()}


LEARNING = 3_000_000
"""First seed of the episodes that models are learned from."""
BY_NAME: dict[str, Callable[[PolicySpec], PolicySpec]] = {"hold": lambda spec: spec, "predict": Predicting}
"""What stands behind + in the name of a policy."""


def own_age(env: HeronEnv, agent: str) -> int | None:
    """The column that is the age of an agent's own data; None: there is none."""
    if isinstance(env, BlackBox):
        return env.own_age(agent)
    names = env.observation_names(agent)
    return names.index(AGE + agent) if AGE + agent in names else None


def forgetful(policy: AnyPolicy, remedy: str) -> Policy | Decide:
    """A policy that decides on one observation. Raises ConfigError for one that remembers, or takes no vectors."""
    if isinstance(policy, Remembering):
        raise ConfigError(
            f"{remedy}: {type(policy).__name__} remembers what its agent saw and did, which is not what it would be "
            f"shown; put {remedy} around a policy that decides on one observation"
        )
    return on_vectors(policy)


def around(env: HeronEnv, policies: Policies, wrap: Callable[[str, Policy | Decide], Policy]) -> dict[str, Policy]:
    """`wrap(agent, policy)` for each deciding agent; agents of a group with one policy share what is around it.

    A shared policy is asked once for all of them. Raises ConfigError for a policy that does not take vectors.
    """
    made: dict[str, Policy] = {}
    for group, agents in env.group_map.items():
        of = {agent: forgetful(p, "a remedy") for agent, p in benchmark.rules_of(policies, group, agents).items()}
        first = {id(policy): agent for agent, policy in reversed(of.items())}
        shared = {key: wrap(agent, of[agent]) for key, agent in first.items()}
        made.update({agent: shared[id(policy)] for agent, policy in of.items()})
    return made
