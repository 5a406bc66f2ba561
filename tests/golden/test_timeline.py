"""The golden timeline of the specification: exactly these times, kinds and dictionaries, from a real run."""

from heron_env import (
    Continuous,
    EpisodeResult,
    FeatureProvider,
    FieldAgent,
    HeronEnv,
    ScheduleConfig,
    SystemAgent,
    Vector,
    quantity,
    rule,
)
from heron_env.testing import clock


class BatteryChargeFeature(FeatureProvider):
    visibility = ("public",)
    soc: float = quantity(default=0.5, low=0.0, high=1.0)
    capacity: float = quantity(default=100.0, low=1.0, high=1e4)


class Target(FeatureProvider):
    soc: float = quantity(default=0.0, low=-1.0, high=1.0)


class Battery(FieldAgent):
    features = (BatteryChargeFeature,)
    action = Continuous(-1.0, 1.0)

    @staticmethod
    @rule(writes=BatteryChargeFeature.soc)
    def apply_action(charge: BatteryChargeFeature, action: Vector) -> float:
        return charge.soc + action[0] * 0.01

    @staticmethod
    @rule
    def compute_local_reward(charge: BatteryChargeFeature) -> float:
        return charge.soc


class Grid(SystemAgent):
    features = (Target,)
    action = Continuous(-1.0, 1.0)

    @staticmethod
    @rule(writes=Target.soc)
    def apply_action(action: Vector) -> float:
        return action[0]


SYSTEM = [
    (0.0, "AgentTick", None),
    (0.01, "Simulation", None),
    (0.2, "ObservationRequest", clock.Leg.OBSERVATION_REQUEST),
    (0.21, "CycleToken", clock.Leg.TOKEN_TO_PROXY),
    (0.4, "ObservationReply", clock.Leg.OBSERVATION_REPLY),
    (0.41, "CycleToken", clock.Leg.TOKEN_BACK),
    (0.61, "StateReport", clock.Leg.REPORT),
    (0.81, "CycleCompletion", clock.Leg.COMPLETION),
    (0.9, "ActionEffect", None),
    (1.01, "LocalStateRequest", clock.Leg.STATE_REQUEST),
    (1.1, "StateReport", clock.Leg.REPORT),
    (1.21, "LocalStateReply", clock.Leg.STATE_REPLY),
    (1.3, "ReportReceived", clock.Leg.REPORT_RECEIVED),
    (1.41, "TickResultReport", clock.Leg.TICK_RESULT),
]
BATTERY = [
    (0.61, "StateReport", clock.Leg.REPORT),
    (0.81, "CycleCompletion", clock.Leg.COMPLETION),
    (1.01, "LocalStateRequest", clock.Leg.STATE_REQUEST),
    (1.21, "LocalStateReply", clock.Leg.STATE_REPLY),
    (1.41, "TickResultReport", clock.Leg.TICK_RESULT),
    (5.0, "AgentTick", None),
    (5.2, "ObservationRequest", clock.Leg.OBSERVATION_REQUEST),
    (5.4, "ObservationReply", clock.Leg.OBSERVATION_REPLY),
]


def golden_run() -> tuple[HeronEnv, EpisodeResult]:
    env = HeronEnv(Grid("system_agent", Battery("battery_1")), dt=5.0)
    common = {"tick_interval": 5.0, "msg_delay": 0.2, "act_delay": 0.5}
    schedule = {"*": ScheduleConfig(**common), "battery_1": ScheduleConfig(**common, phase=5.0)}
    policies = {"system_agent": lambda vector: 0.15, "battery_1": lambda vector: 0.3}
    return env, env.run_event_driven(policies, t_end=10.0, seed=0, schedule=schedule, wait=0.01, trace=True)


def records(result: EpisodeResult, agent: int) -> list[tuple[float, str, clock.Leg | None]]:
    return [(r.t_ns / 1e9, r.kind, getattr(r.payload, "leg", None)) for r in result.trace if r.agent == agent]


def test_the_golden_timeline_of_the_system_agent():
    _, result = golden_run()
    assert [r for r in records(result, 0) if r[0] < 5.0] == SYSTEM


def test_the_golden_timeline_of_the_battery_below_it():
    _, result = golden_run()
    assert [r for r in records(result, 1) if r[0] <= 5.4] == BATTERY


def test_every_message_has_the_dictionary_of_the_specification():
    _, result = golden_run()
    written = [(r.t_ns / 1e9, r.agent, r.payload.to_dict()) for r in result.trace if hasattr(r.payload, "to_dict")]
    charge = {"soc": 0.5, "capacity": 100.0}
    score = {"reward": 0.5, "terminated": False, "truncated": False, "info": {}}
    body = {
        "timestamp": 0.0,
        "local": {"Target": [0.0]},
        "global_info": {"battery_1": {"BatteryChargeFeature": [0.5, 100.0]}},
    }

    def state(owner: str, level: int, kind: str, features: dict[str, dict[str, float]]) -> dict[str, object]:
        metadata = {"_owner_id": owner, "_owner_level": level, "_state_type": kind}
        return {"set_state": "local", "body": {**metadata, "features": features}}

    battery = state("battery_1", 1, "FieldAgentState", {"BatteryChargeFeature": charge})
    assert [record for record in written if record[0] < 5.0] == [
        (0.2, 0, {"get_info": "obs"}),
        (0.21, 0, {"get_info": "global_state"}),
        (0.4, 0, {"get_obs_response": {"body": body}}),
        (0.41, 0, {"get_global_state_response": "success"}),
        (0.61, 0, state("system_agent", 3, "SystemAgentState", {"Target": {"soc": 0.0}})),
        (0.61, 1, battery),
        (0.81, 0, {"set_state_completion": "success"}),
        (0.81, 1, {"set_state_completion": "success"}),
        (1.01, 0, {"get_info": "local_state"}),
        (1.01, 1, {"get_info": "local_state"}),
        (1.1, 0, state("system_agent", 3, "SystemAgentState", {"Target": {"soc": 0.15}})),
        (1.21, 0, {"get_local_state_response": {"body": score}}),
        (1.21, 1, {"get_local_state_response": {"body": score}}),
        (1.3, 0, {"set_state_completion": "success"}),
        (1.41, 0, {"set_tick_result": "local", "body": score}),
        (1.41, 1, {"set_tick_result": "local", "body": score}),
    ]


def test_every_record_knows_what_it_follows_from_and_how_long_it_was_under_way():
    env, result = golden_run()
    trace = result.trace
    for record in trace:
        assert record.cause < record.index
        if record.kind not in ("AgentTick", "Simulation", "ActionEffect"):
            assert record.latency == 200_000_000
    effect = next(r for r in trace if r.kind == "ActionEffect")
    chain = []
    while effect.cause >= 0:
        effect = trace[effect.cause]
        chain.append(effect.kind)
    assert chain == ["ObservationReply", "ObservationRequest", "AgentTick"]
    assert env.hierarchy.ids == ("system_agent", "battery_1")


def test_the_effect_of_the_battery_counts_in_the_second_step_and_not_before():
    _, result = golden_run()
    assert result.actions["battery_1"][0][0] == 5.9
    assert result.actions["battery_1"][0][1].tolist() == [0.3]
    assert result.rewards["battery_1"] == [(5.0, 0.5), (10.0, 0.5)], "boundary times are nominal; 5.9 s is after 5.01 s"
    assert result.truncated == {"system_agent": True, "battery_1": True}
