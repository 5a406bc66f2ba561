"""Faults of asking and thinking, planted as in `mutants`."""

from typing import Any

from laws.mutants import mutant_in

from heron_env.envs import answering
from heron_env.envs.event import clock, thinking
from heron_env.envs.event.agents import AgentLoop

ANSWER_MUTANTS: dict[str, Any] = {}
mutant = mutant_in(ANSWER_MUTANTS)


@mutant(thinking, "put")
def answers_in_disorder(original: Any) -> Any:
    """Who was asked last comes first."""
    return lambda questions: original(questions[::-1])[::-1]


@mutant(answering.Asking, "question_in_step")
def numbers_of_ones_own(original: Any) -> Any:
    """The number of a question is that of the control step."""

    def question_in_step(self: Any, vector: Any) -> Any:
        turn = self._env.simulation.step_index
        return self.question(vector, turn, turn, turn * self._env.dt_ns)

    return question_in_step


@mutant(clock, "begin_policies")
def begun_after_the_first_question(original: Any) -> Any:
    """Nobody is told that an episode begins."""
    return lambda policies, seed, episode: None


@mutant(thinking.AnswerLoop, "think")
def a_thought_falls_at_once(original: Any) -> Any:
    """Thinking takes no time."""
    return lambda self, answer, thinking: original(self, answer, 0)


@mutant(thinking.AnswerLoop, "receive_reply")
def the_busy_are_asked(original: Any) -> Any:
    """Who is thinking looks at what comes, and thinks of it, too."""

    def decide(self: Any, reply: Any, now: int) -> None:
        kept, self.thinking = self.thinking, {}
        original(self, reply, now)
        self.thinking = kept | self.thinking

    return decide


@mutant(thinking.AnswerLoop, "finish")
def thoughts_of_the_ended_fall(original: Any) -> Any:
    """Whoever has begun to think decides."""

    def ends(self: Any, answer: Any, in_time: bool) -> bool:
        self.thinking.pop(answer.agent)
        return in_time

    return ends


@mutant(AgentLoop, "pending")
def thoughts_at_the_end_are_forgotten(original: Any) -> Any:
    """Only effects are under way."""
    return lambda self: [e.agent for e in self.context.scheduler if type(e).__name__ == "ActionEffect"]
