"""A finished sweep, read back from its folder: for figures and reports, which run nothing."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from heron_env import registry
from heron_env.core.policy import Policies
from heron_env.errors import ConfigError, RunFolderError, UnknownEnvironment
from heron_env.evaluation.benchmark import Case
from heron_env.evaluation.gap.conditions import Condition
from heron_env.evaluation.gap.journal import RESULTS, SETTINGS, read_records
from heron_env.evaluation.gap.results import SweepResult
from heron_env.evaluation.gap.sweep import SCHEMA, Sweep
from heron_env.evaluation.policies import Baseline, PolicySpec, TrainedRun

if TYPE_CHECKING:
    from heron_env.envs.base import HeronEnv


@dataclass(frozen=True)
class Described:
    """A policy that was an object of the program that ran the sweep; only its description is left."""

    text: str

    def build(self, env: HeronEnv, seed: int) -> Policies:
        """Raises ConfigError."""
        raise ConfigError(f"the policy {self.text} lives in the program that made the sweep; build it there")


def read_sweep(folder: str | Path) -> SweepResult:
    """The result of a sweep that is finished. Options that JSON does not know come back as text.

    Raises RunFolderError where there is none, it is not finished, or another version wrote it; UnknownEnvironment.
    """
    folder = Path(folder)
    path = folder / SETTINGS
    try:
        settings = json.loads(path.read_text(encoding="utf-8"))
        found = settings["schema"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise RunFolderError(f"{path}: no folder of a sweep ({error!r}); make one with `heron sweep`") from error
    if found != SCHEMA:
        raise RunFolderError(f"{path} has schema {found}, this heron_env reads {SCHEMA}: run the sweep again")
    try:
        sweep = _sweep(settings)
    except UnknownEnvironment:
        raise
    except (KeyError, TypeError) as error:
        raise RunFolderError(f"{path} is damaged ({error!r}): run the sweep again in another folder") from error
    keys = {item.key for item in sweep.items()}
    records = read_records(folder / RESULTS, keys)
    if len(records) < len(keys):
        raise RunFolderError(
            f"{folder}: {len(records)} of {len(keys)} episodes are done; finish it with the command that began it"
        )
    return SweepResult(sweep, records)


def _sweep(settings: dict[str, Any]) -> Sweep:
    conditions = [{name: x for name, x in told.items() if name != "name"} for told in settings["conditions"]]
    return Sweep(
        env=registry.spec(settings["env"]),
        options=settings["options"],
        policies={name: _policy(text) for name, text in settings["policies"].items()},
        identities=settings["policies"],
        conditions=tuple(Condition(**told) for told in conditions),
        cases=tuple(Case(**told) for told in settings["cases"]),
        unit=settings["unit"],
        dt=settings["dt"],
        preset=settings["preset"],
        sync_only=tuple(settings["sync_only"]),
        pools={name: tuple(members) for name, members in settings.get("pools", {}).items()},  # there if there are any
    )


def _policy(text: str) -> PolicySpec:
    """From what `Sweep.settings` says of it."""
    kind, _, rest = text.partition(" ")
    if kind == "run":
        return TrainedRun(rest.rpartition(" ")[0])
    return Baseline(rest) if kind == "baseline" else Described(text)
