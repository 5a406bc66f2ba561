"""What is kept of one episode: the team's return and what explains it."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from heron_env.core.adding import one_by_one
from heron_env.envs.base import HeronEnv
from heron_env.envs.results import EpisodeResult, Percentiles
from heron_env.errors import ConfigError


@dataclass(frozen=True)
class Outcome:
    """One episode in figures; ages and latencies in s, means over the deciding agents, nan where there were none."""

    value: float
    """Return of the team."""
    course: str
    """Digest of rewards, actions and ends: equal where two runs are equal bit for bit."""
    kpis: dict[str, float]
    staleness_p95: float
    latency_p95: float
    notes: list[str]


def outcome(env: HeronEnv, result: EpisodeResult) -> Outcome:
    """What is kept of an episode that has just run in `env`."""
    return Outcome(
        value=team_return(env, result),
        course=course(result),
        kpis=result.kpis,
        staleness_p95=_mean_p95(result.staleness),
        latency_p95=_mean_p95(result.latency),
        notes=list(result.notes),
    )


def team_return(env: HeronEnv, result: EpisodeResult) -> float:
    """The system agent's return, or the sum of the possible agents' where the system agent is paid nothing.

    Raises ConfigError where the result is none of this environment's.
    """
    if not isinstance(env, HeronEnv) or not isinstance(result, EpisodeResult):
        raise ConfigError(f"team_return({env!r:.100}, {result!r:.100}): give an environment and what it returned")
    if env.hierarchy.ids[0] not in result.rewards:
        raise ConfigError(f"team_return({env!r:.100}, {result!r:.100}): the episode is of another environment")
    paid = result.rewards[env.hierarchy.ids[0]]
    returns = result.returns
    if any(value != 0.0 for _, value in paid):
        return returns[env.hierarchy.ids[0]]
    return one_by_one(returns[agent] for agent in env.possible_agents)


def course(result: EpisodeResult) -> str:
    """128 bits over every reward, action and end, in hexadecimal; -0.0 counts as 0.0, which it equals."""
    digest = hashlib.blake2b(digest_size=16)
    for kind, table in (("rewards", result.rewards), ("actions", result.actions)):
        for agent, entries in table.items():
            digest.update(f"{kind} {agent} {len(entries)}".encode())
            digest.update(np.array([time for time, _ in entries], dtype=np.float64).tobytes())
            digest.update((np.array([value for _, value in entries], dtype=np.float64) + 0.0).tobytes())
    digest.update(repr((result.terminated, result.truncated)).encode())
    return digest.hexdigest()


def _mean_p95(percentiles: Mapping[str, Percentiles]) -> float:
    measured = [p.p95 for p in percentiles.values() if p.count]
    return float(np.mean(measured)) if measured else float("nan")
