"""Hypothesis strategies: schedules as a user may write them; failures shrink towards no delay, loss or jitter."""

from collections.abc import Sequence

from hypothesis import strategies as st

from heron_env.scheduling.timing import ScheduleConfig

PROBABILITIES = st.sampled_from([0.0, 0.1, 0.5, 1.0])


@st.composite
def schedule_configs(draw: st.DrawFn, *, dt: float = 1.0, synchronous: bool = False) -> ScheduleConfig:
    """One agent's schedule: times up to 3 dt in tenths; ticks and phase whole multiples of dt if `synchronous`."""
    tenths = st.integers(0, 30).map(lambda n: n * dt / 10)
    periods = st.integers(1, 3).map(lambda n: n * dt)
    ticks = periods if synchronous else st.one_of(periods, st.integers(3, 30).map(lambda n: n * dt / 10))
    jitter_type = draw(st.sampled_from(["none", "uniform", "gaussian", "lognormal"]))
    return ScheduleConfig(
        tick_interval=draw(st.one_of(st.none(), ticks)),
        phase=draw(st.integers(0, 2).map(lambda n: n * dt) if synchronous else tenths),
        obs_delay=draw(tenths),
        act_delay=draw(tenths),
        msg_delay=draw(tenths),
        jitter_type=jitter_type,
        jitter_ratio=0.0 if jitter_type == "none" else draw(st.sampled_from([0.0, 0.1, 0.5, 2.0])),
        loss=draw(PROBABILITIES),
        duplicate=draw(PROBABILITIES),
        reorder=draw(st.booleans()),
        min_delay=draw(st.sampled_from([0.0, dt / 100])),
        on_missing=draw(st.sampled_from(["hold", "noop"])),
    )


def schedules(
    ids: Sequence[str] = (), *, dt: float = 1.0, synchronous: bool = False
) -> st.SearchStrategy[ScheduleConfig | dict[str | int, ScheduleConfig] | None]:
    """What `schedule=` accepts: nothing, one for all, or a mapping by agent id, level name and "*"."""
    config = schedule_configs(dt=dt, synchronous=synchronous)
    keys = st.sampled_from([*ids, "*", "field", "coordinator", "system"])
    return st.one_of(st.none(), config, st.dictionaries(keys, config, max_size=4))
