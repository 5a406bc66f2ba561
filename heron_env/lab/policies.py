"""Descriptions of policies that travel to another process and become policies there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from heron_env.core.policy import Policies
from heron_env.errors import ConfigError, did_you_mean
from heron_env.files.reading import is_folder
from heron_env.injection.endpoint import Endpoint
from heron_env.lab import benchmark
from heron_env.lab.external import EndpointPolicy, external_spec

if TYPE_CHECKING:
    from heron_env.envs.base import HeronEnv


class PolicySpec(Protocol):
    """Picklable; builds the policies for an environment."""

    def build(self, env: HeronEnv, seed: int) -> Policies:
        """Policies by agent, group or "*", as `run_synchronous` takes them; `seed` is the case's."""
        ...


@dataclass(frozen=True)
class Baseline:
    """A baseline of the environment, by name; with other constants: `MPC(follow=0.15)`."""

    name: str

    def build(self, env: HeronEnv, seed: int) -> Policies:
        """Raises ConfigError with the nearest name."""
        found = benchmark.baseline(env, self.name, seed)
        if found is None:
            offered = list(benchmark.baselines(env, seed))
            raise ConfigError(
                f"policy {self.name!r}: neither a run folder nor a baseline; this environment has {offered}."
                f"{did_you_mean(self.name, offered)}"
            )
        return found


@dataclass(frozen=True)
class TrainedRun:
    """What a run folder holds."""

    folder: str

    def build(self, env: HeronEnv, seed: int) -> Policies:
        """Raises RunFolderError, Untrusted."""
        from heron_env.lab.runs import load_policy

        loaded = load_policy(self.folder)
        return loaded if isinstance(loaded, Mapping) else {"*": loaded}


def policy_spec(given: str | Endpoint) -> PolicySpec:
    """A run folder where a folder of that name exists; an address, a YAML file or a fixture (see `lab.external`), where
    it reads like one; else the name of a baseline. Raises ConfigError.
    """
    if isinstance(given, Endpoint):
        return EndpointPolicy(given)
    if is_folder(given):
        return TrainedRun(given)
    return external_spec(given) or Baseline(given)
