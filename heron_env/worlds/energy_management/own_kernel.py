"""What the homes of an own site draw and yield: energies read off their measured series, which nothing is drawn on."""

from __future__ import annotations

from typing import Any

from heron_env.engine.kernels import leaf, table_of
from heron_env.worlds.energy_management.days_tables import DAY, FORMS

of = table_of(FORMS)


@leaf
def is_own(N: Any) -> Any:
    """Are load and sun measured, not drawn?"""
    return len(of(N, "own")) > 0


@leaf
def own_energy(N: Any, lane: Any, home: Any, roof: Any, time: Any) -> Any:
    """kWh that a home has drawn, or its roof yielded, since midnight; `time` in s, less than two days."""
    day = of(N, "days")[lane]
    if time <= DAY:
        return _energy_until(N, home, roof, day, time)
    whole = _energy_until(N, home, roof, day, DAY)
    return whole + _energy_until(N, home, roof, of(N, "following")[day], time - DAY)


@leaf
def _energy_until(N: Any, home: Any, roof: Any, day: Any, time: Any) -> Any:
    """The same of one day: power is even within a slot of the series."""
    own, homes = of(N, "own"), len(of(N, "homes"))
    slots = own.shape[1] // (2 * homes) - 1
    slot = min(int(time / DAY * slots), slots - 1)
    series = home + homes if roof else home
    at = slot * 2 * homes + series
    return own[day, at] + (time / DAY * slots - slot) * (own[day, at + 2 * homes] - own[day, at])
