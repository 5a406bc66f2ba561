"""What users write in YAML: a world (clock, engine, agents, variables, who sees what), and agents behind endpoints.

These are the block `agent_injection:`, which may also stand alone, for any environment.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self

from pydantic import BeforeValidator, Field, ValidationInfo, model_validator

from heron_env.core.hierarchy import RESERVED, name_stem
from heron_env.core.layout import GLOBAL
from heron_env.errors import ConfigError, DeclarationError, Problem, did_you_mean
from heron_env.files.models import (
    ConfigModel,
    Flag,
    Many,
    Named,
    NonNegative,
    Number,
    Positive,
    Text,
    at_least,
    formatted,
    number,
    sequence,
    text,
)
from heron_env.files.yaml_file import PathParts, YamlFile
from heron_env.net.guard import Guard, guard_of, machine
from heron_env.observability.config import (
    ObservabilityConfig,
    ObservabilityLevel,
    RowOrDefault,
    external_among,
    remedy,
    require_names,
    resolve,
)
from heron_env.observability.state_models import StateVariablesConfig, Value

BLOCK: Final = "agent_injection"
Tier = Literal["minimal", "basic", "full"]
Strategy = Literal["simulated_agent", "error_message", "skip", "fail"]
_VARIABLE: Final = re.compile(r"[A-Z_][A-Z0-9_]*")
_DETAILS: Final = "a key never stands in a file or call: write api_key_env, the name of an environment variable"


def address(value: object, info: ValidationInfo) -> str:
    """A URL that may be talked to, as far as can be said without asking anybody. Raises ValueError.

    One that may hold a secret is not repeated.
    """
    try:
        known = isinstance(value, str) and "@" not in value
        guard = guard_of(str(value), info.data.get("allow")) if known else Guard()
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
    """Persona of an agent, for endpoints; traits are in [0, 1]. `persona_id` is by default the agent's id."""

    name: str
    background: str = ""
    goal: str = ""
    traits: Annotated[dict[str, Annotated[float, BeforeValidator(_trait)]], Named] = {}
    persona_id: str = ""


class Latency(ConfigModel):
    """How an answer's latency becomes thinking time, in simulated time.

    "ignored": nothing; "virtual": lognormal draws of this mean, s, and standard deviation `ratio * mean`, keyed by
    seed, episode, agent and number; "tokens": those that the answer counts in `usage.completion_tokens`, as
    OpenAI-compatible endpoints do, at `tokens_per_second`, and nothing for a fallback; "measured": what the
    wall clock says, which no run repeats.
    """

    mode: Literal["ignored", "virtual", "tokens", "measured"] = "ignored"
    mean: NonNegative = 0.0
    ratio: NonNegative = 0.0
    tokens_per_second: Positive | None = None

    @model_validator(mode="after")
    def _has_its_rate(self) -> Self:
        if (self.mode == "tokens") != (self.tokens_per_second is not None):
            raise DeclarationError([Problem(("tokens_per_second",), "must be given with mode 'tokens', and only then")])
        return self


class EndpointConfig(ConfigModel):
    """The endpoint of one agent, or of all agents of a group. Keys left out that the block has, too: as it says."""

    agent_id: Text
    allow: Annotated[str, BeforeValidator(machine)] | None = None
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
    """When to stop requests to a failing endpoint, and when to try again."""

    failure_threshold: Annotated[int, at_least(1)] = 5
    half_open_probe_interval_seconds: Seconds = 30.0
    success_threshold: Annotated[int, at_least(1)] = 2


class ConcurrencyConfig(ConfigModel):
    """Limits per endpoint: requests at once, and requests begun in a second."""

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
    """Which agents are played by endpoints, what these receive, and what happens when one fails."""

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
        """Return a problem for each name that is neither an agent nor a group."""
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
    """Read a YAML file of agents that endpoints play. Raises ConfigError with file and line."""
    return injection_of(YamlFile.read(path))


class TerminationRule(ConfigModel):
    """When it is over: as soon as `variable` leaves [low, high]; a bound that is left out does not count.

    A global variable ends the episode, a variable of agents ends each agent by its own value.
    """

    variable: Text
    low: Number | None = None
    high: Number | None = None

    @model_validator(mode="after")
    def _bounded(self) -> Self:
        if self.low is None and self.high is None:
            raise ValueError("must have low, high or both")
        if self.low is not None and self.high is not None and self.low >= self.high:
            raise DeclarationError([Problem(("high",), f"must be above low {self.low:g}, got {self.high:g}")])
        return self


class SimulationSettings(ConfigModel):
    """Name and clock: an episode has at most `max_turns` turns of `dt` seconds."""

    name: Text
    max_turns: Annotated[int, at_least(1)]
    dt: Positive = 1.0
    termination: TerminationRule | None = None


class EngineConfig(ConfigModel):
    """What moves the world: the name of a registered engine and its parameters."""

    type: Text
    params: Annotated[dict[str, Any], Named] = {}


def _policy(value: object) -> str:
    """A name, or "package.module:attribute"."""
    module, colon, attribute = text(value).partition(":")
    parts = [*module.split("."), *(attribute.split(".") if colon else ())]
    if colon and not all(part.isidentifier() for part in parts):
        raise ValueError(f"must read package.module:attribute, or be a name that the engine offers, got {value!r}")
    return text(value)


class AgentConfig(ConfigModel):
    """One agent: its name, a free label for its kind, initial values other than the defaults, and its policy."""

    name: Text
    type: Text = "agent"
    initial_state: Annotated[dict[str, Any], Named] = {}
    policy: Annotated[str, BeforeValidator(_policy)] | None = None


def _interval(value: object) -> tuple[object, ...]:
    """[low, high], both finite, the lower first."""
    pair = sequence(value)
    if len(pair) != 2:
        raise ValueError(f"must be [low, high], got {formatted(list(pair))}")
    return pair


class ActionLimits(ConfigModel):
    """The range, within [-1, 1], that actions are held to."""

    action: Annotated[tuple[Number, Number], BeforeValidator(_interval)]

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        low, high = self.action
        if not low < high:
            words = f"must be [low, high] with low < high, got [{low:g}, {high:g}]"
            raise DeclarationError([Problem(("action",), words)])
        return self


class ValidatorConfig(ConfigModel):
    """What becomes of an action outside the limits: clipped into them, or rejected (the no-op takes its place)."""

    type: Literal["clip", "reject"]
    limits: ActionLimits


class SimulationConfig(ConfigModel):
    """Content of an environment's YAML file; names, types and bounds are checked across the sections.

    Without `observability` the variables' own visibility decides: everybody sees all but the internal ones.
    """

    simulation: SimulationSettings
    engine: EngineConfig
    agents: Annotated[tuple[AgentConfig, ...], Many]
    state_variables: StateVariablesConfig
    validator: ValidatorConfig | None = None
    observability: ObservabilityConfig | None = None
    agent_injection: AgentInjectionConfig | None = None

    def initial_state(self, agent: AgentConfig) -> dict[str, Value]:
        """Return the initial values of all variables of the agent: its own, else the defaults."""
        variables = self.state_variables.agent_vars
        given = agent.initial_state
        return {name: known.checked(given.get(name, known.default)) for name, known in variables.items()}

    def initial_globals(self) -> dict[str, Value]:
        """Return the initial values of all global variables."""
        return {name: known.checked(known.default) for name, known in self.state_variables.global_vars.items()}

    def external_variables(self) -> set[str]:
        """Return the qualified names of external variables: listed as such, or unlisted and not internal (V2)."""
        listed = (self.observability or ObservabilityConfig()).variable_visibility
        declared = self.state_variables.visibility()
        return external_among({name: said != "internal" for name, said in declared.items()}, listed)

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if not self.agents:
            raise DeclarationError([Problem(("agents",), "must list at least one agent")])
        problems = [*self._misnamed_agents(), *self._wrong_initial_states(), *self._wrong_termination()]
        if self.observability is not None:
            unknown = [*self._wrong_names(self.observability)]
            problems += unknown or self._endless_ranges(self.observability)
        if self.agent_injection is not None:
            names = [agent.name for agent in self.agents]
            strangers = [*self.agent_injection.unknown([*names, *map(name_stem, names)])]
            problems += [found._replace(path=(BLOCK, *found.path)) for found in strangers]
        if problems:
            raise DeclarationError(problems)
        return self

    def _wrong_names(self, config: ObservabilityConfig) -> list[Problem]:
        try:
            require_names(
                config,
                agents=[agent.name for agent in self.agents if agent.name not in RESERVED],
                agent_variables=self.state_variables.visibility_of_agents(),
                global_variables=self.state_variables.visibility_of_globals(),
            )
        except DeclarationError as error:
            return [found._replace(path=("observability", *found.path)) for found in error.problems]
        return []

    def _endless_ranges(self, config: ObservabilityConfig) -> Iterator[Problem]:
        """Additive noise is relative to the declared range (N1), so what it is put on needs min and max."""
        external = self.external_variables()
        of_agents, of_world = self.state_variables.visibility_of_agents(), self.state_variables.visibility_of_globals()
        pairs = {(row.observer, row.target) for row in config.matrix if row.observer != row.target}
        about_world = sum(target == GLOBAL for _, target in pairs)
        others: set[str] = set()  # what pairs without a row may see of
        if about_world < len(self.agents):
            others |= set(of_world)
        if len(pairs) - about_world < len(self.agents) * (len(self.agents) - 1):
            others |= set(of_agents)
        sources: list[tuple[PathParts, RowOrDefault, set[str]]] = [
            (("matrix", index), row, set(of_world if row.target == GLOBAL else of_agents))
            for index, row in enumerate(config.matrix)
        ]
        for path, source, names in [*sources, (("default",), config.default, others)]:
            if source.law == "multiplicative" or not source.factor or source.level is ObservabilityLevel.UNAWARE:
                continue
            seen = names if source.level is ObservabilityLevel.INSIDER else names & external
            endless = sorted(name for name in seen if not self.state_variables.definition(name).has_range)
            if endless:
                words = f"additive noise is relative to a range: give min and max to {', '.join(endless)}"
                yield Problem(("observability", *path, "law"), words)

    def _misnamed_agents(self) -> Iterator[Problem]:
        first: dict[str, int] = {}
        for index, agent in enumerate(self.agents):
            path = ("agents", index, "name")
            earlier = first.setdefault(agent.name, index)
            if agent.name in RESERVED:
                yield Problem(path, f"an agent can't be called {agent.name!r}: that name is reserved; choose another")
            elif earlier != index:
                yield Problem(path, f"Duplicate agent {agent.name!r}, see agents[{earlier}]; rename one")

    def _wrong_initial_states(self) -> Iterator[Problem]:
        known = self.state_variables.agent_vars
        for index, agent in enumerate(self.agents):
            for name, value in agent.initial_state.items():
                path = ("agents", index, "initial_state", name)
                if name not in known:
                    yield Problem(path, f"Unknown variable {name!r}.{remedy(name, known, known)}")
                    continue
                try:
                    known[name].checked(value)
                except ValueError as error:
                    yield Problem(path, str(error))

    def _wrong_termination(self) -> Iterator[Problem]:
        rule, variables = self.simulation.termination, self.state_variables
        if rule is None:
            return
        path = ("simulation", "termination", "variable")
        try:
            name = resolve(rule.variable, variables.visibility())
        except ConfigError as error:
            yield Problem(path, str(error))
            return
        kind = variables.definition(name).type
        if kind not in ("float", "int"):
            yield Problem(path, f"must be a float or int to have bounds, but {rule.variable!r} is {kind}")


def load_config(path: str | Path) -> SimulationConfig:
    """Read an environment's YAML file. Raises ConfigError, with file and line of every mistake.

    Returns: its settings, for `from_config`.

    >>> from importlib.resources import files
    >>> load_config(str(files("heron_env.worlds.economy") / "economy.yaml")).simulation.name
    'economy'
    """
    return YamlFile.read(path).build(SimulationConfig)
