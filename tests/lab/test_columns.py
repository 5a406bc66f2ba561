"""What was made with other columns is refused with their names, whatever it is, also where there are as many now."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from endpoint_kit import fast, serving
from training_kit import tiny, trained

from heron_env import (
    Continuous,
    FeatureProvider,
    FieldAgent,
    HeronEnv,
    SystemAgent,
    Vector,
    load_policy,
    make,
    quantity,
    register,
    rule,
)
from heron_env.errors import ConfigError, FixtureError, HeronError, RunFolderError, TraceError, changed_names
from heron_env.injection import ExternalPolicy, Recorded, Recording
from heron_env.lab import export_onnx, record_episode
from heron_env.lab.policies import policy_spec
from heron_env.lab.sweep.study import require_fit
from heron_env.lab.traces import file
from heron_env.lab.traces.replaying import film_again, replay

ENV = "columns/Pump-v0"
BEFORE = {"Order": ("owner", "upper_level"), "Panel": ("upper_level",)}
HIDDEN = BEFORE | {"Order": ("upper_level",)}
SWAPPED = {"Order": ("upper_level",), "Panel": ("owner", "upper_level")}
CHANGES = [
    (HIDDEN, r"no longer 'Order\.up' \(agents see of their own what is tagged 'owner' or 'public'; tag 'Order\.up' "),
    (SWAPPED, r"no longer 'Order\.up', and now 'Panel\.lamp' \(agents see .*; tag 'Order\.up' 'owner', too\)"),
]
"""With fewer columns, and with as many."""
tags = dict(BEFORE)


def pump(max_steps: int = 4) -> HeronEnv:
    """A world whose author changes the tags."""

    class Tank(FeatureProvider):
        level: float = quantity(default=0.5, low=0.0, high=1.0)

    class Order(FeatureProvider):
        visibility = tags["Order"]
        up: float = quantity(default=0.3, low=0.0, high=1.0)

    class Panel(FeatureProvider):
        visibility = tags["Panel"]
        lamp: float = quantity(default=0.7, low=0.0, high=1.0)

    class Pump(FieldAgent):
        features = (Tank, Order, Panel)
        action = Continuous(-1.0, 1.0)

        @staticmethod
        @rule(writes=Tank.level)
        def apply_action(tank: Tank, action: Vector) -> float:
            return tank.level + 0.1 * action[0]

        @staticmethod
        @rule
        def compute_local_reward(tank: Tank) -> float:
            return -abs(tank.level)

    Pump.apply_action.__annotations__ |= {"tank": Tank, "action": Vector}
    Pump.compute_local_reward.__annotations__ |= {"tank": Tank}
    return HeronEnv(SystemAgent("top", Pump("pump_1"), Pump("pump_2")), max_steps=max_steps, compile=False)


register(ENV, pump)


@pytest.fixture(autouse=True)
def restored_tags() -> Iterator[None]:
    yield
    tags.update(BEFORE)


@pytest.fixture
def run(tmp_path: Path) -> Any:
    return trained(tmp_path / "run", ENV, hyperparameters=tiny(), validations=0, validation_episodes=0)


@pytest.mark.parametrize(("change", "names"), CHANGES)
def test_a_run_folder_and_a_checkpoint_of_other_columns_are_refused(run: Any, tmp_path: Path, change: Any, names: str):
    kept = run.save(tmp_path / "kept.safetensors")
    assert load_policy(kept).keys() == load_policy(run.path).keys() == {"pump"}
    tags.update(change)
    for path in (run.path, kept):
        with pytest.raises(RunFolderError, match=f"group 'pump' was trained on observations .*: {names}"):
            load_policy(path)
        with pytest.raises(HeronError, match=names):
            require_fit(pump(), "it", policy_spec(str(path)))
    with pytest.raises(ConfigError, match=names):
        export_onnx(run.path, tmp_path / "policy.onnx")
    with pytest.raises(ConfigError, match=names):
        trained(tmp_path / "more", ENV, start_from=run.path, validations=0, validation_episodes=0)


def test_a_loaded_policy_that_gets_another_width_says_what_it_was_trained_on(run: Any):
    policies = load_policy(run.path)
    tags.update(HIDDEN)
    with pytest.raises(
        ConfigError, match=r"on observations of 2 columns \('Tank\.level', 'Order\.up'\) and got \(1,\)"
    ):
        pump().run_synchronous(policies, seed=0)


@pytest.mark.parametrize(("change", "names"), CHANGES)
def test_an_exported_model_of_other_columns_is_refused(run: Any, tmp_path: Path, change: Any, names: str):
    pytest.importorskip("onnxruntime")
    (file,) = export_onnx(run.path, tmp_path / "policy.onnx")
    policy_spec(str(file)).build(pump(), 0)
    tags.update(change)
    with pytest.raises(ConfigError, match=f"for 'pump_1'.*it was exported for other columns: {names}"):
        policy_spec(str(file)).build(pump(), 0)


def test_a_saved_model_of_another_width_is_refused_with_the_names_of_what_is_observed_now(tmp_path: Path):
    sb3, envs = pytest.importorskip("stable_baselines3"), pytest.importorskip("stable_baselines3.common.envs")
    file = str(tmp_path / "model.zip")
    sb3.PPO("MlpPolicy", envs.IdentityEnvBox(), n_steps=8, batch_size=8, seed=0).save(file)
    with pytest.raises(ConfigError, match=r"who observes Box\(.*\) \('Tank\.level', 'Order\.up'\) and does Box"):
        policy_spec(file).build(pump(), 0)


@pytest.mark.parametrize(("change", "names"), CHANGES)
def test_a_trace_of_other_columns_is_refused(tmp_path: Path, change: Any, names: str):
    episode = record_episode(ENV, "random", seed=1)
    assert replay(episode).identical
    tags.update(change)
    with pytest.raises(TraceError, match=f"'pump_1' observes other columns: {names}"):
        replay(episode)
    file.write(episode, tmp_path / "kept.json")
    for again in (lambda: replay(episode, any_version=True), lambda: film_again(tmp_path / "kept.json")):
        with pytest.raises(TraceError, match=names):
            again()


@pytest.mark.parametrize(
    ("change", "names"), [(HIDDEN, "no longer 'Order.up'"), (SWAPPED, "no longer 'Order.up', and now 'Panel.lamp'")]
)
def test_recorded_answers_of_other_columns_are_refused(tmp_path: Path, change: Any, names: str):
    path = tmp_path / "run.jsonl"
    env = make(ENV)
    with (
        serving(lambda body: {"action": [0.25]}) as endpoint,
        Recording(ExternalPolicy(fast(endpoint.url), env=env), path) as recording,
    ):
        env.run_synchronous({"*": recording}, seed=2)
    make(ENV).run_synchronous({"*": Recorded(path)}, seed=2)
    tags.update(change)
    with pytest.raises(
        FixtureError, match=f"'pump_1', decision 0 .* is asked something else: about other columns: {names}"
    ):
        make(ENV).run_synchronous({"*": Recorded(path)}, seed=2)


def test_names_that_differ_are_listed():
    for before, now, text in [
        ("abc", "abc", ""), ("abc", "ac", "no longer 'b'"), ("ac", "abc", "and now 'b'"),
        ("abc", "adc", "no longer 'b', and now 'd'"), ("abc", "acb", "in another order"),
        ("abcdefghijklmno", "", "no longer 'a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i', 'j', 'k', 'l' and 3 more"),
    ]:  # fmt: skip
        assert changed_names(before, now) == text
