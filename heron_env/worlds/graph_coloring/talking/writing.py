"""Words for letters: a model's draft if nothing is wrong with it, else its second one, else the template's."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, Final

from heron_env.core.policy import Asked, Origin
from heron_env.worlds.graph_coloring.talking.claims import Facts, holds
from heron_env.worlds.graph_coloring.talking.model import WRITE, Model
from heron_env.worlds.graph_coloring.talking.verifier import Block, claim_of, verify

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


class Writer:
    """Finds the words, and counts what was blocked; `origin`: of the last draft."""

    def __init__(self, model: Model | None, counts: Counter[str]) -> None:
        self.model, self.counts = model, counts
        self.origin: Origin | None = None

    def text(self, kind: str, body: Mapping[str, Any], facts: Facts, asks: Mapping[str, str], asked: Asked) -> str:
        """Of one letter; `asks` as for templates."""
        text = text_of(kind, body, facts, asks)
        if self.model is not None:
            told = {"from": facts.part.cluster, "to": facts.recipient, "kind": kind, "content": body, "facts": text}
            draft = self._draft(self.model, told, facts, asked)
            self.counts["templates"] += draft is None
            text = draft or text
        self.counts["letters"] += 1
        self.counts["lies_after"] += _lies(verify(text, facts).blocks)
        return text

    def _draft(self, model: Model, told: Mapping[str, Any], facts: Facts, asked: Asked) -> str | None:
        """A model's words that nothing is wrong with; None if it has none after the second attempt."""
        blocks: list[Block] = []
        for attempt in (0, 1):
            wrong = {"wrong_in_your_last_draft": list(map(str, blocks))}
            said = model.say(asked, f"{facts.recipient} {attempt}", WRITE, {**told, **wrong})
            self.origin = said.origin
            self.counts["drafts"] += 1
            if said.text is None:
                return None
            listed = {words: claim_of(words) for words in said.claims}
            blocks = [Block("false", words) for words, claim in listed.items() if not (claim and holds(claim, facts))]
            blocks += verify(said.text, facts).blocks
            if not blocks:
                return said.text
            self.counts.update(f"blocked_{block.fault}" for block in blocks)
            self.counts["lies_before"] += 0 if attempt else _lies(blocks)
        return None


def _lies(blocks: tuple[Block, ...] | list[Block]) -> int:
    return sum(block.fault not in ("unclear", "conflict") for block in blocks)
