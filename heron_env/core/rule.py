"""Rules: pure static functions whose parameters say what is read and whose decorator says what is written.

RULES is their vocabulary: which names of an agent class are called, what they may take, and what they give back; for
`help(FieldAgent)`, for errors, and for editors (the protocol classes below are the types of these names on agents).
"""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache, reduce
from operator import add
from typing import Annotated, Any, Generic, Protocol, TypeVar, get_args, get_origin, get_type_hints, overload

import numpy as np
from numpy.typing import NDArray

from heron_env.core.action import Vector
from heron_env.core.feature import FeatureProvider, find_feature
from heron_env.core.quantity import Quantity
from heron_env.errors import HeronError, RuleError, UnknownField, did_you_mean

F = TypeVar("F")
Fn = TypeVar("Fn", bound=Callable[..., Any])

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
    of: tuple[type, ...] = ()


@overload
def rule(function: Fn, /) -> Fn: ...


@overload
def rule(*, writes: Any = (), of: Any = ()) -> Callable[[Fn], Fn]: ...


def rule(function: Any = None, /, *, writes: Any = (), of: Any = (), **unknown: Any) -> Any:
    """Mark a static method as a rule, which writes quantities of its own agent or returns a value.

    In compiled rules, integers have 64 bits and overflow without an error.

    Args:
        writes: the quantities that it writes, `Charge.soc` or a tuple; the method returns their new values.
        of: for the hook `sees` alone: the class of agents that see each other, or (observers, targets).

    Returns:
        The method, or a decorator for it.

    Raises RuleError if `writes` contains anything but quantities, or `of` anything but one class or two.

    >>> class Battery(FieldAgent):  # doctest: +SKIP
    ...     features, action = (Charge,), Continuous(-1.0, 1.0)
    ...
    ...     @staticmethod
    ...     @rule(writes=Charge.soc)
    ...     def apply_action(charge: Charge, action) -> float:
    ...         return charge.soc + 0.1 * action[0]
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

    classes = tuple(of) if isinstance(of, list | tuple) else (of,)
    if len(classes) > 2 or not all(isinstance(cls, type) for cls in classes):
        raise RuleError(f"rule(of={of!r}): write the class of agents that see each other, or (observers, targets)")

    def mark(fn: Fn) -> Fn:
        fn.__heron_rule__ = RuleSpec(targets, not several, classes)  # type: ignore[attr-defined]
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


@lru_cache(maxsize=1024)  # the agents of a class share it
def parameters(
    function: Callable[..., Any],
    own: tuple[type[FeatureProvider], ...],
    global_features: tuple[type[FeatureProvider], ...],
    where: str,
) -> tuple[Parameter, ...]:
    """What a rule reads. Raises RuleError naming the parameter that can't be understood."""
    near = {feature.__name__: feature for feature in (*own, *global_features)}
    scope = {"Parent": Parent, "Children": Children, "Vector": Vector, **near}
    try:
        hints = get_type_hints(function, localns=_Names(scope, function.__globals__), include_extras=True)
    except (NameError, HeronError) as error:
        missing = getattr(error, "name", None) or ""
        remedy = did_you_mean(missing, near) or " Import it, or correct the name."
        raise RuleError(f"{where}: can't resolve an annotation: {error}.{remedy}") from error
    result = []
    for name, declared in inspect.signature(function).parameters.items():
        if declared.kind not in (declared.POSITIONAL_ONLY, declared.POSITIONAL_OR_KEYWORD):
            kind = declared.kind.description
            raise RuleError(f"{where}: parameter {name!r} is {kind}; rules are called by position, remove the asterisk")
        result.append(_parameter(name, hints.get(name), own, global_features, where))
    return tuple(result)


def _parameter(
    name: str,
    hint: Any,
    own: Sequence[type[FeatureProvider]],
    global_features: Sequence[type[FeatureProvider]],
    where: str,
) -> Parameter:
    """What a parameter of this name and annotation reads."""
    if name in NAMED:
        if not _may_be(name, hint):
            what, written = NAMED[name]
            raise RuleError(
                f"{where}: parameter {name!r} is {what}, and is annotated as {_shown(hint)}; write "
                f"{name}: {written}, or rename it if you mean something else"
            )
        return Parameter(name, name)
    if get_origin(hint) is Children:
        return Parameter(name, "children", get_args(hint)[0])
    if get_origin(hint) is Annotated and hint.__metadata__ == (_PARENT,):
        return Parameter(name, "parent", hint.__origin__)
    if _among(hint, own):
        return Parameter(name, "own", hint)
    if _among(hint, global_features):
        return Parameter(name, "global", hint)
    remedy = "name it action or child_rewards" if hint is Vector else "annotate or rename it"
    raise RuleError(
        f"{where}: parameter {name!r} ({_shown(hint)}) is neither an own feature "
        f"{[f.__name__ for f in own]}, Parent[...], Children[...], a global feature "
        f"{[f.__name__ for f in global_features]}, nor action, dt, time or child_rewards; "
        f"{remedy}.{did_you_mean(name, NAMED)}"
    )


def _may_be(name: str, hint: Any) -> bool:
    """Is this an annotation of the parameter `name`, one of NAMED? None: it has none."""
    if name in SCALARS or hint in (None, Any):
        return hint in (None, Any, float)
    return hint is Vector or (get_origin(hint) or hint) in (np.ndarray, NDArray)  # numpy 2.5: NDArray is an origin


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


def one_by_one(values: Iterable[float]) -> float:
    """The sum of rewards in this order, rounded after each addition, as compiled code has it: since Python 3.12 `sum`
    carries what was rounded off.
    """
    return reduce(add, values, 0.0)


@dataclass(frozen=True, slots=True)
class Word:
    """One name that is called.

    Attributes:
        method: what the same name takes as a method, after `self`: the imperative style.
        optional: what that may take besides.
        returns: of the rule.
        says: when it is called, and what for.
    """

    method: tuple[str, ...]
    returns: str
    says: str
    optional: tuple[str, ...] = ()

    def shown(self, name: str) -> str:
        """`compute_local_reward(self, local_state[, child_rewards])`."""
        more = "".join(f"[, {word}]" for word in self.optional)
        return f"{name}({', '.join(['self', *self.method])}{more})"


LOCAL = ("local_state",)
RULES: dict[str, Word] = {
    "apply_action": Word(
        (), "what it writes", "when its action takes effect, top-down: write a set-point, rule(writes=Setpoint.power)"
    ),
    "advance": Word(("dt",), "what it writes", "each physics substep of dt s, bottom-up: move the agent's own state"),
    "compute_local_reward": Word(
        LOCAL,
        "a number",
        "once a control step, bottom-up; without one a field agent earns 0, a coordinator its children's sum",
        ("child_rewards",),
    ),
    "is_terminated": Word(LOCAL, "a bool", "after the rewards: has its task ended for good?"),
    "is_truncated": Word(LOCAL, "a bool", "after the rewards: is it cut off, so that learners bootstrap?"),
    "get_local_info": Word(
        LOCAL, "numbers by name, a NamedTuple or dict", "with each observation: what is added to infos[agent]"
    ),
    "action_mask": Word(
        LOCAL, "a 1 or 0 for each choice", "with each observation: which choices of a discrete action are allowed"
    ),
}
"""By name."""
RULE_NAMES = tuple(RULES)

TAKES: tuple[tuple[str, str], ...] = (
    ("charge: Charge", "a feature of the agent itself, or a global one; fields are numbers, vectors float64 arrays"),
    ("zone: Parent[Zone]", "the feature of the agent's parent"),
    ("flows: Children[Flow]", "columns over the children that have it: flows.power is float64 [n]"),
    ("action: Vector", "the action in force: action[0] is a float; of a Discrete agent the choice, int(action[0])"),
    ("dt: float, time: float", "s: length of the substep (of the step, where there is none), and nominal time"),
    (
        "child_rewards: NDArray[np.float64]",
        "[children]: what they earned, an ended child 0; a compute_local_reward that leaves it out leaves them out",
    ),
)


QUANTITIES = (
    "Quantities of features: quantity(default=, low=, high=, unit=), or quantity(categories=('off', 'on')), whose "
    "value is the index; shape=(k,) for a vector, per_step=True for a sum that begins anew in each step, "
    "observed=False for bookkeeping, foreknown=True for what is really known ahead."
)
EXCHANGE = (
    "A coordinator's exchange=StateShare(Charge.soc, Heard.soc, edges) sends single values, StateAverage their mean, "
    "to an Inbox of the receiver; Mail(edges) lets policies that answer write letters. edges: 'ring': each receives "
    "from its two neighbours; 'star': the hub receives from all, and all from the hub (hub=ID); 'full': all pairs; or "
    "a list of pairs (sender id, receiver id)."
)


def rules_in_words() -> str:
    """The vocabulary of rules, as `help` of an agent class shows it."""
    called = [f"    {name} -> {RULES[name].returns}:\n{_wrapped(RULES[name].says)}" for name in RULE_NAMES]
    takes = [f"    {written}:\n{_wrapped(what)}" for written, what in TAKES]
    methods = ", ".join(RULES[name].shown(name) for name in RULE_NAMES)
    imperative = (
        "Or, in the imperative style, methods of the same names (slower: plain Python, one agent at a time), which "
        f"write self.state and read self.action: {methods}."
    )
    return "\n".join(
        [
            "Rules are called by name, as `@staticmethod @rule(writes=Charge.soc) def advance(charge: Charge)`.",
            "",
            *called,
            "",
            "Their parameters say what they read, in any order; names decide action, child_rewards, dt and time:",
            "",
            *takes,
            "",
            wrapped(imperative),
            "",
            wrapped(QUANTITIES),
            "",
            wrapped(EXCHANGE),
        ]
    )


def wrapped(text: str) -> str:
    """As lines of a docstring."""
    return "\n".join(textwrap.wrap(text, 112, break_long_words=False, break_on_hyphens=False))


def add_to_help(cls: type[Any], *texts: str) -> None:
    """Add these texts to what `help(cls)` shows."""
    if cls.__doc__:  # not with python -OO
        cls.__doc__ = "\n\n".join([inspect.cleandoc(cls.__doc__), *texts])


def _wrapped(text: str) -> str:
    return textwrap.indent("\n".join(textwrap.wrap(text, 104)), " " * 8)


class ActionRule(Protocol):
    """`@staticmethod @rule(writes=Setpoint.power) def apply_action(setpoint: Setpoint, action: Vector) -> float`.

    Called when the agent's action takes effect, top-down. As a method: `apply_action(self)`, reading `self.action`.
    """

    def __call__(self, *read: Any, **more: Any) -> Any:
        """What it writes: a number, or a tuple of as many as `writes` names."""


class AdvanceRule(Protocol):
    """`@staticmethod @rule(writes=Charge.soc) def advance(charge: Charge, dt: float) -> float`.

    Called each physics substep of dt s, bottom-up. As a method: `advance(self, dt)`.
    """

    def __call__(self, *read: Any, **more: Any) -> Any:
        """What it writes: a number, or a tuple of as many as `writes` names."""


class RewardRule(Protocol):
    """`@staticmethod @rule def compute_local_reward(ledger: Ledger) -> float`.

    Called once a control step, bottom-up; may take `child_rewards`, float64 `[children]`. As a method:
    `compute_local_reward(self, local_state)`, or `(self, local_state, child_rewards)`.
    """

    def __call__(self, *read: Any, **more: Any) -> float:
        """What the agent has earned in this step."""


class EndRule(Protocol):
    """`@staticmethod @rule def is_terminated(charge: Charge) -> bool`; `is_truncated` is written alike.

    Called after the rewards of each step. As a method: `is_terminated(self, local_state)`.
    """

    def __call__(self, *read: Any, **more: Any) -> bool:
        """Does the agent end here?"""


class InfoRule(Protocol):
    """`@staticmethod @rule def get_local_info(charge: Charge) -> Shown`, Shown being a NamedTuple of numbers.

    It may read only what its agent sees exactly, and the agent's own quantities with `observed=False`. As a method:
    `get_local_info(self, local_state)`.
    """

    def __call__(self, *read: Any, **more: Any) -> Any:
        """Numbers by name: what is added to `infos[agent]`."""


class MaskRule(Protocol):
    """`@staticmethod @rule def action_mask(signal: Signal) -> ...`: which choices of a discrete action are allowed.

    As a method: `action_mask(self, local_state)`.
    """

    def __call__(self, *read: Any, **more: Any) -> Any:
        """For each choice whether it is allowed."""
