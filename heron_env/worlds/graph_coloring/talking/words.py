"""Words of a letter as tokens: synonyms as one word, nodes as `@2`, colours as `#0`, numbers as `=10`.

Whatever is not understood stays as it is, and so is no part of any sentence that the grammar knows.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

SYNONYMS: Final = """
alter: change changes changing switch switches switching turn turns turning move moves moving recolour recolouring flip
alter: recolor recoloring shift touch
altered: changed switched turned moved recoloured recolored flipped shifted touched went
put: set sets setting make makes making paint painting assign
made: painted coloured colored assigned
keep: keeps keeping leave leaves leaving retain maintain hold
kept: left retained maintained held
stay: stays remain remains keeps
become: becomes became becoming
conflict: conflicts conflicting clash clashes clashing collide collides collision collisions violation violations
conflicted: clashed collided
satisfied: happy content pleased
dissatisfied: unsatisfied unhappy
valid: legal proper feasible
colour: colours color colors
colouring: coloring solution
assignment: assignments
node: nodes vertex vertices
have: has had having
would: 'd
will: shall 'll
is: are am 's 're 'm
was: were
eq: equals
match: matches
use: using uses
resolve: resolves resolved resolving fix solve solves
avoid: avoiding
penalty: penalties
thanks: thank cheers
suggest: propose recommend suggesting
want: like
some: several
letter: message reply answer update report offer proposal letters messages
i: we
cannot: can't
=0: zero
=1: one
=2: two
=3: three
=4: four
=5: five
=6: six
=7: seven
=8: eight
=9: nine
=10: ten
=11: eleven
=12: twelve
=20: twenty
=30: thirty
"""
CANON: Final = {
    word: line.split(": ")[0] for line in SYNONYMS.strip().splitlines() for word in line.split(": ")[1].split()
}

REWRITES: Final = [(re.compile(rf"(?<!\S)(?:{old})(?!\S)"), new) for old, new in (
    (r"ca not|can not|could not|cannot", "cannot"),
    (r"wo not|will not|would not", "willnot"),
    (r"going to|plan to|intend to|promise to|promise that|commit to", "promise"),
    (r"i (?:is|will) promise", "i will"),
    (r"i promise (?=@)", "promised "),
    (r"i promise", "i will"),
    (r"(?:do|does|did|have) not(?: yet)?(?: been)?", "not"),
    (r"no longer|not any longer", "nolonger"),
    (r"have((?: just| now| been)* (?:altered|made|put|kept|become))", r"\1"),
    (r"have (?=resolve)", ""),
    (r"conflict free|free of conflict|without (?:a |any )?conflict", "no conflict"),
    (r"as it (?:is|was)|the same as before|the same(?= ?$)|alone|their colour|untouched|unchanged", "unaltered"),
    (r"at the moment|at present|right now|for now|so far|(?:in )?this (?:alter|step|round|time)|by now|in total", ""),
    (r"on my (?:side|end)|in my (?:cluster|part)|for (?:me|you)|by me|since last time|as well|been", ""),
    (r"(?:the )?colour of(?: node)?(?= @| my @| your @)", ""),
    (r"(@\d+) is (?:the )?colour", r"\1"),
    (r"(@\d+) is(?: current)? colour", r"\1"),
    (r"have (?:the )?colour(?= #)", "is"),
    (r"to be", "be"),
    (r"is not (#\d+) (?:anymore|any (?:more|longer))", r"is nolonger \1"),
    (r"is still(?= (?:not|in|no|a|=|some))", "is"),
    (r"is still(?= #)", "stay"),
    (r"anymore|any (?:more|longer)|now|currently|current|presently|already|just|also|too|actually|indeed|please|yet", ""),
    (r"the|both|each|unfortunately|sadly|luckily|still|then|node(?= @)|there (?=you)", ""),
    (r"to avoid (?:a )?conflict with", ", it not conflict with"),
    (r"it would help(?: me)?", "wouldhelp"),
)]  # fmt: skip
WORD: Final = r"\d+(?:\.\d+)?|'(?:s|ll|re|ve|m|d)\b|[a-z]+|->|[^\s]"
MARKS: Final = {"→": "->", "–": "-", "—": " - ", "’": "'", "‘": "'", "…": ".", "•": "-", "\u00a0": " "}
PLAIN: Final = re.compile(r"[A-Za-z0-9 \n.,:;!?'()*`=/>-]*")
SHOWN: Final = 40


@dataclass(frozen=True)
class Sentence:
    """One sentence: as it was written, as tokens with a blank after each, and whether it asks."""

    written: str
    tokens: str
    asks: bool


class Names:
    """What nodes, colours and agents are called: `nodes` as `@i`, `domain` as `#j`, the reader as `you`."""

    def __init__(self, nodes: Sequence[str], domain: Sequence[str], reader: str, writer: str) -> None:
        known = [*((name, f" @{i} ") for i, name in enumerate(nodes)), *((c, f" #{j} ") for j, c in enumerate(domain))]
        known += [(reader, " you "), (writer, " me ")]
        self.meaning = {name.casefold(): token for name, token in known}
        longest = sorted(self.meaning, key=len, reverse=True)
        self._name = re.compile(r"(?<![\w'])(?:" + "|".join(map(re.escape, longest)) + r")(?!\w)", re.IGNORECASE)

    def strange(self, text: str) -> str:
        """Characters that letters don't have: those beyond plain text, which names may have."""
        rest = self._name.sub("", "".join(MARKS.get(letter, letter) for letter in text))
        return "".join(dict.fromkeys(PLAIN.sub("", rest)))

    def sentences(self, text: str) -> list[Sentence]:
        """The sentences of a text without strange characters."""
        for mark, plain in MARKS.items():
            text = text.replace(mark, plain)
        text = re.sub(r"(?m)^ *(?:[-*]|\d+[.)]) +|[*`]", "", text)
        parts = re.split(r"(?<=[.!?])\s+|\s*[\n;]\s*", text)
        return [
            Sentence(part.strip(), self.tokens(part), part.rstrip().endswith("?")) for part in parts if part.strip()
        ]

    def tokens(self, text: str) -> str:
        """Of one sentence."""
        named = self._name.sub(lambda found: self.meaning[found[0].casefold()], text).lower()
        named = re.sub(r"(?<=[a-z])-(?=[a-z])", " ", named).replace("(s)", "")
        named = re.sub(r"n't\b", " not", named)
        words = re.findall(rf"[@#]\d+|{WORD}", re.sub(r"[.!?]+\s*$", "", named))
        meant = [CANON.get(word, f"={word}" if word[0].isdigit() else word) for word in words]
        line = " ".join("eq" if word == "=" else word for word in meant if word != "'ve")
        for _ in range(2):
            for pattern, new in REWRITES:
                line = " ".join(pattern.sub(new, line).split())
        line = line.strip(" ,:-")
        return f"{line} " if line else ""


def plain_words(patterns: Iterable[str]) -> frozenset[str]:
    """Every word that has a meaning in letters."""
    found = {word for text in patterns for word in re.findall(r"[a-z]+", text)}
    return frozenset(found | {*CANON} | {word for old, _ in REWRITES for word in re.findall(r"[a-z]+", old.pattern)})
