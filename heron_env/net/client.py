"""A client of one endpoint: asks one question or several at once, and says how each ended, whatever happens."""

from __future__ import annotations

import asyncio
import datetime
import json
import math
import os
import re
import ssl
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any

import httpcore
import httpx

from heron_env.errors import ConfigError
from heron_env.given import is_finite, require_count
from heron_env.net import wire
from heron_env.net.guard import Guard
from heron_env.net.limits import Breaker, Circuit, Pacing, SystemClock, Ticket, TimeSource
from heron_env.net.outcome import CallOutcome, Code, Failure, RateLimited, parse
from heron_env.net.wire import SHARED

WAITS = (1.0, 2.0, 4.0)
"""Before a question is sent again after status 429, s."""
KEEP_ALIVE = 2.0
"""An idle connection is used again for that long, s: below the five seconds after which usual servers hang up."""
TELLING = 8
"""Characters from which on a key is none that an answer could hold by chance."""
HEADERS = [
    (b"Accept", b"application/json"), (b"Accept-Encoding", b"identity"), (b"Connection", b"keep-alive"),
    (b"User-Agent", b"heron_env"), (b"Content-Type", b"application/json"),
]  # fmt: skip
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
KEY = re.compile(r"[!-~]+", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What one endpoint is allowed. Raises ConfigError.

    Attributes:
        timeout: for one question, with waits, retries, name resolution and connecting, s.
        most_bytes: of a response's body.
        in_flight: requests at once.
        per_second: requests in any window of one second.
        failures, probe_after, successes: of the breaker; see there.
    """

    timeout: float = 30.0
    most_bytes: int = 2**20
    in_flight: int = 10
    per_second: int = 100
    failures: int = 5
    probe_after: float = 30.0
    successes: int = 2

    def __post_init__(self) -> None:
        for name in ("timeout", "probe_after"):
            value = getattr(self, name)
            if isinstance(value, bool) or not is_finite(value) or not value > 0:
                raise ConfigError(f"Limits({name}={value!r:.200}): must be a number of seconds > 0")
        for name in ("most_bytes", "in_flight", "per_second", "failures", "successes"):
            require_count(f"Limits({name}={getattr(self, name)!r:.200})", getattr(self, name), most=2**24)


def accepted(answer: dict[str, Any]) -> Any:
    """The answer as it is."""
    return answer


@dataclass(frozen=True, slots=True, eq=False)
class Question:
    """One question to an endpoint.

    Attributes:
        body: the request, JSON in UTF-8, made when it is sent: `body(attempt, seconds left)`, attempt from 1; on the
            client's own thread.
        check: makes of the answer what the caller wants, or raises `Failure` to refuse it; on the caller's thread, in
            the order of the questions, before the breaker hears of it.
        counted: False for a health check, of which the breaker does not know.
    """

    body: Callable[[int, float], bytes]
    check: Callable[[dict[str, Any]], Any] = accepted
    counted: bool = True


class Client:
    """Asks the endpoint at `url`, with a breaker, a pace and statistics of its own. Threads may share it.

    Args:
        guard: says whether `url` is allowed, and which addresses its name may lead to.
        key_env: name of the environment variable with the key for `Authorization: Bearer ...`; read when it is sent.
        resolve: IP addresses of a name; the system's by default.
        tls: instead of the usual certificates.

    Raises ConfigError: the address is refused, or there is no such key.
    """

    def __init__(
        self,
        url: str,
        guard: Guard,
        *,
        key_env: str | None = None,
        limits: Limits | None = None,
        clock: TimeSource | None = None,
        resolve: wire.Resolve = wire.resolve,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.address = guard.passed(url)
        self.limits = limits or Limits()
        self._guard, self._key_env, self._resolve, self._tls = guard, key_env, resolve, tls
        self._clock = clock or SystemClock()
        most = self.limits
        self._breaker = Breaker(
            self._clock.monotonic, failures=most.failures, probe_after=most.probe_after, successes=most.successes
        )
        self._home: _Home | None = None
        self._key()

    def __repr__(self) -> str:
        """Where it asks; path and query may hold what is nobody's business."""
        return f"Client({self.address.place!r})"

    @property
    def circuit(self) -> Circuit:
        """The breaker's state now."""
        return self._breaker.circuit

    def call(self, question: Question) -> CallOutcome:
        """Ask one question; returns within the limit of time."""
        return self.call_all([question])[0]

    def call_all(self, questions: Sequence[Question]) -> list[CallOutcome]:
        """Ask them at once: let in, sent, checked and booked in their order, whichever is answered first."""
        began, key = self._clock.monotonic(), self._key()
        asking = [self._let_in(question, began) for question in questions]
        try:
            if sent := [each for each in asking if each.failure is None]:
                SHARED.run(self._together(sent, key))
            return [self._outcome(each, began) for each in asking]
        finally:
            for each in asking:
                if each.ticket is not None:
                    self._breaker.give_back(each.ticket)

    def close(self) -> None:
        """Close the connections; a further call opens new ones."""
        if self._home is not None and self._home.loop is SHARED.loop():
            SHARED.run(self._home.pool.aclose())
        self._home = None

    def _key(self) -> str | None:
        """The key now. Raises ConfigError, which quotes neither it nor what may be it."""
        if self._key_env is None:
            return None
        if not isinstance(self._key_env, str) or not NAME.fullmatch(self._key_env):
            raise ConfigError("key_env: must be the name of an environment variable, never the key itself (not quoted)")
        named = repr(self._key_env) if self._key_env.isupper() else "that key_env names"
        key = os.environ.get(self._key_env, "")
        if not KEY.fullmatch(key):
            wrong = "has a blank or a character beyond printable ASCII" if key else "is not set"
            raise ConfigError(f"key_env: the environment variable {named} {wrong}; export it before the start")
        return key

    def _let_in(self, question: Question, began: float) -> _Asking:
        circuit = self._breaker.circuit
        each = _Asking(question, began + self.limits.timeout, circuit)
        if question.counted:
            each.ticket = self._breaker.admit()
            if each.ticket is None:
                each.failure = Failure(
                    Code.CIRCUIT_OPEN, f"left alone after {self.limits.failures} failures in a row; mend the endpoint"
                )
        return each

    def _outcome(self, each: _Asking, began: float) -> CallOutcome:
        """Check the answer and book what came of it."""
        value = None
        if each.answer is not None:
            try:
                value = each.question.check(each.answer)
            except Failure as failure:
                each.failure = failure
        code = each.failure.code if each.failure is not None else Code.OK
        message = f"{self.address.place}: {each.failure}" if each.failure is not None else ""
        outcome = CallOutcome(code, value, each.attempts, max(0.0, each.ended - began), each.circuit, message)
        if each.ticket is not None and each.attempts:
            self._breaker.book(each.ticket, succeeded=code is Code.OK)
        return outcome

    async def _together(self, asking: list[_Asking], key: str | None) -> None:
        """All at once; places in the queue go by order."""
        home = self._here()
        if len(asking) == 1:
            await self._ask(asking[0], home, key)
            return
        tasks = [asyncio.ensure_future(self._ask(each, home, key)) for each in asking]
        try:
            await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()

    def _here(self) -> _Home:
        """Connections and pace on this loop; a forked process has a loop of its own."""
        loop = asyncio.get_running_loop()
        if self._home is None or self._home.loop is not loop:
            network = wire.PinnedNetwork(self.address, self._guard, self._resolve, self.limits.most_bytes)
            tls = self._tls or (httpx.create_ssl_context(trust_env=False) if self.address.scheme == "https" else None)
            pool = httpcore.AsyncConnectionPool(
                tls, max_connections=self.limits.in_flight, keepalive_expiry=KEEP_ALIVE, network_backend=network
            )
            pacing = Pacing(self._clock, in_flight=self.limits.in_flight, per_second=self.limits.per_second)
            at = httpx.URL(self.address.url)
            where = httpcore.URL(scheme=at.raw_scheme, host=at.raw_host, port=at.port, target=at.raw_path)
            self._home = _Home(loop, pool, where, [(b"Host", at.netloc), *HEADERS], pacing)
            weakref.finalize(self, _hang_up, loop, pool).atexit = False
        return self._home

    async def _ask(self, each: _Asking, home: _Home, key: str | None) -> None:
        """Send until there is an answer or a failure."""
        try:
            while each.answer is None:
                try:
                    each.answer = await self._attempt(each, home, key)
                except RateLimited as busy:
                    wait = max(WAITS[each.attempts - 1], busy.after) if each.attempts <= len(WAITS) else math.inf
                    if self._clock.monotonic() + wait >= each.until:
                        raise
                    await self._clock.sleep(wait)
        except Failure as failure:
            each.failure = failure.with_traceback(None)
        each.ended = self._clock.monotonic()

    async def _attempt(self, each: _Asking, home: _Home, key: str | None) -> dict[str, Any]:
        """One request, in its turn. Raises Failure."""
        late = f"no answer within {self.limits.timeout:g} s; raise the timeout, or make it faster"
        if not await home.pacing.enter(each.until):
            raise Failure(Code.TIMEOUT, late)
        try:
            left = each.until - self._clock.monotonic()
            async with self._clock.timeout(left):
                each.attempts += 1
                return await self._exchange(home, each.question.body(each.attempts, left), key)
        except TimeoutError:
            raise Failure(Code.TIMEOUT, late) from None
        finally:
            home.pacing.leave()

    async def _exchange(self, home: _Home, body: bytes, key: str | None) -> dict[str, Any]:
        """Send the body and read what comes. Raises Failure."""
        headers = [*home.headers, (b"Authorization", f"Bearer {key}".encode())] if key else home.headers
        try:
            async with home.pool.stream("POST", home.where, headers=headers, content=body) as response:
                received = await self._read(response)
        except (httpcore.NetworkError, httpcore.TimeoutException, OSError):
            raise Failure(Code.CONNECTION, "can't be reached, or hung up; is it running there?") from None
        except (httpcore.ProtocolError, ValueError):
            raise Failure(Code.INVALID_RESPONSE, "what came is no complete HTTP/1.1 response") from None
        answer = parse(received)
        if key and len(key) >= TELLING and _holds(received, answer, key):
            raise Failure(Code.INVALID_RESPONSE, "it sends back the key that it was brought, so nothing of it is kept")
        return answer

    async def _read(self, response: httpcore.Response) -> bytearray:
        """The body of a response that may be read. Raises Failure."""
        most, headers = self.limits.most_bytes, _joined(response.headers)
        _check_status(response.status, headers.get("retry-after", ""), self._clock.wall())
        if headers.get("content-encoding", "identity").strip().lower() not in ("", "identity"):
            raise Failure(Code.RESPONSE_TOO_LARGE, "its body is compressed, though identity was asked for")
        stream, length = response.extensions["network_stream"], headers.get("content-length")
        if not stream.asked_first:
            raise Failure(Code.INVALID_RESPONSE, "it answered before it was asked")
        body = bytearray()
        too_large = length is not None and int(length) > most
        if not too_large:
            async for chunk in response.aiter_stream():
                body += chunk
                if too_large := len(body) > most:
                    break
        if too_large or (length is not None and stream.beyond(int(length))):
            await stream.aclose()
            raise Failure(Code.RESPONSE_TOO_LARGE, f"more than {most:,} bytes, or than its Content-Length says")
        return body


@dataclass(slots=True, eq=False)
class _Asking:
    """A question under way; `until` is its deadline."""

    question: Question
    until: float
    circuit: Circuit
    ticket: Ticket | None = None
    attempts: int = 0
    ended: float = 0.0
    answer: dict[str, Any] | None = None
    failure: Failure | None = None


@dataclass(frozen=True, slots=True)
class _Home:
    """What belongs to one loop."""

    loop: asyncio.AbstractEventLoop
    pool: httpcore.AsyncConnectionPool
    where: httpcore.URL
    headers: list[tuple[bytes, bytes]]
    pacing: Pacing


def _holds(received: bytearray, answer: dict[str, Any], key: str) -> bool:
    """Is the key in an answer, as it is or escaped?"""
    escaped = b"\\" in received
    return key.encode() in received or (escaped and json.dumps(key)[1:-1] in json.dumps(answer, ensure_ascii=False))


def _joined(headers: Sequence[tuple[bytes, bytes]]) -> dict[str, str]:
    """By name in lower case; those that come several times in one."""
    joined: dict[str, str] = {}
    for name, value in headers:
        key = name.decode("latin-1").lower()
        joined[key] = f"{joined[key]}, {value.decode('latin-1')}" if key in joined else value.decode("latin-1")
    return joined


def _hang_up(loop: asyncio.AbstractEventLoop, pool: httpcore.AsyncConnectionPool) -> None:
    """Close the connections of a client that nobody has any more."""
    if loop.is_running():
        loop.call_soon_threadsafe(lambda: loop.create_task(pool.aclose()))


def _check_status(status: int, retry_after: str, wall: float) -> None:
    """Raises Failure for all but 200 to 299."""
    if status == 429:
        raise RateLimited(_seconds(retry_after, wall))
    if status >= 500:
        raise Failure(Code.INTERNAL, f"it answered {status}: look into its log")
    if status >= 400:
        raise Failure(Code.INVALID_REQUEST, f"it answered {status}: it refuses the request; look into its log")
    if not 200 <= status < 300:
        raise Failure(
            Code.INVALID_RESPONSE, f"it answered {status}; redirects are not followed: give the final address"
        )


def _seconds(retry_after: str, wall: float) -> float:
    """What a Retry-After header asks for, in seconds or as a date; 0 where it can't be read or is past."""
    if re.fullmatch(r"[0-9]{1,15}", retry_after, re.ASCII):
        return float(retry_after)
    try:
        date = parsedate_to_datetime(retry_after)
        return max(0.0, date.replace(tzinfo=date.tzinfo or datetime.UTC).timestamp() - wall)
    except (ValueError, TypeError, IndexError, OverflowError):
        return 0.0
