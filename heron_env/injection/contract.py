"""What is sent to an endpoint and what comes back: schema_version "2.0" of `docs/injection.schema.json`.

A request says who is asked (persona), what was said (conversation_context), and, in `decision`, what the agent sees and
may do. A response has the `action`, a `plan` of several, or `response_text` in a conversation. Its unknown fields are
ignored, and private reasoning is dropped before anything is kept.

Actions: numbers are float64 with all their bits; choices are whole numbers, never `true` or `1.0`. Of an answer, null
is the same as absent, but for `plan` without an action: nothing new.

Version 1.0 listed what a single choice has, `n: [2]`: its recordings are played in it, and what we serve answers it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Annotated, Any, Final, Literal

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field
from pydantic.json_schema import models_json_schema

from heron_env.core.action import Action, ActionSpec
from heron_env.core.masking import drawn, flat
from heron_env.core.plans import End, Merge
from heron_env.errors import ConfigError, path_text

SCHEMA_VERSION: Final = "2.0"
FIRST_VERSION: Final = "1.0"
Uuid = Annotated[str, Field(pattern=r"^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$")]
Sha256 = Annotated[str, Field(pattern=r"^sha256:[0-9a-f]{64}$")]
Numbers = Annotated[tuple[float, ...], Field(strict=False)]
Lists = BeforeValidator(lambda value: tuple(value) if isinstance(value, list) else value)
"""As strict=False, which pydantic before 2.11 overlooks within a union."""
Whole = Annotated[tuple[int, ...], Lists]
Texts = Annotated[tuple[str, ...], Field(strict=False)]
Masks = Annotated[tuple[Whole, ...], Lists]


class WireModel(BaseModel):
    """Of a request: nothing is missing, nothing is unknown, nothing is converted."""

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid", allow_inf_nan=False)


class PersonaRef(WireModel):
    """Which persona, for endpoints that hold personas of their own."""

    persona_id: str
    persona_version: str
    persona_hash: Sha256


class PersonaSnapshot(WireModel):
    """The persona itself, as far as the privacy tier lets it be told."""

    name: str
    background: str
    traits: dict[str, float]


class Turn(WireModel):
    """One letter of the conversation; its time is virtual, counted from 1970-01-01."""

    sender: str
    content: str
    timestamp: str


class ConversationContext(WireModel):
    """The last letters from and to the agent, oldest first; the oldest are left out where they don't fit."""

    last_k_turns: Annotated[tuple[Turn, ...], Field(strict=False)]
    conversation_summary: str
    token_budget: int
    max_context_chars: int


class TopologyEdgeContext(WireModel):
    """To whom the agent can write."""

    can_message: Texts


class ResponseFormat(WireModel):
    """What is needed: an `action`, or in a conversation `response_text`."""

    type: Literal["text", "action"]


class Observed(WireModel):
    """What the agent sees: float32 numbers in decimals that give the same bits back, their names and units.

    `names` and `units` are empty in the tier minimal, and in basic those of other agents are "".
    """

    vector: Numbers
    names: Texts
    units: Texts


class ActionSpace(WireModel):
    """What the agent may do.

    box: a list of numbers within `low` and `high`; discrete: a whole number below `n`; multi_discrete: a list, each
    below its `n`; mixed: {"c": as for box, "d": as for the choices}. `noop`, in the same form, does nothing.
    """

    type: Literal["box", "discrete", "multi_discrete", "mixed"]
    low: Numbers
    high: Numbers
    n: int | Whole
    noop: Any


class ActuatorState(WireModel):
    """What the agent's actuator is doing, as `heron_env.core.plans.Running` has it; actions as in an answer."""

    number: int
    index: int
    remaining: Annotated[tuple[Any, ...], Field(strict=False)]
    age: int
    prefix: int
    left: int
    delay: int | None


class Decision(WireModel):
    """One decision of a simulation; null in a conversation.

    A choice whose `action_mask` is 0 is forbidden. It has the form of `n`: flags of one choice, or a list for each.
    `running` is null where nobody says what an actuator does.
    """

    kind: Literal["action"]
    step: int
    episode: int
    time_s: float
    observation: Observed
    action_space: ActionSpace
    action_mask: Whole | Masks | None
    running: ActuatorState | None
    reward_prev: None


class Request(WireModel):
    """The body of a POST to the endpoint."""

    schema_version: Literal["2.0"]
    request_id: Uuid
    run_id: Uuid
    turn_id: Uuid
    message_id: Uuid
    simulation_config_hash: Sha256
    persona_hash: Sha256
    agent_id: str
    persona_ref: PersonaRef
    persona_snapshot: PersonaSnapshot
    conversation_context: ConversationContext
    current_stimulus: str
    topology_edge_context: TopologyEdgeContext
    timeout_ms: int
    response_format: ResponseFormat
    decision: Decision | None


class Given(BaseModel):
    """Of a response: nothing is converted; what is unknown is ignored; null is absent."""

    model_config = ConfigDict(strict=True, frozen=True, extra="ignore", allow_inf_nan=False)


class LetterGiven(Given):
    """Words for another agent: JSON of at most 16 kB, which travel on the agent's own link."""

    receiver: str
    kind: Annotated[str, Field(min_length=1, max_length=100)] | None = "message"
    body: Any = None


class ErrorGiven(Given):
    """Why the endpoint has no answer; the message is for its owner, and kept nowhere."""

    code: str | None = "INTERNAL"
    message: str | None = ""


class PlanGiven(Given):
    """A plan in the place of an action; what is left out of it is as `heron_env.Plan` has it. null: nothing new."""

    plan: Annotated[list[Any], Field(min_length=1)] | None = None
    period_s: Annotated[float, Field(gt=0.0)] | None = None
    start_s: float | None = None
    merge: Merge | None = None
    end: End | None = None
    weight: Annotated[float, Field(ge=0.0)] | None = None


class Response(PlanGiven):
    """The body of an answer, status 200: with `action` or `plan`, or with `response_text` in a conversation."""

    request_id: str | None = None
    response_text: str | None = None
    action: Any = None
    letters: Annotated[tuple[LetterGiven, ...], Field(strict=False)] | None = ()
    explanation: str | None = None
    debug: dict[str, Any] | None = None
    confidence: Annotated[float, Field(ge=0.0, le=1.0)] | None = None
    latency_ms: Annotated[float, Field(ge=0.0)] | None = None
    usage: dict[str, Any] | None = None
    error: ErrorGiven | None = None


def schema() -> dict[str, Any]:
    """JSON Schema (2020-12) of both bodies, under `$defs`: `Request` and `Response`."""
    _, defs = models_json_schema([(Request, "validation"), (Response, "validation")], title="heron_env agent injection")
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **defs}


def current(request: Any) -> Any:
    """A request of any version as this version has it; what is none stays as it is."""
    if not isinstance(request, dict) or request.get("schema_version") != FIRST_VERSION:
        return request
    request = {**request, "schema_version": SCHEMA_VERSION}
    match request.get("decision"):
        case {"action_space": {"type": "discrete" | "mixed", "n": [n]} as space, **others}:
            match others.get("action_mask"):
                case [flags]:
                    others["action_mask"] = flags
            request["decision"] = {**others, "action_space": {**space, "n": n}}
    if isinstance(decision := request.get("decision"), dict):
        request["decision"] = {"running": None, **decision}
    return request


def in_version(request: dict[str, Any], version: str) -> dict[str, Any]:
    """A request of this version as one of the contract's versions has it."""
    if version != FIRST_VERSION:
        return request
    request, decision = {**request, "schema_version": FIRST_VERSION}, request["decision"]
    if decision is not None:
        request["decision"] = decision = {name: part for name, part in decision.items() if name != "running"}
        if isinstance(n := decision["action_space"]["n"], int):
            mask = decision["action_mask"]
            decision |= {"action_space": {**decision["action_space"], "n": [n]}, "action_mask": mask and [mask]}
    return request


class Illegal(ValueError):
    """Not an action of this space; the message never repeats what was answered."""


@dataclass(frozen=True, eq=False)
class Wire:
    """One action space as JSON: `description` for requests, and readers for what comes back.

    Attributes:
        low, high: bounds of the numbers, float32 `[c]`, as the space has them.
        n: choices of each discrete element, `[d]`.
        noop: the action vector that does nothing, float64 `[c + d]`.
        dtype: of the numbers, as the environment takes them.
    """

    kind: str
    low: NDArray[np.float32]
    high: NDArray[np.float32]
    n: tuple[int, ...]
    noop: NDArray[np.float64]
    dtype: Any = np.float64

    @classmethod
    def of(cls, space: spaces.Space[Any], noop: Sequence[float] = ()) -> Wire:
        """Of a space as environments have them; without a no-op: zeros, clipped. Raises ConfigError for others."""
        numbers = np.zeros(0, np.float32)
        n: tuple[int, ...] = ()
        match space:
            case spaces.Box(low=low, high=high) if low.ndim == 1:
                kind, low, high = "box", low.astype(np.float32), high.astype(np.float32)
            case spaces.Discrete(start=0):
                kind, low, high, n = "discrete", numbers, numbers, (int(space.n),)
            case spaces.MultiDiscrete() if space.nvec.ndim == 1:
                kind, low, high, n = "multi_discrete", numbers, numbers, tuple(space.nvec.tolist())
            case spaces.Dict(spaces={"c": spaces.Box() as c, "d": d}):
                kind, low, high, n = "mixed", c.low, c.high, cls.of(d).n
            case _:
                raise ConfigError(f"{space!r}: an endpoint is told Box, Discrete, MultiDiscrete, or both as c and d")
        if not (np.isfinite(low).all() and np.isfinite(high).all()):
            raise ConfigError(f"{space!r}: an endpoint is told bounds in JSON, which are finite; bound the action")
        still = np.concatenate([np.clip(np.zeros(len(low)), low, high), np.zeros(len(n))])
        return cls(kind, low, high, n, np.asarray(noop, np.float64) if len(noop) == len(still) else still)

    @classmethod
    def of_description(cls, space: ActionSpace) -> Wire:
        """Of what `description` gave. Raises ValueError, TypeError, KeyError where it is none."""
        low, high = np.array(space.low, np.float32), np.array(space.high, np.float32)
        if len(low) != len(high):
            raise ValueError(f"{len(low)} lower bounds and {len(high)} upper ones")
        n = (space.n,) if isinstance(space.n, int) else space.n
        wire = cls(space.type, low, high, n, np.zeros(len(low) + len(n)))
        if wire.single != isinstance(space.n, int):
            raise ValueError(f"n={space.n} of a space {space.type!r}")
        return replace(wire, noop=wire.flat(space.noop))

    def description(self) -> ActionSpace:
        """For a request."""
        low, high = decimals(self.low), decimals(self.high)
        n = self.n[0] if self.single else self.n
        return ActionSpace(type=self.kind, low=low, high=high, n=n, noop=self.written(self.noop))  # type: ignore[arg-type]  # one of them

    @property
    def single(self) -> bool:
        """Is there one choice, which is written as a number?"""
        return len(self.n) == 1 and self.kind != "multi_discrete"

    def masks(self, mask: Any) -> tuple[tuple[int, ...], ...] | None:
        """What may be chosen, by discrete element."""
        if mask is None or not self.n:
            return None
        flags, stops = flat(mask).tolist(), np.cumsum((0, *self.n)).tolist()
        return tuple(tuple(flags[a:b]) for a, b in pairwise(stops))

    def action_mask(self, mask: Any) -> tuple[Any, ...] | None:
        """The same for a request."""
        parts = self.masks(mask)
        return parts[0] if parts and self.single else parts

    def flags(self, action_mask: tuple[Any, ...] | None) -> tuple[tuple[int, ...], ...] | None:
        """What may be chosen by discrete element, of a request's. Raises ValueError: it has another form."""
        if action_mask is None:
            return None
        parts = (action_mask,) if self.single else action_mask
        if not all(isinstance(part, tuple) for part in parts) or tuple(map(len, parts)) != self.n:
            raise ValueError("its mask has another length than its choices")
        return parts

    def read(self, action: Any, mask: Any = None, clip: bool = False) -> tuple[Any, bool]:
        """The action that an answer means, as environments take it, and was it clipped? Raises Illegal.

        A forbidden choice is none, but for the no-op, which may always fall; `clip`: numbers beyond a bound become it.
        """
        if self.kind == "mixed":
            if not isinstance(action, dict) or action.keys() != {"c", "d"}:
                raise Illegal('needs {"c": [numbers], "d": choices}')
            numbers, clipped = self._numbers(action["c"], clip)
            return {"c": numbers, "d": self._choices(action["d"], mask)}, clipped
        return self._numbers(action, clip) if self.kind == "box" else (self._choices(action, mask), False)

    def _numbers(self, numbers: Any, clip: bool) -> tuple[NDArray[np.float64], bool]:
        if not isinstance(numbers, list) or len(numbers) != len(self.low):
            raise Illegal(f"needs a list of {len(self.low)} numbers")
        if any(isinstance(value, bool) or not isinstance(value, int | float) for value in numbers):
            raise Illegal("needs numbers")
        try:
            values = np.array(numbers, dtype=np.float64)
        except OverflowError as error:  # a whole number of hundreds of digits
            raise Illegal("needs finite numbers") from error
        if not np.isfinite(values).all():
            raise Illegal("needs finite numbers")
        with np.errstate(over="ignore"):
            rounded = values.astype(np.float32)
        outside = (rounded < self.low) | (rounded > self.high)
        if not outside.any():
            return values, False
        if not clip:
            raise Illegal("lies outside its bounds")
        return np.where(outside, np.clip(values, self.low, self.high), values), True

    def _choices(self, choices: Any, mask: Any) -> Any:
        chosen = [choices] if self.single else choices
        if not isinstance(chosen, list) or len(chosen) != len(self.n):
            raise Illegal(f"needs a list of {len(self.n)} choices")
        masks = self.masks(mask)
        for place, (choice, n) in enumerate(zip(chosen, self.n, strict=True)):
            if type(choice) is not int or not 0 <= choice < n:
                raise Illegal(f"needs whole numbers from 0 to {n - 1}")
            if masks is not None and not masks[place][choice] and choice != self.noop[len(self.low) + place]:
                raise Illegal("chooses what the mask forbids")
        return chosen[0] if self.single else np.array(chosen, dtype=np.int64)

    def written(self, action: Any) -> Any:
        """An action of ours (array, number, Action, {"c", "d"}) as JSON, bit for bit. Raises ConfigError."""
        if isinstance(action, Action):
            action = action.vector()
        elif isinstance(action, dict):
            action = np.concatenate([np.ravel(action.get(part, ())) for part in ("c", "d")])
        try:
            vector = np.array(action, dtype=np.float64).reshape(-1)
        except (TypeError, ValueError) as error:
            raise ConfigError(f"the local policy's action {action!r:.100} is not numeric; return numbers") from error
        if len(vector) != len(self.noop) or not all(map(math.isfinite, vector)):
            raise ConfigError(f"the local policy's action {action!r:.100} is none of {len(self.noop)} finite numbers")
        numbers, choices = vector[: len(self.low)].tolist(), vector[len(self.low) :].tolist()
        whole = [int(choice) if choice.is_integer() else choice for choice in choices]
        picked: Any = whole[0] if self.single else whole
        return {"c": numbers, "d": picked} if self.kind == "mixed" else numbers if self.kind == "box" else picked

    def flat(self, written: Any) -> NDArray[np.float64]:
        """What `written` gave as one vector `[c + d]`. Raises ValueError, TypeError, KeyError where it is none."""
        parts = [written["c"], written["d"]] if self.kind == "mixed" else [written]
        vector = np.concatenate([np.ravel(np.array(part, np.float64)) for part in parts])
        if vector.shape != self.noop.shape or not np.isfinite(vector).all():
            raise ValueError(f"must be {len(self.noop)} finite numbers")
        return vector

    def ours(self, written: Any) -> Any:
        """What `written` gave, as environments take it."""
        if self.kind == "mixed":
            return {"c": np.array(written["c"], self.dtype), "d": self.choices_of(written["d"])}
        return np.array(written, self.dtype) if self.kind == "box" else self.choices_of(written)

    @staticmethod
    def choices_of(written: Any) -> Any:
        """One number, or an array of them."""
        return np.array(written) if isinstance(written, list) else written

    def sampled(self, u: NDArray[np.float64], mask: Any = None) -> Any:
        """An action that is allowed, uniformly, as JSON; `u` uniforms `[c + d]` in [0, 1)."""
        spec = ActionSpec(self.low.astype(np.float64), self.high.astype(np.float64), np.array(self.n, dtype=np.int64))
        flags = None if mask is None or not self.n else flat(mask)[None]
        return self.written(drawn(spec, u[None], flags)[0])


def decimals(values: NDArray[Any]) -> tuple[float, ...]:
    """Numbers as decimals that give the same bits back, read as float64; of float32, cast to that, the shortest."""
    doubles = [float(str(value)) for value in values] if values.dtype == np.float32 else values.astype(float).tolist()
    if not np.array_equal(np.array(doubles).astype(values.dtype), values):  # rounding twice went another way
        doubles = values.astype(np.float64).tolist()
    return tuple(doubles)


def difference(old: Any, new: Any, path: tuple[str | int, ...] = ()) -> str:
    """The first place where two JSON values differ, `decision.time_s: 2.0 there, 3.0 asked`; "" if nowhere."""
    if isinstance(old, dict) and isinstance(new, dict):
        for name in dict.fromkeys([*old, *new]):
            if (name in old) != (name in new):
                return f"{path_text((*path, name))}: {'there' if name in old else 'asked'} alone"
            if nested := difference(old[name], new[name], (*path, name)):
                return nested
        return ""
    if (lists := isinstance(old, list) and isinstance(new, list)) and len(old) == len(new):
        each = enumerate(zip(old, new, strict=True))
        return next(filter(None, (difference(a, b, (*path, place)) for place, (a, b) in each)), "")
    first, second = (str(len(of)) if lists else json.dumps(of) for of in (old, new))
    return "" if first == second else f"{path_text(path)}: {first:.60} there, {second:.60} asked"
