"""`heron real`: the same agents as processes on a real network; how it is measured, and what it will cost."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from heron_env.cli.application import (
    ENVIRONMENT,
    INTERRUPTED,
    LOCAL_POLICY,
    POLICY,
    EnvArgument,
    EnvOptions,
    Json,
    OneLineErrors,
    Trusted,
    built,
    examples,
    parsed_options,
)
from heron_env.cli.episodes import RunOrEnvArgument, SeedOption, UntilOption, local_policies, wanted, write_episode
from heron_env.errors import ConfigError

if TYPE_CHECKING:
    from heron_env.envs.base import HeronEnv
    from heron_env.real.hub import Hub, RealRun

real = typer.Typer(
    cls=OneLineErrors, no_args_is_help=True, help="Agents as processes on a real network: deploy, measure, predict."
)
BUS = "127.0.0.1:7400"

SecretOption = Annotated[
    Path | None, typer.Option(help="File that `heron real secret` wrote, the same for all; default: HERON_SECRET_FILE.")
]
WaitForOption = Annotated[
    str | None, typer.Option(metavar="AGENT,...", help="Agents that act in nodes; default: all that have policies.")
]
TransportOption = Annotated[str, typer.Option(help="udp, tcp, mqtt, or an installed one.")]
ListenOption = Annotated[str, typer.Option(metavar="HOST:PORT", help="Address at which nodes report.")]
NetworkOption = Annotated[
    str | None, typer.Option(metavar="HOST:PORT|URL", help="Address of agents' messages; mqtt: the broker's URL.")
]
AllowOption = Annotated[
    list[str] | None, typer.Option("--allow", metavar="CIDR", help="Addresses of allowed nodes; may be repeated.")
]
NetOptions = Annotated[
    list[str] | None,
    typer.Option(
        "--net",
        metavar="NAME=VALUE",
        help="Option of the transport; mqtt: qos, user, password_file, ca, plain=true, no_delay=true; may be repeated.",
    ),
]
RealScheduleOption = Annotated[
    list[str] | None,
    typer.Option(
        "--schedule", metavar="[WHO.]FIELD=VALUE|FILE.yaml", help="Ticks, own_rows, on_missing; no delays or losses."
    ),
]
SpeedOption = Annotated[float, typer.Option(help="Simulated seconds per second of wall time.")]
HubPolicyOption = Annotated[
    str | None, typer.Option(help=f"Policies of agents without a node: {LOCAL_POLICY}; default: see `heron run`.")
]
JoinOption = Annotated[float, typer.Option("--join", min=0.0, help="Seconds to wait for nodes.")]


class Plant(NamedTuple):
    """What a hub is made of."""

    env_id: str
    options: dict[str, Any]
    env: HeronEnv
    policy: str
    seed: int
    schedule: Any

    @property
    def about(self) -> dict[str, Any]:
        """In plain values."""
        return {"env_id": self.env_id, "options": self.options, "policy": self.policy, "seed": self.seed}


def plant_of(
    run_or_env: str, policy: str | None, option: list[str] | None, schedule: list[str] | None, seed: int
) -> Plant:
    """Environment, policies and schedule, of what stands on the command line."""
    from heron_env.lab.schedules import with_settings

    env_id, chosen, options = wanted(run_or_env, policy, parsed_options(option))
    env = built(env_id, options)
    name = chosen or env.benchmark().strongest or "random"
    return Plant(env_id, options, env, name, seed, with_settings(env.schedule, schedule or []))


@contextmanager
def listening(
    plant: Plant, wait_for: str | None, transport: str, listen: str, network: str | None, allow: list[str] | None,
    secret: Path | None, net: list[str] | None, quiet: bool = False,
) -> Iterator[Hub]:  # fmt: skip
    """The hub of a command, which says where it listens (on stderr if `quiet`). Raises ConfigError."""
    from heron_env.real.hub import Hub

    if network is None and transport == "mqtt":
        raise ConfigError("--transport mqtt needs the broker: --network mqtt://127.0.0.1:1883")
    host = listen.rpartition(":")[0]
    agents = plant.env.possible_agents if wait_for is None else [*filter(None, wait_for.split(","))]
    with Hub(
        plant.env, local_policies(plant.policy, plant.env, plant.seed), wait_for=agents, transport=transport,
        listen=listen, network=network or f"{host}:0", secret=secret, allow=allow or (), options=parsed_options(net),
    ) as board:  # fmt: skip
        where = f"listening at {board.address}, {transport} at {board.network_address}"
        typer.echo(f"{where}; waiting for {', '.join(agents)}", err=quiet)
        yield board


def secret(file: Annotated[Path, typer.Argument(help="A file that does not exist yet.")]) -> None:
    """Write a secret that hub and nodes share: 32 random bytes, readable by its user alone."""
    from heron_env.real.secret import new_secret

    typer.echo(f"wrote {new_secret(file)}; copy it to each host, and name it with --secret")


def hub(
    run_or_env: RunOrEnvArgument,
    policy: HubPolicyOption = None,
    wait_for: WaitForOption = None,
    transport: TransportOption = "udp",
    listen: ListenOption = BUS,
    network: NetworkOption = None,
    allow: AllowOption = None,
    secret: SecretOption = None,
    net: NetOptions = None,
    speed: SpeedOption = 1.0,
    lockstep: Annotated[
        bool, typer.Option("--lockstep", help="Simulated time waits for messages under way: the synchronous episode.")
    ] = False,
    schedule: RealScheduleOption = None,
    seed: SeedOption = 0,
    until: UntilOption = None,
    join: JoinOption = 60.0,
    out: Annotated[Path, typer.Option(help="A new folder for the record and its trace.")] = Path("runs/real"),
    repeat: Annotated[
        bool, typer.Option(help="Repeat the run for its trace; turn it off where the environment moves hardware.")
    ] = True,
    option: EnvOptions = None,
    trust: Trusted = None,
    as_json: Json = False,
) -> None:
    """Run the plant and the proxy by the wall clock, while agents decide in nodes, over the network.

    It waits for a node of each agent, plays an episode, and keeps a record that `heron replay` repeats bit for bit.
    Ctrl-C ends it and keeps the results.
    """
    from heron_env.real.record import NAME, repeated

    plant = plant_of(run_or_env, policy, option, schedule, seed)
    about = {**plant.about, "transport": transport, "speed": speed, "lockstep": lockstep}
    with listening(plant, wait_for, transport, listen, network, allow, secret, net, as_json) as board:
        run = board.play(
            seed=seed, speed=speed, lockstep=lockstep, schedule=plant.schedule, t_end=until, join_s=join,
            out=out / NAME, about=about,
        )  # fmt: skip
    episode = repeated(run, plant.env_id, plant.options, plant.policy, plant.schedule, until) if repeat else None
    files = {"arrivals": out / NAME, **({} if episode is None else write_episode(episode, out, None))}
    finish(run, files, about if as_json else None)


def finish(run: RealRun, files: dict[str, Path], about: dict[str, Any] | None) -> None:
    """Say what came of it; as JSON if there is something `about` it."""
    from heron_env.lab.output import dumps

    if about is not None:
        counts, real_time = asdict(run.result.messages), None if run.punctuality is None else run.punctuality.to_dict()
        more = {"kpis": run.result.kpis, "messages": counts, "refused": dict(run.refused), "real_time": real_time}
        paths = {name: str(path) for name, path in files.items()}
        typer.echo(dumps({**about, "returns": run.result.returns, **more, "discarded": run.discarded, "files": paths}))
    else:
        typer.echo("\n".join([*report(run), *(f"wrote {path}" for path in files.values())]))
        out = files["arrivals"].parent
        typer.echo(f"Next: heron replay {out}; heron watch {out}" if "trace" in files else "")
    if run.punctuality is not None and run.punctuality.interrupted:
        raise typer.Exit(INTERRUPTED)


def report(run: RealRun) -> list[str]:
    """What came of it, in lines."""
    counts = run.result.messages
    lines = [f"return of {agent}: {value:.6g}" for agent, value in run.result.returns.items()]
    lines.append(f"messages: {counts.sent} sent, {counts.lost} lost, {counts.duplicated} copied")
    lines += [] if run.punctuality is None else [str(run.punctuality)]
    lines += ["DISCARD this run: more than 1 % of the actions were late, the hub was too slow"] * run.discarded
    refused = {reason: count for reason, count in run.refused.items() if count}
    return lines + ([f"refused: {', '.join(f'{n} {reason}' for reason, n in refused.items())}"] if refused else [])


def node(
    agents: Annotated[list[str], typer.Argument(metavar="AGENT...", help="Agents that this process acts for.")],
    hub: Annotated[str, typer.Option(metavar="HOST:PORT", help="Address of the hub.")],
    policy: Annotated[str, typer.Option(help=f"Policies of these agents: {LOCAL_POLICY}.")],
    env: Annotated[
        str | None, typer.Option(help=f"The same as the hub's; default: that of the run folder. {ENVIRONMENT}.")
    ] = None,
    name: Annotated[str | None, typer.Option(help="Name of this node; default: its first agent's.")] = None,
    secret: SecretOption = None,
    net: NetOptions = None,
    seed: Annotated[int, typer.Option(min=0, help="Random seed of policies that draw.")] = 0,
    option: EnvOptions = None,
    trust: Trusted = None,
) -> None:
    """Act for some agents, in a run of a hub that may be on another host, until it ends.

    A folder of a run says which environment it is for; for other policies name it with --env, as the hub does.
    """
    from heron_env.lab.policies import names_run
    from heron_env.lab.traces.episode import identity_of
    from heron_env.real.node import run_node

    if env is None and not names_run(policy):
        raise ConfigError(f"--policy {policy}: is no run folder; name the environment of the hub with --env")
    env_id, chosen, options = wanted(policy if env is None else env, policy, parsed_options(option))
    world, name_of = built(env_id, options), chosen or policy
    typer.echo(f"{', '.join(agents)}: joining the hub at {hub}, until its run is over")
    run_node(
        world, agents, local_policies(name_of, world, seed), hub, name=name, secret=secret,
        policy_digest=f"{name_of} {identity_of(name_of).digest}"[-200:], **parsed_options(net),
    )  # fmt: skip


def probe(
    run_or_env: RunOrEnvArgument,
    policy: HubPolicyOption = None,
    wait_for: WaitForOption = None,
    transport: TransportOption = "udp",
    listen: ListenOption = BUS,
    network: NetworkOption = None,
    allow: AllowOption = None,
    secret: SecretOption = None,
    net: NetOptions = None,
    speed: SpeedOption = 1.0,
    episodes: Annotated[int, typer.Option(min=1, help="Number of episodes.")] = 3,
    schedule: RealScheduleOption = None,
    seed: SeedOption = 0,
    until: UntilOption = None,
    join: JoinOption = 60.0,
    out: Annotated[Path, typer.Option(help="The file to write.")] = Path("network.json"),
    option: EnvOptions = None,
    trust: Trusted = None,
) -> None:
    """Measure the network with the environment's own messages: delays and losses by link, and what the hosts take.

    Nodes are started as for `heron real hub`. What comes of the episodes does not matter; `heron real predict` reads
    the file.
    """
    from heron_env.real.network import Network

    plant = plant_of(run_or_env, policy, option, schedule, seed)
    with listening(plant, wait_for, transport, listen, network, allow, secret, net) as board:
        runs = [
            board.play(seed=seed + k, speed=speed, schedule=plant.schedule, t_end=until, join_s=join)
            for k in range(episodes)
        ]
    measured = Network.of(run.arrivals for run in runs)
    typer.echo(f"{measured}\nwrote {measured.write(out)}; next: heron real predict {plant.env_id} ... --network {out}")


def predict(
    env: EnvArgument,
    policies: Annotated[list[str], typer.Argument(metavar="POLICY...", help=f"{POLICY}.")],
    network: Annotated[Path, typer.Option(help="The file that `heron real probe` wrote.")],
    seeds: Annotated[int, typer.Option(min=2, help="Episodes of each policy.")] = 96,
    schedule: RealScheduleOption = None,
    option: EnvOptions = None,
    trust: Trusted = None,
    as_json: Json = False,
) -> None:
    """Predict what each policy earns over the measured network, which is best, and what each cause costs."""
    from heron_env.lab.output import dumps
    from heron_env.lab.schedules import with_settings
    from heron_env.real.network import Network
    from heron_env.real.predicting import predict as predicted

    world = built(env, parsed_options(option))
    chosen = {name: local_policies(name, world, 0) for name in policies}
    result = predicted(
        world, chosen, Network.read(network), seeds=seeds, schedule=with_settings(world.schedule, schedule or [])
    )
    typer.echo(dumps(result.to_dict()) if as_json else str(result))


def _add(name: str, command: Any, *lines: str) -> None:
    real.command(name, epilog=examples(*lines))(command)


_add("secret", secret, "heron real secret plant.secret", "heron real secret ~/.config/plant.secret")
_add(
    "hub",
    hub,
    "heron real hub heron/Spread-v0 --wait-for agent_0,agent_1",
    "heron real hub runs/a --listen 192.168.1.10:7400 --secret s --transport tcp",
    "heron real hub runs/a --transport mqtt --network mqtt://127.0.0.1:1883",
)
_add(
    "node",
    node,
    "heron real node battery_1 --hub 127.0.0.1:7400 --policy runs/first",
    "heron real node zone_1 battery_2 --hub 192.168.1.10:7400 --policy runs/a",
)
_add(
    "probe",
    probe,
    "heron real probe runs/first --episodes 5 --out network.json",
    "heron real probe heron/Spread-v0 --transport tcp",
)
_add(
    "predict",
    predict,
    "heron real predict heron/BatteryGrid-v0 runs/a --network network.json",
    "heron real predict heron/Spread-v0 'nearest landmark' --network n.json",
)
