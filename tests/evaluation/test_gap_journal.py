"""The journal of a sweep when the disk lets it down."""

import errno
import os
import re
from pathlib import Path

import pytest

from heron_env.errors import ConfigError
from heron_env.evaluation.gap.conditions import Condition
from heron_env.evaluation.gap.journal import Journal
from heron_env.evaluation.gap.sweep import Sweep


def asked() -> Sweep:
    conditions = [Condition(act_delay=2.0), Condition(loss=0.2)]
    return Sweep.of("heron/BatteryGrid-v0", {"random": "random"}, conditions, cases=3, options={"max_steps": 5})


def test_settings_without_a_result_do_not_hold_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def stopped(self: object, record: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(Journal, "add", stopped)
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
