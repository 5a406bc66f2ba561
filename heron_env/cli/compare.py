"""`heron compare`: ask another endpoint what a recorded agent was asked, and compare the answers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from heron_env.cli.application import Allowed, Json
from heron_env.errors import ConfigError

if TYPE_CHECKING:
    from heron_env.injection.comparing import Agreement, Comparison
    from heron_env.lab.output import TextTable

SHOWN = 10
"""So many decisions are told, those that are furthest apart."""
WIDE = 40
"""Letters of an answer that are told."""
AGREEMENT = (
    "Agree: share of the compared decisions with equal answers. Distance: mean and greatest over actions, 0 to 1 "
    "(numbers as shares of their ranges, choices 0 or 1). Compared are decisions that both answered. p50, p99: "
    "latency, failed answers included. Each decision is compared at the point that the recorded agent had reached; "
    "`heron sweep` says what the other one would earn."
)


def compare(
    fixture: Annotated[Path, typer.Argument(help="A recording of an agent: .jsonl or .json.")],
    endpoint: Annotated[str, typer.Argument(metavar="[NAME=]URL", help="The agent that receives the same requests.")],
    within: Annotated[
        float, typer.Option(help="Numbers agree if they differ by at most this share of their range, 0 to 1.")
    ] = 0.0,
    least: Annotated[
        float, typer.Option(min=0.0, max=1.0, help="Exit code 1 if a smaller share of the decisions agrees.")
    ] = 0.0,
    api_key_env: Annotated[
        str | None, typer.Option(help="The environment variable that holds the endpoint's key.")
    ] = None,
    allow: Allowed = None,
    as_json: Json = False,
) -> None:
    """Send an agent the requests that a fixture recorded, and compare its answers with the recorded ones.

    Exit code 1 if an answer is missing (late, malformed, an error), or fewer agree than --least.
    """
    from heron_env.injection import Endpoint
    from heron_env.injection import compare as compared
    from heron_env.lab.output import dumps, terminal
    from heron_env.lab.policies import kind_of, split_name

    kind, value = kind_of(endpoint)
    if kind != "http":
        raise ConfigError(f"{endpoint!r:.60}: is no address; write http(s)://HOST:PORT/..., or NAME=URL")
    name, url = split_name(value)
    comparison = compared(fixture, Endpoint(url, api_key_env=api_key_env, model=name), within=within)
    if as_json:
        typer.echo(dumps(comparison.to_dict()))
    else:
        console = terminal()
        for table in (_by_agent(comparison), _furthest(comparison)):
            for part in table.to_rich() if table.rows else ():
                console.print(part)
    answered = all(point.answer is not None for point in comparison.points)
    raise typer.Exit(0 if answered and (comparison.total.agreement or 0.0) >= least else 1)


def _by_agent(comparison: Comparison) -> TextTable:
    from heron_env.lab.output import TextTable
    from heron_env.lab.sweep.tables import NONE, percent

    def row(name: str, of: Agreement) -> list[str]:
        distances = (NONE if value is None else f"{value:.3g}" for value in (of.distance, of.most))
        latencies = (of.answers.latency_p50_ms, of.answers.latency_p99_ms)
        answers = ", ".join(f"{kind} {count}" for kind, count in of.answers.counts.items())
        return [
            name, answers, f"{of.compared} of {of.decisions}", percent(of.agreement), *distances,
            *(NONE if ms is None else f"{ms:.3g} ms" for ms in latencies),
        ]  # fmt: skip

    both = [agent["model"] or agent["host"] for agent in (comparison.rival, comparison.baseline)]
    missing = comparison.total.not_recorded
    notes = [
        f"Both received requests of the privacy tier {comparison.privacy_tier!r}.",
        *([] if comparison.whole else ["The recording is incomplete, so the comparison is incomplete, too."]),
        *([f"At {missing} decisions a fallback replaced the recorded agent."] if missing else []),
    ]
    rows = [row("all", comparison.total), *(row(name, of) for name, of in comparison.agents.items())]
    head = ["agent", "answers", "compared", "agree", "distance", "most", "p50", "p99"]
    return TextTable(f"{both[0]} beside {both[1]}", head, rows, 2, " ".join([AGREEMENT, *notes]))


def _furthest(comparison: Comparison) -> TextTable:
    from heron_env.lab.output import TextTable
    from heron_env.lab.sweep.tables import NONE

    apart = sorted(
        (point for point in comparison.points if point.agrees is False),
        key=lambda point: -1.0 if point.distance is None else -point.distance,
    )
    rows = [
        [
            point.agent, _short(point.baseline), _short(point.answer),
            *map(str, (point.seed, point.episode, point.number)),
            NONE if point.distance is None else f"{point.distance:.3g}",
        ]
        for point in apart[:SHOWN]
    ]  # fmt: skip
    head = ["agent", "recorded", "answered", "seed", "episode", "decision", "distance"]
    more = f"and {len(apart) - SHOWN} more decisions; --json has all of them." if len(apart) > SHOWN else ""
    return TextTable("Where they differ most", head, rows, 3, more)


def _short(answer: Any) -> str:
    """An action or a text, numbers with four digits."""
    match answer:
        case float():
            text = f"{answer:.4g}"
        case list():
            text = f"[{', '.join(map(_short, answer))}]"
        case dict():
            text = ", ".join(f"{name} {_short(part)}" for name, part in answer.items())
        case _:
            text = str(answer)
    return f"{text:.{WIDE}}"
