"""Policies that know who asks, in both clocks: where a question is made, put, and its answer taken apart."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from heron_env.core.letters import Letter, Written
from heron_env.core.plans import NOTHING, Plan, Running
from heron_env.core.policy import (
    Answer,
    AnsweringPolicy,
    Asked,
    Decide,
    Origin,
    Policy,
    StatePolicy,
    decide_with,
    draw_of,
)
from heron_env.errors import ConfigError, InvalidAction
from heron_env.given import is_finite
from heron_env.scheduling.timing import to_ns, to_seconds

if TYPE_CHECKING:
    from heron_env.envs.synchronous import SynchronousEnv


class Taken(NamedTuple):
    """An answer that has been taken apart; `thinking` in ns. The action is parsed where actions are."""

    action: Any
    thinking: int
    origin: Origin | None
    letters: tuple[Written, ...]
    tokens: int


def not_running(observed: int) -> Running:
    """Of an agent that is no part of a run."""
    return NOTHING


class Asking:
    """What one agent asks its policy: the rest of each question is the same throughout an episode.

    Attributes:
        together: `answer_all` of the policy, if it offers that: it is then asked through it always, for one agent too.
        key: equal for those who ask together.
        about: id of the message with the observation that the last question is about, on the event clock.
        running: what its actuator is doing, as far as an observation of some time, ns, tells; a run sets it.
    """

    __slots__ = (
        "_agent", "_env", "_names", "_offer", "_space", "_timing", "about", "key", "policy", "rank", "running",
        "together",
    )  # fmt: skip

    def __init__(self, env: SynchronousEnv, rank: int, clock: int, policy: AnsweringPolicy) -> None:
        self._env, self.rank, self.policy = env, rank, policy
        self._agent, self.about = env.hierarchy.ids[rank], 0
        self.running: Callable[[int], Running] = not_running
        self._timing = env.timings[clock]
        self._names, self._space = tuple(env.observation_names(self._agent)), env.action_space(self._agent)
        self._offer = env.simulation.masks.offer(rank)
        self.together: Any = getattr(policy, "answer_all", None)
        self.key = (id(policy), -1 if self.together is not None else rank)

    def question(
        self, vector: NDArray[np.float32], number: int, turn: int, ns: int, *, before: int | None = None
    ) -> Asked:
        """The question of tick `number` at `ns`, in control step `turn`; the policy may keep and change the vector.

        It has the letters that came `before`, ns; None: all that have come.
        """
        env = self._env
        letters = env.simulation.post.take(self.rank, before)
        moment = to_seconds(ns), env.np_random_seed, env._episode
        return self.asked(vector, number, turn, *moment, letters, self.running(ns))

    def asked(
        self, vector: NDArray[np.float32], number: int, turn: int, time: float, seed: int, episode: int,
        letters: tuple[Letter, ...], running: Running = NOTHING,
    ) -> Asked:  # fmt: skip
        """A question with these contents, and all that is the same in each."""
        mask = None if self._offer is None else self._offer(vector)
        names, space = self._names, self._space
        moment = number, turn, time, seed, episode
        return Asked(self._agent, vector.copy(), names, *moment, space, mask, letters, running)

    def question_in_step(self, vector: NDArray[np.float32]) -> Asked:
        """The question of the tick in the coming control step, in which the synchronous clock asks (T10)."""
        turn = self._env.simulation.step_index
        begun = turn * self._env.dt_ns
        number = self._timing.number(begun)
        return self.question(vector, number, turn, self._timing.nominal(number), before=begun)

    def taken(self, answer: Any) -> Taken:
        """An answer, taken apart. Raises ConfigError naming the agent for what is none."""
        return taken_apart(self._agent, answer, lambda letters: self._env.simulation.post.checked(self.rank, letters))


def taken_apart(agent: str, answer: Any, checked: Callable[[Any], tuple[Written, ...]]) -> Taken:
    """The parts of an answer; `checked` takes its letters. Raises ConfigError naming the agent for what is none."""
    if not isinstance(answer, Answer):
        raise ConfigError(f"the policy of {agent!r} answered {answer!r:.200}: must be an Answer; write Answer(action)")
    thinking, origin = answer.thinking, answer.origin
    if isinstance(thinking, bool | np.bool_) or not is_finite(thinking) or thinking < 0:
        raise ConfigError(f"the answer for {agent!r} has thinking={thinking!r:.60}: must be a number of seconds >= 0")
    if not isinstance(origin, Origin | None):
        raise ConfigError(f"the answer for {agent!r} has origin={origin!r:.60}: must be an Origin, or None")
    if type(answer.tokens) is not int or answer.tokens < 0:
        raise ConfigError(f"the answer for {agent!r} has tokens={answer.tokens!r:.60}: must be a whole number >= 0")
    written = () if answer.letters == () else checked(answer.letters)
    ns = to_ns(thinking, f"thinking of {agent!r}") if thinking else 0
    return Taken(answer.action, ns, origin, written, answer.tokens)


class InWords:
    """A policy of vectors as one that is asked: it thinks elsewhere, takes time, or wants to know what is running."""

    def __init__(self, env: SynchronousEnv, rank: int, policy: Policy | StatePolicy | Decide) -> None:
        show = partial(env.shown_to, rank)
        self._policy, self._running, self._plans = policy, NOTHING, False
        self._decide = decide_with(policy, show, env.simulation.masks.offer(rank), lambda: self._running)

    def begin(self, seed: int, episode: int) -> None:
        """An episode begins, or the process has been started again."""
        begin_policies([self._policy], seed, episode)

    def answer(self, asked: Asked) -> Answer:
        """What it decides; its draws are those of the tick that asks."""
        draw, self._running = partial(draw_of, asked.seed, asked.episode, asked.agent, asked.number), asked.running
        action = self._decide(asked.vector, asked.turn, draw)
        self._plans = self._plans or type(action) is Plan or asked.running.number >= 0
        if action is None and not self._plans:  # a forgotten return; who plans may have nothing new
            raise InvalidAction(f"the policy of {asked.agent!r} returned None, and no plan before; return an action")
        return Answer(action)


def put(questions: Sequence[tuple[Asking, Asked]]) -> list[Taken]:
    """The answers to all questions of one policy at one instant, in their order.

    Raises ConfigError for what is no answer, or where there are not as many as questions.
    """
    return taken(questions, fetch(questions))


def fetch(questions: Sequence[tuple[Asking, Asked]]) -> Sequence[Any]:
    """What the policy says to them, as it says it: nothing of the environment is touched. Raises ConfigError."""
    first = questions[0][0]
    if first.together is None:
        return [asking.policy.answer(question) for asking, question in questions]
    answers = first.together([question for _, question in questions])
    if not isinstance(answers, Sequence) or len(answers) != len(questions):
        what = f"{len(answers)} answers" if isinstance(answers, Sequence) else repr(answers)[:200]
        raise ConfigError(
            f"answer_all() of {type(first.policy).__name__} returned {what} to {len(questions)} questions; return a "
            "list with one Answer for each, in their order"
        )
    return answers


def taken(questions: Sequence[tuple[Asking, Asked]], said: Sequence[Any]) -> list[Taken]:
    """What was said to them, taken apart. Raises ConfigError."""
    return [asking.taken(answer) for (asking, _), answer in zip(questions, said, strict=True)]


def put_in_step(env: SynchronousEnv, together: Iterable[Asking]) -> dict[int, Taken]:
    """Answers in the synchronous clock, by rank, to those who ask one policy; origins are noted, letters handed over.

    Raises RunInterrupted where a decision leaves the environment elsewhere (T21).
    """
    owned, mark = env._ownership, env._ownership.mark
    questions = [(asking, asking.question_in_step(env.seen_by(asking.rank))) for asking in together]
    answers = put(questions)
    owned.require(mark, env.hierarchy.ids[questions[0][0].rank], env.simulation.time)
    by_rank = {asking.rank: taken for (asking, _), taken in zip(questions, answers, strict=True)}
    for rank, taken in by_rank.items():
        env.simulation.post.hand_over(rank, taken.letters, env.simulation.step_index * env.dt_ns)
    env._origins = env._origins | {rank: taken.origin for rank, taken in by_rank.items() if taken.origin is not None}
    return by_rank


def mates_of(deciders: Mapping[int, object]) -> dict[int, list[Asking]]:
    """For each rank that asks: who asks the same policy object at the same instant, itself among them, by rank.

    One whose policy offers no `answer_all` asks alone.
    """
    asking = [one for _, one in sorted(deciders.items()) if isinstance(one, Asking)]
    groups: dict[tuple[int, int], list[Asking]] = {}
    for one in asking:
        groups.setdefault(one.key, []).append(one)
    return {one.rank: groups[one.key] for one in asking}


def begin_policies(policies: Iterable[object], seed: int, episode: int) -> None:
    """Tell each policy object that has `begin(seed, episode)`, once, that an episode begins."""
    for policy in {id(policy): policy for policy in policies}.values():
        begin = getattr(policy, "begin", None)
        if callable(begin) and not isinstance(policy, type):
            begin(seed, episode)
