"""Is it worth training under the network that a policy will meet? EnergyManagement on held-out days.

    python training/under_the_network.py --cells slow/field --arms synchronous "under the network" --seeds 0 1 2
    python training/under_the_network.py --cells slow/field --only train --arms "under the network" --seeds 7
    python training/under_the_network.py --cells slow/field --only measure    # the runs that are finished
    python training/under_the_network.py --report    # only the tables and figures of what is there

It tunes, trains, evaluates, reports; killed and run again, it goes on. A cell is a network and who decides there. In
each, PPO corrects the strongest rule; its ways of training differ in one thing alone, are equally long, and are
measured on the same test days, each with the weights that earned most on validation days where it was trained:

    synchronous        no network: the common way (played as the event clock at zero delay, which is it bit for bit)
    training delays    the nearest that whole control steps of the synchronous clock can tell (TrainingDelays); not
                       where that is the network itself, to the last bit
    under the network  the event clock, under the network itself
    random networks    the event clock, under a network drawn for each episode: late actions, late messages, losses
    with ages          under the network; agents see how old what they see is
    with memory        under the network; actor and critic see the last four observations
    corrects tuned MPC under the network; instead of the rule it corrects MPC with constants tuned for the network,
                       where batteries decide

Beside them the references: the rule and, where it can be, MPC, as they are, with constants tuned for the network on
validation days, and smoothed, tuned likewise (tuning.py). How PPO was set was chosen on validation days; test days were
not looked at for it. study.json.gz keeps the rows that are not measured now; a row that is measured again replaces the
one before. Sweeps that another version of heron_env recorded are not gone on with.
"""

import argparse
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, Final

import tuning
import under_the_network_report as reporting
from remedies import Timed

from heron_env import (
    Baseline,
    Condition,
    DrawnSchedule,
    Hyperparameters,
    ScheduleConfig,
    Sweep,
    TrainingDelays,
    __version__,
    make,
    train,
)
from heron_env.errors import RunFolderError
from heron_env.lab import RunFolder, SweepResult, versions
from heron_env.lab.sweep.conditions import along
from heron_env.lab.sweep.presets import in_flight_losses
from heron_env.worlds.energy_management import MPC, STRONGEST

ENV: Final = tuning.ENV
SYNCHRONOUS, DELAYS, UNDER = "synchronous", "training delays", "under the network"
RANDOM, AGES, MEMORY, PLANNED = "random networks", "with ages", "with memory", "corrects tuned MPC"
ARMS: Final = (SYNCHRONOUS, DELAYS, UNDER, RANDOM, AGES, MEMORY, PLANNED)
ORDER: Final = (*reporting.REFERENCES, *ARMS)
"""Of the rows."""
CURVED: Final = ("rule, tuned", "MPC, tuned", "MPC, smoothed", SYNCHRONOUS, UNDER)
"""Policies that meet other delays, too."""
PERIOD: Final = 10.0
"""s between two messages of a link, where losses come in bursts: telemetry's."""
SETTINGS: Final = Hyperparameters(
    num_envs=64, n_steps=1440, twins=4, batch_size=4096, n_epochs=2, gamma=1.0, gae_lambda=1.0,
    learning_rate=1.5e-3, final_learning_rate=5e-5, log_std=-2.5, keep_best=True,
)  # fmt: skip
"""A rollout is a day in each of 64 lanes: 16 days, each lived by four twins."""
WORLD: Final = {"dt": 60.0, "physics_substeps": 6, "split": "train"}
"""What is trained in; measured is in the environment as it is, with 30 substeps: so is what meets random networks."""


@dataclass(frozen=True)
class Network:
    """What is wrong, and the nearest that the synchronous clock can tell; None: it is whole steps, so the same."""

    title: str
    condition: Condition
    delays: TrainingDelays | None


BURSTS: Final[dict[str, Any]] = {"msg_delay": 0.25, "loss": in_flight_losses(PERIOD)}
NETWORKS: Final = {
    "late": Network("actions 60 s late", Condition(act_delay=60.0), None),
    "slow": Network("messages 30 s late", Condition(msg_delay=30.0), TrainingDelays(observation=1)),
    "scattered": Network(
        "messages 25 s late in the mean, jitter 0.5",
        Condition(msg_delay=25.0, jitter=0.5),
        TrainingDelays(observation=1),
    ),
    "bursty": Network("bursts of losses, set-points held", Condition(**BURSTS), TrainingDelays(observation=(0, 1))),
    "bursty-noop": Network(
        "bursts of losses, no-op instead", Timed(**BURSTS, on_missing="noop"), TrainingDelays(observation=(0, 1))
    ),
}
LATE_BY: Final = (0.0, 5.0, 15.0, 25.0, 30.0, 35.0, 45.0, 60.0, 90.0, 120.0)
"""s: how late messages are where policies meet delays that they were not trained for."""
RANDOM_NETWORKS: Final = DrawnSchedule(
    act_delay=[0.0, 30.0, 60.0, 90.0],
    msg_delay="0-6",
    loss=[0.0, 0.02, 0.05, 0.1],
)


@dataclass(frozen=True)
class Cell:
    """A network, and who decides: "field" or "zone"."""

    network: str
    control: str

    @property
    def name(self) -> str:
        """`late/field`."""
        return f"{self.network}/{self.control}"

    @property
    def title(self) -> str:
        """For people."""
        who = {"field": "batteries decide", "zone": "zones decide"}[self.control]
        return f"{NETWORKS[self.network].title}, {who}"

    @property
    def condition(self) -> Condition:
        """What its policies meet."""
        return NETWORKS[self.network].condition

    @property
    def options(self) -> dict[str, Any]:
        """Of the environment."""
        return {"control": self.control}

    @property
    def arms(self) -> tuple[str, ...]:
        """Ways of training that are told apart here."""
        absent = {DELAYS} if NETWORKS[self.network].delays is None else set()
        return tuple(arm for arm in ARMS if arm not in (absent if self.plans else absent | {PLANNED}))

    @property
    def plans(self) -> bool:
        """Can MPC decide here?"""
        return self.control == "field"

    @property
    def references(self) -> tuple[str, ...]:
        """Names of those that there are here."""
        own = ("rule", "rule, smoothed")
        return (*own, MPC, "MPC, smoothed") if self.plans else own

    def conditions(self, policy: str) -> list[Condition]:
        """What a policy is measured in."""
        curved = self.network == "slow" and policy in CURVED
        return [self.condition, *(along(msg_delay=LATE_BY) if curved else ())]


CELLS: Final = {cell.name: cell for cell in (Cell(*names) for names in product(NETWORKS, ("field", "zone")))}


@dataclass(frozen=True)
class Training:
    """One run: an arm, in a cell, with a seed."""

    arm: str
    cell: Cell
    seed: int
    updates: int

    @property
    def folder(self) -> str:
        """What networks have no part in is shared by the cells of one control."""
        where = "any" if self.arm in (SYNCHRONOUS, RANDOM) else self.cell.network
        return f"{self.cell.control}/{where}/{self.arm.replace(' ', '-')}/seed{self.seed}"

    @property
    def settings(self) -> Hyperparameters:
        """Of PPO."""
        return replace(SETTINGS, frames=4) if self.arm == MEMORY else SETTINGS

    @property
    def world(self) -> dict[str, Any]:
        """What it is trained in: some of the random networks' delays are shorter than a substep of WORLD."""
        return {name: value for name, value in WORLD.items() if (self.arm, name) != (RANDOM, "physics_substeps")}

    @property
    def steps(self) -> int:
        """Transitions of each group."""
        env = make(ENV, **self.cell.options)
        return self.settings.num_envs * self.settings.n_steps * len(env.possible_agents) * self.updates

    def finished(self, runs: Path) -> RunFolder | None:
        """Its run folder, if it is whole."""
        try:
            done = RunFolder.open(runs / self.folder)
        except RunFolderError:
            return None
        return done if done.config.transitions >= self.steps else None

    def arguments(self) -> dict[str, Any]:
        """Of `train`: where the arms differ."""
        network, options = NETWORKS[self.cell.network], dict(self.cell.options)
        if self.arm == SYNCHRONOUS:
            return {"env_options": options, "schedule": ScheduleConfig()}
        if self.arm == DELAYS:
            return {"env_options": options, "training_delays": network.delays}
        if self.arm == RANDOM:
            return {"env_options": options, "schedule": RANDOM_NETWORKS}
        if self.arm == AGES:
            options["observe_age"] = True
        return {"env_options": options, "schedule": network.condition.schedule(make(ENV, **options))}


def trained(runs: Path, corrected: Mapping[str, str], training: Training) -> str:
    """Train it, unless it is there; what it took. `corrected`: the tuned MPC by cell."""
    done = training.finished(runs)
    if done is None:
        done = train(
            ENV, runs / training.folder, total_steps=training.steps, seed=training.seed,
            training_options=training.world,
            residual=corrected[training.cell.name] if training.arm == PLANNED else STRONGEST,
            hyperparameters=training.settings, validations=12, validation_episodes=8, progress=False,
            **training.arguments(),
        )  # fmt: skip
    return f"{training.folder}: {done.config.seconds} s, validation {done.config.validation['trained']:.2f}"


@dataclass(frozen=True)
class Study:
    """What is measured, and where it is kept."""

    runs: Path = Path("runs/under_the_network")
    out: Path = Path("training/results/under_the_network")
    cells: tuple[str, ...] = tuple(CELLS)
    arms: tuple[str, ...] = ARMS
    seeds: tuple[int, ...] = (0, 1, 2, 3, 4)
    updates: int = 60
    days: int = 20
    processes: int = 2

    def trainings(self) -> list[Training]:
        """All runs, a cell after the other, and in it a seed after the other."""
        wanted = [
            Training(arm, CELLS[cell], seed, self.updates)
            for cell in self.cells
            for seed in self.seeds
            for arm in self._arms(CELLS[cell])
        ]  # fmt: skip
        return [*{training.folder: training for training in reversed(wanted)}.values()][::-1]

    def train(self) -> None:
        """Train what is missing."""
        corrected = {
            name: tuning.named(self.tuned(CELLS[name], (MPC,))[MPC])
            for name in self.cells
            if PLANNED in self._arms(CELLS[name])
        }
        with ProcessPoolExecutor(self.processes, max_tasks_per_child=1) as pool:
            for line in pool.map(partial(trained, self.runs, corrected), self.trainings()):
                print(line, flush=True)

    def tuned(self, cell: Cell, names: Sequence[str] = ()) -> dict[str, dict[str, Any]]:
        """The constants of its references, or of these, tuned where they are not."""
        return {name: tuning.tuned(name, cell.control, cell.condition) for name in names or cell.references}

    def sweeps(self, cell: Cell) -> Iterator[tuple[str, Sweep]]:
        """Of a cell, by policy: what needs no training, and of each arm the runs that are finished."""
        for policy, spec in self._references(cell).items():
            yield policy, self._sweep(cell, policy, spec)
        for arm in self._arms(cell):
            every = [Training(arm, cell, seed, self.updates) for seed in self.seeds]
            runs = [str(self.runs / one.folder) for one in every if one.finished(self.runs) is not None]
            if runs:
                ages = {"observe_age": True} if arm == AGES else {}
                yield arm, self._sweep(cell, arm, runs if len(runs) > 1 else runs[0], **ages)

    def _references(self, cell: Cell) -> dict[str, Any]:
        found = self.tuned(cell)
        plain = {name: Baseline(own["baseline"]) for name, own in found.items() if tuning.SMOOTHING not in own["best"]}
        return plain | {reporting.row(name, own): tuning.policy(own) for name, own in found.items()}

    def _sweep(self, cell: Cell, policy: str, spec: Any, **options: Any) -> Sweep:
        return Sweep.of(
            ENV, {policy: spec}, cell.conditions(policy), cases=self.days, options={**cell.options, **options}
        )

    def measured(self) -> dict[str, dict[str, SweepResult]]:
        """Of all cells; what is missing is run."""
        return {
            name: {
                policy: sweep.run(self._folder(CELLS[name], policy, len(sweep.items())), processes=self.processes)
                for policy, sweep in self.sweeps(CELLS[name])
            }
            for name in self.cells
        }

    def returns(self, measured: Mapping[str, Mapping[str, SweepResult]]) -> dict[str, Any]:
        """Returns `[runs][days]` by cell, policy and clock, as they are kept in study.json.gz."""
        return {
            name: {
                policy: {
                    "sync": sweeps[policy].table(policy).tolist(),
                    "network": sweeps[policy].table(policy, CELLS[name].condition).tolist(),
                }
                for policy in ORDER
                if policy in sweeps
            }
            for name, sweeps in measured.items()
        }

    def late(self, measured: Mapping[str, Mapping[str, SweepResult]]) -> dict[str, Any]:
        """Returns `[runs][days]` by cell, policy and delay of messages, of those that meet other delays."""
        return {
            name: {
                policy: {
                    f"{one.msg_delay:g}": sweeps[policy].table(policy, one).tolist()
                    for one in sorted(CELLS[name].conditions(policy), key=lambda one: one.msg_delay)
                }
                for policy in CURVED
                if policy in sweeps
            }
            for name, sweeps in measured.items()
            if len(CELLS[name].conditions(UNDER)) > 1
        }

    def write(self, measured: Mapping[str, Mapping[str, SweepResult]]) -> str:
        """study.json.gz, study.md and study.svg; the text."""
        how = {"updates": self.updates, "settings": reporting.plain(SETTINGS), "world": WORLD}
        data = {
            "schema_version": 3, "env_id": ENV, "days": self.days, "random_networks": RANDOM_NETWORKS.to_dict(),
            "cells": {
                name: {"title": CELLS[name].title, "condition": CELLS[name].condition.name, **how} for name in measured
            },
            "tuned": {name: self.tuned(CELLS[name]) for name in measured},
            "training": {name: list(self._trainings(CELLS[name])) for name in measured},
            "returns": self.returns(measured), "late": self.late(measured), "versions": versions(),
        }  # fmt: skip
        data["recorded"] = {cell: dict.fromkeys(table, __version__) for cell, table in data["returns"].items()}
        data = reporting.merged(self.out, data)
        data["returns"] = {
            cell: {policy: table[policy] for policy in ORDER if policy in table}
            for cell, table in data["returns"].items()
        }
        return reporting.write(self.out, data)

    def _trainings(self, cell: Cell) -> Iterator[dict[str, Any]]:
        """What became of each run, and its learning curve: what it earned on validation days."""
        for arm, seed in product(self._arms(cell), self.seeds):
            folder = Training(arm, cell, seed, self.updates).finished(self.runs)
            if folder is not None:
                yield {
                    "arm": arm, "seed": seed, "seconds": folder.config.seconds,
                    "transitions": folder.config.transitions,
                    "curve": reporting.curve(folder.path / folder.config.curve),
                }  # fmt: skip

    def _arms(self, cell: Cell) -> tuple[str, ...]:
        return tuple(arm for arm in cell.arms if arm in self.arms)

    def _folder(self, cell: Cell, policy: str, episodes: int) -> Path:
        """A sweep's: one of more runs is another."""
        return self.runs / "sweeps" / cell.name.replace("/", "-") / f"{policy}-{episodes}"


def main(arguments: Sequence[str] | None = None) -> None:
    """Tune, train, evaluate, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cells", nargs="+", choices=list(CELLS), default=list(CELLS))
    parser.add_argument("--arms", nargs="*", choices=ARMS, default=ARMS, help="none: the references alone")
    parser.add_argument("--runs", type=Path, default=Study.runs, help="run folders, journals of sweeps")
    parser.add_argument("--out", type=Path, default=Study.out, help="data, tables, figures")
    parser.add_argument("--seeds", type=int, nargs="+", default=list(Study.seeds))
    parser.add_argument("--updates", type=int, default=Study.updates, help="of each run: rollouts learned from")
    parser.add_argument("--days", type=int, default=Study.days, help="held-out test days")
    parser.add_argument("--processes", type=int, default=Study.processes)
    parser.add_argument("--only", choices=("train", "measure"), help="train alone, or measure what is trained alone")
    parser.add_argument("--report", action="store_true", help="only tables and figures of what is in --out")
    given = parser.parse_args(arguments)
    if given.report:
        print(reporting.rewrite(given.out))
        return
    study = Study(
        given.runs,
        given.out,
        tuple(given.cells),
        tuple(given.arms),
        tuple(given.seeds),
        given.updates,
        given.days,
        given.processes,
    )
    if given.only != "measure":
        study.train()
    if given.only != "train":
        print(study.write(study.measured()))


if __name__ == "__main__":
    main()
