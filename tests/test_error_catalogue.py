"""What users get wrong, and every word that answers: which input, where, and how to mend it."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from catalogue import actions, clocks, features, files, grids, hierarchy, matrix, rules, settings, yaml_files
from catalogue.case import FOLDER, REGISTERED, Case

from heron_env import errors, registered
from heron_env.errors import HeronError

AREAS: dict[str, list[Case]] = {
    "hierarchy": hierarchy.HIERARCHY,
    "exchange": hierarchy.EXCHANGE,
    "features": features.FEATURES,
    "quantities": features.QUANTITIES,
    "actions": actions.ACTIONS,
    "rules": rules.RULES,
    "matrix": matrix.MATRIX,
    "YAML": yaml_files.YAML,
    "schedule": clocks.SCHEDULES,
    "episodes": clocks.EPISODES,
    "settings": settings.SETTINGS,
    "CSV": files.CSV,
    "grids": grids.GRIDS,
    "run folder": files.RUNS,
    "folders and pipes": files.FOLDERS,
    "recorded episodes": files.TRACES,
    "CLI": files.CLI,
}
CASES = [pytest.param(case, id=f"{area}: {case.name}") for area, cases in AREAS.items() for case in cases]

# Classes of the tree that no bad input of these areas raises: why, and which test raises them.
ELSEWHERE = {
    "HeronError": "the root, never raised itself",
    "NoOptimum": "a solver's failure: tests/worlds/test_energy_optimum.py",
    "CheckFailed": "an environment that breaks a law: tests/testing/test_check.py",
    "ExternalAgentError": "an endpoint that fails: tests/injection/test_policy.py",
    "FixtureError": "a recording that is damaged, or of something else: tests/injection/test_fixtures.py",
    "RemovedName": "a name of an earlier version: tests/test_package.py",
    "WorkerLost": "a process that is killed: tests/lab/test_workers.py",
}


def told(case: Case, folder: Path) -> str:
    """What the user reads, with placeholders for the folder and for the ids that are registered by now."""
    if case.error is None:
        printed: Any = case.provoke(folder)
        assert printed.exit_code == 2, printed.output
        assert printed.stdout == ""
        assert "Traceback" not in printed.stderr
        (line,) = printed.stderr.splitlines()
        assert line.startswith("error: ")
        message = line.removeprefix("error: ")
    else:
        with pytest.raises(HeronError) as caught:
            case.provoke(folder)
        assert type(caught.value) is case.error
        message = str(caught.value)
    return message.replace(str(folder), FOLDER).replace(str(registered()), REGISTERED)


@pytest.mark.parametrize("case", CASES)
def test_a_bad_input_is_answered_with_culprit_place_and_remedy(case: Case, tmp_path: Path):
    message = told(case, tmp_path)
    assert message == case.message
    assert case.culprit in message
    assert case.remedy in message
    assert (case.near is None) == ("Did you mean" not in message)
    if case.near is not None:
        assert f"Did you mean {case.near!r}?" in message


def test_the_catalogue_is_complete():
    assert len(CASES) >= 60
    assert min(len(cases) for cases in AREAS.values()) >= 4
    names = Counter((area, case.name) for area, cases in AREAS.items() for case in cases)
    assert max(names.values()) == 1
    raised = {case.error.__name__ for cases in AREAS.values() for case in cases if case.error is not None}
    tree = {kind.__name__ for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, HeronError)}
    assert tree - raised == set(ELSEWHERE)
