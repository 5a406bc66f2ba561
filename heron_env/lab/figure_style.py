"""How all figures look, and what they share: colours, letters, names at the ends of lines, the way to SVG.

Colours are Okabe and Ito's, told apart by colour-blind readers.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from heron_env.pictures import palette

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SERIES: Final = palette.SERIES
BLUE, VERMILION, GREEN, PURPLE, ORANGE = SERIES
SKY, PALE, INK, GREY = "#56B4E9", "#D9D9D9", palette.INK, palette.GREY
WIDTH = 6.4
"""inches; small enough for letters to stay legible on a phone."""
DOTS_PER_INCH = 150

STYLE: Final[Any] = {
    **palette.STYLE,
    "font.size": 10.0,
    "axes.edgecolor": GREY,
    "axes.labelcolor": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#E8E8E8",
    "grid.linewidth": 0.8,
    "axes.axisbelow": True,
    "ytick.color": GREY,
    "lines.linewidth": 1.8,
    "hatch.linewidth": 1.0,
}


@contextmanager
def house_style() -> Iterator[None]:
    """Draw with our style, leaving the caller's settings alone. Raises ConfigError where matplotlib is missing."""
    with palette.styled("figures", STYLE):
        yield


def to_svg(figure: Figure, text: bool = False) -> bytes:
    """The same bytes for the same figure: no date, no random ids.

    Args: text: letters in a font of the reader's, places to a hundredth of a point: a third of the bytes. Else letters
        are shapes, which look the same everywhere.
    """
    with house_style():
        import matplotlib

        buffer = io.BytesIO()
        with matplotlib.rc_context({"svg.fonttype": "none" if text else "path"}):
            figure.savefig(buffer, format="svg", metadata={"Date": None})
        return _smaller(buffer.getvalue()) if text else buffer.getvalue()


def _smaller(svg: bytes) -> bytes:
    """The same picture in fewer bytes, with fonts to fall back on; numbers stand in tags alone."""
    used = set(re.findall(rb"#([\w-]+)", svg))
    family = b"*{stroke-linejoin: round; stroke-linecap: butt} text{font-family: 'DejaVu Sans', Verdana, sans-serif}"
    svg = re.sub(rb"\s*<metadata>.*?</metadata>", b"", svg, flags=re.DOTALL)
    svg = svg.replace(b"*{stroke-linejoin: round; stroke-linecap: butt}", family).replace(
        b" font-family: 'DejaVu Sans';", b""
    )
    svg = re.sub(rb"\n\s+", b"\n", svg)
    svg = re.sub(rb"<[^>]+>", lambda tag: re.sub(rb"(?<=\d)\.(\d\d)\d+", rb".\1", tag[0]), svg)
    svg = re.sub(rb' id="([\w-]+)"', lambda name: name[0] if name[1] in used else b"", svg)
    svg = re.sub(rb"<g/>\n", b"", svg)
    return re.sub(rb' d="[^"]+"', lambda path: path[0].replace(b" \n", b"").replace(b"\n", b""), svg)


def to_png(figure: Figure) -> bytes:
    """As pixels, 150 to an inch; the same bytes for the same figure."""
    with house_style():
        buffer = io.BytesIO()
        figure.savefig(buffer, format="png", dpi=DOTS_PER_INCH, metadata={"Software": None})
        return buffer.getvalue()


def blank(height: float, rows: int = 1, **options: Any) -> tuple[Figure, list[Axes]]:
    """A figure of `rows` axes one below the other, as high as that (inches)."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(WIDTH, height), layout="constrained")
    axes = figure.subplots(rows, 1, squeeze=False, **options)
    return figure, list(axes[:, 0])


def line_and_band(axes: Axes, x: Any, line: Any, band: tuple[Any, Any], **style: Any) -> None:
    """A line over the band of its interval, (low, high); no band where an end is nan."""
    axes.plot(x, line, **style)
    if not np.isnan(band).any():
        axes.fill_between(x, *band, color=style["color"], alpha=0.15, linewidth=0)


def end_labels(axes: Axes, labels: Sequence[tuple[float, str, str]], gap: float = 0.085) -> None:
    """Names right of the axes at heights (data), pushed apart where they would overlap: (height, text, colour)."""
    low, high = axes.get_ylim()
    targets = sorted(((y - low) / (high - low), text, colour) for y, text, colour in labels)
    heights = [y for y, _, _ in targets]
    for i in range(1, len(heights)):
        heights[i] = max(heights[i], heights[i - 1] + gap)
    for i in range(len(heights) - 1, -1, -1):
        heights[i] = min(heights[i], 0.98 if i == len(heights) - 1 else heights[i + 1] - gap)
    for height, (_, text, colour) in zip(heights, targets, strict=True):
        axes.annotate(
            text, (1.0, height), xycoords="axes fraction", xytext=(6, 0), textcoords="offset points",
            color=colour, va="center", fontsize=9.0, annotation_clip=False,
        )  # fmt: skip
