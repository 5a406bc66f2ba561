"""JaxEnv is BatchEnv: the same episodes from the same seeds, as pure functions; what it is not it refuses by name."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pytest
from envs.test_sight import NOISY, fog, wave
from laws.test_lanes import OVER
from masked_worlds import lamps
from strategies import Node, Recipe

from heron_env import (
    BatchEnv,
    Continuous,
    Discrete,
    FeatureProvider,
    FieldAgent,
    HeronEnv,
    Mixed,
    ObservabilityConfig,
    SystemAgent,
    Vector,
    World,
    make,
    quantity,
    rule,
)
from heron_env.errors import ConfigError, InvalidAction, RuleError, UnknownAgent

jax = pytest.importorskip("jax")
pytestmark = pytest.mark.far

from heron_env.adapters.jax import JaxEnv  # noqa: E402
from heron_env.adapters.jax.words import VALUES, WORDS, CellView  # noqa: E402
from heron_env.engine.branches import Converter  # noqa: E402

jnp = jax.numpy
jax.config.update("jax_enable_x64", True)
LANES, CLOSE = 4, 1e-12


class Store(FeatureProvider):
    """What a pump moves."""

    level: float = quantity(default=1.0, low=-50.0, high=50.0)
    flow: float = quantity(default=0.0, low=-9.0, high=9.0)
    turns: int = quantity(default=0, low=0, high=40)
    mode: int = quantity(default=0, low=0, high=2)


class Weather(FeatureProvider):
    """What all see."""

    visibility = ("public",)
    wind: float = quantity(default=0.0, low=-5.0, high=5.0)


class Told(NamedTuple):
    level: float
    turns: float


TABLE = (0.5, 1.0, 2.0)


def halvings(value: float, least: float) -> int:
    """How often a number can be halved."""
    count = 0
    while value > least and count < 20:
        value = value / 2.0
        count += 1
    return count


def bent(x: float) -> float:
    """Early returns, a chain of comparisons, a choice of three."""
    if x < -1.0:
        return -1.0
    if -0.5 < x < 0.5 and x != 0.25:
        return x * x
    for k in range(3):
        if x < TABLE[k]:
            continue
        if x > 3.0 or k == 2:
            return x - TABLE[k]
    return 0.1 if x < 1.0 else 0.2


class Pump(FieldAgent):
    """A number and a choice, all statements that a rule may have, and ends by rule."""

    features = (Store,)
    action = Mixed(Continuous(-1.0, 1.0), Discrete(3))

    @staticmethod
    @rule
    def action_mask(store: Store) -> tuple[bool, ...]:
        return True, store.level > 0.0, store.mode != 2

    @staticmethod
    @rule(writes=(Store.flow, Store.mode))
    def apply_action(store: Store, action: Vector) -> tuple[float, float]:
        mode = int(action[1])
        return TABLE[mode] * action[0] + bent(store.level), mode

    @staticmethod
    @rule(writes=(Store.level, Store.turns))
    def advance(store: Store, weather: Weather, dt: float) -> tuple[float, float]:
        return store.level + dt * (store.flow + weather.wind), halvings(abs(store.level) + 1.0, 0.3)

    @staticmethod
    @rule
    def compute_local_reward(store: Store) -> float:
        return -abs(store.level) - 0.1 * store.turns

    @staticmethod
    @rule
    def is_terminated(store: Store) -> bool:
        return store.level > 6.0

    @staticmethod
    @rule
    def get_local_info(store: Store) -> Told:
        return Told(store.level, store.turns)


class Pumps(HeronEnv):
    global_features = (Weather,)

    @staticmethod
    @rule(writes=Weather.wind)
    def finish(world: World) -> None:
        world.Weather.wind[0] = 4.0 * world.draw("wind")[0] - 1.5


def pumps(**options: Any) -> HeronEnv:
    """Three pumps, seen with noise."""
    seen = ObservabilityConfig(default={"level": "insider", "noise": 0.3})
    return Pumps(
        SystemAgent("system_agent", *(Pump(f"pump_{k}") for k in range(3))),
        **{"max_steps": 9, "observability": seen, **options},
    )


def ruled(recipe: Recipe, schedule: Any = None) -> Callable[..., HeronEnv]:
    """A world of the laws, moved by rules."""
    return lambda: replace(recipe, hooks="none").build(schedule)


TALKING = Recipe(
    Node("system", children=(Node("team", children=(Node("talker"), Node("unit", at=3), Node("talker", cut=4))),)),
    substeps=2, max_steps=6, mode="any", observe_age=True,
)  # fmt: skip
WORLDS: dict[str, Callable[..., HeronEnv]] = {
    "Spread": partial(make, "heron/Spread-v0", max_steps=7),
    "Spread, discrete": partial(make, "heron/Spread-v0", continuous=False, num_agents=2, max_steps=7),
    "Spread, mates by message, noisy": partial(
        make,
        "heron/Spread-v0",
        mates="message",
        observability={"default": {"level": "external", "noise": 0.2}},
        max_steps=7,
    ),
    "BatteryGrid": partial(make, "heron/BatteryGrid-v0", num_batteries=4, zone_size=2, max_steps=7),
    "BatteryGrid by zone": partial(
        make, "heron/BatteryGrid-v0", num_batteries=4, zone_size=2, control="zone", max_steps=7
    ),
    "TrafficCorridor": partial(make, "heron/TrafficCorridor-v0", max_steps=7),
    "pumps": pumps,
    "all end by themselves": ruled(OVER),
    "one ends, all end": ruled(TALKING),
    "masks": partial(lamps, "lamp", "pair", "dimmer", max_steps=9),
    "masks under commands": partial(lamps, "lamp", "dimmer", commanded=True, max_steps=9),
}


def actions(env: HeronEnv, groups: Any, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Random actions for most groups; a batch asks the policy of an agent that is left out, if it has one."""
    given = {}
    for name, agents in groups.items():
        spec = env.simulation.model.specs[env.hierarchy.index[agents[0]]]
        driven = any(env.hierarchy.agents[env.hierarchy.index[agent]].policy is not None for agent in agents)
        if spec.size and (driven or rng.random() < 0.85):
            u = rng.random((LANES, len(agents), spec.size))
            numbers = spec.low + (spec.high - spec.low) * u[..., : spec.dim_c]
            given[name] = np.concatenate([numbers, np.floor(u[..., spec.dim_c :] * spec.ncats)], axis=-1)
    return given


def close(found: Any, expected: Any, least: float, where: str) -> None:
    """Equal but for `least`, of what is larger than 1 a part."""
    found, expected = np.asarray(found, dtype=np.float64), np.asarray(expected, dtype=np.float64)
    assert found.shape == expected.shape, where
    assert np.array_equal(np.isnan(found), np.isnan(expected)), where
    apart = np.abs(found - expected) / np.maximum(np.abs(expected), 1.0)
    assert not (apart > least).any(), f"{where}: {np.nanmax(apart)}"


def compare(build: Callable[..., HeronEnv], turns: int = 20, least: float = CLOSE, dtype: str = "float64") -> JaxEnv:
    """Both from seeds 5, 6, ...: everything that both tell."""
    batch, env = BatchEnv(build, LANES), JaxEnv(build, dtype=dtype)
    rng = np.random.default_rng(3)
    seen, infos = batch.reset(seed=5)
    state, step = jax.vmap(env.begin)(jnp.arange(5, 5 + LANES, dtype=jnp.uint64))
    jitted = jax.jit(jax.vmap(env.step))
    results: Any = None
    for turn in range(turns + 1):
        close(np.stack(state.truth, -1), batch._engine.truth, least, f"{turn}: truth")
        close(state.steps, batch.steps, 0.0, f"{turn}: steps")
        for name in env.groups:
            close(step.observations[name], seen[name], max(least, 2e-7), f"{turn}: {name} sees")
            assert set(infos[name]) - set(step.infos[name]) <= {"aoi", "decision", "action_mask"}
            for key in step.infos[name]:
                close(step.infos[name][key], infos[name][key], least, f"{turn}: {name}'s {key}")
            if results is not None:
                for what, mine in zip(results, (step.rewards, step.terminated, step.truncated), strict=True):
                    close(mine[name], what[name], least, f"{turn}: {name}")
        given = actions(env.env, env.groups, rng)
        seen, *results, infos = batch.step(given)
        state, step = jitted(state, {name: jnp.asarray(value) for name, value in given.items()})
    env.raise_errors(state)
    return env


@pytest.mark.parametrize("name", WORLDS)
def test_it_is_the_batch(name: str):
    compare(WORLDS[name])


def test_before_anything_is_compiled_it_says_that_this_takes_its_time(caplog: pytest.LogCaptureFixture):
    with caplog.at_level("WARNING", logger="heron_env"):
        env = JaxEnv("heron/BatteryGrid-v0", num_batteries=2)
        env.begin(jnp.uint64(0))
        env.begin(jnp.uint64(1))
    assert caplog.messages == ["JaxEnv(heron/BatteryGrid-v0): the first jitted call may compile for minutes"]


def test_in_float32_it_is_the_batch_for_a_few_steps():
    env = compare(WORLDS["BatteryGrid"], turns=5, least=2e-5, dtype="float32")
    state, _ = env.begin(jnp.uint64(0))
    assert {cell.dtype for cell in (*state.truth, *state.applied, *state.returns)} == {jnp.dtype("float32")}
    assert state.seeds.dtype == jnp.uint64


def test_one_environment_a_batch_and_a_scan_give_the_same():
    env = JaxEnv("heron/BatteryGrid-v0", num_batteries=2, max_steps=3)
    (group, agents), *_ = env.groups.items()
    given = np.random.default_rng(0).uniform(-1.0, 1.0, (7, 2, len(agents), 1))

    def roll(states: Any, step: Any) -> Any:
        return jax.lax.scan(lambda state, values: step(state, {group: values}), states, jnp.asarray(given))[1]

    seeds = jnp.arange(2, dtype=jnp.uint64)
    batch = jax.jit(lambda: roll(jax.vmap(env.begin)(seeds)[0], jax.vmap(env.step)))()
    for lane in range(2):
        state, one = env.begin(seeds[lane])[0], jax.jit(env.step)
        for turn in range(7):
            state, step = one(state, {group: given[turn, lane]})
            close(batch.rewards[group][turn, lane], step.rewards[group], CLOSE, "rewards")
            close(batch.observations[group][turn, lane], step.observations[group], 2e-7, "observations")
            assert bool(step.truncated[group].all()) == (turn % 3 == 2)


def test_a_key_draws_the_next_seed_and_the_last_observation_is_kept():
    env = JaxEnv("heron/BatteryGrid-v0", num_batteries=2, max_steps=2)
    state, _ = env.reset(jax.random.key(3))
    again = env.reset(jax.random.key(3))[0]
    assert again.seeds == state.seeds != env.reset(jax.random.key(4))[0].seeds
    one, (name,) = jax.jit(env.step), env.groups
    for key in jax.random.split(jax.random.key(5), 2):
        before, (state, step) = state, one(state, {name: jnp.ones((2, 1))}, key)
    assert state.seeds == jax.random.bits(key, dtype=jnp.uint64) != before.seeds
    assert (state.steps, state.episodes) == (0, 0)
    close(step.observations[name], env.begin(state.seeds)[1].observations[name], 0.0, "the next episode")
    assert not np.array_equal(step.final_observations[name], step.observations[name])


def test_without_autoreset_an_episode_that_has_ended_stands_still():
    env = JaxEnv("heron/BatteryGrid-v0", num_batteries=2, max_steps=2, autoreset=False)
    one, (state, _) = jax.jit(env.step), env.begin(jnp.uint64(1))
    (name,) = env.groups
    for turn in range(4):
        state, step = one(state, {name: jnp.ones((2, 1))})
        assert bool(state.over) == (turn >= 1)
        assert bool(step.truncated[name].all()) == (turn == 1)
        assert (np.asarray(step.rewards[name]) == 0.0).all() == (turn > 1)


class Division(FieldAgent):
    """Divides by what it is given."""

    features = (Store,)
    action = Continuous(-1.0, 1.0)

    @staticmethod
    @rule(writes=Store.flow)
    def apply_action(store: Store, action: Vector) -> float:
        return store.level / action[0]


def test_errors_are_kept_until_they_are_asked_for():
    def build() -> HeronEnv:
        return HeronEnv(SystemAgent("system_agent", Division("unit_1"), Division("unit_2")), max_steps=5)

    env = JaxEnv(build)
    (name,) = env.groups
    states = jax.vmap(env.begin)(jnp.arange(2, dtype=jnp.uint64))[0]
    step = jax.jit(jax.vmap(env.step))
    fine = np.full((2, 2, 1), 0.5)
    states, _ = step(states, {name: fine})
    env.raise_errors(states)
    zero = fine.copy()
    zero[1, 1] = 0.0
    failed, _ = step(states, {name: zero})
    failed, _ = step(failed, {name: fine})
    with pytest.raises(RuleError, match=r"lane 1: Division.apply_action of 'unit_2' .*nan or inf"):
        env.raise_errors(failed)
    zero[1, 1] = 2.0
    with pytest.raises(InvalidAction, match="lane 1: 'unit_2' was given an action outside"):
        env.raise_errors(step(states, {name: zero})[0])


class Rooted(HeronEnv):
    """Takes the root of what it drew, which is below 0 in half of the episodes."""

    global_features = (Weather,)

    @staticmethod
    @rule
    def begin(world: World) -> None:
        world[Division].Store.level[0] = world.draw("level")[0] - 0.5

    @staticmethod
    @rule
    def advance(world: World, dt: float) -> None:
        world.Weather.wind[0] = np.sqrt(world[Division].Store.level[0])


def test_a_quantity_that_is_nan_is_named_in_the_environment_where_it_is():
    env = JaxEnv(lambda: Rooted(SystemAgent("system_agent", Division("unit_1")), max_steps=5))
    states, _ = jax.vmap(env.begin)(jnp.arange(1, 9, dtype=jnp.uint64))
    negative = np.asarray(states.truth[0]) < 0.0
    assert 0 < negative.sum() < 8 and not negative[0]
    failed, _ = jax.jit(jax.vmap(env.step))(states, {next(iter(env.groups)): np.full((8, 1, 1), 0.5)})
    with pytest.raises(RuleError, match=rf"lane {negative.argmax()}: after advance\(\) .* are nan: \S*wind; check"):
        env.raise_errors(failed)
    assert (np.asarray(failed.error) != 0).tolist() == negative.tolist()


REFUSED: dict[str, tuple[Callable[..., HeronEnv], str]] = {
    "hooks": (
        lambda: replace(TALKING, hooks="alone").build(None),
        r"JaxEnv\(\w+\): \w+\(\) is Python, not a rule; BatchEnv runs it",
    ),
    "loops": (partial(make, "heron/EnergyManagement-v1"), r"it has compiled loops of its own, .*; BatchEnv runs it"),
    "exchange": (partial(make, "heron/GraphColoring-v0"), r"JaxEnv\(\w+\): .*; BatchEnv runs it"),
    "imperative": (partial(lamps, "hand"), r"JaxEnv\(HeronEnv\): .*ByHand.*; BatchEnv runs it"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_more_than_rules_is_refused_by_name(name: str):
    build, text = REFUSED[name]
    with pytest.raises(ConfigError, match=text):
        JaxEnv(build)


def test_wrong_arguments_are_named():
    with pytest.raises(ConfigError, match=r"JaxEnv\(dtype='float16'\): must be 'float64' or 'float32'"):
        JaxEnv("heron/BatteryGrid-v0", dtype="float16")
    with jax.enable_x64(False), pytest.raises(ConfigError, match=r'call jax.config.update\("jax_enable_x64", True\)'):
        JaxEnv("heron/BatteryGrid-v0")
    env = JaxEnv("heron/BatteryGrid-v0")
    with pytest.raises(UnknownAgent, match="nobody"):
        env.step(env.begin(jnp.uint64(0))[0], {"nobody": jnp.zeros((1, 1))})


def filled(values: Any, least: float) -> None:
    """Writes elements as long as what is written says so."""
    at = 0
    while values[0] > least:
        values[at] = least
        at += 1


def test_elements_that_an_open_loop_assigns_are_refused():
    filler = Converter(vars(WORDS), VALUES).value(filled)
    with pytest.raises(RuleError, match="in a `while` whose end depends on the state; use a `for`"):
        jax.make_jaxpr(lambda x: filler(CellView.of(x), 0.0))(jnp.ones(3))


@pytest.mark.parametrize("observability", [None, NOISY], ids=["exact", "noisy"])
def test_it_shows_who_is_in_sight(observability: Any) -> None:
    options = {"observe_visible": True, "observe_age": True, "observability": observability}
    env, twin = fog(**options), JaxEnv(fog(**options))
    observed, _ = env.reset(seed=3)
    state, step = twin.begin(3, 0)
    for _ in range(8):
        seen = np.stack([*observed.values()])
        assert np.array_equal(np.asarray(step.observations["w"]), seen)
        actions = {agent: wave(vector) for agent, vector in observed.items()}
        observed, *_ = env.step(actions)
        state, step = twin.step(state, {"w": np.array([*actions.values()])})
