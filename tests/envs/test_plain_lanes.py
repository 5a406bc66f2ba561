"""Lanes in plain Python: what is an agent's own stays so, protocols split as they like, faults come to each lane."""

import traceback
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from envs.disturbed_world import disturbed
from laws.test_disturbed_parity import NOISE, SETS, TICKS
from small_worlds import Level, Reversed, Unit

from heron_env import (
    BatchEnv,
    Continuous,
    CoordinatorAgent,
    FeatureProvider,
    FieldAgent,
    HeronEnv,
    ScheduleConfig,
    SetpointSplit,
    SystemAgent,
    Vector,
    VectorDecomposition,
    make,
    quantity,
    rule,
)
from heron_env.errors import InvalidAction

LANES = 3


class Opposed(VectorDecomposition):
    """Another one: what is commanded is undone."""

    def split(self, action: Any, children: Any) -> Any:
        return [-part for part in super().split(action, children)]


class Meter(FeatureProvider):
    visibility = ("public",)
    power: float = quantity(default=0.0, low=-5.0, high=5.0)
    energy: float = 0.0


class Plug(FieldAgent):
    features = (Meter,)
    action = Continuous(-1.0, 1.0)

    @staticmethod
    @rule(writes=Meter.power)
    def apply_action(action: Vector) -> float:
        return 3.0 * action[0]

    @staticmethod
    @rule(writes=Meter.energy)
    def advance(meter: Meter, dt: float) -> float:
        return meter.energy + meter.power * dt

    @staticmethod
    @rule
    def compute_local_reward(meter: Meter) -> float:
        return meter.energy


class Counting(FieldAgent):
    """In the imperative style, with a number of its own that nobody resets, and what it has heard of."""

    features = (Level,)
    action = Unit.action

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.acts, self.heard = 0, list[float]()

    def apply_action(self) -> None:
        self.acts += 1
        self.heard.append(float(self.action.c[0]))
        self.state.features[Level].value = sum(self.heard)

    def compute_local_reward(self, local_state: Any) -> float:
        return self.acts + float(local_state["Level"].value)

    def get_local_info(self, local_state: Any) -> dict[str, float]:
        return {"acts": float(self.acts)}


class Row(CoordinatorAgent):
    """Commands by a protocol of its own below one of the library's."""

    protocol = Reversed()


class Nested(CoordinatorAgent):
    protocol = Opposed()


class Shared(CoordinatorAgent):
    protocol = SetpointSplit([1.0, 2.0])


def custom(**options: Any) -> HeronEnv:
    nested = Nested(
        "nested", Row("row", Plug("plug_1"), Plug("plug_2")), Shared("shared", Plug("plug_3"), Plug("plug_4"))
    )
    return HeronEnv(SystemAgent("system_agent", nested, Plug("plug_5")), max_steps=4, **options)


def side_by_side(
    build: Callable[[], HeronEnv], given: Callable[[int, str, int], Any], steps: int = 9, options: Any = None,
    **more: Any,
) -> None:  # fmt: skip
    """A batch beside single environments: all that they tell, bit for bit. `given(turn, group, lane)`: actions."""
    batch, alone = BatchEnv(build, LANES, seed=3, **more), [build() for _ in range(LANES)]
    seen, infos = batch.reset(options=options)
    now = [env.reset(seed=3 + lane, options=options) for lane, env in enumerate(alone)]
    assert not batch.compiled
    for turn in range(steps):
        for lane, (shown, told) in enumerate(now):
            for group, agents in batch.groups.items():
                for place, agent in enumerate(agents):
                    assert np.array_equal(seen[group][lane, place], shown[agent]), (turn, agent)
                    for key, value in told[agent].items():
                        assert np.array_equal(infos[group][key][lane, place], value), (turn, agent, key)
        spoken = {group: [given(turn, group, lane) for lane in range(LANES)] for group in batch.groups}
        spoken = {group: np.array(values) for group, values in spoken.items() if values[0] is not None}
        seen, rewards, _, _, infos = batch.step(spoken)
        for lane, env in enumerate(alone):
            mine = {}
            for group, values in spoken.items():
                mine |= dict(zip(batch.groups[group], values[lane], strict=True))
            shown, earned, _, _, told = env.step(mine)
            if env.agents:
                assert env.simulation.truth.tobytes() == batch._engine.truth[lane].tobytes(), (turn, lane)
                assert batch.lane(lane).last_decisions == env.last_decisions, (turn, lane)
            for group, agents in batch.groups.items():
                assert rewards[group][lane].tolist() == [earned[agent] for agent in agents]
            assert batch.over[lane] == (not env.agents)
            now[lane] = (shown, told) if env.agents else env.reset()


def waves(width: int) -> Callable[[int, str, int], Any]:
    return lambda turn, group, lane: np.sin(np.arange(width)[:, None] + 3 * turn + lane)


def test_what_agents_keep_for_themselves_is_their_lanes_own() -> None:
    def build() -> HeronEnv:
        return HeronEnv(SystemAgent("system_agent", Counting("hand_1"), Counting("hand_2")), max_steps=4)

    side_by_side(build, waves(2))
    env = build()
    batch = BatchEnv(env, LANES)
    batch.reset(seed=0)
    for _ in range(2):
        batch.step({"hand": np.zeros((LANES, 2, 1))})
    assert [batch.lane(lane).hierarchy.agents[1].acts for lane in range(LANES)] == [2] * LANES  # type: ignore[attr-defined]


@pytest.mark.parametrize("schedule", [None, {"nested": ScheduleConfig(tick_interval=2.0)}], ids=["steps", "ticks"])
def test_a_protocol_of_ones_own_splits_in_each_lane(schedule: Any) -> None:
    def given(turn: int, group: str, lane: int) -> Any:
        size = 3 if group == "nested" else 1
        values = np.sin(np.arange(size) + turn + lane)
        return None if group == "plug" and turn % 3 == 1 else values[None] * (1.0 if group == "plug" else 0.9)

    side_by_side(lambda: custom(schedule=schedule), given)


@pytest.mark.parametrize(
    "options",
    [{}, {"protocol": VectorDecomposition()}, {"protocol": Reversed()}, {"schedule": TICKS}, {"observability": NOISE},
     {"observe_age": True}],
    ids=["field", "zone", "own split", "ticks", "noise", "ages"],
)  # fmt: skip
def test_faults_come_to_each_lane_and_to_each_episode(options: dict[str, Any]) -> None:
    def given(turn: int, group: str, lane: int) -> Any:
        size = (1, 2) if "protocol" in options else (2, 1)
        return None if turn % 5 == 4 else 8.0 * np.sin(np.arange(2).reshape(size) + turn + lane)

    happening = {"disturbances": SETS["all"]}
    side_by_side(lambda: disturbed(compile=False, **options), given, steps=24, options=happening)


def test_without_faults_the_next_episode_has_none() -> None:
    batch = BatchEnv(lambda: disturbed(compile=False), 2, seed=1)
    batch.reset(options={"disturbances": SETS["all"]})
    calm = BatchEnv(lambda: disturbed(compile=False), 2, seed=1)
    calm.reset()
    batch.step({})
    assert batch.reset(seed=5)[0]["heater"].tolist() == calm.reset(seed=5)[0]["heater"].tolist()
    for _ in range(4):
        assert batch.step({})[0]["heater"].tolist() == calm.step({})[0]["heater"].tolist()


class Broken(Plug):
    @staticmethod
    @rule
    def compute_local_reward(meter: Meter) -> float:
        return {"power": meter.power}["energy"]


def test_a_rule_that_fails_shows_the_user_s_line_and_nothing_generated() -> None:
    batch = BatchEnv(HeronEnv(SystemAgent("system_agent", Broken("plug_1")), compile=False), LANES)
    batch.reset(seed=0)
    with pytest.raises(KeyError) as caught:
        batch.step({})
    frames = traceback.extract_tb(caught.value.__traceback__)
    assert frames[-1].line == 'return {"power": meter.power}["energy"]' and frames[-1].filename == __file__
    assert not [frame for frame in frames if "heron_0" in frame.filename or frame.filename.startswith("<")]
    assert caught.value.__notes__ == ["in lane 0"]


class Choosy(FieldAgent):
    """Refuses in the middle of a step what is no number."""

    features = (Meter,)
    action = Continuous(-1.0, 1.0)

    def apply_action(self) -> None:
        self.action.set_values(np.nan if self.action.c[0] > 0.5 else 0.0)


def test_what_an_agent_refuses_half_way_asks_for_a_reset() -> None:
    batch = BatchEnv(HeronEnv(SystemAgent("system_agent", Choosy("plug_1"))), LANES)
    batch.reset(seed=0)
    with pytest.raises(InvalidAction, match="nan is no action"):
        batch.step({"plug": np.ones((LANES, 1, 1))})
    with pytest.raises(Exception, match="an error ended its last step or reset half-way"):
        batch.step({})


@pytest.mark.parametrize("compile", [False, True])
def test_a_reset_of_one_s_own_sees_in_a_batch_what_the_batch_hands_out(compile: bool):
    env, seen = make("heron/BatteryGrid-v0", compile=compile, num_batteries=3, max_steps=4), []

    class Watching(type(env)):  # type: ignore[misc]
        def reset(self, **options: Any) -> Any:
            seen.append(np.stack([*(found := super().reset(**options))[0].values()]))
            return found

    env.__class__ = Watching
    batch = BatchEnv(env, 2, seed=3)
    for _ in range(2):
        assert np.array_equal(batch.reset(options={"any": 1})[0]["battery"], seen[-2:])
        batch.step({})


def test_a_step_of_the_environment_that_a_batch_was_given_moves_its_lane_alone() -> None:
    env = make("heron/BatteryGrid-v0", compile=False)
    batch = BatchEnv(env, 3)
    batch.reset(seed=0)
    given = {name: np.full((3, len(agents), 1), 0.5) for name, agents in batch.groups.items()}
    for _ in range(2):
        batch.step(given)
    others = batch.state()[1:].copy()
    env.step({agent: np.full(1, 0.5) for agent in env.agents})
    assert np.array_equal(batch.state()[1:], others)
