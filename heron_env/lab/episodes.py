"""What is kept of one episode: the return of the root, and what explains it."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from heron_env.core.rule import one_by_one
from heron_env.envs.episodes import EpisodeResult
from heron_env.envs.percentiles import quantile
from heron_env.errors import ConfigError
from heron_env.lab.benchmark import Env

if TYPE_CHECKING:
    from heron_env.envs.batch.event_lanes import Noted

TEAM: Final = "the team"
"""Whose return it is where a sweep or a run does not name the root, as those of version 0.1.0 do not."""


@dataclass(frozen=True)
class Outcome:
    """One episode in figures; ages and latencies in s, means over the deciding agents, nan where there were none."""

    value: float
    """Return of the root of the hierarchy: the sum of its rewards."""
    course: str
    """Digest of rewards, actions and ends: equal where two runs are equal bit for bit."""
    kpis: dict[str, float]
    staleness_p95: float
    latency_p95: float
    notes: list[str]
    by_group: dict[str, float] = field(default_factory=dict)
    """Returns of the others, summed over the agents of each group; none where version 0.1.0 wrote the line."""
    tokens: int = 0
    """Of the answers of all agents."""


def outcome(env: Env, result: EpisodeResult) -> Outcome:
    """What is kept of an episode that has just run in `env`."""
    return Outcome(
        value=team_return(env, result),
        course=course(result),
        kpis=result.kpis,
        staleness_p95=_mean(p.p95 for p in result.staleness.values() if p.count),
        latency_p95=_mean(p.p95 for p in result.latency.values() if p.count),
        notes=list(result.notes),
        by_group=by_group(env, result.returns),
        tokens=sum(result.tokens.values()),
    )


def lane_outcome(env: Env, lane: Noted) -> Outcome:
    """`outcome` of an episode that ran as a lane and kept rewards, actions and ages: the same, of whole arrays."""
    ids, (times, rewards), actions = env.hierarchy.ids, lane.rewards(), lane.actions()
    been = rewards == rewards  # nan where an agent had ended
    paid = {a: (times[here], column[here]) for a, column, here in zip(ids, rewards.T, been.T, strict=True)}
    acted = {ids[rank]: (rows[:, 0], rows[:, 2:]) for rank, rows in actions.items()}
    returns = dict(zip(ids, lane.totals().tolist(), strict=True))
    return Outcome(
        value=returns[ids[0]],
        course=digest(paid, acted, *lane.ends),
        kpis=lane.kpis(),
        staleness_p95=_mean(_p95(ages.reshape(-1)) for ages in lane.ages().values() if len(ages)),
        latency_p95=_mean(_p95(rows[:, 1]) for rows in actions.values() if len(rows)),
        notes=lane.notes(),
        by_group=by_group(env, returns),
    )


def sums(env: Env, result: EpisodeResult) -> Outcome:
    """Of an episode that kept neither rewards nor actions: returns alone."""
    return Outcome(team_return(env, result), "", {}, math.nan, math.nan, [], by_group(env, result.returns))


def team_return(env: Env, result: EpisodeResult) -> float:
    """Return the sum of the root's rewards in an episode.

    Args:
        env: the environment.
        result: of an episode in it.

    Returns:
        A number in the unit of the rewards. Rewards that the root does not count are not in it.

    Raises:
        ConfigError: the result is of another environment.

    >>> from heron_env import make
    >>> env = make("heron/BatteryGrid-v0", max_steps=3)
    >>> result = env.run_synchronous({"*": lambda vector: [0.0]}, seed=1)
    >>> team_return(env, result) == result.returns["system_agent"]
    True
    """
    if not hasattr(env, "hierarchy") or not isinstance(result, EpisodeResult):
        raise ConfigError(f"team_return({env!r:.100}, {result!r:.100}): give an environment and what it returned")
    if env.hierarchy.ids[0] not in result.rewards:
        raise ConfigError(f"team_return({env!r:.100}, {result!r:.100}): the episode is of another environment")
    return result.returns[env.hierarchy.ids[0]]


def by_group(env: Env, returns: Mapping[str, float]) -> dict[str, float]:
    """What the agents of each group earned in sum, of their returns; without the root's, where it is alone in its."""
    others = {group: agents for group, agents in env.groups.items() if agents != [env.hierarchy.ids[0]]}
    return {group: one_by_one(returns[agent] for agent in agents) for group, agents in others.items()}


class Earned(NamedTuple):
    """What an episode yields, or several in the mean: the root's return, and that of each group."""

    value: float
    by_group: Mapping[str, float]

    @classmethod
    def of(cls, env: Env, result: EpisodeResult) -> Earned:
        """Of an episode that has just run in `env`."""
        return cls(team_return(env, result), by_group(env, result.returns))

    @classmethod
    def mean(cls, several: Sequence[Earned]) -> Earned:
        """nan of none."""
        return cls(_mean(one.value for one in several), means([one.by_group for one in several]))

    def words(self, groups: Iterable[str]) -> str:
        """`drone 60.00, mast 6.00`."""
        return ", ".join(f"{group} {self.by_group[group]:.2f}" for group in groups if group in self.by_group)


def groups_apart(several: Sequence[Earned]) -> list[str]:
    """The groups to be shown beside the root: all, or none where each always earns in sum what it does."""
    pairs = [(group, earned, one.value) for one in several for group, earned in one.by_group.items()]
    if all(math.isclose(earned, root, rel_tol=1e-9, abs_tol=1e-9) for _, earned, root in pairs):
        return []
    return list(dict.fromkeys(group for group, _, _ in pairs))


def means(figures: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Of the figures that all of them have."""
    names = [name for name in next(iter(figures), ()) if all(name in each for each in figures)]
    return {name: float(np.mean([each[name] for each in figures])) for name in names}


def course(result: EpisodeResult) -> str:
    """128 bits over every reward, action and end, in hexadecimal; -0.0 counts as 0.0, which it equals."""
    rewards, actions = (
        {
            agent: (np.array([time for time, _ in pairs]), np.array([what for _, what in pairs]))
            for agent, pairs in of.items()
        }
        for of in (result.rewards, result.actions)
    )
    return digest(rewards, actions, result.terminated, result.truncated)


Columns = tuple[NDArray[np.float64], NDArray[np.float64]]
"""Times, s `[n]`, and what was then, `[n]` or `[n, k]`."""


def digest(
    rewards: Mapping[str, Columns],
    actions: Mapping[str, Columns],
    terminated: dict[str, bool],
    truncated: dict[str, bool],
) -> str:
    """The `course` of an episode whose rewards and actions are in arrays, by agent in the hierarchy's order."""
    result = hashlib.blake2b(digest_size=16)
    for kind, table in (("rewards", rewards), ("actions", actions)):
        for agent, (times, values) in table.items():
            result.update(f"{kind} {agent} {len(times)}".encode())
            result.update(times.tobytes())
            result.update((values + 0.0).tobytes())
    result.update(repr((terminated, truncated)).encode())
    return result.hexdigest()


def _mean(values: Iterable[float]) -> float:
    measured = list(values)
    return float(np.mean(measured)) if measured else float("nan")


def _p95(values: NDArray[np.float64]) -> float:
    return quantile(values, 0.95)
