"""Runs a recorded episode once more and tells whether it comes out the same, bit for bit."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import zip_longest
from pathlib import Path
from typing import Any, Final, NamedTuple

from heron_env import registry
from heron_env._version import __version__
from heron_env.core.policy import Policies
from heron_env.envs.episodes import FILMED, EpisodeResult
from heron_env.errors import TraceError
from heron_env.files.reading import is_folder
from heron_env.given import path_of
from heron_env.lab.black_boxes import BlackBox, filmable
from heron_env.lab.columns import recording_misfit
from heron_env.lab.runs import versions
from heron_env.lab.traces import file
from heron_env.lab.traces.episode import (
    Episode,
    Event,
    TraceSetting,
    happenings_of,
    plain,
    policies_of,
    schedule_of,
)
from heron_env.lab.traces.recording import NAME, record, replayed_answers
from heron_env.trust import Trust, listed, on_behalf_of, trusting

EVERYBODY: Final = "everybody"
NOTHING: Final = "nothing"
NS: Final = 1_000_000_000


class Fact(NamedTuple):
    """Something of an episode that must come out the same; `order` sorts facts of one instant."""

    t: int
    order: tuple[int, int]
    agent: str
    what: str
    value: Any


@dataclass(frozen=True)
class Difference:
    """The first fact that is not the same in two episodes.

    Attributes: time: virtual time, s; what: which fact, down to the element: `reward`, `ObservationReply 3: vector[2]
        (battery_2.Charge.level)`; recorded, now: its values; "nothing" where one side has no such fact.
    """

    time: float
    agent: str
    what: str
    recorded: Any
    now: Any

    def __str__(self) -> str:
        """`at 3.0 s, battery_1, reward: recorded 0.5, now 0.6`."""
        return f"at {self.time!r} s, {self.agent}, {self.what}: recorded {self.recorded}, now {self.now}"


def first_difference(recorded: Episode, now: Episode) -> Difference | None:
    """The earliest fact that differs, or None if every bit is the same."""
    pairs = zip_longest(facts(recorded), facts(now))
    return next((_difference(a, b, recorded) for a, b in pairs if _text(a) != _text(b)), None)


def facts(episode: Episode) -> list[Fact]:
    """All there is to compare, in the order of its time."""
    return sorted([*_scores(episode), *_course(episode), *_unhandled(episode), *_end(episode)], key=lambda f: f[:2])


def _scores(episode: Episode) -> Iterator[Fact]:
    outcome = episode.outcome
    for rank, agent in enumerate(episode.world.agents):
        for t, value in outcome.rewards.get(agent, ()):
            yield Fact(round(t * NS), (0, rank), agent, "reward", {"t": t, "value": value})
        for t, values in outcome.actions.get(agent, ()):
            yield Fact(round(t * NS), (1, rank), agent, "action", {"t": t, "values": values})


def _course(episode: Episode) -> Iterator[Fact]:
    """What was handled, one after another."""
    for place, each in episode.handled().items():
        if isinstance(each, Event):
            values = {"cause": each.cause, "cancelled": each.cancelled, "masked": each.masked, **each.content}
            if values.get("origin"):
                values["origin"] = {**values["origin"], "source": "endpoint"}  # a replay answers for it
            yield Fact(each.t, (2, place), each.agent, f"{each.kind} {each.number}", values)
        else:
            assert each.arrives is not None
            values = {"sent": each.sent, "id": each.id, "cause": each.cause, **each.content}
            yield Fact(each.arrives, (2, place), each.agent, f"{each.kind} {each.number}", values)


def _unhandled(episode: Episode) -> Iterator[Fact]:
    for number, m in enumerate(episode.messages):
        if m.place is None:
            values = {"arrives": m.arrives, "id": m.id, "cause": m.cause, **m.content}
            yield Fact(m.sent, (3, number), m.agent, f"{m.kind} {m.number}, {m.fate}", values)


def _end(episode: Episode) -> Iterator[Fact]:
    o, world = episode.outcome, episode.world
    end = round(o.end_time * NS)
    for rank, agent in enumerate(world.agents):
        yield Fact(end, (4, rank), agent, "terminated", o.terminated[agent])
        yield Fact(end, (5, rank), agent, "truncated", o.truncated[agent])
        yield Fact(end, (5, rank), agent, "masked effects", o.masked.get(agent, 0))
        yield Fact(end, (5, rank), agent, "plans", o.plans.get(agent))
    yield Fact(end, (6, 0), EVERYBODY, "end of the episode, s", o.end_time)
    yield Fact(end, (7, 0), EVERYBODY, "cancelled effects", o.cancelled_effects)
    yield Fact(end, (7, 1), EVERYBODY, "unfinished effects", o.unfinished_effects)
    for number, (name, value) in enumerate(o.kpis.items()):
        yield Fact(end, (8, number), EVERYBODY, f"KPI {name}", value)


def _text(fact: Fact | None) -> str:
    """Equal exactly if the facts are: 0.0 and -0.0 differ, nan is nan."""
    return "" if fact is None else json.dumps([fact.t, fact.agent, fact.what, plain(fact.value, fact.what)])


def _difference(recorded: Fact | None, now: Fact | None, episode: Episode) -> Difference:
    """What to tell of two unequal facts: the same fact with another value, or the earlier of two."""
    if recorded and now and (recorded.t, recorded.agent, recorded.what) == (now.t, now.agent, now.what):
        where, old, new = _deepest(plain(recorded.value, ""), plain(now.value, ""))
        name = _column(episode, recorded, where)
        what = f"{recorded.what}{f': {where}' if where else ''}{f' ({name})' if name else ''}"
        return Difference(recorded.t / NS, recorded.agent, what, old, new)
    if recorded and (now is None or recorded[:2] <= now[:2]):
        return Difference(recorded.t / NS, recorded.agent, recorded.what, _fact_text(recorded), NOTHING)
    assert now is not None
    return Difference(now.t / NS, now.agent, now.what, NOTHING, _fact_text(now))


def _fact_text(fact: Fact) -> str:
    text = json.dumps(plain(fact.value, fact.what))
    return text if len(text) <= 200 else f"{text[:197]}..."


def _deepest(recorded: Any, now: Any, path: str = "") -> tuple[str, Any, Any]:
    """The first place inside two values where they differ: `vector[2]`, and what stands there."""
    if isinstance(recorded, dict) and isinstance(now, dict) and recorded.keys() == now.keys():
        pairs = [(f"{path}.{key}" if path else key, recorded[key], now[key]) for key in recorded]
    elif isinstance(recorded, list) and isinstance(now, list) and len(recorded) == len(now):
        pairs = [(f"{path}[{i}]", a, b) for i, (a, b) in enumerate(zip(recorded, now, strict=True))]
    else:
        return path, recorded, now
    return next(_deepest(a, b, where) for where, a, b in pairs if json.dumps(a) != json.dumps(b))


def _column(episode: Episode, fact: Fact, where: str) -> str:
    """The name of an observation's element."""
    if not (fact.what.startswith("ObservationReply ") and where.startswith("vector[")):
        return ""
    names, place = episode.world.columns.get(fact.agent, []), int(where[len("vector[") : -1])
    return names[place] if place < len(names) else ""


RECORD = "the recorded episode"
"""What names the environment of an episode that is not a file."""


@dataclass(frozen=True)
class Replay:
    """What came of running an episode again.

    Attributes: difference: the first one, or None if every bit is the same; changed: packages of another version than
        then: {name: (then, now)}; a difference may come from them.
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

    Args: trace: the episode, or where it is (a file, or the folder of `heron trace`); policy: where the run folder or
        the policy's file lies now, if it was moved; it must hold what it held then; policies: the policies themselves,
        for an episode that was recorded with such; fixture: where the answers of endpoints lie, if not beside the
        trace; none is asked again; any_version: also under another version of heron_env than the episode's; trust: what
        the record and its run folder name, "module:function", where it is not registered.

    Raises TraceError for a trace of another version or damaged, or whose policy is gone; UnknownEnvironment, Untrusted.
    """
    recorded = trace if isinstance(trace, Episode) else file.read(path_of(trace, "replay(trace)"))
    setting = recorded.setting
    with trusting(*listed(trust)):
        env, policies = _prepared(trace, recorded, policy, policies, fixture, any_version)
    now = record(env, policies, setting)
    changed = _changed(setting.versions)
    return Replay(recorded, now, first_difference(recorded, now), changed)


def film_again(trace: str | Path) -> EpisodeResult:
    """Run the recorded episode again, with frames to watch. Raises as `replay`."""
    recorded = file.read(path_of(trace, "film_again(trace)"))
    setting = recorded.setting
    setting = replace(setting, options=filmable(setting.env_id, setting.options))
    env, policies = _prepared(trace, replace(recorded, setting=setting), None, None, None, False)
    result: EpisodeResult = env.run_event_driven(
        policies, seed=setting.seed, t_end=setting.t_end, wait=setting.wait, schedule=schedule_of(setting.schedule),
        record=FILMED, **happenings_of(setting),
    )  # fmt: skip
    if result.footage is not None:
        result.footage.title = f"{setting.env_id}, recorded, seed {setting.seed}"
    return result


def _prepared(
    trace: Episode | str | Path, recorded: Episode, policy: str | None, policies: Policies | None,
    fixture: str | Path | None, any_version: bool,
) -> tuple[Any, Policies]:  # fmt: skip
    """Environment and policies of a recorded episode, which came from `trace`."""
    setting = recorded.setting
    then = setting.versions.get("heron_env")
    if then != __version__ and not any_version:
        raise TraceError(
            f"this episode was recorded by heron_env {then}, this is {__version__}: install that version, "
            "or compare anyway with `heron replay --any-version` (any_version=True)"
        )
    named_by = RECORD if isinstance(trace, Episode) else str(trace)
    env = rebuilt(setting, named_by)
    _require_same_data(setting, env)
    if not isinstance(env, BlackBox) and (differs := recording_misfit(recorded.world.columns, env)):
        raise TraceError(f"{differs}; run it with the environment that was recorded, or record the episode again")
    if policies is None:
        decided = setting.policy
        if policy is not None and decided.kind not in ("run", "python"):
            raise TraceError(f"policy={policy!r}: this episode was not recorded with a file or folder; leave it out")
        with on_behalf_of(named_by):
            alone = setting.arrivals is not None and decided.kind == "given"  # all that decided is in the record
            named = replace(decided, name=policy or decided.name)
            policies = {} if alone else policies_of(named, env, setting.seed)
        if setting.arrivals is not None:
            policies = {**policies, **setting.arrivals.policies()}
    if setting.fixture:
        policies = {**policies, **replayed_answers(setting, env, _fixture(trace, fixture))}
    return env, policies


def rebuilt(setting: TraceSetting, named_by: str = RECORD) -> Any:
    """Built as then: rules compiled if they were, since that may change the last bits. Raises Untrusted."""
    spec = registry.spec(setting.env_id, named_by)
    env = spec.make(**setting.options)
    if env.compiled == setting.compiled:
        return env
    return spec.make(**{**setting.options, "compile": setting.compiled})


def _require_same_data(setting: TraceSetting, env: Any) -> None:
    """Raise TraceError where a file that the environment is built from is not what it was."""
    now = env.data_files()
    for name in dict.fromkeys([*setting.data, *now]):
        if setting.data and setting.data.get(name) != now.get(name):
            text = "has changed since" if name in now and name in setting.data else "is not named by both"
            raise TraceError(
                f"the data file {name!r} {text}: the episode was recorded from other data; restore the file, "
                "or record the episode again"
            )


def _fixture(trace: Episode | str | Path, fixture: str | Path | None) -> Path:
    if fixture is not None:
        return path_of(fixture, "replay(fixture)")
    if isinstance(trace, Episode):
        raise TraceError(
            "endpoints decided in this episode: name the file of their answers, replay(episode, fixture=path)"
        )
    path = Path(trace)
    return (path if is_folder(path) else path.parent) / NAME


def _changed(then: dict[str, str]) -> dict[str, tuple[str, str]]:
    now = versions()
    names = dict.fromkeys([*then, *now])
    return {n: (then.get(n, "none"), now.get(n, "none")) for n in names if then.get(n) != now.get(n)}
