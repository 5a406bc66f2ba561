"""The clock x fault ablation: what do real time, faults, and both together cost, and do they make each other worse?

    A  synchronous, no fault     B  event-driven, no fault
    C  synchronous, faults       D  event-driven, faults

All four run the same policies on the same case with the same seed, and C and D have the same faults. Of every case the
interaction D - (B + C - A) is taken, so that its interval is that of paired values: below 0, faults cost more in real
time than in synchronous steps. The synchronous clock carries faults out at step boundaries: one that is over before the
next boundary passes it by, which belongs to what is measured.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from heron_env import registry
from heron_env.errors import ConfigError, did_you_mean
from heron_env.evaluation import benchmark
from heron_env.evaluation.benchmark import Case
from heron_env.evaluation.clocks import ClockLike, clock
from heron_env.evaluation.episodes import team_return
from heron_env.evaluation.policies import PolicySpec, policy_spec
from heron_env.evaluation.stats import LEVEL, Interval, mean_interval, paired_difference
from heron_env.scheduling.disturbances import Disturbance

if TYPE_CHECKING:
    from heron_env.envs.base import HeronEnv

ARMS: Final = ("A", "B", "C", "D")
MEANINGS: Final = {"A": "sync", "B": "event", "C": "sync, faults", "D": "event, faults"}


@dataclass(frozen=True, slots=True)
class ArmsOfCase:
    """One case in all four arms: team returns and KPIs by arm, and how many faults there were."""

    case: Case
    returns: Mapping[str, float]
    kpis: Mapping[str, Mapping[str, float]]
    faults: int

    @property
    def interaction(self) -> float:
        """D - (B + C - A)."""
        a, b, c, d = (self.returns[arm] for arm in ARMS)
        return d - (b + c - a)


@dataclass(frozen=True)
class Ablation:
    """All cases of one policy, one schedule and one set of faults; effects are in units of the team return."""

    env_id: str
    faults: str
    unit: str
    cases: Sequence[ArmsOfCase]
    level: float = field(default=LEVEL)

    def returns(self, arm: str) -> list[float]:
        """Of one arm, by case."""
        return [case.returns[arm] for case in self.cases]

    def mean(self, arm: str) -> Interval:
        """Mean return of one arm."""
        return mean_interval(self.returns(arm), self.level)

    @property
    def clock_effect(self) -> Interval:
        """B - A: what real time costs without faults."""
        return paired_difference(self.returns("B"), self.returns("A"), self.level)

    @property
    def fault_effect(self) -> Interval:
        """C - A: what faults cost in synchronous steps."""
        return paired_difference(self.returns("C"), self.returns("A"), self.level)

    @property
    def both(self) -> Interval:
        """D - A."""
        return paired_difference(self.returns("D"), self.returns("A"), self.level)

    @property
    def interaction(self) -> Interval:
        """D - (B + C - A), of each case."""
        return mean_interval([case.interaction for case in self.cases], self.level)

    def kpis(self, arm: str) -> dict[str, float]:
        """Means of one arm over the cases."""
        return {name: float(np.mean([case.kpis[arm][name] for case in self.cases])) for name in self.cases[0].kpis[arm]}

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, for JSON."""
        effects = {"clock": self.clock_effect, "fault": self.fault_effect, "both": self.both}
        intervals = {name: (i.mean, i.low, i.high) for name, i in {**effects, "interaction": self.interaction}.items()}
        return {
            "env": self.env_id,
            "faults": self.faults,
            "unit": self.unit,
            "cases": [str(case.case) for case in self.cases],
            "faults_by_case": [case.faults for case in self.cases],
            "returns": {arm: self.returns(arm) for arm in ARMS},
            "effects": intervals,
        }

    def text(self) -> str:
        """A few lines for people."""
        unit = f" {self.unit}" if self.unit else ""
        arms = [f"{arm}  {MEANINGS[arm]:<14} {self.mean(arm)}{unit}" for arm in ARMS]
        effects = [
            f"clock        B - A            {self.clock_effect}{unit}",
            f"faults       C - A            {self.fault_effect}{unit}",
            f"both         D - A            {self.both}{unit}",
            f"interaction  D - (B + C - A)  {self.interaction}{unit}",
        ]
        return "\n".join([f"{self.env_id}, faults {self.faults!r}, {len(self.cases)} cases", *arms, *effects])


def ablation(
    env_id: str,
    policy: PolicySpec | str,
    faults: str,
    *,
    network: ClockLike,
    cases: Sequence[Case] | int = 10,
    options: Mapping[str, Any] | None = None,
    spread: Callable[[Callable[[Any], ArmsOfCase], Sequence[Any]], Any] = map,
) -> Ablation:
    """The four arms of each case.

    Args:
        env_id: a registered environment.
        policy: a run folder, the name of a baseline, or any picklable PolicySpec.
        faults: name of one of the environment's `disturbance_sets()`, built with each case's seed.
        network: the event clock of B and D: a delay in seconds, or a ScheduleConfig.
        cases: held-out cases, or how many of the environment's own test cases to take.
        options: of the environment, for all cases.
        spread: `map`, or another that applies a function to items in order, say that of a process pool.

    Raises ConfigError for wrong arguments. What an episode raises is raised here, with the case as a note.
    """
    spec, options = registry.spec(env_id), dict(options or {})
    env, used = spec.make(**options), clock(network)
    if used.name != "event":
        raise ConfigError(f"ablation(network={network!r}): must be a delay in seconds or a ScheduleConfig")
    faults_of(env, faults, 0)
    built = policy_spec(policy) if isinstance(policy, str) else policy
    built.build(env, 0)  # a wrong name fails here, before any episode
    chosen = benchmark.cases(env, cases) if isinstance(cases, int) else list(cases)
    if not chosen:
        raise ConfigError("ablation(cases=[]): give one case at least")
    items = [(spec, options, built, faults, used, case) for case in chosen]
    return Ablation(env_id, faults, env.benchmark().unit, list(spread(ablate_case, items)))


def ablate_case(item: Any) -> ArmsOfCase:
    """All arms of one item of `ablation`: (environment, its options, policy, faults, clock, case)."""
    spec, options, policy, faults, network, case = item
    try:
        env: HeronEnv = spec.make(**{**options, **case.options})
        policies = policy.build(env, case.seed)
        happening = faults_of(env, faults, case.seed)
        schedule = network.applied_to(env.schedule)
        returns, kpis = {}, {}
        for arm in ARMS:
            disturbances = happening if arm in "CD" else []
            if arm in "AC":
                result = env.run_synchronous(policies, seed=case.seed, disturbances=disturbances)
            else:
                result = env.run_event_driven(policies, seed=case.seed, schedule=schedule, disturbances=disturbances)
            returns[arm], kpis[arm] = team_return(env, result), dict(result.kpis)
        return ArmsOfCase(case, returns, kpis, len(happening))
    except Exception as error:
        error.add_note(f"in the ablation of {spec.id}, faults {faults!r}, {case}")
        raise


def faults_of(env: HeronEnv, name: str, seed: int) -> list[Disturbance]:
    """The disturbances of a set. Raises ConfigError where the environment has none of that name."""
    known = env.disturbance_sets()
    if name not in known:
        has = f"has the sets {list(known)}" if known else "has no disturbance_sets()"
        raise ConfigError(f"faults={name!r}: {type(env).__name__} {has}.{did_you_mean(name, known)}")
    return list(known[name](seed))
