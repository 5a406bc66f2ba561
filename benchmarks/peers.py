"""Other libraries as subprocesses: each by the interpreter of its own virtual environment, asked in turns with us.

A peer is never a dependency: jaxmarl and vmas need versions of other packages that heron_env refuses.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final

from benchmarks.case import Case, Role
from heron_env.errors import ConfigError

SCRIPT: Final = Path(__file__).with_name("peer_spread.py")
PEERS: Final = {"mpe2": "MPE in PettingZoo", "vmas": "VMAS", "jaxmarl": "JaxMARL", "jax": "JaxEnv"}
"""Folder below `--peers`, and what the table calls it. JaxEnv is ours, with heron_env beside jax."""
JAX_ENV: Final = (3, 1024)
"""Agents and environments with which JaxEnv is asked."""
CPU_ONLY: Final = {"JAX_PLATFORMS": "cpu", "CUDA_VISIBLE_DEVICES": ""}


def found_peers(folder: Path | None) -> dict[str, Path]:
    """The interpreters of the peers in `folder`, by the peer's name. Raises ConfigError where there is none."""
    if folder is None:
        return {}
    found = {name: path for name in PEERS if (path := folder / name / "bin" / "python").is_file()}
    if not found:
        raise ConfigError(
            f"--peers {folder}: holds no virtual environment of a peer; make one with 'python -m venv "
            f"{folder / 'mpe2'}', or name a folder that has some of {', '.join(PEERS)}"
        )
    return found


def peer_versions(pythons: Mapping[str, Path]) -> dict[str, str]:
    """The version of each peer, as its own interpreter knows it; empty text where it is not installed there."""
    code = "import sys; from importlib.metadata import version; print(version(sys.argv[1]))"
    return {
        name: subprocess.run(
            [str(python), "-c", code, name], capture_output=True, text=True, check=False
        ).stdout.strip()
        for name, python in pythons.items()
    }


class Peer:
    """One peer at work on simple_spread: answers with its env-steps/CPU-s. Raises ConfigError where it doesn't start.

    cpu_seconds: what it has spent on its answers so far.
    """

    def __init__(self, python: Path, name: str, agents: int, envs: int) -> None:
        self.name, self.cpu_seconds = name, 0.0
        command = [str(python), "-P", str(SCRIPT), name, str(agents), str(envs)]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
            env={**os.environ, **CPU_ONLY},
        )  # fmt: skip
        self.version: str = self._answer()["version"]

    def rate(self, seconds: float) -> float:
        """Work for about so long."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{seconds}\n")
        self._process.stdin.flush()
        answer = self._answer()
        self.cpu_seconds += answer["cpu"]
        return float(answer["rate"])

    def close(self) -> None:
        """Its input ends, and so does it."""
        self._process.communicate()

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            self.close()
            code = self._process.returncode
            raise ConfigError(
                f"--peers: the peer {self.name!r} stopped with exit code {code}; run {SCRIPT.name} by hand with its "
                "interpreter to see why, or leave its folder out"
            )
        answer: dict[str, Any] = json.loads(line)
        return answer


def peer_cases(pythons: Mapping[str, Path], agents: int, envs: int) -> list[Case]:
    """A case for each peer that has this size."""
    cases = []
    for name, python in pythons.items():
        if name != "jax" or (agents, envs) == JAX_ENV:
            peer, role = Peer(python, name, agents, envs), Role.OURS if name == "jax" else Role.PEER
            cpu = partial(getattr, peer, "cpu_seconds")
            cases.append(Case(PEERS[name], peer.rate, role, close=peer.close, cpu=cpu))
    return cases
