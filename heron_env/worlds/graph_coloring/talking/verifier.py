"""The verifier: a text goes out only if every sentence is understood as a whole and every claim in it is true.

It denies by default: what it doesn't understand it blocks, and a template takes its place.

Words of a letter as tokens: synonyms as one word, nodes as `@2`, colours as `#0`, numbers as `=10`.

Whatever is not known stays as it is, and so is no part of any sentence that the grammar has.

What sentences may say: the patterns of `english.txt` with the claims that they make, one or several in a row.

In patterns `[a|b]` may be missing, `<a|b>` is one of them, and capitals are groups: N a node, NS several, MS two or
more, C a colour, CS several, Q a number, ID an offer; nodes with their colours: PS as they are, TS as they shall be, KS
and HS as they might be. In claims a digit is a group; all combinations of what the groups hold are claimed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product
from pathlib import Path
from typing import Final, Literal

from heron_env.errors import ConfigError
from heron_env.worlds.graph_coloring.talking.claims import KINDS, Facts, LetterClaim, holds

WORD: Final = r"[@#]\d+|\d+(?:\.\d+)?|'(?:s|ll|re|ve|m|d)\b|[a-z]+|->|[^\s]"
MARKS: Final = str.maketrans({
    "\N{RIGHTWARDS ARROW}": "->", "\N{EN DASH}": "-", "\N{EM DASH}": " - ", "\N{RIGHT SINGLE QUOTATION MARK}": "'",
    "\N{HORIZONTAL ELLIPSIS}": ".", "\N{BULLET}": "-", "\N{NO-BREAK SPACE}": " ",
})  # fmt: skip
STRANGE: Final = re.compile(r"[^A-Za-z0-9 \n.,:;!?'()*`=/>-]")
"""No letter has these, outside of names."""


@cache
def english(section: str) -> tuple[str, ...]:
    """The lines of a section of `english.txt`."""
    text = (Path(__file__).parent / "english.txt").read_text(encoding="utf-8")
    return tuple(text.partition(f"[{section}]")[2].partition("\n\n")[0].splitlines()[1:])


@cache
def _canon() -> dict[str, str]:
    lines = [line.split(": ") for line in english("synonyms")]
    return {word: meaning for meaning, words in lines for word in words.split()} | {"=": "eq", "'ve": ""}


@cache
def _rewrites() -> tuple[tuple[re.Pattern[str], str], ...]:
    lines = [line.split(" =>") for line in english("rewrites")]
    return tuple((re.compile(rf"(?<!\S)(?:{old})(?!\S)"), new.strip()) for old, new in lines)


@dataclass(frozen=True)
class Sentence:
    """One sentence: as it was written, as tokens with a blank after each, and whether it asks."""

    written: str
    tokens: str
    asks: bool


class Names:
    """What is meant by names: `nodes` as `@i`, `domain` as `#j`, the writer as `me`, the reader as `you`."""

    def __init__(self, nodes: Sequence[str], domain: Sequence[str], writer: str, reader: str) -> None:
        known = [*((name, f" @{i} ") for i, name in enumerate(nodes)), *((c, f" #{j} ") for j, c in enumerate(domain))]
        self._meaning = {name.casefold(): token for name, token in [*known, (writer, " me "), (reader, " you ")]}
        longest = map(re.escape, sorted(self._meaning, key=len, reverse=True))
        self._name = re.compile(rf"(?<![\w'])(?:{'|'.join(longest)})(?!\w)", re.IGNORECASE)

    def strange(self, text: str) -> str:
        """Characters that no letter has, unless a name has them."""
        return "".join(dict.fromkeys(STRANGE.findall(self._name.sub("", text.translate(MARKS)))))

    def sentences(self, text: str) -> list[Sentence]:
        """The sentences of a text."""
        plain = re.sub(r"(?m)^ *(?:[-*]|\d+[.)]) +|[*`]", "", text.translate(MARKS))
        parts = [part.strip() for part in re.split(r"(?<=[.!?])\s+|\s*[\n;]\s*", plain) if part.strip()]
        return [Sentence(part, self._tokens(part), part.endswith("?")) for part in parts]

    def _tokens(self, text: str) -> str:
        named = self._name.sub(lambda found: self._meaning[found[0].casefold()], text).lower()
        named = re.sub(r"n't\b", " not", re.sub(r"(?<=[a-z])-(?=[a-z])|\(s\)", " ", named))
        words = re.findall(WORD, re.sub(r"[.!?]+\s*$", "", named))
        line = " ".join(_canon().get(word, f"={word}" if word[0].isdigit() else word) for word in words)
        for pattern, new in _rewrites() * 2:
            line = " ".join(pattern.sub(new, line).split())
        line = line.strip(" ,:-")
        return f"{line} " if line else ""


@cache
def vocabulary() -> frozenset[str]:
    """Every word that has a meaning in letters."""
    sections = ("synonyms", "rewrites", "macros", "prefixes", "courtesy", "sentences")
    return frozenset(word for name in sections for line in english(name) for word in re.findall(r"[a-z]+", line))


LINK: Final = r"(?:is |: |eq |have |put |to |into |as |at |on |in |use )*"
TO_LINK: Final = r"(?:eq |to |into |as |at |on |in )*"
IF_LINK: Final = LINK.replace("is ", "is |was |be |become |altered |alter |stay ")
NODES: Final = r"@\d+ (?:(?:, |and |, and |or )@\d+ )*"
COLOURS: Final = r"#\d+ (?:(?:or |, |, or |nor )#\d+ )*"
PAIR: Final = rf"{NODES}LINK(?:from #\d+ )?LINK{COLOURS}"
PAIRS: Final = rf"({PAIR}(?:(?:, |and |, and )(?:you )?(?:altered |alter |put |made )?{PAIR})*)"
GROUPS: Final = {
    "N": r"(@\d+ )", "NS": f"({NODES})", "MS": r"((?:@\d+ (?:, |and |, and ))+@\d+ )", "C": r"(#\d+ )",
    "CS": f"({COLOURS})", "Q": r"(=\d+(?:\.\d+)? )", "ID": r"((?:me|you) : =\d+ )",
    "PS": PAIRS.replace(r"(?:from #\d+ )?LINK", "").replace("LINK", LINK),
    "HS": PAIRS.replace(r"(?:from #\d+ )?LINK", "").replace("LINK", "(?:eq )?"),
    "TS": PAIRS.replace("LINK", TO_LINK), "KS": PAIRS.replace("LINK", IF_LINK),
}  # fmt: skip
ASKING: Final = ("ask", "request")
Reading = tuple[int, list[LetterClaim]]


@dataclass(frozen=True)
class GrammarRow:
    """A pattern, the claims that it makes, and whether it may end a question."""

    pattern: re.Pattern[str]
    claims: tuple[tuple[str, ...], ...]
    asks: bool


def compiled(text: str) -> str:
    """The regular expression over tokens."""
    shorts = dict(line.split(": ", 1) for line in english("macros"))
    spelled = re.sub("|".join(shorts), lambda found: shorts[found[0]], text)
    brackets = {"[": "(?:", "<": "(?:", "]": ")?", ">": ")", "|": "|"}
    parts = re.findall(r"[A-Z]+|->|[\[\]<>|]|[^\s\[\]<>|]+", spelled)
    return "".join(brackets.get(part) or GROUPS.get(part) or f"{re.escape(part)} " for part in parts)


@cache
def rows() -> tuple[GrammarRow, ...]:
    """All patterns; each ends where a sentence does, or what joins it to the next."""
    end = rf"(?={compiled('GLUE')}|$)"
    found = []
    for line in (*english("sentences"), *english("courtesy")):
        pattern, _, claims = line.partition(" => ")
        made = tuple(tuple(claim.split()) for claim in claims.split("; ") if claim)
        asks = (
            all(claim[0] in ASKING for claim in made)
            if made
            else line.startswith(("what", "<do", "do ", "is that", "any", "how"))
        )
        found.append(GrammarRow(re.compile(compiled(pattern) + end), made, asks))
    return tuple(found)


@cache
def _joints() -> tuple[re.Pattern[str], re.Pattern[str]]:
    return re.compile(compiled("GLUE")), re.compile("|".join(map(compiled, english("prefixes"))))


class Grammar:
    """Reads sentences about these nodes and colours; `agents`: names of `me` and `you`."""

    def __init__(self, nodes: Sequence[str], domain: Sequence[str], agents: Mapping[str, str]) -> None:
        self._called = {f"@{i}": node for i, node in enumerate(nodes)} | {f"#{j}": c for j, c in enumerate(domain)}
        self._agents = agents

    def claims(self, sentence: Sentence, before: str) -> list[LetterClaim] | None:
        """All that it may be read to claim; None: it is not understood as a whole.

        "It" may be any node of this sentence so far, or where there is none, of `before`, the tokens of the last one
        that names any; "they" are all of these.
        """
        tokens, called = sentence.tokens, self._called
        shown = re.findall(r"(@\d+) \( (#\d+) \)", tokens)
        found = [LetterClaim("assign", (called[node], called[colour])) for node, colour in shown]
        owned = re.findall(r"\b(my|your) (@\d+)", tokens)
        found += [LetterClaim("mine", (called[node],), whose == "my") for whose, node in owned]
        tokens = re.sub(r"\b(?:my|your) (?=@)", "", re.sub(r"(@\d+) \( #\d+ \)", r"\1", tokens))
        said = re.split(r"\b(?:it|they) ", tokens)[0]
        meant = [*dict.fromkeys(re.findall(r"@\d+", said) or re.findall(r"@\d+", before))]
        tokens = re.sub(r"\bthey\b", " and ".join(meant), tokens) if len(meant) > 1 else tokens
        every = [re.sub(r"\bit\b", node, tokens) for node in meant] if re.search(r"\bit\b", tokens) else [tokens]
        read = [self._read(one, sentence.asks) for one in every]
        return None if None in read or not read else found + [claim for one in read for claim in one or ()]

    def _read(self, tokens: str, asks: bool) -> list[LetterClaim] | None:
        glue, prefixes = _joints()
        known: dict[int, list[LetterClaim] | None] = {}

        def rest(at: int) -> list[LetterClaim] | None:
            """What is claimed from there to the end; of readings that begin with equally long clauses, by all."""
            if at not in known:
                known[at] = None
                prefix = prefixes.match(tokens, at)
                tried = [step(row, start) for start in {at, prefix.end() if prefix else at} for row in rows()]
                understood = [one for one in tried if one is not None]
                if understood:
                    longest = max(end for end, _ in understood)
                    known[at] = [claim for end, claims in understood if end == longest for claim in claims]
            return known[at]

        def step(row: GrammarRow, at: int) -> Reading | None:
            match = row.pattern.match(tokens, at)
            if match is None or (match.end() == len(tokens) and asks and not row.asks):
                return None
            claims = [claim for made in row.claims for claim in self._made(made, match)]
            joint = glue.match(tokens, match.end())
            if joint is None or joint.end() == len(tokens):
                return match.end(), claims
            more = rest(joint.end())
            return None if more is None else (match.end(), claims + more)

        opening = glue.match(tokens)
        return rest(opening.end() if opening else 0)

    def _made(self, made: tuple[str, ...], match: re.Match[str]) -> Iterator[LetterClaim]:
        """The claims of one entry; none where one of its groups is missing."""
        holds, (kind, *args) = made[0] != "not", made[made[0] == "not" :]
        if not all(match[int(arg)] for arg in args if arg.isdigit()):
            return
        groups = [self._group(match[int(arg)]) if arg.isdigit() else [(arg.lstrip("="),)] for arg in args]
        if kind in ("between", "together"):
            (first,), *others = groups[0]
            kind = "conflict" if kind == "between" else "same"
            yield from (LetterClaim(kind, (first, *other), holds) for other in others or [()])
        elif kind in ("if", "offer"):
            yield LetterClaim(kind, tuple(name for group in groups for part in group for name in part), holds)
        else:
            yield from (LetterClaim(kind, sum(parts, ()), holds) for parts in product(*groups) if parts != ((),))
        for arg in filter(str.isdigit, args):
            for nodes, colour in re.findall(rf"({NODES})[^@#]*from (#\d+)", match[int(arg)]):
                for node in re.findall(r"@\d+", nodes):
                    yield LetterClaim(
                        "was" if kind == "changed" else "assign", (self._called[node], self._called[colour])
                    )

    def _group(self, text: str) -> list[tuple[str, ...]]:
        """What a group holds: names, numbers, or pairs of a node and a colour."""
        if text.startswith(tuple(self._agents)):
            who, _, number = text.split()
            return [(f"{self._agents[who]}:{number[1:]}",)]
        plain = re.sub(r"from #\d+ ", "", text)
        if "@" not in plain or "#" not in plain:
            return [(self._called.get(token, token[1:]),) for token in re.findall(r"[@#=]\S+", plain)]
        found = []
        for nodes, colours in re.findall(r"((?:@\d+ [^@#]*)+)((?:#\d+ (?:, |or |, or )?)+)", plain):
            found += [*product(re.findall(r"@\d+", nodes), re.findall(r"#\d+", colours))]
        return [(self._called[node], self._called[colour]) for node, colour in found]


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
class Verification:
    """The claims of a text, and what blocks it."""

    claims: tuple[LetterClaim, ...]
    blocks: tuple[Block, ...]


def verify(text: str, facts: Facts) -> Verification:
    """Hold a text to the facts' recipient against the facts."""
    part, nodes = facts.part, [*facts.mine, *facts.theirs]
    names = Names(nodes, part.domain, part.cluster, facts.recipient)
    strange = names.strange(text)
    if strange or not text.strip() or len(text) > LONGEST:
        return Verification((), (Block("unclear", f"write 1 to {LONGEST} plain characters, without {strange[:20]!r}"),))
    grammar = Grammar(nodes, part.domain, {"me": part.cluster, "you": facts.recipient})
    claims: list[LetterClaim] = []
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
    return Verification(tuple(claims), tuple(dict.fromkeys(blocks)))


def _names_hidden(written: str, facts: Facts) -> bool:
    """Is there a name in it that the recipient may not hear of, or that nobody knows?"""
    seen = {name.casefold() for name in (*facts.mine, *facts.theirs, facts.recipient, facts.part.cluster)}
    hidden = {name.casefold() for name in (*facts.part.nodes, *facts.part.owners)} - seen
    words = re.findall(r"\w+", written.casefold())
    return any(word in hidden or (word not in seen and CODED.fullmatch(word)) for word in words)


def _unsaid(claims: Sequence[LetterClaim], facts: Facts) -> Sequence[tuple[str, str]]:
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


def claim_of(told: str) -> LetterClaim | None:
    """A claim from its words (`not assign b2 red`), as a model may give it; None if it is none."""
    words = told.split()
    denied = words[:1] == ["not"]
    kind, *args = words[denied:] or [""]
    return LetterClaim(kind, tuple(args), not denied) if kind in KINDS else None
