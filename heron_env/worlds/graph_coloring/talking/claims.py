"""What letters say: claims, held against a step's report, the options and the ledger, and the offers in that ledger.

An offer: IF these nodes of yours get these colours THEN these of mine get those. Each agent keeps its own ledger by the
letters that reach it. An offer is open until it is answered, or dead after five own steps; accepted, and confirmed by
its proposer's Commit, it binds both for five steps, and then was kept or not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final, Literal

from heron_env.dcop.cluster.agent import ClusterAgent
from heron_env.dcop.cluster.view import Option, StepReport
from heron_env.dcop.problem import Part
from heron_env.dcop.responses import best_response

Colours = Mapping[str, str]


@dataclass(frozen=True)
class LetterClaim:
    """One claim: `assign b2 red`, `not satisfied`, `if h2 red penalty 10`; the kinds are in `KINDS`."""

    kind: str
    args: tuple[str, ...] = ()
    holds: bool = True

    def __str__(self) -> str:
        """In words, as above."""
        return " ".join([*([] if self.holds else ["not"]), self.kind, *self.args])


@dataclass(frozen=True)
class Facts:
    """All that a letter is held against.

    Attributes:
        options: of this recipient.
        fixed: nodes known to be fixed: the sender's, and those of messages to it.
        commits: what the ledger has the sender committed to towards this recipient.
        offers: the sender's open offers to the recipient, by id: (conditions, assignments).
        moves: what the letter does to an offer: ("Accept", "Reject", "Commit" or "Offer", its id).
    """

    recipient: str
    part: Part
    report: StepReport
    options: Sequence[Option] = ()
    fixed: Colours = field(default_factory=dict)
    commits: Colours = field(default_factory=dict)
    offers: Mapping[str, tuple[Colours, Colours]] = field(default_factory=dict)
    moves: frozenset[tuple[str, str]] = frozenset()

    @cached_property
    def theirs(self) -> tuple[str, ...]:
        """The recipient's nodes with an edge to the sender's."""
        return self.part.foreign_boundary(self.recipient)

    @cached_property
    def mine(self) -> tuple[str, ...]:
        """The sender's nodes with an edge to the recipient's."""
        shared = {own for own, foreign in self.part.outer if foreign in self.theirs}
        return tuple(node for node in self.part.nodes if node in shared)

    @cached_property
    def colours(self) -> dict[str, str]:
        """The colour of each node, own or told."""
        return {**self.report.told, **self.report.assignments}

    @cached_property
    def between(self) -> tuple[tuple[str, str], ...]:
        """Conflicts with the recipient."""
        return tuple(pair for pair in self.report.conflicts if pair[1] in self.theirs)

    def priced(self, conditions: Colours) -> float | None:
        """The penalty if these nodes of the recipient had these colours and the others stayed; None: not known."""
        told = {node: colour for node, colour in self.report.told.items() if node in self.theirs}
        wanted = {**told, **conditions}.items()
        found = {one.penalty for one in self.options if wanted <= one.configuration.items()}
        return found.pop() if len(found) == 1 else None


def _amount(value: float, told: str) -> bool:
    return value > 0 if told == "some" else abs(value - float(told)) < 1e-9


def _changed(facts: Facts, node: str = "", colour: str = "") -> bool | None:
    if not node:
        return facts.report.changed
    before, after = facts.report.before.get(node), facts.report.assignments.get(node)
    return None if after is None else before != after and colour in ("", after)


def _conflict(facts: Facts, node: str, other: str = "") -> bool | None:
    found = [pair for pair in facts.report.conflicts if node in pair and other in ("", *pair)]
    return bool(found) if facts.colours.keys() >= {node, other} - {""} else None


def _conflicted(facts: Facts, node: str, other: str) -> bool | None:
    past = {**facts.report.told, **facts.report.before}
    edges = {(node, other), (other, node)} & {*facts.part.outer, *facts.part.inner}
    return bool(edges) and node in past and past[node] == past.get(other)


def _conflicts(facts: Facts, *told: str) -> bool:
    return _amount(len(facts.between if told[0] == "you" else facts.report.conflicts), told[-1])


def _pairs(args: Sequence[str]) -> dict[str, str]:
    """Colours by node. Raises ValueError where one has two."""
    found = dict(zip(args[::2], args[1::2], strict=True))
    if 2 * len(found) < len(args):
        raise ValueError("a node with two colours")
    return found


def _priced(facts: Facts, *args: str) -> bool | None:
    price = facts.priced(_pairs(args[:-2]))
    if price is None or args[-1] == "less":
        return None if price is None else price < facts.report.penalty
    return _amount(price, args[-1])


def _possible(facts: Facts, node: str, colour: str) -> bool | None:
    return (
        facts.fixed.get(node, colour) == colour if node in facts.mine else _priced(facts, node, colour, "penalty", "0")
    )


def _offered(facts: Facts, *args: str) -> bool:
    said = _pairs(args)
    return any({**given, **taken} == said for given, taken in facts.offers.values())


def _equal(colours: Colours, node: str, colour: str | None) -> bool | None:
    return colours[node] == colour if node in colours and colour else None


KINDS: dict[str, Callable[..., bool | None]] = {
    "assign": lambda facts, node, colour: _equal(facts.colours, node, colour),
    "was": lambda facts, node, colour: _equal(facts.report.before, node, colour),
    "changed": _changed,
    "satisfied": lambda facts: facts.report.satisfied,
    "penalty": lambda facts, value: _amount(facts.report.penalty, value),
    "conflict": _conflict,
    "conflicted": _conflicted,
    "conflicts": _conflicts,
    "same": lambda facts, node, other: _equal(facts.colours, node, facts.colours.get(other)),
    "unknown": lambda facts, node: node not in facts.colours,
    "if": _priced,
    "fixed": lambda facts, node: node in facts.fixed,
    "possible": _possible,
    "mine": lambda facts, node: node in facts.part.nodes,
    "ask": lambda facts, node: node in facts.theirs,
    "request": lambda facts, node, colour="": node in facts.theirs and node not in facts.fixed,
    "commit": lambda facts, node, colour: facts.commits.get(node) == colour,
    "offer": _offered,
    "move": lambda facts, move, offer: (move, offer) in facts.moves,
}
"""Of (facts, arguments): is it so? None: the sender can't know."""


def holds(claim: LetterClaim, facts: Facts) -> bool:
    """Does the sender know it to be so? False also for arguments that the kind doesn't take."""
    try:
        return KINDS[claim.kind](facts, *claim.args) is claim.holds
    except (KeyError, TypeError, ValueError, IndexError):
        return False


LASTS: Final = 5
"""Own steps."""
OFFERING: Final = ("Propose", "ConditionalOffer", "CounterProposal")
State = Literal["open", "accepted", "rejected", "dead", "bound", "kept", "broken"]


@dataclass
class Offer:
    """One offer; `conditions` are on nodes of `receiver`, `assignments` on nodes of `proposer`; `since`: own step."""

    offer_id: str
    proposer: str
    receiver: str
    move: str
    conditions: Mapping[str, str]
    assignments: Mapping[str, str]
    refers_to: str
    since: int
    state: State = "open"
    fulfilled: bool = False
    """Did both sides have what was agreed, at one step at least since it binds?"""

    def body(self, move: str) -> dict[str, Any]:
        """Of the letter that makes this move."""
        shown = {"conditions": dict(self.conditions), "assignments": dict(self.assignments), "offer_id": self.offer_id}
        return {"move": move, **shown, "refers_to": self.refers_to if move in OFFERING else self.offer_id}

    def promised(self, agent: str) -> Mapping[str, str]:
        """What one side has to do."""
        return self.assignments if agent == self.proposer else self.conditions


class OfferLedger:
    """What one agent offered, was offered, and is bound to: `offers` by id."""

    def __init__(self, part: Part) -> None:
        self.part, self.offers, self._number = part, dict[str, Offer](), 0

    def standing(self, partner: str) -> list[Offer]:
        """Those with a partner that are not over."""
        live = [one for one in self.offers.values() if one.state in ("open", "accepted", "bound")]
        return [one for one in live if partner in (one.proposer, one.receiver)]

    def propose(
        self, partner: str, given: Mapping[str, str], taken: Mapping[str, str], step: int, refers_to: str = ""
    ) -> Offer | None:
        """A new offer; None while another one with this partner stands. One that it refers to is rejected by it."""
        if refers_to:
            self.offers[refers_to].state = "rejected"
        if self.standing(partner):
            return None
        self._number += 1
        me = self.part.cluster
        move = "CounterProposal" if refers_to else "ConditionalOffer" if taken else "Propose"
        made = Offer(f"{me}:{self._number}", me, partner, move, dict(given), dict(taken), refers_to, step)
        self.offers[made.offer_id] = made
        return made

    def hear(self, body: Any, sender: str, step: int) -> bool:
        """Enter a letter; False for one that is none, or fits no offer here."""
        told = body if isinstance(body, dict) else {}
        move, name = told.get("move"), told.get("offer_id")
        if not isinstance(name, str) or not isinstance(move, str):
            return False
        if move in OFFERING:
            return self._hear_offer(told, sender, step)
        found, me = self.offers.get(name), self.part.cluster
        fits = {"Accept": (me, sender, "open"), "Reject": (me, sender, "open"), "Commit": (sender, me, "accepted")}
        if found is None or fits.get(move) != (found.proposer, found.receiver, found.state):
            return False
        if move == "Commit":
            self.bind(found, step)
        else:
            accepted = move == "Accept" and not self.refuses(found.assignments)
            found.state = "accepted" if accepted else "rejected"
        return True

    def _hear_offer(self, told: Mapping[str, Any], sender: str, step: int) -> bool:
        me, name, refers_to = self.part.cluster, told["offer_id"], told.get("refers_to")
        mine = [own for own, foreign in self.part.outer if self.part.owners[foreign] == sender]
        sides = (told.get("conditions"), mine), (told.get("assignments"), self.part.foreign_boundary(sender))
        known = all(
            isinstance(colours, dict)
            and all(node in nodes and colour in self.part.domain for node, colour in colours.items())
            for colours, nodes in sides
        )
        if not known or not told["conditions"] or name.rpartition(":")[0] != sender or name in self.offers:
            return False
        for other in self.standing(sender):
            if other.proposer == me and me < sender and other.state == "open" and refers_to != other.offer_id:
                return False  # both offered at once: that of whose name comes first stands
            if other.state == "open":
                other.state = "rejected"
        given, taken = dict(told["conditions"]), dict(told["assignments"])
        self.offers[name] = Offer(name, sender, me, told["move"], given, taken, str(refers_to or ""), step)
        return True

    def refuses(self, colours: Mapping[str, str]) -> bool:
        """Would one of my fixed nodes have to change?"""
        return any(self.part.fixed.get(node, colour) != colour for node, colour in colours.items())

    def bind(self, offer: Offer, step: int) -> None:
        """From now on it binds."""
        offer.state, offer.since = "bound", step

    def commits(self, *partners: str) -> dict[str, str]:
        """What I am bound to, towards these partners or all."""
        bound = [one for one in self.offers.values() if one.state == "bound"]
        chosen = [one for one in bound if not partners or {one.proposer, one.receiver} & {*partners}]
        return {node: colour for one in chosen for node, colour in one.promised(self.part.cluster).items()}

    def judge(self, step: int, colours: Mapping[str, str]) -> list[Offer]:
        """After five steps offers are dead; those that bound were kept if the colours that I know of were as agreed."""
        judged = []
        for one in self.offers.values():
            if one.state == "bound":
                one.fulfilled |= {**one.conditions, **one.assignments}.items() <= colours.items()
            if step - one.since >= LASTS and one.state == "bound":
                one.state = "kept" if one.fulfilled else "broken"
                judged.append(one)
            elif step - one.since >= LASTS and one.state in ("open", "accepted"):
                one.state = "dead"
        return judged


NEAR = 1e-9
Wish = tuple[dict[str, str], dict[str, str]]
"""What some of the partner's nodes should be, and what some of mine would then be."""


def settled(ledger: OfferLedger, agent: ClusterAgent, step: int) -> dict[str, tuple[str, Offer]]:
    """By partner, the move that is due and its offer: a Commit to what was accepted, or an answer to what is open."""
    due: dict[str, tuple[str, Offer]] = {}
    me, told = agent.part.cluster, dict(agent.beliefs)
    for offer in ledger.offers.values():
        if offer.state == "accepted" and offer.proposer == me:
            ledger.bind(offer, step)
            due[offer.receiver] = "Commit", offer
        elif offer.state == "open" and offer.receiver == me:
            bound, asked = {**ledger.commits(), **agent.fixed}, dict(offer.conditions)
            fits = {**asked, **bound} == {**bound, **asked}
            without = best_response(agent.part, told, bound)[0]
            if (
                fits
                and best_response(agent.part, {**told, **offer.assignments}, {**bound, **asked})[0] <= without + NEAR
            ):
                offer.state, offer.since = "accepted", step
            due[offer.proposer] = "Accept" if offer.state == "accepted" else "Reject", offer
    return due


def wish(
    ledger: OfferLedger, agent: ClusterAgent, report: StepReport, options: list[Option], fixed: Mapping[str, str]
) -> Wish | None:
    """How to pay less; None where nothing would help, or it can help itself.

    Args:
        options: of the partner, the best first.
        fixed: nodes that are known to be fixed.
    """
    told, bound = report.told, {**ledger.commits(), **agent.fixed}
    if not report.conflicts or best_response(agent.part, told, bound)[0] < report.net - NEAR:
        return None
    for option in options:
        given = {node: colour for node, colour in option.configuration.items() if told.get(node) != colour}
        if option.penalty >= report.penalty - NEAR:
            return None
        if given and all(fixed.get(node, colour) == colour for node, colour in given.items()):
            mind = best_response(agent.part, {**told, **option.configuration}, bound)[1]
            near = dict.fromkeys(own for own, foreign in agent.part.outer if foreign in option.configuration)
            return given, {node: mind[node] for node in near if mind[node] != report.assignments[node]}
    return None
