"""What do late messages and late actions cost, and how good could a policy be? EnergyManagement on held-out days.

    python training/honest_gap.py             # train, evaluate, report; killed and run again, it goes on
    python training/honest_gap.py --report    # only the tables and figures of what is there

Every episode is kept in --runs and never repeated, those of finished sweeps in --out, too, as one file (episodes.py;
again.py measures policies again). Policies: the strongest rule, PPO
that corrects MPC (five training seeds, pooled; in the shipped world alone), and MPC, each battery for itself. All were
tuned on validation days without a network, and each is measured against itself; which is best under a network, where
each would be tuned for it, is another question (results/remedies/). What is reported are test days. Loss is the gap to
the synchronous clock as a share of what the policy gains there over doing nothing, paired by day. Intervals are 95 %,
over days, for PPO over training seeds and days. The figures that are kept are of Stable-Baselines3's PPO inside
`train`, which heron_env had until version 0.2 (commit 5762c217); this command trains with our own.

Four worlds tell what the network costs from what the measurement costs:

    shipped         telemetry every 10 s, a battery reads its own rows by wire
    no telemetry    reports leave once a control step (60 s), with the step's end
    no local rows   a battery's own meter comes by message, like its zone's
    neither         both
"""

import argparse
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import episodes

from heron_env import Baseline, Condition, ScheduleConfig, Sweep, train
from heron_env.errors import RunFolderError
from heron_env.files import write
from heron_env.lab import IDEAL, SYNC, RunFolder, SweepResult, along
from heron_env.lab.benchmark import NOTHING, RANDOM
from heron_env.lab.figure_style import GREY, SERIES, WIDTH, house_style, to_svg
from heron_env.lab.sweep.conditions import unique
from heron_env.worlds.energy_management import MPC, STRONGEST, Central

ENV: Final = "heron/EnergyManagement-v1"
TRAINED, CENTRAL, OPTIMUM, REFERENCES = "trained", "MPC, central", "perfect foresight", "references"
SELF_CONSUMPTION = "self-consumption"
DELAYS: Final = (0.0, 0.001, 1.0, 2.0, 3.0, 4.0, 6.0, 10.0, 15.0, 30.0, 60.0, 120.0)
"""s, of messages and of actions."""
SHIPPED_DELAYS: Final = unique([IDEAL, *along(msg_delay=DELAYS), *along(act_delay=DELAYS)])
NETWORKS: Final = {
    "messages 3 s, 10 % jitter": Condition(msg_delay=3.0, jitter=0.1),
    "messages 15 s": Condition(msg_delay=15.0),
    "actions 60 s late": Condition(act_delay=60.0),
}
SHIPPED: Final = "shipped"
WORLDS: Final[Mapping[str, Mapping[str, Any]]] = {
    SHIPPED: {},
    "no telemetry": {"report_interval": 60.0},
    "no local rows": {"schedule": ScheduleConfig(own_rows="proxy")},
    "neither": {"report_interval": 60.0, "schedule": ScheduleConfig(own_rows="proxy")},
}


@dataclass(frozen=True)
class Study:
    """What is measured, and where it is kept."""

    runs: Path = Path("runs/honest_gap")
    out: Path = Path("training/results/honest_gap")
    seeds: tuple[int, ...] = (0, 1, 2, 3, 4)
    steps: int = 1_200_000
    days: int = 20
    processes: int = 2

    def train(self) -> list[str]:
        """The run folders, to be pooled as one policy; the seeds that are missing are trained."""
        folders = {seed: self.runs / f"seed{seed}" for seed in self.seeds}
        missing = [seed for seed, folder in folders.items() if not _finished(folder, self.steps)]
        with ProcessPoolExecutor(self.processes) as pool:
            folders_of = [str(folders[seed]) for seed in missing]
            for line in pool.map(_trained, folders_of, missing, [self.steps] * len(missing)):
                print(line, flush=True)
        return [str(folder) for folder in folders.values()]

    def sweeps(self) -> Iterator[tuple[str, Sweep]]:
        """By name: rules first, which need no training."""
        rules = {STRONGEST: Baseline(STRONGEST), MPC: Baseline(MPC)}
        for world, options in WORLDS.items():
            conditions = SHIPPED_DELAYS if world == SHIPPED else along(msg_delay=DELAYS)
            yield world, Sweep.of(ENV, rules, conditions, cases=self.days, options=options)
        trained = self.train()
        yield TRAINED, Sweep.of(ENV, {TRAINED: trained}, SHIPPED_DELAYS, cases=self.days)
        sync_only: dict[str, Any] = {SELF_CONSUMPTION: Baseline(SELF_CONSUMPTION), CENTRAL: Central()}
        beside = {name: Baseline(name) for name in (NOTHING, RANDOM)}
        policies = {TRAINED: trained, **rules, **beside, **sync_only}
        yield REFERENCES, Sweep.of(ENV, policies, [*NETWORKS.values()], cases=self.days, sync_only=[*sync_only])

    def measured(self) -> dict[str, SweepResult]:
        """All sweeps; what is missing is run."""
        for name, sweep in self.sweeps():
            print(f"{name}: {len(sweep.items())} episodes", flush=True)
            folder = self.runs / "sweeps" / _kept_as(name)
            sweep.run(folder, processes=self.processes, progress=_tell)
            episodes.keep(self.out, {_kept_as(name): folder})
        return self.kept()

    def kept(self) -> dict[str, SweepResult]:
        """The sweeps that are there, with what was measured again."""
        there = episodes.names(self.out)
        wanted = {name: _kept_as(name) for name in (*WORLDS, TRAINED, REFERENCES)}
        return {name: episodes.read(self.out, folder) for name, folder in wanted.items() if folder in there}


def _kept_as(name: str) -> str:
    return name.replace(" ", "-")


def _finished(folder: Path, steps: int) -> bool:
    try:
        return RunFolder.open(folder).config.transitions >= steps
    except RunFolderError:
        return False


def _trained(folder: str, seed: int, steps: int) -> str:
    """Train one seed; what it took."""
    config = train(ENV, folder, total_steps=steps, seed=seed, validations=10, progress=False).config
    return f"{folder}: {config.transitions:,} transitions in {config.seconds} s, validation {config.validation}"


def _tell(progress: Any) -> None:
    if progress.done % 100 == 0:
        print(f"  {progress.done} of {progress.total}, {progress.seconds_left or 0:.0f} s left", flush=True)


# Tables


Results = Mapping[str, SweepResult]
"""By policy, or by world."""


def loss_table(results: Results, conditions: Sequence[Condition]) -> Iterator[str]:
    """Markdown: loss of each policy under each condition, and what each condition takes beyond the one before."""
    names = list(results)
    yield f"| | {' | '.join(f'{name}: loss | beyond the row above' for name in names)} |"
    yield f"|---|{'---:|---:|' * len(names)}"
    before = SYNC
    for condition in conditions:
        cells = []
        for name in names:
            result = results[name]
            cells += [result.point(name, condition).lost.percent(), result.lost_step(name, before, condition).percent()]
        yield f"| {condition.words} | {' | '.join(cells)} |"
        before = condition


def reference_table(result: SweepResult) -> Iterator[str]:
    """Markdown: returns of all policies at sync and under three networks, and paired differences to the rule."""
    conditions = {"synchronous clock": SYNC, **NETWORKS}
    yield f"| | {' | '.join(conditions)} |"
    yield f"|---|{'---:|' * len(conditions)}"
    for name in (NOTHING, RANDOM, SELF_CONSUMPTION, STRONGEST, TRAINED, MPC, CENTRAL):
        cells = []
        for condition in conditions.values():
            if condition != SYNC and name not in result.policies:
                cells.append("")
                continue
            cell = str(result.point(name, condition).mean)
            if name != STRONGEST:
                cell += f"; {result.difference(name, STRONGEST, condition)} to the rule"
            cells.append(cell)
        yield f"| {name} | {' | '.join(cells)} |"
    optima = [case.optimum for case in result.sweep.cases]
    known = [value for value in optima if value is not None]
    if known:
        share = f"of {len(known)} of {len(optima)} days"
        yield f"| {OPTIMUM}, {share} | {sum(known) / len(known):.2f} |{' |' * (len(conditions) - 1)}"


def pair_table(result: SweepResult) -> Iterator[str]:
    """Markdown: paired differences on the synchronous clock that the text speaks of."""
    yield "| on the synchronous clock, EUR a day | |"
    yield "|---|---:|"
    for ours, theirs in ((TRAINED, STRONGEST), (TRAINED, MPC), (MPC, STRONGEST), (CENTRAL, MPC), (CENTRAL, TRAINED)):
        yield f"| {ours} - {theirs} | {result.difference(ours, theirs)} |"


def report(found: Results) -> str:
    """The whole report of what is there, as Markdown."""
    first = next(iter(found.values()))
    delays = {**_by_policy(found[SHIPPED]), **(_by_policy(found[TRAINED]) if TRAINED in found else {})}
    same = all(result.point(name, IDEAL).identical for name, result in delays.items())
    lines = [
        "# The honest gap",
        "",
        f"Made by `python training/honest_gap.py`: {ENV}, {len(first.sweep.cases)} test days; returns of the team in",
        "EUR a day. 95 % intervals over days; where training seeds are pooled (trained), over seeds and days. Loss:",
        "share of the gain over doing nothing on the synchronous clock. Every episode: episodes.csv.gz.",
        "",
        f"Under an ideal network, every run equals the synchronous run bit for bit: {same}.",
    ]
    if REFERENCES in found:
        lines += ["", "## How good could a policy be?", "", *reference_table(found[REFERENCES])]
        lines += ["", *pair_table(found[REFERENCES])]
    lines += ["", "## Late messages", "", *loss_table(delays, along(msg_delay=DELAYS))]
    lines += ["", "## Late actions", "", *loss_table(delays, along(act_delay=DELAYS))]
    for world, result in found.items():
        if world in WORLDS and world != SHIPPED:
            lines += ["", f"## Late messages, {world}", "", *loss_table(_by_policy(result), along(msg_delay=DELAYS))]
    notes = {note for result in found.values() for point in result.points for note in point.notes}
    lines += ["", "What the event clock notes about these delays:", "", *(f"- {note}" for note in sorted(notes))]
    return "\n".join(lines) + "\n"


def _by_policy(result: SweepResult) -> dict[str, SweepResult]:
    return dict.fromkeys(result.policies, result)


# Figures


def delay_figure(found: Results) -> Any:
    """Loss of all policies in the shipped world against message delay and action delay."""
    panels = {"messages late by, s": "msg_delay", "actions late by, s": "act_delay"}
    delays = {**_by_policy(found[SHIPPED]), **(_by_policy(found[TRAINED]) if TRAINED in found else {})}
    with house_style():
        from matplotlib.figure import Figure

        figure = Figure(figsize=(WIDTH * 1.35, 3.5), layout="constrained")
        for axes, (label, cause) in zip(figure.subplots(1, 2, sharey=True), panels.items(), strict=True):
            _draw(axes, {name: [(x, p.lost) for x, p in r.along(name, cause)] for name, r in delays.items()})
            axes.set_xlabel(label)
        figure.axes[0].set_ylabel("loss, % of the gain over doing nothing")
        figure.axes[0].legend(frameon=False, loc="upper left")
        return figure


def worlds_figure(found: Results) -> Any:
    """Loss of the rule and of MPC against message delay, in each world."""
    with house_style():
        from matplotlib.figure import Figure

        figure = Figure(figsize=(WIDTH * 1.35, 3.5), layout="constrained")
        for axes, name in zip(figure.subplots(1, 2), (STRONGEST, MPC), strict=True):
            _draw(axes, {w: [(x, p.lost) for x, p in found[w].along(name, "msg_delay")] for w in WORLDS if w in found})
            axes.set_xlabel("messages late by, s")
            axes.set_title(name)
        figure.axes[0].set_ylabel("loss, % of the gain over doing nothing")
        figure.axes[0].legend(frameon=False, loc="upper left")
        return figure


def _draw(axes: Any, lines: Mapping[str, Sequence[tuple[float, Any]]]) -> None:
    """Lines with bands, on an axis that is linear below 1 s and logarithmic above."""
    for (name, found), colour in zip(lines.items(), SERIES, strict=False):
        x = [amount for amount, _ in found]
        axes.plot(x, [100.0 * e.value for _, e in found], color=colour, marker="o", markersize=3.0, label=name)
        low, high = ([100.0 * getattr(e, end) for _, e in found] for end in ("low", "high"))
        axes.fill_between(x, low, high, color=colour, alpha=0.12, linewidth=0.0)
    axes.axhline(0.0, color=GREY, linewidth=0.8)
    axes.set_xscale("symlog", linthresh=1.0, linscale=0.6)
    axes.set_xticks([0, 1, 3, 10, 30, 120], ["0", "1", "3", "10", "30", "120"])
    axes.set_xlim(-0.1, 140.0)
    axes.minorticks_off()


def main() -> None:
    """Train, evaluate, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=Path, default=Study.runs, help="run folders, journals of sweeps")
    parser.add_argument("--out", type=Path, default=Study.out, help="tables, figures, every episode")
    parser.add_argument("--seeds", type=int, nargs="+", default=list(Study.seeds))
    parser.add_argument("--steps", type=int, default=Study.steps, help="transitions of each training seed")
    parser.add_argument("--days", type=int, default=Study.days, help="held-out test days")
    parser.add_argument("--processes", type=int, default=Study.processes)
    parser.add_argument("--report", action="store_true", help="only tables and figures of the sweeps that are there")
    given = parser.parse_args()
    study = Study(given.runs, given.out, tuple(given.seeds), given.steps, given.days, given.processes)
    found = study.kept() if given.report else study.measured()
    text = report(found)
    write(study.out / "table.md", text)
    write(study.out / "delays.svg", to_svg(delay_figure(found), text=True))
    write(study.out / "worlds.svg", to_svg(worlds_figure(found), text=True))
    print(text)


if __name__ == "__main__":
    main()
