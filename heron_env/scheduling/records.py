"""Frozen records that are tuples inside: a run makes a dozen of them for every decision."""

from __future__ import annotations

from collections import namedtuple
from dataclasses import dataclass, field, fields
from typing import Any, TypeVar, dataclass_transform

T = TypeVar("T")
make: Any = tuple.__new__
"""`make(Class, (all, its, fields))`: a record without the checks of a call."""


@dataclass_transform(frozen_default=True, eq_default=False)
def record(cls: type[T]) -> type[T]:
    """A frozen dataclass kept as a tuple; records are compared by identity.

    Derive the first of a family from tuple, give each `__slots__ = ()`, and no field a default.
    """
    return _as_tuple(cls, equal=False)


@dataclass_transform(frozen_default=True, eq_default=True)
def value(cls: type[T]) -> type[T]:
    """The same for records that are equal if they are of one class with equal fields."""
    return _as_tuple(cls, equal=True)


def _as_tuple(cls: type[T], *, equal: bool) -> type[T]:
    declared: Any = dataclass(frozen=True, init=False, eq=False)(cls)
    names = [field.name for field in fields(declared)]
    factory: Any = namedtuple  # constructor and getters are taken from it: those of tuples
    plain = factory(cls.__name__, names)
    for name in names:
        setattr(declared, name, plain.__dict__[name])
    declared.__new__ = plain.__new__
    declared.__getnewargs__ = plain.__getnewargs__
    declared.__eq__, declared.__ne__ = (_equal, _unequal) if equal else (object.__eq__, object.__ne__)
    declared.__hash__ = tuple.__hash__ if equal else object.__hash__
    return cls


def _equal(self: Any, other: Any) -> bool:
    return type(self) is type(other) and tuple(self) == tuple(other)


def _unequal(self: Any, other: Any) -> bool:
    return not _equal(self, other)


@dataclass(frozen=True, slots=True)
class MessageCounts:
    """What became of the messages: sent + duplicated == delivered + lost + discarded + in_flight, always.

    Second copies are made by real networks alone. Those that the receiver dropped are among `delivered`, and counted
    again in `dropped_duplicates`. What waits for a medium or another attempt is in flight, and may be discarded before
    it is sent. `repeated` counts further attempts of messages that count once.
    """

    sent: int
    duplicated: int
    delivered: int
    lost: int
    in_flight: int
    dropped_duplicates: int
    discarded: int = field(default=0, metadata={"later": True})
    repeated: int = field(default=0, metadata={"later": True})

    def balanced(self) -> bool:
        """Is every message accounted for?"""
        return self.sent + self.duplicated == self.delivered + self.lost + self.discarded + self.in_flight
