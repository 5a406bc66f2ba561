"""`heron board`: entries that can be played again, their page, and the policies that are shipped."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from heron_env.cli.application import Json, OneLineErrors, examples

board = typer.Typer(cls=OneLineErrors, no_args_is_help=True, help="Results that anybody can run again.")
CODES = {"verified": 0, "refused": 1, "close": 3}
SPREAD, FOLDER = "heron/Spread-v0", "runs/board/heron/Spread-v0"
ADD = (
    f"heron board add random --env {SPREAD} --condition none",
    "heron board add runs/mine --condition constant --out runs/board",
)
VERIFY = f"heron board verify {FOLDER}/random@none.json", f"heron board verify {FOLDER}/random@none.json --cases 64"
PAGE = "heron board page runs/board/*/*/*.json", f"heron board page {FOLDER}/*.json --out spread.html"


@board.command("add", epilog=examples(*ADD))
def add(
    policy: Annotated[str, typer.Argument(metavar="RUN", help="A run folder, a checkpoint, or a baseline's name.")],
    condition: Annotated[str, typer.Option(help="none, constant, jitter or bursty.")],
    env: Annotated[str | None, typer.Option(help="The world, for a baseline.")] = None,
    name: Annotated[str | None, typer.Option(help="Of the policy; default: that of the folder, file or rule.")] = None,
    out: Annotated[Path, typer.Option(help="Folder of entries and checkpoints.")] = Path("runs/board"),
) -> None:
    """Play a policy over the world's test cases under a condition; write ENTRY.json, and the checkpoint beside it."""
    from heron_env.lab.board import add_entry

    typer.echo(add_entry(policy, condition, out, env=env, name=name))


@board.command("verify", epilog=examples(*VERIFY))
def verify(
    entry: Annotated[Path, typer.Argument(metavar="ENTRY.json", help="An entry; its checkpoint lies beside it.")],
    cases: Annotated[int, typer.Option(min=1, help="So many are played again, drawn from the entry's digest.")] = 8,
    as_json: Json = False,
) -> None:
    """See that an entry is the board's and agrees with itself, and play a sample of its cases again.

    Exit code 1: it is refused, for what is named. 3: it comes out within the tolerance, on another kind of machine.
    """
    from heron_env.lab.board import TOLERANCE, verify_entry
    from heron_env.lab.output import dumps

    done = verify_entry(entry, cases)
    if as_json:
        typer.echo(dumps({"verdict": done.word, "cases": done.cases, "faults": done.faults, "here": done.elsewhere}))
    else:
        how = "bit for bit" if done.exact or not done.elsewhere else f"within {TOLERANCE:g}"
        here = f"; here is {done.elsewhere}" if done.elsewhere else ""
        first = f"{done.word}: {len(done.cases)} cases were played again, compared {how}{here}"
        typer.echo("\n".join([first, *done.faults]))
    raise typer.Exit(CODES[done.word])


@board.command("page", epilog=examples(*PAGE))
def page(
    entries: Annotated[list[Path], typer.Argument(metavar="ENTRY.json...")],
    out: Annotated[Path, typer.Option(help="The page.")] = Path("board.html"),
) -> None:
    """Rank the policies by world and condition, with intervals and ties, and name what is missing."""
    from heron_env.files.writing import write
    from heron_env.lab.show.board_page import board_report
    from heron_env.lab.show.document import render

    typer.echo(write(out, render(board_report(entries))))


@board.command("list", epilog=examples("heron board list", "heron board list --json"))
def list_policies(as_json: Json = False) -> None:
    """List the shipped policies, with what they earn under the condition that they were trained under."""
    from heron_env.lab.board import cards
    from heron_env.lab.output import TextTable, dumps, terminal
    from heron_env.lab.policies import SHIPPED

    rows: list[dict[str, Any]] = cards()
    if as_json:
        typer.echo(dumps(rows))
        return
    cells = [[str(row["policy"]).removeprefix(SHIPPED), str(row["return [95 %]"])] for row in rows]
    for part in TextTable("", [SHIPPED, "return [95 %]"], cells, words=1).to_rich():
        terminal().print(part)
