"""Adding up money: the same bits in every Python, and in compiled code."""

from collections.abc import Iterable


def one_by_one(values: Iterable[float]) -> float:
    """The sum in this order, rounded after each addition. `sum` carries what was rounded off since Python 3.12."""
    total = 0.0
    for value in values:
        total += value
    return total
