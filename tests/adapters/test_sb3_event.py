"""What slots on the event clock have beside the law of tests/laws/test_vec_env.py: the buffer, others, the face."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from ends import COARSE, Mixed, endings
from refusing import refuses
from sb3_contrib import MaskablePPO
from sb3_contrib.common.maskable.buffers import MaskableRolloutBuffer
from stable_baselines3 import PPO
from stable_baselines3.common.buffers import RolloutBuffer
from stable_baselines3.common.vec_env import VecMonitor, VecNormalize

from heron_env import HeronEnv, ScheduleConfig, SystemAgent
from heron_env.adapters import DecisionBuffer, DictDecisionBuffer, HeronVecEnv
from heron_env.adapters.slots import WaitingSlots
from heron_env.core.policy import OnBatches
from heron_env.errors import ConfigError, InvalidAction, ResetNeeded

LATE = ScheduleConfig(msg_delay=0.3, act_delay=0.6, jitter_type="uniform", jitter_ratio=0.5, loss=0.2)


def grid(lanes: int = 2, **options: Any) -> HeronVecEnv:
    """Batteries whose observations arrive at different times."""
    return HeronVecEnv(
        "heron/BatteryGrid-v0", lanes, **{"clock": "event", "compile": True, "schedule": LATE, "max_steps": 7} | options
    )


def ppo(venv: Any, buffer: Any = DecisionBuffer, *, policy: str = "MlpPolicy", kind: Any = PPO, **options: Any) -> Any:
    """A small one that trains on decisions."""
    lanes = getattr(venv, "venv", venv)
    settings = {"n_steps": 16, "batch_size": 16, "n_epochs": 1, "seed": 1, "device": "cpu"} | options
    return kind(policy, venv, rollout_buffer_class=buffer, rollout_buffer_kwargs={"waiting": lanes.waiting}, **settings)


# The buffer


class Noted(DecisionBuffer):
    """Keeps what came and what became of it, of every rollout."""

    rollouts: list[dict[str, Any]]

    def add(self, obs: Any, action: Any, reward: Any, start: Any, value: Any, log_prob: Any) -> None:
        if not hasattr(self, "rollouts"):
            self.rollouts = []
        if self.pos == 1:
            self.rollouts.append({"steps": []})
        steps = self.rollouts[-1]["steps"]
        steps.append([self._now.copy(), obs.copy(), reward.copy(), value.numpy().flatten().copy(), None])
        super().add(obs, action, reward, start, value, log_prob)

    def compute_returns_and_advantage(self, last_values: Any, dones: Any) -> None:
        now = self.rollouts[-1]
        now["last"], now["dones"], now["waits"] = last_values.numpy().flatten().copy(), dones.copy(), self._now.copy()
        now["starts"] = self.episode_starts.copy()
        super().compute_returns_and_advantage(last_values, dones)
        now["advantages"], now["observations"] = self.advantages.copy(), self.observations.copy()


def by_hand(buffer: Noted, slot: int) -> list[list[tuple[bytes, float]]]:
    """(observation, advantage) of each decision of a slot, by rollout: GAE from decision to decision."""
    found, open_one = [], None
    for rollout in buffer.rollouts:
        decisions = [] if open_one is None else [open_one]
        steps = rollout["steps"]
        for number, (waits, obs, reward, value, _) in enumerate(steps):
            if waits[slot]:
                decisions.append({"obs": obs[slot], "value": float(value[slot]), "reward": 0.0, "done": False})
            if decisions:
                over = rollout["starts"][number + 2] if number + 1 < len(steps) else rollout["dones"]
                decisions[-1]["reward"] += float(reward[slot])
                decisions[-1]["done"] |= bool(over[slot])
        open_one, follows = None, float(rollout["last"][slot])
        if decisions and not decisions[-1]["done"] and not rollout["waits"][slot]:
            open_one = decisions.pop()
            follows = open_one["value"]
        rows, gae = [], 0.0
        for decision in reversed(decisions):
            goes_on = buffer.gamma * (not decision["done"])
            gae = decision["reward"] + goes_on * follows - decision["value"] + buffer.gae_lambda * goes_on * gae
            rows.append((decision["obs"].tobytes(), gae))
            follows = decision["value"]
        found.append(rows[::-1])
    return found


@pytest.mark.parametrize("build", [lambda: endings((2, 4, 9), max_steps=6, compile=True), None])
def test_advantages_are_those_of_decisions_slot_by_slot(build: Any) -> None:
    """Also of decisions that are open when a rollout ends, and of agents that end early."""
    venv = grid(3) if build is None else HeronVecEnv(build, 3, clock="event", schedule=LATE)
    model = ppo(venv, Noted, n_steps=9, batch_size=27, gae_lambda=0.8, gamma=0.9)
    model.learn(9 * venv.num_envs * 4)
    buffer = model.rollout_buffer
    expected = [by_hand(buffer, slot) for slot in range(venv.num_envs)]
    carried = 0
    for number, rollout in enumerate(buffer.rollouts):
        rows = [row for slot in expected for row in slot[number]]
        assert [row.tobytes() for row in rollout["observations"]] == [obs for obs, _ in rows]
        np.testing.assert_allclose(rollout["advantages"], [gae for _, gae in rows], rtol=1e-5, atol=1e-6)
        carried += (~rollout["waits"]).sum()
    assert carried and any(not step[0].all() for rollout in buffer.rollouts for step in rollout["steps"])


def test_where_nobody_idles_it_is_stable_baselines_own() -> None:
    weights = []
    for buffer in (RolloutBuffer, DecisionBuffer):
        venv = grid(2, schedule=None)
        more = {"rollout_buffer_kwargs": {"waiting": venv.waiting}} if buffer is DecisionBuffer else {}
        settings: dict[str, Any] = {"n_steps": 16, "batch_size": 16, "n_epochs": 2, "seed": 1, "device": "cpu"}
        model = PPO("MlpPolicy", venv, rollout_buffer_class=buffer, **more, **settings).learn(200)
        weights.append(torch.cat([value.flatten() for value in model.policy.parameters()]))
    assert torch.equal(*weights)


def test_after_a_reset_nothing_comes_of_an_open_decision() -> None:
    venv = grid(2)
    model = ppo(venv, Noted, n_steps=5, batch_size=20)
    model.learn(5 * venv.num_envs)
    buffer = model.rollout_buffer
    assert buffer._carried["decided"].any()
    model.learn(5 * venv.num_envs)  # resets the environments
    shown = {obs.tobytes() for step in buffer.rollouts[-1]["steps"] for obs in step[1]}
    assert {row.tobytes() for row in buffer.rollouts[-1]["observations"]} <= shown


def test_ppo_trains_saves_loads_and_trains_on(tmp_path: Path) -> None:
    venv = VecNormalize(VecMonitor(grid(3)))
    model = ppo(venv.venv, n_steps=24)
    model.learn(1500)
    assert len(model.ep_info_buffer) > 0
    model.save(tmp_path / "model")
    with pytest.raises(ConfigError, match=r"custom_objects=\{'rollout_buffer_kwargs'"):
        PPO.load(tmp_path / "model", env=grid(3), device="cpu").learn(100)
    lanes = grid(3)
    kwargs = {"rollout_buffer_kwargs": {"waiting": lanes.waiting}}
    PPO.load(tmp_path / "model", env=lanes, device="cpu", custom_objects=kwargs).learn(500)


def test_it_serves_central_critics_and_masks() -> None:
    ppo(grid(2, critic="central"), DictDecisionBuffer, policy="MultiInputPolicy").learn(100)

    class Masked(DecisionBuffer, MaskableRolloutBuffer):
        """Of MaskablePPO."""

    venv = HeronVecEnv(lambda: chosen(), 3, group="chooser", clock="event", schedule=LATE)
    ppo(venv, Masked, kind=MaskablePPO).learn(200)


def test_a_rollout_without_a_decision_is_refused() -> None:
    space, zero = grid(1).observation_space, torch.zeros(1)
    idle = WaitingSlots(np.zeros(1, dtype=np.bool_))
    buffer = DecisionBuffer(2, space, grid(1).action_space, "cpu", waiting=idle)
    for _ in range(2):
        buffer.add(np.zeros(space.shape), np.zeros((1, 1)), np.zeros(1), np.zeros(1), zero, zero)
    with refuses(ConfigError, "DecisionBuffer: no decision was completed in 2 steps; raise n_steps"):
        buffer.compute_returns_and_advantage(zero, np.zeros(1))


# Others


def chosen(**options: Any) -> HeronEnv:
    """Movers and choosers, compiled."""
    agents = (*Mixed.pair(), *Mixed.choosers(3)[1:])
    return HeronEnv(SystemAgent("system_agent", *agents), **{"max_steps": 4, "compile": True} | options)


class Remembers:
    """Counts its own decisions of an episode, for each agent of each lane."""

    on_rows = True

    def __init__(self) -> None:
        self.counts: dict[int, int] = {}
        self.lanes: list[list[int]] = []

    def begin(self, seed: int = 0, episode: int = 0) -> None:
        """An episode of one agent."""

    def forward(self, vector: Any) -> Any:
        raise AssertionError("rows are answered together")

    def forward_rows(self, vectors: Any, who: Any, first: Any) -> Any:
        for one in who[first].tolist():
            self.counts[one] = 0
        self.lanes.append(who.tolist())
        for one in who.tolist():
            self.counts[one] += 1
        return np.array([self.counts[one] % 3 for one in who.tolist()])


def test_others_answer_their_own_rows_and_forget_with_each_episode() -> None:
    policy = Remembers()
    venv = HeronVecEnv(
        chosen, 2, group="mover", clock="event", schedule=LATE, others={"chooser_1": policy, "*": lambda seen: 2}
    )
    venv.reset()
    for _ in range(20):
        venv.step(np.zeros((2, 1), dtype=np.float32))
    assert policy.lanes and max(policy.counts.values()) < 6, "it counts on beyond the four steps of an episode"
    assert {value for lane in range(2) for value in venv.batch.lane(lane).simulation.last_rewards[-2:]} <= {0.0, 2.0}


def drawn(vector: Any, draw: int) -> int:
    """A choice that only chance decides."""
    return draw % 3


class DrawnTogether(OnBatches):
    """The same, asked about many at once."""

    def forward_batch(self, vectors: Any, draws: Any = None) -> Any:
        return (draws % np.uint64(3)).astype(np.int64)


@pytest.mark.parametrize("policy", [drawn, DrawnTogether()], ids=["one by one", "together"])
def test_others_draw_what_they_draw_in_single_runs(policy: Any) -> None:
    venv = HeronVecEnv(chosen, 3, seed=7, group="mover", clock="event", schedule=LATE, others={"chooser": policy})
    venv.reset()
    earned: dict[int, float] = {}
    while len(earned) < 3:
        for lane, info in enumerate(venv.step(np.zeros((3, 1)))[3]):
            if "episode" in info:
                earned.setdefault(lane, info["episode"]["r"])
    both, env = {"mover": lambda vector: 0.0, "chooser": policy}, chosen()
    single = [env.run_event_driven(both, seed=7 + lane, schedule=LATE).returns["system_agent"] for lane in range(3)]
    assert [earned[lane] for lane in range(3)] == single and len(set(single)) > 1


def test_who_has_no_policy_does_nothing() -> None:
    venv = HeronVecEnv(chosen, 1, group="mover", clock="event", schedule=LATE)
    venv.reset()
    for _ in range(9):
        venv.step(np.zeros((1, 1), dtype=np.float32))
    assert venv.batch.lane(0).simulation.last_rewards[-3:] == [0.0] * 3


class Fails:
    """A policy with a fault that shows late."""

    calls = 0

    def __call__(self, vector: Any) -> Any:
        self.calls += 1
        if self.calls > 3:
            raise RuntimeError("no more")
        return 0


def test_after_an_error_of_the_others_only_a_reset_helps() -> None:
    policy = Fails()
    venv = HeronVecEnv(chosen, 1, group="mover", clock="event", schedule=LATE, others={"*": policy})
    venv.reset()
    with pytest.raises(RuntimeError, match="no more"):
        for _ in range(9):
            venv.step(np.zeros((1, 1)))
    with refuses(ResetNeeded, "step(): no episode is running, or an error ended the last call half-way; call reset()"):
        venv.step(np.zeros((1, 1)))
    policy.calls = -9
    venv.reset()
    venv.step(np.zeros((1, 1)))


# The face


def test_infos_tell_of_their_own_step_and_idle_ones_are_cheap() -> None:
    venv, again = grid(2), grid(2)
    for each in (venv, again):
        each.reset()
    zero = np.zeros((venv.num_envs, 1))
    later = [venv.step(zero)[3] for _ in range(12)]  # nobody looks until all is over
    for infos in later:
        now = [dict(info) for info in again.step(zero)[3]]
        for info in (*infos, *now):
            info.get("episode", {}).pop("t", None)
        assert list(map(repr, infos)) == list(map(repr, now))
    assert any("idle" in info for infos in later for info in infos)


def test_seeds_options_and_what_was_handed_out() -> None:
    venv = HeronVecEnv("heron/EnergyManagement-v1", 2, clock="event", seed=3, compile=True, **COARSE)
    first = venv.reset()
    copy, second = first.copy(), venv.reset()
    assert venv.seed(3) == [3] * 6 + [4] * 6
    assert np.array_equal(venv.reset(), copy) and np.array_equal(first, copy)
    assert np.array_equal(venv.reset(), second)
    venv.set_options([{"day": 4}] * 6 + [{"day": 9}] * 6)
    venv.reset()
    assert [venv.batch.lane(lane).day for lane in range(2)] == venv.get_attr("day", [0, 6]) == [4, 9]
    assert [state.shape for state in venv.env_method("state", indices=[0])] == [venv.batch.lane(0).state().shape]
    venv.close()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (
            {"clock": "evnt"},
            "HeronVecEnv(clock='evnt'): must be one of ('synchronous', 'event'). Did you mean 'event'?",
        ),
        ({"autoreset": "disabled"}, "HeronVecEnv(autoreset=..., clock='event'): where an episode ends the next one"),
        ({"gamma": 0.9}, "HeronVecEnv(gamma=..., clock='event'): Stable-Baselines3 discounts, by decision"),
        ({"with_state": True}, "HeronVecEnv(with_state=..., clock='event'): give critic='central'"),
        ({"record": ("ages",)}, "HeronVecEnv(record=..., clock='event'): BatchEnv(..., clock='event') has results"),
        ({"final_observations": True}, "HeronVecEnv(final_observations=..., clock='event'): infos have"),
        (
            {"group": "battery", "others": {"battery": len}},
            "others['battery']: 'battery_1' is in the group that is trained",
        ),
    ],
)
def test_what_the_event_clock_can_t_do_is_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(words)):
        grid(**options)


class ByState:
    """Decides on the state in object form."""

    def decide_action(self, state: Any) -> Any:
        raise AssertionError("never asked")


def test_policies_of_states_and_wrong_actions_are_refused() -> None:
    with pytest.raises(ConfigError, match="'mover_1', ByState, has decide_action"):
        HeronVecEnv(chosen, 1, group="mover", clock="event", others={"*": ByState()})
    venv = grid(2)
    with pytest.raises(ResetNeeded, match="no episode is running"):
        venv.step(np.zeros((4, 1)))
    venv.reset()
    while not venv.waiting.slots[3]:
        venv.step(np.zeros((4, 1)))
    with pytest.raises(InvalidAction, match=re.escape("lane 1: action of 'battery_2': [1.5] lies outside [-1.0, 1.0]")):
        venv.step(np.array([[0.0], [0.0], [0.0], [1.5]]))
    venv.step(np.zeros((4, 1)))
