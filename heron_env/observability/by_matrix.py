"""Who sees what by the observability matrix (V1, V2): with one in force nothing else is consulted.

*unaware* shows nothing of a target, *external* its external fields, *insider* all of it; bookkeeping stays unseen.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from heron_env.core.feature import visibility_of
from heron_env.core.hierarchy import Hierarchy, require_room
from heron_env.core.layout import Layout, Row
from heron_env.errors import ConfigError
from heron_env.given import several
from heron_env.observability.config import (
    DefaultObservability,
    ObservabilityConfig,
    ObservabilityEntry,
    ObservabilityLevel,
    RowOrDefault,
    external_among,
    require_names,
)
from heron_env.observability.config import ObservabilityLevel as Level
from heron_env.observability.noise import ADDITIVE, VisibleColumns
from heron_env.observability.tags import Columns, Spliced, check_global
from heron_env.pictures.notebook import counted, html_table


class ObservabilityMatrix:
    """Level and noise of each (observer, target) pair: by the row of a configuration, or by default.

    `default` (omitted: unaware, 0.0) serves all pairs without a row.
    """

    def __init__(self, entries: Iterable[ObservabilityEntry], default: DefaultObservability | None = None) -> None:
        rows = several(entries, "ObservabilityMatrix(entries)")
        for row in rows:
            if not isinstance(row, ObservabilityEntry):
                raise ConfigError(f"ObservabilityMatrix(entries): {row!r:.200} is no ObservabilityEntry")
        if not isinstance(default, DefaultObservability | None):
            raise ConfigError(f"ObservabilityMatrix(default={default!r:.200}): must be a DefaultObservability, or None")
        self.rows = {(entry.observer, entry.target): entry for entry in rows}
        self.default = default or DefaultObservability()

    @classmethod
    def of(cls, config: ObservabilityConfig) -> ObservabilityMatrix:
        """Return the matrix of a configuration."""
        return cls(config.matrix, config.default)

    def get_observability(self, observer: str, target: str) -> tuple[ObservabilityLevel, float]:
        """Return (level, noise factor); of oneself always (insider, 0.0)."""
        if observer == target:
            return ObservabilityLevel.INSIDER, 0.0
        row = self.lookup(observer, target)
        return row.level, row.factor

    def lookup(self, observer: str, target: str) -> RowOrDefault:
        """Return the row of the pair, or the default."""
        row: RowOrDefault = self.rows.get((observer, target), self.default)
        return row

    def __repr__(self) -> str:
        """`<ObservabilityMatrix: 3 rows, else unaware>`."""
        return f"<ObservabilityMatrix: {counted(len(self.rows), 'row')}, else {self.default.level.value}>"

    def _repr_html_(self) -> str:
        """The rows and the default, for notebooks."""
        rows = [(o, t, row.level.value, f"{row.factor:g}") for (o, t), row in self.rows.items()]
        last = ("any other", "any other", self.default.level.value, f"{self.default.factor:g}")
        return html_table(("observer", "target", "level", "noise factor"), [*rows, last], words=3)

    def by_observer(self) -> dict[str, list[ObservabilityEntry]]:
        """Rows by observer, without those about itself."""
        rows: dict[str, list[ObservabilityEntry]] = {}
        for entry in self.rows.values():
            if entry.observer != entry.target:
                rows.setdefault(entry.observer, []).append(entry)
        return rows


def columns_by_matrix(
    hierarchy: Hierarchy, layout: Layout, config: ObservabilityConfig, external: set[str]
) -> list[VisibleColumns]:
    """What each observer sees, by rank, in the usual order: own, others by rank, global.

    The work is proportional to agents + rows + columns seen. `external` are the `external_names`.
    """
    matrix = ObservabilityMatrix.of(config)
    by_level = [_columns_by_level(row, external) for row in layout.rows]
    usual = Spliced([levels[matrix.default.level] for levels in by_level])
    index = {row.owner_id: rank for rank, row in enumerate(layout.rows)}
    rows_of = matrix.by_observer()
    compiled = []
    for rank, observer in enumerate(hierarchy.ids):
        entries = {index[entry.target]: entry for entry in rows_of.get(observer, [])}
        special = {target: by_level[target][entry.level] for target, entry in entries.items()}
        special[rank] = by_level[rank][Level.UNAWARE]
        parts = usual.parts(special)
        sources: list[RowOrDefault] = [matrix.default]
        for target in sorted(special):
            sources += [entries.get(target, matrix.default), matrix.default]
        compiled.append(_with_noise(_own_columns(layout.rows[rank]), parts, sources, config.common_noise))
    return compiled


def _with_noise(own: Columns, parts: list[Columns], sources: list[RowOrDefault], common_noise: float) -> VisibleColumns:
    lengths = [len(own), *(len(part) for part in parts)]
    require_room(numbers=sum(lengths))
    factors = np.repeat([0.0, *(source.factor + common_noise for source in sources)], lengths)
    additive = np.repeat([False, *(source.law == ADDITIVE for source in sources)], lengths)
    return VisibleColumns(np.concatenate([own, *parts]), factors, additive)


def external_names(layout: Layout, config: ObservabilityConfig) -> set[str]:
    """The external fields, as "Feature.field": listed so, or unlisted and tagged `public`. Raises ConfigError."""
    agents: dict[str, str | None] = {}
    shared: dict[str, str | None] = {}
    public: dict[str, bool] = {}
    own = set()
    for rank, row in enumerate(layout.rows):
        for _, feature, q in row.columns():
            name, tags = f"{feature.feature_name}.{q.name}", visibility_of(feature, q)
            if rank == len(layout.rows) - 1:
                check_global(feature, tags)
                shared[name] = None
            else:
                agents[name] = None
            if not feature.reported:
                own.add(name)
            public[name] = public.get(name, False) or "public" in tags
    ids = [row.owner_id for row in layout.rows[:-1]]
    require_names(config, agents=ids, agent_variables=agents, global_variables=shared)
    external = external_among(public, config.variable_visibility)
    if external & own:
        raise ConfigError(
            f"variable_visibility.external: {min(external & own)!r} is in an inbox, which only its owner sees; "
            "take it off"
        )
    return external


def _own_columns(row: Row) -> Columns:
    """All of the row but bookkeeping and what it only says: what its owner sees."""
    spans = [np.arange(start, start + q.size) for start, _, q in row.columns() if q.observed and q.to_owner]
    return np.concatenate([np.zeros(0, np.int64), *spans])


def _columns_by_level(row: Row, external: set[str]) -> dict[Level, Columns]:
    """The columns of one target that each level shows others; an inbox is its owner's own (V8)."""
    insider: list[int] = []
    shown: list[int] = []
    for start, feature, q in row.columns():
        if q.observed and feature.reported:
            span = range(start, start + q.size)
            insider.extend(span)
            if f"{feature.feature_name}.{q.name}" in external:
                shown.extend(span)
    as_columns = {Level.UNAWARE: [], Level.EXTERNAL: shown, Level.INSIDER: insider}
    return {level: np.asarray(columns, dtype=np.int64) for level, columns in as_columns.items()}
