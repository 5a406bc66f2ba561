"""The visibility matrix: what each observer sees of every column, how clearly, and why (V1, V5).

What is seen, and the noise on it, is read off the observation plan that makes the observations; the reasons, and
`sees()`, follow V1's procedure for one pair at a time. Nothing is worked out for a pair before it is asked for.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from heron_env.core.feature import FeatureProvider, visibility_of
from heron_env.core.layout import GLOBAL, Edge
from heron_env.core.quantity import Quantity, element_names
from heron_env.errors import ConfigError, FeatureError, UnknownFeature, did_you_mean
from heron_env.given import several
from heron_env.observability.by_matrix import external_names
from heron_env.observability.drawing import columns_of, drawing_of
from heron_env.observability.noise import ADDITIVE, MULTIPLICATIVE
from heron_env.observability.plan import ObservationPlan
from heron_env.observability.tags import tags_that_show
from heron_env.pictures.notebook import html_table

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

CRITIC = "critic"
"""The last row: what `state()` shows, the whole truth."""
TAGS = "tags"
"""Stands for the level where no observability matrix is in force."""
MOST_CELLS, MOST_CELLS_OF_TABLE = 10**7, 1_000
"""Of the dense form, and of a table in a notebook."""
EXACT, HIDDEN = 0.0, math.nan


@dataclass(frozen=True, slots=True)
class Sight:
    """One column, as one observer sees it.

    Attributes:
        column: `battery_1.Charge.soc`.
        owner: id of an agent, or "global".
        level: unaware, external or insider where a matrix is in force, else "tags"; "critic" for the critic.
        factor: of the noise; 0: exact, nan: hidden. Quantities that bear no noise are exact whatever a row says.
        law: of the noise, "multiplicative" or "additive".
        reason: `own`, `tag public` (which ones), `row matrix[2]` (which one), `default`, `not enabled` (the matrix is
            not, so everything is seen) or `critic`; of a hidden column also `no tag`, `bookkeeping` (nobody's), or
            `said` (by the observer). Where the hook `sees` is asked about the two it ends in
            `if sees(...)` (V11).
        told: what horizontal protocols make of it: `told by battery_2.Charge.soc` of an inbox, `told into Heard.soc`
            of what another agent tells this observer, seen or not; else "".
    """

    column: str
    owner: str
    level: str
    factor: float
    law: str
    reason: str
    told: str = ""

    @property
    def hidden(self) -> bool:
        """Is it kept from the observer?"""
        return math.isnan(self.factor)


class Verdict(NamedTuple):
    """What V1 says of one observer and one quantity of one owner."""

    level: str
    factor: float
    law: str
    reason: str


class VisibilityMatrix:
    """Who sees what in one environment: observers x columns, hidden, exact or noisy; and who sends what to whom.

    Attributes:
        tellings: what agents exchange.
        observers: ids in registration order, then "critic", which sees every column exactly.
        targets: ids in registration order, then "global".
    """

    def __init__(self, plan: ObservationPlan, tellings: Sequence[Edge] = ()) -> None:
        self.tellings = tuple(tellings)
        self.plan, self.hierarchy, self.layout = plan, plan.hierarchy, plan.layout
        self.critic = CRITIC if CRITIC not in self.hierarchy.index else f"{CRITIC} (state)"
        self.observers: tuple[str, ...] = (*self.hierarchy.ids, self.critic)
        self.targets: tuple[str, ...] = tuple(row.owner_id for row in self.layout.rows)

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """Names of all columns, `battery_1.Charge.soc`, in the order of `state()`."""
        return tuple(self.layout.full_names)

    def row(self, observer: str, *, hidden: bool = False) -> list[Sight]:
        """Return what `observer` sees, in the order of its observation; the critic's row in that of `state()`.

        Args:
            hidden: add the columns it does not see, with the reason why.

        Raises UnknownAgent.
        """
        rank = self.rank(observer)
        columns, factors, additive = self.seen(rank)
        entries = [
            self._sight(rank, column, factor, law)
            for column, factor, law in zip(columns.tolist(), factors.tolist(), additive.tolist(), strict=True)
        ]
        if hidden:
            unseen = np.setdiff1d(np.arange(self.layout.size), columns)
            entries += [self._sight(rank, column, HIDDEN, False) for column in unseen.tolist()]
        return entries

    def level_of(self, observer: str, target: str, field: str | None = None) -> float | None:
        """Return the noise factor (0: exact), or None where hidden, by V1; the hook `sees` is not called.

        >>> from heron_env import make
        >>> matrix = make("heron/BatteryGrid-v0", scope="parent").visibility_matrix()
        >>> matrix.level_of("zone_1", "battery_1", "soc"), matrix.level_of("battery_2", "battery_1", "soc")
        (0.0, None)
        >>> matrix.level_of("critic", "battery_1.BatteryChargeFeature.capacity")
        0.0

        Args:
            target: id of an agent, or "global"; without `field` a column, `battery_1.Charge.soc`.
            field: `soc`, `Charge.soc`, or an element as in `Charge.soc[2]`.

        Raises UnknownAgent, UnknownFeature, and FeatureError for a field that occurs twice.
        """
        rank = self.rank(observer)
        if field is None:
            target, field = self._cut(target)
        owner = len(self.hierarchy) if target == GLOBAL else self.hierarchy.rank(target, "visibility_matrix() got")
        verdict = self._judge(rank, owner, *self._quantity(owner, field))
        return None if math.isnan(verdict.factor) else verdict.factor

    def to_dense(self) -> NDArray[np.float64]:
        """float64 `[observers, columns]`: nan hidden, 0 exact, else the noise factor. Raises ConfigError if too big."""
        shape = len(self.observers), self.layout.size
        if shape[0] * shape[1] > MOST_CELLS:
            raise ConfigError(
                f"visibility_matrix().to_dense(): {shape[0]} observers x {shape[1]} columns are "
                f"{shape[0] * shape[1]:,} cells, more than {MOST_CELLS:,}; ask for single rows with row(observer)"
            )
        dense = np.full(shape, HIDDEN)
        for rank in range(len(self.observers)):
            columns, factors, _ = self.seen(rank)
            dense[rank, columns] = factors
        return dense

    def plot(
        self, ax: Axes | None = None, *, observers: Sequence[str] | None = None, title: str | None = None
    ) -> Figure:
        """Draw observers x columns, own cells outlined, the critic's row separate.

        Environments too large for single rows and columns are drawn by groups of agents, and say so.

        Args:
            ax: draw here, instead of on a new figure.
            observers: only these rows.
            title: above the picture.

        Returns the matplotlib Figure. Raises UnknownAgent, and ConfigError where matplotlib is missing (extra `plots`).
        """
        from heron_env.pictures.matrix import figure_of
        from heron_env.pictures.palette import picture_style

        with picture_style():
            names = None if observers is None else [*several(observers, "plot(observers)")]
            return figure_of(drawing_of(self.plan, self.critic, self.tellings, names), ax, title)

    def rank(self, observer: str) -> int:
        """Return the place of `observer` among the observers. Raises UnknownAgent."""
        if observer == self.critic:
            return len(self.hierarchy)
        return self.hierarchy.rank(observer, "visibility_matrix() got")

    def seen(self, rank: int) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.bool_]]:
        """Return the columns that this observer sees, their factors, and where noise is additive; all `[n]`."""
        if rank == len(self.hierarchy):
            return np.arange(self.layout.size), np.zeros(self.layout.size), np.zeros(self.layout.size, dtype=bool)
        view = self.plan.views[rank]
        return view.columns, view.factors, view.additive

    def __repr__(self) -> str:
        """`<VisibilityMatrix: 4 agents and the critic x 12 columns, by tags>`."""
        config = self.plan.ruling
        by = "tags" if self.plan.rule == "tags" else "full observability"
        if config is not None and self.plan.rule == "matrix":
            rows = len(config.matrix)
            by = f"{rows} {'row' if rows == 1 else 'rows'} of a matrix, else {config.default.level.value}"
        return f"<VisibilityMatrix: {len(self.hierarchy)} agents and the critic x {self.layout.size} columns, by {by}>"

    def _repr_html_(self) -> str:
        """A row for each column of the state; of a large matrix its size alone."""
        if len(self.observers) * self.layout.size > MOST_CELLS_OF_TABLE:
            note = "row(observer) lists one row; plot() draws it by groups"
            return html_table(("matrix",), [(repr(self),)], note=note)
        cells = [["hidden" if np.isnan(f) else f"{f:g}" if f else "exact" for f in row] for row in self.to_dense().T]
        rows = [(column, *row) for column, row in zip(self.columns, cells, strict=True)]
        return html_table(("column", *self.observers), rows, note="a number is the factor of the noise")

    # V1 for one pair

    def _judge(self, rank: int, owner: int, feature: type[FeatureProvider], q: Quantity) -> Verdict:
        if rank == len(self.hierarchy):
            return Verdict("critic", EXACT, MULTIPLICATIVE, "critic")
        level, factor, law, reason = self._of_pair(rank, owner, feature, q)
        if not math.isnan(factor) and owner in dict(self.plan.views[rank].asked):
            reason += " if sees(...)"
        if not q.observed or (rank == owner and not q.to_owner):
            return Verdict(level, HIDDEN, MULTIPLICATIVE, "said" if q.observed else "bookkeeping")
        if not math.isnan(factor) and not (q.noisy and q.kind in ("float", "int")):
            return Verdict(level, EXACT, MULTIPLICATIVE, reason)
        return Verdict(level, factor, law if factor > 0.0 else MULTIPLICATIVE, reason)

    def _of_pair(self, rank: int, owner: int, feature: type[FeatureProvider], q: Quantity) -> Verdict:
        if self.plan.matrix is None:
            tags = tags_that_show(self.hierarchy, rank, owner, visibility_of(feature, q))
            if not tags:
                return Verdict(TAGS, HIDDEN, MULTIPLICATIVE, "no tag")
            if rank == owner:
                return Verdict(TAGS, EXACT, MULTIPLICATIVE, "own")
            return Verdict(TAGS, self.plan.common_noise, MULTIPLICATIVE, f"tag {', '.join(tags)}")
        if rank == owner:
            return Verdict("insider", EXACT, MULTIPLICATIVE, "own")
        pair = self.hierarchy.ids[rank], self.targets[owner]
        said = self.plan.matrix.lookup(*pair)
        shown = said.level == "insider" or (said.level == "external" and _name(feature, q) in self._external)
        reason = f"row matrix[{self._place[pair]}]" if pair in self._place else "default"
        reason = "not enabled" if self.plan.rule == "everything" else reason
        return Verdict(said.level.value, said.factor + self.plan.common_noise if shown else HIDDEN, said.law, reason)

    @cached_property
    def _place(self) -> dict[tuple[str, str], int]:
        """Where the row of a pair stands in the configuration."""
        assert self.plan.ruling is not None, "asked with a matrix in force"
        return {(entry.observer, entry.target): i for i, entry in enumerate(self.plan.ruling.matrix)}

    @cached_property
    def _external(self) -> set[str]:
        assert self.plan.ruling is not None, "asked with a matrix in force"
        return external_names(self.layout, self.plan.ruling)

    @cached_property
    def _quantities(self) -> list[tuple[type[FeatureProvider], Quantity]]:
        """Feature and quantity of each column, in the order of `state()`."""
        quantities: list[tuple[type[FeatureProvider], Quantity] | None] = [None] * self.layout.size
        for row in self.layout.rows:
            for start, feature, q in row.columns():
                quantities[start : start + q.size] = [(feature, q)] * q.size
        return [entry for entry in quantities if entry is not None]

    def _sight(self, rank: int, column: int, factor: float, additive: bool) -> Sight:
        owner = int(self.layout.owner_of[column])
        verdict = self._judge(rank, owner, *self._quantities[column])
        law = ADDITIVE if additive else MULTIPLICATIVE
        note = self.told(rank, column)
        return Sight(self.columns[column], self.targets[owner], verdict.level, factor, law, verdict.reason, note)

    def told(self, rank: int, column: int) -> str:
        """Return what exchanges add for an observer: `told by battery_2.Charge.soc`, `told into Heard.soc`, or ""."""
        return self._notes.get((rank, column), "")

    @cached_property
    def _notes(self) -> dict[tuple[int, int], str]:
        """What is told of a column, by observer."""
        senders: dict[tuple[int, int], dict[str, None]] = {}
        inboxes: dict[tuple[int, int], dict[str, None]] = {}
        for telling in self.tellings:
            for source, target in zip(columns_of(telling.source), columns_of(telling.target), strict=True):
                inbox = self.layout.names[target].partition("[")[0]
                senders.setdefault((telling.receiver, target), {})[self.columns[source]] = None
                inboxes.setdefault((telling.receiver, source), {})[inbox] = None
        into = {place: f"told into {', '.join(names)}" for place, names in inboxes.items()}
        return into | {place: f"told by {', '.join(names)}" for place, names in senders.items()}

    # Names

    def _cut(self, column: str) -> tuple[str, str]:
        """`battery_1` and `Charge.soc` of a column's name."""
        owner, feature, name = ([""] * 3 + column.rsplit(".", 2))[-3:]
        if not owner:
            near = did_you_mean(column, self.columns)
            raise UnknownFeature(f"visibility_matrix() got {column!r}: a column is agent.Feature.field.{near}")
        return owner, f"{feature}.{name}"

    def _quantity(self, owner: int, field: str) -> tuple[type[FeatureProvider], Quantity]:
        declared = [(feature, q) for _, feature, q in self.layout.rows[owner].columns()]
        matches = [(feature, q) for feature, q in declared if field in _spellings(feature, q)]
        names = [_name(feature, q) for feature, q in matches or declared]
        where = f"visibility_matrix() got field {field!r} of {self.targets[owner]!r}"
        if not matches:
            spellings = [spelling for feature, q in declared for spelling in _spellings(feature, q)]
            raise UnknownFeature(f"{where}, which has {names}.{did_you_mean(field, spellings)}")
        if len(matches) > 1:
            raise FeatureError(f"{where}, which occurs {len(matches)} times; name one of {names}")
        return matches[0]


def _name(feature: type[FeatureProvider], q: Quantity) -> str:
    return f"{feature.feature_name}.{q.name}"


def _spellings(feature: type[FeatureProvider], q: Quantity) -> Iterator[str]:
    for name in (q.name, *element_names(q)):
        yield from (name, f"{feature.feature_name}.{name}")
