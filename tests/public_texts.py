"""What users read of the library: docstrings of public names, the command line's help; and words not to use there."""

import importlib
import inspect
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

from heron_env.cli.application import app
from heron_env.errors import RemovedName

PROMISED = json.loads((Path(__file__).parent / "golden" / "public_names.json").read_text(encoding="utf-8"))
OTHERS = ("benchmarl", "tensordict", "torchrl", "ray", "minari", "jax")
DIALECT = re.compile(
    r"nothing wrong|synchronous twin|costliest|obey or watch|second copy|earns \w+ (a return of )?-?\d|no bound is near"
    r"|specification's|a card where|weights are improved|any that is free|what else is wrong|hold the others|step being"
    r"|other's names|least-most|\(sum of rewards, all agents\) (less|more)|\A(?-i:Of|As of|Where to|Whom|By how) ",
    re.IGNORECASE,
)
"""Phrases that a reader must read twice, once used here."""


def dialect(text: str) -> list[str]:
    """Those phrases in a text, or in the words of a page."""
    words = re.sub(r"<(script|style).*?</\1>|<[^>]*>", " ", text, flags=re.DOTALL) if "<html" in text else text
    return [found[0] for found in DIALECT.finditer(words)]


def docstrings() -> Iterator[tuple[str, str]]:
    """Each public name, and each of its public members that heron_env defines, with its docstring."""
    passed: set[int] = set()
    for package, names in PROMISED.items():
        yield package, inspect.getdoc(module(package)) or ""
        for name in names:
            thing = found(package, name)
            members = inspect.getmembers_static(thing) if inspect.isclass(thing) else []
            public = [(key, value) for key, value in members if not key.startswith("_")]
            for path, each in [(f"{package}.{name}", thing), *((f"{package}.{name}.{k}", v) for k, v in public)]:
                function = getattr(each, "fget", getattr(each, "__func__", each))
                ours = (getattr(function, "__module__", "") or "").startswith("heron_env")
                if ours and callable(function) and id(function) not in passed:
                    passed.add(id(function))
                    yield path, inspect.getdoc(function) or ""


def module(package: str) -> Any:
    """A public module; None where the library that it adapts is not installed."""
    try:
        return importlib.import_module(package)
    except ModuleNotFoundError as missing:
        if (missing.name or "").partition(".")[0] not in OTHERS:
            raise
        return None


def found(package: str, name: str) -> Any:
    """A public name; None where it is gone, or where the library that it adapts is not installed."""
    try:
        return getattr(module(package), name, None)
    except RemovedName:
        return None
    except ModuleNotFoundError as missing:
        if missing.name not in OTHERS:
            raise
        return None


def command_help() -> Iterator[tuple[str, str]]:
    """Each command with its help text, and each of its options."""

    def below(command: Any, path: str) -> Iterator[tuple[str, str]]:
        yield path, command.help or ""
        yield from ((f"{path} {option.opts[0]}", getattr(option, "help", None) or "") for option in command.params)
        for name, inner in getattr(command, "commands", {}).items():
            yield from below(inner, f"{path} {name}")

    return below(typer.main.get_command(app), "heron")
