"""`heron new` writes a package that passes its own tests; `heron --version`, completion, and what each --help shows."""

import json
import os
import re
import shlex
import subprocess
import sys
import tomllib
from contextvars import copy_context
from pathlib import Path
from string import Template
from typing import Any

import pytest
import typer
import yaml
from cli_kit import as_json, heron

from heron_env import __version__
from heron_env.cli import app
from heron_env.cli.new import TEMPLATES


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("new") / "grid"
    heron("new", "small_grid", "--out", folder)
    return folder


@pytest.fixture(scope="module")
def installed(package: Path) -> dict[str, str]:
    """What processes need to find it: the module on the path, and what pip makes of its pyproject.toml."""
    project = tomllib.loads((package / "pyproject.toml").read_text())["project"]
    info = package / "src" / f"{project['name']}-{project['version']}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n")
    lines = [f"{name} = {value}" for name, value in project["entry-points"]["heron_env.envs"].items()]
    (info / "entry_points.txt").write_text("\n".join(["[heron_env.envs]", *lines]))
    path = os.pathsep.join([str(package / "src"), str(Path(__file__).parent.parent)])
    return {**os.environ, "PYTHONPATH": path}


def python(package: Path, env: dict[str, str], *words: str) -> Any:
    return subprocess.run([sys.executable, *words], cwd=package, env=env, capture_output=True, text=True, check=False)


def test_every_template_is_written_with_the_names_in_place(package: Path):
    written = {str(path.relative_to(package)) for path in package.rglob("*") if path.is_file()}
    assert {str(path.relative_to(TEMPLATES)) for path in TEMPLATES.rglob("*") if path.suffix != ".template"} == {
        ".github", ".github/workflows", "src", "src/$name", "tests"
    }  # fmt: skip
    assert {".gitignore", ".github/workflows/test.yml", "README.md", "pyproject.toml"} <= written
    assert {"src/small_grid/__init__.py", "src/small_grid/environment.py", "tests/test_small_grid.py"} <= written
    assert len(written) == len(list(TEMPLATES.rglob("*.template")))
    for name in written:
        text = (package / name).read_text()
        assert "$" not in text.replace("${{ matrix.python }}", ""), name
        assert not name.endswith(".py") or compile(text, name, "exec")
    (step,) = [step for step in yaml.safe_load((package / ".github/workflows/test.yml").read_text())["jobs"]["test"][
        "steps"] if step.get("run") == "pytest"]  # fmt: skip
    assert step


def test_the_licence_is_left_to_the_user(package: Path):
    project = tomllib.loads((package / "pyproject.toml").read_text())["project"]
    assert "license" not in project and not (package / "LICENSE").exists()
    assert project["dependencies"] == [f"heron_env>={__version__}"]
    assert "Choose a licence" in (package / "README.md").read_text()


@pytest.mark.e2e
def test_its_id_is_known_and_its_rule_beats_chance(package: Path, installed: dict[str, str]):
    listed = python(package, installed, "-m", "heron_env", "envs")
    assert "small_grid/SmallGrid-v0 of the package small_grid 0.1.0" in " ".join(listed.stdout.split())
    words = ("-m", "heron_env", "sweep", "small_grid:small_grid/SmallGrid-v0", "straight", "random", "--cases", "2")
    told = python(
        package, installed, *words, "--axis", "act_delay=0,8", "-o", "max_steps=30", "--processes", "1", "--json"
    )
    assert told.returncode == 0, told.stderr
    table = json.loads(told.stdout)
    earned = {(row["policy"], row["condition"]): row["mean"]["value"] for row in table["rows"]}
    assert earned["straight", "sync"] > earned["straight", "act_delay=8"] > earned["random", "sync"]
    assert table["unit"] == "parcels"


def test_the_page_shows_what_is_written(package: Path):
    page = (Path(__file__).parent.parent / "docs/how_to/publish.md").read_text()
    (shown,) = re.findall(r"^```toml\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    shown = shown.replace("couriers", "small_grid").replace("Couriers", "SmallGrid")
    assert shown in (package / "pyproject.toml").read_text()


@pytest.mark.e2e
def test_it_passes_its_own_tests(package: Path, installed: dict[str, str]):
    done = python(package, installed, "-m", "pytest", "-q", "-p", "no:cacheprovider")
    assert done.returncode == 0, done.stdout
    assert " passed" in done.stdout and "skipped" not in done.stdout


@pytest.mark.e2e
def test_it_type_checks_strictly(package: Path, installed: dict[str, str]):
    source = Path(__file__).parent.parent
    command = ["-m", "mypy", "--strict", "--config-file", str(source / "pyproject.toml"), str(package / "src")]
    done = python(source, installed, *command)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("name", ["my-grid", "2couriers", "class", "_couriers", "couriers_", "héron", "a.b", ""])
def test_a_name_that_can_not_be_a_package_is_refused(name: str, tmp_path: Path):
    told = heron("new", name, "--out", tmp_path / "new", code=2).stderr
    assert told.startswith(f"error: heron new {name!r}: must be a name that Python imports")
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("name", ["json", "heron_env", "sys"])
def test_a_name_that_a_module_has_is_refused(name: str, tmp_path: Path):
    assert (
        f"heron new {name}: there is a module of that name ("
        in heron("new", name, "--out", tmp_path / "x", code=2).stderr
    )


def test_a_folder_of_that_name_is_no_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "parcels").mkdir()
    assert "parcels exists already" in heron("new", "parcels", code=2).stderr
    made = as_json("new", "parcels", "--out", "other")
    assert made["id"] == "parcels/Parcels-v0" and all(Path(path).is_file() for path in made["files"])


def test_the_version_is_one_line_and_of_what_is_installed():
    (line,) = heron("--version").stdout.splitlines()
    assert line.startswith(f"heron_env {__version__}, Python {sys.version.split()[0]}, numpy ")


@pytest.mark.parametrize(
    ("typed", "offered"),
    [(("tr",), {"train", "trace"}), (("describe", "heron/Spr"), {"heron/Spread-v0"}), (("dcop", "s"), {"solve"})],
)
def test_a_shell_completes_commands_and_ids(typed: tuple[str, ...], offered: set[str]):
    asked = {
        "_HERON_COMPLETE": "complete_bash",
        "COMP_WORDS": shlex.join(["heron", *typed]),
        "COMP_CWORD": str(len(typed)),
    }
    done = subprocess.run(
        [sys.executable, "-m", "heron_env"], env={**os.environ, **asked}, capture_output=True, text=True, check=True
    )
    assert set(done.stdout.split()) == offered
    assert "--install-completion" in heron("--help").stdout


def commands(group: Any, *words: str) -> dict[tuple[str, ...], Any]:
    found = {}
    for name, command in group.commands.items():
        inner = hasattr(command, "commands")
        found |= commands(command, *words, name) if inner else {(*words, name): command}
    return found


COMMANDS = commands(typer.main.get_command(app))


@pytest.mark.parametrize("words", COMMANDS, ids="-".join)
def test_every_command_shows_examples_that_it_understands(words: tuple[str, ...]):
    head, *lines = (COMMANDS[words].epilog or "").splitlines()
    assert head == "Examples:" and len(lines) >= 2, "heron_env/cli/__init__.py: give the command two examples or more"
    told = " ".join(heron(*words, "--help").stdout.split())
    for line in lines:
        assert " ".join(line.split()) in told and len(line) < 80
        program, *rest = shlex.split(line)
        assert (program, *rest[: len(words)]) == ("heron", *words)
        copy_context().run(COMMANDS[words].make_context, words[-1], rest[len(words) :])


def test_an_example_that_a_command_does_not_understand_is_found():
    with pytest.raises(Exception, match="No such option"):
        COMMANDS["envs",].make_context("envs", ["--jsn"])


def test_templates_hold_no_other_names_than_those_that_are_replaced():
    found = {path.name: set(Template(path.read_text()).get_identifiers()) for path in TEMPLATES.rglob("*.template")}
    assert set().union(*found.values()) == {"name", "title", "version"}
    assert found["environment.py.template"] == set(), "a package may be called x or hub, as names in there are"
