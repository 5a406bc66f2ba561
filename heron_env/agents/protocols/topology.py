"""Who is connected with whom below one coordinator: the edges of everything that agents exchange."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from heron_env.errors import ConfigError, HierarchyError, did_you_mean
from heron_env.given import is_one_of

TOPOLOGIES = ("ring", "star", "full")
Pair = tuple[str, str]
"""(id of the sender, id of the receiver)."""


class Topology:
    """Edges between the agents below a coordinator; subclasses say what travels over them.

    Args:
        edges: "ring": each hears its two neighbours, left then right (of two agents: the other). "star": the hub
            hears all, all hear the hub. "full": everyone hears all others. These three connect the direct
            subordinates of the declaring agent, in registration order. Or pairs (sender id, receiver id) of any
            agents below it.
        hub: id of the star's hub; None: the first subordinate.

    Raises ConfigError for impossible edges.
    """

    itself: ClassVar[bool] = False
    """May pairs name the declaring agent too?"""

    def __init__(self, edges: str | Sequence[Pair], *, hub: str | None = None) -> None:
        self.edges = tuple(edges) if isinstance(edges, list) else edges
        self.hub = hub
        self._check_edges(type(self).__name__)

    @property
    def shown_edges(self) -> str:
        """`'ring'`, or how many pairs there are."""
        return repr(self.edges) if isinstance(self.edges, str) else f"edges: {len(self.edges)}"

    def pairs(self, subordinates: Sequence[str]) -> list[Pair]:
        """The edges, those of one receiver in the order of its slots; `subordinates` in registration order."""
        n = len(subordinates)
        match self.edges:
            case "ring":
                around = (dict.fromkeys(((i - 1) % n, (i + 1) % n)) for i in range(n))
                return [(subordinates[j], subordinates[i]) for i, near in enumerate(around) for j in near if j != i]
            case "star":
                hub = self.hub if self.hub is not None else next(iter(subordinates), None)
                others = [agent for agent in subordinates if agent != hub]
                return [(agent, str(hub)) for agent in others] + [(str(hub), agent) for agent in others]
            case "full":
                return [
                    (sender, receiver) for receiver in subordinates for sender in subordinates if sender != receiver
                ]
        assert not isinstance(self.edges, str), "checked when the protocol was made"
        return [(sender, receiver) for sender, receiver in self.edges]

    def _check_edges(self, name: str) -> None:
        if isinstance(self.edges, tuple):
            self._check_pairs(name, self.edges)
        elif not is_one_of(self.edges, TOPOLOGIES):
            raise ConfigError(
                f"{name}(edges={self.edges!r}): must be one of {', '.join(map(repr, TOPOLOGIES))}, or a list of pairs "
                f"(sender id, receiver id).{did_you_mean(self.edges, TOPOLOGIES)}"
            )
        if self.hub is not None and self.edges != "star":
            raise ConfigError(f"{name}(hub={self.hub!r}): only a star has a hub; write edges='star' or remove `hub`")

    @staticmethod
    def _check_pairs(name: str, pairs: Sequence[Any]) -> None:
        first: dict[Pair, int] = {}
        for i, pair in enumerate(pairs):
            where = f"{name}(edges[{i}]={pair!r})"
            if not isinstance(pair, tuple | list) or [type(agent) for agent in pair] != [str, str]:
                raise ConfigError(f"{where}: must be a pair of ids, (sender, receiver)")
            sender, receiver = pair
            if sender == receiver:
                raise ConfigError(f"{where}: an agent tells itself nothing; remove this edge")
            if (sender, receiver) in first:
                raise ConfigError(f"{where}: the same edge as edges[{first[sender, receiver]}]; remove one")
            first[sender, receiver] = i


def as_protocols(given: Any, where: str) -> tuple[Topology, ...]:
    """One protocol or several as a tuple. Raises HierarchyError saying `where` for anything else."""
    protocols = (given,) if isinstance(given, Topology) else given
    if not isinstance(protocols, tuple | list) or not all(isinstance(p, Topology) for p in protocols):
        raise HierarchyError(
            f"{where}: exchange={given!r}: must be a horizontal protocol, as in "
            "StateShare(Charge.soc, Heard.soc, 'ring'), or several"
        )
    return tuple(protocols)
