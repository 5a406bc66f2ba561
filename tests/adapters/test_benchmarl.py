"""HeronTask: BenchMARL trains on it, masks and the state reach those that they are meant for."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from heron_env.errors import ConfigError

torch = pytest.importorskip("torch")
pytest.importorskip("benchmarl")
pytestmark = [pytest.mark.far, pytest.mark.filterwarnings("ignore")]  # BenchMARL's and TorchRL's own, of many kinds

from benchmarl.algorithms import IppoConfig, MappoConfig, QmixConfig  # noqa: E402
from benchmarl.experiment import Callback, Experiment, ExperimentConfig  # noqa: E402
from benchmarl.models.mlp import MlpConfig  # noqa: E402
from torchrl.envs import set_exploration_type  # noqa: E402

from heron_env.adapters import HeronTask  # noqa: E402

LIGHTS = {"groups": ["intersection"], "max_steps": 6}
"""Their masks forbid a change in the first three steps."""
BATTERIES = {"dt": 900.0, "physics_substeps": 1, "max_steps": 6}


class Seen(Callback):
    """What was collected, and what was evaluated."""

    def __init__(self) -> None:
        super().__init__()
        self.collected: list[Any] = []
        self.evaluated: list[Any] = []

    def on_batch_collected(self, batch: Any) -> None:
        self.collected.append(batch.clone())

    def on_evaluation_end(self, rollouts: list[Any]) -> None:
        self.evaluated += rollouts


def ran(folder: Path, task: HeronTask, algorithm: Any) -> tuple[Experiment, Seen]:
    """Two short iterations."""
    config, seen = ExperimentConfig.get_from_yaml(), Seen()
    settings: dict[str, Any] = {
        "loggers": ["csv"], "create_json": False, "render": False, "save_folder": str(folder), "max_n_frames": None,
        "max_n_iters": 2, "evaluation_interval": 24, "evaluation_episodes": 3, "off_policy_init_random_frames": 24,
        "off_policy_n_optimizer_steps": 2,
    }  # fmt: skip
    for kind in ("on", "off"):
        settings |= {f"{kind}_policy_n_envs_per_worker": 4, f"{kind}_policy_collected_frames_per_batch": 24}
    for name, value in settings.items():
        setattr(config, name, value)
    config.on_policy_n_minibatch_iters, config.on_policy_minibatch_size = 1, 12
    model = MlpConfig.get_from_yaml()
    experiment = Experiment(task, algorithm.get_from_yaml(), model, seed=0, config=config, callbacks=[seen])
    experiment.run()
    return experiment, seen


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize("algorithm", [QmixConfig, MappoConfig], ids=["qmix", "mappo"])
def test_no_choice_that_a_mask_forbids_is_ever_collected(tmp_path: Path, algorithm: Any) -> None:
    _, seen = ran(tmp_path, HeronTask("heron/TrafficCorridor-v0", LIGHTS), algorithm)
    assert len(seen.collected) == 2
    chosen = torch.cat([batch["intersection", "action"] for batch in seen.collected])
    allowed = torch.cat([batch["intersection", "action_mask"] for batch in seen.collected])
    assert not allowed.all()
    assert all((batch["intersection", "action"] == 1).any() for batch in seen.collected), "random ones, then learned"
    assert allowed.gather(-1, chosen.unsqueeze(-1)).all()


def test_evaluations_last_whole_episodes(tmp_path: Path) -> None:
    _, seen = ran(tmp_path, HeronTask("heron/EnergyManagement-v1", BATTERIES), IppoConfig)
    assert [(len(rollout), bool(rollout["next", "done"][-1])) for rollout in seen.evaluated[:3]] == [(6, True)] * 3


def test_the_state_is_the_critic_s_and_not_the_actor_s(tmp_path: Path) -> None:
    task = HeronTask("heron/EnergyManagement-v1", {**BATTERIES, "with_state": True})
    experiment, seen = ran(tmp_path, task, MappoConfig)
    loss, rows = experiment.losses["battery"], [seen.collected[0].select("state", "battery").clone() for _ in range(2)]
    rows[1]["state"] += 1.0
    with torch.no_grad(), set_exploration_type("deterministic"):
        actions = [experiment.policy(each)["battery", "action"] for each in rows]
        with loss.critic_network_params.to_module(loss.critic_network):
            values = [loss.critic_network(each)["battery", "state_value"] for each in rows]
    assert torch.equal(*actions) and not torch.equal(*values)


def test_a_task_without_a_limit_of_steps_is_refused() -> None:
    with pytest.raises(
        ConfigError, match=r"'heron/EnergyManagement-v1'\): has no max_steps.*give \{'max_steps': ...\}"
    ):
        HeronTask("heron/EnergyManagement-v1")


def test_groups_with_and_without_masks_are_not_trained_together() -> None:
    with pytest.raises(ConfigError, match=r"\['intersection'\] have masks and \['corridor'\] have none"):
        HeronTask("heron/TrafficCorridor-v0", {"max_steps": 6})


def test_what_a_task_takes_is_said_by_its_spaces() -> None:
    lights, batteries = HeronTask("heron/TrafficCorridor-v0", LIGHTS), HeronTask("heron/EnergyManagement-v1", BATTERIES)
    assert (lights.supports_discrete_actions(), lights.supports_continuous_actions()) == (True, False)
    assert (batteries.supports_discrete_actions(), batteries.supports_continuous_actions()) == (False, True)
