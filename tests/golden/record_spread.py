"""Record episodes of MPE's simple_spread, to which heron/Spread-v0 is held: `python tests/golden/record_spread.py`.

Runs where mpe2 is installed (in an environment of its own: it is no dependency of heron_env) and writes
spread_mpe2.npz beside itself. Each case holds, for E episodes of T steps with N agents:
agents, landmarks `[E, N, 2]` initial positions; actions `[E, T, N, 5]` or `[E, T, N]`; observations float32
`[E, T + 1, N, d]`; rewards `[E, T, N]`; terminations, truncations bool `[E, T, N]`.
"""

import json
import sys
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

TARGET = Path(__file__).with_name("spread_mpe2.npz")
STEPS = 25
CASES: dict[str, dict[str, Any]] = {
    "continuous": {"N": 3, "local_ratio": 0.5, "continuous_actions": True, "episodes": 20, "seed": 100},
    "discrete": {"N": 3, "local_ratio": 0.75, "continuous_actions": False, "episodes": 5, "seed": 200},
    "five": {"N": 5, "local_ratio": 0.2, "continuous_actions": True, "episodes": 3, "seed": 300},
    "five_discrete": {"N": 5, "local_ratio": 1.0, "continuous_actions": False, "episodes": 2, "seed": 400},
}
"""Arguments of simple_spread, the number of episodes, and the first episode's seed."""


def choose(rng: np.random.Generator, shown: dict[str, Any], crowd: bool, continuous: bool) -> list[Any]:
    """Actions by chance; in every other episode all make for the first landmark, and bump into each other."""
    n = len(shown)
    if not crowd:
        return list(rng.random((n, 5), dtype=np.float32)) if continuous else rng.integers(5, size=n).tolist()
    to = np.stack([vector[4:6] for vector in shown.values()])
    pulls = np.clip(np.stack([0 * to[:, 0], -to[:, 0], to[:, 0], -to[:, 1], to[:, 1]], axis=1), 0.0, 1.0)
    return list(pulls.astype(np.float32)) if continuous else pulls.argmax(axis=1).tolist()


def record(build: Any, case: dict[str, Any]) -> dict[str, np.ndarray]:
    """The arrays of one case."""
    names = ("agents", "landmarks", "actions", "observations", "rewards", "terminations", "truncations")
    kept: dict[str, list[Any]] = {name: [] for name in names}
    for episode in range(case["episodes"]):
        arguments = {name: case[name] for name in ("N", "local_ratio", "continuous_actions")}
        env = build(max_cycles=STEPS, **arguments)
        shown, _ = env.reset(seed=case["seed"] + episode)
        rng = np.random.default_rng(case["seed"] + episode)
        world = env.aec_env.unwrapped.world
        kept["agents"].append([agent.state.p_pos.copy() for agent in world.agents])
        kept["landmarks"].append([landmark.state.p_pos.copy() for landmark in world.landmarks])
        course: dict[str, list[Any]] = {name: [] for name in names[2:]}
        course["observations"].append(list(shown.values()))
        while env.agents:
            actions = choose(rng, shown, episode % 2 == 1, case["continuous_actions"])
            shown, *results, _ = env.step(dict(zip(env.possible_agents, actions, strict=True)))
            course["actions"].append(actions)
            for name, values in zip(names[3:], (shown, *results), strict=True):
                course[name].append([values[agent] for agent in env.possible_agents])
        for name, values in course.items():
            kept[name].append(values)
    return {name: np.array(values) for name, values in kept.items()}


def main(target: Path = TARGET) -> None:
    """Write all cases, the versions and the arguments to `target`."""
    try:
        build = import_module("mpe2.simple_spread_v3").parallel_env
    except ImportError as error:
        sys.exit(f"record_spread.py needs mpe2 ({error}); install it into an environment of its own: pip install mpe2")
    about = {"mpe2": version("mpe2"), "numpy": version("numpy"), "steps": STEPS, "cases": CASES}
    arrays = {f"{name}.{part}": a for name, case in CASES.items() for part, a in record(build, case).items()}
    np.savez_compressed(target, about=np.array(json.dumps(about)), **arrays)
    print(f"wrote {target}, {target.stat().st_size} bytes: {about}")


if __name__ == "__main__":
    main()
