"""`heron run`: one event-driven episode, by the wall clock if asked, with a seat for a person."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Any

import typer

from heron_env.cli.application import ENVIRONMENT, EnvOptions, Json, Trusted, built, parsed_options
from heron_env.cli.traces import wanted
from heron_env.errors import ConfigError

INTERRUPTED = 130


def run(
    run_or_env: Annotated[str, typer.Argument(help=f"A run folder. Or: {ENVIRONMENT}.")],
    policy: Annotated[
        str | None,
        typer.Option(help="As of `heron trace`; default: the run folder, or the strongest baseline."),
    ] = None,
    realtime: Annotated[
        bool, typer.Option("--realtime", help="No event before its time of the wall clock; what is late is counted.")
    ] = False,
    speed: Annotated[float, typer.Option(help="With --realtime: seconds of the world in one of the wall clock.")] = 1.0,
    tolerance: Annotated[
        float, typer.Option(min=0.0, help="With --realtime: seconds that an action may be late, of the wall clock.")
    ] = 0.01,
    wait_for_answers: Annotated[
        bool,
        typer.Option("--wait-for-answers", help="With --realtime: people and endpoints hold the others up, too."),
    ] = False,
    seat: Annotated[
        list[str] | None, typer.Option("--seat", metavar="AGENT", help="A person plays it; may be repeated.")
    ] = None,
    schedule: Annotated[
        list[str] | None,
        typer.Option("--schedule", metavar="[WHO.]FIELD=VALUE|FILE.yaml", help="As of `heron trace`."),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of the episode.")] = 0,
    until: Annotated[
        float | None, typer.Option(min=0.0, help="Stop at this time of the world, s; default: the episode's own end.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="A JSON file for returns, KPIs and punctuality.")] = None,
    option: EnvOptions = None,
    trust: Trusted = None,
    as_json: Json = False,
) -> None:
    """Run an event-driven episode; with --realtime by the wall clock, the last step before hardware.

    Ctrl-C ends it, keeps what there is, and exits with 130. Naming an address allows its host and port, no others.
    """
    from heron_env.files.writing import write
    from heron_env.lab.output import dumps
    from heron_env.lab.policies import External, policy_spec
    from heron_env.lab.real_time import run_real_time
    from heron_env.lab.schedules import with_settings

    env_id, chosen, options = wanted(run_or_env, policy, parsed_options(option))
    env = built(env_id, options)
    name = chosen or env.benchmark().strongest or "random"
    spec = policy_spec(name)
    if isinstance(spec, External):
        raise ConfigError(f"--policy {name}: give its agents to the environment in agents.yaml, or use `heron trace`")
    played = dict(spec.build(env, seed))
    settings: dict[str, Any] = {"seed": seed, "t_end": until, "schedule": with_settings(env.schedule, schedule or [])}
    punctuality = None
    with ExitStack() as stack:
        if seat:
            from heron_env.serve.seats import Seats

            seats = stack.enter_context(Seats(env, seat))
            for agent, url in seats.urls.items():
                typer.echo(f"{agent}: {url}", err=as_json)
            played |= seats.policies
        if realtime:
            wall: dict[str, Any] = {"speed": speed, "tolerance": tolerance, "wait_for_answers": wait_for_answers}
            result, punctuality = run_real_time(env, played, **wall, **settings)
        else:
            result = env.run_event_driven(played, **settings)
    told = {"env_id": env_id, "seed": seed, "end_time": result.end_time, "returns": result.returns, "kpis": result.kpis}
    told |= {"real_time": punctuality.to_dict()} if punctuality else {}
    if out is not None:
        write(out, dumps(told) + "\n")
    if as_json:
        typer.echo(dumps(told))
    else:
        typer.echo(f"{env_id}, {name}, seed {seed}: {result.end_time:g} s of virtual time")
        for name, value in result.returns.items():
            typer.echo(f"return of {name}: {value:.6g}")
        if punctuality is not None:
            typer.echo(str(punctuality))
            for agent, missed in punctuality.missed.items():
                if missed:
                    typer.echo(f"{agent}: {missed} of {punctuality.actions[agent]} actions late")
            for agent, skipped in punctuality.skipped.items():
                answers = len(punctuality.answers.get(agent, ()))
                typer.echo(f"{agent}: {answers} answers, {skipped} observations came while it was thinking")
    if punctuality is not None and punctuality.interrupted:
        raise typer.Exit(INTERRUPTED)
