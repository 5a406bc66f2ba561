"""`heron serve`: environments as an HTTP service, or a policy as an endpoint."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from heron_env.cli.application import EnvOptions, Trusted, built, on_behalf, parsed_options
from heron_env.errors import ConfigError


def serve(
    policy: Annotated[
        Path | None, typer.Option(help="Serve this run folder's policy as an endpoint, instead of simulations.")
    ] = None,
    env: Annotated[str | None, typer.Option(help="With --policy: another environment than the run folder's.")] = None,
    option: EnvOptions = None,
    folder: Annotated[Path, typer.Option(help="Where simulations are kept; a restart goes on there.")] = Path(
        "runs/serve"
    ),
    host: Annotated[str, typer.Option(help="Another address than loopback needs --token-env.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0: any that is free.")] = 0,
    token_env: Annotated[
        str | None, typer.Option(help="Environment variable with the token that clients must bring.")
    ] = None,
    allow: Annotated[
        list[str] | None, typer.Option(metavar="HOST:PORT", help="An endpoint that may be injected; repeat.")
    ] = None,
    allow_loopback: Annotated[
        bool, typer.Option("--allow-loopback", help="Endpoints of this machine may be injected.")
    ] = False,
    key_env: Annotated[
        list[str] | None, typer.Option(help="An environment variable that may be an endpoint's key; repeat.")
    ] = None,
    trust: Trusted = None,
) -> None:
    """Serve simulations over HTTP, or with --policy a trained policy as an endpoint. Ends with Ctrl-C.

    Only registered environments can be asked for, and those of --trust. Keys are named, never sent.
    """
    if policy is not None:
        _serve_policy(policy, env, option, (host, port, token_env))
        return
    if env is not None or option:
        raise ConfigError("--env and --option are for --policy; clients of simulations name environments themselves")
    try:
        from heron_env.serve import running
    except ImportError as error:
        raise ConfigError("heron serve needs fastapi and uvicorn: pip install 'heron_env[serve]'") from error
    from heron_env.injection.sdk import token_of
    from heron_env.net.guard import Guard

    running.serve(
        folder, host=host, port=port, token=token_of(token_env, host), trust=trust or (),
        guard=Guard(allow or (), loopback=allow_loopback), keys=key_env or (), ready=_ready,
    )  # fmt: skip


def _serve_policy(
    folder: Path, env_id: str | None, option: list[str] | None, place: tuple[str, int, str | None]
) -> None:
    from heron_env.injection.sdk import serve_policy
    from heron_env.lab.runs import RunFolder, load_policy

    run = RunFolder.open(folder)
    on_behalf(run)
    world = built(env_id or run.env_id, {**run.config.env_options, **parsed_options(option)})
    host, port, token_env = place
    with serve_policy(load_policy(folder), world, host=host, port=port, token_env=token_env) as server:
        _ready(server.url)
        server.wait()


def _ready(url: str) -> None:
    typer.echo(url)
