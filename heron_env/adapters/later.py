"""Lists and dicts that are made at the first look: infos that nobody reads cost nothing."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from heron_env.engine.cache import uncollected

NO_LOOK = ("__new__", "__init__", "__getattribute__", "__class_getitem__", "fromkeys")


class Later:
    """First of two bases, the other a list or dict: filled with what `make` returns at the first look, at whatever.

    What is made stays. Copies and pickles are plain. Raises what `make` raises.
    """

    _plain: Any

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make: Callable[[], Any] | None = make

    def __init_subclass__(cls) -> None:
        """Let every method of the list or dict make it first."""
        _, cls._plain = cls.__bases__
        for name, method in vars(cls._plain).items():
            if callable(method) and name not in NO_LOOK:
                setattr(cls, name, _after_making(method))

    def made(self) -> Any:
        """This, looked at."""
        if self._make is not None:
            with uncollected():  # none of so many objects is garbage yet
                values, self._make = self._make(), None
            self._plain.__init__(self, values)
        return self

    def __reduce_ex__(self, protocol: Any) -> Any:
        """A plain list or dict."""
        return self._plain, (self._plain(self.made()),)


def _after_making(method: Any) -> Any:
    @wraps(method)
    def look(self: Later, *args: Any, **kwargs: Any) -> Any:
        return method(self.made(), *args, **kwargs)

    return look
