"""`heron eval`: what policies earn on held-out cases, and what late actions cost them; a sweep with few words."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from heron_env.cli.application import EnvOptions, Json, Trusted, built, on_behalf, parsed_options
from heron_env.cli.sweep import Pool, Processes, finished, named_policies, run_folders, show
from heron_env.errors import ConfigError

if TYPE_CHECKING:
    from heron_env.lab.gap.sweep import Sweep
    from heron_env.lab.runs import RunFolder

DELAYS = "delays"


def evaluate(
    policies: Annotated[
        list[str],
        typer.Argument(
            help="Run folders, names of baselines of --env, [NAME=]http(s)://HOST:PORT/... (endpoints), agents.yaml or "
            "fixtures (.jsonl, .json)."
        ),
    ],
    env: Annotated[str | None, typer.Option(help="The environment; default: that of the first run folder.")] = None,
    delays: Annotated[
        str | None,
        typer.Option(help="By how many seconds actions are late, as 0,30,60; default: 0, 1/2, 1 and 2 control steps."),
    ] = None,
    cases: Annotated[int, typer.Option(min=1, help="Held-out cases (days).")] = 10,
    repeats: Annotated[int, typer.Option(min=1, help="Seeds for each case.")] = 1,
    split: Annotated[str, typer.Option(help="test or validation; tune on validation only.")] = "test",
    seed: Annotated[
        int, typer.Option(min=0, help="Added to the cases' seeds: other draws of the same days, without known optima.")
    ] = 0,
    pool: Pool = False,
    processes: Processes = 2,
    out: Annotated[Path | None, typer.Option(help="Folder for the sweep, report.html and its figures.")] = None,
    option: EnvOptions = None,
    trust: Trusted = None,
    as_json: Json = False,
) -> None:
    """Evaluate policies on both clocks over held-out cases; the best rule, do-nothing and random come along.

    Other causes than late actions: heron sweep.
    Of what a run folder names, only registered environments run, and what this command trusts or names itself.
    """
    runs = run_folders(policies)
    asked = _asked(policies, runs, env, parsed_options(option), delays, (cases, split, repeats, seed, pool))
    result = finished(asked, out, processes)
    files = []
    if out is not None:
        from heron_env.lab.reports.document import PAGE, write_report
        from heron_env.lab.reports.whole import Sources, report_of

        of_it = [run for run in runs if run.config.env_id == asked.env.id]
        write_report(out, report_of(Sources(sweeps=[result], runs=of_it)))
        files = [out / PAGE, out / "table.json"]
    show(result, files, as_json)


def _asked(
    names: list[str],
    runs: list[RunFolder],
    env_id: str | None,
    options: dict[str, Any],
    delays: str | None,
    chosen: tuple[int, str, int, int, bool],
) -> Sweep:
    """The sweep that the words mean. Raises ConfigError.

    Args:
        chosen: cases, split, repeats, shift of the seeds, and whether run folders are pooled.
    """
    from heron_env.lab import benchmark
    from heron_env.lab.gap.conditions import along
    from heron_env.lab.gap.presets import preset
    from heron_env.lab.gap.sweep import Sweep

    if env_id is None and not runs:
        raise ConfigError(f"none of {names} is a run folder: name the environment with --env")
    env_id = env_id or runs[0].env_id
    if runs:
        on_behalf(runs[0])
        options = {**runs[0].config.env_options, **options}
    env = built(env_id, options)
    rule, (number, split, repeats, shift, pool) = env.benchmark().strongest, chosen
    compared = list(dict.fromkeys([*names, *([rule] if rule else [])]))
    beside = [name for name in (benchmark.NOTHING, benchmark.RANDOM) if name not in compared]
    cases = [replace(c, seed=c.seed + shift) for c in benchmark.cases(env, number, split=split, repeats=repeats)]
    conditions = preset(DELAYS).conditions(env.dt) if delays is None else along(act_delay=_seconds(delays))
    return Sweep.of(
        env_id, named_policies([*compared, *beside], pool), conditions, cases=cases, sync_only=beside,
        options=options, preset=DELAYS if delays is None else None,
    )  # fmt: skip


def _seconds(text: str) -> tuple[float, ...]:
    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError as error:
        raise ConfigError(f"--delays {text!r}: must be seconds separated by commas, as 0,30,60") from error
