"""The pictures of a report, made from a table, an environment and one policy that is looked at closely."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from heron_env import registry
from heron_env.evaluation import figures, one_day, time_figures
from heron_env.evaluation.benchmark import NOTHING
from heron_env.evaluation.policies import PolicySpec
from heron_env.evaluation.report import Picture
from heron_env.evaluation.table import Row, Table

if TYPE_CHECKING:
    from heron_env.envs.base import HeronEnv
    from heron_env.evaluation.runs import RunFolder

LOOK_AT = 60.0
"""s of delay of the one day that is drawn, or the nearest there is."""


def pictures(table: Table, policy: str, spec: PolicySpec, run: RunFolder | None = None) -> list[Picture]:
    """Hierarchy; learning curve of the `run`, if any; return against delay, a day, a timeline if there are events."""
    env = registry.make(table.env_id, **table.options)
    made = [_hierarchy(env)]
    if run is not None and len(run.curve()) > 1:
        made.append(_learning(run))
    delayed = [row for row in table.of(policy) if row.clock.delay is not None]
    if delayed:
        made.append(_delay(table))
        made += _closely(table, policy, spec, min(delayed, key=lambda row: abs((row.clock.delay or 0.0) - LOOK_AT)))
    return made


def _hierarchy(env: HeronEnv) -> Picture:
    decides = f"{len(env.possible_agents)} of {len(env.hierarchy)} agents decide"
    return Picture(
        figures.hierarchy_figure(env),
        f"The hierarchy: {decides}; the others watch, report and are paid.",
        f"Tree of the agents {', '.join(env.hierarchy.ids[:12])}; {decides}.",
    )


def _learning(run: RunFolder) -> Picture:
    config = run.config
    rows = [row for row in run.curve() if row["group"] == next(iter(config.groups))]
    points = [(float(row["transitions"]), float(row["validation_return"])) for row in rows]
    names = [name for name in (NOTHING, config.base) if name in config.validation]
    best = max((name for name in config.validation if name != "trained"), key=lambda name: config.validation[name])
    levels = {name: config.validation[name] for name in dict.fromkeys([*names, best]) if name is not None}
    with_step = f" at dt = {config.training_options['dt']:g} s" if "dt" in config.training_options else ""
    return Picture(
        figures.learning_figure(points, levels, x_label="transitions", y_label="return on validation cases"),
        f"Training took {config.seconds:.0f} s and {config.transitions:,} transitions{with_step}, "
        f"with seed {config.seed}: mean return of the deterministic policy on validation cases, which neither "
        "training nor the table uses.",
        f"Learning curve: from {points[0][1]:.1f} to {points[-1][1]:.1f}; "
        + ", ".join(f"{name} {level:.1f}" for name, level in levels.items()),
    )


def _delay(table: Table) -> Picture:
    spoken = [f"{r.policy}, {r.clock}: {r.mean.mean:.2f}" for r in table.rows]
    return Picture(
        figures.delay_figure(table),
        "What delay costs. Bands are 95 % intervals: above over the cases, which differ much among themselves; "
        "below of the difference on the same cases, which tells what delay alone does.",
        f"Return against delay. {'; '.join(spoken)}.",
    )


def _closely(table: Table, policy: str, spec: PolicySpec, row: Row) -> list[Picture]:
    number = _typical(row)
    case = table.cases[number]
    env = registry.make(table.env_id, **{**table.options, **case.options})
    policies = spec.build(env, case.seed)
    day = one_day.compare_day(env, policies, case, row.clock)
    told = (
        f"{policy}, {case}, {row.clock.delay or 0.0:g} s of delay: "
        f"return {day.sync_return:.2f} synchronous, {day.event_return:.2f} event-driven"
    )
    drawn = one_day.excerpt(env, policies, case)
    s = drawn.schedule
    timeline = time_figures.timeline_figure(
        drawn.trace, drawn.ids, drawn.lanes, start=drawn.start, end=drawn.end, title="A few minutes, event-driven"
    )
    return [
        Picture(
            time_figures.day_figure(day.panels, told),
            "One case on both clocks, as the agents saw it: the one with a loss nearest to the mean at this delay.",
            f"Time series. {told}. Panels: {', '.join(panel.title for panel in day.panels)}.",
        ),
        Picture(
            timeline,
            f"How an event-driven run works, with delays on every leg so that they can be seen: {s.msg_delay:g} s a "
            f"message, {s.obs_delay:g} s to gather, {s.act_delay:g} s to act, {100 * s.jitter_ratio:g} % jitter. "
            "An illustration: the table uses delays of the action alone.",
            f"Timeline: lanes for physics and {', '.join(drawn.lanes)}; ticks, observations, effects, state reports.",
        ),
    ]


def _typical(row: Row) -> int:
    """Index of the case whose difference to the synchronous run is nearest to the mean difference."""
    if row.to_sync is None or row.differences is None:
        return 0
    return int(np.argmin(np.abs(np.asarray(row.differences) - row.to_sync.mean)))
