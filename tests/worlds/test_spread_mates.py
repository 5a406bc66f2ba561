"""Spread's mates by message: as exact without delay, bit for bit; with delays each mate is as old as its own link."""

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest
from laws.checks_event_batch import check_event_batch, policies_of

import heron_env
from heron_env import BatchEnv, ScheduleConfig
from heron_env.errors import ConfigError
from heron_env.observability.noise import NoiseKey, apply_noise
from heron_env.worlds.spread.discs import FAR, Disc

make = partial(heron_env.make, "heron/Spread-v0")
told = partial(make, mates="message")
VARIANTS = [{}, {"continuous": False}, {"num_agents": 1}, {"num_agents": 5}]
IDS = ["three", "discrete", "alone", "five"]
CLOSE = np.linspace((-0.2, -0.2), (0.2, 0.2), 5)
"""Places where everybody touches somebody."""
NOISY = {"default": {"level": "external", "noise": 0.2}}
ROUGH = {
    "*": ScheduleConfig(
        obs_delay=0.03, act_delay=0.06, msg_delay=0.05, jitter_type="lognormal", jitter_ratio=0.8, loss=0.2
    ),
    "agent_2": ScheduleConfig(msg_delay=0.3, jitter_type="uniform", jitter_ratio=0.5, reorder=True),
}


def bits(seen: Any) -> Any:
    return {name: vectors.view(np.uint32).tolist() for name, vectors in seen.items()}


def actions_of(env: Any, rng: np.random.Generator, *shape: int) -> Any:
    size, whole = (1, True) if env.simulation.model.specs[1].dim_d else (5, False)
    return rng.integers(5, size=(*shape, size)) if whole else rng.random((*shape, size), np.float32)


@pytest.mark.parametrize(
    ("options", "compiled"),
    [
        pytest.param(options, compiled, id=name, marks=pytest.mark.e2e if compiled else ())
        for options, compiled, name in zip(VARIANTS, [True, False] * 2, IDS, strict=True)
    ],
)
def test_without_delay_they_are_exact(options: dict[str, Any], compiled: bool):
    """Spaces, observations, rewards and ends of an episode with contacts are equal bit for bit."""
    exact, message = make(**options, compile=compiled), told(**options, compile=compiled)
    ids, rng = exact.possible_agents, np.random.default_rng(5)
    assert all(exact.observation_space(agent) == message.observation_space(agent) for agent in ids)
    given = {"agents": CLOSE[: len(ids)], "landmarks": rng.uniform(-1.0, 1.0, (len(ids), 2))}
    (seen, _), (other, _) = (env.reset(seed=3, options=given) for env in (exact, message))
    assert bits(seen) == bits(other)
    while exact.agents:
        actions = dict(zip(ids, actions_of(exact, rng, len(ids)), strict=True))
        (seen, *mine, _), (other, *theirs, _) = (env.step(actions) for env in (exact, message))
        assert bits(seen) == bits(other) and mine == theirs
    assert len(ids) == 1 or message.kpis()["contacts"] > 0.0


@pytest.mark.parametrize(("options", "lanes"), [*zip(VARIANTS, [21, 3, 3, 21], strict=True)], ids=IDS)
def test_batches_are_exact_too(options: dict[str, Any], lanes: int):
    """One by one and in tiles, over the end of the episode, with what is seen last."""
    exact, message = (BatchEnv(build(**options), lanes, seed=4, final_observations=True) for build in (make, told))
    rng, agents = np.random.default_rng(6), len(exact.env.possible_agents)
    assert bits(exact.reset()[0]) == bits(message.reset()[0])
    for _ in range(30):
        given = {"agent": actions_of(exact.env, rng, lanes, agents)}
        (seen, *mine, told_mine), (other, *theirs, told_other) = exact.step(given), message.step(given)
        assert bits(seen) == bits(other)
        assert all(np.array_equal(a["agent"], b["agent"]) for a, b in zip(mine, theirs, strict=True))
        over = (mine[1]["agent"] | mine[2]["agent"]).all(axis=1)
        last = [told["agent"]["final_obs"][over] for told in (told_mine, told_other)]
        assert np.array_equal(*(seen.view(np.uint32) for seen in last))


@pytest.mark.e2e
@pytest.mark.parametrize("rows", ["proxy", "local"])
def test_both_event_clocks_are_exact_without_delay(rows: str):
    """The Python clock shows what it does with exact mates; lanes of the compiled one are the Python clock's."""
    shown = []
    for env in (make(), told()):
        chosen = {env.hierarchy.ids[rank]: policy for rank, policy in policies_of(env).items()}
        result = env.run_event_driven(
            chosen, seed=7, schedule=ScheduleConfig(own_rows=rows), record=("observations", "rewards")
        )
        shown.append([result.rewards, {a: bits(dict(seen)) for a, seen in result.observations.items()}])
    assert shown[0] == shown[1]
    check_event_batch(partial(told, compile=True), ScheduleConfig(own_rows=rows), seed=7)


@pytest.mark.e2e
@pytest.mark.parametrize(("own_rows", "observability"), [("proxy", None), ("local", NOISY)], ids=["exact", "noisy"])
def test_the_compiled_event_clock_is_the_python_clock(own_rows: str, observability: Any):
    """With delays, jitter, loss and messages that travel twice; ages and ends, too."""
    schedule = {name: replace(config, own_rows=own_rows) for name, config in ROUGH.items()}
    build = partial(told, observability=observability, observe_age=True, compile=True)
    check_event_batch(build, schedule, seed=11, lanes=3, episodes=2)


class Witness:
    """A policy that notes where everybody is when it is asked, and what it is shown then."""

    def __init__(self, env: Any) -> None:
        self.env, self.rng, self.places, self.seen = env, np.random.default_rng(2), [], []

    def __call__(self, vector: Any) -> Any:
        position = self.env.world[Disc].Position
        self.places.append(np.stack([position.x, position.y], axis=-1))
        self.seen.append(vector.copy())
        return self.rng.random(5)


def test_an_agent_that_reads_itself_sees_others_from_where_it_is():
    """Its observation is two steps old, its own place is not, nor what is subtracted."""
    env = told()
    witness = Witness(env)
    schedule = ScheduleConfig(own_rows="local", obs_delay=0.2)
    env.run_event_driven({"*": witness}, seed=1, schedule={"agent_0": schedule, "*": ScheduleConfig(act_delay=0.001)})
    assert witness.seen
    late = Witness(env)
    other = np.random.default_rng(8)
    env.run_event_driven({"agent_0": late, "*": lambda v: other.random(5)}, seed=1, schedule={"agent_0": schedule})
    for step, (places, seen) in enumerate(zip(late.places[2:], late.seen[2:], strict=True)):
        expected = late.places[step][1] - places[0]
        assert seen[10:12].tolist() == np.float32(expected).tolist()


@pytest.mark.parametrize("clock", ["run_synchronous", "run_event_driven"])
def test_a_film_knows_where_the_observer_believes_its_mates(clock: str):
    """From what was subtracted in the one clock, from what was told in the other."""
    env, rng = told(), np.random.default_rng(4)
    witness = Witness(env)
    film = getattr(env, clock)({"agent_0": witness, "*": lambda v: rng.random(5)}, seed=1, record=("frames",)).footage
    for time in (0.0, 1.0, 2.4):
        known, places = film.known("agent_0", time).world[Disc].Position, witness.places[round(10 * time)]
        np.testing.assert_allclose(np.stack([known.x, known.y], axis=-1), places, atol=1e-6)


def test_noise_falls_on_what_mates_tell():
    """Before the difference, by the law of noise; one's own place is exact."""
    env = told(observability=NOISY)
    seen = env.reset(seed=4)[0]["agent_1"]
    x = env.world[Disc].Position.x
    key = NoiseKey("agent_1", "agent_2", "Position.x", 0, *env.simulation.moment)
    expected = apply_noise(x[2], 0.2, key, low=-FAR, high=FAR) - x[1]
    at = env.observation_names("agent_1").index("agent_2.Position.x - Position.x")
    assert seen[at] == np.float32(expected) != np.float32(x[2] - x[1])
    batch = BatchEnv(told(observability=NOISY), 21, seed=4)
    assert bits(env.reset(seed=4)[0])["agent_1"] == batch.reset()[0]["agent"][0, 1].view(np.uint32).tolist()


def test_other_words_are_refused():
    with pytest.raises(ConfigError, match=r"spread\(mates='mesage'\): must be one of .* Did you mean 'message'\?"):
        told(mates="mesage")
