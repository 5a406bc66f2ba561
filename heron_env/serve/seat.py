"""A person's seat: an external agent who is asked in a page of this process, without deadlines that press.

To a policy a seat is what a client of an endpoint is: it is asked a question, and says how that ended. To the page it
tells the question that is open, and takes its answer; one that does not count is refused there and then, so that the
person can mend it, and the question stays open.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping, Sequence
from threading import Condition
from typing import TYPE_CHECKING, Any, Final

from heron_env.errors import ConfigError
from heron_env.given import is_finite
from heron_env.injection.endpoint import Endpoint, Line
from heron_env.injection.policy import ExternalPolicy
from heron_env.net.client import Question
from heron_env.net.outcome import Code, Outcome

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

    def call_all(self, questions: Sequence[Question]) -> list[Outcome]:
        """How each ended, one after the other."""
        return [self.call(question) for question in questions]

    def call(self, question: Question) -> Outcome:
        """Show the question until it is answered, or the time is over."""
        began = time.monotonic()
        request = json.loads(question.body(1, self.timeout or TIMEOUT))
        with self._changed:
            if self._over:
                return Outcome(Code.CONNECTION, None, 0, 0.0, "", f"nobody sits there: {self._over}")
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
            return Outcome(code, None, 1, took, "", why)
        return Outcome(Code.OK, answer, 1, took, "")

    def close(self, why: str = "the run is over") -> None:
        """No more questions; the page says why."""
        with self._changed:
            self._over = self._over or why
            self._changed.notify_all()

    # What the page asks

    def shown(self, after: int = -1) -> dict[str, Any] | None:
        """What the page shows: the open question by its number, or that there is none; None: nothing since `after`."""
        with self._changed:
            version = 2 * self._number - (self._open is not None) + bool(self._over)  # opens: odd; is answered: even
            if version <= after:
                return None
            shown: dict[str, Any] = {
                "version": version,
                "number": self._number,
                "over": self._over,
                "agent": self.agent,
            }
            if self._open is not None:
                _, request, ends = self._open
                left = None if ends == float("inf") else max(0.0, ends - time.monotonic())
                shown |= {"scene": self.scene, "request": request, "seconds_left": left}
            return shown

    def answer(self, number: int, value: Mapping[str, Any]) -> None:
        """The person's answer to the question of that number.

        Raises:
            TooLate: that question is not open.
            Failure: it does not count; the question stays open.
        """
        with self._changed:
            if self._open is None or number != self._number:
                raise TooLate("that question is not open any more; the page shows the next one as soon as it is asked")
            self._answer = self._open[0].check(dict(value))
            self._open = None
            self._changed.notify_all()

    def policy(self, env: HeronEnv, url: str) -> ExternalPolicy:
        """The policy that asks here; where no answer comes the agent does nothing."""
        endpoint = Endpoint(url, timeout=self.timeout or MOST, redact_pii_patterns=False)
        return ExternalPolicy(endpoint, env=env, fallback="skip", line=Line(endpoint, lambda _: self))
