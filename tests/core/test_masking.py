"""Masks as values: their form for Gymnasium, what they forbid, and the words for what is none."""

import re

import numpy as np
import pytest

from heron_env import Continuous, Discrete, Mixed, MultiDiscrete
from heron_env.core.action import ActionSpec
from heron_env.core.masking import checked, enforced, flat, noop_alone, shaped
from heron_env.errors import RuleError

ONE, TWO = Discrete(3), MultiDiscrete([2, 3], noop=[1, 0])
MIXED = Mixed(Continuous(-1.0, 1.0), MultiDiscrete([2, 2]))
NUMBER = Mixed(Continuous(-1.0, 1.0), Discrete(3, noop=2))


@pytest.mark.parametrize("spec", [ONE, TWO, MIXED, NUMBER])
def test_gymnasium_samples_what_is_allowed_with_the_mask_as_it_is_handed_out(spec: ActionSpec):
    space = spec.space(seed=0)
    for flags in np.ndindex(*[2] * int(spec.ncats.sum())):
        mask = np.array(flags, dtype=np.int8)
        try:
            checked(spec, flags, "x")
        except RuleError:
            continue
        assert flat(shaped(spec, mask)).tolist() == list(flags)
        drawn = spec.parse(space.sample(shaped(spec, mask)), "x")
        changed, masked = enforced(spec, drawn, mask)
        assert not masked and changed is drawn


def test_a_forbidden_choice_becomes_the_no_op_and_the_rest_of_the_action_stays():
    values = np.array([0.5, 1.0, 1.0])
    changed, masked = enforced(MIXED, values, np.array([1, 0, 1, 1], dtype=np.int8))
    assert (changed.tolist(), masked) == ([0.5, 0.0, 1.0], True)
    assert values.tolist() == [0.5, 1.0, 1.0], "the caller's action stays"


def test_the_no_op_may_always_fall():
    assert not enforced(TWO, np.array([1.0, 0.0]), np.array([1, 0, 0, 1, 1], dtype=np.int8))[1]
    assert noop_alone(TWO).tolist() == [0, 1, 1, 0, 0]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ((True, True), "x returned (True, True): a flat tuple or array of 5 numbers is needed, one for each choice of "
         "MultiDiscrete([2, 3]); 0 forbids it"),
        ("all", "x returned 'all': a flat tuple or array of 5 numbers is needed, one for each choice of "
         "MultiDiscrete([2, 3]); 0 forbids it"),
        ((1, 1, 0, 0, 0), "x forbids every choice of element 1 of MultiDiscrete([2, 3]); where nothing else is allowed "
         "the no-op (0) must be"),
    ],
)  # fmt: skip
def test_what_is_no_mask_is_refused(given: object, words: str):
    with pytest.raises(RuleError, match=f"^{re.escape(words)}$"):
        checked(TWO, given, "x")
