"""A policy served by the SDK and injected back: the trajectory in process, bit for bit; and what it refuses."""

import http.client
import json
import sys
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import pytest
from endpoint_kit import fast, question

from heron_env import Answer, Asked, ScheduleConfig, make
from heron_env.errors import ConfigError
from heron_env.injection import ExternalPolicy, serve_policy
from heron_env.lab import benchmark
from heron_env.net.access import MOST_BYTES

CLOCKS = ("run_synchronous", "run_event_driven")
LATE = ScheduleConfig(msg_delay=0.3, act_delay=0.2, jitter_type="uniform", jitter_ratio=0.5, loss=0.1)


def world(**options: Any) -> Any:
    return make("heron/BatteryGrid-v0", num_batteries=3, max_steps=15, **options)


def injected(url: str, env: Any, **told: Any) -> ExternalPolicy:
    return ExternalPolicy(fast(url, **told), env=env)


def towards_the_middle(vector: Any) -> Any:
    return np.array([(0.5 - float(vector[0])) * 0.7])


def rule_of(env: Any) -> Any:
    return benchmark.baselines(env)[env.benchmark().strongest]


@pytest.mark.parametrize("tier", ["minimal", "full"])
@pytest.mark.parametrize("clock", CLOCKS)
def test_a_served_rule_injected_back_runs_its_course_bit_for_bit(clock: str, tier: Any):
    options = {"schedule": LATE} if clock == "run_event_driven" else {}
    env = world()
    own = getattr(env, clock)({"*": towards_the_middle}, seed=3, **options)
    with serve_policy(towards_the_middle, world()) as server:
        env = world()
        there = getattr(env, clock)({"*": injected(server.url, env, privacy_tier=tier)}, seed=3, **options)
        assert server.served.requests >= 3
    assert there.same_course(own) and own.deterministic and not there.deterministic
    assert {origin.source for told in there.origins.values() for _, origin in told} == {"external"}
    assert sum(map(len, there.origins.values())) == sum(map(len, own.actions.values()))


def test_masks_and_choices_arrive():
    def obedient(vector: Any, mask: Any = None) -> int:
        return int(np.argmax(np.asarray(mask) * np.array([1.0, 1.5]))) if vector[0] < 2.0 else 0

    def env() -> Any:
        return make("heron/TrafficCorridor-v0", max_steps=8)

    world, group = env(), "intersection"
    keys = {group: obedient} if group in world.groups else {"*": obedient}
    rules = {**rule_of(world), **keys}
    own = world.run_synchronous(rules, seed=1)
    agents = [agent for agent in world.possible_agents if agent in world.groups.get(group, world.possible_agents)]
    with serve_policy(rules, env()) as server:
        again = env()
        external = injected(server.url, again)
        there = again.run_synchronous({**rule_of(again), **dict.fromkeys(agents, external)}, seed=1)
    assert there.same_course(own)


class Counting:
    """Knows who asks; the third question of an agent is answered otherwise."""

    def __init__(self) -> None:
        self.begun: list[tuple[int, int]] = []
        self.asked: dict[str, int] = {}

    def begin(self, seed: int, episode: int) -> None:
        self.begun.append((seed, episode))
        self.asked = {}

    def answer(self, asked: Asked) -> Answer:
        count = self.asked[asked.agent] = self.asked.get(asked.agent, 0) + 1
        return Answer(np.array([0.25 if count == 3 else -0.125]))


def test_a_policy_that_knows_who_asks_is_begun_once_an_episode():
    here, there = Counting(), Counting()
    own = world().run_synchronous({"*": here}, seed=0)
    with serve_policy(there, world()) as server:
        env = world()
        ask = injected(server.url, env)
        for _ in range(2):
            assert env.run_synchronous({"*": ask}, seed=0).same_course(own)
        env.reset(seed=0)
        ask.begin(0, 0)
        for _ in range(2):
            asked = question("battery_1", 0, vector=env.seen_by(env.hierarchy.index["battery_1"]))
            assert post(server.url, ask.questions.body({**ask.due([asked])[0].request, "probe": True}, 1.0))[0] == 200
    assert len(here.begun) * 2 == len(there.begun) == 2
    assert sum(there.asked.values()) == sum(here.asked.values())  # and nothing remembers a health check


def post(url: str, body: bytes, verb: str = "POST", **headers: str) -> tuple[int, dict[str, Any]]:
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(str(parts.hostname), parts.port, timeout=10)
    try:
        connection.request(verb, parts.path, body, headers)
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())
    finally:
        connection.close()


def test_what_is_no_request_is_refused_in_one_shape():
    with serve_policy(lambda vector: 1 / 0, world()) as server:
        bad = [(b"[", 400), (b"[]", 422), (b"{}", 422), (b"[" * 100_000, 400), (b"\xff", 400)]
        for body, status in bad:
            code, told = post(server.url, body)
            assert (code, told["error"]["code"]) == (status, "INVALID_REQUEST"), body[:9]
        assert post(server.url, b"", **{"Content-Length": str(MOST_BYTES + 1)})[0] == 413  # before any of it is read
        assert post(server.url, b"{}", Host="elsewhere.example")[0] == 421
        for verb in ("GET", "PUT"):
            status, refused = post(server.url, b"", verb)
            assert (status, refused["error"]["code"]) == (405, "INVALID_REQUEST")


def test_of_a_policy_that_raises_no_answer_counts():
    def late(vector: Any) -> Any:
        raise TimeoutError("of the policy's own")

    for broken in (lambda vector: 1 / 0, late):
        with serve_policy(broken, world()) as server:
            env = world()
            result = env.run_synchronous({"*": injected(server.url, env)}, seed=0)
        assert {origin.code for told in result.origins.values() for _, origin in told} <= {"INTERNAL", "CIRCUIT_OPEN"}


def test_a_connection_is_used_again_until_the_server_closes():
    with serve_policy(lambda vector: 0.0, world()) as server:
        parts = urlsplit(server.url)
        connection = http.client.HTTPConnection(str(parts.hostname), parts.port, timeout=10)
        for _ in range(3):
            connection.request("POST", "/", b"{}")
            assert connection.getresponse().read()
    with pytest.raises((OSError, http.client.HTTPException)):
        connection.request("POST", "/", b"{}")
        connection.getresponse()
    connection.close()
    with pytest.raises(OSError):
        post(server.url, b"{}")


@pytest.mark.parametrize("package", ["starlette.applications", "uvicorn"])
def test_what_is_missing_is_named(package: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ConfigError, match=r"pip install 'heron_env\[agents\]'"):
        serve_policy(lambda vector: 0.0, world())


def test_a_token_is_asked_for(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("SDK_TOKEN", raising=False)
    with pytest.raises(ConfigError, match="SDK_TOKEN"):
        serve_policy(lambda vector: 0.0, world(), token_env="SDK_TOKEN")
    with pytest.raises(ConfigError, match="loopback need a token"):
        serve_policy(lambda vector: 0.0, world(), host="0.0.0.0")
    monkeypatch.setenv("SDK_TOKEN", "open-sesame")
    with serve_policy(lambda vector: 0.0, world(), token_env="SDK_TOKEN") as server:
        assert post(server.url, b"{}")[0] == 401
        assert post(server.url, b"{}", Authorization="Bearer open-says-me")[0] == 401
        assert post(server.url, b"{}", Authorization="Bearer open-sesame")[0] == 422
        env = world()
        result = env.run_synchronous({"*": injected(server.url, env, api_key_env="SDK_TOKEN")}, seed=0)
    assert {origin.source for told in result.origins.values() for _, origin in told} == {"external"}
    with serve_policy(lambda vector: 0.0, world(), host="0.0.0.0", token_env="SDK_TOKEN") as server:
        here = server.url.replace("0.0.0.0", "127.0.0.1")  # other machines have other names for it
        assert post(here, b"{}", Authorization="Bearer open-sesame", Host="box.example")[0] == 422
