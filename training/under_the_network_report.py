"""Statistics, table and figure of the study of training under the network: see under_the_network.py."""

import csv
import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import packed
import tuning
from numpy.typing import NDArray

from heron_env.errors import DataError
from heron_env.files import write_all
from heron_env.lab import Estimate, Intervals
from heron_env.lab.figure_style import BLUE, GREY, INK, VERMILION, house_style, to_svg
from heron_env.worlds.energy_management import TunedRule

NAIVE, DELAYS = "synchronous", "training delays"
REFERENCES = ("rule", "rule, tuned", "rule, smoothed", "MPC", "MPC, tuned", "MPC, smoothed")
COLUMNS = (
    "policy", "seeds", "return, sync", "return, network", "own gap", "more than PPO trained synchronously, network",
    "share of its gap closed", "more than {}, network", "cost at sync",
)  # fmt: skip
INTRO = """# Trained under the network, or not

Made by `python training/under_the_network.py`: {days} test days of {env_id}, returns of the team in EUR a day; a
policy that was trained: means over training seeds, with the weights that earned most on validation days.
In brackets 95 % t intervals over seeds and days, of rules and MPC over days alone. "Sync": on the synchronous clock;
"network": on the event clock, under what the heading says. Own gap: what the network takes from the policy itself.
Share of the gap closed: of the gap of PPO trained synchronously, (J - J_naive) / (J_naive(sync) - J_naive), both J
under the network. Cost at sync: J_naive(sync) - J(sync). "Tuned" and "smoothed": constants that earned most on
{tuned} validation days under the network; smoothed goes only a share of the way to the set-point that it wants.
Compared with is the reference that earned most on those days."""
LEARNED = (
    "{runs} trainings of {updates} updates, {lanes} days in each, took {hours:.1f} hours in all, on one core each. The "
    "last validation is the best in {last} of them. What the last quarter of the training brought there, EUR a day: "
    "{quarter}.\n"
)
WHOLE_STEPS = (
    "Here TrainingDelays are the network itself, bit for bit (tests/laws/test_training_delays.py): "
    "to train with them is to train under the network.\n"
)
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Line:
    """One policy in one cell, EUR a day; shares as fractions.

    Attributes:
        gap: its own, J(sync) - J(network).
        more: than the naive PPO under the network; None: it is that itself.
        share: of the naive PPO's gap that is closed; nan where there is none to close; None: it is that itself.
        over_reference: more than the strongest reference under the network; None: it is that itself.
        cost: of the naive PPO's return on the synchronous clock.
    """

    policy: str
    runs: int
    sync: Estimate
    there: Estimate
    gap: Estimate
    more: Estimate | None
    share: Estimate | None
    over_reference: Estimate | None
    cost: Estimate | None


def lines(table: Mapping[str, Mapping[str, Any]], best: str) -> Iterator[Line]:
    """Of the policies of a cell, compared with this reference: returns `[runs][days]` by policy and clock.

    Seeds of two trainings have no pairs: a difference pairs days, and takes both spreads over seeds.
    """
    returns = {name: {clock: np.array(r) for clock, r in by_clock.items()} for name, by_clock in table.items()}
    make = Intervals(range(returns[NAIVE]["sync"].shape[1]))
    naive = returns[NAIVE]
    for name, own in returns.items():
        yield Line(
            name, len(own["sync"]), make.mean(own["sync"]), make.mean(own["network"]),
            gap=make.mean(own["sync"] - own["network"]),
            more=make.difference(own["network"], naive["network"]) if name != NAIVE else None,
            share=make.closed(own["network"], naive["network"], naive["sync"]) if name != NAIVE else None,
            over_reference=make.difference(own["network"], returns[best]["network"]) if name != best else None,
            cost=make.difference(naive["sync"], own["sync"]) if name != NAIVE else None,
        )  # fmt: skip


def row(name: str, found: Mapping[str, Any]) -> str:
    """The row of a reference with the constants that `tuning.tuned` found."""
    return name if tuning.SMOOTHING in found["best"] else f"{name}, tuned"


def reference(tuned: Mapping[str, Any]) -> str:
    """The row of the reference that earned most on validation days, under the network."""
    name = max(tuned, key=lambda one: tuned[one]["best"]["return"])
    return row(name, tuned[name])


def markdown(data: Mapping[str, Any]) -> str:
    """The text of study.md."""
    text = [INTRO.format(days=data["days"], env_id=data["env_id"], tuned=tuning.DAYS)]
    for cell, table in data["returns"].items():
        best = reference(data["tuned"][cell])
        text += [
            f"\n## {data['cells'][cell]['title'].capitalize()}\n",
            *(f"{name}: {_constants(found)}.\n" for name, found in data["tuned"][cell].items()),
            *(f"{line}\n" for line in _recorded(data["recorded"][cell])),
            *([] if DELAYS in table or cell.split("/")[0] != "late" else [WHOLE_STEPS]),
            _learned(data["cells"][cell], data["training"][cell]),
            f"| {' | '.join(COLUMNS).format(best)} |",
            f"|---|{'---:|' * (len(COLUMNS) - 1)}",
        ]
        text += [f"| {' | '.join(_cells(line))} |" for line in lines(table, best)]
        text += _late(data["late"].get(cell, {}))
    return "\n".join(text) + "\n"


def _learned(how: Mapping[str, Any], training: list[dict[str, Any]]) -> str:
    """How long it was trained, and whether that was enough."""
    earned = [[p.get("return_under_schedule", p["validation_return"]) for p in run["curve"]] for run in training]
    gained: dict[str, list[float]] = {}
    for run, curve in zip(training, earned, strict=True):
        gained.setdefault(run["arm"], []).append(curve[-1] - curve[-1 - len(curve) // 4])
    return LEARNED.format(
        runs=len(training), updates=how["updates"], lanes=how["settings"]["num_envs"],
        hours=sum(run["seconds"] for run in training) / 3600.0,
        last=sum(curve[-1] == max(curve) for curve in earned),
        quarter="; ".join(f"{arm} {np.mean(found):.2f}" for arm, found in gained.items()),
    )  # fmt: skip


def _late(table: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """What policies earn where messages are late by other times than they were trained or tuned for."""
    if not table:
        return []
    delays = list(next(iter(table.values())))
    make = Intervals(range(len(next(iter(table.values()))[delays[0]][0])))
    rows = [[name, *(str(make.mean(np.array(by_delay[d]))) for d in delays)] for name, by_delay in table.items()]
    return [
        "\nThe same policies where messages are late by other times:\n",
        f"| return, messages late by | {' | '.join(f'{d} s' for d in delays)} |",
        f"|---|{'---:|' * len(delays)}",
        *(f"| {' | '.join(cells)} |" for cells in rows),
    ]


def _constants(found: Mapping[str, Any]) -> str:
    """Those that were chosen, or that are not what the baseline has anyhow."""
    chosen, usual = tuning.constants(found), asdict(TunedRule.of(found["baseline"], {}).tuning)
    told = [name for name in chosen if chosen[name] != usual.get(name) or len({x[name] for x in found["tried"]}) > 1]
    return f"{', '.join(f'{name} {chosen[name]:g}' for name in told)}, of {len(found['tried'])} tried"


def _recorded(versions: Mapping[str, str]) -> Iterator[str]:
    """Which rows are of which version, where there are several."""
    for version in dict.fromkeys(versions.values()) if len(set(versions.values())) > 1 else ():
        yield f"By heron_env {version}: {'; '.join(name for name, own in versions.items() if own == version)}."


def _cells(line: Line) -> list[str]:
    share = "" if line.share is None else line.share.percent() if line.share.known else "no gap to close"
    estimates = (line.sync, line.there, line.gap, line.more, line.over_reference, line.cost)
    sync, there, gap, more, over, cost = ("" if one is None else str(one) for one in estimates)
    return [line.policy, str(line.runs), sync, there, gap, more, share, over, cost]


def figure(data: Mapping[str, Any]) -> bytes:
    """SVG: what each policy earns more under the network than PPO that was trained without, a panel for each cell."""
    from matplotlib.figure import Figure

    cells = {
        cell: [line for line in lines(table, reference(data["tuned"][cell])) if line.more is not None]
        for cell, table in data["returns"].items()
    }
    names = list(dict.fromkeys(line.policy for found in cells.values() for line in found))
    names.sort(key=lambda name: name not in REFERENCES)
    columns = min(len(cells), 2)
    rows = -(-len(cells) // columns)
    with house_style():
        drawn = Figure(figsize=(1.6 + 3.6 * columns, rows * (0.9 + 0.3 * len(names))), layout="constrained")
        panels = drawn.subplots(rows, columns, sharey=True, squeeze=False).flat
        for (cell, found), axes in zip(cells.items(), panels, strict=False):
            _panel(axes, found, names)
            axes.set_title(data["cells"][cell]["title"].replace(", ", ",\n"))
        for axes in panels:
            axes.set_axis_off()
        drawn.supxlabel("EUR a day more, under the network, than PPO trained on the synchronous clock", fontsize=10.0)
        return to_svg(drawn, text=True)


def _panel(axes: Any, found: list[Line], names: list[str]) -> None:
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.axvline(0.0, color=GREY, linewidth=1.2)
    for line in found:
        more = line.more
        assert more is not None
        y, colour = names.index(line.policy), VERMILION if line.policy in REFERENCES else BLUE
        axes.plot([more.low, more.high], [y, y], color=colour, linewidth=2.2, solid_capstyle="round")
        axes.plot([more.value], [y], "o", color=colour, markersize=5.5)
        axes.annotate(
            f"{more.value:+.1f}", (more.value, y), textcoords="offset points", xytext=(0, 5), ha="center",
            fontsize=8.0, color=INK,
        )  # fmt: skip


def curve(file: Path) -> list[dict[str, float]]:
    """The learning curve of a run's first group: transitions and returns on validation days."""
    with file.open(newline="", encoding="utf-8") as told:
        rows = list(csv.DictReader(told))
    wanted = ("transitions", "validation_return", "return_under_schedule")
    first = [row for row in rows if row["group"] == rows[0]["group"]]
    return [{name: float(row[name]) for name in wanted if row.get(name)} for row in first]


def plain(settings: Any) -> dict[str, Any]:
    """Of a dataclass for JSON."""
    return {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(settings).items()}


def write(out: Path, data: Mapping[str, Any]) -> str:
    """study.json.gz, study.md, study.svg; the text."""
    text = markdown(data)
    results: dict[Path, str | bytes] = {
        out / "study.json.gz": packed.dumped(data),
        out / "study.md": text,
        out / "study.svg": figure(data),
    }
    out.mkdir(parents=True, exist_ok=True)
    write_all(results)
    return text


SAME = ("schema_version", "env_id", "days", "random_networks")


def merged(out: Path, data: Mapping[str, Any]) -> dict[str, Any]:
    """What was measured now, and from study.json.gz the other rows. Raises DataError where they do not compare."""
    file = out / "study.json.gz"
    if not file.is_file():
        return dict(data)
    kept, new = packed.load(file), json.loads(json.dumps(data))
    other = [name for name in SAME if kept[name] != new[name]]
    other += [cell for cell, how in new["cells"].items() if kept["cells"].get(cell, how) != how]
    if other:
        raise DataError(f"{file} was measured with other {', '.join(other)}: give another --out, or run all arms anew")
    merged = {**new, "cells": {**kept["cells"], **new["cells"]}, "tuned": {**kept["tuned"], **new["tuned"]}}
    for what in ("returns", "recorded", "late"):
        both = {**kept[what], **new[what]}
        merged[what] = {cell: {**kept[what].get(cell, {}), **new[what].get(cell, {})} for cell in both}
    merged["training"] = kept["training"] | {
        cell: [*(one for one in kept["training"].get(cell, []) if one["arm"] not in new["returns"][cell]), *runs]
        for cell, runs in new["training"].items()
    }
    return merged


def rewrite(out: Path) -> str:
    """Text and figure anew, of what study.json.gz keeps. Raises DataError."""
    file = out / "study.json.gz"
    if not file.is_file():
        raise DataError(f"{file}: there is none; run the study first, or give its --out")
    return write(out, packed.load(file))
