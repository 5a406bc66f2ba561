"""`heron serve`: environments as an HTTP service, or a policy as an endpoint."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from heron_env.cli.application import EnvOptions, Trusted, built, on_behalf, parsed_options
from heron_env.errors import ConfigError

if TYPE_CHECKING:
    from heron_env.envs.base import HeronEnv


PolicyOption = Annotated[
    Path | None, typer.Option(help="Serve this run folder's policy as an endpoint, instead of simulations.")
]
SeatOption = Annotated[
    list[str] | None,
    typer.Option(metavar="AGENT", help="Agent of --env that a person plays, in a page; may be repeated."),
]
EnvOption = Annotated[
    str | None, typer.Option(help="With --seat: the environment to play. With --policy: instead of the run folder's.")
]
OthersOption = Annotated[
    str | None,
    typer.Option(help="With --seat: policy of the others: a baseline (default: the strongest), a run, agents.yaml."),
]
SeedOption = Annotated[int, typer.Option(help="With --seat: random seed of the episode.")]
MsgDelayOption = Annotated[float, typer.Option(min=0.0, help="With --seat: delay of messages, s.")]
FolderOption = Annotated[Path, typer.Option(help="Folder of simulations; a restarted server resumes them.")]
HostOption = Annotated[str, typer.Option(help="Address to listen at; any but loopback needs --token-env.")]
PortOption = Annotated[int, typer.Option(min=0, max=65535, help="Port; 0 picks a free one.")]
TokenEnvOption = Annotated[str | None, typer.Option(help="Environment variable with the token that clients must send.")]
AllowOption = Annotated[
    list[str] | None,
    typer.Option(metavar="HOST:PORT", help="Endpoint that clients may name (private: IP:PORT); may be repeated."),
]
AllowLoopbackOption = Annotated[
    bool, typer.Option("--allow-loopback", help="Let clients name endpoints of this machine.")
]
KeyEnvOption = Annotated[
    list[str] | None, typer.Option(help="Environment variable that clients may name as a key; may be repeated.")
]


def serve(
    policy: PolicyOption = None,
    seat: SeatOption = None,
    env: EnvOption = None,
    option: EnvOptions = None,
    others: OthersOption = None,
    seed: SeedOption = 0,
    msg_delay: MsgDelayOption = 0.0,
    folder: FolderOption = Path("runs/serve"),
    host: HostOption = "127.0.0.1",
    port: PortOption = 0,
    token_env: TokenEnvOption = None,
    allow: AllowOption = None,
    allow_loopback: AllowLoopbackOption = False,
    key_env: KeyEnvOption = None,
    trust: Trusted = None,
) -> None:
    """Serve simulations over HTTP, with --policy a trained policy as an endpoint, with --seat the page of a person.

    Ctrl-C ends the server; with --seat it ends after the episode.

    Clients may ask for registered environments and those of --trust. Keys are named, never sent.
    """
    if policy is not None and seat:
        raise ConfigError("--policy and --seat are two things to serve; give one of them")
    if seat:
        if env is None:
            raise ConfigError("--seat needs --env: what is played?")
        world = built(env, parsed_options(option))
        _serve_seats(world, seat, others, seed=seed, msg_delay=msg_delay, host=host, port=port)
        return
    if policy is not None:
        with suppress(KeyboardInterrupt):  # the usual end
            _serve_policy(policy, env, option, host=host, port=port, token_env=token_env)
        return
    if env is not None or option:
        raise ConfigError(
            "--env and --option are for --policy and --seat; clients of simulations name environments themselves"
        )
    with suppress(KeyboardInterrupt):
        _serve_simulations(
            folder, host=host, port=port, token_env=token_env, trust=trust or (), allow=allow or (),
            loopback=allow_loopback, keys=key_env or (),
        )  # fmt: skip


def _serve_simulations(
    folder: Path, *, host: str, port: int, token_env: str | None, trust: Sequence[str], allow: Sequence[str],
    loopback: bool, keys: Sequence[str],
) -> None:  # fmt: skip
    try:
        from heron_env.serve import app
    except ImportError as error:
        raise ConfigError("heron serve needs fastapi and uvicorn: pip install 'heron_env[agents]'") from error
    from heron_env.net.access import token_of
    from heron_env.net.guard import Guard, is_private

    app.serve(
        folder, host=host, port=port, token=token_of(token_env, host), trust=trust,
        guard=Guard(allow, loopback=loopback, private=filter(is_private, allow)), keys=keys, ready=_ready,
    )  # fmt: skip


def _serve_policy(
    folder: Path, env_id: str | None, option: list[str] | None, *, host: str, port: int, token_env: str | None
) -> None:
    from heron_env.injection.sdk import serve_policy
    from heron_env.lab.runs import load_policy, open_run

    run = open_run(folder)
    on_behalf(run)
    world = built(env_id or run.env_id, {**run.config.env_options, **parsed_options(option)})
    with serve_policy(load_policy(folder), world, host=host, port=port, token_env=token_env) as server:
        _ready(server.url)
        server.wait()


def _serve_seats(
    env: HeronEnv, agents: list[str], others: str | None, *, seed: int, msg_delay: float, host: str, port: int
) -> None:
    """One episode; who does not sit is played by others."""
    from heron_env import ScheduleConfig
    from heron_env.lab.benchmark import NOTHING
    from heron_env.lab.policies import policy_spec
    from heron_env.serve.seats import FAREWELL, Seats

    played = policy_spec(others or env.benchmark().strongest or NOTHING).build(env, seed)
    with Seats(env, agents, host=host, port=port) as seats:
        for agent, url in seats.urls.items():
            typer.echo(f"{agent}: {url}")
        schedule = ScheduleConfig(msg_delay=msg_delay)
        result = env.run_event_driven(policies={**played, **seats.policies}, schedule=schedule, seed=seed)
        seats.close(linger=FAREWELL)
    for name, value in result.kpis.items():
        typer.echo(f"{name}: {value:g}")


def _ready(url: str) -> None:
    typer.echo(url)
