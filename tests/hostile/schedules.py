"""Hostile schedules: media, transports and what may wait, with good values of which some are replaced by bad ones.

Each is refused with words that name a field, or runs alike in both clocks and reads back from what is written of it.
"""

import json
import math
import re
import tempfile
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
from values import value
from verdict import Answer, asked

from heron_env import BatchEnv, ScheduleConfig, make
from heron_env.lab.schedules import with_settings
from heron_env.scheduling.drawn import FIELDS, DrawnSchedule, as_dict, drawn_or_fixed
from heron_env.scheduling.media import Medium, Reliable, mqtt, ros2, tcp
from heron_env.scheduling.timing import GONE

WORLD: dict[str, Any] = {"num_batteries": 2, "max_steps": 4}
WAYS = ("python", "drawn", "yaml", "command line")
KEYS = ("*", "*", "*", "field", "system", "battery_1", "battery")
NAN, INF = math.nan, math.inf
MEDIUM: dict[str, tuple[list[Any], list[Any]]] = {
    "name": (["radio", "radio", "radio", "cable"], ["", 3, None, "x" * 5000, ["radio"]]),
    "rate": (
        [30.0, 200, 1000.0, 1e6, INF, "100-400", [50, 900], 1e-300, 5e-324, 1e308, "lognormal(300, 2)"],
        [0, -1.0, NAN, -INF, "x", True, None, 10**400, [], "0-5", "5-1", {"empirical": [1]}, [INF, 5]],
    ),
    "overhead": ([0, 12, 20.0, 1e15], [-1, NAN, INF, "x", True, None, 2**60, 10**400]),
    "order": (["fifo", "priority"], ["lifo", "tdma", None, 3, [], ["fifo"]]),
    "limit": ([None, 0, 60, 200.0, 1e15], [-1, NAN, INF, "60-90", True]),
    "duplex": ([True, False], [1, "yes", None]),
    "sizes": (
        [{}, {"reply": 8, "request": 0}, {"command": 1e15, "report": 0.5}],
        [{"x": 1}, {"reply": -1}, [1], "ab", {"reply": None}, [["reply", 3]], 7, {"reply": NAN}],
    ),
}
"""By field, good values and bad ones."""
TRANSPORT: dict[str, tuple[list[Any], list[Any]]] = {
    "rto": ([0.001, 0.05, 0.2, 3.0, 1e6], [-1, NAN, 0.0, 1e-9, 1e7, "0-1", None, True]),
    "backoff": ([1.0, 2.0, 1e6], [0.5, 0, NAN, INF, "x"]),
    "tries": ([None, 1, 2, 16, 1000], [0, -1, 1001, 2.0, 10**400, True, "x"]),
    "gaps": ([True, False], [1, None, "yes"]),
}
OTHERS: dict[str, tuple[list[Any], list[Any]]] = {
    "keep": ([1, 2, 10, [1, 3], None], [0, -1, 1.5, "1-3", True, 2**70, "x"]),
    "lifespan": ([0.05, 0.5, 9e9, [None, 0.3], "0.1-0.4"], [0, -1, NAN, INF, "x", 1e10, True]),
    "priority": ([0, -1, 3, [0, 1]], [1.5, "x", None, 2**70, True, NAN]),
    "loss": ([0.0, 0.1, 0.6, "0-0.5", [0, 0.2], 1.0], [-0.1, 1.1, NAN, "x", None]),
    "msg_delay": ([0.0, 0.02, 0.3, "0-0.4", 4e9, 9e9], [-1, NAN, "x", 1e10]),
    "obs_delay": ([0.0, 0.1, 9e9], [-1]),
    "act_delay": ([0.0, 0.1], [INF]),
    "reorder": ([True, False], [2]),
    "min_delay": ([0.0, 0.01], [-1]),
    "tick_interval": ([None, 0.4], [0]),
    "duplicate": ([0, 0.0], [0.1, True, "x"]),
}
NAMES = re.compile("|".join([*FIELDS, *GONE, *(each.name for kind in (Medium, Reliable) for each in fields(kind))]))
SAYS_NO = ("ScheduleError", "ConfigError", "RemovedName", "UnknownArgument", "DataError")


def some(table: dict[str, tuple[list[Any], list[Any]]], draw: np.random.Generator, bad: float) -> dict[str, Any]:
    """Some of the fields of a table, a share of them with bad values."""
    found = {}
    for name, (good, wrong) in table.items():
        if draw.random() < 0.5:
            values = wrong if draw.random() < bad else good
            found[name] = values[draw.integers(len(values))]
    return found


def medium(draw: np.random.Generator, bad: float) -> Any:
    """A medium, a list of them, or what is none."""
    made = some(MEDIUM, draw, bad)
    if draw.random() < bad:
        return [made | {"slot": 0.1}, "radio", 3, [], [made, "radio"], {3: 4}, None][draw.integers(7)]
    return [made, {"name": "cable", "rate": 90.0}] if draw.random() < 0.1 else made


def transport(draw: np.random.Generator, bad: float) -> Any:
    """A transport, or what is none."""
    if draw.random() < bad:
        return ["udp", 3, [], [None, "tcp"], {"window": 3}, {}][draw.integers(6)]
    return "tcp" if draw.random() < 0.3 else some(TRANSPORT, draw, bad)


def entries(draw: np.random.Generator, *, odd: bool) -> dict[Any, Any]:
    """Fields by key; `odd`: with values that no file can have, too."""
    bad = [0.0, 0.03, 0.2][draw.integers(3)]
    shared, found = medium(draw, bad), dict[Any, Any]()
    for key in dict.fromkeys(KEYS[n] for n in draw.integers(len(KEYS), size=1 + draw.integers(3))):
        values = some(OTHERS, draw, bad)
        values = {name: each for name, each in values.items() if draw.random() < 0.5}
        if draw.random() < 0.8:
            values["medium"] = shared if draw.random() < 0.8 else medium(draw, bad)
        if draw.random() < 0.5:
            values["transport"] = transport(draw, bad)
        if odd and draw.random() < bad:
            values[("medium", "transport", "keep", "lifespan", "priority")[draw.integers(5)]] = value(draw)
        found[key] = values
    return found


def as_objects(values: dict[str, Any]) -> ScheduleConfig:
    """As a program writes it."""
    made = dict(values)
    for name, kind in (("medium", Medium), ("transport", Reliable)):
        if isinstance(made.get(name), dict):
            made[name] = kind(**{str(key): each for key, each in made[name].items()})
    if isinstance(made.get("transport"), str):
        presets = (tcp(), mqtt(1), ros2("reliable", made.get("keep", 10)))
        made |= presets[len(made) % 3]
    return ScheduleConfig(**made)


def text(part: Any) -> str:
    """As files and command lines have it."""
    return json.dumps(part, ensure_ascii=True).replace("Infinity", ".inf").replace("NaN", ".nan")


def drawable(name: str, good: Any) -> bool:
    """Is it one that is drawn, which a ScheduleConfig does not take?"""
    return isinstance(good, str | list) and name not in ("name", "order", "transport")


def fixed(values: Any) -> Any:
    """The same without what is drawn."""
    if not isinstance(values, dict):
        return values
    return {key: fixed(each) for key, each in values.items() if not drawable(key, each) and key != "duplicate"}


def built(way: str, told: dict[Any, Any]) -> Any:
    """The schedule. Raises what that raises."""
    if way == "python":
        return {key: as_objects(values) for key, values in told.items()}
    if way == "drawn":
        return DrawnSchedule(told)
    if way == "yaml":
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "net.yaml"
            path.write_text(text(told), encoding="utf-8")
            return with_settings(None, [str(path)])
    lines = [
        f"{'' if key == '*' else f'{key}.'}{name}={each if isinstance(each, str) else json.dumps(each)}"
        for key, values in told.items() for name, each in values.items()
    ]  # fmt: skip
    return with_settings(None, lines)


POLICIES: dict[str, Any] = {"*": lambda vector: np.array([np.sin(100.0 * vector.sum())])}


def ran(schedule: Any, batch: bool) -> Any:
    """The result of an episode, by one of the clocks."""
    env = make("heron/BatteryGrid-v0", **WORLD)
    if not batch:
        return env.run_event_driven(POLICIES, seed=3, schedule=schedule)
    lanes: Any = BatchEnv(
        env,
        2,
        seed=3,
        clock="event",
        schedule=schedule,
        autoreset="disabled",
        record=("rewards", "actions", "messages"),
    )
    rows = lanes.begin()
    while len(rows):
        rows = lanes.answer(np.array([POLICIES["*"](each) for each in rows.obs]))
    return lanes.result(0)


def hostile_schedule(number: int, seed: int) -> tuple[str, Answer]:
    """The `number`-th: by which way it came, and what came of it."""
    draw = np.random.default_rng((seed, number, 2))
    way = WAYS[number % len(WAYS)]
    told = entries(draw, odd=way in ("python", "drawn"))
    told = fixed(told) if way == "python" and draw.random() < 0.7 else told
    made = asked(lambda: built(way, told))
    if made.is_finding:
        return way, made
    if made.kind != "works":
        return way, made if made.kind == "python" else named(made)
    one, other = asked(lambda: ran(made.value, batch=False)), asked(lambda: ran(made.value, batch=True))
    for answer in (one, other):
        if answer.is_finding:
            return way, answer
    if one.kind != other.kind:
        return way, Answer("raw", f"apart: {one.kind} {one.told[:90]!r}, batch {other.kind} {other.told[:90]!r}")
    if one.kind != "works":
        return way, named(one)
    mine, its = one.value, other.value
    for what in ("rewards", "returns", "messages", "media", "notes"):
        if repr(getattr(mine, what)) != repr(getattr(its, what)):
            return way, Answer("raw", f"apart: {what} {getattr(mine, what)!s:.200} batch {getattr(its, what)!s:.200}")
    again = asked(lambda: drawn_or_fixed(json.loads(json.dumps(as_dict(made.value)))))
    if again.kind != "works" or at_first(again.value) != at_first(made.value):
        return way, Answer("raw", f"does not read back: {again.kind} {again.told[:300]}")
    return way, one


def at_first(schedule: Any) -> Any:
    """Of the first episode."""
    return schedule.at(3, 0) if isinstance(schedule, DrawnSchedule) else schedule or {}


def named(answer: Answer) -> Answer:
    """A refusal, if it is one of ours that names a field."""
    if answer.kind in SAYS_NO and NAMES.search(answer.told):
        return answer
    return Answer("silent", f"{answer.kind} names no field: {answer.told[:200]}", place=answer.place)
