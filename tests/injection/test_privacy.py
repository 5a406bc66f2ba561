"""Privacy: a tier only removes, nothing hidden is told, and personal data is taken out of all text.

Planted once and caught: a seed hashed into an id, others named in basic, names kept in minimal, hashes without a key,
texts that are not redacted, every long number a card, pseudonyms that go on.
"""

import json
from typing import Any

import numpy as np
import pytest
from endpoint_kit import letter, question
from hypothesis import given
from hypothesis import strategies as st

from heron_env import make
from heron_env.injection import Endpoint, ExternalPolicy, Persona
from heron_env.injection.questions import (
    LAST_K,
    MAX_CONTEXT_CHARS,
    REDACTED,
    Aliases,
    Questions,
    Telling,
    is_of_another,
    redacted,
)
from heron_env.injection.setting import AgentFacts, EnvironmentFacts

TIERS = ("minimal", "basic", "full")
NAMES = ("Charge.soc", "battery_2.Charge.soc", "global.Price.value", "age.battery_2", "mask[0]")
UNITS = ("1", "1", "EUR/kWh", "s", "1")
AGENTS = ("battery_1", "battery_2", "zone_1", "lisa")
WORDS = ("battery_2 is empty", "ask lisa", "write to lisa@example.org", "nothing", "call +49 30 123456")


def setting(**changes: Any) -> EnvironmentFacts:
    persona = Persona(name="Lisa", background="grew up by the sea", goal="wants it all", traits={"openness": 0.8})
    facts = AgentFacts(persona=persona, units=UNITS, noop=(0.0,), can_message=("battery_2", "zone_1"))
    others = {name: AgentFacts(persona=Persona(name=name)) for name in AGENTS[1:]}
    return EnvironmentFacts(**{"env_id": "x/Y-v0", "options": {}, "agents": {"battery_1": facts, **others}, **changes})


def told(tier: str, asked: Any = None, **telling: Any) -> dict[str, Any]:
    questions = Questions(setting(), Telling(privacy_tier=tier, **telling))
    return questions.request(asked or seen()).model_dump(mode="json")


def seen(**changes: Any) -> Any:
    return question(vector=np.arange(5, dtype=np.float32), names=NAMES, **changes)


def is_part(less: Any, more: Any, alias: dict[str, str]) -> bool:
    """Is all in `less` also in `more`, nothing else, at the same places, but for names that became pseudonyms?"""
    if less in ("", [], {}) or less == more:
        return True
    if isinstance(less, dict):
        return set(less) == set(more) and all(is_part(less[name], more[name], alias) for name in less)
    if isinstance(less, list):
        return len(less) == len(more) and all(is_part(a, b, alias) for a, b in zip(less, more, strict=True))
    if isinstance(less, str):
        for name, pseudonym in alias.items():
            more = more.replace(name, pseudonym)
        return less == more
    return False


LETTERS = st.lists(st.tuples(st.sampled_from(AGENTS[1:]), st.sampled_from(WORDS)), max_size=4)


@given(LETTERS, st.booleans())
def test_a_tier_never_adds_a_byte(letters: list[tuple[str, str]], redact: bool):
    asked = seen(letters=tuple(letter(sender, "battery_1", body) for sender, body in letters))
    bodies, alias = {}, {}
    for tier in TIERS:
        questions = Questions(setting(), Telling(privacy_tier=tier, redact_pii_patterns=redact))
        bodies[tier] = questions.request(asked).model_dump(mode="json")
        if tier == "minimal":
            alias = {name: questions.aliases._aliases[name] for name in questions.aliases._aliases}
    assert is_part(bodies["minimal"], bodies["basic"], alias)
    assert is_part(bodies["basic"], bodies["full"], {})
    sizes = [len(json.dumps(bodies[tier])) for tier in TIERS]
    assert sizes == sorted(sizes)


def test_minimal_is_told_no_name_and_no_trait():
    asked = seen(letters=(letter("lisa", "battery_1", "battery_2 told lisa"),))
    body = told("minimal", asked)
    text = json.dumps(body)
    for hidden in (*AGENTS, "Lisa", "openness", "sea", "soc", "EUR"):
        assert hidden not in text
    assert body["agent_id"] == "a1"
    assert body["conversation_context"]["last_k_turns"][0]["sender"] == "a2"
    assert body["current_stimulus"] == "a3 told a2"
    assert body["decision"]["observation"] == {"vector": [0.0, 1.0, 2.0, 3.0, 4.0], "names": [], "units": []}


def test_basic_is_told_its_own_names_traits_and_neighbours():
    body = told("basic")
    assert body["decision"]["observation"]["names"] == ["Charge.soc", "", "global.Price.value", "", "mask[0]"]
    assert body["decision"]["observation"]["units"] == ["1", "", "EUR/kWh", "", "1"]
    assert body["persona_snapshot"] == {"name": "Lisa", "background": "", "traits": {"openness": 0.8}}
    assert body["topology_edge_context"] == {"can_message": ["battery_2", "zone_1"]}


def test_full_is_told_also_background_goal_and_what_it_sees_of_others_by_name():
    body = told("full")
    assert body["persona_snapshot"]["background"] == "grew up by the sea\nwants it all"
    assert body["decision"]["observation"]["names"] == list(NAMES)


def test_without_persona_details_any_tier_is_minimal():
    assert told("full", send_persona_details_externally=False) == told("minimal")


NAMED = ("run_id", "turn_id", "message_id", "request_id", "simulation_config_hash", "persona_hash")
GRID = "heron/BatteryGrid-v0"


def names_in(body: dict[str, Any]) -> dict[str, str]:
    return {**{name: body[name] for name in NAMED}, "persona_ref": body["persona_ref"]["persona_hash"]}


def guessed(body: dict[str, Any], env: Any) -> set[str]:
    """The ids and hashes that whoever guesses personas, options and label can compute."""
    found = set()
    for many in range(1, 5):
        setting = EnvironmentFacts.of(env, env_id=GRID, options={"num_batteries": many})
        for agent in env.possible_agents:
            body_of_guess = Questions(setting, Telling(label="mine")).request(question(agent)).model_dump(mode="json")
            found |= {name for name, value in names_in(body_of_guess).items() if names_in(body)[name] == value}
    return found


def test_no_id_and_no_hash_of_minimal_is_found_by_guessing():
    env = make(GRID, num_batteries=3)
    bodies = []
    for tier in ("basic", "minimal", "minimal"):
        endpoint = Endpoint("http://127.0.0.1:1/", privacy_tier=tier)
        policy = ExternalPolicy(endpoint, env=env, label="mine", env_id=GRID, options={"num_batteries": 3})
        body = policy.questions.request(question())
        policy.questions.begin()
        assert policy.questions.request(question()) == body
        key = policy.questions.telling.key
        assert len(key) == (0 if tier == "basic" else 64)
        assert not key or key not in body.model_dump_json() + repr(policy.questions.telling)
        bodies.append(body.model_dump(mode="json"))
    basic, one, other = bodies
    assert guessed(basic, env) == names_in(basic).keys()
    assert guessed(one, env) == guessed(other, env) == set()
    assert not names_in(one).items() & names_in(other).items()


@pytest.mark.parametrize("hidden", [True, False])
def test_a_pseudonym_is_nobody_s_name(hidden: bool):
    names = ["x@example.org", "a2", "a1", "y@example.org"]
    aliases = Aliases(names, hidden=hidden, redact=True)
    told = [aliases.of(name) for name in names]
    assert [aliases.real(one) for one in told] == names
    assert not {one for one, name in zip(told, names, strict=True) if one != name} & set(names)


def test_pseudonyms_begin_anew_with_each_episode():
    questions = Questions(setting(), Telling(privacy_tier="minimal"))
    assert [questions.request(question(agent)).agent_id for agent in ("zone_1", "battery_1")] == ["a1", "a2"]
    questions.begin()
    assert questions.request(question("battery_1")).agent_id == "a1"


@given(st.integers(0, 2**62), st.integers(0, 2**62), st.sampled_from(TIERS))
def test_no_function_of_the_seed_is_told(one: int, other: int, tier: str):
    assert told(tier, seen(seed=one)) == told(tier, seen(seed=other))


@pytest.mark.parametrize("tier", TIERS)
def test_neither_truth_nor_noise_nor_what_others_earn_is_told(tier: str):
    """Two worlds that look alike to an agent, and differ in all else, are told alike."""
    bodies = []
    for seed, hidden, factor in ((1, 0.25, 0.125), (2, 0.75, 0.375)):
        env = make("heron/BatteryGrid-v0", scope="owner")
        env.reset(seed=seed)
        env.world[type(env.hierarchy.agents[-1])].BatteryChargeFeature.soc[1] = hidden
        env.step({agent: np.array([factor], np.float32) for agent in env.agents if agent != "battery_1"})
        questions = Questions(EnvironmentFacts.of(env), Telling(privacy_tier=tier))
        names = tuple(env.observation_names("battery_1"))
        asked = question(vector=np.array([0.5, 100.0], np.float32), names=names, seed=seed)
        bodies.append(questions.request(asked).model_dump_json())
        assert "0.25" not in bodies[-1] and "0.75" not in bodies[-1]
    assert bodies[0] == bodies[1]


def test_noise_factors_are_not_told():
    def body(noise: float) -> str:
        rows = [["battery_1", "battery_2", "external", noise]]
        visible = {"external": ["soc"]}
        env = make("heron/BatteryGrid-v0", observability={"matrix": rows, "variable_visibility": visible})
        names = tuple(env.observation_names("battery_1"))
        asked = question(vector=np.zeros(len(names), np.float32), names=names)
        return Questions(EnvironmentFacts.of(env), Telling(privacy_tier="full")).request(asked).model_dump_json()

    assert body(0.123456) == body(0.654321)


@pytest.mark.parametrize(
    "secret",
    [
        "lisa@example.org", "first.last+tag@mail.example.co.uk",
        "+49 30 1234567", "(030) 123-4567", "+1 (555) 123-4567", "555-123-4567", "01701234567",
        "DE89 3704 0044 0532 0130 00", "GB82WEST12345698765432",
        "4111 1111 1111 1111", "378282246310005", "5555-5555-5555-4444",
        "078-05-1120",
    ],
)  # fmt: skip
def test_personal_data_is_taken_out_of_text(secret: str):
    assert redacted(f"reach me: {secret}, soon") == f"reach me: {REDACTED}, soon"


@pytest.mark.parametrize(
    "text",
    [
        "soc is 0.1234567", "at 1970-01-01T00:00:12Z", "4111 1111 1111 1112 is no card"[17:], "[10.5, -3.25, 17.125]",
        "battery_12 at 85 %", '{"price": 0.31415926, "step": 1200}',
    ],
)  # fmt: skip
def test_other_text_stays(text: str):
    assert redacted(text) == text


@pytest.mark.parametrize("text", ["a" * 100_000, "1 " * 50_000, "a@" * 50_000, "+1(" * 30_000, "A1" * 50_000])
def test_no_text_takes_long_to_redact(text: str):
    """Linear, since every pattern has a bounded length: twice the text takes far less than four times the steps."""
    redacted(text)


@pytest.mark.parametrize("place", ["letter", "sender", "trait", "persona", "neighbour", "name of a column"])
def test_redaction_covers_all_text(place: str):
    secret = "lisa@example.org"
    persona = Persona(
        name=secret if place == "persona" else "x",
        background=secret,
        goal=secret,
        traits={secret: 0.5} if place == "trait" else {},
        persona_id=secret if place == "persona" else "",
    )
    facts = AgentFacts(persona=persona, can_message=(secret,) if place == "neighbour" else ())
    asked = question(
        names=(f"{secret}.Charge.soc", "Charge.soc") if place == "name of a column" else ("Charge.soc", "Charge.n"),
        letters=(letter(secret if place == "sender" else "zone_1", "battery_1", {"to": secret}),),
    )
    questions = Questions(setting(agents={"battery_1": facts}), Telling(privacy_tier="full"))
    body = questions.request(asked).model_dump_json()
    assert secret not in body
    if place in ("sender", "neighbour"):
        assert secret in {questions.aliases.real(f"a{number}") for number in range(9)}


@pytest.mark.parametrize(("name", "other"), [*zip(NAMES, (False, True, False, True, False), strict=True)])
def test_names_of_others_are_known_as_such(name: str, other: bool):
    assert is_of_another(name) == other


def test_the_oldest_letters_are_left_out_where_they_do_not_fit():
    questions = Questions(setting(), Telling())
    long = "x" * 3900
    for number in range(12):
        asked = seen(number=number, letters=(letter("zone_1", "battery_1", f"{number:04d}{long}"),))
        body = questions.request(asked)
    turns = body.conversation_context.last_k_turns
    assert [turn.content[:4] for turn in turns] == ["0008", "0009", "0010", "0011"]
    assert sum(len(turn.content) + len(turn.sender) for turn in turns) <= MAX_CONTEXT_CHARS
    assert [turn.timestamp for turn in turns][-1] == "1970-01-01T00:00:11.000000Z"


def test_ten_letters_are_remembered_those_written_by_itself_too():
    questions = Questions(setting(), Telling())
    for number in range(8):
        asked = seen(number=number, letters=(letter("zone_1", "battery_1", f"q{number}"),))
        body = questions.request(asked)
        questions.said(asked, [letter("battery_1", "zone_1", f"a{number}")])
    turns = [(turn.sender, turn.content) for turn in body.conversation_context.last_k_turns]
    assert len(turns) == LAST_K
    assert turns[-2:] == [("battery_1", "a6"), ("zone_1", "q7")]
    assert body.current_stimulus == "q7"
    assert questions.request(seen(number=9)).current_stimulus == ""
