"""One agent's link: how late, lost or doubled a message is, as a pure function of what caused it (law: see fleet)."""

from heron_env.scheduling.fleet import Fleet, What
from heron_env.scheduling.timing import END_OF_TIME, Timing

DELAY, LOST, DUPLICATED, SHIFT = map(int, (What.DELAY, What.LOST, What.DUPLICATED, What.SHIFT))


class Link:
    """The link between one agent and its proxy or parent, in one episode.

    Args:
        agent_key: a stable number of the agent, `seeding.h(id)`.
        timing: the agent's schedule.
        seed: the run's seed.
        episode: number of the episode since it.
        fleet: who draws, for this link at `place`; without one a link draws for itself.
    """

    __slots__ = (
        "_bits",
        "_first",
        "_fleet",
        "_least",
        "_place",
        "doubles",
        "ideal",
        "jitters",
        "reorder",
        "special",
        "timing",
        "wavers",
    )

    def __init__(
        self, agent_key: int, timing: Timing, seed: int, episode: int, fleet: Fleet | None = None, place: int = 0
    ) -> None:
        self.timing = timing
        self._fleet = fleet = Fleet(timing, seed, episode, [agent_key]) if fleet is None else fleet
        self._place, self._bits, self._first = place, fleet.bits, place << fleet.bits
        self._least = timing.min_delay
        self.reorder = timing.config.reorder
        self.jitters, self.doubles = fleet.ratio > 0.0, fleet.duplicate > 0.0
        self.wavers = fleet.tick_ratio > 0.0
        self.ideal = not (self.jitters or fleet.loss or self.doubles or timing.min_delay)
        """Nothing is drawn on this link, and a delay is what it is said to be."""
        self.special = self.doubles
        """Is there more to do for a message than to draw its delay and whether it gets lost?"""

    def delay(self, nominal: int, cause: str, leg: int, number: int, sent: int = 0, *, twin: bool = False) -> int:
        """The delay of one leg that departs at `sent`, ns; a duplicate (`twin`) has a draw of its own."""
        if self.jitters and nominal:
            return self.draw(DELAY + twin, nominal, cause, leg, number)
        return max(nominal, self._least)

    def lost(self, cause: str, leg: int, number: int, sent: int = 0, *, twin: bool = False) -> bool:
        """Is the message lost that departs at `sent`, ns? A duplicate (`twin`) has a draw of its own."""
        return self._fleet.loss > 0.0 and self.draw(LOST + twin, 0, cause, leg, number) == 1

    def duplicated(self, cause: str, leg: int, number: int) -> bool:
        """Does the message travel twice?"""
        return self.doubles and self.draw(DUPLICATED, 0, cause, leg, number) == 1

    def tick_time(self, number: int, previous: int) -> int:
        """Time of tick `number`, ns, not before the previous one (0 for none); after the end of time none wavers."""
        due = self.timing.nominal(number)
        if self.wavers and number and due < END_OF_TIME:
            due += self.draw(SHIFT, self.timing.tick, "tick", 0, number)
        return max(previous, due)

    def draw(self, what: int, nominal: int, cause: str, leg: int, number: int, sent: int = 0) -> int:
        """The answer to `what` (see What) for one leg; `nominal` is its delay before jitter, ns.

        When it departs, `sent` ns, is for links whose delays come from data (SourcedLink).
        """
        draws, size = self._fleet[what, nominal, cause, leg], self._bits
        block = draws.blocks.get(number >> size)
        if block is None:
            return draws.draw(self._place, number)
        return block[self._first + number - (number >> size << size)]
