"""What sentences may say: the patterns of `english.txt` with the claims that they make, one or several in a row.

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
from typing import Final

from heron_env.worlds.graph_coloring.talking.claims import Claim
from heron_env.worlds.graph_coloring.talking.words import Sentence, english

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
Reading = tuple[int, list[Claim]]


@dataclass(frozen=True)
class Row:
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
def rows() -> tuple[Row, ...]:
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
        found.append(Row(re.compile(compiled(pattern) + end), made, asks))
    return tuple(found)


@cache
def _joints() -> tuple[re.Pattern[str], re.Pattern[str]]:
    return re.compile(compiled("GLUE")), re.compile("|".join(map(compiled, english("prefixes"))))


class Grammar:
    """Reads sentences about these nodes and colours; `agents`: names of `me` and `you`."""

    def __init__(self, nodes: Sequence[str], domain: Sequence[str], agents: Mapping[str, str]) -> None:
        self._called = {f"@{i}": node for i, node in enumerate(nodes)} | {f"#{j}": c for j, c in enumerate(domain)}
        self._agents = agents

    def claims(self, sentence: Sentence, before: str) -> list[Claim] | None:
        """All that it may be read to claim; None: it is not understood as a whole.

        "It" may be any node of this sentence so far, or where there is none, of `before`, the tokens of the last one
        that names any; "they" are all of these.
        """
        tokens, called = sentence.tokens, self._called
        shown = re.findall(r"(@\d+) \( (#\d+) \)", tokens)
        found = [Claim("assign", (called[node], called[colour])) for node, colour in shown]
        owned = re.findall(r"\b(my|your) (@\d+)", tokens)
        found += [Claim("mine", (called[node],), whose == "my") for whose, node in owned]
        tokens = re.sub(r"\b(?:my|your) (?=@)", "", re.sub(r"(@\d+) \( #\d+ \)", r"\1", tokens))
        said = re.split(r"\b(?:it|they) ", tokens)[0]
        meant = [*dict.fromkeys(re.findall(r"@\d+", said) or re.findall(r"@\d+", before))]
        tokens = re.sub(r"\bthey\b", " and ".join(meant), tokens) if len(meant) > 1 else tokens
        every = [re.sub(r"\bit\b", node, tokens) for node in meant] if re.search(r"\bit\b", tokens) else [tokens]
        read = [self._read(one, sentence.asks) for one in every]
        return None if None in read or not read else found + [claim for one in read for claim in one or ()]

    def _read(self, tokens: str, asks: bool) -> list[Claim] | None:
        glue, prefixes = _joints()
        known: dict[int, list[Claim] | None] = {}

        def rest(at: int) -> list[Claim] | None:
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

        def step(row: Row, at: int) -> Reading | None:
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

    def _made(self, made: tuple[str, ...], match: re.Match[str]) -> Iterator[Claim]:
        """The claims of one entry; none where one of its groups is missing."""
        holds, (kind, *args) = made[0] != "not", made[made[0] == "not" :]
        if not all(match[int(arg)] for arg in args if arg.isdigit()):
            return
        groups = [self._group(match[int(arg)]) if arg.isdigit() else [(arg.lstrip("="),)] for arg in args]
        if kind in ("between", "together"):
            (first,), *others = groups[0]
            kind = "conflict" if kind == "between" else "same"
            yield from (Claim(kind, (first, *other), holds) for other in others or [()])
        elif kind in ("if", "offer"):
            yield Claim(kind, tuple(name for group in groups for part in group for name in part), holds)
        else:
            yield from (Claim(kind, sum(parts, ()), holds) for parts in product(*groups) if parts != ((),))
        for arg in filter(str.isdigit, args):
            for nodes, colour in re.findall(rf"({NODES})[^@#]*from (#\d+)", match[int(arg)]):
                for node in re.findall(r"@\d+", nodes):
                    yield Claim("was" if kind == "changed" else "assign", (self._called[node], self._called[colour]))

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
