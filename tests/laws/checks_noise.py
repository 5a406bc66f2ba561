"""The laws of noise as functions: each raises AssertionError where a number is not what the plain law gives."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from laws.visibility import as_seen, noisy, sights, still
from small_worlds import LawEnv, Price
from strategies import Recipe

from heron_env import BatchEnv, Continuous, FieldAgent, HeronEnv, ScheduleConfig, SystemAgent, rule
from heron_env.errors import RuleError


def check_every_number_follows_the_law(recipe: Recipe, seed: int = 0) -> None:
    """Over two episodes all ways to observe give each observer the same numbers, those of the plain law."""
    env, batch = recipe.build(), BatchEnv(recipe.build(), 1, autoreset="disabled")
    policies = recipe.constants(env)
    found = [sights(env, rank) for rank in range(len(env.hierarchy))]
    actions = {agent: policy(None) for agent, policy in policies.items()}
    for episode in (0, 1):
        start = seed if episode == 0 else None
        env.reset(seed=start)
        shown = batch.reset(start)[0]
        while env.agents:
            _check_all_ways(env, found, (seed, episode, env.simulation.step_index))
            _check_slots(env, batch, shown)
            given = {name: np.array([[actions[a] for a in agents]]) for name, agents in batch.groups.items()}
            env.step({agent: actions[agent] for agent in env.agents})
            shown = batch.step(given)[0]


def _check_slots(env: LawEnv, batch: BatchEnv, shown: dict[str, Any]) -> None:
    told = env._observe()
    for name, agents in batch.groups.items():
        for row, agent in enumerate(agents):
            if agent in told:
                assert shown[name][0, row].tobytes() == told[agent].tobytes(), f"{agent}'s slot differs"


def _check_all_ways(env: LawEnv, found: list[Any], moment: tuple[int, int, int]) -> None:
    simulation, ages = env.simulation, env.simulation.model.plan.observe_age
    told = env._observe()
    for rank, agent in enumerate(env.hierarchy.ids):
        expected = as_seen(found[rank], simulation.truth, moment)
        ways = {
            "vector()": simulation.model.plan.vector(rank, simulation.truth, simulation.moment)[: len(expected)],
            "the proxy": env.proxy.get_observation(agent).vector(),
            "observed_by()": _asked_of_states(env, rank),
        }
        if agent in told:
            ways["the observation"] = told[agent][: len(expected)]
            assert len(told[agent]) == len(expected) + ages * len(simulation.model.plan.views[rank].sources)
        for way, vector in ways.items():
            wrong = np.flatnonzero(vector != expected) if len(vector) == len(expected) else ["lengths"]
            assert vector.tobytes() == expected.tobytes(), f"{agent} at {moment} by {way}: columns {wrong} differ"


def _asked_of_states(env: LawEnv, rank: int) -> Any:
    """What the State objects tell, own features, others by rank, global, in the order of a vector."""
    cached, ids = env.proxy.state_cache, env.hierarchy.ids
    order = [ids[rank], *(agent for agent in ids if agent != ids[rank])]
    states = [*(cached["agents"][agent] for agent in order), cached["global"]]
    told = [state.observed_by(ids[rank], env.hierarchy.level[rank]) for state in states]
    values = [np.ravel(vector) for features in told for vector in features.values()]
    by_owner, places = (
        np.concatenate([np.zeros(0), *values]).astype(np.float32),
        env.simulation.model.plan.views[rank].order,
    )
    return by_owner if places is None else by_owner[places]


def check_noise_belongs_to_the_turn(recipe: Recipe, delayed: ScheduleConfig, seed: int = 0) -> None:
    """Delay, loss and jitter change no noise (T9); a further request of the same step sees other noise."""
    prompt = ScheduleConfig(tick_interval=delayed.tick_interval, phase=delayed.phase)
    first, second = (_seen_over_time(recipe, config, seed) for config in (prompt, delayed))
    assert any(len(free) for free, _ in first.values()), "nothing is seen with noise: no test"
    for agent, (free, vectors) in first.items():
        others = second[agent][1]
        for time in vectors.keys() & others.keys():
            assert vectors[time].tobytes() == others[time].tobytes(), f"{agent}'s noise at {time} s depends on delays"
        distinct = {vector[free].tobytes() for vector in vectors.values()}
        assert not free.any() or len(distinct) == len(vectors), f"{agent} saw the same noise twice"


def _seen_over_time(recipe: Recipe, config: ScheduleConfig, seed: int) -> dict[str, Any]:
    """For each agent what was seen of the columns that never change and bear noise, by the time of the tick; and which
    of these show every bit of their noise: neither rounded nor stopped at a bound.
    """
    env = recipe.build()
    layout = env.simulation.model.layout
    env.shift = {c: 4.0 for c in still(env) if layout.names[c] == "Order.secret"}
    result = env.run_event_driven(recipe.constants(env), seed=seed, schedule=config, record=("observations",))
    found = {}
    for agent, seen in result.observations.items():
        rank = env.hierarchy.index[agent]
        columns = still_and_noisy(env, rank)
        where = np.flatnonzero(np.isin(env.simulation.model.plan.views[rank].columns, columns))
        showing = {column: shows_all(env, rank, column) for column in columns}
        free = np.array([showing[c] for c in env.simulation.model.plan.views[rank].columns[where].tolist()], dtype=bool)
        found[agent] = (free, {time: vector[where] for time, vector in seen})
    return found


def shows_all(env: LawEnv, rank: int, column: int) -> bool:
    """Can this column's noise neither be rounded away nor reach a bound?"""
    (factor, law), declared = next((sight[1], sight[3]) for sight in sights(env, rank) if sight[0] == column)
    value = float(env.simulation.truth[column])
    reach = factor * (declared.high - declared.low if law == "additive" else abs(value))
    within = declared.low <= value - reach and value + reach <= declared.high
    return declared.kind == "float" and within and (law == "additive" or factor < 0.99)


def still_and_noisy(env: LawEnv, rank: int) -> list[int]:
    """Columns that nothing changes and that this observer sees with noise."""
    return np.intersect1d(noisy(env, rank), still(env)).tolist()


def deciders_see_noise(recipe: Recipe) -> bool:
    """Does an agent that decides see noise on something that nothing changes?"""
    env = recipe.build()
    ranks = [env.hierarchy.index[agent] for agent in recipe.constants(env)]
    return any(still_and_noisy(env, rank) for rank in ranks)


class Told(NamedTuple):
    """An info with a number of the world."""

    price: float


class Spy(FieldAgent):
    """Tells in its infos what the world's price is."""

    action = Continuous(-1.0, 1.0)

    @staticmethod
    @rule
    def get_local_info(price: Price) -> Told:
        return Told(price.value)


def check_infos_tell_only_what_is_seen_exactly(factors: Sequence[float] = (0.0, 0.3)) -> None:
    """A rule for infos may read what its agent sees exactly, and not what it sees with noise."""
    for factor in factors:
        config = {"matrix": [["spy_1", "global", "insider", factor]]}
        try:
            _SpyEnv(SystemAgent("system_agent", Spy("spy_1")), observability=config)
        except RuleError as error:
            assert factor, f"what is seen exactly was refused: {error}"
        else:
            assert not factor, "an info rule reads what its agent sees with noise"


class _SpyEnv(HeronEnv):
    global_features = (Price,)


def with_default(recipe: Recipe, level: str, factor: float, law: str = "multiplicative") -> Recipe:
    """The same world without rows, under this default."""
    assert recipe.observability is not None
    config = type(recipe.observability)(default={"level": level, "noise": factor, "law": law})
    return replace(recipe, observability=config)
