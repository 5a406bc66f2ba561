"""Checking: each rule compiled alone, with the types it will get, before anything is written or run.

So that an error names the user's line, that a rule which allocates is known, and that what it returns fits what it
writes.
"""

from __future__ import annotations

from typing import Any

from heron_env.core.rule import rule_spec
from heron_env.engine.explain import explained
from heron_env.engine.linking import Linker
from heron_env.engine.source import Facts, Kind, Source
from heron_env.errors import RuleError


def linkers_of_rules() -> tuple[Linker, Linker]:
    """What compiles rules that do not allocate, and what compiles those that do."""
    from heron_env.engine import kernels

    return Linker(kernels.rule_leaf), Linker(kernels.rule_allocating)


def examined(source: Source, linkers: tuple[Linker, Linker]) -> Facts:
    """Compile every rule. Raises RuleError for the first that can't be compiled, or returns what can't be stored."""
    allocates, infos = [], {}
    for kind in source.kinds:
        for rule in kind.rules:
            allocating, returned = _compiled(source, kind, rule, linkers)
            if allocating or _has_arrays(returned):
                allocates.append(f"{kind.name}_{rule}")
            _require_fit(kind, rule, returned)
            if rule == "get_local_info":
                infos[kind.name] = tuple(returned.fields)
    return Facts(tuple(allocates), infos)


def _compiled(source: Source, kind: Kind, rule: str, linkers: tuple[Linker, Linker]) -> tuple[bool, Any]:
    """Does it allocate, and the numba type of what it returns.

    Tried without reference counts; what refuses may allocate, and is tried with them.
    """
    function: Any = getattr(kind.cls, rule)
    types = _argument_types(source, kind, rule)
    for linker in linkers:
        failed: Exception
        try:
            made = linker.link(function)
            made.compile(types)
            return linker is linkers[1], made.overloads[types].signature.return_type
        except Exception as error:  # noqa: BLE001  (numba lets through whatever its typing stumbles over)
            failed = error
    read = [source.tuple_of(kind, p)[0] for p in kind.rules[rule] if p.feature is not None]
    fields = {feature.__name__: list(feature.quantities) for feature in read}
    raise explained(failed, f"{kind.cls.__name__}.{rule}", function, linkers[1].codes, fields) from failed


def _argument_types(source: Source, kind: Kind, rule: str) -> tuple[Any, ...]:
    """The numba types of what the generated function passes."""
    import numba

    types: Any = numba.types
    float64, int64 = types.float64, types.int64
    row = types.Array(float64, 1, "C", readonly=True)
    found: list[Any] = []
    for parameter in kind.rules[rule]:
        if parameter.feature is None:
            found.append(float64 if parameter.role in ("dt", "time") else row)
            continue
        feature, made = source.tuple_of(kind, parameter)
        quantities = feature.quantities.values()
        if parameter.role == "children":
            cells = [types.Array(float64, 1, "A", readonly=True) for _ in quantities]
        else:
            cells = [
                types.Array(float64, len(q.shape), "C", readonly=True)
                if q.shape
                else float64
                if q.kind == "float"
                else int64
                for q in quantities
            ]
        found.append(types.BaseTuple.from_types(cells, made))
    return tuple(found)


def _require_fit(kind: Kind, rule: str, returned: Any) -> None:
    """Raise RuleError unless the type of what a rule returns can be stored."""
    import numba

    types: Any = numba.types

    spec = rule_spec(getattr(kind.cls, rule))
    assert spec is not None
    where = f"{kind.cls.__name__}.{rule}"
    if not spec.writes:
        if rule == "action_mask" and not _vector(returned):
            raise RuleError(
                f"{where} returns {returned}: a mask is a flat array or tuple of numbers, one for each choice"
            )
        if rule not in ("get_local_info", "action_mask") and not isinstance(
            returned, types.Integer | types.Float | types.Boolean
        ):
            raise RuleError(f"{where} returns {returned}: a number is needed; return one on every path")
        if rule == "get_local_info" and not _named_numbers(returned):
            raise RuleError(f"{where} returns {returned}: compiled infos are a NamedTuple of numbers; declare one")
        return
    results = [returned] if spec.single else list(returned) if isinstance(returned, types.BaseTuple) else []
    if len(results) != len(spec.writes):
        shown = f"a tuple of {len(results)}" if results else returned
        raise RuleError(
            f"{where} writes {list(spec.writes)} and must return a tuple of {len(spec.writes)}, not {shown}"
        )
    for q, result in zip(spec.writes, results, strict=True):
        if q.shape and not _vector(result):
            raise RuleError(f"{where} returns {result} for {q!r}: a flat array or tuple of {q.size} numbers is needed")
        if not q.shape and not isinstance(result, types.Integer | types.Float | types.Boolean):
            raise RuleError(f"{where} returns {result} for {q!r}: a number is needed; return one on every path")


def _named_numbers(returned: Any) -> bool:
    import numba

    types: Any = numba.types

    return hasattr(returned, "fields") and all(
        isinstance(part, types.Integer | types.Float | types.Boolean) for part in returned
    )


def _has_arrays(returned: Any) -> bool:
    """Is an array among the results? It is copied before it is stored."""
    import numba

    types: Any = numba.types

    parts = list(returned) if isinstance(returned, types.BaseTuple) else [returned]
    return any(isinstance(part, types.Array) for part in parts)


def _vector(result: Any) -> bool:
    import numba

    types: Any = numba.types

    if isinstance(result, types.Array):
        return bool(result.ndim == 1)
    parts = list(result) if isinstance(result, types.BaseTuple) else [getattr(result, "dtype", None)]
    return all(isinstance(part, types.Integer | types.Float | types.Boolean) for part in parts)
