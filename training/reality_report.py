"""What came of the study in reality.py: cells judged by bars that were set before, and the tables of its page."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import numpy as np

from heron_env.real.predicting import MEASURED, SYNCHRONOUS, Prediction

SHARE, SURE = 0.03, 2.0
"""Predicted and real may differ by so much of the gain, or by so many standard errors."""
PRECISE: Final = {"Spread": 0.015}
"""By world, the standard error that its cells may have, of the gain."""
EASY, VOID, APART = 0.10, 0.10, 4.0
"""What some policy must lose where a network counts; discards of a cell; standard errors from which on a wrong model
must be refused."""
NO_RUNS, NOT_RUN = "losses without runs", "not run yet"
WORDS: Final = re.compile(r"\w+")
Row = Sequence[str]


class Cell(NamedTuple):
    """A policy in a world over a network."""

    world: str
    network: str
    policy: str

    def __str__(self) -> str:
        """Its name."""
        return "; ".join(self)

    @property
    def place(self) -> str:
        """Where its policy is compared with others."""
        return f"{self.world}; {self.network}"

    @property
    def file(self) -> str:
        """Of its network."""
        return f"network-{'-'.join(WORDS.findall(self.place))}.json"

    @property
    def record(self) -> str:
        """The file of one of its records."""
        return f"{'-'.join(WORDS.findall(str(self)))}.jsonl.gz"


def apart(ours: Any, theirs: Any) -> tuple[float, float]:
    """The mean of paired differences, theirs minus ours, and its standard error."""
    x = np.subtract(theirs, ours)
    return float(x.mean()), float(x.std(ddof=1)) / math.sqrt(len(x))


@dataclass
class Verdict:
    """Of a cell all of whose episodes were run.

    Attributes:
        real, predicted: by seed, without those that were discarded; empty where the cell is void.
        gain: what its world's first policy gains on the synchronous clock.
        lost: what the real network took, as a share of it.
        off, error, bar: mean of predicted minus real, its standard error, and how far off it may be.
        wrong: by wrong model that must be refused: how far it is off, and whether it was refused.
        missed: what did not come out.
    """

    real: dict[int, float] = field(default_factory=dict)
    predicted: dict[int, float] = field(default_factory=dict)
    gain: float = math.nan
    lost: float = math.nan
    off: float = math.nan
    error: float = math.nan
    bar: float = math.nan
    wrong: dict[str, tuple[float, bool]] = field(default_factory=dict)
    missed: list[str] = field(default_factory=list)


def judged(cell: Cell, made: Mapping[str, Any], lines: Sequence[Mapping[str, Any]]) -> Verdict | None:
    """What the bars say of a cell, of what was predicted and of its episodes; None while some are missing."""
    tries = {seed: [line for line in lines if line["seed"] == seed] for seed in made["seeds"]}
    if not all(each and (len(each) > 1 or not each[0]["discarded"]) for each in tries.values()):
        return None
    verdict, discards = Verdict(), sum(each[0]["discarded"] for each in tries.values())
    if broken := sum(not line["repeats"] for line in lines):
        verdict.missed.append(f"{broken} of {len(lines)} episodes do not repeat from their records")
    counted = {seed: line["return"] for seed, each in tries.items() for line in each if not line["discarded"]}
    if discards > VOID * len(tries) or len(counted) < 2:
        verdict.missed.append(f"void: {discards} of {len(tries)} episodes were discarded")
        return verdict
    places = [place for place, seed in enumerate(made["seeds"]) if seed in counted]
    right, synchronous = (np.take(made[name], places) for name in ("right", SYNCHRONOUS))
    real = np.array([*counted.values()])
    verdict.real, verdict.predicted = counted, dict(zip(counted, right.tolist(), strict=True))
    verdict.gain = gain = made["gain"]
    verdict.lost = float(np.mean(synchronous - real)) / gain
    verdict.off, verdict.error = apart(real, right)
    verdict.bar = bar(gain, verdict.error)
    if abs(verdict.off) > verdict.bar:
        words = f"off by {verdict.off / gain:+.1%} of the gain, bar {verdict.bar / gain:.1%}"
        verdict.missed.append(words)
    if verdict.error > (precise := PRECISE.get(cell.world, math.inf)) * gain:
        verdict.missed.append(f"standard error {verdict.error / gain:.1%} of the gain, bar {precise:.1%}")
    for name in required(made):
        off, error = apart(real, np.take(made["wrong"][name], places))
        verdict.wrong[name] = off, abs(off) > bar(gain, error)
        verdict.missed += [] if verdict.wrong[name][1] else [f"the wrong model {name!r} is not refused"]
    return verdict


def bar(gain: float, error: float) -> float:
    """How far a model may be off."""
    return max(SHARE * gain, SURE * error)


def required(made: Mapping[str, Any]) -> list[str]:
    """Wrong models that were far enough off before the runs."""
    return [name for name, errors in made["off"].items() if abs(errors) >= APART]


class Sign(NamedTuple):
    """Two policies that the real runs decide, and by how much the better one was predicted to be better."""

    place: str
    better: str
    worse: str
    real: str
    predicted: float


def signs(place: str, verdicts: Mapping[str, Verdict]) -> list[Sign]:
    """All pairs of policies over a network that are decided, at 5 % for them together (Holm)."""
    seeds = sorted(set.intersection(*(set(each.real) for each in verdicts.values())))
    real, predicted = (
        {name: [getattr(each, which)[seed] for seed in seeds] for name, each in verdicts.items()}
        for which in ("real", "predicted")
    )
    returns = {name: {MEASURED: tuple(values)} for name, values in real.items()}
    pairs = Prediction(tuple(seeds), returns, (0.0,) * len(seeds), "").pairs
    by = {pair: apart(predicted[pair.worse], predicted[pair.better])[0] for pair in pairs if pair.decided}
    return [Sign(place, pair.better, pair.worse, str(pair.difference), off) for pair, off in by.items()]


def compare(
    cells: Sequence[Cell], predictions: Mapping[str, Any], lines: Sequence[Mapping[str, Any]]
) -> dict[str, list[Row]]:
    """The tables of the page, what did not come out first: predictions by cell's name, a line an episode."""
    ours = {cell: [line for line in lines if line["cell"] == [*cell]] for cell in cells}
    verdicts = {cell: judged(cell, predictions[str(cell)], ours[cell]) if str(cell) in predictions else None
                for cell in cells}  # fmt: skip
    missed: list[Row] = [(str(cell), words) for cell, each in verdicts.items() if each for words in each.missed]
    pairs: list[Sign] = []
    for place in dict.fromkeys(cell.place for cell in cells):
        valid = {cell.policy: each for cell, each in verdicts.items() if cell.place == place and each and each.real}
        if valid and max(each.lost for each in valid.values()) < EASY:
            missed.append((place, f"no policy loses {EASY:.0%} of its gain: this network does not count"))
        elif len(valid) > 1:
            pairs += signs(place, valid)
    missed += [(pair.place, f"{pair.better} beats {pair.worse}, predicted otherwise") for pair in pairs
               if pair.predicted <= 0.0]  # fmt: skip
    missed += [(str(cell), NOT_RUN) for cell, each in verdicts.items() if each is None]
    return {
        "missed": [("cell", "what did not come out"), *(missed or [("none", "all came out")])],
        "cells": [
            ("cell", "synchronous", "predicted", "real", "predicted - real, % of gain", "bar, %", "lost, % of gain"),
            *((str(cell), *_figures(predictions.get(str(cell)), verdicts[cell])) for cell in cells),
        ],
        "pairs": [
            ("network", "better in the real runs", "than", "by, real", "by, predicted"),
            *((*pair[:4], f"{pair.predicted:.2f}") for pair in pairs),
        ],
        "wrong": [
            ("cell", "wrong model", "off before the runs, SE", "off by, % of gain", "refused"),
            *(
                (str(cell), name, f"{predictions[str(cell)]['off'][name]:+.1f}", *_refusal(name, verdicts[cell]))
                for cell in cells if str(cell) in predictions for name in required(predictions[str(cell)])
            ),
        ],
        "runs": [
            ("cell", "episodes", "discarded", "repeated bit for bit", "hub late, ms: median", "99 %", "most"),
            *((str(cell), *_course(ours[cell])) for cell in cells),
        ],
    }  # fmt: skip


def _figures(made: Mapping[str, Any] | None, verdict: Verdict | None) -> Row:
    if made is None:
        return NOT_RUN, *[""] * 5
    before = [f"{np.mean(made[name]):.2f}" for name in (SYNCHRONOUS, "right")]
    if verdict is None or not verdict.real:
        return *before, NOT_RUN if verdict is None else "void", *[""] * 3
    off, error, most = (100.0 * x / verdict.gain for x in (verdict.off, verdict.error, verdict.bar))
    real = float(np.mean([*verdict.real.values()]))
    return *before, f"{real:.2f}", f"{off:+.1f} ± {error:.1f}", f"{most:.1f}", f"{100.0 * verdict.lost:.0f}"


def _refusal(name: str, verdict: Verdict | None) -> Row:
    if verdict is None or not verdict.real:
        return NOT_RUN if verdict is None else "void", ""
    off, refused = verdict.wrong[name]
    return f"{100.0 * off / verdict.gain:+.1f}", "yes" if refused else "no"


def _course(lines: Sequence[Mapping[str, Any]]) -> Row:
    if not lines:
        return "0", *[""] * 5
    median, high, most = (1e3 * np.array([line["late"][name] for line in lines]) for name in ("median", "p99", "max"))
    counts = (len(lines), *(sum(line[name] for line in lines) for name in ("discarded", "repeats")))
    return *map(str, counts), *(f"{ms:.2f}" for ms in (np.median(median), np.median(high), most.max()))


def lines_of(table: Sequence[Row]) -> str:
    """Markdown."""
    head, *rows = table
    rules = ["---", *["---:" if len(head) > 2 else "---"] * (len(head) - 1)]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (head, rules, *rows))


def with_tables(page: str, tables: Mapping[str, Sequence[Row]]) -> str:
    """The page whose tables, between `% reality NAME` and `% end of reality`, are these."""
    return re.sub(
        r"^% reality (\w+)\n.*?^% end of reality$",
        lambda at: f"% reality {at[1]}\n\n{lines_of(tables[at[1]])}\n\n% end of reality",
        page,
        flags=re.MULTILINE | re.DOTALL,
    )
