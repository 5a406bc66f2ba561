"""Letters of every kind written by templates: offline, and in words that say nothing that isn't so."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from heron_env.worlds.graph_coloring.talking.claims import Facts

TOLD: Final = 3
"""Options that the words of a letter tell; its body has all of them."""


def text_of(kind: str, body: Mapping[str, Any], facts: Facts, asks: Mapping[str, str]) -> str:
    """The words of a letter: the sender's state, then what this kind is about.

    Args:
        asks: nodes of the recipient's, and the colours that would help the sender.
    """
    said = [*_state(facts)]
    match kind:
        case "utility":
            for option in body["options"][:TOLD]:
                said.append(f"With {_list(option['configuration'], '=')} my penalty is {option['penalty']:g}.")
        case "constraints":
            said += [f"{_list(valid, '=')} works for me." for valid in body["valid"][:TOLD]]
        case "offer":
            said += [*_move(body)]
        case "text" if asks:
            said.append(f"Could you change {_list(asks, 'to')}?")
    return " ".join(said)


def _list(colours: Mapping[str, str], link: str) -> str:
    """`h2 to red and h5 to blue`."""
    *most, last = [f"{node} {link} {colour}" for node, colour in colours.items()]
    return f"{', '.join(most)} and {last}" if most else last


def _state(facts: Facts) -> Iterator[str]:
    report = facts.report
    now = {node: report.assignments[node] for node in facts.mine}
    moved = {node: colour for node, colour in now.items() if report.before[node] != colour}
    yield f"{_list(now, 'is')}."
    if moved:
        yield f"I changed {_list(moved, 'to')}."
    elif not report.changed:
        yield "I didn't change anything."
    yield from (f"{own} conflicts with {other}." for own, other in facts.between)
    yield f"My penalty is {report.penalty:g}, and I am {'' if report.satisfied else 'not '}satisfied."


def _move(body: Mapping[str, Any]) -> Iterator[str]:
    given, taken, name = body["conditions"], body["assignments"], body["offer_id"]
    match body["move"]:
        case "Accept" | "Reject" as move:
            yield f"I {move.lower()} {name}."
        case "Commit":
            yield f"Deal {name}."
            if taken:
                yield f"I will set {_list(taken, 'to')}."
        case _ if not taken:
            yield f"My offer {name}: please set {_list(given, 'to')}."
        case _:
            yield f"My offer {name}: if {_list(given, '=')}, then I will set {_list(taken, 'to')}."
