"""The programs shown to users run as printed: ```python and ```py blocks of README and pages, the design's program."""

import importlib.util
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

pytestmark = pytest.mark.e2e

ROOT = Path(__file__).resolve().parent.parent
PROGRAM = ROOT / "tests" / "golden" / "user_program.py"
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(page for page in DOCS.rglob("*.md") if DOCS / "_build" not in page.parents)]


def blocks(page: Path) -> list[str]:
    """The ```python blocks of a page; README's first block is ```py: its program is one ```python block."""
    return re.findall(r"^```py(?:thon)?\n(.*?)^```", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


PROGRAMS = [page for page in PAGES if blocks(page)]


FORKS = """
import os, runpy, sys
import numba, numpy, heron_env  # once for all
for line in sys.stdin:
    folder, compiled = line.split()
    if child := os.fork():
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
        continue
    os.chdir(folder)
    os.environ["HERON_COMPILE"] = compiled
    for number, name in ((1, "out"), (2, "err")):
        os.dup2(os.open(name, os.O_WRONLY | os.O_CREAT, 0o600), number)
    runpy.run_path(folder + "/program.py", run_name="__main__")
    break
"""
Run = Callable[[str, Path], str]
"""What a program prints, run in a fresh process in an empty folder; warnings are errors."""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    command = [sys.executable, "-W", "error", "-c", FORKS]
    forks = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=tmp_path_factory.mktemp("empty")
    )

    def ran(source: str, folder: Path) -> str:
        (folder / "program.py").write_text(source, encoding="utf-8")
        compiled = int('clock="event"' in source)  # as it is unless somebody says otherwise; most run as well without
        forks.stdin.write(f"{folder} {compiled}\n")
        forks.stdin.flush()
        assert forks.stdout.readline() == "0\n", (folder / "err").read_text("utf-8")
        return (folder / "out").read_text("utf-8")

    yield ran
    forks.communicate(timeout=60)


def test_the_user_program_prints_returns_and_staleness(tmp_path: Path, run: Run):
    printed = run(PROGRAM.read_text(encoding="utf-8"), tmp_path)
    returns, p95 = printed.rstrip().rsplit(" ", 1)
    assert list(eval(returns)) == [
        "system_agent",
        "zone_0",
        "battery_1",
        "battery_2",
        "zone_1",
        "battery_3",
        "battery_4",
    ]
    assert 4.0 < float(p95) < 70.0, "two legs of 2 s are the least, one minute and a lost report the most"


@pytest.mark.parametrize("page", PROGRAMS, ids=lambda page: str(page.relative_to(ROOT).with_suffix("")))
def test_the_blocks_of_a_page_run_one_after_another(page: Path, tmp_path: Path, run: Run):
    program = "\n\n".join(blocks(page))
    for module in re.findall(r"^(?:import|from) (\w+)", program, re.MULTILINE):
        if importlib.util.find_spec(module) is None:  # docs/use_with: libraries that not everybody has
            pytest.skip(f"{page.name} needs {module}")
    printed = run(program, tmp_path)
    for told in re.findall(r"^print\(.*\)  # (.*)$", program, re.MULTILINE):
        assert told in printed, printed


def test_the_first_command_of_the_readme_gives_the_answer_that_stands_below_it(tmp_path: Path):
    text = PAGES[0].read_text(encoding="utf-8")
    (console,) = re.findall(r"^```console\n\$ heron (.*?)^```", text, re.DOTALL | re.MULTILINE)
    words, answer = re.split(r"(?<!\\)\n", console, maxsplit=1)
    (controller,) = re.findall(r"^def act.*?(?=^```)", text, re.DOTALL | re.MULTILINE)
    (tmp_path / "policy.py").write_text(controller, encoding="utf-8")
    command = [sys.executable, "-m", "heron_env", *words.replace("\\\n", " ").split()]
    here = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=tmp_path, env=here, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.split()) == (0, answer.split()), done.stderr


def test_the_user_program_type_checks_strictly(tmp_path: Path):
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file", "pyproject.toml", str(PROGRAM)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


SHORTER = {
    "python -m benchmarks": ["--quick", "--only", "spread-3", "--rounds", "1"],
    "heron train": ["--time-limit", "3"],
    "heron sweep": ["--cases", "1"],
    "heron report": [],
}
NAMES = "|".join(map(re.escape, SHORTER))
TOLD = "".join((DOCS / page).read_text(encoding="utf-8") for page in ("science/speed.md", "how_to/training.md"))
COMMANDS = re.findall(rf"^({NAMES}) ([^#\n]*)", TOLD, re.MULTILINE)


def test_the_commands_of_the_pages_run_one_after_another(tmp_path: Path):
    assert [*dict.fromkeys(name for name, _ in COMMANDS)] == list(SHORTER)
    here = {**os.environ, "PYTHONPATH": str(ROOT), "HERON_COMPILE": "1"}  # as for users; benchmarks run from a clone
    for name, rest in COMMANDS:
        first, verb = name.split()[0], name.split()[-1]
        module = ["benchmarks"] if first == "python" else ["heron_env", verb]
        command = [sys.executable, "-m", *module, *rest.split(), *SHORTER[name]]
        done = subprocess.run(command, cwd=tmp_path, env=here, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
    assert (tmp_path / "runs" / "mine" / "config.json").is_file()


def test_an_environment_of_ones_own_goes_from_training_to_its_report(tmp_path: Path):
    page = DOCS / "how_to" / "own_environment.md"
    (tmp_path / "storage.py").write_text(blocks(page)[0].partition("\nenv = storage(")[0], encoding="utf-8")
    (told,) = re.findall(r"^```sh\n(export .*?)^```", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    exported, *commands = told.splitlines()
    variable, value = exported.split()[1].split("=")
    here = {**os.environ, "PYTHONPATH": str(ROOT), "HERON_COMPILE": "1", variable: value}
    for line in commands:
        name, verb, *rest = line.split()
        assert name == "heron"
        short = ["--time-limit", "3"] if verb == "train" else ["--cases", "1"] if verb == "sweep" else []
        command = [sys.executable, "-m", "heron_env", verb, *rest, *short]
        done = subprocess.run(command, cwd=tmp_path, env=here, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{line}: {done.stderr}"
    assert list(tmp_path.glob("runs/*/report.html"))

    refused = [sys.executable, "-m", "heron_env", "sweep", "runs/storage"]
    nobody = {**here, variable: ""}
    done = subprocess.run(refused, cwd=tmp_path, env=nobody, capture_output=True, text=True, check=False)
    assert done.returncode == 2 and "say --trust storage:storage" in done.stderr
