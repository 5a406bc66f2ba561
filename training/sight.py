"""What does a hunter that sees only what is near lose? Tag with mates="message" and a radius of sight (V11).

    python training/sight.py             # train and play what is missing, then the table and the figure
    python training/sight.py --report    # the table and the figure of what is there

For each radius and seed PPO trains three hunters of prey that flees by rule; they observe whether they see it. Beside
it the rule that ships, which stays where it sees nothing, and one that goes to the middle then.
"""

import argparse
import json
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from heron_env import Hyperparameters, TrainedRun, load_policy, make, train
from heron_env.core.policy import OnBatches
from heron_env.files import write, write_all
from heron_env.lab import Intervals, team_return
from heron_env.lab.benchmark import cases
from heron_env.lab.figure_style import BLUE, GREY, VERMILION, house_style, to_svg
from heron_env.lab.sweep.play import play_lanes
from heron_env.worlds.particles.policies import ByRule

RADII: Final = (0.25, 0.5, 0.75, 1.0, 1.5, 4.0)
"""The largest is everything."""
PPO, STAYS, SEARCHES = "PPO", "rule, stays where it sees nothing", "rule, goes to the middle then"
COLOURS: Final = {PPO: VERMILION, SEARCHES: BLUE, STAYS: GREY}
SEEDS, TEST = range(5), 256
STEPS: Final = 800_000
SETTINGS: Final = Hyperparameters(
    num_envs=128, n_steps=25, batch_size=1600, n_epochs=4, gamma=0.95, learning_rate=1e-3, final_learning_rate=1e-4
)
OUT: Final = Path("training/results/sight")


class Searching(OnBatches):
    """Play by the rule of the world where prey is in sight, the last number observed; else go to the middle."""

    def __init__(self, rule: ByRule) -> None:
        self.rule = rule
        self.middle = ByRule(lambda seen: (-seen["position"], None), rule.parts, rule.spec)

    def forward_batch(self, vectors: NDArray[np.float32]) -> NDArray[np.float64]:
        """Actions `[b, size]` for observations `[b, d]`."""
        sees = vectors[:, -1:] > 0.5
        return np.where(sees, self.rule.forward_batch(vectors), self.middle.forward_batch(vectors))


def options(radius: float) -> dict[str, Any]:
    """Of the environment."""
    return {"prey": "rule", "mates": "message", "sight": radius, "observe_visible": True}


def trained(radius: float, seed: int, runs: Path) -> Path:
    """The folder of a training, which is run where it is missing."""
    folder = runs / f"sight-{radius}-{seed}"
    if not (folder / "config.json").is_file():
        run: TrainedRun = train(
            "heron/Tag-v0", folder, total_steps=STEPS, env_options=options(radius), hyperparameters=SETTINGS,
            validations=1, validation_episodes=2, progress=False, seed=seed,
        )  # fmt: skip
        print(f"{folder}: {run.config.transitions:,} transitions in {run.config.seconds} s", flush=True)
    return folder


def study(runs: Path) -> dict[str, list[list[list[float]]]]:
    """Returns `[radii][seeds][cases]` by name; a rule has one row for all seeds."""
    returns: dict[str, list[list[list[float]]]] = {PPO: [], STAYS: [], SEARCHES: []}
    for radius in RADII:
        env = make("heron/Tag-v0", **options(radius))
        rule: Any = env.benchmark().baselines(0)["rule"]
        teams: dict[str, list[Any]] = {STAYS: [rule], SEARCHES: [{"*": Searching(rule["adversary"])}]}
        teams[PPO] = [load_policy(trained(radius, seed, runs), env=env) for seed in SEEDS]
        for name, policies in teams.items():
            returns[name].append([])
            for policy in policies:
                results = play_lanes(env, cases(env, TEST), [policy] * TEST, None).results()
                returns[name][-1].append([round(team_return(env, each), 4) for each in results])
            print(radius, name, np.mean(returns[name][-1], axis=1).round(2).tolist(), flush=True)
    return returns


def estimate(rows: list[list[float]]) -> Any:
    """Mean over seeds and cases with its interval."""
    values = np.array(rows)
    return Intervals(range(values.shape[1])).mean(values)


def table(returns: dict[str, list[list[list[float]]]]) -> str:
    """Markdown: mean return of the team by radius."""
    lines = ["| radius | " + " | ".join(COLOURS) + " |", "|---:|" + "---:|" * len(COLOURS)]
    for i, radius in enumerate(RADII):
        lines.append(f"| {radius:g} | " + " | ".join(str(estimate(returns[name][i])) for name in COLOURS) + " |")
    return "\n".join(lines) + "\n"


def figure(returns: dict[str, list[list[list[float]]]]) -> bytes:
    """Return over radius."""
    with house_style():
        from matplotlib.figure import Figure

        drawn = Figure(figsize=(6.4, 3.4), layout="constrained")
        axes, at = drawn.subplots(), [*RADII[:-1], 2.0]
        for name, colour in COLOURS.items():
            found = [estimate(rows) for rows in returns[name]]
            axes.plot(at, [one.value for one in found], "o-", color=colour, label=name)
            axes.fill_between(at, [one.low for one in found], [one.high for one in found], color=colour, alpha=0.15)
        axes.set_xticks(at, [*map("{:g}".format, RADII[:-1]), "all"])
        axes.set_xlabel("radius of sight")
        axes.set_ylabel("return of three hunters, 25 steps")
        axes.legend(frameon=False)
        return to_svg(drawn, text=True)


def main() -> None:
    """Run what is missing, then report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=Path, default=Path("runs/sight"))
    parser.add_argument("--out", type=Path, default=OUT)
    parser.add_argument("--report", action="store_true")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    file = given.out / "study.json"
    if not given.report:
        write(file, json.dumps(study(given.runs)) + "\n")
    returns = json.loads(file.read_text(encoding="utf-8"))
    text = table(returns)
    write_all({given.out / "table.md": text, given.out / "sight.svg": figure(returns)})
    print(text)


if __name__ == "__main__":
    main()
