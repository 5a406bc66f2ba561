"""Where no seed was ever given, each environment draws its own and says it; whatever has one is as it was."""

import copy
import pickle
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
import pytest
from black_boxes import Bookkeeper, Walk, same

from heron_env import BatchEnv, DrawnSchedule, ScheduleConfig, make, under_network
from heron_env.adapters import HeronVectorEnv
from heron_env.adapters.datasets import record_decisions
from heron_env.registry import make_aec
from heron_env.worlds.economy import economy, observability

SPREAD = "heron/Spread-v0"
LATE = ScheduleConfig(obs_delay=1.0, jitter_type="uniform", jitter_ratio=0.9, loss=0.3)
DRAWN = DrawnSchedule(msg_delay="0-0.3")


def spread(**options: Any) -> Any:
    """Whose agents begin anywhere."""
    return make(SPREAD, max_steps=5, **options)


def joint() -> Any:
    """The same as one controller has it."""
    return gymnasium.make(f"heron_env:{SPREAD}", max_steps=5, disable_env_checker=True)


def noisy() -> Any:
    """A world of a YAML file, of which the first agent gets a blurred view."""
    first, *others = economy().possible_agents
    return economy(observability=observability(first, others, "insider", 0.2), max_steps=5)


def course(env: Any, seed: int | None = None) -> list[Any]:
    """What is observed and earned in two episodes, the first of which begins with the seed, without any action."""
    seen: list[Any] = []
    for first in (seed, None):
        seen.append(env.reset(seed=first)[0])
        over = False
        while not over:
            several = callable(env.action_space)
            spaces = {agent: env.action_space(agent) for agent in env.agents} if several else {"": env.action_space}
            actions = {agent: np.zeros(space.shape, space.dtype) for agent, space in spaces.items()}
            observed, earned, *ends, _ = env.step(actions if several else actions[""])
            seen += [observed, earned]
            over = not env.agents if several else any(ends)
    return seen


FACES: dict[str, Callable[[], Any]] = {
    "parallel": spread,
    "in Python": lambda: spread(compile=False),
    "declared in YAML, with noise": lambda: noisy(),
    "joint": joint,
    "parallel, under a network": lambda: under_network(spread(), LATE),
    "joint, under a network": lambda: under_network(joint(), LATE),
    "somebody's of Gymnasium": lambda: under_network(Walk(steps=5), LATE),
    "somebody's of PettingZoo": lambda: under_network(Bookkeeper(steps=5), LATE),
    "a black box of the command line": lambda: make("gymnasium:Pendulum-v1", max_steps=5).env,
}


@pytest.mark.parametrize("face", FACES)
def test_each_draws_a_seed_of_its_own_and_is_repeated_with_it(face: str):
    first, second = FACES[face](), FACES[face]()
    ones, others = course(first), course(second)
    assert not same(ones, others), "two have the same episodes"
    assert not same(ones[:11], ones[11:]), "the second episode is the first"
    assert first.np_random_seed != second.np_random_seed
    assert same(ones, course(second, first.np_random_seed)) and second.np_random_seed == first.np_random_seed


@pytest.mark.parametrize("face", FACES)
def test_the_seed_is_known_before_the_first_reset_and_a_given_one_takes_its_place(face: str):
    env, other = FACES[face](), FACES[face]()
    seed = env.np_random_seed
    assert env.np_random_seed == seed and same(course(env), course(other, seed))
    assert same(course(env, 7), course(other, 7)) and env.np_random_seed == 7


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))])
def test_copies_of_one_that_has_not_begun_draw_each_their_own(copied: Any):
    env = spread()
    one, other = copied(env), copied(env)
    assert not same(one.reset()[0], other.reset()[0])
    again = copied(one)
    assert again.np_random_seed == one.np_random_seed and same(again.reset()[0], one.reset()[0])


def test_agent_by_agent_it_is_the_parallel_one():
    seen = []
    for _ in range(2):
        env = make_aec(SPREAD, max_steps=5)
        env.reset()
        seen.append(env.observe("agent_0"))
    assert not same(*seen)


@pytest.mark.parametrize("clock", ["synchronous", "event-driven", "event-driven, drawn", "of a black box"])
def test_a_run_without_a_seed_says_which_it_had(clock: str):
    def run(env: Any, seed: int | None = None) -> Any:
        idle = {"*": lambda seen: np.zeros(2 if "black box" in clock else 5)}
        if clock == "synchronous":
            return env.run_synchronous(idle, seed=seed)
        return env.run_event_driven(idle, seed=seed, schedule=DRAWN if "drawn" in clock else LATE)

    def build() -> Any:
        return under_network(Walk(steps=5)) if "black box" in clock else spread()

    env = build()
    first, second, other = run(env), run(env), run(build())
    assert (first.seed, first.episode) == (env.np_random_seed, 0) and (second.seed, second.episode) == (first.seed, 1)
    assert first.seed != other.seed and not first.same_course(other) and not first.same_course(second)
    again = build()
    repeated = run(again, first.seed)
    assert first.same_course(repeated) and second.same_course(run(again))
    assert (repeated.seed, repeated.episode) == (first.seed, 0)


def test_recorded_decisions_without_a_seed_are_each_their_own():
    idle = {"*": lambda seen: np.zeros(5)}
    one, other = (record_decisions(spread(), idle)[0].observations for _ in range(2))
    assert not same(one, other)


def test_workers_of_a_vector_that_nobody_seeded_differ():
    vec_env = pytest.importorskip("stable_baselines3.common.vec_env")
    vectors = [
        vec_env.DummyVecEnv([joint] * 3).reset(),
        gymnasium.vector.SyncVectorEnv([joint] * 3).reset()[0],
        gymnasium.make_vec(f"heron_env:{SPREAD}", 3, vectorization_mode="sync").reset()[0],
        gymnasium.vector.SyncVectorEnv([lambda: under_network(joint(), LATE)] * 3).reset()[0],
    ]
    for rows in vectors:
        assert len({row.tobytes() for row in rows}) == 3


@pytest.mark.e2e
def test_a_batch_and_what_is_made_of_it_keep_the_seeds_that_they_name():
    batch, vector = BatchEnv(SPREAD, 3), HeronVectorEnv(SPREAD, 3)
    event = BatchEnv(SPREAD, 3, clock="event", autoreset="disabled", compile=True, max_steps=5, seed=4)
    first, _ = batch.reset()
    assert same([*first["agent"]], [np.stack([*spread().reset(seed=lane)[0].values()]) for lane in range(3)])
    assert np.array_equal(vector.reset()[0], first["agent"].reshape(3, -1))
    rows = event.begin()
    while len(rows):
        rows = event.answer(np.zeros((len(rows), 5)))
    assert [(result.seed, result.episode) for result in event.results()] == [(4, 0), (5, 0), (6, 0)]
