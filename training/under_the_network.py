"""Is it worth training under the network that a policy will meet? EnergyManagement on held-out days.

    python training/under_the_network.py             # tune, train, evaluate, report; killed and run again, it goes on
    python training/under_the_network.py --cells late/field late/zone --arms synchronous "under the network"
    python training/under_the_network.py --arms "with memory"    # and references; the others stay as they were measured
    python training/under_the_network.py --report    # only the tables and figures of what is there

A cell is a network and who decides there. In each, PPO corrects the strongest rule; its ways of training differ in one
thing alone, are equally long, have the same five seeds, and are measured on the same test days, each with the weights
that earned most on validation days where it was trained:

    synchronous        no network: the common way (played as the event clock at zero delay, which is it bit for bit)
    training delays    the nearest that whole control steps of the synchronous clock can tell (TrainingDelays); not
                       where that is the network itself, to the last bit
    under the network  the event clock, under the network itself
    random networks    the event clock, under a network drawn for each episode: late actions, late messages, losses
    with ages          under the network; agents see how old what they see is
    with memory        under the network; actor and critic see the last four observations
    corrects tuned MPC under the network; instead of the rule it corrects MPC with constants tuned for the network,
                       where batteries decide

Beside them the references: the rule and, where it can be, MPC, as they are and with constants tuned for the network on
validation days (tuning.py). How PPO was set was chosen on validation days; test days were not looked at for it.

Sweeps in --out that another version of heron_env recorded are not gone on with: name the --arms that are new, and
study.json.gz keeps the rows of the others; a row that is measured again replaces the one before.
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
from heron_env.errors import DataError, RunFolderError
from heron_env.lab import RunFolder, SweepResult, versions
from heron_env.lab.sweep.plan import SETTINGS as SWEEP
from heron_env.lab.sweep.plan import read_settings
from heron_env.lab.sweep.presets import in_flight_losses
from heron_env.worlds.energy_management import MPC, STRONGEST

ENV: Final = tuning.ENV
SYNCHRONOUS, DELAYS, UNDER = "synchronous", "training delays", "under the network"
RANDOM, AGES, MEMORY, PLANNED = "random networks", "with ages", "with memory", "corrects tuned MPC"
ARMS: Final = (SYNCHRONOUS, DELAYS, UNDER, RANDOM, AGES, MEMORY, PLANNED)
ALONE: Final = {AGES: "ages", MEMORY: "memory", PLANNED: "planned"}
"""Arms with a sweep of their own, by its name: in another environment, or measured later than the others."""
ORDER: Final = (*reporting.REFERENCES, *ARMS)
"""Of the rows."""
PERIOD: Final = 10.0
"""s between two messages of a link, where losses come in bursts: telemetry's."""
SETTINGS: Final = Hyperparameters(
    num_envs=8, n_steps=1440, twins=4, batch_size=4096, n_epochs=1, gamma=1.0, gae_lambda=1.0,
    learning_rate=5e-4, final_learning_rate=2e-5, log_std=-2.5, keep_best=True,
)  # fmt: skip
"""A rollout is a day in each of eight lanes: two days, each lived by four twins. Chosen on eight validation days."""
WORLD: Final = {"dt": 60.0, "physics_substeps": 6, "split": "train"}
"""What is trained in; measured is in the environment as it is, with 30 substeps."""


@dataclass(frozen=True)
class Network:
    """What is wrong, and the nearest that the synchronous clock can tell; None: it is whole steps, so the same."""

    title: str
    condition: Condition
    delays: TrainingDelays | None


NETWORKS: Final = {
    "late": Network("actions 60 s late", Condition(act_delay=60.0), None),
    "slow": Network(
        "messages 3 s late, jitter 0.3", Condition(msg_delay=3.0, jitter=0.3), TrainingDelays(observation=1)
    ),
    "bursty": Network(
        "bursts of losses",
        Condition(msg_delay=0.25, loss=in_flight_losses(PERIOD)),
        TrainingDelays(observation=(0, 1)),
    ),
}
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
        return ("rule", MPC) if self.plans else ("rule",)


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
    def steps(self) -> int:
        """Transitions of each group."""
        env = make(ENV, **self.cell.options)
        return self.settings.num_envs * self.settings.n_steps * len(env.possible_agents) * self.updates

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
    folder = runs / training.folder
    try:
        done = RunFolder.open(folder)
    except RunFolderError:
        done = None
    if done is None or done.config.transitions < training.steps:
        done = train(
            ENV, folder, total_steps=training.steps, seed=training.seed, training_options=WORLD,
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
    updates: int = 300
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
        corrected = {name: tuning.named(self.tuned(CELLS[name])[MPC]) for name in self.cells if CELLS[name].plans}
        with ProcessPoolExecutor(self.processes, max_tasks_per_child=1) as pool:
            for line in pool.map(partial(trained, self.runs, corrected), self.trainings()):
                print(line, flush=True)

    def tuned(self, cell: Cell) -> dict[str, dict[str, Any]]:
        """The constants of its references, tuned where they are not."""
        return {name: tuning.tuned(name, cell.control, cell.condition) for name in cell.references}

    def sweeps(self, cell: Cell) -> Iterator[tuple[str, Sweep]]:
        """Of a cell, by name: policies that see ages live in another environment."""
        yield "references", self._sweep(cell, self._references(cell))
        pools = {arm: [self._run(arm, cell, seed) for seed in self.seeds] for arm in self._arms(cell)}
        if main := {arm: pool for arm, pool in pools.items() if arm not in ALONE}:
            yield "main", self._sweep(cell, main)
        for arm, name in ALONE.items():
            if arm in pools:
                ages = {"observe_age": True} if arm == AGES else {}
                yield name, self._sweep(cell, {arm: pools[arm]}, **ages)

    def _references(self, cell: Cell) -> dict[str, Any]:
        return {
            policy: Baseline(baseline)
            for name, found in self.tuned(cell).items()
            for policy, baseline in ((name, found["baseline"]), (f"{name}, tuned", tuning.named(found)))
        }

    def _sweep(self, cell: Cell, policies: Mapping[str, Any], **options: Any) -> Sweep:
        return Sweep.of(ENV, policies, [cell.condition], cases=self.days, options={**cell.options, **options})

    def measured(self) -> dict[str, dict[str, SweepResult]]:
        """Of all cells; what is missing is run."""
        self._require_own()
        self.train()
        return {
            name: {
                kind: sweep.run(self._folder(CELLS[name]) / kind, processes=self.processes)
                for kind, sweep in self.sweeps(CELLS[name])
            }
            for name in self.cells
        }

    def _require_own(self) -> None:
        """Raise DataError where a sweep that is wanted was recorded by another version: before hours of training."""
        for name in self.cells:
            arms = self._arms(CELLS[name])
            kinds = {"references", *(ALONE.get(arm, "main") for arm in arms)}
            for file in (self._folder(CELLS[name]) / kind / SWEEP for kind in sorted(kinds)):
                if file.is_file() and (version := read_settings(file).heron_env) != __version__:
                    raise DataError(
                        f"{file} was recorded by heron_env {version}, this is {__version__}: give other --runs, or "
                        f"other --arms than {list(arms)}; study.json.gz keeps their rows"
                    )

    def returns(self, measured: Mapping[str, Mapping[str, SweepResult]]) -> dict[str, Any]:
        """Returns `[runs][days]` by cell, policy and clock, as they are kept in study.json.gz."""
        return {
            name: {
                policy: {
                    clock: sweep.table(policy, *condition).tolist()
                    for clock, condition in (("sync", ()), ("network", (CELLS[name].condition,)))
                }
                for sweep in sweeps.values()
                for policy in ORDER
                if policy in sweep.policies
            }
            for name, sweeps in measured.items()
        }

    def write(self, measured: Mapping[str, Mapping[str, SweepResult]]) -> str:
        """study.json.gz, study.md and study.svg; the text."""
        data = {
            "schema_version": 2, "env_id": ENV, "days": self.days, "updates": self.updates, "seeds": list(self.seeds),
            "settings": reporting.plain(SETTINGS), "world": WORLD, "random_networks": RANDOM_NETWORKS.to_dict(),
            "cells": {name: {"title": CELLS[name].title, **CELLS[name].condition.to_dict()} for name in measured},
            "tuned": {name: self.tuned(CELLS[name]) for name in measured},
            "training": [self._told(training) for training in self.trainings()],
            "returns": self.returns(measured), "versions": versions(),
        }  # fmt: skip
        data["recorded"] = {cell: dict.fromkeys(table, __version__) for cell, table in data["returns"].items()}
        data = reporting.merged(self.out, data)
        data["returns"] = {
            cell: {policy: table[policy] for policy in ORDER if policy in table}
            for cell, table in data["returns"].items()
        }
        return reporting.write(self.out, data)

    def _told(self, training: Training) -> dict[str, Any]:
        """What became of a run, and its learning curve: what it earned on validation days."""
        folder = RunFolder.open(self.runs / training.folder)
        return {
            "arm": training.arm, "folder": training.folder, "seed": training.seed, "seconds": folder.config.seconds,
            "transitions": folder.config.transitions, "curve": reporting.curve(folder.path / folder.config.curve),
        }  # fmt: skip

    def _arms(self, cell: Cell) -> tuple[str, ...]:
        return tuple(arm for arm in cell.arms if arm in self.arms)

    def _run(self, arm: str, cell: Cell, seed: int) -> str:
        return str(self.runs / Training(arm, cell, seed, self.updates).folder)

    def _folder(self, cell: Cell) -> Path:
        return self.runs / "sweeps" / cell.name.replace("/", "-")


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
    print(study.write(study.measured()))


if __name__ == "__main__":
    main()
