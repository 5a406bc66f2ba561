"""The one direction of imports, cheap imports, short files and honest names: read off the source, never run.

`violations(root)` returns a sentence per offence in the package at `root`; the last tests plant offences in a copy and
see each of them caught.
"""

import ast
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from house import LIMITS, PATTERNS, WATCHED, House, parsed

PACKAGE = Path(__file__).resolve().parent.parent / "heron_env"

# Low to high: a line may import itself and the lines above it.
LAYOUT = (
    ("errors", "given", "lazily", "seeding", "files", "_version"),
    ("trust",),
    ("registry",),
    ("net",),
    ("core",),
    ("pictures",),
    ("observability",),
    ("scheduling",),
    ("agents",),
    ("engine",),
    ("power_flow", "dcop"),
    ("envs",),
    ("declared",),
    ("injection",),
    ("testing",),
    ("adapters",),
    ("lab",),
    ("worlds",),
    ("real",),
    ("serve",),
    ("cli", "__init__", "__main__"),
)
RANK = {name: rank for rank, names in enumerate(LAYOUT) for name in names}

# (importing module, imported module): why. Holds under `if TYPE_CHECKING:` only, where nothing is imported at run time.
TYPE_ONLY = {
    ("registry", "envs"): "make() is declared to return a HeronEnv",
}

# Heavy third party: the modules (or folders) that may import it when they are themselves imported.
HEAVY = {
    "numba": ("engine",),
    "stable_baselines3": ("adapters/sb3.py", "adapters/sb3_buffer.py"),
    "torch": (
        "adapters/torchrl.py",
        "adapters/sb3.py",
        "lab/learning/ppo.py",
    ),
    "torchrl": ("adapters/torchrl.py", "adapters/benchmarl.py"),
    "benchmarl": ("adapters/benchmarl.py",),
    "tensordict": ("adapters/torchrl.py",),
    "ray": ("adapters/rllib.py",),
    "pettingzoo": ("envs", "adapters", "registry.py"),
    "httpx": ("net/client.py",),
    "httpcore": ("net",),
    "msgspec": ("real",),
    "aiomqtt": ("real/mqtt.py",),
    "fastapi": ("serve",),
    "uvicorn": (),
    "matplotlib": (),
    "plotly": (),
    "pandas": (),
    "scipy": (),
    "highspy": (),
    "demandlib": (),
    "pvlib": (),
    "pyarrow": (),
}

MAX_LINES = 450
LONG_FILES: dict[str, str] = {  # file: why one concept needs the length
    "lab/learning/ppo.py": "network and update: gradients are written out, and use each other's intermediate results",
    "lab/learning/train.py": "one training, from its settings to its run folder, in the order in which it happens",
    "engine/branches.py": "one transformation, statement by statement and expression by expression",
}
EMPTY_NAMES = ("Manager", "Helper", "Helpers", "Util", "Utils")


@dataclass(frozen=True)
class Import:
    """One import statement of one target. `lazy`: inside a function; `typing`: under `if TYPE_CHECKING:`."""

    target: tuple[str, ...]
    line: int
    lazy: bool
    typing: bool


def imports(
    tree: ast.Module, package: tuple[str, ...], is_module: Callable[[tuple[str, ...]], bool]
) -> Iterator[Import]:
    """Every import below `tree`, relative ones resolved against `package`."""

    def walk(node: ast.AST, lazy: bool, typing: bool) -> Iterator[Import]:
        match node:
            case ast.Import():
                for alias in node.names:
                    yield Import(tuple(alias.name.split(".")), node.lineno, lazy, typing)
            case ast.ImportFrom():
                base = package[: len(package) - node.level + 1] if node.level else ()
                base += tuple(node.module.split(".")) if node.module else ()
                for alias in node.names:
                    target = (*base, alias.name)
                    yield Import(target if is_module(target) else base, node.lineno, lazy, typing)
            case ast.If() if "TYPE_CHECKING" in ast.unparse(node.test):
                for child in node.body:
                    yield from walk(child, lazy, True)
                for child in node.orelse:
                    yield from walk(child, lazy, typing)
            case _:
                inside = lazy or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
                for child in ast.iter_child_nodes(node):
                    yield from walk(child, inside, typing)

    return walk(tree, False, False)


def layer(parts: tuple[str, ...]) -> str:
    """The first name below the package: `core` for heron_env.core.feature, `__init__` for heron_env itself."""
    return parts[1] if len(parts) > 1 else "__init__"


def upward(source: str, found: Import) -> str | None:
    """What is wrong with this import of one of our own modules in the layer `source`, if anything."""
    target = layer(found.target)
    name = ".".join(found.target)
    if target not in RANK:
        return f"imports {name}, and {target} has no line in the layout"
    if RANK[target] <= RANK[source] or (found.typing and (source, target) in TYPE_ONLY):
        return None
    return f"imports {name}, but {target} lies above {source} in the layout"


def heavy(file: str, found: Import) -> str | None:
    """What is wrong with this import of a third party in `file`, if anything."""
    places = HEAVY.get(found.target[0])
    if places is None or found.lazy or found.typing:
        return None
    if any(file == place or file.startswith(f"{place}/") for place in places):
        return None
    return f"imports {found.target[0]} at the top level; import it inside the function that needs it"


def file_violations(root: Path, path: Path) -> Iterator[str]:
    """The offences of one module of the package at `root`."""
    relative = path.relative_to(root)
    file, text = relative.as_posix(), path.read_text(encoding="utf-8")
    tree = parsed(text)
    source = relative.with_suffix("").parts[0]
    if source not in RANK:
        yield f"{file} has no line in the layout"
        return

    def is_module(parts: tuple[str, ...]) -> bool:
        below = root.joinpath(*parts[1:])
        return parts[0] == "heron_env" and (below.is_dir() or below.with_name(f"{below.name}.py").is_file())

    for found in imports(tree, ("heron_env", *relative.parts[:-1]), is_module):
        ours = found.target[0] == "heron_env"
        offence = upward(source, found) if ours else heavy(file, found)
        if offence:
            yield f"{file}:{found.line} {offence}"

    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef) and node.name.endswith(EMPTY_NAMES):
            yield f"{file}:{node.lineno} the class name {node.name} does not say what it is"
    if path.stem.lower() in {name.lower() for name in EMPTY_NAMES}:
        yield f"{file} is named after nothing"
    length = text.count("\n")
    if length > MAX_LINES and file not in LONG_FILES:
        yield f"{file} has {length} lines, more than {MAX_LINES}: split it, or say in LONG_FILES why not"


def violations(root: Path) -> list[str]:
    """All offences of the package at `root`, a sentence each."""
    return [offence for path in sorted(root.rglob("*.py")) for offence in file_violations(root, path)]


def test_the_package_keeps_its_architecture():
    assert violations(PACKAGE) == []


def test_every_allowance_is_still_used():
    assert [file for file in LONG_FILES if not (PACKAGE / file).is_file()] == []
    long_enough = {file for file in LONG_FILES if (PACKAGE / file).read_text("utf-8").count("\n") > MAX_LINES}
    assert long_enough == set(LONG_FILES)


PLANTED = [
    ("core/planted.py", "from heron_env.envs.base import HeronEnv", "envs lies above core"),
    ("core/planted.py", "from ..envs import base", "envs lies above core"),
    ("core/planted.py", "from .. import agents", "agents lies above core"),
    ("core/planted.py", "from heron_env import quantity", "__init__ lies above core"),
    ("core/planted.py", "import heron_env.worlds", "worlds lies above core"),
    ("core/planted.py", "def f():\n    import heron_env.envs.base", "envs lies above core"),
    ("core/planted.py", "if TYPE_CHECKING:\n    from heron_env.envs.base import HeronEnv", "envs lies above core"),
    ("agents/protocols/planted.py", "from ...engine import kernels", "engine lies above agents"),
    ("errors/__init__.py", "from heron_env.registry import make", "registry lies above errors"),
    ("registry/planted.py", "from heron_env.envs.base import HeronEnv", "envs lies above registry"),
    ("core/planted.py", "from heron_env.nowhere import x", "nowhere has no line in the layout"),
    ("nowhere.py", "", "nowhere.py has no line in the layout"),
    ("core/planted.py", "import torch.nn as nn", "imports torch at the top level"),
    ("lab/planted.py", "try:\n    import torch\nexcept ImportError:\n    raise", "imports torch at the top"),
    ("worlds/planted.py", "class A:\n    from scipy.optimize import linprog", "imports scipy at the top level"),
    ("core/planted.py", "from numba import njit", "imports numba at the top level"),
    ("core/planted.py", "import pettingzoo", "imports pettingzoo at the top level"),
    ("core/planted.py", "class StateManager: ...", "StateManager does not say what it is"),
    ("core/utils.py", "", "core/utils.py is named after nothing"),
    ("core/planted.py", "x = 1\n" * MAX_LINES, f"{MAX_LINES + 1} lines, more than {MAX_LINES}"),
]


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the package to plant offences in."""
    root = tmp_path_factory.mktemp("planted") / "heron_env"
    shutil.copytree(PACKAGE, root, ignore=shutil.ignore_patterns("data", "__pycache__"))
    return root


@contextmanager
def planted(root: Path, file: str, text: str) -> Iterator[Path]:
    """`text` as a new file of the package at `root`, for a while."""
    target = root / file
    target.parent.mkdir(parents=True, exist_ok=True)
    with target.open("x", encoding="utf-8") as stream:
        stream.write(text + "\n")
    yield target
    target.unlink()


@pytest.mark.parametrize(("file", "text", "offence"), PLANTED, ids=[offence for *_, offence in PLANTED])
def test_a_planted_offence_is_caught(copy: Path, file: str, text: str, offence: str):
    with planted(copy, file, text) as target:
        found = list(file_violations(copy, target))
    assert len(found) == 1
    assert offence in found[0]
    assert found[0].startswith(file)


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("core/planted.py", "from heron_env.core.feature import quantity\nfrom ..errors import HeronError"),
        ("lab/planted.py", "def train():\n    import torch"),
        ("adapters/planted.py", "from pettingzoo import ParallelEnv"),
        ("core/planted.py", "if TYPE_CHECKING:\n    import torch"),
        ("registry/planted.py", "if TYPE_CHECKING:\n    from heron_env.envs.base import HeronEnv"),
    ],
)
def test_what_the_layout_allows_is_no_offence(copy: Path, file: str, text: str):
    with planted(copy, file, text) as target:
        assert list(file_violations(copy, target)) == []


def weights(root: Path) -> dict[str, list[object]]:
    """What counts against each limit of tests/rooms.toml for the package at `root`, one by one."""
    house = House(root)
    lines = {f"lines of {room}": count for room, count in house.rooms().items()} | house.beside()
    return {
        **{what: [*range(count)] for what, count in lines.items()},
        **{f"modules of {room}": [*range(house.lines(room)[0])] for room in WATCHED},
        "files in a circle of imports": [*max(house.circles(), key=len, default=[])],
        "file names that stand twice under envs": [*house.twice()],
        "class names in two modules": [*house.classes_twice()],
        "public methods that only raise": [*house.only_raising()],
        "private names of others": [*house.private_reaches()],
        "long functions in watched rooms": [*house.long_functions(*WATCHED)],
        "long functions": [*house.long_functions()],
        **{f"tellings of {law!r}": [*house.tellings(pattern)] for law, pattern in PATTERNS.items()},
    }


def room_left(what: str, count: int) -> int:
    """How far a limit may lie above what counts against it, so that two changes that meet need not both touch it."""
    return max(40, count // 100) if what.split()[0] in ("lines", "words") else 0


def test_nothing_grows_beyond_its_limit():
    counts = {what: len(counted) for what, counted in weights(PACKAGE).items()}
    assert set(counts) == set(LIMITS)
    heavy = {what: count for what, count in counts.items() if count > LIMITS[what]}
    assert heavy == {}, "tests/rooms.toml says what to do"


def test_the_limits_follow_what_became_lighter():
    counts = {what: len(counted) for what, counted in weights(PACKAGE).items()}
    loose = {what: count for what, count in counts.items() if LIMITS[what] > count + room_left(what, count)}
    assert loose == {}, "lower these limits in tests/rooms.toml"


def test_two_files_of_one_name_are_counted_though_there_are_none(copy: Path):
    with planted(copy, "envs/event/base.py", ""):
        assert [*House(copy).twice()]


def test_what_stands_beside_the_package_is_weighed(tmp_path: Path):
    (tmp_path / "heron_env").mkdir()
    for file in ("tests/laws/a.py", "training/b.py", "benchmarks/c.py", "docs/how_to/d.md", "docs/_build/e.md"):
        (tmp_path / file).parent.mkdir(parents=True)
        (tmp_path / file).write_text("x = 1\ny = 2\n", "utf-8")
    weighed = House(tmp_path / "heron_env").beside()
    assert weighed == {"lines of tests": 2, "lines of training": 2, "lines of benchmarks": 2, "words of docs": 6}
