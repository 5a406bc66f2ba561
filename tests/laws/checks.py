"""The laws as functions: each raises AssertionError where the law is broken, whoever calls it, test or mutant."""

import copy
import pickle
from typing import Any

import numpy as np
from laws.oracle import expected_course
from laws.witness import Witness
from small_worlds import LawEnv
from strategies import Recipe

from heron_env import EpisodeResult, ScheduleConfig
from heron_env.testing import clock

RECORD = ("rewards", "actions", "observations")


def check_parity(recipe: Recipe, schedule: Any = None, wait: float | None = None, seed: int = 0) -> None:
    """All delays 0: the event-driven run equals the synchronous run bit for bit."""
    env = recipe.build(schedule)
    sync = env.run_synchronous(recipe.policies(env), seed=seed, record=RECORD)
    truth, alive = env.simulation.truth.tobytes(), list(env.simulation.alive)
    event = env.run_event_driven(recipe.policies(env), seed=seed, wait=wait, record=RECORD)
    assert_same_course(sync, event)
    assert truth == env.simulation.truth.tobytes(), "the final states differ"
    assert alive == env.simulation.alive


def assert_same_course(a: EpisodeResult, b: EpisodeResult) -> None:
    """The same rewards, ends, actions and observations, bit for bit; the message says which differ first."""
    for name in ("terminated", "truncated", "rewards"):
        assert getattr(a, name) == getattr(b, name), f"{name} differ"
    for name in ("observations", "actions"):
        mine, theirs = getattr(a, name), getattr(b, name)
        assert mine.keys() == theirs.keys(), f"{name} are of different agents"
        for agent in mine:
            assert [t for t, _ in mine[agent]] == [t for t, _ in theirs[agent]], f"times of {agent}'s {name} differ"
            for (t, x), (_, y) in zip(mine[agent], theirs[agent], strict=True):
                assert np.asarray(x).tobytes() == np.asarray(y).tobytes(), f"{agent}'s {name} at {t} s differ: {x} {y}"
    assert a.same_course(b)


def check_honest_score(recipe: Recipe, schedule: Any = None, seed: int = 0) -> None:
    """Rewards and ends, one entry a boundary, are those that the recorded truth gives, whatever the network did."""
    env = recipe.build(schedule, watch=True)
    result = env.run_event_driven(recipe.policies(env), seed=seed)
    rewards, terminated, truncated = expected_course(env, recipe)
    assert result.terminated == terminated, "terminated is not what the truth says"
    assert result.truncated == truncated, "truncated is not what the truth says"
    for agent, expected in rewards.items():
        assert result.rewards[agent] == expected, (
            f"{agent} was scored {result.rewards[agent]}, the truth gives {expected}"
        )


def check_an_early_end_changes_nothing_before(recipe: Recipe, schedule: Any, t_end: float, seed: int = 0) -> None:
    """A run stopped at t_end has the rewards, actions and ends of the whole up to then; the living are truncated."""
    env = recipe.build()
    whole = env.run_event_driven(recipe.policies(env), seed=seed, schedule=schedule)
    part = env.run_event_driven(recipe.policies(env), seed=seed, schedule=schedule, t_end=t_end)
    for agent, rewards in whole.rewards.items():
        until = [(t, value) for t, value in rewards if t <= t_end]
        assert part.rewards[agent] == until, f"{agent} has other rewards up to {t_end} s"
        ended = bool(rewards) and rewards[-1][0] <= t_end
        assert part.terminated[agent] == (ended and whole.terminated[agent])
        assert part.truncated[agent] == (whole.truncated[agent] if ended else True), f"{agent} was stopped, not ended"
        done = [(t, values.tolist()) for t, values in part.actions.get(agent, [])]
        assert done == [(t, values.tolist()) for t, values in whole.actions.get(agent, []) if t < t_end]


def check_no_lost_update(recipe: Recipe, schedule: Any = None, seed: int = 0, wait: float | None = None) -> None:
    """Every effect and substep that happened is in the truth; the cache holds truths, never going back."""
    env = recipe.build(schedule)
    policies = recipe.policies(env)
    run = env.start_event_driven(policies, seed=seed, wait=wait)
    witness = Witness(run, recipe, policies)
    run.until(None)
    witness.settle(run.result())


def check_same_seed(recipe: Recipe, schedule: Any = None, seed: int = 0) -> None:
    """Two environments built alike: the same seed gives the same trace, byte for byte, whatever ran before."""
    one, two = recipe.build(schedule), recipe.build(schedule)
    two.run_event_driven(recipe.policies(two), seed=seed + 1)
    a, b = (env.run_event_driven(recipe.policies(env), seed=seed, trace=True, record=RECORD) for env in (one, two))
    assert a.trace is not None and b.trace is not None
    lines, others = a.trace.lines(one.hierarchy.ids), b.trace.lines(two.hierarchy.ids)
    for line, other in zip(lines, others, strict=False):
        assert line == other
    assert len(lines) == len(others)
    assert_same_course(a, b)


def journal(recipe: Recipe, schedule: Any, seed: int) -> dict[Any, tuple[int, int]]:
    """What came when: {(kind, agent, number, detail): (departure, time under way)}, both 0-based in ns."""
    env = recipe.build(schedule)
    result = env.run_event_driven(recipe.constants(env), seed=seed, trace=True)
    assert result.trace is not None
    found = {}
    for r in result.trace:
        e = r.payload
        detail = (
            (e.row, e.effect) if isinstance(e, clock.StateReport) else getattr(e, "leg", getattr(e, "substep", None))
        )
        found[r.kind, r.agent, r.number, detail] = (
            r.t_ns - r.latency if not isinstance(e, clock.Message) else 0,
            r.latency,
        )
    return found


def check_loss_moves_nothing(recipe: Recipe, config: ScheduleConfig, loss: float = 0.4, seed: int = 0) -> None:
    """Switching loss on shifts no other draw: ticks come when they came, messages that arrive take as long."""
    assert config.reorder and not config.loss, "only then are delays those drawn"
    lossy = ScheduleConfig(**{name: getattr(config, name) for name in config.__slots__} | {"loss": loss})
    without, with_loss = journal(recipe, config, seed), journal(recipe, lossy, seed)
    for what in without.keys() & with_loss.keys():
        if what[0] != "ActionEffect":  # decisions differ, and effects queue behind each other
            assert without[what] == with_loss[what], f"loss moved {what}: {without[what]} became {with_loss[what]}"


def check_reset_is_total(recipe: Recipe, schedule: Any = None, seed: int = 0) -> None:
    """After any past an environment starts like a new one: state, observations, infos, proxy, and the whole run."""
    used, fresh = recipe.build(), recipe.build()
    used.reset(seed=seed + 1)
    _step(used, recipe.policies(used))
    used.run_event_driven(recipe.policies(used), schedule=schedule)
    used.reset(seed=seed)
    fresh.reset(seed=seed)
    assert_same_snapshot(used, fresh)
    assert repr(used.proxy.get_step_results()) == repr(fresh.proxy.get_step_results()), "old results are still there"
    assert used.last_decisions == fresh.last_decisions
    a, b = (env.run_synchronous(recipe.policies(env), seed=seed, record=RECORD) for env in (used, fresh))
    assert_same_course(a, b)
    c, d = (e.run_event_driven(recipe.policies(e), seed=seed, schedule=schedule, record=RECORD) for e in (used, fresh))
    assert_same_course(c, d)
    assert c.messages == d.messages


def assert_same_snapshot(a: LawEnv, b: LawEnv) -> None:
    """Everything that can be asked of the two environments now is equal."""
    mine, theirs = a.get_state(), b.get_state()
    assert mine.pop("mark") and theirs.pop("mark"), "each reset has a mark of its own (T21)"
    assert mine.pop("truth").tobytes() == theirs.pop("truth").tobytes(), "the states differ"
    assert mine == theirs
    for agent in a.hierarchy.ids:
        seen, known = a.proxy.get_observation(agent), b.proxy.get_observation(agent)
        assert seen.to_dict() == known.to_dict(), f"what {agent} sees at the proxy differs"
    assert all(np.array_equal(x, y) for x, y in zip(a._observe().values(), b._observe().values(), strict=True))
    told, others = (env._publisher.infos(env.possible_agents, env._observe()) for env in (a, b))
    assert repr(told) == repr(others)


def check_resume(recipe: Recipe, schedule: Any, t: float, seed: int = 0, wait: float | None = None) -> None:
    """Run to t, pickle, unpickle, attach, go on: equal to the run that was never interrupted, bit for bit."""
    whole, halved = recipe.build(schedule), recipe.build(schedule)
    options: dict[str, Any] = {"seed": seed, "wait": wait, "trace": True, "record": RECORD}
    a = whole.run_event_driven(recipe.policies(whole), **options)
    run = halved.start_event_driven(recipe.policies(halved), **options)
    run.until(t)
    before = run.state()
    run = pickle.loads(pickle.dumps(run))
    assert repr(run.state()) == repr(before)
    run.attach(recipe.policies(run.env))
    run.until(None)
    b = run.result()
    assert_same_course(a, b)
    assert a.trace is not None and b.trace is not None
    assert a.trace.lines(whole.hierarchy.ids) == b.trace.lines(whole.hierarchy.ids), "the traces differ"
    for name in ("messages", "cancelled_effects", "end_time"):
        assert getattr(a, name) == getattr(b, name), f"{name} differ"
    assert repr((a.staleness, a.latency)) == repr((b.staleness, b.latency))
    assert whole.simulation.truth.tobytes() == run.env.simulation.truth.tobytes()


def check_copies_go_on(recipe: Recipe, schedule: Any, steps: int, way: str, seed: int = 0) -> None:
    """After some synchronous steps a pickled, a copied or a restored environment goes on exactly like the first."""
    env = recipe.build(schedule)
    env.reset(seed=seed)
    policies = recipe.policies(env)
    for _ in range(steps):
        _step(env, policies)
    match way:
        case "pickle":
            other = pickle.loads(pickle.dumps(env))
        case "deepcopy":
            other = copy.deepcopy(env)
        case _:
            other = recipe.build(schedule)
            other.run_event_driven(recipe.policies(other), seed=seed + 1)
            other.set_state(env.get_state())
    assert_same_snapshot(env, other)
    while env.agents:
        outcome = _step(env, policies)
        assert repr(_step(other, policies)) == repr(outcome), "the copy goes another way"
    assert_same_snapshot(env, other)


def _step(env: LawEnv, policies: Any) -> Any:
    """One step with the policies' actions for the agents of whom `observe` tells; all five dictionaries."""
    if not env.agents:
        return None
    vectors = env._observe()
    return env.step({a: policies[a](vectors[a]) for a in env.agents if a in policies})


def check_setpoints(recipe: Recipe, often: int, seed: int = 0) -> None:
    """Deciding the same more often does not act more: the course of the world is the same."""
    courses = []
    for tick in (recipe.dt, recipe.dt / often):
        env = recipe.build(ScheduleConfig(tick_interval=tick))
        result = env.run_event_driven(recipe.constants(env), seed=seed)
        if any(result.masked.values()):
            return  # what is forbidden now may be allowed at the next decision: who asks more often does more
        names = env.state_names
        truth = [v.hex() for v, n in zip(env.simulation.truth.tolist(), names, strict=True) if "Tally.effects" not in n]
        courses.append((result.rewards, result.terminated, truth))
    assert courses[0] == courses[1], "deciding more often acted more"
