"""What recipes that train under a network report: returns, the gap, the share of it that training under it closes."""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from heron_env.files import write, write_all
from heron_env.lab import Estimate, Intervals, figure_style

BARE, UNDER = "without a network", "under the network"
"""Where a policy is played, and where it was trained."""
POLICIES: Final = {BARE: "trained without a network", UNDER: "trained under it"}
SEEDS: Final = range(5)
CASES: Final = range(2_000_000, 2_000_050)
"""Seeds of the episodes that are played: of the environment and of the network, the same for all policies."""
CHOICE: Final = 100
"""Seed of the training by which a network is chosen; it is played in cases from 1,000,000 on."""
Study = dict[str, Any]


def once(file: Path, settings: Mapping[str, Any], make: Callable[[], Mapping[str, Any]]) -> dict[str, Any]:
    """What `file` holds, or what `make` makes, which is kept there: a run that was killed goes on where it was.

    Raises SystemExit where the file is of other settings.
    """
    if not file.is_file():
        file.parent.mkdir(parents=True, exist_ok=True)
        write(file, json.dumps({"settings": settings, **make()}) + "\n")
    kept: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    if kept["settings"] != settings:
        raise SystemExit(f"{file} was trained with {kept['settings']}, not {settings}: give another folder as --runs")
    return kept


def intervals(study: Study) -> Intervals:
    """Over training seeds and cases."""
    return Intervals(range(study["cases"][1]))


def findings(study: Study) -> dict[str, Estimate]:
    """Of the two trained policies.

    `lost` by the one trained without a network, `left` to the one trained under it (each against itself without a
    network), `won` by the latter over the former there, what it `pays` without a network, the share `closed` of `lost`.
    """
    of, returns = intervals(study), study["returns"]
    plain, trained = (
        {where: np.array(returns[policy][where]) for where in (BARE, UNDER)} for policy in POLICIES.values()
    )
    return {
        "lost": of.mean(plain[BARE] - plain[UNDER]),
        "left": of.mean(trained[BARE] - trained[UNDER]),
        "won": of.difference(trained[UNDER], plain[UNDER]),
        "pays": of.difference(plain[BARE], trained[BARE]),
        "closed": of.closed(trained[UNDER], plain[UNDER], plain[BARE]),
    }


FINDINGS: Final = {
    "lost": "loss under the network, trained without it",
    "left": "loss under the network, trained under it",
    "won": "gain of training under the network, there",
    "pays": "its price when there is no network",
    "closed": "share of the loss won back",
}


def table(studies: Sequence[Study]) -> str:
    """Markdown: what each policy earns in both places, and the findings."""
    lines = [f"| | {BARE} | {UNDER} |", "|---|---:|---:|"]
    for study in studies:
        for policy, played in study["returns"].items():
            bare, under = (intervals(study).mean(played[where]) for where in (BARE, UNDER))
            lines.append(f"| {study['env']}, {policy} | {bare} | {under} |")
    lines += ["", f"| | {' | '.join(study['env'] for study in studies)} |", "|---|" + "---:|" * len(studies)]
    found = [findings(study) for study in studies]
    lines += [
        f"| {words} | {' | '.join(_told(one[name], name) for one in found)} |" for name, words in FINDINGS.items()
    ]
    return "\n".join(lines) + "\n"


def _told(estimate: Estimate, name: str) -> str:
    if name != "closed":
        return str(estimate)
    return estimate.percent() if estimate.known else "no interval: the gap's own reaches 0"


def figure(studies: Sequence[Study]) -> bytes:
    """A panel for each environment: every policy with a dot where there is no network, and one under it."""
    with figure_style.house_style():
        most = max(len(study["returns"]) for study in studies)
        drawn, panels = figure_style.blank(0.55 + (0.75 + 0.3 * most) * len(studies), rows=len(studies))
        for axes, study in zip(panels, studies, strict=True):
            of, returns = intervals(study), study["returns"]
            for where, colour, shift in ((BARE, figure_style.BLUE, 0.12), (UNDER, figure_style.VERMILION, -0.12)):
                found = [of.mean(played[where]) for played in returns.values()]
                heights = [shift - row for row in range(len(found))]
                ends = [[x.value - x.low for x in found], [x.high - x.value for x in found]]
                axes.errorbar([x.value for x in found], heights, xerr=ends, fmt="o", markersize=5, color=colour)
                axes.plot([], [], "o", color=colour, label=f"played {where}")
            axes.set_yticks([-row for row in range(len(returns))], [*returns])
            axes.set_ylim(0.5 - len(returns), 0.5)
            axes.set_title(f"{study['env']}: return of an episode")
        panels[-1].legend(loc="upper center", bbox_to_anchor=(0.3, -0.16), ncols=2, frameon=False)
        return figure_style.to_svg(drawn, text=True)


def write_report(folder: Path, name: str, studies: Mapping[str, Study]) -> str:
    """NAME.json, NAME.md and NAME.svg; the tables."""
    text = table([*studies.values()])
    kept = json.dumps(studies) + "\n"
    folder.mkdir(parents=True, exist_ok=True)
    write_all(
        {
            folder / f"{name}.json": kept,
            folder / f"{name}.md": text,
            folder / f"{name}.svg": figure([*studies.values()]),
        }
    )
    return text
