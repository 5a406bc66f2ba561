"""An agent's ledger of offers: IF these nodes of yours get these colours THEN these of mine get those.

Each agent keeps its own by the letters that reach it. An offer is open until it is answered, or dead after five own
steps; accepted, and confirmed by its proposer's Commit, it binds both for five steps, and then was kept or not.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from heron_env.dcop.cluster.agent import ClusterAgent
from heron_env.dcop.cluster.view import Option, StepReport
from heron_env.dcop.problem import Part
from heron_env.dcop.responses import best_response

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
