"""Who is declared to see whom: the observability matrix as users write it, its form checked on the spot."""

from collections.abc import Iterator
from enum import StrEnum
from functools import lru_cache
from pathlib import Path
from typing import Annotated, ClassVar, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from heron_env.core.layout import GLOBAL
from heron_env.errors import DeclarationError, Problem, did_you_mean
from heron_env.files.models import NO_WORD, ROW, Declared, Flag, Many, NonNegative, Text, shown
from heron_env.files.yaml_file import PathParts, YamlFile


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
        given = repr(value) if isinstance(value, str) else shown(value)
        remedy = f"must be one of {', '.join(map(repr, words))}.{did_you_mean(str(value).lower(), words)}"
        raise ValueError(f"{NO_WORD} observability level {given}; {remedy}") from None


GivenLevel = Annotated[ObservabilityLevel, BeforeValidator(_level)]
NoiseLaw = Literal["multiplicative", "additive"]


class VariableVisibilityConfig(Declared):
    """Which variables everybody may see who is not unaware of their owner, and which only insiders.

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


class ObservabilityEntry(Declared):
    """A row of the matrix: at which level, and how clearly, `observer` sees `target`.

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
        """The noise as a number: 0.0 where none was given."""
        return self.noise or 0.0

    @classmethod
    def written_out(cls, given: object) -> object:
        """The keys of a row given as a list. Raises ValueError unless it has 4 elements."""
        if not isinstance(given, list | tuple):
            return given
        if len(given) != len(ROW):
            raise ValueError(f"a row has 4 elements, [{', '.join(ROW)}], got {len(given)}: {shown(list(given))}")
        return dict(zip(ROW, given, strict=True))

    @model_validator(mode="after")
    def _sensible(self) -> Self:
        if self.observer == GLOBAL:
            message = f"{GLOBAL!r} stands for the environment's variables and can be a target only; name an agent"
            raise DeclarationError([Problem(("observer",), message)])
        clear = self.level is ObservabilityLevel.INSIDER and not self.factor
        if self.observer == self.target and not clear:
            given = f"[{self.observer}, {self.target}, {self.level.value}, {self.noise}]"
            message = f"an agent always sees all of itself, exactly, but the row says {given}; remove it"
            raise DeclarationError([Problem((), message)])
        return self


class DefaultObservability(Declared):
    """What holds for every pair without a row; left out altogether: unaware."""

    level: GivenLevel = ObservabilityLevel.UNAWARE
    noise: NonNegative = 0.0
    law: NoiseLaw = "multiplicative"

    @property
    def factor(self) -> float:
        """The noise, as a row has it."""
        return self.noise


RowOrDefault = ObservabilityEntry | DefaultObservability
"""What holds for one pair."""


class ObservabilityConfig(Declared):
    """Who sees whom: rows for pairs of agents (or an agent and "global"), a default for all others.

    With `enabled=False` everybody sees everything that is observed, exactly (full observability); what is written here
    is checked all the same. For the tags of the features to decide, give an environment no configuration. Names are
    checked where the configuration meets a world.

    `common_noise` comes on top of the noise of rows and default, and lies on what tags show too: on all that anyone
    sees of others, so that one number makes a whole world less clear.
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
        """What decides who sees what (V1): itself, or full observability if it is not enabled; common noise on top."""
        return self if self.enabled and not self.by_tags else full_observability(self.common_noise)


class ByTags(ObservabilityConfig):
    """No matrix: the tags of an environment's features decide, and `common_noise` lies on what they show of others."""

    by_tags: ClassVar[bool] = True


@lru_cache(maxsize=16)
def full_observability(common_noise: float = 0.0) -> ObservabilityConfig:
    """Everybody sees all of everybody; one object for one noise, since plans are kept by identity."""
    insider = DefaultObservability(level=ObservabilityLevel.INSIDER)
    return ObservabilityConfig(default=insider, common_noise=common_noise)


def _repeated(key: str, names: tuple[str, ...]) -> Iterator[Problem]:
    first: dict[str, int] = {}
    for index, name in enumerate(names):
        earlier = first.setdefault(name, index)
        if earlier != index:
            yield Problem((key, index), f"Duplicate variable {name!r}, see {key}[{earlier}]; keep one")


def load_observability(path: str | Path) -> ObservabilityConfig:
    """Read who sees what from the `observability:` section of a YAML file, or from a file that holds only its content.

    Form is checked here, names where the configuration meets a world. Raises ConfigError with file and line.
    """
    return observability_of(YamlFile.read(path))


def observability_of(file: YamlFile) -> ObservabilityConfig:
    """The same of a file that is read already."""
    return file.build(ObservabilityConfig, section_of(file))


def section_of(file: YamlFile) -> PathParts:
    """Where in the file it is: in a section of its own, or all of it."""
    return ("observability",) if "observability" in file.data else ()
