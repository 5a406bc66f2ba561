"""Training with a central critic, from end to end: what acts afterwards knows nothing that its agent can't see."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from cli_kit import as_json
from training_kit import tiny, trained

from heron_env import (
    Continuous,
    FeatureProvider,
    FieldAgent,
    HeronEnv,
    SystemAgent,
    Vector,
    World,
    load_policy,
    quantity,
    register,
    rule,
)
from heron_env.adapters import HeronVecEnv
from heron_env.errors import ConfigError, RunFolderError
from heron_env.lab import Hyperparameters, RunFolder
from heron_env.lab.learning.rows import FARTHEST, Role, StateScaling, StepRows, measure_rows

TINY = tiny(num_envs=4, batch_size=64)
CRITICS = ("local", "central")
LUCK = "test/Luck-v0"


class Wind(FeatureProvider):
    """What an agent sees: it differs from step to step."""

    speed: float = quantity(default=0.0, low=0.0, high=1.0)


class Luck(FeatureProvider):
    """What decides all rewards: a global feature, drawn once an episode and seen by nobody."""

    visibility = ()
    value: float = quantity(default=0.0, low=-9.0, high=9.0)


class Diary(FeatureProvider):
    """Bookkeeping, which no observation can ever show."""

    pages: float = quantity(default=0.0, observed=False)


class Gambler(FieldAgent):
    """Earns the day's luck, whatever it does, less a little for its distance from the wind so far."""

    features = (Wind, Diary)
    action = Continuous(-1.0, 1.0)

    @staticmethod
    @rule(writes=Diary.pages)
    def apply_action(wind: Wind, diary: Diary, action: Vector) -> float:
        return diary.pages - abs(action[0] - wind.speed)

    @staticmethod
    @rule
    def compute_local_reward(luck: Luck, diary: Diary) -> float:
        return luck.value + 0.01 * diary.pages


class LuckEnv(HeronEnv):
    """`shift` moves everything that is hidden."""

    global_features = (Luck,)
    shift = 0.0

    def begin(self, world: World) -> None:
        world.Luck.value[...] = 2.0 * world.draw("luck") - 1.0 + self.shift
        world[Gambler].Diary.pages[...] += 10.0 * self.shift
        self.finish(world)

    def finish(self, world: World) -> None:
        world[Gambler].Wind.speed[...] = world.draw("wind", 2)


def luck(shift: float = 0.0) -> HeronEnv:
    env = LuckEnv(SystemAgent("system_agent", Gambler("gambler_1"), Gambler("gambler_2")), max_steps=6)
    env.shift = shift
    return env


register(LUCK, luck)


def quick(folder: Path, critic: str, env_id: str = LUCK, **options: Any) -> RunFolder:
    settings = {"total_steps": 256, "hyperparameters": TINY, "validations": 0, "validation_episodes": 0}
    return trained(folder, env_id, critic=critic, **{**settings, **options})


@pytest.fixture(scope="module")
def central(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    """A policy of a few rollouts with a central critic."""
    return quick(tmp_path_factory.mktemp("central"), "central")


def weights(run: RunFolder) -> dict[str, torch.Tensor]:
    arrays = run.weights(next(iter(run.config.groups)))
    return {name: torch.from_numpy(array) for name, array in arrays.items()}


@pytest.mark.parametrize("critic", CRITICS)
def test_the_same_seed_gives_the_same_actor_and_critic_and_another_seed_others(critic: str, tmp_path: Path):
    options = {
        "env_id": "heron/EnergyManagement-v1",
        "env_options": {"dt": 3600.0, "physics_substeps": 1},
        "total_steps": 64,
    }
    first, second, other = (
        weights(quick(tmp_path / name, critic, seed=seed, **options)) for name, seed in (("a", 1), ("b", 1), ("c", 2))
    )
    assert list(first) == list(second)
    assert all(torch.equal(first[name], second[name]) for name in first)
    assert not torch.equal(first["value_net.weight"], other["value_net.weight"])


@pytest.mark.parametrize(("critic", "foresees"), [("local", False), ("central", True)])
def test_a_central_critic_foresees_what_no_agent_can_see(critic: str, foresees: bool, tmp_path: Path):
    settings = Hyperparameters(num_envs=16, n_steps=12, batch_size=384, n_epochs=8, learning_rate=3e-3, gamma=0.5)
    run = quick(tmp_path, critic, total_steps=8_000, hyperparameters=settings)
    kept = run.config.groups["gambler"]
    drawn, values = [], []
    for shift in np.linspace(-1.0, 1.0, 9):
        env = luck()
        venv = HeronVecEnv(lambda env=env: env, 1, seed=3, critic=critic)
        seen = venv.reset()
        env.world.Luck.value[...] = shift
        if critic == "central":
            state = seen["state"].copy()
            state[:, : len(env.state_names)] = env.state()
            mapped = StateScaling(np.array(kept.state_center), np.array(kept.state_scale))(state)
            seen = {"obs": ((seen["obs"] - kept.center) / kept.scale).astype(np.float32), "state": mapped}
        else:
            seen = ((seen - kept.center) / kept.scale).astype(np.float32)
        drawn.append(shift)
        values.append(valued(run, seen) / kept.reward_scale)
    slope = np.polyfit(drawn, values, 1)[0]
    assert slope == pytest.approx(2.0 if foresees else 0.0, abs=0.4)  # 1 a step, discount 1/2: worth 2 in all


def valued(run: RunFolder, seen: Any) -> float:
    """The saved critic's value of the first slot."""
    parts = [seen["obs"], seen["state"]] if isinstance(seen, dict) else [seen]
    layers = weights(run)
    hidden = torch.from_numpy(np.concatenate(parts, axis=1)[:1])
    for layer in ("mlp_extractor.value_net.0", "mlp_extractor.value_net.2", "value_net"):
        hidden = hidden @ layers[f"{layer}.weight"].T + layers[f"{layer}.bias"]
        hidden = hidden if layer == "value_net" else torch.tanh(hidden)
    return float(hidden[0, 0])


def test_states_are_scaled_by_what_the_warm_up_saw_and_cut_off_far_from_it(central: RunFolder):
    kept = central.config.groups["gambler"]
    names = luck().state_names
    spread = dict(zip(names, kept.state_scale, strict=False))
    assert spread["global.Luck.value"] == pytest.approx(2.0 / np.sqrt(12.0), rel=0.3)
    assert (kept.state_center[-2:], kept.state_scale[-2:]) == ([0.0, 0.0], [1.0, 1.0])
    scaling = StateScaling(np.array(kept.state_center), np.array(kept.state_scale))
    far = scaling(np.full((1, len(kept.state_center)), 1e6, dtype=np.float32))
    assert far.dtype == np.float32
    assert far.max() == FARTHEST


def test_a_state_that_never_moves_is_scaled_to_zero_not_to_nan():
    source = StepRows("heron/EnergyManagement-v1", 2, dt=3600.0, physics_substeps=1, with_state=True)
    env = source.env
    roles = [Role(env, ["battery"], {})]
    state = measure_rows(source, roles, seed=0, discount=0.9, central=True)[0].state
    constant = np.array(["Constants" in name for name in env.state_names])
    assert constant.any()
    told = state(np.append(env.state(), np.zeros(6)).astype(np.float32))
    assert np.isfinite(told).all()
    assert np.abs(told[: len(constant)][constant]).max() < 1e-5
    assert measure_rows(source, roles, seed=0, discount=0.9, central=False)[0].state is None


def test_a_run_folder_says_which_critic_it_had(central: RunFolder, tmp_path: Path):
    assert (central.config.critic, RunFolder.open(central.path).config.critic) == ("central", "central")
    local = quick(tmp_path, "local")
    assert local.config.critic == "local"
    assert local.config.groups["gambler"].state_center == []
    file = tmp_path / "config.json"
    config = json.loads(file.read_text())
    older = {k: v for k, v in config.items() if k != "critic"}
    older["groups"] = {
        g: {k: v for k, v in kept.items() if not k.startswith("state_")} for g, kept in config["groups"].items()
    }
    file.write_text(json.dumps(older))
    assert RunFolder.open(tmp_path).config == local.config
    assert load_policy(tmp_path)
    file.write_text(json.dumps(config | {"critic": "both"}))
    with pytest.raises(RunFolderError, match=r"critic.*Input should be 'local' or 'central'"):
        RunFolder.open(tmp_path)


@pytest.mark.e2e
def test_the_command_line_trains_with_either_critic(tmp_path: Path):
    more = ["--critic", "central", "--out", tmp_path / "run"]
    told = as_json("train", "heron/BatteryGrid-v0", "--steps", "1", "--option", "max_steps=4", *more)
    config = RunFolder.open(tmp_path / "run").config
    assert told["critic"] == config.critic == "central"


def test_a_critic_that_does_not_exist_is_named(tmp_path: Path):
    with pytest.raises(ConfigError) as error:
        quick(tmp_path, "globl")
    assert str(error.value) == "train(critic='globl'): must be one of ('local', 'central'). Did you mean 'local'?"
