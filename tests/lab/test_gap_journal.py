"""The journal of a sweep when the disk lets it down."""

import errno
import os
import re
from pathlib import Path

import pytest
from cli_kit import heron

from heron_env import Condition, Sweep
from heron_env.errors import ConfigError, RunFolderError
from heron_env.lab.sweep.records import SweepJournal


def asked() -> Sweep:
    conditions = [Condition(act_delay=2.0), Condition(loss=0.2)]
    return Sweep.of("heron/BatteryGrid-v0", {"random": "random"}, conditions, cases=3, options={"max_steps": 5})


def test_settings_without_a_result_do_not_hold_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def stopped(self: object, record: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(SweepJournal, "add", stopped)
        asked().run(tmp_path, processes=1)
    (tmp_path / "results.jsonl").write_text('{"policy": "rand')  # half a line is no result
    other = Sweep.of("heron/BatteryGrid-v0", {"random": "random"}, [], cases=1, options={"max_steps": 5})
    other.run(tmp_path, processes=1)
    with pytest.raises(ConfigError, match="holds a sweep with other settings"):
        asked().run(tmp_path, processes=1)


def test_a_full_disk_names_the_file_and_keeps_what_is_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    room = [3]

    def write(file: int, data: bytes, to_disk=os.write) -> int:
        if not room[0]:
            to_disk(file, data[:40])
            raise OSError(errno.ENOSPC, "No space left on device")
        room[0] -= 1
        return to_disk(file, data)

    monkeypatch.setattr(os, "write", write)
    with pytest.raises(OSError, match=re.escape(f"No space left on device: '{tmp_path / 'results.jsonl'}'")):
        asked().run(tmp_path, processes=1)
    monkeypatch.undo()
    told = []
    asked().run(tmp_path, processes=1, progress=told.append)
    assert (told[0].done, told[-1].done) == (3, 12)


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


FOREIGN = {
    "results of something else": {"results.jsonl": b'{"loss": 0.3}\n{"loss": 0.2}\n'},
    "results that end in half a line": {"results.jsonl": b"mine, and precious"},
    "an empty file of results": {"results.jsonl": b""},
    "a table": {"table.md": b"| mine |\n"},
    "another sweep.json": {"sweep.json": b'{"project": "mine"}', "table.csv": b"mine\n"},
    "another sweep.json with results": {"sweep.json": b"not even JSON", "results.jsonl": b'{"loss": 0.3}\n{"lo'},
}


@pytest.mark.parametrize("files", FOREIGN.values(), ids=FOREIGN)
@pytest.mark.parametrize("from_command_line", [False, True], ids=["run", "command"])
def test_what_no_sweep_wrote_is_left_as_it_is(tmp_path: Path, files: dict[str, bytes], from_command_line: bool):
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    if from_command_line:
        words = ["sweep", "heron/BatteryGrid-v0", "random", "--axis", "loss=0", "--cases", "1", "--processes", "1"]
        told = heron(*words, "-o", "max_steps=3", "--out", tmp_path, code=2).stderr.splitlines()[-1]
    else:
        with pytest.raises(ConfigError) as caught:
            asked().run(tmp_path, processes=1)
        told = str(caught.value)
    assert str(tmp_path) in told and "left as it is" in told and "another folder" in told
    assert contents(tmp_path) == files


def test_results_without_their_settings_count_for_no_sweep(tmp_path: Path):
    asked().run(tmp_path, processes=1)
    (tmp_path / "sweep.json").unlink()
    before = contents(tmp_path)
    other = Sweep.of("heron/BatteryGrid-v0", {"random": "random"}, [], cases=3, options={"max_steps": 4})
    for sweep in (asked(), other):
        with pytest.raises(ConfigError, match=r"results\.jsonl is there, but no sweep\.json says of which sweep"):
            sweep.run(tmp_path, processes=1)
    assert contents(tmp_path) == before


def test_a_line_that_is_damaged_is_named_before_anything_is_cut(tmp_path: Path):
    asked().run(tmp_path, processes=1)
    results = tmp_path / "results.jsonl"
    results.write_bytes(results.read_bytes().replace(b'"value": ', b'"value": "', 1) + b'{"policy": "rand')
    before = contents(tmp_path)
    with pytest.raises(RunFolderError, match=r"results\.jsonl:1: no line of a sweep"):
        asked().run(tmp_path, processes=1)
    assert contents(tmp_path) == before
