"""What a sweep compares: policies, pooled or alone, held-out cases and conditions; sweep.json keeps it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from heron_env import registry
from heron_env._version import __version__
from heron_env.core.policy import Policies
from heron_env.envs.decisions import resolve_policies
from heron_env.errors import ConfigError, RunFolderError
from heron_env.files.reading import first_fault, parsed, read
from heron_env.injection.endpoint import Endpoint
from heron_env.lab.benchmark import Case
from heron_env.lab.episodes import TEAM
from heron_env.lab.policies import (
    About,
    AgentsFile,
    Baseline,
    EndpointConnections,
    External,
    FixturePolicy,
    PolicySpec,
    PythonPolicy,
    TrainedRun,
    policy_spec,
)
from heron_env.lab.remedies import HOLD
from heron_env.lab.runs import open_run
from heron_env.lab.sweep.conditions import SYNC, Condition
from heron_env.trust import on_behalf_of

if TYPE_CHECKING:
    from heron_env.envs.base import HeronEnv

SETTINGS: Final = "sweep.json"
SCHEMA: Final = 1
"""Version of sweep.json and of the lines of results.jsonl."""
Number = Annotated[float, Field(allow_inf_nan=False)]
FromData = dict[Literal["empirical", "recorded", "markov", "gilbert_elliott"], Any]
"""As `Source.to_dict` tells it."""
Amounts = Number | FromData | dict[str, Number | FromData]
"""Of a cause: for all, or by agent, group or level."""


class CaseSettings(BaseModel):
    """A held-out case; `optimum`: the best possible return, where it is known."""

    model_config = ConfigDict(extra="forbid", strict=True)
    seed: Annotated[int, Field(ge=-(2**63), lt=2**63)]
    options: dict[str, Any]
    optimum: Number | None


class ConditionSettings(BaseModel):
    """A condition and its name; what is not named is ideal."""

    model_config = ConfigDict(extra="forbid", strict=True)
    name: str
    obs_delay: Amounts = 0.0
    msg_delay: Amounts = 0.0
    act_delay: Amounts = 0.0
    jitter: Amounts = 0.0
    loss: Amounts = 0.0
    tick_ratio: Amounts = 1.0
    noise: Number = 0.0
    disturbances: list[str] = []
    synchronous: bool = False

    def amounts(self) -> dict[str, Any]:
        """What `Condition` takes."""
        return self.model_dump(exclude={"name"}, exclude_unset=True)


class SweepSettings(BaseModel):
    """The whole file; `heron_env` is the version that wrote it, `policies` says who each one is, by name."""

    model_config = ConfigDict(extra="forbid", strict=True)
    schema_: Annotated[int, Field(alias="schema")]
    heron_env: str
    env: str
    preset: str | None
    dt: Annotated[float, Field(gt=0.0, allow_inf_nan=False)]
    unit: str
    return_of: str = TEAM
    options: dict[str, Any]
    policies: dict[str, str] = Field(min_length=1)
    sync_only: list[str]
    cases: list[CaseSettings] = Field(min_length=1)
    conditions: list[ConditionSettings] = Field(min_length=1)
    pools: dict[str, list[str]] = {}


def read_settings(path: Path) -> SweepSettings:
    """Raises RunFolderError where it is none, damaged, or of another schema version."""
    try:
        values = parsed(read(path))
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise RunFolderError(f"{path}: no folder of a sweep ({why}); make one with `heron sweep`") from error
    if not isinstance(values, dict) or "schema" not in values:
        raise RunFolderError(f"{path}: no folder of a sweep (it has no 'schema'); make one with `heron sweep`")
    schema = values["schema"]
    if schema != SCHEMA or isinstance(schema, bool):
        raise RunFolderError(f"{path} has schema {schema!r:.60}, this heron_env reads {SCHEMA}: run the sweep again")
    try:
        return SweepSettings.model_validate(values)
    except ValidationError as error:
        raise RunFolderError(
            f"{path} is damaged: {first_fault(error)}; run the sweep again in another folder"
        ) from error


class Key(NamedTuple):
    """Which episode of a sweep: name of the policy, number of the case, name of the condition."""

    policy: str
    case: int
    condition: str


@dataclass(frozen=True)
class Item:
    """One episode to run; it travels to another process."""

    env: registry.EnvironmentSpec
    options: Mapping[str, Any]
    name: str
    policy: PolicySpec
    number: int
    """Of the case."""
    case: Case
    condition: Condition
    live: bool = False
    """Is an endpoint asked? Then it runs in the sweep's own process."""

    def policies(self, env: HeronEnv) -> Policies:
        """For `env`."""
        return self.policy.build(env, self.case.seed)

    @property
    def key(self) -> Key:
        """Which one it is."""
        return Key(self.name, self.number, self.condition.name)

    def __str__(self) -> str:
        """For the note on an error."""
        return f"policy {self.name!r} in {self.env.id}, case {self.number} ({self.case}), condition {self.condition}"


Given = PolicySpec | str | Endpoint | Sequence[PolicySpec | str | Endpoint]
"""A policy as `Sweep.of` takes it: a spec, a name, or several of them that are pooled."""
Pools = Mapping[str, tuple[str, ...]]
"""Names of the members by name of the pool."""
RECIPE: Final = (
    "env_id", "env_options", "training_options", "algorithm", "trainer", "training_delays", "schedule", "base",
    "hyperparameters", "critic",
)  # fmt: skip
"""What trainings of one recipe have in common."""


def expanded(policies: Mapping[str, Given]) -> tuple[dict[str, PolicySpec], dict[str, tuple[str, ...]]]:
    """Every policy that runs by name, and the pools; members are called `NAME, run 1` and so on.

    Raises ConfigError for fewer than two members, for run folders of different recipes, and for equal seeds or names.
    """
    specs: dict[str, PolicySpec] = {}
    pools: dict[str, tuple[str, ...]] = {}
    for name, given in policies.items():
        several = isinstance(given, Sequence) and not isinstance(given, str)
        members = _specs(given)
        names = [f"{name}, run {number}" for number in range(1, len(members) + 1)] if several else [name]
        if several:
            _require_one_recipe(name, members)
            pools[name] = tuple(names)
        if taken := [each for each in names if each in specs or (several and each in policies)]:
            raise ConfigError(f"two policies would be called {taken[0]!r}; give one of them another name")
        specs |= zip(names, members, strict=True)
    return specs, pools


def _specs(given: Given) -> list[PolicySpec]:
    if isinstance(given, str | Endpoint):
        return [policy_spec(given.removesuffix(HOLD) if isinstance(given, str) else given)]
    return [spec for each in given for spec in _specs(each)] if isinstance(given, Sequence) else [given]


def _require_one_recipe(name: str, members: Sequence[PolicySpec]) -> None:
    if len(members) < 2:
        raise ConfigError(f"policy {name!r}: a pool of {len(members)}; give two or more training seeds, or one alone")
    folders = [member.folder for member in members if isinstance(member, TrainedRun)]
    if not folders:
        return
    first, *others = [open_run(folder) for folder in folders]
    for other in others:
        for setting in RECIPE:
            ours, theirs = getattr(first.config, setting), getattr(other.config, setting)
            if ours != theirs:
                raise ConfigError(
                    f"policy {name!r}: {first.path} has {setting}={ours!r}, {other.path} has {theirs!r}: only training "
                    "seeds of one recipe are pooled"
                )
    seeds = [run.config.seed for run in (first, *others)]
    if len(set(seeds)) < len(seeds):
        raise ConfigError(f"policy {name!r}: the run folders {folders} have seeds {seeds}: pool each seed once")


@dataclass(frozen=True)
class SweepPlan:
    """What is compared with what."""

    env: registry.EnvironmentSpec
    options: Mapping[str, Any]
    policies: Mapping[str, PolicySpec]
    identities: Mapping[str, str]
    """What distinguishes each policy from others: a run folder's path and digest, the name of a baseline, a repr."""
    conditions: tuple[Condition, ...]
    """The first one is `SYNC`."""
    cases: tuple[Case, ...]
    unit: str
    dt: float
    """Control step, s."""
    preset: str | None = None
    sync_only: tuple[str, ...] = ()
    pools: Pools = field(default_factory=dict)
    """Policies that are pooled, all of them among `policies`."""
    trust: tuple[str, ...] = ()
    """What the run folders may name, besides what is registered."""
    injected: bool = False
    """Does the environment itself let endpoints play some of its agents, whatever the policies are?"""
    return_of: str = TEAM
    """The root of the hierarchy: its return is what policies are compared by."""

    @property
    def shown(self) -> list[str]:
        """Names of the policies as tables have them: a pool takes the place of its first member."""
        pool_of = {member: name for name, members in self.pools.items() for member in members}
        return list(dict.fromkeys(pool_of.get(name, name) for name in self.policies))

    def members(self, name: str) -> tuple[str, ...]:
        """The policies behind a shown name: those of a pool, or itself."""
        return self.pools.get(name, (name,))

    def items(self) -> list[Item]:
        """All episodes, so ordered that the first ones say something about everything: case by case."""
        return [
            Item(
                self.env, self.options, name, policy, number, case, condition,
                self.injected or bool(getattr(policy, "live", False)),
            )
            for number, case in enumerate(self.cases)
            for condition in self.conditions
            for name, policy in self.policies.items()
            if condition == SYNC or name not in self.sync_only
        ]  # fmt: skip

    def settings(self) -> dict[str, Any]:
        """All that decides the results, as sweep.json keeps it."""
        return {
            "schema": SCHEMA,
            "heron_env": __version__,
            "env": self.env.id,
            "preset": self.preset,
            "dt": self.dt,
            "unit": self.unit,
            **({} if self.return_of == TEAM else {"return_of": self.return_of}),
            "options": _plain(self.options),
            "policies": dict(self.identities),
            "sync_only": list(self.sync_only),
            "cases": [{"seed": c.seed, "options": _plain(c.options), "optimum": c.optimum} for c in self.cases],
            "conditions": [{"name": c.name, **c.to_dict()} for c in self.conditions],
            **({"pools": {name: list(members) for name, members in self.pools.items()}} if self.pools else {}),
        }


def require_answers(
    policy: External, made: tuple[HeronEnv, str, Mapping[str, Any]], cases: Sequence[Case], lines: EndpointConnections
) -> None:
    """What can't answer in these cases fails here; no endpoint is asked. Raises ConfigError, FixtureError."""
    env, env_id, options = made
    for number, case in enumerate(cases[:1] if policy.live else cases):
        about = About(env_id, {**options, **case.options}, episode=f"case-{number}-{SYNC.name}", lines=lines)
        resolve_policies(policy.asked(env, case.seed, about), env)


def require_fit(env: HeronEnv, name: str, policy: PolicySpec) -> None:
    """What can't decide in `env` fails here, before any process starts. Raises ConfigError, UnknownAgent."""
    if not callable(getattr(policy, "build", None)):
        raise ConfigError(
            f"policy {name!r}: {policy!r:.200} is no policy; give a run folder, a baseline or a PolicySpec"
        )
    resolve_policies(policy.build(env, 0), env)
    if isinstance(policy, TrainedRun):
        fault = open_run(policy.folder).misfit(env)
        if fault:
            raise ConfigError(f"policy {name!r}: {fault}; give the environment the options that it was trained with")


def identity(policy: PolicySpec) -> str:
    """Of a policy, as `Sweep.identities` has it."""
    if isinstance(policy, TrainedRun):
        return f"run {policy.folder} {open_run(policy.folder).digest()}"
    if isinstance(policy, Baseline):
        return f"baseline {policy.name}"
    if isinstance(policy, External | PythonPolicy):
        return policy.identity()
    return " ".join([repr(policy), *(identity(run) for run in _runs_within(policy))])


def _runs_within(policy: object) -> Iterator[TrainedRun]:
    """The run folders of policies around policies, such as a Smoothing: trained anew they are other policies."""
    if isinstance(policy, TrainedRun):
        yield policy
    elif is_dataclass(policy) and not isinstance(policy, type):
        for part in fields(policy):
            yield from _runs_within(getattr(policy, part.name))


@dataclass(frozen=True)
class DescribedPolicy:
    """A policy that was an object of the program that ran the sweep; only its description is left."""

    text: str

    def build(self, env: HeronEnv, seed: int) -> Policies:
        """Raises ConfigError."""
        raise ConfigError(f"the policy {self.text} lives in the program that made the sweep; build it there")


@dataclass(frozen=True)
class PythonOfFile:
    """A policy in Python, or a model, that a sweep's file names as `text`: built if somebody vouches for it."""

    text: str
    file: str

    def build(self, env: HeronEnv, seed: int) -> Policies:
        """Raises Untrusted; ConfigError where it is not what the sweep ran."""
        policy = PythonPolicy(self.text.partition(" ")[2].rpartition(" ")[0])
        with on_behalf_of(self.file):
            if policy.identity() != self.text:
                raise ConfigError(f"the file of {policy.name!r} has changed since the sweep; run the sweep again")
            return policy.build(env, seed)


def policy_of(text: str, file: str) -> PolicySpec:
    """From what `Sweep.settings` says of it in a file."""
    kind, _, rest = text.partition(" ")
    path = rest.rpartition(" ")[0]
    match kind:
        case "run":
            return TrainedRun(path)
        case "agents":
            return AgentsFile(path)
        case "fixture":
            return FixturePolicy(path)
        case "python":
            return PythonOfFile(text, file)
    return Baseline(rest) if kind == "baseline" else DescribedPolicy(text)


def _plain(value: object) -> object:
    """An option as JSON can hold it; what JSON does not know by its repr."""
    if isinstance(value, Mapping):
        return {str(name): _plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value if isinstance(value, str | int | float | bool | None) else repr(value)
