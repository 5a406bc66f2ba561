"""Keep what this version of heron_env leaves behind, so that later versions are held to reading it.

`PYTHONPATH=.:tests python tests/golden/record_release.py`, in a worktree of the commit that is about to be replaced,
writes the folder `VERSION/` beside itself, with `made.json`: version, commit, and the numbers that the artefacts
came with. What is in such a folder is never made again.
"""

import gzip
import json
import os
import pickle
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from endpoint_kit import serving, soc_rule
from stable_baselines3 import PPO
from typer.testing import CliRunner

import heron_env
from heron_env import Disturbance, HeronEnv, ScheduleConfig, make
from heron_env.adapters import HeronVecEnv
from heron_env.cli import app
from heron_env.injection import Recording
from heron_env.lab import (
    Condition,
    Hyperparameters,
    RunFolder,
    Sweep,
    SweepResult,
    load_policy,
    record_episode,
    save_run,
    train,
    versions,
)
from heron_env.lab.traces import file
from heron_env.net.guard import Guard
from heron_env.serve.journal import Injection, NewSimulation, Reset, Steps
from heron_env.serve.shelf import Shelf

HERE = Path(__file__).parent
GRID, TRAFFIC, ENERGY, ECONOMY = (
    "heron/BatteryGrid-v0", "heron/TrafficCorridor-v0", "heron/EnergyManagement-v1", "heron/Economy-v0",
)  # fmt: skip
SHORT = {"max_steps": 6}
LATE = ScheduleConfig(msg_delay=0.4, act_delay=0.3, jitter_type="uniform", jitter_ratio=0.2, loss=0.2)
HOMES = {
    "day": 5, "num_batteries": 1, "zone_size": 1, "passive_per_zone": 1, "dt": 900.0, "physics_substeps": 1,
    "compile": False, **SHORT,
}  # fmt: skip
TINY = Hyperparameters(num_envs=2, n_steps=8, batch_size=16, n_epochs=1, hidden=(8, 8))
CRASH = Disturbance(900.0, "agent_crash", {"agent": "*"}, duration=1800.0)


class Leaning:
    """A policy with a `forward` of its own: it leans on what is seen first."""

    def forward(self, observation: np.ndarray) -> Any:
        return [float(observation[0]) - 0.6]


class Choosing:
    """A policy that is shown its mask: it chooses by what is seen, among what is allowed."""

    def forward(self, observation: np.ndarray, mask: Any = None) -> int:
        allowed = np.arange(5) if mask is None else np.flatnonzero(mask)
        return int(allowed[int(np.float64(observation).sum()) % len(allowed)])


def runs() -> dict[str, float]:
    """What `heron train` leaves, what Stable-Baselines3 does, and a network with memory that corrects a rule."""
    words = ["train", GRID, "--out", "run", "--steps", "12288", "-o", "max_steps=6"]
    assert CliRunner().invoke(app, words).exit_code == 0
    quick: dict[str, Any] = {"total_steps": 64, "validations": 1, "validation_episodes": 1, "progress": False}
    lanes = HeronVecEnv(GRID, 2, **SHORT)
    save_run(PPO("MlpPolicy", lanes, n_steps=8, batch_size=16, device="cpu", seed=0).learn(64), lanes, "run-sb3")
    train(ENERGY, "run-residual", hyperparameters=replace(TINY, gru=4), env_options=HOMES, **quick)
    return {name: evaluated(name) for name in ("run", "run-sb3", "run-residual")}


def trace(out: Path, env_id: str, policy: Any, **given: Any) -> None:
    """One recorded episode, packed."""
    packed(out, record_episode(env_id, policy, seed=5, **given))


def packed(out: Path, episode: Any) -> None:
    out.mkdir(parents=True, exist_ok=True)
    (out / f"{file.NAME}.gz").write_bytes(gzip.compress(file.as_text(episode).encode(), mtime=0))


def traces(out: Path) -> None:
    """Episodes of the event clock: late, by chance, masked with choices that are forbidden, disturbed, answered."""
    trace(out / "late", GRID, {"*": Leaning()}, options=SHORT, schedule=LATE)
    trace(out / "random", GRID, "random", options=SHORT, schedule=LATE)
    trace(out / "masked", TRAFFIC, {"*": Choosing()}, options=SHORT)
    trace(out / "random-masked", TRAFFIC, "random", options=SHORT)
    trace(out / "disturbed", ENERGY, "grid-friendly", options=HOMES, disturbances=[CRASH])
    trace(out / "trained", GRID, "run", options=SHORT, schedule=LATE)
    with serving(soc_rule) as endpoint:
        given = {"seed": 5, "options": SHORT, "schedule": LATE, "fixture": out / "answered" / "fixture.jsonl"}
        packed(out / "answered", record_episode(GRID, endpoint.url, **given))


def fixtures(out: Path) -> None:
    """A recording that was finished, and the same cut off in the middle of a line."""
    out.mkdir()
    env = make(GRID, **SHORT)
    with serving(soc_rule) as endpoint, Recording(endpoint.url, out / "whole.jsonl", env=env) as policy:
        env.run_synchronous({"*": policy}, seed=5)
    cut(out / "whole.jsonl", out / "cut.jsonl", lines=5)


def cut(source: Path, target: Path, lines: int) -> None:
    """The first lines, and half of the next one."""
    kept = source.read_bytes().splitlines(keepends=True)
    target.write_bytes(b"".join(kept[:lines]) + kept[lines][: len(kept[lines]) // 2])


def sweep() -> Sweep:
    """Chance and a trained run, under delay, loss and noise."""
    conditions = [Condition(act_delay=1.0), Condition(loss=0.3), Condition(noise=0.1)]
    return Sweep.of(GRID, {"random": "random", "trained": "run"}, conditions, cases=3, options=SHORT)


def sweeps(out: Path) -> dict[str, dict[str, list[float]]]:
    """One that is finished, its copy stopped in the middle of a line, one of an endpoint; returns of the finished."""
    with serving(soc_rule) as endpoint:
        asked = Sweep.of(GRID, {"endpoint": endpoint.url}, [Condition(act_delay=1.0)], cases=2, options=SHORT)
        results = {
            "whole": sweep().run(out / "whole", processes=1, progress=False),
            "answered": asked.run(out / "answered", processes=1, progress=False),
        }
    (out / "cut").mkdir()
    cut(out / "whole" / "results.jsonl", out / "cut" / "results.jsonl", lines=7)
    (out / "cut" / "sweep.json").write_bytes((out / "whole" / "sweep.json").read_bytes())
    return {name: returns(result) for name, result in results.items()}


def returns(result: SweepResult) -> dict[str, list[float]]:
    """By policy and condition, of each case."""
    return {f"{point.policy}, {point.condition.name}": list(point.values) for point in result.points}


def service(out: Path) -> dict[str, Any]:
    """The folder of `heron serve` with two simulations in mid-episode, where they are; an endpoint plays in one."""
    shelf = Shelf(out, guard=Guard(loopback=True))
    asked = NewSimulation(env=GRID, options={"num_batteries": 2, "max_steps": 12}, seed=3)
    _, alone = shelf.create(asked)
    alone.do(Steps(steps=2, actions={"battery_1": [0.5]}))
    alone.do(Reset(seed=4))
    alone.do(Steps(steps=3, actions={"battery_2": [-0.5]}))
    _, played = shelf.create(asked)
    with serving(soc_rule) as endpoint:
        played.do(Injection(agent_id="battery_1", endpoint_url=endpoint.url))
        played.do(Steps(steps=3, actions={"battery_2": [0.1]}))
        stands = {name: simulation.state() for name, simulation in shelf}
        shelf.close()
    return stands


def environments() -> dict[str, HeronEnv]:
    """Plain, masked, declared, and to be disturbed."""
    return {
        "grid": make(GRID, **SHORT),
        "masked": make(TRAFFIC, **SHORT),
        "economy": make(ECONOMY),
        "disturbed": make(ENERGY, **HOMES),
    }


def in_mid_episode() -> dict[str, HeronEnv]:
    """All of them after two steps, and one whose event-driven run has stopped."""
    made = environments()
    for name, env in made.items():
        env.reset(seed=5, options={"disturbances": [CRASH]} if name == "disturbed" else None)
        steps(env, 2)
    made["event"] = make(GRID, **SHORT)
    made["event"].start_event_driven({"*": Leaning()}, schedule=LATE, seed=5).until(2.5)
    return made


def choices(env: Any) -> dict[str, Any]:
    """For each agent an action that depends on the space alone."""
    return {agent: np.zeros_like(env.action_space(agent).sample()) for agent in env.agents}


def steps(env: Any, number: int) -> list[list[float]]:
    """The truth after each step."""
    return [env.step(choices(env)) and env.simulation.truth.tolist() for _ in range(number)]


def states(out: Path) -> dict[str, Any]:
    """`get_state()`, pickled as a user would keep it, and what came next."""
    out.mkdir()
    next_steps = {}
    for name, env in in_mid_episode().items():
        (out / f"{name}.pkl").write_bytes(pickle.dumps(env.get_state(), protocol=5))
        next_steps[name] = [env.simulation.truth.tolist()]
        next_steps[name] += [] if name == "event" else steps(env, 2)
    return next_steps


def evaluated(run: str) -> float:
    """Return of a run folder's policies, one episode."""
    return sum(RunFolder.open(run).make().run_synchronous(load_policy(run), seed=5).returns.values())


def main() -> None:
    """Write the folder; refused where it is there, or the library is not as committed."""
    out = HERE / heron_env.__version__

    def git(*words: str) -> str:
        return subprocess.run(["git", *words], cwd=HERE, capture_output=True, text=True, check=True).stdout.strip()

    if git("status", "--porcelain", "--", "../../heron_env"):
        raise SystemExit("heron_env is not as committed: make a worktree of the commit, and run this there")
    out.mkdir()
    os.chdir(out)  # paths in artefacts are relative
    returned = runs()
    traces(Path("traces"))
    fixtures(Path("fixtures"))
    made = {
        "commit": git("rev-parse", "HEAD"),
        "versions": versions(),
        "runs": returned,
        "sweeps": sweeps(Path("sweeps")),
        "serve": service(Path("serve")),
        "states": states(Path("states")),
    }
    for lock in Path().rglob(".lock"):
        lock.unlink()
    Path("made.json").write_text(json.dumps(made, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
