"""The law of the event clock: a run is what the plain one yields, whatever the network does to it."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
from laws.checks import RECORD
from laws.plain_clock import SECOND, PlainClock
from strategies import Recipe

from heron_env.testing import clock


def check_plain_clock(
    recipe: Recipe,
    schedule: Any = None,
    *,
    seed: int = 0,
    wait: float | None = None,
    t_end: float | None = None,
    disturbances: Any = (),
    looks: int = 3,
    voices: Any = None,
) -> PlainClock:
    """Truth, knowledge, what was shown and done and when, scores, ends, ages and accounts are those of the plain clock.

    Args: looks: how often in a step the two are stopped and compared; voices: makes policies that know who asks of the
        others, `voices(policies)` (laws.voices).
    """
    env, other = recipe.build(watch=True), recipe.build(watch=True)
    deciding, others = recipe.policies(env), recipe.policies(other)
    if voices is not None:
        deciding, others = voices(deciding), voices(others)
    given: dict[str, Any] = {"schedule": schedule, "seed": seed, "wait": wait, "t_end": t_end}
    given["disturbances"] = disturbances
    run = env.start_event_driven(deciding, trace=True, record=RECORD, **given)
    plain = PlainClock(other, others, **given)
    for voice in set_of(others) if voices is not None else ():
        voice.begin(seed, 0)
    for look in range(looks * recipe.max_steps + 1):
        until = look * env.dt_ns // looks
        run.until(until / SECOND)
        plain.run(until)
        same_state(run, plain, f"at {until / SECOND} s")
    run.until(None)
    plain.run(None)
    same_state(run, plain, "at the end")
    same_events(run, plain)
    same_result(run.result(), plain)
    same_boundaries(env, other)
    if voices is not None:
        same_answers(run, plain, deciding, others)
        return plain
    for agent, policy in deciding.items():
        assert as_bytes(policy.log) == as_bytes(others[agent].log), f"{agent} decided otherwise"
    return plain


def check_untraced(recipe: Recipe, schedule: Any, *, looks: int = 3, **given: Any) -> None:
    """A run that keeps no trace stands where the traced one stands, whenever they are looked at; accounts among it."""
    given = {"seed": 0, **given}
    traced, untraced = (
        env.start_event_driven(recipe.policies(env), schedule=schedule, trace=trace, record=RECORD, **given)
        for env, trace in ((recipe.build(), True), (recipe.build(), False))
    )
    for look in range(looks * recipe.max_steps + 1):
        until = look * traced.env.dt_ns // looks / SECOND
        states = [run.until(until) or run.state() for run in (traced, untraced)]
        mine, theirs = ({name: as_bytes(value) for name, value in s.items() if name != "time"} for s in states)
        assert mine == theirs, f"at {until} s a run without a trace stands elsewhere: {theirs}, traced {mine}"
    traced.until(None), untraced.until(None)
    mine, theirs = traced.result(), untraced.result()
    assert mine.same_course(theirs), "without a trace all went another way"
    assert (mine.messages, mine.end_time) == (theirs.messages, theirs.end_time), "without a trace the accounts differ"


def as_bytes(values: Any) -> Any:
    """Numbers and arrays, bit for bit; anything else as it is."""
    if isinstance(values, np.ndarray):
        return (values.dtype.str, values.tobytes())
    if isinstance(values, dict):
        return {name: as_bytes(value) for name, value in values.items()}
    if isinstance(values, tuple | list):
        return tuple(map(as_bytes, values))
    return values


def same_state(run: Any, plain: PlainClock, when: str) -> None:
    """The truth, the cache and since when it is known, who is alive, and what became of the messages."""
    env, simulation = run.env, run.env.simulation
    for name, mine, theirs in (
        ("truth", simulation.truth, plain.simulation.truth),
        ("cache", env.proxy.cache[: len(plain.cache)], plain.cache),
    ):
        differ = np.flatnonzero(mine.view(np.int64) != theirs.view(np.int64))
        told = [(simulation.model.layout.full_names[i], mine[i], theirs[i]) for i in differ[:5]]
        assert not told, f"{when} the {name} differs from the plain clock's: {told}"
    bits = env.proxy.cache[len(plain.cache) :]
    assert bits.tolist() == plain.sight.all_told(plain.known).tolist(), f"{when} others are in sight at the proxy"
    assert env.proxy.as_of.tolist() == plain.as_of.tolist(), f"{when} the cache is of another time"
    assert simulation.alive == plain.simulation.alive, f"{when} others are alive"
    counts, state = plain.messages(), run.state()["messages"]
    assert {name: getattr(state, name) for name in counts} == counts, f"{when} the accounts differ"
    assert counts["sent"] == sum(counts[name] for name in ("delivered", "lost", "discarded", "in_flight"))


def happened(trace: Any) -> Iterator[tuple[Any, ...]]:
    """The records of a trace in the words of the plain clock: (ns, kind, rank, number, content, cancelled?)."""
    for record in trace:
        p = record.payload
        if record.kind in ("Offered", "Transmit"):
            continue  # how something waits is told by when it comes
        match p:
            case clock.Simulation():
                content: Any = p.substep
            case clock.CycleToken():
                content = int(p.leg)
            case clock.ObservationRequest():
                content = p.turn
            case clock.ObservationReply():
                content = (p.vector, p.as_of)
            case clock.StateReport():
                content = (p.row, p.as_of, p.values)
            case clock.SharedState():
                content = (p.edge, p.values)
            case clock.Command() | clock.ActionEffect() | clock.Answered():
                content = p.values
            case _:
                content = None
        yield record.t_ns, record.kind, record.agent, record.number, content, record.cancelled


def told(
    plain: PlainClock, ns: int, kind: str, rank: int, number: int, content: Any, cancelled: bool
) -> tuple[Any, ...]:
    """What a trace has of an event of the plain clock: behind a row who sees it, and nan for what is hidden."""
    if kind in ("Disturbed", "Settle"):
        content = None
    elif kind == "StateReport":
        row, as_of, values, bits, *_ = content
        content = row, as_of, np.concatenate([values, plain.sight.told(row, bits)])
    elif kind == "ObservationReply":
        (received, as_of, unseen), view = content, plain.views[rank]
        received = received.copy()
        received[np.isin(plain.simulation.model.layout.owner_of[view.columns], [*unseen])] = np.nan
        content = received, as_of
    return ns, kind, rank, number, content, cancelled


def same_events(run: Any, plain: PlainClock) -> None:
    """The same things happened at the same times; the order of those that nobody can tell apart is free."""
    mine = sorted(map(as_bytes, happened(run.context.result.trace)), key=repr)
    theirs = sorted((as_bytes(told(plain, *event)) for event in plain.seen), key=repr)
    for one, two in zip(mine, theirs, strict=False):
        assert one == two, f"what happened differs: {one}, plainly {two}"
    assert len(mine) == len(theirs), f"so many things happened: {len(mine)}, plainly {len(theirs)}"


def same_result(result: Any, plain: PlainClock) -> None:
    """Scores, ends, effects, what was shown, ages, latencies and what was cancelled."""
    for rank, agent in enumerate(plain.env.hierarchy.ids):
        assert result.rewards[agent] == plain.rewards[rank], f"{agent} was scored otherwise"
        assert result.terminated[agent] == plain.terminated[rank], f"{agent} terminated otherwise"
        assert result.truncated[agent] == plain.truncated[rank], f"{agent} was truncated otherwise"
        assert as_bytes(result.actions.get(agent, [])) == as_bytes(plain.effects[rank]), f"{agent} acted otherwise"
        assert as_bytes(result.observations.get(agent, [])) == as_bytes(plain.shown[rank]), f"{agent} saw otherwise"
        for name, found in (("staleness", plain.ages), ("latency", plain.latency)):
            if agent in getattr(result, name):
                same_distribution(getattr(result, name)[agent], found[rank], f"{name} of {agent}")
    cancelled, unfinished = plain.effects_never_fallen()
    assert result.unfinished_effects == unfinished, f"{result.unfinished_effects} unfinished, plainly {unfinished}"
    assert result.cancelled_effects == cancelled, f"{result.cancelled_effects} effects cancelled, plainly {cancelled}"


def same_answers(run: Any, plain: PlainClock, deciding: Any, others: Any) -> None:
    """The same questions in the same order, the same observations missed, and each reply accounted for."""
    ids, result = plain.env.hierarchy.ids, run.result()
    for voice, other in zip(set_of(deciding), set_of(others), strict=True):
        mine, theirs = (sorted(each.log, key=lambda asked: asked.agent) for each in (voice, other))
        for one, two in zip(mine, theirs, strict=False):
            same_question(one, two)
        assert len(voice.log) == len(other.log), f"{len(voice.log)} questions, plainly {len(other.log)}"
    assert result.busy == {agent: plain.busy[ids.index(agent)] for agent in deciding}, "others were busy"
    replies = Counter(record.agent for record in run.context.result.trace if record.kind == "ObservationReply")
    for agent, voice in deciding.items():
        asked = sum(question.agent == agent for question in voice.log)
        came, dropped = replies[ids.index(agent)], plain.dropped[ids.index(agent)]
        assert asked + result.busy[agent] + dropped == came, f"an observation of {agent} is accounted for nowhere"


def set_of(policies: Any) -> list[Any]:
    """Each policy object once."""
    return list({id(policy): policy for policy in policies.values()}.values())


def same_question(one: Any, two: Any) -> None:
    """All that a policy is asked, bit for bit; spaces are equal."""
    for name in ("agent", "number", "turn", "time", "names", "seed", "episode", "space", "letters"):
        mine, theirs = getattr(one, name), getattr(two, name)
        assert mine == theirs, f"{one.agent} was asked with {name}={mine!r}, or {theirs!r}"
    assert as_bytes(one.vector) == as_bytes(two.vector), f"{one.agent} was shown other numbers at {one.time} s"
    assert as_bytes(one.mask) == as_bytes(two.mask), f"{one.agent} was offered other choices at {one.time} s"


def same_distribution(told: Any, values: list[float], what: str) -> None:
    """Five numbers are those of these values."""
    assert told.count == len(values), f"{what}: {told.count} values, plainly {len(values)}"
    if values:
        numbers = [np.mean(values), np.median(values), np.quantile(values, 0.95), max(values)]
        assert np.allclose([told.mean, told.p50, told.p95, told.max], numbers, rtol=1e-12), f"{what} differs"


def same_boundaries(env: Any, other: Any) -> None:
    """The truth after every substep and at every boundary."""
    assert len(env.boundaries) == len(other.boundaries)
    for (time, substeps, truth), (_, others, theirs) in zip(env.boundaries, other.boundaries, strict=True):
        assert as_bytes(substeps) == as_bytes(others), f"in the step up to {time} s the truth went another way"
        assert as_bytes(truth) == as_bytes(theirs), f"at {time} s the truth differs"
