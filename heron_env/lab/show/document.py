"""What a report is made of, and how it is written: an HTML file that needs nothing else, and its figures beside it."""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

from heron_env.errors import ConfigError
from heron_env.files.writing import write_all
from heron_env.lab.figure_style import to_png, to_svg
from heron_env.lab.output import TextTable, Tile

if TYPE_CHECKING:
    from jinja2 import Template
    from markupsafe import Markup
    from matplotlib.figure import Figure

PAGE = "report.html"
NOT_DRAWN = "Not drawn"
"""How the text of a part begins that is missing."""


@dataclass(frozen=True)
class Picture:
    """A figure with what stands below it, and what someone who can't see it is told.

    Attributes:
        name: of its files, unique in a report.
    """

    name: str
    drawing: Figure
    caption: str
    alternative: str

    @property
    def svg(self) -> bytes:
        """The same bytes for the same figure."""
        return to_svg(self.drawing)

    @property
    def png(self) -> bytes:
        """The same as pixels."""
        return to_png(self.drawing)

    @property
    def inches(self) -> float:
        """How wide it was drawn."""
        return float(self.drawing.get_size_inches()[0])


Block = str | TextTable | Picture | list[str] | Mapping[str, str]
"""A paragraph, table, figure, sentences one below the other, or terms with what they mean."""


@dataclass(frozen=True)
class Section:
    """A heading and what stands below it."""

    title: str
    blocks: Sequence[Block]


@dataclass(frozen=True)
class Report:
    """What a report says: three sentences, its verdict in figures, a picture, all findings, then the parts.

    Attributes:
        summary: what it begins with; none: with all findings.
        about: seeds of training.
    """

    title: str
    finding: Sequence[str]
    parts: Sequence[Section]
    verdict: Sequence[Tile] = ()
    summary: Sequence[str] = ()
    about: str = ""

    @property
    def pictures(self) -> list[Picture]:
        """All figures in their order."""
        return [block for part in self.parts for block in part.blocks if isinstance(block, Picture)]

    @property
    def lead(self) -> Picture | None:
        """The first figure, which stands above the words."""
        return next(iter(self.pictures), None)

    @property
    def rest(self) -> list[Section]:
        """The parts without it; one that held nothing else is left out."""
        parts = [Section(part.title, [block for block in part.blocks if block is not self.lead]) for part in self.parts]
        return [part for part in parts if part.blocks]


def write_report(folder: str | Path, report: Report) -> dict[str, Path]:
    """Write report.html, and each figure as SVG and PNG.

    Args:
        folder: where to; it is made.
        report: as `report_of` gives it.

    Returns:
        The files by name.

    Raises:
        ConfigError: they can't be written, or matplotlib or Jinja is missing (extra `plots`).

    Example: `write_report("report", report_of(Sources(runs=[RunFolder.open("runs/grid")])))`.
    """
    folder = Path(folder)
    contents: dict[str, str | bytes] = {PAGE: render(report)}
    for picture in report.pictures:
        contents |= {f"{picture.name}.svg": picture.svg, f"{picture.name}.png": picture.png}
    try:
        write_all({folder / name: content for name, content in contents.items()})
    except OSError as error:
        raise ConfigError(f"{folder}: can't write the report ({error.strerror}); choose another folder") from error
    return {name: folder / name for name in contents}


LEGIBLE: Final = 72
"""Pixels that an inch of a figure gets at least: a narrower screen scrolls within the figure."""
BROAD: Final = 7.0
"""inches; a figure that is not broader is small enough for every screen."""
NATURAL: Final = 112
"""Pixels that an inch of a figure gets at most."""
CODE: Final = re.compile("`([^`]+)`")
HEAVY: Final = 300_000
"""Bytes of an SVG that are too many."""


def render(report: Report) -> str:
    """The whole document as text. Raises ConfigError where Jinja is missing."""
    return _template().render(report=report, pixels=_shown)


@cache
def _template() -> Template:
    try:
        from jinja2 import Environment, PackageLoader, StrictUndefined
    except ImportError as error:
        raise ConfigError("reports need Jinja: pip install 'heron_env[plots]'") from error
    loader = PackageLoader("heron_env.lab.show", "")
    environment = Environment(loader=loader, autoescape=True, undefined=StrictUndefined)
    environment.filters |= {"coded": _coded, "breakable": _breakable}
    return environment.get_template("report.html")


def _coded(words: str) -> Markup:
    """The words as HTML, with what stands between backticks as code."""
    from markupsafe import Markup, escape

    return Markup(CODE.sub(r"<code>\1</code>", str(escape(words))))


def _breakable(words: str) -> Markup:
    """The words as HTML, whose lines may end after a slash or a colon."""
    from markupsafe import Markup, escape

    return Markup(re.sub(r"[/:]", r"\g<0><wbr>", str(escape(words))))


def _shown(picture: Picture) -> dict[str, object]:
    """The figure itself as an address, a drawing of very many shapes as pixels if that is lighter; how wide, px."""
    kind, content = "svg+xml", picture.svg
    if len(content) > HEAVY and len(pixels := picture.png) < len(content):
        kind, content = "png", pixels
    address = f"data:image/{kind};base64,{base64.b64encode(content).decode('ascii')}"
    least = round(LEGIBLE * picture.inches) if picture.inches > BROAD else 0
    return {"address": address, "least": least, "most": round(NATURAL * picture.inches)}
