"""How large is each room, how tangled, how often is each law told? `python -m tests.house [--json] [PACKAGE]`.

Read off the source. tests/rooms.toml has the limits on most of these figures, and tests/test_architecture.py asserts
them. PACKAGE: the folder heron_env of another checkout.
"""

from __future__ import annotations

import argparse
import ast
import io
import json
import re
import subprocess
import tokenize
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from functools import cache, cached_property
from pathlib import Path
from typing import Any

TABLE = Path(__file__).with_name("rooms.toml")
"""The limits."""
LIMITS: dict[str, int] = tomllib.loads(TABLE.read_text("utf-8"))
KERNEL = ("core", "observability", "agents", "scheduling", "engine", "envs")
WATCHED = (*KERNEL, "testing", "adapters")
"""Rooms in which each law is told once, and names of others stay private."""
INNER = ("envs", "engine", "scheduling")
"""Rooms whose inner names tests should not bind."""
LONG = 40
"""Lines of a function, its docstring with it, beyond which it counts as long."""
DIALECT = ("given", "found", "seen", "asked", "told", "kept", "known", "there", "wanted")
"""Words that name a variable by what happened to it, where the field has a word for what it is."""
BUILT = ("_build", "notebooks", "jupyter_execute")
"""Folders of docs/ that hold no page by hand."""
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

    def rooms(self) -> dict[str, int]:
        """Lines of each room, those of the modules at the top together as `top`."""
        counts = Counter[str]()
        for file, text in self.texts.items():
            counts[file.split("/")[0] if "/" in file else "top"] += text.count("\n")
        return dict(sorted(counts.items()))

    def beside(self) -> dict[str, int]:
        """Lines of tests, training and benchmarks, and the words of the pages by hand."""
        clone = self.root.parent
        pages = [path for path in clone.glob("docs/**/*.md") if path.relative_to(clone).parts[1] not in BUILT]
        folders = {
            f"lines of {name}": sum(text_of(path).count("\n") for path in clone.glob(f"{name}/**/*.py"))
            for name in ("tests", "training", "benchmarks")
        }
        return {**folders, "words of docs": sum(len(text_of(path).split()) for path in pages)}

    def verbs(self) -> int:
        """Commands of `heron`, a group of commands counted as one."""
        return len(re.findall(r"^(?:_add\(|app\.add_typer\()", self.texts["cli/__init__.py"], re.MULTILINE))

    def public(self, package: str) -> int:
        """Public names of a package, by its stub."""
        return len(
            re.findall(r"^from \S+ import (\w+) as \1$", text_of(self.root / package / "__init__.pyi"), re.MULTILINE)
        )

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
        """The functions of the watched rooms (and modules, outside of functions) in which a law is told."""
        rooms = (*WATCHED, "seeding.py")
        return sorted(
            f"{file}:{name}" if name else file
            for file, text in self.texts.items()
            if file.split("/")[0] in rooms
            for name in told_in(text, law)
        )

    def private_reaches(self) -> list[str]:
        """Private names of another object that are read in the watched rooms: `env._seed`, but not `self._seed`."""
        files = (file for file in self.texts if file.split("/")[0] in WATCHED)
        return [f"{file}: {reach}" for file in files for reach in reaches(self.texts[file])]

    def only_raising(self) -> list[str]:
        """Public methods of the watched rooms that refuse to do what their class offers: all they do is to raise."""
        return [
            f"{file}:{name}"
            for file, text in self.texts.items()
            if file.split("/")[0] in WATCHED
            for name in raising(text)
        ]


def text_of(path: Path) -> str:
    """What a file holds."""
    return path.read_text("utf-8")


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


def dialect(texts: Iterable[str]) -> int:
    """How often a word of the private dialect is bound as a name: a variable, or a parameter."""
    words = re.compile(rf"\b({'|'.join(DIALECT)})\b")
    nodes = (node for text in texts if words.search(text) for node in ast.walk(parsed(text)))
    names = (
        node.arg if isinstance(node, ast.arg) else node.id
        for node in nodes
        if isinstance(node, ast.arg) or (isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store))
    )
    return sum(name in DIALECT for name in names)


def bound_by_tests(tests: Path) -> dict[str, set[str]]:
    """The names `module.name` that each file of tests imports from a module below a room: `heron_env.core.action`."""
    files = defaultdict[str, set[str]](set)
    for path in sorted(tests.rglob("*.py")):
        for level, source, name in imported_by(path.read_text("utf-8")):
            module = (source or "").split(".")
            if not level and module[0] == "heron_env" and (len(module) > 2 or {*module[1:]} & {*INNER}):
                files[path.relative_to(tests).as_posix()].add(f"{source}.{name}")
    return files


def of_clone(tests: Path) -> Iterator[tuple[str, str]]:
    """What tests bind, what git tracks, and names in the private dialect."""
    bound = bound_by_tests(tests)
    inner = {file: kept for file, names in bound.items() if (kept := {n for n in names if n.split(".")[1] in INNER})}
    names = set[str]().union(*inner.values())
    yield f"tests bound to inner names of {', '.join(INNER)}: files / names", f"{len(inner)} / {len(names)}"
    yield "files of tests that import from below a room", str(len(bound))
    tracked = subprocess.run(["git", "ls-files", "-z"], cwd=tests.parent, capture_output=True, text=True, check=True)
    files = (tests.parent / name for name in tracked.stdout.split("\0") if name)
    present = [file for file in files if file.is_file()]
    yield "tracked bytes", f"{sum(file.stat().st_size for file in present):,}"
    ours = [file for file in present if file.suffix == ".py"]
    inside = [text_of(file) for file in ours if file.is_relative_to(tests.parent / "heron_env")]
    outside = [text_of(file) for file in ours if not file.is_relative_to(tests.parent / "heron_env")]
    yield "names bound in the private dialect: package / elsewhere", f"{dialect(inside)} / {dialect(outside)}"


def figures(root: Path) -> dict[str, Any]:
    """All figures by name."""
    house = House(root)
    modules, lines, code, _ = house.lines(*KERNEL)
    of_all = house.lines()
    circles = house.circles()
    table: dict[str, Any] = {
        "package: modules / lines": f"{of_all[0]} / {of_all[1]:,}",
        "kernel: modules / lines": f"{modules} / {lines:,}",
        "outside the kernel: modules / lines": f"{of_all[0] - modules} / {of_all[1] - lines:,}",
        "code lines: kernel / package": f"{code:,} / {of_all[2]:,}",
        "share of docstring lines": f"{100 * of_all[3] / of_all[1]:.1f} %",
        "public names of heron_env.lab": house.public("lab"),
        "verbs of heron": house.verbs(),
    }
    beside = house.beside()
    table["lines of training and benchmarks"] = f"{beside['lines of training'] + beside['lines of benchmarks']:,}"
    for name, count in beside.items():
        table[name] = f"{count:,} of {LIMITS[name]:,}"
    for room, count in sorted(house.rooms().items(), key=lambda item: (item[0] not in KERNEL, item[0])):
        table[f"lines of {room}{' (kernel)' if room in KERNEL else ''}"] = (
            f"{count:,} of {LIMITS[f'lines of {room}']:,}"
        )
    table |= {
        "class names in two modules": len(house.classes_twice()),
        "file names twice under envs": ", ".join(house.twice()) or "none",
        "bases of HeronEnv": house.bases(),
        "files in the largest circle": len(circles[0]) if circles else 0,
        "circles": len(circles),
        "public methods that only raise": len(house.only_raising()),
        "private names of others": len(house.private_reaches()),
        f"functions > {LONG} lines: kernel (package)": (
            f"{len(house.long_functions(*KERNEL))} ({len(house.long_functions())})"
        ),
    }
    for law, pattern in {**HOMES, **PATTERNS}.items():
        table[f"tellings: {law}"] = f"{len(homes := house.tellings(pattern))}: {', '.join(homes)}"
    if (tests := root.parent / "tests").is_dir():
        table |= of_clone(tests)
    return table


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    ours = Path(__file__).resolve().parent.parent / "heron_env"
    parser.add_argument("package", type=Path, nargs="?", default=ours)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    table: Mapping[str, Any] = figures(options.package.resolve())
    rows = (f"{name:76}{value}" for name, value in table.items())
    print(json.dumps(table, indent=2) if options.json else "\n".join(rows))


if __name__ == "__main__":
    main()
