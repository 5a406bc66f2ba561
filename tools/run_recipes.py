"""Run the recipes of docs/use_with, each in an environment of its own, made from its `# needs:` line.

    python tools/run_recipes.py                     # all of them: several minutes, some GB of downloads
    python tools/run_recipes.py rllib minari        # those whose names begin so
    python tools/run_recipes.py --envs FOLDER       # keep the environments, for the next time

Packages have the versions of constraints.txt where it names them, and heron_env is this checkout. Package indexes are
taken from pip's own settings. Nothing listens or asks beyond this machine while a recipe runs.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "examples" / "recipes"
NEEDS = re.compile(r"^# needs: (\S.*)$", re.MULTILINE)


class Ran(NamedTuple):
    """What came of one recipe: `text` is all that it printed, or why it never ran; `seconds` without the installing."""

    name: str
    text: str
    seconds: float
    ok: bool

    def line(self, what: str) -> str:
        """What follows `versions:` or `result:` in what it printed."""
        found = re.search(rf"^{what}: (.*)$", self.text, re.MULTILINE)
        return found.group(1) if found else "-"


def recipes(beginnings: Iterable[str] = ()) -> list[Path]:
    """Those whose names begin so; without any, all."""
    found = [path for path in sorted(FOLDER.glob("*.py")) if path.stem.startswith(tuple(beginnings) or "")]
    if not found:
        raise SystemExit(f"no recipe begins with {' or '.join(beginnings)}; there are {[p.stem for p in recipes()]}")
    return found


def needs(path: Path) -> list[str]:
    """The requirements of its one `# needs:` line."""
    lines = NEEDS.findall(path.read_text(encoding="utf-8"))
    if len(lines) != 1:
        raise SystemExit(f"{path.name}: has {len(lines)} lines '# needs: REQUIREMENTS', expected one")
    return str(lines[0]).split()


def installable(requirement: str) -> list[str]:
    """As pip takes it: heron_env, with its extras, is this checkout."""
    name, extras = re.fullmatch(r"([\w-]+)(.*)", requirement).groups()  # type: ignore[union-attr]
    return ["--editable", f"{ROOT}{extras}"] if name == "heron_env" else [requirement]


def installed(path: Path, envs: Path) -> tuple[Path, subprocess.CompletedProcess[str]]:
    """The interpreter of its environment, and what pip said."""
    folder = envs / path.stem
    python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    if not python.is_file():
        venv.create(folder, with_pip=True)
    wanted = [part for requirement in needs(path) for part in installable(requirement)]
    command = [str(python), "-m", "pip", "install", "--quiet", "--constraint", str(ROOT / "constraints.txt"), *wanted]
    return python, subprocess.run(command, capture_output=True, text=True, check=False)


def run(path: Path, python: Path | str = sys.executable, *options: str) -> Ran:
    """Run a recipe in an empty folder that is its home, too."""
    with tempfile.TemporaryDirectory() as home:
        environ = {name: value for name, value in os.environ.items() if name not in ("RAY_ADDRESS", "PYTHONPATH")}
        environ |= {"OMP_NUM_THREADS": "1", "RAY_USAGE_STATS_ENABLED": "0", "HERON_COMPILE": "1"}
        environ |= {"HOME": home, "PYTHONPATH": str(ROOT)}
        environ.setdefault("HERON_CACHE_DIR", str(Path(home) / "compiled"))
        began = time.monotonic()
        done = subprocess.run(
            [str(python), *options, str(path)], cwd=home, env=environ, capture_output=True, text=True, check=False
        )
        took = time.monotonic() - began
    ok = done.returncode == 0 and "\nresult: " in f"\n{done.stdout}"
    return Ran(path.stem, done.stdout if ok else f"{done.stdout}\n{done.stderr}", took, ok)


def table(rows: Iterable[Ran]) -> str:
    """Markdown: name, seconds, ok, versions, result."""
    told = [
        f"| {ran.name} | {ran.seconds:.0f} | {'ok' if ran.ok else 'FAILED'} | {ran.line('versions')} "
        f"| {ran.line('result')} |"
        for ran in rows
    ]
    return "\n".join(["| recipe | s | | versions | result |", "|---|---|---|---|---|", *told])


def main() -> None:
    """Ask for names, run, print the table; the exit code is 1 where one failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="beginnings of names; none: all recipes")
    parser.add_argument("--envs", type=Path, help="folder that keeps the environments")
    asked = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as scratch:
        for path in recipes(asked.names):
            python, pip = installed(path, asked.envs or Path(scratch))
            ran = run(path, python) if pip.returncode == 0 else Ran(path.stem, pip.stderr, 0.0, False)
            print(f"{ran.name}: {'ok' if ran.ok else 'FAILED'}, {ran.seconds:.0f} s", flush=True)
            if not ran.ok:
                print(ran.text[-4000:], file=sys.stderr)
            rows.append(ran)
    print(table(rows))
    sys.exit(not all(ran.ok for ran in rows))


if __name__ == "__main__":
    main()
