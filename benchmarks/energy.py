"""EnergyManagement: a day with 20 batteries through PettingZoo's API, and batches of such days."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle
from typing import Any, Final

import numpy as np

from benchmarks.case import Case, Comparison, Setting, timed
from benchmarks.grid import BATCH, single_cases
from heron_env import make

ENERGY: Final = "heron/EnergyManagement-v1"
BATTERIES: Final = 20
LANES: Final = 1024


def comparisons() -> list[Comparison]:
    """One environment with its own substeps; a batch with one."""
    return [
        Comparison(
            "energy-single", f"EnergyManagement, {BATTERIES} batteries, 30 substeps", "env-steps/s", _single, quick=True
        ),
        Comparison(
            "energy-batch", f"EnergyManagement, {BATTERIES} batteries, 1 substep, {LANES:,} environments",
            "agent-steps/s", _batch,
        ),
    ]  # fmt: skip


def _single(setting: Setting) -> Sequence[Case]:
    return single_cases(make(ENERGY, num_batteries=BATTERIES))


def _batch(setting: Setting) -> Sequence[Case]:
    from heron_env import BatchEnv

    env = BatchEnv(ENERGY, LANES, num_batteries=BATTERIES, physics_substeps=1)
    env.reset()
    space: Any = env.action_spaces["battery"]
    draw = np.random.default_rng(0)
    shape = (LANES, BATTERIES, *space.shape)
    bank = cycle([draw.uniform(space.low, space.high, shape).astype(np.float32) for _ in range(8)])
    return [Case(BATCH, timed(lambda: env.step({"battery": next(bank)}), LANES * BATTERIES))]
