"""What a policy draws is keyed by seed, episode, agent and tick: by nothing that it observes, and in no other way."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from heron_env import (
    BatchEnv,
    Continuous,
    Discrete,
    FeatureProvider,
    FieldAgent,
    HeronEnv,
    Mixed,
    MultiDiscrete,
    ScheduleConfig,
    SystemAgent,
    Vector,
    quantity,
    rule,
)
from heron_env.adapters import HeronVecEnv
from heron_env.core import masking
from heron_env.core.action import ActionSpec
from heron_env.core.policy import draw_of, draws_of
from heron_env.envs.batch import lane_groups
from heron_env.lab import NetworkPolicy, benchmark
from heron_env.lab.benchmark import RANDOM, Case, RandomPolicy
from heron_env.lab.remedies import Fallback
from heron_env.lab.sweep import play
from heron_env.lab.trained import Correction, Network, Scaling
from heron_env.seeding import h
from tests.laws.mutants import mutant_in, require_held
from tests.masked_worlds import lamps

STEPS = 9
NAMES = ("gambler_0", "gambler_1", "gambler_2")
SPARSE = ScheduleConfig(tick_interval=3.0, phase=1.0)


class Constant(FeatureProvider):
    """All that there is to observe."""

    visibility = ("owner",)
    value: float = quantity(default=1.0, low=0.0, high=2.0)


class Sum(FeatureProvider):
    """What the last action was, and the total, which nobody observes."""

    last: float = quantity(default=0.0, low=-1.0, high=1.0, observed=False)


class Gambler(FieldAgent):
    """Earns what it has drawn."""

    features = (Constant, Sum)
    action: Any = Continuous(-1.0, 1.0)

    @staticmethod
    @rule(writes=Sum.last)
    def apply_action(action: Vector) -> float:
        return action[0]

    @staticmethod
    @rule
    def compute_local_reward(sum: Sum) -> float:
        return sum.last


def gamblers(schedule: Any = None, compile: bool = True) -> HeronEnv:
    """Three gamblers who draw, and a player who does nothing."""
    agents = [*(Gambler(name) for name in NAMES), Gambler("player", policy=lambda vector: [0.0])]
    return HeronEnv(SystemAgent("system", *agents), max_steps=STEPS, schedule=schedule, compile=compile)


def spec() -> ActionSpec:
    return gamblers(compile=False).simulation.model.specs[1]


def sampled() -> NetworkPolicy:
    layer = (np.ones((1, 1), dtype=np.float32), np.zeros(1, dtype=np.float32))
    act = Correction(np.array([-1.0]), np.array([1.0]))
    scaling = Scaling(np.ones(1), np.ones(1))
    return NetworkPolicy(Network((layer,)), scaling, act, log_std=np.array([-1.5]), deterministic=False)


def by_hand(observation: Any, draw: int) -> list[float]:
    """A function that is no class of ours."""
    return [(draw >> 11) * 2.0**-52 - 1.0]


class OnStates:
    """The same in object form."""

    def decide_action(self, state: Any, draw: int) -> list[float]:
        return by_hand(state, draw)


POLICIES: dict[str, Callable[[], Any]] = {
    "random": lambda: RandomPolicy(spec()),
    "sampled": sampled,
    "function": lambda: by_hand,
    "states": OnStates,
    "wrapped": lambda: Fallback(RandomPolicy(spec()), by_hand, [0], np.inf),
    "wrapped function": lambda: Fallback(by_hand, by_hand, [0], np.inf),
}
Course = dict[str, list[float]]
"""What each gambler earned step by step, which is what it drew last."""


def course(result: Any) -> Course:
    return {name: [value for _, value in result.rewards[name]] for name in NAMES}


def sync(env: HeronEnv, one: Any, seed: int | None) -> Course:
    return course(env.run_synchronous({"gambler": one}, seed=seed))


def draws_are_its_own(make: Callable[[], Any], schedule: Any) -> None:
    """One policy object: another action for each seed, agent and tick, and the same again for the same."""
    env, one = gamblers(schedule), make()
    found = [sync(env, one, seed) for seed in range(12)]
    ticks = [step for step in range(STEPS) if env.timings[1].ticks_at(step * env.dt_ns)]
    drawn = [each[name][step] for each in found for name in NAMES for step in ticks]
    assert len(set(drawn)) == len(drawn) == 12 * 3 * len(ticks)
    assert [sync(env, one, seed) for seed in range(12)] == found
    assert sync(env, make(), 3) == found[3]
    assert sync(env, one, None) not in found, "the next episode of a seed"


def clocks_agree(make: Callable[[], Any], schedule: Any) -> None:
    """Synchronous, event-driven and in lanes of the compiled clock."""
    env, one = gamblers(schedule), make()
    for seed in (0, 2**63 - 1):
        expected = sync(env, one, seed)
        assert course(env.run_event_driven({"gambler": one}, seed=seed)) == expected
        assert sync(gamblers(schedule, compile=False), one, seed) == expected
        if hasattr(one, "forward_batch"):
            policies = {"gambler": one, "player": benchmark.NoOp(np.zeros(1))}
            lanes = play.play_lanes(env, [Case(7), Case(seed)], [policies] * 2, play.in_step(env), ("rewards",))
            assert course(lanes.results()[1]) == expected


def batches_agree(make: Callable[[], Any], schedule: Any, compile: bool) -> None:
    """The agents' own policies, those of a batch, and those of SB3's environment."""
    one, seeds = make(), [4, 5, 2**63 - 1]
    single = gamblers(schedule, compile)
    for agent in single.hierarchy.agents[1:4]:
        agent.policy = one
    expected = np.zeros((STEPS, 3, 3))
    for lane, seed in enumerate(seeds):
        single.reset(seed=seed)
        for step in range(STEPS):
            rewards = single.step({})[1]
            expected[step, lane] = [rewards[name] for name in NAMES]
    assert len(np.unique(expected)) > 3 * 3
    built = lambda: gamblers(schedule, compile)  # noqa: E731
    batch = BatchEnv(built, 3, others={"gambler": one})
    vec = HeronVecEnv(built, 3, group="player", others={"gambler": one})
    batch.reset(seeds)
    vec.batch.reset(seeds)
    for step in range(STEPS - 1):
        assert np.array_equal(batch.step({})[1]["gambler"], expected[step])
        vec.step(np.zeros((3, 1), dtype=np.float32))
        assert np.array_equal(vec.batch._engine.rewards[:, 1:4], expected[step])


CHECKS: dict[str, Callable[[], None]] = {
    "its own": lambda: draws_are_its_own(POLICIES["random"], SPARSE),
    "clocks": lambda: clocks_agree(POLICIES["random"], SPARSE),
    "batches": lambda: batches_agree(POLICIES["random"], SPARSE, True),
}


EACH = pytest.mark.parametrize(("kind", "schedule"), [("random", None), *((kind, SPARSE) for kind in POLICIES)])


@EACH
def test_a_draw_is_a_function_of_seed_episode_agent_and_tick(kind: str, schedule: Any):
    draws_are_its_own(POLICIES[kind], schedule)


@pytest.mark.e2e
@EACH
def test_draws_are_equal_in_both_clocks_and_in_lanes(kind: str, schedule: Any):
    clocks_agree(POLICIES[kind], schedule)


@pytest.mark.parametrize(
    ("kind", "schedule", "compile"),
    [
        ("random", None, True), ("random", SPARSE, False), ("function", None, True), ("function", SPARSE, False),
        ("wrapped", SPARSE, True), ("wrapped", None, False),
    ],
)  # fmt: skip
def test_draws_are_equal_in_batches(kind: str, schedule: Any, compile: bool):
    batches_agree(POLICIES[kind], schedule, compile)


def test_a_network_moves_no_draw():
    """Lost messages lose decisions; those that remain draw what they would have drawn."""
    env, one = gamblers(), RandomPolicy(spec())
    whole = env.run_event_driven({"gambler": one}, seed=3)
    lossy = env.run_event_driven({"gambler": one}, seed=3, schedule=ScheduleConfig(loss=0.4))
    for name in NAMES:
        kept = [values.tolist() for _, values in lossy.actions[name]]
        assert 0 < len(kept) < STEPS
        assert kept == [values.tolist() for time, values in whole.actions[name] if time in dict(lossy.actions[name])]


def test_many_keys_are_those_of_one_at_a_time():
    numbers, seeds = np.arange(-1, 5), np.arange(2**64 - 6, 2**64, dtype=np.uint64)
    names = np.array([h(f"a_{n}") for n in range(6)], dtype=np.uint64)
    alone = [
        draw_of(int(seed), 2, f"a_{n}", int(number))
        for n, (seed, number) in enumerate(zip(seeds, numbers, strict=True))
    ]
    assert draws_of(seeds, np.full(6, 2, dtype=np.uint64), names, numbers).tolist() == alone


MIXED = Mixed(Continuous(-2.0, 6.0), MultiDiscrete([3, 2]))


def test_random_is_uniform_over_what_is_allowed():
    draws, n = np.arange(40_000, dtype=np.uint64), 40_000
    free = RandomPolicy(MIXED).forward_batch(np.zeros((n, 1), np.float32), None, draws)
    assert MIXED.legal(free).all()
    assert abs(free[:, 0].mean() - 2.0) < 0.05 and abs(free[:, 0].std() - 8.0 / 12**0.5) < 0.03
    assert np.abs(np.bincount(free[:, 1].astype(int)) / n - 1 / 3).max() < 0.01
    assert abs(free[:, 2].mean() - 0.5) < 0.01 and abs(np.corrcoef(free.T) - np.eye(3)).max() < 0.02
    masks = np.tile(np.array([1, 0, 1, 0, 1], dtype=np.int8), (n, 1))
    masks[: n // 2] = [0, 1, 0, 1, 1]
    bound = RandomPolicy(MIXED).forward_batch(np.zeros((n, 1), np.float32), masks, draws)
    assert (bound[: n // 2, 1] == 1).all() and set(bound[: n // 2, 2]) == {0.0, 1.0}
    assert abs((bound[n // 2 :, 1] == 0).mean() - 0.5) < 0.015 and set(bound[n // 2 :, 1]) == {0.0, 2.0}
    assert (bound[n // 2 :, 2] == 1).all() and np.array_equal(bound[:, 0], free[:, 0])
    one = RandomPolicy(MIXED).forward(np.zeros(1), masking.shaped(MIXED, masks[-1]), draw=n - 1)
    assert np.array_equal(one, bound[-1])


@pytest.mark.parametrize("kind", ["lamp", "pair", "dimmer"])
def test_random_is_never_masked_without_delay(kind: str):
    env = lamps(kind, kind)
    found = env.run_synchronous(benchmark.baselines(env)[RANDOM], seed=1)
    assert not any(found.masked.values())
    assert found.same_course(env.run_event_driven(benchmark.baselines(env)[RANDOM], seed=1))


def test_by_hand_it_takes_the_next_draw_of_its_own():
    one, other = RandomPolicy(Discrete(1000)), RandomPolicy(Discrete(1000))
    found = [one.forward(np.zeros(1)).item() for _ in range(20)]
    assert len(set(found)) > 15 and found == [other.forward(np.zeros(1)).item() for _ in range(20)]


MUTANTS: dict[str, Any] = {}
mutant = mutant_in(MUTANTS)


@mutant(HeronEnv, "draw_of")
def the_seed_is_left_out(original: Any) -> Any:
    return lambda self, rank, number: draw_of(0, self._episode, self.hierarchy.ids[rank], number)


@mutant(HeronEnv, "draw_in_step")
def steps_are_counted_for_ticks(original: Any) -> Any:
    return lambda self, rank: self.draw_of(rank, self.simulation.step_index)


@mutant(lane_groups, "draws_of")
def a_batch_has_keys_of_its_own(original: Any) -> Any:
    return lambda seeds, episodes, agents, numbers: original(seeds, episodes, agents, numbers + 1)


@mutant(lane_groups, "draws_of")
def lanes_have_keys_of_their_own(original: Any) -> Any:
    return lambda seeds, episodes, agents, numbers: original(seeds, episodes + np.uint64(1), agents, numbers)


CAUGHT = {
    "a_batch_has_keys_of_its_own": "batches",
    "lanes_have_keys_of_their_own": "clocks",
    "steps_are_counted_for_ticks": "clocks",
}


@pytest.mark.e2e
@pytest.mark.parametrize("name", MUTANTS)
def test_planted_faults_are_caught(name: str):
    check = CHECKS[CAUGHT.get(name, "its own")]
    require_held(check)
    with MUTANTS[name](), pytest.raises(AssertionError):
        check()
