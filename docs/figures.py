"""Draws the pictures of the concept pages, docs/pictures/*.svg: `python docs/figures.py [--check]`.

They are drawings, not measurements: no number in them comes from a run. `economy` is what `heron describe` draws.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from heron_env.lab.figure_style import BLUE, GREEN, GREY, INK, ORANGE, PALE, PURPLE, SKY, VERMILION, house_style, to_svg

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FOLDER = Path(__file__).parent / "pictures"
WIDTH = 7.2  # inches


def sheet(height: float, right: float, top: float) -> tuple[Figure, Axes]:
    """An empty sheet with coordinates from (0, 0) to (right, top)."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(WIDTH, height), layout="constrained")
    axes = figure.subplots()
    axes.set(xlim=(0, right), ylim=(0, top))
    axes.axis("off")
    return figure, axes


def box(axes: Axes, x: float, y: float, width: float, height: float, words: str, colour: str) -> None:
    """A rectangle with words in its middle; (x, y) is its lower left corner."""
    from matplotlib.patches import FancyBboxPatch

    shape = FancyBboxPatch(
        (x, y), width, height, boxstyle="round,pad=0,rounding_size=0.06", facecolor=f"{colour}30", edgecolor=colour
    )
    axes.add_patch(shape)
    axes.text(x + width / 2, y + height / 2, words, ha="center", va="center", fontsize=9)


def arrow(axes: Axes, start: tuple[float, float], end: tuple[float, float], colour: str, style: str = "-") -> None:
    """From start to end."""
    axes.annotate(
        "", end, start, arrowprops={"arrowstyle": "->", "color": colour, "linestyle": style, "shrinkA": 0, "shrinkB": 0}
    )


def say(axes: Axes, x: float, y: float, words: str, **options: object) -> None:
    """Text, centred by default."""
    axes.text(x, y, words, **{"ha": "center", "va": "center", "fontsize": 9, **options})  # type: ignore[arg-type]


def lifeline(axes: Axes, y: float, right: float, name: str) -> None:
    """A horizontal line of time with a name before it."""
    axes.plot([1.5, right], [y, y], color=GREY, linewidth=1.0)
    say(axes, 1.35, y, name, ha="right")


def hierarchy() -> Figure:
    """The tree, the array of the truth with a slice for each, and the cache of the same layout."""
    figure, axes = sheet(4.1, 11, 6)
    box(axes, 4.0, 5.2, 2.0, 0.55, "system_agent", PURPLE)
    for z, left in enumerate((1.4, 6.4)):
        box(axes, left, 4.0, 2.2, 0.55, f"zone_{z}", BLUE)
        arrow(axes, (5.0, 5.2), (left + 1.1, 4.57), GREY)
        for i in (0, 1):
            x = left - 0.75 + 1.85 * i
            box(axes, x, 2.8, 1.75, 0.55, f"battery_{2 * z + i + 1}", GREEN)
            arrow(axes, (left + 1.1, 4.0), (x + 0.87, 3.37), GREY)
    owners = [("system", PURPLE, 1), ("zone_0", BLUE, 2), ("b_1", GREEN, 2), ("b_2", GREEN, 2)]
    owners += [("zone_1", BLUE, 2), ("b_3", GREEN, 2), ("b_4", GREEN, 2), ("global", ORANGE, 1)]
    for y, stale in ((1.45, False), (0.35, True)):
        x = 1.5
        for name, colour, cells in owners:
            for _ in range(cells):
                axes.add_patch(_cell(x, y, f"{colour}{'20' if stale else '60'}", colour))
                x += 0.58
            say(axes, x - 0.29 * cells, y + 0.25, "" if stale else name, fontsize=7.5)
    say(axes, 1.35, 1.7, "truth", ha="right", weight="bold")
    say(axes, 1.35, 0.6, "cache", ha="right", weight="bold")
    say(axes, 9.75, 1.7, "rules,\nphysics", ha="left", fontsize=8)
    say(axes, 9.75, 0.6, "obser-\nvations", ha="left", fontsize=8)
    for x in (3.5, 5.9, 8.0):
        arrow(axes, (x, 1.42), (x, 0.9), VERMILION, "--")
    say(axes, 4.7, 1.14, "state reports", color=VERMILION, fontsize=8)
    return figure


def _cell(x: float, y: float, inside: str, edge: str) -> object:
    from matplotlib.patches import Rectangle

    return Rectangle((x, y), 0.55, 0.5, facecolor=inside, edgecolor=edge, linewidth=0.8)


def rules() -> Figure:
    """One control step, left to right."""
    figure, axes = sheet(2.7, 12, 4)
    steps = [
        ("apply_action", "top-down", BLUE),
        ("advance", "bottom-up,\nthen the world's", GREEN),
        ("reward, ends", "bottom-up,\nfrom the truth", PURPLE),
        ("finish", "next exogenous\nvalues", ORANGE),
        ("observe", "by the plan", VERMILION),
    ]
    for i, (name, how, colour) in enumerate(steps):
        x = 0.2 + 2.36 * i
        box(axes, x, 2.1, 2.0, 0.8, name, colour)
        say(axes, x + 1.0, 1.5, how, color=INK, fontsize=8)
        if i:
            arrow(axes, (x - 0.34, 2.5), (x - 0.03, 2.5), GREY)
    axes.annotate(
        "", (3.1, 2.93), (4.1, 2.93), arrowprops={"arrowstyle": "->", "color": GREEN, "connectionstyle": "arc3,rad=0.9"}
    )
    say(axes, 3.6, 3.75, "physics_substeps times", color=GREEN, fontsize=8)
    axes.plot([0.2, 11.65], [0.85, 0.85], color=GREY, linewidth=1.0)
    for x, words in ((0.2, "k · dt"), (11.65, "(k + 1) · dt")):
        axes.plot([x, x], [0.72, 0.98], color=GREY)
        say(axes, x, 0.4, words, ha="left" if x < 1 else "right")
    say(axes, 6, 0.4, "one control step", color=GREY)
    return figure


def two_clocks() -> Figure:
    """A step on both clocks."""
    figure, axes = sheet(4.6, 12, 8.2)
    say(axes, 0.1, 7.8, "synchronous: all agents at each step boundary", ha="left", weight="bold")
    for y, name in ((6.9, "agent"), (6.1, "world")):
        lifeline(axes, y, 11.6, name)
    for x in (1.8, 6.3, 10.8):
        arrow(axes, (x, 6.1), (x, 6.85), BLUE)
        arrow(axes, (x + 0.14, 6.9), (x + 0.14, 6.15), VERMILION)
        if x < 10:
            say(axes, x + 0.3, 6.5, "observe, decide, act", ha="left", fontsize=8)
    say(axes, 0.1, 5.2, "event-driven: each message and action takes time", ha="left", weight="bold")
    for y, name in ((4.3, "agent"), (2.9, "proxy"), (1.5, "world")):
        lifeline(axes, y, 11.6, name)
    for left in (1.8, 6.3):
        arrow(axes, (left, 4.3), (left + 0.8, 2.95), BLUE)
        arrow(axes, (left + 1.0, 2.9), (left + 1.8, 4.25), BLUE)
        arrow(axes, (left + 1.9, 4.3), (left + 2.9, 1.55), VERMILION)
        say(axes, left, 4.58, "tick", fontsize=8)
        say(axes, left + 0.28, 3.35, "request", fontsize=8, ha="right", color=BLUE)
        say(axes, left + 1.25, 3.9, "reply", fontsize=8, ha="center", color=BLUE, rotation=50)
        say(axes, left + 1.9, 4.58, "decide", fontsize=8)
        say(axes, left + 2.98, 2.1, "effect", fontsize=8, ha="left", color=VERMILION)
    for x in (4.2, 8.7):
        arrow(axes, (x + 1.1, 1.5), (x + 1.9, 2.85), GREEN, "--")
        say(axes, x + 1.75, 2.0, "report", fontsize=8, ha="left", color=GREEN)
    for y in (6.1, 1.5):
        for i in range(19):
            x = 1.8 + 0.5 * i
            axes.plot(
                [x, x], [y - 0.13, y + (0.13 if i % 9 == 0 else 0)], color=INK if i % 9 == 0 else GREY, linewidth=0.9
            )
    say(axes, 6.3, 0.75, "physics: one mark per substep, the same on both clocks", fontsize=8, color=GREY)
    for x, words in ((1.8, "0"), (6.3, "dt"), (10.8, "2 dt")):
        say(axes, x, 0.25, words, fontsize=9)
        axes.plot([x, x], [1.2, 7.2], color=PALE, linewidth=1.0, zorder=0)
    return figure


def measurements() -> Figure:
    """What a meter shows at a tick, and what it must not."""
    from matplotlib.patches import Rectangle

    figure, axes = sheet(2.9, 12, 4.6)
    power = (1.2, 1.0, 1.5, 0.9, 1.9, 1.4)
    for i, height in enumerate(power):
        past = i < 3
        colour = (GREEN if i == 2 else GREY) if past else VERMILION
        axes.add_patch(
            Rectangle(
                (1 + 1.7 * i, 1.0), 1.62, height, facecolor=f"{colour}{'60' if i == 2 else '25'}", edgecolor=colour,
                linestyle="-" if past else "--",
            )
        )  # fmt: skip
    tick = 1 + 1.7 * 3 - 0.04
    axes.plot([tick, tick], [0.7, 3.9], color=INK, linewidth=1.6)
    say(axes, tick, 4.2, "tick: now", weight="bold")
    say(axes, 1 + 1.7 * 2 + 0.3, 3.0, "the last 10 s:\nthe meter's value", color=GREEN, fontsize=8.5)
    coming = (
        "the next ones: physics uses them, no agent sees them,\nunless they are really known in advance (foreknown)"
    )
    say(axes, tick + 0.25, 3.5, coming, color=VERMILION, fontsize=8.5, ha="left")
    axes.plot([1, 11.2], [1.0, 1.0], color=GREY, linewidth=1.0)
    for i in range(7):
        say(axes, 1 + 1.7 * i - 0.04, 0.55, f"{10 * (i - 3):+d} s" if i != 3 else "0", fontsize=8, color=GREY)
    say(axes, 0.5, 1.8, "power", rotation=90, color=GREY)
    return figure


def delay() -> Figure:
    """The legs of one decision."""
    figure, axes = sheet(3.7, 12, 6)
    for y, name in ((5.0, "coordinator"), (3.4, "proxy"), (1.8, "child")):
        lifeline(axes, y, 11.8, name)
    arrow(axes, (1.9, 5.0), (3.3, 3.45), BLUE)
    arrow(axes, (4.7, 3.4), (6.1, 4.95), BLUE)
    arrow(axes, (7.1, 5.0), (8.5, 1.85), BLUE)
    axes.plot([3.3, 4.7], [3.4, 3.4], color=ORANGE, linewidth=5, solid_capstyle="butt")
    axes.plot([6.1, 7.1], [5.0, 5.0], color=PURPLE, linewidth=5, solid_capstyle="butt")
    axes.plot([8.5, 10.4], [1.8, 1.8], color=VERMILION, linewidth=5, solid_capstyle="butt")
    axes.plot([10.4], [1.8], marker="o", color=VERMILION, markersize=8)
    say(axes, 1.9, 5.35, "tick")
    say(axes, 2.35, 4.05, "msg_delay", ha="right", color=BLUE)
    say(axes, 4.0, 3.75, "obs_delay", color="#A66A00")
    say(axes, 5.55, 4.05, "msg_delay", ha="left", color=BLUE)
    say(axes, 6.6, 5.35, "thinking", color=PURPLE)
    say(axes, 7.95, 3.75, "msg_delay", ha="left", color=BLUE)
    say(axes, 9.45, 1.4, "act_delay", color=VERMILION)
    say(axes, 10.6, 2.15, "effect", ha="left")
    for x in (1.9, 3.6, 5.3):
        arrow(axes, (x, 1.8), (x + 1.0, 3.3), GREEN, "--")
    say(axes, 4.4, 2.35, "state reports", color=GREEN, ha="center")
    axes.annotate("", (1.9, 0.7), (10.4, 0.7), arrowprops={"arrowstyle": "<->", "color": INK})
    say(axes, 6.2, 0.35, "from the tick to its effect; the reports in the observation are older still")
    return figure


def ages() -> Figure:
    """From a measurement to the decision that uses it, without and with report_interval; one unit is msg_delay."""
    figure, axes = sheet(5.0, 10, 10)
    for top, title, way in (
        (
            9.6,
            "One report a step (the default)",
            ((0, "world", "proxy"), (1, "proxy", "world"), (2, "sensor", "proxy")),
        ),
        (4.7, "With report_interval", ((2, "sensor", "proxy"),)),
    ):
        lanes = {name: top - 0.9 - 0.75 * i for i, name in enumerate(("world", "proxy", "sensor", "agent"))}
        say(axes, 0.2, top - 0.15, title, ha="left", fontsize=10)
        for name, y in lanes.items():
            lifeline(axes, y, 9.7, name)
        at = [2.0 + 1.8 * k for k in range(5)]
        for k, start, end in way:
            colour = GREEN if start == "sensor" else ORANGE
            arrow(axes, (at[k], lanes[start]), (at[k + 1], lanes[end]), colour)
        arrow(axes, (at[2], lanes["agent"]), (at[3], lanes["proxy"]), BLUE)
        arrow(axes, (at[3], lanes["proxy"]), (at[4], lanes["agent"]), BLUE)
        first = at[way[0][0]]
        axes.plot([first], [lanes["sensor"]], marker="s", color=VERMILION, markersize=7)
        axes.plot([at[4]], [lanes["agent"]], marker="o", color=PURPLE, markersize=8)
        say(axes, first - 0.1, lanes["sensor"] - 0.34, "measured", color=VERMILION, ha="right")
        say(axes, at[2], lanes["agent"] - 0.35, "tick", color=BLUE)
        say(axes, at[4], lanes["agent"] - 0.35, "decision", color=PURPLE)
        y = lanes["agent"] - 0.75
        axes.annotate("", (first, y), (at[4], y), arrowprops={"arrowstyle": "<->", "color": INK})
        say(axes, (first + at[4]) / 2, y - 0.32, f"age: {len(way) + 1} msg_delay")
        if len(way) > 1:
            say(axes, at[1], lanes["world"] + 0.3, "token to the proxy and back", color="#A66A00")
        say(axes, at[2] + 0.1, lanes["sensor"] + 0.42, "report", color=GREEN, ha="left")
        say(axes, at[2] + 0.45, lanes["agent"] + 0.22, "request", color=BLUE, ha="left")
        say(axes, at[4] - 0.65, lanes["sensor"] + 0.3, "reply", color=BLUE, ha="left")
    return figure


def training_under_the_network() -> Figure:
    """Environments that stop where an action is missing."""
    figure, axes = sheet(3.5, 12, 5.6)
    lanes = [([2.2, 4.1], 5.4), ([1.9, 3.0, 5.0], 6.2), ([2.9], 4.3), ([2.1, 4.6, 6.4], 7.1)]
    for i, (seen, due) in enumerate(lanes):
        y = 4.7 - 1.05 * i
        axes.plot([1.5, 8.4], [y, y], color=PALE, linewidth=1.0)
        axes.plot([1.5, due], [y, y], color=INK, linewidth=1.8)
        say(axes, 1.35, y, f"environment {i}", ha="right")
        for x in seen:
            axes.plot([x], [y], marker="o", color=BLUE, markersize=7)
        axes.plot([due, due], [y - 0.27, y + 0.27], color=VERMILION, linewidth=2.2)
        axes.plot([due + 1.1], [y], marker="D", color=VERMILION, markersize=5, fillstyle="none")
        arrow(axes, (due + 0.06, y), (8.7, 2.95), SKY)
    box(axes, 8.75, 2.45, 3.0, 1.0, "one call:\nanswer(policy(rows.obs))", BLUE)
    axes.plot([0.3], [0.55], marker="o", color=BLUE, markersize=7)
    say(axes, 0.5, 0.55, "an observation has arrived", ha="left", fontsize=8)
    axes.plot([4.15, 4.15], [0.35, 0.75], color=VERMILION, linewidth=2.2)
    say(axes, 4.3, 0.55, "stop: an action is due, not chosen yet", ha="left", fontsize=8)
    axes.plot([8.75], [0.55], marker="D", color=VERMILION, markersize=5, fillstyle="none")
    say(axes, 8.95, 0.55, "an action that takes effect later", ha="left", fontsize=8)
    return figure


def which_clock() -> Figure:
    """From what the reader has to the clock and the call, in three columns."""
    figure, axes = sheet(4.6, 12, 8.2)
    box(axes, 3.9, 7.45, 4.2, 0.65, "What do you have?", PURPLE)
    network = ["an environment of Gymnasium\nor PettingZoo", "under_network(env, network)\ndelays in steps"]
    network += [
        "train: any trainer, with or\nwithout the network",
        "evaluate: run_event_driven,\nheron sweep, heron margin",
    ]
    own = ["a world of your own,\nor one of our 14", "HeronEnv\nhierarchies, time in seconds"]
    own += ["train: synchronous clock\nenv.step, BatchEnv, heron train"]
    own += [
        "evaluate: event clock\nrun_event_driven, heron sweep",
        "much lost? train under it:\nheron train --schedule",
    ]
    outside = ["an agent outside Python:\nlanguage model, other host", "an endpoint\nhttp:URL in the place of a policy"]
    outside += ["real time:\nheron run --realtime", "a real network:\nheron real hub, heron real node"]
    for x, colour, column in ((0.1, BLUE, network), (4.1, GREEN, own), (8.1, ORANGE, outside)):
        arrow(axes, (6.0, 7.45), (x + 1.9, 6.92), GREY)
        for k, words in enumerate(column):
            y = 5.95 - 1.45 * k
            box(axes, x, y, 3.8, 0.95, words, colour if k else GREY)
            if k:
                arrow(axes, (x + 1.9, y + 1.45), (x + 1.9, y + 0.97), GREY)
    return figure


def economy() -> Figure:
    """The hierarchy of heron/Economy-v0 and its visibility."""
    from heron_env.lab.show.description import describe_environment
    from heron_env.lab.show.tree import description_figure

    return description_figure(*describe_environment("heron/Economy-v0", {}))


DRAWN: dict[str, Callable[[], Figure]] = {
    drawing.__name__: drawing
    for drawing in (
        hierarchy,
        rules,
        two_clocks,
        measurements,
        delay,
        ages,
        training_under_the_network,
        which_clock,
        economy,
    )
}


def drawn(name: str) -> bytes:
    """The SVG of one picture; the same bytes every time."""
    with house_style():
        return to_svg(DRAWN[name](), text=True)


def main(check: bool) -> int:
    """Write them, or say which differ from what is committed."""
    FOLDER.mkdir(exist_ok=True)
    stale = [name for name in DRAWN if not check or drawn(name) != (FOLDER / f"{name}.svg").read_bytes()]
    for name in stale:
        if check:
            print(f"docs/pictures/{name}.svg is not what docs/figures.py draws: run it")
        else:
            (FOLDER / f"{name}.svg").write_bytes(drawn(name))
    return int(check and bool(stale))


if __name__ == "__main__":
    sys.exit(main("--check" in sys.argv[1:]))
