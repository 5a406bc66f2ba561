"""LaterInfos: a group's infos as Gymnasium wants them, a dict, made when somebody looks at it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

Bools = NDArray[np.bool_]


class LaterInfos(dict[str, Any]):
    """Numbers by name, `[num_envs, agents, ...]`, with Gymnasium's masks `_name` `[num_envs]`: all made at once.

    Made at the first look, at whatever; what is made stays. Raises ResetNeeded for a first look after the next step.
    """

    def __init__(self, infos: Mapping[str, NDArray[Any]], lanes: int, having: Bools | None) -> None:
        super().__init__()
        self._infos: Mapping[str, NDArray[Any]] | None = infos
        self._lanes, self._having = lanes, having  # None: all of them

    def made(self) -> LaterInfos:
        """This, looked at."""
        if self._infos is not None:
            found = {name: self._infos[name] for name in self._infos if name != "final_obs"}
            self._infos, having = None, np.ones(self._lanes, dtype=bool) if self._having is None else self._having
            dict.update(self, found)
            dict.update(self, {f"_{name}": having.copy() for name in found})
        return self

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Copies and pickles are plain dicts."""
        return dict, (dict(self.made()),)


def _looking(name: str) -> Callable[..., Any]:
    look = getattr(dict, name)

    def looked(self: LaterInfos, *given: Any, **named: Any) -> Any:
        return look(self.made(), *given, **named)

    looked.__name__, looked.__doc__ = name, look.__doc__
    return looked


for _name in (
    "__contains__", "__delitem__", "__eq__", "__getitem__", "__ior__", "__iter__", "__len__", "__ne__", "__or__",
    "__repr__", "__reversed__", "__ror__", "__setitem__", "clear", "copy", "get", "items", "keys", "pop", "popitem",
    "setdefault", "update", "values",
):  # fmt: skip
    setattr(LaterInfos, _name, _looking(_name))
