"""Who is declared to see whom: the observability matrix as users write it.

Its form is checked on the spot, its names where it meets a world: agents and variables must exist there.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from heron_env.core.layout import GLOBAL
from heron_env.errors import ConfigError, DeclarationError, Problem, did_you_mean
from heron_env.files.models import NO_WORD, ROW, ConfigModel, Flag, Many, NonNegative, Text, formatted

if TYPE_CHECKING:
    from heron_env.files.yaml_file import PathParts, YamlFile

MOST_LISTED = 8
"""Known names that an error lists; the rest is counted."""


class ObservabilityLevel(StrEnum):
    """How much of a target an observer sees: nothing, its external variables, or all."""

    UNAWARE = "unaware"
    EXTERNAL = "external"
    INSIDER = "insider"


def _level(value: object) -> ObservabilityLevel:
    try:
        return ObservabilityLevel(value)  # type: ignore[arg-type]  # whatever it is: that is the question
    except ValueError:
        words = [level.value for level in ObservabilityLevel]
        text = repr(value) if isinstance(value, str) else formatted(value)
        remedy = f"must be one of {', '.join(map(repr, words))}.{did_you_mean(str(value).lower(), words)}"
        raise ValueError(f"{NO_WORD} observability level {text}; {remedy}") from None


GivenLevel = Annotated[ObservabilityLevel, BeforeValidator(_level)]
NoiseLaw = Literal["multiplicative", "additive"]


class VariableVisibilityConfig(ConfigModel):
    """External variables (for all who are not unaware of their owner) and internal ones (for insiders).

    Names are fields (`soc`), or `Feature.field` where a field's name occurs twice. What is in neither list keeps the
    visibility of its definition.
    """

    external: Annotated[tuple[Text, ...], Many] = ()
    internal: Annotated[tuple[Text, ...], Many] = ()

    @model_validator(mode="after")
    def _each_name_once(self) -> Self:
        problems = [*_repeated("external", self.external), *_repeated("internal", self.internal)]
        both = [name for name in dict.fromkeys(self.external) if name in set(self.internal)]
        if both:
            words = f"Variables cannot be both external and internal: {', '.join(both)}; keep one of the two"
            problems.append(Problem((), words))
        if problems:
            raise DeclarationError(problems)
        return self


class ObservabilityEntry(ConfigModel):
    """Row of the matrix: level and noise with which `observer` sees `target`.

    `noise` is a factor (0: exact; None counts as 0 and is meant for "unaware"). `law` says what it multiplies: the
    value, or the declared range ("additive"). A list of 4 elements, [observer, target, level, noise], is a row too.
    """

    observer: Text
    target: Text
    level: GivenLevel
    noise: NonNegative | None = None
    law: NoiseLaw = "multiplicative"

    @property
    def factor(self) -> float:
        """Noise as a number: 0.0 where none is declared."""
        return self.noise or 0.0

    @classmethod
    def written_out(cls, value: object) -> object:
        """Return the fields of a row written as a list. Raises ValueError unless it has 4 elements."""
        if not isinstance(value, list | tuple):
            return value
        if len(value) != len(ROW):
            raise ValueError(f"a row has 4 elements, [{', '.join(ROW)}], got {len(value)}: {formatted(list(value))}")
        return dict(zip(ROW, value, strict=True))

    @model_validator(mode="after")
    def _sensible(self) -> Self:
        if self.observer == GLOBAL:
            message = f"{GLOBAL!r} stands for the environment's variables and can be a target only; name an agent"
            raise DeclarationError([Problem(("observer",), message)])
        clear = self.level is ObservabilityLevel.INSIDER and not self.factor
        if self.observer == self.target and not clear:
            text = f"[{self.observer}, {self.target}, {self.level.value}, {self.noise}]"
            message = f"an agent always sees all of itself, exactly, but the row says {text}; remove it"
            raise DeclarationError([Problem((), message)])
        return self


class DefaultObservability(ConfigModel):
    """Level and noise of every pair without a row; by default: unaware."""

    level: GivenLevel = ObservabilityLevel.UNAWARE
    noise: NonNegative = 0.0
    law: NoiseLaw = "multiplicative"

    @property
    def factor(self) -> float:
        """Noise as a number: 0.0 where none is declared."""
        return self.noise


RowOrDefault = ObservabilityEntry | DefaultObservability
"""What holds for one pair."""


class ObservabilityConfig(ConfigModel):
    """Who sees whom: rows for pairs of agents (or an agent and "global"), a default for all others.

    With `enabled=False` everybody sees everything that is observed, exactly (full observability); what is written here
    is checked all the same. For the tags of the features to decide, give an environment no configuration. Names are
    checked where the configuration meets a world.

    `common_noise` is added to the noise of rows, default and tags: one number for all that anyone sees of others.
    """

    by_tags: ClassVar[bool] = False
    enabled: Flag = True
    variable_visibility: VariableVisibilityConfig = Field(default_factory=VariableVisibilityConfig)
    matrix: Annotated[tuple[ObservabilityEntry, ...], Many] = ()
    default: DefaultObservability = Field(default_factory=DefaultObservability)
    common_noise: NonNegative = 0.0

    @model_validator(mode="after")
    def _one_row_per_pair(self) -> Self:
        first: dict[tuple[str, str], int] = {}
        problems = []
        for index, row in enumerate(self.matrix):
            earlier = first.setdefault((row.observer, row.target), index)
            if earlier != index:
                pair = f"observer {row.observer!r} and target {row.target!r}"
                words = f"Duplicate row for {pair}, see matrix[{earlier}]; keep one"
                problems.append(Problem(("matrix", index), words))
        if problems:
            raise DeclarationError(problems)
        return self

    def in_force(self) -> "ObservabilityConfig":
        """Return the rules in force (V1): these, or full observability if not enabled; common noise is added."""
        return self if self.enabled and not self.by_tags else full_observability(self.common_noise)


class ByTags(ObservabilityConfig):
    """No matrix: the tags of an environment's features decide, and `common_noise` lies on what they show of others."""

    by_tags: ClassVar[bool] = True


@lru_cache(maxsize=16)
def full_observability(common_noise: float = 0.0) -> ObservabilityConfig:
    """Everybody sees all of everybody; one object for one noise, since plans are kept by identity."""
    insider = DefaultObservability(level=ObservabilityLevel.INSIDER)
    return ObservabilityConfig(default=insider, common_noise=common_noise)


def load_observability(path: str | Path) -> ObservabilityConfig:
    """Read who sees what from the `observability:` section of a YAML file, or from a file that holds only its content.

    Form is checked here, names where the configuration meets a world. Raises ConfigError with file and line.
    """
    from heron_env.files.yaml_file import YamlFile

    return observability_of(YamlFile.read(path))


def observability_of(file: "YamlFile") -> ObservabilityConfig:
    """The same of a file that is read already."""
    return file.build(ObservabilityConfig, section_of(file))


def section_of(file: "YamlFile") -> "PathParts":
    """Where in the file it is: in a section of its own, or all of it."""
    return ("observability",) if "observability" in file.data else ()


def require_names(
    config: ObservabilityConfig,
    *,
    agents: Sequence[str],
    agent_variables: Mapping[str, str | None],
    global_variables: Mapping[str, str | None],
) -> None:
    """Check every name of `config` against a world.

    Both mappings go from "Feature.field" to the visibility that the variable's own definition declares: "external",
    "internal", or None where it says nothing. Raises DeclarationError with all unknown or ambiguous names.
    """
    problems = [*_unknown_agents(config, agents), *_misnamed_variables(config, {**agent_variables, **global_variables})]
    if GLOBAL in agents:
        message = f"an agent is called {GLOBAL!r}, which stands for the environment's variables; rename it"
        problems.insert(0, Problem((), message))
    if problems:
        raise DeclarationError(problems)


def resolve(name: str, names: Iterable[str]) -> str:
    """The qualified name, "Feature.field", that `name` (a field or a qualified name) stands for among `names`.

    Raises ConfigError for a name that is unknown, or that occurs in several features.

    >>> resolve("soc", ["Charge.soc", "Charge.capacity"])
    'Charge.soc'
    """
    qualified = list(dict.fromkeys(names))
    if name in qualified:
        return name
    matches = [candidate for candidate in qualified if candidate.partition(".")[2] == name]
    if len(matches) > 1:
        raise ConfigError(f"the variable {name!r} occurs more than once; write {' or '.join(map(repr, matches))}")
    if not matches:
        fields = [] if "." in name else [candidate.partition(".")[2] for candidate in qualified]
        raise ConfigError(f"Unknown variable {name!r}.{remedy(name, [*fields, *qualified], qualified)}")
    return matches[0]


def external_among(declared: Mapping[str, bool], listed: VariableVisibilityConfig) -> set[str]:
    """The external variables (V2): listed so, or in neither list and so by their own definition.

    `declared` goes from "Feature.field" to what the definition says. Raises ConfigError as `resolve` does.
    """
    external, internal = ({resolve(name, declared) for name in names} for names in (listed.external, listed.internal))
    return ({name for name, by_itself in declared.items() if by_itself} - internal) | external


def remedy(name: str, candidates: Iterable[str], names: Iterable[str]) -> str:
    """The nearest candidate, else what there is: at most a few of `names`."""
    near = did_you_mean(name, candidates)
    if near:
        return near
    listed = list(dict.fromkeys(names))
    more = f" and {len(listed) - MOST_LISTED} more" if len(listed) > MOST_LISTED else ""
    return f" Known: {', '.join(listed[:MOST_LISTED]) or 'none'}{more}"


def _unknown_agents(config: ObservabilityConfig, agents: Sequence[str]) -> Iterator[Problem]:
    """A problem for every observer and target of the matrix that is not among `agents`."""
    ids, targets = set(agents), [*agents, GLOBAL]
    for index, row in enumerate(config.matrix):
        if row.observer not in ids:
            words = f"Unknown observer {row.observer!r}.{remedy(row.observer, agents, agents)}"
            yield Problem(("matrix", index, "observer"), words)
        if row.target not in ids and row.target != GLOBAL:
            words = f"Unknown target {row.target!r}.{remedy(row.target, targets, targets)}"
            yield Problem(("matrix", index, "target"), words)


def _misnamed_variables(config: ObservabilityConfig, declared: Mapping[str, str | None]) -> Iterator[Problem]:
    """A problem for every listed variable that is unknown, ambiguous, listed twice, or declared to be the contrary."""
    first: dict[str, tuple[str, int]] = {}
    for key in ("external", "internal"):
        for index, name in enumerate(getattr(config.variable_visibility, key)):
            path = ("variable_visibility", key, index)
            try:
                qualified = resolve(name, declared)
            except ConfigError as error:
                yield Problem(path, str(error))
                continue
            earlier, place = first.setdefault(qualified, (key, index))
            if earlier != key:
                yield Problem(path, f"Variables cannot be both external and internal: {qualified}; keep one of the two")
            elif place != index:
                yield Problem(path, f"Duplicate variable {qualified!r}, see {key}[{place}]; keep one")
            contrary = declared[qualified]
            if contrary not in (None, key):
                words = f"{name!r} is listed as {key}, but its own definition says {contrary}; change one of the two"
                yield Problem(path, words)


def _repeated(key: str, names: tuple[str, ...]) -> Iterator[Problem]:
    first: dict[str, int] = {}
    for index, name in enumerate(names):
        earlier = first.setdefault(name, index)
        if earlier != index:
            yield Problem((key, index), f"Duplicate variable {name!r}, see {key}[{earlier}]; keep one")
