"""One tree of errors, each also what Python programmers would catch."""

import pytest

from heron_env import errors


@pytest.mark.parametrize(
    ("error", "builtin"),
    [
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
    ],
)
def test_every_error_is_a_heron_error_and_a_builtin_one(error: type[Exception], builtin: type[Exception]):
    assert issubclass(error, errors.HeronError)
    assert issubclass(error, builtin)
    assert error.__name__ in errors.__doc__
    assert str(error("it's so")) == "it's so", "a KeyError would show the repr"
    assert str(error()) == ""


def test_the_nearest_candidate_is_proposed_or_none():
    assert errors.did_you_mean("batery_1", ["battery_1", "zone_1"]) == " Did you mean 'battery_1'?"
    assert errors.did_you_mean("x", ["battery_1"]) == ""
    assert errors.did_you_mean(3, [33, "a"]) == " Did you mean '33'?"
