"""The time series of an episode: the whole truth at each control boundary and the rewards, as CSV or parquet.

A row for each boundary, a column for each quantity of each agent: `battery_1.Charge.soc`, `zone_1.Zone.power`,
`global.Tariff.price`. What holds from then on (a price, a set-point) is what the coming step begins with; flows are of
the substep that has just ended; `battery_1.reward` is of the step that has, so the first row has none.
"""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from heron_env.errors import ConfigError
from heron_env.files.writing import write_all

if TYPE_CHECKING:
    from heron_env.envs.event.clock import EventRun

TIME, CLOCK, REWARD = "time_s", "local_time", "reward"
ENDINGS: Final = (".csv", ".parquet")
DIGITS: Final = 9
"""Of a time in s: whole ns."""


class TimeSeries:
    """Filled while an episode runs.

    Attributes:
        names: of the truth's columns.
        times: s.
        rows: of the truth, one for each time.
        clock: what a clock on the wall shows at each time; "" where the environment has no date.
        rewards: by agent, of the step that ended at a time.
    """

    def __init__(self) -> None:
        self.names: list[str] = []
        self.times: list[float] = []
        self.rows: list[NDArray[np.float64]] = []
        self.clock: list[str] = []
        self.rewards: dict[str, dict[float, float]] = {}

    def watch(self, run: EventRun) -> None:
        """Run to the end, with a look at each control boundary: where one looks changes nothing."""
        env, step = run.env, 0
        self.names = list(env.simulation.layout.full_names)
        while not run.closed and run.context.scheduler.heap:
            time = step * env.dt_ns / 1e9
            run.until(time)
            end = time if run.t_end is None else min(time, run.t_end / 1e9)
            self.times.append(end)
            self.rows.append(env.simulation.truth.copy())
            self.clock.append(env.local_time(end))
            step += 1
        run.until(None)
        for agent, earned in run.result().rewards.items():
            self.rewards[agent] = {round(float(time), DIGITS): float(value) for time, value in earned}

    def columns(self) -> dict[str, list[Any]]:
        """By name, in their order; None where there is no value."""
        table = np.array(self.rows)
        found: dict[str, list[Any]] = {TIME: self.times}
        if any(self.clock):
            found[CLOCK] = self.clock
        found.update({name: table[:, place].tolist() for place, name in enumerate(self.names)})
        for agent, earned in self.rewards.items():
            found[f"{agent}.{REWARD}"] = [earned.get(round(time, DIGITS)) for time in self.times]
        return found

    def write(self, path: str | Path) -> Path:
        """Write a file whose name ends with .csv or .parquet; numbers are exact. Raises ConfigError, OSError."""
        path = require_ending(path)
        columns = self.columns()
        if path.suffix.lower() == ".csv":
            text = io.StringIO()
            rows = csv.writer(text, lineterminator="\n")
            rows.writerow(columns)
            rows.writerows(zip(*columns.values(), strict=True))
            write_all({path: text.getvalue()})
            return path
        pyarrow, parquet = _arrow(path)
        packed = io.BytesIO()
        parquet.write_table(pyarrow.table(columns), packed)
        write_all({path: packed.getvalue()})
        return path


def require_ending(path: str | Path) -> Path:
    """The path. Raises ConfigError for another ending than .csv and .parquet, or where nothing writes parquet."""
    path = Path(path)
    if path.suffix.lower() not in ENDINGS:
        raise ConfigError(f"{str(path)!r}: the name of a file of time series must end with .csv or .parquet")
    if path.suffix.lower() == ".parquet":
        _arrow(path)
    return path


def _arrow(path: Path) -> tuple[Any, Any]:
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError as error:
        raise ConfigError(
            f"{path.name}: writing parquet needs pyarrow: pip install 'heron_env[data]', or name a .csv"
        ) from error
    return pyarrow, parquet
