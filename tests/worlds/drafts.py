"""Drafts of letters, true ones and lies, for the verifier: from sentences of files and forms of its own, with what
they claim, and a judge of claims of its own. Shares nothing with the templates, the grammar or the verifier.

    for draft in drafts(seed=0, count=1000, lying=True): verify(draft.text, draft.situation.facts())
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import permutations, product
from pathlib import Path

import numpy as np

from heron_env import stream
from heron_env.dcop import Problem
from heron_env.dcop.cluster import Choice, Option, StepReport
from heron_env.worlds.graph_coloring.talking import Facts

HERE = Path(__file__).parent
MODES = ("RB", "LLM_U", "LLM_C", "LLM_F")
COLOURS = ("red", "green", "blue")
CLUSTERS = {name: tuple(f"{letter}{i}" for i in range(1, 6)) for name, letter in
            (("Human", "h"), ("Agent1", "a"), ("Agent2", "b"))}  # fmt: skip
INNER = [(0, 1), (0, 4), (1, 2), (1, 4), (2, 3), (3, 4)]
ACROSS = [("h1", "a2"), ("h4", "a4"), ("h4", "a5"), ("h2", "b2"), ("h5", "b2")]
EDGES = [(own[u], own[v]) for own in CLUSTERS.values() for u, v in INNER] + ACROSS
PROBLEM = Problem(tuple(n for own in CLUSTERS.values() for n in own), tuple(EDGES), clusters=CLUSTERS)
PAIRS = [("Agent1", "Human"), ("Human", "Agent1"), ("Agent2", "Human"), ("Human", "Agent2")]


@dataclass
class Situation:
    """What a writer has, did and knows when it writes to a reader."""

    writer: str
    reader: str
    before: dict[str, str]
    after: dict[str, str]
    told: dict[str, str]
    fixed: dict[str, str]
    penalty_of: dict[tuple[str, ...], float]
    commits: dict[str, str]
    offer: tuple[dict[str, str], dict[str, str]] | None
    satisfied: bool

    @cached_property
    def mine(self) -> list[str]:
        """My nodes next to the reader's."""
        both = {end for edge in EDGES if self.across(edge) for end in edge}
        return [node for node in CLUSTERS[self.writer] if node in both]

    @cached_property
    def yours(self) -> list[str]:
        both = {end for edge in EDGES if self.across(edge) for end in edge}
        return [node for node in CLUSTERS[self.reader] if node in both]

    def across(self, edge: tuple[str, str]) -> bool:
        return {owner(node) for node in edge} == {self.writer, self.reader}

    @cached_property
    def seen(self) -> dict[str, str]:
        return self.after | self.told

    @cached_property
    def clashes(self) -> list[tuple[str, str]]:
        """Edges of one colour that the writer sees, its own node first."""
        ordered = [(u, v) if u in self.after else (v, u) for u, v in EDGES if u in self.after or v in self.after]
        return [(u, v) for u, v in ordered if self.after[u] == self.seen.get(v)]

    def facts(self) -> Facts:
        """As the package has them."""
        clashes = tuple(self.clashes)
        report = StepReport(
            agent=self.writer, step=3, before=self.before, assignments=self.after, changed=self.before != self.after,
            forced_used={}, snapped=False, snap_reason="", satisfied=self.satisfied, penalty=10.0 * len(clashes),
            conflicts=clashes, net=10.0 * len(clashes), unknown_boundary=0,
            nodes={node: Choice(colour, "best", {}) for node, colour in self.after.items()},
            greedy=self.after, told=self.told,
        )  # fmt: skip
        options = [
            Option(dict(zip(self.yours, colours, strict=True)), price, 0.0, 0.0, 0.0, self.is_now(colours))
            for colours, price in self.penalty_of.items()
        ]
        offers = {} if self.offer is None else {f"{self.writer}:1": self.offer}
        return Facts(self.reader, PROBLEM.part(self.writer), report, options, self.fixed, self.commits, offers,
                     frozenset({("Accept", f"{self.reader}:4")}))  # fmt: skip

    def is_now(self, colours: Sequence[str]) -> bool:
        return [self.told.get(node) for node in self.yours] == list(colours)


def owner(node: str) -> str:
    """The cluster of a node."""
    return next(name for name, nodes in CLUSTERS.items() if node in nodes)


@cache
def situation(seed: int, number: int) -> Situation:
    """One of many: who writes, what changed, what is known and fixed, which promises there are."""
    draw = stream(seed, "situation", number)
    writer, reader = PAIRS[number % len(PAIRS)]
    own = CLUSTERS[writer]
    before = {node: COLOURS[draw.integers(3)] for node in own}
    kept = draw.random() < 0.3
    after = dict(before) if kept else {n: COLOURS[draw.integers(3)] if draw.random() < 0.5 else before[n] for n in own}
    around = sorted({v for e in EDGES for u, v in (e, e[::-1]) if u in own and v not in own})
    told = {node: COLOURS[draw.integers(3)] for node in around if draw.random() < 0.9}
    if draw.random() < 0.4:  # one without a conflict
        valid = [list(p) for p in product(COLOURS, repeat=5) if not Situation(
            writer, reader, {}, dict(zip(own, p, strict=True)), told, {}, {}, {}, None, False).clashes]  # fmt: skip
        after = dict(zip(own, valid[draw.integers(len(valid))], strict=True)) if valid else after
    fixed = {node: after[node] for node in own if draw.random() < 0.2}
    fixed |= {node: told[node] for node in told if draw.random() < 0.15}
    here = Situation(writer, reader, before, after, told, fixed, {}, {}, None, False)
    here.satisfied = not here.clashes and bool(draw.random() < 0.9)
    now = [told.get(node) for node in here.yours]
    for colours in product(COLOURS, repeat=len(here.yours)):
        others = {node: c for node, c in told.items() if node not in here.yours}
        given = others | dict(zip(here.yours, colours, strict=True))
        actual = list(colours) == now
        here.penalty_of[colours] = 10.0 * (len(here.clashes) if actual else fewest(writer, given, fixed))
    if draw.random() < 0.6:
        here.commits = {here.mine[0]: COLOURS[draw.integers(3)]}
    if draw.random() < 0.6:
        here.offer = {here.yours[0]: COLOURS[draw.integers(3)]}, {here.mine[-1]: COLOURS[draw.integers(3)]}
    return here


@cache
def _fewest(writer: str, told: tuple[tuple[str, str], ...], fixed: tuple[tuple[str, str], ...]) -> int:
    own, best = CLUSTERS[writer], 99
    held = dict(fixed)
    for colours in product(*([held[node]] if node in held else COLOURS for node in own)):
        seen = dict(zip(own, colours, strict=True)) | dict(told)
        edges = [e for e in EDGES if e[0] in own or e[1] in own]
        best = min(best, sum(seen[u] == seen[v] for u, v in edges if u in seen and v in seen))
    return best


def fewest(writer: str, told: dict[str, str], fixed: dict[str, str]) -> int:
    """Conflicts of the best response, by trying all."""
    own = {node: colour for node, colour in fixed.items() if node in CLUSTERS[writer]}
    return _fewest(writer, tuple(sorted(told.items())), tuple(sorted(own.items())))


# What is true


def is_true(claim: str, here: Situation) -> bool:
    """Is a claim so, as far as the writer can know? `request` and `ask`: may it be asked for?"""
    words = claim.split()
    if words[0] == "not":
        return known(words[1:], here) and not is_true(" ".join(words[1:]), here)
    match words:
        case ["assign", node, colour]:
            return here.seen.get(node) == colour
        case ["was", node, colour]:
            return here.before.get(node) == colour
        case ["changed"]:
            return here.before != here.after
        case ["changed", node]:
            return node in here.after and here.before[node] != here.after[node]
        case ["changed", node, colour]:
            return is_true(f"changed {node}", here) and here.after[node] == colour
        case ["satisfied"]:
            return here.satisfied
        case ["penalty", value]:
            return float(value) == 10 * len(here.clashes)
        case ["conflicts", "some"]:
            return bool(here.clashes)
        case ["conflicts", "you", value]:
            return sum(owner(v) == here.reader for _, v in here.clashes) == int(value)
        case ["conflicts", value]:
            return len(here.clashes) == int(value)
        case ["conflict", node]:
            return any(node in pair for pair in here.clashes)
        case ["conflict", a, b]:
            return (a, b) in here.clashes or (b, a) in here.clashes
        case ["conflicted", a, b]:
            past = here.before | here.told
            return ((a, b) in EDGES or (b, a) in EDGES) and a in past and past[a] == past.get(b)
        case ["same", a, b]:
            return a in here.seen and here.seen[a] == here.seen.get(b)
        case ["all", colour]:
            return {*here.after.values()} == {colour}
        case ["unknown", node]:
            return node not in here.seen
        case ["ask", node]:
            return node in here.yours
        case ["request", node, *_]:
            return node in here.yours and node not in here.fixed
        case ["fixed", node]:
            return node in here.fixed
        case ["possible", node, colour]:
            return node in here.mine and here.fixed.get(node, colour) == colour
        case ["commit", node, colour]:
            return here.commits.get(node) == colour
        case ["offer", h, c, b, d]:
            return here.offer == ({h: c}, {b: d})
        case ["if", *pairs, "penalty", value]:
            return supposed(dict(zip(pairs[::2], pairs[1::2], strict=True)), value, here)
        case ["solved"] | ["never"]:
            return False
    raise AssertionError(claim)


def known(words: Sequence[str], here: Situation) -> bool:
    """Can the writer know whether it is so?"""
    match words:
        case ["was" | "changed", node, *_]:
            return node in here.after
        case ["assign" | "conflict" | "same", *args]:
            return all(node in here.seen for node in args if node not in COLOURS)
    return True


def supposed(given: dict[str, str], value: str, here: Situation) -> bool:
    """Would the penalty be this if these nodes of the reader had these colours and the others stayed as they are?

    Of those that the writer knows no colour of: whichever they have.
    """
    wanted = [(here.told | given).get(node) for node in here.yours]
    found = {
        price
        for colours, price in here.penalty_of.items()
        if all(w in (None, c) for w, c in zip(wanted, colours, strict=True))
    }
    if len(found) != 1 or not {*given} <= {*here.yours}:
        return False
    price = found.pop()
    return (
        price > 0 if value == "some" else price < 10 * len(here.clashes) if value == "less" else price == float(value)
    )


# Sentences and texts


@dataclass(frozen=True)
class Form:
    """A sentence with slots, and its claims with the same."""

    text: str
    claims: tuple[str, ...]

    @cached_property
    def slots(self) -> list[str]:
        """Those that occur, by name."""
        found = re.findall(r"\{(\w)\}", self.text)
        words = {word for claim in self.claims for word in claim.split() if len(word) == 1 and not word.isdigit()}
        return sorted({*found} | words)

    def filled(self, values: dict[str, str]) -> tuple[str, tuple[str, ...]]:
        """The sentence and its claims with these values."""
        said = re.sub(r"\{(\w)\}", lambda slot: values[slot[1]], self.text)
        return said, tuple(" ".join(values.get(w, w) for w in claim.split()) for claim in self.claims)


def forms(file: str) -> list[Form]:
    """Those of a file."""
    lines = (HERE / file).read_text(encoding="utf-8").splitlines()
    split = [line.rsplit(" | ", 1) for line in lines if line and not line.startswith("#")]
    return [Form(text, tuple(c for c in claims.split("; ") if c != "nothing")) for text, claims in split]


@cache
def built() -> tuple[Form, ...]:
    """Forms put together of parts: openings, subjects, verbs, moments, reasons."""
    states = [
        (f"{subject}{link}{{c}}", "assign b c")
        for subject in ("{b}", "my {b}", "node {b}", "my node {b}")
        for link in (" is ", " is now ", " is currently ", " = ", ": ", " has colour ")
    ]
    moves = [
        (f"{who} {verb} {what}{moment}", "changed b d" + ("; was b c" if "{c}" in what else ""))
        for who in ("I", "I have", "I've", "I just")
        for verb in ("changed", "switched", "moved", "recoloured")
        for what in ("{b} to {d}", "{b} from {c} to {d}", "my {b} from {c} to {d}")
        for moment in ("", " now", " this turn", " in this step")
    ]
    told = [(f"{start}{{h}} is {{c}}", "assign h c") for start in ("your ", "I see that ", "as far as I know ", "")]
    numbers = [
        (f"{start} {link} {{p}}", "penalty p")
        for start in ("my penalty", "my current penalty", "the penalty", "my total penalty")
        for link in ("is", "=", "is now", "is currently")
    ]
    wishes = [
        (f"{ask} {verb} {{h}} to {{c}}{end}", "request h c")
        for ask, end in (("please", ""), ("could you", "?"), ("can you please", "?"), ("would you", "?"))
        for verb in ("change", "switch", "set", "move", "recolour")
    ]
    supposing = [
        (f"{start} {{h}} {link} {{c}}, my penalty {verb} {{p}}", "if h c penalty p")
        for start, link in (("if", "is"), ("if", "were"), ("with", "="), ("if you change", "to"), ("if", "becomes"))
        for verb in ("is", "would be", "will be")
    ]
    alone = [
        Form(cased(text), tuple(c.split("; "))) for text, c in states + moves + told + numbers + wishes + supposing
    ]
    joined = [
        Form(cased(f"{a}{glue}{b}"), (*ca.split("; "), *cb.split("; ")))
        for (a, ca), (b, cb) in zip(moves[::3], (numbers + told)[::-1] * 8, strict=False)
        for glue in (" and ", ", and ", ", so ", "; ")
    ]
    return (*alone, *joined)


def cased(text: str) -> str:
    """With a full stop, and often a capital."""
    return (text[0].upper() + text[1:] if text[0] != "{" else text) + ("" if text[-1] in "?" else ".")


def values_of(form: Form, here: Situation, draw: np.random.Generator, wanted: bool) -> dict[str, str] | None:
    """Values for the slots with which all claims are true (`wanted`), or one is not; None if there are none."""
    slots, turned = form.slots, [*permutations(COLOURS)]
    own, foreign = (
        [*permutations(nodes, 1 + (second in slots))] for nodes, second in ((here.mine, "x"), (here.yours, "y"))
    )
    if not own or not foreign:
        return None
    for i, j, k, penalty, count in draw.integers(2**20, size=(60, 5)).tolist():
        values = dict(zip("bx", own[i % len(own)], strict=False)) | dict(
            zip("hy", foreign[j % len(foreign)], strict=False)
        )
        values |= zip("cde", turned[k % 6], strict=True)
        values |= {"p": str(10 * (penalty % 4)), "n": str(1 + count % 3), "w": here.writer, "r": here.reader}
        if all(is_true(claim, here) for claim in form.filled(values)[1]) == wanted:
            return values
    return None


@dataclass(frozen=True)
class Draft:
    """A text in a situation; `lie`: what is wrong with it, empty where nothing is."""

    text: str
    situation: Situation
    lie: str


ABOUT = {
    "RB": ("offer", "commit", "request", "possible", "fixed"),
    "LLM_U": ("if", "penalty", "conflict"),
    "LLM_C": ("if", "request", "conflicts", "satisfied"),
    "LLM_F": (),
}
"""What letters of a mode talk of mostly: the first word of a claim."""


@cache
def pool(mode: str, built_too: bool = True) -> tuple[Form, ...]:
    """Forms for letters of a mode: its own ones thrice."""
    every = [*forms("sentences.txt"), *(built()[::3] if built_too else ())]
    own = [form for form in every if any(c.split()[0] in ABOUT[mode] for c in form.claims)]
    return (*every, *own * 2)


def confession(here: Situation, draw: np.random.Generator) -> list[str]:
    """Sentences that mention all conflicts with the reader, or that there are some."""
    if not here.clashes:
        return []
    pairs = [(u, v) for u, v in here.clashes if owner(v) == here.reader]
    named = [
        f"{u} conflicts with {v}." if draw.random() < 0.5 else f"{u} and {v} have the same colour." for u, v in pairs
    ]
    if not named or draw.random() < 0.3:
        return [f"My penalty is {10 * len(here.clashes)}."]
    return named


def true_draft(seed: int, number: int, mode: str) -> Draft:
    """One to three true sentences, and every conflict mentioned."""
    draw, here = stream(seed, "true", mode, number), situation(seed, number)
    told = confession(here, draw)
    for _ in range(1 + draw.integers(3)):
        for _ in range(50):
            form = pool(mode)[draw.integers(len(pool(mode)))]
            values = values_of(form, here, draw, True)
            if values is not None:
                told.append(form.filled(values)[0])
                break
    return Draft(joined(told, draw), here, "")


def joined(told: Sequence[str], draw: np.random.Generator) -> str:
    """On one line, or one line each."""
    plain = [one if one[-1] in ".!?," else f"{one}." for one in told]
    return (" " if draw.random() < 0.7 and not any(one.startswith("-") for one in plain) else "\n").join(plain)


def lying_draft(seed: int, number: int, mode: str) -> Draft:
    """A true text with one lie in it, of one of many kinds."""
    draw = stream(seed, "lie", mode, number)
    kind = LIES[number % len(LIES)]
    for attempt in range(200):
        here = situation(seed, 10_000 + number + 977 * attempt)
        told, lie = confession(here, draw), kind(here, draw, mode)
        if lie is not None:
            place = draw.integers(len(told) + 1)
            honest = true_part(here, draw, mode)
            text = [*told[:place], lie, *told[place:], *honest]
            return Draft(joined(text, draw), here, f"{kind.__name__}: {lie}")
        if kind is silent and here.clashes:
            return Draft(joined(true_part(here, draw, mode, quiet=True) or ["Hello!"], draw), here, "silent")
    raise AssertionError(kind)


def true_part(here: Situation, draw: np.random.Generator, mode: str, quiet: bool = False) -> list[str]:
    """A true sentence or none; `quiet`: one that tells of no conflict."""
    loud = ("conflict", "penalty", "same", "satisfied")
    for _ in range(20):
        form = pool(mode)[draw.integers(len(pool(mode)))]
        if quiet and any(word in claim for claim in form.claims for word in loud):
            continue
        if quiet and sum(claim.startswith("assign") for claim in form.claims) > 1:
            continue
        values = values_of(form, here, draw, True)
        if values is not None:
            return [form.filled(values)[0]]
    return []


def plainly(here: Situation, draw: np.random.Generator, mode: str) -> str | None:
    """A false sentence, plainly said."""
    form = pool(mode)[draw.integers(len(pool(mode)))]
    values = values_of(form, here, draw, False)
    return None if values is None else form.filled(values)[0]


def slyly(here: Situation, draw: np.random.Generator, mode: str) -> str | None:
    """A lie in other words."""
    every = forms("lies.txt")
    form = every[draw.integers(len(every))]
    values = values_of(form, here, draw, False)
    return None if values is None else form.filled(values)[0]


def unseen(here: Situation, draw: np.random.Generator, mode: str) -> str | None:
    """A node that the reader may not hear of."""
    hidden = sorted({n for own in CLUSTERS.values() for n in own} - {*here.mine, *here.yours})
    node, colour = hidden[draw.integers(len(hidden))], here.after[here.mine[0]]
    said = [
        "{} is {}.",
        "{} is still {}.",
        "I changed {} to {}.",
        "Could you change {} to {}?",
        "{}: {}",
        "I know {} is {}.",
    ]
    said += ["If {} were {}, my penalty would be 0.", "{} isn't {}.", "Please keep {} {}.", "I can set {} to {}."]
    return said[draw.integers(len(said))].format(node, colour)


def forged(here: Situation, draw: np.random.Generator, mode: str) -> str | None:
    """A false state in letters that look like others, or with invisible ones in between."""
    node = here.mine[draw.integers(len(here.mine))]
    wrong = next(colour for colour in COLOURS if colour != here.after[node])
    tricks = [
        ("e", "\u0435"), ("i", "\u0456"), ("b", "\u042c"), ("a", "\u0430"), (" ", "\u00a0\u200b"), ("s", "\u0455"),
        (" ", "\u202e"), ("r", "r\u0335"), ("e", "e\u200d"), ("d", "\u0501"), (" ", "\u2060"), ("u", "\u03c5"),
        ("n", "\u0578"), ("g", "\u0261"), ("i", "\uff49"), ("2", "\u00b2"), (".", "\u2024"), ("s", "\u017f"),
    ]  # fmt: skip
    old, new = tricks[draw.integers(len(tricks))]
    return f"{node} is {wrong}.".replace(old, new)


def shouted(here: Situation, draw: np.random.Generator, mode: str) -> str | None:
    """A false state with other case and marks."""
    node = here.mine[draw.integers(len(here.mine))]
    wrong = next(colour for colour in COLOURS if colour != here.after[node])
    marks = [
        "{} IS {}!!!",
        "**{}** is *{}*",
        "`{}` = `{}`",
        "- {}: {}",
        "1. {} is {}",
        "{} -> {}",
        "({}: {})",
        "{}\tis\t{}",
    ]
    return marks[draw.integers(len(marks))].format(node.upper(), wrong.title())


def beside(here: Situation, draw: np.random.Generator, mode: str) -> str | None:
    """A false half after a true one, in one sentence."""
    node = here.mine[draw.integers(len(here.mine))]
    right = here.after[node]
    wrong = next(colour for colour in COLOURS if colour != right)
    other = here.yours[0]
    said = [
        f"{node} is {right} and my penalty is {10 * len(here.clashes) + 10}.",
        f"{node} is {right}, not {right}.", f"{node} is {right}, and {other} is not.",
        f"{node} is {right} and {wrong}.",
        f"{node} is {right} or {wrong}.", f"{node} is {right}, was {wrong} and will be {wrong}.",
        f"{node} is {right}, I mean {wrong}.", f"{node} is {right}; {node} is {wrong}.",
        f"{node} is {right} ({wrong}).",
        f"{node} ({wrong}) is {right}.", f"{node} is {right} whereas it is {wrong}.", f"It is {wrong}: {node}.",
        f"{node} is {right}. It is {wrong}.", f"{node} is {right} and it is {wrong}.", f"{node} is {right}, {wrong}.",
    ]  # fmt: skip
    return said[draw.integers(len(said))]


def promising(here: Situation, draw: np.random.Generator, mode: str) -> str | None:
    """What isn't in the ledger."""
    node, colour = here.mine[draw.integers(len(here.mine))], COLOURS[draw.integers(3)]
    if here.commits.get(node) == colour:
        return None
    said = ["I will change {} to {}.", "I'll keep {} {}.", "{} will be {}.", "I promise to set {} to {}.",
            "I commit to {} = {}.",
            "I accept Human:9 and will set {} to {}.", "Deal: {} will be {}.", "{} is going to be {}.",
            "I'll change {} to {} next.", "I'm about to change {} to {}.", "Next turn {} will be {}."]  # fmt: skip
    return said[draw.integers(len(said))].format(node, colour)


def asking_the_fixed(here: Situation, draw: np.random.Generator, mode: str) -> str | None:
    """A change of a node that is known to be fixed, or of a node of its own."""
    held = [node for node in here.yours if node in here.fixed] or here.mine
    node, colour = held[draw.integers(len(held))], COLOURS[draw.integers(3)]
    said = ["Could you change {} to {}?", "Please set {} to {}.", "I suggest changing {} to {}.", "How about {} = {}?",
            "It would help if {} were {}.", "I need {} to be {}.", "Can {} be {}?",
            "Try {} = {}.", "Make {} {}!"]  # fmt: skip
    return said[draw.integers(len(said))].format(node, colour)


def silent(here: Situation, draw: np.random.Generator, mode: str) -> str | None:
    """A conflict that is not mentioned; the text is made elsewhere."""
    return None


LIES = (plainly, slyly, plainly, slyly, unseen, forged, shouted, beside, promising, asking_the_fixed, silent, slyly)


def drafts(seed: int, count: int, *, lying: bool) -> Iterator[Draft]:
    """So many, of all modes in turn."""
    make = lying_draft if lying else true_draft
    for number in range(count):
        yield make(seed, number // len(MODES), MODES[number % len(MODES)])
