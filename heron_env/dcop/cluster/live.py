"""What a cluster agent holds by node, open to its owner: names are checked, colours take the domain's spelling."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, MutableMapping
from typing import Any, Generic, TypeVar

from heron_env.dcop.problem import spelled
from heron_env.errors import ConfigError, did_you_mean
from heron_env.given import mapping, several

V = TypeVar("V")


class Live(MutableMapping[str, V], Generic[V]):
    """By node; setting a node or colour that is none raises ConfigError."""

    def __init__(self, what: str, nodes: Iterable[str], domain: tuple[str, ...], given: Mapping[str, Any]) -> None:
        self._what, self._nodes, self._domain = what, tuple(nodes), domain
        self._held: dict[str, V] = {}
        self.update(mapping(given, what))

    @abstractmethod
    def _read(self, node: str, value: Any) -> V: ...

    def _colour(self, node: str, written: object) -> str:
        colour = spelled(self._domain, written) if isinstance(written, str) else None
        if colour is None:
            raise ConfigError(f"{self._what}[{node!r}]={written!r:.60}: there are {', '.join(self._domain)}")
        return colour

    def __setitem__(self, node: str, value: Any) -> None:
        if node not in self._nodes:
            near = did_you_mean(node, self._nodes) or f" There are {', '.join(self._nodes) or 'none'}."
            raise ConfigError(f"{self._what}[{node!r:.60}]: is no node that could stand there.{near}")
        self._held[node] = self._read(node, value)

    def __getitem__(self, node: str) -> V:
        return self._held[node]

    def __delitem__(self, node: str) -> None:
        del self._held[node]

    def __iter__(self) -> Iterator[str]:
        return iter(self._held)

    def __len__(self) -> int:
        return len(self._held)

    def __repr__(self) -> str:
        return repr(self._held)


class Colours(Live[str]):
    """A colour by node."""

    def _read(self, node: str, value: Any) -> str:
        return self._colour(node, value)


class ColourSets(Live[frozenset[str]]):
    """Several colours by node."""

    def _read(self, node: str, value: Any) -> frozenset[str]:
        return frozenset(self._colour(node, one) for one in several(value, f"{self._what}[{node!r}]"))
