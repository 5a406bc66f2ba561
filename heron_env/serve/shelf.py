"""All simulations of a service: their folders, what they may name, and to whom they may talk."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from threading import Lock
from typing import Any, Final

from pydantic import ValidationError

from heron_env import registry
from heron_env.core.hierarchy import at_most
from heron_env.engine.cache import uncollected
from heron_env.envs.base import HeronEnv
from heron_env.errors import ConfigError, RunFolderError
from heron_env.files.reading import first_fault, parsed, read
from heron_env.files.writing import lock_folder
from heron_env.given import require_count
from heron_env.injection.endpoint import Connection, Endpoint, client_of
from heron_env.injection.policy import ExternalPolicy
from heron_env.net.guard import Guard
from heron_env.serve.journal import Injection, NewSimulation
from heron_env.serve.simulation import SETTING, NoSuchSimulation, Session, remove_folder
from heron_env.trust import trusting

LINES: Final = 1000
"""Ways to endpoints, with breaker and caps, that are kept for whoever names the same again; the last used."""
MOST: Final = 64
MOST_AGENTS: Final = 1_000
MOST_NUMBERS: Final = 200_000
"""Of one simulation, in features and observations together."""
MOST_SUBSTEPS: Final = 10_000
"""Of a step."""
FILE: Final = re.compile(r"[/\\~]|^\.|\.(ya?ml|csv|json|jsonl|npz|npy|zip|gz|txt|toml|pkl|parquet|pth?|py)$", re.I)
"""What a text that names a file looks like; an id of an environment has a slash, too, and is no option."""
ID: Final = re.compile(r"[1-9][0-9]{0,17}", re.ASCII)
GONE: Final = "there is no simulation '{}'; GET /simulations lists them"
LOG: Final = logging.getLogger(__name__)
INJECTION: Final = "agent_injection"
SUBSTEPS: Final = "physics_substeps"
HERE: Final = "POST /simulations"


class Full(ConfigError):
    """There are as many as there may be."""


class Shelf:
    """The simulations in a folder; those of an earlier run are there at once, and built when somebody asks for them.

    Args:
        folder: a folder for each simulation in it.
        trust: callables, "module:function", that may be named besides registered environments.
        guard: which endpoints may be talked to.
        keys: environment variables that clients may name as keys of endpoints.

    Raises ConfigError where another server has the folder.
    """

    def __init__(self, folder: Path, *, trust: Sequence[str] = (), guard: Guard, keys: Sequence[str] = ()) -> None:
        self.folder, self._trust, self._guard, self._keys = folder, tuple(trust), guard, frozenset(keys)
        self._lock = Lock()
        self._building = 0
        self._lines: dict[tuple[str, str | None, float], Connection] = {}
        self._found: dict[str, Session] = {}
        self._damaged: dict[str, str] = {}
        folder.mkdir(parents=True, exist_ok=True)
        self._folder_lock = lock_folder(folder)
        if self._folder_lock is None:
            raise ConfigError(f"{folder}: another server keeps its simulations here; choose another folder")
        names = sorted((path.name for path in folder.iterdir() if ID.fullmatch(path.name)), key=int)
        for name in names:
            if not (folder / name / SETTING).is_file():  # of a server that was killed while it began
                continue
            try:
                self._found[name] = Session(folder / name, _setting(folder / name / SETTING), self)
            except RunFolderError as error:
                LOG.warning("%s", error)
                self._damaged[name] = str(error)
        self._last = max(map(int, names), default=0)

    def __iter__(self) -> Any:
        return iter(list(self._found.items()))

    def __len__(self) -> int:
        return len(self._found)

    def create(self, asked: NewSimulation) -> tuple[str, Session]:
        """A new simulation and its id. Raises Full, ConfigError and what building an environment does."""
        _require_harmless(asked.options)
        with self._lock:
            if len(self._found) + self._building >= MOST:
                raise Full(f"there are {MOST} simulations, which is the most; remove one")
            self._building += 1
            self._last += 1
            name = str(self._last)
        made = None
        try:
            made = self._made(self.folder / name, asked)
        finally:
            with self._lock:
                self._building -= 1
                if made is not None:
                    self._found[name] = made
        return name, made

    def _made(self, folder: Path, asked: NewSimulation) -> Session:
        """Others are found meanwhile."""
        folder.mkdir()
        try:
            with at_most(agents=MOST_AGENTS, numbers=MOST_NUMBERS):
                return Session.create(folder, asked, self)
        except BaseException:
            remove_folder(folder)
            raise

    def find(self, name: str) -> Session:
        """Raises NoSuchSimulation, RunFolderError."""
        if name in self._damaged:
            raise RunFolderError(self._damaged[name])
        if name not in self._found:
            raise NoSuchSimulation(GONE.format(name[:40]))
        return self._found[name]

    def remove(self, name: str) -> None:
        """With its folder; where that is a link, what it leads to stays. Raises NoSuchSimulation."""
        if self._damaged.pop(name, None):
            remove_folder(self.folder / name)
            return
        found = self.find(name)
        with self._lock:
            self._found.pop(name, None)
        found.end(GONE.format(name), remove=True)

    def close(self) -> None:
        """Close all files and connections; the folders stay. Twice is harmless."""
        for _, found in self:
            found.end()
        for line in self._lines.values():
            line.close()
        if self._folder_lock is not None:
            self._folder_lock.release()

    def build(self, given: NewSimulation) -> HeronEnv:
        """Registered environments, and those that were trusted at the start. Raises ConfigError, Untrusted."""
        with trusting(*self._trust), uncollected():  # full collections of what is built hold everybody up
            return registry.spec(given.env, HERE).make(**given.options)

    def external(self, given: Injection, env: HeronEnv, asked: NewSimulation) -> ExternalPolicy:
        """Of an endpoint that may be talked to. Raises ConfigError, which repeats neither address nor key."""
        if given.api_key_env is not None and given.api_key_env not in self._keys:
            raise ConfigError(
                "api_key_env: this server lets no endpoint have that variable; it must be named at the start, with "
                "--key-env"
            )
        try:
            address = self._guard.passed(given.endpoint_url)
        except ConfigError as error:
            raise ConfigError(f"endpoint_url: {error} (heron serve --allow HOST:PORT, --allow-loopback)") from None
        endpoint = Endpoint(
            given.endpoint_url, api_key_env=given.api_key_env, timeout=given.timeout_seconds,
            privacy_tier=given.privacy_tier, allow=address.named if address.private else None,
        )  # fmt: skip
        key = (endpoint.url, endpoint.api_key_env, endpoint.timeout)
        with self._lock:
            line = self._lines.pop(key, None) or Connection(endpoint, partial(client_of, guard=self._guard))
            self._lines[key] = line
            if len(self._lines) > LINES:
                self._lines.pop(next(iter(self._lines))).close()
        return ExternalPolicy(
            endpoint, env=env, fallback=given.fallback, env_id=asked.env, options=asked.options, line=line,
        )  # fmt: skip


def _setting(path: Path) -> NewSimulation:
    """Raises RunFolderError naming the file."""
    try:
        return NewSimulation.model_validate(parsed(read(path)))
    except (OSError, ValueError) as error:
        fault = first_fault(error) if isinstance(error, ValidationError) else str(error)
        raise RunFolderError(f"{path}: damaged, {fault}; restore the file, or remove its folder") from error


def _require_harmless(value: Any, path: str = "options") -> None:
    """Raise ConfigError for options that could name a file, or an endpoint that no guard has seen, or take for ever."""
    match value:
        case str() if FILE.search(value):
            raise ConfigError(f"{path}: reads like a file's name; a client's options may name none")
        case Mapping():
            if INJECTION in value:
                raise ConfigError(f"{path}.{INJECTION}: endpoints are injected with POST .../inject-agent")
            if value.get(SUBSTEPS) is not None:
                require_count(f"{path}.{SUBSTEPS}={value[SUBSTEPS]!r:.40}", value[SUBSTEPS], most=MOST_SUBSTEPS)
            for name, item in value.items():
                _require_harmless(item, f"{path}.{name}")
        case list():
            for place, item in enumerate(value):
                _require_harmless(item, f"{path}[{place}]")
