"""What a cluster agent takes from a sentence: orders, reports, bans and releases, in the words of the study.

A question, and what follows "can", "could", "would", "if" and the like, is talk of what might be: it asks for nothing.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Literal

from heron_env.dcop.problem import Part, spelled

Kind = Literal["force", "tell", "forbid", "release", "unknown"]
SENTENCES: Final = re.compile(r"(?<=\?)|(?<=[.!;])[\"')\]]*(?:\s+|$)|\n\s*\n")
MAYBE: Final = re.compile(r"\b(?:can|could|would|might|may|if|unless|whether)\b(?!'| not be )", re.IGNORECASE)
TURNS: Final = re.compile(r"(?P<no>\b(?:not|never|without|cannot)\b|n't\b)|[,:]| but | so | then ", re.IGNORECASE)
GOES_ON: Final = re.compile(r" ?(?:,|&|,? ?and) ", re.IGNORECASE)
AND: Final = re.compile(r",? and |, ", re.IGNORECASE)
LEAD: Final = r"(?:change|set|make|switch|colou?r)"
PAST: Final = r"(?:changed|made|switched|colou?red)"


@dataclass(frozen=True)
class Heard:
    """One thing said of a node; "unknown": the node or the colour is none that this cluster knows."""

    kind: Kind
    node: str
    colour: str = ""


def heard(text: str, part: Part) -> Iterator[Heard]:
    """What a text says, in its order; nodes and colours in the problem's spelling."""
    grammar = _grammar((*part.nodes, *part.owners), part.domain)
    for sentence in SENTENCES.split(text.replace("\N{RIGHT SINGLE QUOTATION MARK}", "'")):
        if not sentence.rstrip().endswith("?"):
            yield from grammar.said(" ".join(sentence.split()))


class _Grammar:
    """The forms that are understood of these nodes and colours."""

    def __init__(self, nodes: tuple[str, ...], domain: tuple[str, ...]) -> None:
        self.nodes, self.domain = nodes, domain
        one, colour = _any(nodes), rf"(?P<colour>{_any(domain)}|\w++)(?!\w)"
        node = rf"(?:the )?(?:node )?(?P<node>{one}|\w++)(?!\w)"
        many = rf"(?:the )?(?:nodes? )?(?P<node>{one}(?!\w)(?:(?:,|,? and) {one}(?!\w))*|\w++)(?!\w)"
        self.pair = _pattern(
            rf"(?:(?P<lead>{PAST}|{LEAD}) (?:the colou?r of )?)?{node}(?:'s colou?r)?(?: from \w+)?"
            rf"(?P<link> to | ?= ?| is | ?: ?| ){colour}(?!/| or )"
        )
        self.forms: tuple[tuple[Kind, re.Pattern[str]], ...] = (
            ("forbid", _pattern(rf"(?:avoid|not) {colour} for {many}")),
            ("forbid", _pattern(rf"{many} (?:can't|cannot|mustn't|shouldn't|(?:can|must|may|should) not) be {colour}")),
            ("forbid", _pattern(rf"(?:do not|don't|never) {LEAD} {many} (?:(?:to|=) )?{colour}")),
            ("release", _pattern(rf"{many} (?:is|are) free(?!\w)")),
            ("release", _pattern(rf"release {many}")),
        )

    def said(self, sentence: str) -> list[Heard]:
        """What a sentence says that is no question; its white space is single."""
        found = [*self._orders(sentence)]
        for kind, form in self.forms:
            for match in form.finditer(sentence):
                colour = match["colour"] if kind == "forbid" else ""
                found += [(match.start(), self._known(kind, node, colour)) for node in AND.split(match["node"])]
        maybe = MAYBE.search(sentence)
        until = maybe.start() if maybe else len(sentence)
        return [what for start, what in sorted(found, key=lambda pair: pair[0]) if start < until]

    def _orders(self, sentence: str) -> Iterator[tuple[int, Heard]]:
        """What should be, or is, which colour; "b1 red" goes on with what was said just before of another node."""
        turns = [(turn.start(), turn["no"] is not None) for turn in TURNS.finditer(sentence)]
        kind: Kind | None = None
        start = end = 0
        while pair := self.pair.search(sentence, start):
            goes_on = kind if GOES_ON.fullmatch(sentence, end, pair.start()) else None
            meant = self._meant(pair, goes_on)
            if meant is None:
                start = pair.end("lead") if pair["lead"] else pair.end("node")
                continue
            turn = bisect_left(turns, (pair.start(),))
            denied = turn > 0 and turns[turn - 1][1] and not goes_on
            kind = None if denied else meant
            if kind:
                yield pair.start(), self._known(kind, pair["node"], pair["colour"])
            start = end = pair.end()

    def _meant(self, pair: re.Match[str], goes_on: Kind | None) -> Kind | None:
        """The kind of a pair of words, if they are about a node and a colour at all."""
        link, lead = pair["link"].strip(), pair["lead"]
        known = [spelled(self.nodes, pair["node"]), spelled(self.domain, pair["colour"])]
        if lead and (link in ("to", "=") or known[1]):
            return "tell" if re.fullmatch(PAST, lead, re.IGNORECASE) else "force"
        if link == "=" and any(known):
            return "force"
        if all(known):
            return "tell" if link in ("is", ":") else goes_on
        return None

    def _known(self, kind: Kind, node: str, colour: str = "") -> Heard:
        known = node if node in self.nodes else spelled(self.nodes, node)
        shade = spelled(self.domain, colour) if colour else ""
        return Heard("unknown", node, colour) if known is None or shade is None else Heard(kind, known, shade)


_grammar = lru_cache(maxsize=256)(_Grammar)


def _any(names: Iterable[str]) -> str:
    return f"(?:{'|'.join(re.escape(name) for name in sorted(names, key=len, reverse=True))})"


def _pattern(form: str) -> re.Pattern[str]:
    return re.compile(rf"(?<!\w){form}", re.IGNORECASE)
