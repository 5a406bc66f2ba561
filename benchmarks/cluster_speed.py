"""How a sweep on a Ray cluster grows from one node to two, on this machine: episodes a second, and the driver's share.

    RAY_USAGE_STATS_ENABLED=0 python -m benchmarks.cluster_speed    # needs: heron_env[ray]

Nodes of one CPU each on the loopback interface; each count is measured twice, in turns, after a sweep that starts
workers and compiles. The driver's CPU time is what one process has to do for each episode, however many nodes there
are: its journal, its results, Ray's bookkeeping.
"""

import json
import os
import time
from pathlib import Path

os.environ |= {"RAY_USAGE_STATS_ENABLED": "0", "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}  # the latter: on 127.0.0.1
import ray
from ray.cluster_utils import Cluster

from heron_env import Baseline, Condition, Sweep
from heron_env.files import write_all
from heron_env.lab import versions
from heron_env.worlds.energy_management import MPC

OUT = Path("benchmarks/results/cluster.json")
CONDITIONS = [Condition(msg_delay=delay) for delay in (1.0, 3.0)]


def a_sweep(cases: int) -> Sweep:
    """Days of EnergyManagement with MPC, which asks a solver: seconds an episode."""
    return Sweep.of("heron/EnergyManagement-v1", {"MPC": Baseline(MPC)}, CONDITIONS, cases=cases)


def measured(address: str, cases: int) -> dict[str, float]:
    """Of one sweep."""
    sweep, began, cpu = a_sweep(cases), time.perf_counter(), time.process_time()
    sweep.run(ray=address, progress=False)
    return {
        "episodes": len(sweep.items()),
        "seconds": round(time.perf_counter() - began, 2),
        "driver_cpu_seconds": round(time.process_time() - cpu, 2),
    }


def main() -> None:
    """One node, two nodes, and again."""
    nodes = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False})
    nodes.add_node(num_cpus=1)
    ray.init(address=nodes.address, log_to_driver=False, configure_logging=False)
    rows = []
    for _ in range(2):
        for count in (1, 2):
            second = nodes.add_node(num_cpus=1) if count == 2 else None
            nodes.wait_for_nodes()
            measured(nodes.address, 2)
            rows.append({"nodes": count, **measured(nodes.address, 12)})
            print(rows[-1], flush=True)
            if second is not None:
                nodes.remove_node(second)
    ray.shutdown()
    nodes.shutdown()
    write_all({OUT: json.dumps({"schema_version": 1, "rows": rows, "versions": versions()}, indent=1) + "\n"})


if __name__ == "__main__":
    main()
