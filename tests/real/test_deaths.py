"""Who dies, hangs, fails or is interrupted: the run goes on or ends with words, and what there is of it repeats."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from real.carried_kit import SETTINGS, Quick
from real.real_policies import Failing, Unloadable, Unready, Wave
from real.wire_kit import broker, needs_broker

from heron_env import ScheduleConfig
from heron_env.errors import ConfigError, RunInterrupted, TraceError
from heron_env.real import bus, carried
from heron_env.real.carrier import Carrier
from heron_env.real.hub import Hub, RealRun
from heron_env.real.secret import new_secret
from heron_env.real.switchboard import Switchboard

pytestmark = pytest.mark.e2e
LONG: dict[str, Any] = {"build": {"max_steps": 14}}
IMPATIENT = "import sys; from heron_env.real import bus, node; bus.PING_S, node.ALONE_S = 0.05, 0.6; "
"""Before a node's own program."""


class Nodes:
    """The processes of a run: what each was started with, and itself."""

    def __init__(self, stack: ExitStack, begin: Callable[..., Any]) -> None:
        self._stack, self._begin = stack, begin
        self.all: list[tuple[tuple[Any, ...], Any]] = []

    @contextmanager
    def node_process(self, *arguments: Any) -> Iterator[Any]:
        """As carried.node_process."""
        with self._begin(*arguments) as process:
            self.all.append((arguments, process))
            yield process

    def send(self, number: int, place: int = 0) -> None:
        """Send one of them a signal."""
        self.all[place][1].send_signal(number)

    def start_again(self, place: int = 0) -> None:
        """Start one as it was."""
        self._stack.enter_context(self.node_process(*self.all[place][0]))


@pytest.fixture
def nodes(quick: Quick, monkeypatch: pytest.MonkeyPatch) -> Iterator[Nodes]:
    """Of the runs of this test; they notice soon that somebody is gone."""
    monkeypatch.setattr(carried, "CHILD", IMPATIENT + carried.CHILD)
    with ExitStack() as stack:
        made = Nodes(stack, carried.node_process)
        quick.before.append(made.all.clear)
        monkeypatch.setattr(carried, "node_process", made.node_process)
        yield made


@pytest.fixture
def at(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Does things at times of a run, s of its virtual time."""
    planned: list[tuple[float, Callable[..., object], tuple[Any, ...]]] = []
    take = Carrier.take

    def watched(carrier: Carrier, wait: float) -> bool:
        left = vars(carrier).setdefault("planned", planned.copy())
        while left and carrier.virtual(time.monotonic_ns()) >= left[0][0] * 1e9:
            _, happen, arguments = left.pop(0)
            happen(*arguments)
        return take(carrier, min(wait, 0.01)) or wait > 0.01

    monkeypatch.setattr(Carrier, "take", watched)
    return lambda t, happen, *arguments: planned.append((t, happen, arguments))


def last_decision(run: RealRun, agent: str) -> float:
    """When its last answer counted, s; 0: none did."""
    answers = run.arrivals.answers.get(agent, ())
    return max((answer.at for answer in answers if answer and answer.action is not None), default=0) / 1e9


@pytest.mark.parametrize("missing", ["hold", "noop"])
def test_without_a_dead_node_the_run_goes_on(missing: str, quick: Quick, nodes: Nodes, at: Callable[..., None]) -> None:
    at(5.0, nodes.send, signal.SIGKILL)
    more = {"schedule": ScheduleConfig(on_missing=missing)}
    run = quick.run("market", "udp", **LONG, **more, enough=lambda run: last_decision(run, "meter") > 7.0)
    assert run.result.end_time == 14.0 and last_decision(run, "office") < 10.0
    quick.repeated("market", run, **LONG, **more)


@pytest.mark.parametrize("transport", ["udp", "tcp"])
def test_a_node_that_is_started_again_decides_again(
    transport: str, quick: Quick, nodes: Nodes, at: Callable[..., None]
) -> None:
    at(4.0, nodes.send, signal.SIGKILL)
    at(4.5, nodes.start_again)
    run = quick.run(
        "market", transport, build={"max_steps": 20}, relay={"delay": 0.01, "ratio": 0.8},
        enough=lambda run: last_decision(run, "office") > 12.0 and min(run.arrivals.begins.get("office", (0,))) > 2,
    )  # fmt: skip
    assert set(run.arrivals.begins) == {"office", "gate"}
    quick.repeated("market", run, build={"max_steps": 20})
    with pytest.raises(
        TraceError, match=r"this is another run|came out otherwise"
    ):  # it remembers, and is another policy after that
        SETTINGS["market"].build(max_steps=20).run_event_driven(
            SETTINGS["market"].policies(),
            arrivals=replace(run.arrivals, begins={}),
            record=("actions",),
            **SETTINGS["market"].more,
        )


@pytest.mark.parametrize("until", ["it has proved itself", "it is on the network"])
def test_what_came_to_the_process_before_is_asked_of_nobody(
    until: str, quick: Quick, nodes: Nodes, at: Callable[..., None]
) -> None:
    """A hub that is slow sees an arrival and the death together, or with them the return, when it is late for all."""

    def replace_unseen() -> None:
        board: Switchboard = quick.inside[-1].context.delivery.board  # type: ignore[union-attr]
        name, before = nodes.all[0][0][1][0], board._sessions[nodes.all[0][0][1][0]]
        time.sleep(0.2)
        nodes.send(signal.SIGKILL)
        nodes.start_again()
        while (now := board._sessions.get(name, before)) is before or not (now.network or "proved" in until):
            time.sleep(0.01)

    at(4.0, replace_unseen)
    more = {"relay": {"delay": 0.02, "ratio": 0.5}, "build": {"max_steps": 30}, "speed": SETTINGS["market"].speed / 3}
    run = quick.run("market", "udp", **more)
    assert run.arrivals.begins and min(last_decision(run, agent) for agent in ("office", "gate")) > 20.0
    quick.repeated("market", run, build={"max_steps": 30})


def test_a_node_that_hangs_is_gone_until_it_proves_itself_anew(
    quick: Quick, nodes: Nodes, at: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bus, "SILENCE_S", 0.3)
    monkeypatch.setattr(bus, "PING_S", 0.05)
    at(4.0, nodes.send, signal.SIGSTOP)
    at(19.0, nodes.send, signal.SIGCONT)
    run = quick.run("market", "udp", build={"max_steps": 40}, enough=lambda run: last_decision(run, "gate") > 30.0)
    counted = [answer.at / 1e9 for answer in run.arrivals.answers["gate"] if answer and answer.action is not None]
    assert not any(8.0 < t < 18.9 for t in counted)
    assert "gate" in run.arrivals.begins
    quick.repeated("market", run, build={"max_steps": 40})


def test_who_was_held_up_itself_takes_nobody_for_dead(
    quick: Quick, nodes: Nodes, at: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bus, "SILENCE_S", 0.4)
    monkeypatch.setattr(bus, "PING_S", 0.05)
    boards, enter = list[Switchboard](), Switchboard.__enter__
    monkeypatch.setattr(Switchboard, "__enter__", lambda board: (boards.append(board), enter(board))[1])
    at(4.0, lambda: boards[0]._loop.call_soon_threadsafe(time.sleep, 0.6))
    run = quick.run("market", "udp", build={"max_steps": 40}, enough=lambda run: last_decision(run, "office") > 30.0)
    assert not run.arrivals.begins


@needs_broker
def test_a_broker_that_is_started_again_loses_messages(
    quick: Quick, nodes: Nodes, at: Callable[..., None], tmp_path: Path
) -> None:
    with broker(tmp_path) as ours:
        at(4.0, ours.kill)
        at(8.0, ours.start)
        quick.before.append(lambda: ours.process.poll() is None or ours.start())
        run = quick.run(
            "market", "mqtt", ours.url, build={"max_steps": 40},
            enough=lambda run: last_decision(run, "office") > 35.0 and run.result.messages.lost > 20,
        )  # fmt: skip
    assert not run.arrivals.begins
    quick.repeated("market", run, build={"max_steps": 40})


@pytest.mark.parametrize("lockstep", [False, True])
def test_an_interrupted_hub_has_a_record_that_repeats(
    lockstep: bool, quick: Quick, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, ask = [0], Carrier._ask

    def counting(carrier: Carrier, *question: Any) -> None:
        asked[0] += 1
        if asked[0] == 9:
            os.kill(os.getpid(), signal.SIGINT)
        ask(carrier, *question)

    monkeypatch.setattr(Carrier, "_ask", counting)
    run = quick.run("market", "udp", lockstep=lockstep)
    assert run.arrivals.until is not None and 0.0 < run.result.end_time < 8.0
    quick.repeated("market", run)


def test_an_interrupted_hub_does_not_wait_for_the_next_event(quick: Quick, monkeypatch: pytest.MonkeyPatch) -> None:
    timer, play = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)), Carrier.play

    def playing(*arguments: Any) -> Any:
        timer.start()
        return play(*arguments)

    monkeypatch.setattr(Carrier, "play", playing)
    begun = time.monotonic()
    run = quick.run("grid", "udp", speed=0.01, relay=None)
    assert run.arrivals.until is not None and time.monotonic() - begun < 5.0
    quick.repeated("grid", run)


@pytest.mark.parametrize("lockstep", [False, True])
def test_a_policy_that_raises_ends_the_run_with_words(lockstep: bool, quick: Quick) -> None:
    with pytest.raises(RunInterrupted, match="node 'zone_1' failed: 'zone_1': ZeroDivisionError: no way to divide"):
        quick.run("grid", "udp", policies={"zone_1": Failing()}, lockstep=lockstep)


def test_a_policy_that_cannot_begin_ends_the_run_with_words(quick: Quick) -> None:
    with pytest.raises(ConfigError, match="node 'zone_1' can't begin: ValueError: not today"):
        quick.run("grid", "udp", policies={"zone_1": Unready("zone", 2)})


def test_a_process_that_fails_before_it_joins_is_not_waited_for() -> None:
    with pytest.raises(ConfigError, match="a node's process ended with exit code 1; its error stands above"):
        carried.run_carried(
            SETTINGS["grid"].build(), {"zone_1": Unloadable("zone", 2)}, nodes=[["zone_1"]], join_s=60.0
        )


def test_in_lockstep_nobody_goes_on_without_a_node(quick: Quick, nodes: Nodes, monkeypatch: pytest.MonkeyPatch) -> None:
    ask, asked = Carrier._ask, [0]

    def killing(carrier: Carrier, *question: Any) -> None:
        asked[0] += 1
        if asked[0] == 5:
            nodes.send(signal.SIGKILL)
        ask(carrier, *question)

    monkeypatch.setattr(Carrier, "_ask", killing)
    with pytest.raises(RunInterrupted, match="its node 'zone_1' is gone"):
        quick.run("grid", "tcp", lockstep=True)


def test_a_hub_does_not_wait_for_ever(tmp_path: Path) -> None:
    env = SETTINGS["grid"].build()
    nobody = pytest.raises(ConfigError, match=r"no node has come for \['zone_1'\] within 0.1 s; start it: heron real")
    with Hub(env, {}, wait_for=["zone_1"], secret=new_secret(tmp_path / "secret")) as hub, nobody:
        hub.play(join_s=0.1)


@pytest.mark.parametrize("why", ["it goes", "another secret"])
def test_a_node_does_not_wait_for_ever(why: str, quick: Quick, nodes: Nodes, tmp_path: Path) -> None:
    env, policies = SETTINGS["grid"].build(), {"zone_1": Wave("zone", 2)}
    secret, other = new_secret(tmp_path / "secret"), new_secret(tmp_path / "other")
    hub = Hub(env, {}, wait_for=["zone_1"], secret=secret)
    with (tmp_path / "errors").open("w+") as errors, hub:
        quick.starter.errors = errors.fileno()
        mine = other if why == "another secret" else secret
        with carried.node_process(env, ["zone_1"], policies, 0, hub.address, mine) as process:
            if why == "it goes":
                hub._board.wait_for_nodes(5.0)
                hub._board._wait(hub._board._bus.close())  # without a word
            process.wait(5.0)
        quick.starter.errors = None
        refused = hub._board.counts()
        errors.seek(0)
        assert "it is gone, or refuses 'zone_1' for 0.6 s" in errors.read()
    assert ("wrong secret" in refused) == (why == "another secret")
