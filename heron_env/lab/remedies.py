"""Remedies for policies that act late or on old data, as policies around any other and for either clock.

To hold is what every policy does by itself: it decides on the last that arrived. Each remedy has a `PolicySpec` that
builds it around another one, so they can be put into each other and travel to a process:

    Smoothing(TrainedRun("runs/a"), last="Setpoint.power", share=0.25)
    LocalFallback(WithoutAges(TrainedRun("runs/a")), Baseline("grid-friendly"), oldest=120.0)   # observe_age=True
    Predicting(TrainedRun("runs/a"))     # in a sweep; by name "runs/a+predict", and "runs/a+hold"
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from heron_env.core.policy import AnyPolicy, Decide, Keys, OnBatches, Policies, Policy, decide_with
from heron_env.errors import ConfigError
from heron_env.given import whole
from heron_env.lab import benchmark
from heron_env.lab.black_boxes import BlackBox
from heron_env.lab.policies import Baseline, PolicySpec
from heron_env.lab.trained import Network, Remembering, decide_batch, on_vectors
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


Model = Callable[[Vectors, Floats], Vectors]
"""One decision further: observations `[n, d]` and actions in force `[n, k]` to the next observations `[n, d]`."""
DEEPEST = 64
"""Decisions that are predicted over at most."""


class Predicted(Remembering):
    """Shows a policy what will be so when its decision takes effect: a model is rolled over its last decisions.

    Args:
        policy: decides on one observation.
        model: of one decision; never asked where nothing is late.
        noop: `[k]`, in force before the first decision.
        late: decisions by which effects are late, in the mean.
        age: column of the observation that is the age of the agent's own data, which is then added; None: there is
            none.
        tick: s between two decisions.
    """

    def __init__(
        self, policy: Policy | Decide, model: Model, noop: Floats, late: float, age: int | None = None,
        tick: float = 1.0,
    ) -> None:  # fmt: skip
        self.policy, self.model, self.late, self.age, self.tick = policy, model, late, age, tick
        self._noop = np.broadcast_to(noop, (DEEPEST, len(noop)))
        self._decided: Floats = np.zeros((0, *self._noop.shape))

    def forward_rows(
        self, vectors: Vectors, who: NDArray[np.int64], first: NDArray[np.bool_],
        masks: NDArray[np.int8] | None = None, draws: Keys | None = None,
    ) -> Floats:  # fmt: skip
        """As any that remembers."""
        decided, seen = self._predict(vectors, who, first)
        actions = decide_batch(self.policy, seen, masks, draws)
        self._decided[who] = np.concatenate([decided[:, 1:], actions[:, None]], axis=1)
        return actions

    def forward(self, observation: Vectors, mask: Any = None, draw: int | None = None) -> Any:
        """The policy's action, in its own form, for the agent's next observation `[d]`."""
        first, self._first = np.array([self._first]), False
        decided, seen = self._predict(np.asarray(observation)[None], np.zeros(1, dtype=np.int64), first)
        action = decide_one(self.policy, seen[0], mask, draw)
        self._decided[0] = np.concatenate([decided[0, 1:], np.reshape(action, (1, -1))])
        return action

    def _predict(self, vectors: Vectors, who: NDArray[np.int64], first: NDArray[np.bool_]) -> tuple[Floats, Vectors]:
        """What was decided lately, the newest last, `[n, DEEPEST, k]`, and what will be seen then, `[n, d]`."""
        missing = max(0, int(who.max(initial=-1)) + 1 - len(self._decided))
        self._decided = np.pad(self._decided, ((0, missing), (0, 0), (0, 0)))
        decided = np.where(first[:, None, None], self._noop, self._decided[who])
        ages = np.zeros(len(vectors)) if self.age is None else vectors[:, self.age] / self.tick
        steps = np.minimum(np.rint(ages + self.late), DEEPEST)
        seen = vectors
        for back in range(int(steps.max(initial=0)), 0, -1):
            seen = np.where(steps[:, None] >= back, self.model(seen, decided[:, -back]), seen)
        return decided, seen


def decide_one(policy: Policy | Decide, vector: Vectors, mask: Any, draw: int | None) -> Any:
    """What a policy decides on one vector `[d]`, in its own form."""
    return decide_with(policy, cast(Any, None), lambda _: mask)(vector, 0, lambda: cast(int, draw))


@dataclass(frozen=True, repr=False)
class LinearModel:
    """A model in which observations change by what is linear in them and in the action (a choice is its number)."""

    change: Network

    @classmethod
    def fitted(cls, episodes: Sequence[tuple[Vectors, Floats, Vectors]]) -> LinearModel:
        """By least squares, of observations `[n, d]`, actions `[n, k]` and the next observations `[n, d]`."""
        before, actions, after = (np.concatenate(part).astype(np.float64) for part in zip(*episodes, strict=True))
        inputs = np.concatenate([before, actions], axis=1)
        center, spread = inputs.mean(axis=0), inputs.std(axis=0)
        scale = np.where(spread > 0.0, spread, 1.0)
        columns = np.concatenate([(inputs - center) / scale, np.ones((len(inputs), 1))], axis=1)
        found = np.linalg.lstsq(columns, after - before, rcond=1e-6)[0]
        weights = found[:-1] / scale[:, None]
        bias = found[-1] - center @ weights
        return cls(Network(((weights.astype(np.float32), bias.astype(np.float32)),)))

    def __call__(self, vectors: Vectors, actions: Floats) -> Vectors:
        """The next observations, float32 `[n, d]`; a row's does not depend on the others."""
        return np.asarray(vectors + self.change(np.concatenate([vectors, actions], axis=1).astype(np.float32)))

    def __repr__(self) -> str:
        """By its weights' digest."""
        ((weights, bias),) = self.change.layers
        return f"LinearModel({hashlib.blake2b(weights.tobytes() + bias.tobytes(), digest_size=8).hexdigest()})"


class Noted:
    """Notes what a policy saw and decided."""

    def __init__(self, policy: Policy | Decide) -> None:
        self.policy, self.seen, self.decided = policy, list[Vectors](), list[Any]()

    def forward(self, observation: Vectors, mask: Any = None, draw: int | None = None) -> Any:
        """The policy's action."""
        self.seen.append(np.array(observation))
        self.decided.append(decide_one(self.policy, observation, mask, draw))
        return self.decided[-1]

    def transitions(self) -> tuple[Vectors, Floats, Vectors]:
        """Observations, actions, next observations."""
        seen, decided = np.stack(self.seen), np.array(self.decided, np.float64).reshape(len(self.seen), -1)
        return seen[:-1], decided[:-1], seen[1:]


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
        of, idle = (benchmark.by_agent(each.build(env, seed), env) for each in (self.of, Baseline(benchmark.NOTHING)))
        made: dict[str, Policy] = {}
        for group, agents in env.group_map.items():
            model: Any = models[group] if isinstance(models, Mapping) else models
            for agent in agents:
                timing, age = timings[env.hierarchy.index[agent]], own_age(env, agent)
                late = 0 if self.schedule is None else timing.act + (timing.obs if age is None else 0)
                (noop,) = decide_batch(on_vectors(idle[agent]), np.zeros((1, 1), np.float32))
                policy = forgetful(of[agent], "Predicting")
                made[agent] = Predicted(policy, model, noop, late / timing.tick, age, to_seconds(timing.tick))
        return made

    def _learned(self, env: HeronEnv) -> dict[str, Model]:
        """A model of each group."""
        episodes: dict[str, list[tuple[Vectors, Floats, Vectors]]] = {group: [] for group in env.group_map}
        for number in range(self.episodes):
            for spec in (self.of, Baseline(benchmark.RANDOM)):
                policies = benchmark.by_agent(spec.build(env, number), env)
                noted = {agent: Noted(forgetful(policy, "Predicting")) for agent, policy in policies.items()}
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
