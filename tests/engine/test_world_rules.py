"""World rules: compiled they do what they do in plain Python, draws bit for bit; what can't be is explained."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from refusing import refuses

from heron_env import (
    BatchEnv,
    Continuous,
    EventBatchEnv,
    FeatureProvider,
    FieldAgent,
    HeronEnv,
    ScheduleConfig,
    SystemAgent,
    World,
    quantity,
    rule,
)
from heron_env.errors import RuleError, UnknownFeature

pytestmark = pytest.mark.e2e
LATE = ScheduleConfig(obs_delay=0.3, act_delay=0.2, jitter_type="gaussian", jitter_ratio=0.3)


class Tank(FeatureProvider):
    level: float = quantity(default=0.5, low=0.0, high=2.0)
    draw: float = 1.0
    turns: int = quantity(default=0, low=0, high=5)
    layers: np.ndarray = quantity(default=0.0, shape=(3,), high=4.0)


class Weather(FeatureProvider):
    visibility = ("public",)
    heat: float = quantity(default=0.0, low=-1.0, high=1.0)
    hours: np.ndarray = quantity(default=0.0, shape=(4,))


class Boiler(FieldAgent):
    features = (Tank,)
    action = Continuous(-1.0, 1.0)


class SmallBoiler(Boiler):
    pass


class Idler(FieldAgent):
    features = (Tank,)
    action = Continuous(-1.0, 1.0)


def warm(tank: Any, by: float) -> None:
    for i in range(len(tank.level)):
        tank.level[i] += by * (i + 1) * tank.draw[i]


def doubled(x: Any) -> Any:
    """Of a number it makes no array, of an array it does."""
    return x + x


class Bath(HeronEnv):
    global_features = (Weather,)

    @staticmethod
    @rule
    def begin(world: World) -> None:
        tank, drawn = world[Boiler].Tank, world.draw("layers", (2, 3))
        tank.level[:] = doubled(world.draw("level", len(tank.level)))
        for k in range(3):
            tank.layers[0, k] = drawn[1, k] - drawn[0, k]
        world.Weather.heat[0] = 2.0 * world.draw("heat")[0] - 1.0

    @staticmethod
    @rule
    def advance(world: World, dt: float) -> None:
        warm(world[Boiler].Tank, dt * world.Weather.heat[0])
        tank = world[Idler].Tank
        for i in range(len(tank.turns)):
            tank.turns[i] += doubled(0.375)
            tank.layers[i, 2] += world.time + i
        world.Weather.hours[0, world.step % 4] += 1.0

    @staticmethod
    @rule(writes=(Weather.heat, Tank.turns))
    def finish(world: World) -> None:
        world.Weather.heat[0] += doubled(1.5 * world.draw("heat")[0]) - 1.0
        world[Boiler].Tank.turns[0] = world.time + 0.25

    @staticmethod
    @rule
    def training_rewards(world: World) -> Any:
        """Of all that decide: the boilers, then the idler."""
        boilers, earned = world[Boiler].Tank, np.zeros(len(world[Boiler].Tank.level) + 1)
        earned[:-1] = boilers.level * world.Weather.heat[0] - boilers.turns
        earned[-1] = world.time + world[Idler].Tank.layers[0].sum()
        return earned


def bath(*, boilers: int = 3, kind: type = Bath, **options: Any) -> HeronEnv:
    agents = [*(Boiler(f"b{i}") for i in range(boilers)), Idler("idle")]
    return kind(SystemAgent("top", *agents), max_steps=6, **options)


def test_compiled_world_rules_do_what_they_do_in_plain_python():
    pair = [bath(compile=compiled, physics_substeps=2) for compiled in (True, False)]
    seen = set()
    for seed in (0, None, 2**41 + 3):
        for env in pair:
            env.reset(seed=seed)
        for _ in range(6):
            compiled, plain = (env.simulation.truth.copy() for env in pair)
            assert np.array_equal(compiled, plain)
            seen.add(plain.tobytes())
            for env in pair:
                env.step({})
    assert pair[0].compiled
    assert not pair[1].compiled
    assert len(seen) == 18, "nothing moves"
    assert pair[0].world.Weather.heat[0] == 1.0 or np.abs(pair[0].world.Weather.heat).max() <= 1.0


@pytest.mark.parametrize("compile", [True, False])
def test_training_rewards_in_a_rule_are_those_of_each_lane_alone(compile: bool):
    batch, told = BatchEnv(lambda: bath(compile=compile), 3, seed=4), list[Any]()
    batch.at_close.append(lambda: told.append([batch.training_rewards(group) for group in batch.groups]))
    singles = [bath(compile=not compile) for _ in range(3)]
    batch.reset()
    for lane, single in enumerate(singles):
        single.reset(seed=4 + lane)
    for step in range(6):
        batch.step({})
        for lane, single in enumerate(singles):
            single.step({})
            signal = [value for group in told[step] for value in group[lane].tolist()]
            assert signal == list(single.training_signal().values())
    assert len({str(values) for values in told}) == 6, "nothing changes"
    if compile:  # no Python at the boundary, and nothing to be asked before lanes begin anew
        assert batch.training_rewards("b0").tolist() == told[-1][0].tolist()


def test_training_rewards_in_a_rule_come_with_the_rows_of_an_event_batch():
    compiled = EventBatchEnv(lambda: bath(compile=True), 2, seed=4, schedule=LATE)
    plain = EventBatchEnv(lambda: bath(compile=False), 2, seed=4, schedule=LATE, with_state=True)
    assert not compiled._engine.lanes.places_in_python
    pair = [compiled.begin(), plain.begin()]
    for _ in range(20):
        (signal, ended), other = ((rows.training_reward, rows.ended.training_reward) for rows in pair)
        assert np.array_equal(signal, other[0]) and np.array_equal(ended, other[1])
        pair = [batch.answer(np.zeros(len(rows))) for batch, rows in zip((compiled, plain), pair, strict=True)]
    assert compiled.result(0) is not None and np.abs(signal).max() > 0.0


def with_rule(name: str, function: Callable[..., Any], compile: bool = True, **declared: Any) -> HeronEnv:
    marked = staticmethod(rule(**declared)(function) if declared else rule(function))
    return bath(kind=type("Bath", (HeronEnv,), {"global_features": (Weather,), name: marked}), compile=compile)


def no_feature(world: Any) -> None:
    world[Boiler].Tnak.level[0] = 1.0


def no_field(world: Any) -> None:
    world[Boiler].Tank.levle[0] = 1.0


def no_global(world: Any) -> None:
    world.Wether.heat[0] = 1.0


def of_agents(world: Any) -> None:
    world.Tank.level[0] = 1.0


def replaces(world: Any) -> None:
    world[Boiler].Tank.level = 1.0


def undeclared(world: Any) -> None:
    world[Idler].Tank.level[0] = 1.0


def helped(tank: Any) -> None:
    tank.levels[0] = 1.0


def calls_helper(world: Any) -> None:
    helped(world[Boiler].Tank)


def line_of(text: str) -> str:
    for number, line in enumerate(Path(__file__).read_text().splitlines(), 1):
        if line.strip() == text:
            return f"{__file__}:{number}: `{text}`"
    raise LookupError(text)


OTHER_THAN_FOUR = (
    "Bath.training_rewards returned other than 4 finite numbers at t=1.0 s; return one for each of possible_agents"
)
OTHERWISE = "or build the environment with compile=False"
CASES: dict[Callable[..., Any], tuple[str, str, dict[str, Any]]] = {
    no_feature: ("world[Boiler].Tnak.level[0] = 1.0", "no feature 'Tnak' here; there are ['Tank']. Did you mean", {}),
    no_field: (
        "world[Boiler].Tank.levle[0] = 1.0",
        "Tank has no field 'levle'; fields are ['level', 'draw', 'turns', 'layers']. Did you mean 'level'?",
        {},
    ),
    no_global: ("world.Wether.heat[0] = 1.0", "no feature 'Wether' here; there are ", {}),
    of_agents: (
        "world.Tank.level[0] = 1.0",
        "world.Tank: no global feature, but one of agents; write world[Boiler].Tank or world[Idler].Tank",
        {},
    ),
    undeclared: (
        "world[Idler].Tank.level[0] = 1.0",
        "it writes what it does not declare, which is [Weather.heat]",
        {"writes": Weather.heat},
    ),
    calls_helper: ("tank.levels[0] = 1.0", "Tank has no field 'levels'; fields are ", {}),
}


@pytest.mark.parametrize("function", CASES, ids=lambda function: function.__name__)
def test_what_a_world_can_t_do_is_explained_with_the_line(function: Callable[..., Any]):
    line, reason, declared = CASES[function]
    with pytest.raises(RuleError) as caught:
        with_rule("finish", function, **declared).reset(seed=0)
    assert str(caught.value).startswith(f"Bath.finish can't be compiled: {line_of(line)}: {reason}")
    assert str(caught.value).endswith(OTHERWISE)


def replaces_in_a_helper(world: Any) -> None:
    filled(world.Weather)


def filled(weather: Any) -> None:
    weather.heat = 1.0


@pytest.mark.parametrize("compile", [False, True])
@pytest.mark.parametrize(
    ("function", "line", "field"),
    [(replaces, "world[Boiler].Tank.level = 1.0", "level"), (replaces_in_a_helper, "weather.heat = 1.0", "heat")],
    ids=["itself", "in a helper"],
)
def test_no_rule_replaces_a_column_compiled_or_not(compile: bool, function: Any, line: str, field: str):
    with refuses(RuleError, f"Bath.finish: {line_of(line)}: a rule can't replace a column; write .{field}[:] = ..."):
        with_rule("finish", function, compile)


def names_nothing(world: Any) -> None:
    world.Weather.heat[0] = heating  # type: ignore[name-defined]  # noqa: F821


def reaches_too_far(world: Any) -> None:
    beyond(world.Weather.heat, 9)


def beyond(column: Any, place: int) -> None:
    column[place] = 1.0


@pytest.mark.parametrize(
    ("function", "line", "failure", "remedy"),
    [
        (
            names_nothing,
            "world.Weather.heat[0] = heating  # type: ignore[name-defined]  # noqa: F821",
            "NameError(\"name 'heating' is not defined\")",
            "import it, or correct the name",
        ),
        (
            reaches_too_far,
            "column[place] = 1.0",
            "IndexError('index 9 is out of bounds for axis 0 with size 1')",
            "check divisions, roots and indices",
        ),
    ],
    ids=["a name", "an index"],
)
@pytest.mark.parametrize("name", ["begin", "finish"])
def test_a_rule_that_fails_in_plain_python_is_told_with_its_line(
    name: str, function: Any, line: str, failure: str, remedy: str
):
    env = with_rule(name, function, compile=False)
    with refuses(RuleError, f"Bath.{name} ended in {failure} at {line_of(line)}; {remedy}"):
        env.reset(seed=0)
        env.step({})


def test_what_a_python_hook_raises_is_left_as_it_is():
    def stumbles(self: Any, world: Any) -> None:
        raise ValueError("mine")

    env = bath(kind=type("Bath", (HeronEnv,), {"global_features": (Weather,), "begin": stumbles}), compile=False)
    with pytest.raises(ValueError, match=r"^mine$"):
        env.reset(seed=0)


def test_the_name_of_a_draw_is_written_out():
    def anyhow(world: Any) -> None:
        for name in ("a", "b"):
            world[Boiler].Tank.level[0] += world.draw(name)[0]

    with pytest.raises(RuleError, match="the name of a draw must be written out where it is drawn"):
        with_rule("begin", anyhow).reset(seed=0)


def test_a_class_that_no_agent_is_of_is_named():
    def lost(world: Any) -> None:
        world[SmallBoiler].Tank.level[0] = 1.0

    message = "Bath.finish: world[SmallBoiler]: no agent of that class; classes are ['SystemAgent', 'Boiler', 'Idler']"
    with pytest.raises(UnknownFeature) as caught:
        with_rule("finish", lost).reset(seed=0)
    assert str(caught.value).startswith(message)


def test_a_nan_of_a_world_rule_is_refused_by_name():
    def spoils(world: Any) -> None:
        world.Weather.heat[0] = np.nan * world.Weather.hours[0, 0]

    for declared in ({}, {"writes": Weather.heat}):
        env = with_rule("finish", spoils, **declared)
        env.reset(seed=0)
        with pytest.raises(RuleError, match=r"global\.Weather\.heat"):
            env.step({})


def test_a_base_class_stands_for_the_one_class_that_derives_from_it():
    env = bath()
    env.reset(seed=0)
    assert env.world[Boiler].Tank.level.shape == (3,)
    with pytest.raises(UnknownFeature, match=r"agents of the classes \['Boiler', 'Idler'\] derive from it"):
        env.world[FieldAgent]
    small = Bath(SystemAgent("top", SmallBoiler("s"), Idler("i")), max_steps=1)
    small.reset(seed=0)
    assert np.shares_memory(small.world[Boiler].Tank.level, small.world[SmallBoiler].Tank.level)


def one_number(world: Any) -> Any:
    return world.time


def a_write(world: Any) -> Any:
    world.Weather.heat[0] = 1.0
    return np.zeros(4)


def too_few(world: Any) -> Any:
    return np.zeros(3)


def a_nan(world: Any) -> Any:
    return np.full(4, np.nan)


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (one_number, "Bath.training_rewards returns float64; return an array, `[possible agents]`"),
        (
            a_write,
            f"Bath.training_rewards can't be compiled: {line_of('world.Weather.heat[0] = 1.0')}: it writes into the "
            "world, which it may only read; write it with numbers, arrays, math and numpy functions that numba "
            f"knows, {OTHERWISE}",
        ),
        (too_few, OTHER_THAN_FOUR),
        (a_nan, OTHER_THAN_FOUR),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_training_rewards_in_a_rule_are_a_number_for_each_and_write_nothing(function: Any, words: str):
    with refuses(RuleError, words):
        env = with_rule("training_rewards", function)
        env.reset(seed=0)
        env.step({})


def test_a_world_rule_is_static_and_takes_a_world():
    def method(self: Any, world: Any) -> None: ...

    with pytest.raises(RuleError, match=r"Bad.finish is a world rule and a method; write @staticmethod @rule def"):
        type("Bad", (HeronEnv,), {"finish": rule(method)})
    with pytest.raises(RuleError, match=r"Bad.finish is a world rule of other parameters; write def finish\(world\)"):
        type("Bad", (HeronEnv,), {"finish": staticmethod(rule(method))})


def test_a_class_tells_its_world_rules_from_its_python_hooks():
    class Mixed(Bath):
        def begin(self, world: World) -> None: ...

    assert set(Bath.world_rules()) == {"begin", "advance", "finish", "training_rewards"}
    assert Bath.python_hooks() == ()
    assert set(Mixed.world_rules()) == {"advance", "finish", "training_rewards"}
    assert Mixed.python_hooks() == ("begin",)
    assert HeronEnv.python_hooks() == ()
