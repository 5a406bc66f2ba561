"""Episodes as Minari datasets for offline learning, one for each group of agents or each agent."""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from heron_env._version import __version__
from heron_env.adapters.decision_records import AgentEpisode, record_decisions
from heron_env.core.action import ActionSpec
from heron_env.core.policy import Policies
from heron_env.envs.base import HeronEnv
from heron_env.errors import ConfigError, did_you_mean
from heron_env.given import is_one_of, mapping, whole
from heron_env.registry import make
from heron_env.scheduling.drawn import AnySchedule, as_dict

if TYPE_CHECKING:
    from minari import MinariDataset

PER = ("group", "agent")
ABOUT = ("author", "author_email", "code_permalink", "description", "algorithm_name")
"""What Minari likes to know besides, in words."""
NAME = re.compile(r"[A-Za-z0-9_-]{2,}(/[A-Za-z0-9_-]+)*")


def write_minari(
    env: HeronEnv | str,
    policies: Policies,
    name: str,
    *,
    episodes: int = 1,
    seed: int = 0,
    schedule: AnySchedule = None,
    per: str = "group",
    version: int = 0,
    about: Mapping[str, str] | None = None,
    **options: Any,
) -> dict[str, MinariDataset]:
    """Run whole episodes and write what each agent saw, decided and earned; the datasets by group, or by agent.

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
    storage = _minari()
    if isinstance(env, HeronEnv) and options:
        raise ConfigError(f"write_minari: options {sorted(options)} go with an id; build the environment with them")
    made = make(env, **options) if isinstance(env, str) else env
    if not isinstance(made, HeronEnv):
        raise ConfigError(f"write_minari({env!r:.200}): give an environment, or a registered id")
    whole(episodes, "write_minari(episodes)", 1)
    whole(seed, "write_minari(seed)")
    whole(version, "write_minari(version)")
    told = _about(about, policies)
    names = _datasets(made, name, per, version)
    for dataset in names.values():
        _require_new(storage.storage.datasets_root_dir.get_dataset_path(dataset))
    metadata = {
        "env_id": env if isinstance(env, str) else made.metadata["name"],
        "options": json.loads(json.dumps(options, default=repr)),
        "version": __version__,
        "seed": seed,
        "policies": _policy_names(mapping(policies, "write_minari(policies)")),
        "schedule": as_dict(made.schedule if schedule is None else schedule),
    }
    runs = [
        (number, record_decisions(made, policies, seed=None if number else seed, schedule=schedule))
        for number in range(episodes)
    ]
    written = {}
    for whose, dataset in names.items():
        members = made.groups[whose] if per == "group" else [whose]
        found = [(number, one) for number, run in runs for one in run if one.agent in members]
        if found:
            about_it = {**metadata, "agents": members, "columns": made.observation_names(members[0])}
            written[whose] = _write(storage, made, dataset, seed, found, about_it, told)
    return written


def _write(
    storage: Any,
    env: HeronEnv,
    dataset: str,
    seed: int,
    found: Sequence[tuple[int, AgentEpisode]],
    metadata: Mapping[str, Any],
    about: Mapping[str, str],
) -> MinariDataset:
    """One dataset of the episodes of agents that have equal spaces."""
    agent = found[0][1].agent
    spec = env.simulation.specs[env.hierarchy.index[agent]]
    buffers = [
        storage.data_collector.EpisodeBuffer(
            id=place,
            seed=seed,
            options={"agent": one.agent, "episode": number},
            observations=list(one.observations),
            actions=as_columns(spec, one.actions),
            rewards=one.rewards.tolist(),
            terminations=_last(len(one.rewards), one.terminated),
            truncations=_last(len(one.rewards), one.truncated),
            infos={"time": one.times},
        )
        for place, (number, one) in enumerate(found)
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
        raise ConfigError(f"datasets need Minari ({error}): pip install 'heron_env[minari]'") from error
    return minari


def _datasets(env: HeronEnv, name: str, per: str, version: int) -> dict[str, str]:
    """The id of each dataset, by group or agent. Minari takes letters, digits, - and _ only."""
    if not isinstance(name, str) or not NAME.fullmatch(name):
        raise ConfigError(
            f"write_minari(name={name!r:.200}): must be words of letters, digits, - and _ (two of them at least), "
            "with / between words, as 'grid/full-power'"
        )
    if not is_one_of(per, PER):
        raise ConfigError(f"write_minari(per={per!r}): must be one of {PER}.{did_you_mean(per, PER)}")
    named: dict[str, str] = {}
    for whose in env.groups if per == "group" else env.hierarchy.ids:
        dataset = f"{name}/{re.sub(r'[^A-Za-z0-9_-]', '-', whose)}-v{version}"
        if dataset in named.values():
            other = next(key for key, value in named.items() if value == dataset)
            raise ConfigError(f"write_minari: {whose!r} and {other!r} would both be {dataset!r}; rename one of them")
        named[whose] = dataset
    return named


def _require_new(path: Path) -> None:
    if path.exists():
        raise ConfigError(
            f"write_minari: there is a dataset at {path} already; choose another name or version=..., or remove it: "
            "minari delete ID"
        )


def _about(about: Mapping[str, str] | None, policies: Policies) -> dict[str, str]:
    told = mapping({} if about is None else about, "write_minari(about)")
    for key, value in told.items():
        if not is_one_of(key, ABOUT) or not isinstance(value, str):
            raise ConfigError(
                f"write_minari(about={{{key!r}: {value!r:.60}}}): must be words for some of {ABOUT}."
                f"{did_you_mean(key, ABOUT)}"
            )
    named = _policy_names(mapping(policies, "write_minari(policies)"))
    return {"algorithm_name": ", ".join(f"{key}: {name}" for key, name in named.items()), **told}


def _policy_names(policies: Mapping[str, Any]) -> dict[str, str]:
    """Function or class of each policy."""
    return {str(key): getattr(policy, "__qualname__", type(policy).__qualname__) for key, policy in policies.items()}
