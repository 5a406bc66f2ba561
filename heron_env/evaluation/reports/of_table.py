"""The parts of a report on an evaluation's table: what delay costs, and how that was measured."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from heron_env.evaluation.benchmark import Case
from heron_env.evaluation.figures import delay_figure
from heron_env.evaluation.policies import PolicySpec
from heron_env.evaluation.reports.closely import Look, case_part, messages_part
from heron_env.evaluation.reports.document import Block, Grid, Part, Picture
from heron_env.evaluation.table import EXPLAINED, Row, Table, cells
from heron_env.scheduling.timing import ScheduleConfig

if TYPE_CHECKING:
    from heron_env.envs.base import HeronEnv

WORDS: Final = ("policy", "clock")
LOOK_AT = 60.0
"""s of delay of the one case that is drawn, or the nearest there is."""


def table_part(table: Table) -> Part:
    """The figure, if anything ran event-driven, and the table."""
    blocks: list[Block] = [_grid(table)]
    if any(row.clock.delay is not None for row in table.rows):
        spoken = "; ".join(f"{row.policy}, {row.clock}: {row.mean.mean:.2f}" for row in table.rows)
        picture = Picture(
            "delay",
            delay_figure(table),
            "What delay costs. Bands are 95 % intervals, dots are cases: above over the cases, which differ much among "
            "themselves; below of the difference in the same case, which tells what delay alone does.",
            f"Return against delay. {spoken}.",
        )
        blocks.insert(0, picture)
    return Part("What delay costs", blocks)


def closely(table: Table, policy: str, spec: PolicySpec) -> list[Part]:
    """One case on both clocks and a few minutes of messages; none where the policy ran on the synchronous clock only.

    The case is the one whose difference to the synchronous clock is nearest to the mean difference.
    """
    delayed = [row for row in table.of(policy) if row.clock.delay is not None]
    if not delayed:
        return []
    row = min(delayed, key=lambda row: abs((row.clock.delay or 0.0) - LOOK_AT))
    case = table.cases[_typical(row)]
    look = Look(
        table.env_id, {**table.options, **case.options}, policy, spec, case,
        f"{row.clock.delay or 0.0:g} s of delay", lambda env: row.clock.applied_to(env.schedule),
    )  # fmt: skip
    about = (
        "With delays on every leg so that they can be seen: an illustration, the table uses delays of the action alone."
    )
    return [case_part(look), messages_part(look, about, illustrated)]


def illustrated(env: HeronEnv) -> ScheduleConfig:
    """Delays on every leg, long enough to be seen."""
    dt = env.dt
    return ScheduleConfig(
        msg_delay=0.06 * dt, act_delay=0.4 * dt, jitter_type="lognormal", jitter_ratio=0.2, obs_delay=0.05 * dt
    )


def table_facts(cases: list[Case]) -> dict[str, str]:
    """How an evaluation was done."""
    return {
        "Held out": (
            "Test cases that neither training nor tuning has seen. Where the environment has days, what is held out is "
            "weather and seeds: the shapes of the loads nearly repeat from day to day."
        ),
        "Cases": "; ".join(map(str, cases)),
        "Delay": (
            "Latency from observation to effect, put into act_delay of every agent: what is seen is fresh, what is "
            "done comes late. Delays are rounded down to whole physics substeps."
        ),
        "Intervals": (
            "Student's t, 95 %, over the cases; differences are paired by case. They say nothing about other "
            "training seeds."
        ),
    }


def _grid(table: Table) -> Grid:
    rows, before = [], None
    for row in table.rows:
        texts = cells(row)
        shown = texts | {"policy": "" if row.policy == before else row.policy}
        rows.append([shown[name] for name in table.columns])
        before = row.policy
    returns = f"; returns and differences in {table.unit}" if table.unit else ""
    words = "; ".join(f"{name}: {EXPLAINED[name]}" for name in table.columns if name in EXPLAINED)
    note = f"{len(table.cases)} cases{returns}. {words}."
    return Grid("Policies on both clocks", table.columns, rows, sum(n in WORDS for n in table.columns), note)


def _typical(row: Row) -> int:
    if row.to_sync is None or row.differences is None:
        return 0
    return int(np.argmin(np.abs(np.asarray(row.differences) - row.to_sync.mean)))
