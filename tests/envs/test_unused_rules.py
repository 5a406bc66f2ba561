"""What an author wrote and nothing calls: told, and refused where it is called like something that is."""

import re
from typing import Any

import pytest
from broken_envs import Level, Price, Setpoint, Sound, Unit

from heron_env import (
    Children,
    Continuous,
    CoordinatorAgent,
    FieldAgent,
    HeronEnv,
    Parent,
    SystemAgent,
    VectorDecomposition,
    World,
    rule,
)
from heron_env.core.rule import RULE_NAMES, RULES
from heron_env.errors import ConfigError, RuleError
from heron_env.testing import Finding, Status, check_env


def env(attributes: dict[str, Any] | None = None, hooks: dict[str, Any] | None = None, base: Any = FieldAgent) -> Any:
    """An environment of one agent with these attributes, in an environment with these."""
    kind = type("Mine", (base,), {"features": (Level, Setpoint), "action": Continuous(-1.0, 1.0), **(attributes or {})})
    world = type("World_", (HeronEnv,), {"global_features": (Price,), **(hooks or {})})
    return world(SystemAgent("system_agent", kind("mine_1")), max_steps=3)


def unused(env: HeronEnv) -> list[Finding]:
    """What `heron check` warns of, but for methods on self, which are only slow."""
    warned = [one for one in check_env(env, only=["rules"]).findings if one.status is Status.WARNING]
    return [one for one in warned if "methods on self" not in one.what]


def reward(level: Level) -> float:
    return -level.value


def of_price(price: Price, dt: float) -> float:
    return price.value * dt


def of_parent(level: Parent[Level]) -> float:
    return level.value


def of_children(level: Children[Level]) -> float:
    return level.value.sum()


def paid(self: Any, local_state: Any) -> float:
    return 1.0


def paid_with_children(self: Any, local_state: Any, child_rewards: Any) -> float:
    return 1.0


NAMES = [
    ("compute_local_rewrd", "compute_local_reward"),
    ("compute_reward", "compute_local_reward"),
    ("compute_local_rewards", "compute_local_reward"),
    ("is_terminate", "is_terminated"),
    ("terminated", "is_terminated"),
    ("is_trucated", "is_truncated"),
    ("advanse", "advance"),
    ("aply_action", "apply_action"),
    ("get_local_infos", "get_local_info"),
]


def test_a_rule_under_nearly_its_name_is_refused():
    for name, meant in NAMES:
        for function in (reward, staticmethod(of_price), of_parent, staticmethod(of_children)):
            with pytest.raises(
                RuleError, match=f"^Mine.{name}: nothing calls it. Did you mean '{meant}'\\? Write @stat"
            ):
                env({name: function})


def test_so_is_a_method():
    for name, method, meant in [
        ("compute_local_rewrd", paid, "compute_local_reward(self, local_state[, child_rewards])"),
        ("compute_local_rewrd", paid_with_children, "compute_local_reward(self, local_state[, child_rewards])"),
        ("is_terminate", paid, "is_terminated(self, local_state)"),
        ("advanse", lambda self, dt: None, "advance(self, dt)"),
        ("apply_actions", lambda self: None, "apply_action(self)"),
    ]:
        with pytest.raises(RuleError) as error:
            env({name: method})
        assert f"Mine.{name}: nothing calls it. Did you mean" in str(error.value)
        assert f"Write def {meant}; rename it" in str(error.value)


class Tank(Unit):
    """Helpers of every kind, some near the name of a rule."""

    @staticmethod
    def headroom(level: Level) -> float:
        return 100.0 - level.value

    @staticmethod
    def advanced(level: Level) -> float:
        return level.value + 1.0

    @staticmethod
    def _advance_(level: Level) -> float:
        return level.value

    @staticmethod
    def scaled(value: float) -> float:
        return 2.0 * value

    @staticmethod
    def compute_local_rewards(level: Level, weight: float) -> float:
        return weight * level.value

    def remember(self, local_state: Any) -> None:
        """Not near anything."""

    @staticmethod
    @rule
    def compute_local_reward(level: Level, price: Price) -> float:
        return -abs(Tank.headroom(level)) * price.value - Tank.advanced(level)


class TankZone(CoordinatorAgent):
    """Near a rule that the class has itself: advances beside advance."""

    features = (Level,)

    @staticmethod
    @rule(writes=Level.value)
    def advance(level: Level) -> float:
        return TankZone.advances(level)

    @staticmethod
    def advances(level: Level) -> float:
        return level.value


class TankEnv(Sound):
    """Hooks and helpers."""

    unit = Tank

    def begin(self, world: World) -> None:
        self.set_price(world)

    def finish(self, world: World) -> None:
        self.set_price(world)

    def set_price(self, world: World) -> None:
        world.Price.value[...] = 0.3

    def finish_all(self, note: str) -> None:
        """Another signature."""


def test_helpers_stay_legal():
    tanks = TankEnv()
    assert unused(tanks) == []
    tanks.reset(seed=0)
    report = check_env(TankEnv, only=["rules"])
    assert {f.status for f in report.findings} == {Status.PASSED}
    zones = type("Zones", (HeronEnv,), {"global_features": (Price,)})(
        SystemAgent("system_agent", TankZone("zone_1", Unit("unit_1"))), max_steps=2
    )
    assert unused(zones) == []


def test_an_unheard_reader_of_features_is_told_by_check():
    broken = env({"profit": staticmethod(reward), "compute_local_reward": staticmethod(rule(lambda dt: dt))})
    (entry,) = unused(broken)
    assert entry.what == "Mine.profit(level) reads features, and nothing calls it"
    assert entry.mend.startswith(f"name it {', '.join(RULE_NAMES)} and write @staticmethod @rule above")
    (finding,) = check_env(broken, only=["rules"]).findings
    assert (finding.status, finding.what) == (Status.WARNING, entry.what)


def test_every_feature_that_a_rule_may_read_counts():
    for function in [reward, of_price, of_parent, of_children]:
        told = [entry.what for entry in unused(env({"profit": function})) if "profit" in entry.what]
        assert len(told) == 1
        assert unused(env({"_profit": function}))[0].what.startswith("nobody earns")


def test_a_function_of_the_world_that_nothing_calls_is_told():
    def each_step(self: Any, world: World) -> None:
        world.Price.value[...] = 0.5

    told = [entry.what for entry in unused(env(hooks={"each_step": each_step}))]
    assert told[0] == "World_.each_step(self, world) takes the world, and nothing calls it"


def test_a_misspelt_hook_is_refused():
    for name, hook, meant in [
        ("finnish", lambda self, world: None, "finish(self, world)"),
        ("finishes", lambda self, world: None, "finish(self, world)"),
        ("finnish", staticmethod(lambda world: None), "finish(self, world)"),
        ("beginn", lambda self, world: None, "begin(self, world)"),
        ("advancee", lambda self, world, dt: None, "advance(self, world, dt)"),
        ("kpi", lambda self: {}, "kpis(self)"),
        ("training_reward", lambda self, world: None, "training_rewards(self, world)"),
        ("training_default", lambda self: None, "training_defaults(self)"),
        ("benchmarks", lambda self: None, "benchmark(self)"),
        ("disturbe", lambda self, world, disturbance: None, "disturb(self, world, disturbance)"),
        ("uphole", lambda self, world, disturbances: None, "uphold(self, world, disturbances)"),
        ("run_simulations", lambda self, env_state: None, "run_simulation(self, env_state)"),
    ]:
        with pytest.raises(RuleError) as error:
            env(hooks={name: hook})
        word = meant.partition("(")[0]
        assert f"World_.{name}: nothing calls it. Did you mean '{word}'? Write def {meant}; rename it" in str(
            error.value
        )


def test_a_world_rule_under_another_name_is_refused():
    with pytest.raises(RuleError, match="each_step: nothing calls a world rule of that name; rename it to one of beg"):
        env(hooks={"each_step": staticmethod(rule(lambda world: None))})
    with pytest.raises(RuleError, match="Did you mean 'finish'"):
        env(hooks={"finnish": staticmethod(rule(lambda world: None))})


def test_a_hook_that_cannot_be_called_is_refused_when_its_class_is_made():
    for name, hook, called in [
        ("finish", lambda self: None, "finish(self, world)"),
        ("finish", lambda world: None, "finish(self, world)"),
        ("finish", staticmethod(lambda: None), "finish(self, world)"),
        ("advance", lambda self, world: None, "advance(self, world, dt)"),
        ("kpis", lambda self, world: {}, "kpis(self)"),
        ("happen", lambda self, world: None, "happen(self, world, event)"),
        ("begin", 3, "begin(self, world)"),
        ("link", lambda self, world, receiver, sender: (1.0, 0.0), "link(self, world, sender, receiver)"),
        ("advance", staticmethod(rule(lambda dt, world: None)), "advance(self, world, dt)"),
    ]:
        with pytest.raises(RuleError, match=re.escape(f"write def {called}")):
            type("Mine", (HeronEnv,), {name: hook})


def of_two(level: Level, setpoint: Setpoint) -> float:
    return 0.0


def test_a_method_that_cannot_be_called_is_refused_with_both_remedies():
    for name, function in [
        ("compute_local_reward", reward),
        ("compute_local_reward", of_two),
        ("compute_local_reward", lambda self: 0.0),
        ("compute_local_reward", lambda self, child_rewards, local_state: 0.0),
        ("is_terminated", lambda self, local_state, dt: False),
        ("is_terminated", of_two),
        ("apply_action", lambda level, action: None),
        ("apply_action", reward),
        ("advance", of_two),
        ("advance", lambda self: None),
        ("get_local_info", lambda: {}),
    ]:
        with pytest.raises(RuleError) as error:
            env({name: function})
        assert f"a method is called as {RULES[name].shown(name)}; a rule, which reads features, needs" in str(
            error.value
        )


def test_what_is_no_function_is_no_rule():
    for value in [3, classmethod(lambda cls: None), property(lambda self: 0.0)]:
        with pytest.raises(RuleError, match=re.escape("is neither a rule nor a method; write def advance(self, dt)")):
            env({"advance": value})


def test_a_rule_that_is_a_method_is_refused():
    for name in RULE_NAMES:
        writes = {"writes": Level.value} if name in ("apply_action", "advance") else {}
        written = rule(**writes)(lambda level: 0.0)
        written.__qualname__ = f"Mine.{name}"
        with pytest.raises(RuleError, match=f"Mine.{name} is a rule and a method; write @staticmethod above @rule$"):
            env({name: written})
        with pytest.raises(RuleError, match=r"write @staticmethod above @rule and take `self` away$"):
            env({name: rule(**writes)(lambda self, level: 0.0)})


def test_a_rule_may_be_borrowed_from_another_class():
    class Borrower(FieldAgent):
        features = (Level, Setpoint)
        action = Continuous(-1.0, 1.0)
        apply_action = Unit.apply_action
        compute_local_reward = Unit.compute_local_reward

    class Written(Borrower):
        @rule
        def is_terminated(level: Level) -> bool:
            return level.value > 9.0

    assert unused(idle(Borrower("borrower_1"))) == []
    with pytest.raises(RuleError, match=r"Written.is_terminated is a rule and a method; write @staticmethod above"):
        idle(Written("written_1"))


@pytest.mark.parametrize(
    ("attributes", "hooks", "meant"),
    [
        ({"feature": (Level,)}, {}, "features"),
        ({"actions": Continuous(-1.0, 1.0)}, {}, "action"),
        ({"protocols": VectorDecomposition()}, {}, "protocol"),
        ({}, {"physics_substep": 60}, "physics_substeps"),
        ({}, {"report_intervall": 0.5}, "report_interval"),
        ({}, {"global_feature": (Price,)}, "global_features"),
        ({}, {"disturbances_types": {}}, "disturbance_types"),
        ({}, {"batch": True}, "batched"),
        ({"actions_taken": 3, "feature": "many"}, {"batch": "a name", "dts": "1 s"}, None),
    ],
)
def test_a_misspelt_attribute_of_the_kind_that_is_read_is_refused(attributes: Any, hooks: Any, meant: str | None):
    def build() -> None:
        own = {} if "actions" in attributes else {"action": Continuous(-1.0, 1.0)}
        kind = type("Mine", (FieldAgent,), {**own, **attributes})
        whole = type("Other", (FieldAgent,), {"features": (Level,), "action": Continuous(-1.0, 1.0)})
        type("Mine", (HeronEnv,), hooks)(SystemAgent("system_agent", kind("mine_1"), whole("other_1")))

    if meant is None:
        build()
        return
    with pytest.raises(ConfigError, match=f"nothing reads it. Did you mean '{meant}'"):
        build()


# No reward


class Talker(Unit):
    features = (Level, Setpoint)


class Idle(FieldAgent):
    features = (Level,)
    action = Continuous(-1.0, 1.0)


class Chief(CoordinatorAgent):
    protocol = VectorDecomposition()


def idle(*agents: Any, **hooks: Any) -> HeronEnv:
    world: Any = type("Idle", (HeronEnv,), {"global_features": (Price,), **hooks})
    return world(SystemAgent("system_agent", *agents), max_steps=2)


def test_where_nobody_earns_anything_it_is_told():
    (entry,) = unused(idle(Idle("idle_1"), Chief("chief_1", Idle("idle_2"))))
    assert entry.what == "nobody earns anything: no agent has a reward, so that all rewards are 0"
    assert "def compute_local_reward" in entry.mend
    (entry,) = unused(idle(Idle("idle_1"), Chief("chief_1", Unit("unit_1"))))
    assert entry.what == "idle: neither they nor agents below them have a reward; theirs is 0"
    assert unused(idle(Chief("chief_1", Unit("unit_1")))) == []
    assert unused(idle(Idle("idle_1"), training_rewards=lambda self, world: None)) == []


def of_drones(self: Any, local_state: Any) -> float:
    return sum(len(child.agent_id) for child in self.subordinates)


def hub(reward: Any, *agents: Any) -> Any:
    """A coordinator with this reward above these agents."""
    return type("Hub", (Chief,), {"features": (Level,), "compute_local_reward": reward})("hub_1", *agents)


SILENT = "Hub.compute_local_reward reads neither child_rewards nor a feature of its children: the rewards of {} "


@rule
def alone(level: Level) -> float:
    return -level.value


@rule
def of_levels(levels: Children[Level]) -> float:
    return float(levels.value.sum())


@rule
def of_prices(price: Price) -> float:
    return price.value


@rule
def with_rewards(level: Level, child_rewards: Any) -> float:
    return float(child_rewards.sum()) - level.value


@rule
def in_their_place(level: Level, child_rewards: Any) -> float:
    return -level.value


def test_a_reward_that_leaves_out_what_children_earn_is_told():
    for reward, counted in [
        (staticmethod(alone), False),
        (staticmethod(of_prices), False),
        (staticmethod(of_levels), True),
        (paid, False),
        (paid_with_children, True),
        (of_drones, True),
    ]:
        told = unused(idle(hub(reward, Unit("unit_1"), Idle("idle_1"))))
        expected = [] if counted else [SILENT.format("unit_1") + "count in no return from hub_1 up"]
        assert [entry.what for entry in told] == expected
        assert counted or "add child_rewards.sum(); or, if its reward stands in for theirs" in told[0].mend


def test_a_reward_of_a_coordinator_that_nobody_learns_from_is_reported():
    for reward in [with_rewards, in_their_place]:
        meter = type("Hub", (CoordinatorAgent,), {"features": (Level,), "compute_local_reward": staticmethod(reward)})
        (entry,) = unused(idle(meter("hub_1", Unit("unit_1"))))
        assert entry.what.startswith(
            "Hub.compute_local_reward adds what its own quantities say to its children's rewards"
        )
        assert "training_rewards(world)" in entry.mend
        assert unused(idle(meter("hub_1", Unit("unit_1")), training_rewards=lambda self, world: None)) == []
        feeling = type("Feeling", (Unit,), {"compute_local_reward": staticmethod(feels)})
        assert unused(idle(meter("hub_1", feeling("feeling_1")))) == []


@rule
def of_own_and_children(child_rewards: Any, level: Level) -> float:
    return float(child_rewards.sum()) - level.value


@rule(writes=Level.value)
def follows(level: Parent[Level]) -> float:
    return level.value


def test_who_decides_above_or_reads_the_parent_below_may_learn_from_a_coordinator():
    own = {"features": (Level,), "compute_local_reward": staticmethod(of_own_and_children)}
    zone = type("Zone", (CoordinatorAgent,), own)
    assert len(unused(idle(zone("zone_1", Unit("unit_1"))))) == 1
    deciding = {"features": (Setpoint,), "action": Continuous(-1.0, 1.0), "apply_action": Unit.apply_action}
    city = type("City", (CoordinatorAgent,), deciding)("city_1", zone("zone_1", Unit("unit_1")))
    assert "city_1" in idle(city).possible_agents and unused(idle(city)) == []
    copying = type("Copying", (Unit,), {"advance": staticmethod(follows)})
    assert unused(idle(zone("zone_1", copying("copying_1")))) == []


@rule
def feels(level: Parent[Level]) -> float:
    return -level.value


def test_it_is_told_of_all_who_earn_below_once_for_each_class():
    units = [Chief(f"chief_{n}", *(Unit(f"unit_{n}_{i}") for i in range(4))) for n in range(2)]
    (entry,) = unused(idle(hub(staticmethod(alone), *units)))
    assert entry.what == SILENT.format("unit_0_0, unit_0_1, unit_0_2 and 5 more") + "count in no return from hub_1 up"
    assert unused(idle(hub(staticmethod(alone), Chief("chief_1", Idle("idle_1"))))) == []


def test_the_check_warns_of_earnings_that_nobody_counts():
    report = check_env(lambda: idle(hub(staticmethod(alone), Unit("unit_1"))), only=["rules"], steps=2)
    (warning,) = report.of(Status.WARNING)
    assert warning.what.startswith(SILENT.format("unit_1"))


def test_our_own_environments_have_nothing_to_tell():
    from heron_env import make, registered

    for name in registered():
        if name.startswith("heron/"):
            assert unused(make(name)) == [], name


def test_every_rule_has_a_word():
    assert set(RULE_NAMES) <= set(RULES)
