"""The days of lanes in compiled code: equal to plain numpy, the same in any order, on any grid, for any lanes."""

import hashlib
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heron_env.worlds.energy_management.agents import Constants
from heron_env.worlds.energy_management.calendar import TimeOfUse
from heron_env.worlds.energy_management.days import Days
from heron_env.worlds.energy_management.site import Profiles, Site, draw_neighbourhood, load_profiles
from tests.worlds.energy_day_oracle import Oracle

pytestmark = pytest.mark.e2e

GRIDS = [
    (60.0, 10.0),
    (900.0, 900.0),
    (300.0, 15.0),
    (48.0, 12.0),
    (3600.0, 1800.0),
    (14_400.0, 14_400.0),
    (7200.0, 20.0),
]


def site_of(batteries=6, zone_size=3, passive=3, **options):
    homes = draw_neighbourhood(0, batteries, zone_size, passive)
    limits = tuple(1.8 * homes.connected(zone) for zone in range(homes.zones))
    return Site(homes, options.pop("profiles", load_profiles()), TimeOfUse(), limits, **options)


@pytest.fixture(scope="module")
def site():
    return site_of()


def days_of(site, dt, bin_length, **constants):
    return Days(site, Constants(**constants), dt=dt, bins=round(dt / bin_length))


def begun(days, *lanes):
    """Begin lanes 0, 1, ... with (day, seed, episode)."""
    day, seed, episode = (np.array(column) for column in zip(*lanes, strict=True))
    days.begin(np.arange(len(lanes)), seed.astype(np.uint64), episode, day)
    return days


def row(days, lane, step):
    return days.at(lane, step)


def every(days, lane=0):
    return np.array([row(days, lane, step) for step in range(days.steps + 1)])


def powers(days, rows, name):
    """`[bins of the day, owners]`."""
    part = rows[:-1, days.parts[name]]
    return part.reshape(days.steps, -1, days.bins).transpose(0, 2, 1).reshape(days.steps * days.bins, -1)


@pytest.mark.parametrize(("dt", "bin_length"), GRIDS)
@pytest.mark.parametrize(("day", "seed", "episode"), [(172, 5, 0), (364, 2_000_000_364, 3), (86, 2**63 + 11, 1)])
def test_a_day_is_what_plain_numpy_makes_of_its_draws(site, dt, bin_length, day, seed, episode):
    days = begun(days_of(site, dt, bin_length), (day, seed, episode))
    rows = every(days)
    expected = Oracle(site, Constants(), dt, bin_length, day=day, seed=seed, episode=episode).rows()
    assert list(days.parts) == sorted(expected, key=[*days.parts].index)
    for name, part in days.parts.items():
        told = expected[name]
        if told.ndim == 3:
            told = told.transpose(0, 2, 1)
        assert np.abs(rows[:, part] - told.reshape(len(rows), -1)).max() < 1e-9, name


@pytest.mark.parametrize("options", [{"batteries": 7, "passive": 0}, {"batteries": 2, "zone_size": 1, "passive": 5}])
def test_so_it_is_for_other_neighbourhoods(options):
    site = site_of(**options)
    rows = every(days := begun(days_of(site, 600.0, 100.0, mean_time=300.0), (200, 3, 0)))
    expected = Oracle(site, Constants(mean_time=300.0), 600.0, 100.0, day=200, seed=3, episode=0).rows()
    for name, part in days.parts.items():
        told = expected[name] if expected[name].ndim == 2 else expected[name].transpose(0, 2, 1)
        assert np.allclose(rows[:, part], told.reshape(len(rows), -1), rtol=0.0, atol=1e-9), name


def test_every_home_keeps_its_energy_of_every_day(site):
    homes, days = site.neighbourhood, days_of(site, 900.0, 900.0)
    begun(days, *((day, day, 0) for day in range(365)))
    lanes = np.arange(365)
    rows = np.array([days.at(lanes, np.full(365, k)).copy() for k in range(96)])
    for name, base in (("load", 0), ("pv", 1)):
        energy = rows[:, :, days.parts[name]].sum(axis=0) * 0.25
        expected = np.array([site.base(day)[base][:6].sum(axis=-1) * 0.25 for day in range(365)])
        assert np.allclose(energy, expected, rtol=1e-12, atol=1e-12)
    background = rows[:, :, days.parts["background"]].sum(axis=0) * 0.25
    for day in (0, 100, 200):
        load, pv, business = site.base(day)
        net = homes.membership[:, 6:] @ (load - pv)[6:] + business
        assert np.allclose(background[day], net.sum(axis=-1) * 0.25, rtol=1e-12)


@pytest.mark.parametrize(("dt", "bin_length"), GRIDS[1:])
def test_a_coarse_world_is_the_mean_of_the_fine_one(site, dt, bin_length):
    fine = begun(days_of(site, 60.0, 1.0), (120, 8, 2))
    coarse = begun(days_of(site, dt, bin_length), (120, 8, 2))
    fine_rows, coarse_rows = every(fine), every(coarse)
    for name in ("load", "pv", "background"):
        seconds = powers(fine, fine_rows, name)
        means = seconds.reshape(-1, round(bin_length), seconds.shape[1]).mean(axis=1)
        assert np.abs(powers(coarse, coarse_rows, name) - means).max() < 1e-9
    every_so_often = round(dt) // 60
    if dt % 60.0 == 0.0:
        for name in ("surplus_rest", "deficit_12h", "net_3h", "excess_rest", "tariff"):
            part = fine.parts[name]
            ours = coarse_rows[:-1, coarse.parts[name]]
            assert np.allclose(fine_rows[:-1:every_so_often, part], ours, rtol=0.0, atol=1e-9)


@settings(max_examples=30, deadline=None)
@given(steps=st.lists(st.integers(0, 100), min_size=1, max_size=12))
def test_any_order_of_asking_gives_the_same_bits(steps):
    site = site_of()
    days = begun(days_of(site, 900.0, 300.0), (150, 7, 0))
    ahead = every(days)
    fresh = begun(days_of(site, 900.0, 300.0), (150, 7, 0))
    for step in steps:
        assert np.array_equal(row(fresh, 0, step), ahead[min(step, 96)])
        assert np.array_equal(row(days, 0, step), ahead[min(step, 96)])


def test_each_lane_is_the_day_of_its_own_keys(site):
    lanes = [(3, 11, 0), (3, 12, 0), (3, 11, 1), (250, 11, 0)]
    together = begun(days_of(site, 3600.0, 900.0), *lanes)
    kept = every(together, 2)
    for lane, keys in enumerate(lanes):
        alone = begun(days_of(site, 3600.0, 900.0), keys)
        assert np.array_equal(every(together, lane), every(alone))
    assert together.days.tolist() == [3, 3, 3, 250]
    together.begin(np.array([1]), np.array([5]), np.array([0]), np.array([80]))
    assert np.array_equal(every(together, 2), kept), "what begins elsewhere leaves a lane alone"
    together.reserve(40)
    assert np.array_equal(every(together, 2), kept), "and so does room for others"
    assert together.days.tolist()[:5] == [3, 80, 3, 250, -1]


def test_other_draws_and_other_days_are_other_worlds(site):
    days = begun(days_of(site, 900.0, 900.0), (150, 7, 0), (150, 8, 0), (150, 7, 1), (151, 7, 0))
    rows = [every(days, lane) for lane in range(4)]
    for other in rows[1:]:
        for name in ("load", "pv", "background", "net_12h"):
            assert not np.allclose(rows[0][:, days.parts[name]], other[:, days.parts[name]])


def test_before_midnight_there_is_the_base_series_last_quarter_hour(site):
    homes, days = site.neighbourhood, days_of(site, 900.0, 900.0)
    before = days.site.before(np.array([0, 200]))
    for place, day in enumerate((364, 199)):
        load, pv, business = (power[:, -1] for power in site.base(day))
        assert np.allclose(before.load[place], load[:6], rtol=1e-12)
        assert np.allclose(before.pv[place], pv[:6], rtol=1e-12)
        passive = homes.membership[:, 6:] @ (load - pv)[6:] + business
        assert np.allclose(before.background[place], passive, rtol=1e-12)
        assert np.allclose(before.power[place], homes.membership @ (load - pv) + business, rtol=1e-12)
    assert np.array_equal(site.before(200).power, before.power[1])


def test_series_are_the_rows_of_a_lane_by_name(site):
    days = begun(days_of(site, 300.0, 60.0), (40, 1, 0), (41, 1, 0))
    midday, rows = days.at(1, 144), every(days, 1)
    series = days.series(1)
    assert (series.steps, series.bins) == (288, 5)
    for name in ("load", "pv", "background"):
        assert np.array_equal(getattr(series, name), powers(days, rows, name))
    for name in ("surplus_rest", "net_6h", "excess_rest", "tariff", "clock"):
        assert np.array_equal(getattr(series, name), rows[:-1, days.parts[name]])
    assert np.array_equal(days.at(1, 144), midday)


@pytest.mark.parametrize(("dt", "bin_length"), GRIDS)
def test_a_lane_takes_at_most_64_kilobytes_at_any_step(site, dt, bin_length):
    days = days_of(site, dt, bin_length)
    days.reserve(100)
    assert days.nbytes <= 100 * max(64_000, 42_000 + 8 * days.width), "or what one row takes"


def test_another_process_tells_the_same(site):
    program = (
        "from tests.worlds.test_energy_days import *\n"
        "days = begun(days_of(site_of(), 900.0, 300.0), (150, 7, 0))\n"
        "print(hashlib.sha256(every(days).tobytes()).hexdigest())"
    )
    days = begun(days_of(site, 900.0, 300.0), (150, 7, 0))
    told = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert told.strip() == hashlib.sha256(every(days).tobytes()).hexdigest()


def flat(household=1.0, roof=0.0, clear=0.0):
    """Profiles that are the same at every hour of the year, as kW per MWh/a and per kWp."""
    quarters = np.full((365, 96), household)
    roofs = np.full((3, 365, 96), roof)
    profiles = Profiles(quarters, quarters, roofs)
    profiles.__dict__["clear_sky"] = np.full((3, 365, 96), clear)
    return profiles


def bins_of(profiles, seed=1, *, day=150, **options):
    """The powers of a day in bins of 10 s."""
    site = site_of(profiles=profiles, **options)
    days = begun(days_of(site, 60.0, 10.0), (day, seed, 0))
    rows = every(days)
    return site, {name: powers(days, rows, name) for name in ("load", "pv", "background")}


def test_clouds_shade_broken_skies_and_spare_steady_ones():
    site, cloudless = bins_of(flat(roof=0.8, clear=0.8))
    peak, lag = site.neighbourhood.peak[:6], site.neighbourhood.lag[:6]
    _, overcast = bins_of(flat(roof=0.16, clear=0.8))
    _, broken = bins_of(flat(roof=0.48, clear=0.8))
    assert np.allclose(cloudless["pv"], 0.8 * peak)
    assert np.allclose(overcast["pv"], 0.16 * peak)
    power = broken["pv"] / peak
    assert np.all(power.min(axis=0) < 0.25)
    assert np.all(power.max(axis=0) > 0.75)
    assert np.allclose(power.mean(axis=0), 0.48)
    first, last = np.argmin(lag), np.argmax(lag)
    shift = np.arange(-20, 20)
    alike = [np.corrcoef(power[50:-50, first], np.roll(power[:, last], -k)[50:-50])[0, 1] for k in shift]
    assert abs(shift[int(np.argmax(alike))] * 10.0 - (lag[last] - lag[first])) <= 10.0, "all see the same clouds, later"


def test_a_cloud_cycle_lasts_five_minutes_and_its_edge_twenty_seconds():
    _, day = bins_of(flat(roof=0.5, clear=0.8), seed=2)
    power = day["pv"][:, 0]
    lit = power > power.mean()
    edges = (np.diff(lit.astype(int)) != 0).sum()
    assert 86_400 / (edges / 2) == pytest.approx(300.0, rel=0.1)
    between = (power > power.min() + 1e-6) & (power < power.max() - 1e-6)
    assert between.sum() == pytest.approx(3 * edges, rel=0.05), "an edge of 20 s touches three bins of 10 s"


def test_appliances_take_half_the_load_in_pulses_of_six_minutes():
    site, day = bins_of(flat(), seed=3, batteries=20)
    plain = ~site.neighbourhood.wallbox[:20]
    load, mean = day["load"][:, plain], site.neighbourhood.energy[:20][plain] / 1000.0
    assert np.allclose(load.mean(axis=0), mean)
    smooth = load.min(axis=0)
    assert (smooth / mean).mean() == pytest.approx(0.5, rel=0.05)
    pulses = load - smooth
    rises = np.diff(pulses, axis=0)
    started = rises[rises > 1.0]
    assert 1.5 <= np.median(started) <= 3.5
    assert pulses.sum() * 10.0 / started.sum() == pytest.approx(360.0, rel=0.15)


def test_a_wallbox_charges_at_11_kilowatts_in_the_evening_within_the_homes_own_energy():
    site, day = bins_of(flat(household=0.15), seed=4, batteries=20)
    homes = site.neighbourhood
    for home in np.flatnonzero(homes.wallbox[:20]):
        load, mean = day["load"][:, home], 0.15 * homes.energy[home] / 1000.0
        assert load.mean() == pytest.approx(mean)
        when = np.flatnonzero(load > 11.0)
        assert len(when) * 10.0 * 11.0 / 3600.0 == pytest.approx(0.3 * mean * 24, abs=0.062)
        assert 15.0 <= when[0] / 360.0 < when[-1] / 360.0 <= 23.0
    for home in np.flatnonzero(~homes.wallbox[:20]):
        assert day["load"][:, home].max() < 11.0


def test_a_forecast_errs_by_fifteen_percent_of_the_generation(site):
    days = days_of(site, 900.0, 900.0)
    exact = begun(days_of(site_of(forecast_error=0.0), 900.0, 900.0), (195, 0, 0))
    begun(days, *((195, seed, 0) for seed in range(400)))
    part, step = days.parts["net_12h"], 32
    pv = site.base(195)[1][:6, 32:80].sum(axis=1) * 0.25
    errors = (row(exact, 0, step)[part] - days.at(np.arange(400), np.full(400, step))[:, part]) / pv
    assert np.abs(errors.mean(axis=0)).max() < 0.03
    assert np.allclose(errors.std(axis=0), 0.15, rtol=0.12)


def test_a_day_without_load_or_sun_is_empty():
    _, day = bins_of(flat(household=0.0))
    assert not day["load"].any()
    assert not day["pv"].any()
    assert not day["background"].any()


def test_a_lane_without_a_day_has_no_rows(site):
    days = begun(days_of(site, 900.0, 900.0), (150, 7, 0))
    days.reserve(3)
    for lanes in ([0, 1], [3], [-1]):
        with pytest.raises(AssertionError, match="begin it first"):
            days.at(np.array(lanes), np.zeros(len(lanes), dtype=np.int64))
    with pytest.raises(AssertionError, match="begin it first"):
        days_of(site, 900.0, 900.0).at(0, 0)


def test_a_row_that_is_asked_for_again_is_the_same(site):
    days = begun(days_of(site, 7200.0, 20.0), (172, 5, 0))  # so wide that none is kept
    noon = row(days, 0, 6).copy()
    assert np.array_equal(row(days, 0, 6), noon)
