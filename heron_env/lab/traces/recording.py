"""Runs an episode in the event-driven clock and keeps a record of it."""

from __future__ import annotations

import os
import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from heron_env import registry
from heron_env.core.layout import GLOBAL
from heron_env.core.policy import Origin, Policies
from heron_env.envs.event.clock import EventRun
from heron_env.envs.event.context import ends
from heron_env.envs.event.message_log import copies
from heron_env.errors import TraceError
from heron_env.given import mapping, path_of, whole
from heron_env.injection.recording import Fixture, Recording
from heron_env.lab.external import FixturePolicy, answers_of, numbered, side_by_side
from heron_env.lab.policies import About, External, digest_of, policy_spec
from heron_env.lab.runs import versions
from heron_env.lab.sweep.play import injected
from heron_env.lab.traces.episode import (
    PHYSICS,
    PROXY,
    Episode,
    Event,
    SentMessage,
    TraceOutcome,
    TraceSetting,
    TraceWorld,
    content,
    happening_entries,
    happenings_of,
    identity_of,
    policies_of,
    schedule_entries,
    schedule_of,
    written_options,
)
from heron_env.lab.traces.file import TimeSeries
from heron_env.scheduling.disturbances import Disturbance
from heron_env.scheduling.drawn import AnySchedule
from heron_env.scheduling.events import ConditionMonitor, CustomEvent
from heron_env.scheduling.messages import Message, ObservationCopy
from heron_env.trust import named, trusting

if TYPE_CHECKING:
    from heron_env.envs.base import HeronEnv

NAME: Final = "fixture.jsonl"
Play = Callable[[Policies], Episode]


def record_answers(
    env: HeronEnv, policies: Policies | External, setting: TraceSetting, fixture: Path | None, play: Play
) -> Episode:
    """Play an episode with the agents that endpoints play, if there are any, and keep their answers in `fixture`.

    Several endpoints have files of their own, `fixture-2.jsonl` and so on. Until the episode is over they are called
    `fixture.part.jsonl`; one that was cut off goes on from there.

    Raises TraceError where answers come and `fixture` is None.
    """
    groups = {agent: group for group, agents in env.groups.items() for agent in agents}
    named = {} if isinstance(policies, External) else policies
    own = {a: p for a, p in injected(env).items() if a not in named and groups[a] not in named}
    if not isinstance(policies, External) and not own:
        return play(policies)
    if fixture is None:
        raise TraceError(
            "endpoints decide in this episode, and without their answers it cannot be replayed; name a file for "
            "them: record_episode(..., fixture='fixture.jsonl')"
        )
    part = fixture.with_stem(f"{fixture.stem}.part")
    about = About(setting.env_id, setting.options, record=part)
    chosen: dict[str, Any] = dict(
        policies.asked(env, setting.seed, about) if isinstance(policies, External) else policies
    )
    recordings = {id(p): p for p in chosen.values() if isinstance(p, Recording)}
    for agent, policy in own.items():
        if id(policy) not in recordings:
            recordings[id(policy)] = Recording(getattr(policy, "policy", policy), numbered(part, len(recordings)))
        chosen[agent] = recordings[id(policy)]
    done = False
    try:
        episode = play(chosen)
        done = True
    finally:
        for recording in recordings.values():
            recording.close(finished=done)
    copies = side_by_side(Path(policies.path)) if isinstance(policies, FixturePolicy) else []
    files = _placed(copies, [recording.path for recording in recordings.values()], fixture)
    return replace(episode, setting=replace(setting, fixture=digest_of(files)))


def _placed(copies: list[Path], moved: list[Path], fixture: Path) -> list[Path]:
    """Put the files where the trace keeps them, in place of what was there; their names."""
    fixture.parent.mkdir(parents=True, exist_ok=True)
    before, names = side_by_side(fixture), [numbered(fixture, n) for n in range(len(copies) + len(moved))]
    for source, name in zip([*copies, *moved], names, strict=True):
        if source in moved:
            os.replace(source, name)
        elif not (name.exists() and name.samefile(source)):
            shutil.copyfile(source, name)
    for path in set(before) - set(names):
        path.unlink()
    return names


def replayed_answers(setting: TraceSetting, env: HeronEnv, fixture: Path) -> Policies:
    """The answers of the recorded episode, from its fixtures. Raises TraceError where they are gone or changed."""
    files = side_by_side(fixture)
    if not files:
        raise TraceError(
            f"{fixture}: the answers of the endpoints in this episode are not there; copy them back beside the trace, "
            "or name where they lie now with --fixture"
        )
    if digest_of(files) != setting.fixture:
        raise TraceError(f"{fixture}: holds other answers than those of this episode; restore it")
    return answers_of(files, env, setting.seed, About(setting.env_id, setting.options))


def answer_counts(fixture: Path) -> dict[str, int]:
    """Answers by origin and code, `fallback TIMEOUT`."""
    result = [Fixture(path).decisions.values() for path in side_by_side(fixture)]
    return dict(sorted(Counter(Origin(one.source, one.code).words for of in result for one in of).items()))


def record_episode(
    env_id: str | Callable[..., HeronEnv],
    policy: str | Policies,
    *,
    seed: int = 0,
    t_end: float | None = None,
    wait: float | None = None,
    schedule: AnySchedule = None,
    options: Mapping[str, Any] | None = None,
    disturbances: Iterable[Disturbance] = (),
    monitors: Iterable[ConditionMonitor] = (),
    events: Iterable[CustomEvent] = (),
    fixture: str | Path | None = None,
    series: TimeSeries | None = None,
) -> Episode:
    """Run one episode and record it.

    Args:
        env_id: a registered environment, or "module:function" of one's own, or that function.
        policy: a run folder, the name of a baseline, the address of an endpoint, an agents.yaml, a fixture, or policies
            as `run_event_driven` takes them.
        seed, t_end, wait, schedule: as in `run_event_driven`; schedule None: the environment's own.
        options: of the environment; plain values, since they are written down.
        disturbances, monitors, events: as in `run_event_driven`; a monitor's `when`, a function, can't be written down.
        fixture: the file that keeps what endpoints answer, `fixture.jsonl` beside the trace; needed where some are
            asked.
        series: filled with the episode's time series.

    Returns:
        The record: messages, events, rewards and actions (times in ns, or in s where they are floats).

    Raises:
        UnknownEnvironment, ConfigError, RunFolderError: environment, policy or an option is none.
        TraceError: something can't be written down.

    >>> record_episode("heron/BatteryGrid-v0", "do nothing", t_end=2.0).outcome.end_time
    2.0
    """
    chosen = written_options(mapping({} if options is None else options, "record_episode(options)"))
    whole(seed, "record_episode(seed)")
    env_id = registry.id_of(env_id, "record_episode(env_id)")
    env = registry.make(env_id, **chosen)
    setting = TraceSetting(
        env_id=env_id,
        options=chosen,
        compiled=env.compiled,
        policy=identity_of(policy),
        seed=seed,
        schedule=schedule_entries(env.schedule if schedule is None else schedule),
        t_end=t_end,
        wait=wait,
        versions=versions(),
        disturbances=happening_entries(disturbances),
        monitors=happening_entries(monitors),
        events=happening_entries(events),
        data=dict(env.data_files()),
    )
    with trusting(*named(env_id)):
        spec = policy_spec(policy) if isinstance(policy, str) else None
        resolved = policies_of(setting.policy, env, seed) if isinstance(policy, str) else policy
        path = None if fixture is None else path_of(fixture, "record_episode(fixture)")
        deciding = spec if isinstance(spec, External) else resolved
        return record_answers(env, deciding, setting, path, lambda policies: record(env, policies, setting, series))


def record(env: HeronEnv, policies: Policies, setting: TraceSetting, series: TimeSeries | None = None) -> Episode:
    """Run the episode of `setting` in `env`, which was built for it; `series` is filled on the way."""
    run = env.start_event_driven(
        policies, seed=setting.seed, t_end=setting.t_end, wait=setting.wait,
        schedule=schedule_of(setting.schedule), trace=True, **happenings_of(setting),
    )  # fmt: skip
    if series is None:
        run.until(None)
    else:
        series.watch(run)
    outcome, sent = _outcome(run), sorted(_sent(run), key=lambda m: (m.id, m.place is None, m.place or 0))
    episode = Episode(setting, _world(run), outcome, sent, list(_events(run)))
    _balance(run, episode)
    return episode


def _world(run: EventRun) -> TraceWorld:
    env, plan = run.env, run.env.simulation.model.plan
    ids, parent = env.hierarchy.ids, env.hierarchy.parent
    decides = {ids[rank]: plan.views[rank] for rank in sorted(run.agents.deciding)}
    owners = [*ids, GLOBAL]
    return TraceWorld(
        agents=list(ids),
        parents={agent: ids[parent[rank]] if parent[rank] >= 0 else "" for rank, agent in enumerate(ids)},
        decides=list(decides),
        columns={agent: view.received_names for agent, view in decides.items()},
        sources={agent: [owners[rank] for rank in view.sources] for agent, view in decides.items()},
        dt_ns=env.dt_ns,
        substeps=env.physics_substeps,
    )


def _outcome(run: EventRun) -> TraceOutcome:
    result = run.result()
    return TraceOutcome(
        rewards={agent: [(float(t), float(value)) for t, value in earned] for agent, earned in result.rewards.items()},
        actions={agent: [(float(t), values.tolist()) for t, values in done] for agent, done in result.actions.items()},
        terminated={agent: bool(ended) for agent, ended in result.terminated.items()},
        truncated={agent: bool(ended) for agent, ended in result.truncated.items()},
        end_time=result.end_time,
        kpis={name: float(value) for name, value in result.kpis.items()},
        cancelled_effects=result.cancelled_effects,
        notes=list(result.notes),
        unfinished_effects=result.unfinished_effects,
        masked=dict(result.masked),
        media=result.media,
        plans=result.plans,
    )


def _events(run: EventRun) -> Iterator[Event]:
    ids, trace = run.env.hierarchy.ids, run.context.result.trace
    assert trace is not None
    for r in trace:
        if not isinstance(r.payload, Message):
            agent = ids[r.agent] if hasattr(r.payload, "agent") or r.kind == "AgentTick" else PHYSICS
            yield Event(r.index, r.t_ns, r.kind, agent, r.number, r.cause, content(r.payload), r.cancelled, r.masked)


def _sent(run: EventRun) -> Iterator[SentMessage]:
    names = [*run.env.hierarchy.ids, PHYSICS, PROXY]  # the proxy's rank is -1, that of a black box -2
    for message, arrives, fate, place, cause, _ in copies(run.context):
        sender, receiver = ends(message, run.env.simulation)
        more = {"as_of": [message.number * run.env.dt_ns]} if isinstance(message, ObservationCopy) else {}
        yield SentMessage(
            message.id, type(message).__name__, names[sender], names[receiver], names[message.agent], message.number,
            message.sent, arrives, fate, place, cause, {**content(message), **more},
        )  # fmt: skip


def _balance(run: EventRun, episode: Episode) -> None:
    """Our own books against those of the post office: not one copy may be missing."""
    booked, counts = run.context.broker.total(), episode.counts
    assert (booked.lost, booked.discarded, booked.in_flight, booked.dropped_duplicates) == (
        counts["lost"], counts["discarded"], counts["in flight"], counts["second copy"],
    ), f"{booked} but {counts}"  # fmt: skip
    assert booked.delivered == counts["delivered"] + counts["second copy"], f"{booked} but {counts}"
