"""Schedules from the command line: some fields of a ScheduleConfig set, the others as they are."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

from heron_env.errors import ScheduleError, did_you_mean
from heron_env.scheduling.timing import Key, Schedule, ScheduleConfig

EVERYONE = "*"
FIELDS = [field.name for field in fields(ScheduleConfig)]


def with_settings(own: Schedule, settings: Sequence[str]) -> Schedule:
    """`own` with each `FIELD=VALUE` set for everyone, each `WHO.FIELD=VALUE` for an agent, group or level.

    Who gets an entry of its own that way keeps the fields that everyone has. Raises ScheduleError.
    """
    if not settings:
        return own
    table: dict[Key, ScheduleConfig] = dict(own) if isinstance(own, Mapping) else {EVERYONE: own or ScheduleConfig()}
    table.setdefault(EVERYONE, ScheduleConfig())
    parsed = [_parsed(text) for text in settings]
    for who, name, value in parsed:
        if who == EVERYONE:
            table = {key: replace(config, **{name: value}) for key, config in table.items()}
    for who, name, value in parsed:
        if who != EVERYONE:
            table[who] = replace(table.get(who, table[EVERYONE]), **{name: value})
    return table


def _parsed(text: str) -> tuple[str, str, Any]:
    """(who, field, value) of `WHO.FIELD=VALUE`."""
    left, equals, word = text.partition("=")
    who, dot, name = left.rpartition(".")
    if not equals or name not in FIELDS:
        near = "" if name in FIELDS else did_you_mean(name, FIELDS)
        raise ScheduleError(
            f"--schedule {text!r}: must read FIELD=VALUE or WHO.FIELD=VALUE, with a field of {FIELDS}; "
            f"msg_delay=0.5, field.tick_interval=1.{near}"
        )
    return (who if dot else EVERYONE), name, _value(word)


def _value(word: str) -> Any:
    """As JSON has it; nan and inf are numbers, too, which a schedule refuses by name; others are words."""
    try:
        return json.loads(word)
    except json.JSONDecodeError:
        return float(word) if word.lstrip("+-").lower() in ("nan", "inf", "infinity") else word
