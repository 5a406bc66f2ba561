"""From what an agent is asked to the request that an endpoint gets: the one place where its fields are filled.

An endpoint gets pseudonyms instead of names, and nothing that looks like a person's data. That acts after visibility
and noise, and only removes: who is told less is told a part of the same.
"""

from __future__ import annotations

import json
import os
import re
from collections import Counter, deque
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta, timezone
from itertools import count
from typing import Any, Final

import numpy as np
from pydantic import Field

from heron_env.core.letters import Letter
from heron_env.core.plans import NOTHING
from heron_env.core.policy import Asked
from heron_env.declared.configuration import Tier
from heron_env.errors import ConfigError, changed_names
from heron_env.files.writing import compact
from heron_env.injection import contract as c
from heron_env.injection.contract import Wire, decimals, difference
from heron_env.injection.setting import EnvironmentFacts, Ids, Where, sha256

REDACTED: Final = "[redacted]"
_EMAIL: Final = r"[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,8}"
_IBAN: Final = r"\b[A-Za-z]{2}\d{2}(?: ?[A-Za-z0-9]{4}){2,7}(?: ?[A-Za-z0-9]{1,3})?\b"
_SSN: Final = r"(?<![\d-])\d{3}-\d{2}-\d{4}(?![\d-])"
_CARD: Final = re.compile(r"(?<!\d)\d(?:[ -]?\d){12,18}(?!\d)")
_PHONE: Final = re.compile(
    r"(?<![\w.])(?:\+\(?\d(?:[ ().\-/]{0,2}\d){6,14}"  # with a country code
    r"|\(?\d{2,5}\)?[ .\-/]{1,2}\d{2,4}(?:[ .\-/]\d{2,5}){1,4}"  # in groups
    r"|0\d{8,12})(?!\w)"
)
_DATE: Final = re.compile(r"\d{4}-\d{2}-\d{2}")
_PATTERNS: Final = re.compile(f"{_EMAIL}|{_IBAN}|{_SSN}")


def redacted(text: str) -> str:
    """The text without e-mail addresses, IBANs, social security, card (by Luhn's sum) and telephone numbers."""
    if not any(letter.isdigit() or letter == "@" for letter in text):
        return text
    text = _CARD.sub(lambda match: REDACTED if _luhn(match[0]) else match[0], _PATTERNS.sub(REDACTED, text))
    return _PHONE.sub(lambda match: REDACTED if _dialled(match[0]) else match[0], text)


def _luhn(text: str) -> bool:
    """Is it the number of a payment card?"""
    digits = [int(letter) for letter in text if letter.isdigit()]
    twice = [digit * 2 - 9 * (digit > 4) for digit in digits[-2::-2]]
    return (sum(digits[-1::-2]) + sum(twice)) % 10 == 0


def _dialled(text: str) -> bool:
    """Has it the digits of a telephone number, and is it no date?"""
    return sum(map(str.isdigit, text)) >= 7 and not _DATE.match(text)


class Aliases:
    """How an endpoint is told of agents: by their names, or as a1, a2, ... in the order of their first use.

    Args:
        agents: all names, which are replaced in texts, too.
        hidden: pseudonyms for all; otherwise only for those whose name looks like personal data.
        redact: is such data removed?
    """

    def __init__(self, agents: Iterable[str], *, hidden: bool, redact: bool) -> None:
        self._hidden, self._redact = hidden, redact
        names = sorted(agents, key=len, reverse=True)
        self._taken = frozenset(names)
        self._names = re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, names))})(?!\w)") if names and hidden else None
        self._aliases: dict[str, str] = {}
        self._real: dict[str, str] = {}

    def begin(self) -> None:
        """An episode begins: nobody was told of."""
        self._aliases.clear()
        self._real.clear()

    def of(self, agent: str) -> str:
        """What the endpoint is told for this agent's name."""
        if agent not in self._aliases:
            secret = self._hidden or (self._redact and redacted(agent) != agent)
            free = (name for name in map("a{}".format, count(1)) if name not in self._taken | self._real.keys())
            alias = next(free) if secret else agent
            self._aliases[agent], self._real[alias] = alias, agent
        return self._aliases[agent]

    def real(self, alias: str) -> str:
        """Whom the endpoint means; empty for a name that it was not told."""
        return self._real.get(alias, "")

    def text(self, text: str) -> str:
        """A text as the endpoint may read it."""
        if self._names is not None:
            text = self._names.sub(lambda match: self.of(match[0]), text)
        return redacted(text) if self._redact else text


def is_of_another(name: str) -> bool:
    """Does this element of an observation tell of another agent? `Charge.soc` and `global.Price.value` don't."""
    if name.startswith("global.") and name.count(".") == 2:
        return False
    return name.startswith("age.") or name.count(".") > 1


LAST_K: Final = 10
MAX_CONTEXT_CHARS: Final = 16_000
TOKEN_BUDGET: Final = 4_000
CHARS_A_TOKEN: Final = 4
EPOCH: Final = datetime(1970, 1, 1, tzinfo=timezone.utc)  # noqa: UP017  (Python 3.11 has both)


class Telling(c.WireModel):
    """How much an endpoint is told, in which name, and how long it has, ms; `chat`: a conversation, not actions.

    `key`: the secret by which ids and hashes are made; empty: none.
    """

    privacy_tier: Tier = "basic"
    send_persona_details_externally: bool = True
    redact_pii_patterns: bool = True
    label: str = ""
    timeout_ms: int = 30_000
    chat: bool = False
    key: str = Field(default="", repr=False)

    @property
    def tier(self) -> Tier:
        """The tier in force."""
        return self.privacy_tier if self.send_persona_details_externally else "minimal"

    def of_a_run(self) -> Telling:
        """The same with a fresh key, in the tier that hides names: they would be guessed from plain hashes."""
        return self.model_copy(update={"key": os.urandom(32).hex()}) if self.tier == "minimal" else self


@dataclass(frozen=True, slots=True)
class _AgentConstants:
    """What of an agent's requests stays: its persona, names and units as told, its action space."""

    names: tuple[str, ...]
    names_on_wire: tuple[str, ...]
    units: tuple[str, ...]
    wire: Wire
    space: Any


class Questions:
    """Makes requests; keeps what it must remember of an episode: pseudonyms, and the last letters of each agent.

    `version`: of the contract, in which they are sent and recorded.
    """

    def __init__(self, setting: EnvironmentFacts, telling: Telling, version: str = c.SCHEMA_VERSION) -> None:
        self.setting, self.telling, self.tier, self.version = setting, telling, telling.tier, version
        self.ids = Ids(setting.env_id, setting.options, telling.label, telling.key)
        self.config_hash = sha256([setting.env_id, setting.options], telling.key)
        hidden = self.tier == "minimal"
        self.aliases = Aliases(setting.agents, hidden=hidden, redact=telling.redact_pii_patterns)
        self._persona_hash: dict[str, str] = {}
        self._snapshots: dict[str, c.PersonaSnapshot] = {}
        self._constants: dict[str, _AgentConstants] = {}
        self._often: Counter[Where] = Counter()
        self._turns: dict[str, deque[tuple[str, str, float]]] = {}

    def begin(self) -> None:
        """Begin an episode."""
        self.aliases.begin()
        self._turns.clear()
        self._often.clear()

    def wire(self, query: Asked) -> Wire:
        """The asked agent's action space on the wire."""
        return self._of(query).wire

    def where(self, query: Asked) -> Where:
        """Which decision it is; a pushed observation, or a step taken back, may ask again under the same number."""
        where = (query.episode, query.agent, query.number)
        self._often[where] += 1
        return where if self._often[where] == 1 else (*where, "again", self._often[where] - 1)

    def request(self, query: Asked) -> c.Request:
        """The request of a question, at its first attempt; it counts as asked."""
        return self.due(query)[1]

    def due(self, query: Asked) -> tuple[Where, c.Request]:
        """The same, with which decision it is."""
        agent, where = query.agent, self.where(query)
        alias, turns = self.aliases.of(agent), self._turns.setdefault(agent, deque(maxlen=LAST_K))
        turns.extend((letter.sender, as_text(letter.body), query.time) for letter in query.letters)
        context = self._context(turns)
        facts, telling = self.setting.facts(agent), self.telling
        neighbours = () if self.tier == "minimal" else tuple(map(self.aliases.of, facts.can_message))
        persona_hash = self.persona_hash(agent)
        stimulus = as_text(query.letters[-1].body) if query.letters else ""
        return where, c.Request(
            schema_version=c.SCHEMA_VERSION,
            request_id=self.ids.request(where, 0),
            run_id=self.ids.run,
            turn_id=self.ids.turn(where),
            message_id=self.ids.message(where),
            simulation_config_hash=self.config_hash,
            persona_hash=persona_hash,
            agent_id=alias,
            persona_ref=c.PersonaRef(
                persona_id=self.aliases.text(facts.persona.persona_id) or alias,
                persona_version=self.setting.env_id,
                persona_hash=persona_hash,
            ),
            persona_snapshot=self._snapshot(agent),
            conversation_context=context,
            current_stimulus=self.aliases.text(stimulus),
            topology_edge_context=c.TopologyEdgeContext(can_message=neighbours),
            timeout_ms=telling.timeout_ms,
            response_format=c.ResponseFormat(type="text" if telling.chat else "action"),
            decision=None if telling.chat else self._decision(query),
        )

    @staticmethod
    def body(request: dict[str, Any], left: float) -> bytes:
        """A request as bytes, with `left` s to go."""
        timeout_ms = min(request["timeout_ms"], max(0, round(left * 1000.0)))
        return compact({**request, "timeout_ms": timeout_ms}).encode()

    def said(self, query: Asked, letters: Sequence[Letter]) -> None:
        """Remember what the agent wrote."""
        turns = self._turns.setdefault(query.agent, deque(maxlen=LAST_K))
        turns.extend((letter.sender, as_text(letter.body), query.time) for letter in letters)

    def persona_hash(self, agent: str) -> str:
        """Of the whole persona, whatever of it is told."""
        if agent not in self._persona_hash:
            self._persona_hash[agent] = sha256(self.setting.facts(agent).persona, self.telling.key)
        return self._persona_hash[agent]

    def _snapshot(self, agent: str) -> c.PersonaSnapshot:
        if agent not in self._snapshots:
            self._snapshots[agent] = self._persona_of(agent)
        return self._snapshots[agent]

    def _persona_of(self, agent: str) -> c.PersonaSnapshot:
        persona, text = self.setting.facts(agent).persona, self.aliases.text
        if self.tier == "minimal":
            return c.PersonaSnapshot(name="", background="", traits={})
        background = "\n".join(filter(None, (persona.background, persona.goal))) if self.tier == "full" else ""
        traits = {text(name): value for name, value in persona.traits.items()}
        return c.PersonaSnapshot(name=text(persona.name), background=text(background), traits=traits)

    def _context(self, turns: Sequence[tuple[str, str, float]]) -> c.ConversationContext:
        recent: list[c.Turn] = []
        left = min(MAX_CONTEXT_CHARS, TOKEN_BUDGET * CHARS_A_TOKEN)
        for sender, content, time in reversed(turns):
            turn = c.Turn(sender=self.aliases.of(sender), content=self.aliases.text(content), timestamp=stamp(time))
            left -= len(turn.sender) + len(turn.content)
            if left < 0:
                break
            recent.append(turn)
        return c.ConversationContext(
            last_k_turns=tuple(reversed(recent)),
            conversation_summary="",
            token_budget=TOKEN_BUDGET,
            max_context_chars=MAX_CONTEXT_CHARS,
        )

    def _decision(self, query: Asked) -> c.Decision:
        constants, running = self._of(query), None
        if not isinstance(query.vector, np.ndarray | np.generic | int | float):
            kind = type(query.vector).__name__
            raise ConfigError(f"{query.agent!r} sees a {kind}, endpoints get numbers; put FlattenObservation around it")
        vector = np.ravel(query.vector)
        if not np.isfinite(vector).all():
            place = int(np.argmin(np.isfinite(vector)))
            first = query.names[place] if query.names else place
            raise ConfigError(f"{query.agent!r} sees {first!r} as no finite number, which JSON has none of; bound it")
        if query.running is not NOTHING:
            remaining = tuple(map(constants.wire.written, query.running.remaining))
            running = c.ActuatorState(**asdict(replace(query.running, remaining=remaining)))
        return c.Decision(
            kind="action",
            step=query.turn,
            episode=query.episode,
            time_s=float(query.time),
            observation=c.Observed(vector=decimals(vector), names=constants.names_on_wire, units=constants.units),
            action_space=constants.space,
            action_mask=constants.wire.action_mask(query.mask),
            running=running,
            reward_prev=None,
        )

    def _of(self, query: Asked) -> _AgentConstants:
        constants = self._constants.get(query.agent)
        if constants is None or (constants.names is not query.names and constants.names != query.names):
            facts = self.setting.facts(query.agent)
            wire = Wire.of(query.space, facts.noop)
            if not query.names and np.size(query.vector):  # a black box, which takes numbers of its own type
                space: Any = query.space
                dtype = (space["c"] if wire.kind == "mixed" else space).dtype
                wire = replace(wire, dtype=dtype if dtype.kind == "f" else wire.dtype)
            names: tuple[str, ...] = ()
            shown: tuple[str, ...] = ()
            if self.tier != "minimal":
                names = tuple(map(self._named, query.names))
                units = facts.units if len(facts.units) == len(names) else ("",) * len(names)
                shown = tuple(unit if name else "" for name, unit in zip(names, units, strict=True))
            constants = self._constants[query.agent] = _AgentConstants(
                query.names, names, shown, wire, wire.description()
            )
        return constants

    def _named(self, name: str) -> str:
        """An element of an observation by its name, where the tier lets it be told."""
        return self.aliases.text(name) if self.tier == "full" or not is_of_another(name) else ""


def request_change(old: dict[str, Any], new: dict[str, Any]) -> str:
    """Where two requests differ: by name the columns of what is observed, else the first place; "" if nowhere."""
    before, now = ((request.get("decision") or {}).get("observation", {}).get("names", []) for request in (old, new))
    names = changed_names(before, now)
    return f"about other columns: {names}" if names else difference(old, new)


def as_text(body: Any) -> str:
    """A letter's body as text: itself, or its JSON."""
    return body if isinstance(body, str) else json.dumps(body, sort_keys=True, ensure_ascii=False)


def stamp(time: float) -> str:
    """Virtual time, s, as ISO 8601 from 1970-01-01."""
    return (EPOCH + timedelta(seconds=time)).isoformat(timespec="microseconds").replace("+00:00", "Z")
