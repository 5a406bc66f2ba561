"""BatchEnv on the event clock: what it refuses and how, episodes that follow each other, ends, states and rewards."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from envs.test_half_way import Valve
from laws.checks_event_batch import check_event_batch, check_on_and_on, policies_of
from laws.examples import FIELD, TALK
from small_worlds import Reversed

from heron_env import BatchEnv, CoordinatorAgent, Disturbance, HeronEnv, ScheduleConfig, SystemAgent
from heron_env.errors import ConfigError, InvalidAction, ResetNeeded, ScheduleError

LATE = ScheduleConfig(
    tick_interval=0.6, msg_delay=0.3, act_delay=0.5, jitter_type="uniform", jitter_ratio=0.5, loss=0.1
)
SHORT = replace(TALK, max_steps=6, compile=True)


def batch_of(lanes: int = 2, recipe: Any = SHORT, schedule: Any = LATE, **options: Any) -> Any:
    """A batch on the event clock."""
    return BatchEnv(recipe.build(), lanes, seed=3, clock="event", schedule=schedule, **options)


def acted(batch: Any, rows: Any) -> np.ndarray[Any, Any]:
    """Actions for rows, each a function of what is seen."""
    policies, specs = policies_of(batch.env), batch.env.simulation.model.specs
    actions = np.zeros((len(rows), max(specs[rank].size for rank in policies)))
    for n, rank in enumerate(rows.rank.tolist()):
        seen = rows.obs[n, : batch.env.simulation.model.plan.size(rank)]
        actions[n, : specs[rank].size] = policies[rank](seen)
    return actions


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"clock": "events"}, "must be one of ('synchronous', 'event'). Did you mean 'event'?"),
        ({"autoreset": "next_step"}, "must be one of ('same_step', 'disabled')"),
        ({"gamma": 1.5}, "must be a number between 0 and 1"),
        ({"record": "rewards"}, "give a tuple of 'rewards'"),
        ({"record": ("reward",)}, "Did you mean 'rewards'?"),
        ({"others": {}}, "every agent that decides is asked in rows"),
        ({"final_observations": True}, "rows.ended.obs"),
        ({"with_state": 1}, "with_state"),
        ({"threads": 0}, "threads"),
        ({"schedule": 3}, "must be a ScheduleConfig"),
    ],
)
def test_what_it_is_built_with_is_checked(options: dict[str, Any], words: str) -> None:
    with pytest.raises((ConfigError, ScheduleError)) as caught:
        BatchEnv(SHORT.build(), 2, **{"clock": "event", **options})
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("recipe", "options"),
    [(SHORT, {}), (SHORT, {"with_state": True, "gamma": 0.9}), (FIELD, {}), (replace(FIELD, substeps=2), {})],
)
@pytest.mark.parametrize("compile", [True, False])
def test_plain_rules_and_methods_on_self_run_like_compiled_ones(recipe: Any, options: Any, compile: bool) -> None:
    """FIELD has an agent in the imperative style: its rules are plain, whatever is asked for."""
    check_event_batch(replace(recipe, compile=compile), LATE, seed=3, **options)


def test_plain_lanes_begin_anew_by_themselves() -> None:
    check_on_and_on(replace(FIELD, compile=False), LATE, seed=5, calls=20)


LINK = "@staticmethod @rule def link(world, sender, receiver)"


class Stepping(HeronEnv):
    def step(self, actions: Any) -> Any:
        return super().step(actions)


class Foggy(HeronEnv):
    def link(self, world: Any, sender: int, receiver: int) -> tuple[float, float]:
        return 1.0, 0.0


class Crew(CoordinatorAgent):
    protocol = Reversed()


def answered_from_outside() -> HeronEnv:
    env = world()
    env.hierarchy.agents[1].injected = True
    return env


def world(kind: type[HeronEnv] = HeronEnv, *agents: Any) -> HeronEnv:
    return kind(SystemAgent("system", *(agents or [Valve("valve")])), max_steps=6, compile=True)


@pytest.mark.parametrize(
    ("build", "why"),
    [
        (lambda: world(Stepping), "Stepping has a step() of its own"),
        (
            lambda: world(HeronEnv, Crew("crew", Valve("a"), Valve("b"))),
            "a protocol of yours splits commands in Python",
        ),
        (answered_from_outside, "['valve'] are answered from outside"),
        (lambda: world(Foggy), f"its hook link is a method: write {LINK}"),
    ],
)
def test_what_the_compiled_clock_can_t_do_is_refused_with_the_way(build: Any, why: str) -> None:
    with pytest.raises(ConfigError) as caught:
        BatchEnv(build(), 2, clock="event")
    assert f"clock='event'): {why}; run_event_driven() can, one by one" in str(caught.value)


def test_disturbances_are_refused_and_nothing_has_changed() -> None:
    batch, crash = batch_of(), Disturbance(1.0, "agent_crash", {"agent": "*"}, duration=1.0)
    expected = batch.begin().obs.copy()
    for options in ({"disturbances": [crash]}, [{}, {"disturbances": (crash,)}]):
        with pytest.raises(ConfigError, match=r"disturbances .*: run_event_driven\(disturbances=.*\) can, one by one"):
            batch.reset(seed=4, options=options)
    assert np.array_equal(batch.reset(seed=3, options={"disturbances": ()}).obs, expected)


def test_the_methods_of_the_other_clock_say_what_to_call() -> None:
    batch = batch_of()
    for call, words in (
        (lambda: batch.step({}), "begin(), then answer"),
        (lambda: batch.state(), "with_state=True"),
        (lambda: batch.infos(), "rows tell of decisions, results() of episodes"),
        (lambda: batch.training_rewards("unit"), "rows.training_reward"),
    ):
        with pytest.raises(ConfigError, match=words.replace("(", r"\(").replace(")", r"\)")):
            call()
    with pytest.raises(ResetNeeded, match="begin"):
        batch.answer(np.zeros(3))


def test_a_wrong_answer_changes_nothing() -> None:
    batch, other = batch_of(), batch_of()
    rows, theirs = batch.begin(), other.begin()
    actions = acted(batch, rows)
    for wrong in (actions[:-1], actions[:, :-1], actions.astype(str), [None] * len(rows)):
        with pytest.raises(InvalidAction, match="answer"):
            batch.answer(wrong)
    illegal = actions.copy()
    place = int(np.flatnonzero(rows.lane == 1)[0])
    illegal[place] = 1e9
    with pytest.raises(InvalidAction) as caught:
        batch.answer(illegal)
    agent = batch.env.hierarchy.ids[rows.rank[place]]
    assert "lane 1" in str(caught.value) and agent in str(caught.value)
    rows, theirs = batch.answer(actions), other.answer(actions)
    assert np.array_equal(rows.obs, theirs.obs) and np.array_equal(rows.time, theirs.time)


def test_where_nothing_ever_arrives_it_says_so() -> None:
    with pytest.raises(ScheduleError, match="without a single observation"):
        batch_of(1, schedule=ScheduleConfig(loss=1.0)).begin()
    still = batch_of(1, schedule=ScheduleConfig(loss=1.0), autoreset="disabled")
    assert len(still.begin()) == 0 and still.result(0) is not None


def test_after_an_error_half_way_all_must_begin_anew() -> None:
    batch = batch_of(2)
    rows = batch.begin()
    batch._lanes.go_on = lambda: (_ for _ in ()).throw(RuntimeError("torn"))
    with pytest.raises(RuntimeError, match="torn"):
        batch.answer(acted(batch, rows))
    del batch._lanes.go_on
    with pytest.raises(ResetNeeded, match="half-way"):
        batch.answer(acted(batch, rows))
    with pytest.raises(ResetNeeded, match="all lanes"):
        batch.reset(mask=np.array([True, False]))
    again, other = batch.reset(seed=3), batch_of(2).begin()
    assert np.array_equal(again.obs, other.obs)


def test_rows_are_their_receivers_to_change() -> None:
    batch, other = batch_of(with_state=True), batch_of(with_state=True)
    rows, theirs = batch.begin(), other.begin()
    for _ in range(8):
        actions = acted(other, theirs)
        for name in ("lane", "rank", "obs", "number", "time", "first", "reward", "steps", "took", "state"):
            getattr(rows, name)[...] = 0
        rows, theirs = batch.answer(actions), other.answer(actions)
        for name in ("lane", "rank", "obs", "number", "time", "first", "reward", "steps", "took", "state"):
            assert np.array_equal(getattr(rows, name), getattr(theirs, name)), name


def test_masked_arrays_are_refused_and_not_unmasked() -> None:
    batch = batch_of()
    rows = batch.begin()
    masked = np.ma.masked_array(acted(batch, rows))  # type: ignore[no-untyped-call]
    with pytest.raises(InvalidAction, match=r"answer\(\): the array of actions is a masked array; fill it"):
        batch.answer(masked)
