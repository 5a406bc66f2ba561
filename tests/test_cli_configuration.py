"""`heron check` of a file: what it tells of a file, what it warns of, and how it refuses one."""

from functools import partial
from pathlib import Path
from typing import ClassVar

import pytest
from cli_kit import as_json, heron

from heron_env import register_engine
from heron_env.declared.engine import Engine
from heron_env.files.models import Number

WORLD = """\
simulation: {name: Riverside, max_turns: 20, termination: {variable: inflation, low: -0.5, high: 0.5}}
engine: {type: growth}
agents: [{name: Bank, type: bank}, {name: Firm}]
state_variables:
  agent_vars:
    strength: {type: float, min: 0, max: 10, default: 1.0}
    reserves: {type: float, default: 0.0, visibility: internal}
  global_vars:
    inflation: {type: float, default: 0.0}
    plan: {type: bool, default: true, visibility: internal}
"""
MATRIX = """\
observability:
  matrix:
    - [Bank, Firm, external, 0.25]
    - [Firm, Bank, insider, 0.0]
    - {observer: Firm, target: global, level: insider, noise: 0.0}
"""

IDLE = (
    "observability is not enabled: everybody sees everything that is observed; rows and default are checked, but have "
    "no effect (leave `observability` out for the visibility of the features to decide)"
)


class Growth(Engine):
    """Test engine: moves nothing, needs `strength`."""

    agent_variables: ClassVar[tuple[str, ...]] = ("strength",)
    rate: Number = 1.0


register_engine("growth", f"{__name__}:Growth")


check = partial(heron, "check")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A file with WORLD and MATRIX in it."""
    path = tmp_path / "world.yaml"
    path.write_text(WORLD + MATRIX, "utf-8")
    return path


def warnings(path: Path, content: str, *arguments: object) -> list[str]:
    """What is warned of a file with this content."""
    path.write_text(content, "utf-8")
    return as_json("check", path, *arguments)["warnings"]


def test_a_world_is_told_with_who_sees_what(file: Path):
    result = check(file)
    assert result.stderr == ""
    assert result.stdout.splitlines() == [
        f"{file}: valid",
        "Riverside: at most 20 turns of 1 s, engine growth; over when inflation is below -0.5 or above 0.5",
        "",
        "agents: Bank (bank), Firm (agent)",
        "variables: strength (float, external); reserves (float, internal)",
        "global: inflation (float, external); plan (bool, internal)",
        "",
        "who sees what",
        "  Bank  Firm external, noise 0.25 (strength); others unaware",
        "  Firm  Bank insider (all); global insider (all); others unaware",
    ]


def test_json_holds_the_same_and_nothing_else(file: Path):
    told = as_json("check", file)
    assert told["valid"] is True
    assert (told["file"], told["agents"]) == (str(file), ["Bank (bank)", "Firm (agent)"])
    assert told["agent_variables"] == {"strength": "float, external", "reserves": "float, internal"}
    assert told["sees"]["Bank"] == "Firm external, noise 0.25 (strength); others unaware"
    assert told["warnings"] == []


def test_without_a_matrix_the_variables_decide(file: Path):
    assert warnings(file, WORLD) == []
    assert check(file).stdout.endswith(
        "who sees what\n  everybody  the visibility of the variables decides, exactly: all that is not internal\n"
    )


@pytest.mark.parametrize(
    ("matrix", "expected"),
    [
        (
            "{enabled: false}",
            [IDLE],
        ),
        (
            "{matrix: [[Bank, Firm, unaware, 0.5]], default: {level: insider}}",
            ["matrix[0] (Bank, Firm): noise 0.5 has no effect: Bank is unaware of Firm"],
        ),
        (
            "{matrix: [[Bank, Firm, insider, 0.5]], default: {level: insider, noise: 0.5}}",
            ["matrix[0] (Bank, Firm) says what the default says"],
        ),
        (
            "{matrix: [[Bank, Bank, insider, 0.0]], default: {level: insider}}",
            ["matrix[0] (Bank, Bank) has no effect: an agent always sees all of itself"],
        ),
        (
            "{default: {noise: 0.1}, matrix: [[Bank, Firm, insider, 0], [Bank, global, insider, 0]]}",
            ["default.noise 0.1 has no effect: the default is unaware"],
        ),
        (
            "{variable_visibility: {external: []}, default: {level: insider}}",
            ["variable_visibility.external is empty: what is not listed as internal stays as it was declared"],
        ),
        (
            "{default: {level: external}}",
            [
                "nobody but its owner sees reserves: it is internal, and no agent is an insider",
                "nobody sees plan: it is internal, and nobody is an insider of global",
            ],
        ),
    ],
)
def test_what_is_surely_not_meant_is_warned_of(tmp_path: Path, matrix: str, expected: list[str]):
    assert warnings(tmp_path / "w.yaml", f"{WORLD}observability: {matrix}\n") == expected


def test_a_matrix_that_is_not_enabled_is_told_as_full_observability(file: Path):
    warnings(file, f"{WORLD}observability: {{enabled: false}}\n")
    everybody = "who sees what\n  everybody  everything that is observed, exactly: observability is not enabled\n"
    assert everybody in check(file).stdout
    warnings(file, f"{WORLD}observability: {{enabled: false, common_noise: 0.2}}\n")
    assert "everything that is observed, with noise 0.2 on all of others" in check(file).stdout


def test_warnings_are_lines_of_the_text_too(file: Path):
    warnings(file, f"{WORLD}observability: {{enabled: false}}\n")
    assert check(file).stdout.endswith(f"\nwarning: {IDLE}\n")


def test_a_matrix_alone_is_told_without_the_names_of_variables(tmp_path: Path):
    path = tmp_path / "matrix.yaml"
    path.write_text(MATRIX, "utf-8")
    assert check(path).stdout.splitlines()[-2:] == [
        "  Bank  Firm external, noise 0.25; others unaware",
        "  Firm  Bank insider; global insider; others unaware",
    ]


def test_a_matrix_is_checked_against_an_environment(tmp_path: Path):
    path, grid = tmp_path / "matrix.yaml", ("--env", "heron/BatteryGrid-v0", "-o", "control=zone")
    hidden = "the matrix hides from zone_1 what it saw of its children battery_1, battery_2; add rows or a default"
    assert warnings(path, "observability: {matrix: [[zone_1, global, insider, 0.1]]}\n", *grid) == [hidden]
    assert warnings(path, "observability: {enabled: false}\n", *grid) == [IDLE]
    assert warnings(path, "default: {level: insider}\n", *grid) == []
    path.write_text("matrix:\n  - [zone_1, batery_1, insider, 0.1]\n", "utf-8")
    result = check(path, *grid, code=2)
    assert result.stdout == ""
    assert result.stderr == f"error: {path}:2: matrix[0].target: Unknown target 'batery_1'. Did you mean 'battery_1'?\n"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("external, 0.25", "external, -1", ":13: observability.matrix[0].noise: must be >= 0, got -1"),
        ("[Bank, F", "[Bnk, F", ":13: observability.matrix[0].observer: Unknown observer 'Bnk'. Did you mean 'Bank'?"),
        ("engine: {type: growth}\n", "", ":1: engine: must be given"),
        ("max_turns", "max_truns", ":1: simulation.max_truns: unknown key. Did you mean 'max_turns'?"),
        ("agents: [", "agents: [[", ":4: is no valid YAML: expected ',' or ']', but got '<scalar>'"),
    ],
)
@pytest.mark.parametrize("form", [(), ("--json",)])
def test_what_is_wrong_ends_with_code_2_and_its_line(file: Path, old: str, new: str, message: str, form: tuple[str]):
    file.write_text(file.read_text("utf-8").replace(old, new), "utf-8")
    result = check(file, *form, code=2)
    assert result.stdout == ""
    assert f"{file}{message}" in result.stderr.removeprefix("error: ").splitlines()


def test_a_missing_file_and_an_option_without_an_environment_are_refused(file: Path):
    missing = check(file.with_name("wold.yaml"), code=2)
    assert missing.stderr == f"error: {file.with_name('wold.yaml')}: no such file. Did you mean 'world.yaml'?\n"
    assert "error: --option is for an environment: name it with --env" in check(file, "-o", "a=1", code=2).stderr


def test_long_lists_are_cut(tmp_path: Path):
    rows = "".join(f"  - [agent_{number}, global, insider, 0.0]\n" for number in range(50))
    (tmp_path / "long.yaml").write_text(f"matrix:\n{rows}", "utf-8")
    shown = check(tmp_path / "long.yaml").stdout.splitlines()
    assert shown[-1] == "  and 10 more"
    assert shown[-2].startswith("  agent_39 ")


@pytest.mark.parametrize(
    ("given", "instead", "message"),
    [
        (
            "{type: growth}",
            "{type: growth, params: {rat: 1}}",
            ":2: engine.params.rat: unknown key. Did you mean 'rate'?",
        ),
        ("strength", "strenght", ":5: state_variables.agent_vars: the engine 'growth' needs 'strength'; declare it."),
        ("{name: Firm}", "{name: Firm, policy: slow}", ":3: agents[1].policy: policy of 'Firm': Unknown policy 'slow'"),
    ],
)
def test_what_the_engine_would_refuse_is_not_valid(tmp_path: Path, given: str, instead: str, message: str):
    path = tmp_path / "world.yaml"
    path.write_text(WORLD.replace(given, instead), "utf-8")
    assert f"{path}{message}" in check(path, code=2).stderr


def test_an_engine_that_is_not_here_can_not_be_asked(tmp_path: Path):
    told = warnings(tmp_path / "world.yaml", WORLD.replace("growth", "elsewhere"))
    assert len(told) == 1
    assert told[0].startswith("Unknown engine 'elsewhere'; registered are ")
    assert told[0].endswith("What only an engine knows is not checked: its parameters, variables and policies")
