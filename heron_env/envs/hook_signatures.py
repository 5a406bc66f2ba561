"""How hooks of an environment may be written: what they take, and which are static."""

from __future__ import annotations

import inspect

from heron_env.core.rule import rule_spec
from heron_env.errors import RuleError


def require_static(cls: type, name: str) -> None:
    """Raise RuleError for a world rule that is a method, or has other parameters."""
    if rule_spec(getattr(cls, name)) is None:
        return
    where = f"{cls.__name__}.{name}"
    called = "(world, dt)" if name == "advance" else "(world)"
    if not isinstance(inspect.getattr_static(cls, name), staticmethod):
        raise RuleError(f"{where} is a world rule and a method; write @staticmethod @rule def {name}{called}")
    if len(inspect.signature(getattr(cls, name)).parameters) != called.count(",") + 1:
        raise RuleError(f"{where} is a world rule of other parameters; write def {name}{called}")


def require_parameters(cls: type, name: str, base: type) -> None:
    """Raise RuleError for a hook that can't be called like that of `base`."""
    given, asked = inspect.getattr_static(cls, name), inspect.signature(getattr(base, name)).parameters
    if not callable(getattr(cls, name)):
        raise RuleError(f"{cls.__name__}.{name}={given!r}: is no function; write def {name}({', '.join(asked)})")
    try:
        signature = inspect.signature(getattr(cls, name))
    except (TypeError, ValueError):  # written in C, it does not tell
        return
    values = [*asked][1:] if isinstance(given, staticmethod | classmethod) else [*asked]
    names = [*signature.parameters]
    try:
        signature.bind(*values)
        if names != values and sorted(names) == sorted(values):
            raise TypeError("they are given by position, in another order")
    except TypeError as error:
        raise RuleError(
            f"{cls.__name__}.{name}({', '.join(names)}): {error}; write def {name}({', '.join(asked)})"
        ) from error
