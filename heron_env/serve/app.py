"""The application: addresses, forms and errors. What happens is in `simulation` and `shelf`."""

from __future__ import annotations

import logging
from collections.abc import Collection
from typing import Annotated, Any, Final, Literal

from fastapi import Body, FastAPI, Path, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel
from starlette.exceptions import HTTPException

from heron_env._version import __version__
from heron_env.errors import HeronError, ResetNeeded, RunFolderError
from heron_env.serve.forms import Injection, NewSimulation, Reset, Steps
from heron_env.serve.guarding import Guarding
from heron_env.serve.shelf import Full, Shelf
from heron_env.serve.simulation import Busy, NoSuchSimulation

LOG: Final = logging.getLogger(__name__)
STATUS: Final[tuple[tuple[type[HeronError], int, str], ...]] = (
    (NoSuchSimulation, 404, "NOT_FOUND"),
    (Full, 409, "TOO_MANY"),
    (Busy, 409, "BUSY"),
    (ResetNeeded, 409, "EPISODE_OVER"),
    (RunFolderError, 409, "DAMAGED"),
    (HeronError, 422, "INVALID_REQUEST"),
)
"""The first that fits counts."""


class Fault(BaseModel):
    """What went wrong, where, and how to mend it."""

    code: str
    message: str


class Refusal(BaseModel):
    """The shape of every error."""

    error: Fault


class Made(BaseModel):
    """A simulation as it stands: the step that comes, virtual time, who is in the episode, and what they saw last."""

    id: str
    env: str
    options: dict[str, Any]
    seed: int
    step: int
    time_s: float
    episode: int
    agents: list[str]
    observations: dict[str, Any]
    rewards: dict[str, float]
    terminations: dict[str, bool]
    truncations: dict[str, bool]


class Stepped(Made):
    """The same after `steps` steps, which may be fewer than were asked for where the episode ended; sums of rewards."""

    steps: int
    returns: dict[str, float]


class Brief(BaseModel):
    """One line of the list."""

    id: str
    env: str
    seed: int


class Removed(BaseModel):
    """What is gone."""

    removed: str


class Injected(BaseModel):
    """An agent that an endpoint plays."""

    agent_id: str
    endpoint_url: str
    api_key_env: str | None
    timeout_seconds: float
    privacy_tier: Literal["minimal", "basic", "full"]
    fallback_to_simulated: bool


class Figures(BaseModel):
    """How an injected agent fares. Nothing here judges quality: such figures are null."""

    persona_consistency: float | None
    conversation_coherence: float | None
    instruction_following: float | None
    latency_p50_ms: float | None
    latency_p99_ms: float | None
    error_rate: float | None
    timeout_rate: float | None
    fallback_rate: float | None
    circuit_state: str
    preference_score: float | None
    elo_rating: float | None
    decisions: int
    requests: int
    counts: dict[str, int]
    reasoning_dropped: int


class Health(BaseModel):
    """What an endpoint made of a question that counts nowhere."""

    healthy: bool
    code: str
    latency_ms: float
    circuit_state: str


Id = Annotated[str, Path(pattern=r"^[0-9]{1,18}$", description="As POST /simulations gave it.")]
ONE_STEP, NEXT_EPISODE = Steps(), Reset()
Agent = Annotated[str, Path(min_length=1, max_length=500)]
WORDS: Final = {
    400: "Broken off.", 401: "No token, or another.", 404: "No such simulation or agent.",
    409: "The episode is over, another operation is under way, too many simulations, a damaged file.",
    413: "More than 1 MiB.",
    421: "Another host's name.", 422: "Not what the form asks for.", 500: "A fault of the server.",
}  # fmt: skip


def application(shelf: Shelf, *, hosts: Collection[str] = (), token: str | None = None) -> Any:
    """The ASGI application.

    Args:
        hosts: what the Host header may say; empty: anything.
        token: what clients must bring; None: nothing.
    """
    app = FastAPI(
        title="heron_env", version=__version__, docs_url=None, redoc_url=None,
        description="Simulations that are stepped over HTTP, and agents in them that are played by endpoints.",
        responses={status: {"model": Refusal, "description": words} for status, words in WORDS.items()},
    )  # fmt: skip
    _simulations(app, shelf)
    _injections(app, shelf)
    _errors(app)
    return Guarding(app, hosts=hosts, token=token)


def _simulations(app: FastAPI, shelf: Shelf) -> None:
    def shown(name: str) -> dict[str, Any]:
        found = shelf.find(name)
        return {"id": name, **found.asked.model_dump(), **found.state()}

    @app.post("/simulations", status_code=201, response_model=Made)
    def create(form: NewSimulation) -> Any:
        """Build a registered environment, and reset it with the seed."""
        name, _ = shelf.create(form)
        return shown(name)

    @app.get("/simulations", response_model=list[Brief])
    def list_simulations() -> Any:
        """All of them."""
        return [{"id": name, "env": found.asked.env, "seed": found.asked.seed} for name, found in shelf]

    @app.get("/simulations/{id}", response_model=Made)
    def show(id: Id) -> Any:
        """Where it is, and what its agents saw last."""
        return shown(id)

    @app.delete("/simulations/{id}", response_model=Removed)
    def remove(id: Id) -> Any:
        """It and its folder."""
        shelf.remove(id)
        return {"removed": id}

    @app.post("/simulations/{id}/step", response_model=Stepped)
    def step(id: Id, form: Annotated[Steps, Body()] = ONE_STEP) -> Any:
        """Some steps with the same actions; agents without one follow their own policies, else do nothing."""
        found = shelf.find(id)
        return {"id": id, **found.asked.model_dump(), **found.do("step", form)}

    @app.post("/simulations/{id}/reset", response_model=Made)
    def reset(id: Id, form: Annotated[Reset, Body()] = NEXT_EPISODE) -> Any:
        """A new episode."""
        found = shelf.find(id)
        return {"id": id, **found.asked.model_dump(), **found.do("reset", form)}


def _injections(app: FastAPI, shelf: Shelf) -> None:
    @app.post("/simulations/{id}/inject-agent", status_code=201, response_model=Injected)
    def inject(id: Id, form: Injection) -> Any:
        """From now on an endpoint plays this agent."""
        return shelf.find(id).do("inject", form)

    @app.get("/simulations/{id}/injected-agents", response_model=list[Injected])
    def list_injected(id: Id) -> Any:
        """Who is played by which endpoint."""
        return shelf.find(id).injected()

    @app.delete("/simulations/{id}/inject-agent/{agent_id}", response_model=Removed)
    def remove_injection(id: Id, agent_id: Agent) -> Any:
        """The agent's own policy decides again."""
        shelf.find(id).do("remove", {"agent_id": agent_id})
        return {"removed": agent_id}

    @app.get("/simulations/{id}/inject-agent/{agent_id}/metrics", response_model=Figures)
    def metrics(id: Id, agent_id: Agent) -> Any:
        """Counts by origin and code, latencies over all calls, rates."""
        return shelf.find(id).metrics(agent_id)

    @app.post("/simulations/{id}/inject-agent/{agent_id}/health-check", response_model=Health)
    def health_check(id: Id, agent_id: Agent) -> Any:
        """Ask the endpoint an ordinary question, marked "probe": true, which counts nowhere."""
        return shelf.find(id).probe(agent_id)


def _errors(app: FastAPI) -> None:
    @app.exception_handler(HeronError)
    async def refused(request: Request, error: HeronError) -> JSONResponse:
        status, code = next((status, code) for kind, status, code in STATUS if isinstance(error, kind))
        return _refusal(status, code, str(error))

    @app.exception_handler(RequestValidationError)
    async def invalid(request: Request, error: RequestValidationError) -> JSONResponse:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        return _refusal(422, "INVALID_REQUEST", f"{where}: {first['msg'].removeprefix('Value error, ')}")

    @app.exception_handler(HTTPException)
    async def other(request: Request, error: HTTPException) -> JSONResponse:
        code = {404: "NOT_FOUND", 405: "METHOD_NOT_ALLOWED"}.get(error.status_code, "INVALID_REQUEST")
        return _refusal(error.status_code, code, str(error.detail), error.headers)

    @app.exception_handler(Exception)
    async def fault(request: Request, error: Exception) -> JSONResponse:
        LOG.error("%s %s raised", request.method, request.url.path, exc_info=error)
        return _refusal(500, "INTERNAL", "the server failed; its log says why")


def _refusal(status: int, code: str, words: str, headers: Any = None) -> JSONResponse:
    return JSONResponse({"error": {"code": code, "message": words}}, status, headers=headers)
