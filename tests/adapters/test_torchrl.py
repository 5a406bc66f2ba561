"""HeronTorchEnv: TorchRL's own check passes, and every number is that of the environments one by one."""

from typing import Any

import numpy as np
import pytest

from heron_env import BatchEnv, make
from heron_env.core.masking import flat
from heron_env.errors import ConfigError, ResetNeeded

torch = pytest.importorskip("torch")
pytest.importorskip("torchrl")
pytestmark = [pytest.mark.far, pytest.mark.filterwarnings("ignore")]  # TorchRL's own, of many kinds

import torchrl.collectors  # noqa: E402
from masked_worlds import lamps  # noqa: E402
from mixed_world import CARTS  # noqa: E402
from torchrl.envs import ActionMask, RewardSum, TransformedEnv  # noqa: E402
from torchrl.envs.utils import check_env_specs  # noqa: E402

from heron_env.adapters import HeronTorchEnv  # noqa: E402

WORLDS: dict[str, dict[str, Any]] = {
    "heron/BatteryGrid-v0": {"max_steps": 6},
    "heron/TrafficCorridor-v0": {"max_steps": 5},
    "heron/GraphColoring-v0": {"max_steps": 5},
    "heron/EnergyManagement-v1": {"max_steps": 4, "physics_substeps": 1},
    CARTS: {"max_steps": 5},
}


def collected(env: Any, batch: int, total: int) -> list[Any]:
    """What a collector brings with random actions."""
    kind = getattr(torchrl.collectors, "Collector", None) or torchrl.collectors.SyncDataCollector  # its name till 0.11
    return list(kind(env, frames_per_batch=batch, total_frames=total))


@pytest.mark.parametrize("env_id", WORLDS)
def test_torchrl_s_own_check_passes(env_id: str) -> None:
    check_env_specs(HeronTorchEnv(env_id, 3, use_mask=True, with_state=True, **WORLDS[env_id]))


def offsets(env: Any, agent: str) -> Any:
    """Where each choice's categories begin in a flat mask."""
    sizes = getattr(env.action_space(agent), "nvec", np.array([0]))
    return torch.tensor(np.cumsum([0, *sizes[:-1]])).reshape(np.shape(sizes) if sizes[0] else ())


@pytest.mark.parametrize("env_id", WORLDS)
def test_each_lane_is_its_environment_over_several_episodes(env_id: str) -> None:
    batched = HeronTorchEnv(env_id, 2, seed=7, with_state=True, use_training_signal=False, **WORLDS[env_id])
    torch.manual_seed(0)
    told = batched.rollout(14, break_when_any_done=False)
    for lane in range(2):
        env = make(env_id, **WORLDS[env_id])
        observations, infos = env.reset(seed=7 + lane)
        for number in range(14):
            now = told[lane, number]
            assert np.array_equal(now["state"].numpy(), env.state())
            actions = {}
            for group, agents in batched.group_map.items():
                for place, agent in enumerate(agents):
                    row = now[group][place]
                    assert np.array_equal(row["observation"].numpy(), observations[agent])
                    if group in batched.masked:
                        flags = flat(infos[agent]["action_mask"]).astype(bool)
                        assert np.array_equal(row["action_mask"].numpy(), flags)
                        choices = row["action", "d"] if ("action", "d") in row.keys(True) else row["action"]
                        assert row["action_mask"][choices + offsets(env, agent)].all()
                    actions[agent] = row["action"].numpy()
            observations, rewards, _, truncated, infos = env.step(actions)
            for group, agents in batched.group_map.items():
                earned = now["next", group, "reward"][:, 0].numpy()
                assert np.array_equal(earned, np.array([rewards[agent] for agent in agents], dtype=np.float32))
            over = not env.agents
            assert bool(now["next", "done"]) == over
            assert bool(now["next", "truncated"]) == (over and all(truncated.values()))
            assert bool(now["next", "terminated"]) == (over and not all(truncated.values()))
            if over:
                observations, infos = env.reset()
    assert told["next", "done"].any(dim=1).all()


def test_some_lanes_are_reset_and_the_others_stay() -> None:
    env = HeronTorchEnv("heron/BatteryGrid-v0", 3, seed=1, max_steps=9)
    first = env.reset()
    later = env.step(env.rand_action(first.clone()))["next"]
    which = torch.tensor([[False], [True], [False]])
    again = env.reset(later.clone().set("_reset", which))
    seen, before = again["battery", "observation"], later["battery", "observation"]
    assert torch.equal(seen[0], before[0]) and torch.equal(seen[2], before[2]) and not torch.equal(seen[1], before[1])
    assert env.heron_batch.steps.tolist() == [1, 0, 1]


def test_a_seed_begins_the_same_episodes() -> None:
    options = WORLDS["heron/EnergyManagement-v1"]
    env = HeronTorchEnv("heron/EnergyManagement-v1", 3, **options)
    env.set_seed(11)
    first = env.reset()["battery", "observation"]
    second = env.reset()["battery", "observation"]
    env.set_seed(11)
    assert torch.equal(env.reset()["battery", "observation"], first) and not torch.equal(first, second)
    plain = BatchEnv("heron/EnergyManagement-v1", 3, **options)
    assert np.array_equal(plain.reset(seed=11)[0]["battery"], first.numpy())


def test_what_it_gave_out_is_not_written_over() -> None:
    env = HeronTorchEnv("heron/BatteryGrid-v0", 2, max_steps=9)
    given = [env.reset()]
    kept = [given[0].clone()]
    for _ in range(4):
        given.append(env.step(env.rand_action(given[-1].clone()))["next"])
        kept.append(given[-1].clone())
    assert all((one == other).all() for one, other in zip(given, kept, strict=True))


def test_the_training_signal_is_what_trainers_earn() -> None:
    options = WORLDS["heron/GraphColoring-v0"]
    plain, signal = (
        HeronTorchEnv("heron/GraphColoring-v0", 2, seed=3, use_training_signal=each, **options)
        for each in (False, True)
    )
    earned = []
    for env in (plain, signal):
        torch.manual_seed(1)
        earned.append(torch.stack([env.rollout(4)["next", group, "reward"] for group in env.group_map]))
    assert not torch.equal(*earned)


def test_a_collector_goes_over_the_ends_of_episodes() -> None:
    env = HeronTorchEnv("heron/BatteryGrid-v0", 4, max_steps=5)
    batches = collected(env, 48, 96)
    assert [batch.numel() for batch in batches] == [48, 48]
    assert int(sum(batch["next", "done"].sum() for batch in batches)) == 4 * (24 // 5)


def test_a_lane_that_is_over_waits_for_its_reset() -> None:
    env = HeronTorchEnv("heron/BatteryGrid-v0", 2, max_steps=1)
    done = env.step(env.rand_action(env.reset()))["next"]
    assert done["done"].all()
    with pytest.raises(ResetNeeded, match="lane 0"):
        env.step(env.rand_action(done.clone()))


def test_random_choices_of_mixed_actions_keep_to_the_masks_under_transforms() -> None:
    mask = ActionMask(action_key=("cart", "action", "d"), mask_key=("cart", "action_mask"))
    env = TransformedEnv(HeronTorchEnv(CARTS, 3), mask)
    check_env_specs(env)
    row = env.rollout(20)["cart"]
    assert not row["action_mask"].all() and row["action_mask"].gather(-1, row["action", "d"][..., None]).all()
    assert set(row["action", "d"].unique().tolist()) == {0, 1, 2} and len(row["action", "c"].unique()) > 100


def test_masks_of_several_choices_are_kept_to() -> None:
    env = HeronTorchEnv(lamps("lamp", "pair", max_steps=9), 3, use_mask=True)
    check_env_specs(env)
    told = env.rollout(8)
    choices = torch.tensor([0, 2])  # a pair's choices, among [2, 3]
    allowed, chosen = told["pair", "action_mask"], told["pair", "action"] + choices
    assert not allowed.all() and allowed.gather(-1, chosen).all()
    assert told["pair", "mask"].all()


def test_some_groups_act_and_the_others_follow_their_policies() -> None:
    env = HeronTorchEnv("heron/TrafficCorridor-v0", 2, groups=["intersection"], max_steps=5)
    check_env_specs(env)
    assert list(env.group_map) == ["intersection"] and "corridor" not in list(env.reset().keys())
    with pytest.raises(ConfigError, match="group='intersections': choose one of"):
        HeronTorchEnv("heron/TrafficCorridor-v0", 2, groups=["intersections"])


def test_a_collector_s_random_actions_under_transforms_are_not_held_to_the_masks_of_one_moment() -> None:
    plain = HeronTorchEnv("heron/TrafficCorridor-v0", 4, groups=["intersection"], max_steps=12)
    env = TransformedEnv(plain, RewardSum(reset_keys=["_reset"]))
    (told,) = collected(env, 48, 48)
    assert (told["intersection", "action"] == 1).any()
