"""`python -m benchmarks`: how fast it is, beside what this machine could do and what others reach."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from heron_env.cli.application import Json, OneLineErrors

ROUNDS, QUICK_ROUNDS = 7, 2
SECONDS, QUICK_SECONDS = 0.5, 0.05


def bench(
    quick: Annotated[
        bool, typer.Option("--quick", help="Two short rounds of what is soon done; under a minute.")
    ] = False,
    only: Annotated[
        list[str] | None,
        typer.Option("--only", help="A comparison or group, as spread-3-1024 or spread; may be repeated."),
    ] = None,
    peers: Annotated[
        Path | None,
        typer.Option(help="Folder with virtual environments named mpe2, vmas, jaxmarl, jax; those found are asked."),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Folder for bench.json and bench.svg.")] = None,
    publish: Annotated[
        bool, typer.Option("--publish", help="Into benchmarks/results and docs/science/speed.md, from a clone.")
    ] = False,
    rounds: Annotated[int | None, typer.Option(min=1, help=f"Default: {ROUNDS}; quick: {QUICK_ROUNDS}.")] = None,
    as_json: Json = False,
) -> None:
    """Time everything, in turns with floors, ceilings and peers; print figures and their spread.

    Figures drift with the machine, ratios within one run hold.
    """
    from rich.console import Console

    from benchmarks import page
    from benchmarks.c_loop import compiler_facts
    from benchmarks.case import Setting
    from benchmarks.measure import measure_all
    from benchmarks.peers import found_peers, peer_versions
    from benchmarks.report import Report, cores, machine_facts
    from benchmarks.suite import chosen
    from benchmarks.table import rendered
    from heron_env.errors import ConfigError
    from heron_env.lab.output import dumps

    if publish and quick:
        raise ConfigError("--publish: the page has no figures of short rounds; leave --quick out")
    comparisons = chosen(only or (), quick=quick)
    setting = Setting(quick=quick, peers=found_peers(peers), threads=min(2, cores()))
    number, seconds = rounds or (QUICK_ROUNDS if quick else ROUNDS), QUICK_SECONDS if quick else SECONDS
    machine = {**machine_facts(), "peers": peer_versions(setting.peers), "c": compiler_facts()}
    errors = Console(stderr=True, highlight=False)
    with errors.status("") as status:
        results = measure_all(
            comparisons, setting, rounds=number, seconds=seconds,
            progress=lambda name, done, total: status.update(f"{done + 1} of {total}: {name} ..."),
        )  # fmt: skip
    report = Report(results, quick, number, seconds, machine)
    if out is not None:
        for path in report.write(out):
            errors.print(f"wrote {path}")
    if publish:
        page.publish(report)
    if as_json:
        typer.echo(dumps(report.to_dict()))
    else:
        Console(highlight=False).print(rendered(report))


app = typer.Typer(cls=OneLineErrors, add_completion=False)
app.callback(invoke_without_command=True)(bench)

if __name__ == "__main__":
    app(prog_name="python -m benchmarks")
