"""Tables of a sweep in which other programs play agents: how they answered, and who yields more in the same case."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from typing import TYPE_CHECKING, Any, Final

from heron_env.lab.output import Grid

if TYPE_CHECKING:
    from heron_env.lab.gap.results import Point, SweepResult

START: Final = 1000.0
K: Final = 32.0
SCALE: Final = 400.0


def elo(returns: Mapping[str, Sequence[float]]) -> dict[str, float]:
    """Ratings after all cases, by policy; cases count in their order, a tie for half.

    In each case everybody meets everybody at the ratings from before it, so the order of the policies does not matter.
    """
    rating = dict.fromkeys(returns, START)
    for values in zip(*returns.values(), strict=True):
        now, value = dict(rating), dict(zip(returns, values, strict=True))
        for ours in now:
            for theirs in [name for name in now if name != ours]:
                expected = 1.0 / (1.0 + 10.0 ** ((now[theirs] - now[ours]) / SCALE))
                won = 0.5 * ((value[ours] > value[theirs]) + (value[ours] >= value[theirs]))
                rating[ours] += K * (won - expected)
    return rating


NONE: Final = "-"
MARK: Final = "*"
FIGURES: Final = (
    "decisions", "requests", "latency_p50_ms", "latency_p99_ms", "error_rate", "timeout_rate", "fallback_rate",
    "circuit_state", "preference_score", "elo_rating", "deterministic",
)  # fmt: skip
"""Columns for spreadsheets."""
ANSWERED: Final = (
    "Answers by origin and code (something stood in for fallback, and for those a recording has a code of, but "
    "CLIPPED). p50, p99: latency over all calls, failed ones included; none were made for recorded answers. Errors, "
    "timeouts, fallback: shares of all answers. Live: an endpoint was asked, and may answer otherwise in another run; "
    "such rows can't be repeated, and nothing is said of whether their runs are identical. * marks rows in which "
    "something stood in: their returns are not the agent's alone."
)
COMPARED: Final = (
    "Preference: probability that the first policy yields more than the second in the same case, ties counting half; "
    f"Elo: ratings of all policies under the condition, from {START:g} with K {K:g}, cases in their order."
)


def mark(point: Point) -> str:
    """What stands behind a return that is not the agent's alone."""
    return MARK if point.external is not None and point.external.fallback_rate else ""


def percent(share: float | None) -> str:
    """`2.5 %`; a share that is not known is none, never 0."""
    return NONE if share is None else f"{100.0 * share:.3g} %"


def machine_figures(result: SweepResult, point: Point) -> dict[str, Any] | None:
    """Of a row for tables that machines read, with its preference to all other policies; what nobody judged is null."""
    if point.external is None:
        return None
    name, condition = point.policy, point.condition
    rating, preference = result.elo(condition).get(name), result.preference(name, condition)
    told = vars(replace(point.external, preference_score=preference, elo_rating=rating))
    return {**told, "deterministic": point.deterministic}


def compared(result: SweepResult) -> list[dict[str, Any]]:
    """Of each condition the preferences, pair by pair, and the ratings; nothing for one policy."""
    if len(result.policies) < 2:
        return []
    return [
        {
            "condition": condition.name,
            "preferences": [
                {"policy": a, "rival": b, **result.improvement(a, b, condition).to_dict()}
                for a, b in combinations(result.policies, 2)
            ],
            "elo": result.elo(condition),
        }
        for condition in result.sweep.conditions
    ]


def how_answered(result: SweepResult) -> Grid | None:
    """A row a point; None where no other program plays."""
    rows = [
        [
            point.policy,
            f"{point.condition.name}{mark(point)}",
            ", ".join(f"{told} {count}" for told, count in found.counts.items()),
            *(NONE if ms is None else f"{ms:.3g} ms" for ms in (found.latency_p50_ms, found.latency_p99_ms)),
            *map(percent, (found.error_rate, found.timeout_rate, found.fallback_rate)),
            "no" if point.deterministic else "yes",
        ]
        for point in result.points
        if (found := point.external) is not None
    ]
    head = ["policy", "condition", "answers", "p50", "p99", "errors", "timeouts", "fallback", "live"]
    return Grid("External agents", head, rows, 3, ANSWERED) if rows else None


def comparison(result: SweepResult) -> Grid | None:
    """A row for each pair and condition; None without an external agent, or without another policy."""
    if not result.external or len(result.policies) < 2:
        return None
    marked = {(p.policy, p.condition): f"{p.policy}{mark(p)}" for p in result.points}
    rows = []
    for condition in result.sweep.conditions:
        ratings = result.elo(condition)
        for a, b in combinations(result.policies, 2):
            better = result.improvement(a, b, condition)
            preference = better.percent() if better.known else f"{100.0 * better.value:.0f} %"
            names = [marked[a, condition], marked[b, condition], condition.name]
            rows.append([*names, preference, *(f"{ratings[name]:.0f}" for name in (a, b))])
    return Grid(
        "Preference and Elo", ["policy", "against", "condition", "preference", "Elo", "its Elo"], rows, 3, COMPARED
    )
