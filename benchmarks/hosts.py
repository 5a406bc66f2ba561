"""Two hosts on one machine: network namespaces that only a process and its children see. Linux, iproute2, util-linux.

A script runs itself anew in a namespace (`apart`) and makes another one beside it (`far_host`); nothing leaves them.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import shutil
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from select import select
from typing import Final

from heron_env.seeding import stream

NEAR, FAR = "10.77.0.1", "10.77.0.2"
CARD: Final = "02:00:00:00:00:02"
"""Address of the far host's card."""
NEW_NET: Final = 0x40000000
"""CLONE_NEWNET, TUNSETIFF and IFF_TUN | IFF_NO_PI of Linux's headers."""
TUN_SET, TUN_PLAIN = 0x400454CA, 0x1001


def missing(*programs: str) -> str:
    """What this machine lacks for namespaces and these programs, in words; "" if it has all."""
    lacks = [name for name in ("ip", "tc", "unshare", *programs) if path_of(name) is None]
    if lacks:
        return f"not installed here: {', '.join(lacks)}"
    tried = subprocess.run([*_apart(), "ip", "link", "add", "near", "type", "veth"], capture_output=True, text=True)
    return f"no network namespaces with veth here: {tried.stderr.strip()[-200:]}" if tried.returncode else ""


def path_of(program: str) -> str | None:
    """Where a program is; those of the system may be outside the user's path."""
    return shutil.which(program) or shutil.which(program, path="/usr/sbin:/usr/local/sbin:/sbin")


def _apart() -> list[str]:
    return ["unshare", "--net"] if os.geteuid() == 0 else ["unshare", "--map-root-user", "--net"]


def apart(module: str, *words: object) -> subprocess.Popen[str]:
    """`python -m module words` in a namespace of its own, its output to be read."""
    command = [*_apart(), sys.executable, "-m", module, *map(str, words)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def output(process: subprocess.Popen[str]) -> str:
    """What it printed. Raises SystemExit where it failed."""
    text, _ = process.communicate()
    if process.returncode:
        raise SystemExit(f"{' '.join(map(str, process.args))} ended with {process.returncode}")  # type: ignore[arg-type]
    return text


def system(line: str) -> None:
    """Run a command. Raises CalledProcessError."""
    words = line.split()
    subprocess.run([path_of(words[0]) or words[0], *words[1:]], check=True)


@contextmanager
def far_host() -> Iterator[int]:
    """Another namespace, as long as a process is in it: its id."""
    holder = subprocess.Popen(["unshare", "--net", "sleep", "1000000"])
    try:
        ours = os.readlink("/proc/self/ns/net")
        while os.readlink(f"/proc/{holder.pid}/ns/net") == ours:
            time.sleep(0.01)
        yield holder.pid
    finally:
        holder.kill()
        holder.wait()


def on(pid: int, line: str) -> str:
    """A command line, for the other host."""
    return f"nsenter --target {pid} --net {line}"


@contextmanager
def standing_on(pid: int) -> Iterator[None]:
    """What this thread opens or starts here is the other host's. Raises OSError."""
    back = os.open("/proc/self/ns/net", os.O_RDONLY)
    there = os.open(f"/proc/{pid}/ns/net", os.O_RDONLY)
    try:
        _enter(there)
        yield
    finally:
        _enter(back)
        os.close(there)
        os.close(back)


def _enter(namespace: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.setns(namespace, NEW_NET):
        raise OSError(ctypes.get_errno(), "setns")


def cable(pid: int) -> None:
    """Join both hosts by a pair of virtual cards, near and far; neither asks for addresses."""
    system(f"ip link add near type veth peer name far address {CARD} netns {pid}")
    _up(pid)
    system(f"ip neigh add {FAR} lladdr {CARD} dev near nud permanent")


def _up(pid: int) -> None:
    for prefix, name, address in (("", "near", NEAR), (on(pid, ""), "far", FAR)):
        system(f"{prefix}ip link set {name} addrgenmode none")
        system(f"{prefix}ip address add {address}/24 dev {name}")
        system(f"{prefix}ip link set {name} up")
        system(f"{prefix}ip link set lo up")


class LossyLink:
    """Joins both hosts by a program that carries each packet, or drops it by chance, independently, either way.

    Attributes:
        loss: the share that is dropped; may be set at any time.
        carried, dropped: packets, where there is loss.
    """

    def __init__(self, pid: int, *seed: int) -> None:
        self.loss, self.carried, self.dropped = 0.0, 0, 0
        self._random, self._ends = stream(0, "loss", *seed), [_tunnel("near"), _tunnel("far")]
        system(f"ip link set far netns {pid}")
        _up(pid)
        threading.Thread(target=self._carry, daemon=True).start()

    def _carry(self) -> None:
        with suppress(OSError):  # until the far host is gone
            while True:
                for end in select(self._ends, [], [])[0]:
                    packet = os.read(end, 65536)
                    if self.loss and self._random.random() < self.loss:
                        self.dropped += 1
                    else:
                        self.carried += bool(self.loss)
                        os.write(self._ends[end == self._ends[0]], packet)


def _tunnel(name: str) -> int:
    """A card whose packets a program reads and writes. Raises OSError: it needs /dev/net/tun."""
    end = os.open(Path("/dev/net/tun"), os.O_RDWR)
    fcntl.ioctl(end, TUN_SET, struct.pack("16sH22x", name.encode(), TUN_PLAIN))
    return end
