"""A report as one HTML document: nothing is loaded from elsewhere, no script, readable on a phone and by keyboard."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from html import escape
from typing import Final

from heron_env.lab.html import page
from heron_env.lab.reports.document import Block, Grid, Listing, Part, Picture, Report

LEGIBLE: Final = 72
"""Pixels that an inch of a figure gets at least: a narrower screen scrolls within the figure."""
BROAD: Final = 7.0
"""inches; a figure that is not broader is small enough for every screen."""
NATURAL: Final = 112
"""Pixels that an inch of a figure gets at most."""
HEAVY: Final = 300_000
"""Bytes of an SVG that are too many."""
DRAWN_WIDTH: Final = 860
"""Pixels that an SVG of unknown scale gets at least."""


def render(report: Report) -> str:
    """The whole document as text."""
    links = "".join(f'<li><a href="#part-{n}">{escape(part.title)}</a></li>' for n, part in enumerate(report.parts))
    body = [
        f"<h1>{escape(report.title)}</h1>",
        f'<div class="finding">{"".join(f"<p>{escape(sentence)}</p>" for sentence in report.finding)}</div>',
        f'<nav aria-label="Parts of this report"><ul>{links}</ul></nav>',
        *(_part(number, part) for number, part in enumerate(report.parts)),
    ]
    return page(report.title, STYLE, "\n".join(body))


def _part(number: int, part: Part) -> str:
    blocks = "\n".join(map(_block, part.blocks))
    heading = f'<h2 id="part-{number}">{escape(part.title)}</h2>'
    return f'<section aria-labelledby="part-{number}">{heading}\n{blocks}</section>'


def _block(block: Block) -> str:
    match block:
        case str():
            return f"<p>{escape(block)}</p>"
        case Grid():
            return _grid(block)
        case Picture():
            return _picture(block)
        case Listing():
            return f"<ul>{''.join(f'<li>{escape(item)}</li>' for item in block.items)}</ul>"
        case Mapping():
            return (
                f"<dl>{''.join(f'<dt>{escape(name)}</dt><dd>{escape(text)}</dd>' for name, text in block.items())}</dl>"
            )


def _grid(grid: Grid) -> str:
    kinds = ["" if column < grid.words else ' class="n"' for column in range(len(grid.head))]
    head = "".join(f'<th scope="col"{kind}>{escape(text)}</th>' for kind, text in zip(kinds, grid.head, strict=True))
    rows = []
    for row in grid.rows:
        cells = [f"<td{kind}>{escape(text)}</td>" for kind, text in zip(kinds, row, strict=True)]
        rows.append(f"<tr{_first(row)}>{''.join(cells)}</tr>")
    caption = f"<caption>{escape(grid.caption)}</caption>"
    table = f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"
    note = f'<p class="small">{escape(grid.note)}</p>' if grid.note else ""
    shown = f'<div class="wide" tabindex="0" role="region" aria-label="{escape(grid.caption)}">{table}</div>{note}'
    return f"<details><summary>{escape(grid.caption)}</summary>{shown}</details>" if grid.folded else shown


def _first(row: Sequence[str]) -> str:
    """Rows that begin something new (their first cell is not empty) get a line above them."""
    return ' class="first"' if row[0] else ""


def _data(picture: Picture) -> str:
    """The figure itself, as an address; a drawing of very many shapes as pixels if that is lighter."""
    kind, content = "svg+xml", picture.svg
    if len(content) > HEAVY and (pixels := picture.png) is not None and len(pixels) < len(content):
        kind, content = "png", pixels
    return f"data:image/{kind};base64,{base64.b64encode(content).decode('ascii')}"


def _picture(picture: Picture) -> str:
    data, told = _data(picture), escape(picture.alternative)
    inches = picture.inches
    least = DRAWN_WIDTH if inches is None else round(LEGIBLE * inches) if inches > BROAD else 0
    most = "none" if inches is None else f"{round(NATURAL * inches)}px"
    image = f'<img src="{data}" alt="{told}" style="min-width:{least}px;max-width:{most}">'
    if least:
        image = f'<div class="wide" tabindex="0" role="group" aria-label="Figure, can be scrolled">{image}</div>'
    return (
        f'<figure id="figure-{escape(picture.name)}">{image}<figcaption>{escape(picture.caption)}</figcaption></figure>'
    )


STYLE: Final = """
:root { color-scheme: light; }
body { margin: 0; background: #fff; color: #222; font: 17px/1.5 system-ui, sans-serif; }
main { max-width: 48rem; margin: 0 auto; padding: 1.2rem 1rem 3rem; }
h1 { font-size: 1.6rem; line-height: 1.2; margin: 0.4rem 0 0.8rem; overflow-wrap: anywhere; }
h2 { font-size: 1.25rem; margin: 2.6rem 0 0.6rem; }
.finding { border-left: 4px solid #0072b2; padding: 0.1rem 0 0.1rem 0.9rem; margin: 1rem 0; }
.finding p { margin: 0.3rem 0; }
nav ul { list-style: none; margin: 1rem 0; padding: 0; display: flex; flex-wrap: wrap; gap: 0.2rem 1.2rem; }
a { color: #005a8e; }
:focus-visible { outline: 3px solid #d55e00; outline-offset: 2px; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: 0.88rem; font-variant-numeric: tabular-nums; width: 100%; }
caption { text-align: left; font-weight: 600; padding: 0.6rem 0 0.3rem; }
details caption { display: none; }
summary { cursor: pointer; font-weight: 600; margin: 0.8rem 0 0.4rem; }
th, td { text-align: left; vertical-align: top; padding: 0.28rem 0.7rem 0.28rem 0; white-space: nowrap; }
td:nth-child(-n+2):not(.n) { white-space: normal; min-width: 8rem; }
th { border-bottom: 2px solid #222; }
th.n, td.n { text-align: right; }
tr.first td { border-top: 1px solid #d9d9d9; }
.small, figcaption { font-size: 0.85rem; color: #555; }
section > .wide { position: relative; left: 50%; transform: translateX(-50%);
  width: max-content; min-width: 100%; max-width: min(100vw - 2rem, 66rem); }
figure { margin: 1.8rem 0 2.2rem; }
figure .wide { position: relative; left: 50%; transform: translateX(-50%); width: min(100vw - 2rem, 66rem); }
figure img { width: 100%; height: auto; display: block; }
figcaption { margin-top: 0.5rem; }
dt { font-weight: 600; margin-top: 0.6rem; }
dd { margin: 0; overflow-wrap: anywhere; }
@media print { .wide { overflow: visible; } }
"""
