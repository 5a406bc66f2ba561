"""The recipes are short, say what they need, are shown on a page; those that need no more than we have here run."""

import importlib.util
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parent.parent
PAGES = {page: page.read_text(encoding="utf-8") for page in sorted((ROOT / "docs" / "use_with").glob("*.md"))}


def loaded() -> ModuleType:
    """The script that runs them."""
    spec = importlib.util.spec_from_file_location("run_recipes", ROOT / "tools" / "run_recipes.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


runner = loaded()
RECIPES = runner.recipes()
LIGHT = {"heron_env", "heron_env[train]"}
"""What the extra `dev` has."""
QUICK = {"pettingzoo_aec"}
HERE = [
    pytest.param(path, marks=[] if path.stem in QUICK else pytest.mark.e2e, id=path.stem)
    for path in RECIPES
    if set(runner.needs(path)) <= LIGHT
]


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.stem)
def test_a_recipe_is_short_and_says_what_it_needs(path: Path):
    text = path.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 40
    assert re.match(r'"""\S.*?"""\n+# needs: heron_env', text, re.DOTALL), "a docstring, then what it needs"
    assert len(runner.needs(path)) == len(set(runner.needs(path))) > 0
    for said in ('print("versions:"', "result: "):
        assert said in text
    assert importlib.util.find_spec(path.stem) is None, "a script's folder comes first: its name hides that library"


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.stem)
def test_a_recipe_is_on_one_page_which_says_how_to_install_what_it_needs(path: Path):
    shown = [text for text in PAGES.values() if f"../../examples/recipes/{path.name}" in text]
    assert len(shown) == 1
    for requirement in runner.needs(path):
        assert re.search(rf"pip install [^\n]*{re.escape(requirement)}(?![\w\[])", shown[0]), requirement


@pytest.mark.parametrize("path", HERE)
def test_a_recipe_runs_and_what_it_learns_beats_chance(path: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    ran = runner.run(path, sys.executable, "-W", "error")
    assert ran.ok, ran.text
    assert re.search(r"heron_env==\S+ \w+==", ran.line("versions"))
    random, learned = re.search(r"random[^\d-]* (-?[\d.]+), [^\d-]* (-?[\d.]+)", ran.line("result")).groups()
    assert float(learned) > float(random)


ONE_FILE = ROOT / "examples" / "ppo_in_one_file.py"


@pytest.mark.e2e
@pytest.mark.parametrize("lanes", ["32", "0"])
def test_ppo_in_one_file_learns_on_one_environment_and_on_a_batch(lanes: str):
    assert len(ONE_FILE.read_text(encoding="utf-8").splitlines()) <= 200
    words = [sys.executable, "-W", "error", str(ONE_FILE), "--lanes", lanes, "--steps", "20000"]
    told = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    random, learned = re.search(r"result: random ([\d.]+), PPO ([\d.]+)", told).groups()
    assert float(learned) > 1.15 * float(random)


INCLUDED = [
    (page.name, file, options)
    for page, text in PAGES.items()
    for file, options in re.findall(r"^```{literalinclude} \.\./\.\./(\S+)\n((?::.*\n)*)```", text, re.MULTILINE)
]


@pytest.mark.parametrize(("page", "file", "options"), INCLUDED)
def test_the_lines_that_a_page_includes_are_in_the_program(page: str, file: str, options: str):
    lines = (ROOT / file).read_text(encoding="utf-8").splitlines()
    for mark in re.findall(r"^:(?:start|end)-(?:at|before): (.*)$", options, re.MULTILINE):
        assert sum(mark in line for line in lines) >= 1, mark
    starts, ends = (re.findall(rf"^:{end}-(?:at|before): (.*)$", options, re.MULTILINE) for end in ("start", "end"))
    first = next(n for n, line in enumerate(lines) if not starts or starts[0] in line)
    assert not ends or any(ends[0] in line for line in lines[first:]), "it ends behind where it starts"


@pytest.mark.e2e
def test_an_agent_that_is_split_in_two_learns_and_its_mask_acts():
    done = subprocess.run(
        [sys.executable, "-W", "error", str(ROOT / "examples" / "split_agent.py")],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout == "{'radio_1': 32}\n"


def test_the_table_tells_of_failures():
    rows = [runner.Ran("one", "versions: a==1\nresult: 3 of 4", 2.0, True), runner.Ran("two", "Traceback", 1.0, False)]
    assert runner.table(rows).splitlines()[2:] == [
        "| one | 2 | ok | a==1 | 3 of 4 |",
        "| two | 1 | FAILED | - | - |",
    ]


def test_a_recipe_that_ends_without_a_result_has_failed(tmp_path: Path):
    silent, broken, fine = (tmp_path / f"{name}.py" for name in ("silent", "broken", "fine"))
    silent.write_text("print('versions: a')", encoding="utf-8")
    broken.write_text("print('result: 1')\nraise SystemExit(3)", encoding="utf-8")
    fine.write_text("import pathlib\nprint('result:', list(pathlib.Path.home().iterdir()))", encoding="utf-8")
    assert [runner.run(path).ok for path in (silent, broken, fine)] == [False, False, True]
    assert runner.run(fine).line("result") == "[]", "a home of its own"


def test_heron_env_is_this_checkout_and_the_rest_comes_from_the_index(tmp_path: Path):
    assert runner.installable("heron_env[train]") == ["--editable", f"{ROOT}[train]"]
    assert runner.installable("heron_env") == ["--editable", str(ROOT)]
    assert runner.installable("minari[hdf5]==0.5.4") == ["minari[hdf5]==0.5.4"]
    twice = tmp_path / "twice.py"
    twice.write_text("# needs: a\n# needs: b\n", encoding="utf-8")
    with pytest.raises(SystemExit, match=r"twice.py: has 2 lines '# needs: REQUIREMENTS', expected one"):
        runner.needs(twice)
    with pytest.raises(SystemExit, match="no recipe begins with nothing; there are"):
        runner.recipes(["nothing"])
