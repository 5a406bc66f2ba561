"""The verifier: a text goes out only if every sentence is understood as a whole and every claim in it is true.

Deterministic, and it denies by default: what it doesn't understand it blocks, and a template takes its place.
"""

from __future__ import annotations

import re
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
ACKNOWLEDGING: Final = ("conflict", "conflicts", "penalty")


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
    part = facts.part
    nodes = [*facts.mine, *facts.theirs]
    names = Names(nodes, part.domain, part.cluster, facts.recipient)
    if strange := names.strange(text):
        return Verdict((), (Block("unclear", f"characters {strange[:20]!r}: write plain text"),))
    if not text.strip() or len(text) > LONGEST:
        return Verdict((), (Block("unclear", f"write 1 to {LONGEST} characters"),))
    known = {name.casefold() for name in (*nodes, facts.recipient, part.cluster)}
    hidden = {node.casefold() for node in (*part.nodes, *part.owners)} - known
    grammar = Grammar(nodes, part.domain, {"me": part.cluster, "you": facts.recipient})
    claims: list[Claim] = []
    blocks: list[Block] = []
    before = ""
    for sentence in names.sentences(text):
        found = grammar.claims(sentence, before)
        before = sentence.tokens if "@" in sentence.tokens else before
        if found is None:
            words = re.findall(r"\w+", sentence.written.casefold())
            seen = any(word in hidden or (word not in known and CODED.fullmatch(word)) for word in words)
            blocks.append(Block("invisible" if seen else "unclear", sentence.written[:200]))
            continue
        claims += found
        blocks += [
            Block(_fault(claim), f"{claim} ({sentence.written[:200]})") for claim in found if not holds(claim, facts)
        ]
    blocks += [
        Block("conflict", f"{a} and {b} have the same colour, and you don't say so") for a, b in unsaid(claims, facts)
    ]
    return Verdict(tuple(claims), tuple(dict.fromkeys(blocks)))


def unsaid(claims: list[Claim], facts: Facts) -> list[tuple[str, str]]:
    """Conflicts that a text with these claims is silent about.

    One that gives numbers, or says that there are some, and names none, tells of all.
    """
    conflicts = facts.report.conflicts
    told = [claim for claim in claims if claim.kind in ACKNOWLEDGING and claim.holds]
    named = {frozenset(claim.args) for claim in told if claim.kind == "conflict"}
    alike = [claim for claim in claims if claim.kind == "same" and claim.holds]
    named |= {frozenset(claim.args) for claim in alike}
    colours = {claim.args for claim in claims if claim.kind == "assign" and claim.holds}
    named |= {frozenset(pair) for pair in conflicts if all((node, facts.colours[node]) in colours for node in pair)}
    exact = any(claim.kind != "conflict" and claim.args[0] != "you" and claim.args != ("some",) for claim in told)
    missing = [pair for pair in facts.between if frozenset(pair) not in named]
    if exact or (told and not named) or not conflicts:
        return []
    return missing if missing or named else list(conflicts)[:1]


def _fault(claim: Claim) -> Fault:
    match claim.kind:
        case "request":
            return "fixed"
        case "commit" | "offer" | "move":
            return "commit"
        case _:
            return "false"


def require_plain(names: tuple[str, ...]) -> None:
    """Raise ConfigError for names of nodes or colours that letters can't tell from other words."""
    for name in names:
        if name.casefold() in vocabulary() or name.replace(".", "").isdigit() or not name.isprintable():
            raise ConfigError(f"{name!r:.60} can't be told from other words of a letter; rename this node or colour")


def claim_of(told: str) -> Claim | None:
    """A claim from its words (`not assign b2 red`), as a model may give it; None if it is none."""
    words = told.split()
    holds_ = words[:1] != ["not"]
    kind, *args = words[not holds_ :] or [""]
    return Claim(kind, tuple(args), holds_) if kind in KINDS else None
