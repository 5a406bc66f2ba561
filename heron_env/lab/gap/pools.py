"""Training seeds of one recipe, pooled as one policy: each runs by itself, and figures are over seeds and cases."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from heron_env.errors import ConfigError
from heron_env.injection.endpoint import Endpoint
from heron_env.lab.policies import PolicySpec, TrainedRun, policy_spec

Given = PolicySpec | str | Endpoint | Sequence[PolicySpec | str | Endpoint]
"""A policy as `Sweep.of` takes it: a spec, a name, or several of them that are pooled."""
Pools = Mapping[str, tuple[str, ...]]
"""Names of the members by name of the pool."""
RECIPE: Final = (
    "env_id", "env_options", "training_options", "trainer", "training_delays", "schedule", "base", "hyperparameters",
    "critic",
)  # fmt: skip
"""What trainings of one recipe have in common."""


def expanded(policies: Mapping[str, Given]) -> tuple[dict[str, PolicySpec], dict[str, tuple[str, ...]]]:
    """Every policy that runs by name, and the pools; members are called `NAME, run 1` and so on.

    Raises ConfigError for fewer than two members, for run folders of different recipes, and for equal seeds or names.
    """
    specs: dict[str, PolicySpec] = {}
    pools: dict[str, tuple[str, ...]] = {}
    for name, given in policies.items():
        several = isinstance(given, Sequence) and not isinstance(given, str)
        members = _specs(given)
        names = [f"{name}, run {number}" for number in range(1, len(members) + 1)] if several else [name]
        if several:
            _require_one_recipe(name, members)
            pools[name] = tuple(names)
        if taken := [each for each in names if each in specs or (several and each in policies)]:
            raise ConfigError(f"two policies would be called {taken[0]!r}; give one of them another name")
        specs |= zip(names, members, strict=True)
    return specs, pools


def shown(policies: Sequence[str], pools: Pools) -> list[str]:
    """Names as tables show them: a pool stands where its first member does."""
    pool_of = {member: name for name, members in pools.items() for member in members}
    return list(dict.fromkeys(pool_of.get(name, name) for name in policies))


def _specs(given: Given) -> list[PolicySpec]:
    if isinstance(given, str | Endpoint):
        return [policy_spec(given)]
    return [spec for each in given for spec in _specs(each)] if isinstance(given, Sequence) else [given]


def _require_one_recipe(name: str, members: Sequence[PolicySpec]) -> None:
    if len(members) < 2:
        raise ConfigError(f"policy {name!r}: a pool of {len(members)}; give two or more training seeds, or one alone")
    folders = [member.folder for member in members if isinstance(member, TrainedRun)]
    if not folders:
        return
    from heron_env.lab.runs import RunFolder

    first, *others = [RunFolder.open(folder) for folder in folders]
    for other in others:
        for field in RECIPE:
            ours, theirs = getattr(first.config, field), getattr(other.config, field)
            if ours != theirs:
                raise ConfigError(
                    f"policy {name!r}: {first.path} has {field}={ours!r}, {other.path} has {theirs!r}: only training "
                    "seeds of one recipe are pooled"
                )
    seeds = [run.config.seed for run in (first, *others)]
    if len(set(seeds)) < len(seeds):
        raise ConfigError(f"policy {name!r}: the run folders {folders} have seeds {seeds}: pool each seed once")
