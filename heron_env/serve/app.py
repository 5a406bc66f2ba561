"""The application: addresses, forms and errors. What happens is in `simulation` and `shelf`."""

from __future__ import annotations

import asyncio
import errno
import gc
import json
import logging
import sys
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from fastapi import Body, FastAPI, Request
from fastapi import Path as InPath
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel
from starlette.exceptions import HTTPException

from heron_env._version import __version__
from heron_env.declared.configuration import Strategy
from heron_env.errors import ExternalAgentError, HeronError, ResetNeeded, RunFolderError
from heron_env.injection.tally import ExternalAgentMetrics
from heron_env.net.access import LOOPBACK, GuardedApplication, listening, server_of
from heron_env.net.guard import Guard
from heron_env.serve.journal import Injection, NewSimulation, Removal, Reset, Steps
from heron_env.serve.shelf import MOST, Full, Shelf
from heron_env.serve.simulation import WAITING, Busy, NoSuchSimulation, Session

LOG: Final = logging.getLogger(__name__)
STATUS: Final[tuple[tuple[type[HeronError], int, str], ...]] = (
    (NoSuchSimulation, 404, "NOT_FOUND"),
    (Full, 409, "TOO_MANY"),
    (Busy, 409, "BUSY"),
    (ResetNeeded, 409, "EPISODE_OVER"),
    (RunFolderError, 409, "DAMAGED"),
    (ExternalAgentError, 502, "AGENT_FAILED"),
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


class Decided(BaseModel):
    """Where an agent's action in the last step came from; `code`: what was wrong with the answer of its endpoint."""

    source: Literal["none", "explicit", "policy", "command", "noop", "held", "external", "fallback", "replay"]
    code: str


class Made(BaseModel):
    """A simulation as it stands: the step that comes, virtual time, who is in the episode, and what they saw last.

    Rewards, ends and decisions are of the last step; there are none before the first.
    """

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
    decisions: dict[str, Decided]


class Stepped(Made):
    """The same after `steps` steps, which may be fewer than were asked for where the episode ended.

    `returns` are sums of rewards, `stand_ins` in how many of these steps something stood in for an agent's endpoint;
    agents for which nothing did are absent.
    """

    steps: int
    returns: dict[str, float]
    stand_ins: dict[str, int]


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
    fallback: Strategy
    fallback_to_simulated: bool


class Health(BaseModel):
    """What an endpoint made of a question that counts nowhere."""

    healthy: bool
    code: str
    latency_ms: float
    circuit_state: str


Id = Annotated[str, InPath(pattern=r"^[0-9]{1,18}$", description="As POST /simulations gave it.")]
ONE_STEP, NEXT_EPISODE = Steps(), Reset()
Agent = Annotated[str, InPath(min_length=1, max_length=500)]
WORDS: Final = {
    400: "Broken off.", 401: "No token, or another.", 404: "No such simulation or agent.",
    409: "The episode is over, another operation is under way, too many simulations, a damaged file.",
    413: "More than 1 MiB.",
    421: "Another host's name.", 422: "Not what the form asks for.", 500: "A fault of the server.",
    502: "An endpoint failed, and its agent was injected with fallback=fail. Nothing was changed.",
    507: "The server's disk is full. Nothing was changed.",
}  # fmt: skip
FULL: Final = (errno.ENOSPC, errno.EDQUOT)
ENCODER: Final = json.JSONEncoder(allow_nan=False, separators=(",", ":"))


class Threads:
    """Those of operations, those of looks, and those that wait for endpoints: none takes another's.

    Operations are so few, creations and removals among them, that none waits for a thread.
    """

    def __init__(self) -> None:
        self._operations = ThreadPoolExecutor(MOST * (WAITING + 3), "heron_env.operation")
        self._looks = ThreadPoolExecutor(8, "heron_env.look")
        self._probes = ThreadPoolExecutor(40, "heron_env.probe")

    async def operate(self, work: Callable[[], Any], status: int = 200) -> Response:
        """The answer to what changes something, or builds a simulation again."""
        return await _answered(self._operations, work, status)

    async def look(self, at: Session, work: Callable[[], Any]) -> Response:
        """The answer to what waits for nothing once the simulation is built."""
        return await _answered(self._looks if at.is_built else self._operations, work)

    async def probe(self, at: Session, work: Callable[[], Any]) -> Response:
        """The answer to what waits for an endpoint."""
        return await _answered(self._probes if at.is_built else self._operations, work)


async def _answered(pool: ThreadPoolExecutor, work: Callable[[], Any], status: int = 200) -> Response:
    """Written in the thread, too, piece by piece: a long text made at once would stop all other threads."""
    body = await asyncio.get_running_loop().run_in_executor(pool, lambda: "".join(ENCODER.iterencode(work())).encode())
    return Response(body, status, media_type="application/json")


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
    threads = Threads()
    _simulations(app, shelf, threads)
    _injections(app, shelf, threads)
    _errors(app)
    return GuardedApplication(app, hosts=hosts, token=token)


def _simulations(app: FastAPI, shelf: Shelf, threads: Threads) -> None:
    @app.post("/simulations", status_code=201, response_model=Made)
    async def create(form: NewSimulation) -> Any:
        """Build a registered environment, and reset it with the seed."""
        return await threads.operate(lambda: shelf.create(form)[1].state(), 201)

    @app.get("/simulations", response_model=list[Brief])
    async def list_simulations() -> Any:
        """All of them."""
        return JSONResponse([{"id": name, "env": found.asked.env, "seed": found.asked.seed} for name, found in shelf])

    @app.get("/simulations/{id}", response_model=Made)
    async def show(id: Id) -> Any:
        """Where it is, and what its agents saw last."""
        found = shelf.find(id)
        return await threads.look(found, found.state)

    @app.delete("/simulations/{id}", response_model=Removed)
    async def remove(id: Id) -> Any:
        """It and its folder; of a folder that is a link the link alone."""

        def removed() -> dict[str, str]:
            shelf.remove(id)
            return {"removed": id}

        return await threads.operate(removed)

    @app.post("/simulations/{id}/step", response_model=Stepped)
    async def step(id: Id, form: Annotated[Steps, Body()] = ONE_STEP) -> Any:
        """Some steps with the same actions; agents without one follow their own policies, else do nothing."""
        found = shelf.find(id)
        return await threads.operate(lambda: found.do(form))

    @app.post("/simulations/{id}/reset", response_model=Made)
    async def reset(id: Id, form: Annotated[Reset, Body()] = NEXT_EPISODE) -> Any:
        """A new episode."""
        found = shelf.find(id)
        return await threads.operate(lambda: found.do(form))


def _injections(app: FastAPI, shelf: Shelf, threads: Threads) -> None:
    @app.post("/simulations/{id}/inject-agent", status_code=201, response_model=Injected)
    async def inject(id: Id, form: Injection) -> Any:
        """From now on an endpoint plays this agent."""
        found = shelf.find(id)
        return await threads.operate(lambda: found.do(form), 201)

    @app.get("/simulations/{id}/injected-agents", response_model=list[Injected])
    async def list_injected(id: Id) -> Any:
        """Who is played by which endpoint."""
        found = shelf.find(id)
        return await threads.look(found, found.injected)

    @app.delete("/simulations/{id}/inject-agent/{agent_id}", response_model=Removed)
    async def remove_injection(id: Id, agent_id: Agent) -> Any:
        """The agent's own policy decides again."""
        found = shelf.find(id)
        return await threads.operate(lambda: found.do(Removal(agent_id=agent_id)))

    @app.get("/simulations/{id}/inject-agent/{agent_id}/metrics", response_model=ExternalAgentMetrics)
    async def metrics(id: Id, agent_id: Agent) -> Any:
        """Counts by origin and code, latencies over all calls, rates."""
        found = shelf.find(id)
        return await threads.look(found, lambda: found.metrics(agent_id))

    @app.post("/simulations/{id}/inject-agent/{agent_id}/health-check", response_model=Health)
    async def health_check(id: Id, agent_id: Agent) -> Any:
        """Ask the endpoint an ordinary question, marked "probe": true, which counts nowhere."""
        found = shelf.find(id)
        return await threads.probe(found, lambda: found.probe(agent_id))


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

    @app.exception_handler(OSError)
    async def system(request: Request, error: OSError) -> JSONResponse:
        if error.errno not in FULL:
            return await fault(request, error)
        LOG.error("%s %s: %s", request.method, request.url.path, error)
        return _refusal(507, "DISK_FULL", "the server's disk is full; nothing was changed; make room there, ask again")

    @app.exception_handler(Exception)
    async def fault(request: Request, error: Exception) -> JSONResponse:
        LOG.error("%s %s raised", request.method, request.url.path, exc_info=error)
        return _refusal(500, "INTERNAL", "the server failed; its log says why")


def _refusal(status: int, code: str, words: str, headers: Any = None) -> JSONResponse:
    return JSONResponse({"error": {"code": code, "message": words}}, status, headers=headers)


SWITCH: Final = 0.0005
"""So long a thread that computes keeps one waiting that answers, s; a step waits for its turn some twenty times."""


def serve(
    folder: Path, *, host: str = LOOPBACK, port: int = 0, token: str | None = None, trust: Sequence[str] = (),
    guard: Guard | None = None, keys: Sequence[str] = (), ready: Callable[[str], None] = print,
) -> None:  # fmt: skip
    """Serve until somebody interrupts; `ready` is called with the address. Raises OSError where the port is taken."""
    shelf = Shelf(folder, trust=trust, guard=guard or Guard(), keys=keys)
    listener, hosts = listening(host, port)
    server = server_of(application(shelf, hosts=hosts, token=token), farewell=5)
    sys.setswitchinterval(SWITCH)
    gc.freeze()  # a full collection holds everybody up: what was imported is never garbage
    ready(f"http://{host}:{listener.getsockname()[1]}")
    try:
        server.run(sockets=[listener])
    finally:
        shelf.close()
