"""Films and stills of the shipped environments, docs/pictures/*.gif and *.png: `python docs/films.py [NAME ...]`."""

import subprocess
import sys
from pathlib import Path

from PIL import Image

import heron_env

FOLDER = Path(__file__).parent / "pictures"
FILMS = {
    "front": "Spread-v0 --schedule msg_delay=0.25 --schedule loss=0.15 --agent agent_1 --seed 3 --window 0,2.5 "
    "--every 0.05 --fps 8",
    "spread": "Spread-v0 --schedule obs_delay=0.3 --seed 3 --every 0.1",
    "learned_communication": "Spread-v0 -o mates=share --policy trigger --schedule msg_delay=0.15 --schedule loss=0.15 "
    "--agent agent_1 --seed 3 --window 0,2.5 --every 0.1",
    "traffic_corridor": "TrafficCorridor-v0 --schedule obs_delay=15 --agent corridor_1 --window 100,225 --every 5",
    "graph_coloring": "GraphColoring-v0 -o start=random --policy dsa --schedule msg_delay=2.5 --window 0,24 --every 1",
    "energy_management": "EnergyManagement-v1 -o day=172 --schedule msg_delay=900 --every 3000",
    "battery_grid": "BatteryGrid-v0 -o num_batteries=12 -o zone_size=4 --schedule obs_delay=10 --every 4",
    "economy": "Economy-v0 --schedule obs_delay=3 --window 0,13 --every 1",
}
"""What `heron watch` is asked for, by name of the file."""
STILLS = {
    "BatteryGrid-v0": (1, 20, {"num_batteries": 12, "zone_size": 4}),
    "EnergyManagement-v1": (1, 700, {"day": 172}),
    "Economy-v0": (3, 8, {}),
    "TrafficCorridor-v0": (1, 40, {}),
    "GraphColoring-v0": (3, 8, {}),
    "Spread-v0": (3, 8, {}),
    "Tag-v0": (3, 8, {}),
    "WorldComm-v0": (3, 8, {}),
    "Adversary-v0": (5, 8, {}),
    "Push-v0": (1, 12, {}),
    "SpeakerListener-v0": (1, 12, {}),
    "Reference-v0": (1, 12, {}),
    "Crypto-v0": (1, 12, {}),
}
"""The pictures of docs/environments.md: seed, steps of random actions, options."""


def film(name: str) -> None:
    """An animated picture; of the first also one frame, for readers who want no motion."""
    path = FOLDER / f"{name}.gif"
    command = [sys.executable, "-m", "heron_env", "watch", "--fps", "4", "--out", str(path)]
    subprocess.run([*command, *f"heron/{FILMS[name]}".split()], check=True)
    if name == "front":
        with Image.open(path) as frames:
            frames.seek(20)
            frames.convert("RGB").quantize(64).save(path.with_suffix(".png"), optimize=True)


def still(name: str) -> None:
    """One picture of an environment after random actions."""
    seed, steps, options = STILLS[name]
    env = heron_env.make(f"heron/{name}", render_mode="rgb_array", **options)
    env.reset(seed=seed)
    for number, agent in enumerate(env.possible_agents):
        env.action_space(agent).seed(number)
    for _ in range(steps):
        env.step({agent: env.action_space(agent).sample() for agent in env.agents})
    picture = Image.fromarray(env.render()).quantize(32)
    picture.save(FOLDER / f"{name.rpartition('-')[0].lower()}.png", optimize=True)


def main(names: list[str]) -> None:
    """These, or all."""
    for name in names or [*FILMS, *STILLS]:
        (film if name in FILMS else still)(name)


if __name__ == "__main__":
    main(sys.argv[1:])
