"""Python as a phase: what a hook raises is the user's own, no hook is left out in silence, one thread runs all."""

import copy
import ctypes
import gc
import io
import pdb
import pickle
import signal
import sys
import threading
import traceback
import weakref
from collections.abc import Callable
from types import FrameType
from typing import Any, NamedTuple

import numpy as np
import pytest
from envs.test_half_way import Tank, Valve

from heron_env import BatchEnv, FieldAgent, HeronEnv, ScheduleConfig, SystemAgent, rule
from heron_env.engine import called as python
from heron_env.engine.arrays import addresses
from heron_env.engine.call_kernel import call_c, of
from heron_env.engine.kernels import phase
from heron_env.engine.model import Native
from heron_env.envs import ownership
from heron_env.errors import ConfigError, InvalidAction, ResetNeeded, RuleError, RunInterrupted

LANES, EPISODE = 3, 1000
OWNERSHIP = ownership.__file__
ENGINE = (python.__file__, python.__file__.replace("called", "lanes"))


class Leak(Exception):
    """The user's own."""


class Hooks(NamedTuple):
    """What the worlds do in their hooks, each with its world."""

    begin: list[Callable[[Any], None]] = []
    advance: list[Callable[[Any], None]] = []
    finish: list[Callable[[Any], None]] = []


DO = Hooks()


class Hooked(HeronEnv):
    """Lane by lane in a batch."""

    def begin(self, world: Any) -> None:
        for do in DO.begin:
            do(world)

    def advance(self, world: Any, dt: float) -> None:
        for do in DO.advance:
            do(world)
        world[Valve].Tank.level += dt

    def finish(self, world: Any) -> None:
        for do in DO.finish:
            do(world)


class Together(Hooked):
    batched = True


class Dividing(Valve):
    """Its reward can't be computed at level 50."""

    @staticmethod
    @rule
    def compute_local_reward(tank: Tank) -> float:
        return 1.0 / (50.0 - tank.level)


def plant(kind: type[HeronEnv] = Hooked, *, compile: bool = True, valve: type[FieldAgent] = Valve) -> HeronEnv:
    return kind(SystemAgent("system_agent", valve("valve_1")), max_steps=EPISODE, physics_substeps=2, compile=compile)


@pytest.fixture(autouse=True)
def calm() -> Any:
    yield
    for hooks in DO:
        hooks.clear()


class Driven(NamedTuple):
    """Something that is reset and stepped, and the truth of its first lane."""

    of: Any
    reset: Callable[[], Any]
    step: Callable[[], Any]
    truth: Callable[[], Any]


def single(kind: type[HeronEnv] = Hooked, compile: bool = True) -> Driven:
    env = plant(kind, compile=compile)
    return Driven(env, lambda: env.reset(seed=4), lambda: env.step({"valve_1": [0.5]}), lambda: env.simulation.truth)


def batch_of(kind: type[HeronEnv] = Hooked, compile: bool = True, **options: Any) -> Driven:
    batch = BatchEnv(lambda: plant(kind, compile=compile), LANES, **options)
    actions = {"valve": np.full((LANES, 1, 1), 0.5)}
    return Driven(batch, lambda: batch.reset(seed=4), lambda: batch.step(actions), lambda: batch._engine.truth[0])


def event_batch(kind: type[HeronEnv] = Hooked, compile: bool = True) -> Driven:
    schedule = ScheduleConfig(msg_delay=0.1, act_delay=0.3, jitter_type="uniform", jitter_ratio=0.5)
    batch = BatchEnv(lambda: plant(kind, compile=compile), LANES, clock="event", schedule=schedule)
    rows: list[Any] = []

    def keep(new: Any) -> None:
        rows[:] = [new]

    def answer() -> None:
        keep(batch.answer(np.full((len(rows[0]), 1), 0.5)))

    return Driven(batch, lambda: keep(batch.reset(seed=4)), answer, lambda: batch.truth[0])


DRIVERS = {
    "single": single,
    "single plain": lambda: single(compile=False),
    "batch": batch_of,
    "batch plain": lambda: batch_of(compile=False),
    "batch together": lambda: batch_of(Together),
    "event": event_batch,
    "event plain": lambda: event_batch(compile=False),
    "event together": lambda: event_batch(Together),
}
some = pytest.mark.parametrize("driver", ["single", "batch together", "event", "batch plain"])
every = pytest.mark.parametrize("driver", list(DRIVERS))


def once(do: Callable[[Any], None]) -> Callable[[Any], None]:
    """The first time alone."""
    left = [1]

    def call(world: Any) -> None:
        if left and left.pop():
            do(world)

    return call


def raising(error: BaseException) -> Callable[[Any], None]:
    def fail(world: Any) -> None:
        raise error

    return once(fail)


def course(driven: Driven, steps: int = 4) -> list[Any]:
    """The truth after each step of a new episode."""
    driven.reset()
    truths = list[Any]()
    for _ in range(steps):
        driven.step()
        truths.append(driven.truth().copy())
    return truths


def require_same(driven: Driven, name: str) -> None:
    """It goes on as one that was built anew."""
    assert np.array_equal(course(driven), course(DRIVERS[name]()))


# What a hook raises


@every
@pytest.mark.parametrize("place", Hooks._fields)
def test_what_a_hook_raises_is_the_user_s_own_and_a_reset_mends_it(driver: str, place: str) -> None:
    driven = DRIVERS[driver]()
    driven.reset(), driven.step()
    error = Leak("in the pipe")
    getattr(DO, place).append(raising(error))
    with pytest.raises(Leak) as caught:
        driven.reset() if place == "begin" else driven.step()
    assert caught.value is error
    assert traceback.extract_tb(caught.tb)[-1].line == "raise error"
    with pytest.raises(ResetNeeded):
        driven.step()
    require_same(driven, driver)


@some
@pytest.mark.parametrize("error", [ZeroDivisionError("mine"), InvalidAction("mine"), KeyboardInterrupt("mine")])
def test_no_error_of_a_hook_gets_another_name(driver: str, error: BaseException) -> None:
    driven = DRIVERS[driver]()
    driven.reset(), driven.step()
    DO.finish.append(raising(error))
    with pytest.raises(type(error)) as caught:
        driven.step()
    assert caught.value is error and caught.value.__cause__ is None
    with pytest.raises(ResetNeeded):
        driven.step()
    require_same(driven, driver)


def test_after_the_first_error_no_more_python_is_called_and_the_lowest_lane_s_is_raised() -> None:
    driven, calls = batch_of(), list[str]()
    driven.reset()
    lanes = lanes_of(driven)
    lanes.follow([lanes.called.native("physics", lambda first, last: calls.append("behind it"))])

    def advance(world: Any) -> None:
        calls.append(f"advance {world.seed}")
        if world.seed > 4:
            raise Leak(f"seed {world.seed}")

    DO.advance.append(advance)
    DO.finish.append(lambda world: calls.append("finish"))
    with pytest.raises(Leak, match="seed 5") as caught:
        driven.step()
    assert calls == ["advance 4", "advance 5"]
    assert caught.value.__notes__ == ["in advance() of lane 1"]


def refused(batch: Any) -> None:
    """An action is illegal in the last lane."""
    actions = np.zeros((LANES, 1, 1))
    actions[-1] = 7.0
    with pytest.raises(InvalidAction, match="lane 2"):
        batch.step({"valve": actions})


@pytest.mark.parametrize("level", [np.nan, 50.0 - 0.5])
def test_what_compiled_rules_refuse_after_it_is_forgotten(level: float) -> None:
    """A hook spoils the truth and raises; then a reward is no number, or divides by zero."""
    batch = BatchEnv(plant(valve=Dividing), LANES)
    batch.reset(seed=4)

    def spoil(world: Any) -> None:
        world[Valve].Tank.level[:] = level + 0.5
        raise Leak("in the pipe")

    DO.advance.append(once(spoil))
    with pytest.raises(Leak) as caught:
        batch.step({})
    assert caught.value.__cause__ is None
    batch.reset(seed=4)
    refused(batch)
    batch.step({})


def test_an_action_that_is_refused_after_it_changes_nothing() -> None:
    action = [0.5]
    batch = BatchEnv(plant(), LANES, others={"*": lambda vector: action})
    batch.reset(seed=4)
    DO.finish.append(raising(Leak("in the pipe")))
    with pytest.raises(Leak):
        batch.step({})
    batch.reset(seed=4)
    action[0] = 7.0
    with pytest.raises(InvalidAction, match="lane 0"):
        batch.step({})
    action[0] = 0.5
    batch.step({})


def test_a_rule_that_divides_by_zero_keeps_its_name_among_hooks() -> None:
    batch = BatchEnv(plant(valve=Dividing), LANES)
    batch.reset(seed=4)
    DO.finish.append(raising(Leak("never")))
    DO.advance.append(lambda world: world[Valve].Tank.level.__setitem__(slice(None), 49.5))
    with pytest.raises(RuleError, match=r"Dividing\.compute_local_reward"):
        batch.step({})
    DO.advance.clear(), DO.finish.clear()
    batch.reset(seed=4)
    refused(batch)
    batch.step({})


def test_who_watches_a_batch_at_close_may_fail_too() -> None:
    driven = batch_of()
    driven.reset()
    error = Leak("no disk")
    driven.of.at_close.append(lambda: raising(error)(None))
    with pytest.raises(Leak) as caught:
        driven.step()
    assert caught.value is error
    driven.of.at_close.clear()
    require_same(driven, "batch")


def test_a_debugger_may_stop_in_a_hook() -> None:
    driven, said = single(), io.StringIO()
    driven.reset(), driven.step()

    def stop(world: Any) -> None:
        inside = 6 * 7
        pdb.Pdb(stdin=io.StringIO("p inside\nnext\nup\nwhere\ncontinue\n"), stdout=said, nosigint=True).set_trace()
        assert inside == 42

    DO.advance.append(once(stop))
    before = sys.gettrace()
    driven.step()
    sys.settrace(before)
    assert "(Pdb) 42" in said.getvalue() and "checked_step" in said.getvalue()
    driven.step()
    expected = course(single(), 3)
    assert np.array_equal(driven.truth(), expected[-1])


# Who steps what


@pytest.mark.parametrize("driver", ["single", "batch", "event"])
def test_a_hook_may_step_another_and_not_its_own(driver: str) -> None:
    driven, other = DRIVERS[driver](), DRIVERS[driver]()
    driven.reset(), other.reset()
    results = list[Any]()
    step_other = once(lambda world: results.append((other.step(), other.truth().copy())))
    DO.advance.append(step_other)
    driven.step()
    DO.advance.clear()
    assert np.array_equal(driven.truth(), results[0][1])
    DO.finish.append(once(lambda world: driven.step()))
    with pytest.raises(RunInterrupted, match="of the same"):
        driven.step()
    DO.finish.clear()
    require_same(driven, driver)


@pytest.mark.parametrize("driver", ["single", "batch", "event"])
def test_another_thread_is_refused_meanwhile(driver: str) -> None:
    driven, errors = DRIVERS[driver](), list[BaseException]()
    driven.reset()

    def intrude() -> None:
        try:
            driven.step()
        except RunInterrupted as error:
            errors.append(error)

    def let_in(world: Any) -> None:
        thread = threading.Thread(target=intrude)
        thread.start()
        thread.join()

    DO.finish.append(once(let_in))
    driven.step()
    assert len(errors) == 1 and "another thread is in" in str(errors[0])
    DO.finish.clear()
    require_same(driven, driver)


@pytest.mark.parametrize("driver", ["single", "batch", "event"])
def test_two_threads_may_step_two(driver: str) -> None:
    """Each waits in its hook until the other is in its own."""
    expected = course(DRIVERS[driver](), 20)
    meeting, mine = threading.Barrier(2, timeout=60), threading.local()

    def meet(world: Any) -> None:
        if not getattr(mine, "met", False):
            mine.met = True
            meeting.wait()

    DO.advance.append(meet)
    results: dict[int, list[Any]] = {}

    def run(number: int) -> None:
        results[number] = course(DRIVERS[driver](), 20)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(np.array_equal(results[n], expected) for n in range(2))


def test_with_python_between_phases_one_thread_runs_all(caplog: pytest.LogCaptureFixture) -> None:
    used = set[int]()
    DO.finish.append(lambda world: used.add(threading.get_ident()))
    expected = course(batch_of())
    assert not caplog.records
    driven = batch_of(threads=2)
    assert np.array_equal(course(driven), expected)
    assert used == {threading.get_ident()}
    assert [record.getMessage() for record in caplog.records] == [
        "BatchEnv(threads=2): advance(), begin(), finish() of Hooked are Python, so one thread runs all; write them as "
        "world rules"
    ]


# Addresses belong to a process


@pytest.mark.parametrize("clone", [copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))])
@pytest.mark.parametrize("compile", [True, False])
def test_a_copy_in_mid_episode_calls_its_own_hooks(clone: Callable[[Any], Any], compile: bool) -> None:
    env = plant(compile=compile)
    env.reset(seed=1), env.step({"valve_1": [0.5]})
    other, worlds = clone(env), list[Any]()
    DO.finish.append(worlds.append)
    for one in (env, other, env, other):
        worlds.clear()
        one.step({"valve_1": [-0.25]})
        assert worlds == [one.world]
    assert env.simulation.truth.tobytes() == other.simulation.truth.tobytes()
    kept = weakref.ref(env)
    del env, one
    worlds.clear()
    gc.collect()
    assert kept() is None
    other.step({"valve_1": [0.5]})
    assert worlds == [other.world]


@every
def test_what_nobody_holds_any_more_is_collected(driver: str) -> None:
    driven = DRIVERS[driver]()
    driven.reset(), driven.step()
    env = driven.of if isinstance(driven.of, HeronEnv) else driven.of.env
    left = [weakref.ref(one) for one in (driven.of, lanes_of(driven), lanes_of(driven).called, env)]
    del driven, env
    gc.collect()
    assert [one() for one in left] == [None] * len(left)


@pytest.mark.parametrize("driver", ["single", "single plain", "batch", "event"])
def test_without_executable_memory_it_is_said(driver: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def deny(function: Any) -> Any:
        raise MemoryError

    driven = DRIVERS["single"]()
    with monkeypatch.context() as patched:
        patched.setattr(python, "SIGNATURE", deny)
        with pytest.raises(ConfigError, match=r"no executable memory \(MemoryError\(\)\); allow it"):
            driven.reset() if driver == "single" else DRIVERS[driver]().reset()
    require_same(driven, "single")


# Signals


@phase
def interrupt(D: Any, at: Any, first: Any, last: Any) -> Any:
    """Send this process the signal of number `turn` from compiled code, once, by raise(), which is `function`."""
    number, of(at, "turn")[0] = of(at, "turn")[0], 0
    return np.int64(0) if number == 0 else call_c(of(at, "function")[0], number, 0, 0)


def lanes_of(driven: Driven) -> Any:
    return driven.of.simulation.lane.lanes if isinstance(driven.of, HeronEnv) else driven.of._engine.lanes


@some
def test_a_signal_that_keeps_a_hook_from_running_is_raised(
    driver: str, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    """The handler raises where Python is entered, before anything can catch it."""
    missed = list[Any]()
    monkeypatch.setattr(sys, "unraisablehook", lambda unraisable: missed.append(unraisable.exc_type))
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background ignores it
    request.addfinalizer(lambda: signal.signal(signal.SIGINT, before))
    driven = DRIVERS[driver]()
    driven.reset()
    address = ctypes.cast(getattr(ctypes.CDLL(None), "raise"), ctypes.c_void_p).value
    number, nothing = np.zeros(1, dtype=np.int64), np.zeros(1, dtype=np.int64)
    cells = {"failed": nothing, "turn": number, "function": np.array([address])}
    table = addresses(python.FORMS, cells)
    lanes_of(driven).follow([Native("physics", interrupt, int(table.ctypes.data))])
    driven.step()
    for hooks in (DO.advance, DO.finish):
        hooks.append(lambda world: pytest.fail("entered"))
    number[:] = signal.SIGINT
    with pytest.raises(KeyboardInterrupt, match="a signal came"):
        driven.step()
    with pytest.raises(ResetNeeded):
        driven.step()
    assert missed == [KeyboardInterrupt]
    DO.advance.clear(), DO.finish.clear()
    require_same(driven, driver)


class Signals:
    """SIGALRM, whose handler raises KeyboardInterrupt: the next one comes when the last has arrived.

    Only where the engine is at work; none where a lock has just been taken, and `try` is yet to come.
    """

    def __init__(self) -> None:
        self.raised = self.sent = 0
        self.on = True

    def send(self) -> None:
        """In 20 to 1,019 microseconds."""
        self.sent += 1
        signal.setitimer(signal.ITIMER_REAL, 2e-5 + self.sent * 37 % 1000 * 1e-6)

    def handle(self, number: int, frame: FrameType | None) -> None:
        if not self.on:
            return
        while frame is not None and frame.f_code.co_filename not in (*ENGINE, OWNERSHIP):
            frame = frame.f_back
        if frame is None or frame.f_code.co_filename == OWNERSHIP:
            self.send()
            return
        self.raised += 1
        raise KeyboardInterrupt


@pytest.fixture
def signals() -> Any:
    signals = Signals()
    before = signal.signal(signal.SIGALRM, signals.handle)
    yield signals
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


@some
def test_of_300_signals_none_keeps_a_hook_from_running_in_silence(
    driver: str, signals: Signals, monkeypatch: pytest.MonkeyPatch
) -> None:
    driven, entered, done = DRIVERS[driver](), list[int](), list[int]()
    missed = list[Any]()
    monkeypatch.setattr(sys, "unraisablehook", missed.append)

    def count(world: Any) -> None:
        entered.append(1)
        sum(range(40))
        done.append(1)

    def drive(do: Callable[[], Any]) -> bool:
        """Was it interrupted?"""
        before = signals.raised
        entered.clear(), done.clear()
        try:
            do()
        except KeyboardInterrupt:
            assert signals.raised == before + 1
            signals.send()
            return True
        assert signals.raised == before, [(str(m.object), traceback.format_tb(m.exc_traceback)) for m in missed[-1:]]
        assert len(entered) == len(done)
        return False

    for hooks in DO:
        hooks.append(count)
    calls = 3 * (LANES if driver == "batch plain" else 1)  # two substeps and an end
    course(DRIVERS[driver]())  # compiles what follows
    driven.reset()
    signals.send()
    while signals.raised < 300:
        if drive(driven.step):
            while drive(driven.reset):
                pass
        else:
            assert driver == "event" or len(done) == calls
    signals.on = False
    require_same(driven, driver)
