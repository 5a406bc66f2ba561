"""T17: what agents are shown has happened. `heron check` finds by trial what tells of the coming step, and no more."""

from typing import Any

import foretelling_envs
import numpy as np
import pytest

from heron_env import make
from heron_env.testing import Status, check_env, foresight
from heron_env.worlds.energy_management import Battery, EnergyManagementEnv


def told(target: Any, steps: int = 24, **options: Any) -> list[str]:
    """What the check warns of."""
    target = f"foretelling_envs:{target}" if isinstance(target, str) and "/" not in target else target
    report = check_env(target, only=["foresight"], steps=steps, options=options)
    assert report.of(Status.FAILED) == report.of(Status.SKIPPED) == ()
    return [found.what for found in report.of(Status.WARNING)]


BY_ITSELF = "agents see unit_1.Meter.load and 1 more ahead of time: finish writes it ahead (at 36 boundaries), and "
COPY = "agents see unit_1.Gauge.value and 1 more ahead of time: at 36 boundaries it equals "
FOUND = {
    "Planted": BY_ITSELF, "PlantedByHand": BY_ITSELF, "PlantedByRule": BY_ITSELF, "PlantedPhysics": BY_ITSELF,
    "PlantedReward": BY_ITSELF, "PlantedLimit": BY_ITSELF,
    "CopiesTheHidden": f"{COPY}unit_1.Demand.whole, on which the coming step depends, not the past one",
    "CopiesABin": f"{COPY}unit_1.Demand.bins[3], on which",
    "ShowsTheMean": f"{COPY}the mean of unit_1.Demand.bins over the coming step, on which",
    "CoinCopied": "agents see unit_1.Gauge.value and 1 more ahead of time: at ",
    "declared": "agents see global.Globals.weather ahead of time: finish writes it ahead",
}  # fmt: skip
HONEST = (
    "Shown", "ShowsThePast", "ShowsThePastMean", "ShowsTheLastBin", "Slow", "Coin", "Idle", "PlantedUnread",
    "PlantedOnce", "PlantedRarely", "Walks", "ShowsTheSumToCome",
)  # fmt: skip


@pytest.mark.parametrize(("name", "words"), FOUND.items(), ids=list(FOUND))
def test_what_shows_the_coming_step_is_found(name: str, words: str):
    (what,) = told(name)
    assert what.startswith(words)


@pytest.mark.parametrize("name", HONEST)
def test_what_shows_the_past_is_not_nor_what_nothing_reads_or_only_begin_writes(name: str):
    assert told(name) == []


def test_what_is_marked_as_known_ahead_is_not_found():
    for name in ("CopiesTheHidden", "CopiesABin", "ShowsTheMean", "CoinCopied"):
        assert told(name, foreknown=True) == []
    for name in ("Planted", "PlantedByHand", "PlantedByRule", "PlantedPhysics", "PlantedReward", "PlantedLimit"):
        assert told(name, meter=foretelling_envs.PublishedMeter) == []
        assert told(name, meter=foretelling_envs.HiddenMeter) == [], "hidden is a remedy, too"
    assert told("declared", foreknown=True) == []


def test_a_warning_names_three_remedies_and_strict_makes_it_a_failure():
    (warning,) = check_env("foretelling_envs:Planted", only=["foresight"]).of(Status.WARNING)
    for remedy in ("show the past", "quantity(observed=False)", "quantity(foreknown=True)", "`foreknown: true`"):
        assert remedy in warning.mend
    report = check_env("foretelling_envs:Planted", only=["foresight"], strict=True)
    assert not report.ok
    assert [f.what for f in report.of(Status.FAILED)] == [warning.what]


def test_what_it_can_not_find_it_says():
    (finding,) = check_env("foretelling_envs:ShowsTheSumToCome", only=["foresight"]).findings
    assert finding.status is Status.PASSED
    assert "3 times 12 steps; neither sums nor scaled copies of what is to come would be found" in finding.what
    assert "nor what stood still there" in finding.what


def test_short_episodes_and_few_steps_are_enough():
    for env in (foretelling_envs.Planted(max_steps=3), foretelling_envs.Planted(max_steps=2)):
        (what,) = told(env, steps=2)
        assert "at 24 boundaries" in what, "three times eight"


ENERGY, WHOLE_DAY = "heron/EnergyManagement-v1", {"dt": 3600.0, "physics_substeps": 1}


@pytest.mark.parametrize("name", [ENERGY, "heron/Economy-v0"])  # test_check.py asks the others
def test_our_environments_show_the_past(name: str):
    assert told(name) == []


RADIAL = pytest.param({"network": "radial"}, marks=pytest.mark.e2e)


@pytest.mark.parametrize("options", [WHOLE_DAY, {"dt": 3600.0}, {"control": "zone"}, RADIAL], ids=str)
def test_so_do_the_homes_at_any_step_and_behind_a_network(options: dict[str, Any]):
    assert told(ENERGY, steps=48, **options) == []


def test_meters_that_show_the_coming_step_are_found_where_homes_have_them():
    found = told(ENERGY, steps=48, metering="coming", **WHOLE_DAY)
    assert [what.partition(" ahead")[0].partition(".")[2] for what in found] == [
        "Meter.load and 3 more", "Meter.pv and 3 more",
    ]  # fmt: skip
    assert ".HomeSeries.load[0], on which the coming step depends" in found[0]


def test_so_is_the_mean_over_the_bins_of_the_coming_minute(monkeypatch: pytest.MonkeyPatch):
    plain = EnergyManagementEnv.finish

    def foreseeing(self: Any, world: Any) -> None:
        plain(self, world)
        homes = world[Battery]
        homes.Meter.load[...] = homes.HomeSeries.load.mean(axis=-1)

    monkeypatch.setattr(EnergyManagementEnv, "finish", foreseeing)
    (what,) = told(ENERGY, steps=48)
    assert ".Meter.load" in what
    assert ".HomeSeries.load over the coming step, on which the coming step depends" in what


def test_what_ours_publish_would_be_found_without_its_mark(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(foresight, "unmarked_columns", shown)
    economy = {what.split(" ")[2] for what in told("heron/Economy-v0")}
    assert economy == {
        "country_1.Variables.secret_reserves", "global.Globals.interest_rate", "global.Globals.inflation",
    }  # fmt: skip
    energy = {what.split(" ")[2] for what in told(ENERGY, steps=48, **WHOLE_DAY)}
    assert "global.Tariff.price" in energy
    assert not {"global.Clock.hour_sin", "zone_1.Zone.excess_rest"} & energy, "no step depends on them"


def shown(env: Any) -> Any:
    """The observed columns, marks or not."""
    return np.unique(np.concatenate([view.columns for view in env.simulation.plan.views]))


def nothing(values: Any, past: Any) -> Any:
    return np.zeros(values.shape, dtype=bool)


MUTANTS: dict[str, tuple[Any, str, Any, str]] = {
    "the past explains nothing": (foresight, "explained_by_the_past", nothing, "ShowsTheLastBin"),
    "what stands still counts": (foresight, "_changed", lambda course, asked: course[1:, asked] < 99.0, "Idle"),
    "once is often": (foresight, "OFTEN", 1, "PlantedRarely"),
    "chance is no matter": (foresight, "is_no_chance", lambda *a, **k: True, "Coin"),
    "whatever is written is used": (
        foresight.Boundaries, "on_which_depends", lambda self, wanted, *a: set(wanted), "PlantedUnread",
    ),
    "nobody watches the substeps": (foresight.Boundaries, "_note", lambda self: None, "Walks"),
    "marks do not count": (foresight, "unmarked_columns", shown, "Marked"),
    "begin counts, too": (
        foresight, "written_ahead", lambda b: np.flatnonzero(~b.moved), "PlantedOnce",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("place", "name", "fault", "env"), MUTANTS.values(), ids=list(MUTANTS))
def test_a_fault_of_the_check_would_be_caught_by_a_false_alarm(
    place: Any, name: str, fault: Any, env: str, monkeypatch: pytest.MonkeyPatch
):
    options = {"meter": foretelling_envs.PublishedMeter} if env == "Marked" else {}
    env = "Planted" if env == "Marked" else env
    assert told(env, **options) == []
    monkeypatch.setattr(place, name, fault)
    assert told(env, **options) != []


def test_a_check_that_looks_at_values_alone_misses_the_mean(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(foresight, "_with_mean", lambda values: values)
    assert told("ShowsTheMean") == []


def test_a_trial_changes_nothing_but_itself():
    """What is recorded with trials in between is what is recorded without."""
    env = foretelling_envs.Planted(compile=False)
    watched = foresight.Boundaries(env)
    watched.record(0, 8)
    meter = np.flatnonzero([name.endswith("Meter.load") for name in env.state_names])
    asked = {"load": meter, "nothing": meter[:0]}
    assert watched.on_which_depends(asked, 0, 8) == {"load"}
    written = watched.written.copy()
    watched.record(0, 8)
    assert np.array_equal(watched.courses[0], watched.courses[1])
    assert np.array_equal(watched.written, 2 * written)


def test_checking_puts_everything_back():
    env = make(ENERGY, metering="coming", **WHOLE_DAY)
    env.reset(seed=3)
    before = env.get_state()["truth"].tobytes()
    assert told(env) != []
    assert env.get_state()["truth"].tobytes() == before
    assert "run_hook" not in vars(env)
