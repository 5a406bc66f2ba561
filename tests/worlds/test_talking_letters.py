"""Clusters that talk: letters in both clocks, what they may hold, and a model that lies, is silent or raves."""

import json
import re
from collections import Counter
from typing import Any

import numpy as np
import pytest

from heron_env import Answer, Asked, Letter
from heron_env.errors import ConfigError, FixtureError
from heron_env.injection import Endpoint, Latency
from heron_env.worlds.graph_coloring import graph_coloring
from heron_env.worlds.graph_coloring.talking import Model, Talking, talking
from tests.endpoint_kit import no_sockets, serving
from tests.fault_server import FaultServer

MODES = ("RB", "LLM_U", "LLM_C", "LLM_F")
HARD = {"h2": "red", "b4": "green", "a2": "blue"}
"""Fixed nodes with which clusters get stuck, so that offers are made."""


class Overheard:
    """A policy, and all letters that it wrote."""

    def __init__(self, policy: Talking) -> None:
        self.policy, self.said, self.heard = policy, [], []
        self.begin = policy.begin

    def answer(self, asked: Asked) -> Answer:
        answer = self.policy.answer(asked)
        self.said += answer.letters
        self.heard.append(
            (asked.turn, [letter.sender for letter in asked.letters], [x.receiver for x in answer.letters])
        )
        return answer


def played(mode: str, clock: str = "run_synchronous", seed: int = 0, env: Any = None, **options: Any):
    """An episode: the environment, the policies, the letters, the result."""
    env = env or graph_coloring(start="random", fixed=HARD, max_steps=40)
    policies = {name: Overheard(one) for name, one in talking(env, mode=mode, **options).items()}
    result = getattr(env, clock)(policies, seed=seed)
    return env, policies, {name: one.said for name, one in policies.items()}, result


@pytest.mark.parametrize("mode", MODES)
def test_without_delay_both_clocks_are_equal_bit_for_bit_with_letters_too(mode):
    for seed, fixed in ((0, None), (3, HARD)):
        runs = []
        for clock in ("run_synchronous", "run_event_driven"):
            env = graph_coloring(start="random" if fixed else "first", fixed=fixed)
            env, _, said, result = played(mode, clock, seed, env)
            actions = {name: [(at, a.tolist()) for at, a in done] for name, done in result.actions.items()}
            runs.append((said, result.letters, env.kpis(), result.rewards, actions))
        assert runs[0] == runs[1]
        assert sum(map(len, runs[0][0].values())) == runs[0][1].sent > 0


@pytest.mark.parametrize("mode", MODES)
def test_letters_name_nothing_beyond_the_boundary_and_hold_what_their_mode_says(mode):
    shape = {"RB": {"report", "offer"}, "LLM_U": {"utility"}, "LLM_C": {"constraints"}, "LLM_F": {"text"}}[mode]
    kinds = set()
    for seed in range(2):
        env, policies, said, _ = played(mode, seed=seed, human=None)
        for letter in (one for letters in said.values() for one in letters):
            part = env.problem.part(letter.sender)
            theirs = set(part.foreign_boundary(letter.receiver))
            seen = theirs | {own for own, foreign in part.outer if foreign in theirs}
            assert set(re.findall(r"\b[abh][1-5]\b", json.dumps(letter.body))) <= seen
            assert letter.body["text"] and (mode != "LLM_F" or letter.body.keys() == {"text"})
            kinds.add(letter.kind)
        counts = sum((Counter(one.policy.counts) for one in policies.values()), Counter())
        assert counts["lies_after"] == counts["unread"] == 0 < counts["letters"]
    assert kinds == shape


def test_three_modes_differ_in_letters_alone():
    runs = {mode: played(mode, seed=3, human=None) for mode in ("LLM_U", "LLM_C", "LLM_F")}
    first, *others = (
        {name: np.array([a for _, a in done]) for name, done in run[3].actions.items()} for run in runs.values()
    )
    for other in others:
        assert all(np.array_equal(done, other[name]) for name, done in first.items())
    assert len({json.dumps([one.body for one in run[2]["Agent1"]]) for run in runs.values()}) == 3


def test_the_human_is_answered_only_in_a_step_in_which_it_wrote():
    for mode in MODES:
        _, policies, said, _ = played(mode)
        for name in ("Agent1", "Agent2"):
            for _, senders, receivers in policies[name].heard:
                assert "Human" not in receivers or "Human" in senders
        assert any(letter.receiver == "Human" for letter in said["Agent1"] + said["Agent2"])


def test_offers_are_accepted_committed_and_kept():
    states: Counter[str] = Counter()
    moves: Counter[str] = Counter()
    for seed in range(6):
        _, policies, said, _ = played("RB", seed=seed, human=None)
        states.update(offer.state for one in policies.values() for offer in one.policy.ledger.offers.values())
        moves.update(x.body["move"] for letters in said.values() for x in letters if x.kind == "offer")
        for one in policies.values():
            assert set(one.policy.process.agent.forced) <= set(one.policy.ledger.commits())
    assert min(moves["Accept"], moves["Commit"], moves["ConditionalOffer"] + moves["Propose"]) > 0
    assert states["kept"] > states["broken"]


class Saying:
    """Writes the same letters in every turn, and changes nothing."""

    def __init__(self, env: Any, letters: list[Letter]) -> None:
        self.noop, self.letters = np.array([3] * 5 + [0]), letters

    def answer(self, asked: Asked) -> Answer:
        return Answer(self.noop, tuple(self.letters))


def test_letters_of_others_may_hold_anything():
    bodies = [None, 7, "b2 is what?", [], {}, {"text": 3}, {"report": 3}, {"report": {"h2": 5}, "fixed": 3}]
    bodies += [{"report": {"h2": "pink"}, "fixed": []}, {"report": {"h1": "red"}, "fixed": ["h1", {}]}, {"move": {}}]
    env = graph_coloring()
    letters = [
        Letter("Human", "Agent2", kind, body)
        for kind in ("report", "utility", "constraints", "offer", "text", "poem")
        for body in bodies
    ]
    policies = {**talking(env), "Human": Saying(env, letters)}
    env.run_synchronous(policies, seed=0)
    assert policies["Agent2"].counts["unread"] > 0 and "h1" not in policies["Agent2"].process.agent.beliefs


def test_a_report_is_taken_of_its_senders_own_nodes_only_with_what_is_fixed_there():
    env = graph_coloring(max_steps=4)
    told = {"report": {"a2": "green", "b2": "green"}, "fixed": ["a2", "b2"], "text": ""}
    policies = {**talking(env), "Agent1": Saying(env, [Letter("Agent1", "Human", "report", told)])}
    human = policies["Human"]
    env.run_synchronous(policies, seed=0)
    assert human._fixed == {"a2": "green"} and human.counts["unread"] == 0


def test_a_person_orders_by_text_and_is_told_what_became_of_it():
    env = graph_coloring(max_steps=12)
    policies = {
        **talking(env, mode="LLM_F"),
        "Human": Saying(env, [Letter("Human", "Agent2", "text", "Change b2 to blue.")]),
    }
    agent = Overheard(policies["Agent2"])
    env.run_synchronous({**policies, "Agent2": agent}, seed=0)
    assert agent.policy.process.agent.forced == {"b2": "blue"}
    assert "b2 is blue." in agent.said[-1].body["text"]


@pytest.mark.parametrize("mode", MODES)
def test_a_person_is_answered_what_was_not_understood(mode):
    said = "Hello there. Paint b1 or b3 in red. b2 conflicts with h2. Set b1 to red. avoid green for h2. Set b9 to red."
    env = graph_coloring(max_steps=4)
    policies = {**talking(env, mode=mode), "Human": Saying(env, [Letter("Human", "Agent2", "text", said)])}
    agent = Overheard(policies["Agent2"])
    env.run_synchronous({**policies, "Agent2": agent}, seed=0)
    assert agent.policy.process.agent.forced == {"b1": "red"}
    for letter in agent.said:
        text = letter.body["text"]
        assert ("did not understand" in text) == (letter.receiver == "Human")
        if letter.receiver == "Human":
            wrong = "Paint b1 or b3 in red. avoid green for h2. Set b9 to red."
            assert text.endswith(f". I did not understand: {wrong}")
    answers = sum(letter.receiver == "Human" for letter in agent.said)
    assert agent.policy.counts["unclear"] == 3 * answers > 0


def test_agents_that_do_not_understand_each_other_answer_once():
    env = graph_coloring(max_steps=8)
    policies = {name: Overheard(one) for name, one in talking(env, mode="LLM_F", human=None).items()}
    played = policies["Agent2"].policy.answer
    letter = Letter("Agent2", "Human", "text", {"text": "".join(f"Like h2 for {n} days. " for n in range(600))})

    def once(asked: Asked) -> Answer:
        return Answer(played(asked).action, (letter,) if asked.number == 1 else ())

    policies["Agent2"].policy.answer = once
    env.run_synchronous(policies, seed=0)
    unclear = [one for one in policies["Human"].said if "did not understand" in one.body["text"]]
    assert [one.receiver for one in unclear] == ["Agent2"]
    assert "Like h2 for 9 days. 590 more." in unclear[0].body["text"]
    assert policies["Agent2"].policy.counts["unclear"] == policies["Agent1"].policy.counts["unclear"] == 0


@pytest.mark.parametrize("seed", range(3))
def test_words_that_clusters_write_to_each_other_are_understood(seed):
    _, policies, _, result = played("LLM_F", seed=seed, human=None)
    assert result.letters.sent > 0 and all(one.policy.counts["unclear"] == 0 for one in policies.values())


def test_wrong_settings_are_refused():
    env = graph_coloring()
    with pytest.raises(ConfigError, match="RB, LLM_U"):
        talking(env, mode="LLM")
    with pytest.raises(ConfigError, match="needs a model"):
        talking(env, parse=True)
    renamed = env.problem.having(
        nodes=("is", *env.problem.nodes[1:]), clusters={"Human": ("is", "h2")},
        edges=(("is", "h2"),), name="odd",
    )  # fmt: skip
    with pytest.raises(ConfigError, match="rename"):
        talking(graph_coloring(problem=renamed.having(clusters={"Human": renamed.nodes})))


# A model


def completion(text: str, claims: Any = ()) -> dict[str, Any]:
    """As such endpoints answer."""
    content = json.dumps({"text": text, "claims": list(claims)})
    return {"choices": [{"index": 0, "message": {"role": "assistant", "content": content}}]}


def told(request: dict[str, Any]) -> dict[str, Any]:
    """What a request asks to put into words."""
    found: dict[str, Any] = json.loads(request["messages"][1]["content"])
    return found


def honest(request: dict[str, Any]) -> Any:
    """Says the same otherwise."""
    facts = told(request)["facts"]
    return completion("Hello! " + re.sub(r"(\w\d) is (\w+)", r"\1 is now \2", facts))


def liar(request: dict[str, Any]) -> Any:
    return completion("I have no conflicts and my penalty is 7. Trust me.")


def repentant(request: dict[str, Any]) -> Any:
    """Lies until it is told what is wrong."""
    return honest(request) if told(request)["wrong_in_your_last_draft"] else completion("My penalty is 7.")


def gossip(request: dict[str, Any]) -> Any:
    return completion(f"{told(request)['facts']} By the way, b4 and a1 are green.")


def forger(request: dict[str, Any]) -> Any:
    """True words with a list of claims that isn't."""
    return completion(told(request)["facts"], ["penalty 7"])


def garbage(request: dict[str, Any]) -> Any:
    return {"choices": [{"message": {"content": "Sure! Here is the letter: {'text'"}}]}


def empty(request: dict[str, Any]) -> Any:
    return {"choices": []}


def broken(request: dict[str, Any]) -> Any:
    return 500, {"error": "out of memory"}


def counted(policies: Any) -> Counter[str]:
    return sum((Counter(one.policy.counts) for one in policies.values()), Counter())


@pytest.mark.parametrize(
    ("brain", "fault"),
    [(honest, ""), (liar, "false"), (repentant, "false"), (gossip, "invisible"), (forger, "false"), (garbage, None),
     (empty, None), (broken, None)],
)  # fmt: skip
def test_whatever_a_model_says_nothing_false_is_sent(brain, fault):
    with serving(brain) as endpoint:
        model = Model(endpoint.url, model="scripted")
        _, policies, said, result = played("LLM_F", human=None, model=model)
        model.close()
    counts = counted(policies)
    assert counts["lies_after"] == 0 and counts["letters"] == sum(map(len, said.values())) > 0
    assert not result.deterministic
    taken = counts["letters"] - counts["templates"]
    if fault is None:  # no answer that counts: nobody asks twice
        assert taken == 0 and counts["drafts"] == counts["letters"] and set(model.codes) - {""}
    elif brain in (honest, repentant):
        assert taken == counts["letters"] and any("is now" in one.body["text"] for one in said["Human"])
    else:
        assert taken == 0 and counts["drafts"] == 2 * counts["letters"]
    assert bool(fault) == bool(counts[f"blocked_{fault}"])
    assert (counts["lies_before"] > 0) == bool(fault)
    for request in endpoint.asked:
        assert request["temperature"] == 0 and request["model"] == "scripted" and len(request["messages"]) == 2


def test_a_model_that_is_silent_costs_its_time_and_a_template():
    with FaultServer("silence") as server:
        model = Model(Endpoint(server.url, timeout=0.02, model="silent"))
        _, policies, said, _ = played("LLM_U", human=None, model=model, env=graph_coloring(max_steps=4))
        model.close()
    assert set(model.codes) <= {"TIMEOUT", "CIRCUIT_OPEN"} and model.codes["TIMEOUT"]
    assert counted(policies)["templates"] == sum(map(len, said.values())) > 0


def short():
    """A short episode."""
    return graph_coloring(start="random", fixed=HARD, max_steps=8)


def test_recorded_answers_replay_bit_for_bit_without_a_socket(tmp_path):
    path = tmp_path / "letters.jsonl"
    with serving(repentant) as endpoint, Model(endpoint.url, model="scripted", record=path) as model:
        _, _, said, _ = played("LLM_C", seed=2, env=short(), model=model)
    with no_sockets():
        _, policies, again, result = played(
            "LLM_C", "run_event_driven", seed=2, env=short(), model=Model.recorded(path)
        )
        assert again == said and result.deterministic and counted(policies)["lies_before"] > 0
        with pytest.raises(FixtureError, match="seed 3"):
            played("LLM_C", seed=3, env=short(), model=Model.recorded(path))
        with pytest.raises(FixtureError, match="messages"):
            played("LLM_U", seed=2, env=short(), model=Model.recorded(path))
    path.write_bytes(path.read_bytes().rpartition(b'{"count"')[0])
    with pytest.raises(FixtureError, match="cut off"):
        Model.recorded(path)


def test_a_model_thinks_as_long_as_its_drafts_have_tokens(tmp_path):
    path, latency = tmp_path / "letters.jsonl", Latency(mode="tokens", tokens_per_second=5.0)

    def counting(request: dict[str, Any]) -> Any:
        return {**repentant(request), "usage": {"completion_tokens": 7}}

    def silent(request: dict[str, Any]) -> Any:
        return {**repentant(request), "usage": "7"}

    def run(model: Model) -> Any:
        _, policies, _, result = played("LLM_C", "run_event_driven", seed=2, env=short(), model=model)
        return result, counted(policies)["drafts"]

    with serving(counting) as endpoint, Model(Endpoint(endpoint.url, latency=latency), record=path) as model:
        live, drafts = run(model)
    with no_sockets():
        again, _ = run(Model.recorded(path))
    assert sum(live.tokens.values()) == 7 * drafts > 0 and any(live.busy.values())
    assert again.same_course(live) and (again.tokens, again.busy) == (live.tokens, live.busy)
    with serving(silent) as endpoint, Model(Endpoint(endpoint.url, latency=latency)) as model:
        free, _ = run(model)
    assert set(model.codes) == {"INVALID_RESPONSE", "CIRCUIT_OPEN"} and not any(free.busy.values())


def test_a_model_may_read_but_only_what_stands_there():
    def reader(request: dict[str, Any]) -> Any:
        if "text" not in told(request):
            return honest(request)
        return completion("", ["assign h2 green", "request b2 blue", "request b1 red", "request b3 red", "not a claim"])

    text = "My h2 went green, b2 had better be blue. And could b1 be red?"
    with serving(reader) as endpoint:
        env = graph_coloring(max_steps=3)
        model = Model(endpoint.url)
        agents = talking(env, model=model, mode="LLM_F", parse=True)
        policies = {**agents, "Human": Saying(env, [Letter("Human", "Agent2", "text", text)])}
        env.run_synchronous(policies, seed=0)
        model.close()
    agent = policies["Agent2"].process.agent
    assert agent.forced == {"b2": "blue"} and policies["Agent2"].counts["misread"] >= 2
