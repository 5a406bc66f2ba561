"""What the service is sent: forms that refuse what they do not know, and never repeat what may be a secret."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

MOST_STEPS: Final = 10_000
MOST_SEED: Final = 2**53 - 1
"""Whole numbers up to here are the same in every JSON reader."""
Seed = Annotated[int, Field(ge=0, le=MOST_SEED)]
Text = Annotated[str, Field(min_length=1, max_length=500)]


class Form(BaseModel):
    """Nothing unknown, nothing converted."""

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid", allow_inf_nan=False)


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


class Injection(Form):
    """Who is played by which endpoint. The key is named, never sent: `api_key_env`."""

    agent_id: Text
    endpoint_url: Annotated[str, Field(min_length=1, max_length=2000)]
    api_key_env: Annotated[str, Field(pattern=r"^[A-Z_][A-Z0-9_]*$", max_length=200)] | None = None
    timeout_seconds: Annotated[float, Field(gt=0.0, le=3600.0, strict=False)] = 30.0
    privacy_tier: Literal["minimal", "basic", "full"] = "basic"
    fallback_to_simulated: bool = True

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
