"""Copies of a running environment go on as it would have: pickles, deep copies, forks, other processes, both clocks."""

import copy
import os
import pickle
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any

import numpy as np
import pytest
from masked_worlds import lamps
from refusing import refuses
from small_worlds import Chooser, Hand, LawEnv, Reversed, Team, Top, Unit, Zone

from heron_env import HeronEnv, World, make
from heron_env.errors import ConfigError, ResetNeeded

Make = Callable[[], HeronEnv]


class Counting(LawEnv):
    """A world that keeps something of its own, and adds to what is pickled."""

    begun = 0

    def begin(self, world: World) -> None:
        super().begin(world)
        self.begun += 1

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "note": "mine"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.note = state.pop("note")
        super().__setstate__(state)


def world(kind: type[HeronEnv] = LawEnv, protocol: Any = None, **options: Any) -> HeronEnv:
    zone = Zone("zone_1", Unit("unit_1"), Unit("unit_2"), **({"protocol": protocol} if protocol else {}))
    team = Team("team_1", Chooser("chooser_1"), Unit("unit_3"))
    return kind(Top("top", zone, team), **{"dt": 1.0, "physics_substeps": 2, "max_steps": 9, **options})


def rules() -> HeronEnv:
    return world(compile=True)


def split() -> HeronEnv:
    return world(protocol=Reversed())


def masked() -> HeronEnv:
    return lamps("lamp", "pair", compile=False)


def by_hand() -> HeronEnv:
    return LawEnv(Top("top", Team("team_1", Hand("hand_1"), Unit("unit_1"))), max_steps=9)


def own_state() -> HeronEnv:
    return world(Counting)


COMPILED = pytest.param(rules, marks=pytest.mark.e2e)
every_world = pytest.mark.parametrize(
    "make",
    [COMPILED, split, masked, by_hand, own_state],
    ids=lambda make: make.__name__,
)
two_worlds = pytest.mark.parametrize("make", [COMPILED, by_hand], ids=lambda make: make.__name__)


def going_on(env: HeronEnv, steps: int, begun: int = 0) -> list[Any]:
    """What each step gives, and the truth after it, as bytes and numbers."""
    told = []
    for k in range(begun, begun + steps):
        if not env.agents:
            env.reset()
        rng = np.random.default_rng(k)
        actions = {agent: env.simulation.model.specs[env.hierarchy.index[agent]] for agent in env.agents[k % 2 :]}
        given = {a: np.concatenate([rng.uniform(s.low, s.high), rng.integers(s.ncats)]) for a, s in actions.items()}
        results = env.step(given)
        told.append((pickle.dumps(plainly(results)), env.simulation.truth.tobytes(), [*map(int, env.decided)]))
    return told


def plainly(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: plainly(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [plainly(part) for part in value]
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else value


def through_pickle(env: Any) -> Any:
    return pickle.loads(pickle.dumps(env))


def through_a_state(env: Any) -> Any:
    other = through_pickle(env)
    other.reset(seed=77)
    other.set_state(env.get_state())
    return other


@every_world
@pytest.mark.parametrize("way", [through_pickle, copy.deepcopy, through_a_state], ids=lambda way: way.__name__)
def test_a_copy_goes_on_alike_and_apart(make: Make, way: Callable[[Any], Any]):
    env = make()
    env.reset(seed=3)
    going_on(env, 3)
    twin = way(env)
    assert not np.shares_memory(twin.simulation.truth, env.simulation.truth)
    assert twin.last_decisions == env.last_decisions
    assert going_on(twin, 4, 3) == going_on(env, 4, 3)


@two_worlds
def test_an_environment_that_never_began_is_copied(make: Make):
    env = make()
    twins = [through_pickle(env), copy.deepcopy(env)]
    whole = [one.reset(seed=1) and going_on(one, 3) for one in (env, *twins)]
    assert whole[0] == whole[1] == whole[2]


@two_worlds
def test_the_truth_stays_where_it_is(make: Make):
    env = make()
    truth, world, states = env.simulation.truth, env.world, [agent.state for agent in env.hierarchy.agents[:2]]
    for seed in (0, 1):
        env.reset(seed=seed)
        going_on(env, 2)
        assert np.shares_memory(env.simulation.truth, truth)
        assert env.world is world
        for rank, state in enumerate(states if make is not by_hand else ()):
            assert env.hierarchy.agents[rank].state is state
            assert all(np.shares_memory(feature._array, truth) for feature in state.features)


def policies_of(env: HeronEnv) -> Any:
    specs = {agent: env.simulation.model.specs[env.hierarchy.index[agent]] for agent in env.possible_agents}
    return {a: lambda vector, spec=spec: spec.noop + 0.0 * vector[0] for a, spec in specs.items()}


def outcome_of(run: Any) -> Any:
    result = run.result()
    return plainly([result.rewards, result.actions, result.end_time])


@two_worlds
def test_an_event_driven_run_is_copied_in_the_middle(make: Make):
    env = make()
    policies = policies_of(env)
    run = env.start_event_driven(policies, seed=4)
    run.until(2.3)
    other, deep = through_pickle(run), copy.deepcopy(run)
    for one in (other, deep):
        one.attach(policies)
    for one in (run, other, deep):
        one.until(None)
    assert outcome_of(run) == outcome_of(other) == outcome_of(deep)


@two_worlds
def test_the_environment_is_copied_while_an_event_driven_run_goes_on(make: Make):
    env = make()
    policies = policies_of(env)
    whole = outcome_of(_whole(make(), policies))
    run = env.start_event_driven(policies, seed=4)
    run.until(2.3)
    twin = copy.deepcopy(env)
    assert twin.simulation.truth.tobytes() == env.simulation.truth.tobytes()
    twin.reset(seed=9)
    going_on(twin, 2)
    run.until(None)
    assert outcome_of(run) == whole


def _whole(env: HeronEnv, policies: Any) -> Any:
    run = env.start_event_driven(policies, seed=4)
    run.until(None)
    return run


def carried_on(env: HeronEnv) -> list[Any]:
    return going_on(env, 4, 3)


@pytest.fixture(scope="module")
def elsewhere() -> Iterator[ProcessPoolExecutor]:
    """Another process, which imports everything anew."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        yield pool


@every_world
def test_it_goes_on_in_another_process(make: Make, elsewhere: ProcessPoolExecutor):
    env = make()
    env.reset(seed=3)
    going_on(env, 3)
    there = elsewhere.submit(carried_on, env).result()
    assert there == carried_on(env)


@two_worlds
@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_it_goes_on_in_a_fork(make: Make):
    env = make()
    env.reset(seed=3)
    going_on(env, 3)
    read, write = os.pipe()
    if (child := os.fork()) == 0:
        try:
            os.write(write, pickle.dumps(hash_of(carried_on(env))))
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        there = pickle.loads(pipe.read())
    os.waitpid(child, 0)
    assert there == hash_of(carried_on(env))


def hash_of(told: list[Any]) -> Any:
    return [part.hex() for step in told for part in step[:2]], [step[2] for step in told]


def test_a_world_adds_to_what_is_pickled():
    env = own_state()
    env.reset(seed=1)
    twin = through_pickle(env)
    assert (twin.note, twin.begun >= 1) == ("mine", True)


def test_a_state_is_a_copy():
    env = rules()
    env.reset(seed=0)
    state, before = env.get_state(), env.state()
    going_on(env, 2)
    env.set_state(state)
    assert np.array_equal(env.state(), before)


def test_before_the_first_reset_a_copy_needs_one_too():
    with refuses(ResetNeeded, "step(): no episode is running; call reset() first"):
        copy.deepcopy(rules()).step({})


def test_a_state_of_another_environment_is_refused():
    env = make("heron/BatteryGrid-v0", num_batteries=3)
    env.reset(seed=0)
    with refuses(ConfigError, "set_state(): the state has 6 columns, this environment 4; build them alike"):
        make("heron/BatteryGrid-v0").set_state(env.get_state())
