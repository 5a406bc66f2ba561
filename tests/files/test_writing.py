"""How files are written: what was there stays until the new one is whole, whatever the disk does."""

import json
import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest
from cli_kit import heron

from heron_env.files import write, write_all
from heron_env.files.writing import PART, lock_folder

OLD, NEW = b"old " * 100, b"new " * 5000
ROOM = 4096
"""Bytes that a file may have where the disk is nearly full."""


def with_little_room(program: str, *arguments: object, room: int = ROOM) -> subprocess.CompletedProcess[str]:
    """A program in a process whose files may have so many bytes: the next one fails with EFBIG, as a full disk does."""
    resource = pytest.importorskip("resource")

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (room, room))

    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program), *map(str, arguments)],
        preexec_fn=limit, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip


def heron_with_little_room(*words: object, room: int = ROOM) -> subprocess.CompletedProcess[str]:
    return with_little_room("from heron_env.cli import app\napp()", *words, room=room)


def test_a_file_is_written_its_folder_is_made_and_nothing_else_is_left(tmp_path: Path):
    path = tmp_path / "a" / "b" / "c.txt"
    assert write(path, "grün") == path
    assert path.read_bytes() == "grün".encode()
    assert list(path.parent.iterdir()) == [path]


def test_links_and_permissions_are_kept(tmp_path: Path):
    real, link = tmp_path / "real", tmp_path / "link"
    real.write_bytes(OLD)
    real.chmod(0o640)
    link.symlink_to(real)
    write(link, NEW)
    assert link.is_symlink() and real.read_bytes() == NEW
    assert real.stat().st_mode & 0o777 == 0o640


def test_a_new_file_has_the_permissions_of_any_new_file(tmp_path: Path):
    (tmp_path / "plain").write_bytes(b"")
    write(tmp_path / "ours", b"")
    assert (tmp_path / "ours").stat().st_mode == (tmp_path / "plain").stat().st_mode


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everything")
def test_a_file_that_may_not_be_written_is_not_replaced_either(tmp_path: Path):
    kept = tmp_path / "kept"
    kept.write_bytes(OLD)
    kept.chmod(0o444)
    with pytest.raises(PermissionError, match="kept"):
        write(kept, NEW)
    assert kept.read_bytes() == OLD


def folder(path: Path) -> None:
    path.mkdir()


def below_a_file(path: Path) -> None:
    path.parent.rmdir()
    path.parent.write_bytes(b"a file")


@pytest.mark.parametrize("spoil", [folder, os.mkfifo, below_a_file])
def test_of_several_files_all_are_replaced_or_none(tmp_path: Path, spoil: Callable[[Path], None]):
    first, last = tmp_path / "first", tmp_path / "sub" / "last"
    first.write_bytes(OLD)
    last.parent.mkdir()
    spoil(last)
    with pytest.raises(OSError, match="last") as caught:
        write_all({first: NEW, last: NEW})
    assert caught.value.filename == str(last)
    assert first.read_bytes() == OLD
    assert sorted(path.name for path in tmp_path.iterdir()) == ["first", "sub"]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
def test_a_device_is_written_into_and_its_fault_bears_the_name(tmp_path: Path):
    (tmp_path / "full").symlink_to("/dev/full")
    with pytest.raises(OSError, match="No space left on device") as caught:
        write(tmp_path / "full", NEW)
    assert caught.value.filename == str(tmp_path / "full")
    write("/dev/null", NEW)


def test_a_full_disk_leaves_every_file_as_it_was(tmp_path: Path):
    for name in ("first", "last"):
        (tmp_path / name).write_bytes(OLD)
    program = """
        import sys
        from pathlib import Path
        from heron_env.files.writing import write_all
        try:
            write_all({Path(sys.argv[1], "first"): "small", Path(sys.argv[1], "last"): "x" * 100_000})
        except OSError as error:
            print(error.filename)
    """
    assert with_little_room(program, tmp_path).stdout == f"{tmp_path / 'last'}\n"
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {"first": OLD, "last": OLD}


def test_a_killed_writer_leaves_the_old_file_and_a_part_that_says_so(tmp_path: Path):
    target = tmp_path / "target"
    target.write_bytes(OLD)
    program = """
        import os, signal, sys
        from heron_env.files import writing
        os.fsync = lambda descriptor: os.kill(os.getpid(), signal.SIGKILL)
        writing.write(sys.argv[1], "new")
    """
    assert with_little_room(program, target).returncode == -signal.SIGKILL
    assert target.read_bytes() == OLD
    (left,) = (path.name for path in tmp_path.iterdir() if path != target)
    assert left.startswith(".target.") and left.endswith(PART)


TRACE = ("trace", "heron/BatteryGrid-v0", "--policy", "random", "-o", "max_steps=4")


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


@pytest.mark.e2e
@pytest.mark.parametrize(
    ("words", "folder"),
    [
        ((*TRACE, "--seed", 1, "--out", "RUNS/t"), "t"),
        (("describe", "heron/BatteryGrid-v0", "--svg", "RUNS/t/timeline.svg"), "t"),
        (("report", "RUNS/t", "--out", "RUNS/r"), "r"),
        (("sweep", "heron/BatteryGrid-v0", "random", "--cases", 9, "--processes", 1, "--axis", "loss=0,0.1,0.2",
          "-o", "max_steps=4", "--out", "RUNS/s"), "s"),
        (("train", "heron/BatteryGrid-v0", "--steps", 10, "--out", "RUNS/p"), "p"),
    ],
    ids=lambda words: words[0] if isinstance(words, tuple) else "",
)  # fmt: skip
def test_a_command_on_a_full_disk_ends_in_one_line_and_destroys_nothing(
    made: Path, words: tuple[object, ...], folder: str
):
    before = contents(made / folder) if (made / folder).exists() else {}
    done = heron_with_little_room(*(str(word).replace("RUNS", str(made)) for word in words))
    assert done.returncode == 2, done.stderr
    *_, line = done.stderr.splitlines()
    assert line.startswith("error: ") and "File too large" in line and str(made / folder) in line
    assert "Traceback" not in done.stderr
    after = contents(made / folder)
    assert {name: after.get(name) for name in before} == before
    assert [name for name in after if name.endswith(PART)] == []


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A trace and a report of it, to be overwritten."""
    base = tmp_path_factory.mktemp("runs")
    heron(*TRACE, "--out", base / "t")
    heron("report", base / "t", "--out", base / "r")
    assert json.loads((base / "t" / "trace.json").read_text())["schema"] == 1
    return base


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
def test_an_output_that_takes_nothing_is_told_in_one_line():
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "heron_env", "envs"], stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert done.returncode == 2
    told = "error: a file or the output: No space left on device; mend that, or choose another folder or file\n"
    assert done.stderr == told


FORKED = """
import os, sys
from pathlib import Path
from heron_env.files.writing import lock_folder
held = lock_folder(Path(sys.argv[1]))
if not (child := os.fork()):
    del held  # its copy of the lock ends, and the process in its usual way
    sys.exit(0)
os.waitpid(child, 0)
print("forked", flush=True)
input()
"""


def test_a_fork_that_ends_does_not_free_the_lock_and_the_end_of_its_holder_does(tmp_path: Path):
    if not hasattr(os, "fork"):
        pytest.skip("this system has no fork")
    words = [sys.executable, "-c", FORKED, str(tmp_path)]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None and holder.stdout.readline() == "forked\n"
        assert lock_folder(tmp_path) is None
        holder.kill()
        holder.wait(timeout=30)
    ours = lock_folder(tmp_path)
    assert ours is not None
    assert lock_folder(tmp_path) is None, "within one process, too"
    ours.release()
