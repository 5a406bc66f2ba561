"""The same policies on the same cases under several clocks: what do delays cost, in pairs and with intervals?"""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from heron_env import registry
from heron_env.core.policy import Policies
from heron_env.errors import ConfigError
from heron_env.evaluation import benchmark
from heron_env.evaluation.benchmark import NOTHING, Case
from heron_env.evaluation.clocks import SYNC, Clock, ClockLike, clock, usual_delays
from heron_env.evaluation.policies import PolicySpec, policy_spec
from heron_env.evaluation.stats import mean_interval, paired_difference
from heron_env.evaluation.table import Row, Table

if TYPE_CHECKING:
    from heron_env.envs.base import HeronEnv
    from heron_env.envs.results import EpisodeResult, Percentiles

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Item:
    """What one process does in one go: one policy, one case, all its clocks (so that runs can be compared in place)."""

    env: registry.EnvironmentSpec
    options: dict[str, Any]
    name: str
    policy: PolicySpec
    case: Case
    clocks: tuple[Clock, ...]

    def __str__(self) -> str:
        """For the note on an error."""
        return f"policy {self.name!r} in {self.env.id}, {self.case}, clocks {[str(c) for c in self.clocks]}"


@dataclass(frozen=True)
class Outcome:
    """What is kept of one episode."""

    value: float
    identical: bool
    kpis: dict[str, float]
    staleness_p95: float
    latency_p95: float
    notes: list[str]


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
    items = [Item(spec, options, name, policy, case, of[name]) for name, policy in specs.items() for case in chosen]
    total = sum(len(item.clocks) for item in items)
    outcomes: dict[str, list[list[Outcome]]] = {name: [] for name in specs}
    done = 0
    for item, result in zip(items, _spread(items, min(processes, len(items))), strict=True):
        outcomes[item.name].append(result)
        done += len(item.clocks)
        if progress is not None:
            progress(done, total)
    return Table(env_id, options, chosen, _rows(chosen, of, outcomes), env.benchmark().unit)


def run_item(item: Item) -> list[Outcome]:
    """All clocks of one policy and case, in order."""
    try:
        env = item.env.make(**{**item.options, **item.case.options})
        policies = item.policy.build(env, item.case.seed)
        reference = env.run_synchronous(policies, seed=item.case.seed)
        return [_outcome(env, _run(env, policies, c, item.case.seed, reference), reference) for c in item.clocks]
    except Exception as error:
        error.add_note(f"while evaluating {item}")
        raise


def team_return(env: HeronEnv, result: EpisodeResult) -> float:
    """The system agent's return, or the sum of the possible agents' where the system agent is paid nothing."""
    paid = result.rewards[env.hierarchy.ids[0]]
    returns = result.returns
    if any(value != 0.0 for _, value in paid):
        return returns[env.hierarchy.ids[0]]
    return float(sum(returns[agent] for agent in env.possible_agents))


def _run(env: HeronEnv, policies: Policies, clock: Clock, seed: int, reference: EpisodeResult) -> EpisodeResult:
    if clock.name == "sync":
        return reference
    return env.run_event_driven(policies, seed=seed, schedule=clock.applied_to(env.schedule))


def _outcome(env: HeronEnv, result: EpisodeResult, reference: EpisodeResult) -> Outcome:
    return Outcome(
        value=team_return(env, result),
        identical=result.same_course(reference),
        kpis=result.kpis,
        staleness_p95=_mean_p95(result.staleness),
        latency_p95=_mean_p95(result.latency),
        notes=list(result.notes),
    )


def _mean_p95(percentiles: Mapping[str, Percentiles]) -> float:
    measured = [p.p95 for p in percentiles.values() if p.count]
    return float(np.mean(measured)) if measured else float("nan")


def _spread(items: Sequence[Item], processes: int) -> Iterator[list[Outcome]]:
    """Results in the order of the items, whichever process is faster."""
    if processes == 1:
        yield from map(run_item, items)
        return
    before = set(multiprocessing.active_children())
    with ProcessPoolExecutor(processes, multiprocessing.get_context("spawn"), _start_worker) as pool:
        try:
            yield from pool.map(run_item, items)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            for child in set(multiprocessing.active_children()) - before:
                child.terminate()
            raise


def _start_worker() -> None:
    """One thread for each worker; an interrupt is the parent's business."""
    for name in THREADS:
        os.environ[name] = "1"
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _rows(
    cases: list[Case], clocks: Mapping[str, tuple[Clock, ...]], outcomes: Mapping[str, list[list[Outcome]]]
) -> list[Row]:
    sync = {name: _column(runs, clocks[name].index(SYNC)) for name, runs in outcomes.items() if SYNC in clocks[name]}
    nothing = [o.value for o in sync[NOTHING]] if NOTHING in sync else None
    rows = []
    for name, runs in outcomes.items():
        for position, used in enumerate(clocks[name]):
            reference = [o.value for o in sync[name]] if name in sync and used != SYNC else None
            rows.append(_row(name, used, _column(runs, position), cases, nothing, reference))
    return rows


def _column(runs: list[list[Outcome]], position: int) -> list[Outcome]:
    return [outcomes[position] for outcomes in runs]


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
        identical=all(run.identical for run in runs) if clock.is_free_of_delay else None,
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
