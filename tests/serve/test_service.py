"""The service: simulations that outlive it, agents played by endpoints, and everything that it refuses."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from serve.service import Service

from heron_env import make
from heron_env.injection import serve_policy

GRID: dict[str, Any] = {"env": "heron/BatteryGrid-v0", "options": {"num_batteries": 2, "max_steps": 12}, "seed": 3}


def rule(vector: Any) -> Any:
    return np.array([(0.5 - float(vector[0])) * 0.7])


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with Service(tmp_path_factory.mktemp("serve"), "--allow-loopback") as running:
        yield running


@pytest.fixture
def grid(service: Service) -> Iterator[str]:
    status, made = service.ask("POST", "/simulations", GRID)
    assert status == 201
    yield f"/simulations/{made['id']}"
    service.ask("DELETE", f"/simulations/{made['id']}")


def by_hand(steps: int) -> list[Any]:
    env = make(GRID["env"], **GRID["options"])
    env.reset(seed=GRID["seed"])
    return [env.step({"battery_1": np.array([0.25])})[:2] for _ in range(steps)][-1]


def test_stepping_over_http_is_stepping(service: Service, grid: str):
    status, told = service.ask("POST", f"{grid}/step", {"steps": 3, "actions": {"battery_1": [0.25]}})
    observations, rewards = by_hand(3)
    assert (status, told["step"], told["time_s"], told["steps"]) == (200, 3, 3 * make(GRID["env"]).dt, 3)
    assert told["rewards"] == rewards
    for agent, seen in observations.items():
        assert np.array_equal(np.array(told["observations"][agent], np.float32), seen)
    assert service.ask("GET", grid)[1]["observations"] == told["observations"]
    status, told = service.ask("POST", f"{grid}/step", {"steps": 100})
    assert (told["steps"], told["agents"], all(told["truncations"].values())) == (9, [], True)
    assert service.ask("POST", f"{grid}/step")[0] == 409
    assert service.ask("POST", f"{grid}/reset", {"seed": 3})[1]["step"] == 0
    assert service.ask("POST", f"{grid}/step", {"steps": 3, "actions": {"battery_1": [0.25]}})[1]["rewards"] == rewards


def test_an_injected_agent_plays_and_is_told_of(service: Service, grid: str):
    env = make(GRID["env"], **GRID["options"])
    env.reset(seed=3)
    own = [env.step({"battery_1": rule(env.seen_by(env.hierarchy.index["battery_1"]))}) for _ in range(5)][-1]
    with serve_policy(rule, make(GRID["env"], **GRID["options"])) as agent:
        form = {"agent_id": "battery_1", "endpoint_url": agent.url}
        status, told = service.ask("POST", f"{grid}/inject-agent", form)
        assert (status, told["privacy_tier"], told["timeout_seconds"]) == (201, "basic", 30.0)
        assert service.ask("POST", f"{grid}/inject-agent", form)[0] == 422  # twice
        assert [one["agent_id"] for one in service.ask("GET", f"{grid}/injected-agents")[1]] == ["battery_1"]
        health = service.ask("POST", f"{grid}/inject-agent/battery_1/health-check")[1]
        assert (health["healthy"], health["code"], health["circuit_state"]) == (True, "", "CLOSED")
        told = service.ask("POST", f"{grid}/step", {"steps": 5})[1]
        assert told["rewards"] == own[1]
        assert agent.served.requests == 6
        figures = service.ask("GET", f"{grid}/inject-agent/battery_1/metrics")[1]
        assert (figures["decisions"], figures["counts"], figures["persona_consistency"]) == (5, {"external": 5}, None)
    health = service.ask("POST", f"{grid}/inject-agent/battery_1/health-check")[1]
    assert (health["healthy"], health["code"]) == (False, "CONNECTION")
    assert service.ask("GET", f"{grid}/inject-agent/battery_1/metrics")[1]["decisions"] == 5
    assert service.ask("DELETE", f"{grid}/inject-agent/battery_1") == (200, {"removed": "battery_1"})
    assert service.ask("DELETE", f"{grid}/inject-agent/battery_1")[0] == 404
    assert service.ask("GET", f"{grid}/inject-agent/battery_1/metrics")[0] == 404


def test_a_form_s_unset_fields_may_be_null(service: Service):
    asked = {**GRID, "options": None, "seed": None}
    status, made = service.ask("POST", "/simulations", asked)
    assert status == 201
    grid = f"/simulations/{made['id']}"
    assert service.ask("POST", f"{grid}/step", {"steps": None, "actions": None})[1]["step"] == 1
    assert service.ask("POST", f"{grid}/reset", {"seed": None})[1]["step"] == 0
    form = {"agent_id": "battery_1", "endpoint_url": "http://127.0.0.1:9/"}
    unset = ("api_key_env", "timeout_seconds", "privacy_tier", "fallback", "fallback_to_simulated")
    status, told = service.ask("POST", f"{grid}/inject-agent", {**form, **dict.fromkeys(unset)})
    assert (status, told["privacy_tier"], told["timeout_seconds"]) == (201, "basic", 30.0)
    assert service.ask("POST", f"{grid}/inject-agent", {**form, "agent_id": None})[0] == 422
    assert service.ask("POST", "/simulations", {**GRID, "colour": None})[0] == 422
    schemas = service.ask("GET", "/openapi.json")[1]["components"]["schemas"]
    for name in ("NewSimulation", "Steps", "Reset", "Injection"):
        optional = schemas[name]["properties"].keys() - schemas[name].get("required", [])
        assert optional and all({"type": "null"} in schemas[name]["properties"][each]["anyOf"] for each in optional)
    service.ask("DELETE", grid)


REFUSED: list[tuple[str, str, Any, int, str]] = [
    ("POST", "/simulations", {"env": "heron/Nothing-v0"}, 422, "no such environment"),
    ("POST", "/simulations", {"env": "subprocess:getoutput", "options": {"cmd": "id"}}, 422, "--trust"),
    ("POST", "/simulations", {**GRID, "options": {"num_bateries": 2}}, 422, "num_bateries"),
    ("POST", "/simulations", {"env": "heron/Economy-v0", "options": {"config": "world.yaml"}}, 422, "file"),
    ("POST", "/simulations", {"env": "heron/Economy-v0", "options": {"config": "/dev/zero"}}, 422, "file"),
    ("POST", "/simulations", {"env": "heron/Economy-v0", "options": {"config": {"agent_injection": {}}}}, 422, "inj"),
    ("POST", "/simulations", {**GRID, "seed": -1}, 422, "seed"),
    ("POST", "/simulations", {**GRID, "more": 1}, 422, "more"),
    ("POST", "/simulations", {**GRID, "options": {"\ud800": 1}}, 422, "half a surrogate pair"),
    ("POST", "/simulations", {**GRID, "options": {"observability": "\ud800"}}, 422, "half a surrogate pair"),
    ("POST", "/simulations", {**GRID, "\udfff": 1}, 422, "half a surrogate pair"),
    ("POST", "/simulations", {**GRID, "options": {"a": {"b": [float("nan")]}}}, 422, "not finite"),
    ("POST", "/simulations", b'{"env": "a", "options": {"a": ' + b"[" * 90 + b"]" * 90 + b"}}", 422, "nested deeper"),
    ("POST", "/simulations", {**GRID, "options": {"physics_substeps": 10**9}}, 422, "take 10,000 at the most"),
    ("POST", "{grid}/step", {"actions": {"\ud800": [0.0]}}, 422, "half a surrogate pair"),
    ("POST", "/simulations", b"[", 422, "JSON"),
    ("POST", "/simulations", b"[" * 100_000, 400, ""),
    ("POST", "/simulations", b'{"env": "\xff"}', 400, ""),
    ("POST", "/simulations", b"x" * (2**20 + 1), 413, "1,048,576"),
    ("GET", "/simulations/999", None, 404, "999"),
    ("GET", "/simulations/..%2f..", None, 404, ""),
    ("PUT", "/simulations", {}, 405, ""),
    ("GET", "/nowhere", None, 404, ""),
    ("POST", "{grid}/step", {"steps": 10_001}, 422, "10000"),
    ("POST", "{grid}/step", {"steps": True}, 422, "steps"),
    ("POST", "{grid}/step", {"actions": {"battery_9": [0.0]}}, 422, "battery_9"),
    ("POST", "{grid}/step", {"actions": {"battery_1": ["much"]}}, 422, "battery_1"),
    ("POST", "{grid}/step", {"actions": {"battery_1": [9e99]}}, 422, "battery_1"),
    ("POST", "{grid}/inject-agent", {"agent_id": "nobody", "endpoint_url": "http://127.0.0.1:9/"}, 422, "nobody"),
    ("POST", "{grid}/inject-agent", {"agent_id": "battery_1", "endpoint_url": "https://10.0.0.1/"}, 422, "allow"),
    ("POST", "{grid}/inject-agent", {"agent_id": "battery_1", "endpoint_url": "https://u:pw@a.org/"}, 422, "address"),
    (
        "POST", "{grid}/inject-agent",
        {"agent_id": "battery_1", "endpoint_url": "http://127.0.0.1:9/", "api_key": "sk-canary"}, 422, "api_key_env",
    ),
    (
        "POST", "{grid}/inject-agent",
        {"agent_id": "battery_1", "endpoint_url": "http://127.0.0.1:9/", "api_key_env": "PATH"}, 422, "--key-env",
    ),
    (
        "POST", "{grid}/inject-agent",
        {"agent_id": "battery_1", "endpoint_url": "http://127.0.0.1:9/", "fallback": "fail",
         "fallback_to_simulated": True}, 422, "contradict",
    ),
    (
        "POST", "{grid}/inject-agent",
        {"agent_id": "battery_1", "endpoint_url": "http://127.0.0.1:9/", "fallback": "pray"}, 422, "fallback",
    ),
    ("GET", "{grid}/inject-agent/battery_1/metrics", None, 404, "not injected"),
]  # fmt: skip


def test_everything_refused_has_one_shape_and_changes_nothing(service: Service, grid: str):
    before = service.ask("GET", grid)
    for verb, path, body, status, words in REFUSED:
        code, told = service.ask(verb, path.format(grid=grid), body)
        assert (code, told.keys(), told["error"].keys()) == (status, {"error"}, {"code", "message"}), (path, told)
        assert words in told["error"]["message"], told
        assert "canary" not in json.dumps(told) and "pw" not in json.dumps(told) and "Traceback" not in str(told)
    assert service.ask("GET", "/simulations", Host="evil.example")[0] == 421
    assert service.ask("GET", grid) == before


def test_openapi_tells_of_every_address(service: Service):
    paths = service.ask("GET", "/openapi.json")[1]["paths"]
    assert {(verb, path) for path, verbs in paths.items() for verb in verbs} == {
        ("post", "/simulations"), ("get", "/simulations"),
        ("get", "/simulations/{id}"), ("delete", "/simulations/{id}"),
        ("post", "/simulations/{id}/step"), ("post", "/simulations/{id}/reset"),
        ("post", "/simulations/{id}/inject-agent"), ("get", "/simulations/{id}/injected-agents"),
        ("delete", "/simulations/{id}/inject-agent/{agent_id}"),
        ("get", "/simulations/{id}/inject-agent/{agent_id}/metrics"),
        ("post", "/simulations/{id}/inject-agent/{agent_id}/health-check"),
    }  # fmt: skip


@pytest.mark.e2e
def test_killed_in_mid_episode_it_goes_on_bit_for_bit_names_damage_and_asks_for_its_token(tmp_path: Path):
    with serve_policy(rule, make(GRID["env"], **GRID["options"])) as agent:
        with Service(tmp_path / "kept", "--allow-loopback") as one:
            assert one.ask("POST", "/simulations", GRID)[1]["id"] == "1"
            one.ask("POST", "/simulations/1/step", {"steps": 2})
            one.ask("POST", "/simulations/1/inject-agent", {"agent_id": "battery_1", "endpoint_url": agent.url})
            one.ask("POST", "/simulations/1/step", {"steps": 3, "actions": {"battery_2": [0.125]}})
            before = one.ask("GET", "/simulations/1")[1]
            one.kill()
            asked = agent.served.requests
            shutil.copytree(tmp_path / "kept", tmp_path / "other")
        journal = tmp_path / "kept" / "1" / "journal.jsonl"
        with journal.open("ab") as file:
            file.write(b'{"verb":"step","giv')  # killed while it wrote
        with Service(tmp_path / "kept", "--allow-loopback") as two:
            assert two.ask("GET", "/simulations/1")[1] == before
            assert agent.served.requests == asked  # what was answered is not asked again
            there = two.ask("POST", "/simulations/1/step", {"steps": 2})[1]
            assert two.ask("GET", "/simulations/1/inject-agent/battery_1/metrics")[1]["decisions"] == 5
    env = make(GRID["env"], **GRID["options"])
    env.reset(seed=3)
    for step in range(7):
        told: dict[str, Any] = {"battery_2": np.array([0.125])} if 2 <= step < 5 else {}
        if step >= 2:
            told["battery_1"] = rule(env.seen_by(env.hierarchy.index["battery_1"]))
        observations, rewards, *_ = env.step(told)
    assert there["rewards"] == rewards
    assert all(np.array_equal(np.array(there["observations"][a], np.float32), v) for a, v in observations.items())
    damaged = tmp_path / "other" / "1" / "journal.jsonl"
    damaged.write_bytes(damaged.read_bytes().replace(b'"steps":3', b'"steps":"3'))
    with Service(tmp_path / "other", "--token-env", "SERVICE_TOKEN", SERVICE_TOKEN="open-sesame") as three:
        for refused in ({}, {"Authorization": "Bearer open"}):
            assert three.ask("GET", "/simulations", **refused)[0] == 401
        three.token = "open-sesame"
        status, told = three.ask("GET", "/simulations/1")
        assert (status, told["error"]["code"]) == (409, "DAMAGED")
        assert "journal.jsonl:3" in told["error"]["message"]
        assert three.ask("POST", "/simulations", GRID)[1]["id"] == "2"
    assert three.errors == ""
