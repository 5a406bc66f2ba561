"""All comparisons, and the choice among them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from benchmarks import adapters, event_batch, events, grid, learning, power_flow, sb3_event, spread
from benchmarks.case import Comparison
from heron_env.errors import ConfigError, did_you_mean

PARTS: Final = (spread, grid, power_flow, events, event_batch, sb3_event, adapters, learning)


def everything() -> list[Comparison]:
    """All comparisons, in the order of the table."""
    return [comparison for part in PARTS for comparison in part.comparisons()]


def chosen(only: Sequence[str], *, quick: bool) -> list[Comparison]:
    """The comparisons of these names or groups (`spread-3-1024`, `spread-3`, `spread`); none given: all.

    A quick run leaves out what takes long unless it is named in full. Raises ConfigError for a name of nothing.
    """
    known = everything()
    for name in only:
        if not any(_belongs(comparison, name) for comparison in known):
            names = [comparison.name for comparison in known]
            groups = list(dict.fromkeys(found.partition("-")[0] for found in names))
            near = did_you_mean(name, [*groups, *names])
            raise ConfigError(f"--only {name!r}: no such comparison; groups are {', '.join(groups)}.{near}")
    return [
        comparison
        for comparison in known
        if (not only or any(_belongs(comparison, name) for name in only))
        and (not quick or comparison.quick or comparison.name in only)
    ]


def _belongs(comparison: Comparison, name: str) -> bool:
    return comparison.name == name or comparison.name.startswith(f"{name}-")
