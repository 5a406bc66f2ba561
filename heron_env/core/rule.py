"""Rules: pure static functions whose parameters say what is read and whose decorator says what is written."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Any, Generic, TypeVar, get_args, get_origin, get_type_hints, overload

import numpy as np
from numpy.typing import NDArray

from heron_env.core.action import Vector
from heron_env.core.feature import FeatureProvider, Quantity, find_feature
from heron_env.errors import HeronError, RuleError, UnknownField, did_you_mean

F = TypeVar("F")
Fn = TypeVar("Fn", bound=Callable[..., Any])

RULE_NAMES = (
    "apply_action", "advance", "compute_local_reward", "is_terminated", "is_truncated", "get_local_info", "action_mask",
)  # fmt: skip
SCALARS = ("dt", "time")
NAMED = {
    "action": ("the action in force", "Vector"),
    "child_rewards": ("what the children earned", "NDArray[np.float64]"),
    "dt": ("a length of time in s", "float"),
    "time": ("nominal time in s", "float"),
}
"""Parameters whose name decides what they are: (what, its annotation)."""
_PARENT = "the parent's feature"
Parent = Annotated[F, _PARENT]
"""`zone: Parent[Zone]`: the feature of the agent's parent."""


class Children(Generic[F]):
    """`flows: Children[Flow]`: columns over the children that have the feature; `flows.power` is float64 `[n]`."""

    def __init__(self, columns: dict[str, NDArray[np.float64]]) -> None:
        self.__dict__.update(columns)

    def __getattr__(self, name: str) -> NDArray[np.float64]:
        """A field over all children, in registration order."""
        fields = list(self.__dict__)
        raise UnknownField(f"Children: no field {name!r}; fields are {fields}.{did_you_mean(name, fields)}")


@dataclass(frozen=True, slots=True)
class RuleSpec:
    """What the decorator declared."""

    writes: tuple[Quantity, ...]
    single: bool


@overload
def rule(function: Fn, /) -> Fn: ...


@overload
def rule(*, writes: Any = ()) -> Callable[[Fn], Fn]: ...


def rule(function: Any = None, /, *, writes: Any = (), **unknown: Any) -> Any:
    """Mark a static method as a rule that writes the given quantities of its own agent (or returns a value).

    Compiled, whole numbers have 64 bits and wrap around beyond, without an error; floats do not.

    Raises RuleError if `writes` holds anything but quantities, as in `Charge.soc`.
    """
    for name, value in unknown.items():
        raise RuleError(f"rule({name}={value!r}): no such argument; write rule(writes={value!r})")
    if function is not None and not callable(function):
        raise RuleError(f"rule({function!r}): it decorates a function; write rule(writes={function!r})")
    several = isinstance(writes, Sequence) and not isinstance(writes, str)
    targets = tuple(writes) if several else (writes,)
    for target in targets:
        if not isinstance(target, Quantity):
            raise RuleError(f"rule(writes={writes!r}): {target!r} is no quantity; write Feature.field")
        if targets.count(target) > 1:
            raise RuleError(f"rule(writes={writes!r}): {target!r} occurs twice; write each quantity once")

    def mark(fn: Fn) -> Fn:
        fn.__heron_rule__ = RuleSpec(targets, not several)  # type: ignore[attr-defined]
        return fn

    return mark(function) if function is not None else mark


def rule_spec(function: Any) -> RuleSpec | None:
    """The declaration of a rule, None for any other function."""
    spec: RuleSpec | None = getattr(function, "__heron_rule__", None)
    return spec


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of a rule: `role` is own, parent, children, global, action, dt, time or child_rewards."""

    name: str
    role: str
    feature: type[FeatureProvider] | None = None


def parameters(
    function: Callable[..., Any],
    own: Sequence[type[FeatureProvider]],
    global_features: Sequence[type[FeatureProvider]],
    where: str,
) -> list[Parameter]:
    """What a rule reads. Raises RuleError naming the parameter that can't be understood."""
    return list(_parameters(function, tuple(own), tuple(global_features), where))


@lru_cache(maxsize=1024)
def _parameters(
    function: Callable[..., Any],
    own: tuple[type[FeatureProvider], ...],
    global_features: tuple[type[FeatureProvider], ...],
    where: str,
) -> tuple[Parameter, ...]:
    """The same for all agents of a class: resolving annotations takes a thousand calls."""
    near = {feature.__name__: feature for feature in (*own, *global_features)}
    scope = {"Parent": Parent, "Children": Children, "Vector": Vector, **near}
    try:
        hints = get_type_hints(function, localns=_Names(scope, function.__globals__), include_extras=True)
    except (NameError, HeronError) as error:
        missing = getattr(error, "name", None) or ""
        remedy = did_you_mean(missing, near) or " Import it, or correct the name."
        raise RuleError(f"{where}: can't resolve an annotation: {error}.{remedy}") from error
    found = []
    for name, declared in inspect.signature(function).parameters.items():
        hint: Any = hints.get(name)
        if declared.kind not in (declared.POSITIONAL_ONLY, declared.POSITIONAL_OR_KEYWORD):
            kind = declared.kind.description
            raise RuleError(f"{where}: parameter {name!r} is {kind}; rules are called by position, remove the asterisk")
        if name in NAMED:
            if not _may_be(name, hint):
                what, written = NAMED[name]
                raise RuleError(
                    f"{where}: parameter {name!r} is {what}, and is annotated as {_shown(hint)}; write "
                    f"{name}: {written}, or rename it if you mean something else"
                )
            found.append(Parameter(name, name))
        elif get_origin(hint) is Children:
            found.append(Parameter(name, "children", get_args(hint)[0]))
        elif get_origin(hint) is Annotated and hint.__metadata__ == (_PARENT,):
            found.append(Parameter(name, "parent", hint.__origin__))
        elif _among(hint, own):
            found.append(Parameter(name, "own", hint))
        elif _among(hint, global_features):
            found.append(Parameter(name, "global", hint))
        else:
            remedy = "name it action or child_rewards" if hint is Vector else "annotate or rename it"
            raise RuleError(
                f"{where}: parameter {name!r} ({_shown(hint)}) is neither an own feature "
                f"{[f.__name__ for f in own]}, Parent[...], Children[...], a global feature "
                f"{[f.__name__ for f in global_features]}, nor action, dt, time or child_rewards; "
                f"{remedy}.{did_you_mean(name, NAMED)}"
            )
    return tuple(found)


def _may_be(name: str, hint: Any) -> bool:
    """Is this an annotation of the parameter `name`, one of NAMED? None: it has none."""
    if hint is None or hint is Any:
        return True
    return hint is float if name in SCALARS else hint is Vector or (get_origin(hint) or hint) is np.ndarray


def _shown(hint: Any) -> str:
    return hint.__name__ if isinstance(hint, type) else inspect.formatannotation(hint)


def _among(hint: Any, features: Sequence[type[FeatureProvider]]) -> bool:
    return isinstance(hint, type) and any(issubclass(feature, hint) for feature in features)


class _Names(dict[str, Any]):
    """Names in annotations; those that the module lacks (classes inside functions) are feature classes."""

    def __init__(self, names: dict[str, Any], module: dict[str, Any]) -> None:
        super().__init__(names)
        self._module = module

    def __missing__(self, name: str) -> Any:
        if name in self._module:
            raise KeyError(name)
        try:
            return find_feature(name)
        except HeronError:
            raise KeyError(name) from None
