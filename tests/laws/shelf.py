"""Questions put aside, for the laws, without threads."""

from collections.abc import Callable
from typing import Any

from heron_env.envs import answering
from heron_env.envs.event import thinking
from heron_env.envs.event.clock import EventRun
from heron_env.testing.clock import SECOND


class Shelf(thinking.ThinkingThreads):
    """Stands for the threads: what is asked is answered at once, and handed over by and by."""

    def __init__(self) -> None:
        super().__init__()
        self.came: list[thinking.Thought] = []

    def put(self, questions: Any) -> list[thinking.Promise]:
        self.came.append(thinking.Thought(questions, answering.fetch(questions), 0.0))
        return [thinking.Promise(asked) for _, asked in questions]


def hand_over(run: EventRun, shelf: Shelf, took: Callable[[Any], float], early: Callable[[], bool]) -> None:
    while (due := run.due) is not None:
        for came in list(shelf.came):
            falls = [run.answers.waiting[a.rank].now / SECOND + took(one) for a, one in came.questions
                     if a.rank in run.answers.waiting and run.answers.waiting[a.rank].question is one]  # fmt: skip
            if early() or not falls or min(falls) <= due:
                shelf.came.remove(came)
                run.come(came, run.context.scheduler.now / SECOND)
        due = run.due
        run.until(due if run.t_end is None or due * SECOND < run.t_end else None)
