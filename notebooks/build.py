"""Execute the notebooks: `python notebooks/build.py [--check] [NAME ...]`, from any folder.

The sources are the .py files (jupytext's percent format); beside each lies the .ipynb with its outputs, which this
writes. With `--check` nothing is written: every notebook must run, within its time, and must have been built from the
source as it is. A notebook that takes longer runs once more: what it compiled is stored then. Pictures are kept in 32
colours, and a notebook in 150 kB.
"""

import argparse
import base64
import io
import os
import resource
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import jupytext
import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError
from PIL import Image

HERE = Path(__file__).resolve().parent
MOST_SECONDS, MOST_BYTES, COLOURS = 60, 150_000, 32


def execute(source: Path) -> nbformat.NotebookNode:
    """Run one notebook in a kernel of its own. Raises what its cells raise."""
    notebook = jupytext.read(source)
    notebook.metadata = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
    for number, cell in enumerate(notebook.cells):
        cell.metadata, cell.id = {}, f"cell-{number}"
    os.environ["TERM"] = "dumb"  # a bar in motion is nothing to keep
    client = NotebookClient(
        notebook, timeout=10 * MOST_SECONDS, record_timing=False, resources={"metadata": {"path": HERE}}
    )
    with TemporaryDirectory() as sockets:  # kernels that begin at once draw the same port now and then
        kernel = client.create_kernel_manager()
        kernel.transport, kernel.ip = "ipc", f"{sockets}/kernel"
        return client.execute()


def shrink(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """The same with pictures of few colours, which are far apart: thin lines keep theirs."""
    for data in (output.data for cell in notebook.cells for output in cell.get("outputs", ()) if "data" in output):
        if "image/png" in data:
            picture = Image.open(io.BytesIO(base64.b64decode(data["image/png"]))).convert("RGB")
            small = io.BytesIO()
            picture.quantize(COLOURS, method=Image.Quantize.MAXCOVERAGE).save(small, "PNG", optimize=True)
            data["image/png"] = base64.b64encode(small.getvalue()).decode()
    return notebook


def sources_of(notebook: nbformat.NotebookNode) -> list[tuple[str, str]]:
    """Kind and text of each cell."""
    return [(cell.cell_type, cell.source) for cell in notebook.cells]


def processors() -> float:
    """Seconds that kernels which have ended took: whatever else the machine does, it is the same."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def build(source: Path, check: bool) -> str | None:
    """Execute one notebook and write it, or check it; what is wrong, if anything."""
    target = source.with_suffix(".ipynb")
    for _ in range(2):  # the first run may have compiled
        began = processors()
        try:
            notebook = execute(source)
        except (CellExecutionError, CellTimeoutError) as error:
            return f"{source.name}: {error}"
        seconds = processors() - began
        print(f"{source.name}: {seconds:.0f} s of processors", flush=True)
        if seconds <= MOST_SECONDS:
            break
    if seconds > MOST_SECONDS:
        return f"{source.name}: took {seconds:.0f} s of processors; a notebook has {MOST_SECONDS} s"
    text = nbformat.writes(shrink(notebook)) + "\n"
    if len(text.encode()) > MOST_BYTES:
        return f"{target.name} would have {len(text.encode()):,} bytes; a notebook has {MOST_BYTES:,}: smaller pictures"
    if not check:
        target.write_text(text, encoding="utf-8")
    elif not target.is_file() or sources_of(nbformat.read(target, 4)) != sources_of(notebook):
        return f"{target.name} was not built from {source.name} as it is: run python notebooks/build.py {source.stem}"
    return None


def main() -> int:
    """Build or check the notebooks that are named, or all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="stems, such as 05_split_the_loss; none: all")
    parser.add_argument("--check", action="store_true")
    given = parser.parse_args()
    sources = [HERE / f"{name}.py" for name in given.names] or sorted(HERE.glob("[0-9]*.py"))
    with TemporaryDirectory() as folder:  # nobody's own settings change what a notebook shows
        os.environ.update(IPYTHONDIR=folder, JUPYTER_CONFIG_DIR=folder, JUPYTER_RUNTIME_DIR=folder)
        wrong = [problem for source in sources if (problem := build(source, given.check)) is not None]
    print("\n".join(wrong), file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
