"""What the service is sent: forms that refuse what they do not know, and never repeat what may be a secret."""

from __future__ import annotations

import math
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from heron_env.declared.injected import Strategy

MOST_STEPS: Final = 10_000
MOST_SEED: Final = 2**53 - 1
"""Whole numbers up to here are the same in every JSON reader."""
MOST_DEPTH: Final = 32
SIMULATED: Final = "simulated_agent"
Seed = Annotated[int, Field(ge=0, le=MOST_SEED)]
Text = Annotated[str, Field(min_length=1, max_length=500)]


class Form(BaseModel):
    """Nothing unknown, nothing converted, and nothing that can't be written down as JSON in UTF-8."""

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid", allow_inf_nan=False)

    @model_validator(mode="before")
    @classmethod
    def _written(cls, given: Any) -> Any:
        _require_written(given)
        return given


class NewSimulation(Form):
    """An environment by its registered id, with options; it is reset with the seed at once."""

    env: Text
    options: dict[str, Any] = {}
    seed: Seed = 0


class Steps(Form):
    """So many steps with these actions; agents without one follow their own policy, else do nothing."""

    steps: Annotated[int, Field(ge=1, le=MOST_STEPS)] = 1
    actions: dict[str, Any] = {}


class Reset(Form):
    """A new episode; without a seed the next one of the same."""

    seed: Seed | None = None


class Removal(Form):
    """Whose endpoint plays no longer."""

    agent_id: Text


class Injection(Form):
    """Who is played by which endpoint. The key is named, never sent: `api_key_env`.

    What stands in where no answer counts is `fallback`. `fallback_to_simulated` is short for "simulated_agent" (true)
    or "skip" (false); `fallback` alone suffices, and the two may not contradict each other.
    """

    agent_id: Text
    endpoint_url: Annotated[str, Field(min_length=1, max_length=2000)]
    api_key_env: Annotated[str, Field(pattern=r"^[A-Z_][A-Z0-9_]*$", max_length=200)] | None = None
    timeout_seconds: Annotated[float, Field(gt=0.0, le=3600.0, strict=False)] = 30.0
    privacy_tier: Literal["minimal", "basic", "full"] = "basic"
    fallback: Strategy = SIMULATED
    fallback_to_simulated: bool = True

    @model_validator(mode="before")
    @classmethod
    def _one_fallback(cls, given: Any) -> Any:
        if not isinstance(given, dict):
            return given
        short = given.get("fallback_to_simulated", given.get("fallback", SIMULATED) == SIMULATED)
        fallback = given.get("fallback", SIMULATED if short else "skip")
        if isinstance(short, bool) and short != (fallback == SIMULATED):
            raise ValueError("fallback and fallback_to_simulated contradict each other; send one of them")
        return {**given, "fallback": fallback, "fallback_to_simulated": short}

    @model_validator(mode="before")
    @classmethod
    def _no_key(cls, given: Any) -> Any:
        if isinstance(given, dict) and "api_key" in given:
            raise ValueError(
                "a key is never sent: put it into an environment variable of the server, its name in api_key_env"
            )
        return given

    @field_validator("timeout_seconds", mode="before")
    @classmethod
    def _a_number(cls, given: Any) -> Any:
        if isinstance(given, bool) or not isinstance(given, int | float):
            raise ValueError("must be a number of seconds")
        return given


def _require_written(value: Any, depth: int = 0) -> None:
    """Raise ValueError for what JSON in UTF-8 can't hold: half a surrogate pair, a number that is not finite."""
    match value:
        case str() if not value.isascii() and any("\ud800" <= letter <= "\udfff" for letter in value):
            raise ValueError("half a surrogate pair, which no UTF-8 text can hold; send whole characters")
        case float() if not math.isfinite(value):
            raise ValueError("a number that is not finite, which JSON has none of; send a finite one")
        case dict() | list() if depth == MOST_DEPTH:
            raise ValueError(f"nested deeper than {MOST_DEPTH}; send something flatter")
        case dict():
            for name, item in value.items():
                _require_written(name)
                _require_written(item, depth + 1)
        case list():
            for item in value:
                _require_written(item, depth + 1)
