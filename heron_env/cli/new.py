"""`heron new`: a package with an environment of one's own, written from the files in `templates`."""

from __future__ import annotations

import keyword
from importlib.util import find_spec
from pathlib import Path
from string import Template
from typing import Annotated

import typer

from heron_env._version import __version__
from heron_env.cli.application import Json
from heron_env.errors import ConfigError
from heron_env.files.writing import write_all

TEMPLATES = Path(__file__).parent / "templates"
SUFFIX = ".template"


def new(
    name: Annotated[str, typer.Argument(help="Name of the package, as Python imports it: couriers, my_grid.")],
    out: Annotated[Path | None, typer.Option(help="Folder to make; default: NAME.")] = None,
    as_json: Json = False,
) -> None:
    """Write a package: an environment, its tests, its entry point, a workflow. Its tests pass.

    It is a world of couriers: change it into your own, and choose a licence.
    """
    from heron_env.lab.output import dumps

    folder = out or Path(name)
    _require_name(name)
    if folder.exists():
        raise ConfigError(f"{folder} exists already: name another folder with --out, or remove that one")
    title = "".join(part[:1].upper() + part[1:] for part in name.split("_"))
    words = {"name": name, "title": title, "version": __version__}
    files = {
        folder / Template(str(path.relative_to(TEMPLATES)).removesuffix(SUFFIX)).substitute(words): (
            Template(path.read_text(encoding="utf-8")).substitute(words)
        )
        for path in sorted(TEMPLATES.rglob(f"*{SUFFIX}"))
    }
    write_all(files)
    if as_json:
        typer.echo(dumps({"id": f"{name}/{title}-v0", "files": [str(path) for path in files]}))
        return
    for path in files:
        typer.echo(f"wrote {path}")
    typer.echo(f'Next: cd {folder} && pip install --editable ".[test]" && pytest; then heron train {name}/{title}-v0')


def _require_name(name: str) -> None:
    """Raise ConfigError for what Python can't import, packaging tools don't take, or another module is called."""
    if not (name.isascii() and name.isidentifier() and name.strip("_") == name) or keyword.iskeyword(name):
        raise ConfigError(
            f"heron new {name!r}: must be a name that Python imports, of ASCII letters, digits and _ between them"
        )
    existing = find_spec(name)  # imports nothing; a mere folder of that name has no origin
    if existing is not None and existing.origin is not None:
        raise ConfigError(f"heron new {name}: there is a module of that name ({existing.origin}); choose another")
