"""The state variables of a world that is declared, not programmed: type, bounds, default, visibility."""

import keyword
import math
from collections.abc import Iterator
from typing import Annotated, Any, Final, Literal, Self

from pydantic import BaseModel, model_validator

from heron_env.core.feature import FeatureProvider
from heron_env.errors import DeclarationError, Problem, did_you_mean
from heron_env.files.models import Declared, Flag, Many, Named, Number, Text, flag, number, shown, text, whole

AGENT_FEATURE: Final = "Variables"
"""The feature that the variables of agents become: `Bank.Variables.reserves`."""
GLOBAL_FEATURE: Final = "Globals"
"""The feature that the global variables become: `global.Globals.interest_rate`."""

Value = float | int | bool | str


class VariableDefinition(Declared):
    """One variable: what it may hold, what it starts with, and who may see it.

    `min` and `max` (both included) are for numbers and may be left out; `categories` lists the words that a
    categorical variable may hold. `visibility` None says nothing: everybody who is not unaware of the owner sees it.
    `foreknown`: may it tell of what is still to come, as a published rate does (T17)?
    """

    type: Literal["float", "int", "bool", "categorical"]
    default: Any
    min: Number | None = None
    max: Number | None = None
    visibility: Literal["external", "internal"] | None = None
    categories: Annotated[tuple[Text, ...], Many] = ()
    unit: Text = "1"
    foreknown: Flag = False

    @property
    def bounds(self) -> tuple[float, float]:
        """Lowest and highest value; infinite where nothing is said."""
        return (-math.inf if self.min is None else self.min, math.inf if self.max is None else self.max)

    @property
    def has_range(self) -> bool:
        """Is there nothing endless about it: both bounds given, or no number at all?"""
        return self.type in ("bool", "categorical") or None not in (self.min, self.max)

    def checked(self, value: object) -> Value:
        """`value` as this variable holds it. Raises ValueError if it is of another type or out of bounds."""
        match self.type:
            case "bool":
                return flag(value)
            case "categorical":
                word = text(value)
                if word not in self.categories:
                    listed = ", ".join(map(repr, self.categories))
                    raise ValueError(f"must be one of {listed}, got {word!r}.{did_you_mean(word, self.categories)}")
                return word
        converted = whole(value) if self.type == "int" else number(value)
        low, high = self.bounds
        if not low <= converted <= high:
            raise ValueError(f"must lie in [{low:g}, {high:g}], got {value!r}")
        return converted

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        problems = [*self._wrong_bounds(), *self._wrong_categories()]
        if not problems:
            try:
                self.checked(self.default)
            except ValueError as error:
                problems.append(Problem(("default",), str(error)))
        if problems:
            raise DeclarationError(problems)
        return self

    def _wrong_bounds(self) -> Iterator[Problem]:
        for key in ("min", "max"):
            bound = getattr(self, key)
            if bound is None:
                continue
            if self.type in ("bool", "categorical"):
                yield Problem((key,), f"is for numbers, this variable is {self.type}; leave it out")
            elif self.type == "int" and not bound.is_integer():
                yield Problem((key,), f"must be a whole number as the variable is, got {bound!r}")
        low, high = self.bounds
        if not low < high:
            yield Problem(("max",), f"must be above min {low:g}, got {high:g}")

    def _wrong_categories(self) -> Iterator[Problem]:
        if self.type != "categorical":
            if self.categories:
                yield Problem(
                    ("categories",), f"are for categorical variables, this one is {self.type}; leave them out"
                )
        elif not self.categories:
            yield Problem(("categories",), "must list at least one word, as in [low, high]")
        for index, word in enumerate(self.categories):
            earlier = self.categories.index(word)
            if earlier != index:
                yield Problem(
                    ("categories", index), f"Duplicate category {word!r}, see categories[{earlier}]; keep one"
                )


class StateVariablesConfig(Declared):
    """What the state consists of: the variables that each agent has, and those of the world."""

    agent_vars: Annotated[dict[str, VariableDefinition], Named]
    global_vars: Annotated[dict[str, VariableDefinition], Named] = {}

    def visibility_of_agents(self) -> dict[str, str | None]:
        """What is declared of each variable of the agents, by qualified name, `Variables.reserves`."""
        return {f"{AGENT_FEATURE}.{name}": variable.visibility for name, variable in self.agent_vars.items()}

    def visibility_of_globals(self) -> dict[str, str | None]:
        """What is declared of each global variable, by qualified name, `Globals.interest_rate`."""
        return {f"{GLOBAL_FEATURE}.{name}": variable.visibility for name, variable in self.global_vars.items()}

    def visibility(self) -> dict[str, str | None]:
        """The same of all variables, the global ones last."""
        return {**self.visibility_of_agents(), **self.visibility_of_globals()}

    def definition(self, qualified: str) -> VariableDefinition:
        """The definition of `Variables.x` or `Globals.x`. Raises KeyError."""
        feature, _, name = qualified.partition(".")
        return (self.agent_vars if feature == AGENT_FEATURE else self.global_vars)[name]

    @model_validator(mode="after")
    def _named_well(self) -> Self:
        problems = []
        for section in ("agent_vars", "global_vars"):
            for name in getattr(self, section):
                fault = _fault_of_name(name)
                if fault:
                    problems.append(Problem((section, name), fault))
        if problems:
            raise DeclarationError(problems)
        return self


def _fault_of_name(name: str) -> str:
    """Why a variable can't be called so: it becomes a field of a feature and of a state model."""
    if not name.isidentifier() or keyword.iskeyword(name) or name.startswith("_"):
        return f"{shown(name)} is no name for a variable: use letters, digits and _, a letter first"
    if hasattr(FeatureProvider, name) or hasattr(BaseModel, name):
        return f"features and state models have a {name!r} of their own; choose another name"
    return ""
