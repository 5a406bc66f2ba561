"""The policy: an endpoint's answer is its own, and where none counts the fallback stands in, always the same.

Planted once and caught: questions one after another, draws without their number, a local policy that is not copied,
thinking that is drawn anew.
"""

import copy
import dataclasses
import pickle
import threading
from typing import Any

import numpy as np
import pytest
from endpoint_kit import letter, question, serving
from gymnasium import spaces

from heron_env import Answer, Asked, Letter, make
from heron_env.errors import ConfigError, ExternalAgentError
from heron_env.injection import Endpoint, ExternalPolicy, Latency, Persona
from heron_env.injection import setting as setting_module
from heron_env.injection.policy import thinking
from heron_env.seeding import standard_normal, uniform

BROKEN = (500, {"secret": "of the server"})


def ask(policy: ExternalPolicy, *questions: Asked) -> list[Answer]:
    return policy.answer_all(list(questions or (question(),)))


def test_questions_of_one_instant_are_under_way_together(patience: float = 20.0):
    barrier = threading.Barrier(4, timeout=patience)

    def brain(body: dict[str, Any]) -> Any:
        try:
            barrier.wait()
        except threading.BrokenBarrierError:
            return 500, {}
        return {"action": [int(body["agent_id"][-1]) / 10]}

    with serving(brain) as endpoint:
        answers = ask(ExternalPolicy(endpoint.url), *(question(f"battery_{n}") for n in range(4)))
    assert [float(answer.action[0]) for answer in answers] == [0.0, 0.1, 0.2, 0.3]


def test_the_key_goes_into_the_header_and_nowhere_else(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("MY_AGENT_KEY", "canary-5f2c")
    with serving(lambda body: BROKEN) as endpoint:
        policy = ExternalPolicy(Endpoint(endpoint.url, api_key_env="MY_AGENT_KEY"), fallback="fail")
        with pytest.raises(ExternalAgentError) as caught:
            ask(policy)
    assert endpoint.headers[0]["Authorization"] == "Bearer canary-5f2c"
    told = (repr(policy), repr(policy.endpoint), repr(caught.value), repr(policy.metrics()), str(endpoint.raw))
    assert not [text for text in told if "canary-5f2c" in text or "of the server" in text]
    assert b"canary-5f2c" not in pickle.dumps(policy)


def test_a_key_that_is_not_there_is_told_by_its_variable(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("MY_AGENT_KEY", raising=False)
    with pytest.raises(ConfigError, match="MY_AGENT_KEY"):
        ask(ExternalPolicy(Endpoint("http://127.0.0.1:9/", api_key_env="MY_AGENT_KEY")))


@pytest.mark.parametrize(
    ("brain", "code"),
    [
        (lambda body: BROKEN, "INTERNAL"),
        (lambda body: (404, {}), "INVALID_REQUEST"),
        (lambda body: {"action": [2.0]}, "INVALID_ACTION"),
        (lambda body: {"action": [float("nan")]}, "INVALID_ACTION"),
        (lambda body: {"action": [0.5], "request_id": "stale"}, "INVALID_RESPONSE"),
        (lambda body: {"error": {"code": "RATE_LIMITED"}}, "RATE_LIMITED"),
    ],
)
def test_what_does_not_count_counts_for_the_breaker_and_in_the_metrics(brain: Any, code: str):
    with serving(brain) as endpoint:
        policy = ExternalPolicy(endpoint.url, fallback="skip")
        answers = [ask(policy, question(number=number))[0] for number in range(7)]
    assert [answer.origin.code for answer in answers] == [code] * 5 + ["CIRCUIT_OPEN"] * 2
    assert len(endpoint.asked) == 5
    figures = policy.metrics()
    assert figures.counts == {f"fallback {code}": 5, "fallback CIRCUIT_OPEN": 2}
    assert (figures.error_rate, figures.fallback_rate, figures.requests) == (1.0, 1.0, 5)
    assert figures.circuit_state == "OPEN"
    assert figures.persona_consistency is None
    assert 0.0 < figures.latency_p50_ms <= figures.latency_p99_ms


def test_metrics_are_kept_by_agent_too():
    with serving(lambda body: BROKEN if body["agent_id"] == "b" else {"action": [0.1], "thoughts": "hm"}) as endpoint:
        policy = ExternalPolicy(endpoint.url)
        ask(policy, question("a"), question("b"), question("a", 1))
    assert policy.metrics("a").counts == {"external": 2}
    assert policy.metrics("b").counts == {"fallback INTERNAL": 1}
    assert policy.metrics().decisions == 3
    assert policy.metrics().reasoning_dropped == 2
    nobody = policy.metrics("c")
    unknown = ("error_rate", "timeout_rate", "fallback_rate", "latency_p50_ms", "elo_rating")
    assert nobody.decisions == 0 and {getattr(nobody, name) for name in unknown} == {None}


def failing(fallback: Any, *questions: Asked, **options: Any) -> list[Answer]:
    with serving(lambda body: BROKEN) as endpoint:
        return ask(ExternalPolicy(endpoint.url, fallback=fallback, **options), *questions)


def test_without_a_policy_of_its_own_a_simulated_agent_draws_what_is_allowed_keyed_by_its_question():
    space, mask = spaces.Discrete(50), np.arange(50) % 2
    asked = [question(number=number, space=space, mask=mask.astype(np.int8)) for number in range(4)]
    first, again = failing("simulated_agent", *asked), failing("simulated_agent", *asked[::-1])[::-1]
    chosen = [answer.action for answer in first]
    assert chosen == [answer.action for answer in again]
    assert len(set(chosen)) > 1
    assert all(mask[choice] for choice in chosen)
    other = failing("simulated_agent", *(dataclasses.replace(one, seed=8) for one in asked))
    assert chosen != [answer.action for answer in other]


def test_a_local_policy_stands_in_whatever_its_form():
    class Answering:
        def __init__(self, kind: str = "message") -> None:
            self.kind = kind

        def answer(self, asked: Asked) -> Answer:
            return Answer([0.3], (Letter(asked.agent, "zone_1", self.kind, "mine"),))

    class Drawing:
        seed = 0

        def reset(self, seed: int) -> None:
            self.seed = seed

        def forward(self, observation: Any) -> Any:
            return [uniform(self.seed)]

    assert failing(lambda vector: vector[:1] / 2)[0].action.tolist() == [0.25]
    with pytest.raises(ConfigError, match=r"local policy of 'battery_1': kind=''"):
        failing(Answering(kind=""))
    (answer,) = failing(Answering())
    assert (answer.action.tolist(), answer.letters[0].body, answer.origin.source) == ([0.3], "mine", "fallback")
    shared = Drawing()
    one, two = failing(shared, question(number=0), question(number=1))
    assert one.action != two.action
    assert shared.seed == 0, "others ask it, too"


def test_an_environments_own_policy_stands_in():
    env = make("heron/BatteryGrid-v0")
    env.hierarchy.agents[env.hierarchy.index["battery_1"]].policy = lambda vector: [0.125]
    assert failing("simulated_agent", env=env)[0].action.tolist() == [0.125]


def test_skip_is_the_no_op_and_an_error_message_is_also_written():
    assert failing("skip")[0].action.tolist() == [0.0]
    assert failing("skip")[0].letters == ()
    with serving(lambda body: BROKEN) as endpoint:
        policy = ExternalPolicy(endpoint.url, fallback="error_message")
        policy.questions.setting.agents["battery_1"] = setting_module.AgentFacts(
            persona=Persona(name="b"), can_message=("zone_1", "lisa")
        )
        nobody, one = ask(policy, question(), question(number=1, letters=(letter("lisa", "battery_1"),)))
    assert [(each.receiver, each.kind, each.body) for each in one.letters] == [("lisa", "error", {"code": "INTERNAL"})]
    assert [each.receiver for each in nobody.letters] == ["zone_1", "lisa"]
    assert one.action.tolist() == [0.0]


def test_fail_raises_with_agent_code_and_remedy():
    with pytest.raises(ExternalAgentError, match=r"'battery_1', decision 0 of episode 0: INTERNAL, .*simulated_agent"):
        failing("fail")


def test_clipped_answers_count_and_are_flagged():
    with serving(lambda body: {"action": [5.0]}) as endpoint:
        (answer,) = ask(policy := ExternalPolicy(Endpoint(endpoint.url, clip=True)))
    assert (answer.action.tolist(), answer.origin.source, answer.origin.code) == ([1.0], "external", "CLIPPED")
    assert policy.metrics().error_rate == 0.0


def test_thinking_is_ignored_drawn_by_key_or_measured():
    asked = [question(number=number) for number in range(400)]
    assert thinking(Latency(), asked[0], 0.5) == 0.0
    assert thinking(Latency(mode="measured"), asked[0], 0.5) == 0.5
    assert thinking(Latency(mode="tokens", tokens_per_second=40.0), asked[0], 0.5, 100) == 2.5
    drawn = [thinking(Latency(mode="virtual", mean=2.0, ratio=0.5), one, 0.1) for one in asked]
    assert drawn == [thinking(Latency(mode="virtual", mean=2.0, ratio=0.5), one, 9.9) for one in asked]
    assert min(drawn) > 0.0
    assert np.mean(drawn) == pytest.approx(2.0, abs=3 * 2.0 * 0.5 / 20)
    assert np.std(drawn) == pytest.approx(1.0, abs=0.25)
    assert {thinking(Latency(mode="virtual", mean=2.0), one, 0.1) for one in asked} == {2.0}
    assert standard_normal(0.5) == 0.0


@pytest.mark.parametrize("usage", [{}, {"usage": {"total_tokens": 7}}, {"usage": {"completion_tokens": -7}}])
def test_a_clock_of_tokens_takes_no_answer_that_does_not_count_them(usage: dict[str, Any]):
    counted = Latency(mode="tokens", tokens_per_second=2.0)
    with serving(lambda body: {"action": [0.5], **usage}) as endpoint:
        strict = ExternalPolicy(Endpoint(endpoint.url, latency=counted), fallback="fail")
        with pytest.raises(ExternalAgentError) as caught:
            ask(strict)
        assert str(caught.value) == (
            "external agent 'battery_1', decision 0 of episode 0: INVALID_RESPONSE, "
            f"{endpoint.url.removesuffix('/respond')}: it has no usage.completion_tokens, which Latency(mode='tokens') "
            "needs; mend the endpoint, or let fallback='simulated_agent' stand in"
        )
        (stood_in,) = ask(ExternalPolicy(Endpoint(endpoint.url, latency=counted), fallback="skip"))
        (ignored,) = ask(ExternalPolicy(Endpoint(endpoint.url), fallback="fail"))
    assert (stood_in.origin.code, stood_in.thinking, stood_in.tokens) == ("INVALID_RESPONSE", 0.0, 0)
    assert (ignored.origin.code, ignored.thinking, ignored.tokens) == ("", 0.0, 0)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"url": "http://agents.example.org/"}, "https"),
        ({"url": "https://10.0.0.1/"}, "10.0.0.0/8"),
        ({"url": "https://user:hush@agents.example.org/"}, "user name, password"),
        ({"url": "ftp://agents.example.org/"}, "https://host"),
        ({"url": 7}, "https://host"),
        ({"api_key_env": "sk-hush"}, "name of an environment variable"),
        ({"timeout": 0}, "must be > 0"),
        ({"timeout": True}, "must be a number"),
        ({"privacy_tier": "all"}, "'minimal', 'basic' or 'full'"),
        ({"clip": 1}, "true or false"),
        ({"latency": "virtual"}, "must be a Latency"),
        ({"api_key": "hush"}, "no such option"),
    ],
)
def test_a_wrong_endpoint_says_what_is_wrong_and_no_secret(given: dict[str, Any], words: str):
    with pytest.raises(ConfigError, match=words) as caught:
        Endpoint(**{"url": "http://127.0.0.1:9/", **given})
    assert "hush" not in str(caught.value)


def test_other_mistakes_are_named():
    with pytest.raises(ConfigError, match="fallback='none'"):
        ExternalPolicy("http://127.0.0.1:9/", fallback="none")
    with pytest.raises(ConfigError, match="give an Endpoint"):
        ExternalPolicy(7)
    with pytest.raises(ConfigError, match=r"from 0 to 1, got 1\.5"):
        Persona(name="x", traits={"openness": 1.5})


def test_copies_share_breaker_and_caps_and_pickles_open_anew():
    policy = ExternalPolicy("http://127.0.0.1:9/", env=make("heron/BatteryGrid-v0"))
    assert copy.deepcopy(policy).line is policy.line
    again = pickle.loads(pickle.dumps(policy))
    assert again.endpoint == policy.endpoint
    assert again.questions.request(question()) == policy.questions.request(question())


def test_equal_endpoints_are_equal():
    assert Endpoint("http://127.0.0.1:9/") == Endpoint("http://127.0.0.1:9/")
    assert hash(Endpoint("http://127.0.0.1:9/")) != hash(Endpoint("http://127.0.0.1:9/", timeout=1.0))
