"""Mutants: faults in how delays and losses are drawn from data."""

from bisect import bisect_left
from typing import Any

from laws.mutants import mutant_in

from heron_env.scheduling import links
from heron_env.seeding import element

MUTANTS: dict[str, Any] = {}
mutant = mutant_in(MUTANTS)


@mutant(links.ChainState, "at")
def moves_with_every_message(original: Any) -> Any:
    """As a chain is usually written: one move for each that is asked about."""
    asked: dict[int, int] = {}

    def at(self: Any, ns: int) -> int:
        asked[id(self)] = asked.get(id(self), -1) + 1
        return int(original(self, asked[id(self)] * self._chain.period_ns))

    return at


@mutant(links.ChainState, "_state_in")
def begins_in_the_first_state(original: Any) -> Any:
    """Not in a stationary one."""

    def found(self: Any, wanted: int) -> int:
        chain, state = self._chain, 0
        for k in range(1, wanted + 1):
            state = sum(limit <= element(self._x, k) for limit in chain.moves[state])
        return state

    return found


@mutant(links.SourcedLink, "_base")
def read_at_the_start(original: Any) -> Any:
    """The departure is forgotten."""
    return lambda self, nominal, cause, leg, number, sent: original(self, nominal, cause, leg, number, 0)


@mutant(links, "bisect_right")
def before_the_row(original: Any) -> Any:
    """What departs at a row's very time still has the delay of the row before."""
    return bisect_left
