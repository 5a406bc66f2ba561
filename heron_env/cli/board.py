"""`heron board`: entries that can be played again, their page, and the policies that are shipped."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Annotated, Any

import typer

from heron_env.cli.application import Json, OneLineErrors, examples

board = typer.Typer(cls=OneLineErrors, no_args_is_help=True, help="A board of results that anybody can verify.")
CODES = {"verified": 0, "refused": 1, "close": 3}
SPREAD, FOLDER = "heron/Spread-v0", "runs/board/heron/Spread-v0"
ADD = (
    f"heron board add random --env {SPREAD} --condition none",
    "heron board add runs/mine --condition constant --out runs/board",
)
VERIFY = f"heron board verify {FOLDER}/random@none.json --cases 64", "heron board verify --all --weights checkpoints"
PAGE = "heron board page runs/board/*/*/*.json", "heron board page training/results/board/* --out all.html"


@board.command("add", epilog=examples(*ADD))
def add(
    policy: Annotated[str, typer.Argument(metavar="RUN", help="A run folder, a checkpoint, or a baseline's name.")],
    condition: Annotated[str, typer.Option(help="none, constant, jitter or bursty.")],
    env: Annotated[str | None, typer.Option(help="The world, for a baseline.")] = None,
    name: Annotated[str | None, typer.Option(help="Name of the policy; default: of the folder, file or rule.")] = None,
    out: Annotated[Path, typer.Option(help="Folder of entries and checkpoints.")] = Path("runs/board"),
) -> None:
    """Play a policy over the world's test cases under a condition; write ENTRY.json and its checkpoint."""
    from heron_env.lab.board import add_entry

    typer.echo(add_entry(policy, condition, out, env=env, name=name))


@board.command("verify", epilog=examples(*VERIFY))
def verify(
    entry: Annotated[
        Path | None, typer.Argument(metavar="ENTRY.json", help="An entry, in the folder of its checkpoint.")
    ] = None,
    cases: Annotated[int, typer.Option(min=1, help="How many cases to play again, drawn from the entry's digest.")] = 8,
    every: Annotated[
        bool, typer.Option("--all", help="All entries of the board, in a clone of the repository.")
    ] = False,
    weights: Annotated[Path | None, typer.Option(help="A folder of checkpoints, ENV/NAME.safetensors.")] = None,
    as_json: Json = False,
) -> None:
    """Check an entry, and play a sample of its cases again.

    Exit code 1: refused, with the reason. 3: equal within the tolerance, on another kind of machine.
    """
    from heron_env.errors import ConfigError
    from heron_env.lab.board import TOLERANCE, verify_entry
    from heron_env.lab.output import dumps

    if every is not (entry is None):
        raise ConfigError("heron board verify: give one ENTRY.json, or --all")
    if entry is None:
        _verify_all(cases, weights, as_json)
        return
    done = verify_entry(entry, cases, weights)
    if as_json:
        typer.echo(dumps({"verdict": done.word, "cases": done.cases, "faults": done.faults, "here": done.elsewhere}))
    else:
        how = "bit for bit" if done.exact or not done.elsewhere else f"within {TOLERANCE:g}"
        here = f"; here is {done.elsewhere}" if done.elsewhere else ""
        first = f"{done.word}: {len(done.cases)} cases were played again, compared {how}{here}"
        typer.echo("\n".join([first, *done.faults]))
    raise typer.Exit(CODES[done.word])


def _verify_all(cases: int, weights: Path | None, as_json: bool) -> None:
    """Of the board's own entries."""
    from heron_env.lab.board import own_files, placed, verified
    from heron_env.lab.output import dumps

    words, faults, missing = Counter[str](), list[str](), dict[str, None]()
    for one in (one for file in own_files() for one in placed(file, weights)):
        done = verified(one, cases)
        words[done.word] += 1
        faults += [f"{one.name}: {fault}" for fault in done.faults]
        if one.missing:
            missing[f"{one.entry.env}/{one.entry.checkpoint}"] = None
    if as_json:
        typer.echo(dumps({"verdicts": words, "faults": faults, "missing": list(missing)}))
    else:
        typer.echo(f"{words.total()} entries: " + ", ".join(f"{count} {word}" for word, count in words.items()))
        if missing:
            typer.echo(f"Not played: the {len(missing)} checkpoints below. --weights takes a folder of them.")
        typer.echo("\n".join([*faults, *missing]))
    raise typer.Exit(next((CODES[word] for word in ("refused", "close") if words[word]), 0))


@board.command("page", epilog=examples(*PAGE))
def page(
    entries: Annotated[list[Path], typer.Argument(metavar="ENTRY.json...", help="Entries, or packed files of them.")],
    out: Annotated[Path, typer.Option(help="The page to write.")] = Path("board.html"),
) -> None:
    """Rank the policies by world and condition, with intervals and ties; list what is missing."""
    from heron_env.files.writing import write
    from heron_env.lab.show.board_page import board_report
    from heron_env.lab.show.document import render

    typer.echo(write(out, render(board_report(entries))))


@board.command("list", epilog=examples("heron board list", "heron board list --json"))
def list_policies(as_json: Json = False) -> None:
    """List the shipped policies, with the condition that they were trained under."""
    from heron_env.lab.board import cards
    from heron_env.lab.output import TextTable, dumps, terminal
    from heron_env.lab.policies import SHIPPED

    rows: list[dict[str, Any]] = cards()
    if as_json:
        typer.echo(dumps(rows))
        return
    cells = [[str(row["policy"]).removeprefix(SHIPPED), str(row["trained"])] for row in rows]
    for part in TextTable("", [SHIPPED, "trained under"], cells, words=2).to_rich():
        terminal().print(part)
