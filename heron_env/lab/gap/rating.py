"""Elo ratings (Elo 1978): who yields more in the same case wins it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

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
