"""What closes the gap between training and deployment? Remedies in EnergyManagement, measured on held-out days.

    python training/remedies.py                          # train, evaluate, report; killed and run again, it goes on
    python training/remedies.py --control zone           # one part of it
    python training/remedies.py --report                 # only the table and the figure of what is there

Trainings and evaluations are kept in --work and never repeated. The margin was tuned on validation days, the other
constants not at all; what is reported are test days.

The naive policies are the strongest rule and a PPO policy that corrects it, trained as usual: synchronously, in steps
of a quarter of an hour. Both decide every minute on what the transformer measured. Three conditions:

    late    what is decided takes effect 60 s later: one control step. A set-point that goes through a vendor's cloud to
            an inverter that ramps needs about so long.
    slow    messages take 3 s, a twentieth of the step, with 10 % jitter of delays and ticks. Reports then arrive 9 s
            after the measurement, when most ticks are over: decisions rest on the step before.
    stale   field control alone: 90 % of the messages of the transformers are lost (a station in a cellar) and the rest
            takes 5 s. A home's own meter is in the house: what it says is fresh.
    lossy   links of the homes too: messages take 5 s, 10 % of the homes' own are lost, of the transformers' 90 %.
            Zone control: half of those between zone and batteries.

Share of the gap closed, each with the naive policy's J of the same seed and day:

    (J_remedy(condition) - J_naive(condition)) / (J_naive(sync) - J_naive(condition))

as a ratio of means over seeds and days, with a t interval over both (`heron_env.evaluation.robust_stats`).
"""

import argparse
import json
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import remedies_report

from heron_env import ScheduleConfig, TrainingDelays, make
from heron_env.domains.energy_management.baselines import STRONGEST, TunedRule
from heron_env.domains.energy_management.rules import Tuning
from heron_env.errors import RunFolderError
from heron_env.evaluation import benchmark
from heron_env.evaluation.episodes import team_return
from heron_env.evaluation.policies import Baseline, PolicySpec, TrainedRun
from heron_env.evaluation.remedies import LocalFallback, Smoothing, WithoutAges
from heron_env.evaluation.runs import RunFolder, versions
from heron_env.learning.ppo import Hyperparameters, train

TITLES = {"late": "60 s late", "slow": "slow links", "stale": "stale zone", "lossy": "lossy links"}
INTRO = """# What closes the train-to-deploy gap

Made by `python training/remedies.py`: {days} {split} days, {seeds} training seeds for a PPO policy (rules need none).
Returns in EUR a day, means over seeds and days. "late": what is decided takes effect 60 s later. "slow": messages take
3 s, with 10 % jitter of delays and ticks. "stale": 90 % of the transformers' messages are lost, the rest takes 5 s; the
homes' own data are fresh. "lossy": the homes' messages take 5 s, too, and 10 % of them are lost; in zone control half
of those between zone and batteries. "Later ticks" come 15 s after the measurement instead of with it.

Share of the gap closed: (J_remedy - J_naive) / (J_naive(sync) - J_naive), both J in that condition: of the gap of the
naive policy of the same kind, and of the rule's. In brackets 95 % t intervals over seeds and days, a rule's over days
alone. Cost at sync: what a remedy loses where nothing is late. The margin was tuned on validation days, the other
constants not at all; the condition "stale" was added after the first results of "lossy", "slow" after a sweep's."""
ENV = "heron/EnergyManagement-v0"
SCHEMA = 1
CONTROLS = ("field", "zone")
SYNC, LATE, SLOW, STALE, LOSSY = "sync", "late", "slow", "stale", "lossy"
Fields = dict[str, Any]
"""Of a ScheduleConfig."""
SLOWLY: Fields = {"msg_delay": 3.0, "jitter_type": "gaussian", "jitter_ratio": 0.1}
CONDITIONS: dict[str, dict[str, dict[str, Fields]]] = {
    "field": {
        LATE: {"*": {"act_delay": 60.0}},
        SLOW: {"*": SLOWLY},
        STALE: {"coordinator": {"msg_delay": 5.0, "loss": 0.9}},
        LOSSY: {"*": {"msg_delay": 5.0, "loss": 0.1}, "coordinator": {"msg_delay": 5.0, "loss": 0.9}},
    },
    "zone": {
        LATE: {"*": {"act_delay": 60.0}},
        SLOW: {"*": SLOWLY},
        LOSSY: {"*": {"msg_delay": 5.0}, "field": {"msg_delay": 5.0, "loss": 0.5}},
    },
}
"""By control: schedules."""
AFTER_REPORTS = 15.0
"""s from the measurement to the tick: three messages bring the report, and the jitter of a tick is 6 s."""
RULE, LOCAL = Baseline(STRONGEST), Baseline("grid-friendly")

FINE = Hyperparameters(
    num_envs=128, n_steps=144, batch_size=4608, n_epochs=4, gamma=0.99 ** (60 / 900), gae_lambda=0.97,
    learning_rate=3e-4, final_learning_rate=3e-5,
)  # fmt: skip
"""For steps of a minute instead of a quarter of an hour: the same horizon in time."""


@dataclass(frozen=True)
class Course:
    """One kind of training."""

    steps: dict[str, int]
    start: str | None = None
    delays: TrainingDelays | None = None
    ages: bool = False
    dt: float = 900.0
    settings: Hyperparameters | None = None


COURSES = {
    "naive": Course({"field": 600_000, "zone": 200_000}),
    "late": Course(
        {"field": 600_000, "zone": 300_000}, start="naive", delays=TrainingDelays(action=1), dt=60.0, settings=FINE
    ),
    "aged": Course({"field": 600_000, "zone": 200_000}, delays=TrainingDelays(observation=(0, 1)), ages=True),
}  # fmt: skip


@dataclass(frozen=True)
class Remedy:
    """A policy and how it is run.

    Attributes:
        against: the naive one.
        policy: from the run folder.
        course: of its training; None: a rule.
        ages: does the environment show them?
        on_missing, phase: of the schedule.
        conditions: which ones it is meant for, where the control has them.
    """

    against: str
    policy: Callable[[str], PolicySpec]
    course: str | None = None
    ages: bool = False
    on_missing: str = "hold"
    phase: float = 0.0
    conditions: tuple[str, ...] = (LATE, SLOW, STALE, LOSSY)
    controls: tuple[str, ...] = CONTROLS


def _smooth(share: float) -> Callable[[PolicySpec], PolicySpec]:
    return lambda spec: Smoothing(spec, "Setpoint.power", share)


def _fallback(spec: PolicySpec) -> PolicySpec:
    return LocalFallback(WithoutAges(spec) if isinstance(spec, TrainedRun) else spec, LOCAL, oldest=120.0)


MARGIN = Tuning(follow=0.05, guard=0.1)
FIELD = ("field",)
REMEDIES = {
    "rule": Remedy("rule", lambda run: RULE),
    "rule, more margin": Remedy("rule", lambda run: TunedRule(STRONGEST, MARGIN)),
    "rule, smoothed": Remedy("rule", lambda run: _smooth(0.25)(RULE)),
    "rule, local fallback": Remedy(
        "rule", lambda run: _fallback(RULE), ages=True, conditions=(STALE, LOSSY), controls=FIELD
    ),
    "rule, no-op instead of hold": Remedy("rule", lambda run: RULE, on_missing="noop", conditions=(LOSSY,)),
    "rule, later ticks": Remedy("rule", lambda run: RULE, phase=AFTER_REPORTS, conditions=(SLOW,)),
    "PPO": Remedy("PPO", TrainedRun, "naive"),
    "PPO, trained with delays": Remedy("PPO", TrainedRun, "late", conditions=(LATE,)),
    "PPO, smoothed": Remedy("PPO", lambda run: _smooth(0.25)(TrainedRun(run)), "naive", conditions=(LATE,)),
    "PPO, local fallback": Remedy(
        "PPO", lambda run: _fallback(TrainedRun(run)), "naive", ages=True, conditions=(STALE,), controls=FIELD
    ),
    "PPO, trained with delays and ages": Remedy(
        "PPO", TrainedRun, "aged", ages=True, conditions=(SLOW, STALE), controls=FIELD
    ),
    "PPO, later ticks": Remedy("PPO", TrainedRun, "naive", phase=AFTER_REPORTS, conditions=(SLOW,)),
    "PPO, no-op instead of hold": Remedy(
        "PPO", TrainedRun, "naive", on_missing="noop", conditions=(LOSSY,), controls=("zone",)
    ),
}


def _schedule(control: str, condition: str, remedy: Remedy) -> dict[str | int, ScheduleConfig]:
    """Of a condition; of an ideal network for SYNC, which the synchronous clock has no phases for."""
    given = CONDITIONS[control].get(condition, {"*": {}})
    return {
        key: ScheduleConfig(**fields, on_missing=remedy.on_missing, phase=remedy.phase) for key, fields in given.items()
    }


@dataclass(frozen=True)
class Study:
    """What is measured and where it is kept: trainings as run folders, evaluations as a file for each policy and seed.

    Attributes:
        share: of the planned transitions; below 1 for a trial alone.
    """

    work: Path
    controls: tuple[str, ...] = CONTROLS
    seeds: tuple[int, ...] = (0, 1, 2, 3, 4)
    days: int = 8
    split: str = "test"
    share: float = 1.0
    remedies: tuple[str, ...] = tuple(REMEDIES)
    validation_episodes: int = 4

    def run(self, control: str, course: str, seed: int) -> Path:
        """The run folder of a training, trained now if it is not there yet."""
        kind, folder = COURSES[course], self.work / f"{control}-{course}-{seed}"
        steps = max(round(kind.steps[control] * self.share), 1)
        start = self.run(control, kind.start, seed) if kind.start else None
        try:
            if RunFolder.open(folder).config.transitions >= steps:
                return folder
        except RunFolderError:
            pass  # not trained yet, or not to the end
        options = {"control": control, **({"observe_age": True} if kind.ages else {})}
        began = time.process_time()
        train(
            ENV, folder, total_steps=steps, seed=seed, env_options=options, residual=STRONGEST, start_from=start,
            training_options={"dt": kind.dt, "physics_substeps": 1, "split": "train"}, training_delays=kind.delays,
            hyperparameters=kind.settings, validations=0,
            validation_episodes=self.validation_episodes, progress=False,
        )  # fmt: skip
        print(f"{folder}: trained in {time.process_time() - began:.0f} CPU-s", flush=True)
        return folder

    def kept(self, control: str, name: str, seed: int) -> dict[str, list[float]]:
        """What is measured already: returns by condition, one a day."""
        file = self._file(control, name, seed)
        returns: dict[str, list[float]] = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
        return returns

    def _file(self, control: str, name: str, seed: int) -> Path:
        return self.work / "evaluations" / f"{control}, {name}, {seed}.json"

    def measured(self, control: str, name: str, seed: int) -> dict[str, list[float]]:
        """The same, once all is measured: of a training's seed, or of a rule (seed 0)."""
        file, returns = self._file(control, name, seed), self.kept(control, name, seed)
        remedy = REMEDIES[name]
        missing = [c for c in (SYNC, *remedy.conditions) if c not in returns and c in (SYNC, *CONDITIONS[control])]
        if not missing:
            return returns
        policy = remedy.policy("" if remedy.course is None else str(self.run(control, remedy.course, seed)))
        options = {"control": control, **({"observe_age": True} if remedy.ages else {})}
        returns.update({condition: [] for condition in missing})
        for case in benchmark.cases(make(ENV, **options), self.days, split=self.split):
            env = make(ENV, **options, **case.options)
            policies = policy.build(env, case.seed)
            for condition in missing:
                if condition == SYNC and not remedy.phase:
                    result = env.run_synchronous(policies, seed=case.seed, record=("rewards",))
                else:
                    schedule = _schedule(control, condition, remedy)
                    result = env.run_event_driven(policies, seed=case.seed, schedule=schedule, record=("rewards",))
                returns[condition].append(team_return(env, result))
        file.parent.mkdir(parents=True, exist_ok=True)
        half = file.with_suffix(".part")
        half.write_text(json.dumps(returns), encoding="utf-8")
        os.replace(half, file)  # there is never half an evaluation
        print(f"{file.stem}:", {c: round(float(np.mean(v)), 2) for c, v in returns.items()}, flush=True)
        return returns

    def results(self, only_kept: bool = False) -> dict[str, Any]:
        """All returns `[seed][day]` by control, remedy and condition; rules have one row.

        `only_kept`: measure nothing; what is not there yet is left out. "seeds" says which rows there are.
        """
        table: dict[str, Any] = {}
        for control in self.controls:
            table[control] = {}
            for name in self.remedies:
                if control not in REMEDIES[name].controls:
                    continue
                measure = self.kept if only_kept else self.measured
                rows = {seed: measure(control, name, seed) for seed in (self.seeds if REMEDIES[name].course else (0,))}
                rows = {seed: row for seed, row in rows.items() if row}
                wanted = [c for c in (SYNC, *REMEDIES[name].conditions) if all(c in row for row in rows.values())]
                if rows:
                    returns = {condition: [row[condition] for row in rows.values()] for condition in wanted}
                    table[control][name] = {"seeds": list(rows), **returns}
        return table


def write(study: Study, out: Path, only_kept: bool = False) -> str:
    """remedies.json, .md and .svg of what is measured; the text of the table."""
    results = study.results(only_kept)
    found = remedies_report.lines(results, {name: remedy.against for name, remedy in REMEDIES.items()})
    intro = INTRO.format(seeds=len(study.seeds), days=study.days, split=study.split)
    text = remedies_report.markdown(found, intro)
    data = {
        "schema_version": SCHEMA, "env_id": ENV, "conditions": CONDITIONS, "split": study.split, "days": study.days,
        "seeds": list(study.seeds), "transitions": {name: course.steps for name, course in COURSES.items()},
        "returns": results, "table": remedies_report.as_json(found), "versions": versions(),
    }  # fmt: skip
    out.mkdir(parents=True, exist_ok=True)
    (out / "remedies.json").write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
    (out / "remedies.md").write_text(text, encoding="utf-8")
    (out / "remedies.svg").write_bytes(remedies_report.figure(found, TITLES))
    return text


def main() -> None:
    """Train, evaluate, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--control", nargs="+", choices=CONTROLS, default=list(CONTROLS))
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2, 3, 4])
    parser.add_argument("--days", type=int, default=8, help="held-out days")
    parser.add_argument("--split", choices=("validation", "test"), default="test")
    parser.add_argument("--share", type=float, default=1.0, help="of the planned transitions, for a trial")
    parser.add_argument("--remedies", nargs="+", choices=list(REMEDIES), default=list(REMEDIES))
    parser.add_argument("--report", action="store_true", help="measure nothing, write what is there")
    parser.add_argument("--work", type=Path, default=Path("runs/remedies"))
    parser.add_argument("--out", type=Path, default=Path("training/results/remedies"))
    given = parser.parse_args()
    study = Study(
        given.work, tuple(given.control), tuple(given.seeds), given.days, given.split, given.share,
        tuple(given.remedies),
    )  # fmt: skip
    print(write(study, given.out, only_kept=given.report))


if __name__ == "__main__":
    main()
