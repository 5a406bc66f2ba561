"""Names with characters that mean something to a terminal, a figure, a page or a table are shown as they are."""

import io
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from cli_kit import heron
from lab.dropping import Mast

from heron_env import (
    Condition,
    HeronEnv,
    Sweep,
    SystemAgent,
    register,
)
from heron_env.lab import Sources, record_episode, report_of
from heron_env.lab.output import as_markdown
from heron_env.lab.show.document import render
from heron_env.lab.sweep.tables import to_markdown, to_rich

ENV = "names/World-v0"
AGENTS = ("$x^$", "[a]", "[/a]", "p|q", "<i>&amp;", "*s*_t_`u`", ":smile:", "\\frac{$")
POLICY = "$p^$ [red]|<b>"


def world(**options: Any) -> HeronEnv:
    """Agents of strange names."""
    options = {"max_steps": 3, "compile": False, **options}
    return HeronEnv(SystemAgent("system[s]$", *(Mast(name) for name in AGENTS)), **options)


register(ENV, world)


class Text(HTMLParser):
    """The words of a page, as a reader sees them."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.words: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attributes: Any) -> None:
        self.tags.add(tag)
        self.words += [value or "" for _, value in attributes]

    def handle_data(self, data: str) -> None:
        self.words.append(data)


@pytest.fixture(scope="module")
def swept() -> Any:
    conditions = [Condition(act_delay={"[a]": 1.0, "$x^$": 2.0}), Condition(act_delay=1.0), Condition(act_delay=2.0)]
    return Sweep.of(ENV, {POLICY: "random"}, conditions, cases=2).run(processes=1)


def test_a_terminal_shows_names_as_they_are(swept: Any):
    from rich.console import Console

    told = heron("describe", ENV, env={"COLUMNS": "300"}).stdout
    assert all(name in told for name in (ENV, *AGENTS))
    console = Console(width=200, record=True, file=io.StringIO())
    console.print(to_rich(swept))
    told = console.export_text()
    assert POLICY in told and "[a]:1/$x^$:2" in told


def test_figures_show_names_as_they_are(tmp_path: Path):
    pytest.importorskip("matplotlib")
    heron("describe", ENV, "--svg", tmp_path / "d.svg", "--png", tmp_path / "d.png")
    shown = (tmp_path / "d.svg").read_text()  # matplotlib draws letters as paths, and notes what they say
    notes = [re.sub(r"\s+", " ", note).strip() for note in re.findall(r"<!--(.*?)-->", shown, re.DOTALL)]
    told = " ".join(notes).replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
    assert all(name in told for name in AGENTS if "*" not in name)


def test_a_markdown_table_keeps_its_columns_and_its_names(swept: Any):
    tables = [part.splitlines() for part in to_markdown(swept).split("\n\n") if part.startswith("|")]
    assert len(tables) == 2  # the second one has the returns of groups
    for table in tables:
        assert len({len(re.findall(r"(?<!\\)\|", line)) for line in table}) == 1
        assert any(as_markdown(POLICY) in line for line in table)
    table = tables[0]
    plain = re.sub(r"\\([^\w\s])", r"\1", "\n".join(table))
    assert POLICY in plain and "[a]:1/$x^$:2" in plain


def test_markdown_is_escaped():
    for words, written in [
        ("$x^$", r"\$x^\$"), ("a|b", r"a\|b"), ("[a](b)", r"[a]\(b)"), ("<b>&lt;", r"\<b>\&lt;"),
        ("act_delay _em_ *s*", r"act_delay \_em\_ \*s\*"), ("two\nlines", "two lines"),
        ("plain [1.2, 3.4] 5 %", "plain [1.2, 3.4] 5 %"),
    ]:  # fmt: skip
        assert as_markdown(words) == written


def test_pages_show_names_as_they_are(swept: Any):
    pytest.importorskip("matplotlib")
    seen = Text(render(report_of(Sources(sweeps=[swept], traces=[record_episode(ENV, "random")]))))
    told = "\n".join(seen.words)
    assert not seen.tags & {"i", "u", "b"}
    assert all(name in told for name in (ENV, POLICY, *AGENTS))
