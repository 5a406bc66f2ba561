"""Errors inside foreign code (W12): nothing is half done after them, or only a reset goes on, which names the cause."""

import copy
import pickle
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
import pytest
from black_boxes import Bookkeeper, Painted, Walk, own, same
from gymnasium import spaces
from pettingzoo.utils.conversions import parallel_to_aec

from heron_env import ScheduleConfig, under_network
from heron_env.errors import ConfigError, InvalidAction, ResetNeeded

LATE = ScheduleConfig(obs_delay=0.7, act_delay=0.4, msg_delay=0.6, jitter_type="lognormal", jitter_ratio=0.8, loss=0.25)


class Failing(Walk):
    """Raises `error` in some steps, before it moves or after."""

    def __init__(self, error: BaseException, steps: tuple[int, ...] = (1,), *, after: bool = False, **of: Any) -> None:
        super().__init__(**of)
        self.error, self.failing, self.after, self.calls = error, set(steps), after, 0

    def step(self, action: Any) -> Any:
        self.calls += 1
        failing = self.calls - 1 in self.failing
        if failing and not self.after:
            raise self.error
        outcome = super().step(action)
        if failing:
            raise self.error
        return outcome


class Refusing(Bookkeeper):
    """Refuses what lies outside its space, before it moves."""

    def step(self, actions: Any) -> Any:
        for agent, action in actions.items():
            if not self.action_space(agent).contains(action):
                raise RuntimeError(f"{agent} can't do {action!r}")
        return super().step(actions)


def refused_or(call: Callable[[], Any]) -> Any:
    """What it gives, or the words of its error."""
    try:
        return call()
    except Exception as error:  # noqa: BLE001  whatever the environment raises
        return type(error).__name__, str(error)


def law_w12_refusals() -> None:
    actions = [0, 7, 1, "left", None, 2, -3, 3]
    bare, boxed = Walk("discrete"), under_network(Walk("discrete"))
    bare.reset(seed=1), boxed.reset(seed=1)
    for action in actions:
        a, b = (refused_or(lambda env=env, action=action: env.step(action)) for env in (bare, boxed))
        assert same(a[:4], b[:4]) and (len(a) == 2 or same({"": a[4]}, own({"": b[4]})))
    assert same(bare.book.told, boxed.env.book.told)


def test_w12_after_a_refused_action_the_next_one_counts_as_on_the_bare_environment():
    law_w12_refusals()


def test_w12_an_action_of_the_space_that_is_refused_is_not_carried_out_later():
    env = under_network(Failing(gymnasium.error.InvalidAction("no"), (1, 2)))
    env.reset(seed=0)
    for step in range(5):
        outcome = refused_or(lambda step=step: env.step(np.full(2, step / 10)))
        assert same(outcome, ("InvalidAction", "no")) == (step in (1, 2))
    assert [told["walker"][0] for told in env.env.book.told] == [0.0, 0.3, 0.4]


@pytest.mark.parametrize(
    "schedule", [ScheduleConfig(), ScheduleConfig(obs_delay=1.0), {"a": LATE, "b": ScheduleConfig()}]
)
def test_w12_what_was_refused_leaves_no_trace_in_the_network(schedule: Any):
    """The course with refused steps is the course without: messages, draws, ages, counts."""
    plain, tried = (under_network(Refusing("discrete", ("a", "b"), steps=30), schedule, noop=0) for _ in range(2))
    plain.reset(seed=4), tried.reset(seed=4)
    refused = 0
    for step in range(30):
        wanted = {"a": step % 3, "b": step % 4}
        if "b" in dict(tried._episode.deciding()):
            with pytest.raises(RuntimeError, match="b can't do 'up'"):
                tried.step(wanted | {"b": "up"})
            refused += 1
        assert same(plain.step(wanted), tried.step(wanted))
        assert tried._episode.broker.total() == plain._episode.broker.total()
    assert refused > 20


@pytest.mark.parametrize(
    ("error", "after"),
    [(RuntimeError("sensor"), False), (KeyboardInterrupt(), True), (SystemExit(3), False), (ValueError("x"), True)],
)
def test_w12_after_an_error_that_is_no_refusal_only_a_reset_goes_on(error: BaseException, after: bool):
    env = under_network(Failing(error, after=after), ScheduleConfig(act_delay=1.0))
    env.reset(seed=0)
    env.step(np.zeros(2))
    with pytest.raises(type(error)):
        env.step(np.zeros(2))
    for other in (env, copy.deepcopy(env), pickle.loads(pickle.dumps(env))):
        with pytest.raises(
            ResetNeeded, match=rf"step\(\): the last step\(\) ended in {type(error).__name__}: .*; call res"
        ):
            other.step(np.zeros(2))
    env.reset(seed=0)
    fresh = under_network(Walk(), ScheduleConfig(act_delay=1.0))
    fresh.reset(seed=0)
    for step in range(6):
        assert same(env.step(np.full(2, step / 10)), fresh.step(np.full(2, step / 10)))


def test_w12_what_was_refused_on_its_arrival_ends_the_episode_as_nobody_can_take_it_back():
    env = under_network(Walk("discrete"), ScheduleConfig(act_delay=1.0), noop=0)
    env.reset(seed=0), env.step(9)
    with pytest.raises(AssertionError, match="walker"):
        env.step(1)
    with pytest.raises(ResetNeeded, match=r"the last step\(\) ended in AssertionError: \('walker', 9\)"):
        env.step(1)


def test_w12_a_held_action_that_is_refused_now_ends_the_episode():
    env = under_network(Failing(ValueError("not now")), ScheduleConfig(tick_interval=3.0))
    env.reset(seed=0), env.step(np.zeros(2))
    with pytest.raises(ValueError, match="not now"):
        env.step(np.zeros(2))
    with pytest.raises(ResetNeeded, match=r"the last step\(\) ended in ValueError: not now"):
        env.step(np.zeros(2))


@pytest.mark.parametrize("broken", ["reward", "mask", "agents", "ended"])
def test_w12_after_an_outcome_that_cannot_be_used_only_a_reset_goes_on(broken: str):
    class Odd(Bookkeeper):
        odd = False

        def step(self, actions: Any) -> Any:
            seen, rewards, terminated, truncated, infos = super().step(actions)
            if self.odd and broken == "reward":
                raise TypeError("no reward")
            if self.odd and broken == "mask":
                infos["fox"]["action_mask"] = [1, 2, 3, 4, 5, 6, 7]
            if self.odd and broken == "agents":
                self.agents = [*self.agents, "wolf"]
                seen["wolf"] = seen["fox"]
            if self.odd and broken == "ended":
                terminated["fox"] = True
            return seen, rewards, terminated, truncated, infos

    bare = Odd("discrete")
    env = under_network(bare)
    env.reset(seed=0)
    bare.odd = True
    with pytest.raises((ConfigError, TypeError)) as caught:
        env.step(dict.fromkeys(env.agents, 0))
    bare.odd = False
    with pytest.raises(ResetNeeded, match=rf"the last step\(\) ended in {caught.type.__name__}: "):
        env.step(dict.fromkeys(env.agents, 0))
    env.reset(seed=0), env.step(dict.fromkeys(env.agents, 0))


def test_w12_an_error_in_reset_is_named_and_arguments_that_are_refused_change_nothing():
    class Unwilling(Walk):
        willing = True

        def reset(self, **of: Any) -> Any:
            if not self.willing:
                raise OSError("no licence")
            return super().reset(**of)

    env = under_network(Unwilling())
    env.reset(seed=0), env.step(np.zeros(2))
    zeros, uneven = {"*": lambda seen: seen[:2] * 0}, ScheduleConfig(phase=0.5)
    for wrong in (
        lambda: env.reset(seed=-1),
        lambda: env.run_event_driven({}, seed=0),
        lambda: env.run_event_driven(zeros, seed=0, schedule=uneven),
    ):
        with pytest.raises(ConfigError):
            wrong()
        env.step(np.zeros(2))  # the episode goes on
    env.env.willing = False
    with pytest.raises(OSError, match="no licence"):
        env.reset()
    with pytest.raises(
        ResetNeeded, match=r"step\(\): the last reset\(\) ended in OSError: no licence; call reset\(\) first"
    ):
        env.step(np.zeros(2))


class Thrown(BaseException):
    """Whatever a policy may raise."""


@pytest.mark.parametrize(
    ("build", "error"),
    [(Walk, ValueError("tired")), (Bookkeeper, Thrown("tired")),
     (lambda: parallel_to_aec(Bookkeeper()), KeyboardInterrupt("tired"))],
)  # fmt: skip
def test_w12_after_an_aborted_run_nobody_steps_on_in_it(build: Any, error: BaseException):
    def tire(seen: Any) -> Any:
        if seen[0] >= 3:
            raise error
        return np.zeros(2)

    env = under_network(build(), LATE)
    env.reset(seed=0)
    for run in (env.run_synchronous, env.run_event_driven):
        with pytest.raises(type(error), match="tired"):
            run({"*": tire}, seed=1)
        with pytest.raises(ResetNeeded, match=rf"the last run ended in {type(error).__name__}: tired; call reset\(\)"):
            env.step({})
    env.reset(seed=0)


def test_w12_after_a_film_that_fails_nobody_steps_on_in_its_run():
    class Torn(Painted):
        def render(self) -> Any:
            return super().render() if self.boundary < 3 else None

    bare = Torn()
    bare.render_mode = "rgb_array"
    env = under_network(bare)
    with pytest.raises(ConfigError, match="draws no frames"):
        env.run_event_driven({"*": lambda seen: np.zeros(2)}, seed=0, record=("frames",))
    with pytest.raises(ResetNeeded, match="the last run ended in ConfigError"):
        env.step({})


# Actions that can't travel


class Loose:
    """Nothing that can be copied."""

    def __deepcopy__(self, memo: Any) -> Any:
        raise OSError("a socket")


def test_an_action_that_cannot_be_copied_is_refused_and_changes_nothing():
    torch = pytest.importorskip("torch")
    weight = torch.ones(2, requires_grad=True)
    env = under_network(Walk(), ScheduleConfig(act_delay=1.0))
    env.reset(seed=0)
    with pytest.raises(InvalidAction, match=r"the action of 'agent' can't be copied: OSError: a socket"):
        env.step(Loose())
    for action in (weight, weight * 0.5, [weight[0], 0.5], {"a": weight}, (weight.sum(),)):
        with pytest.raises(InvalidAction, match=r"is a tensor with gradients, which actions do not carry; give t"):
            env.step(action)
        with pytest.raises(InvalidAction, match=r"give tensor.detach\(\)"):
            under_network(Walk()).run_event_driven({"*": lambda seen, action=action: action}, seed=0)
    env.step(weight.detach().numpy() * 0.5), env.step(np.ones(2))
    assert env.env.book.told[1]["walker"].tolist() == [0.5, 0.5]


class Lists(gymnasium.Env[Any, Any]):
    """Its actions are sequences, whose mask lists no choices; it may fail after it has moved."""

    observation_space, action_space = spaces.Discrete(9), spaces.Sequence(spaces.Discrete(2))

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        self.moved, self.fails = 0, False
        return 0, {"action_mask": (None, np.ones(2, np.int8))}

    def step(self, action: Any) -> Any:
        self.moved += 1
        if self.fails:
            raise RuntimeError("sensor")
        return self.moved, 1.0, False, False, {"action_mask": (None, np.ones(2, np.int8))}


@pytest.mark.parametrize("delay", [0.0, 1.0])
def test_w8_a_mask_that_lists_no_choices_forbids_none_and_makes_no_error_a_refusal(delay: float):
    env = under_network(Lists(), ScheduleConfig(act_delay=delay), noop=())
    env.reset(seed=0)
    assert [env.step((1, 1))[0] for _ in range(2)] == [1, 2]
    env.env.fails = True
    with pytest.raises(RuntimeError, match="sensor"):
        env.step((1, 1))
    with pytest.raises(ResetNeeded, match="RuntimeError: sensor"):
        env.step((1, 1))
