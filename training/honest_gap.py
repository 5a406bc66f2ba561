"""What do late messages and late actions cost, and how good could a policy be? EnergyManagement on held-out days.

    python training/honest_gap.py                    # train, evaluate, report; killed and run again, it goes on

Trainings and sweeps are kept in --work and never repeated. Policies: the strongest rule, PPO that corrects it (five
training seeds, pooled; in the shipped world alone), and MPC, each battery for itself. All were tuned on validation
days; what is reported are test days. Loss is the gap to the synchronous clock as a share of what the policy gains there
over doing nothing, paired by day. Intervals are 95 %, over days, for PPO over training seeds and days.

Four worlds tell what the network costs from what the measurement costs:

    shipped         telemetry every 10 s, a battery reads its own rows by wire
    no telemetry    reports leave once a control step (60 s), with the step's end
    no local rows   a battery's own meter comes by message, like its zone's
    neither         both
"""

import argparse
import json
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from heron_env.domains.energy_management.central import CentralMPC

from heron_env import ScheduleConfig, make
from heron_env.domains.energy_management.baselines import MPC, STRONGEST
from heron_env.errors import RunFolderError
from heron_env.evaluation.benchmark import NOTHING, RANDOM
from heron_env.evaluation.figure_style import GREY, SERIES, WIDTH, house_style, to_svg
from heron_env.evaluation.gap.axes import along, unique
from heron_env.evaluation.gap.conditions import IDEAL, SYNC, Condition
from heron_env.evaluation.gap.results import SweepResult
from heron_env.evaluation.gap.sweep import Sweep
from heron_env.evaluation.policies import Baseline
from heron_env.evaluation.runs import RunFolder, versions
from heron_env.learning.ppo import train

ENV: Final = "heron/EnergyManagement-v1"
SCHEMA: Final = 1
TRAINED, CENTRAL, OPTIMUM = "trained", "MPC, central", "perfect foresight"
DELAYS: Final = (0.0, 0.001, 1.0, 2.0, 3.0, 4.0, 6.0, 10.0, 15.0, 30.0, 60.0, 120.0)
"""s, of messages and of actions."""
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

    work: Path
    seeds: tuple[int, ...] = (0, 1, 2, 3, 4)
    steps: int = 3_000_000
    days: int = 20
    processes: int = 2

    def folder(self, seed: int) -> Path:
        """The run folder of a training seed."""
        return self.work / f"seed{seed}"

    def train(self) -> None:
        """Train the seeds that are missing."""
        missing = [seed for seed in self.seeds if not _finished(self.folder(seed), self.steps)]
        with ProcessPoolExecutor(self.processes) as pool:
            for line in pool.map(_trained, [str(self.folder(seed)) for seed in missing], missing, [self.steps] * 99):
                print(line, flush=True)

    def sweep(self, world: str) -> Sweep:
        """One world's sweep; the shipped one has the trained policies and all delays."""
        policies: dict[str, Any] = {STRONGEST: Baseline(STRONGEST), MPC: Baseline(MPC)}
        if world != SHIPPED:
            return Sweep.of(ENV, policies, along(msg_delay=DELAYS), cases=self.days, options=WORLDS[world])
        conditions = unique([IDEAL, *along(msg_delay=DELAYS), *along(act_delay=DELAYS)])
        return Sweep.of(ENV, {TRAINED: self.runs, **policies}, conditions, cases=self.days)

    def references(self) -> Sweep:
        """Everything there is to be compared with, on the synchronous clock and under three networks."""
        sync_only: dict[str, Any] = {"self-consumption": Baseline("self-consumption"), CENTRAL: CentralMPC()}
        names = (NOTHING, RANDOM, STRONGEST, MPC)
        policies = {TRAINED: self.runs, **{name: Baseline(name) for name in names}, **sync_only}
        return Sweep.of(ENV, policies, list(NETWORKS.values()), cases=self.days, sync_only=list(sync_only))

    @property
    def runs(self) -> list[str]:
        """The run folders, to be pooled as one policy."""
        return [str(self.folder(seed)) for seed in self.seeds]

    def ran(self, name: str, sweep: Sweep) -> SweepResult:
        """A sweep's result; what is missing is run."""
        print(f"{name}: {len(sweep.items())} episodes", flush=True)
        return sweep.run(self.work / name.replace(" ", "-"), processes=self.processes, progress=_tell)


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


def loss_table(result: SweepResult, conditions: Sequence[Condition]) -> Iterator[str]:
    """Markdown: loss of each policy under each condition, and what each condition takes beyond the one before."""
    names = [name for name in (STRONGEST, TRAINED, MPC) if name in result.policies]
    yield f"| | {' | '.join(f'{name}: loss | beyond the row above' for name in names)} |"
    yield f"|---|{'---:|---:|' * len(names)}"
    before = SYNC
    for condition in conditions:
        cells = []
        for name in names:
            cells += [result.point(name, condition).lost.percent(), result.lost_step(name, before, condition).percent()]
        yield f"| {condition.words} | {' | '.join(cells)} |"
        before = condition


def reference_table(result: SweepResult) -> Iterator[str]:
    """Markdown: returns of all policies at sync and under three networks, and paired differences to the rule."""
    conditions = {"synchronous clock": SYNC, **NETWORKS}
    yield f"| | {' | '.join(conditions)} |"
    yield f"|---|{'---:|' * len(conditions)}"
    for name in (NOTHING, RANDOM, "self-consumption", STRONGEST, TRAINED, MPC, CENTRAL):
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


def report(results: Mapping[str, SweepResult], references: SweepResult, steps: int) -> str:
    """The whole report as Markdown."""
    shipped = results[SHIPPED]
    same = all(shipped.point(name, IDEAL).identical for name in shipped.policies)
    lines = [
        "# The honest gap",
        "",
        f"`python training/honest_gap.py`: {ENV}, {len(shipped.sweep.cases)} test days; trained: PPO that corrects the "
        f"rule, {len(shipped.sweep.members(TRAINED))} training seeds pooled, {steps:,} transitions each. Mean returns "
        "of the team in EUR a day. 95 % intervals: over days; where training seeds are pooled, over seeds and days.",
        "",
        f"Event-driven with nothing wrong, every run equals its synchronous twin bit for bit: {same}.",
        "",
        "## How good could a policy be?",
        "",
        *reference_table(references),
        "",
        *pair_table(references),
        "",
        "## Late messages",
        "",
        *loss_table(shipped, along(msg_delay=DELAYS)),
        "",
        "## Late actions",
        "",
        *loss_table(shipped, along(act_delay=DELAYS)),
    ]
    for world, result in results.items():
        if world != SHIPPED:
            lines += ["", f"## Late messages, {world}", "", *loss_table(result, along(msg_delay=DELAYS))]
    notes = {note for result in results.values() for point in result.points for note in point.notes}
    lines += ["", "What the event clock notes about these delays:", "", *(f"- {note}" for note in sorted(notes))]
    return "\n".join(lines) + "\n"


def as_json(results: Mapping[str, SweepResult], study: Study) -> dict[str, Any]:
    """Everything that the tables are made of."""
    return {
        "schema_version": SCHEMA,
        "env_id": ENV,
        "command": "python training/honest_gap.py",
        "transitions": study.steps,
        "seeds": list(study.seeds),
        "versions": versions(),
        "sweeps": {
            name: {
                "cases": [{"seed": c.seed, **c.options, "optimum": c.optimum} for c in result.sweep.cases],
                "points": [
                    {
                        "policy": p.policy,
                        "condition": p.condition.name,
                        "returns": [[round(value, 6) for value in run] for run in p.by_run],
                        "lost": p.lost.to_dict(),
                        "identical": p.identical,
                    }
                    for p in result.points
                ],
            }
            for name, result in results.items()
        },
    }


# Figures


def delay_figure(shipped: SweepResult) -> Any:
    """Loss of three policies against message delay and action delay."""
    panels = {"messages late by, s": "msg_delay", "actions late by, s": "act_delay"}
    with house_style():
        from matplotlib.figure import Figure

        figure = Figure(figsize=(WIDTH * 1.35, 3.5), layout="constrained")
        for axes, (label, cause) in zip(figure.subplots(1, 2, sharey=True), panels.items(), strict=True):
            lines = {name: [(x, p.lost) for x, p in shipped.along(name, cause)] for name in (STRONGEST, TRAINED, MPC)}
            _draw(axes, lines)
            axes.set_xlabel(label)
        figure.axes[0].set_ylabel("loss, % of the gain over doing nothing")
        figure.axes[0].legend(frameon=False, loc="upper left")
        return figure


def worlds_figure(results: Mapping[str, SweepResult]) -> Any:
    """Loss of the rule and of MPC against message delay, in each world."""
    with house_style():
        from matplotlib.figure import Figure

        figure = Figure(figsize=(WIDTH * 1.35, 3.5), layout="constrained")
        for axes, name in zip(figure.subplots(1, 2, sharey=True), (STRONGEST, MPC), strict=True):
            _draw(axes, {w: [(x, p.lost) for x, p in r.along(name, "msg_delay")] for w, r in results.items()})
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
    axes.minorticks_off()


def main() -> None:
    """Train, evaluate, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, default=Path("runs/honest_gap"))
    parser.add_argument("--out", type=Path, default=Path("training/results/honest_gap"))
    parser.add_argument("--seeds", type=int, nargs="+", default=list(Study.seeds))
    parser.add_argument("--steps", type=int, default=Study.steps, help="transitions of each training seed")
    parser.add_argument("--days", type=int, default=Study.days, help="held-out test days")
    parser.add_argument("--processes", type=int, default=Study.processes)
    given = parser.parse_args()
    study = Study(given.work, tuple(given.seeds), given.steps, given.days, given.processes)
    make(ENV).close()
    study.train()
    references = study.ran("references", study.references())
    results = {world: study.ran(world, study.sweep(world)) for world in WORLDS}
    text = report(results, references, study.steps)
    given.out.mkdir(parents=True, exist_ok=True)
    (given.out / "table.md").write_text(text, encoding="utf-8")
    (given.out / "honest_gap.json").write_text(
        json.dumps(as_json({"references": references, **results}, study), indent=1) + "\n", encoding="utf-8"
    )
    (given.out / "delays.svg").write_bytes(to_svg(delay_figure(results[SHIPPED])))
    (given.out / "worlds.svg").write_bytes(to_svg(worlds_figure(results)))
    for seed in study.seeds:
        curve = (study.folder(seed) / "progress.csv").read_text(encoding="utf-8")
        (given.out / f"learning_seed{seed}.csv").write_text(curve, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
