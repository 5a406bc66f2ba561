"""`heron dcop`: colour a graph, and compare algorithms on several."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from heron_env.cli.application import Json, OneLineErrors, examples
from heron_env.errors import ConfigError

if TYPE_CHECKING:
    from heron_env.lab.dcop_comparison import ComparedAlgorithm

dcop = typer.Typer(cls=OneLineErrors, no_args_is_help=True, help="Solve graph-colouring problems, without agents.")
PROBLEM = "g15, ring50, or a file: .json, .yaml (pyDCOP's), .col (DIMACS)"
Seconds = Annotated[float | None, typer.Option(help="Seconds of wall time; then the best so far is the answer.")]
Cycles = Annotated[int, typer.Option(help="Most cycles, for algorithms that have cycles.")]
COLUMNS = ("instance", "algorithm", "conflicts", "sat_ratio", "norm_gap", "messages", "cycles", "seconds")


@dcop.command("solve", epilog=examples("heron dcop solve g15", "heron dcop solve ring50 --algo maxsum --seed 3"))
def solve(
    problem: Annotated[str, typer.Argument(help=PROBLEM)],
    algo: Annotated[str, typer.Option(help="greedy, dsa, mgm, maxsum, elimination or cpsat.")] = "dsa",
    seed: Annotated[int, typer.Option(help="Random seed.")] = 0,
    cycles: Cycles = 100,
    seconds: Seconds = None,
    as_json: Json = False,
) -> None:
    """Colour a graph; print the colours, and what is left of conflicts."""
    from heron_env.dcop import problem_of
    from heron_env.dcop import solve as solved

    instance = problem_of(problem)
    result = solved(instance, algo, seed=seed, cycles=cycles, seconds=seconds)
    sign, word, least = {"min": (1, "cost", "costs less"), "max": (-1, "utility", "has more")}[instance.objective]
    if as_json:
        from heron_env.lab.output import dumps

        figures: dict[str, Any] = {"algo": result.algo, "conflicts": result.conflicts}
        figures |= {word: sign * result.cost, "bound": sign * result.bound, "proven": result.proven}
        figures |= {"messages": result.messages, "cycles": result.cycles, "seconds": result.seconds}
        typer.echo(dumps({**figures, "curve": (sign * result.curve).tolist(), "assignment": dict(result.assignment)}))
        return
    for colour in instance.domain:
        typer.echo(f"{colour}: {' '.join(node for node, own in result.assignment.items() if own == colour) or '-'}")
    proven = f"; no assignment {least}" if result.proven else ""
    figure = f"{word} {sign * result.cost + 0.0:g}"
    typer.echo(f"{result.conflicts} of {len(instance.edges)} edges in conflict, {figure}{proven}")
    typer.echo(f"{algo}: {result.cycles} cycles, {result.messages} messages, {result.seconds:.3g} s")


@dcop.command(
    "compare", epilog=examples("heron dcop compare g15 ring50", "heron dcop compare g15 --algo dsa --figure g15.svg")
)
def compare(
    problems: Annotated[list[str], typer.Argument(help=PROBLEM)],
    algo: Annotated[list[str] | None, typer.Option(help="An algorithm; may be repeated. Default: all of them.")] = None,
    seeds: Annotated[int, typer.Option(help="Runs of each random algorithm.")] = 9,
    cycles: Cycles = 100,
    seconds: Seconds = None,
    figure: Annotated[Path | None, typer.Option(help="Draw the conflicts left after each cycle: .svg or .png.")] = None,
    as_json: Json = False,
) -> None:
    """Compare algorithms: medians over seeds, beside the optimum where it is known."""
    from heron_env.dcop import problem_of
    from heron_env.lab.dcop_comparison import anytime_figure, compared, written

    if figure is not None and figure.suffix not in (".svg", ".png"):
        raise ConfigError(f"--figure {figure}: figures are .svg or .png; end the name so")
    rows = compared([problem_of(name) for name in problems], algo, seeds=seeds, cycles=cycles, seconds=seconds)
    if figure is not None:
        written(anytime_figure(rows), figure)
    if as_json:
        from heron_env.lab.output import dumps

        typer.echo(dumps([row.to_dict() for row in rows]))
        return
    _print(rows)


def _print(rows: list[ComparedAlgorithm]) -> None:
    """A line a row, in columns."""
    lines = [COLUMNS, *(row.words() for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(COLUMNS))]
    for line in lines:
        cells = (
            word.ljust(width) if i < 2 else word.rjust(width)
            for i, (word, width) in enumerate(zip(line, widths, strict=True))
        )
        typer.echo("  ".join(cells).rstrip())
