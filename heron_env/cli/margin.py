"""`heron margin`: how much delay, loss or jitter a policy tolerates."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from heron_env.cli.application import POLICY, Allowed, EnvArgument, EnvOptions, Json, Trusted, built, parsed_options
from heron_env.cli.sweep import CasesOption, RepeatsOption, SplitOption
from heron_env.errors import ConfigError
from heron_env.files.reading import decimal

if TYPE_CHECKING:
    from heron_env.lab.sweep.conditions import Condition


PolicyArgument = Annotated[
    str,
    typer.Argument(help=f"{POLICY}; NAME=RUN,RUN,... (training seeds of one algorithm)."),
]
FaultOption = Annotated[
    str, typer.Option(help="obs_delay, msg_delay, act_delay, thinking (s), jitter, loss, tick_ratio or noise.")
]
KeepOption = Annotated[str, typer.Option(help="Share of its gain over doing nothing to keep: 95% or 0.95.")]
LargestOption = Annotated[
    float | None, typer.Option(help="Largest amount to try; default: four control steps of a delay, else 0.8.")
]
UnderOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="CAUSE=AMOUNT", help="Another fault, the same at every amount: msg_delay=3, rate=1000; may be repeated."
    ),
]
PlanOption = Annotated[
    int | None,
    typer.Option(
        min=2, metavar="K", help="A function (policy.py:act) answers several actions, [k, size]; K of them are sent."
    ),
]
MergeOption = Annotated[
    str | None,
    typer.Option(
        help="With --plan, what becomes of a plan when the next arrives: drop (default), restart, append, blend, "
        "ensemble; or freeze: none comes before it has ended."
    ),
]
WorkersOption = Annotated[int, typer.Option(min=1, help="Worker processes, started again for each test.")]
MarginOutOption = Annotated[Path | None, typer.Option(help="Folder for margin.json, which `heron report` reads.")]


def margin(
    env: EnvArgument,
    policy: PolicyArgument,
    fault: FaultOption = "act_delay",
    keep: KeepOption = "95%",
    largest: LargestOption = None,
    under: UnderOption = None,
    cases: CasesOption = 64,
    repeats: RepeatsOption = 1,
    split: SplitOption = "test",
    plan: PlanOption = None,
    merge: MergeOption = None,
    processes: WorkersOption = 1,
    out: MarginOutOption = None,
    option: EnvOptions = None,
    allow: Allowed = None,
    trust: Trusted = None,
    as_json: Json = False,
) -> None:
    """Find the largest delay (loss, jitter, tick) at which a policy keeps a share of its gain over doing nothing.

    Four amounts up to the largest are tried, then at most eight around the first one where the share is lost. The
    answer is an estimate and, in brackets, the largest amount that is confirmed kept and the smallest confirmed lost.
    Exit code 1 if no gain is shown that it could keep.
    """
    from heron_env.lab import benchmark
    from heron_env.lab.output import dumps
    from heron_env.lab.planning import planned
    from heron_env.lab.policies import Words
    from heron_env.lab.sweep import margin as of_sweeps

    words = Words.of([policy], environment=env)
    *_, (name, chosen) = planned(words.policies, plan, merge).items()
    if merge is not None and "," in merge:
        raise ConfigError(f"--merge {merge!r:.60}: a margin is of one policy; give one of them")
    options = {**words.run_options(), **parsed_options(option)}
    result = of_sweeps.margin(
        env, chosen, name=name, fault=fault, keep=_share(keep), largest=largest, under=_condition(under or []),
        cases=benchmark.cases(built(env, options), cases, split=split, repeats=repeats), options=options,
        processes=processes, progress=lambda line: typer.echo(line, err=True),
    )  # fmt: skip
    if out is not None:
        result.write(out)
    typer.echo(dumps(result.to_dict()) if as_json else str(result))
    raise typer.Exit(0 if result.gains else 1)


def _share(text: str) -> float:
    """`95%`, `95 %` or `0.95`. Raises ConfigError."""
    try:
        share = decimal(text.removesuffix("%")) / (100.0 if text.endswith("%") else 1.0)
    except ValueError:
        share = 0.0
    if not 0.0 < share < 1.0:
        raise ConfigError(f"--keep {text!r:.60}: must be a share above 0 and below 1, as 95% or 0.95")
    return share


def _condition(texts: list[str]) -> Condition:
    """Of one amount for each cause. Raises ConfigError."""
    from heron_env.lab.sweep.conditions import Condition, parsed_axis

    parsed = [parsed_axis(text, "--under") for text in texts]
    amounts: dict[str, Any] = {cause: values[0] for cause, values in parsed if len(values) == 1}
    if len(amounts) < len(parsed):
        raise ConfigError(f"--under {texts}: name each cause once, with one amount")
    return Condition(**amounts)
