"""What a stranger meets first: the import is cheap, the version known, every public name there and explained."""

import importlib
import inspect
import json
import re
import subprocess
import sys
import tomllib
import types
from functools import cache
from importlib.metadata import version
from pathlib import Path

import pytest
import yaml

import heron_env
from heron_env.errors import RemovedName
from heron_env.lazily import lazily

PACKAGE = Path(heron_env.__file__).parent
HEAVY = {"torch", "stable_baselines3", "ray", "torchrl", "matplotlib", "plotly", "pandas", "httpx", "fastapi"}
HEAVY |= {"numba", "scipy", "demandlib", "pvlib", "jax"}
USER_PROGRAM = "Continuous CoordinatorAgent FeatureProvider FieldAgent HeronEnv ScheduleConfig SystemAgent Vector"
USER_PROGRAM += " VectorDecomposition World quantity register rule"


@cache
def child(statement: str) -> tuple[float, frozenset[str]]:
    """CPU-seconds (user + system, interpreter start included) and top-level modules of a process that runs this."""
    report = "import json, sys, time; print(json.dumps([time.process_time(), [*sys.modules]]))"
    done = subprocess.run(
        [sys.executable, "-c", f"{statement}\n{report}"],
        cwd=PACKAGE.parent,
        capture_output=True,
        text=True,
        check=True,
    )
    seconds, modules = json.loads(done.stdout)
    return seconds, frozenset(name.partition(".")[0] for name in modules)


def test_importing_the_package_takes_less_than_0_6_cpu_seconds():
    child.cache_clear()
    seconds = min(child(f"import heron_env  # run {run}")[0] for run in range(3))
    assert seconds < 0.6


@pytest.mark.parametrize(
    "statement",
    [
        "import heron_env",
        f"from heron_env import {', '.join(USER_PROGRAM.split())}",
        "import heron_env.cli",
        "from heron_env import registry; registry.registered()",
    ],
)
def test_defining_an_environment_loads_no_heavy_third_party(statement: str):
    assert not child(statement)[1] & HEAVY


def test_the_version_is_the_installed_one():
    assert heron_env.__version__ == version("heron_env")


def test_it_is_cited_by_the_version_that_it_is():
    cited = yaml.safe_load((PACKAGE.parent / "CITATION.cff").read_text(encoding="utf-8"))
    assert cited["version"] == heron_env.__version__ and cited["license"] == "MIT"
    described = json.loads((PACKAGE.parent / "codemeta.json").read_text(encoding="utf-8"))
    assert described["version"] == heron_env.__version__ and described["license"].endswith("/MIT")


def test_the_workflow_runs_every_part_of_ci():
    root = PACKAGE.parent
    jobs = yaml.safe_load((root / ".github/workflows/ci.yml").read_text(encoding="utf-8"))["jobs"]
    runs = [step["run"] for job in jobs.values() for step in job["steps"] if "run" in step]
    assert len(runs) == len(jobs) and all(run.startswith("bash .ci/run ") for run in runs)
    named = [parts for job in jobs.values() for parts in job.get("strategy", {}).get("matrix", {}).get("parts", ())]
    called = {name for words in (*runs, *named) for name in re.findall(r"(?<![\w.$/-])[a-z][\w-]*(?= |$)", words)}
    parts = re.findall(r"^part_([\w-]+)\(\)", (root / ".ci/run").read_text(encoding="utf-8"), re.MULTILINE)
    assert len(parts) > 5 and called - {"bash"} == set(parts)


def test_what_parts_with_other_libraries_meet_is_there():
    """A folder that has moved would look as if nothing in it changed."""
    script = (PACKAGE.parent / ".ci/run").read_text(encoding="utf-8")
    (table,) = re.findall(r"^face=.*?^\)$", script, re.DOTALL | re.MULTILINE)
    paths = re.findall(r"[\w.]*/[\w./]+", table)
    assert len(paths) > 10 and [path for path in paths if not (PACKAGE.parent / path).exists()] == []


DOORS = (
    "train", "plots", "video", "agents", "solvers", "data", "real", "mqtt", "onnx", "jax", "ray", "all", "notebooks",
    "docs", "dev",
)  # fmt: skip


def test_extras_are_few():
    text = (PACKAGE.parent / "pyproject.toml").read_text(encoding="utf-8")
    extras = tomllib.loads(text)["project"]["optional-dependencies"]
    assert sorted(extras) == sorted(DOORS)


def test_every_extra_that_a_text_names_is_one_of_todays():
    root = PACKAGE.parent
    files = [*PACKAGE.rglob("*.py"), *root.glob("docs/**/*.md"), *root.glob("training/**/*.py"), root / "README.md"]
    files += [*root.glob("examples/**/*.py"), *root.glob("notebooks/*.py"), *root.glob("benchmarks/*.py")]
    named = {extra for path in files for extra in named_extras(path.read_text(encoding="utf-8"))}
    assert named and named <= set(DOORS)


def named_extras(text: str) -> set[str]:
    """Extras in `heron_env[a,b]`, `.[a]` and "extra `a`"."""
    listed = re.findall(r"(?:heron_env|'\.)\[([a-z,]+)\]", text) + re.findall(r"\bextra `(\w+)`", text)
    return {extra for each in listed for extra in each.split(",")}


@pytest.mark.parametrize("page", ["SECURITY.md", "CONTRIBUTING.md"])
def test_its_pages_lead_somewhere(page):
    text = (PACKAGE.parent / page).read_text(encoding="utf-8")
    assert all((PACKAGE.parent / link).exists() for link in re.findall(r"\]\((?!https?:)([^)#]+)", text))


def test_an_unknown_name_is_an_attribute_error_that_names_it():
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = heron_env.no_such_name


def test_public_names_are_listed_once_and_shown_by_dir():
    assert len(set(heron_env.__all__)) == len(heron_env.__all__)
    assert set(heron_env.__all__) <= set(dir(heron_env))
    assert set(USER_PROGRAM.split()) | {"make", "load_policy", "__version__"} <= set(heron_env.__all__)


def test_every_public_name_resolves_and_is_explained():
    things = {name: getattr(heron_env, name) for name in heron_env.__all__}
    explained = {name for name, thing in things.items() if inspect.isclass(thing) or inspect.isroutine(thing)}
    assert [name for name in explained if not (things[name].__doc__ or "").strip()] == []


PROMISED = Path(__file__).parent / "golden" / "public_names.json"


def in_package(package: str) -> list[str]:
    module = importlib.import_module(package)
    errors = [name for name, thing in vars(module).items() if isinstance(thing, type) and issubclass(thing, Exception)]
    return sorted(getattr(module, "__all__", errors))


@pytest.mark.parametrize("package", json.loads(PROMISED.read_text()))
def test_a_name_that_was_public_is_there_or_says_what_takes_its_place(package: str):
    """A name that is taken away gets an entry in its package's `lazily(..., gone=...)`; a new one, one in the file."""
    module, promised = importlib.import_module(package), json.loads(PROMISED.read_text())[package]
    assert set(in_package(package)) <= set(promised), f"new names; write them into {PROMISED.name}"
    for name in promised:
        try:
            getattr(module, name)
        except RemovedName as gone:
            assert name in str(gone)
        except ModuleNotFoundError as missing:  # an adapter's framework, which not everybody has
            assert missing.name in ("benchmarl", "tensordict", "torchrl", "ray", "minari")


def test_a_removed_name_says_what_takes_its_place_however_it_is_asked_for(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    module = types.ModuleType("moved_package")
    (tmp_path / "__init__.pyi").write_text("from heron_env.errors import HeronError as NewName\n")
    file, gone = str(tmp_path / "__init__.py"), {"OldName": "write NewName"}
    module.__getattr__, module.__dir__, module.__all__ = lazily("moved_package", file, gone)
    monkeypatch.setitem(sys.modules, "moved_package", module)
    for asked in ("from moved_package import OldName", "import moved_package; moved_package.OldName"):
        with pytest.raises(RemovedName, match=r"^moved_package\.OldName is gone since an earlier 0.x: write NewName$"):
            exec(asked)
    with pytest.raises(ImportError, match="cannot import name 'NoName'"):
        exec("from moved_package import NoName")


def test_the_package_says_that_it_is_typed():
    assert (PACKAGE / "py.typed").is_file()
