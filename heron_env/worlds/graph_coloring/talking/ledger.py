"""An agent's ledger of offers: IF these nodes of yours get these colours THEN these of mine get those.

Each agent keeps its own by the letters that reach it. An offer is open until it is answered, or dead after five own
steps; accepted, and confirmed by its proposer's Commit, it binds both for five steps, and then was kept or not.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from heron_env.dcop.problem import Part

LASTS: Final = 5
"""Own steps."""
Move = Literal["Propose", "ConditionalOffer", "CounterProposal", "Accept", "Reject", "Commit"]
OFFERING: Final = ("Propose", "ConditionalOffer", "CounterProposal")
State = Literal["open", "accepted", "rejected", "dead", "bound", "kept", "broken"]


@dataclass
class Offer:
    """One offer; `conditions` are on nodes of `receiver`, `assignments` on nodes of `proposer`; `since`: own step."""

    offer_id: str
    proposer: str
    receiver: str
    move: Move
    conditions: Mapping[str, str]
    assignments: Mapping[str, str]
    refers_to: str
    since: int
    state: State = "open"
    fulfilled: bool = False
    """Did both sides have what was agreed, at one step at least since it binds?"""

    def body(self, move: Move) -> dict[str, Any]:
        """Of the letter that makes this move."""
        given, taken = dict(self.conditions), dict(self.assignments)
        shown = {"conditions": given, "assignments": taken, "offer_id": self.offer_id}
        return {"move": move, **shown, "refers_to": self.refers_to if move in OFFERING else self.offer_id}


class Ledger:
    """What one agent offered, was offered, and is bound to.

    Attributes:
        offers: all of them by id.
    """

    def __init__(self, part: Part) -> None:
        self.part, self.offers, self._number = part, dict[str, Offer](), 0

    def between(self, partner: str, *states: State) -> list[Offer]:
        """Those with a partner that are in one of these states."""
        return [one for one in self.offers.values() if partner in (one.proposer, one.receiver) and one.state in states]

    def propose(
        self, partner: str, given: Mapping[str, str], taken: Mapping[str, str], step: int, refers_to: str = ""
    ) -> Offer | None:
        """A new offer; None while another one with this partner is open. One that it refers to is rejected by it."""
        if refers_to:
            self.offers[refers_to].state = "rejected"
        if self.between(partner, "open", "accepted", "bound"):
            return None
        self._number += 1
        move: Move = "CounterProposal" if refers_to else "ConditionalOffer" if taken else "Propose"
        name = f"{self.part.cluster}:{self._number}"
        made = Offer(name, self.part.cluster, partner, move, dict(given), dict(taken), refers_to, step)
        self.offers[name] = made
        return made

    def hear(self, body: Any, sender: str, step: int) -> bool:
        """Enter a letter; False for one that is none, or fits no offer here."""
        move, name = (body.get(key) if isinstance(body, dict) else None for key in ("move", "offer_id"))
        if not isinstance(name, str) or len(name) > 200:
            return False
        mine, theirs = self.part.cluster, self.part.foreign_boundary(sender)
        if move in OFFERING:
            given, taken = self._colours(body.get("conditions"), self._mine(sender)), body.get("assignments")
            taken = self._colours(taken, theirs)
            owned = name.partition(":")[0] == sender and name not in self.offers
            if not owned or not given or taken is None:
                return False
            for open_one in self.between(sender, "open"):  # both offered: the one whose proposer sorts first stands
                if open_one.proposer == mine and mine < sender and body.get("refers_to") != open_one.offer_id:
                    return False
                open_one.state = "rejected"
            refers = str(body.get("refers_to") or "")
            self.offers[name] = Offer(name, sender, mine, move, given, taken, refers, step)
            return True
        found = self.offers.get(name)
        expected = {"Accept": (mine, "open"), "Reject": (mine, "open"), "Commit": (sender, "accepted")}.get(str(move))
        if found is None or sender not in (found.proposer, found.receiver) or expected != (found.proposer, found.state):
            return False
        match move:
            case "Accept" if not self.refused(found.assignments):
                found.state = "accepted"
            case "Commit":
                self.bind(found, step)
            case _:
                found.state = "rejected"
        return True

    def _mine(self, partner: str) -> tuple[str, ...]:
        return tuple(own for own, foreign in self.part.outer if self.part.owners[foreign] == partner)

    def _colours(self, told: Any, nodes: tuple[str, ...]) -> dict[str, str] | None:
        """What a letter says of these nodes; None if it is something else."""
        known = isinstance(told, dict) and all(node in nodes and c in self.part.domain for node, c in told.items())
        return dict(told) if known else None

    def refused(self, colours: Mapping[str, str]) -> bool:
        """Would one of my fixed nodes have to change?"""
        return any(self.part.fixed.get(node, colour) != colour for node, colour in colours.items())

    def bind(self, offer: Offer, step: int) -> None:
        """From now on it binds."""
        offer.state, offer.since = "bound", step

    def commits(self, partner: str | None = None) -> dict[str, str]:
        """What I am bound to, towards all or one."""
        bound = [one for one in self.offers.values() if one.state == "bound"]
        return {
            node: colour
            for one in bound
            if partner in (None, one.proposer, one.receiver)
            for node, colour in (one.assignments if one.proposer == self.part.cluster else one.conditions).items()
        }

    def judge(self, step: int, colours: Mapping[str, str]) -> list[Offer]:
        """After five steps offers are dead; those that bound were kept if the colours that I know of were as agreed."""
        for one in self.offers.values():
            if one.state == "bound":
                one.fulfilled |= {**one.conditions, **one.assignments}.items() <= colours.items()
        due = [one for one in self.offers.values() if step - one.since >= LASTS]
        judged = [one for one in due if one.state == "bound"]
        for one in due:
            if one.state in ("open", "accepted", "bound"):
                one.state = "dead" if one.state != "bound" else "kept" if one.fulfilled else "broken"
        return judged
