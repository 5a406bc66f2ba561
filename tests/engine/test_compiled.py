"""Compiled rules mean what plain Python means: every rule of every agent, on the same random states and actions."""

import re
import subprocess
import sys
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from rule_kit import Head, Station, Sun, Tank, Valve
from worlds import Chooser, Hand, LawEnv, Team, Top, Unit, Zone

from heron_env import Continuous, FeatureProvider, FieldAgent, HeronEnv, SystemAgent, Vector, make, quantity, rule
from heron_env.core.rule import RULE_NAMES
from heron_env.engine.binding import Binder
from heron_env.engine.compiled import CompiledBinder, compile_rules
from heron_env.engine.source import Source
from heron_env.errors import RuleError

WRITING = ("apply_action", "advance")


class KitEnv(HeronEnv):
    global_features = (Sun,)


def law_world() -> HeronEnv:
    """Every class of worlds.py; the second zone's children are scattered."""
    mixed = Zone("z2", Chooser("c1"), Unit("u3"), Hand("h1"), Chooser("c2"))
    return LawEnv(Top("top", Zone("z1", Unit("u1"), Unit("u2")), mixed, Team("t", Unit("u4"))), max_steps=5)


def kit_world() -> HeronEnv:
    """Everything that a rule may read, write and do."""
    near = Station("near", Tank("a"), Valve("b"), Tank("c"), Valve("d"))
    return KitEnv(Head("head", near, Station("far", Tank("e"), Tank("f"))), max_steps=5)


def grid(control: str) -> HeronEnv:
    return make("heron/BatteryGrid-v0", num_batteries=4, zone_size=3, control=control)


def energy() -> HeronEnv:
    return make("heron/EnergyManagement-v0", control="zone")


class Both:
    """One hierarchy in both executions, on truths that are equal at the start."""

    def __init__(self, env: HeronEnv) -> None:
        env.reset(seed=3)
        simulation = env.simulation
        self.hierarchy, self.layout = simulation.hierarchy, simulation.layout
        features = type(env).global_features
        self.compiled = CompiledBinder(self.hierarchy, self.layout, features)
        self.truth = simulation.truth.copy()
        self.seen = self.compiled.truth[0, : self.layout.size]
        self.seen[:] = self.truth
        self.actions = [Vector([0.0] * agent.current_action.spec.size) for agent in self.hierarchy.agents]
        self.plain = Binder(self.hierarchy, self.layout, features, self.truth, self.actions)
        self.worst = 0.0

    def act(self, rng: np.random.Generator) -> None:
        """A random action for each agent, the same in both."""
        for rank, agent in enumerate(self.hierarchy.agents):
            spec = agent.current_action.spec
            values = np.concatenate([rng.uniform(spec.low, spec.high), rng.integers(spec.ncats)])
            self.actions[rank]._values = values.tolist()
            self.compiled.action(rank)[:] = values

    def run(self, rank: int, name: str, time: float, child_rewards: Any) -> None:
        """One rule in both; the larger of the distances is kept."""
        if name == "apply_action" and not len(self.actions[rank]):
            return  # nobody ever decides for this agent
        runs = [binder.bind(rank, name) for binder in (self.plain, self.compiled)]
        assert (runs[0] is None) == (runs[1] is None), (rank, name)
        if runs[0] is None or runs[1] is None:
            return
        children = len(self.hierarchy.children[rank])
        given = child_rewards[:children] if name == "compute_local_reward" and children else None
        expected, found = runs[0](0.5, time, given), runs[1](0.5, time, given)
        if name == "get_local_info":
            assert list(found) == list(expected._fields)
            expected, found = list(expected), list(found.values())
        if name not in WRITING:
            self._compare(expected, found, (rank, name))
        self._compare(self.truth, self.seen, (rank, name))

    def _compare(self, expected: Any, found: Any, what: Any) -> None:
        distance = np.abs(np.asarray(expected, dtype=float) - np.asarray(found, dtype=float)).max(initial=0.0)
        assert distance <= 1e-9, what
        self.worst = max(self.worst, float(distance))


WORLDS = {
    "worlds.py": (law_world, False),
    "rule_kit.py": (kit_world, False),
    "BatteryGrid, field": (lambda: grid("field"), True),
    "BatteryGrid, zone": (lambda: grid("zone"), True),
    "EnergyManagement": (energy, False),
}


@pytest.mark.parametrize("name", WORLDS)
def test_compiled_rules_equal_plain_python(name: str, capsys: pytest.CaptureFixture[str]):
    make_world, equal_bits = WORLDS[name]
    started = time.perf_counter()
    both, rng = Both(make_world()), np.random.default_rng(7)
    for step in range(12):
        both.act(rng)
        rewards = rng.normal(size=len(both.hierarchy))
        for rule_name in RULE_NAMES:
            for rank in range(len(both.hierarchy)):
                both.run(rank, rule_name, 0.7 * step, rewards)
    with capsys.disabled():
        print(f"\n{name}: distance {both.worst:.1e}, {time.perf_counter() - started:.1f} s with compilation")
    if equal_bits:
        assert both.worst == 0.0


def test_rules_that_allocate_are_known_and_the_others_count_no_references():
    both = Both(kit_world())
    assert both.compiled.rules.facts.allocates == (
        "Station_advance",  # numba's np.max does
        "Station_compute_local_reward",
        "Tank_advance",
        "Tank_compute_local_reward",
        "Valve_apply_action",
    )
    assert both.compiled.rules.facts.infos == {"Tank": ("level", "double", "mode")}


def test_the_same_classes_in_another_tree_need_no_second_compilation():
    first = Both(kit_world()).compiled
    other = KitEnv(Head("head", Station("s", *(Tank(f"t_{i}") for i in range(5)), Valve("v")), Valve("w")))
    second = CompiledBinder(other.simulation.hierarchy, other.simulation.layout, (Sun,))
    assert second.rules is first.rules
    assert second.tables.tab.tolist() != first.tables.tab.tolist()


def test_lanes_are_apart():
    both = Both(kit_world())
    binder = CompiledBinder(both.hierarchy, both.layout, (Sun,), lanes=2)
    binder.truth[:, : both.layout.size] = both.truth
    rank = both.hierarchy.index["b"]
    run = binder.bind(rank, "advance", lane=1)
    assert run is not None
    run(0.5, 0.0, None)
    plain = both.plain.bind(rank, "advance")
    assert plain is not None
    plain(0.5, 0.0, None)
    np.testing.assert_allclose(binder.truth[1, : both.layout.size], both.truth, rtol=0, atol=1e-12)
    assert binder.truth[0, both.layout.rows[rank].slice].tolist() != both.truth[both.layout.rows[rank].slice].tolist()


class Gauge(FeatureProvider):
    over: float = quantity(default=0.0, low=-1.0, high=1.0)
    free: float = 0.0
    steps: int = quantity(low=0, high=9)
    pair: np.ndarray = quantity(default=(0.0, 0.0), shape=(2,), low=-1.0, high=1.0)
    number: int = quantity(default=0, low=0, high=9)


class Faulty(FieldAgent):
    """`number` says which write gets a value that is not finite, and dt which value."""

    features = (Gauge,)
    action = Continuous(-1.0, 1.0)

    @staticmethod
    @rule(writes=(Gauge.over, Gauge.free, Gauge.steps, Gauge.pair))
    def advance(gauge: Gauge, dt: float) -> tuple[float, float, float, tuple[float, float]]:
        k = gauge.number
        return (
            dt if k == 0 else 0.5,
            dt if k == 1 else 0.5,
            dt if k == 2 else 1.0,
            (0.1, dt if k == 3 else 0.2),
        )

    @staticmethod
    @rule(writes=Gauge.free)
    def apply_action(gauge: Gauge, action: Vector) -> float:
        return 1.0 / gauge.free

    @staticmethod
    @rule
    def compute_local_reward(gauge: Gauge, action: Vector) -> float:
        return action[gauge.number]


QUANTITIES = ("Gauge.over", "Gauge.free", "Gauge.steps", "Gauge.pair")


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("number", range(4))
def test_both_refuse_what_is_not_finite_and_name_agent_rule_and_quantity(number: int, value: float):
    both = Both(HeronEnv(SystemAgent("top", Faulty("faulty")), max_steps=3))
    for truth in (both.truth, both.seen):
        truth[-1] = number
    needed = "2 numbers are needed" if number == 3 else "a number is needed"
    pattern = f"Faulty.advance of 'faulty' returned .* for {QUANTITIES[number]}: {needed}; check divisions"
    for binder in (both.plain, both.compiled):
        run = binder.bind(1, "advance")
        assert run is not None
        with pytest.raises(RuleError, match=pattern):
            run(value, 0.0, None)
    assert both.seen.tolist() == [0.0, 0.0, 0.0, 0.0, 0.0, number]  # compiled: nothing was written


def test_both_refuse_a_division_by_zero():
    both = Both(HeronEnv(SystemAgent("top", Faulty("faulty")), max_steps=3))
    messages = []
    for binder in (both.plain, both.compiled):
        run = binder.bind(1, "apply_action")
        assert run is not None
        with pytest.raises(RuleError) as caught:
            run(1.0, 0.0, None)
        messages.append(str(caught.value))
    start = "Faulty.apply_action of 'faulty' returned"
    assert messages == [
        f"{start} nothing for Gauge.free: float division by zero; check divisions, roots and indices",
        f"{start} nan or inf for Gauge.free: a number is needed; check divisions, roots and returns",
    ]


def test_both_refuse_an_element_that_an_action_does_not_have():
    both = Both(HeronEnv(SystemAgent("top", Faulty("one"), Faulty("two")), max_steps=3))
    for truth in (both.truth, both.seen):
        truth[:] = 1.0
    for binder, reason in ((both.plain, "list index out of range"), (both.compiled, "index is out of bounds")):
        run = binder.bind(1, "compute_local_reward")
        assert run is not None
        message = f"Faulty.compute_local_reward of 'one' returned nothing: {reason}; check divisions, roots and indices"
        with pytest.raises(RuleError, match=re.escape(message)):
            run(1.0, 0.0, None)


def test_the_source_is_short_and_reads_without_numba():
    program = (
        "import sys; sys.path.insert(0, 'tests')\n"
        "from heron_env import make\n"
        "from heron_env.engine.source import Source\n"
        "s = make('heron/BatteryGrid-v0').simulation\n"
        "print(Source(s.hierarchy, s.layout).text()); assert 'numba' not in sys.modules"
    )
    text = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    functions: Sequence[str] = re.findall(r"^def (\w+)", text, re.MULTILINE)
    assert functions == ["Battery_apply_action", "Battery_compute_local_reward", "apply_action", "compute_local_reward"]
    assert text.split("\n\n\n")[1] == BATTERY


BATTERY = """\
@leaf
def Battery_apply_action(t, a, rewards, b, i, tab, gather, g, dt, time):
    o = tab[i, 0]
    charge = BatteryChargeFeature(t[b, o], t[b, o + 1])
    r = Battery_apply_action_rule(charge, a[b, tab[i, 1]:tab[i, 2]])
    if refused(r):
        return 1
    t[b, o] = within(r, 0.0, 1.0)
    return 0"""


def test_an_entry_tells_agents_without_the_rule_apart():
    both = Both(kit_world())
    source = Source(both.hierarchy, both.layout, (Sun,))
    entries, tables = compile_rules(source).entries, both.compiled.tables
    head = int(tables.position[0])
    arrays = both.compiled.truth, both.compiled.actions, both.compiled.rewards
    rest = (0, head, tables.tab, tables.gather, tables.global_offset, 1.0, 0.0)
    assert entries["apply_action"](*arrays, *rest) == 0
    assert entries["is_terminated"](*arrays, *rest) is False
