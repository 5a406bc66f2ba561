"""A batch in rough hands: wrong arguments, errors half-way, results that their owner changes, copies."""

import copy
import pickle
import threading
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch

from heron_env import (
    BatchEnv,
    Continuous,
    FeatureProvider,
    FieldAgent,
    HeronEnv,
    SystemAgent,
    Vector,
    make,
    quantity,
    registered,
    rule,
)
from heron_env.errors import ConfigError, HeronError, InvalidAction, ResetNeeded, RuleError, RunInterrupted

LANES = 3


class Tank(FeatureProvider):
    level: float = quantity(default=0.5, low=0.0, high=1.0)


class Valve(FieldAgent):
    features = (Tank,)
    action = Continuous(-1.0, 1.0)

    @staticmethod
    @rule(writes=Tank.level)
    def apply_action(action: Vector) -> float:
        return 0.5 + 0.25 * action[0]

    @staticmethod
    @rule
    def compute_local_reward(tank: Tank) -> float:
        return tank.level


class Plant(HeronEnv):
    fails = False

    def finish(self, world: Any) -> None:
        if Plant.fails and world.lanes == 1:
            raise ValueError("leak")


def plant(compile: bool = False, **options: Any) -> Plant:
    return Plant(SystemAgent("system_agent", Valve("valve")), max_steps=4, compile=compile, **options)


def batch(**options: Any) -> BatchEnv:
    made = BatchEnv(plant, LANES, **options)
    made.reset(seed=0)
    return made


@pytest.fixture
def leak(monkeypatch: pytest.MonkeyPatch) -> Callable[[bool], None]:
    return lambda on: monkeypatch.setattr(Plant, "fails", on)


ACTIONS = {"valve": np.full((LANES, 1, 1), 0.4)}


def test_what_a_step_returns_may_be_changed() -> None:
    env = batch()
    for _ in range(3):
        observations, rewards, *_ = env.step(ACTIONS)
        assert observations["valve"][0, 0, 0] == np.float32(0.6) and rewards["valve"][0, 0] == 0.6
        observations["valve"] = observations["valve"] * 0.0  # a careless normalisation
        rewards.clear()


@pytest.mark.parametrize("autoreset", ["same_step", "next_step", "disabled"])
@pytest.mark.parametrize("compile", [False, True])
def test_after_an_error_half_way_only_a_reset_goes_on(
    compile: bool, autoreset: Any, leak: Callable[[bool], None]
) -> None:
    env = batch(compile=compile, autoreset=autoreset)
    leak(True)
    with pytest.raises(ValueError, match="leak") as caught:
        env.step(ACTIONS)
    assert caught.value.__notes__ == ["in finish() of lane 1"]
    leak(False)
    with pytest.raises(ResetNeeded, match="lane 0: an error ended its last step or reset half-way"):
        env.step(ACTIONS)
    env.reset(mask=np.array([True, False, True]))
    with pytest.raises(ResetNeeded, match="lane 1: an error ended"):
        env.step(ACTIONS)
    env.reset(seed=0)
    assert env.step(ACTIONS)[1]["valve"].tolist() == [[0.6]] * LANES


def test_actions_that_are_no_mapping() -> None:
    for given in [None, [1], np.zeros((LANES, 1, 1))]:
        with pytest.raises(InvalidAction, match=r"step\(\) takes a mapping \{group: actions\} for \['valve'\]"):
            batch().step(given)


def test_actions_that_are_no_array() -> None:
    for given, words in [
        (torch.zeros(LANES, 1, 1, requires_grad=True), r"of group 'valve' is a tensor with gradients, .*detach\(\)"),
        (torch.zeros(LANES, 1, 1, dtype=torch.bfloat16), "the actions of group 'valve' are no array"),
        ([[1], [2, 3]], "the actions of group 'valve' are no array"),
    ]:
        with pytest.raises(InvalidAction, match=words):
            batch().step({"valve": given})


def test_neither_id_nor_environment() -> None:
    for env in [None, 3]:
        with pytest.raises(ConfigError, match="give a registered id, an environment, or a function that builds one"):
            BatchEnv(env, 2)


def test_a_function_that_builds_no_environment() -> None:
    with pytest.raises(ConfigError, match="returned None; let it return a HeronEnv"):
        BatchEnv(lambda: None, 2)  # type: ignore[arg-type,return-value]


def test_numpy_counts() -> None:
    assert BatchEnv(plant, np.int64(2)).num_envs == 2  # type: ignore[arg-type]


def test_copies_are_refused() -> None:
    for copied in [copy.deepcopy, copy.copy, pickle.dumps]:
        with pytest.raises(ConfigError, match="a BatchEnv can't be copied or pickled"):
            copied(batch())


class Answers:
    """A policy whose forward_batch gives what it was made with."""

    def __init__(self, answers: Any) -> None:
        self._answers = answers

    def forward(self, observation: Any) -> Any:
        return 0.0

    def forward_batch(self, observations: Any) -> Any:
        return self._answers


def refused(kind: type[HeronError], call: Callable[[], Any]) -> str:
    with pytest.raises(kind) as caught:
        call()
    return str(caught.value)


@pytest.mark.parametrize("compile", [False, True])
@pytest.mark.parametrize(
    ("answers", "message"),
    [
        (np.zeros((1, 1)), "returned shape (1, 1) for 3 observations, expected (3, 1)"),
        (np.zeros((3, 2)), "returned shape (3, 2) for 3 observations, expected (3, 1)"),
        (None, "returned shape () for 3 observations, expected (3, 1)"),
        ("full", "returned no numbers (could not convert string to float: 'full'); return an array of shape (3, 1)"),
    ],
    ids=["too few rows", "too many elements", "nothing", "a word"],
)
def test_answers_of_another_shape(compile: bool, answers: Any, message: str) -> None:
    env = batch(compile=compile, others={"valve": Answers(answers)})
    told = refused(InvalidAction, lambda: env.step({}))
    assert told == f"forward_batch() of Answers for the group 'valve' {message}"
    assert env.steps.tolist() == [0] * LANES
    env.step(ACTIONS)


def test_answers_without_the_last_axis_are_fine() -> None:
    assert batch(others={"valve": Answers([0.4] * LANES)}).step({})[1]["valve"].tolist() == [[0.6]] * LANES


def test_others_that_are_no_mapping() -> None:
    assert refused(ConfigError, lambda: batch(others=[3])) == (
        "others=[3]: must be a mapping; write {'*': policy} for one that all share"
    )


def test_masked_actions_are_refused_and_not_unmasked() -> None:
    masked = np.ma.masked_array(np.zeros((LANES, 1, 1)), np.ones((LANES, 1, 1)))
    remedy = "is a masked array; fill it: values.filled(0.0)"
    assert refused(InvalidAction, lambda: batch().step({"valve": masked})) == (
        f"step(): the array of actions of group 'valve' {remedy}"
    )
    for compile in (False, True):
        env = plant(compile)
        env.reset(seed=0)
        assert refused(InvalidAction, lambda env=env: env.step({"valve": masked[0, 0]})) == (  # type: ignore[misc]
            f"action of 'valve' {remedy}"
        )


@pytest.mark.parametrize("name", ["over", "steps", "returns", "lengths"])
@pytest.mark.parametrize("compile", [False, True])
def test_what_a_batch_counts_can_only_be_read(compile: bool, name: str) -> None:
    env = batch(compile=compile)
    with pytest.raises(ValueError, match="read-only"):
        getattr(env, name)[:] = 1
    for _ in range(4):
        env.step(ACTIONS)
    assert env.lengths.tolist() == [4] * LANES  # the agents' own arrays are as writeable as ever
    assert env.over.all()


def test_a_lane_that_there_is_not() -> None:
    env = batch()
    for number in (3, -4, "1", True, 1.0):
        assert refused(ConfigError, partial(env.lane, number)) == f"lane({number!r}): there are the lanes 0 to 2"
    assert env.lane(-1).world.lanes == 2


@pytest.mark.parametrize("compile", [False, True])
def test_options_that_are_no_mapping(compile: bool) -> None:
    message = "reset(options=3): must be a mapping {name: value}, or None"
    assert refused(ConfigError, lambda: plant(compile).reset(options=3)) == message  # type: ignore[arg-type]
    assert refused(ConfigError, lambda: batch(compile=compile).reset(options=3)) == message  # type: ignore[arg-type]


def test_an_option_of_reset_that_a_shipped_world_does_not_read_is_refused_by_name() -> None:
    for id in (id for id in registered() if id.startswith("heron/")):
        env = make(id)
        assert env.reset_options is not None
        for name in {"agents", "landmarks", "day", "seed", "dissturbances"} - {*env.reset_options}:
            message = refused(ConfigError, partial(env.reset, seed=0, options={name: 1}))
            assert message.startswith(f"reset(options={{{name!r}: ...}}): {type(env).__name__} understands ")
        misspelt = partial(env.reset, options={"dissturbances": []})
        assert "Did you mean 'disturbances'?" in refused(ConfigError, misspelt)


@pytest.mark.parametrize("compile", [False, True])
def test_an_unknown_option_of_reset_is_refused_in_batches_and_begins_nothing(compile: bool) -> None:
    one, many = plant(compile), batch(compile=compile)
    many.reset(seed=4)
    before = many.state().tobytes()
    for reset in (one.reset, many.reset):
        assert "'level': ...}): Plant understands 'disturbances'" in refused(
            ConfigError,
            lambda: reset(options={"level": 0.5}),  # noqa: B023
        )
    assert many.state().tobytes() == before
    one.reset(options={"options": 1, "disturbances": ()})  # as PettingZoo's tests call everybody


@pytest.mark.e2e
def test_an_unknown_option_of_one_lane_is_refused_on_the_event_clock() -> None:
    lanes = BatchEnv("heron/Spread-v0", 2, clock="event", compile=True)
    assert "Did you mean 'agents'?" in refused(ConfigError, lambda: lanes.reset(options=[{}, {"agent": []}]))


def test_a_reset_of_one_s_own_takes_what_it_says_or_anything() -> None:
    class Own(HeronEnv):
        def reset(self, seed: Any = None, options: Any = None) -> Any:
            return super().reset(seed, options)

    class Says(Own):
        reset_options = ("level",)

    assert (Own.reset_options, Says.reset_options, HeronEnv.reset_options) == (None, ("level",), ())
    own, says = (kind(SystemAgent("system_agent", Valve("valve_1", Tank())), max_steps=2) for kind in (Own, Says))
    own.reset(options={"anything": 1})
    says.reset(options={"level": 0.5})
    assert "'anything': ...}): Says understands 'level', 'disturbances'" in refused(
        ConfigError, lambda: says.reset(options={"anything": 1})
    )


@pytest.mark.parametrize("compile", [False, True])
def test_lanes_without_a_seed_of_their_own_go_on(compile: bool) -> None:
    env = batch(compile=compile)
    env.reset(seed=[None, 7, None])
    worlds = [env.lane(lane).world for lane in range(LANES)]
    assert [(world.seed, world.episode) for world in worlds] == [(0, 1), (7, 0), (2, 1)]


def test_seeds_that_are_none() -> None:
    for seed in [[None, None], [1, 2, -3], [1, 2, 0.5], "abc", [1, 2, 2**70]]:
        told = refused(ConfigError, partial(batch().reset, seed=seed))
        assert told == f"reset(seed={seed!r}): give a whole number >= 0, or 3 of them, each below 2**64"


def test_any_seeds_of_64_bits_are_taken_whatever_numpy_makes_of_them():
    many = [7, 2**63 + 5, 2**64 - 1]
    seeds = [many, [None, np.int64(7), None], [7, np.uint64(2**63 + 5), None], np.array(many, dtype=np.uint64)]
    for given in seeds:
        env = batch()
        env.reset(seed=given)
        for lane, seed in enumerate(given):
            assert seed is None or env.lane(lane).world.seed == seed


def overdone(kind: type[Plant], compile: bool) -> BatchEnv:
    """Own policies, of which the second that is asked does the illegal."""
    asked = 0

    def decide(observation: Any) -> Any:
        nonlocal asked
        asked += 1
        return 9.0 if asked == 2 else 0.4

    valve = lambda: Valve("valve", policy=decide)  # noqa: E731
    env = BatchEnv(lambda: kind(SystemAgent("top", valve()), max_steps=4, compile=compile), LANES)
    env.reset(seed=0)
    return env


@pytest.mark.parametrize("compile", [False, True])
def test_an_illegal_own_action_is_refused_before_anything_moves(compile: bool) -> None:
    env = overdone(Plant, compile)
    assert refused(InvalidAction, lambda: env.step({})) == (
        "lane 1: action of 'valve': [9.0] lies outside [-1.0, 1.0]; clip it, or rescale your policy"
    )
    assert env.steps.tolist() == [0] * LANES
    assert env.step({})[1]["valve"].tolist() == [[0.6]] * LANES


class Stepping(Plant):
    def step(self, actions: Any) -> Any:
        return super().step(actions)


def test_with_steps_of_their_own_an_illegal_own_action_half_way_asks_for_a_reset() -> None:
    env = overdone(Stepping, False)
    with pytest.raises(InvalidAction) as caught:
        env.step({})
    assert str(caught.value) == "action of 'valve': [9.0] lies outside [-1.0, 1.0]; clip it, or rescale your policy"
    assert caught.value.__notes__ == ["in lane 1; the lanes before it have stepped already: reset() all"]
    with pytest.raises(ResetNeeded, match="lane 0: an error ended its last step or reset half-way"):
        env.step({})
    env.reset(seed=0)
    assert env.step({})[1]["valve"].tolist() == [[0.6]] * LANES
    with pytest.raises(InvalidAction):
        env.step({"valve": np.full((LANES, 1, 1), 9.0)})
    env.step({})  # found before anything moved: nothing has changed
    assert env.steps.tolist() == [2] * LANES


class Signalling(Plant):
    batched = True

    def finish(self, world: Any) -> None:
        """Nothing."""

    def training_rewards(self, world: Any) -> Any:
        return np.zeros(7)


class Spilling(Plant):
    batched = True
    written: Any = 0.0

    def finish(self, world: Any) -> None:
        world[Valve].Tank.level = self.written


class Putting(Spilling):
    def finish(self, world: Any) -> None:
        world.put(np.array([0]), self.written)


class Overwriting(Spilling):
    def finish(self, world: Any) -> None:
        world.rows[:, 0] = self.written


def hooked(kind: type[Plant], written: Any = None) -> BatchEnv:
    made = BatchEnv(kind(SystemAgent("system_agent", Valve("valve")), max_steps=4, compile=True), LANES)
    made.env.written = written  # type: ignore[attr-defined]
    made.reset(seed=0)
    return made


def test_rewards_for_training_of_another_shape() -> None:
    env = hooked(Signalling)
    env.at_close.append(lambda: env.training_rewards("valve"))  # type: ignore[arg-type,return-value]
    assert refused(RuleError, lambda: env.step(ACTIONS)) == (
        "Signalling.training_rewards returned the shape (7,), expected (3, 1): (lanes, possible agents); "
        "return one number for each"
    )


def test_a_batched_hook_that_writes_another_shape() -> None:
    hooked(Spilling, np.zeros((LANES, 1))).step(ACTIONS)
    with pytest.raises(ValueError, match="could not broadcast") as caught:
        hooked(Spilling, np.zeros(5)).step(ACTIONS)
    assert caught.value.__notes__ == ["in finish() of all lanes: columns are [lanes, agents], globals [lanes, 1]"]
    hooked(Putting, np.zeros((LANES, 1))).step(ACTIONS)
    assert refused(RuleError, lambda: hooked(Putting, np.zeros((LANES, 2))).step(ACTIONS)) == (
        "world.put(columns, values): values have the shape (3, 2), expected (3, 1)"
    )


@pytest.mark.parametrize(("compile", "what"), [(False, "batch"), (True, "compiled batch")])
@pytest.mark.parametrize("name", ["step", "get_state", "set_state"])
def test_a_lane_of_a_batch_can_only_be_looked_at(name: str, compile: bool, what: str) -> None:
    lane = batch(compile=compile).lane(1)
    assert refused(ConfigError, lambda: getattr(lane, name)({})) == (
        f"{name}(): a lane of a {what} can only be looked at; "
        "build the environment with the lane's seed to have one of your own"
    )
    with pytest.raises(ConfigError, match=rf"get_state\(\): a lane of a {what}"):
        copy.deepcopy(lane)


def test_what_a_batched_hook_writes_into_the_truth_itself_is_clipped_too() -> None:
    env = hooked(Overwriting, 7.0)
    env.step(ACTIONS)
    assert env.env.simulation.model.layout.high[0] == 1.0 and np.all(env._engine.truth[:, 0] == 1.0)


@pytest.mark.parametrize("clock", ["synchronous", pytest.param("event", marks=pytest.mark.e2e)])
@pytest.mark.parametrize("other", [True, False], ids=["another thread", "the same"])
def test_who_moves_a_batch_moves_it_alone(clock: str, other: bool) -> None:
    """The second is refused and changes nothing, whatever it calls; the first comes to its end as if nothing was."""
    said: list[str] = []
    meddling: list[Any] = []

    class Watched(Plant):
        def finish(self, world: Any) -> None:
            for trespass in meddling:
                thread = threading.Thread(target=refused, args=(trespass,))
                if not other:
                    refused(trespass)
                    continue
                thread.start()
                thread.join()

    def refused(trespass: Any) -> None:
        with pytest.raises(RunInterrupted) as caught:
            trespass()
        said.append(str(caught.value))

    def build() -> Any:
        return BatchEnv(
            Watched(SystemAgent("system_agent", Valve("valve")), max_steps=3, compile=True),
            1,
            clock=clock,
            autoreset="disabled",
        )

    def played(batch: Any) -> Any:
        if clock == "synchronous":
            batch.reset()
            return [batch.step({"valve": np.full((1, 1, 1), 0.5)})[1]["valve"].tolist() for _ in range(3)]
        rows = batch.begin()
        while len(rows):
            rows = batch.answer(np.full((len(rows), 1), 0.5))
        return batch.result(0).rewards

    expected, batch = played(build()), build()
    calls = {"reset()": batch.reset, "step()": lambda: batch.step({})}
    if clock == "event":
        calls = {"reset()": batch.begin, "answer()": lambda: batch.answer(None), "result()": lambda: batch.result(0)}
    meddling += calls.values()
    assert played(batch) == expected
    driving = "answer()" if clock == "event" else "step()"
    own = "BatchEnv(...), with the same arguments"
    why = f"called inside {driving} of the same batch; plan on a copy, made before: model = {own}"
    if other:
        why = f"another thread is in {driving} of this batch; give each thread its own: {own}"
    assert said == [f"{call}: {why}" for call in calls] * 3
