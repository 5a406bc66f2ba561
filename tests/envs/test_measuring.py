"""What is measured and when: reports at intervals of their own, local reading, sums of whole steps (T18, T19, T22)."""

import re
from typing import Any

import pytest

from heron_env import (
    ConditionMonitor,
    Continuous,
    CoordinatorAgent,
    FeatureProvider,
    FieldAgent,
    HeronEnv,
    ScheduleConfig,
    SystemAgent,
    Vector,
    quantity,
    rule,
)
from heron_env.errors import ConfigError, ScheduleError
from heron_env.testing import clock


class Store(FeatureProvider):
    visibility = ("public",)
    energy: float = quantity(default=0.0, unit="J")
    power: float = quantity(default=0.0, unit="W")
    used: float = quantity(default=0.0, unit="J", per_step=True)


class Heater(FieldAgent):
    """Sees (energy, power, used) of itself, then of others."""

    features = (Store,)
    action = Continuous(-9.0, 9.0)

    @staticmethod
    @rule(writes=Store.power)
    def apply_action(action: Vector) -> float:
        return action[0]

    @staticmethod
    @rule(writes=(Store.energy, Store.used))
    def advance(store: Store, dt: float) -> tuple[float, float]:
        return store.energy + 1.0 * dt, store.used + 1.0 * dt


class Wired(Heater):
    own_rows = "local"


class Ending(Heater):
    @staticmethod
    @rule
    def is_terminated(store: Store) -> bool:
        return store.energy >= 2.0


def heaters(kind: type[Heater] = Heater, n: int = 2, **options: Any) -> HeronEnv:
    defaults = {"max_steps": 4, "physics_substeps": 10, "report_interval": 0.2}
    zone = CoordinatorAgent("zone", *(kind(f"heater_{i + 1}") for i in range(n)))
    return HeronEnv(SystemAgent("s", zone), **{**defaults, **options})


def rounded(vector: Any) -> list[float]:
    return [round(float(x), 5) for x in vector]


def seen(env: HeronEnv, schedule: Any, **options: Any) -> list[tuple[float, list[float]]]:
    """What heater_1 was shown, and when it had asked."""
    result = env.run_event_driven(
        {"*": lambda vector: [1.0]}, seed=0, schedule=schedule, record=("observations",), **options
    )
    return [(t, rounded(vector)) for t, vector in result.observations["heater_1"]]


# How it is declared


def test_reports_divide_a_step_and_are_divided_by_substeps():
    for interval in [0.15, 0.3, 0.04, 2.0, 0.0]:
        why = (
            f"report_interval={interval!r} s: must be a multiple of dt / physics_substeps = 0.1 s that divides "
            "dt = 1.0 s; None means dt"
        )
        with pytest.raises(ConfigError, match=f"^{re.escape(why)}$"):
            heaters(report_interval=interval)


def test_an_interval_is_a_time():
    for interval in [-1.0, float("nan"), "often"]:
        with pytest.raises(ScheduleError, match=re.escape(f"report_interval={interval!r}: must be ")):
            heaters(report_interval=interval)


def test_so_many_reports_are_in_a_step():
    for interval, reports in ((None, 1), (1.0, 1), (0.1, 10), (0.2, 5)):
        assert heaters(report_interval=interval).reports == reports
    assert heaters(physics_substeps=3, report_interval=1.0 / 3.0).reports == 3, "it need not be whole nanoseconds"


def test_own_rows_are_proxy_or_local():
    with pytest.raises(ScheduleError, match=r"^ScheduleConfig\(own_rows='mine'\): must be one of 'proxy', 'local'\."):
        ScheduleConfig(own_rows="mine")  # type: ignore[arg-type]
    wrong = type("Wrong", (Heater,), {"own_rows": "mine"})
    with pytest.raises(ConfigError, match=r"^Wrong\.own_rows='mine': must be 'proxy' or 'local'$"):
        wrong("heater_1")


def test_a_schedule_says_more_than_a_class():
    schedule = {"heater_1": ScheduleConfig(own_rows="proxy"), "heater_2": ScheduleConfig()}
    assert [timing.local for timing in heaters(Wired, schedule=schedule).timings] == [False, False, False, True]
    assert heaters(schedule={"heater": ScheduleConfig(own_rows="local")}).timings[2].local


def test_early_physics_leaves_no_time_for_telemetry():
    why = "wait=0.5: with report_interval=0.2 s below dt=1.0 s physics takes its whole step; leave wait out"
    with pytest.raises(ScheduleError, match=f"^{re.escape(why)}$"):
        heaters().run_event_driven({"*": lambda vector: [1.0]}, wait=0.5)
    heaters(report_interval=None).run_event_driven({"*": lambda vector: [1.0]}, wait=0.5)


# Telemetry


def reports(env: HeronEnv, schedule: Any = None) -> list[Any]:
    """The records of the reports of heater_1 that no effect caused."""
    result = env.run_event_driven({"*": lambda vector: [1.0]}, seed=0, schedule=schedule, trace=True)
    found = [r for r in result.trace or () if isinstance(r.payload, clock.StateReport)]
    return [r for r in found if r.payload.row == 2 and not r.payload.effect]


def test_every_row_reports_at_each_multiple_of_the_interval_and_the_cycle_no_more():
    found = reports(heaters(max_steps=2), ScheduleConfig(msg_delay=0.07))
    assert [(r.payload.sent / 1e9, r.payload.number) for r in found] == [(n / 5, n) for n in range(1, 10)], (
        "the tenth is late"
    )
    assert [r.payload.as_of for r in found] == [r.payload.sent for r in found]
    assert [r.latency for r in found] == [70_000_000] * 9
    once = reports(heaters(max_steps=2, report_interval=None), ScheduleConfig(msg_delay=0.07))
    assert [(r.payload.sent / 1e9, r.payload.as_of / 1e9) for r in once] == [(1.14, 1.0)], "the cycle's, leg 3"


def test_what_sums_up_within_a_step_is_told_when_the_step_has_ended():
    for kind in (Heater, Wired):
        shown = seen(heaters(kind), ScheduleConfig(tick_interval=0.3))
        assert [vector[2] for t, vector in shown] == [float(t >= 1.0) for t, _ in shown], kind
        assert [vector[5] for t, vector in shown] == [float(t >= 1.0) for t, _ in shown], kind


def test_the_sum_of_no_step_is_nothing():
    env = HeronEnv(SystemAgent("s", Heater("heater_1", Store(used=5.0))), max_steps=2)
    observations, _ = env.reset(seed=0)
    assert observations["heater_1"].tolist() == [0.0, 0.0, 0.0]


# Local reading


def test_a_policy_of_states_is_shown_it_too():
    class Reader:
        def __init__(self) -> None:
            self.energies: list[float] = []

        def decide_action(self, state: Any) -> list[float]:
            self.energies.append(round(state.agents["heater_1"]["Store"]["energy"], 5))
            return [0.0]

    reader = Reader()
    heaters(Wired, n=1).run_event_driven({"*": reader}, seed=0, schedule=ScheduleConfig(msg_delay=0.25))
    assert reader.energies == [0.5, 1.5, 2.5, 3.5]


def test_a_pushed_observation_is_read_locally_as_well():
    monitor = ConditionMonitor(agent="heater_1", watch="heater_2.Store.energy", above=0.55, one_shot=True)
    env = heaters(Wired)
    result = env.run_event_driven(
        {"*": lambda vector: [1.0]}, seed=0, monitors=[monitor], schedule=ScheduleConfig(msg_delay=0.25),
        record=("observations",),
    )  # fmt: skip
    pushed = [rounded(vector) for t, vector in result.observations["heater_1"] if round(t, 5) == 0.6]
    assert [(vector[0], vector[3]) for vector in pushed] == [(0.8, 0.6)]


def test_obs_delay_leaves_own_columns_as_they_are():
    env, late = heaters(Wired, observe_age=True), ScheduleConfig(obs_delay=2.0)
    result = env.run_event_driven(
        {"*": lambda vector: [1.0]}, seed=0, t_end=5.0, schedule=late, record=("observations",)
    )
    assert [rounded(vector) for _, vector in result.observations["heater_1"]] == [
        [2.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 2.0],
        [3.0, 1.0, 1.0, 1.0, 0.0, 1.0, 0.0, 2.0],
    ]


# Notes


OWN_BY_MESSAGE = [
    "agents get even their own features by message (own_rows='proxy'); set own_rows='local' if an agent measures "
    "them itself (heater_1, heater_2)"
]


def test_a_note_names_what_a_request_outruns():
    schedule = {"*": ScheduleConfig(msg_delay=0.1), "heater_2": ScheduleConfig(msg_delay=0.5)}
    result = heaters().run_event_driven(
        {"*": lambda vector: [1.0]}, seed=0, schedule=schedule, record=("observations",)
    )
    assert result.notes == [
        "requests reach the proxy before reports that left by the tick: at a decision what is observed is, without "
        "jitter and loss, up to 0.6 s (heater) old, 0.2 s of this since the tick (heater_1)",
        *OWN_BY_MESSAGE,
    ]
    vectors = [vector for _, vector in result.observations["heater_1"]]
    assert [round(k + 0.2 - float(vector[3]), 5) for k, vector in enumerate(vectors)][1:] == [0.6, 0.6, 0.6]


def test_a_note_says_that_all_delays_of_a_decision_are_below_a_substep():
    env = heaters(report_interval=None)
    note = (
        "2 msg_delay + obs_delay + act_delay = 0.06 s, from a tick to its effect, is below one physics substep of "
        "0.1 s: actions take effect as without delay (heater_1, heater_2)"
    )
    for delay, expected in ((0.03, [note]), (0.05, [])):
        result = env.run_event_driven({"*": lambda vector: [1.0]}, seed=0, schedule=ScheduleConfig(msg_delay=delay))
        assert [text for text in result.notes if "own_rows" not in text and "report_interval" not in text] == expected


# What a trace tells


@pytest.mark.parametrize("t_end", [None, 3.5])
def test_what_the_ended_would_have_done_is_marked_and_counted_apart(t_end: float | None):
    env = HeronEnv(SystemAgent("s", Ending("a"), Heater("b")), max_steps=4)
    result = env.run_event_driven(
        {"*": lambda vector: [1.0]}, seed=0, t_end=t_end, schedule=ScheduleConfig(act_delay=1.5), trace=True
    )
    trace = result.trace
    assert trace is not None
    marked = [(r.kind, r.t_ns / 1e9, r.agent) for r in trace if r.cancelled]
    assert marked == [("AgentTick", 2.0, 1), ("ActionEffect", 2.5, 1)]
    assert result.cancelled_effects == 1
    assert result.unfinished_effects == (1 if t_end is None else 2)
    lines = trace.lines(env.hierarchy.ids)
    assert sum(line.endswith(" cancelled") for line in lines) == 2
    assert trace.table(env.hierarchy.ids).count("cancelled") == 2
    late = [r for r in trace if isinstance(r.payload, clock.StateReport) and r.payload.row == 1 and r.t_ns > 2 * 10**9]
    assert late, "of an ended agent state reports go on"
