"""Does a simulated network predict a real one? Agents as processes, their messages on real sockets.

    python training/reality.py probe      # measure each network, with a rule and seeds of its own: 8 minutes
    python training/reality.py predict    # what each policy will earn over it, and what wrong models say: 6 minutes
    git add training/results/reality && git commit -m "Predictions"    # else no run begins
    python training/reality.py run --minutes 60    # in pieces, until it says that nothing is left: 90 minutes
    python training/reality.py compare    # tables.md, and the tables of docs/science/reality.md

Each step goes on where it was stopped. Nothing else should run on the machine meanwhile: a run whose hub was late is
discarded by rule and run once more at the end. In --out: network-WORLD-NETWORK.json, predictions.json, episodes.jsonl
(a line an episode), and of each cell one record in records/, which `heron_env.real.read_record` reads.
"""

import argparse
import gzip
import json
import math
import os
import shutil
import socket
import subprocess
import time
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, NamedTuple

import numpy as np
from reality_report import APART, NO_RUNS, Cell, apart, compare, lines_of, with_tables

from heron_env import HeronEnv, make
from heron_env.errors import TraceError
from heron_env.files import write, write_all
from heron_env.files.writing import Journal, compact, full_lines
from heron_env.lab import versions
from heron_env.lab.benchmark import NOTHING, RANDOM
from heron_env.lab.episodes import team_return
from heron_env.real.carried import built, carrying
from heron_env.real.hub import RECORDED, RealRun
from heron_env.real.network import Network
from heron_env.real.predicting import MEASURED, SYNCHRONOUS, predict
from heron_env.seeding import stream

ROOT: Final = Path(__file__).resolve().parents[1]
PAGE: Final = ROOT / "docs" / "science" / "reality.md"
FIRST, FIRST_PROBE = 7_000_000, 7_500_000
"""Seeds of the episodes, and of those by which networks are measured."""
DRAWS, WRONG_DRAWS = 8, 2
"""Networks that are drawn for each seed; one more stands for the real run where it is said what will be refused."""
BLOCKS: Final = 4
"""Every cell has its turn so often, in another order each time: what drifts on the machine hits all alike."""
WARM_STEPS: Final = 20
"""Of an episode that does not count, before each group of processes plays: libraries load at the first decision."""


class World(NamedTuple):
    """Where policies are compared over some networks.

    The first policy is the rule that measures them; what it gains over `reference` is the gain that shares are of.
    `policies` have their numbers of episodes, `over` the speed at which each network is used.
    """

    env_id: str
    policies: Mapping[str, int]
    reference: str
    probes: int
    over: Mapping[str, float]

    @property
    def rule(self) -> str:
        """Which measures networks."""
        return next(iter(self.policies))


class Link(NamedTuple):
    """What a network is made of."""

    transport: str
    relay: Mapping[str, Any] | None


SHORT: Final = {"delay": 0.035, "ratio": 0.5}
LINKS: Final = {
    "udp, 35 ms": Link("udp", SHORT),
    "udp, 120 ms": Link("udp", {"delay": 0.120, "ratio": 0.5}),
    "udp, 35 ms, bursts": Link("udp", {**SHORT, "burst": (0.03, 0.25, 0.9)}),
    "mqtt, QoS 1": Link("mqtt", None),
}
WORLDS: Final = {
    "Spread": World(
        "heron/Spread-v0",
        # the second is the most erratic: by simulation, its standard error would be 1.8 % of the gain with 96
        {"assigned landmark": 96, "nearest landmark": 160, "shipped:heron/Spread-v0/ppo": 96},
        NOTHING,
        20,
        # 35 ms take less than a tenth of the gain at speed 1, and 240 ms of the plane's time all of it
        {name: 1.0 if "120" in name else 2.0 for name in LINKS},
    ),
    # where signals never change, delays are no measure: everybody gains the same over it
    "TrafficCorridor": World(
        "heron/TrafficCorridor-v0", {"actuated": 24, "fixed cycle": 24}, RANDOM, 4,
        {name: 50.0 for name, link in LINKS.items() if link.transport == "udp"},
    ),
}  # fmt: skip
WRONG: Final[Mapping[str, Mapping[str, Any]]] = {
    "no network": {"without": ("delays", "losses", "copies", "thinking")},
    "the mean delay": {"without": ("jitter",)},
    "half the delay": {"scale": 0.5},
    NO_RUNS: {"runs": False},
}
CELLS: Final = tuple(
    Cell(name, link, policy) for name, world in WORLDS.items() for link in world.over for policy in world.policies
)


@cache
def environment(world: str) -> HeronEnv:
    """Of a world, for what is simulated here."""
    return make(WORLDS[world].env_id)


@dataclass(frozen=True)
class Study:
    """Where results are, and which cells are meant; `quick`: few episodes."""

    out: Path = ROOT / "training" / "results" / "reality"
    cells: Sequence[Cell] = CELLS
    quick: bool = False

    def predictions(self) -> dict[str, Any]:
        """What was predicted, by cell. Raises SystemExit where the file or a network was changed since."""
        path = self.out / "predictions.json"
        if not path.is_file():
            return {"networks": {}, "cells": {}}
        content: dict[str, Any] = json.loads(path.read_text("utf-8"))
        if content.pop("digest") != digest(content):
            raise SystemExit(f"{path} was changed by hand: restore it from the repository")
        for file, expected in content["networks"].items():
            if sha256((self.out / file).read_bytes()).hexdigest() != expected:
                raise SystemExit(f"{self.out / file} is another network than the one that was predicted for")
        return content

    def episodes(self) -> list[dict[str, Any]]:
        """All that were run. Raises SystemExit where that was under other predictions."""
        path = self.out / "episodes.jsonl"
        data = path.read_bytes() if path.is_file() else b""
        lines = [json.loads(line) for line in data[: full_lines(data)].splitlines()]
        if lines and {line["predictions"] for line in lines} != {digest(self.predictions())}:
            raise SystemExit(f"{path} was run under other predictions than those of predictions.json")
        return lines


def digest(content: Any) -> str:
    """Of JSON."""
    return sha256(compact(content).encode()).hexdigest()[:16]


def require_idle() -> None:
    """Raise SystemExit where this machine has other work."""
    if (load := os.getloadavg()[0]) > 0.5 * (os.cpu_count() or 1):
        raise SystemExit(f"load average {load:.1f}: this machine is busy, and late hubs are no network (--anyway)")


def require_committed(path: Path) -> None:
    """Raise SystemExit where a file is not in the repository as it is here."""
    shown = subprocess.run(["git", "show", f"HEAD:./{path.name}"], cwd=path.parent, capture_output=True)
    if shown.returncode or shown.stdout != path.read_bytes():
        raise SystemExit(f"{path} is not committed as it is: predictions are committed before the first run")


# Real runs


@contextmanager
def broker() -> Iterator[str]:
    """mosquitto with its defaults, which are loopback alone: its URL."""
    program = shutil.which("mosquitto") or shutil.which("mosquitto", path="/usr/sbin:/usr/local/sbin")
    if program is None:
        raise SystemExit("mosquitto is not installed")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with subprocess.Popen([program, "-p", str(port)], stderr=subprocess.DEVNULL) as process:
        try:
            while process.poll() is None:
                with suppress(OSError), socket.create_connection(("127.0.0.1", port)):
                    break
            yield f"mqtt://127.0.0.1:{port}"
        finally:
            process.terminate()


@contextmanager
def playing(cell: Cell, first: int) -> Iterator[Callable[..., RealRun]]:
    """A hub, nodes of one agent each, and what is between, warm: plays a seed. `first`: names the network's draws."""
    world, link, env = WORLDS[cell.world], LINKS[cell.network], make(WORLDS[cell.world].env_id)
    relay = None if link.relay is None else {**link.relay, "seed": zlib.crc32(f"{cell} {first}".encode())}
    with ExitStack() as stack:
        more: dict[str, Any] = {"network": stack.enter_context(broker())} if link.transport == "mqtt" else {}
        more |= {"transport": link.transport, "nodes": len(env.possible_agents), "relay": relay, "seed": 0}
        hub = stack.enter_context(carrying(env, cell.policy, **more))

        def play(seed: int, **more: Any) -> RealRun:
            run = hub.play(seed=seed, speed=world.over[cell.network], **more)
            if run.punctuality is None or run.punctuality.interrupted:
                raise SystemExit("interrupted; the episode does not count")
            return run

        play(FIRST_PROBE - 1, t_end=WARM_STEPS * env.dt)
        yield play


def probe(study: Study) -> None:
    """Measure the networks that have no file yet."""
    for cell in study.cells:
        file, world = study.out / cell.file, WORLDS[cell.world]
        if file.is_file():
            continue
        seeds = range(FIRST_PROBE, FIRST_PROBE + (1 if study.quick else world.probes))
        with playing(cell._replace(policy=world.rule), FIRST_PROBE) as play:
            runs = [play(seed) for seed in seeds]
        punctual = [run.arrivals for run in runs if not run.discarded]
        if not punctual:
            raise SystemExit(f"{cell}: the hub was late in all episodes; measure on a quiet machine")
        network = Network.of(punctual)
        print(f"{network}\nwrote {network.write(file)}, {len(punctual)} of {len(runs)} episodes", flush=True)


def attempt(cell: Cell, seed: int, play: Callable[..., RealRun], records: Path) -> dict[str, Any]:
    """Play an episode, repeat it from its record, and say what came of it."""
    world, env = WORLDS[cell.world], environment(cell.world)
    about = {"env_id": world.env_id, "options": {}, "policy": cell.policy, "transport": LINKS[cell.network].transport,
             "speed": world.over[cell.network], "lockstep": False, "seed": seed}  # fmt: skip
    load, began = os.getloadavg()[0], time.time()
    with TemporaryDirectory() as folder:
        run = play(seed, out=Path(folder) / "arrivals.jsonl", about=about)
        record = (Path(folder) / "arrivals.jsonl").read_bytes()
    try:
        again = env.run_event_driven(built(cell.policy, env, 0), arrivals=run.arrivals, record=RECORDED)
        repeats = again.returns == run.result.returns
    except TraceError as error:
        repeats = False
        print(f"{cell}, seed {seed}: {error}", flush=True)
    assert run.punctuality is not None
    late, counts = run.punctuality.to_dict(), run.result.messages
    if not run.discarded and not (path := records / cell.record).is_file():
        write(path, gzip.compress(record, 9, mtime=0))
    return {
        "cell": [*cell], "seed": seed, "return": team_return(env, run.result), "returns": dict(run.result.returns),
        "discarded": run.discarded, "late": late["done_late"], "actions": sum(late["actions"].values()),
        "missed": sum(late["missed"].values()), "skipped": sum(late["skipped"].values()), "seconds": late["seconds"],
        "messages": [counts.sent, counts.lost, counts.in_flight], "repeats": repeats, "began": round(began),
        "refused": {reason: n for reason, n in run.refused.items() if n},
        "record": sha256(record).hexdigest()[:16], "load": round(load, 2),
    }  # fmt: skip


def turns(seeds: Mapping[Cell, Sequence[int]], lines: Sequence[Any]) -> list[tuple[Cell, list[int]]]:
    """Which seeds of which cell are played next, without what was; what was discarded once more, at the end."""
    tries: dict[tuple[Cell, int], list[bool]] = {}
    for line in lines:
        tries.setdefault((Cell(*line["cell"]), line["seed"]), []).append(line["discarded"])
    order = [(place, block) for block in range(BLOCKS) for place in stream(block, "turns").permutation(len(seeds))]
    cells = [*seeds]
    first = [(cells[k], [n for n in seeds[cells[k]][b::BLOCKS] if (cells[k], n) not in tries]) for k, b in order]
    again = [(cell, [n for n in seeds[cell] if tries.get((cell, n)) == [True]]) for cell in cells]
    return [turn for turn in (*first, *again) if turn[1]]


def run(study: Study, minutes: float) -> None:
    """Real episodes that are missing, for so long. Raises SystemExit for predictions that are not committed."""
    predictions, end = study.predictions(), time.monotonic() + 60.0 * minutes
    require_committed(study.out / "predictions.json")
    if missing := [str(cell) for cell in study.cells if str(cell) not in predictions["cells"]]:
        raise SystemExit(f"not predicted: {', '.join(missing)}")
    stamp, seeds = digest(predictions), {cell: predictions["cells"][str(cell)]["seeds"] for cell in study.cells}
    with Journal(path := study.out / "episodes.jsonl") as journal:
        journal.truncate(full_lines(path.read_bytes()))  # one that was killed may leave half a line
        while rounds := turns(seeds, lines := study.episodes()):
            for cell, numbers in rounds:
                with playing(cell, numbers[0] + 10**9 * len(lines)) as play:
                    for seed in numbers:
                        line = {**attempt(cell, seed, play, study.out / "records"), "predictions": stamp}
                        journal.append(f"{compact(line)}\n".encode())
                        if time.monotonic() > end:
                            left = sum(len(each) for _, each in turns(seeds, study.episodes()))
                            print(f"time is up; {left} episodes are left: run it again")
                            return
                print(f"{cell}: {len(numbers)} episodes", flush=True)
    print("nothing is left: compare")


# Predictions


def predicted(cell: Cell, network: Network, seeds: Sequence[int]) -> dict[str, Any]:
    """Returns by seed: of the right model and of wrong ones, in the mean of their draws, and of one draw."""
    env, world, policies = environment(cell.world), WORLDS[cell.world], built(cell.policy, environment(cell.world), 0)
    base = predict(env, {cell.policy: policies}, network, seeds=seeds, causes=False).returns[cell.policy]

    def plain(name: str) -> float:
        chosen = built(name, env, 0)
        return sum(team_return(env, env.run_synchronous(chosen, seed=seed, record=())) for seed in seeds) / len(seeds)

    def mean(draws: int, **options: Any) -> list[float]:
        def one(seed: int, draw: int) -> float:
            delivery = network.delivery(env, seed + (1 + draw) * 10**9, **options)
            return team_return(env, env.run_event_driven(policies, seed=seed, arrivals=delivery, record=()))

        return [round(sum(one(seed, draw) for draw in range(draws)) / draws, 6) for seed in seeds]

    runs = any(law.bursts for law in (*network.links.values(), *network.directions.values()))
    wrong = {name: mean(WRONG_DRAWS, **how) for name, how in WRONG.items() if runs or name != NO_RUNS}
    made = {"seeds": [*seeds], "gain": plain(world.rule) - plain(world.reference), "right": mean(DRAWS),
            "one": base[MEASURED], SYNCHRONOUS: base[SYNCHRONOUS], "wrong": wrong}  # fmt: skip
    errors = {name: max(apart(made["one"], values)[1], 1e-9) for name, values in wrong.items()}
    off = {name: round(apart(made["right"], values)[0] / errors[name], 2) for name, values in wrong.items()}
    return {**made, "off": off}


def predict_all(study: Study) -> None:
    """Predict the cells that are missing. Raises SystemExit once runs have begun."""
    content = study.predictions()
    cells = [cell for cell in study.cells if str(cell) not in content["cells"]]
    if cells and study.episodes():
        raise SystemExit("runs have begun: nothing is predicted any more")
    numbers = [2 if study.quick else WORLDS[cell.world].policies[cell.policy] for cell in cells]
    seeds, files = [range(FIRST, FIRST + number) for number in numbers], [study.out / cell.file for cell in cells]
    with ProcessPoolExecutor() as pool:
        all_made = pool.map(predicted, cells, map(Network.read, files), seeds)
        for cell, file, made in zip(cells, files, all_made, strict=True):
            content["cells"][str(cell)] = made
            content["networks"][file.name] = sha256(file.read_bytes()).hexdigest()
            content = json.loads(compact({**content, "schema_version": 1, "versions": versions()}))
            write(study.out / "predictions.json", f"{compact({**content, 'digest': digest(content)})}\n")
            must = [f"{name} ({off:+.1f} SE)" for name, off in made["off"].items() if abs(off) >= APART]
            print(f"{cell}: {np.mean(made['right']):.2f}; must be refused: {', '.join(must) or 'none'}", flush=True)


def main() -> None:
    """One step."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("step", choices=("probe", "predict", "run", "compare"))
    parser.add_argument("--out", type=Path, default=Study.out, help="where results are kept")
    parser.add_argument("--only", default="", metavar="TEXT", help="cells with this in their names")
    parser.add_argument("--minutes", type=float, default=math.inf, help="run: begin no episode after so many")
    parser.add_argument("--anyway", action="store_true", help="measure on a busy machine, too")
    parser.add_argument("--quick", action="store_true", help="probe, predict: very few seeds; give --out, too")
    args = parser.parse_args()
    study = Study(args.out.resolve(), [cell for cell in CELLS if args.only in str(cell)], args.quick)
    study.out.mkdir(parents=True, exist_ok=True)
    if args.step in ("probe", "run") and not args.anyway:
        require_idle()
    match args.step:
        case "probe":
            probe(study)
        case "predict":
            predict_all(study)
        case "run":
            run(study, args.minutes)
        case "compare":
            tables = compare(CELLS, study.predictions()["cells"], study.episodes())
            print(text := "\n\n".join(f"## {name}\n\n{lines_of(table)}" for name, table in tables.items()))
            if study.out == Study.out:
                write_all({study.out / "tables.md": f"{text}\n", PAGE: with_tables(PAGE.read_text("utf-8"), tables)})


if __name__ == "__main__":
    main()
