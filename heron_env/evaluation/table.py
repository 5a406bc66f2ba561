"""The table of an evaluation: a row for each policy, clock and delay; JSON for machines, columns for people."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from heron_env._version import __version__
from heron_env.errors import ConfigError
from heron_env.evaluation.benchmark import Case
from heron_env.evaluation.clocks import Clock
from heron_env.evaluation.stats import Interval
from heron_env.evaluation.strict_json import dumps

if TYPE_CHECKING:
    from rich.console import Group

SCHEMA = 1
"""Version of the JSON form; it grows when a reader of the old one would be misled."""


@dataclass(frozen=True)
class Row:
    """One policy on one clock over all cases."""

    policy: str
    clock: Clock
    returns: list[float]
    """Team returns in the order of the cases."""
    mean: Interval
    score: float
    """Share of what perfect foresight would gain over doing nothing; nan where optima or "do nothing" are missing."""
    to_sync: Interval | None
    """Paired difference to the same policy on the synchronous clock; None for that one itself."""
    lost: float
    """Share of the synchronous gain over doing nothing that this clock costs; nan as for `score`."""
    identical: bool | None
    """Do all runs without delay equal the synchronous ones bit for bit? None where delays make the question idle."""
    kpis: dict[str, float] = field(default_factory=dict)
    """Means over the cases."""
    staleness_p95: float = math.nan
    """Age of what agents saw, s: mean over cases and agents of the 95th percentile."""
    latency_p95: float = math.nan
    """From tick to effect, s: the same."""
    notes: list[str] = field(default_factory=list)
    differences: list[float] | None = None
    """To the same policy on the synchronous clock, by case."""

    def to_dict(self) -> dict[str, Any]:
        """Plain values; nan stays nan."""
        return {
            "policy": self.policy,
            "clock": self.clock.name,
            "delay": self.clock.delay,
            "n": len(self.returns),
            "return": interval_dict(self.mean),
            "returns": self.returns,
            "score": self.score,
            "difference_to_sync": None if self.to_sync is None else interval_dict(self.to_sync),
            "share_of_gain_lost": self.lost,
            "identical": self.identical,
            "kpis": self.kpis,
            "staleness_p95": self.staleness_p95,
            "latency_p95": self.latency_p95,
            "notes": self.notes,
        }


@dataclass(frozen=True)
class Table:
    """All rows of one evaluation, and what they were measured on."""

    env_id: str
    options: dict[str, Any]
    cases: list[Case]
    rows: list[Row]
    unit: str = ""
    """Of the team returns; "" where the environment does not say."""

    def row(self, policy: str, clock: Clock | None = None) -> Row:
        """The row of a policy, on the synchronous clock unless told otherwise. Raises ConfigError."""
        wanted = clock or Clock("sync")
        for row in self.rows:
            if row.policy == policy and row.clock == wanted:
                return row
        raise ConfigError(
            f"no row for policy {policy!r} on clock {wanted}; there are {[str(r.policy) for r in self.rows]}"
        )

    def has(self, policy: str) -> bool:
        """Is there a synchronous row of this policy?"""
        return any(row.policy == policy and row.clock.name == "sync" for row in self.rows)

    def of(self, policy: str) -> list[Row]:
        """All rows of a policy in their order."""
        return [row for row in self.rows if row.policy == policy]

    @property
    def policies(self) -> list[str]:
        """Names in order."""
        return list(dict.fromkeys(row.policy for row in self.rows))

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON: everything a reader needs to repeat or re-analyse the evaluation."""
        return {
            "schema": SCHEMA,
            "heron_env": __version__,
            "env": self.env_id,
            "options": self.options,
            "unit": self.unit,
            "cases": [{"seed": c.seed, "options": c.options, "optimum": c.optimum} for c in self.cases],
            "rows": [row.to_dict() for row in self.rows],
        }

    def to_json(self) -> str:
        """`to_dict()` as text; nan, which JSON does not know, becomes null."""
        return dumps(self.to_dict())

    def write(self, path: str | Path) -> Path:
        """Write the JSON form; folders are made."""
        path = Path(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(self.to_json() + "\n", encoding="utf-8")
        return path

    @property
    def columns(self) -> list[str]:
        """Headings for people; columns that hold nothing at all are left out."""
        return [name for name in HEADINGS if any(cells(row)[name] != NONE for row in self.rows)]

    def to_rich(self) -> Group:
        """For a terminal of 80 columns or more: one part for each policy, below its name."""
        from rich import box
        from rich.console import Group
        from rich.table import Table as RichTable

        names = [name for name in self.columns if name != "policy"]
        widths = {name: max(len(name), *(len(cells(row)[name]) for row in self.rows)) for name in names}

        def part(title: str | None, rows: list[Row]) -> RichTable:
            table = RichTable(
                title=title, title_justify="left", title_style="bold", show_header=title is None, box=box.SIMPLE_HEAD,
                show_edge=False, padding=(0, 1, 0, 0), pad_edge=False,
            )  # fmt: skip
            for name in names:
                table.add_column(
                    name, justify="left" if name == "clock" else "right", min_width=widths[name], no_wrap=True
                )
            for row in rows:
                table.add_row(*(cells(row)[name] for name in names))
            return table

        return Group(part(None, []), *(part(policy, self.of(policy)) for policy in self.policies))


NONE = "-"
HEADINGS = ("policy", "clock", "return", "optimum", "vs sync", "lost", "identical", "age p95")
EXPLAINED = {
    "return": "mean team return over the cases, with the half width of its 95 % t-interval",
    "optimum": "share of what perfect foresight would gain over doing nothing (repeat 0 only)",
    "vs sync": "mean paired difference to the synchronous clock, same policy and cases, with its 95 % half width",
    "lost": "share of the synchronous gain over doing nothing that is lost on this clock",
    "identical": "are all runs without delay equal to the synchronous ones, bit for bit? (computed)",
    "age p95": "95th percentile of the age of what agents saw, mean over cases and agents",
}


def cells(row: Row) -> dict[str, str]:
    """The row's texts by heading."""
    return {
        "policy": row.policy,
        "clock": row.clock.name if row.clock.delay is None else f"{row.clock.name}, {row.clock.delay:g} s",
        "return": plus_minus(row.mean),
        "optimum": NONE if math.isnan(row.score) else f"{100 * row.score:.0f} %",
        "vs sync": NONE if row.to_sync is None else plus_minus(row.to_sync),
        "lost": NONE if math.isnan(row.lost) else f"{100 * row.lost:.1f} %",
        "identical": NONE if row.identical is None else str(row.identical),
        "age p95": f"{row.staleness_p95:.3g} s" if row.staleness_p95 > 0.0 else NONE,
    }


def plus_minus(interval: Interval) -> str:
    """`-25.40 \u00b1 0.27`; the mean alone where there is no interval."""
    mean = f"{interval.mean:.2f}"
    return mean if math.isnan(interval.low) else f"{mean} \u00b1 {interval.half_width:.2f}"


def interval_dict(interval: Interval) -> dict[str, float]:
    """`{mean, low, high}`."""
    return {"mean": interval.mean, "low": interval.low, "high": interval.high}
