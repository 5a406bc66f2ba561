"""What a question needs to know of the environment, taken from it once: who the agents are, and whom they can write to.

It never holds the truth, a seed, a noise factor, or what others earn.

Names that are the same in every run: UUIDs and sha256 over canonical JSON (RFC 8785), never of a seed.

Whoever can guess what was hashed can undo a hash. With a `key`, a secret of the run, nobody can who lacks it.
"""

from __future__ import annotations

import hashlib
import hmac
import inspect
import json
import math
from collections.abc import Mapping
from dataclasses import asdict, is_dataclass
from os import PathLike
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from pydantic import BaseModel

from heron_env.declared.configuration import Persona
from heron_env.errors import ConfigError
from heron_env.given import keywords, mapping, require_type
from heron_env.injection.contract import Numbers, Texts, WireModel

if TYPE_CHECKING:
    from heron_env.envs.base import HeronEnv

Where = tuple[str | int, ...]
"""(episode, agent, number) of a decision; one that is asked again under a number also has how often it was before."""
EXACT: Final = 2**53
"""Whole numbers beyond it are written as text: a reader of JSON may hold numbers as float64."""


def canonical(value: Any) -> bytes:
    """RFC 8785 JSON of what `plain` makes of a value. Raises ConfigError where the extra `agents` is missing."""
    try:
        import rfc8785
    except ImportError as error:
        raise ConfigError("external agents need rfc8785: pip install 'heron_env[agents]'") from error
    return rfc8785.dumps(plain(value))


def plain(value: Any) -> Any:
    """A value as JSON: models and dataclasses by their fields, arrays as lists, code by its name, sets sorted."""
    match value:
        case None | bool():
            return value
        case str():
            return value.encode("utf-8", "replace").decode()
        case int() | np.integer():
            return int(value) if abs(int(value)) < EXACT else str(int(value))
        case float() | np.floating():
            return float(value) if math.isfinite(value) else str(float(value))
        case BaseModel():
            return plain(value.model_dump())
        case Mapping():
            return {str(name): plain(item) for name, item in value.items()}
        case set() | frozenset():
            return sorted(map(str, value))
        case list() | tuple():
            return [plain(item) for item in value]
        case np.ndarray() | np.bool_():
            return plain(value.tolist())
        case PathLike():
            return str(value)
    if is_dataclass(value) and not isinstance(value, type):
        return plain(asdict(value))
    named = value if hasattr(value, "__qualname__") else type(value)
    return f"{named.__module__}:{named.__qualname__}"


def sha256(value: Any, key: str = "") -> str:
    """`sha256:` and 64 hexadecimal digits; with a key, of HMAC."""
    data = canonical(value)
    digest = hmac.new(key.encode(), data, hashlib.sha256) if key else hashlib.sha256(data)
    return f"sha256:{digest.hexdigest()}"


def uuid8(data: bytes, key: str = "") -> str:
    """A UUID of version 8 (RFC 9562): 122 bits of blake2b, keyed by a `key` of up to 64 letters."""
    number = int.from_bytes(hashlib.blake2b(data, digest_size=16, key=key.encode()).digest(), "big")
    number = number & ~(0xF << 76) | 8 << 76
    number = number & ~(0x3 << 62) | 2 << 62
    text = f"{number:032x}"
    return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))


class Ids:
    """The ids of one run: of (env id, options, label), then of episode, agent, number, and attempt.

    `label` is policy, case, condition; never a seed, since a hash of one can be guessed.
    """

    def __init__(self, env_id: str, options: Mapping[str, Any], label: str, key: str = "") -> None:
        self._prefix, self._key = canonical([env_id, options, label])[:-1], key
        self.run = uuid8(self._prefix + b"]", key)

    def _of(self, *parts: str | int) -> str:
        text = json.dumps(parts, ensure_ascii=False, separators=(",", ":"))  # canonical for text and whole numbers
        return uuid8(self._prefix + b"," + text[1:].encode("utf-8", "replace"), self._key)

    def turn(self, where: Where) -> str:
        """Of one decision."""
        return self._of(*where)

    def message(self, where: Where) -> str:
        """Of what it was told."""
        return self._of(*where, "stimulus")

    def request(self, where: Where, attempt: int) -> str:
        """Of one request of it, attempts counted from 0."""
        return self._of(*where, attempt)


class AgentFacts(WireModel):
    """One agent: its persona, units of what it sees, its no-op (numbers, then choices), whom it can write to."""

    persona: Persona
    units: Texts = ()
    noop: Numbers = ()
    can_message: Texts = ()


class EnvironmentFacts(WireModel):
    """An environment: its id, its options as JSON, its agents."""

    env_id: str
    options: dict[str, Any]
    agents: dict[str, AgentFacts]

    @classmethod
    def of(
        cls,
        env: HeronEnv | None,
        *,
        env_id: str | None = None,
        options: Mapping[str, Any] | None = None,
        personas: Mapping[str, Persona] | None = None,
    ) -> EnvironmentFacts:
        """Of an environment; `env_id` and `options` as it was made with, else what it says of itself.

        `personas`: by agent or group; others have what their class says of them.
        """
        require_type(f"env_id={env_id!r:.60}", env_id, (str, type(None)), "a text, or None")
        options = None if options is None else keywords(options, "options")
        personas = mapping({} if personas is None else personas, "personas")
        for name, persona in personas.items():
            require_type(f"personas[{name!r:.60}]={persona!r:.60}", persona, Persona, "a Persona")
        if not (env is None or hasattr(env, "hierarchy")):  # no import: HeronEnv knows these modules
            raise ConfigError(f"env={env!r:.60}: must be a HeronEnv, or None")
        if env is None:
            facts = {name: AgentFacts(persona=persona) for name, persona in personas.items()}
            return cls(env_id=env_id or "unknown", options=plain(options or {}), agents=facts)
        group_of = {agent: group for group, agents in env.groups.items() for agent in agents}
        facts = {}
        for rank, agent in enumerate(env.hierarchy.agents):
            name = agent.agent_id
            persona = personas.get(name) or personas.get(group_of[name]) or _persona(agent)
            facts[name] = AgentFacts(
                persona=persona,
                units=tuple(env.observation_units(name)),
                noop=tuple(env.simulation.model.specs[rank].noop.tolist()),
                can_message=tuple(env.may_write_to(name)),
            )
        defaults = {"dt": env.dt, "max_steps": env.termination.max_steps, "agents": list(env.possible_agents)}
        name = str(env.metadata["name"]) if env_id is None else env_id
        return cls(env_id=name, options=plain(defaults if options is None else options), agents=facts)

    def facts(self, agent: str) -> AgentFacts:
        """Of an agent; of one that nothing is known of, its name."""
        return self.agents.get(agent) or AgentFacts(persona=Persona(name=agent))


def _persona(agent: Any) -> Persona:
    """What its class says of an agent: its role and level, what it does, what it earns."""
    kind = type(agent)
    reward = inspect.getdoc(getattr(kind, "compute_local_reward", None)) or ""
    does = (inspect.getdoc(kind) or "").partition("\n")[0]
    return Persona(
        name=agent.agent_id,
        background=f"{kind.__name__}, level {agent.level}. {does}".strip(),
        goal=f"Reward: {reward.partition(chr(10))[0]}" if reward else "",
    )
