"""An injected agent in both clocks: the course of the rule that answers for it, recorded and replayed."""

import copy
import json
import pickle
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from endpoint_kit import fast, no_sockets, serving

from heron_env import Answer, Asked, EpisodeResult, HeronEnv, Letter, Mail, ScheduleConfig, SystemAgent, make
from heron_env.injection import (
    ExternalPolicy,
    Latency,
    Recorded,
    Recording,
    serve_policy,
)

CLOCKS = ("run_synchronous", "run_event_driven")
LATE = ScheduleConfig(obs_delay=0.5, act_delay=0.5, jitter_type="uniform", jitter_ratio=0.5)


def rule(vector: Any) -> Any:
    """What the endpoint computes, on the same bits."""
    value = np.float32(vector[0]) * np.float32(0.7) - np.float32(0.2)
    return np.array([value], np.float64)


def served(body: dict[str, Any]) -> dict[str, Any]:
    return {"action": rule(np.array(body["decision"]["observation"]["vector"], np.float32)).tolist()}


def grid(**options: Any) -> Any:
    return make("heron/BatteryGrid-v0", num_batteries=2, max_steps=20, **options)


@contextmanager
def at_an_endpoint(**told: Any) -> Iterator[Any]:
    with serving(served) as endpoint:
        yield lambda env, **options: ExternalPolicy(fast(endpoint.url, **told), env=env, **options)


def test_both_clocks_ask_the_same():
    bodies = []
    for clock in CLOCKS:
        env = grid()
        with serving(served) as endpoint:
            getattr(env, clock)({"*": ExternalPolicy(fast(endpoint.url), env=env)}, seed=5)
            keyed = {(body["turn_id"], body["agent_id"]): {**body, "timeout_ms": 0} for body in endpoint.asked}
        bodies.append(keyed)
    assert bodies[0] == bodies[1]
    assert len(bodies[0]) == 40


@pytest.mark.parametrize(("clock", "steps"), [("run_synchronous", 20), ("run_event_driven", 10)])
def test_decisions_of_an_environment_are_replayed_without_sockets(clock: str, steps: int, tmp_path: Path):
    def env() -> Any:
        return make("heron/BatteryGrid-v0", num_batteries=5, max_steps=steps)

    options = {"schedule": LATE} if clock == "run_event_driven" else {}
    live_env, path = env(), tmp_path / "run.jsonl"
    with at_an_endpoint() as policy, Recording(policy(live_env), path) as recording:
        live: EpisodeResult = getattr(live_env, clock)({"*": recording}, seed=5, **options)
    again, recorded = env(), Recorded(path)
    with no_sockets():
        replayed = getattr(again, clock)({"*": recorded}, seed=5, **options)
    assert replayed.same_course(live)
    assert replayed.deterministic
    assert len(recorded.fixture.decisions) >= 0.9 * 5 * steps
    assert {origin.source for told in replayed.origins.values() for _, origin in told} == {"replay"}


def test_a_failing_endpoint_leaves_the_course_to_what_stands_in():
    own = grid().run_synchronous({"*": rule}, seed=5)
    env = grid()
    with serving(lambda body: (500, {})) as endpoint:
        policy = ExternalPolicy(fast(endpoint.url), env=env, fallback=rule)
        failed = env.run_synchronous({"*": policy}, seed=5)
    assert failed.same_course(own)
    codes = [origin.code for _, origin in failed.origins["battery_2"]]
    assert set(codes) == {"INTERNAL", "CIRCUIT_OPEN"}
    assert policy.metrics().decisions == 40


def test_thinking_delays_the_effect_and_is_drawn_alike_in_every_run():
    def run(mean: float) -> EpisodeResult:
        env = grid()
        with at_an_endpoint(latency=Latency(mode="virtual", mean=mean, ratio=0.5)) as policy:
            return env.run_event_driven({"*": policy(env)}, seed=5)

    slow = run(2.5)
    assert slow.same_course(run(2.5))
    assert sum(slow.busy.values()) > 0
    assert not slow.same_course(run(0.0))
    assert sum(run(0.0).busy.values()) == 0


class Wordy:
    """Decides as the endpoint does, and counts its own words."""

    def __init__(self, rate: float) -> None:
        self.rate = rate

    def answer(self, asked: Asked) -> Answer:
        tokens = 10 + asked.number
        return Answer(rule(asked.vector), thinking=tokens / self.rate, tokens=tokens)


@pytest.mark.parametrize("rate", [3.7, 1e12])
@pytest.mark.parametrize("clock", CLOCKS)
def test_tokens_are_time_whatever_the_wall_says_and_are_recorded_with_the_answer(
    clock: str, rate: float, tmp_path: Path
):
    def run(policy: Any) -> EpisodeResult:
        result: EpisodeResult = getattr(grid(), clock)({"*": policy}, seed=5)
        return result

    def talkative(body: dict[str, Any]) -> dict[str, Any]:
        return {**served(body), "usage": {"completion_tokens": 10 + body["decision"]["step"], "total_tokens": 999}}

    own, path, counted = run(Wordy(rate)), tmp_path / "run.jsonl", Latency(mode="tokens", tokens_per_second=rate)
    with (
        serving(talkative) as endpoint,
        Recording(ExternalPolicy(fast(endpoint.url, latency=counted), env=grid()), path) as recording,
    ):
        live = run(recording)
    with no_sockets():
        replayed = run(Recorded(path))
    with serve_policy(Wordy(1.0), grid()) as server:
        through = run(ExternalPolicy(fast(server.url, latency=counted), env=grid()))
    assert min(own.tokens.values()) > 0
    for other in (live, replayed, through):
        assert other.same_course(own)
        assert (other.tokens, other.busy) == (own.tokens, own.busy)
    assert bool(sum(own.busy.values())) == (clock == "run_event_driven" and rate < 10.0)


def test_no_canary_is_in_what_is_sent(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    """Seed, hidden truth, others' rewards and key of a whole run: none of them, in no form, in body or fixture."""
    monkeypatch.setenv("CANARY_KEY", "canary-key-77")
    seed = 918_273_645_546
    env = grid(scope="owner")
    path = tmp_path / "run.jsonl"
    with serving(served) as endpoint:
        told = fast(endpoint.url, api_key_env="CANARY_KEY", privacy_tier="full")
        with Recording(ExternalPolicy(told, env=env), path) as recording:
            result = env.run_synchronous({"battery_1": recording, "battery_2": rule}, seed=seed)
        sent = b"".join(endpoint.raw).decode()
    for form in (str(seed), f"{seed:x}", f"{float(seed)!r}"):
        assert form not in sent
    rewards = {repr(value) for _, value in result.rewards["battery_2"]}
    own = {repr(value) for _, value in result.rewards["battery_1"]}
    assert not [value for value in rewards - own - {"0.5"} if value in sent]
    assert "canary-key-77" not in sent + path.read_text()
    for line in path.read_text().splitlines()[1:-1]:
        assert str(seed) not in json.dumps(json.loads(line)["request"])


def test_a_step_asks_an_injected_agent_itself_unless_the_caller_acts_for_it():
    env = make("heron/Economy-v0")
    first, *others = env.possible_agents
    with serving(lambda body: {"action": [0.25]}) as endpoint:
        block = {"agent_injection": {"endpoints": [{"agent_id": first, "url": endpoint.url}]}}
        injected = type(env)(type(env.config)(**{**dict(env.config), **block}))
        injected.reset(seed=1)
        injected.step({agent: np.array([0.5], np.float32) for agent in others})
        assert injected.last_decisions[first].origin.source == "external"
        injected.step({agent: np.array([0.5], np.float32) for agent in [first, *others]})
        assert len(endpoint.asked) == 1
        result = injected.run_synchronous({"*": lambda vector: [0.0]}, seed=1)
    assert {origin.source for _, origin in result.origins[first]} == {"external"}
    assert set(result.origins) == {first}


class Talker:
    """In-process partner: answers every letter with its text and a mark."""

    def answer(self, asked: Asked) -> Answer:
        letters = [Letter(asked.agent, one.sender, "reply", f"{one.body}!") for one in asked.letters]
        return Answer(np.zeros(1), tuple(letters))


def talking() -> Any:
    kind = type(grid().hierarchy.agents[-1])
    batteries = [kind(f"battery_{number}") for number in (1, 2, 3)]
    edges = [("battery_1", "battery_2"), ("battery_2", "battery_1"), ("battery_3", "battery_1")]
    return HeronEnv(SystemAgent("system_agent", *batteries, exchange=Mail(edges)), max_steps=6)


@pytest.mark.parametrize("tier", ["minimal", "basic"])
@pytest.mark.parametrize("clock", CLOCKS)
def test_letters_go_to_an_endpoint_and_back_and_are_replayed(clock: str, tier: str, tmp_path: Path):
    def chatty(body: dict[str, Any]) -> dict[str, Any]:
        turns = body["conversation_context"]["last_k_turns"]
        known = [turn["sender"] for turn in turns if turn["sender"] != body["agent_id"]]
        to = [*body["topology_edge_context"]["can_message"], *known][:1]
        step = body["decision"]["step"]
        return {
            "action": [0.5],
            "letters": [{"receiver": one, "body": f"{step}:{body['current_stimulus']}"} for one in to],
        }

    class Opener(Talker):
        def answer(self, asked: Asked) -> Answer:
            first = (Letter("battery_2", "battery_1", "hello", "battery_3 is near"),) if asked.number == 0 else ()
            return Answer(np.zeros(1), (*first, *super().answer(asked).letters))

    path, env = tmp_path / "run.jsonl", talking()
    others = {"battery_2": Opener(), "battery_3": Talker()}
    with serving(chatty) as endpoint:
        told = fast(endpoint.url, privacy_tier=tier)
        with Recording(ExternalPolicy(told, env=env, fallback="fail"), path) as recording:
            live = getattr(env, clock)({**others, "battery_1": recording}, seed=5)
        asked = endpoint.asked
    assert asked[0]["topology_edge_context"]["can_message"] == ([] if tier == "minimal" else ["battery_2"])
    stimuli = [body["current_stimulus"] for body in asked]
    assert any(text.endswith("!") for text in stimuli)
    assert ("battery_3 is near" in stimuli) == (tier == "basic")
    if tier == "minimal":
        assert not [body for body in asked if "battery" in json.dumps(body)]
    again = talking()
    with no_sockets():
        replayed = getattr(again, clock)({**others, "battery_1": Recorded(path)}, seed=5)
    assert replayed.same_course(live)
    assert again.letter_counts == env.letter_counts
    assert env.letter_counts.read > 3


def test_an_injected_world_can_be_copied_and_pickled_and_goes_on_alike():
    with serving(lambda body: {"action": [0.25]}) as endpoint:
        env = make("heron/Economy-v0")
        block = {"agent_injection": {"endpoints": [{"agent_id": env.possible_agents[0], "url": endpoint.url}]}}
        env = type(env)(type(env.config)(**{**dict(env.config), **block}))
        env.reset(seed=1)
        env.step({})
        copies = [copy.deepcopy(env), pickle.loads(pickle.dumps(env))]
        seen = env.step({})[0]
        for other in copies:
            again = other.step({})[0]
            assert {agent: vector.tobytes() for agent, vector in seen.items()} == {
                agent: vector.tobytes() for agent, vector in again.items()
            }
            assert other.last_decisions[env.possible_agents[0]].origin.source == "external"
