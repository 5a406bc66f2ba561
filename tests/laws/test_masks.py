"""Masks: offered on what an agent is shown, enforced on what is true when the effect falls, alike in all executions."""

from collections.abc import Callable
from functools import partial
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from masked_worlds import Book, expected, lamps

from heron_env import BatchEnv, HeronEnv, ScheduleConfig
from heron_env.core.masking import flat
from heron_env.engine import python_rules
from heron_env.envs.masking import GroupMasks

KINDS = ("lamp", "pair", "dimmer", "hand")
RULED = ("pair", "dimmer", "pair")
FEW = settings(max_examples=max(3, settings().max_examples // 6))
DELAYS = st.sampled_from([0.0, 0.05, 0.1, 0.25])


class Random:
    """Actions at random; with `obeys` from what the mask allows, and state 2 as soon as that is allowed. The same ones
    in each run.
    """

    def __init__(self, env: HeronEnv, agent: str, obeys: bool, salt: int = 0) -> None:
        self.space, self.obeys, self.masks = env.action_space(agent), obeys, list[Any]()
        self.space.seed(hash_of(agent) + salt)

    def __call__(self, vector: np.ndarray, mask: Any = None) -> Any:
        self.masks.append(mask)
        action = self.space.sample(mask if self.obeys else None)
        if self.obeys:
            flags, stays = flat(mask), len(self.masks) % 9
            state = 2 if flags[-1] else action["d"] if isinstance(action, dict) else np.ravel(action)[-1]
            state = state if stays == 0 or state == 2 else 0
            numbers = action["c"] if isinstance(action, dict) else np.ravel(action)[:-1]
            return np.append(numbers, state)
        return action


def hash_of(agent: str) -> int:
    return sum(map(ord, agent))


def policies(env: HeronEnv, obeys: bool, salt: int = 0) -> dict[str, Random]:
    return {agent: Random(env, agent, obeys, salt) for agent in env.possible_agents}


# The laws, as functions: the mutants below must break them


def check_offers_follow_the_vector(**options: Any) -> None:
    """Every mask in infos is the rule's on the vector that comes with it."""
    env = lamps(*KINDS, **options)
    chosen = policies(env, obeys=True)
    seen, infos = env.reset(seed=3)
    while env.agents:
        for agent in env.agents:
            told = flat(infos[agent]["action_mask"]).tolist()
            if infos[agent]["is_active"]:
                assert told == expected(env, agent, seen[agent]), f"{agent} is offered {told}"
        seen, *_, infos = env.step({a: chosen[a](seen[a], infos[a]["action_mask"]) for a in env.agents})


def check_late_offers_follow_the_vector(late: bool) -> None:
    """On the event clock too, however late the vector is."""
    env, differ = lamps(*KINDS), list[bool]()
    chosen = policies(env, obeys=True)

    def decide(agent: str, vector: np.ndarray, mask: Any) -> Any:
        simulation, offered = env.simulation, flat(mask).tolist()
        assert offered == expected(env, agent, vector), f"{agent} is offered {offered}"
        true = simulation.model.plan.vector(env.hierarchy.index[agent], simulation.truth, simulation.moment)
        differ.append(offered != expected(env, agent, true))
        return chosen[agent](vector, mask)

    def deciding(agent: str) -> Callable[[Any, Any], Any]:
        return lambda vector, mask: decide(agent, vector, mask)

    schedule = ScheduleConfig(tick_interval=0.1, obs_delay=0.2 * late)
    env.run_event_driven({agent: deciding(agent) for agent in chosen}, seed=3, schedule=schedule)
    assert any(differ) == late, "a late observation offers a late mask, and only that does"


def check_nothing_forbidden_falls(schedule: Any, compile: bool, seed: int = 0, commanded: bool = False) -> None:
    """Whatever is late or lost: no forbidden choice takes effect, and each that was made is counted and marked."""
    kinds = RULED if compile else KINDS
    env = lamps(*kinds, commanded=commanded, schedule=schedule, compile=compile, physics_substeps=2)
    chosen = {agent: constant(state_two(env, agent)) for agent in env.possible_agents}
    result = env.run_event_driven(chosen, seed=seed, trace=True)
    assert result.trace is not None
    assert list(result.masked) == [agent for agent in env.hierarchy.ids if agent[:-2] in KINDS]
    for agent, masked in result.masked.items():
        book = env.hierarchy.agents[env.hierarchy.index[agent]].state.features[Book]
        assert book.early == 0.0, f"a forbidden choice of {agent} took effect"
        assert book.switched + masked == book.effects > masked > 0, f"choices of {agent} are lost"
    told = [record.kind for record in result.trace if record.masked]
    assert told == ["ActionEffect"] * sum(result.masked.values())


def constant(action: np.ndarray) -> Callable[[Any], np.ndarray]:
    return lambda vector: action.copy()


def state_two(env: HeronEnv, agent: str) -> np.ndarray:
    """The action that asks for state 2 everywhere, and else for no-ops."""
    rank = env.hierarchy.index[agent]
    below = [env.simulation.model.specs[child] for child in env.hierarchy.children[rank]] or [
        env.simulation.model.specs[rank]
    ]
    parts = [spec.noop.copy() for spec in below]
    for part in parts:
        part[-1] = 2.0
    numbers = [part[: spec.dim_c] for part, spec in zip(parts, below, strict=True)]
    choices = [part[spec.dim_c :] for part, spec in zip(parts, below, strict=True)]
    return np.concatenate([*numbers, *choices])


def check_whoever_obeys_is_never_masked(compile: bool, salt: int = 0) -> None:
    """At zero delay what is offered is what is enforced, bit for bit: in both clocks, with the same course."""
    env = lamps(*(RULED if compile else KINDS), compile=compile)
    runs = [run(policies(env, True, salt), seed=1, record=("rewards", "actions", "observations"))
            for run in (env.run_synchronous, env.run_event_driven)]  # fmt: skip
    assert runs[0].same_course(runs[1]), "the clocks differ"
    assert runs[0].masked == dict.fromkeys(env.possible_agents, 0), "an offered choice was forbidden"
    assert any(2.0 in vector for done in runs[0].actions.values() for _, vector in done), "nobody ever chose state 2"


def check_both_clocks_count_alike(ticks: Any, compile: bool, salt: int = 0) -> None:
    env = lamps(*(RULED if compile else KINDS), schedule=ticks, compile=compile)
    a = env.run_synchronous(policies(env, False, salt), seed=1)
    b = env.run_event_driven(policies(env, False, salt), seed=1)
    assert a.masked == b.masked and sum(a.masked.values()) > 0
    assert a.same_course(b)


def check_batch_is_single(compile: bool) -> None:
    """Masks and truths of a batch, and of its single environments, in the other execution too."""
    kinds, lanes = (RULED if compile else KINDS), 3
    batch = BatchEnv(lambda: lamps(*kinds, compile=compile), lanes, seed=5)
    alone = [lamps(*kinds, compile=False) for _ in range(lanes)]
    _, told = batch.reset()
    infos = [env.reset(seed=5 + lane)[1] for lane, env in enumerate(alone)]
    random = np.random.default_rng(0)
    for _ in range(20):
        for name, agents in batch.groups.items():
            masks = told[name]["action_mask"]
            for lane, place in np.ndindex(masks.shape[:2]):
                single = flat(infos[lane][agents[place]]["action_mask"])
                assert masks[lane, place].tolist() == single.tolist(), f"lane {lane}: {agents[place]} is offered others"
        spaces = {name: batch._groups[name].spec for name in batch.groups}
        given = {name: np.concatenate([np.zeros((lanes, len(batch.groups[name]), spec.dim_c)),
                 np.floor(random.random((lanes, len(batch.groups[name]), spec.dim_d)) * spec.ncats)], axis=-1)
                 for name, spec in spaces.items()}  # fmt: skip
        *_, told = batch.step(given)
        infos = []
        for lane, env in enumerate(alone):
            actions = {a: given[name][lane, i] for name, agents in batch.groups.items() for i, a in enumerate(agents)}
            infos.append(env.step(actions)[-1])
            assert np.allclose(batch._engine.truth[lane], env.simulation.truth, atol=1e-9), (
                f"lane {lane}: another truth"
            )


# They hold


@pytest.mark.parametrize("compile", [False, True])
def test_a_mask_is_offered_on_what_the_vector_shows(compile: bool) -> None:
    check_offers_follow_the_vector(compile=compile)


@pytest.mark.parametrize("late", [False, True])
def test_so_is_that_of_a_late_vector(late: bool) -> None:
    check_late_offers_follow_the_vector(late)


@FEW
@given(DELAYS, DELAYS, DELAYS, st.sampled_from([0.0, 0.3]), st.booleans())
def test_a_forbidden_choice_never_falls(act: float, msg: float, obs: float, loss: float, commanded: bool) -> None:
    schedule = ScheduleConfig(tick_interval=0.1, act_delay=act, msg_delay=msg, obs_delay=obs, loss=loss, own_rows=None)
    check_nothing_forbidden_falls(schedule, False, commanded=commanded)


@FEW
@given(st.integers(0, 99))
def test_whoever_obeys_its_mask_is_never_masked_at_zero_delay(salt: int) -> None:
    check_whoever_obeys_is_never_masked(False, salt)


@FEW
@given(st.sampled_from([0.1, 0.2, 0.3]), st.sampled_from([0.0, 0.1]), st.integers(0, 99))
def test_both_clocks_mask_alike(tick: float, phase: float, salt: int) -> None:
    check_both_clocks_count_alike({"*": ScheduleConfig(tick_interval=tick, phase=phase)}, False, salt)


def test_one_by_one_a_batch_masks_like_its_single_environments() -> None:
    check_batch_is_single(False)


@pytest.mark.e2e  # compiles; the family of laws/test_compiled.py has masks, too
def test_compiled_all_of_it_holds_too() -> None:
    check_nothing_forbidden_falls(ScheduleConfig(tick_interval=0.1, act_delay=0.25, msg_delay=0.05), True)
    check_nothing_forbidden_falls(ScheduleConfig(tick_interval=0.1, msg_delay=0.05), True, commanded=True)
    check_whoever_obeys_is_never_masked(True)
    check_both_clocks_count_alike({"*": ScheduleConfig(tick_interval=0.2)}, True)
    check_batch_is_single(True)


# And they bite


def offered_from_the_truth(original: Any) -> Any:
    def offered(self: GroupMasks, lanes: Any, seen: Any, *more: Any) -> Any:
        true = np.zeros_like(seen)
        true.reshape(len(seen), -1)[:, self._shown] = lanes.arrays.truth[:, self._columns]
        return original(self, lanes, true, *more)

    return offered


def never_enforced(original: Any) -> Any:
    return lambda spec, values, flags: (values, False)


def everything_offered(original: Any) -> Any:
    return lambda *what: original(*what) * 0 + 1


LATE = partial(check_late_offers_follow_the_vector, True)
DELAYED = ScheduleConfig(tick_interval=0.1, act_delay=0.25)
MUTANTS: list[tuple[Any, str, Callable[[Any], Any], Callable[[], None]]] = [
    (GroupMasks, "offered", offered_from_the_truth, LATE),
    (GroupMasks, "offered", everything_offered, partial(check_whoever_obeys_is_never_masked, False)),
    (python_rules, "enforced", never_enforced, partial(check_nothing_forbidden_falls, DELAYED, False)),
    (np, "float32", lambda original: np.float64, partial(check_whoever_obeys_is_never_masked, False)),
]


@pytest.mark.parametrize(("owner", "name", "fault", "law"), MUTANTS)
def test_each_fault_breaks_a_law(owner: Any, name: str, fault: Any, law: Callable[[], None]) -> None:
    planted = patch.object(owner, name, fault(getattr(owner, name))) if owner is not np else in_double_precision()
    with planted, pytest.raises(AssertionError):
        law()


def in_double_precision() -> Any:
    """Enforce on the truth as it is, in float64."""
    twin = type("Numpy", (), {"__getattr__": lambda self, name: np.float64 if name == "float32" else getattr(np, name)})
    return patch.object(python_rules, "np", twin())
