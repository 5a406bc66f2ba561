"""The command `heron`; also `python -m heron_env`. What a command needs is imported when it runs."""

from collections.abc import Callable
from typing import Any

from heron_env.cli import (
    compare,
    dcop,
    demo,
    environments,
    episodes,
    margin,
    new,
    policies,
    real,
    serve,
    sweep,
    watching,
)
from heron_env.cli.application import app, examples, parsed_options
from heron_env.cli.board import board


def _add(name: str, command: Callable[..., Any], *lines: str) -> None:
    """A command, and what it looks like in use: a few lines for its `--help`."""
    app.command(name, epilog=examples(*lines))(command)


_add("demo", demo.demo, "heron demo", "heron demo energy --out runs/energy")
_add("envs", environments.envs, "heron envs", "heron envs --json")
_add(
    "describe",
    environments.describe,
    "heron describe heron/BatteryGrid-v0",
    "heron describe heron/BatteryGrid-v0 -o control=zone --svg tree.svg",
    "heron describe my_package:couriers --generated",
)
_add("new", new.new, "heron new couriers", "heron new my_grid --out packages/my-grid")
_add(
    "check",
    environments.check,
    "heron check my_package:couriers",
    "heron check my/Couriers-v0 --strict --steps 50",
    "heron check world.yaml",
    "heron check matrix.yaml --env heron/Economy-v0",
)
_add(
    "train",
    policies.train,
    "heron train heron/BatteryGrid-v0 --time-limit 60 --out runs/first",
    "heron train heron/BatteryGrid-v0 --schedule act_delay=1 --logger tensorboard",
    "heron train my_package:couriers -o max_steps=200 --residual none",
)
_add(
    "export",
    policies.export,
    "heron export runs/first --onnx policy.onnx",
    "heron export runs/mine --onnx mine.onnx --trust my_package:couriers",
)
_add(
    "sweep",
    sweep.sweep,
    "heron sweep runs/first --preset quick",
    "heron sweep heron/BatteryGrid-v0 --axis act_delay=0,0.5,1 --axis loss=0,0.1",
    "heron sweep runs/seed0 runs/seed1 runs/seed2 --pool --preset delays",
    "heron sweep my_package:couriers straight controllers.py:steer --preset delays",
    "heron sweep ppo=runs/p0,runs/p1 dqn=runs/d0,runs/d1 --preset delays",
)
_add(
    "margin",
    margin.margin,
    "heron margin heron/Spread-v0 'assigned landmark' --fault loss --keep 95%",
    "heron margin heron/EnergyManagement-v1 MPC --cases 73 --processes 2",
    "heron margin heron/BatteryGrid-v0 runs/a --fault jitter --under msg_delay=0.5",
)
_add(
    "compare",
    compare.compare,
    "heron compare runs/trace/fixture.jsonl http://127.0.0.1:8000/act",
    "heron compare fixture.jsonl new=http://127.0.0.1:8000/act --within 0.05",
)
_add(
    "run",
    episodes.run,
    "heron run heron/BatteryGrid-v0 --schedule msg_delay=0.5",
    "heron run runs/first --realtime --speed 10 --until 60",
    "heron run heron/GraphColoring-v0 --realtime --seat cluster_1",
)
_add(
    "watch",
    watching.watch,
    "heron watch heron/Spread-v0 --out spread.gif",
    "heron watch runs/first --schedule msg_delay=2 --agent battery_1 --out a.html",
)
_add(
    "report", sweep.report, "heron report runs/first", "heron report runs/sweep-quick-first runs/first --out runs/page"
)
_add(
    "trace",
    episodes.trace,
    "heron trace runs/first --delay 30",
    "heron trace heron/BatteryGrid-v0 --schedule msg_delay=0-2 --csv series.csv",
    "heron trace heron/EnergyManagement-v1 --until 3600 --window 0,600",
)
_add("replay", episodes.replay, "heron replay runs/trace", "heron replay runs/trace --policy moved/first")
_add(
    "serve",
    serve.serve,
    "heron serve --port 8080 --allow-loopback",
    "heron serve --policy runs/first",
    "heron serve --seat cluster_1 --env heron/GraphColoring-v0",
)
app.add_typer(board, name="board")
app.add_typer(dcop.dcop, name="dcop")
app.add_typer(real.real, name="real")

__all__ = ["app", "parsed_options"]
