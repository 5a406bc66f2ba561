"""Bars of quantities: between declared bounds, with number and unit, the same in both pictures of a frame."""

import numpy as np
import pytest

from heron_env import Continuous, FeatureProvider, FieldAgent, HeronEnv, SystemAgent, Vector, quantity, rule
from heron_env.pictures.palette import picture_style
from heron_env.pictures.panels import MOST_BARS, KnowledgePanel
from heron_env.pictures.quantities import QuantityBars, draw_quantities


class Place(FeatureProvider):
    visibility = ("owner",)
    x: float = quantity(default=0.0, low=0.0, high=100.0, unit="m")
    mode: int = quantity(default=1, low=0, high=2)
    doing: int = quantity(default=0, categories=("wait", "send"))
    open: float = quantity(default=0.0)


class Parcel(FeatureProvider):
    visibility = ("owner",)
    x: float = quantity(default=0.0, low=0.0, high=50.0, unit="m")


class Courier(FieldAgent):
    features = (Place, Parcel)
    action = Continuous(-1.0, 1.0)

    @staticmethod
    @rule(writes=(Place.x, Place.doing, Place.open, Parcel.x))
    def apply_action(place: Place, parcel: Parcel, action: Vector) -> tuple[float, int, float, float]:
        return place.x + 10.0, 1, place.open + 4.0, parcel.x + 10.0


def filmed(*features: type[FeatureProvider]):
    class Own(Courier):
        pass

    Own.features = (*Courier.features, *features)
    env = HeronEnv(SystemAgent("city", Own("courier_1"), Own("courier_2")), max_steps=4)
    return env, env.run_synchronous({"*": lambda seen: 0.0}, seed=0, record=("frames",)).footage


def panel(footage) -> tuple[QuantityBars, list[str]]:
    """Of what courier_1 knows, after two steps; and what its lines are called."""
    with picture_style():
        from matplotlib.figure import Figure

        axes = Figure().subplots()
        knowledge = KnowledgePanel(axes, footage, "courier_1", footage.times)
        knowledge.update(footage.truth(2.0), footage.known("courier_1", 2.0))
        return knowledge._bars, [label.get_text() for label in axes.get_yticklabels()]


def picture(env, footage):
    with picture_style():
        from matplotlib.figure import Figure

        axes = Figure().subplots()
        env.simulation.truth[:] = footage.truth(2.0)
        return draw_quantities(env, axes, env.world, footage.known("courier_1", 2.0), None), axes


def filled(bars: QuantityBars) -> list[float]:
    """Share of each bar."""
    return [round(float(np.ptp(line[:, 0])) / bars._width, 3) for line in bars._truth.get_segments()]


def test_bars_lie_between_declared_bounds_in_both_pictures():
    env, footage = filmed()
    bars, _ = panel(footage)
    assert filled(bars) == [0.2, 0.5, 0.5, 0.4], "of `open` the film has seen 16, of which 8 is half"
    assert filled(picture(env, footage)[0])[:4] == [0.2, 0.5, 1.0, 0.4]
    assert [*np.round((bars._known.get_xdata() - bars._places[bars._measured, 0]) / bars._width, 3)] == filled(bars)


def test_a_bar_has_number_and_unit_and_a_category_its_name_and_what_is_known_of_it():
    env, footage = filmed()
    bars, _ = panel(footage)
    assert bars._texts.words == ["20 m", "1", "send \u25c6 send", "8", "20 m"]
    assert picture(env, footage)[0]._texts.words[5:] == ["20 m", "1", "send", "8", "20 m"], (
        "of courier_2 nothing is known"
    )
    bars.update(footage.truth(2.0), footage.known("courier_1", 0.0))
    assert bars._texts.words[2] == "send \u25c6 wait"


def test_bounds_that_only_guard_are_as_good_as_none_in_the_panel_which_says_so():
    class Guarded(FeatureProvider):
        visibility = ("owner",)
        near: float = quantity(default=1.0, low=-50.0, high=50.0)
        still: float = quantity(default=0.0, low=-1e3, high=1e3)

    class Far(FeatureProvider):
        visibility = ("owner",)
        z: float = quantity(default=0.0, low=-1e4, high=1e4)

    footage = filmed(Guarded, Far)[1]
    column = footage.env.simulation.model.layout.full_names.index("courier_1.Far.z")
    for number, truth in enumerate(footage.truths):
        truth[column] = 4.0 - 2.0 * number
    bars, names = panel(footage)
    assert names[5:] == ["courier_1 near", "courier_1 still", "courier_1 z*"]
    assert (bars._low[-1], bars._high[-1]) == (-4.0, 4.0)
    assert filled(bars)[:2] == [0.2, 0.5]


def test_two_quantities_of_one_name_bear_their_features_and_one_without_bounds_says_so():
    env, footage = filmed()
    (bars, names), (_, axes) = panel(footage), picture(env, footage)
    assert names == [f"courier_1 {name}" for name in ("Place.x", "mode", "doing", "open*", "Parcel.x")]
    words = "* scaled to the values shown"
    assert bars._known.axes.get_xlabel() == axes.get_xlabel() == words
    texts = {text.get_text() for text in axes.texts}
    assert {"Place.x", "Parcel.x", "mode"} < texts and "x" not in texts


def test_what_does_not_fit_is_counted():
    class Many(FeatureProvider):
        visibility = ("owner",)
        z: np.ndarray = quantity(default=0.0, low=0.0, high=1.0, shape=(60,))

    env, footage = filmed(Many)
    _, names = panel(footage)
    assert len(names) == MOST_BARS + 1 and names[-1] == f"+ {65 - MOST_BARS} more"
    bars, axes = picture(env, footage)
    more = [int(text.get_text()[2:-5]) for text in axes.texts if text.get_text().startswith("+ ")]
    assert len(more) == 2 and sum(more) + len(bars._places) == 130


def test_an_agent_without_quantities_takes_less_room_and_the_rest_fills_the_picture():
    env, footage = filmed()
    bars, axes = picture(env, footage)
    rows, (bottom, top) = np.unique(bars._places[:, 1]), axes.get_ylim()
    assert (rows[0] - top, bottom - rows[-1]) == pytest.approx((0.5 + 0.55, 0.5))
