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


def test_what_is_no_range_of_steps_is_refused() -> None:
    for given in [-1, 1.5, True, (2, 1), (0,), (0, 1, 2), "1", None, (0, 1.0)]:
        for name in ("observation", "action"):
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
