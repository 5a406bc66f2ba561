"""Policies asked aside, in threads of their own, while the event clock goes on, driven by the wall clock."""

from __future__ import annotations

from collections.abc import Sequence
from queue import Empty, SimpleQueue
from threading import Thread
from time import perf_counter
from typing import TYPE_CHECKING, Any, NamedTuple

from heron_env.envs.answering import fetch

if TYPE_CHECKING:
    from heron_env.core.policy import Asked
    from heron_env.envs.answering import Asking

    Questions = Sequence[tuple[Asking, Asked]]


class Later(NamedTuple):
    """Stands where the answer to a question will be."""

    asked: Asked


class Came(NamedTuple):
    """What a policy said to its questions of one instant, as it said it, or what it raised; after how many seconds."""

    questions: Questions
    said: Sequence[Any] | BaseException
    seconds: float


class Aside:
    """One thread for each policy object, which answers one instant's questions after another.

    Threads end with the process, also where a policy never answers.
    """

    def __init__(self) -> None:
        self._asked: dict[int, SimpleQueue[tuple[Questions, float]]] = {}
        self._came: SimpleQueue[Came] = SimpleQueue()
        self.open = 0
        """Instants whose questions have no answers yet."""

    def put(self, questions: Questions) -> list[Later]:
        """Have them answered."""
        policy = id(questions[0][0].policy)
        if policy not in self._asked:
            self._asked[policy] = SimpleQueue()
            Thread(target=self._answer, args=(self._asked[policy],), daemon=True).start()
        self._asked[policy].put((questions, perf_counter()))
        self.open += 1
        return [Later(asked) for _, asked in questions]

    def next(self, wait: float) -> Came | None:
        """What has come, or comes within `wait` s of the system's clock."""
        try:
            came = self._came.get(timeout=wait) if wait > 0.0 else self._came.get_nowait()
        except Empty:
            return None
        self.open -= 1
        return came

    def _answer(self, asked: SimpleQueue[tuple[Questions, float]]) -> None:
        while True:
            questions, since = asked.get()
            said: Sequence[Any] | BaseException
            try:
                said = fetch(questions)
            except BaseException as error:  # noqa: BLE001 - raised again where the clock runs
                said = error
            self._came.put(Came(questions, said, perf_counter() - since))
