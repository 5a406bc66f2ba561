"""A report as one HTML document: report.html beside this file, filled by Jinja."""

from __future__ import annotations

import base64
from functools import cache
from typing import TYPE_CHECKING, Final

from heron_env.errors import ConfigError
from heron_env.lab.reports.document import Picture, Report

if TYPE_CHECKING:
    from jinja2 import Template

LEGIBLE: Final = 72
"""Pixels that an inch of a figure gets at least: a narrower screen scrolls within the figure."""
BROAD: Final = 7.0
"""inches; a figure that is not broader is small enough for every screen."""
NATURAL: Final = 112
"""Pixels that an inch of a figure gets at most."""
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
    loader = PackageLoader("heron_env.lab.reports", "")
    return Environment(loader=loader, autoescape=True, undefined=StrictUndefined).get_template("report.html")


def _shown(picture: Picture) -> dict[str, object]:
    """The figure itself as an address, a drawing of very many shapes as pixels if that is lighter; how wide, px."""
    kind, content = "svg+xml", picture.svg
    if len(content) > HEAVY and len(pixels := picture.png) < len(content):
        kind, content = "png", pixels
    address = f"data:image/{kind};base64,{base64.b64encode(content).decode('ascii')}"
    least = round(LEGIBLE * picture.inches) if picture.inches > BROAD else 0
    return {"address": address, "least": least, "most": round(NATURAL * picture.inches)}
