"""Callables that files of test_trust.py name, and nobody registered; `RAN` tells which of them ran."""

from typing import Any

from heron_env.worlds import battery_grid

RAN: list[str] = []


def own(**options: Any):
    """An environment that is not registered."""
    RAN.append("own")
    return battery_grid.battery_grid(**options)


def evil(*arguments: Any, **options: Any) -> None:
    """What nobody wants to be called because a file says so."""
    RAN.append("evil")


class Evil:
    """The same as a policy."""

    def __init__(self) -> None:
        RAN.append("Evil")

    def forward(self, observation: Any) -> list[float]:
        """Nothing."""
        return [0.0]
