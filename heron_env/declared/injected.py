"""Agents whose decisions come from an endpoint, as users write them: the block `agent_injection:` of a world."""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, Final, Literal, Self
from urllib.parse import urlsplit

from pydantic import BeforeValidator, Field, model_validator

from heron_env.errors import DeclarationError, Problem, did_you_mean
from heron_env.files.models import ConfigModel, Flag, Many, Named, NonNegative, Positive, Text, at_least, number
from heron_env.files.yaml_file import PathParts, YamlFile
from heron_env.net.guard import PORTS, Guard

BLOCK: Final = "agent_injection"
Tier = Literal["minimal", "basic", "full"]
Strategy = Literal["simulated_agent", "error_message", "skip", "fail"]
_VARIABLE: Final = re.compile(r"[A-Z_][A-Z0-9_]*")
_DETAILS: Final = "a key never stands in a file or call: write api_key_env, the name of an environment variable"


def guard_of(url: str) -> Guard:
    """Lets through the host of this address alone: public ones over https, this machine's if it is what it says."""
    parts = urlsplit(url)
    return Guard((parts.netloc if parts.port else f"{parts.netloc}:{PORTS.get(parts.scheme, 443)}",), loopback=True)


def address(value: object) -> str:
    """A URL that may be talked to, as far as can be said without asking anybody. Raises ValueError.

    One that may hold a secret is not repeated.
    """
    try:
        guard = guard_of(value) if isinstance(value, str) and "@" not in value else Guard()
    except ValueError:  # a port that is none, or half an IPv6 address
        guard = Guard()
    guard.passed(value)  # type: ignore[arg-type]  # whatever it is: that is the question
    return str(value)


def variable(value: object) -> str:
    """The name of an environment variable; the message never shows what was given. Raises ValueError."""
    if not isinstance(value, str) or not _VARIABLE.fullmatch(value):
        raise ValueError("must be the name of an environment variable in capitals, such as MY_AGENT_API_KEY, no key")
    return value


def _trait(value: object) -> float:
    converted = number(value)
    if not 0.0 <= converted <= 1.0:
        raise ValueError(f"must be from 0 to 1, got {value!r}")
    return converted


Seconds = Annotated[Positive, Field(le=86400.0)]


class Persona(ConfigModel):
    """Who an agent is, for endpoints that play a part; traits are in [0, 1], `persona_id` by default the agent's."""

    name: str
    background: str = ""
    goal: str = ""
    traits: Annotated[dict[str, Annotated[float, BeforeValidator(_trait)]], Named] = {}
    persona_id: str = ""


class Latency(ConfigModel):
    """What of an answer's latency becomes thinking time, in virtual time.

    "ignored": nothing; "virtual": lognormal draws of this mean, s, and standard deviation `ratio * mean`, keyed by
    seed, episode, agent and number; "measured": what the wall clock says, which no run repeats.
    """

    mode: Literal["ignored", "virtual", "measured"] = "ignored"
    mean: NonNegative = 0.0
    ratio: NonNegative = 0.0


class EndpointConfig(ConfigModel):
    """The endpoint of one agent, or of all agents of a group. Keys left out that the block has, too: as it says."""

    agent_id: Text
    url: Annotated[str, BeforeValidator(address)]
    api_key_env: Annotated[str, BeforeValidator(variable)] | None = None
    timeout_seconds: Seconds = 30.0
    privacy_tier: Tier | None = None
    send_persona_details_externally: Flag | None = None
    redact_pii_patterns: Flag | None = None
    clip: Flag = False

    @classmethod
    def written_out(cls, given: object) -> object:
        """Raises DeclarationError for a key in clear, which it does not repeat."""
        if isinstance(given, dict) and "api_key" in given:
            raise DeclarationError([Problem(("api_key",), _DETAILS)])
        return given


class BreakerConfig(ConfigModel):
    """When requests to a failing endpoint are no longer sent, and when they are again."""

    failure_threshold: Annotated[int, at_least(1)] = 5
    half_open_probe_interval_seconds: Seconds = 30.0
    success_threshold: Annotated[int, at_least(1)] = 2


class ConcurrencyConfig(ConfigModel):
    """Requests under way at once, and begun in any one second, per endpoint."""

    max_inflight_per_endpoint: Annotated[int, at_least(1)] = 10
    qps_cap: Annotated[int, at_least(1)] = 100


class FallbackConfig(ConfigModel):
    """What stands in for an answer that does not come, or does not count."""

    strategy: Strategy = "simulated_agent"


class BenchmarkConfig(ConfigModel):
    """Are all questions and answers recorded, and where? `{timestamp}` in the path is the time of the beginning."""

    record: Flag = False
    fixture_path: Text = "benchmarks/run-{timestamp}.jsonl"


class AgentInjectionConfig(ConfigModel):
    """Which agents are played by endpoints, what these are told, and what happens when one fails."""

    endpoints: Annotated[tuple[EndpointConfig, ...], Many]
    circuit_breaker: BreakerConfig = Field(default_factory=BreakerConfig)
    concurrency: ConcurrencyConfig = Field(default_factory=ConcurrencyConfig)
    fallback: FallbackConfig = Field(default_factory=FallbackConfig)
    benchmark: BenchmarkConfig = Field(default_factory=BenchmarkConfig)
    latency: Latency = Field(default_factory=Latency)
    personas: Annotated[dict[str, Persona], Named] = {}
    privacy_tier: Tier = "basic"
    send_persona_details_externally: Flag = True
    redact_pii_patterns: Flag = True

    @model_validator(mode="after")
    def _each_agent_once(self) -> Self:
        first: dict[str, int] = {}
        problems = [] if self.endpoints else [Problem(("endpoints",), "must list at least one endpoint")]
        for index, entry in enumerate(self.endpoints):
            earlier = first.setdefault(entry.agent_id, index)
            if earlier != index:
                words = f"Duplicate agent {entry.agent_id!r}, see endpoints[{earlier}]; keep one"
                problems.append(Problem(("endpoints", index, "agent_id"), words))
            alike = next(other for other in self.endpoints if other.url == entry.url)
            for name in ("timeout_seconds", "api_key_env"):
                if getattr(alike, name) != getattr(entry, name):
                    words = f"must be {getattr(alike, name)!r} as for the other agents at this url; one client asks all"
                    problems.append(Problem(("endpoints", index, name), words))
        if problems:
            raise DeclarationError(problems)
        return self

    def unknown(self, known: Iterable[str]) -> Iterator[Problem]:
        """A problem for each name that is neither an agent nor a group."""
        names = dict.fromkeys(known)
        paths: list[tuple[PathParts, str]] = [
            *((("endpoints", index, "agent_id"), entry.agent_id) for index, entry in enumerate(self.endpoints)),
            *((("personas", name), name) for name in self.personas),
        ]
        for path, name in paths:
            if name not in names:
                near = did_you_mean(name, names) or f" There are {', '.join([*names][:12])}."
                yield Problem(path, f"Unknown agent {name!r}.{near}")


def injection_of(file: YamlFile) -> AgentInjectionConfig:
    """The block of a file: under `agent_injection`, as in a world, or under `simulation`, or all of the file."""
    return file.build(AgentInjectionConfig, section_of(file))


def section_of(file: YamlFile) -> PathParts:
    """Where in the file the block is."""
    inside = file.data.get("simulation")
    if isinstance(inside, dict) and BLOCK in inside:
        return ("simulation", BLOCK)
    return (BLOCK,) if BLOCK in file.data else ()


def is_alone(file: YamlFile) -> bool:
    """Is the block all that the file says, so that it is no world?"""
    section = section_of(file)
    return "endpoints" in file.data if not section else section[0] == "simulation" or len(file.data) == 1


def load_agents(path: str | Path) -> AgentInjectionConfig:
    """Read which agents are played by endpoints from a YAML file. Raises ConfigError with file and line."""
    return injection_of(YamlFile.read(path))
