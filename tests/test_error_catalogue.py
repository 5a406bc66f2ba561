"""What users get wrong, and every word that answers: which input, where, and how to mend it.

An entry is {name: (provoke, what is read)}. `provoke` takes an empty folder. What is read is "Class: message" of the
error that it raises, or the "error: message" that the command line prints. The message marks «what of the input it
shows, as the user wrote it» and ⟨how to mend it⟩; DIR stands for the folder, REGISTERED for the list of registered ids,
to which other tests add theirs.
"""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from catalogue import actions, clocks, features, files, grids, hierarchy, matrix, rules, settings, yaml_files

from heron_env import errors, registered
from heron_env.errors import HeronError

AREAS: dict[str, dict[str, tuple[Callable[[Path], Any], str]]] = {
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
CASES = [pytest.param(*case, id=f"{area}: {name}") for area, cases in AREAS.items() for name, case in cases.items()]
MARKED = re.compile("«(.+?)»|⟨(.+?)⟩")

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


def told(provoke: Callable[[Path], Any], printed: bool, folder: Path) -> str:
    """What the user reads, with placeholders for the folder and for the ids that are registered by now."""
    if printed:
        result = provoke(folder)
        assert result.exit_code == 2, result.output
        assert result.stdout == ""
        assert "Traceback" not in result.stderr
        (line,) = result.stderr.splitlines()
    else:
        with pytest.raises(HeronError) as caught:
            provoke(folder)
        assert type(caught.value) is getattr(errors, type(caught.value).__name__)
        line = f"{type(caught.value).__name__}: {caught.value}"
    return line.replace(str(folder), "DIR").replace(str(registered()), "REGISTERED")


@pytest.mark.parametrize(("provoke", "message"), CASES)
def test_a_bad_input_is_answered_with_culprit_place_and_remedy(
    provoke: Callable[[Path], Any], message: str, tmp_path: Path
):
    assert told(provoke, message.startswith("error: "), tmp_path) == MARKED.sub(r"\1\2", message)
    assert {"«", "⟨"} == {mark[0][0] for mark in MARKED.finditer(message)}


def test_the_catalogue_is_complete():
    assert len(CASES) >= 60
    assert min(map(len, AREAS.values())) >= 4
    raised = {message.split(":")[0] for cases in AREAS.values() for _, message in cases.values()} - {"error"}
    tree = {kind.__name__ for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, HeronError)}
    assert tree - raised == set(ELSEWHERE)
