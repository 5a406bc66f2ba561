"""Many runs over real networks, drawn at random, each repeated: how many were equal?

`python -m real.many 30 udp tcp` in the folder of tests; with `0 --record real/data/market.jsonl` one run's record.
"""

from __future__ import annotations

import os

os.environ.setdefault("HERON_COMPILE", "0")

import argparse
import shutil
import signal
import sys
import tempfile
import threading
import time
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from real.carried_kit import NETWORKS, RECORD, SETTINGS, Quick, quickly
from real.quick import starter
from real.wire_kit import broker

from heron_env.real import carried
from heron_env.real.carrier import Carrier
from heron_env.seeding import stream

WORLDS = ("spread", "grid", "market", "markets", "talk")


def grouping(draws: Any, agents: list[str]) -> list[list[str]]:
    """Some of the agents, all or not, in 1 to 4 processes."""
    order = [agents[i] for i in draws.permutation(len(agents))]
    order = order[: int(draws.integers(max(1, len(order) - 2), len(order) + 1))]
    n = int(draws.integers(1, min(4, len(order)) + 1))
    return [order[first::n] for first in range(n)]


def network(draws: Any, transport: str) -> dict[str, Any] | None:
    """Options of a relay."""
    if transport == "mqtt":
        return None
    how = {
        "delay": float(draws.choice([0.0, 0.002, 0.01, 0.03])), "ratio": float(draws.choice([0.0, 0.5, 2.0])),
        "seed": int(draws.integers(1_000)),
    }  # fmt: skip
    if transport == "udp":
        burst = (0.05, 0.3, 0.8) if draws.random() < 0.3 else (0.0, 1.0, 0.0)
        return how | {
            "loss": float(draws.choice([0.0, 0.1, 0.4])),
            "copies": float(draws.choice([0.0, 0.2])),
            "burst": burst,
        }
    return how | {"loss": float(draws.choice([0.0, 0.02])), "breaks": float(draws.choice([0.0, 0.005]))}


def one(quick: Quick, transport: str, number: int, url: str, lockstep: bool) -> str:
    """One run, and its repetition; what was drawn. Raises where they differ."""
    draws = stream(number, "many", transport)
    name = str(draws.choice(WORLDS)) if not lockstep else str(draws.choice(["spread", "grid", "prompt market"]))
    setting = SETTINGS[name]
    env = setting.build()
    ids = [agent for agent in env.hierarchy.ids if agent not in ("boss", "system_agent")]
    groups, more = grouping(draws, ids), {"max_steps": int(draws.integers(6, 16))}
    options: dict[str, Any] = {"nodes": groups, "build": more, "seed": int(draws.integers(2**31))}
    kill, again = draws.random() < 0.4 and not lockstep, draws.random() < 0.6
    if not lockstep:
        options |= {
            "join_s": 20.0,
            "relay": network(draws, transport),
            "speed": setting.speed * float(draws.choice([0.7, 1.0, 3.0])),
        }
    with ExitStack() as stack, pytest.MonkeyPatch.context() as patch:
        begun, begin, play = [], carried.node_process, Carrier.play
        patch.setattr(carried, "node_process", partial(noted, begun, begin))

        def happen() -> None:
            arguments, process = begun[0]
            process.send_signal(signal.SIGKILL)
            if again:
                time.sleep(0.05)
                stack.enter_context(begin(*arguments))

        def playing(*arguments: Any) -> Any:
            timer = threading.Timer(0.2 * draws.random(), happen)
            if kill:
                timer.start()
            try:
                return play(*arguments)
            finally:
                timer.cancel()

        patch.setattr(Carrier, "play", playing)
        run = quick.run(name, transport, url, lockstep=lockstep, **options)
        stack.close()
    quick.repeated(name, run, build=more)
    if lockstep:
        other = setting.build(**more).run_synchronous(built(setting, env, run), seed=run.arrivals.seed, record=RECORD)
        assert other.same_course(run.result), "not the synchronous run"
    return f"{name}, {groups}, {options.get('relay')}, killed {kill}, again {bool(run.arrivals.begins)}"


def built(setting: Any, env: Any, run: Any) -> Any:
    return carried.built(setting.policies(), env, run.arrivals.seed)


def noted(begun: list[Any], begin: Any, *arguments: Any) -> Any:
    class Noting:
        def __enter__(self) -> Any:
            self.context = begin(*arguments)
            process = self.context.__enter__()
            begun.append((arguments, process))
            return process

        def __exit__(self, *error: Any) -> Any:
            return self.context.__exit__(*error)

    return Noting()


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser()
    parser.add_argument("runs", type=int)
    parser.add_argument("transports", nargs="*", default=list(NETWORKS))
    parser.add_argument("--lockstep", action="store_true")
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--record", type=Path)
    words = parser.parse_args()
    folder = Path(tempfile.mkdtemp())
    with ExitStack() as stack:
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        quick = quickly(stack.enter_context(starter()), patch)
        if words.record is not None:
            run = quick.run("market", "udp", out=words.record, about={"world": "market"})
            quick.repeated("market", run)
        for transport in words.transports:
            url = stack.enter_context(broker(folder)).url if transport == "mqtt" else ""
            equal = 0
            for number in range(words.first, words.first + words.runs):
                try:
                    said = one(quick, transport, number, url, words.lockstep)
                    equal += 1
                except Exception as error:  # noqa: BLE001 - it is counted
                    said = f"NOT EQUAL: {type(error).__name__}: {error}"
                print(f"{transport} {number}: {said}"[:300], flush=True)
                quick.inside.clear()
            print(f"{transport}: {equal} of {words.runs} equal", flush=True)
    shutil.rmtree(folder)


if __name__ == "__main__":
    sys.exit(main())
