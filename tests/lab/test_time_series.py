"""Time series of recorded episodes: the truth at each boundary, exactly; the data a trace was made from."""

import csv

import numpy as np
import pytest
from cli_kit import heron

from heron_env import make
from heron_env.errors import ConfigError, TraceError
from heron_env.lab import TimeSeries, record_episode
from heron_env.lab.traces import file
from heron_env.lab.traces.replaying import replay
from heron_env.worlds.energy_management.example_site import write_example

ENERGY, GRID = "heron/EnergyManagement-v1", "heron/BatteryGrid-v0"
COARSE = {"dt": 900.0, "physics_substeps": 1}


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    return write_example(tmp_path_factory.mktemp("site"))


def told(series, path):
    with series.write(path).open(newline="") as text:
        return list(csv.DictReader(text))


def test_where_one_looks_changes_nothing():
    options = {"num_batteries": 3, "max_steps": 5}
    looked = record_episode(GRID, "random", seed=3, options=options, series=TimeSeries())
    assert file.as_text(looked) == file.as_text(record_episode(GRID, "random", seed=3, options=options))


def test_a_row_is_the_truth_at_its_boundary_and_the_file_is_exact(site, tmp_path):
    series, options = TimeSeries(), {**COARSE, "homes": str(site), "day": 13}
    episode = record_episode(ENERGY, "self-consumption", seed=1, options=options, series=series)
    rows = told(series, tmp_path / "day.csv")
    assert [float(row["time_s"]) for row in rows] == [900.0 * k for k in range(97)]
    assert (rows[0]["local_time"], rows[9]["local_time"]) == ("2025-10-26T01:00:00+02:00", "2025-10-26T02:15:00+01:00")
    env = make(ENERGY, **options)
    env.reset(seed=1)
    columns, prices = env.simulation.model.layout.full_names, env.series.tariff[:, 0]
    assert [float(row["global.Tariff.price"]) for row in rows[:-1]] == prices.tolist()
    for row, values in zip(rows, series.rows, strict=True):
        assert [float(row[name]) for name in columns] == values.tolist()
    earned = [float(row["battery_1.reward"]) for row in rows[1:]]
    assert rows[0]["battery_1.reward"] == "" and sum(earned) == pytest.approx(episode.returns["battery_1"], abs=1e-9)
    power = np.array([float(row["zone_1.Zone.power"]) for row in rows[1:]])
    homes = sum(np.array([float(row[f"battery_{k}.Flow.grid"]) for row in rows[1:]]) for k in (1, 2, 3))
    others = np.array([float(row["zone_1.Background.power"]) for row in rows[1:]])
    assert np.allclose(power, homes + others, atol=1e-9)


def test_parquet_holds_what_csv_holds(site, tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    series = TimeSeries()
    record_episode(ENERGY, "self-consumption", options={**COARSE, "homes": str(site), "day": 13}, series=series)
    table = parquet.read_table(series.write(tmp_path / "day.parquet"))
    rows = told(series, tmp_path / "day.csv")
    assert table.column_names == list(rows[0])
    for name in ("time_s", "battery_1.Charge.soc", "global.Tariff.price"):
        assert table[name].to_pylist() == [float(row[name]) for row in rows]


def test_a_name_with_another_ending_and_parquet_without_pyarrow_are_refused(tmp_path, monkeypatch):
    with pytest.raises(ConfigError, match=r"must end with \.csv or \.parquet"):
        TimeSeries().write(tmp_path / "day.xls")
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    with pytest.raises(ConfigError, match=r"writing parquet needs pyarrow: pip install pyarrow"):
        TimeSeries().write(tmp_path / "day.parquet")


def test_a_trace_names_its_data_and_a_changed_file_is_noticed(tmp_path):
    site = write_example(tmp_path / "site", days=3)
    episode = record_episode(ENERGY, "do nothing", t_end=1800.0, options={**COARSE, "homes": str(site)})
    files = {"homes.yaml", "alder.csv", "birch.csv", "cedar.csv", "dogwood.csv"}
    assert set(episode.setting.data) == files
    kept = file.write(episode, tmp_path / "trace")
    assert replay(kept).identical
    for name in sorted(files):
        path = site.parent / name
        before = path.read_text(encoding="utf-8")
        path.write_text(before.rstrip("\n"), encoding="utf-8")  # nothing that the series would show
        with pytest.raises(TraceError, match=f"the data file '{name}' has changed since"):
            replay(kept)
        path.write_text(before, encoding="utf-8")
    assert replay(kept).identical


def test_the_command_writes_the_series_beside_the_record(site, tmp_path):
    command = ["trace", ENERGY, "-o", f"homes={site}", "-o", "dt=900", "-o", "physics_substeps=1", "--until", "1800"]
    done = heron(*command, "--out", tmp_path / "trace", "--csv", tmp_path / "day.csv")
    assert f"wrote {tmp_path / 'day.csv'}" in done.output
    with (tmp_path / "day.csv").open(newline="") as text:
        assert [float(row["time_s"]) for row in csv.DictReader(text)] == [0.0, 900.0, 1800.0]
    assert "must end with .csv or .parquet" in heron(*command, "--csv", tmp_path / "day.txt", code=2).output
