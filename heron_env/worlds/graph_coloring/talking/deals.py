"""What an agent makes of offers: it wishes for what costs it less, and accepts what costs it no more."""

from __future__ import annotations

from collections.abc import Mapping

from heron_env.dcop.cluster.agent import ClusterAgent
from heron_env.dcop.cluster.view import Option, StepReport
from heron_env.dcop.responses import best_response
from heron_env.worlds.graph_coloring.talking.ledger import Ledger, Offer

NEAR = 1e-9
Wish = tuple[dict[str, str], dict[str, str]]
"""What some of the partner's nodes should be, and what some of mine would then be."""


def settled(ledger: Ledger, agent: ClusterAgent, step: int) -> dict[str, tuple[str, Offer]]:
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
    ledger: Ledger, agent: ClusterAgent, report: StepReport, options: list[Option], fixed: Mapping[str, str]
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
