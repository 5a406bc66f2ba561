"""`heron check` finds own observed values that repeat another's: they cross the network without a message."""

from typing import Any

import pytest

from heron_env import (
    Children,
    Continuous,
    CoordinatorAgent,
    FeatureProvider,
    FieldAgent,
    HeronEnv,
    Inbox,
    Parent,
    StateShare,
    SystemAgent,
    Vector,
    World,
    check_env,
    quantity,
    rule,
)
from heron_env.testing.check import CheckReport, Status


class Order(FeatureProvider):
    visibility = ("owner", "subordinates")
    power: float = quantity(default=0.0, low=0.0, high=100.0)


class Hidden(FeatureProvider):
    """Nobody sees it."""

    one: float = quantity(default=0.0, low=0.0, high=100.0, observed=False)
    two: float = quantity(default=0.0, low=0.0, high=100.0, observed=False)


class Copy(FeatureProvider):
    value: float = quantity(default=0.0, low=0.0, high=250.0)


class Tariff(FeatureProvider):
    visibility = ("public",)
    price: float = quantity(default=1.0, low=0.0, high=9.0)
    plan: float = quantity(default=1.0, low=0.0, high=9.0, foreknown=True)


class Setpoint(FeatureProvider):
    """What its own action sets."""

    visibility = ("owner", "siblings")
    power: float = quantity(default=0.0, low=0.0, high=100.0)


class Worker(FieldAgent):
    features, action = (Copy, Setpoint, Hidden), Continuous(0.0, 100.0)

    @staticmethod
    @rule(writes=Setpoint.power)
    def apply_action(action: Vector) -> float:
        return action[0]


class Boss(CoordinatorAgent):
    features, action = (Order, Copy), Continuous(0.0, 100.0)

    @staticmethod
    @rule(writes=Order.power)
    def apply_action(action: Vector) -> float:
        return action[0]


# Shortcuts


class ReadsParent(Worker):
    @staticmethod
    @rule(writes=Copy.value)
    def advance(order: Parent[Order]) -> float:
        return order.power


class ReadsWhenActing(Worker):
    @staticmethod
    @rule(writes=(Setpoint.power, Copy.value))
    def apply_action(order: Parent[Order], action: Vector) -> tuple[float, float]:
        return action[0], order.power


class ThroughHidden(Worker):
    @staticmethod
    @rule(writes=(Hidden.one, Hidden.two, Copy.value))
    def advance(order: Parent[Order], hidden: Hidden) -> tuple[float, float, float]:
        return order.power, hidden.one, hidden.two


class ReadsWorld(Worker):
    @staticmethod
    @rule(writes=Copy.value)
    def advance(tariff: Tariff) -> float:
        return tariff.price


class ReadsChild(Boss):
    @staticmethod
    @rule(writes=Copy.value)
    def advance(setpoints: Children[Setpoint]) -> float:
        return setpoints.power[0]


class Siblings(HeronEnv):
    """The second worker gets what the first was set to, by a method of the environment."""

    def advance(self, world: World, dt: float) -> None:
        workers = world[Worker]
        workers.Copy.value[1] = workers.Setpoint.power[0]


class RuledSiblings(HeronEnv):
    @staticmethod
    @rule
    def finish(world: World) -> None:
        world[Worker].Copy.value[1] = world[Worker].Setpoint.power[0]


class Priced(HeronEnv):
    global_features = (Tariff,)


def world(env: type[HeronEnv], worker: type[FieldAgent], boss: type[CoordinatorAgent] = Boss, **more: Any) -> HeronEnv:
    team = boss("boss", worker("worker_1"), worker("worker_2"), **more)
    return env(SystemAgent("root", team), max_steps=30, physics_substeps=2)


SHORTCUTS = [
    (HeronEnv, ReadsParent, Boss, "worker_1.Copy.value tells boss.Order.power", "ReadsParent.advance"),
    (HeronEnv, ReadsWhenActing, Boss, "worker_1.Copy.value tells boss.Order.power", "ReadsWhenActing.apply_action"),
    (HeronEnv, ThroughHidden, Boss, "worker_1.Copy.value tells boss.Order.power", "ThroughHidden.advance"),
    (Priced, ReadsWorld, Boss, "worker_1.Copy.value tells global.Tariff.price", "ReadsWorld.advance"),
    (HeronEnv, Worker, ReadsChild, "boss.Copy.value tells worker_1.Setpoint.power", "ReadsChild.advance"),
    (Siblings, Worker, Boss, "worker_2.Copy.value tells worker_1.Setpoint.power", "Siblings.advance"),
    (RuledSiblings, Worker, Boss, "worker_2.Copy.value tells worker_1.Setpoint.power", "RuledSiblings.finish"),
]


def checked(*parts: Any, **more: Any) -> CheckReport:
    return check_env(lambda: world(*parts, **more), only=["shortcuts"])


@pytest.mark.parametrize(("env", "worker", "boss", "tells", "writer"), SHORTCUTS, ids=[case[4] for case in SHORTCUTS])
def test_a_value_that_crosses_without_a_message_is_warned_of(
    env: Any, worker: Any, boss: Any, tells: str, writer: str
) -> None:
    (finding,) = checked(env, worker, boss).findings
    assert finding.status is Status.WARNING
    assert finding.what.startswith(f"observed feature computed from another agent's observed feature: {tells} ")
    assert f"written by {writer}" in finding.what and finding.what.endswith("no message, no delay")
    assert "visibility=" in finding.mend and "StateShare" in finding.mend


# What it is not


class Moves(Worker):
    """Physics: what it is moved by is another's, what it is depends on where it was."""

    @staticmethod
    @rule(writes=Copy.value)
    def advance(copy: Copy, order: Parent[Order], dt: float) -> float:
        return copy.value + 0.01 * (order.power - copy.value) * dt


class Sums(Boss):
    """A meter over several."""

    @staticmethod
    @rule(writes=Copy.value)
    def advance(setpoints: Children[Setpoint]) -> float:
        return float(setpoints.power.sum())


class ReadsPlan(Worker):
    """What is known ahead is no news."""

    @staticmethod
    @rule(writes=Copy.value)
    def advance(tariff: Tariff) -> float:
        return tariff.plan


class KeepsHidden(Worker):
    """A copy that only rules read."""

    @staticmethod
    @rule(writes=Hidden.one)
    def advance(order: Parent[Order]) -> float:
        return order.power


class Post(Inbox):
    power: float = quantity(default=0.0, low=0.0, high=100.0)


class Listens(Worker):
    features = (Copy, Setpoint, Post)


@pytest.mark.parametrize(
    ("env", "worker", "boss"),
    [(HeronEnv, Worker, Boss), (HeronEnv, Moves, Boss), (HeronEnv, Worker, Sums), (Priced, ReadsPlan, Boss),
     (HeronEnv, KeepsHidden, Boss)],
)  # fmt: skip
def test_physics_and_what_is_hidden_are_no_shortcuts(env: Any, worker: Any, boss: Any) -> None:
    (finding,) = checked(env, worker, boss).findings
    assert finding.status is Status.PASSED, finding.what


def test_what_comes_by_message_is_no_shortcut() -> None:
    (finding,) = checked(HeronEnv, Listens, exchange=StateShare(Setpoint.power, Post.power, "full")).findings
    assert finding.status is Status.PASSED, finding.what
