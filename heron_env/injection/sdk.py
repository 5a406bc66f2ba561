"""An endpoint of any policy of ours, for one environment: `with serve_policy(policy, env) as server: server.url`.

The server is the standard library's; it answers on the loopback interface, in threads, and the policy is asked by
one of them at a time.
"""

from __future__ import annotations

import json
import logging
import socket
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock, Thread
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self, cast

import numpy as np
from pydantic import ValidationError

from heron_env.core.letters import Letter
from heron_env.core.masking import shaped
from heron_env.core.policy import AnsweringPolicy, AnyPolicy, Asked, DecideAt, Policies, decide_with, draw_of
from heron_env.envs.answering import begin_policies
from heron_env.envs.decisions import resolve_policies
from heron_env.errors import HeronError
from heron_env.files.reading import parsed
from heron_env.injection.contract import Decision, Request, Wire, current
from heron_env.net.access import LOOPBACK, MOST_BYTES, TOO_LARGE, Access, hosts_of, is_too_long, token_of
from heron_env.registry import make
from heron_env.scheduling.timing import to_ns

if TYPE_CHECKING:
    from heron_env.envs.base import HeronEnv

IDLE: Final = 60.0
"""After so many s without a request a connection is closed."""
PATIENCE: Final = 0.2
"""So many s without a further part of a body that is too long are its end."""
PROBE: Final = "probe"
"""A field that a health check adds to an ordinary request."""
LOG: Final = logging.getLogger(__name__)


class Refused(HeronError):
    """A request that is answered with an error: status, and words for the client."""

    def __init__(self, status: int, words: str) -> None:
        super().__init__(words)
        self.status = status


class ServedAgent:
    """One agent's place: what is asked there, and how its action is written."""

    def __init__(self, env: HeronEnv, agent: str, policy: AnyPolicy | AnsweringPolicy) -> None:
        rank = env.hierarchy.rank(agent, "serve_policy() for")
        self.agent, self.policy = agent, policy
        self._spec, self._names = env.simulation.specs[rank], tuple(env.observation_names(agent))
        self._space, self._timing = env.action_space(agent), env.timings[env.simulation.clocks[rank]]
        self.wire = Wire.of(self._space, self._spec.noop.tolist())
        self.action_space, self._mask = self.wire.description(), None
        self._decide: DecideAt | None = None
        if not isinstance(policy, AnsweringPolicy):
            offer = None if env.simulation.masks.offer(rank) is None else lambda vector: self._mask
            self._decide = decide_with(policy, lambda: env.shown_to(rank), offer)

    def answer(self, request: Request, decision: Decision, seed: int) -> dict[str, Any]:
        """The response to a request. Raises Refused for an observation of another length."""
        vector = np.array(decision.observation.vector, dtype=np.float32)
        if len(vector) != len(self._names):
            raise Refused(
                422,
                f"decision.observation.vector has {len(vector)} numbers, those of {self.agent!r} {len(self._names)}",
            )
        try:
            masks, self._mask = self.wire.flags(decision.action_mask), None
        except ValueError:
            raise Refused(422, f"decision.action_mask must have {self.wire.n} flags") from None
        if masks is not None:
            self._mask = shaped(self._spec, np.array([flag for part in masks for flag in part], dtype=np.int8))
        if self._decide is not None:
            number = self._timing.number(to_ns(decision.time_s, "decision.time_s"))
            draw = partial(draw_of, seed, decision.episode, self.agent, number)
            return {"action": self.wire.written(self._decide(vector, decision.step, draw))}
        asked = Asked(
            self.agent, vector, self._names, decision.step, decision.step, decision.time_s, seed,
            decision.episode, self._space, self._mask, self._letters(request),
        )  # fmt: skip
        answer = cast(AnsweringPolicy, self.policy).answer(asked)
        letters = [{"receiver": one.receiver, "kind": one.kind, "body": one.body} for one in answer.letters]
        usage = {"usage": {"completion_tokens": answer.tokens}} if answer.tokens else {}
        return {"action": self.wire.written(answer.action), **({"letters": letters} if letters else {}), **usage}

    def _letters(self, request: Request) -> tuple[Letter, ...]:
        """The newest letter, which is all that a request tells apart from the conversation so far."""
        turns = request.conversation_context.last_k_turns
        if not request.current_stimulus or not turns:
            return ()
        return (Letter(turns[-1].sender, self.agent, "message", request.current_stimulus),)


class Served:
    """Policies behind an endpoint: requests in, responses out. One question at a time."""

    def __init__(self, policies: Policies, env: HeronEnv, seed: int) -> None:
        env.reset(seed=seed)
        chosen = resolve_policies(policies, env)
        self._seed = seed
        self._seats = {
            env.hierarchy.ids[r]: ServedAgent(env, env.hierarchy.ids[r], policy) for r, policy in chosen.items()
        }
        self._begun: dict[tuple[str, int], dict[str, str]] = {}
        """By run and episode: each agent's first turn. Where it comes again, the episode runs again."""
        self._lock = Lock()
        self.requests = 0

    def respond(self, body: bytes) -> dict[str, Any]:
        """The response to the body of a request. Raises Refused."""
        request, probe = _request(body)
        if request.decision is None:
            raise Refused(422, "decision is null: this server decides, it does not talk")
        seat = self._seat(request.agent_id, request.decision)
        with self._lock:
            self.requests += 1
            if probe and hasattr(seat.policy, "begin"):  # it would remember what never happened
                return {"request_id": request.request_id, "action": seat.wire.written(seat.wire.noop)}
            run = (request.run_id, request.decision.episode)
            firsts = self._begun.get(run)
            if not probe and (firsts is None or firsts.get(request.agent_id) == request.turn_id):
                firsts = self._begun[run] = {}
                begin_policies([one.policy for one in self._seats.values()], self._seed, request.decision.episode)
            if not probe and firsts is not None:
                firsts.setdefault(request.agent_id, request.turn_id)
            return {"request_id": request.request_id, **seat.answer(request, request.decision, self._seed)}

    def _seat(self, agent: str, decision: Decision) -> ServedAgent:
        """Of the agent; under a pseudonym the first one that sees and does as much."""
        if agent in self._seats:
            return self._seats[agent]
        for seat in self._seats.values():
            if seat.action_space == decision.action_space:
                return seat
        raise Refused(422, f"agent_id is none of {list(self._seats)[:12]}, nor has one of them this action_space")


def _request(body: bytes) -> tuple[Request, bool]:
    """It, and is it a health check?"""
    probe = False
    try:
        given = parsed(body)
    except ValueError:
        raise Refused(400, "the body is no JSON") from None
    if isinstance(given, dict):
        probe = given.pop(PROBE, None) is True
    try:
        return Request.model_validate(current(given)), probe
    except (ValidationError, RecursionError) as error:
        if isinstance(error, RecursionError):
            raise Refused(422, "the body is nested too deep") from None
        first = error.errors(include_url=False, include_input=False)[0]
        raise Refused(422, f"{'.'.join(map(str, first['loc']))}: {first['msg']}") from None


class PolicyServer:
    """A server that has begun: `url`, and `close()`, or a `with` block.

    Attributes:
        url: where requests are posted.
        served: what answers; `served.requests` counts.
    """

    def __init__(self, served: Served, host: str, port: int, token: str | None) -> None:
        self.served = served
        self._http = _Server((host, port), _Handler)
        self._http.served = served
        self.url = f"http://{host}:{self._http.server_address[1]}/"
        self._http.access = Access(frozenset(hosts_of(host, self._http.server_address[1])), token)
        self._thread = Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        self._thread.start()

    def wait(self) -> None:
        """Until somebody interrupts."""
        while self._thread.is_alive():
            self._thread.join(0.5)

    def close(self) -> None:
        """No more requests."""
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        """Where it is, and how much it has done."""
        return f"<PolicyServer {self.url}, {self.served.requests} requests>"


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    served: Served
    access: Access

    def __init__(self, place: tuple[str, int], handler: type[BaseHTTPRequestHandler]) -> None:
        super().__init__(place, handler)
        self._open: set[socket.socket] = set()

    def process_request(self, request: Any, client_address: Any) -> None:
        self._open.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        self._open.discard(request)
        super().shutdown_request(request)

    def server_close(self) -> None:
        """Connections that clients keep are closed, too."""
        super().server_close()
        for connection in list(self._open):
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def handle_error(self, request: Any, client_address: Any) -> None:
        LOG.debug("a client went away", exc_info=True)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    timeout = IDLE
    server: _Server
    _unread = 0

    def do_POST(self) -> None:
        """One request, one response."""
        try:
            self._reply(200, self.server.served.respond(self._body()))
        except Refused as error:
            self._fail(error.status, "INVALID_REQUEST", str(error))
            self._hear_out()
        except Exception as error:  # the client learns no more than that; who runs the server reads the log
            LOG.exception("the policy raised %s", type(error).__name__)
            self._fail(500, "INTERNAL", "the policy raised an error")

    def _hear_out(self) -> None:
        """Read what is left of a body that is too long: a client that still sends would not see the answer."""
        left, self._unread = self._unread, 0
        self.connection.settimeout(PATIENCE)
        with suppress(OSError):
            while left and (heard := self.rfile.read1(min(left, 2**16))):
                left -= len(heard)
        self.connection.settimeout(self.timeout)

    def do_GET(self) -> None:
        """Who looks with a browser is told what to do."""
        self.close_connection = True  # a body, if there is one, is not read
        self._fail(405, "INVALID_REQUEST", "an endpoint of heron_env: POST a request of docs/injection.schema.json")

    def _body(self) -> bytes:
        refused = self.server.access.refusal(self.headers.get("Host", ""), self.headers.get("Authorization", ""))
        if refused is not None:
            raise self._closing(refused.status, refused.words)
        length, *more = self.headers.get_all("Content-Length", [""])
        if more or "Transfer-Encoding" in self.headers or not (length.isascii() and length.isdigit()):
            raise self._closing(411, "one Content-Length is needed, and no Transfer-Encoding")
        if is_too_long(length):
            self._unread = int(length) if len(length) <= len(str(MOST_BYTES)) else 0
            raise self._closing(TOO_LARGE.status, TOO_LARGE.words)
        try:
            return self.rfile.read(int(length))
        except OSError:
            raise self._closing(408, "the body did not come") from None

    def _closing(self, status: int, words: str) -> Refused:
        """What was sent on is not read."""
        self.close_connection = True
        return Refused(status, words)

    def _fail(self, status: int, code: str, words: str) -> None:
        self._reply(status, {"error": {"code": code, "message": words}})

    def _reply(self, status: int, value: dict[str, Any]) -> None:
        body = json.dumps(value, allow_nan=False).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        if self.close_connection:
            self.send_header("Connection", "close")
        try:
            self.end_headers()
            self.wfile.write(body)
        except OSError:  # the client is gone
            self.close_connection = True

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """What the base refuses has the one shape, too."""
        self.close_connection = True
        self._fail(code, "INVALID_REQUEST", "no HTTP/1.1 POST of a usual size")

    def version_string(self) -> str:
        return "heron_env"

    def log_message(self, format: str, *args: Any) -> None:
        LOG.debug(format, *args)


def serve_policy(
    policy: AnyPolicy | AnsweringPolicy | Policies, env: HeronEnv | str, *, host: str = LOOPBACK, port: int = 0,
    seed: int = 0, token_env: str | None = None,
) -> PolicyServer:  # fmt: skip
    """An endpoint that answers as `policy` does, bit for bit, until it is closed.

    Args:
        policy: of any form, for all agents; or policies by agent, group or "*".
        env: whose observations come; it is reset here and belongs to the server. Or its id.
        host: another one than this machine's loopback needs a token.
        port: 0: any that is free.
        seed: of policies that draw; requests never contain the environment's.
        token_env: the environment variable that holds the token which requests must bring as `Authorization: Bearer`.

    Where it serves an agent under a pseudonym (tier minimal), agents with equal action spaces are one to it.

    Raises ConfigError, OSError where the port is taken.
    """
    token = token_of(token_env, host)
    policies = policy if isinstance(policy, Mapping) else {"*": policy}
    served = Served(policies, make(env) if isinstance(env, str) else env, seed)
    return PolicyServer(served, host, port, token)
