"""Where all messages share one radio: what is the best order of sending worth, beside the best training?

    python training/shared_radio.py             # train and play what is missing, then tables and figure
    python training/shared_radio.py --report    # tables and figure of the returns that are there

docs/science/shared_radio.md says what came out. A finished training is left as it is, and one that was killed begins
anew. Of each training the last weights are played. The rates were chosen for loads of about 0.5, 0.9 and above 1 of the
rule on a first-come-first-served radio; the load that was measured is in the tables.
"""

import argparse
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
from board import holm, p_value

from heron_env import Hyperparameters, ScheduleConfig, load_policy, make, train
from heron_env.files import write, write_all
from heron_env.lab import Estimate, Intervals, team_return
from heron_env.lab.benchmark import baselines, cases
from heron_env.lab.figure_style import BLUE, GREEN, VERMILION, WIDTH, house_style, to_svg
from heron_env.lab.sweep.play import play_lanes
from heron_env.scheduling.media import Medium
from heron_env.worlds.energy_management import MPC

NONE, FIFO, NEWEST, PRIORITY = "no network", "fifo", "newest", "priority"
RULE: Final = "rule"
OVERHEAD: Final = 20.0
"""Bytes of each message beside its content."""
SEEDS: Final = range(5)
CERTAIN: Final = 1.0 - 1e-12
OUT: Final = Path("training/results/shared_radio")
COLOURS: Final = {FIFO: VERMILION, NEWEST: BLUE, PRIORITY: GREEN}


class Network(NamedTuple):
    """How the radio sends, and its rate in bytes/s; `times`: how much longer is trained under it."""

    order: str = NONE
    rate: float = 0.0
    times: int = 1

    def __str__(self) -> str:
        """As the results name it."""
        longer = f", {self.times} times as long" if self.times > 1 else ""
        return self.order if self.order == NONE else f"{self.order}, {self.rate:g} B/s{longer}"


@dataclass(frozen=True, eq=False)
class World:
    """What is played; `rates`: from the lightest load to the heaviest; `priorities`: of links by level, else 0."""

    id: str
    rule: str
    rates: tuple[float, ...]
    priorities: Mapping[str, int]
    cases: int
    steps: int
    hyperparameters: Hyperparameters
    training_options: Mapping[str, Any]
    options: Mapping[str, Any] = field(default_factory=dict)
    longer: tuple[Network, ...] = ()

    @property
    def name(self) -> str:
        """Of files and headings."""
        return self.id.removeprefix("heron/").split("-")[0]

    @property
    def trained(self) -> list[Network]:
        """What policies are trained under: none, fifo where the load is high, and newest at overload."""
        return [
            Network(),
            *(Network(FIFO, rate) for rate in self.rates[1:]),
            Network(NEWEST, self.rates[-1]),
            *self.longer,
        ]

    @property
    def networks(self) -> list[Network]:
        """All that the rule, and PPO trained without a network, are played under."""
        return [Network(), *(Network(order, rate) for rate in self.rates for order in COLOURS)]

    def schedule(self, network: Network) -> dict[str | int, ScheduleConfig]:
        """With all links on one radio."""
        if network.order == NONE:
            return {"*": ScheduleConfig()}
        order = PRIORITY if network.order == PRIORITY else FIFO
        radio = Medium("radio", rate=network.rate, overhead=OVERHEAD, order=order)
        link = ScheduleConfig(medium=radio, keep=1 if network.order == NEWEST else None)
        first = self.priorities if network.order == PRIORITY else {}
        return {"*": link, **{level: replace(link, priority=priority) for level, priority in first.items()}}

    def training(self, network: Network, seed: int, runs: Path) -> Path:
        """The folder of a training, which is run where it is missing."""
        folder = runs / self.name / f"{network}-{seed}".replace(" ", "_").replace("/", "_")
        if not (folder / "config.json").is_file():
            run = train(
                self.id, folder, total_steps=self.steps * network.times, seed=seed, env_options=self.options,
                training_options=self.training_options, schedule=self.schedule(network), validations=1,
                validation_episodes=2, hyperparameters=self.hyperparameters, progress=False,
            )  # fmt: skip
            print(f"{folder}: {run.config.transitions:,} transitions in {run.config.seconds} s", flush=True)
        return folder

    def play(self, runs: Path) -> dict[str, Any]:
        """Returns `[seeds][cases]` by policy and network; load, and mean age of what is seen (s), under the rule."""
        folders = [(network, seed, self.training(network, seed, runs)) for seed in SEEDS for network in self.trained]
        env = make(self.id, **self.options)
        held_out, rules = cases(env, self.cases), baselines(env)
        returns: dict[str, dict[str, Any]] = {RULE: {}, **{str(network): {} for network in self.trained}}
        load, age = dict[str, float](), dict[str, float]()

        def played(policies: Any, network: Network) -> list[Any]:
            batch = play_lanes(env, held_out, [policies] * self.cases, self.schedule(network), ("messages", "ages"))
            results: list[Any] = batch.results()
            return results

        def earned(results: Sequence[Any]) -> list[float]:
            return [round(team_return(env, each), 4) for each in results]

        for network in self.networks:
            results = played(rules[self.rule], network)
            returns[RULE][str(network)] = [earned(results)]
            age[str(network)] = float(
                np.mean([of.mean for each in results for of in each.staleness.values() if of.count])
            )
            if network.order != NONE:
                load[str(network)] = float(np.mean([each.media["radio"].load for each in results]))
        for trained, _, folder in folders:
            policies = load_policy(folder, env=env)
            for network in self.networks:
                if trained.order == NONE or network in (Network(), trained._replace(times=1)):
                    results = played(policies, network)
                    mine = returns[str(trained)].setdefault(str(network), [])
                    mine.append(earned(results))
        return {"env": self.id, "cases": self.cases, "load": load, "age": age, "returns": returns}


WORLDS: Final = (
    World(
        "heron/Spread-v0",
        "assigned landmark",
        (19_000.0, 10_500.0, 6_000.0),
        {"system": 1},
        64,
        600_000,
        Hyperparameters(num_envs=64, n_steps=50, batch_size=1000, n_epochs=10, gamma=0.9),
        {},
    ),
    World(
        "heron/EnergyManagement-v1",
        MPC,
        (20.0, 10.8, 8.0),
        {"system": -1, "coordinator": -1},
        20,
        400_000,
        Hyperparameters(num_envs=32, n_steps=96, gamma=1.0, gae_lambda=1.0, twins=4, n_epochs=4),
        {"split": "train"},
        {"dt": 900.0, "physics_substeps": 15, "report_interval": 60.0},
        (Network(FIFO, 8.0, 3),),
    ),
)


# What came out


class Comparison(NamedTuple):
    """Of two policies, each on a network of its own, at one rate: what it is called, returns `[seeds][cases]`."""

    words: str
    rate: float
    ours: Any
    theirs: Any
    p: float

    @classmethod
    def of(cls, words: str, rate: float, ours: Any, theirs: Any, paired: bool) -> "Comparison":
        """`paired`: are the seeds of both the same trainings?"""
        a, b = np.array(ours), np.array(theirs)
        if paired:
            a, b = a - b, np.zeros((1, a.shape[1]))
        labels = range(a.shape[1])
        widest = Intervals(labels, level=CERTAIN).difference(a, b)
        sure = widest.low > 0.0 or widest.high < 0.0  # beyond what p_value looks for
        return cls(words, rate, a, b, 0.0 if sure else p_value(labels, a.tolist(), b.tolist()))

    @property
    def difference(self) -> Estimate:
        """Ours minus theirs, 95 %."""
        return Intervals(range(self.ours.shape[1])).difference(self.ours, self.theirs)


def comparisons(world: World, returns: Mapping[str, Mapping[str, Any]]) -> Iterator[Comparison]:
    """All of a world: for each, one cell of its table."""
    for name, policy in ((world.rule, RULE), ("PPO", NONE)):
        for order in (NEWEST, PRIORITY):
            for rate in world.rates:
                fifo, other = (returns[policy][str(Network(one, rate))] for one in (FIFO, order))
                yield Comparison.of(f"{name}: {order} - fifo", rate, other, fifo, paired=True)
    for rate in world.rates[1:]:
        fifo, newest = Network(FIFO, rate), Network(NEWEST, rate)
        under, plain = returns[str(fifo)][str(fifo)], returns[NONE]
        yield Comparison.of("fifo: PPO trained under it - PPO", rate, under, plain[str(fifo)], paired=False)
        yield Comparison.of("PPO on newest - PPO trained under fifo, on fifo", rate, plain[str(newest)], under, False)
    for longer in world.longer:
        alike, newest = str(longer._replace(times=1)), str(Network(NEWEST, longer.rate))
        ours, theirs, words = returns[NONE][newest], returns[str(longer)][alike], f"{longer.times} times as long"
        yield Comparison.of(
            f"PPO on newest - PPO trained under fifo {words}, on fifo", longer.rate, ours, theirs, False
        )
    last = Network(NEWEST, world.rates[-1])
    trained, plain = returns[str(last)][str(last)], returns[NONE][str(last)]
    yield Comparison.of("newest: PPO trained under it - PPO", last.rate, trained, plain, paired=False)


def tables(studies: Mapping[str, Mapping[str, Any]]) -> str:
    """Markdown: differences of each world by load, then the returns."""
    found = {world: [*comparisons(world, studies[world.name]["returns"])] for world in WORLDS if world.name in studies}
    corrected = iter(holm([each.p for some in found.values() for each in some]))
    lines = []
    for world, some in found.items():
        load, cells = studies[world.name]["load"], dict[tuple[str, float], str]()
        for each in some:
            cells[each.words, each.rate] = f"{each.difference}{' *' if next(corrected) < 0.05 else ''}"
        heads = [f"load {load[str(Network(FIFO, rate))]:.2f} ({rate:g} B/s)" for rate in world.rates]
        lines += [f"| {world.name} | {' | '.join(heads)} |", f"|---|{'---:|' * len(heads)}"]
        for words in dict.fromkeys(each.words for each in some):
            lines.append(f"| {words} | {' | '.join(cells.get((words, rate), '') for rate in world.rates)} |")
        lines.append("")
    for world in found:
        study = studies[world.name]
        lines += [f"| {world.name}, return | load | age, s | {' | '.join(map(heading, study['returns']))} |"]
        lines += [f"|---|---:|---:|{'---:|' * len(study['returns'])}"]
        for network in map(str, world.networks):
            means = [mean(each[network]) if network in each else "" for each in study["returns"].values()]
            load = f"{study['load'][network]:.2f}" if network in study["load"] else ""
            lines.append(f"| {network} | {load} | {study['age'][network]:.3g} | {' | '.join(map(str, means))} |")
        lines.append("")
    return "\n".join(lines)


def heading(policy: str) -> str:
    """Of a column."""
    return policy if policy == RULE else "PPO" if policy == NONE else f"PPO trained under {policy}"


def mean(returns: Sequence[Sequence[float]]) -> Estimate:
    """Over seeds and cases."""
    return Intervals(range(len(returns[0]))).mean(np.array(returns))


def figure(studies: Mapping[str, Mapping[str, Any]]) -> bytes:
    """A row for each world and a panel for each load: each policy with a dot for each order of sending."""
    worlds = [world for world in WORLDS if world.name in studies]
    with house_style():
        from matplotlib.figure import Figure

        drawn = Figure(figsize=(WIDTH * 1.35, 2.3 * len(worlds) + 0.5), layout="constrained")
        panels = drawn.subplots(len(worlds), 3, squeeze=False, sharex="row", sharey="row")
        for row, world in zip(panels, worlds, strict=True):
            returns, load = studies[world.name]["returns"], studies[world.name]["load"]
            for axes, rate in zip(row, world.rates, strict=True):
                for place, (order, colour) in enumerate(COLOURS.items()):
                    network = str(Network(order, rate))
                    for line, policy in enumerate((RULE, NONE, network)):
                        if network in returns.get(policy, {}):
                            found, height = mean(returns[policy][network]), 0.2 * (1 - place) - line
                            ends = [[found.value - found.low], [found.high - found.value]]
                            axes.errorbar([found.value], [height], xerr=ends, fmt="o", markersize=4, color=colour)
                axes.set_title(f"{world.name}, load {load[str(Network(FIFO, rate))]:.2f}", fontsize=9.0)
            row[1].set_xlabel("return of an episode")
            row[0].set_yticks([0, -1, -2], [world.rule.replace(" ", "\n"), "PPO", "PPO, trained\nunder it"])
            row[0].set_ylim(-2.6, 0.6)
        handles = [panels[0][0].plot([], [], "o", color=colour)[0] for colour in COLOURS.values()]
        drawn.legend(handles, [*COLOURS], loc="outside lower center", ncols=3, frameon=False)
        return to_svg(drawn, text=True)


def main() -> None:
    """Run what is missing, then report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=Path, default=Path("runs/shared_radio"))
    parser.add_argument("--out", type=Path, default=OUT)
    parser.add_argument("--report", action="store_true")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    for world in () if given.report else WORLDS:
        write(given.out / f"{world.name}.json", json.dumps(world.play(given.runs)) + "\n")
    files = {world.name: given.out / f"{world.name}.json" for world in WORLDS}
    studies = {name: json.loads(file.read_text(encoding="utf-8")) for name, file in files.items() if file.is_file()}
    text = tables(studies)
    write_all({given.out / "table.md": text, given.out / "shared_radio.svg": figure(studies)})
    print(text)


if __name__ == "__main__":
    main()
