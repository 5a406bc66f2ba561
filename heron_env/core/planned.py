"""A function that answers several actions as a policy: when it is asked, and what is sent of its answer (P6)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Literal

from heron_env.core.plans import End, Merge, Plan
from heron_env.core.policy import Answer, Asked, Show, decide_with, draw_of
from heron_env.errors import ConfigError
from heron_env.given import is_number

Replan = float | Literal["end"]


def _no_states() -> Show:
    raise ConfigError("Planned(policy): decide_action takes states, and there are none; give a function, or forward")


class Planned:
    """A policy that plans: `policy(observation) -> [k, ...]`, a function or an object with `forward`.

    It gets the keywords `running` (a `Running`: the state of its actuator), `mask` and `draw` if it declares them. None
    means nothing new: the plan in force continues. One object may serve several agents.

    Args:
        policy: observation -> actions `[k, ...]`.
        horizon: how many of the actions are sent; None: all.
        replan: when it is asked again, at a tick of its agent. A whole number: so many control steps after the last
            question. A share below 1: when no more than this share of the plan is left. "end": when nothing is.
        merge, end, period, start, weight: as of `Plan`.

    Raises ConfigError naming the argument and its value.
    """

    def __init__(
        self, policy: Callable[..., Any], *, horizon: int | None = None, replan: Replan = 1, merge: Merge = "drop",
        end: End = "hold", period: float | None = None, start: float = 0.0, weight: float | None = None,
    ) -> None:  # fmt: skip
        decide = getattr(policy, "forward", policy)
        if not callable(decide):
            remedy = "it plans already, play it as it is" if hasattr(policy, "answer") else "give one of them"
            raise ConfigError(f"Planned({policy!r:.60}): is no function and no object with forward; {remedy}")
        if horizon is not None and (type(horizon) is not int or horizon < 1):
            raise ConfigError(f"Planned(horizon={horizon!r:.60}): must be a whole number >= 1, or None")
        steps, share = type(replan) is int and replan >= 1, is_number(replan) and 0.0 < replan < 1.0
        if not (steps or share or replan == "end"):
            raise ConfigError(f"Planned(replan={replan!r:.60}): must be a number of steps, a share below 1, or 'end'")
        self.policy, self.horizon, self.replan = policy, horizon, replan
        self._plan = partial(Plan, period=period, start=start, merge=merge, end=end, weight=weight)
        self._plan([0.0])  # says now what is wrong with these
        self._last = dict[str, tuple[int, int]]()

    def begin(self, seed: int, episode: int) -> None:
        """Begin an episode."""
        self._last.clear()
        begin = getattr(self.policy, "begin", None)
        if callable(begin):
            begin(seed, episode)

    def answer(self, asked: Asked) -> Answer:
        """Return a plan, or nothing new. Raises ConfigError for anything but a sequence of actions."""
        if not self._is_due(asked):
            return Answer(None)
        decide = decide_with(self.policy, _no_states, lambda vector: asked.mask, lambda: asked.running)
        draw = partial(draw_of, asked.seed, asked.episode, asked.agent, asked.number)
        plan = decide(asked.vector, asked.turn, draw)
        if plan is not None and not isinstance(plan, Plan):
            try:
                plan = self._plan(plan[: self.horizon])
            except (TypeError, LookupError) as error:
                answered = f"Planned({self.policy!r:.60}) answered {plan!r:.60}"
                raise ConfigError(f"{answered}: must be a sequence of actions, [k, size]") from error
        self._last[asked.agent] = asked.turn, 0 if plan is None else len(plan.actions)
        return Answer(plan)

    def _is_due(self, question: Asked) -> bool:
        if question.agent not in self._last:
            return True
        turn, length = self._last[question.agent]
        if type(self.replan) is int:
            return question.turn - turn >= self.replan
        return question.running.left <= (0.0 if self.replan == "end" else self.replan * length)
