"""The weights that earned most on the way, not the last. Planted once and caught: the worst, weights not copied."""

from pathlib import Path
from typing import Any

import pytest
from training_kit import tiny, trained

from heron_env import ScheduleConfig, load_policy
from heron_env.lab import NetworkPolicy
from heron_env.lab.episodes import Earned
from heron_env.lab.learning.train import Episodes, Validation

EARNED = [3.0, 1.0, 7.0, 2.0, 5.0, 4.0]
"""On the way, from the start on; not what they really earn."""


def weights(policies: Any) -> list[bytes]:
    found = [policy.network.layers for policy in policies.values() if isinstance(policy, NetworkPolicy)]
    return [part.tobytes() for layers in found for layer in layers for part in layer]


@pytest.mark.parametrize("clock", ["synchronous", pytest.param("network", marks=pytest.mark.e2e)])
def test_the_best_of_the_curve_is_kept(clock: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    seen: list[list[bytes]] = []
    judge = Validation.measure

    def judged(self: Validation, policies: Any, stops: Any) -> Episodes:
        if not any(isinstance(policy, NetworkPolicy) for policy in policies.values()) or len(seen) == len(EARNED):
            return judge(self, policies, stops)
        seen.append(weights(policies))
        earned, other = [Earned(EARNED[len(seen) - 1], {})], [Earned(float(len(seen)), {})]
        return Episodes(other, earned) if clock == "network" else Episodes(earned, [])

    monkeypatch.setattr(Validation, "measure", judged)
    run = trained(
        tmp_path / "run",
        total_steps=400,
        env_options={"max_steps": 6, "compile": True},
        hyperparameters=tiny(keep_best=True),
        validations=5,
        schedule=ScheduleConfig(msg_delay=0.5, act_delay=1.0) if clock == "network" else None,
    )
    assert len(seen) == len(EARNED)
    assert set(weights(load_policy(run.path))) == set(seen[2]) != set(seen[-1])
    assert run.config.kept_at is not None and 0 < run.config.kept_at < run.config.transitions
