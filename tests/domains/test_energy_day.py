"""One day's series: the fast layer keeps every mean, the coarse world is the mean of the fine one."""

import numpy as np
import pytest

from heron_env.domains.energy_management.day import Site, build_day
from heron_env.domains.energy_management.fast import BINS, household_load, sunlight
from heron_env.domains.energy_management.neighbourhood import draw_neighbourhood
from heron_env.domains.energy_management.profiles import load_profiles
from heron_env.domains.energy_management.tariff import TimeOfUse
from heron_env.seeding import key, uniforms


def draws(seed):
    return lambda name, shape: uniforms(key(seed, name), shape)


@pytest.fixture(scope="module")
def site():
    homes = draw_neighbourhood(0, 6, 3, 3)
    return Site(homes, load_profiles(), TimeOfUse(), tuple(1.8 * homes.connected(zone) for zone in range(2)))


def test_every_home_draws_its_energy_of_the_year_and_every_roof_yields_its_own(site):
    homes = site.neighbourhood
    load, pv, background = np.zeros(6), np.zeros(6), np.zeros(2)
    for day in range(365):
        series = build_day(site, day, 900.0, draws(day))
        load += series.load.sum(axis=0) * 0.25
        pv += series.pv.sum(axis=0) * 0.25
        background += series.background.sum(axis=0) * 0.25
    yields = site.profiles.roofs.sum(axis=(1, 2)) * 0.25
    assert np.allclose(load, homes.energy[:6], rtol=1e-9)
    assert np.allclose(pv, [home.peak * yields[home.roof] for home in homes.homes[:6]], rtol=1e-9)
    for zone in range(2):
        passive = [home for home in homes.homes[6:] if home.zone == zone]
        net = sum(home.energy - home.peak * yields[home.roof] for home in passive)
        assert background[zone] == pytest.approx(net + homes.business[zone], rel=1e-9)


@pytest.mark.parametrize("dt", [10.0, 48.0, 60.0, 300.0, 900.0, 3600.0])
def test_a_coarse_world_is_the_mean_of_the_fine_one(site, dt):
    fine, coarse = build_day(site, 172, 10.0, draws(5)), build_day(site, 172, dt, draws(5))
    assert coarse.steps == round(86_400 / dt)
    for name in ("load", "pv", "background"):
        cumulated = (
            np.vstack([np.zeros((1, getattr(fine, name).shape[1])), np.cumsum(getattr(fine, name), axis=0)]) * 10.0
        )
        edges = np.arange(coarse.steps + 1) * dt
        exact = np.stack([np.interp(edges, np.arange(BINS + 1) * 10.0, column) for column in cumulated.T], axis=1)
        assert np.allclose(getattr(coarse, name), np.diff(exact, axis=0) / dt, atol=1e-9)


def test_clouds_shade_broken_skies_and_spare_steady_ones(site):
    sky = np.full((3, 96), 0.8)
    roof, lags = np.array([0, 0]), np.array([0.0, 60.0])
    cloudless = sunlight(draws(1), sky, sky, roof, lags)
    overcast = sunlight(draws(1), 0.2 * sky, sky, roof, lags)
    broken = sunlight(draws(1), 0.6 * sky, sky, roof, lags)
    assert np.allclose(cloudless, 0.8)
    assert np.allclose(overcast, 0.16)
    assert broken[0].min() < 0.25 < 0.75 < broken[0].max()
    assert broken[0].mean() == pytest.approx(0.48)
    scale = broken[0].max() / broken[1].max()
    assert np.allclose(broken[0, :-6], broken[1, 6:] * scale), "the second roof sees the same cloud a minute later"


def test_a_cloud_cycle_lasts_five_minutes_and_its_edge_twenty_seconds(site):
    power = sunlight(draws(2), np.full((3, 96), 0.5), np.full((3, 96), 0.8), np.array([0]), np.array([0.0]))[0]
    lit = power > power.mean()
    assert 86_400 / (np.diff(lit.astype(int)) == 1).sum() == pytest.approx(300.0, rel=0.1)
    between = (power > power.min() + 1e-6) & (power < power.max() - 1e-6)
    edges = (np.diff(lit.astype(int)) != 0).sum()
    assert between.sum() == pytest.approx(2 * edges, rel=0.05), "two bins of 10 s at each edge"


def test_appliances_take_half_the_load_in_pulses_of_six_minutes(site):
    base = np.full((20, 96), 0.6)
    load = household_load(draws(3), base, np.zeros(20, dtype=bool), 0.0)
    assert np.allclose(load.mean(axis=1), 0.6)
    smooth = load.min(axis=1)
    assert smooth.mean() == pytest.approx(0.3, rel=0.05)
    pulses = load - smooth[:, None]
    rises = np.diff(pulses, axis=1)
    started = rises[rises > 1.0]
    assert 1.5 <= np.median(started) <= 3.5
    assert pulses.sum() * 10.0 / started.sum() == pytest.approx(360.0, rel=0.1)


def test_a_wallbox_charges_at_11_kilowatts_in_the_evening_within_the_homes_own_energy(site):
    base = np.full((1, 96), 0.6)
    plain = household_load(draws(4), base, np.array([False]), 0.0)
    charging = household_load(draws(4), base, np.array([True]), 0.0)
    assert charging.mean() == pytest.approx(plain.mean())
    when = np.flatnonzero(charging[0] > 10.9)
    assert len(when) * 10.0 * 11.0 / 3600.0 == pytest.approx(0.3 * 0.6 * 24, rel=0.02)
    assert 16.0 <= when[0] / 360.0 < when[-1] / 360.0 <= 22.0


def test_a_day_depends_on_its_draws_alone(site):
    one, same, other = (build_day(site, 99, 300.0, draws(seed)) for seed in (7, 7, 8))
    assert all(np.array_equal(getattr(one, name), getattr(same, name)) for name in vars(one))
    assert not np.array_equal(one.load, other.load)
    assert not np.array_equal(one.pv, other.pv)
    assert np.array_equal(one.tariff, other.tariff)


def test_forecasts_are_integrals_of_the_base_series_and_know_no_fast_layer(site):
    exact = Site(site.neighbourhood, site.profiles, site.tariff, site.limits, forecast_error=0.0)
    series = build_day(exact, 172, 900.0, draws(1))
    load, pv, business = exact.base(172)
    next_load, next_pv, _ = exact.base(173)
    surplus = np.maximum(pv - load, 0.0)[:6] * 0.25
    deficit = np.concatenate([np.maximum(load - pv, 0.0), np.maximum(next_load - next_pv, 0.0)], axis=1)[:6] * 0.25
    net = np.concatenate([load - pv, next_load - next_pv], axis=1)[:6] * 0.25
    zone = exact.neighbourhood.membership @ (load - pv) + business
    excess = np.maximum(-zone - np.array(exact.limits)[:, None], 0.0) * 0.25
    for k in (0, 37, 95):
        assert np.allclose(series.surplus_rest[k], surplus[:, k:].sum(axis=1))
        assert np.allclose(series.deficit_12h[k], deficit[:, k : k + 48].sum(axis=1))
        assert np.allclose(series.excess_rest[k], excess[:, k:].sum(axis=1))
        for hours in (1, 3, 6, 12):
            assert np.allclose(getattr(series, f"net_{hours}h")[k], net[:, k : k + 4 * hours].sum(axis=1))


def test_a_forecast_errs_by_fifteen_percent_of_the_generation(site):
    errors = []
    exact = Site(site.neighbourhood, site.profiles, site.tariff, site.limits, forecast_error=0.0)
    load, pv, _ = exact.base(195)
    always = np.flatnonzero(0.5 * pv[3] > load[3])
    k, width = always[0], len(always)
    for seed in range(60):
        series = build_day(site, 195, 900.0, draws(seed))
        error = series.surplus_rest[k, 3] - series.surplus_rest[k + width, 3]
        errors.append((error + (load[3, always].sum() * 0.25)) / (pv[3, always].sum() * 0.25) - 1.0)
    assert np.mean(errors) == pytest.approx(0.0, abs=0.05)
    assert np.std(errors) == pytest.approx(0.15, rel=0.25)
