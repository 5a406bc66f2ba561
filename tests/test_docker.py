"""The Dockerfile, the dev container and the documented commands agree with the repository and with the command line.

No image is built: that needs a Docker daemon and the network.
"""

import fnmatch
import json
import re
import shlex
import tomllib
from pathlib import Path

import pytest
import typer
import yaml

from heron_env.cli import app

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
EXTRAS = PROJECT["project"]["optional-dependencies"]
DOCKERFILE = re.sub(r"\\\n\s*", "", (ROOT / "Dockerfile").read_text(encoding="utf-8"))
STEPS = [tuple(line.split(maxsplit=1)) for line in DOCKERFILE.splitlines() if line and not line.startswith("#")]
PAGE = (ROOT / "docs" / "service.md").read_text(encoding="utf-8")
SHELL = re.sub(r"\\\n\s*", "", "".join(re.findall(r"^```sh\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)))
DOCUMENTED = [shlex.split(line, comments=True) for line in SHELL.splitlines() if line.startswith("docker run ")]


def arguments(instruction: str) -> list[str]:
    """What follows each step of this kind."""
    return [text for kind, text in STEPS if kind == instruction]


def environment() -> dict[str, str]:
    """The variables that the Dockerfile sets."""
    return dict(word.split("=", 1) for text in arguments("ENV") for word in shlex.split(text))


def parse(words: list[str]) -> None:
    """Raise what the command line raises for these words; run nothing."""
    if words[0] == "heron":
        command, rest = typer.main.get_command(app), words[1:]
        while rest and rest[0] in getattr(command, "commands", {}):
            command, rest = command.commands[rest[0]], rest[1:]
        assert not hasattr(command, "commands") or rest[:1] in ([], ["--help"]), words
        try:
            command.make_context(words[0], rest)
        except typer.Exit as ended:  # --help
            assert ended.exit_code == 0
    else:
        program, script, *options = words
        text = (ROOT / script).read_text(encoding="utf-8")
        assert program == "python" and all(f'add_argument("{option}"' in text for option in options), words


def included(path: str) -> bool:
    """Does .dockerignore let this path into the build? The last pattern that matches it or a parent decides."""
    parents = [path, *(str(parent) for parent in Path(path).parents)][:-1]
    decision = True
    for line in (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines():
        pattern = line.removeprefix("!").removeprefix("**/")
        tried = [part for each in parents for part in ({each, Path(each).name} if "**/" in line else {each})]
        if line and not line.startswith("#") and any(fnmatch.fnmatchcase(each, pattern) for each in tried):
            decision = line.startswith("!")
    return decision


def test_everything_that_is_copied_exists_and_is_not_ignored():
    sources = [source for text in arguments("COPY") for source in text.split()[:-1]]
    assert {"heron_env", PROJECT["project"]["readme"], *PROJECT["project"]["license-files"]} <= set(sources)
    for source in sources:
        assert (ROOT / source).exists() and included(source), source
    assert not any(
        map(included, ("tests/test_docker.py", ".git/config", ".venv/bin/python", "runs/a", "heron_env/__pycache__"))
    )


def test_python_is_a_version_that_the_project_supports_and_tests():
    (version,) = re.findall(r"^FROM python:(\d\.\d+)-slim AS base$", DOCKERFILE, re.MULTILINE)
    lowest = PROJECT["project"]["requires-python"].removeprefix(">=")
    assert tuple(map(int, version.split("."))) >= tuple(map(int, lowest.split(".")))
    assert f'"{version}"' in (ROOT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8")
    assert f"with Python {version}, the CPU build" in PAGE
    stages = re.findall(r"^FROM (\S+) AS (\w+)$", DOCKERFILE, re.MULTILINE)
    assert all(source == stages[0][1] for source, _ in stages[1:])


def test_pip_installs_extras_that_exist_with_the_constraints_and_the_index_that_the_page_names():
    installs = [text for text in arguments("RUN") if "pip install" in text]
    assert all("--constraint build/constraints.txt" in text for text in installs)
    (extras,) = re.findall(r"'\./build\[([a-z,]+)\]'", " ".join(installs))
    assert set(extras.split(",")) <= set(EXTRAS)
    assert all(f"`{extra}`" in PAGE for extra in extras.split(","))
    assert environment()["PIP_EXTRA_INDEX_URL"] in PAGE


def test_it_runs_as_a_user_who_owns_the_cache_and_the_results():
    (created,) = [text for text in arguments("RUN") if text.startswith("useradd ")]
    user, home = created.split()[-1], f"/home/{created.split()[-1]}"
    stages = DOCKERFILE.split("\nFROM ")
    assert all(f"\nUSER {user}\n" in stage for stage in stages[2:])  # all but the comment and the base
    owned = shlex.split(next(text for text in arguments("RUN") if text.startswith("install ")))
    assert arguments("WORKDIR") == [home] and owned[owned.index("--owner") + 1] == user
    assert environment()["HERON_CACHE_DIR"] in {f"{home}/{folder}" for folder in owned} and "runs" in owned
    assert environment()["HERON_CACHE_DIR"] in PAGE and f"{home}/runs" in PAGE


@pytest.mark.parametrize("words", [json.loads(text) for text in arguments("CMD")], ids=" ".join)
def test_the_default_command_is_one(words: list[str]):
    parse(words)


@pytest.mark.parametrize("words", DOCUMENTED, ids=" ".join)
def test_a_documented_container_runs_what_exists_and_is_reached_from_this_machine_only(words: list[str]):
    image = words.index("heron_env")
    if command := words[image + 1 :]:
        parse(command)
    ports = [words[at + 1] for at in range(image) if words[at] == "-p"]
    assert all(re.fullmatch(r"127\.0\.0\.1:(\d+):\1", port) for port in ports)
    if "serve" in command:
        assert command[command.index("--port") + 1] == ports[0].split(":")[-1] == arguments("EXPOSE")[0]
        assert command[command.index("--token-env") + 1] == words[words.index("-e") + 1]


def test_several_containers_are_documented():
    assert [" ".join(words[words.index("heron_env") + 1 :][:2]) for words in DOCUMENTED] == [
        "", "heron demo", "heron serve",
    ]  # fmt: skip


COMPOSE = yaml.safe_load((ROOT / "examples" / "compose.yaml").read_text(encoding="utf-8"))


def test_containers_of_the_compose_file_agree_with_the_image_and_with_each_other():
    services = COMPOSE["services"]
    ours = {name: service for name, service in services.items() if name != "broker"}
    (home,) = arguments("WORKDIR")
    for service in ours.values():
        assert service["image"] == "heron_env" and service["environment"]["HERON_SECRET_FILE"] == "/run/secrets/plant"
        assert service["secrets"] == [*COMPOSE["secrets"]] == ["plant"]
        assert f"./runs/first:{home}/first:ro" in service["volumes"]
        parse(shlex.split(service["command"]))
    hub = shlex.split(ours["hub"]["command"])
    agents = {shlex.split(service["command"])[3] for name, service in ours.items() if name != "hub"}
    assert agents == {"battery_1", "battery_2"} == set(ours) - {"hub"}
    (subnet,) = COMPOSE["networks"]["plant"]["ipam"]["config"]
    assert hub[hub.index("--allow") + 1] == subnet["subnet"] and hub[hub.index("--network") + 1] == "mqtt://broker:1883"
    assert not any("ports" in service for service in services.values())


def test_the_dev_container_names_things_that_exist():
    folder = ROOT / ".devcontainer"
    settings = json.loads((folder / "devcontainer.json").read_text(encoding="utf-8"))
    build = settings["build"]
    assert (folder / build["dockerfile"]).resolve() == ROOT / "Dockerfile" and (
        folder / build["context"]
    ).resolve() == ROOT
    assert f" AS {build['target']}\n" in DOCKERFILE and f"\nUSER {settings['remoteUser']}\n" in DOCKERFILE
    assert [str(port) for port in settings["forwardPorts"]] == arguments("EXPOSE")
    program, target = settings["postCreateCommand"].split()
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert program == "make" and f"\n{target}:" in makefile and "\nVENV := .venv\n" in makefile
    interpreter = settings["customizations"]["vscode"]["settings"]["python.defaultInterpreterPath"]
    assert interpreter == "${containerWorkspaceFolder}/.venv/bin/python"


def test_the_wheel_has_the_package_alone():
    assert PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"] == {"packages": ["heron_env"]}
