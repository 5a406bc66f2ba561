"""Which Pythons and which versions of the dependencies work: a part of the tests, in a fresh environment for each.

    python tools/version_matrix.py                           # all cells
    python tools/version_matrix.py 3.11:lowest 3.13:newest   # some of them
    python tools/version_matrix.py --write [CELL ...]        # keep docs/versions.json, docs/versions.md

A cell is a Python and the lowest versions that pyproject.toml admits, or the newest there are. torch is the one of
constraints.txt, since others bring builds of several GB, and is tested with
Python 3.11 alone. Needs pip and a registry. WORKERS (2) processes run the tests.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parent.parent
RESULTS: Final = ROOT / "docs" / "versions.json"
PAGE: Final = ROOT / "docs" / "versions.md"
PYTHONS: Final = ("3.11", "3.12", "3.13")
CHOICES: Final = ("lowest", "newest")
WITH_TORCH: Final = ("3.11",)
PARTS: Final = ("core", "observability", "scheduling", "agents", "adapters", "net", "injection", "worlds")
TESTS: Final = tuple(f"tests/{name}" for name in PARTS)
NEEDS_TORCH: Final = re.compile(
    r"^(import|from) (torch|stable_baselines3|sb3_contrib)\b|^from heron_env\.adapters import .*\bHeronVecEnv\b",
    re.MULTILINE,
)
"""A file of tests with such a line can't be collected without torch."""
OF_ONE_VERSION: Final = "tests/injection/test_contract.py::test_the_published_schema_is_that_of_the_models"
"""Pydantic's versions write the same schema in other words."""
QUICK: Final = "not draw and not e2e and not far"
TOOLS: Final = ("pytest", "pytest-xdist", "hypothesis")
SHOWN: Final = (
    "numpy", "numba", "scipy", "gymnasium", "pettingzoo", "pydantic", "matplotlib", "stable-baselines3", "torch",
)  # fmt: skip


def interpreter(version: str) -> str | None:
    """One of this Python that answers: a name on the PATH may be a shim that runs nothing."""
    folder = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    for candidate in (f"python{version}", *sorted(map(str, folder.glob(f"{version}.*/bin/python{version}")))):
        asked = [candidate, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"]
        try:
            answer = subprocess.run(asked, capture_output=True, text=True, check=False)
        except OSError:
            continue
        if answer.stdout.strip() == version:
            return candidate
    return None


def run(command: Sequence[object], **options: Any) -> str:
    """What a command prints; its errors go to the terminal. Ends the program where it fails."""
    done: subprocess.CompletedProcess[str] = subprocess.run(
        [*map(str, command)], check=False, stdout=subprocess.PIPE, text=True, **options
    )
    if done.returncode:
        sys.exit(f"{done.stdout[-5000:]}\nfailed: {' '.join(map(str, command))}")
    return done.stdout


def lowest(python: Path, extras: Sequence[str], pin: str, folder: Path) -> Path:
    """The lowest versions that this Python has a wheel for, as a file of requirements."""
    run([python, "-m", "pip", "install", "--quiet", "uv"])
    (folder / "override.txt").write_text(pin)
    file = folder / "lowest.txt"
    wanted = [part for extra in extras for part in ("--extra", extra)]
    run([python, "-m", "uv", "pip", "compile", "--quiet", "--no-deps", "--resolution", "lowest-direct", *wanted,
         "--only-binary", ":all:", "--python", python, "--override", folder / "override.txt", ROOT / "pyproject.toml",
         "--output-file", file])  # fmt: skip
    return file


def cell(version: str, choice: str) -> dict[str, Any] | None:
    """Versions and the tests' last line of one cell; None where no such Python answers."""
    base = interpreter(version)
    if base is None:
        print(f"SKIPPED: no python{version} answers; nothing was tested with it")
        return None
    extras = ["plots", "solvers", "agents", *(["train"] if version in WITH_TORCH else [])]
    pin = re.findall(r"^torch==.*$", (ROOT / "constraints.txt").read_text(), re.MULTILINE)[0]
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        run([base, "-m", "venv", folder / "venv"])
        python = folder / "venv" / "bin" / "python"
        (folder / "pin.txt").write_text(pin)
        pip = [python, "-m", "pip", "install", "--quiet"]
        if choice == "lowest":
            run([*pip, "--requirement", lowest(python, extras, pin, folder), *TOOLS])
        else:
            run([*pip, "--constraint", folder / "pin.txt", f"{ROOT}[{','.join(extras)}]", *TOOLS])
            run([python, "-m", "pip", "uninstall", "--quiet", "--yes", "heron_env"])  # the checkout is tested
        files = [file for part in TESTS for file in sorted((ROOT / part).rglob("test_*.py"))]
        left = [
            f"--ignore={file}" for file in files if version not in WITH_TORCH and NEEDS_TORCH.search(file.read_text())
        ]
        # Old releases warn of each other: warnings are no errors here.
        tests = run(
            [python, "-m", "pytest", "-q", "-n", os.environ.get("WORKERS", "2"), "--dist", "worksteal",
             "-m", QUICK, "-W", "ignore", "-p", "no:cacheprovider", "--deselect", OF_ONE_VERSION, *TESTS, *left],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT), "HERON_CACHE_DIR": str(folder / "compiled")},
        )  # fmt: skip
        installed = json.loads(run([python, "-m", "pip", "list", "--format", "json", "--disable-pip-version-check"]))
        full = run([python, "-c", "import platform; print(platform.python_version())"]).strip()
    told = tests.strip().splitlines()[-1].strip("= ")
    known = {each["name"].lower().replace("_", "-"): each["version"] for each in installed}
    print(f"{full} {choice}: {told}; {time.monotonic() - started:.0f} s", flush=True)
    passed = re.search(r"(\d+) passed", told)
    assert passed, told
    return {"python": full, "passed": int(passed[1]), "versions": {n: known[n] for n in SHOWN if n in known}}


def page(results: dict[str, Any]) -> str:
    """docs/versions.md with the table of these results."""
    names = list(results)
    lines = [f"| | {' | '.join(name.replace(':', ', ') for name in names)} |", f"|---|{'---|' * len(names)}"]
    lines += [f"| Python | {' | '.join(found['python'] for found in results.values())} |"]
    lines += [
        f"| {package} | {' | '.join(found['versions'].get(package, '-') for found in results.values())} |"
        for package in SHOWN
    ]
    passed = [f"{found['passed']:,}" for found in results.values()]
    lines += [f"| tests that passed | {' | '.join(passed)} |"]
    before, _, rest = PAGE.read_text(encoding="utf-8").partition("<!-- table -->")
    return "\n".join([f"{before}<!-- table -->\n", *lines, f"\n<!-- end -->{rest.partition('<!-- end -->')[2]}"])


def main() -> int:
    """Run the cells that are asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    every = [f"{version}:{choice}" for version in PYTHONS for choice in CHOICES]
    parser.add_argument("cells", nargs="*", metavar="PYTHON:CHOICE", help=f"of {', '.join(every)}")
    parser.add_argument("--write", action="store_true", help="keep what was found")
    asked = parser.parse_args()
    unknown = set(asked.cells) - set(every)
    if unknown:
        parser.error(f"unknown: {', '.join(sorted(unknown))}; choose of {', '.join(every)}")
    for name in asked.cells or every:
        found = cell(*name.split(":"))
        if asked.write and found is not None:
            known = {**(json.loads(RESULTS.read_text()) if RESULTS.is_file() else {}), name: found}
            RESULTS.write_text(json.dumps({name: known[name] for name in every if name in known}, indent=1) + "\n")
            PAGE.write_text(page(json.loads(RESULTS.read_text())), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
