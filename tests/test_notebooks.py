"""The notebooks as committed: built from their sources, whole, with outputs, and about nobody's machine.

CI executes them (`notebooks/build.py --check`).
"""

import json
import re
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).resolve().parent.parent / "notebooks"
SOURCES = sorted(FOLDER.glob("[0-9]*.py"))


def cells(source: Path) -> list[dict[str, Any]]:
    built: list[dict[str, Any]] = json.loads(source.with_suffix(".ipynb").read_text(encoding="utf-8"))["cells"]
    return built


def test_there_are_those_of_the_page():
    assert [source.stem for source in SOURCES] == [
        "01_network_around_cartpole", "02_your_own_world", "03_who_sees_what", "04_train_under_a_network",
        "05_split_the_loss",
    ]  # fmt: skip


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.stem)
def test_a_notebook_has_a_goal_a_prediction_before_a_cell_an_explanation_and_an_exercise(source: Path):
    parts = re.split(r"^# %%(?: \[markdown\])?\n", source.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    text = [part for part in parts if part.startswith("# ")]
    assert "**Goal.**" in text[0] and "# ## Exercise\n" in text[-1]
    asked = [part.partition("# ## Prediction\n")[2] for part in text if "# ## Prediction\n" in part]
    assert asked and all("?**" in part for part in asked)
    assert any("**Explanation.**" in part for part in text)


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.stem)
def test_a_notebook_holds_its_source_cell_by_cell(source: Path):
    parts = re.split(r"^# %%( \[markdown\])?\n", source.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    written = []
    for is_text, text in zip(parts[::2], parts[1::2], strict=True):
        lines = text.strip("\n").split("\n")
        marked = is_text or any(re.match(r"# ?[%!]", line) for line in lines)
        bare = [re.sub(r"^# ?(?=[%!])" if not is_text else r"^# ?", "", line) for line in lines] if marked else lines
        written.append(("markdown" if is_text else "code", "\n".join(bare)))
    kept = [(cell["cell_type"], "".join(cell["source"])) for cell in cells(source)]
    assert kept == written, "run: make notebooks"


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.stem)
def test_a_notebook_was_run_to_its_end_without_an_error(source: Path):
    code = [cell for cell in cells(source) if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in code] == list(range(1, len(code) + 1))
    outputs = [output for cell in code for output in cell["outputs"]]
    assert outputs
    assert not [output for output in outputs if output["output_type"] == "error" or output.get("name") == "stderr"]


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.stem)
def test_a_notebook_tells_nothing_of_the_machine_it_ran_on(source: Path):
    text = source.with_suffix(".ipynb").read_text(encoding="utf-8")
    assert not re.search(r"/(home|root|work|tmp|Users)/|site-packages|execute_input", text)
    assert source.with_suffix(".ipynb").stat().st_size <= 150_000
