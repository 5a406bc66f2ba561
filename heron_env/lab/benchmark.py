"""What an environment offers to be judged by: baselines, held-out cases, known optima.

It offers them through its `benchmark()` hook. Any other environment is judged against its no-op and against chance, on
seeds that training does not use.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray
from pydantic import ConfigDict, Field

from heron_env.core.action import ActionSpec
from heron_env.core.hierarchy import Hierarchy
from heron_env.core.masking import drawn
from heron_env.core.policy import AnyPolicy, Keys, OnBatches, Policies, own_draws
from heron_env.envs.base import HeronEnv
from heron_env.envs.description import Benchmark
from heron_env.envs.episodes import EpisodeResult
from heron_env.errors import ConfigError, RunFolderError, did_you_mean
from heron_env.scheduling.disturbances import Disturbance
from heron_env.scheduling.timing import Timing
from heron_env.seeding import stream, uniform_rows

NOTHING, RANDOM = "do nothing", "random"
WITH_CONSTANTS: Final = re.compile(r"(.*\w) ?\((.*)\)")
"""`MPC(follow=0.15, window=6)`."""
MOST_CASES = 1_000_000
SPLITS = {"test": 1_000_000, "validation": 2_000_000}
"""First seed of each split where the environment defines no cases of its own."""


class Env(Protocol):
    """What a study asks of an environment, this library's or a black box: who is in it, its timing, whole episodes."""

    dt: float

    @property
    def hierarchy(self) -> Hierarchy: ...
    @property
    def groups(self) -> Mapping[str, list[str]]: ...
    @property
    def timings(self) -> tuple[Timing, ...]: ...
    def benchmark(self) -> Benchmark: ...
    def disturbance_sets(self) -> Mapping[str, Callable[[int], list[Disturbance]]]: ...
    def run_synchronous(self, *policies: Any, **run: Any) -> EpisodeResult: ...
    def run_event_driven(self, *policies: Any, **run: Any) -> EpisodeResult: ...


@dataclass(frozen=True)
class Case:
    """One evaluation: the seed, and the options with which the environment is built for it."""

    __pydantic_config__ = ConfigDict(extra="forbid")

    seed: Annotated[int, Field(strict=True, ge=-(2**63), lt=2**63)]
    options: dict[str, Any] = field(default_factory=dict)
    optimum: Annotated[float, Field(strict=True, allow_inf_nan=False)] | None = None
    """The best possible team return, where it is known."""

    def __str__(self) -> str:
        """`seed 2, day 2`."""
        return ", ".join([f"seed {self.seed}", *(f"{name} {value}" for name, value in self.options.items())])


class NoOp:
    """Always the no-op of one agent."""

    def __init__(self, noop: NDArray[np.float64]) -> None:
        self.noop = noop

    def forward(self, observation: NDArray[np.float32]) -> NDArray[np.float64]:
        """The no-op vector."""
        return self.noop.copy()

    def forward_batch(self, vectors: NDArray[np.float32]) -> NDArray[np.float64]:
        """The same `[n, k]` for vectors `[n, d]`."""
        return np.tile(self.noop, (len(vectors), 1))


class RandomPolicy(OnBatches):
    """An action drawn uniformly from what is allowed, whatever is observed.

    Called without a draw, it takes the next ones of its own generator.
    """

    def __init__(self, spec: ActionSpec) -> None:
        self.spec, self._generator = spec, stream(0, RANDOM)

    def forward_batch(
        self, vectors: NDArray[np.float32], masks: NDArray[np.int8] | None = None, draws: Keys | None = None
    ) -> NDArray[np.float64]:
        """Actions `[n, k]` for vectors `[n, d]`, masks `[n, sum(ncats)]` and draws `[n]`."""
        draws = own_draws(self._generator, len(vectors)) if draws is None else draws
        return drawn(self.spec, uniform_rows(draws, self.spec.size), masks)


def baselines(env: HeronEnv, seed: int = 0) -> dict[str, Policies]:
    """Policies by name of the baseline; "do nothing" and "random" are always among them."""
    if not isinstance(env, HeronEnv):  # a black box
        return env.baselines()
    specs, index = env.simulation.model.specs, env.hierarchy.index
    offered: dict[str, Policies] = {
        NOTHING: {agent: NoOp(specs[index[agent]].noop) for agent in env.possible_agents},
        RANDOM: {group: RandomPolicy(specs[index[agents[0]]]) for group, agents in env.group_map.items()},
    }
    rules = env.benchmark().baselines
    return {**offered, **(rules(seed) if rules else {})}


def baseline(env: HeronEnv, name: str, seed: int = 0) -> Policies | None:
    """One of them by name; None: there is none. With other constants, where it has some: `MPC(follow=0.15, window=6)`.

    Raises ConfigError for constants that it does not have.
    """
    offered, tuned = baselines(env, seed), env.benchmark().tuned
    written = WITH_CONSTANTS.fullmatch(name)
    if name in offered or tuned is None or written is None or written[1] not in offered:
        return offered.get(name)
    constants = dict[str, float]()
    for part in map(str.strip, written[2].split(",")):
        constant, _, value = (text.strip() for text in part.partition("="))
        if constant in constants:
            raise ConfigError(f"{name!r}: {constant!r} is there twice; leave one out")
        try:
            constants[constant] = float(value)
        except ValueError:
            raise ConfigError(f"{name!r}: {part!r} is no constant with its value; write NAME=NUMBER") from None
    return tuned(written[1], constants, seed)


def cases(env: HeronEnv, number: int, *, split: str = "test", repeats: int = 1) -> list[Case]:
    """Held-out cases: the environment's own (number x repeats), or as many seeds that training does not use.

    Raises ConfigError for an unknown split or an impossible number.
    """
    if not (1 <= number <= MOST_CASES and 1 <= repeats <= MOST_CASES):
        raise ConfigError(f"cases(number={number!r:.60}, repeats={repeats!r:.60}): must be 1 to {MOST_CASES:,} each")
    own = env.benchmark().cases
    if own is None:
        if split not in SPLITS:
            raise ConfigError(f"split={split!r} must be one of {list(SPLITS)}.{did_you_mean(split, SPLITS)}")
        return [Case(SPLITS[split] + i) for i in range(number * repeats)]
    return [Case(seed, options) for options, seed in own(split, number, repeats)]


def with_optima(env: HeronEnv, cases: list[Case], options: dict[str, Any]) -> list[Case]:
    """The same cases with their optima, where the environment ships them and `options` leave its constants alone.

    An optimum belongs to one case: the same seed with other options is another day.
    """
    offer = env.benchmark()
    if offer.optima is None or not set(options) <= offer.neutral:
        return cases
    by_seed = {seed: Case(seed, dict(case), best) for case, seed, best in offer.optima()}

    def best(case: Case) -> float | None:
        result = by_seed.get(case.seed)
        return result.optimum if result is not None and result.options == case.options else None

    return [Case(case.seed, case.options, best(case)) for case in cases]


def rules_of(policies: Policies, group: str, agents: list[str]) -> dict[str, AnyPolicy]:
    """The policy of each agent of a group: by id, by group, or by "*". Raises RunFolderError."""
    result: dict[str, AnyPolicy] = {}
    for agent in agents:
        name = next((key for key in (agent, group, "*") if key in policies), None)
        if name is None:
            raise RunFolderError(
                f"the baseline has no policy for {agent!r} of group {group!r}, only for {list(policies)}; "
                "name another base"
            )
        result[agent] = policies[name]
    return result


def by_agent(policies: Policies, env: HeronEnv) -> dict[str, AnyPolicy]:
    """The policy of each deciding agent of `env`. Raises RunFolderError where one has none."""
    return {
        a: policy for group, agents in env.group_map.items() for a, policy in rules_of(policies, group, agents).items()
    }


__all__ = ["Case", "baseline", "baselines", "cases"]
