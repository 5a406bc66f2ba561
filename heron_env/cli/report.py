"""`heron report`: what sweeps, trainings and traces left behind, as one page to read and to send."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from heron_env.cli.application import Json, Trusted


def report(
    runs: Annotated[
        list[str],
        typer.Argument(
            metavar="RUN...",
            help="Folders of `heron sweep`, `heron train` and `heron trace`, of one environment, in any order.",
        ),
    ],
    out: Annotated[Path, typer.Option(help="Folder for report.html and its figures.")] = Path("runs/report"),
    trust: Trusted = None,
    as_json: Json = False,
) -> None:
    """Write report.html, which needs nothing else, and each figure as SVG and PNG beside it.

    What isn't registered is neither built nor run, unless it is trusted: the page then tells what that left out.
    """
    from heron_env.lab.output import dumps
    from heron_env.lab.show.document import PAGE, write_report
    from heron_env.lab.show.report import read_sources, report_of

    made = report_of(read_sources(runs))
    files = write_report(out, made)
    if as_json:
        told = {"files": {name: str(path) for name, path in files.items()}, "finding": list(made.finding)}
        typer.echo(dumps(told))
        return
    for sentence in made.finding:
        typer.echo(sentence)
    typer.echo(f"wrote {files[PAGE]} and {len(files) - 1} files of figures beside it")
