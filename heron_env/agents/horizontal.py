"""Horizontal protocols: what agents below one coordinator tell each other over which edges, and where it arrives.

    class Heard(Inbox):
        soc: float = quantity(default=0.5, low=0.0, high=1.0, shape=(2,))

    class Battery(FieldAgent):
        features = (Charge, Heard)

    SystemAgent("system_agent", *batteries, exchange=StateShare(Charge.soc, Heard.soc, "ring"))

At each step boundary every sender tells the value of its quantity; the receivers' next observations have it. In the
event-driven clock it leaves at the boundary and arrives after the delay of the sender's link, late or never.

With `when=Voice.says`, a quantity that the sender's action sets, it tells only where that is 0.5 or more at a boundary;
the flag is set to 0 when the shares have left. Rewards are computed before, so a rule can take a price for each.

A sharing agent discloses exactly what it shares, without noise, also where tags or an observability matrix hide that
quantity from the receiver: to tell is the protocol's purpose. Bookkeeping (`observed=False`) can't be shared.

    SystemAgent("system_agent", *traders, exchange=Mail("full"))

Mail is letters: policies that answer (`AnsweringPolicy`) write them with their answers, and find those that came in
`asked.letters`. They travel as shared values do; synchronously a letter is there at the receiver's next question.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from heron_env.core.feature import FeatureProvider
from heron_env.core.quantity import Quantity
from heron_env.errors import ConfigError, FeatureError, HierarchyError, did_you_mean
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
        """Return `'ring'`, or the number of pairs."""
        return repr(self.edges) if isinstance(self.edges, str) else f"edges: {len(self.edges)}"

    def pairs(self, subordinates: Sequence[str]) -> list[Pair]:
        """Return the edges, those of one receiver in the order of its slots; `subordinates` in registration order."""
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


class Inbox(FeatureProvider):
    """Memory of what an agent has received from others.

    Subclass it and declare quantities for protocols to write: bounds clip what arrives, defaults hold until something
    has. Only the owner sees it, rules of the owner may read it, only its protocol writes it, and state reports never
    carry it: it changes with its owner's knowledge, in truth and cache alike.

    Raises FeatureError for another visibility than ("owner",) and for quantities with `per_step`.
    """

    visibility = ("owner",)
    reported: ClassVar[bool] = False

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Check that nobody else is to see it and nothing else resets it."""
        super().__init_subclass__(**kwargs)
        tags = {None: tuple(cls.visibility)} | {name: q.visibility for name, q in cls.quantities.items()}
        for name, visibility in tags.items():
            if visibility not in (None, ("owner",)):
                where = cls.__name__ if name is None else f"{cls.__name__}.{name}"
                raise FeatureError(
                    f"{where}: visibility={visibility!r}: an inbox is seen by its owner only; leave `visibility` out, "
                    "or let a rule copy what others may see into a feature"
                )
        for name, q in cls.quantities.items():
            if q.per_step:
                raise FeatureError(f"{cls.__name__}.{name}: per_step=True: an inbox keeps what it was told; remove it")


class HorizontalProtocol(Topology):
    """What travels between which agents at each step boundary; subclasses say how several senders are put together.

    Args:
        source: the quantity that senders tell, `Charge.soc`.
        into: the quantity of an Inbox that receives it, `Heard.soc`; what arrives is clipped to its bounds.
        edges, hub: who tells whom, see Topology.
        when: a number of the sender, `Voice.says`: it tells only at boundaries where that is 0.5 or more, and it is 0
            after them. None: at all.

    Raises FeatureError for quantities that can't be shared, written or raised, ConfigError for impossible edges.
    """

    def __init__(
        self, source: Any, into: Any, edges: str | Sequence[Pair], *, hub: str | None = None, when: Any = None
    ) -> None:
        name = type(self).__name__
        roles = {"source": source, "into": into} | ({} if when is None else {"when": when})
        for role, quantity in roles.items():
            if not isinstance(quantity, Quantity) or quantity.owner is None:
                raise FeatureError(
                    f"{name}({role}={quantity!r}): must be a quantity of a feature class, as in Charge.soc"
                )
        self.source: Quantity = source
        self.into: Quantity = into
        if not issubclass(self.owner_of(into), Inbox):
            raise FeatureError(
                f"{name}(into={into!r}): {self.owner_of(into).__name__} is no Inbox; derive it from Inbox, so that "
                "nothing else writes it"
            )
        if not source.observed:
            raise FeatureError(
                f"{name}(source={source!r}): it is bookkeeping (observed=False), which never travels; share an "
                "observed quantity"
            )
        self.when: Quantity | None = when
        if when is not None:
            self._check_flag(f"{name}(when={when!r})", when)
        super().__init__(edges, hub=hub)
        self.slots = self.count_slots()

    def _check_flag(self, where: str, flag: Quantity) -> None:
        fault = (
            "it is an inbox, which actions don't write" if issubclass(self.owner_of(flag), Inbox)
            else f"it has the shape {flag.shape}" if flag.shape
            else "it is set to 0 before physics (per_step=True)" if flag.per_step
            else "0 or 1 is beyond its bounds" if not flag.low <= 0.0 < 1.0 <= flag.high
            else ""
        )  # fmt: skip
        if fault:
            raise FeatureError(f"{where}: {fault}; give a number of the sender that its action sets to 0 or 1")

    @staticmethod
    def owner_of(declared: Quantity) -> type[FeatureProvider]:
        """Return the feature class of a quantity of this protocol."""
        assert declared.owner is not None, "checked when the protocol was made"
        return declared.owner

    def slot(self, position: int) -> int:
        """The place in `into`, counted in whole sources, of a receiver's sender number `position`.

        Senders with the same place are averaged.
        """
        raise TypeError(f"{type(self).__name__} must define slot()")

    def count_slots(self) -> int:
        """How many slots `into` has. Raises FeatureError if its shape does not fit the source's."""
        raise TypeError(f"{type(self).__name__} must define count_slots()")

    def __repr__(self) -> str:
        """`StateShare(Charge.soc, Heard.soc, 'ring')`."""
        when = "" if self.when is None else f", when={self.when!r}"
        return f"{type(self).__name__}({self.source!r}, {self.into!r}, {self.shown_edges}{when})"


class StateShare(HorizontalProtocol):
    """Send each sender's value: slot i of `into` is for the receiver's i-th sender, in the order of the edges.

    `into` has shape (k,), for a vector source (k, *source.shape), with k at least the largest number of senders of a
    receiver; slots without a sender keep their default. Where every receiver has one sender, `into` may have the
    source's own shape.
    """

    def slot(self, position: int) -> int:
        """Return a slot for each sender."""
        return position

    def count_slots(self) -> int:
        """Return the first axis of `into`, or 1 if it has the source's shape."""
        into, shape = self.into.shape, self.source.shape
        if into == shape:
            return 1
        if into[1:] == shape and len(into) == len(shape) + 1:
            return into[0]
        inner = "".join(f", {n}" for n in shape) or ","
        raise FeatureError(
            f"StateShare(into={self.into!r}): its shape {into} has no slots for {self.source!r} of shape {shape}; "
            f"declare it with shape=(k{inner}), a slot for each of k senders"
        )


class StateAverage(HorizontalProtocol):
    """Send each receiver the mean of its senders' last values; `into` has the source's shape.

    A sender from which nothing has arrived does not count. One that has ended counts with its last value. The default
    holds until a first value arrives.
    """

    def slot(self, position: int) -> int:
        """Return the same slot for all senders."""
        return 0

    def count_slots(self) -> int:
        """Return 1."""
        if self.into.shape != self.source.shape:
            raise FeatureError(
                f"StateAverage(into={self.into!r}): its shape {self.into.shape} must be that of {self.source!r}, "
                f"{self.source.shape}"
            )
        return 1


class Mail(Topology):
    """Edges for letters; a pair may also name the declaring agent itself: `[("boss", "worker")]`.

    Args:
        edges, hub: who may write to whom, see Topology.
        written: a quantity of the senders, which holds how many letters each has written when physics reads it.
    """

    itself: ClassVar[bool] = True

    def __init__(self, edges: str | Sequence[Pair], *, hub: str | None = None, written: Any = None) -> None:
        if written is not None and (not isinstance(written, Quantity) or written.owner is None):
            raise FeatureError(f"Mail(written={written!r}): must be a quantity of a feature class, as in Tally.letters")
        self.written: Quantity | None = written
        super().__init__(edges, hub=hub)

    def __repr__(self) -> str:
        """`Mail('full')`."""
        return f"{type(self).__name__}({self.shown_edges})"


def as_protocols(value: Any, where: str) -> tuple[Topology, ...]:
    """One protocol or several as a tuple. Raises HierarchyError saying `where` for anything else."""
    protocols = (value,) if isinstance(value, Topology) else value
    if not isinstance(protocols, tuple | list) or not all(isinstance(p, Topology) for p in protocols):
        raise HierarchyError(
            f"{where}: exchange={value!r}: must be a horizontal protocol, as in "
            "StateShare(Charge.soc, Heard.soc, 'ring'), or several"
        )
    return tuple(protocols)
