"""One run, one owner (T21): each function raises AssertionError where that is broken, whoever calls it."""

import copy
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np
from laws.checks import RECORD, assert_same_course
from small_worlds import LawEnv
from strategies import Recipe

from heron_env import HeronEnv
from heron_env.errors import RunInterrupted

Call = Callable[[HeronEnv], Any]
Run = Callable[..., Any]


def idle(env: HeronEnv) -> dict[str, Any]:
    """Policies that do nothing."""
    noops = {agent: env.simulation.model.specs[env.hierarchy.index[agent]].noop for agent in env.possible_agents}
    return {agent: lambda vector, noop=noop: noop for agent, noop in noops.items()}


CALLS: dict[str, Call] = {
    "reset()": lambda env: env.reset(seed=5),
    "step()": lambda env: env.step({}),
    "run_synchronous()": lambda env: env.run_synchronous(idle(env)),
    "run_event_driven()": lambda env: env.run_event_driven(idle(env)),
    "start_event_driven()": lambda env: env.start_event_driven(idle(env)),
}
"""Whatever takes an environment away from the run that it is on."""
SYNC, EVENT = HeronEnv.run_synchronous, HeronEnv.run_event_driven


class Meddler:
    """Policies that do `meddle(env)` before each decision is made by another; `own` of agents with their own, too."""

    def __init__(self, recipe: Recipe, env: LawEnv, meddle: Call, *, own: bool = False) -> None:
        self.env, self.meddle, self.busy = env, meddle, False
        self.policies = {agent: self._wrapped(policy) for agent, policy in recipe.policies(env).items()}
        for agent in env.hierarchy.agents if own else ():
            if agent.policy is not None:
                agent.policy = self._wrapped(agent.policy)

    def _wrapped(self, policy: Any) -> Any:
        def decide(vector: Any) -> Any:
            kept = vector.copy()
            if not self.busy:  # a look-ahead asks agents' own policies, who do not look ahead once more
                self.busy = True
                try:
                    self.meddle(self.env)
                finally:
                    self.busy = False
            return policy(kept)

        return decide


def some_actions(env: HeronEnv, salt: int) -> dict[str, Any]:
    """Actions for some of the agents, different for each `salt`."""
    chosen = {}
    for number, agent in enumerate(env.agents):
        space = env.action_space(agent)
        space.seed(7 * salt + number)
        if (salt + number) % 3:
            chosen[agent] = space.sample()
    return chosen


def look_ahead(steps: int, times: int) -> Call:
    """Keep the state, try `steps` steps, restore it; `times` over."""

    def look(env: HeronEnv) -> None:
        state = env.get_state()
        for salt in range(times):
            for number in range(steps):
                if env.agents:
                    env.step(some_actions(env, 10 * salt + number))
            env.set_state(state)

    return look


def plan_on(model: HeronEnv, steps: int) -> Call:
    """Bring a copy to where the environment stands, and try `steps` steps there."""

    def plan(env: HeronEnv) -> None:
        model.set_state(env.get_state())
        for number in range(steps):
            if model.agents:
                model.step(some_actions(model, number))
        assert model.simulation.step_index > env.simulation.step_index, "the copy did not move"

    return plan


def same_run(recipe: Recipe, schedule: Any, run: Run, meddle: Call, seed: int, own: bool, **options: Any) -> Any:
    """`run` with `meddle` in every decision is the run without, bit for bit. The environment it ran on."""
    alone, env = recipe.build(schedule), recipe.build(schedule)
    a = run(alone, recipe.policies(alone), seed=seed, record=RECORD, **options)
    policies = Meddler(recipe, env, meddle, own=own).policies
    b = run(env, policies, seed=seed, record=RECORD, **options)
    assert_same_course(a, b)
    assert alone.simulation.truth.tobytes() == env.simulation.truth.tobytes(), "the final states differ"
    assert alone.simulation.alive == env.simulation.alive
    assert alone.agents == env.agents
    return env


def check_look_ahead(recipe: Recipe, schedule: Any = None, steps: int = 2, times: int = 1, seed: int = 0) -> None:
    """Legal look-ahead changes nothing: in a run's decisions, and in those that step() asks agents for."""
    env = same_run(recipe, schedule, SYNC, look_ahead(steps, times), seed, True)
    alone = recipe.build(schedule)
    alone.reset(seed=seed)
    env.reset(seed=seed)
    policies = Meddler(recipe, env, look_ahead(steps, times)).policies  # nobody's run: the loop is the caller's
    for number in range(recipe.max_steps):
        if not env.agents:
            break
        for agent in policies.keys() & {*env.agents}:
            policies[agent](np.zeros(env.observation_space(agent).shape))
        outcomes = [e.step(some_actions(e, number)) for e in (alone, env)]
        assert repr(outcomes[0]) == repr(outcomes[1]), "a step came out otherwise"


def check_planning_on_a_copy(recipe: Recipe, schedule: Any = None, steps: int = 2, seed: int = 0) -> None:
    """A copy brought to where the run stands can be stepped, which does not touch the run."""
    same_run(recipe, schedule, SYNC, plan_on(recipe.build(schedule), steps), seed, True)


def check_trespass(recipe: Recipe, call: str, run: Run, seed: int = 0) -> None:
    """Taking the environment away inside a decision raises in that call, and nothing has changed."""
    refused = 0

    def meddle(env: HeronEnv) -> None:
        nonlocal refused
        before = env._ownership.mark
        try:
            CALLS[call](env)
        except RunInterrupted as error:
            refused += 1
            assert str(error).startswith(f"{call}: called inside {run.__name__}() of the same environment; ")
            assert "model = copy.deepcopy(env)" in str(error)
            assert env._ownership.mark == before
        else:
            raise AssertionError(f"{call} was let through")

    own = run is SYNC
    same_run(recipe, None, run, meddle, seed, own)
    assert refused >= recipe.max_steps


def keep_and_step(env: HeronEnv) -> None:
    env.get_state()
    env.step({})


class OldState:
    """Restores what it kept one step earlier, and steps on from there: as many steps as the run, another way."""

    def __init__(self) -> None:
        self.kept: Any = None

    def __call__(self, env: HeronEnv) -> None:
        state = env.get_state()
        if self.kept is not None and self.kept["step"] < state["step"]:
            env.set_state(self.kept)
            env.step(some_actions(env, 1))
        self.kept = state


def fail_half_way(env: HeronEnv) -> None:
    """A step of a look-ahead that ends in an error, which nobody hears of."""
    env.get_state()
    substep = env.simulation.substep

    def torn(number: int) -> None:
        substep(number)
        raise ArithmeticError

    env.simulation.substep = torn  # type: ignore[method-assign]
    with suppress(ArithmeticError):
        env.step({})
    env.simulation.substep = substep  # type: ignore[method-assign]


def another_state(env: HeronEnv) -> None:
    """The state of an environment that has made as many steps."""
    twin = copy.deepcopy(env)
    twin.reset(seed=9)
    for _ in range(env.simulation.step_index):
        twin.step({})
    env.set_state(twin.get_state())


class BackDoor:
    """Begins another episode, once."""

    def __init__(self) -> None:
        self.open = True

    def __call__(self, env: HeronEnv) -> None:
        if self.open:
            self.open = False
            env.start_episode(4)


ASTRAY: dict[str, Callable[[], Call]] = {
    "not restored": lambda: keep_and_step,
    "an old state": OldState,
    "torn": lambda: fail_half_way,
    "another's state": lambda: another_state,
    "by the back door": BackDoor,
}
"""What leaves an environment elsewhere, without any call that says so."""


def check_left_elsewhere(recipe: Recipe, way: str, run: Run = SYNC, seed: int = 0) -> None:
    """A decision that leaves the environment elsewhere ends the run, by name and time."""
    env = recipe.build()
    policies = Meddler(recipe, env, ASTRAY[way]()).policies
    try:
        run(env, policies, seed=seed)
    except RunInterrupted as error:
        assert str(error).startswith(f"{run.__name__}(): the decision of '"), error
        assert "left the environment elsewhere; end a look-ahead with env.set_state(state)" in str(error)
    else:
        raise AssertionError("the run went on from elsewhere")


def restore(env: HeronEnv) -> None:
    """To what it is, or so it seems: the messages under way are not in it."""
    env.set_state(env.get_state())


BETWEEN: dict[str, Call] = {**CALLS, "set_state()": restore, "back door": lambda env: env.start_episode(4)}
del BETWEEN["step()"]  # ResetNeeded


def check_between_untils(recipe: Recipe, call: str, t: float, seed: int = 0) -> None:
    """Between two `until` the environment may be used for something else; the old run then says that it is over."""
    env = recipe.build()
    run = env.start_event_driven(recipe.policies(env), seed=seed)
    run.until(t)
    BETWEEN[call](env)
    for name, ask in {"until()": lambda: run.until(None), "state()": run.state, "result()": run.result}.items():
        try:
            ask()
        except RunInterrupted as error:
            assert str(error).startswith(f"{name}: since this run was at t="), error
        else:
            raise AssertionError(f"{name} went on with an environment that is elsewhere")


def check_reading_is_free(recipe: Recipe, t: float, seed: int = 0) -> None:
    """Between two `until` and in decisions everything may be read, and copies do what they like."""

    def read(env: HeronEnv) -> None:
        env.get_state(), env.state(), env.kpis(), env.last_decisions, env.world.time
        for agent in env.hierarchy.ids:
            env.proxy.get_observation(agent)
        twin = copy.deepcopy(env)
        CALLS["run_synchronous()"](twin)
        if not env._event_driven:
            plan_on(twin, 1)(env)

    for meddling in (SYNC, EVENT):
        same_run(recipe, None, meddling, read, seed, False)
    whole, env = recipe.build(), recipe.build()
    a = whole.run_event_driven(recipe.policies(whole), seed=seed, record=RECORD)
    run = env.start_event_driven(recipe.policies(env), seed=seed, record=RECORD)
    run.until(t)
    read(env)
    other = copy.deepcopy(run)
    run.until(None)
    assert_same_course(a, run.result())
    env.reset()
    assert_same_course(a, run.result())  # which is final
    other.attach(recipe.policies(other.env))
    other.until(None)
    assert_same_course(a, other.result())


def check_two_threads(recipe: Recipe, call: str, run: Run, seed: int = 0) -> None:
    """Of two threads the later is refused, whatever the first has lent to its own decision."""
    calls = {**CALLS, "set_state()": restore}

    def meddle(env: HeronEnv) -> None:
        said: list[str] = []

        def trespass() -> None:
            try:
                calls[call](env)
            except RunInterrupted as error:
                said.append(str(error))

        env.get_state()
        thread = threading.Thread(target=trespass)
        thread.start()
        thread.join()
        assert said == [
            f"{call}: another thread is in {run.__name__}() of this environment; give each thread its own: "
            "copy.deepcopy(env)"
        ]

    same_run(recipe, None, run, meddle, seed, False)


def check_marks(recipe: Recipe, seed: int = 0) -> None:
    """The mark is new at every reset, start of a run and step; a state carries it; no number comes twice."""
    env = recipe.build()
    marks = [env._ownership.mark]

    def note() -> None:
        marks.append(env._ownership.mark)
        assert len(set(marks)) == len(marks), "a mark came twice"

    env.reset(seed=seed)
    note()
    env.step({})
    note()
    state = env.get_state()
    twin = copy.deepcopy(env)
    assert twin._ownership.mark == env._ownership.mark == state["mark"]
    env.step({})
    note()
    env.set_state(state)
    assert env._ownership.mark == state["mark"]
    env.step({})
    note()
    env.set_state({**state, "mark": (far := marks[-1] + 50)})  # of a process that has done more
    assert env._ownership.mark == far
    for _ in range(60):
        env.reset()
        note()
        assert env._ownership.mark != far, "the number of another process came again"
    env.start_event_driven(recipe.policies(env))
    note()
