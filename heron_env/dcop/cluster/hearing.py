"""What a cluster agent takes from a sentence: orders, reports, bans and releases, in the words of the study.

A question, and what follows "can", "could", "would", "if" and the like, is talk of what might be: it asks for nothing.
Any other sentence is unclear if nothing is taken from it, or if it names a node or a colour of which nothing is taken.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final, Literal

from heron_env.dcop.problem import Part, spelled

Kind = Literal["force", "tell", "forbid", "release", "unknown", "unclear"]
Span = tuple[int, int]
UNCLEAR: Final = "I did not understand: "
"""So begins what is said of unclear sentences; what follows is quoted, and orders nothing."""
SENTENCES: Final = re.compile(r"(?<=\?)|(?<=[.!;])[\"')\]]*(?:\s+|$)|\n\s*\n")
TYPED: Final = str.maketrans({"\N{RIGHT SINGLE QUOTATION MARK}": "'", "\N{RIGHTWARDS ARROW}": "->"})
MAYBE: Final = r"\b(?:can|could|would|might|may|if|unless|whether)\b(?!'| not be )"
TURNS: Final = re.compile(r"(?P<no>\b(?:not|never|without|cannot)\b|n't\b)|[,:]| but | so | then ", re.IGNORECASE)
GOES_ON: Final = re.compile(r" ?(?:,|&|,? ?and) ", re.IGNORECASE)
AND: Final = r"(?:,? and | ?& |, )"
LEAD: Final = r"(?:change|set|make|switch|keep|colou?r)"
PAST: Final = r"(?:changed|made|switched|kept|colou?red)"
IS: Final = r" (?:is|are)(?: now| still)? "
MUST: Final = r" (?:must|should|shall) be "


@dataclass(frozen=True)
class Heard:
    """One thing said of a node, and the sentence that said it.

    "unknown": the node or the colour is none that this cluster knows; "unclear": no node, the sentence alone.
    """

    kind: Kind
    node: str
    colour: str = ""
    text: str = ""


def heard(text: str, part: Part) -> Iterator[Heard]:
    """What a text says, in its order; nodes and colours in the problem's spelling."""
    grammar = _grammar(part.nodes, tuple(part.owners), part.domain)
    for sentence in SENTENCES.split(text.translate(TYPED).partition(UNCLEAR)[0]):
        if not sentence.rstrip().endswith("?"):
            plain = " ".join(sentence.split())
            yield from (replace(what, text=plain) for what in grammar.said(plain))


class _Grammar:
    """The forms that are understood of these nodes and colours."""

    def __init__(self, own: tuple[str, ...], foreign: tuple[str, ...], domain: tuple[str, ...]) -> None:
        self.own, self.nodes, self.domain = own, (*own, *foreign), domain
        one, colour = _any(self.nodes), rf"(?P<colour>{_any(domain)}|\w++)(?!\w)"
        several = rf"{one}(?!\w)(?:{AND}{one}(?!\w)){{0,{len(self.nodes)}}}+"  # a bound: time grows with the length
        many = rf"(?:the )?(?:both )?(?:nodes? )?(?P<node>{several}|\w++)(?!\w)"
        self.name = _pattern(rf"{_any([*self.nodes, *domain])}(?!\w)")
        self.maybe = _pattern(rf"(?:{several} )?{MAYBE}")
        self.pair = _pattern(
            rf"(?:(?P<lead>{PAST}|{LEAD}) (?:the colou?rs? of )?)?{many}(?:'s colou?r)?(?: from \w+)?"
            rf"(?P<link> to | at | ?= ?| ?-> ?|{IS}|{MUST}| ?: ?| ){colour}(?!/| or | ?->)"
        )
        self.forms: tuple[tuple[Kind, re.Pattern[str]], ...] = (
            ("force", _pattern(rf"(?<!not )(?<!n't )(?<!never )use {colour} for {many}(?! or )")),
            ("forbid", _pattern(rf"(?:avoid|not|(?:not|don't|never) use) {colour} for {many}(?! or )")),
            (
                "forbid",
                _pattern(
                    rf"{many} (?:can't|cannot|mustn't|shouldn't|(?:can|must|may|should) (?:not|never)) be {colour}"
                ),
            ),
            ("forbid", _pattern(rf"(?:do not|don't|never) {LEAD} {many} (?:(?:to|at|=) )?{colour}")),
            ("release", _pattern(rf"{many} (?:is|are) free(?!\w)")),
            ("release", _pattern(rf"release {many}(?! or )")),
        )

    def said(self, sentence: str) -> list[Heard]:
        """What a sentence says that is no question; its white space is single."""
        found = [*self._orders(sentence), *self._forms(sentence)]
        maybe = self.maybe.search(sentence)
        until = maybe.start() if maybe else len(sentence)
        found = sorted((one for one in found if one[0][0] < until), key=lambda one: one[0])
        empty = not (found or maybe) and re.search(r"\w", sentence)
        unclear = empty or self._names_more(sentence, [span for span, _ in found], until)
        return [what for _, several in found for what in several] + [Heard("unclear", "")] * bool(unclear)

    def _names_more(self, sentence: str, spans: Iterable[Span], until: int) -> bool:
        """Is a node or a colour named that is part of none of these, in order?"""
        at, left = 0, []
        for start, end in spans:
            left.append(sentence[at:start])
            at = max(at, end)
        return any(map(self.name.search, (*left, sentence[at:until])))

    def _forms(self, sentence: str) -> Iterator[tuple[Span, list[Heard]]]:
        """Bans, releases, and "use green for b2"; one that is about a foreign node is none."""
        for kind, form in self.forms:
            for match in form.finditer(sentence):
                what = self._known(kind, match["node"], "" if kind == "release" else match["colour"])
                if kind == "force" or all(one.kind == "unknown" or one.node in self.own for one in what):
                    yield match.span(), what

    def _orders(self, sentence: str) -> Iterator[tuple[Span, list[Heard]]]:
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
            yield pair.span(), self._known(kind, pair["node"], pair["colour"]) if kind else []
            start = end = pair.end()

    def _meant(self, pair: re.Match[str], goes_on: Kind | None) -> Kind | None:
        """The kind of a pair of words, if they are about nodes and a colour at all."""
        link, lead = pair["link"].strip(), pair["lead"]
        known = [all(spelled(self.nodes, node) for node in _names(pair["node"])), spelled(self.domain, pair["colour"])]
        if lead and (link in ("to", "=") or known[1]):
            return "tell" if re.fullmatch(PAST, lead, re.IGNORECASE) else "force"
        if link == "=" and any(known):
            return "force"
        if not all(known):
            return None
        return "force" if link.endswith((" be", "->")) else "tell" if link[:2] in ("is", "ar", ":") else goes_on

    def _known(self, kind: Kind, nodes: str, colour: str) -> list[Heard]:
        shade = spelled(self.domain, colour) if colour else ""
        named = [(node, node if node in self.nodes else spelled(self.nodes, node)) for node in _names(nodes)]
        return [
            Heard("unknown", node, colour) if known is None or shade is None else Heard(kind, known, shade)
            for node, known in named
        ]


def _names(nodes: str) -> list[str]:
    return re.split(AND, nodes, flags=re.IGNORECASE)


_grammar = lru_cache(maxsize=256)(_Grammar)


def _any(names: Iterable[str]) -> str:
    return f"(?:{'|'.join(re.escape(name) for name in sorted(names, key=len, reverse=True))})"


def _pattern(form: str) -> re.Pattern[str]:
    return re.compile(rf"(?<!\w){form}", re.IGNORECASE)
