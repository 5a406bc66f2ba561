"""Policies by name: baselines, run folders, names in Python, and other programs (addresses, agents.yaml, fixtures).

`module:policy` and `path.py:policy` name one in Python, `model.zip` is one of Stable-Baselines3, `model.onnx` any. Who
writes that in a command or a call vouches for it; where a file names it, the rule of `heron_env.trust` holds.

Naming an address allows exactly its host and port, on a command line as in a file: public ones over https, those of
this machine (localhost, 127.0.0.1) over http, too. What an endpoint answers is asked anew in every run, so it is live;
a fixture answers the same for ever, without a socket. NAME=URL gives an endpoint a name of its own in tables.
"""

from __future__ import annotations

import hashlib
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, Protocol, Self

from heron_env.core.policy import Policies
from heron_env.errors import ConfigError, FixtureError, did_you_mean
from heron_env.files.reading import is_folder, read
from heron_env.injection.endpoint import Connection, Endpoint
from heron_env.lab import benchmark
from heron_env.lab.model_files import policies_in
from heron_env.registry import imported, imported_module
from heron_env.trust import MODEL_FILES, require_trust

if TYPE_CHECKING:
    from heron_env.envs.base import HeronEnv
    from heron_env.injection.recording import Fixture

SCHEMES: Final = ("http://", "https://")
BLOCKS: Final = (".yaml", ".yml")
FIXTURES: Final = (".jsonl", ".json")
PYTHON: Final = re.compile(r"(?:[^\W\d][\w.]*|.*\.py):[^\W\d]\w*")
NAME: Final = re.compile(r"\w[\w. -]{0,39}")
SHIPPED: Final = "shipped:"
"""How the name of what this package ships begins."""
ENDING: Final = ".safetensors"
"""Of a run in one file."""
ENDINGS: Final = (ENDING, ".npz")
"""With that of versions before 0.3."""
OF_THE_CLIENT: Final = ("timeout", "api_key_env", "breaker", "concurrency")
"""What all questions to one address share."""


@dataclass(frozen=True)
class About:
    """The episode that an external policy is asked for.

    Attributes:
        env_id, options: as the environment was made with; None: what it says of itself.
        label: policy, case and condition; requests of others have other ids. Never a seed.
        episode: the same without the policy, for names of files.
        record: the fixture that questions and answers go into; None: as the policy says itself.
        lines: makes the way to an endpoint.
    """

    env_id: str | None = None
    options: Mapping[str, Any] | None = None
    label: str = ""
    episode: str = ""
    record: Path | None = None
    lines: Callable[[Endpoint], Connection] = Connection

    @property
    def run(self) -> dict[str, Any]:
        """What ExternalPolicy wants of it."""
        return {"env_id": self.env_id, "options": self.options, "label": self.label}

    def named(self, path: str) -> Path:
        """The fixture of this episode, where several keep theirs side by side."""
        end = re.sub(r"[^\w.=-]+", "-", self.episode)
        return Path(path).with_stem(f"{Path(path).stem}-{end}") if end else Path(path)


class EndpointConnections:
    """The ways to endpoints, one for each address: its caps, pace and breaker hold for all who ask there."""

    def __init__(self) -> None:
        self._known: dict[str, Connection] = {}

    def __call__(self, endpoint: Endpoint) -> Connection:
        """The way. Raises ConfigError: another policy asks there on other terms, no such key, a refused address."""
        line = self._known.setdefault(endpoint.url, Connection(endpoint))
        for name in OF_THE_CLIENT:
            ours, theirs = getattr(endpoint, name), getattr(line.endpoint, name)
            if ours != theirs:
                raise ConfigError(
                    f"two policies ask {endpoint.host} with {name}={theirs!r} and {ours!r}: one client asks for both; "
                    "write the same, or compare them in two sweeps"
                )
        _ = line.client  # made here, so that what it lacks is said before anything runs
        return line

    def __enter__(self) -> Self:
        """Itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close all connections."""
        for line in self._known.values():
            line.close()


class External(ABC):
    """A PolicySpec of another program's policy. `live`: is it asked anew in every run?"""

    live: ClassVar[bool] = True

    def build(self, env: HeronEnv, seed: int) -> Policies:
        """As every PolicySpec does it: with breaker and caps of its own."""
        return self.asked(env, seed, About())

    @abstractmethod
    def asked(self, env: HeronEnv, seed: int, about: About) -> Policies:
        """The policies for one episode in `env`. Raises ConfigError, FixtureError."""

    @abstractmethod
    def identity(self) -> str:
        """What distinguishes it from others, without a secret. Raises ConfigError for a file that can't be read."""


@dataclass(frozen=True, repr=False)
class EndpointPolicy(External):
    """All agents are played by one endpoint."""

    endpoint: Endpoint

    def asked(self, env: HeronEnv, seed: int, about: About) -> Policies:
        """One policy for all, which asks them together."""
        from heron_env.injection.policy import ExternalPolicy
        from heron_env.injection.recording import Recording

        policy = ExternalPolicy(self.endpoint, env=env, line=about.lines(self.endpoint), **about.run)
        return {"*": policy if about.record is None else Recording(policy, about.record)}

    def identity(self) -> str:
        """Host and port; path, query and terms by digest."""
        return f"endpoint {self.endpoint.host} {_digest(repr(self.endpoint).encode())}"

    def __repr__(self) -> str:
        """The same."""
        return f"EndpointPolicy({self.identity()!r})"


@dataclass(frozen=True)
class AgentsFile(External):
    """The agents that a block `agent_injection` names are played by its endpoints, others by the strongest baseline.

    Where it says `record: true`, each episode of a sweep has a fixture of its own beside `fixture_path`.
    """

    path: str

    def asked(self, env: HeronEnv, seed: int, about: About) -> Policies:
        """Raises ConfigError with file and line."""
        from heron_env.declared.configuration import BenchmarkConfig
        from heron_env.injection import load_agents, policies

        block = load_agents(self.path)
        kept = about.named(block.benchmark.fixture_path) if block.benchmark.record else None
        if (path := about.record or kept) is not None:
            block = block.model_copy(update={"benchmark": BenchmarkConfig(record=True, fixture_path=str(path))})
        return {**strongest_policies(env, seed), **policies(block, env, lines=about.lines, **about.run)}

    def identity(self) -> str:
        """By content."""
        return f"agents {self.path} {digest_of([Path(self.path)])}"


@dataclass(frozen=True)
class FixturePolicy(External):
    """The agents whose answers a fixture holds answer so again; others are played by the strongest baseline.

    A fixture has one environment, its options and its seeds. What a sweep recorded has a file for each episode, and is
    named by what was its `fixture_path`.
    """

    path: str
    live: ClassVar[bool] = False

    def asked(self, env: HeronEnv, seed: int, about: About) -> Policies:
        """Raises FixtureError, also for a fixture of another environment, other options, or other seeds."""
        result = side_by_side(about.named(self.path)) if about.episode else []
        files = result or side_by_side(Path(self.path))
        if not files:
            raise FixtureError(f"{self.path}: no such fixture; record one with `heron trace`, or correct the path")
        return {**strongest_policies(env, seed), **answers_of(files, env, seed, about)}

    def identity(self) -> str:
        """By content, with all episodes of a sweep."""
        path = Path(self.path)
        files = sorted({*side_by_side(path), *path.parent.glob(f"{path.stem}-case-*{path.suffix}")})
        return f"fixture {path} {digest_of(files)}"


def external_spec(text: str) -> External | None:
    """What the text names, if it reads like an address, a YAML file or a fixture. Raises ConfigError."""
    if names_endpoint(text):
        return EndpointPolicy(Endpoint(split_name(text)[1]))
    suffix = Path(text).suffix
    if suffix in BLOCKS:
        return AgentsFile(text)
    return FixturePolicy(text) if suffix in FIXTURES else None


def names_external(text: str) -> bool:
    """Does it read like one? It need not exist."""
    return names_endpoint(text) or Path(text).suffix in (*BLOCKS, *FIXTURES)


def names_endpoint(text: str) -> bool:
    """Is it an address, or NAME=URL?"""
    return text.startswith(SCHEMES) or text.partition("=")[2].startswith(SCHEMES)


def split_name(text: str) -> tuple[str, str]:
    """The name and the address of NAME=URL; of an address alone no name. Raises ConfigError, which tells no address."""
    if text.startswith(SCHEMES):
        return "", text
    name, _, url = text.partition("=")
    if not NAME.fullmatch(name) or name in (benchmark.NOTHING, benchmark.RANDOM):
        raise ConfigError(
            f"NAME=URL: {name!r:.60} can't be the name of an endpoint; write 1 to 40 letters, digits, '.', '-', '_' or "
            f"blanks, and not {benchmark.NOTHING!r} or {benchmark.RANDOM!r}"
        )
    return name, url


def display_names(texts: Iterable[str]) -> dict[str, str]:
    """A name for each text, in their order: itself, of an address its host and port, since the rest may be secret.

    NAME=URL gives an address its name. Raises ConfigError where two policies have one name.
    """
    names: dict[str, str] = {}
    chosen: set[str] = set()
    for text in texts:
        name, url = split_name(text) if names_endpoint(text) else (text, text)
        if name in chosen or (name in names and url != text):
            raise ConfigError(f"two policies are named {name!r}; give each endpoint a name of its own")
        chosen |= {name} if url != text else set()
        name = name or Endpoint(url).host
        names[f"{name} {_digest(url.encode())[:6]}" if names.get(name, url) != url else name] = url
    return names


def strongest_policies(env: HeronEnv, seed: int) -> Policies:
    """The strongest baseline, for the agents that are not played from outside."""
    return benchmark.baselines(env, seed)[env.benchmark().strongest or benchmark.RANDOM]


def numbered(path: Path, number: int) -> Path:
    """The file of one of several endpoints, counted from 0: `run.jsonl`, `run-2.jsonl` and so on."""
    return path.with_stem(f"{path.stem}-{number + 1}") if number else path


def side_by_side(path: Path) -> list[Path]:
    """The fixtures of one episode that are there, one for each endpoint."""
    result: list[Path] = []
    while (after := numbered(path, len(result))).is_file():
        result.append(after)
    return result


def answers_of(paths: Iterable[Path], env: HeronEnv, seed: int, about: About) -> Policies:
    """By agent, the answers that these fixtures hold. Raises FixtureError."""
    from heron_env.injection.recording import Recorded

    chosen: dict[str, Any] = {}
    for path in paths:
        recorded = Recorded(path)
        _require_of(recorded.fixture, env, seed, about)
        chosen |= {decision.agent: recorded for decision in recorded.fixture.decisions.values()}
    return chosen


def _require_of(fixture: Fixture, env: HeronEnv, seed: int, about: About) -> None:
    """Raise FixtureError unless the fixture is of this environment and seed; the first difference is named."""
    from heron_env.injection.contract import difference
    from heron_env.injection.setting import EnvironmentFacts

    def told(setting: Any) -> dict[str, Any]:
        return {"env_id": setting.env_id, "options": setting.options}

    there = told(fixture.header)
    asked = told(EnvironmentFacts.of(env, env_id=about.env_id, options=about.options))
    if (where := difference(there, asked)) and difference(there, told(EnvironmentFacts.of(env))):
        raise FixtureError(
            f"{fixture.path}: was recorded in another environment ({where}); give that one, or record this"
        )
    seeds = sorted({of for of, _ in fixture.decisions})
    if seed not in seeds:
        raise FixtureError(f"{fixture.path}: has answers for seeds {seeds}, none for {seed}; record it with that seed")


def digest_of(paths: Iterable[Path]) -> str:
    """Of the contents of files. Raises ConfigError."""
    try:
        return _digest(b"".join(hashlib.blake2b(read(path)).digest() for path in paths))
    except (OSError, ValueError) as error:
        raise ConfigError(f"no such file, or it can't be read ({error}); correct the path") from error


def _digest(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=16).hexdigest()


class PolicySpec(Protocol):
    """Picklable; builds the policies for an environment."""

    def build(self, env: HeronEnv, seed: int) -> Policies:
        """Policies by agent, group or "*", as `run_synchronous` takes them; `seed` is the case's."""
        ...


@dataclass(frozen=True)
class Baseline:
    """A baseline of the environment, by name; with other constants: `MPC(follow=0.15)`."""

    name: str

    def build(self, env: HeronEnv, seed: int) -> Policies:
        """Raises ConfigError with the nearest name."""
        result = benchmark.baseline(env, self.name, seed)
        if result is None:
            offered = list(benchmark.baselines(env, seed))
            raise ConfigError(
                f"policy {self.name!r}: neither a run folder nor a baseline; this environment has {offered}."
                f"{did_you_mean(self.name, offered)}"
            )
        return result


@dataclass(frozen=True)
class TrainedRun:
    """What a run folder or a checkpoint holds."""

    folder: str

    def build(self, env: HeronEnv, seed: int) -> Policies:
        """Raises RunFolderError, Untrusted."""
        from heron_env.lab.runs import load_policy

        return load_policy(self.folder)


@dataclass(frozen=True)
class PythonPolicy:
    """What `module:name` or `path.py:name` is: one policy for all agents, policies by agent or group, or a PolicySpec.

    A class is instantiated; what has `build(env, seed)` is a PolicySpec. Or the model in a file, `model.zip` of
    Stable-Baselines3, which may hold code as a module does, or `model.onnx`.
    """

    name: str

    def build(self, env: HeronEnv, seed: int) -> Policies:
        """Raises ConfigError for what can't be imported, Untrusted where only a file names it."""
        require_trust(self.name)
        if self.name.endswith(MODEL_FILES):
            return policies_in(self.name, env)
        found = imported(self.name, f"policy {self.name!r}")
        found = found() if isinstance(found, type) else found
        found = found.build(env, seed) if hasattr(found, "build") else found
        return found if isinstance(found, Mapping) else {"*": found}

    def identity(self) -> str:
        """Its name, and the content of its file. Raises as `build`."""
        require_trust(self.name)
        file: str | None = self.name
        if not self.name.endswith(MODEL_FILES):
            file = getattr(imported_module(self.name.rpartition(":")[0], f"policy {self.name!r}"), "__file__", None)
        return f"python {self.name} {digest_of([Path(file)] if file else [])}"


def names_python(text: str) -> bool:
    """Does it read like `module:policy` or `path.py:policy`, or like a file with a model?"""
    return bool(PYTHON.fullmatch(text)) or text.endswith(MODEL_FILES)


def names_run(text: str) -> bool:
    """Is it a folder that is there, or does it read like a checkpoint, shipped or not?"""
    return text.startswith(SHIPPED) or text.endswith(ENDINGS) or is_folder(text)


def policy_spec(given: str | Endpoint) -> PolicySpec:
    """A run folder where a folder of that name exists; an address, a YAML file, a fixture, a name in Python or a model
    in a file, where it reads like one; else the name of a baseline. Raises ConfigError.
    """
    if isinstance(given, Endpoint):
        return EndpointPolicy(given)
    if names_run(given):
        return TrainedRun(given)
    return external_spec(given) or (PythonPolicy(given) if names_python(given) else Baseline(given))
