"""Damaged files: every file that we write, spoilt in some way by a seed, and given to all that read it."""

import gzip
import io
import json
import os
import shutil
import tempfile
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from served import kept, restarted
from verdict import Answer, asked

GRID = "heron/BatteryGrid-v0"
SMALL = {"num_batteries": 2, "max_steps": 3}
AGENTS = """\
agent_injection:
  endpoints:
    - {agent_id: battery_1, url: 'http://127.0.0.1:9/respond', timeout_seconds: 1, privacy_tier: basic}
    - {agent_id: battery_2, url: 'http://127.0.0.1:9/other', api_key_env: KEY, latency: {mode: virtual, mean: 0.5}}
  circuit_breaker: {failure_threshold: 5, half_open_probe_interval_seconds: 30, success_threshold: 2}
  concurrency: {max_inflight_per_endpoint: 10, qps_cap: 100}
  fallback: {strategy: simulated_agent}
  benchmark: {record: true, fixture_path: ./run.jsonl}
"""
HOMES = """\
timezone: Europe/Berlin
homes:
  - {name: mill, load: {file: mill.csv, column: load}, battery: {capacity: 10}, roof: {peak: 5, facing: south}}
  - {name: barn, load: {file: mill.csv, column: load, unit: W}}
gaps: {fill: hold, longest: 120}
tariff: {low: 0.2, standard: 0.3, high: 0.4}
"""
BAD: tuple[str, ...] = (
    "null", "true", "-1", "0", "1e-320", "1e999", "1" + "0" * 400, "NaN", "-Infinity", '""', '"x"', "[]", "{}",
    "[[]]", '{"x": 1}', "9223372036854775808", "[1, 2]", '"$x^$"', '"\\u0000"', '"\\ud800"', "1.5", '"../../x"',
    "[" * 100_000,
)  # fmt: skip


@dataclass(frozen=True)
class Target:
    """A file: in which folder it lies, its name there, and who reads it."""

    name: str
    folder: str
    file: str
    readers: tuple[Callable[[Path], Any], ...]
    inside: str = ""
    """Name of a member of the archive that it is, which is damaged instead of it."""


def spoilt_bytes(data: bytes, draw: np.random.Generator) -> bytes:
    """Cut, turned, blanked, repeated, emptied or mixed with something else."""
    kind, n = draw.integers(8), max(len(data), 1)
    at = int(draw.integers(n))
    match kind:
        case 0:
            return data[:at]
        case 1 | 2:
            spoilt = bytearray(data or b"\0")
            spoilt[at] ^= 1 << int(draw.integers(8))
            return bytes(spoilt)
        case 3:
            return data[:at] + bytes(int(draw.integers(1, 64))) + data[at + 8 :]
        case 4:
            return data + data[at:]
        case 5:
            return b""
        case 6:
            return data[:at] + b"\xff\xfe" + data[at:]
    return [b"\n", b"[" * 100_000, b'{"a":' * 100_000, b"null", b"1e400", b"PK\x03\x04", b"\x1f\x8b\x08", b"{}"][
        draw.integers(8)
    ]


def spoilt_json(data: bytes, draw: np.random.Generator) -> bytes:
    """One value, key or item another, or gone."""
    values = json.loads(data)
    spots: list[tuple[Any, Any]] = []

    def walk(node: Any) -> None:
        if isinstance(node, dict | list):
            for key in list(node) if isinstance(node, dict) else range(len(node)):
                spots.append((node, key))
                walk(node[key])

    walk(values)
    if not spots:
        return b"[]"
    short = [spot for spot in spots if not isinstance(spot[1], int)] or spots  # else long vectors would take them all
    chosen = short if draw.random() < 0.7 else spots
    node, key = chosen[int(draw.integers(len(chosen)))]
    match draw.integers(4):
        case 0:
            del node[key]
        case 1 if isinstance(node, dict):
            node[f"{key}x"] = node.pop(key)
        case 2 if isinstance(node, list):
            node.insert(key, node[key])
        case _:
            node[key] = "@BAD@"
    text = json.dumps(values)
    return text.replace('"@BAD@"', BAD[draw.integers(len(BAD))]).encode()


def spoilt_lines(data: bytes, draw: np.random.Generator) -> bytes:
    """A line of JSON, or of a table, spoilt."""
    lines = data.splitlines()
    at = int(draw.integers(len(lines)))
    if lines[at].startswith(b"{"):
        lines[at] = spoilt_json(lines[at], draw)
    else:
        apart = b"," if b"," in lines[at] else b" "
        cells = lines[at].split(apart)
        cells[draw.integers(len(cells))] = [b"", b"x", b"nan", b"-1", b"1e400", b'"', b"1" * 5000, b"\0"][
            draw.integers(8)
        ]
        lines[at] = apart.join(cells)
    return b"\n".join(lines) + b"\n"


def spoil(path: Path, target: Target, draw: np.random.Generator) -> None:
    """Damage the file."""
    kind, data = draw.random(), path.read_bytes()
    if kind < 0.06:
        path.unlink()
        match draw.integers(4):
            case 0:
                path.mkdir()
            case 1:
                os.mkfifo(path)
            case 2:
                path.symlink_to(path)
        return
    if target.inside:
        path.write_bytes(_repacked(data, target.inside, lambda inside: spoilt_bytes(inside, draw)))
    elif kind < 0.4 or path.suffix in (".zip", ".safetensors"):
        path.write_bytes(spoilt_bytes(data, draw))
    elif path.suffix == ".yaml":
        path.write_bytes(spoilt_json(json.dumps(yaml.safe_load(data), default=str).encode(), draw))  # JSON is YAML
    elif path.suffix == ".gz":
        path.write_bytes(gzip.compress(spoilt_json(gzip.decompress(data), draw)))
    elif path.suffix == ".json":
        path.write_bytes(spoilt_json(data, draw))
    else:
        path.write_bytes(spoilt_lines(data, draw))


def _repacked(data: bytes, name: str, change: Callable[[bytes], bytes]) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(packed, "w") as new:
        for member in old.namelist():
            content = old.read(member)
            new.writestr(member, change(content) if member == name else content)
    return packed.getvalue()


# Who reads what


def _curve(folder: Path) -> None:
    from heron_env.lab import RunFolder
    from heron_env.lab.show.training import training_facts, training_part

    run = RunFolder.open(folder)
    training_facts(run)
    training_part(run)


def _policies(folder: Path) -> None:
    from heron_env import load_policy, make

    env = make(GRID, **SMALL)
    assert np.isfinite(list(env.run_synchronous(load_policy(folder), seed=0).returns.values())).all()


def _start(folder: Path) -> None:
    from heron_env.lab.learning.train import TrainingPlan

    TrainingPlan(
        GRID,
        folder / "out",
        {},
        None,
        "default",
        total_steps=1,
        seed=0,
        time_limit=None,
        hyperparameters=None,
        validations=0,
        start_from=folder,
    )


def _sweep(folder: Path) -> None:
    from heron_env.lab import read_sweep
    from heron_env.lab.show.sweeps import sweep_facts, sweep_notes
    from heron_env.lab.sweep.tables import to_csv, to_json, to_markdown, to_rich

    result = read_sweep(folder)
    for told in (to_json, to_csv, to_markdown, to_rich, sweep_facts, sweep_notes):
        told(result)


def _journal(folder: Path) -> None:
    from heron_env.lab import Sweep

    Sweep.of(GRID, {"random": "random"}, [], cases=2, options=SMALL).run(folder, processes=1)


def _drawn(path: Path) -> None:
    from heron_env.lab.show.courses import trace_part
    from heron_env.lab.traces import file
    from heron_env.lab.traces.perfetto import perfetto_text

    episode = file.read(path)
    perfetto_text(episode)
    trace_part(episode)


def _replayed(path: Path) -> None:
    from heron_env.lab.traces.replaying import replay

    str(replay(path, any_version=True).difference)


def _grid(folder: Path) -> None:
    from heron_env.power_flow import PowerFlow
    from heron_env.power_flow.pandapower_json import read_pandapower

    PowerFlow(read_pandapower(folder / "grid.json"))


def _optima(folder: Path) -> None:
    from heron_env.worlds.energy_management.calendar import read_optima

    read_optima(folder / "optima.json")


def _world(folder: Path) -> None:
    from heron_env import from_config, load_config

    load_config(folder / "world.yaml")
    from_config(folder / "world.yaml").reset(seed=0)


def _exported(folder: Path) -> None:
    from heron_env.lab import export_onnx

    export_onnx(folder, folder / "policy.onnx")


def _agents(folder: Path) -> None:
    from heron_env import make
    from heron_env.injection import policies

    policies(folder / "agents.yaml", make(GRID, **SMALL))


def _recorded(folder: Path) -> None:
    from heron_env import make
    from heron_env.injection import Recorded

    env = make(GRID, **SMALL)
    env.run_event_driven({"*": Recorded(folder / "fixture.jsonl", env=env)}, seed=0)


def _continued(folder: Path) -> None:
    from heron_env import make
    from heron_env.injection import ExternalPolicy, Recording

    env = make(GRID, **SMALL)
    with Recording(ExternalPolicy(dead(), env=env), folder / "fixture.jsonl") as recording:
        env.run_event_driven({"*": recording}, seed=0)


def _coloured(name: str) -> Callable[[Path], Any]:
    def coloured(folder: Path) -> None:
        from heron_env.dcop import read_problem, solve

        problem = read_problem(folder / name)
        if len(problem.nodes) < 100:
            solve(problem, "dsa", cycles=2)

    return coloured


def _homes(folder: Path) -> None:
    from heron_env import make

    make("heron/EnergyManagement-v1", homes=folder / "homes.yaml", dt=3600.0, physics_substeps=1).reset(seed=0)


def dead() -> Any:
    """An endpoint that isn't there, and is not waited for."""
    from heron_env.injection import Endpoint

    return Endpoint("http://127.0.0.1:9/respond", timeout=0.05)


def command(*words: str) -> Callable[[Path], Any]:
    """A reader from the command line: it must end with 0, 1 or 2, and a fault in one line."""

    def read(folder: Path) -> None:
        from typer.testing import CliRunner

        from heron_env.cli import app

        out = folder / "out"
        done = CliRunner().invoke(app, [word.replace("DIR", str(folder)).replace("OUT", str(out)) for word in words])
        if done.exception is not None and not isinstance(done.exception, SystemExit):
            raise done.exception
        lines = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
        assert done.exit_code in (0, 1) or (done.exit_code == 2 and len(lines) == 1), done.output

    read.__name__ = f"heron {words[0]}"
    return read


TARGETS = (
    Target(
        "config.json",
        "run",
        "config.json",
        (
            _policies,
            _curve,
            _start,
            command("sweep", "DIR", "--cases", "1", "--axis", "loss=0", "--processes", "1", "--out", "OUT"),
        ),
    ),
    Target("weights", "run", "battery.safetensors", (_policies, _start)),
    Target("weights of 0.1.0", "former", "battery.zip", (_policies, _start)),
    Target("policy.pth in a whole zip", "former", "battery.zip", (_policies, _start), inside="policy.pth"),
    Target("progress.csv", "run", "progress.csv", (_curve,)),
    Target("sweep.json", "sweep", "sweep.json", (_sweep, _journal, command("report", "DIR", "--out", "OUT"))),
    Target("results.jsonl", "sweep", "results.jsonl", (_sweep, _journal)),
    Target("table.json", "sweep", "table.json", (_sweep, _journal)),
    Target("trace.json", "trace", "trace.json", (_drawn, _drawn, _replayed, command("replay", "DIR"))),
    Target("trace.json.gz", "packed", "trace.json.gz", (_drawn, _drawn, _replayed)),
    Target("optima.json", "optima", "optima.json", (_optima,)),
    Target("grid.json", "grid", "grid.json", (_grid,)),
    Target("world.yaml", "world", "world.yaml", (_world, command("check", "DIR/world.yaml"))),
    Target(
        "config.json of an ONNX file", "run", "config.json", (_exported, command("export", "DIR", "--onnx", "OUT.onnx"))
    ),
    Target("weights of an ONNX file", "run", "battery.safetensors", (_exported,)),
    Target("agents.yaml", "agents", "agents.yaml", (_agents, command("check", "DIR/agents.yaml", "--env", GRID))),
    Target("fixture.jsonl", "fixture", "fixture.jsonl", (_recorded, _continued)),
    Target("graph.json", "graphs", "graph.json", (_coloured("graph.json"), command("dcop", "solve", "DIR/graph.json"))),
    Target("graph.yaml", "graphs", "graph.yaml", (_coloured("graph.yaml"),)),
    Target("graph.col", "graphs", "graph.col", (_coloured("graph.col"),)),
    Target("homes.yaml", "homes", "homes.yaml", (_homes,)),
    Target("series.csv", "homes", "mill.csv", (_homes,)),
    Target("simulation.json", "served", "1/simulation.json", (restarted,)),
    Target("journal.jsonl", "served", "1/journal.jsonl", (restarted,)),
    Target("answers.jsonl", "served", "1/answers-3-2.jsonl", (restarted,)),
)


def originals(base: Path) -> Mapping[str, Path]:
    """A folder of each kind, as we write it."""
    from heron_env import Disturbance, ScheduleConfig
    from heron_env.lab import Hyperparameters, Sweep, record_episode, train
    from heron_env.lab.traces import file
    from heron_env.worlds.economy import WORLD
    from heron_env.worlds.energy_management.calendar import OPTIMA

    shutil.copytree(Path(__file__).parents[1] / "golden" / "0.1.0" / "run", base / "former")
    tiny = Hyperparameters(num_envs=1, n_steps=8, batch_size=8, n_epochs=1, hidden=(4,))
    train(
        GRID,
        base / "run",
        total_steps=8,
        hyperparameters=tiny,
        env_options=SMALL,
        validations=2,
        validation_episodes=1,
        progress=False,
    )
    Sweep.of(GRID, {"random": "random"}, [], cases=2, options=SMALL).run(base / "sweep", processes=1)
    crash = Disturbance(1.0, "agent_crash", {"agent": "battery_1", "meanwhile": "hold"}, duration=1.0)
    late = ScheduleConfig(tick_interval=1.0, obs_delay=0.1, msg_delay=0.2, act_delay=0.3, loss=0.2)
    episode = record_episode(GRID, "random", options=SMALL, schedule=late, disturbances=[crash])
    file.write(episode, base / "trace")
    (base / "packed").mkdir()
    (base / "packed" / "trace.json.gz").write_bytes(gzip.compress((base / "trace" / "trace.json").read_bytes()))
    village = Path(__file__).parent.parent / "power_flow" / "data" / "village.json"
    for name, source in (("optima", OPTIMA), ("world", WORLD), ("grid", village)):
        (base / name).mkdir()
        shutil.copy(source, base / name / f"{name}{source.suffix}")
    _beyond(base)
    return {target.folder: base / target.folder for target in TARGETS}


def _beyond(base: Path) -> None:
    """Graphs, endpoints, an own site and a service."""
    from heron_env import dcop, make
    from heron_env.injection import ExternalPolicy, Recording

    for name in ("agents", "fixture", "graphs", "homes", "served"):
        (base / name).mkdir()
    (base / "agents" / "agents.yaml").write_text(AGENTS)
    env = make(GRID, **SMALL)
    with Recording(ExternalPolicy(dead(), env=env), base / "fixture" / "fixture.jsonl") as recording:
        env.run_event_driven({"*": recording}, seed=0)
    for suffix in ("json", "yaml"):
        dcop.write_problem(dcop.g15(), base / "graphs" / f"graph.{suffix}")
    edges = [f"e {n} {n % 8 + 1}" for n in range(1, 9)]
    (base / "graphs" / "graph.col").write_text("\n".join(["c a ring", "p edge 8 8", *edges]) + "\n")
    rows = [f"2025-03-{29 + hour // 24} {hour % 24:02}:00Z,{1 + hour % 5}" for hour in range(72)]
    (base / "homes" / "mill.csv").write_text("\n".join(["time,load", *rows]) + "\n")
    (base / "homes" / "homes.yaml").write_text(HOMES)
    kept(base / "served")


def damaged(number: int, seed: int, base: Path, made: Mapping[str, Path]) -> tuple[str, Answer]:
    """The `number`-th damage: what was damaged and who read it, and what came of it."""
    draw = np.random.default_rng((seed, number))
    target = TARGETS[number % len(TARGETS)]
    reader = target.readers[int(draw.integers(len(target.readers)))]
    with tempfile.TemporaryDirectory(dir=base) as scratch:
        folder = Path(shutil.copytree(made[target.folder], Path(scratch) / "it"))
        spoil(folder / target.file, target, draw)
        found = asked(lambda: reader(folder))
    return f"{target.name}: {reader.__name__.lstrip('_')}", found
