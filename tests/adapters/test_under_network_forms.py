"""In which forms observations, actions, rewards and no-ops of black boxes come, and the specifications they leave."""

import copy
import json
import pickle
from typing import Any

import black_boxes
import gymnasium
import numpy as np
import pytest
from black_boxes import Bookkeeper, Walk, same
from gymnasium import spaces
from gymnasium.envs.registration import EnvSpec
from refusing import refuses

from heron_env import DrawnSchedule, Empirical, GilbertElliott, ScheduleConfig, under_network
from heron_env.adapters.network.noops import copied
from heron_env.errors import ConfigError, InvalidAction

assert black_boxes  # registers Walk-v0

# What is on its way is a copy, however deep it goes

ROW = np.dtype([("things", object), ("number", np.float64)])


def nested(things: list[Any]) -> dict[str, Any]:
    """Values in which one and the same list lies somewhere."""
    rows = np.zeros(2, ROW)
    rows["things"] = [things, None]
    masked = np.ma.MaskedArray(np.zeros(1, object), mask=[False])
    masked[0] = things
    boxed = np.empty((1, 1), object)
    boxed[0, 0] = things
    scalar = np.empty((), object)
    scalar[()] = things
    return {
        "array": boxed, "0-d": scalar, "rows": rows, "a row": rows[0], "recarray": rows.view(np.recarray),
        "masked": masked, "tuple": (things,), "dict": {"a": {"b": boxed}}, "list of arrays": [boxed, 1.0],
        "array of arrays": np.array([boxed, None], object), "dict of rows": {"a": (rows[0],)},
    }  # fmt: skip


def test_a_row_of_numbers_is_no_view():
    rows = np.zeros(2, [("x", float)])
    row = copied(rows[0])
    rows["x"] = 5.0
    assert row["x"] == 0.0


class Growing(gymnasium.Env[Any, Any]):
    """One and the same list, which grows, in observations, infos and all actions that it got."""

    observation_space = spaces.Box(-1, 1, (1, 1))
    action_space = spaces.Box(-1, 1, (1,))

    def __init__(self, form: str) -> None:
        self.form, self.things, self.told = form, [0], list[Any]()

    def _seen(self) -> Any:
        return nested(self.things)[self.form]

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        self.things[:], self.told = [0], []
        return self._seen(), {}

    def step(self, action: Any) -> Any:
        self.told.append(repr(action))
        self.things.append(len(self.things))
        return self._seen(), 0.0, False, False, {}


@pytest.mark.parametrize("form", nested([]))
def test_a_delayed_observation_does_not_change_on_its_way(form: str):
    env = under_network(Growing(form), ScheduleConfig(obs_delay=2.0))
    seen = [repr(env.reset(seed=0)[0])] + [repr(env.step(np.zeros(1))[0]) for _ in range(5)]
    bare = Growing(form)
    true = [repr(bare.reset()[0])] + [repr(bare.step(np.zeros(1))[0]) for _ in range(5)]
    assert seen == [true[max(0, boundary - 2)] for boundary in range(6)]


@pytest.mark.parametrize("form", ["rows", "masked", "dict of rows"])
def test_a_delayed_action_does_not_change_on_its_way(form: str):
    env, things = under_network(Growing(form), ScheduleConfig(act_delay=2.0)), [0]
    env.reset(seed=0)
    expected = list[str]()
    for number in range(6):
        expected.append(repr(nested(things)[form]))
        env.step(nested(things)[form])
        things.append(number)
    assert env.env.told[2:] == expected[:4]


@pytest.mark.parametrize("form", ["rows", "masked", "dict of rows"])
def test_what_is_recorded_or_traced_does_not_change_later(form: str):
    env = under_network(Growing(form), ScheduleConfig(obs_delay=1.0))
    run = env.run_event_driven({"*": lambda seen: np.zeros(1)}, seed=0, t_end=5.0, trace=True, record=("observations",))
    bare = Growing(form)
    true = [repr(bare.reset()[0])] + [repr(bare.step(np.zeros(1))[0]) for _ in range(5)]
    assert [repr(seen) for _, seen in run.observations["agent"]] == true[:4]
    assert [repr(r.payload.content) for r in run.trace if r.kind == "ObservationCopy"] == true[:5]


# Rewards


@pytest.mark.parametrize("reward", [np.float32(1.5), np.array(1.5), np.array([[1.5]]), [1.5]])
def test_a_reward_of_one_number_counts_in_whatever_form_it_comes(reward: Any):
    class Paid(Walk):
        def step(self, action: Any) -> Any:
            seen, _, *others = super().step(action)
            return (seen, reward, *others)

    env = under_network(Paid())
    assert env.run_event_driven({"*": lambda seen: np.zeros(2)}, seed=0).returns == {"agent": 12 * 1.5}
    env.reset(seed=0)
    assert same(env.step(np.zeros(2))[1], reward)  # stepped, it is the environment's own


@pytest.mark.parametrize("reward", [None, [], np.zeros(2), [1.0, 2.0], np.zeros((0, 1))])
def test_a_reward_of_no_number_or_more_is_refused(reward: Any):
    class Paid(Walk):
        def step(self, action: Any) -> Any:
            seen, _, *others = super().step(action)
            return (seen, reward, *others)

    with pytest.raises(
        ConfigError, match=r"the reward of 'agent' is .*: a run adds up numbers; weigh them by a wrapper"
    ):
        under_network(Paid()).run_event_driven({"*": lambda seen: np.zeros(2)}, seed=0)


# No-ops


@pytest.mark.parametrize(
    ("space", "noop", "expected"),
    [
        (spaces.Box(-1, 1, (1,)), 0, np.zeros(1, np.float32)),
        (spaces.Box(-1, 1, (1, 1)), 0.5, np.full((1, 1), 0.5, np.float32)),
        (spaces.Box(0, 255, (1,), np.uint8), 7, np.array([7], np.uint8)),
        (spaces.Box(-1, 1, ()), [0.5], np.float32(0.5)),
        (spaces.Discrete(3), [1], 1),
        (spaces.Discrete(3), 1.0, 1),
        (spaces.MultiDiscrete([3]), 2, np.array([2])),
        (spaces.MultiDiscrete([3], start=[4]), 5, np.array([5])),
        (spaces.MultiBinary(1), 1, np.array([1], np.int8)),
        (spaces.Dict(a=spaces.Box(-1, 1, (1,)), b=spaces.Discrete(2)), {"a": 0, "b": 1},
         {"a": np.zeros(1, np.float32), "b": 1}),
        (spaces.Tuple([spaces.Box(-1, 1, (1,)), spaces.Discrete(2)]), [0.5, [1]], (np.array([0.5], np.float32), 1)),
    ],
)  # fmt: skip
def test_a_number_stands_for_an_array_of_one_as_no_op(space: Any, noop: Any, expected: Any):
    bare = Walk()
    bare.action_space = space
    assert same(under_network(bare, noop=noop).network.noops.draw(0, None, 0), expected)


@pytest.mark.parametrize(
    ("space", "noop"),
    [
        (spaces.Box(-1, 1, (2,)), 0), (spaces.Box(-1, 1, (1,)), 2), (spaces.Box(0, 255, (1,), np.uint8), 0.5),
        (spaces.Box(0, 255, (1,), np.uint8), float("nan")), (spaces.Discrete(3), 1.5), (spaces.Discrete(3), "1"),
        (spaces.MultiDiscrete([3, 3]), 1), (spaces.MultiBinary(1), 2), (spaces.Dict(a=spaces.Discrete(2)), {"b": 0}),
        (spaces.Dict(a=spaces.Box(0, 1, (2,))), {"a": 0}), (spaces.Tuple([spaces.Discrete(2)]), [0, 0]),
    ],
)  # fmt: skip
def test_what_lies_outside_is_no_no_op(space: Any, noop: Any):
    bare = Walk()
    bare.action_space = space
    with refuses(ConfigError, f"under_network(noop=...): {noop!r} of 'agent' lies outside {space}"):
        under_network(bare, noop=noop)


# Specifications


def course(env: Any) -> Any:
    """All that it gives in some steps."""
    env.action_space.seed(3)
    return [env.reset(seed=2), *(env.step(env.action_space.sample()) for _ in range(8))]


SPECIFIED: dict[str, tuple[str, Any, dict[str, Any]]] = {
    "a config": ("CartPole-v1", ScheduleConfig(obs_delay=2.0, jitter_type="lognormal", jitter_ratio=0.5, loss=0.2),
        {"noop": np.int64(0)}),
    "by agent, a function": ("CartPole-v1", {"agent": ScheduleConfig(act_delay=1.0)},
        {"noop": lambda agent, space: space.n - 1, "observe_age": True, "dt": np.float32(0.5)}),
    "drawn": ("Pendulum-v1", DrawnSchedule(obs_delay=[1.0, 2.0, 3.0]), {"noop": np.array([0.5])}),
    "from data": ("Pendulum-v1", {"*": ScheduleConfig(obs_delay=Empirical([0.0, 1.0, 4.0]), loss=GilbertElliott(
        p_bad=0.2, p_good=0.4, loss_bad=1.0, loss_good=0.0, period=1.0))}, {"noop": {"agent": 1}}),
    "random": ("CartPole-v1", ScheduleConfig(obs_delay=1.0), {"noop": "random", "on_missing": "noop"}),
    "composite": ("Walk-v0", ScheduleConfig(act_delay=1.0), {"noop": {"turn": 2, "push": np.ones(1, np.float32)}}),
    "nothing": ("CartPole-v1", None, {}),
    "no entries": ("CartPole-v1", {}, {"parts": {}}),
}  # fmt: skip


@pytest.mark.parametrize("name", SPECIFIED)
def test_a_specification_goes_through_json_with_schedule_and_no_op(name: str):
    id, schedule, options = SPECIFIED[name]
    inner = {"kind": "dict"} if id == "Walk-v0" else {}
    env = under_network(gymnasium.make(id, disable_env_checker=True, **inner), schedule, **options)
    text = env.spec.to_json()
    assert env.spec.additional_wrappers[-1].name == "NetworkEnv" and json.loads(text)
    again = gymnasium.make(EnvSpec.from_json(text))
    assert again.spec.to_json() == text
    for other in (again, gymnasium.make(env.spec), copy.deepcopy(env), pickle.loads(pickle.dumps(env))):
        assert same(course(other), course(env))


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_many_of_one_specification_in_a_vector(mode: str):
    env = under_network(gymnasium.make("CartPole-v1"), ScheduleConfig(obs_delay=2.0), noop=0)
    many = gymnasium.make_vec(EnvSpec.from_json(env.spec.to_json()), num_envs=2, vectorization_mode=mode)
    many.reset(seed=5), env.reset(seed=6)
    for _ in range(5):
        seen, _, _, _, infos = many.step(np.array([1, 1]))
        observation, _, _, _, info = env.step(1)
        assert same(seen[1], observation) and infos["aoi"][1] == info["aoi"]
    many.close()


# A tensor with gradients


def test_a_tensor_with_gradients_is_refused_by_our_own_environments_too():
    torch = pytest.importorskip("torch")
    from heron_env import BatchEnv, make

    env = make("heron/BatteryGrid-v0", num_batteries=1)
    env.reset(seed=0)
    weight = torch.full((1,), 0.5, requires_grad=True)
    for action in (weight, weight * 0.5, [weight[0]]):
        with pytest.raises(
            InvalidAction, match=r"action of 'battery_1' is a tensor with gradients, .*; give tensor.detach"
        ):
            env.step({"battery_1": action})
    assert env.simulation.step_index == 0
    env.step({"battery_1": weight.detach()})
    batch = BatchEnv("heron/BatteryGrid-v0", 2, num_batteries=1)
    batch.reset(seed=0)
    with pytest.raises(InvalidAction, match="detach"):
        batch.step({"battery": torch.zeros((2, 1, 1), requires_grad=True)})


def test_a_parallel_environment_has_the_same_forms():
    env = under_network(
        Bookkeeper("discrete"), ScheduleConfig(act_delay=1.0), noop={"fox": [2], "hare_0": 1, "hare_1": 0.0}
    )
    env.reset(seed=0), env.step(dict.fromkeys(env.agents, 3))
    assert env.env.told == [{"fox": 2, "hare_0": 1, "hare_1": 0}]
