"""Policies that know who asks, rule by rule: answers, origins, `begin`, thinking (T23), batches."""

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from envs.test_event_clock import heaters
from laws.shelf import Shelf, hand_over

from heron_env import (
    Answer,
    AnsweringPolicy,
    Asked,
    BatchEnv,
    ConditionMonitor,
    Disturbance,
    HeronEnv,
    Letter,
    Origin,
    ScheduleConfig,
    record_episode,
)
from heron_env.errors import ConfigError, InvalidAction, RunInterrupted
from heron_env.lab.traces.lanes import spans
from heron_env.testing import Source

RECORD = ("rewards", "actions", "observations")
FALLBACK = Origin("fallback", "TIMEOUT", 1, "CLOSED")


class Says:
    """Answers what it is told to, and keeps what it was asked."""

    def __init__(self, given: Any = 1.0, **parts: Any) -> None:
        self.given = given if callable(given) else lambda asked: Answer(given, **parts)
        self.log: list[Asked] = []
        self.begun: list[tuple[int, int]] = []

    def begin(self, seed: int, episode: int) -> None:
        self.begun.append((seed, episode))

    def answer(self, asked: Asked) -> Any:
        self.log.append(asked)
        return self.given(asked)


class SaysTogether(Says):
    """The same, of all at once."""

    def answer_all(self, questions: Any) -> Any:
        self.sizes = [*getattr(self, "sizes", []), len(questions)]
        return [self.answer(asked) for asked in questions]


class Both(Says):
    def forward(self, observation: Any) -> Any:
        raise AssertionError("`answer` counts")


def run_sync(env: HeronEnv, policies: Any) -> Any:
    return env.run_synchronous(policies, seed=1)


def run_event(env: HeronEnv, policies: Any) -> Any:
    return env.run_event_driven(policies, seed=1)


def run_stepwise(env: HeronEnv, policies: Any) -> Any:
    for agent in env.hierarchy.agents:
        agent.policy = policies.get("*") if agent.agent_id in env.possible_agents else None
    env.reset(seed=1)
    while env.agents:
        env.step({})


RUNS = pytest.mark.parametrize("run", [run_sync, run_event, run_stepwise])


class AllWrong(Says):
    def answer_all(self, questions: Any) -> Any:
        return [Answer(1.0)]


class NoList(Says):
    def answer_all(self, questions: Any) -> Any:
        return None


def test_what_is_no_answer_is_refused_by_name() -> None:
    for policy, error, words in [
        (Says(lambda asked: 1.0), ConfigError, "the policy of 'heater_1' answered 1.0: must be an Answer; write"),
        (Says(thinking=-1.0), ConfigError, "the answer for 'heater_1' has thinking=-1.0: must be a number of"),
        (Says(thinking=float("nan")), ConfigError, "the answer for 'heater_1' has thinking=nan"),
        (Says(thinking=True), ConfigError, "the answer for 'heater_1' has thinking=True"),
        (Says(thinking="1"), ConfigError, "the answer for 'heater_1' has thinking='1'"),
        (Says(tokens=-1), ConfigError, "the answer for 'heater_1' has tokens=-1: must be a whole number >= 0"),
        (Says(tokens=True), ConfigError, "the answer for 'heater_1' has tokens=True"),
        (Says(tokens=2.5), ConfigError, "the answer for 'heater_1' has tokens=2.5"),
        (Says(origin="external"), ConfigError, "the answer for 'heater_1' has origin='external': must be an Origin"),
        (Says(letters=(Letter("heater_1", "s", "text", "hi"),)), ConfigError, "it may write to nobody, as Mail(edges)"),
        (Says([1.0, 2.0]), InvalidAction, "'heater_1'"),
        (AllWrong(), ConfigError, "answer_all() of AllWrong returned 1 answers to 2 questions"),
        (NoList(), ConfigError, "answer_all() of NoList returned None to 2 questions"),
    ]:
        for run in (run_sync, run_event, run_stepwise):
            with pytest.raises(error) as caught:
                run(heaters(2), {"*": policy})
            assert words in str(caught.value), run


@RUNS
def test_a_policy_with_both_forms_is_asked_by_answer(run: Callable[..., Any]) -> None:
    policy = Both(2.0)
    run(heaters(2, max_steps=3), {"*": policy})
    assert isinstance(policy, AnsweringPolicy) and len(policy.log) == 6


@RUNS
def test_a_question_says_who_asks_and_when(run: Callable[..., Any]) -> None:
    policy = SaysTogether(1.0)
    env = heaters(2, max_steps=3, schedule=ScheduleConfig(tick_interval=2.0))
    run(env, {"*": policy})
    asked = [(a.agent, a.number, a.turn, a.time, a.seed, a.episode) for a in policy.log]
    both = ("heater_1", "heater_2")
    assert asked == [(a, k, 2 * k, 2.0 * k, 1, 0) for k in (0, 1) for a in both]
    assert policy.log[0].names == tuple(env.observation_names("heater_1")) and policy.log[0].mask is None
    assert policy.log[0].space is env.action_space("heater_1") and policy.log[0].letters == ()
    assert policy.sizes == [2, 2] and policy.begun == [(1, 0)]


def test_a_trace_changes_nobodys_company() -> None:
    plain, traced = SaysTogether(), SaysTogether()
    schedule = ScheduleConfig(
        tick_interval=0.5, msg_delay=0.25, jitter_type="uniform", jitter_ratio=0.5, min_delay=0.25
    )
    for policy, trace in ((plain, False), (traced, True)):
        heaters(4, schedule=schedule).run_event_driven({"*": policy}, seed=3, trace=trace)
    assert plain.sizes == traced.sizes and {1, 2} <= set(plain.sizes)


def test_each_policy_object_is_told_once_of_each_episode() -> None:
    env, shared, own = heaters(2), Says(), Says()
    env.hierarchy.agents[-1].policy = own
    env.run_synchronous({"heater_1": shared}, seed=4)
    env.run_event_driven({"*": shared})
    assert shared.begun == [(4, 0), (4, 1)] and own.begun == [(4, 0)], "the own one is not asked in the second run"
    env.run_synchronous({"heater_1": own})
    assert own.begun == [(4, 0), (4, 2)], "once, though it is given and an agent's own"
    plain = type("Plain", (), {"begun": [], "begin": Says.begin, "forward": lambda self, vector: 1.0})()
    env.run_event_driven({"*": plain}, seed=5)
    assert plain.begun == [(5, 0)], "whatever its form"


# Origins


class Sourced:
    """Tells of each agent another origin."""

    def __init__(self, origins: dict[str, Origin]) -> None:
        self.origins = origins

    def answer(self, asked: Asked) -> Answer:
        return Answer(1.0, origin=self.origins[asked.agent])


@pytest.mark.parametrize("compile", [False, True])
def test_infos_tell_where_an_answer_came_from(compile: bool) -> None:
    env = heaters(3, max_steps=6, compile=compile)
    origins = {"heater_1": Origin("external", attempts=1), "heater_2": FALLBACK, "heater_3": Origin("replay")}
    for agent in env.hierarchy.agents[2:]:
        agent.policy = Sourced(origins)
    env.reset(seed=0)
    for _ in range(2):
        _, _, _, _, infos = env.step({})
    codes = {agent: info["decision"] for agent, info in infos.items()}
    assert codes == {"heater_1": 6, "heater_2": 7, "heater_3": 8}
    assert {a: d.origin for a, d in env.last_decisions.items()} == origins
    assert env.last_decisions["heater_2"].reason == "what stands in for an endpoint that failed"
    copy = pickle.loads(pickle.dumps(env))
    assert copy.last_decisions == env.last_decisions
    assert b"Sourced" not in pickle.dumps(env.get_state()), "a snapshot holds no policy"
    assert env.simulation.truth.max() >= 1.0, "their actions took effect"
    _, _, _, _, infos = env.step(dict.fromkeys(origins, 1.0))
    assert {info["decision"] for info in infos.values()} == {Source.EXPLICIT}
    assert not any(decision.origin for decision in env.last_decisions.values())


@pytest.mark.parametrize("compile", [False, True])
def test_an_origin_changes_no_course(compile: bool) -> None:
    env = heaters(3, compile=compile)
    runs = [run(env, {"*": Says(2.0, origin=origin)}) for origin in (None, FALLBACK) for run in (run_sync, run_event)]
    assert all(runs[0].same_course(other) for other in runs[1:])
    assert len(runs[0].actions["heater_1"]) == 8


@pytest.mark.parametrize("run", [run_sync, run_event])
def test_live_answers_are_told(run: Callable[..., Any]) -> None:
    for source, certain in (("external", False), ("fallback", False), ("replay", True)):
        result = run(heaters(1, max_steps=2), {"*": Says(origin=Origin(source))})
        assert result.deterministic is certain
        assert result.origins == {"heater_1": [(0.0, Origin(source)), (1.0, Origin(source))]}
    result = run(heaters(1, max_steps=2), {"*": Says()})
    assert result.deterministic and result.origins == {"heater_1": []} and result.busy == {"heater_1": 0}


# Thinking (T23)


@pytest.mark.parametrize("kind", [Says, SaysTogether])
def test_tokens_are_counted_where_they_are_asked_for_in_both_clocks(kind: Any) -> None:
    def wordy(rate: float) -> Any:
        return kind(lambda asked: Answer(3.0, tokens=10 + asked.number, thinking=(10 + asked.number) / rate))

    heard = [run(heaters(2, max_steps=4), {"*": wordy(1e12)}).tokens for run in (run_sync, run_event)]
    assert heard == [{"heater_1": 46, "heater_2": 46}] * 2
    slow = run_event(heaters(2, max_steps=4), {"*": wordy(8.0)})
    assert slow.tokens == {"heater_1": 10 + 12, "heater_2": 10 + 12}, "who thinks is not asked"
    assert run_event(heaters(1), {"*": lambda vector: 1.0}).tokens == {}


def test_the_noop_takes_the_place_of_a_thought_that_is_late() -> None:
    schedule = ScheduleConfig(on_missing="noop")
    policy = Says(3.0, thinking=1.5)
    result = heaters(1, max_steps=4, schedule=schedule).run_event_driven({"*": policy}, trace=True)
    assert [(t, float(v[0])) for t, v in result.actions["heater_1"]] == [(1.0, -1.0), (2.0, -1.0), (3.0, -1.0)]
    assert [asked.number for asked in policy.log] == [0, 2] and result.busy == {"heater_1": 2}
    assert (result.cancelled_effects, result.unfinished_effects) == (2, 0)
    assert [r.cancelled for r in result.trace if r.kind == "Answered"] == [True, True]
    in_time = heaters(1, max_steps=4, schedule=schedule).run_event_driven({"*": Says(3.0, thinking=0.9)})
    assert [float(v[0]) for _, v in in_time.actions["heater_1"]] == [3.0] * 4
    at_the_tick = heaters(1, max_steps=4, schedule=schedule).run_event_driven({"*": Says(3.0, thinking=1.0)})
    assert {float(v[0]) for _, v in at_the_tick.actions["heater_1"]} == {-1.0}, "as an observation that comes with it"


def test_a_crash_ends_a_thought() -> None:
    crash = Disturbance(0.5, "agent_crash", {"agent": "heater_1", "meanwhile": "hold"}, duration=1.0)
    result = heaters(1, max_steps=4).run_event_driven({"*": Says(3.0, thinking=0.75)}, disturbances=[crash])
    assert [t for t, _ in result.actions["heater_1"]] == [2.75, 3.75] and result.cancelled_effects == 1


@pytest.mark.parametrize("preempt", [False, True])
def test_a_pushed_observation_waits_for_no_thought_if_it_preempts(preempt: bool) -> None:
    env = heaters(1, max_steps=4, schedule=ScheduleConfig(tick_interval=10.0))
    policy = Says(lambda asked: Answer(2.0, thinking=2.5 if asked.time == 0.0 else 0.25))
    monitor = ConditionMonitor(agent="heater_1", when=lambda world: world.time >= 1.0, one_shot=True, preempt=preempt)
    result = env.run_event_driven({"*": policy}, monitors=[monitor])
    if preempt:
        assert [asked.time for asked in policy.log] == [0.0, 1.0] and result.busy == {"heater_1": 0}
        assert [t for t, _ in result.actions["heater_1"]] == [1.25] and result.cancelled_effects == 1
    else:
        assert len(policy.log) == 1 and result.busy == {"heater_1": 1}
        assert [t for t, _ in result.actions["heater_1"]] == [2.5] and result.cancelled_effects == 0


@pytest.mark.parametrize("early", [True, False])
def test_a_pushed_observation_takes_back_a_question_that_was_put_aside(early: bool) -> None:
    env = heaters(1, max_steps=4, schedule=ScheduleConfig(tick_interval=10.0))

    def took(asked: Asked) -> float:
        return 2.5 if asked.time == 0.0 else 0.25

    policy = Says(lambda asked: Answer(2.0, thinking=took(asked)))
    monitor = ConditionMonitor(agent="heater_1", when=lambda world: world.time >= 1.0, one_shot=True, preempt=True)
    run = env.start_event_driven({"*": policy}, monitors=[monitor])
    shelf = Shelf()
    run.think_in_threads(shelf)
    hand_over(run, shelf, took, lambda: early)
    result = run.result()
    assert [asked.time for asked in policy.log] == [0.0, 1.0] and result.busy == {"heater_1": 0}
    assert [t for t, _ in result.actions["heater_1"]] == [1.25] and result.cancelled_effects == 1


@pytest.mark.parametrize("t", [0.25, 1.0])
def test_a_thought_is_stored_with_the_run(t: float) -> None:
    env, options = heaters(3), {"seed": 2, "trace": True, "record": RECORD}
    policies = [SaysTogether(lambda a: Answer(float(a.vector.sum()) % 3, thinking=0.4 + a.number)) for _ in range(3)]
    whole = env.run_event_driven({"*": policies[0]}, **options)
    run = heaters(3).start_event_driven({"*": policies[1]}, **options)
    run.until(t)
    stored = pickle.dumps(run)
    assert b"Says" not in stored, "no policy is in it"
    run = pickle.loads(stored)
    run.attach({"*": policies[2]})
    run.until(None)
    assert policies[2].begun == [], "its episode goes on"
    found = run.result()
    assert whole.same_course(found) and whole.busy == found.busy
    assert whole.trace.lines(env.hierarchy.ids) == found.trace.lines(env.hierarchy.ids)


@pytest.mark.parametrize("run", [run_sync, run_event])
def test_an_answer_must_leave_the_environment_where_it_was(run: Callable[..., Any]) -> None:
    env = heaters(1, compile=False)

    def moves(asked: Asked) -> Answer:
        env._ownership.move()
        return Answer(1.0)

    with pytest.raises(RunInterrupted, match="heater_1"):
        run(env, {"*": Says(moves)})


def test_a_thought_is_a_span() -> None:
    policies = {"*": Says(0.5, thinking=0.5)}
    episode = record_episode("heron/BatteryGrid-v0", policies, t_end=3.0, options={"num_batteries": 2, "dt": 1.0})
    thinking = [span for span in spans(episode) if span.doing == "thinking"]
    assert [(s.lane, s.start, s.end) for s in thinking[:2]] == [("battery_1", 0, 5e8), ("battery_2", 0, 5e8)]


# Batches


class Lanes:
    """Of an old form, told of the episodes of lanes."""

    def __init__(self) -> None:
        self.begun: list[Any] = []

    def begin(self, seed: int, episode: int) -> None:
        self.begun.append((seed, episode))

    def begin_lanes(self, lanes: Any, seeds: Any, episodes: Any) -> None:
        self.begun.append((lanes.tolist(), seeds.tolist(), episodes.tolist()))

    def forward(self, vector: Any) -> Any:
        return 1.0


@pytest.mark.parametrize("own", [False, True])
def test_batches_refuse_who_knows_who_asks_and_who_counts_episodes(own: bool) -> None:
    def batch(policy: Any) -> Any:
        def build() -> HeronEnv:
            env = heaters(2)
            env.hierarchy.agents[-1].policy = policy if own else None
            return env

        return BatchEnv(build, 2, others={} if own else {"*": policy})

    with pytest.raises(ConfigError, match=r"Says, knows who asks.*run_synchronous"):
        batch(Says())
    counting = type("Counting", (), {"begin": Says.begin, "forward": Lanes.forward})()
    with pytest.raises(ConfigError, match=r"Counting, has begin\(seed, episode\).*begin_lanes\(lanes, seeds"):
        batch(counting)


@pytest.mark.parametrize("compile", [False, True])
def test_lanes_begin_with_their_seeds_and_episodes(compile: bool) -> None:
    policy = Lanes()
    batch = BatchEnv(lambda: heaters(2, max_steps=2, compile=compile), 3, others={"*": policy})
    batch.reset(seed=7)
    batch.step({})
    assert policy.begun == [([0, 1, 2], [7, 8, 9], [0, 0, 0])]
    batch.step({})
    assert policy.begun[1:] == [([0, 1, 2], [7, 8, 9], [1, 1, 1])]
    batch.reset(mask=np.array([False, True, False]))
    assert policy.begun[2:] == [([1], [8], [2])]
