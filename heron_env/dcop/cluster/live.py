"""What a cluster agent holds by node, open to its owner: names are checked, colours take the domain's spelling."""

from __future__ import annotations

from collections import UserDict
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from heron_env.dcop.problem import spelled
from heron_env.errors import ConfigError, did_you_mean
from heron_env.given import mapping, several

V = TypeVar("V")


class _ByNode(UserDict[str, V]):
    """Setting a node that could not stand there, or a colour that is none, raises ConfigError."""

    def __init__(self, what: str, nodes: Iterable[str], domain: tuple[str, ...], given: Mapping[str, Any]) -> None:
        self._what, self._nodes, self._domain = what, tuple(nodes), domain
        super().__init__(mapping(given, what))

    def __setitem__(self, node: str, value: Any) -> None:
        if node not in self._nodes:
            near = did_you_mean(node, self._nodes) or f" There are {', '.join(self._nodes) or 'none'}."
            raise ConfigError(f"{self._what}[{node!r:.60}]: is no node that could stand there.{near}")
        self.data[node] = value

    def _colour(self, node: str, written: Any) -> str:
        colour = spelled(self._domain, written) if isinstance(written, str) else None
        if colour is None:
            raise ConfigError(f"{self._what}[{node!r:.60}]={written!r:.60}: must be one of {', '.join(self._domain)}")
        return colour


class Colours(_ByNode[str]):
    """A colour by node."""

    def __setitem__(self, node: str, value: str) -> None:
        super().__setitem__(node, self._colour(node, value))


class Forbidden(_ByNode[frozenset[str]]):
    """Several colours by node."""

    def __setitem__(self, node: str, value: Iterable[str]) -> None:
        colours = several(value, f"{self._what}[{node!r:.60}]")
        super().__setitem__(node, frozenset(self._colour(node, colour) for colour in colours))
