"""Tag's mates by message: as exact without delay, bit for bit; with delays each agent is as old as its own link."""

import re
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest
from laws.checks_event_batch import check_event_batch

import heron_env
from heron_env import ScheduleConfig
from heron_env.core.world import World
from heron_env.errors import ConfigError
from heron_env.lab import benchmark
from heron_env.worlds.particles import Plane

make = partial(heron_env.make, "heron/Tag-v0", max_steps=12)
by_message = partial(make, mates="message")
BY_RULE: dict[str, Any] = {"prey": "rule", "num_good": 2, "continuous": False}
FORMS = [pytest.param({}, id="policies"), pytest.param(BY_RULE, id="prey by rule")]
PLAIN = [
    pytest.param({"continuous": False, "num_good": 2}, False, id="discrete"),
    pytest.param({"num_adversaries": 1, "num_good": 3, "num_obstacles": 0}, False, id="three prey"),
    *(pytest.param(*form.values, False, id=f"{form.id}, plain") for form in FORMS),
    *(pytest.param(*form.values, True, id=f"{form.id}, compiled", marks=pytest.mark.e2e) for form in FORMS),
]
ROUGH = {
    "*": ScheduleConfig(
        obs_delay=0.03, act_delay=0.06, msg_delay=0.05, jitter_type="lognormal", jitter_ratio=0.8, loss=0.2
    ),
    "adversary_1": ScheduleConfig(msg_delay=0.3, jitter_type="uniform", jitter_ratio=0.5, reorder=True),
    "agent_0": ScheduleConfig(msg_delay=0.2, jitter_type="gaussian", jitter_ratio=0.4, loss=0.3),
}


def bits(seen: Any) -> Any:
    return {name: vectors.view(np.uint32).tolist() for name, vectors in seen.items()}


def actions_of(env: Any, rng: np.random.Generator, *shape: int) -> Any:
    size, whole = (1, True) if env.simulation.model.specs[1].dim_d else (5, False)
    return rng.integers(5, size=(*shape, size)) if whole else rng.random((*shape, size), np.float32)


def gathered(env: Any) -> None:
    """Bring all agents close together, so that they touch."""
    bodies = env.world[Plane].Bodies
    agents = int(bodies.agents[0, 0])
    bodies.x[0, :agents], bodies.y[0, :agents] = 0.05 * np.arange(agents), 0.04 * np.arange(agents)


def state(env: Any) -> list[Any]:
    bodies = env.world[Plane].Bodies
    return [column.tolist() for column in (bodies.x, bodies.y, bodies.vx, bodies.vy)]


@pytest.mark.parametrize(("options", "compiled"), PLAIN)
def test_without_delay_they_are_exact(options: dict[str, Any], compiled: bool):
    """Spaces, observations, rewards, states and ends of an episode with contacts are equal bit for bit."""
    exact, message = (build(**options, compile=compiled) for build in (make, by_message))
    ids, rng, touched = exact.possible_agents, np.random.default_rng(5), False
    assert all(exact.observation_space(agent) == message.observation_space(agent) for agent in ids)
    assert bits(exact.reset(seed=3)[0]) == bits(message.reset(seed=3)[0])
    for env in (exact, message):
        gathered(env)
    while exact.agents:
        actions = dict(zip(ids, actions_of(exact, rng, len(ids)), strict=True))
        (seen, *mine, _), (other, *theirs, _) = (env.step(actions) for env in (exact, message))
        assert bits(seen) == bits(other) and mine == theirs
        assert state(exact) == state(message)
        assert exact.training_signal() == message.training_signal()
        touched |= any(mine[0].values())
    assert touched


@pytest.mark.e2e
@pytest.mark.parametrize(("own_rows", "noise", "options"), [("proxy", 0.0, BY_RULE), ("local", 0.2, {})])
def test_the_compiled_event_clock_is_the_python_clock(own_rows: str, noise: float, options: dict[str, Any]):
    """With delays, jitter, loss and messages that travel twice; ages and ends, too."""
    schedule = {name: replace(config, own_rows=own_rows) for name, config in ROUGH.items()}
    matrix = {"default": {"level": "external", "noise": noise}} if noise else None
    build = partial(by_message, observability=matrix, observe_age=True, compile=True, **options)
    check_event_batch(build, schedule, seed=11, lanes=3, episodes=2)


class Witness:
    """A policy that notes where everybody is, and how fast, when it is asked, and what it sees then."""

    def __init__(self, env: Any) -> None:
        self.env, self.rng = env, np.random.default_rng(2)
        self.places, self.speeds, self.seen = list[Any](), list[Any](), list[Any]()

    def __call__(self, vector: Any) -> Any:
        bodies = self.env.world[Plane].Bodies
        self.places.append(np.stack([bodies.x[0], bodies.y[0]], axis=-1))
        self.speeds.append(np.stack([bodies.vx[0], bodies.vy[0]], axis=-1))
        self.seen.append(vector.copy())
        return self.rng.random(5)


LATE = {"adversary_1": 3, "adversary_2": 1, "agent_0": 2}
"""Steps by which messages of the others are late."""


@pytest.mark.parametrize(("prey", "own_rows"), [("policy", "local"), ("rule", "proxy")])
def test_each_other_agent_is_as_old_as_its_own_link(own_rows: str, prey: str):
    """Its columns are its place of then less one's own place now; so is the prey's velocity of then."""
    env = by_message(observe_age=True, prey=prey, max_steps=25)
    witness, other = Witness(env), np.random.default_rng(8)
    schedule = {name: ScheduleConfig(msg_delay=steps / 10) for name, steps in LATE.items()}
    schedule["*"] = ScheduleConfig(own_rows=own_rows)
    env.run_event_driven({"adversary_0": witness, "*": lambda v: other.random(5)}, seed=1, schedule=schedule)
    assert len(witness.seen) == 25
    for step, (places, seen) in enumerate(zip(witness.places, witness.seen, strict=True)):
        assert seen[:2].tolist() == np.float32(witness.speeds[step][0]).tolist()
        assert seen[2:4].tolist() == np.float32(places[0]).tolist()
        assert seen[4:8].tolist() == np.float32(places[4:] - places[0]).ravel().tolist(), "landmarks are not late"
        for rank, late in enumerate(LATE.values(), start=1):
            old = witness.places[max(step - late, 0)][rank]
            assert seen[6 + 2 * rank :][:2].tolist() == np.float32(old - places[0]).tolist()
            assert step < 12 or not np.array_equal(old, places[rank])
        assert seen[14:16].tolist() == np.float32(witness.speeds[max(step - 2, 0)][3]).tolist()
        ages = dict(zip(env.observation_names("adversary_0")[16:], seen[16:].tolist(), strict=True))
        expected = {name: min(step, late) / 10 for name, late in {"adversary_0": 0, **LATE}.items()}
        assert ages == {f"age.{name}": np.float32(age) for name, age in expected.items()}


def test_hunters_do_not_share_their_velocity_and_prey_does():
    env = by_message(num_good=2)
    sent = {name.split(".")[0] for name in env.observation_names("adversary_0") if ".Velocity." in name}
    assert sent == {"agent_0", "agent_1"}
    assert [n for n in env.observation_names("agent_0") if ".Velocity." in n] == [f"agent_1.Velocity.{i}" for i in "xy"]


@pytest.mark.parametrize("options", FORMS)
def test_the_baseline_plays_the_same_and_takes_no_notice_of_ages(options: dict[str, Any]):
    runs = []
    for build in (make, by_message, partial(by_message, observe_age=True)):
        env = build(**options)
        runs.append(env.run_synchronous(benchmark.baselines(env)["rule"], seed=3, record=("actions",)))
    assert runs[0].same_course(runs[1]) and runs[0].same_course(runs[2])


@pytest.mark.parametrize("clock", ["run_synchronous", "run_event_driven"])
def test_a_film_shows_where_the_observer_believes_the_others(clock: str):
    """From what was subtracted in the one clock, from messages in the other."""
    env, rng = by_message(), np.random.default_rng(4)
    witness = Witness(env)
    late = {"schedule": {"adversary_1": ScheduleConfig(msg_delay=0.3)}} if clock == "run_event_driven" else {}
    play = {"agent_0": witness, "*": lambda v: rng.random(5)}
    film = getattr(env, clock)(play, seed=1, record=("frames",), **late).footage
    for step in (0, 5, 11):
        expected = witness.places[step][:4].copy()
        if late:
            expected[1] = witness.places[max(step - 3, 0)][1]
        drawing = drawn(env, film, "agent_0", step / 10)
        ghosts = np.array([path.vertices[:-1].mean(axis=0) for path in drawing.ghosts.get_paths()])
        np.testing.assert_allclose(ghosts, expected, atol=1e-6)


def drawn(env: Any, film: Any, agent: str, time: float) -> Any:
    """The drawing of the truth at that time, and of what the agent knows then."""
    from matplotlib.figure import Figure

    world = World(env.simulation.model.layout, film.truth(time))
    return env.draw_frame(Figure().subplots(), world, film.known(agent, time))


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("mesage", "must be one of ('exact', 'message'). Did you mean 'message'?"),
        (None, "must be one of ('exact', 'message')."),
    ],
)
def test_other_words_are_refused(given: Any, words: str):
    with pytest.raises(ConfigError, match=f"^{re.escape(f'tag(mates={given!r}): {words}')}"):
        by_message(mates=given)
