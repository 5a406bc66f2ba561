"""Actions: spaces, parsing in the precision given, clipping, joining."""

import numpy as np
import pytest
from gymnasium import spaces
from refusing import refuses

from heron_env import Action, Continuous, Discrete, Mixed, MultiDiscrete, Vector
from heron_env.core.action import ActionSpec, join_specs
from heron_env.core.masking import everything, noop_alone
from heron_env.errors import ConfigError, InvalidAction


def mixed() -> ActionSpec:
    return Mixed(Continuous(-1.0, 1.0, size=2, unit="kW"), MultiDiscrete([3, 2]))


def test_specs_make_the_matching_space():
    assert Continuous(-5.0, 5.0).space() == spaces.Box(-5.0, 5.0, (1,), np.float32)
    assert Continuous([0.0, -1.0], [1.0, 2.0]).space() == spaces.Box(
        np.array([0.0, -1.0], np.float32), np.array([1.0, 2.0], np.float32)
    )
    assert Discrete(4).space() == spaces.Discrete(4)
    assert MultiDiscrete([3, 2]).space() == spaces.MultiDiscrete([3, 2])
    both = mixed().space()
    assert both == spaces.Dict({"c": spaces.Box(-1.0, 1.0, (2,), np.float32), "d": spaces.MultiDiscrete([3, 2])})


def test_no_op_is_zero_clipped_into_the_range_unless_given():
    assert Continuous(-5.0, 5.0).noop.tolist() == [0.0]
    assert Continuous(2.0, 5.0, size=2).noop.tolist() == [2.0, 2.0]
    assert Continuous(-5.0, 5.0, noop=-1.0).noop.tolist() == [-1.0]
    assert Discrete(4, noop=3).noop.tolist() == [3.0]
    assert MultiDiscrete([3, 2], noop=[1, 0]).noop.tolist() == [1.0, 0.0]


def test_continuous_bounds_are_finite_ordered_vectors():
    for low, high in [(1.0, 0.0), (-np.inf, 0.0), (0.0, np.nan), ([[0.0]], 1.0)]:
        message = f"Continuous(low={low!r}, high={high!r}): bounds must be finite vectors with low <= high"
        with refuses(ConfigError, message):
            Continuous(low, high)


def test_discrete_choices_need_a_category_and_a_no_op_among_them():
    for ncats, noop in [([], None), ([0], None), ([2], [2]), ([2], [-1]), ([2, 2], [0])]:
        message = (
            f"MultiDiscrete({ncats!r}, noop={noop!r}): needs a whole number >= 1 of categories each, and a no-op among "
            "them; write Discrete(3), or MultiDiscrete([3, 2])"
        )
        with refuses(ConfigError, message):
            MultiDiscrete(ncats, noop=noop)


def test_parse_takes_numbers_arrays_actions_and_dictionaries():
    spec = Continuous(-1.0, 1.0)
    action = Action(spec)
    action.set_values([0.25])
    for value in (0.25, [0.25], np.array([0.25], np.float32), np.array([[0.25]]), action, {"c": [0.25]}, {"c": 0.25}):
        parsed = spec.parse(value, "a")
        assert parsed.tolist() == [0.25]
        assert parsed.dtype == np.float64
    assert mixed().parse({"c": [0.5, -0.5], "d": [2, 1]}, "a").tolist() == [0.5, -0.5, 2.0, 1.0]
    for value in (2, 2.0, [2], np.int64(2), np.array(2), np.array([2.0])):
        assert Discrete(3).parse(value, "a").tolist() == [2.0]
    assert mixed().parse(mixed().space(seed=1).sample(), "a").size == 4


def test_the_precision_given_is_the_precision_used():
    assert Continuous(-1.0, 1.0).parse(0.1, "a")[0] == 0.1
    assert Continuous(-1.0, 1.0).parse(np.float32(0.1), "a")[0] == float(np.float32(0.1))


def test_a_sampled_float32_at_a_bound_is_accepted_and_clipped_to_the_float64_bound():
    for bound in [0.1, 0.3, 1.1, 4.6, 11.0 / 3.0]:
        spec = Continuous(-bound, bound)
        space = spec.space()
        for value in (space.low, space.high):
            assert space.contains(value)
            assert abs(spec.parse(value, "a")[0]) <= bound
        beyond = np.nextafter(space.high, np.float32(np.inf))
        with pytest.raises(InvalidAction):
            spec.parse(beyond, "a")


def test_an_impossible_choice_is_refused():
    for value in [3, -1, 0.5, np.nan]:
        with refuses(InvalidAction, f"action of 'a': [{float(value)}] is no choice in Discrete(3); count from 0"):
            Discrete(3).parse(value, "a")


def test_descriptions_name_bounds_unit_and_choices():
    assert Continuous(-1.0, 1.0).describe() == "[-1.0, 1.0]"
    assert Continuous(-1.0, 1.0, size=3, unit="kW").describe() == "[-1.0, 1.0] kW x 3"
    assert Continuous([0.0, 1.0], [2.0, 3.0]).describe() == "[[0.0, 1.0], [2.0, 3.0]] x 2"
    assert MultiDiscrete([3, 2]).describe() == "MultiDiscrete([3, 2])"
    assert mixed().describe() == "[-1.0, 1.0] kW x 2 and MultiDiscrete([3, 2])"
    assert ActionSpec().describe() == "no action"


def test_the_mask_leaves_only_the_no_op_of_each_choice_to_an_inactive_agent():
    spec = MultiDiscrete([3, 2], noop=[1, 0])
    assert everything(spec).tolist() == [1, 1, 1, 1, 1]
    assert noop_alone(spec).tolist() == [0, 1, 0, 1, 0]
    assert noop_alone(spec).dtype == np.int8


def test_a_joint_spec_has_all_continuous_parts_then_all_discrete_ones():
    joint = join_specs([mixed(), Continuous(0.0, 2.0, unit="kW"), Discrete(5, noop=4)])
    assert joint.low.tolist() == [-1.0, -1.0, 0.0]
    assert joint.high.tolist() == [1.0, 1.0, 2.0]
    assert joint.ncats.tolist() == [3, 2, 5]
    assert joint.noop.tolist() == [0.0, 0.0, 0.0, 0.0, 0.0, 4.0]
    assert joint.unit == "kW"
    assert join_specs([Continuous(0, 1, unit="kW"), Continuous(0, 1, unit="A")]).unit == "1"
    assert join_specs([]).size == 0


def test_mixed_has_numbers_then_choices_of_any_number_each():
    spec = Mixed(Continuous(-1.0, 1.0, size=2), Continuous(1.0, 5.0), Discrete(3, noop=2), MultiDiscrete([2, 4]))
    assert spec.describe() == "[[-1.0, -1.0, 1.0], [1.0, 1.0, 5.0]] x 3 and MultiDiscrete([3, 2, 4])"
    assert spec.noop.tolist() == [0.0, 0.0, 1.0, 2.0, 0.0, 0.0]
    assert spec.space()["c"].shape == (3,) and spec.space()["d"] == spaces.MultiDiscrete([3, 2, 4])
    assert Mixed(Continuous(0.0, 1.0), Discrete(3)).space()["d"] == spaces.Discrete(3)
    assert Mixed(Continuous(0, 1, unit="kW"), Continuous(0, 1, unit="A"), Discrete(2)).unit == "1"


def test_parts_do_not_spill_over_into_each_other():
    for parts in [{"c": [0.5, 0.5, 2, 1]}, {"d": [0.5, 0.5, 2, 1]}, {"c": [0.5], "d": [0.5, 2, 1]}]:
        with pytest.raises(
            InvalidAction, match=f"^action of 'a' has {len(parts.get('c', ()))} elements in 'c', expected 2"
        ):
            mixed().parse(parts, "a")
        action = Action(mixed())
        with pytest.raises(InvalidAction, match="elements in 'c', expected 2"):
            action.set_values(parts)
        assert action.vector().tolist() == [0.0, 0.0, 0.0, 0.0]


def test_the_specification_action_object():
    action = Action()
    action.set_specs(dim_c=1, range=(np.array([-1.0]), np.array([1.0])))
    action.set_values(np.array([0.3]))
    assert action.c.tolist() == [0.3]
    assert action.d.tolist() == []
    assert (action.dim_c, action.dim_d) == (1, 0)
    assert [bound.tolist() for bound in action.range] == [[-1.0], [1.0]]
    assert repr(action) == "Action(c=[0.3], d=[])"


def test_set_values_takes_array_action_or_parts_and_clips():
    action = Action()
    action.set_specs(dim_c=2, dim_d=2, ncats=[3, 2], range=(-1.0, 1.0))
    assert (action.c.tolist(), action.d.tolist(), action.ncats.tolist()) == ([0.0, 0.0], [0, 0], [3, 2])
    action.set_values({"c": [0.5, -9.0], "d": [2, 7]})
    assert (action.c.tolist(), action.d.tolist()) == ([0.5, -1.0], [2, 1])
    twin = Action(action.spec)
    twin.set_values(action)
    twin.c = [0.0, 0.25]
    twin.d = [1, 0]
    assert twin.vector().tolist() == [0.0, 0.25, 1.0, 0.0]
    assert action.vector().tolist() == [0.5, -1.0, 2.0, 1.0]
    twin.set_values(d=[0, 1])
    assert twin.vector().tolist() == [0.0, 0.25, 0.0, 1.0]


def test_set_specs_takes_one_number_of_categories_for_all():
    action = Action()
    action.set_specs(dim_d=2, ncats=4)
    assert action.ncats.tolist() == [4, 4]


def test_set_specs_refuses_what_does_not_fit():
    with refuses(ConfigError, "Action.set_specs(dim_d=2, ncats=[3]): give 2 numbers of categories"):
        Action().set_specs(dim_d=2, ncats=[3])
    with refuses(ConfigError, "Action.set_specs(dim_c=1, range=([0, 0], [1, 1])): the range has 2 elements"):
        Action().set_specs(dim_c=1, range=([0, 0], [1, 1]))


def test_set_values_refuses_wrong_sizes_texts_and_nan():
    action = Action(Continuous(-1.0, 1.0))
    with refuses(InvalidAction, "Action.set_values([1, 2]) has 2 elements, expected 1: [-1.0, 1.0]; reshape it"):
        action.set_values([1, 2])
    with refuses(InvalidAction, "Action.set_values('up'): expected numbers, [-1.0, 1.0]"):
        action.set_values("up")
    with refuses(InvalidAction, "Action.set_values(nan): nan is no action; give numbers"):
        action.set_values(float("nan"))
    assert action.vector().tolist() == [0.0]


def test_samples_are_drawn_by_the_given_generator_and_lie_in_the_space():
    action = Action(mixed())
    drawn = []
    for _ in range(2):
        rng = np.random.default_rng(5)
        for _ in range(20):
            action.sample(rng)
            assert action.spec.space().contains({"c": action.c.astype(np.float32), "d": action.d})
        drawn.append(action.vector().tolist())
    assert drawn[0] == drawn[1]


def test_rules_read_a_vector_of_floats():
    vector = Vector([0.5, 1.0])
    assert (vector[1], len(vector), list(vector)) == (1.0, 2, [0.5, 1.0])


def test_what_a_mask_hides_is_no_action():
    for given in [{"value": np.ma.array([0.3], mask=[True])}, {"c": np.ma.array([0.3], mask=[True])}]:
        action = Action(Continuous(-1.0, 1.0))
        message = "Action.set_values(): what was given is a masked array; fill it: values.filled(0.0)"
        with refuses(InvalidAction, message):
            action.set_values(**given)


@pytest.mark.filterwarnings("ignore:.*copy keyword")  # of torch
def test_a_tensor_with_a_gradient_is_refused_with_its_own_advice():
    torch = pytest.importorskip("torch")
    with pytest.raises(InvalidAction, match=r"is a tensor with gradients, .*detach\(\)"):
        Continuous(0.0, 1.0).parse(torch.tensor([0.5], requires_grad=True), "a")
