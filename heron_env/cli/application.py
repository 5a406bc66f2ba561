"""The application: what all commands share, above all how errors are told."""

from __future__ import annotations

import errno
import inspect
import json
import os
import platform
import re
import sys
from collections.abc import Sequence
from contextlib import suppress
from contextvars import copy_context
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, Any, get_args, get_type_hints

import typer
from typer.core import TyperGroup

from heron_env import registry
from heron_env._version import __version__
from heron_env.errors import ConfigError, HeronError, RemovedName
from heron_env.trust import speak_for, vouch

if TYPE_CHECKING:
    from heron_env.envs.base import HeronEnv
    from heron_env.lab.runs import RunFolder

USAGE_ERROR, INTERRUPTED = 2, 130
OF_FILES = {
    errno.EACCES, errno.EBUSY, errno.EDQUOT, errno.EEXIST, errno.EFBIG, errno.EINVAL, errno.EIO, errno.EISDIR,
    errno.ELOOP, errno.EMFILE, errno.ENAMETOOLONG, errno.ENFILE, errno.ENODEV, errno.ENOENT, errno.ENOMEM, errno.ENOSPC,
    errno.ENOTDIR, errno.ENOTEMPTY, errno.ENXIO, errno.EPERM, errno.EROFS, errno.ESTALE, errno.ETXTBSY,
}  # fmt: skip
"""What a disk or a path can be at fault for."""
REMOVED = {
    "eval": "write heron sweep ENV RUN --preset delays, or --axis act_delay=0,30,60",
    "validate": "write heron check FILE.yaml",
    "zoo": "write heron board list",
}
"""Commands of earlier versions, and what takes their place."""
REMOVED_OPTIONS = {
    "--train-delays": "write --schedule obs_delay=60 --schedule act_delay=0-120: in s, constant or drawn",
}
"""Likewise options."""


class OneLineErrors(TyperGroup):
    """What this library raises on purpose becomes `error: ...` on stderr and exit code 2, without a traceback.

    So does what a disk, a path or a stream is at fault for. Ctrl-C is one line and exit code 130, with
    what the notes of the KeyboardInterrupt say is kept.
    """

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command and what is left for it. Raises ConfigError for a number that Python alone would read."""
        if args[0] in REMOVED and args[0] not in self.commands:
            raise RemovedName(f"heron {args[0]} is gone since an earlier 0.x: {REMOVED[args[0]]}", name=args[0])
        for option in (text.partition("=")[0] for text in args):
            if option in REMOVED_OPTIONS:
                raise RemovedName(f"{option} is gone since an earlier 0.x: {REMOVED_OPTIONS[option]}", name=option)
        name, command, rest = super().resolve_command(ctx, args)
        if command is not None and command.callback is not None:
            _require_plain_numbers(command, rest)
        return name, command, rest

    def invoke(self, ctx: Any) -> Any:
        """Run the command."""
        if os.getcwd() not in sys.path:
            sys.path.append(os.getcwd())  # where "module:function" is most likely to lie
        try:
            return copy_context().run(super().invoke, ctx)  # who is trusted, is trusted by this command alone
        except KeyboardInterrupt as error:
            notes = getattr(error, "__notes__", ["run the same command again"])
            typer.echo("; ".join(["stopped", *notes]), err=True)
            raise typer.Exit(INTERRUPTED) from error
        except HeronError as error:
            _tell(str(error), error)
            raise typer.Exit(USAGE_ERROR) from error
        except OSError as error:
            if error.errno not in OF_FILES:
                raise
            where = "a file or the output" if error.filename is None else error.filename
            _tell(f"{where}: {error.strerror}; mend that, or choose another folder or file", error)
            raise typer.Exit(USAGE_ERROR) from error


def _require_plain_numbers(command: Any, args: Sequence[str]) -> None:
    """Raise ConfigError for `--cases 1_0`: Python, with which all options are read, takes it for 10."""
    kinds = get_type_hints(inspect.unwrap(command.callback))
    numeric = {
        option
        for param in command.params
        if {int, float} & {kind := kinds.get(param.name), *get_args(kind)}
        for option in param.opts
    }
    values = [tuple(text.split("=", 1)) for text in args if "=" in text] + [*pairwise(args)]
    for option, value in values:
        if option in numeric and ("_" in value or not value.isascii()):
            raise ConfigError(f"{option} {value!r:.60}: must be a number in digits 0-9, without '_' between them")


def _tell(message: str, error: Exception) -> None:
    typer.echo("; ".join([f"error: {message}", *getattr(error, "__notes__", [])]), err=True)


app = typer.Typer(
    cls=OneLineErrors,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Hierarchical multi-agent environments: trained on a synchronous clock, evaluated event-driven.",
)


def _print_versions(requested: bool) -> None:
    from importlib.metadata import PackageNotFoundError, version

    if not requested:
        return
    versions = [f"heron_env {__version__}", f"Python {platform.python_version()}"]
    for package in ("numpy", "numba", "gymnasium", "pettingzoo", "torch"):
        with suppress(PackageNotFoundError):
            versions.append(f"{package} {version(package)}")
    typer.echo(", ".join(versions))
    raise typer.Exit()


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_print_versions, help="Print versions and exit.")
    ] = False,
) -> None:
    """What stands before the command."""


def examples(*lines: str) -> str:
    """The end of a command's `--help`."""
    return "\n  ".join(["Examples:", *lines])


def known_ids(incomplete: str) -> list[str]:
    """For the completion of shells."""
    return [name for name in registry.registered() if name.startswith(incomplete)]


ENVIRONMENT = "An id as `heron envs` lists them, or module:function of your own"
"""What is said of an argument that names an environment."""
POLICY = (
    "run:DIR, rule:NAME (a baseline), shipped:ID, py:MODULE:NAME, file:PATH.py:NAME, sb3:FILE.zip, onnx:FILE, "
    "http:URL, agents:FILE.yaml, recorded:FILE, or the value alone where it is clear; NAME=URL"
)
"""What is said of one that names a policy."""
LOCAL_POLICY = (
    "run:DIR, rule:NAME (a baseline), shipped:ID, py:MODULE:NAME, file:PATH.py:NAME, sb3:FILE.zip or onnx:FILE"
)
"""What is said of one that decides in this process."""
EnvArgument = Annotated[str, typer.Argument(help=f"{ENVIRONMENT}.", autocompletion=known_ids)]
Json = Annotated[bool, typer.Option("--json", help="Print JSON on stdout, and nothing else.")]
EnvOptions = Annotated[
    list[str] | None,
    typer.Option("--option", "-o", metavar="NAME=VALUE", help="An option of the environment; may be repeated."),
]


def _vouch(names: list[str] | None) -> list[str] | None:
    """Until the command is over."""
    vouch(*(names or ()))
    return names


Trusted = Annotated[
    list[str] | None,
    typer.Option(
        "--trust",
        metavar="MODULE:FUNCTION",
        callback=_vouch,
        help="Code that the given files may run, besides registered environments; may be repeated.",
    ),
]


def _allow(machines: list[str] | None) -> list[str] | None:
    """Until the command is over."""
    from heron_env.net.guard import ALLOWED, Guard

    Guard(private=machines or ())
    ALLOWED.set((*ALLOWED.get(), *(machines or ())))
    return machines


Allowed = Annotated[
    list[str] | None,
    typer.Option(
        "--allow",
        metavar="IP:PORT",
        callback=_allow,
        help="Allow endpoints on this machine of a private network: 192.168.1.5:8000; may be repeated.",
    ),
]


def on_behalf(run: RunFolder) -> None:
    """From now on, to the end of the command, options come from this run: what they name must be trusted."""
    speak_for(str(run.file))


def parsed_options(texts: Sequence[str] | None) -> dict[str, Any]:
    """`["dt=900", "control=zone"]` as a dictionary; values are JSON or numbers (.05) where they can be.

    Raises ConfigError.
    """
    options: dict[str, Any] = {}
    for text in texts or ():
        name, equals, value = text.partition("=")
        if not equals or not name.isidentifier():
            raise ConfigError(f"--option {text!r}: must read name=value, as dt=900 does")
        try:
            options[name] = json.loads(value)
        except json.JSONDecodeError:
            options[name] = float(value) if re.fullmatch(r"[+-]?(\d+\.|\.\d+)", value) else value
    return options


def built(env_id: str, options: dict[str, Any]) -> HeronEnv:
    """The environment. Raises UnknownEnvironment, and UnknownArgument with the nearest name for an unknown option."""
    return registry.make(env_id, **options)
