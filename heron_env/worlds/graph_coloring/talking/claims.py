"""What a letter claims, and whether it is true: claims are held against a step's report, the options and the ledger."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise

from heron_env.dcop.cluster.report import Option, StepReport
from heron_env.dcop.problem import Part

Colours = Mapping[str, str]


@dataclass(frozen=True)
class Claim:
    """One claim: `assign b2 red`, `not satisfied`, `if h2 red penalty 10`; what each kind says is in `KINDS`."""

    kind: str
    args: tuple[str, ...] = ()
    holds: bool = True

    def __str__(self) -> str:
        """In words, as above."""
        return " ".join([*([] if self.holds else ["not"]), self.kind, *self.args])


@dataclass(frozen=True)
class Facts:
    """All that a letter is held against.

    Attributes:
        options: of this recipient.
        fixed: nodes known to be fixed: the sender's, and those that it was told of.
        commits: what the ledger has the sender committed to towards this recipient.
        offers: open ones between the two by id: (conditions, assignments).
        moves: what the sender may say that it does to an offer: (move, id).
    """

    recipient: str
    part: Part
    report: StepReport
    options: Sequence[Option] = ()
    fixed: Colours = field(default_factory=dict)
    commits: Colours = field(default_factory=dict)
    offers: Mapping[str, tuple[Colours, Colours]] = field(default_factory=dict)
    moves: frozenset[tuple[str, str]] = frozenset()

    @cached_property
    def theirs(self) -> tuple[str, ...]:
        """The recipient's nodes with an edge to the sender's."""
        return self.part.foreign_boundary(self.recipient)

    @cached_property
    def mine(self) -> tuple[str, ...]:
        """The sender's nodes with an edge to the recipient's."""
        shared = {own for own, foreign in self.part.outer if foreign in self.theirs}
        return tuple(node for node in self.part.nodes if node in shared)

    @cached_property
    def colours(self) -> dict[str, str]:
        """The colour of each node, own or told."""
        return {**self.report.told, **self.report.assignments}

    def conflict(self, node: str, other: str) -> bool:
        """Are they two ends of one edge, and of one colour?"""
        return {(node, other), (other, node)} & set(self.report.conflicts) != set()

    @cached_property
    def between(self) -> tuple[tuple[str, str], ...]:
        """Conflicts with the recipient."""
        return tuple(pair for pair in self.report.conflicts if pair[1] in self.theirs)

    def priced(self, conditions: Colours) -> float | None:
        """The penalty if these nodes of the recipient had these colours and the others stayed; None: not known."""
        wanted = {node: self.report.told[node] for node in self.theirs if node in self.report.told} | {**conditions}
        found = {one.penalty for one in self.options if wanted.items() <= one.configuration.items()}
        return found.pop() if len(found) == 1 and conditions.keys() <= {*self.theirs} else None


def _pairs(args: Sequence[str]) -> dict[str, str]:
    return dict(zip(args[::2], args[1::2], strict=True))


def _amount(value: float, told: str) -> bool:
    return value > 0 if told == "some" else abs(value - float(told)) < 1e-9


def _changed(facts: Facts, node: str = "", colour: str = "") -> bool | None:
    if not node:
        return facts.report.changed
    before, after = facts.report.before.get(node), facts.report.assignments.get(node)
    return None if after is None else before != after and colour in ("", after)


def _conflicts(facts: Facts, *told: str) -> bool:
    found = facts.between if told[0] == "you" else facts.report.conflicts
    return _amount(len(found), told[-1])


def _conflicted(facts: Facts, node: str, other: str) -> bool | None:
    before = {**facts.report.told, **facts.report.before}
    edge = {(node, other), (other, node)} & {*facts.part.outer, *facts.part.inner}
    return bool(edge) and node in before and before[node] == before.get(other)


def _conflict(facts: Facts, node: str, other: str = "") -> bool | None:
    if other:
        return facts.conflict(node, other) if {node, other} <= facts.colours.keys() else None
    return None if node not in facts.colours else any(node in pair for pair in facts.report.conflicts)


def _priced(facts: Facts, *args: str) -> bool | None:
    price = facts.priced(_pairs(args[:-2]))
    if price is not None and args[-1] == "less":
        return price < facts.report.penalty
    return None if price is None else _amount(price, args[-1])


def _offered(facts: Facts, *args: str) -> bool:
    said = _pairs(args)
    return any({**given, **taken} == said for given, taken in facts.offers.values())


def _possible(facts: Facts, node: str, colour: str) -> bool | None:
    return (
        facts.fixed.get(node, colour) == colour if node in facts.mine else _priced(facts, node, colour, "penalty", "0")
    )


def _equal(facts: Facts, colours: Colours, node: str, colour: str) -> bool | None:
    return colours[node] == colour if node in colours else None


KINDS: dict[str, Callable[..., bool | None]] = {
    "assign": lambda facts, node, colour: _equal(facts, facts.colours, node, colour),
    "was": lambda facts, node, colour: _equal(facts, facts.report.before, node, colour),
    "changed": _changed,
    "satisfied": lambda facts: facts.report.satisfied,
    "penalty": lambda facts, value: _amount(facts.report.penalty, value),
    "conflict": _conflict,
    "conflicted": _conflicted,
    "conflicts": _conflicts,
    "same": lambda facts, *nodes: (
        all(facts.colours[a] == facts.colours[b] for a, b in pairwise(nodes))
        if facts.colours.keys() >= {*nodes}
        else None
    ),
    "unknown": lambda facts, node: node not in facts.colours,
    "if": _priced,
    "fixed": lambda facts, node: node in facts.fixed,
    "possible": _possible,
    "ask": lambda facts, node: node in facts.theirs,
    "request": lambda facts, node, colour="": node in facts.theirs and node not in facts.fixed,
    "commit": lambda facts, node, colour: facts.commits.get(node) == colour,
    "offer": _offered,
    "move": lambda facts, move, offer: (move, offer) in facts.moves,
    "mine": lambda facts, node: node in facts.part.nodes,
}
"""Of (facts, arguments): is it so? None: the sender can't know."""


def holds(claim: Claim, facts: Facts) -> bool:
    """Does the sender know it to be true?"""
    found = KINDS[claim.kind](facts, *claim.args)
    return found is not None and found == claim.holds
