"""One tree of errors, each also what Python programmers would catch."""

import pytest

from heron_env import ObservabilityConfig, ObservabilityEntry, ScheduleConfig, errors, quantity


def test_every_error_is_a_heron_error_and_a_builtin_one():
    for error, builtin in [
        (errors.ConfigError, ValueError),
        (errors.FeatureError, errors.ConfigError),
        (errors.HierarchyError, errors.ConfigError),
        (errors.ScheduleError, errors.ConfigError),
        (errors.DataError, errors.ConfigError),
        (errors.RunFolderError, errors.ConfigError),
        (errors.InvalidAction, ValueError),
        (errors.RuleError, TypeError),
        (errors.UnknownAgent, KeyError),
        (errors.UnknownFeature, KeyError),
        (errors.UnknownEnvironment, KeyError),
        (errors.ResetNeeded, RuntimeError),
    ]:
        assert issubclass(error, errors.HeronError)
        assert issubclass(error, builtin)
        assert error.__name__ in errors.__doc__
        assert str(error("it's so")) == "it's so", "a KeyError would show the repr"
        assert str(error()) == ""


def test_the_nearest_candidate_is_proposed_or_none():
    assert errors.did_you_mean("batery_1", ["battery_1", "zone_1"]) == " Did you mean 'battery_1'?"
    assert errors.did_you_mean("x", ["battery_1"]) == ""
    assert errors.did_you_mean(3, [33, "a"]) == " Did you mean '33'?"
    assert errors.did_you_mean(None, ["field", "zone"]) == ""
    assert errors.did_you_mean(None, ["zone", "none"]) == " Did you mean 'none'?"


def test_values_go_by_name():
    for wrong, message in [
        (
            lambda: ScheduleConfig(60.0),
            "ScheduleConfig(60.0): values go by name; write ScheduleConfig(tick_interval=..., ...)",
        ),
        (
            lambda: ObservabilityConfig([]),
            "ObservabilityConfig([]): values go by name; write ObservabilityConfig(enabled=..., ...)",
        ),
        (
            lambda: ObservabilityEntry("a", "b"),
            "ObservabilityEntry('a'): values go by name; write ObservabilityEntry(observer=",
        ),
        (lambda: quantity(1.0, 2.0), "quantity(1.0): values go by name; write quantity(default=..., ...)"),
    ]:
        with pytest.raises(errors.ConfigError) as caught:
            wrong()
        assert str(caught.value).startswith(message)
