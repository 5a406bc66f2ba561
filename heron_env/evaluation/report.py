"""A report in one HTML file: text, table and figures, nothing loaded from elsewhere, readable on a phone."""

from __future__ import annotations

import base64
import platform
from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Final

from heron_env._version import __version__
from heron_env.evaluation.figure_style import to_svg
from heron_env.evaluation.table import EXPLAINED, Table, cells

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PACKAGES: Final = ("numpy", "gymnasium", "pettingzoo", "stable-baselines3", "torch", "matplotlib")


@dataclass(frozen=True)
class Picture:
    """A figure with what stands below it, and what someone who can't see it is told."""

    figure: Figure
    caption: str
    alternative: str


@dataclass(frozen=True)
class Report:
    """What a report says, top to bottom."""

    title: str
    finding: str
    """The result in words."""
    table: Table
    pictures: Sequence[Picture] = ()
    facts: dict[str, str] = field(default_factory=dict)
    """How it was done: what was held out, seeds, training."""
    notes: Sequence[str] = ()


def write_report(path: str | Path, report: Report) -> Path:
    """Write the HTML file, self-contained; folders are made. Raises ConfigError where matplotlib is missing."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(render_report(report), encoding="utf-8")
    return path


def render_report(report: Report) -> str:
    """The whole document as text."""
    parts = [
        f"<h1>{escape(report.title)}</h1>",
        f'<p class="finding">{escape(report.finding)}</p>',
        "<h2>Table</h2>",
        _table(report.table),
        *map(_picture, report.pictures),
        "<h2>How it was done</h2>",
        _facts({**report.facts, "Versions": versions()}),
    ]
    notes = [*report.notes, *dict.fromkeys(note for row in report.table.rows for note in row.notes)]
    if notes:
        parts += ["<h2>Notes</h2>", f"<ul>{''.join(f'<li>{escape(note)}</li>' for note in notes)}</ul>"]
    return PAGE.format(title=escape(report.title), style=STYLE, body="\n".join(parts))


def versions() -> str:
    """Versions of this package, Python, and what it calculated with."""
    found = [f"heron_env {__version__}", f"Python {platform.python_version()}"]
    for name in PACKAGES:
        try:
            found.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            continue
    return ", ".join(found)


def _table(table: Table) -> str:
    numeric = {name for name in table.columns if name not in ("policy", "clock")}

    def cell(tag: str, name: str, text: str) -> str:
        kind = ' class="n"' if name in numeric else ""
        return f"<{tag}{kind}>{escape(text)}</{tag}>"

    head = "".join(cell("th", name, name) for name in table.columns)
    rows, before = [], None
    for row in table.rows:
        texts = cells(row)
        first = ' class="first"' if row.policy != before else ""
        texts["policy"] = texts["policy"] if first else ""
        rows.append(f"<tr{first}>{''.join(cell('td', name, texts[name]) for name in table.columns)}</tr>")
        before = row.policy
    returns = f"; returns and differences in {escape(table.unit)}" if table.unit else ""
    words = "; ".join(
        f"<b>{escape(name)}</b>: {escape(EXPLAINED[name])}" for name in table.columns if name in EXPLAINED
    )
    return (
        f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{"".join(rows)}</tbody></table></div>'
        f'<p class="small">{len(table.cases)} cases{returns}. {words}.</p>'
    )


def _picture(picture: Picture) -> str:
    data = base64.b64encode(to_svg(picture.figure)).decode("ascii")
    image = f'<img src="data:image/svg+xml;base64,{data}" alt="{escape(picture.alternative)}">'
    return f"<figure>{image}<figcaption>{escape(picture.caption)}</figcaption></figure>"


def _facts(facts: dict[str, str]) -> str:
    return f"<dl>{''.join(f'<dt>{escape(name)}</dt><dd>{escape(text)}</dd>' for name, text in facts.items())}</dl>"


STYLE: Final = """
:root { color-scheme: light; }
body { margin: 0; background: #fff; color: #222; font: 17px/1.5 system-ui, sans-serif; }
main { max-width: 46rem; margin: 0 auto; padding: 1.2rem 1rem 3rem; }
h1 { font-size: 1.6rem; line-height: 1.2; margin: 0.4rem 0 0.8rem; }
h2 { font-size: 1.15rem; margin: 2.2rem 0 0.6rem; }
.finding { border-left: 4px solid #0072b2; padding: 0.1rem 0 0.1rem 0.9rem; margin: 1rem 0; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: 0.88rem; font-variant-numeric: tabular-nums; width: 100%; }
th, td { text-align: left; vertical-align: top; padding: 0.28rem 0.9rem 0.28rem 0; white-space: nowrap; }
td:first-child { white-space: normal; min-width: 8rem; }
th { border-bottom: 2px solid #222; }
.n { text-align: right; }
tr.first td { border-top: 1px solid #d9d9d9; }
.small, figcaption { font-size: 0.85rem; color: #555; }
figure { margin: 2.2rem 0; }
figure img { width: 100%; height: auto; display: block; }
figcaption { margin-top: 0.5rem; }
dt { font-weight: 600; margin-top: 0.6rem; }
dd { margin: 0; overflow-wrap: anywhere; }
"""

PAGE: Final = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="icon" href="data:,">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<main>
{body}
</main>
</body>
</html>
"""
