"""Feature classes made from declared variables: ordinary features, but for their names, which no module knows."""

import copyreg
from functools import lru_cache
from typing import Any

from heron_env.core.feature import FeatureProvider, quantity
from heron_env.observability.state_models import GLOBAL_FEATURE, VariableDefinition

Variables = tuple[tuple[str, VariableDefinition], ...]
PYTHON = {"float": float, "int": int, "bool": bool, "categorical": int}


class MadeFeature(type):
    """Class of the classes made here: pickle asks it how to find them again, since no module holds them."""

    declared_variables: Variables


def _remade(cls: MadeFeature) -> tuple[Any, ...]:
    return feature_class, (cls.__name__, cls.declared_variables)


copyreg.pickle(MadeFeature, _remade)


@lru_cache(maxsize=128)
def feature_class(name: str, variables: Variables) -> type[FeatureProvider]:
    """A feature called `name` with one quantity per variable; equal variables: the same class.

    External variables are public; internal ones their owner's, or, in the global feature, nobody's but an insider's.
    """
    hidden = () if name == GLOBAL_FEATURE else ("owner",)
    body: dict[str, Any] = {
        "__module__": __name__,
        "__qualname__": name,
        "__doc__": f"Declared variables: {', '.join(field for field, _ in variables)}.",
        "__annotations__": {field: PYTHON[variable.type] for field, variable in variables},
        "visibility": ("public",),
    }
    for field, variable in variables:
        tags = hidden if variable.visibility == "internal" else None
        body[field] = quantity(
            default=number_of(variable, variable.checked(variable.default)),
            low=variable.min,
            high=variable.max,
            unit=variable.unit,
            categories=variable.categories,
            visibility=tags,
            foreknown=variable.foreknown,
        )
    made = MadeFeature(name, (FeatureProvider,), body)
    made.declared_variables = variables
    return made  # type: ignore[return-value]


def number_of(variable: VariableDefinition, value: Any) -> Any:
    """A checked value as the features hold it: the index of a category, else the value itself."""
    return variable.categories.index(value) if variable.type == "categorical" else value


def value_of(variable: VariableDefinition, number: Any) -> Any:
    """The other way round: the word of a category."""
    return variable.categories[number] if variable.type == "categorical" else number
