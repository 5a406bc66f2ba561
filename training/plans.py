"""Which way of playing a plan survives how much inference time? Three environments, nine schemes, paired seeds.

    python training/plans.py             # play everything, then the tables and the figure
    python training/plans.py --report    # the tables and the figure of what is there

All plan with an exact model (the wind and the camera's noise are unknown to it); what differs is how an answer is used.
docs/how_to/plans.md says what came out.
"""

import argparse
import json
import math
from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import gymnasium
import numpy as np
from gymnasium import spaces
from plans_chase import DT, Chase, follow

from heron_env import Planned, ScheduleConfig, under_network
from heron_env.files import write, write_all
from heron_env.lab import Intervals
from heron_env.lab.figure_style import BLUE, GREEN, GREY, PURPLE, VERMILION, house_style, to_svg

K, AGAIN, SEEDS = 50, 4, 32
DELAYS: Final = (0, 2, 4, 8, 12, 20)
"""Thinking, in control steps."""
OUT: Final = Path("training/results/plans")
Rows = list[list[float]]
Model = Callable[[Any, float], Any]


class Integrator(gymnasium.Env[Any, Any]):
    """x'' = a + wind, forces; the wind is an Ornstein-Uhlenbeck process that nobody sees."""

    def __init__(self) -> None:
        self.action_space = spaces.Box(-3.0, 3.0, (1,), np.float64)
        self.observation_space = spaces.Box(-np.inf, np.inf, (2,), np.float64)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        """Somewhere, at some speed."""
        super().reset(seed=seed)
        self.state, self.wind, self.number = self.np_random.uniform(-2.0, 2.0, 2), 0.0, 0
        return self.state.copy(), {}

    def step(self, action: Any) -> Any:
        """The reward is -(x^2 + 0.1 v^2 + 0.01 a^2)."""
        (x, v), push = self.state, float(np.clip(action[0], -3.0, 3.0))
        self.wind += -0.5 * self.wind * DT + math.sqrt(DT) * self.np_random.standard_normal()
        v += (push + self.wind) * DT
        self.state, self.number = np.array([x + v * DT, v]), self.number + 1
        reward = -(x * x + 0.1 * self.state[1] ** 2 + 0.01 * push * push)
        return self.state.copy(), reward, False, self.number >= 200, {}


def to_rest(state: Any) -> float:
    """The force that the rule takes."""
    return min(max(-6.0 * float(state[0]) - 4.0 * float(state[1]), -3.0), 3.0)


def pushed(state: Any, push: float) -> Any:
    """The model: no wind."""
    v = state[1] + push * DT
    return state[0] + v * DT, v


def swing_up(state: Any) -> float:
    """The torque that brings Pendulum up by its energy, and keeps it there."""
    angle, speed = ((state[0] + math.pi) % (2 * math.pi)) - math.pi, state[1]
    if abs(angle) < 0.6 and abs(speed) < 3.0:
        return min(max(-(12.0 * angle + 3.5 * speed), -2.0), 2.0)
    energy = speed * speed / 6.0 + 5.0 * (math.cos(angle) - 1.0)
    return min(max(-4.0 * energy * (1.0 if speed >= 0.0 else -1.0), -2.0), 2.0)


def swung(state: Any, torque: float) -> Any:
    """Gymnasium's Pendulum-v1."""
    speed = min(max(state[1] + (15.0 * math.sin(state[0]) + 3.0 * torque) * DT, -8.0), 8.0)
    return state[0] + speed * DT, speed


def rolled(rule: Callable[[Any], float], model: Model, state: Any, k: int, running: Any = None) -> Any:
    """k actions of the rule in the model; the first are those that are carried out whatever is answered."""
    fixed = [] if running is None else [float(action[0]) for action in running.remaining[: running.prefix]]
    rows = []
    for i in range(k):
        rows.append([fixed[i] if i < len(fixed) else rule(state)])
        state = model(state, rows[-1][0])
    return np.array(rows, np.float32)


def of_integrator(seen: Any, k: int, running: Any = None) -> Any:
    """Of x and v."""
    return rolled(to_rest, pushed, tuple(seen), k, running)


def of_pendulum(seen: Any, k: int, running: Any = None) -> Any:
    """Of cosine, sine and speed."""
    return rolled(swing_up, swung, (math.atan2(seen[1], seen[0]), float(seen[2])), k, running)


WORLDS: Final[dict[str, tuple[Callable[[], Any], Callable[..., Any], bool]]] = {
    "chase": (Chase, follow, False),
    "integrator": (Integrator, of_integrator, True),
    "Pendulum-v1": (partial(gymnasium.make, "Pendulum-v1"), of_pendulum, True),
}
"""Environment; (observation, k) -> plan; does its plan depend on what is carried out before it begins?"""


def schemes(plan: Callable[..., Any], dynamic: bool) -> dict[str, Callable[[], Any]]:
    """By name: a policy, new for each run."""

    def whole(seen: Any) -> Any:  # without `running`: a partial of a plan that takes it would be given it
        return plan(seen, k=K)

    made = {
        "one action, held": lambda: lambda seen: plan(seen, k=1)[0],
        "freeze, hold": lambda: Planned(whole, horizon=AGAIN, replan="end", merge="restart"),
        "freeze, no-op": lambda: Planned(whole, horizon=AGAIN, replan="end", merge="restart", end="noop"),
        "append": lambda: Planned(whole, horizon=AGAIN, replan=AGAIN, merge="append"),
        "restart": lambda: Planned(whole, replan=AGAIN, merge="restart"),
        "drop": lambda: Planned(whole, replan=AGAIN),
        "blend 0.7": lambda: Planned(whole, replan=AGAIN, merge="blend"),
        "ensemble": lambda: Planned(whole, replan=1, merge="ensemble"),
    }
    if dynamic:
        made["drop + prefix"] = lambda: Planned(lambda seen, running=None: plan(seen, K, running), replan=AGAIN)
    return made


def study() -> dict[str, dict[str, list[Rows]]]:
    """Returns `[delays][seeds]` by environment and scheme."""
    found: dict[str, dict[str, list[Rows]]] = {}
    for name, (build, plan, dynamic) in WORLDS.items():
        for scheme, policy in schemes(plan, dynamic).items():
            rows = []
            for delay in DELAYS:
                env = under_network(build(), ScheduleConfig(thinking=DT * delay), dt=DT)
                runs = (env.run_event_driven({"*": policy()}, seed=seed, record=()) for seed in range(SEEDS))
                rows.append([[round(run.returns["agent"], 4)] for run in runs])
            found.setdefault(name, {})[scheme] = rows
            print(name, scheme, [round(float(np.mean(row)), 1) for row in rows], flush=True)
    return found


def mean(rows: Any) -> Any:
    """Over seeds, with its interval."""
    return Intervals(range(SEEDS)).mean(np.array(rows).reshape(1, -1))


ORDER: Final = ("freeze, hold", "restart", "drop", "blend 0.7")
"""From worst to best, as is known of position set-points."""


def tables(found: Any) -> Iterator[str]:
    """Markdown: mean returns, then the known order by paired differences."""
    for name, of_schemes in found.items():
        yield (
            f"**{name}**\n\n| thinking, steps | "
            + " | ".join(map(str, DELAYS))
            + " |\n"
            + "|---|"
            + "---:|" * len(DELAYS)
        )
        for scheme, rows in of_schemes.items():
            yield f"| {scheme} | " + " | ".join(f"{np.mean(row):.1f}" for row in rows) + " |"
        yield ""
        for worse, better in pairwise(ORDER):
            apart = [np.array(b) - np.array(w) for b, w in zip(of_schemes[better], of_schemes[worse], strict=True)]
            yield (
                f"{better} minus {worse}: "
                + ", ".join(f"{d}: {mean(a)}" for d, a in zip(DELAYS, apart, strict=True))
                + "\n"
            )


def figure(found: Any) -> bytes:
    """Share of what one action gains at zero delay over the worst scheme, by thinking time; a line for each scheme."""
    colours = {
        "one action, held": GREY,
        "freeze, hold": PURPLE,
        "drop": BLUE,
        "blend 0.7": GREEN,
        "drop + prefix": VERMILION,
    }
    with house_style():
        from matplotlib.figure import Figure

        drawn = Figure(figsize=(7.2, 2.9), layout="constrained")
        for axes, (name, of_schemes) in zip(drawn.subplots(1, len(found)), found.items(), strict=True):
            for scheme, colour in colours.items():
                if scheme in of_schemes:
                    each = [mean(row) for row in of_schemes[scheme]]
                    at = [1000.0 * DT * delay for delay in DELAYS]
                    axes.plot(at, [one.value for one in each], "o-", color=colour, label=scheme, markersize=3)
                    axes.fill_between(
                        at, [one.low for one in each], [one.high for one in each], color=colour, alpha=0.15
                    )
            axes.set_title(name)
            axes.set_xlabel("thinking, ms")
            axes.set_yscale("symlog", linthresh=10.0)
            axes.yaxis.set_major_formatter("{x:g}")
            axes.set_xlim(left=0.0)
        drawn.axes[0].set_ylabel("return")
        handles, labels = drawn.axes[-1].get_legend_handles_labels()
        drawn.legend(handles, labels, loc="outside lower center", ncols=5, frameon=False)
        return to_svg(drawn, text=True)


def main() -> None:
    """Play, then report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--report", action="store_true")
    given = parser.parse_args()
    OUT.mkdir(parents=True, exist_ok=True)
    file = OUT / "study.json"
    if not given.report:
        write(file, json.dumps(study()) + "\n")
    found = json.loads(file.read_text(encoding="utf-8"))
    text = "\n".join(tables(found)) + "\n"
    write_all({OUT / "tables.md": text, OUT / "plans.svg": figure(found)})
    print(text)


if __name__ == "__main__":
    main()
