"""What the world makes of a message's way: the hook `link`, asked when the message departs (T20)."""

from __future__ import annotations

from numbers import Real
from typing import TYPE_CHECKING, Any, Final

from heron_env.envs.hooks import PROXY, Hooks
from heron_env.errors import RuleError
from heron_env.scheduling.broker import Queue
from heron_env.scheduling.links import Link, RuledLink

if TYPE_CHECKING:
    from heron_env.envs.event.context import EventContext

MOST_FACTOR: Final = 1e6
"""No delay grows more than that."""


def has_link_rule(hooks: Hooks) -> bool:
    """Does the environment have the hook?"""
    return type(hooks).link is not Hooks.link or "link" in vars(hooks)


class LinkRule:
    """Asks the hook for each message, and tells the message's link: results are clipped, nan is refused (RuleError)."""

    def __init__(self, context: EventContext) -> None:
        self.context = context

    def __call__(self, link: Link, message: Any, queue: int) -> None:
        """Before the message is drawn. The physics cycle's reliable legs are not asked about."""
        sender, receiver = self._ends(message, queue)
        simulation = self.context.simulation
        answer: Any = simulation.hooks.link(simulation.world, sender, receiver)
        pair = answer if isinstance(answer, tuple | list) and len(answer) == 2 else ()
        if not pair or not all(isinstance(x, Real) and not isinstance(x, bool) and x == x for x in pair):
            names = [self._name(rank) for rank in (sender, receiver)]
            raise RuleError(
                f"{type(simulation.hooks).__name__}.link(world, {sender}, {receiver}) ({names[0]} to {names[1]}) "
                f"returned {answer!r:.100}; return (factor on the delay, probability of loss), "
                "two numbers, none of them nan"
            )
        assert isinstance(link, RuledLink)
        link.factor = min(max(float(pair[0]), 0.0), MOST_FACTOR)
        link.more = min(max(float(pair[1]), 0.0), 1.0)

    def _ends(self, message: Any, queue: int) -> tuple[int, int]:
        """Who sends to whom, by rank."""
        simulation, agent = self.context.simulation, message.agent
        match queue:
            case Queue.UP:
                return agent, PROXY
            case Queue.COMMAND:
                return simulation.hierarchy.parent[agent], agent
            case Queue.SHARE:
                return agent, simulation.hierarchy.index[simulation.exchange.edges[message.edge].route.receiver]
            case Queue.LETTER:
                return agent, message.receiver
        return PROXY, agent

    def _name(self, rank: int) -> str:
        return "the proxy" if rank == PROXY else repr(self.context.simulation.hierarchy.ids[rank])
