"""An endpoint: where questions are sent, by which key, how long an answer may take, and what is told there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import urlsplit

from heron_env.declared.configuration import (
    AgentInjectionConfig,
    BreakerConfig,
    ConcurrencyConfig,
    EndpointConfig,
    Latency,
    Tier,
)
from heron_env.errors import ConfigError, DeclarationError, checked_keywords
from heron_env.net.guard import Guard, guard_of

if TYPE_CHECKING:
    from heron_env.net.client import Client, Question
    from heron_env.net.limits import TimeSource
    from heron_env.net.outcome import CallOutcome


@checked_keywords
@dataclass(frozen=True)
class Endpoint:
    """Endpoint of external agents.

    Args:
        url: http or https, without user and password.
        api_key_env: the environment variable that holds the key, which is sent as `Authorization: Bearer ...`; the key
            itself is kept nowhere.
        timeout: for one decision in all, waits and retries included, s.
        privacy_tier: "minimal": no names, pseudonyms for agents; "basic": the agent's own names, traits, neighbours;
            "full": also its background and goal, and what it sees of others by name.
        send_persona_details_externally: False: as "minimal".
        redact_pii_patterns: are e-mail addresses, telephone, card, account and social security numbers removed?
        clip: bring numbers beyond their bounds into them, instead of taking such an answer for none.
        latency: what of the latency becomes thinking time in virtual time.
        breaker, concurrency: when no requests are sent, and how many at once.
        model: what answers there, as written to files.
        allow: `IP:PORT` of the url, if that is a machine of a private network, as "192.168.1.5:8000": it may be talked
            to, over http, too.

    Raises ConfigError, in which no key and no password is repeated.
    """

    url: str
    api_key_env: str | None = None
    timeout: float = 30.0
    privacy_tier: Tier = "basic"
    send_persona_details_externally: bool = True
    redact_pii_patterns: bool = True
    clip: bool = False
    latency: Latency = field(default_factory=Latency)
    breaker: BreakerConfig = field(default_factory=BreakerConfig)
    concurrency: ConcurrencyConfig = field(default_factory=ConcurrencyConfig)
    model: str = ""
    allow: str | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        """Check what was given, as in a file."""
        fields = EndpointConfig.model_fields.keys() - {"agent_id", "timeout_seconds"}
        values = {"agent_id": "any", "timeout_seconds": self.timeout, **{name: getattr(self, name) for name in fields}}
        try:
            EndpointConfig.model_validate(values)
        except DeclarationError as error:
            words = "; ".join(f"{'.'.join(map(str, problem.path))}: {problem.message}" for problem in error.problems)
            raise ConfigError(f"Endpoint(...): {words}") from None
        kinds = ((self.latency, Latency), (self.breaker, BreakerConfig), (self.concurrency, ConcurrencyConfig))
        for value, kind in kinds:
            if not isinstance(value, kind):
                raise ConfigError(f"Endpoint(...): {value!r:.60} must be a {kind.__name__}")

    @classmethod
    def of(cls, config: AgentInjectionConfig, entry: EndpointConfig) -> Endpoint:
        """Make the endpoint that a block declares."""

        shared = ("privacy_tier", "send_persona_details_externally", "redact_pii_patterns", "latency", "concurrency")
        own = {name: value for name, value in dict(entry).items() if value is not None}
        own["timeout"], own["breaker"] = own.pop("timeout_seconds"), config.circuit_breaker
        del own["agent_id"]
        return cls(**{name: getattr(config, name) for name in shared} | own)

    @property
    def host(self) -> str:
        """Host and port, as written to files, without path and query."""
        parts = urlsplit(self.url)
        return f"{parts.hostname}:{parts.port}" if parts.port else str(parts.hostname)


class Asks(Protocol):
    """What a line leads to: the client of an endpoint, or whatever else answers questions as one does."""

    @property
    def circuit(self) -> str:
        """The breaker's state; empty where there is none."""
        ...

    def call(self, question: Question) -> CallOutcome:
        """How one question ended."""
        ...

    def call_all(self, questions: Sequence[Question]) -> list[CallOutcome]:
        """How several ended that were asked at once."""
        ...

    def close(self) -> None:
        """No more questions."""
        ...


class Connection:
    """The way to an endpoint: its client, with breaker and caps, made with the first question. Copies share it.

    Args:
        endpoint: where it leads.
        make: makes the client; None: one that talks to the endpoint's own host alone, of this machine only if the
            address says so itself.
    """

    def __init__(self, endpoint: Endpoint, make: Callable[[Endpoint], Asks] | None = None) -> None:
        self.endpoint, self._make = endpoint, make or client_of
        self._client: Asks | None = None

    @property
    def client(self) -> Asks:
        """The client. Raises ConfigError: no such key, or the address is refused."""
        if self._client is None:
            self._client = self._make(self.endpoint)
        return self._client

    def close(self) -> None:
        """Close its connections; a further question opens new ones."""
        if self._client is not None:
            self._client.close()

    def __deepcopy__(self, memo: dict[int, Any]) -> Connection:
        """The same: what is to be held back is held back for all of them."""
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        """In another process: a new one."""
        return Connection, (self.endpoint, self._make)


def client_of(endpoint: Endpoint, clock: TimeSource | None = None, guard: Guard | None = None) -> Client:
    """The client of an endpoint, which by default lets its own host through.

    Raises ConfigError, also where the extra `agents` is missing.
    """
    try:
        from heron_env.net.client import Client, Limits
    except ImportError as error:
        raise ConfigError("external agents need httpx: pip install 'heron_env[agents]'") from error
    limits = Limits(
        timeout=endpoint.timeout,
        in_flight=endpoint.concurrency.max_inflight_per_endpoint,
        per_second=endpoint.concurrency.qps_cap,
        failures=endpoint.breaker.failure_threshold,
        probe_after=endpoint.breaker.half_open_probe_interval_seconds,
        successes=endpoint.breaker.success_threshold,
    )
    return Client(
        endpoint.url,
        guard or guard_of(endpoint.url, endpoint.allow),
        key_env=endpoint.api_key_env,
        limits=limits,
        clock=clock,
    )
