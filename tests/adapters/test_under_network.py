"""The laws W1 to W11 of environments that are black boxes, and faults that are planted and seen.

W1 time, W2 observations, W3 ticks, W4 commands, W5 no-ops, W6 as an environment, W7 ends, W8 masks, W9 seeds, W10 ages,
W11 runs.
"""

import copy
import itertools
import pickle
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
import pytest
from black_boxes import ACTIONS, KINDS, OURS, Bookkeeper, Walk, own, same
from gymnasium.utils.env_checker import check_env
from hypothesis import given, settings
from hypothesis import strategies as st
from pettingzoo import AECEnv
from pettingzoo.test import parallel_api_test
from refusing import refuses

from heron_env import DrawnSchedule, Empirical, GilbertElliott, ScheduleConfig, make, under_network
from heron_env.errors import ConfigError, InvalidAction, ResetNeeded, RunInterrupted, ScheduleError, UnknownAgent
from heron_env.testing.clock import SECOND, ActionCommand, Leg, ObservationCopy, Timing, What, link

HARD = ScheduleConfig(obs_delay=0.7, act_delay=1.4, msg_delay=0.6, jitter_type="lognormal", jitter_ratio=0.8, loss=0.25)
NOOPS: dict[str, Any] = {
    "box": None,
    "dict": {"turn": 0, "push": np.zeros(1, np.float32)},
    "image": 0,
    "discrete": 0,
    "mask": 0,
}


def draws(kind: str, seed: int) -> Callable[[Any], Any]:
    """Actions of that kind, drawn anew with each call for an observation; forbidden ones are not."""
    space = copy.deepcopy(ACTIONS[kind])
    space.seed(seed)
    return lambda seen: space.sample(seen["action_mask"]) if kind == "mask" else space.sample()


def parallel_rollout(env: Any, kind: str, seed: int = 5) -> list[Any]:
    """All that a ParallelEnv returns, with actions drawn by step and agent."""
    draw, course = draws(kind, seed), [copy.deepcopy(env.reset(seed=seed))]
    while env.agents:
        seen = course[-1][0]
        course.append(copy.deepcopy(env.step({agent: draw(seen[agent]) for agent in env.agents})))
        assert set(env.agents) == {
            agent for agent in course[-1][0] if not (course[-1][2][agent] or course[-1][3][agent])
        }
    return course


def seen_by_hand(env: Any, steps: int, action: Any = None) -> list[tuple[int, dict[str, Any]]]:
    """(boundary that is observed, info) at reset and after each step of a Walk of kind "box"."""
    observation, info = env.reset(seed=3)
    course = [(int(observation[0]), info)]
    for step in range(steps):
        observation, _, _, _, info = env.step(np.full(2, step / 100) if action is None else action)
        course.append((int(observation[0]), info))
    return course


def oracle(config: ScheduleConfig, steps: int, seed: int, agent: str = "agent", dt: float = 1.0) -> Any:
    """By plain arithmetic on the link's draws: by boundary what is seen, by step which decision is applied, or None."""
    dt_ns = round(dt * SECOND)
    timing = Timing.of(agent, config, dt_ns)
    drawn = link(agent, config, seed=seed, dt=dt)

    def arrivals(cause: str, first: Leg, second: Leg, nominal: int, numbers: list[tuple[int, int]]) -> list[Any]:
        found, last = [], 0
        for number, now in numbers:
            leaves = now + drawn.delay(nominal, cause, first, number, now)
            fate = drawn.draw(What.FATE, timing.msg, cause, second, number, leaves)
            arrives = leaves + (fate if fate >= 0 else ~fate)
            if not config.reorder:
                arrives = last = max(last, arrives)
            if fate >= 0:
                found.append((arrives, number))
        return found

    boundaries = [(k, k * dt_ns) for k in range(steps + 1)]
    shown = arrivals("boundary", Leg.GATHERING, Leg.OBSERVATION_REPLY, timing.obs, boundaries)
    seen = [max((k for t, k in shown if t <= now), default=None) for _, now in boundaries]
    ticking = [(k, (now - timing.phase) // timing.tick) for k, now in boundaries[:-1] if timing.ticks_at(now)]
    decided = [(number, k * dt_ns) for k, number in ticking if seen[k] is not None]
    came = arrivals("tick", Leg.ACTION, Leg.COMMAND, timing.act, decided)
    applied: list[int | None] = []
    for k in range(steps):
        now, force, least = k * dt_ns, None, 0
        moments = [(t, 0, number) for t, number in came if t < now + dt_ns]
        if config.on_missing == "noop":
            moments += [(c * dt_ns, 1, number) for c, number in ticking if c <= k]
        for _, deadline, number in sorted(moments):
            if deadline and least < number:
                force, least = None, number
            elif not deadline and number >= least:
                force, least = number, number + 1
        applied.append(force)
    return seen, applied


def require_oracle(config: ScheduleConfig, seed: int = 3, dt: float = 1.0, **options: Any) -> None:
    env = under_network(Walk(steps=24), config, dt=dt, **options)
    seen, applied = oracle(config, 24, seed, dt=dt)
    observation, info = env.reset(seed=seed)
    for step in range(24):
        boundary = 0 if seen[step] is None else seen[step]
        assert int(observation[0]) == boundary
        assert info["aoi"] == (step - boundary) * dt
        timing = Timing.of("agent", config, round(dt * SECOND))
        assert info["is_active"] == (seen[step] is not None and timing.ticks_at(step * round(dt * SECOND)))
        action = np.array([step / 100, -step / 100])
        observation, _, _, _, info = env.step(action)
        action[:] = 9.0
        told = env.env.book.told[-1]["walker"]
        if applied[step] is None:
            assert (told == 0).all() and info["applied"] == -1
        else:
            at = (timing.phase + applied[step] * timing.tick) // round(dt * SECOND)
            assert told.tolist() == [at / 100, -at / 100] and info["applied"] == applied[step]


# W1


def test_w1_time():
    late = seen_by_hand(under_network(Walk(), ScheduleConfig(obs_delay=2.5)), 8)
    assert [boundary for boundary, _ in late] == [0, 0, 0, 0, 1, 2, 3, 4, 5]
    for delay in (2.0, 2.5):
        slow = seen_by_hand(under_network(Walk(), ScheduleConfig(act_delay=delay)), 8)
        assert [info["applied"] for _, info in slow[1:]] == [-1, -1, 0, 1, 2, 3, 4, 5]
    fine = seen_by_hand(under_network(Walk(), ScheduleConfig(obs_delay=1.0), dt=0.5), 4)
    assert [(boundary, info["aoi"]) for boundary, info in fine] == [(0, 0.0), (0, 0.5), (0, 1.0), (1, 1.0), (2, 1.0)]
    bare, env = Walk(end=9), under_network(Walk(end=9), HARD)
    bare.reset(seed=3), env.reset(seed=3)
    for step in range(9):  # scored as the bare environment that is told the same
        outcome = env.step(np.full(2, step / 9))
        expected = bare.step(env.env.book.told[-1]["walker"])
        assert same(outcome[1:4], expected[1:4]) and same(own({"": outcome[4]}), {"": expected[4]})


def test_w1_delays_below_a_step_are_named():
    config = ScheduleConfig(obs_delay=0.25, act_delay=0.5)
    notes = under_network(Walk(), config).run_event_driven({"*": lambda o: o[:2] * 0}, seed=0).notes
    assert notes == [
        "observations take 0.25 s, less than a step of 1.0 s: they are seen a step later (agent)",
        "commands take 0.5 s, less than a step of 1.0 s: they count as if undelayed (agent)",
    ]


@pytest.mark.parametrize(
    ("late", "what"),
    [({"msg_delay": 200.0}, "observation arrived"), ({"obs_delay": Empirical([90.0, 400.0])}, "observation arrived"),
     ({"act_delay": 200.0}, "decision took effect")],
)  # fmt: skip
def test_w1_delays_beyond_the_episode_are_named(late: dict[str, Any], what: str):
    result = under_network(Walk(), ScheduleConfig(**late)).run_event_driven({"*": lambda o: o[:2] * 0}, seed=0)
    assert not result.actions["agent"]
    (note,) = result.notes
    assert note.startswith(f"no {what} before the end: it takes ") and "are the delays in seconds?" in note


# W2, W3, W4: the oracle


def test_w2_observations_and_w4_commands():
    """What is seen and applied is what plain arithmetic says."""
    for seed in range(6):
        require_oracle(HARD, seed)


configs = st.builds(
    ScheduleConfig,
    tick_interval=st.sampled_from([None, 1.0, 2.0, 3.0]),
    phase=st.sampled_from([0.0, 1.0, 2.0]),
    obs_delay=st.sampled_from([0.0, 0.5, 1.0, 2.0, Empirical([0.0, 1.0, 4.0])]),
    act_delay=st.sampled_from([0.0, 0.5, 1.0, 3.0]),
    msg_delay=st.sampled_from([0.0, 0.3, 1.0]),
    jitter_type=st.just("uniform"),
    jitter_ratio=st.sampled_from([0.0, 1.0]),
    loss=st.sampled_from(
        [0.0, 0.3, 1.0, GilbertElliott(p_bad=0.2, p_good=0.4, loss_bad=1.0, loss_good=0.0, period=1.0)]
    ),
    reorder=st.booleans(),
    min_delay=st.sampled_from([0.0, 0.4]),
    on_missing=st.sampled_from(["hold", "noop"]),
)


@given(config=configs, seed=st.integers(0, 10**6))
@settings(deadline=None)
def test_w2_w3_w4_under_any_schedule(config: ScheduleConfig, seed: int):
    require_oracle(config, seed)


def test_w2_reordered():
    """The newest stays where messages overtake."""
    for seed in range(6):
        require_oracle(ScheduleConfig(obs_delay=1.5, act_delay=1.5, jitter_type="uniform", jitter_ratio=1.0,
                                      reorder=True), seed)  # fmt: skip


def test_w2_copies():
    """Observations are copied when they leave and when they are returned."""
    env = under_network(Walk(), ScheduleConfig(obs_delay=2.0))  # the environment has one buffer
    observation, _ = env.reset(seed=0)
    for step in range(6):
        observation[:] = -1.0
        observation, _, _, _, _ = env.step(np.zeros(2))
        assert observation[0] == max(0, step - 1)


def test_w2_one_message_an_agent_and_boundary():
    result = under_network(Bookkeeper(), ScheduleConfig(loss=0.0), noop=None).run_event_driven(
        {"*": lambda o: np.zeros(2)}, seed=0, trace=True
    )
    sent = [r.payload for r in result.trace if type(r.payload) is ObservationCopy]
    assert sorted((m.agent, m.number) for m in sent) == sorted(itertools.product(range(3), range(13)))


# W3


def test_w3_ticks():
    env = under_network(Walk(), ScheduleConfig(tick_interval=3.0, phase=2.0, obs_delay=1.0))
    course = seen_by_hand(env, 11)
    assert [k for k, (_, info) in enumerate(course) if info["is_active"]] == [2, 5, 8, 11]
    assert [info["applied"] for _, info in course[1:]] == [-1, -1, 0, 0, 0, 1, 1, 1, 2, 2, 2]
    blind = seen_by_hand(under_network(Walk(), ScheduleConfig(obs_delay=4.0)), 6)
    assert [info["is_active"] for _, info in blind] == [False] * 4 + [True] * 3


@pytest.mark.parametrize(
    ("config", "words"),
    [
        (
            {"tick_interval": 1.5},
            "agent 'agent': tick_interval=1.5 s is not a whole multiple of the env's dt=1.0 s, which a black box "
            "needs. Use 2.0, or change dt",
        ),
        (
            {"phase": 0.5},
            "agent 'agent': phase=0.5 s is not a whole multiple of the env's dt=1.0 s, which a black box needs. Use "
            "0.0, or change dt",
        ),
        (
            {"tick_jitter_ratio": 0.1, "jitter_type": "uniform"},
            "agent 'agent': tick_jitter_ratio=0.1: a black box steps evenly; use 0",
        ),
        (
            {"own_rows": "local"},
            "agent 'agent': own_rows='local': nobody knows which elements of a black box are whose; use parts",
        ),
    ],
)
def test_w3_what_a_black_box_cannot_do_is_refused(config: dict[str, Any], words: str):
    with refuses(ScheduleError, words):
        under_network(Walk(), ScheduleConfig(**config))
    env = under_network(Walk())
    with refuses(ScheduleError, words):
        env.run_event_driven({"*": lambda o: np.zeros(2)}, seed=0, schedule=ScheduleConfig(**config))


# W4


def test_w4_missing():
    """What is missing holds or becomes the no op."""
    lossy = ScheduleConfig(loss=0.5, act_delay=1.0)
    held = [i["applied"] for _, i in seen_by_hand(under_network(Walk(steps=40), lossy), 39)[1:]]
    assert held == sorted(held) and len({*held}) < 30  # the last one holds
    noop = [i["applied"] for _, i in seen_by_hand(under_network(Walk(steps=40), lossy, on_missing="noop"), 39)[1:]]
    assert all(n in (-1, k - 1) for k, n in enumerate(noop)) and 5 < noop.count(-1) < 35
    late = under_network(Walk(steps=40), ScheduleConfig(act_delay=2.0, on_missing="noop"))
    result = late.run_event_driven({"*": lambda o: np.ones(2)}, seed=0)
    assert result.actions["agent"] == [] and result.cancelled_effects == 38 and result.unfinished_effects == 2


# W5


def test_w5_no_ops():
    asymmetric = Walk()
    asymmetric.action_space = gymnasium.spaces.Box(np.array([0.25, -1.0]), np.array([1.0, -0.5]), dtype=np.float64)
    for noop, expected in (
        (None, [0.25, -0.5]),
        ([0.5, -0.75], [0.5, -0.75]),
        ({"agent": np.array([0.5, -0.75])}, [0.5, -0.75]),
        (lambda agent, space: space.low, [0.25, -1.0]),
    ):
        env = under_network(asymmetric, ScheduleConfig(act_delay=1.0), noop=noop)
        env.reset(seed=0), env.step(np.array([1.0, -1.0]))
        assert env.env.book.told[0]["walker"].tolist() == expected


def test_w5_random():
    """Random no ops are keyed."""

    def told(seed: int, config: ScheduleConfig) -> list[int]:
        env = under_network(Bookkeeper("discrete", steps=30), {"fox": config}, noop="random")
        env.run_event_driven({"*": lambda o: 0}, seed=seed)
        return [step["fox"] for step in env.env.told]

    lost = ScheduleConfig(loss=1.0)
    assert told(1, lost) == told(1, lost) != told(2, lost) and {*told(1, lost)} == {-1, 0, 1, 2, 3}
    assert told(1, lost)[:4] == told(1, ScheduleConfig(phase=4.0))[:4]  # whatever else is drawn


def test_w5_what_needs_a_no_op_says_so():
    words = (
        "under_network(noop=None): 'agent' can have nothing in force (delay, loss or phase), and 0 is a no-op of a Box "
        "alone; give noop=action, {agent: action}, a function (agent, space) -> action, or 'random'"
    )
    for config in ({"obs_delay": 1.0}, {"act_delay": 1.0}, {"msg_delay": 1.0}, {"loss": 0.1}, {"phase": 1.0},
                   {"min_delay": 1.0}, {"obs_delay": Empirical([1.0])}):  # fmt: skip
        with refuses(ConfigError, words):
            under_network(Walk("discrete"), ScheduleConfig(**config))
    under_network(Walk("discrete"), ScheduleConfig(tick_interval=2.0))
    with refuses(ConfigError, words):
        under_network(Walk("discrete")).run_event_driven({"*": lambda o: 0}, seed=0, schedule=HARD)
    with refuses(ConfigError, "under_network(noop=...): 7 of 'agent' lies outside Discrete(5, start=-1)"):
        under_network(Walk("discrete"), noop=7)
    with refuses(ConfigError, "under_network(noop=...): 0 of 'agent' lies outside Box(-1.0, 1.0, (2,), float64)"):
        under_network(Walk(), noop=0)


# W6


def test_w6_infos():
    env = under_network(Walk(), ScheduleConfig(tick_interval=2.0, obs_delay=2.0, msg_delay=1.0))
    observation, info = env.reset(seed=3)
    filler = observation.copy()
    assert info == {"boundary": 0, "total": 0.0, "aoi": 0.0, "delivered": False, "is_active": False, "applied": -1}
    told, infos = [], []
    for step in range(7):
        observation, _, _, _, info = env.step(np.full(2, (step + 1) / 10))
        told.append(env.env.book.told[-1]["walker"][0])
        infos.append((info["boundary"], info["aoi"], info["delivered"], info["is_active"], info["applied"]))
        if step < 3:
            assert same(observation, filler)
    assert infos == [
        (1, 1.0, False, False, -1), (2, 2.0, False, False, -1), (3, 3.0, True, False, -1), (4, 3.0, True, True, -1),
        (5, 3.0, True, False, -1), (6, 3.0, True, True, 2), (7, 3.0, True, False, 2),
    ]  # fmt: skip
    assert told == [0.0] * 5 + [0.5, 0.5]


def test_w6_what_is_active_needs_an_action_and_others_may_be_left_out():
    env = under_network(Bookkeeper(agents=("a", "b")), {"b": ScheduleConfig(tick_interval=2.0)})
    with refuses(ResetNeeded, "step(): no episode is running; call reset() first"):
        env.step({})
    env.reset(seed=0)
    with refuses(InvalidAction, "step() got no action for 'b', whose turn it is (is_active)"):
        env.step({"a": np.zeros(2)})
    env.step({"a": np.ones(2), "b": np.ones(2)})
    env.step({"a": np.ones(2)})
    assert same(env.env.told[1], {"a": np.ones(2), "b": np.ones(2)})


# W7


def test_w7_ends():
    """Ends and joins."""
    env = under_network(
        Bookkeeper(ends={"fox": 3}, joins={"hare_1": 4}, steps=9),
        ScheduleConfig(obs_delay=1.0, act_delay=1.0, msg_delay=1.0),
    )
    env.reset(seed=0)
    for step in range(9):
        seen, _, terminated, truncated, infos = env.step({agent: np.full(2, 0.1) for agent in env.agents})
        assert ("fox" in seen) == (step < 3) and ("hare_1" in seen) == (step >= 3)
        if step == 2:
            assert terminated["fox"] and seen["fox"][0] == 1 and infos["fox"]["true_observation"][0] == 3
            assert not infos["fox"]["is_active"] and "true_observation" not in infos["hare_0"]
        if step == 3:  # at boundary 4 it joins
            assert seen["hare_1"][0] == 4 and not infos["hare_1"]["is_active"] and infos["hare_1"]["applied"] == -1
        if step >= 5:
            assert seen["hare_1"][0] == step - 1 and infos["hare_1"]["is_active"] == (step < 8)
    told = [step["hare_1"][0] for step in env.env.told if "hare_1" in step]
    assert told == [0.0] * 4 + [0.1]  # joined at 4, decides from 6 on, in force from 8 on
    assert truncated == {"hare_0": True, "hare_1": True} and env.agents == []
    result = env.run_event_driven({"*": lambda o: np.full(2, 0.1)}, seed=0)
    assert result.cancelled_effects == 1  # of tick 2
    assert result.unfinished_effects == 4 and result.messages.balanced()
    assert result.terminated == {"hare_0": False, "hare_1": False, "fox": True}
    assert result.truncated == {"hare_0": True, "hare_1": True, "fox": False}


class Reviving(Bookkeeper):
    """The fox comes back at boundary 5."""

    def step(self, actions: Any) -> Any:
        outcome = super().step(actions)
        if self.boundary == 5:
            self.agents.append("fox")
            for each, value in zip(outcome, (np.full(3, 55.0), 0.0, False, False, {}), strict=True):
                each["fox"] = value
        return outcome


def test_w7_second_life():
    """What set out in an earlier life does not arrive."""
    env = under_network(Reviving(ends={"fox": 4}), ScheduleConfig(obs_delay=3.0, act_delay=3.0))
    env.reset(seed=0)
    for step in range(10):
        seen, _, _, _, infos = env.step({agent: np.full(2, step / 10) for agent in env.agents})
        if 4 <= step <= 6:
            assert seen["fox"][0] == 55.0 and not infos["fox"]["is_active"]
        if step > 3 and "fox" in env.env.told[-1]:
            assert env.env.told[-1]["fox"][0] == 0.0  # its first life's command of tick 3 is gone

    result = env.run_event_driven({"*": lambda o: np.zeros(2)}, seed=0, t_end=6.0)
    assert result.unfinished_effects == 6 and result.cancelled_effects == 1  # ticks 3 to 5 of the hares, no more


class Ghosts(Bookkeeper):
    """Who has ended is observed to the end, and with `forgotten` who lives is not."""

    forgotten: tuple[str, ...] = ()
    lingering = False

    def reset(self, *args: Any, **of: Any) -> Any:
        seen, infos = super().reset(*args, **of)
        return {agent: o for agent, o in seen.items() if agent not in self.forgotten or self.boundary}, infos

    def step(self, actions: Any) -> Any:
        seen, rewards, terminated, truncated, _ = super().step(actions)
        seen |= {agent: np.full(3, -float(self.boundary)) for agent in self.ends if agent not in seen}
        if self.lingering and any(terminated.values()):
            self.agents = [*self.agents, "fox"]
        return {a: o for a, o in seen.items() if a not in self.forgotten}, rewards, terminated, truncated, None


def test_w7_dead():
    """Who is observed after its end does not join again."""
    late = ScheduleConfig(obs_delay=1.0, act_delay=2.0)
    env = under_network(Ghosts(ends={"fox": 3}), late)
    env.reset(seed=0)
    for step in range(12):
        seen, *_, infos = env.step(dict.fromkeys(env.agents, np.zeros(2)))
        assert seen["fox"][0] == (step if step < 3 else -step - 1) and not (step >= 2 and infos["fox"]["is_active"])
    result = env.run_event_driven({"*": lambda o: np.zeros(2)}, seed=0)
    assert result.terminated["fox"] and not result.truncated["fox"]
    assert result.messages.sent == 2 * 13 + 4 + 2 * 11 + 2  # nothing is sent to the dead


def test_w7_who_has_ended_must_leave():
    bare = Ghosts(ends={"fox": 3})
    bare.lingering = True
    with refuses(ConfigError, "agent 'fox' has ended and is still in env.agents; an environment takes it out"):
        under_network(bare).run_event_driven({"*": lambda o: np.zeros(2)}, seed=0)


def test_w6_who_is_not_shown_anything_sees_the_newest_that_it_has():
    env = under_network(bare := Ghosts())
    env.reset(seed=0)
    bare.forgotten = ("fox",)
    for step in range(3):
        seen, *_, infos = env.step(dict.fromkeys(env.agents, np.zeros(2)))
        assert seen["fox"][0] == 0 and infos["fox"]["aoi"] == step + 1.0 and infos["fox"]["is_active"]
    bare.forgotten, bare.boundary = ("hare_0",), 0
    with refuses(ConfigError, "agent 'hare_0' is in env.agents, and the environment shows it nothing"):
        env.env.reset = lambda seed, options: ({}, bare.__setattr__("agents", ["hare_0"]))
        env.reset(seed=0)
    with refuses(
        ResetNeeded,
        "step(): the last reset() ended in ConfigError: agent 'hare_0' is in env.agents, and the environment shows it "
        "nothing; call reset() first",
    ):
        env.step({})
    assert env._seed == 0 and env._number == 0


def test_w6_infos_of_the_same_name_are_kept_beside():
    inner = under_network(under_network(Walk(), ScheduleConfig(obs_delay=2.0)), ScheduleConfig(obs_delay=1.0))
    info = inner.reset(seed=0)[1]
    assert info["own"] == {"aoi": 0.0, "delivered": False, "is_active": False, "applied": -1}
    for _ in range(4):
        info = inner.step(np.zeros(2))[4]
    assert info["aoi"] == 1.0 and info["own"]["aoi"] == 2.0


def test_w6_infos_may_be_none():
    class Silent(Walk):
        def reset(self, **of: Any) -> Any:
            return super().reset(**of)[0], None

        def step(self, action: Any) -> Any:
            return (*super().step(action)[:4], None)

    env = under_network(Silent())
    assert env.reset(seed=0)[1]["is_active"] and env.step(np.zeros(2))[4]["aoi"] == 0.0


# W8


def test_w8_masks():
    """What the current mask forbids becomes the no op."""
    env = under_network(Bookkeeper("mask", ("a",)), ScheduleConfig(act_delay=1.0), noop=0)
    result = env.run_event_driven({"*": lambda o: 2}, seed=0)
    allowed = [k > 0 and k // 2 % 2 == 1 for k in range(12)]  # by the mask of the step in which it is applied
    assert [step["a"] for step in env.env.told] == [2 * flag for flag in allowed]
    assert result.masked == {"a": 11 - sum(allowed)}
    book = Bookkeeper("mask", ("a",), steps=60)
    under_network(book, ScheduleConfig(loss=1.0), noop="random").run_event_driven({"*": lambda o: 2}, seed=0)
    drawn = [step["a"] for step in book.told]
    assert all(choice != 1 or k % 2 for k, choice in enumerate(drawn)) and {*drawn} >= {0, 1, 3}
    book = Bookkeeper("mask", ("a",))  # what is a step old when it decides is not known to it
    under_network(book, ScheduleConfig(obs_delay=0.5), noop=0).run_event_driven({"*": lambda o: 2}, seed=0)
    assert [step["a"] for step in book.told] == [2 * flag for flag in allowed]


def test_w8_late_masks():
    """An agent gets the mask that came with its observation."""

    class Comparing:
        def forward(self, observation: Any, mask: Any) -> int:
            assert same(mask, observation["action_mask"])
            return 0

    late = ScheduleConfig(obs_delay=2.0, jitter_type="uniform", jitter_ratio=0.9, loss=0.3)
    env = under_network(Bookkeeper("mask", steps=40), late, noop=0)
    assert env.run_event_driven({"*": Comparing()}, seed=0).staleness["hare_0"].max > 4.0


@pytest.mark.parametrize(
    ("space", "mask", "forbidden", "allowed"),
    [
        (gymnasium.spaces.Discrete(5, start=-1), np.array([1, 1, 0, 1, 1], np.int8), 1, 2),
        (gymnasium.spaces.Discrete(5, start=-1), [True, True, False, True, True], 1, 2),
        (gymnasium.spaces.Discrete(5, start=-1), (1.0, 1.0, 0.0, 1.0, 1.0), 1, 2),
        (gymnasium.spaces.MultiBinary(2), np.array([2, 0]), [1, 1], [1, 0]),
        (gymnasium.spaces.MultiDiscrete([2, 3]), np.array([1, 0, 1, 1, 1], bool), [1, 2], [0, 2]),
        (gymnasium.spaces.MultiDiscrete([2, 3]), (np.array([1, 0], np.int8), np.ones(3, np.int8)), [1, 2], [0, 2]),
        (gymnasium.spaces.MultiDiscrete([2, 3]), (np.ones(2, np.int8), np.array([1, 1, 0], np.int8)), [1, 2], [1, 1]),
        (
            gymnasium.spaces.MultiDiscrete([[2, 2], [2, 2]]),
            (([1, 1], [1, 0]), ([1, 1], [1, 1])),
            [[0, 1], [0, 0]],
            [[1, 0], [1, 1]],
        ),
    ],
)
def test_w8_masks_in_infos(space: Any, mask: Any, forbidden: Any, allowed: Any):
    class Masked(Walk):
        def step(self, action: Any) -> Any:
            self.told = np.asarray(action).tolist()
            return np.zeros(3), 0.0, False, False, {"action_mask": mask}

    def courses(env: Any) -> list[Any]:
        env.reset(seed=0)
        ticks = forbidden, forbidden, allowed
        return [(env.step(np.array(a))[4]["applied"], env.env.told) for a in ticks for _ in range(2)]

    bare = Masked()
    bare.action_space, noop = space, np.zeros(space.shape, np.int64)
    env = under_network(bare, ScheduleConfig(tick_interval=2.0), noop=noop if noop.ndim else 0)
    held = [(-1, noop.tolist())]  # by then the choice of the last tick is forbidden
    assert courses(env) == [(0, forbidden), *held, (1, forbidden), *held, (2, allowed), (2, allowed)]
    with pytest.raises(ConfigError, match="'agent' has nothing in force, or chose what its mask forbids"):
        courses(under_network(bare, ScheduleConfig(tick_interval=2.0)))


class Composite(Walk):
    """A Tuple or Dict of choices; what may be chosen is in the info, or where that is None in the observation."""

    def __init__(self, space: Any, mask: Any, given: Any) -> None:
        super().__init__()
        self.action_space, self.mask, self.given = space, mask, given
        self.observation_space = gymnasium.spaces.Dict({"numbers": self.observation_space})

    def reset(self, **of: Any) -> Any:
        super().reset(**of)
        return self.step(None)[::4]

    def step(self, action: Any) -> Any:
        self.told = action
        seen = {"numbers": np.zeros(3), "action_mask": self.mask if self.given is None else None}
        return seen, 0.0, False, False, {"action_mask": self.given}


FORMS: list[tuple[Any, Any, list[Any]]] = [
    (gymnasium.spaces.Discrete(5), [1, 0, 1, 1, 1],
     [[1], (1,), 1.0, [1.0], True, np.array(1), np.array([1]), np.array([[1]]), np.int64(1), np.float32(1), np.bool_(1),
      np.array([1], object), np.array([True])]),
    (gymnasium.spaces.Discrete(5, start=-1), [1, 1, 0, 1, 1], [[1], 1.0, True, np.array([1.0])]),
    (gymnasium.spaces.MultiDiscrete([2, 3]), [1, 1, 1, 1, 0], [[1, 2], (1.0, 2.0), np.array([[1, 2]]), [[1], [2]]]),
    (gymnasium.spaces.MultiDiscrete([2, 3], start=[1, 1]), [1, 1, 1, 1, 0], [[1, 3], np.array([1.0, 3.0])]),
    (gymnasium.spaces.MultiBinary(2), [2, 0], [[0, 1], [0.0, 1.0], [False, True], np.array([[0, 1]])]),
    (gymnasium.spaces.Tuple([gymnasium.spaces.Discrete(2)] * 2), ([1, 1], [1, 0]),
     [(0, 1), [0, 1], [[0], [1]], np.array([0, 1]), (0.0, 1.0), (0, np.array([1]))]),
    (gymnasium.spaces.Dict(a=gymnasium.spaces.Discrete(2), b=gymnasium.spaces.Box(0, 1, (1,))),
     {"a": [1, 0], "b": None},
     [{"a": [1], "b": [0.5]}, {"b": 0.5, "a": 1.0}, {"a": np.array([1]), "b": np.array([0.5])}]),
    (gymnasium.spaces.OneOf([gymnasium.spaces.Discrete(2), gymnasium.spaces.Discrete(3)]), ([1, 1], [1, 1, 0]),
     [(1, 2), [1.0, 2], (np.int64(1), [2])]),
]  # fmt: skip
"""(space, mask, forms of one choice that it forbids)."""
ALLOWED: dict[Any, Any] = {
    gymnasium.spaces.OneOf: (0, 0), gymnasium.spaces.Tuple: (0, 0), gymnasium.spaces.Discrete: 0,
    gymnasium.spaces.MultiBinary: np.zeros(2, np.int8), gymnasium.spaces.Dict: {"a": 0, "b": np.zeros(1, np.float32)},
}  # fmt: skip


def noop_of(space: Any) -> Any:
    """A choice that its mask in FORMS allows."""
    return space.start if isinstance(space, gymnasium.spaces.MultiDiscrete) else ALLOWED[type(space)]


@pytest.mark.parametrize(("space", "mask", "forms"), FORMS, ids=lambda of: type(of).__name__)
def test_w8_a_forbidden_choice_is_forbidden_in_whatever_form_it_comes(space: Any, mask: Any, forms: list[Any]):
    for form in forms:
        bare = Composite(space, mask, mask)
        env = under_network(bare, ScheduleConfig(act_delay=1.0), noop=noop_of(space))
        env.reset(seed=0)
        course = [env.step(form)[4]["applied"] for _ in range(4)]
        assert course == [-1] * 4 and same(bare.told, noop_of(space)), form
        assert env._episode.result.masked == {"agent": 3}, form  # all but the no-op of the first step


@pytest.mark.parametrize("action", [np.array([2]), 2.0, [[3]], True, np.float64(0)])
def test_w8_what_is_allowed_arrives_in_the_form_in_which_it_was_given(action: Any):
    bare = Composite(gymnasium.spaces.Discrete(5), [1, 1, 1, 1, 0], None)
    env = under_network(bare, ScheduleConfig(act_delay=1.0), noop=0)
    env.reset(seed=0), env.step(action), env.step(action)
    assert same(bare.told, action)


@pytest.mark.parametrize("action", [7, None, "2", 1.5, [1, 2], {"a": 1}])
def test_w8_what_is_no_choice_is_refused_before_it_leaves_where_a_mask_waits_for_it(action: Any):
    bare = Composite(gymnasium.spaces.Discrete(5), [1, 1, 1, 1, 0], None)
    for config in ({"act_delay": 1.0}, {"obs_delay": 1.0}, {"loss": 0.1}, {"tick_interval": 2.0}):
        env = under_network(bare, ScheduleConfig(**config), noop=0)
        env.reset(seed=0)
        while not env._episode.deciding():
            env.step(0)
        with pytest.raises(InvalidAction, match=r"step\(\): the action of 'agent', .*, is no choice of Discrete\(5\)"):
            env.step(action)
        with pytest.raises(InvalidAction, match=r"is no choice of|returned None, and no plan"):
            env.run_event_driven({"*": lambda seen: action}, seed=0, t_end=4.0)
    env = under_network(bare)  # nothing is late: the environment's to judge
    env.reset(seed=0), env.step(action)
    assert same(bare.told, action)


def test_w8_what_is_no_choice_is_not_carried_out_where_a_mask_appears_while_it_travels():
    bare = Composite(gymnasium.spaces.Discrete(5), None, None)
    env = under_network(bare, ScheduleConfig(act_delay=1.0), noop=0)
    env.reset(seed=0)
    bare.mask = [1, 0, 1, 1, 1]
    env.step(1.5)  # it sees no mask yet
    assert env.step(2)[4]["applied"] == -1 and bare.told == 0 and env._episode.result.masked == {"agent": 1}
    assert env.step(2)[4]["applied"] == 1 and bare.told == 2


def test_w8_a_mask_that_does_not_fit_is_refused():
    env = under_network(Composite(gymnasium.spaces.Discrete(5), [1, 1], None), noop=0)
    with refuses(ConfigError, "the action_mask of 'agent', [1, 1], does not fit Discrete(5)"):
        env.reset(seed=0)


def test_w8_masks_are_copied():
    mask = np.array([1, 0], np.int8)
    env = under_network(Composite(gymnasium.spaces.Discrete(2), mask, mask), noop=0)

    class Meddling:
        def forward(self, observation: Any, mask: Any) -> int:
            mask[:] = 1
            return 0

    _, info = env.reset(seed=0)
    info["action_mask"][:] = 1
    env.run_event_driven({"*": Meddling()}, seed=0, t_end=2.0)
    assert mask.tolist() == [1, 0]


# W9


def test_w9_seeds():
    env = under_network(Bookkeeper(), HARD)
    env.reset(seed=2**40, options={"a": 1}), env.reset(), env.reset(options={"b": 2})
    assert env.env.resets == [(2**40, {"a": 1}), (None, None), (None, {"b": 2})]

    def course(*seeds: int | None) -> list[float]:
        for seed in seeds:
            env.reset(seed=seed)
        return [env.step(dict.fromkeys(env.agents, np.zeros(2)))[4]["fox"]["aoi"] for _ in range(11)]

    assert course(7) == course(7) == course(3, 7) != course(7, None) == course(7, None)
    assert course(7, None) == course(8, 7, None) != course(7, None, None)


def arrivals_of(config: ScheduleConfig) -> dict[Any, int]:
    env = under_network(Bookkeeper(steps=40), config)
    result = env.run_event_driven({"*": lambda o: np.zeros(2)}, seed=11, trace=True)
    return {(type(r.payload), r.agent, r.number): r.latency for r in result.trace if r.id >= 0}


def test_w9_shared_draws():
    """Two conditions share their draws."""
    plain = ScheduleConfig(obs_delay=0.7, act_delay=0.9, jitter_type="lognormal", jitter_ratio=0.8, reorder=True)
    free = arrivals_of(plain)
    lossy = arrivals_of(ScheduleConfig(obs_delay=0.7, act_delay=0.9, jitter_type="lognormal", jitter_ratio=0.8,
                                       reorder=True, loss=0.3))  # fmt: skip
    both = free.keys() & lossy.keys()
    assert len(both) > 100 and all(free[m] == lossy[m] for m in both)
    slower = arrivals_of(ScheduleConfig(obs_delay=0.7, act_delay=1.8, jitter_type="lognormal", jitter_ratio=0.8,
                                        reorder=True, loss=0.3))  # fmt: skip
    shown = [{m for m in run if m[0] is ObservationCopy and m[2] < 36} for run in (lossy, slower)]
    assert shown[0] == shown[1]  # what is lost of observations is not moved by actions


def test_w9_drawn_schedules_are_drawn_once_an_episode():
    env = under_network(Walk(), DrawnSchedule(obs_delay=[1.0, 2.0, 3.0, 4.0]))
    ages = []
    for episode in range(12):
        env.reset(seed=4 if not episode else None)
        ages.append([env.step(np.zeros(2))[4]["aoi"] for _ in range(8)][-1])
    drawn = DrawnSchedule(obs_delay=[1.0, 2.0, 3.0, 4.0])
    assert ages == [drawn.at(4, episode)["*"].obs_delay for episode in range(12)] and len({*ages}) > 2


# W10


def test_w10_ages():
    env = under_network(Walk(), ScheduleConfig(obs_delay=2.0), observe_age=True)
    assert env.observation_space.shape == (4,) and env.observation_space.dtype == np.float64
    course = [env.reset(seed=0)[0]] + [env.step(np.zeros(2))[0] for _ in range(4)]
    assert [(o[0], o[3]) for o in course] == [(0, 0), (0, 1), (0, 2), (1, 2), (2, 2)]
    for kind in ("image", "dict", "discrete", "mask"):
        env = under_network(Walk(kind, end=3), ScheduleConfig(obs_delay=1.0), observe_age=True, noop=NOOPS[kind])
        bare = Walk(kind, end=3)
        observation, expected = env.reset(seed=0)[0], bare.reset(seed=0)[0]
        assert same(observation["observation"], expected) and env.observation_space.contains(observation)
        outcomes = [env.step(NOOPS[kind]) for _ in range(3)]
        assert [o[0]["age"].tolist() for o in outcomes] == [[1.0], [1.0], [1.0]]
        assert outcomes[-1][4]["true_observation"]["age"].tolist() == [0.0]


def test_w10_parts():
    """Parts age apart."""
    parts = {"a": {"b": slice(1, 2), "c": slice(2, 3)}}
    schedule = {"a": ScheduleConfig(), "b": ScheduleConfig(obs_delay=1.0), "c": ScheduleConfig(msg_delay=3.0)}
    bare = Bookkeeper(agents=("a", "b", "c"))
    env = under_network(Bookkeeper(agents=("a", "b", "c")), schedule, observe_age=True, parts=parts)
    assert [env.observation_space(agent).shape for agent in "abc"] == [(6,), (4,), (4,)]
    env.reset(seed=5)
    true = [bare.reset(seed=5)[0]["a"]]
    for k in range(1, 8):
        seen = env.step(dict.fromkeys("abc", np.full(2, k / 10)))[0]
        true.append(bare.step(env.env.told[-1])[0]["a"])
        late = [max(0, k - delay) for delay in (0, 1, 3)]
        assert seen["a"].tolist() == [true[b][i] for i, b in enumerate(late)] + [float(k - b) for b in late]


def test_w10_parts_without_delay_are_the_bare_environment_also_where_their_source_has_ended():
    bare = parallel_rollout(Bookkeeper(ends={"fox": 4}, joins={"hare_1": 3}), "box")
    parts = {"hare_0": {"fox": slice(1, 2), "hare_1": slice(2, 3)}}
    boxed = parallel_rollout(under_network(Bookkeeper(ends={"fox": 4}, joins={"hare_1": 3}), parts=parts), "box")
    assert same([o[0] for o in bare], [o[0] for o in boxed])


def test_w10_parts_are_of_one_dimensional_boxes():
    with refuses(UnknownAgent, "under_network(parts=...): no agent 'foxy'; there are ['hare_0', 'hare_1', 'fox']. Did "
                 "you mean 'fox'?"):  # fmt: skip
        under_network(Bookkeeper(), parts={"foxy": {}})
    with pytest.raises(ConfigError, match=r"'hare_0' observes Box\(0, 255.*; parts are of a 1-D Box"):
        under_network(Bookkeeper("image"), parts={"hare_0": {"fox": slice(1)}})
    with refuses(ConfigError, "under_network(parts=...): 'fox': {'fox': slice(None, 1, None)}: give {another agent: "
                 "slice}, of its 3 elements each once"):  # fmt: skip
        under_network(Bookkeeper(), parts={"fox": {"fox": slice(1)}})


# W11


def test_w11_zero_delay():
    """Zero delay is the bare environment."""
    ends, joins = {"fox": 3, "hare_0": 7}, {"hare_1": 4}
    for kind in KINDS:
        bare = parallel_rollout(Bookkeeper(kind, ends=ends, joins=joins), kind)
        boxed = parallel_rollout(under_network(Bookkeeper(kind, ends=ends, joins=joins)), kind)
        assert len(bare) == len(boxed)
        for a, b in zip(bare, boxed, strict=True):
            if isinstance(b, tuple):
                assert not any(OURS & info.keys() for info in a[-1].values())
                assert all(OURS - {"true_observation", "index"} <= info.keys() for info in b[-1].values())
                b = (*b[:-1], own(b[-1]))
            assert same(a, b)


def forbidden_course(env: Any) -> list[Any]:
    """Of Taxi, with actions that its masks mostly forbid."""
    env.reset(seed=3)
    return [env.step(int(a))[:4] for a in np.random.default_rng(0).integers(6, size=50)]


def test_w11_forbidden():
    """Zero delay is the bare environment whatever is chosen."""
    newest = max(name for name in gymnasium.registry if name.startswith("Taxi-v"))
    bare, boxed = (gymnasium.make(newest) for _ in range(2))
    expected = forbidden_course(bare)
    assert same(forbidden_course(under_network(boxed, noop=0)), expected)
    actions = iter(np.random.default_rng(0).integers(6, size=50).tolist())
    env = under_network(boxed, ScheduleConfig(obs_delay=2.0, loss=0.5), noop=0)
    run = env.run_synchronous({"*": lambda seen: next(actions, 0)}, seed=3)
    assert [value for _, value in run.rewards["agent"]][:50] == [outcome[1] for outcome in expected]


def test_w11_unrecorded():
    """What is not recorded is measured all the same."""
    config = ScheduleConfig(obs_delay=1.0, act_delay=1.0)
    runs = {
        record: under_network(Bookkeeper(), config).run_event_driven({"*": policy}, seed=0, record=record)
        for record in ((), ("actions",), ("rewards",), ("rewards", "actions"))
    }
    full = runs["rewards", "actions"]
    for record, run in runs.items():
        assert run.staleness == full.staleness and run.latency == full.latency and run.latency["fox"].count == 10
        assert run.returns == full.returns
        assert len(run.rewards["fox"]) == (12 if "rewards" in record else 1)
        assert len(run.actions["fox"]) == (10 if "actions" in record else 0)


def test_w11_stepping_on_leaves_a_result_alone():
    env = under_network(Walk())
    result = env.run_event_driven({"*": lambda o: np.ones(2)}, seed=0, t_end=3.0)
    before = copy.deepcopy((result.rewards, result.actions))
    with refuses(ResetNeeded, "step(): no episode is running; call reset() first"):
        env.step(np.ones(2))
    assert same(before, (result.rewards, result.actions))


@pytest.mark.parametrize("kind", KINDS)
def test_w11_zero_delay_is_the_bare_gymnasium_environment(kind: str):
    bare, boxed, draw = Walk(kind, end=8), under_network(Walk(kind, end=8)), draws(kind, 1)
    for seed in (4, None):
        a, b = bare.reset(seed=seed), boxed.reset(seed=seed)
        assert same(a[0], b[0]) and same({"": a[1]}, own({"": b[1]}))
        for _ in range(8):
            action = draw(a[0])
            a, b = bare.step(copy.deepcopy(action)), boxed.step(action)
            assert same(a[:4], b[:4]) and same({"": a[4]}, own({"": b[4]}))


def policy(observation: Any) -> Any:
    """Deterministic, and sensitive to every bit."""
    return np.sin(observation[:2] * 37.0 + observation.sum())


def test_w11_runs():
    """A run is stepping by hand."""
    options: dict[str, Any] = {"ends": {"fox": 5}, "joins": {"hare_1": 3}, "steps": 20}
    env, hand = (under_network(Bookkeeper(**options), {"*": HARD, "hare": HARD_TICKS}) for _ in range(2))
    for seed in (2, None):
        result = env.run_event_driven({"*": policy}, seed=seed)
        seen, infos = hand.reset(seed=seed)
        rewards: dict[str, list[Any]] = {agent: [] for agent in hand.possible_agents}
        time = 0.0
        while hand.agents:
            actions = {
                agent: policy(seen[agent]) if infos[agent]["is_active"] else np.full(2, 0.77) for agent in hand.agents
            }
            seen, earned, _, _, infos = hand.step(actions)
            time += 1.0
            for agent, reward in earned.items():
                rewards[agent].append((time, reward))
        assert rewards == result.rewards and same(env.env.told, hand.env.told) and result.end_time == 20.0


HARD_TICKS = ScheduleConfig(tick_interval=2.0, phase=1.0, obs_delay=1.0, loss=0.4, on_missing="noop")


def test_w11_the_synchronous_run_is_the_bare_environment():
    env, bare = under_network(Bookkeeper(ends={"fox": 5}), HARD), Bookkeeper(ends={"fox": 5})
    result = env.run_synchronous({"*": policy}, seed=9)
    seen, _ = bare.reset(seed=9)
    while bare.agents:
        seen, *_ = bare.step({agent: policy(seen[agent]) for agent in bare.agents})
    assert same(env.env.told, bare.told) and result.end_time == 12.0
    assert result.staleness["fox"].max == 0.0 and result.messages.in_flight == 0


def test_w11_accounts():
    """Accounts balance."""
    env = under_network(Bookkeeper(steps=40, ends={"fox": 7}, joins={"hare_1": 5}), {"*": HARD, "hare_1": HARD_TICKS})
    episodes = []

    def keeping(observation: Any) -> Any:
        episodes.append(env._episode)
        return policy(observation)

    result = env.run_event_driven({"*": keeping}, seed=6, trace=True)
    broker, counts = episodes[0].broker, result.messages
    assert counts.balanced() and counts.lost > 20
    records = [r for r in result.trace if isinstance(r.payload, ActionCommand | ObservationCopy)]
    cancelled = [r for r in records if r.cancelled]
    arrived = len(records) - len(cancelled)
    assert counts.sent == arrived + len(cancelled) + counts.lost + counts.in_flight
    commands = [r for r in records if type(r.payload) is ActionCommand]
    effective = [r for r in commands if not r.cancelled]
    assert sum(map(len, result.actions.values())) == len(effective)
    assert any(r.agent == 2 for r in cancelled if type(r.payload) is ObservationCopy)  # of the fox, who had ended
    decided = {(r.agent, r.number) for r in result.trace if r.kind == "AgentTick"}
    gone = {(m.agent, m.number) for m, _ in broker.lost if type(m) is ActionCommand}
    whole = {(r.agent, r.number) for r in effective} | gone
    assert len(decided - whole) <= result.cancelled_effects + result.unfinished_effects
    assert len(effective) + result.cancelled_effects + result.unfinished_effects >= len(decided - gone)


def test_w11_causes():
    """Causes lead from boundary to observation to tick to command."""
    env = under_network(Bookkeeper(), HARD)
    result = env.run_event_driven({"*": policy}, seed=6, trace=True, record=("rewards", "actions", "observations"))
    trace = result.trace
    for r in trace:
        if type(r.payload) is ObservationCopy:
            assert (trace[r.cause].kind, trace[r.cause].number) == ("Boundary", r.number)
        if type(r.payload) is ActionCommand:
            assert (trace[r.cause].kind, trace[r.cause].agent, trace[r.cause].number) == (
                "AgentTick",
                r.agent,
                r.number,
            )
        if r.kind == "AgentTick":
            seen = trace[r.cause].payload
            assert type(seen) is ObservationCopy and seen.receiver == r.agent
            name = env.possible_agents[r.agent]
            at = dict(result.observations[name])[r.t_ns / SECOND]
            assert same(at, seen.content)
    again = under_network(Bookkeeper(), HARD).run_event_driven({"*": policy}, seed=6, trace=True)
    ids = env.possible_agents
    assert again.trace.lines(ids) == trace.lines(ids) and "set_action" in trace.table(ids)


def test_w11_results_have_ages_and_latencies_and_end_early():
    config = ScheduleConfig(obs_delay=1.0, msg_delay=1.0, act_delay=2.0)
    result = under_network(Bookkeeper(), config).run_event_driven({"*": policy}, seed=0, t_end=9.5)
    assert result.end_time == 9.0 and all(result.truncated.values()) and not any(result.terminated.values())
    assert result.staleness["fox"].p50 == 2.0 and result.latency["fox"].max == 3.0
    assert [t for t, _ in result.actions["fox"]] == [5.0, 6.0, 7.0, 8.0]
    assert [t for t, _ in result.rewards["fox"]] == [float(k) for k in range(1, 10)]
    again = under_network(Bookkeeper(), config).run_event_driven({"fox": policy, "hare": policy}, seed=0, t_end=9.0)
    assert result.same_course(again)


def test_w11_policies():
    env, zeros = under_network(Bookkeeper()), lambda observation: np.zeros(2)
    with refuses(
        ConfigError, "no policy for ['hare_0', 'hare_1']: give one by id, by group ['hare', 'fox'] or for '*'"
    ):
        env.run_event_driven({"fox": zeros}, seed=0)
    with refuses(UnknownAgent, "policies: 'foxx' is neither an agent nor a group; there are ['hare', 'fox', 'hare_0', "
                 "'hare_1']. Did you mean 'fox'?"):  # fmt: skip
        env.run_event_driven({"foxx": zeros}, seed=0)
    with pytest.raises(ConfigError, match="must be a mapping"):
        env.run_event_driven(zeros, seed=0)
    with pytest.raises(ConfigError, match="bookkeeper draws no frames, render_mode=None"):
        env.run_event_driven({"*": zeros}, seed=0, record=("frames",))

    class Objects:
        def decide_action(self, state: Any) -> Any:
            return 0

    class Asked:
        def answer(self, asked: Any) -> Any:
            return 0

    with pytest.raises(ConfigError, match="a black box has no states; give a function, `forward` or `answer`"):
        env.run_event_driven({"*": Objects()}, seed=0)
    with pytest.raises(ConfigError, match="answered 0: must be an Answer"):
        env.run_event_driven({"*": Asked()}, seed=0)

    def meddle(observation: Any) -> Any:
        env.reset(seed=1)
        return np.zeros(2)

    def stepping(observation: Any) -> Any:
        env.step(dict.fromkeys(env.agents, np.zeros(2)))
        return np.zeros(2)

    for one in (meddle, stepping):
        with refuses(RunInterrupted, "the policy of 'hare_0' moved the environment of its own run; use a copy"):
            env.run_event_driven({"*": one}, seed=0)


def test_w11_policies_have_masks_draws_and_beginnings():
    class Knowing:
        begun: Any = None

        def begin(self, seed: int, episode: int) -> None:
            self.begun, self.keys = (seed, episode), []

        def forward(self, observation: Any, mask: Any = None, draw: int | None = None) -> Any:
            assert same(mask, observation["action_mask"])
            self.keys.append(draw)
            return 0

    knowing = Knowing()
    env = under_network(Bookkeeper("mask"))
    env.run_event_driven({"*": knowing}, seed=5)
    keys = knowing.keys
    env.run_event_driven({"*": knowing})
    assert knowing.begun == (5, 1) and len({*keys, *knowing.keys}) == 72


# BatteryGrid as a black box, against its own event clock


@pytest.mark.parametrize(("obs", "act"), [(0, 0), (1, 2), (3, 1)])
def test_a_battery_grid_as_a_black_box_is_its_own_event_clock(obs: int, act: int):
    config = ScheduleConfig(obs_delay=float(obs), act_delay=float(act))

    def grid() -> Any:
        return make("heron/BatteryGrid-v0", num_batteries=3, max_steps=25)

    def decide(observation: Any) -> Any:
        return np.sin(observation[:1].astype(float) * 37.0 + observation.sum())

    own_clock = grid().run_event_driven(
        {"*": decide}, seed=3, schedule=config, record=("rewards", "actions", "observations")
    )
    boxed = under_network(grid(), config).run_event_driven(
        {"*": decide}, seed=3, record=("rewards", "actions", "observations")
    )
    for agent in boxed.rewards:
        assert boxed.rewards[agent] == own_clock.rewards[agent]
        assert same(boxed.actions[agent], own_clock.actions[agent]) and len(boxed.actions[agent]) == 25 - obs - act
        mine, theirs = ([vector for _, vector in run.observations[agent]] for run in (boxed, own_clock))
        assert same(mine, theirs[: len(mine)]) and len(mine) == 25 - obs
        assert boxed.truncated[agent] == own_clock.truncated[agent] is True
    assert boxed.unfinished_effects == own_clock.unfinished_effects


# Kits, copies, refusals


@pytest.mark.filterwarnings("ignore:.*A Box observation space m.*imum value is.*infinity")  # so are numbers and ages
@pytest.mark.filterwarnings("ignore:.*is different from the unwrapped version")  # so is every wrapper
@pytest.mark.filterwarnings("ignore:.*For Box action spaces, we recommend")
@pytest.mark.parametrize(
    ("kind", "config", "aged"), [("box", ScheduleConfig(), False), *((kind, HARD, True) for kind in KINDS)]
)
def test_pettingzoo_s_and_gymnasium_s_kits_pass(kind: str, config: ScheduleConfig, aged: bool):
    parallel_api_test(under_network(Bookkeeper(kind, ends={"fox": 5}), config, noop=NOOPS[kind], observe_age=aged), 60)
    env = under_network(Walk(kind), config, noop=NOOPS[kind], observe_age=aged)
    check_env(env, skip_render_check=True)


def test_it_is_a_wrapper_of_gymnasium_s():
    from gymnasium.wrappers import TimeAwareObservation

    class Masks(gymnasium.Wrapper):
        def action_masks(self) -> Any:
            return [1, 0]

    def make() -> Any:
        return Masks(gymnasium.make("CartPole-v1"))

    env = under_network(make(), HARD, noop=0, observe_age=True)
    with pytest.raises(ResetNeeded, match=r"action_masks\(\): no episode is running"):
        env.action_masks()
    env.reset(seed=0)
    assert env.get_wrapper_attr("action_masks")().tolist() == [True, False] and env.unwrapped is env.env.unwrapped
    assert env.np_random is env.env.np_random and env.metadata == env.env.metadata
    assert env.spec.additional_wrappers[-1].name == "NetworkEnv"
    assert TimeAwareObservation(env).reset(seed=0)[0].shape == (6,)
    plain = under_network(gymnasium.make("CartPole-v1"), HARD, noop=0)
    again = gymnasium.make(plain.spec)
    assert same(again.reset(seed=3), plain.reset(seed=3))
    for _ in range(5):
        assert same(again.step(1), plain.step(1))


def test_stable_baselines3_learns_under_the_network():
    sb3 = pytest.importorskip("stable_baselines3")
    env = under_network(gymnasium.make("CartPole-v1"), HARD, noop=0, observe_age=True)
    model = sb3.PPO("MlpPolicy", env, n_steps=64, batch_size=32, n_epochs=1, seed=0, device="cpu").learn(128)
    result = env.run_event_driven({"*": lambda vector: model.predict(vector, deterministic=True)[0]}, seed=0)
    assert result.returns["agent"] == result.end_time > 5.0


def test_an_environment_in_mid_episode_can_be_copied_and_pickled():
    env = under_network(Walk(), HARD)
    env.reset(seed=1)
    for _ in range(4):
        env.step(np.ones(2))
    for other in (copy.deepcopy(env), pickle.loads(pickle.dumps(env))):
        ahead = [copy.deepcopy(env).step(np.full(2, 0.1)), other.step(np.full(2, 0.1))]
        assert same(ahead[0], ahead[1])
    many = under_network(Bookkeeper(), HARD)
    many.reset(seed=1)
    for other in (copy.deepcopy(many), pickle.loads(pickle.dumps(many))):
        actions = dict.fromkeys(many.agents, np.zeros(2))
        assert same(copy.deepcopy(many).step(actions), other.step(actions))


def test_what_is_no_environment_is_refused():
    with pytest.raises(ConfigError, match="is no PettingZoo ParallelEnv and no Gymnasium Env; give one of them"):
        under_network(3)
    many = gymnasium.vector.SyncVectorEnv([Walk])
    with pytest.raises(ConfigError, match=r"put each into under_network\(\) and those into SyncVectorEnv"):
        under_network(many)
    with refuses(ScheduleError, "dt=0.0: a step takes 1e-9 seconds or more"):
        under_network(Walk(), dt=0.0)
    nameless = Bookkeeper()
    del nameless.possible_agents
    with refuses(ConfigError, "under_network(env): the environment must say its possible_agents"):
        under_network(nameless)
    with pytest.raises(ConfigError, match="on_missing='drop'"):
        under_network(Walk(), on_missing="drop")


def test_an_aec_environment_is_converted_or_refused_with_pettingzoo_s_reason():
    from pettingzoo.utils.conversions import parallel_to_aec

    parallel_api_test(under_network(parallel_to_aec(Bookkeeper(ends={"fox": 4})), HARD), 30)

    class Turns(AECEnv):
        metadata = {"name": "turns"}

    with pytest.raises(ConfigError, match="Converting from an AEC environment to a Parallel environment"):
        under_network(Turns())


def test_an_agent_that_is_not_possible_is_named():
    book = Bookkeeper(agents=("a", "b"), joins={"b": 2})
    env = under_network(book)
    book.joins = {"c": 1}
    book.possible_agents = ["a", "b", "c"]
    with refuses(ConfigError, "agent 'c' is not among the environment's possible_agents"):
        env.reset(seed=0)
        env.step({agent: np.zeros(2) for agent in env.agents})


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        ({"fox": 3}, "under_network(parts): 'fox'=3: must be a mapping {name: value}"),
        ([1], "under_network(parts)=[1]: must be a mapping {name: value}"),
        *[
            (
                {"fox": {"hare_0": slice(0, 1), "hare_1": where}},
                f"under_network(parts=...): 'fox': {{'hare_1': {where!r}}}: give {{another agent: slice}}, of its 3 "
                "elements each once",
            )
            for where in (slice(1, 1), slice(2, 4), slice(0, 2), slice("a"), 2)
        ],
    ],
)
def test_w10_parts_are_elements_that_there_are_each_once(parts: Any, words: str):
    with refuses(ConfigError, words):
        under_network(Bookkeeper(), parts=parts)


def test_w10_the_draws_of_a_part_do_not_depend_on_other_parts():
    def course(parts: Any) -> list[float]:
        env = under_network(Bookkeeper(agents=("a", "b", "c")), {"c": HARD}, observe_age=True, parts={"a": parts})
        env.reset(seed=0)
        return [env.step(dict.fromkeys("abc", np.zeros(2)))[0]["a"][-1] for _ in range(11)]

    alone = course({"c": slice(2, 3)})
    assert alone == course({"b": slice(1, 2), "c": slice(2, 3)}) and len({*alone}) > 2


def test_what_can_not_be_recorded_or_named_is_refused_in_words():
    class Odd(Walk):
        earned: Any = 1.0

        def step(self, action: Any) -> Any:
            return np.zeros(3), self.earned, False, False, {}

    bare = Odd()
    bare.action_space = gymnasium.spaces.Text(5)
    env = under_network(bare)
    with refuses(ConfigError, f"record: 'go' of {bare.action_space} is no vector; leave 'actions' out"):
        env.run_event_driven({"*": lambda o: "go"}, seed=0, t_end=2.0)
    assert env.run_event_driven({"*": lambda o: "go"}, seed=0, t_end=2.0, record=()).returns == {"agent": 2.0}
    bare.earned = None
    with refuses(ConfigError, "the reward of 'agent' is None: a run adds up numbers; weigh them by a wrapper"):
        env.run_event_driven({"*": lambda o: "go"}, seed=0, t_end=2.0, record=())

    class Totalled(Bookkeeper):
        def step(self, actions: Any) -> Any:
            seen, rewards, *others = super().step(actions)
            return (seen, {**rewards, "__all__": 1.0}, *others)

    with refuses(ConfigError, "agent '__all__' is not among the environment's possible_agents"):
        under_network(Totalled()).run_event_driven({"*": policy}, seed=0)
    with refuses(ConfigError, "under_network(env): possible_agents are (0, 1); schedules name them by text"):
        under_network(Bookkeeper(agents=(0, 1)))  # type: ignore[arg-type]

    class Listed(Walk):
        def reset(self, **of: Any) -> Any:
            return super().reset(**of)[0].tolist(), {}

    aged, _ = under_network(Listed(), observe_age=True).reset(seed=0)
    assert aged.dtype == np.float64 and aged.shape == (4,)
