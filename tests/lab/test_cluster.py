"""Sweeps on a Ray cluster: the same bytes as in one process, whatever becomes of its nodes."""

import json
import os
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import pytest

from heron_env import Condition, Sweep
from heron_env.core.policy import OnBatches
from heron_env.errors import ConfigError, WorkerLost
from heron_env.lab.sweep.executors import OTHER, Driver, Machine, RayCluster, run_task
from heron_env.lab.sweep.play import Worlds, bundles

GRID = "heron/BatteryGrid-v0"
NETWORK = [Condition(msg_delay=0.4, loss=0.1), Condition(act_delay=1.5)]


@dataclass(frozen=True)
class Slow:
    """A policy that takes its time to be built; in workers it says in `folder` that it was, and may end them."""

    seconds: float = 0.0
    folder: str = ""
    kills: bool = False
    fails: bool = False
    driver: int = field(default_factory=os.getpid)

    def build(self, env: Any, seed: int) -> dict[str, Any]:
        working = bool(self.folder) and os.getpid() != self.driver
        if working:
            time.sleep(self.seconds)
            (Path(self.folder) / f"{os.getpid()}-{time.monotonic_ns()}").touch()
        if working and self.kills:
            os._exit(1)
        if working and self.fails:
            raise ConfigError("it fails on purpose")
        return {agent: Hold() for agent in env.possible_agents}

    def __repr__(self) -> str:
        return "Slow()"


class Hold(OnBatches):
    """Towards half a charge."""

    def forward_batch(self, vectors: np.ndarray) -> np.ndarray:
        return 0.1 * (0.5 - vectors[:, :1].astype(np.float64))


def a_sweep(policy: Slow, cases: int = 4) -> Sweep:
    return Sweep.of(GRID, {"slow": policy}, NETWORK, cases=cases, options={"max_steps": 5})


def without_times(folder: Path) -> dict[str, Any]:
    """All bytes of the tables but the seconds that episodes took."""
    table = json.loads((folder / "table.json").read_text())
    for row in table["rows"]:
        del row["seconds"]
    lines = [line.rsplit("|", 1)[0] for line in (folder / "table.md").read_text().splitlines()]
    return {"json": json.dumps(table), "md": lines}


# Without Ray


def test_what_ran_on_another_machine_says_so_and_in_what_it_differs() -> None:
    items = a_sweep(Slow(), 1).items()
    (bundle, *_) = bundles(items, 1, Worlds())
    here, mine = Driver.here(), Machine.here()
    assert [record.outcome.notes for record in run_task(bundle, here, mine)] == [[]] * len(bundle)
    features = mine.features.replace("+sse2", "-sse2") + ",+made_up"
    other = replace(mine, cpu="made-up", features=features)
    (note,) = run_task(bundle, here, other)[0].outcome.notes
    assert note == f"{OTHER}: cpu {mine.cpu} instead of made-up, features +sse2 -made_up"


def test_the_note_is_in_the_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sweep, here = a_sweep(Slow(), 2), Driver.here()
    there = replace(Machine.here(), heron_env="0.0.9")

    class Elsewhere:
        count = 1

        def __init__(self, address: str) -> None:
            assert address == "auto"

        def run(self, some: Any, worlds: Any) -> Any:
            yield from ((bundle, run_task(bundle, here, there)) for bundle in some)

    monkeypatch.setattr("heron_env.lab.sweep.executors.RayCluster", Elsewhere)
    sweep.run(tmp_path, ray="auto", progress=False)
    note = f"{OTHER}: heron_env {Machine.here().heron_env} instead of 0.0.9"
    assert note in (tmp_path / "table.md").read_text()
    assert all(note in row["notes"] for row in json.loads((tmp_path / "table.json").read_text())["rows"])


def test_without_ray_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ConfigError, match=r"pip install 'heron_env\[ray\]'"):
        a_sweep(Slow(), 1).run(ray="auto", progress=False)


class RayError(Exception):
    """Of the same tree as Ray's own."""


class RayTaskError(RayError):
    cause: Exception


class WorkerCrashedError(RayError):
    pass


class LocalRayletDiedError(RayError):
    pass


@dataclass
class FailingRay:
    """Answers as Ray does, until its call `where` raises."""

    where: str
    error: Exception
    exceptions: ClassVar[Any] = SimpleNamespace(
        RayError=RayError, RayTaskError=RayTaskError, WorkerCrashedError=WorkerCrashedError,
        NodeDiedError=WorkerCrashedError, OutOfMemoryError=WorkerCrashedError,
    )  # fmt: skip

    def _call(self, name: str, result: Any) -> Any:
        if name == self.where:
            raise self.error
        return result

    def remote(self, function: Any) -> Any:
        task = SimpleNamespace(remote=lambda *_: self._call("remote", object()))
        return SimpleNamespace(options=lambda **_: task)

    def put(self, value: Any) -> Any:
        return self._call("put", value)

    def wait(self, references: list[Any]) -> Any:
        return self._call("wait", (references[:1], references[1:]))

    def get(self, reference: Any) -> Any:
        return self._call("get", [])

    def cluster_resources(self) -> dict[str, float]:
        return self._call("cluster_resources", {"CPU": 1.0})


def failing(where: str, error: Exception) -> WorkerLost:
    cluster = RayCluster.__new__(RayCluster)
    cluster._ray = FailingRay(where, error)
    with pytest.raises(WorkerLost) as caught:
        list(cluster.run(bundles(a_sweep(Slow(), 1).items(), 1, Worlds()), Worlds()))
    return caught.value


@pytest.mark.parametrize("where", ["put", "remote", "wait", "get", "cluster_resources"])
def test_where_ray_itself_dies_the_error_says_so_and_how_to_go_on(where: str) -> None:
    told = str(failing(where, LocalRayletDiedError("The task's local raylet died. Check the log\nfor more")))
    assert told.startswith(
        "Ray itself failed, not the sweep (LocalRayletDiedError: The task's local raylet died. Check the log)."
    )
    assert "`ray status`" in told and told.endswith("What is done is kept: run the sweep again")


def test_what_ray_raises_in_a_task_is_its_failure_and_a_lost_worker_the_task_s() -> None:
    wrapped = RayTaskError()
    wrapped.cause = RayError("System error: No module named 'mine'\ntraceback: ...")
    assert "(RayError: System error: No module named 'mine')" in str(failing("get", wrapped))
    lost = str(failing("get", WorkerCrashedError("died")))
    assert lost.startswith("Ray ran this 4 times, and each time its worker or node was lost: policy 'slow'")


# With Ray

far = pytest.mark.far


@pytest.fixture(scope="module")
def nodes() -> Iterator[Any]:
    """A head that runs no tasks, on the loopback interface."""
    os.environ |= {"RAY_USAGE_STATS_ENABLED": "0", "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}  # the latter: on 127.0.0.1
    pytest.importorskip("ray")
    import ray
    from ray.cluster_utils import Cluster as Nodes

    made = Nodes(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False})
    assert made.address.startswith("127.0.0.1:")
    ray.init(address=made.address, log_to_driver=False, configure_logging=False)
    yield made
    ray.shutdown()
    made.shutdown()


def a_node(nodes: Any) -> Any:
    node = nodes.add_node(num_cpus=1)
    nodes.wait_for_nodes()
    return node


@far
def test_a_node_that_is_killed_in_the_middle_loses_nothing(nodes: Any, tmp_path: Path) -> None:
    times = tmp_path / "times"
    times.mkdir()
    a_sweep(Slow()).run(tmp_path / "here", processes=1, progress=False)
    doomed, stays = a_node(nodes), a_node(nodes)

    def kill() -> None:
        deadline = time.monotonic() + 120.0
        while len(list(times.iterdir())) < 3 and time.monotonic() < deadline:
            time.sleep(0.02)
        nodes.remove_node(doomed, allow_graceful=False)

    killing = threading.Thread(target=kill)
    killing.start()
    sweep = a_sweep(Slow(0.5, str(times)))
    assert RayCluster(nodes.address).count == 2
    sweep.run(tmp_path / "there", ray=nodes.address, progress=False)
    killing.join()
    built = [each.name.partition("-")[0] for each in times.iterdir()]
    assert len(set(built)) >= 2, "one worker alone did all"
    assert without_times(tmp_path / "here") == without_times(tmp_path / "there")
    nodes.remove_node(stays)


@far
def test_an_error_of_an_episode_is_raised_as_it_is(nodes: Any, tmp_path: Path) -> None:
    node = a_node(nodes)
    with pytest.raises(ConfigError, match="it fails on purpose") as told:
        a_sweep(Slow(folder=str(tmp_path), fails=True), 1).run(ray=nodes.address, progress=False)
    assert any(note.startswith("while running policy 'slow'") for note in told.value.__notes__)
    assert any(note.startswith("on ") for note in told.value.__notes__)
    nodes.remove_node(node)


@far
def test_what_kills_its_worker_each_time_is_an_error_that_names_it(nodes: Any, tmp_path: Path) -> None:
    node = a_node(nodes)
    out, times = tmp_path / "out", tmp_path / "times"
    times.mkdir()
    with pytest.raises(WorkerLost, match=r"Ray ran this 4 times, .* was lost: policy 'slow' in heron/BatteryGrid"):
        a_sweep(Slow(folder=str(times), kills=True), 1).run(out, ray=nodes.address, progress=False)
    assert not (out / "table.json").exists()
    a_sweep(Slow(), 1).run(out, ray=nodes.address, progress=False)
    assert (out / "table.json").exists()
    nodes.remove_node(node)


@pytest.mark.parametrize("address", ["127.0.0.1:1", "127.0.0.1"])
def test_where_no_cluster_is_the_error_says_how_to_start_one(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    ray = pytest.importorskip("ray")
    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    with pytest.raises(ConfigError, match=rf"ray='{address}': no Ray cluster answers there .*`ray start --head`"):
        RayCluster(address)
