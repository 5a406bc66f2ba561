"""`heron demo`, `heron train` and `heron eval`: making policies, and judging them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from heron_env.cli.application import ENVIRONMENT, EnvOptions, Json, built, parsed_options
from heron_env.errors import ConfigError

if TYPE_CHECKING:
    from heron_env.envs.training_delays import TrainingDelays
    from heron_env.evaluation.evaluate import Progress
    from heron_env.evaluation.table import Table

DEFAULT_STEPS = 1_750_000
Seed = Annotated[int, typer.Option(min=0, help="Of networks, exploration and episodes.")]


def demo(
    short: Annotated[bool, typer.Option("--short", help="A few seconds of training and two days, for CI.")] = False,
    seed: Seed = 0,
    out: Annotated[Path, typer.Option(help="Folder for the policy, the table and the report.")] = Path("runs/demo"),
    as_json: Json = False,
) -> None:
    """Train on the synchronous clock, evaluate on both, take the gap apart, and write a report; about four minutes.

    Exit code 1 if the trained policy does not beat random and do-nothing.
    """
    from heron_env.learning.demo import run_demo

    code = run_demo(out, short=short, seed=seed, quiet=as_json)
    table = out / "table.json"
    if as_json and table.is_file():
        typer.echo(table.read_text(encoding="utf-8"), nl=False)
    raise typer.Exit(code)


def train(
    env: Annotated[str, typer.Argument(help=f"{ENVIRONMENT}.")],
    out: Annotated[Path | None, typer.Option(help="The run folder; default: runs/NAME-seedN.")] = None,
    seed: Seed = 0,
    steps: Annotated[
        int, typer.Option(min=1, help="Transitions of each group, one agent's step being one.")
    ] = DEFAULT_STEPS,
    time_limit: Annotated[float | None, typer.Option(help="Stop after so many seconds, if not done before.")] = None,
    residual: Annotated[
        str, typer.Option(help="The baseline that the policy corrects; none: decide alone; default: the environment's.")
    ] = "default",
    critic: Annotated[
        str, typer.Option(help="local: values from what the agent sees; central: from the state too. Actors never do.")
    ] = "local",
    train_delays: Annotated[
        str | None,
        typer.Option(help="How late agents see and act while training, in control steps: obs=1,act=0-2 (least-most)."),
    ] = None,
    start_from: Annotated[
        Path | None,
        typer.Option(help="A finished run of the same environment: its weights and scales are gone on with."),
    ] = None,
    option: EnvOptions = None,
    as_json: Json = False,
) -> None:
    """Train one PPO policy per group and leave a run folder; prints what random and rules earn beside it."""
    from heron_env.evaluation.table import dumps
    from heron_env.learning.ppo import train as run_training

    options, delays = parsed_options(option), _training_delays(train_delays)
    built(env, options)  # what is wrong with them is told before torch is imported
    folder = out or Path("runs") / f"{env.rpartition('/')[2].replace(':', '-')}-seed{seed}"
    if (folder / "config.json").exists():
        raise ConfigError(f"{folder} holds a finished run: name another folder with --out, or remove that one")
    run = run_training(
        env, folder, total_steps=steps, seed=seed, env_options=options, time_limit=time_limit,
        residual=None if residual == "none" else residual, critic=critic, training_delays=delays,
        start_from=start_from, progress=not as_json,
    )  # fmt: skip
    if as_json:
        told = {
            "run_dir": str(run.path),
            **run.config.model_dump(
                include={
                    "env_id",
                    "seed",
                    "critic",
                    "training_delays",
                    "start_from",
                    "transitions",
                    "seconds",
                    "validation",
                }
            ),
        }
        typer.echo(dumps(told))
        return
    typer.echo(
        f"{run.path}: {run.config.transitions:,} transitions in {run.config.seconds:g} s. Next: heron eval {run.path}"
    )


def evaluate(
    policies: Annotated[list[str], typer.Argument(help="Run folders, or names of baselines of --env.")],
    env: Annotated[str | None, typer.Option(help="The environment; default: that of the first run folder.")] = None,
    delays: Annotated[
        str | None,
        typer.Option(
            help="Seconds from observation to effect, separated by commas; default: 0, 1/2, 1 and 2 control steps."
        ),
    ] = None,
    cases: Annotated[int, typer.Option(min=1, help="Held-out cases (days).")] = 10,
    repeats: Annotated[int, typer.Option(min=1, help="Seeds for each case.")] = 1,
    split: Annotated[str, typer.Option(help="test or validation; tune on validation only.")] = "test",
    seed: Annotated[
        int, typer.Option(min=0, help="Added to the cases' seeds: other draws of the same days, without known optima.")
    ] = 0,
    processes: Annotated[int, typer.Option(min=1, help="Worker processes; the numbers do not depend on it.")] = 2,
    out: Annotated[Path | None, typer.Option(help="Folder for table.json, report.html and its figures.")] = None,
    option: EnvOptions = None,
    as_json: Json = False,
) -> None:
    """Evaluate policies on both clocks over held-out cases; the best rule, do-nothing and random come along.

    Loading a run folder runs code: load what you trust.
    """
    from rich.console import Console
    from rich.progress import Progress

    from heron_env.evaluation.clocks import usual_delays

    request = _Request(policies, env, parsed_options(option))
    asked = usual_delays(request.env.dt) if delays is None else _seconds(delays)
    stderr = Console(stderr=True)
    with Progress(console=stderr, transient=True, disable=not stderr.is_terminal) as bar:
        task = bar.add_task("episodes")
        table = request.evaluate(
            asked, (cases, split, repeats, seed), processes,
            lambda done, total: bar.update(task, completed=done, total=total),
        )  # fmt: skip
    if out is not None:
        request.write(out, table)
    if as_json:
        typer.echo(table.to_json())
        return
    Console(highlight=False).print(table.to_rich())
    typer.echo(request.words(table))
    if out is not None:
        typer.echo(f"{out / 'report.html'}, {out / 'table.json'}")


def _training_delays(text: str | None) -> TrainingDelays | None:
    """`obs=1,act=0-2` as TrainingDelays. Raises ConfigError."""
    from heron_env.envs.training_delays import TrainingDelays

    if text is None:
        return None
    names, found = {"obs": "observation", "act": "action"}, dict[str, Any]()
    for part in text.split(","):
        name, _, steps = part.strip().partition("=")
        least, _, most = steps.partition("-")
        if name not in names or not least.isdecimal() or not (most or least).isdecimal():
            raise ConfigError(
                f"--train-delays {text!r}: must read obs=1,act=0-2: whole control steps, or the least and the most"
            )
        found[names[name]] = (int(least), int(most)) if most else int(least)
    return TrainingDelays(**found)


def _seconds(text: str) -> tuple[float, ...]:
    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError as error:
        raise ConfigError(f"--delays {text!r}: must be seconds separated by commas, as 0,30,60") from error


class _Request:
    """What `heron eval` was asked for: which environment, and which policies besides those named."""

    def __init__(self, names: list[str], env_id: str | None, options: dict[str, Any]) -> None:
        from heron_env.evaluation import benchmark
        from heron_env.evaluation.runs import RunFolder

        self.runs = {name: RunFolder.open(name) for name in names if Path(name).is_dir()}
        first = next(iter(self.runs.values()), None)
        if env_id is None and first is None:
            raise ConfigError(f"none of {names} is a run folder: name the environment with --env")
        self.env_id = env_id or (first.config.env_id if first else "")
        self.options = {**(first.config.env_options if first else {}), **options}
        self.env = built(self.env_id, self.options)
        self.rule = self.env.benchmark().strongest
        self.names = list(dict.fromkeys([*names, *([self.rule] if self.rule else [])]))
        self.sync_only = [name for name in (benchmark.NOTHING, benchmark.RANDOM) if name not in self.names]

    def evaluate(
        self, delays: Sequence[float], chosen: tuple[int, str, int, int], processes: int, progress: Progress
    ) -> Table:
        """The table; `chosen` is (cases, split, repeats, shift of the seeds)."""
        from heron_env.evaluation import benchmark
        from heron_env.evaluation.evaluate import evaluate

        number, split, repeats, shift = chosen
        cases = [
            replace(c, seed=c.seed + shift) for c in benchmark.cases(self.env, number, split=split, repeats=repeats)
        ]
        return evaluate(
            self.env_id, {name: name for name in [*self.names, *self.sync_only]}, clocks=("sync", *delays), cases=cases,
            sync_only=self.sync_only, processes=processes, options=self.options, progress=progress,
        )  # fmt: skip

    def words(self, table: Table) -> str:
        """What was found, about the first policy."""
        from heron_env.evaluation.finding import finding

        return finding(table, self.names[0], self.rule if self.rule != self.names[0] else None)

    def write(self, out: Path, table: Table) -> None:
        """table.json, report.html and its figures."""
        from heron_env.evaluation.policies import policy_spec
        from heron_env.evaluation.reports.document import write_report
        from heron_env.evaluation.reports.whole import table_report

        table.write(out / "table.json")
        name = self.names[0]
        title, rival = f"{self.env_id}: {name} on two clocks", self.rule if self.rule != name else None
        write_report(out, table_report(title, table, name, policy_spec(name), rival=rival, run=self.runs.get(name)))
