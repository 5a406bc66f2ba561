"""How large is the kernel, how tangled, how often is each law told? `python -m tests.house [--json] [PACKAGE]`.

Read off the source, but for the last two figures, which step environments. tests/test_architecture.py keeps a ratchet
on most of these figures. PACKAGE: the folder heron_env of another checkout (then nothing is run).
"""

from __future__ import annotations

import argparse
import ast
import io
import json
import re
import subprocess
import sys
import tokenize
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from functools import cache, cached_property
from pathlib import Path
from typing import Any

KERNEL = ("core", "observability", "agents", "scheduling", "engine", "envs", "testing", "adapters")
INNER = ("envs", "engine", "scheduling")
"""Rooms whose inner names tests should not bind."""
LONG = 40
"""Lines of a function, its docstring with it, beyond which it counts as long."""
GONE = ("plain_mechanics", "mechanics", "compiled_mechanics", "copies")
"""Modules that the redesign ends."""
PATTERNS = {
    "clip": re.compile(r"\bnp\.clip\(|\.clip\(|\bmin\(max\(|\bmax\(min\("),
    "whose turn": re.compile(r"% *(self\.)?tick\b|\bdef is_active\b|\bdef turn_of\b"),
    "keyed draw": re.compile(r"0xBF58_?476D_?1CE4_?E5B9", re.IGNORECASE),
    "booking": re.compile(r"\b_?(account\.)?(sent|delivered|dropped|lost)\b(\[[^]]*\])? \+= "),
}
"""What a place that tells a law looks like; a function counts once, and so does a module outside its functions."""
HOMES = {
    "legality": re.compile(r"def (parse|legal|require_legal|refused_action|check|nothing_allowed|_parser)\b"),
    "split": re.compile(r"\.split\((values|np\.arange)|\bWEIGHT, at\]"),
    "gather": re.compile(r"def _?(gather|observe|observed)\b"),
    "fates": re.compile(r"def (delay|lost|fates?|loss_at|base_delay|_is_lost)\b"),
    "exchange": re.compile(r"def _?(share|exchanged?|share_of|tell_neighbours|\w*neighbours)\b"),
}
"""Functions that tell a law, by their names."""


class House:
    """The package at `root`."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.texts = {path.relative_to(root).as_posix(): path.read_text("utf-8") for path in sorted(root.rglob("*.py"))}

    @cached_property
    def trees(self) -> dict[str, ast.Module]:
        """The syntax of each file."""
        return {file: parsed(text) for file, text in self.texts.items()}

    @cached_property
    def arrows(self) -> dict[str, set[str]]:
        """The files that each file imports anywhere: under TYPE_CHECKING and within functions, too."""
        return {file: {one for one in self._imported(file) if one != file} for file in self.texts}

    def _imported(self, file: str) -> Iterator[str]:
        parents = ("heron_env", *Path(file).parts[:-1])
        for level, source, name in imported_by(self.texts[file]):
            base = parents[: len(parents) + 1 - level] if level else ()
            module = ".".join((*base, *filter(None, (source,))))
            yield from self._file(f"{module}.{name}" if name else module) or self._file(module)

    def _file(self, module: str) -> list[str]:
        """The file of a module of ours; a package's face, which only hands names on, is none."""
        if not module.startswith("heron_env."):
            return []
        file = f"{module.removeprefix('heron_env.').replace('.', '/')}.py"
        return [file] if file in self.texts else []

    def circles(self) -> list[list[str]]:
        """Files that import each other in a loop, the largest circle first."""
        order: list[str] = []
        seen = set[str]()
        for start in self.texts:
            stack = [(start, iter(sorted(self.arrows[start])))] if start not in seen else []
            seen.add(start)
            while stack:
                file, below = stack[-1]
                if (new := next((one for one in below if one not in seen), None)) is None:
                    order.append(file)
                    stack.pop()
                else:
                    seen.add(new)
                    stack.append((new, iter(sorted(self.arrows[new]))))
        back = defaultdict(set)
        for file, targets in self.arrows.items():
            for target in targets:
                back[target].add(file)
        found, placed = [], set[str]()
        for start in reversed(order):
            if start in placed:
                continue
            members, new = {start}, {start}
            while new:
                new = {one for file in new for one in back[file]} - members - placed
                members |= new
            placed |= members
            found.append(sorted(members))
        return sorted((one for one in found if len(one) > 1), key=len, reverse=True)

    def lines(self, *rooms: str) -> tuple[int, int, int, int]:
        """Modules, lines, code lines (no blank line, comment or docstring) and docstring lines of rooms; none: all."""
        texts = [text for file, text in self.texts.items() if not rooms or file.split("/")[0] in rooms]
        documented = sum(len(documentation(text)) for text in texts)
        code = sum(len(code_lines(text) - documentation(text)) for text in texts)
        return len(texts), sum(text.count("\n") for text in texts), code, documented

    def outer(self) -> set[str]:
        """The rooms beside the kernel's, and the modules at the top."""
        return {file.split("/")[0] for file in self.texts} - {*KERNEL}

    def twice(self) -> list[str]:
        """File names that stand more than once under envs/."""
        stems = Counter(Path(file).stem for file in self.texts if file.startswith("envs/") and "__init__" not in file)
        return sorted(stem for stem, count in stems.items() if count > 1)

    def classes_twice(self) -> list[str]:
        """Names of classes that stand in more than one module."""
        names = Counter(
            name
            for tree in self.trees.values()
            for name in {node.name for node in tree.body if isinstance(node, ast.ClassDef)}
        )
        return sorted(name for name, count in names.items() if count > 1)

    def bases(self, name: str = "HeronEnv") -> int:
        """How many classes the environment inherits from directly."""
        classes = (node for node in ast.walk(self.trees["envs/base.py"]) if isinstance(node, ast.ClassDef))
        return next(len(node.bases) for node in classes if node.name == name)

    def long_functions(self, *rooms: str) -> list[str]:
        """Functions of more lines than `LONG`, docstrings not counted."""
        return [
            f"{file}:{name} ({length})"
            for file, text in self.texts.items()
            if not rooms or file.split("/")[0] in rooms
            for first, last, name in spans(text)
            if (length := len({*range(first, last + 1)} - documentation(text))) > LONG
        ]

    def tellings(self, law: re.Pattern[str]) -> list[str]:
        """The functions of the kernel (and modules, outside of functions) in which a law is told."""
        rooms = (*KERNEL, "seeding.py")
        return sorted(
            f"{file}:{name}" if name else file
            for file, text in self.texts.items()
            if file.split("/")[0] in rooms
            for name in told_in(text, law)
        )

    def private_reaches(self) -> list[str]:
        """Private names of another object that are read in the kernel: `env._late`, but not `self._late`."""
        kernel = (file for file in self.texts if file.split("/")[0] in KERNEL)
        return [f"{file}: {reach}" for file in kernel for reach in reaches(self.texts[file])]

    def only_raising(self) -> list[str]:
        """Public methods of the kernel that refuse to do what their class offers: all they do is to raise."""
        return [
            f"{file}:{name}"
            for file, text in self.texts.items()
            if file.split("/")[0] in KERNEL
            for name in raising(text)
        ]


@cache
def parsed(text: str) -> ast.Module:
    """Its syntax."""
    return ast.parse(text)


@cache
def imported_by(text: str) -> list[tuple[int, str | None, str]]:
    """Level, module and name of every import in it; `import a.b` has no name."""
    found = list[tuple[int, str | None, str]]()
    for node in ast.walk(parsed(text)):
        if isinstance(node, ast.Import):
            found += [(0, alias.name, "") for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            found += [(node.level, node.module, alias.name) for alias in node.names]
    return found


@cache
def told_in(text: str, law: re.Pattern[str]) -> set[str]:
    """The functions in it that tell a law; an empty name for a place outside of them."""
    if not law.search(text):
        return set()
    functions, found = spans(text), set[str]()
    for number, line in enumerate(text.splitlines(), start=1):
        if law.search(line.split("  # ")[0]):
            found.add(next((name for first, last, name in reversed(functions) if first <= number <= last), ""))
    return found


@cache
def reaches(text: str) -> list[str]:
    """Private names of other objects that are read in it."""
    nodes = (node for node in ast.walk(parsed(text)) if isinstance(node, ast.Attribute))
    private = (node for node in nodes if re.match(r"_[a-z]", node.attr))
    others = (n for n in private if not (isinstance(n.value, ast.Name) and n.value.id in ("self", "cls")))
    return [f"line {node.lineno}, {ast.unparse(node)[:40]}" for node in others]


@cache
def raising(text: str) -> list[str]:
    """The public methods in it that only raise, as Class.method."""
    return [
        f"{cls.name}.{method.name}"
        for cls in ast.walk(parsed(text))
        if isinstance(cls, ast.ClassDef)
        for method in cls.body
        if isinstance(method, ast.FunctionDef) and not method.name.startswith("_")
        if [type(node) for node in method.body if not isinstance(node, ast.Expr)] == [ast.Raise]
    ]


@cache
def spans(text: str) -> list[tuple[int, int, str]]:
    """First and last line and name of each function, outer ones first."""
    nodes = [node for node in ast.walk(parsed(text)) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    return sorted((node.lineno, node.end_lineno or 0, node.name) for node in nodes)


@cache
def documentation(text: str) -> set[int]:
    """The lines of docstrings: texts that stand alone as a statement."""
    texts = (n for n in ast.walk(parsed(text)) if isinstance(n, ast.Expr) and isinstance(n.value, ast.Constant))
    strings = (node for node in texts if isinstance(node.value.value, str))  # type: ignore[attr-defined]
    return {line for node in strings for line in range(node.lineno, (node.end_lineno or 0) + 1)}


@cache
def code_lines(text: str) -> set[int]:
    """The lines with anything but blanks and comments."""
    nothing = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER)
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return {line for token in tokens if token.type not in nothing for line in range(token.start[0], token.end[0] + 1)}


def bound_by_tests(tests: Path) -> dict[str, set[str]]:
    """The names `module.name` that each file of tests imports from a module below a room: `heron_env.core.action`."""
    files = defaultdict[str, set[str]](set)
    for path in sorted(tests.rglob("*.py")):
        for level, source, name in imported_by(path.read_text("utf-8")):
            module = (source or "").split(".")
            if not level and module[0] == "heron_env" and (len(module) > 2 or {*module[1:]} & {*INNER}):
                files[path.relative_to(tests).as_posix()].add(f"{source}.{name}")
    return files


def of_tests(tests: Path) -> Iterator[tuple[str, str]]:
    """What tests weigh and bind."""
    bound = bound_by_tests(tests)
    inner = {file: kept for file, names in bound.items() if (kept := {n for n in names if n.split(".")[1] in INNER})}
    names = set[str]().union(*inner.values())
    yield f"tests bound to inner names of {', '.join(INNER)}: files / names", f"{len(inner)} / {len(names)}"
    lines = sum(path.read_text("utf-8").count("\n") for path in tests.rglob("*.py"))
    yield "tests: lines / files that import from below a room", f"{lines:,} / {len(bound)}"
    tracked = subprocess.run(["git", "ls-files", "-z"], cwd=tests.parent, capture_output=True, text=True, check=True)
    files = (tests.parent / name for name in tracked.stdout.split("\0") if name)
    yield "tracked bytes", f"{sum(file.stat().st_size for file in files if file.is_file()):,}"


IMPORTED = """
import sys
import heron_env.envs.base
print(sum(name.startswith("heron_env.") for name in sys.modules))
"""
STEPPED = """
import json, sys
from pathlib import Path
import numpy as np
import heron_env
from heron_env import BatchEnv, make
root = str(Path(heron_env.__file__).parent)

def files(step):
    for _ in range(3):
        step()
    found = set()
    def note(frame, event, _):
        if event == "call" and frame.f_code.co_filename.startswith(root):
            found.add(frame.f_code.co_filename)
    sys.setprofile(note)
    step()
    sys.setprofile(None)
    return len(found)

counts = {}
for compiled in (True, False):
    env = make("heron/BatteryGrid-v0", compile=compiled)
    env.reset(seed=0)
    actions = {agent: env.action_space(agent).sample() for agent in env.agents}
    counts["sync", compiled] = files(lambda: env.step(actions))
    batch = BatchEnv("heron/BatteryGrid-v0", 4, compile=compiled)
    batch.reset(seed=0)
    given = {name: np.zeros((4, len(agents), 1)) for name, agents in batch.groups.items()}
    counts["batched", compiled] = files(lambda: batch.step(given))
print(json.dumps([counts["sync", True], counts["sync", False], counts["batched", True], counts["batched", False]]))
"""


def answer_of(program: str) -> Any:
    """What a program prints, in a process of its own."""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def figures(root: Path, run: bool) -> dict[str, Any]:
    """All figures by name."""
    house = House(root)
    modules, lines, code, _ = house.lines(*KERNEL)
    of_all, outside = house.lines(), house.lines(*house.outer())
    circles = house.circles()
    found: dict[str, Any] = {
        "kernel: modules / lines": f"{modules} / {lines:,}",
        "package: modules / lines": f"{of_all[0]} / {of_all[1]:,}",
        "code lines: kernel / package": f"{code:,} / {of_all[2]:,}",
        "share of docstring lines": f"{100 * of_all[3] / of_all[1]:.1f} %",
        "outside the kernel: modules / lines / code lines": f"{outside[0]} / {outside[1]:,} / {outside[2]:,}",
        "share of docstring lines outside the kernel": f"{100 * outside[3] / outside[1]:.1f} %",
        "class names in two modules": len(house.classes_twice()),
        "file names twice under envs": ", ".join(house.twice()) or "none",
        "bases of HeronEnv": house.bases(),
        "modules to go": ", ".join(sorted(f for f in house.texts if Path(f).stem in GONE and f[:4] == "envs"))
        or "none",
        "files in the largest circle": len(circles[0]) if circles else 0,
        "circles": len(circles),
        "public methods that only raise": len(house.only_raising()),
        "private names of others, in the kernel": len(house.private_reaches()),
        f"functions > {LONG} lines: kernel (package)": (
            f"{len(house.long_functions(*KERNEL))} ({len(house.long_functions())})"
        ),
    }
    for room in KERNEL:
        found[f"{room}: modules / lines"] = "{} / {:,}".format(*house.lines(room)[:2])
    for law, pattern in {**HOMES, **PATTERNS}.items():
        found[f"tellings: {law}"] = f"{len(homes := house.tellings(pattern))}: {', '.join(homes)}"
    if (tests := root.parent / "tests").is_dir():
        found |= of_tests(tests)
    if run:
        found["modules imported with the environment's base"] = answer_of(IMPORTED)
        found["files that run in a warm step: compiled / plain; batched: compiled / plain"] = "{} / {}; {} / {}".format(
            *answer_of(STEPPED)
        )
    return found


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    ours = Path(__file__).resolve().parent.parent / "heron_env"
    parser.add_argument("package", type=Path, nargs="?", default=ours)
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    found: Mapping[str, Any] = figures(asked.package.resolve(), run=asked.package.resolve() == ours)
    print(
        json.dumps(found, indent=2) if asked.json else "\n".join(f"{name:66}{value}" for name, value in found.items())
    )


if __name__ == "__main__":
    main()
