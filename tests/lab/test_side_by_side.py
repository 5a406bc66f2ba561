"""Cases of a sweep that run as lanes of the compiled event clock yield what they yield one by one, to the last bit."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from laws.checks_event_batch import Player
from laws.examples import SILENT, TALK
from laws.test_event_batch import worlds
from strategies import Recipe

from heron_env import ScheduleConfig, make
from heron_env.lab import SYNC, Condition, Sweep, team_return
from heron_env.lab.episodes import course, lane_outcome, outcome
from heron_env.lab.sweep import play
from heron_env.lab.sweep.play import Worlds, bundles, in_step, noted_lanes, play_bundle, play_one, ticks_in_step
from heron_env.lab.sweep.records import RECORD

pytestmark = pytest.mark.e2e

ROUGH = Condition(msg_delay=40.0, act_delay=20.0, jitter=0.5, loss=0.2)
NOISY = Condition(obs_delay=5.0, noise=0.1)
WORLDS: dict[str, tuple[dict[str, Any], list[str], Any]] = {
    "heron/EnergyManagement-v1": ({"dt": 900.0, "physics_substeps": 9}, ["tariff", "do nothing"], ROUGH),
    "heron/BatteryGrid-v0": ({"max_steps": 30}, ["do nothing", "random"], NOISY),
    "heron/TrafficCorridor-v0": ({"max_steps": 20}, ["do nothing", "random"], NOISY),
}


def told(record: Any) -> str:
    """All of a record but how long it took."""
    return repr(replace(record, seconds=0.0))


@pytest.mark.parametrize("name", WORLDS)
def test_a_bundle_is_its_episodes(name: str) -> None:
    options, policies, condition = WORLDS[name]
    sweep = Sweep.of(name, {p: p for p in policies}, [condition], cases=3, options={**options, "compile": True})
    are_their_episodes([item for item in sweep.items() if item.condition != SYNC and item.name in policies])


def are_their_episodes(items: list[Any]) -> None:
    """Bundles of three, with the records of the episodes one by one, each in an environment of its own or in one."""
    worlds = Worlds()
    found = bundles(items, 1, worlds)
    assert {len(bundle) for bundle in found} == {3}
    alone = [[told(play_one(item, Worlds())) for item in bundle] for bundle in found]
    for _ in range(2):  # in environments that have played already, too
        assert [[*map(told, play_bundle(bundle, worlds))] for bundle in found] == alone
        assert [[told(play_one(item, worlds)) for item in bundle] for bundle in found] == alone


@pytest.mark.parametrize("name", WORLDS)
def test_the_synchronous_condition_is_lanes_at_zero_delay(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where ticks are slow, wavering in the event clock, and links are what a sweep's network is not."""
    options, policies, _ = WORLDS[name]
    dt = options.get("dt", make(name).dt)
    own = ScheduleConfig(
        tick_interval=2 * dt, phase=dt, tick_jitter_ratio=0.3, jitter_type="uniform", jitter_ratio=0.1,
        min_delay=0.1, loss=0.2,
    )  # fmt: skip
    options = {**options, "compile": True, "schedule": own}
    sweep = Sweep.of(name, {p: p for p in policies}, [SYNC], cases=3, options=options)
    items = [item for item in sweep.items() if item.name in policies]
    assert all(len(bundle) == 1 for bundle in bundles(items, 1, Worlds())), "few are done before lanes are compiled"
    monkeypatch.setattr(play, "LEAST", 3)
    are_their_episodes(items)


@given(worlds(), st.sampled_from([1, 2, 3]), st.sampled_from([0, 1, 2]), st.sampled_from([None, "local", "proxy"]))
@example(TALK, 1, 0, None)
@example(SILENT, 2, 1, "local")
def test_lanes_in_step_are_the_synchronous_clock(recipe: Recipe, tick: int, phase: int, own: Any) -> None:
    """In random hierarchies, with commands, ends in mid-episode, neighbours that talk, noise and telemetry."""
    env = recipe.build(ScheduleConfig(tick_interval=tick * recipe.dt, phase=phase * recipe.dt, own_rows=own, loss=0.5))
    assert ticks_in_step(env)
    player = Player(env, 2, in_step(env), seed=4, autoreset="disabled", record=RECORD)
    rows = player.batch.begin()
    while len(actions := player.actions(rows)):
        rows = player.batch.answer(actions)
    alone = {env.hierarchy.ids[rank]: policy for rank, policy in player.policies.items()}
    for seed, lane in enumerate(noted_lanes(player.batch), start=4):
        mine, result = lane_outcome(env, lane), env.run_synchronous(alone, seed=seed, record=RECORD)
        assert (mine.course, mine.value, mine.notes) == (course(result), team_return(env, result), [])


def test_what_can_not_run_side_by_side_runs_alone() -> None:
    corridor = Sweep.of(
        "heron/TrafficCorridor-v0", {"f": "fixed cycle"}, [NOISY], cases=2, options={"max_steps": 20, "compile": True}
    )
    alone = [bundle for bundle in bundles(corridor.items(), 1, Worlds()) if bundle[0].name == "f"]
    assert len(alone) == 4 and all(len(bundle) == 1 for bundle in alone), "a function has no forward_batch"
    plain = tariff(compile=False)
    assert all(len(bundle) == 1 for bundle in bundles(plain.items(), 1, Worlds())), "plain Python is not compiled"


def tariff(**options: Any) -> Sweep:
    """Two days of the rule that follows the tariff."""
    options = {"dt": 900.0, "physics_substeps": 9, "compile": True, **options}
    return Sweep.of("heron/EnergyManagement-v1", {"t": "tariff"}, [ROUGH], cases=2, options=options)


def test_what_fails_side_by_side_is_raised_with_its_episodes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is played again one by one, and the environment in which it failed is not used again."""
    sweep, worlds = tariff(), Worlds()

    def fails(self: Any, vectors: Any) -> Any:
        raise ValueError("no idea")

    kind = type(next(iter(sweep.policies["t"].build(sweep.env.make(**sweep.options), 0).values())))
    bundle = next(b for b in bundles(sweep.items(), 1, worlds) if len(b) == 2)
    with monkeypatch.context() as patch, pytest.raises(ValueError, match="no idea") as caught:
        patch.setattr(kind, "forward_batch", fails)
        play_bundle(bundle, worlds)
    (note,) = caught.value.__notes__
    assert note.startswith("while running policy 't' in heron/EnergyManagement-v1, case 0")
    assert note.endswith(", and 1 more cases side by side")
    assert [*map(told, play_bundle(bundle, worlds))] == [told(play_one(item, Worlds())) for item in bundle]


@pytest.mark.parametrize("recipe", [TALK, SILENT], ids=["with hooks", "without"])
def test_an_outcome_of_whole_arrays_is_that_of_the_result(recipe: Recipe) -> None:
    """Also where agents end one after another, are commanded, or see and do unequally much."""
    env, schedule = (
        recipe.build(),
        ScheduleConfig(msg_delay=0.3, jitter_type="uniform", jitter_ratio=0.5, loss=0.1),
    )
    player = Player(env, 3, schedule, seed=4, autoreset="disabled", record=(*RECORD, "ages", "kpis"))
    rows = player.batch.begin()
    while len(actions := player.actions(rows)):
        rows = player.batch.answer(actions)
    told = [repr(lane_outcome(env, lane)) for lane in noted_lanes(player.batch)]
    assert told == [repr(outcome(env, result)) for result in player.batch.results()]
    assert len(set(told)) == 3
    alone = {env.hierarchy.ids[rank]: policy for rank, policy in player.policies.items()}
    assert told[1] == repr(outcome(env, env.run_event_driven(alone, seed=5, schedule=schedule, record=RECORD)))
