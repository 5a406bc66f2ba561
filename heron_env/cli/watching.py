"""`heron watch`: a film of one episode."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from heron_env.cli.application import ENVIRONMENT, Allowed, EnvOptions, Json, Trusted, built, parsed_options
from heron_env.cli.episodes import (
    DelayOption,
    DisturbancesOption,
    RunPolicyOption,
    RunScheduleOption,
    RunUntilOption,
    SeedOption,
    local_policies,
    settings_of,
    time_window,
    wanted,
)
from heron_env.errors import ConfigError, did_you_mean

if TYPE_CHECKING:
    from heron_env.envs.episodes import EpisodeResult

CLOCKS = ("event", "sync")
WatchArgument = Annotated[
    str, typer.Argument(help=f"A run folder, or a trace.json of `heron trace` or its folder. Or: {ENVIRONMENT}.")
]
AgentOption = Annotated[
    str | None, typer.Option(help="Agent whose knowledge is shown beside the truth; default: the first that decides.")
]
ClockOption = Annotated[str, typer.Option(help="event: with delays and loss; sync: step by step.")]
FilmWindowOption = Annotated[
    str | None, typer.Option("--window", metavar="START,END", help="Start and end of the film, s; default: all of it.")
]
EveryOption = Annotated[
    float | None, typer.Option(help="Simulated seconds from frame to frame; default: at most 300 frames.")
]
FpsOption = Annotated[float, typer.Option(help="Frames per second.")]
FilmOption = Annotated[Path, typer.Option(help="A page with a player (.html), .gif, or .mp4 (extra `video`).")]


def watch(
    env_or_run_or_trace: WatchArgument,
    policy: RunPolicyOption = None,
    schedule: RunScheduleOption = None,
    delay: DelayOption = None,
    disturbances: DisturbancesOption = None,
    seed: SeedOption = 0,
    until: RunUntilOption = None,
    clock: ClockOption = "event",
    agent: AgentOption = None,
    window: FilmWindowOption = None,
    every: EveryOption = None,
    fps: FpsOption = 12.0,
    out: FilmOption = Path("runs/film.html"),
    option: EnvOptions = None,
    allow: Allowed = None,
    trust: Trusted = None,
    as_json: Json = False,
) -> None:
    """Film an episode: the world, its messages, and what one agent knows beside the truth.

    A trace is run again as it was recorded. Of what a run folder or a trace names, only registered environments run,
    and what this command trusts or names itself.
    """
    from heron_env.lab.output import dumps
    from heron_env.lab.traces.file import is_trace
    from heron_env.lab.traces.replaying import film_again
    from heron_env.pictures.film import require_film

    require_film(out, fps)
    if clock not in CLOCKS:
        raise ConfigError(f"--clock {clock!r}: must be one of {list(CLOCKS)}.{did_you_mean(clock, CLOCKS)}")
    start, end = (0.0, None) if window is None else time_window(window)
    flags = {"--schedule": schedule, "--delay": delay, "--disturbances": disturbances, "--until": until}
    if is_trace(env_or_run_or_trace):
        changes = {"--clock": None if clock == "event" else clock, "--policy": policy, "--seed": seed or None}
        _require_none({**flags, **changes, "--option": option}, "a trace")
        result, title = film_again(env_or_run_or_trace), ""
    else:
        env_id, chosen, options = wanted(env_or_run_or_trace, policy, parsed_options(option))
        result = _played(env_id, chosen, options, clock, seed, flags)
        late = [*settings_of(schedule, delay), *(disturbances or ()), *["synchronous clock"] * (clock == "sync")]
        title = ", ".join([env_id, *late])
    film = result.watch(agent, start=start, end=end, every=every)
    film.footage.title = title or film.footage.title
    film.save(out, fps=fps)
    facts = {"film": str(out), "frames": len(film), "start": film.times[0], "end": film.times[-1], "agent": film.agent}
    if as_json:
        typer.echo(dumps({**facts, "returns": result.returns}))
        return
    typer.echo(
        f"{len(film)} frames, {film.times[0]:g} to {film.times[-1]:g} s; beside the truth what {film.agent} knows"
    )
    typer.echo(f"wrote {out}")


def _played(
    env_id: str, chosen: str | None, options: dict[str, Any], clock: str, seed: int, flags: dict[str, Any]
) -> EpisodeResult:
    """Run the episode in its clock. Raises ConfigError."""
    from heron_env.envs.episodes import FILMED
    from heron_env.lab.black_boxes import filmable
    from heron_env.lab.schedules import with_settings
    from heron_env.lab.sweep.conditions import Condition
    from heron_env.lab.sweep.play import run_under

    env = built(env_id, filmable(env_id, options))
    policies = local_policies(chosen or env.benchmark().strongest or "random", env, seed)
    condition = Condition(disturbances=flags["--disturbances"] or (), synchronous=clock == "sync")
    if condition.synchronous:
        _require_none({name: flags[name] for name in ("--schedule", "--delay", "--until")}, "--clock sync")
    schedule = with_settings(env.schedule, settings_of(flags["--schedule"], flags["--delay"]))
    return run_under(condition, env, policies, seed, FILMED, schedule=schedule, t_end=flags["--until"])


def _require_none(flags: dict[str, Any], what: str) -> None:
    """Raise ConfigError for an option that does not go with `what`."""
    if wrong := [name for name, value in flags.items() if value is not None and value != []]:
        raise ConfigError(f"{wrong[0]}: does not go with {what}; leave it out")
