"""Delay lines on their own: what is drawn, what is seen when, and what falls when."""

import numpy as np
import pytest
from numpy.typing import NDArray

from heron_env import TrainingDelays
from heron_env.envs.training_delays import DelayLines
from heron_env.errors import ConfigError, HeronError

AGENTS = ("battery_1", "battery_2", "zone_1")


def lines(delays: TrainingDelays, lanes: int = 4, agents: tuple[str, ...] = AGENTS) -> DelayLines:
    made = DelayLines(delays, agents, [2] * len(agents), [1] * len(agents), lanes)
    begin(made, np.arange(lanes))
    return made


def begin(made: DelayLines, lanes: NDArray[np.int64], episode: int = 0) -> None:
    seeds = lanes.astype(np.uint64) + np.uint64(7)
    made.begin(lanes, seeds, np.full(len(lanes), episode, dtype=np.uint64))


@pytest.mark.parametrize("given", [-1, 1.5, True, (2, 1), (0,), (0, 1, 2), "1", None, (0, 1.0)])
@pytest.mark.parametrize("name", ["observation", "action"])
def test_what_is_no_range_of_steps_is_refused(name: str, given: object) -> None:
    with pytest.raises(ConfigError, match=rf"TrainingDelays\({name}=.*control steps >= 0"):
        TrainingDelays(**{name: given})  # type: ignore[arg-type]


def test_an_unknown_field_is_named() -> None:
    with pytest.raises(HeronError, match="obs"):
        TrainingDelays(obs=1)  # type: ignore[call-arg]


def test_every_delay_of_the_range_is_drawn_as_often() -> None:
    made = lines(TrainingDelays(observation=(1, 4), action=(0, 2)), lanes=20_000)
    for drawn, values in ((made.observation, 4), (made.action, 3)):
        least = drawn.min()
        shares = np.bincount((drawn - least).ravel(), minlength=values) / drawn.size
        assert len(shares) == values
        assert np.abs(shares - 1.0 / values).max() < 6.0 * np.sqrt(0.25 / drawn.size)
    assert made.observation.min() == 1
    assert made.action.min() == 0
    assert abs(np.corrcoef(made.observation[:, 0], made.action[:, 0])[0, 1]) < 0.05


def test_draws_depend_on_the_seed_the_episode_and_the_agent_and_on_nothing_else() -> None:
    delays = TrainingDelays(observation=(0, 9), action=(0, 9))
    made, alone = lines(delays, lanes=50), lines(delays, lanes=1, agents=("zone_1",))
    alone.begin(np.array([0]), np.array([7 + 30], dtype=np.uint64), np.zeros(1, dtype=np.uint64))
    assert alone.observation[0, 0] == made.observation[30, 2]
    assert alone.action[0, 0] == made.action[30, 2]
    before = made.observation.copy()
    begin(made, np.arange(10), episode=1)
    assert (made.observation[:10] != before[:10]).any()
    assert (made.observation[10:] == before[10:]).all()
    begin(made, np.arange(10))
    assert (made.observation == before).all()


def test_vectors_come_as_late_as_drawn_in_each_lane_and_lanes_that_restart_see_nothing_old() -> None:
    made = lines(TrainingDelays(observation=(0, 3)))
    steps = np.zeros(4, dtype=np.int64)
    shown: list[list[NDArray[np.float32]]] = [[] for _ in range(4)]
    for turn in range(25):
        vectors = (100.0 * turn + np.arange(4)[:, None] + np.arange(6) / 10.0).astype(np.float32)
        seen = made.see(steps, vectors)
        for lane in range(4):
            shown[lane].append(vectors[lane])
            for agent in range(3):
                late, step = made.observation[lane, agent], steps[lane]
                own = slice(2 * agent, 2 * agent + 2)
                assert (seen[lane, own] == shown[lane][max(step - late, 0)][own]).all()
        steps += 1
        over = (turn + np.arange(4)) % 7 == 6
        steps[over] = 0
        for lane in np.flatnonzero(over):
            shown[lane] = []
        begin(made, np.flatnonzero(over), episode=turn)


def test_decisions_fall_as_late_as_drawn_and_none_is_invented() -> None:
    made = lines(TrainingDelays(action=(0, 3)))
    steps = np.zeros(4, dtype=np.int64)
    rng = np.random.default_rng(3)
    decided: list[tuple[NDArray[np.float64], NDArray[np.uint8]]] = []
    for step in range(20):
        values, given = rng.normal(size=(4, 3)), rng.integers(0, 3, size=(4, 3)).astype(np.uint8)
        decided.append((values, given))
        falls, which = made.act(steps, values, given)
        for lane in range(4):
            for agent in range(3):
                at = step - made.action[lane, agent]
                assert which[lane, agent] == (decided[at][1][lane, agent] if at >= 0 else 0)
                if which[lane, agent]:
                    assert falls[lane, agent] == decided[at][0][lane, agent]
        steps += 1
    steps[:] = 0
    begin(made, np.arange(4))
    for _ in range(3):
        _, which = made.act(steps, np.ones((4, 3)), np.ones((4, 3), dtype=np.uint8))
        assert (which == (steps[:, None] >= made.action)).all()
        steps += 1


def test_state_brings_back_everything_and_another_one_is_refused() -> None:
    made = lines(TrainingDelays(observation=(0, 2), action=(1, 2)))
    steps = np.zeros(4, dtype=np.int64)
    made.see(steps, np.ones((4, 6), dtype=np.float32))
    made.act(steps, np.ones((4, 3)), np.ones((4, 3), dtype=np.uint8))
    twin = DelayLines(made.delays, AGENTS, [2] * 3, [1] * 3, 4)
    twin.restore(made.state())
    steps += 1
    for _ in range(3):
        assert (made.see(steps, np.zeros((4, 6), np.float32)) == twin.see(steps, np.zeros((4, 6), np.float32))).all()
        mine = made.act(steps, np.zeros((4, 3)), np.zeros((4, 3), np.uint8))
        its = twin.act(steps, np.zeros((4, 3)), np.zeros((4, 3), np.uint8))
        assert all((a == b).all() for a, b in zip(mine, its, strict=True))
        steps += 1
    with pytest.raises(ConfigError, match="shape"):
        lines(TrainingDelays(observation=1)).restore(made.state())
