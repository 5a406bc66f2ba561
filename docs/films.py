"""Films and stills, docs/pictures/*.gif and *.png: `python docs/films.py [NAME ...]`.

`front` is the film of the front page: CartPole. The others are of the shipped environments.
"""

import subprocess
import sys
from math import cos, sin
from pathlib import Path
from typing import Any, NamedTuple

import gymnasium
from matplotlib.font_manager import FontProperties, findfont
from PIL import Image, ImageDraw, ImageFont

import heron_env

FOLDER = Path(__file__).parent / "pictures"
FILMS = {
    "spread": "Spread-v0 --schedule obs_delay=0.3 --seed 3 --every 0.1",
    "learned_communication": "Spread-v0 -o mates=share --policy trigger --schedule msg_delay=0.15 --schedule loss=0.15 "
    "--agent agent_1 --seed 3 --window 0,2.5 --every 0.1",
}
"""What `heron watch` is asked for, by name of the file."""
STILLS = {
    "BatteryGrid-v0": (1, 20, {"num_batteries": 12, "zone_size": 4}),
    "EnergyManagement-v1": (1, 700, {"day": 172}),
    "Economy-v0": (3, 8, {}),
    "TrafficCorridor-v0": (1, 40, {}),
    "GraphColoring-v0": (3, 8, {}),
    "GuidedWalker-v0": (1, 12, {}),
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
    """An animated picture."""
    command = [sys.executable, "-m", "heron_env", "watch", "--fps", "4", "--out", str(FOLDER / f"{name}.gif")]
    subprocess.run([*command, *f"heron/{FILMS[name]}".split()], check=True)


NETWORK = heron_env.ScheduleConfig(obs_delay=1, act_delay=1, loss=0.1)
"""The one of README; steps of 1 s."""
CASE, SHOWN = 2_000_000, 5
"""Seed of the filmed episode, steps from frame to frame."""
SIZE, ROOM = (780, 380), 390
"""Pixels of a frame and of one of its two pictures: shown 390 wide, letters of 24 have 12."""
INK, GREY, BLUE, RED, PALE = "#222222", "#8a8a8a", "#0072b2", "#d55e00", "#f4f4f1"


class Filmed(NamedTuple):
    """An episode of CartPole: (place of the cart in m, angle of the pole in rad) at each step, and its return."""

    course: list[tuple[float, float]]
    earned: int


class Watched(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Notes the true state of CartPole at each step."""

    def __init__(self) -> None:
        super().__init__(gymnasium.make("CartPole-v1"))
        self.course: list[tuple[float, float]] = []

    def step(self, action: Any) -> Any:
        """As of the environment."""
        outcome = self.env.step(action)
        self.course.append((float(outcome[0][0]), float(outcome[0][2])))
        return outcome


def act(observation: Any) -> int:
    """A controller that balances for all 500 steps if nothing is late."""
    x, speed, angle, spin = observation
    return int(0.1 * x + 0.3 * speed + 3.0 * angle + 0.5 * spin > 0.0)


def front() -> None:
    """The same policy without and under the network; also as a still, for readers who want no motion."""
    both = []
    for network in (heron_env.ScheduleConfig(), NETWORK):
        watched = Watched()
        late: Any = heron_env.under_network(watched, network, noop=0)
        result = late.run_event_driven({"agent": act}, seed=CASE)
        both.append(Filmed(watched.course, round(sum(result.returns.values()))))
    last = max(len(filmed.course) for filmed in both)
    frames = [drawn(both, step) for step in [*range(0, last, SHOWN), last - 1]]
    still, pauses = frames[-1], [2500, *[80] * (len(frames) - 1), 1500]
    path = FOLDER / "front.gif"
    still.save(path, save_all=True, append_images=frames, duration=pauses, loop=0, disposal=1, optimize=True)
    still.save(path.with_suffix(".png"), optimize=True)


def drawn(both: list[Filmed], step: int) -> Image.Image:
    """A frame: twice the cart, what the policy has earned, and under what network."""
    picture = Image.new("RGB", (2 * SIZE[0], 2 * SIZE[1]), "white")  # drawn twice as large: smooth edges
    canvas = ImageDraw.Draw(picture)
    heads = ("without a network", "1 + 1 steps late, 10 % lost")
    for number, (filmed, head) in enumerate(zip(both, heads, strict=True)):
        left, over = 2 * ROOM * number, step >= len(filmed.course) - 1
        x, angle = filmed.course[min(step, len(filmed.course) - 1)]
        fallen = over and len(filmed.course) < max(len(other.course) for other in both)
        canvas.rounded_rectangle((left + 12, 12, left + 2 * ROOM - 12, 2 * SIZE[1] - 12), 20, fill=PALE)
        canvas.text((left + 40, 34), head, fill=INK, font=letters(25, bold=False))
        earned = min(step + 1, filmed.earned)
        canvas.text((left + 40, 92), f"{earned}", fill=RED if fallen else BLUE, font=letters(66, bold=True))
        words = f"fell after {filmed.earned} steps" if fallen else "steps balanced" if over else "return so far"
        canvas.text((left + 44, 246), words, fill=INK, font=letters(25, bold=False))
        middle, ground, scale = left + ROOM, 2 * SIZE[1] - 90, ROOM / 2.6
        canvas.line((left + 40, ground, left + 2 * ROOM - 40, ground), fill=GREY, width=4)
        cart = middle + x * scale, ground - 30
        canvas.rounded_rectangle((cart[0] - 70, ground - 54, cart[0] + 70, ground - 6), 8, fill=INK)
        tip = cart[0] + 300 * sin(angle), cart[1] - 300 * cos(angle)
        canvas.line((*cart, *tip), fill=RED if fallen else BLUE, width=22)
        canvas.ellipse((cart[0] - 11, cart[1] - 11, cart[0] + 11, cart[1] + 11), fill="white")
    return picture.resize(SIZE, Image.Resampling.LANCZOS).quantize(32, dither=Image.Dither.NONE)


def letters(size: int, *, bold: bool) -> Any:
    """A typeface for pixels of a frame."""
    return ImageFont.truetype(findfont(FontProperties(weight="bold" if bold else "normal")), 2 * size)


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
    for name in names or ["front", *FILMS, *STILLS]:
        front() if name == "front" else (film if name in FILMS else still)(name)


if __name__ == "__main__":
    main(sys.argv[1:])
