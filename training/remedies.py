"""What helps a policy that acts late or on old data? Remedies in EnergyManagement, measured on held-out days.

    python training/remedies.py                     # evaluate, report; killed and run again, it goes on
    python training/remedies.py --runs 'runs/honest_gap/seed*' --days 20
    python training/remedies.py --control zone --runs 'runs/zone/seed*'
    python training/remedies.py --remedies "MPC, tuned for stale"   # these alone; the others stay as they were measured
    python training/remedies.py --report            # only the table and the figure of what is there

The naive policies are the strongest rule, MPC (each battery for itself), and PPO as `training/honest_gap.py` trained
it, its seeds pooled. Remedies have the constants of earlier studies. Beside them the rule, MPC and MPC that sees ages
have constants tuned for each condition on validation days (tuning.py): the best that a policy without training does
there, which every other policy is to be compared with.

    late    what is decided takes effect 60 s later: one control step. A set-point that goes through a vendor's cloud to
            an inverter that ramps needs about so long.
    slow    messages take 15 s, with 10 % jitter.
    stale   90 % of the messages of the transformers are lost (a station in a cellar) and the rest takes 5 s. The
            homes' own messages are fine.
    lossy   links of the homes too: messages take 5 s, 10 % of the homes' own are lost, of the transformers' 90 %.
            Zone control: half of those between zone and batteries.

Share of the gap closed, each with the naive policy's J of the same seed and day:

    (J_remedy(condition) - J_naive(condition)) / (J_naive(sync) - J_naive(condition))

as a ratio of means over seeds and days, with a t interval over both (`heron_env.lab.robust_stats`).
"""

import argparse
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from glob import glob
from pathlib import Path
from typing import Any

import packed
import remedies_report
import tuning

from heron_env import Baseline, Condition, HeronEnv, ScheduleConfig, Sweep, TrainedRun, __version__, make
from heron_env.errors import ConfigError, DataError
from heron_env.files import write_all
from heron_env.lab import SYNC, LocalFallback, PolicySpec, Smoothing, benchmark, versions
from heron_env.lab.remedies import WithoutAges
from heron_env.scheduling.timing import Key
from heron_env.worlds.energy_management import MPC, STRONGEST, TunedRule, Tuning

TITLES = {"late": "60 s late", "slow": "slow links", "stale": "stale zone", "lossy": "lossy links"}
INTRO = """# What closes the train-to-deploy gap

Made by `python training/remedies.py`: {days} {split} days, {seeds} training seeds for a PPO policy (rules and MPC need
none). Returns in EUR a day, means over seeds and days. "late": what is decided takes effect 60 s later. "slow":
messages take 15 s, with 10 % jitter. "stale": 90 % of the transformers' messages are lost, the rest takes 5 s; the
homes' own data are fresh. "lossy": the homes' messages take 5 s, too, and 10 % of them are lost; in zone control half
of those between zone and batteries. "Later ticks" come 45 s after the boundary instead of with it.

Share of the gap closed: (J_remedy - J_naive) / (J_naive(sync) - J_naive), both J in that condition: of the gap of the
naive policy of the same kind. Different policies are compared with the rule that is tuned for the condition. In
brackets 95 % t intervals over seeds and days, a rule's and MPC's over days alone. Cost at sync: what a remedy loses
where nothing is late (of later ticks: with an ideal network). "Tuned": constants that earn most on {tuning} validation
days in that condition; no other constant was tuned for this table. Ticks come three messages of 15 s later."""
ENV = tuning.ENV
SCHEMA = 2
CONTROLS = ("field", "zone")
LATE, SLOW, STALE, LOSSY = "late", "slow", "stale", "lossy"
EVERYWHERE = {LATE: Condition(act_delay=60.0), SLOW: Condition(msg_delay=15.0, jitter=0.1)}
CONDITIONS = {
    "field": {
        **EVERYWHERE,
        STALE: Condition(msg_delay={"coordinator": 5.0}, loss={"coordinator": 0.9}),
        LOSSY: Condition(msg_delay=5.0, loss={"*": 0.1, "coordinator": 0.9}),
    },
    "zone": {**EVERYWHERE, LOSSY: Condition(msg_delay=5.0, loss={"field": 0.5})},
}
"""By control."""
LATER = 45.0
"""s: three messages of 15 s, a report's and those of a question and its answer."""


@dataclass(frozen=True)
class Timed(Condition):
    """A condition in which agents tick later than others, or have another way with what is missing.

    Attributes:
        phase: of every tick, s.
        on_missing: "hold" or "noop".
    """

    phase: float = 0.0
    on_missing: str = "hold"

    @property
    def name(self) -> str:
        """With what it adds."""
        return f"{super().name} phase={self.phase:g} on_missing={self.on_missing}"

    def schedule(self, env: HeronEnv) -> dict[Key, ScheduleConfig]:
        """As of the condition, with these ticks."""
        changed: dict[str, Any] = {"phase": self.phase, "on_missing": self.on_missing}
        return {agent: replace(config, **changed) for agent, config in super().schedule(env).items()}


Around = Callable[[PolicySpec], PolicySpec]


@dataclass(frozen=True)
class Remedy:
    """A policy and how it is run.

    Attributes:
        against: the naive one.
        around: what is made of the naive policy.
        ages: does the environment show them?
        on_missing, phase: of the schedule.
        conditions: which ones it is meant for, where the control has them.
        tuned: the reference whose constants are tuned for its one condition; it takes the place of `around`.
    """

    against: str
    around: Around = lambda spec: spec
    ages: bool = False
    on_missing: str = "hold"
    phase: float = 0.0
    conditions: tuple[str, ...] = (LATE, SLOW, STALE, LOSSY)
    controls: tuple[str, ...] = CONTROLS
    tuned: str | None = None

    def timed(self, condition: Condition) -> Condition:
        """The condition with this remedy's ticks."""
        if not self.phase and self.on_missing == "hold":
            return condition
        given = {name: getattr(condition, name) for name in condition.causes}
        return Timed(**given, phase=self.phase, on_missing=self.on_missing)

    def measured(self, control: str) -> dict[str, Condition]:
        """What it is run in: the synchronous clock, or an ideal network where that clock has no such ticks."""
        ideal = self.timed(Condition()) if self.phase else SYNC
        wanted = [name for name in self.conditions if name in CONDITIONS[control]]
        return {"sync": ideal, **{name: self.timed(CONDITIONS[control][name]) for name in wanted}}


def _smooth(spec: PolicySpec) -> PolicySpec:
    return Smoothing(spec, "Setpoint.power", 0.25)


def _fallback(spec: PolicySpec) -> PolicySpec:
    return LocalFallback(
        WithoutAges(spec) if isinstance(spec, TrainedRun) else spec, Baseline("grid-friendly"), oldest=120.0
    )


def _with_margin(spec: PolicySpec) -> PolicySpec:
    return TunedRule(STRONGEST, Tuning(follow=0.05, guard=0.1))


FIELD = ("field",)
REMEDIES = {
    "rule": Remedy("rule"),
    "rule, more margin": Remedy("rule", _with_margin),
    "rule, smoothed": Remedy("rule", _smooth, conditions=(LATE, SLOW)),
    "rule, local fallback": Remedy("rule", _fallback, ages=True, conditions=(STALE, LOSSY), controls=FIELD),
    "rule, no-op instead of hold": Remedy("rule", on_missing="noop", conditions=(LOSSY,)),
    "rule, later ticks": Remedy("rule", phase=LATER, conditions=(SLOW,)),
    "MPC": Remedy("MPC", controls=FIELD),
    "MPC, sees ages": Remedy("MPC", ages=True, conditions=(SLOW, STALE, LOSSY), controls=FIELD),
    "PPO": Remedy("PPO"),
    "PPO, smoothed": Remedy("PPO", _smooth, conditions=(LATE, SLOW)),
    "PPO, local fallback": Remedy("PPO", _fallback, ages=True, conditions=(STALE, LOSSY), controls=FIELD),
    "PPO, later ticks": Remedy("PPO", phase=LATER, conditions=(SLOW,)),
    **{
        f"{against}, tuned{ages} for {condition}": Remedy(
            against, ages=bool(ages), conditions=(condition,), controls=controls, tuned=f"{against}{ages}"
        )
        for against, ages, controls in (("rule", "", CONTROLS), ("MPC", "", FIELD), ("MPC", ", sees ages", FIELD))
        for condition in (LATE, SLOW, STALE, LOSSY)
        if not (ages and condition == LATE)
    },
}
"""By name; the naive ones are called what others are `against`."""


@dataclass(frozen=True)
class Study:
    """What is measured and where it is kept: a sweep for each remedy.

    Attributes:
        work: folder of the sweeps.
        runs: folders of the PPO policy, one a training seed; none: rules and MPC alone.
    """

    work: Path
    control: str = "field"
    runs: tuple[str, ...] = ()
    days: int = 20
    split: str = "test"
    remedies: tuple[str, ...] = tuple(REMEDIES)
    processes: int = 2

    def sweep(self, name: str) -> Sweep | None:
        """That of a remedy; None where it can't be run: in the other control, or without run folders."""
        remedy = REMEDIES[name]
        naive: dict[str, Sequence[PolicySpec]] = {
            "rule": [Baseline(STRONGEST)], "MPC": [Baseline(MPC)], "PPO": [TrainedRun(folder) for folder in self.runs]
        }  # fmt: skip
        there = set(remedy.conditions) & set(CONDITIONS[self.control])
        if self.control not in remedy.controls or not naive[remedy.against] or not there:
            return None
        members = [remedy.around(spec) for spec in naive[remedy.against]]
        if remedy.tuned is not None:
            condition = CONDITIONS[self.control][remedy.conditions[0]]
            members = [Baseline(tuning.named(tuning.tuned(remedy.tuned, self.control, condition)))]
        options = {"control": self.control, **({"observe_age": True} if remedy.ages else {})}
        cases = benchmark.cases(make(ENV, **options), self.days, split=self.split)
        policies = {name: members if len(members) > 1 else members[0]}
        conditions = list(remedy.measured(self.control).values())
        return Sweep.of(ENV, policies, conditions, cases=cases, options=options)

    def results(self, only_kept: bool = False) -> Iterator[tuple[str, dict[str, Any]]]:
        """By remedy: returns `[seed][day]` by condition; `only_kept`: of the sweeps that are finished."""
        for name in self.remedies:
            folder = self.work / self.control / name
            if only_kept and not (folder / "table.json").is_file():
                continue
            sweep = self.sweep(name)
            if sweep is None:
                continue
            found = sweep.run(folder, processes=self.processes)
            measured = REMEDIES[name].measured(self.control).items()
            returns = {short: [list(run) for run in found.point(name, c).by_run] for short, c in measured}
            print(name, {short: round(found.point(name, c).mean.value, 2) for short, c in measured}, flush=True)
            yield name, {"seeds": list(range(len(returns["sync"]))), **returns}


def write(study: Study, out: Path, only_kept: bool = False) -> str:
    """remedies.json.gz, .md and .svg of what is measured, and of what the first had before; the text of the table.

    Raises DataError where the two do not compare.
    """
    returns = dict(study.results(only_kept))
    data = {
        "schema_version": SCHEMA, "env_id": ENV, "split": study.split, "days": study.days,
        "conditions": {name: condition.to_dict() for name, condition in CONDITIONS[study.control].items()},
    }  # fmt: skip
    file, recorded, runs = out / "remedies.json.gz", dict.fromkeys(returns, __version__), list(study.runs)
    if file.is_file():
        kept = packed.load(file)
        if other := [name for name in data if kept[name] != json.loads(json.dumps(data[name]))]:
            raise DataError(f"{file} was measured with other {', '.join(other)}: give another --out")
        returns, recorded = {**kept["returns"][study.control], **returns}, {**kept["recorded"], **recorded}
        runs = runs or kept["runs"]
    returns = {name: returns[name] for name in REMEDIES if name in returns}
    found = remedies_report.lines({study.control: returns}, {name: one.against for name, one in REMEDIES.items()})
    text = remedies_report.markdown(
        found, INTRO.format(seeds=len(runs), days=study.days, split=study.split, tuning=tuning.DAYS)
    )
    data |= {
        "runs": runs, "returns": {study.control: returns}, "recorded": recorded,
        "table": remedies_report.as_json(found), "versions": versions(),
    }  # fmt: skip
    out.mkdir(parents=True, exist_ok=True)
    titles = {name: TITLES[name] for name in CONDITIONS[study.control]}
    write_all(
        {
            file: packed.dumped(data),
            out / "remedies.md": text,
            out / "remedies.svg": remedies_report.figure(found, titles),
        }
    )
    return text


def main() -> None:
    """Evaluate, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--control", choices=CONTROLS, default="field")
    parser.add_argument("--runs", default="runs/honest_gap/seed*", help="pattern of PPO's run folders")
    parser.add_argument("--days", type=int, default=20, help="held-out days")
    parser.add_argument("--split", choices=("validation", "test"), default="test")
    parser.add_argument("--remedies", nargs="+", choices=list(REMEDIES), default=list(REMEDIES))
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--report", action="store_true", help="measure nothing, write what is there")
    parser.add_argument("--work", type=Path, default=Path("runs/remedies"))
    parser.add_argument("--out", type=Path, default=Path("training/results/remedies"))
    given = parser.parse_args()
    runs = tuple(sorted(folder for folder in glob(given.runs) if (Path(folder) / "config.json").is_file()))
    if not given.report and not runs and any(REMEDIES[name].against == "PPO" for name in given.remedies):
        raise ConfigError(f"--runs {given.runs!r}: no finished run; train first, or name --remedies of rules alone")
    study = Study(
        given.work, given.control, runs, given.days, given.split, tuple(given.remedies), given.processes
    )  # fmt: skip
    print(write(study, given.out, only_kept=given.report))


if __name__ == "__main__":
    main()
