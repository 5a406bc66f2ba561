"""Films the six worlds for the documentation, docs/pictures/*.gif: `python docs/films.py [NAME ...]`."""

import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).parent / "pictures"
FILMS = {
    "spread": "Spread-v0 --schedule obs_delay=0.3 --seed 3 --every 0.1",
    "traffic_corridor": "TrafficCorridor-v0 --schedule obs_delay=15 --agent corridor_1 --window 100,225 --every 5",
    "graph_coloring": "GraphColoring-v0 -o start=random --policy dsa --schedule msg_delay=2.5 --window 0,24 --every 1",
    "energy_management": "EnergyManagement-v1 -o day=172 --schedule msg_delay=900 --every 3000",
    "battery_grid": "BatteryGrid-v0 -o num_batteries=12 -o zone_size=4 --schedule obs_delay=10 --every 4",
    "economy": "Economy-v0 --schedule obs_delay=3 --window 0,13 --every 1",
}
"""What `heron watch` is asked for, by name of the file."""


def main(names: list[str]) -> None:
    """Film these, or all."""
    for name in names or FILMS:
        command = [sys.executable, "-m", "heron_env", "watch", *f"heron/{FILMS[name]}".split()]
        subprocess.run([*command, "--fps", "4", "--out", str(FOLDER / f"{name}.gif")], check=True)


if __name__ == "__main__":
    main(sys.argv[1:])
