"""`heron export`: trained policies as files that other programs run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from heron_env.cli.application import Json, Trusted, on_behalf


def export(
    run: Annotated[str, typer.Argument(metavar="RUN", help="A run folder.")],
    onnx: Annotated[
        Path, typer.Option("--onnx", metavar="FILE.onnx", help="Where to; with several policies FILE-NAME.onnx.")
    ],
    trust: Trusted = None,
    as_json: Json = False,
) -> None:
    """Write a run's policies as ONNX: scales, masks, memory, and the rule that they correct if it is arithmetic.

    Names, units and versions are in the metadata; onnxruntime and numpy are all that is needed to run them.
    """
    from heron_env.lab.exporting.onnx_file import export_onnx
    from heron_env.lab.output import dumps
    from heron_env.lab.runs import RunFolder

    on_behalf(RunFolder.open(run))
    files = [str(file) for file in export_onnx(run, onnx)]
    typer.echo(dumps({"files": files}) if as_json else "\n".join(files))
