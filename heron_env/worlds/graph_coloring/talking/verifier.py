"""The verifier: a text goes out only if every sentence is understood as a whole and every claim in it is true.

It denies by default: what it doesn't understand it blocks, and a template takes its place.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from heron_env.errors import ConfigError
from heron_env.worlds.graph_coloring.talking.claims import KINDS, Claim, Facts, holds
from heron_env.worlds.graph_coloring.talking.grammar import Grammar
from heron_env.worlds.graph_coloring.talking.words import Names, vocabulary

LONGEST: Final = 6000
"""Characters of a text."""
CODED: Final = re.compile(r"[^\W\d]+\d+")
"""A name such as `b7`."""
Fault = Literal["false", "invisible", "fixed", "commit", "conflict", "unclear"]
FAULTS: Final[dict[str, Fault]] = {"request": "fixed", "commit": "commit", "offer": "commit", "move": "commit"}
"""Of a claim that doesn't hold, if it isn't just false."""


@dataclass(frozen=True)
class Block:
    """Why a text is not sent.

    `fault`: a false claim, a node that may not be named, a fixed node requested, a commitment that is not in the
    ledger, a conflict that is not mentioned, a sentence that is not understood.
    """

    fault: Fault
    what: str

    def __str__(self) -> str:
        """As a model is told."""
        return f"{self.fault}: {self.what}"


@dataclass(frozen=True)
class Verdict:
    """The claims of a text, and what blocks it."""

    claims: tuple[Claim, ...]
    blocks: tuple[Block, ...]


def verify(text: str, facts: Facts) -> Verdict:
    """Hold a text to the facts' recipient against the facts."""
    part, nodes = facts.part, [*facts.mine, *facts.theirs]
    names = Names(nodes, part.domain, part.cluster, facts.recipient)
    strange = names.strange(text)
    if strange or not text.strip() or len(text) > LONGEST:
        return Verdict((), (Block("unclear", f"write 1 to {LONGEST} plain characters, without {strange[:20]!r}"),))
    grammar = Grammar(nodes, part.domain, {"me": part.cluster, "you": facts.recipient})
    claims: list[Claim] = []
    blocks: list[Block] = []
    before = ""
    for sentence in names.sentences(text):
        found = grammar.claims(sentence, before)
        before = sentence.tokens if "@" in sentence.tokens else before
        if found is None:
            blocks.append(Block("invisible" if _names_hidden(sentence.written, facts) else "unclear", sentence.written))
            continue
        claims += found
        wrong = [claim for claim in found if not holds(claim, facts)]
        blocks += [Block(FAULTS.get(claim.kind, "false"), f"{claim} ({sentence.written})") for claim in wrong]
    blocks += [Block("conflict", f"say that {a} and {b} have the same colour") for a, b in _unsaid(claims, facts)]
    return Verdict(tuple(claims), tuple(dict.fromkeys(blocks)))


def _names_hidden(written: str, facts: Facts) -> bool:
    """Is there a name in it that the recipient may not hear of, or that nobody knows?"""
    seen = {name.casefold() for name in (*facts.mine, *facts.theirs, facts.recipient, facts.part.cluster)}
    hidden = {name.casefold() for name in (*facts.part.nodes, *facts.part.owners)} - seen
    words = re.findall(r"\w+", written.casefold())
    return any(word in hidden or (word not in seen and CODED.fullmatch(word)) for word in words)


def _unsaid(claims: Sequence[Claim], facts: Facts) -> Sequence[tuple[str, str]]:
    """Conflicts that a text with these claims is silent about.

    One that gives their number or the penalty, or says that there are some and names none, tells of all.
    """
    said = [claim for claim in claims if claim.holds]
    colours = {claim.args for claim in said if claim.kind == "assign"}
    named = {frozenset(claim.args) for claim in said if claim.kind in ("conflict", "same")}
    named |= {frozenset(ends) for ends in facts.between if all((end, facts.colours[end]) in colours for end in ends)}
    amounts = [claim.args for claim in said if claim.kind in ("conflicts", "penalty")]
    if any(args[0] not in ("you", "some") for args in amounts) or (amounts and not named):
        return ()
    missing = [ends for ends in facts.between if frozenset(ends) not in named]
    return missing if missing or named else facts.report.conflicts[:1]


def require_plain(names: Sequence[str]) -> None:
    """Raise ConfigError for names of nodes or colours that can't be told from other words of a letter."""
    for name in names:
        if name.casefold() in vocabulary() or re.fullmatch(r"[\d.]+", name) or not name.isprintable():
            raise ConfigError(f"{name!r:.60} can't be told from other words of a letter; rename this node or colour")


def claim_of(told: str) -> Claim | None:
    """A claim from its words (`not assign b2 red`), as a model may give it; None if it is none."""
    words = told.split()
    denied = words[:1] == ["not"]
    kind, *args = words[denied:] or [""]
    return Claim(kind, tuple(args), not denied) if kind in KINDS else None
