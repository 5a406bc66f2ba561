"""Datasets for offline learning: what each agent saw, decided and earned, decision by decision; as Minari has them."""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from heron_env._version import __version__
from heron_env.core.action import ActionSpec
from heron_env.core.policy import Policies
from heron_env.core.rule import one_by_one
from heron_env.envs.answering import Asking
from heron_env.envs.base import HeronEnv
from heron_env.errors import ConfigError, did_you_mean
from heron_env.given import is_one_of, mapping, whole
from heron_env.registry import make
from heron_env.scheduling.drawn import AnySchedule, as_dict
from heron_env.scheduling.timing import to_ns, to_seconds

if TYPE_CHECKING:
    from minari import MinariDataset

    from heron_env.envs.event.clock import EventRun


@dataclass(frozen=True, eq=False)
class AgentEpisode:
    """Episode of one agent with T decisions.

    Attributes:
        observations: float32 `[T + 1, d]`: what it decided on, as the network brought it, and at last what it would see
            of the truth at the boundary where it ended.
        actions: float64 `[T, size]`, as decided, whenever they took effect.
        rewards: float64 `[T]`, of the boundaries after a decision up to the moment of the next one.
        times: float64 `[T + 1]`, s, when it decided, and when it ended.
    """

    agent: str
    observations: NDArray[np.float32]
    actions: NDArray[np.float64]
    rewards: NDArray[np.float64]
    times: NDArray[np.float64]
    terminated: bool
    truncated: bool


def record_decisions(
    env: HeronEnv, policies: Policies, *, seed: int | None = None, schedule: AnySchedule = None
) -> list[AgentEpisode]:
    """Run one episode; return the agents that decided, in the order of the hierarchy.

    Args:
        env: must have an end of its own.
        policies, seed, schedule: as in `run_event_driven`; without delays the episode is that of the synchronous clock.

    Raises ConfigError, also for policies that are asked by `answer`: what they saw is not a vector alone.
    """
    run = env.start_event_driven(policies, seed=seed, schedule=schedule)
    notes = {rank: Notes() for rank in sorted(run.agents.deciding)}
    for rank, noted in notes.items():
        decide = run.agents.policies[rank]
        if isinstance(decide, Asking):
            raise ConfigError(
                f"the policy of {env.hierarchy.ids[rank]!r} is asked by answer(), and may see more than its vector; "
                "record policies that are functions of the vector, or keep a trace: record_episode()"
            )
        run.agents.policies[rank] = _noting(run, rank, decide, noted)
    boundary = 0
    while not run.closed:
        boundary += env.dt_ns
        run.until(to_seconds(boundary))
        _note_ends(run, boundary, notes)
    return [_episode(run, rank, noted) for rank, noted in notes.items() if noted.times]


@dataclass(slots=True)
class Notes:
    """What is noted of one agent while the episode runs; `ended` once it has: the time, ns, and what it would see."""

    times: list[int] = field(default_factory=list)
    observations: list[NDArray[np.float32]] = field(default_factory=list)
    actions: list[NDArray[np.float64]] = field(default_factory=list)
    ended: tuple[int, NDArray[np.float32]] | None = None


def _noting(run: EventRun, rank: int, decide: Any, noted: Notes) -> Any:
    """The same policy, of whose decisions notes are taken."""
    parse = run.agents.parse[rank]

    def decide_and_note(vector: NDArray[np.float32], *where: Any) -> Any:
        observation = vector.copy()  # the policy may work in place
        action = decide(vector, *where)
        noted.actions.append(parse(action))
        noted.times.append(run.context.scheduler.now)
        noted.observations.append(observation)
        return action

    return decide_and_note


def _note_ends(run: EventRun, boundary: int, notes: dict[int, Notes]) -> None:
    """What agents that ended at this boundary would see of its truth, before anybody acts on it."""
    env, result = run.env, run.context.result
    for rank, noted in notes.items():
        agent = env.hierarchy.ids[rank]
        if noted.ended is None and (result.terminated[agent] or result.truncated[agent]):
            moment = run.context.moment(boundary // env.dt_ns)
            noted.ended = boundary, env.simulation.model.plan.vector(rank, run.context.measuring.ended, moment).copy()


def _episode(run: EventRun, rank: int, noted: Notes) -> AgentEpisode:
    result, agent = run.context.result, run.env.hierarchy.ids[rank]
    assert noted.ended is not None, f"{agent} never ended"
    times = [*noted.times, noted.ended[0]]
    earned: list[list[float]] = [[] for _ in noted.times]
    for time, reward in result.rewards[agent]:
        place = int(np.searchsorted(noted.times, to_ns(time, "time"), side="left")) - 1
        if place >= 0:  # what came before its first decision is none of its doing
            earned[place].append(reward)
    return AgentEpisode(
        agent,
        np.stack([*noted.observations, noted.ended[1]]),
        np.stack(noted.actions),
        np.array([one_by_one(some) for some in earned]),
        np.array([to_seconds(ns) for ns in times]),
        result.terminated[agent],
        result.truncated[agent],
    )


PER = ("group", "agent")
ABOUT = ("author", "author_email", "code_permalink", "description", "algorithm_name")
"""What Minari likes to know besides, in words."""
NAME = re.compile(r"[A-Za-z0-9_-]{2,}(/[A-Za-z0-9_-]+)*")


def write_minari(
    env: HeronEnv | str, policies: Policies, name: str, *, episodes: int = 1, seed: int = 0,
    schedule: AnySchedule = None, per: str = "group", version: int = 0, about: Mapping[str, str] | None = None,
    **options: Any,
) -> dict[str, MinariDataset]:  # fmt: skip
    """Run episodes and write each agent's observations, actions and rewards; return the datasets by group or agent.

    Datasets are `NAME/GROUP-vVERSION` in the folder of MINARI_DATASETS_PATH, else in Minari's own; nothing is uploaded.
    An agent's episode is one of the dataset's: observations `[T + 1, d]`, actions, rewards, terminations, truncations
    `[T]` as in `AgentEpisode`; `infos["time"]` `[T + 1]` has the moments, s, for under a network they are not evenly
    spaced. Its metadata hold the seed and, as options, the agent and the number of the episode; those of the dataset
    under "heron_env" the environment, its options, version, seed, policies, schedule and the names of the columns.

    Args:
        env: with an end of its own; or a registered id, and its options.
        policies: as in `run_event_driven`.
        name: a word, or several with slashes: the namespace of the datasets.
        episodes: 0, 1, ... of `seed`.
        schedule: ticks, delays and losses under which the data are collected; None: the environment's own. Without
            delays the data are those of the synchronous clock.
        per: "group": one dataset for all agents of a group; "agent": one for each.
        version: of the datasets.
        about: author, author_email, code_permalink, description, algorithm_name, as Minari keeps them.

    Raises ConfigError for what can't be recorded or written, and for datasets that are there already: then nothing is.
    """
    storage, made = _minari(), _built(env, options)
    whole(episodes, "write_minari(episodes)", 1)
    whole(seed, "write_minari(seed)")
    whole(version, "write_minari(version)")
    about, names = _about(about, policies), _new_datasets(storage, made, name, per, version)
    metadata = {
        "env_id": env if isinstance(env, str) else made.metadata["name"],
        "options": json.loads(json.dumps(options, default=repr)), "version": __version__, "seed": seed,
        "policies": _policy_names(policies), "schedule": as_dict(made.schedule if schedule is None else schedule),
    }  # fmt: skip
    runs = [record_decisions(made, policies, seed=None if n else seed, schedule=schedule) for n in range(episodes)]
    return _write_each(storage, made, names, per, runs, metadata, about)


def _built(env: HeronEnv | str, options: Mapping[str, Any]) -> HeronEnv:
    if isinstance(env, HeronEnv) and options:
        raise ConfigError(f"write_minari: options {sorted(options)} go with an id; build the environment with them")
    made = make(env, **options) if isinstance(env, str) else env
    if not isinstance(made, HeronEnv):
        raise ConfigError(f"write_minari({env!r:.200}): give an environment, or a registered id")
    return made


def _write_each(
    storage: Any, env: HeronEnv, names: Mapping[str, str], per: str, runs: Sequence[list[AgentEpisode]],
    metadata: Mapping[str, Any], about: Mapping[str, str],
) -> dict[str, MinariDataset]:  # fmt: skip
    """The datasets, by the group or agent whose they are; none of those that never decided."""
    written = {}
    for owner, dataset in names.items():
        members = env.groups[owner] if per == "group" else [owner]
        if own := [(number, one) for number, run in enumerate(runs) for one in run if one.agent in members]:
            more = {**metadata, "agents": members, "columns": env.observation_names(members[0])}
            written[owner] = _write(storage, env, dataset, own, more, about)
    return written


def _write(
    storage: Any, env: HeronEnv, dataset: str, numbered: Sequence[tuple[int, AgentEpisode]],
    metadata: Mapping[str, Any], about: Mapping[str, str],
) -> MinariDataset:  # fmt: skip
    """One dataset of the episodes of agents that have equal spaces."""
    agent = numbered[0][1].agent
    spec = env.simulation.model.specs[env.hierarchy.index[agent]]
    buffers = [
        storage.data_collector.EpisodeBuffer(
            id=place,
            seed=metadata["seed"],
            options={"agent": one.agent, "episode": number},
            observations=list(one.observations),
            actions=as_columns(spec, one.actions),
            rewards=one.rewards.tolist(),
            terminations=_last(len(one.rewards), one.terminated),
            truncations=_last(len(one.rewards), one.truncated),
            infos={"time": one.times},
        )
        for place, (number, one) in enumerate(numbered)
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of what `about` leaves out, and that no Gymnasium id is told
        made = storage.create_dataset_from_buffers(
            dataset,
            buffers,
            observation_space=env.observation_space(agent),
            action_space=env.action_space(agent),
            **about,
        )
    made.storage.update_metadata({"heron_env": metadata})
    return made


def as_columns(spec: ActionSpec, actions: NDArray[np.float64]) -> Any:
    """Actions `[T, size]` as the agent's space has them, a list of T; one for each part of a Dict."""
    numbers = list(actions[:, : spec.dim_c].astype(np.float32))
    chosen = actions[:, spec.dim_c :].astype(np.int64)
    choices = chosen[:, 0].tolist() if spec.dim_d == 1 else list(chosen)
    if spec.dim_c and spec.dim_d:
        return {"c": numbers, "d": choices}
    return numbers if spec.dim_c else choices


def _last(steps: int, flag: bool) -> list[bool]:
    return [False] * (steps - 1) + [bool(flag)]


def _minari() -> Any:
    try:
        import h5py  # noqa: F401  (what its storage imports, and does not always bring)
        import minari
        import minari.data_collector
        import minari.storage.datasets_root_dir
        import PIL  # noqa: F401
    except ImportError as error:
        raise ConfigError(f"datasets need Minari ({error}): pip install 'minari[hdf5]' pillow") from error
    return minari


def _new_datasets(storage: Any, env: HeronEnv, name: str, per: str, version: int) -> dict[str, str]:
    """The id of each dataset, by group or agent. Minari takes letters, digits, - and _ only."""
    if not isinstance(name, str) or not NAME.fullmatch(name):
        raise ConfigError(
            f"write_minari(name={name!r:.200}): must be words of letters, digits, - and _ (two of them at least), "
            "with / between words, as 'grid/full-power'"
        )
    if not is_one_of(per, PER):
        raise ConfigError(f"write_minari(per={per!r}): must be one of {PER}.{did_you_mean(per, PER)}")
    owners: dict[str, str] = {}
    for owner in env.groups if per == "group" else env.hierarchy.ids:
        dataset = f"{name}/{re.sub(r'[^A-Za-z0-9_-]', '-', owner)}-v{version}"
        if (other := owners.setdefault(dataset, owner)) != owner:
            raise ConfigError(f"write_minari: {owner!r} and {other!r} would both be {dataset!r}; rename one of them")
    for dataset in owners:
        _require_new(storage.storage.datasets_root_dir.get_dataset_path(dataset))
    return {owner: dataset for dataset, owner in owners.items()}


def _require_new(path: Path) -> None:
    if path.exists():
        raise ConfigError(
            f"write_minari: there is a dataset at {path} already; choose another name or version=..., or remove it: "
            "minari delete ID"
        )


def _about(about: Mapping[str, str] | None, policies: Policies) -> dict[str, str]:
    words = mapping({} if about is None else about, "write_minari(about)")
    for key, value in words.items():
        if not is_one_of(key, ABOUT) or not isinstance(value, str):
            raise ConfigError(
                f"write_minari(about={{{key!r}: {value!r:.60}}}): must be words for some of {ABOUT}."
                f"{did_you_mean(key, ABOUT)}"
            )
    return {"algorithm_name": ", ".join(f"{key}: {name}" for key, name in _policy_names(policies).items()), **words}


def _policy_names(policies: Policies) -> dict[str, str]:
    """Function or class of each policy."""
    by_name = mapping(policies, "write_minari(policies)")
    return {str(key): getattr(policy, "__qualname__", type(policy).__qualname__) for key, policy in by_name.items()}
