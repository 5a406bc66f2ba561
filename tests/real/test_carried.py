"""A run over real sockets is repeated from its record bit for bit; in lockstep it is the synchronous one."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from real.carried_kit import NETWORKS, RECORD, SETTINGS, Quick, Setting
from real.real_policies import Trader, Wave, market_policies, spread

from heron_env import HeronEnv, ScheduleConfig, SystemAgent, TerminationConfig
from heron_env.errors import ConfigError, HeronError, RunInterrupted, ScheduleError, TraceError
from heron_env.real import bus
from heron_env.real.carrier import Carrier
from heron_env.real.hub import RealRun
from heron_env.real.record import read_record
from heron_env.scheduling.arrivals import Arrivals, Passage


def url_for(transport: str, request: pytest.FixtureRequest) -> str:
    """Of the broker, where the transport has one."""
    return str(request.getfixturevalue("mosquitto").url) if transport == "mqtt" else ""


WORLDS = ["spread", "grid", "market", "markets"]


RUNS = [("talk", "udp"), ("plans", "udp"), ("plans", "tcp")]
RUNS += [(name, transport) for transport in NETWORKS for name in WORLDS]


@pytest.mark.parametrize(
    ("name", "transport"),
    [pytest.param(*run, marks=() if run[0] in ("market", "plans") else pytest.mark.e2e) for run in RUNS],
)
def test_a_run_is_repeated_bit_for_bit(name: str, transport: str, quick: Quick, request: pytest.FixtureRequest) -> None:
    url, enough = url_for(transport, request), lambda run: sum(map(len, run.result.actions.values())) > 2
    quick.repeated(name, quick.run(name, transport, url, enough=enough))


@pytest.mark.parametrize("name", ["market", "markets"])
def test_a_clock_that_stands_still_repeats_too(name: str, quick: Quick, monkeypatch: pytest.MonkeyPatch) -> None:
    """What comes at one time, or before what has been done, gets times of its own after that."""
    virtual = Carrier.virtual
    monkeypatch.setattr(Carrier, "virtual", lambda carrier, ns: virtual(carrier, ns) // 400_000_000 * 400_000_000)
    run = quick.run(name, "udp", build={"max_steps": 15})
    quick.repeated(name, run, build={"max_steps": 15})


@pytest.mark.parametrize("name", ["grid", "prompt market"])
@pytest.mark.parametrize("transport", NETWORKS)
def test_in_lockstep_it_is_the_synchronous_one(
    name: str, transport: str, quick: Quick, request: pytest.FixtureRequest
) -> None:
    run = quick.run(name, transport, url_for(transport, request), lockstep=True, build={"max_steps": 4})
    setting = SETTINGS[name]
    env = setting.build(max_steps=4)
    other = env.run_synchronous(setting.policies(), seed=run.arrivals.seed, record=RECORD)
    assert other.same_course(run.result) and other.letters.sent == run.result.letters.sent
    assert quick.repeated(name, run, build={"max_steps": 4}).same_course(other)


class Windy(HeronEnv):
    """Says what links do."""

    def link(self, world: Any, sender: int, receiver: int) -> tuple[float, float]:
        return 2.0, 0.0


REFUSED = [
    ({"schedule": ScheduleConfig(obs_delay=0.1)}, "a real network delivers its messages: set obs_delay, act_delay"),
    ({"schedule": {"agent_1": ScheduleConfig(msg_delay=0.1)}}, "the schedule of 'agent_1' has delays"),
    ({"schedule": ScheduleConfig(act_delay=0.1)}, "has delays"),
    ({"schedule": ScheduleConfig(loss=0.1)}, "jitter, losses, a medium or a transport"),
    ({"schedule": ScheduleConfig(min_delay=0.1)}, "and min_delay to 0"),
]


@pytest.mark.parametrize(("options", "words"), REFUSED, ids=[str(i) for i in range(len(REFUSED))])
def test_no_schedule_delays_what_a_network_carries(options: dict[str, Any], words: str) -> None:
    policies = {"*": Wave("all", 2)}
    with pytest.raises(ScheduleError, match=words):
        spread().start_event_driven(policies, arrivals=Arrivals(0, {"agent_0": "a node"}), **options)


def test_nor_does_a_link_hook() -> None:
    env = Windy(SystemAgent("boss", Trader("trader")), dt=1.0, termination=TerminationConfig(max_steps=3))
    with pytest.raises(ConfigError, match=r"Windy.link\(\) says what links do, and a real network delivers here"):
        env.start_event_driven({"*": Wave("trader")}, arrivals=Arrivals(0, {"trader": "a node"}))


@pytest.fixture(scope="module")
def recorded() -> RealRun:
    """A run with losses and copies, as a file, of which records are changed: `python -m real.many --record` made it."""
    _, arrivals = read_record(Path(__file__).with_name("data") / "market.jsonl")
    return RealRun(repeat(SETTINGS["market"], arrivals), arrivals, None)


def changed(recorded: RealRun, kind: str, came: Callable[[Passage], tuple[int, ...]], *, times: int = 3) -> Arrivals:
    """The record with the arrivals of some messages of a link changed."""
    messages = dict(recorded.arrivals.messages)
    some = [id for id, each in messages.items() if each.link == kind and each.came and each.came[0] < 5e9][:times]
    assert some, kind
    return replace(
        recorded.arrivals, messages=messages | {i: replace(messages[i], came=came(messages[i])) for i in some}
    )


def later(passage: Passage) -> tuple[int, ...]:
    return tuple(ns + 1_700_000_000 for ns in passage.came)


def renumbered(record: Arrivals) -> Arrivals:
    """One message has another number."""
    messages = dict(record.messages)
    messages[max(messages) + 1000] = messages.pop(sorted(messages)[len(messages) // 2])
    return replace(record, messages=messages)


def answered(record: Arrivals, agent: str, at: int) -> Arrivals:
    """One answer counted so much later, ns."""
    answers = list(record.answers[agent])
    place = next(i for i, answer in enumerate(answers) if i > 1 and answer is not None)
    answers[place] = replace(answers[place], at=answers[place].at + at)  # type: ignore[type-var, union-attr]
    return replace(record, answers={**record.answers, agent: tuple(answers)})


PLANTED: dict[str, Callable[[RealRun], Arrivals]] = {
    "arrivals moved": lambda run: changed(run, "proxy to office", later),
    "letters moved": lambda run: changed(run, "office to free", later),
    "commands moved": lambda run: changed(run, "office to clerk_0", later),
    "an arrival dropped": lambda run: changed(run, "proxy to free", lambda passage: (), times=1),
    "a copy more": lambda run: changed(run, "proxy to free", lambda p: (*p.came[:1], p.came[0] + 1000), times=3),
    "another number": lambda run: renumbered(run.arrivals),
    "another seed": lambda run: replace(run.arrivals, seed=run.arrivals.seed + 1),
    "an answer later": lambda run: answered(run.arrivals, "office", 900_000_000),
    "an answer before its question": lambda run: answered(run.arrivals, "office", -10_000_000_000),
    "begun anew": lambda run: replace(run.arrivals, begins={"office": (3,)}),
    "another place": lambda run: replace(run.arrivals, places={**run.arrivals.places, "meter": "office"}),
    "ended before": lambda run: replace(run.arrivals, until=3_000_000_000),
}


@pytest.mark.parametrize("name", PLANTED)
def test_a_changed_record_is_noticed(name: str, recorded: RealRun) -> None:
    with pytest.raises(TraceError):
        repeat(SETTINGS["market"], PLANTED[name](recorded))


def repeat(setting: Setting, record: Arrivals, policies: Any = None, build: Any = None, **more: Any) -> Any:
    env = setting.build(**(build or {}))
    return env.run_event_driven(
        policies or setting.policies(), arrivals=record, record=RECORD, **{**setting.more, **more}
    )


@pytest.mark.parametrize(
    "other",
    [
        {"policies": {**market_policies(), "free": Wave("another")}},
        {"build": {"observe_age": False}},
        {"build": {"max_steps": 7}},
        {"build": {"dt": 0.9}},
        {"schedule": ScheduleConfig(on_missing="noop")},
        {"schedule": ScheduleConfig(tick_interval=0.5)},
        {"schedule": ScheduleConfig(own_rows="local")},
        {"t_end": 5.0},
        {"seed": 6},
    ],
    ids=lambda other: next(iter(other)),
)
def test_another_run_is_noticed(other: dict[str, Any], recorded: RealRun) -> None:
    with pytest.raises(HeronError) as caught:
        repeat(SETTINGS["market"], recorded.arrivals, **other)
    assert isinstance(caught.value, TraceError), caught.value


def test_what_no_event_reads_changes_nothing(recorded: RealRun) -> None:
    """Names of links are for people; what comes after the end is under way, whenever it would come."""
    record = recorded.arrivals
    end = int(recorded.result.end_time * 1e9)
    messages = {
        id: replace(each, link="anywhere", came=tuple(ns + (ns > end) * 1_000_000 for ns in each.came))
        for id, each in record.messages.items()
    }
    assert repeat(SETTINGS["market"], replace(record, messages=messages)).same_course(recorded.result)


def test_recorded_answers_stand_for_policies_that_cannot_be_asked_again(recorded: RealRun) -> None:
    again = repeat(SETTINGS["market"], recorded.arrivals, recorded.arrivals.policies())
    assert again.same_course(recorded.result) and again.letters == recorded.result.letters


@pytest.mark.parametrize("fault", ["own", "ages"])
def test_who_decided_on_something_else_is_noticed(fault: str, quick: Quick, monkeypatch: pytest.MonkeyPatch) -> None:
    """The hub knows what a node must have seen: here what it is told of itself, or of ages, is wrong."""
    made = bus.Ask

    def wrong(*fields: Any, **more: Any) -> Any:
        values = list(fields)
        place = 5 if fault == "own" else 6
        values[place] = None if fault == "own" else [age + 0.001 for age in values[place]]
        return made(*values, **more)

    monkeypatch.setattr(bus, "Ask", wrong)
    with pytest.raises(RunInterrupted, match="decided on another observation than the proxy sent"):
        quick.run("market", "udp", relay={"delay": 0.02})
