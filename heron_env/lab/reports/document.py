"""What a report is made of, and how it is written: an HTML file that needs nothing else, and its figures beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from heron_env.errors import ConfigError
from heron_env.files.writing import write_all
from heron_env.lab.figure_style import to_png, to_svg

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PAGE = "report.html"


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


@dataclass(frozen=True)
class Grid:
    """A table.

    Attributes:
        caption: what it tells, read out before it.
        head: of the columns; the first `words` columns hold words, the others numbers.
        note: below it.
        folded: is it shown only when asked for?
    """

    caption: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    words: int = 1
    note: str = ""
    folded: bool = False


@dataclass(frozen=True)
class Listing:
    """Sentences, one below the other."""

    items: Sequence[str]


Block = str | Grid | Picture | Listing | Mapping[str, str]
"""A paragraph, table, figure, list, or terms with what they mean."""


@dataclass(frozen=True)
class Part:
    """A heading and what stands below it."""

    title: str
    blocks: Sequence[Block]


@dataclass(frozen=True)
class Report:
    """What a report says, top to bottom; the finding is the result in words."""

    title: str
    finding: Sequence[str]
    parts: Sequence[Part]

    @property
    def pictures(self) -> list[Picture]:
        """All figures in their order."""
        return [block for part in self.parts for block in part.blocks if isinstance(block, Picture)]


def write_report(folder: str | Path, report: Report) -> dict[str, Path]:
    """Write report.html, and each figure as SVG and PNG; folders are made.

    Returns the files by name. Raises ConfigError where they can't be written, or matplotlib or Jinja is missing.
    """
    from heron_env.lab.reports.page import render

    folder = Path(folder)
    contents: dict[str, str | bytes] = {PAGE: render(report)}
    for picture in report.pictures:
        contents |= {f"{picture.name}.svg": picture.svg, f"{picture.name}.png": picture.png}
    try:
        write_all({folder / name: content for name, content in contents.items()})
    except OSError as error:
        raise ConfigError(f"{folder}: can't write the report ({error.strerror}); choose another folder") from error
    return {name: folder / name for name in contents}
