"""The same rollouts in other processes (`child.py`), with a time limit."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from heron_env.testing.recording import Entry
from heron_env.testing.subject import Subject

NOT_BUILT = 3
"""Exit code of a process that could not build the environment; its last line says why."""


class CannotGoElsewhere(Exception):
    """Why no other process can build this environment."""


def record_elsewhere(subject: Subject, hash_seeds: tuple[str, ...]) -> dict[str, list[Entry]]:
    """The records of one process per PYTHONHASHSEED, all at the same time.

    Raises CannotGoElsewhere if they can't build the environment, TimeoutError if one does not come to an end.
    """
    if subject.reference is None:
        raise CannotGoElsewhere(subject.no_reference)
    try:
        order = pickle.dumps((subject.reference, subject.options, subject.seed, subject.steps))
    except Exception as error:
        raise CannotGoElsewhere(f"the options can't be sent to another process ({error})") from error
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "order").write_bytes(order)
        started = {seed: _start(folder, seed) for seed in hash_seeds}
        try:
            return _collect(started, folder, subject.timeout)
        finally:
            for process in started.values():
                process.kill()
                process.wait()


def _start(folder: str, hash_seed: str) -> subprocess.Popen[bytes]:
    path = os.pathsep.join([os.getcwd() if entry == "" else entry for entry in sys.path])
    surroundings = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": path}
    with (Path(folder) / f"said-{hash_seed}").open("wb") as said:
        return subprocess.Popen(
            [sys.executable, "-m", "heron_env.testing.child", folder, hash_seed],
            env=surroundings, stdin=subprocess.DEVNULL, stdout=said, stderr=said,
        )  # fmt: skip


def _collect(started: dict[str, subprocess.Popen[bytes]], folder: str, timeout: float) -> dict[str, list[Entry]]:
    deadline = time.monotonic() + timeout
    records = {}
    for seed, process in started.items():
        try:
            code = process.wait(max(0.1, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            raise TimeoutError(f"another process had not finished after {timeout:g} s") from None
        said = (Path(folder) / f"said-{seed}").read_text(encoding="utf-8", errors="replace").strip().splitlines()
        if code == NOT_BUILT:
            raise CannotGoElsewhere(said[-1])
        if code:
            raise RuntimeError(f"in another process: {said[-1] if said else f'exit code {code}'}")
        found = json.loads((Path(folder) / f"record-{seed}").read_text(encoding="utf-8"))
        records[seed] = [Entry(what, when, tuple(names), tuple(values)) for what, when, names, values in found]
    return records
