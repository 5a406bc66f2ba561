"""Policies of other programs: endpoints, agents files, and the fixtures that their answers are kept in."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, Self

from heron_env.core.policy import Policies
from heron_env.declared.configuration import BenchmarkConfig
from heron_env.errors import ConfigError, FixtureError
from heron_env.injection import load_agents, policies
from heron_env.injection.contract import difference
from heron_env.injection.endpoint import Connection, Endpoint
from heron_env.injection.policy import ExternalPolicy
from heron_env.injection.recording import Fixture, Recorded, Recording
from heron_env.injection.setting import EnvironmentFacts
from heron_env.lab import benchmark
from heron_env.lab.black_boxes import BlackBox
from heron_env.lab.policies import About, External, digest, digest_of, split_name

if TYPE_CHECKING:
    from heron_env.envs.base import HeronEnv

OF_THE_CLIENT: Final = ("timeout", "api_key_env", "breaker", "concurrency")
"""What all questions to one address share."""


class EndpointConnections:
    """The ways to endpoints, one for each address: its caps, pace and breaker hold for all who ask there."""

    def __init__(self) -> None:
        self._connections: dict[str, Connection] = {}

    def __call__(self, endpoint: Endpoint) -> Connection:
        """The way. Raises ConfigError: another policy asks there on other terms, no such key, a refused address."""
        line = self._connections.setdefault(endpoint.url, Connection(endpoint))
        for name in OF_THE_CLIENT:
            ours, theirs = getattr(endpoint, name), getattr(line.endpoint, name)
            if ours != theirs:
                raise ConfigError(
                    f"two policies ask {endpoint.host} with {name}={theirs!r} and {ours!r}: one client asks for both; "
                    "write the same, or compare them in two sweeps"
                )
        _ = line.client  # made here, so that what it lacks is said before anything runs
        return line

    def __enter__(self) -> Self:
        """Itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close all connections."""
        for line in self._connections.values():
            line.close()


@dataclass(frozen=True, repr=False)
class EndpointPolicy(External):
    """All agents are played by one endpoint."""

    endpoint: Endpoint

    def asked(self, env: HeronEnv, seed: int, about: About) -> Policies:
        """One policy for all, which asks them together."""
        line = None if about.lines is None else about.lines(self.endpoint)
        policy = ExternalPolicy(self.endpoint, env=_world(env), line=line, **about.run)
        return {"*": policy if about.record is None else Recording(policy, about.record)}

    def identity(self) -> str:
        """Host and port; path, query and terms by digest."""
        return f"endpoint {self.endpoint.host} {digest(repr(self.endpoint).encode())}"

    def __repr__(self) -> str:
        """The same."""
        return f"EndpointPolicy({self.identity()!r})"


def endpoint(text: str) -> EndpointPolicy:
    """Of an address, or NAME=URL. Raises ConfigError."""
    return EndpointPolicy(Endpoint(split_name(text)[1]))


@dataclass(frozen=True)
class AgentsFile(External):
    """The agents that a block `agent_injection` names are played by its endpoints, others by the strongest baseline.

    Where it says `record: true`, each episode of a sweep has a fixture of its own beside `fixture_path`.
    """

    path: str

    def asked(self, env: HeronEnv, seed: int, about: About) -> Policies:
        """Raises ConfigError with file and line."""
        block = load_agents(self.path)
        fixture = about.named(block.benchmark.fixture_path) if block.benchmark.record else None
        if (path := about.record or fixture) is not None:
            block = block.model_copy(update={"benchmark": BenchmarkConfig(record=True, fixture_path=str(path))})
        own = policies(block, env, lines=about.lines or Connection, **about.run)
        return {**strongest_policies(env, seed), **own}

    def identity(self) -> str:
        """By content."""
        return f"agents {self.path} {digest_of([Path(self.path)])}"


@dataclass(frozen=True)
class FixturePolicy(External):
    """The agents whose answers a fixture holds answer so again; others are played by the strongest baseline.

    A fixture has one environment, its options and its seeds. What a sweep recorded has a file for each episode, and is
    named by what was its `fixture_path`.
    """

    path: str
    live: ClassVar[bool] = False

    def asked(self, env: HeronEnv, seed: int, about: About) -> Policies:
        """Raises FixtureError, also for a fixture of another environment, other options, or other seeds."""
        result = side_by_side(about.named(self.path)) if about.episode else []
        files = result or side_by_side(Path(self.path))
        if not files:
            raise FixtureError(f"{self.path}: no such fixture; record one with `heron trace`, or correct the path")
        return {**strongest_policies(env, seed), **answers_of(files, env, seed, about)}

    def identity(self) -> str:
        """By content, with all episodes of a sweep."""
        path = Path(self.path)
        files = sorted({*side_by_side(path), *path.parent.glob(f"{path.stem}-case-*{path.suffix}")})
        return f"fixture {path} {digest_of(files)}"


def _world(env: Any) -> HeronEnv | None:
    """The environment, for those who look into it; None: a black box."""
    return None if isinstance(env, BlackBox) else env


def strongest_policies(env: HeronEnv, seed: int) -> Policies:
    """The strongest baseline, for the agents that are not played from outside."""
    return benchmark.baselines(env, seed)[env.benchmark().strongest or benchmark.RANDOM]


def numbered(path: Path, number: int) -> Path:
    """The file of one of several endpoints, counted from 0: `run.jsonl`, `run-2.jsonl` and so on."""
    return path.with_stem(f"{path.stem}-{number + 1}") if number else path


def side_by_side(path: Path) -> list[Path]:
    """The fixtures of one episode that are there, one for each endpoint."""
    result: list[Path] = []
    while (after := numbered(path, len(result))).is_file():
        result.append(after)
    return result


def answers_of(paths: Iterable[Path], env: HeronEnv, seed: int, about: About) -> Policies:
    """By agent, the answers that these fixtures hold. Raises FixtureError."""
    chosen: dict[str, Any] = {}
    for path in paths:
        recorded = Recorded(path)
        _require_of(recorded.fixture, env, seed, about)
        chosen |= {decision.agent: recorded for decision in recorded.fixture.decisions.values()}
    return chosen


def _require_of(fixture: Fixture, env: HeronEnv, seed: int, about: About) -> None:
    """Raise FixtureError unless the fixture is of this environment and seed; the first difference is named."""

    def facts(setting: Any) -> dict[str, Any]:
        return {"env_id": setting.env_id, "options": setting.options}

    recorded = facts(fixture.header)
    world = _world(env)
    current = facts(EnvironmentFacts.of(world, env_id=about.env_id, options=about.options))
    if (where := difference(recorded, current)) and difference(recorded, facts(EnvironmentFacts.of(world))):
        raise FixtureError(
            f"{fixture.path}: was recorded in another environment ({where}); give that one, or record this"
        )
    seeds = sorted({of for of, _ in fixture.decisions})
    if seed not in seeds:
        raise FixtureError(f"{fixture.path}: has answers for seeds {seeds}, none for {seed}; record it with that seed")
