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
    "Planted": BY_ITSELF, "PlantedByRule": BY_ITSELF, "PlantedPhysics": BY_ITSELF,
    "PlantedReward": BY_ITSELF, "PlantedLimit": BY_ITSELF,
    "CopiesTheHidden": f"{COPY}unit_1.Demand.whole, on which the coming step depends, not the past one",
    "ShowsTheMean": f"{COPY}the mean of unit_1.Demand.bins over the coming step, on which",
    "declared": "agents see global.Globals.weather ahead of time: finish writes it ahead",
}  # fmt: skip
HONEST = (
    "Shown", "ShowsThePast", "ShowsThePastMean", "ShowsTheLastBin", "Coin", "Idle", "PlantedUnread",
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
    for name in ("CopiesTheHidden", "ShowsTheMean"):
        assert told(name, foreknown=True) == []
    for name in ("Planted", "PlantedByRule", "PlantedPhysics", "PlantedReward", "PlantedLimit"):
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
    return np.unique(np.concatenate([view.columns for view in env.simulation.model.plan.views]))


def test_checking_puts_everything_back():
    env = make(ENERGY, metering="coming", **WHOLE_DAY)
    env.reset(seed=3)
    before = env.get_state()["truth"].tobytes()
    assert told(env) != []
    assert env.get_state()["truth"].tobytes() == before
    assert "run_hook" not in vars(env)
