"""The cache of compiled rules: an edit is seen at once, nothing else makes a new file, and two processes may race."""

import io
import itertools
import os
import py_compile
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest

from heron_env.engine import cache, phases
from heron_env.engine.kernels import SealedFiles
from heron_env.errors import HeronWarning
from heron_env.testing import inspect

pytestmark = pytest.mark.e2e

CONSTANTS = "GAIN = {gain}\nTABLE = (1.0, 2.0)\n"
WORLD = """
import numpy as np
import {constants} as constants
from heron_env import Continuous, FeatureProvider, FieldAgent, HeronEnv, SystemAgent, Vector, quantity, rule

LIMIT = {limit}
ARRAY = np.array([0.0, {cell}])

def helper(x, by={default}):
    return x * {factor} * by

class Charge(FeatureProvider):
    soc: float = quantity(default=0.5, low=0.0, high={high})

class Battery(FieldAgent):
    features = (Charge,)
    action = Continuous(-1.0, 1.0)

    @staticmethod
    @rule(writes=Charge.soc)
    def apply_action(charge: Charge, action: Vector) -> float:
        {comment}
        return charge.soc + helper(min(action[0], LIMIT)) * {literal} * constants.GAIN + ARRAY[1] * constants.TABLE[0]

def env():
    return HeronEnv(SystemAgent("top", Battery("a"), Battery("b")), max_steps=5)
"""
USUAL = {
    "limit": 1.0, "cell": 0.0, "default": 1.0, "factor": 0.5, "literal": 0.1, "gain": 1.0, "high": 1.0,
    "comment": "# says something",
}  # fmt: skip
counter = itertools.count()


@pytest.fixture(scope="module", autouse=True)
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """HERON_CACHE_DIR of these tests: what is in it is theirs."""
    found = tmp_path_factory.mktemp("compiled")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HERON_CACHE_DIR", str(found))
        yield found


@pytest.fixture
def written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., ModuleType]:
    """Writes the world with some values changed, and imports it anew; its constants lie in another module."""
    monkeypatch.syspath_prepend(str(tmp_path))

    def write(**changes: object) -> ModuleType:
        values = {**USUAL, **changes}
        constants = f"constants_{os.getpid()}_{next(counter)}"
        (tmp_path / f"{constants}.py").write_text(CONSTANTS.format(**values))
        module = ModuleType("edited_world")
        module.__file__ = str(tmp_path / "edited_world.py")
        monkeypatch.setitem(sys.modules, "edited_world", module)
        exec(compile(WORLD.format(constants=constants, **values), module.__file__, "exec"), module.__dict__)
        return module

    return write


def moved(module: ModuleType) -> float:
    """The state of charge after one action of 1, from 0.5."""
    lanes = inspect(module.env()).lanes(1)
    lanes.arrays.truth[:] = 0.5
    lanes.arrays.actions[0, lanes.action_slice(1)] = 1.0
    lanes.apply(0, 1)
    return float(lanes.arrays.truth[0, 0])


def key(module: ModuleType) -> str:
    return inspect(module.env()).program.key()


def copied(folder: Path, target: Path, *modules: ModuleType) -> None:
    """What was compiled for these modules lies in another folder, too: compiling it there would take its time."""
    for module in modules:
        moved(module)
    names = ("heron_loop_kernels", *("heron_" + key(module) for module in modules))
    for file in folder.rglob("*"):
        if file.name.startswith(names):
            (target / file.relative_to(folder)).parent.mkdir(exist_ok=True)
            (target / file.relative_to(folder)).write_bytes(file.read_bytes())
            os.utime(target / file.relative_to(folder), (cache.WRITTEN, cache.WRITTEN))


EDITS = {
    "literal in the rule": ({"literal": 0.2}, 0.6),
    "constant": ({"limit": 0.8}, 0.54),
    "helper": ({"factor": 0.4}, 0.54),
    "helper's default": ({"default": 2.0}, 0.6),
    "array": ({"cell": 0.25}, 0.8),
    "other module's constant": ({"gain": 2.0}, 0.6),
    "bound": ({"high": 0.52}, 0.52),
}


@pytest.mark.parametrize("edit", ["literal in the rule", "other module's constant"])
def test_after_an_edit_the_new_rule_runs(edit: str, written: Callable[..., ModuleType]):
    changes, expected = EDITS[edit]
    assert moved(written()) == pytest.approx(0.55)
    assert moved(written(**changes)) == pytest.approx(expected)
    assert moved(written()) == pytest.approx(0.55)


def test_every_edit_makes_a_key_of_its_own_and_going_back_finds_the_first(written: Callable[..., ModuleType]):
    first = key(written())
    keys = [key(written(**changes)) for changes, _ in EDITS.values()]
    assert len({first, *keys}) == len(EDITS) + 1
    assert key(written()) == first


def test_a_comment_changes_nothing(written: Callable[..., ModuleType]):
    assert key(written(comment="# says something else")) == key(written())
    assert key(written(comment="# of\n        # two lines")) == key(written())


def test_the_same_file_serves_a_second_load(written: Callable[..., ModuleType], folder: Path):
    assert moved(written()) == pytest.approx(0.55)
    before = sorted(folder.glob("heron_*.py"))
    assert moved(written()) == pytest.approx(0.55)
    assert sorted(folder.glob("heron_*.py")) == before
    assert not list(folder.glob("*.part"))


PROGRAM = """
from heron_env import make
from heron_env.engine.cache import Digest
from heron_env.testing import inspect
lanes = inspect(make("heron/BatteryGrid-v0", num_batteries=2)).lanes(1)
lanes.arrays.truth[:], lanes.arrays.actions[:] = 0.5, 1.0
lanes.apply(0, 2)
digest = Digest()
digest.value(lambda unit: unit in {"W", "kW", "MW", "GW", "TW"}, "a function with a set")
print(lanes.arrays.truth[0, 0], digest.hexdigest(), sum(lanes.loops.module.apply.stats.cache_hits.values()))
"""


def started(folder: Path, hash_seed: int) -> "subprocess.Popen[str]":
    environment = {**os.environ, "HERON_CACHE_DIR": str(folder), "PYTHONHASHSEED": str(hash_seed)}
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def test_processes_race_for_one_file_and_the_next_one_loads_what_they_left(tmp_path: Path):
    racing = [started(tmp_path, hash_seed) for hash_seed in (1, 2)]
    told = [process.communicate() for process in racing]
    assert [out.split()[0] for out, _ in told] == ["0.51", "0.51"], told
    digests = {out.split()[1] for out, _ in told}
    assert len(digests) == 1
    left = sorted(tmp_path.rglob("*"))
    assert len(list(tmp_path.glob("heron_*.py"))) == 3  # these rules, and what does not depend on rules
    assert not list(tmp_path.rglob("*.part"))
    assert started(tmp_path, 3).communicate()[0].split() == ["0.51", *digests, "1"]
    assert sorted(tmp_path.rglob("*")) == left


def test_the_folder_is_the_one_asked_for_else_the_users(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setenv("HERON_CACHE_DIR", str(tmp_path / "here"))
    assert cache.cache_folder() == tmp_path / "here"
    monkeypatch.delenv("HERON_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    monkeypatch.setattr(sys, "platform", "linux")
    assert cache.cache_folder() == tmp_path / "xdg" / "heron_env"


UNKEPT = (
    "compiled rules can't be kept in {!r}: {}; every process compiles them anew, for up to a minute; set "
    "HERON_CACHE_DIR to a folder of your own"
)


def in_memory(folder: object, why: str) -> None:
    """Modules run, nothing is kept, and one warning says why."""
    cache._warned.clear()
    with pytest.warns(HeronWarning) as caught:
        found = [cache.cached(name, lambda: "def twice(x):\n    return 2 * x\n") for name in ("one", "other")]
    assert [module.twice(4) for module in found] == [8, 8]
    assert [str(warning.message) for warning in caught] == [UNKEPT.format(str(folder), why)]


def test_where_nothing_can_be_kept_rules_are_compiled_in_memory(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, written: Callable[..., ModuleType]
) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    monkeypatch.setenv("HERON_CACHE_DIR", str(blocked / "sub"))
    in_memory(blocked / "sub", "Not a directory")
    anew()
    assert moved(written(literal=0.7)) == pytest.approx(0.85)


WITHOUT_A_FOLDER = """
import warnings
import numpy as np
from heron_env import BatchEnv
from heron_env.errors import HeronWarning

with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    batch = BatchEnv("heron/BatteryGrid-v0", 2, compile=False)
    batch.reset(seed=0)
    reward = batch.step({"battery": np.ones((2, 2, 1))})[1]["battery"][0, 0]
told = [str(warning.message)[:28] for warning in caught if issubclass(warning.category, HeronWarning)]
print(batch.compiled, reward, told)
"""


def test_so_is_what_lanes_in_plain_python_share(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    env = {**os.environ, "HERON_CACHE_DIR": str(blocked / "sub")}
    done = subprocess.run([sys.executable, "-c", WITHOUT_A_FOLDER], env=env, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == 'False 0.51 ["compiled rules can\'t be kept"]', done.stderr


def test_so_they_are_for_a_user_without_a_home(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_home() -> Path:
        raise RuntimeError("Could not determine home directory.")

    for name in ("HERON_CACHE_DIR", "XDG_CACHE_HOME", "LOCALAPPDATA", "HOME", "USERPROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("pathlib.Path.home", no_home)
    in_memory("the user's cache directory", "this user has no home directory")


# Who else may have written it


def planted(folder: Path) -> Path:
    """A module of another's, whole as ours are, and what it would leave behind if it ran."""
    trace = folder.parent / "trace"
    cache._write(folder / "heron_one.py", f"open({str(trace)!r}, 'w').close()\n")
    return trace


posix = pytest.mark.skipif(not hasattr(os, "geteuid"), reason="Windows has other permissions")
as_root = pytest.mark.skipif(getattr(os, "geteuid", int)() != 0, reason="only root can give files to another user")


@posix
@as_root
def test_a_folder_of_another_user_is_not_used(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    theirs = tmp_path / "theirs"
    trace = planted(theirs)
    os.chown(theirs, 12345, -1)
    monkeypatch.setenv("HERON_CACHE_DIR", str(theirs))
    in_memory(theirs, "it belongs to another user")
    assert not trace.exists()
    assert list(theirs.iterdir()) == [theirs / "heron_one.py"]


@posix
@pytest.mark.parametrize(
    "spoil",
    [
        pytest.param(lambda path: os.chown(path, 12345, -1), marks=as_root, id="of another user"),
        pytest.param(lambda path: path.chmod(0o664), id="open to the group"),
        pytest.param(lambda path: path.chmod(0o646), id="open to all"),
    ],
)
def test_a_file_that_others_may_have_written_is_made_anew(
    spoil: Callable[[Path], None], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    folder = tmp_path / "ours"
    monkeypatch.setenv("HERON_CACHE_DIR", str(folder))
    trace = planted(folder)
    spoil(folder / "heron_one.py")
    for _ in range(2):
        assert cache.cached("one", lambda: "x = 1\n").x == 1
    assert not trace.exists()
    status = (folder / "heron_one.py").stat()
    assert (status.st_uid, status.st_mode & 0o022) == (os.geteuid(), 0)


@posix
@pytest.mark.parametrize("mode", [0o775, 0o757, 0o1777])
def test_in_a_folder_that_others_may_write_to_we_have_one_of_our_own(
    mode: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """0775 is what mkdir makes under umask 002; nothing that lies there counts."""
    folder = tmp_path / "open"
    monkeypatch.setenv("HERON_CACHE_DIR", str(folder))
    trace = planted(folder)
    folder.chmod(mode)
    before = os.umask(0o002)
    try:
        assert cache.cached("one", lambda: "x = 1\n").x == 1
    finally:
        os.umask(before)
    assert cache.cached("one", lambda: "x = 2\n").x == 1, "it is kept"
    assert not trace.exists()
    inner = folder / f"heron_env_{os.geteuid()}"
    assert cache.store() == inner
    assert (inner.stat().st_mode & 0o777, (inner / "heron_one.py").stat().st_mode & 0o022) == (0o700, 0)


@posix
def test_a_new_folder_is_ours_alone_in_tmp_as_well(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    tmp_path.chmod(0o1777)
    monkeypatch.setenv("HERON_CACHE_DIR", str(tmp_path / "mine"))
    cache.cached("one", lambda: "x = 1\n")
    assert cache.store() == tmp_path / "mine"
    assert (tmp_path / "mine").stat().st_mode & 0o777 == 0o700


def test_bytecode_beside_a_module_is_not_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HERON_CACHE_DIR", str(tmp_path))
    path = tmp_path / "heron_one.py"
    cache.cached("one", lambda: "x = 1\n")
    whole = path.read_bytes()
    path.write_bytes(b"x = 2\n" + b"#" * (len(whole) - 6))
    os.utime(path, (cache.WRITTEN, cache.WRITTEN))
    py_compile.compile(str(path))
    path.write_bytes(whole)
    os.utime(path, (cache.WRITTEN, cache.WRITTEN))
    assert cache.cached("one", lambda: "x = 3\n").x == 1


@posix
@pytest.mark.parametrize("pattern", ["*.nbi", "*.nbc"])
def test_machine_code_that_others_may_have_written_is_not_loaded(
    pattern: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, folder: Path, written: Callable[..., ModuleType]
) -> None:
    copied(folder, tmp_path, written())
    monkeypatch.setenv("HERON_CACHE_DIR", str(tmp_path))
    assert not [file for file in folder.rglob(pattern) if file.stat().st_mode & 0o022]
    files = list(tmp_path.rglob(pattern))
    assert files
    for file in files:
        file.chmod(0o666)
    for hits in (0, 1):
        anew()
        loops = inspect(written().env()).program.compiled()
        assert moved(written()) == pytest.approx(0.55)
        assert sum(loops.module.apply.stats.cache_hits.values()) == hits


def test_the_least_recently_used_files_go(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setattr(cache, "MOST_FILES", 2)
    monkeypatch.setenv("HERON_CACHE_DIR", str(tmp_path))
    for second, name in enumerate(("old", "middle", "used")):
        (tmp_path / f"heron_{name}.py").write_text("")
        os.utime(tmp_path / f"heron_{name}.py", (second, cache.WRITTEN))
    cache.cached("new", lambda: "x = 1\n")
    assert sorted(path.name for path in tmp_path.glob("*.py")) == ["heron_new.py", "heron_used.py"]


@pytest.mark.parametrize("terminal", [True, False])
def test_on_a_terminal_it_says_once_what_takes_so_long(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, terminal: bool
) -> None:
    screen = io.StringIO()
    monkeypatch.setattr(screen, "isatty", lambda: terminal)
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setenv("HERON_CACHE_DIR", str(tmp_path))
    for name in ("one", "one", "other"):
        cache.cached(name, lambda: "A = 1\n")
    said = f"heron_env compiles rules, once, for up to a minute; the result is kept in {tmp_path}\n"
    assert screen.getvalue() == said * terminal


def test_a_set_that_is_loaded_is_not_loaded_again(written: Callable[..., ModuleType]):
    inspected = inspect(written().env())
    assert inspected.program.compiled() is inspected.program.compiled()


def test_shared_loops_are_kept_beside_their_copy_in_the_cache_folder() -> None:
    """Nothing is written beside the source, which may be read-only."""
    shared = phases.shared_loops()
    assert shared.__file__ is not None
    folder = Path(shared.__file__).parent
    assert folder != Path(cache.__file__).parent
    loops = [loop for loop in vars(shared).values() if hasattr(loop, "py_func") and loop.__module__ == shared.__name__]
    kept = {loop.__name__: loop._cache.cache_path for loop in loops if getattr(loop._cache, "cache_path", None)}
    assert {"check", "decide", "publish"} <= set(kept)
    assert {Path(path).parent for path in kept.values()} == {folder}


def spoilt(folder: Path, pattern: str, spoil: Callable[[bytes], bytes]) -> None:
    files = list(folder.rglob(pattern))
    assert files
    for file in files:
        file.write_bytes(spoil(file.read_bytes()))
        if file.suffix == ".py":
            os.utime(file, (cache.WRITTEN, cache.WRITTEN))


def a_bit(data: bytes) -> bytes:
    """With one bit in the middle turned."""
    half = len(data) // 2
    return data[:half] + bytes([data[half] ^ 1]) + data[half + 1 :]


@pytest.mark.parametrize(
    ("pattern", "spoil"),
    [
        ("heron_*.py", lambda data: data[: len(data) // 2]),
        ("*.nbi", lambda data: b"\0garbage" * 9),
        ("*.nbc", a_bit),
        pytest.param("*.nbc", lambda data: b"", marks=pytest.mark.e2e),
    ],
)
def test_a_spoilt_file_is_made_anew(
    pattern: str, spoil: Callable[[bytes], bytes], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, folder: Path,
    written: Callable[..., ModuleType],
) -> None:  # fmt: skip
    copied(folder, tmp_path, written())
    monkeypatch.setenv("HERON_CACHE_DIR", str(tmp_path))
    spoilt(tmp_path, pattern, spoil)
    anew()
    assert moved(written()) == pytest.approx(0.55)
    for _ in range(2):  # and is then as good as any
        anew()
        loops = inspect(written().env()).program.compiled()
        assert moved(written()) == pytest.approx(0.55)
    assert sum(loops.module.apply.stats.cache_hits.values()) == 1


def anew() -> None:
    """As in a process of its own."""
    phases._loaded.clear()
    phases.shared_loops.cache_clear()


@pytest.mark.parametrize("pattern", ["heron_*.py", "*.apply-*.nbi", "*.nbc"])
def test_files_with_exchanged_contents_are_made_anew(
    pattern: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, folder: Path, written: Callable[..., ModuleType]
) -> None:
    """Each is whole, and not what its name says."""
    copied(folder, tmp_path, written(), written(literal=0.2))
    monkeypatch.setenv("HERON_CACHE_DIR", str(tmp_path))
    results = [(USUAL["literal"], 0.55), (0.2, 0.6)]
    for _ in range(2):
        anew()
        for literal, result in results:
            assert moved(written(literal=literal)) == pytest.approx(result)
        files = sorted(tmp_path.rglob(pattern))
        assert len(files) > 1
        contents = [file.read_bytes() for file in files]
        for file, content in zip(files, contents[1:] + contents[:1], strict=True):
            file.write_bytes(content)
            os.utime(file, (cache.WRITTEN, cache.WRITTEN))


def test_machine_code_that_cant_be_written_runs_all_the_same(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, written: Callable[..., ModuleType]
) -> None:
    def full(*args: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(SealedFiles, "save", full)
    assert moved(written(literal=0.3)) == pytest.approx(0.65)
