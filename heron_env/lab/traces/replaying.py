"""Runs a recorded episode once more and tells whether it comes out the same, bit for bit."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from heron_env import registry
from heron_env._version import __version__
from heron_env.core.policy import Policies
from heron_env.errors import TraceError
from heron_env.files.reading import is_folder
from heron_env.given import path_of
from heron_env.lab.runs import versions
from heron_env.lab.traces import file
from heron_env.lab.traces.answered import NAME, replayed_answers
from heron_env.lab.traces.comparing import Difference, first_difference
from heron_env.lab.traces.episode import Episode, PolicyIdentity, Setting
from heron_env.lab.traces.recording import record
from heron_env.trust import Trust, listed, trusting

RECORD = "the recorded episode"
"""What names the environment of an episode that is not a file."""


@dataclass(frozen=True)
class Replay:
    """What came of running an episode again.

    Attributes:
        difference: the first one, or None if every bit is the same.
        changed: packages of another version than then: {name: (then, now)}; a difference may come from them.
    """

    recorded: Episode
    now: Episode
    difference: Difference | None
    changed: dict[str, tuple[str, str]]

    @property
    def identical(self) -> bool:
        """Bit for bit?"""
        return self.difference is None


def replay(
    trace: Episode | str | Path,
    *,
    policy: str | None = None,
    policies: Policies | None = None,
    fixture: str | Path | None = None,
    any_version: bool = False,
    trust: Trust = (),
) -> Replay:
    """Run a recorded episode again and compare.

    Args:
        trace: the episode, or where it is (a file, or the folder of `heron trace`).
        policy: where the run folder lies now, if it was moved; it must hold what it held then.
        policies: the policies themselves, for an episode that was recorded with such.
        fixture: where the answers of endpoints lie, if not beside the trace; none is asked again.
        any_version: also under another version of heron_env than the episode's.
        trust: what the record and its run folder name, "module:function", where it is not registered.

    Raises TraceError for a trace of another version or damaged, or whose policy is gone; UnknownEnvironment, Untrusted.
    """
    recorded = trace if isinstance(trace, Episode) else file.read(path_of(trace, "replay(trace)"))
    setting = recorded.setting
    then = setting.versions.get("heron_env")
    if then != __version__ and not any_version:
        raise TraceError(
            f"this episode was recorded by heron_env {then}, this is {__version__}: install that version, "
            "or compare anyway with --any-version (any_version=True)"
        )
    told_by = RECORD if isinstance(trace, Episode) else str(trace)
    with trusting(*listed(trust)):
        env = rebuilt(setting, told_by)
        _require_same_data(setting, env)
        if policies is None:
            policies = _policies(setting, policy, env)
        if setting.fixture:
            policies = {**policies, **replayed_answers(setting, env, _fixture(trace, fixture))}
    now = record(env, policies, setting)
    changed = _changed(setting.versions)
    return Replay(recorded, now, first_difference(recorded, now), changed)


def rebuilt(setting: Setting, told_by: str = RECORD) -> Any:
    """Built as then: rules compiled if they were, since that may change the last bits. Raises Untrusted."""
    spec = registry.spec(setting.env_id, told_by)
    env = spec.make(**setting.options)
    if env.compiled == setting.compiled:
        return env
    return spec.make(**{**setting.options, "compile": setting.compiled})


def _require_same_data(setting: Setting, env: Any) -> None:
    """Raise TraceError where a file that the environment is built from is not what it was."""
    now = env.data_files()
    for name in dict.fromkeys([*setting.data, *now]):
        if setting.data and setting.data.get(name) != now.get(name):
            told = "has changed since" if name in now and name in setting.data else "is not named by both"
            raise TraceError(
                f"the data file {name!r} {told}: the episode was recorded from other data; restore the file, "
                "or record the episode again"
            )


def _policies(setting: Setting, moved: str | None, env: Any) -> Policies:
    from heron_env.lab.traces.identity import policies_of

    identity: PolicyIdentity = setting.policy
    if moved is not None:
        if identity.kind != "run":
            raise TraceError(f"policy={moved!r}: this episode was not recorded with a run folder; leave it out")
        identity = replace(identity, name=moved)
    return policies_of(identity, env, setting.seed)


def _fixture(trace: Episode | str | Path, given: str | Path | None) -> Path:
    if given is not None:
        return path_of(given, "replay(fixture)")
    if isinstance(trace, Episode):
        raise TraceError("endpoints were asked in this episode: name their answers, replay(episode, fixture=path)")
    path = Path(trace)
    return (path if is_folder(path) else path.parent) / NAME


def _changed(then: dict[str, str]) -> dict[str, tuple[str, str]]:
    now = versions()
    names = dict.fromkeys([*then, *now])
    return {n: (then.get(n, "none"), now.get(n, "none")) for n in names if then.get(n) != now.get(n)}
