"""What users get wrong, and every word that answers: which input, where, and how to mend it.

An entry is {name: provoke}; `provoke` takes an empty folder. What is read stands under the same name in messages.txt:
"Class: message" of the error that it raises, or the "error: message" that the command line prints.
"""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from catalogue import actions, clocks, features, files, grids, hierarchy, matrix, rules, settings, yaml_files

from heron_env import __version__, errors, registered
from heron_env.errors import HeronError
from heron_env.lab.schedules import FIELDS

AREAS: dict[str, dict[str, Callable[[Path], Any]]] = {
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
CASES = {f"{area}: {name}": provoke for area, cases in AREAS.items() for name, provoke in cases.items()}
MARKED = re.compile("«(.+?)»|⟨(.+?)⟩")


def messages() -> Iterator[tuple[str, str]]:
    """Area and name of each entry, and what is read."""
    area = ""
    for line in (Path(__file__).parent / "catalogue" / "messages.txt").read_text(encoding="utf-8").splitlines():
        area = line.removeprefix("# ") if line.startswith("# ") else area
        name, bar, message = line.partition(" | ")
        if bar:
            yield f"{area}: {name}", message


READ = dict(messages())

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
    """What the user reads, with placeholders for what differs from time to time."""
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
    line = line.replace(str(folder), "DIR").replace(str(registered()), "REGISTERED")
    return line.replace(str(FIELDS), "FIELDS").replace(__version__, "VERSION")


@pytest.mark.parametrize("area", AREAS)
def test_a_bad_input_is_answered_with_culprit_place_and_remedy(area: str, tmp_path: Path):
    expected = {name: message for name, message in READ.items() if name.startswith(f"{area}: ")}
    read = {}
    for number, (name, message) in enumerate(expected.items()):
        (folder := tmp_path / str(number)).mkdir()
        read[name] = told(CASES[name], message.startswith("error: "), folder)
        assert {"«", "⟨"} == {mark[0][0] for mark in MARKED.finditer(message)}, name
    assert read == {name: MARKED.sub(r"\1\2", message) for name, message in expected.items()}


def test_the_catalogue_is_complete():
    assert len(CASES) >= 60
    assert min(map(len, AREAS.values())) >= 4
    assert list(READ) == list(CASES)
    raised = {message.split(":")[0] for message in READ.values()} - {"error"}
    tree = {kind.__name__ for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, HeronError)}
    assert tree - raised == set(ELSEWHERE)
