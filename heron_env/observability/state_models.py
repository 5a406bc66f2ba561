"""State in object form: models made from declared variables, and the state of a whole simulation."""

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, create_model

from heron_env.files.models import Declared, Named, at_least
from heron_env.observability.variables import StateVariablesConfig, VariableDefinition

Definitions = Mapping[str, VariableDefinition | Mapping[str, Any]]
TYPES: dict[str, Any] = {"float": float, "int": int, "bool": bool}


class StateModel(Declared):
    """Base of the models made here: mutable, checked when built; it copies and pickles, whatever it lacks."""

    model_config = ConfigDict(frozen=False, protected_namespaces=())
    __variables__: ClassVar[tuple[tuple[str, VariableDefinition], ...]] = ()

    def __reduce__(self) -> tuple[Any, ...]:
        """The model by its variables: a class made at run time can't be found by its name."""
        kind = type(self)
        return _restored, (kind.__name__, kind.__variables__, dict(self.__dict__))


def create_agent_state_model(agent_vars: Definitions) -> type[StateModel]:
    """A model with one field per variable of an agent: its type, default and bounds. Equal variables: the same class.

    Raises DeclarationError for a definition that is wrong; so do the models for a wrong value.

    >>> Member = create_agent_state_model({"reserves": {"type": "float", "min": 0, "default": 5.0}})
    >>> Member(reserves=7)
    AgentState(reserves=7.0)
    """
    return _model("AgentState", tuple(StateVariablesConfig(agent_vars=agent_vars).agent_vars.items()))


def create_global_state_model(global_vars: Definitions) -> type[StateModel]:
    """The same for the global variables."""
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
    given = {word: bound for word, bound in bounds.items() if bound is not None}
    default = variable.checked(variable.default)
    return Annotated[kind, BeforeValidator(variable.checked)], Field(default, **given)


def _restored(name: str, variables: tuple[tuple[str, VariableDefinition], ...], values: dict[str, Any]) -> Any:
    return builder(_model(name, variables), values)(values)


def builder(kind: type[BaseModel], names: Iterable[str]) -> Callable[[dict[str, Any]], Any]:
    """A function that makes instances with exactly the fields `names`, nothing checked.

    Those they lack are absent, not None and not their default.
    """
    new, fill = kind.__new__, object.__setattr__
    declared = kind.__pydantic_fields__
    extras = [name for name in names if name not in declared]
    given = frozenset(names)

    def build(values: dict[str, Any]) -> Any:
        made = new(kind)
        fill(made, "__pydantic_extra__", {name: values.pop(name) for name in extras} if extras else None)
        fill(made, "__dict__", values)
        fill(made, "__pydantic_fields_set__", set(given))
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


class SimulationState(Declared):
    """The whole of a simulation at one turn: the truth, or what one observer sees of it.

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
        """A state without checks, for those who know what they give."""
        values = {"turn": turn, "agents": agents, "global_state": global_state, "reasoning_chains": []}
        made: Self = builder(cls, values)(values)
        return made
