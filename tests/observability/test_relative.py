"""What others see from where they are themselves (`relative`), and what one says and does not hear (`to_owner`)."""

import numpy as np
import pytest

from heron_env import (
    BatchEnv,
    Continuous,
    FeatureProvider,
    FieldAgent,
    HeronEnv,
    SystemAgent,
    quantity,
)
from heron_env.core.action import Vector
from heron_env.core.rule import rule
from heron_env.errors import FeatureError


class Place(FeatureProvider):
    """Where one is, on which deck, what it says, and what it calls itself."""

    visibility = ("public",)
    said: float = quantity(low=0.0, high=1.0, default=0.5, to_owner=False)
    number: int = quantity(low=0, high=9, default=4)
    at: np.ndarray = quantity(shape=(2,), low=-3.0, high=5.0, relative=True)
    deck: int = quantity(low=0, high=3, default=2, relative=True)


class Fuel(FeatureProvider):
    """Its own affair."""

    left: float = quantity(low=0.0, high=9.0, default=9.0, relative=True)


class Ship(FieldAgent):
    """Moves along one axis."""

    features = (Fuel, Place)
    action = Continuous(-1.0, 1.0)

    @staticmethod
    @rule(writes=Place.at)
    def apply_action(place: Place, action: Vector) -> tuple[float, float]:
        return place.at[0] + action[0], place.at[1]


class Lighthouse(FieldAgent):
    """Has a place, too, and nothing to do."""

    features = (Place,)


class Watchtower(FieldAgent):
    """Has none."""

    action = Continuous(-1.0, 1.0)


PLACES = {"ship_1": (0.1, 0.7), "ship_2": (-1.3, 2.9), "light": (4.7, -2.1)}


def env(**options: object) -> HeronEnv:
    ships = [Ship(name, Place(at=PLACES[name], deck=deck)) for name, deck in (("ship_1", 1), ("ship_2", 3))]
    parts = (*ships, Watchtower("tower"), Lighthouse("light", Place(at=PLACES["light"], deck=0)))
    return HeronEnv(SystemAgent("sea", *parts), max_steps=4, **options)


def test_what_is_relative_comes_first_and_is_a_difference():
    seen = env().reset(seed=0)[0]["ship_1"]
    names = env().observation_names("ship_1")
    own = ["Fuel.left", "Place.number", "Place.at[0]", "Place.at[1]", "Place.deck"]
    away = [f"{o}.Place.{q} - Place.{q}" for o in ("ship_2", "light") for q in ("at[0]", "at[1]", "deck")]
    assert names == [*own, *away, *(f"{o}.Place.{q}" for o in ("ship_2", "light") for q in ("said", "number"))]
    x, y = PLACES["ship_1"]
    ways = [number for o in ("ship_2", "light") for number in (PLACES[o][0] - x, PLACES[o][1] - y)]
    expected = [9.0, 4.0, x, y, 1.0, *ways[:2], 2.0, *ways[2:], -1.0, 0.5, 4.0, 0.5, 4.0]
    assert seen.tolist() == np.float32(expected).tolist()
    space = env().observation_space("ship_1")
    assert (space.low[5], space.high[5], space.low[7], space.high[7]) == (-8.0, 8.0, -3.0, 3.0)


def test_who_has_no_such_quantity_sees_it_as_it_is():
    names, seen = env().observation_names("tower"), env().reset(seed=0)[0]["tower"]
    assert names[:5] == [f"ship_1.Place.{q}" for q in ("said", "number", "at[0]", "at[1]", "deck")]
    assert seen[2:5].tolist() == np.float32([*PLACES["ship_1"], 1.0]).tolist()
    assert env().observation_space("tower").high[2] == 5.0


@pytest.mark.parametrize("compile", [False, True])
@pytest.mark.parametrize("observability", [None, {"default": {"level": "insider", "noise": 0.3}}])
def test_all_forms_agree(compile: bool, observability: object):
    one = env(compile=compile, observability=observability, observe_age=True)
    batch = BatchEnv(env(observability=observability, observe_age=True), 9, seed=0)
    shown = [one.reset(seed=0)[0], batch.reset()[0]]
    for _ in range(3):
        for place, agent in enumerate(("ship_1", "ship_2")):
            assert shown[0][agent].tobytes() == shown[1]["ship"][0, place].tobytes()
            told = one.proxy.get_observation(agent).vector()
            assert told.tobytes() == shown[0][agent][: len(told)].tobytes()
            vector = one.seen_by(one.hierarchy.index[agent])
            assert vector.tobytes() == shown[0][agent].tobytes()
        actions = {"ship_1": [0.4], "ship_2": [-0.2], "tower": [0.0]}
        given = {name: np.array([[actions[a] for a in agents]] * 9) for name, agents in batch.groups.items()}
        shown = [one.step(actions)[0], batch.step(given)[0]]


def test_what_one_says_is_hidden_from_oneself_alone():
    matrix = env().visibility_matrix()
    assert matrix.level_of("ship_1", "ship_1", "said") is None and matrix.level_of("ship_1", "ship_2", "said") == 0.0
    reasons = {sight.column: sight.reason for sight in matrix.row("ship_1", hidden=True)}
    assert reasons["ship_1.Place.said"] == "said" and reasons["ship_2.Place.said"] == "tag public"
    insiders = env(observability={"default": {"level": "insider"}}).visibility_matrix()
    assert (
        insiders.level_of("ship_1", "ship_1", "said") is None and insiders.level_of("ship_1", "ship_2", "said") == 0.0
    )


@pytest.mark.parametrize("flag", ["relative", "to_owner"])
def test_flags_are_flags(flag: str):
    with pytest.raises(FeatureError, match=rf"quantity\({flag}='no'\): must be True or False"):
        quantity(**{flag: "no"})
