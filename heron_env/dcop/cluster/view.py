"""What a cluster agent goes by in a step: what it takes from sentences, what it weighs, and the report of the step.

Of a sentence it takes orders, reports, bans and releases, in the words of the study. A question, and what follows
"can", "could", "would", "if" and the like, is talk of what might be: it asks for nothing. Any other sentence is unclear
if nothing is taken from it, or if it names a node or a colour of which nothing is taken.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Final, Literal, NamedTuple

import numpy as np

from heron_env.core.rule import one_by_one
from heron_env.dcop.problem import Assignment, Edge, Part, Problem, spelled
from heron_env.dcop.responses import best_responses
from heron_env.dcop.solving import solve
from heron_env.errors import ConfigError

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
    """A statement about a node, and the sentence that contains it.

    "unknown": the node or the colour is none that this cluster knows; "unclear": no node, the sentence alone.
    """

    kind: Kind
    node: str
    colour: str = ""
    text: str = ""


def statements(text: str, part: Part) -> Iterator[Heard]:
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
        one, another = _any(self.nodes), rf"{AND}{_any(domain)}(?!\w)"  # whose each colour is, nobody says
        colour = rf"(?P<colour>{_any(domain)}|\w++)(?!\w)(?!/| or | ?->|{another})"
        several = rf"{one}(?!\w)(?:{AND}{one}(?!\w)){{0,{len(self.nodes)}}}+"  # a bound: time grows with the length
        many = rf"(?:the )?(?:both )?(?:nodes? )?(?P<node>(?>{several}|\w++))(?!\w)"
        self.name = _pattern(rf"{_any([*self.nodes, *domain])}(?!\w)")
        self.maybe = _pattern(rf"(?:{several} )?{MAYBE}")
        self.pair = _pattern(
            rf"(?:(?P<lead>{PAST}|{LEAD}) (?:the colou?rs? of )?)?{many}(?:'s colou?r)?(?: from \w+)?"
            rf"(?P<link> to | at | ?= ?| ?-> ?|{IS}|{MUST}| ?: ?| ){colour}"
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
            ("forbid", _pattern(rf"(?:do not|don't|never) {LEAD} {many} (?:(?:to|at|=) )?+{colour}")),
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


Reason = Literal["fixed", "forced", "greedy", "snap", "kept", "best"]


@dataclass(frozen=True)
class Choice:
    """Why a node has its colour: what decided, and what each colour would have cost it there and then."""

    colour: str
    reason: Reason
    penalties: Mapping[str, float]


@dataclass(frozen=True)
class StepReport:
    """One step of a cluster agent."""

    agent: str
    step: int
    before: Mapping[str, str]
    assignments: Mapping[str, str]
    changed: bool
    forced_used: Mapping[str, str]
    snapped: bool
    snap_reason: str
    satisfied: bool
    penalty: float
    """Penalty times visible conflicts; preferences do not enter."""
    conflicts: tuple[tuple[str, str], ...]
    """(own node, own or believed node) of the same colour."""
    net: float
    """The penalty minus preferences: what the agent makes small."""
    unknown_boundary: int
    """Foreign nodes at the boundary whose colour nobody told."""
    nodes: Mapping[str, Choice]
    greedy: Mapping[str, str]
    """What greedy search wanted, beside what was done."""
    told: Mapping[str, str]
    """The beliefs that it acted on."""


@dataclass(frozen=True)
class Option:
    """A counterfactual: what if the recipient's nodes at the boundary had these colours?"""

    configuration: Mapping[str, str]
    penalty: float
    """Of the sender's best response; of its actual colours for the current configuration."""
    agent_score: float
    recipient_score: float
    combined: float
    current: bool


class Past(NamedTuple):
    """What is kept of a step: enough to see whether the agent settles."""

    step: int
    satisfied: bool
    assignments: Mapping[str, str]
    flickers: bool
    """Satisfied as before the last step, and not as after it."""
    returns: bool
    """Coloured as before the last step, and not as after it."""


def remembered(past: Sequence[Past], report: StepReport) -> Past:
    """A step after those before it."""
    now = report.satisfied, report.assignments
    earlier, last = [(one.satisfied, one.assignments) for one in past[-2:]] if len(past) > 1 else (now, now)
    flickers, returns = (then == this != between for then, between, this in zip(earlier, last, now, strict=True))
    return Past(report.step, *now, flickers, returns)


@dataclass(frozen=True)
class View:
    """A part of the problem as it looks now.

    Attributes:
        part: the cluster's, its fixed nodes left out.
        told: believed colours of foreign nodes; an unknown one costs nothing.
        forced: own nodes that have no choice, by order.
        fixed: own nodes that never have one.
        banned: own node to colours that it does not take, unless bound or nothing else is left.
    """

    part: Part
    told: Assignment
    forced: Assignment
    fixed: Assignment
    banned: Mapping[str, frozenset[str]]

    @cached_property
    def bound(self) -> dict[str, str]:
        """Own nodes that have no choice."""
        return {**self.forced, **self.fixed}

    def conflicts(self, colours: Assignment) -> tuple[Edge, ...]:
        """(own node, own or believed node) of the same colour; foreign edges are none of mine."""
        inner = (edge for edge in self.part.inner if colours[edge[0]] == colours[edge[1]])
        return (*inner, *(edge for edge in self.part.outer if colours[edge[0]] == self.told.get(edge[1])))

    def net(self, colours: Assignment) -> float:
        """Penalty times visible conflicts minus preferences of the own nodes."""
        gains = (self._gain(node, colours[node]) for node in self.part.preferences)
        return self.part.conflict_penalty * len(self.conflicts(colours)) - one_by_one(gains)

    def penalties(self, node: str, around: Assignment) -> dict[str, float]:
        """What each colour costs a node beside the neighbours that have one: own in `around`, foreign as told."""
        near = [around.get(other, self.told.get(other)) for other in self.part.neighbours[node]]
        cost = self.part.conflict_penalty
        return {colour: cost * near.count(colour) - self._gain(node, colour) for colour in self.part.domain}

    def _gain(self, node: str, colour: str) -> float:
        return self.part.preferences.get(node, {}).get(colour, 0.0)  # a preference that nobody stated is none

    def allowed(self, node: str) -> list[str]:
        """Colours that the node may take."""
        if node in self.bound:
            return [self.bound[node]]
        free = [colour for colour in self.part.domain if colour not in self.banned.get(node, ())]
        return free or [*self.part.domain]

    def obeys(self, colours: Assignment) -> bool:
        """Has every node a colour that it may take?"""
        return all(colours[node] in self.allowed(node) for node in {*self.bound, *self.banned})

    @cached_property
    def greedy(self) -> tuple[dict[str, str], dict[str, dict[str, float]]]:
        """Node after node the first of the cheapest colours beside those coloured before; and what each would cost."""
        colours: dict[str, str] = {}
        tables: dict[str, dict[str, float]] = {}
        for node in self.part.nodes:
            tables[node] = self.penalties(node, colours)
            colours[node] = min(self.allowed(node), key=tables[node].__getitem__)
        return colours, tables

    @cached_property
    def best(self) -> list[dict[str, str]]:
        """The best responses, as `best_responses`; in a part too large for that, the best that a search found."""
        try:
            return best_responses(self.part, self.told, self.bound, self.banned)[1]
        except ConfigError:
            return [self._searched()]

    def _searched(self) -> dict[str, str]:
        """DSATUR's colours or those of local search, whichever cost less; foreign nodes stand beside, fixed as told."""
        part, told, cost = self.part, self.told, self.part.conflict_penalty
        edges = (*part.inner, *(edge for edge in part.outer if edge[1] in told))
        gains = {node: dict(part.preferences.get(node, {})) for node in {**part.preferences, **self.banned}}
        much = cost * len(edges) + 2.0 * max((abs(gain) for of in gains.values() for gain in of.values()), default=0.0)
        for node in self.banned:
            gains[node] |= dict.fromkeys(set(part.domain).difference(self.allowed(node)), -much)
        held, nodes = {**self.bound, **told}, (*part.nodes, *told)
        beside = Problem(nodes, edges, part.domain, conflict_penalty=cost, preferences=gains, fixed=held)
        found = min((solve(beside, algo) for algo in ("greedy", "dsa", "mgm")), key=lambda solution: solution.cost)
        return {node: found.assignment[node] for node in part.nodes}

    def others(self, had: Assignment, draws: np.random.Generator) -> list[dict[str, str]]:
        """Best responses but `had`, where they cost no more; if none is known, the one that other ties lead to."""
        domain = self.part.domain
        shuffled = tuple(domain[code] for code in draws.permutation(len(domain)))
        known = [response for response in self.best if response != had]
        found = known or replace(self, part=replace(self.part, domain=shuffled)).best[:1]
        return found if found != [had] and self.net(found[0]) <= self.net(had) else []
