"""When is it worth telling the others where one is? Spread with mates="share" over a late, lossy radio.

    python training/learned_communication.py             # train and play what is missing, then tables and figure
    python training/learned_communication.py --report    # tables and figure of what is there

docs/how_to/learned_communication.md says what came out. For each seed there is one common start, trained while agents
speak at random in half of the steps. From it PPO goes on, for equally many transitions, under each scheme: a policy
that decides beyond what distance, or with what chance, it speaks and pays for each message, without a price too, and
the schemes of learned_communication_worlds.py, under which it learns to move alone. Each number is chosen on the same
validation episodes, by one seed: the highest return of those with at most 40 % of the messages. A finished training
stays; one that was killed begins anew.
"""

import argparse
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
from board import holm, p_value
from learned_communication_worlds import world

from heron_env import Hyperparameters, Medium, ScheduleConfig, load_policy, train
from heron_env.files import write, write_all
from heron_env.lab import Estimate, Intervals, team_return
from heron_env.lab.benchmark import cases
from heron_env.lab.figure_style import BLUE, GREEN, GREY, ORANGE, PURPLE, VERMILION, WIDTH, house_style, to_svg
from heron_env.lab.sweep.play import play_lanes

LEARNED, FREE = "learned threshold, with a price", "learned threshold, price 0"
CHANCE, FREE_CHANCE = "learned chance, with a price", "learned chance, price 0"
ALWAYS, NEVER, RANDOM, PERIODIC, TRIGGER = "always", "never", "random", "periodic", "trigger"
NAMES: Final = (LEARNED, FREE, CHANCE, FREE_CHANCE, ALWAYS, NEVER, RANDOM, PERIODIC, TRIGGER)
SEEDS: Final = range(10, 15)
OF_A_POLICY: Final = {LEARNED: "threshold", FREE: "threshold", CHANCE: "chance", FREE_CHANCE: "chance"}
PRICES: Final = {LEARNED: (0.0003, 0.001, 0.003), CHANCE: (0.003, 0.006, 0.01)}
THRESHOLDS: Final = (0.1, 0.2, 0.35)
"""Candidates, equally many."""
AGENTS, STEPS = 3, 25
MOST: Final = 0.4
"""Share of the messages of `always` that may be sent."""
FIRST, THEN = 1_200_000, 1_200_000
"""Transitions of the common start, and of what follows."""
VALIDATION, TEST = 128, 256
"""Episodes; the test begins behind the 128 that an earlier study looked at."""
TUNED_ON: Final = 0
"""Seed of price and threshold; it is none of `SEEDS`."""
SHARE: Final = 36.0
"""Bytes of a message: two numbers and headers. All else is the simulation's own and takes none."""
ALL: Final = AGENTS * (AGENTS - 1) * STEPS
"""Messages of an episode in which everybody always speaks."""
RADIO: Final = Medium(
    "radio",
    rate=SHARE * AGENTS * (AGENTS - 1) / 0.1 / 0.6,
    sizes={"share": SHARE, **dict.fromkeys(("request", "reply", "push", "command", "report"), 0.0)},
)
"""Who always speaks loads it to 60 %."""
NETWORK: Final = ScheduleConfig(
    msg_delay=0.02, loss=0.1, jitter_type="uniform", jitter_ratio=0.5, medium=RADIO, own_rows="local"
)
PPO: Final = Hyperparameters(
    num_envs=128, n_steps=25, batch_size=1600, n_epochs=4, gamma=0.95, learning_rate=2e-3, final_learning_rate=2e-4
)
COLOURS: Final = {
    LEARNED: VERMILION,
    FREE: VERMILION,
    CHANCE: ORANGE,
    FREE_CHANCE: ORANGE,
    TRIGGER: GREEN,
    RANDOM: BLUE,
    PERIODIC: PURPLE,
}
OUT: Final = Path("training/results/learned_communication")
Played = dict[str, list[float]]
"""`returns` without the price, and `messages`, by episode."""


def options(name: str, number: float) -> dict[str, Any]:
    """Of the environment; `number`: price, probability, period or threshold."""
    if name in OF_A_POLICY:
        return {"num_agents": AGENTS, "scheme": OF_A_POLICY[name], "speech_cost": number}
    return {"num_agents": AGENTS, "scheme": name, "rate": number}


def trained(name: str, number: float, seed: int, runs: Path) -> Path:
    """The folder of a training, which is run where it is missing; its common start, too."""
    start = runs / f"start-{seed}"
    common: dict[str, Any] = {
        "schedule": {"*": NETWORK}, "validations": 1, "validation_episodes": 2, "progress": False,
        "training_options": {}, "seed": seed, "critic": "central",
    }  # fmt: skip
    if not (start / "config.json").is_file():
        train(world, start, total_steps=FIRST, env_options=options(RANDOM, 0.5), hyperparameters=PPO, **common)
    folder = runs / f"{name}-{number:.4g}-{seed}".replace(" ", "_").replace(",", "")
    if not (folder / "config.json").is_file():
        own = {"env_options": options(name, number), "hyperparameters": PPO, "start_from": start}
        run = train(world, folder, total_steps=THEN, **own, **common)
        print(f"{folder}: {run.config.transitions:,} transitions in {run.config.seconds} s", flush=True)
    return folder


def played(folder: Path, name: str, number: float, split: str, count: int) -> Played:
    """Episodes of the last weights: the second `count` of a split."""
    env = world(**{**options(name, number), **({"speech_cost": 0.0} if name in OF_A_POLICY else {})})
    held_out, policies = cases(env, 2 * count, split=split)[-count:], load_policy(folder, env=env)
    batch = play_lanes(env, held_out, [policies] * count, {"*": NETWORK}, ("messages",))
    results = batch.results()
    return {
        "returns": [round(team_return(env, each), 4) for each in results],
        "messages": [round(each.media["radio"].offered / SHARE) for each in results],
    }


def tuned(name: str, candidates: tuple[float, ...], runs: Path) -> tuple[float, dict[str, Any]]:
    """The candidate that earns most on validation episodes without too many messages, and what all of them did.

    Where all speak too much, the one that speaks least.
    """
    found = {}
    for number in candidates:
        each = played(trained(name, number, TUNED_ON, runs), name, number, "validation", VALIDATION)
        found[number] = {key: float(np.mean(values)) for key, values in each.items()}
        print(name, number, found[number], flush=True)
    able = {number: each["returns"] for number, each in found.items() if each["messages"] <= MOST * ALL}
    best = max(able, key=able.__getitem__) if able else min(found, key=lambda number: found[number]["messages"])
    return best, {str(number): each for number, each in found.items()}


def study(runs: Path) -> Iterator[dict[str, Any]]:
    """Train and play everything: returns and messages `[seeds][cases]` by name, and the tuning; after each seed."""
    price, prices = tuned(LEARNED, PRICES[LEARNED], runs)
    of_chance, prices_of_chance = tuned(CHANCE, PRICES[CHANCE], runs)
    threshold, thresholds = tuned(TRIGGER, THRESHOLDS, runs)
    tuning = {
        "prices": prices, "price": price, "prices of chance": prices_of_chance, "price of chance": of_chance,
        "thresholds": thresholds, "threshold": threshold,
    }  # fmt: skip
    kept: dict[str, Any] = {name: {"numbers": [], "returns": [], "messages": []} for name in NAMES}
    for seed in SEEDS:
        ours = played(trained(LEARNED, price, seed, runs), LEARNED, price, "validation", VALIDATION)
        rate = max(float(np.mean(ours["messages"])) / ALL, 1.0 / STEPS / AGENTS)
        numbers = {
            LEARNED: price, FREE: 0.0, CHANCE: of_chance, FREE_CHANCE: 0.0, ALWAYS: 0.0, NEVER: 0.0, RANDOM: rate,
            PERIODIC: 1.0 / rate, TRIGGER: threshold,
        }  # fmt: skip
        for name, number in numbers.items():
            found = played(trained(name, number, seed, runs), name, number, "test", TEST)
            kept[name]["numbers"].append(number)
            for key, values in found.items():
                kept[name][key].append(values)
            print(seed, name, number, {key: float(np.mean(values)) for key, values in found.items()}, flush=True)
        yield {"tuning": tuning, "found": kept}


# What came out


def gain(found: Mapping[str, Any], name: str, level: float = 0.95) -> Estimate:
    """Of what `always` gains over `never`, the share that this gains; starts and cases are paired."""
    mine, low, high = (np.array(found[each]["returns"]) for each in (name, NEVER, ALWAYS))
    return Intervals(range(mine.shape[1]), level=level).share(mine - low, high - low)


def p_of(found: Mapping[str, Any], other: str) -> float:
    """Two-sided, of the difference of `learned` and another in the same cases, from the same starts."""
    apart = np.array(found[LEARNED]["returns"]) - np.array(found[other]["returns"])
    return p_value(range(apart.shape[1]), apart.tolist(), np.zeros((1, apart.shape[1])).tolist())


def percent(found: Estimate) -> str:
    """`93 % [88, 98]`."""
    return f"{100 * found.value:.0f} % [{100 * found.low:.0f}, {100 * found.high:.0f}]"


def mean(values: Any) -> Estimate:
    """Over seeds and cases."""
    rows = np.array(values, dtype=np.float64)
    return Intervals(range(rows.shape[1])).mean(rows)


def table(found: Mapping[str, Any]) -> str:
    """Markdown: return, messages, gain, and whether `learned` beats it."""
    others = [name for name in NAMES if name not in (LEARNED, NEVER)]
    corrected = dict(zip(others, holm([p_of(found, name) for name in others]), strict=True))
    lines = ["| | return | messages, share of always | gain | learned minus it | p, corrected |"]
    lines += ["|---|---:|---:|---:|---:|---:|"]
    for name in NAMES:
        own, sent = found[name]["returns"], np.array(found[name]["messages"]) / ALL
        apart = mean(np.array(found[LEARNED]["returns"]) - np.array(own))
        versus = f"{apart} | {corrected[name]:.3f}" if name in corrected else " | "
        lines.append(f"| {name} | {mean(own)} | {percent(mean(sent))} | {percent(gain(found, name))} | {versus} |")
    return "\n".join(lines) + "\n"


def figure(found: Mapping[str, Any]) -> bytes:
    """Gain over messages; a large dot for the mean with its interval, a small one for each seed."""
    with house_style():
        from matplotlib.figure import Figure

        drawn = Figure(figsize=(WIDTH, 3.4), layout="constrained")
        axes = drawn.subplots()
        low, high = (np.array(found[name]["returns"]).mean() for name in (NEVER, ALWAYS))
        for name in NAMES:
            sent = 100 * np.array(found[name]["messages"]).mean(axis=1) / ALL
            earned = 100 * (np.array(found[name]["returns"]).mean(axis=1) - low) / (high - low)
            whole, colour = gain(found, name), COLOURS.get(name, GREY)
            ends = 100 * np.array([[whole.value - whole.low], [whole.high - whole.value]])
            filled = "white" if name in (FREE, FREE_CHANCE, NEVER) else colour
            axes.plot(sent, earned, ".", markersize=3, color=colour, alpha=0.6)
            axes.errorbar(
                [sent.mean()],
                [100 * whole.value],
                yerr=ends,
                fmt="o",
                markersize=6,
                color=colour,
                mfc=filled,
                label=name,
            )
        axes.axvspan(0.0, 100 * MOST, color=GREY, alpha=0.08, linewidth=0)
        axes.axhline(95.0, color=GREY, linewidth=0.8, linestyle=":")
        axes.set_xlabel("messages, % of always")
        axes.set_ylabel("gain over never, % of always'")
        drawn.legend(loc="outside right center", frameon=False)
        return to_svg(drawn, text=True)


def main() -> None:
    """Run what is missing, then report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=Path, default=Path("runs/learned_communication"))
    parser.add_argument("--out", type=Path, default=OUT)
    parser.add_argument("--report", action="store_true")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    file = given.out / "study.json"
    for found in () if given.report else study(given.runs):
        write(file, json.dumps(found) + "\n")
    found = json.loads(file.read_text(encoding="utf-8"))["found"]
    text = table(found)
    write_all({given.out / "table.md": text, given.out / "learned_communication.svg": figure(found)})
    print(text)


if __name__ == "__main__":
    main()
