"""Seats of a run: a server of their pages beside it, in this process.

A person is an external agent who is asked in a page of this process, without deadlines that press. To a policy a seat
is what a client of an endpoint is: it is asked a question, and says how that ended. It shows the page the question
that is open, and takes its answer; one that does not count is refused there and then, so that the person can mend it,
and the question stays open.
"""

from __future__ import annotations

import asyncio
import hmac
import json
import os
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from threading import Condition
from typing import TYPE_CHECKING, Any, Final

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from heron_env.errors import ConfigError
from heron_env.files.reading import parsed
from heron_env.given import is_finite
from heron_env.injection.endpoint import Connection, Endpoint
from heron_env.injection.policy import ExternalPolicy
from heron_env.net.access import LOOPBACK, GuardedApplication, ServerThread
from heron_env.net.client import Question
from heron_env.net.outcome import CallOutcome, Code, Failure

if TYPE_CHECKING:
    from heron_env.envs.base import HeronEnv

TIMEOUT: Final = 600.0
"""So long a person may think, s."""
MOST: Final = 86400.0
"""What an endpoint is said to wait where a seat waits for ever, s."""
TOKEN_BYTES: Final = 16
GLANCE: Final = 0.5
"""A waiting policy looks so often whether it was interrupted, s."""


class TooLate(ConfigError):
    """The answer is to a question that is not open any more."""


class Seat:
    """One agent's seat: the question that is open, if one is, and its answer. Threads may share it.

    Args:
        env: whose agent sits there; its `scene(agent)` says what the page draws.
        agent: who.
        timeout: s, after which the question counts as unanswered; None: never.

    Raises ConfigError.
    """

    def __init__(self, env: HeronEnv, agent: str, timeout: float | None = TIMEOUT) -> None:
        if agent not in env.possible_agents:
            raise ConfigError(
                f"a seat for {agent!r:.60}: it decides nothing here; there are {env.possible_agents[:12]}"
            )
        if timeout is not None and (isinstance(timeout, bool) or not is_finite(timeout) or not timeout > 0):
            raise ConfigError(f"a seat for {agent!r}: timeout={timeout!r:.60} must be a number of seconds > 0, or None")
        self.agent, self.timeout = agent, timeout
        self.scene = env.scene(agent)
        # From the system, not from a seed: whoever knows it sits in the seat.
        self.token = os.urandom(TOKEN_BYTES).hex()
        self._changed = Condition()
        self._number, self._over = 0, ""
        self._open: tuple[Question, dict[str, Any], float] | None = None
        self._answer: Any = None

    # What a policy asks

    circuit = ""

    def call_all(self, questions: Sequence[Question]) -> list[CallOutcome]:
        """How each ended, one after the other."""
        return [self.call(question) for question in questions]

    def call(self, question: Question) -> CallOutcome:
        """Show the question until it is answered, or the time is over."""
        began = time.monotonic()
        request = parsed(question.body(1, self.timeout or TIMEOUT))
        with self._changed:
            if self._over:
                return CallOutcome(Code.CONNECTION, None, 0, 0.0, "", f"nobody sits there: {self._over}")
            self._number += 1
            ends = began + (float("inf") if self.timeout is None else self.timeout)
            self._open, self._answer = (question, request, ends), None
            self._changed.notify_all()
            while self._open is not None and not self._over and (left := ends - time.monotonic()) > 0:
                self._changed.wait(min(left, GLANCE))
            answer, self._open = self._answer, None
        took = time.monotonic() - began
        if answer is None:
            code, why = (Code.CONNECTION, self._over) if self._over else (Code.TIMEOUT, f"no answer in {took:.0f} s")
            return CallOutcome(code, None, 1, took, "", why)
        return CallOutcome(Code.OK, answer, 1, took, "")

    def close(self, why: str = "the run is over") -> None:
        """No more questions; the page says why."""
        with self._changed:
            self._over = self._over or why
            self._changed.notify_all()

    # What the page asks

    def page_state(self, after: int = -1) -> dict[str, Any] | None:
        """What the page shows: the open question by its number, or that there is none; None: nothing since `after`."""
        with self._changed:
            version = 2 * self._number - (self._open is not None) + bool(self._over)  # opens: odd; is answered: even
            if version <= after:
                return None
            state: dict[str, Any] = {
                "version": version,
                "number": self._number,
                "over": self._over,
                "agent": self.agent,
            }
            if self._open is not None:
                _, request, ends = self._open
                left = None if ends == float("inf") else max(0.0, ends - time.monotonic())
                state |= {"scene": self.scene, "request": request, "seconds_left": left}
            return state

    def answer(self, number: int, value: Mapping[str, Any]) -> None:
        """The person's answer to the question of that number.

        Raises:
            TooLate: that question is not open.
            Failure: it does not count; the question stays open.
        """
        with self._changed:
            if self._open is None or number != self._number:
                raise TooLate("this decision is over; the page shows the next one when it comes")
            self._answer = self._open[0].check(dict(value))
            self._open = None
            self._changed.notify_all()

    def policy(self, env: HeronEnv, url: str) -> ExternalPolicy:
        """The policy that asks here; where no answer comes the agent does nothing."""
        endpoint = Endpoint(url, timeout=self.timeout or MOST, redact_pii_patterns=False)
        return ExternalPolicy(endpoint, env=env, fallback="skip", line=Connection(endpoint, lambda _: self))


PAGE: Final = Path(__file__).parent / "page"
KINDS: Final = {"seat.html": "text/html", "seat.js": "text/javascript", "seat.css": "text/css"}
HEADERS: Final = {
    # No script, style or picture but the page's own files: a letter can't bring any.
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; base-uri 'none'; "
        "form-action 'none'; frame-ancestors 'none'"
    ),
    "Referrer-Policy": "no-referrer",  # the address holds the token
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
}
LOOK: Final = 0.05
"""A waiting page is looked after so often, s."""
MOST_WAIT: Final = 25.0


class SeatPages:
    """What the pages of `seats` ask for; a token in the address says which seat."""

    def __init__(self, seats: Iterable[Seat]) -> None:
        self._seats = tuple(seats)

    def _seat(self, request: Request) -> Seat | None:
        token = request.path_params["token"].encode()
        seats = [seat for seat in self._seats if hmac.compare_digest(seat.token.encode(), token)]
        return seats[0] if seats else None

    async def page(self, request: Request) -> Response:
        """The page itself."""
        return _missing() if self._seat(request) is None else _file("seat.html")

    async def file(self, request: Request) -> Response:
        """A file of the page."""
        return _file(request.path_params["name"])

    async def asked(self, request: Request) -> Response:
        """The open question, as soon as there is another than the page knows; 204: not yet."""
        seat = self._seat(request)
        if seat is None:
            return _missing()
        try:
            after, wait = int(request.query_params.get("after", -1)), float(request.query_params.get("wait", 0))
        except ValueError:
            return _refusal(422, "INVALID_REQUEST", "after and wait are numbers")
        ends = asyncio.get_running_loop().time() + min(wait, MOST_WAIT)
        while (state := seat.page_state(after)) is None and asyncio.get_running_loop().time() < ends:
            await asyncio.sleep(LOOK)
        return Response(status_code=204, headers=HEADERS) if state is None else _json(200, state)

    async def answer(self, request: Request) -> Response:
        """Take the person's answer, or say why it does not count."""
        seat = self._seat(request)
        if seat is None:
            return _missing()
        try:
            given = parsed(await request.body())
            number = given.pop("number")
            if type(number) is not int:  # true and 1.0 are equal to 1
                raise ValueError("number")
            seat.answer(number, given)
        except TooLate as error:
            return _refusal(409, "TOO_LATE", str(error))
        except Failure as error:
            return _refusal(422, str(error.code), str(error))
        except (ValueError, AttributeError, KeyError, TypeError):
            return _refusal(422, "INVALID_REQUEST", 'an answer is {"number": n, "action": ..., "letters": [...]}')
        return _json(200, {"taken": number})


def seat_application(seats: Iterable[Seat], hosts: Collection[str] = ()) -> Any:
    """The ASGI application: GET /seat/TOKEN, GET /seat/TOKEN/asked, POST /seat/TOKEN/answer, and the page's files."""
    pages = SeatPages(seats)
    routes = [
        Route("/seat/page/{name}", pages.file, methods=["GET"]),
        Route("/seat/{token}", pages.page, methods=["GET"]),
        Route("/seat/{token}/asked", pages.asked, methods=["GET"]),
        Route("/seat/{token}/answer", pages.answer, methods=["POST"]),
    ]
    faults: dict[Any, Any] = {HTTPException: _other}
    return GuardedApplication(Starlette(routes=routes, exception_handlers=faults), hosts=hosts, token=None)


def _file(name: str) -> Response:
    if name not in KINDS:
        return _missing()
    return Response((PAGE / name).read_bytes(), media_type=KINDS[name], headers=HEADERS)


def _json(status: int, value: Mapping[str, Any]) -> Response:
    return Response(json.dumps(value, allow_nan=False), status, HEADERS, "application/json")


async def _other(request: Request, error: Any) -> Response:
    return _refusal(error.status_code, "NOT_FOUND" if error.status_code == 404 else "INVALID_REQUEST", error.detail)


def _missing() -> Response:
    return _refusal(404, "NOT_FOUND", "no such seat; its address is printed where the run was started")


def _refusal(status: int, code: str, words: str) -> Response:
    return JSONResponse({"error": {"code": code, "message": words}}, status, HEADERS)


FAREWELL: Final = 2.0
"""So long pages may take to hear that it is over, s."""


class Seats(ServerThread):
    """Pages for people who play agents of an environment, while the block lasts.

        with Seats(env, "Human") as seats:
            print(seats.urls["Human"])          # to be opened in a browser
            env.run_event_driven({**others, **seats.policies}, ScheduleConfig(), seed=0)

    Args:
        env: whose agents they play; also the one that runs.
        agents: who; one or several.
        timeout: s that a question waits for its answer; None: for ever. Without one the agent does nothing.
        host, port: where the pages are; port 0: any free one. An address of a page holds 128 random bits.

    Attributes:
        urls: of the pages, by agent.
        policies: by agent.

    Raises:
        ConfigError: an agent decides nothing, or an argument makes no sense.
        OSError: the port is taken.
    """

    def __init__(
        self, env: HeronEnv, agents: str | Sequence[str], *, timeout: float | None = TIMEOUT, host: str = LOOPBACK,
        port: int = 0,
    ) -> None:  # fmt: skip
        names = (agents,) if isinstance(agents, str) else tuple(agents)
        self.seats = {name: Seat(env, name, timeout) for name in names}
        super().__init__(partial(seat_application, self.seats.values()), host, port)
        self.urls = {name: f"{self.url}/seat/{seat.token}" for name, seat in self.seats.items()}
        self.policies: dict[str, ExternalPolicy] = {
            name: seat.policy(env, self.urls[name]) for name, seat in self.seats.items()
        }

    def close(self, linger: float = 0.0) -> None:
        """Tell the pages that it is over, wait `linger` s until they have the news, and stop."""
        for seat in self.seats.values():
            seat.close()
        time.sleep(linger)
        super().close()


__all__ = ["Seats"]
