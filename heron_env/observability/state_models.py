"""State in object form: models made from declared variables, and the state of a whole simulation."""

import keyword
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Annotated, Any, ClassVar, Final, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, create_model, model_validator

from heron_env.core.feature import FeatureProvider
from heron_env.errors import DeclarationError, Problem, did_you_mean
from heron_env.files.models import (
    ConfigModel,
    Flag,
    Many,
    Named,
    Number,
    Text,
    at_least,
    flag,
    formatted,
    number,
    text,
    whole_number,
)

AGENT_FEATURE: Final = "Variables"
"""The feature that the variables of agents become: `Bank.Variables.reserves`."""
GLOBAL_FEATURE: Final = "Globals"
"""The feature that the global variables become: `global.Globals.interest_rate`."""

Value = float | int | bool | str


class VariableDefinition(ConfigModel):
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
        converted = whole_number(value) if self.type == "int" else number(value)
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


class StateVariablesConfig(ConfigModel):
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
        return f"{formatted(name)} is no name for a variable: use letters, digits and _, a letter first"
    if hasattr(FeatureProvider, name) or hasattr(BaseModel, name):
        return f"features and state models have a {name!r} of their own; choose another name"
    return ""


Definitions = Mapping[str, VariableDefinition | Mapping[str, Any]]
TYPES: dict[str, Any] = {"float": float, "int": int, "bool": bool}


class StateModel(ConfigModel):
    """Base of the models made here: mutable, checked when built; it copies and pickles, whatever it lacks."""

    model_config = ConfigDict(frozen=False, protected_namespaces=())
    __variables__: ClassVar[tuple[tuple[str, VariableDefinition], ...]] = ()

    def __reduce__(self) -> tuple[Any, ...]:
        """The model by its variables: a class made at run time can't be found by its name."""
        kind = type(self)
        return _restored, (kind.__name__, kind.__variables__, dict(self.__dict__))


def create_agent_state_model(agent_vars: Definitions) -> type[StateModel]:
    """Make a model with one field for each variable of an agent, with its type, default and bounds.

    Returns:
        The class of the model. Equal variables give the same class.

    Raises DeclarationError for a wrong definition. The model raises it for a wrong value.

    >>> Member = create_agent_state_model({"reserves": {"type": "float", "min": 0, "default": 5.0}})
    >>> Member(reserves=7)
    AgentState(reserves=7.0)
    """
    return _model("AgentState", tuple(StateVariablesConfig(agent_vars=agent_vars).agent_vars.items()))


def create_global_state_model(global_vars: Definitions) -> type[StateModel]:
    """Make a model with one field for each global variable, like `create_agent_state_model`.

    Returns:
        The class of the model.

    Raises DeclarationError for a wrong definition.

    >>> create_global_state_model({"price": {"type": "float", "default": 2.0}})()
    GlobalState(price=2.0)
    """
    declared = StateVariablesConfig(agent_vars={}, global_vars=global_vars)
    return _model("GlobalState", tuple(declared.global_vars.items()))


@lru_cache(maxsize=256)
def _model(name: str, variables: tuple[tuple[str, VariableDefinition], ...]) -> type[StateModel]:
    fields: dict[str, Any] = {field: _field(variable) for field, variable in variables}
    made = create_model(name, __base__=StateModel, __module__=__name__, **fields)
    made.__variables__ = variables
    return made


def _field(variable: VariableDefinition) -> tuple[Any, Any]:
    kind = Literal[variable.categories] if variable.type == "categorical" else TYPES[variable.type]
    bounds: dict[str, Any] = {"ge": variable.min, "le": variable.max}
    declared = {word: bound for word, bound in bounds.items() if bound is not None}
    default = variable.checked(variable.default)
    return Annotated[kind, BeforeValidator(variable.checked)], Field(default, **declared)


def _restored(name: str, variables: tuple[tuple[str, VariableDefinition], ...], values: dict[str, Any]) -> Any:
    return builder(_model(name, variables), values)(values)


def builder(kind: type[BaseModel], names: Iterable[str]) -> Callable[[dict[str, Any]], Any]:
    """A function that makes instances with exactly the fields `names`, nothing checked.

    Those they lack are absent, not None and not their default.
    """
    new, fill = kind.__new__, object.__setattr__
    declared = kind.__pydantic_fields__
    extras = [name for name in names if name not in declared]
    fields_set = frozenset(names)

    def build(values: dict[str, Any]) -> Any:
        made = new(kind)
        fill(made, "__pydantic_extra__", {name: values.pop(name) for name in extras} if extras else None)
        fill(made, "__dict__", values)
        fill(made, "__pydantic_fields_set__", set(fields_set))
        fill(made, "__pydantic_private__", None)
        return made

    return build


def fields_of(state: BaseModel) -> dict[str, Any]:
    """All fields that a model has, by name; those it lacks are absent."""
    extra = state.__pydantic_extra__
    return {**state.__dict__, **extra} if extra else state.__dict__


def bounds_of(kind: type, name: str) -> tuple[float, float]:
    """Declared bounds of a model's field, as in `Field(ge=0, le=1)`; infinite where nothing is said."""
    low, high = float("-inf"), float("inf")
    declared = kind.__pydantic_fields__.get(name) if issubclass(kind, BaseModel) else None
    for part in declared.metadata if declared is not None else ():
        for word in ("ge", "gt"):
            low = max(low, float(getattr(part, word, low)))
        for word in ("le", "lt"):
            high = min(high, float(getattr(part, word, high)))
    return low, high


class SimulationState(ConfigModel):
    """State of a simulation at one turn: the truth, or what one observer sees of it.

    `agents` maps ids to states: models (as `create_agent_state_model` makes them, or any other) or plain mappings.
    In an observation hidden agents and variables are absent, and `reasoning_chains` is empty.
    """

    model_config = ConfigDict(frozen=False)

    turn: Annotated[int, at_least(0)]
    agents: Annotated[dict[str, Any], Named]
    global_state: Any = Field(default_factory=dict)
    reasoning_chains: list[Any] = Field(default_factory=list)

    @classmethod
    def of(cls, turn: int, agents: dict[str, Any], global_state: Any) -> Self:
        """Build a state without checks."""
        values = {"turn": turn, "agents": agents, "global_state": global_state, "reasoning_chains": []}
        made: Self = builder(cls, values)(values)
        return made
