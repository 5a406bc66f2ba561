"""The state of a chain at a time: a pure function of (seed, episode, link, floor(t / period)).

Let X = uniforms(key(seed, episode, h(agent), "chain", FIELD, 0)) of heron_env.seeding, FIELD one of "msg_delay",
"obs_delay", "act_delay", "loss"; u_k is its element k: with x the key, all modulo 2**64,

    u_k = (mix(x + (k + 1) * GOLDEN) >> 11) * 2**-53                     (float64)

and, of a Chain with thresholds `start` and `moves`,

    s_0 = number of j with start[j] <= u_0
    s_k = number of j with moves[s_(k-1)][j] <= u_k                      for k = 1, 2, ...
    the state of a departure at t ns is s_k with k = t // period_ns      (whole numbers)

So s_0 is stationary, one draw makes one move, and no draw but the link's own chain's is used up: what else is sent, and
in which order, does not show. The state may be found without all moves before: where all states move to the same one
at u_j (`met`), s_j is known. From k one goes back to such a j, or to 0, and then forward.
"""

from __future__ import annotations

from bisect import bisect_right

from heron_env.scheduling.sources import Chain
from heron_env.seeding import GOLDEN, MASK, mix

NONE = -1


def met(chain: Chain, u: float) -> int:
    """The state to which all move at u; -1 if there is none."""
    first = bisect_right(chain.moves[0], u)
    return first if all(bisect_right(row, u) == first for row in chain.moves[1:]) else NONE


class ChainState:
    """One chain of one link in one episode; it remembers where it was asked last, which saves time only.

    Args:
        chain: how it moves.
        x: the key of its draws.
    """

    __slots__ = ("_chain", "_last", "_state", "_x")

    def __init__(self, chain: Chain, x: int) -> None:
        self._chain, self._x = chain, x
        self._last, self._state = NONE, NONE

    def at(self, ns: int) -> int:
        """The state at a time, ns >= 0."""
        last = ns // self._chain.period_ns
        if last != self._last:
            self._state = self._found(last)
            self._last = last
        return self._state

    def _found(self, wanted: int) -> int:
        chain, draws, k = self._chain, list[float](), wanted
        while True:
            if k == self._last:
                state = self._state
                break
            u = self._draw(k)
            state = bisect_right(chain.start, u) if k == 0 else met(chain, u)
            if state != NONE:
                break
            draws.append(u)
            k -= 1
        for u in reversed(draws):
            state = bisect_right(chain.moves[state], u)
        return state

    def _draw(self, k: int) -> float:
        return (mix(self._x + (k + 1) * GOLDEN & MASK) >> 11) * 2.0**-53
