"""The page of a seat: what it is made of, and who may have it. The address holds the seat's token."""

from __future__ import annotations

import asyncio
import hmac
import json
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from heron_env.files.reading import parsed
from heron_env.net.outcome import Failure
from heron_env.serve.guarding import Guarding
from heron_env.serve.seat import Seat, TooLate

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


def seat_application(seats: Iterable[Seat], hosts: Collection[str] = ()) -> Any:
    """The ASGI application: GET /seat/TOKEN, GET /seat/TOKEN/asked, POST /seat/TOKEN/answer, and the page's files."""
    all_seats = tuple(seats)

    def of(request: Request) -> Seat | None:
        token = request.path_params["token"].encode()
        found = [seat for seat in all_seats if hmac.compare_digest(seat.token.encode(), token)]
        return found[0] if found else None

    async def page(request: Request) -> Response:
        return _missing() if of(request) is None else _file("seat.html")

    async def file(request: Request) -> Response:
        return _file(request.path_params["name"])

    async def asked(request: Request) -> Response:
        seat = of(request)
        if seat is None:
            return _missing()
        try:
            after, wait = int(request.query_params.get("after", -1)), float(request.query_params.get("wait", 0))
        except ValueError:
            return _refusal(422, "INVALID_REQUEST", "after and wait are numbers")
        ends = asyncio.get_running_loop().time() + min(wait, MOST_WAIT)
        while (shown := seat.shown(after)) is None and asyncio.get_running_loop().time() < ends:
            await asyncio.sleep(LOOK)
        return Response(status_code=204, headers=HEADERS) if shown is None else _json(200, shown)

    async def answer(request: Request) -> Response:
        seat = of(request)
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

    routes = [
        Route("/seat/page/{name}", file, methods=["GET"]),
        Route("/seat/{token}", page, methods=["GET"]),
        Route("/seat/{token}/asked", asked, methods=["GET"]),
        Route("/seat/{token}/answer", answer, methods=["POST"]),
    ]
    faults: dict[Any, Any] = {HTTPException: _other}
    return Guarding(Starlette(routes=routes, exception_handlers=faults), hosts=hosts, token=None)


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
