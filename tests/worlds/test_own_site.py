"""Own sites: measured series become days, whatever the clock does; what is wrong is told with file and line."""

# ruff: noqa: E501 (a message is one line)

import hashlib
import os
import re
from datetime import UTC, date, datetime, timedelta
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from refusing import unsaid

from heron_env.errors import ConfigError, DataError, DeclarationError, HeronError
from heron_env.worlds.energy_management import energy_management
from heron_env.worlds.energy_management.calendar import TimeOfUse
from heron_env.worlds.energy_management.example_site import write_example
from heron_env.worlds.energy_management.own_site import read_site
from worlds.batches import batch_is_its_lanes
from worlds.own_site_kit import AUTUMN, BERLIN, HOMES, SPRING, load_at, local, rows_of, write_site

COARSE = {"dt": 900.0, "physics_substeps": 1}


def read(path):
    return read_site(path, limit_per_home=2.0, forecast_error=0.15)


def require_true_instants(site, minutes=15):
    """Each slot of each day holds what was measured at its instant."""
    calendar, slots = site.calendar, site.measured.load.shape[1]
    assert slots == 1440 // minutes
    for day in range(calendar.days):
        begin = datetime.combine(calendar.date(day), datetime.min.time(), UTC) - timedelta(hours=1)
        expected = [load_at(begin + timedelta(minutes=minutes * slot)) for slot in range(slots)]
        assert site.measured.load[day, :, 0].tolist() == expected, calendar.date(day)


CLOCKS = {
    "local": (local, ""),
    "UTC": (lambda time: time.strftime("%Y-%m-%dT%H:%MZ"), ""),
    "offset": (lambda time: time.astimezone(BERLIN).isoformat(), ""),
    "standard time": (
        lambda time: (time + timedelta(hours=1)).strftime("%Y-%m-%d %H:%M"),
        "times: {clock: Etc/GMT-1}\n",
    ),
}


@pytest.mark.parametrize("start", [SPRING, AUTUMN], ids=["spring", "autumn"])
@pytest.mark.parametrize("clock", CLOCKS)
def test_a_slot_holds_what_was_measured_at_its_instant(tmp_path, start, clock):
    told, more = CLOCKS[clock]
    site = read(write_site(tmp_path, rows_of(start, 4, told=told), more + HOMES))
    assert site.calendar.days == (4 if start is SPRING else 3), "in autumn the first hour of the first day is missing"
    require_true_instants(site)


@pytest.mark.parametrize("start", [SPRING, AUTUMN], ids=["spring", "autumn"])
def test_rows_may_be_told_by_the_end_of_their_slots(tmp_path, start):
    homes = "times: {stamps: end, clock: UTC}\n" + HOMES
    utc = CLOCKS["UTC"][0]
    require_true_instants(read(write_site(tmp_path, rows_of(start, 4, told=utc, end=True), homes)))


def test_a_local_day_has_23_h_in_spring_and_25_h_in_autumn(tmp_path):
    for start, hours in ((SPRING, 23), (AUTUMN, 25)):
        rows = [row for row in rows_of(start, 4) if row.startswith(f"{(start + timedelta(days=2)).date()}")]
        assert len(rows) == 4 * hours
    site = read(write_site(tmp_path, rows_of(AUTUMN, 4)))
    calendar = site.calendar
    shown = [calendar.local(calendar.number(date(2025, 10, 26)), 3600.0 * hour).hour for hour in range(25)]
    assert shown == [1, 2, 2, *range(3, 24), 0]


@pytest.mark.parametrize(
    ("start", "day", "cheap", "shown"),
    [
        (SPRING, date(2025, 3, 30), [1, 2, 3], [0, 1, 3, 4]),
        (AUTUMN, date(2025, 10, 26), [0, 1, 2, 3, 4], [1, 2, 2, 3]),
    ],
)
def test_prices_and_observed_hours_follow_the_local_clock_through_its_changes(tmp_path, start, day, cheap, shown):
    env = energy_management(homes=write_site(tmp_path, rows_of(start, 4)), **COARSE)
    env.reset(seed=0, options={"day": env.site.calendar.number(day)})
    series = env.series
    prices, hours = series.tariff[::4, 0], np.arctan2(*series.clock[::4, :2].T) / np.pi * 12.0 % 24.0
    assert np.flatnonzero(prices == TimeOfUse().low).tolist() == cheap, "01:00 to 05:00 of the local clock"
    assert np.rint(hours[:4]).tolist() == shown


@pytest.mark.parametrize("minutes", [1, 5, 20, 30, 60])
def test_slots_of_1_to_60_minutes_keep_their_energy_to_the_substep(tmp_path, minutes):
    path = write_site(tmp_path, rows_of(SPRING, 2, minutes))
    require_true_instants(read(path), minutes)
    env = energy_management(homes=path, day=0, dt=1200.0, physics_substeps=20)
    env.reset(seed=0)
    bins, slots = env.series.load[:, 0], env.site.measured.load[0, :, 0]
    assert len(bins) == 1440
    assert np.allclose(bins, np.repeat(slots, minutes), rtol=1e-12)


@pytest.mark.parametrize(("unit", "factor"), [("W", 1000.0), ("kWh", 0.25), ("Wh", 250.0)])
def test_units_are_turned_into_kilowatts(tmp_path, unit, factor):
    rows = rows_of(SPRING, 2)
    told = [rows[0], *(f"{time},{float(value) * factor!r}" for time, value in (row.split(",") for row in rows[1:]))]
    plain = read(write_site(tmp_path / "kW", rows)).measured.load
    given = read(write_site(tmp_path / unit, told, HOMES.replace("column: load", f"column: load, unit: {unit}")))
    assert np.allclose(given.measured.load, plain, rtol=1e-12)


def without(rows, first, last):
    """Rows without those of the lines `first` to `last`."""
    return rows[: first - 1] + rows[last:]


def test_gaps_are_refused_held_or_interpolated_and_counted(tmp_path):
    rows = without(rows_of(SPRING, 2), 102, 103)
    with pytest.raises(DataError) as refused:
        read(write_site(tmp_path, rows))
    assert str(refused.value).startswith(
        "mill.csv:102: load: 30 min are missing before this row; fill them in, or have"
    )
    before, after = (load_at(SPRING + timedelta(minutes=15 * slot)) for slot in (99, 102))
    filled = {"hold": [before, before], "interpolate": [before + (after - before) * k / 3 for k in (1, 2)]}
    for how, expected in filled.items():
        site = read(write_site(tmp_path, rows, f"gaps: {how}\n" + HOMES))
        assert site.measured.load.ravel()[100:102].tolist() == pytest.approx(expected, rel=1e-12)
        assert site.measured.filled == {"mill.csv: load": 2}
    with pytest.raises(DataError, match=r"mill.csv:102: .* more than the 15 min of gaps that are filled"):
        read(write_site(tmp_path, rows, "gaps: {fill: hold, longest: 15}\n" + HOMES))


def test_an_empty_cell_is_a_gap_and_an_end_is_never_filled(tmp_path):
    rows = rows_of(SPRING, 2)
    rows[9] = rows[9].split(",")[0] + ","
    with pytest.raises(DataError, match=r"mill.csv:10: load: 15 min are missing in this row; fill them in"):
        read(write_site(tmp_path, rows))
    rows[1] = rows[1].split(",")[0] + ","
    with pytest.raises(DataError, match=r"mill.csv:2: .* at an end of the file"):
        read(write_site(tmp_path, rows, "gaps: hold\n" + HOMES))


ROW = 50


WRONG_ROWS = [
    ("2025-03-29 12:00,oops", "load='oops' is not a number"),
    ("2025-03-29 12:00,-1", "load=-1 must be >= 0"),
    ("2025-03-29 12:00,inf", "load=inf must be finite"),
    ("2025-03-29 12:00,4300", "load is 4300 kW, more than the 100 kW of a home; is its unit kW?"),
    ("2025-03-29 12:00,1,2", "expected 2 cells, got 3"),
    ("29.03.2025 12:00,1", "time='29.03.2025 12:00': is no time; write 2025-10-26 02:15"),
    ("2025-03-29 12:00:30,1", "time='2025-03-29 12:00:30': must be a whole minute"),
    ("2025-03-29 11:30,1", "time='2025-03-29 11:30': must come after the row before, 2025-03-29 11:45"),
    ("2025-03-29 12:05,1", "its time is on no whole multiple of 15 min"),
    ("2025-03-30 02:15,1", "time='2025-03-30 02:15': Europe/Berlin never shows that time"),
]


def test_a_wrong_row_is_told_with_its_line(tmp_path):
    def reading(row):
        rows = rows_of(SPRING, 2)
        rows[ROW - 1] = row
        read(write_site(tmp_path, rows))

    calls = [partial(reading, row) for row, _ in WRONG_ROWS]
    assert unsaid(DataError, zip(calls, [message for _, message in WRONG_ROWS], strict=True)) == []
    assert unsaid(DataError, [(call, f"mill.csv:{ROW}: ") for call in calls]) == []


MISTAKES = [
    (HOMES.replace("Europe/Berlin", "Europe/Berlim"), "homes.yaml:1: timezone: no time zone 'Europe/Berlim'"),
    (HOMES.replace("capacity: 10", "capacity: 200"), "homes.yaml:5: homes[0].battery.capacity: must be from 0.5 to 100 kWh"),
    (HOMES.replace("battery", "batery"), "homes.yaml:5: homes[0].batery: unknown key. Did you mean 'battery'?"),
    (HOMES.replace("mill.csv", "mil.csv"), "homes.yaml:4: homes[0].load.file: 'mil.csv': no such file beside homes.yaml. Did you mean 'mill.csv'?"),
    (HOMES.replace("load}", "lod}"), "mill.csv:1: there is no column 'lod'; there are time,load. Did you mean 'load'?"),
    (HOMES.replace("mill.csv", "m" * 300), f"homes.yaml:4: homes[0].load.file: '{'m' * 300}': no such file beside homes.yaml."),
    (HOMES.split("    battery")[0], "homes.yaml:2: homes: no home with a battery is in it"),
    (HOMES + "    zone: north\n", "homes.yaml:6: homes[0].zone: no zone is called 'north'."),
    (HOMES + "gaps: {fill: guess}\n", "homes.yaml:6: gaps.fill: must be 'refuse', 'hold' or 'interpolate', got 'guess'"),
    (HOMES + "tariff: {low_hours: [5, 1]}\n", "homes.yaml:6: tariff: tariff: low_hours=(5, 1) must be whole hours"),
    (HOMES + "held_out: {test: [2024-01-01]}\n", "homes.yaml:6: held_out.test[0]: 2024-01-01: is none of the days from 2025-03-29 to"),
    (HOMES + "    roof: {peak: 5}\n", "homes.yaml:6: homes[0].roof: give file and column of what was measured, or peak"),
    (HOMES.replace("Europe/Berlin", "Australia/Lord_Howe"), "homes.yaml:1: timezone: time zone Australia/Lord_Howe: its clock changes by parts of an hour"),
]  # fmt: skip


def test_a_mistake_in_the_file_is_told_with_line_and_key(tmp_path):
    def reading(homes):
        read(write_site(tmp_path, rows_of(SPRING, 2, told=CLOCKS["UTC"][0]), homes))

    assert unsaid(HeronError, [(partial(reading, homes), message) for homes, message in MISTAKES]) == []


def in_column(values, unit, minutes=15):
    """The file of a home, and `homes.yaml` beside it, that says this unit."""
    rows = [f"{local(SPRING + timedelta(minutes=minutes * k))},{value!r}" for k, value in enumerate(values)]
    return ["time,load", *rows], HOMES.replace("column: load", f"column: load, unit: {unit}")


SLOT = [0.05 + 0.04 * ((7 * k) % 11) for k in range(192)]
"""kWh of quarter hours."""


@pytest.mark.parametrize(
    ("values", "unit"),
    [
        (np.cumsum(SLOT), "kWh"),
        (1000.0 * np.cumsum(SLOT), "Wh"),
        (20.0 + np.cumsum(SLOT) / 2.0, "kW"),
        (np.cumsum([value * (k % 96 > 40) for k, value in enumerate(SLOT)]), "kWh"),
        (np.cumsum(SLOT) % 30.0, "kWh"),
    ],
    ids=["kWh", "Wh", "taken for kW", "a roof's", "begins again"],
)
def test_a_meters_counter_is_no_energy_of_slots(tmp_path, values, unit):
    rows, homes = in_column([float(value) for value in values], unit)
    with pytest.raises(DataError) as error:
        read(write_site(tmp_path, rows, homes))
    assert re.match(
        rf"mill.csv:193: load=[\d.]+ {unit}: the column rises \d+ times and falls \d time", str(error.value)
    )
    assert "looks like a meter's counter" in str(error.value) and "differences of neighbouring rows" in str(error.value)


@pytest.mark.parametrize(
    "values",
    [SLOT, [0.3] * 192, [0.1 + 0.002 * (k % 96) for k in range(192)], [0.0] * 100 + [0.2] * 92],
    ids=["a load", "always the same", "rises by the day", "one step"],
)
def test_energies_that_rise_and_fall_are_read(tmp_path, values):
    rows, homes = in_column(values, "kWh")
    assert read(write_site(tmp_path, rows, homes)).measured.load.sum() == pytest.approx(4.0 * sum(values))


def test_a_roof_of_thousands_of_kilowatts_is_told_that_its_peak_is_in_watts(tmp_path):
    homes = HOMES + "    roof: {peak: 8500, facing: south}\n"
    with pytest.raises(DeclarationError, match=r"homes.yaml:6: homes\[0\].roof.peak: .*100 kWp, got 8500; is it in Wp"):
        read(write_site(tmp_path, rows_of(SPRING, 2), homes))


def test_looking_for_a_file_that_was_meant_goes_one_folder_deep(tmp_path, monkeypatch):
    path = write_site(tmp_path, rows_of(SPRING, 2), HOMES.replace("mill.csv", "mil.csv"))
    (tmp_path / "more" / "below").mkdir(parents=True)
    (tmp_path / "mill.csv").rename(tmp_path / "more" / "mil.csv")
    (tmp_path / "more" / "below" / "mil.csv").touch()
    entered, scandir = [], os.scandir
    monkeypatch.setattr(os, "scandir", lambda where=".": entered.append(Path(where)) or scandir(where))
    with pytest.raises(HeronError, match=r"Did you mean 'more[/\\\\]mil\.csv'\?"):
        read(path)
    assert set(entered) <= {tmp_path, tmp_path / "more"}


def test_more_homes_than_can_be_built_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("heron_env.worlds.energy_management.own_site.MOST_AGENTS", 2)
    homes = HOMES + "".join(f"  - name: h{n}\n    load: {{file: mill.csv, column: load}}\n" for n in range(2))
    with pytest.raises(DeclarationError, match=r"homes.yaml:2: homes: 3 are too many; take 2 at the most"):
        read(write_site(tmp_path, rows_of(SPRING, 2), homes))


def test_less_than_a_day_and_uneven_rows_are_refused(tmp_path):
    with pytest.raises(DataError, match="no whole day in common"):
        read(write_site(tmp_path, rows_of(SPRING, 0.9)))
    with pytest.raises(DataError, match="most rows are 7 min apart; 1 to 60 minutes that divide an hour"):
        read(write_site(tmp_path, rows_of(SPRING, 1, 7)))


def test_what_is_drawn_can_not_be_asked_for_beside_an_own_site(tmp_path):
    with pytest.raises(ConfigError, match=r"num_batteries=4: homes='.*' says who lives there; leave out num_batteries"):
        energy_management(homes=write_site(tmp_path, rows_of(SPRING, 2)), num_batteries=4)


def test_days_are_held_out_evenly_or_by_their_dates(tmp_path):
    rows = rows_of(SPRING, 10)
    splits = ("train", "validation", "test")
    calendar = read(write_site(tmp_path, rows)).calendar
    assert [calendar.split(name) for name in splits] == [(0, 1, 3, 5, 6, 8), (4, 9), (2, 7)]
    held = "held_out: {validation: [2025-03-30], test: [2025-03-31, 2025-04-01]}\n"
    path = write_site(tmp_path, rows, HOMES + held)
    assert [read(path).calendar.split(name) for name in splits] == [(0, 4, 5, 6, 7, 8, 9), (1,), (2, 3)]
    env = energy_management(homes=path, split="test", **COARSE)
    assert env.days == (2, 3)
    assert [options["day"] for options, _ in env.benchmark().cases("test", 2)] == [2, 3]
    again = env.benchmark().cases("validation", 3)
    assert [options["day"] for options, _ in again] == [1, 1, 1] and len({seed for _, seed in again}) == 3
    with pytest.raises(ConfigError, match="num_days=3: the split 'test' has 2 days"):
        env.benchmark().cases("test", 3)


def test_forecasts_know_the_next_day_and_of_the_last_one_itself(tmp_path):
    env = energy_management(homes=write_site(tmp_path, rows_of(SPRING, 3)), forecast_error=0.0, **COARSE)
    energy = env.site.measured.load[:, :, 0] * 0.25
    for day, following in ((0, 1), (2, 2)):
        env.reset(seed=0, options={"day": day})
        expected = energy[day, 72:].sum() + energy[following, :24].sum()
        assert env.series.net_12h[72, 0] == pytest.approx(expected, rel=1e-12)


@pytest.fixture(scope="module")
def example(tmp_path_factory):
    return write_example(tmp_path_factory.mktemp("site"))


def test_the_example_is_written_with_the_same_bytes_as_ever(example):
    written = sorted(example.parent.iterdir())
    digest = hashlib.sha256(b"".join(file.name.encode() + file.read_bytes() for file in written)).hexdigest()
    assert digest == "7bcb6799212c24c7b8697690f88ae9c14a95a37e98c5638c5c4174550b232d3b"
    assert sum(file.stat().st_size for file in written) <= 300_000


def test_the_optimum_is_what_its_set_points_return_and_nobody_exceeds_it(example):
    env = energy_management(homes=example, **COARSE)
    rules = env.benchmark().baselines(0)
    day = env.site.calendar.number(date(2025, 10, 26))
    best = env.optimum(day, 3)
    env.reset(seed=3, options={"day": day})
    returned = 0.0
    for row in best.set_points:
        env.step(dict(zip(env.agents, np.clip(row, -5.0, 5.0), strict=True)))
        returned += float(env.simulation.last_rewards[0])
    assert returned == pytest.approx(best.value, abs=1e-6)
    for name in ("MPC", "self-consumption", "do nothing"):
        one = energy_management(homes=example, day=day, **COARSE)
        assert one.run_synchronous(rules[name], seed=3).returns["system_agent"] < best.bound


def test_a_batch_lives_the_days_of_single_environments(example):
    batch_is_its_lanes("heron/EnergyManagement-v1", homes=str(example), **COARSE)


def test_an_own_site_has_a_grid_behind_its_transformer(tmp_path):
    env = energy_management(homes=write_example(tmp_path, first=date(2025, 3, 24), days=3), network="radial", **COARSE)
    env.reset(seed=0, options={"day": 1})
    for _ in range(52):
        env.step({agent: np.array([5.0]) for agent in env.agents})
    voltages = [env.observation_names("battery_1").index("Terminal.voltage")]
    seen = env.step({agent: np.array([5.0]) for agent in env.agents})[0]["battery_1"][voltages]
    assert 0.8 < seen[0] < 1.1 and seen[0] != 1.0
    assert env.kpis()["lost_energy"] > 0.0


def test_parquet_is_read_as_csv_is(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    rows = rows_of(AUTUMN, 3)
    times = [AUTUMN + timedelta(minutes=15 * row) for row in range(len(rows) - 1)]
    loads: list[float | None] = [load_at(time) for time in times]
    path = write_site(tmp_path, rows, HOMES.replace("mill.csv", "mill.parquet"))
    parquet.write_table(pyarrow.table({"time": times, "load": loads}), tmp_path / "mill.parquet")
    require_true_instants(read(path))
    loads[7] = -1.0
    parquet.write_table(pyarrow.table({"time": times, "load": loads}), tmp_path / "mill.parquet")
    with pytest.raises(DataError, match=r"mill.parquet, row 7: load=-1\.0 must be >= 0"):
        read(path)


def test_parquet_without_pyarrow_names_the_extra(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    path = write_site(tmp_path, ["nothing"], HOMES.replace("mill.csv", "mill.parquet"), "mill.parquet")
    with pytest.raises(ConfigError, match=r"reading parquet needs pyarrow: pip install pyarrow"):
        read(path)
