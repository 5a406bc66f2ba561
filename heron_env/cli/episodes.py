"""`heron trace`, `heron replay` and `heron run`: one episode, recorded, run again, or by the wall clock."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from heron_env.cli.application import (
    ENVIRONMENT,
    INTERRUPTED,
    LOCAL_POLICY,
    POLICY,
    Allowed,
    EnvOptions,
    Json,
    Trusted,
    built,
    on_behalf,
    parsed_options,
)
from heron_env.errors import ConfigError
from heron_env.files.reading import decimal
from heron_env.registry import names_environment
from heron_env.trust import vouch

if TYPE_CHECKING:
    from heron_env.envs.base import HeronEnv
    from heron_env.envs.episodes import EpisodeResult
    from heron_env.lab.real_time import Punctuality
    from heron_env.lab.traces.episode import Episode


SHOWN = 12
"""So many returns are told, and so many disturbances."""


RunOrEnvArgument = Annotated[str, typer.Argument(help=f"A run folder. Or: {ENVIRONMENT}.")]
PolicyOption = Annotated[
    str | None,
    typer.Option(help=f"{POLICY}; default: the run folder, or the strongest baseline."),
]
SeedOption = Annotated[int, typer.Option(min=0, help="Random seed of the episode.")]
UntilOption = Annotated[
    float | None, typer.Option(min=0.0, help="Stop at this simulated time, s; default: the episode's own end.")
]
DelayOption = Annotated[float | None, typer.Option(min=0.0, help="Delay of actions, s.")]
ScheduleOption = Annotated[
    list[str] | None,
    typer.Option(
        "--schedule",
        metavar="[WHO.]FIELD=VALUE|FILE.yaml",
        help="A field of the schedule, say msg_delay=2 or field.tick_interval=1, or a file of its fields by agent, "
        "group and level; a value may be drawn: 0-10, lognormal(3, 0.5), [1, 2, 5]. May be repeated.",
    ),
]
DisturbancesOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME",
        help="A set of the environment's `disturbance_sets()`, drawn with the seed; may be repeated.",
    ),
]
WindowOption = Annotated[
    str | None,
    typer.Option(
        metavar="START,END",
        help="Start and end of the figure, s; default: as much as is legible, from the start or the first disturbance.",
    ),
]
OutOption = Annotated[Path, typer.Option(help="Folder for the record and its pictures.")]
CsvOption = Annotated[
    Path | None,
    typer.Option(
        "--csv", metavar="FILE", help="Also the time series of all agents: FILE.csv, or FILE.parquet (pyarrow)."
    ),
]


def trace(
    run_or_env: RunOrEnvArgument,
    policy: PolicyOption = None,
    seed: SeedOption = 0,
    until: UntilOption = None,
    delay: DelayOption = None,
    schedule: ScheduleOption = None,
    disturbances: DisturbancesOption = None,
    window: WindowOption = None,
    out: OutOption = Path("runs/trace"),
    csv: CsvOption = None,
    option: EnvOptions = None,
    allow: Allowed = None,
    trust: Trusted = None,
    as_json: Json = False,
) -> None:
    """Record an event-driven episode: a record to replay, a trace for ui.perfetto.dev, a figure.

    Answers of endpoints are kept in fixture.jsonl. Naming an address allows its host and port, no others.

    Only registered environments, and those that you name here or with --trust, are run.
    """
    from heron_env.lab.black_boxes import BlackBox
    from heron_env.lab.schedules import with_settings
    from heron_env.lab.sweep.conditions import Condition
    from heron_env.lab.traces.file import TimeSeries, require_ending
    from heron_env.lab.traces.recording import NAME, answer_counts, record_episode

    if csv is not None:
        require_ending(csv)
    series = None if csv is None else TimeSeries()
    env_id, chosen, options = wanted(run_or_env, policy, parsed_options(option))
    times = None if window is None else time_window(window)
    env = built(env_id, options)
    if csv is not None and isinstance(env, BlackBox):
        raise ConfigError(f"--csv {csv}: a black box has no features, so there are no time series; leave it out")
    episode = record_episode(
        env_id, chosen or env.benchmark().strongest or "random", seed=seed, t_end=until, options=options,
        schedule=with_settings(env.schedule, settings_of(schedule, delay)),
        disturbances=Condition(disturbances=disturbances or ()).happenings(env, seed), fixture=out / NAME,
        series=series,
    )  # fmt: skip
    files = write_episode(episode, out, times)
    if csv is not None and series is not None:
        files["series"] = series.write(csv)
    answers = answer_counts(out / NAME) if episode.setting.fixture else {}
    if answers:
        files["fixture"] = out / NAME
    _print_trace(episode, files, answers, as_json)


def _print_trace(episode: Episode, files: dict[str, Path], answers: Mapping[str, int], as_json: bool) -> None:
    from heron_env.lab.output import dumps

    setting, summary = episode.setting, _summary(episode)
    if as_json:
        more = {"answers": answers} if answers else {}
        typer.echo(dumps({"files": {name: str(path) for name, path in files.items()}, **summary, **more}))
        return
    typer.echo(
        f"{setting.env_id}, {setting.policy.name}, seed {setting.seed}: {summary['end_time']:g} s of virtual time"
    )
    typer.echo(f"messages: {', '.join(f'{count} {fate}' for fate, count in summary['messages'].items())}")
    for name, use in episode.outcome.media.items():
        typer.echo(f"medium {name}: {use}")
    for agent, plans in episode.outcome.plans.items():
        typer.echo(f"plans of {agent}: {plans}")
    if answers:
        counts = ", ".join(f"{count} {kind}" for kind, count in answers.items())
        typer.echo(f"answers in {files['fixture'].name}: {counts}")
    if planned := len(setting.disturbances):
        typer.echo(f"{len(summary['disturbances'])} of {planned} disturbances begin before its end")
    _list([f"disturbance {disturbance}" for disturbance in summary["disturbances"]])
    _list([f"return of {name}: {value:.6g}" for name, value in summary["returns"].items()])
    for path in files.values():
        typer.echo(f"wrote {path}")
    see = f"open {files['timeline']}" if "timeline" in files else "pip install 'heron_env[plots]' to see its timeline"
    typer.echo(f"Next: {see}; load {files['perfetto']} in ui.perfetto.dev; heron replay {files['trace'].parent}")


def replay(
    trace: Annotated[str, typer.Argument(help="A trace.json of `heron trace`, or its folder.")],
    policy: Annotated[str | None, typer.Option(help="The run folder, if it was moved.")] = None,
    fixture: Annotated[
        Path | None,
        typer.Option(help="File with the answers of endpoints, if not beside the trace; no endpoint gets a request."),
    ] = None,
    any_version: Annotated[
        bool, typer.Option("--any-version", help="Accept a trace of another version of heron_env.")
    ] = False,
    trust: Trusted = None,
    as_json: Json = False,
) -> None:
    """Run a recorded episode again and compare every bit.

    Exit code 1 if anything differs; the first difference is named.
    Of what the record names, only registered environments run, and what this command trusts.
    """
    from dataclasses import asdict

    from heron_env.lab.output import dumps
    from heron_env.lab.traces.replaying import replay as run_again

    done = run_again(trace, policy=policy, fixture=fixture, any_version=any_version)
    first = done.difference
    if as_json:
        difference = None if first is None else asdict(first)
        typer.echo(
            dumps(
                {"identical": done.identical, "difference": difference, "changed": done.changed, **_summary(done.now)}
            )
        )
        raise typer.Exit(0 if done.identical else 1)
    if first is None:
        counts = sum(done.now.counts.values())
        typer.echo(f"identical: {counts} messages, {len(done.now.events)} events, every reward, action and end")
        return
    typer.echo(f"first difference: {first}")
    for name, (then, now) in done.changed.items():
        typer.echo(f"  {name} was {then}, is {now}")
    raise typer.Exit(1)


def wanted(run_or_env: str, policy: str | None, options: dict[str, Any]) -> tuple[str, str | None, dict[str, Any]]:
    """Environment, policy and options; those of the command line win over the run folder's."""
    from heron_env.lab.policies import PythonPolicy, Words, names_run, policy_spec

    if not names_run(run_or_env):
        if not names_environment(run_or_env):
            raise ConfigError(f"{run_or_env!r}: neither a run folder nor an environment (`heron envs` lists them)")
        return run_or_env, policy, options
    run = Words.of([run_or_env]).runs[0]
    on_behalf(run)
    if policy is not None and isinstance(spec := policy_spec(policy), PythonPolicy):
        vouch(spec.name)  # the command names it, not the run folder
    return run.env_id, policy or run_or_env, {**run.config.env_options, **options}


def settings_of(schedule: list[str] | None, delay: float | None) -> list[str]:
    """What --schedule and --delay say."""
    return [*(schedule or ()), *([] if delay is None else [f"act_delay={delay!r}"])]


def time_window(window: str) -> tuple[float, float]:
    """Start and end, s. Raises ConfigError."""
    try:
        start, end = map(decimal, window.split(","))
    except ValueError as error:
        raise ConfigError(f"--window {window!r}: must be two times in seconds, as 0,30") from error
    if not 0.0 <= start < end:
        raise ConfigError(f"--window {window!r}: must start at 0 or later, and end after that")
    return start, end


def write_episode(episode: Episode, out: Path, window: tuple[float, float] | None) -> dict[str, Path]:
    """Its record, its trace for Perfetto and its figure, where something can be drawn; the files by their kind."""
    from heron_env.lab.figure_style import to_svg
    from heron_env.lab.traces import file, perfetto
    from heron_env.lab.traces.timeline import draw

    texts = {"trace": (file.NAME, file.as_text(episode)), "perfetto": (perfetto.NAME, perfetto.perfetto_text(episode))}
    if find_spec("matplotlib"):  # a record is kept also where nothing can be drawn
        texts["timeline"] = "timeline.svg", to_svg(draw(episode, window)).decode()
    written = file.write_texts({out / name: text for name, text in texts.values()})
    return dict(zip(texts, written, strict=True))


def _list(lines: list[str]) -> None:
    for line in [*lines[:SHOWN], *([f"and {len(lines) - SHOWN} more"] if len(lines) > SHOWN else [])]:
        typer.echo(f"  {line}")


def _summary(episode: Episode) -> dict[str, Any]:
    from heron_env.lab.traces.lanes import disturbed

    def seconds(ns: int) -> str:
        return f"{ns / 1e9:.4f}".rstrip("0").rstrip(".")

    setting, spans = episode.setting, disturbed(episode)
    return {
        "env": setting.env_id,
        "options": setting.options,
        "policy": setting.policy.name,
        "seed": setting.seed,
        "end_time": episode.outcome.end_time,
        "returns": episode.returns,
        "messages": episode.counts,
        **({"media": {name: asdict(use) for name, use in media.items()}} if (media := episode.outcome.media) else {}),
        "disturbances": [
            f"{s.who}: {seconds(s.start)} to {seconds(s.end)} s ({seconds(s.end - s.start)} s)" for s in spans
        ],
    }


RunPolicyOption = Annotated[
    str | None,
    typer.Option(help=f"{LOCAL_POLICY}; default: the run folder, or the strongest baseline."),
]
RealtimeOption = Annotated[bool, typer.Option("--realtime", help="Run by the wall clock; late actions are counted.")]
SpeedOption = Annotated[float, typer.Option(help="With --realtime: simulated seconds per second of wall time.")]
ToleranceOption = Annotated[
    float, typer.Option(min=0.0, help="With --realtime: seconds of wall time that an action may be late.")
]
WaitForAnswersOption = Annotated[
    bool,
    typer.Option("--wait-for-answers", help="With --realtime: the run waits for answers of people and endpoints."),
]
SeatOption = Annotated[
    list[str] | None, typer.Option("--seat", metavar="AGENT", help="Agent that a person plays; may be repeated.")
]
RunScheduleOption = Annotated[
    list[str] | None,
    typer.Option("--schedule", metavar="[WHO.]FIELD=VALUE|FILE.yaml", help="See `heron trace`."),
]
RunUntilOption = Annotated[
    float | None, typer.Option(min=0.0, help="Stop at this simulated time, s; default: the episode's own end.")
]
RunOutOption = Annotated[Path | None, typer.Option(help="A JSON file for returns, KPIs and punctuality.")]


def run(
    run_or_env: RunOrEnvArgument,
    policy: RunPolicyOption = None,
    realtime: RealtimeOption = False,
    speed: SpeedOption = 1.0,
    tolerance: ToleranceOption = 0.01,
    wait_for_answers: WaitForAnswersOption = False,
    seat: SeatOption = None,
    schedule: RunScheduleOption = None,
    seed: SeedOption = 0,
    until: RunUntilOption = None,
    out: RunOutOption = None,
    option: EnvOptions = None,
    allow: Allowed = None,
    trust: Trusted = None,
    as_json: Json = False,
) -> None:
    """Run an event-driven episode; with --realtime by the wall clock, as with hardware.

    Ctrl-C ends the run, keeps its results and exits with 130. Naming an address allows its host and port, no others.
    """
    from heron_env.files.writing import write
    from heron_env.lab.output import dumps
    from heron_env.lab.real_time import run_real_time
    from heron_env.lab.schedules import with_settings

    env_id, chosen, options = wanted(run_or_env, policy, parsed_options(option))
    env = built(env_id, options)
    name = chosen or env.benchmark().strongest or "random"
    played = local_policies(name, env, seed)
    settings: dict[str, Any] = {"seed": seed, "t_end": until, "schedule": with_settings(env.schedule, schedule or [])}
    punctuality = None
    with ExitStack() as stack:
        if seat:
            from heron_env.serve.seats import Seats

            seats = stack.enter_context(Seats(env, seat))
            typer.echo("\n".join(f"{agent}: {url}" for agent, url in seats.urls.items()), err=as_json)
            played |= seats.policies
        if realtime:
            wall: dict[str, Any] = {"speed": speed, "tolerance": tolerance, "wait_for_answers": wait_for_answers}
            result, punctuality = run_real_time(env, played, **wall, **settings)
        else:
            result = env.run_event_driven(played, **settings)
    summary = {"env_id": env_id, "seed": seed, "end_time": result.end_time, "returns": result.returns}
    summary |= {"kpis": result.kpis, **({"real_time": punctuality.to_dict()} if punctuality else {})}
    if out is not None:
        write(out, dumps(summary) + "\n")
    typer.echo(dumps(summary) if as_json else _result_text(f"{env_id}, {name}, seed {seed}", result))
    if punctuality is not None and not as_json:
        _print_punctuality(punctuality)
    if punctuality is not None and punctuality.interrupted:
        raise typer.Exit(INTERRUPTED)


def local_policies(name: str, env: HeronEnv, seed: int) -> dict[str, Any]:
    """By agent, group or "*". Raises ConfigError for endpoints."""
    from heron_env.lab.policies import External, policy_spec

    spec = policy_spec(name)
    if isinstance(spec, External):
        raise ConfigError(
            f"--policy {name}: no endpoint here; write agent = ExternalPolicy(url) into web.py and give web.py:agent, "
            "or use `heron trace`"
        )
    return dict(spec.build(env, seed))


def _result_text(what: str, result: EpisodeResult) -> str:
    returns = [f"return of {agent}: {value:.6g}" for agent, value in result.returns.items()]
    return "\n".join([f"{what}: {result.end_time:g} s of virtual time", *returns])


def _print_punctuality(punctuality: Punctuality) -> None:
    typer.echo(str(punctuality))
    for agent, missed in punctuality.missed.items():
        if missed:
            typer.echo(f"{agent}: {missed} of {punctuality.actions[agent]} actions late")
    for agent, skipped in punctuality.skipped.items():
        answers = len(punctuality.answers.get(agent, ()))
        typer.echo(f"{agent}: {answers} answers, {skipped} observations came while it was thinking")
