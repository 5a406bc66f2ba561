"""Features: declared once, and everything else follows: bounds, kinds, shapes, visibility, names, copies."""

import copy
import math
import pickle
import re
from typing import ClassVar

import numpy as np
import pytest

from heron_env import FeatureProvider, quantity
from heron_env.core.feature import find_feature
from heron_env.errors import FeatureError, UnknownFeature


class Cell(FeatureProvider):
    """One of each kind."""

    soc: float = quantity(default=0.5, low=0.0, high=1.0)
    cycles: int = quantity(default=3, low=0, high=10)
    online: bool = quantity(default=True)
    mode: int = quantity(categories=("idle", "charge", "discharge"))
    profile: np.ndarray = quantity(default=0.25, low=0.0, high=1.0, shape=(3,), unit="kW")


class Plain(FeatureProvider):
    """The specification's way: annotations with defaults."""

    visibility = ["public"]
    note: ClassVar[str] = "no quantity"
    soc: float = 0.5
    capacity: float = 100.0
    empty: float


class Faster(Cell):
    """A cell with another default and one more quantity."""

    soc: float = quantity(default=0.9, low=0.2, high=1.0)
    power: float = 0.0


def refuses(error: type[Exception], message: str):
    """The whole message, word for word."""
    return pytest.raises(error, match=f"^{re.escape(message)}$")


def test_every_kind_has_its_type_bounds_and_default():
    cell = Cell()
    assert cell.to_dict() == {"soc": 0.5, "cycles": 3, "online": 1, "mode": 0, "profile": [0.25, 0.25, 0.25]}
    assert [type(cell.soc), type(cell.cycles), type(cell.online), type(cell.mode)] == [float, int, int, int]
    bounds = {name: (q.kind, q.low, q.high, q.shape) for name, q in Cell.quantities.items()}
    assert bounds == {
        "soc": ("float", 0.0, 1.0, ()),
        "cycles": ("int", 0.0, 10.0, ()),
        "online": ("bool", 0.0, 1.0, ()),
        "mode": ("category", 0.0, 2.0, ()),
        "profile": ("float", 0.0, 1.0, (3,)),
    }
    assert Cell.width == 7
    assert cell.vector().tolist() == [0.5, 3, 1, 0, 0.25, 0.25, 0.25]
    assert cell.vector().dtype == np.float64


def test_names_are_one_per_element_in_order_of_declaration():
    assert Cell.names() == ["soc", "cycles", "online", "mode", "profile[0]", "profile[1]", "profile[2]"]


def test_a_plain_annotation_is_an_unbounded_quantity_and_a_classvar_is_none():
    assert Plain.names() == ["soc", "capacity", "empty"]
    assert (Plain.quantities["soc"].low, Plain.quantities["soc"].high) == (-math.inf, math.inf)
    assert Plain().empty == 0.0
    assert Plain.visibility == ("public",)


def test_a_write_is_clipped_and_rounded_half_even_where_whole():
    cell = Cell()
    cell.soc, cell.cycles, cell.online, cell.mode = 1.7, 2.5, 5, -4
    assert (cell.soc, cell.cycles, cell.online, cell.mode) == (1.0, 2, 1, 0)
    cell.profile = [-1.0, 0.5, 9.0]
    assert cell.profile.tolist() == [0.0, 0.5, 1.0]
    cell.profile[1] = 0.75
    assert cell.to_dict()["profile"] == [0.0, 0.75, 1.0]


def test_nan_is_never_stored():
    cell = Cell(soc=0.4)
    with refuses(FeatureError, "Cell.soc=nan: a quantity must be a number; check what computes it"):
        cell.soc = math.nan
    needed = "numbers of shape (3,); check what computes it"
    with refuses(FeatureError, f"Cell.profile=[0.1, nan, 0.2]: a quantity must be {needed}"):
        cell.profile = [0.1, math.nan, 0.2]
    assert cell == Cell(soc=0.4)


def test_the_constructor_refuses_what_it_would_have_to_clip():
    with refuses(
        FeatureError, "Cell.profile=2.0 lies outside [0.0, 1.0] kW; choose a value within, or declare other bounds"
    ):
        Cell(profile=2.0)
    with refuses(FeatureError, "Cell.soc='0.5': expected a number"):
        Cell(soc="0.5")
    with refuses(FeatureError, "Cell.profile=[1, 2]: expected numbers of shape (3,)"):
        Cell(profile=[1, 2])


def test_set_values_changes_all_fields_or_none():
    cell = Cell()
    fields = list(Cell.quantities)
    with refuses(
        UnknownFeature, f"Cell.set_values(cycle=...): no such field; fields are {fields}. Did you mean 'cycles'?"
    ):
        cell.set_values(soc=0.1, cycle=1)
    assert cell == Cell()
    cell.set_values(soc=2.0, cycles=4)
    assert (cell.soc, cell.cycles) == (1.0, 4)


def test_dictionaries_copies_and_pickles_stand_alone_with_equal_values():
    cell = Cell(soc=0.1, mode=2, profile=[0.0, 0.5, 1.0])
    for twin in (Cell.from_dict(cell.to_dict()), pickle.loads(pickle.dumps(cell)), copy.deepcopy(cell)):
        assert twin == cell
        twin.soc = 0.9
        assert cell.soc == 0.1
        assert twin != cell
    vector = cell.vector()
    vector[0] = 0.7
    assert cell.soc == 0.1


def test_features_compare_by_class_and_values_and_read_well():
    assert repr(Plain(soc=0.2)) == "Plain(soc=0.2, capacity=100.0, empty=0.0)"
    assert repr(Plain.soc) == "Plain.soc"
    assert Plain() != Faster()
    assert Plain() == Plain()
    with pytest.raises(TypeError, match="unhashable"):
        hash(Plain())


def test_a_subclass_adds_quantities_and_replaces_others_in_their_place():
    assert Faster.names() == [*Cell.names(), "power"]
    assert Faster.width == Cell.width + 1
    assert Faster().vector().tolist() == [0.9, 3, 1, 0, 0.25, 0.25, 0.25, 0.0]
    assert Cell().soc == 0.5
    assert Faster.feature_name == "Faster"


def test_a_replacement_that_does_not_fit_is_refused():
    message = "Broken.soc replaces a quantity: annotate it too, soc: float = ..."
    with refuses(FeatureError, message):
        type("Broken", (Cell,), {"soc": 0.9})
    with refuses(FeatureError, "Longer.profile: replaces a quantity of shape (3,); keep that shape"):

        class Longer(Cell):
            profile: np.ndarray = quantity(shape=(4,))

    message = "Both inherits from Cell and Plain: a feature extends one other; declare two features"
    with refuses(FeatureError, message):
        type("Both", (Cell, Plain), {})


def test_a_field_that_is_no_number_is_refused_at_class_definition():
    for annotation, shown in [(str, "str"), (list, "list"), (complex, "complex"), (np.ndarray, "ndarray")]:
        message = (
            f"Wrong.name: a quantity is a number, not {shown}; annotate it float, int or bool "
            "(ids and texts belong to the agent, not to its state)"
        )
        with refuses(FeatureError, message):
            type("Wrong", (FeatureProvider,), {"__annotations__": {"name": annotation}})


TAGS = "public, owner, upper_level, system, siblings, subordinates"


def test_an_unknown_tag_is_refused_with_the_nearest_one():
    with refuses(FeatureError, f"quantity(visibility=...): unknown visibility tag 'x'; tags are {TAGS}."):
        quantity(visibility=("x",))
    with refuses(FeatureError, "quantity(visibility=...): 'owner' is a string; write a tuple, ('owner',)"):
        quantity(visibility="owner")


def test_without_a_hierarchy_tags_and_levels_decide():
    for tags, who_sees in [
        (("public",), {"other", "owner", "upper", "system"}),
        (("owner",), {"owner"}),
        ((), set()),
        (("upper_level",), {"upper"}),
        (("system",), {"system"}),
        (("siblings", "subordinates"), set()),
        (("upper_level", "system"), {"upper", "system"}),
        (("owner", "system"), {"owner", "system"}),
    ]:
        feature = type("Tagged", (FeatureProvider,), {"visibility": tags})()
        askers = {"other": ("b", 1), "owner": ("a", 1), "upper": ("z", 2), "system": ("s", 3)}
        assert {name for name, asker in askers.items() if feature.is_observable_by(*asker, "a", 1)} == who_sees


def test_without_a_hierarchy_the_system_agent_sees_its_own_by_its_level():
    for tags, sees in [(("system",), True), (("upper_level",), False), ((), False)]:
        feature = type("Tagged", (FeatureProvider,), {"visibility": tags})()
        assert feature.is_observable_by("s", 3, "s", 3) is sees


def test_a_feature_is_found_by_name_and_two_of_one_name_are_told_apart():
    assert find_feature("Faster") is Faster
    with refuses(UnknownFeature, "no feature class is called 'Fastre'. Did you mean 'Faster'?"):
        find_feature("Fastre")

    def first() -> type[FeatureProvider]:
        class Twofold(FeatureProvider):
            x: float = 0.0

        return Twofold

    one = first()
    again = first()
    assert find_feature("Twofold") is again, "a definition executed twice (a notebook cell) replaces the first"

    class Twofold(FeatureProvider):
        x: float = 0.0

    places = " and ".join(f"{cls.__module__}.{cls.__qualname__}" for cls in (again, Twofold))
    with refuses(FeatureError, f"feature 'Twofold' is ambiguous: {places}; give one of them another name"):
        find_feature("Twofold")
    assert find_feature("Twofold", near=[one]) is one


def test_a_feature_that_stands_in_is_found_by_the_name_it_takes():
    class Quiet(Plain):
        feature_name = "Plain"

    assert find_feature("Plain", near=[Quiet]) is Quiet
    assert find_feature("Plain") is Plain
