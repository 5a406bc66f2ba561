"""Plain-Python execution of rules: each rule of each agent is bound once to windows on the truth, then only called.

A result that is not finite is refused, as it is in compiled code; finite ones agree with it to 1e-9.
"""

from __future__ import annotations

import inspect
import sys
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from heron_env.core.action import Vector
from heron_env.core.feature import FeatureProvider
from heron_env.core.hierarchy import Hierarchy
from heron_env.core.layout import Layout, Row
from heron_env.core.quantity import Quantity, within
from heron_env.core.rule import RULE_NAMES, Children, Parameter, RuleSpec, parameters, rule_spec
from heron_env.errors import RuleError, UnknownField, did_you_mean

Run = Callable[[float, float, NDArray[np.float64] | None], Any]
"""A bound rule: (dt in s, time in s, children's rewards) -> what the rule returned, already stored if it writes."""


WRITING = ("apply_action", "advance")
"""Rules that write; the others return something."""


FAILURES = (ArithmeticError, ValueError, IndexError, AssertionError, NameError)
"""What a rule may end in instead of a result."""


@lru_cache(maxsize=256)
def require_rule_names(kind: type) -> None:
    """Raise RuleError if the agent class has a rule under a name that nothing ever calls, or one that is a method."""
    for name in RULE_NAMES:
        if (spec := rule_spec(getattr(kind, name, None))) is not None:
            _require_static(kind, name)
            if spec.of:
                raise RuleError(
                    f"{kind.__name__}.{name}: rule(of=...) is for an environment's hook sees(world, observer, target) "
                    "alone; leave it out"
                )
    for name in dir(kind):
        if name not in RULE_NAMES and rule_spec(getattr(kind, name, None)) is not None:
            raise RuleError(
                f"{kind.__name__}.{name}: nothing calls a rule of that name; rename it to one of "
                f"{', '.join(RULE_NAMES)}.{did_you_mean(name, RULE_NAMES)}"
            )


def _require_static(kind: type, name: str) -> None:
    """Raise RuleError for a rule written as a method; one that is borrowed, `advance = Zone.advance`, is none."""
    home = next(cls for cls in kind.__mro__ if name in vars(cls))
    function = vars(home)[name]
    if isinstance(function, staticmethod):
        return
    selfish = "self" in inspect.signature(function).parameters
    if selfish or getattr(function, "__qualname__", "") == f"{home.__qualname__}.{name}":
        remedy = " and take `self` away" if selfish else ""
        raise RuleError(f"{kind.__name__}.{name} is a rule and a method; write @staticmethod above @rule{remedy}")


def require_writes(spec: RuleSpec, name: str, where: str) -> None:
    """Raise RuleError unless the rule writes exactly if rules of its name do."""
    if bool(spec.writes) != (name in WRITING):
        remedy = "name what it writes: rule(writes=Feature.field)" if name in WRITING else "remove `writes`"
        fault = "is only there to write, and writes nothing" if name in WRITING else "returns a value, it can't write"
        raise RuleError(f"{where} {fault}; {remedy}")


def without_value(where: str, writes: tuple[Quantity, ...], error: Exception) -> RuleError:
    """The error of a rule that ended in `error` (a division by zero, a root of -1) instead of a result."""
    if "read-only" in str(error):
        return RuleError(f"{where} writes into what it reads; return the value, and name it in rule(writes=...)")
    if isinstance(error, NameError):
        return RuleError(f"{where} returned nothing: {error}; import it, or correct the name")
    meant = f" for {', '.join(map(repr, writes))}" if writes else ""
    return RuleError(f"{where} returned nothing{meant}: {error}; check divisions, roots and indices")


def unstorable(title: str, returned: str, q: Quantity) -> RuleError:
    """The error of a rule whose result for `q` can't be stored."""
    needed = f"{q.size} numbers are" if q.shape else "a number is"
    return RuleError(f"{title} returned {returned} for {q!r}: {needed} needed; check divisions, roots and returns")


def ended_in(where: str, function: Any, error: Exception) -> RuleError:
    """The error of a world rule that ended in `error`, with the line of its module that did it."""
    own = function.__code__.co_filename
    lines = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == own]
    place = f" at {own}:{lines[-1].lineno}: `{lines[-1].line}`" if lines else ""
    remedy = "import it, or correct the name" if isinstance(error, NameError) else "check divisions, roots and indices"
    return RuleError(f"{where} ended in {error!r}{place}; {remedy}")


class _ScatteredChildren(Children[Any]):
    """Columns of children that are not evenly spaced in the array: gathered at each access."""

    def __init__(self, array: NDArray[np.float64], columns: dict[str, NDArray[np.int64]]) -> None:
        self.__dict__["_source"] = (array, columns)

    def __getattr__(self, name: str) -> NDArray[np.float64]:
        array, columns = self.__dict__["_source"]
        if name not in columns:
            fields = list(columns)
            raise UnknownField(f"Children: no field {name!r}; fields are {fields}.{did_you_mean(name, fields)}")
        return array[columns[name]]  # type: ignore[no-any-return]


@dataclass(frozen=True, eq=False)
class Binder:
    """Binds rules of one hierarchy to one truth array; `actions` holds each agent's action vector as rules read it."""

    hierarchy: Hierarchy
    layout: Layout
    global_features: tuple[type[FeatureProvider], ...]
    truth: NDArray[np.float64]
    actions: Sequence[Vector]

    @cached_property
    def read_only(self) -> NDArray[np.float64]:
        """The truth as rules read it: what they write they return."""
        view = self.truth.view()
        view.flags.writeable = False
        return view

    def bind(self, rank: int, name: str) -> Run | None:
        """The rule `name` of the agent of this rank; None if its class has none."""
        agent, row = self.hierarchy.agents[rank], self.layout.rows[rank]
        function = getattr(type(agent), name, None)
        spec = rule_spec(function)
        if function is None or spec is None:
            return None
        where = f"{type(agent).__name__}.{name}"
        require_writes(spec, name, where)
        signature = self.parameters(rank, name)
        args = [self._argument(parameter, rank, where) for parameter in signature]
        at = {parameter.role: i for i, parameter in enumerate(signature)}
        title = f"{where} of {agent.agent_id!r}"
        store = self._store(row, spec.writes, spec.single, title)
        dt_at, time_at, rewards_at = at.get("dt"), at.get("time"), at.get("child_rewards")

        def run(dt: float, time: float, child_rewards: NDArray[np.float64] | None = None) -> Any:
            if dt_at is not None:
                args[dt_at] = dt
            if time_at is not None:
                args[time_at] = time
            if rewards_at is not None:
                args[rewards_at] = child_rewards
            try:
                result = function(*args)
            except FAILURES as error:
                raise without_value(title, spec.writes, error) from error
            return result if store is None else store(result)

        return run

    def parameters(self, rank: int, name: str) -> tuple[Parameter, ...]:
        """What the rule `name` of the agent of this rank reads; nothing if there is no such rule."""
        agent = self.hierarchy.agents[rank]
        function = getattr(type(agent), name, None)
        if function is None or rule_spec(function) is None:
            return ()
        where = f"{type(agent).__name__}.{name}"
        signature = parameters(function, self.layout.rows[rank].features, self.global_features, where)
        if name != "compute_local_reward" and any(parameter.role == "child_rewards" for parameter in signature):
            raise RuleError(f"{where} reads child_rewards, which only compute_local_reward is given; remove it")
        return signature

    def _argument(self, parameter: Parameter, rank: int, where: str) -> Any:
        rows, feature = self.layout.rows, parameter.feature
        if feature is None:
            return self.actions[rank] if parameter.role == "action" else 0.0
        if parameter.role in ("own", "global"):
            return rows[rank if parameter.role == "own" else -1].window(self.read_only, feature)
        if parameter.role == "children":
            return self._children(rank, feature, where)
        return row_of_parent(self.hierarchy, self.layout, rank, feature, where).window(self.read_only, feature)

    def _children(self, rank: int, feature: type[FeatureProvider], where: str) -> Children[Any]:
        starts, step = starts_of_children(self.hierarchy, self.layout, rank, feature, where)
        if not step:
            columns = {name: np.asarray(starts) + q.index for name, q in feature.quantities.items()}
            return _ScatteredChildren(self.read_only, columns)
        span = starts[-1] - starts[0] + 1
        views = {
            name: self.read_only[starts[0] + q.index : starts[0] + q.index + span : step]
            for name, q in feature.quantities.items()
        }
        return Children(views)

    def _store(self, row: Row, writes: tuple[Quantity, ...], single: bool, where: str) -> Callable[[Any], Any] | None:
        """A function that clips what a rule returned and stores it; None where nothing is written."""
        targets = [self._target(row, q, where) for q in writes]
        if not targets:
            return None
        if single:
            return targets[0]
        vectors = any(q.shape for q in writes)

        def store(result: Any) -> Any:
            if not isinstance(result, tuple) or len(result) != len(targets):
                raise RuleError(
                    f"{where} writes {list(writes)} and must return a tuple of {len(targets)}, got {result!r}"
                )
            if vectors:  # they may be views of what is about to be written
                result = tuple(v.copy() if isinstance(v, np.ndarray) else v for v in result)
            for target, value in zip(targets, result, strict=True):
                target(value)
            return result

        return store

    def _target(self, row: Row, q: Quantity, where: str) -> Callable[[Any], Any]:
        position = row.find(q.owner)
        if position is None:
            own = [feature.__name__ for feature in row.features]
            raise RuleError(f"{where} writes {q!r}, but its features are {own}; rules write their own")
        start = row.offsets[position] + q.index
        window = self.truth[start : start + q.size]
        cells, low, high = cast("memoryview[float]", window.data), q.low, q.high
        least, most = max(low, -sys.float_info.max), min(high, sys.float_info.max)

        def bad(value: Any) -> RuleError:
            return unstorable(where, repr(value), q)

        def store_float(value: float) -> None:
            try:
                if least <= value <= most:
                    cells[0] = value
                    return
            except (TypeError, ValueError, OverflowError) as error:
                raise bad(value) from error
            if value - value != 0:  # nan or inf
                raise bad(value)
            cells[0] = low if value < low else high

        def store_integer(value: float) -> None:
            try:
                cells[0] = within(float(round(float(value))), low, high)
            except (TypeError, ValueError, OverflowError) as error:
                raise bad(value) from error

        def store_vector(value: Any) -> None:
            try:
                vector = np.asarray(value, dtype=np.float64).reshape(q.size)
            except (TypeError, ValueError, OverflowError) as error:
                raise bad(value) from error
            if not np.isfinite(vector).all():
                raise bad(value)
            q.write(window, vector)

        return store_vector if q.shape else store_float if q.kind == "float" else store_integer


def row_of_parent(hierarchy: Hierarchy, layout: Layout, rank: int, feature: type[FeatureProvider], where: str) -> Row:
    """The row of the parent that has `feature`. Raises RuleError naming the rule, `where`, if there is none."""
    parent = hierarchy.parent[rank]
    if parent < 0 or layout.rows[parent].find(feature) is None:
        who = "it has no parent" if parent < 0 else f"its parent {hierarchy.ids[parent]!r} has no such feature"
        raise RuleError(
            f"{where} reads Parent[{feature.__name__}], but {hierarchy.ids[rank]!r}: {who}; "
            f"put it below a parent with {feature.__name__} among its `features`"
        )
    return layout.rows[parent]


def starts_of_children(
    hierarchy: Hierarchy, layout: Layout, rank: int, feature: type[FeatureProvider], where: str
) -> tuple[list[int], int]:
    """First column of each child that has `feature`, and their distance; 0: they are not evenly spaced.

    Raises RuleError naming the rule, `where`, if no child has it, or if it has vector quantities.
    """
    rows = [layout.rows[child] for child in hierarchy.children[rank]]
    starts = [row.offsets[i] for row in rows if (i := row.find(feature)) is not None]
    if not starts:
        raise RuleError(
            f"{where} reads Children[{feature.__name__}], but no child of {hierarchy.ids[rank]!r} has it; "
            "add it to the children's `features`"
        )
    if any(q.shape for q in feature.quantities.values()):
        raise RuleError(f"{where} reads Children[{feature.__name__}], which has vector quantities; use scalar ones")
    steps = {later - start for start, later in pairwise(starts)} or {1}
    return starts, steps.pop() if len(steps) == 1 and min(steps) > 0 else 0
