"""The observability matrix: level and noise of each (observer, target) pair, by row or by default."""

from __future__ import annotations

from collections.abc import Iterable

from heron_env.errors import ConfigError
from heron_env.given import several
from heron_env.observability.config import (
    DefaultObservability,
    ObservabilityConfig,
    ObservabilityEntry,
    ObservabilityLevel,
    RowOrDefault,
)
from heron_env.pictures.notebook import counted, html_table


class ObservabilityMatrix:
    """A lookup table over the rows of a configuration; `default` (omitted: unaware, 0.0) serves all other pairs."""

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
        """The matrix of a configuration."""
        return cls(config.matrix, config.default)

    def get_observability(self, observer: str, target: str) -> tuple[ObservabilityLevel, float]:
        """(level, noise factor); of oneself always (insider, 0.0)."""
        if observer == target:
            return ObservabilityLevel.INSIDER, 0.0
        found = self.lookup(observer, target)
        return found.level, found.factor

    def lookup(self, observer: str, target: str) -> RowOrDefault:
        """The row of the pair, or the default."""
        found: RowOrDefault = self.rows.get((observer, target), self.default)
        return found

    def __repr__(self) -> str:
        """`<ObservabilityMatrix: 3 rows, else unaware>`."""
        return f"<ObservabilityMatrix: {counted(len(self.rows), 'row')}, else {self.default.level.value}>"

    def _repr_html_(self) -> str:
        """The rows and the default, for notebooks."""
        rows = [(o, t, found.level.value, f"{found.factor:g}") for (o, t), found in self.rows.items()]
        last = ("any other", "any other", self.default.level.value, f"{self.default.factor:g}")
        return html_table(("observer", "target", "level", "noise factor"), [*rows, last], words=3)

    def by_observer(self) -> dict[str, list[ObservabilityEntry]]:
        """The rows by observer, those about itself left out: they say nothing new."""
        found: dict[str, list[ObservabilityEntry]] = {}
        for entry in self.rows.values():
            if entry.observer != entry.target:
                found.setdefault(entry.observer, []).append(entry)
        return found
