"""An observation in object form: named vectors of oneself and of others; arrays are made by the plan."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heron_env.given import mapping

Tree = Mapping[str, Any]


class Observation:
    """`local` {Feature: vector}, `global_info` {agent: {Feature: vector}, "global": {...}}, the asking tick's time."""

    def __init__(self, local: Tree | None = None, global_info: Tree | None = None, timestamp: float = 0.0) -> None:
        self.local = {} if local is None else mapping(local, "Observation(local)")
        self.global_info = {} if global_info is None else mapping(global_info, "Observation(global_info)")
        self.timestamp = timestamp

    def vector(self) -> NDArray[np.float32]:
        """Everything in insertion order, float32 `[n]`: own values, then the others'."""
        return np.concatenate([self.local_vector(), self.global_vector()])

    def local_vector(self) -> NDArray[np.float32]:
        """Own values, float32."""
        return _flatten(self.local)

    def global_vector(self) -> NDArray[np.float32]:
        """The others' values, float32."""
        return _flatten(self.global_info)

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers and lists, as messages carry them."""
        return {"timestamp": self.timestamp, "local": _plain(self.local), "global_info": _plain(self.global_info)}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Observation:
        """Rebuild from `to_dict()`."""
        return cls(values["local"], values["global_info"], values["timestamp"])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        """The vector, so that `policy(observation)` may be any function of arrays."""
        return self.vector().astype(dtype or np.float32)

    def __len__(self) -> int:
        """Number of values."""
        return self.vector().size

    def __repr__(self) -> str:
        """Readable form."""
        return f"Observation(local={self.local}, global_info={self.global_info}, timestamp={self.timestamp})"


def _leaves(tree: Any) -> list[NDArray[np.float32]]:
    if isinstance(tree, Mapping):
        return [leaf for branch in tree.values() for leaf in _leaves(branch)]
    return [np.ravel(np.asarray(tree, dtype=np.float32))]


def _flatten(tree: Tree) -> NDArray[np.float32]:
    return np.concatenate([np.zeros(0, np.float32), *_leaves(tree)])


def _plain(tree: Any) -> Any:
    if isinstance(tree, Mapping):
        return {name: _plain(branch) for name, branch in tree.items()}
    return tree.tolist() if isinstance(tree, np.ndarray) else tree
