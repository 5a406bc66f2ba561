"""Hub and nodes on two hosts: network namespaces of this test, with a queue of the kernel between them (tc tbf)."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

HUB, NODES = "heron-test-hub", "heron-test-nodes"
ADDRESS = "10.77.0.1"
RATE = "220kbit"


def system(*words: str) -> None:
    subprocess.run(words, check=True, capture_output=True, timeout=20)


@pytest.fixture
def hosts() -> Iterator[None]:
    """Both namespaces, joined by a pair of virtual cables. Skips where the machine does not allow them."""
    if os.geteuid() != 0 or not shutil.which("ip") or not shutil.which("tc"):
        pytest.skip("network namespaces need root, ip and tc (iproute2)")
    try:
        for name in (HUB, NODES):
            system("ip", "netns", "add", name)
        system("ip", "link", "add", "hub", "netns", HUB, "type", "veth", "peer", "name", "nodes", "netns", NODES)
        for name, cable, last in ((HUB, "hub", 1), (NODES, "nodes", 2)):
            system("ip", "-n", name, "addr", "add", f"10.77.0.{last}/24", "dev", cable)
            for link in (cable, "lo"):
                system("ip", "-n", name, "link", "set", link, "up")
            queue = ("root", "tbf", "rate", RATE, "burst", "2kb", "latency", "300ms")
            system("ip", "netns", "exec", name, "tc", "qdisc", "add", "dev", cable, *queue)
        yield
    except subprocess.CalledProcessError as error:
        pytest.skip(f"no network namespaces here: {error.stderr.decode()[-200:]}")
    finally:
        for name in (HUB, NODES):
            subprocess.run(["ip", "netns", "del", name], check=False, capture_output=True)


@pytest.mark.e2e
def test_a_run_between_two_hosts_is_repeated(hosts: None, tmp_path: Path) -> None:
    def heron(*words: str) -> list[str]:
        return [sys.executable, "-m", "heron_env", *words]

    def on(name: str, *words: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            ["ip", "netns", "exec", name, *heron("real", *words)], cwd=tmp_path, text=True, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )  # fmt: skip

    subprocess.run(heron("real", "secret", "plant.secret"), cwd=tmp_path, check=True, timeout=60)
    common = ("--secret", "plant.secret")
    hub = on(HUB, "hub", "heron/Spread-v0", "--listen", f"{ADDRESS}:7400", *common, "--until", "1.5", "--json")
    policy = ("--policy", "assigned landmark", "--env", "heron/Spread-v0")
    nodes = [on(NODES, "node", f"agent_{i}", "--hub", f"{ADDRESS}:7400", *common, *policy) for i in range(3)]
    try:
        output, _ = hub.communicate(timeout=100)
        assert hub.returncode == 0, output
        for node in nodes:
            words, _ = node.communicate(timeout=20)
            assert node.returncode == 0, words
    finally:
        for process in (hub, *nodes):
            process.kill()
    said = json.loads(output[output.index("{") :])
    assert said["messages"]["sent"] > 300 and not any(said["refused"].values())
    repeated = subprocess.run(
        heron("replay", "runs/real"), cwd=tmp_path, capture_output=True, text=True, timeout=100, check=False
    )
    assert repeated.returncode == 0 and repeated.stdout.startswith("identical: "), repeated.stdout + repeated.stderr
