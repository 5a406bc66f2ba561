"""`heron check` finds what `advance` computes and the first observation lacks; sight that depends on the state."""

from typing import Any

import pytest

from heron_env import (
    Continuous,
    Discrete,
    FeatureProvider,
    FieldAgent,
    HeronEnv,
    SystemAgent,
    Vector,
    World,
    check_env,
    quantity,
    rule,
)
from heron_env.testing.check import Status

SIZE, FAR = 10, 2


class Place(FeatureProvider):
    """Where a picker is. Others do not see it."""

    x: int = quantity(default=0, low=0, high=SIZE - 1)
    y: int = quantity(default=0, low=0, high=SIZE - 1)


class Near(FeatureProvider):
    """What its camera shows: the nearest other picker within two cells."""

    present: int = quantity(default=0, low=0, high=1)
    dx: int = quantity(default=0, low=-FAR, high=FAR)
    dy: int = quantity(default=0, low=-FAR, high=FAR)


class Picker(FieldAgent):
    features, action, own_rows = (Place, Near), Discrete(5), "local"

    @staticmethod
    @rule(writes=(Place.x, Place.y))
    def apply_action(place: Place, action: Vector) -> tuple[int, int]:
        way = int(action[0])
        return place.x + (way == 1) - (way == 2), place.y + (way == 3) - (way == 4)


def look(world: World) -> None:
    """What every camera shows."""
    place, near = world[Picker].Place, world[Picker].Near
    for i in range(len(place.x)):
        near.present[i] = near.dx[i] = near.dy[i] = 0
        nearest = FAR + 1
        for j in range(len(place.x)):
            dx, dy = place.x[j] - place.x[i], place.y[j] - place.y[i]
            away = max(abs(dx), abs(dy))
            if j != i and away < nearest:
                nearest = away
                near.present[i], near.dx[i], near.dy[i] = 1, dx, dy


def scatter(world: World) -> None:
    place = world[Picker].Place
    place.x[:] = SIZE * world.draw("x", len(place.x)) // 1
    place.y[:] = SIZE * world.draw("y", len(place.y)) // 1


class Floor(HeronEnv):
    def begin(self, world: World) -> None:
        scatter(world)
        look(world)

    def advance(self, world: World, dt: float) -> None:
        look(world)


class BlindAtFirst(Floor):
    def begin(self, world: World) -> None:
        scatter(world)


def floor(kind: type[HeronEnv] = Floor, **options: Any) -> HeronEnv:
    return kind(SystemAgent("hall", *(Picker(f"picker_{i}") for i in range(6))), max_steps=20, **options)


def blind() -> HeronEnv:
    return floor(BlindAtFirst)


def test_sight_computed_at_reset_too_passes() -> None:
    findings = check_env(floor, only=["first-observation", "shortcuts", "compiled", "parity"]).findings
    assert {finding.status for finding in findings} <= {Status.PASSED, Status.SKIPPED}, findings


# What is left at its default


class Level(FeatureProvider):
    value: float = quantity(default=0.0, low=-9.0, high=9.0)
    speed: float = quantity(default=2.0, low=-9.0, high=9.0)
    reading: float = quantity(default=0.0, low=-99.0, high=99.0)


class Gauge(FieldAgent):
    """A rule of an agent computes a reading from a level that the environment draws."""

    features, action = (Level,), Continuous(-1.0, 1.0)

    @staticmethod
    @rule(writes=Level.speed)
    def apply_action(action: Vector) -> float:
        return action[0]

    @staticmethod
    @rule(writes=(Level.value, Level.reading))
    def advance(level: Level, dt: float) -> tuple[float, float]:
        return level.value + level.speed * dt, 10.0 * level.value


class Drawn(HeronEnv):
    def begin(self, world: World) -> None:
        world[Gauge].Level.value[:] = 1.0 + world.draw("level", len(world[Gauge].Level.value))


class Read(Drawn):
    def begin(self, world: World) -> None:
        super().begin(world)
        world[Gauge].Level.reading[:] = 10.0 * world[Gauge].Level.value


class Ruled(HeronEnv):
    """World rules, compiled or not."""

    @staticmethod
    @rule
    def begin(world: World) -> None:
        world[Gauge].Level.value[:] = 2.0

    @staticmethod
    @rule
    def advance(world: World, dt: float) -> None:
        world[Gauge].Level.reading[:] = 3.0 * world[Gauge].Level.value


def gauges(kind: type[HeronEnv]) -> HeronEnv:
    return kind(SystemAgent("root", Gauge("gauge_1"), Gauge("gauge_2")), max_steps=20, physics_substeps=2)


@pytest.mark.parametrize(
    ("build", "column"),
    [(blind, "Near.present"), (lambda: gauges(Drawn), "gauge_1.Level.reading"),
     (lambda: gauges(Ruled), "gauge_1.Level.reading")],
)  # fmt: skip
def test_what_only_advance_computes_is_warned_of(build: Any, column: str) -> None:
    findings = check_env(build, only=["first-observation"]).findings
    assert {finding.status for finding in findings} == {Status.WARNING}
    (finding,) = [finding for finding in findings if column in finding.what]
    assert "is 0.0, its default, in the first observation" in finding.what
    assert "let begin and advance call one function" in finding.mend


def test_what_moves_with_time_and_what_begin_computes_is_not() -> None:
    (finding,) = check_env(lambda: gauges(Read), only=["first-observation"]).findings
    assert finding.status is Status.PASSED, finding.what
