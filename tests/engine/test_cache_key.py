"""The name of compiled code in the cache depends on each module whose functions it holds, found by their imports."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import heron_env
from heron_env import make
from heron_env.engine import cache
from heron_env.testing import inspect

pytestmark = pytest.mark.e2e

PACKAGE = Path(heron_env.__file__).parent
COMPILED = re.compile(r"^@(leaf|general|phase|on_arrays|inlined|stored|allocating)\b|^\w+: Jit", re.M)


def text_of(path: Path) -> str:
    return path.read_text(encoding="utf-8")


LEAVES = sorted(path for path in PACKAGE.rglob("*.py") if COMPILED.search(text_of(path)))


def modules_of(text: str) -> Iterator[Path]:
    """The modules of the package that are named in any import of a text, also within functions."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("heron_env"):
            names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
            yield from (found for name in names if (found := PACKAGE.parent / f"{name.replace('.', '/')}.py").is_file())


def reached(text: str) -> set[Path]:
    """The leaves that a text imports, and those that these import."""
    found, new = set[Path](), {*modules_of(text)} & {*LEAVES}
    while new:
        found |= new
        new = {one for path in new for one in modules_of(text_of(path))} & {*LEAVES} - found
    return found


def entries() -> dict[str, str]:
    """What is compiled as a whole: generated text, with masks and with rules of the world, and files."""
    files = {path: text_of(path) for path in LEAVES}
    whole = [path for path in files if re.search(r"^@(phase|on_arrays)\b", files[path], re.MULTILINE)]
    return {path.relative_to(PACKAGE).as_posix(): files[path] for path in whole}


def changed(monkeypatch: pytest.MonkeyPatch, target: Path) -> None:
    """From now on, reading this file gives one byte more."""
    read = Path.read_text

    def with_a_byte_more(path: Path, encoding: str | None = None) -> str:
        return read(path, encoding=encoding) + ("#" if path == target else "")

    monkeypatch.setattr(Path, "read_text", with_a_byte_more)


def forget() -> None:
    """As in a process of its own."""
    cache.text_key.cache_clear()
    cache._module_key.cache_clear()


@pytest.fixture(autouse=True)
def forgotten_afterwards() -> Iterator[None]:
    yield
    forget()


def keys(texts: dict[str, str]) -> dict[str, str]:
    forget()
    return {name: cache.text_key(text) for name, text in texts.items()}


def test_any_changed_byte_of_a_compiled_function_changes_the_key_of_all_that_holds_it() -> None:
    texts = entries()
    before = keys(texts)
    for leaf in LEAVES:
        holders = {name for name, text in texts.items() if leaf in reached(text)}
        with pytest.MonkeyPatch.context() as patch:
            changed(patch, leaf)
            after = keys(texts)
        assert {name for name in texts if after[name] != before[name]} == holders, leaf
        assert holders or leaf.relative_to(PACKAGE).as_posix() in texts or leaf.stem == "world_kernel", leaf


@pytest.mark.parametrize(
    ("env_id", "stems"),
    [
        ("heron/BatteryGrid-v0", {"kernels", "loop_kernels", "draw_kernel"}),
        ("heron/TrafficCorridor-v0", {"decision_kernels"}),
        ("heron/Spread-v0", {"world_kernel"}),
    ],
)
def test_generated_code_holds_what_it_imports_and_the_shared_loops(
    env_id: str, stems: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    program = inspect(make(env_id)).program

    def key() -> str:
        forget()
        return program.key()

    before = key()
    for stem in sorted(stems):
        with monkeypatch.context() as patch:
            changed(patch, PACKAGE / "engine" / f"{stem}.py")
            assert key() != before, stem
    assert key() == before


def test_functions_that_run_in_python_and_compiled_belong_to_the_key() -> None:
    texts = entries()
    before = keys(texts)
    for shared in ("seeding.py", "scheduling/ticks.py", "core/quantity.py"):
        with pytest.MonkeyPatch.context() as patch:
            changed(patch, PACKAGE / shared)
            after = keys(texts)
        assert {"engine/loop_kernels.py", "engine/event/clock.py"} <= {n for n in texts if after[n] != before[n]}, (
            shared
        )


def test_a_changed_constant_changes_the_key_of_what_imports_it(monkeypatch: pytest.MonkeyPatch) -> None:
    from heron_env.engine import tables

    texts = entries()
    before = keys(texts)
    monkeypatch.setattr(tables, "NOOP_VALUE", tables.NOOP_VALUE + 1)
    after = keys(texts)
    assert {name for name in texts if after[name] != before[name]} >= {
        "engine/loop_kernels.py",
        "engine/event/clock.py",
    }


def test_the_imports_of_compiled_modules_are_written_so_that_they_are_found() -> None:
    for leaf in LEAVES:
        named = {
            f"{node.module} {alias.name}"
            for node in ast.walk(ast.parse(text_of(leaf)))
            if isinstance(node, ast.ImportFrom | ast.Import)
            for alias in node.names
            if "heron_env" in (getattr(node, "module", None) or alias.name)
        }
        found = {
            f"{source} {part.split()[0]}"
            for source, several, one in cache.IMPORT.findall(text_of(leaf))
            for part in (several or one).split(",")
            if part.strip()
        }
        assert found == named, leaf
