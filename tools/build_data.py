"""Rebuild `data/profiles.npz` from the sources (needs the extra `data`).

Run it as `python tools/build_data.py`.

One row of the result is one quarter hour of the year 2025 on a UTC+1 clock without daylight saving; the loads are
looked up on the Europe/Berlin clock, because people live by it, and the sun is not.
"""

import io
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heron_env.files.writing import write
from heron_env.worlds.energy_management.calendar import OPTIMA

YEAR = 2025
QUARTERS = 35_040
ROOFS = {"south": 180.0, "east": 90.0, "west": 270.0}
TILT = 35.0
POTSDAM = (52.383, 13.067, 81.0)  # latitude, longitude, metres: the station of test reference year region 4
HOLIDAYS = ((1, 1), (4, 18), (4, 21), (5, 1), (5, 29), (6, 9), (10, 3), (12, 25), (12, 26))  # nationwide in 2025
SOUTH_YIELD = 1000.0  # kWh per kWp and year
TARGET = OPTIMA.with_name("profiles.npz")


def loads() -> dict[str, NDArray[np.float64]]:
    """H25 and G25, shape (35040,), kW per MWh/a, each normalised to exactly 1 MWh in the year."""
    import pandas as pd
    from demandlib.bdew import G25, H25

    berlin = pd.date_range(f"{YEAR}-01-01", periods=QUARTERS, freq="15min", tz="Etc/GMT-1").tz_convert("Europe/Berlin")
    holidays = [pd.Timestamp(YEAR, month, day).date() for month, day in HOLIDAYS]
    series = {"household": H25(berlin, holidays=holidays), "business": G25(berlin, holidays=holidays)}
    return {name: normalise(np.asarray(values, dtype=np.float64)) for name, values in series.items()}


def normalise(power: NDArray[np.float64], energy: float = 1000.0) -> NDArray[np.float64]:
    """Scale quarter-hour powers (kW) so that they hold `energy` kWh in the year."""
    return np.asarray(power * (energy / (power.sum() * 0.25)))


def weather() -> Any:
    """The hours of test reference year region 4 as a data frame: B, D (W/m2, horizontal), t (deg C), WG (m/s)."""
    import demandlib
    import pandas as pd

    path = Path(demandlib.__file__).parent / "vdi" / "resources_weather" / "TRY2010_04_Jahr.dat"
    lines = path.read_text(encoding="latin-1").splitlines()
    header = next(number for number, line in enumerate(lines) if line.startswith("***")) - 1
    names = lines[header].split()
    rows = [[float(cell) for cell in line.split()] for line in lines[header + 2 :] if line.strip()]
    return pd.DataFrame(rows, columns=names)


def photovoltaics() -> dict[str, NDArray[np.float64]]:
    """PV power on three roofs, shape (35040,) each, kW per kWp, scaled so that the south roof yields 1,000 kWh/kWp.

    Row HH of the weather is the mean of the hour that ends at HH (Central European Time). Within the hour the beam on
    the horizontal follows the sine of the sun's height, so that hourly sums are kept.
    """
    import pandas as pd
    import pvlib

    hours = weather()
    middles = pd.date_range(f"{YEAR}-01-01 00:07:30", periods=QUARTERS, freq="15min", tz="Etc/GMT-1")
    latitude, longitude, altitude = POTSDAM
    sun = pvlib.solarposition.get_solarposition(middles, latitude, longitude, altitude)
    height = np.sin(np.radians(np.clip(sun["apparent_elevation"].to_numpy(), 0.0, 90.0)))
    mean_height = np.repeat(height.reshape(-1, 4).mean(axis=1), 4)
    share = np.divide(height, mean_height, out=np.zeros_like(height), where=mean_height > 0.0)
    beam, diffuse = (np.repeat(hours[name].to_numpy(), 4) * share for name in ("B", "D"))
    extra = pvlib.irradiance.get_extra_radiation(middles).to_numpy()
    normal = np.minimum(np.divide(beam, height, out=np.zeros_like(beam), where=height > 0.02), 0.85 * extra)
    air, wind = (np.repeat(hours[name].to_numpy(), 4) for name in ("t", "WG"))
    power = {}
    for roof, azimuth in ROOFS.items():
        plane = pvlib.irradiance.get_total_irradiance(
            TILT, azimuth, sun["apparent_zenith"], sun["azimuth"], normal, beam + diffuse, diffuse,
            dni_extra=extra, model="haydavies",
        )["poa_global"].fillna(0.0).to_numpy()  # fmt: skip
        cell = pvlib.temperature.faiman(plane, air, wind)
        power[f"pv_{roof}"] = np.clip(pvlib.pvsystem.pvwatts_dc(plane, cell, 1.0, -0.004), 0.0, None)
    scale = SOUTH_YIELD / (power["pv_south"].sum() * 0.25)
    return {name: values * scale for name, values in power.items()}


def build(target: Path = TARGET) -> dict[str, NDArray[np.float64]]:
    """Write the five series as float16 and return them in float64."""
    series = {**loads(), **photovoltaics()}
    for name, values in series.items():
        if values.shape != (QUARTERS,) or not np.isfinite(values).all() or values.min() < 0.0:
            raise ValueError(f"{name}: expected {QUARTERS} finite powers >= 0, got shape {values.shape}")
    packed = io.BytesIO()
    small = {name: values.astype(np.float16) for name, values in series.items()}
    np.savez_compressed(packed, allow_pickle=False, **small)
    write(target, packed.getvalue())
    return series


if __name__ == "__main__":
    for name, values in build().items():
        print(f"{name:10s} {values.sum() * 0.25:8.2f} kWh/a, at most {values.max():.3f} kW")
    print(f"{TARGET.name}: {TARGET.stat().st_size / 1000:.0f} kB")
