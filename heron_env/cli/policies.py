"""`heron train` and `heron export`: making policies, and files of them that other programs run."""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from heron_env.cli.application import (
    INTERRUPTED,
    EnvArgument,
    EnvOptions,
    Json,
    Trusted,
    built,
    on_behalf,
    parsed_options,
)
from heron_env.errors import ConfigError, HeronWarning
from heron_env.files.reading import is_file
from heron_env.trust import named

DEFAULT_STEPS = 1_200_000
REPORTED = (
    "env_id", "seed", "algorithm", "critic", "trainer", "schedule", "start_from", "transitions", "seconds",
    "compile_seconds", "validation", "validation_under_schedule",
)  # fmt: skip
"""Of a run's configuration: what `heron train --json` prints."""
Seed = Annotated[int, typer.Option(min=0, help="Random seed of networks, exploration and episodes.")]


OutOption = Annotated[Path | None, typer.Option(help="The run folder; default: runs/NAME-seedN.")]
StepsOption = Annotated[int, typer.Option(min=1, help="Transitions of each group; 1 = one agent's step.")]
TimeLimitOption = Annotated[float | None, typer.Option(help="Stop after so many seconds; compilation does not count.")]
ResidualOption = Annotated[
    str, typer.Option(help="The baseline that the policy corrects; none: decide alone; default: the environment's.")
]
CriticOption = Annotated[
    str, typer.Option(help="What the critic sees: local: the agent's observation; central: the state as well.")
]
ScheduleOption = Annotated[
    list[str] | None,
    typer.Option(
        "--schedule",
        metavar="[WHO.]FIELD=VALUE|FILE.yaml",
        help="Train on the event clock with this field of the schedule, say msg_delay=2 or field.act_delay=60, or "
        "a file of its fields by agent, group and level; a value may be drawn for each environment and episode: 0-10, "
        "lognormal(3, 0.5), [1, 2, 5]. May be repeated.",
    ),
]
DeviceOption = Annotated[str, typer.Option(help="Device for training: cpu, cuda or auto (a GPU if available).")]
StartFromOption = Annotated[
    Path | None,
    typer.Option(help="A finished run of the same environment: train on from its weights and normalisation."),
]
LoggerOption = Annotated[
    list[str] | None,
    typer.Option("--logger", help="csv, tensorboard or wandb (offline): figures go into the run folder; repeatable."),
]


def train(
    env: EnvArgument,
    out: OutOption = None,
    seed: Seed = 0,
    steps: StepsOption = DEFAULT_STEPS,
    time_limit: TimeLimitOption = None,
    residual: ResidualOption = "default",
    critic: CriticOption = "local",
    schedule: ScheduleOption = None,
    device: DeviceOption = "cpu",
    start_from: StartFromOption = None,
    logger: LoggerOption = None,
    option: EnvOptions = None,
    as_json: Json = False,
) -> None:
    """Train one policy per group; write a run folder; print its return, and those of random and rules."""
    began = time.monotonic()
    from heron_env.envs.unused_rules import unused_rules
    from heron_env.lab.learning.train import require_trainable
    from heron_env.lab.learning.train import train as run_training
    from heron_env.lab.output import dumps
    from heron_env.lab.schedules import with_settings

    options = parsed_options(option)
    environment = built(env, options)
    require_trainable(environment, env)
    timed = with_settings(environment.schedule, schedule) if schedule else None
    for entry in unused_rules(environment.simulation):  # what is wrong is told before torch is imported
        typer.echo(f"warning: {entry.what}; {entry.mend}", err=True)
    folder = _new_folder(out or Path("runs") / f"{env.rpartition('/')[2].replace(':', '-')}-seed{seed}")
    if time_limit is not None and time_limit > 0.0:  # of the command
        time_limit = max(time_limit - (time.monotonic() - began), sys.float_info.min)
    with _training_into(folder):
        run = run_training(
            env, folder, total_steps=steps, seed=seed, env_options=options,
            time_limit=time_limit, residual=None if residual == "none" else residual, critic=critic,
            schedule=timed, device=device, start_from=start_from, progress=not as_json, logger=logger,
        )  # fmt: skip
    if not run.config.transitions:
        typer.echo("warning: the time limit was used up before anything was learned; give more", err=True)
    if as_json:
        typer.echo(dumps({"run_dir": str(run.path), **run.config.model_dump(include=set(REPORTED))}))
        return
    trust = "".join(f" --trust {name}" for name in named(run.config.env_id))
    compiled = f", compiled in {run.config.compile_seconds:g} s" if run.config.compile_seconds else ""
    took = f"{run.config.transitions:,} transitions in {run.config.seconds:g} s{compiled}"
    typer.echo(f"{run.path}: {took}. Next: heron sweep {run.path} random --preset delays{trust}")


@contextmanager
def _training_into(folder: Path) -> Iterator[None]:
    """No warning of what was said before but of delays; stopped by the user, it says what is kept, exits with 130."""
    from heron_env.lab.learning.train import unfinished

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", HeronWarning)
        warnings.filterwarnings("always", r"train\(schedule", HeronWarning)
        warnings.showwarning = lambda message, *_: typer.echo(f"warning: {message}", err=True)
        try:
            yield
        except KeyboardInterrupt as error:
            typer.echo(
                f"stopped. {unfinished(folder)}. --time-limit ends a training early and keeps its policy", err=True
            )
            raise typer.Exit(INTERRUPTED) from error


def _new_folder(folder: Path) -> Path:
    """The folder. Raises ConfigError where a finished run is."""
    if is_file(folder / "config.json"):
        raise ConfigError(f"{folder} holds a finished run: name another folder with --out, or remove that one")
    return folder


def export(
    run: Annotated[str, typer.Argument(metavar="RUN", help="A run folder, or a model.zip of Stable-Baselines3.")],
    onnx: Annotated[
        Path, typer.Option("--onnx", metavar="FILE.onnx", help="The file; with several policies FILE-NAME.onnx.")
    ],
    trust: Trusted = None,
    as_json: Json = False,
) -> None:
    """Write a run's policies as ONNX: scales, masks, memory, and the rule that they correct if it is arithmetic.

    Names, units and versions are in the metadata; onnxruntime and numpy are all that is needed to run them.
    """
    from heron_env.lab.onnx_file import export_onnx
    from heron_env.lab.output import dumps
    from heron_env.lab.runs import open_run

    if not run.endswith(".zip"):
        on_behalf(open_run(run))
    files = [str(file) for file in export_onnx(run, onnx)]
    typer.echo(dumps({"files": files}) if as_json else "\n".join(files))
