"""Days of EnergyManagement under a network, as a sweep runs them: lanes of the compiled clock, or one by one."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from benchmarks.case import Case, Comparison, Role, Setting
from benchmarks.energy import ENERGY
from benchmarks.event_batch import OPTIONS
from heron_env import HeronEnv, make
from heron_env.core.policy import Policies
from heron_env.lab import Baseline, Condition, NetworkPolicy, PolicySpec, benchmark
from heron_env.lab.sweep.plan import Item
from heron_env.lab.sweep.records import run_item
from heron_env.lab.sweep.running import MOST, run_bundle
from heron_env.lab.trained import Correction, Network, Scaling
from heron_env.registry import spec
from heron_env.seeding import key, uniforms
from heron_env.worlds.energy_management import STRONGEST

UNDER: Final = Condition(msg_delay=3.0, act_delay=2.0, jitter=0.3, loss=0.05)
HIDDEN: Final = 64
LANES, PYTHON = "days side by side", "Python event clock, one by one"
TEST_DAYS, WARM, PYTHON_DAYS, SHORT = 73, 8, 2, 0.3


@dataclass(frozen=True)
class Untrained:
    """A PolicySpec: the strongest rule, corrected by a network of 2 x 64 as training leaves it; its weights are drawn.

    What a network costs does not depend on its weights.
    """

    def build(self, env: HeronEnv, seed: int) -> Policies:
        """One for each group."""
        rules, index, found = benchmark.baselines(env, seed)[STRONGEST], env.hierarchy.index, dict[str, Any]()
        for group, agents in env.group_map.items():
            act = env.simulation.specs[index[agents[0]]]
            inputs = env.simulation.plan.size(index[agents[0]])
            sizes = (inputs, HIDDEN, HIDDEN, act.size)
            layers = tuple(_layer(k, *sizes[k : k + 2]) for k in range(3))
            scaling = Scaling(np.zeros(inputs), np.full(inputs, 3.0))
            correction = Correction(np.asarray(act.low), np.asarray(act.high), rules[group])  # type: ignore[arg-type]
            found[group] = NetworkPolicy(Network(layers), scaling, correction)
        return found


def _layer(number: int, inputs: int, outputs: int) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    weights = (uniforms(key(0, "layer", number), (inputs, outputs)) - 0.5) * (12.0 / inputs) ** 0.5
    return weights.astype(np.float32), np.zeros(outputs, dtype=np.float32)


POLICIES: Final[dict[str, PolicySpec]] = {"rule": Baseline(STRONGEST), "trained": Untrained()}


def sweep_name(policy: str, telemetry: str) -> str:
    """Of the comparison."""
    return f"sweep-{policy}-{telemetry}"


def comparisons() -> list[Comparison]:
    """The strongest rule, and that rule corrected by a network; telemetry once a step, and as it comes."""
    return [
        Comparison(
            sweep_name(policy, telemetry), f"Days of EnergyManagement-v1 in a sweep, {policy}, telemetry: {telemetry}",
            "days per CPU s", _days(policy, telemetry), rounds=3,
        )
        for policy in POLICIES for telemetry in OPTIONS
    ]  # fmt: skip


def items(policy: str, telemetry: str, count: int) -> list[Item]:
    """So many days of the test split under the network."""
    options, known = OPTIONS[telemetry], spec(ENERGY)
    repeats = -(-count // TEST_DAYS)
    cases = benchmark.cases(make(ENERGY, **options), min(count, TEST_DAYS), repeats=repeats)[:count]
    return [Item(known, options, policy, POLICIES[policy], n, case, UNDER) for n, case in enumerate(cases)]


def _days(policy: str, telemetry: str) -> Callable[[Setting], Sequence[Case]]:
    def build(setting: Setting) -> Sequence[Case]:
        days = items(policy, telemetry, MOST)

        def together(seconds: float) -> float:
            some = days if seconds >= SHORT else days[:WARM]
            return len(some) / _spent(lambda: run_bundle(tuple(some)))

        def one_by_one(seconds: float) -> float:
            return PYTHON_DAYS / _spent(lambda: [*map(run_item, days[:PYTHON_DAYS])])

        return [Case(LANES, together), Case(PYTHON, one_by_one, Role.FLOOR)]

    return build


def _spent(work: Callable[[], Any]) -> float:
    """CPU seconds."""
    began = time.process_time()
    work()
    return time.process_time() - began
