"""RLlib's form of an environment says what the ParallelEnv says, to those whose turn it is."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ends import endings
from mixed_world import CARTS

pytest.importorskip("ray.rllib", exc_type=ImportError)  # ray alone does not bring what its rllib needs

from heron_env import HeronEnv, ScheduleConfig, make
from heron_env.adapters.rllib import HeronMultiAgentEnv, policy_per_group
from heron_env.errors import ConfigError, InvalidAction, ResetNeeded, UnknownAgent, UnknownEnvironment

pytestmark = pytest.mark.far
GRID = "heron/BatteryGrid-v0"
UNEVEN = {"battery_1": ScheduleConfig(tick_interval=2.0), "battery_2": ScheduleConfig(tick_interval=3.0, phase=1.0)}


def played(env: Any, actions: Any, seed: int) -> list[tuple[Any, ...]]:
    """Reset and every step of one episode."""
    told = [env.reset(seed=seed)]
    while True:
        told.append(env.step(actions(told[-1][0])))
        if len(env.agents) == 0 or told[-1][2].get("__all__") or told[-1][3].get("__all__"):
            return told


def sampled(env: HeronEnv, seed: int) -> Any:
    """Random actions that depend on the agent and on the number of the step alone."""
    stream = np.random.default_rng(seed)
    table = {agent: stream.integers(0, 2**31, size=200) for agent in env.possible_agents}
    step = iter(range(200))

    def actions(seen: dict[str, Any]) -> dict[str, Any]:
        number, found = next(step), {}
        for agent in seen:
            env.action_space(agent).seed(int(table[agent][number]))
            found[agent] = env.action_space(agent).sample()
        return found

    return actions


WORLDS = [
    {"env": GRID, "num_batteries": 3},
    {"env": GRID, "num_batteries": 3, "schedule": UNEVEN, "max_steps": 20},
    {"env": "heron/TrafficCorridor-v0", "max_steps": 30},
    {"env": CARTS, "max_steps": 7},
    {"env": endings, "ends": (2, 5, 9), "max_steps": 7},
    {"env": endings, "ends": (3, 3)},
]


@pytest.mark.parametrize("config", WORLDS, ids=lambda config: f"{config['env']}"[:40])
def test_its_values_are_those_of_the_parallel_env(config: dict[str, Any]):
    env, plain = HeronMultiAgentEnv(config), HeronMultiAgentEnv(config).heron
    ours = played(env, sampled(env.heron, 7), seed=5)
    theirs = played(plain, sampled(plain, 7), seed=5)
    assert len(ours) == len(theirs)
    turns = {agent for agent, info in theirs[0][1].items() if info["is_active"]}
    for step, (mine, parallel) in enumerate(zip(ours, theirs, strict=True)):
        seen, infos = parallel[0], parallel[-1]
        over = dict.fromkeys(seen, False) if step == 0 else {a: parallel[2][a] or parallel[3][a] for a in seen}
        turns = [agent for agent in seen if infos[agent]["is_active"] or over[agent]]
        assert list(mine[0]) == turns == list(mine[-1])
        for agent in turns:
            assert np.array_equal(mine[0][agent], seen[agent])
            assert env.get_observation_space(agent).contains(mine[0][agent])
            assert mine[-1][agent].keys() == infos[agent].keys()
        if step:
            assert mine[1] == parallel[1]
            assert mine[2] == {**{agent: parallel[2][agent] for agent in turns}, "__all__": mine[2]["__all__"]}
            cut = {
                agent: parallel[3][agent] and not mine[3]["__all__"] for agent in turns
            }  # at the end by __all__ alone
            assert mine[3] == {**cut, "__all__": mine[3]["__all__"]}
            assert list(mine[2]) == list(mine[3]) == [*turns, "__all__"]


def test_agents_are_absent_where_they_do_not_tick():
    env = HeronMultiAgentEnv({"env": GRID, "num_batteries": 3, "schedule": UNEVEN, "max_steps": 6})
    zeros = {agent: np.zeros(1, dtype=np.float32) for agent in env.possible_agents}
    present = [list(env.reset(seed=0)[0])]
    for _ in range(6):
        seen, rewards, *_ = env.step({agent: zeros[agent] for agent in present[-1]})
        present.append(list(seen))
        assert list(rewards) == env.possible_agents  # what is earned in between is told all the same
    assert [[int(agent[-1]) for agent in those] for those in present] == [
        [1, 3], [2, 3], [1, 3], [3], [1, 2, 3], [3], [1, 2, 3],
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("ends", "limit", "expected"),
    [((2, 4), 9, [(4, True, False)]), ((2, 9), 4, [(4, False, True)]), ((4, 9), 4, [(4, False, True)])],
)
def test_all_are_terminated_by_rules_or_truncated_by_a_limit(ends, limit, expected):
    env = HeronMultiAgentEnv({"env": endings, "ends": ends, "max_steps": limit})
    seen, _ = env.reset(seed=0)
    found = []
    for step in range(1, limit + 1):
        seen, _, terminateds, truncateds, _ = env.step({agent: np.zeros(1) for agent in seen})
        assert set(terminateds) == set(truncateds) == {*seen, "__all__"}
        if terminateds["__all__"] or truncateds["__all__"]:
            found.append((step, terminateds["__all__"], truncateds["__all__"]))
            break
        seen = {agent: seen[agent] for agent in seen if not terminateds[agent]}
    assert found == expected
    with pytest.raises(ResetNeeded, match="call reset"):
        env.step({})


class Worker(dict[str, Any]):
    """RLlib's EnvContext, as far as we read it."""

    def __init__(self, number: int, **config: Any) -> None:
        super().__init__(config)
        self.worker_index = number


def test_workers_with_overlapping_seeds_play_other_episodes():
    def first(worker: int, seed: int) -> bytes:
        env = HeronMultiAgentEnv(Worker(worker, env="heron/Spread-v0"))
        return b"".join(vector.tobytes() for vector in env.reset(seed=seed)[0].values())

    seen = [first(worker, seed) for worker, seed in [(1, 1), (1, 2), (2, 2), (2, 3), (0, 2)]]
    assert len(set(seen)) == len(seen)
    assert first(2, 3) == seen[3]
    plain, _ = make("heron/Spread-v0").reset(seed=2)
    assert seen[4] == b"".join(vector.tobytes() for vector in plain.values())


def test_with_masks_observations_hold_what_may_be_chosen():
    config = {"env": "heron/TrafficCorridor-v0", "masks": True}
    env = HeronMultiAgentEnv(config)
    seen, infos = env.reset(seed=0)
    forbidden = 0
    for _ in range(20):
        for agent, vector in seen.items():
            assert env.get_observation_space(agent).contains(vector)
            told = infos[agent].get("action_mask", np.ones(env.action_spaces[agent].n))  # none if all is always allowed
            assert np.array_equal(vector["action_mask"], told)
            forbidden += int((vector["action_mask"] == 0.0).sum())
        seen, *_, infos = env.step({agent: int(vector["action_mask"].argmax()) for agent, vector in seen.items()})
    assert forbidden > 0


def test_groups_share_a_policy():
    config = {"env": "heron/EnergyManagement-v1", "control": "field"}
    groups = make(config["env"], control="field").group_map
    options = policy_per_group(config)
    assert options["policies"] == set(groups)
    for group, members in groups.items():
        assert {options["policy_mapping_fn"](agent, None) for agent in members} == {group}


def test_wrong_configurations_say_how_to_mend_them():
    with pytest.raises(ConfigError, match="give a registered id, 'module:function', or a function"):
        HeronMultiAgentEnv({})
    with pytest.raises(ConfigError, match=r"HeronMultiAgentEnv\(config\)=3: must be a mapping"):
        HeronMultiAgentEnv(3)  # type: ignore[arg-type]
    with pytest.raises(UnknownEnvironment, match="Did you mean 'heron/BatteryGrid-v0'"):
        HeronMultiAgentEnv({"env": "heron/BateryGrid-v0"})
    with pytest.raises(ConfigError, match="returned 3, no HeronEnv"):
        HeronMultiAgentEnv({"env": lambda: 3})
    with pytest.raises(ConfigError, match=r"masks'\]='yes'.*must be True or False"):
        HeronMultiAgentEnv({"env": GRID, "masks": "yes"})
    for env_id, acts in ((GRID, r"'battery_1' acts in Box"), (CARTS, r"'cart_1' acts in Dict")):
        with pytest.raises(ConfigError, match=f"{acts}.*leave masks out, a forbidden choice is then the no-op"):
            HeronMultiAgentEnv({"env": env_id, "masks": True})
    env = HeronMultiAgentEnv({"env": GRID})
    with pytest.raises(ConfigError, match="seed=-1: must be a whole number >= 0"):
        env.reset(seed=-1)
    env.reset(seed=0)
    with pytest.raises(UnknownAgent, match="batery_1"):
        env.step({"batery_1": np.zeros(1)})
    with pytest.raises(InvalidAction):
        env.step({"battery_1": np.full(1, 2.0)})


ORDER = """
from heron_env.adapters.rllib import HeronMultiAgentEnv
env = HeronMultiAgentEnv({"env": "heron/BatteryGrid-v0", "num_batteries": 12})
print(env.possible_agents, env.agents, list(env.reset(seed=0)[0]))
"""


def test_the_order_of_agents_is_the_same_in_every_process():
    told = set()
    for hashed in ("1", "2"):
        environ = {**os.environ, "PYTHONHASHSEED": hashed}
        command = [sys.executable, "-c", ORDER]
        told.add(subprocess.run(command, env=environ, capture_output=True, text=True, check=True).stdout)
    assert told == {" ".join([str([f"battery_{n}" for n in range(1, 13)])] * 3) + "\n"}


SAMPLE = """
from ray.rllib.algorithms.ppo import PPOConfig
from ray.rllib.env.multi_agent_env_runner import MultiAgentEnvRunner
from ray.rllib.utils.pre_checks.env import check_multiagent_environments
from heron_env import ScheduleConfig
from heron_env.adapters.rllib import HeronMultiAgentEnv, policy_per_group

late = {"*": ScheduleConfig(tick_interval=2.0, phase=1.0)}
third = {"mortal_2": ScheduleConfig(tick_interval=3.0)}
for config, earned in (
    ({"env": "heron/BatteryGrid-v0", "num_batteries": 3, "max_steps": 11, "schedule": late}, None),
    ({"env": "ends:endings", "ends": (2, 5, 9), "max_steps": 7}, [2.0, 5.0, 7.0]),
    ({"env": "ends:endings", "ends": (2, 5)}, [2.0, 5.0]),
    ({"env": "mixed_world:carts", "max_steps": 7}, None),
    ({"env": "ends:endings", "ends": (2, 5, 9), "max_steps": 7, "schedule": third}, [2.0, 5.0, 7.0]),
):
    check_multiagent_environments(HeronMultiAgentEnv(config))
    asked = PPOConfig().environment(HeronMultiAgentEnv, env_config=config).debugging(seed=3)
    asked = asked.env_runners(num_env_runners=0, num_envs_per_env_runner=2).multi_agent(**policy_per_group(config))
    for episode in MultiAgentEnvRunner(config=asked, worker_index=0).sample(num_episodes=3, random_actions=True):
        parts = [episode.agent_episodes[agent] for agent in HeronMultiAgentEnv(config).possible_agents]
        assert episode.is_done and all(part.is_done and len(part) for part in parts)
        if earned:
            assert [part.get_return() for part in parts] == earned, parts
            assert [part.is_terminated for part in parts] == [True, True, False][:len(parts)]
    print("checked")
"""


def test_rllib_plays_whole_episodes_where_agents_come_and_go(tmp_path: Path):
    path = [str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
    environ = {**os.environ, "HOME": str(tmp_path), "RAY_USAGE_STATS_ENABLED": "0", "PYTHONPATH": os.pathsep.join(path)}
    done = subprocess.run([sys.executable, "-c", SAMPLE], env=environ, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("checked") == 5
