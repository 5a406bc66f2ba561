"""What sentences may say: every pattern with the claims that it makes; a sentence is one of them or several in a row.

In patterns `[a|b]` may be missing, `<a|b>` is one of them, and capitals are groups: N a node, NS several, C a colour,
CS several, Q a number, PS nodes with their colours. In claims a digit is a group; all combinations of several are meant.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product
from typing import Final

from heron_env.worlds.graph_coloring.talking.claims import Claim
from heron_env.worlds.graph_coloring.talking.words import Sentence

LINK: Final = r"(?:is |: |eq |have |put |to |into |as |at |on |in |use )*"
TO_LINK: Final = r"(?:eq |to |into |as |at |on |in )*"
IF_LINK: Final = LINK.replace("is ", "is |was |be |become |altered ")
NODES: Final = r"@\d+ (?:(?:, |and |, and |or )@\d+ )*"
PAIR: Final = rf"{NODES}LINK(?:from #\d+ )?LINK#\d+ (?:(?:or |, |, or )#\d+ )*"
SEVERAL: Final = rf"({PAIR}(?:(?:, |and |, and )(?:you )?(?:altered |alter |put |made )?{PAIR})*)"
MACROS: Final = {
    "NS": rf"({NODES})", "MS": r"((?:@\d+ (?:, |and |, and ))+@\d+ )", "N": r"(@\d+ )", "CS": r"(#\d+ (?:(?:, |or |nor |, or )#\d+ )*)", "C": r"(#\d+ )",
    "Q": r"(=\d+(?:\.\d+)? )", "PS": SEVERAL.replace("LINK", LINK), "TS": SEVERAL.replace("LINK", TO_LINK), "KS": SEVERAL.replace("LINK", IF_LINK), "ID": r"((?:me|you) : =\d+ )",
}  # fmt: skip
MINE: Final = "[my] [boundary|own] [colour|state|assignment|node|boundary|status]"
NONE: Final = "<no|not any|not have any|=0>"
THERE: Final = (
    "<there is|there will be|i|i have|i see|i cannot see|i will have|i would have|i count|i get|i can have|have|there>"
)
COURTESY: Final = """
<hello|hi|hey|dear|good morning|good day> [there] [you] ; [best|kind|warm] <regards|wishes> ; you ; me ; best
thanks [you] [a lot|very much] [for <your|that|this> [letter|help|patience]] ; thanks for letter
i <have|got|received|read> your letter ; i have <got|received|read> your letter
[please] let me know [what you think|if that work|if this work|if that is ok] ; what do you think ; <do|does> that work
is that ok [with you] ; i look forward to your letter ; looking forward to your letter ; i wait for your letter
i is waiting for your letter ; over to you ; <here is|this is> my <status|state|letter> ; status letter ; status ; letter
here is my <boundary|colour> ; my status ; my state ; what [colour] work
"""
IF: Final = "<if|with|for|should|when> [you] [<alter|altered|put>]"
ROWS: Final = f"""
{MINE} [:|is|stay] PS => assign 1
[all] NS is [put|made] [to|at|on|as|in] C => assign 1 2
[all] NS is [put|made] [to|at|on|as|in] C [,] [and|but] not CS => assign 1 2; not assign 1 3
NS is not CS => not assign 1 2
NS is neither CS => not assign 1 2
NS is nolonger C => not assign 1 2; was 1 2
NS stay [at|on] C => assign 1 2; was 1 2
i [is] keep NS [at|on|as|in|put to] C => assign 1 2; was 1 2
[i] kept NS [at|on|as|in|put to] C => assign 1 2; was 1 2
NS <was|used be> C [before|previously] => was 1 2
previously [,] NS was C => was 1 2
i have NS [put|made] [to|at|on|as|in] C => assign 1 2
i [is] use C <for|on|at> NS => assign 2 1
i see NS as C => assign 1 2
i [is] <alter|put> TS => changed 1
[i] <altered|made> TS => changed 1
NS [is|was] <altered|become|became> [from C] [to|into] C => changed 1 3; was 1 2
NS was <put|made> [from C] to C => changed 1 3; was 1 2
NS [:] C -> C => changed 1 3; was 1 2
i [is] <alter|altered> NS => changed 1
NS [is|was] altered => changed 1
i not <alter|altered|put> NS => not changed 1
NS [is|was] not <alter|altered> => not changed 1
NS <is|stay|keep|kept> unaltered => not changed 1
i <keep|kept> NS unaltered => not changed 1
i not <alter|altered> <anything|any of my node|any node|any colour|any of my colour|my colour> => not changed
i <put|made|have> no alter => not changed
[there is] no alter => not changed
nothing [is] altered => not changed
my <colour|assignment|node> <is unaltered|stay unaltered|not alter|not altered|stay|keep unaltered> => not changed
all my <colour|node> <is unaltered|stay unaltered|keep unaltered|not alter|not altered> => not changed
i <keep|kept> [all] my colour => not changed
i <altered|put|made|have> [some of] <my colour|my node|a alter|some alter|alter|my assignment> => changed
my <colour|assignment> [is] altered => changed
<i|my cluster|my part|my side> is satisfied [with <this|that|my colour|colour|colouring|state>] => satisfied
satisfied => satisfied
<i|my cluster|my part|my side> is not satisfied [with <this|that|my colour|colour|colouring|state>] => not satisfied
<i|my cluster|my part|my side> is dissatisfied [with <this|that|my colour|colour|colouring|state>] => not satisfied
not satisfied => not satisfied
[my] [total] penalty [is|:|eq|of|stay|stands] [at|:] Q => penalty 1
i <have|is|is paying|pay|get|stay> [at] [a] penalty [of|eq|:] Q => penalty 1
<i have|there is> no penalty => penalty =0
no penalty => penalty =0
[my] penalty is not =0 => conflicts some
[my] penalty is <above|greater than|more than|larger than> =0 => conflicts some
[{THERE}] {NONE} conflict [at all] [kept|keep|stay|resolve] => conflicts =0
there is not any conflict [kept|keep] => conflicts =0
i cannot see any conflict => conflicts =0
i is [in] no conflict => conflicts =0
i is not in conflict => conflicts =0
my <colouring|node|colour> is <valid|no conflict> => conflicts =0
i have a valid colouring => conflicts =0
none of my node is in conflict => conflicts =0
all my conflict is resolve => conflicts =0
[{THERE}] [a|some] conflict [kept|keep|stay] => conflicts some
my colouring is not valid => conflicts some
i not have a valid colouring => conflicts some
[{THERE}] Q conflict [kept|keep|stay|in all] => conflicts 1
[my] conflict : Q => conflicts 1
[{THERE}] {NONE} conflict <with you|between us> [kept] => conflicts you =0
[{THERE}] [a|some] conflict <with you|between us> [kept] => conflicts you some
[{THERE}] Q conflict <with you|between us> [kept] => conflicts you 1
N [is] [in] conflict with NS => conflict 1 2
NS [is] [in] conflict => between 1
[{THERE}] a conflict <between|:|of> MS => between 1
[my] conflict : MS => between 1
N not [in] conflict with NS => not conflict 1 2
N is not in conflict with NS => not conflict 1 2
N [have] no conflict with NS => not conflict 1 2
[{THERE}] no conflict with NS => not conflict 1
[{THERE}] no conflict between N and N => not conflict 1 2
N [have] no conflict => not conflict 1
N [was] [in] conflicted with NS => conflicted 1 2
N was in conflict with NS => conflicted 1 2
[my|a] conflict [:|at|between|of] N [-|with] N => conflict 1 2
N have same colour as NS => same 1 2
NS <have same colour|share a colour|share same colour> => together 1
N match NS => same 1 2
N is C [,] [and|so] same [colour] as N => assign 1 2; same 1 3
N not have same colour as NS => not same 1 2
NS have different colour => not together 1
N <differ|differs|is different> from NS => not same 1 2
i not know [what colour] NS [is] => unknown 1
you not <told me|tell me> NS => unknown 1
what [colour] is NS => ask 1
NS is what => ask 1
[<can|could|would|will> you] tell me NS => ask 1
[<can|could|would|will> you] <alter|put> TS => request 1
would you mind <alter|put> TS => request 1
<can|could> NS <be|become> CS => request 1 2
i <want|would want> NS be CS => request 1 2
i <suggest|ask|want|would want> [that] [you] [to] [<alter|put|use>] TS => request 1
i <request|suggest> PS => request 1
<how about|what about> [<alter|put>] PS => request 1
wouldhelp if [you] [<alter|altered|put>] KS => request 1
consider [<alter|put>] TS => request 1
[<can|could|would|will> you] alter NS => request 1
keep NS [at|on|as|in] C => assign 1 2; request 1 2
keep NS unaltered => request 1
not alter NS => request 1
avoid CS <for|on|at> NS => request 2
not use CS <for|on|at> NS => request 2
you <can|could> <alter|put> TS => request 1
{IF} KS [,] [my] [best|total] penalty [is|will|would|would be|will be] [eq|:|of|stay at|at] Q => if 1 penalty 2
{IF} KS [,] i [will|would] <have|get|is at|be at> [a] penalty [of] Q => if 1 penalty 2
{IF} KS [,] [<there is|there will be|there would be|i have|i would have|i will have|i can have|have|there>] no conflict => if 1 penalty =0
{IF} KS [,] i <can|could> colour my node no conflict => if 1 penalty =0
[my] [best|total] penalty <is|will be|would be> Q {IF} KS => if 2 penalty 1
KS <:|->> [my] penalty [is|:|eq|of] Q => if 1 penalty 2
alter KS <would|will> give me [a] penalty [of] Q => if 1 penalty 2
alter KS <would|will> resolve my conflict => if 1 penalty =0
PS <work|works|is valid|is ok|is fine|is possible> => if 1 penalty =0
PS <not work|is not valid|is not ok|is not possible> => if 1 penalty some
i <can|could> work with PS => if 1 penalty =0
i cannot work with PS => if 1 penalty some
NS <can|could> be CS => possible 1 2
NS cannot be CS => not possible 1 2
i <can|could> <alter|put|keep> TS => possible 1
i cannot <alter|put> NS => fixed 1
NS is fixed [at|to|as] C => fixed 1; assign 1 2
NS is fixed => fixed 1
NS is not fixed => not fixed 1
<i will|promised> [<alter|put|keep>] TS => commit 1
[promised] NS will [be|become|stay|keep] [put] [at|to] C => commit 1 2
[i letter :] {IF} KS [,] i <will|would> <alter|put|keep> TS => offer 1 2
[i letter :] {IF} KS [,] PS => offer 1 2
i will <alter|put|keep> TS {IF} KS => offer 2 1
i accept ID => move Accept 1
i reject ID => move Reject 1
my letter ID => move Offer 1
deal ID => move Commit 1
"""
PREFIX: Final = """
i <think|believe|know|see|note|understand|confirm|can confirm|hear> [that] ; you told me [that] ;
note that ; this means that ; as far as i know [,] ; for your information [,] ; <be clear|to be clear> [,]
"""
GLUE: Final = (
    "<, and|, but|, so|and|but|so|because|since|:|-|(|)|therefore|and so|so that|,|and therefore|, because|, since>"
)
ASKING: Final = ("ask", "request")


@dataclass(frozen=True)
class Row:
    """A pattern, the claims that it makes, and whether it is a question."""

    pattern: re.Pattern[str]
    claims: tuple[tuple[str, ...], ...]
    asks: bool


def _compiled(text: str) -> str:
    """The regular expression over tokens."""
    found = ""
    for part in re.findall(r"[A-Z]+|->|[\[\]<>|]|[^\s\[\]<>|]+", text):
        if part in "[<":
            found += "(?:"
        elif part in "]>":
            found += ")?" if part == "]" else ")"
        else:
            found += MACROS.get(part) or ("|" if part == "|" else re.escape(part) + " ")
    return found


@cache
def rows() -> tuple[Row, ...]:
    """All of the grammar."""
    given = [line.split(" => ") for line in ROWS.strip().splitlines()]
    given += [[line.strip(), ""] for line in COURTESY.replace(";", "\n").strip().splitlines()]
    end = rf"(?={_compiled(GLUE)}|$)"
    found = []
    for pattern, claims in given:
        made = tuple(tuple(claim.split()) for claim in claims.split("; ") if claim)
        asks = all(claim[0] in ASKING for claim in made) if made else pattern.startswith(("what", "<do", "is that"))
        found.append(Row(re.compile(_compiled(pattern) + end), made, asks))
    return tuple(found)


PREFIXES: Final = re.compile("|".join(_compiled(one) for one in PREFIX.replace("\n", " ").split(" ; ")))
GLUED: Final = re.compile(_compiled(GLUE))


class Grammar:
    """Reads sentences: nodes and colours are given by their numbers, agents by what they are to the letter."""

    def __init__(self, nodes: Sequence[str], domain: Sequence[str], agents: Mapping[str, str]) -> None:
        self._called = {f"@{i}": node for i, node in enumerate(nodes)} | {f"#{j}": c for j, c in enumerate(domain)}
        self._agents = agents

    def claims(self, sentence: Sentence, before: str) -> list[Claim] | None:
        """All that it may be read to claim; None: it is not understood as a whole. `before`: tokens said before it.

        "It" may be any node of this sentence so far, or where there is none of the last one that names any. "They" are all of these.
        """
        shown = re.findall(r"(@\d+) \( (#\d+) \)", sentence.tokens)
        tokens = re.sub(r"(@\d+) \( #\d+ \)", r"\1", sentence.tokens)
        said = re.split(r"\b(?:it|they) ", tokens)[0]
        meant = list(dict.fromkeys(re.findall(r"@\d+", said) or re.findall(r"@\d+", before)))
        tokens = re.sub(r"\bthey\b", " and ".join(meant), tokens) if len(meant) > 1 else tokens
        found = [Claim("assign", (self._called[node], self._called[colour])) for node, colour in shown]
        for whose, node in re.findall(r"\b(my|your) (@\d+)", tokens):
            found.append(Claim("mine", (self._called[node],), whose == "my"))
        tokens = re.sub(r"\b(?:my|your) (?=@)", "", tokens)
        if re.search(r"\bit\b", tokens) and not meant:
            return None
        for node in meant if re.search(r"\bit\b", tokens) else ["it"]:
            one = self._read(re.sub(r"\bit\b", node, tokens), sentence.asks)
            if one is None:
                return None
            found += one
        return found

    def _read(self, tokens: str, asks: bool) -> list[Claim] | None:
        found: dict[int, list[Claim] | None] = {}

        def rest(at: int) -> list[Claim] | None:
            """What is claimed from there to the end; of readings that begin with equally long clauses, by all."""
            if at not in found:
                found[at] = None
                prefix = PREFIXES.match(tokens, at)
                read = [step(row, start) for start in {at, prefix.end() if prefix else at} for row in rows()]
                understood = [one for one in read if one is not None]
                longest = max((end for end, _ in understood), default=0)
                if understood:
                    found[at] = [claim for end, claims in understood if end == longest for claim in claims]
            return found[at]

        def step(row: Row, at: int) -> tuple[int, list[Claim]] | None:
            match = row.pattern.match(tokens, at)
            if match is None or (match.end() == len(tokens) and asks and not row.asks):
                return None
            claims = [claim for made in row.claims for claim in self._made(made, match)]
            glue = GLUED.match(tokens, match.end())
            if glue is None or glue.end() == len(tokens):
                return match.end(), claims
            more = rest(glue.end())
            return None if more is None else (match.end(), claims + more)

        opening = GLUED.match(tokens)
        return rest(opening.end() if opening else 0)

    def _made(self, made: tuple[str, ...], match: re.Match[str]) -> Iterator[Claim]:
        """The claims of one entry, for all combinations of what its groups hold; none where one of them is missing."""
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
                yield from (
                    Claim("was", (self._called[node], self._called[colour])) for node in nodes.split() if "@" in node
                )

    def _group(self, text: str) -> list[tuple[str, ...]]:
        """What a group holds: names, numbers, or pairs of a node and a colour."""
        if re.match(r"(me|you) :", text):
            who, _, number = text.split()
            return [(f"{self._agents[who]}:{number[1:]}",)]
        plain = re.sub(r"from #\d+ ", "", text)
        if "@" not in plain or "#" not in plain:
            return [(self._called.get(token, token[1:]),) for token in re.findall(r"[@#=]\S+", plain)] or [()]
        found: list[tuple[str, ...]] = []
        for nodes, colours in re.findall(r"((?:@\d+ (?:[^@#]*))+)((?:#\d+ (?:, |or |, or )?)+)", plain):
            both = product(re.findall(r"@\d+", nodes), re.findall(r"#\d+", colours))
            found += [(self._called[node], self._called[colour]) for node, colour in both]
        return found
