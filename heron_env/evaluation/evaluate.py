"""The same policies on the same cases under several clocks: what do delays cost, in pairs and with intervals?"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from heron_env import registry
from heron_env.core.policy import Policies
from heron_env.errors import ConfigError
from heron_env.evaluation import benchmark
from heron_env.evaluation.benchmark import NOTHING, Case
from heron_env.evaluation.clocks import SYNC, Clock, ClockLike, clock, usual_delays
from heron_env.evaluation.episodes import Outcome, outcome
from heron_env.evaluation.policies import PolicySpec, policy_spec
from heron_env.evaluation.stats import mean_interval, paired_difference
from heron_env.evaluation.table import Row, Table
from heron_env.evaluation.workers import finished

if TYPE_CHECKING:
    from heron_env.envs.base import HeronEnv

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Item:
    """What one process does in one go: one policy, one case, all its clocks (so that runs can be compared in place)."""

    env: registry.EnvironmentSpec
    options: dict[str, Any]
    name: str
    policy: PolicySpec
    number: int
    """Of the case."""
    case: Case
    clocks: tuple[Clock, ...]

    def __str__(self) -> str:
        """For the note on an error."""
        return f"policy {self.name!r} in {self.env.id}, {self.case}, clocks {[str(c) for c in self.clocks]}"


def evaluate(
    env_id: str,
    policies: Mapping[str, PolicySpec | str],
    *,
    clocks: Sequence[ClockLike] | None = None,
    cases: Sequence[Case] | int = 10,
    sync_only: Sequence[str] = (),
    processes: int = 2,
    options: Mapping[str, Any] | None = None,
    progress: Progress | None = None,
) -> Table:
    """Evaluate each policy on each clock over the same cases.

    Args:
        env_id: a registered environment.
        policies: by name: a run folder, the name of a baseline, or any picklable PolicySpec.
        clocks: "sync", delays in seconds from observation to effect, or ScheduleConfigs; None: "sync" and the
            `usual_delays` of the environment's control step.
        cases: held-out cases, or how many of the environment's own test cases to take.
        sync_only: names of policies that only the synchronous clock is wanted for.
        processes: worker processes; 1 stays in this one. The result does not depend on it.
        options: of the environment, for all cases.
        progress: called with (episodes done, episodes in all).

    Raises ConfigError for wrong arguments. What an episode raises is raised here, with the case as a note.
    """
    spec, options = registry.spec(env_id), dict(options or {})
    env = spec.make(**options)
    asked: Sequence[ClockLike] = ("sync", *usual_delays(env.dt)) if clocks is None else clocks
    wanted = tuple(dict.fromkeys(map(clock, asked)))
    if not wanted or not policies or processes < 1:
        raise ConfigError(
            f"evaluate(clocks={clocks!r}, policies={list(policies)}, processes={processes!r}): one of each at least"
        )
    unknown = sorted(set(sync_only) - set(policies))
    if unknown:
        raise ConfigError(f"sync_only={unknown}: not among the policies {list(policies)}")
    specs = {name: policy_spec(p) if isinstance(p, str) else p for name, p in policies.items()}
    chosen = benchmark.cases(env, cases) if isinstance(cases, int) else list(cases)
    chosen = benchmark.with_optima(env, chosen, options)
    for policy in specs.values():
        policy.build(env, 0)  # a wrong name fails here, before any process starts
    of = {name: (SYNC,) if name in sync_only else wanted for name in specs}
    items = [
        Item(spec, options, name, policy, number, case, of[name])
        for name, policy in specs.items()
        for number, case in enumerate(chosen)
    ]
    total = sum(len(item.clocks) for item in items)
    results: dict[tuple[str, int], list[Outcome]] = {}
    done = 0
    for item, result in finished(run_item, items, processes):
        results[item.name, item.number] = result
        done += len(item.clocks)
        if progress is not None:
            progress(done, total)
    outcomes = {name: [results[name, number] for number in range(len(chosen))] for name in specs}
    return Table(env_id, options, chosen, _rows(chosen, of, outcomes), env.benchmark().unit)


def run_item(item: Item) -> list[Outcome]:
    """The synchronous run that the others are compared with, then all clocks in order, of one policy and case."""
    try:
        env = item.env.make(**{**item.options, **item.case.options})
        policies = item.policy.build(env, item.case.seed)
        reference = outcome(env, env.run_synchronous(policies, seed=item.case.seed))
        return [reference, *(_run(env, policies, c, item.case.seed, reference) for c in item.clocks)]
    except Exception as error:
        error.add_note(f"while evaluating {item}")
        raise


def _run(env: HeronEnv, policies: Policies, clock: Clock, seed: int, reference: Outcome) -> Outcome:
    if clock.name == "sync":
        return reference
    return outcome(env, env.run_event_driven(policies, seed=seed, schedule=clock.applied_to(env.schedule)))


def _rows(
    cases: list[Case], clocks: Mapping[str, tuple[Clock, ...]], outcomes: Mapping[str, list[list[Outcome]]]
) -> list[Row]:
    references = {name: [of_case[0] for of_case in found] for name, found in outcomes.items()}
    sync = {name: [o.value for o in found] for name, found in references.items() if SYNC in clocks[name]}
    rows = []
    for name, found in outcomes.items():
        for position, used in enumerate(clocks[name], start=1):
            runs = [of_case[position] for of_case in found]
            same = all(a.course == b.course for a, b in zip(runs, references[name], strict=True))
            row = _row(name, used, runs, cases, sync.get(NOTHING), sync.get(name) if used != SYNC else None)
            rows.append(replace(row, identical=same if used.is_free_of_delay else None))
    return rows


def _row(
    name: str,
    clock: Clock,
    runs: list[Outcome],
    cases: list[Case],
    nothing: list[float] | None,
    sync: list[float] | None,
) -> Row:
    values = [run.value for run in runs]
    return Row(
        policy=name,
        clock=clock,
        returns=values,
        mean=mean_interval(values),
        score=_score(values, nothing, cases),
        to_sync=None if sync is None else paired_difference(values, sync),
        lost=_lost(values, nothing, sync),
        identical=None,
        kpis={kpi: float(np.mean([run.kpis[kpi] for run in runs])) for kpi in runs[0].kpis},
        staleness_p95=_mean([run.staleness_p95 for run in runs]),
        latency_p95=_mean([run.latency_p95 for run in runs]),
        notes=list(dict.fromkeys(note for run in runs for note in run.notes)),
        differences=None if sync is None else [value - base for value, base in zip(values, sync, strict=True)],
    )


def _mean(values: list[float]) -> float:
    known = [value for value in values if value == value]
    return float(np.mean(known)) if known else float("nan")


def _score(values: list[float], nothing: list[float] | None, cases: list[Case]) -> float:
    """Sums over the cases with an optimum, so that days with little to gain do not outweigh the others."""
    known = [i for i, case in enumerate(cases) if case.optimum is not None]
    if nothing is None or not known:
        return float("nan")
    best = sum(cases[i].optimum or 0.0 for i in known)
    idle = sum(nothing[i] for i in known)
    return (sum(values[i] for i in known) - idle) / (best - idle) if best > idle else float("nan")


def _lost(values: list[float], nothing: list[float] | None, sync: list[float] | None) -> float:
    if nothing is None or sync is None or sum(sync) <= sum(nothing):
        return float("nan")
    return (sum(sync) - sum(values)) / (sum(sync) - sum(nothing))
