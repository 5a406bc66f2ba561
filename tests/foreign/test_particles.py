"""The particle worlds beside mpe2's own: the same course from the same places by the same actions."""

import os
from importlib import import_module
from typing import Any

import numpy as np
import pytest

import heron_env
from heron_env.worlds.particles import Plane
from heron_env.worlds.spread.discs import Disc

pytest.importorskip("mpe2", reason="tests/foreign/requirements.txt is installed by .ci/run foreign")
pytestmark = pytest.mark.far
os.environ["SDL_VIDEODRIVER"] = os.environ["SDL_AUDIODRIVER"] = "dummy"

SPREAD = "heron/Spread-v0"
SCENARIOS: dict[str, tuple[str, dict[str, Any]]] = {
    SPREAD: ("simple_spread_v3", {"N": 5, "local_ratio": 0.2}),
    "heron/Tag-v0": ("simple_tag_v3", {"num_good": 2, "num_obstacles": 3}),
    "heron/SpeakerListener-v0": ("simple_speaker_listener_v4", {}),
    "heron/Reference-v0": ("simple_reference_v3", {"local_ratio": 0.3}),
    "heron/Adversary-v0": ("simple_adversary_v3", {"N": 3}),
    "heron/Push-v0": ("simple_push_v3", {}),
    "heron/Crypto-v0": ("simple_crypto_v3", {}),
    "heron/WorldComm-v0": ("simple_world_comm_v3", {"num_good": 1, "num_adversaries": 2, "num_forests": 3}),
}
"""Module of mpe2, and options of both other than the defaults."""
EPISODES, STEPS = 40, 25
CLOSE, SPREAD_CLOSE, STILL = 1e-12, 1e-11, 1e-22
"""Spread reckons the force of a contact in another order than mpe2, and contacts are stiff: 8e-12 was found. STILL: it
leaves out forces of less, which only the velocity of an agent at rest would show."""
TOUCHED = {SPREAD, "heron/Tag-v0", "heron/Push-v0", "heron/WorldComm-v0"}
"""Where bodies collide."""


def same_start(name: str, env: Any, mpe: Any) -> None:
    """Everything of mpe2's world is where it is in ours, and its goals are ours."""
    world = mpe.aec_env.unwrapped.world
    for entity, row in zip(world.entities, state(env), strict=True):
        entity.state.p_pos, entity.state.p_vel = row[:2], row[2:]
    if name == SPREAD:
        return
    goals = env.world[Plane].Bodies.goals[0]
    first, second = (world.landmarks[int(goal)] for goal in goals) if world.landmarks else (None, None)
    if name == "heron/Reference-v0":
        world.agents[0].goal_b, world.agents[1].goal_b = first, second
    elif name == "heron/SpeakerListener-v0":
        world.agents[0].goal_b = first
    elif name in ("heron/Adversary-v0", "heron/Push-v0", "heron/Crypto-v0"):
        for agent in world.agents:
            agent.goal_a = first
    if name == "heron/Push-v0":
        world.agents[1].color = np.array([0.25, 0.25, 0.25])
        world.agents[1].color[first.index + 1] += 0.5
    if name == "heron/Crypto-v0":
        world.agents[2].key = second.color


def chosen(rng: np.random.Generator, mpe: Any, episode: int, continuous: bool) -> dict[str, Any]:
    """Actions by chance in every third episode; else bodies make for one of them, the target, and speak by chance.

    Numbers have few digits, so that mpe2's differences of float32 are exact.
    """
    world, actions = mpe.aec_env.unwrapped.world, {}
    target = world.entities[episode % len(world.entities)]
    for agent in world.agents:
        space = mpe.action_space(agent.name)
        push = np.sign(target.state.p_pos - agent.state.p_pos - 0.3 * agent.state.p_vel)
        if continuous:
            action = rng.integers(0, 2**20, space.shape, endpoint=True) / 2**20 * (rng.random() < 0.9)
            if episode % 3 and agent.movable:
                action[1:5] = [push[0] < 0, push[0] > 0, push[1] < 0, push[1] > 0]
            actions[agent.name] = action.astype(np.float32)
        else:
            action = int(rng.integers(space.n))
            if episode % 3 and agent.movable:
                axis = int(rng.integers(2))
                action += 1 + 2 * axis + int(push[axis] > 0) - action % 5
            actions[agent.name] = action
    return actions


def state(env: Any) -> np.ndarray:
    if env.metadata["name"] == SPREAD:
        discs, marks = env.world[Disc], env.world.Landmarks
        columns = np.stack([discs.Position.x, discs.Position.y, discs.Velocity.x, discs.Velocity.y], axis=-1)
        return np.concatenate([columns, np.stack([marks.x[0], marks.y[0], 0 * marks.x[0], 0 * marks.y[0]], axis=-1)])
    bodies = env.world[Plane].Bodies
    return np.stack([bodies.x[0], bodies.y[0], bodies.vx[0], bodies.vy[0]], axis=-1)


def state_of(mpe: Any) -> np.ndarray:
    return np.array([[*e.state.p_pos, *e.state.p_vel] for e in mpe.aec_env.unwrapped.world.entities])


def contacts(mpe: Any) -> int:
    """Pairs of bodies that collide now."""
    bodies = mpe.aec_env.unwrapped.world.entities
    pairs = [
        (a, b) for i, a in enumerate(bodies) for b in bodies[:i] if a.collide and b.collide and (a.movable or b.movable)
    ]
    return sum(bool(np.hypot(*(a.state.p_pos - b.state.p_pos)) < a.size + b.size) for a, b in pairs)


@pytest.mark.parametrize("continuous", [True, False], ids=["numbers", "choices"])
@pytest.mark.parametrize(
    ("name", "given"),
    [(name, given) for name, (_, options) in SCENARIOS.items() for given in (False, True)[: 1 + bool(options)]],
)
def test_whole_episodes_are_mpe2_s(name: str, given: bool, continuous: bool):
    """Choices of the defaults compiled, all else in plain Python, which is as exact (tests/worlds)."""
    module, options = SCENARIOS[name]
    options, compiled = options if given else {}, not (given or continuous)
    ours = {"num_agents" if name == SPREAD and key == "N" else key: value for key, value in options.items()}
    env = heron_env.make(name, continuous=continuous, compile=compiled, **ours)
    mpe = import_module(f"mpe2.{module}").parallel_env(continuous_actions=continuous, max_cycles=STEPS, **options)
    assert env.compiled is compiled and env.possible_agents == mpe.possible_agents
    close, rest = (SPREAD_CLOSE, STILL) if name == SPREAD else (CLOSE, 0.0)
    touched, worst = 0, 0.0
    for episode in range(EPISODES):
        rng = np.random.default_rng(episode)
        seen, _ = env.reset(seed=episode)
        mpe.reset(seed=episode)
        same_start(name, env, mpe)
        for agent in env.possible_agents:
            assert env.observation_space(agent).shape == mpe.observation_space(agent).shape
            assert env.action_space(agent) == mpe.action_space(agent)
            assert seen[agent].tobytes() == mpe.aec_env.unwrapped.observe(agent).tobytes()
        while mpe.agents:
            actions = chosen(rng, mpe, episode, continuous)
            seen, rewards, terminated, truncated, _ = env.step(actions)
            expected, *results, _ = mpe.step(actions)
            worst = max(worst, float(np.abs(state(env) - state_of(mpe)).max()))
            worst = max(worst, *(abs(rewards[agent] - reward) for agent, reward in results[0].items()))
            assert worst <= close
            assert [terminated, truncated] == results[1:]
            for agent, vector in expected.items():
                assert seen[agent].dtype == vector.dtype
                shown, due = (np.where(abs(v) >= rest, v, np.float32(0.0)) for v in (seen[agent], vector))
                assert shown.tobytes() == due.tobytes(), (episode, agent, shown - due)
            touched += contacts(mpe)
        assert env.agents == []
    assert (touched > 30) is (name in TOUCHED), "without contacts the course would prove little"
    print(f"{name}: {worst=}, {touched=}")
