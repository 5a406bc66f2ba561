"""How a control step is divided: into physics substeps, and into intervals at whose ends rows report (T1, T18)."""

from __future__ import annotations

from heron_env.envs.termination import is_count
from heron_env.errors import ConfigError
from heron_env.scheduling.timing import to_ns, to_seconds


def divided_step(dt: float, substeps: int, report_interval: float | None) -> tuple[int, int]:
    """The control step in ns, and how often rows report in it; `report_interval` None: once.

    Raises ConfigError for what is no count, or no division, and ScheduleError for what is no time.
    """
    if not is_count(substeps):
        raise ConfigError(f"physics_substeps={substeps!r}: must be a whole number >= 1")
    dt_ns = to_ns(dt, "dt")
    if dt_ns < substeps:
        raise ConfigError(f"dt={dt!r} s: must be > 0 and at least one ns per substep")
    if report_interval is None:
        return dt_ns, 1
    interval = to_ns(report_interval, "report_interval")
    reports = round(dt_ns / interval) if interval else 0
    if reports < 1 or substeps % reports or abs(reports * interval - dt_ns) >= reports:
        raise ConfigError(
            f"report_interval={report_interval!r} s: must be a multiple of dt / physics_substeps = "
            f"{dt / substeps!r} s that divides dt = {to_seconds(dt_ns)!r} s; None means dt"
        )
    return dt_ns, reports
