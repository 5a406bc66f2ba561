"""What Minari's datasets hold is what agents saw, decided and earned; without delays that of the synchronous clock."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ends import Mixed, endings
from masked_worlds import lamps

from heron_env import (
    Answer,
    Continuous,
    FeatureProvider,
    FieldAgent,
    HeronEnv,
    ScheduleConfig,
    SystemAgent,
    Vector,
    make,
    quantity,
    rule,
)
from heron_env.adapters import record_decisions
from heron_env.errors import ConfigError, UnknownArgument

GRID = "heron/BatteryGrid-v0"
NOISE = {
    "variable_visibility": {"external": ["soc"], "internal": ["capacity"]},
    "matrix": [["battery_1", "battery_2", "external", 0.2], ["battery_2", "battery_1", "insider", 0.3]],
    "default": {"level": "unaware"},
}


def wavering(vector: Any) -> Any:
    """An action in [-1, 1] that differs with everything seen."""
    return np.array([np.sin(1e3 * float(vector.sum()))])


def choosing(vector: Any) -> int:
    """0 or 1, likewise."""
    return int(float(vector.sum()) * 1e3) % 2


def mixing(vector: Any) -> dict[str, Any]:
    """A number and a choice."""
    return {"c": wavering(vector), "d": choosing(vector)}


def pair() -> HeronEnv:
    """A continuous and a discrete agent."""
    return HeronEnv(SystemAgent("system_agent", *Mixed.pair()), max_steps=6)


class Height(FeatureProvider):
    """Where a walker stands, for all to see, and the height at which it ends."""

    visibility = ("public",)
    value: float = quantity(default=0.0, low=-9.0, high=9.0)
    end: float = quantity(default=9.0, low=-9.0, high=9.0, observed=False)


class Walker(FieldAgent):
    """Its action moves it at once; it ends at its height."""

    features = (Height,)
    action = Continuous(-1.0, 1.0)

    @staticmethod
    @rule(writes=Height.value)
    def apply_action(height: Height, action: Vector) -> float:
        return height.value + action[0]

    @staticmethod
    @rule
    def is_terminated(height: Height) -> bool:
        return height.value >= height.end


def climbing(vector: Any) -> Any:
    """By 0.5 and a bit."""
    return np.array([0.5 + 0.1 * np.sin(float(vector.sum()))])


def walkers() -> HeronEnv:
    """The first ends while the second walks on, before its eyes."""
    made = [Walker("walker_1", Height(end=1.0)), Walker("walker_2", Height(end=4.0))]
    return HeronEnv(SystemAgent("system_agent", *made), max_steps=7)


SLOW = {"*": ScheduleConfig(), "battery_2": ScheduleConfig(tick_interval=3.0, phase=1.0)}
WORLDS: list[tuple[Any, Any]] = [
    (lambda: make(GRID, num_batteries=3, max_steps=20, observability=NOISE), {"*": wavering}),
    (lambda: make(GRID, num_batteries=3, max_steps=20, schedule=SLOW), {"*": wavering}),
    (
        lambda: make(GRID, num_batteries=4, zone_size=2, control="zone", max_steps=9),
        {"*": lambda v: np.repeat(wavering(v), 2)},
    ),
    (lambda: make("heron/TrafficCorridor-v0", max_steps=30), {"*": choosing}),
    (lambda: endings((3, 5, 9), max_steps=7), {"*": wavering}),
    (lambda: endings((3, 3)), {"*": wavering}),
    (walkers, {"*": climbing}),
    (pair, {"mover_1": wavering, "chooser_1": choosing}),
    (lambda: lamps("dimmer", "dimmer"), {"*": mixing}),
]


def last_seen(env: HeronEnv, policies: dict[str, Any]) -> dict[str, Any]:
    """What each agent saw at last, in an episode of step()."""
    seen, _ = env.reset(seed=4)
    found = dict(seen)
    while env.agents:
        seen, *_ = env.step({a: policies.get(a, policies.get("*"))(seen[a].copy()) for a in env.agents})
        found |= seen
    return found


@pytest.mark.parametrize("number", range(len(WORLDS)))
def test_without_delays_it_is_the_episode_of_the_synchronous_clock(number: int):
    build, policies = WORLDS[number]
    sync, env = build(), build()
    result = sync.run_synchronous(policies, seed=4, record=("rewards", "actions", "observations"))
    parts = record_decisions(env, policies, seed=4)
    assert [part.agent for part in parts] == [agent for agent, seen in result.observations.items() if seen]
    final = last_seen(build(), policies)
    for part in parts:
        shown, rank = result.observations[part.agent], sync.hierarchy.index[part.agent]
        assert np.array_equal(part.observations[:-1], np.stack([vector for _, vector in shown]))
        assert np.array_equal(part.observations[-1], final[part.agent])
        assert np.array_equal(part.times[:-1], [time for time, _ in shown])
        policy, spec = policies.get(part.agent, policies.get("*")), sync.simulation.model.specs[rank]
        decided = np.stack([spec.parse(policy(vector), part.agent) for _, vector in shown])
        assert np.array_equal(part.actions, decided)  # as decided: a forbidden choice is not yet the no-op here
        if part.agent not in result.masked:
            assert np.array_equal(part.actions, np.stack([values for _, values in result.actions[part.agent]]))
        ends = [time for time, _ in result.rewards[part.agent]]
        assert part.times[-1] == ends[-1]
        for k, (since, until) in enumerate(zip(part.times, part.times[1:], strict=False)):
            between = [value for time, value in result.rewards[part.agent] if since < time <= until]
            assert part.rewards[k] == sum(between)
        assert (part.terminated, part.truncated) == (result.terminated[part.agent], result.truncated[part.agent])


def test_under_a_network_they_hold_what_the_agents_saw_when_they_decided():
    env, schedule = make(GRID, num_batteries=2, max_steps=30), ScheduleConfig(msg_delay=0.4, act_delay=4.3, loss=0.3)
    told: list[Any] = []

    def telling(vector: Any) -> Any:
        told.append((vector.copy(), wavering(vector)))
        vector[:] = 7.0  # a policy may work in place
        return told[-1][1]

    parts = record_decisions(env, {"*": telling}, seed=1, schedule=schedule)
    result = make(GRID, num_batteries=2, max_steps=30).run_event_driven({"*": wavering}, seed=1, schedule=schedule)
    assert sum(len(part.actions) for part in parts) == len(told) < 60, "nothing was lost"
    pairs = {(seen.tobytes(), float(action[0])) for seen, action in told}
    for part in parts:
        assert {
            (seen.tobytes(), action[0]) for seen, action in zip(part.observations, part.actions, strict=False)
        } <= pairs
        earned = [value for time, value in result.rewards[part.agent] if time > part.times[0]]
        assert np.isclose(part.rewards.sum(), sum(earned), rtol=1e-12)
        fallen = [values[0] for _, values in result.actions[part.agent]]
        assert part.actions[: len(fallen), 0].tolist() == fallen
        assert len(fallen) < len(part.actions), "an action under way at the end was decided all the same"
        assert (part.times[:-1] % 1.0 > 0.0).all()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where Minari keeps its datasets in this test."""
    pytest.importorskip("minari")
    pytest.importorskip("h5py")
    pytest.importorskip("PIL")
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path / "datasets"))
    return tmp_path / "datasets"


@pytest.mark.parametrize("number", range(len(WORLDS)))
@pytest.mark.parametrize("per", ["group", "agent"])
def test_what_is_read_is_what_was_recorded(folder: Path, number: int, per: str):
    import minari

    from heron_env.adapters import write_minari

    build, policies = WORLDS[number]
    env = build()
    written = write_minari(build(), policies, "tests/one", episodes=2, seed=3, per=per)
    parts = [(k, part) for k in range(2) for part in record_decisions(env, policies, seed=None if k else 3)]
    assert sum(dataset.total_episodes for dataset in written.values()) == len(parts)
    for whose, dataset in written.items():
        read = minari.load_dataset(dataset.spec.dataset_id)
        facts = read.storage.metadata["heron_env"]
        members = env.groups[whose] if per == "group" else [whose]
        assert facts["agents"] == members and facts["seed"] == 3
        those = [(k, part) for k, part in parts if part.agent in members]
        told = list(read.storage.get_episode_metadata(range(len(those))))
        for (k, part), episode, about in zip(those, read.iterate_episodes(), told, strict=True):
            assert about["options"] == {"agent": part.agent, "episode": k} and about["seed"] == 3
            assert episode.observations.dtype == np.float32
            assert np.array_equal(episode.observations, part.observations)
            actions = episode.actions
            if isinstance(actions, dict):
                actions = np.column_stack([actions["c"], actions["d"]])
            assert np.array_equal(actions.reshape(part.actions.shape), part.actions.astype(np.float32))
            assert np.array_equal(episode.rewards, part.rewards)
            assert np.array_equal(episode.infos["time"], part.times)
            assert episode.terminations.tolist() == [False] * (len(part.rewards) - 1) + [part.terminated]
            assert episode.truncations.tolist() == [False] * (len(part.rewards) - 1) + [part.truncated]
            assert read.observation_space == env.observation_space(part.agent)
            assert read.action_space == env.action_space(part.agent)
            assert all(read.observation_space.contains(seen) for seen in episode.observations)


def test_a_dataset_tells_how_it_came_to_be(folder: Path):
    from heron_env import __version__
    from heron_env.adapters import write_minari

    schedule = ScheduleConfig(msg_delay=0.2)
    (dataset,) = write_minari(
        GRID, {"*": wavering}, "grid/waves", seed=8, schedule=schedule, max_steps=5, about={"author": "A. Newton"}
    ).values()
    told = dataset.storage.metadata
    facts = told["heron_env"]
    assert (facts["env_id"], facts["options"], facts["version"]) == (GRID, {"max_steps": 5}, __version__)
    assert (facts["seed"], facts["policies"]) == (8, {"*": "wavering"})
    assert facts["schedule"]["*"]["msg_delay"] == 0.2
    assert facts["columns"] == make(GRID).observation_names("battery_1")
    assert told["author"] == {"A. Newton"} and told["algorithm_name"] == "*: wavering"
    assert dataset.spec.dataset_id == "grid/waves/battery-v0" and (folder / "grid/waves/battery-v0").is_dir()


def test_what_can_not_be_written_is_refused_before_anything_is(folder: Path):
    from heron_env.adapters import write_minari

    policies = {"*": wavering}
    with pytest.raises(ConfigError, match=r"name='a b'\): must be words of letters, digits, - and _"):
        write_minari(GRID, policies, "a b")
    with pytest.raises(ConfigError, match=r"per='agents'.*Did you mean 'agent'"):
        write_minari(GRID, policies, "aa", per="agents")
    with pytest.raises(ConfigError, match=r"write_minari\(episodes\)=0"):
        write_minari(GRID, policies, "aa", episodes=0)
    with pytest.raises(ConfigError, match=r"options \['max_steps'\] go with an id"):
        write_minari(make(GRID), policies, "aa", max_steps=3)
    with pytest.raises(ConfigError, match="give an environment, or a registered id"):
        write_minari(3, policies, "aa")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match=r"'autor': 'me'.*Did you mean 'author'"):
        write_minari(GRID, policies, "aa", about={"autor": "me"})
    with pytest.raises(UnknownArgument, match="num_baterries"):
        write_minari(GRID, policies, "aa", num_baterries=3)
    with pytest.raises(ConfigError, match="run_event_driven"):
        write_minari(GRID, policies, "aa", max_steps=None)
    assert not list(folder.rglob("*"))
    write_minari(GRID, policies, "aa", max_steps=3)
    kept = {path: path.stat().st_mtime_ns for path in folder.rglob("*")}
    with pytest.raises(ConfigError, match=r"there is a dataset at .*choose another name or version=..., or remove it"):
        write_minari(GRID, policies, "aa", max_steps=3)
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*")} == kept
    assert "battery" in write_minari(GRID, policies, "aa", max_steps=3, version=1)


def test_policies_that_are_asked_are_refused():
    class Asked:
        def answer(self, asked: Any) -> Answer:
            return Answer(0.0)

    with pytest.raises(ConfigError, match=r"policy of 'battery_1' is asked by answer\(\)"):
        record_decisions(make(GRID), {"*": Asked()})


@pytest.mark.parametrize("library", ["minari", "h5py", "PIL"])
def test_without_what_it_needs_the_extra_is_named(library: str, monkeypatch: pytest.MonkeyPatch):
    from heron_env.adapters import write_minari

    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(ConfigError, match=r": pip install 'minari\[hdf5\]' pillow"):
        write_minari(GRID, {"*": wavering}, "aa")
