"""What an episode was made with, in a form that can be written down and found again: policies, schedules, what happens
from outside.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

import numpy as np

from heron_env.core.policy import Policies
from heron_env.errors import TraceError
from heron_env.files.reading import is_folder
from heron_env.lab.policies import Baseline, TrainedRun, display_names, others, policy_spec
from heron_env.lab.traces.episode import PolicyIdentity, Setting
from heron_env.scheduling.disturbances import Disturbance
from heron_env.scheduling.drawn import AnySchedule, as_dict, drawn_or_fixed
from heron_env.scheduling.events import ConditionMonitor, CustomEvent

if TYPE_CHECKING:
    from heron_env.envs.base import HeronEnv

SAID_ELSEWHERE = frozenset({"agent", "number", "id", "sent", "view"})
"""Fields that have a place of their own in a record; a view only knows names."""


def content(record: Any) -> dict[str, Any]:
    """The fields of a message or event, by name. Raises TraceError for a value that has no exact form."""
    names = [field.name for field in fields(record) if field.name not in SAID_ELSEWHERE]
    return {name: plain(getattr(record, name), f"{type(record).__name__}.{name}") for name in names}


def plain(value: Any, where: str) -> Any:
    """`value` in JSON's types: Python writes a float so that it is read back exactly; nan and infinities are words.

    Raises TraceError naming `where` for an object that can't be written so.
    """
    match value:
        case Enum():
            return value.name
        case None | bool() | int() | str():
            return value
        case float():
            return float(value) if math.isfinite(value) else repr(float(value))
        case np.ndarray() | np.generic():
            return plain(value.tolist(), where)
        case Mapping():
            return {str(key): plain(item, f"{where}[{key!r}]") for key, item in value.items()}
        case list() | tuple() if not is_dataclass(value):
            return [plain(item, f"{where}[{i}]") for i, item in enumerate(value)]
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name), f"{where}.{field.name}") for field in fields(value)}
    raise TraceError(
        f"{where} is a {type(value).__name__}, which a recorded episode can't hold; "
        "use numbers, words, lists, dictionaries or dataclasses"
    )


def written_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options themselves. Raises TraceError for one that JSON would not give back."""
    for name, value in options.items():
        try:
            kept = json.loads(json.dumps(value)) == value
        except (TypeError, ValueError, OverflowError):
            kept = False
        if not kept:
            raise TraceError(
                f"option {name}={value!r} can't be written down; use words, numbers, lists and dictionaries, "
                "or register the environment with it under an id of its own"
            )
    return dict(options)


def identity_of(policy: str | Policies) -> PolicyIdentity:
    """Of a run folder, the name of a baseline, an address, a file, or policies.

    Raises RunFolderError for a folder that is no run, ConfigError for an address that is refused.
    """
    if not isinstance(policy, str):
        return PolicyIdentity("given", "")
    match policy_spec(policy):
        case TrainedRun(folder):
            return PolicyIdentity("run", policy, folder_digest(folder))
        case Baseline(name):
            return PolicyIdentity("baseline", name)
    return PolicyIdentity("external", *display_names([policy]))


def folder_digest(folder: str) -> str:
    """Of all that decides in a run folder. Raises RunFolderError."""
    from heron_env.lab.runs import RunFolder

    return RunFolder.open(folder).digest()


def policies_of(identity: PolicyIdentity, env: HeronEnv, seed: int) -> Policies:
    """The policies themselves. Raises TraceError for a run folder that is gone or changed; ConfigError for a baseline
    that the environment does not have.
    """
    if identity.kind == "given":
        raise TraceError(
            "this episode was recorded with policies handed over in Python; give the same ones: "
            "replay(path, policies=...)"
        )
    if identity.kind == "external":
        return others(env, seed)  # of those whose answers no fixture holds
    if identity.kind == "run":
        _require_same(identity)
    return policy_spec(identity.name).build(env, seed)


def _require_same(identity: PolicyIdentity) -> None:
    if not is_folder(identity.name):
        raise TraceError(
            f"the run folder {identity.name!r} that decided in this episode does not exist; "
            "copy it back, or name where it lies now with --policy"
        )
    if folder_digest(identity.name) != identity.digest:
        raise TraceError(
            f"the run folder {identity.name!r} is not the one that decided in this episode: its configuration or "
            "models have changed; restore it, or name a copy of the old one with --policy"
        )


def schedule_entries(schedule: AnySchedule) -> list[dict[str, Any]] | None:
    """A schedule as it is written down: a list of its entries, each with all fields and its key."""
    if schedule is None:
        return None
    return [{"key": key, **values} for key, values in as_dict(schedule).items()]


def schedule_of(entries: list[dict[str, Any]] | None) -> AnySchedule:
    """The schedule that was written down. Raises ScheduleError for values that are none."""
    if entries is None:
        return None
    return drawn_or_fixed(
        {entry["key"]: {name: value for name, value in entry.items() if name != "key"} for entry in entries}
    )


def happening_entries(given: Iterable[Any]) -> list[dict[str, Any]]:
    """Disturbances, monitors or events as they are written down. Raises TraceError for one that is a function."""
    return [
        {f.name: plain(getattr(one, f.name), f"{type(one).__name__}.{f.name}") for f in fields(one)} for one in given
    ]


def happenings_of(setting: Setting) -> dict[str, list[Any]]:
    """What was written down, as `start_event_driven` takes it."""
    monitors = [
        {**entry, "about": None if entry["about"] is None else tuple(entry["about"])} for entry in setting.monitors
    ]
    return {
        "disturbances": [Disturbance(**entry) for entry in setting.disturbances],
        "monitors": [ConditionMonitor(**entry) for entry in monitors],
        "events": [CustomEvent(**entry) for entry in setting.events],
    }
