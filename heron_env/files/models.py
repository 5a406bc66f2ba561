"""What users write down as configuration: immutable models whose every mistake is a ConfigError with its path."""

import math
import numbers
import reprlib
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Final, Self

import numpy as np
from pydantic import BaseModel, BeforeValidator, ConfigDict, ModelWrapValidatorHandler, ValidationError, model_validator

from heron_env.errors import DeclarationError, Problem, did_you_mean, values_go_by_name

_short = reprlib.Repr()
_short.maxstring = _short.maxother = _short.maxlong = 80


def formatted(value: object) -> str:
    """The value and its type for a message, shortened: `'0.1' (str)`."""
    return "nothing (None)" if value is None else f"{_short.repr(value)} ({type(value).__name__})"


NO_TEXT: Final = "must be text"
"""How the message begins where another type than text was given: a reader of YAML can add why."""
NO_NUMBER: Final = "must be a number"
NO_WORD: Final = "Invalid"
"""The same where another word than one of a few was given."""
ROW: Final = ("observer", "target", "level", "noise")
"""Keys of the only model with a short form, a list: the rows of an observability matrix."""


def text(value: object) -> str:
    """The value, if it is text with something in it. Raises ValueError."""
    if not isinstance(value, str):
        raise ValueError(f"{NO_TEXT}, got {formatted(value)}")
    if not value.strip() or value != value.strip():
        raise ValueError(f"{NO_TEXT} without blanks around it, got {value!r}")
    return value


def flag(value: object) -> bool:
    """The value, if it is true or false. Raises ValueError."""
    if not isinstance(value, bool | np.bool_):
        raise ValueError(f"must be true or false, got {formatted(value)}")
    return bool(value)


def number(value: object) -> float:
    """The value as a float, if it is a finite number and no bool. Raises ValueError."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise ValueError(f"{NO_NUMBER}, got {formatted(value)}")
    try:
        converted = float(value)
    except OverflowError:
        converted = math.inf
    if not math.isfinite(converted):
        raise ValueError(f"must be finite, got {_short.repr(value)}")
    return converted


def non_negative(value: object) -> float:
    """The value as a float, if it is a finite number >= 0. Raises ValueError."""
    converted = number(value)
    if converted < 0:
        raise ValueError(f"must be >= 0, got {value!r}")
    return converted + 0.0  # -0.0 becomes 0.0


def positive(value: object) -> float:
    """The value as a float, if it is a finite number > 0. Raises ValueError."""
    converted = number(value)
    if converted <= 0:
        raise ValueError(f"must be > 0, got {value!r}")
    return converted


def whole_number(value: object) -> int:
    """The value as an int, if it is a whole number and no bool. Raises ValueError."""
    converted = number(value)
    if isinstance(value, numbers.Integral):
        return int(value)
    if not converted.is_integer():
        raise ValueError(f"must be a whole number, got {value!r}")
    return int(converted)


def at_least(least: int) -> BeforeValidator:
    """In `Annotated[int, at_least(1)]`: a whole number, and none below that."""

    def checked(value: object) -> int:
        converted = whole_number(value)
        if converted < least:
            raise ValueError(f"must be >= {least}, got {value!r}")
        return converted

    return BeforeValidator(checked)


def sequence(value: object) -> tuple[object, ...]:
    """The value as a tuple, if it is a list. Raises ValueError."""
    if not isinstance(value, list | tuple):
        raise ValueError(f"must be a list, got {formatted(value)}")
    return tuple(value)


def mapping(value: object) -> dict[str, object]:
    """The value as a dictionary, if it maps names to something. Raises ValueError."""
    if not isinstance(value, Mapping):
        raise ValueError(f"must be a mapping, got {formatted(value)}")
    problems = [
        Problem((as_part(key),), f"{NO_TEXT}: it is a name, got {formatted(key)}")
        for key in value
        if not isinstance(key, str)
    ]
    if problems:
        raise DeclarationError(problems)
    return dict(value)


Text = Annotated[str, BeforeValidator(text)]
Flag = Annotated[bool, BeforeValidator(flag)]
Number = Annotated[float, BeforeValidator(number)]
NonNegative = Annotated[float, BeforeValidator(non_negative)]
Positive = Annotated[float, BeforeValidator(positive)]
Many = BeforeValidator(sequence)
"""In `Annotated[tuple[X, ...], Many]`: a list and nothing else."""
Named = BeforeValidator(mapping)
"""In `Annotated[dict[str, X], Named]`: a mapping with names for keys."""


class ConfigModel(BaseModel):
    """Base of all models that users write: immutable, equal by value, no unknown keys, errors with their paths.

    Whatever is wrong raises DeclarationError (a ConfigError), from the constructor and from model_validate.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    def __init__(self, /, *nameless: Any, **data: Any) -> None:
        if nameless:
            raise values_go_by_name(type(self).__name__, nameless[0], type(self).model_fields)
        try:
            super().__init__(**data)
        except ValidationError as error:
            raise DeclarationError(problems_of(error)) from None

    # Without this mark pydantic would build nested models one by one through this constructor.
    __init__.__pydantic_base_init__ = True  # type: ignore[attr-defined]

    @classmethod
    def model_validate(cls, obj: Any, **options: Any) -> Self:
        """The model of a mapping (or of an instance). Raises DeclarationError."""
        try:
            return super().model_validate(obj, **options)
        except ValidationError as error:
            raise DeclarationError(problems_of(error)) from None

    @classmethod
    def written_out(cls, given: object) -> object:
        """Return the long form; models with a short form override this. Raises ValueError."""
        return given

    @model_validator(mode="wrap")
    @classmethod
    def _with_all_problems(cls, given: object, build: ModelWrapValidatorHandler[Self]) -> Self:
        if isinstance(given, cls):
            return build(given)
        written = cls.written_out(given)
        if not isinstance(written, Mapping):
            raise ValueError(f"must be a mapping with the keys {', '.join(cls.model_fields)}, got {formatted(written)}")
        known = cls.model_fields
        problems = [Problem((as_part(key),), _unknown_key(key, known)) for key in written if key not in known]
        try:
            built = build({key: value for key, value in written.items() if key in known})
        except ValidationError as error:
            problems += problems_of(error)
        if problems:
            raise DeclarationError(problems)
        return built


def as_part(key: object) -> str:
    """The key as a part of a path; one that is no text as Python writes it."""
    return key if isinstance(key, str) else _short.repr(key)


def _unknown_key(key: object, known: Iterable[str]) -> str:
    if not isinstance(key, str):
        return f"{NO_TEXT}: it is a key, got {formatted(key)}"
    return f"unknown key.{did_you_mean(key, known) or ' Known keys: ' + ', '.join(known)}"


def problems_of(error: ValidationError) -> list[Problem]:
    """Every mistake that pydantic found, in this library's words; those of nested models with their full paths."""
    found = []
    for detail in error.errors(include_url=False):
        cause, path = detail.get("ctx", {}).get("error"), detail["loc"]
        if isinstance(cause, DeclarationError):
            found += [problem._replace(path=(*path, *problem.path)) for problem in cause.problems]
        else:
            found.append(Problem(path, str(cause) if cause else _in_our_words(detail["type"], detail)))
    return found


def _in_our_words(kind: str, detail: Mapping[str, Any]) -> str:
    match kind:
        case "missing":
            return "must be given"
        case "string_type" | "list_type":
            return f"{NO_TEXT if kind == 'string_type' else 'must be a list'}, got {formatted(detail['input'])}"
        case "literal_error":
            value, expected = detail["input"], detail["ctx"]["expected"]
            near = did_you_mean(str(value).lower(), expected.replace(" or ", ", ").replace("'", "").split(", "))
            return f"must be {expected}, got {formatted(value)}.{near}"
        case _:
            return f"{detail['msg']}, got {formatted(detail['input'])}"
