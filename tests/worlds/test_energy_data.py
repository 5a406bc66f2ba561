"""Series, tariff, neighbourhood and split of EnergyManagement: what the data promise."""

from functools import partial

import numpy as np
import pytest
from refusing import unsaid

from heron_env.errors import ConfigError, DataError
from heron_env.worlds.energy_management import energy_management
from heron_env.worlds.energy_management.calendar import (
    TimeOfUse,
    evaluation_cases,
    evaluation_seed,
    shipped_optima,
    split_days,
    summer_time,
)
from heron_env.worlds.energy_management.site import COLUMNS, QUARTERS_PER_YEAR, draw_neighbourhood, load_profiles
from tests.worlds.energy_day_oracle import local_hours, tariff_series

pytestmark = pytest.mark.e2e

SPRING, AUTUMN = 88, 298  # March 30 and October 26, 2025
HOURS = np.arange(24) * 3600.0


def test_loads_hold_one_megawatt_hour_and_the_south_roof_a_thousand_full_load_hours():
    profiles = load_profiles()
    for series in (profiles.household, profiles.business, profiles.roofs[0]):
        assert series.sum() * 0.25 == pytest.approx(1000.0, abs=1e-9)
    east, west = profiles.roofs[1:].sum(axis=(1, 2)) * 0.25
    assert 700.0 < west < east < 900.0


def test_no_roof_yields_at_midnight_and_the_clear_sky_is_never_exceeded():
    profiles = load_profiles()
    assert not profiles.roofs[:, :, [0, 1, 2, 93, 94, 95]].any()
    assert (profiles.roofs <= profiles.clear_sky).all()


@pytest.mark.filterwarnings("ignore")  # demandlib's own, about pandas
def test_the_shipped_profiles_are_what_the_script_builds():
    build_data = pytest.importorskip("tools.build_data")
    pytest.importorskip("demandlib", exc_type=ImportError)
    built, shipped = build_data.loads(), load_profiles()
    assert np.allclose(shipped.household.ravel(), built["household"], rtol=1e-3)
    assert np.allclose(shipped.business.ravel(), built["business"], rtol=1e-3)


def test_people_live_by_the_berlin_clock():
    business = load_profiles().business
    summer, winter = business[292], business[299]  # the Mondays before and after the clock change of October 26
    assert np.allclose(summer[:92], winter[4:], rtol=1e-9), (
        "on the UTC+1 clock the shop opens an hour earlier in summer"
    )
    assert not np.allclose(summer, winter, rtol=1e-2)


def write_profiles(path, change=None, rows=QUARTERS_PER_YEAR):
    lines = [",".join(COLUMNS)] + ["0.1,0.2,0,0.5,1e-1"] * rows
    if change is not None:
        line, text = change
        lines[line - 1] = text
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def test_a_users_profiles_are_normalised_and_roofs_stay_as_they_are(tmp_path):
    profiles = load_profiles(write_profiles(tmp_path / "my.csv"))
    assert profiles.household.sum() * 0.25 == pytest.approx(1000.0)
    assert profiles.business.sum() * 0.25 == pytest.approx(1000.0)
    assert np.all(profiles.roofs[0] == 0.0)
    assert np.all(profiles.roofs[1] == 0.5)


def test_an_environment_runs_on_a_users_profiles(tmp_path):
    env = energy_management(profiles=str(write_profiles(tmp_path / "my.csv")), dt=3600.0)
    env.reset(seed=0)
    home = env.site.neighbourhood.homes[0]
    assert env.series.load[:, 0].mean() == pytest.approx(home.energy / 8760.0)
    assert env.run_synchronous({"*": lambda vector: 0.0}, seed=0).end_time == 86_400.0


BAD_ROWS = [
    ((1, "household,business,south"), "my.csv:1: expected the columns household,business,pv_south,pv_east,pv_west, "
                                      "got household,business,south; add pv_south,pv_east,pv_west. "
                                      "Did you mean 'pv_south'?"),
    ((3, "0.1,0.2,0,0.5"), "my.csv:3: expected 5 cells, got 4; give one a column, decimals with a point"),
    ((4, "0.1,oops,0,0,0"), "my.csv:4: business='oops' is not a number; correct or fill in the cell"),
    ((5, "0.1,0.2,nan,0,0"), "my.csv:5: pv_south=nan must be finite; fill in the cell"),
    ((6, "0.1,0.2,0,0,inf"), "my.csv:6: pv_west=inf must be finite; fill in the cell"),
    ((7, "0.1,0.2,0,-1,0"), "my.csv:7: pv_east=-1 must be >= 0 (generation is positive, too)"),
    ((7, "0.1,1_0,0,0,0"), "my.csv:7: business='1_0' is not a number; correct or fill in the cell"),
    ((8, "0.1,,0,0,0"), "my.csv:8: business='' is not a number; correct or fill in the cell"),
]  # fmt: skip


def test_a_bad_row_is_refused_with_its_line(tmp_path):
    def loading(change):
        load_profiles(write_profiles(tmp_path / "my.csv", change, rows=20))

    assert unsaid(DataError, [(partial(loading, change), message) for change, message in BAD_ROWS]) == []


@pytest.mark.parametrize(
    ("row", "words"),
    [
        (
            "0.1,0.2,500,0,0",
            "my.csv:9: pv_south=500 kW per kWp, and no roof gives more than 1.5: is this W, or the kW of",
        ),
        ("0.1,0.2,0,1.6,0", "my.csv:9: pv_east=1.6 kW per kWp"),
        ("0.1,0.2,0,0,7.2", "my.csv:9: pv_west=7.2 kW per kWp"),
    ],
)
def test_more_than_the_sun_can_give_is_refused(tmp_path, row, words):
    with pytest.raises(DataError) as error:
        load_profiles(write_profiles(tmp_path / "my.csv", (9, row)))
    assert str(error.value).startswith(words)


@pytest.mark.parametrize("column", [0, 4])
def test_a_meters_counter_is_no_profile(tmp_path, column):
    cells = np.tile([0.1, 0.2, 0.0, 0.5, 0.1], (QUARTERS_PER_YEAR, 1))
    cells[:, column] = np.arange(QUARTERS_PER_YEAR) / QUARTERS_PER_YEAR
    path = tmp_path / "my.csv"
    path.write_text("\n".join([",".join(COLUMNS), *(",".join(map(repr, row)) for row in cells.tolist())]))
    with pytest.raises(
        DataError, match=rf"my.csv:35041: {COLUMNS[column]}=0.999\d+: the column rises 35039 times and f"
    ):
        load_profiles(path)


def test_a_wrong_number_of_rows_is_refused(tmp_path):
    with pytest.raises(DataError) as error:
        load_profiles(write_profiles(tmp_path / "my.csv", rows=8760))
    assert str(error.value) == (
        "my.csv: expected 35040 rows (quarter hours of 365 days), got 8760; "
        "hourly values must be repeated four times, and February 29 left out"
    )


def test_a_missing_file_and_an_empty_load_are_refused(tmp_path):
    with pytest.raises(DataError, match="no such file; give a CSV file with the columns household,business"):
        load_profiles(tmp_path / "none.csv")
    path = tmp_path / "dark.csv"
    path.write_text("\n".join([",".join(COLUMNS)] + ["0,1,0,0,0"] * QUARTERS_PER_YEAR))
    with pytest.raises(DataError, match=r"dark\.csv: column household is 0 in every row"):
        load_profiles(path)


def test_the_tariff_follows_the_berlin_clock_in_winter_and_summer():
    tariff = TimeOfUse()
    winter, _, _ = tariff_series(tariff, 10, HOURS)
    assert winter.tolist() == [0.338] + [0.256] * 4 + [0.338] * 12 + [0.430] * 3 + [0.338] * 4
    summer, _, _ = tariff_series(tariff, 180, HOURS)
    assert summer.tolist() == [*winter.tolist()[1:], 0.338]


def test_clock_changes_shorten_and_lengthen_the_cheap_window():
    tariff = TimeOfUse()
    spring, _, hours = tariff_series(tariff, SPRING, HOURS)
    assert spring.tolist()[:6] == [0.338, 0.256, 0.256, 0.256, 0.338, 0.338]
    assert hours[1] == 3.0, "01:00 to 05:00 in three hours"
    assert local_hours(SPRING, HOURS)[:4].tolist() == [0.0, 1.0, 3.0, 4.0]
    autumn, _, hours = tariff_series(tariff, AUTUMN, HOURS)
    assert autumn.tolist()[:6] == [0.256, 0.256, 0.256, 0.256, 0.256, 0.338]
    assert hours[0] == 5.0
    assert local_hours(AUTUMN, HOURS)[:4].tolist() == [1.0, 2.0, 2.0, 3.0]
    assert summer_time().sum() == (AUTUMN - SPRING) * 24


def test_next_price_is_what_comes_after_the_hours_to_change():
    tariff, times = TimeOfUse(), np.arange(96) * 900.0
    for day in (0, SPRING, 200, AUTUMN, 364):
        price, following, hours = tariff_series(tariff, day, times)
        for k in range(96):
            then = times[k] + hours[k] * 3600.0
            later, _, _ = tariff_series(
                tariff, day + int(then // 86_400) if then >= 86_400 else day, np.array([then % 86_400])
            )
            assert later[0] == following[k] != price[k]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"low_hours": (5, 1)}, r"tariff: low_hours=\(5, 1\) must be whole hours with 0 <= from < to <= 24"),
        ({"high_hours": (4, 8)}, r"tariff: low_hours=\(1, 5\) and high_hours=\(4, 8\) overlap"),
        ({"high": -0.1}, "tariff: high=-0.1 EUR/kWh must be a number >= 0 and below 10"),
    ],
)
def test_an_impossible_tariff_is_refused(arguments, message):
    with pytest.raises(ConfigError, match=message):
        TimeOfUse(**arguments)


def test_the_neighbourhood_is_as_described():
    homes = draw_neighbourhood(0, 6, 3, 3)
    assert homes.batteries == 6
    assert [homes.connected(zone) for zone in range(homes.zones)] == [6, 6]
    active, passive = homes.homes[:6], homes.homes[6:]
    assert all(7.0 <= home.capacity <= 13.0 and home.peak >= 5.0 for home in active)
    assert all(home.capacity == 0.0 for home in passive)
    assert sum(home.peak > 0.0 for home in passive) == 3, "half of the passive homes have a roof"
    assert sum(home.wallbox for home in homes.homes) == 4, "35 % of 12, rounded among both kinds"
    assert all(2500.0 <= home.energy <= 6000.0 and 0.0 <= home.lag <= 60.0 for home in homes.homes)
    assert all(8000.0 <= energy <= 14_000.0 for energy in homes.business)


def test_the_neighbourhood_depends_on_its_seed_alone_and_grows_stably():
    small, large = draw_neighbourhood(3, 4, 2, 2), draw_neighbourhood(3, 6, 2, 2)
    assert small == draw_neighbourhood(3, 4, 2, 2) != draw_neighbourhood(4, 4, 2, 2)
    assert [home.capacity for home in small.homes[:4]] == [home.capacity for home in large.homes[:4]]
    assert small.business == large.business[:2]


def test_the_last_zone_may_be_smaller():
    homes = draw_neighbourhood(0, 5, 3, 1)
    assert [homes.connected(zone) for zone in range(homes.zones)] == [4, 3]


def test_the_split_is_a_partition_of_the_year():
    splits = [set(split_days(name)) for name in ("train", "validation", "test")]
    assert [len(days) for days in splits] == [219, 73, 73]
    assert set.union(*splits) == set(range(365))
    assert {day % 5 for day in splits[2]} == {2}
    assert {day % 5 for day in splits[1]} == {4}
    with pytest.raises(ConfigError, match=r"split='tests': must be one of .* Did you mean 'test'\?"):
        split_days("tests")


def test_evaluation_cases_are_spread_over_the_year_and_seeded_by_day_and_repeat():
    cases = evaluation_cases("test", 10, repeats=2)
    days = [options["day"] for options, _ in cases]
    assert days[:10] == days[10:] == sorted(days[:10])
    assert max(np.diff(days[:10])) <= 40
    first, again = days[:10], days[10:]
    assert [seed for _, seed in cases] == [2 * 10**9 + day for day in first] + [2 * 10**9 + 1000 + day for day in again]
    with pytest.raises(ConfigError, match="num_days=74: the split 'test' has 73 days"):
        evaluation_cases("test", 74)


def test_the_shipped_optima_belong_to_held_out_days():
    held_out = {*split_days("test"), *split_days("validation")}
    for options, seed, _ in shipped_optima():
        assert options["day"] in held_out and seed == evaluation_seed(options["day"], 0)
