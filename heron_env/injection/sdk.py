"""An endpoint of any policy of ours, for one environment: `with serve_policy(policy, env) as server: server.url`.

It answers on the loopback interface, and one question at a time.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any, Final, cast

import numpy as np
from pydantic import ValidationError

from heron_env.core.letters import Letter
from heron_env.core.masking import shaped
from heron_env.core.plans import NOTHING, Running
from heron_env.core.policy import AnsweringPolicy, AnyPolicy, Asked, DecideAt, Policies, decide_with, draw_of
from heron_env.envs.answering import begin_policies
from heron_env.envs.decisions import resolve_policies
from heron_env.errors import ConfigError, HeronError
from heron_env.files.reading import parsed
from heron_env.injection.answers import on_wire
from heron_env.injection.contract import Decision, Request, Wire, current
from heron_env.net.access import LOOPBACK, GuardedApplication, ServerThread, token_of
from heron_env.registry import make
from heron_env.scheduling.timing import to_ns

if TYPE_CHECKING:
    from heron_env.envs.base import HeronEnv

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
        self._spec, self._names = env.simulation.model.specs[rank], tuple(env.observation_names(agent))
        self._space, self._timing = env.action_space(agent), env.timings[env.simulation.model.clocks[rank]]
        self.wire = Wire.of(self._space, self._spec.noop.tolist())
        self.action_space, self._mask, self._running = self.wire.description(), None, NOTHING
        self._decide: DecideAt | None = None
        if not isinstance(policy, AnsweringPolicy):
            offer = None if env.simulation.masks.offer(rank) is None else lambda vector: self._mask
            self._decide = decide_with(policy, lambda: env.shown_to(rank), offer, lambda: self._running)

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
        self._running = NOTHING
        if (state := decision.running) is not None:
            self._running = Running(**{**dict(state), "remaining": tuple(map(self.wire.ours, state.remaining))})
        if self._decide is not None:
            number = self._timing.number(to_ns(decision.time_s, "decision.time_s"))
            draw = partial(draw_of, seed, decision.episode, self.agent, number)
            return self._on_wire(self._decide(vector, decision.step, draw))
        query = Asked(
            self.agent, vector, self._names, decision.step, decision.step, decision.time_s, seed,
            decision.episode, self._space, self._mask, self._letters(request), self._running,
        )  # fmt: skip
        answer = cast(AnsweringPolicy, self.policy).answer(query)
        letters = [{"receiver": one.receiver, "kind": one.kind, "body": one.body} for one in answer.letters]
        usage = {"usage": {"completion_tokens": answer.tokens}} if answer.tokens else {}
        return {**self._on_wire(answer.action), **({"letters": letters} if letters else {}), **usage}

    def _on_wire(self, action: Any) -> dict[str, Any]:
        written, plan = on_wire(action, self.wire)
        return {"action": written} if plan is None else plan.model_dump()

    def _letters(self, request: Request) -> tuple[Letter, ...]:
        """The newest letter, which is all that a request tells apart from the conversation so far."""
        turns = request.conversation_context.last_k_turns
        if not request.current_stimulus or not turns:
            return ()
        return (Letter(turns[-1].sender, self.agent, "message", request.current_stimulus),)


class Served:
    """Policies behind an endpoint: requests in, responses out. Not for several threads at once."""

    def __init__(self, policies: Policies, env: HeronEnv, seed: int) -> None:
        env.reset(seed=seed)
        chosen = resolve_policies(policies, env)
        self._seed = seed
        self._seats = {
            env.hierarchy.ids[r]: ServedAgent(env, env.hierarchy.ids[r], policy) for r, policy in chosen.items()
        }
        self._begun: dict[tuple[str, int], dict[str, str]] = {}
        """By run and episode: each agent's first turn. Where it comes again, the episode runs again."""
        self.requests = 0

    def respond(self, body: bytes) -> dict[str, Any]:
        """The response to the body of a request. Raises Refused."""
        request, probe = _request(body)
        if request.decision is None:
            raise Refused(422, "decision is null: this server decides, it does not talk")
        seat = self._seat(request.agent_id, request.decision)
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
        payload = parsed(body)
    except ValueError:
        raise Refused(400, "the body is no JSON") from None
    if isinstance(payload, dict):
        probe = payload.pop(PROBE, None) is True
    try:
        return Request.model_validate(current(payload)), probe
    except (ValidationError, RecursionError) as error:
        if isinstance(error, RecursionError):
            raise Refused(422, "the body is nested too deep") from None
        first = error.errors(include_url=False, include_input=False)[0]
        raise Refused(422, f"{'.'.join(map(str, first['loc']))}: {first['msg']}") from None


class PolicyServer(ServerThread):
    """Running server of a policy; end it with `close()` or a `with` block.

    Attributes:
        url: address of requests.
        served: its handler; `served.requests` counts requests.
    """

    def __init__(self, served: Served, host: str, port: int, token: str | None) -> None:
        self.served = served
        super().__init__(lambda hosts: policy_application(served, hosts, token), host, port)
        self.url += "/"

    def __repr__(self) -> str:
        """Where it is, and how much it has done."""
        return f"<PolicyServer {self.url}, {self.served.requests} requests>"


def policy_application(served: Served, hosts: Collection[str], token: str | None) -> Any:
    """The ASGI application: a POST anywhere is a request. Raises ConfigError without the extra `agents`."""
    try:
        from starlette.applications import Starlette
        from starlette.exceptions import HTTPException
        from starlette.responses import JSONResponse
        from starlette.routing import Route
    except ImportError as error:
        raise ConfigError("serve_policy needs starlette: pip install 'heron_env[agents]'") from error
    policy = ThreadPoolExecutor(1, "heron_env.policy")

    def failed(status: int, code: str, words: str) -> JSONResponse:
        return JSONResponse({"error": {"code": code, "message": words}}, status)

    async def answer(request: Any) -> JSONResponse:
        body = await request.body()
        try:
            return JSONResponse(await asyncio.get_running_loop().run_in_executor(policy, served.respond, body))
        except Refused as error:
            return failed(error.status, "INVALID_REQUEST", str(error))
        except Exception as error:  # the client learns no more than that; who runs the server reads the log
            LOG.exception("the policy raised %s", type(error).__name__)
            return failed(500, "INTERNAL", "the policy raised an error")

    async def other(request: Any, error: Any) -> JSONResponse:
        return failed(405, "INVALID_REQUEST", "an endpoint of heron_env: POST a request of docs/injection.schema.json")

    app = Starlette(routes=[Route("/{path:path}", answer, methods=["POST"])], exception_handlers={HTTPException: other})
    return GuardedApplication(app, hosts=hosts, token=token)


def serve_policy(
    policy: AnyPolicy | AnsweringPolicy | Policies, env: HeronEnv | str, *, host: str = LOOPBACK, port: int = 0,
    seed: int = 0, token_env: str | None = None,
) -> PolicyServer:  # fmt: skip
    """Serve a policy as an endpoint that answers bit for bit like it, until it is closed.

    Args:
        policy: of any form, for all agents; or policies by agent, group or "*".
        env: whose observations come; it is reset here and belongs to the server. Or its id.
        host: another one than this machine's loopback needs a token.
        port: 0 picks a free one.
        seed: of policies that draw; requests never contain the environment's.
        token_env: the environment variable that holds the token which requests must bring as `Authorization: Bearer`.

    Where it serves an agent under a pseudonym (tier minimal), agents with equal action spaces are one to it.

    Raises ConfigError, OSError where the port is taken.
    """
    token = token_of(token_env, host)
    policies = policy if isinstance(policy, Mapping) else {"*": policy}
    served = Served(policies, make(env) if isinstance(env, str) else env, seed)
    return PolicyServer(served, host, port, token)
