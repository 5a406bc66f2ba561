"""Letters of every kind written by templates: offline, and in words that say nothing that isn't so."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from heron_env.worlds.graph_coloring.talking.claims import Facts

TOLD: Final = 3
"""Options that the words of a letter tell; its body has all of them."""


def text_of(kind: str, body: Mapping[str, Any], facts: Facts, asks: Mapping[str, str] | None = None) -> str:
    """The words of a letter: the sender's state, then what this kind is about.

    Args:
        asks: nodes of the recipient's, and the colours that would help the sender.
    """
    told = [*_state(facts)]
    match kind:
        case "utility":
            told += [_priced(option["configuration"], option["penalty"]) for option in body["options"][:TOLD]]
        case "constraints":
            told += [f"{_list(valid, '=')} works for me." for valid in body["valid"][:TOLD] if valid]
        case "offer":
            told += [*_move(body)]
        case "text" if asks:
            told.append(f"Could you change {_list(asks, 'to')}?")
    return " ".join(told)


def _list(colours: Mapping[str, str], link: str) -> str:
    """`h2 to red and h5 to blue`."""
    parts = [f"{node} {link} {colour}" for node, colour in colours.items()]
    return " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)


def _state(facts: Facts) -> Iterable[str]:
    report = facts.report
    if facts.mine:
        yield f"{_list({node: report.assignments[node] for node in facts.mine}, 'is')}."
    moved = {node: report.assignments[node] for node in facts.mine if report.before[node] != report.assignments[node]}
    if moved:
        yield f"I changed {_list(moved, 'to')}."
    elif not report.changed:
        yield "I didn't change anything."
    yield from (f"{own} conflicts with {other}." for own, other in facts.between)
    yield f"My penalty is {report.penalty:g}, and I am {'' if report.satisfied else 'not '}satisfied."


def _priced(configuration: Mapping[str, str], penalty: float) -> str:
    return f"With {_list(configuration, '=')} my penalty is {penalty:g}."


def _move(body: Mapping[str, Any]) -> Iterable[str]:
    given, taken, name = body["conditions"], body["assignments"], body["offer_id"]
    match body["move"]:
        case "Accept" | "Reject" as move:
            yield f"I {move.lower()} {name}."
        case "Commit":
            yield f"Deal {name}."
            if taken:
                yield f"I will set {_list(taken, 'to')}."
        case "Propose":
            yield f"My offer {name}: please set {_list(given, 'to')}."
        case _:
            yield f"My offer {name}: if {_list(given, '=')}, then I will set {_list(taken, 'to')}."
