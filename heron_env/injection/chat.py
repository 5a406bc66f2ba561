"""Conversations over letters: personas with a script, a small world for them to talk in, and what was said.

env = conversation(["anna", "ben"], rounds=6)
anna = ScriptedPersona(opening="Do you have power to spare?", to=["ben"], otherwise=["Thank you, {sender}."])
ben = ExternalPolicy("http://127.0.0.1:8080/", env=env, chat=True, fallback=ScriptedPersona(otherwise=["Perhaps."]))
said = Transcript({"anna": anna, "ben": ben})
env.run_synchronous(said.policies, seed=0)
print(said)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from heron_env.agents.agent import FieldAgent, SystemAgent
from heron_env.agents.horizontal import Mail
from heron_env.core.action import Discrete
from heron_env.core.feature import FeatureProvider, quantity
from heron_env.core.letters import Letter
from heron_env.core.policy import Answer, AnsweringPolicy, Asked
from heron_env.core.world import World
from heron_env.envs.answering import begin_policies
from heron_env.envs.base import HeronEnv
from heron_env.errors import ConfigError
from heron_env.given import mapping, require_type, several, whole
from heron_env.injection.answers import WORDS
from heron_env.injection.contract import Wire
from heron_env.injection.questions import as_text
from heron_env.seeding import stream


@dataclass(frozen=True)
class ScriptedPersona:
    """AnsweringPolicy that talks by a script: an opening, then one answer to each letter; its action is the no-op.

    Of several lines that fit, one is drawn, keyed by seed, episode, agent, number and sender. `{sender}`, `{name}` (its
    own) and `{said}` in a line are filled in.

    Attributes:
        opening: its first letter, to all of `to`.
        answers: lines by a word of the letter, in any case; the first match counts.
        otherwise: lines for all other letters; none: it is silent.
        most: most letters that it answers in one decision: the newest ones.
    """

    opening: str = ""
    to: Sequence[str] = ()
    answers: Mapping[str, Sequence[str]] = field(default_factory=dict)
    otherwise: Sequence[str] = ()
    most: int = 10

    def __post_init__(self) -> None:
        """Raises ConfigError for what are no lines."""
        answers = mapping(self.answers, "ScriptedPersona(answers)")
        require_type(f"ScriptedPersona(opening={self.opening!r:.60})", self.opening, str, "a text")
        whole(self.most, "ScriptedPersona(most)")
        for word in answers:
            require_type(f"ScriptedPersona(answers): {word!r:.60}", word, str, "a word")
        for name, lines in [("otherwise", self.otherwise), ("to", self.to), *answers.items()]:
            if isinstance(lines, str) or not all(isinstance(line, str) and line for line in several(lines, name)):
                raise ConfigError(f"ScriptedPersona({name}={lines!r:.100}): must be a list of texts")
        if self.opening and not several(self.to, "to"):
            raise ConfigError("ScriptedPersona(opening=...): name who hears it: to=['ben']")

    def answer(self, asked: Asked) -> Answer:
        """Answer `asked.letters` in the order in which they came."""
        letters = [
            Letter(asked.agent, one, WORDS, self.opening) for one in self.to if self.opening and not asked.number
        ]
        for letter in asked.letters[-self.most :]:
            said = as_text(letter.body)
            lines = next((texts for word, texts in self.answers.items() if word.casefold() in said.casefold()), None)
            if lines := self.otherwise if lines is None else lines:
                draw = stream(asked.seed, "persona", asked.episode, asked.agent, asked.number, letter.sender)
                line = lines[int(draw.integers(len(lines)))]
                for name, value in (("{sender}", letter.sender), ("{name}", asked.agent), ("{said}", said)):
                    line = line.replace(name, value)
                letters.append(Letter(asked.agent, letter.sender, WORDS, line))
        wire = Wire.of(asked.space)
        return Answer(wire.ours(wire.written(wire.noop)), letters=tuple(letters))


class ChatTurn(NamedTuple):
    """Who said what to whom, and at which tick's nominal time, s."""

    time: float
    sender: str
    receiver: str
    text: str


class Transcript:
    """Record of the letters of policies: `env.run_synchronous(transcript.policies)`.

    Attributes:
        policies: policies to pass to a run.
        turns: letters of the last episode, in order.
    """

    def __init__(self, policies: Mapping[str, AnsweringPolicy]) -> None:
        self.turns: list[ChatTurn] = []
        self.policies: dict[str, _Overheard] = {name: _Overheard(policy, self) for name, policy in policies.items()}

    def __str__(self) -> str:
        """A line for each letter."""
        return "\n".join(f"{turn.time:8g} s  {turn.sender} to {turn.receiver}: {turn.text}" for turn in self.turns)


class _Overheard:
    """A policy whose letters are kept."""

    def __init__(self, policy: AnsweringPolicy, transcript: Transcript) -> None:
        self._policy, self._transcript = policy, transcript

    def begin(self, seed: int, episode: int) -> None:
        self._transcript.turns.clear()
        begin_policies([self._policy], seed, episode)

    def answer(self, asked: Asked) -> Answer:
        answer = self._policy.answer(asked)
        self._transcript.turns += [
            ChatTurn(asked.time, letter.sender, letter.receiver, as_text(letter.body)) for letter in answer.letters
        ]
        return answer


class Presence(FeatureProvider):
    """That somebody is there, and for how long."""

    visibility = ("public",)
    turns: float = quantity(default=0.0, low=0.0, high=1e9, unit="1", noisy=False)


class Speaker(FieldAgent):
    """Somebody who talks. Its action means nothing."""

    features = (Presence,)
    action = Discrete(1)


class Conversation(HeronEnv):
    """Speakers who may all write to each other; a step is a turn of everybody, dt seconds apart."""

    metadata = {**HeronEnv.metadata, "name": "heron_conversation"}
    dt = 60.0

    def finish(self, world: World) -> None:
        """A turn is over."""
        presence: Any = world[Speaker].Presence
        presence.turns[...] += 1.0


def conversation(speakers: Sequence[str], *, rounds: int = 10, **options: Any) -> Conversation:
    """Make a world in which agents only talk.

    Args:
        speakers: their names, two at least.
        rounds: turns of everybody; a letter of one arrives in the next.
        options: of HeronEnv, such as `schedule=` for letters that take time.

    Raises ConfigError.
    """
    names = several(speakers, "conversation(speakers)")
    if len(names) < 2:
        raise ConfigError(f"conversation({names!r}): two speakers at least")
    return Conversation(
        SystemAgent("room", *(Speaker(name) for name in names), exchange=Mail("full")), max_steps=rounds, **options
    )
