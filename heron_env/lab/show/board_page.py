"""The page of the board: ranks by world and condition, ties as ties, and what is missing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import numpy as np

from heron_env.errors import DataError
from heron_env.lab.benchmark import NOTHING, RANDOM
from heron_env.lab.board import (
    CONDITIONS,
    SEEDS,
    BoardEntry,
    BoardWorld,
    board,
    contradictions,
    intervals_of,
    placed,
    trained_name,
)
from heron_env.lab.output import TextTable
from heron_env.lab.robust_stats import Estimate
from heron_env.lab.show.document import Report, Section

RULES = (
    "A rank is 1 + the number of policies that earn more, by the 95 % interval of the difference in the same cases: "
    "equal ranks are ties. Intervals of several training seeds are over seeds and cases; none is widened for the "
    "number of comparisons."
)


class Standing(NamedTuple):
    """A policy among others; `seeds`: trainings that it is pooled over, 0 for a baseline."""

    rank: int
    policy: str
    returns: Estimate
    seeds: int

    @property
    def words(self) -> str:
        """The policy, and how many training seeds it is pooled over."""
        return f"{self.policy}, {self.seeds} seed{'s' * (self.seeds > 1)}" if self.seeds else self.policy


def standings(entries: Sequence[BoardEntry]) -> list[Standing]:
    """Of the policies of one world and condition, the best first."""
    pools: dict[str, list[BoardEntry]] = {}
    for entry in entries:
        pools.setdefault(entry.policy, []).append(entry)
    tables = {name: np.array([entry.values for entry in pool]) for name, pool in pools.items()}
    make = intervals_of(entries[0].cases)
    ranked = [
        Standing(
            1 + sum(make.difference(other, table).low > 0.0 for other in tables.values()),
            name,
            make.mean(table),
            sum(entry.checkpoint is not None for entry in pools[name]),
        )
        for name, table in tables.items()
    ]
    return sorted(ranked, key=lambda each: (each.rank, -each.returns.value))


def missing(world: BoardWorld, condition: str, ranked: Sequence[Standing]) -> Iterator[str]:
    """What the board wants there and has not."""
    seeds = {each.policy: each.seeds for each in ranked}
    yield from (name for name in (NOTHING, RANDOM, *world.rules) if name not in seeds)
    for name in dict.fromkeys(("ppo", trained_name(condition))):
        if (count := seeds.get(name, 0)) < SEEDS:
            yield f"{name} ({count} of {SEEDS} training seeds)"


def board_report(paths: Sequence[str | Path]) -> Report:
    """Of these entries. Raises DataError for one that contradicts the board or itself, or is there twice."""
    entries: dict[tuple[object, ...], BoardEntry] = {}
    for name, entry, weights in chain.from_iterable(map(placed, paths)):
        if fault := next(contradictions(entry, weights), ""):
            raise DataError(f"{name}: {fault}; `heron board add` makes it again")
        if entries.setdefault((entry.env, entry.condition, entry.policy, entry.seed), entry) is not entry:
            raise DataError(f"{name}: {entry.policy!r} is there twice under {entry.condition!r}; leave one out")
    parts, gaps, first = [], list[str](), list[str]()
    for world in board().values():
        tables = []
        for condition in CONDITIONS:
            of = [entry for entry in entries.values() if (entry.env, entry.condition) == (world.id, condition)]
            ranked = standings(of) if of else []
            lacks = list(missing(world, condition, ranked))
            rows = [(each.words, str(each.rank), str(each.returns)) for each in ranked]
            caption = f"{condition}: {world.condition(condition).words}"
            tables.append(
                TextTable(
                    caption,
                    ("policy", "rank", "return [95 %]"),
                    rows,
                    note=f"Missing: {', '.join(lacks)}." if lacks else "",
                )
            )
            gaps += [f"{world.id}, {condition}: {name}" for name in lacks]
            best = [each.policy for each in ranked if each.rank == 1]
            first += [f"{world.id}, {condition}: {' and '.join(best)}"] if best else []
        cases = f"{world.cases} test cases, options {dict(world.options) or 'of the environment'}."
        parts.append(Section(world.id, [cases, *tables]))
    parts += [Section("First", [first]), Section("Missing", [gaps or ["Nothing."]])]
    return Report(
        "The board", [RULES, f"{len(entries)} entries; what is missing of {len(gaps)} policies is named."], parts
    )
