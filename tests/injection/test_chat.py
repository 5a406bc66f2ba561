"""A conversation over letters: the same words in both clocks, from an endpoint or from its script."""

from typing import Any

import pytest
from endpoint_kit import fast, serving

from heron_env import ScheduleConfig
from heron_env.errors import ConfigError
from heron_env.injection import (
    ExternalPolicy,
    Persona,
    Recorded,
    Recording,
    ScriptedPersona,
    Transcript,
    conversation,
)

CLOCKS = ("run_synchronous", "run_event_driven")
ANNA = ScriptedPersona(
    opening="Do you have power to spare?", to=["ben"], answers={"price": ["Too much.", "Agreed."]}, otherwise=["And?"]
)
BEN = ScriptedPersona(answers={"POWER": ["At a price, {sender}."]}, otherwise=["{name} says: {said}", "No."])


def talk(clock: str, anna: Any, ben: Any, seed: int = 0, **options: Any) -> tuple[list[Any], Any]:
    said, env = Transcript({"anna": anna, "ben": ben}), conversation(["anna", "ben"], rounds=6)
    result = getattr(env, clock)(said.policies, seed=seed, **options)
    return said.turns, result


def test_both_clocks_have_the_same_conversation_and_seeds_differ():
    turns, result = talk("run_synchronous", ANNA, BEN)
    assert [turn[1:] for turn in turns[:2]] == [
        ("anna", "ben", "Do you have power to spare?"), ("ben", "anna", "At a price, anna."),
    ]  # fmt: skip
    assert turns == talk("run_event_driven", ANNA, BEN)[0]
    assert result.letters.balanced() and result.letters.sent == len(turns) == 6
    assert len({tuple(talk("run_synchronous", ANNA, BEN, seed)[0]) for seed in range(8)}) > 1


def echo(body: dict[str, Any]) -> dict[str, Any]:
    assert body["decision"] is None and body["response_format"] == {"type": "text"}
    return {"response_text": f"I heard {len(body['conversation_context']['last_k_turns'])}: {body['current_stimulus']}"}


@pytest.mark.parametrize("clock", CLOCKS)
def test_an_endpoint_talks_with_a_script_and_is_replayed(clock: str, tmp_path: Any):
    path = tmp_path / "talk.jsonl"
    with serving(echo) as server, Recording(ExternalPolicy(fast(server.url), env=_env(), chat=True), path) as ben:
        live, _ = talk(clock, ANNA, ben)
        assert {body["topology_edge_context"]["can_message"][0] for body in server.asked} == {"anna"}
    words = [turn.text for turn in live if turn.sender == "ben"]
    assert words[0] == "I heard 0: "
    assert "I heard 2: Do you have power to spare?" in words
    assert talk(clock, ANNA, Recorded(path))[0] == live


def _env() -> Any:
    return conversation(["anna", "ben"], rounds=6)


def test_a_dead_endpoint_gives_the_script_s_words():
    with serving(echo) as server:
        url = server.url
    dead = ExternalPolicy(fast(url), env=_env(), chat=True, fallback=BEN)
    turns, result = talk("run_synchronous", ANNA, dead)
    assert turns == talk("run_synchronous", ANNA, BEN)[0]
    assert {origin.source for _, origin in result.origins["ben"]} == {"fallback"}


@pytest.mark.parametrize("tier", ["minimal", "basic", "full"])
def test_nothing_private_of_the_other_persona_is_told(tier: Any):
    personas = {
        "anna": Persona(name="Anna", background="ANNA-SECRET", goal="ANNA-GOAL", traits={"patience": 0.25}),
        "ben": Persona(name="Ben", background="BEN-BACKGROUND"),
    }
    with serving(echo) as server:
        ben = ExternalPolicy(fast(server.url, privacy_tier=tier), env=_env(), chat=True, personas=personas)
        talk("run_synchronous", ANNA, ben)
        bodies = repr(server.asked)
    assert "ANNA-SECRET" not in bodies and "ANNA-GOAL" not in bodies and "0.25" not in bodies
    assert ("BEN-BACKGROUND" in bodies) == (tier == "full")
    assert ("anna" in bodies) == (tier != "minimal")


def test_letters_that_take_time_are_answered_later():
    late = ScheduleConfig(msg_delay=90.0)
    turns, _ = talk("run_event_driven", ANNA, BEN, schedule=late)
    assert turns[1].time > talk("run_event_driven", ANNA, BEN)[0][1].time


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        (lambda: ScriptedPersona(otherwise="no list"), r"otherwise='no list'.*list of texts"),
        (lambda: ScriptedPersona(opening="Hello"), "name who hears it"),
        (lambda: conversation(["anna"]), "two speakers at least"),
    ],
)
def test_what_is_no_script_is_refused(bad: Any, words: str):
    with pytest.raises(ConfigError, match=words):
        bad()
