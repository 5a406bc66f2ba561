"""What a cluster agent holds by node, open to its owner: names are checked, colours take the domain's spelling."""

from __future__ import annotations

from collections import UserDict
from collections.abc import Iterable, Mapping
from typing import Any

from heron_env.dcop.problem import spelled
from heron_env.errors import ConfigError, did_you_mean
from heron_env.given import mapping, several


class Colours(UserDict[str, str]):
    """A colour by node. Setting a node that could not stand there, or a colour that is none, raises ConfigError."""

    def __init__(self, what: str, nodes: Iterable[str], domain: tuple[str, ...], given: Mapping[str, Any]) -> None:
        self._what, self._nodes, self._domain = what, tuple(nodes), domain
        super().__init__(mapping(given, what))

    def __setitem__(self, node: str, value: Any) -> None:
        if node not in self._nodes:
            near = did_you_mean(node, self._nodes) or f" There are {', '.join(self._nodes) or 'none'}."
            raise ConfigError(f"{self._what}[{node!r:.60}]: is no node that could stand there.{near}")
        self.data[node] = self._read(node, value)

    def _read(self, node: str, value: Any) -> Any:
        colour = spelled(self._domain, value) if isinstance(value, str) else None
        if colour is None:
            raise ConfigError(f"{self._what}[{node!r}]={value!r:.60}: is no colour; take {', '.join(self._domain)}")
        return colour


class Forbidden(Colours):
    """Several colours by node, as frozen sets."""

    def _read(self, node: str, value: Any) -> Any:
        colours = several(value, f"{self._what}[{node!r}]")
        return frozenset(super(Forbidden, self)._read(node, one) for one in colours)
