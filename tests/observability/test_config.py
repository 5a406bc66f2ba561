"""Who sees whom, as users write it: the form is checked on the spot, every mistake with its place, value and remedy."""

import math
import pickle
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from refusing import refuses

from heron_env import (
    DefaultObservability,
    ObservabilityConfig,
    ObservabilityEntry,
    ObservabilityLevel,
    VariableVisibilityConfig,
)
from heron_env.errors import ConfigError, DeclarationError, Problem

ROW = ["A", "B", "external", 0.2]
LEVELS = "must be one of 'unaware', 'external', 'insider'."
INSIDER = f"Invalid observability level 'Insider'; {LEVELS} Did you mean 'insider'?"

MISTAKES: list[tuple[dict[str, Any], str]] = [
    ({"xyz": 1}, "xyz: unknown key. Known keys: enabled, variable_visibility, matrix, default, common_noise"),
    ({"enabled": "yes"}, "enabled: must be true or false, got 'yes' (str)"),
    ({"enabled": 1}, "enabled: must be true or false, got 1 (int)"),
    ({"matrix": None}, "matrix: must be a list, got nothing (None)"),
    ({"matrix": "AB"}, "matrix: must be a list, got 'AB' (str)"),
    ({"matrix": [ROW, [*ROW, "additive"]]}, "matrix[1]: a row has 4 elements, [observer, target, level, noise], got 5: "
     "['A', 'B', 'external', 0.2, 'additive'] (list)"),
    ({"matrix": ["abcd"]},
     "matrix[0]: must be a mapping with the keys observer, target, level, noise, law, got 'abcd' (str)"),
    ({"matrix": [["A", "B", False, 0.0]]}, f"matrix[0].level: Invalid observability level False (bool); {LEVELS}"),
    ({"matrix": [["A", "B", "external", math.inf]]}, "matrix[0].noise: must be finite, got inf"),
    ({"matrix": [[1, "B", "external", 0.2]]}, "matrix[0].observer: must be text, got 1 (int)"),
    ({"matrix": [["A", " B", "external", 0.2]]}, "matrix[0].target: must be text without blanks around it, got ' B'"),
    ({"matrix": [["A", "", "external", 0.2]]}, "matrix[0].target: must be text without blanks around it, got ''"),
    ({"matrix": [{"observer": "A", "level": "insider"}]}, "matrix[0].target: must be given"),
    ({"matrix": [["global", "A", "external", 0.2]]},
     "matrix[0].observer: 'global' stands for the environment's variables and can be a target only; name an agent"),
    ({"matrix": [["A", "A", "insider", 0.1]]},
     "matrix[0]: an agent always sees all of itself, exactly, but the row says [A, A, insider, 0.1]; remove it"),
    ({"default": {"level": "Insider"}}, f"default.level: {INSIDER}"),
    ({"default": {"noise": -1}}, "default.noise: must be >= 0, got -1"),
    ({"default": {"noise": None}}, "default.noise: must be a number, got nothing (None)"),
    ({"default": None}, "default: must be a mapping with the keys level, noise, law, got nothing (None)"),
    ({"variable_visibility": {"external": ["a", "b", "a"]}},
     "variable_visibility.external[2]: Duplicate variable 'a', see external[0]; keep one"),
    ({"variable_visibility": {"internal": "ab"}}, "variable_visibility.internal: must be a list, got 'ab' (str)"),
    ({"variable_visibility": {"internal": [3]}}, "variable_visibility.internal[0]: must be text, got 3 (int)"),
]  # fmt: skip


def refusal(config: Any) -> DeclarationError:
    """The error that a mapping is refused with."""
    with pytest.raises(DeclarationError) as caught:
        ObservabilityConfig.model_validate(config)
    return caught.value


def test_every_mistake_is_told_with_place_value_and_remedy_also_when_disabled():
    for wrong, message in MISTAKES:
        for enabled in (True, False):
            error = refusal({"enabled": enabled, **wrong})
            assert str(error) == message
            with pytest.raises(DeclarationError) as from_constructor:
                ObservabilityConfig(**{"enabled": enabled, **wrong})
            assert from_constructor.value.problems == error.problems


def test_the_parts_are_checked_on_their_own_too():
    for build, message in [
        (
            lambda: ObservabilityEntry(observer="A", target="B", level="x"),
            f"level: Invalid observability level 'x'; {LEVELS}",
        ),
        (
            lambda: ObservabilityEntry.model_validate(["A"]),
            "a row has 4 elements, [observer, target, level, noise], got 1: ['A'] (list)",
        ),
        (lambda: DefaultObservability(noise=-1), "noise: must be >= 0, got -1"),
        (lambda: VariableVisibilityConfig(external="a"), "external: must be a list, got 'a' (str)"),
        (lambda: VariableVisibilityConfig(extrenal=[]), "extrenal: unknown key. Did you mean 'external'?"),
    ]:
        with refuses(DeclarationError, message):
            build()


def test_all_mistakes_are_told_at_once():
    error = refusal({"defualt": 1, "enabled": 0, "matrix": [["A", "B", "Insider", -1], ROW[:1]]})
    assert [problem.path for problem in error.problems] == [
        ("defualt",),
        ("enabled",),
        ("matrix", 0, "level"),
        ("matrix", 0, "noise"),
        ("matrix", 1),
    ]
    assert len(str(error).splitlines()) == 5


def test_what_is_no_mapping_is_refused():
    for junk in [None, 5, "text", [], [("enabled", True)]]:
        assert "must be a mapping with the keys enabled, variable_visibility, matrix, default" in str(refusal(junk))


def test_keys_that_are_no_text_are_refused():
    assert str(refusal({5: 1})) == "['5']: must be text: it is a key, got 5 (int)"


def test_a_declaration_error_is_a_config_error_and_survives_pickling():
    error = refusal({"enabled": 1})
    assert isinstance(error, ConfigError)
    assert isinstance(error, ValueError)
    copy = pickle.loads(pickle.dumps(error))
    assert (copy.problems, str(copy)) == (error.problems, str(error))


def test_a_problem_shows_source_path_and_message_as_far_as_there_are_any():
    assert str(Problem(("a", 0, "two words", 1), "is wrong", "f.yaml:3")) == "f.yaml:3: a[0]['two words'][1]: is wrong"
    assert str(Problem((), "is wrong")) == "is wrong"


def test_nothing_written_means_unaware_and_enabled():
    config = ObservabilityConfig()
    assert config.enabled
    assert config.matrix == ()
    assert config.default == DefaultObservability(level="unaware", noise=0.0, law="multiplicative")
    assert config.variable_visibility == VariableVisibilityConfig(external=[], internal=[])


def test_a_row_is_a_list_of_four_or_a_mapping():
    short = ObservabilityConfig(matrix=[ROW]).matrix[0]
    long = ObservabilityEntry(observer="A", target="B", level="external", noise=0.2)
    assert short == long
    assert (short.level, short.law) == (ObservabilityLevel.EXTERNAL, "multiplicative")
    assert ObservabilityConfig(matrix=(tuple(ROW),)).matrix == (long,) == ObservabilityConfig(matrix=[long]).matrix


def test_noise_is_a_float_and_none_counts_as_zero():
    for noise, factor in [
        (None, 0.0),
        (0, 0.0),
        (-0.0, 0.0),
        (1, 1.0),
        (np.float32(0.5), 0.5),
        (np.int64(2), 2.0),
        (Fraction(1, 4), 0.25),
    ]:
        entry = ObservabilityEntry(observer="A", target="B", level="unaware", noise=noise)
        assert entry.factor == factor
        assert noise is None or math.copysign(1.0, DefaultObservability(noise=noise).noise) == 1.0
        assert entry.noise is None or type(entry.noise) is float


def test_a_row_about_oneself_may_say_what_holds_anyway():
    for noise in [0.0, None]:
        assert ObservabilityConfig(matrix=[["A", "A", "insider", noise]]).matrix[0].observer == "A"


def test_configurations_are_values():
    config = ObservabilityConfig(matrix=[ROW], variable_visibility={"external": ["a"]}, default={"level": "insider"})
    same = ObservabilityConfig(**config.model_dump())
    assert same == config == pickle.loads(pickle.dumps(config)) == config.model_copy()
    assert hash(same) == hash(config)
    assert ObservabilityConfig.model_validate(config.model_dump(mode="json")) == config
    assert config != ObservabilityConfig(matrix=[ROW])
    with pytest.raises(ValidationError, match="frozen"):
        config.enabled = False
    with pytest.raises(AttributeError):
        config.matrix.append(ROW)


NAMES = st.sampled_from(["A", "B", "C", "global"])
ROWS = st.tuples(
    NAMES,
    NAMES,
    st.sampled_from(list(ObservabilityLevel)),
    st.none() | st.floats(0, 1e9),
    st.sampled_from(["additive"]),
).filter(lambda row: row[0] not in ("global", row[1]))


@given(st.lists(ROWS, unique_by=lambda row: row[:2]), st.booleans(), st.sampled_from(list(ObservabilityLevel)))
def test_what_is_right_is_accepted_and_round_trips(rows: list[Any], enabled: bool, level: ObservabilityLevel):
    matrix = [dict(zip(ObservabilityEntry.model_fields, row, strict=True)) for row in rows]
    config = ObservabilityConfig(enabled=enabled, matrix=matrix, default={"level": level})
    assert [(r.observer, r.target, r.level, r.noise, r.law) for r in config.matrix] == rows
    assert ObservabilityConfig(**config.model_dump()) == config


KEYS = st.sampled_from(
    ["enabled", "variable_visibility", "external", "internal", "matrix", "default", "level", "noise", "law", "observer"]
)
SCALARS = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | KEYS | st.binary(max_size=3) | NAMES
)
JUNK = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(SCALARS.filter(lambda k: k == k), inner, max_size=4),
    max_leaves=15,
)


@given(st.dictionaries(KEYS | st.text(max_size=3), JUNK, max_size=4))
def test_junk_raises_nothing_but_config_errors(junk: dict[str, Any]):
    for build in (ObservabilityConfig.model_validate, lambda given: ObservabilityConfig(**given)):
        try:
            config = build(junk)
        except ConfigError as error:
            assert str(error)
        else:
            assert ObservabilityConfig(**config.model_dump()) == config


def test_a_value_that_contains_itself_is_refused():
    loop: list[Any] = []
    loop.append(loop)
    assert "must be" in str(refusal({"matrix": loop, "enabled": loop, "default": {"level": loop, "noise": loop}}))
