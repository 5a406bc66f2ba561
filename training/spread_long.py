"""How far does PPO come on heron/Spread-v0, and how long does it take? Long trainings, saved on the way.

    python training/spread_long.py                           # 3 seeds of 20,000,000 environment steps, and the report
    python training/spread_long.py --seeds 0 --minutes 30    # stop after half an hour; the next call goes on from there
    python training/spread_long.py --only-report             # of what is there, finished or not

Each training is kept as SEED.zip (the model) and SEED.json (its curve and what it took) in --runs. One that goes on
has the networks, the optimiser and the place in the learning rate's fall, but new episodes: so it is no bit-by-bit
repetition of one that never stopped. The report, long.json with long.md and long.svg in --out, gives returns in the
original MPE form: distances and contacts of all agents summed, every agent touching itself in every step.
"""

import argparse
import io
import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from spread_ppo import (
    AGENTS,
    EPISODE,
    Returns,
    Settings,
    all_versions,
    as_kept,
    heron,
    in_mpe_form,
    levels,
    played,
)
from stable_baselines3 import PPO
from stable_baselines3.common.vec_env import VecEnv, VecEnvWrapper

from heron_env import mean_interval
from heron_env.files import write
from heron_env.lab.figure_style import BLUE, GREY, SKY, blank, end_labels, house_style, to_svg

SCHEMA = 1
LONG = Settings(
    num_envs=1024, n_steps=25, batch_size=9600, n_epochs=4, final_learning_rate=1e-4, gamma=0.95, gae_lambda=0.9
)
ALT = (
    "Learning curves of heron/Spread-v0 over environment steps, rising from the level of random actions; beside them "
    "the levels of two rules"
)


class TimeLimits(VecEnvWrapper):
    """Adds the discounted value of the last observation to the reward where the time limit cuts an episode.

    PPO does that itself, one slot after the other; here it is one call of the network for all slots that end together.
    So infos don't speak of the time limit any more. `gained` are the step's own rewards.
    """

    model: PPO

    def reset(self) -> Any:
        """As the environment's."""
        return self.venv.reset()

    def step_wait(self) -> Any:
        """Step, and value what was cut off."""
        seen, rewards, dones, infos = self.venv.step_wait()
        self.gained = rewards
        cut = [slot for slot in np.flatnonzero(dones) if infos[slot].get("TimeLimit.truncated")]
        if cut:
            policy, last = self.model.policy, np.stack([infos[slot]["terminal_observation"] for slot in cut])
            with torch.no_grad():
                values = policy.predict_values(policy.obs_to_tensor(last)[0]).numpy()[:, 0]
            rewards = rewards.copy()
            rewards[cut] += self.model.gamma * values
            infos = [{} for _ in infos]
        return seen, rewards, dones, infos


class Course(Returns):
    """The learning curve, and the state of the training in files, from which it can go on.

    Args:
        file: of the curve; the model lies beside it.
        run: what was there before this session.
        every: seconds between savings.
        minutes: stop after so long, if not done before.
        tests: how often the deterministic policy is measured, in environment steps.
        episodes: of each measurement.
    """

    def __init__(
        self, file: Path, run: dict[str, Any], *, every: float, minutes: float | None, tests: int, episodes: int
    ) -> None:
        super().__init__()
        self.file, self.run, self.every, self.minutes = file, run, every, minutes
        self.tests, self.episodes = tests, episodes
        self.curve = run["curve"]

    def gained(self) -> NDArray[np.float32]:
        """Rewards of the step just made, without what TimeLimits added."""
        return np.asarray(self.training_env.gained)

    def _on_training_start(self) -> None:
        super()._on_training_start()
        self._began = self._saved = time.perf_counter()
        self._cpu = time.process_time()
        self._before = (self.run["seconds"], self.run["cpu_seconds"])
        self.over = False

    def _on_rollout_start(self) -> None:
        now, tested = time.perf_counter(), self.run["tests"][-1][0] if self.run["tests"] else -self.tests
        self.over = self.minutes is not None and now - self._began > 60.0 * self.minutes
        if self.over or self.num_timesteps // AGENTS - tested >= self.tests:
            self.measure()
        if self.over or now - self._saved > self.every:
            self.save()

    def _on_step(self) -> bool:
        return super()._on_step() and not self.over

    def measure(self) -> None:
        """Let the deterministic policy play."""
        level = played(self.model, heron, self.episodes)
        self.run["tests"].append([self.num_timesteps // AGENTS, round(level, 5)])

    def save(self) -> None:
        """The model first, then what says that it is there."""
        seconds, cpu = self._before
        self.run["seconds"] = round(seconds + time.perf_counter() - self._began, 1)
        self.run["cpu_seconds"] = round(cpu + time.process_time() - self._cpu, 1)
        self.run["steps"] = self.num_timesteps // AGENTS
        self.run["load"] = round(float(np.mean(self.loads)), 2) if self.loads else self.run["load"]
        packed = io.BytesIO()
        self.model.save(packed)
        write(self.file.with_suffix(".zip"), packed.getvalue())
        write(self.file, json.dumps(self.run) + "\n")
        self._saved = time.perf_counter()


def session(
    seed: int, steps: int, settings: Settings, runs: Path, *, episodes: int = 512, points: int = 20,
    every: float = 120.0, minutes: float | None = None,
) -> dict[str, Any]:  # fmt: skip
    """Train on from what `runs` holds of this seed until it is done or the time is up; the training so far."""
    torch.set_num_threads(1)
    runs.mkdir(parents=True, exist_ok=True)
    file = runs / f"{seed}.json"
    run = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else blank_run(seed, settings)
    if run["settings"] != as_kept(settings):
        raise SystemExit(f"{file} was begun with other settings: {run['settings']}; choose another folder")
    if run["steps"] >= steps:
        return run
    venv = TimeLimits(heron(settings.num_envs))
    venv.model = model = opened(file, venv, settings, run)
    course = Course(file, run, every=every, minutes=minutes, tests=steps // points, episodes=episodes)
    run["sessions"] += 1
    model.learn((steps - run["steps"]) * AGENTS, callback=course, reset_num_timesteps=False)
    if not course.over:
        course.measure()
        course.save()
    venv.close()
    return run


def blank_run(seed: int, settings: Settings) -> dict[str, Any]:
    """A training that has not begun."""
    return {
        "seed": seed, "steps": 0, "settings": as_kept(settings), "curve": [], "tests": [], "seconds": 0.0,
        "cpu_seconds": 0.0, "load": 0.0, "sessions": 0, "versions": all_versions("heron"),
    }  # fmt: skip


def opened(file: Path, venv: VecEnv, settings: Settings, run: dict[str, Any]) -> PPO:
    """The model to go on with; its environments start with seeds that no other seed and session uses."""
    if run["steps"]:
        model = PPO.load(file.with_suffix(".zip"), env=venv, device="cpu")
        model.set_random_seed(run["seed"] + 1000 * run["sessions"])
    else:
        model = settings.model(venv, run["seed"])
    venv.seed(100_000 * (run["seed"] + 1) + 2000 * run["sessions"])
    return model


def thinned(curve: Sequence[Sequence[float]], points: int) -> list[list[float]]:
    """At most `points` parts of the curve: (environment steps at the end, mean return)."""
    parts = np.array_split(np.array(curve), min(points, len(curve)))
    return [[int(part[-1, 0]), round(float(part[:, 1].mean()), 4)] for part in parts]


def study_of(runs: Sequence[dict[str, Any]], episodes: int, points: int = 200) -> dict[str, Any]:
    """What long.json keeps."""
    found = [{**run, "curve": thinned(run["curve"], points)} for run in runs]
    shared = [(run.pop("settings"), run.pop("versions")) for run in found]
    return {
        "schema_version": SCHEMA, "settings": shared[0][0], "versions": shared[0][1], "test_episodes": episodes,
        "levels": levels(episodes), "runs": found,
    }  # fmt: skip


def row(run: dict[str, Any]) -> list[str]:
    """The table's line for a training."""
    level = run["tests"][-1][1]
    return [
        str(run["seed"]), f"{run['steps']:,}", f"{level:.2f}", f"{in_mpe_form(level):.1f}",
        f"{run['seconds'] / 60.0:.1f} min", f"{run['cpu_seconds'] / 60.0:.1f} min",
        f"{run['steps'] / run['seconds']:,.0f}", str(run["load"]),
    ]  # fmt: skip


def table_of(study: dict[str, Any]) -> str:
    """long.md."""
    runs, test = study["runs"], f"{study['test_episodes']} test episodes"
    columns = ("seed", "environment steps", "agent's return", "MPE's form", "wall clock", "CPU time", "steps/s", "load")
    settings = ", ".join(f"{name} {value}" for name, value in study["settings"].items())
    last = [run["tests"][-1][1] for run in runs]
    lines = [
        f"PPO of Stable-Baselines3, one thread, on heron/Spread-v0: {AGENTS} agents, continuous, local_ratio 0.5,",
        f"{EPISODE} steps an episode. Policies without exploration on {test}; the original MPE form adds up distances",
        "and contacts of all agents, each touching itself in every step. Steps/s by wall clock, measurements included,",
        "on a machine that did other things too: load is the mean number of processes that wanted it.",
        "",
        f"| {' | '.join(columns)} |",
        f"|{'---|' * len(columns)}",
        *(f"| {' | '.join(row(run))} |" for run in runs),
        "",
        f"Mean: {mean_interval(last)} for an agent, {mean_interval([in_mpe_form(one) for one in last])} in MPE's form.",
        "Without learning, on the same episodes:",
        "",
        "| | return of an agent | original MPE form |",
        "|---|---|---|",
        *(f"| {name} | {level:.2f} | {in_mpe_form(level):.1f} |" for name, level in study["levels"].items()),
        "",
        f"PPO: {settings}; nothing normalised but advantages.",
        "",
        f"![{ALT}](long.svg)",
    ]
    return "\n".join(lines) + "\n"


def figure_of(study: dict[str, Any]) -> Any:
    """Every seed's curve, and the levels of those who do not learn."""
    with house_style():
        figure, (axes,) = blank(3.8)
        labels = []
        for number, run in enumerate(study["runs"]):
            curve, tests = np.array(run["curve"]), np.array(run["tests"])
            axes.plot(curve[:, 0], in_mpe_form(curve[:, 1]), color=SKY, linewidth=1.0)
            axes.plot(tests[:, 0], in_mpe_form(tests[:, 1]), color=BLUE, linewidth=1.6, marker="o", markersize=2.5)
            if number == 0:
                last = in_mpe_form(curve[-10:, 1].mean())
                labels += [(in_mpe_form(tests[-1, 1]), "deterministic", BLUE), (last, "exploring", SKY)]
        for name, level in study["levels"].items():
            axes.axhline(in_mpe_form(level), color=GREY, linewidth=1.2, linestyle=(0, (5, 3)))
            labels.append((in_mpe_form(level), name, GREY))
        end_labels(axes, labels, gap=0.065)
        axes.set_ylabel("return, original MPE form")
        axes.set_xlabel("environment steps")
        axes.xaxis.set_major_formatter(lambda value, _: f"{value / 1e6:g} M" if value else "0")
        axes.set_title(f"heron/Spread-v0: {len(study['runs'])} seed{'s' * (len(study['runs']) > 1)}")
        return figure


def report(runs: Path, out: Path, episodes: int) -> str:
    """Write long.json, long.md and long.svg of the trainings in `runs`; the table."""
    found = [json.loads(file.read_text(encoding="utf-8")) for file in sorted(runs.glob("*.json"))]
    study = study_of([run for run in found if run["tests"]], episodes)
    out.mkdir(parents=True, exist_ok=True)
    write(out / "long.json", json.dumps(study) + "\n")
    text = table_of(study)
    write(out / "long.md", text)
    write(out / "long.svg", to_svg(figure_of(study), text=True))
    return text


def main() -> None:
    """Train on, report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--steps", type=int, default=20_000_000, help="environment steps of each training")
    parser.add_argument("--minutes", type=float, help="for each seed in this call")
    parser.add_argument("--test-episodes", type=int, default=512)
    parser.add_argument("--runs", type=Path, default=Path("runs/spread_long"), help="where trainings are kept")
    parser.add_argument("--out", type=Path, default=Path("training/results/spread"))
    parser.add_argument("--only-report", action="store_true")
    given = parser.parse_args()
    if not given.only_report:
        for seed in given.seeds:
            session(seed, given.steps, LONG, given.runs, episodes=given.test_episodes, minutes=given.minutes)
    print(report(given.runs, given.out, given.test_episodes))


if __name__ == "__main__":
    main()
