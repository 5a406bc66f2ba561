"""Names that look like markup: in reports, tables, figures and pictures they stand as they are, and do nothing."""

from __future__ import annotations

import csv
import html
import io
import re
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from calls import GRID, SMALL, Block, Cell, Entry

from heron_env import HeronEnv, SystemAgent
from heron_env.errors import HeronError

NAMES = (
    "<script>alert(1)</script>", "[red]", "[/]", "[link=http://x]y[/link]", "&amp;", "a|b", "`x`", "$x^$", "$\\frac$",
    "{{7*7}}", "{% if %}", "=1+1", '"', "'", "a\tb", "<b>", "</svg>", "<!--", "]]>", "\x1b[31m", "\u202e", "%s", "{0}",
    "x" * 300, "é", "\\", "a,b", "#", "..", "__init__",
)  # fmt: skip
LIVE = re.compile(r"<script>alert|<b>|<!--(?! )")


class Changed(Exception):
    """A name did something, or is not there."""


def require(text: str, names: list[str], where: str, read: Callable[[str], str] = html.unescape) -> None:
    """Raise Changed where a name is live markup, or is not to be found once the text is read."""
    shown = "".join(read(text).split())  # tables fold long names
    for name in names:
        if "".join(name[:40].split()) not in shown:
            raise Changed(f"{where}: {name!r} is not there")


def of_sweep(draw: np.random.Generator) -> Callable[[], Any]:
    """Policies of a sweep with such names."""
    names = [NAMES[n] for n in draw.choice(len(NAMES), 2, replace=False)]

    def write() -> None:
        from rich.console import Console

        from heron_env.lab import Sources, Sweep, read_sweep, report_of
        from heron_env.lab.show.document import render
        from heron_env.lab.sweep.tables import to_csv, to_json, to_markdown, to_rich

        sweep = Sweep.of(GRID, dict.fromkeys(names, "random"), [], cases=1, options=SMALL)
        with tempfile.TemporaryDirectory() as folder:
            sweep.run(Path(folder), processes=1, progress=False)
            result = read_sweep(Path(folder))
        page = render(report_of(Sources(sweeps=[result]), title=names[0], facts={names[1]: names[0]}))
        if LIVE.search(page):
            raise Changed(f"report.html: {LIVE.search(page)} is live")
        require(page, names, "report.html")
        cells = [cell for row in csv.reader(io.StringIO(to_csv(result))) for cell in row]
        require("\n".join(cells), names, "table.csv", str)
        require(str(to_json(result)), names, "table.json", lambda text: text.encode().decode("unicode_escape") + text)
        to_markdown(result)
        console = Console(file=(told := io.StringIO()), width=400, color_system=None)
        console.print(to_rich(result))
        require(told.getvalue(), [name for name in names if name.isprintable()], "terminal", str)
        if LIVE.search(result._repr_html_()):
            raise Changed("_repr_html_ is live")

    return write


def of_agents(draw: np.random.Generator) -> Callable[[], Any]:
    """Agents with such ids: refused with words, or shown as they are."""
    zone, cell = (NAMES[n] for n in draw.choice(len(NAMES), 2, replace=False))

    def build() -> HeronEnv:
        return HeronEnv(SystemAgent("system_agent", Block(zone, Cell(cell), Cell("cell_2"))), max_steps=3)

    def write() -> None:
        env = build()
        env.reset(seed=0)
        result = env.run_event_driven({"*": lambda vector: np.zeros(2)}, seed=0, trace=True)
        for name, shown in (("env", env), ("result", result), ("visibility", env.visibility_matrix())):
            text = shown._repr_html_()
            if LIVE.search(text):
                raise Changed(f"{name}._repr_html_: {LIVE.search(text)} is live")
        from matplotlib import pyplot

        try:
            figure = env.visibility_matrix().plot()
            figure.savefig(io.BytesIO(), format="svg")
            result.plot()
        except HeronError:
            pass
        finally:
            pyplot.close("all")

    return write


def of_commands(draw: np.random.Generator) -> Callable[[], Any]:
    """A command that repeats what it was given: the terminal reads no markup in it."""
    name = NAMES[draw.integers(len(NAMES))]
    line = [["describe", name], ["report", name], ["check", name], ["sweep", GRID, name], ["dcop", "solve", name]][
        draw.integers(5)
    ]

    def run() -> None:
        from typer.testing import CliRunner

        from heron_env.cli import app

        done = CliRunner().invoke(app, line)
        if done.exception is not None and not isinstance(done.exception, SystemExit):
            raise done.exception
        told, forms = done.stderr.replace("\n", ""), (name, repr(name), str(Path(name)))
        if done.exit_code == 2 and name.isprintable() and len(name) < 40 and not any(form in told for form in forms):
            raise Changed(f"{line}: {name!r} is not in what was told: {done.stderr[:200]}")

    return run


def entries() -> dict[str, Entry]:
    """All of them."""
    return {"names of policies": of_sweep, "names of agents": of_agents, "names in commands": of_commands}
