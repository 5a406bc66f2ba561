"""Does PPO climb where the return rises? Its gradient beside the true one, in EnergyManagement with actions 60 s late.

    python training/gradient_check.py      # about 12 CPU-minutes: gradient.json, gradient.md

The policy is the strongest rule, and what is asked is how the day's return changes with a correction of the batteries'
power that is proportional to one observed column: 23 directions (22 columns in units of their spread, and a constant).
The truth: the same 96 training days with a correction of 1 % of the half range up and down, no exploration. PPO's: mean
of advantage x noise / variance x column over all decisions, times their number in a day, which is what its first step
follows. The critic has learned for as many updates as a run would let it burn in. Nothing but the trainer's own
learner, advantages and twins are used.
"""

import argparse
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch
from numpy.typing import NDArray

from heron_env import Hyperparameters, ScheduleConfig, make
from heron_env.core.policy import OnBatches
from heron_env.files import write_all
from heron_env.lab import benchmark
from heron_env.lab.benchmark import Case
from heron_env.lab.episodes import play_lanes
from heron_env.lab.learning.lean_ppo import Learner
from heron_env.lab.learning.plan import make_plan
from heron_env.lab.learning.row_training import RowTraining
from heron_env.lab.learning.validation import Validation
from heron_env.lab.trained import Scaling
from heron_env.worlds.energy_management import STRONGEST

ENV: Final = "heron/EnergyManagement-v1"
NETWORK: Final = ScheduleConfig(act_delay=60.0)
WORLD: Final = {"dt": 60.0, "physics_substeps": 6, "split": "train"}
STEPS_A_DAY, AGENTS, HALF_RANGE = 1440, 6, 5.0
DAYS, MOVED = 96, 0.01
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Way:
    """How a gradient is estimated: lanes, steps of a rollout, twins, lambda; updates of the critic before, and of the
    gradient."""

    name: str
    num_envs: int
    n_steps: int
    twins: int
    gae_lambda: float
    critic: int
    measured: int

    def decisions(self, updates: int) -> int:
        """How many there are in so many updates."""
        return updates * self.num_envs * self.n_steps * AGENTS

    @property
    def settings(self) -> Hyperparameters:
        """Of a trainer whose actor never moves."""
        whole = self.n_steps == STEPS_A_DAY
        return Hyperparameters(
            num_envs=self.num_envs, n_steps=self.n_steps, twins=self.twins, gae_lambda=self.gae_lambda,
            gamma=1.0 if whole else 0.99 ** (1 / 15), n_epochs=2, batch_size=2048, log_std=-2.5,
        )  # fmt: skip


WAYS: Final = (
    Way("half an hour, lambda 0.95", 128, 32, 1, 0.95, 45, 90),
    Way("half an hour, lambda 0.95, twins", 128, 32, 4, 0.95, 45, 90),
    Way("two hours, lambda 0.998, twins", 64, 120, 4, 0.998, 36, 24),
    Way("whole days, lambda 1", 16, STEPS_A_DAY, 1, 1.0, 2, 20),
    Way("whole days, lambda 0.95, twins", 16, STEPS_A_DAY, 4, 0.95, 10, 20),
    Way("whole days, lambda 1, twins", 16, STEPS_A_DAY, 4, 1.0, 2, 20),
)


def course_of(way: Way) -> RowTraining:
    """A training that corrects the rule, under the network."""
    settings = way.settings
    plan = make_plan(
        ENV, Path("unused"), {}, WORLD, STRONGEST, total_steps=1, seed=0,
        time_limit=None, hyperparameters=settings, validations=0, schedule=NETWORK,
    )  # fmt: skip
    env = plan.make()
    rules = benchmark.by_agent(benchmark.baselines(env)[STRONGEST], env)
    return RowTraining(plan, env, rules, Validation(env, ENV, plan.options, 0))


def estimated(way: Way) -> tuple[Floats, Floats, Scaling]:
    """PPO's gradient in EUR a day for each direction, its standard error, and how columns are scaled."""
    course = course_of(way)
    student = course.students[0]
    learner, scale = student.learner, student.scales.reward
    actor = {name: w.clone() for name, w in learner.network.state_dict().items() if "value_net" not in name}
    rows, found = course.begin(), list[Floats]()
    for update in range(way.critic + way.measured):
        rows = course.collect(rows)
        if update >= way.critic:
            found.append(gradient(learner) * STEPS_A_DAY * AGENTS / scale)
        course.learn()
        learner.network.load_state_dict(actor, strict=False)
    each = np.array(found)
    return each.mean(axis=0), each.std(axis=0, ddof=1) / len(each) ** 0.5, student.scales.seen


def gradient(learner: Learner) -> Floats:
    """Of the mean advantage, for the constant and each column, `[1 + d]`."""
    gains = learner.gains()
    gains = gains - learner.of_twins(gains)
    usable = learner.column("whole") & ~learner.column("old") & learner.column("took")
    with torch.no_grad():
        parts = [torch.from_numpy(learner.column(name)) for name in ("obs", "state", "hidden")]
        means = learner.network(parts[0][None], parts[1][None], parts[2])[0][0].numpy()
    noise = learner.column("action")[usable, 0] - means[usable, 0]
    weight = gains[usable] * noise / float(learner.network.log_std.detach().exp()) ** 2
    columns = np.concatenate([np.ones((len(weight), 1)), learner.column("obs")[usable]], axis=1)
    return np.asarray(weight @ columns / len(weight))


class Moved(OnBatches):
    """The rule, moved along one direction."""

    def __init__(self, rule: Any, seen: Scaling, direction: int, amount: float) -> None:
        self.rule, self.seen, self.direction, self.amount = rule, seen, direction, amount

    def forward_batch(self, vectors: NDArray[np.float32]) -> Floats:
        """Powers `[n, 1]` of observations `[n, d]`."""
        scaled = self.seen(vectors)
        along = np.ones(len(vectors)) if self.direction < 0 else scaled[:, self.direction]
        moved = self.rule.forward_batch(vectors) + HALF_RANGE * self.amount * along[:, None]
        return np.asarray(np.clip(moved, -HALF_RANGE, HALF_RANGE))


def truth(seen: Scaling) -> tuple[Floats, Floats]:
    """The gradient by differences, EUR a day, and its standard error over days."""
    env = make(ENV, **WORLD)
    rules = benchmark.by_agent(benchmark.baselines(env)[STRONGEST], env)
    days = np.random.default_rng(0).choice([day for day in range(365) if day % 5 in (0, 1, 3)], DAYS, replace=False)
    cases = [Case(500 + number, {"day": int(day)}) for number, day in enumerate(days)]

    def returns(direction: int, amount: float) -> Floats:
        moved = {id(rule): Moved(rule, seen, direction, amount) for rule in rules.values()}
        policies = {agent: moved[id(rule)] for agent, rule in rules.items()}
        batch = play_lanes(env, cases, [policies] * DAYS, NETWORK)
        return np.array([result.returns[env.hierarchy.ids[0]] for result in batch.results()])

    each = [(returns(d, MOVED) - returns(d, -MOVED)) / (2.0 * MOVED) for d in range(-1, len(seen.center))]
    return np.mean(each, axis=1), np.std(each, axis=1, ddof=1) / DAYS**0.5


def table(names: Sequence[str], true: Sequence[float], rows: Sequence[dict[str, Any]]) -> str:
    """Markdown: how alike each estimate is to the truth, and what it says of three directions."""
    shown = [names.index(name) for name in ("Forecast.surplus_rest", "zone_1.Zone.excess_rest", "Meter.pv")]
    text = [
        "# PPO's gradient beside the true one\n",
        f"Made by `python training/gradient_check.py`: {ENV}, actions 60 s late, the strongest rule; EUR a day for a",
        f"correction of a whole half range ({HALF_RANGE:g} kW) in each of {len(names)} directions. Standard errors",
        f"over updates, of the truth over {DAYS} days. Twins: four lanes live the same day.\n",
        "| estimate | decisions | mean standard error | correlation with the truth | "
        + " | ".join(names[d] for d in shown) + " |",
        f"|---|{'---:|' * (3 + len(shown))}",
        f"| true | | | | {' | '.join(f'{true[d]:.0f}' for d in shown)} |",
    ]  # fmt: skip
    for row in rows:
        mean, error = row["gradient"], row["error"]
        alike = float(np.corrcoef(mean, true)[0, 1])
        cells = " | ".join(f"{mean[d]:.0f} ± {error[d]:.0f}" for d in shown)
        text.append(f"| {row['name']} | {row['decisions']:,} | {np.mean(error):.1f} | {alike:.2f} | {cells} |")
    return "\n".join(text) + "\n"


def main() -> None:
    """Estimate, compare, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("training/results/under_the_network"))
    given = parser.parse_args()
    rows, seen = [], None
    for way in WAYS:
        mean, error, seen = estimated(way)
        rows.append(
            {
                **asdict(way),
                "decisions": way.decisions(way.measured),
                "gradient": mean.tolist(),
                "error": error.tolist(),
            }
        )
        print(way.name, flush=True)
    assert seen is not None
    true, spread = truth(seen)
    env = make(ENV)
    names = ["constant", *env.observation_names(env.possible_agents[0])]
    text = table(names, true.tolist(), rows)
    data = {"names": names, "true": true.tolist(), "true_error": spread.tolist(), "ways": rows}
    write_all({given.out / "gradient.json": json.dumps(data, indent=1) + "\n", given.out / "gradient.md": text})
    print(text)


if __name__ == "__main__":
    main()
