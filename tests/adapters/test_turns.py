"""Games in turns (AEC) under the network: without delay the game's own course, also where agents end within a round."""

from typing import Any

import numpy as np
import pytest
from black_boxes import Bookkeeper, same
from gymnasium import spaces
from pettingzoo import AECEnv
from pettingzoo.test import parallel_api_test
from pettingzoo.utils.conversions import aec_to_parallel_wrapper, parallel_to_aec
from pettingzoo.utils.wrappers import OrderEnforcingWrapper

from heron_env import ScheduleConfig, under_network
from heron_env.adapters.network.turns import TurnWorld
from heron_env.errors import ResetNeeded

FREE = ScheduleConfig()


class Duel(AECEnv):
    """Players strike one another in turn: 0 waits, k strikes player k - 1. Who has no blood left is out at once.

    order: "row"; or "back": from the last to the first; or "swap": who was struck plays next.
    """

    metadata = {"name": "duel", "is_parallelizable": True, "render_modes": []}

    def __init__(self, players: int = 4, rounds: int = 12, order: str = "row") -> None:
        super().__init__()
        self.possible_agents = [f"p{number}" for number in range(players)]
        self.rounds, self.order, self.render_mode = rounds, order, None
        blood = spaces.Box(-9, 9, (players,), np.float64)
        self._views = {agent: spaces.Dict({"blood": blood, "action_mask": spaces.MultiBinary(players + 1)})
                       for agent in self.possible_agents}  # fmt: skip
        self._acts = {agent: spaces.Discrete(players + 1) for agent in self.possible_agents}

    def observation_space(self, agent: str) -> Any:
        return self._views[agent]

    def action_space(self, agent: str) -> Any:
        return self._acts[agent]

    def observe(self, agent: str) -> Any:
        flags = [other != agent and other in self.agents for other in self.possible_agents]
        return {"blood": self.blood.copy(), "action_mask": np.array([1, *flags], np.int8)}

    def reset(self, seed: int | None = None, options: Any = None) -> None:
        self.rng, self.agents, self.told = np.random.default_rng(seed), self.possible_agents[:], list[Any]()
        if self.order == "back":
            self.agents.reverse()
        self.blood, self.left = 2.0 + self.rng.random(len(self.agents)), self.rounds * len(self.agents)
        for name, value in (("rewards", 0.0), ("_cumulative_rewards", 0.0), ("terminations", False),
                            ("truncations", False)):  # fmt: skip
            setattr(self, name, dict.fromkeys(self.agents, value))
        self.infos: dict[str, Any] = {agent: {} for agent in self.agents}
        self.agent_selection = self.agents[0]

    def step(self, action: Any) -> None:
        agent = self.agent_selection
        if self.terminations[agent] or self.truncations[agent]:
            self._was_dead_step(action)
            return
        if not self.observe(agent)["action_mask"][action]:
            raise ValueError(f"{agent} can't strike {action}")
        self.told.append((agent, int(action)))
        self._cumulative_rewards[agent] = 0.0
        self._clear_rewards()
        after = self.agents[(self.agents.index(agent) + 1) % len(self.agents)]
        if action:
            struck = self.possible_agents[action - 1]
            force = 1.0 + self.rng.random()
            self.blood[action - 1] -= force
            self.rewards[agent] += force
            self.rewards[struck] -= 0.5
            if self.blood[action - 1] <= 0:
                self.terminations[struck] = True
                alive = [each for each in self.agents if not self.terminations[each]]
                rest = self.agents[self.agents.index(agent) + 1 :] + self.agents
                after = next(each for each in rest if each in alive)
            elif self.order == "swap":
                after = struck
        self.left -= 1
        alive = [each for each in self.agents if not self.terminations[each]]
        if not self.left or len(alive) == 1:
            self.truncations |= dict.fromkeys(alive, True)
        self.agent_selection = after
        self._accumulate_rewards()
        self._deads_step_first()


def strike(seen: Any) -> int:
    """The one who has most, of those who may be struck; at times nobody."""
    if float(seen["blood"].sum()) % 1.0 < 0.2:
        return 0
    open_to = np.flatnonzero(seen["action_mask"])[1:]
    return int(open_to[np.argmax(seen["blood"][open_to - 1])]) if len(open_to) else 0


def own_course(game: AECEnv, seed: int) -> tuple[dict[str, float], list[Any]]:
    """Returns and moves of the game as PettingZoo plays it."""
    game.reset(seed=seed)
    returns: dict[str, float] = dict.fromkeys(game.possible_agents, 0.0)
    for agent in game.agent_iter():
        seen, reward, terminated, truncated, _ = game.last()
        returns[agent] += reward
        game.step(None if terminated or truncated else strike(seen))
    return returns, game.unwrapped.told


@pytest.mark.parametrize("order", ["row", "back", "swap"])
@pytest.mark.parametrize("players", [2, 3, 5])
@pytest.mark.parametrize("wrapped", [False, True])
def test_w13_without_delay_a_run_is_the_game_s_own_course(order: str, players: int, wrapped: bool):
    deaths = 0
    for seed in range(6):
        returns, told = own_course(Duel(players, order=order), seed)
        game = Duel(players, order=order)
        env = under_network(OrderEnforcingWrapper(game) if wrapped else game, ScheduleConfig(obs_delay=1.0), noop=0)
        for run in (env.run_synchronous({"*": strike}, seed=seed),
                    env.run_event_driven({"*": strike}, seed=seed, schedule=FREE, trace=True)):  # fmt: skip
            assert game.told == told and run.returns == pytest.approx(returns, rel=1e-12)
            assert not any(run.masked.values()) and run.messages.balanced()
            deaths += sum(run.terminated.values())
    assert deaths > 0


@pytest.mark.parametrize("config", [{"obs_delay": 1.0}, {"act_delay": 1.0}, {"loss": 0.4}, {"tick_interval": 2.0},
                                    {"msg_delay": 0.3}])  # fmt: skip
def test_w13_with_delay_it_is_played_to_its_end_and_who_is_out_is_not_struck(config: dict[str, Any]):
    game = Duel(4, order="back")
    env = under_network(game, ScheduleConfig(**config), noop=0)
    for seed in range(4):
        run = env.run_event_driven({"*": strike}, seed=seed, record=("rewards", "actions", "observations"))
        assert game.agents == [] and all(run.terminated[a] or run.truncated[a] for a in game.possible_agents)
        observations, _ = env.reset(seed=seed)
        while env.agents:
            observations, *_ = env.step({agent: strike(observations[agent]) for agent in env.agents})


def test_w13_a_run_asks_only_those_whose_way_is_free_at_their_turn():
    game, asked = Duel(3, rounds=2), list[Any]()

    def ask(name: str) -> Any:
        return lambda seen: asked.append((name, len(game.told))) or 0

    env = under_network(game, {"p0": ScheduleConfig(obs_delay=1.0)}, noop=0)
    env.run_event_driven({name: ask(name) for name in game.possible_agents}, seed=0)
    assert asked == [("p1", 1), ("p2", 2), ("p0", 3), ("p1", 4), ("p2", 5)]


def test_w13_by_hand_a_choice_that_others_have_made_impossible_becomes_the_no_op():
    game = Duel(3, rounds=4)
    env = under_network(game, noop=0)
    env.reset(seed=0)
    game.blood[:] = 0.5, 5.0, 0.5
    _, rewards, terminated, _, infos = env.step({"p0": 3, "p1": 3, "p2": 1})  # p2 is out before its turn
    assert game.told == [("p0", 3), ("p1", 0)] and terminated["p2"] and env.agents == ["p0", "p1"]
    assert infos["p1"]["applied"] == -1 and rewards["p2"] == -0.5 and "true_observation" in infos["p2"]
    assert env._episode.result.masked == {"p0": 0, "p1": 1}


def test_w13_a_refused_first_move_may_be_tried_again_and_a_later_one_not():
    game = Duel(3)
    env = under_network(game)
    env.reset(seed=0)
    with pytest.raises(ValueError, match="p0 can't strike 1"):
        env.step({"p0": 1, "p1": 0, "p2": 0})
    env.step({"p0": 0, "p1": 0, "p2": 0})
    with pytest.raises(ValueError, match="p1 can't strike 2"):
        env.step({"p0": 0, "p1": 2, "p2": 0})
    with pytest.raises(ResetNeeded, match=r"the last step\(\) ended in ValueError: p1 can't strike 2"):
        env.step({"p0": 0, "p1": 0, "p2": 0})


def test_w13_where_nobody_ends_within_a_round_it_is_pettingzoo_s_own_conversion():
    ends, joins = {"fox": 3, "hare_0": 7}, {"hare_1": 4}
    worlds = [kind(parallel_to_aec(Bookkeeper(ends=ends, joins=joins)).env)
              for kind in (aec_to_parallel_wrapper, TurnWorld)]  # fmt: skip
    courses = []
    for world in worlds:
        course: list[Any] = [world.reset(seed=2)]
        while world.agents:
            outcome = world.step({agent: np.full(2, len(course) / 20) for agent in world.agents})
            course.append([*map(dict, outcome), list(world.agents)])
        courses.append(course)
    assert len(courses[0]) == 13 and same(*courses)


def test_w13_pettingzoo_s_kit_passes():
    parallel_api_test(under_network(Duel(3), ScheduleConfig(obs_delay=1.0), noop="random"), 60)
