"""Policies by their words, `kind:value`: one table says what each kind is, what else means it, and what builds it.

A name as the table's shortest form says it is enough where nothing else reads like it: a folder is a run, `http://...`
an endpoint, `x.yaml` an agents file, `x.jsonl` a recording, `module:name` Python, and what is left a rule.

Who writes a name in Python, or of a model, in a command or a call vouches for it; where a file names it, the rule of
`heron_env.trust` holds. Naming an address allows exactly its host and port, on a command line as in a file: public ones
over https, those of this machine (localhost, 127.0.0.1) over http, too. What an endpoint answers is asked anew in every
run, so it is live; a fixture answers the same for ever, without a socket. NAME=URL names an endpoint in tables, and
NAME=RUN,RUN,... pools training seeds.
"""

from __future__ import annotations

import hashlib
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from glob import glob
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple, Protocol

from heron_env.core.policy import Policies
from heron_env.errors import ConfigError, did_you_mean
from heron_env.files.reading import is_folder, read
from heron_env.lab import benchmark
from heron_env.registry import imported, imported_module, is_here, names_environment
from heron_env.trust import MODEL_FILES, named, require_trust, speak_for, trusting

if TYPE_CHECKING:
    from heron_env.envs.base import HeronEnv
    from heron_env.injection.endpoint import Connection, Endpoint
    from heron_env.lab.runs import RunFolder

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
HOLD: Final = "+hold"
"""What may stand at the end of a name, for what every policy does by itself."""
TRAINED: Final = "trained"
"""The name of run folders that are pooled."""


class PolicySpec(Protocol):
    """Recipe that builds policies for an environment; picklable."""

    def build(self, env: HeronEnv, seed: int) -> Policies:
        """Build policies by agent, group or "*", as `run_synchronous` takes them; `seed` is the case's."""
        ...


@dataclass(frozen=True)
class Baseline:
    """A baseline of the environment, by name; with other constants: `MPC(follow=0.15)`."""

    name: str

    def build(self, env: HeronEnv, seed: int) -> Policies:
        """Build the baseline. Raises ConfigError with the nearest name."""
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
    """Policy of a run folder or checkpoint; once `opened`, it carries its weights."""

    folder: str
    kept: RunFolder | None = field(default=None, repr=False, compare=False)

    @property
    def run(self) -> RunFolder:
        """Return the run, opened before or now. Raises RunFolderError, Untrusted."""
        if self.kept is not None:
            return self.kept
        from heron_env.lab.runs import open_run

        run = open_run(self.folder)
        if is_here(run.config.env_id):
            _ = run.env_id  # whose environment nobody trusts is not played anywhere
        return run

    def build(self, env: HeronEnv, seed: int) -> Policies:
        """Build the policies. Raises RunFolderError, Untrusted."""
        run = self.run
        corrects = run.config.base is not None  # a rule with the constants of the run's own environment
        return dict(run.policies(env=None if corrects else env))

    def identity(self) -> str:
        """Return its folder, and a digest of configuration and weights. Raises RunFolderError."""
        return f"run {self.folder} {self.run.digest()}"


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
            from heron_env.lab.model_files import policies_in

            return policies_in(self.name, env)
        loaded = imported(self.name, f"policy {self.name!r}")
        loaded = loaded() if isinstance(loaded, type) else loaded
        loaded = loaded.build(env, seed) if hasattr(loaded, "build") else loaded
        return loaded if isinstance(loaded, Mapping) else {"*": loaded}

    def identity(self) -> str:
        """Its name, and the content of its file. Raises as `build`."""
        require_trust(self.name)
        file: str | None = self.name
        if not self.name.endswith(MODEL_FILES):
            file = getattr(imported_module(self.name.rpartition(":")[0], f"policy {self.name!r}"), "__file__", None)
        return f"python {self.name} {digest_of([Path(file)] if file else [])}"


@dataclass(frozen=True)
class InMemory:
    """Policies that this program holds, such as those of a training, shared by all episodes."""

    policies: Policies

    def build(self, env: HeronEnv, seed: int) -> Policies:
        """Themselves."""
        return self.policies


@dataclass(frozen=True)
class About:
    """The episode that an external policy is asked for.

    Attributes:
        env_id, options: as the environment was made with; None: what it says of itself.
        label: policy, case and condition; requests of others have other ids. Never a seed.
        episode: the same without the policy, for names of files.
        record: the fixture that questions and answers go into; None: as the policy says itself.
        lines: makes the way to an endpoint; None: each policy has its own.
    """

    env_id: str | None = None
    options: Mapping[str, Any] | None = None
    label: str = ""
    episode: str = ""
    record: Path | None = None
    lines: Callable[[Endpoint], Connection] | None = None

    @property
    def run(self) -> dict[str, Any]:
        """What ExternalPolicy wants of it."""
        return {"env_id": self.env_id, "options": self.options, "label": self.label}

    def named(self, path: str) -> Path:
        """The fixture of this episode, where several keep theirs side by side."""
        end = re.sub(r"[^\w.=-]+", "-", self.episode)
        return Path(path).with_stem(f"{Path(path).stem}-{end}") if end else Path(path)


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


class PolicyKind(NamedTuple):
    """What builds a policy of its value, "module:name", and which words mean it without `kind:`."""

    entry_point: str
    means: Callable[[str], object]

    def spec(self, value: str) -> PolicySpec:
        """Raises ConfigError."""
        module, _, name = self.entry_point.partition(":")
        made: PolicySpec = getattr(import_module(module), name)(value)
        return made


def names_address(text: str) -> bool:
    """Is it an address, or NAME=URL?"""
    return text.startswith(SCHEMES) or text.partition("=")[2].startswith(SCHEMES)


_HERE, _OUTSIDE = __name__, "heron_env.lab.external"
KINDS: Final[Mapping[str, PolicyKind]] = {
    "shipped": PolicyKind(f"{_HERE}:shipped_run", lambda text: False),
    "run": PolicyKind(f"{_HERE}:TrainedRun", lambda text: text.endswith(ENDINGS) or is_folder(text)),
    "http": PolicyKind(f"{_OUTSIDE}:endpoint", names_address),
    "agents": PolicyKind(f"{_OUTSIDE}:AgentsFile", lambda text: Path(text).suffix in BLOCKS),
    "recorded": PolicyKind(f"{_OUTSIDE}:FixturePolicy", lambda text: Path(text).suffix in FIXTURES),
    "sb3": PolicyKind(f"{_HERE}:PythonPolicy", lambda text: text.endswith(".zip")),
    "onnx": PolicyKind(f"{_HERE}:PythonPolicy", lambda text: text.endswith(".onnx")),
    "file": PolicyKind(f"{_HERE}:PythonPolicy", lambda text: ".py:" in text and PYTHON.fullmatch(text)),
    "py": PolicyKind(f"{_HERE}:PythonPolicy", PYTHON.fullmatch),
    "rule": PolicyKind(f"{_HERE}:Baseline", lambda text: True),
}
"""In the order in which words without a kind are read."""


def shipped_run(id: str) -> TrainedRun:
    """A shipped policy by what stands behind `shipped:`."""
    return TrainedRun(f"{SHIPPED}{id}")


def kind_of(text: str) -> tuple[str, str]:
    """The kind and the value of `kind:value`, or the first kind that the words mean, which are its value then."""
    text = text.removesuffix(HOLD)
    kind, colon, value = text.partition(":")
    if colon and kind in KINDS and not text.startswith(SCHEMES):
        return kind, value
    return next((kind, text) for kind, of in KINDS.items() if of.means(text))


def policy_spec(policy: str | Endpoint) -> PolicySpec:
    """What the words mean; an Endpoint is one that plays all. Raises ConfigError."""
    if not isinstance(policy, str):
        from heron_env.lab.external import EndpointPolicy

        return EndpointPolicy(policy)
    kind, value = kind_of(policy)
    return KINDS[kind].spec(value)


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
        kind, value = kind_of(text)
        name, url = split_name(value) if kind == "http" else (text.removeprefix("rule:"), text)
        own = kind == "http" and name != ""
        if name in chosen or (own and name in names):
            raise ConfigError(f"two policies are named {name!r}; give each endpoint a name of its own")
        chosen |= {name} if own else set()
        name = name or _host(url)
        names[f"{name} {digest(url.encode())[:6]}" if names.get(name, url) != url else name] = url
    return names


def _host(url: str) -> str:
    from heron_env.injection.endpoint import Endpoint

    return Endpoint(url).host


@dataclass(frozen=True)
class Words:
    """What the words of a command name, each run opened once.

    Attributes:
        environments: ids, and "module:function" where it comes first.
        policies: by the name that tables show; run folders of several training seeds are one.
        names: of all policies one by one.
        runs: that are among the policies.
    """

    environments: Sequence[str]
    policies: Mapping[str, PolicySpec | list[PolicySpec]]
    names: Sequence[str]
    runs: Sequence[RunFolder]

    @classmethod
    def of(cls, words: Sequence[str], *, environment: str = "", pool: bool = False) -> Words:
        """Of words, the `environment` apart where one is. `pool`: run folders are one policy.

        Raises ConfigError, RunFolderError for a folder of something else.
        """
        candidates = [environment] if environment else [word for word in words if _reads_like_environment(word)]
        environments = [word for number, word in enumerate(candidates) if not (number and kind_of(word)[0] == "py")]
        names = [word for word in words if word not in environments]
        with trusting(*(name for id in environments for name in named(id))):
            policies = named_policies(names, pool)
        specs = [spec for of in policies.values() for spec in (of if isinstance(of, list) else [of])]
        runs = [spec.run for spec in specs if isinstance(spec, TrainedRun)]
        return cls(environments, policies, [*display_names(names)], runs)

    def environment_or(self, default: str | None) -> tuple[str, dict[str, Any]]:
        """The environment that is named, that of the runs, or this one; with the options of the first run.

        Raises ConfigError.
        """
        if len(self.environments) > 1:
            raise ConfigError(f"{list(self.environments)}: one environment at a time")
        of_runs = self.runs[0].env_id if self.runs and not self.environments else default
        env_id = next(iter(self.environments), of_runs)
        if env_id is None:
            rules = [name for name in self.names if kind_of(name)[0] == "rule"]
            missing = f"{rules}: no such run folder; " if rules else ""
            raise ConfigError(f"{missing}name an environment (`heron envs` lists them), a run folder, or a --preset")
        return env_id, self.run_options()

    def run_options(self) -> dict[str, Any]:
        """Of the first run; what they name must be trusted from now on, to the end of the command."""
        if self.runs:
            speak_for(str(self.runs[0].file))
        return dict(self.runs[0].config.env_options) if self.runs else {}


def _reads_like_environment(word: str) -> bool:
    kind = kind_of(word)
    return names_environment(word) and "=" not in word and kind in (("rule", word), ("py", word))


def _members(name: str) -> list[str]:
    """Of `NAME=RUN,RUN*,...` the run folders, one or more; of anything else nothing.

    Raises ConfigError where a part names no folder.
    """
    label, equals, parts = name.partition("=")
    if not (equals and NAME.fullmatch(label)) or kind_of(name)[0] in ("run", "http"):
        return []
    matches = {part: [part] if names_run(part) else sorted(filter(is_folder, glob(part))) for part in parts.split(",")}
    for part, folders in matches.items():
        if not folders:
            raise ConfigError(
                f"{label}={parts}: {part!r} is no run folder; write NAME=RUN,RUN,... or NAME=runs/x-seed*"
            )
    return [folder for folders in matches.values() for folder in folders]


def names_run(text: str) -> bool:
    """Is it a folder that is there, or does it read like a checkpoint, shipped or not?"""
    return kind_of(text)[0] in ("run", "shipped")


def named_policies(names: Sequence[str], pool: bool = False) -> dict[str, PolicySpec | list[PolicySpec]]:
    """Each under its own name, an endpoint under its host; the run folders as one policy where they are pooled.

    Raises ConfigError, RunFolderError.
    """
    folders = [name for name in names if names_run(name)]
    runs = {name: of for name in names if (of := _members(name))}
    groups = [(name.partition("=")[0], of if len(of) > 1 else of[0]) for name, of in runs.items()]
    others = display_names(name for name in names if name not in runs and not (pool and name in folders))
    named: dict[str, str | list[str]] = dict(groups)
    if len(named) < len(groups) or named.keys() & others.keys():
        raise ConfigError(f"{[name for name, _ in groups]} beside {list(others)}: give each policy a name of its own")
    if pool and len(folders) < 2:
        raise ConfigError(f"--pool: two run folders at least, of one recipe and several seeds; given are {folders}")
    named = {**({TRAINED: folders} if pool else {}), **named, **others}
    return {name: [*map(_spec, of)] if isinstance(of, list) else _spec(of) for name, of in named.items()}


def _spec(text: str) -> PolicySpec:
    return opened(policy_spec(text))


def opened(policy: PolicySpec) -> PolicySpec:
    """The same, with the weights of every run in it, which is read once. Raises RunFolderError, Untrusted."""
    if isinstance(policy, TrainedRun):
        return replace(policy, kept=policy.run)
    if not is_dataclass(policy) or isinstance(policy, External):
        return policy
    parts = {part.name: getattr(policy, part.name) for part in fields(policy) if part.init}
    within = {name: opened(part) for name, part in parts.items() if is_dataclass(part) and not isinstance(part, type)}
    changed = {name: part for name, part in within.items() if part is not parts[name]}
    return replace(policy, **changed) if changed else policy


def identity(policy: PolicySpec) -> str:
    """What distinguishes a policy from others: a run folder's path and digest, the name of a baseline, a repr."""
    match policy:
        case Baseline(name):
            return f"baseline {name}"
        case TrainedRun() | External() | PythonPolicy():
            return policy.identity()
    return " ".join([repr(policy), *map(identity, _runs_within(policy))])


def _runs_within(policy: object) -> Iterator[TrainedRun]:
    """The run folders of policies around policies, such as a Smoothing: trained anew they are other policies."""
    if isinstance(policy, TrainedRun):
        yield policy
    elif is_dataclass(policy) and not isinstance(policy, type):
        for part in fields(policy):
            yield from _runs_within(getattr(policy, part.name))


def digest_of(paths: Iterable[Path]) -> str:
    """Of the contents of files. Raises ConfigError."""
    try:
        return digest(b"".join(hashlib.blake2b(read(path)).digest() for path in paths))
    except (OSError, ValueError) as error:
        raise ConfigError(f"no such file, or it can't be read ({error}); correct the path") from error


def digest(data: bytes) -> str:
    """128 bits, in hexadecimal."""
    return hashlib.blake2b(data, digest_size=16).hexdigest()
