"""What if: a recorded run with one cause switched (R6): a simulation, with the recorded run's delays and losses."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from statistics import median_low
from typing import Any

from heron_env.envs.base import HeronEnv
from heron_env.errors import ConfigError
from heron_env.given import is_number, require_switch
from heron_env.real.bus import link_name
from heron_env.scheduling.arrivals import Arrivals, Passage


class WhatIf:
    """Network of a recorded run with changes, for one episode of its seed.

    A message gets the fate of the recorded one that left over its link at the same time, else of the last before it.

    Args:
        env: in which it will run.
        arrivals: the record.
        losses: False: what was lost arrives after the median delay of its link.
        delays: factor on all delays.
        thinking: factor on the time that answers took.

    Raises ConfigError.
    """

    def __init__(
        self, env: HeronEnv, arrivals: Arrivals, *, losses: bool = True, delays: float = 1.0, thinking: float = 1.0
    ) -> None:
        require_switch(f"WhatIf(losses={losses!r:.60})", losses)
        for name, value in (("delays", delays), ("thinking", thinking)):
            if not is_number(value) or not 0.0 <= value <= 1e6:
                raise ConfigError(f"WhatIf({name}={value!r:.60}): must be a number from 0 to 1e6")
        self.seed_of = arrivals.seed_of
        self._env, self._losses, self._delays, self._thinking = env, losses, delays, thinking
        self.places: Mapping[str, str] = arrivals.places
        self.thinks: Collection[str] = arrivals.thinks
        self._links = defaultdict[str, list[Passage]](list)
        for _, passage in sorted(arrivals.messages.items()):
            self._links[passage.link].append(passage)
        self._usual = {
            link: median_low([ns - each.sent for each in passages for ns in each.came] or [0])
            for link, passages in self._links.items()
        }
        self._answers = arrivals.answers
        self._alike = Counter[tuple[str, int]]()

    def times(self, number: int, message: Any, phase: int) -> Sequence[int]:
        """Return when the copies of a message arrive, ns."""
        link = link_name(message, self._env)
        passage = self._passage(link, message.sent)
        if passage is None:
            return [message.sent + 1]
        delays = [ns - passage.sent for ns in passage.came] or ([] if self._losses else [self._usual[link]])
        return [message.sent + max(1, round(delay * self._delays)) for delay in delays]

    def _passage(self, link: str, sent: int) -> Passage | None:
        passages, alike = self._links.get(link, []), self._alike[link, sent]
        self._alike[link, sent] += 1
        last = bisect_right(passages, sent, key=lambda each: each.sent) - 1
        first = last
        while first > 0 and passages[first - 1].sent == passages[last].sent:
            first -= 1
        return passages[min(first + alike, last)] if passages else None

    def answered(self, agent: str, question: int, now: int) -> tuple[int, bool] | None:
        """Return when an answer counts, ns; None: it did not in the recorded run."""
        answers = self._answers[agent]
        if question < len(answers):
            answer = answers[question]
            if answer is None:
                return None
            took, gone = answer.at - answer.asked, answer.action is None
        else:
            took, gone = median_low([each.at - each.asked for each in answers if each is not None] or [1]), False
        return now + max(1, round(took * self._thinking)), gone
