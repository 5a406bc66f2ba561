"""What a letter claims, and whether it is true: claims are held against a step's report, the options and the ledger."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from heron_env.dcop.cluster.view import Option, StepReport
from heron_env.dcop.problem import Part

Colours = Mapping[str, str]


@dataclass(frozen=True)
class LetterClaim:
    """One claim: `assign b2 red`, `not satisfied`, `if h2 red penalty 10`; the kinds are in `KINDS`."""

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
        offers: the sender's to the recipient that stand, by id: (conditions, assignments).
        moves: what the letter does to an offer: ("Accept", "Reject", "Commit" or "Offer", its id).
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

    @cached_property
    def between(self) -> tuple[tuple[str, str], ...]:
        """Conflicts with the recipient."""
        return tuple(pair for pair in self.report.conflicts if pair[1] in self.theirs)

    def priced(self, conditions: Colours) -> float | None:
        """The penalty if these nodes of the recipient had these colours and the others stayed; None: not known."""
        told = {node: colour for node, colour in self.report.told.items() if node in self.theirs}
        wanted = {**told, **conditions}.items()
        found = {one.penalty for one in self.options if wanted <= one.configuration.items()}
        return found.pop() if len(found) == 1 else None


def _amount(value: float, told: str) -> bool:
    return value > 0 if told == "some" else abs(value - float(told)) < 1e-9


def _changed(facts: Facts, node: str = "", colour: str = "") -> bool | None:
    if not node:
        return facts.report.changed
    before, after = facts.report.before.get(node), facts.report.assignments.get(node)
    return None if after is None else before != after and colour in ("", after)


def _conflict(facts: Facts, node: str, other: str = "") -> bool | None:
    found = [pair for pair in facts.report.conflicts if node in pair and other in ("", *pair)]
    return bool(found) if facts.colours.keys() >= {node, other} - {""} else None


def _conflicted(facts: Facts, node: str, other: str) -> bool | None:
    past = {**facts.report.told, **facts.report.before}
    edges = {(node, other), (other, node)} & {*facts.part.outer, *facts.part.inner}
    return bool(edges) and node in past and past[node] == past.get(other)


def _conflicts(facts: Facts, *told: str) -> bool:
    return _amount(len(facts.between if told[0] == "you" else facts.report.conflicts), told[-1])


def _pairs(args: Sequence[str]) -> dict[str, str]:
    """Colours by node. Raises ValueError where one has two."""
    found = dict(zip(args[::2], args[1::2], strict=True))
    if 2 * len(found) < len(args):
        raise ValueError("a node with two colours")
    return found


def _priced(facts: Facts, *args: str) -> bool | None:
    price = facts.priced(_pairs(args[:-2]))
    if price is None or args[-1] == "less":
        return None if price is None else price < facts.report.penalty
    return _amount(price, args[-1])


def _possible(facts: Facts, node: str, colour: str) -> bool | None:
    return (
        facts.fixed.get(node, colour) == colour if node in facts.mine else _priced(facts, node, colour, "penalty", "0")
    )


def _offered(facts: Facts, *args: str) -> bool:
    said = _pairs(args)
    return any({**given, **taken} == said for given, taken in facts.offers.values())


def _equal(colours: Colours, node: str, colour: str | None) -> bool | None:
    return colours[node] == colour if node in colours and colour else None


KINDS: dict[str, Callable[..., bool | None]] = {
    "assign": lambda facts, node, colour: _equal(facts.colours, node, colour),
    "was": lambda facts, node, colour: _equal(facts.report.before, node, colour),
    "changed": _changed,
    "satisfied": lambda facts: facts.report.satisfied,
    "penalty": lambda facts, value: _amount(facts.report.penalty, value),
    "conflict": _conflict,
    "conflicted": _conflicted,
    "conflicts": _conflicts,
    "same": lambda facts, node, other: _equal(facts.colours, node, facts.colours.get(other)),
    "unknown": lambda facts, node: node not in facts.colours,
    "if": _priced,
    "fixed": lambda facts, node: node in facts.fixed,
    "possible": _possible,
    "mine": lambda facts, node: node in facts.part.nodes,
    "ask": lambda facts, node: node in facts.theirs,
    "request": lambda facts, node, colour="": node in facts.theirs and node not in facts.fixed,
    "commit": lambda facts, node, colour: facts.commits.get(node) == colour,
    "offer": _offered,
    "move": lambda facts, move, offer: (move, offer) in facts.moves,
}
"""Of (facts, arguments): is it so? None: the sender can't know."""


def holds(claim: LetterClaim, facts: Facts) -> bool:
    """Does the sender know it to be so? False also for arguments that the kind doesn't take."""
    try:
        return KINDS[claim.kind](facts, *claim.args) is claim.holds
    except (KeyError, TypeError, ValueError, IndexError):
        return False
