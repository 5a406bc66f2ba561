"""What an agent makes of offers: it wishes for what costs it less, and accepts what costs it no more."""

from __future__ import annotations

from collections.abc import Mapping

from heron_env.dcop.cluster.agent import ClusterAgent
from heron_env.dcop.cluster.report import StepReport
from heron_env.dcop.responses import best_response
from heron_env.worlds.graph_coloring.talking.ledger import Ledger, Offer

NEAR = 1e-9


def settled(ledger: Ledger, agent: ClusterAgent, step: int) -> dict[str, tuple[str, Offer]]:
    """By partner, the move that is due and its offer: a Commit to what was accepted, or an answer to what is open."""
    due: dict[str, tuple[str, Offer]] = {}
    for offer in ledger.offers.values():
        if offer.state == "accepted" and offer.proposer == agent.part.cluster:
            ledger.bind(offer, step)
            due[offer.receiver] = "Commit", offer
        elif offer.state == "open" and offer.receiver == agent.part.cluster:
            bound = {**ledger.commits(), **agent.fixed}
            fits = all(bound.get(node, colour) == colour for node, colour in offer.conditions.items())
            now = best_response(agent.part, agent.beliefs, bound)[0]
            told = {**agent.beliefs, **offer.assignments}
            if fits and best_response(agent.part, told, {**bound, **offer.conditions})[0] <= now + NEAR:
                offer.state, offer.since = "accepted", step
                due[offer.proposer] = "Accept", offer
            else:
                due[offer.proposer] = "Reject", offer
    return due


def wish(
    ledger: Ledger, agent: ClusterAgent, report: StepReport, partner: str, fixed: Mapping[str, str]
) -> tuple[dict[str, str], dict[str, str]] | None:
    """(what some of the partner's nodes should be, what some of mine would then be) to pay less.

    None where nothing would help, or it can help itself.

    Args:
        fixed: nodes of the partner's that are known to be fixed.
    """
    told, bound = report.told, {**ledger.commits(), **agent.fixed}
    if not report.conflicts or best_response(agent.part, told, bound)[0] < report.net - NEAR:
        return None
    for option in agent.utility_options(partner):
        given = {node: colour for node, colour in option.configuration.items() if told.get(node) != colour}
        if option.penalty >= report.penalty - NEAR:
            return None
        if given and all(fixed.get(node, colour) == colour for node, colour in given.items()):
            _, mind = best_response(agent.part, {**told, **option.configuration}, bound)
            near = [own for own, foreign in agent.part.outer if agent.part.owners[foreign] == partner]
            return given, {node: mind[node] for node in near if mind[node] != report.assignments[node]}
    return None
