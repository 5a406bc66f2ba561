"""docs/cli.md: every command of `heron` with its arguments and options, from typer."""

from __future__ import annotations

import re
from typing import Any, Final

MARK: Final = "```{command-line}\n```"


def reference() -> str:
    """All commands in Markdown, as `typer ... utils docs` writes them; console blocks as this site writes them."""
    import typer
    from typer.cli import get_docs_for_click

    from heron_env.cli import app

    command: Any = typer.main.get_command(app)
    with_whole_sentences(command)
    text = get_docs_for_click(obj=command, ctx=typer.Context(command, info_name="heron"), name="heron")
    text = re.sub(r"^# `heron`\n", "", text.lstrip()).replace("```console\n", "```text\n").replace("\n\n\n", "\n\n")
    text = re.sub(r"^\* `--(?:install-completion|show-completion|help)`.*\n", "", text, flags=re.MULTILINE)
    text = re.sub(r"^Examples:\n((?:  .*\n)+)", in_block, f"{text}\n", flags=re.MULTILINE)
    return re.sub(r"^\*\*Options\*\*:\n\n(?!\*)", "", linked(text), flags=re.MULTILINE)


def with_whole_sentences(command: Any) -> None:
    """In lists of commands, typer would cut them off."""
    command.short_help = (command.help or "").partition("\n")[0]
    for one in getattr(command, "commands", {}).values():
        with_whole_sentences(one)


def in_block(match: re.Match[str]) -> str:
    """The examples of a command."""
    lines = "\n".join(line[2:] for line in match[1].splitlines())
    return f"**Examples**:\n\n```sh\n{lines}\n```\n"


def linked(text: str) -> str:
    """In lists of commands, each as a link to its section."""
    path, done, commands = "heron", list[str](), False
    for line in text.split("\n"):
        if heading := re.match(r"#+ `(.*)`$", line):
            path = heading[1]
        commands = line == "**Commands**:" or (commands and not line.startswith(("#", "**")))
        target = rf"[`\1`](#{path.replace(' ', '-')}-\1)"
        done.append(re.sub(r"(?<=^\* )`([\w-]+)`", target, line) if commands else line)
    return "\n".join(done)


def read(app: Any, docname: str, text: list[str]) -> None:
    """Of Sphinx: a page, before it is parsed."""
    text[0] = text[0].replace(MARK, reference()) if MARK in text[0] else text[0]


def setup(app: Any) -> dict[str, bool]:
    """What Sphinx asks of an extension."""
    app.connect("source-read", read)
    return {"parallel_read_safe": True}
